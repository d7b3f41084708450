
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * The router: which experts a token has, and with which weights.  Choices are
 * equal to those of the CPU twin in every bit, and to those in float64 unless
 * two experts are equal in float32.  exp() sometimes differs from the CPU's by
 * an ulp, which changes some of the weights.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/moe/moe.h"
#include "t/gpu/gpu.h"
#include "t/gpu/rows.h"
#include "t/unit/numbers.h"


enum {
    UNIFORM = 0,
    STEPS,              /* many equal scores */
    EQUAL,
    STRANGE,            /* NaNs, infinities, equal sigmoids */
    KINDS
};


static void
fill_logits(float *x, size_t n, int kind)
{
    size_t  i;

    static const float  strange[] = {
        NAN, INFINITY, -INFINITY, 100, -100, 30, 31, 0, -0.0f, 1e-30f
    };

    for (i = 0; i < n; i++) {
        x[i] = kind == UNIFORM ? dsa_t_uniform() * 4
               : kind == STEPS ? (float) dsa_t_random(9) * 0.5f - 2
               : kind == EQUAL ? 0.25f
               : dsa_t_random(2) ? strange[dsa_t_random(10)]
               : dsa_t_uniform();
    }
}


/*
 * The choice in float64 for finite logits: b of all experts, and the chosen
 * ones.
 */

static void
route_float64(double *s, double *b, int32_t *expert, const float *logits,
    const float *bias, const dsa_router_t *r)
{
    double    v, best, first, second, group[512];
    uint32_t  i, j, g, e, size;

    size = r->experts / r->groups;

    for (i = 0; i < r->experts; i++) {
        s[i] = 1 / (1 + exp(-(double) logits[i]));
        b[i] = s[i] + bias[i];
    }

    for (g = 0; g < r->groups; g++) {
        first = second = -INFINITY;

        for (i = g * size; i < (g + 1) * size; i++) {
            v = b[i];
            second = fmax(second, fmin(first, v));
            first = fmax(first, v);
        }

        group[g] = first + second;
    }

    for (j = 0; j < r->groups - r->groups_kept; j++) {
        for (g = 0, e = 0, best = INFINITY; g < r->groups; g++) {
            if (group[g] <= best) {
                best = group[g];
                e = g;
            }
        }

        group[e] = INFINITY;

        for (i = e * size; i < (e + 1) * size; i++) {
            b[i] = -INFINITY;
        }
    }

    for (j = 0; j < r->k; j++) {
        for (i = 0, e = 0, best = -INFINITY; i < r->experts; i++) {
            for (g = 0; g < j && expert[g] != (int32_t) i; g++) { /* void */ }

            if (g == j && b[i] > best) {
                best = b[i];
                e = i;
            }
        }

        expert[j] = (int32_t) e;
    }
}


static void
route_case(const dsa_router_t *r, uint32_t rows, int kind)
{
    float     *logits, *bias, *weight, *want, *got, *scratch, *device_logits,
              *device_bias;
    double    *s, *b, sum;
    size_t     i, j, n, other;
    int32_t   *expert, *want_expert, *got_expert, *exact;

    n = (size_t) rows * r->experts;
    logits = get(n * sizeof(float));
    bias = get(r->experts * sizeof(float));
    scratch = get((2 * r->experts + r->groups) * sizeof(float));
    want = get(rows * r->k * sizeof(float));
    got = get(rows * r->k * sizeof(float));
    want_expert = get(rows * r->k * 4);
    got_expert = get(rows * r->k * 4);
    exact = get(r->k * 4);
    s = get(r->experts * sizeof(double));
    b = get(r->experts * sizeof(double));

    fill_logits(logits, n, kind);

    if (kind == UNIFORM) {
        dsa_t_fill(bias, r->experts, 0.2f);
    }

    device_logits = gpu_upload(logits, n * sizeof(float));
    device_bias = gpu_upload(bias, r->experts * sizeof(float));
    expert = gpu_alloc(rows * r->k * 4);
    weight = gpu_alloc(rows * r->k * sizeof(float));

    gpu_ok(dsa_cuda_route(expert, weight, device_logits, device_bias, rows, r,
                          NULL));
    dsa_route(want_expert, want, logits, bias, rows, r, scratch);

    same(expert, want_expert, rows * r->k * 4);
    gpu_download(got, weight, rows * r->k * sizeof(float));

    other = 0;

    for (i = 0; i < rows * r->k; i++) {
        if (isnan(want[i])) {
            assert_true(isnan(got[i]));
            continue;
        }

        assert_true(fabsf(got[i] - want[i]) <= 1e-6f * fabsf(want[i]));
        other += memcmp(&got[i], &want[i], sizeof(float)) != 0;
    }

    /* both round exp() correctly except in rare cases */

    assert_true(other <= rows * r->k / 200 + r->k);

    for (i = 0; kind == UNIFORM && i < rows; i++) {
        route_float64(s, b, exact, logits + i * r->experts, bias, r);
        sum = 0;

        for (j = 0; j < r->k; j++) {
            sum += s[want_expert[i * r->k + j]];

            /* another expert only if the two are equal in float32 */

            assert_true(exact[j] == want_expert[i * r->k + j]
                        || fabs(b[exact[j]] - b[want_expert[i * r->k + j]])
                           < 2e-7);
        }

        for (j = 0; j < r->k; j++) {
            assert_true(fabs(got[i * r->k + j] * (r->normalize ? sum : 1)
                             / s[want_expert[i * r->k + j]] / r->scale - 1)
                        < 1e-6);
        }
    }

    /* a second run, and the last row alone */

    gpu_poison(expert, rows * r->k * 4);
    gpu_poison(weight, rows * r->k * 4);
    gpu_ok(dsa_cuda_route(expert, weight, device_logits, device_bias, rows, r,
                          NULL));
    same(expert, want_expert, rows * r->k * 4);
    same(weight, got, rows * r->k * 4);

    gpu_ok(dsa_cuda_route(expert, weight, device_logits + n - r->experts,
                          device_bias, 1, r, NULL));
    same(expert, want_expert + (rows - 1) * r->k, r->k * 4);
    same(weight, got + (rows - 1) * r->k, r->k * 4);

    free(logits);
    free(bias);
    free(scratch);
    free(want);
    free(got);
    free(want_expert);
    free(got_expert);
    free(exact);
    free(s);
    free(b);
}


static void
test_route(void **state)
{
    int     kind;
    size_t  i;

    static const dsa_router_t  routers[] = {
        { 256, 8, 4, 8, 1, 2.5f },
        { 256, 1, 1, 8, 1, 2.5f },
        { 512, 1, 1, 16, 1, 1.0f },
        { 512, 16, 3, 10, 0, 2.5f },
        { 160, 8, 3, 6, 0, 16.0f },
        { 64, 1, 1, 6, 1, 1.0f },
        { 60, 5, 2, 4, 1, 1.0f },
        { 256, 128, 8, 8, 1, 2.5f },
        { 300, 3, 1, 16, 1, 2.5f },
        { 6, 3, 2, 4, 1, 2.5f },
        { 2, 1, 1, 1, 1, 2.5f }
    };

    for (i = 0; i < sizeof(routers) / sizeof(routers[0]); i++) {
        for (kind = 0; kind < KINDS; kind++) {
            route_case(&routers[i], i == 0 ? 2000 : 70, kind);
            route_case(&routers[i], 1, kind);
            (void) gpu_free_all(NULL);
        }
    }
}


static void
test_refusals(void **state)
{
    float    *w;
    size_t    i;
    int32_t  *id;

    static const dsa_router_t  routers[] = {
        { 513, 1, 1, 8, 1, 1 },
        { 256, 0, 0, 8, 1, 1 },
        { 256, 7, 3, 8, 1, 1 },
        { 256, 256, 8, 8, 1, 1 },
        { 256, 8, 9, 8, 1, 1 },
        { 256, 8, 4, 17, 1, 1 },
        { 256, 8, 4, 0, 1, 1 },
        { 256, 64, 1, 8, 1, 1 }
    };

    w = gpu_alloc(1 << 16);
    id = gpu_alloc(1 << 16);

    for (i = 0; i < sizeof(routers) / sizeof(routers[0]); i++) {
        assert_int_equal(dsa_cuda_route(id, w, w, w, 1, &routers[i], NULL),
                         cudaErrorInvalidValue);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_route, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
