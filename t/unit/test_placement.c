
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler on a scripted backend with several ranks (scheduler.h): where
 * sequences run, copied pages, and prompts that are split over all ranks.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cpu/sampler.h"
#include "t/lib/small_model.h"
#include "t/unit/scheduler.h"


static client_t *
clients(uint32_t n)
{
    uint32_t   i;
    client_t  *c;

    c = calloc(n, sizeof(client_t));
    assert_non_null(c);

    for (i = 0; i < n; i++) {
        c[i].seed = i;
    }

    return c;
}


/* A scheduler on several ranks, each with so many pages and batch slots. */

static dsa_sched_t *
start_ranks(fake_t **f, uint32_t n, uint32_t pages, uint32_t max_running,
    uint32_t budget)
{
    dsa_sched_t  *s;

    ranks = n;
    s = start(f, pages, max_running, budget);
    ranks = 1;

    return s;
}


static dsa_sched_stats_t
stats_of(const dsa_sched_t *s)
{
    dsa_sched_stats_t  stats;

    dsa_sched_stats(s, &stats);

    return stats;
}


/*
 * A prompt of n tokens that begins with the first n_system tokens of the
 * prompt "text" and goes on with other tokens for each user.
 */

static void
submit_user(dsa_sched_t *s, client_t *c, uint32_t tenant, uint32_t text,
    uint32_t n_system, uint32_t user, uint32_t n, uint32_t max_tokens)
{
    uint32_t  i, *ids;

    ids = ids_of(tenant, text, n);

    for (i = n_system != 0 ? n_system : 1; i < n; i++) {
        ids[i] = 100 + (user * 104729 + i * 17) % (VOCAB - 100);
    }

    submit_ids(s, c, ids, n, max_tokens, 1);
    assert_non_null(c->seq);
}


/* All batch slots of all ranks are used at the same time. */

static void
check_slots(uint32_t n_ranks, uint32_t running)
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
test_slots(void **state)
{
    check_slots(2, 3);
    check_slots(4, 5);
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
 * step_target limits the prefill tokens of each rank: 400 tokens of 0.1 ms fit
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
    step_target_ms = 50;
    s = start_ranks(&f, 2, 1000, 8, 2048);
    step_target_ms = 0;
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


/* A long prompt that is alone is computed by all ranks, each its part. */

static void
check_split(uint32_t n_ranks)
{
    fake_t       *f;
    uint32_t      i, n;
    client_t     *c;
    dsa_sched_t  *s;

    n = 10000;
    c = clients(2 + n_ranks);
    rank_tokens = 512;
    s = start_ranks(&f, n_ranks, 400, 4, 4096);
    rank_tokens = UINT32_MAX;

    submit(s, &c[0], 0, 1, n, 100, 1);

    while (n > 512 * n_ranks) {
        step(s);
        assert_int_equal(f->n_split, 1);
        assert_int_equal(f->n_tokens, 512 * n_ranks);
        assert_int_equal(c[0].n, 0);
        n -= 512 * n_ranks;

        for (i = 0; i < n_ranks; i++) {
            assert_int_equal(stats_of(s).rank_used[i], 157);
        }
    }

    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->n_tokens, n);

    step(s);
    assert_int_equal(f->n_split, 0);
    assert_true(c[0].n >= 1);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(stats_of(s).rank_used[i], i == 0 ? 157 : 0);
    }

    assert_int_equal(stats_of(s).split_prompts, 1);
    run(s);
    check(&c[0], 100, DSA_FINISH_LENGTH);

    /* each rank has the prefix: requests run on all of them without a copy */

    for (i = 0; i < n_ranks; i++) {
        submit(s, &c[1 + i], 0, 1, 10000, 40, 1);
        step(s);
    }

    step(s);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(f->rank_seqs[i], 1);
    }

    run(s);
    assert_int_equal(f->copied, 0);

    for (i = 0; i < n_ranks; i++) {
        assert_int_equal(c[1 + i].usage.cached_tokens, 9984);
        check(&c[1 + i], 40, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_split(void **state)
{
    check_split(2);
    check_split(3);
    check_split(4);
}


/*
 * When a prompt is split: at least 4097 tokens are left after the prefix, all
 * ranks have pages, and there are fewer prompts than ranks.
 */

static void
test_split_when(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(8);
    s = start_ranks(&f, 2, 140, 4, 512);

    submit(s, &c[0], 0, 1, 4096, 3, 1);
    run(s);
    check(&c[0], 3, DSA_FINISH_LENGTH);
    assert_int_equal(stats_of(s).split_prompts, 0);

    /* the first prompt again, and 4096 tokens after it */

    submit(s, &c[1], 0, 1, 2 * 4096, 3, 1);
    run(s);
    assert_int_equal(c[1].usage.cached_tokens, 4096);
    assert_int_equal(stats_of(s).split_prompts, 0);

    submit(s, &c[2], 1, 2, 4097, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);

    /* another prompt waits, or is computed */

    submit(s, &c[3], 2, 3, 4097, 3, 1);
    submit(s, &c[4], 3, 4, 1000, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);

    submit(s, &c[5], 4, 5, 1000, 3, 1);
    step(s);
    submit(s, &c[6], 5, 6, 4500, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);

    /* 75 pages, where one rank has at least 65 of 140 in use */

    submit(s, &c[0], 0, 7, 4096, 200, 1);

    while (c[0].n == 0) {
        step(s);
    }

    submit(s, &c[7], 6, 8, 4800, 3, 1);
    run(s);
    assert_int_equal(stats_of(s).split_prompts, 1);
    assert_int_equal(stats_of(s).preemptions, 0);

    check(&c[0], 200, DSA_FINISH_LENGTH);

    for (i = 1; i < 8; i++) {
        check(&c[i], 3, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/* The prefix of a split prompt is copied to the ranks that lack it. */

static void
test_split_prefix(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    uint64_t      before;
    dsa_sched_t  *s;

    c = clients(2);
    s = start_ranks(&f, 4, 300, 4, 4096);

    submit(s, &c[0], 0, 1, 1000, 3, 1);
    run(s);
    before = f->all_tokens;

    submit_user(s, &c[1], 0, 1, 960, 9, 960 + 6000, 5);
    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->copied, 3 * 15);

    run(s);
    assert_int_equal(f->all_tokens - before, 6000 + 4);
    assert_int_equal(c[1].usage.cached_tokens, 960);

    for (i = 0; i < 2; i++) {
        check(&c[i], i == 0 ? 3 : 5, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * Another sequence needs pages on a rank that is not the split prompt's own:
 * the prompt releases its pages there, and is computed without the split.
 */

static void
test_split_joined(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = clients(3);
    s = start_ranks(&f, 3, 81, 4, 64);

    /* short sequences on ranks 0 and 1, and a split one with 79 pages */

    submit(s, &c[0], 0, 1, 58, 400, 1);
    step(s);
    submit(s, &c[1], 1, 2, 58, 400, 1);
    step(s);
    step(s);

    submit(s, &c[2], 2, 3, 5000, 20, 1);
    step(s);
    assert_int_equal(f->n_split, 1);
    assert_int_equal(f->tenant_rank[2], 2);

    for (i = 0; f->n_split != 0; i++) {
        assert_true(i < 300);
        step(s);
    }

    assert_int_equal(c[2].n, 0);
    assert_int_equal(stats_of(s).preemptions, 0);

    run(s);
    check(&c[0], 400, DSA_FINISH_LENGTH);
    check(&c[1], 400, DSA_FINISH_LENGTH);
    check(&c[2], 20, DSA_FINISH_LENGTH);
    assert_int_equal(stats_of(s).preemptions, 0);

    check_free(s);
    finish(s, f);
    free(c);
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
 * One tenant has taken the batch slots of all ranks.  Another tenant comes,
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
 * All batch slots are taken: those of rank 0 by four tenants, and those of
 * rank 1 by one.  Another tenant gets one of the slots of rank 1, because the
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
    /* batch slots are scarce, and tokens */

    check_fairness(2, 4, UINT32_MAX, 1, 100, 100);
    check_fairness(2, 4, UINT32_MAX, 3, 100, 100);
    check_fairness(4, 2, 20, 2, 100, 100);

    /* only tokens are scarce */

    check_fairness(2, 16, UINT32_MAX, 1, 300, 30);
    check_fairness(2, 16, 32, 2, 300, 30);
}


/* A cancel in any state frees the pages of all ranks at once. */

static void
test_cancel(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, when;
    dsa_sched_t  *s;

    for (when = 0; when < 30; when++) {
        c = clients(6);
        s = start_ranks(&f, 3, 100, 4, 512);

        submit(s, &c[0], 0, 0, 5000, 200, 1);

        for (i = 0; i < when; i++) {
            step(s);

            if (i == 3) {
                submit(s, &c[1], 1, 1, 150, 200, 1);
                submit(s, &c[2], 1, 2, 1500, 200, 1);
                submit(s, &c[3], 2, 0, 6000, 200, 1);
                submit(s, &c[4], 0, 0, 1000, 200, 1);
                submit(s, &c[5], 0, 0, 5000, 200, 1);
            }
        }

        for (i = 0; i < 6; i++) {
            if (c[i].seq != NULL) {
                dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                audit(s);
                check_answer(&c[i]);
            }

            free(c[i].prompt);

            if (i == 2) {
                step(s);
            }
        }

        run(s);
        check_free(s);
        finish(s, f);
        free(c);
    }
}


/*
 * Random sizes, tenants, prefixes, drafts and cancels, on pages for a few
 * sequences, so that there are preemptions, copies and splits.
 */

static void
check_soak(uint32_t n_ranks, uint32_t pages, uint32_t of_rank, uint64_t seed)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i, n, r, size, idle, want[24];
    uint64_t            round;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    n = 24;
    c = clients(n);
    rank_tokens = of_rank;
    max_outputs = 4;
    s = start_ranks(&f, n_ranks, pages, 4, 600);
    rank_tokens = UINT32_MAX;
    max_outputs = 1;
    billed_prompt = 0;
    billed_cached = 0;

    for (round = 0; round < 6000; round++) {

        /* now and then few requests are left, so that long ones are split */

        idle = round / 300 % 2 == 1;

        for (i = 0; i < n; i++) {
            r = (uint32_t) (dsa_uniform(seed, round, i) * 4e9);

            if (c[i].seq != NULL) {
                if (r % 300 == 0) {
                    dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                    audit(s);
                }

                continue;
            }

            if (c[i].prompt != NULL) {
                check(&c[i], c[i].finish == DSA_FINISH_LENGTH
                             ? want[i] : c[i].n, c[i].finish);
            }

            if (round < 5500 && r % (idle ? 800 : 10) == 0) {
                c[i].seed = r;
                c[i].draft_right = r / 16 % 3;
                c[i].draft_wrong = r / 64 % 2;
                want[i] = 1 + r / 32 % 100;
                size = 1 + r / 1024 % 900;

                if (idle || r / 128 % 20 == 0) {
                    size += 4097 + r / 256 % 600;
                }

                submit_user(s, &c[i], r / 8 % 3, r / 4 % 2,
                            r / 512 % 1500, i, size, want[i]);
            }
        }

        step(s);
    }

    run(s);

    for (i = 0; i < n; i++) {
        if (c[i].prompt != NULL) {
            check(&c[i], c[i].n, c[i].finish);
        }
    }

    stats = stats_of(s);
    assert_true(stats.preemptions > 10);
    assert_int_equal(stats.prompt_tokens, billed_prompt);
    assert_int_equal(stats.cached_tokens, billed_cached);
    assert_int_equal(stats.copied_tokens, f->copied * 64);
    assert_true(stats.accepted_tokens > 1000);

    if (n_ranks > 1) {
        assert_true(stats.copied_tokens > 1000);
        assert_true(stats.split_prompts > 10);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_soak(void **state)
{
    check_soak(1, 110, UINT32_MAX, 21);
    check_soak(2, 130, UINT32_MAX, 22);
    check_soak(2, 130, 300, 23);
    check_soak(4, 120, 200, 24);
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


/*
 * Three ranks repeat a prompt of n tokens, then three longer ones that begin
 * like it and run at the same time.
 */

static void
check_null(dsa_backend_t *b, uint32_t n, uint32_t split, uint32_t copied)
{
    uint32_t           i, j, at, size, *ids;
    client_t          *c;
    dsa_err_t          err;
    dsa_sched_t       *s;
    dsa_sched_conf_t   sched;

    memset(&sched, 0, sizeof(sched));
    sched.max_running = 1;
    sched.token_budget = 1000;
    sched.max_waiting = 10;
    sched.max_waiting_per_tenant = 10;
    sched.context = 20000;
    s = dsa_sched_create(b, &sched, &handler, &err);
    assert_non_null(s);

    c = clients(4);

    for (i = 0; i < 4; i++) {
        size = i == 0 ? n : n + 100 + i;
        ids = ids_of(0, 1, size);

        /* ids of bytes, and in places that depend on n an added token */

        for (j = 0; j < size; j++) {
            ids[j] = j % 97 < n % 97 ? SMALL_MODEL_USER : 'a' + j % 25;
        }

        submit_ids(s, &c[i], ids, size, 200, 1);

        if (i == 0) {
            run(s);
        }
    }

    run(s);
    assert_int_equal(stats_of(s).split_prompts, split);
    assert_int_equal(stats_of(s).copied_tokens, copied);

    for (i = 0; i < 4; i++) {
        assert_int_equal(c[i].n, 200);
        assert_int_equal(c[i].usage.cached_tokens, i == 0 ? 0 : n / 64 * 64);

        for (j = 0, at = 0; j < 200; j++, at++) {
            while (c[i].prompt[at] == SMALL_MODEL_USER) {
                at++;
            }

            assert_int_equal(c[i].answer[j], c[i].prompt[at]);
        }

        free(c[i].prompt);
    }

    dsa_sched_destroy(s);
    free(c);
}


/* The null backend repeats prompts that are split, and copied. */

static void
test_null(void **state)
{
    char                 dir[] = "/tmp/dsa-test-XXXXXX";
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    assert_int_equal(small_model_make(dir), 0);

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.gpus = 3;
    conf.max_tokens = 1000;
    b = dsa_backend_null_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(b->ranks, 3);
    assert_int_equal(b->rank_tokens, 334);

    check_null(b, 6000, 1, 0);
    check_null(b, 3000, 0, 2 * 2944);
    b->close(b);

    /* with "attention tensor" all GPUs are one rank */

    conf.attention = DSA_ATTENTION_TENSOR;
    b = dsa_backend_null_open(&conf, &err);
    assert_non_null(b);
    assert_int_equal(b->ranks, 1);
    b->close(b);
    small_model_remove(dir);
}


#define CPU_USERS   5
#define CPU_ANSWER  8

/*
 * The answers of the CPU backend: to a prompt of 4200 tokens, then to users
 * whose prompts begin with its first 640 tokens, and to others.
 */

static void
cpu_answers(const char *dir, uint32_t n_ranks,
    uint32_t answer[CPU_USERS + 1][CPU_ANSWER])
{
    uint32_t             i, j, n, *ids;
    client_t            *c;
    dsa_err_t            err;
    dsa_sched_t         *s;
    dsa_backend_t       *b;
    dsa_sched_conf_t     sched;
    dsa_sched_stats_t    stats;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.gpus = n_ranks;
    conf.context = 4300;
    conf.max_tokens = 512;
    conf.max_seqs = 3;
    conf.allowed = 259;
    b = dsa_backend_cpu_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(b->ranks, n_ranks);

    memset(&sched, 0, sizeof(sched));
    sched.max_running = 3;
    sched.token_budget = 512;
    sched.max_waiting = 10;
    sched.max_waiting_per_tenant = 10;
    sched.context = 4300;
    s = dsa_sched_create(b, &sched, &handler, &err);
    assert_non_null(s);

    c = clients(CPU_USERS + 1);

    for (i = 0; i <= CPU_USERS; i++) {
        n = i == 0 ? 4200 : 650 + 40 * i;
        ids = ids_of(0, 1, n);

        for (j = 0; j < n; j++) {
            ids[j] = 3 + (i > 3 || j >= 640 ? i * 29 + j * 7 : j * 11) % 256;
        }

        submit_ids(s, &c[i], ids, n, CPU_ANSWER, 1);
        assert_non_null(c[i].seq);

        if (i == 0) {
            run(s);
        }
    }

    run(s);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.split_prompts, n_ranks > 1);

    for (i = 0; i <= CPU_USERS; i++) {
        assert_int_equal(c[i].n, CPU_ANSWER);
        memcpy(answer[i], c[i].answer, sizeof(answer[i]));
        free(c[i].prompt);
    }

    dsa_sched_destroy(s);
    b->close(b);
    free(c);
}


/* The answers of a model are the same with one rank, two and four. */

static void
test_cpu(void **state)
{
    char      dir[] = "/tmp/dsa-test-XXXXXX";
    uint32_t  i, one[CPU_USERS + 1][CPU_ANSWER];
    uint32_t  several[CPU_USERS + 1][CPU_ANSWER];

    assert_int_equal(small_model_make(dir), 0);

    cpu_answers(dir, 1, one);

    for (i = 2; i <= 4; i += 2) {
        cpu_answers(dir, i, several);
        assert_memory_equal(several, one, sizeof(one));
    }

    small_model_remove(dir);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_longest_prefix),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_pages),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_system_prompt),
        cmocka_unit_test(test_prefill_shared),
        cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_when),
        cmocka_unit_test(test_split_prefix),
        cmocka_unit_test(test_split_joined),
        cmocka_unit_test(test_preempted_there),
        cmocka_unit_test(test_latecomer),
        cmocka_unit_test(test_reclaimed_there),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_soak),
        cmocka_unit_test(test_copy_fails),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_budget)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
