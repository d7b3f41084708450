
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NOISE_H_INCLUDED_
#define _DSA_NOISE_H_INCLUDED_


#include <stdint.h>

#include "kernels/core/bf16.h"
#include "kernels/core/simd.h"


/*
 * The noise of sampling, for the CPU and CUDA with the same bits.
 *
 * A token is drawn by the Gumbel-max rule (Gumbel, "Statistical Theory of
 * Extreme Values and Some Practical Applications", 1954; Maddison, Tarlow,
 * Minka, "A* Sampling", NIPS 2014, section 2): the argmax over ids of
 *
 *     log w(id) + g(id),  g = -log(-log(u)),  u uniform in (0, 1)
 *
 * is id with probability w(id) / (sum of all w).  Because of monotony it is
 * the argmax of w / e as well, where e = -log(u) is exponential with rate 1.
 * This form needs no logarithm of w, and is what is computed here.
 *
 * The noise e is a function of (seed, position, id), so that two distributions
 * that differ little mostly have the same argmax: a draft from logits that are
 * nearly the model's is mostly the token that the model draws.  With one
 * random number for all ids, each change of a probability would shift the
 * intervals of all ids behind it.
 *
 * e = -log(1 - v) with v = (k + 1/2) / 2^32, where k is a word of
 * Philox4x32-10 with counter (position low, high, id / 4, 0) and key (seed
 * low, high): word id % 4.  An id of probability p wins mostly with e below p,
 * so small v need more bits: for k < 256 another 32 bits, of the same words
 * with 1 instead of 0 in the counter, follow.  v is at least 2^-65, and is
 * rounded to 24 bits at any size, so that ids are drawn with their probability
 * p down to about 2^-60.  Comparing float32 quotients changes a probability by
 * less than its 2^-21st part.
 */

#define DSA_NOISE_IDS       4           /* of a block of Philox */
#define DSA_NOISE_ROUNDS    10
#define DSA_NOISE_MORE      256         /* words below it get more bits */
#define DSA_NOISE_THIRD     0x55555555  /* v of this word is 1/3 */


#ifdef __CUDACC__
#define DSA_NOISE_INLINE    static __host__ __device__ __forceinline__
#else
#define DSA_NOISE_INLINE    static DSA_INLINE
#endif


/* nvcc would fuse a product and a sum, which has another rounding */

#ifdef __CUDA_ARCH__
#define dsa_noise_mul(a, b) __fmul_rn(a, b)
#define dsa_noise_add(a, b) __fadd_rn(a, b)
#define dsa_noise_div(a, b) __fdiv_rn(a, b)
#define dsa_noise_bits(x)   __float_as_uint(x)
#define dsa_noise_float(u)  __uint_as_float(u)
#else
#define dsa_noise_mul(a, b) ((a) * (b))
#define dsa_noise_add(a, b) ((a) + (b))
#define dsa_noise_div(a, b) ((a) / (b))
#define dsa_noise_bits(x)   dsa_float_bits(x)
#define dsa_noise_float(u)  dsa_bits_float(u)
#endif


/*
 * Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
 * 3", SC 2011) with counter (position low, high, block, stream).
 */

DSA_NOISE_INLINE void
dsa_noise_words(uint32_t out[4], uint64_t seed, uint64_t position,
    uint32_t block, uint32_t stream)
{
    int       i;
    uint32_t  c0, c1, c2, c3, k0, k1;
    uint64_t  a, b;

    c0 = (uint32_t) position;
    c1 = (uint32_t) (position >> 32);
    c2 = block;
    c3 = stream;
    k0 = (uint32_t) seed;
    k1 = (uint32_t) (seed >> 32);

    for (i = 0; i < DSA_NOISE_ROUNDS; i++) {
        a = (uint64_t) c0 * 0xd2511f53;
        b = (uint64_t) c2 * 0xcd9e8d57;

        c0 = (uint32_t) (b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t) (a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t) b;
        c3 = (uint32_t) a;

        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }

    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}


/*
 * Returns -log(1 - y) + n log 2 for |y| <= 1/3, with a relative error below
 * 2e-7 for n = 0 and y > 0, or n > 0.  -log(1 - y) = y + y^2 q(y), where q is
 * the polynomial that equals it at the Chebyshev nodes of the interval.
 */

DSA_NOISE_INLINE float
dsa_noise_log(float y, float n)
{
    float  q;

    q = 0.124222003f;
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.13748309f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.122887217f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.140558124f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.166733161f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.200072333f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.249999449f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.333332717f);
    q = dsa_noise_add(dsa_noise_mul(q, y), 0.5f);

    y = dsa_noise_add(y, dsa_noise_mul(dsa_noise_mul(y, y), q));

    return dsa_noise_add(dsa_noise_mul(n, 0.693147182f), y);
}


/*
 * Returns e of a word of the id.  1 - v is the same word with all bits
 * inverted, so that it has 24 exact bits where v is near 1.
 */

DSA_NOISE_INLINE float
dsa_noise(uint32_t word, uint64_t seed, uint64_t position, uint32_t id)
{
    float     y, n;
    uint32_t  bits, more[4];
    uint64_t  k;

    if (word < DSA_NOISE_MORE) {
        dsa_noise_words(more, seed, position, id / DSA_NOISE_IDS, 1);

        k = (uint64_t) word << 32 | more[id % DSA_NOISE_IDS];

        return dsa_noise_log(dsa_noise_mul(dsa_noise_add((float) k, 0.5f),
                                           0x1p-64f), 0);
    }

    if (word < DSA_NOISE_THIRD) {
        return dsa_noise_log(dsa_noise_mul(dsa_noise_add((float) word, 0.5f),
                                           0x1p-32f), 0);
    }

    /* 1 - v = 2^-n (1 - y), and 1 - y is in 2/3 .. 4/3 */

    bits = dsa_noise_bits(dsa_noise_mul(dsa_noise_add((float) ~word, 0.5f),
                                        0x1p-32f))
           + (0x3f800000 - 0x3f2aaaab);
    n = (float) (127 - (int32_t) (bits >> 23));
    y = dsa_noise_add(1.0f,
                      -dsa_noise_float((bits & 0x7fffff) + 0x3f2aaaab));

    return dsa_noise_log(y, n);
}


/*
 * The greatest w / e so far, and its id; of equal ones the lowest id wins.
 * Since e is above v, only a few ids need their logarithm: those for which
 * w > most * v.  bound is most in units of a word, less what rounding adds.
 */

typedef struct {
    float       most;
    float       bound;
    uint32_t    id;
} dsa_noise_race_t;


DSA_NOISE_INLINE void
dsa_noise_start(dsa_noise_race_t *r, float most)
{
    r->most = most;
    r->bound = most * (0.999f * 0x1p-32f);
    r->id = UINT32_MAX;
}


/*
 * Enters DSA_NOISE_IDS ids from id on, a multiple of it, with their words;
 * those with weights of 0 cannot win.
 */

DSA_NOISE_INLINE void
dsa_noise_compare(dsa_noise_race_t *r, const float w[DSA_NOISE_IDS],
    const uint32_t word[DSA_NOISE_IDS], uint64_t seed, uint64_t position,
    uint32_t id)
{
    int       i;
    float     x;
    uint32_t  k, hit;

    hit = (w[0] > r->bound * (float) word[0])
          | (w[1] > r->bound * (float) word[1]) << 1
          | (w[2] > r->bound * (float) word[2]) << 2
          | (w[3] > r->bound * (float) word[3]) << 3;

    for (i = 0; hit != 0; i++, hit >>= 1) {
        if ((hit & 1) == 0) {
            continue;
        }

        /* selects, because an index would put the arrays in local memory */

        x = i < 2 ? (i == 0 ? w[0] : w[1]) : (i == 2 ? w[2] : w[3]);
        k = i < 2 ? (i == 0 ? word[0] : word[1])
                  : (i == 2 ? word[2] : word[3]);
        x = dsa_noise_div(x, dsa_noise(k, seed, position, id + i));

        if (x > r->most) {
            dsa_noise_start(r, x);
            r->id = id + i;
        }
    }
}


DSA_NOISE_INLINE void
dsa_noise_enter(dsa_noise_race_t *r, const float w[DSA_NOISE_IDS],
    uint64_t seed, uint64_t position, uint32_t id)
{
    uint32_t  word[DSA_NOISE_IDS];

    if (w[0] == 0 && w[1] == 0 && w[2] == 0 && w[3] == 0) {
        return;
    }

    dsa_noise_words(word, seed, position, id / DSA_NOISE_IDS, 0);
    dsa_noise_compare(r, w, word, seed, position, id);
}


#endif /* _DSA_NOISE_H_INCLUDED_ */
