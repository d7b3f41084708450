
/*
 * Copyright (C) The nginx-dsa authors
 */


/* Rows to FP8 with one scale, which the checkpoint has. */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/moe/moe.h"
#include "t/gpu/rows.h"


/* Compares rows with those of x that are divided by the scale. */

static void
divided(const dsa_fp8_rows_t *q, const float *x, uint32_t rows, uint32_t cols,
    float scale)
{
    float    *s;
    size_t    i, j, n;
    uint8_t  *code;

    n = (size_t) rows * cols;
    code = get(n);
    s = get(cols / 128 * q->ld * sizeof(float));

    gpu_download(code, q->q, n);
    gpu_download(s, q->scale, cols / 128 * q->ld * sizeof(float));

    for (i = 0; i < n; i++) {
        assert_int_equal(code[i], dsa_e4m3_code(dsa_e4m3_round(x[i] / scale)));
    }

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols / 128; j++) {
            assert_memory_equal(&s[j * q->ld + i], &scale, sizeof(float));
        }
    }

    free(code);
    free(s);
}


/* spread: the greatest number; beyond 448 times the scale it is cut off. */

static void
quantize_case(uint32_t rows, uint32_t cols, uint32_t gap, float spread_of,
    float scale)
{
    float           *x, *device_scale;
    size_t           n;
    uint16_t        *device_x;
    dsa_fp8_rows_t   q;

    n = (size_t) rows * cols;
    x = numbers(n, spread_of);
    dsa_bf16_round_rows(x, n);

    device_x = spread(x, rows, cols, cols + gap);
    device_scale = gpu_upload(&scale, sizeof(float));
    q = fp8_rows(rows, cols);

    gpu_ok(dsa_cuda_fp8_quantize_by(&q, device_x, cols + gap, rows, cols,
                                    device_scale, NULL));
    divided(&q, x, rows, cols, scale);

    free(x);
}


static void
test_quantize(void **state)
{
    quantize_case(1, 7168, 0, 4.0f, 0.01f);
    quantize_case(128, 2048, 0, 4.0f, 0.0087890625f);
    quantize_case(37, 512, 64, 4.0f, 0.001f);
    quantize_case(3, 384, 0, 1e30f, 1e-38f);
    quantize_case(300, 128, 8, 1e-30f, 1e30f);
}


/* The bits are those of SwiGLU in BF16, quantized. */

static void
swiglu_case(uint32_t rows, uint32_t cols, float scale)
{
    void            *first, *second;
    float           *x, *device_scale;
    size_t           n, scales;
    uint16_t        *device_x, *y;
    dsa_fp8_rows_t   got, want;

    n = (size_t) rows * cols;
    x = numbers(2 * n, 8.0f);
    device_x = gpu_upload_bf16(x, 2 * n);
    device_scale = gpu_upload(&scale, sizeof(float));
    y = gpu_alloc(n * sizeof(uint16_t));
    got = fp8_rows(rows, cols);
    want = fp8_rows(rows, cols);
    scales = cols / 128 * got.ld * sizeof(float);

    gpu_ok(dsa_cuda_swiglu_bf16(y, device_x, rows, cols, NULL, 0, NULL));
    gpu_ok(dsa_cuda_fp8_quantize_by(&want, y, cols, rows, cols, device_scale,
                                    NULL));
    gpu_ok(dsa_cuda_swiglu_by(&got, device_x, rows, cols, NULL, 0,
                              device_scale, NULL));

    first = get(n > scales ? n : scales);
    second = get(n > scales ? n : scales);

    gpu_download(first, got.q, n);
    gpu_download(second, want.q, n);
    assert_memory_equal(first, second, n);

    gpu_download(first, got.scale, scales);
    gpu_download(second, want.scale, scales);
    assert_memory_equal(first, second, scales);

    free(first);
    free(second);
    free(x);
}


static void
test_swiglu(void **state)
{
    swiglu_case(1, 2048, 0.05f);
    swiglu_case(200, 2048, 0.001f);
    swiglu_case(33, 384, 0.125f);
}


static void
test_errors(void **state)
{
    float           *scale;
    uint16_t        *x;
    dsa_fp8_rows_t   q;

    q = fp8_rows(2, 256);
    x = gpu_alloc(4 * 256 * sizeof(uint16_t));
    scale = gpu_alloc(sizeof(float));

    assert_int_equal(dsa_cuda_fp8_quantize_by(&q, x, 200, 1, 200, scale, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_swiglu_by(&q, x, 1, 200, NULL, 0, scale, NULL),
                     cudaErrorInvalidValue);
    gpu_ok(dsa_cuda_fp8_quantize_by(&q, x, 256, 0, 256, scale, NULL));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_quantize, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_swiglu, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_errors, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
