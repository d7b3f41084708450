
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/attention/cache.h"
#include "kernels/core/fp8.h"
#include "kernels/index/indexer.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/*
 * Index scores against float64 and against the CPU twin.  Operands are e4m3 of
 * vectors as the engine quantizes them.  What still differs is the order of
 * additions, and that Hopper's FP8 products keep fewer bits of a sum than
 * float32 has: 32 products and the sum so far are aligned with the greatest of
 * them and cut about 13 bits below it.
 */

#define DIM      128
#define RECORD   656
#define KEYS     (64 * RECORD)
#define PAGE     (64 * (RECORD + 132) + 128)    /* not as dense as can be */

/*
 * Errors are relative to a row's greatest |score| if the row is long (2047
 * keys or more and 64 heads): 2.4e-4 was seen, and 3.5e-5 in the root mean
 * square.  In other rows the few scores may all be near 0; errors are then
 * relative to the greatest sum of |w| max(0, q . k), for which sums that are
 * cut at 13 bits give 2.7e-4.  Inputs and results are the same in every run.
 */
#define BOUND         5e-4
#define BOUND_LONG    4e-4
#define BOUND_SQUARE  5e-5


typedef struct {
    uint32_t           keys;            /* there are */
    uint32_t           pages;
    int32_t           *table;           /* shuffled */
    float             *key;             /* [keys, 128], e4m3 values */
    float             *scale;
    dsa_cuda_cache_t   cache;
} index_cache_t;


typedef struct {
    uint32_t           rows;
    uint32_t           heads;
    float             *q;               /* e4m3 values */
    float             *w;
    dsa_e4m3_t        *d_q;
    float             *d_w;
} index_query_t;


static double  index_worst;
static double  index_worst_long;
static double  index_square_long;
static double  index_count_long;


/* n vectors with some large elements, as e4m3 and scales. */

static void
index_vectors(float *x, float *scale, size_t n)
{
    size_t  i;

    for (i = 0; i < n * DIM; i++) {
        x[i] = dsa_t_uniform() + dsa_t_uniform() + dsa_t_uniform();
        x[i] *= dsa_t_random(40) == 0 ? 3.0f : 1.0f;
    }

    dsa_fp8_round(x, scale, n, DIM);
}


/*
 * The keys of a sequence in shuffled pages.  All other bytes of the pages,
 * also behind the last key, are NaN.
 */

static void
index_cache(index_cache_t *c, uint32_t keys)
{
    uint8_t   *page, *base;
    int32_t    t;
    uint32_t   i, j, n;

    c->keys = keys;
    c->pages = (keys + 63) / 64;

    n = c->pages + 3;

    c->table = malloc(n * sizeof(int32_t));
    c->key = malloc((size_t) keys * DIM * sizeof(float));
    c->scale = malloc(keys * sizeof(float));
    base = malloc((size_t) n * PAGE);

    assert_non_null(c->table);
    assert_non_null(c->key);
    assert_non_null(c->scale);
    assert_non_null(base);

    memset(base, 0xff, (size_t) n * PAGE);
    index_vectors(c->key, c->scale, keys);

    for (i = 0; i < n; i++) {
        c->table[i] = (int32_t) i;
    }

    for (i = n - 1; i > 0; i--) {
        j = dsa_t_random(i + 1);
        t = c->table[i];
        c->table[i] = c->table[j];
        c->table[j] = t;
    }

    for (i = 0; i < keys; i++) {
        page = base + (size_t) c->table[i / 64] * PAGE + KEYS;

        for (j = 0; j < DIM; j++) {
            page[i % 64 * DIM + j] = dsa_e4m3_code(c->key[i * DIM + j]);
        }

        memcpy(page + 64 * DIM + i % 64 * 4, &c->scale[i], 4);
    }

    c->cache.base = gpu_upload(base, (size_t) n * PAGE);
    c->cache.page = PAGE;
    c->cache.keys = KEYS;
    c->cache.pages = n;
    c->cache.bf16 = 0;

    free(base);
}


static void
index_cache_free(index_cache_t *c)
{
    free(c->table);
    free(c->key);
    free(c->scale);
}


static void
index_query(index_query_t *q, uint32_t rows, uint32_t heads)
{
    size_t       i, n;
    float       *scale;
    dsa_e4m3_t  *code;

    n = (size_t) rows * heads;

    q->rows = rows;
    q->heads = heads;
    q->q = malloc(n * DIM * sizeof(float) + 1);
    q->w = malloc(n * sizeof(float) + 1);
    scale = malloc(n * sizeof(float) + 1);
    code = malloc(n * DIM + 1);

    assert_non_null(q->q);
    assert_non_null(q->w);
    assert_non_null(scale);
    assert_non_null(code);

    index_vectors(q->q, scale, n);

    for (i = 0; i < n; i++) {
        q->w[i] = dsa_t_uniform() * scale[i] * 0.0110f;
    }

    for (i = 0; i < n * DIM; i++) {
        code[i] = dsa_e4m3_code(q->q[i]);
    }

    q->d_q = gpu_upload(code, n * DIM);
    q->d_w = gpu_upload(q->w, n * sizeof(float));

    free(scale);
    free(code);
}


static void
index_query_free(index_query_t *q)
{
    free(q->q);
    free(q->w);
}


/*
 * Checks score [keys] of a row against float64, at all keys or at about sample
 * of them and the last 130, and against the twin at all keys.
 */

static void
index_check(const float *score, const index_cache_t *c,
    const index_query_t *q, uint32_t row, uint32_t keys, uint32_t sample)
{
    float        *twin, *scratch;
    double        x, sum, size, most, bound, *exact;
    size_t        i, h, s;
    uint32_t      is_long;
    const float  *a, *b;

    twin = malloc(keys * sizeof(float));
    exact = malloc(keys * sizeof(double));
    scratch = malloc((size_t) keys * q->heads * sizeof(float));

    assert_non_null(twin);
    assert_non_null(exact);
    assert_non_null(scratch);

    a = q->q + (size_t) row * q->heads * DIM;

    dsa_index_score(twin, a, q->w + (size_t) row * q->heads, c->key,
                    c->scale, 1, q->heads, DIM, keys, scratch);

    most = 0;
    is_long = keys >= 2047 && q->heads == 64;

    for (s = 0; s < keys; s++) {
        exact[s] = NAN;
        most = fabsf(twin[s]) > most ? fabsf(twin[s]) : most;

        if (s + 130 < keys && dsa_t_random(keys) >= sample) {
            continue;
        }

        sum = 0;
        size = 0;

        for (h = 0; h < q->heads; h++) {
            b = c->key + s * DIM;
            x = 0;

            for (i = 0; i < DIM; i++) {
                x += (double) a[h * DIM + i] * (double) b[i];
            }

            x = (x > 0 ? x : 0) * (double) q->w[row * q->heads + h];
            sum += x;
            size += fabs(x) * (double) c->scale[s];
        }

        exact[s] = sum * (double) c->scale[s];
        most = !is_long && size > most ? size : most;
    }

    /* one key with negative products for all heads: its score is exactly 0 */

    most = most > 0 ? most : 1e-30;
    bound = is_long ? BOUND_LONG : BOUND;

    for (s = 0; s < keys; s++) {
        x = fabs((double) score[s] - (double) twin[s]) / most;

        if (!(x <= bound)) {
            fail_msg("row %u of %u heads, key %zu of %u: %g, the twin %g",
                     row, q->heads, s, keys, (double) score[s],
                     (double) twin[s]);
        }

        if (isnan(exact[s])) {
            continue;
        }

        x = fabs((double) score[s] - exact[s]) / most;

        if (!(x <= bound)) {
            fail_msg("row %u of %u heads, key %zu of %u: %g, not %g", row,
                     q->heads, s, keys, (double) score[s], exact[s]);
        }

        if (!is_long) {
            index_worst = x > index_worst ? x : index_worst;

        } else {
            index_worst_long = x > index_worst_long ? x : index_worst_long;
            index_square_long += x * x;
            index_count_long += 1;
        }
    }

    free(twin);
    free(exact);
    free(scratch);
}


/* Checks that score [n] still has the poison of gpu_alloc(). */

static void
index_untouched(const float *score, size_t n)
{
    size_t    i;
    uint32_t  u;

    for (i = 0; i < n; i++) {
        memcpy(&u, &score[i], 4);
        assert_int_equal(u, 0xffffffff);
    }
}


/*
 * Computes rows positions from start on, twice.  Every row is checked, or
 * about some of them and the last one.  Nothing is written outside of the
 * whole pages of the rows.
 */

static void
index_prefill(uint32_t start, uint32_t rows, uint32_t heads, uint32_t some)
{
    float          *score, *again, *d_score;
    size_t          ld, n;
    int32_t        *d_table;
    uint32_t        r, used;
    index_query_t   q;
    index_cache_t   c;

    index_cache(&c, start + rows);
    index_query(&q, rows, heads);

    used = c.pages * 64;
    ld = used + 4;
    n = (rows + 1) * ld;

    score = malloc(n * sizeof(float));
    again = malloc(n * sizeof(float));
    assert_non_null(score);
    assert_non_null(again);

    d_score = gpu_alloc(n * sizeof(float));
    d_table = gpu_upload(c.table, c.pages * sizeof(int32_t));

    gpu_ok(dsa_cuda_index_score(&gpu_state, d_score, ld, q.d_q, q.d_w,
                                &c.cache, d_table, start, rows, heads, NULL));
    gpu_download(score, d_score, n * sizeof(float));

    gpu_poison(d_score, n * sizeof(float));
    gpu_ok(dsa_cuda_index_score(&gpu_state, d_score, ld, q.d_q, q.d_w,
                                &c.cache, d_table, start, rows, heads, NULL));
    gpu_download(again, d_score, n * sizeof(float));

    for (r = 0; r < rows; r++) {
        assert_memory_equal(score + r * ld, again + r * ld,
                            (start + r + 1) * sizeof(float));
        index_untouched(score + r * ld + used, ld - used);

        if (some == 0 || r + 1 == rows || dsa_t_random(rows) < some) {
            index_check(score + r * ld, &c, &q, r, start + r + 1,
                        some == 0 ? start + r + 1 : 1000);
        }
    }

    index_untouched(score + rows * ld, ld);

    free(score);
    free(again);
    index_query_free(&q);
    index_cache_free(&c);
}


static void
test_prefill(void **state)
{
    uint32_t         i;
    static uint32_t  shape[][3] = {
        /* start, rows, heads */
        { 0, 1, 64 }, { 0, 63, 64 }, { 0, 64, 64 }, { 0, 65, 64 },
        { 62, 1, 64 }, { 62, 3, 64 }, { 1, 200, 64 }, { 2046, 3, 64 },
        { 2048, 1, 64 }, { 517, 41, 64 }, { 130, 9, 64 }, { 64, 8, 64 },
        { 0, 130, 32 }, { 77, 33, 32 }, { 62, 3, 16 }, { 100, 70, 16 },
        { 62, 3, 8 }, { 0, 129, 8 }, { 300, 64, 8 }, { 40, 100, 24 },
        { 40, 100, 40 }, { 200, 20, 48 }, { 200, 20, 56 }
    };

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        index_prefill(shape[i][0], shape[i][1], shape[i][2], 0);
        assert_int_equal(gpu_free_all(NULL), 0);
    }
}


static void
test_prefill_large(void **state)
{
    index_prefill(0, 4096, 64, 6);
    assert_int_equal(gpu_free_all(NULL), 0);
    index_prefill(131072 - 300, 300, 64, 1);
    assert_int_equal(gpu_free_all(NULL), 0);
    index_prefill(9000, 1111, 32, 5);

    assert_true(sqrt(index_square_long / index_count_long) <= BOUND_SQUARE);
}


/*
 * n sequences with keys[] each.  Their pages come from one pool: the table of
 * a sequence is that of the pool, rotated.  So only whole pages are read.
 */

static void
index_decode(const uint32_t *keys, uint32_t n, uint32_t heads,
    uint32_t sample)
{
    float          *score, *again, *d_score;
    size_t          ld, ld_pages;
    int32_t        *table, *d_table, *d_keys;
    uint32_t        r, i, most, used;
    index_query_t   q;
    index_cache_t   c, turned;

    most = 0;

    for (r = 0; r < n; r++) {
        most = keys[r] > most ? keys[r] : most;
    }

    /* a single sequence keeps its last partial page */

    index_cache(&c, n == 1 ? most : (most + 63) / 64 * 64);
    index_query(&q, n, heads);

    ld_pages = c.pages + 1;
    ld = c.pages * 64 + 4;

    table = malloc(n * ld_pages * sizeof(int32_t));
    score = malloc(n * ld * sizeof(float));
    again = malloc(n * ld * sizeof(float));
    turned.key = malloc((size_t) c.pages * 64 * DIM * sizeof(float));
    turned.scale = malloc((size_t) c.pages * 64 * sizeof(float));

    assert_non_null(table);
    assert_non_null(score);
    assert_non_null(again);
    assert_non_null(turned.key);
    assert_non_null(turned.scale);

    for (r = 0; r < n; r++) {
        for (i = 0; i < ld_pages; i++) {
            table[r * ld_pages + i] = i < (keys[r] + 63) / 64
                                      ? c.table[(i + r) % c.pages]
                                      : -1;
        }
    }

    d_table = gpu_upload(table, n * ld_pages * sizeof(int32_t));
    d_keys = gpu_upload(keys, n * sizeof(int32_t));
    d_score = gpu_alloc(n * ld * sizeof(float));

    gpu_ok(dsa_cuda_index_score_decode(&gpu_state, d_score, ld, q.d_q, q.d_w,
                                       &c.cache, d_table, ld_pages, d_keys, n,
                                       most, heads, NULL));
    gpu_download(score, d_score, n * ld * sizeof(float));

    /* the bound of the keys changes the launch, not the result */

    gpu_poison(d_score, n * ld * sizeof(float));
    gpu_ok(dsa_cuda_index_score_decode(&gpu_state, d_score, ld, q.d_q, q.d_w,
                                       &c.cache, d_table, ld_pages, d_keys, n,
                                       most + 100000, heads, NULL));
    gpu_download(again, d_score, n * ld * sizeof(float));

    for (r = 0; r < n; r++) {
        used = (keys[r] + 63) / 64 * 64;

        assert_memory_equal(score + r * ld, again + r * ld,
                            keys[r] * sizeof(float));
        index_untouched(score + r * ld + used, ld - used);

        if (keys[r] == 0) {
            continue;
        }

        if (n == 1) {
            index_check(score, &c, &q, 0, keys[0], sample);
            continue;
        }

        for (i = 0; i < used; i++) {
            memcpy(turned.key + (size_t) i * DIM,
                   c.key + (i + r * 64) % c.keys * (size_t) DIM,
                   DIM * sizeof(float));
            turned.scale[i] = c.scale[(i + r * 64) % c.keys];
        }

        index_check(score + r * ld, &turned, &q, r, keys[r], sample);
    }

    free(table);
    free(score);
    free(again);
    free(turned.key);
    free(turned.scale);
    index_query_free(&q);
    index_cache_free(&c);
}


static void
test_decode(void **state)
{
    uint32_t         i;
    static uint32_t  keys[] = { 1, 63, 64, 65, 2047, 2048, 2049, 20001 };

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        index_decode(&keys[i], 1, 64, 2000);
        assert_int_equal(gpu_free_all(NULL), 0);
    }

    for (i = 8; i < 64; i += 8) {
        index_decode(&keys[4], 1, i, 500);
        assert_int_equal(gpu_free_all(NULL), 0);
    }
}


static void
test_decode_long(void **state)
{
    static uint32_t  keys[] = { 131072 };

    index_decode(keys, 1, 64, 2000);
    assert_int_equal(gpu_free_all(NULL), 0);
    index_decode(keys, 1, 32, 2000);
}


static void
test_decode_ragged(void **state)
{
    uint32_t         i, keys[300];
    static uint32_t  few[] = { 0, 2049, 0, 0, 1, 65, 64, 63, 4096, 0, 2047,
                               2048, 0 };

    index_decode(few, sizeof(few) / sizeof(few[0]), 64, 500);
    assert_int_equal(gpu_free_all(NULL), 0);

    for (i = 0; i < 300; i++) {
        keys[i] = i % 7 == 3 ? 0 : 1 + dsa_t_random(i % 5 == 0 ? 5000 : 130);
    }

    index_decode(keys, 300, 64, 100);
    assert_int_equal(gpu_free_all(NULL), 0);
    index_decode(keys, 77, 32, 100);
    assert_int_equal(gpu_free_all(NULL), 0);
    index_decode(keys, 33, 16, 100);
    assert_int_equal(gpu_free_all(NULL), 0);
    index_decode(keys, 32, 8, 100);
    assert_int_equal(gpu_free_all(NULL), 0);

    /* so many pages that blocks that have finished draw some of them */

    for (i = 0; i < 40; i++) {
        keys[i] = i % 3 == 1 ? 1 + dsa_t_random(200)
                             : 20000 + dsa_t_random(12000);
        keys[i] = i == 7 ? 0 : keys[i];
    }

    index_decode(keys, 40, 64, 100);
    assert_int_equal(gpu_free_all(NULL), 0);

    /* more rows than blocks, each one page */

    for (i = 0; i < 300; i++) {
        keys[i] = 1 + i % 64;
    }

    index_decode(keys, 300, 40, 64);
}


/*
 * Groups of size[] rows, the first row with keys[] keys, and rows of their own
 * with no keys where size[] is 0.  Tables of pages are those of index_decode().
 * Every row has one, but those of later rows of a group are not valid.
 */

typedef struct {
    uint32_t           rows;
    uint32_t           heads;
    uint32_t           most;            /* keys */
    size_t             ld;
    size_t             ld_pages;
    int32_t           *keys;
    int32_t           *last;            /* keys of the last row of a group */
    int32_t           *left;
    int32_t           *turn;            /* how far its table is rotated */
    int32_t           *d_keys;
    int32_t           *d_left;
    int32_t           *d_table;
    float             *d_score;
    index_cache_t      c;
    index_query_t      q;
} index_groups_t;


static int32_t *
index_list(size_t n)
{
    int32_t  *p;

    p = calloc(n + 1, sizeof(int32_t));
    assert_non_null(p);

    return p;
}


static void
index_groups_rows(index_groups_t *g, uint32_t (*group)[2], uint32_t n)
{
    uint32_t  i, j, r, rows;

    g->most = 0;
    g->rows = 0;

    for (i = 0; i < n; i++) {
        g->rows += group[i][1] > 0 ? group[i][1] : 1;
    }

    g->keys = index_list(g->rows);
    g->last = index_list(g->rows);
    g->left = index_list(g->rows);
    g->turn = index_list(g->rows);

    for (i = 0, r = 0; i < n; i++) {
        rows = group[i][1];

        if (rows == 0) {
            g->turn[r++] = -1;
            continue;
        }

        for (j = 0; j < rows; j++, r++) {
            g->keys[r] = (int32_t) (group[i][0] + j);
            g->last[r] = (int32_t) (group[i][0] + rows - 1);
            g->left[r] = (int32_t) (rows - j);
            g->turn[r] = (int32_t) i;
        }

        g->most = group[i][0] + rows - 1 > g->most ? group[i][0] + rows - 1
                                                   : g->most;
    }
}


/* whole: later rows of a group have a valid table too */

static void
index_groups_table(index_groups_t *g, int whole)
{
    int32_t   *table;
    uint32_t   r, i;

    table = index_list(g->rows * g->ld_pages);

    for (r = 0; r < g->rows; r++) {
        for (i = 0; i < g->ld_pages; i++) {
            table[r * g->ld_pages + i] =
                i < (uint32_t) (g->last[r] + 63) / 64
                && (whole || r == 0 || g->turn[r] != g->turn[r - 1])
                ? g->c.table[(i + (uint32_t) g->turn[r]) % g->c.pages]
                : -1;
        }
    }

    gpu_ok(cudaMemcpy(g->d_table, table,
                      g->rows * g->ld_pages * sizeof(int32_t),
                      cudaMemcpyDefault));
    free(table);
}


static void
index_groups_open(index_groups_t *g, uint32_t (*group)[2], uint32_t n,
    uint32_t heads)
{
    index_groups_rows(g, group, n);

    g->heads = heads;

    index_cache(&g->c, (g->most + 63) / 64 * 64);
    index_query(&g->q, g->rows, heads);

    g->ld_pages = g->c.pages + 1;
    g->ld = g->c.pages * 64 + 4;

    g->d_keys = gpu_upload(g->keys, g->rows * sizeof(int32_t));
    g->d_left = gpu_upload(g->left, g->rows * sizeof(int32_t));
    g->d_table = gpu_alloc(g->rows * g->ld_pages * sizeof(int32_t));
    g->d_score = gpu_alloc(g->rows * g->ld * sizeof(float));
}


static void
index_groups_close(index_groups_t *g)
{
    free(g->keys);
    free(g->last);
    free(g->left);
    free(g->turn);
    index_query_free(&g->q);
    index_cache_free(&g->c);
}


/* Enqueues the rows first .. first+n-1. */

static void
index_groups_score(index_groups_t *g, uint32_t first, uint32_t n,
    const int32_t *left, uint32_t most, dsa_stream_t stream)
{
    gpu_ok(dsa_cuda_index_score_groups(&gpu_state, g->d_score + first * g->ld,
                                       g->ld,
                                       g->q.d_q
                                       + (size_t) first * g->heads * DIM,
                                       g->q.d_w + first * g->heads,
                                       &g->c.cache,
                                       g->d_table + first * g->ld_pages,
                                       g->ld_pages, g->d_keys + first,
                                       left != NULL ? left + first : NULL, n,
                                       most, g->heads, stream));
}


/*
 * Checks that rows have the bits of score, and that nothing is written behind
 * the last page of a row's group.
 */

static void
index_groups_same(index_groups_t *g, const float *score)
{
    float     *again;
    uint32_t   r, used;

    again = malloc(g->rows * g->ld * sizeof(float));
    assert_non_null(again);

    gpu_download(again, g->d_score, g->rows * g->ld * sizeof(float));
    gpu_poison(g->d_score, g->rows * g->ld * sizeof(float));

    for (r = 0; r < g->rows; r++) {
        used = (uint32_t) (g->last[r] + 63) / 64 * 64;

        assert_memory_equal(again + r * g->ld, score + r * g->ld,
                            (uint32_t) g->keys[r] * sizeof(float));
        index_untouched(again + r * g->ld + used, g->ld - used);
    }

    free(again);
}


/* Checks that no score of rows from first on was written. */

static void
index_groups_unwritten(const index_groups_t *g, uint32_t first)
{
    float   *score;
    size_t   n;

    n = (g->rows - first) * g->ld;
    score = malloc(n * sizeof(float) + 1);
    assert_non_null(score);

    gpu_download(score, g->d_score + first * g->ld, n * sizeof(float));
    index_untouched(score, n);
    free(score);
}


/* Checks a row against the twin and float64. */

static void
index_groups_check(index_groups_t *g, const float *score, uint32_t r,
    uint32_t sample)
{
    size_t         i, from;
    index_cache_t  turned;

    turned.key = malloc((size_t) g->c.keys * DIM * sizeof(float));
    turned.scale = malloc(g->c.keys * sizeof(float));

    assert_non_null(turned.key);
    assert_non_null(turned.scale);

    for (i = 0; i < g->c.keys; i++) {
        from = (i + (size_t) g->turn[r] * 64) % g->c.keys;
        memcpy(turned.key + i * DIM, g->c.key + from * DIM,
               DIM * sizeof(float));
        turned.scale[i] = g->c.scale[from];
    }

    index_check(score + r * g->ld, &turned, &g->q, r, (uint32_t) g->keys[r],
                sample);

    free(turned.key);
    free(turned.scale);
}


/*
 * Computes group [n] of first keys and rows: each row alone, in groups, with
 * another bound, with every row a group of its own, and in two calls that
 * divide the rows at each of some places.  All have the same bits.  About some
 * rows are checked against the twin.
 */

static void
index_groups(uint32_t (*group)[2], uint32_t n, uint32_t heads,
    uint32_t some, uint32_t sample)
{
    float           *score;
    int32_t         *alone;
    uint32_t         i, r, cut;
    index_groups_t   g;

    index_groups_open(&g, group, n, heads);

    score = malloc(g.rows * g.ld * sizeof(float));
    assert_non_null(score);

    index_groups_table(&g, 1);
    index_groups_score(&g, 0, g.rows, NULL, g.most, NULL);
    gpu_download(score, g.d_score, g.rows * g.ld * sizeof(float));
    gpu_poison(g.d_score, g.rows * g.ld * sizeof(float));

    /* zeros: the same as ones */

    alone = index_list(g.rows);
    index_groups_score(&g, 0, g.rows,
                       gpu_upload(alone, g.rows * sizeof(int32_t)), g.most,
                       NULL);
    index_groups_same(&g, score);
    free(alone);

    for (i = 0; i < 3; i++) {
        cut = 1 + dsa_t_random(g.rows);
        index_groups_score(&g, 0, cut, g.d_left, g.most, NULL);
        index_groups_unwritten(&g, cut);
        index_groups_score(&g, cut, g.rows - cut, g.d_left, g.most, NULL);
        index_groups_same(&g, score);
    }

    index_groups_table(&g, 0);

    for (i = 0; i < 2; i++) {
        index_groups_score(&g, 0, g.rows, g.d_left, g.most + i * 100000,
                           NULL);
        index_groups_same(&g, score);
    }

    for (r = 0; r < g.rows; r++) {
        if (g.keys[r] > 0 && dsa_t_random(g.rows) < some) {
            index_groups_check(&g, score, r, sample);
        }
    }

    free(score);
    index_groups_close(&g);
    assert_int_equal(gpu_free_all(NULL), 0);
}


/* Every size, with keys that begin and end at all sides of a page's end. */

static void
test_groups(void **state)
{
    uint32_t         i, size, n, group[64][2];
    static uint32_t  head[] = { 64, 32, 16, 8, 24, 40 };
    static uint32_t  keys[] = { 1, 56, 60, 62, 63, 64, 65, 124, 2046, 3000 };

    for (i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        for (size = 1; size <= DSA_INDEX_ROWS; size++) {
            for (n = 0; n < sizeof(keys) / sizeof(keys[0]); n++) {
                group[n][0] = keys[n];
                group[n][1] = size;
            }

            index_groups(group, n, head[i], 3, 100);
        }
    }
}


/* Sizes that differ, beside rows of their own and padding. */

static void
test_groups_mixed(void **state)
{
    uint32_t         i, j, n, group[200][2];
    static uint32_t  head[] = { 64, 32, 16, 8, 48 };

    for (i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        for (j = 0; j < 2; j++) {
            for (n = 0; n < (j == 0 ? 13 : 200); n++) {
                group[n][0] = 1 + dsa_t_random(n % 5 == 0 ? 5000 : 200);
                group[n][1] = dsa_t_random(DSA_INDEX_ROWS + 1);
            }

            group[4][1] = 3;
            index_groups(group, n, head[i], 20, 100);
        }
    }
}


/* So many pages that blocks that have finished draw some of them. */

static void
test_groups_long(void **state)
{
    uint32_t         i, n, group[24][2];
    static uint32_t  head[] = { 64, 32 };

    for (i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        for (n = 0; n < 24; n++) {
            group[n][0] = n % 3 == 1 ? 1 + dsa_t_random(200)
                                     : 20000 + dsa_t_random(12000);
            group[n][1] = n == 7 ? 0 : 1 + n % DSA_INDEX_ROWS;
        }

        index_groups(group, n, head[i], 6, 100);
    }
}


static void
index_groups_swap(int32_t **a, int32_t **b)
{
    int32_t  *t;

    t = *a;
    *a = *b;
    *b = t;
}


/* A graph is launched with other groups than those it was captured with. */

static void
test_groups_graph(void **state)
{
    float            *score;
    uint32_t          i, r, rows;
    cudaGraph_t       graph;
    dsa_stream_t      stream;
    index_groups_t    g, other;
    cudaGraphExec_t   exec;
    static uint32_t   first[][2] = { { 700, 4 }, { 61, 4 }, { 0, 0 },
                                     { 0, 0 }, { 900, 1 } };
    static uint32_t   second[][2] = { { 880, 1 }, { 60, 8 }, { 0, 0 },
                                      { 300, 1 } };

    rows = 11;

    index_groups_open(&g, first, 5, 64);
    index_groups_rows(&other, second, 4);
    assert_int_equal(g.rows, rows);
    assert_int_equal(other.rows, rows);

    score = malloc(rows * g.ld * sizeof(float));
    assert_non_null(score);

    gpu_ok(cudaStreamCreate(&stream));
    gpu_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    index_groups_score(&g, 0, rows, g.d_left, g.most, stream);
    gpu_ok(cudaStreamEndCapture(stream, &graph));
    gpu_ok(cudaGraphInstantiate(&exec, graph, 0));

    for (i = 0; i < 3; i++) {
        index_groups_table(&g, 1);
        gpu_ok(cudaMemcpy(g.d_keys, g.keys, rows * sizeof(int32_t),
                          cudaMemcpyDefault));
        gpu_ok(cudaMemcpy(g.d_left, g.left, rows * sizeof(int32_t),
                          cudaMemcpyDefault));

        index_groups_score(&g, 0, rows, NULL, g.most, NULL);
        gpu_download(score, g.d_score, rows * g.ld * sizeof(float));
        gpu_poison(g.d_score, rows * g.ld * sizeof(float));

        index_groups_table(&g, 0);
        gpu_ok(cudaGraphLaunch(exec, stream));
        gpu_ok(cudaStreamSynchronize(stream));
        index_groups_same(&g, score);

        for (r = 0; r < rows; r++) {
            if (g.keys[r] > 0) {
                index_groups_check(&g, score, r, 1000);
            }
        }

        /* other rows in the same memory of the GPU */

        index_groups_swap(&g.keys, &other.keys);
        index_groups_swap(&g.last, &other.last);
        index_groups_swap(&g.left, &other.left);
        index_groups_swap(&g.turn, &other.turn);
    }

    gpu_ok(cudaGraphExecDestroy(exec));
    gpu_ok(cudaGraphDestroy(graph));
    gpu_ok(cudaStreamDestroy(stream));
    free(score);
    free(other.keys);
    free(other.last);
    free(other.left);
    free(other.turn);
    index_groups_close(&g);
}


/*
 * A row's scores have the same bits in a prefill, in another chunk of it, and
 * in a decode step.
 */

static void
test_same_bits(void **state)
{
    float           *whole, *parts, *step, *d_score;
    size_t           ld, n;
    int32_t         *table, *keys, *d_table, *d_tables, *d_keys;
    uint32_t         i, r, rows, split, heads;
    index_query_t    q;
    index_cache_t    c;
    static uint32_t  head[] = { 64, 32, 16, 8, 24 };

    rows = 333;
    split = 129;

    index_cache(&c, rows);

    ld = c.pages * 64;
    n = rows * ld;

    whole = malloc(n * sizeof(float));
    parts = malloc(n * sizeof(float));
    step = malloc(n * sizeof(float));
    keys = malloc(rows * sizeof(int32_t));
    table = malloc(rows * c.pages * sizeof(int32_t));

    assert_non_null(whole);
    assert_non_null(parts);
    assert_non_null(step);
    assert_non_null(keys);
    assert_non_null(table);

    for (r = 0; r < rows; r++) {
        keys[r] = (int32_t) r + 1;
        memcpy(table + r * c.pages, c.table, c.pages * sizeof(int32_t));
    }

    d_score = gpu_alloc(n * sizeof(float));
    d_table = gpu_upload(c.table, c.pages * sizeof(int32_t));
    d_tables = gpu_upload(table, rows * c.pages * sizeof(int32_t));
    d_keys = gpu_upload(keys, rows * sizeof(int32_t));

    for (i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        heads = head[i];
        index_query(&q, rows, heads);

        gpu_ok(dsa_cuda_index_score(&gpu_state, d_score, ld, q.d_q, q.d_w,
                                    &c.cache, d_table, 0, rows, heads, NULL));
        gpu_download(whole, d_score, n * sizeof(float));

        gpu_poison(d_score, n * sizeof(float));
        gpu_ok(dsa_cuda_index_score(&gpu_state, d_score, ld, q.d_q, q.d_w,
                                    &c.cache, d_table, 0, split, heads, NULL));
        gpu_ok(dsa_cuda_index_score(&gpu_state, d_score + split * ld, ld,
                                    q.d_q + (size_t) split * heads * DIM,
                                    q.d_w + split * heads, &c.cache, d_table,
                                    split, rows - split, heads, NULL));
        gpu_download(parts, d_score, n * sizeof(float));

        gpu_poison(d_score, n * sizeof(float));
        gpu_ok(dsa_cuda_index_score_decode(&gpu_state, d_score, ld, q.d_q,
                                           q.d_w, &c.cache, d_tables, c.pages,
                                           d_keys, rows, rows, heads, NULL));
        gpu_download(step, d_score, n * sizeof(float));

        for (r = 0; r < rows; r++) {
            assert_memory_equal(whole + r * ld, parts + r * ld,
                                (r + 1) * sizeof(float));
            assert_memory_equal(whole + r * ld, step + r * ld,
                                (r + 1) * sizeof(float));
        }

        index_query_free(&q);
    }

    free(whole);
    free(parts);
    free(step);
    free(keys);
    free(table);
    index_cache_free(&c);
}


static void
test_arguments(void **state)
{
    float           *score;
    int32_t         *table, *keys;
    uint32_t         i;
    index_query_t    q;
    index_cache_t    c;
    static uint32_t  head[] = { 0, 12, 72 };

    index_cache(&c, 64);
    index_query(&q, 1, 72);

    score = gpu_alloc(64 * sizeof(float));
    table = gpu_upload(c.table, sizeof(int32_t));
    keys = gpu_alloc(sizeof(int32_t));

    for (i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        assert_int_equal(dsa_cuda_index_score(&gpu_state, score, 64, q.d_q,
                                              q.d_w, &c.cache, table, 0, 1,
                                              head[i], NULL),
                         cudaErrorInvalidValue);
        assert_int_equal(dsa_cuda_index_score_decode(&gpu_state, score, 64,
                                                     q.d_q, q.d_w, &c.cache,
                                                     table, 1, keys, 1, 64,
                                                     head[i], NULL),
                         cudaErrorInvalidValue);
        assert_int_equal(dsa_cuda_index_score_groups(&gpu_state, score, 64,
                                                     q.d_q, q.d_w, &c.cache,
                                                     table, 1, keys, keys, 1,
                                                     64, head[i], NULL),
                         cudaErrorInvalidValue);
    }

    gpu_ok(dsa_cuda_index_score(&gpu_state, score, 64, q.d_q, q.d_w, &c.cache,
                                table, 0, 0, 64, NULL));
    gpu_ok(dsa_cuda_index_score_decode(&gpu_state, score, 64, q.d_q, q.d_w,
                                       &c.cache, table, 1, keys, 0, 64, 64,
                                       NULL));
    gpu_ok(dsa_cuda_index_score_groups(&gpu_state, score, 64, q.d_q, q.d_w,
                                       &c.cache, table, 1, keys, keys, 0, 64,
                                       64, NULL));
    gpu_sync();

    index_query_free(&q);
    index_cache_free(&c);
}


static int
index_tell(void **state)
{
    print_message("error against float64: long rows at most %.1e of their"
                  " greatest |score|, %.1e in the mean square; others %.1e of"
                  " their greatest unsigned sum\n", index_worst_long,
                  sqrt(index_square_long / index_count_long), index_worst);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_prefill, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_prefill_large, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_decode, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_decode_long, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_decode_ragged, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_groups, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_groups_mixed, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_groups_long, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_groups_graph, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_same_bits, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_arguments, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, index_tell);
}
