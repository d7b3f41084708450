
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cpu/parts.h"
#include "kernels/bf16.h"
#include "kernels/fp8.h"


/* MHA for the tokens of a prompt of one sequence. */

typedef struct {
    dsa_model_t       *model;
    const dsa_rows_t  *seq;
    uint32_t           layer;
    uint32_t           row;         /* index of the first token in the step */
    int                fp8;         /* latents are the operand of e4m3 */
} dsa_mha_t;


static void dsa_mha_decode_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_mha_head_piece(void *ctx, uint32_t head, uint32_t thread);
static void dsa_mha_expand(dsa_mha_t *job, uint32_t head, float *kv);


void
dsa_model_mha(dsa_model_t *m, uint32_t layer, const dsa_rows_t *seq,
    uint32_t row)
{
    uint32_t   end;
    dsa_mha_t  job = { m, seq, layer, row, 0 };

    /* all parts of kv_b_proj have its dtype */

    job.fp8 = m->served
              && m->layer[layer].kv_b[0].k.tensor.dtype == DSA_GEMM_E4M3;
    end = seq->start + seq->n;

    dsa_threads_run(m->pool, (end + DSA_DECODE_TOKENS - 1) / DSA_DECODE_TOKENS,
                 dsa_mha_decode_piece, &job);
    dsa_threads_run(m->pool, m->config->num_attention_heads, dsa_mha_head_piece,
                 &job);
}


/* Decodes the cache entries of the context to w.c and w.k_rope. */

static void
dsa_mha_decode_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float        *c, *k_rope;
    uint32_t      at, n;
    dsa_mha_t    *job = ctx;
    dsa_model_t  *m = job->model;

    at = piece * DSA_DECODE_TOKENS;
    n = job->seq->start + job->seq->n - at;
    n = n < DSA_DECODE_TOKENS ? n : DSA_DECODE_TOKENS;
    c = m->work.c + (size_t) at * m->cache.latent;
    k_rope = m->work.k_rope + (size_t) at * m->cache.rope;

    dsa_cache_latents(c, k_rope, &m->cache, dsa_model_page(m, job->seq->rank),
                      job->layer, job->seq->pages, NULL, at, n);

    if (job->fp8) {
        dsa_fp8_simulate(c, c, n, m->cache.latent, (int) m->config->ue8m0);
    }
}


static void
dsa_mha_head_piece(void *ctx, uint32_t head, uint32_t thread)
{
    float                  *o;
    size_t                  i, n, r, row, ld_q, ld_o;
    const float            *q;
    dsa_mha_t              *job = ctx;
    dsa_model_t            *m = job->model;
    dsa_scratch_t          *t = &m->scratch[thread];
    dsa_workspace_t        *w = &m->work;
    const dsa_attention_t  *a = &m->attention;

    ld_q = a->heads * (a->nope + a->rope);
    ld_o = a->heads * a->v;

    dsa_mha_expand(job, head, t->head_kv);

    for (r = 0; r < job->seq->n; r += n) {
        n = job->seq->n - r < DSA_MHA_TOKENS ? job->seq->n - r
                                             : DSA_MHA_TOKENS;
        row = job->row + r;
        q = w->q + row * ld_q + head * (a->nope + a->rope);
        o = w->o + row * ld_o + head * a->v;

        dsa_attention_mha(o, ld_o, q, ld_q, t->head_kv, w->k_rope, n,
                          job->seq->start + r + n,
                          w->selected + row * m->topk, m->topk,
                          w->n_selected + row, a, m->served, t->mha_dots);

        if (m->served) {
            for (i = 0; i < n; i++) {
                dsa_bf16_round_rows(o + i * ld_o, a->v);
            }
        }
    }
}


/* Computes kv [context, nope + v], k_nope and v of a head. */

static void
dsa_mha_expand(dsa_mha_t *job, uint32_t head, float *kv)
{
    size_t                  end, ld;
    dsa_model_t            *m = job->model;
    const dsa_model_kv_t   *w = &m->layer[job->layer].kv_b[head];
    const dsa_attention_t  *a = &m->attention;

    end = (size_t) job->seq->start + job->seq->n;
    ld = a->nope + a->v;

    dsa_gemm_weight(kv, ld, m->work.c, a->latent, &w->k.weight, end, 0,
                    a->nope);
    dsa_gemm_weight(kv + a->nope, ld, m->work.c, a->latent, &w->v.weight, end,
                    0, a->v);

    if (m->served) {
        dsa_bf16_round_rows(kv, end * ld);
    }
}
