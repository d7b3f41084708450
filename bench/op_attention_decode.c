
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/attention/attention.h"
#include "kernels/sample/random.h"


/*
 * Slots are drawn from 1,048,576 cached tokens: 688 MB of latents.  If rows
 * read less than the L2 holds, several sets of slots alternate, so that
 * latents are as cold as in a step, which visits the other layers in between.
 */

#define DSA_BENCH_TOKENS    1048576
#define DSA_BENCH_PICKS     2048
#define DSA_BENCH_ROWS      128         /* at most; of slots, over all sets */


typedef struct {
    void               *out;
    void               *q;
    void               *slot;           /* [DSA_BENCH_ROWS, 2048] */
    void               *n_slot;
    void               *work;
    uint32_t            rows;
    uint32_t            heads;
    dsa_cuda_cache_t    cache;
} dsa_bench_decode_t;


static int
dsa_bench_decode(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_decode_t  *d = ctx;

    return dsa_cuda_attention_decode(&b->state, d->out, d->q, &d->cache,
                                     (int32_t *) d->slot
                                     + (size_t) set * d->rows
                                       * DSA_BENCH_PICKS,
                                     DSA_BENCH_PICKS, d->n_slot, d->rows,
                                     d->heads, DSA_BENCH_PICKS, 0.1352f,
                                     d->work, b->stream);
}


/* Records of random values of about 1, with scales of 2^-8 .. 2^-7. */

static int
dsa_bench_decode_cache(dsa_bench_t *b, dsa_bench_decode_t *d)
{
    int      rc;
    void    *rope;
    float   *scale;
    size_t   i;

    d->cache.page = 64 * DSA_CUDA_RECORD;
    d->cache.keys = 0;
    d->cache.pages = DSA_BENCH_TOKENS / 64;
    d->cache.base = dsa_bench_alloc(b, (size_t) DSA_BENCH_TOKENS
                                       * DSA_CUDA_RECORD);
    rope = dsa_bench_alloc(b, (size_t) DSA_BENCH_TOKENS * DSA_CUDA_ROPE * 2);
    scale = malloc(DSA_BENCH_TOKENS * 4 * sizeof(float));

    if (d->cache.base == NULL || rope == NULL || scale == NULL) {
        free(scale);
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < DSA_BENCH_TOKENS * 4; i++) {
        scale[i] = rand() & 1 ? 1.0f / 256 : 1.0f / 128;
    }

    rc = dsa_cuda_random_e4m3(d->cache.base, (size_t) DSA_BENCH_TOKENS
                                             * DSA_CUDA_RECORD, 1, b->stream);
    rc = rc != 0 ? rc
         : dsa_cuda_random_bf16(rope, (size_t) DSA_BENCH_TOKENS
                                      * DSA_CUDA_ROPE, 0, 1, 2, b->stream);
    rc = rc != 0 ? rc
         : (int) cudaMemcpy2DAsync(d->cache.base + DSA_CUDA_LATENT + 16,
                                   DSA_CUDA_RECORD, rope, DSA_CUDA_ROPE * 2,
                                   DSA_CUDA_ROPE * 2, DSA_BENCH_TOKENS,
                                   cudaMemcpyDeviceToDevice, b->stream);
    rc = rc != 0 ? rc
         : (int) cudaMemcpy2DAsync(d->cache.base + DSA_CUDA_LATENT,
                                   DSA_CUDA_RECORD, scale, 16, 16,
                                   DSA_BENCH_TOKENS, cudaMemcpyHostToDevice,
                                   b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    free(scale);

    return rc;
}


static int
dsa_bench_decode_slots(dsa_bench_t *b, dsa_bench_decode_t *d)
{
    int       rc;
    size_t    i;
    int32_t  *slot, n[DSA_BENCH_ROWS];

    slot = malloc(DSA_BENCH_ROWS * DSA_BENCH_PICKS * sizeof(int32_t));
    d->slot = dsa_bench_alloc(b, DSA_BENCH_ROWS * DSA_BENCH_PICKS
                                 * sizeof(int32_t));
    d->n_slot = dsa_bench_alloc(b, sizeof(n));

    if (slot == NULL || d->slot == NULL || d->n_slot == NULL) {
        free(slot);
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < DSA_BENCH_ROWS * DSA_BENCH_PICKS; i++) {
        slot[i] = (int32_t) (((uint32_t) rand() ^ (uint32_t) rand() << 11)
                             % DSA_BENCH_TOKENS);
    }

    for (i = 0; i < DSA_BENCH_ROWS; i++) {
        n[i] = DSA_BENCH_PICKS;
    }

    rc = cudaMemcpy(d->slot, slot, DSA_BENCH_ROWS * DSA_BENCH_PICKS
                                   * sizeof(int32_t), cudaMemcpyHostToDevice);
    rc = rc != 0 ? rc : (int) cudaMemcpy(d->n_slot, n, sizeof(n),
                                         cudaMemcpyHostToDevice);
    free(slot);

    return rc;
}


void
dsa_bench_attention_decode(dsa_bench_t *b)
{
    int                  rc, sets;
    char                 shape[64];
    double               us, pairs;
    size_t               i;
    dsa_bench_decode_t   d;

    static const uint32_t  rows[][2] = {
        { 128, 128 }, { 1, 128 }, { 128, 16 },
        { 8, 128 }, { 32, 128 }, { 64, 128 },
        { 128, 64 }, { 128, 32 }, { 128, 8 },
        { 32, 64 }, { 1, 64 }, { 32, 16 }, { 8, 16 }, { 1, 16 }, { 1, 32 },
        { 1, 8 }
    };

    rc = dsa_bench_decode_cache(b, &d);
    rc = rc != 0 ? rc : dsa_bench_decode_slots(b, &d);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: inputs: %s\n", dsa_cuda_error(rc));
        b->failed = 1;
        return;
    }

    d.q = dsa_bench_alloc(b, DSA_BENCH_ROWS * 128 * 576 * 2);
    d.out = dsa_bench_alloc(b, DSA_BENCH_ROWS * 128 * 512 * 2);
    d.work = dsa_bench_alloc(b, dsa_cuda_attention_work(&b->state,
                                                        DSA_BENCH_ROWS, 128,
                                                        DSA_BENCH_PICKS));

    if (d.q == NULL || d.out == NULL || d.work == NULL) {
        return;
    }

    rc = dsa_cuda_random_bf16(d.q, DSA_BENCH_ROWS * 128 * 576, 0, 1, 3,
                              b->stream);
    if (rc != 0) {
        b->failed = 1;
        return;
    }

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        d.rows = rows[i][0];
        d.heads = rows[i][1];

        sets = (int) (DSA_BENCH_ROWS / d.rows);
        sets = sets > 64 ? 64 : sets;

        us = dsa_bench_time(b, dsa_bench_decode, &d, sets);
        pairs = (double) d.rows * DSA_BENCH_PICKS;

        (void) snprintf(shape, sizeof(shape), "b=%u h=%u topk=%u", d.rows,
                        d.heads, DSA_BENCH_PICKS);
        dsa_bench_row(b, "sparse attention, decode", shape, us,
                      pairs * d.heads * 1088 * 2, DSA_BENCH_BF16,
                      pairs * DSA_CUDA_RECORD
                      + (double) d.rows * d.heads * 1088 * 2);
    }
}
