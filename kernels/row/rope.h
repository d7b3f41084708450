
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ROPE_H_INCLUDED_
#define _DSA_ROPE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "kernels/core/cuda.h"


/*
 * Rotary position embedding in two layouts over one frequency table.
 *
 * YaRN (arXiv 2309.00071, as DeepSeek-V2 and on apply it), i = 0 .. dim/2-1:
 *
 *     f[i]  = theta^(-2i / dim)
 *     d(r)  = dim * ln(original / (2 pi r)) / (2 ln theta)
 *     low   = floor(d(beta_fast)), high = ceil(d(beta_slow)), in 0 .. dim-1
 *     ramp  = clamp((i - low) / (high - low), 0, 1)
 *     f'[i] = f[i] * (1 - ramp) + f[i] / factor * ramp
 *     m(a)  = 0.1 * a * ln(factor) + 1
 *
 * cos and sin are multiplied by m(mscale) / m(mscale_all_dim).  The factor
 * m(mscale_all_dim)^2 of attention scores is part of softmax_scale in the model
 * config.  With factor <= 1 the result is plain RoPE.
 */

typedef struct {
    double      theta;
    double      factor;
    double      beta_fast;
    double      beta_slow;
    double      mscale;
    double      mscale_all_dim;
    uint32_t    original;       /* positions of the pre-training */
} dsa_rope_conf_t;


/*
 * Computes freq [dim / 2], in radians per position, in double, rounded once.
 */
void dsa_rope_frequencies(float *freq, size_t dim,
    const dsa_rope_conf_t *conf);

/* Returns m(mscale) / m(mscale_all_dim). */
double dsa_rope_magnitude(const dsa_rope_conf_t *conf);

/*
 * Computes cos, sin [dim / 2] of a position, times magnitude.  The angle is a
 * float32 product, as in the published code.  Near position 163839 its
 * rounding error reaches 0.004 radians, and the weights were trained with it.
 */
void dsa_rope_angles(float *cos, float *sin, const float *freq, size_t dim,
    uint32_t position, double magnitude);

/*
 * Rotates n vectors of dim elements, ld apart, by the same angles, in place.
 * interleaved pairs elements 2i and 2i + 1, as attention does; half pairs i and
 * i + dim / 2, as the indexer does.
 */
void dsa_rope_interleaved(float *x, size_t n, size_t ld, const float *cos,
    const float *sin, size_t dim, int bf16);
void dsa_rope_half(float *x, size_t n, size_t ld, const float *cos,
    const float *sin, size_t dim, int bf16);


/*
 * CUDA.  Rotates the last 64 elements of every head of q [rows, heads, width]
 * bf16, interleaved, and writes them to out [rows, heads, ld] from column at
 * of a head on.  In place: out q, ld width, at width - 64.  width, ld and at
 * are multiples of 8.  table [positions, 64] float32: cos of 32 frequencies,
 * then sin, as dsa_rope_angles() computes them.  position [rows].
 */
int dsa_cuda_rope_query(dsa_bf16_t *out, uint32_t ld, uint32_t at,
    const dsa_bf16_t *q, uint32_t width, const float *table,
    const int32_t *position, uint32_t rows, uint32_t heads,
    dsa_stream_t stream);


#endif /* _DSA_ROPE_H_INCLUDED_ */
