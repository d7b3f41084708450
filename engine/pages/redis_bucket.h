
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_BUCKET_H_INCLUDED_
#define _DSA_REDIS_BUCKET_H_INCLUDED_


#include <stdint.h>


/*
 * A limit of bytes per second.  Bytes are charged when they are sent; the next
 * ones may be sent when the time of all before them is over.  Up to
 * DSA_BUCKET_CREDIT of unused time is kept, so that threads which wake up late
 * reach the limit nevertheless.
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

    /* whole seconds apart, because bytes * 1000000 may not fit in 64 bits */

    b->next_us += bytes / b->rate * 1000000
                  + bytes % b->rate * 1000000 / b->rate;

    return 0;
}


#endif /* _DSA_REDIS_BUCKET_H_INCLUDED_ */
