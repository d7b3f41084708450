
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RANDOM_H_INCLUDED_
#define _DSA_RANDOM_H_INCLUDED_


#include "kernels/core/cuda.h"


/*
 * CUDA.  Random numbers for weights without files and for measurements: n
 * elements, uniform in mean - scale .. mean + scale, as a function of (seed,
 * index) alone.  e4m3: every finite code with equal probability.
 */
int dsa_cuda_random_f32(float *x, size_t n, float mean, float scale,
    uint64_t seed, dsa_stream_t stream);
int dsa_cuda_random_bf16(dsa_bf16_t *x, size_t n, float mean, float scale,
    uint64_t seed, dsa_stream_t stream);
int dsa_cuda_random_e4m3(dsa_e4m3_t *x, size_t n, uint64_t seed,
    dsa_stream_t stream);

/*
 * CUDA.  Random cache entries: the part of a layer in all pages of its cache,
 * 64 records of 656 bytes and, with indexed, 64 index keys and 64 scales.
 * Codes have 0 as the last bit of their mantissa and either sign, scales are
 * 2^-7, rope parts are in -1 .. 1, and so are BF16 latents.
 */
int dsa_cuda_random_cache(const dsa_cuda_cache_t *cache, int indexed,
    uint64_t seed, dsa_stream_t stream);


#endif /* _DSA_RANDOM_H_INCLUDED_ */
