
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/core/bf16.h"
#include "kernels/core/int4.h"
#include "kernels/gemm/gemm.h"
#include "t/unit/numbers.h"


/*
 * INT4 weights: every pair of numbers, the fit of scales against a search over
 * many scales in float64, products against float64, and scales in float32.
 */

#define GROUP   DSA_INT4_GROUP
#define BYTES   (GROUP / 2)


/* The number of column i, from the definition of the format. */

static int
number(const uint8_t *q, size_t i)
{
    int  v;

    v = i % 2 == 0 ? q[i / 2] % 16 : q[i / 2] / 16;

    return v < 8 ? v : v - 16;
}


static void
test_decode(void **state)
{
    float    out[GROUP];
    int8_t   codes[GROUP];
    size_t   i, j;
    uint8_t  q[BYTES];

    for (i = 0; i < 256; i += BYTES) {
        for (j = 0; j < BYTES; j++) {
            q[j] = (uint8_t) (i + j);
        }

        dsa_int4_decode(out, q, 0.375f);
        dsa_int4_codes(codes, q);

        for (j = 0; j < GROUP; j++) {
            assert_int_equal(codes[j], number(q, j));
            assert_true(out[j] == 0.375f * (float) number(q, j));
        }
    }
}


/* The sum of squares of w - scale * q. */

static double
error_of(const float *w, const uint8_t *q, double scale)
{
    double  d, sum;
    size_t  i;

    sum = 0;

    for (i = 0; i < GROUP; i++) {
        d = w[i] - scale * number(q, i);
        sum += d * d;
    }

    return sum;
}


/* The same with the best q for a scale. */

static double
error_at(const float *w, double scale)
{
    double  d, q, sum;
    size_t  i;

    sum = 0;

    for (i = 0; i < GROUP; i++) {
        q = rint(w[i] / scale);
        q = q < -8 ? -8 : q > 7 ? 7 : q;
        d = w[i] - scale * q;
        sum += d * d;
    }

    return sum;
}


static float
largest(const float *w)
{
    float   most;
    size_t  i;

    for (i = 0, most = 0; i < GROUP; i++) {
        most = fabsf(w[i]) > most ? fabsf(w[i]) : most;
    }

    return most;
}


static float
sum_of_uniforms(void)
{
    return dsa_t_uniform() + dsa_t_uniform() + dsa_t_uniform();
}


/* A group as trained weights are, with some that are much larger. */

static void
fill_group(float *w, uint32_t kind)
{
    size_t  i;

    for (i = 0; i < GROUP; i++) {
        w[i] = 0.02f * (kind % 3 == 2 ? dsa_t_uniform() : sum_of_uniforms());
    }

    if (kind % 3 == 1) {
        w[dsa_t_random(GROUP)] *= 6;
    }

    if (kind % 5 == 4) {
        for (i = 0; i < GROUP; i++) {
            w[i] = dsa_bf16_decode(dsa_bf16_encode(w[i]));
        }
    }
}


/*
 * The scale is a BF16 number, q is nearest to w / scale, and the sum of squares
 * is below that of max(|w|) / 7, and near the least one of 4,000 scales.
 */

static void
test_fit(void **state)
{
    float     w[GROUP], scale, most;
    double    error, plain, least, all, ideal;
    size_t    i, j;
    uint8_t   q[BYTES];

    enum { GROUPS = 300, SCALES = 4000 };

    all = 0;
    ideal = 0;

    for (i = 0; i < GROUPS; i++) {
        fill_group(w, (uint32_t) i);

        scale = dsa_int4_encode(q, w);

        assert_true(scale > 0);
        assert_true(dsa_bf16_decode(dsa_bf16_encode(scale)) == scale);

        error = error_of(w, q, scale);
        assert_true(error <= error_at(w, scale) * 1.000001);

        most = largest(w);
        plain = error_at(w, dsa_bf16_decode(dsa_bf16_encode(most / 7)));
        assert_true(error <= plain * 1.000001);

        least = plain;

        for (j = 1; j <= SCALES; j++) {
            least = fmin(least, error_at(w, 1.05 * most / 7 * (double) j
                                            / SCALES));
        }

        /* BF16 has 8 bits, and the search above is finer than the fit */

        assert_true(error <= 1.1 * least);

        all += error;
        ideal += least;
    }

    assert_true(all <= 1.02 * ideal);
}


static void
test_edges(void **state)
{
    float     w[GROUP], scale;
    size_t    i, j;
    uint8_t   q[BYTES], zero[BYTES] = { 0 };

    static const float  faults[] = { NAN, INFINITY, -INFINITY };
    static const float  sizes[] = { 1e-45f, 1e-39f, 1e-37f, 1e-30f, 1e30f,
                                    3e38f };

    memset(w, 0, sizeof(w));
    memset(q, 0xff, sizeof(q));

    assert_true(dsa_int4_encode(q, w) == 1);
    assert_memory_equal(q, zero, BYTES);

    for (i = 0; i < 3; i++) {
        for (j = 0; j < GROUP; j += 127) {
            memset(w, 0, sizeof(w));
            w[j] = faults[i];
            assert_true(isnan(dsa_int4_encode(q, w)));
        }
    }

    /* a scale is finite and above 0, whatever the numbers are */

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (j = 0; j < GROUP; j++) {
            w[j] = sizes[i] * dsa_t_uniform();
        }

        scale = dsa_int4_encode(q, w);
        assert_true(scale > 0 && isfinite(scale));
        assert_true(error_of(w, q, scale) <= error_at(w, scale) * 1.000001);

        if (i >= 2) {
            assert_true(error_of(w, q, scale)
                        <= 0.02 * error_of(w, zero, scale));
        }
    }

    /* one number of a group; -8 is used */

    memset(w, 0, sizeof(w));
    w[77] = -0.4f;
    scale = dsa_int4_encode(q, w);
    assert_true(fabsf(scale * (float) number(q, 77) + 0.4f) < 0.002f);

    for (i = 0; i < GROUP; i++) {
        w[i] = (float) (i % 16) - 8.0f;
    }

    assert_true(dsa_int4_encode(q, w) == 1);

    for (i = 0; i < GROUP; i++) {
        assert_int_equal(number(q, i), (int) (i % 16) - 8);
    }
}


/*
 * Products with a part of a tensor, in float64 from the bytes; their bits do
 * not depend on the other rows, nor on how outputs are cut, nor on the type of
 * the scales: those in float32 are near the BF16 numbers to which they round.
 */

static void
check_product(size_t out, size_t cols, size_t col, size_t in, size_t row)
{
    enum { ROWS = 7 };

    float              *x, *y, *part, *wide;
    double             *ref, s;
    size_t              r, o, i, groups, rows;
    uint8_t            *q;
    uint16_t           *scale;
    dsa_gemm_weight_t   w;

    rows = row + out;
    groups = cols / GROUP;
    x = malloc(ROWS * cols * sizeof(float));
    y = malloc(ROWS * out * sizeof(float));
    part = malloc(ROWS * out * sizeof(float));
    ref = malloc(ROWS * out * sizeof(double));
    q = malloc(rows * cols / 2);
    scale = malloc(rows * groups * sizeof(uint16_t));
    wide = malloc(rows * groups * sizeof(float));

    assert_true(x != NULL && y != NULL && part != NULL && ref != NULL
                && q != NULL && scale != NULL && wide != NULL);

    dsa_t_fill(x, ROWS * cols, 1);

    for (i = 0; i < rows * cols / 2; i++) {
        q[i] = (uint8_t) dsa_t_random(256);
    }

    for (i = 0; i < rows * groups; i++) {
        scale[i] = dsa_bf16_encode(0.01f + 0.001f * dsa_t_uniform());
        wide[i] = dsa_bf16_decode(scale[i]) * (1 + 0x1p-10f * dsa_t_uniform());
    }

    for (r = 0; r < ROWS; r++) {
        for (o = 0; o < out; o++) {
            for (i = col, s = 0; i < col + in; i++) {
                s += (double) x[r * cols + i]
                     * number(q + (row + o) * cols / 2, i)
                     * dsa_bf16_decode(scale[(row + o) * groups + i / GROUP]);
            }

            ref[r * out + o] = s;
        }
    }

    memset(&w, 0, sizeof(w));

    w.dtype = DSA_GEMM_INT4;
    w.data = q + (row * cols + col) / 2;
    w.groups = scale + col / GROUP;
    w.first = row;
    w.out = out;
    w.in = in;
    w.ld = cols;
    w.ld_scale = groups;

    dsa_gemm_weight(y, out, x + col, cols, &w, ROWS, 0, out);
    assert_true(dsa_t_error(y, ref, ROWS * out) < 1e-6);

    for (r = 0; r < ROWS; r++) {
        for (o = 0; o < out; o += DSA_GEMM_PANEL) {
            i = out - o < DSA_GEMM_PANEL ? out - o : DSA_GEMM_PANEL;
            dsa_gemm_weight(part + r * out + o, out, x + r * cols + col, cols,
                            &w, 1, o, i);
        }
    }

    assert_memory_equal(y, part, ROWS * out * sizeof(float));

    w.groups = NULL;
    w.scale = wide + col / GROUP;

    dsa_gemm_weight(part, out, x + col, cols, &w, ROWS, 0, out);
    assert_memory_equal(y, part, ROWS * out * sizeof(float));

    free(wide);
    free(x);
    free(y);
    free(part);
    free(ref);
    free(q);
    free(scale);
}


static void
test_product(void **state)
{
    check_product(64, 128, 0, 128, 0);
    check_product(1, 256, 0, 256, 0);
    check_product(130, 1024, 0, 1024, 0);
    check_product(200, 512, 128, 256, 3);
    check_product(67, 384, 256, 128, 64);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_product),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
