
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_FP8_CUH_INCLUDED_
#define _DSA_GEMM_FP8_CUH_INCLUDED_


#include "gemm_decode.cuh"


/*
 * FP8 products with many rows; see gemm_fp8_kernel.cuh.  g is of kind
 * DSA_GEMM_FP8 and has one head; y is 16-byte aligned, and ld_y a multiple of
 * 8.  in is summed in 1 .. DSA_GEMM_FP8_SEGMENTS segments.  The bits are those
 * of dsa_gemm_decode() with as many segments.
 */

#define DSA_GEMM_FP8_SEGMENTS  2

int dsa_gemm_fp8(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream);


#endif /* _DSA_GEMM_FP8_CUH_INCLUDED_ */
