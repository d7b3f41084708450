
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/fp8.h"
}

#include "kernels/rows.cuh"


#define DSA_FP8_THREADS  256


/*
 * A chunk a thread, 16 lanes a group: 16 bytes are read and 8 written.  A
 * block takes the same columns of two rows or more where rows are short.
 */

static __global__ void __launch_bounds__(DSA_FP8_THREADS)
dsa_fp8_quantize_kernel(dsa_fp8_rows_t q, const dsa_bf16_t *x, size_t ld_x,
    uint32_t rows, uint32_t cols, int ue8m0)
{
    int       i;
    float     v[DSA_CHUNK], s;
    size_t    row, n;
    uint32_t  col, chunks;
    size_t    at;

    chunks = cols / DSA_CHUNK;
    n = (size_t) rows * chunks;
    at = (size_t) blockIdx.x * DSA_FP8_THREADS + threadIdx.x;

    /* groups are whole half warps, and so is what lies beyond the end */

    row = at / chunks;
    col = (uint32_t) (at - row * chunks) * DSA_CHUNK;

    dsa_unpack8(v, at < n ? dsa_load16(x + row * ld_x + col)
                          : make_uint4(0, 0, 0, 0));

    if (ue8m0) {
        dsa_quantize_chunk(&q, v, row, col, cols, at < n);
        return;
    }

    s = dsa_scale(dsa_amax<DSA_CHUNK, DSA_GROUP_LANES>(v));

    if (at >= n) {
        return;
    }

#pragma unroll
    for (i = 0; i < DSA_CHUNK; i++) {
        v[i] = __fdiv_rn(v[i], s);
    }

    *(uint2 *) (q.q + row * cols + col) = dsa_e4m3x8(v, 1.0f);

    if (col % DSA_GROUP == 0) {
        q.scale[col / DSA_GROUP * q.ld + row] = s;
    }
}


static __global__ void __launch_bounds__(DSA_FP8_THREADS)
dsa_fp8_decode_weight_kernel(dsa_bf16_t *out, dsa_fp8_weight_t w)
{
    size_t    at, row;
    uint32_t  col, chunks;

    chunks = w.cols / DSA_CHUNK;
    at = (size_t) blockIdx.x * DSA_FP8_THREADS + threadIdx.x;

    if (at >= (size_t) w.rows * chunks) {
        return;
    }

    row = at / chunks;
    col = (uint32_t) (at - row * chunks) * DSA_CHUNK;

    dsa_store16(out + at * DSA_CHUNK,
                dsa_e4m3x8_bf16(*(const uint2 *) (w.q + at * DSA_CHUNK),
                                w.scale[row / DSA_FP8_GROUP
                                        * (w.cols / DSA_FP8_GROUP)
                                        + col / DSA_FP8_GROUP]));
}


static uint32_t
dsa_fp8_blocks(uint32_t rows, uint32_t cols)
{
    return (uint32_t) (((size_t) rows * (cols / DSA_CHUNK)
                        + DSA_FP8_THREADS - 1)
                       / DSA_FP8_THREADS);
}


extern "C" int
dsa_cuda_fp8_quantize(const dsa_fp8_rows_t *q, const dsa_bf16_t *x,
    size_t ld_x, uint32_t rows, uint32_t cols, int ue8m0, dsa_stream_t stream)
{
    if (cols == 0 || !dsa_fp8_rows_ok(q, rows, cols) || !dsa_aligned16(x)
        || ld_x % DSA_CHUNK != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    dsa_fp8_quantize_kernel<<<dsa_fp8_blocks(rows, cols), DSA_FP8_THREADS, 0,
                              stream>>>(*q, x, ld_x, rows, cols, ue8m0);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_fp8_decode_weight(dsa_bf16_t *out, const dsa_fp8_weight_t *w,
    dsa_stream_t stream)
{
    if (w->cols == 0 || w->cols % DSA_FP8_GROUP != 0 || !dsa_aligned16(w->q)
        || !dsa_aligned16(out))
    {
        return cudaErrorInvalidValue;
    }

    if (w->rows == 0) {
        return cudaSuccess;
    }

    dsa_fp8_decode_weight_kernel<<<dsa_fp8_blocks(w->rows, w->cols),
                                   DSA_FP8_THREADS, 0, stream>>>(out, *w);

    return cudaGetLastError();
}
