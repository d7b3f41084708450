
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/cpu/parts.h"
#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "kernels/row/norm.h"
#include "kernels/row/rope.h"


/* A job over the tokens of a step. */

typedef struct {
    dsa_model_t        *model;
    const dsa_rows_t   *seq;
    const float        *norm;           /* weights of the norm */
    uint32_t            tokens;
} dsa_step_t;


static void dsa_model_rope(dsa_rope_conf_t *rope,
    const dsa_model_config_t *s);
static void dsa_model_configure(dsa_model_t *m);
static void dsa_model_cache_layout(dsa_cache_t *cache,
    const dsa_model_config_t *s, int served, uint32_t drafts);
static int dsa_model_shards(dsa_model_t *m, const dsa_model_conf_t *conf,
    dsa_err_t *err);
static int dsa_model_cache(dsa_model_t *m, uint64_t kv_memory,
    dsa_err_t *err);
static int dsa_model_check_copy(const dsa_model_t *m, uint32_t rank,
    uint32_t page, dsa_err_t *err);
static void dsa_model_embed_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_model_norm_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_model_report_hidden(dsa_model_t *m, uint32_t layer,
    uint32_t tokens);
static void dsa_model_report_experts(const dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t n_seqs);
static void dsa_model_logits(dsa_model_t *m, const dsa_rows_t *seq,
    uint32_t n_seqs, uint32_t tokens, float *logits);


dsa_model_t *
dsa_model_open(const dsa_weights_t *weights, const dsa_model_conf_t *conf,
    dsa_err_t *err)
{
    dsa_model_t      *m;
    dsa_rope_conf_t   rope;

    if (conf->max_tokens == 0) {
        (void) dsa_error(err, "steps of 0 tokens were requested; expected 1 "
                         "or more");
        return NULL;
    }

    m = calloc(1, sizeof(dsa_model_t));
    if (m == NULL) {
        (void) dsa_error(err, "no memory for a model");
        return NULL;
    }

    m->weights = weights;
    m->config = &weights->config;
    m->served = (conf->precision == DSA_SERVED);
    m->max_tokens = conf->max_tokens;
    m->drafts = conf->drafts;

    if (m->drafts && weights->draft.fault[0] != '\0') {
        (void) dsa_error(err, "the checkpoint has no usable draft layer: %s",
                         weights->draft.fault);
        dsa_model_close(m);
        return NULL;
    }

    dsa_model_configure(m);

    if (dsa_model_shards(m, conf, err) != DSA_OK) {
        dsa_model_close(m);
        return NULL;
    }

    m->pool = dsa_threads_create(conf->threads != 0 ? conf->threads
                                                    : dsa_threads_cpus(),
                                 err);

    if (m->pool == NULL
        || dsa_model_weights(m, err) != DSA_OK
        || dsa_model_cache(m, conf->kv_memory, err) != DSA_OK
        || dsa_model_workspace_open(m, err) != DSA_OK)
    {
        dsa_model_close(m);
        return NULL;
    }

    dsa_model_rope(&rope, m->config);
    dsa_rope_frequencies(m->frequency, m->config->qk_rope_head_dim, &rope);

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

    dsa_threads_destroy(m->pool);
    dsa_model_weights_free(m);
    free(m->scratch);
    free(m);
}


static void
dsa_model_rope(dsa_rope_conf_t *rope, const dsa_model_config_t *s)
{
    rope->theta = s->rope_theta;
    rope->factor = s->yarn_factor;
    rope->beta_fast = s->yarn_beta_fast;
    rope->beta_slow = s->yarn_beta_slow;
    rope->mscale = s->yarn_mscale;
    rope->mscale_all_dim = s->yarn_mscale_all_dim;
    rope->original = s->yarn_original_max_position;
}


/* Sets the members that depend on the model config only. */

static void
dsa_model_configure(dsa_model_t *m)
{
    dsa_rope_conf_t            rope;
    const dsa_model_config_t  *s;

    s = m->config;

    dsa_model_rope(&rope, s);

    m->magnitude = dsa_rope_magnitude(&rope);

    m->attention.heads = s->num_attention_heads;
    m->attention.nope = s->qk_nope_head_dim;
    m->attention.rope = s->qk_rope_head_dim;
    m->attention.v = s->v_head_dim;
    m->attention.latent = s->kv_lora_rank;
    m->attention.scale = s->softmax_scale;

    m->router.experts = s->n_routed_experts;
    m->router.groups = s->n_group;
    m->router.groups_kept = s->topk_group;
    m->router.k = s->num_experts_per_tok;
    m->router.normalize = s->norm_topk_prob;
    m->router.scale = s->routed_scaling_factor;

    m->topk = dsa_model_config_topk(s);
}


static int
dsa_model_shards(dsa_model_t *m, const dsa_model_conf_t *conf, dsa_err_t *err)
{
    uint32_t  i, gpus, hosts;

    hosts = conf->hosts.n > 1 ? conf->hosts.n : 1;
    gpus = conf->gpus * hosts;

    if (conf->gpus == 0 || conf->gpus > DSA_MAX_GPUS || hosts > DSA_MAX_GPUS
        || gpus > DSA_MAX_GPUS)
    {
        return dsa_error(err, "a model on %u GPUs of %u hosts was requested; "
                         "expected 1 to %u in all", conf->gpus, hosts,
                         DSA_MAX_GPUS);
    }

    for (i = 0; i < gpus; i++) {
        if (dsa_shard_init(&m->shard[i], m->config, i, gpus, conf->attention,
                           err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    m->ranks = conf->attention == DSA_ATTENTION_TENSOR ? 1 : gpus;
    m->slices = conf->attention == DSA_ATTENTION_TENSOR ? gpus : 1;
    m->hosts = conf->hosts;
    m->hosts.n = hosts;
    m->own = m->ranks / hosts;
    m->first = m->own * m->hosts.host;

    return DSA_OK;
}


void
dsa_model_keep_hidden(dsa_model_t *m, uint32_t rank, uint32_t page,
    uint32_t position, const float *hidden)
{
    uint8_t   *p;
    uint16_t   v;
    uint32_t   i, tag;

    p = (uint8_t *) dsa_model_page(m, rank)
        + (uint64_t) page * m->cache.page + m->cache.hidden;
    tag = position + 1;

    memcpy(p, &tag, sizeof(uint32_t));
    p += sizeof(uint32_t);

    if (!m->served) {
        memcpy(p, hidden, m->config->hidden_size * sizeof(float));
        return;
    }

    for (i = 0; i < m->config->hidden_size; i++) {
        v = dsa_bf16_encode(hidden[i]);
        memcpy(p + i * sizeof(uint16_t), &v, sizeof(uint16_t));
    }
}


int
dsa_model_kept_hidden(const dsa_model_t *m, uint32_t rank, uint32_t page,
    uint32_t position, float *hidden)
{
    uint16_t        v;
    uint32_t        i, tag;
    const uint8_t  *p;

    p = (const uint8_t *) dsa_model_page(m, rank)
        + (uint64_t) page * m->cache.page + m->cache.hidden;

    memcpy(&tag, p, sizeof(uint32_t));
    p += sizeof(uint32_t);

    if (tag != position + 1) {
        return 0;
    }

    if (!m->served) {
        memcpy(hidden, p, m->config->hidden_size * sizeof(float));
        return 1;
    }

    for (i = 0; i < m->config->hidden_size; i++) {
        memcpy(&v, p + i * sizeof(uint16_t), sizeof(uint16_t));
        hidden[i] = dsa_bf16_decode(v);
    }

    return 1;
}


static void
dsa_model_cache_layout(dsa_cache_t *cache, const dsa_model_config_t *s,
    int served, uint32_t drafts)
{
    uint8_t  indexed[DSA_MODEL_LAYERS + 1];

    _Static_assert(DSA_MODEL_LAYERS + 1 <= DSA_CACHE_LAYERS,
                   "a page has room for every layer");

    dsa_model_config_indexed(s, indexed);
    dsa_cache_layout(cache, served, s->num_hidden_layers + drafts, indexed,
                     s->kv_lora_rank, s->qk_rope_head_dim, s->index_head_dim);

    if (drafts) {
        dsa_cache_layout_hidden(cache, s->hidden_size);
    }
}


/*
 * Allocates the pages.  The kernel provides their memory when they are
 * written.
 */

static int
dsa_model_cache(dsa_model_t *m, uint64_t kv_memory, dsa_err_t *err)
{
    uint64_t  pages;

    dsa_model_cache_layout(&m->cache, m->config, m->served, m->drafts);

    pages = kv_memory / m->cache.page;

    if (pages == 0) {
        return dsa_error(err, "%llu bytes of kv_memory are less than a page; "
                         "expected at least %llu, for %u tokens",
                         (unsigned long long) kv_memory,
                         (unsigned long long) m->cache.page,
                         DSA_CACHE_TOKENS);
    }

    m->pages = pages < DSA_PAGES_MAX ? (uint32_t) pages : DSA_PAGES_MAX;
    m->page_size = (uint64_t) m->own * m->pages * m->cache.page;
    m->page = mmap(NULL, m->page_size, PROT_READ|PROT_WRITE,
                   MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (m->page == MAP_FAILED) {
        m->page = NULL;
        return dsa_error(err, "no memory for %u cache pages of %llu bytes on "
                         "each of %u ranks", m->pages,
                         (unsigned long long) m->cache.page, m->own);
    }

    return DSA_OK;
}


uint32_t
dsa_model_layers(const dsa_model_t *m)
{
    return m->config->num_hidden_layers + m->drafts;
}


const dsa_layer_config_t *
dsa_model_layer(const dsa_model_t *m, uint32_t layer)
{
    return layer == m->config->num_hidden_layers ? &m->config->draft
                                                 : &m->config->layer[layer];
}


uint32_t
dsa_model_ranks(const dsa_model_t *m)
{
    return m->ranks;
}


uint32_t
dsa_model_pages(const dsa_model_t *m)
{
    return m->pages;
}


void *
dsa_model_page(const dsa_model_t *m, uint32_t rank)
{
    return (uint8_t *) m->page
           + (uint64_t) (rank - m->first) * m->pages * m->cache.page;
}


int
dsa_model_copy(dsa_model_t *m, const dsa_page_copy_t *copy, uint32_t n,
    dsa_err_t *err)
{
    uint32_t                i;
    const dsa_page_copy_t  *c;

    for (i = 0; i < n; i++) {
        c = &copy[i];

        if (dsa_model_check_copy(m, c->from_rank, c->from_page, err) != DSA_OK
            || dsa_model_check_copy(m, c->to_rank, c->to_page, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    for (i = 0; i < n; i++) {
        c = &copy[i];

        if (c->from_rank / m->own != c->to_rank / m->own) {
            if (dsa_model_copy_far(m, c, err) != DSA_OK) {
                return DSA_ERROR;
            }

            continue;
        }

        if (!dsa_model_own(m, c->from_rank)) {
            continue;
        }

        memmove((uint8_t *) dsa_model_page(m, c->to_rank)
                + c->to_page * m->cache.page,
                (uint8_t *) dsa_model_page(m, c->from_rank)
                + c->from_page * m->cache.page,
                m->cache.page);
    }

    return DSA_OK;
}


void
dsa_model_move(dsa_model_t *m, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n)
{
    uint32_t   i;
    uint8_t   *page;

    for (i = 0; i < n; i++) {
        page = (uint8_t *) dsa_model_page(m, rank)
               + move[i].page * m->cache.page;

        if (way == DSA_MOVE_OUT) {
            memcpy(move[i].host, page, m->cache.page);

        } else {
            memcpy(page, move[i].host, m->cache.page);
        }
    }
}


static int
dsa_model_check_copy(const dsa_model_t *m, uint32_t rank, uint32_t page,
    dsa_err_t *err)
{
    if (rank >= m->ranks || page >= m->pages) {
        return dsa_error(err, "a copy has page %u of rank %u; expected a page "
                         "below %u and a rank below %u", page, rank, m->pages,
                         m->ranks);
    }

    return DSA_OK;
}


uint64_t
dsa_model_page_bytes(const dsa_model_t *m)
{
    return m->cache.page;
}


dsa_threads_t *
dsa_model_pool(const dsa_model_t *m)
{
    return m->pool;
}


uint64_t
dsa_model_kv_memory(const dsa_model_config_t *config, dsa_precision_e precision,
    uint32_t drafts, uint64_t tokens)
{
    dsa_cache_t  cache;

    dsa_model_cache_layout(&cache, config, precision == DSA_SERVED, drafts);

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
dsa_model_report(dsa_model_t *m, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data)
{
    if (m->trace != NULL) {
        m->trace(m->trace_ctx, name, layer, rows, cols, data);
    }
}


/*
 * The forward pass.  A block reads x and writes its result to x, which the
 * norm before the next block adds to residual.
 */

int
dsa_model_forward(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    float *logits, dsa_err_t *err)
{
    uint32_t  l, tokens;

    if (dsa_model_input(m, seq, n_seqs, &n_seqs, &tokens, err) != DSA_OK) {
        return DSA_ERROR;
    }

    seq = m->work.seq;

    dsa_model_embed(m, seq, n_seqs, tokens);

    for (l = 0; l < m->config->num_hidden_layers; l++) {
        dsa_model_decoder(m, l, seq, n_seqs, tokens);

        if (m->failed) {
            *err = m->err;
            return DSA_ERROR;
        }

        if (m->layer[l].moe) {
            dsa_model_report_experts(m, l, seq, n_seqs);
        }
    }

    dsa_model_logits(m, seq, n_seqs, tokens, logits);

    return DSA_OK;
}


void
dsa_model_decoder(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t n_seqs, uint32_t tokens)
{
    if (tokens == 0) {

        /* a host without a token computes its experts for the other hosts */

        dsa_model_ffn(m, layer, 0);
        return;
    }

    dsa_model_norm(m, m->layer[layer].input_layernorm, tokens);
    dsa_model_attention(m, layer, seq, n_seqs, tokens);
    dsa_model_report(m, "attn_out", layer, tokens, m->config->hidden_size,
                     m->work.x);

    dsa_model_norm(m, m->layer[layer].post_attention_layernorm, tokens);
    dsa_model_ffn(m, layer, tokens);
    dsa_model_report_hidden(m, layer, tokens);
}


void
dsa_model_embed(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t tokens)
{
    uint32_t    i, j, row;
    dsa_step_t  step = { m, seq, NULL, tokens };

    for (i = 0, row = 0; i < n_seqs; i++) {
        for (j = 0; j < seq[i].n; j++, row++) {
            m->work.owner[row] = i;
            m->work.position[row] = seq[i].start + j;
        }
    }

    dsa_model_rows(m, tokens, dsa_model_embed_piece, &step);
}


static void
dsa_model_embed_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    uint32_t           row, end, hidden, half;
    dsa_step_t        *step = ctx;
    dsa_model_t       *m = step->model;
    dsa_workspace_t   *w = &m->work;
    const dsa_rows_t  *s;

    hidden = m->config->hidden_size;
    half = m->config->qk_rope_head_dim / 2;
    row = piece * DSA_ROW_TOKENS;
    end = step->tokens - row < DSA_ROW_TOKENS ? step->tokens
                                              : row + DSA_ROW_TOKENS;

    memset(w->residual + (uint64_t) row * hidden, 0,
           (uint64_t) (end - row) * hidden * sizeof(float));

    for ( /* void */ ; row < end; row++) {
        s = &step->seq[w->owner[row]];

        dsa_model_decode_rows(w->x + (uint64_t) row * hidden,
                              &m->weights->embed,
                              s->tokens[w->position[row] - s->start], 1);
        dsa_rope_angles(w->cos + (uint64_t) row * half,
                        w->sin + (uint64_t) row * half, m->frequency,
                        2 * half, w->position[row], m->magnitude);
    }
}


void
dsa_model_norm(dsa_model_t *m, const float *weights, uint32_t tokens)
{
    dsa_step_t  step = { m, NULL, weights, tokens };

    dsa_model_rows(m, tokens, dsa_model_norm_piece, &step);
}


static void
dsa_model_norm_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    uint32_t          n, hidden;
    uint64_t          at;
    dsa_step_t       *step = ctx;
    dsa_model_t      *m = step->model;
    dsa_workspace_t  *w = &m->work;

    hidden = m->config->hidden_size;
    n = step->tokens - piece * DSA_ROW_TOKENS;
    n = n < DSA_ROW_TOKENS ? n : DSA_ROW_TOKENS;
    at = (uint64_t) piece * DSA_ROW_TOKENS * hidden;

    dsa_add_rmsnorm(w->x + at, w->x + at, w->residual + at, step->norm, n,
                    hidden, m->config->rms_norm_eps, m->served);

    if (m->served) {
        dsa_fp8_simulate(w->x8 + at, w->x + at, n, hidden,
                         (int) m->config->ue8m0);
    }
}


/*
 * Passes the residual stream after a layer, as the next norm reads it, to the
 * trace.
 */

static void
dsa_model_report_hidden(dsa_model_t *m, uint32_t layer, uint32_t tokens)
{
    uint64_t          i, n;
    dsa_workspace_t  *w;

    if (m->trace == NULL) {
        return;
    }

    w = &m->work;
    n = (uint64_t) tokens * m->config->hidden_size;

    for (i = 0; i < n; i++) {
        w->y[i] = w->residual[i] + w->x[i];
    }

    dsa_model_report(m, "hidden", layer, tokens, m->config->hidden_size, w->y);
}


/* Copies the experts of the sequences that request them. */

static void
dsa_model_report_experts(const dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t n_seqs)
{
    uint16_t       *out;
    uint32_t        i, j, e, k, layers, before;
    const int32_t  *expert;

    k = m->router.k;
    expert = m->work.expert;
    layers = dsa_model_config_moe_layers(m->config);
    before = 0;

    for (i = 0; i < layer; i++) {
        before += dsa_model_config_moe(m->config, i);
    }

    for (i = 0; i < n_seqs; i++) {
        out = seq[i].experts;

        for (j = 0; out != NULL && j < seq[i].n; j++) {
            for (e = 0; e < k; e++) {
                out[((size_t) j * layers + before) * k + e]
                    = (uint16_t) expert[j * k + e];
            }
        }

        expert += seq[i].n * k;
    }
}


uint32_t
dsa_model_last(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs)
{
    uint32_t          i, n, row, hidden;
    uint64_t          from;
    dsa_workspace_t  *w;

    w = &m->work;
    hidden = m->config->hidden_size;

    /* in order, so that no row is overwritten before it was moved */

    for (i = 0, n = 0, row = 0; i < n_seqs; i++) {
        row += seq[i].n;
        from = (uint64_t) (row - seq[i].n_logits) * hidden;

        memmove(w->x + (uint64_t) n * hidden, w->x + from,
                (uint64_t) seq[i].n_logits * hidden * sizeof(float));
        memmove(w->residual + (uint64_t) n * hidden, w->residual + from,
                (uint64_t) seq[i].n_logits * hidden * sizeof(float));

        n += seq[i].n_logits;
    }

    return n;
}


/*
 * Computes norm and head of the tokens whose logits are requested.  With
 * drafts, the norm of all tokens is kept.
 */

static void
dsa_model_logits(dsa_model_t *m, const dsa_rows_t *seq, uint32_t n_seqs,
    uint32_t tokens, float *logits)
{
    uint32_t          n;
    dsa_workspace_t  *w;

    w = &m->work;

    if (m->drafts) {
        dsa_model_norm(m, m->norm, tokens);
        memcpy(w->hidden, w->x,
               (uint64_t) tokens * m->config->hidden_size * sizeof(float));
    }

    n = dsa_model_last(m, seq, n_seqs);

    if (!m->drafts) {
        dsa_model_norm(m, m->norm, n);
    }

    dsa_model_head(m, n, logits);
}


void
dsa_model_head(dsa_model_t *m, uint32_t rows, float *logits)
{
    dsa_product_t  head = { logits, m->work.x, &m->head, 0 };

    if (rows != 0) {
        dsa_model_products(m, &head, 1, rows);
    }
}
