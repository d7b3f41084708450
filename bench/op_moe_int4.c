
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/moe/moe_int4.h"
#include "kernels/sample/random.h"


/*
 * The experts' products with INT4 weights beside those with FP8 weights, by
 * the number of rows of an expert: 32 experts, which one of 8 GPUs has of 256,
 * and the same number of rows for each.  The bytes are the weights with their
 * scales, and each row's x and y.
 */

#define DSA_BENCH_INT4_EXPERTS  32
#define DSA_BENCH_INT4_ROWS     512     /* most of an expert */


typedef struct {
    uint32_t            int4;           /* 1: INT4; 0: FP8 */
    uint32_t            rows;           /* of all experts */
    uint32_t            in, out;
    dsa_bf16_t         *y;
    dsa_moe_plan_t      plan;
    dsa_fp8_rows_t      x;
    dsa_fp8_weight_t    fp8;
    dsa_int4_weight_t   w;
} dsa_bench_int4_t;


static int
dsa_bench_int4_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_int4_t  *m = ctx;

    if (m->int4) {
        return dsa_cuda_moe_gemm_int4(&b->state, m->y, &m->x, &m->w, &m->plan,
                                      DSA_BENCH_INT4_EXPERTS, m->rows,
                                      b->stream);
    }

    return dsa_cuda_moe_gemm(&b->state, m->y, &m->x, &m->fp8, &m->plan,
                             DSA_BENCH_INT4_EXPERTS, m->rows, b->stream);
}


/* Sets the plan to rows places of each expert. */

static int
dsa_bench_int4_plan(dsa_bench_int4_t *m, uint32_t rows)
{
    int       rc;
    int32_t   offset[DSA_BENCH_INT4_EXPERTS + 1];
    int32_t   count[DSA_BENCH_INT4_EXPERTS];
    uint32_t  e;

    offset[0] = 0;

    for (e = 0; e < DSA_BENCH_INT4_EXPERTS; e++) {
        count[e] = (int32_t) rows;
        offset[e + 1] = offset[e] + (int32_t) ((rows + DSA_MOE_ALIGN - 1)
                                               / DSA_MOE_ALIGN
                                               * DSA_MOE_ALIGN);
    }

    m->rows = rows * DSA_BENCH_INT4_EXPERTS;
    m->plan.places = (uint32_t) offset[DSA_BENCH_INT4_EXPERTS];

    rc = cudaMemcpy(m->plan.count, count, sizeof(count),
                    cudaMemcpyHostToDevice);

    return rc != 0 ? rc : (int) cudaMemcpy(m->plan.offset, offset,
                                           sizeof(offset),
                                           cudaMemcpyHostToDevice);
}


static void
dsa_bench_int4_row(dsa_bench_t *b, dsa_bench_int4_t *m, uint32_t rows)
{
    char    shape[128];
    double  us, bytes, weights;

    if (dsa_bench_int4_plan(m, rows) != 0) {
        b->failed = 1;
        return;
    }

    (void) snprintf(shape, sizeof(shape), "%u experts, %u rows each, %u -> %u",
                    DSA_BENCH_INT4_EXPERTS, rows, m->in, m->out);

    weights = (double) DSA_BENCH_INT4_EXPERTS * m->out * m->in;

    for (m->int4 = 0; m->int4 < 2; m->int4++) {
        us = dsa_bench_time(b, dsa_bench_int4_call, m, 1);
        bytes = m->int4 ? weights / 2 + weights / 64 : weights;

        dsa_bench_row(b, m->int4 ? "experts' INT4 GEMM" : "experts' FP8 GEMM",
                      shape, us, 2.0 * m->rows * m->out * m->in,
                      DSA_BENCH_FP8,
                      bytes + (double) m->rows * (m->in + 2.0 * m->out));
    }
}


static int
dsa_bench_int4_operands(dsa_bench_t *b, dsa_bench_int4_t *m)
{
    int      rc;
    void    *codes, *scales;
    size_t   n, places;

    n = (size_t) DSA_BENCH_INT4_EXPERTS * m->out * m->in;
    places = (size_t) DSA_BENCH_INT4_EXPERTS * DSA_BENCH_INT4_ROWS;

    memset(&m->plan, 0, sizeof(m->plan));

    codes = dsa_bench_alloc(b, n / 2);
    scales = dsa_bench_alloc(b, n / 128 * sizeof(dsa_bf16_t));

    m->w = (dsa_int4_weight_t) { codes, scales, m->out, m->in };
    m->fp8.q = dsa_bench_alloc(b, n);
    m->fp8.scale = dsa_bench_alloc(b, n / 16384 * sizeof(float));
    m->fp8.rows = m->out;
    m->fp8.cols = m->in;
    m->x.q = dsa_bench_alloc(b, places * m->in);
    m->x.scale = dsa_bench_alloc(b, places * m->in / 128 * sizeof(float));
    m->x.ld = places;
    m->y = dsa_bench_alloc(b, places * m->out * sizeof(dsa_bf16_t));
    m->plan.align = DSA_MOE_ALIGN;
    m->plan.offset = dsa_bench_alloc(b, (DSA_BENCH_INT4_EXPERTS + 1)
                                        * sizeof(int32_t));
    m->plan.count = dsa_bench_alloc(b, DSA_BENCH_INT4_EXPERTS
                                       * sizeof(int32_t));

    if (b->failed) {
        return DSA_ERROR;
    }

    /* two random numbers of 4 bits are a random byte */

    rc = dsa_cuda_random_e4m3(codes, n / 2, 1, b->stream);
    rc |= dsa_cuda_random_bf16(scales, n / 128, 0.002f, 0.001f, 2, b->stream);
    rc |= dsa_cuda_random_e4m3((dsa_e4m3_t *) m->fp8.q, n, 3, b->stream);
    rc |= dsa_cuda_random_f32((float *) m->fp8.scale, n / 16384, 0.0002f,
                              0.0001f, 4, b->stream);
    rc |= dsa_cuda_random_e4m3(m->x.q, places * m->in, 5, b->stream);
    rc |= dsa_cuda_random_f32(m->x.scale, places * m->in / 128, 0.02f, 0.01f,
                              6, b->stream);
    rc |= cudaStreamSynchronize(b->stream);
    b->failed |= rc != 0;

    return rc == 0 ? DSA_OK : DSA_ERROR;
}


void
dsa_bench_moe_int4(dsa_bench_t *b)
{
    size_t             i, j;
    dsa_bench_int4_t   m;

    static const uint32_t  shape[][2] = {
        { 7168, 4096 }, { 2048, 7168 },
        { 6144, 4096 }, { 2048, 6144 }          /* GLM-5.2 */
    };

    static const uint32_t  rows[] = { 16, 1, 2, 4, 8, 24, 32, 48, 64, 96, 128,
                                      256, 512 };

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        m.in = shape[i][0];
        m.out = shape[i][1];

        if (dsa_bench_int4_operands(b, &m) != DSA_OK) {
            return;
        }

        for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            dsa_bench_int4_row(b, &m, rows[j]);
        }

        dsa_bench_free_all(b);
    }
}
