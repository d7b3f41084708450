
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_SYNC_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_SYNC_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_keys_zone.h"


/*
 * The directive dsa_keys, and what keeps the zone of keys current: one worker
 * has the lease to do it, and the others take over when that process has ended.
 */

typedef struct ngx_http_dsa_keys_sync_s  ngx_http_dsa_keys_sync_t;


/*
 * Reads "redis zone=NAME:SIZE" or "file=PATH zone=NAME:SIZE".  NULL: the error
 * is logged.  The keys of a file are read when nginx creates the zone, so
 * a file that is missing or malformed is an error of the configuration.
 */
ngx_http_dsa_keys_sync_t *ngx_http_dsa_keys_sync_create(ngx_conf_t *cf);

/* The keys that it keeps current. */
ngx_http_dsa_keys_t *ngx_http_dsa_keys_sync_keys(
    ngx_http_dsa_keys_sync_t *sync);

/*
 * When all directives are read: redis is that of dsa_redis, or NULL.
 * NGX_ERROR: it is needed, which is logged.
 */
ngx_int_t ngx_http_dsa_keys_sync_check(ngx_conf_t *cf,
    ngx_http_dsa_keys_sync_t *sync, ngx_http_dsa_redis_t *redis);

/* In a worker.  NGX_ERROR: it is logged. */
ngx_int_t ngx_http_dsa_keys_sync_start(ngx_http_dsa_keys_sync_t *sync,
    ngx_cycle_t *cycle);
void ngx_http_dsa_keys_sync_stop(ngx_http_dsa_keys_sync_t *sync);


#endif /* _NGX_HTTP_DSA_KEYS_SYNC_H_INCLUDED_ */
