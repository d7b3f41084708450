
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Token buckets, compared with one that counts in 128 bits what it holds.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bucket.h"


typedef __int128  wide_t;


/* level: in 1/60000 of a unit, negative with a debt */

typedef struct {
    wide_t    level;
    uint64_t  rate;
    uint64_t  time;
} oracle_t;


static uint64_t  seed = 20251122;


static uint64_t
random_number(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return seed;
}


/* All orders of magnitude are equally likely. */

static uint64_t
random_size(uint64_t max)
{
    return random_number() % (max >> random_number() % 41 | 1);
}


static void
oracle_refill(oracle_t *o, uint64_t now)
{
    wide_t  full;

    full = (wide_t) o->rate * 60000;

    if (now > o->time) {
        o->level += (wide_t) o->rate * (now - o->time);
        o->time = now;
    }

    if (o->level > full) {
        o->level = full;
    }
}


static void
oracle_take(oracle_t *o, uint64_t units)
{
    wide_t  least;

    least = (wide_t) o->rate * 60000 - (wide_t) DSA_BUCKET_MAX_DEBT;

    o->level -= (wide_t) units * 60000;

    if (o->level < least) {
        o->level = least;
    }
}


/* Whether the level is at least one unit, or full, ms later and not before. */

static void
check_wait(const oracle_t *o, uint64_t ms, wide_t level)
{
    assert_true(o->level + (wide_t) o->rate * ms >= level);

    if (ms != 0) {
        assert_true(o->level + (wide_t) o->rate * (ms - 1) < level);
    }
}


static void
check(const dsa_bucket_t *bucket, const oracle_t *o)
{
    uint64_t  level;

    level = o->level < 0 ? 0 : (uint64_t) (o->level / 60000);

    assert_true(dsa_bucket_level(bucket, o->rate) == level);

    check_wait(o, dsa_bucket_wait(bucket, o->rate), 60000);
    check_wait(o, dsa_bucket_reset(bucket, o->rate), (wide_t) o->rate * 60000);
}


static void
test_random(void **state)
{
    int           i, round;
    uint64_t      now, rate, then;
    oracle_t      o;
    dsa_bucket_t  bucket;

    (void) state;

    for (round = 0; round < 300; round++) {

        rate = 1 + random_size(DSA_BUCKET_MAX_RATE);
        now = random_size(UINT64_MAX / 4);

        bucket.missing = 0;
        bucket.time = 0;

        o.rate = rate;
        o.level = (wide_t) rate * 60000;
        o.time = 0;

        for (i = 0; i < 1000; i++) {

            now += random_size(1000000);

            switch (random_number() % 8) {

            case 0:                 /* the clock of another process */
                then = random_size(5000);
                then = then > now ? 0 : now - then;
                dsa_bucket_refill(&bucket, rate, then);
                oracle_refill(&o, then);
                break;

            case 1:
                rate = 1 + random_size(DSA_BUCKET_MAX_RATE);
                o.level += ((wide_t) rate - (wide_t) o.rate) * 60000;
                o.rate = rate;
                break;

            case 2:
                now += random_size(UINT64_MAX / 8000);
                break;

            default:
                then = random_size(2 * rate);
                dsa_bucket_take(&bucket, then);
                oracle_take(&o, then);
                break;
            }

            dsa_bucket_refill(&bucket, rate, now);
            oracle_refill(&o, now);

            check(&bucket, &o);
        }
    }
}


/*
 * One request every time that the bucket admits one: after t ms of this, the
 * full bucket and what was refilled are used, to the request.
 */

static void
test_greedy(void **state)
{
    size_t        i;
    uint64_t      now, admitted;
    dsa_bucket_t  bucket;

    static const uint64_t  rates[] = { 1, 7, 60, 1000, 59999, 60001, 999983 };

    (void) state;

    for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {

        bucket.missing = 0;
        bucket.time = 5;
        admitted = 0;

        for (now = 5; now <= 5 + 200000; now++) {
            dsa_bucket_refill(&bucket, rates[i], now);

            while (dsa_bucket_level(&bucket, rates[i]) != 0) {
                dsa_bucket_take(&bucket, 1);
                admitted++;
            }

            assert_int_equal(admitted,
                             rates[i] + rates[i] * (now - 5) / 60000);
        }
    }
}


static void
test_limits(void **state)
{
    dsa_bucket_t  bucket = { 0, 0 };

    (void) state;

    dsa_bucket_take(&bucket, UINT64_MAX);
    dsa_bucket_take(&bucket, UINT64_MAX);
    assert_true(bucket.missing == DSA_BUCKET_MAX_DEBT);
    assert_int_equal(dsa_bucket_level(&bucket, DSA_BUCKET_MAX_RATE), 0);

    /* ten times what a bucket of the largest rate holds */

    assert_int_equal(dsa_bucket_reset(&bucket, DSA_BUCKET_MAX_RATE), 600000);
    assert_int_equal(dsa_bucket_wait(&bucket, DSA_BUCKET_MAX_RATE), 540001);

    dsa_bucket_refill(&bucket, 1, UINT64_MAX);
    assert_int_equal(bucket.missing, 0);
    assert_int_equal(dsa_bucket_level(&bucket, 1), 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_limits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
