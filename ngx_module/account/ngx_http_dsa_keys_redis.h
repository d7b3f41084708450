
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_KEYS_REDIS_H_INCLUDED_
#define _NGX_HTTP_DSA_KEYS_REDIS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_keys_zone.h"


/*
 * The keys of "dsa_keys redis".  The process that keeps the zone current reads
 * all key entries once, and then what has changed.  While Redis cannot be used,
 * or replies with something else, the keys of the zone remain as they are.
 */

typedef struct {
    ngx_http_dsa_keys_t            *keys;
    ngx_http_dsa_redis_t           *redis;
    ngx_http_dsa_redis_command_t   *command;    /* NULL: none */
    int64_t                         since;  /* version of what was read */
    uint64_t                        round;
    ngx_uint_t                      text;   /* Redis lacks the script */
    ngx_msec_t                      warned; /* time of the last warning about
                                               a key entry; 0: none */
    unsigned                        reading:1;  /* it is this process that
                                                   reads */
    unsigned                        full:1; /* all key entries are read */
    unsigned                        failed:1;   /* which is logged */
} ngx_http_dsa_keys_redis_t;


/*
 * In the process that has the lease: reads what has changed, unless it is being
 * read.  Returns the milliseconds until the next call.
 */
ngx_msec_t ngx_http_dsa_keys_redis_read(ngx_http_dsa_keys_redis_t *kr);

/* The process does not have the lease, or it exits. */
void ngx_http_dsa_keys_redis_stop(ngx_http_dsa_keys_redis_t *kr);


#endif /* _NGX_HTTP_DSA_KEYS_REDIS_H_INCLUDED_ */
