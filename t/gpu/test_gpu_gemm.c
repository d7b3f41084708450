
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "t/gpu/products.h"


/*
 * Products against float64 at sampled outputs, and against the CPU twin on the
 * same operands.  The bounds of an output's error:
 *
 *     bf16        2^-8 of the value: half a unit of the last place
 *     FP8         The tensor core adds 32 products and the sum so far with 13
 *                 bits below the largest of them, and cuts off the rest: each
 *                 of the 33 loses less than 2^-13 of it.  What is cut off has
 *                 either sign, so an eighth of the worst case is allowed.
 *     BF16        2^-20 of the sum of |products|: additions in float32
 *
 * The norm of the errors over all samples has a tighter bound.
 */

#define TEST_FP8        (33 * 0x1p-13 / 8)
#define TEST_BF16       0x1p-20
#define TEST_SAMPLES    400
#define TEST_SLACK      16


static void
test_output(double y, double ref, double sum, double part, int f32)
{
    double  bound;

    bound = fabs(ref) * (f32 ? 0x1p-22 : 0x1.01p-8) + sum * part;

    if (!(fabs(y - ref) <= bound)) {
        fail_msg("%.9g instead of %.9g, bound %.3g", y, ref, bound);
    }
}


typedef struct {
    uint32_t  rows, out, in;
    uint32_t  ld;               /* of scales, beyond rows rounded up to 4 */
    uint32_t  gap;              /* of rows of y */
    int       power;
} test_fp8_t;


static void
test_fp8_shape(const test_fp8_t *t)
{
    float               *ws, *xs, *y, *again, *a, *b, *twin;
    double               v, s, ref, sum, part, largest, *exact, *rounded;
    size_t               i, k, n, r, o, ld, ld_y, groups, samples;
    uint8_t             *wq, *xq;
    uint16_t            *out;
    dsa_fp8_rows_t       x;
    dsa_fp8_weight_t     w;

    test_begin();

    groups = t->in / 128;
    ld = (t->rows + 3) / 4 * 4 + t->ld;
    ld_y = t->out + t->gap;

    wq = test_codes((size_t) t->out * t->in);
    xq = test_codes((size_t) t->rows * t->in);

    n = (t->out + 127) / 128 * groups;
    ws = malloc(n * sizeof(float));
    xs = malloc(ld * groups * sizeof(float));
    assert_true(ws != NULL && xs != NULL);

    for (i = 0; i < n; i++) {
        ws[i] = test_scale(t->power);
    }

    /* scales behind the rows of a group must not be read */

    for (i = 0; i < ld * groups; i++) {
        xs[i] = i % ld < t->rows ? test_scale(t->power) : NAN;
    }

    w.q = gpu_upload(wq, (size_t) t->out * t->in);
    w.scale = gpu_upload(ws, n * sizeof(float));
    w.rows = t->out;
    w.cols = t->in;

    x.q = gpu_alloc((size_t) (t->rows + TEST_SLACK) * t->in);
    x.scale = gpu_upload(xs, ld * groups * sizeof(float));
    x.ld = ld;

    gpu_ok(cudaMemcpy(x.q, xq, (size_t) t->rows * t->in,
                      cudaMemcpyHostToDevice));

    n = (t->rows + TEST_SLACK) * ld_y;
    out = gpu_alloc(n * sizeof(uint16_t));

    gpu_ok(dsa_cuda_gemm_fp8(test_gemm, out, ld_y, &x, &w, t->rows, NULL));
    y = test_fetch(out, n, 0);

    gpu_poison(out, n * sizeof(uint16_t));
    gpu_ok(dsa_cuda_gemm_fp8(test_gemm, out, ld_y, &x, &w, t->rows, NULL));
    again = test_fetch(out, n, 0);

    assert_memory_equal(y, again, n * sizeof(float));

    /* nothing is written between rows or behind them */

    for (r = 0; r < t->rows + TEST_SLACK; r++) {
        o = r < t->rows ? t->out : 0;

        for (; o < ld_y; o++) {
            assert_true(isnan(y[r * ld_y + o]));
        }

        for (o = 0; r < t->rows && o < t->out; o++) {
            assert_false(isnan(y[r * ld_y + o]));
        }
    }

    samples = (size_t) t->rows * t->out;
    samples = samples > TEST_SAMPLES ? TEST_SAMPLES : samples;

    exact = malloc(samples * sizeof(double));
    rounded = malloc(samples * sizeof(double));
    twin = malloc(samples * sizeof(float));
    a = malloc(t->in * sizeof(float));
    b = malloc(t->in * sizeof(float));
    assert_true(exact != NULL && rounded != NULL && twin != NULL && a != NULL
                && b != NULL);

    for (i = 0; i < samples; i++) {
        r = dsa_t_random(t->rows);
        o = dsa_t_random(t->out);

        /* the corners always */

        r = i < 4 ? (i & 1) * (t->rows - 1) : r;
        o = i < 4 ? (i >> 1) * (t->out - 1) : o;

        ref = 0;
        sum = 0;
        part = 0;
        largest = 0;

        for (k = 0; k < t->in; k++) {
            s = (double) xs[k / 128 * ld + r] * ws[o / 128 * groups + k / 128];
            v = (double) dsa_e4m3_value[xq[r * t->in + k]]
                * dsa_e4m3_value[wq[o * t->in + k]];

            a[k] = dsa_e4m3_value[xq[r * t->in + k]] * xs[k / 128 * ld + r];
            b[k] = dsa_e4m3_value[wq[o * t->in + k]]
                   * ws[o / 128 * groups + k / 128];

            if (k % 128 == 0) {
                part = 0;
            }

            if (k % 32 == 0) {
                largest = fabs(part);
            }

            part += v;
            ref += v * s;
            largest = fmax(largest, fabs(v));

            if (k % 32 == 31) {
                sum += largest * s;
            }
        }

        test_output(y[r * ld_y + o], ref, sum, TEST_FP8, 0);

        dsa_gemm_nt(&twin[i], 1, a, t->in, b, t->in, 1, 1, t->in, 0);
        twin[i] = dsa_bf16_decode(dsa_bf16_encode(twin[i]));
        rounded[i] = twin[i];
        twin[i] = y[r * ld_y + o];
        exact[i] = ref;
    }

    /* bf16's rounding is 0.0017; the twin's is as large again */

    if (samples == TEST_SAMPLES) {
        assert_true(dsa_t_error(twin, exact, samples) < 0.0022);
        assert_true(dsa_t_error(twin, rounded, samples) < 0.003);
    }

    free(wq);
    free(xq);
    free(ws);
    free(xs);
    free(y);
    free(again);
    free(exact);
    free(rounded);
    free(twin);
    free(a);
    free(b);

    test_end();
}


/* Every number of rows that selects another tile, and its neighbours. */

static void
test_fp8_rows(void **state)
{
    size_t      i;
    test_fp8_t  t;

    static const uint32_t  rows[] = {
        1, 2, 5, 8, 9, 16, 17, 32, 33, 64, 65, 96, 127, 128, 129, 130, 131,
        132, 191, 192, 193, 200, 256, 257, 515, 1000
    };

    memset(&t, 0, sizeof(t));

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        t.rows = rows[i];
        t.out = 576;
        t.in = 1536;
        t.power = i & 1;
        t.ld = i % 3 == 0 ? 64 : 0;
        t.gap = i % 2 * 8;

        test_fp8_shape(&t);
    }
}


/* The model's weights, and widths that are no multiple of a tile. */

static void
test_fp8_weights(void **state)
{
    size_t      i;
    test_fp8_t  t;

    static const struct {
        uint32_t  rows, out, in;
    } c[] = {
        { 3, 2112, 7168 },
        { 33, 24576, 1536 },
        { 64, 7168, 16384 },
        { 128, 4096, 7168 },
        { 17, 7168, 2048 },
        { 5, 576, 7168 },
        { 40, 128, 7168 },
        { 1027, 1536, 7168 },
        { 4096, 576, 7168 },
        { 1001, 2240, 7168 },
        { 999, 24576, 1536 },
        { 515, 32768, 512 },
        { 333, 7168, 16384 },
        { 130, 36864, 7168 },
        { 260, 7168, 18432 },
        { 257, 8192, 1536 },
        { 2049, 3072, 1536 },           /* of one of 8 GPUs, as the next */
        { 1000, 4096, 512 },
        { 700, 512, 7168 },
        { 65, 512, 7168 },
        { 513, 7168, 256 },
        { 1023, 4608, 7168 },
        { 9, 2752, 6144 },              /* GLM-5, as the next */
        { 32, 2752, 6144 },
        { 33, 2752, 6144 },
        { 128, 2752, 6144 },
        { 16, 6144, 2048 },
        { 100, 6144, 2048 },
        { 16, 6144, 16384 },
        { 64, 6144, 12288 },
        { 32, 16384, 2048 },
        { 8, 16384, 2048 },
        { 1, 4096, 2048 },
        { 40, 2048, 2048 },
        { 1001, 2624, 6144 },
        { 300, 16384, 2048 },
        { 140, 28672, 512 },
        { 70, 6144, 16384 },
        { 200, 24576, 6144 },
        { 200, 7168, 2304 },
        { 1, 8, 128 },
        { 70, 72, 384 },
        { 300, 72, 384 },
        { 300, 200, 640 },
        { 300, 2304, 2304 }
    };

    memset(&t, 0, sizeof(t));

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        t.rows = c[i].rows;
        t.out = c[i].out;
        t.in = c[i].in;
        t.power = i & 1;

        test_fp8_shape(&t);
    }
}


static void
test_bf16_shape(const test_bf16_t *t)
{
    void        *dy;
    float       *y, *again, *a, *b, *twin;
    double       v, ref, sum, *exact;
    size_t       i, k, n_x, n_w, n_y, heads, samples, h, r, o, size, at;
    uint16_t    *x, *w;
    dsa_bf16_t  *dx, *dw;

    test_begin();

    heads = t->heads == 0 ? 1 : t->heads;
    size = t->f32 ? 4 : 2;

    n_x = (heads - 1) * t->step_x + (t->rows - 1) * t->ld_x + t->in;
    n_w = (heads - 1) * t->step_w
          + ((t->transposed ? t->in : t->out) - 1) * t->ld_w
          + (t->transposed ? t->out : t->in);
    n_y = (heads - 1) * t->step_y + (t->rows - 1) * t->ld_y + t->out;

    x = test_bf16(n_x, 1);
    w = test_bf16(n_w, 0.05f);
    dx = gpu_upload(x, n_x * sizeof(uint16_t));
    dw = gpu_upload(w, n_w * sizeof(uint16_t));
    dy = gpu_alloc(n_y * size);

    test_bf16_run(t, dy, dx, dw);
    y = test_fetch(dy, n_y, t->f32);

    gpu_poison(dy, n_y * size);
    test_bf16_run(t, dy, dx, dw);
    again = test_fetch(dy, n_y, t->f32);

    assert_memory_equal(y, again, n_y * sizeof(float));

    /* every output is written, and nothing else */

    k = 0;

    for (i = 0; i < n_y; i++) {
        k += !isnan(y[i]);
    }

    assert_int_equal(k, heads * t->rows * t->out);

    samples = TEST_SAMPLES;
    exact = malloc(samples * sizeof(double));
    twin = malloc(samples * sizeof(float));
    a = malloc(t->in * sizeof(float));
    b = malloc(t->in * sizeof(float));
    assert_true(exact != NULL && twin != NULL && a != NULL && b != NULL);

    for (i = 0; i < samples; i++) {
        h = dsa_t_random((uint32_t) heads);
        r = dsa_t_random(t->rows);
        o = dsa_t_random(t->out);

        h = i < 8 ? (i & 1) * (heads - 1) : h;
        r = i < 8 ? (i >> 1 & 1) * (t->rows - 1) : r;
        o = i < 8 ? (i >> 2) * (t->out - 1) : o;

        ref = 0;
        sum = 0;

        for (k = 0; k < t->in; k++) {
            at = h * t->step_w + (t->transposed ? k * t->ld_w + o
                                                : o * t->ld_w + k);
            a[k] = dsa_bf16_decode(x[h * t->step_x + r * t->ld_x + k]);
            b[k] = dsa_bf16_decode(w[at]);

            v = (double) a[k] * b[k];
            ref += v;
            sum += fabs(v);
        }

        at = h * t->step_y + r * t->ld_y + o;
        test_output(y[at], ref, sum, TEST_BF16, t->f32);

        dsa_gemm_nt(&twin[i], 1, a, t->in, b, t->in, 1, 1, t->in, 0);

        exact[i] = t->f32 ? twin[i]
                          : dsa_bf16_decode(dsa_bf16_encode(twin[i]));
        twin[i] = y[at];
    }

    /* the same bf16, except where the order of additions decides a tie */

    assert_true(dsa_t_error(twin, exact, samples) < (t->f32 ? 1e-5 : 5e-4));

    free(x);
    free(w);
    free(y);
    free(again);
    free(exact);
    free(twin);
    free(a);
    free(b);

    test_end();
}


static void
test_bf16_rows(void **state)
{
    size_t       i;
    test_bf16_t  t;

    static const struct {
        uint32_t  rows, out, in;
        int       f32;
    } c[] = {
        { 1, 256, 7168, 1 },            /* router */
        { 33, 256, 7168, 1 },
        { 128, 256, 7168, 1 },
        { 129, 256, 7168, 1 },
        { 1001, 256, 7168, 1 },
        { 8197, 256, 7168, 1 },
        { 1, 64, 7168, 1 },             /* heads' weights of the indexer */
        { 100, 64, 7168, 1 },
        { 100, 32, 6144, 1 },
        { 1, 19360, 6144, 1 },
        { 777, 64, 7168, 1 },
        { 2, 129280, 7168, 1 },         /* head */
        { 200, 16160, 7168, 1 },        /* of one of 8 GPUs */
        { 65, 8192, 7168, 1 },
        { 7, 7168, 14336, 0 },
        { 16, 1536, 1536, 0 },
        { 130, 576, 1536, 0 },
        { 9, 72, 200, 0 },              /* nothing a multiple of a tile */
        { 9, 8, 8, 1 },
        { 150, 72, 200, 1 },
        { 3000, 264, 136, 0 },

        /* rows of y that are not aligned, and that are */
        { 66, 4104, 1024, 1 },
        { 66, 4104, 1024, 1 },
        { 513, 3080, 2048, 1 },
        { 513, 3080, 2048, 1 }
    };

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        memset(&t, 0, sizeof(t));

        t.rows = c[i].rows;
        t.out = c[i].out;
        t.in = c[i].in;
        t.f32 = c[i].f32;
        t.ld_x = t.in + i % 3 * 8;
        t.ld_w = t.in + i % 2 * 16;
        t.ld_y = t.out + i % 2 * 3;

        test_bf16_shape(&t);
    }
}


/* W_UK and W_UV as kv_b_proj has them: nope + v rows of 512 for a head. */

static void
test_heads(void **state)
{
    size_t       i;
    test_bf16_t  t;

    static const struct {
        uint32_t  heads, rows, nope, v;
    } c[] = {
        { 128, 1, 128, 128 }, { 128, 7, 128, 128 }, { 16, 33, 128, 128 },
        { 8, 128, 128, 128 }, { 16, 129, 128, 128 }, { 8, 1000, 128, 128 },
        { 1, 5, 128, 128 }, { 3, 300, 128, 128 }, { 64, 1, 192, 256 },
        { 64, 32, 192, 256 }, { 8, 33, 192, 256 }, { 8, 1000, 192, 256 }
    };

    for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        memset(&t, 0, sizeof(t));

        t.heads = c[i].heads;
        t.rows = c[i].rows;

        t.transposed = 1;
        t.in = c[i].nope;
        t.out = 512;
        t.ld_x = t.heads * (c[i].nope + 64);
        t.step_x = c[i].nope + 64;
        t.ld_w = 512;
        t.step_w = (c[i].nope + c[i].v) * 512;
        t.ld_y = t.heads * 576;
        t.step_y = 576;

        test_bf16_shape(&t);

        t.transposed = 0;
        t.in = 512;
        t.out = c[i].v;
        t.ld_x = t.heads * 512;
        t.step_x = 512;
        t.ld_y = t.heads * c[i].v;
        t.step_y = c[i].v;

        test_bf16_shape(&t);
    }
}


static void
test_refused(void **state)
{
    dsa_bf16_t        y[1];
    dsa_fp8_rows_t    x = { NULL, NULL, 4 };
    dsa_fp8_weight_t  w = { NULL, NULL, 8, 128 };

    /* nothing is launched, so the pointers are not used */

    test_begin();

#define REFUSED(call)  assert_int_equal(call, cudaErrorInvalidValue)

    REFUSED(dsa_cuda_gemm_fp8(test_gemm, y, 8, &x, &w, 0, NULL));
    REFUSED(dsa_cuda_gemm_fp8(test_gemm, y, 8, &x, &w, 5, NULL));

    x.ld = 6;
    REFUSED(dsa_cuda_gemm_fp8(test_gemm, y, 8, &x, &w, 5, NULL));

    x.ld = 8;
    w.rows = 12;
    REFUSED(dsa_cuda_gemm_fp8(test_gemm, y, 8, &x, &w, 5, NULL));

    w.rows = 8;
    w.cols = 64;
    REFUSED(dsa_cuda_gemm_fp8(test_gemm, y, 8, &x, &w, 5, NULL));

    w.cols = 128;
    REFUSED(dsa_cuda_gemm_fp8(test_gemm, y, 12, &x, &w, 5, NULL));

    REFUSED(dsa_cuda_gemm_bf16(test_gemm, y, 8, 0, y, 8, y, 8, 0, 8, 8, NULL));
    REFUSED(dsa_cuda_gemm_bf16(test_gemm, y, 8, 0, y, 8, y, 8, 1, 4, 8, NULL));
    REFUSED(dsa_cuda_gemm_bf16(test_gemm, y, 8, 0, y, 8, y, 8, 1, 8, 4, NULL));
    REFUSED(dsa_cuda_gemm_bf16(test_gemm, y, 8, 0, y, 12, y, 8, 1, 8, 8,
                               NULL));
    REFUSED(dsa_cuda_gemm_heads(test_gemm, y, 8, 8, y, 8, 8, y, 8, 8, 0, 0, 1,
                                8, 8, NULL));
    REFUSED(dsa_cuda_gemm_heads(test_gemm, y, 8, 8, y, 8, 4, y, 8, 8, 0, 2, 1,
                                8, 8, NULL));

    test_end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_fp8_rows, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_fp8_weights, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_bf16_rows, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_heads, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
