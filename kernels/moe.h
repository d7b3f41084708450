
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MOE_H_INCLUDED_
#define _DSA_MOE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * Mixture of experts: who computes a row (the router), rows brought together
 * by expert, the gated unit of an expert, and the weighted sum.
 */

typedef struct {
    uint32_t    experts;
    uint32_t    groups;         /* of experts / groups, two or more, each */
    uint32_t    groups_kept;
    uint32_t    k;              /* experts of a row */
    uint32_t    normalize;      /* 1: chosen weights sum to scale */
    float       scale;
} dsa_router_t;


/*
 * The "noaux_tc" choice: s = sigmoid(logits), b = s + bias; a group's score
 * is the sum of its two greatest b; of the experts in the best groups_kept
 * groups the k with the greatest b are chosen.  Weights are s, not b, at the
 * chosen, over their sum with normalize, times scale.  Ties go to the lower
 * index.
 *
 * logits [rows, experts], bias [experts] float32; expert [rows, k] in falling
 * order of b, weight [rows, k].  scratch: 2 * experts + groups floats.
 * groups divides experts, and k is at most what the kept groups hold; then
 * every id is below experts and none stands twice, whatever logits hold.
 */
void dsa_route(int32_t *expert, float *weight, const float *logits,
    const float *bias, size_t rows, const dsa_router_t *r, float *scratch);

/*
 * Brings the (row, choice) pairs in the order of their experts, rows rising
 * within one: pair [rows * k] indices into expert[], those of expert e at
 * offset[e] .. offset[e + 1]; offset [experts + 1].
 */
void dsa_moe_group(uint32_t *pair, uint32_t *offset, const int32_t *expert,
    size_t rows, uint32_t k, uint32_t experts);

/* y [n, cols] = the rows pair[i] / k of x [., cols]. */
void dsa_moe_gather(float *y, const float *x, const uint32_t *pair,
    size_t n, uint32_t k, size_t cols);

/* sum [., cols] at row pair[i] / k += weight[pair[i]] * y[i], y [n, cols]. */
void dsa_moe_scatter(float *sum, const float *y, const float *weight,
    const uint32_t *pair, size_t n, uint32_t k, size_t cols);

/* y [n] = silu(gate) * up, silu(g) = g / (1 + exp(-g)).  May be in place. */
void dsa_swiglu(float *y, const float *gate, const float *up, size_t n,
    int bf16);


#endif /* _DSA_MOE_H_INCLUDED_ */
