
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_H_INCLUDED_
#define _DSA_GEMM_H_INCLUDED_


#include <stddef.h>


/*
 * Matrix products in float32, on OpenBLAS; one row takes its sgemv.  FP8
 * products are these over dequantized operands: the product of two e4m3
 * values is exact in float32, and their power-of-two scales factor out, so
 * only the order of the additions differs from a GEMM on FP8 hardware.
 */


/*
 * y [rows, out] = x [rows, in] . w [out, in]^T, added to y with add = 1.
 * ld_: elements from a row to the next.
 */
void dsa_gemm_nt(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in,
    int add);

/* y [rows, out] = x [rows, in] . w [in, out], added to y with add = 1. */
void dsa_gemm_nn(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in,
    int add);


#endif /* _DSA_GEMM_H_INCLUDED_ */
