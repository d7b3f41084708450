
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLE_H_INCLUDED_
#define _DSA_SAMPLE_H_INCLUDED_


#include "base/sampling.h"
#include "kernels/core/cuda.h"


/*
 * Samples one token from logits [vocab] float32: an id of
 * softmax((logits - penalties + bias) / temperature), restricted to the
 * nucleus, the smallest set of most probable ids whose probabilities reach
 * top_p (among equally probable ids the lower one comes first).  A NaN logit
 * counts as minus infinity.
 *
 * allowed: 1 to vocab.  Ids from there on are never sampled, because the
 *     matrix of the head may have more rows than the tokenizer has ids.
 * mask: NULL, or as in base/mask.h.  The logit of an id that the mask excludes
 *     counts as minus infinity before temperature, top_p and penalties.  When
 *     all ids that the mask permits have logits of minus infinity, the lowest
 *     of them is sampled.  The mask must permit at least one id below allowed.
 *     Reported logprobs are those of the model's distribution over all allowed
 *     ids, without mask and bias.
 * biases: NULL, or added to the logits beside the penalties.  As documented by
 *     OpenAI, a bias of -100 bans an id: its logit counts as minus infinity.
 *     If permitted ids have a bias of 100, the logits of all others do.  Ids
 *     from allowed on have no effect.
 * history: the n_history answer tokens so far, for the penalties.
 * position: of the token to be sampled.  The noise is a function of (seed,
 *     position, id) alone (noise.h), so that another replica continues a
 *     sequence with the same tokens, and a draft that is sampled from nearly
 *     the same logits is mostly the same token.
 * scratch: vocab floats.
 */
void dsa_sample(dsa_sample_t *out, const dsa_sampling_t *s,
    const dsa_biases_t *biases, const float *logits, uint32_t vocab,
    uint32_t allowed, const uint32_t *mask, const uint32_t *history,
    uint32_t n_history, uint64_t position, float *scratch);

/*
 * The same, and reports the ids that the token was drawn from.  kept: NULL, or
 * [dsa_mask_words(vocab)], a bitmap as mask is.  It is written unless
 * draw->n_kept is DSA_KEPT_ALL.
 */
void dsa_sample_draw(dsa_sample_t *out, dsa_draw_t *draw, uint32_t *kept,
    const dsa_sampling_t *s, const dsa_biases_t *biases, const float *logits,
    uint32_t vocab, uint32_t allowed, const uint32_t *mask,
    const uint32_t *history, uint32_t n_history, uint64_t position,
    float *scratch);


/*
 * Sampling on the GPU, as dsa_sample() documents it.  Weights and noise have
 * the same bits.  Sums are float64 but added in a different order, so the two
 * may keep different ids if top_p is within the rounding error of the sums.
 */


/* A row of logits: its sampling, and its parts of the arrays of all rows. */

typedef struct {
    dsa_sampling_t      sampling;
    uint64_t            position;       /* of the token to be sampled */
    uint32_t            history;        /* first of its tokens in history[] */
    uint32_t            n_history;      /* 0: nothing is penalized */
    uint32_t            mask;           /* 1 + its row of masks[]; 0: each id
                                           below allowed may be sampled */
    uint32_t            bias;           /* first of its biases in biases[] */
    uint32_t            n_bias;         /* each id at most once */
    uint32_t            report;         /* 1: drawn and kept are reported */
} dsa_cuda_sample_row_t;


/* The set of ids that a token was drawn from. */

typedef enum {
    DSA_CUDA_KEPT_ONE = 0,              /* only one id */
    DSA_CUDA_KEPT_ALL,                  /* all ids that the mask permits */
    DSA_CUDA_KEPT_CUT                   /* those that top_p keeps */
} dsa_cuda_kept_e;


/* As dsa_sample_t. */

typedef struct {
    uint32_t            token;
    float               logprob;
    uint32_t            n_top;
    uint32_t            top[DSA_SAMPLE_MAX_TOP];
    float               top_logprob[DSA_SAMPLE_MAX_TOP];
    float               drawn;          /* logprob of dsa_draw_t */
    uint32_t            kept;           /* dsa_cuda_kept_e */
    uint32_t            least;          /* with DSA_CUDA_KEPT_CUT: the bits of
                                           the least weight that is kept */
    uint32_t            ties;           /* ids with this weight that are
                                           kept */
} dsa_cuda_sample_t;


/*
 * CUDA.  out [rows] from logits [rows, vocab] float32, ld apart, and r [rows].
 * Only ids below allowed are sampled.  history: ids that penalties count; r
 * has the part of each row; NULL if no row has any.  masks [., ceil(vocab /
 * 32)]: bit id % 32 of word id / 32 is 1 where the id may be sampled; NULL if
 * no row has one.  biases: those of all rows; NULL if no row has any.  work:
 * dsa_cuda_sample_work() bytes, 16-byte aligned.  vocab is at most 524,288 and
 * at most ld; rows that are 16-byte aligned are read faster.
 */
int dsa_cuda_sample(dsa_cuda_sample_t *out, const dsa_cuda_sample_row_t *r,
    const float *logits, size_t ld, uint32_t rows, uint32_t vocab,
    uint32_t allowed, const uint32_t *history, const uint32_t *masks,
    const dsa_bias_t *biases, void *work, dsa_stream_t stream);
size_t dsa_cuda_sample_work(uint32_t rows, uint32_t vocab);

/*
 * CUDA.  kept [rows, ceil(vocab / 32)]: after dsa_cuda_sample() with the same
 * arguments, bit id % 32 of word id / 32 is 1 where the id was kept, in rows
 * with report whose sample has DSA_CUDA_KEPT_CUT; other rows are not written.
 * kept may be pinned host memory.
 */
int dsa_cuda_sample_kept(uint32_t *kept, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sample_row_t *r, const void *work, uint32_t rows,
    uint32_t vocab, uint32_t allowed, dsa_stream_t stream);

/*
 * CUDA.  Sets token [rows] to the token of sample[feed], unless feed [rows] is
 * below 0.  So a step can be started before the host has the samples of the
 * previous step.  Where such a token is row last[i] of sample i of the step,
 * last [samples], and r[i] has a history, the token becomes its last id.
 */
int dsa_cuda_feed(int32_t *token, const int32_t *feed,
    const dsa_cuda_sample_t *sample, uint32_t rows, uint32_t *history,
    const dsa_cuda_sample_row_t *r, const int32_t *last, uint32_t samples,
    dsa_stream_t stream);


#endif /* _DSA_SAMPLE_H_INCLUDED_ */
