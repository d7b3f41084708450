
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_INDEXER_H_INCLUDED_
#define _DSA_INDEXER_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * The lightning indexer: which cached tokens a query attends to.
 */


/*
 * Index scores (DeepSeek-V3.2, eq. 1):
 *
 *     score[t, s] = kscale[s] * sum over h of
 *                   w[t, h] * max(0, q[t, h] . k[s])
 *
 * q [rows, heads, dim], w [rows, heads] float32, with every constant and the
 * scale of q folded into w; k [keys, dim]; kscale [keys], or NULL for 1: being
 * positive, scales commute with the ReLU.  score [rows, keys].  scratch:
 * rows * heads * keys floats.
 */
void dsa_index_score(float *score, const float *q, const float *w,
    const float *k, const float *kscale, size_t rows, size_t heads,
    size_t dim, size_t keys, float *scratch);


/*
 * The k greatest of a row of scores that comes in pieces (eq. 2), exact in
 * float32, ties to the lowest position.  It keeps 2k candidates and drops the
 * lesser half when they are full, so its memory does not grow with the
 * context and its time is linear in it.
 *
 * A candidate is one word: the score's bits, mapped so that unsigned order is
 * the order of the numbers, above the complement of the position.  No two are
 * equal.  -0 counts as 0; a NaN counts by its sign as beyond infinity.
 */

typedef struct {
    uint64_t   *candidate;      /* [2 * k], the caller's */
    uint32_t    k;              /* > 0 */
    uint32_t    n;
    uint64_t    least;          /* what is not above it cannot be chosen */
    uint64_t    left;           /* the greatest that was left out, or 0 */
} dsa_topk_t;


void dsa_topk_start(dsa_topk_t *t, uint64_t *candidate, uint32_t k);

/* score [n], of positions first .. first+n-1, above all those before. */
void dsa_topk_add(dsa_topk_t *t, const float *score, size_t n,
    uint32_t first);

/* The chosen positions, rising; returns their number, at most k. */
uint32_t dsa_topk_end(dsa_topk_t *t, int32_t *position);

/*
 * After the end: how far the least chosen score lies above the greatest one
 * that was left out; 0 with nothing left out.
 */
float dsa_topk_gap(const dsa_topk_t *t);


#endif /* _DSA_INDEXER_H_INCLUDED_ */
