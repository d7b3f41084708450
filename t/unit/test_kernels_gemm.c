
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
#include "kernels/core/fp8.h"
#include "kernels/gemm/gemm.h"
#include "t/unit/numbers.h"


/*
 * Products, bit by bit, against the order of additions that gemm.h documents,
 * written out here; weights in each dtype and layout; and dequantization, code
 * by code.
 */

#define ROWS    15
#define OUT     200
#define IN      300
#define FIRST   256         /* rows of a tensor before those of a weight */


/* As gemm.h: one rounding on an x86-64 with FMA, two elsewhere. */

static float
multiply_add(float a, float b, float c)
{
    volatile float  product;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return fmaf(a, b, c);
    }
#endif

    product = a * b;

    return product + c;
}


/* An element, w's inputs being step apart. */

static float
element(const float *x, const float *w, size_t step, size_t in, float y,
    int add)
{
    float   s;
    size_t  i, j;

    for (i = 0; i < in; i += DSA_GEMM_BLOCK) {
        s = 0;

        for (j = i; j < in && j < i + DSA_GEMM_BLOCK; j++) {
            s = multiply_add(x[j], w[j * step], s);
        }

        y = i == 0 && !add ? s : y + s;
    }

    return y;
}


static void
check_order(const float *x, const float *w, size_t rows, size_t out,
    size_t in, int add)
{
    float   y[ROWS * OUT], old[ROWS * OUT];
    size_t  r, o;

    dsa_t_fill(old, ROWS * OUT, 1);

    memcpy(y, old, sizeof(y));
    dsa_gemm_nt(y, OUT, x, IN, w, IN, rows, out, in, add);

    for (r = 0; r < ROWS; r++) {
        for (o = 0; o < OUT; o++) {
            assert_true(y[r * OUT + o]
                        == (r < rows && o < out
                            ? element(x + r * IN, w + o * IN, 1, in,
                                      old[r * OUT + o], add)
                            : old[r * OUT + o]));
        }
    }

    memcpy(y, old, sizeof(y));
    dsa_gemm_nn(y, OUT, x, IN, w, OUT, rows, out, in, add);

    for (r = 0; r < ROWS; r++) {
        for (o = 0; o < OUT; o++) {
            assert_true(y[r * OUT + o]
                        == (r < rows && o < out
                            ? element(x + r * IN, w + o, OUT, in,
                                      old[r * OUT + o], add)
                            : old[r * OUT + o]));
        }
    }
}


static void
test_order(void **state)
{
    float   *x, *w;
    size_t   rows, i, j;

    static const size_t  out[] = { 1, 4, 63, 64, 67, 128, 200 };
    static const size_t  in[] = { 1, 3, 127, 128, 130, 256, 300 };

    x = malloc(ROWS * IN * sizeof(float));
    w = malloc(OUT * IN * sizeof(float));
    assert_true(x != NULL && w != NULL);

    dsa_t_fill(x, ROWS * IN, 1);
    dsa_t_fill(w, OUT * IN, 1);

    for (rows = 1; rows <= ROWS; rows++) {
        for (i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
            for (j = 0; j < sizeof(in) / sizeof(in[0]); j++) {
                check_order(x, w, rows, out[i], in[j], (int) rows % 2);
            }
        }
    }

    free(x);
    free(w);
}


/* A chain has no blocks, and inputs that are 0 change nothing in it. */

static void
test_chain(void **state)
{
    float   x[ROWS * IN], w[IN * OUT], y[ROWS * OUT], s;
    size_t  r, o, i, rows, out, in;

    dsa_t_fill(w, IN * OUT, 1);
    dsa_t_fill(x, ROWS * IN, 1);

    for (i = 0; i < ROWS * IN; i++) {
        x[i] = dsa_t_random(3) == 0 ? 0 : x[i];
    }

    for (rows = 1; rows <= ROWS; rows++) {
        out = 1 + dsa_t_random(OUT);
        in = rows == ROWS ? IN : 1 + dsa_t_random(IN);

        dsa_gemm_nn_chain(y, OUT, x, IN, w, OUT, rows, out, in);

        for (r = 0; r < rows; r++) {
            for (o = 0; o < out; o++) {
                for (i = 0, s = 0; i < in; i++) {
                    if (x[r * IN + i] != 0) {
                        s = multiply_add(x[r * IN + i], w[i * OUT + o], s);
                    }
                }

                assert_true(y[r * OUT + o] == s);
            }
        }
    }
}


/* Rows first .. of a tensor in a dtype, and the same in float32. */

typedef struct {
    void       *data;               /* [FIRST + OUT, IN] */
    float      *scale;
    float      *f32;
} tensor_t;


static void
tensor_fill(tensor_t *t, dsa_gemm_dtype_e dtype)
{
    size_t     i, n, blocks;
    uint8_t   *codes;
    uint16_t  *halves;

    n = (size_t) (FIRST + IN) * IN;
    blocks = (IN + 127) / 128;

    t->data = malloc(n * sizeof(float));
    t->f32 = malloc(n * sizeof(float));
    t->scale = malloc((FIRST + IN) * blocks * sizeof(float));
    assert_true(t->data != NULL && t->f32 != NULL && t->scale != NULL);

    codes = t->data;
    halves = t->data;

    for (i = 0; i < (FIRST + IN) * blocks; i++) {
        t->scale[i] = 0.001f + fabsf(dsa_t_uniform());
    }

    for (i = 0; i < n; i++) {
        switch (dtype) {

        case DSA_GEMM_F32:
            t->f32[i] = dsa_t_uniform();
            ((float *) t->data)[i] = t->f32[i];
            break;

        case DSA_GEMM_BF16:
            halves[i] = dsa_bf16_encode(dsa_t_uniform());
            t->f32[i] = dsa_bf16_decode(halves[i]);
            break;

        case DSA_GEMM_E4M3:
            codes[i] = (uint8_t) dsa_t_random(256);
            codes[i] = (codes[i] & 0x7f) == 0x7f ? 0 : codes[i];
            t->f32[i] = t->scale[i / IN / 128 * blocks + i % IN / 128]
                        * dsa_e4m3_value[codes[i]];
            break;

        case DSA_GEMM_INT4:
            fail_msg("t/unit/test_int4.c has these");
        }
    }
}


static void
check_weight(const tensor_t *t, dsa_gemm_dtype_e dtype,
    dsa_gemm_layout_e layout, size_t first)
{
    void               *memory;
    float               x[7 * IN], y[7 * IN], packed_y[7 * IN];
    size_t              r, o, at, n, step;
    dsa_gemm_weight_t   w, packed;

    static const size_t  bytes[] = { 4, 2, 1 };

    dsa_t_fill(x, 7 * IN, 1);

    memset(&w, 0, sizeof(w));
    w.dtype = dtype;
    w.layout = layout;
    w.data = (const uint8_t *) t->data + first * IN * bytes[dtype];
    w.scale = t->scale;
    w.first = first;
    w.out = layout == DSA_GEMM_OUT_IN ? OUT : IN;
    w.in = layout == DSA_GEMM_OUT_IN ? IN : OUT;
    w.ld = IN;
    w.ld_scale = (IN + 127) / 128;

    memory = aligned_alloc(64, dsa_gemm_packed(&w));
    assert_non_null(memory);
    dsa_gemm_pack(&packed, memory, &w);
    assert_int_equal(packed.layout, DSA_GEMM_PANELS);

    for (at = 0; at < w.out; at += n) {
        n = w.out - at < 128 ? w.out - at : 128;
        dsa_gemm_weight(y + at, w.out, x, IN, &w, 7, at, n);
        dsa_gemm_weight(packed_y + at, w.out, x, IN, &packed, 7, at, n);
    }

    step = layout == DSA_GEMM_OUT_IN ? 1 : IN;

    for (r = 0; r < 7; r++) {
        for (o = 0; o < w.out; o++) {
            at = first * IN + o * (layout == DSA_GEMM_OUT_IN ? IN : 1);
            assert_true(y[r * w.out + o] == element(x + r * IN, t->f32 + at,
                                                    step, w.in, 0, 0));
        }
    }

    assert_memory_equal(y, packed_y, 7 * w.out * sizeof(float));
    free(memory);
}


/* Parts of a tensor at and between the borders of panels and of blocks. */

static void
test_weights(void **state)
{
    size_t            i;
    tensor_t          t;
    dsa_gemm_dtype_e  dtype;

    static const size_t  first[] = { 0, 128, 64, 192, 256, 1, 100 };

    for (dtype = DSA_GEMM_F32; dtype <= DSA_GEMM_E4M3; dtype++) {
        tensor_fill(&t, dtype);

        for (i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
            check_weight(&t, dtype, DSA_GEMM_OUT_IN, first[i]);
            check_weight(&t, dtype, DSA_GEMM_IN_OUT, first[i]);
        }

        free(t.data);
        free(t.scale);
        free(t.f32);
    }
}


/* A code alone, and NaN among others, wherever in a vector it lies. */

static void
test_decode(void **state)
{
    float     out[600], expected, scale;
    size_t    i, n, round;
    uint8_t   q[600];

    static const float  scales[] = { 1, 0.3f, 0x1p-126f, 3e38f, 0x1p99f };

    for (round = 0; round < 200; round++) {
        n = round < 5 ? 512 : dsa_t_random(600);
        scale = scales[round % 5];

        for (i = 0; i < n; i++) {
            q[i] = (uint8_t) (round < 5 ? i : dsa_t_random(256));

            if (round % 2 && (q[i] & 0x7f) == 0x7f && dsa_t_random(8)) {
                q[i] = 3;
            }
        }

        out[n < 600 ? n : 599] = 7;
        dsa_fp8_decode(out, q, n, scale);

        for (i = 0; i < n; i++) {
            expected = scale * dsa_e4m3_value[q[i]];

            if (isnan(expected)) {
                assert_true(isnan(out[i]));

            } else {
                assert_memory_equal(&out[i], &expected, sizeof(float));
            }
        }

        assert_true(n >= 600 || out[n] == 7);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_decode)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
