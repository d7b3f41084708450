
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BF16_H_INCLUDED_
#define _DSA_BF16_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>
#include <string.h>


/*
 * BF16 is the upper half of a float32.  The CPU keeps activations as float32
 * in both precisions; in served precision every value that the published code
 * stores in BF16 is rounded to BF16, to nearest, ties to even.  Ops with a flag
 * bf16 round their results in this way if it is 1, and do not if it is 0.
 */


static inline uint32_t
dsa_float_bits(float v)
{
    uint32_t  u;

    memcpy(&u, &v, sizeof(u));

    return u;
}


static inline float
dsa_bits_float(uint32_t u)
{
    float  v;

    memcpy(&v, &u, sizeof(v));

    return v;
}


static inline float
dsa_bf16_decode(uint16_t v)
{
    return dsa_bits_float((uint32_t) v << 16);
}


/*
 * Rounds to the nearest BF16.  A NaN stays a NaN: the carry of its payload
 * must not reach the sign.
 */

static inline uint16_t
dsa_bf16_encode(float v)
{
    uint32_t  u, r;

    u = dsa_float_bits(v);
    r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

    return (uint16_t) (v == v ? r : (u >> 16 | 0x40));
}


static inline float
dsa_bf16_round(float v)
{
    return dsa_bf16_decode(dsa_bf16_encode(v));
}


/* Rounds x [n] float32 to the nearest BF16, in place. */
void dsa_bf16_round_rows(float *x, size_t n);

/* out [n] float32 = in [n] BF16, exactly; in has any alignment. */
void dsa_bf16_decode_rows(float *out, const void *in, size_t n);


#endif /* _DSA_BF16_H_INCLUDED_ */
