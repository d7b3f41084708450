
/*
 * Copyright (C) The nginx-dsa authors
 */


/* RMSNorm, alone and after the addition of a residual. */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/row/norm.h"
#include "t/gpu/rows.h"


/* RMSNorm */

/*
 * Against float64 of unrounded sums [rows, cols]: half a step of bf16, which
 * is at most 2^-8 of a number, and a few times 2^-24.
 */

static void
norm_float64(const float *got, const float *sum, const float *w, size_t rows,
    size_t cols)
{
    double  r, v;
    size_t  i, j;

    for (i = 0; i < rows; i++) {
        r = 0;

        for (j = 0; j < cols; j++) {
            r += (double) sum[i * cols + j] * sum[i * cols + j];
        }

        r = 1 / sqrt(r / (double) cols + (double) EPS);

        for (j = 0; j < cols; j++) {
            v = (double) w[j] * sum[i * cols + j] * r;
            assert_true(fabs(got[i * cols + j] - v)
                        <= fabs(v) / 256 * 1.0001 + 1e-38);
        }
    }
}


static void
norm_case(uint32_t rows, uint32_t cols, uint32_t gap, int with_q, int ue8m0)
{
    float           *x, *w, *want, *got, *device_w;
    size_t           n;
    uint16_t        *device_x, *y;
    dsa_fp8_rows_t   q, alone;

    n = (size_t) rows * cols;
    x = numbers(n, 3.0f);
    w = get(cols * sizeof(float));
    dsa_t_fill(w, cols, 2.0f);
    want = get(n * sizeof(float));
    got = get(n * sizeof(float));

    device_x = spread(x, rows, cols, cols + gap);
    device_w = gpu_upload(w, cols * sizeof(float));
    y = gpu_alloc(rows * (size_t) (cols + gap) * 2);

    if (with_q) {
        q = fp8_rows(rows, cols);
        alone = fp8_rows(rows, cols);
    }

    gpu_ok(dsa_cuda_rmsnorm(y, cols + gap, with_q ? &q : NULL, device_x,
                            cols + gap, device_w, rows, cols, EPS, ue8m0,
                            NULL));

    dsa_rmsnorm(want, cols, x, cols, w, rows, cols, EPS, 1);
    assert_true(differ(got, y, want, rows, cols, cols + gap) <= FEW(n));
    norm_float64(got, x, w, rows, cols);

    if (with_q) {
        quantized(&q, got, rows, cols, ue8m0);

        gpu_ok(dsa_cuda_rmsnorm(NULL, 0, &alone, device_x, cols + gap,
                                device_w, rows, cols, EPS, ue8m0, NULL));
        again(&q, &alone, rows, cols);
    }

    /* in place */

    gpu_ok(dsa_cuda_rmsnorm(device_x, cols + gap, NULL, device_x, cols + gap,
                            device_w, rows, cols, EPS, 1, NULL));
    assert_int_equal(differ(want, device_x, got, rows, cols, cols + gap), 0);

    free(x);
    free(w);
    free(want);
    free(got);
}


static void
test_rmsnorm(void **state)
{
    norm_case(1, 7168, 0, 1, 1);
    norm_case(3, 1536, 8, 1, 1);
    norm_case(300, 1536, 640, 1, 1);
    norm_case(301, 7168, 0, 1, 1);
    norm_case(5, 512, 64, 0, 1);
    norm_case(9, 8, 0, 0, 1);
    norm_case(7, 24, 8, 0, 1);
    norm_case(2, 16384, 0, 1, 1);
    norm_case(2, 8320, 0, 1, 1);
    norm_case(300, 5000, 0, 0, 1);
    norm_case(33, 128, 0, 1, 1);

    norm_case(1, 2048, 704, 1, 0);
    norm_case(130, 2048, 704, 1, 0);
    norm_case(3, 12288, 0, 1, 0);
}


/* first: there is no residual yet. */

static void
add_case(uint32_t rows, uint32_t cols, int first, int ue8m0)
{
    float           *x, *r, *w, *want, *got, *sum, *device_w;
    size_t           i, n;
    uint16_t        *device_x, *device_r, *y, *out;
    dsa_fp8_rows_t   q, alone;

    n = (size_t) rows * cols;
    x = numbers(n, 1.0f);
    r = first ? get(n * sizeof(float)) : numbers(n, 5.0f);
    w = get(cols * sizeof(float));
    dsa_t_fill(w, cols, 2.0f);
    want = get(n * sizeof(float));
    got = get(n * sizeof(float));
    sum = get(n * sizeof(float));

    for (i = 0; i < n; i++) {
        sum[i] = x[i] + r[i];
    }

    device_x = gpu_upload_bf16(x, n);
    device_r = gpu_upload_bf16(r, n);
    device_w = gpu_upload(w, cols * sizeof(float));
    y = gpu_alloc(n * 2);
    out = gpu_alloc(n * 2);
    q = fp8_rows(rows, cols);
    alone = fp8_rows(rows, cols);

    gpu_ok(dsa_cuda_add_rmsnorm(y, &q, device_x, first ? NULL : device_r, out,
                                device_w, rows, cols, EPS, ue8m0, NULL));

    dsa_add_rmsnorm(want, x, r, w, rows, cols, EPS, 1);
    assert_int_equal(differ(got, out, r, rows, cols, cols), 0);
    assert_true(differ(got, y, want, rows, cols, cols) <= FEW(n));
    norm_float64(got, sum, w, rows, cols);
    quantized(&q, got, rows, cols, ue8m0);

    /* everything in place */

    gpu_ok(dsa_cuda_add_rmsnorm(device_x, &alone, device_x,
                                first ? NULL : device_r, device_r, device_w,
                                rows, cols, EPS, ue8m0, NULL));
    assert_int_equal(differ(want, device_x, got, rows, cols, cols), 0);
    assert_int_equal(differ(want, device_r, r, rows, cols, cols), 0);
    again(&q, &alone, rows, cols);

    free(x);
    free(r);
    free(w);
    free(want);
    free(got);
    free(sum);
}


static void
test_add_rmsnorm(void **state)
{
    add_case(1, 7168, 0, 1);
    add_case(1, 7168, 1, 1);
    add_case(128, 7168, 0, 1);
    add_case(290, 7168, 0, 1);
    add_case(3, 256, 1, 1);
    add_case(2, 12288, 0, 1);
    add_case(1, 6144, 0, 0);
    add_case(1, 6144, 1, 0);
    add_case(290, 6144, 0, 0);
    add_case(2, 12288, 0, 0);
}


/*
 * A row alone has the bits of the row among many, which other kernels compute.
 */

static void
test_norm_of_one_row(void **state)
{
    float     *x, *w;
    size_t     n;
    uint16_t  *v, *device_x, *y;

    n = 600 * 7168;
    x = numbers(n, 1.0f);
    w = numbers(7168, 1.0f);
    v = get(n * 2);

    device_x = gpu_upload_bf16(x, n);
    y = gpu_alloc(n * 2);
    w = gpu_upload(w, 7168 * sizeof(float));

    gpu_ok(dsa_cuda_rmsnorm(y, 7168, NULL, device_x, 7168, w, 600, 7168, EPS,
                            1, NULL));
    gpu_download(v, y, n * 2);
    gpu_poison(y, n * 2);

    gpu_ok(dsa_cuda_rmsnorm(y, 7168, NULL, device_x + 599 * 7168, 7168, w, 1,
                            7168, EPS, 1, NULL));
    same(y, v + 599 * 7168, 7168 * 2);

    free(x);
    free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_rmsnorm, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_add_rmsnorm, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_norm_of_one_row, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
