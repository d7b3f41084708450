
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_MEMORY_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_MEMORY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/memory.h"
#include "ngx_http_dsa_redis_nodes.h"


/*
 * The memory of Redis, for alarms that come before it is full.  Every few
 * seconds one worker, whichever is first, reads it for all.  Of a cluster it
 * reads the nodes to which it is connected, and the figures are those of the
 * fullest one.
 */

/* In configuration: the zone of the figures.  NULL: it is logged. */
ngx_shm_zone_t *ngx_http_dsa_redis_memory_zone(ngx_conf_t *cf);

/* In a worker, which has these connections.  NGX_ERROR: out of memory. */
ngx_int_t ngx_http_dsa_redis_memory_start(ngx_shm_zone_t *zone,
    ngx_http_dsa_redis_nodes_t *nodes, ngx_cycle_t *cycle);

/*
 * The last figures.  NGX_DECLINED: there are none of the last 30 seconds,
 * because Redis is away or does not permit INFO.
 */
ngx_int_t ngx_http_dsa_redis_memory_get(ngx_shm_zone_t *zone,
    dsa_schema_memory_t *figures);


/*
 * Returns 1 if Redis uses 90 per cent of its memory or more, so that the rest
 * is for the ledger.  0: it uses less, or evicts, or there are no figures.
 */
ngx_uint_t ngx_http_dsa_redis_memory_full(ngx_shm_zone_t *zone);


#endif /* _NGX_HTTP_DSA_REDIS_MEMORY_H_INCLUDED_ */
