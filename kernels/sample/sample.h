
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLE_H_INCLUDED_
#define _DSA_SAMPLE_H_INCLUDED_


#include "kernels/core/cuda.h"


/*
 * Sampling on the GPU.  Its CPU twin is dsa_sample() of engine/cpu/sampler.h,
 * which documents the function.  Sums are float64 but added in a different
 * order.  The two may choose differently if the distance of a draw from the
 * border between two ids is within the rounding error of the sums.
 */

#define DSA_CUDA_TOP        20          /* most alternatives of a token */


/* A bias is added to the logit of an id, after the penalties. */

typedef struct {
    uint32_t            id;
    float               bias;
} dsa_cuda_bias_t;


/* As dsa_sampling_t, with the parameters of the row. */

typedef struct {
    float               temperature;    /* 0: the most probable token */
    float               top_p;
    float               frequency_penalty;
    float               presence_penalty;
    uint64_t            seed;
    uint64_t            position;       /* of the token to be sampled */
    uint32_t            logprobs;
    uint32_t            top_logprobs;   /* <= DSA_CUDA_TOP */
    uint32_t            history;        /* first of its tokens in history[] */
    uint32_t            n_history;
    uint32_t            mask;           /* 1 + its row of masks[]; 0: each id
                                           below allowed may be sampled */
    uint32_t            bias;           /* first of its biases in biases[] */
    uint32_t            n_bias;         /* each id at most once */
    uint32_t            report;         /* 1: drawn and kept are reported */
} dsa_cuda_sampling_t;


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
    uint32_t            top[DSA_CUDA_TOP];
    float               top_logprob[DSA_CUDA_TOP];
    float               drawn;          /* logprob of dsa_draw_t */
    uint32_t            kept;           /* dsa_cuda_kept_e */
    uint32_t            least;          /* with DSA_CUDA_KEPT_CUT: the bits of
                                           the least weight that is kept */
    uint32_t            ties;           /* ids with this weight that are
                                           kept */
} dsa_cuda_sample_t;


/*
 * CUDA.  out [rows] from logits [rows, vocab] float32, ld apart, and s [rows].
 * Only ids below allowed are sampled.  history: ids that penalties count; s
 * has the part of each row; NULL if no row has any.  masks [., ceil(vocab /
 * 32)]: bit id % 32 of word id / 32 is 1 where the id may be sampled; NULL if
 * no row has one.  biases: those of all rows; NULL if no row has any.  work:
 * dsa_cuda_sample_work() bytes, 16-byte aligned.  vocab is at most 524,288 and
 * at most ld; rows that are 16-byte aligned are read faster.
 */
int dsa_cuda_sample(dsa_cuda_sample_t *out, const dsa_cuda_sampling_t *s,
    const float *logits, size_t ld, uint32_t rows, uint32_t vocab,
    uint32_t allowed, const uint32_t *history, const uint32_t *masks,
    const dsa_cuda_bias_t *biases, void *work, dsa_stream_t stream);
size_t dsa_cuda_sample_work(uint32_t rows, uint32_t vocab);

/*
 * CUDA.  kept [rows, ceil(vocab / 32)]: after dsa_cuda_sample() with the same
 * arguments, bit id % 32 of word id / 32 is 1 where the id was kept, in rows
 * with report whose sample has DSA_CUDA_KEPT_CUT; other rows are not written.
 * kept may be pinned host memory.
 */
int dsa_cuda_sample_kept(uint32_t *kept, const dsa_cuda_sample_t *sample,
    const dsa_cuda_sampling_t *s, const void *work, uint32_t rows,
    uint32_t vocab, uint32_t allowed, dsa_stream_t stream);

/*
 * CUDA.  Sets token [rows] to the token of sample[feed], unless feed [rows] is
 * below 0.  So a step can be started before the host has the samples of the
 * previous step.
 */
int dsa_cuda_feed(int32_t *token, const int32_t *feed,
    const dsa_cuda_sample_t *sample, uint32_t rows, dsa_stream_t stream);


#endif /* _DSA_SAMPLE_H_INCLUDED_ */
