
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NULL_CHOICE_H_INCLUDED_
#define _DSA_NULL_CHOICE_H_INCLUDED_


#include "engine/sampling.h"


/*
 * What the null backend samples under a mask or with biases.
 */

#define DSA_NULL_ENDS   8

typedef struct {
    uint32_t    end[DSA_NULL_ENDS]; /* ids that end an answer, or its
                                       reasoning */
    uint32_t    n;
} dsa_null_ends_t;


/*
 * The id at a position under a mask over vocab ids, as in dsa_batch_seq_t.  It
 * is uniform over the permitted ids, except that a permitted end is chosen with
 * a probability of 1/4 at least: without it, an answer that may go on would
 * rarely end.  A function of mask, seed and position only.
 */
uint32_t dsa_null_masked(const uint32_t *mask, uint32_t vocab,
    const dsa_null_ends_t *ends, const dsa_sampling_t *s, uint32_t position);

/*
 * The id instead of the given one, with regard to biases: the first one of the
 * permitted ids that the biases force, or else the first id from the given one
 * on, cyclically, that is permitted and that no bias bans, or else the given
 * one.  Other biases have no effect, because the given id has a probability of
 * 1.  mask: may be NULL.
 */
uint32_t dsa_null_biased(const uint32_t *mask, uint32_t vocab,
    const dsa_sampling_t *s, uint32_t token);


#endif /* _DSA_NULL_CHOICE_H_INCLUDED_ */
