
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "kernels/bf16.h"
#include "kernels/gemm.h"
#include "kernels/indexer.h"


void
dsa_index_score(float *score, const float *q, const float *w, const float *k,
    const float *kscale, size_t rows, size_t heads, size_t dim, size_t keys,
    float *scratch)
{
    float   c;
    size_t  t, h, s;

    dsa_gemm_nt(scratch, keys, q, dim, k, dim, rows * heads, keys, dim, 0);

    for (t = 0; t < rows; t++) {
        memset(score, 0, keys * sizeof(float));

        for (h = 0; h < heads; h++) {
            c = *w++;

            for (s = 0; s < keys; s++) {
                score[s] += c * (scratch[s] > 0 ? scratch[s] : 0);
            }

            scratch += keys;
        }

        if (kscale != NULL) {
            for (s = 0; s < keys; s++) {
                score[s] *= kscale[s];
            }
        }

        score += keys;
    }
}


static inline uint64_t
dsa_topk_candidate(float score, uint32_t position)
{
    uint32_t  u;

    u = dsa_float_bits(score + 0.0f);       /* -0 + 0 = 0 */
    u ^= (u >> 31) != 0 ? 0xffffffff : 0x80000000;

    return (uint64_t) u << 32 | (uint32_t) ~position;
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
 * The k-th greatest candidate, byte by byte from the top: counts of the bytes
 * among those that agree with what is known so far.
 */

static uint64_t
dsa_topk_threshold(const dsa_topk_t *t)
{
    int       shift;
    uint32_t  i, byte, rank, count[256];
    uint64_t  known, mask;

    known = 0;
    mask = 0;
    rank = t->k;

    for (shift = 56; shift >= 0; shift -= 8) {
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

        if (count[byte] == 1) {
            break;
        }
    }

    for (i = 0; (t->candidate[i] & mask) != known; i++) { /* void */ }

    return t->candidate[i];
}


/* Keeps the k greatest, in the order in which they came. */

static void
dsa_topk_drop(dsa_topk_t *t)
{
    uint32_t  i, n;
    uint64_t  least;

    least = dsa_topk_threshold(t);

    for (i = 0, n = 0; i < t->n; i++) {
        if (t->candidate[i] >= least) {
            t->candidate[n++] = t->candidate[i];

        } else if (t->candidate[i] > t->left) {
            t->left = t->candidate[i];
        }
    }

    t->n = n;
    t->least = least;
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


void
dsa_topk_add(dsa_topk_t *t, const float *score, size_t n, uint32_t first)
{
    size_t    i;
    uint64_t  c;

    for (i = 0; i < n; i++) {
        c = dsa_topk_candidate(score[i], first + (uint32_t) i);

        if (c > t->least && t->n == 2 * t->k) {
            dsa_topk_drop(t);
        }

        if (c > t->least) {
            t->candidate[t->n++] = c;

        } else if (c > t->left) {
            t->left = c;
        }
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
dsa_topk_gap(const dsa_topk_t *t)
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
