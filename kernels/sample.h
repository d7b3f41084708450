
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLE_H_INCLUDED_
#define _DSA_SAMPLE_H_INCLUDED_


#include "kernels/cuda.h"


/*
 * Sampling on the GPU; its CPU twin is dsa_sample() of engine/cpu/sampler.h,
 * which
 * says what is sampled.  Sums are float64, taken in another order than there:
 * where a draw lies within their rounding of the border between two ids, the
 * two may differ.
 */

#define DSA_CUDA_TOP        20          /* most alternatives of a token */


/* As dsa_sampling_t, and what the row adds. */

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
} dsa_cuda_sampling_t;


/* As dsa_sample_t. */

typedef struct {
    uint32_t            token;
    float               logprob;
    uint32_t            n_top;
    uint32_t            top[DSA_CUDA_TOP];
    float               top_logprob[DSA_CUDA_TOP];
} dsa_cuda_sample_t;


/*
 * CUDA.  out [rows] from logits [rows, vocab] float32, ld apart, s [rows];
 * history: tokens of answers, as s says, or NULL where no row has any.  work:
 * dsa_cuda_sample_work() bytes, 16-byte aligned.  vocab is at most 524,288 and
 * ld; rows that are aligned to 16 bytes are read faster.
 */
int dsa_cuda_sample(dsa_cuda_sample_t *out, const dsa_cuda_sampling_t *s,
    const float *logits, size_t ld, uint32_t rows, uint32_t vocab,
    uint32_t allowed, const uint32_t *history, void *work,
    dsa_stream_t stream);
size_t dsa_cuda_sample_work(uint32_t rows, uint32_t vocab);

/*
 * CUDA.  token [rows]: where feed [rows] is not below 0, becomes the token of
 * sample[feed]: an answer goes on before the host has seen it.
 */
int dsa_cuda_feed(int32_t *token, const int32_t *feed,
    const dsa_cuda_sample_t *sample, uint32_t rows, dsa_stream_t stream);


#endif /* _DSA_SAMPLE_H_INCLUDED_ */
