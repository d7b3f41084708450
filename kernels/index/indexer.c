
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "kernels/core/bf16.h"
#include "kernels/core/simd.h"
#include "kernels/gemm/gemm.h"
#include "indexer.h"


/* Computes score [keys] of a token from dots [heads, keys]. */

DSA_CLONES static void
dsa_index_sum(float *score, const float *dots, const float *w,
    const float *kscale, size_t heads, size_t keys)
{
    float   c;
    size_t  h, s;

    memset(score, 0, keys * sizeof(float));

    for (h = 0; h < heads; h++) {
        c = w[h];

        for (s = 0; s < keys; s++) {
            score[s] += c * (dots[s] > 0 ? dots[s] : 0);
        }

        dots += keys;
    }

    if (kscale != NULL) {
        for (s = 0; s < keys; s++) {
            score[s] *= kscale[s];
        }
    }
}


void
dsa_index_score(float *score, const float *q, const float *w, const float *k,
    const float *kscale, size_t tokens, size_t heads, size_t dim, size_t keys,
    float *scratch)
{
    size_t  t;

    dsa_gemm_nt(scratch, keys, q, dim, k, dim, tokens * heads, keys, dim, 0);

    for (t = 0; t < tokens; t++) {
        dsa_index_sum(score + t * keys, scratch + t * heads * keys,
                      w + t * heads, kscale, heads, keys);
    }
}


/*
 * Returns the bits of a score, mapped so that their unsigned order is that of
 * the numbers.
 */

static inline uint32_t
dsa_topk_order(float score)
{
    uint32_t  u;

    u = dsa_float_bits(score + 0.0f);       /* -0 + 0 = 0 */

    return u ^ ((uint32_t) ((int32_t) u >> 31) | 0x80000000);
}


/* Scores that dsa_topk_add() compares together. */
#define DSA_TOPK_TOGETHER  16


static inline uint64_t
dsa_topk_candidate(uint32_t order, uint32_t position)
{
    return (uint64_t) order << 32 | (uint32_t) ~position;
}


static inline float
dsa_topk_score(uint64_t candidate)
{
    uint32_t  u;

    u = (uint32_t) (candidate >> 32);
    u ^= (u >> 31) != 0 ? 0x80000000 : 0xffffffff;

    return dsa_bits_float(u);
}


/*
 * Finds the k-th greatest candidate by a radix search, 8 bits at a time, from
 * the first bit in which any two candidates differ: counts the values of these
 * bits among the candidates that have the bits found so far.
 */

static uint64_t
dsa_topk_threshold(const dsa_topk_t *t)
{
    int       shift;
    uint32_t  i, byte, rank, count[256];
    uint64_t  all, any, known, mask;

    all = t->candidate[0];
    any = t->candidate[0];

    for (i = 1; i < t->n; i++) {
        all &= t->candidate[i];
        any |= t->candidate[i];
    }

    /* candidates are different, because positions are */

    shift = 64 - __builtin_clzll(all ^ any);
    mask = shift < 64 ? ~(uint64_t) 0 << shift : 0;
    known = all & mask;
    rank = t->k;

    do {
        shift = shift > 8 ? shift - 8 : 0;
        memset(count, 0, sizeof(count));

        for (i = 0; i < t->n; i++) {
            if ((t->candidate[i] & mask) == known) {
                count[t->candidate[i] >> shift & 0xff]++;
            }
        }

        byte = 255;

        while (count[byte] < rank) {
            rank -= count[byte--];
        }

        known |= (uint64_t) byte << shift;
        mask |= (uint64_t) 0xff << shift;

    } while (count[byte] != 1);

    for (i = 0; (t->candidate[i] & mask) != known; i++) { /* void */ }

    return t->candidate[i];
}


/* Keeps the k greatest candidates, in the order in which they were added. */

static void
dsa_topk_drop(dsa_topk_t *t)
{
    uint32_t  i, n;
    uint64_t  c, least, left, *candidate;

    least = dsa_topk_threshold(t);
    left = t->left;
    candidate = t->candidate;

    /*
     * No branches on values, because they would be mispredicted half of the
     * time.
     */

    for (i = 0, n = 0; i < t->n; i++) {
        c = candidate[i];
        candidate[n] = c;
        n += c >= least;
        c = c >= least ? 0 : c;
        left = c > left ? c : left;
    }

    t->n = n;
    t->least = least;
    t->left = left;
}


void
dsa_topk_start(dsa_topk_t *t, uint64_t *candidate, uint32_t k)
{
    t->candidate = candidate;
    t->k = k;
    t->n = 0;
    t->least = 0;
    t->left = 0;
}


static inline void
dsa_topk_add_one(dsa_topk_t *t, uint64_t c)
{
    if (c > t->least && t->n == 2 * t->k) {
        dsa_topk_drop(t);
    }

    if (c > t->least) {
        t->candidate[t->n++] = c;

    } else if (c > t->left) {
        t->left = c;
    }
}


/*
 * The same for DSA_TOPK_TOGETHER scores, if there is room for all of them.  No
 * branch depends on a score: each candidate is stored, but the next one
 * overwrites it unless it is above t->least.
 */

static inline void
dsa_topk_add_some(dsa_topk_t *t, const uint32_t *order, uint32_t first)
{
    uint32_t  i, n;
    uint64_t  c, least, left, *candidate;

    n = t->n;
    least = t->least;
    left = t->left;
    candidate = t->candidate;

    for (i = 0; i < DSA_TOPK_TOGETHER; i++) {
        c = dsa_topk_candidate(order[i], first + i);
        candidate[n] = c;
        n += c > least;
        c = c > least ? 0 : c;
        left = c > left ? c : left;
    }

    t->n = n;
    t->left = left;
}


/*
 * Most scores of a long context are not above t->least.  If the greatest of
 * several scores is not, none of them is.  Positions rise, so a candidate with
 * an equal score is less as well.
 */

DSA_CLONES void
dsa_topk_add(dsa_topk_t *t, const float *score, size_t n, uint32_t first)
{
    size_t    i, j;
    uint32_t  max, order[DSA_TOPK_TOGETHER];
    uint64_t  c;

    for (i = 0; i + DSA_TOPK_TOGETHER <= n; i += DSA_TOPK_TOGETHER) {
        for (j = 0; j < DSA_TOPK_TOGETHER; j++) {
            order[j] = dsa_topk_order(score[i + j]);
        }

        max = 0;

        for (j = 0; j < DSA_TOPK_TOGETHER; j++) {
            max = order[j] > max ? order[j] : max;
        }

        if (max <= t->least >> 32) {
            c = dsa_topk_candidate(max, first + (uint32_t) i);
            t->left = c > t->left ? c : t->left;
            continue;
        }

        if (t->n + DSA_TOPK_TOGETHER <= 2 * t->k) {
            dsa_topk_add_some(t, order, first + (uint32_t) i);
            continue;
        }

        for (j = 0; j < DSA_TOPK_TOGETHER; j++) {
            dsa_topk_add_one(t, dsa_topk_candidate(order[j], first
                                                   + (uint32_t) (i + j)));
        }
    }

    for ( /* void */ ; i < n; i++) {
        dsa_topk_add_one(t, dsa_topk_candidate(dsa_topk_order(score[i]),
                                               first + (uint32_t) i));
    }
}


uint32_t
dsa_topk_end(dsa_topk_t *t, int32_t *position)
{
    uint32_t  i;

    if (t->n > t->k) {
        dsa_topk_drop(t);
    }

    for (i = 0; i < t->n; i++) {
        position[i] = (int32_t) ~(uint32_t) t->candidate[i];
    }

    return t->n;
}


float
dsa_topk_margin(const dsa_topk_t *t)
{
    uint32_t  i;
    uint64_t  least;

    if (t->left == 0) {
        return 0;
    }

    least = t->candidate[0];

    for (i = 1; i < t->n; i++) {
        least = t->candidate[i] < least ? t->candidate[i] : least;
    }

    return dsa_topk_score(least) - dsa_topk_score(t->left);
}
