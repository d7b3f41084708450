
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "cache.h"
}

#include "kernels/index/index.cuh"


#define DSA_CACHE_BLOCK    4        /* tokens of a block */
#define DSA_CACHE_OWN      (DSA_CUDA_LATENT / 32)
#define DSA_CACHE_ROW      (DSA_CUDA_LATENT + DSA_CUDA_ROPE)
#define DSA_CACHE_SCALES   (DSA_CUDA_LATENT + DSA_CUDA_LATENT / DSA_GROUP * 4)

#define DSA_CACHE_THREADS  288      /* 4 tokens of 72 chunks */
#define DSA_CACHE_CHUNKS   (DSA_CACHE_ROW / DSA_CHUNK)
#define DSA_CACHE_TURNS    4


static __device__ __forceinline__ float
dsa_cache_inverse(float sum, uint32_t n, float eps)
{
    return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(sum, (float) n),
                                                eps)));
}


/* Stores a lane's 16 elements of a latent as FP8, and the scale of eight. */

static __device__ __forceinline__ void
dsa_cache_store_fp8(uint8_t *record, const float *v, uint32_t lane)
{
    float  scale, r;
    uint2  lo, hi;

    scale = dsa_float_ue8m0(dsa_scale(dsa_amax<DSA_CACHE_OWN, 8>(v)));
    r = dsa_reciprocal(scale);

    lo = dsa_e4m3x8(v, r);
    hi = dsa_e4m3x8(v + 8, r);
    dsa_store16(record + lane * DSA_CACHE_OWN,
                make_uint4(lo.x, lo.y, hi.x, hi.y));

    if (lane % 8 == 0) {
        *(float *) (record + DSA_CUDA_LATENT + lane / 8 * 4) = scale;
    }
}


/*
 * Returns v, or 0 if it is not finite.  Dense decode multiplies whole pages by
 * weights, which are 0 behind the end of a sequence; there may be what another
 * sequence has left.
 */

static __device__ __forceinline__ float
dsa_cache_finite(float v)
{
    return fabsf(v) < INFINITY ? v : 0;
}


/* Stores them as BF16, which they are already. */

static __device__ __forceinline__ void
dsa_cache_store_bf16(uint8_t *record, const float *v, uint32_t lane)
{
    record += lane * DSA_CACHE_OWN * sizeof(dsa_bf16_t);

    dsa_store16(record, dsa_pack8(v));
    dsa_store16(record + 16, dsa_pack8(v + 8));
}


/*
 * Writes a latent: 16 elements a lane and eight lanes a scale, then two rope
 * values a lane.
 */

static __device__ __forceinline__ void
dsa_cache_write_latent(uint8_t *record, uint32_t bf16, const dsa_bf16_t *kv,
    const float *norm, float eps, const float *angles, uint32_t lane)
{
    int     i;
    float   v[DSA_CACHE_OWN], p[2], sum, r, a, b, c, s;
    float4  w;

    dsa_unpack8(v, dsa_load16(kv + lane * DSA_CACHE_OWN));
    dsa_unpack8(v + 8, dsa_load16(kv + lane * DSA_CACHE_OWN + 8));
    dsa_unpack2(p, *(const uint32_t *) (kv + DSA_CUDA_LATENT + lane * 2));

    c = angles[lane];
    s = angles[DSA_CUDA_ROPE / 2 + lane];

    sum = 0;

#pragma unroll
    for (i = 0; i < DSA_CACHE_OWN; i++) {
        sum = __fadd_rn(sum, __fmul_rn(v[i], v[i]));
    }

    r = dsa_cache_inverse(dsa_warp_sum(sum), DSA_CUDA_LATENT, eps);

#pragma unroll
    for (i = 0; i < DSA_CACHE_OWN; i += 4) {
        w = *(const float4 *) (norm + lane * DSA_CACHE_OWN + i);

        v[i] = __fmul_rn(w.x, __fmul_rn(v[i], r));
        v[i + 1] = __fmul_rn(w.y, __fmul_rn(v[i + 1], r));
        v[i + 2] = __fmul_rn(w.z, __fmul_rn(v[i + 2], r));
        v[i + 3] = __fmul_rn(w.w, __fmul_rn(v[i + 3], r));
    }

    dsa_round_bf16<DSA_CACHE_OWN>(v);

    if (bf16) {
#pragma unroll
        for (i = 0; i < DSA_CACHE_OWN; i++) {
            v[i] = dsa_cache_finite(v[i]);
        }

        dsa_cache_store_bf16(record, v, lane);
        record += DSA_CUDA_LATENT * sizeof(dsa_bf16_t);

    } else {
        dsa_cache_store_fp8(record, v, lane);
        record += DSA_CACHE_SCALES;
    }

    a = p[0];
    b = p[1];
    p[0] = __fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s));
    p[1] = __fadd_rn(__fmul_rn(a, s), __fmul_rn(b, c));

    if (bf16) {
        p[0] = dsa_cache_finite(p[0]);
        p[1] = dsa_cache_finite(p[1]);
    }

    *(uint32_t *) (record + lane * 4) = dsa_pack2(p);
}


/* Writes an index key with eight lanes. */

static __device__ __forceinline__ float
dsa_cache_sum8(float v)
{
    v = __fadd_rn(v, __shfl_xor_sync(0xffffffff, v, 4));
    v = __fadd_rn(v, __shfl_xor_sync(0xffffffff, v, 2));

    return __fadd_rn(v, __shfl_xor_sync(0xffffffff, v, 1));
}


template <int INTERLEAVED>
static __device__ __forceinline__ float
dsa_cache_key(float *v, const dsa_bf16_t *k, const float *norm,
    const float *bias, float eps, const float *angles, uint32_t lane)
{
    int       i, at;
    float     sum, mean, r;
    uint32_t  first;

    first = dsa_index_first(lane);

    dsa_unpack8(v, dsa_load16(k + first));
    dsa_unpack8(v + 8, dsa_load16(k + first + 32));

    sum = 0;

#pragma unroll
    for (i = 0; i < DSA_INDEX_OWN; i++) {
        sum = __fadd_rn(sum, v[i]);
    }

    mean = __fdiv_rn(dsa_cache_sum8(sum), (float) DSA_CUDA_INDEX);
    sum = 0;

#pragma unroll
    for (i = 0; i < DSA_INDEX_OWN; i++) {
        v[i] = __fsub_rn(v[i], mean);
        sum = __fadd_rn(sum, __fmul_rn(v[i], v[i]));
    }

    r = dsa_cache_inverse(dsa_cache_sum8(sum), DSA_CUDA_INDEX, eps);

#pragma unroll
    for (i = 0; i < DSA_INDEX_OWN; i++) {
        at = first + i % 8 + i / 8 * 32;
        v[i] = __fadd_rn(__fmul_rn(__fmul_rn(v[i], r), norm[at]), bias[at]);
    }

    dsa_round_bf16<DSA_INDEX_OWN>(v);
    dsa_index_rope<INTERLEAVED>(v, angles, lane);
    dsa_index_hadamard(v, lane);

    return dsa_index_scale(v);
}


/*
 * One warp for each of four latents, and one warp for their four keys.  A
 * block of a layer without index keys has no such warp.
 */

template <int INTERLEAVED>
static __global__ void __launch_bounds__(32 * (DSA_CACHE_BLOCK + 1))
dsa_cache_write_kernel(dsa_cuda_cache_t cache, const int32_t *slot,
    const dsa_bf16_t *kv, size_t ld_kv, const float *kv_norm, float kv_eps,
    const dsa_bf16_t *k, size_t ld_k, const float *k_norm,
    const float *k_bias, float k_eps, const float *table,
    const int32_t *position, uint32_t rows)
{
    int           live;
    float         v[DSA_INDEX_OWN], scale;
    size_t        row;
    uint8_t      *page;
    int32_t       s;
    uint32_t      lane, warp;
    const float  *angles;

    dsa_begin();

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    row = (size_t) blockIdx.x * DSA_CACHE_BLOCK
          + (warp < DSA_CACHE_BLOCK ? warp : lane / DSA_INDEX_LANES);
    s = row < rows ? slot[row] : -1;
    live = s >= 0 && (uint32_t) s / DSA_CACHE_TOKENS < cache.pages;

    row = row < rows ? row : 0;
    s = live ? s : 0;
    page = cache.base + (uint32_t) s / DSA_CACHE_TOKENS * cache.page;
    s %= DSA_CACHE_TOKENS;
    angles = table + (size_t) (live ? position[row] : 0) * DSA_CUDA_ROPE;

    if (warp < DSA_CACHE_BLOCK) {
        if (live) {
            dsa_cache_write_latent(page + s * dsa_cuda_record(cache.bf16),
                                   cache.bf16, kv + row * ld_kv, kv_norm,
                                   kv_eps, angles, lane);
        }

        return;
    }

    scale = dsa_cache_key<INTERLEAVED>(v, k + row * ld_k, k_norm, k_bias,
                                       k_eps, angles, lane % DSA_INDEX_LANES);

    if (live) {
        page += cache.keys;
        dsa_index_store(page + s * DSA_CUDA_INDEX, v, scale,
                        lane % DSA_INDEX_LANES);

        if (lane % DSA_INDEX_LANES == 0) {
            *(float *) (page + DSA_CACHE_TOKENS * DSA_CUDA_INDEX + s * 4)
                = scale;
        }
    }
}


/*
 * Each thread decodes one chunk at a time: 8 codes, or 8 elements of the rope
 * part.
 */

static __global__ void __launch_bounds__(DSA_CACHE_THREADS)
dsa_cache_latents_kernel(dsa_bf16_t *out, dsa_cuda_cache_t cache,
    const int32_t *pages, uint32_t n)
{
    int             i;
    uint4           v[DSA_CACHE_TURNS];
    float           scale[DSA_CACHE_TURNS];
    uint2           codes;
    uint32_t        at, chunk, first;
    const uint8_t  *record;

    dsa_begin();

    chunk = threadIdx.x % DSA_CACHE_CHUNKS;
    first = blockIdx.x * DSA_CACHE_BLOCK * DSA_CACHE_TURNS
            + threadIdx.x / DSA_CACHE_CHUNKS;

#pragma unroll
    for (i = 0; i < DSA_CACHE_TURNS; i++) {
        at = first + i * DSA_CACHE_BLOCK;

        if (at >= n) {
            continue;
        }

        record = cache.base + pages[at / DSA_CACHE_TOKENS] * cache.page
                 + at % DSA_CACHE_TOKENS * dsa_cuda_record(cache.bf16);

        if (cache.bf16) {
            v[i] = dsa_load16(record + chunk * 16);

        } else if (chunk < DSA_CUDA_LATENT / DSA_CHUNK) {
            codes = *(const uint2 *) (record + chunk * DSA_CHUNK);
            v[i].x = codes.x;
            v[i].y = codes.y;
            scale[i] = *(const float *) (record + DSA_CUDA_LATENT
                                         + chunk / DSA_GROUP_LANES * 4);

        } else {
            v[i] = dsa_load16(record + DSA_CACHE_SCALES
                              + (chunk - DSA_CUDA_LATENT / DSA_CHUNK) * 16);
        }
    }

#pragma unroll
    for (i = 0; i < DSA_CACHE_TURNS; i++) {
        at = first + i * DSA_CACHE_BLOCK;

        if (at >= n) {
            continue;
        }

        if (!cache.bf16 && chunk < DSA_CUDA_LATENT / DSA_CHUNK) {
            v[i] = dsa_e4m3x8_bf16(make_uint2(v[i].x, v[i].y), scale[i]);
        }

        dsa_store16(out + (size_t) at * DSA_CACHE_ROW + chunk * DSA_CHUNK,
                    v[i]);
    }
}


static int
dsa_cache_ok(const dsa_cuda_cache_t *cache)
{
    return ((uintptr_t) cache->base & 127) == 0 && cache->page % 128 == 0
           && cache->keys % 128 == 0;
}


extern "C" int
dsa_cuda_cache_write(const dsa_cuda_cache_t *cache, const int32_t *slot,
    const dsa_bf16_t *kv, size_t ld_kv, const float *kv_norm, float kv_eps,
    const dsa_bf16_t *k, size_t ld_k, const float *k_norm,
    const float *k_bias, float k_eps, const float *table,
    const int32_t *position, int interleaved, uint32_t rows,
    dsa_stream_t stream)
{
    uint32_t  warps;

    if (!dsa_cache_ok(cache) || (cache->bf16 && k != NULL)
        || ld_kv % DSA_CHUNK != 0 || ld_k % DSA_CHUNK != 0
        || !dsa_aligned16(kv)
        || !dsa_aligned16(kv_norm) || !dsa_aligned16(k)
        || !dsa_aligned16(table))
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    warps = DSA_CACHE_BLOCK + (k != NULL);

    return dsa_launch(interleaved ? dsa_cache_write_kernel<1>
                                  : dsa_cache_write_kernel<0>,
                      (rows + DSA_CACHE_BLOCK - 1) / DSA_CACHE_BLOCK,
                      32 * warps, 0, stream, *cache, slot, kv,
                      ld_kv, kv_norm, kv_eps, k, ld_k, k_norm, k_bias, k_eps,
                      table, position, rows);
}


extern "C" int
dsa_cuda_cache_latents(dsa_bf16_t *out, const dsa_cuda_cache_t *cache,
    const int32_t *pages, uint32_t n, dsa_stream_t stream)
{
    uint32_t  tokens;

    if (!dsa_cache_ok(cache) || !dsa_aligned16(out)) {
        return cudaErrorInvalidValue;
    }

    if (n == 0) {
        return cudaSuccess;
    }

    tokens = DSA_CACHE_BLOCK * DSA_CACHE_TURNS;

    return dsa_launch(dsa_cache_latents_kernel, (n + tokens - 1) / tokens,
                      DSA_CACHE_THREADS, 0, stream, out, *cache, pages, n);
}
