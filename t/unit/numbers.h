
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_NUMBERS_H_INCLUDED_
#define _DSA_T_NUMBERS_H_INCLUDED_


#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/sample/noise.h"


/* Numbers for tests: the same in every run. */

static uint64_t  dsa_t_state = 88172645463325252ULL;


static inline uint32_t
dsa_t_random(uint32_t n)
{
    dsa_t_state ^= dsa_t_state << 13;
    dsa_t_state ^= dsa_t_state >> 7;
    dsa_t_state ^= dsa_t_state << 17;

    return (uint32_t) ((dsa_t_state >> 20) % n);
}


/* Uniform in -1 .. 1. */

static inline float
dsa_t_uniform(void)
{
    return (float) dsa_t_random(2000001) / 1000000.0f - 1.0f;
}


/* Uniform in (0, 1), a function of three numbers: 52 bits of Philox. */

static inline double
dsa_t_counted(uint64_t seed, uint64_t a, uint32_t b)
{
    uint32_t  x[4];

    dsa_noise_words(x, seed, a, b, 0);

    return ((double) (((uint64_t) x[1] << 32 | x[0]) >> 12) + 0.5) * 0x1p-52;
}


static inline void
dsa_t_fill(float *x, size_t n, float scale)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = dsa_t_uniform() * scale;
    }
}


/* |a - b| / |b|, vectors. */

static inline double
dsa_t_error(const float *a, const double *b, size_t n)
{
    size_t  i;
    double  d, sum, norm;

    sum = 0;
    norm = 0;

    for (i = 0; i < n; i++) {
        d = a[i] - b[i];
        sum += d * d;
        norm += b[i] * b[i];
    }

    return sqrt(sum / norm);
}


#endif /* _DSA_T_NUMBERS_H_INCLUDED_ */
