
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLER_H_INCLUDED_
#define _DSA_SAMPLER_H_INCLUDED_


#include "engine/link.h"


/* How a sequence chooses its next token. */

typedef struct {
    float       temperature;        /* 0: the most probable token */
    float       top_p;              /* (0, 1] */
    float       frequency_penalty;
    float       presence_penalty;
    uint64_t    seed;
    uint32_t    logprobs;           /* 1: report them */
    uint32_t    top_logprobs;       /* alternatives, <= DSA_LINK_MAX_TOP */
} dsa_sampling_t;


typedef struct {
    uint32_t    token;
    float       logprob;            /* natural, of the model's distribution
                                       before temperature and penalties */
    uint32_t    n_top;
    uint32_t    top[DSA_LINK_MAX_TOP];
    float       top_logprob[DSA_LINK_MAX_TOP];
} dsa_sample_t;


/*
 * Samples from logits [vocab] float32.  allowed: ids at or above it are never
 * chosen (rows of the head beyond the tokenizer).  history: the n_history
 * tokens of the answer so far, for the penalties.  position: of the token to
 * be sampled; with the seed it alone determines the noise, so that a sequence
 * continued elsewhere goes on as it would have.  scratch: vocab floats.
 */
void dsa_sample(dsa_sample_t *out, const dsa_sampling_t *s,
    const float *logits, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, uint32_t n_history, uint64_t position,
    float *scratch);

/* Uniform in (0, 1): Philox4x32-10 of (seed, position, lane). */
double dsa_uniform(uint64_t seed, uint64_t position, uint32_t lane);


#endif /* _DSA_SAMPLER_H_INCLUDED_ */
