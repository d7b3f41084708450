
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The routing of the benchmarks: how often each expert is chosen.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/routing.h"


#define EXPERTS     64
#define TOKENS      200000


static void
model(dsa_model_config_t *config, uint32_t groups, uint32_t kept, uint32_t k)
{
    memset(config, 0, sizeof(dsa_model_config_t));

    config->n_routed_experts = EXPERTS;
    config->n_group = groups;
    config->topk_group = kept;
    config->num_experts_per_tok = k;
    config->norm_topk_prob = 1;
    config->routed_scaling_factor = 1;
}


static void
count(uint32_t rows[EXPERTS], const dsa_model_config_t *config, double zipf,
    uint64_t seed)
{
    int32_t   *expert;
    uint32_t   i, j, k;

    k = config->num_experts_per_tok;
    expert = malloc((size_t) TOKENS * k * sizeof(int32_t));
    assert_non_null(expert);
    assert_int_equal(dsa_bench_routing(expert, config, TOKENS, zipf, seed), 0);

    memset(rows, 0, EXPERTS * sizeof(uint32_t));

    for (i = 0; i < TOKENS * k; i++) {
        assert_in_range(expert[i], 0, EXPERTS - 1);
        rows[expert[i]]++;

        for (j = i / k * k; j < i; j++) {
            assert_int_not_equal(expert[i], expert[j]);
        }
    }

    free(expert);
}


/*
 * One expert of a token, without groups: the counts are those of Zipf's law, by
 * Pearson's test with 63 degrees of freedom.  A sample exceeds 130 once in a
 * million times.
 */

static void
test_law(void **state)
{
    double              sum, want, chi;
    uint32_t            i, n, rows[EXPERTS], order[EXPERTS];
    dsa_model_config_t  config;

    static const double  zipf[] = { 0, 0.5, 1, 2 };

    model(&config, 1, 1, 1);

    for (n = 0; n < sizeof(zipf) / sizeof(zipf[0]); n++) {
        count(rows, &config, zipf[n], n);
        dsa_bench_popular(order, EXPERTS, n);

        sum = 0;
        chi = 0;

        for (i = 0; i < EXPERTS; i++) {
            sum += pow(i + 1, -zipf[n]);
        }

        for (i = 0; i < EXPERTS; i++) {
            want = TOKENS * pow(i + 1, -zipf[n]) / sum;
            chi += (rows[order[i]] - want) * (rows[order[i]] - want) / want;
        }

        if (chi > 130) {
            fail_msg("exponent %g: %.1f", zipf[n], chi);
        }
    }
}


/* Several experts of a token, and groups: popular ones have more rows. */

static void
test_skew(void **state)
{
    double              first;
    uint32_t            i, n, rows[EXPERTS], order[EXPERTS];
    dsa_model_config_t  config;

    static const double  zipf[] = { 0, 0.5, 1 };

    model(&config, 8, 4, 6);
    first = 0;

    for (n = 0; n < sizeof(zipf) / sizeof(zipf[0]); n++) {
        count(rows, &config, zipf[n], 5);
        dsa_bench_popular(order, EXPERTS, 5);

        if (n == 0) {
            for (i = 0; i < EXPERTS; i++) {
                assert_in_range(rows[i], 0.95 * TOKENS * 6 / EXPERTS,
                                1.05 * TOKENS * 6 / EXPERTS);
            }

        } else {
            assert_true(rows[order[0]] > 1.5 * first);
            assert_true(rows[order[0]] > rows[order[8]]);
            assert_true(rows[order[8]] > rows[order[63]]);
        }

        assert_true(rows[order[0]] <= TOKENS);
        first = rows[order[0]];
    }
}


/* Each layer has other popular experts, and each expert is somewhere. */

static void
test_popular(void **state)
{
    uint32_t  i, same, order[EXPERTS], other[EXPERTS], seen[EXPERTS] = { 0 };

    dsa_bench_popular(order, EXPERTS, 1);
    dsa_bench_popular(other, EXPERTS, 2);
    same = 0;

    for (i = 0; i < EXPERTS; i++) {
        seen[order[i]]++;
        same += order[i] == other[i];
    }

    for (i = 0; i < EXPERTS; i++) {
        assert_int_equal(seen[i], 1);
    }

    assert_true(same < 10);
}


static void
test_exponent(void **state)
{
    double    zipf;
    uint32_t  i;

    static const char *const  wrong[] = {
        "", "x", "1x", "-1", "4.1", "nan", "inf", "-inf", "1e99"
    };

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(dsa_bench_zipf(&zipf, wrong[i]), -1);
    }

    assert_int_equal(dsa_bench_zipf(&zipf, "0.75"), 0);
    assert_true(zipf == 0.75);
    assert_int_equal(dsa_bench_zipf(&zipf, "0"), 0);
    assert_int_equal(dsa_bench_zipf(&zipf, "4"), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_law),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_popular),
        cmocka_unit_test(test_exponent)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
