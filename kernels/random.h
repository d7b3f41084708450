
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_RANDOM_H_INCLUDED_
#define _DSA_RANDOM_H_INCLUDED_


#include "kernels/cuda.h"


/*
 * CUDA.  Numbers for weights without files and for measurements: n elements,
 * uniform in -scale .. scale about mean, of (seed, index) alone.  e4m3: every
 * finite code with equal probability, so that its values, with a scale of
 * theirs, spread as those of a quantized weight do; scale has no meaning.
 */
int dsa_cuda_random_f32(float *x, size_t n, float mean, float scale,
    uint64_t seed, dsa_stream_t stream);
int dsa_cuda_random_bf16(dsa_bf16_t *x, size_t n, float mean, float scale,
    uint64_t seed, dsa_stream_t stream);
int dsa_cuda_random_e4m3(dsa_e4m3_t *x, size_t n, uint64_t seed,
    dsa_stream_t stream);

/*
 * CUDA.  Cache entries of tokens that nobody computed: n parts of a layer, one
 * behind the other (64 records of 656 bytes, 64 index keys, 64 scales): codes
 * with a mantissa's last bit 0, of either sign, scales of 2^-7, rope parts in
 * -1 .. 1.
 */
int dsa_cuda_random_cache(void *base, size_t n, uint64_t seed,
    dsa_stream_t stream);


#endif /* _DSA_RANDOM_H_INCLUDED_ */
