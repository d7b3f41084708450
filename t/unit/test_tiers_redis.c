
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler with pages in Redis: storing and finding them, the decision
 * whether to fetch, and a Redis that fails, is slow or has lost pages.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tiers.h"


/* Another replica finds the pages that the first one wrote to Redis. */

static void
test_redis(void **state)
{
    fake_t       *f;
    client_t      c;
    uint64_t      tokens;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 16, 64, 1);
    turn(s, &c, 1, 1, 10 * PAGE);
    settle(s);
    assert_int_equal(redis.n_pages, 10);
    assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].write_pages, 10);

    /* a second turn writes only its new pages */

    turn(s, &c, 1, 1, 12 * PAGE);
    settle(s);
    assert_int_equal(redis.n_pages, 12);
    assert_int_equal(redis.doubled, 0);
    finish_tiers(s, f);

    s = start_tiers(&f, 16, 64, 1);
    tokens = f->all_tokens;
    turn(s, &c, 1, 1, 12 * PAGE);
    assert_int_equal(c.usage.cached_tokens, 11 * PAGE);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 11 * PAGE);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_HOST], 0);
    assert_int_equal(f->all_tokens - tokens, PAGE + 2);
    assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].hit_tokens, 11 * PAGE);
    assert_int_equal(redis.doubled, 0);
    check_free(s);
    finish_tiers(s, f);
}


/* Pages that are damaged, missing, or whose server fails are computed. */

static void
test_redis_fails(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(16, 64, 1, 12 * PAGE);

    for (i = 0; i < 4; i++) {
        s = start_tiers(&f, 16, 64, 1);
        redis.damage = i == 0 ? 1 : 0;
        redis.vanish = i == 1 ? 5 : 0;
        redis.fail = i == 2 ? 1 : 0;
        redis.on = i == 3 ? 0 : 1;

        turn(s, &c, 1, 1, 12 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 0);
        assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].invalid, i == 0);
        assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].failed, i == 2);

        redis.on = 1;
        settle(s);
        check_free(s);
        finish_tiers(s, f);
    }
}


/* Attempts to connect count as failures, also if no request needs the cache. */

static void
check_off(dsa_sched_t *s)
{
    uint64_t          failed;
    dsa_tier_stats_t  tier;

    tier = stats_of(s).tier[DSA_TIER_REDIS];
    assert_int_equal(tier.servers, 1);
    assert_int_equal(tier.servers_on, 0);

    failed = tier.failed;
    redis.unconnected += 3;
    tier = stats_of(s).tier[DSA_TIER_REDIS];
    assert_int_equal(tier.failed, failed + 3);

    redis.on = 1;
    tier = stats_of(s).tier[DSA_TIER_REDIS];
    assert_int_equal(tier.servers_on, 1);
    redis.on = 0;
}


/*
 * A thread of the cache turns it off between any two calls and wakes no thread
 * if no operation is queued.  The prompt is computed at once.
 */

static void
test_redis_off(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    for (i = 1; i < 20; i++) {
        redis_reset();
        fill_redis(32, 64, 1, 12 * PAGE);

        s = start_tiers(&f, 32, 64, 1);
        redis.held = 1;
        submit_turn(s, &c, 1, 1, 12 * PAGE);
        step(s);
        redis_run(&redis, 1);
        redis.off_after = i;
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
        run(s);

        /* operations that were queued end, and the cache wakes its user */

        if (redis.n != 0) {
            redis_run(&redis, UINT32_MAX);
            assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
            run(s);
        }

        check(&c, 3, DSA_FINISH_LENGTH);
        assert_false(redis.on);
        check_off(s);
        finish_tiers(s, f);
    }
}


/* Pages from Redis are in the memory of the node that will load them. */

static void
test_nodes(void **state)
{
    fake_t       *f;
    client_t      c, other;
    uint64_t      i;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(32, 64, 1, 12 * PAGE);

    ranks = 2;
    slabs = 2;
    s = start_tiers(&f, 32, 64, 1);

    memset(&other, 0, sizeof(other));
    other.seed = 2;
    submit(s, &other, 2, 2, 10, 40, 1);
    step(s);

    submit_turn(s, &c, 1, 1, 11 * PAGE + 1);
    run(s);
    check(&c, 3, DSA_FINISH_LENGTH);
    check(&other, 40, DSA_FINISH_LENGTH);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 11 * PAGE);
    assert_int_equal(f->tenant_rank[1], 1);

    for (i = 0; i < host.slab[0].bytes; i++) {
        assert_int_equal(host.slab[0].memory[i], 0xaa);
    }

    settle(s);
    check_free(s);
    finish_tiers(s, f);
    slabs = 1;
}


/*
 * A request does not wait for a Redis that is busy with others: after 100 ms it
 * is computed, and nothing is left of it in the queue of the cache.
 */

static void
test_slow_probe(void **state)
{
    fake_t       *f;
    client_t      c;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 32, 64, 1);
    redis.held = 1;
    f->now_us = 5000;
    submit_turn(s, &c, 1, 1, 12 * PAGE);
    run(s);
    assert_int_equal(dsa_sched_due_us(s), 5000 + 100 * 1000);

    f->now_us = 5000 + 100 * 1000 - 1;
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    run(s);
    assert_int_equal(c.finish, 0);
    assert_int_equal(redis.n, 1);

    f->now_us++;
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    assert_int_equal(redis.n, 0);
    assert_int_equal(dsa_sched_due_us(s), UINT64_MAX);
    run(s);
    check(&c, 3, DSA_FINISH_LENGTH);
    assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].failed, 0);

    redis.held = 0;
    settle(s);
    check_free(s);
    finish_tiers(s, f);
}


/* A request of other tokens goes on while pages are read, and so does time. */

static void
test_overlap(void **state)
{
    fake_t       *f;
    client_t      slow, other, next;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(32, 64, 1, 12 * PAGE);

    s = start_tiers(&f, 32, 64, 1);

    redis.held = 1;
    submit_turn(s, &slow, 1, 1, 12 * PAGE);
    step(s);
    assert_false(dsa_sched_busy(s));
    redis_run(&redis, 1);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    assert_true(dsa_sched_busy(s));
    run(s);
    assert_int_equal(stats_of(s).running, 1);

    /* half of the pages arrive while another request is answered */

    redis_run(&redis, 6);
    memset(&other, 0, sizeof(other));
    other.seed = 5;
    submit(s, &other, 2, 5, PAGE / 2, 20, 1);
    run(s);
    check(&other, 20, DSA_FINISH_LENGTH);
    assert_int_equal(slow.finish, 0);

    /* a request with the same prefix waits for it, and finds it */

    memset(&next, 0, sizeof(next));
    next.seed = 7;
    submit(s, &next, 1, 1, 11 * PAGE + 5, 3, 1);
    redis.held = 0;
    answer(s, &slow);
    answer(s, &next);
    check(&slow, 3, DSA_FINISH_LENGTH);
    check(&next, 3, DSA_FINISH_LENGTH);
    assert_int_equal(slow.usage.tier_tokens[DSA_TIER_REDIS], 11 * PAGE);
    assert_int_equal(next.usage.cached_tokens, 11 * PAGE);
    assert_int_equal(next.usage.tier_tokens[DSA_TIER_REDIS], 0);
    assert_int_equal(redis.gets, 11);

    finish_tiers(s, f);
}


/*
 * Redis stops in the middle: computing the rest begins before more than 5 % of
 * the time of computing everything is lost.
 */

static void
test_abandon(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    uint64_t      due;
    dsa_sched_t  *s;

    (void) state;

    for (i = 0; i <= 5; i += 5) {
        redis_reset();
        fill_redis(200, 400, 1, 101 * PAGE);

        s = start_tiers(&f, 200, 400, 1);
        f->token_us = 10;

        /* the time of a token is measured */

        turn(s, &c, 2, 2, 3 * PAGE);
        settle(s);

        submit_held(s, &c, 101 * PAGE);
        step(s);
        redis_run(&redis, i);
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);

        while (dsa_sched_busy(s)) {
            step(s);
        }

        due = dsa_sched_due_us(s);

        /* 100 pages of 64 tokens at 10 us; each page that came adds time */

        assert_in_range(due - f->now_us, 64 * 10 * 5 + i * 640 - 400,
                        64 * 10 * 5 + i * 640 + 100);

        f->now_us = due - 1;
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
        step(s);
        assert_false(dsa_sched_busy(s));

        f->now_us = due;
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
        run(s);
        check(&c, 3, DSA_FINISH_LENGTH);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], i * PAGE);
        assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].abandoned, 100 - i);

        redis.held = 0;
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
        settle(s);
        check_free(s);
        finish_tiers(s, f);
    }
}


/* Before the first prompt was computed, a read has 0.5 ms for each token. */

static void
test_abandon_first(void **state)
{
    fake_t       *f;
    client_t      c;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(200, 400, 1, 101 * PAGE);

    s = start_tiers(&f, 200, 400, 1);
    submit_held(s, &c, 101 * PAGE);
    run(s);
    assert_int_equal(dsa_sched_due_us(s) - f->now_us, 5 * PAGE * 500);

    f->now_us = dsa_sched_due_us(s);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    run(s);
    check(&c, 3, DSA_FINISH_LENGTH);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 0);

    redis.held = 0;
    settle(s);
    finish_tiers(s, f);
}


/* If reading was slower than computing, the next prompt is computed. */

static void
test_decision(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(64, 256, 3, 21 * PAGE);

    s = start_tiers(&f, 64, 256, 1);

    /* the time of a token is not known yet: pages are read, slowly */

    submit_held(s, &c, 21 * PAGE);
    step(s);
    f->now_us += 20 * 1000;
    redis_run(&redis, UINT32_MAX);
    redis.held = 0;
    f->token_us = 10;
    answer(s, &c);
    check(&c, 3, DSA_FINISH_LENGTH);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 20 * PAGE);

    /* 1 ms a page against 64 tokens of 10 us */

    turn(s, &c, 2, 2, 21 * PAGE);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 0);

    /* and with 64 tokens of 30 us */

    f->token_us = 30;

    for (i = 0; i < 20; i++) {
        turn(s, &c, 4, 100 + i, 2 * PAGE);
    }

    turn(s, &c, 3, 3, 21 * PAGE);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 20 * PAGE);

    finish_tiers(s, f);
}


/*
 * The time of reading ends with the last page, not with the long step after
 * which it is collected: reading remains faster than computing.
 */

static void
test_measure_busy(void **state)
{
    fake_t       *f;
    client_t      c, stream;
    uint32_t      i, n;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(64, 256, 2, 21 * PAGE);

    s = start_tiers(&f, 64, 256, 1);

    /*
     * Another request decodes in steps of 100 ms.  A page is worth 640 us,
     * which is measured with prompts that Redis does not have.
     */

    memset(&stream, 0, sizeof(stream));
    stream.seed = 9;
    f->token_us = 10;
    f->base_us = 100 * 1000;
    redis.page_us = 100;
    submit(s, &stream, 3, 9, PAGE, 200, 1);

    while (stream.n < 50) {
        step(s);
    }

    for (i = 1; i <= 22; i++) {
        memset(&c, 0, sizeof(c));
        c.seed = i;
        n = i <= 20 ? 0 : i - 20;
        submit(s, &c, n != 0 ? n : 4, n != 0 ? n : 10 + i, 21 * PAGE, 1, 1);

        while (c.finish == 0) {
            step(s);
        }

        check(&c, 1, DSA_FINISH_LENGTH);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS],
                         n != 0 ? 20 * PAGE : 0);
    }

    run(s);
    check(&stream, 200, DSA_FINISH_LENGTH);
    finish_tiers(s, f);
}


/* The time of an abandoned fetch is measured as well. */

static void
test_measure_abandoned(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      gets;
    dsa_sched_t  *s;

    (void) state;

    fill_redis(64, 256, 2, 21 * PAGE);

    s = start_tiers(&f, 64, 256, 1);
    f->token_us = 10;
    turn(s, &c, 3, 3, 3 * PAGE);
    settle(s);

    /* 4 connections read a page each, in 200 ms */

    redis.held = 1;
    memset(&c, 0, sizeof(c));
    c.seed = 1;
    submit(s, &c, 1, 1, 21 * PAGE, 1, 1);
    step(s);
    redis_run(&redis, 1);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    step(s);
    redis_begin(&redis, 4);
    f->now_us = dsa_sched_due_us(s);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    run(s);
    check(&c, 1, DSA_FINISH_LENGTH);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 0);

    f->now_us += 200 * 1000;
    redis_run(&redis, 4);
    redis.held = 0;
    settle(s);
    gets = redis.gets;
    assert_int_equal(gets, 4);

    turn(s, &c, 2, 2, 21 * PAGE);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 0);
    assert_int_equal(redis.gets, gets);

    settle(s);
    check_free(s);
    finish_tiers(s, f);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(test_redis, setup),
        cmocka_unit_test_setup(test_redis_fails, setup),
        cmocka_unit_test_setup(test_redis_off, setup),
        cmocka_unit_test_setup(test_nodes, setup),
        cmocka_unit_test_setup(test_slow_probe, setup),
        cmocka_unit_test_setup(test_overlap, setup),
        cmocka_unit_test_setup(test_abandon, setup),
        cmocka_unit_test_setup(test_abandon_first, setup),
        cmocka_unit_test_setup(test_decision, setup),
        cmocka_unit_test_setup(test_measure_busy, setup),
        cmocka_unit_test_setup(test_measure_abandoned, setup)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
