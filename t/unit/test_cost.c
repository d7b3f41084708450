
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The costs of steps that the scheduler learns, with those of real GPUs
 * (gpu_cost.h), and with durations that make no sense.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/schedule/cost.h"
#include "t/unit/gpu_cost.h"


static uint64_t  seed;


static uint32_t
below(uint32_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;

    return (uint32_t) (seed >> 33) % n;
}


/* Some answers and some rows of a prompt, both with their context. */

typedef struct {
    uint32_t            answers;
    uint32_t            context;        /* of each answer */
    uint32_t            prompt;
    uint32_t            start;          /* of the prompt */
} load_t;


static void
load_of(const load_t *l, dsa_cost_load_t *load)
{
    uint32_t  i;

    memset(load, 0, sizeof(dsa_cost_load_t));

    for (i = 0; i < l->answers; i++) {
        dsa_cost_answer(load, 1, l->context);
    }

    if (l->prompt != 0) {
        dsa_cost_prompt(load, l->prompt, l->start);
    }
}


static double
us_of(const load_t *l)
{
    return 1000 * gpu_ms(l->answers + l->prompt,
                         (double) l->answers * l->context,
                         l->prompt * (l->start + l->prompt / 2.0));
}


/* Steps of a server: short and long prompts beside answers of any number. */

static void
serve(dsa_cost_t *c, uint32_t steps)
{
    load_t           l;
    uint32_t         i;
    dsa_cost_load_t  load;

    for (i = 0; i < steps; i++) {
        l.answers = below(129);
        l.context = 500 + below(4000);
        l.prompt = l.answers == 0 || below(2) ? 100 + below(900) : 0;
        l.start = below(4) == 0 ? below(100000) : below(2000);

        load_of(&l, &load);
        dsa_cost_measure(c, &load, us_of(&l));
    }
}


static void
check_loads(const dsa_cost_t *c, double speed, double most)
{
    double           us;
    uint32_t         i;
    dsa_cost_load_t  load;

    static const load_t  loads[] = {
        { 8, 1000, 500, 0 },
        { 64, 1000, 0, 0 },
        { 64, 1000, 700, 500 },
        { 64, 4000, 700, 500 },
        { 128, 2000, 500, 1000 },
        { 64, 1000, 700, 80000 },
        { 32, 1000, 200, 40000 },
        { 0, 0, 900, 10000 }
    };

    for (i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        load_of(&loads[i], &load);
        us = dsa_cost_step(c, &load);

        if (fabs(us / (speed * us_of(&loads[i])) - 1) > most) {
            fail_msg("load %u: %.0f us are expected, it takes %.0f", i, us,
                     speed * us_of(&loads[i]));
        }
    }
}


/* Nothing is measured: no time is known, and no row is affordable. */

static void
test_empty(void **state)
{
    dsa_cost_t       c;
    dsa_cost_load_t  load;

    memset(&c, 0, sizeof(c));
    memset(&load, 0, sizeof(load));

    dsa_cost_measure(&c, &load, 1000);
    assert_true(dsa_cost_step(&c, &load) == 0);

    dsa_cost_answer(&load, 1, 100);
    assert_true(dsa_cost_step(&c, &load) == 0);
    assert_int_equal(dsa_cost_rows(&c, &load, 0, 1000, 1e9), 0);

    /* after one step, the same is expected, and more rows take longer */

    dsa_cost_measure(&c, &load, 1000);
    assert_true(fabs(dsa_cost_step(&c, &load) - 1000) < 10);
    assert_in_range(dsa_cost_rows(&c, &load, 0, 1000, 10000), 8, 10);
}


/* The costs of real GPUs are learned from the steps of a server. */

static void
test_learns(void **state)
{
    dsa_cost_t  c;

    memset(&c, 0, sizeof(c));
    seed = 1;
    serve(&c, 2000);
    check_loads(&c, 1, 0.12);
    assert_true(c.error < 0.12);
}


/* 2000 steps of all kinds, and then a load of one kind. */

static const load_t  usual = { 64, 1000, 700, 500 };


static void
serve_usual(dsa_cost_t *c, dsa_cost_load_t *load)
{
    memset(c, 0, sizeof(dsa_cost_t));
    seed = 1;
    serve(c, 2000);
    load_of(&usual, load);
}


/* Five steps that take us each are enough to expect that time. */

static void
check_corrected(dsa_cost_t *c, const dsa_cost_load_t *load, double us)
{
    uint32_t  i;

    for (i = 0; i < 5; i++) {
        dsa_cost_measure(c, load, us);
    }

    assert_true(fabs(dsa_cost_step(c, load) / us - 1) < 0.1);
}


/* The clock of the GPU halves: a few steps of one kind correct all others. */

static void
test_jump(void **state)
{
    dsa_cost_t       c;
    dsa_cost_load_t  load;

    serve_usual(&c, &load);

    check_corrected(&c, &load, 2 * us_of(&usual));

    /* and it runs at its full clock again */

    check_corrected(&c, &load, us_of(&usual));
}


/* One step waits for a second; what is expected hardly changes. */

static void
test_outlier(void **state)
{
    double           before;
    dsa_cost_t       c;
    dsa_cost_load_t  load;

    serve_usual(&c, &load);

    dsa_cost_measure(&c, &load, us_of(&usual));
    before = dsa_cost_step(&c, &load);
    dsa_cost_measure(&c, &load, us_of(&usual) + 1e6);
    assert_true(dsa_cost_step(&c, &load) < 1.2 * before);
    assert_true(dsa_cost_step(&c, &load) >= before);

    /* also if it is the first step of all */

    memset(&c, 0, sizeof(c));
    dsa_cost_measure(&c, &load, us_of(&usual) + 1e6);
    check_corrected(&c, &load, us_of(&usual));
}


/*
 * Durations that mean nothing: the table stays finite and positive, it never
 * decreases with the rows, and the rows that fit a limit are those that do.
 */

static void
test_nonsense(void **state)
{
    load_t           l;
    double           us, last, limit;
    uint32_t         i, n;
    dsa_cost_t       c;
    dsa_cost_load_t  load, more;

    memset(&c, 0, sizeof(c));
    seed = 7;

    for (i = 0; i < 20000; i++) {
        l.answers = below(200);
        l.context = below(200000);
        l.prompt = below(3) == 0 ? below(100000) : below(10);
        l.start = below(200000);

        load_of(&l, &load);
        dsa_cost_drafts(&load, below(500));
        us = ldexp(below(1000), (int) below(40) - 5);
        dsa_cost_measure(&c, &load, below(50) == 0 ? 0 : us);

        if (below(8) == 0) {

            /* a little longer than expected: the shorter entry grows first */

            memset(&load, 0, sizeof(load));
            dsa_cost_answer(&load, 1U << below(16), 0);
            dsa_cost_measure(&c, &load, 1.2 * dsa_cost_step(&c, &load));
        }

        last = 0;

        for (n = 1; n < 200000; n = n * 7 / 4 + 1) {
            memset(&load, 0, sizeof(load));
            load.rows = n;
            us = dsa_cost_step(&c, &load);
            assert_true(isfinite(us) && us > 0 && us >= last);
            last = us;
        }

        memset(&load, 0, sizeof(load));
        dsa_cost_answer(&load, 5, 1000);
        limit = last * below(1000) / 1000;
        n = dsa_cost_rows(&c, &load, 100, 50000, limit);

        if (n != 0) {
            more = load;
            dsa_cost_prompt(&more, n, 100);
            assert_true(dsa_cost_step(&c, &more) <= limit);
        }

        if (n != 50000) {
            more = load;
            dsa_cost_prompt(&more, n + 1, 100);
            assert_true(dsa_cost_step(&c, &more) > limit);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_nonsense)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
