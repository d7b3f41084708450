
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler on a scripted backend with several ranks (placement.h): where
 * sequences run, and which pages are copied.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/placement.h"


/* All batch indices of all ranks are used at the same time. */

static void
check_indices(uint32_t n_ranks, uint32_t running)
{
    fake_t       *f;
    uint32_t      i, n;
    client_t     *c;
    dsa_sched_t  *s;

    n = n_ranks * running;
    c = clients(2 * n);
    s = start_ranks(&f, n_ranks, 100, running, 4096);

    for (i = 0; i < 2 * n; i++) {
        submit(s, &c[i], i % TENANTS, i, 100, 50, 1);
    }

    step(s);
    step(s);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(f->rank_seqs[i], running);
    }

    assert_int_equal(stats_of(s).running, n);
    assert_int_equal(stats_of(s).waiting, n);
    assert_int_equal(stats_of(s).ranks, n_ranks);
    assert_int_equal(stats_of(s).rank_pages, 100);
    assert_int_equal(stats_of(s).pages, n_ranks * 100);
    assert_int_equal(stats_of(s).rank_used[n_ranks - 1], running * 2);

    run(s);

    for (i = 0; i < 2 * n; i++) {
        check(&c[i], 50, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_indices(void **state)
{
    check_indices(2, 3);
    check_indices(4, 5);
}


/* A request runs where the longest prefix is, while all ranks are idle. */

static void
test_longest_prefix(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(8);
    s = start_ranks(&f, 4, 200, 4, 4096);

    /* one after the other on ranks 0 to 3, because these are idle */

    for (i = 0; i < 4; i++) {
        submit(s, &c[i], i, i, 640, 40, 1);
        step(s);
        step(s);
        assert_int_equal(f->tenant_rank[i], i);
    }

    run(s);

    for (i = 4; i < 8; i++) {
        submit(s, &c[i], 7 - i, 7 - i, 700, 5, 1);
        step(s);
        assert_int_equal(f->tenant_rank[7 - i], 7 - i);
        run(s);
        assert_int_equal(c[i].usage.cached_tokens, 640);
    }

    assert_int_equal(f->copied, 0);

    for (i = 0; i < 4; i++) {
        check(&c[i], 40, DSA_FINISH_LENGTH);
        check(&c[4 + i], 5, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * n requests of one prefix, 960 tokens, come at once and have `rest` tokens
 * each after it.  They join the rank of the prefix until its load exceeds that
 * of the idle rank by 1024; then the prefix is copied.
 */

static void
check_bound(uint32_t n, uint32_t rest, uint32_t on_first)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    uint64_t      before;
    dsa_sched_t  *s;

    c = clients(n + 1);
    s = start_ranks(&f, 2, 4000, 8, 4096);

    submit(s, &c[0], 0, 1, 990, 3, 1);
    run(s);
    assert_int_equal(f->tenant_rank[0], 0);

    before = f->all_tokens;

    for (i = 1; i <= n; i++) {
        submit_user(s, &c[i], 0, 1, 960, i, 960 + rest, 20);
    }

    step(s);

    assert_int_equal(f->rank_seqs[0], on_first);
    assert_int_equal(f->rank_seqs[1], n - on_first);

    /* the pages of the prefix are copied, and the rest is computed of each */

    assert_int_equal(f->copied, 15);
    assert_int_equal(stats_of(s).copied_tokens, 15 * 64);
    assert_int_equal(f->all_tokens - before, n * rest);

    run(s);
    check(&c[0], 3, DSA_FINISH_LENGTH);

    for (i = 1; i <= n; i++) {
        assert_int_equal(c[i].usage.cached_tokens, 15 * 64);
        check(&c[i], 20, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_bound(void **state)
{
    /* three load the rank with 3 * (256 + 40), and four with 1184 */

    check_bound(5, 40, 4);

    /* one with 256 + 400, and two with 1312 */

    check_bound(3, 400, 2);
}


/*
 * Pages in use count as load, too: all of them as 4096 tokens.  The request's
 * prefix of 128 tokens is on rank 0, where another sequence runs.
 */

static void
check_bound_pages(uint32_t n_tokens, uint32_t rank)
{
    fake_t       *f;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(3);
    s = start_ranks(&f, 2, 100, 8, 4096);

    submit(s, &c[0], 1, 1, 128, 3, 1);
    run(s);
    check(&c[0], 3, DSA_FINISH_LENGTH);

    submit(s, &c[1], 0, 0, n_tokens, 20, 1);
    step(s);
    step(s);
    assert_int_equal(f->tenant_rank[0], 0);

    submit(s, &c[2], 1, 1, 200, 3, 1);
    step(s);
    assert_int_equal(f->tenant_rank[1], rank);
    assert_int_equal(f->copied, rank == 0 ? 0 : 2);

    run(s);
    assert_int_equal(c[2].usage.cached_tokens, 128);
    check(&c[1], 20, DSA_FINISH_LENGTH);
    check(&c[2], 3, DSA_FINISH_LENGTH);

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_bound_pages(void **state)
{
    /* 256 + 1 + 4096 * pages / 100, compared with 1024 */

    check_bound_pages(18 * 64 - 10, 0);
    check_bound_pages(19 * 64 - 10, 1);
}


/*
 * Both ranks have fewer free pages than a request needs, but on rank 0 most of
 * them are in use by a sequence with the same prefix.
 */

static void
test_shared(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(3);
    s = start_ranks(&f, 2, 20, 4, 4096);

    submit(s, &c[0], 0, 1, 900, 50, 1);
    step(s);
    submit(s, &c[1], 1, 2, 500, 50, 1);
    step(s);
    submit(s, &c[2], 0, 1, 900, 50, 1);
    step(s);

    assert_int_equal(f->rank_seqs[0], 2);
    assert_int_equal(f->rank_seqs[1], 1);
    assert_int_equal(stats_of(s).rank_used[0], 14 + 2);

    run(s);
    assert_int_equal(f->copied, 0);
    assert_int_equal(stats_of(s).preemptions, 0);

    for (i = 0; i < 3; i++) {
        check(&c[i], 50, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * One tenant's system prompt is computed once, and its users run on all ranks.
 * at_once: all users come while the system prompt is not computed yet.
 */

static void
check_system_prompt(int at_once)
{
    fake_t       *f;
    uint32_t      i, n, most, least;
    client_t     *c;
    uint64_t      computed;
    dsa_sched_t  *s;

    const uint32_t  system = 2048;

    n = 33;
    c = clients(n);
    s = start_ranks(&f, 4, 400, 16, 1024);

    for (i = 0; i < n; i++) {
        submit_user(s, &c[i], 0, 1, system, i, system + 100, 60);

        if (i == 0 && !at_once) {
            run(s);
        }
    }

    for (i = 0; i < 12; i++) {
        step(s);
    }

    assert_int_equal(stats_of(s).running, at_once ? n : n - 1);
    most = 0;
    least = UINT32_MAX;

    for (i = 0; i < 4; i++) {
        most = f->rank_seqs[i] > most ? f->rank_seqs[i] : most;
        least = f->rank_seqs[i] < least ? f->rank_seqs[i] : least;
    }

    assert_in_range(most - least, 0, 4);

    run(s);
    computed = 0;

    for (i = 0; i < n; i++) {
        computed += system + 100 - c[i].usage.cached_tokens;
        check(&c[i], 60, DSA_FINISH_LENGTH);
    }

    if (at_once) {

        /* the first four miss what the last chunk of the first one computes */

        assert_in_range(computed, system, 2 * system + n * 100);

    } else {
        assert_int_equal(computed, system + n * 100);
        assert_int_equal(f->copied, 3 * system / 64);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_system_prompt(void **state)
{
    check_system_prompt(0);
    check_system_prompt(1);
}


static void
test_copy_fails(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_err_t     err;
    dsa_sched_t  *s;

    c = clients(6);
    s = start_ranks(&f, 2, 4000, 8, 4096);

    submit(s, &c[0], 0, 1, 1000, 3, 1);
    run(s);

    for (i = 1; i < 6; i++) {
        submit(s, &c[i], 0, 1, 1000, 20, 1);
    }

    f->fails = 1;
    assert_int_equal(dsa_sched_step(s, &err), DSA_ERROR);
    assert_string_equal(err.text, "it fails");

    finish(s, f);

    for (i = 0; i < 6; i++) {
        free(c[i].prompt);
    }

    free(c);
}


/* A step must have room for a token of each sequence that may run. */

static void
test_budget(void **state)
{
    fake_t            *f;
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   conf;

    s = start_ranks(&f, 4, 100, 4, 16);
    dsa_sched_destroy(s);

    memset(&conf, 0, sizeof(conf));
    conf.max_running = 4;
    conf.token_budget = 15;
    conf.context = 1000;

    assert_null(dsa_sched_create(&f->base, &conf, &handler, &err));
    assert_string_equal(err.text, "token_budget is 15; expected at least "
                        "max_running, 4, for each of 4 ranks");
    free(f);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_longest_prefix),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_pages),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_system_prompt),
        cmocka_unit_test(test_copy_fails),
        cmocka_unit_test(test_budget)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
