
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_H_INCLUDED_
#define _DSA_ATTENTION_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "kernels/core/cuda.h"


/*
 * Multi-head latent attention over selected tokens.  There are two ways to
 * compute the same function:
 *
 *     o[t, h] = sum over s in S_t of p[t, h, s] v[s, h]
 *     p[t, h, .] = softmax over S_t of scale * (q_nope[t, h] . k_nope[s, h]
 *                                               + q_rope[t, h] . k_rope[s])
 *
 * MHA prefill: k_nope[s, h] = W_UK[h] c[s] and v[s, h] = W_UV[h] c[s] are
 * computed once for all tokens t; 320 multiply-adds for a head and pair in the
 * published dimensions.
 *
 * Absorbed MQA: q_nope . (W_UK c) = (W_UK^T q_nope) . c, so scores are
 * computed from the latent c itself.  The result is u = sum of p c, and the
 * caller computes o = W_UV u.  This takes 1088 multiply-adds, but only for
 * selected pairs.
 *
 * Scores and softmax are float32; with bf16 = 1 the normalized p are rounded
 * before they are multiplied with the values, as in the published code.  The
 * result is not rounded here.
 */

typedef struct {
    size_t      heads;
    size_t      nope;           /* qk_nope_head_dim */
    size_t      rope;           /* qk_rope_head_dim */
    size_t      v;              /* v_head_dim */
    size_t      latent;         /* kv_lora_rank */
    float       scale;
} dsa_attention_t;


/*
 * Computes MHA prefill for one head.  q [tokens, nope + rope], ld_q apart; kv
 * [keys, nope + v], k_rope [keys, rope] of positions 0 .. keys-1; token t
 * selects the n_selected[t] > 0 rising positions from selected[t *
 * ld_selected] on, all below keys.  out [tokens, v], ld_out apart.  scratch:
 * tokens * keys floats.  It is the reference of the CUDA version; the CPU
 * backend computes absorbed MQA only.
 */
void dsa_attention_mha(float *out, size_t ld_out, const float *q,
    size_t ld_q, const float *kv, const float *k_rope, size_t tokens,
    size_t keys, const int32_t *selected, size_t ld_selected,
    const uint32_t *n_selected, const dsa_attention_t *a, int bf16,
    float *scratch);

/*
 * Computes absorbed MQA for one token.  q_latent [heads, latent] = W_UK^T
 * q_nope; q_rope the token's rope parts, ld_q apart; c [keys, latent], k_rope
 * [keys, rope] of the keys > 0 selected tokens.  out [heads, latent].
 * scratch: heads * keys floats.
 */
void dsa_attention_mqa(float *out, const float *q_latent,
    const float *q_rope, size_t ld_q, const float *c, const float *k_rope,
    size_t keys, const dsa_attention_t *a, int bf16, float *scratch);

/*
 * Computes absorbed MQA for several tokens over all keys [0 .. keys-1], of
 * which token t selects as in dsa_attention_mha().  q_latent and out [tokens,
 * heads, latent]; q_rope ld_q apart from head to head, also from token to
 * token.  scratch: tokens * heads * keys floats.  The bits of a token are those
 * that dsa_attention_mqa() computes from the keys that it selects.
 */
void dsa_attention_mqa_all(float *out, const float *q_latent,
    const float *q_rope, size_t ld_q, const float *c, const float *k_rope,
    size_t tokens, size_t keys, const int32_t *selected, size_t ld_selected,
    const uint32_t *n_selected, const dsa_attention_t *a, int bf16,
    float *scratch);


/*
 * CUDA.  Absorbed MQA over the paged FP8 cache for rows of any sequences: for
 * decode and for small chunks.  q [rows, heads, 576] bf16: W_UK^T q_nope, then
 * q_rope.  slot [rows, ld_slot] int32 (cuda.h), of which the first n_slot
 * [rows] are used; -1 is skipped.  out [rows, heads, 512] bf16; a row without
 * a key gets zeros.  heads: any number from 1 to 128; 8, 16, 32, 64 and 128
 * need no padding.  n_slot is at most max_slots, max_slots at most ld_slot;
 * slots between n_slot and max_slots may be read.  scale > 0 multiplies the
 * dot products.  Latents are widened to f16, which is exact if their scales
 * are powers of two from 2^-15 to 2^7; queries may reach 2^22.  work:
 * dsa_cuda_attention_work() bytes, 16-byte aligned; they also suffice for
 * fewer rows and slots.
 */
int dsa_cuda_attention_decode(const dsa_cuda_state_t *state,
    dsa_bf16_t *out, const dsa_bf16_t *q, const dsa_cuda_cache_t *cache,
    const int32_t *slot, size_t ld_slot, const int32_t *n_slot, uint32_t rows,
    uint32_t heads, uint32_t max_slots, float scale, void *work,
    dsa_stream_t stream);
size_t dsa_cuda_attention_work(const dsa_cuda_state_t *state, uint32_t rows,
    uint32_t heads, uint32_t max_slots);

/*
 * CUDA.  Absorbed MQA over all positions of the paged cache, FP8 or BF16, for
 * rows of any sequences: row r attends to the positions hidden .. keys[r]-1 of
 * the sequence with the block table pages [rows, ld_pages]; hidden is 0 or 1,
 * keys at most max_keys.  ld_pages 0: all rows are of one sequence, at
 * neighbouring positions.  left [rows], or NULL: how many rows of the same
 * sequence, at neighbouring positions, follow from the row on, itself
 * included.  Rows of one sequence read their keys together.  q, out, heads,
 * scale and the ranges of FP8 scales and of queries are those of
 * dsa_cuda_attention_decode(); a row without a key gets zeros.  BF16 latents
 * that are not attended, in pages that are, must be finite.  work:
 * dsa_cuda_attention_dense_work() bytes, 16-byte aligned, which also suffice
 * for fewer rows and keys.  Its result is at most 256 MB, unless a single row
 * needs more.
 *
 * Weights are rounded to f16 with FP8 latents and to bf16 with BF16 latents,
 * relative to a reference, not normalized; sums are float32.  The bits of a row
 * depend on its query, its keys and their number only, and on whether there are
 * more than 32 heads.
 */
int dsa_cuda_attention_dense(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_cuda_cache_t *cache, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, const int32_t *left, uint32_t rows,
    uint32_t heads, uint32_t hidden, uint32_t max_keys, float scale,
    void *work, dsa_stream_t stream);
size_t dsa_cuda_attention_dense_work(uint32_t rows, uint32_t heads,
    uint32_t max_keys);

/*
 * CUDA.  Absorbed MQA for many rows of one sequence, over its latents in bf16:
 * kv [keys, 576] as dsa_cuda_cache_latents() writes them, pick [rows, ld_pick]
 * positions, of which the first n_pick [rows] are used.  Positions below 0 or
 * not below keys are skipped.  Otherwise as dsa_cuda_attention_decode().
 */
int dsa_cuda_attention_prefill(const dsa_cuda_state_t *state,
    dsa_bf16_t *out, const dsa_bf16_t *q, const dsa_bf16_t *kv, uint32_t keys,
    const int32_t *pick, size_t ld_pick, const int32_t *n_pick, uint32_t rows,
    uint32_t heads, float scale, dsa_stream_t stream);

/*
 * CUDA.  The kernels of MHA prefill are compiled for a list of shapes, which
 * are the sizes of a head.  dsa_cuda_heads_shape() returns the n-th of the
 * list, NULL beyond its end.  dsa_cuda_heads_find() returns the shape with
 * these sizes, NULL if there are no kernels for them.
 */

typedef struct dsa_heads_kernels_s  dsa_heads_kernels_t;

typedef struct {
    uint32_t                    nope;
    uint32_t                    v;
    const dsa_heads_kernels_t  *kernels;
} dsa_cuda_heads_shape_t;

const dsa_cuda_heads_shape_t *dsa_cuda_heads_shape(size_t n);
const dsa_cuda_heads_shape_t *dsa_cuda_heads_find(uint32_t nope, uint32_t v);

/*
 * CUDA.  MHA prefill for many rows of one sequence at positions start ..
 * start+rows-1, causal, over keys 0 .. start+rows-1.  q [rows, heads, nope +
 * 64] bf16; kv [keys, heads, nope + v] bf16, nope then value; k_rope: the last
 * 64 of latents [keys, 576] bf16.  mask [rows, ld_mask]: bits of the selected
 * positions (bit p % 32 of word p / 32), or NULL for every position up to a
 * row's own.  out [rows, heads, v] bf16; a row without a key gets zeros.
 * scale > 0.
 *
 * Exponentials, relative to the greatest score of the row so far, are rounded
 * to bf16 and multiplied by the values; the sum is divided by the float32 sum
 * of the unrounded exponentials.  The published code rounds after the
 * division, so the results differ, but the rounding error is as large.
 *
 * The bits of a row do not depend on the chunk in which it is computed, nor on
 * the rows and heads beside it.  Uses state's counters, so that two calls with
 * one state must not run at the same time.
 */
int dsa_cuda_attention_heads(const dsa_cuda_state_t *state,
    const dsa_cuda_heads_shape_t *shape, dsa_bf16_t *out, const dsa_bf16_t *q,
    const dsa_bf16_t *kv, const dsa_bf16_t *latents, const uint32_t *mask,
    size_t ld_mask, uint32_t start, uint32_t rows, uint32_t heads, float scale,
    dsa_stream_t stream);

/*
 * CUDA.  A part of MHA prefill over all positions, for prompts whose keys and
 * values are too much memory to exist at the same time.  kv and latents have
 * keys first .. first+keys-1, and the rows from first on attend to those up to
 * their own; earlier rows are left out.  first is 0 or the end of the part
 * before, and the parts are computed in order.  A row's own key is in its last
 * part, which writes out; until then sum [rows, heads, v] and norm [rows,
 * heads, DSA_CUDA_HEADS_NORM], float32, 8-byte aligned, have its sums so far.
 * Rows in a part that is not their last one attend to all its keys, of which
 * there are a multiple of 128.  The bits of a row do not depend on the parts,
 * nor on the chunk in which it is computed.  Otherwise as
 * dsa_cuda_attention_heads().
 */
#define DSA_CUDA_HEADS_NORM  8

int dsa_cuda_attention_heads_part(const dsa_cuda_state_t *state,
    const dsa_cuda_heads_shape_t *shape, dsa_bf16_t *out, float *sum,
    float *norm, const dsa_bf16_t *q, const dsa_bf16_t *kv,
    const dsa_bf16_t *latents, uint32_t first, uint32_t keys, uint32_t start,
    uint32_t rows, uint32_t heads, float scale, dsa_stream_t stream);

/*
 * CUDA.  Makes mask [rows, ld_mask] from pick [rows, ld_pick], of which the
 * first n_pick are used, in any order.  Positions below 0 or beyond the mask
 * are skipped.  All ld_mask words of a row are written.  ld_pick is a multiple
 * of 4, pick 16-byte aligned.
 */
int dsa_cuda_attention_mask(uint32_t *mask, size_t ld_mask,
    const int32_t *pick, size_t ld_pick, const int32_t *n_pick,
    uint32_t rows, dsa_stream_t stream);


#endif /* _DSA_ATTENTION_H_INCLUDED_ */
