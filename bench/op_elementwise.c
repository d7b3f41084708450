
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cache.h"
#include "kernels/core/fp8.h"
#include "kernels/index/indexer.h"
#include "kernels/row/embed.h"
#include "kernels/row/norm.h"
#include "kernels/row/rope.h"
#include "kernels/sample/random.h"


#define DSA_BENCH_HIDDEN    7168        /* at most, as the next */
#define DSA_BENCH_HEADS     128
#define DSA_BENCH_POSITIONS 8192
#define DSA_BENCH_ROWS      8192
#define DSA_BENCH_PICKS     2048
#define DSA_BENCH_PAGES     2048
#define DSA_BENCH_EPS       1e-6f


/* The sizes of a model; scales are powers of two, or float32 numbers. */

typedef struct {
    uint32_t            hidden;
    uint32_t            lora;           /* q_lora_rank */
    uint32_t            input;          /* lora, latent, rope, index key */
    uint32_t            heads;
    uint32_t            nope;
    uint32_t            output;         /* of all heads */
    uint32_t            index;          /* heads of the indexer */
    int                 interleaved;    /* the indexer's rotation */
    int                 ue8m0;
} dsa_bench_model_t;


/* Two buffers for the widest row; each op uses them with its own shape. */

typedef struct {
    const dsa_bench_model_t  *model;
    dsa_bf16_t         *in;
    dsa_bf16_t         *out;
    dsa_bf16_t         *residual;
    float              *weight;         /* of norms, heads and rotations */
    float              *table;
    int32_t            *position;
    int32_t            *slot;
    int32_t            *pick;
    int32_t            *n_pick;
    int32_t            *pages;
    uint32_t            rows;
    uint32_t            keys;
    dsa_fp8_rows_t      q;
    dsa_fp8_weight_t    fp8;
    dsa_cuda_cache_t    cache;
} dsa_bench_rows_t;


static int
dsa_bench_add_rmsnorm(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_add_rmsnorm(t->out, &t->q, t->in, t->residual,
                                t->residual, t->weight, t->rows,
                                t->model->hidden, DSA_BENCH_EPS,
                                t->model->ue8m0,
                                b->stream);
}


static int
dsa_bench_rmsnorm(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_rmsnorm(NULL, 0, &t->q, t->in, t->model->input, t->weight,
                            t->rows, t->model->lora, DSA_BENCH_EPS,
                            t->model->ue8m0, b->stream);
}


static int
dsa_bench_quantize(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_fp8_quantize(&t->q, t->in, t->model->output, t->rows,
                                 t->model->output, t->model->ue8m0,
                                 b->stream);
}


static int
dsa_bench_rope_query(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_rope_query(t->out, DSA_CUDA_LATENT + DSA_CUDA_ROPE,
                               DSA_CUDA_LATENT, t->in,
                               t->model->nope + DSA_CUDA_ROPE, t->table,
                               t->position, t->rows, t->model->heads,
                               b->stream);
}


static int
dsa_bench_index_query(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_index_query(t->q.q, t->q.scale, t->in, t->weight, 0.011f,
                                t->table, t->position, t->model->interleaved,
                                t->rows, t->model->index, b->stream);
}


static int
dsa_bench_cache_write(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_cache_write(&t->cache, t->slot, t->in + t->model->lora,
                                t->model->input, t->weight, DSA_BENCH_EPS,
                                t->in + t->model->lora + DSA_CUDA_LATENT
                                + DSA_CUDA_ROPE,
                                t->model->input, t->weight, t->weight,
                                DSA_BENCH_EPS, t->table, t->position,
                                t->model->interleaved, t->rows, b->stream);
}


static int
dsa_bench_cache_latents(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_cache_latents(t->out, &t->cache, t->pages, t->keys,
                                  b->stream);
}


static int
dsa_bench_embed(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_embed(t->out, t->in, t->slot, t->rows, t->model->hidden,
                          0, DSA_BENCH_ROWS, b->stream);
}


static int
dsa_bench_mask(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_attention_mask((uint32_t *) t->out, t->keys / 32,
                                   t->pick, DSA_BENCH_PICKS, t->n_pick,
                                   t->rows, b->stream);
}


static int
dsa_bench_decode_weight(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_rows_t  *t = ctx;

    return dsa_cuda_fp8_decode_weight(t->out, &t->fp8, b->stream);
}


static int
dsa_bench_rows_alloc(dsa_bench_t *b, dsa_bench_rows_t *t)
{
    size_t  wide;

    wide = (size_t) DSA_BENCH_ROWS * DSA_BENCH_HEADS;

    memset(t, 0, sizeof(*t));

    t->in = dsa_bench_alloc(b, wide * 192 * 2);
    t->out = dsa_bench_alloc(b, wide * 576 * 2);
    t->residual = dsa_bench_alloc(b, (size_t) DSA_BENCH_ROWS
                                     * DSA_BENCH_HIDDEN * 2);
    t->weight = dsa_bench_alloc(b, (size_t) DSA_BENCH_ROWS * 64 * 4);
    t->table = dsa_bench_alloc(b, (size_t) DSA_BENCH_POSITIONS * 64 * 4);
    t->position = dsa_bench_alloc(b, DSA_BENCH_ROWS * 4);
    t->slot = dsa_bench_alloc(b, DSA_BENCH_ROWS * 4);
    t->pick = dsa_bench_alloc(b, (size_t) DSA_BENCH_ROWS * DSA_BENCH_PICKS
                                 * 4);
    t->n_pick = dsa_bench_alloc(b, DSA_BENCH_ROWS * 4);
    t->pages = dsa_bench_alloc(b, DSA_BENCH_PAGES * 4);
    t->q.q = dsa_bench_alloc(b, wide * 128);
    t->q.scale = dsa_bench_alloc(b, wide * 4);
    t->q.ld = DSA_BENCH_ROWS;

    t->fp8.q = t->q.q;
    t->fp8.scale = t->weight;
    t->fp8.rows = DSA_BENCH_HEADS * 256;
    t->fp8.cols = DSA_CUDA_LATENT;

    t->cache.keys = 64 * DSA_CUDA_RECORD;
    t->cache.page = t->cache.keys + 64 * 132;
    t->cache.pages = DSA_BENCH_PAGES;
    t->cache.bf16 = 0;
    t->cache.base = dsa_bench_alloc(b, DSA_BENCH_PAGES * t->cache.page);

    return t->in == NULL || t->out == NULL || t->residual == NULL
           || t->weight == NULL || t->table == NULL || t->position == NULL
           || t->slot == NULL || t->pick == NULL || t->n_pick == NULL
           || t->pages == NULL || t->q.q == NULL || t->q.scale == NULL
           || t->cache.base == NULL
           ? cudaErrorMemoryAllocation : cudaSuccess;
}


/* Picks rise over keys; the other inputs are random. */

static int
dsa_bench_rows_fill(dsa_bench_t *b, dsa_bench_rows_t *t, uint32_t keys)
{
    int        rc;
    size_t     i, n;
    int32_t   *pick, *row;
    uint32_t   state;

    n = (size_t) DSA_BENCH_ROWS * DSA_BENCH_PICKS;
    pick = malloc(n * 4);
    row = malloc(DSA_BENCH_ROWS * 4);
    rc = pick != NULL && row != NULL ? cudaSuccess
                                     : cudaErrorMemoryAllocation;
    state = 1;

    for (i = 0; rc == 0 && i < n; i++) {
        state = state * 1664525 + 1013904223;
        pick[i] = (int32_t) (i % DSA_BENCH_PICKS * (keys / DSA_BENCH_PICKS)
                             + (state >> 8) % (keys / DSA_BENCH_PICKS));
    }

    rc = rc != 0 ? rc : (int) cudaMemcpy(t->pick, pick, n * 4,
                                         cudaMemcpyHostToDevice);

    for (i = 0; rc == 0 && i < DSA_BENCH_ROWS; i++) {
        row[i] = DSA_BENCH_PICKS;
    }

    rc = rc != 0 ? rc : (int) cudaMemcpy(t->n_pick, row, DSA_BENCH_ROWS * 4,
                                         cudaMemcpyHostToDevice);

    for (i = 0; rc == 0 && i < DSA_BENCH_ROWS; i++) {
        row[i] = (int32_t) (i * 5 % DSA_BENCH_ROWS);    /* each one once */
    }

    rc = rc != 0 ? rc : (int) cudaMemcpy(t->slot, row, DSA_BENCH_ROWS * 4,
                                         cudaMemcpyHostToDevice);
    rc = rc != 0 ? rc : (int) cudaMemcpy(t->position, row,
                                         DSA_BENCH_ROWS * 4,
                                         cudaMemcpyHostToDevice);

    for (i = 0; rc == 0 && i < DSA_BENCH_PAGES; i++) {
        row[i] = (int32_t) (i * 5 % DSA_BENCH_PAGES);
    }

    rc = rc != 0 ? rc : (int) cudaMemcpy(t->pages, row, DSA_BENCH_PAGES * 4,
                                         cudaMemcpyHostToDevice);

    n = (size_t) DSA_BENCH_ROWS * DSA_BENCH_HEADS;

    rc = rc != 0 ? rc : dsa_cuda_random_bf16(t->in, n * 192, 0, 1, 1,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(t->residual,
                                             (size_t) DSA_BENCH_ROWS
                                             * DSA_BENCH_HIDDEN, 0, 1, 2,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(t->weight, DSA_BENCH_ROWS * 64, 1,
                                            0.5f, 3, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(t->table,
                                            DSA_BENCH_POSITIONS * 64, 0, 1, 4,
                                            b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(t->q.q, n * 128, 5, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(t->cache.base, DSA_BENCH_PAGES
                                                            * t->cache.page,
                                             6, b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    free(pick);
    free(row);

    return rc;
}


void
dsa_bench_elementwise(dsa_bench_t *b)
{
    int                rc;
    char               shape[64];
    size_t             i, j;
    dsa_bench_rows_t   t;

    static const uint32_t  rows[] = { 1, 32, 128, DSA_BENCH_ROWS };

    static const dsa_bench_model_t  v3 = {
        7168, 1536, 2240, 128, 128, 16384, 64, 0, 1
    };
    static const dsa_bench_model_t  glm = {     /* GLM-5.2 */
        6144, 2048, 2752, 64, 192, 16384, 32, 1, 0
    };

    /* bytes of a row, including its scales */

    static const struct {
        const dsa_bench_model_t  *model;
        const char         *op;
        const char         *shape;
        dsa_bench_pt        call;
        double              bytes;
    } ops[] = {
        { &v3, "add_rmsnorm", "7168, quantized", dsa_bench_add_rmsnorm,
          7168 * 9 + 56 * 4 },
        { &v3, "rmsnorm", "1536, quantized", dsa_bench_rmsnorm,
          1536 * 3 + 12 * 4 },
        { &v3, "fp8_quantize", "16384", dsa_bench_quantize,
          16384 * 3 + 128 * 4 },
        { &v3, "rope_query", "128 heads", dsa_bench_rope_query,
          128 * 64 * 4 + 256 },
        { &v3, "index_query", "64 heads", dsa_bench_index_query,
          64 * (128 * 3 + 8) + 256 },
        { &v3, "cache_write", "576 + 128", dsa_bench_cache_write,
          704 * 2 + 656 + 132 + 256 },
        { &v3, "embed", "7168", dsa_bench_embed, 7168 * 4 },
        { &v3, "attention_mask", "2048 of 8192", dsa_bench_mask,
          2048 * 4 + 8192 / 8 },

        { &glm, "add_rmsnorm", "6144, quantized, float32 scales",
          dsa_bench_add_rmsnorm, 6144 * 9 + 48 * 4 },
        { &glm, "rmsnorm", "2048, quantized, float32 scales",
          dsa_bench_rmsnorm, 2048 * 3 + 16 * 4 },
        { &glm, "fp8_quantize", "16384, float32 scales", dsa_bench_quantize,
          16384 * 3 + 128 * 4 },
        { &glm, "rope_query", "64 heads", dsa_bench_rope_query,
          64 * 64 * 4 + 256 },
        { &glm, "index_query", "32 heads, interleaved", dsa_bench_index_query,
          32 * (128 * 3 + 8) + 256 },
        { &glm, "cache_write", "576 + 128, interleaved",
          dsa_bench_cache_write, 704 * 2 + 656 + 132 + 256 },
        { &glm, "embed", "6144", dsa_bench_embed, 6144 * 4 }
    };

    rc = dsa_bench_rows_alloc(b, &t);
    rc = rc != 0 ? rc : dsa_bench_rows_fill(b, &t, DSA_BENCH_POSITIONS);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: elementwise: %s\n",
                       dsa_cuda_error(rc));
        b->failed = 1;
        goto done;
    }

    t.keys = DSA_BENCH_POSITIONS;

    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            t.model = ops[i].model;
            t.rows = rows[j];
            (void) snprintf(shape, sizeof(shape), "%u x %s", rows[j],
                            ops[i].shape);

            dsa_bench_row(b, ops[i].op, shape,
                          dsa_bench_time(b, ops[i].call, &t, 1), 0, 0,
                          rows[j] * ops[i].bytes);
        }
    }

    for (j = 8192; j <= DSA_BENCH_PAGES * 64; j *= 16) {
        t.keys = (uint32_t) j;
        (void) snprintf(shape, sizeof(shape), "%zu tokens", j);
        dsa_bench_row(b, "cache_latents", shape,
                      dsa_bench_time(b, dsa_bench_cache_latents, &t, 1), 0, 0,
                      (double) j * (656 + 1152));
    }

    dsa_bench_row(b, "fp8_decode_weight", "32768 x 512",
                  dsa_bench_time(b, dsa_bench_decode_weight, &t, 1), 0, 0,
                  (double) t.fp8.rows * t.fp8.cols * 3);

done:

    dsa_bench_free_all(b);
}
