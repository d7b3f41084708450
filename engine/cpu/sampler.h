
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
                                       over the allowed ids, before
                                       temperature and penalties; 0 when not
                                       asked for */
    uint32_t    n_top;
    uint32_t    top[DSA_LINK_MAX_TOP];
    float       top_logprob[DSA_LINK_MAX_TOP];
} dsa_sample_t;


/*
 * Samples from logits [vocab] float32: an id of softmax((logits - penalties)
 * / temperature), of the smallest set of the most probable ids that together
 * reach top_p (of equal ones the lowest first).  A logit that is no number
 * counts as minus infinity.  allowed, at least 1 and at most vocab: ids from
 * there on are never chosen (rows of the head beyond the tokenizer).
 * history: the n_history tokens of the answer so far, for the penalties.
 * position: of the token to be sampled; with the seed it alone determines the
 * noise, so that a sequence continued elsewhere goes on as it would have.
 * scratch: vocab floats.
 */
void dsa_sample(dsa_sample_t *out, const dsa_sampling_t *s,
    const float *logits, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, uint32_t n_history, uint64_t position,
    float *scratch);

/*
 * Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
 * 3", SC 2011): four random words of a counter and a key.
 */
void dsa_philox(const uint32_t counter[4], const uint32_t key[2],
    uint32_t out[4]);

/*
 * Uniform in (0, 1), 52 bits of the first two words of Philox4x32-10 with
 * counter (position low, high, lane, 0) and key (seed low, high).
 */
double dsa_uniform(uint64_t seed, uint64_t position, uint32_t lane);


#endif /* _DSA_SAMPLER_H_INCLUDED_ */
