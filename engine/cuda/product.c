
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/rank.h"
#include "kernels/gemm/gemm.h"
#include "kernels/moe/moe_int4.h"


/*
 * Products with weights in FP8, in BF16 or, of experts, in INT4, and what makes
 * their operands.
 */


int
dsa_cuda_product(dsa_cuda_rank_t *rank, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x8, const dsa_bf16_t *x, size_t ld_x,
    const dsa_cuda_matrix_t *w, uint32_t rows)
{
    if (w->fp8.q != NULL) {
        return dsa_cuda_gemm_fp8(rank->gemm, y, w->rows, x8, &w->fp8, rows,
                                 rank->stream);
    }

    return dsa_cuda_gemm_bf16(rank->gemm, y, w->rows, 0, x, ld_x, w->bf16.w,
                              w->cols, rows, w->rows, w->cols, rank->stream);
}


int
dsa_cuda_grouped(dsa_cuda_rank_t *rank, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x8, const dsa_bf16_t *x, const dsa_cuda_matrix_t *w,
    uint32_t pairs)
{
    if (w->int4.q != NULL) {
        return dsa_cuda_moe_gemm_int4(&rank->state, y, x8, &w->int4,
                                      &rank->work.plan, rank->experts, pairs,
                                      rank->stream);
    }

    if (w->fp8.q != NULL) {
        return dsa_cuda_moe_gemm(&rank->state, y, x8, &w->fp8,
                                 &rank->work.plan, rank->experts, pairs,
                                 rank->stream);
    }

    return dsa_cuda_moe_gemm_bf16(&rank->state, y, x, &w->bf16,
                                  &rank->work.plan, rank->experts, pairs,
                                  rank->stream);
}


int
dsa_cuda_gated(dsa_cuda_rank_t *rank, const dsa_fp8_rows_t *y8, dsa_bf16_t *y,
    const dsa_bf16_t *x, uint32_t rows, const dsa_moe_plan_t *plan,
    const dsa_cuda_matrix_t *down, const float *scale)
{
    if (scale != NULL) {
        return dsa_cuda_swiglu_by(y8, x, rows, down->cols, plan, rank->experts,
                                  scale, rank->stream);
    }

    if (dsa_cuda_matrix_e4m3(down)) {
        return dsa_cuda_swiglu(y8, x, rows, down->cols, plan, rank->experts,
                               (int) rank->config.ue8m0, rank->stream);
    }

    return dsa_cuda_swiglu_bf16(y, x, rows, down->cols, plan, rank->experts,
                                rank->stream);
}


uint32_t
dsa_cuda_operand(dsa_fp8_rows_t *rows, const dsa_fp8_rows_t *x8,
    const dsa_bf16_t *x, const dsa_cuda_matrix_t *w)
{
    if (dsa_cuda_matrix_e4m3(w)) {
        *rows = *x8;
        return w->cols;
    }

    rows->q = (dsa_e4m3_t *) x;
    rows->scale = NULL;
    rows->ld = 0;

    return w->cols * (uint32_t) sizeof(dsa_bf16_t);
}
