
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "bench/node_ops.h"
#include "kernels/core/fp8.h"
#include "kernels/row/rope.h"


/*
 * The attention of a layer that attends to all positions, as
 * engine/cuda/dense.c computes it: absorbed MQA in decode, MHA prefill over
 * parts of the keys.
 */


int
dsa_node_dense_decode(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    dsa_cuda_cache_t  cache;

    dsa_node_cache(n, &cache);

    return dsa_cuda_attention_dense(&n->b.state, n->work.u, n->work.q_latent,
                                    &cache, n->input.pages, n->ld_pages,
                                    n->input.keys, NULL, n->step.tokens,
                                    n->heads, 0, dsa_node_bound(n),
                                    n->attention_scale, n->work.decode_work,
                                    n->b.stream);
}


/* Expands the latents of count keys from position first on. */

static int
dsa_node_dense_keys(dsa_node_t *n, const dsa_cuda_layer_t *l,
    const dsa_cuda_cache_t *cache, uint32_t first, uint32_t count)
{
    dsa_cuda_work_t  *w;

    w = &n->work;
    w->latents8.ld = dsa_cuda_ld(count);

    dsa_cuda_try(dsa_cuda_cache_latents(w->latents, cache,
                                        n->input.pages
                                        + first / DSA_PAGE_TOKENS, count,
                                        n->b.stream));
    dsa_cuda_try(dsa_cuda_fp8_quantize(&w->latents8, w->latents,
                                       DSA_CUDA_LATENT + DSA_CUDA_ROPE, count,
                                       DSA_CUDA_LATENT,
                                       cache->bf16 ? (int) n->config.ue8m0 : 1,
                                       n->b.stream));

    return dsa_cuda_gemm_fp8(n->gemm, w->kv, l->kv_b.rows, &w->latents8,
                             &l->kv_b.fp8, count, n->b.stream);
}


int
dsa_node_dense_prompt(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t          count, end, first, width;
    dsa_cuda_work_t  *w;
    dsa_cuda_cache_t  cache;

    w = &n->work;
    end = n->step.start + n->step.tokens;
    width = n->shape->nope + DSA_CUDA_ROPE;

    dsa_node_cache(n, &cache);

    dsa_cuda_try(dsa_cuda_rope_query(w->q, width, n->shape->nope, w->q, width,
                                     n->rope, n->input.position,
                                     n->step.tokens, n->heads, n->b.stream));

    for (first = 0; first < end; first += count) {
        count = end - first < DSA_CUDA_MHA_TOKENS ? end - first
                                                  : DSA_CUDA_MHA_TOKENS;

        dsa_cuda_try(dsa_node_dense_keys(n, l, &cache, first, count));
        dsa_cuda_try(dsa_cuda_attention_heads_part(&n->b.state, n->shape, w->o,
                                                   w->part_sum, w->part_norm,
                                                   w->q, w->kv, w->latents,
                                                   first, count, n->step.start,
                                                   n->step.tokens, n->heads,
                                                   n->attention_scale,
                                                   n->b.stream));
    }

    return 0;
}
