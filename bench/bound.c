
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "bench/bound.h"
#include "kernels/core/cuda.h"
#include "kernels/core/int4.h"


#define DSA_BOUND_KEY       (DSA_CUDA_LATENT + DSA_CUDA_ROPE)
#define DSA_BOUND_INDEX     (DSA_CUDA_INDEX + sizeof(float))    /* bytes */

/* Bytes of a weight, with its part of the group's scale. */

#define DSA_BOUND_INT4      (0.5 + (double) sizeof(dsa_bf16_t)                \
                                   / DSA_INT4_GROUP)


static void dsa_bound_layer(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, const dsa_layer_config_t *layer);
static void dsa_bound_attention(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, int own);
static void dsa_bound_decode(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, double heads, int own);
static void dsa_bound_prefill(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, double heads, int own);
static void dsa_bound_moe(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step);


/* The columns of a head's query. */

static double
dsa_bound_query(const dsa_model_config_t *s)
{
    return s->qk_nope_head_dim + DSA_CUDA_ROPE;
}


/* Ranks that share the heads, widths and the vocabulary. */

static double
dsa_bound_parts(const dsa_bound_step_t *step)
{
    return step->attention == DSA_ATTENTION_TENSOR ? step->ranks : 1;
}


/* Products of rows rows with weights weights, of which read are read. */

static void
dsa_bound_rows(dsa_bound_t *b, const dsa_model_config_t *s,
    dsa_matrices_e kind, double rows, double weights, double read)
{
    switch (s->format[kind]) {

    case DSA_FORMAT_FP8:
        b->bytes += read;
        b->fp8 += 2 * rows * weights;
        break;

    case DSA_FORMAT_INT4:
        b->bytes += read * DSA_BOUND_INT4;
        b->fp8 += 2 * rows * weights;
        break;

    case DSA_FORMAT_FLOAT:
        b->bytes += 2 * read;
        b->bf16 += 2 * rows * weights;
        break;
    }
}


/* A product of the step's tokens with n weights. */

static void
dsa_bound_product(dsa_bound_t *b, const dsa_model_config_t *s,
    dsa_matrices_e kind, const dsa_bound_step_t *step, double n)
{
    dsa_bound_rows(b, s, kind, step->tokens, n, n);
}


/*
 * A sum over all ranks of a value of cols bf16 for each token.  A rank receives
 * at least its part of it from each other rank, and then the sums of theirs.
 */

static void
dsa_bound_sum(dsa_bound_t *b, const dsa_bound_step_t *step, double cols)
{
    double  parts;

    parts = dsa_bound_parts(step);
    b->link += 2 * (parts - 1) / parts * step->tokens * cols * 2;
}


void
dsa_bound_layers(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, uint32_t first, uint32_t end)
{
    uint32_t  i;

    for (i = first; i < end; i++) {
        dsa_bound_layer(b, s, step, &s->layer[i < s->num_hidden_layers ? i
                                              : s->num_hidden_layers - 1]);
    }
}


void
dsa_bound_draft(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step)
{
    double  n;

    n = 2.0 * s->hidden_size * s->hidden_size;
    b->bytes += 2 * n;
    b->bf16 += 2 * step->tokens * n;

    dsa_bound_layer(b, s, step, &s->draft);
    dsa_bound_head(b, s, step, step->tokens);
}


static void
dsa_bound_layer(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, const dsa_layer_config_t *layer)
{
    dsa_bound_attention(b, s, step, layer->selection == DSA_SELECTION_OWN);
    dsa_bound_sum(b, step, s->hidden_size);

    if (layer->moe) {
        dsa_bound_moe(b, s, step);

    } else {
        dsa_bound_product(b, s, DSA_MATRICES_DENSE, step,
                          3.0 * s->hidden_size * s->intermediate_size
                          / dsa_bound_parts(step));
    }

    dsa_bound_sum(b, step, s->hidden_size);
}


/* own: the layer has an indexer. */

static void
dsa_bound_attention(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, int own)
{
    double  end, heads, hidden, q_in, q_lora;

    heads = s->num_attention_heads / dsa_bound_parts(step);
    hidden = s->hidden_size;
    q_lora = s->q_lora_rank;
    q_in = q_lora > 0 ? q_lora : hidden;
    end = step->prefill ? step->start + step->tokens : step->start;

    dsa_bound_product(b, s, DSA_MATRICES_ATTENTION, step,
                      hidden * (q_lora + DSA_BOUND_KEY));
    dsa_bound_product(b, s, DSA_MATRICES_ATTENTION, step,
                      q_in * heads * dsa_bound_query(s));
    dsa_bound_product(b, s, DSA_MATRICES_ATTENTION, step,
                      heads * s->v_head_dim * hidden);

    if (own) {
        dsa_bound_product(b, s, DSA_MATRICES_INDEXER, step,
                          hidden * DSA_CUDA_INDEX);
    }

    /* without more keys than are selected, there is nothing to score */

    if (own && end > s->index_topk) {
        dsa_bound_product(b, s, DSA_MATRICES_INDEXER, step,
                          q_lora * s->index_n_heads * DSA_CUDA_INDEX);
        b->bytes += 2.0 * hidden * s->index_n_heads;
        b->bf16 += 2.0 * step->tokens * hidden * s->index_n_heads;
    }

    if (step->prefill) {
        dsa_bound_prefill(b, s, step, heads, own);

    } else {
        dsa_bound_decode(b, s, step, heads, own);
    }
}


/* Absorbed MQA of the sequences' last tokens; kv_b is used in bf16. */

static void
dsa_bound_decode(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, double heads, int own)
{
    double  keys, kv_b;

    keys = dsa_model_config_topk(s);
    keys = step->start < keys ? step->start : keys;
    kv_b = heads * (s->qk_nope_head_dim + s->v_head_dim) * DSA_CUDA_LATENT;

    b->bytes += 2 * kv_b + step->sequences * keys * step->record;
    b->bf16 += 2 * step->tokens
               * (kv_b + keys * heads * (DSA_BOUND_KEY + DSA_CUDA_LATENT));

    if (own && step->start > s->index_topk) {
        b->bytes += step->sequences * step->start * DSA_BOUND_INDEX;
        b->fp8 += 2 * step->tokens * step->start * s->index_n_heads
                  * DSA_CUDA_INDEX;
    }
}


/*
 * Tokens of one sequence.  The pairs of a token and a selected key are computed
 * in the cheaper form; kv_b is multiplied with each token once in either.
 */

static void
dsa_bound_prefill(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, double heads, int own)
{
    double  n, k, end, all, below, above, selected, absorbed;

    n = step->tokens;
    k = dsa_model_config_topk(s);
    end = step->start + n;

    all = n * (step->start + end) / 2;

    /* tokens before position k select all keys, the others k of them */

    below = end < k ? end : k;
    below = below > step->start ? below - step->start : 0;
    above = n - below;
    selected = below * (step->start + below / 2) + above * k;

    dsa_bound_product(b, s, DSA_MATRICES_ATTENTION, step,
                      heads * (s->qk_nope_head_dim + s->v_head_dim)
                      * DSA_CUDA_LATENT);

    all *= 2 * heads * (dsa_bound_query(s) + s->v_head_dim);
    absorbed = selected * 2 * heads * (DSA_BOUND_KEY + DSA_CUDA_LATENT);

    b->bf16 += all < absorbed ? all : absorbed;
    b->bytes += end * step->record;

    if (own && end > k) {
        b->bytes += end * DSA_BOUND_INDEX;
        b->fp8 += (above * (end + end - above) / 2) * 2 * s->index_n_heads
                  * DSA_CUDA_INDEX;
    }
}


static void
dsa_bound_moe(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step)
{
    double  parts, hidden, expert, foreign;

    parts = dsa_bound_parts(step);
    hidden = s->hidden_size;
    expert = 3.0 * hidden * s->moe_intermediate_size / parts;

    b->bytes += 2.0 * hidden * s->n_routed_experts;
    b->bf16 += 2.0 * step->tokens * hidden * s->n_routed_experts;

    dsa_bound_product(b, s, DSA_MATRICES_SHARED, step,
                      expert * s->n_shared_experts);
    dsa_bound_rows(b, s, DSA_MATRICES_EXPERTS, step->load.pairs, expert,
                   expert * step->load.experts);

    /*
     * Tokens of other ranks arrive in FP8 with their scales.  As many sums
     * arrive in bf16, because all ranks have equally many tokens.
     */

    if (step->attention == DSA_ATTENTION_DATA) {
        foreign = step->load.tokens * (step->ranks - 1) / step->ranks;
        b->link += foreign * hidden * (1 + sizeof(float) / 128.0 + 2);
    }
}


void
dsa_bound_head(dsa_bound_t *b, const dsa_model_config_t *s,
    const dsa_bound_step_t *step, double samples)
{
    double  n, parts;

    parts = dsa_bound_parts(step);
    n = (double) s->vocab_size * s->hidden_size / parts;

    b->bytes += 2 * n;
    b->bf16 += 2 * samples * n;

    if (parts > 1) {
        dsa_bound_sum(b, step, s->hidden_size);     /* embeddings */
        b->link += samples * s->vocab_size * sizeof(float) * (parts - 1)
                   / parts;
    }
}


double
dsa_bound_seconds(const dsa_bound_t *b, const char **limit)
{
    double  t, products, link;

    t = b->bytes * 1e-9 / DSA_BENCH_HBM;
    products = b->fp8 * 1e-12 / DSA_BENCH_FP8
               + b->bf16 * 1e-12 / DSA_BENCH_BF16;
    link = b->link * 1e-9 / DSA_BENCH_LINK;

    *limit = "HBM";

    if (products > t) {
        t = products;
        *limit = "products";
    }

    if (link > t) {
        t = link;
        *limit = "link";
    }

    return t;
}
