
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cache.h"
#include "kernels/gemm/gemm.h"
#include "kernels/sample/random.h"


/*
 * MHA prefill of new tokens behind a long prefix in pages, in a layer that
 * attends to all positions with BF16 weights: for each part of the keys their
 * latents are read, expanded and attended to, as engine/cuda/dense.c does it.
 */

#define DSA_BENCH_PREFIX    102400      /* keys, those of the rows included */
#define DSA_BENCH_PART      4096
#define DSA_BENCH_MOST      2048        /* rows */
#define DSA_BENCH_KEY       (DSA_CUDA_LATENT + DSA_CUDA_ROPE)


typedef struct {
    const dsa_cuda_heads_shape_t  *shape;
    dsa_cuda_gemm_t               *gemm;
    dsa_cuda_cache_t               cache;
    int32_t                       *pages;
    void                          *kv_b;    /* [width, 512] */
    void                          *latents; /* [DSA_BENCH_PART, 576] */
    void                          *kv;      /* [DSA_BENCH_PART, width] */
    void                          *q;
    void                          *out;
    float                         *sum;
    float                         *norm;
    uint32_t                       heads;
    uint32_t                       width;   /* of all keys and values */
    uint32_t                       rows;
} dsa_bench_prompt_t;


static int
dsa_bench_prompt_run(dsa_bench_t *b, void *ctx, int set)
{
    int                  rc;
    uint32_t             first;
    dsa_bench_prompt_t  *p = ctx;

    rc = 0;

    for (first = 0; first < DSA_BENCH_PREFIX && rc == 0;
         first += DSA_BENCH_PART)
    {
        rc = dsa_cuda_cache_latents(p->latents, &p->cache,
                                    p->pages + first / 64, DSA_BENCH_PART,
                                    b->stream);
        rc = rc != 0 ? rc : dsa_cuda_gemm_bf16(p->gemm, p->kv, p->width, 0,
                                               p->latents, DSA_BENCH_KEY,
                                               p->kv_b, DSA_CUDA_LATENT,
                                               DSA_BENCH_PART, p->width,
                                               DSA_CUDA_LATENT, b->stream);
        rc = rc != 0 ? rc : dsa_cuda_attention_heads_part(&b->state, p->shape,
                                                          p->out, p->sum,
                                                          p->norm, p->q, p->kv,
                                                          p->latents, first,
                                                          DSA_BENCH_PART,
                                                          DSA_BENCH_PREFIX
                                                          - p->rows, p->rows,
                                                          p->heads, 0.0722f,
                                                          b->stream);
    }

    return rc;
}


/* Allocates and fills what a shape needs; b->failed is set on failure. */

static int
dsa_bench_prompt_make(dsa_bench_t *b, dsa_bench_prompt_t *p)
{
    int       rc;
    void     *work;
    size_t    q, v;
    int32_t   pages[DSA_BENCH_PREFIX / 64];
    uint32_t  i;

    q = (size_t) DSA_BENCH_MOST * p->heads * (p->shape->nope + DSA_CUDA_ROPE);
    v = (size_t) DSA_BENCH_MOST * p->heads * p->shape->v;

    p->cache.page = 64 * dsa_cuda_record(1);
    p->cache.keys = p->cache.page;
    p->cache.pages = DSA_BENCH_PREFIX / 64;
    p->cache.bf16 = 1;
    p->cache.base = dsa_bench_alloc(b, p->cache.pages * p->cache.page);
    p->pages = dsa_bench_alloc(b, sizeof(pages));
    p->kv_b = dsa_bench_alloc(b, (size_t) p->width * DSA_CUDA_LATENT * 2);
    p->latents = dsa_bench_alloc(b, (size_t) DSA_BENCH_PART * DSA_BENCH_KEY
                                    * 2);
    p->kv = dsa_bench_alloc(b, (size_t) DSA_BENCH_PART * p->width * 2);
    p->q = dsa_bench_alloc(b, q * 2);
    p->out = dsa_bench_alloc(b, v * 2);
    p->sum = dsa_bench_alloc(b, v * sizeof(float));
    p->norm = dsa_bench_alloc(b, (size_t) DSA_BENCH_MOST * p->heads
                                 * DSA_CUDA_HEADS_NORM * sizeof(float));
    work = dsa_bench_alloc(b, dsa_cuda_gemm_work());

    if (b->failed) {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_BENCH_PREFIX / 64; i++) {
        pages[i] = (int32_t) (i * 211 % (DSA_BENCH_PREFIX / 64));
    }

    rc = cudaMemcpy(p->pages, pages, sizeof(pages), cudaMemcpyHostToDevice);
    rc = rc != 0 ? rc : dsa_cuda_random_cache(&p->cache, 0, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(p->kv_b, (size_t) p->width
                                                      * DSA_CUDA_LATENT, 0,
                                             0.05f, 2, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(p->q, q, 0, 1.7f, 3, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_gemm_create(&p->gemm, &b->state, work);

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: attention_dense_prompt: %s\n",
                       dsa_cuda_error(rc));
        b->failed = 1;
        return DSA_ERROR;
    }

    return DSA_OK;
}


/* Operations and bytes are those of attention alone. */

static void
dsa_bench_prompt_row(dsa_bench_t *b, dsa_bench_prompt_t *p)
{
    char    text[96];
    double  us, pairs;

    us = dsa_bench_time(b, dsa_bench_prompt_run, p, 1);
    pairs = (double) p->rows * (DSA_BENCH_PREFIX - p->rows / 2.0);

    (void) snprintf(text, sizeof(text), "%u new of %u tokens, h=%u, %u/%u",
                    p->rows, DSA_BENCH_PREFIX, p->heads, p->shape->nope,
                    p->shape->v);
    dsa_bench_row(b, "dense prefill with expansion", text, us,
                  pairs * p->heads * 2.0
                  * (p->shape->nope + DSA_CUDA_ROPE + p->shape->v),
                  DSA_BENCH_BF16,
                  (double) DSA_BENCH_PREFIX * dsa_cuda_record(1));
}


void
dsa_bench_attention_prompt(dsa_bench_t *b)
{
    size_t              i, j;
    dsa_bench_prompt_t  p;

    static const struct {
        uint32_t  heads, nope, v;
    } model[] = {
        { 20, 192, 256 },               /* GLM-4.7-Flash */
        { 32, 128, 128 },               /* JoyAI-LLM-Flash */
        { 128, 128, 128 }               /* DeepSeek-V3 */
    };

    static const uint32_t  rows[] = { 50, 500, DSA_BENCH_MOST };

    for (i = 0; i < sizeof(model) / sizeof(model[0]) && !b->failed; i++) {
        memset(&p, 0, sizeof(p));

        p.heads = model[i].heads;
        p.width = p.heads * (model[i].nope + model[i].v);
        p.shape = dsa_cuda_heads_find(model[i].nope, model[i].v);

        if (dsa_bench_prompt_make(b, &p) == DSA_OK) {
            for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
                p.rows = rows[j];
                dsa_bench_prompt_row(b, &p);
            }
        }

        dsa_cuda_gemm_destroy(p.gemm);
        dsa_bench_free_all(b);
    }
}
