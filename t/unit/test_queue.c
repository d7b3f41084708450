
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler's queue under a flood of one tenant, what requests are billed
 * for, and private requests, on a scripted backend (scheduler.h).
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/scheduler.h"


#define FLOOD       1500
#define RUNNING     8
#define QUEUE       1024
#define ROUNDS      20


/* As submit(), but returns 0 when the queue is full. */

static int
try_submit(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text,
    uint32_t n, uint32_t max_tokens, uint32_t weight)
{
    free(c->prompt);
    submit_ids(s, c, ids_of(tenant, text, n), n, max_tokens, weight);

    if (c->seq == NULL) {
        assert_true(errno == EDQUOT || errno == EAGAIN);
        return 0;
    }

    return 1;
}


static client_t *
clients(uint32_t n)
{
    client_t  *c;

    c = calloc(n, sizeof(client_t));
    assert_non_null(c);

    return c;
}


static void
clients_free(client_t *c, uint32_t n)
{
    while (n-- != 0) {
        free(c[n].prompt);
    }

    free(c);
}


/* Batch indices that became free so far, by finish or preemption. */

static uint64_t
indices(dsa_sched_t *s, const client_t *c, uint32_t n)
{
    uint64_t            freed;
    uint32_t            i;
    dsa_sched_stats_t   stats;

    dsa_sched_stats(s, &stats);
    freed = stats.preemptions;

    for (i = 0; i < n; i++) {
        freed += c[i].finish != 0;
    }

    return freed;
}


/*
 * Tenant 0 keeps the queue full.  The other tenants have one request at a time.
 * Each of these is accepted, and starts after at most two batch indices became
 * free, not counting indices that another of these tenants took.
 */

static void
check_flood(uint32_t others)
{
    fake_t             *f;
    client_t           *c, *other;
    uint32_t            i, r, all, taken, starts, dropped, ended[TENANTS];
    uint32_t            started[TENANTS];
    int64_t             at[TENANTS], freed;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    max_waiting = QUEUE;
    c = clients(FLOOD);
    other = clients(TENANTS);
    s = start(&f, 4000, RUNNING, 256);
    memset(ended, 0, sizeof(ended));
    taken = 0;
    starts = 0;
    all = 0;

    for (i = 0; i < FLOOD; i++) {
        taken += (uint32_t) try_submit(s, &c[i], 0, i, 20, 60, 1);
    }

    assert_int_equal(taken, RUNNING + QUEUE);

    for (i = 0; i < 10; i++) {
        step(s);
    }

    for (r = 0; r < ROUNDS * others; /* void */) {

        /* tenant 0 fills the queue again */

        for (i = 0; i < FLOOD; i++) {
            if (c[i].seq == NULL && c[i].finish == 0
                && !try_submit(s, &c[i], 0, i, 20, 60, 1))
            {
                break;
            }
        }

        freed = (int64_t) indices(s, c, FLOOD) + r;

        for (i = 1; i <= others; i++) {
            if (other[i].seq == NULL && ended[i] < ROUNDS) {
                all++;
                assert_int_equal(try_submit(s, &other[i], i, all, 20, 5 + i,
                                            1), 1);
                at[i] = freed - starts;
                started[i] = 0;
            }
        }

        dsa_sched_stats(s, &stats);
        assert_true(stats.waiting + stats.running <= QUEUE + RUNNING);
        freed -= stats.preemptions;
        step(s);
        dsa_sched_stats(s, &stats);
        freed += stats.preemptions;

        for (i = 1; i <= others; i++) {
            if (!started[i] && f->tenant_seqs[i] != 0) {
                if (freed - starts - at[i] > 2) {
                    fail_msg("tenant %u of %u waited for %u indices", i,
                             others, (unsigned) (freed - starts - at[i]));
                }

                started[i] = 1;
                starts++;
            }

            if (other[i].finish != 0) {
                assert_int_equal(other[i].n, 5 + i);
                check_answer(&other[i]);
                other[i].finish = 0;
                ended[i]++;
                r++;
            }
        }
    }

    run(s);
    dropped = 0;

    for (i = 0; i < FLOOD; i++) {
        assert_true(c[i].seq == NULL);
        dropped += c[i].dropped;

        if (c[i].finish != 0) {
            assert_int_equal(c[i].n, 60);
            check_answer(&c[i]);
        }
    }

    assert_true(dropped != 0);
    check_free(s);
    finish(s, f);
    clients_free(c, FLOOD);
    clients_free(other, TENANTS);
    max_waiting = 100000;
}


static void
test_flood(void **state)
{
    check_flood(1);
    check_flood(3);
}


/*
 * A burst is accepted until its tenant has as many waiting requests as the
 * flood; the rest is rejected.
 */

static void
test_burst(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, taken, dropped;
    dsa_sched_t  *s;

    max_waiting = 100;
    c = clients(400);
    s = start(&f, 4000, RUNNING, 256);

    for (i = 0; i < 200; i++) {
        (void) try_submit(s, &c[i], 0, i, 20, 30, 1);
    }

    step(s);

    for (i = 200, taken = 0; i < 400; i++) {
        taken += (uint32_t) try_submit(s, &c[i], 1, i, 20, 30, 1);
        audit(s);
    }

    assert_int_equal(taken, 50);

    /* the newest requests of tenant 0 were dropped */

    for (i = 0, dropped = 0; i < 200; i++) {
        assert_int_equal(c[i].dropped, i >= RUNNING + 50 && i < RUNNING + 100);
        dropped += c[i].dropped;
    }

    assert_int_equal(dropped, 50);

    run(s);
    check_free(s);
    finish(s, f);
    clients_free(c, 400);
    max_waiting = 100000;
}


/* Twenty requests at weight 10 are a smaller share than five at weight 1. */

static void
test_weight(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    max_waiting = 25 - RUNNING;
    c = clients(30);
    s = start(&f, 1000, RUNNING, 256);

    for (i = 0; i < 25; i++) {
        assert_int_equal(try_submit(s, &c[i], i < 20 ? 0 : 1, i, 20, 30,
                                    i < 20 ? 10 : 1), 1);
    }

    for (i = 25; i < 28; i++) {
        assert_int_equal(try_submit(s, &c[i], 2 + i % 3, i, 20, 30, 1), 1);
    }

    for (i = 0; i < 28; i++) {
        assert_int_equal(c[i].dropped, i >= 22 && i < 25);
    }

    /* both have 2 requests per weight now, and so would the new tenant */

    assert_int_equal(try_submit(s, &c[28], 2 + 25 % 3, 28, 20, 30, 1), 0);

    run(s);
    check_free(s);
    finish(s, f);
    clients_free(c, 30);
    max_waiting = 100000;
}


/*
 * The tenant that is refused when the queue is full: one that waits already,
 * and not one that comes to a queue in which no tenant has more than it would
 * have.
 */

static void
test_blame(void **state)
{
    int           code;
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    c = clients(12);
    max_waiting = 6;
    s = start(&f, 100, 1, 64);
    max_waiting = 100000;

    /* one more can run; each request is of a tenant of its own */

    for (i = 0; i < 7; i++) {
        assert_true(try_submit(s, &c[i], i, i, 10, 2, 1));
    }

    assert_false(try_submit(s, &c[9], 7, 9, 10, 2, 1));
    code = errno;
    assert_int_equal(code, EAGAIN);

    assert_false(try_submit(s, &c[9], 6, 9, 10, 2, 1));
    code = errno;
    assert_int_equal(code, EDQUOT);

    run(s);

    /* a tenant that fills it is to blame, and makes room for others */

    for (i = 0; i < 7; i++) {
        assert_true(try_submit(s, &c[i], 1, i, 10, 2, 1));
    }

    assert_false(try_submit(s, &c[9], 1, 9, 10, 2, 1));
    code = errno;
    assert_int_equal(code, EDQUOT);

    assert_true(try_submit(s, &c[10], 2, 10, 10, 2, 1));
    assert_true(c[6].dropped);

    run(s);
    clients_free(c, 12);
    finish(s, f);
}


static void
test_per_tenant(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    max_per_tenant = 5;
    c = clients(40);
    s = start(&f, 1000, RUNNING, 256);

    for (i = 0; i < 20; i++) {
        assert_int_equal(try_submit(s, &c[i], 0, i, 20, 30, 1),
                         i < RUNNING + 5);
    }

    step(s);
    assert_int_equal(try_submit(s, &c[20], 0, 20, 20, 30, 1), 0);

    for (i = 21; i < 30; i++) {
        assert_int_equal(try_submit(s, &c[i], 1, i, 20, 30, 1), i < 26);
    }

    for (i = 0; i < 40; i++) {
        assert_int_equal(c[i].dropped, 0);
    }

    run(s);
    check_free(s);
    finish(s, f);
    clients_free(c, 40);
    max_per_tenant = 100000;
}


/* Preempted sequences are never dropped from the queue. */

static void
test_preempted_stay(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    max_waiting = 2;
    c = clients(9);
    s = start(&f, 1000, 4, 256);

    for (i = 0; i < 4; i++) {
        assert_int_equal(try_submit(s, &c[i], 0, i, 20, 50, 1), 1);
    }

    for (i = 0; i < 5; i++) {
        step(s);
    }

    assert_int_equal(try_submit(s, &c[4], 1, 4, 20, 50, 1), 1);
    assert_int_equal(try_submit(s, &c[5], 1, 5, 20, 50, 1), 1);
    step(s);
    step(s);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, 2);
    assert_int_equal(stats.waiting, 2);

    assert_int_equal(try_submit(s, &c[6], 2, 6, 20, 50, 1), 0);
    run(s);

    for (i = 0; i < 6; i++) {
        assert_int_equal(c[i].finish, DSA_FINISH_LENGTH);
        assert_int_equal(c[i].n, 50);
        check_answer(&c[i]);
    }

    check_free(s);
    finish(s, f);
    clients_free(c, 9);
    max_waiting = 100000;
}


/*
 * A prompt of 1000 tokens, 64 in a step, is cancelled after each number of
 * steps.  The usage has the tokens of steps that ended, and those found in the
 * cache.
 */

static void
check_bill(uint32_t found)
{
    fake_t             *f;
    client_t            c[2];
    uint32_t            i, steps, tokens;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    for (steps = 0; steps < 20; steps++) {
        memset(c, 0, sizeof(c));
        s = start(&f, 100, 4, 64);
        billed_prompt = 0;
        billed_cached = 0;

        if (found != 0) {
            submit(s, &c[0], 0, 1, found, 1, 1);
            run(s);
            assert_int_equal(c[0].usage.prompt_tokens, found);
        }

        submit(s, &c[1], 0, 1, 1000, 100, 1);

        for (i = 0; i < steps; i++) {
            step(s);
        }

        dsa_sched_cancel(s, c[1].seq, DSA_FINISH_CANCELLED);

        tokens = steps >= depth ? (steps - depth + 1) * 64 : 0;
        tokens = steps == 0 ? 0 : found + tokens;

        assert_int_equal(c[1].usage.prompt_tokens,
                         tokens < 1000 ? tokens : 1000);
        assert_int_equal(c[1].usage.cached_tokens, steps == 0 ? 0 : found);

        run(s);
        dsa_sched_stats(s, &stats);
        assert_int_equal(stats.prompt_tokens, billed_prompt);
        assert_int_equal(stats.cached_tokens, billed_cached);

        check_free(s);
        finish(s, f);
        free(c[0].prompt);
        free(c[1].prompt);
    }
}


static void
test_bill(void **state)
{
    check_bill(0);
    check_bill(640);
}


/* Tokens that are computed again after a preemption are counted once. */

static void
test_bill_preempted(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = clients(4);
    s = start(&f, 100, 2, 256);
    billed_prompt = 0;
    billed_cached = 0;

    submit(s, &c[0], 0, 0, 100, 60, 1);
    submit(s, &c[1], 0, 1, 100, 60, 1);

    for (i = 0; i < 5; i++) {
        step(s);
    }

    submit(s, &c[2], 1, 2, 100, 200, 1);

    for (i = 0; i < 5; i++) {
        step(s);
    }

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, 1);
    assert_int_equal(stats.waiting, 1);
    assert_int_equal(stats.prompt_tokens, 300);

    /* the preempted sequence, which waits to be admitted again */

    dsa_sched_cancel(s, c[1].seq, DSA_FINISH_CANCELLED);
    assert_int_equal(c[1].usage.prompt_tokens, 100);
    assert_int_equal(c[1].usage.cached_tokens, 0);

    submit(s, &c[3], 1, 3, 100, 200, 1);
    run(s);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.prompt_tokens, 400);
    assert_int_equal(billed_prompt, 400);
    assert_int_equal(stats.cached_tokens, billed_cached);

    check_free(s);
    finish(s, f);
    clients_free(c, 4);
}


/* A private request finds no pages of others, and others find none of it. */

static void
test_private(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    static const struct {
        uint32_t  private;
        uint32_t  cached;
    } order[] = {
        { 1, 0 }, { 1, 0 }, { 0, 0 }, { 0, 960 }, { 1, 0 }, { 0, 960 }
    };

    c = clients(6);
    s = start(&f, 1000, 8, 512);

    for (i = 0; i < 6; i++) {
        c[i].private = order[i].private;
        submit(s, &c[i], 0, 5, 1000, 3, 1);
        run(s);
        check_answer(&c[i]);
        assert_int_equal(c[i].usage.cached_tokens, order[i].cached);
    }

    /* the same while all of them run at once */

    for (i = 0; i < 6; i++) {
        free(c[i].prompt);
        c[i].private = 1;
        submit(s, &c[i], 0, 5, 1000, 30, 1);
        step(s);
    }

    run(s);

    for (i = 0; i < 6; i++) {
        check_answer(&c[i]);
        assert_int_equal(c[i].usage.cached_tokens, 0);
    }

    check_free(s);
    finish(s, f);
    clients_free(c, 6);
}


/* Of two private requests, one is preempted; it finds its own pages again. */

static void
test_private_preempted(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = clients(3);
    s = start(&f, 100, 2, 512);
    c[0].private = 1;
    c[1].private = 1;

    submit(s, &c[0], 0, 0, 200, 40, 1);
    submit(s, &c[1], 0, 0, 200, 40, 1);

    for (i = 0; i < 5; i++) {
        step(s);
    }

    submit(s, &c[2], 1, 2, 20, 5, 1);
    run(s);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, 1);

    /*
     * three pages of the prompt were full and are found: 8 tokens of the
     * prompt are computed again, and those of the answer
     */

    assert_true(f->tenant_tokens[0] < 2 * (200 + 40) + 64);

    for (i = 0; i < 3; i++) {
        check_answer(&c[i]);
        assert_int_equal(c[i].usage.cached_tokens, 0);
    }

    check_free(s);
    finish(s, f);
    clients_free(c, 3);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_weight),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_per_tenant),
        cmocka_unit_test(test_preempted_stay),
        cmocka_unit_test(test_bill),
        cmocka_unit_test(test_bill_preempted),
        cmocka_unit_test(test_private),
        cmocka_unit_test(test_private_preempted)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
