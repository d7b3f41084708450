
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cpu/parts.h"
#include "kernels/bf16.h"


/*
 * Absorbed MQA for up to DSA_MQA_TOKENS tokens, in three jobs: the queries in
 * latent space, the attention of each token over all heads, the values.  As in
 * the published code, kv_b_proj is applied with BF16 operands, not FP8.
 */

typedef struct {
    dsa_model_t       *model;
    const dsa_rows_t  *seq;
    uint32_t           layer;
    uint32_t           row;         /* of the step: the first token */
    uint32_t           n;
} dsa_mqa_t;


static void dsa_mqa_query_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_mqa_attend_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_mqa_value_piece(void *ctx, uint32_t piece, uint32_t thread);


void
dsa_model_mqa(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t row, uint32_t n)
{
    uint32_t   end, pieces;
    dsa_mqa_t  job = { m, seq, layer, row, 0 };

    end = row + n;

    for ( /* void */ ; job.row < end; job.row += job.n) {
        job.n = end - job.row < DSA_MQA_TOKENS ? end - job.row
                                               : DSA_MQA_TOKENS;
        pieces = (job.n + DSA_LINEAR_TOKENS - 1) / DSA_LINEAR_TOKENS
                 * m->config->num_attention_heads;

        dsa_threads_run(m->pool, pieces, dsa_mqa_query_piece, &job);
        dsa_threads_run(m->pool, job.n, dsa_mqa_attend_piece, &job);
        dsa_threads_run(m->pool, pieces, dsa_mqa_value_piece, &job);
    }
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
    float                  *u;
    size_t                  row, ld;
    const float            *q;
    dsa_mqa_t              *job = ctx;
    dsa_model_t            *m = job->model;
    dsa_scratch_t          *t = &m->scratch[thread];
    dsa_workspace_t        *w = &m->work;
    const dsa_rows_t       *s;
    const dsa_attention_t  *a = &m->attention;

    row = (size_t) job->row + piece;
    s = &job->seq[w->owner[row]];
    ld = a->heads * a->latent;
    q = w->q + row * a->heads * (a->nope + a->rope);
    u = w->u + piece * ld;

    dsa_cache_latents(t->c, t->k_rope, &m->cache, dsa_model_page(m, s->rank),
                      job->layer, s->pages, w->selected + row * m->topk, 0,
                      w->n_selected[row]);
    dsa_attention_mqa(u, w->q_latent + piece * ld, q + a->nope,
                      a->nope + a->rope, t->c, t->k_rope, w->n_selected[row],
                      a, m->served, t->mqa_dots);

    if (m->served) {
        dsa_bf16_round_rows(u, ld);
    }
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
