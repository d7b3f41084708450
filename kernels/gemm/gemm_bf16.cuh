
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_BF16_CUH_INCLUDED_
#define _DSA_GEMM_BF16_CUH_INCLUDED_


#include "gemm_decode.cuh"


/*
 * BF16 products with many rows; see gemm_bf16_kernel.cuh.  g is of kind
 * DSA_GEMM_BF16 and has one head; y is BF16 or float32 and 16-byte aligned, and
 * ld_y a multiple of 8.  in is summed in 1 .. DSA_GEMM_BF16_SEGMENTS segments.
 * The bits are those of dsa_gemm_decode() with as many segments.
 */

#define DSA_GEMM_BF16_SEGMENTS  8

int dsa_gemm_bf16(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream);


#endif /* _DSA_GEMM_BF16_CUH_INCLUDED_ */
