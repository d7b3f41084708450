
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_failure.h"
#include "ngx_http_dsa_limit_types.h"


/*
 * The limits of the keys of a zone: requests and tokens per minute, concurrent
 * requests, money.  All workers of a host use the same state, which is in
 * shared memory.  Each zone has one lock, which is released if its process
 * dies.
 *
 * Before its body is read, a request reserves one of the requests per minute,
 * and a permit, which is one of the concurrent requests.  At its end the key is
 * charged with its tokens and its cost, and the permit is released.
 */

/*
 * For the init handler of the zone.  In a new zone *limits is NULL; in a zone
 * that a reload keeps it is the old pointer.  The table of permits is made
 * large enough for the connections of all workers of the cycle.  NGX_ERROR: the
 * zone is too small, which is logged.
 */
ngx_int_t ngx_http_dsa_limits_init(ngx_http_dsa_limits_t **limits,
    ngx_slab_pool_t *pool, ngx_cycle_t *cycle);

/*
 * In a worker, before its first request: acquires an owner number, and
 * starts to release the permits of processes that have ended, and to share the
 * limits with other hosts if dsa_redis is configured.  NGX_ERROR: no number is
 * free, which is logged.
 */
ngx_int_t ngx_http_dsa_limits_start(ngx_http_dsa_limits_t *limits,
    ngx_cycle_t *cycle);

/*
 * Sets the limits of a key that is new or whose key entry has changed.  id has
 * DSA_KEY_ID_LEN bytes, digest is that of its tenant.  The use so far is kept.
 */
void ngx_http_dsa_limit_set(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, const u_char *id,
    const u_char digest[NGX_HTTP_DSA_DIGEST_LEN],
    const dsa_key_limits_t *conf);

/*
 * Call it before a key is freed.  NGX_OK, or NGX_BUSY: the key has permits or
 * is being synchronized, and must not be freed now.
 */
ngx_int_t ngx_http_dsa_limit_remove(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);

/*
 * Returns 1 if the key has a hard budget, what it has spent is not known, and
 * Redis can be read, so that it may be known soon.
 */
ngx_uint_t ngx_http_dsa_limit_pending(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);

/*
 * Reserves one request of a key.  With a permit, which must be empty, the
 * request also counts as running until ngx_http_dsa_limit_end(); permit is NULL
 * for a request that is answered without an engine.  view is always set.
 * NGX_OK, or NGX_DECLINED with view->refused: nothing is reserved.
 */
ngx_int_t ngx_http_dsa_limit_reserve(ngx_http_dsa_permit_t *permit,
    ngx_http_dsa_limits_t *limits, ngx_http_dsa_limit_t *limit,
    ngx_http_dsa_limit_view_t *view);

/*
 * Takes one of the requests per minute for a request that changes what is
 * stored, or, if read is set, one of ten times as many reads, which each host
 * counts for itself.  Tokens, requests at a time and budgets do not matter.
 * view is set, for a read without the limits.  NGX_OK or NGX_DECLINED.
 */
ngx_int_t ngx_http_dsa_limit_stored(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit, ngx_uint_t read,
    ngx_http_dsa_limit_view_t *view);

/*
 * Ends a request: charges its key, and releases and empties the permit.  Does
 * nothing with an empty permit.  cost: 10^-12 units.
 */
void ngx_http_dsa_limit_end(ngx_http_dsa_permit_t *permit, uint64_t tokens,
    int64_t cost);

/*
 * ngx_http_dsa_limit_permit() allocates an empty permit in the pool of the
 * request; NULL: out of memory.  When the pool is destroyed, the permit is
 * ended without tokens and cost, unless ngx_http_dsa_limit_move() has moved it
 * to the usage record.
 */
ngx_http_dsa_permit_t *ngx_http_dsa_limit_permit(ngx_http_request_t *r);
void ngx_http_dsa_limit_move(ngx_http_dsa_permit_t *to,
    ngx_http_dsa_permit_t *from);

/*
 * Reads the current state of a key, for reports.  view->refused is
 * NGX_HTTP_DSA_LIMIT_UNKNOWN if the key has a hard budget and what it has spent
 * is not known.
 */
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
