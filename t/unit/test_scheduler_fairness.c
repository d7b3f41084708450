
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The scheduler on a scripted backend (scheduler.h): the shares of tenants.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/scheduler.h"


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
    /* batch indices are scarce, and tokens */

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
 * One tenant has taken all batch indices with long answers.  Another tenant
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
 * that are admitted before it leave batch indices free, or take the last one
 * each time.
 */

static void
test_patience(void **state)
{
    check_patience(16);
    check_patience(4);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  steps[] = {
        cmocka_unit_test(test_latecomer),
        cmocka_unit_test(test_patience)
    };

    const struct CMUnitTest  any[] = {
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_newcomer)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("steps", steps, NULL, NULL);
    failed += cmocka_run_group_tests_name("one at a time", any, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", any, NULL, NULL);

    return failed;
}
