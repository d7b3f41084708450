
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PROMETHEUS_H_INCLUDED_
#define _NGX_HTTP_DSA_PROMETHEUS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* dsa_metrics: the metrics in the text format of Prometheus. */
ngx_int_t ngx_http_dsa_prometheus_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_PROMETHEUS_H_INCLUDED_ */
