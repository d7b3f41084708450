
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MOE_INT4_H_INCLUDED_
#define _DSA_MOE_INT4_H_INCLUDED_


#include "kernels/core/int4.h"
#include "moe.h"


/*
 * CUDA.  As dsa_cuda_moe_gemm(), with INT4 weights (kernels/core/int4.h), w
 * experts of them one after another, in the layout of dsa_cuda_int4_pack():
 *
 *     y = sum over groups g of 128 columns of
 *         x.scale [g] * w.scale [g] * sum over g of x.q * w.q
 *
 * w.cols is at most DSA_CUDA_INT4_COLS.  The sum over a group is that of the
 * tensor cores in products of 32 columns; groups are added in order, in
 * float32.  A place's y has the same bits whatever the other places, the
 * counts and the number of rows are.
 */
int dsa_cuda_moe_gemm_int4(const dsa_cuda_state_t *state, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x, const dsa_int4_weight_t *w,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t rows,
    dsa_stream_t stream);


#endif /* _DSA_MOE_INT4_H_INCLUDED_ */
