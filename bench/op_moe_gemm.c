
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "bench/gpu.h"
#include "kernels/moe/moe.h"
#include "kernels/sample/random.h"


/*
 * The experts' products.  The operations are those of the pairs, without
 * padding.  The bytes are the weights of experts that have a pair, and each
 * pair's x and y.  Routing is uniform (different experts for each token) or
 * even (the same number of pairs for each expert).
 */

#define DSA_BENCH_EXPERTS   256         /* the most */
#define DSA_BENCH_SETS      4


typedef struct {
    uint32_t            experts;
    uint32_t            picks;          /* experts of a token */
    uint32_t            rows;           /* pairs */
    uint32_t            element;        /* bytes of an operand's element: 1
                                           for FP8, 2 for BF16 */
    uint32_t            in, out;
    dsa_bf16_t         *y;
    dsa_moe_plan_t      plan[DSA_BENCH_SETS];
    dsa_fp8_rows_t      x8;
    dsa_fp8_weight_t    w8;
    dsa_bf16_t         *x;
    dsa_bf16_weight_t   w;
} dsa_bench_moe_t;


static uint32_t
dsa_bench_pick(uint64_t *state, uint32_t experts)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;

    return (uint32_t) (*state >> 33) % experts;
}


/*
 * Writes the counts of uniform routing to the device's plan; returns the
 * number of experts in use.
 */

static uint32_t
dsa_bench_route(dsa_bench_t *b, const dsa_bench_moe_t *m,
    const dsa_moe_plan_t *plan, uint32_t tokens, int even, uint64_t seed)
{
    int32_t   offset[DSA_BENCH_EXPERTS + 1], count[DSA_BENCH_EXPERTS];
    uint32_t  i, j, n, e, last[DSA_BENCH_EXPERTS];
    uint64_t  state;

    state = 0x9e3779b97f4a7c15ULL * (seed + 1);

    for (e = 0; e < m->experts; e++) {
        count[e] = even ? (int32_t) (tokens * m->picks / m->experts) : 0;
        last[e] = 0;
    }

    for (i = 1; i <= tokens && !even; i++) {
        for (j = 0; j < m->picks; j++) {
            do {
                e = dsa_bench_pick(&state, m->experts);
            } while (last[e] == i);

            last[e] = i;
            count[e]++;
        }
    }

    n = 0;
    offset[0] = 0;

    for (e = 0; e < m->experts; e++) {
        n += count[e] > 0;
        offset[e + 1] = offset[e]
                        + (count[e] + (int32_t) plan->align - 1)
                          / (int32_t) plan->align * (int32_t) plan->align;
    }

    b->failed |= cudaMemcpy(plan->count, count, m->experts * sizeof(int32_t),
                            cudaMemcpyHostToDevice) != 0;
    b->failed |= cudaMemcpy(plan->offset, offset,
                            (m->experts + 1) * sizeof(int32_t),
                            cudaMemcpyHostToDevice) != 0;

    return n;
}


static int
dsa_bench_moe_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *m = ctx;

    if (m->element == 1) {
        return dsa_cuda_moe_gemm(&b->state, m->y, &m->x8, &m->w8,
                                 &m->plan[set], m->experts, m->rows,
                                 b->stream);
    }

    return dsa_cuda_moe_gemm_bf16(&b->state, m->y, m->x, &m->w, &m->plan[set],
                                  m->experts, m->rows, b->stream);
}


static void
dsa_bench_moe_row(dsa_bench_t *b, dsa_bench_moe_t *m, uint32_t tokens,
    int even)
{
    int       i, sets;
    char      shape[128];
    double    us, used;

    m->rows = tokens * m->picks;
    sets = tokens < 64 ? DSA_BENCH_SETS : 1;
    used = 0;

    for (i = 0; i < sets; i++) {
        m->plan[i].align = DSA_MOE_ALIGN;
        m->plan[i].places = m->rows + m->experts * DSA_MOE_ALIGN;
        used += dsa_bench_route(b, m, &m->plan[i], tokens, even,
                                (uint64_t) i);
    }

    used /= sets;
    us = dsa_bench_time(b, dsa_bench_moe_call, m, sets);

    (void) snprintf(shape, sizeof(shape), "%u experts, %u tokens x %u%s, "
                    "%u -> %u", m->experts, tokens, m->picks,
                    even ? " evenly" : "", m->in, m->out);

    dsa_bench_row(b, m->element == 1 ? "experts' FP8 GEMM"
                                     : "experts' BF16 GEMM", shape, us,
                  2.0 * m->rows * m->out * m->in,
                  m->element == 1 ? DSA_BENCH_FP8 : DSA_BENCH_BF16,
                  used * m->element * m->out * m->in
                  + (double) m->rows * (m->element * m->in + 2.0 * m->out));
}


/* Allocates the operands for up to tokens tokens, and fills them. */

static int
dsa_bench_moe_operands(dsa_bench_t *b, dsa_bench_moe_t *m, uint32_t tokens)
{
    int     rc;
    void   *w, *x;
    size_t  j, n, weights, places;

    weights = (size_t) m->experts * m->out * m->in;
    places = (size_t) tokens * m->picks + m->experts * 128;
    n = places * m->in / 128;

    w = dsa_bench_alloc(b, weights * m->element);
    x = dsa_bench_alloc(b, places * m->in * m->element);

    m->y = dsa_bench_alloc(b, places * m->out * sizeof(dsa_bf16_t));
    m->w8.scale = dsa_bench_alloc(b, weights / 16384 * sizeof(float));
    m->w8.q = w;
    m->w8.rows = m->out;
    m->w8.cols = m->in;
    m->w.w = w;
    m->w.rows = m->out;
    m->w.cols = m->in;
    m->x8.scale = dsa_bench_alloc(b, n * sizeof(float));
    m->x8.q = x;
    m->x8.ld = places;
    m->x = x;

    for (j = 0; j < DSA_BENCH_SETS; j++) {
        m->plan[j].offset = dsa_bench_alloc(b, (m->experts + 1)
                                               * sizeof(int32_t));
        m->plan[j].count = dsa_bench_alloc(b, m->experts * sizeof(int32_t));
    }

    if (b->failed) {
        return DSA_ERROR;
    }

    if (m->element == 1) {
        rc = dsa_cuda_random_e4m3(w, weights, 1, b->stream);
        rc |= dsa_cuda_random_f32((float *) m->w8.scale, weights / 16384,
                                  0.0002f, 0.0001f, 2, b->stream);
        rc |= dsa_cuda_random_e4m3(x, places * m->in, 3, b->stream);
        rc |= dsa_cuda_random_f32(m->x8.scale, n, 0.02f, 0.01f, 4, b->stream);

    } else {
        rc = dsa_cuda_random_bf16(w, weights, 0, 0.05f, 1, b->stream);
        rc |= dsa_cuda_random_bf16(x, places * m->in, 0, 1.0f, 3, b->stream);
    }

    rc |= cudaStreamSynchronize(b->stream);
    b->failed |= rc != 0;

    return rc == 0 ? DSA_OK : DSA_ERROR;
}


void
dsa_bench_moe_gemm(dsa_bench_t *b)
{
    size_t           i, j;
    dsa_bench_moe_t  m;

    static const uint32_t  shape[][2] = {
        { 7168, 4096 }, { 2048, 7168 },
        { 6144, 4096 }, { 2048, 6144 }          /* GLM-5.2 */
    };

    static const uint32_t  tokens[] = { 8192, 128, 32768, 4096, 2048, 1024,
                                        512, 256, 64, 32, 8, 1 };

    memset(&m, 0, sizeof(m));

    m.experts = 256;
    m.picks = 8;
    m.element = 1;

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        m.in = shape[i][0];
        m.out = shape[i][1];

        if (dsa_bench_moe_operands(b, &m, 32768) != DSA_OK) {
            return;
        }

        for (j = 0; j < sizeof(tokens) / sizeof(tokens[0]); j++) {
            dsa_bench_moe_row(b, &m, tokens[j], 0);

            if (j == 0) {
                dsa_bench_moe_row(b, &m, tokens[j], 1);
            }
        }

        dsa_bench_free_all(b);
    }
}


/* The experts of GLM-4.7-Flash and of JoyAI-LLM-Flash. */

void
dsa_bench_moe_gemm_bf16(dsa_bench_t *b)
{
    size_t           i, j;
    dsa_bench_moe_t  m;

    static const struct {
        uint32_t  experts, picks, in, out;
    } shape[] = {
        { 64, 4, 2048, 3072 }, { 64, 4, 1536, 2048 },
        { 256, 8, 2048, 1536 }, { 256, 8, 768, 2048 }
    };

    static const uint32_t  tokens[] = { 32, 8192, 128, 16384, 2048, 512, 64, 8,
                                        1 };

    memset(&m, 0, sizeof(m));

    m.element = 2;

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        m.experts = shape[i].experts;
        m.picks = shape[i].picks;
        m.in = shape[i].in;
        m.out = shape[i].out;

        if (dsa_bench_moe_operands(b, &m, 16384) != DSA_OK) {
            return;
        }

        for (j = 0; j < sizeof(tokens) / sizeof(tokens[0]); j++) {
            dsa_bench_moe_row(b, &m, tokens[j], 0);

            if (tokens[j] == 8192) {
                dsa_bench_moe_row(b, &m, tokens[j], 1);
            }
        }

        dsa_bench_free_all(b);
    }
}
