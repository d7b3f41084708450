
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_EXP_H_INCLUDED_
#define _DSA_EXP_H_INCLUDED_


#include "bf16.h"
#include "simd.h"


#define DSA_EXP_LEAST   -88.0f          /* 0 */
#define DSA_EXP_MOST    89.0f           /* infinity */
#define DSA_EXP_ROUND   12582912.0f     /* 1.5 * 2^23: a float32 of this size
                                           has no fraction */


/*
 * Returns e^x with a relative error below 2e-7; 0 instead of a number below the
 * normal ones, and infinity from 88.4 on.  The compiler computes it for several
 * x at a time.  Unlike expf() it has the same bits on any processor.
 *
 * x = n ln 2 + r, and e^r = 1 + r + r^2 q(r), where q is the polynomial that
 * equals it at the Chebyshev nodes of |r| <= ln 2 / 2.  n ln 2 is subtracted in
 * two parts, of which the first is exact.
 */

static DSA_INLINE float
dsa_exp(float x)
{
    float     t, n, r, q;
    uint32_t  power;

    x = x < DSA_EXP_LEAST ? DSA_EXP_LEAST : x;
    x = x > DSA_EXP_MOST ? DSA_EXP_MOST : x;

    t = x * 1.44269502f + DSA_EXP_ROUND;
    n = t - DSA_EXP_ROUND;

    r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;

    q = 0.00139263261f;
    q = q * r + 0.00836329255f;
    q = q * r + 0.0416665524f;
    q = q * r + 0.166665763f;
    q = q * r + 0.5f;

    power = (dsa_float_bits(t) - dsa_float_bits(DSA_EXP_ROUND) + 127) << 23;

    return (1.0f + (r + r * r * q)) * dsa_bits_float(power);
}


#endif /* _DSA_EXP_H_INCLUDED_ */
