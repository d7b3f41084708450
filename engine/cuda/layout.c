
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cuda/rank.h"


/* Rows behind the last one that a product may read or write. */
#define DSA_LAYOUT_SPARE    16

#define DSA_LAYOUT_ALIGN    255ULL      /* 256 bytes */


/* A bump allocator. */

typedef struct {
    uintptr_t           base;
    uint64_t            used;
} dsa_layout_t;


/* Rows of the arrays, DSA_LAYOUT_SPARE included. */

typedef struct {
    uint64_t            tokens;
    uint64_t            samples;
    uint64_t            absorbed;
    uint64_t            mha;
    uint64_t            gathered;
    uint64_t            picks;              /* columns of a selection */
} dsa_layout_rows_t;


/* Places an array of n elements; n bytes; FP8 rows with their scales. */

#define dsa_layout(l, p, n)                                                   \
    p = dsa_layout_bytes(l, (uint64_t) (n) * sizeof(*(p)))

#define dsa_layout_fp8(l, v, rows, cols)                                      \
    (v).ld = ((rows) + 3) & ~3ULL;                                            \
    dsa_layout(l, (v).q, (rows) * (cols));                                    \
    dsa_layout(l, (v).scale, (v).ld * ((cols) / 128))


/*
 * FP8 or BF16 rows, by the format of the weights that they multiply: FP8 and
 * INT4, or BF16.
 */

#define dsa_layout_operand(l, s, kind, v8, v, rows, cols)                     \
    if ((s)->format[kind] != DSA_FORMAT_FLOAT) {                              \
        dsa_layout_fp8(l, v8, rows, cols);                                    \
    } else {                                                                  \
        dsa_layout(l, v, (rows) * (cols));                                    \
    }


static void dsa_layout_net(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows);
static void dsa_layout_sparse(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows);
static void dsa_layout_dense(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows);


static void *
dsa_layout_bytes(dsa_layout_t *l, uint64_t bytes)
{
    void  *p;

    p = (void *) (l->base + l->used);
    l->used += (bytes + DSA_LAYOUT_ALIGN) & ~DSA_LAYOUT_ALIGN;

    return p;
}


/* Places the arrays for drafts.  Masks, biases and history are the step's. */

static void
dsa_layout_speculation(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t                 seqs;
    dsa_cuda_input_t        *in;
    dsa_cuda_speculation_t  *spec;

    spec = &rank->spec;
    seqs = (uint64_t) rank->max_seqs + DSA_LAYOUT_SPARE;
    spec->known = rank->input;
    spec->later = rank->input;

    in = &spec->known;
    dsa_layout(l, in->token, rows->tokens);
    dsa_layout(l, in->position, rows->tokens);
    dsa_layout(l, in->slot, rows->tokens);
    dsa_layout(l, in->keys, rows->tokens);
    dsa_layout(l, in->left, rows->tokens);
    dsa_layout(l, in->feed, rows->tokens);
    dsa_layout(l, in->last, rows->samples);
    dsa_layout(l, in->sampling, rows->samples);
    dsa_layout(l, spec->from, rows->tokens);
    dsa_layout(l, spec->owner, rows->tokens);
    dsa_layout(l, spec->seq, seqs);
    spec->end = (void *) (l->base + l->used);
    dsa_layout(l, in->pages, ((uint64_t) rank->max_samples + rank->max_seqs)
                             * rank->ld_pages);

    in = &spec->later;
    dsa_layout(l, in->token, seqs);
    dsa_layout(l, in->position, seqs);
    dsa_layout(l, in->slot, seqs);
    dsa_layout(l, in->keys, seqs);
    dsa_layout(l, in->last, seqs);
    dsa_layout(l, in->sampling, seqs);
    dsa_layout(l, in->pages, seqs * rank->ld_pages);

    dsa_layout(l, spec->accepted, seqs);
    dsa_layout(l, spec->state, seqs);
    dsa_layout(l, spec->source, seqs);
    dsa_layout(l, spec->row, seqs);
    dsa_layout(l, spec->pick, seqs * rows->picks);
    dsa_layout(l, spec->pick_slot, seqs * rows->picks);
    dsa_layout(l, spec->n_pick, seqs);
    dsa_layout(l, spec->sample, rows->samples);
    dsa_layout(l, spec->next, seqs * DSA_DRAFT_NEXT);
}


/* Places the arrays that are used during a whole step or longer. */

static void
dsa_layout_step(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t           hidden;
    dsa_cuda_work_t   *w;
    dsa_cuda_input_t  *in;

    w = &rank->work;
    in = &rank->input;
    hidden = rank->config.hidden_size;

    dsa_layout(l, in->token, rows->tokens);
    dsa_layout(l, in->position, rows->tokens);
    dsa_layout(l, in->slot, rows->tokens);
    dsa_layout(l, in->keys, rows->tokens);
    dsa_layout(l, in->left, rows->tokens);
    dsa_layout(l, in->table, rows->tokens);
    dsa_layout(l, in->feed, rows->tokens);
    dsa_layout(l, in->last, rows->samples);
    dsa_layout(l, in->sampling, rows->samples);
    in->end = (void *) (l->base + l->used);
    dsa_layout(l, in->history, (uint64_t) rank->max_seqs
                               * DSA_CUDA_HISTORY(rank));
    dsa_layout(l, in->mask, (rank->max_samples
                             + (rank->drafts ? (uint64_t) rank->max_seqs : 0))
                            * dsa_mask_words(rank->config.vocab_size));
    dsa_layout(l, in->bias, (uint64_t) rank->max_samples
                            * DSA_SAMPLE_MAX_BIAS);
    dsa_layout(l, in->pages, (uint64_t) rank->max_samples * rank->ld_pages);
    dsa_layout(l, rank->sample, rows->samples);
    rank->ld_routes = rows->tokens * rank->config.num_experts_per_tok;
    dsa_layout(l, rank->routes,
               rank->ld_routes * (dsa_model_config_moe_layers(&rank->config)
                                  + rank->drafts));
    dsa_layout(l, rank->rope, (uint64_t) rank->context * DSA_CUDA_ROPE);
    rank->gemm_work = dsa_layout_bytes(l, dsa_cuda_gemm_work());

    dsa_layout(l, w->x, rows->tokens * hidden);
    dsa_layout(l, w->residual, rows->tokens * hidden);
    dsa_layout(l, w->y, rows->tokens * hidden);

    if (memchr(rank->config.format, DSA_FORMAT_FP8, DSA_MATRICES) != NULL) {
        dsa_layout_fp8(l, w->y8, rows->tokens, hidden);
    }

    dsa_layout(l, w->pick, rows->tokens * rows->picks);
    dsa_layout(l, w->pick_slot, rows->tokens * rows->picks);
    dsa_layout(l, w->n_pick, rows->tokens);

    if (rank->drafts) {
        dsa_layout(l, w->hidden, rows->tokens * hidden);
        dsa_layout(l, w->draft_hidden, rows->tokens * hidden);
        dsa_layout(l, w->draft_in, rows->tokens * 2 * hidden);
        dsa_layout_speculation(l, rank, rows);
    }
}


/*
 * Places the arrays into which other ranks store.  They share no memory with
 * others, because a rank may be an exchange ahead of another one.
 */

static void
dsa_layout_shared(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t                   hidden, k;
    dsa_cuda_shared_t         *x;
    const dsa_model_config_t  *s;

    s = &rank->config;
    x = &rank->shared;
    hidden = s->hidden_size;
    k = s->num_experts_per_tok;

    if (rank->shard.ranks == 1) {
        return;
    }

    dsa_layout(l, x->state, 2);

    if (rank->shard.attention == DSA_ATTENTION_DATA) {
        if (s->format[DSA_MATRICES_EXPERTS] != DSA_FORMAT_FLOAT) {
            dsa_layout_fp8(l, x->x, rows->gathered, hidden);

        } else {
            x->x.q = dsa_layout_bytes(l, rows->gathered * hidden
                                         * sizeof(dsa_bf16_t));
        }

        dsa_layout(l, x->expert, rows->gathered * k);
        dsa_layout(l, x->weight, rows->gathered * k);
        dsa_layout(l, x->part, rows->gathered * hidden);
        dsa_layout(l, rank->input.peer_slot,
                   (uint64_t) rank->shard.ranks * rank->max_tokens);

        if (rank->net.on) {
            dsa_layout_net(l, rank, rows);
        }

    } else {
        x->reduce = dsa_layout_bytes(l,
                        dsa_cuda_exchange_part(rank->shard.ranks,
                                               rank->max_rows,
                                               s->hidden_size));
        dsa_layout(l, rank->work.vocab, rows->samples * s->vocab_size);
    }
}


/* Places the buffers from which NCCL sends, and the scales that it receives. */

static void
dsa_layout_net(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t                   hidden, k;
    dsa_cuda_net_t            *net;
    const dsa_model_config_t  *s;

    s = &rank->config;
    net = &rank->net;
    hidden = s->hidden_size;
    k = (uint64_t) rank->max_rows * s->num_experts_per_tok;

    if (s->format[DSA_MATRICES_EXPERTS] == DSA_FORMAT_FP8) {
        dsa_layout_fp8(l, net->x, rows->tokens, hidden);
        dsa_layout(l, net->scale, rank->shard.ranks * net->x.ld
                                  * (hidden / 128));

    } else {
        net->x.q = dsa_layout_bytes(l, rows->tokens * hidden
                                       * sizeof(dsa_bf16_t));
    }

    dsa_layout(l, net->expert, rank->shard.ranks * k);
    dsa_layout(l, net->weight, rank->shard.ranks * k);
    dsa_layout(l, net->part, rows->gathered * hidden);
}


static void
dsa_layout_attention(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t                   heads, nope, v, index, tokens;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &rank->work;
    s = &rank->config;
    heads = rank->heads;
    nope = s->qk_nope_head_dim;
    v = s->v_head_dim;
    index = dsa_cuda_index_heads(s);
    tokens = rows->tokens;

    dsa_layout(l, w->a, tokens * (s->q_lora_rank + 640ULL + DSA_CUDA_INDEX));
    dsa_layout_operand(l, s, DSA_MATRICES_ATTENTION, w->qr8, w->qr, tokens,
                       (uint64_t) s->q_lora_rank);
    dsa_layout(l, w->q, tokens * heads * (nope + DSA_CUDA_ROPE));
    dsa_layout(l, w->o, tokens * heads * v);

    if (s->format[DSA_MATRICES_ATTENTION] == DSA_FORMAT_FP8) {
        dsa_layout_fp8(l, w->o8, tokens, heads * v);
        dsa_layout_fp8(l, w->latents8, rows->mha, DSA_CUDA_LATENT);
    }

    dsa_layout(l, w->q_latent, rows->absorbed * heads
                               * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_layout(l, w->u, rows->absorbed * heads * DSA_CUDA_LATENT);
    dsa_layout(l, w->index_q, tokens * index * DSA_CUDA_INDEX);
    dsa_layout(l, w->index_q8, tokens * index * DSA_CUDA_INDEX);
    dsa_layout(l, w->index_w, tokens * index);
    dsa_layout(l, w->index_w8, tokens * index);
    dsa_layout(l, w->kv, rows->mha * heads * (nope + v));

    if (rank->dense) {
        dsa_layout_dense(l, rank, rows);
    } else {
        dsa_layout_sparse(l, rank, rows);
    }
}


static void
dsa_layout_sparse(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    size_t            bytes;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    bytes = dsa_cuda_attention_work(&rank->state, (uint32_t) rows->absorbed,
                                    rank->heads, rank->topk);

    w->score = dsa_layout_bytes(l, DSA_CUDA_SCORE_BYTES);
    w->decode_work = dsa_layout_bytes(l, bytes);
    dsa_layout(l, w->latents, ((uint64_t) rank->context + DSA_PAGE_TOKENS)
                              * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_layout(l, w->mask, rows->tokens * ((rank->mha_tokens + 31) / 32));
}


/* Only contexts of more than one part have results so far. */

static void
dsa_layout_dense(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    size_t            bytes;
    uint64_t          n;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    bytes = dsa_cuda_attention_dense_work((uint32_t) rows->absorbed,
                                          rank->heads, rank->context);
    n = rank->context > rank->mha_tokens ? rows->tokens * rank->heads : 0;

    w->decode_work = dsa_layout_bytes(l, bytes);
    dsa_layout(l, w->latents, rows->mha * (DSA_CUDA_LATENT + DSA_CUDA_ROPE));
    dsa_layout(l, w->part_sum, n * rank->config.v_head_dim);
    dsa_layout(l, w->part_norm, n * DSA_CUDA_HEADS_NORM);
}


static void
dsa_layout_ffn(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t                   k, hidden, inter, moe, shared, places, experts;
    uint64_t                   all;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &rank->work;
    s = &rank->config;
    k = s->num_experts_per_tok;
    hidden = s->hidden_size;
    all = s->n_routed_experts;
    experts = rank->experts;
    moe = s->moe_intermediate_size / rank->shard.width.of;
    shared = moe * s->n_shared_experts;
    inter = s->intermediate_size / rank->shard.width.of;
    inter = inter > shared ? inter : shared;

    places = (uint64_t) rank->round * k + experts * DSA_MOE_ALIGN;
    places = (places + DSA_MOE_ALIGN - 1) / DSA_MOE_ALIGN * DSA_MOE_ALIGN;

    if (s->format[DSA_MATRICES_EXPERTS] == DSA_FORMAT_INT4
        && s->expert_scales == DSA_SCALES_STORED)
    {
        dsa_layout_fp8(l, w->expert8, rows->tokens, hidden);
    }

    dsa_layout(l, w->logits, rows->tokens * all);
    dsa_layout(l, w->weight, rows->tokens * k);
    dsa_layout(l, w->plan.offset, experts + 1);
    dsa_layout(l, w->plan.count, experts);
    dsa_layout(l, w->plan.place, (rank->round + DSA_LAYOUT_SPARE) * k);
    dsa_layout(l, w->plan.row, places);
    dsa_layout_operand(l, s, DSA_MATRICES_EXPERTS, w->pair8, w->pair, places,
                       hidden);
    dsa_layout(l, w->pair_gu, places * 2 * moe);
    dsa_layout_operand(l, s, DSA_MATRICES_EXPERTS, w->pair_act8, w->pair_act,
                       places, moe);
    dsa_layout(l, w->pair_y, places * hidden);
    dsa_layout(l, w->gu, rows->tokens * 2 * inter);
    dsa_layout_operand(l, s, DSA_MATRICES_SHARED, w->act8, w->act,
                       rows->tokens, inter);
    dsa_layout(l, w->shared, rows->tokens * hidden);

    w->plan.places = (uint32_t) places;
    w->plan.align = DSA_MOE_ALIGN;
}


static void
dsa_layout_head(dsa_layout_t *l, dsa_cuda_rank_t *rank,
    const dsa_layout_rows_t *rows)
{
    uint64_t                   hidden;
    dsa_cuda_work_t           *w;
    const dsa_model_config_t  *s;

    w = &rank->work;
    s = &rank->config;
    hidden = s->hidden_size;

    dsa_layout(l, w->last_x, rows->samples * hidden);
    dsa_layout(l, w->last_residual, rows->samples * hidden);
    dsa_layout(l, w->last_y, rows->samples * hidden);
    dsa_layout(l, w->vocab_part, rows->samples * rank->shard.vocab.n);

    if (rank->shard.vocab.n == s->vocab_size) {
        w->vocab = w->vocab_part;
    }

    w->sample_work = dsa_layout_bytes(l,
                         dsa_cuda_sample_work(rank->max_samples,
                                              s->vocab_size));
}


uint64_t
dsa_cuda_layout(dsa_cuda_rank_t *rank, uintptr_t base)
{
    uint32_t           i, absorbed, decode;
    uint64_t           block, most;
    dsa_layout_t       l;
    dsa_layout_rows_t  rows;

    static void (*const part[])(dsa_layout_t *, dsa_cuda_rank_t *,
                                const dsa_layout_rows_t *) = {
        dsa_layout_attention,
        dsa_layout_ffn,
        dsa_layout_head
    };

    absorbed = rank->max_tokens < DSA_CUDA_ABSORB_TOKENS
               ? rank->max_tokens : DSA_CUDA_ABSORB_TOKENS;
    decode = rank->max_samples + (rank->drafts ? rank->max_seqs : 0);
    absorbed = absorbed < decode ? decode : absorbed;

    rows.tokens = rank->max_rows + DSA_LAYOUT_SPARE;
    rows.samples = rank->max_samples + DSA_LAYOUT_SPARE;
    rows.absorbed = absorbed + DSA_LAYOUT_SPARE;
    rows.mha = rank->mha_tokens + DSA_LAYOUT_SPARE;
    rows.picks = rank->dense ? 0 : rank->topk;
    rows.gathered = (uint64_t) rank->shard.ranks * rank->max_rows
                    + DSA_LAYOUT_SPARE;

    l.base = base;
    l.used = 0;

    dsa_layout_step(&l, rank, &rows);

    rank->exchange_size = l.used;
    dsa_layout_shared(&l, rank, &rows);
    rank->exchange_size = l.used - rank->exchange_size;

    /*
     * Each of these begins at the same byte, because they are never in use at
     * the same time.
     */

    block = l.used;
    most = block;

    for (i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        l.used = block;
        part[i](&l, rank, &rows);
        most = l.used > most ? l.used : most;
    }

    return most;
}
