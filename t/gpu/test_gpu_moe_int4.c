
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/core/fp8.h"
#include "kernels/gemm/gemm.h"
#include "kernels/moe/moe_int4.h"
#include "kernels/sample/random.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/*
 * The experts' products with INT4 weights.  If rows are small integers and
 * scales powers of two, every sum is exact in any order, in the tensor cores
 * too, and each output has to be the integers' sum rounded to bf16, in every
 * bit.  That proves the nibbles, the layout, places, tiles, groups and scales.
 * Random values show how exact sums are, beside float64 and the CPU twin.
 */

#define EXPERTS     512

/* bounds of pairs */
#define FEW         1                   /* tiles of 64 rows, 128 features */
#define WIDE        64                  /* of an expert: tiles of 64 rows */
#define MANY        0x40000000          /* tiles of 96 rows */


typedef struct {
    int8_t             *x_int;          /* [places, cols] -1, 0, 1 */
    int8_t             *w_int;          /* [experts, rows, cols] -8 .. 7 */
    float              *x_scale;        /* [cols / 128, ld] */
    float              *w_scale;        /* [experts, rows, cols / 128] */
    int32_t             count[EXPERTS];
    int32_t             offset[EXPERTS + 1];
    uint32_t            experts;
    uint16_t           *y;
    dsa_bf16_t         *device;
    dsa_fp8_rows_t      x;
    dsa_moe_plan_t      plan;
    dsa_int4_weight_t   w;
} problem_t;


static void *
get(size_t size)
{
    void  *p;

    p = malloc(size + 1);
    assert_non_null(p);

    return p;
}


/* The plan of count[], as dsa_cuda_moe_plan() would make it. */

static void
plan_places(problem_t *p, uint32_t align)
{
    uint32_t  e;

    p->offset[0] = 0;

    for (e = 0; e < p->experts; e++) {
        p->offset[e + 1] = p->offset[e] + (p->count[e] + (int32_t) align - 1)
                                          / (int32_t) align * (int32_t) align;
    }

    memset(&p->plan, 0, sizeof(dsa_moe_plan_t));

    p->plan.align = align;
    p->plan.places = (uint32_t) p->offset[p->experts] + align;
    p->plan.offset = gpu_upload(p->offset, (p->experts + 1)
                                           * sizeof(int32_t));
    p->plan.count = gpu_upload(p->count, p->experts * sizeof(int32_t));
}


/* The published layout, which is packed on the GPU. */

static void
upload_weights(problem_t *p, const uint8_t *q, const uint16_t *scale)
{
    size_t    n;
    uint8_t  *codes;
    uint16_t *scales;

    n = (size_t) p->experts * p->w.rows * p->w.cols;
    codes = gpu_upload(q, n / 2);
    scales = gpu_upload(scale, n / 128 * sizeof(uint16_t));

    gpu_ok(dsa_cuda_int4_pack(codes, scales, p->w.rows, p->w.cols, p->experts,
                              NULL));

    p->w.q = codes;
    p->w.scale = scales;
}


/* Padding of x and of its scales is NaN. */

static void
problem(problem_t *p, uint32_t cols, uint32_t rows, uint32_t align)
{
    size_t     i, n, g, places, groups;
    int32_t    r;
    uint8_t   *q;
    uint16_t  *scale;
    uint32_t   e;

    plan_places(p, align);

    places = p->plan.places;
    groups = cols / 128;

    p->w.rows = rows;
    p->w.cols = cols;

    n = (size_t) p->experts * rows * cols;
    p->w_int = get(n);
    p->w_scale = get(n / 128 * sizeof(float));
    q = get(n / 2);
    scale = get(n / 128 * sizeof(uint16_t));

    for (i = 0; i < n; i++) {
        p->w_int[i] = (int8_t) dsa_t_random(16) - 8;
    }

    for (i = 0; i < n / 2; i++) {
        q[i] = (uint8_t) ((p->w_int[2 * i] & 0xf)
                          | (p->w_int[2 * i + 1] & 0xf) << 4);
    }

    for (i = 0; i < n / 128; i++) {
        p->w_scale[i] = ldexpf(1, (int) dsa_t_random(5) - 2);
        scale[i] = dsa_bf16_encode(p->w_scale[i]);
    }

    upload_weights(p, q, scale);
    free(q);
    free(scale);

    p->x.ld = (places + 3) / 4 * 4 + 4;
    p->x_int = get(places * cols);
    p->x_scale = get(groups * p->x.ld * sizeof(float));
    q = get(places * cols);

    memset(q, 0xff, places * cols);
    memset(p->x_scale, 0xff, groups * p->x.ld * sizeof(float));

    for (e = 0; e < p->experts; e++) {
        for (r = p->offset[e]; r < p->offset[e] + p->count[e]; r++) {
            for (i = 0; i < cols; i++) {
                p->x_int[r * cols + i] = (int8_t) dsa_t_random(3) - 1;
                q[r * cols + i] = dsa_e4m3_code(p->x_int[r * cols + i]);
            }

            for (g = 0; g < groups; g++) {
                p->x_scale[g * p->x.ld + r] = ldexpf(1, (int) dsa_t_random(5)
                                                        - 2);
            }
        }
    }

    p->x.q = gpu_upload(q, places * cols);
    p->x.scale = gpu_upload(p->x_scale, groups * p->x.ld * sizeof(float));
    free(q);

    p->device = gpu_alloc(places * rows * sizeof(uint16_t));
    p->y = get(places * rows * sizeof(uint16_t));
}


static void
problem_free(problem_t *p)
{
    free(p->x_int);
    free(p->w_int);
    free(p->x_scale);
    free(p->w_scale);
    free(p->y);

    assert_int_equal(gpu_free_all(NULL), 0);
}


static void
multiply(problem_t *p, uint32_t pairs)
{
    size_t  size;

    size = (size_t) p->plan.places * p->w.rows * sizeof(uint16_t);

    gpu_poison(p->device, size);
    gpu_ok(dsa_cuda_moe_gemm_int4(&gpu_state, p->device, &p->x, &p->w,
                                  &p->plan, p->experts, pairs, NULL));
    gpu_download(p->y, p->device, size);
}


static float
exact(const problem_t *p, uint32_t e, int32_t place, uint32_t row)
{
    int            s;
    float          sum;
    size_t         g, i, n;
    const int8_t  *x, *w;

    n = (size_t) e * p->w.rows + row;
    x = p->x_int + (size_t) place * p->w.cols;
    w = p->w_int + n * p->w.cols;
    sum = 0;

    for (g = 0; g < p->w.cols / 128; g++) {
        for (i = g * 128, s = 0; i < (g + 1) * 128; i++) {
            s += x[i] * w[i];
        }

        sum += (float) s * p->x_scale[g * p->x.ld + place]
               * p->w_scale[n * (p->w.cols / 128) + g];
    }

    return sum;
}


/*
 * Checks every step-th output, and that only the places of pairs are written.
 */

static void
check_exact(const problem_t *p, uint32_t step)
{
    int32_t    r;
    uint32_t   e, i, n, skip;
    uint16_t  *y, expected;

    skip = 0;

    for (e = 0; e < p->experts; e++) {
        for (r = p->offset[e]; r < p->offset[e + 1]; r++) {
            y = p->y + (size_t) r * p->w.rows;

            if (r >= p->offset[e] + p->count[e]) {
                for (i = 0; i < p->w.rows; i++) {
                    assert_int_equal(y[i], 0xffff);
                }

                continue;
            }

            n = p->w.rows;

            for (i = skip; i < n; i += step) {
                expected = dsa_bf16_encode(exact(p, e, r, i));

                if (y[i] != expected) {
                    print_error("expert %u of %d rows, row %d, feature %u: "
                                "%g, not %g\n", e, p->count[e],
                                r - p->offset[e], i, dsa_bf16_decode(y[i]),
                                dsa_bf16_decode(expected));
                    fail();
                }
            }

            skip = i - n;
        }
    }

    y = p->y + (size_t) p->offset[p->experts] * p->w.rows;

    for (i = 0; i < p->plan.align * p->w.rows; i++) {
        assert_int_equal(y[i], 0xffff);
    }
}


/*
 * All kinds of tiles, which have to give the same bits.  Those of 256 features
 * are used if rows is a multiple of 256 and there are enough of them.
 */

static void
check_all(uint32_t experts, const int32_t *count, size_t counts,
    uint32_t cols, uint32_t rows, uint32_t align, uint32_t step)
{
    size_t     i, size;
    uint16_t  *y;
    problem_t  p;

    p.experts = experts;

    for (i = 0; i < experts; i++) {
        p.count[i] = count[i % counts];
    }

    problem(&p, cols, rows, align);

    multiply(&p, FEW);
    check_exact(&p, step);

    size = (size_t) p.plan.places * rows * sizeof(uint16_t);
    y = get(size);
    memcpy(y, p.y, size);

    multiply(&p, experts * WIDE);
    check_exact(&p, step);
    assert_memory_equal(y, p.y, size);

    multiply(&p, MANY);
    check_exact(&p, step);
    assert_memory_equal(y, p.y, size);

    free(y);
    problem_free(&p);
}


static void
test_exact_small(void **state)
{
    static const int32_t  one[] = { 1 };
    static const int32_t  mixed[] = { 0, 1, 7, 8, 9, 15, 16, 17, 0, 0, 31, 33,
                                      47, 48, 49 };

    check_all(1, one, 1, 128, 128, 8, 1);
    check_all(8, mixed, 15, 128, 128, 8, 1);
    check_all(15, mixed, 15, 256, 384, 16, 1);
    check_all(64, mixed, 15, 128, 640, 32, 1);
    check_all(512, mixed, 15, 128, 128, 64, 3);
}


static void
test_exact_sizes(void **state)
{
    static const int32_t  sizes[] = { 63, 64, 65, 79, 80, 81, 95, 97, 112, 113,
                                      127, 128, 129, 193, 255, 256, 257, 0,
                                      300, 2 };

    check_all(20, sizes, 20, 256, 512, 8, 5);
    check_all(20, sizes, 20, 1152, 256, 128, 11);
}


/*
 * Numbers of groups around those of the stages of both kinds of tiles, and the
 * widest.
 */

static void
test_exact_long(void **state)
{
    size_t  i;

    static const int32_t   few[] = { 3, 0, 40, 130 };
    static const uint32_t  groups[] = { 6, 7, 8, 11, 12, 13, 25, 65, 128 };

    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        check_all(4, few, 4, groups[i] * 128, 128, 8, 7);
    }
}


/*
 * Tiles of 256 features, of which there have to be 132 or more: numbers of
 * groups around those of their stages, one and several tiles of an expert.
 */

static void
test_exact_wide(void **state)
{
    size_t  i;

    static const int32_t   mixed[] = { 0, 1, 8, 9, 16, 17, 32, 33, 48, 49, 63,
                                       64, 65, 130 };
    static const uint32_t  groups[] = { 1, 6, 7, 8, 13, 14, 15, 29 };

    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        check_all(140, mixed, 14, groups[i] * 128, 256, 8, 97);
    }

    check_all(71, mixed, 14, 1024, 512, 16, 89);
}


/* No row is routed to some experts, or one expert has all rows. */

static void
test_ragged(void **state)
{
    problem_t             p;
    static const int32_t  none[] = { 0 };

    check_all(256, none, 1, 128, 128, 8, 1);

    memset(p.count, 0, sizeof(p.count));
    p.experts = 256;
    p.count[255] = 1000;
    problem(&p, 256, 128, 8);
    multiply(&p, FEW);
    check_exact(&p, 1);
    multiply(&p, MANY);
    check_exact(&p, 1);

    /* without pairs nothing is launched */

    gpu_poison(p.device, (size_t) p.plan.places * 128 * sizeof(uint16_t));
    gpu_ok(dsa_cuda_moe_gemm_int4(&gpu_state, p.device, &p.x, &p.w, &p.plan,
                                  256, 0, NULL));
    gpu_download(p.y, p.device, 256 * sizeof(uint16_t));
    assert_int_equal(p.y[0], 0xffff);

    problem_free(&p);
}


static void
test_refused(void **state)
{
    uint8_t            *q;
    problem_t           p;
    dsa_bf16_t         *scale;
    dsa_fp8_rows_t      x;
    dsa_moe_plan_t      plan;
    dsa_int4_weight_t   w;

    p.experts = 1;
    p.count[0] = 4;
    problem(&p, 128, 128, 8);

#define refused(x, w, plan, experts)                                          \
    assert_int_equal(dsa_cuda_moe_gemm_int4(&gpu_state, p.device, x, w, plan, \
                                            experts, 4, NULL),                \
                     cudaErrorInvalidValue)

    w = p.w;
    w.cols = 192;
    refused(&p.x, &w, &p.plan, 1);
    w.cols = DSA_CUDA_INT4_COLS + 128;
    refused(&p.x, &w, &p.plan, 1);
    w = p.w;
    w.rows = 64;
    refused(&p.x, &w, &p.plan, 1);
    refused(&p.x, &p.w, &p.plan, 513);
    x = p.x;
    x.ld = 8;
    refused(&x, &p.w, &p.plan, 1);
    x = p.x;
    x.scale++;
    refused(&x, &p.w, &p.plan, 1);
    plan = p.plan;
    plan.align = 4;
    refused(&p.x, &p.w, &plan, 1);

    q = (uint8_t *) p.w.q;
    scale = (dsa_bf16_t *) p.w.scale;

    assert_int_equal(dsa_cuda_int4_pack(q, scale, 64, 128, 2, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_int4_pack(q, scale, 128, 64, 1, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_int4_pack(q, scale, 128, DSA_CUDA_INT4_COLS
                                        + 128, 1, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_int4_pack(q + 1, scale, 128, 128, 1, NULL),
                     cudaErrorInvalidValue);

    problem_free(&p);
}


/* Random bytes, and scales between 0.5 and 1.5 times scale. */

static void
random_weights(problem_t *p, uint8_t **q, uint16_t **scale, float size)
{
    size_t  i, n;

    n = (size_t) p->experts * p->w.rows * p->w.cols;
    *q = get(n / 2);
    *scale = get(n / 128 * sizeof(uint16_t));

    for (i = 0; i < n / 2; i += 8) {
        dsa_t_state ^= dsa_t_state << 13;
        dsa_t_state ^= dsa_t_state >> 7;
        dsa_t_state ^= dsa_t_state << 17;

        memcpy(*q + i, &dsa_t_state, 8);
    }

    for (i = 0; i < n / 128; i++) {
        (*scale)[i] = dsa_bf16_encode(size * (1.0f + 0.5f * dsa_t_uniform()));
    }

    upload_weights(p, *q, *scale);
}


/*
 * Random values in the published sizes.  Some rows of x and w are multiplied
 * in float64 and as the CPU multiplies them.
 */

static void
check_random(uint32_t experts, uint32_t pairs, uint32_t cols, uint32_t rows)
{
    enum { ROWS = 24, FEATURES = 96 };

    float              *x, *got, *twin, value[128];
    double             *ref, d;
    size_t              i, j, k, n, g, groups, size;
    int32_t             place;
    uint8_t            *q, *codes;
    uint32_t            e, first;
    uint16_t           *scale, *one, *two;
    problem_t           p;
    dsa_gemm_weight_t   w;

    memset(p.count, 0, sizeof(p.count));
    p.experts = experts;

    for (i = 0; i < pairs; i++) {
        p.count[dsa_t_random(experts)]++;
    }

    plan_places(&p, DSA_MOE_ALIGN);

    groups = cols / 128;
    p.w.rows = rows;
    p.w.cols = cols;
    random_weights(&p, &q, &scale, 0.01f);

    n = p.plan.places;
    p.x.ld = (n + 3) / 4 * 4;
    p.x.q = gpu_alloc(n * cols);
    p.x.scale = gpu_alloc(p.x.ld * groups * sizeof(float));
    gpu_ok(dsa_cuda_random_e4m3(p.x.q, n * cols, dsa_t_random(1 << 30),
                                NULL));
    gpu_ok(dsa_cuda_random_f32(p.x.scale, p.x.ld * groups, 0.02f, 0.01f,
                               dsa_t_random(1 << 30), NULL));

    size = n * rows * sizeof(uint16_t);
    p.device = gpu_alloc(size);
    one = get(size);
    two = get(size);

    for (i = 0; i < 3; i++) {
        gpu_poison(p.device, size);
        gpu_ok(dsa_cuda_moe_gemm_int4(&gpu_state, p.device, &p.x, &p.w,
                                      &p.plan, experts,
                                      i == 0 ? pairs : i == 1 ? FEW : MANY,
                                      NULL));
        gpu_download(i == 0 ? one : two, p.device, size);

        if (i > 0) {
            assert_memory_equal(one, two, size);
        }
    }

    codes = get(cols);
    x = get(cols * sizeof(float));
    ref = get(ROWS * FEATURES * sizeof(double));
    got = get(ROWS * FEATURES * sizeof(float));
    twin = get(ROWS * FEATURES * sizeof(float));

    for (i = 0; i < ROWS; i++) {
        do {
            e = dsa_t_random(experts);
        } while (p.count[e] == 0);

        place = p.offset[e] + (int32_t) dsa_t_random((uint32_t) p.count[e]);

        gpu_download(codes, p.x.q + (size_t) place * cols, cols);

        for (g = 0; g < groups; g++) {
            gpu_download(value, p.x.scale + g * p.x.ld + place, sizeof(float));

            for (k = g * 128; k < g * 128 + 128; k++) {
                x[k] = value[0] * dsa_e4m3_value[codes[k]];
            }
        }

        /* 96 features from a multiple of 64 on */

        first = dsa_t_random(rows / 64 - 1) * 64;
        n = (size_t) e * rows + first;

        memset(&w, 0, sizeof(w));

        w.dtype = DSA_GEMM_INT4;
        w.data = q + n * cols / 2;
        w.groups = scale + n * groups;
        w.out = FEATURES;
        w.in = cols;
        w.ld = cols;
        w.ld_scale = groups;

        dsa_gemm_weight(&twin[i * FEATURES], FEATURES, x, cols, &w, 1, 0,
                        FEATURES);
        dsa_bf16_round_rows(&twin[i * FEATURES], FEATURES);

        for (j = 0; j < FEATURES; j++) {
            d = 0;

            for (g = 0; g < groups; g++) {
                for (k = 0; k < 128; k++) {
                    codes[0] = q[(n + j) * cols / 2 + g * 64 + k / 2];
                    codes[0] = k % 2 == 0 ? codes[0] & 0xf : codes[0] >> 4;

                    d += (double) x[g * 128 + k]
                         * (codes[0] < 8 ? codes[0] : codes[0] - 16)
                         * dsa_bf16_decode(scale[(n + j) * groups + g]);
                }
            }

            ref[i * FEATURES + j] = d;
            got[i * FEATURES + j] = dsa_bf16_decode(one[(size_t) place * rows
                                                        + first + j]);
        }
    }

    n = ROWS * FEATURES;

    print_message("%u experts, %u pairs, %u -> %u: error %.3e of float64 "
                  "(the CPU's own: %.3e)\n", experts, pairs, cols, rows,
                  dsa_t_error(got, ref, n), dsa_t_error(twin, ref, n));

    /*
     * Nearly all of the error is the rounding to bf16, which the CPU's result
     * has too; the tensor cores' short sums of 128 add less than 3 % to it.
     */

    assert_true(dsa_t_error(got, ref, n) < 2.0e-3);
    assert_true(dsa_t_error(got, ref, n) < 1.03 * dsa_t_error(twin, ref, n));

    free(one);
    free(two);
    free(codes);
    free(x);
    free(q);
    free(scale);
    free(ref);
    free(got);
    free(twin);

    assert_int_equal(gpu_free_all(NULL), 0);
}


static void
test_random_up(void **state)
{
    check_random(32, 1, 7168, 4096);
    check_random(32, 300, 7168, 4096);
    check_random(32, 4000, 7168, 4096);
    check_random(16, 100, 6144, 4096);          /* GLM-5 */
}


static void
test_random_down(void **state)
{
    check_random(32, 7, 2048, 7168);
    check_random(32, 900, 2048, 7168);
    check_random(32, 300, 2048, 6144);          /* GLM-5 */
    check_random(32, 300, 256, 7168);           /* one of 8 GPUs by width */
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_exact_small, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_exact_sizes, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_exact_long, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_exact_wide, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_ragged, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refused, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_random_up, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_random_down, gpu_setup,
                                        gpu_free_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
