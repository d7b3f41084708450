
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "embed.h"
}

#include "kernels/core/rows.cuh"


#define DSA_EMBED_THREADS  256
#define DSA_EMBED_CHUNKS   4        /* of a thread, in flight at once */


/* A row number outside of base .. base+limit-1 gives zeros. */

static __global__ void __launch_bounds__(DSA_EMBED_THREADS)
dsa_gather_rows_kernel(dsa_bf16_t *y, const dsa_bf16_t *x, const int32_t *row,
    uint32_t cols, uint32_t base, uint32_t limit)
{
    int                i;
    uint4              v[DSA_EMBED_CHUNKS];
    uint32_t           from, col, first;
    const dsa_bf16_t  *p;

    dsa_begin();

    from = (uint32_t) row[blockIdx.x] - base;
    p = x + (size_t) from * cols;
    y += (size_t) blockIdx.x * cols;

    first = blockIdx.y * DSA_EMBED_THREADS * DSA_EMBED_CHUNKS + threadIdx.x;

#pragma unroll
    for (i = 0; i < DSA_EMBED_CHUNKS; i++) {
        col = (first + i * DSA_EMBED_THREADS) * DSA_CHUNK;
        v[i] = from < limit && col < cols ? dsa_load16(p + col)
                                          : make_uint4(0, 0, 0, 0);
    }

#pragma unroll
    for (i = 0; i < DSA_EMBED_CHUNKS; i++) {
        col = (first + i * DSA_EMBED_THREADS) * DSA_CHUNK;

        if (col < cols) {
            dsa_store16(y + col, v[i]);
        }
    }
}


static int
dsa_gather(dsa_bf16_t *y, const dsa_bf16_t *x, const int32_t *row,
    uint32_t n, uint32_t cols, uint32_t base, uint32_t limit,
    dsa_stream_t stream)
{
    uint32_t  span;

    span = DSA_CHUNK * DSA_EMBED_THREADS * DSA_EMBED_CHUNKS;

    if (cols == 0 || cols % DSA_CHUNK != 0 || cols / span > 65534
        || !dsa_aligned16(x) || !dsa_aligned16(y))
    {
        return cudaErrorInvalidValue;
    }

    if (n == 0) {
        return cudaSuccess;
    }

    return dsa_launch(dsa_gather_rows_kernel,
                      dim3(n, (cols + span - 1) / span), DSA_EMBED_THREADS, 0,
                      stream, y, x, row, cols, base, limit);
}


extern "C" int
dsa_cuda_embed(dsa_bf16_t *x, const dsa_bf16_t *table, const int32_t *token,
    uint32_t rows, uint32_t cols, uint32_t first, uint32_t vocab,
    dsa_stream_t stream)
{
    return dsa_gather(x, table, token, rows, cols, first, vocab, stream);
}


extern "C" int
dsa_cuda_gather_rows(dsa_bf16_t *y, const dsa_bf16_t *x, const int32_t *row,
    uint32_t n, uint32_t cols, dsa_stream_t stream)
{
    return dsa_gather(y, x, row, n, cols, 0, 0x80000000, stream);
}
