
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_RESPONSES_RESOURCE_H_INCLUDED_
#define _NGX_HTTP_DSA_RESPONSES_RESOURCE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * 1 if the URI is .../responses/ID or .../responses/ID/REST; rest is then what
 * follows the id, without a slash.
 */
ngx_uint_t ngx_http_dsa_responses_resource_find(ngx_http_request_t *r,
    ngx_str_t *id, ngx_str_t *rest);

/* Answers GET, HEAD and DELETE of a stored response, and GET of its input. */
ngx_int_t ngx_http_dsa_responses_resource_handler(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant, ngx_str_t *id, ngx_str_t *rest);


#endif /* _NGX_HTTP_DSA_RESPONSES_RESOURCE_H_INCLUDED_ */
