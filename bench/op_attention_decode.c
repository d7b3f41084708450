
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
#define DSA_BENCH_SETS      4           /* of DSA_BENCH_ROWS with common
                                           slots */


typedef struct {
    void               *out;
    void               *q;
    void               *slot;           /* [DSA_BENCH_ROWS, 2048] */
    void               *drawn;          /* the same, all slots drawn */
    void               *common;         /* [DSA_BENCH_SETS * DSA_BENCH_ROWS,
                                           2048] */
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
    d->cache.bf16 = 0;
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

    d->drawn = d->slot;

    rc = cudaMemcpy(d->slot, slot, DSA_BENCH_ROWS * DSA_BENCH_PICKS
                                   * sizeof(int32_t), cudaMemcpyHostToDevice);
    rc = rc != 0 ? rc : (int) cudaMemcpy(d->n_slot, n, sizeof(n),
                                         cudaMemcpyHostToDevice);
    free(slot);

    return rc;
}


/*
 * Slots of rows of which each 4 are of one sequence, as with 3 drafts: a row
 * has 90 % of the slots of the first one.
 */

static int
dsa_bench_decode_common(dsa_bench_t *b, dsa_bench_decode_t *d)
{
    int       rc;
    size_t    i, n;
    int32_t  *slot;

    n = (size_t) DSA_BENCH_SETS * DSA_BENCH_ROWS * DSA_BENCH_PICKS;
    slot = malloc(n * sizeof(int32_t));
    d->common = dsa_bench_alloc(b, n * sizeof(int32_t));

    if (slot == NULL || d->common == NULL) {
        free(slot);
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < n; i++) {
        if (i / DSA_BENCH_PICKS % 4 == 0 || rand() % 10 == 0) {
            slot[i] = (int32_t) (((uint32_t) rand()
                                  ^ (uint32_t) rand() << 11)
                                 % DSA_BENCH_TOKENS);

        } else {
            slot[i] = slot[i - i / DSA_BENCH_PICKS % 4 * DSA_BENCH_PICKS];
        }
    }

    rc = cudaMemcpy(d->common, slot, n * sizeof(int32_t),
                    cudaMemcpyHostToDevice);
    free(slot);

    return rc;
}


/*
 * Rows with common slots.  The bytes are those of the slots, each counted once
 * for the rows that have it.
 */

static void
dsa_bench_decode_common_row(dsa_bench_t *b, dsa_bench_decode_t *d,
    uint32_t heads)
{
    char    shape[64];
    double  us, pairs;

    d->rows = DSA_BENCH_ROWS;
    d->heads = heads;

    d->slot = d->common;
    us = dsa_bench_time(b, dsa_bench_decode, d, DSA_BENCH_SETS);
    d->slot = d->drawn;

    pairs = (double) d->rows * DSA_BENCH_PICKS;

    (void) snprintf(shape, sizeof(shape), "b=%u x 4 rows, 90 %% common, h=%u",
                    DSA_BENCH_ROWS / 4, heads);
    dsa_bench_row(b, "sparse attention, decode", shape, us,
                  pairs * heads * 1088 * 2, DSA_BENCH_BF16,
                  pairs / 4 * 1.3 * DSA_CUDA_RECORD
                  + (double) d->rows * heads * 1088 * 2);
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

    static const uint32_t  common[] = { 128, 64, 32, 16, 8 };  /* heads */

    rc = dsa_bench_decode_cache(b, &d);
    rc = rc != 0 ? rc : dsa_bench_decode_slots(b, &d);
    rc = rc != 0 ? rc : dsa_bench_decode_common(b, &d);

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

    for (i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
        dsa_bench_decode_common_row(b, &d, common[i]);
    }
}
