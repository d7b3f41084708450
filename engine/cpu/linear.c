
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "engine/cpu/parts.h"
#include "kernels/core/bf16.h"
#include "kernels/exchange/exchange.h"


/* Products as a job of the thread pool. */

typedef struct {
    const dsa_product_t  *product;
    uint32_t              tokens;
    uint32_t              outputs[DSA_PRODUCTS];    /* pieces of the outputs of
                                                       a product */
    uint32_t              blocks;                   /* pieces of the tokens */
} dsa_products_t;


/* The sum over slices; a piece is DSA_ROW_TOKENS tokens. */

typedef struct {
    dsa_model_t          *model;
    float                *y;
    uint32_t              tokens;
} dsa_reduce_t;


static void dsa_sliced_piece(void *ctx, uint32_t piece, uint32_t thread);


const float *
dsa_model_operand(const dsa_model_t *m, const dsa_matrix_t *w, const float *x,
    const float *x8)
{
    return m->served && dsa_matrix_e4m3(w) ? x8 : x;
}


static void
dsa_products_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                    *y;
    size_t                    i, n, row, first, count;
    const dsa_product_t      *p;
    const dsa_products_t     *job = ctx;
    const dsa_gemm_weight_t  *w;

    for (i = 0; piece >= job->outputs[i] * job->blocks; i++) {
        piece -= job->outputs[i] * job->blocks;
    }

    p = &job->product[i];
    w = &p->w->weight;

    row = (size_t) (piece / job->outputs[i]) * DSA_LINEAR_TOKENS;
    first = (size_t) (piece % job->outputs[i]) * DSA_LINEAR_OUTPUTS;

    n = job->tokens - row < DSA_LINEAR_TOKENS ? job->tokens - row
                                              : DSA_LINEAR_TOKENS;
    count = w->out - first < DSA_LINEAR_OUTPUTS ? w->out - first
                                                : DSA_LINEAR_OUTPUTS;

    y = p->y + row * w->out + first;

    dsa_gemm_weight(y, w->out, p->x + row * p->w->tensor.ld, p->w->tensor.ld,
                    w, n, first, count);

    if (p->bf16) {
        for (i = 0; i < n; i++) {
            dsa_bf16_round_rows(y + i * w->out, count);
        }
    }
}


void
dsa_model_products(dsa_model_t *m, const dsa_product_t *p, uint32_t n,
    uint32_t tokens)
{
    uint32_t        i, pieces;
    uint64_t        work;
    dsa_products_t  job;

    assert(n <= DSA_PRODUCTS);

    job.product = p;
    job.tokens = tokens;
    job.blocks = (tokens + DSA_LINEAR_TOKENS - 1) / DSA_LINEAR_TOKENS;

    pieces = 0;
    work = 0;

    for (i = 0; i < n; i++) {
        job.outputs[i] = (uint32_t) ((p[i].w->weight.out
                                      + DSA_LINEAR_OUTPUTS - 1)
                                     / DSA_LINEAR_OUTPUTS);
        pieces += job.outputs[i] * job.blocks;
        work += (uint64_t) tokens * p[i].w->weight.out * p[i].w->weight.in;
    }

    if (work < DSA_LINEAR_SMALL) {
        for (i = 0; i < pieces; i++) {
            dsa_products_piece(&job, i, 0);
        }

        return;
    }

    dsa_threads_run(m->pool, pieces, dsa_products_piece, &job);
}


void
dsa_model_sliced(dsa_model_t *m, float *y, const float *x,
    const dsa_matrix_t *w, uint32_t tokens)
{
    uint32_t       i;
    uint64_t       step;
    dsa_reduce_t   reduce = { m, y, tokens };
    dsa_product_t  p;

    p.bf16 = m->served;

    if (m->slices == 1) {
        p.y = y;
        p.x = x;
        p.w = w;
        dsa_model_products(m, &p, 1, tokens);
        return;
    }

    step = (uint64_t) m->max_tokens * m->config->hidden_size;

    for (i = 0; i < m->slices; i++) {
        p.y = m->work.part + i * step;
        p.x = x + i * w[i].tensor.in;
        p.w = &w[i];
        dsa_model_products(m, &p, 1, tokens);
    }

    dsa_model_rows(m, tokens, dsa_sliced_piece, &reduce);
}


static void
dsa_sliced_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    uint64_t       at, n, hidden;
    dsa_reduce_t  *job = ctx;
    dsa_model_t   *m = job->model;

    n = job->tokens - piece * DSA_ROW_TOKENS;
    n = n < DSA_ROW_TOKENS ? n : DSA_ROW_TOKENS;
    hidden = m->config->hidden_size;
    at = (uint64_t) piece * DSA_ROW_TOKENS * hidden;

    dsa_exchange_all_reduce(job->y + at, m->work.part + at,
                            m->max_tokens * hidden, n * hidden, m->slices,
                            m->served);
}


void
dsa_model_rows(dsa_model_t *m, uint32_t tokens, dsa_threads_work_pt work,
    void *ctx)
{
    dsa_threads_run(m->pool, (tokens + DSA_ROW_TOKENS - 1) / DSA_ROW_TOKENS,
                 work, ctx);
}
