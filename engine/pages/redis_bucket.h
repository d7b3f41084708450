
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_BUCKET_H_INCLUDED_
#define _DSA_REDIS_BUCKET_H_INCLUDED_


#include <stdint.h>


/*
 * A limit of bytes per second.  Bytes are charged when they are sent, and the
 * next bytes may be sent when the time that these take at the limit has
 * passed.  Up to DSA_BUCKET_CREDIT of unused time is kept, so that the rate is
 * reached even if threads wake up late.
 */

#define DSA_BUCKET_CREDIT   100000      /* us */


typedef struct {
    uint64_t            rate;           /* bytes/s; 0: no limit */
    uint64_t            next_us;
} dsa_redis_bucket_t;


/* Charges bytes and returns 0, or returns the us until they may be sent. */

static inline uint64_t
dsa_redis_bucket(dsa_redis_bucket_t *b, uint64_t now_us, uint64_t bytes)
{
    if (b->rate == 0) {
        return 0;
    }

    if (now_us < b->next_us) {
        return b->next_us - now_us;
    }

    if (now_us - b->next_us > DSA_BUCKET_CREDIT) {
        b->next_us = now_us - DSA_BUCKET_CREDIT;
    }

    /* whole seconds first, because bytes * 1000000 may exceed 64 bits */

    b->next_us += bytes / b->rate * 1000000
                  + bytes % b->rate * 1000000 / b->rate;

    return 0;
}


#endif /* _DSA_REDIS_BUCKET_H_INCLUDED_ */
