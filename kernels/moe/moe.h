
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MOE_H_INCLUDED_
#define _DSA_MOE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "kernels/core/cuda.h"


/*
 * Mixture of experts: the router, which chooses the experts of a token; the
 * grouping of tokens by expert; the gated unit of an expert; and the weighted
 * sum.
 */

typedef struct {
    uint32_t    experts;
    uint32_t    groups;         /* of experts / groups, two or more, each */
    uint32_t    groups_kept;
    uint32_t    k;              /* experts of a token */
    uint32_t    normalize;      /* 1: the chosen weights sum to scale */
    float       scale;
} dsa_router_t;


/*
 * Chooses experts by "noaux_tc": s = sigmoid(logits), b = s + bias; a group's
 * score is the sum of its two greatest b; of the experts in the best
 * groups_kept groups, the k with the greatest b are chosen.  The weights are
 * s, not b, of the chosen experts, divided by their sum with normalize, times
 * scale.  Ties go to the lower index.
 *
 * logits [tokens, experts], bias [experts] float32; expert [tokens, k] in
 * falling order of b, weight [tokens, k].  scratch: 2 * experts + groups
 * floats.  groups divides experts, and k is at most the number of experts in
 * the kept groups; then every id is below experts and no id occurs twice,
 * whatever the logits are.
 */
void dsa_route(int32_t *expert, float *weight, const float *logits,
    const float *bias, size_t tokens, const dsa_router_t *r, float *scratch);

/*
 * Sorts the (token, choice) pairs by expert, tokens rising within an expert:
 * pair [tokens * k] indices into expert[], those of expert e at
 * offset[e] .. offset[e + 1]; offset [experts + 1].
 */
void dsa_moe_group(uint32_t *pair, uint32_t *offset, const int32_t *expert,
    size_t tokens, uint32_t k, uint32_t experts);

/* y [n, cols] = the tokens pair[i] / k of x [., cols]. */
void dsa_moe_gather(float *y, const float *x, const uint32_t *pair,
    size_t n, uint32_t k, size_t cols);

/*
 * y [tokens, cols] = the sum over a token's k pairs of weight [tokens, k] times
 * the row place [tokens, k] of x [., cols], in the order of places, which is
 * that of experts; plus shared [tokens, cols], if not NULL.  A pair whose place
 * is -1 is left out.
 */
void dsa_moe_combine(float *y, const float *x, const float *shared,
    const float *weight, const int32_t *place, size_t tokens, uint32_t k,
    size_t cols, int bf16);

/* y [n] = silu(gate) * up, silu(g) = g / (1 + exp(-g)); y may be gate or up. */
void dsa_swiglu(float *y, const float *gate, const float *up, size_t n,
    int bf16);


/*
 * CUDA.  Rows by expert: the (row, choice) pairs in the order of experts, rows
 * rising within an expert.  The pairs of an expert begin at a multiple of
 * align; the places between experts are padding.
 */

#define DSA_MOE_RANKS       32          /* most ranks with experts of a layer */
#define DSA_CUDA_EXPERTS    512         /* most experts of a layer */
#define DSA_CUDA_CHOICES    16          /* most experts of a row */

#define DSA_MOE_ALIGN       8           /* the least; dsa_cuda_moe_gemm() takes
                                           any, and gains nothing by more */

/*
 * The most rows of the kernel that chooses, plans and gathers.  Each of its
 * blocks chooses for all rows, so its time grows with the rows, while the
 * kernels that it replaces take 1.5 to 3.3 us each.  16 is a warp for each row
 * of a block of 512 threads, and was not measured; "dsa bench kernels --only
 * moe" measures both ways for 1 to 16 rows.
 */
#define DSA_MOE_SMALL       16

typedef struct {
    int32_t            *offset;         /* [experts + 1] first place of each */
    int32_t            *count;          /* [experts] pairs of each */
    int32_t            *place;          /* [rows, k] of a pair */
    int32_t            *row;            /* [places] of a place; -1: padding */
    uint32_t            places;         /* >= rows * k + experts * align,
                                           a multiple of align */
    uint32_t            align;          /* 8, 16, 32, 64 or 128 */
} dsa_moe_plan_t;

/*
 * CUDA.  As dsa_route(); at most DSA_CUDA_EXPERTS experts and DSA_CUDA_CHOICES
 * for each row.  bias is a constant, as weights in kernels/gemm/gemm.h are.
 */
int dsa_cuda_route(int32_t *expert, float *weight, const float *logits,
    const float *bias, uint32_t rows, const dsa_router_t *r,
    dsa_stream_t stream);

/*
 * CUDA.  How many pairs of a row and an expert each rank has: rows [layers,
 * ranks] from expert [layers, n], whose layers are ld from each other; rank r
 * has the experts r * each to r * each + each - 1.  Other ids are not counted.
 * At most DSA_MOE_RANKS ranks.  rows may be pinned host memory.
 */
int dsa_cuda_moe_ranks(int32_t *rows, const int32_t *expert, uint64_t ld,
    uint32_t layers, uint32_t n, uint32_t each, uint32_t ranks,
    dsa_stream_t stream);

/*
 * CUDA.  Fills a plan from expert [rows, k]; the ids of a row are all
 * different.  Ids below 0 or not below experts have no place, and their
 * place[] is -1.  row[] is written up to offset[experts], where the padding of
 * the last expert ends, and is not read beyond it.
 */
int dsa_cuda_moe_plan(const dsa_moe_plan_t *plan, const int32_t *expert,
    uint32_t rows, uint32_t k, uint32_t experts, dsa_stream_t stream);

/*
 * CUDA.  y [places, cols] = x [rows, cols] at the places of the rows' k pairs.
 * Padding between the experts is not written.  This and the two functions that
 * follow copy bytes: BF16 rows are passed with cols twice as large, and with
 * scale NULL in x and y.
 */
int dsa_cuda_moe_gather(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, uint32_t rows, uint32_t k, uint32_t experts,
    uint32_t cols, dsa_stream_t stream);

/*
 * CUDA.  dsa_cuda_moe_plan() and dsa_cuda_moe_gather(), with the same bits, in
 * one kernel for at most DSA_MOE_SMALL rows.
 */
int dsa_cuda_moe_sort(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, const int32_t *expert, uint32_t rows,
    uint32_t k, uint32_t experts, uint32_t cols, dsa_stream_t stream);

/*
 * CUDA.  dsa_cuda_route() and dsa_cuda_moe_sort() of its choices, with the same
 * bits, in one kernel for at most DSA_MOE_SMALL rows.  All experts of r are
 * experts of the plan.
 */
int dsa_cuda_route_sort(const dsa_fp8_rows_t *y, const dsa_fp8_rows_t *x,
    const dsa_moe_plan_t *plan, int32_t *expert, float *weight,
    const float *logits, const float *bias, uint32_t rows,
    const dsa_router_t *r, uint32_t cols, dsa_stream_t stream);

/*
 * CUDA.  y [places, w.rows] bf16 = x [places, w.cols] . w[e]^T for the places
 * of each expert e; y of padding is not written.  w: experts weights (at most
 * DSA_CUDA_EXPERTS) one after another, w.rows a multiple of 128, and their
 * scales likewise; x.scale is 16-byte aligned.  rows: an upper bound of the
 * number of pairs, which chooses between the tiles for prefill (many rows for
 * each expert) and those for decode (few rows, limited by reading weights).  A
 * place's y has the same bits whatever the other places, the counts and the
 * tiles are.  plan's row and place are not read.  Uses state's counters, so
 * that two calls with one state must not run at the same time.
 */
int dsa_cuda_moe_gemm(const dsa_cuda_state_t *state, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x, const dsa_fp8_weight_t *w,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t rows,
    dsa_stream_t stream);

/* CUDA.  The same with BF16 rows and weights.  x is 16-byte aligned. */
int dsa_cuda_moe_gemm_bf16(const dsa_cuda_state_t *state, dsa_bf16_t *y,
    const dsa_bf16_t *x, const dsa_bf16_weight_t *w,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t rows,
    dsa_stream_t stream);

/*
 * CUDA.  y [rows, cols] quantized = swiglu of x [rows, 2 * cols] bf16 (gate,
 * then up), rounded to bf16; ue8m0 as for dsa_cuda_fp8_quantize().  cols is a
 * multiple of 128.  With a plan only the places that are used are computed, and
 * rows is ignored; plan may be NULL.
 */
int dsa_cuda_swiglu(const dsa_fp8_rows_t *y, const dsa_bf16_t *x,
    uint32_t rows, uint32_t cols, const dsa_moe_plan_t *plan,
    uint32_t experts, int ue8m0, dsa_stream_t stream);

/* CUDA.  The same with one scale, as for dsa_cuda_fp8_quantize_by(). */
int dsa_cuda_swiglu_by(const dsa_fp8_rows_t *y, const dsa_bf16_t *x,
    uint32_t rows, uint32_t cols, const dsa_moe_plan_t *plan,
    uint32_t experts, const float *scale, dsa_stream_t stream);

/* CUDA.  The same, not quantized; cols is a multiple of 8. */
int dsa_cuda_swiglu_bf16(dsa_bf16_t *y, const dsa_bf16_t *x, uint32_t rows,
    uint32_t cols, const dsa_moe_plan_t *plan, uint32_t experts,
    dsa_stream_t stream);

/*
 * CUDA.  y [rows, cols] bf16 = the sum over a row's k pairs, experts rising,
 * of weight * x at the pair's place, plus shared [rows, cols] bf16 unless it
 * is NULL; rounded once.  Pairs without a place are left out.
 */
int dsa_cuda_moe_combine(dsa_bf16_t *y, const dsa_bf16_t *x,
    const dsa_bf16_t *shared, const float *weight, const int32_t *expert,
    const dsa_moe_plan_t *plan, uint32_t rows, uint32_t k, uint32_t cols,
    dsa_stream_t stream);


#endif /* _DSA_MOE_H_INCLUDED_ */
