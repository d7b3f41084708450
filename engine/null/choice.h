
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NULL_CHOICE_H_INCLUDED_
#define _DSA_NULL_CHOICE_H_INCLUDED_


#include "base/sampling.h"
#include "engine/checkpoint/ends.h"


/* The samples of the null backend with a mask or with biases. */

#define DSA_NULL_ENDS   (DSA_MODEL_ENDS + 1)

typedef struct {
    uint32_t    end[DSA_NULL_ENDS]; /* ids that end an answer, or its
                                       reasoning */
    uint32_t    n;
} dsa_null_ends_t;


/*
 * Returns the id at a position with a mask over vocab ids, as in
 * dsa_batch_seq_t.  The distribution is uniform over the permitted ids, except
 * that a permitted end has a probability of at least 1/4, because otherwise
 * most answers would be very long.  The result is a function of mask, seed and
 * position only.
 */
uint32_t dsa_null_masked(const uint32_t *mask, uint32_t vocab,
    const dsa_null_ends_t *ends, const dsa_sampling_t *s, uint32_t position);

/*
 * Applies biases to token and returns the result: the first permitted id that
 * a bias forces; or else the first id from token on, cyclically, that is
 * permitted and that no bias bans; or else token.  Other biases have no
 * effect, because token has a probability of 1.  mask: may be NULL.
 */
uint32_t dsa_null_biased(const uint32_t *mask, uint32_t vocab,
    const dsa_biases_t *b, uint32_t token);


#endif /* _DSA_NULL_CHOICE_H_INCLUDED_ */
