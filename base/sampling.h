
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLING_H_INCLUDED_
#define _DSA_SAMPLING_H_INCLUDED_


#include <stdint.h>


/*
 * The sampling parameters of a request, and the results of a sampled token.
 * nginx reads a request into dsa_sampling_t, SUBMIT of the link carries it, and
 * the scheduler, the backends and the kernels use it, all without a copy field
 * by field.
 */

#define DSA_SAMPLE_MAX_TOP  20      /* alternatives reported beside a token */
#define DSA_SAMPLE_MAX_BIAS 1024    /* ids with a bias */
#define DSA_SAMPLE_FORCE    100     /* the greatest bias */

#define DSA_SAMPLING_VERSION    1


/*
 * A new parameter takes a reserved word, and 0 has to mean that it has no
 * effect: then the version stays, because an engine that does not have the
 * parameter rejects other values.  Any other change raises the version.
 * engine/service/sampling.c checks what a peer has written.
 */

typedef struct {
    uint32_t    version;            /* DSA_SAMPLING_VERSION in a record of the
                                       link; it is not read elsewhere */
    uint32_t    logprobs;           /* 1: report them; 0: do not */
    uint32_t    top_logprobs;       /* alternatives, <= DSA_SAMPLE_MAX_TOP */
    float       temperature;        /* 0: the most probable token */
    float       top_p;              /* (0, 1] */
    float       frequency_penalty;  /* -2 .. 2 */
    float       presence_penalty;   /* -2 .. 2 */
    uint32_t    reserved[3];        /* 0 */
    uint64_t    seed;               /* of the sampling noise */
} dsa_sampling_t;


/*
 * A bias is added to the logit of an id before temperature.  DSA_SAMPLE_FORCE
 * forces ids: if permitted ids have this bias, one of them is sampled.
 * -DSA_SAMPLE_FORCE bans an id: it is sampled only if no other id is
 * permitted.
 */

typedef struct {
    uint32_t    id;
    float       bias;               /* -DSA_SAMPLE_FORCE .. DSA_SAMPLE_FORCE */
} dsa_bias_t;


/* The biases of a request, which follow its parameters separately. */

typedef struct {
    const dsa_bias_t  *bias;        /* [n], each id at most once */
    uint32_t           n;           /* <= DSA_SAMPLE_MAX_BIAS */
} dsa_biases_t;


typedef struct {
    uint32_t    token;
    float       logprob;            /* natural, of the model's distribution
                                       over the allowed ids, before mask,
                                       bias, temperature and penalties; 0
                                       unless logprobs is 1 */
    uint32_t    n_top;
    uint32_t    top[DSA_SAMPLE_MAX_TOP];
    float       top_logprob[DSA_SAMPLE_MAX_TOP];
} dsa_sample_t;


/*
 * The distribution that a token was drawn from, for reinforcement learning.
 * First a set of ids is kept: those below allowed that the mask permits, that
 * no bias bans, and that top_p does not cut off.  Then one of them is drawn
 * with
 *
 *     log p(id) = z(id) - log(sum over kept ids i of exp(z(i)))
 *     z = (logit - penalties + bias) / temperature
 *
 * With temperature 0 the most probable id is the only one that is kept, and
 * its log p is 0.
 */

#define DSA_KEPT_ALL    UINT32_MAX

typedef struct {
    float       logprob;            /* log p of the token */
    uint32_t    n_kept;             /* ids; DSA_KEPT_ALL: all ids below
                                       allowed.  Valid only where the set was
                                       requested, too */
} dsa_draw_t;


/*
 * Returns 1 if the logits depend on the tokens of the answer, so that a sampler
 * needs all of them.
 */

static inline int
dsa_sampling_penalizes(const dsa_sampling_t *s)
{
    return s->frequency_penalty != 0 || s->presence_penalty != 0;
}


#endif /* _DSA_SAMPLING_H_INCLUDED_ */
