
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_H_INCLUDED_
#define _DSA_GEMM_H_INCLUDED_


#include <stddef.h>

#include "kernels/core/cuda.h"


/*
 * Matrix products in float32.  FP8 products are these over dequantized
 * operands: the product of two e4m3 values is exact in float32, and their
 * power-of-two scales factor out, so only the order of the additions differs
 * from a GEMM on FP8 hardware.
 *
 * An element of y is a sum over its inputs in order, in blocks of
 * DSA_GEMM_BLOCK inputs that begin at multiples of it:
 *
 *     s = 0;  s = fma(x[i], w[i], s) for the inputs i of a block, in order
 *     y = s of the first block (with add = 1: y + s), then y + s for each
 *     further block
 *
 * So its bits depend neither on the other rows and outputs of the call nor on
 * the processor.  The exception is an x86-64 without FMA, or another
 * architecture, where s + x[i] * w[i] is rounded twice.
 */

#define DSA_GEMM_BLOCK  128
#define DSA_GEMM_PANEL  64      /* outputs that are stored side by side */


typedef enum {
    DSA_GEMM_F32 = 0,
    DSA_GEMM_BF16,
    DSA_GEMM_E4M3,
    DSA_GEMM_INT4               /* kernels/core/int4.h; not in panels */
} dsa_gemm_dtype_e;


typedef enum {
    DSA_GEMM_OUT_IN = 0,        /* [out, in], as in a checkpoint */
    DSA_GEMM_IN_OUT,            /* [in, out]: such a matrix, transposed */
    DSA_GEMM_PANELS             /* [out / 64, in, 64], zeros at the end */
} dsa_gemm_layout_e;


/*
 * A weight: a part of a row-major tensor, or a packed copy of it.  e4m3 has a
 * scale for each 128 x 128 block of the tensor; first, the part's first row in
 * the tensor, determines the blocks.  INT4 has one for each 128 columns of a
 * row; its part begins and ends at multiples of 128 columns.
 */

typedef struct {
    dsa_gemm_dtype_e    dtype;
    dsa_gemm_layout_e   layout;
    const void         *data;           /* of the part's first row */
    const float        *scale;          /* e4m3: of the tensor, a multiplier;
                                           INT4: instead of groups */
    const uint16_t     *groups;         /* INT4: the same, BF16; NULL if they
                                           are in scale, see
                                           dsa_int4_group_scale() */
    size_t              first;
    size_t              out;
    size_t              in;
    size_t              ld;             /* elements from a row to the next;
                                           panels: not used */
    size_t              ld_scale;       /* blocks or groups of a row of the
                                           tensor */
    int                 transposed;     /* panels: 1 if packed from in, out */
} dsa_gemm_weight_t;


/*
 * y [rows, n] = x [rows, w->in] . w^T for the outputs first .. first+n-1 of w.
 * first is a multiple of DSA_GEMM_PANEL.  ld_: elements from a row to the
 * next.
 */
void dsa_gemm_weight(float *y, size_t ld_y, const float *x, size_t ld_x,
    const dsa_gemm_weight_t *w, size_t rows, size_t first, size_t n);

/*
 * Packs w, which is neither packed nor INT4, into panels, which are read
 * sequentially and need no transposition in each call.  dsa_gemm_packed()
 * returns the bytes of memory, which is 64-byte aligned and owned by the
 * caller.  packed is set to the weight in panels; products with it have the
 * same bits.  Its dtype is the same, but float32 for e4m3 if the tensor's
 * blocks are not aligned to panels: if first is not a multiple of 64, or of 128
 * for [in, out].
 */
size_t dsa_gemm_packed(const dsa_gemm_weight_t *w);
void dsa_gemm_pack(dsa_gemm_weight_t *packed, void *memory,
    const dsa_gemm_weight_t *w);

/*
 * y [rows, out] = x [rows, in] . w [out, in]^T, added to y with add = 1.
 */
void dsa_gemm_nt(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in,
    int add);

/* y [rows, out] = x [rows, in] . w [in, out], added to y with add = 1. */
void dsa_gemm_nn(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in,
    int add);

/*
 * The same without blocks: s = fma(x[i], w[i], s) for all inputs i, in order.
 * So the bits of y do not change if inputs whose x is 0 are left out.
 */
void dsa_gemm_nn_chain(float *y, size_t ld_y, const float *x, size_t ld_x,
    const float *w, size_t ld_w, size_t rows, size_t out, size_t in);


/*
 * CUDA.  Dense products.  Own kernels compute all products of
 * dsa_cuda_gemm_fp8() and dsa_cuda_gemm_bf16(): gemm_decode.cu those with few
 * rows, and small ones with float32 results; gemm_fp8.cu and gemm_bf16.cu the
 * others.  gemm_decode.cu also computes those of dsa_cuda_gemm_heads() with up
 * to DSA_GEMM_HEADS_ROWS rows or of sizes that cuBLASLt rejects.  cuBLASLt
 * computes the others.  A handle has the library's context, its workspace
 * (device memory of the caller, dsa_cuda_gemm_work() bytes, 256-byte aligned),
 * and the algorithm for each size.  It refers to
 * state, which must exist as long.  Only one stream at a time may use it.
 *
 * Weights must be constant: they and their scales are loaded while the
 * previous kernel of the stream still runs.  So the host has to wait for a
 * kernel that writes them before it starts the first product.
 *
 * x, y, w and scales are 16-byte aligned.
 *
 * In FP8 products the bits of a row do not depend on the other rows, but they
 * may differ between a product with up to 128 rows and one with more: with
 * more than 128 rows in is summed in one segment, and with up to 128 rows in
 * 1, 2, 4 or 8 segments, whose number depends on the size of the weight
 * (dsa_gemm_tile()).
 *
 * In products of dsa_cuda_gemm_bf16() the bits of a row do not depend on the
 * other rows, whatever their number.  The same holds for dsa_cuda_gemm_heads()
 * up to DSA_GEMM_HEADS_ROWS rows.  With more rows the library chooses the
 * order of the sum by their number, and may split sums.  On an H200 with the
 * library of CUDA 13.0 it had the bits of the own kernel in the products of
 * the published model ("dsa bench bits").
 */

/* With several heads the library is faster for more than so many rows. */
#define DSA_GEMM_HEADS_ROWS 32

typedef struct dsa_cuda_gemm_s  dsa_cuda_gemm_t;

int dsa_cuda_gemm_create(dsa_cuda_gemm_t **g, const dsa_cuda_state_t *state,
    void *work);
void dsa_cuda_gemm_destroy(dsa_cuda_gemm_t *g);     /* NULL is allowed */
size_t dsa_cuda_gemm_work(void);

/*
 * Returns rows rounded up to a number with three significant bits, for which
 * the library's algorithm is chosen.  After products with
 * dsa_cuda_gemm_rows(n) rows, the same with n rows load no further kernel.
 */
uint32_t dsa_cuda_gemm_rows(uint32_t rows);

/*
 * Restricts the library to products that it has computed before, so that it
 * loads no further kernel.  The own kernels compute all others, which is
 * slower with many rows.
 */
void dsa_cuda_gemm_seal(dsa_cuda_gemm_t *g);

/*
 * y [rows, w.rows] bf16, ld_y apart, = x . w^T with the block scales of both
 * operands, accumulated in float32.  rows > 0; w.rows and ld_y are multiples
 * of 8.  Nothing is read or written after the last row.
 */
int dsa_cuda_gemm_fp8(dsa_cuda_gemm_t *g, dsa_bf16_t *y, size_t ld_y,
    const dsa_fp8_rows_t *x, const dsa_fp8_weight_t *w, uint32_t rows,
    dsa_stream_t stream);

/*
 * y [rows, out] = x [rows, in] bf16 . w [out, in] bf16 ^T, accumulated in
 * float32; y bf16, or float32 with f32 1.  ld_: elements.  in, out, ld_x, ld_w
 * multiples of 8.  One kernel is limited by reading w; it computes few rows,
 * and float32 results, and y that is not 16-byte aligned or whose ld_y is not a
 * multiple of 8.  Another one computes many rows.
 */
int dsa_cuda_gemm_bf16(dsa_cuda_gemm_t *g, void *y, size_t ld_y, int f32,
    const dsa_bf16_t *x, size_t ld_x, const dsa_bf16_t *w, size_t ld_w,
    uint32_t rows, uint32_t out, uint32_t in, dsa_stream_t stream);

/*
 * The same for each of several heads.  y, x and w are step_ elements apart
 * from head to head, x and w by multiples of 8.  transposed 1: w is [in, out]
 * and y = x . w.  The heads of a row may lie within its ld_.
 */
int dsa_cuda_gemm_heads(dsa_cuda_gemm_t *g, dsa_bf16_t *y, size_t ld_y,
    size_t step_y, const dsa_bf16_t *x, size_t ld_x, size_t step_x,
    const dsa_bf16_t *w, size_t ld_w, size_t step_w, int transposed,
    uint32_t heads, uint32_t rows, uint32_t out, uint32_t in,
    dsa_stream_t stream);


#endif /* _DSA_GEMM_H_INCLUDED_ */
