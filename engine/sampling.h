
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SAMPLING_H_INCLUDED_
#define _DSA_SAMPLING_H_INCLUDED_


#include <stdint.h>


/*
 * What a request sets for sampling, and what a backend returns for a sampled
 * token.  The scheduler and all backends share these types.
 */

#define DSA_SAMPLE_MAX_TOP  20      /* alternatives reported beside a token */


typedef struct {
    float       temperature;        /* 0: the most probable token */
    float       top_p;              /* (0, 1] */
    float       frequency_penalty;
    float       presence_penalty;
    uint64_t    seed;
    uint32_t    logprobs;           /* 1: report them */
    uint32_t    top_logprobs;       /* alternatives, <= DSA_SAMPLE_MAX_TOP */
} dsa_sampling_t;


typedef struct {
    uint32_t    token;
    float       logprob;            /* natural, of the model's distribution
                                       over the allowed ids, before mask,
                                       temperature and penalties; 0 unless
                                       logprobs is 1 */
    uint32_t    n_top;
    uint32_t    top[DSA_SAMPLE_MAX_TOP];
    float       top_logprob[DSA_SAMPLE_MAX_TOP];
} dsa_sample_t;


#endif /* _DSA_SAMPLING_H_INCLUDED_ */
