
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/norm.h"
}

#include "kernels/rows.cuh"


/*
 * A block a row, the row in registers: read once, written once.  A thread has
 * C chunks, threads apart.  Few rows are bound by latency and take a chunk a
 * thread; many by memory, and two chunks a thread let rows of several blocks
 * overlap on an SM.
 *
 * The sum of squares is taken of 8, then of a warp's 32 chunks, then of all
 * these, whatever C is: a row's bits do not depend on the number of rows.
 */

#define DSA_NORM_COLS     16384
#define DSA_NORM_THREADS  1024
#define DSA_NORM_FEW      264       /* rows, two blocks an SM */


static __device__ __forceinline__ float
dsa_norm_sum(const float *v)
{
    int    i;
    float  sum;

    sum = 0;

#pragma unroll
    for (i = 0; i < DSA_CHUNK; i++) {
        sum = __fadd_rn(sum, __fmul_rn(v[i], v[i]));
    }

    return dsa_warp_sum(sum);
}


/* ADD: the residual rule; else residuals are not looked at. */

template <int C, int ADD>
static __global__ void __launch_bounds__(DSA_NORM_THREADS)
dsa_norm_kernel(dsa_bf16_t *y, size_t ld_y, dsa_fp8_rows_t q,
    const dsa_bf16_t *x, size_t ld_x, const dsa_bf16_t *residual_in,
    dsa_bf16_t *residual_out, const float *w, uint32_t cols, float eps)
{
    int                i, j, live;
    float              v[C][DSA_CHUNK], r[DSA_CHUNK], sum;
    float4             w0, w1;
    size_t             row, at;
    uint32_t           col, lane, warp, warps;
    __shared__ float   part[DSA_NORM_COLS / DSA_CHUNK / 32];

    row = blockIdx.x;
    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    warps = blockDim.x / 32;

#pragma unroll
    for (i = 0; i < C; i++) {
        col = (threadIdx.x + i * blockDim.x) * DSA_CHUNK;

        if (col < cols) {
            dsa_unpack8(v[i], dsa_load16(x + row * ld_x + col));

            if (ADD) {
                at = row * cols + col;

                dsa_unpack8(r, residual_in != NULL
                               ? dsa_load16(residual_in + at)
                               : make_uint4(0, 0, 0, 0));

#pragma unroll
                for (j = 0; j < DSA_CHUNK; j++) {
                    v[i][j] = __fadd_rn(v[i][j], r[j]);
                }
            }

        } else {
#pragma unroll
            for (j = 0; j < DSA_CHUNK; j++) {
                v[i][j] = 0;
            }
        }
    }

#pragma unroll
    for (i = 0; i < C; i++) {
        sum = dsa_norm_sum(v[i]);

        if (lane == 0) {
            part[warp + i * warps] = sum;
        }
    }

    if (ADD) {
#pragma unroll
        for (i = 0; i < C; i++) {
            col = (threadIdx.x + i * blockDim.x) * DSA_CHUNK;

            if (col < cols) {
                dsa_store16(residual_out + row * cols + col,
                            dsa_pack8(v[i]));
            }
        }
    }

    __syncthreads();

    sum = lane < C * warps ? part[lane] : 0;
    sum = __fadd_rn(sum, lane + 32 < C * warps ? part[lane + 32] : 0);
    sum = dsa_warp_sum(sum);
    sum = __fadd_rn(__fdiv_rn(sum, (float) cols), eps);
    sum = __fdiv_rn(1.0f, __fsqrt_rn(sum));

#pragma unroll
    for (i = 0; i < C; i++) {
        col = (threadIdx.x + i * blockDim.x) * DSA_CHUNK;
        live = col < cols;

        if (live) {
            w0 = *(const float4 *) (w + col);
            w1 = *(const float4 *) (w + col + 4);

            v[i][0] = __fmul_rn(w0.x, __fmul_rn(v[i][0], sum));
            v[i][1] = __fmul_rn(w0.y, __fmul_rn(v[i][1], sum));
            v[i][2] = __fmul_rn(w0.z, __fmul_rn(v[i][2], sum));
            v[i][3] = __fmul_rn(w0.w, __fmul_rn(v[i][3], sum));
            v[i][4] = __fmul_rn(w1.x, __fmul_rn(v[i][4], sum));
            v[i][5] = __fmul_rn(w1.y, __fmul_rn(v[i][5], sum));
            v[i][6] = __fmul_rn(w1.z, __fmul_rn(v[i][6], sum));
            v[i][7] = __fmul_rn(w1.w, __fmul_rn(v[i][7], sum));
        }

        if (y != NULL && live) {
            dsa_store16(y + row * ld_y + col, dsa_pack8(v[i]));
        }

        if (q.q != NULL) {
            dsa_round_bf16<DSA_CHUNK>(v[i]);
            dsa_quantize_chunk(&q, v[i], row, col, cols, live);
        }
    }
}


template <int ADD>
static int
dsa_norm(dsa_bf16_t *y, size_t ld_y, const dsa_fp8_rows_t *q,
    const dsa_bf16_t *x, size_t ld_x, const dsa_bf16_t *residual_in,
    dsa_bf16_t *residual_out, const float *w, uint32_t rows, uint32_t cols,
    float eps, dsa_stream_t stream)
{
    uint32_t        chunks, threads;
    dsa_fp8_rows_t  out = { NULL, NULL, 0 };

    if (cols == 0 || cols % DSA_CHUNK != 0 || cols > DSA_NORM_COLS
        || ld_x % DSA_CHUNK != 0 || ld_y % DSA_CHUNK != 0
        || !dsa_aligned16(x) || !dsa_aligned16(y) || !dsa_aligned16(w)
        || !dsa_aligned16(residual_in) || !dsa_aligned16(residual_out)
        || (q != NULL && !dsa_fp8_rows_ok(q, rows, cols)))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    if (q != NULL) {
        out = *q;
    }

    chunks = (cols / DSA_CHUNK + 31) & ~31U;

    if (chunks <= DSA_NORM_THREADS
        && (rows <= DSA_NORM_FEW || chunks < 256))
    {
        dsa_norm_kernel<1, ADD><<<rows, chunks, 0, stream>>>(
            y, ld_y, out, x, ld_x, residual_in, residual_out, w, cols, eps);

    } else {
        threads = (chunks / 2 + 31) & ~31U;

        dsa_norm_kernel<2, ADD><<<rows, threads, 0, stream>>>(
            y, ld_y, out, x, ld_x, residual_in, residual_out, w, cols, eps);
    }

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_rmsnorm(dsa_bf16_t *y, size_t ld_y, const dsa_fp8_rows_t *q,
    const dsa_bf16_t *x, size_t ld_x, const float *w, uint32_t rows,
    uint32_t cols, float eps, dsa_stream_t stream)
{
    return dsa_norm<0>(y, ld_y, q, x, ld_x, NULL, NULL, w, rows, cols, eps,
                       stream);
}


extern "C" int
dsa_cuda_add_rmsnorm(dsa_bf16_t *y, const dsa_fp8_rows_t *q,
    const dsa_bf16_t *x, const dsa_bf16_t *residual_in,
    dsa_bf16_t *residual_out, const float *w, uint32_t rows, uint32_t cols,
    float eps, dsa_stream_t stream)
{
    return dsa_norm<1>(y, cols, q, x, cols, residual_in, residual_out, w,
                       rows, cols, eps, stream);
}
