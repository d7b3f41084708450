
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/rank.h"
#include "kernels/core/fp8.h"
#include "kernels/exchange/exchange.h"
#include "kernels/gemm/gemm.h"
#include "kernels/index/indexer.h"
#include "kernels/row/norm.h"
#include "kernels/row/rope.h"


#define DSA_CUDA_KEY        (DSA_CUDA_LATENT + DSA_CUDA_ROPE)


static int dsa_cuda_sparse(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step);
static int dsa_cuda_selects(const dsa_cuda_rank_t *rank, uint32_t layer);
static int dsa_cuda_project(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t tokens);
static int dsa_cuda_write(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, const int32_t *slot, uint32_t tokens);
static int dsa_cuda_write_peers(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step);
static int dsa_cuda_index_tokens(dsa_cuda_rank_t *rank,
    const dsa_cuda_layer_t *l, uint32_t tokens);
static int dsa_cuda_scores(dsa_cuda_rank_t *rank, uint32_t layer, size_t ld,
    uint32_t n);
static int dsa_cuda_picked(dsa_cuda_rank_t *rank, uint32_t layer,
    uint64_t row, uint32_t n);
static int dsa_cuda_select_decode(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step);
static int dsa_cuda_decode(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step);
static int dsa_cuda_select(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);
static int dsa_cuda_absorbed(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);
static int dsa_cuda_mha(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);


int
dsa_cuda_attention(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step)
{
    dsa_cuda_work_t         *w;
    dsa_cuda_cache_t         cache;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    l = &rank->weights.layer[layer];

    cache.base = (uint8_t *) rank->page + rank->cache.layer[layer];
    cache.page = rank->cache.page;
    cache.keys = rank->cache.keys;
    cache.pages = rank->pages;
    cache.bf16 = rank->kv_bf16;

    dsa_cuda_try(dsa_cuda_project(rank, l, step->tokens));
    dsa_cuda_try(dsa_cuda_write(rank, l, &cache, rank->input.slot,
                                step->tokens));

    if (step->shared) {
        dsa_cuda_try(dsa_cuda_write_peers(rank, layer, step));
    }

    dsa_cuda_try(rank->dense ? dsa_cuda_dense(rank, layer, &cache, step)
                             : dsa_cuda_sparse(rank, layer, &cache, step));

    if (l->o.fp8.q != NULL) {
        dsa_cuda_try(dsa_cuda_fp8_quantize(&w->o8, w->o, l->o.cols,
                                           step->tokens, l->o.cols,
                                           (int) rank->config.ue8m0,
                                           rank->stream));
    }

    return dsa_cuda_product(rank, w->x, &w->o8, w->o, l->o.cols, &l->o,
                            step->tokens);
}


/* Sets o of all tokens from those that each layer selects. */

static int
dsa_cuda_sparse(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step)
{
    int                    own, indexed;
    uint32_t               i;
    const int32_t         *pages;
    const dsa_cuda_seq_t  *s;

    own = dsa_cuda_selects(rank, layer) && !step->shared_pick;
    indexed = step->decode != 0 && step->indexed;

    for (i = 0; i < step->n_seqs; i++) {
        s = &step->seq[i];
        indexed |= s->start + s->n > rank->topk;
    }

    if (own && indexed) {
        dsa_cuda_try(dsa_cuda_index_tokens(rank, &rank->weights.layer[layer],
                                           step->tokens));
    }

    if (step->decode != 0) {

        /* the previous layer may have replaced the selection */

        if (own && !step->indexed
            && (rank->select != NULL
                || layer == rank->config.num_hidden_layers))
        {
            dsa_cuda_try(dsa_cuda_select_all(rank, step));
            dsa_cuda_try(dsa_cuda_picked(rank, layer, 0, step->decode));
        }

        dsa_cuda_try(dsa_cuda_decode(rank, layer, cache, step));
    }

    for (i = 0; i < step->n_seqs; i++) {
        s = &step->seq[i];
        pages = rank->input.pages + (uint64_t) s->table * rank->ld_pages;

        if (s->mha) {
            dsa_cuda_try(dsa_cuda_mha(rank, layer, cache, s, pages));

        } else {
            dsa_cuda_try(dsa_cuda_absorbed(rank, layer, cache, s, pages));
        }
    }

    return 0;
}


/*
 * Returns 1 if a layer has an indexer of its own.  Other layers attend to what
 * the nearest layer with one has selected: pick, pick_slot and n_pick still
 * have it, because slots are the same in all layers.
 */

static int
dsa_cuda_selects(const dsa_cuda_rank_t *rank, uint32_t layer)
{
    return layer == rank->config.num_hidden_layers
           || rank->config.layer[layer].selection == DSA_SELECTION_OWN;
}


/*
 * Computes the queries to q, and latents and index keys before their norms to
 * a.  Without a low rank, the queries come from the hidden state.
 */

static int
dsa_cuda_project(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t tokens)
{
    int               fp8;
    uint32_t          ld;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    ld = l->qkv_a.rows;
    fp8 = l->q_b.fp8.q != NULL;

    dsa_cuda_try(dsa_cuda_product(rank, w->a, &w->y8, w->y, l->qkv_a.cols,
                                  &l->qkv_a, tokens));

    if (l->q_norm == NULL) {
        return dsa_cuda_product(rank, w->q, &w->y8, w->y, l->q_b.cols, &l->q_b,
                                tokens);
    }

    dsa_cuda_try(dsa_cuda_rmsnorm(fp8 ? NULL : w->qr, l->q_b.cols,
                                  fp8 ? &w->qr8 : NULL, w->a, ld, l->q_norm,
                                  tokens, l->q_b.cols,
                                  rank->config.latent_norm_eps,
                                  (int) rank->config.ue8m0, rank->stream));

    return dsa_cuda_product(rank, w->q, &w->qr8, w->qr, l->q_b.cols, &l->q_b,
                            tokens);
}


/* Writes the latents in a, and the layer's index keys, to a cache. */

static int
dsa_cuda_write(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, const int32_t *slot, uint32_t tokens)
{
    uint32_t                   ld;
    dsa_bf16_t                *k;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &rank->work;
    s = &rank->config;
    ld = l->qkv_a.rows;
    k = l->k_norm != NULL ? w->a + rank->weights.at_k : NULL;

    return dsa_cuda_cache_write(cache, slot, w->a + rank->weights.at_kv, ld,
                                l->kv_norm, s->latent_norm_eps, k, ld,
                                l->k_norm, l->k_bias, s->index_norm_eps,
                                rank->rope, rank->input.position,
                                (int) s->index_rope_interleaved, tokens,
                                rank->stream);
}


/*
 * Writes them to the caches of the other ranks, which compute other tokens of
 * the same prompts.  Later work in the stream begins after all ranks have
 * stored the entries of this layer.
 */

static int
dsa_cuda_write_peers(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step)
{
    uint32_t                 r;
    dsa_cuda_cache_t         cache;
    const dsa_cuda_peers_t  *peers;

    peers = &rank->peers;

    cache.page = rank->cache.page;
    cache.keys = rank->cache.keys;
    cache.pages = rank->pages;
    cache.bf16 = rank->kv_bf16;

    for (r = 0; r < rank->shard.ranks; r++) {
        if (r == rank->shard.rank) {
            continue;
        }

        cache.base = peers->page[r] + rank->cache.layer[layer];

        dsa_cuda_try(dsa_cuda_write(rank, &rank->weights.layer[layer], &cache,
                                    rank->input.peer_slot
                                    + (uint64_t) r * rank->max_tokens,
                                    step->tokens));
    }

    dsa_cuda_try(dsa_cuda_exchange_signal(&peers->exchange, rank->stream));

    return dsa_cuda_exchange_wait(&peers->exchange, rank->stream);
}


static int
dsa_cuda_index_tokens(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t tokens)
{
    uint32_t          heads, hidden;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    heads = dsa_cuda_index_heads(&rank->config);
    hidden = rank->config.hidden_size;

    dsa_cuda_try(dsa_cuda_product(rank, w->index_q, &w->qr8, w->qr,
                                  l->index_q.cols, &l->index_q, tokens));
    dsa_cuda_try(dsa_cuda_gemm_bf16(rank->gemm, w->index_w, heads, 1, w->y,
                                    hidden, l->index_w, hidden, tokens, heads,
                                    hidden, rank->stream));

    return dsa_cuda_index_query(w->index_q8, w->index_w8, w->index_q,
                                w->index_w, rank->index_constant, rank->rope,
                                rank->input.position,
                                (int) rank->config.index_rope_interleaved,
                                tokens, heads, rank->stream);
}


int
dsa_cuda_select_all(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    dsa_cuda_work_t  *w;

    w = &rank->work;

    if (step->decode == 0) {
        return 0;
    }

    return dsa_cuda_topk(w->pick, w->pick_slot, w->n_pick, w->score,
                         rank->topk, rank->input.keys, rank->input.pages,
                         rank->ld_pages, NULL, step->decode, rank->topk,
                         rank->topk, rank->stream);
}


/* Returns for how many of n tokens the scores fit, with ld keys each. */

static uint32_t
dsa_cuda_score_tokens(uint64_t ld, uint32_t n)
{
    uint64_t  tokens;

    tokens = DSA_CUDA_SCORE_BYTES / (ld * sizeof(float));

    return tokens < n ? (uint32_t) tokens : n;
}


/* The draft layer has no entry at position 0, which no row may select. */

static int
dsa_cuda_scores(dsa_cuda_rank_t *rank, uint32_t layer, size_t ld, uint32_t n)
{
    if (layer != rank->config.num_hidden_layers) {
        return 0;
    }

    return dsa_cuda_score_first(rank->work.score, ld, n, rank->stream);
}


static int
dsa_cuda_picked(dsa_cuda_rank_t *rank, uint32_t layer, uint64_t row,
    uint32_t n)
{
    dsa_cuda_work_t  *w;

    if (layer != rank->config.num_hidden_layers) {
        return 0;
    }

    w = &rank->work;

    return dsa_cuda_pick_first(w->pick + row * rank->topk,
                               w->pick_slot + row * rank->topk,
                               w->n_pick + row, n, rank->topk, rank->stream);
}


/* Computes pick, pick_slot and n_pick for the decode tokens. */

static int
dsa_cuda_select_decode(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step)
{
    size_t            ld;
    uint32_t          r, n, heads;
    const int32_t    *left, *pages;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    left = step->grouped ? rank->input.left : NULL;
    heads = dsa_cuda_index_heads(&rank->config);
    ld = ((size_t) step->max_keys + 63) & ~(size_t) 63;

    for (r = 0; r < step->decode; r += n) {
        n = dsa_cuda_score_tokens(ld, step->decode - r);
        pages = rank->input.pages + (uint64_t) r * rank->ld_pages;

        dsa_cuda_try(dsa_cuda_index_score_groups(&rank->state, w->score, ld,
                                                 w->index_q8 + (uint64_t) r
                                                 * heads * DSA_CUDA_INDEX,
                                                 w->index_w8
                                                 + (uint64_t) r * heads,
                                                 cache, pages, rank->ld_pages,
                                                 rank->input.keys + r,
                                                 left != NULL ? left + r
                                                              : NULL, n,
                                                 step->max_keys, heads,
                                                 rank->stream));
        dsa_cuda_try(dsa_cuda_scores(rank, layer, ld, n));
        dsa_cuda_try(dsa_cuda_topk(w->pick + (uint64_t) r * rank->topk,
                                   w->pick_slot + (uint64_t) r * rank->topk,
                                   w->n_pick + r, w->score, ld,
                                   rank->input.keys + r, pages, rank->ld_pages,
                                   NULL, n, rank->topk, step->max_keys,
                                   rank->stream));
        dsa_cuda_try(dsa_cuda_picked(rank, layer, r, n));
    }

    return 0;
}


static int
dsa_cuda_decode(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step)
{
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    l = &rank->weights.layer[layer];

    if (step->indexed && dsa_cuda_selects(rank, layer)
        && !step->shared_pick)
    {
        dsa_cuda_try(dsa_cuda_select_decode(rank, layer, cache, step));
    }

    dsa_cuda_try(dsa_cuda_trace_selection(rank, layer, 0, step->decode));
    dsa_cuda_try(dsa_cuda_absorb(rank, l, 0, step->decode));
    dsa_cuda_try(dsa_cuda_attention_decode(&rank->state, w->u, w->q_latent,
                                           cache, w->pick_slot, rank->topk,
                                           w->n_pick, step->decode,
                                           rank->heads,
                                           rank->topk, rank->attention_scale,
                                           w->decode_work, rank->stream));

    return dsa_cuda_expand(rank, l, 0, step->decode);
}


/*
 * Computes pick, pick_slot and n_pick for the tokens of a sequence, in a layer
 * with an indexer.
 */

static int
dsa_cuda_select(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    size_t            ld;
    uint32_t          i, n, end, heads;
    uint64_t          row;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    heads = dsa_cuda_index_heads(&rank->config);
    end = s->start + s->n;
    ld = ((size_t) end + 63) & ~(size_t) 63;

    if (!dsa_cuda_selects(rank, layer)) {
        return dsa_cuda_trace_selection(rank, layer, s->first, s->n);
    }

    for (i = 0; i < s->n; i += n) {
        row = s->first + i;
        n = dsa_cuda_score_tokens(ld, s->n - i);

        if (s->start + i + n > rank->topk) {
            dsa_cuda_try(dsa_cuda_index_score(&rank->state, w->score, ld,
                                              w->index_q8 + row * heads
                                              * DSA_CUDA_INDEX,
                                              w->index_w8 + row * heads, cache,
                                              pages, s->start + i, n, heads,
                                              rank->stream));
            dsa_cuda_try(dsa_cuda_scores(rank, layer, ld, n));
        }

        dsa_cuda_try(dsa_cuda_topk(w->pick + row * rank->topk,
                                   w->pick_slot + row * rank->topk,
                                   w->n_pick + row, w->score, ld,
                                   rank->input.keys + row, pages, 0, NULL, n,
                                   rank->topk, end, rank->stream));
        dsa_cuda_try(dsa_cuda_picked(rank, layer, row, n));
    }

    return dsa_cuda_trace_selection(rank, layer, s->first, s->n);
}


static int
dsa_cuda_absorbed(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    uint32_t                 i, n, end, heads;
    uint64_t                 row;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    l = &rank->weights.layer[layer];
    heads = rank->heads;
    end = s->start + s->n;

    dsa_cuda_try(dsa_cuda_select(rank, layer, cache, s, pages));

    if (s->n > DSA_CUDA_DECODE_TOKENS) {
        dsa_cuda_try(dsa_cuda_cache_latents(w->latents, cache, pages, end,
                                            rank->stream));
    }

    for (i = 0; i < s->n; i += n) {
        row = s->first + i;
        n = s->n - i < DSA_CUDA_ABSORB_TOKENS ? s->n - i
                                              : DSA_CUDA_ABSORB_TOKENS;

        dsa_cuda_try(dsa_cuda_absorb(rank, l, (uint32_t) row, n));

        if (s->n > DSA_CUDA_DECODE_TOKENS) {
            dsa_cuda_try(dsa_cuda_attention_prefill(&rank->state, w->u,
                                                    w->q_latent, w->latents,
                                                    end,
                                                    w->pick + row * rank->topk,
                                                    rank->topk,
                                                    w->n_pick + row, n, heads,
                                                    rank->attention_scale,
                                                    rank->stream));

        } else {
            dsa_cuda_try(dsa_cuda_attention_decode(&rank->state, w->u,
                                                   w->q_latent, cache,
                                                   w->pick_slot
                                                   + row * rank->topk,
                                                   rank->topk, w->n_pick + row,
                                                   n, heads, rank->topk,
                                                   rank->attention_scale,
                                                   w->decode_work,
                                                   rank->stream));
        }

        dsa_cuda_try(dsa_cuda_expand(rank, l, (uint32_t) row, n));
    }

    return 0;
}


/*
 * Expands latents for every head.  They are read from the cache; if they are
 * FP8 there, quantizing them again is exact.
 */

int
dsa_cuda_keys_values(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, const int32_t *pages, uint32_t n)
{
    int               ue8m0;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    w->latents8.ld = dsa_cuda_ld(n);
    ue8m0 = cache->bf16 ? (int) rank->config.ue8m0 : 1;

    dsa_cuda_try(dsa_cuda_cache_latents(w->latents, cache, pages, n,
                                        rank->stream));

    if (l->kv_b.fp8.q != NULL) {
        dsa_cuda_try(dsa_cuda_fp8_quantize(&w->latents8, w->latents,
                                           DSA_CUDA_KEY, n, DSA_CUDA_LATENT,
                                           ue8m0, rank->stream));
    }

    return dsa_cuda_product(rank, w->kv, &w->latents8, w->latents,
                            DSA_CUDA_KEY, &l->kv_b, n);
}


/* MHA prefill, over the expanded latents of the whole prompt so far. */

static int
dsa_cuda_mha(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    size_t            ld;
    uint32_t          end, heads, width;
    uint64_t          row;
    dsa_bf16_t       *q;
    dsa_cuda_work_t  *w;
    const uint32_t   *mask;

    w = &rank->work;
    heads = rank->heads;
    end = s->start + s->n;
    row = s->first;
    width = rank->shape->nope + DSA_CUDA_ROPE;
    q = w->q + row * heads * width;
    ld = (end + 31) / 32;
    mask = NULL;

    if (end > rank->topk || rank->trace != NULL || rank->select != NULL) {
        dsa_cuda_try(dsa_cuda_select(rank, layer, cache, s, pages));
        dsa_cuda_try(dsa_cuda_attention_mask(w->mask, ld,
                                             w->pick + row * rank->topk,
                                             rank->topk, w->n_pick + row, s->n,
                                             rank->stream));
        mask = w->mask;
    }

    dsa_cuda_try(dsa_cuda_keys_values(rank, &rank->weights.layer[layer], cache,
                                      pages, end));
    dsa_cuda_try(dsa_cuda_rope_query(q, width, rank->shape->nope, q, width,
                                     rank->rope, rank->input.position + row,
                                     s->n, heads, rank->stream));

    return dsa_cuda_attention_heads(&rank->state, rank->shape,
                                    w->o + row * heads * rank->shape->v, q,
                                    w->kv, w->latents, mask, ld, s->start,
                                    s->n, heads, rank->attention_scale,
                                    rank->stream);
}


int
dsa_cuda_absorb(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l, uint32_t row,
    uint32_t n)
{
    uint32_t          heads, nope, width;
    dsa_bf16_t       *q;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    heads = rank->heads;
    nope = rank->shape->nope;
    width = nope + DSA_CUDA_ROPE;
    q = w->q + (uint64_t) row * heads * width;

    dsa_cuda_try(dsa_cuda_gemm_heads(rank->gemm, w->q_latent,
                                     (size_t) heads * DSA_CUDA_KEY,
                                     DSA_CUDA_KEY, q, (size_t) heads * width,
                                     width, l->kv_b_bf16, DSA_CUDA_LATENT,
                                     (size_t) (nope + rank->shape->v)
                                     * DSA_CUDA_LATENT, 1, heads, n,
                                     DSA_CUDA_LATENT, nope, rank->stream));

    return dsa_cuda_rope_query(w->q_latent, DSA_CUDA_KEY, DSA_CUDA_LATENT, q,
                               width, rank->rope, rank->input.position + row,
                               n, heads, rank->stream);
}


int
dsa_cuda_expand(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l, uint32_t row,
    uint32_t n)
{
    uint32_t          heads, nope, v;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    heads = rank->heads;
    nope = rank->shape->nope;
    v = rank->shape->v;

    return dsa_cuda_gemm_heads(rank->gemm,
                               w->o + (uint64_t) row * heads * v,
                               (size_t) heads * v, v, w->u,
                               (size_t) heads * DSA_CUDA_LATENT,
                               DSA_CUDA_LATENT,
                               l->kv_b_bf16 + (size_t) nope * DSA_CUDA_LATENT,
                               DSA_CUDA_LATENT,
                               (size_t) (nope + v) * DSA_CUDA_LATENT, 0, heads,
                               n, v, DSA_CUDA_LATENT, rank->stream);
}
