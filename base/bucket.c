
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "bucket.h"


_Static_assert(DSA_BUCKET_MAX_DEBT < UINT64_MAX / 2,
               "a debt and a full bucket can be added");
_Static_assert(DSA_BUCKET_MAX_DEBT
               > DSA_BUCKET_MAX_RATE * DSA_BUCKET_PARTS,
               "a debt can be larger than a bucket");


static uint64_t dsa_bucket_divide_up(uint64_t n, uint64_t by);


void
dsa_bucket_refill(dsa_bucket_t *bucket, uint64_t rate, uint64_t now_ms)
{
    uint64_t  ms;

    assert(rate != 0 && rate <= DSA_BUCKET_MAX_RATE);

    if (now_ms <= bucket->time) {
        return;
    }

    ms = now_ms - bucket->time;
    bucket->time = now_ms;

    /* ms * rate may not fit in 64 bits, so the quotient is compared */

    if (ms > bucket->missing / rate) {
        bucket->missing = 0;

    } else {
        bucket->missing -= ms * rate;
    }
}


void
dsa_bucket_take(dsa_bucket_t *bucket, uint64_t units)
{
    uint64_t  room;

    room = DSA_BUCKET_MAX_DEBT - bucket->missing;

    if (units > room / DSA_BUCKET_PARTS) {
        bucket->missing = DSA_BUCKET_MAX_DEBT;

    } else {
        bucket->missing += units * DSA_BUCKET_PARTS;
    }
}


uint64_t
dsa_bucket_level(const dsa_bucket_t *bucket, uint64_t rate)
{
    if (bucket->missing >= rate * DSA_BUCKET_PARTS) {
        return 0;
    }

    return (rate * DSA_BUCKET_PARTS - bucket->missing) / DSA_BUCKET_PARTS;
}


uint64_t
dsa_bucket_wait(const dsa_bucket_t *bucket, uint64_t rate)
{
    uint64_t  most;

    most = (rate - 1) * DSA_BUCKET_PARTS;

    if (bucket->missing <= most) {
        return 0;
    }

    return dsa_bucket_divide_up(bucket->missing - most, rate);
}


uint64_t
dsa_bucket_reset(const dsa_bucket_t *bucket, uint64_t rate)
{
    return dsa_bucket_divide_up(bucket->missing, rate);
}


static uint64_t
dsa_bucket_divide_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}
