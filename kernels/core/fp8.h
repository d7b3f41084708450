
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FP8_H_INCLUDED_
#define _DSA_FP8_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "bf16.h"
#include "cuda.h"


/*
 * FP8 e4m3 (the "fn" kind: no infinities, 448 the largest, S.1111.111 NaN)
 * and the block quantization of the published FP8 checkpoints.
 *
 *     value = (-1)^S * 2^(E - 7) * (1 + M / 8)     E > 0
 *             (-1)^S * 2^-6 * (M / 8)              E = 0
 */

#define DSA_E4M3_MAX      448.0f
#define DSA_FP8_GROUP     128       /* columns, and rows of a weight's block */


/* The value of each code. */
extern const float  dsa_e4m3_value[256];


/*
 * Returns the e4m3 value nearest to v, ties to even, as float32; larger
 * magnitudes become the largest value.  The addition of 1.5 * 2^(e + 20)
 * rounds v to the bits from 2^(e - 3) up, which e4m3 has; below 2^-6 the step
 * is 2^-9.  The sign is set again for values that become -0.
 */

static inline float
dsa_e4m3_round(float v)
{
    float     c;
    uint32_t  e, sign;

    sign = dsa_float_bits(v) & 0x80000000;

    v = v > DSA_E4M3_MAX ? DSA_E4M3_MAX : v;
    v = v < -DSA_E4M3_MAX ? -DSA_E4M3_MAX : v;

    e = dsa_float_bits(v) & 0x7f800000;
    e = e < (121U << 23) ? 121U << 23 : e;
    c = dsa_bits_float(e + (20U << 23)) * 1.5f;

    return dsa_bits_float(dsa_float_bits((v + c) - c) | sign);
}


/* Returns the code of a value of dsa_e4m3_round(). */

static inline uint8_t
dsa_e4m3_code(float v)
{
    int32_t   a, small, code;
    uint32_t  u;

    u = dsa_float_bits(v);
    a = (int32_t) (u & 0x7fffffff);

    /* compute both, because a loop without branches can be vectorized */

    small = (int32_t) (dsa_bits_float((uint32_t) (a < 121 << 23 ? a : 0))
                       * 512.0f);
    code = a < 121 << 23 ? small : (a >> 20) - (120 << 3);
    code = a > 0x7f800000 ? 0x7f : code;

    return (uint8_t) ((int32_t) (u >> 24 & 0x80) | code);
}


/*
 * Returns the least power of two that is not below s > 0: its exponent, plus 1
 * if a bit of the fraction is set, limited to 2^-126 .. 2^127.
 */

static inline float
dsa_ue8m0(float s)
{
    uint32_t  u, e;

    u = dsa_float_bits(s);
    e = (u >> 23 & 0xff) + ((u & 0x7fffff) != 0);
    e = e < 1 ? 1 : e;
    e = e > 254 ? 254 : e;

    return dsa_bits_float(e << 23);
}


/*
 * Returns the scale of a group of n values: max(|x|, 1e-4) / 448, with ue8m0
 * rounded up to a power of two.  Values are divided by the rounded scale
 * (published inference code, act_quant).
 */
float dsa_fp8_scale(const float *x, size_t n, int ue8m0);

/*
 * y = s * e4m3(x / s) for x [rows, cols] float32, with a scale s for each group
 * of 128 columns of a row: the left operand of an FP8 GEMM.  y may be x.
 */
void dsa_fp8_simulate(float *y, const float *x, size_t rows, size_t cols,
    int ue8m0);

/* y [n] = scale * e4m3(x / scale), for a given scale > 0; y may be x. */
void dsa_fp8_simulate_by(float *y, const float *x, size_t n, float scale);

/*
 * Replaces x [n, dim] float32 by the e4m3 values of x / scale; scale [n],
 * ue8m0, has one for each row.
 */
void dsa_fp8_round(float *x, float *scale, size_t n, size_t dim);

/*
 * Encodes one vector x [n] float32: codes q [n], and scale [ceil(n / group)],
 * ue8m0, one for each group of the given length.
 */
void dsa_fp8_encode(uint8_t *q, float *scale, const float *x, size_t n,
    size_t group);

/*
 * Encodes n <= 128 rows of a weight, w [n, cols] float32: codes q [n, cols],
 * and scale [ceil(cols / 128)], dsa_fp8_scale() of each block of n x 128
 * values, not rounded.
 */
void dsa_fp8_encode_weight(uint8_t *q, float *scale, const float *w, size_t n,
    size_t cols);

/* out [n] = scale * the values of codes q [n]. */
void dsa_fp8_decode(float *out, const uint8_t *q, size_t n, float scale);

/*
 * Decodes rows first .. first+n-1 of a weight [rows, cols] e4m3 to w [n,
 * cols].  scale [ceil(rows/128), ceil(cols/128)] float32 is a factor.
 */
void dsa_fp8_decode_weight(float *w, const void *q, const float *scale,
    size_t first, size_t n, size_t cols);


/*
 * CUDA.  Quantizes x [rows, cols] bf16, ld_x apart, to e4m3 with a ue8m0 scale
 * for each group of 128 columns; values are divided by the rounded scale.
 * With ue8m0 0 scales are amax / 448, not rounded.  cols is a multiple of 128,
 * ld_x of 8; x and q are 16-byte aligned.
 */
int dsa_cuda_fp8_quantize(const dsa_fp8_rows_t *q, const dsa_bf16_t *x,
    size_t ld_x, uint32_t rows, uint32_t cols, int ue8m0,
    dsa_stream_t stream);

/*
 * CUDA.  The same with the scale of all groups given: *scale, on the GPU, is
 * above 0 and finite.  Quotients beyond 448 become 448.
 */
int dsa_cuda_fp8_quantize_by(const dsa_fp8_rows_t *q, const dsa_bf16_t *x,
    size_t ld_x, uint32_t rows, uint32_t cols, const float *scale,
    dsa_stream_t stream);

/*
 * CUDA.  out [rows, cols] bf16 from a weight, rounded to the nearest; exact if
 * scales are powers of two.
 */
int dsa_cuda_fp8_decode_weight(dsa_bf16_t *out, const dsa_fp8_weight_t *w,
    dsa_stream_t stream);


#endif /* _DSA_FP8_H_INCLUDED_ */
