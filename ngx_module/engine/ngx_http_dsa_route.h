
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_ROUTE_H_INCLUDED_
#define _NGX_HTTP_DSA_ROUTE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "context/prompt_keys.h"
#include "engine/link_hello.h"


/*
 * Records which engine of a pool has which prefixes, in a shared memory zone
 * of the pool.  A pool with one engine has no zone.  All workers use the zone,
 * and it is kept by a reload unless its size changes.
 *
 * A prefix maps to the number of a replica, a hash of the engine's address and
 * of the pid and the epoch of the replica.  So entries stay valid when a
 * reload adds, removes or reorders engines, and entries of a replica that was
 * restarted, whose pages are gone, no longer match.
 */

typedef struct ngx_http_dsa_route_s  ngx_http_dsa_route_t;


/* How the engine of a request was chosen. */

typedef enum {
    NGX_HTTP_DSA_ROUTE_NONE = 0,    /* no engine has a prefix */
    NGX_HTTP_DSA_ROUTE_PREFIX,      /* the engine has a prefix */
    NGX_HTTP_DSA_ROUTE_LOAD,        /* that engine is too busy */
    NGX_HTTP_DSA_ROUTE_UNAVAILABLE, /* that engine cannot serve the request */
    NGX_HTTP_DSA_ROUTE_RESULTS
} ngx_http_dsa_route_e;


#define NGX_HTTP_DSA_ROUTE_NO_ENGINE  ((ngx_uint_t) -1)


/* Names of the results, for logs and metrics. */
extern const ngx_str_t  ngx_http_dsa_routes[NGX_HTTP_DSA_ROUTE_RESULTS];


/*
 * Called in configuration: adds a zone of size bytes for a pool with n
 * engines.  NULL: an error, which is logged.
 */
ngx_http_dsa_route_t *ngx_http_dsa_route_add(ngx_conf_t *cf, ngx_str_t *pool,
    ngx_uint_t n, size_t size);

/* Called in a worker when the engine with this index has sent a hello. */
void ngx_http_dsa_route_hello(ngx_http_dsa_route_t *route, ngx_uint_t index,
    ngx_str_t *address, const dsa_link_hello_t *hello);

/*
 * Computes the keys of a prompt, see dsa_prompt_keys().
 */
void ngx_http_dsa_route_keys(ngx_http_dsa_route_t *route,
    dsa_prompt_keys_t *keys, const dsa_prompt_t *prompt,
    const dsa_control_tokens_t *tokens, const u_char *tenant,
    ngx_str_t *model);

/*
 * Sets engines, an array with an element for each key, to the indices of the
 * engines with these prefixes, or NGX_HTTP_DSA_ROUTE_NO_ENGINE.
 */
void ngx_http_dsa_route_find(ngx_http_dsa_route_t *route,
    const dsa_prompt_keys_t *keys, ngx_uint_t *engines);

/*
 * Records that a request was submitted to the engine with this index, which
 * has all of its prefixes from now on, and counts result.
 */
void ngx_http_dsa_route_record(ngx_http_dsa_route_t *route,
    const dsa_prompt_keys_t *keys, ngx_uint_t index,
    ngx_http_dsa_route_e result);

/* Returns how often all workers have recorded a result. */
uint64_t ngx_http_dsa_route_count(ngx_http_dsa_route_t *route,
    ngx_http_dsa_route_e result);


#endif /* _NGX_HTTP_DSA_ROUTE_H_INCLUDED_ */
