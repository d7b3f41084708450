
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "rope.h"
}

#include "kernels/core/rows.cuh"


#define DSA_ROPE_THREADS  256
#define DSA_ROPE_CHUNKS   (DSA_CUDA_ROPE / DSA_CHUNK)
#define DSA_ROPE_HEADS    65536


/*
 * One chunk, which is 4 pairs, of the heads of a row for each thread; out may
 * be q.
 */

static __global__ void __launch_bounds__(DSA_ROPE_THREADS)
dsa_rope_query_kernel(dsa_bf16_t *out, uint32_t ld, uint32_t at,
    const dsa_bf16_t *q, uint32_t width, const float *table,
    const int32_t *position, uint32_t heads)
{
    int           i;
    float         v[DSA_CHUNK], a, b, cos[4], sin[4];
    float4        c, s;
    size_t        vector;
    uint32_t      n, chunk;
    const float  *angles;

    dsa_begin();

    n = blockIdx.y * DSA_ROPE_THREADS + threadIdx.x;
    chunk = n % DSA_ROPE_CHUNKS;

    if (n / DSA_ROPE_CHUNKS >= heads) {
        return;
    }

    vector = (size_t) blockIdx.x * heads + n / DSA_ROPE_CHUNKS;
    angles = table + (size_t) position[blockIdx.x] * DSA_CUDA_ROPE
             + chunk * 4;

    dsa_unpack8(v, dsa_load16(q + (vector + 1) * width - DSA_CUDA_ROPE
                              + chunk * DSA_CHUNK));

    c = *(const float4 *) angles;
    s = *(const float4 *) (angles + DSA_CUDA_ROPE / 2);

    cos[0] = c.x, cos[1] = c.y, cos[2] = c.z, cos[3] = c.w;
    sin[0] = s.x, sin[1] = s.y, sin[2] = s.z, sin[3] = s.w;

#pragma unroll
    for (i = 0; i < 4; i++) {
        a = v[2 * i];
        b = v[2 * i + 1];

        v[2 * i] = __fsub_rn(__fmul_rn(a, cos[i]), __fmul_rn(b, sin[i]));
        v[2 * i + 1] = __fadd_rn(__fmul_rn(a, sin[i]), __fmul_rn(b, cos[i]));
    }

    dsa_store16(out + vector * ld + at + chunk * DSA_CHUNK, dsa_pack8(v));
}


extern "C" int
dsa_cuda_rope_query(dsa_bf16_t *out, uint32_t ld, uint32_t at,
    const dsa_bf16_t *q, uint32_t width, const float *table,
    const int32_t *position, uint32_t rows, uint32_t heads,
    dsa_stream_t stream)
{
    uint32_t  blocks;

    blocks = (heads * DSA_ROPE_CHUNKS + DSA_ROPE_THREADS - 1)
             / DSA_ROPE_THREADS;

    if (ld % DSA_CHUNK != 0 || at % DSA_CHUNK != 0
        || (uint64_t) at + DSA_CUDA_ROPE > ld || width % DSA_CHUNK != 0
        || width < DSA_CUDA_ROPE || heads > DSA_ROPE_HEADS
        || !dsa_aligned16(out) || !dsa_aligned16(q) || !dsa_aligned16(table))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 || heads == 0) {
        return cudaSuccess;
    }

    return dsa_launch(dsa_rope_query_kernel, dim3(rows, blocks),
                      DSA_ROPE_THREADS, 0, stream, out, ld, at, q, width,
                      table, position, heads);
}
