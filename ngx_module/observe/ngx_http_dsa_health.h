
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_HEALTH_H_INCLUDED_
#define _NGX_HTTP_DSA_HEALTH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * dsa_health: the body reports what this worker sees of each engine of the
 * pool, and of Redis.
 *
 * ready: 200 if this worker could submit a chat to an engine, otherwise 503.
 * Trouble with Redis does not make it 503, because all hosts have it at once.
 *
 * live: 503 if an engine hangs, which only the end of its processes mends;
 * otherwise 200, also while an engine is away, loads or drains.
 */
ngx_int_t ngx_http_dsa_health_ready_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_dsa_health_live_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_DSA_HEALTH_H_INCLUDED_ */
