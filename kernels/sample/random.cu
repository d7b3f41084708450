
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "random.h"
}

#include "kernels/core/hopper.cuh"


#define DSA_RANDOM_BLOCKS   1056
#define DSA_RANDOM_THREADS  256
#define DSA_RANDOM_LATENTS  (64 * DSA_CUDA_RECORD)
#define DSA_RANDOM_KEYS     (64 * (DSA_CUDA_INDEX + 4))


/* SplitMix64 (Steele et al., OOPSLA 2014) of a counter. */

static __device__ __forceinline__ uint32_t
dsa_random_word(uint64_t seed, uint64_t i)
{
    uint64_t  z;

    z = seed + (i + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

    return (uint32_t) ((z ^ (z >> 31)) >> 32);
}


static __device__ __forceinline__ float
dsa_random_float(uint64_t seed, uint64_t i, float mean, float scale)
{
    float  u;

    u = (float) (dsa_random_word(seed, i) >> 8) * 0x1p-23f - 1.0f;

    return mean + u * scale;
}


static __global__ void
dsa_random_f32_kernel(float *x, size_t n, float mean, float scale,
    uint64_t seed)
{
    size_t  i;

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t) gridDim.x * blockDim.x)
    {
        x[i] = dsa_random_float(seed, i, mean, scale);
    }
}


static __global__ void
dsa_random_bf16_kernel(dsa_bf16_t *x, size_t n, float mean, float scale,
    uint64_t seed)
{
    size_t  i;

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t) gridDim.x * blockDim.x)
    {
        x[i] = dsa_float_bf16(dsa_random_float(seed, i, mean, scale));
    }
}


/* Makes codes: 127 of either sign, because 0x7f is the NaN. */

static __global__ void
dsa_random_e4m3_kernel(dsa_e4m3_t *x, size_t n, uint64_t seed)
{
    size_t    i;
    uint32_t  u;

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t) gridDim.x * blockDim.x)
    {
        u = dsa_random_word(seed, i);
        x[i] = (dsa_e4m3_t) ((u >> 16) % 127 | (u & 1) << 7);
    }
}


/* Returns two BF16 values from -1 to 1. */

static __device__ __forceinline__ uint32_t
dsa_random_pair(uint32_t u)
{
    return (uint32_t) dsa_float_bf16((float) (u & 0xffff) * 0x1p-15f - 1.0f)
           | (uint32_t) dsa_float_bf16((float) (u >> 16) * 0x1p-15f - 1.0f)
             << 16;
}


/* 4 bytes for each thread: codes, a scale, or two BF16 values. */

static __global__ void
dsa_random_cache_kernel(dsa_cuda_cache_t cache, uint32_t bytes, uint64_t seed)
{
    size_t     i, words;
    uint32_t   u, at, v;
    uint32_t  *x;

    words = bytes / 4;

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;
         i < cache.pages * words;
         i += (size_t) gridDim.x * blockDim.x)
    {
        u = dsa_random_word(seed, i);
        at = (uint32_t) (i % words) * 4;
        x = (uint32_t *) (cache.base + i / words * cache.page + at);

        /*
         * Even codes, because none of them is the NaN; the lowest bit becomes
         * the sign.
         */

        v = (u & 0x7e7e7e7e) | (u << 7 & 0x80808080);

        if (cache.bf16) {
            v = dsa_random_pair(u);

        } else if (at < DSA_RANDOM_LATENTS) {
            at %= DSA_CUDA_RECORD;

            if (at >= DSA_CUDA_LATENT + 16) {
                v = dsa_random_pair(u);

            } else if (at >= DSA_CUDA_LATENT) {
                v = __float_as_uint(0x1p-7f);
            }

        } else if (at >= DSA_RANDOM_LATENTS + 64 * DSA_CUDA_INDEX) {
            v = __float_as_uint(0x1p-7f);
        }

        *x = v;
    }
}


extern "C" int
dsa_cuda_random_cache(const dsa_cuda_cache_t *cache, int indexed,
    uint64_t seed, dsa_stream_t stream)
{
    uint32_t  bytes;

    bytes = cache->bf16 ? 64 * dsa_cuda_record(1)
                        : DSA_RANDOM_LATENTS + (indexed ? DSA_RANDOM_KEYS : 0);

    dsa_random_cache_kernel<<<DSA_RANDOM_BLOCKS, DSA_RANDOM_THREADS, 0,
                              stream>>>(*cache, bytes, seed);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_random_f32(float *x, size_t n, float mean, float scale, uint64_t seed,
    dsa_stream_t stream)
{
    dsa_random_f32_kernel<<<DSA_RANDOM_BLOCKS, DSA_RANDOM_THREADS, 0,
                            stream>>>(x, n, mean, scale, seed);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_random_bf16(dsa_bf16_t *x, size_t n, float mean, float scale,
    uint64_t seed, dsa_stream_t stream)
{
    dsa_random_bf16_kernel<<<DSA_RANDOM_BLOCKS, DSA_RANDOM_THREADS, 0,
                             stream>>>(x, n, mean, scale, seed);

    return cudaGetLastError();
}


extern "C" int
dsa_cuda_random_e4m3(dsa_e4m3_t *x, size_t n, uint64_t seed,
    dsa_stream_t stream)
{
    dsa_random_e4m3_kernel<<<DSA_RANDOM_BLOCKS, DSA_RANDOM_THREADS, 0,
                             stream>>>(x, n, seed);

    return cudaGetLastError();
}
