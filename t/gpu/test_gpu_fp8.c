
/*
 * Copyright (C) The nginx-dsa authors
 */


/* Rows to FP8, and weights from FP8. */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "t/gpu/rows.h"


/* Any finite bf16, and infinities if scales are powers of two. */

static void
quantize_case(uint32_t rows, uint32_t cols, uint32_t gap, int any, int ue8m0)
{
    float           *x;
    size_t           i, n;
    uint16_t        *device_x, v;
    dsa_fp8_rows_t   q, second;

    n = (size_t) rows * cols;
    x = numbers(n, 0.1f);

    for (i = 0; any && i < n; i++) {
        v = (uint16_t) dsa_t_random(65536);

        if ((v & 0x7f80) == 0x7f80) {
            v = ue8m0 ? v & 0xff80 : 0x8000;
        }

        /*
         * the numbers of a group have the size of the first one, or are zeros
         */

        x[i] = dsa_t_random(3) ? dsa_bf16_decode(v)
               : i % 128 > 0 ? x[i - 1] * 0.75f : 0;
    }

    dsa_bf16_round_rows(x, n);

    device_x = spread(x, rows, cols, cols + gap);
    q = fp8_rows(rows, cols);
    second = fp8_rows(rows, cols);

    gpu_ok(dsa_cuda_fp8_quantize(&q, device_x, cols + gap, rows, cols, ue8m0,
                                 NULL));
    gpu_ok(dsa_cuda_fp8_quantize(&second, device_x, cols + gap, rows, cols,
                                 ue8m0, NULL));

    quantized(&q, x, rows, cols, ue8m0);
    again(&q, &second, rows, cols);

    free(x);
}


static void
test_quantize(void **state)
{
    int  ue8m0;

    for (ue8m0 = 0; ue8m0 < 2; ue8m0++) {
        quantize_case(1, 7168, 0, 0, ue8m0);
        quantize_case(128, 16384, 0, 0, ue8m0);
        quantize_case(37, 512, 64, 0, ue8m0);
        quantize_case(1, 128, 8, 0, ue8m0);
        quantize_case(300, 1536, 0, 1, ue8m0);
        quantize_case(3, 384, 0, 1, ue8m0);
    }
}


static void
decode_case(uint32_t rows, uint32_t cols, int power)
{
    float             *s, *want, *got;
    size_t             i, n, blocks;
    uint8_t           *q;
    uint16_t          *out;
    dsa_fp8_weight_t   w;

    n = (size_t) rows * cols;
    blocks = (size_t) ((rows + 127) / 128) * (cols / 128);
    q = get(n);
    s = get(blocks * sizeof(float));
    want = get(n * sizeof(float));
    got = get(n * sizeof(float));

    for (i = 0; i < n; i++) {
        q[i] = (uint8_t) (dsa_t_random(127) | dsa_t_random(2) << 7);
    }

    for (i = 0; i < blocks; i++) {
        s[i] = power ? ldexpf(1, (int) dsa_t_random(20) - 15)
                     : 0.001f + fabsf(dsa_t_uniform());
    }

    w.q = gpu_upload(q, n);
    w.scale = gpu_upload(s, blocks * sizeof(float));
    w.rows = rows;
    w.cols = cols;
    out = gpu_alloc(n * 2);

    gpu_ok(dsa_cuda_fp8_decode_weight(out, &w, NULL));
    dsa_fp8_decode_weight(want, q, s, 0, rows, cols);
    assert_int_equal(differ(got, out, want, rows, cols, cols), 0);

    for (i = 0; power && i < n; i++) {
        assert_true(got[i] == want[i]);
    }

    free(q);
    free(s);
    free(want);
    free(got);
}


static void
test_decode_weight(void **state)
{
    decode_case(576, 7168, 1);
    decode_case(576, 512, 0);
    decode_case(1, 128, 1);
    decode_case(130, 384, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_quantize, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_decode_weight, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
