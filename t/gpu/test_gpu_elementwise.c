
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * Rows that are looked up, masks of positions, and what all ops between the
 * products reject.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/attention/attention.h"
#include "kernels/index/indexer.h"
#include "kernels/row/embed.h"
#include "kernels/row/norm.h"
#include "kernels/row/rope.h"
#include "t/gpu/rows.h"


static void
test_embed(void **state)
{
    float     *x;
    size_t     i, r;
    int32_t   *id, *device_id;
    uint16_t  *table, *y, *want, *v;
    uint32_t   c, n;

    static const uint32_t  cols[] = { 7168, 8, 1536, 8200 };

    for (c = 0; c < 4; c++) {
        n = c == 0 ? 300 : 17;
        x = numbers((size_t) 500 * cols[c], 1.0f);
        v = get((size_t) 500 * cols[c] * 2);
        want = get((size_t) n * cols[c] * 2);
        id = get(n * sizeof(int32_t));

        for (i = 0; i < (size_t) 500 * cols[c]; i++) {
            v[i] = dsa_bf16_encode(x[i]);
        }

        for (i = 0; i < n; i++) {
            id[i] = i == 3 ? 499 : i == 5 ? -1 : i == 6 ? 500
                    : (int32_t) dsa_t_random(500);
            r = id[i] < 0 || id[i] >= 500 ? 500 : (size_t) id[i];

            if (r < 500) {
                memcpy(want + i * cols[c], v + r * cols[c], cols[c] * 2);
            }
        }

        table = gpu_upload(v, (size_t) 500 * cols[c] * 2);
        device_id = gpu_upload(id, n * sizeof(int32_t));
        y = gpu_alloc((size_t) n * cols[c] * 2);

        gpu_ok(dsa_cuda_embed(y, table, device_id, n, cols[c], 0, 500,
                              NULL));
        same(y, want, (size_t) n * cols[c] * 2);

        for (i = 0; i < n; i++) {
            id[i] = (int32_t) dsa_t_random(500);
            memcpy(want + i * cols[c], v + (size_t) id[i] * cols[c],
                   cols[c] * 2);
        }

        device_id = gpu_upload(id, n * sizeof(int32_t));
        gpu_poison(y, (size_t) n * cols[c] * 2);

        gpu_ok(dsa_cuda_gather_rows(y, table, device_id, n, cols[c], NULL));
        same(y, want, (size_t) n * cols[c] * 2);

        free(x);
        free(v);
        free(want);
        free(id);
    }
}


/* Rising picks, among them -1 and positions beyond the mask. */

static void
mask_case(uint32_t rows, uint32_t keys, uint32_t k, size_t ld_mask, int rise)
{
    size_t     i, j, ld_pick;
    int32_t   *pick, *n_pick, *device_pick, *device_n, p;
    uint32_t  *want, *mask;

    ld_pick = (k + 3) & ~3U;
    pick = get(rows * ld_pick * 4);
    n_pick = get(rows * 4);
    want = get(rows * ld_mask * 4);

    for (i = 0; i < rows; i++) {
        n_pick[i] = (int32_t) (i == 0 ? k : dsa_t_random(k + 1));

        for (j = 0, p = 0; j < ld_pick; j++) {
            p = !rise || keys <= k ? (int32_t) dsa_t_random(keys)
                : p + (int32_t) dsa_t_random(2 * keys / k) + 1;
            pick[i * ld_pick + j] = j % 97 == 31 ? -1 : p;

            if (j < (size_t) n_pick[i] && j % 97 != 31
                && (size_t) p / 32 < ld_mask)
            {
                want[i * ld_mask + p / 32] |= 1U << p % 32;
            }
        }
    }

    device_pick = gpu_upload(pick, rows * ld_pick * 4);
    device_n = gpu_upload(n_pick, rows * 4);
    mask = gpu_alloc(rows * ld_mask * 4);

    gpu_ok(dsa_cuda_attention_mask(mask, ld_mask, device_pick, ld_pick,
                                   device_n, rows, NULL));
    same(mask, want, rows * ld_mask * 4);

    free(pick);
    free(n_pick);
    free(want);
}


static void
test_attention_mask(void **state)
{
    mask_case(3, 1, 1, 1, 0);
    mask_case(70, 2049, 2048, 66, 0);
    mask_case(70, 12800, 2048, 400, 1);
    mask_case(5, 131072, 2048, 4096, 1);
    mask_case(5, 131072, 2048, 4000, 1);
    mask_case(3, 300000, 64, 9375, 1);
    mask_case(2, 700000, 2048, 20000, 0);
}


/* Nothing is launched, nothing is written. */

static void
test_refusals(void **state)
{
    float             *w;
    int32_t           *id;
    uint16_t          *x;
    dsa_fp8_rows_t     q;
    dsa_fp8_weight_t   weight;

    x = gpu_alloc(1 << 20);
    w = gpu_alloc(1 << 20);
    id = gpu_alloc(1 << 10);
    q = fp8_rows(8, 256);

    assert_int_equal(dsa_cuda_rmsnorm(x, 12, NULL, x, 12, w, 1, 12, EPS,
                                      1, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_rmsnorm(x, 16392, NULL, x, 16392, w, 1, 16392,
                                      EPS, 1, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_rmsnorm(x, 200, &q, x, 200, w, 1, 200, EPS,
                                      1, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_rmsnorm(x, 256, NULL, x + 4, 256, w, 1, 256,
                                      EPS, 1, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_fp8_quantize(&q, x, 200, 1, 200, 1, NULL),
                     cudaErrorInvalidValue);
    q.ld = 7;
    assert_int_equal(dsa_cuda_fp8_quantize(&q, x, 256, 7, 256, 1, NULL),
                     cudaErrorInvalidValue);
    q.ld = 4;
    assert_int_equal(dsa_cuda_fp8_quantize(&q, x, 256, 7, 256, 1, NULL),
                     cudaErrorInvalidValue);

    weight.q = q.q;
    weight.scale = w;
    weight.rows = 8;
    weight.cols = 200;
    assert_int_equal(dsa_cuda_fp8_decode_weight(x, &weight, NULL),
                     cudaErrorInvalidValue);

    assert_int_equal(dsa_cuda_rope_query(x, 192, 136, x, 192, w, id, 1, 1,
                                         NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_rope_query(x, 192, 128, x, 56, w, id, 1, 1,
                                         NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_rope_query(x, 192, 128, x, 196, w, id, 1, 1,
                                         NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_embed(x, x, id, 1, 12, 0, 10, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_attention_mask((uint32_t *) w, 4, id, 6, id, 1,
                                             NULL), cudaErrorInvalidValue);

    /* no rows: nothing to do */

    gpu_ok(dsa_cuda_rmsnorm(x, 256, NULL, x, 256, w, 0, 256, EPS, 1, NULL));
    gpu_ok(dsa_cuda_fp8_quantize(&q, x, 256, 0, 256, 1, NULL));
    gpu_ok(dsa_cuda_rope_query(x, 192, 128, x, 192, w, id, 0, 128, NULL));
    gpu_ok(dsa_cuda_index_query(q.q, w, x, w, 1, w, id, 0, 0, 64, NULL));
    gpu_ok(dsa_cuda_embed(x, x, id, 0, 256, 0, 10, NULL));
    gpu_ok(dsa_cuda_attention_mask((uint32_t *) w, 4, id, 8, id, 0, NULL));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_embed, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_attention_mask, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
