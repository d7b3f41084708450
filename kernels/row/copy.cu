
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "copy.h"
}

#include "kernels/core/rows.cuh"
#include "kernels/core/setup.cuh"


#define DSA_COPY_THREADS    256
#define DSA_COPY_WORDS      4       /* of a thread, in flight at once */
#define DSA_COPY_BLOCKS     132     /* of a part */
#define DSA_COPY_MOST       (1U << 31)      /* words of a part */


typedef struct {
    dsa_copy_t  part[DSA_COPY_PARTS];
} dsa_copy_parts_t;


static __device__ __forceinline__ size_t
dsa_copy_at(const dsa_copy_t *p, uint32_t i)
{
    return (size_t) (i / p->width) * p->pitch + i % p->width;
}


/* Part blockIdx.y. */

static __global__ void __launch_bounds__(DSA_COPY_THREADS)
dsa_copy_kernel(dsa_copy_parts_t parts)
{
    int                i;
    uint32_t           n, at, first, span, v[DSA_COPY_WORDS];
    const dsa_copy_t  *p;

    dsa_begin();

    p = &parts.part[blockIdx.y];
    n = p->rows * p->width;
    span = gridDim.x * DSA_COPY_THREADS;
    first = blockIdx.x * DSA_COPY_THREADS + threadIdx.x;

    for ( /* void */ ; first < n; first += span * DSA_COPY_WORDS) {

#pragma unroll
        for (i = 0; i < DSA_COPY_WORDS; i++) {
            at = first + i * span;
            v[i] = 0;

            if (at < n) {
                v[i] = ((const uint32_t *) p->from)[dsa_copy_at(p, at)];
            }
        }

#pragma unroll
        for (i = 0; i < DSA_COPY_WORDS; i++) {
            at = first + i * span;

            if (at < n) {
                ((uint32_t *) p->to)[dsa_copy_at(p, at)] = v[i];
            }
        }
    }
}


int
dsa_copy_setup(void)
{
    return dsa_setup_load(dsa_copy_kernel);
}


extern "C" int
dsa_cuda_copy(const dsa_copy_t *part, uint32_t n, dsa_stream_t stream)
{
    uint32_t          i, blocks;
    uint64_t          span, words, most;
    dsa_copy_parts_t  parts;

    if (n == 0 || n > DSA_COPY_PARTS) {
        return cudaErrorInvalidValue;
    }

    most = 0;

    for (i = 0; i < n; i++) {
        words = (uint64_t) part[i].rows * part[i].width;

        if (part[i].width > part[i].pitch || words > DSA_COPY_MOST
            || (uintptr_t) part[i].to % sizeof(uint32_t) != 0
            || (uintptr_t) part[i].from % sizeof(uint32_t) != 0)
        {
            return cudaErrorInvalidValue;
        }

        parts.part[i] = part[i];
        most = words > most ? words : most;
    }

    if (most == 0) {
        return cudaSuccess;
    }

    span = DSA_COPY_THREADS * DSA_COPY_WORDS;
    blocks = most / span < DSA_COPY_BLOCKS
             ? (uint32_t) ((most + span - 1) / span) : DSA_COPY_BLOCKS;

    return dsa_launch(dsa_copy_kernel, dim3(blocks, n), DSA_COPY_THREADS, 0,
                      stream, parts);
}
