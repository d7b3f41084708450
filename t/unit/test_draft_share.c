
/*
 * Copyright (C) The nginx-dsa authors
 *
 * How often drafts of random weights are right: what is computed is what the
 * sampler draws, and the temperature for a share has this share.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/draft_share.h"
#include "kernels/sample/noise.h"
#include "kernels/sample/sample.h"


#define IDS     8000
#define ROWS    500


static float    logits[IDS];
static float    scratch[IDS];


/* Normally distributed logits, others for each row. */

static void
draw_logits(uint64_t row, double deviation)
{
    double    u, v;
    uint32_t  i, x[4];

    for (i = 0; i < IDS; i++) {
        dsa_noise_words(x, 11, row, i, 0);

        u = ((double) x[0] + 0.5) / 4294967296.0;
        v = (double) x[1] / 4294967296.0;
        logits[i] = (float) (deviation * sqrt(-2 * log(u))
                             * cos(2 * M_PI * v));
    }
}


/* The model samples from a row, and its draft layer from the row behind it. */

static double
sampled_share(double deviation, float temperature)
{
    uint32_t        i, right;
    dsa_biases_t    biases;
    dsa_sample_t    model, draft;
    dsa_sampling_t  s;

    memset(&s, 0, sizeof(s));
    memset(&biases, 0, sizeof(biases));
    s.temperature = temperature;
    s.top_p = 1;
    right = 0;

    for (i = 0; i < ROWS; i++) {
        draw_logits(2 * i, deviation);
        dsa_sample(&model, &s, &biases, logits, IDS, IDS, NULL, NULL, 0, i,
                   scratch);
        draw_logits(2 * i + 1, deviation);
        dsa_sample(&draft, &s, &biases, logits, IDS, IDS, NULL, NULL, 0, i,
                   scratch);

        right += model.token == draft.token;
    }

    return (double) right / ROWS;
}


static void
test_share(void **state)
{
    double  share;

    share = sampled_share(0.2, 1);
    assert_true(fabs(share - bench_draft_share(0.2)) < 0.05);

    share = sampled_share(0.7, 1);
    assert_true(fabs(share - bench_draft_share(0.7)) < 0.06);

    /* twice the temperature is half the deviation */

    share = sampled_share(1, 2);
    assert_true(fabs(share - bench_draft_share(0.5)) < 0.06);

    /* equal logits have equal samples */

    assert_true(fabs(bench_draft_share(1e-6) - 1) < 1e-4);
}


static void
test_temperature(void **state)
{
    size_t  i;
    double  t;

    static const double  share[] = { 0.01, 0.3, 0.6, 0.85, 0.92 };

    for (i = 0; i < sizeof(share) / sizeof(share[0]); i++) {
        t = bench_draft_temperature(share[i], 0.2);

        assert_true(t > 0 && t <= BENCH_TEMPERATURE);
        assert_true(fabs(bench_draft_share(0.2 / t) - share[i]) < 1e-4);
    }

    assert_true(bench_draft_temperature(0.95, 0.2) == 0);
    assert_true(bench_draft_temperature(1, 0.2) == 0);
    assert_true(bench_draft_temperature(0, 0.2) == 0);
    assert_true(bench_draft_temperature(-1, 0.2) == 0);
    assert_true(bench_draft_temperature(NAN, 0.2) == 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_temperature)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
