
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/model.h"
#include "kernels/gemm.h"
#include "kernels/moe.h"


/* y = down(silu(gate(y8)) * up(y8)) of the dense or the shared weights. */

static int
dsa_cuda_mlp(dsa_cuda_model_t *m, dsa_bf16_t *y, const dsa_cuda_layer_t *l,
    uint32_t rows)
{
    dsa_cuda_work_t  *w;

    w = &m->work;

    dsa_cuda_try(dsa_cuda_gemm_fp8(m->gemm, w->gu, l->gate_up.rows, &w->y8,
                                   &l->gate_up, rows, m->stream));
    dsa_cuda_try(dsa_cuda_swiglu(&w->act, w->gu, rows, l->down.cols, NULL, 0,
                                 m->stream));

    return dsa_cuda_gemm_fp8(m->gemm, y, l->down.rows, &w->act, &l->down,
                             rows, m->stream);
}


int
dsa_cuda_ffn(dsa_cuda_model_t *m, uint32_t layer, const dsa_cuda_step_t *step)
{
    uint32_t                 k, rows, pairs, experts, hidden;
    dsa_cuda_work_t         *w;
    const dsa_cuda_layer_t  *l;

    w = &m->work;
    l = &m->weights.layer[layer];
    rows = step->rows;

    if (!l->moe) {
        return dsa_cuda_mlp(m, w->x, l, rows);
    }

    k = m->router.k;
    experts = m->router.experts;
    hidden = m->config.hidden_size;
    pairs = rows * k;

    dsa_cuda_try(dsa_cuda_gemm_bf16(m->gemm, w->logits, experts, 1, w->y,
                                    hidden, l->router, hidden, rows, experts,
                                    hidden, m->stream));
    dsa_cuda_try(dsa_cuda_route(w->expert, w->weight, w->logits,
                                l->router_bias, rows, &m->router,
                                m->stream));

    dsa_cuda_try(dsa_cuda_tell(m, "expert", layer, rows, k, w->expert));
    dsa_cuda_try(dsa_cuda_tell(m, "expert_weight", layer, rows, k,
                               w->weight));

    dsa_cuda_try(dsa_cuda_moe_plan(&w->plan, w->expert, rows, k, experts,
                                   m->stream));
    dsa_cuda_try(dsa_cuda_moe_gather(&w->pair8, &w->y8, &w->plan, rows, k,
                                     experts, hidden, m->stream));
    dsa_cuda_try(dsa_cuda_moe_gemm(&m->state, w->pair_gu, &w->pair8,
                                   &l->expert_gate_up, &w->plan, experts,
                                   pairs, m->stream));
    dsa_cuda_try(dsa_cuda_swiglu(&w->pair_act, w->pair_gu, 0,
                                 l->expert_down.cols, &w->plan, experts,
                                 m->stream));
    dsa_cuda_try(dsa_cuda_moe_gemm(&m->state, w->pair_y, &w->pair_act,
                                   &l->expert_down, &w->plan, experts, pairs,
                                   m->stream));

    dsa_cuda_try(dsa_cuda_mlp(m, w->shared, l, rows));

    return dsa_cuda_moe_combine(w->x, w->pair_y, w->shared, w->weight,
                                w->expert, &w->plan, rows, k, hidden,
                                m->stream);
}
