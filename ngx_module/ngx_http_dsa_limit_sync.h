
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_SYNC_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_SYNC_H_INCLUDED_


#include "ngx_http_dsa_limit_types.h"
#include "ngx_http_dsa_redis.h"


/*
 * The limits of several hosts.  All hosts use one bucket in Redis for each key.
 * Once a second one worker of each host adds what the host has used, and gets
 * what is missing from the bucket, how many requests run on other hosts, and
 * what the key has spent.  Between two rounds a host admits requests by what it
 * got last, so hosts together exceed a limit by what they use in one second.
 *
 * While Redis is away each host counts alone.  What it has used since then is
 * kept as one number for each key, and is added later, as far as the host's own
 * bucket is not full again.
 */

/* In a worker.  redis NULL: this host is alone. */
void ngx_http_dsa_limit_sync_start(ngx_http_dsa_redis_t *redis);

/* Begins a round if one is due.  From a timer, at least once a second. */
void ngx_http_dsa_limit_sync_tick(ngx_http_dsa_limits_t *limits,
    ngx_log_t *log);

/* The key is in use now, so it is shared from now on.  The lock is held. */
void ngx_http_dsa_limit_sync_use(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);

/* As ngx_http_dsa_limit_remove().  The lock is held. */
ngx_int_t ngx_http_dsa_limit_sync_remove(ngx_http_dsa_limits_t *limits,
    ngx_http_dsa_limit_t *limit);


#endif /* _NGX_HTTP_DSA_LIMIT_SYNC_H_INCLUDED_ */
