
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "indexer.h"
}

#include "kernels/core/hopper.cuh"


#define DSA_FIRST_THREADS  256
#define DSA_FIRST_EACH     8            /* 2048 positions */


static __global__ void
dsa_score_first_kernel(float *score, size_t ld, uint32_t rows)
{
    uint32_t  i;

    i = blockIdx.x * DSA_FIRST_THREADS + threadIdx.x;

    if (i < rows) {
        score[i * ld] = -INFINITY;
    }
}


/* One block for each row: the positions after the first one move up. */

static __global__ void __launch_bounds__(DSA_FIRST_THREADS)
dsa_pick_first_kernel(int32_t *pick, int32_t *slot, int32_t *n_pick,
    uint32_t k)
{
    int       i;
    int32_t   p[DSA_FIRST_EACH], s[DSA_FIRST_EACH];
    uint32_t  at;

    pick += (size_t) blockIdx.x * k;
    slot += (size_t) blockIdx.x * k;

    if (n_pick[blockIdx.x] == 0 || pick[0] != 0) {
        return;
    }

#pragma unroll
    for (i = 0; i < DSA_FIRST_EACH; i++) {
        at = i * DSA_FIRST_THREADS + threadIdx.x + 1;
        p[i] = at < k ? pick[at] : -1;
        s[i] = at < k ? slot[at] : -1;
    }

    __syncthreads();

#pragma unroll
    for (i = 0; i < DSA_FIRST_EACH; i++) {
        at = i * DSA_FIRST_THREADS + threadIdx.x;

        if (at < k) {
            pick[at] = p[i];
            slot[at] = s[i];
        }
    }

    if (threadIdx.x == 0) {
        n_pick[blockIdx.x]--;
    }
}


extern "C" int
dsa_cuda_score_first(float *score, size_t ld, uint32_t rows,
    dsa_stream_t stream)
{
    if (rows == 0) {
        return 0;
    }

    dsa_score_first_kernel<<<(rows + DSA_FIRST_THREADS - 1)
                             / DSA_FIRST_THREADS, DSA_FIRST_THREADS, 0,
                             stream>>>(score, ld, rows);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_pick_first(int32_t *pick, int32_t *slot, int32_t *n_pick,
    uint32_t rows, uint32_t k, dsa_stream_t stream)
{
    if (k > DSA_FIRST_THREADS * DSA_FIRST_EACH) {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return 0;
    }

    dsa_pick_first_kernel<<<rows, DSA_FIRST_THREADS, 0, stream>>>(pick, slot,
                                                                  n_pick, k);

    return cudaGetLastError();
}
