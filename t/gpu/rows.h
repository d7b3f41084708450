
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_GPU_ROWS_H_INCLUDED_
#define _DSA_T_GPU_ROWS_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/core/fp8.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/*
 * Rows for the tests of the ops between the products, and their comparison
 * with the CPU twins.  Ops without sums are equal to their twins in every bit.
 * Sums differ in their order, by a few times 2^-24 of themselves.  That
 * changes a bf16 if the value was that near to the middle between two of them:
 * about one value in ten thousand.  Such values are counted, and may be off by
 * one step.
 */


#define EPS            1e-6f

/* of n elements after a sum may differ */
#define FEW(n)         ((n) / 3000 + 3)


static inline void *
get(size_t size)
{
    void  *p;

    p = calloc(1, size + 1);
    assert_non_null(p);

    return p;
}


/* n random numbers that are bf16, with outliers as activations have them. */

static inline float *
numbers(size_t n, float scale)
{
    float   *x;
    size_t   i;

    x = get(n * sizeof(float));
    dsa_t_fill(x, n, scale);

    for (i = dsa_t_random(500); i < n; i += 1 + dsa_t_random(500)) {
        x[i] *= 50;
    }

    dsa_bf16_round_rows(x, n);

    return x;
}


/* Copies rows of cols to rows that are ld apart; gaps are 0xffff. */

static inline uint16_t *
spread(const float *x, size_t rows, size_t cols, size_t ld)
{
    size_t     i, j;
    uint16_t  *v, *device;

    v = get(rows * ld * 2);
    memset(v, 0xff, rows * ld * 2);

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            v[i * ld + j] = dsa_bf16_encode(x[i * cols + j]);
        }
    }

    device = gpu_upload(v, rows * ld * 2);
    free(v);

    return device;
}


/*
 * Counts how many of the device's bf16 [rows, ld] differ from want [rows,
 * cols] by one step.  A greater difference, or a written gap, fails the test.
 * got [rows, cols].
 */

static inline size_t
differ(float *got, const uint16_t *device, const float *want, size_t rows,
    size_t cols, size_t ld)
{
    int32_t    d;
    size_t     i, j, n;
    uint16_t  *v, a, b;

    v = get(rows * ld * 2);
    gpu_download(v, device, rows * ld * 2);

    n = 0;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < ld; j++) {
            a = v[i * ld + j];

            if (j >= cols) {
                assert_int_equal(a, 0xffff);
                continue;
            }

            b = dsa_bf16_encode(want[i * cols + j]);
            got[i * cols + j] = dsa_bf16_decode(a);
            d = (int32_t) a - b;

            if (d != 0) {
                assert_true(d == 1 || d == -1);
                n++;
            }
        }
    }

    free(v);

    return n;
}


/* The device's bytes are the expected ones, also after a second run. */

static inline void
same(const void *device, const void *want, size_t size)
{
    void  *v;

    v = get(size);
    gpu_download(v, device, size);
    assert_memory_equal(v, want, size);
    free(v);
}


/* Device rows of e4m3 with more scales for each group than there are rows. */

static inline dsa_fp8_rows_t
fp8_rows(size_t rows, size_t cols)
{
    dsa_fp8_rows_t  q;

    q.ld = ((rows + 3) & ~(size_t) 3) + 4;
    q.q = gpu_alloc(rows * cols);
    q.scale = gpu_alloc(cols / 128 * q.ld * sizeof(float));

    return q;
}


/*
 * Checks that they are x [rows, cols] quantized, and that scales behind the
 * rows were not written.
 */

static inline void
quantized(const dsa_fp8_rows_t *q, const float *x, size_t rows, size_t cols,
    int ue8m0)
{
    float     *scale, *want, s;
    size_t     i, j, g;
    uint8_t   *code;
    uint32_t   u;

    code = get(rows * cols);
    want = get(cols / 128 * q->ld * sizeof(float));
    scale = get(cols / 128 * q->ld * sizeof(float));
    memset(want, 0xff, cols / 128 * q->ld * sizeof(float));

    for (i = 0; i < rows; i++) {
        for (g = 0; g < cols / 128; g++) {
            s = dsa_fp8_scale(x + i * cols + g * 128, 128, ue8m0);
            want[g * q->ld + i] = s;

            for (j = g * 128; j < (g + 1) * 128; j++) {
                code[i * cols + j]
                    = dsa_e4m3_code(dsa_e4m3_round(x[i * cols + j] / s));
            }
        }
    }

    same(q->q, code, rows * cols);
    same(q->scale, want, cols / 128 * q->ld * sizeof(float));

    gpu_download(scale, q->scale, cols / 128 * q->ld * sizeof(float));

    for (i = 0; ue8m0 && i < cols / 128 * q->ld; i++) {
        memcpy(&u, &scale[i], sizeof(u));
        assert_true(u == UINT32_MAX || (u & 0x7fffff) == 0);
    }

    free(code);
    free(want);
    free(scale);
}


static inline void
again(dsa_fp8_rows_t *a, dsa_fp8_rows_t *b, size_t rows, size_t cols)
{
    void    *v;
    size_t   n;

    n = rows * cols;
    v = get(n);
    gpu_download(v, a->q, n);
    same(b->q, v, n);
    free(v);

    n = cols / 128 * a->ld * sizeof(float);
    v = get(n);
    gpu_download(v, a->scale, n);
    same(b->scale, v, n);
    free(v);
}


#endif /* _DSA_T_GPU_ROWS_H_INCLUDED_ */
