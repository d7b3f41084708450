
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_BITS_H_INCLUDED_
#define _DSA_BENCH_BITS_H_INCLUDED_


#include "engine/backend.h"


/*
 * dsa bench bits: on what the bits of a token depend on a GPU, and what it
 * would cost to remove each dependence.  Files:
 *
 *     bits         options, the model, times of steps
 *     bits_steps   the same tokens computed in different steps
 *     bits_ops     ops with and without a dependence
 */

#define DSA_BITS_PROBES     16          /* prompts */
#define DSA_BITS_LENGTH     6144        /* most tokens of a prompt and answer */
#define DSA_BITS_SEQS       128         /* of a step */
#define DSA_BITS_TOKENS     8192        /* of a step */
#define DSA_BITS_FAR        65536       /* context of a far neighbor */
#define DSA_BITS_PROMPT     4096        /* tokens of a prompt that is timed */
#define DSA_BITS_BATCHES    4
#define DSA_BITS_DRAFTS     (DSA_MAX_OUTPUTS - 1)   /* most of a sequence */


extern const uint32_t  dsa_bits_batch[DSA_BITS_BATCHES];


typedef struct {
    const char         *model;
    uint32_t            layers;
    uint32_t            dense;          /* of the layers */
    dsa_backend_t      *backend;
    uint32_t           *tokens;         /* [DSA_BITS_FAR + DSA_BITS_SEQS] */
    uint32_t           *pages;          /* 0, 1, 2 .. */
    dsa_sampling_t      sampling;       /* greedy, with logprobs */
    dsa_batch_seq_t     seq[DSA_BITS_SEQS];
    dsa_sample_t        sample[DSA_BITS_SEQS];
    double              decode[DSA_BITS_BATCHES];   /* us of a step of
                                           dsa_bits_batch[] streams */
    double              prefill;        /* us of a step of DSA_BITS_PROMPT
                                           tokens */
} dsa_bits_t;


/*
 * Sets entry k of the next step: n tokens from position start on of sequence
 * s, which has pages of its own; prompt: tokens of its prompt.
 */
dsa_batch_seq_t *dsa_bits_seq(dsa_bits_t *b, uint32_t k, uint32_t s,
    uint32_t start, uint32_t n, uint32_t prompt);

/* Computes a step of n entries; sample k is b->sample[k]. */
int dsa_bits_step(dsa_bits_t *b, uint32_t n, dsa_err_t *err);

/* Print their tables; DSA_ERROR with err. */
int dsa_bits_steps(dsa_bits_t *b, dsa_err_t *err);
int dsa_bits_ops(const dsa_bits_t *b, dsa_err_t *err);


#endif /* _DSA_BENCH_BITS_H_INCLUDED_ */
