
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/attention/attention.h"
#include "kernels/sample/random.h"


#define DSA_BENCH_PICKS     2048


typedef struct {
    dsa_bf16_t         *out;
    dsa_bf16_t         *q;
    dsa_bf16_t         *kv;
    int32_t            *pick;
    int32_t            *n_pick;
    uint32_t            keys;
    uint32_t            rows;
    uint32_t            heads;
} dsa_bench_prefill_t;


static int
dsa_bench_prefill_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_prefill_t  *p = ctx;

    return dsa_cuda_attention_prefill(&b->state, p->out, p->q, p->kv, p->keys,
                                      p->pick, DSA_BENCH_PICKS, p->n_pick,
                                      p->rows, p->heads, 1 / sqrtf(192),
                                      b->stream);
}


/*
 * 2,048 rising positions for each row: one random position from each of as
 * many equal parts of the keys.
 */

static int
dsa_bench_prefill_picks(const dsa_bench_prefill_t *p)
{
    int        rc;
    size_t     i, n;
    int32_t   *pick, *n_pick;
    uint64_t   state;
    uint32_t   part;

    n = (size_t) p->rows * DSA_BENCH_PICKS;
    part = p->keys / DSA_BENCH_PICKS;
    state = 88172645463325252ULL;
    rc = cudaErrorMemoryAllocation;

    pick = malloc(n * sizeof(int32_t));
    n_pick = malloc(p->rows * sizeof(int32_t));

    if (pick != NULL && n_pick != NULL) {

        for (i = 0; i < n; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            pick[i] = (int32_t) (i % DSA_BENCH_PICKS * part
                                 + (state >> 33) % part);
        }

        for (i = 0; i < p->rows; i++) {
            n_pick[i] = DSA_BENCH_PICKS;
        }

        rc = cudaMemcpy(p->pick, pick, n * sizeof(int32_t),
                        cudaMemcpyHostToDevice);
        rc = rc != 0 ? rc
                     : (int) cudaMemcpy(p->n_pick, n_pick,
                                        p->rows * sizeof(int32_t),
                                        cudaMemcpyHostToDevice);
    }

    free(pick);
    free(n_pick);

    return rc;
}


static void
dsa_bench_prefill_one(dsa_bench_t *b, uint32_t rows, uint32_t keys,
    uint32_t heads)
{
    int                  rc;
    char                 shape[96];
    double               us;
    dsa_bench_prefill_t  p;

    p.keys = keys;
    p.rows = rows;
    p.heads = heads;
    p.out = dsa_bench_alloc(b, (size_t) rows * heads * 512 * 2);
    p.q = dsa_bench_alloc(b, (size_t) rows * heads * 576 * 2);
    p.kv = dsa_bench_alloc(b, (size_t) keys * 576 * 2);
    p.pick = dsa_bench_alloc(b, (size_t) rows * DSA_BENCH_PICKS * 4);
    p.n_pick = dsa_bench_alloc(b, (size_t) rows * 4);

    if (p.out == NULL || p.q == NULL || p.kv == NULL || p.pick == NULL
        || p.n_pick == NULL)
    {
        goto done;
    }

    rc = dsa_cuda_random_bf16(p.q, (size_t) rows * heads * 576, 0, 1.7f, 1,
                              b->stream);
    rc = rc != 0 ? rc
                 : dsa_cuda_random_bf16(p.kv, (size_t) keys * 576, 0, 1.7f, 2,
                                        b->stream);
    rc = rc != 0 ? rc : dsa_bench_prefill_picks(&p);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: sparse prefill: %s\n",
                       dsa_cuda_error(rc));
        b->failed = 1;
        goto done;
    }

    us = dsa_bench_time(b, dsa_bench_prefill_call, &p, 1);

    (void) snprintf(shape, sizeof(shape), "%u queries, %u keys, h=%u, top-k "
                    "%d", rows, keys, heads, DSA_BENCH_PICKS);

    /*
     * latents are counted once: further reads are served by the L2, not by HBM
     */

    dsa_bench_row(b, "sparse prefill", shape, us,
                  2.0 * rows * heads * (576 + 512) * DSA_BENCH_PICKS,
                  DSA_BENCH_BF16,
                  (double) rows * heads * (576 + 512) * 2
                  + (double) keys * 576 * 2
                  + (double) rows * DSA_BENCH_PICKS * 4);

done:

    dsa_bench_free_all(b);
}


void
dsa_bench_attention_prefill(dsa_bench_t *b)
{
    dsa_bench_prefill_one(b, 4096, 32768, 128);
    dsa_bench_prefill_one(b, 4096, 8192, 128);
    dsa_bench_prefill_one(b, 4096, 131072, 128);
    dsa_bench_prefill_one(b, 512, 32768, 128);
    dsa_bench_prefill_one(b, 4096, 32768, 64);
    dsa_bench_prefill_one(b, 4096, 32768, 32);
    dsa_bench_prefill_one(b, 4096, 32768, 16);
    dsa_bench_prefill_one(b, 4096, 32768, 8);
}
