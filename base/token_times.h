
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BASE_TOKEN_TIMES_H_INCLUDED_
#define _DSA_BASE_TOKEN_TIMES_H_INCLUDED_


#include <stdint.h>


/*
 * The histogram of the times between the tokens of answers.  A token that
 * follows another one in the same step with it, as a draft, has an equal part
 * of the time of that step.  Bounds are close together, so that a percentile
 * is known to a quarter.
 */

#define DSA_TOKEN_TIMES     32

/* The upper bound of each class in us; one class more is above all of them. */

static const uint32_t  dsa_token_bounds[DSA_TOKEN_TIMES]
    __attribute__((unused)) =
{
    1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000,
    10000, 12000, 15000, 20000, 25000, 30000, 35000, 40000,
    50000, 60000, 70000, 80000, 100000, 120000, 150000, 200000,
    250000, 300000, 400000, 500000, 700000, 1000000, 2000000, 5000000
};


/* The class of a time, 0 to DSA_TOKEN_TIMES. */

static inline uint32_t
dsa_token_time(uint64_t us)
{
    uint32_t  i;

    for (i = 0; i < DSA_TOKEN_TIMES; i++) {
        if (us <= dsa_token_bounds[i]) {
            break;
        }
    }

    return i;
}


#endif /* _DSA_BASE_TOKEN_TIMES_H_INCLUDED_ */
