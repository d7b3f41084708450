
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


typedef struct {
    const dsa_cuda_heads_shape_t  *shape;
    dsa_bf16_t         *out;
    dsa_bf16_t         *q;
    dsa_bf16_t         *kv;
    dsa_bf16_t         *latents;
    uint32_t           *mask;
    uint32_t            start;
    uint32_t            rows;
    uint32_t            heads;
} dsa_bench_heads_t;


static int
dsa_bench_heads_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_heads_t  *h = ctx;

    return dsa_cuda_attention_heads(&b->state, h->shape, h->out, h->q, h->kv,
                                    h->latents, h->mask,
                                    (h->start + h->rows + 31) / 32, h->start,
                                    h->rows, h->heads,
                                    1 / sqrtf((float) h->shape->nope
                                              + DSA_CUDA_ROPE),
                                    b->stream);
}


/* Random bits; each row has about 2,048 up to its own position. */

static uint32_t *
dsa_bench_heads_mask(dsa_bench_t *b, const dsa_bench_heads_t *h)
{
    size_t     n;
    uint32_t  *mask, *device, words, i, j, k, part;
    uint64_t   state;

    words = (h->start + h->rows + 31) / 32;
    n = (size_t) words * h->rows * sizeof(uint32_t);

    device = dsa_bench_alloc(b, n);
    mask = malloc(n);

    if (device == NULL || mask == NULL) {
        free(mask);
        b->failed = 1;
        return NULL;
    }

    state = 88172645463325252ULL;

    for (i = 0; i < h->rows; i++) {
        part = (uint32_t) (2048.0 / (h->start + i + 1) * 256);

        for (j = 0; j < words; j++) {
            mask[(size_t) i * words + j] = 0;

            for (k = 0; k < 32; k++) {
                state = state * 6364136223846793005ULL
                        + 1442695040888963407ULL;
                mask[(size_t) i * words + j] |=
                             (uint32_t) (state >> 56 < part) << k;
            }
        }
    }

    if (cudaMemcpy(device, mask, n, cudaMemcpyHostToDevice) != cudaSuccess) {
        b->failed = 1;
        device = NULL;
    }

    free(mask);

    return device;
}


/*
 * The operations that the equation needs, counted once: two for each column of
 * a query and of a value, for each head, row and key up to the row.
 */

static void
dsa_bench_heads_one(dsa_bench_t *b, const dsa_cuda_heads_shape_t *shape,
    uint32_t start, uint32_t rows, uint32_t heads, int masked)
{
    int                rc;
    char               text[96];
    double             us, pairs;
    size_t             keys, width, kv;
    dsa_bench_heads_t  h;

    keys = (size_t) start + rows;
    width = shape->nope + DSA_CUDA_ROPE;
    kv = shape->nope + shape->v;

    h.shape = shape;
    h.start = start;
    h.rows = rows;
    h.heads = heads;
    h.mask = NULL;
    h.out = dsa_bench_alloc(b, (size_t) rows * heads * shape->v * 2);
    h.q = dsa_bench_alloc(b, rows * heads * width * 2);
    h.kv = dsa_bench_alloc(b, keys * heads * kv * 2);
    h.latents = dsa_bench_alloc(b, keys * 576 * 2);

    if (masked) {
        h.mask = dsa_bench_heads_mask(b, &h);
    }

    if (h.out == NULL || h.q == NULL || h.kv == NULL || h.latents == NULL
        || (masked && h.mask == NULL))
    {
        goto done;
    }

    rc = dsa_cuda_random_bf16(h.q, rows * heads * width, 0, 1.7f, 1,
                              b->stream);
    rc = rc != 0 ? rc
                 : dsa_cuda_random_bf16(h.kv, keys * heads * kv, 0, 1.7f, 2,
                                        b->stream);
    rc = rc != 0 ? rc
                 : dsa_cuda_random_bf16(h.latents, keys * 576, 0, 1.7f, 3,
                                        b->stream);
    if (rc != 0) {
        b->failed = 1;
        goto done;
    }

    us = dsa_bench_time(b, dsa_bench_heads_call, &h, 1);

    pairs = ((double) start + (rows + 1) / 2.0) * rows * heads;

    (void) snprintf(text, sizeof(text), "%u queries from %u, h=%u, %u/%u%s",
                    rows, start, heads, shape->nope, shape->v,
                    masked ? ", selected keys" : "");

    dsa_bench_row(b, "multi-head prefill", text, us,
                  pairs * 2.0 * (width + shape->v), DSA_BENCH_BF16,
                  2.0 * rows * heads * (width + shape->v)
                  + 2.0 * keys * heads * kv + keys * 128.0);

done:

    dsa_bench_free_all(b);
}


void
dsa_bench_attention_heads(dsa_bench_t *b)
{
    size_t                         i, n;
    const dsa_cuda_heads_shape_t  *shape;

    static const struct {
        uint32_t  start, rows, heads;
        int       masked;
    } size[] = {
        { 0, 512, 128, 0 }, { 0, 1024, 128, 0 }, { 0, 2048, 128, 0 },
        { 0, 4096, 128, 0 }, { 0, 4096, 128, 1 }, { 3584, 512, 128, 1 },
        { 0, 8192, 128, 0 }, { 0, 8192, 128, 1 }, { 0, 512, 64, 0 },
        { 0, 1024, 64, 0 }, { 0, 2048, 64, 0 }, { 0, 4096, 64, 0 },
        { 0, 4096, 64, 1 }, { 3584, 512, 64, 1 }, { 0, 8192, 64, 1 },
        { 0, 512, 16, 0 }, { 0, 1024, 16, 0 }, { 0, 2048, 16, 0 },
        { 0, 4096, 16, 0 }, { 0, 4096, 16, 1 }, { 3584, 512, 16, 1 },
        { 0, 8192, 16, 1 }
    };

    for (n = 0; (shape = dsa_cuda_heads_shape(n)) != NULL; n++) {
        for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
            dsa_bench_heads_one(b, shape, size[i].start, size[i].rows,
                                size[i].heads, size[i].masked);
        }
    }
}
