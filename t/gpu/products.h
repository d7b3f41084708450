
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_GPU_PRODUCTS_H_INCLUDED_
#define _DSA_T_GPU_PRODUCTS_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/core/fp8.h"
#include "kernels/gemm/gemm.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/* Operands and results of the tests of products. */


static dsa_cuda_gemm_t  *test_gemm;


static inline void
test_begin(void)
{
    gpu_ok(dsa_cuda_gemm_create(&test_gemm, &gpu_state,
                                gpu_alloc(dsa_cuda_gemm_work())));
}


static inline void
test_end(void)
{
    gpu_ok(gpu_free_all(NULL));

    dsa_cuda_gemm_destroy(test_gemm);
    test_gemm = NULL;
}


/*
 * Large operands repeat so many numbers: a prime, so that it divides no width.
 */
#define TEST_PERIOD     1048573


static inline void
test_repeat(void *p, size_t n, size_t size)
{
    size_t  have, part;

    for (have = n < TEST_PERIOD ? n : TEST_PERIOD; have < n; have += part) {
        part = n - have < have ? n - have : have;
        memcpy((char *) p + have * size, p, part * size);
    }
}


/* Finite e4m3 codes, all with equal probability. */

static inline uint8_t *
test_codes(size_t n)
{
    size_t    i;
    uint8_t  *q;

    q = malloc(n);
    assert_non_null(q);

    for (i = 0; i < n && i < TEST_PERIOD; i++) {
        dsa_t_state ^= dsa_t_state << 13;
        dsa_t_state ^= dsa_t_state >> 7;
        dsa_t_state ^= dsa_t_state << 17;

        q[i] = (uint8_t) (dsa_t_state >> 32);
        q[i] = (q[i] & 0x7f) == 0x7f ? 0x80 : q[i];
    }

    test_repeat(q, n, 1);

    return q;
}


static inline float
test_scale(int power)
{
    float  s;

    s = 0.02f + (dsa_t_uniform() + 1.0f);

    return power ? dsa_ue8m0(s) : s;
}


static inline uint16_t *
test_bf16(size_t n, float scale)
{
    size_t     i;
    uint16_t  *v;

    v = malloc(n * sizeof(uint16_t));
    assert_non_null(v);

    for (i = 0; i < n && i < TEST_PERIOD; i++) {
        v[i] = dsa_bf16_encode(dsa_t_uniform() * scale);
    }

    test_repeat(v, n, sizeof(uint16_t));

    return v;
}


/* Converts y from its type to float32. */

static inline float *
test_fetch(const void *y, size_t n, int f32)
{
    float  *v;

    v = malloc(n * sizeof(float));
    assert_non_null(v);

    if (f32) {
        gpu_download(v, y, n * sizeof(float));

    } else {
        gpu_download_bf16(v, y, n);
    }

    return v;
}


typedef struct {
    uint32_t  heads, rows, out, in;
    int       transposed, f32;
    size_t    ld_y, step_y;
    size_t    ld_x, step_x;
    size_t    ld_w, step_w;
} test_bf16_t;


static inline void
test_bf16_run(const test_bf16_t *t, void *y, const dsa_bf16_t *x,
    const dsa_bf16_t *w)
{
    if (t->heads == 0) {
        gpu_ok(dsa_cuda_gemm_bf16(test_gemm, y, t->ld_y, t->f32, x, t->ld_x, w,
                                  t->ld_w, t->rows, t->out, t->in, NULL));
        return;
    }

    gpu_ok(dsa_cuda_gemm_heads(test_gemm, y, t->ld_y, t->step_y, x, t->ld_x,
                               t->step_x, w, t->ld_w, t->step_w,
                               t->transposed, t->heads, t->rows, t->out,
                               t->in, NULL));
}


#endif /* _DSA_T_GPU_PRODUCTS_H_INCLUDED_ */
