
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CACHE_H_INCLUDED_
#define _DSA_CACHE_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "kernels/core/cuda.h"


/*
 * The cache in pages of 64 tokens.  A page is one block of memory for all
 * layers.  A layer's part has the latents of the tokens and, if the layer has
 * an indexer of its own, their index keys:
 *
 *              latent, of a token               index keys, of a page
 *     served   latent e4m3 values,              64 tokens' e4m3 values, then
 *              a float32 scale for each 128,    64 float32 scales
 *              rope BF16 values
 *     exact    latent, rope float32 values      64 tokens' float32 values
 *
 * In the published dimensions, served takes 656 and 132 bytes for a token.
 * Layers that attend to all positions may have latents in BF16 instead, 1,152
 * bytes, rope values last.
 * Scales are powers of two, even if those of the weights are not, because
 * readers multiply by them in BF16, which is exact only for powers of two.
 * The rope part is not quantized, because quantizing it would cost the most
 * accuracy.
 *
 * pages is the block table of a sequence: the token at position p is entry
 * p % 64 of page pages[p / 64].
 */

#define DSA_CACHE_TOKENS  64
#define DSA_CACHE_ALIGN   128           /* bytes */
#define DSA_CACHE_LAYERS  1025          /* most layers */


typedef enum {
    DSA_CACHE_EXACT = 0,
    DSA_CACHE_FP8,              /* served */
    DSA_CACHE_BF16              /* served, with latents in BF16 */
} dsa_cache_format_e;


typedef struct {
    uint32_t    format;         /* dsa_cache_format_e */
    uint32_t    latent;         /* elements of a latent */
    uint32_t    rope;           /* of its rope part */
    uint32_t    index;          /* of an index key */
    uint64_t    token;          /* bytes of a latent record */
    uint64_t    keys;           /* offset of the index keys in a layer's
                                   part */
    uint64_t    hidden;         /* offset of the kept hidden state; 0: none */
    uint64_t    page;           /* bytes of a page */
    uint64_t    layer[DSA_CACHE_LAYERS];    /* offset of a layer's part in a
                                               page */
} dsa_cache_t;


/*
 * Fills cache from the format (dsa_cache_format_e: index keys are FP8 in both
 * served ones), the elements of a token and the number of layers, at most
 * DSA_CACHE_LAYERS.  indexed [layers]: 1 if a layer has index keys; NULL: all
 * layers have.
 */
void dsa_cache_layout(dsa_cache_t *cache, uint32_t format, uint32_t layers,
    const uint8_t *indexed, uint32_t latent, uint32_t rope, uint32_t index);

/*
 * Adds room for the hidden state of one token, of so many elements, to the end
 * of a page: a uint32_t, the token's position plus 1, and the elements, BF16
 * in served precision and otherwise float32.  A page stays a multiple of 128
 * bytes, which GPUs expect.
 */
void dsa_cache_layout_hidden(dsa_cache_t *cache, uint32_t elements);

/*
 * Stores n tokens from position start on: c [n, latent + rope], ld_c elements
 * from a token to the next, and key [n, index], all float32.  key is NULL for
 * a layer without index keys.  base is the address of page 0.
 */
void dsa_cache_write(const dsa_cache_t *cache, void *base, uint32_t layer,
    const uint32_t *pages, uint32_t start, size_t n, const float *c,
    size_t ld_c, const float *key);

/*
 * Reads the latents c [n, latent] and k_rope [n, rope], float32, of the tokens
 * at position[0 .. n-1], or at first .. first+n-1 if position is NULL.
 */
void dsa_cache_latents(float *c, float *k_rope, const dsa_cache_t *cache,
    const void *base, uint32_t layer, const uint32_t *pages,
    const int32_t *position, uint32_t first, size_t n);

/*
 * Reads the index keys of positions first .. first+n-1: key [n, index]
 * float32, not yet multiplied by scale [n], which is 1 in exact precision.
 */
void dsa_cache_keys(float *key, float *scale, const dsa_cache_t *cache,
    const void *base, uint32_t layer, const uint32_t *pages, uint32_t first,
    size_t n);


/*
 * CUDA.  Writes the cache entries of rows tokens at slot [rows]; nothing is
 * written for -1.  kv [rows, 576] bf16, ld_kv apart: its first 512 elements
 * are RMS-normed with kv_norm [512] float32, the other 64 rotated,
 * interleaved.  k [rows, 128] bf16, ld_k apart: LayerNorm with k_norm and
 * k_bias [128], then its first 64 elements rotated, interleaved or half-split,
 * then Hadamard.  A layer without index keys has k NULL, as each one with BF16
 * latents; then k_norm and k_bias are not read.  kv_eps and k_eps are the
 * epsilons of the two norms; each step is rounded to bf16.  BF16 latents that
 * are not finite are stored as 0: see dsa_cuda_attention_dense().  table,
 * position: as
 * for dsa_cuda_rope_query().  ld_kv and ld_k are multiples of 8; kv, kv_norm,
 * k and table are 16-byte aligned.
 */
int dsa_cuda_cache_write(const dsa_cuda_cache_t *cache, const int32_t *slot,
    const dsa_bf16_t *kv, size_t ld_kv, const float *kv_norm, float kv_eps,
    const dsa_bf16_t *k, size_t ld_k, const float *k_norm,
    const float *k_bias, float k_eps, const float *table,
    const int32_t *position, int interleaved, uint32_t rows,
    dsa_stream_t stream);

/*
 * CUDA.  out [n, 576] bf16, latent and rope part, of positions 0 .. n-1 of a
 * sequence with pages [ceil(n / 64)].  Exact: BF16 latents are copied, and the
 * scales of FP8 latents are powers of two.
 */
int dsa_cuda_cache_latents(dsa_bf16_t *out, const dsa_cuda_cache_t *cache,
    const int32_t *pages, uint32_t n, dsa_stream_t stream);


#endif /* _DSA_CACHE_H_INCLUDED_ */
