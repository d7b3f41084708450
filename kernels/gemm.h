
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_H_INCLUDED_
#define _DSA_GEMM_H_INCLUDED_


#include <stddef.h>

#include "kernels/cuda.h"


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


/*
 * CUDA.  Dense products: own kernels for up to 128 rows, 32 of several heads
 * (gemm_decode.cu), and for what the library refuses, cuBLASLt for more, and
 * above 32 for the widest FP8 weights.  A handle holds the library's context,
 * its workspace (device memory, dsa_cuda_gemm_work() bytes, the caller's,
 * 256-byte aligned) and the algorithm chosen for each shape; one stream at a
 * time.
 *
 * Weights are constants: they and their scales are fetched while the kernel
 * before still runs in the stream, so whatever writes them is waited for by
 * the host before the first product.
 *
 * x, y, w and scales are 16-byte aligned.  A row's bits do not depend on the
 * rows beside it up to 128 rows, 32 of several heads.  Beyond, the library
 * chooses by their number how it sums; where it does so in one go, as it does
 * for many rows, FP8 bits were those of the own kernels with one segment
 * (dsa_gemm_tile()) in all outputs compared.
 */

typedef struct dsa_cuda_gemm_s  dsa_cuda_gemm_t;

int dsa_cuda_gemm_create(dsa_cuda_gemm_t **g, const dsa_cuda_state_t *state,
    void *work);
void dsa_cuda_gemm_destroy(dsa_cuda_gemm_t *g);     /* NULL is allowed */
size_t dsa_cuda_gemm_work(void);

/*
 * y [rows, w.rows] bf16, ld_y apart, = x . w^T with both operands' block
 * scales, accumulated in float32.  Any rows > 0; w.rows a multiple of 8.
 *
 * More than 128 rows: y is written, and x.q read, up to rows rounded up to 4;
 * and if x.ld is not that number the scales are copied first, as the library
 * takes no other.
 */
int dsa_cuda_gemm_fp8(dsa_cuda_gemm_t *g, dsa_bf16_t *y, size_t ld_y,
    const dsa_fp8_rows_t *x, const dsa_fp8_weight_t *w, uint32_t rows,
    dsa_stream_t stream);

/*
 * y [rows, out] = x [rows, in] bf16 . w [out, in] bf16 ^T, accumulated in
 * float32; y bf16, or float32 with f32 1.  ld_: elements.  in, out, ld_x, ld_w
 * multiples of 8.
 */
int dsa_cuda_gemm_bf16(dsa_cuda_gemm_t *g, void *y, size_t ld_y, int f32,
    const dsa_bf16_t *x, size_t ld_x, const dsa_bf16_t *w, size_t ld_w,
    uint32_t rows, uint32_t out, uint32_t in, dsa_stream_t stream);

/*
 * The same for each of n heads, y, x and w being step_ elements apart from
 * head to head, x and w by multiples of 8.  transposed 1: w is [in, out],
 * y = x . w.  The heads of a row may lie inside one another's ld_.
 */
int dsa_cuda_gemm_heads(dsa_cuda_gemm_t *g, dsa_bf16_t *y, size_t ld_y,
    size_t step_y, const dsa_bf16_t *x, size_t ld_x, size_t step_x,
    const dsa_bf16_t *w, size_t ld_w, size_t step_w, int transposed,
    uint32_t heads, uint32_t rows, uint32_t out, uint32_t in,
    dsa_stream_t stream);


#endif /* _DSA_GEMM_H_INCLUDED_ */
