
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_HANDLER_H_INCLUDED_
#define _NGX_HTTP_DSA_HANDLER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* The content handler of dsa_pass: calls the handler for the path. */
ngx_int_t ngx_http_dsa_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_HANDLER_H_INCLUDED_ */
