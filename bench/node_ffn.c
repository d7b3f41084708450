
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "bench/node_ops.h"
#include "kernels/moe/moe_int4.h"


/* The ops of a layer's FFN. */

static int
dsa_node_router(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  experts, hidden;

    experts = n->router.experts;
    hidden = n->config.hidden_size;

    return dsa_cuda_gemm_bf16(n->gemm, n->work.logits, experts, 1, n->work.y,
                              hidden, l->router, hidden, n->step.tokens,
                              experts, hidden, n->b.stream);
}


/* The choices are not used: node_input.c has those of all ranks' tokens. */

static int
dsa_node_route(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_route(n->work.expert, n->work.weight, n->work.logits,
                          l->router_bias, n->step.tokens, &n->router,
                          n->b.stream);
}


static const int32_t *
dsa_node_chosen(const dsa_node_t *n)
{
    return n->chosen + (uint64_t) n->set * n->step.rows * n->router.k;
}


static uint32_t
dsa_node_experts(const dsa_node_t *n)
{
    return n->router.experts / n->shard.experts.of * n->shard.experts.n;
}


/* Ops on the experts of count gathered tokens from the first one on. */

static int
dsa_node_plan_some(dsa_node_t *n, uint32_t first, uint32_t count)
{
    return dsa_cuda_moe_plan(&n->work.plan,
                             dsa_node_chosen(n)
                             + (uint64_t) first * n->router.k, count,
                             n->router.k, dsa_node_experts(n), n->b.stream);
}


/* What the experts get. */

static dsa_fp8_rows_t
dsa_node_rows(const dsa_node_t *n)
{
    return dsa_node_gathers(n) ? n->gathered : n->work.y8;
}


static int
dsa_node_gather_some(dsa_node_t *n, uint32_t first, uint32_t count)
{
    dsa_fp8_rows_t  x;

    x = dsa_node_rows(n);
    x.q += (uint64_t) first * n->config.hidden_size;
    x.scale += first;

    return dsa_cuda_moe_gather(&n->work.pair8, &x, &n->work.plan, count,
                               n->router.k, dsa_node_experts(n),
                               n->config.hidden_size, n->b.stream);
}


/* About how many pairs count tokens have here, as engine/cuda/ffn.c has it. */

static uint32_t
dsa_node_pairs(const dsa_node_t *n, uint32_t count)
{
    uint32_t  pairs;

    pairs = count * n->router.k
            / (n->shard.experts.of / n->shard.experts.n);

    return pairs > 0 ? pairs : 1;
}


/* The products of count tokens' pairs with the experts' weights w. */

static int
dsa_node_grouped(dsa_node_t *n, dsa_bf16_t *y, const dsa_fp8_rows_t *x,
    const dsa_cuda_matrix_t *w, uint32_t count)
{
    if (w->int4.q != NULL) {
        return dsa_cuda_moe_gemm_int4(&n->b.state, y, x, &w->int4,
                                      &n->work.plan, dsa_node_experts(n),
                                      dsa_node_pairs(n, count), n->b.stream);
    }

    return dsa_cuda_moe_gemm(&n->b.state, y, x, &w->fp8, &n->work.plan,
                             dsa_node_experts(n), dsa_node_pairs(n, count),
                             n->b.stream);
}


static int
dsa_node_expert_up_some(dsa_node_t *n, const dsa_cuda_layer_t *l,
    uint32_t count)
{
    return dsa_node_grouped(n, n->work.pair_gu, &n->work.pair8,
                            &l->expert_gate_up, count);
}


static int
dsa_node_expert_act(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_swiglu(&n->work.pair_act8, n->work.pair_gu, 0,
                           l->expert_down.cols, &n->work.plan,
                           dsa_node_experts(n), (int) n->config.ue8m0,
                           n->b.stream);
}


static int
dsa_node_expert_down_some(dsa_node_t *n, const dsa_cuda_layer_t *l,
    uint32_t count)
{
    return dsa_node_grouped(n, n->work.pair_y, &n->work.pair_act8,
                            &l->expert_down, count);
}


static int
dsa_node_plan(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_plan_some(n, 0, n->step.rows);
}


static int
dsa_node_gather(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_gather_some(n, 0, n->step.rows);
}


/* These two take the place of the choice, the plan and the gather. */

static int
dsa_node_route_sort(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    const float  *logits;

    logits = n->logits + (uint64_t) n->set * DSA_MOE_SMALL
                         * n->router.experts;

    return dsa_cuda_route_sort(&n->work.pair8, &n->work.y8, &n->work.plan,
                               n->work.expert, n->work.weight, logits,
                               l->router_bias, n->step.rows, &n->router,
                               n->config.hidden_size, n->b.stream);
}


static int
dsa_node_sort(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    dsa_fp8_rows_t  x;

    x = dsa_node_rows(n);

    return dsa_cuda_moe_sort(&n->work.pair8, &x, &n->work.plan,
                             dsa_node_chosen(n), n->step.rows, n->router.k,
                             dsa_node_experts(n), n->config.hidden_size,
                             n->b.stream);
}


static int
dsa_node_expert_up(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_expert_up_some(n, l, n->step.rows);
}


static int
dsa_node_expert_down(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_node_expert_down_some(n, l, n->step.rows);
}


/* The same in rounds, as many tokens at a time as the engine has room for. */

static int
dsa_node_rounds(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    uint32_t  first, count;

    for (first = 0; first < n->step.rows; first += count) {
        count = n->step.rows - first;
        count = count < DSA_CUDA_ROUND_TOKENS ? count : DSA_CUDA_ROUND_TOKENS;

        dsa_cuda_try(dsa_node_plan_some(n, first, count));
        dsa_cuda_try(dsa_node_gather_some(n, first, count));
        dsa_cuda_try(dsa_node_expert_up_some(n, l, count));
        dsa_cuda_try(dsa_node_expert_act(n, l));
        dsa_cuda_try(dsa_node_expert_down_some(n, l, count));
    }

    return 0;
}


static int
dsa_node_up(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_gemm_fp8(n->gemm, n->work.gu, l->gate_up.rows,
                             &n->work.y8, &l->gate_up.fp8, n->step.tokens,
                             n->b.stream);
}


static int
dsa_node_act(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_swiglu(&n->work.act8, n->work.gu, n->step.tokens,
                           l->down.cols, NULL, 0, (int) n->config.ue8m0,
                           n->b.stream);
}


static int
dsa_node_down(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_gemm_fp8(n->gemm, l->moe ? n->work.shared : n->work.x,
                             l->down.rows, &n->work.act8, &l->down.fp8,
                             n->step.tokens, n->b.stream);
}


/*
 * Where tokens are gathered this belongs to the exchange.  The choices of
 * dsa_node_route_sort() are the same experts, but may be in another order.
 */

static int
dsa_node_combine(dsa_node_t *n, const dsa_cuda_layer_t *l)
{
    return dsa_cuda_moe_combine(n->work.x, n->work.pair_y, n->work.shared,
                                n->gathered_weight, dsa_node_chosen(n),
                                &n->work.plan, n->step.tokens, n->router.k,
                                n->config.hidden_size, n->b.stream);
}


const dsa_node_op_t  dsa_node_ffn_ops[] = {
    { "router", DSA_NODE_IF_MOE, dsa_node_router },
    { "choice", DSA_NODE_IF_MOE | DSA_NODE_IF_LARGE, dsa_node_route },
    { "choice", DSA_NODE_IF_MOE | DSA_NODE_IF_SMALL | DSA_NODE_IF_GATHERED,
      dsa_node_route },
    { "gate and up", 0, dsa_node_up },
    { "SwiGLU", 0, dsa_node_act },
    { "down", 0, dsa_node_down },
    { "plan", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE | DSA_NODE_IF_LARGE,
      dsa_node_plan },
    { "gather", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE | DSA_NODE_IF_LARGE,
      dsa_node_gather },
    { "plan and gather", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE
                         | DSA_NODE_IF_SMALL | DSA_NODE_IF_GATHERED,
      dsa_node_sort },
    { "choice, plan and gather", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE
                                 | DSA_NODE_IF_SMALL | DSA_NODE_IF_LOCAL,
      dsa_node_route_sort },
    { "experts, gate and up", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE,
      dsa_node_expert_up },
    { "experts, SwiGLU", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE,
      dsa_node_expert_act },
    { "experts, down", DSA_NODE_IF_DECODE | DSA_NODE_IF_MOE,
      dsa_node_expert_down },
    { "experts", DSA_NODE_IF_PREFILL | DSA_NODE_IF_MOE, dsa_node_rounds },
    { "sum", DSA_NODE_IF_MOE | DSA_NODE_IF_LOCAL, dsa_node_combine },
    { NULL, 0, NULL }
};
