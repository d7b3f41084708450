
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cpu/parts.h"
#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "kernels/exchange/exchange.h"
#include "kernels/moe/moe.h"


typedef struct {
    dsa_model_t              *model;
    const dsa_model_layer_t  *weights;
    uint32_t                  tokens;
    uint32_t                  all;      /* tokens with those of other hosts */
} dsa_ffn_t;


static void dsa_ffn_dense(dsa_ffn_t *f);
static void dsa_ffn_swiglu_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_ffn_experts(dsa_ffn_t *f, uint32_t layer);
static uint32_t dsa_ffn_pieces(dsa_ffn_t *f);
static void dsa_ffn_route_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_ffn_expert_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_ffn_mlp(const dsa_model_t *m, float *y, uint64_t step,
    const dsa_model_mlp_t *mlp, const float *x, const float *x8, uint32_t n,
    const dsa_scratch_t *t);
static void dsa_ffn_product(const dsa_model_t *m, float *y,
    const dsa_matrix_t *w, const float *x, uint32_t n);
static void dsa_ffn_part_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_ffn_combine_piece(void *ctx, uint32_t piece, uint32_t thread);
static void dsa_ffn_combine_slices(dsa_model_t *m, uint64_t row, uint32_t n);


void
dsa_model_ffn(dsa_model_t *m, uint32_t layer, uint32_t tokens)
{
    dsa_ffn_t  f = { m, &m->layer[layer], tokens, tokens };

    if (f.weights->moe) {
        dsa_ffn_experts(&f, layer);

    } else if (tokens != 0) {
        dsa_ffn_dense(&f);
    }
}


/* Returns the tokens of a piece that begins at row, of tokens in all. */

static uint32_t
dsa_ffn_tokens(uint32_t tokens, uint32_t row)
{
    return tokens - row < DSA_ROW_TOKENS ? tokens - row : DSA_ROW_TOKENS;
}


/* x = down(silu(gate(x)) * up(x)). */

static void
dsa_ffn_dense(dsa_ffn_t *f)
{
    dsa_model_t            *m = f->model;
    dsa_product_t           p[2];
    dsa_workspace_t        *w = &m->work;
    const dsa_model_mlp_t  *mlp = &f->weights->mlp;

    p[0] = (dsa_product_t) { w->gate,
        dsa_model_operand(m, &mlp->gate, w->x, w->x8), &mlp->gate, m->served };
    p[1] = (dsa_product_t) { w->up,
        dsa_model_operand(m, &mlp->up, w->x, w->x8), &mlp->up, m->served };

    dsa_model_products(m, p, 2, f->tokens);
    dsa_model_rows(m, f->tokens, dsa_ffn_swiglu_piece, f);
    dsa_model_sliced(m, w->x, w->gate, mlp->down, f->tokens);
}


static void
dsa_ffn_swiglu_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float         *gate;
    uint32_t       n, cols;
    dsa_ffn_t     *f = ctx;
    dsa_model_t   *m = f->model;

    n = dsa_ffn_tokens(f->tokens, piece * DSA_ROW_TOKENS);
    cols = (uint32_t) f->weights->mlp.down->tensor.ld;
    gate = m->work.gate + (uint64_t) piece * DSA_ROW_TOKENS * cols;

    dsa_swiglu(gate, gate, m->work.up + (gate - m->work.gate),
               (size_t) n * cols, m->served);

    if (m->served && f->weights->mlp.down->tensor.dtype == DSA_GEMM_E4M3) {
        dsa_fp8_simulate(gate, gate, n, cols, (int) m->config->ue8m0);
    }
}


/* x = the weighted sum of the chosen experts, plus the shared expert. */

static void
dsa_ffn_experts(dsa_ffn_t *f, uint32_t layer)
{
    uint32_t          i, k;
    dsa_model_t      *m = f->model;
    dsa_product_t     router;
    dsa_workspace_t  *w = &m->work;

    k = m->router.k;

    router = (dsa_product_t) { w->router, w->x, &f->weights->router, 0 };

    dsa_model_products(m, &router, 1, f->tokens);
    dsa_model_rows(m, f->tokens, dsa_ffn_route_piece, f);

    dsa_model_report(m, "expert", layer, f->tokens, k, w->expert);
    dsa_model_report(m, "expert_weight", layer, f->tokens, k,
                     w->expert_weight);

    if (m->hosts.n > 1) {
        f->all = dsa_model_gather(m, f->tokens);

        if (m->failed) {
            return;
        }
    }

    dsa_moe_group(w->pair, w->offset, w->expert, f->all, k,
                  m->router.experts);

    for (i = 0; i < f->all * k; i++) {
        w->place[w->pair[i]] = (int32_t) i;
    }

    dsa_threads_run(m->pool, dsa_ffn_pieces(f), dsa_ffn_expert_piece, f);

    if (m->ranks > 1) {
        dsa_model_rows(m, f->all, dsa_ffn_part_piece, f);
    }

    if (m->hosts.n > 1) {
        dsa_model_scatter(m);
    }

    dsa_model_rows(m, f->tokens, dsa_ffn_combine_piece, f);
}


/* Sets piece[e], the first piece of each expert; the shared one is the last. */

static uint32_t
dsa_ffn_pieces(dsa_ffn_t *f)
{
    uint32_t          e, n, pieces, experts;
    dsa_model_t      *m = f->model;
    dsa_workspace_t  *w = &m->work;

    experts = m->router.experts;
    pieces = 0;

    for (e = 0; e <= experts; e++) {
        n = e < experts ? w->offset[e + 1] - w->offset[e] : f->tokens;

        /* another host computes its own experts */

        if (m->hosts.n > 1 && e < experts
            && !dsa_model_own(m, e / m->shard[0].experts.n))
        {
            n = 0;
        }

        w->piece[e] = pieces;
        pieces += (n + DSA_EXPERT_TOKENS - 1) / DSA_EXPERT_TOKENS;
    }

    w->piece[experts + 1] = pieces;

    return pieces;
}


static void
dsa_ffn_route_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    uint64_t          row, k;
    dsa_ffn_t        *f = ctx;
    dsa_model_t      *m = f->model;
    dsa_workspace_t  *w = &m->work;

    row = (uint64_t) piece * DSA_ROW_TOKENS;
    k = m->router.k;

    dsa_route(w->expert + row * k, w->expert_weight + row * k,
              w->router + row * m->router.experts, f->weights->router_bias,
              dsa_ffn_tokens(f->tokens, (uint32_t) row), &m->router,
              m->scratch[thread].route);
}


/*
 * Computes up to DSA_EXPERT_TOKENS tokens of an expert.  The results of each
 * slice are written to expert_y in the order of pair, those of the shared
 * expert to y.
 */

static void
dsa_ffn_expert_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    float                    *y;
    uint32_t                  e, n, end, first, hidden, experts;
    uint64_t                  step;
    dsa_ffn_t                *f = ctx;
    dsa_model_t              *m = f->model;
    dsa_scratch_t            *t = &m->scratch[thread];
    dsa_workspace_t          *w = &m->work;
    const dsa_model_mlp_t    *mlp;

    hidden = m->config->hidden_size;
    experts = m->router.experts;
    step = (uint64_t) m->max_tokens * hidden;

    for (e = 0; piece >= w->piece[e + 1]; e++) { /* void */ }

    first = (piece - w->piece[e]) * DSA_EXPERT_TOKENS;

    if (e < experts) {
        mlp = &f->weights->expert[e];
        first += w->offset[e];
        end = w->offset[e + 1];
        y = w->expert_y + (uint64_t) first * hidden;

    } else {
        mlp = &f->weights->shared;
        end = f->tokens;
        y = w->y + (uint64_t) first * hidden;
    }

    n = end - first < DSA_EXPERT_TOKENS ? end - first : DSA_EXPERT_TOKENS;

    if (e < experts) {
        dsa_moe_gather(t->expert_x, w->x, w->pair + first, n, m->router.k,
                       hidden);

        if (m->served && mlp->input[0] != 0) {
            dsa_fp8_simulate_by(t->expert_x8, t->expert_x, (size_t) n * hidden,
                                mlp->input[0]);

        } else if (m->served) {
            dsa_moe_gather(t->expert_x8, w->x8, w->pair + first, n,
                           m->router.k, hidden);
        }

        dsa_ffn_mlp(m, y, step * m->router.k, mlp, t->expert_x, t->expert_x8,
                    n, t);

    } else {
        dsa_ffn_mlp(m, y, step, mlp, w->x + (uint64_t) first * hidden,
                    w->x8 + (uint64_t) first * hidden, n, t);
    }
}


/* Writes the results of slice i of down_proj to y + i * step. */

static void
dsa_ffn_mlp(const dsa_model_t *m, float *y, uint64_t step,
    const dsa_model_mlp_t *mlp, const float *x, const float *x8, uint32_t n,
    const dsa_scratch_t *t)
{
    size_t    width;
    uint32_t  i;

    width = mlp->down->tensor.ld;

    dsa_ffn_product(m, t->expert_gate, &mlp->gate,
                    dsa_model_operand(m, &mlp->gate, x, x8), n);
    dsa_ffn_product(m, t->expert_up, &mlp->up,
                    dsa_model_operand(m, &mlp->up, x, x8), n);

    dsa_swiglu(t->expert_gate, t->expert_gate, t->expert_up, n * width,
               m->served);

    if (m->served && mlp->input[1] != 0) {
        dsa_fp8_simulate_by(t->expert_gate, t->expert_gate, n * width,
                            mlp->input[1]);

    } else if (m->served && dsa_matrix_e4m3(mlp->down)) {
        dsa_fp8_simulate(t->expert_gate, t->expert_gate, n, width,
                         (int) m->config->ue8m0);
    }

    for (i = 0; i < m->slices; i++) {
        dsa_ffn_product(m, y + i * step, &mlp->down[i],
                        t->expert_gate + i * mlp->down[i].tensor.in, n);
    }
}


static void
dsa_ffn_product(const dsa_model_t *m, float *y, const dsa_matrix_t *w,
    const float *x, uint32_t n)
{
    size_t  out;

    out = w->weight.out;

    dsa_gemm_weight(y, out, x, w->tensor.ld, &w->weight, n, 0, out);

    if (m->served) {
        dsa_bf16_round_rows(y, n * out);
    }
}


/*
 * With attention data: each rank of this host adds up the results of its own
 * experts.
 */

static void
dsa_ffn_part_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    uint32_t          i, n, k, experts;
    uint64_t          row, hidden, step;
    dsa_ffn_t        *f = ctx;
    dsa_model_t      *m = f->model;
    dsa_workspace_t  *w = &m->work;

    row = (uint64_t) piece * DSA_ROW_TOKENS;
    n = dsa_ffn_tokens(f->all, (uint32_t) row);
    k = m->router.k;
    experts = m->shard[0].experts.n;
    hidden = m->config->hidden_size;
    step = m->max_tokens * hidden;

    for (i = m->first; i < m->first + m->own; i++) {
        dsa_exchange_combine(w->part + i * step + row * hidden, w->expert_y,
                             w->expert_weight + row * k, w->expert + row * k,
                             w->place + row * k, n, k, hidden, i, experts,
                             m->served);
    }
}


static void
dsa_ffn_combine_piece(void *ctx, uint32_t piece, uint32_t thread)
{
    uint32_t          row, n;
    uint64_t          hidden, k;
    dsa_ffn_t        *f = ctx;
    dsa_model_t      *m = f->model;
    dsa_workspace_t  *w = &m->work;

    row = piece * DSA_ROW_TOKENS;
    n = dsa_ffn_tokens(f->tokens, row);
    hidden = m->config->hidden_size;
    k = m->router.k;

    if (m->ranks > 1) {

        /* the token's rank adds the sums of all to that of the shared expert */

        dsa_exchange_sum(w->x + row * hidden, w->part + row * hidden,
                         m->max_tokens * hidden, w->y + row * hidden,
                         w->expert + row * k, n, m->ranks,
                         m->shard[0].experts.n, (uint32_t) k, hidden,
                         m->served);
        return;
    }

    if (m->slices > 1) {
        dsa_ffn_combine_slices(m, row, n);
        return;
    }

    dsa_moe_combine(w->x + row * hidden, w->expert_y, w->y + row * hidden,
                    w->expert_weight + row * k, w->place + row * k, n,
                    (uint32_t) k, hidden, m->served);
}


/*
 * With attention tensor: each GPU adds up the results of its slices of all
 * experts, the shared one included, and these sums are added up.
 */

static void
dsa_ffn_combine_slices(dsa_model_t *m, uint64_t row, uint32_t n)
{
    uint32_t          i, k;
    uint64_t          hidden, step;
    dsa_workspace_t  *w = &m->work;

    k = m->router.k;
    hidden = m->config->hidden_size;
    step = m->max_tokens * hidden;

    for (i = 0; i < m->slices; i++) {
        dsa_moe_combine(w->part + i * step + row * hidden,
                        w->expert_y + i * step * k,
                        w->y + i * step + row * hidden,
                        w->expert_weight + row * k, w->place + row * k, n, k,
                        hidden, m->served);
    }

    dsa_exchange_all_reduce(w->x + row * hidden, w->part + row * hidden, step,
                            n * hidden, m->slices, m->served);
}
