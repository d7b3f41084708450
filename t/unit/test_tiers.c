
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler with slower tiers: pages that leave the ranks come back from
 * host memory or Redis and give the same answer, also after cancellations,
 * evictions and failures.  test_tiers_redis.c has the tests of Redis alone.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "tiers.h"


/*
 * 8 pages on the rank: a second prompt overwrites the first, which is then
 * found in host memory but for its last page, and not computed again.
 */

static void
test_host(void **state)
{
    fake_t       *f;
    client_t      c;
    uint64_t      tokens;
    dsa_sched_t  *s;

    (void) state;

    for (depth = 1; depth <= 2; depth++) {
        s = start_tiers(&f, 8, 64, 0);
        assert_int_equal(pinned, 64 * PAGE_BYTES);

        turn(s, &c, 1, 1, 7 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 0);
        turn(s, &c, 1, 2, 7 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 0);

        tokens = f->all_tokens;
        turn(s, &c, 1, 1, 7 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 6 * PAGE);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_HOST], 6 * PAGE);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 0);
        assert_int_equal(f->all_tokens - tokens, PAGE + 2);
        assert_int_equal(stats_of(s).tier[DSA_TIER_HOST].hit_tokens, 6 * PAGE);
        assert_int_equal(stats_of(s).tier[DSA_TIER_HOST].read_pages, 6);

        /* now the rank has it */

        turn(s, &c, 1, 1, 7 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 6 * PAGE);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_HOST], 0);

        settle(s);
        check_free(s);
        finish_tiers(s, f);
    }
}


/*
 * Two hosts with a rank each: the pages of a rank are in the memory of its own
 * host, and a prefix that only the other host has is found by placing its
 * request there.  If that host has lost a page, the prompt is computed.
 */

static void
test_two_hosts(void **state)
{
    fake_t       *f;
    client_t      c, other;
    uint32_t      i, lost;
    dsa_sched_t  *s;

    (void) state;

    for (lost = 0; lost <= 4; lost += 4) {
        ranks = 2;
        hosts = 2;
        s = start_tiers(&f, 8, 64, 0);

        assert_int_equal(host.slab[1].host, 1);

        /* rank 0 is busy with the first one of two, so that rank 1 overwrites
           the pages of text 1 by those of text 2 */

        for (i = 1; i <= 2; i++) {
            submit_turn(s, &other, 3, 10 + i, 7 * PAGE);
            submit_turn(s, &c, i, i, 7 * PAGE);
            run(s);
            check(&other, 3, DSA_FINISH_LENGTH);
            check(&c, 3, DSA_FINISH_LENGTH);
            assert_int_equal(f->tenant_rank[i], 1);
            assert_int_equal(c.usage.cached_tokens, 0);
        }

        lose = lost != 0;
        submit_turn(s, &c, 1, 1, 7 * PAGE);

        /* page 0 of several in a call is not there, or all are */

        run(s);
        check(&c, 3, DSA_FINISH_LENGTH);
        assert_int_equal(f->tenant_rank[1], 1);
        assert_int_equal(lose, 0);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_HOST],
                         lost ? 0 : 6 * PAGE);
        assert_int_equal(stats_of(s).tier[DSA_TIER_HOST].invalid, lost != 0);

        /* it was computed, and is on the rank again */

        turn(s, &c, 1, 1, 7 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 6 * PAGE);

        settle(s);
        check_free(s);
        finish_tiers(s, f);
    }
}


/* Half of the prefix is on the rank, half in host memory. */

static void
test_half(void **state)
{
    fake_t       *f;
    client_t      c;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 16, 64, 0);

    turn(s, &c, 1, 1, 9 * PAGE + 1);
    turn(s, &c, 1, 2, 11 * PAGE);
    turn(s, &c, 1, 1, 9 * PAGE + 1);

    assert_int_equal(c.usage.cached_tokens, 9 * PAGE);
    assert_in_range(c.usage.tier_tokens[DSA_TIER_HOST], PAGE, 8 * PAGE);

    finish_tiers(s, f);
}


/* No tenant finds the pages of another one, nor those of private requests. */

static void
test_isolation(void **state)
{
    fake_t       *f;
    client_t      c;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 8, 64, 1);

    turn(s, &c, 1, 1, 7 * PAGE);
    turn(s, &c, 1, 2, 7 * PAGE);
    settle(s);
    turn(s, &c, 2, 1, 7 * PAGE);
    assert_int_equal(c.usage.cached_tokens, 0);
    settle(s);
    assert_int_equal(redis.n_pages, 21);

    memset(&c, 0, sizeof(c));
    c.seed = 3;
    c.private = 1;
    submit(s, &c, 1, 3, 7 * PAGE, 3, 1);
    run(s);
    check(&c, 3, DSA_FINISH_LENGTH);
    settle(s);
    assert_int_equal(redis.n_pages, 21);

    turn(s, &c, 1, 3, 7 * PAGE);
    assert_int_equal(c.usage.cached_tokens, 0);

    finish_tiers(s, f);
}


/* Pages of private requests take no room from those that can be found. */

static void
test_private(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 8, 8, 0);
    turn(s, &c, 1, 1, 7 * PAGE);

    for (i = 2; i < 6; i++) {
        memset(&c, 0, sizeof(c));
        c.seed = i;
        c.private = 1;
        submit(s, &c, 1, i, 7 * PAGE, 3, 1);
        run(s);
        check(&c, 3, DSA_FINISH_LENGTH);
        check_free(s);
    }

    turn(s, &c, 1, 1, 7 * PAGE);
    assert_int_equal(c.usage.cached_tokens, 6 * PAGE);

    check_free(s);
    finish_tiers(s, f);
}


/* A client leaves at each moment. */

static void
test_cancel(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    for (i = 0; i < 6; i++) {
        redis_reset();
        fill_redis(32, 64, 1, 12 * PAGE);

        s = start_tiers(&f, 32, 64, 1);
        redis.held = 1;
        moves_wait = 1;
        submit_turn(s, &c, 1, 1, 12 * PAGE);

        if (i >= 1) {                   /* it is being probed */
            step(s);
        }

        if (i >= 2) {                   /* Redis has reported its pages */
            redis_run(&redis, 1);
            assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
        }

        if (i >= 3) {                   /* it reads */
            step(s);
        }

        if (i >= 4) {                   /* pages move */
            redis_run(&redis, 5);
            assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
            audit(s);
        }

        if (i >= 5) {
            way[0][DSA_MOVE_IN].may_end = 1;
            assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
            audit(s);
        }

        dsa_sched_cancel(s, c.seq, DSA_FINISH_CANCELLED);
        audit(s);
        assert_int_equal(c.finish, DSA_FINISH_CANCELLED);
        free(c.prompt);

        redis.held = 0;
        moves_wait = 0;
        settle(s);
        check_free(s);

        /* pages that were read are not read again */

        turn(s, &c, 1, 1, 12 * PAGE);
        assert_int_equal(c.usage.cached_tokens, 11 * PAGE);
        check_free(s);
        finish_tiers(s, f);
    }
}


/* A full host memory keeps what the rank overwrites, by recent use. */

static void
test_eviction(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    /*
     * 48 pages on the rank, of which up to a quarter is in host memory, too,
     * and 96 in host memory: 13 prompts of 10 pages.
     */

    s = start_tiers(&f, 48, 96, 0);

    for (i = 0; i < 20; i++) {
        turn(s, &c, 1, i, 10 * PAGE + 1);
    }

    assert_int_equal(stats_of(s).tier[DSA_TIER_HOST].used, 96);

    for (i = 19; i >= 8; i--) {
        turn(s, &c, 1, i, 10 * PAGE + 1);
        assert_int_equal(c.usage.cached_tokens, 10 * PAGE);
    }

    turn(s, &c, 1, 0, 10 * PAGE + 1);
    assert_int_equal(c.usage.cached_tokens, 0);

    finish_tiers(s, f);
}


/*
 * More pages than can be saved at once will be overwritten soon, and host
 * memory is slow.  All of them are saved when their time has come.
 */

static void
test_slow_saves(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 2000, 6000, 0);
    moves_wait = 1;

    for (i = 0; i < 12; i++) {
        turn(s, &c, 1, i, 450 * PAGE + 1);
    }

    assert_int_equal(stats_of(s).tier[DSA_TIER_GPU].lost, 0);

    for (i = 0; i < 12; i++) {
        turn(s, &c, 1, i, 450 * PAGE + 1);
        assert_int_equal(c.usage.cached_tokens, 450 * PAGE);
    }

    settle(s);
    check_free(s);
    finish_tiers(s, f);
}


/*
 * Pages that are being saved are not free for a moment.  No sequence is
 * preempted for that: there are as many preemptions as without host memory.
 * The sequence a needs a page when c, which has the last 3 pages, ends.
 */

static uint32_t
crowd(uint32_t tokens, uint32_t host_pages)
{
    fake_t       *f;
    client_t      a, c;
    uint32_t      n;
    dsa_sched_t  *s;

    s = start_tiers(&f, 12, host_pages, 0);
    turn(s, &c, 3, 9, 11 * PAGE);
    settle(s);

    memset(&a, 0, sizeof(a));
    memset(&c, 0, sizeof(c));
    a.seed = 1;
    c.seed = 2;
    submit(s, &a, 1, 1, 8 * PAGE, 100, 1);
    submit(s, &c, 2, 2, 2 * PAGE, tokens, 1);
    run(s);
    check(&a, 100, DSA_FINISH_LENGTH);
    check(&c, tokens, DSA_FINISH_LENGTH);
    n = (uint32_t) stats_of(s).preemptions;
    check_free(s);
    finish_tiers(s, f);

    return n;
}


static void
test_crowd(void **state)
{
    uint32_t  tokens;

    (void) state;

    for (tokens = 60; tokens < 70; tokens++) {
        assert_int_equal(crowd(tokens, 4), crowd(tokens, 0));
    }
}


/* If Redis is full or read-only, pages are not stored; all else works. */

static void
test_redis_full(void **state)
{
    fake_t       *f;
    client_t      c;
    dsa_sched_t  *s;

    (void) state;

    redis.limit = 4;
    s = start_tiers(&f, 16, 64, 1);
    turn(s, &c, 1, 1, 10 * PAGE);
    settle(s);

    assert_int_equal(redis.n_pages, 4);
    assert_int_equal(stats_of(s).tier[DSA_TIER_REDIS].lost, 6);
    finish_tiers(s, f);
}


/*
 * The split of a prompt ends while its prefix is loaded: what still arrives
 * moves to its own rank only, as the pages of the other one are in use by
 * another request.
 */

static void
test_unsplit(void **state)
{
    fake_t       *f;
    client_t      c, other;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    for (i = 0; i <= 6; i += 3) {
        redis_reset();
        ranks = 2;
        fill_redis(100, 300, 1, 10 * PAGE + 1);

        s = start_tiers(&f, 100, 300, 1);
        moves_wait = 1;
        submit_held(s, &c, 80 * PAGE);
        step(s);
        assert_int_equal(stats_of(s).split_prompts, 1);
        assert_int_equal(stats_of(s).pages_used, 160);

        /* some pages are on their way to both ranks already */

        redis_run(&redis, i);
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);

        /* a private request does not wait for Redis */

        memset(&other, 0, sizeof(other));
        other.seed = 2;
        other.private = 1;
        submit(s, &other, 2, 2, 85 * PAGE, 20, 1);
        step(s);
        assert_int_equal(stats_of(s).running, 2);
        assert_int_equal(f->tenant_rank[2], 1);

        redis_run(&redis, 10);
        assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
        step(s);
        moves_wait = 0;
        redis.held = 0;
        answer(s, &other);
        answer(s, &c);
        check(&other, 20, DSA_FINISH_LENGTH);
        check(&c, 3, DSA_FINISH_LENGTH);
        assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 10 * PAGE);

        settle(s);
        check_free(s);
        finish_tiers(s, f);
    }
}


/*
 * A tenant whose prefix was loaded for a long time has no claim on the prompt
 * tokens that others had meanwhile: it gets a third of the steps from then on.
 */

static void
test_share_after_load(void **state)
{
    fake_t       *f;
    client_t      c, a, b;
    uint32_t      i;
    dsa_sched_t  *s;

    (void) state;

    s = start_tiers(&f, 1500, 2000, 1);
    turn(s, &c, 3, 3, 5 * PAGE + 1);
    settle(s);
    finish_tiers(s, f);

    s = start_tiers(&f, 1500, 2000, 1);
    redis.held = 1;
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    memset(&c, 0, sizeof(c));
    a.seed = 1;
    b.seed = 2;
    c.seed = 3;
    submit(s, &a, 1, 1, 600 * PAGE, 3, 1);
    submit(s, &b, 2, 2, 600 * PAGE, 3, 1);
    submit(s, &c, 3, 3, 200 * PAGE, 3, 1);
    redis_run(&redis, 3);

    for (i = 0; i < 20; i++) {
        step(s);
    }

    assert_int_equal(f->tenant_tokens[3], 0);
    assert_int_equal(stats_of(s).running, 3);

    redis_run(&redis, 5);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);
    assert_int_equal(dsa_sched_poll(s, NULL), DSA_OK);

    for (i = 0; i < 6; i++) {
        step(s);
    }

    assert_in_range(f->tenant_tokens[3], 6 * 1024 / 3 - 512,
                    6 * 1024 / 3 + 512);

    redis.held = 0;
    settle(s);
    check(&a, 3, DSA_FINISH_LENGTH);
    check(&b, 3, DSA_FINISH_LENGTH);
    check(&c, 3, DSA_FINISH_LENGTH);
    assert_int_equal(c.usage.tier_tokens[DSA_TIER_REDIS], 5 * PAGE);
    finish_tiers(s, f);
}


/* The backend fails when it moves a page, and everything can be freed. */

static void
test_backend_fails(void **state)
{
    int           rc;
    fake_t       *f;
    client_t      c;
    uint32_t      i, n;
    dsa_err_t     err;
    dsa_sched_t  *s;

    (void) state;

    for (i = 0; i < 2; i++) {
        s = start_tiers(&f, 8, 64, 0);
        turn(s, &c, 1, 1, 7 * PAGE);
        turn(s, &c, 1, 2, 7 * PAGE);
        moves_wait = i;

        submit_turn(s, &c, 1, 1, 7 * PAGE);
        move_fails = 1;
        rc = DSA_OK;

        for (n = 0; rc == DSA_OK; n++) {
            assert_true(n < 100);
            rc = dsa_sched_step(s, &err);
        }

        assert_string_equal(err.text, "it fails");
        move_fails = 0;
        finish_tiers(s, f);
        free(c.prompt);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(test_host, setup),
        cmocka_unit_test_setup(test_two_hosts, setup),
        cmocka_unit_test_setup(test_half, setup),
        cmocka_unit_test_setup(test_isolation, setup),
        cmocka_unit_test_setup(test_private, setup),
        cmocka_unit_test_setup(test_cancel, setup),
        cmocka_unit_test_setup(test_eviction, setup),
        cmocka_unit_test_setup(test_slow_saves, setup),
        cmocka_unit_test_setup(test_crowd, setup),
        cmocka_unit_test_setup(test_redis_full, setup),
        cmocka_unit_test_setup(test_unsplit, setup),
        cmocka_unit_test_setup(test_share_after_load, setup),
        cmocka_unit_test_setup(test_backend_fails, setup)
    };

    /* a page that another host has lost is a warning */

    dsa_log_level(DSA_LOG_ERR);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
