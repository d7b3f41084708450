
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/cache.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/*
 * The output is rounded to bf16, by 2^-9 of a value at most.  So are the
 * weights of BF16 latents, which adds up to as much where few keys have all
 * the weight; half as much is left for values that cancel.  The twin rounds
 * other numbers, so that both roundings count against it.
 */
#define DENSE_FLOAT64   (2.5 * 0x1p-9)
#define DENSE_TWIN      (3 * 0x1p-9)

#define DENSE_PAGES     384
#define DENSE_LD        320             /* pages of a sequence, at most */
#define DENSE_KEY       (DSA_CUDA_LATENT + DSA_CUDA_ROPE)
#define DENSE_GAP       384             /* between pages: other layers */
#define DENSE_SAMPLES   4               /* heads of a row that are checked */
#define DENSE_SEQS      45
#define DENSE_LENGTHS   4


/* The pages of both formats. */

typedef struct {
    dsa_cache_t         layout[2];
    uint8_t            *image[2];
    double              error;          /* the largest */
    double              twin;
} dense_t;


/* rows rows of each sequence, the last one with keys keys. */

typedef struct {
    uint32_t            bf16;
    uint32_t            heads;
    uint32_t            hidden;
    float               sharp;          /* of the queries */
    uint32_t            seqs;
    uint32_t            rows[DENSE_SEQS];
    uint32_t            keys[DENSE_SEQS];
} dense_case_t;


/* The rows of a case. */

typedef struct {
    uint32_t            n;
    uint32_t            max_keys;
    int32_t            *keys;
    int32_t            *left;
    int32_t            *pages;          /* [n, DENSE_LD] */
    float              *q;
    dsa_cuda_cache_t    cache;
    void               *d_q;
    void               *d_keys;
    void               *d_left;
    void               *d_pages;
} dense_rows_t;


static int
dense_setup(void **state)
{
    float         *c;
    size_t         f, size;
    dense_t       *t;
    uint8_t        indexed;
    uint32_t       i, pages[DENSE_PAGES];

    t = calloc(1, sizeof(dense_t));
    c = malloc(64 * DENSE_KEY * sizeof(float));
    assert_true(t != NULL && c != NULL);

    indexed = 0;

    for (i = 0; i < DENSE_PAGES; i++) {
        pages[i] = i;
    }

    for (f = 0; f < 2; f++) {
        dsa_cache_layout(&t->layout[f], f ? DSA_CACHE_BF16 : DSA_CACHE_FP8, 1,
                         &indexed, DSA_CUDA_LATENT, DSA_CUDA_ROPE, 0);
        assert_int_equal(t->layout[f].keys, 64 * dsa_cuda_record(f));
        t->layout[f].page += DENSE_GAP;

        size = DENSE_PAGES * t->layout[f].page;
        t->image[f] = malloc(size);
        assert_non_null(t->image[f]);
        memset(t->image[f], 0xff, size);
    }

    for (i = 0; i < DENSE_PAGES; i++) {
        dsa_t_fill(c, 64 * DENSE_KEY, 1.7f);

        for (f = 0; f < 2; f++) {
            dsa_cache_write(&t->layout[f], t->image[f], 0, pages, i * 64, 64,
                            c, DENSE_KEY, NULL);
        }
    }

    free(c);
    *state = t;

    return 0;
}


static int
dense_teardown(void **state)
{
    dense_t  *t = *state;

    print_message("largest error: %.2e of float64, %.2e of the twin\n",
                  t->error, t->twin);
    free(t->image[0]);
    free(t->image[1]);
    free(t);

    return 0;
}


static void
dense_make(dense_t *t, dense_rows_t *r, const dense_case_t *c)
{
    size_t    n;
    uint32_t  i, j, k, row;

    memset(r, 0, sizeof(dense_rows_t));

    for (i = 0; i < c->seqs; i++) {
        r->n += c->rows[i];
        r->max_keys = c->keys[i] > r->max_keys ? c->keys[i] : r->max_keys;
    }

    n = (size_t) r->n * c->heads * DENSE_KEY;
    r->keys = malloc(r->n * sizeof(int32_t));
    r->left = malloc(r->n * sizeof(int32_t));
    r->pages = malloc(r->n * DENSE_LD * sizeof(int32_t));
    r->q = malloc(n * sizeof(float));
    assert_true(r->keys && r->left && r->pages && r->q);

    dsa_t_fill(r->q, n, 0.2f * c->sharp);
    dsa_bf16_round_rows(r->q, n);

    for (i = 0, row = 0; i < c->seqs; i++) {
        for (j = 0; j < c->rows[i]; j++, row++) {
            r->left[row] = (int32_t) (c->rows[i] - j);
            r->keys[row] = (int32_t) c->keys[i] + 1 - r->left[row];

            for (k = 0; k < DENSE_LD; k++) {
                r->pages[row * DENSE_LD + k] = (int32_t) ((i * 37 + k * 211)
                                                          % DENSE_PAGES);
            }
        }
    }

    r->cache.base = gpu_upload(t->image[c->bf16],
                               DENSE_PAGES * t->layout[c->bf16].page);
    r->cache.page = t->layout[c->bf16].page;
    r->cache.keys = t->layout[c->bf16].keys;
    r->cache.pages = DENSE_PAGES;
    r->cache.bf16 = c->bf16;
    r->d_q = gpu_upload_bf16(r->q, n);
    r->d_keys = gpu_upload(r->keys, r->n * sizeof(int32_t));
    r->d_left = gpu_upload(r->left, r->n * sizeof(int32_t));
    r->d_pages = gpu_upload(r->pages, r->n * DENSE_LD * sizeof(int32_t));
}


static void
dense_free(dense_rows_t *r)
{
    free(r->keys);
    free(r->left);
    free(r->pages);
    free(r->q);
    gpu_ok(gpu_free_all(NULL));
}


/* Computes n rows from row on; the caller frees the result. */

static uint16_t *
dense_run(const dense_rows_t *r, const dense_case_t *c, uint32_t row,
    uint32_t n, int grouped, size_t ld_pages, uint32_t max_keys)
{
    void      *out, *work;
    size_t     size;
    uint16_t  *got;

    size = (size_t) n * c->heads * DSA_CUDA_LATENT * sizeof(uint16_t);
    out = gpu_alloc(size);
    work = gpu_alloc(dsa_cuda_attention_dense_work(n, c->heads, max_keys));
    got = malloc(size);
    assert_non_null(got);

    gpu_ok(dsa_cuda_attention_dense(&gpu_state, out,
                                    (dsa_bf16_t *) r->d_q
                                    + (size_t) row * c->heads * DENSE_KEY,
                                    &r->cache,
                                    (int32_t *) r->d_pages + row * DENSE_LD,
                                    ld_pages, (int32_t *) r->d_keys + row,
                                    grouped ? (int32_t *) r->d_left + row
                                            : NULL,
                                    n, c->heads, c->hidden, max_keys, 0.0722f,
                                    work, NULL));
    gpu_download(got, out, size);

    return got;
}


/* u = sum of softmax(scale * q . k) c in float64. */

static void
dense_exact(double *u, const float *q, const float *c, const float *k_rope,
    size_t n)
{
    double   *p, sum, max;
    size_t    i, j;

    p = malloc(n * sizeof(double));
    assert_non_null(p);

    max = -INFINITY;

    for (i = 0; i < n; i++) {
        sum = 0;

        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            sum += (double) q[j] * c[i * DSA_CUDA_LATENT + j];
        }

        for (j = 0; j < DSA_CUDA_ROPE; j++) {
            sum += (double) q[DSA_CUDA_LATENT + j]
                   * k_rope[i * DSA_CUDA_ROPE + j];
        }

        p[i] = sum * 0.0722f;
        max = p[i] > max ? p[i] : max;
    }

    memset(u, 0, DSA_CUDA_LATENT * sizeof(double));

    for (i = 0, sum = 0; i < n; i++) {
        p[i] = exp(p[i] - max);
        sum += p[i];
    }

    for (i = 0; i < n; i++) {
        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            u[j] += p[i] / sum * c[i * DSA_CUDA_LATENT + j];
        }
    }

    free(p);
}


static void
dense_check_row(dense_t *t, const dense_rows_t *r, const dense_case_t *c,
    uint32_t row, const uint16_t *out)
{
    float            *latents, *k_rope, *scratch, got[DSA_CUDA_LATENT],
                      twin[DSA_CUDA_LATENT];
    double            u[DSA_CUDA_LATENT], error;
    size_t            i, j, h, n;
    const float      *q;
    dsa_attention_t   a;

    n = (size_t) r->keys[row] - c->hidden;
    latents = malloc(n * DSA_CUDA_LATENT * sizeof(float));
    k_rope = malloc(n * DSA_CUDA_ROPE * sizeof(float));
    scratch = malloc(n * sizeof(float));
    assert_true(latents && k_rope && scratch);

    dsa_cache_latents(latents, k_rope, &t->layout[c->bf16],
                      t->image[c->bf16], 0,
                      (const uint32_t *) r->pages + row * DENSE_LD, NULL,
                      c->hidden, n);

    a = (dsa_attention_t) { 1, 128, DSA_CUDA_ROPE, 128, DSA_CUDA_LATENT,
                            0.0722f };

    for (i = 0; i < DENSE_SAMPLES; i++) {
        h = i == 0 ? 0 : i == 1 ? c->heads - 1 : dsa_t_random(c->heads);
        q = r->q + ((size_t) row * c->heads + h) * DENSE_KEY;

        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            got[j] = dsa_bf16_decode(out[h * DSA_CUDA_LATENT + j]);
        }

        dense_exact(u, q, latents, k_rope, n);
        error = dsa_t_error(got, u, DSA_CUDA_LATENT);
        t->error = error > t->error ? error : t->error;

        if (!(error <= DENSE_FLOAT64)) {
            fail_msg("bf16 %u, %u heads, row %u, %zu keys, head %zu: error %g",
                     c->bf16, c->heads, row, n, h, error);
        }

        dsa_attention_mqa(twin, q, q + DSA_CUDA_LATENT, DENSE_KEY, latents,
                          k_rope, n, &a, 1, scratch);

        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            u[j] = twin[j];
        }

        error = dsa_t_error(got, u, DSA_CUDA_LATENT);
        t->twin = error > t->twin ? error : t->twin;

        if (!(error <= DENSE_TWIN)) {
            fail_msg("bf16 %u, %u heads, row %u, %zu keys, head %zu: %g from "
                     "the twin", c->bf16, c->heads, row, n, h, error);
        }
    }

    free(latents);
    free(k_rope);
    free(scratch);
}


/* The rows of a case, together; each alone must have the same bits. */

static void
dense_check(dense_t *t, const dense_case_t *c)
{
    size_t         row_size, checked;
    uint16_t      *out, *alone;
    uint32_t       i;
    dense_rows_t   r;

    dense_make(t, &r, c);
    out = dense_run(&r, c, 0, r.n, 1, DENSE_LD, r.max_keys);
    row_size = c->heads * DSA_CUDA_LATENT * sizeof(uint16_t);
    checked = 0;

    for (i = 0; i < r.n; i++) {

        if (r.keys[i] <= (int32_t) c->hidden) {
            continue;
        }

        if (i == 0 || r.left[i] == 1 || r.left[i - 1] == 1) {
            dense_check_row(t, &r, c, i,
                            out + i * c->heads * DSA_CUDA_LATENT);
            checked++;
        }

        alone = dense_run(&r, c, i, 1, 0, DENSE_LD,
                          i % 2 ? (uint32_t) r.keys[i] : DENSE_LD * 64);

        if (memcmp(alone, out + i * c->heads * DSA_CUDA_LATENT, row_size)
            != 0)
        {
            fail_msg("bf16 %u, %u heads: row %u with %d keys has other bits "
                     "alone", c->bf16, c->heads, i, r.keys[i]);
        }

        free(alone);
    }

    assert_true(checked > 0);

    /* the rows of one sequence, without left */

    if (c->seqs == 1) {
        alone = dense_run(&r, c, 0, r.n, 0, 0, r.max_keys);
        assert_memory_equal(alone, out, r.n * row_size);
        free(alone);
    }

    free(out);
    dense_free(&r);
}


static const uint32_t  dense_heads[] = { 1, 16, 20, 32, 64, 65, 128 };

#define DENSE_HEADS  (sizeof(dense_heads) / sizeof(dense_heads[0]))


/* Lengths around the borders of pages, parts and sizes of parts. */

static void
dense_lengths(dense_t *t, uint32_t bf16)
{
    size_t        h, i;
    dense_case_t  c;

    static const uint32_t  keys[][DENSE_LENGTHS] = {
        { 1, 2, 63, 64 },
        { 65, 255, 256, 257 },
        { 4095, 4096, 4097, 512 },
        { 16384, 16385, 1000, 17408 }
    };

    for (h = 0; h < DENSE_HEADS; h++) {
        for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            memset(&c, 0, sizeof(c));

            c.bf16 = bf16;
            c.heads = dense_heads[h];
            c.sharp = 1;
            c.seqs = DENSE_LENGTHS;
            memcpy(c.keys, keys[i], sizeof(keys[i]));
            c.rows[0] = c.rows[1] = c.rows[2] = c.rows[3] = 1;

            dense_check(t, &c);
        }
    }
}


static void
test_lengths_bf16(void **state)
{
    dense_lengths(*state, 1);
}


static void
test_lengths_fp8(void **state)
{
    dense_lengths(*state, 0);
}


/* Several rows of a sequence, also over the borders of a page and a part. */

static void
test_rows(void **state)
{
    size_t        h;
    uint32_t      bf16;
    dense_case_t  c;

    for (h = 0; h < DENSE_HEADS; h++) {
        for (bf16 = 0; bf16 < 2; bf16++) {
            c = (dense_case_t) { bf16, dense_heads[h], 0, 1, 4,
                                 { 6, 1, 3, 2 }, { 259, 100, 4098, 700 } };
            dense_check(*state, &c);

            c = (dense_case_t) { bf16, dense_heads[h], 0, 1, 1, { 70 },
                                 { 4130 } };
            dense_check(*state, &c);
        }
    }
}


/* Many sequences of different lengths, so that blocks compute several parts. */

static void
test_many(void **state)
{
    uint32_t      i, bf16;
    dense_case_t  c;

    for (bf16 = 0; bf16 < 2; bf16++) {
        memset(&c, 0, sizeof(c));

        c.bf16 = bf16;
        c.heads = bf16 ? 128 : 20;
        c.sharp = 1;
        c.seqs = DENSE_SEQS;

        for (i = 0; i < DENSE_SEQS; i++) {
            c.rows[i] = 1 + i % 3;
            c.keys[i] = 3 + i * i * 2;
        }

        c.keys[7] = 6000;
        dense_check(*state, &c);
    }
}


/* The draft layer's rows, which do not attend to position 0. */

static void
test_hidden(void **state)
{
    size_t        h;
    uint32_t      bf16;
    dense_case_t  c;

    for (h = 0; h < DENSE_HEADS; h++) {
        for (bf16 = 0; bf16 < 2; bf16++) {
            c = (dense_case_t) { bf16, dense_heads[h], 1, 1, 3, { 4, 2, 1 },
                                 { 6, 300, 2 } };
            dense_check(*state, &c);
        }
    }
}


/* Few keys have all the weight. */

static void
test_sharp(void **state)
{
    size_t        h;
    uint32_t      bf16;
    dense_case_t  c;

    for (h = 0; h < DENSE_HEADS; h++) {
        for (bf16 = 0; bf16 < 2; bf16++) {
            c = (dense_case_t) { bf16, dense_heads[h], 0, 16, 2, { 3, 2 },
                                 { 2100, 5000 } };
            dense_check(*state, &c);
        }
    }
}


/* A row without keys, as in padding, gets zeros. */

static void
test_padding(void **state)
{
    size_t         i;
    int32_t        zero;
    uint16_t      *out;
    dense_rows_t   r;

    static const dense_case_t  c = { 1, 20, 0, 1, 1, { 1 }, { 100 } };

    dense_make(*state, &r, &c);
    zero = 0;
    r.d_keys = gpu_upload(&zero, sizeof(zero));
    out = dense_run(&r, &c, 0, 1, 1, DENSE_LD, 100);

    for (i = 0; i < c.heads * DSA_CUDA_LATENT; i++) {
        assert_int_equal(out[i], 0);
    }

    free(out);
    dense_free(&r);
}


static void
test_arguments(void **state)
{
    void              *p;
    dsa_cuda_cache_t   cache;

    p = gpu_alloc(16);
    memset(&cache, 0, sizeof(cache));
    cache.pages = 1;

    gpu_ok(dsa_cuda_attention_dense(&gpu_state, p, p, &cache, p, 1, p, NULL, 0,
                                    16, 0, 1, 1, p, NULL));
    assert_true(dsa_cuda_attention_dense(&gpu_state, p, p, &cache, p, 1, p,
                                         NULL, 1, 129, 0, 1, 1, p, NULL) != 0);
    assert_true(dsa_cuda_attention_dense(&gpu_state, p, p, &cache, p, 1, p,
                                         NULL, 1, 0, 0, 1, 1, p, NULL) != 0);
    assert_true(dsa_cuda_attention_dense(&gpu_state, p, p, &cache, p, 1, p,
                                         NULL, 1, 16, 2, 1, 1, p, NULL) != 0);
    assert_true(dsa_cuda_attention_dense(&gpu_state, p, p, &cache, p, 1, p,
                                         NULL, 1, 16, 0, 1, 0, p, NULL) != 0);
}


/*
 * MHA prefill in parts of the keys has the bits of that in one part, which
 * test_gpu_attention_heads compares with float64.
 */

typedef struct {
    const dsa_cuda_heads_shape_t  *shape;
    uint32_t                       heads;
    uint32_t                       start;
    uint32_t                       rows;
    uint32_t                       part;
    void                          *q;
    void                          *kv;
    void                          *latents;
} dense_parts_t;


static void *
dense_random(size_t n, float scale)
{
    void   *p;
    float  *x;

    x = malloc(n * sizeof(float));
    assert_non_null(x);
    dsa_t_fill(x, n, scale);
    p = gpu_upload_bf16(x, n);
    free(x);

    return p;
}


/* Computes n rows from row on into out. */

static void
dense_parts_run(const dense_parts_t *p, uint32_t row, uint32_t n, void *out,
    float *sum, float *norm)
{
    size_t    q, kv, v;
    uint32_t  first, end, keys;

    v = (size_t) p->heads * p->shape->v;
    q = (size_t) p->heads * (p->shape->nope + DSA_CUDA_ROPE);
    kv = (size_t) p->heads * (p->shape->nope + p->shape->v);
    end = p->start + row + n;

    for (first = 0; first < end; first += keys) {
        keys = end - first < p->part ? end - first : p->part;

        gpu_ok(dsa_cuda_attention_heads_part(&gpu_state, p->shape,
                                             (dsa_bf16_t *) out + row * v,
                                             sum + row * v,
                                             norm + row * p->heads
                                             * DSA_CUDA_HEADS_NORM,
                                             (dsa_bf16_t *) p->q + row * q,
                                             (dsa_bf16_t *) p->kv + first * kv,
                                             (dsa_bf16_t *) p->latents
                                             + first * DENSE_KEY, first, keys,
                                             p->start + row, n, p->heads,
                                             0.0722f, NULL));
    }
}


static void
dense_parts(const dense_parts_t *from, uint32_t cut)
{
    void           *out, *sum, *norm;
    float          *whole, *got;
    size_t          n, v;
    uint32_t        keys;
    dense_parts_t   p;

    p = *from;
    keys = p.start + p.rows;
    v = p.shape->v;
    n = p.rows * p.heads * v;

    p.q = dense_random((size_t) p.rows * p.heads
                       * (p.shape->nope + DSA_CUDA_ROPE), 1.7f);
    p.kv = dense_random((size_t) keys * p.heads * (p.shape->nope + v), 1.7f);
    p.latents = dense_random((size_t) keys * DENSE_KEY, 1.7f);
    out = gpu_alloc(n * sizeof(uint16_t));
    sum = gpu_alloc(n * sizeof(float));
    norm = gpu_alloc((size_t) p.rows * p.heads * DSA_CUDA_HEADS_NORM
                     * sizeof(float));
    whole = malloc(n * sizeof(float));
    got = malloc(n * sizeof(float));
    assert_true(whole && got);

    gpu_ok(dsa_cuda_attention_heads(&gpu_state, p.shape, out, p.q, p.kv,
                                    p.latents, NULL, 0, p.start, p.rows,
                                    p.heads, 0.0722f, NULL));
    gpu_download_bf16(whole, out, n);

    gpu_poison(out, n * sizeof(uint16_t));
    dense_parts_run(&p, 0, p.rows, out, sum, norm);
    gpu_download_bf16(got, out, n);
    assert_memory_equal(got, whole, n * sizeof(float));

    gpu_poison(out, n * sizeof(uint16_t));
    gpu_poison(sum, n * sizeof(float));
    dense_parts_run(&p, 0, cut, out, sum, norm);
    dense_parts_run(&p, cut, p.rows - cut, out, sum, norm);
    gpu_download_bf16(got, out, n);
    assert_memory_equal(got, whole, n * sizeof(float));

    free(whole);
    free(got);
    gpu_ok(gpu_free_all(NULL));
}


static void
test_parts(void **state)
{
    size_t         i;
    dense_parts_t  p;

    for (i = 0; dsa_cuda_heads_shape(i) != NULL; i++) {
        memset(&p, 0, sizeof(p));
        p.shape = dsa_cuda_heads_shape(i);

        p.heads = 5;
        p.start = 300;
        p.rows = 333;
        p.part = 256;
        dense_parts(&p, 100);

        p.heads = 20;
        p.start = 0;
        p.rows = 1300;
        p.part = 512;
        dense_parts(&p, 777);

        p.start = 2047;
        p.rows = 1;
        p.part = 128;
        dense_parts(&p, 0);

        /*
         * All rows attend to all keys of the first two parts, and items are
         * more than multiprocessors, so that some are halved.
         */

        p.heads = gpu_state.processors / 7;
        p.start = 2100;
        p.rows = 1024;
        p.part = 1024;
        dense_parts(&p, 500);
    }
}


#define GPU_TEST(f)  cmocka_unit_test_setup_teardown(f, dense_each,           \
                                                     gpu_free_all)


/* gpu_setup() without its state, which would be the test's. */

static int
dense_each(void **state)
{
    return gpu_setup(NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        GPU_TEST(test_rows),
        GPU_TEST(test_parts),
        GPU_TEST(test_many),
        GPU_TEST(test_hidden),
        GPU_TEST(test_sharp),
        GPU_TEST(test_padding),
        GPU_TEST(test_arguments),
        GPU_TEST(test_lengths_bf16),
        GPU_TEST(test_lengths_fp8)
    };

    return cmocka_run_group_tests(tests, dense_setup, dense_teardown);
}
