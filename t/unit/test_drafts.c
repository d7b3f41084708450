
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Drafts, masks and resumed answers, on a scripted backend (scheduler.h) and
 * on the null backend.  The expected answer is a function of the prompt alone,
 * so that each test compares with an answer without drafts.
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/lib/small_model.h"
#include "t/unit/numbers.h"
#include "t/unit/scheduler.h"


static uint64_t
stats_steps(const dsa_sched_t *s)
{
    dsa_sched_stats_t  stats;

    dsa_sched_stats(s, &stats);

    return stats.steps;
}


/* One request with these drafts in each step; returns its decode steps. */

static uint64_t
draft_steps(uint32_t right, uint32_t wrong, uint32_t n_prompt,
    uint32_t max_tokens)
{
    fake_t       *f;
    client_t     *c;
    uint64_t      steps;
    dsa_sched_t  *s;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 100, 4, 1000);

    c->draft_right = right;
    c->draft_wrong = wrong;

    submit(s, c, 0, 1, n_prompt, max_tokens, 1);
    run(s);

    assert_int_equal(f->inputs_from, 0);
    assert_int_equal(c->usage.prompt_tokens, n_prompt);
    assert_int_equal(c->usage.completion_tokens, max_tokens);
    check(c, max_tokens, DSA_FINISH_LENGTH);

    steps = stats_steps(s) - 1;

    check_free(s);
    finish(s, f);
    free(c);

    return steps;
}


/*
 * The first token comes with the prompt.  Each step then adds the accepted
 * drafts and one token more.
 */

static void
test_accepted(void **state)
{
    assert_int_equal(draft_steps(7, 0, 50, 1 + 8 * 10), 10);
    assert_int_equal(draft_steps(3, 0, 50, 1 + 4 * 20), 20);

    /* the last step has fewer drafts, because more than max_tokens were */

    assert_int_equal(draft_steps(7, 0, 50, 1 + 8 * 10 + 2), 11);
    assert_int_equal(draft_steps(7, 0, 50, 1 + 8 * 10 + 1), 11);

    /* the client has more drafts than outputs */

    assert_int_equal(draft_steps(20, 0, 50, 1 + 8 * 10), 10);
}


static void
test_rejected(void **state)
{
    assert_int_equal(draft_steps(0, 7, 50, 100), 99);
    assert_int_equal(draft_steps(0, 1, 50, 100), 99);
}


static void
test_partly(void **state)
{
    assert_int_equal(draft_steps(2, 2, 50, 1 + 3 * 30), 30);
    assert_int_equal(draft_steps(2, 5, 50, 1 + 3 * 30), 30);
    assert_int_equal(draft_steps(6, 1, 50, 1 + 7 * 30), 30);
}


/*
 * Drafts that begin in the first page and end in the second are rejected: the
 * second page is released, and taken again when an accepted token is in it.
 */

static void
test_boundary(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i, n, *ids;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = calloc(3, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 100, 4, 1000);

    c[0].draft_wrong = 7;
    submit(s, &c[0], 0, 1, 58, 100, 1);
    step(s);

    for (i = 1; i <= 10; i++) {
        step(s);
        assert_int_equal(c[0].n, 1 + i);

        /* the last token of the answer has no page before its step */

        dsa_sched_stats(s, &stats);
        assert_int_equal(stats.pages_used, 58 + i <= 64 ? 1 : 2);
        assert_int_equal(stats.accepted_tokens, 0);
        assert_int_equal(stats.draft_tokens, f->drafts);
    }

    run(s);

    /* no published page holds a rejected draft */

    n = c[0].n_prompt + c[0].n + 20;
    ids = malloc(n * sizeof(uint32_t));
    assert_non_null(ids);
    memcpy(ids, c[0].prompt, c[0].n_prompt * sizeof(uint32_t));
    memcpy(ids + c[0].n_prompt, c[0].answer, c[0].n * sizeof(uint32_t));

    for (i = c[0].n_prompt + c[0].n; i < n; i++) {
        ids[i] = 100 + i;
    }

    c[1].draft_right = 2;
    c[1].draft_wrong = 3;
    submit_ids(s, &c[1], ids, n, 30, 1);
    run(s);
    assert_int_equal(c[1].usage.cached_tokens, 157 / 64 * 64);

    check(&c[0], 100, DSA_FINISH_LENGTH);
    check(&c[1], 30, DSA_FINISH_LENGTH);
    check_free(s);
    finish(s, f);
    free(c);
}


/* Tokens after an end token are not part of the answer. */

static void
test_end(void **state)
{
    fake_t       *f;
    uint32_t      at;
    client_t     *c;
    dsa_sched_t  *s;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    for (at = 2; at < 20; at++) {
        s = start(&f, 100, 4, 1000);
        f->eos_at = at;
        c->draft_right = 7;
        c->draft_eos = at;

        submit(s, c, 0, 1, 50, 100, 1);
        run(s);
        assert_int_equal(c->usage.completion_tokens, at);
        check(c, at - 1, DSA_FINISH_STOP);

        /* also as the last token that max_tokens permits */

        submit(s, c, 0, 1, 50, at, 1);
        run(s);
        assert_int_equal(c->usage.completion_tokens, at);
        check(c, at - 1, DSA_FINISH_STOP);

        check_free(s);
        finish(s, f);
    }

    /* the handler ends the answer with one of several tokens */

    s = start(&f, 100, 4, 1000);
    c->draft_eos = 0;
    c->stop_at = 5;
    submit(s, c, 0, 1, 50, 100, 1);
    run(s);
    assert_int_equal(c->calls, 2);
    assert_int_equal(c->usage.completion_tokens, 9);
    check(c, 5, DSA_FINISH_STOP);

    check_free(s);
    finish(s, f);
    free(c);
}


/* Drafts take only what decodes leave of the budget. */

static void
test_budget(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    c = calloc(4, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 100, 4, 4);

    for (i = 0; i < 4; i++) {
        c[i].draft_right = 7;
        submit(s, &c[i], 0, i, 4, 50, 1);
    }

    for (i = 0; c[3].n == 0; i++) {
        assert_true(i < 100);
        step(s);
    }

    f->drafts = 0;

    while (c[0].n + 10 < 50) {
        step(s);
        assert_int_equal(f->n_seqs, 4);
        assert_int_equal(f->n_tokens, 4);
    }

    assert_int_equal(f->drafts, 0);
    run(s);

    for (i = 0; i < 4; i++) {
        check(&c[i], 50, DSA_FINISH_LENGTH);
    }

    check_free(s);
    finish(s, f);
    free(c);
}


/* Drafts use free pages only, and preempt no sequence. */

static void
test_pages(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    c = calloc(4, sizeof(client_t));
    assert_non_null(c);

    /*
     * Each of four answers ends within two pages.  Before that, the drafts are
     * for a third page, and none is left.
     */

    s = start(&f, 8, 4, 1000);

    for (i = 0; i < 4; i++) {
        c[i].draft_right = 5;
        c[i].draft_wrong = 2;
        c[i].stop_at = 67;
        submit(s, &c[i], i, i, 62, 300, 1);
    }

    run(s);

    for (i = 0; i < 4; i++) {
        check(&c[i], 67, DSA_FINISH_STOP);
    }

    dsa_sched_stats(s, &stats);
    assert_int_equal(stats.preemptions, 0);
    assert_true(stats.accepted_tokens > 100);

    check_free(s);
    finish(s, f);
    free(c);
}


/* A backend with one output is never given drafts. */

static void
test_unsupported(void **state)
{
    fake_t       *f;
    client_t     *c;
    dsa_sched_t  *s;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    max_outputs = 1;
    s = start(&f, 100, 4, 1000);
    max_outputs = DSA_MAX_OUTPUTS;

    c->draft_right = 7;
    submit(s, c, 0, 1, 50, 100, 1);
    run(s);
    check(c, 100, DSA_FINISH_LENGTH);
    assert_int_equal(f->drafts, 0);

    /* it is scheduled ahead, as a request without drafts */

    assert_int_equal(f->inputs_from, depth == 2 ? 99 : 0);

    check_free(s);
    finish(s, f);
    free(c);
}


/* Random drafts, cancels, preemption and shared prefixes. */

static void
test_soak(void **state)
{
    fake_t             *f;
    client_t           *c;
    uint32_t            i, n, r, want[30];
    uint64_t            round;
    dsa_sched_t        *s;
    dsa_sched_stats_t   stats;

    n = 30;
    c = calloc(n, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 40, 8, 100);

    for (round = 0; round < 4000; round++) {
        for (i = 0; i < n; i++) {
            r = (uint32_t) (dsa_t_counted(12, round, i) * 1e9);

            if (c[i].seq == NULL) {
                if (c[i].prompt != NULL) {
                    check(&c[i], c[i].finish == DSA_FINISH_LENGTH
                                 ? want[i] : c[i].n, c[i].finish);
                }

                if (r % 4 == 0 && round < 3500) {
                    c[i].seed = r % 3;
                    c[i].draft_right = r / 7 % 5;
                    c[i].draft_wrong = r / 35 % 3;
                    c[i].modulus = r % 50 == 0 ? 2 + r % 3 : 0;
                    want[i] = 1 + r / 32 % 150;
                    submit(s, &c[i], r / 16 % TENANTS, r / 4 % 3,
                           1 + r / 1024 % 500, want[i], 1 + r / 64 % 3);
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
    assert_true(stats.accepted_tokens > 1000);
    assert_true(stats.draft_tokens > stats.accepted_tokens + 1000);
    assert_true(stats.cached_tokens > 1000);

    check_free(s);
    finish(s, f);
    free(c);
}


/* Each output has a mask of its own, with and without drafts. */

static void
test_masks(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    c = calloc(4, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 100, 4, 1000);

    for (i = 0; i < 4; i++) {
        c[i].seed = i;
        c[i].modulus = 2 + i;
        c[i].draft_right = i == 1 || i == 3 ? 3 : 0;
        c[i].draft_wrong = i == 2 || i == 3 ? 2 : 0;
        submit(s, &c[i], i, i, 60, 30, 1);
    }

    run(s);

    for (i = 0; i < 4; i++) {
        check(&c[i], 30, DSA_FINISH_LENGTH);
    }

    assert_int_equal(f->inputs_from, 0);

    check_free(s);
    finish(s, f);
    free(c);
}


/*
 * A mask of one token of the answer: only its step waits for the token before
 * it, and the other tokens are those without a mask.
 */

static void
test_mask_of_one_token(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, at;
    dsa_sched_t  *s;

    for (at = 1; at < 40; at += 6) {
        c = calloc(4, sizeof(client_t));
        assert_non_null(c);
        s = start(&f, 100, 4, 1000);

        c[0].modulus = 3;
        c[0].mask_at = at;
        submit(s, &c[0], 0, 1, 60, 40, 1);
        run(s);
        check(&c[0], 40, DSA_FINISH_LENGTH);
        assert_int_equal(f->inputs_from, depth == 2 ? 38 : 0);

        /* beyond the answer there is nothing to wait for */

        c[0].mask_at = 40;
        submit(s, &c[0], 0, 2, 60, 40, 1);
        run(s);
        check(&c[0], 40, DSA_FINISH_LENGTH);
        assert_int_equal(f->inputs_from, depth == 2 ? 38 + 39 : 0);

        /* beside others, and with drafts */

        for (i = 0; i < 4; i++) {
            c[i].seed = i;
            c[i].modulus = 2 + i;
            c[i].mask_at = i == 3 ? 0 : at + i;
            c[i].draft_right = i == 1 ? 3 : 0;
            c[i].draft_wrong = i == 1 ? 2 : 0;
            submit(s, &c[i], i, i, 60, 40, 1);
        }

        run(s);

        for (i = 0; i < 4; i++) {
            check(&c[i], 40, DSA_FINISH_LENGTH);
        }

        check_free(s);
        finish(s, f);
        free(c);
    }
}


/*
 * An answer of 80 tokens that goes on after its first n elsewhere has the same
 * other tokens and counts.
 */

static void
check_resume(uint32_t n, uint32_t drafts)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i, *ids;
    dsa_sched_t  *s;

    c = calloc(2, sizeof(client_t));
    assert_non_null(c);

    s = start(&f, 100, 4, 90);
    c[0].seed = 5;
    submit(s, &c[0], 0, 1, 100, 80, 1);
    run(s);
    finish(s, f);

    s = start(&f, 100, 4, 90);

    /* the end token of the answer is counted from the prompt */

    f->eos_at = 81;
    ids = malloc((100 + n) * sizeof(uint32_t));
    assert_non_null(ids);
    memcpy(ids, c[0].prompt, 100 * sizeof(uint32_t));
    memcpy(ids + 100, c[0].answer, n * sizeof(uint32_t));

    c[1].seed = 5;
    c[1].n_resume = n;
    c[1].draft_right = drafts;
    submit_ids(s, &c[1], ids, 100 + n, 80, 1);
    assert_non_null(c[1].seq);
    run(s);

    assert_int_equal(c[1].usage.prompt_tokens, 100);
    assert_int_equal(c[1].usage.cached_tokens, 0);
    assert_int_equal(c[1].usage.completion_tokens, 80);

    for (i = n; i < 80; i++) {
        assert_int_equal(c[1].answer[i - n], c[0].answer[i]);
    }

    free(c[1].prompt);

    /* with room for one token more, that is the end token */

    ids = malloc((100 + n) * sizeof(uint32_t));
    assert_non_null(ids);
    memcpy(ids, c[0].prompt, 100 * sizeof(uint32_t));
    memcpy(ids + 100, c[0].answer, n * sizeof(uint32_t));

    submit_ids(s, &c[1], ids, 100 + n, 81, 1);
    assert_non_null(c[1].seq);
    run(s);

    assert_int_equal(c[1].usage.completion_tokens, 81);
    assert_int_equal(c[1].usage.cached_tokens, (100 + n) / 64 * 64 > 100
                                               ? 100 : 64);
    check(&c[1], 80 - n, DSA_FINISH_STOP);
    check(&c[0], 80, DSA_FINISH_LENGTH);

    check_free(s);
    finish(s, f);
    free(c);
}


static void
test_resume(void **state)
{
    uint32_t  n;

    for (n = 0; n < 80; n += 13) {
        check_resume(n, 0);
        check_resume(n, 3);
    }

    check_resume(79, 0);
}


static void
test_resume_bounds(void **state)
{
    fake_t               *f;
    uint32_t              ids[8] = { 0 };
    dsa_err_t             err;
    dsa_sched_t          *s;
    dsa_sched_request_t   request;

    s = start(&f, 8, 4, 64);
    memset(&request, 0, sizeof(request));

    request.tokens = ids;
    request.n_tokens = 8;
    request.weight = 1;

    /* at least one token of the prompt */

    request.n_resume = 8;
    request.max_tokens = 20;
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EINVAL);

    /* at least one token to sample */

    request.n_resume = 5;
    request.max_tokens = 5;
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EINVAL);

    /* prompt and answer, of which the resumed tokens are a part */

    request.max_tokens = dsa_sched_context(s) - 3 + 1;
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EINVAL);

    check_free(s);
    finish(s, f);
}


/* The null backend: the plain tokens of the prompt, again and again. */

static void
test_null(void **state)
{
    char                 dir[] = "/tmp/dsa-test-XXXXXX";
    uint32_t             i, *ids;
    client_t            *c;
    dsa_err_t            err;
    dsa_sched_t         *s;
    dsa_backend_t       *b;
    dsa_sched_conf_t     sched;
    dsa_backend_conf_t   conf;
    dsa_sched_request_t  request;

    assert_int_equal(small_model_make(dir), 0);

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.gpus = 1;
    conf.max_tokens = 64;
    b = dsa_backend_null_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(b->max_outputs, DSA_MAX_OUTPUTS);

    memset(&sched, 0, sizeof(sched));
    sched.max_running = 4;
    sched.token_budget = 64;
    sched.context = 1000;
    s = dsa_sched_create(b, &sched, &handler, &err);
    assert_non_null(s);

    c = calloc(1, sizeof(client_t));
    ids = malloc(80 * sizeof(uint32_t));
    assert_non_null(c);
    assert_non_null(ids);

    /* ids of bytes: the fake's drafts are all wrong here */

    for (i = 0; i < 80; i++) {
        ids[i] = 'a' + i % 7;
    }

    c->prompt = malloc(80 * sizeof(uint32_t));
    assert_non_null(c->prompt);
    memcpy(c->prompt, ids, 80 * sizeof(uint32_t));
    c->draft_wrong = 4;

    memset(&request, 0, sizeof(request));
    request.tokens = ids;
    request.n_tokens = 80;
    request.max_tokens = 200;
    request.weight = 1;
    request.ignore_eos = 1;
    request.draft = on_draft;
    request.owner = c;

    c->seq = dsa_sched_add(s, &request, &err);
    assert_non_null(c->seq);
    run(s);

    assert_int_equal(c->n, 200);

    for (i = 0; i < 200; i++) {
        assert_int_equal(c->answer[i], c->prompt[i % 80]);
    }

    dsa_sched_destroy(s);
    b->close(b);
    small_model_remove(dir);
    free(c->prompt);
    free(c);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_rejected),
        cmocka_unit_test(test_partly),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_soak),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_mask_of_one_token),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_bounds),
        cmocka_unit_test(test_null)
    };

    /* these look at the state between steps, when none is in flight */

    const struct CMUnitTest  steps[] = {
        cmocka_unit_test(test_boundary)
    };

    max_outputs = DSA_MAX_OUTPUTS;

    depth = 1;
    failed = cmocka_run_group_tests_name("steps", steps, NULL, NULL);
    failed += cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
