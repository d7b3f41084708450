
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler on a scripted backend (scheduler.h): steps, preemption, shares
 * and prefixes.
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cpu/sampler.h"
#include "t/unit/scheduler.h"


/*
 * A prompt is computed in chunks of the budget; its first token comes with the
 * last chunk.
 */

static void
test_chunks(void **state)
{
    fake_t       *f;
    client_t      c;
    uint32_t      i;
    dsa_sched_t  *s;

    memset(&c, 0, sizeof(c));
    s = start(&f, 100, 4, 64);

    submit(s, &c, 0, 1, 1000, 5, 1);

    for (i = 0; i < 15; i++) {
        step(s);
        assert_int_equal(f->n_tokens, 64);
        assert_int_equal(c.n, 0);
    }

    step(s);
    assert_int_equal(f->n_tokens, 1000 - 15 * 64);
    assert_int_equal(c.n, 1);

    step(s);
    assert_int_equal(f->n_tokens, 1);
    run(s);

    check(&c, 5, DSA_FINISH_LENGTH);
    assert_int_equal(c.usage.prompt_tokens, 1000);
    assert_int_equal(c.usage.completion_tokens, 5);
    assert_int_equal(c.usage.cached_tokens, 0);

    check_free(s);
    finish(s, f);
}


/* A later request joins the running step; decodes go on beside prefill. */

static void
test_batch(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = calloc(50, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 1000, 8, 40);

    submit(s, &c[0], 0, 0, 30, 100, 1);
    step(s);
    assert_int_equal(c[0].n, 1);

    submit(s, &c[1], 0, 1, 300, 10, 1);

    for (i = 0; i < 7; i++) {
        step(s);
        assert_int_equal(f->n_tokens, 40);
        assert_int_equal(c[0].n, 2 + i);
        assert_int_equal(c[1].n, 0);
    }

    step(s);
    assert_int_equal(c[1].n, 1);

    for (i = 2; i < 50; i++) {
        c[i].seed = i;
        submit(s, &c[i], i % 3, i, 1 + i * 5, 1 + i, 1);
    }

    run(s);

    check(&c[0], 100, DSA_FINISH_LENGTH);
    check(&c[1], 10, DSA_FINISH_LENGTH);

    for (i = 2; i < 50; i++) {
        check(&c[i], 1 + i, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_ends(void **state)
{
    fake_t       *f;
    client_t      c[3];
    dsa_sched_t  *s;

    memset(c, 0, sizeof(c));
    s = start(&f, 100, 4, 100);

    /* the end token counts as completion, and is not part of the answer */

    f->eos_at = 4;
    submit(s, &c[0], 0, 1, 10, 100, 1);
    run(s);
    assert_int_equal(c[0].usage.completion_tokens, 4);
    check(&c[0], 3, DSA_FINISH_STOP);

    /* also as the last token that max_tokens permits */

    submit(s, &c[0], 0, 1, 10, 4, 1);
    run(s);
    check(&c[0], 3, DSA_FINISH_STOP);

    f->eos_at = 0;
    c[1].stop_at = 7;
    submit(s, &c[1], 0, 1, 10, 100, 1);
    run(s);
    assert_int_equal(c[1].usage.completion_tokens, 7);
    check(&c[1], 7, DSA_FINISH_STOP);

    submit(s, &c[2], 0, 1, 10, 1, 1);
    run(s);
    check(&c[2], 1, DSA_FINISH_LENGTH);

    check_free(s);
    finish(s, f);
}


/*
 * Pages for three sequences, where twelve run: all answers are the same as if
 * each request had been alone.
 */

static void
test_preemption(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = calloc(12, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 24, 12, 256);

    for (i = 0; i < 12; i++) {
        c[i].seed = i;
        submit(s, &c[i], i % 2, i, 40 + i, 400, 1);
    }

    run(s);

    for (i = 0; i < 12; i++) {
        check(&c[i], 400, DSA_FINISH_LENGTH);
        assert_int_equal(c[i].usage.completion_tokens, 400);
    }

    dsa_sched_stats(s, &stats);
    assert_true(stats.preemptions > 0);
    assert_int_equal(stats.completion_tokens, 12 * 400);

    check_free(s);
    finish(s, f);
    free(c);
}


/* A sequence that needs all pages runs to its end. */

static void
test_whole_memory(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    c = calloc(3, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 8, 4, 64);

    assert_int_equal(dsa_sched_context(s), 8 * 64 + 1);

    for (i = 0; i < 3; i++) {
        c[i].seed = i;
        submit(s, &c[i], i, i, 100, 413, 1);
    }

    run(s);

    for (i = 0; i < 3; i++) {
        check(&c[i], 413, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_refused(void **state)
{
    fake_t               *f;
    uint32_t              ids[8] = { 0 };
    client_t              c;
    dsa_err_t             err;
    dsa_sched_t          *s;
    dsa_sched_request_t   request;

    s = start(&f, 8, 4, 64);
    memset(&request, 0, sizeof(request));

    request.tokens = ids;
    request.n_tokens = 8;
    request.max_tokens = 8 * 64 + 1 - 8;
    request.weight = 1;
    request.owner = &c;

    request.max_tokens++;
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EINVAL);

    request.max_tokens = UINT32_MAX;
    assert_null(dsa_sched_add(s, &request, &err));

    request.max_tokens = 0;
    assert_null(dsa_sched_add(s, &request, &err));

    request.max_tokens = 1;
    request.weight = 0;
    assert_null(dsa_sched_add(s, &request, &err));

    request.weight = 1;
    request.n_tokens = 0;
    assert_null(dsa_sched_add(s, &request, &err));

    check_free(s);
    finish(s, f);
}


/* The queue holds the requests in excess of those that can run. */

static void
test_queue(void **state)
{
    fake_t               *f;
    uint32_t              i, *ids;
    client_t             *c;
    dsa_err_t             err;
    dsa_sched_t          *s;
    dsa_sched_conf_t      conf;
    dsa_sched_request_t   request;

    c = calloc(9, sizeof(client_t));
    assert_non_null(c);

    s = start(&f, 100, 4, 64);
    dsa_sched_destroy(s);

    memset(&conf, 0, sizeof(conf));
    conf.max_running = 4;
    conf.token_budget = 64;
    conf.max_waiting = 3;
    conf.max_waiting_per_tenant = 3;
    conf.context = 1000;
    s = dsa_sched_create(&f->base, &conf, &handler, &err);
    assert_non_null(s);

    for (i = 0; i < 7; i++) {
        submit(s, &c[i], 0, i, 10, 20, 1);
    }

    ids = calloc(10, sizeof(uint32_t));
    assert_non_null(ids);
    memset(&request, 0, sizeof(request));
    request.tokens = ids;
    request.n_tokens = 10;
    request.max_tokens = 5;
    request.weight = 1;

    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EAGAIN);

    step(s);
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EAGAIN);

    free(ids);
    run(s);

    for (i = 0; i < 7; i++) {
        check(&c[i], 20, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/* A prefix is found again in units of pages, and only by the same tenant. */

static void
test_prefix(void **state)
{
    fake_t               *f;
    client_t             *c;
    uint32_t              i, n, *ids;
    dsa_err_t             err;
    dsa_sched_t          *s;
    dsa_sched_stats_t     stats;
    dsa_sched_request_t   request;

    c = calloc(8, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 1000, 8, 512);

    submit(s, &c[0], 0, 5, 1000, 3, 1);
    assert_int_equal(dsa_sched_cached(s, c[0].seq), 0);
    run(s);
    assert_int_equal(c[0].usage.cached_tokens, 0);

    submit(s, &c[1], 0, 5, 1000, 3, 1);
    assert_int_equal(dsa_sched_cached(s, c[1].seq), 15 * 64);
    run(s);
    assert_int_equal(c[1].usage.cached_tokens, 15 * 64);

    /* the last token is computed although all pages are in the index */

    submit(s, &c[2], 0, 5, 960, 3, 1);
    run(s);
    assert_int_equal(c[2].usage.cached_tokens, 14 * 64);

    /* another tenant; all tokens but the first are the same */

    submit(s, &c[3], 1, 5, 1000, 3, 1);
    run(s);
    assert_int_equal(c[3].usage.cached_tokens, 0);

    /* another tenant; all tokens are the same */

    ids = malloc(1000 * sizeof(uint32_t));
    assert_non_null(ids);
    memcpy(ids, c[0].prompt, 1000 * sizeof(uint32_t));

    c[4].prompt = malloc(1000 * sizeof(uint32_t));
    assert_non_null(c[4].prompt);
    memcpy(c[4].prompt, ids, 1000 * sizeof(uint32_t));
    c[4].n_prompt = 1000;

    memset(&request, 0, sizeof(request));
    request.tokens = ids;
    request.n_tokens = 1000;
    request.max_tokens = 3;
    request.weight = 1;
    request.owner = &c[4];
    request.tenant[0] = 77;
    c[4].seq = dsa_sched_add(s, &request, &err);
    assert_non_null(c[4].seq);

    run(s);
    assert_int_equal(c[4].usage.cached_tokens, 0);

    /* the next request of a conversation finds the answer of the last one */

    submit(s, &c[5], 0, 9, 100, 300, 1);
    run(s);
    assert_int_equal(c[5].n, 300);

    n = 100 + 300 + 20;
    ids = malloc(n * sizeof(uint32_t));
    assert_non_null(ids);
    memcpy(ids, c[5].prompt, 100 * sizeof(uint32_t));
    memcpy(ids + 100, c[5].answer, 300 * sizeof(uint32_t));

    for (i = 400; i < n; i++) {
        ids[i] = 100 + i;
    }

    submit_ids(s, &c[6], ids, n, 10, 1);
    run(s);

    /* 399 tokens were computed: the last token of the answer was not */

    assert_int_equal(c[6].usage.cached_tokens, 399 / 64 * 64);

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.cached_tokens, (15 + 14 + 6) * 64);

    check(&c[0], 3, DSA_FINISH_LENGTH);
    check(&c[1], 3, DSA_FINISH_LENGTH);
    check(&c[2], 3, DSA_FINISH_LENGTH);
    check(&c[3], 3, DSA_FINISH_LENGTH);
    check(&c[4], 3, DSA_FINISH_LENGTH);
    check(&c[5], 300, DSA_FINISH_LENGTH);
    check(&c[6], 10, DSA_FINISH_LENGTH);

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * A page is a hit only if all pages before it are the same.  The second prompt
 * differs from the first in its second page; the third is equal to the second.
 */

static void
test_prefix_middle(void **state)
{
    fake_t       *f;
    uint32_t      i, *ids;
    client_t      c[3];
    dsa_sched_t  *s;

    memset(c, 0, sizeof(c));
    s = start(&f, 100, 4, 512);

    ids = malloc(400 * sizeof(uint32_t));
    assert_non_null(ids);

    for (i = 0; i < 400; i++) {
        ids[i] = i;
    }

    submit_ids(s, &c[0], ids, 400, 3, 1);
    run(s);

    for (i = 1; i < 3; i++) {
        ids = malloc(400 * sizeof(uint32_t));
        assert_non_null(ids);
        memcpy(ids, c[0].prompt, 400 * sizeof(uint32_t));
        ids[100] = 5000;

        submit_ids(s, &c[i], ids, 400, 3, 1);
        run(s);
    }

    assert_int_equal(c[1].usage.cached_tokens, 64);
    assert_int_equal(c[2].usage.cached_tokens, 384);

    for (i = 0; i < 3; i++) {
        check(&c[i], 3, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
}


/* Sequences that run at the same time share the pages of a prefix. */

static void
test_shared(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = calloc(4, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 100, 8, 700);

    submit(s, &c[0], 0, 1, 640, 50, 1);
    step(s);

    for (i = 1; i < 4; i++) {
        c[i].seed = i;
        submit(s, &c[i], 0, 1, 640, 50, 1);
    }

    step(s);
    dsa_sched_stats(s, &stats);

    /* 9 pages are shared; each sequence has a 10th and an 11th of its own */

    assert_true(stats.pages_used <= 9 + 4 * 2);
    assert_int_equal(stats.running, 4);

    run(s);

    for (i = 0; i < 4; i++) {
        check(&c[i], 50, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/* A cancel in any state frees everything at once. */

static void
test_cancel(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, when;
    dsa_sched_t  *s;

    c = calloc(6, sizeof(client_t));
    assert_non_null(c);

    for (when = 0; when < 12; when++) {
        s = start(&f, 12, 3, 64);

        for (i = 0; i < 6; i++) {
            c[i].seed = i;
            submit(s, &c[i], i % 2, i, 150, 200, 1);
        }

        for (i = 0; i < when; i++) {
            step(s);
        }

        for (i = 0; i < 6; i++) {
            if (c[i].seq != NULL) {
                dsa_sched_cancel(s, c[i].seq, i % 2
                                 ? DSA_FINISH_CANCELLED
                                 : DSA_FINISH_DEADLINE);
                assert_int_equal(c[i].finish,
                                 i % 2 ? DSA_FINISH_CANCELLED
                                       : DSA_FINISH_DEADLINE);
            }

            audit(s);
            check_answer(&c[i]);
            free(c[i].prompt);

            if (i == 3) {
                step(s);
            }
        }

        if (depth == 1) {
            assert_int_equal(dsa_sched_busy(s), 0);
        }

        run(s);
        check_free(s);
        finish(s, f);
    }

    free(c);
}


/*
 * Two tenants that always have requests share all tokens by weight.  Their
 * tokens, divided by weight, differ by at most a quantum, and by the tokens
 * that running sequences still lacked when they were admitted.
 */

static void
check_fairness(uint32_t running, uint32_t weight_a, uint32_t weight_b,
    uint32_t len_a, uint32_t len_b)
{
    double        share[2], tolerance;
    fake_t       *f;
    uint32_t      i, n, t, steps;
    client_t     *c;
    dsa_sched_t  *s;

    const uint32_t  weight[2] = { weight_a, weight_b };
    const uint32_t  len[2] = { len_a, len_b };
    const uint32_t  answer = 20;

    n = 64;
    c = calloc(n, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 4000, running, 64);

    for (steps = 0; steps < 6000; steps++) {
        for (i = 0; i < n; i++) {
            if (c[i].seq == NULL) {
                free(c[i].prompt);
                t = i % 2;
                c[i].seed = i;
                submit(s, &c[i], t, steps * n + i, len[t], answer,
                       weight[t]);
            }
        }

        if (steps == 100) {
            memset(f->tenant_tokens, 0, sizeof(f->tenant_tokens));
        }

        step(s);
    }

    share[0] = (double) f->tenant_tokens[0] / weight_a;
    share[1] = (double) f->tenant_tokens[1] / weight_b;

    tolerance = (double) (DSA_SCHED_QUANTUM + running * (answer + len_a))
                / weight_a
                + (double) (DSA_SCHED_QUANTUM + running * (answer + len_b))
                  / weight_b;

    if (share[0] - share[1] > tolerance || share[1] - share[0] > tolerance) {
        fail_msg("weights %u and %u had %llu and %llu tokens", weight_a,
                 weight_b, (unsigned long long) f->tenant_tokens[0],
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

    check_fairness(8, 1, 1, 100, 100);
    check_fairness(8, 1, 3, 100, 100);
    check_fairness(8, 5, 1, 60, 60);

    /* only tokens are scarce */

    check_fairness(32, 1, 1, 300, 30);
    check_fairness(32, 2, 1, 300, 30);
}


/*
 * Two tenants have shared all tokens for a while when a third one comes.  It
 * gets a third from then on, and nothing for the time before.
 */

static void
test_newcomer(void **state)
{
    fake_t       *f;
    uint32_t      i, n, steps;
    client_t     *c;
    uint64_t      all;
    dsa_sched_t  *s;

    n = 30;
    c = calloc(n, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 4000, 32, 64);

    for (steps = 0; steps < 1500; steps++) {
        for (i = 0; i < n; i++) {
            if (c[i].seq == NULL && (i % 3 != 2 || steps >= 1000)) {
                free(c[i].prompt);
                c[i].seed = i;
                submit(s, &c[i], i % 3, steps * n + i, 300, 5, 1);
            }
        }

        if (steps == 1000) {
            memset(f->tenant_tokens, 0, sizeof(f->tenant_tokens));
        }

        step(s);
    }

    all = f->tenant_tokens[0] + f->tenant_tokens[1] + f->tenant_tokens[2];

    for (i = 0; i < 3; i++) {
        assert_in_range(f->tenant_tokens[i], all * 3 / 10, all * 37 / 100);
    }

    for (i = 0; i < n; i++) {
        free(c[i].prompt);
    }

    finish(s, f);
    free(c);
}


/*
 * One tenant has taken all batch slots with long answers.  Another tenant
 * comes, gets half of them at once, and keeps them.
 */

static void
test_latecomer(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = calloc(24, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 1000, 8, 256);

    for (i = 0; i < 12; i++) {
        submit(s, &c[i], 0, i, 20, 1000, 1);
    }

    for (i = 0; i < 50; i++) {
        step(s);
    }

    assert_int_equal(f->tenant_seqs[0], 8);

    for (i = 12; i < 24; i++) {
        submit(s, &c[i], 1, i, 20, 1000, 1);
    }

    for (i = 0; i < 10; i++) {
        step(s);
    }

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, 4);

    for (i = 0; i < 500; i++) {
        step(s);
        assert_int_equal(f->tenant_seqs[0], 4);
        assert_int_equal(f->tenant_seqs[1], 4);
    }

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, 4);

    run(s);

    for (i = 0; i < 24; i++) {
        check(&c[i], 1000, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


static void
check_patience(uint32_t running)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, steps;
    dsa_sched_t  *s;

    c = calloc(13, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 40, running, 512);

    for (steps = 0; steps < 2000; steps++) {
        for (i = 1; i < 13; i++) {
            if (c[i].seq == NULL) {
                free(c[i].prompt);
                c[i].seed = i;
                submit(s, &c[i], i % 4 + 1, steps * 13 + i, 150, 40 + i, 1);
            }
        }

        if (steps == 10) {
            submit(s, &c[0], 0, 999, 37 * 64, 100, 1);
        }

        step(s);

        if (c[0].finish != 0) {
            break;
        }
    }

    check(&c[0], 100, DSA_FINISH_LENGTH);

    for (i = 1; i < 13; i++) {
        free(c[i].prompt);
    }

    finish(s, f);
    free(c);
}


/*
 * A request that needs most of the pages is not skipped forever.  The requests
 * that are admitted before it leave batch slots free, or take the last one
 * each time.
 */

static void
test_patience(void **state)
{
    check_patience(16);
    check_patience(4);
}


/* Random sizes, tenants, classes, prefixes and cancels. */

static void
test_soak(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i, n, r, text, want[40];
    uint64_t            round;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    n = 40;
    c = calloc(n, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 60, 10, 100);
    billed_prompt = 0;
    billed_cached = 0;

    for (round = 0; round < 6000; round++) {
        for (i = 0; i < n; i++) {
            r = (uint32_t) (dsa_uniform(11, round, i) * 1e9);

            if (c[i].seq == NULL) {
                if (c[i].prompt != NULL) {
                    check(&c[i], c[i].finish == DSA_FINISH_LENGTH
                                 ? want[i] : c[i].n, c[i].finish);
                }

                if (r % 4 == 0 && round < 5000) {
                    c[i].seed = r;
                    c[i].priority = r / 256 % DSA_PRIORITIES;
                    text = r / 4 % 5;
                    want[i] = 1 + r / 32 % 150;
                    submit(s, &c[i], r / 16 % TENANTS, text,
                           1 + r / 1024 % 700, want[i], 1 + r / 64 % 3);
                }

            } else if (r % 200 == 0) {
                dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                audit(s);
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

    dsa_sched_stats(s, &stats);
    assert_true(stats.preemptions > 10);
    assert_int_equal(stats.prompt_tokens, billed_prompt);
    assert_int_equal(stats.cached_tokens, billed_cached);
    assert_true(stats.cached_tokens > 1000);

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_backend_fails(void **state)
{
    fake_t       *f;
    client_t      c[2];
    dsa_err_t     err;
    dsa_sched_t  *s;

    memset(c, 0, sizeof(c));
    s = start(&f, 100, 4, 64);

    submit(s, &c[0], 0, 1, 100, 5, 1);
    submit(s, &c[1], 1, 1, 10, 5, 1);
    step(s);

    f->fails = 1;
    assert_int_equal(dsa_sched_step(s, &err), DSA_ERROR);
    assert_string_equal(err.text, "it fails");

    finish(s, f);
    free(c[0].prompt);
    free(c[1].prompt);
}


/*
 * Penalties are a function of the last token, so that such a sequence is never
 * scheduled one step ahead.
 */

static void
test_penalty(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t      c[3];
    dsa_sched_t  *s;

    memset(c, 0, sizeof(c));
    s = start(&f, 100, 4, 64);

    penalty = 0.5f;

    for (i = 0; i < 3; i++) {
        submit(s, &c[i], i, i, 70, 40, 1);
    }

    penalty = 0;
    run(s);

    for (i = 0; i < 3; i++) {
        check(&c[i], 40, DSA_FINISH_LENGTH);
    }

    assert_int_equal(f->inputs_from, 0);

    check_free(s);
    finish(s, f);
}


/*
 * Without penalties, each input after the first answer token is a sample of
 * the in-flight step.
 */

static void
test_ahead(void **state)
{
    fake_t       *f;
    client_t      c;
    dsa_sched_t  *s;

    memset(&c, 0, sizeof(c));
    s = start(&f, 100, 4, 64);

    submit(s, &c, 0, 1, 70, 40, 1);
    run(s);
    check(&c, 40, DSA_FINISH_LENGTH);
    assert_int_equal(f->inputs_from, 39);

    /* the token that is not known yet is the first of a page */

    submit(s, &c, 0, 2, 64, 2, 1);
    run(s);
    check(&c, 2, DSA_FINISH_LENGTH);

    check_free(s);
    finish(s, f);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  steps[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_latecomer),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_backend_fails)
    };

    const struct CMUnitTest  any[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_whole_memory),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_prefix_middle),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_newcomer),
        cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_soak)
    };

    const struct CMUnitTest  ahead[] = {
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_backend_fails)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("steps", steps, NULL, NULL);
    failed += cmocka_run_group_tests_name("one at a time", any, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", any, NULL, NULL);
    failed += cmocka_run_group_tests_name("ahead", ahead, NULL, NULL);

    return failed;
}
