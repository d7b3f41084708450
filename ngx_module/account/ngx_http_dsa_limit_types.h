
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LIMIT_TYPES_H_INCLUDED_
#define _NGX_HTTP_DSA_LIMIT_TYPES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/bucket.h"
#include "base/permits.h"
#include "base/sums.h"
#include "redis_schema/keys_redis.h"

#include "ngx_module/http/ngx_http_dsa_identity.h"


/* The types that the parts of the limits share. */

#define NGX_HTTP_DSA_LIMIT_HOST  16         /* hexadecimal digits */


/*
 * The state of a key, a member of the key's struct.  Zeroed memory is valid
 * for ngx_http_dsa_limit_set().  Read it with ngx_http_dsa_limit_read() only.
 */

typedef struct {
    u_char                       id[DSA_KEY_ID_LEN];
    u_char                       tenant[NGX_HTTP_DSA_TENANT_LEN];
    dsa_key_limits_t             conf;

    dsa_bucket_t                 requests;
    dsa_bucket_t                 tokens;
    dsa_bucket_t                 reads;     /* of this host alone */
    uint32_t                     running;   /* permits of this zone */
    dsa_sums_t                   sums;      /* without dsa_redis: what is
                                               spent */
    int64_t                      warned[DSA_KEY_PERIODS];
                                            /* the number of the period in which
                                               the soft limit was logged */

    /* for ngx_http_dsa_limit_sync.h */
    uint32_t                     elsewhere; /* running on other hosts */
    ngx_msec_t                   lease;     /* time until which elsewhere is
                                               valid */
    uint64_t                     used[DSA_KEY_RATES];   /* units not sent to
                                                           Redis */
    uint64_t                     sent[DSA_KEY_RATES];   /* units sent, no reply
                                                           yet */
    uint64_t                     round;     /* the last round with this key */
    ngx_msec_t                   last;      /* time of the last use */
    ngx_queue_t                  queue;
    uint32_t                     listed;    /* the queue with this number has
                                               the key */
} ngx_http_dsa_limit_t;


typedef struct ngx_http_dsa_limits_s  ngx_http_dsa_limits_t;


typedef struct {
    ngx_http_dsa_limits_t       *limits;
    ngx_http_dsa_limit_t        *limit;     /* NULL: the permit is empty */
    uint32_t                     permit;
} ngx_http_dsa_permit_t;


typedef enum {
    NGX_HTTP_DSA_LIMIT_NONE = 0,
    NGX_HTTP_DSA_LIMIT_REQUESTS,
    NGX_HTTP_DSA_LIMIT_TOKENS,
    NGX_HTTP_DSA_LIMIT_CONCURRENCY,
    NGX_HTTP_DSA_LIMIT_BUDGET,
    NGX_HTTP_DSA_LIMIT_UNKNOWN,             /* what is spent is not known */
    NGX_HTTP_DSA_LIMIT_READS,
    NGX_HTTP_DSA_LIMIT_PERMITS,             /* the table of permits is full */
    NGX_HTTP_DSA_LIMIT_REASONS
} ngx_http_dsa_limit_e;


typedef struct {
    uint64_t                     limit;     /* per minute; 0: no limit */
    uint64_t                     remaining;
    uint64_t                     reset_ms;  /* until the bucket is full */
} ngx_http_dsa_limit_rate_t;


/* A copy of the state of a key at one moment. */

typedef struct {
    u_char                       id[DSA_KEY_ID_LEN];
    ngx_http_dsa_limit_rate_t    requests;
    ngx_http_dsa_limit_rate_t    tokens;
    uint32_t                     concurrency;   /* 0: no limit */
    uint32_t                     running;       /* on all hosts */
    int64_t                      spent[DSA_KEY_PERIODS];
    ngx_uint_t                   known;     /* 0: spent is a lower bound */
    dsa_key_budget_t             budget[DSA_KEY_PERIODS];

    /* set by ngx_http_dsa_limit_reserve() */
    ngx_http_dsa_limit_e         refused;
    dsa_key_period_e             period;    /* of LIMIT_BUDGET */
    uint64_t                     reads;     /* of LIMIT_READS, per minute */
    uint64_t                     retry;     /* seconds; 0: no Retry-After */
    uint32_t                     warn;      /* bits 1 << dsa_key_period_e: the
                                               soft limit is reached */
    uint32_t                     first;     /* of these bits: no request of the
                                               period was warned before this
                                               one */
} ngx_http_dsa_limit_view_t;


/* In shared memory, one for each zone of keys. */

struct ngx_http_dsa_limits_s {
    dsa_permits_t              permits;     /* its lock protects all of the
                                               limits */

    /*
     * The keys that are shared with other hosts; the one that was synchronized
     * longest ago is first.  If repairs differs from permits.repairs, a process
     * was killed while it held the lock, and the queue is not valid.
     */

    ngx_queue_t                active;
    uint32_t                   repairs;

    uint64_t                   round;       /* of the sync with Redis */
    ngx_msec_t                 began;       /* when the last round began */
    ngx_msec_t                 next;        /* when the next round begins */
    ngx_msec_t                 until;       /* when the current round is
                                               abandoned; 0: no round runs */
    u_char                     host[NGX_HTTP_DSA_LIMIT_HOST];
};


#endif /* _NGX_HTTP_DSA_LIMIT_TYPES_H_INCLUDED_ */
