
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BUCKET_H_INCLUDED_
#define _DSA_BUCKET_H_INCLUDED_


#include <stdint.h>


/*
 * A token bucket that holds what may be used in one minute and is refilled
 * continuously.  It counts in parts: a unit (a request, a token) has
 * DSA_BUCKET_PARTS of them, so a rate of N units per minute is a refill of
 * N parts per millisecond, and all arithmetic is exact.
 *
 * The state is what is missing from a full bucket, so zeroed memory is a full
 * bucket of any rate, and the rate may change at any time.  More may be missing
 * than the bucket holds: this is a debt, because a request is charged with its
 * tokens after it has run.
 *
 * now_ms is a monotonic clock.  A call with an earlier time than that of the
 * call before it, from a process whose cached time is older, refills nothing.
 */

#define DSA_BUCKET_PARTS     60000
#define DSA_BUCKET_MAX_RATE  1000000000000ULL

/* The largest debt, in parts: 10 minutes of the largest rate. */

#define DSA_BUCKET_MAX_DEBT  (10 * DSA_BUCKET_MAX_RATE * DSA_BUCKET_PARTS)


typedef struct {
    uint64_t  missing;          /* parts */
    uint64_t  time;             /* of the last refill, ms */
} dsa_bucket_t;


/* rate: units per minute, 1 to DSA_BUCKET_MAX_RATE, in all functions. */

/* Refills the bucket for the time since the last call. */
void dsa_bucket_refill(dsa_bucket_t *bucket, uint64_t rate, uint64_t now_ms);

/* Takes units.  The debt is limited to DSA_BUCKET_MAX_DEBT. */
void dsa_bucket_take(dsa_bucket_t *bucket, uint64_t units);

/* The whole units in the bucket after the last refill; 0 if it has a debt. */
uint64_t dsa_bucket_level(const dsa_bucket_t *bucket, uint64_t rate);

/* Milliseconds after the last refill until the level is at least one unit. */
uint64_t dsa_bucket_wait(const dsa_bucket_t *bucket, uint64_t rate);

/* Milliseconds after the last refill until the bucket is full. */
uint64_t dsa_bucket_reset(const dsa_bucket_t *bucket, uint64_t rate);


#endif /* _DSA_BUCKET_H_INCLUDED_ */
