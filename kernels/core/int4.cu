
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime.h>

extern "C" {
#include "int4.h"
}

#include "setup.cuh"


#define DSA_INT4_ROWS       8           /* of a chunk */
#define DSA_INT4_BYTES      64          /* of a row's group */
#define DSA_INT4_BLOCK      128         /* rows of a block of scales */
#define DSA_INT4_THREADS    256


/* The 4 bits of column c of a row, as 2 |q| - (q < 0). */

static __device__ __forceinline__ uint32_t
dsa_int4_zigzag(const uint8_t *row, uint32_t c)
{
    uint32_t  v;

    v = row[c / 2] >> (c % 2 * 4) & 0xf;

    return (v << 1 & 0xf) ^ (v >= 8 ? 0xf : 0);
}


/* A block changes the 8 rows with the number blockIdx.x. */

static __global__ void __launch_bounds__(DSA_INT4_THREADS)
dsa_int4_pack_kernel(uint8_t *q, uint32_t groups)
{
    uint32_t        i, j, s, n, size, lane, word[4];
    uint4          *p;
    const uint8_t  *row;

    extern __shared__ __align__(16) uint8_t  rows[];

    size = groups * DSA_INT4_BYTES * DSA_INT4_ROWS;
    p = (uint4 *) (q + (size_t) blockIdx.x * size);

    for (i = threadIdx.x; i < size / 16; i += blockDim.x) {
        ((uint4 *) rows)[i] = p[i];
    }

    __syncthreads();

    /* i: group, row and lane of 16 bytes of the result */

    for (i = threadIdx.x; i < size / 16; i += blockDim.x) {
        lane = i % 4;
        n = i / 4 % DSA_INT4_ROWS;
        row = rows + (n * groups + i / (4 * DSA_INT4_ROWS)) * DSA_INT4_BYTES;

#pragma unroll
        for (s = 0; s < 4; s++) {
            word[s] = 0;

#pragma unroll
            for (j = 0; j < 4; j++) {
                n = 32 * s + 4 * lane + j;
                word[s] |= (dsa_int4_zigzag(row, n)
                            | dsa_int4_zigzag(row, n + 16) << 4) << (8 * j);
            }
        }

        p[i] = make_uint4(word[0], word[1], word[2], word[3]);
    }
}


/* A block transposes the scales of the 128 rows with the number blockIdx.x. */

static __global__ void __launch_bounds__(DSA_INT4_THREADS)
dsa_int4_scale_kernel(uint16_t *scale, uint32_t groups)
{
    uint32_t   i, size;
    uint16_t  *p;

    __shared__ uint16_t  v[DSA_INT4_BLOCK
                           * (DSA_CUDA_INT4_COLS / DSA_INT4_GROUP)];

    size = groups * DSA_INT4_BLOCK;
    p = scale + (size_t) blockIdx.x * size;

    for (i = threadIdx.x; i < size; i += blockDim.x) {
        v[i] = p[i];
    }

    __syncthreads();

    for (i = threadIdx.x; i < size; i += blockDim.x) {
        p[i] = v[i % DSA_INT4_BLOCK * groups + i / DSA_INT4_BLOCK];
    }
}


int
dsa_int4_setup(void)
{
    return dsa_setup_shared(dsa_int4_pack_kernel, DSA_CUDA_INT4_COLS / 2
                                                  * DSA_INT4_ROWS);
}


extern "C" int
dsa_cuda_int4_pack(uint8_t *q, dsa_bf16_t *scale, uint32_t rows,
    uint32_t cols, uint32_t n, dsa_stream_t stream)
{
    uint32_t  groups;
    uint64_t  all;

    all = (uint64_t) rows * n;
    groups = cols / DSA_INT4_GROUP;

    if (rows % DSA_INT4_BLOCK != 0 || cols % DSA_INT4_GROUP != 0 || cols == 0
        || cols > DSA_CUDA_INT4_COLS || all > INT32_MAX
        || (uintptr_t) q % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (all == 0) {
        return cudaSuccess;
    }

    dsa_int4_pack_kernel<<<all / DSA_INT4_ROWS, DSA_INT4_THREADS,
                           groups * DSA_INT4_BYTES * DSA_INT4_ROWS, stream>>>(
        q, groups);

    dsa_int4_scale_kernel<<<all / DSA_INT4_BLOCK, DSA_INT4_THREADS, 0,
                            stream>>>(scale, groups);

    return cudaGetLastError();
}
