
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "fp8.h"
}

#include "rows.cuh"


#define DSA_FP8_THREADS  256

/* The scale of a group. */

#define DSA_FP8_FLOAT    0      /* any, of its values */
#define DSA_FP8_UE8M0    1      /* a power of two, of its values */
#define DSA_FP8_GIVEN    2


/*
 * Each thread quantizes a chunk of a row, 16 lanes a group: it reads 16 bytes
 * and writes 8.  A block of threads may have several short rows; then
 * threadIdx.y is the row.
 */

template <int SCALE>
static __global__ void __launch_bounds__(DSA_FP8_THREADS)
dsa_fp8_quantize_kernel(dsa_fp8_rows_t q, const dsa_bf16_t *x, size_t ld_x,
    uint32_t rows, uint32_t cols, const float *scale)
{
    int       live;
    float     v[DSA_CHUNK];
    size_t    row;
    uint32_t  col;

    dsa_begin();

    row = (size_t) blockIdx.x * blockDim.y + threadIdx.y;
    col = (blockIdx.y * blockDim.x + threadIdx.x) * DSA_CHUNK;

    /*
     * The end is at a multiple of a group, so a half warp is either live or
     * not.
     */

    live = row < rows && col < cols;

    dsa_unpack8(v, live ? dsa_load16(x + row * ld_x + col)
                        : make_uint4(0, 0, 0, 0));

    if constexpr (SCALE == DSA_FP8_GIVEN) {
        dsa_quantize_chunk_by(&q, v, row, col, cols, live, *scale);

    } else {
        dsa_quantize_chunk<SCALE == DSA_FP8_UE8M0>(&q, v, row, col, cols,
                                                   live);
    }
}


static __global__ void __launch_bounds__(DSA_FP8_THREADS)
dsa_fp8_decode_weight_kernel(dsa_bf16_t *out, dsa_fp8_weight_t w)
{
    size_t    row, at;
    uint32_t  col;

    dsa_begin();

    row = (size_t) blockIdx.x * blockDim.y + threadIdx.y;
    col = (blockIdx.y * blockDim.x + threadIdx.x) * DSA_CHUNK;

    if (row >= w.rows || col >= w.cols) {
        return;
    }

    at = row * w.cols + col;

    dsa_store16(out + at,
                dsa_e4m3x8_bf16(*(const uint2 *) (w.q + at),
                                w.scale[row / DSA_FP8_GROUP
                                        * (w.cols / DSA_FP8_GROUP)
                                        + col / DSA_FP8_GROUP]));
}


/* Returns the threads of a block: columns, in whole warps, and rows. */

static dim3
dsa_fp8_threads(uint32_t cols)
{
    uint32_t  x;

    x = (cols / DSA_CHUNK + 31) & ~31U;
    x = x < DSA_FP8_THREADS ? x : DSA_FP8_THREADS;

    return dim3(x, DSA_FP8_THREADS / x);
}


static dim3
dsa_fp8_blocks(uint32_t rows, uint32_t cols)
{
    dim3  threads;

    threads = dsa_fp8_threads(cols);

    return dim3((rows + threads.y - 1) / threads.y,
                (cols / DSA_CHUNK + threads.x - 1) / threads.x);
}


static int
dsa_fp8_quantize(void (*kernel)(dsa_fp8_rows_t, const dsa_bf16_t *, size_t,
    uint32_t, uint32_t, const float *), const dsa_fp8_rows_t *q,
    const dsa_bf16_t *x, size_t ld_x, uint32_t rows, uint32_t cols,
    const float *scale, dsa_stream_t stream)
{
    if (cols == 0 || !dsa_fp8_rows_ok(q, rows, cols) || !dsa_aligned16(x)
        || ld_x % DSA_CHUNK != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    return dsa_launch(kernel, dsa_fp8_blocks(rows, cols),
                      dsa_fp8_threads(cols), 0, stream, *q, x, ld_x, rows,
                      cols, scale);
}


extern "C" int
dsa_cuda_fp8_quantize(const dsa_fp8_rows_t *q, const dsa_bf16_t *x,
    size_t ld_x, uint32_t rows, uint32_t cols, int ue8m0, dsa_stream_t stream)
{
    return dsa_fp8_quantize(ue8m0 ? dsa_fp8_quantize_kernel<DSA_FP8_UE8M0>
                                  : dsa_fp8_quantize_kernel<DSA_FP8_FLOAT>,
                            q, x, ld_x, rows, cols, NULL, stream);
}


extern "C" int
dsa_cuda_fp8_quantize_by(const dsa_fp8_rows_t *q, const dsa_bf16_t *x,
    size_t ld_x, uint32_t rows, uint32_t cols, const float *scale,
    dsa_stream_t stream)
{
    return dsa_fp8_quantize(dsa_fp8_quantize_kernel<DSA_FP8_GIVEN>, q, x, ld_x,
                            rows, cols, scale, stream);
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

    return dsa_launch(dsa_fp8_decode_weight_kernel, dsa_fp8_blocks(w->rows,
                      w->cols), dsa_fp8_threads(w->cols), 0, stream, out, *w);
}
