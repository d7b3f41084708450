
/*
 * Copyright (C) The nginx-dsa authors
 */


/* Rotations: of queries, and of the indexer's queries. */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/index/indexer.h"
#include "kernels/row/hadamard.h"
#include "t/gpu/rope.h"


static void
rope_case(uint32_t rows, uint32_t heads, uint32_t nope)
{
    float     *q, *cut, *want, *got, *table, cos[32], sin[32];
    double    *exact;
    size_t     i, n, width;
    int32_t   *position, *device_position;
    uint16_t  *device_q, *out, *v, *w;

    n = (size_t) rows * heads;
    width = nope + 64;
    q = numbers(n * width, 2.0f);
    want = get(n * 64 * sizeof(float));
    got = get(n * 64 * sizeof(float));
    exact = get(n * 64 * sizeof(double));
    position = get(rows * sizeof(int32_t));
    table = rope_table(position, rows);
    device_position = gpu_upload(position, rows * sizeof(int32_t));
    device_q = gpu_upload_bf16(q, n * width);

    for (i = 0; i < n; i++) {
        cut = q + i * width + nope;
        memcpy(want + i * 64, cut, 64 * sizeof(float));
        rope_float64(exact + i * 64, cut, position[i / heads], 0);
        dsa_rope_angles(cos, sin, rope_frequency, 64,
                        (uint32_t) position[i / heads], 1);
        dsa_rope_interleaved(want + i * 64, 1, 64, cos, sin, 64, 1);
    }

    /* behind a latent of 512, which is not changed */

    out = gpu_alloc(n * 576 * 2);
    v = get(n * 576 * 2);
    memset(v, 0xff, n * 576 * 2);

    for (i = 0; i < n * 64; i++) {
        v[i / 64 * 576 + 512 + i % 64] = dsa_bf16_encode(want[i]);
    }

    gpu_ok(dsa_cuda_rope_query(out, 576, 512, device_q, width, table,
                               device_position, rows, heads, NULL));
    same(out, v, n * 576 * 2);

    for (i = 0; i < n * 64; i++) {
        got[i] = dsa_bf16_decode(v[i / 64 * 576 + 512 + i % 64]);
    }

    assert_true(dsa_t_error(got, exact, n * 64) < 1.0 / 256);

    /* in place */

    w = get(n * width * 2);

    for (i = 0; i < n * width; i++) {
        w[i] = dsa_bf16_encode(i % width < nope ? q[i]
                               : want[i / width * 64 + i % width - nope]);
    }

    gpu_ok(dsa_cuda_rope_query(device_q, width, nope, device_q, width, table,
                               device_position, rows, heads, NULL));
    same(device_q, w, n * width * 2);

    free(q);
    free(want);
    free(got);
    free(exact);
    free(position);
    free(v);
    free(w);
}


static void
test_rope_query(void **state)
{
    rope_case(1, 128, 128);
    rope_case(33, 128, 128);
    rope_case(7, 3, 128);
    rope_case(5, 16, 128);
    rope_case(33, 64, 192);
    rope_case(7, 3, 0);
}


/*
 * Every bit is equal to the twin's; against float64: the step of e4m3 is 2^-3.
 */

static void
index_query_case(uint32_t rows, uint32_t heads, int interleaved)
{
    float     *q, *w, *want_w, *scale, *table, *device_w, *out_w, *got,
              cos[32], sin[32], constant;
    double    *exact;
    size_t     i, j, n;
    int32_t   *position, *device_position;
    uint8_t   *code, *out;
    uint16_t  *device_q;

    n = (size_t) rows * heads;
    constant = 1.0f / sqrtf((float) heads) / sqrtf(128.0f);
    q = numbers(n * 128, 2.0f);
    w = get(n * sizeof(float));
    dsa_t_fill(w, n, 3.0f);
    want_w = get(n * sizeof(float));
    scale = get(n * sizeof(float));
    code = get(n * 128);
    got = get(n * 128 * sizeof(float));
    exact = get(n * 128 * sizeof(double));
    position = get(rows * sizeof(int32_t));
    table = rope_table(position, rows);

    device_position = gpu_upload(position, rows * sizeof(int32_t));
    device_q = gpu_upload_bf16(q, n * 128);
    device_w = gpu_upload(w, n * sizeof(float));
    out = gpu_alloc(n * 128);
    out_w = gpu_alloc(n * sizeof(float));

    gpu_ok(dsa_cuda_index_query(out, out_w, device_q, device_w, constant,
                                table, device_position, interleaved, rows,
                                heads, NULL));

    for (i = 0; i < n; i++) {
        for (j = 0; j < 128; j++) {
            exact[i * 128 + j] = q[i * 128 + j];
        }

        rope_float64(exact + i * 128, q + i * 128, position[i / heads],
                     !interleaved);
        hadamard_float64(exact + i * 128);

        dsa_rope_angles(cos, sin, rope_frequency, 64,
                        (uint32_t) position[i / heads], 1);
        index_rope(q + i * 128, cos, sin, interleaved);
    }

    dsa_hadamard(q, n, 128, 1);
    dsa_fp8_round(q, scale, n, 128);

    for (i = 0; i < n; i++) {
        want_w[i] = w[i] * constant * scale[i];

        for (j = i * 128; j < (i + 1) * 128; j++) {
            code[j] = dsa_e4m3_code(q[j]);
            got[j] = q[j] * scale[i];
        }
    }

    same(out, code, n * 128);
    same(out_w, want_w, n * sizeof(float));
    assert_true(dsa_t_error(got, exact, n * 128) < 0.04);

    gpu_poison(out, n * 128);
    gpu_ok(dsa_cuda_index_query(out, out_w, device_q, device_w, constant,
                                table, device_position, interleaved, rows,
                                heads, NULL));
    same(out, code, n * 128);

    free(q);
    free(w);
    free(want_w);
    free(scale);
    free(code);
    free(got);
    free(exact);
    free(position);
}


static void
test_index_query(void **state)
{
    index_query_case(1, 64, 0);
    index_query_case(67, 64, 0);
    index_query_case(3, 5, 0);
    index_query_case(1, 1, 0);
    index_query_case(1, 32, 1);
    index_query_case(67, 32, 1);
    index_query_case(3, 5, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_rope_query, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_index_query, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
