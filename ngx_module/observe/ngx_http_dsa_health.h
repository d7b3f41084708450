
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_HEALTH_H_INCLUDED_
#define _NGX_HTTP_DSA_HEALTH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * dsa_health: 200 if this worker could submit a chat to an engine of the pool,
 * otherwise 503.  The body reports what this worker sees of each engine.
 */
ngx_int_t ngx_http_dsa_health_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_HEALTH_H_INCLUDED_ */
