
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * What is done with the rows of a plan before, between and after the experts'
 * products.  Copies and the weighted sum are equal to those of the CPU twins in
 * every bit.  exp() sometimes differs from the CPU's by an ulp, which changes,
 * after rounding to bf16, few of SwiGLU's codes.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/core/fp8.h"
#include "kernels/moe/moe.h"
#include "t/gpu/gpu.h"
#include "t/gpu/plans.h"
#include "t/unit/numbers.h"


/*
 * n random numbers that are bf16.  Those of numbers() have outliers, for which
 * SwiGLU depends little on exp().
 */

static float *
uniform(size_t n, float scale)
{
    float  *x;

    x = get(n * sizeof(float));
    dsa_t_fill(x, n, scale);
    dsa_bf16_round_rows(x, n);

    return x;
}


static void
gather_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t align,
    uint32_t few, int skew, uint32_t cols)
{
    float           *scale, *want_scale;
    size_t           i, g, p, n;
    uint8_t         *q, *want;
    test_plan_t      t;
    dsa_fp8_rows_t   x, y;

    plan_make(&t, rows, k, experts, align, few, skew);

    n = (size_t) rows * cols;
    x = fp8_rows(rows, cols);
    y = fp8_rows(t.host.places, cols);
    q = get(n);
    scale = get(cols / 128 * x.ld * 4);
    want = get((size_t) t.host.places * cols);
    want_scale = get(cols / 128 * y.ld * 4);

    for (i = 0; i < n; i++) {
        q[i] = (uint8_t) dsa_t_random(256);
    }

    dsa_t_fill(scale, cols / 128 * x.ld, 1);
    gpu_ok(cudaMemcpy(x.q, q, n, cudaMemcpyHostToDevice));
    gpu_ok(cudaMemcpy(x.scale, scale, cols / 128 * x.ld * 4,
                      cudaMemcpyHostToDevice));

    memset(want, 0xff, (size_t) t.host.places * cols);
    memset(want_scale, 0xff, cols / 128 * y.ld * 4);

    for (i = 0; i < (size_t) rows * k; i++) {
        if (t.host.place[i] < 0) {
            continue;
        }

        p = (size_t) t.host.place[i];
        memcpy(want + p * cols, q + i / k * cols, cols);

        for (g = 0; g < cols / 128; g++) {
            want_scale[g * y.ld + p] = scale[g * x.ld + i / k];
        }
    }

    gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                             NULL));
    gpu_ok(dsa_cuda_moe_gather(&y, &x, &t.device, rows, k, experts,
                               cols, NULL));

    same(y.q, want, (size_t) t.host.places * cols);
    same(y.scale, want_scale, cols / 128 * y.ld * 4);

    free(q);
    free(scale);
    free(want);
    free(want_scale);
    plan_free(&t);
}


static void
test_gather(void **state)
{
    gather_case(1, 8, 256, 8, 100, 0, 7168);
    gather_case(128, 8, 256, 16, 100, 0, 7168);
    gather_case(1500, 8, 256, 64, 100, 0, 1024);
    gather_case(1500, 8, 256, 128, 12, 1, 128);
    gather_case(600, 16, 512, 32, 100, 1, 7296);
    gather_case(9, 2, 2, 8, 100, 0, 16384);
    gather_case(5, 2, 3, 8, 0, 0, 256);
    gather_case(700, 1, 1, 128, 100, 0, 256);
}


/*
 * Against the twins, and against float64 within half of e4m3's step, which is
 * at most 2^-4 of a number, plus the two roundings to bf16; below 2^-6 of the
 * scale the step is 2^-9 of it.  used [rows], or NULL: rows with a number below
 * 0 are not computed.  A scale that is not a power of two has the bits of the
 * greatest value of its group.  Where this value is rounded to the other bf16,
 * the scale differs by up to 2^-7 of it, and with it the codes of the group.
 */

static void
swiglu_check(const dsa_fp8_rows_t *y, const float *x, const int32_t *used,
    size_t rows, uint32_t cols, int ue8m0)
{
    float    *v, *scale, *want_scale, s;
    double    g, exact, got;
    size_t    i, j, at, n, other, scales;
    int32_t   d;
    uint8_t  *q, *want;

    n = rows * cols;
    q = get(n);
    v = get(cols * sizeof(float));
    want = get(n);
    scale = get(cols / 128 * y->ld * 4);
    want_scale = get(cols / 128 * y->ld * 4);

    gpu_download(q, y->q, n);
    gpu_download(scale, y->scale, cols / 128 * y->ld * 4);
    memset(want, 0xff, n);
    memset(want_scale, 0xff, cols / 128 * y->ld * 4);

    for (i = 0; i < rows; i++) {
        if (used != NULL && used[i] < 0) {
            continue;
        }

        dsa_swiglu(v, x + i * 2 * cols, x + i * 2 * cols + cols, cols, 1);

        for (j = 0; j < cols; j += 128) {
            s = dsa_fp8_scale(v + j, 128, ue8m0);
            want_scale[j / 128 * y->ld + i] = s;

            for (at = j; at < j + 128; at++) {
                want[i * cols + at] = dsa_e4m3_code(dsa_e4m3_round(v[at] / s));
            }
        }

        for (j = 0; j < cols; j++) {
            g = x[i * 2 * cols + j];
            exact = g / (1 + exp(-g)) * x[i * 2 * cols + cols + j];
            s = scale[j / 128 * y->ld + i];
            at = q[i * cols + j];
            got = (double) s * dsa_e4m3_value[at];

            assert_true(fabs(got - exact)
                        <= fabs(exact) * (1.0 / 16 + 1.0 / 500)
                           + (double) s / 1024);
        }
    }

    other = 0;
    scales = 0;

    for (i = 0; i < cols / 128 * y->ld; i++) {
        if (memcmp(&scale[i], &want_scale[i], sizeof(float)) != 0) {
            assert_true(fabsf(scale[i] - want_scale[i])
                        <= want_scale[i] / 128);
            scales++;
        }
    }

    for (i = 0; i < n; i++) {
        if (q[i] != want[i]) {
            d = (int32_t) q[i] - want[i];
            assert_true(d == 1 || d == -1);
            at = i % cols / 128 * y->ld + i / cols;
            other += memcmp(&scale[at], &want_scale[at], sizeof(float)) == 0;
        }
    }

    assert_true(other <= n / 20000 + 2);
    assert_true(scales <= (ue8m0 ? 0 : n / 128 / 500 + 2));

    free(q);
    free(v);
    free(want);
    free(scale);
    free(want_scale);
}


static void
swiglu_case(uint32_t rows, uint32_t cols, int ue8m0)
{
    float           *x;
    uint8_t         *v;
    uint16_t        *device_x;
    dsa_fp8_rows_t   y;

    x = uniform((size_t) rows * 2 * cols, 8.0f);
    device_x = gpu_upload_bf16(x, (size_t) rows * 2 * cols);
    y = fp8_rows(rows, cols);

    gpu_ok(dsa_cuda_swiglu(&y, device_x, rows, cols, NULL, 0, ue8m0, NULL));
    swiglu_check(&y, x, NULL, rows, cols, ue8m0);

    /* a second run, of the last row alone */

    v = get((size_t) rows * cols);
    gpu_download(v, y.q, (size_t) rows * cols);
    gpu_poison(y.q, (size_t) rows * cols);
    gpu_ok(dsa_cuda_swiglu(&y, device_x + (size_t) (rows - 1) * 2 * cols, 1,
                           cols, NULL, 0, ue8m0, NULL));
    same(y.q, v + (size_t) (rows - 1) * cols, cols);

    free(x);
    free(v);
}


static void
swiglu_plan_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t align,
    uint32_t few, uint32_t cols, int ue8m0)
{
    float           *x;
    uint16_t        *device_x;
    test_plan_t      t;
    dsa_fp8_rows_t   y;

    plan_make(&t, rows, k, experts, align, few, 0);
    x = uniform((size_t) t.host.places * 2 * cols, 8.0f);
    device_x = gpu_upload_bf16(x, (size_t) t.host.places * 2 * cols);
    y = fp8_rows(t.host.places, cols);

    gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                             NULL));
    gpu_ok(dsa_cuda_swiglu(&y, device_x, 0, cols, &t.device, experts, ue8m0,
                           NULL));
    swiglu_check(&y, x, t.host.row, t.host.places, cols, ue8m0);

    free(x);
    plan_free(&t);
}


static void
test_swiglu(void **state)
{
    swiglu_case(1, 2048, 1);
    swiglu_case(5, 18432, 1);
    swiglu_case(200, 2048, 1);
    swiglu_case(3, 128, 1);
    swiglu_case(33, 384, 1);
    swiglu_plan_case(1, 8, 256, 8, 100, 2048, 1);
    swiglu_plan_case(128, 8, 256, 8, 100, 256, 1);
    swiglu_plan_case(9, 2, 5, 64, 50, 384, 1);
    swiglu_plan_case(9, 2, 5, 64, 0, 128, 1);
    swiglu_case(1, 2048, 0);
    swiglu_case(5, 12288, 0);
    swiglu_case(200, 2048, 0);
    swiglu_plan_case(1, 8, 256, 8, 100, 2048, 0);
    swiglu_plan_case(128, 8, 256, 8, 100, 256, 0);
    swiglu_plan_case(9, 2, 5, 64, 50, 384, 0);
}


/* Equal in every bit: the twin's sums have the same order. */

static void
combine_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t few,
    uint32_t cols, int with_shared)
{
    float        *x, *shared, *weight, *sum, *device_weight;
    size_t        i, j, n;
    uint16_t     *device_x, *device_shared, *y, *v;
    test_plan_t   t;

    plan_make(&t, rows, k, experts, 8, few, 0);
    n = (size_t) rows * cols;

    x = uniform((size_t) t.host.places * cols, 4.0f);
    shared = uniform(n, 2.0f);
    weight = get(rows * k * sizeof(float));
    dsa_t_fill(weight, rows * k, 1.0f);
    sum = get(n * sizeof(float));
    v = get(n * 2);

    /* padding and unused places are NaNs */

    for (i = 0; i < t.host.places; i++) {
        for (j = 0; t.host.row[i] < 0 && j < cols; j++) {
            x[i * cols + j] = NAN;
        }
    }

    device_x = gpu_upload_bf16(x, (size_t) t.host.places * cols);
    device_shared = gpu_upload_bf16(shared, n);
    device_weight = gpu_upload(weight, rows * k * sizeof(float));
    y = gpu_alloc(n * 2);

    gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                             NULL));
    gpu_ok(dsa_cuda_moe_combine(y, device_x,
                                with_shared ? device_shared : NULL,
                                device_weight, t.device_expert, &t.device,
                                rows, k, cols, NULL));

    dsa_moe_combine(sum, x, with_shared ? shared : NULL, weight, t.host.place,
                    rows, k, cols, 0);

    for (i = 0; i < n; i++) {
        v[i] = dsa_bf16_encode(sum[i]);
    }

    same(y, v, n * 2);

    free(x);
    free(shared);
    free(weight);
    free(sum);
    free(v);
    plan_free(&t);
}


static void
test_combine(void **state)
{
    combine_case(1, 8, 256, 100, 7168, 1);
    combine_case(64, 8, 256, 100, 7168, 1);
    combine_case(64, 8, 256, 12, 1032, 1);
    combine_case(33, 16, 512, 100, 512, 1);
    combine_case(33, 6, 64, 100, 256, 0);
    combine_case(5, 1, 2, 100, 8, 1);
    combine_case(5, 4, 7, 0, 2048, 1);
}


static void
test_refusals(void **state)
{
    float           *w;
    int32_t         *id;
    uint16_t        *x;
    dsa_fp8_rows_t   q;
    dsa_moe_plan_t   plan;

    x = gpu_alloc(1 << 16);
    w = gpu_alloc(1 << 16);
    id = gpu_alloc(1 << 16);
    q = fp8_rows(8, 256);

    plan.offset = id;
    plan.count = id + 1024;
    plan.place = id + 2048;
    plan.row = id + 4096;
    plan.places = 4096;
    plan.align = 8;

    assert_int_equal(dsa_cuda_moe_gather(&q, &q, &plan, 1, 8, 256, 200,
                                         NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_gather(&q, &q, &plan, 1, 17, 256, 256,
                                         NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_swiglu(&q, x, 1, 200, NULL, 0, 1, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_combine(x, x, x, w, id, &plan, 1, 17, 256,
                                          NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_combine(x, x, x, w, id, &plan, 1, 8, 12,
                                          NULL), cudaErrorInvalidValue);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_gather, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_swiglu, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_combine, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
