
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "engine/cuda/model.h"
#include "kernels/fp8.h"
#include "kernels/gemm.h"
#include "kernels/indexer.h"
#include "kernels/norm.h"
#include "kernels/rope.h"


#define DSA_LATENT_EPS      1e-6f       /* see model_attention.c */

#define DSA_CUDA_QUERY      (DSA_CUDA_NOPE + DSA_CUDA_ROPE)
#define DSA_CUDA_KEY        (DSA_CUDA_LATENT + DSA_CUDA_ROPE)


static int dsa_cuda_project(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, uint32_t rows);
static int dsa_cuda_index_rows(dsa_cuda_model_t *m,
    const dsa_cuda_layer_t *l, uint32_t rows);
static int dsa_cuda_decode(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step);
static int dsa_cuda_select(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);
static int dsa_cuda_absorbed(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);
static int dsa_cuda_heads(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);
static int dsa_cuda_absorb(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l,
    uint32_t row, uint32_t n);
static int dsa_cuda_expand(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l,
    uint32_t row, uint32_t n);
static int dsa_cuda_selected(dsa_cuda_model_t *m, uint32_t layer,
    uint32_t row, uint32_t n);


/* x becomes Attn(y) of a layer; y8 is y quantized. */

int
dsa_cuda_attention(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_step_t *step)
{
    int                      asked;
    uint32_t                 i;
    const int32_t           *pages;
    dsa_cuda_work_t         *w;
    dsa_cuda_cache_t         cache;
    const dsa_cuda_seq_t    *s;
    const dsa_cuda_layer_t  *l;

    w = &m->work;
    l = &m->weights.layer[layer];

    cache.base = (uint8_t *) m->page + layer * m->cache.layer;
    cache.page = m->cache.page;
    cache.keys = m->cache.keys;
    cache.pages = m->pages;

    dsa_cuda_try(dsa_cuda_project(m, l, &cache, step->rows));

    asked = step->decode != 0 && step->indexed;

    for (i = 0; i < step->n_seqs; i++) {
        s = &step->seq[i];
        asked |= s->start + s->n > m->topk;
    }

    if (asked) {
        dsa_cuda_try(dsa_cuda_index_rows(m, l, step->rows));
    }

    if (step->decode != 0) {

        /* a selection that was replaced is the last layer's */

        if (m->select != NULL && !step->indexed) {
            dsa_cuda_try(dsa_cuda_select_all(m, step));
        }

        dsa_cuda_try(dsa_cuda_decode(m, layer, &cache, step));
    }

    for (i = 0; i < step->n_seqs; i++) {
        s = &step->seq[i];
        pages = m->input.pages + (uint64_t) s->table * m->ld_pages;

        if (s->heads_form) {
            dsa_cuda_try(dsa_cuda_heads(m, layer, &cache, s, pages));

        } else {
            dsa_cuda_try(dsa_cuda_absorbed(m, layer, &cache, s, pages));
        }
    }

    dsa_cuda_try(dsa_cuda_fp8_quantize(&w->o8, w->o, l->o.cols, step->rows,
                                       l->o.cols, 1, m->stream));

    return dsa_cuda_gemm_fp8(m->gemm, w->x, l->o.rows, &w->o8, &l->o,
                             step->rows, m->stream);
}


/* Queries to q, latents and index keys to the cache. */

static int
dsa_cuda_project(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, uint32_t rows)
{
    uint32_t          ld;
    dsa_cuda_work_t  *w;

    w = &m->work;
    ld = l->qkv_a.rows;

    dsa_cuda_try(dsa_cuda_gemm_fp8(m->gemm, w->a, ld, &w->y8, &l->qkv_a, rows,
                                   m->stream));
    dsa_cuda_try(dsa_cuda_rmsnorm(NULL, 0, &w->qr8, w->a, ld, l->q_norm, rows,
                                  l->q_b.cols, DSA_LATENT_EPS, m->stream));
    dsa_cuda_try(dsa_cuda_gemm_fp8(m->gemm, w->q, l->q_b.rows, &w->qr8,
                                   &l->q_b, rows, m->stream));

    return dsa_cuda_cache_write(cache, m->input.slot, w->a + m->weights.at_kv,
                                ld, l->kv_norm, w->a + m->weights.at_k, ld,
                                l->k_norm, l->k_bias, m->rope,
                                m->input.position, rows, m->stream);
}


static int
dsa_cuda_index_rows(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l,
    uint32_t rows)
{
    uint32_t          heads, hidden;
    dsa_cuda_work_t  *w;

    w = &m->work;
    heads = dsa_cuda_index_heads(&m->config);
    hidden = m->config.hidden_size;

    dsa_cuda_try(dsa_cuda_gemm_fp8(m->gemm, w->index_q, l->index_q.rows,
                                   &w->qr8, &l->index_q, rows, m->stream));
    dsa_cuda_try(dsa_cuda_gemm_bf16(m->gemm, w->index_w, heads, 1, w->y,
                                    hidden, l->index_w, hidden, rows, heads,
                                    hidden, m->stream));

    return dsa_cuda_index_query(w->index_q8, w->index_w8, w->index_q,
                                w->index_w, m->index_constant, m->rope,
                                m->input.position, rows, heads, m->stream);
}


int
dsa_cuda_select_all(dsa_cuda_model_t *m, const dsa_cuda_step_t *step)
{
    dsa_cuda_work_t  *w;

    w = &m->work;

    if (step->decode == 0) {
        return 0;
    }

    return dsa_cuda_topk(w->pick, w->pick_slot, w->n_pick, w->score, m->topk,
                         m->input.keys, m->input.pages, m->ld_pages, NULL,
                         step->decode, m->topk, m->topk, m->stream);
}


/* Rows that scores of so many keys are held of at a time. */

static uint32_t
dsa_cuda_score_rows(uint64_t ld, uint32_t n)
{
    uint64_t  rows;

    rows = DSA_CUDA_SCORE_BYTES / (ld * sizeof(float));

    return rows < n ? (uint32_t) rows : n;
}


static int
dsa_cuda_decode(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step)
{
    size_t                   ld;
    uint32_t                 r, n, heads;
    const int32_t           *pages;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &m->work;
    l = &m->weights.layer[layer];
    heads = dsa_cuda_index_heads(&m->config);
    ld = ((size_t) step->max_keys + 63) & ~(size_t) 63;

    for (r = 0; step->indexed && r < step->decode; r += n) {
        n = dsa_cuda_score_rows(ld, step->decode - r);
        pages = m->input.pages + (uint64_t) r * m->ld_pages;

        dsa_cuda_try(dsa_cuda_index_score_decode(&m->state, w->score, ld,
                                                 w->index_q8 + (uint64_t) r
                                                 * heads * DSA_CUDA_INDEX,
                                                 w->index_w8
                                                 + (uint64_t) r * heads,
                                                 cache, pages, m->ld_pages,
                                                 m->input.keys + r, n,
                                                 step->max_keys, heads,
                                                 m->stream));
        dsa_cuda_try(dsa_cuda_topk(w->pick + (uint64_t) r * m->topk,
                                   w->pick_slot + (uint64_t) r * m->topk,
                                   w->n_pick + r, w->score, ld,
                                   m->input.keys + r, pages, m->ld_pages,
                                   NULL, n, m->topk, step->max_keys,
                                   m->stream));
    }

    dsa_cuda_try(dsa_cuda_selected(m, layer, 0, step->decode));
    dsa_cuda_try(dsa_cuda_absorb(m, l, 0, step->decode));
    dsa_cuda_try(dsa_cuda_attention_decode(&m->state, w->u, w->q_latent, cache,
                                           w->pick_slot, m->topk, w->n_pick,
                                           step->decode,
                                           m->config.num_attention_heads,
                                           m->topk, m->attention_scale,
                                           w->decode_work, m->stream));

    return dsa_cuda_expand(m, l, 0, step->decode);
}


/* pick, pick_slot and n_pick of a sequence's rows. */

static int
dsa_cuda_select(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    size_t            ld;
    uint32_t          i, n, end, heads;
    uint64_t          row;
    dsa_cuda_work_t  *w;

    w = &m->work;
    heads = dsa_cuda_index_heads(&m->config);
    end = s->start + s->n;
    ld = ((size_t) end + 63) & ~(size_t) 63;

    for (i = 0; i < s->n; i += n) {
        row = s->row + i;
        n = dsa_cuda_score_rows(ld, s->n - i);

        if (s->start + i + n > m->topk) {
            dsa_cuda_try(dsa_cuda_index_score(&m->state, w->score, ld,
                                              w->index_q8 + row * heads
                                              * DSA_CUDA_INDEX,
                                              w->index_w8 + row * heads, cache,
                                              pages, s->start + i, n, heads,
                                              m->stream));
        }

        dsa_cuda_try(dsa_cuda_topk(w->pick + row * m->topk,
                                   w->pick_slot + row * m->topk,
                                   w->n_pick + row, w->score, ld,
                                   m->input.keys + row, pages, 0, NULL, n,
                                   m->topk, end, m->stream));
    }

    return dsa_cuda_selected(m, layer, s->row, s->n);
}


static int
dsa_cuda_absorbed(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    uint32_t                 i, n, end, heads;
    uint64_t                 row;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &m->work;
    l = &m->weights.layer[layer];
    heads = m->config.num_attention_heads;
    end = s->start + s->n;

    dsa_cuda_try(dsa_cuda_select(m, layer, cache, s, pages));

    if (s->n > DSA_CUDA_FEW_ROWS) {
        dsa_cuda_try(dsa_cuda_cache_latents(w->latents, cache, pages, end,
                                            m->stream));
    }

    for (i = 0; i < s->n; i += n) {
        row = s->row + i;
        n = s->n - i < DSA_CUDA_ABSORB_ROWS ? s->n - i : DSA_CUDA_ABSORB_ROWS;

        dsa_cuda_try(dsa_cuda_absorb(m, l, (uint32_t) row, n));

        if (s->n > DSA_CUDA_FEW_ROWS) {
            dsa_cuda_try(dsa_cuda_attention_prefill(&m->state, w->u,
                                                    w->q_latent, w->latents,
                                                    end,
                                                    w->pick + row * m->topk,
                                                    m->topk, w->n_pick + row,
                                                    n, heads,
                                                    m->attention_scale,
                                                    m->stream));

        } else {
            dsa_cuda_try(dsa_cuda_attention_decode(&m->state, w->u,
                                                   w->q_latent, cache,
                                                   w->pick_slot + row * m->topk,
                                                   m->topk, w->n_pick + row, n,
                                                   heads, m->topk,
                                                   m->attention_scale,
                                                   w->decode_work, m->stream));
        }

        dsa_cuda_try(dsa_cuda_expand(m, l, (uint32_t) row, n));
    }

    return 0;
}


/*
 * The latents of the whole prompt so far are expanded for every head.  They
 * come from the cache and were FP8: quantizing them again changes no value.
 */

static int
dsa_cuda_heads(dsa_cuda_model_t *m, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    size_t                   ld;
    uint32_t                 end, heads;
    uint64_t                 row;
    dsa_bf16_t              *q;
    dsa_cuda_work_t         *w;
    const uint32_t          *mask;
    const dsa_cuda_layer_t  *l;

    w = &m->work;
    l = &m->weights.layer[layer];
    heads = m->config.num_attention_heads;
    end = s->start + s->n;
    row = s->row;
    q = w->q + row * heads * DSA_CUDA_QUERY;
    ld = (end + 31) / 32;
    mask = NULL;

    if (end > m->topk || m->trace != NULL || m->select != NULL) {
        dsa_cuda_try(dsa_cuda_select(m, layer, cache, s, pages));
        dsa_cuda_try(dsa_cuda_attention_mask(w->mask, ld,
                                             w->pick + row * m->topk, m->topk,
                                             w->n_pick + row, s->n,
                                             m->stream));
        mask = w->mask;
    }

    w->latents8.ld = dsa_cuda_ld(end);

    dsa_cuda_try(dsa_cuda_cache_latents(w->latents, cache, pages, end,
                                        m->stream));
    dsa_cuda_try(dsa_cuda_fp8_quantize(&w->latents8, w->latents, DSA_CUDA_KEY,
                                       end, DSA_CUDA_LATENT, 1, m->stream));
    dsa_cuda_try(dsa_cuda_gemm_fp8(m->gemm, w->kv, l->kv_b.rows, &w->latents8,
                                   &l->kv_b, end, m->stream));
    dsa_cuda_try(dsa_cuda_rope_query(q, DSA_CUDA_QUERY, DSA_CUDA_NOPE, q,
                                     m->rope, m->input.position + row, s->n,
                                     heads, m->stream));

    return dsa_cuda_attention_heads(&m->state,
                                    w->o + row * heads * DSA_CUDA_NOPE, q,
                                    w->kv, w->latents, mask, ld, s->start,
                                    s->n, heads, m->attention_scale,
                                    m->stream);
}


/* q_latent of n rows: W_UK^T q_nope, and q_rope rotated. */

static int
dsa_cuda_absorb(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l, uint32_t row,
    uint32_t n)
{
    uint32_t          heads;
    dsa_bf16_t       *q;
    dsa_cuda_work_t  *w;

    w = &m->work;
    heads = m->config.num_attention_heads;
    q = w->q + (uint64_t) row * heads * DSA_CUDA_QUERY;

    dsa_cuda_try(dsa_cuda_gemm_heads(m->gemm, w->q_latent,
                                     (size_t) heads * DSA_CUDA_KEY,
                                     DSA_CUDA_KEY, q,
                                     (size_t) heads * DSA_CUDA_QUERY,
                                     DSA_CUDA_QUERY, l->kv_b_bf16,
                                     DSA_CUDA_LATENT,
                                     2 * DSA_CUDA_NOPE * DSA_CUDA_LATENT, 1,
                                     heads, n, DSA_CUDA_LATENT, DSA_CUDA_NOPE,
                                     m->stream));

    return dsa_cuda_rope_query(w->q_latent, DSA_CUDA_KEY, DSA_CUDA_LATENT, q,
                               m->rope, m->input.position + row, n, heads,
                               m->stream);
}


/* o of n rows: W_UV u. */

static int
dsa_cuda_expand(dsa_cuda_model_t *m, const dsa_cuda_layer_t *l, uint32_t row,
    uint32_t n)
{
    uint32_t          heads;
    dsa_cuda_work_t  *w;

    w = &m->work;
    heads = m->config.num_attention_heads;

    return dsa_cuda_gemm_heads(m->gemm,
                               w->o + (uint64_t) row * heads * DSA_CUDA_NOPE,
                               (size_t) heads * DSA_CUDA_NOPE, DSA_CUDA_NOPE,
                               w->u, (size_t) heads * DSA_CUDA_LATENT,
                               DSA_CUDA_LATENT,
                               l->kv_b_bf16 + DSA_CUDA_NOPE * DSA_CUDA_LATENT,
                               DSA_CUDA_LATENT,
                               2 * DSA_CUDA_NOPE * DSA_CUDA_LATENT, 0, heads,
                               n, DSA_CUDA_NOPE, DSA_CUDA_LATENT, m->stream);
}


/* n words from and to the GPU, in the order of the stream. */

static int
dsa_cuda_fetch(dsa_cuda_model_t *m, void *to, const void *from, uint64_t n)
{
    int  rc;

    rc = cudaMemcpyAsync(to, from, n * sizeof(int32_t),
                         cudaMemcpyDeviceToHost, m->stream);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);
}


static int
dsa_cuda_put(dsa_cuda_model_t *m, void *to, const void *from, uint64_t n)
{
    int  rc;

    rc = cudaMemcpyAsync(to, from, n * sizeof(int32_t),
                         cudaMemcpyHostToDevice, m->stream);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(m->stream);
}


/* Tells the selection of n rows, and lets it be replaced, where asked to. */

static int
dsa_cuda_selected(dsa_cuda_model_t *m, uint32_t layer, uint32_t row,
    uint32_t n)
{
    int        rc;
    int32_t   *pick, *slot, *pages, *owner;
    uint32_t   i, j;
    uint64_t   picks, at;
    uint32_t  *n_pick;

    dsa_cuda_try(dsa_cuda_tell(m, "topk", layer, n, m->topk,
                               m->work.pick + (uint64_t) row * m->topk));

    if (m->select == NULL) {
        return 0;
    }

    picks = (uint64_t) n * m->topk;

    pick = malloc(picks * sizeof(int32_t));
    slot = malloc(picks * sizeof(int32_t));
    pages = malloc((uint64_t) m->max_samples * m->ld_pages * sizeof(int32_t));
    owner = malloc(n * sizeof(int32_t));
    n_pick = malloc(n * sizeof(uint32_t));

    if (pick == NULL || slot == NULL || pages == NULL || owner == NULL
        || n_pick == NULL)
    {
        rc = cudaErrorMemoryAllocation;
        goto done;
    }

    rc = dsa_cuda_fetch(m, pick, m->work.pick + (uint64_t) row * m->topk,
                        picks);
    rc = rc != 0 ? rc : dsa_cuda_fetch(m, n_pick, m->work.n_pick + row, n);
    rc = rc != 0 ? rc : dsa_cuda_fetch(m, owner, m->input.owner + row, n);
    rc = rc != 0 ? rc : dsa_cuda_fetch(m, pages, m->input.pages,
                                       (uint64_t) m->max_samples
                                       * m->ld_pages);

    if (rc != 0) {
        goto done;
    }

    m->select(m->select_ctx, layer, n, m->topk, pick, n_pick);

    for (i = 0; i < n; i++) {
        for (j = 0; j < m->topk; j++) {
            at = (uint64_t) i * m->topk + j;

            if (j >= n_pick[i]) {
                pick[at] = -1;
                slot[at] = -1;
                continue;
            }

            slot[at] = pages[(uint64_t) owner[i] * m->ld_pages
                             + (uint32_t) pick[at] / DSA_PAGE_TOKENS]
                       * DSA_PAGE_TOKENS
                       + pick[at] % DSA_PAGE_TOKENS;
        }
    }

    rc = dsa_cuda_put(m, m->work.pick + (uint64_t) row * m->topk, pick, picks);
    rc = rc != 0 ? rc : dsa_cuda_put(m, m->work.pick_slot
                                     + (uint64_t) row * m->topk, slot, picks);
    rc = rc != 0 ? rc : dsa_cuda_put(m, m->work.n_pick + row, n_pick, n);

done:

    free(pick);
    free(slot);
    free(pages);
    free(owner);
    free(n_pick);

    return rc;
}
