
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * A row's bits do not depend on the rows beside it, whatever the tile and the
 * kernel are: they are the same in products with rows[0] rows, the most, and
 * with fewer.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "t/gpu/products.h"


static void
test_alone_shape(uint32_t n_out, uint32_t n_in, const uint32_t *rows,
    size_t n_rows)
{
    float            *first, *y, *ws, *xs;
    size_t            j, k, n, groups;
    uint8_t          *wq, *xq;
    dsa_bf16_t       *out;
    dsa_fp8_rows_t    x;
    dsa_fp8_weight_t  w;

    test_begin();

    groups = n_in / 128;
    wq = test_codes((size_t) n_out * n_in);
    xq = test_codes((size_t) rows[0] * n_in);

    n = (n_out + 127) / 128 * groups;
    ws = malloc(n * sizeof(float));
    xs = malloc(rows[0] * groups * sizeof(float));
    assert_true(ws != NULL && xs != NULL);

    for (j = 0; j < n; j++) {
        ws[j] = test_scale(0);
    }

    for (j = 0; j < rows[0] * groups; j++) {
        xs[j] = test_scale(0);
    }

    w.q = gpu_upload(wq, (size_t) n_out * n_in);
    w.scale = gpu_upload(ws, n * sizeof(float));
    w.rows = n_out;
    w.cols = n_in;

    x.q = gpu_upload(xq, (size_t) rows[0] * n_in);
    x.scale = gpu_upload(xs, rows[0] * groups * sizeof(float));
    x.ld = rows[0];

    n = (size_t) rows[0] * n_out;
    out = gpu_alloc(n * sizeof(dsa_bf16_t));
    first = NULL;

    for (j = 0; j < n_rows; j++) {
        gpu_ok(dsa_cuda_gemm_fp8(test_gemm, out, n_out, &x, &w, rows[j],
                                 NULL));
        y = test_fetch(out, n, 0);

        if (first == NULL) {
            first = y;
            continue;
        }

        for (k = 0; k < (size_t) rows[j] * n_out; k++) {
            if (memcmp(&y[k], &first[k], sizeof(float)) != 0) {
                fail_msg("%u x %u, %u rows: %g at %zu, %g of %u rows", n_out,
                         n_in, rows[j], y[k], k, first[k], rows[0]);
            }
        }

        free(y);
    }

    free(first);
    free(wq);
    free(xq);
    free(ws);
    free(xs);

    test_end();
}


/* Up to the 128 rows of a decode batch in may be summed in segments. */

static void
test_alone_few(void **state)
{
    size_t  i;

    static const struct {
        uint32_t  out, in;
    } c[] = {
        { 576, 7168 }, { 2112, 7168 }, { 4096, 2048 }, { 7168, 2560 },
        { 9216, 512 }, { 20480, 256 }, { 7168, 8320 }, { 2240, 7168 },
        { 2752, 6144 }, { 6144, 2048 }, { 6144, 12288 }, { 16384, 2048 },
        { 2048, 2048 }
    };
    static const uint32_t  rows[] = {
        128, 1, 2, 8, 9, 17, 32, 33, 64, 65, 68, 100
    };

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        test_alone_shape(c[i].out, c[i].in, rows,
                         sizeof(rows) / sizeof(rows[0]));
    }
}


static void
test_alone_many(void **state)
{
    size_t  i;

    static const struct {
        uint32_t  out, in;
    } c[] = {
        { 576, 7168 }, { 2240, 1536 }, { 7168, 4096 }, { 24576, 384 }
    };
    static const uint32_t  rows[] = {
        2048, 129, 192, 193, 256, 300, 512, 800, 1024
    };

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        test_alone_shape(c[i].out, c[i].in, rows,
                         sizeof(rows) / sizeof(rows[0]));
    }
}


/* The same of BF16 products: bits of float32. */

static void
test_alone_bf16_shape(uint32_t n_out, uint32_t n_in, const uint32_t *rows,
    size_t n_rows)
{
    float       *first, *y;
    size_t       j, k, n;
    uint16_t    *x, *w;
    test_bf16_t  t;
    dsa_bf16_t  *dx, *dw;
    void        *dy;

    test_begin();

    memset(&t, 0, sizeof(t));

    t.out = n_out;
    t.in = n_in;
    t.f32 = 1;
    t.ld_x = n_in;
    t.ld_w = n_in;
    t.ld_y = n_out;

    x = test_bf16((size_t) rows[0] * n_in, 1);
    w = test_bf16((size_t) n_out * n_in, 0.05f);
    dx = gpu_upload(x, (size_t) rows[0] * n_in * sizeof(uint16_t));
    dw = gpu_upload(w, (size_t) n_out * n_in * sizeof(uint16_t));
    dy = gpu_alloc((size_t) rows[0] * n_out * sizeof(float));
    first = NULL;

    for (j = 0; j < n_rows; j++) {
        n = (size_t) rows[j] * n_out;
        t.rows = rows[j];

        gpu_poison(dy, (size_t) rows[0] * n_out * sizeof(float));
        test_bf16_run(&t, dy, dx, dw);
        y = test_fetch(dy, n, 1);

        if (first == NULL) {
            first = y;
            continue;
        }

        for (k = 0; k < n; k++) {
            if (memcmp(&y[k], &first[k], sizeof(float)) != 0) {
                fail_msg("%u x %u, %u rows: %.9g at %zu, %.9g of %u rows",
                         n_out, n_in, rows[j], y[k], k, first[k], rows[0]);
            }
        }

        free(y);
    }

    free(first);
    free(x);
    free(w);

    test_end();
}


/* The router, heads' weights of the indexer, the head of one of 8 GPUs. */

static void
test_alone_bf16(void **state)
{
    size_t  i;

    static const uint32_t  out[] = { 256, 64, 16160 };
    static const uint32_t  rows[] = {
        4096, 1, 8, 9, 16, 17, 32, 33, 64, 65, 127, 128, 129, 256, 257, 1000
    };

    for (i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
        test_alone_bf16_shape(out[i], 7168, rows,
                              sizeof(rows) / sizeof(rows[0]));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_alone_few, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_alone_many, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_alone_bf16, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
