
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler on a scripted backend (scheduler.h): steps, how answers end,
 * requests that are rejected, and random requests.
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/numbers.h"
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

    /* a model may have several ends */

    f->base.config.ends.id[1] = 99;     /* token_of() has 100 and more */
    f->base.config.ends.n = 2;
    f->eos_number = 1;
    submit(s, &c[0], 0, 1, 10, 100, 1);
    run(s);
    assert_int_equal(c[0].usage.completion_tokens, 4);
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
    assert_int_equal(errno, EDQUOT);

    step(s);
    assert_null(dsa_sched_add(s, &request, &err));
    assert_int_equal(errno, EDQUOT);

    free(ids);
    run(s);

    for (i = 0; i < 7; i++) {
        check(&c[i], 20, DSA_FINISH_LENGTH);
    }

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


/* Penalties are a function of the last token, which the backend has. */

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

    /* a step ahead, too */

    assert_int_equal(f->inputs_from, depth == 2 ? 3 * 39 : 0);

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
            r = (uint32_t) (dsa_t_counted(11, round, i) * 1e9);

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


int
main(void)
{
    int  failed;

    const struct CMUnitTest  steps[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_backend_fails)
    };

    const struct CMUnitTest  any[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_queue),
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
