
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/nccl.h"
#include "kernels/core/fp8.h"
#include "kernels/exchange/exchange.h"
#include "kernels/gemm/gemm.h"
#include "kernels/moe/moe.h"


static int dsa_cuda_mlp(dsa_cuda_rank_t *rank, dsa_bf16_t *y,
    const dsa_cuda_layer_t *l, uint32_t tokens);
static int dsa_cuda_logits(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t tokens);
static int dsa_cuda_trace_choice(dsa_cuda_rank_t *rank, uint32_t layer,
    uint32_t tokens);
static int dsa_cuda_experts(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t pairs);
static int dsa_cuda_local(dsa_cuda_rank_t *rank, uint32_t layer,
    uint32_t tokens);
static int dsa_cuda_gathered(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step);
static int dsa_cuda_rounds(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t fullest);


int
dsa_cuda_ffn(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step)
{
    const dsa_cuda_layer_t  *l;

    l = &rank->weights.layer[layer];

    if (!l->moe) {
        return dsa_cuda_mlp(rank, rank->work.x, l, step->tokens);
    }

    rank->work.expert = rank->routes + l->routes * rank->ld_routes;

    dsa_cuda_try(dsa_cuda_logits(rank, l, step->tokens));

    if (rank->shard.experts.n == rank->shard.experts.of) {
        return dsa_cuda_local(rank, layer, step->tokens);
    }

    return dsa_cuda_gathered(rank, layer, step);
}


/* y = down(silu(gate(y)) * up(y)) of the dense or the shared weights. */

static int
dsa_cuda_mlp(dsa_cuda_rank_t *rank, dsa_bf16_t *y, const dsa_cuda_layer_t *l,
    uint32_t tokens)
{
    dsa_cuda_work_t  *w;

    w = &rank->work;

    dsa_cuda_try(dsa_cuda_product(rank, w->gu, &w->y8, w->y, l->gate_up.cols,
                                  &l->gate_up, tokens));
    dsa_cuda_try(dsa_cuda_gated(rank, &w->act8, w->act, w->gu, tokens, NULL,
                                &l->down, NULL));

    return dsa_cuda_product(rank, y, &w->act8, w->act, l->down.cols, &l->down,
                            tokens);
}


/* Computes the router's logits for this rank's tokens. */

static int
dsa_cuda_logits(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t tokens)
{
    uint32_t          experts, hidden;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    experts = rank->router.experts;
    hidden = rank->config.hidden_size;

    return dsa_cuda_gemm_bf16(rank->gemm, w->logits, experts, 1, w->y, hidden,
                              l->router, hidden, tokens, experts, hidden,
                              rank->stream);
}


static int
dsa_cuda_trace_choice(dsa_cuda_rank_t *rank, uint32_t layer, uint32_t tokens)
{
    dsa_cuda_try(dsa_cuda_trace(rank, "expert", layer, tokens, rank->router.k,
                                rank->work.expert));

    return dsa_cuda_trace(rank, "expert_weight", layer, tokens,
                          rank->router.k, rank->work.weight);
}


/*
 * Sets rows to what the experts multiply of this rank's tokens, quantized by
 * the stored scale if there is one, and bytes to those of a row.
 */

static int
dsa_cuda_expert_rows(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t tokens, dsa_fp8_rows_t *rows, uint32_t *bytes)
{
    uint32_t          hidden;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    hidden = rank->config.hidden_size;

    if (l->expert_scale == NULL) {
        *bytes = dsa_cuda_operand(rows, &w->y8, w->y, &l->expert_gate_up);
        return 0;
    }

    *rows = w->expert8;
    *bytes = hidden;

    return dsa_cuda_fp8_quantize_by(rows, w->y, hidden, tokens, hidden,
                                    l->expert_scale, rank->stream);
}


/*
 * Computes pair_y: this rank's experts of pair8, which is in the order of the
 * plan.  pairs: the approximate number of pairs of a token and an expert, by
 * which the kernel for the products is chosen.
 */

static int
dsa_cuda_experts(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t pairs)
{
    dsa_cuda_work_t  *w;

    w = &rank->work;

    dsa_cuda_try(dsa_cuda_grouped(rank, w->pair_gu, &w->pair8, w->pair,
                                  &l->expert_gate_up, pairs));
    dsa_cuda_try(dsa_cuda_gated(rank, &w->pair_act8, w->pair_act, w->pair_gu,
                                0, &w->plan, &l->expert_down,
                                l->expert_scale != NULL ? l->expert_scale + 1
                                                        : NULL));

    return dsa_cuda_grouped(rank, w->pair_y, &w->pair_act8, w->pair_act,
                            &l->expert_down, pairs);
}


/*
 * Computes the experts if all of them, or a part of the width of each, are on
 * this rank.
 */

static int
dsa_cuda_local(dsa_cuda_rank_t *rank, uint32_t layer, uint32_t tokens)
{
    uint32_t                 k, hidden, bytes;
    dsa_fp8_rows_t           x, pair;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    l = &rank->weights.layer[layer];
    k = rank->router.k;
    hidden = rank->config.hidden_size;

    dsa_cuda_try(dsa_cuda_expert_rows(rank, l, tokens, &x, &bytes));
    (void) dsa_cuda_operand(&pair, &w->pair8, w->pair, &l->expert_gate_up);

    dsa_cuda_try(dsa_cuda_route_sort(&pair, &x, &w->plan, w->expert, w->weight,
                                     w->logits, l->router_bias, tokens,
                                     &rank->router, bytes, rank->stream));
    dsa_cuda_try(dsa_cuda_trace_choice(rank, layer, tokens));
    dsa_cuda_try(dsa_cuda_experts(rank, l, tokens * k));
    dsa_cuda_try(dsa_cuda_mlp(rank, w->shared, l, tokens));

    return dsa_cuda_moe_combine(w->x, w->pair_y, w->shared, w->weight,
                                w->expert, &w->plan, tokens, k, hidden,
                                rank->stream);
}


/*
 * Computes the experts if each rank has some of them: tokens are sent to the
 * ranks of their experts, and the sums over these experts are sent back.  The
 * shared expert is computed while the tokens of the other ranks arrive.
 * Between hosts NCCL moves what the kernels have packed (nccl.h).
 */

static int
dsa_cuda_gathered(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step)
{
    uint32_t                 k, hidden, bytes;
    dsa_fp8_rows_t           x;
    dsa_cuda_work_t         *w;
    dsa_cuda_peers_t        *p;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    p = &rank->peers;
    l = &rank->weights.layer[layer];
    k = rank->router.k;
    hidden = rank->config.hidden_size;

    dsa_cuda_try(dsa_cuda_expert_rows(rank, l, step->tokens, &x, &bytes));

    if (rank->net.ready) {
        dsa_cuda_nccl_begin(rank, step->fullest);
    }

    dsa_cuda_try(dsa_cuda_route(w->expert, w->weight, w->logits,
                                l->router_bias, step->tokens, &rank->router,
                                rank->stream));
    dsa_cuda_try(dsa_cuda_trace_choice(rank, layer, step->tokens));
    dsa_cuda_try(dsa_cuda_exchange_tokens(&p->exchange, &p->tokens, &x,
                                          w->expert, w->weight,
                                          rank->input.slot, step->tokens,
                                          step->fullest, rank->experts, k,
                                          bytes, rank->stream));

    if (rank->net.ready) {
        dsa_cuda_try(dsa_cuda_nccl_tokens(rank, step->fullest, bytes));
    }

    dsa_cuda_try(dsa_cuda_mlp(rank, w->shared, l, step->tokens));

    if (!rank->net.ready) {
        dsa_cuda_try(dsa_cuda_exchange_wait(&p->exchange, rank->stream));
    }

    dsa_cuda_try(dsa_cuda_rounds(rank, l, step->fullest));

    if (rank->net.ready) {
        dsa_cuda_try(dsa_cuda_nccl_sums(rank, step->fullest));
    }

    return dsa_cuda_exchange_sum(rank->net.ready ? &rank->net.sum
                                                 : &p->exchange,
                                 w->x, rank->shared.part,
                                 w->shared, w->expert, rank->input.slot,
                                 step->tokens, step->fullest, rank->experts, k,
                                 hidden, rank->stream);
}


/* Computes the gathered tokens of all ranks in rounds of at most R tokens. */

static int
dsa_cuda_rounds(dsa_cuda_rank_t *rank, const dsa_cuda_layer_t *l,
    uint32_t fullest)
{
    uint32_t            k, n, all, first, pairs, hidden, bytes;
    const int32_t      *expert;
    dsa_cuda_work_t    *w;
    dsa_fp8_rows_t      x, pair;
    dsa_cuda_peers_t   *p;
    dsa_cuda_shared_t  *s;

    w = &rank->work;
    p = &rank->peers;
    s = &rank->shared;
    k = rank->router.k;
    hidden = rank->config.hidden_size;
    all = p->exchange.ranks * fullest;
    bytes = dsa_cuda_operand(&pair, &w->pair8, w->pair, &l->expert_gate_up);

    for (first = 0; first < all; first += n) {
        n = all - first < rank->round ? all - first : rank->round;

        x.q = s->x.q + (uint64_t) first * bytes;
        x.scale = s->x.scale != NULL ? s->x.scale + first : NULL;
        x.ld = s->x.ld;
        expert = s->expert + (uint64_t) first * k;
        pairs = n * k / p->exchange.ranks;

        dsa_cuda_try(dsa_cuda_moe_sort(&pair, &x, &w->plan, expert, n, k,
                                       rank->experts, bytes, rank->stream));
        dsa_cuda_try(dsa_cuda_experts(rank, l, pairs > 0 ? pairs : 1));
        dsa_cuda_try(dsa_cuda_exchange_combine(&p->exchange, p->part,
                                               w->pair_y, s->weight, s->expert,
                                               &w->plan, first, n, fullest, k,
                                               hidden, first + n == all,
                                               rank->stream));
    }

    return 0;
}
