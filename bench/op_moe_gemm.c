
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/moe/moe.h"
#include "kernels/sample/random.h"


/*
 * The experts' products.  The operations are those of the pairs, without
 * padding.  The bytes are the weights of experts that have a pair, and each
 * pair's x and y.  Routing is uniform (8 different experts for each token) or
 * even (the same number of pairs for each expert).
 */

#define DSA_BENCH_EXPERTS   256
#define DSA_BENCH_PICKS     8
#define DSA_BENCH_SETS      4


typedef struct {
    uint32_t            rows;           /* pairs */
    dsa_bf16_t         *y;
    dsa_fp8_rows_t      x;
    dsa_moe_plan_t      plan[DSA_BENCH_SETS];
    dsa_fp8_weight_t    w;
} dsa_bench_moe_t;


static uint32_t
dsa_bench_pick(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;

    return (uint32_t) (*state >> 33) % DSA_BENCH_EXPERTS;
}


/*
 * Writes the counts of uniform routing to the device's plan; returns the
 * number of experts in use.
 */

static uint32_t
dsa_bench_route(dsa_bench_t *b, const dsa_moe_plan_t *plan, uint32_t tokens,
    int even, uint64_t seed)
{
    int32_t   offset[DSA_BENCH_EXPERTS + 1], count[DSA_BENCH_EXPERTS];
    uint32_t  i, j, n, e, last[DSA_BENCH_EXPERTS];
    uint64_t  state;

    state = 0x9e3779b97f4a7c15ULL * (seed + 1);

    for (e = 0; e < DSA_BENCH_EXPERTS; e++) {
        count[e] = even ? (int32_t) (tokens * DSA_BENCH_PICKS
                                     / DSA_BENCH_EXPERTS) : 0;
        last[e] = 0;
    }

    for (i = 1; i <= tokens && !even; i++) {
        for (j = 0; j < DSA_BENCH_PICKS; j++) {
            do {
                e = dsa_bench_pick(&state);
            } while (last[e] == i);

            last[e] = i;
            count[e]++;
        }
    }

    n = 0;
    offset[0] = 0;

    for (e = 0; e < DSA_BENCH_EXPERTS; e++) {
        n += count[e] > 0;
        offset[e + 1] = offset[e]
                        + (count[e] + (int32_t) plan->align - 1)
                          / (int32_t) plan->align * (int32_t) plan->align;
    }

    b->failed |= cudaMemcpy(plan->count, count, sizeof(count),
                            cudaMemcpyHostToDevice) != 0;
    b->failed |= cudaMemcpy(plan->offset, offset, sizeof(offset),
                            cudaMemcpyHostToDevice) != 0;

    return n;
}


static int
dsa_bench_moe_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *m = ctx;

    return dsa_cuda_moe_gemm(&b->state, m->y, &m->x, &m->w, &m->plan[set],
                             DSA_BENCH_EXPERTS, m->rows, b->stream);
}


static void
dsa_bench_moe_row(dsa_bench_t *b, dsa_bench_moe_t *m, uint32_t tokens,
    int even)
{
    int       i, sets;
    char      shape[128];
    double    us, used;

    m->rows = tokens * DSA_BENCH_PICKS;
    sets = tokens < 64 ? DSA_BENCH_SETS : 1;
    used = 0;

    for (i = 0; i < sets; i++) {
        m->plan[i].align = DSA_MOE_ALIGN;
        m->plan[i].places = m->rows + DSA_BENCH_EXPERTS * DSA_MOE_ALIGN;
        used += dsa_bench_route(b, &m->plan[i], tokens, even, (uint64_t) i);
    }

    used /= sets;
    us = dsa_bench_time(b, dsa_bench_moe_call, m, sets);

    (void) snprintf(shape, sizeof(shape), "256 experts, %u tokens x 8%s, "
                    "%u -> %u", tokens, even ? " evenly" : "", m->w.cols,
                    m->w.rows);

    dsa_bench_row(b, "experts' FP8 GEMM", shape, us,
                  2.0 * m->rows * m->w.rows * m->w.cols, DSA_BENCH_FP8,
                  used * m->w.rows * m->w.cols
                  + (double) m->rows * (m->w.cols + 2.0 * m->w.rows));
}


void
dsa_bench_moe_gemm(dsa_bench_t *b)
{
    int                    rc;
    size_t                 i, j, n, weights, places;
    dsa_bench_moe_t        m;

    static const uint32_t  shape[][2] = {
        { 7168, 4096 }, { 2048, 7168 },
        { 6144, 4096 }, { 2048, 6144 }          /* GLM-5.2 */
    };

    static const uint32_t  tokens[] = { 8192, 128, 32768, 4096, 2048, 1024,
                                        512, 256, 64, 32, 8, 1 };

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        m.w.cols = shape[i][0];
        m.w.rows = shape[i][1];

        weights = (size_t) DSA_BENCH_EXPERTS * m.w.rows * m.w.cols;
        places = 32768 * DSA_BENCH_PICKS + DSA_BENCH_EXPERTS * 128;

        m.w.q = dsa_bench_alloc(b, weights);
        m.w.scale = dsa_bench_alloc(b, weights / 16384 * sizeof(float));
        m.x.q = dsa_bench_alloc(b, places * m.w.cols);
        m.x.ld = places;
        n = places * m.w.cols / 128;
        m.x.scale = dsa_bench_alloc(b, n * sizeof(float));
        m.y = dsa_bench_alloc(b, places * m.w.rows * sizeof(dsa_bf16_t));

        for (j = 0; j < DSA_BENCH_SETS; j++) {
            m.plan[j].offset = dsa_bench_alloc(b, (DSA_BENCH_EXPERTS + 1)
                                                  * sizeof(int32_t));
            m.plan[j].count = dsa_bench_alloc(b, DSA_BENCH_EXPERTS
                                                 * sizeof(int32_t));

            if (m.plan[j].offset == NULL || m.plan[j].count == NULL) {
                return;
            }
        }

        if (m.w.q == NULL || m.w.scale == NULL || m.x.q == NULL
            || m.x.scale == NULL || m.y == NULL)
        {
            return;
        }

        rc = dsa_cuda_random_e4m3((dsa_e4m3_t *) m.w.q, weights, 1,
                                  b->stream);
        rc |= dsa_cuda_random_f32((float *) m.w.scale, weights / 16384,
                                  0.0002f, 0.0001f, 2, b->stream);
        rc |= dsa_cuda_random_e4m3(m.x.q, places * m.w.cols, 3, b->stream);
        rc |= dsa_cuda_random_f32(m.x.scale, n, 0.02f, 0.01f, 4, b->stream);
        rc |= cudaStreamSynchronize(b->stream);

        if (rc != 0) {
            b->failed = 1;
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
