
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "attention.h"
}

#include "kernels/core/rows.cuh"


#define DSA_MASK_THREADS  256
#define DSA_MASK_WORDS    8192      /* in shared memory at once */


/*
 * One block for each row.  Bits are collected in shared memory.  A thread
 * reads four picks.  These usually rise, so most of them are in one word, and
 * few atomics collide.
 */

static __global__ void __launch_bounds__(DSA_MASK_THREADS)
dsa_attention_mask_kernel(uint32_t *mask, size_t ld_mask,
    const int32_t *pick, size_t ld_pick, const int32_t *n_pick)
{
    int32_t              i, j, n, p[4];
    int4                 v;
    uint32_t             bits, word, w;
    size_t               words, first;
    extern __shared__ uint32_t  dsa_mask_bits[];

    dsa_begin();

    mask += blockIdx.x * ld_mask;
    pick += blockIdx.x * ld_pick;
    n = n_pick[blockIdx.x];

    for (first = 0; first < ld_mask; first += DSA_MASK_WORDS) {
        words = ld_mask - first < DSA_MASK_WORDS ? ld_mask - first
                                                 : DSA_MASK_WORDS;

        for (i = threadIdx.x; i < (int32_t) words; i += DSA_MASK_THREADS) {
            dsa_mask_bits[i] = 0;
        }

        __syncthreads();

        for (i = threadIdx.x * 4; i < n; i += DSA_MASK_THREADS * 4) {
            v = *(const int4 *) (pick + i);
            p[0] = v.x, p[1] = v.y, p[2] = v.z, p[3] = v.w;

            bits = 0;
            word = 0;

#pragma unroll
            for (j = 0; j < 4; j++) {
                w = (uint32_t) p[j] / 32 - (uint32_t) first;

                if (i + j >= n || p[j] < 0 || w >= words) {
                    continue;
                }

                if (w != word && bits != 0) {
                    atomicOr(&dsa_mask_bits[word], bits);
                    bits = 0;
                }

                word = w;
                bits |= 1U << p[j] % 32;
            }

            if (bits != 0) {
                atomicOr(&dsa_mask_bits[word], bits);
            }
        }

        __syncthreads();

        for (i = threadIdx.x; i < (int32_t) words; i += DSA_MASK_THREADS) {
            mask[first + i] = dsa_mask_bits[i];
        }

        __syncthreads();
    }
}


extern "C" int
dsa_cuda_attention_mask(uint32_t *mask, size_t ld_mask, const int32_t *pick,
    size_t ld_pick, const int32_t *n_pick, uint32_t rows,
    dsa_stream_t stream)
{
    size_t  words;

    if (ld_pick % 4 != 0 || ((uintptr_t) pick & 15) != 0) {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 || ld_mask == 0) {
        return cudaSuccess;
    }

    words = ld_mask < DSA_MASK_WORDS ? ld_mask : DSA_MASK_WORDS;

    return dsa_launch(dsa_attention_mask_kernel, rows, DSA_MASK_THREADS,
                      words * sizeof(uint32_t), stream, mask, ld_mask, pick,
                      ld_pick, n_pick);
}
