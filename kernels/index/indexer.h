
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_INDEXER_H_INCLUDED_
#define _DSA_INDEXER_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "kernels/core/cuda.h"


/*
 * The lightning indexer, which selects the cached tokens that a query attends
 * to.
 */


/*
 * Index scores (DeepSeek-V3.2, eq. 1):
 *
 *     score[t, s] = kscale[s] * sum over h of
 *                   w[t, h] * max(0, q[t, h] . k[s])
 *
 * q [tokens, heads, dim], w [tokens, heads] float32, with every constant and
 * the scale of q multiplied into w; k [keys, dim]; kscale [keys], or NULL for
 * 1.  Scales are positive, so they may follow the ReLU.  score [tokens, keys].
 * scratch: tokens * heads * keys floats.
 */
void dsa_index_score(float *score, const float *q, const float *w,
    const float *k, const float *kscale, size_t tokens, size_t heads,
    size_t dim, size_t keys, float *scratch);


/*
 * The k greatest of a token's scores, which are added in pieces (eq. 2), exact
 * in float32, ties to the lowest position.  There is room for 2k candidates;
 * when they are full, the lesser half is dropped.  So the memory does not grow
 * with the context, and the time is linear in it.
 *
 * A candidate is one word: above, the bits of the score, mapped so that their
 * unsigned order is the order of the numbers; below, the complement of the
 * position.  No two are equal.  -0 counts as 0; a NaN counts as beyond the
 * infinity of its sign.
 */

typedef struct {
    uint64_t   *candidate;      /* [2 * k], owned by the caller */
    uint32_t    k;              /* > 0 */
    uint32_t    n;
    uint64_t    least;          /* only greater candidates may be chosen */
    uint64_t    left;           /* the greatest that was left out, or 0 */
} dsa_topk_t;


/* Starts a choice of k candidates; candidate has room for 2 * k. */
void dsa_topk_start(dsa_topk_t *t, uint64_t *candidate, uint32_t k);

/* Adds score [n] of positions first .. first+n-1; first rises between calls. */
void dsa_topk_add(dsa_topk_t *t, const float *score, size_t n,
    uint32_t first);

/* Writes the chosen positions, rising; returns their number, at most k. */
uint32_t dsa_topk_end(dsa_topk_t *t, int32_t *position);

/*
 * Returns, after dsa_topk_end(), by how much the least chosen score exceeds
 * the greatest one that was left out; 0 if none was left out.
 */
float dsa_topk_margin(const dsa_topk_t *t);


/*
 * CUDA.  The operands of index scores.  q [rows, heads, 128] bf16 is rotated
 * in its first 64 elements, interleaved or half-split, transformed by
 * Hadamard, rounded to bf16 after each of these two, and quantized to out
 * [rows, heads, 128] e4m3 with one ue8m0 scale for each head.  w_out [rows,
 * heads] = w [rows, heads] * constant * scale, float32.  table, position: as
 * for dsa_cuda_rope_query().
 */
int dsa_cuda_index_query(dsa_e4m3_t *out, float *w_out, const dsa_bf16_t *q,
    const float *w, float constant, const float *table,
    const int32_t *position, int interleaved, uint32_t rows, uint32_t heads,
    dsa_stream_t stream);

/*
 * CUDA.  Index scores of rows of one sequence at positions start ..
 * start+rows-1: score [rows, ld] float32.  ld is at least start + rows rounded
 * up to 64; so many scores of a row may be written.  q [rows, heads, 128]
 * e4m3, w [rows, heads] float32, both 16-byte aligned; heads is a multiple of
 * 8, at most 64.  pages [ceil((start+rows)/64)] page numbers.  Scores of keys
 * after a row's own position are undefined.
 *
 * A score has the same bits in any chunk and in a decode step.  Its error is
 * at most 3e-4 of the row's greatest |score|, and 4e-5 in the root mean
 * square: the tensor cores keep about 13 bits of a sum of FP8 products.
 */
int dsa_cuda_index_score(const dsa_cuda_state_t *state, float *score,
    size_t ld, const dsa_e4m3_t *q, const float *w,
    const dsa_cuda_cache_t *cache, const int32_t *pages, uint32_t start,
    uint32_t rows, uint32_t heads, dsa_stream_t stream);

/*
 * CUDA.  The same for one row each of n sequences.  keys [n] int32: the number
 * of keys of each row, including its own (0: none; at most max_keys).  pages
 * [n, ld_pages]; ld is at least keys rounded up to 64.  max_keys is only a
 * bound: the time depends on keys.  Uses state's counters, so that two calls
 * of this or the next op with one state must not run at the same time.
 */
int dsa_cuda_index_score_decode(const dsa_cuda_state_t *state, float *score,
    size_t ld, const dsa_e4m3_t *q, const float *w,
    const dsa_cuda_cache_t *cache, const int32_t *pages, size_t ld_pages,
    const int32_t *keys, uint32_t n, uint32_t max_keys, uint32_t heads,
    dsa_stream_t stream);

/*
 * CUDA.  The same for several rows of a sequence, which are a group: they
 * follow one another, and each has more keys than the row before it.  The keys
 * of a group are read once, with the page numbers of its first row.
 *
 * left [n] int32, device memory: how many rows the group has from a row on,
 * itself included: 4, 3, 2, 1 for a group of four, which is at most
 * DSA_INDEX_ROWS.  1 or 0: the row is the last one of its group, or a group of
 * its own, as are rows with keys 0.  Only the rows of a call are a group: a
 * call that begins or ends within one computes its part of it.  So the rows of
 * a step may be divided anywhere, and a graph may be launched with other
 * groups than those it was captured with.  left NULL: each row is a group of
 * its own, which is faster if all are.
 *
 * ld is at least the keys of each row rounded up to 64; so many scores of each
 * row of a group may be written as its last row has.  A score has the same
 * bits in any group.
 */
#define DSA_INDEX_ROWS  8

int dsa_cuda_index_score_groups(const dsa_cuda_state_t *state, float *score,
    size_t ld, const dsa_e4m3_t *q, const float *w,
    const dsa_cuda_cache_t *cache, const int32_t *pages, size_t ld_pages,
    const int32_t *keys, const int32_t *left, uint32_t n, uint32_t max_keys,
    uint32_t heads, dsa_stream_t stream);

/*
 * CUDA.  The k greatest of score [rows, ld] among the first keys[row] of a
 * row, exact, ties to the lowest position, as dsa_topk_*.  pick [rows, k]:
 * rising positions, -1 behind the last one; slot [rows, k]: their slots
 * (cuda.h), or NULL; n_pick [rows].  A row with keys <= k picks all of them,
 * and its scores are not read.  The page numbers of row r are at pages +
 * owner[r] * ld_pages, or at pages + r * ld_pages if owner is NULL.  k is a
 * multiple of 8, at most 2048.  keys is at most max_keys, max_keys at most ld
 * and 393,216; ld is a multiple of 4, score 16-byte aligned.
 */
int dsa_cuda_topk(int32_t *pick, int32_t *slot, int32_t *n_pick,
    const float *score, size_t ld, const int32_t *keys,
    const int32_t *pages, size_t ld_pages, const int32_t *owner,
    uint32_t rows, uint32_t k, uint32_t max_keys, dsa_stream_t stream);

/*
 * CUDA.  Exclude position 0 from the selections of rows.  score_first, before
 * dsa_cuda_topk(): sets the first of score [rows, ld] to minus infinity, so
 * that no row with more than k other keys picks it.  pick_first, after it:
 * removes position 0 from pick and its slot from slot [rows, k], where the row
 * has picked all of its keys, and adjusts n_pick [rows].
 */
int dsa_cuda_score_first(float *score, size_t ld, uint32_t rows,
    dsa_stream_t stream);
int dsa_cuda_pick_first(int32_t *pick, int32_t *slot, int32_t *n_pick,
    uint32_t rows, uint32_t k, dsa_stream_t stream);


#endif /* _DSA_INDEXER_H_INCLUDED_ */
