
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ROUTE_H_INCLUDED_
#define _NGX_HTTP_DSA_ROUTE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "engine/link.h"

#include "ngx_http_dsa_prefix_keys.h"


/*
 * Which engine of a pool has which prefixes, in a shared memory zone of the
 * pool.  A pool with one engine has none.  All workers use the zone, and it
 * survives a reload unless its size changes.
 *
 * A prefix maps to the number of a replica, a hash of the engine's address and
 * of pid and epoch of the replica.  So entries stay valid when a reload adds,
 * removes or reorders engines.  When a replica was started again, its pages are
 * gone, and its old entries no longer match.
 */

typedef struct ngx_http_dsa_route_s  ngx_http_dsa_route_t;


/* How the engine of a request was chosen. */

typedef enum {
    NGX_HTTP_DSA_ROUTE_NONE = 0,    /* no engine has a prefix of it */
    NGX_HTTP_DSA_ROUTE_PREFIX,      /* it has a prefix */
    NGX_HTTP_DSA_ROUTE_LOAD,        /* the one with a prefix is too busy */
    NGX_HTTP_DSA_ROUTE_UNAVAILABLE, /* the one with a prefix cannot serve it */
    NGX_HTTP_DSA_ROUTE_RESULTS
} ngx_http_dsa_route_e;


#define NGX_HTTP_DSA_ROUTE_NO_ENGINE  ((ngx_uint_t) -1)


/* Names of the results, for logs and metrics. */
extern const ngx_str_t  ngx_http_dsa_routes[NGX_HTTP_DSA_ROUTE_RESULTS];


/*
 * In configuration: the zone of a pool with n engines, of size bytes.  NULL: an
 * error, which is logged.
 */
ngx_http_dsa_route_t *ngx_http_dsa_route_add(ngx_conf_t *cf, ngx_str_t *pool,
    ngx_uint_t n, size_t size);

/* In a worker: the engine with this index has sent a hello. */
void ngx_http_dsa_route_hello(ngx_http_dsa_route_t *route, ngx_uint_t index,
    ngx_str_t *address, const dsa_link_hello_t *hello);

/* The keys of a prompt; tenant has NGX_HTTP_DSA_PREFIX_TENANT bytes. */
void ngx_http_dsa_route_keys(ngx_http_dsa_route_t *route,
    ngx_http_dsa_prefix_keys_t *keys, const dsa_prompt_t *prompt,
    const u_char *tenant, ngx_str_t *model);

/*
 * For each key the index of the engine that has its prefix, or
 * NGX_HTTP_DSA_ROUTE_NO_ENGINE; engines has an element for each key.
 */
void ngx_http_dsa_route_find(ngx_http_dsa_route_t *route,
    const ngx_http_dsa_prefix_keys_t *keys, ngx_uint_t *engines);

/*
 * A request was submitted to the engine with this index, which has all of its
 * prefixes from now on; result is counted.
 */
void ngx_http_dsa_route_record(ngx_http_dsa_route_t *route,
    const ngx_http_dsa_prefix_keys_t *keys, ngx_uint_t index,
    ngx_http_dsa_route_e result);

/* How often a result was recorded, by all workers. */
uint64_t ngx_http_dsa_route_count(ngx_http_dsa_route_t *route,
    ngx_http_dsa_route_e result);


#endif /* _NGX_HTTP_DSA_ROUTE_H_INCLUDED_ */
