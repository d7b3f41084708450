
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler on a scripted backend with several ranks (placement.h): what
 * the prompts and drafts of a step get of each rank, and what tenants get.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/placement.h"


/*
 * The prompts of one tenant are computed on both ranks at once, with equal
 * numbers of tokens; those of one rank one after the other.
 */

static void
check_prefill_shared(uint32_t of_rank, uint32_t budget, uint32_t each,
    uint32_t steps)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(4);
    rank_tokens = of_rank;
    s = start_ranks(&f, 2, 400, 8, budget);
    rank_tokens = UINT32_MAX;

    for (i = 0; i < 4; i++) {
        submit(s, &c[i], 0, i, each * steps, 10, 1);
    }

    for (i = 0; i < steps; i++) {
        step(s);
        assert_int_equal(f->rank_tokens[0], each);
        assert_int_equal(f->rank_tokens[1], each);
        assert_int_equal(f->n_seqs, 2);
        assert_int_equal(c[2].n, 0);
    }

    for (i = 0; i < steps; i++) {
        step(s);
        assert_in_range(f->rank_tokens[0], each - 2, each + 1);
        assert_in_range(f->rank_tokens[1], each - 2, each + 1);
    }

    run(s);

    for (i = 0; i < 4; i++) {
        check(&c[i], 10, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_prefill_shared(void **state)
{
    check_prefill_shared(300, 1000, 300, 5);
    check_prefill_shared(UINT32_MAX, 1024, 512, 3);
}


/*
 * A prompt whose rank has no room in a step is passed over, and goes on in the
 * next one before a later prompt of the same rank.
 */

static void
test_passed_over(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(4);
    rank_tokens = 128;
    s = start_ranks(&f, 2, 400, 8, 256);
    rank_tokens = UINT32_MAX;

    /* two tenants, and a prompt of each on each rank */

    for (i = 0; i < 4; i++) {
        submit(s, &c[i], i % 2, i, 1024, 4, 1);
    }

    for (i = 0; i < 16; i++) {
        step(s);
        assert_int_equal(f->n_tokens, 256);
        assert_true(c[0].n + c[1].n + c[2].n + c[3].n == 0 || i >= 7);
    }

    /* both had half of the tokens */

    assert_in_range(f->tenant_tokens[0], 2048 - 256, 2048 + 256);

    run(s);

    for (i = 0; i < 4; i++) {
        check(&c[i], 4, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/* Drafts only use what a rank has left beside a token of each sequence. */

static void
test_drafts(void **state)
{
    fake_t       *f;
    uint32_t      i, most;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(8);
    rank_tokens = 6;
    max_outputs = 4;
    s = start_ranks(&f, 2, 100, 4, 12);
    rank_tokens = UINT32_MAX;
    max_outputs = 1;
    most = 0;

    for (i = 0; i < 8; i++) {
        c[i].draft_right = 3;
        submit(s, &c[i], i, i, 10, 20 + 20 * (i % 4), 1);
    }

    while (dsa_sched_busy(s)) {
        step(s);

        if (stats_of(s).running == 8 && f->rank_tokens[0] > most) {
            most = f->rank_tokens[0];
        }
    }

    assert_int_equal(most, 6);
    assert_true(f->drafts > 100);

    for (i = 0; i < 8; i++) {
        check(&c[i], 20 + 20 * (i % 4), DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * token_target limits the prefill tokens of each rank: 400 tokens of 0.1 ms fit
 * 50 ms beside the decodes, on one rank, or on both.
 */

static void
check_pace(uint32_t prompts)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    uint64_t      from;
    dsa_sched_t  *s;

    c = clients(8);
    token_target_ms = 50;
    s = start_ranks(&f, 2, 1000, 8, 2048);
    token_target_ms = 0;
    f->base_us = 10000;
    f->token_us = 100;

    for (i = 0; i < 4; i++) {
        submit(s, &c[i], i, i, 20, 200, 1);
    }

    for (i = 0; i < 10; i++) {
        step(s);
    }

    assert_int_equal(f->rank_seqs[0], 2);
    assert_int_equal(f->rank_seqs[1], 2);

    /* a short prompt beside the long one, which is then not split */

    for (i = 0; i < prompts; i++) {
        submit(s, &c[4 + i], 4 + i, i, 20000, 3, 1);
    }

    for (i = prompts; i < 2; i++) {
        submit(s, &c[4 + i], 4 + i, i, 20, 3, 1);
    }

    for (i = 0; i < 40; i++) {
        from = f->now_us;
        step(s);

        if (i > 10) {
            assert_in_range(f->now_us - from, 45000, 55000);
            assert_in_range(f->n_tokens, prompts * 350, prompts * 450);
        }
    }

    f->base_us = 0;
    f->token_us = 0;
    run(s);

    for (i = 0; i < 6; i++) {
        check(&c[i], i < 4 ? 200 : 3, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_pace(void **state)
{
    check_pace(1);
    check_pace(2);
}


/*
 * When the pages of a rank run out, only sequences with pages on it are
 * preempted, although another tenant has more pages on the other rank.
 */

static void
test_preempted_there(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(3);
    s = start_ranks(&f, 2, 20, 4, 2048);

    /* rank 0: 15 pages of tenant 0; rank 1: two tenants that will need 22 */

    submit(s, &c[0], 0, 1, 900, 300, 1);
    step(s);
    submit(s, &c[1], 1, 2, 500, 200, 1);
    step(s);
    submit(s, &c[2], 2, 3, 560, 140, 1);
    step(s);

    assert_int_equal(f->tenant_rank[0], 0);
    assert_int_equal(f->tenant_rank[1], 1);
    assert_int_equal(f->tenant_rank[2], 1);

    while (stats_of(s).preemptions == 0) {
        assert_true(dsa_sched_busy(s));
        step(s);
    }

    step(s);
    assert_int_equal(f->tenant_seqs[0], 1);
    assert_int_equal(f->tenant_seqs[1] + f->tenant_seqs[2], 1);

    run(s);
    assert_int_equal(stats_of(s).preemptions, 1);

    for (i = 0; i < 3; i++) {
        check(&c[i], i == 0 ? 300 : i == 1 ? 200 : 140, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * One tenant has taken the batch indices of all ranks.  Another tenant comes,
 * gets half of them at once, and keeps them.
 */

static void
test_latecomer(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    c = clients(24);
    s = start_ranks(&f, 2, 500, 4, 256);

    for (i = 0; i < 24; i++) {
        if (i == 12) {
            while (f->n_seqs != 8) {
                step(s);
            }
        }

        submit(s, &c[i], i / 12, i, 20, 1000, 1);
    }

    for (i = 0; i < 10; i++) {
        step(s);
    }

    for (i = 0; i < 300; i++) {
        step(s);
        assert_int_equal(f->tenant_seqs[0], 4);
        assert_int_equal(f->tenant_seqs[1], 4);
        assert_int_equal(f->rank_seqs[0], 4);
    }

    assert_int_equal(stats_of(s).preemptions, 4);
    run(s);

    for (i = 0; i < 24; i++) {
        check(&c[i], 1000, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * All batch indices are taken: those of rank 0 by four tenants, and those of
 * rank 1 by one.  Another tenant gets one of the indices of rank 1, because the
 * others would have smaller shares than it has.
 */

static void
test_reclaimed_there(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(9);
    s = start_ranks(&f, 2, 100, 4, 1024);

    for (i = 0; i < 8; i++) {

        /* the load of rank 1 is higher with each of its sequences */

        submit(s, &c[i], i % 2 == 0 ? i / 2 + 1 : 0, i,
               i % 2 == 0 ? 50 : 200, 60, 1);
        step(s);
        assert_int_equal(f->tenant_rank[i % 2 == 0 ? i / 2 + 1 : 0], i % 2);
    }

    step(s);
    assert_int_equal(f->rank_seqs[0], 4);
    assert_int_equal(f->rank_seqs[1], 4);
    assert_int_equal(f->tenant_seqs[0], 4);

    submit(s, &c[8], 7, 8, 50, 60, 1);
    step(s);
    step(s);
    assert_int_equal(f->tenant_seqs[0], 3);
    assert_int_equal(f->tenant_seqs[7], 1);
    assert_int_equal(f->tenant_rank[7], 1);
    assert_int_equal(f->rank_seqs[0], 4);
    assert_int_equal(stats_of(s).preemptions, 1);

    run(s);

    for (i = 0; i < 9; i++) {
        check(&c[i], 60, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * A request needs most pages of a rank, and both ranks are used by small ones.
 * It is not skipped forever; and while pages of one rank are reserved for it,
 * requests are still admitted to the other rank.
 */

static void
test_patience(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, steps, least;
    dsa_sched_t  *s;

    c = clients(33);
    s = start_ranks(&f, 2, 40, 16, 512);
    least = UINT32_MAX;

    for (steps = 0; c[0].finish == 0; steps++) {
        assert_true(steps < 2000);

        for (i = 1; i < 33; i++) {
            if (c[i].seq == NULL) {
                free(c[i].prompt);
                submit(s, &c[i], i % 7 + 1, steps * 33 + i, 150, 40 + i, 1);
            }
        }

        if (steps == 30) {
            submit(s, &c[0], 0, 999, 37 * 64, 100, 1);
        }

        step(s);

        if (steps > 30 && c[0].n == 0) {
            least = stats_of(s).running < least ? stats_of(s).running : least;
        }
    }

    /* one rank has room for 9 of the small requests */

    assert_in_range(least, 8, 10);
    check(&c[0], 100, DSA_FINISH_LENGTH);

    for (i = 1; i < 33; i++) {
        free(c[i].prompt);
    }

    finish(s, f);
    free(c);
}


/*
 * Tenants that always have requests share the tokens of all ranks by weight,
 * also when a rank can have half of them at most.
 */

static void
check_fairness(uint32_t n_ranks, uint32_t running, uint32_t of_rank,
    uint32_t weight, uint32_t len_a, uint32_t len_b)
{
    double        share[2], tolerance;
    fake_t       *f;
    uint32_t      i, n, t, steps;
    client_t     *c;
    dsa_sched_t  *s;

    const uint32_t  answer = 20;

    n = 64;
    c = clients(n);
    rank_tokens = of_rank;
    s = start_ranks(&f, n_ranks, 2000, running, 64);
    rank_tokens = UINT32_MAX;

    for (steps = 0; steps < 4000; steps++) {
        for (i = 0; i < n; i++) {
            if (c[i].seq == NULL) {
                free(c[i].prompt);
                t = i % 2;
                submit(s, &c[i], t, steps * n + i, t == 0 ? len_a : len_b,
                       answer, t == 0 ? weight : 1);
            }
        }

        if (steps == 100) {
            memset(f->tenant_tokens, 0, sizeof(f->tenant_tokens));
        }

        step(s);
    }

    share[0] = (double) f->tenant_tokens[0] / weight;
    share[1] = (double) f->tenant_tokens[1];

    tolerance = (double) (DSA_SCHED_QUANTUM
                          + n_ranks * running * (answer + len_a)) / weight
                + (double) (DSA_SCHED_QUANTUM
                            + n_ranks * running * (answer + len_b));

    if (share[0] - share[1] > tolerance || share[1] - share[0] > tolerance) {
        fail_msg("%u ranks: weights %u and 1 had %llu and %llu tokens",
                 n_ranks, weight, (unsigned long long) f->tenant_tokens[0],
                 (unsigned long long) f->tenant_tokens[1]);
    }

    for (i = 0; i < n; i++) {
        free(c[i].prompt);
    }

    finish(s, f);
    free(c);
}


static void
test_fairness(void **state)
{
    /* batch indices are scarce, and tokens */

    check_fairness(2, 4, UINT32_MAX, 1, 100, 100);
    check_fairness(2, 4, UINT32_MAX, 3, 100, 100);
    check_fairness(4, 2, 20, 2, 100, 100);

    /* only tokens are scarce */

    check_fairness(2, 16, UINT32_MAX, 1, 300, 30);
    check_fairness(2, 16, 32, 2, 300, 30);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_prefill_shared),
        cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_preempted_there),
        cmocka_unit_test(test_latecomer),
        cmocka_unit_test(test_reclaimed_there),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_fairness)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
