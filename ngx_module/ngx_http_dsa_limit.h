
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_failure.h"
#include "ngx_http_dsa_limit_types.h"


/*
 * What the keys of a zone may use: requests and tokens per minute, concurrent
 * requests, money.  The state is in shared memory under one lock for each zone,
 * which is released if its process dies, so all workers of a host count
 * together.
 *
 * A request reserves before its body is read: this takes one request, and a
 * hold, which is its part of the key's concurrency.  At its end it is charged
 * with its tokens and its cost, and the hold is released.
 */

/*
 * For the init handler of the zone: *limits is NULL in a new zone, and what it
 * was in a zone that is used again.  The table of holds has room for the
 * connections of all workers of the cycle.  NGX_ERROR: the zone is too small,
 * which is logged.
 */
ngx_int_t ngx_http_dsa_limits_init(ngx_http_dsa_limits_t **limits,
    ngx_slab_pool_t *pool, ngx_cycle_t *cycle);

/*
 * In a worker, before its first request: acquires a seat, and starts to release
 * the holds of processes that have ended, and to share the limits with other
 * hosts if dsa_redis is configured.  NGX_ERROR: no seat is free, which is
 * logged.
 */
ngx_int_t ngx_http_dsa_limits_start(ngx_http_dsa_limits_t *limits,
    ngx_cycle_t *cycle);

/*
 * A key is new, or its record has changed.  id has DSA_KEY_ID_LEN bytes, digest
 * is that of its tenant.  It keeps its use.
 */
void ngx_http_dsa_limit_set(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, const u_char *id,
    const u_char digest[NGX_HTTP_DSA_DIGEST_LEN],
    const dsa_key_limits_t *conf);

/*
 * The key is about to be freed.  NGX_BUSY: it has holds or is in use for a
 * moment, and must not be freed now; otherwise NGX_OK.
 */
ngx_int_t ngx_http_dsa_limit_remove(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);

/*
 * Reserves one request of a key.  hold, which must be empty: the request is
 * also one of the key's running requests until ngx_http_dsa_limit_end(); NULL
 * for a request that is answered without an engine.  view is always set.
 * NGX_OK, or NGX_DECLINED with view->refused: nothing is reserved.
 */
ngx_int_t ngx_http_dsa_limit_reserve(ngx_http_dsa_hold_t *hold,
    ngx_http_dsa_limits_t *limits, ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);

/*
 * The end of a request: charges it, releases its hold and empties it.  Does
 * nothing with an empty hold.  cost: 10^-12 units.
 */
void ngx_http_dsa_limit_end(ngx_http_dsa_hold_t *hold, uint64_t tokens,
    int64_t cost);

/*
 * An empty hold in the pool of the request.  With the pool it is ended without
 * tokens and cost, unless it was moved to the usage record.  NULL: no memory.
 */
ngx_http_dsa_hold_t *ngx_http_dsa_limit_hold(ngx_http_request_t *r);
void ngx_http_dsa_limit_move(ngx_http_dsa_hold_t *to,
    ngx_http_dsa_hold_t *from);

/* The state of a key now, for reports. */
void ngx_http_dsa_limit_read(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, ngx_http_dsa_limit_view_t *view);

/* Sets the status (429, 402, 503) and the message of a refusal. */
void ngx_http_dsa_limit_failure(const ngx_http_dsa_limit_view_t *view,
    ngx_http_dsa_failure_t *failure);

/*
 * Adds x-ratelimit-*, for Anthropic's API anthropic-ratelimit-* too, and for a
 * refusal Retry-After, to the headers of the response.  When a soft limit of a
 * budget is reached, adds x-dsa-budget-warning, and logs it for the first
 * request of the period.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_dsa_limit_headers(ngx_http_request_t *r,
    const ngx_http_dsa_limit_view_t *view, ngx_uint_t anthropic);


#endif /* _NGX_HTTP_DSA_LIMIT_H_INCLUDED_ */
