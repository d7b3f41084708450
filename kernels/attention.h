
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_H_INCLUDED_
#define _DSA_ATTENTION_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * Multi-head latent attention over selected tokens, in two forms of one
 * function:
 *
 *     o[t, h] = sum over s in S_t of p[t, h, s] v[s, h]
 *     p[t, h, .] = softmax over S_t of scale * (q_nope[t, h] . k_nope[s, h]
 *                                               + q_rope[t, h] . k_rope[s])
 *
 * multi-head: k_nope[s, h] = W_UK[h] c[s] and v[s, h] = W_UV[h] c[s] are
 * computed once for all rows; 320 multiply-adds a head and pair in the
 * published dimensions.
 *
 * absorbed: q_nope . (W_UK c) = (W_UK^T q_nope) . c, so scores are taken on
 * the latent c itself, u = sum of p c, and o = W_UV u follows outside; 1088
 * multiply-adds, but only for selected pairs.
 *
 * Scores and softmax are float32; with bf16 the normalized p are rounded
 * before they weigh the values, as in the published code.  Out is not rounded
 * here.
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
 * Multi-head form, one head.  q [rows, nope + rope] ld_q apart; kv [keys,
 * nope + v], k_rope [keys, rope] of positions 0 .. keys-1; row t selects
 * the n_pick[t] > 0 rising positions from pick[t * ld_pick] on, all below
 * keys.  out [rows, v], ld_out apart.  scratch: rows * keys floats.
 */
void dsa_attention_head(float *out, size_t ld_out, const float *q,
    size_t ld_q, const float *kv, const float *k_rope, size_t rows,
    size_t keys, const int32_t *pick, size_t ld_pick, const uint32_t *n_pick,
    const dsa_attention_t *a, int bf16, float *scratch);

/*
 * Absorbed form, one row.  q_latent [heads, latent] = W_UK^T q_nope; q_rope
 * the row's rope parts, ld_q apart; c [keys, latent], k_rope [keys, rope] of
 * the keys > 0 selected tokens.  out [heads, latent].  scratch: heads *
 * keys floats.
 */
void dsa_attention_absorbed(float *out, const float *q_latent,
    const float *q_rope, size_t ld_q, const float *c, const float *k_rope,
    size_t keys, const dsa_attention_t *a, int bf16, float *scratch);


#endif /* _DSA_ATTENTION_H_INCLUDED_ */
