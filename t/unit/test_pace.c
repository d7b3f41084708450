
/*
 * Copyright (C) The nginx-dsa authors
 *
 * step_target: the prefill part of steps that have decodes, on a scripted
 * backend with a clock of its own (scheduler.h).
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


/* Steps of base us and rate us per prefill token, as the limit permits. */

static uint64_t
pace_steps(dsa_pace_t *p, uint32_t n, double base, double rate)
{
    uint32_t  i, limit;
    uint64_t  duration;

    duration = 0;

    for (i = 0; i < n; i++) {
        limit = dsa_pace_limit(p, CHATS, BUDGET);
        duration = (uint64_t) (base + rate * limit);
        dsa_pace_measure(p, duration, CHATS, limit);
    }

    return duration;
}


static void
test_limit(void **state)
{
    uint32_t    i;
    dsa_pace_t  p;

    memset(&p, 0, sizeof(p));

    /* no target */

    assert_int_equal(dsa_pace_limit(&p, CHATS, BUDGET), BUDGET);

    /* no decodes */

    p.target = 50000;
    assert_int_equal(dsa_pace_limit(&p, 0, BUDGET), BUDGET);

    /* nothing measured yet, and a small budget */

    assert_int_equal(dsa_pace_limit(&p, CHATS, BUDGET), DSA_PACE_LEAST);
    assert_int_equal(dsa_pace_limit(&p, CHATS, 5), 5);

    /* steps of 10 ms, then 0.1 ms for each of 16 tokens */

    for (i = 0; i < 5; i++) {
        dsa_pace_measure(&p, 10000, CHATS, 0);
    }

    dsa_pace_measure(&p, 11600, CHATS, 16);

    /* (50 - 10) / 0.1 = 400, but at most four times as many as measured */

    assert_int_equal(dsa_pace_limit(&p, CHATS, BUDGET), 64);

    for (i = 0; i < 10; i++) {
        dsa_pace_measure(&p, 20000, CHATS, 100);
    }

    assert_in_range(dsa_pace_limit(&p, CHATS, BUDGET), 350, 400);

    /* steps without decodes are not measured */

    for (i = 0; i < 10; i++) {
        dsa_pace_measure(&p, 1000000, 0, 2000);
    }

    assert_in_range(dsa_pace_limit(&p, CHATS, BUDGET), 350, 400);
}


/* The duration comes near the target, whatever is known before. */

static void
test_converges(void **state)
{
    uint32_t    i;
    dsa_pace_t  p;

    static const struct {
        double  base;           /* as measured */
        double  real;           /* as it is while prompts arrive */
        double  rate;
    } cases[] = {
        { 10000, 10000, 100 },
        { 0, 10000, 100 },
        { 2000, 30000, 500 },
        { 45000, 10000, 100 },
        { 80000, 10000, 100 },
        { 49999, 20000, 30 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&p, 0, sizeof(p));
        p.target = 50000;
        p.base = cases[i].base;

        (void) pace_steps(&p, 40, cases[i].real, cases[i].rate);
        assert_in_range(pace_steps(&p, 1, cases[i].real, cases[i].rate),
                        45000, 55000);
    }

    /* cheap tokens: the budget is the limit */

    memset(&p, 0, sizeof(p));
    p.target = 50000;
    p.base = 10000;
    assert_int_equal(pace_steps(&p, 40, 10000, 1), 10000 + BUDGET);

    /* decodes exceed the target: a quarter of their time is for prefill */

    memset(&p, 0, sizeof(p));
    p.target = 5000;
    p.base = 10000;
    assert_in_range(pace_steps(&p, 40, 10000, 100), 12000, 13000);

    /* tokens are so slow that this is less than the least chunk */

    memset(&p, 0, sizeof(p));
    p.target = 5000;
    p.base = 10000;
    assert_int_equal(pace_steps(&p, 40, 10000, 1000),
                     10000 + 1000 * DSA_PACE_LEAST);
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

    step_target_ms = target_ms;
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
    step_target_ms = 0;
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
    assert_in_range(longest, 40000, 60000);

    b.f->token_us = 100;
    (void) bench_read(&b, 15, &longest);
    (void) bench_read(&b, 5, &longest);
    assert_in_range(longest, 40000, 60000);

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

    step_target_ms = 50;
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
    step_target_ms = 0;
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  pace[] = {
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_converges)
    };

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_recovers),
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
