
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/cpu/parts.h"
#include "kernels/norm.h"
#include "kernels/rope.h"


static int dsa_model_work(dsa_model_t *m, dsa_err_t *err);
static uint64_t dsa_model_lay(dsa_model_t *m, uintptr_t base);
static void dsa_model_layout(dsa_cache_t *cache, const dsa_model_config_t *s,
    int served);
static int dsa_model_cache(dsa_model_t *m, uint64_t kv_memory,
    dsa_err_t *err);
static uint32_t dsa_model_check(const dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static void dsa_model_embed(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs, uint32_t rows);
static void dsa_model_tell_hidden(dsa_model_t *m, uint32_t layer,
    uint32_t rows);
static void dsa_model_head(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs, float *logits);


dsa_model_t *
dsa_model_open(const dsa_weights_t *weights, dsa_precision_e precision,
    uint64_t kv_memory, uint32_t max_rows, dsa_err_t *err)
{
    dsa_model_t               *m;
    dsa_rope_conf_t            rope;
    const dsa_model_config_t  *s;

    if (max_rows == 0) {
        (void) dsa_error(err, "a step of 0 rows was asked for, 1 or more "
                         "are accepted");
        return NULL;
    }

    m = calloc(1, sizeof(dsa_model_t));
    if (m == NULL) {
        (void) dsa_error(err, "no memory for a model");
        return NULL;
    }

    s = &weights->config;

    m->weights = weights;
    m->config = s;
    m->served = (precision == DSA_SERVED);
    m->max_rows = max_rows;

    rope.theta = s->rope_theta;
    rope.factor = s->yarn_factor;
    rope.beta_fast = s->yarn_beta_fast;
    rope.beta_slow = s->yarn_beta_slow;
    rope.mscale = s->yarn_mscale;
    rope.mscale_all_dim = s->yarn_mscale_all_dim;
    rope.original = s->yarn_original_max_position;

    m->magnitude = dsa_rope_magnitude(&rope);

    m->attention.heads = s->num_attention_heads;
    m->attention.nope = s->qk_nope_head_dim;
    m->attention.rope = s->qk_rope_head_dim;
    m->attention.v = s->v_head_dim;
    m->attention.latent = s->kv_lora_rank;
    m->attention.scale = (float) (dsa_rope_softmax(&rope)
                                  / sqrt(s->qk_nope_head_dim
                                         + s->qk_rope_head_dim));

    m->router.experts = s->n_routed_experts;
    m->router.groups = s->n_group;
    m->router.groups_kept = s->topk_group;
    m->router.k = s->num_experts_per_tok;
    m->router.normalize = s->norm_topk_prob;
    m->router.scale = s->routed_scaling_factor;

    m->topk = s->index_topk < s->max_position_embeddings
              ? s->index_topk : s->max_position_embeddings;

    /*
     * One thread: OpenBLAS cuts a product by the number of threads, and sums
     * would round differently on machines with other numbers of cores.
     * A machine's cores are used by its replicas.
     */

    openblas_set_num_threads(1);

    if (dsa_model_weights(m, err) != DSA_OK
        || dsa_model_cache(m, kv_memory, err) != DSA_OK
        || dsa_model_work(m, err) != DSA_OK)
    {
        dsa_model_close(m);
        return NULL;
    }

    dsa_rope_frequencies(m->frequency, s->qk_rope_head_dim, &rope);

    return m;
}


void
dsa_model_close(dsa_model_t *m)
{
    if (m == NULL) {
        return;
    }

    if (m->work_memory != NULL) {
        (void) munmap(m->work_memory, m->work_size);
    }

    if (m->page != NULL) {
        (void) munmap(m->page, m->page_size);
    }

    dsa_model_weights_free(m);
    free(m);
}


static void
dsa_model_layout(dsa_cache_t *cache, const dsa_model_config_t *s, int served)
{
    dsa_cache_layout(cache, served, s->num_hidden_layers, s->kv_lora_rank,
                     s->qk_rope_head_dim, s->index_head_dim);
}


/* Pages are the kernel's zero page until they are written. */

static int
dsa_model_cache(dsa_model_t *m, uint64_t kv_memory, dsa_err_t *err)
{
    uint64_t  pages;

    dsa_model_layout(&m->cache, m->config, m->served);

    pages = kv_memory / m->cache.page;

    if (pages == 0) {
        return dsa_error(err, "%llu bytes of kv_memory hold no page: at "
                         "least %llu, for %u tokens, are accepted",
                         (unsigned long long) kv_memory,
                         (unsigned long long) m->cache.page,
                         DSA_CACHE_TOKENS);
    }

    m->pages = pages < UINT32_MAX ? (uint32_t) pages : UINT32_MAX;
    m->page_size = m->pages * m->cache.page;
    m->page = mmap(NULL, m->page_size, PROT_READ|PROT_WRITE,
                   MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (m->page == MAP_FAILED) {
        m->page = NULL;
        return dsa_error(err, "no memory for %u cache pages of %llu bytes",
                         m->pages, (unsigned long long) m->cache.page);
    }

    return DSA_OK;
}


static int
dsa_model_work(dsa_model_t *m, dsa_err_t *err)
{
    m->work_size = dsa_model_lay(m, 0);
    m->work_memory = mmap(NULL, m->work_size, PROT_READ|PROT_WRITE,
                          MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (m->work_memory == MAP_FAILED) {
        m->work_memory = NULL;
        return dsa_error(err, "no memory for a workspace of %llu bytes, for "
                         "steps of %u rows",
                         (unsigned long long) m->work_size, m->max_rows);
    }

    (void) dsa_model_lay(m, (uintptr_t) m->work_memory);

    return DSA_OK;
}


static uint64_t
dsa_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}


/* Sets the workspace's pointers from base on; returns the bytes it takes. */

#define dsa_take(p, n)                                                        \
    p = (void *) (base + used);                                               \
    used += ((uint64_t) (n) * sizeof(*(p)) + 63) & ~63ULL

static uint64_t
dsa_model_lay(dsa_model_t *m, uintptr_t base)
{
    uint64_t            used, rows, tile, context, hidden, heads, latent,
                        rope, kv, qk, ih, idim, inter, widest;
    dsa_workspace_t           *w;
    const dsa_model_config_t  *s;

    w = &m->work;
    s = m->config;
    used = 0;

    rows = m->max_rows;
    tile = DSA_TILE;
    context = DSA_HEADS_TOKENS < s->max_position_embeddings
              ? DSA_HEADS_TOKENS : s->max_position_embeddings;
    hidden = s->hidden_size;
    heads = s->num_attention_heads;
    latent = s->kv_lora_rank;
    rope = s->qk_rope_head_dim;
    qk = s->qk_nope_head_dim + rope;
    kv = s->qk_nope_head_dim + s->v_head_dim;
    ih = s->index_n_heads;
    idim = s->index_head_dim;
    inter = dsa_max(s->intermediate_size, s->moe_intermediate_size
                                          * (uint64_t) s->n_shared_experts);

    widest = dsa_max(dsa_max(hidden, inter),
                     dsa_max(s->q_lora_rank,
                             dsa_max(heads * s->v_head_dim, latent)));

    dsa_take(w->x, rows * hidden);
    dsa_take(w->residual, rows * hidden);
    dsa_take(w->y, rows * hidden);
    dsa_take(w->q8, rows * widest);
    dsa_take(w->weight, dsa_max(DSA_WEIGHT_ROWS, kv) * widest);

    dsa_take(w->owner, rows);
    dsa_take(w->cos, rows * (rope / 2));
    dsa_take(w->sin, rows * (rope / 2));

    dsa_take(w->qr, rows * s->q_lora_rank);
    dsa_take(w->q, rows * heads * qk);
    dsa_take(w->kv, rows * (latent + rope));
    dsa_take(w->o, rows * heads * s->v_head_dim);

    dsa_take(w->index_k, rows * idim);
    dsa_take(w->index_q, rows * ih * idim);
    dsa_take(w->index_w, rows * ih);
    dsa_take(w->index_scale, rows * ih);
    dsa_take(w->index_dots, DSA_SCORE_ROWS * ih * tile);
    dsa_take(w->score, DSA_SCORE_ROWS * tile);
    dsa_take(w->candidate, DSA_SCORE_ROWS * 2 * (uint64_t) m->topk);
    dsa_take(w->pick, rows * m->topk);
    dsa_take(w->n_pick, rows);
    dsa_take(w->gap, rows);

    dsa_take(w->c, dsa_max(context, m->topk) * latent);
    dsa_take(w->k_rope, dsa_max(context, m->topk) * rope);
    dsa_take(w->head_kv, context * kv);
    dsa_take(w->dots, dsa_max(DSA_HEAD_ROWS * context,
                              heads * m->topk));
    dsa_take(w->key, tile * idim);
    dsa_take(w->key_scale, tile);
    dsa_take(w->q_latent, DSA_ABSORB_ROWS * heads * latent);
    dsa_take(w->u, DSA_ABSORB_ROWS * heads * latent);

    dsa_take(w->gate, rows * inter);
    dsa_take(w->up, rows * inter);
    dsa_take(w->router, rows * s->n_routed_experts);
    dsa_take(w->route, 2 * (uint64_t) s->n_routed_experts + s->n_group);
    dsa_take(w->expert, rows * s->num_experts_per_tok);
    dsa_take(w->expert_weight, rows * s->num_experts_per_tok);
    dsa_take(w->pair, rows * s->num_experts_per_tok);
    dsa_take(w->offset, s->n_routed_experts + 1);
    dsa_take(w->expert_x, rows * hidden);
    dsa_take(w->expert_y, rows * hidden);

    dsa_take(m->frequency, rope / 2);

    return used;
}


uint32_t
dsa_model_pages(const dsa_model_t *m)
{
    return m->pages;
}


uint64_t
dsa_model_kv_memory(const dsa_model_config_t *config, dsa_precision_e precision,
    uint64_t tokens)
{
    dsa_cache_t  cache;

    dsa_model_layout(&cache, config, precision == DSA_SERVED);

    return (tokens + DSA_CACHE_TOKENS - 1) / DSA_CACHE_TOKENS * cache.page;
}


void
dsa_model_trace(dsa_model_t *m, dsa_trace_pt trace, void *ctx)
{
    m->trace = trace;
    m->trace_ctx = ctx;
}


void
dsa_model_select(dsa_model_t *m, dsa_select_pt select, void *ctx)
{
    m->select = select;
    m->select_ctx = ctx;
}


void
dsa_model_tell(dsa_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data)
{
    if (m->trace != NULL) {
        m->trace(m->trace_ctx, name, layer, rows, cols, data);
    }
}


/*
 * The forward pass.  x is what a block reads and writes, residual the stream
 * it is added to; the norm before each block adds the one before it.
 */

int
dsa_model_forward(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    float *logits, dsa_err_t *err)
{
    uint32_t                   l, rows;
    dsa_workspace_t           *w;
    const dsa_model_config_t  *s;
    const dsa_model_layer_t   *layer;

    rows = dsa_model_check(m, seq, n_seqs, err);

    if (rows == 0) {
        return DSA_ERROR;
    }

    w = &m->work;
    s = m->config;

    dsa_model_embed(m, seq, n_seqs, rows);

    for (l = 0; l < s->num_hidden_layers; l++) {
        layer = &m->layer[l];

        dsa_add_rmsnorm(w->x, w->x, w->residual, layer->input_layernorm, rows,
                        s->hidden_size, s->rms_norm_eps, m->served);

        dsa_model_attention(m, l, seq, n_seqs, rows);
        dsa_model_tell(m, "attn_out", l, rows, s->hidden_size, w->x);

        dsa_add_rmsnorm(w->x, w->x, w->residual,
                        layer->post_attention_layernorm, rows,
                        s->hidden_size, s->rms_norm_eps, m->served);

        dsa_model_ffn(m, l, rows);
        dsa_model_tell_hidden(m, l, rows);
    }

    dsa_model_head(m, seq, n_seqs, logits);

    return DSA_OK;
}


/*
 * The rows of a step, 0 with err when one cannot be computed: what comes from
 * outside is tokens, positions and pages.
 */

static uint32_t
dsa_model_check(const dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    uint32_t           i, j;
    uint64_t           n, end;
    const dsa_rows_t  *s;

    n = 0;

    for (i = 0; i < n_seqs; i++) {
        s = &seq[i];
        n += s->n;
        end = (uint64_t) s->start + s->n;

        if (s->n == 0 || s->n_logits > s->n) {
            (void) dsa_error(err, "sequence %u of a step has %u rows and asks "
                             "for %u logits, at least a row and no more "
                             "logits than rows are accepted", i, s->n,
                             s->n_logits);
            return 0;
        }

        if (end > m->config->max_position_embeddings) {
            (void) dsa_error(err, "sequence %u of a step ends at position "
                             "%llu, positions below %u are accepted", i,
                             (unsigned long long) end - 1,
                             m->config->max_position_embeddings);
            return 0;
        }

        for (j = 0; j < s->n; j++) {
            if (s->tokens[j] >= m->config->vocab_size) {
                (void) dsa_error(err, "token %u at position %u of sequence "
                                 "%u of a step, ids below %u are accepted",
                                 s->tokens[j], s->start + j, i,
                                 m->config->vocab_size);
                return 0;
            }
        }

        for (j = 0; (uint64_t) j * DSA_CACHE_TOKENS < end; j++) {
            if (s->pages[j] >= m->pages) {
                (void) dsa_error(err, "page %u of sequence %u of a step is "
                                 "%u, pages below %u are accepted", j, i,
                                 s->pages[j], m->pages);
                return 0;
            }
        }
    }

    if (n == 0 || n > m->max_rows) {
        (void) dsa_error(err, "a step has %llu rows, 1 to %u are accepted",
                         (unsigned long long) n, m->max_rows);
        return 0;
    }

    return (uint32_t) n;
}


static void
dsa_model_embed(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t rows)
{
    uint32_t          i, j, row, hidden, half;
    dsa_workspace_t  *w;

    w = &m->work;
    hidden = m->config->hidden_size;
    half = m->config->qk_rope_head_dim / 2;

    for (i = 0, row = 0; i < n_seqs; i++) {
        for (j = 0; j < seq[i].n; j++, row++) {
            w->owner[row] = i;

            dsa_model_decode_rows(w->x + (uint64_t) row * hidden,
                                  &m->weights->embed, seq[i].tokens[j], 1);
            dsa_rope_angles(w->cos + (uint64_t) row * half,
                            w->sin + (uint64_t) row * half, m->frequency,
                            2 * half, seq[i].start + j, m->magnitude);
        }
    }

    memset(w->residual, 0, (uint64_t) rows * hidden * sizeof(float));
}


/* The residual stream after a layer, as the next norm will read it. */

static void
dsa_model_tell_hidden(dsa_model_t *m, uint32_t layer, uint32_t rows)
{
    uint64_t          i, n;
    dsa_workspace_t  *w;

    if (m->trace == NULL) {
        return;
    }

    w = &m->work;
    n = (uint64_t) rows * m->config->hidden_size;

    for (i = 0; i < n; i++) {
        w->y[i] = w->residual[i] + w->x[i];
    }

    dsa_model_tell(m, "hidden", layer, rows, m->config->hidden_size, w->y);
}


/* Norm and head of the rows whose logits are wanted. */

static void
dsa_model_head(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    float *logits)
{
    uint32_t          i, n, row, hidden;
    uint64_t          from;
    dsa_workspace_t  *w;

    w = &m->work;
    hidden = m->config->hidden_size;

    /* brought together at the front, where no wanted row lies later */

    for (i = 0, n = 0, row = 0; i < n_seqs; i++) {
        row += seq[i].n;
        from = (uint64_t) (row - seq[i].n_logits) * hidden;

        memmove(w->x + (uint64_t) n * hidden, w->x + from,
                (uint64_t) seq[i].n_logits * hidden * sizeof(float));
        memmove(w->residual + (uint64_t) n * hidden, w->residual + from,
                (uint64_t) seq[i].n_logits * hidden * sizeof(float));

        n += seq[i].n_logits;
    }

    if (n == 0) {
        return;
    }

    dsa_add_rmsnorm(w->x, w->x, w->residual, m->norm, n, hidden,
                    m->config->rms_norm_eps, m->served);
    dsa_model_linear_f32(m, logits, &m->head, w->x, n);
}
