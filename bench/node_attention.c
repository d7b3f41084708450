
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "bench/node_ops.h"
#include "kernels/core/fp8.h"
#include "kernels/index/indexer.h"
#include "kernels/row/norm.h"
#include "kernels/row/rope.h"


/* The ops of a layer up to the norm before its FFN. */


#define DSA_NODE_KEY        (DSA_CUDA_LATENT + DSA_CUDA_ROPE)


/* As engine/cuda/graphs.c chooses it. */

uint32_t
dsa_node_bound(const dsa_node_t *n)
{
    uint32_t  i, bound;

    bound = n->dense ? DSA_CUDA_BOUND : n->config.index_topk;

    for (i = 0; i + 1 < 4 && bound < n->step.keys; i++) {
        bound = i + 2 == 4 || bound * 4 >= n->context ? n->context
                                                      : bound * 4;
    }

    return bound;
}


static size_t
dsa_node_score_ld(const dsa_node_t *n)
{
    uint32_t  keys;

    keys = n->step.prefill ? n->step.start + n->step.tokens
                           : dsa_node_bound(n);

    return ((size_t) keys + 63) & ~(size_t) 63;
}


static int
dsa_node_norm(dsa_node_t *n, const float *weight)
{
    return dsa_cuda_add_rmsnorm(n->work.y, &n->work.y8, n->work.x,
                                n->work.residual, n->sum, weight,
                                n->step.tokens, n->config.hidden_size,
                                n->config.rms_norm_eps,
                                (int) n->config.ue8m0, n->b.stream);
}


static int
dsa_node_input_norm(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_norm(n, l->input_norm);
}


static int
dsa_node_qkv_a(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    dsa_fp8_weight_t  w;

    w = l->qkv_a.fp8;

    if (!n->own && !n->dense) {
        w.rows = n->weights.at_kv + DSA_NODE_KEY;
    }

    return dsa_cuda_gemm_fp8(n->gemm, n->work.a, l->qkv_a.rows, &n->work.y8,
                             &w, n->step.tokens, n->b.stream);
}


static int
dsa_node_q_norm(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_rmsnorm(NULL, 0, &n->work.qr8, n->work.a, l->qkv_a.rows,
                            l->q_norm, n->step.tokens, l->q_b.cols,
                            n->config.latent_norm_eps, (int) n->config.ue8m0,
                            n->b.stream);
}


static int
dsa_node_q_b(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_gemm_fp8(n->gemm, n->work.q, l->q_b.rows, &n->work.qr8,
                             &l->q_b.fp8, n->step.tokens, n->b.stream);
}


void
dsa_node_cache(const dsa_node_t *n, dsa_cuda_cache_t *cache)
{
    uint32_t  layer;

    layer = n->set * 10 % n->config.num_hidden_layers;
    layer = n->dense ? layer : n->config.layer[layer].from;

    cache->base = (uint8_t *) n->page + n->cache.layer[layer];
    cache->page = n->cache.page;
    cache->keys = n->cache.keys;
    cache->pages = n->pages;
    cache->bf16 = n->kv_bf16;
}


static int
dsa_node_cache_write(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t          ld;
    dsa_cuda_cache_t  cache;

    ld = l->qkv_a.rows;
    dsa_node_cache(n, &cache);

    return dsa_cuda_cache_write(&cache, n->input.slot,
                                n->work.a + n->weights.at_kv, ld, l->kv_norm,
                                n->config.latent_norm_eps,
                                n->own && !n->dense
                                ? n->work.a + n->weights.at_k : NULL, ld,
                                l->k_norm,
                                l->k_bias, n->config.index_norm_eps, n->rope,
                                n->input.position,
                                (int) n->config.index_rope_interleaved,
                                n->step.tokens, n->b.stream);
}


static int
dsa_node_index_q(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_gemm_fp8(n->gemm, n->work.index_q, l->index_q.rows,
                             &n->work.qr8, &l->index_q.fp8, n->step.tokens,
                             n->b.stream);
}


static int
dsa_node_index_w(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  heads, hidden;

    heads = dsa_cuda_index_heads(&n->config);
    hidden = n->config.hidden_size;

    return dsa_cuda_gemm_bf16(n->gemm, n->work.index_w, heads, 1, n->work.y,
                              hidden, l->index_w, hidden, n->step.tokens,
                              heads, hidden, n->b.stream);
}


static int
dsa_node_index_query(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_index_query(n->work.index_q8, n->work.index_w8,
                                n->work.index_q, n->work.index_w,
                                n->index_constant, n->rope, n->input.position,
                                (int) n->config.index_rope_interleaved,
                                n->step.tokens,
                                dsa_cuda_index_heads(&n->config),
                                n->b.stream);
}


/* The scores of all decode tokens of a node fit the memory for them. */

static int
dsa_node_score(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    dsa_cuda_cache_t  cache;

    dsa_node_cache(n, &cache);

    return dsa_cuda_index_score_decode(&n->b.state, n->work.score,
                                       dsa_node_score_ld(n), n->work.index_q8,
                                       n->work.index_w8, &cache,
                                       n->input.pages, n->ld_pages,
                                       n->input.keys, n->step.tokens,
                                       dsa_node_bound(n),
                                       dsa_cuda_index_heads(&n->config),
                                       n->b.stream);
}


static int
dsa_node_topk(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_topk(n->work.pick, n->work.pick_slot, n->work.n_pick,
                         n->work.score, dsa_node_score_ld(n), n->input.keys,
                         n->input.pages, n->ld_pages, NULL, n->step.tokens,
                         n->config.index_topk, dsa_node_bound(n),
                         n->b.stream);
}


/* Scores and selection of a prompt's tokens, as many at a time as fit. */

static int
dsa_node_select(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    size_t            ld;
    uint32_t          i, end, count, heads, topk;
    uint64_t          most;
    dsa_cuda_work_t  *w;
    dsa_cuda_cache_t  cache;

    w = &n->work;
    ld = dsa_node_score_ld(n);
    end = n->step.start + n->step.tokens;
    most = DSA_CUDA_SCORE_BYTES / (ld * sizeof(float));
    heads = dsa_cuda_index_heads(&n->config);
    topk = n->config.index_topk;

    dsa_node_cache(n, &cache);

    for (i = 0; i < n->step.tokens; i += count) {
        count = n->step.tokens - i;
        count = most < count ? (uint32_t) most : count;

        if (n->step.start + i + count > topk) {
            dsa_cuda_try(dsa_cuda_index_score(&n->b.state, w->score, ld,
                                              w->index_q8 + (uint64_t) i
                                              * heads * DSA_CUDA_INDEX,
                                              w->index_w8
                                              + (uint64_t) i * heads,
                                              &cache, n->input.pages,
                                              n->step.start + i, count, heads,
                                              n->b.stream));
        }

        dsa_cuda_try(dsa_cuda_topk(w->pick + (uint64_t) i * topk,
                                   w->pick_slot + (uint64_t) i * topk,
                                   w->n_pick + i, w->score, ld,
                                   n->input.keys + i, n->input.pages, 0, NULL,
                                   count, topk, end, n->b.stream));
    }

    return 0;
}


static int
dsa_node_absorb_some(dsa_node_t *n, const dsa_cuda_layer_t *l, uint32_t row,
    uint32_t count)
{
    uint32_t     nope, width;
    dsa_bf16_t  *q;

    nope = n->shape->nope;
    width = nope + DSA_CUDA_ROPE;
    q = n->work.q + (uint64_t) row * n->heads * width;

    return dsa_cuda_gemm_heads(n->gemm, n->work.q_latent,
                               (size_t) n->heads * DSA_NODE_KEY, DSA_NODE_KEY,
                               q, (size_t) n->heads * width, width,
                               l->kv_b_bf16, DSA_CUDA_LATENT,
                               (size_t) (nope + n->shape->v)
                               * DSA_CUDA_LATENT, 1, n->heads, count,
                               DSA_CUDA_LATENT, nope, n->b.stream);
}


static int
dsa_node_rotate_some(dsa_node_t *n, uint32_t row, uint32_t count)
{
    uint32_t  width;

    width = n->shape->nope + DSA_CUDA_ROPE;

    return dsa_cuda_rope_query(n->work.q_latent, DSA_NODE_KEY,
                               DSA_CUDA_LATENT,
                               n->work.q + (uint64_t) row * n->heads * width,
                               width, n->rope, n->input.position + row, count,
                               n->heads, n->b.stream);
}


static int
dsa_node_expand_some(dsa_node_t *n, const dsa_cuda_layer_t *l, uint32_t row,
    uint32_t count)
{
    uint32_t  nope, v;

    nope = n->shape->nope;
    v = n->shape->v;

    return dsa_cuda_gemm_heads(n->gemm,
                               n->work.o + (uint64_t) row * n->heads * v,
                               (size_t) n->heads * v, v, n->work.u,
                               (size_t) n->heads * DSA_CUDA_LATENT,
                               DSA_CUDA_LATENT,
                               l->kv_b_bf16 + (size_t) nope * DSA_CUDA_LATENT,
                               DSA_CUDA_LATENT,
                               (size_t) (nope + v) * DSA_CUDA_LATENT, 0,
                               n->heads, count, v, DSA_CUDA_LATENT,
                               n->b.stream);
}


static int
dsa_node_absorb(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_absorb_some(n, l, 0, n->step.tokens);
}


static int
dsa_node_rotate(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_rotate_some(n, 0, n->step.tokens);
}


static int
dsa_node_attend(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    dsa_cuda_cache_t  cache;

    dsa_node_cache(n, &cache);

    return dsa_cuda_attention_decode(&n->b.state, n->work.u, n->work.q_latent,
                                     &cache, n->work.pick_slot,
                                     n->config.index_topk, n->work.n_pick,
                                     n->step.tokens, n->heads,
                                     n->config.index_topk, n->attention_scale,
                                     n->work.decode_work, n->b.stream);
}


static int
dsa_node_expand(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_expand_some(n, l, 0, n->step.tokens);
}


static int
dsa_node_latents(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    dsa_cuda_cache_t  cache;

    dsa_node_cache(n, &cache);

    return dsa_cuda_cache_latents(n->work.latents, &cache, n->input.pages,
                                  n->step.start + n->step.tokens,
                                  n->b.stream);
}


static int
dsa_node_absorbed(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t          i, count, topk;
    dsa_cuda_work_t  *w;

    w = &n->work;
    topk = n->config.index_topk;

    for (i = 0; i < n->step.tokens; i += count) {
        count = n->step.tokens - i;
        count = count < DSA_CUDA_ABSORB_TOKENS ? count
                                               : DSA_CUDA_ABSORB_TOKENS;

        dsa_cuda_try(dsa_node_absorb_some(n, l, i, count));
        dsa_cuda_try(dsa_node_rotate_some(n, i, count));
        dsa_cuda_try(dsa_cuda_attention_prefill(&n->b.state, w->u,
                                                w->q_latent, w->latents,
                                                n->step.start
                                                + n->step.tokens,
                                                w->pick + (uint64_t) i * topk,
                                                topk, w->n_pick + i, count,
                                                n->heads, n->attention_scale,
                                                n->b.stream));
        dsa_cuda_try(dsa_node_expand_some(n, l, i, count));
    }

    return 0;
}


static int
dsa_node_mask(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  end;

    end = n->step.start + n->step.tokens;

    return dsa_cuda_attention_mask(n->work.mask, (end + 31) / 32, n->work.pick,
                                   n->config.index_topk, n->work.n_pick,
                                   n->step.tokens, n->b.stream);
}


static int
dsa_node_kv_b(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  end;

    end = n->step.start + n->step.tokens;
    n->work.latents8.ld = dsa_cuda_ld(end);

    dsa_cuda_try(dsa_cuda_fp8_quantize(&n->work.latents8, n->work.latents,
                                       DSA_NODE_KEY, end, DSA_CUDA_LATENT, 1,
                                       n->b.stream));

    return dsa_cuda_gemm_fp8(n->gemm, n->work.kv, l->kv_b.rows,
                             &n->work.latents8, &l->kv_b.fp8, end, n->b.stream);
}


static int
dsa_node_mha(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  end, width;

    end = n->step.start + n->step.tokens;
    width = n->shape->nope + DSA_CUDA_ROPE;

    dsa_cuda_try(dsa_cuda_rope_query(n->work.q, width, n->shape->nope,
                                     n->work.q, width, n->rope,
                                     n->input.position, n->step.tokens,
                                     n->heads, n->b.stream));

    return dsa_cuda_attention_heads(&n->b.state, n->shape, n->work.o,
                                    n->work.q, n->work.kv, n->work.latents,
                                    n->step.indexed ? n->work.mask : NULL,
                                    (end + 31) / 32, n->step.start,
                                    n->step.tokens, n->heads,
                                    n->attention_scale, n->b.stream);
}


static int
dsa_node_o_quantize(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_fp8_quantize(&n->work.o8, n->work.o, l->o.cols,
                                 n->step.tokens, l->o.cols, 1, n->b.stream);
}


static int
dsa_node_o(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_gemm_fp8(n->gemm, n->work.x, l->o.rows, &n->work.o8,
                             &l->o.fp8, n->step.tokens, n->b.stream);
}


static int
dsa_node_post_norm(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_norm(n, l->post_norm);
}


int
dsa_node_select_all(dsa_node_t *n)
{
    uint32_t  topk;

    topk = n->config.index_topk;

    return dsa_cuda_topk(n->work.pick, n->work.pick_slot, n->work.n_pick,
                         n->work.score, topk, n->input.keys, n->input.pages,
                         n->ld_pages, NULL, n->step.tokens, topk, topk,
                         n->b.stream);
}


const dsa_node_op_t  dsa_node_attention_ops[] = {
    { "norm", 0, dsa_node_input_norm },
    { "q_a, kv_a, index k", 0, dsa_node_qkv_a },
    { "norm of q", 0, dsa_node_q_norm },
    { "q_b", 0, dsa_node_q_b },
    { "cache write", 0, dsa_node_cache_write },
    { "index q", DSA_NODE_IF_INDEXED | DSA_NODE_IF_OWN,
      dsa_node_index_q },
    { "index weights", DSA_NODE_IF_INDEXED | DSA_NODE_IF_OWN,
      dsa_node_index_w },
    { "index query", DSA_NODE_IF_INDEXED | DSA_NODE_IF_OWN,
      dsa_node_index_query },
    { "index scores",
      DSA_NODE_IF_DECODE | DSA_NODE_IF_INDEXED | DSA_NODE_IF_OWN,
      dsa_node_score },
    { "top-k", DSA_NODE_IF_DECODE | DSA_NODE_IF_INDEXED | DSA_NODE_IF_OWN,
      dsa_node_topk },
    { "absorb", DSA_NODE_IF_DECODE, dsa_node_absorb },
    { "rotate", DSA_NODE_IF_DECODE, dsa_node_rotate },
    { "sparse attention", DSA_NODE_IF_DECODE | DSA_NODE_IF_SPARSE,
      dsa_node_attend },
    { "dense attention", DSA_NODE_IF_DECODE | DSA_NODE_IF_DENSE,
      dsa_node_dense_decode },
    { "expand", DSA_NODE_IF_DECODE, dsa_node_expand },
    { "index scores, top-k",
      DSA_NODE_IF_PREFILL | DSA_NODE_IF_ABSORBED | DSA_NODE_IF_OWN,
      dsa_node_select },
    { "index scores, top-k",
      DSA_NODE_IF_MHA | DSA_NODE_IF_INDEXED | DSA_NODE_IF_OWN,
      dsa_node_select },
    { "mask", DSA_NODE_IF_MHA | DSA_NODE_IF_INDEXED, dsa_node_mask },
    { "latents", DSA_NODE_IF_PREFILL | DSA_NODE_IF_SPARSE, dsa_node_latents },
    { "absorb, attention, expand",
      DSA_NODE_IF_PREFILL | DSA_NODE_IF_ABSORBED, dsa_node_absorbed },
    { "kv_b", DSA_NODE_IF_MHA | DSA_NODE_IF_SPARSE, dsa_node_kv_b },
    { "multi-head attention", DSA_NODE_IF_MHA | DSA_NODE_IF_SPARSE,
      dsa_node_mha },
    { "latents, kv_b, multi-head attention",
      DSA_NODE_IF_MHA | DSA_NODE_IF_DENSE, dsa_node_dense_prompt },
    { "quantize", 0, dsa_node_o_quantize },
    { "o", 0, dsa_node_o },
    { "norm", 0, dsa_node_post_norm },
    { NULL, 0, NULL }
};
