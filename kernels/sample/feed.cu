
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "sample.h"
}

#include "kernels/core/hopper.cuh"


#define DSA_FEED_THREADS  128


static __global__ void
dsa_feed_kernel(int32_t *token, const int32_t *feed,
    const dsa_cuda_sample_t *sample, uint32_t rows, uint32_t *history,
    const dsa_cuda_sample_row_t *r, const int32_t *last, uint32_t samples)
{
    int32_t   from;
    uint32_t  i;

    i = blockIdx.x * DSA_FEED_THREADS + threadIdx.x;

    if (i < rows && feed[i] >= 0) {
        token[i] = (int32_t) sample[feed[i]].token;
    }

    if (i >= samples || r[i].n_history == 0) {
        return;
    }

    from = feed[last[i]];

    if (from >= 0) {
        history[r[i].history + r[i].n_history - 1] = sample[from].token;
    }
}


extern "C" int
dsa_cuda_feed(int32_t *token, const int32_t *feed,
    const dsa_cuda_sample_t *sample, uint32_t rows, uint32_t *history,
    const dsa_cuda_sample_row_t *r, const int32_t *last, uint32_t samples,
    dsa_stream_t stream)
{
    uint32_t  n;

    n = rows > samples ? rows : samples;

    if (n == 0) {
        return 0;
    }

    dsa_feed_kernel<<<(n + DSA_FEED_THREADS - 1) / DSA_FEED_THREADS,
                      DSA_FEED_THREADS, 0, stream>>>(token, feed, sample,
                                                     rows, history, r, last,
                                                     samples);

    return cudaGetLastError();
}
