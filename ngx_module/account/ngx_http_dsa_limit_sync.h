
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_SYNC_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_SYNC_H_INCLUDED_


#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_limit_types.h"


/*
 * Shares the limits between hosts.  All hosts use one bucket in Redis for each
 * key.  Once a second one worker of each host adds what the host has used, and
 * reads what is missing from the bucket, how many requests run on other hosts,
 * and what the key has spent.  Between two rounds a host admits requests by
 * these values, so all hosts together may exceed a limit by what they use in
 * one second.
 *
 * While Redis cannot be reached, each host counts alone.  What it uses
 * meanwhile is summed for each key, and is added later, unless the host's own
 * bucket has been refilled since then.
 */

/* Called in a worker.  If redis is NULL, nothing is shared. */
void ngx_http_dsa_limit_sync_start(ngx_http_dsa_redis_t *redis);

/*
 * Begins a round if one is due.  Call it from a timer, at least once a second.
 */
void ngx_http_dsa_limit_sync_tick(ngx_http_dsa_limits_t *limits,
    ngx_log_t *log);

/*
 * Marks the key as used now, so that it is shared.  The caller holds the lock.
 */
void ngx_http_dsa_limit_sync_use(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);

/*
 * The key is shared in the next round, and until its sums are known.  The
 * caller holds the lock.
 */
void ngx_http_dsa_limit_sync_list(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);

/*
 * The next round begins as soon as the last one began that many milliseconds
 * ago.  The caller holds the lock.
 */
void ngx_http_dsa_limit_sync_soon(ngx_http_dsa_limits_t *limits,
    ngx_msec_t ms);

/* Milliseconds until the next round may begin; the caller holds the lock. */
ngx_msec_t ngx_http_dsa_limit_sync_wait(const ngx_http_dsa_limits_t *limits);

/* Returns 1 if this worker can send commands to Redis. */
ngx_uint_t ngx_http_dsa_limit_sync_up(void);

/* Returns 0 if rounds are due, and none has begun yet. */
ngx_uint_t ngx_http_dsa_limit_sync_begun(const ngx_http_dsa_limits_t *limits);

/* As ngx_http_dsa_limit_remove().  The caller holds the lock. */
ngx_int_t ngx_http_dsa_limit_sync_remove(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);


#endif /* _NGX_HTTP_DSA_LIMIT_SYNC_H_INCLUDED_ */
