
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/cpu/parts.h"
#include "kernels/core/bf16.h"


/*
 * Absorbed MQA for up to DSA_MQA_TOKENS tokens, in three jobs: the queries in
 * latent space, the attention of each token over all heads, the values.  As in
 * the published code, kv_b_proj is applied with BF16 operands, not FP8.
 *
 * The attention of consecutive tokens of a sequence is computed together over
 * the keys that they select together, because they select mostly the same ones.
 * The bits are the same.
 */

typedef struct {
    dsa_model_t       *model;
    const dsa_rows_t  *seq;
    uint32_t           layer;
    uint32_t           row;         /* of the step: the first token */
    uint32_t           n;
    uint32_t           piece[DSA_MQA_TOKENS + 1];   /* the first token of a
                                       piece of the attention, and the end */
} dsa_mqa_t;


static uint32_t dsa_mqa_pieces(dsa_mqa_t *job);
static uint32_t dsa_mqa_mark(dsa_model_t *m, size_t row, int first);
static uint32_t dsa_mqa_union(const dsa_model_t *m, size_t row, size_t n,
    dsa_scratch_t *t);
static void dsa_mqa_query_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_mqa_attend_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_mqa_value_piece(void *ctx, uint32_t piece, uint32_t thread);


void
dsa_model_mqa(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t tokens)
{
    uint32_t   pieces;
    dsa_mqa_t  job;

    job.model = m;
    job.seq = seq;
    job.layer = layer;

    for (job.row = 0; job.row < tokens; job.row += job.n) {
        job.n = tokens - job.row < DSA_MQA_TOKENS ? tokens - job.row
                                                  : DSA_MQA_TOKENS;
        pieces = (job.n + DSA_LINEAR_TOKENS - 1) / DSA_LINEAR_TOKENS
                 * m->config->num_attention_heads;

        dsa_threads_run(m->pool, pieces, dsa_mqa_query_piece, &job);
        dsa_threads_run(m->pool, dsa_mqa_pieces(&job), dsa_mqa_attend_piece,
                        &job);
        dsa_threads_run(m->pool, pieces, dsa_mqa_value_piece, &job);
    }
}


uint32_t
dsa_model_mqa_together(const dsa_model_t *m)
{
    uint32_t  heads;

    heads = m->config->num_attention_heads;

    return heads < DSA_MQA_ROWS ? DSA_MQA_ROWS / heads : 1;
}


uint32_t
dsa_model_mqa_keys(const dsa_model_t *m)
{
    uint32_t  keys;

    keys = DSA_MQA_EXCESS * m->topk;

    return keys < m->config->max_position_embeddings
           ? keys : m->config->max_position_embeddings;
}


/*
 * Sets job->piece and returns the number of pieces.  A token is in the piece of
 * the one before it if there is room, both are of one sequence, and the tokens
 * of the piece select few enough keys together.
 */

static uint32_t
dsa_mqa_pieces(dsa_mqa_t *job)
{
    size_t            row;
    uint32_t          i, n, most, keys;
    dsa_model_t      *m = job->model;
    dsa_workspace_t  *w = &m->work;

    most = dsa_model_mqa_together(m);
    keys = 0;

    for (i = 0, n = 0; i < job->n; i++) {
        row = (size_t) job->row + i;

        if (i == 0 || i - job->piece[n - 1] == most
            || w->owner[row] != w->owner[row - 1])
        {
            job->piece[n++] = i;
            keys = dsa_mqa_mark(m, row, 1);

        } else {
            keys += dsa_mqa_mark(m, row, 0);

            if (keys > dsa_model_mqa_keys(m)) {
                job->piece[n++] = i;
                keys = dsa_mqa_mark(m, row, 1);
            }
        }
    }

    job->piece[n] = job->n;

    return n;
}


/*
 * Marks the keys of a token, and returns how many were not marked before.
 * first: no key is marked before.
 */

static uint32_t
dsa_mqa_mark(dsa_model_t *m, size_t row, int first)
{
    int32_t          *selected;
    uint32_t          i, n, new;
    dsa_workspace_t  *w = &m->work;

    selected = w->selected + row * m->topk;
    n = w->n_selected[row];

    if (dsa_model_mqa_together(m) == 1) {
        return n;
    }

    if (first && ++w->marks == 0) {
        memset(w->mark, 0,
               m->config->max_position_embeddings * sizeof(uint32_t));
        w->marks = 1;
    }

    for (i = 0, new = 0; i < n; i++) {
        new += w->mark[selected[i]] != w->marks;
        w->mark[selected[i]] = w->marks;
    }

    return new;
}


/* Finds the tokens first .. first+n-1 of the job for a piece, and its head. */

static size_t
dsa_mqa_tokens(const dsa_mqa_t *job, uint32_t piece, size_t *first,
    size_t *head)
{
    *first = piece / job->model->attention.heads * DSA_LINEAR_TOKENS;
    *head = piece % job->model->attention.heads;

    return job->n - *first < DSA_LINEAR_TOKENS ? job->n - *first
                                               : DSA_LINEAR_TOKENS;
}


/* q_latent = W_UK^T q_nope. */

static void
dsa_mqa_query_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                  *y;
    size_t                  i, n, first, head, ld_q, ld;
    dsa_mqa_t              *job = ctx;
    dsa_model_t            *m = job->model;
    const dsa_attention_t  *a = &m->attention;

    n = dsa_mqa_tokens(job, piece, &first, &head);
    ld_q = a->heads * (a->nope + a->rope);
    ld = a->heads * a->latent;
    y = m->work.q_latent + first * ld + head * a->latent;

    dsa_gemm_weight(y, ld,
                    m->work.q + (job->row + first) * ld_q
                    + head * (a->nope + a->rope),
                    ld_q, &m->layer[job->layer].kv_b[head].k_t.weight, n, 0,
                    a->latent);

    if (m->served) {
        for (i = 0; i < n; i++) {
            dsa_bf16_round_rows(y + i * ld, a->latent);
        }
    }
}


static void
dsa_mqa_attend_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                  *u, *q, *q_latent;
    size_t                  row, first, n, ld;
    int32_t                *selected;
    uint32_t                keys;
    dsa_mqa_t              *job = ctx;
    dsa_model_t            *m = job->model;
    dsa_scratch_t          *t = &m->scratch[thread];
    dsa_workspace_t        *w = &m->work;
    const dsa_rows_t       *s;
    const dsa_attention_t  *a = &m->attention;

    first = job->piece[piece];
    n = job->piece[piece + 1] - first;
    row = job->row + first;
    s = &job->seq[w->owner[row]];
    ld = a->heads * a->latent;
    q = w->q + row * a->heads * (a->nope + a->rope) + a->nope;
    q_latent = w->q_latent + first * ld;
    u = w->u + first * ld;

    keys = w->n_selected[row];
    selected = w->selected + row * m->topk;

    if (n != 1) {
        keys = dsa_mqa_union(m, row, n, t);
        selected = t->keys;
    }

    dsa_cache_latents(t->c, t->k_rope, &m->cache, dsa_model_page(m, s->rank),
                      job->layer, s->pages, selected, 0, keys);

    if (n == 1) {
        dsa_attention_mqa(u, q_latent, q, a->nope + a->rope, t->c, t->k_rope,
                          keys, a, m->served, t->mqa_dots);

    } else {
        dsa_attention_mqa_all(u, q_latent, q, a->nope + a->rope, t->c,
                              t->k_rope, n, keys, t->index, m->topk,
                              w->n_selected + row, a, m->served, t->mqa_dots);
    }

    if (m->served) {
        dsa_bf16_round_rows(u, n * ld);
    }
}


/*
 * Sets t->keys to the rising positions that n tokens from row on select
 * together, and t->index to where those of each token are in it.  Returns the
 * number of positions.
 */

static uint32_t
dsa_mqa_union(const dsa_model_t *m, size_t row, size_t n, dsa_scratch_t *t)
{
    size_t                  i, j, words;
    int32_t                 position, *index;
    uint32_t                keys;
    uint64_t                bits;
    const int32_t          *selected;
    const dsa_workspace_t  *w = &m->work;

    words = w->position[row + n - 1] / 64 + 1;
    memset(t->bits, 0, words * sizeof(uint64_t));

    for (i = 0; i < n; i++) {
        selected = w->selected + (row + i) * m->topk;

        for (j = 0; j < w->n_selected[row + i]; j++) {
            t->bits[selected[j] / 64] |= 1ULL << selected[j] % 64;
        }
    }

    for (i = 0, keys = 0; i < words; i++) {
        for (bits = t->bits[i]; bits != 0; bits &= bits - 1) {
            position = (int32_t) (i * 64) + __builtin_ctzll(bits);

            t->rank[position] = (int32_t) keys;
            t->keys[keys++] = position;
        }
    }

    for (i = 0; i < n; i++) {
        selected = w->selected + (row + i) * m->topk;
        index = t->index + i * m->topk;

        for (j = 0; j < w->n_selected[row + i]; j++) {
            index[j] = t->rank[selected[j]];
        }
    }

    return keys;
}


/* o = W_UV u. */

static void
dsa_mqa_value_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                  *o;
    size_t                  i, n, first, head, ld_u, ld_o;
    dsa_mqa_t              *job = ctx;
    dsa_model_t            *m = job->model;
    const dsa_attention_t  *a = &m->attention;

    n = dsa_mqa_tokens(job, piece, &first, &head);
    ld_u = a->heads * a->latent;
    ld_o = a->heads * a->v;
    o = m->work.o + (job->row + first) * ld_o + head * a->v;

    dsa_gemm_weight(o, ld_o, m->work.u + first * ld_u + head * a->latent, ld_u,
                    &m->layer[job->layer].kv_b[head].v.weight, n, 0, a->v);

    if (m->served) {
        for (i = 0; i < n; i++) {
            dsa_bf16_round_rows(o + i * ld_o, a->v);
        }
    }
}
