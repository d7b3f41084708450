
/*
 * Copyright (C) The nginx-dsa authors
 *
 * token_target and first_token_target: the prompts in steps that have answers,
 * on a scripted backend with a clock of its own (scheduler.h).
 */


#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/schedule/pace.h"
#include "t/unit/scheduler.h"


#define BUDGET      2048
#define CHATS       4
#define PROMPT      20000


/* The limit of a step, by its answers and by how exact predictions are. */

static void
test_limit(void **state)
{
    dsa_pace_t  p;

    memset(&p, 0, sizeof(p));
    p.token = 50000;

    assert_true(dsa_pace_limit(&p, 10000, 0) == 50000);
    assert_true(dsa_pace_limit(&p, 0, 0) == 50000);

    /* answers take most of the target, or more: a quarter of their time */

    assert_true(dsa_pace_limit(&p, 40000, 0) == 50000);
    assert_true(dsa_pace_limit(&p, 44000, 0) == 55000);
    assert_true(dsa_pace_limit(&p, 80000, 0) == 100000);

    /* costs that vary by 5 %, and by half */

    assert_in_range((uint32_t) dsa_pace_limit(&p, 10000, 0.05), 45454, 45455);
    assert_true(dsa_pace_limit(&p, 10000, 0.5) == 40000);
}


/*
 * Steps of so many answers that want to be long all the time: how many tokens
 * are late, of all that a tenant alone, or one with a quarter of the weights,
 * makes wait.
 */

static double
late_of(uint32_t answers, double share, uint64_t *tokens)
{
    double           late;
    uint32_t         i;
    dsa_pace_t       p;
    dsa_pace_late_t  l;

    memset(&p, 0, sizeof(p));
    memset(&l, 0, sizeof(l));
    late = 0;
    *tokens = 0;

    for (i = 0; i < 20000; i++) {
        dsa_pace_answers(&p, answers);
        *tokens += answers;

        if (dsa_pace_may_wait(&p, &l, share, answers)) {
            dsa_pace_waits(&p, &l, share, answers);
            late += answers;
        }
    }

    return late;
}


static void
test_late(void **state)
{
    double    late;
    uint32_t  i;
    uint64_t  tokens;

    static const uint32_t  answers[] = { 1, 7, 64, 128, 512, 4096 };

    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        late = late_of(answers[i], 1, &tokens);
        assert_true(late >= (double) tokens / 200);
        assert_true(late <= (double) tokens / 200
                            + (answers[i] < 160 ? 160 : answers[i]));

        late = late_of(answers[i], 0.25, &tokens);
        assert_true(late >= (double) tokens / 800);
        assert_true(late <= (double) tokens / 800
                            + (answers[i] < 40 ? 40 : answers[i]));
    }
}


/* Two tenants share what is late: one that wants all of it gets its part. */

static void
test_late_tenants(void **state)
{
    double           late[2] = { 0 };
    uint32_t         i, j;
    dsa_pace_t       p;
    dsa_pace_late_t  l[2];

    memset(&p, 0, sizeof(p));
    memset(l, 0, sizeof(l));

    for (i = 0; i < 60000; i++) {
        dsa_pace_answers(&p, 10);

        /* the first one always wants to, the second one in each tenth step */

        for (j = 0; j < 2; j++) {
            if ((j == 0 || i % 10 == 0)
                && dsa_pace_may_wait(&p, &l[j], 0.5, 10))
            {
                dsa_pace_waits(&p, &l[j], 0.5, 10);
                late[j] += 10;
                break;
            }
        }
    }

    assert_in_range((uint32_t) late[0], 1400, 1600);
    assert_in_range((uint32_t) late[1], 1400, 1600);
}


/* Four chats that decode, and a long prompt. */

typedef struct {
    fake_t             *f;
    client_t           *c;              /* [CHATS + 1] */
    dsa_sched_t        *s;
} bench_t;


static void
bench_start(bench_t *b, uint32_t target_ms)
{
    uint32_t  i;

    token_target_ms = target_ms;
    b->c = calloc(CHATS + 1, sizeof(client_t));
    assert_non_null(b->c);
    b->s = start(&b->f, 1000, 8, BUDGET);
    b->f->base_us = 10000;
    b->f->token_us = 100;

    for (i = 0; i < CHATS; i++) {
        b->c[i].seed = i;
        submit(b->s, &b->c[i], 1, i, 20, 1000, 1);
    }

    for (i = 0; i < 10; i++) {
        step(b->s);
    }

    submit(b->s, &b->c[CHATS], 2, 99, PROMPT, 5, 1);
}


static void
bench_finish(bench_t *b)
{
    uint32_t  i;

    b->f->base_us = 0;
    b->f->token_us = 0;
    run(b->s);

    for (i = 0; i < CHATS; i++) {
        check(&b->c[i], 1000, DSA_FINISH_LENGTH);
    }

    check(&b->c[CHATS], 5, DSA_FINISH_LENGTH);
    check_free(b->s);
    finish(b->s, b->f);
    free(b->c);
    token_target_ms = 0;
    first_token_target_ms = 0;
}


/* Steps until the prompt is read; the longest of them in us. */

static uint32_t
bench_read(bench_t *b, uint32_t most, uint64_t *longest)
{
    uint32_t  n;
    uint64_t  from;

    *longest = 0;

    for (n = 0; n < most && b->c[CHATS].n == 0; n++) {
        from = b->f->now_us;
        step(b->s);

        if (b->f->now_us - from > *longest) {
            *longest = b->f->now_us - from;
        }
    }

    return n;
}


static void
test_target(void **state)
{
    bench_t   b;
    uint32_t  n;
    uint64_t  longest;

    /* without a target, a step takes 10 + 2048 * 0.1 ms */

    bench_start(&b, 0);
    n = bench_read(&b, 1000, &longest);
    assert_in_range(longest, 200000, 220000);
    assert_in_range(n, PROMPT / BUDGET, PROMPT / BUDGET + 3);
    bench_finish(&b);

    /* 400 tokens fit 50 ms beside the decodes */

    bench_start(&b, 50);
    n = bench_read(&b, 1000, &longest);
    assert_in_range(longest, 40000, 55000);
    assert_in_range(n, PROMPT / 400, PROMPT / 400 + 15);
    bench_finish(&b);
}


/* Computing becomes ten times slower for a while, then fast again. */

static void
test_recovers(void **state)
{
    bench_t   b;
    uint32_t  n;
    uint64_t  longest;

    bench_start(&b, 50);

    (void) bench_read(&b, 15, &longest);
    assert_in_range(longest, 40000, 55000);

    b.f->token_us = 1000;
    n = bench_read(&b, 10, &longest);
    assert_int_equal(n, 10);
    n = bench_read(&b, 10, &longest);
    assert_int_equal(n, 10);
    assert_in_range(longest, 30000, 60000);

    b.f->token_us = 100;
    (void) bench_read(&b, 15, &longest);
    (void) bench_read(&b, 5, &longest);
    assert_in_range(longest, 40000, 60000);

    bench_finish(&b);
}


/* A page-in: one step takes 100 times as long, and few steps notice. */

static void
test_outlier(void **state)
{
    bench_t   b;
    uint32_t  n;
    uint64_t  longest;

    bench_start(&b, 50);
    (void) bench_read(&b, 20, &longest);

    b.f->base_us = 1000000;
    (void) bench_read(&b, 1, &longest);
    b.f->base_us = 10000;

    /* the step after it had been made before it ended */

    (void) bench_read(&b, 1, &longest);

    for (n = 0; n < 4; n++) {
        (void) bench_read(&b, 1, &longest);
        assert_in_range(longest, 20000, 55000);
    }

    (void) bench_read(&b, 5, &longest);
    assert_in_range(longest, 40000, 55000);

    bench_finish(&b);
}


/* Slow tokens, and a target that decodes alone exceed: the least chunks. */

static void
test_least(void **state)
{
    bench_t   b;
    uint32_t  n;
    uint64_t  longest;

    bench_start(&b, 5);
    b.f->token_us = 1000;
    (void) bench_read(&b, 5, &longest);

    for (n = 0; n < 20; n++) {
        assert_int_equal(bench_read(&b, 1, &longest), 1);
        assert_in_range(b.f->n_tokens, DSA_PACE_LEAST,
                        DSA_PACE_LEAST + CHATS);
    }

    bench_finish(&b);
}


/* Without decodes a prompt takes the whole budget. */

static void
test_alone(void **state)
{
    fake_t       *f;
    uint32_t      i;
    client_t     *c;
    dsa_sched_t  *s;

    token_target_ms = 50;
    c = calloc(1, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 1000, 8, BUDGET);
    f->base_us = 10000;
    f->token_us = 100;

    submit(s, c, 0, 1, PROMPT, 5, 1);

    for (i = 0; i < PROMPT / BUDGET; i++) {
        step(s);
        assert_int_equal(f->n_tokens, BUDGET);
    }

    run(s);
    check(c, 5, DSA_FINISH_LENGTH);

    check_free(s);
    finish(s, f);
    free(c);
    token_target_ms = 0;
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  pace[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_late_tenants)
    };

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_recovers),
        cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_alone)
    };

    failed = cmocka_run_group_tests_name("formula", pace, NULL, NULL);

    depth = 1;
    failed += cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
