
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/rank.h"
#include "kernels/gemm.h"
#include "kernels/moe.h"


/* y = down(silu(gate(y8)) * up(y8)) of the dense or the shared weights. */

static int
dsa_cuda_mlp(dsa_cuda_rank_t *rank, dsa_bf16_t *y, const dsa_cuda_layer_t *l,
    uint32_t tokens)
{
    dsa_cuda_work_t  *w;

    w = &rank->work;

    dsa_cuda_try(dsa_cuda_gemm_fp8(rank->gemm, w->gu, l->gate_up.rows,
                                   &w->y8, &l->gate_up, tokens, rank->stream));
    dsa_cuda_try(dsa_cuda_swiglu(&w->act, w->gu, tokens, l->down.cols, NULL, 0,
                                 rank->stream));

    return dsa_cuda_gemm_fp8(rank->gemm, y, l->down.rows, &w->act, &l->down,
                             tokens, rank->stream);
}


int
dsa_cuda_ffn(dsa_cuda_rank_t *rank, uint32_t layer,
    const dsa_cuda_step_t *step)
{
    uint32_t                 k, tokens, pairs, experts, hidden;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &rank->work;
    l = &rank->weights.layer[layer];
    tokens = step->tokens;

    if (!l->moe) {
        return dsa_cuda_mlp(rank, w->x, l, tokens);
    }

    k = rank->router.k;
    experts = rank->router.experts;
    hidden = rank->config.hidden_size;
    pairs = tokens * k;

    dsa_cuda_try(dsa_cuda_gemm_bf16(rank->gemm, w->logits, experts, 1, w->y,
                                    hidden, l->router, hidden, tokens, experts,
                                    hidden, rank->stream));
    dsa_cuda_try(dsa_cuda_route(w->expert, w->weight, w->logits,
                                l->router_bias, tokens, &rank->router,
                                rank->stream));

    dsa_cuda_try(dsa_cuda_trace(rank, "expert", layer, tokens, k, w->expert));
    dsa_cuda_try(dsa_cuda_trace(rank, "expert_weight", layer, tokens, k,
                                w->weight));

    dsa_cuda_try(dsa_cuda_moe_plan(&w->plan, w->expert, tokens, k, experts,
                                   rank->stream));
    dsa_cuda_try(dsa_cuda_moe_gather(&w->pair8, &w->y8, &w->plan, tokens, k,
                                     experts, hidden, rank->stream));
    dsa_cuda_try(dsa_cuda_moe_gemm(&rank->state, w->pair_gu, &w->pair8,
                                   &l->expert_gate_up, &w->plan, experts,
                                   pairs, rank->stream));
    dsa_cuda_try(dsa_cuda_swiglu(&w->pair_act, w->pair_gu, 0,
                                 l->expert_down.cols, &w->plan, experts,
                                 rank->stream));
    dsa_cuda_try(dsa_cuda_moe_gemm(&rank->state, w->pair_y, &w->pair_act,
                                   &l->expert_down, &w->plan, experts, pairs,
                                   rank->stream));

    dsa_cuda_try(dsa_cuda_mlp(rank, w->shared, l, tokens));

    return dsa_cuda_moe_combine(w->x, w->pair_y, w->shared, w->weight,
                                w->expert, &w->plan, tokens, k, hidden,
                                rank->stream);
}
