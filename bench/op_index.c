
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/attention/cache.h"
#include "kernels/index/indexer.h"
#include "kernels/sample/random.h"


/*
 * Index scores.  The operations are those for the keys that a row sees; the
 * bytes are the keys and scales of a sequence, counted once, and the queries.
 */

#define DSA_BENCH_INDEX_PAGES   32768
#define DSA_BENCH_INDEX_PAGE    (64 * (DSA_CUDA_RECORD + 132))
#define DSA_BENCH_INDEX_ROWS    8192
#define DSA_BENCH_INDEX_GROUPS  1024            /* rows of groups */
#define DSA_BENCH_INDEX_SCORES  ((size_t) 8192 * 32768)


typedef struct {
    float              *score;
    float              *w;
    size_t              ld;
    int32_t            *pages;          /* all of them, shuffled */
    int32_t            *keys;
    uint32_t            start;          /* of the first set of inputs */
    uint32_t            rows;
    uint32_t            most;
    uint32_t            heads;
    size_t              set;            /* pages from a set to the next */
    int32_t            *table;          /* of groups, [sets, rows, ld / 64] */
    int32_t            *left;           /* NULL: rows of their own */
    const int32_t      *list;           /* pages, host memory */
    dsa_e4m3_t         *q;
    dsa_cuda_cache_t    cache;
} dsa_bench_index_t;


static int
dsa_bench_index_prefill(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_index_t  *x = ctx;

    return dsa_cuda_index_score(&b->state, x->score, x->ld, x->q, x->w,
                                &x->cache, x->pages, x->start, x->rows,
                                x->heads, b->stream);
}


static int
dsa_bench_index_decode(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_index_t  *x = ctx;

    return dsa_cuda_index_score_decode(&b->state, x->score, x->ld, x->q, x->w,
                                       &x->cache,
                                       x->pages + (size_t) set * x->set,
                                       x->ld / 64, x->keys, x->rows, x->most,
                                       x->heads, b->stream);
}


static int
dsa_bench_index_groups(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_index_t  *x = ctx;

    return dsa_cuda_index_score_groups(&b->state, x->score, x->ld, x->q, x->w,
                                       &x->cache,
                                       x->table + (size_t) set * x->set,
                                       x->ld / 64, x->keys, x->left, x->rows,
                                       x->most, x->heads, b->stream);
}


static void
dsa_bench_index_prefill_row(dsa_bench_t *b, dsa_bench_index_t *x,
    uint32_t start, uint32_t rows, uint32_t heads)
{
    char    shape[96];
    double  us, pairs;

    x->start = start;
    x->rows = rows;
    x->heads = heads;
    x->ld = (start + rows + 63) / 64 * 64;

    us = dsa_bench_time(b, dsa_bench_index_prefill, x, 1);

    pairs = (double) rows * start + (double) rows * (rows + 1) / 2;

    (void) snprintf(shape, sizeof(shape), "%u queries over %u keys, h=%u",
                    rows, start + rows, heads);

    dsa_bench_row(b, "index scores", shape, us, pairs * heads * 256,
                  DSA_BENCH_FP8,
                  132.0 * (start + rows) + 132.0 * rows * heads);
}


/* n sequences with min .. max keys, evenly distributed. */

static void
dsa_bench_index_decode_row(dsa_bench_t *b, dsa_bench_index_t *x, uint32_t n,
    uint32_t min, uint32_t max, uint32_t heads)
{
    int       sets;
    char      shape[96];
    double    us, keys;
    int32_t   list[128];
    uint32_t  i;

    keys = 0;

    for (i = 0; i < n; i++) {
        list[i] = (int32_t) (n == 1 ? max
                                    : min + (uint64_t) (max - min)
                                            * (i * 37 % n) / (n - 1));
        keys += list[i];
    }

    x->rows = n;
    x->most = max;
    x->heads = heads;
    x->ld = (max + 63) / 64 * 64;
    x->set = n * (x->ld / 64);

    /* tables overlap if they have more pages than there are */

    sets = (int) (DSA_BENCH_INDEX_PAGES / x->set);
    sets = sets > 16 ? 16 : sets;
    sets = sets < 1 ? 1 : sets;

    if (cudaMemcpy(x->keys, list, n * sizeof(int32_t), cudaMemcpyDefault)
        != cudaSuccess)
    {
        b->failed = 1;
        return;
    }

    us = dsa_bench_time(b, dsa_bench_index_decode, x, sets);

    if (min == max) {
        (void) snprintf(shape, sizeof(shape), "b=%u at %u, h=%u", n, max,
                        heads);

    } else {
        (void) snprintf(shape, sizeof(shape), "b=%u at %u .. %u, h=%u", n,
                        min, max, heads);
    }

    dsa_bench_row(b, "index scores, decode", shape, us, keys * heads * 256,
                  DSA_BENCH_FP8, 132.0 * keys + 132.0 * n * heads);
}


/*
 * n sequences of rows each, whose last row has most keys.  alone: the rows are
 * not in groups, so that the keys of a sequence are read for each of them.
 */

static void
dsa_bench_index_groups_row(dsa_bench_t *b, dsa_bench_index_t *x, uint32_t n,
    uint32_t rows, uint32_t most, uint32_t heads, int alone)
{
    int       sets, rc;
    char      shape[96];
    size_t    i, pages, page;
    double    us;
    int32_t  *keys, *left, *table, *device;

    pages = (most + 63) / 64;

    x->rows = n * rows;
    x->most = most;
    x->heads = heads;
    x->ld = pages * 64;
    x->set = x->rows * pages;

    sets = (int) (DSA_BENCH_INDEX_PAGES / (n * pages));
    sets = sets > 16 ? 16 : sets;

    keys = malloc(x->rows * sizeof(int32_t));
    left = malloc(x->rows * sizeof(int32_t));
    table = malloc((size_t) sets * x->set * sizeof(int32_t));

    if (keys == NULL || left == NULL || table == NULL) {
        b->failed = 1;
        goto done;
    }

    for (i = 0; i < x->rows; i++) {
        left[i] = (int32_t) (rows - i % rows);
        keys[i] = (int32_t) most + 1 - left[i];
    }

    for (i = 0; i < (size_t) sets * x->set; i++) {
        page = i / pages / rows * pages + i % pages;
        table[i] = x->list[page];
    }

    device = x->left;
    rc = cudaMemcpy(x->keys, keys, x->rows * sizeof(int32_t),
                    cudaMemcpyDefault);
    rc = rc != 0 ? rc : (int) cudaMemcpy(x->left, left,
                                         x->rows * sizeof(int32_t),
                                         cudaMemcpyDefault);
    rc = rc != 0 ? rc : (int) cudaMemcpy(x->table, table,
                                         sets * x->set * sizeof(int32_t),
                                         cudaMemcpyDefault);
    if (rc != 0) {
        b->failed = 1;
        goto done;
    }

    x->left = alone ? NULL : device;
    us = dsa_bench_time(b, dsa_bench_index_groups, x, sets);
    x->left = device;

    (void) snprintf(shape, sizeof(shape), "b=%u, %u rows%s, at %u, h=%u", n,
                    rows, alone ? " alone" : "", most, heads);

    dsa_bench_row(b, "index scores, groups", shape, us,
                  (double) x->rows * most * heads * 256, DSA_BENCH_FP8,
                  132.0 * n * most + 132.0 * x->rows * heads);

done:

    free(keys);
    free(left);
    free(table);
}


/* DeepSeek-V3.2 has 64 heads, GLM-5 has 32. */

static void
dsa_bench_index_rows(dsa_bench_t *b, dsa_bench_index_t *x, uint32_t heads)
{
    size_t  i, j;

    static const uint32_t  prefill[][2] = {     /* position, queries */
        { 24576, 8192 }, { 0, 1024 }, { 0, 4096 }, { 0, 8192 },
        { 129024, 2048 }
    };

    static const uint32_t  decode[][3] = {      /* sequences, keys from, to */
        { 32, 65536, 65536 }, { 1, 4096, 4096 }, { 1, 65536, 65536 },
        { 1, 131072, 131072 }, { 8, 65536, 65536 }, { 32, 8192, 8192 },
        { 16, 65536, 65536 }, { 128, 8192, 8192 }, { 128, 1, 131072 }
    };

    static const uint32_t  groups[][2] = {      /* sequences, keys */
        { 16, 65536 }, { 128, 8192 }
    };

    static const uint32_t  rows[] = { 1, 2, 4, 6, 8 };

    for (i = 0; i < sizeof(prefill) / sizeof(prefill[0]); i++) {
        dsa_bench_index_prefill_row(b, x, prefill[i][0], prefill[i][1],
                                    heads);
    }

    for (i = 0; i < sizeof(decode) / sizeof(decode[0]); i++) {
        dsa_bench_index_decode_row(b, x, decode[i][0], decode[i][1],
                                   decode[i][2], heads);
    }

    for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            dsa_bench_index_groups_row(b, x, groups[i][0], rows[j],
                                       groups[i][1], heads, 0);
        }

        dsa_bench_index_groups_row(b, x, groups[i][0], 4, groups[i][1], heads,
                                   1);
    }
}


void
dsa_bench_index(dsa_bench_t *b)
{
    int                rc;
    float             *scale;
    size_t             n;
    int32_t           *list;
    uint32_t           i, j, t;
    dsa_bench_index_t  x;

    n = DSA_BENCH_INDEX_PAGES;

    x.cache.page = DSA_BENCH_INDEX_PAGE;
    x.cache.keys = 64 * DSA_CUDA_RECORD;
    x.cache.pages = DSA_BENCH_INDEX_PAGES;
    x.cache.bf16 = 0;
    x.cache.base = dsa_bench_alloc(b, n * DSA_BENCH_INDEX_PAGE);
    x.score = dsa_bench_alloc(b, DSA_BENCH_INDEX_SCORES * sizeof(float));
    x.q = dsa_bench_alloc(b, (size_t) DSA_BENCH_INDEX_ROWS * 64 * 128);
    x.w = dsa_bench_alloc(b, (size_t) DSA_BENCH_INDEX_ROWS * 64
                             * sizeof(float));
    x.pages = dsa_bench_alloc(b, 8 * n * sizeof(int32_t));
    x.keys = dsa_bench_alloc(b, DSA_BENCH_INDEX_GROUPS * sizeof(int32_t));
    x.left = dsa_bench_alloc(b, DSA_BENCH_INDEX_GROUPS * sizeof(int32_t));
    x.table = dsa_bench_alloc(b, DSA_INDEX_ROWS * n * sizeof(int32_t));
    scale = dsa_bench_alloc(b, n * 64 * sizeof(float));
    list = malloc(8 * n * sizeof(int32_t));

    if (x.cache.base == NULL || x.score == NULL || x.q == NULL || x.w == NULL
        || x.pages == NULL || x.keys == NULL || x.left == NULL
        || x.table == NULL || scale == NULL || list == NULL)
    {
        b->failed = 1;
        goto done;
    }

    for (i = 0; i < n; i++) {
        list[i] = (int32_t) i;
    }

    /* a permutation that is the same in every run, repeated */

    for (i = (uint32_t) n - 1, t = 1; i > 0; i--) {
        t = t * 1664525 + 1013904223;
        j = (uint32_t) ((uint64_t) t * (i + 1) >> 32);
        rc = list[i];
        list[i] = list[j];
        list[j] = rc;
    }

    for (i = (uint32_t) n; i < 8 * n; i++) {
        list[i] = list[i - n];
    }

    rc = dsa_cuda_random_e4m3(x.cache.base, n * DSA_BENCH_INDEX_PAGE, 1,
                              b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(scale, n * 64, 1, 0.5f, 2,
                                            b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(x.q,
                                   (size_t) DSA_BENCH_INDEX_ROWS * 64 * 128,
                                             3, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(x.w,
                                        (size_t) DSA_BENCH_INDEX_ROWS * 64,
                                            0, 1, 4, b->stream);
    rc = rc != 0 ? rc
                 : (int) cudaMemcpy2DAsync(x.cache.base + x.cache.keys
                                           + 64 * DSA_CUDA_INDEX,
                                           x.cache.page, scale, 256, 256, n,
                                           cudaMemcpyDefault, b->stream);
    rc = rc != 0 ? rc
                 : (int) cudaMemcpyAsync(x.pages, list,
                                         8 * n * sizeof(int32_t),
                                         cudaMemcpyDefault, b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: index inputs: %s\n",
                       dsa_cuda_error(rc));
        b->failed = 1;
        goto done;
    }

    x.list = list;

    dsa_bench_index_rows(b, &x, 64);
    dsa_bench_index_rows(b, &x, 32);

done:

    free(list);
    dsa_bench_free_all(b);
}
