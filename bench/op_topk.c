
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/index/indexer.h"
#include "kernels/sample/random.h"


#define DSA_BENCH_TOPK      2048
#define DSA_BENCH_L2        (50 << 20)


typedef struct {
    float              *score;
    size_t              ld;
    size_t              pages;
    int32_t            *pick;
    int32_t            *slot;
    int32_t            *n_pick;
    int32_t            *keys;
    int32_t            *page;
    int32_t            *owner;
    uint32_t            rows;
} dsa_bench_topk_t;


static int
dsa_bench_topk_call(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_topk_t  *t = ctx;

    return dsa_cuda_topk(t->pick, t->slot, t->n_pick,
                         t->score + (size_t) set * t->rows * t->ld, t->ld,
                         t->keys, t->page, t->pages, t->owner, t->rows,
                         DSA_BENCH_TOPK, (uint32_t) t->ld, b->stream);
}


/*
 * rows of keys scores: random about mean, or zeros with scale 0.  causal: the
 * first row sees keys - rows + 1 of them.  cold: as many inputs alternate as
 * exceed the L2, because otherwise the scores would still be in it.
 */

static void
dsa_bench_topk_shape(dsa_bench_t *b, const char *shape, uint32_t rows,
    uint32_t keys, float mean, float scale, int causal, int cold)
{
    int                rc, sets;
    double             us, read;
    size_t             n;
    int32_t           *host;
    uint32_t           i;
    dsa_bench_topk_t   t;

    t.rows = rows;
    t.ld = keys;
    t.pages = keys / 64;
    n = (size_t) rows * keys;
    sets = cold ? (int) (2 * DSA_BENCH_L2 / (n * sizeof(float))) + 1 : 1;

    t.score = dsa_bench_alloc(b, n * sets * sizeof(float));
    t.pick = dsa_bench_alloc(b, (size_t) rows * DSA_BENCH_TOPK * 4);
    t.slot = dsa_bench_alloc(b, (size_t) rows * DSA_BENCH_TOPK * 4);
    t.n_pick = dsa_bench_alloc(b, rows * sizeof(int32_t));
    t.keys = dsa_bench_alloc(b, rows * sizeof(int32_t));
    t.page = dsa_bench_alloc(b, t.pages * sizeof(int32_t));
    t.owner = dsa_bench_alloc(b, rows * sizeof(int32_t));
    host = malloc(rows * sizeof(int32_t));

    if (t.score == NULL || t.pick == NULL || t.slot == NULL
        || t.n_pick == NULL || t.keys == NULL || t.page == NULL
        || t.owner == NULL || host == NULL)
    {
        b->failed = 1;
        goto done;
    }

    read = 0;

    for (i = 0; i < rows; i++) {
        host[i] = (int32_t) (causal ? keys - rows + 1 + i : keys);
        read += host[i];
    }

    rc = dsa_cuda_random_f32(t.score, n * sets, mean, scale, 1, b->stream);
    rc = rc != 0 ? rc : (int) cudaMemcpyAsync(t.keys, host,
                                              rows * sizeof(int32_t),
                                              cudaMemcpyHostToDevice,
                                              b->stream);
    rc = rc != 0 ? rc : (int) cudaMemsetAsync(t.page, 0, t.pages * 4,
                                              b->stream);
    rc = rc != 0 ? rc : (int) cudaMemsetAsync(t.owner, 0, rows * 4,
                                              b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: topk: %s\n", dsa_cuda_error(rc));
        b->failed = 1;
        goto done;
    }

    us = dsa_bench_time(b, dsa_bench_topk_call, &t, sets);

    dsa_bench_row(b, "topk", shape, us, 0, 0,
                  read * 4 + (double) rows * DSA_BENCH_TOPK * 8);

done:

    free(host);
    dsa_bench_free_all(b);
}


void
dsa_bench_topk(dsa_bench_t *b)
{
    dsa_bench_topk_shape(b, "2048 of 64K, 1 row", 1, 65536, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 64K, 64 rows", 64, 65536, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 64K, 64 rows, cold", 64, 65536, 0, 1, 0,
                         1);
    dsa_bench_topk_shape(b, "2048 of 8K, 1 row", 1, 8192, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 128K, 1 row", 1, 131072, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 160K, 1 row", 1, 163840, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 8K, 128 rows", 128, 8192, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 64K, 8 rows", 8, 65536, 0, 1, 0, 0);
    dsa_bench_topk_shape(b, "2048 of 64K, 128 rows, cold", 128, 65536, 0, 1,
                         0, 1);
    dsa_bench_topk_shape(b, "2048 of 160K, 32 rows, cold", 32, 163840, 0, 1,
                         0, 1);
    dsa_bench_topk_shape(b, "2048 of 32K, 8192 rows", 8192, 32768, 0, 1, 0,
                         1);
    dsa_bench_topk_shape(b, "2048 of 32K, 8192 rows, causal", 8192, 32768, 0,
                         1, 1, 1);
    dsa_bench_topk_shape(b, "2048 of 64K, 1 row, about 100", 1, 65536, 100, 1,
                         0, 0);
    dsa_bench_topk_shape(b, "2048 of 64K, 1 row, all equal", 1, 65536, 0, 0,
                         0, 0);
    dsa_bench_topk_shape(b, "2048 of 64K, 64 rows, all equal", 64, 65536, 0,
                         0, 0, 0);
}
