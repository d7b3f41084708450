
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/rank.h"
#include "kernels/row/rope.h"


/*
 * Attention of models whose layers attend to all positions.  Prompts are
 * computed by MHA prefill, answers by absorbed MQA.
 */

static int dsa_dense_rows(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages, size_t ld_pages, const int32_t *left,
    uint32_t max_keys);
static int dsa_dense_prompt(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages);


int
dsa_cuda_dense(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_step_t *step)
{
    uint32_t               i;
    const int32_t         *pages;
    dsa_cuda_seq_t         decode;
    const dsa_cuda_seq_t  *s;

    /* the decode tokens, which are of several sequences */

    decode.first = 0;
    decode.start = 0;
    decode.n = step->decode;
    dsa_cuda_try(dsa_dense_rows(rank, layer, cache, &decode, rank->input.pages,
                                rank->ld_pages,
                                step->grouped ? rank->input.left : NULL,
                                step->max_keys));

    for (i = 0; i < step->n_seqs; i++) {
        s = &step->seq[i];
        pages = rank->input.pages + (uint64_t) s->table * rank->ld_pages;

        if (s->mha) {
            dsa_cuda_try(dsa_dense_prompt(rank, layer, cache, s, pages));

        } else {
            dsa_cuda_try(dsa_dense_rows(rank, layer, cache, s, pages, 0, NULL,
                                        s->start + s->n));
        }
    }

    return 0;
}


/*
 * Computes rows by absorbed MQA.  The draft layer has no entry at position 0,
 * to which no row may attend.
 */

static int
dsa_dense_rows(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages, size_t ld_pages, const int32_t *left,
    uint32_t max_keys)
{
    uint32_t                 i, n, row, hidden;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    l = &rank->weights.layer[layer];
    hidden = layer == rank->config.num_hidden_layers;

    for (i = 0; i < s->n; i += n) {
        row = s->first + i;
        n = s->n - i < DSA_CUDA_ABSORB_TOKENS ? s->n - i
                                              : DSA_CUDA_ABSORB_TOKENS;

        dsa_cuda_try(dsa_cuda_absorb(rank, l, row, n));
        dsa_cuda_try(dsa_cuda_attention_dense(&rank->state, w->u, w->q_latent,
                                              cache, pages + i * ld_pages,
                                              ld_pages, rank->input.keys + row,
                                              left != NULL ? left + i : NULL,
                                              n, rank->heads, hidden, max_keys,
                                              rank->attention_scale,
                                              w->decode_work, rank->stream));
        dsa_cuda_try(dsa_cuda_expand(rank, l, row, n));
    }

    return 0;
}


/* Computes tokens of a prompt by MHA prefill, mha_tokens keys at a time. */

static int
dsa_dense_prompt(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_cache_t *cache, const dsa_cuda_seq_t *s,
    const int32_t *pages)
{
    uint32_t          n, end, heads, width, first;
    uint64_t          row;
    dsa_bf16_t       *q;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    heads = rank->heads;
    width = rank->shape->nope + DSA_CUDA_ROPE;
    end = s->start + s->n;
    row = s->first;
    q = w->q + row * heads * width;

    dsa_cuda_try(dsa_cuda_rope_query(q, width, rank->shape->nope, q, width,
                                     rank->rope, rank->input.position + row,
                                     s->n, heads, rank->stream));

    for (first = 0; first < end; first += n) {
        n = end - first < rank->mha_tokens ? end - first : rank->mha_tokens;

        dsa_cuda_try(dsa_cuda_keys_values(rank, &rank->weights.layer[layer],
                                          cache,
                                          pages + first / DSA_PAGE_TOKENS, n));
        dsa_cuda_try(dsa_cuda_attention_heads_part(&rank->state, rank->shape,
                                                   w->o + row * heads
                                                   * rank->shape->v,
                                                   w->part_sum, w->part_norm, q,
                                                   w->kv, w->latents, first, n,
                                                   s->start, s->n, heads,
                                                   rank->attention_scale,
                                                   rank->stream));
    }

    return 0;
}
