
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_VARIABLES_H_INCLUDED_
#define _NGX_HTTP_DSA_VARIABLES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* $dsa_...; before the configuration is read. */
ngx_int_t ngx_http_dsa_variables_add(ngx_conf_t *cf);

/* The log phase of requests to dsa_pass: counts them in the metrics. */
ngx_int_t ngx_http_dsa_log_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_VARIABLES_H_INCLUDED_ */
