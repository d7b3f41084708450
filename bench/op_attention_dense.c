
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
 * Decode over all positions of sequences whose pages are distinct and far more
 * than the L2 holds, and a part of MHA prefill whose rows follow it.
 */

#define DSA_BENCH_KEYS      32768       /* of a sequence */
#define DSA_BENCH_PAGES     (DSA_BENCH_KEYS / 64)
#define DSA_BENCH_SEQS      32
#define DSA_BENCH_ROWS      (DSA_BENCH_SEQS * 4)
#define DSA_BENCH_PART      4096        /* keys of prefill */


typedef struct {
    void               *out;
    void               *q;
    int32_t            *pages;          /* [rows, DSA_BENCH_PAGES] */
    int32_t            *keys;
    int32_t            *left;
    void               *work;
    uint32_t            seqs;
    uint32_t            rows;           /* of a sequence */
    uint32_t            heads;
    dsa_cuda_cache_t    cache;
} dsa_bench_dense_t;


typedef struct {
    const dsa_cuda_heads_shape_t  *shape;
    void                          *out;
    float                         *sum;
    float                         *norm;
    void                          *q;
    void                          *kv;
    void                          *latents;
    uint32_t                       rows;
    uint32_t                       heads;
} dsa_bench_part_t;


static int
dsa_bench_dense(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_dense_t  *d = ctx;

    return dsa_cuda_attention_dense(&b->state, d->out, d->q, &d->cache,
                                    d->pages, DSA_BENCH_PAGES, d->keys,
                                    d->left, d->seqs * d->rows, d->heads, 0,
                                    DSA_BENCH_KEYS, 0.0722f, d->work,
                                    b->stream);
}


/* Sets the rows: each sequence has d->rows, the last of them all keys. */

static int
dsa_bench_dense_rows(dsa_bench_dense_t *d)
{
    int        rc;
    size_t     bytes;
    int32_t   *pages, keys[DSA_BENCH_ROWS], left[DSA_BENCH_ROWS];
    uint32_t   i, k, rows;

    rows = d->seqs * d->rows;
    bytes = rows * DSA_BENCH_PAGES * sizeof(int32_t);
    pages = malloc(bytes);

    if (pages == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < rows; i++) {
        left[i] = (int32_t) (d->rows - i % d->rows);
        keys[i] = DSA_BENCH_KEYS + 1 - left[i];

        for (k = 0; k < DSA_BENCH_PAGES; k++) {
            pages[i * DSA_BENCH_PAGES + k] = (int32_t) (k * DSA_BENCH_SEQS
                                                        + i / d->rows);
        }
    }

    rc = cudaMemcpy(d->pages, pages, bytes, cudaMemcpyHostToDevice);
    rc = rc != 0 ? rc : (int) cudaMemcpy(d->keys, keys, rows * sizeof(int32_t),
                                         cudaMemcpyHostToDevice);
    rc = rc != 0 ? rc : (int) cudaMemcpy(d->left, left, rows * sizeof(int32_t),
                                         cudaMemcpyHostToDevice);
    free(pages);

    return rc;
}


/* The bytes are those of each sequence's latents once, and of the rows. */

static void
dsa_bench_dense_one(dsa_bench_t *b, dsa_bench_dense_t *d)
{
    int     rc;
    char    text[96];
    double  us, pairs;

    rc = dsa_bench_dense_rows(d);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: rows: %s\n", dsa_cuda_error(rc));
        b->failed = 1;
        return;
    }

    us = dsa_bench_time(b, dsa_bench_dense, d, 1);
    pairs = (double) d->seqs * d->rows * DSA_BENCH_KEYS;

    (void) snprintf(text, sizeof(text), "b=%u x %u rows, %u keys, h=%u, %s",
                    d->seqs, d->rows, DSA_BENCH_KEYS, d->heads,
                    d->cache.bf16 ? "bf16" : "fp8");

    dsa_bench_row(b, "dense attention, decode", text, us,
                  pairs * d->heads * 1088 * 2, DSA_BENCH_BF16,
                  pairs / d->rows * dsa_cuda_record(d->cache.bf16)
                  + (double) d->seqs * d->rows * d->heads * 1088 * 2);
}


static void
dsa_bench_dense_format(dsa_bench_t *b, uint32_t bf16)
{
    int                rc;
    size_t             i;
    dsa_bench_dense_t  d;

    static const struct {
        uint32_t  seqs, rows, heads;
    } size[] = {
        { 32, 1, 16 }, { 32, 1, 20 }, { 32, 1, 32 }, { 32, 1, 64 },
        { 32, 1, 128 }, { 32, 4, 16 }, { 32, 3, 20 }, { 32, 2, 32 },
        { 32, 4, 128 }, { 8, 1, 20 }, { 1, 1, 20 }, { 1, 1, 128 }
    };

    d.cache.page = 64 * dsa_cuda_record(bf16);
    d.cache.keys = d.cache.page;
    d.cache.pages = DSA_BENCH_SEQS * DSA_BENCH_PAGES;
    d.cache.bf16 = bf16;
    d.cache.base = dsa_bench_alloc(b, d.cache.pages * d.cache.page);
    d.q = dsa_bench_alloc(b, DSA_BENCH_ROWS * 128 * 576 * 2);
    d.out = dsa_bench_alloc(b, DSA_BENCH_ROWS * 128 * 512 * 2);
    d.pages = dsa_bench_alloc(b, DSA_BENCH_ROWS * DSA_BENCH_PAGES
                                 * sizeof(int32_t));
    d.keys = dsa_bench_alloc(b, DSA_BENCH_ROWS * sizeof(int32_t));
    d.left = dsa_bench_alloc(b, DSA_BENCH_ROWS * sizeof(int32_t));
    d.work = dsa_bench_alloc(b, dsa_cuda_attention_dense_work(DSA_BENCH_ROWS,
                                                        128, DSA_BENCH_KEYS));

    if (d.cache.base == NULL || d.q == NULL || d.out == NULL
        || d.pages == NULL || d.keys == NULL || d.left == NULL
        || d.work == NULL)
    {
        return;
    }

    rc = dsa_cuda_random_cache(&d.cache, 0, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(d.q, DSA_BENCH_ROWS * 128 * 576,
                                             0, 1, 3, b->stream);
    if (rc != 0) {
        b->failed = 1;
        return;
    }

    for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
        d.seqs = size[i].seqs;
        d.rows = size[i].rows;
        d.heads = size[i].heads;

        dsa_bench_dense_one(b, &d);
    }

    dsa_bench_free_all(b);
}


static int
dsa_bench_part(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_part_t  *p = ctx;

    /* not the first part, so that it is merged, and no row's last one */

    return dsa_cuda_attention_heads_part(&b->state, p->shape, p->out, p->sum,
                                         p->norm, p->q, p->kv, p->latents,
                                         DSA_BENCH_PART, DSA_BENCH_PART,
                                         3 * DSA_BENCH_PART, p->rows, p->heads,
                                         0.0722f, b->stream);
}


static void
dsa_bench_part_one(dsa_bench_t *b, const dsa_cuda_heads_shape_t *shape,
    uint32_t rows, uint32_t heads)
{
    int               rc;
    char              text[96];
    double            us;
    size_t            q, v, kv, norm;
    dsa_bench_part_t  p;

    q = (size_t) rows * heads * (shape->nope + DSA_CUDA_ROPE);
    v = (size_t) rows * heads * shape->v;
    kv = (size_t) DSA_BENCH_PART * heads * (shape->nope + shape->v);
    norm = (size_t) rows * heads * DSA_CUDA_HEADS_NORM;

    p.shape = shape;
    p.rows = rows;
    p.heads = heads;
    p.out = dsa_bench_alloc(b, v * 2);
    p.sum = dsa_bench_alloc(b, v * sizeof(float));
    p.norm = dsa_bench_alloc(b, norm * sizeof(float));
    p.q = dsa_bench_alloc(b, q * 2);
    p.kv = dsa_bench_alloc(b, kv * 2);
    p.latents = dsa_bench_alloc(b, DSA_BENCH_PART * 576 * 2);

    if (p.out == NULL || p.sum == NULL || p.norm == NULL || p.q == NULL
        || p.kv == NULL || p.latents == NULL)
    {
        return;
    }

    rc = dsa_cuda_random_bf16(p.q, q, 0, 1.7f, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(p.kv, kv, 0, 1.7f, 2, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(p.latents, DSA_BENCH_PART * 576,
                                             0, 1.7f, 3, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(p.sum, v, 0, 1, 4, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(p.norm, norm, 0, 1, 5, b->stream);
    if (rc != 0) {
        b->failed = 1;
        return;
    }

    us = dsa_bench_time(b, dsa_bench_part, &p, 1);

    (void) snprintf(text, sizeof(text), "%u queries, %u keys, h=%u, %u/%u",
                    rows, DSA_BENCH_PART, heads, shape->nope, shape->v);
    dsa_bench_row(b, "multi-head prefill, a part", text, us,
                  (double) rows * heads * DSA_BENCH_PART * 2.0
                  * (shape->nope + DSA_CUDA_ROPE + shape->v), DSA_BENCH_BF16,
                  2.0 * q + 8.0 * v + 2.0 * kv + DSA_BENCH_PART * 128.0);

    dsa_bench_free_all(b);
}


void
dsa_bench_attention_dense(dsa_bench_t *b)
{
    size_t                         i, n;
    const dsa_cuda_heads_shape_t  *shape;

    static const uint32_t  size[][2] = {        /* rows, heads */
        { 2048, 128 }, { 2048, 32 }, { 2048, 20 }, { 500, 20 }, { 50, 20 },
        { 50, 128 }
    };

    dsa_bench_dense_format(b, 1);
    dsa_bench_dense_format(b, 0);

    for (n = 0; (shape = dsa_cuda_heads_shape(n)) != NULL; n++) {
        for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
            dsa_bench_part_one(b, shape, size[i][0], size[i][1]);
        }
    }
}
