
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
    const dsa_cuda_sample_t *sample, uint32_t rows)
{
    uint32_t  i;

    i = blockIdx.x * DSA_FEED_THREADS + threadIdx.x;

    if (i < rows && feed[i] >= 0) {
        token[i] = (int32_t) sample[feed[i]].token;
    }
}


extern "C" int
dsa_cuda_feed(int32_t *token, const int32_t *feed,
    const dsa_cuda_sample_t *sample, uint32_t rows, dsa_stream_t stream)
{
    if (rows == 0) {
        return 0;
    }

    dsa_feed_kernel<<<(rows + DSA_FEED_THREADS - 1) / DSA_FEED_THREADS,
                      DSA_FEED_THREADS, 0, stream>>>(token, feed, sample,
                                                     rows);

    return cudaGetLastError();
}
