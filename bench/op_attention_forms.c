
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
#include "kernels/attention/cache.h"
#include "kernels/core/fp8.h"
#include "kernels/gemm/gemm.h"
#include "kernels/index/indexer.h"
#include "kernels/row/rope.h"
#include "kernels/sample/random.h"


/*
 * The two forms of a layer's attention for a whole prompt, in chunks of so
 * many tokens a step: MHA prefill and absorbed MQA, with everything that only
 * one of them needs.  The products of queries and indexer operands ahead of
 * them, and the product after them, are the same and left out.
 *
 *     selection   index scores and top-k, for MHA also the mask; MHA needs
 *                 none for up to 2,048 tokens, where every key is selected
 *     products    latents from the cache; MHA: their product with kv_b in FP8;
 *                 absorbed: queries times W_UK, sums times W_UV; rotation
 *     attention   the attention kernel
 */

#define BENCH_FORMS_TOKENS  16384
#define BENCH_FORMS_TOPK    2048
#define BENCH_FORMS_INDEX   64          /* heads of the indexer */
#define BENCH_FORMS_ABSORB  1024        /* tokens that are absorbed at a time */
#define BENCH_FORMS_SCORES  (512U << 20)
#define BENCH_FORMS_PAGE    (64 * (DSA_CUDA_RECORD + 132))
#define BENCH_FORMS_KEY     (DSA_CUDA_LATENT + DSA_CUDA_ROPE)
#define BENCH_FORMS_NOPE    128
#define BENCH_FORMS_V       128
#define BENCH_FORMS_QUERY   (BENCH_FORMS_NOPE + DSA_CUDA_ROPE)
#define BENCH_FORMS_KV      (BENCH_FORMS_NOPE + BENCH_FORMS_V)


typedef struct {
    dsa_cuda_gemm_t    *gemm;
    const dsa_cuda_heads_shape_t  *shape;
    dsa_cuda_cache_t    cache;
    int32_t            *pages;
    int32_t            *position;
    int32_t            *keys;           /* position + 1 */
    float              *table;          /* of the rotation */
    dsa_e4m3_t         *index_q;
    float              *index_w;
    float              *score;
    int32_t            *pick;
    int32_t            *n_pick;
    uint32_t           *mask;
    dsa_bf16_t         *latents;
    dsa_fp8_rows_t      latents8;
    dsa_fp8_weight_t    kv_b;
    dsa_bf16_t         *kv_b_bf16;
    dsa_bf16_t         *q;
    dsa_bf16_t         *kv;
    dsa_bf16_t         *q_latent;
    dsa_bf16_t         *u;
    dsa_bf16_t         *out;
    uint32_t            tokens;
    uint32_t            chunk;
    uint32_t            heads;
    int                 absorbed;
    unsigned            parts;          /* which are run, bits */
} bench_forms_t;


enum {
    BENCH_FORMS_SELECT = 1,
    BENCH_FORMS_PRODUCTS = 2,
    BENCH_FORMS_ATTEND = 4,
    BENCH_FORMS_ALL = 7
};


/* These compute the tokens start .. start+n-1 of the prompt. */

static int
bench_forms_select(dsa_bench_t *b, bench_forms_t *f, uint32_t start,
    uint32_t n)
{
    int       rc;
    size_t    ld, row;
    uint32_t  i, part, most, end;

    end = start + n;
    ld = end;
    most = (uint32_t) (BENCH_FORMS_SCORES / (ld * sizeof(float)));

    if (!f->absorbed && end <= BENCH_FORMS_TOPK) {
        return 0;
    }

    for (i = 0, rc = 0; rc == 0 && i < n; i += part) {
        part = n - i < most ? n - i : most;
        row = start + i;

        if (row + part > BENCH_FORMS_TOPK) {
            rc = dsa_cuda_index_score(&b->state, f->score, ld,
                                      f->index_q + row * BENCH_FORMS_INDEX
                                      * DSA_CUDA_INDEX,
                                      f->index_w + row * BENCH_FORMS_INDEX,
                                      &f->cache, f->pages, start + i, part,
                                      BENCH_FORMS_INDEX, b->stream);
        }

        rc = rc != 0 ? rc
                     : dsa_cuda_topk(f->pick + row * BENCH_FORMS_TOPK, NULL,
                                     f->n_pick + row, f->score, ld,
                                     f->keys + row, f->pages, 0, NULL, part,
                                     BENCH_FORMS_TOPK, end, b->stream);
    }

    if (rc == 0 && !f->absorbed) {
        rc = dsa_cuda_attention_mask(f->mask, end / 32,
                                     f->pick + (size_t) start
                                     * BENCH_FORMS_TOPK, BENCH_FORMS_TOPK,
                                     f->n_pick + start, n, b->stream);
    }

    return rc;
}


static int
bench_forms_mha(dsa_bench_t *b, bench_forms_t *f, uint32_t start, uint32_t n)
{
    int          rc;
    uint32_t     end;
    dsa_bf16_t  *q;

    rc = 0;
    end = start + n;
    q = f->q + (size_t) start * f->heads * BENCH_FORMS_QUERY;
    f->latents8.ld = end;

    if (f->parts & BENCH_FORMS_PRODUCTS) {
        rc = dsa_cuda_cache_latents(f->latents, &f->cache, f->pages, end,
                                    b->stream);
        rc = rc != 0 ? rc
                     : dsa_cuda_fp8_quantize(&f->latents8, f->latents,
                                             BENCH_FORMS_KEY, end,
                                             DSA_CUDA_LATENT, 1, b->stream);
        rc = rc != 0 ? rc
                     : dsa_cuda_gemm_fp8(f->gemm, f->kv, f->kv_b.rows,
                                         &f->latents8, &f->kv_b, end,
                                         b->stream);
        rc = rc != 0 ? rc
                     : dsa_cuda_rope_query(q, BENCH_FORMS_QUERY,
                                           BENCH_FORMS_NOPE, q,
                                           BENCH_FORMS_QUERY, f->table,
                                           f->position + start, n, f->heads,
                                           b->stream);
    }

    if (rc == 0 && (f->parts & BENCH_FORMS_ATTEND)) {
        rc = dsa_cuda_attention_heads(&b->state, f->shape,
                                      f->out + (size_t) start * f->heads
                                      * BENCH_FORMS_V, q, f->kv, f->latents,
                                      end > BENCH_FORMS_TOPK ? f->mask : NULL,
                                      end / 32, start, n, f->heads,
                                      1 / sqrtf(BENCH_FORMS_QUERY),
                                      b->stream);
    }

    return rc;
}


/* For n tokens there is room in q_latent and u. */

static int
bench_forms_absorbed(dsa_bench_t *b, bench_forms_t *f, uint32_t keys,
    uint32_t start, uint32_t n)
{
    int          rc;
    dsa_bf16_t  *q;

    rc = 0;
    q = f->q + (size_t) start * f->heads * BENCH_FORMS_QUERY;

    if (f->parts & BENCH_FORMS_PRODUCTS) {
        rc = dsa_cuda_gemm_heads(f->gemm, f->q_latent,
                                 (size_t) f->heads * BENCH_FORMS_KEY,
                                 BENCH_FORMS_KEY, q,
                                 (size_t) f->heads * BENCH_FORMS_QUERY,
                                 BENCH_FORMS_QUERY, f->kv_b_bf16,
                                 DSA_CUDA_LATENT,
                                 BENCH_FORMS_KV * DSA_CUDA_LATENT, 1,
                                 f->heads, n, DSA_CUDA_LATENT,
                                 BENCH_FORMS_NOPE, b->stream);
        rc = rc != 0 ? rc
                     : dsa_cuda_rope_query(f->q_latent, BENCH_FORMS_KEY,
                                           DSA_CUDA_LATENT, q,
                                           BENCH_FORMS_QUERY, f->table,
                                           f->position + start, n, f->heads,
                                           b->stream);
    }

    if (rc == 0 && (f->parts & BENCH_FORMS_ATTEND)) {
        rc = dsa_cuda_attention_prefill(&b->state, f->u, f->q_latent,
                                        f->latents, keys,
                                        f->pick + (size_t) start
                                        * BENCH_FORMS_TOPK, BENCH_FORMS_TOPK,
                                        f->n_pick + start, n, f->heads,
                                        1 / sqrtf(BENCH_FORMS_QUERY),
                                        b->stream);
    }

    if (rc == 0 && (f->parts & BENCH_FORMS_PRODUCTS)) {
        rc = dsa_cuda_gemm_heads(f->gemm,
                                 f->out + (size_t) start * f->heads
                                 * BENCH_FORMS_V,
                                 (size_t) f->heads * BENCH_FORMS_V,
                                 BENCH_FORMS_V, f->u,
                                 (size_t) f->heads * DSA_CUDA_LATENT,
                                 DSA_CUDA_LATENT,
                                 f->kv_b_bf16 + BENCH_FORMS_NOPE
                                 * DSA_CUDA_LATENT, DSA_CUDA_LATENT,
                                 BENCH_FORMS_KV * DSA_CUDA_LATENT, 0,
                                 f->heads, n, BENCH_FORMS_V, DSA_CUDA_LATENT,
                                 b->stream);
    }

    return rc;
}


static int
bench_forms_chunk(dsa_bench_t *b, bench_forms_t *f, uint32_t start, uint32_t n)
{
    int       rc;
    uint32_t  i, part;

    rc = 0;

    if (f->parts & BENCH_FORMS_SELECT) {
        rc = bench_forms_select(b, f, start, n);
    }

    if (rc != 0 || !f->absorbed) {
        return rc != 0 ? rc : bench_forms_mha(b, f, start, n);
    }

    if (f->parts & BENCH_FORMS_PRODUCTS) {
        rc = dsa_cuda_cache_latents(f->latents, &f->cache, f->pages, start + n,
                                    b->stream);
    }

    for (i = 0; rc == 0 && i < n; i += part) {
        part = n - i < BENCH_FORMS_ABSORB ? n - i : BENCH_FORMS_ABSORB;
        rc = bench_forms_absorbed(b, f, start + n, start + i, part);
    }

    return rc;
}


static int
bench_forms_call(dsa_bench_t *b, void *ctx, int set)
{
    int             rc;
    uint32_t        i, n;
    bench_forms_t  *f;

    f = ctx;

    for (i = 0, rc = 0; rc == 0 && i < f->tokens; i += n) {
        n = f->tokens - i < f->chunk ? f->tokens - i : f->chunk;
        rc = bench_forms_chunk(b, f, i, n);
    }

    return rc;
}


static void
bench_forms_row(dsa_bench_t *b, bench_forms_t *f, uint32_t tokens,
    uint32_t chunk, uint32_t heads)
{
    int       i;
    double    us;
    unsigned  parts;

    f->tokens = tokens;
    f->chunk = chunk;
    f->heads = heads;
    f->kv_b.rows = heads * BENCH_FORMS_KV;

    (void) printf("| %u | %u | %u |", tokens, chunk, heads);

    for (i = 0; i < 2; i++) {
        f->absorbed = i;

        /* everything first: it prepares what the parts read */

        f->parts = BENCH_FORMS_ALL;
        us = dsa_bench_time(b, bench_forms_call, f, 1);
        (void) printf(" %.0f |", us);

        for (parts = 1; parts < BENCH_FORMS_ALL; parts *= 2) {

            if (parts == BENCH_FORMS_SELECT && !f->absorbed
                && tokens <= BENCH_FORMS_TOPK)
            {
                (void) printf(" 0 |");
                continue;
            }

            f->parts = parts;
            us = dsa_bench_time(b, bench_forms_call, f, 1);
            (void) printf(" %.0f |", us);
        }
    }

    (void) printf("\n");
    (void) fflush(stdout);
}


static int
bench_forms_fill(dsa_bench_t *b, bench_forms_t *f)
{
    int       rc;
    size_t    n;
    int32_t  *list, i;

    n = BENCH_FORMS_TOKENS;
    list = malloc(2 * n * sizeof(int32_t));

    if (list == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < (int32_t) n; i++) {
        list[i] = i;
        list[n + (size_t) i] = i + 1;
    }

    rc = cudaMemcpy(f->position, list, n * sizeof(int32_t), cudaMemcpyDefault);
    rc = rc != 0 ? rc : (int) cudaMemcpy(f->keys, list + n,
                                         n * sizeof(int32_t),
                                         cudaMemcpyDefault);
    rc = rc != 0 ? rc : (int) cudaMemcpy(f->pages, list,
                                         n / 64 * sizeof(int32_t),
                                         cudaMemcpyDefault);
    free(list);

    rc = rc != 0 ? rc : dsa_cuda_random_cache(&f->cache, 1, 1,
                                              b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(f->table, n * 64, 0.70710678f, 0, 2,
                                            b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(f->index_q,
                                             n * BENCH_FORMS_INDEX
                                             * DSA_CUDA_INDEX, 3, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(f->index_w, n * BENCH_FORMS_INDEX,
                                            0, 1, 4, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(f->q, n * 128 * BENCH_FORMS_QUERY,
                                             0, 1, 5, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(f->kv_b_bf16,
                                             (size_t) 128 * 256
                                             * DSA_CUDA_LATENT, 0, 0.04f, 6,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3((dsa_e4m3_t *) f->kv_b.q,
                                             (size_t) 128 * 256
                                             * DSA_CUDA_LATENT, 7, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32((float *) f->kv_b.scale, 256 * 4,
                                            0x1p-12f, 0, 8, b->stream);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);
}


void
dsa_bench_attention_forms(dsa_bench_t *b)
{
    int            rc;
    void          *work;
    size_t         i, j, n, part;
    bench_forms_t  f;

    static const uint32_t  heads[] = { 128, 16 };

    static const struct {
        uint32_t  tokens, chunk;
    } prompt[] = {
        { 1024, 1024 }, { 2048, 2048 }, { 4096, 4096 }, { 4096, 1024 },
        { 8192, 8192 }, { 8192, 2048 }, { 12288, 12288 }, { 12288, 2048 },
        { 16384, 16384 }, { 16384, 2048 }
    };

    n = BENCH_FORMS_TOKENS;
    part = BENCH_FORMS_ABSORB;

    f.shape = dsa_cuda_heads_find(BENCH_FORMS_NOPE, BENCH_FORMS_V);
    f.cache.page = BENCH_FORMS_PAGE;
    f.cache.keys = 64 * DSA_CUDA_RECORD;
    f.cache.pages = (uint32_t) (n / 64);
    f.cache.bf16 = 0;
    f.cache.base = dsa_bench_alloc(b, n / 64 * BENCH_FORMS_PAGE);
    f.pages = dsa_bench_alloc(b, n / 64 * sizeof(int32_t));
    f.position = dsa_bench_alloc(b, n * sizeof(int32_t));
    f.keys = dsa_bench_alloc(b, n * sizeof(int32_t));
    f.table = dsa_bench_alloc(b, n * 64 * sizeof(float));
    f.index_q = dsa_bench_alloc(b, n * BENCH_FORMS_INDEX * DSA_CUDA_INDEX);
    f.index_w = dsa_bench_alloc(b, n * BENCH_FORMS_INDEX * sizeof(float));
    f.score = dsa_bench_alloc(b, BENCH_FORMS_SCORES);
    f.pick = dsa_bench_alloc(b, n * BENCH_FORMS_TOPK * sizeof(int32_t));
    f.n_pick = dsa_bench_alloc(b, n * sizeof(int32_t));
    f.mask = dsa_bench_alloc(b, n * n / 8);
    f.latents = dsa_bench_alloc(b, n * BENCH_FORMS_KEY * 2);
    f.latents8.q = dsa_bench_alloc(b, n * DSA_CUDA_LATENT);
    f.latents8.scale = dsa_bench_alloc(b, n * 4 * sizeof(float));
    f.kv_b.cols = DSA_CUDA_LATENT;
    f.kv_b.q = dsa_bench_alloc(b, (size_t) 128 * 256 * DSA_CUDA_LATENT);
    f.kv_b.scale = dsa_bench_alloc(b, 256 * 4 * sizeof(float));
    f.kv_b_bf16 = dsa_bench_alloc(b, (size_t) 128 * 256 * DSA_CUDA_LATENT * 2);
    f.q = dsa_bench_alloc(b, n * 128 * BENCH_FORMS_QUERY * 2);
    f.kv = dsa_bench_alloc(b, n * 128 * 256 * 2);
    f.q_latent = dsa_bench_alloc(b, part * 128 * BENCH_FORMS_KEY * 2);
    f.u = dsa_bench_alloc(b, part * 128 * DSA_CUDA_LATENT * 2);
    f.out = dsa_bench_alloc(b, n * 128 * BENCH_FORMS_V * 2);
    work = dsa_bench_alloc(b, dsa_cuda_gemm_work());

    if (b->failed) {
        return;
    }

    rc = bench_forms_fill(b, &f);
    rc = rc != 0 ? rc : dsa_cuda_gemm_create(&f.gemm, &b->state, work);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: forms of attention: %s\n",
                       dsa_cuda_error(rc));
        b->failed = 1;
        return;
    }

    (void) printf("\nA layer's attention in us, MHA and absorbed MQA: all, "
                  "and selection, products and attention alone\n\n"
                  "| tokens | a step | heads "
                  "| MHA | selection | products | attention "
                  "| MQA | selection | products | attention |\n"
                  "|---|---|---|---|---|---|---|---|---|---|---|\n");

    for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        for (j = 0; j < sizeof(prompt) / sizeof(prompt[0]); j++) {
            bench_forms_row(b, &f, prompt[j].tokens, prompt[j].chunk,
                            heads[i]);
        }
    }

    dsa_cuda_gemm_destroy(f.gemm);
}
