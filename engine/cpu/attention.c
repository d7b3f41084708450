
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "engine/cpu/parts.h"
#include "kernels/bf16.h"
#include "kernels/fp8.h"
#include "kernels/gemm.h"
#include "kernels/hadamard.h"
#include "kernels/indexer.h"
#include "kernels/norm.h"
#include "kernels/rope.h"


/*
 * The norms within attention have an epsilon of their own in the published
 * code: rms_norm_eps of config.json is that of the norms between blocks.
 */
#define DSA_LATENT_EPS  1e-6f


static void dsa_model_project(dsa_model_t *m, const dsa_model_layer_t *w,
    uint32_t rows);
static void dsa_model_index_key(dsa_model_t *m, const dsa_model_layer_t *w,
    uint32_t rows);
static void dsa_model_index_query(dsa_model_t *m, const dsa_model_layer_t *w,
    uint32_t rows);
static void dsa_model_selection(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t n_seqs, uint32_t rows);
static void dsa_model_select_rows(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *s, uint32_t row, uint32_t first);
static void dsa_model_tell_selection(dsa_model_t *m, uint32_t layer,
    uint32_t rows);
static int dsa_model_by_heads(const dsa_model_t *m, const dsa_rows_t *s);
static void dsa_model_heads(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *s, uint32_t row);
static void dsa_model_absorbed(dsa_model_t *m, uint32_t layer,
    const dsa_rows_t *seq, uint32_t row, uint32_t rows);


void
dsa_model_attention(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t n_seqs, uint32_t rows)
{
    uint32_t                  i, n, row;
    dsa_workspace_t          *w;
    const dsa_model_layer_t  *l;

    w = &m->work;
    l = &m->layer[layer];

    dsa_model_project(m, l, rows);
    dsa_model_index_key(m, l, rows);

    for (i = 0, row = 0; i < n_seqs; row += seq[i++].n) {
        dsa_cache_write(&m->cache, m->page, layer, seq[i].pages, seq[i].start,
                        seq[i].n,
                        w->kv + (uint64_t) row
                                * (m->cache.latent + m->cache.rope),
                        m->cache.latent + m->cache.rope,
                        w->index_k + (uint64_t) row * m->cache.index);
    }

    dsa_model_selection(m, layer, seq, n_seqs, rows);

    for (i = 0, row = 0; i < n_seqs; row += n) {

        if (dsa_model_by_heads(m, &seq[i])) {
            n = seq[i].n;
            dsa_model_heads(m, layer, &seq[i++], row);
            continue;
        }

        for (n = 0; i < n_seqs && !dsa_model_by_heads(m, &seq[i]); i++) {
            n += seq[i].n;
        }

        dsa_model_absorbed(m, layer, seq, row, n);
    }

    dsa_model_linear(m, w->x, &l->o_proj, w->o, rows);
}


/* Queries and latents: x to qr, q and kv = [latent | rope], rotated. */

static void
dsa_model_project(dsa_model_t *m, const dsa_model_layer_t *l, uint32_t rows)
{
    float                     *q, *kv, *cos, *sin;
    uint32_t                   i, latent, rope, nope, heads;
    dsa_workspace_t           *w;
    const dsa_model_config_t  *s;

    w = &m->work;
    s = m->config;
    latent = s->kv_lora_rank;
    rope = s->qk_rope_head_dim;
    nope = s->qk_nope_head_dim;
    heads = s->num_attention_heads;

    dsa_model_linear(m, w->qr, &l->q_a_proj, w->x, rows);
    dsa_rmsnorm(w->qr, s->q_lora_rank, w->qr, s->q_lora_rank,
                l->q_a_layernorm, rows, s->q_lora_rank, DSA_LATENT_EPS,
                m->served);
    dsa_model_linear(m, w->q, &l->q_b_proj, w->qr, rows);

    dsa_model_linear(m, w->kv, &l->kv_a_proj, w->x, rows);
    dsa_rmsnorm(w->kv, latent + rope, w->kv, latent + rope,
                l->kv_a_layernorm, rows, latent, DSA_LATENT_EPS, m->served);

    for (i = 0; i < rows; i++) {
        cos = w->cos + (uint64_t) i * (rope / 2);
        sin = w->sin + (uint64_t) i * (rope / 2);
        q = w->q + (uint64_t) i * heads * (nope + rope);
        kv = w->kv + (uint64_t) i * (latent + rope);

        dsa_rope_interleaved(q + nope, heads, nope + rope, cos, sin, rope,
                             m->served);
        dsa_rope_interleaved(kv + latent, 1, rope, cos, sin, rope, m->served);
    }
}


/*
 * The Hadamard transform leaves exact dot products as they are: it belongs to
 * the FP8 of served precision only.
 */

static void
dsa_model_index_key(dsa_model_t *m, const dsa_model_layer_t *l, uint32_t rows)
{
    uint32_t          i, dim, rope;
    dsa_workspace_t  *w;

    w = &m->work;
    dim = m->config->index_head_dim;
    rope = m->config->qk_rope_head_dim;

    dsa_model_linear(m, w->index_k, &l->index_wk, w->x, rows);
    dsa_layernorm(w->index_k, l->index_k_norm_weight, l->index_k_norm_bias,
                  rows, dim, DSA_LATENT_EPS, m->served);

    for (i = 0; i < rows; i++) {
        dsa_rope_half(w->index_k + (uint64_t) i * dim, 1, dim,
                      w->cos + (uint64_t) i * (rope / 2),
                      w->sin + (uint64_t) i * (rope / 2), rope, m->served);
    }

    if (m->served) {
        dsa_hadamard(w->index_k, rows, dim, 1);
    }
}


/* index_q, and index_w with the constants and the scale of index_q in it. */

static void
dsa_model_index_query(dsa_model_t *m, const dsa_model_layer_t *l,
    uint32_t rows)
{
    float             c;
    uint32_t          i, dim, rope, heads;
    uint64_t          j, n;
    dsa_workspace_t  *w;

    w = &m->work;
    dim = m->config->index_head_dim;
    rope = m->config->qk_rope_head_dim;
    heads = m->config->index_n_heads;
    n = (uint64_t) rows * heads;

    dsa_model_linear(m, w->index_q, &l->index_wq_b, w->qr, rows);

    for (i = 0; i < rows; i++) {
        dsa_rope_half(w->index_q + (uint64_t) i * heads * dim, heads, dim,
                      w->cos + (uint64_t) i * (rope / 2),
                      w->sin + (uint64_t) i * (rope / 2), rope, m->served);
    }

    dsa_model_linear_f32(m, w->index_w, &l->index_weights_proj, w->x, rows);

    c = 1.0f / sqrtf((float) heads) / sqrtf((float) dim);

    for (j = 0; j < n; j++) {
        w->index_w[j] *= c;
    }

    if (m->served) {
        dsa_hadamard(w->index_q, n, dim, 1);
        dsa_fp8_round(w->index_q, w->index_scale, n, dim);

        for (j = 0; j < n; j++) {
            w->index_w[j] *= w->index_scale[j];
        }
    }
}


/*
 * pick and n_pick of every row.  A row that sees at most topk tokens selects
 * them all, and the indexer is not asked.
 */

static void
dsa_model_selection(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t n_seqs, uint32_t rows)
{
    int               asked;
    int32_t          *pick;
    uint32_t          i, j, p, row, first;
    dsa_workspace_t  *w;

    w = &m->work;
    asked = 0;

    for (i = 0, row = 0; i < n_seqs; row += seq[i++].n) {

        for (j = 0; j < seq[i].n && seq[i].start + j < m->topk; j++) {
            pick = w->pick + (uint64_t) (row + j) * m->topk;

            for (p = 0; p <= seq[i].start + j; p++) {
                pick[p] = (int32_t) p;
            }

            w->n_pick[row + j] = p;
            w->gap[row + j] = 0;
        }

        first = j;

        if (first == seq[i].n) {
            continue;
        }

        if (!asked) {
            dsa_model_index_query(m, &m->layer[layer], rows);
            asked = 1;
        }

        dsa_model_select_rows(m, layer, &seq[i], row, first);
    }

    if (m->trace != NULL) {
        dsa_model_tell_selection(m, layer, rows);
    }

    if (m->select != NULL) {
        m->select(m->select_ctx, layer, rows, m->topk, w->pick, w->n_pick);
    }
}


static void
dsa_model_tell_selection(dsa_model_t *m, uint32_t layer, uint32_t rows)
{
    int32_t          *pick;
    uint32_t          p, row;
    dsa_workspace_t  *w;

    w = &m->work;

    for (row = 0; row < rows; row++) {
        pick = w->pick + (uint64_t) row * m->topk;

        for (p = w->n_pick[row]; p < m->topk; p++) {
            pick[p] = -1;
        }
    }

    dsa_model_tell(m, "topk", layer, rows, m->topk, w->pick);
    dsa_model_tell(m, "gap", layer, rows, 1, w->gap);
}


/* Rows first .. of a sequence whose row 0 is row of the step. */

static void
dsa_model_select_rows(dsa_model_t *m, uint32_t layer, const dsa_rows_t *s,
    uint32_t row, uint32_t first)
{
    uint32_t          i, n, at, keys, last, seen, heads, dim;
    uint64_t          r;
    dsa_topk_t        topk[DSA_SCORE_ROWS];
    dsa_workspace_t  *w;

    w = &m->work;
    heads = m->config->index_n_heads;
    dim = m->config->index_head_dim;

    for ( /* void */ ; first < s->n; first += n) {
        n = s->n - first < DSA_SCORE_ROWS ? s->n - first : DSA_SCORE_ROWS;
        r = row + first;
        last = s->start + first + n;

        for (i = 0; i < n; i++) {
            dsa_topk_start(&topk[i],
                           w->candidate + (uint64_t) i * 2 * m->topk,
                           m->topk);
        }

        for (at = 0; at < last; at += keys) {
            keys = last - at < DSA_TILE ? last - at : DSA_TILE;

            dsa_cache_keys(w->key, w->key_scale, &m->cache, m->page, layer,
                           s->pages, at, keys);
            dsa_index_score(w->score, w->index_q + r * heads * dim,
                            w->index_w + r * heads, w->key,
                            m->served ? w->key_scale : NULL, n, heads, dim,
                            keys, w->index_dots);

            for (i = 0; i < n; i++) {
                seen = s->start + first + i + 1;

                if (seen > at) {
                    dsa_topk_add(&topk[i], w->score + (uint64_t) i * keys,
                                 seen - at < keys ? seen - at : keys, at);
                }
            }
        }

        for (i = 0; i < n; i++) {
            w->n_pick[r + i] = dsa_topk_end(&topk[i],
                                            w->pick + (r + i) * m->topk);
            w->gap[r + i] = dsa_topk_gap(&topk[i]);
        }
    }
}


/*
 * Which form costs fewer multiply-adds a head: the multi-head one expands
 * every latent of the context and scores every visible pair, the absorbed one
 * transforms every row and scores the selected pairs in the latent's width.
 * In the published dimensions a prompt from its start crosses over near
 * 13,000 tokens; a single row is always absorbed but for the very first.
 */

static int
dsa_model_by_heads(const dsa_model_t *m, const dsa_rows_t *s)
{
    uint64_t                n, start, full, all, few, heads, absorbed;
    const dsa_attention_t  *a;

    a = &m->attention;
    n = s->n;
    start = s->start;

    if (start + n > DSA_HEADS_TOKENS) {
        return 0;
    }

    full = start < m->topk ? m->topk - start : 0;   /* rows that select all */
    full = full < n ? full : n;

    all = n * start + n * (n + 1) / 2;
    few = full * start + full * (full + 1) / 2 + (n - full) * m->topk;

    heads = all * (a->nope + a->rope + a->v)
            + (start + n) * a->latent * (a->nope + a->v);
    absorbed = few * (2 * a->latent + a->rope)
               + n * a->latent * (a->nope + a->v);

    return heads < absorbed;
}


/* Every latent up to the last row's, then head by head. */

static void
dsa_model_heads(dsa_model_t *m, uint32_t layer, const dsa_rows_t *s,
    uint32_t row)
{
    float                  *o;
    size_t                  h, n, r, end, seen, slice, ld_q, ld_o;
    const float            *q, *kv_b;
    dsa_workspace_t        *w;
    const dsa_matrix_t     *matrix;
    const dsa_attention_t  *a;

    w = &m->work;
    a = &m->attention;
    matrix = &m->layer[layer].kv_b_proj;
    end = (size_t) s->start + s->n;
    slice = a->nope + a->v;
    ld_q = a->heads * (a->nope + a->rope);
    ld_o = a->heads * a->v;

    dsa_cache_latents(w->c, w->k_rope, &m->cache, m->page, layer, s->pages,
                      NULL, 0, end);

    if (m->served && matrix->tensor.dtype == DSA_E4M3) {
        dsa_fp8_simulate(w->c, w->c, end, a->latent, (int) m->config->ue8m0);
    }

    for (h = 0; h < a->heads; h++) {
        kv_b = dsa_model_weight_rows(m, matrix, (uint32_t) (h * slice),
                                     (uint32_t) slice);
        dsa_gemm_nt(w->head_kv, slice, w->c, a->latent, kv_b, a->latent, end,
                    slice, a->latent, 0);

        if (m->served) {
            dsa_bf16_round_rows(w->head_kv, end * slice);
        }

        for (r = 0; r < s->n; r += n) {
            n = s->n - r < DSA_HEAD_ROWS ? s->n - r : DSA_HEAD_ROWS;
            seen = s->start + r + n;
            q = w->q + (row + r) * ld_q + h * (a->nope + a->rope);
            o = w->o + (row + r) * ld_o + h * a->v;

            dsa_attention_head(o, ld_o, q, ld_q, w->head_kv, w->k_rope, n,
                               seen, w->pick + (row + r) * m->topk, m->topk,
                               w->n_pick + row + r, a, m->served, w->dots);
        }
    }

    if (m->served) {
        dsa_bf16_round_rows(w->o + row * ld_o, s->n * ld_o);
    }
}


/*
 * kv_b_proj is used as it is in this form, its operands in BF16 and not in
 * FP8, as in the published code.
 */

static void
dsa_model_absorbed(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t row, uint32_t rows)
{
    float                  *q, *o;
    size_t                  h, i, n, r, end, slice, ld_q, ld_o, ld_u;
    const float            *kv_b;
    dsa_workspace_t        *w;
    const dsa_matrix_t     *matrix;
    const dsa_attention_t  *a;

    w = &m->work;
    a = &m->attention;
    matrix = &m->layer[layer].kv_b_proj;
    end = (size_t) row + rows;
    slice = a->nope + a->v;
    ld_q = a->heads * (a->nope + a->rope);
    ld_o = a->heads * a->v;
    ld_u = a->heads * a->latent;

    for (r = row; r < end; r += n) {
        n = end - r < DSA_ABSORB_ROWS ? end - r : DSA_ABSORB_ROWS;
        q = w->q + r * ld_q;
        o = w->o + r * ld_o;

        for (h = 0; h < a->heads; h++) {
            kv_b = dsa_model_weight_rows(m, matrix, (uint32_t) (h * slice),
                                         (uint32_t) a->nope);
            dsa_gemm_nn(w->q_latent + h * a->latent, ld_u,
                        q + h * (a->nope + a->rope), ld_q, kv_b, a->latent, n,
                        a->latent, a->nope, 0);
        }

        if (m->served) {
            dsa_bf16_round_rows(w->q_latent, n * ld_u);
        }

        for (i = 0; i < n; i++) {
            dsa_cache_latents(w->c, w->k_rope, &m->cache, m->page, layer,
                              seq[w->owner[r + i]].pages,
                              w->pick + (r + i) * m->topk, 0,
                              w->n_pick[r + i]);
            dsa_attention_absorbed(w->u + i * ld_u, w->q_latent + i * ld_u,
                                   q + i * ld_q + a->nope, a->nope + a->rope,
                                   w->c, w->k_rope, w->n_pick[r + i], a,
                                   m->served, w->dots);
        }

        if (m->served) {
            dsa_bf16_round_rows(w->u, n * ld_u);
        }

        for (h = 0; h < a->heads; h++) {
            kv_b = dsa_model_weight_rows(m, matrix,
                                         (uint32_t) (h * slice + a->nope),
                                         (uint32_t) a->v);
            dsa_gemm_nt(o + h * a->v, ld_o, w->u + h * a->latent, ld_u, kv_b,
                        a->latent, n, a->v, a->latent, 0);
        }

        if (m->served) {
            dsa_bf16_round_rows(o, n * ld_o);
        }
    }
}
