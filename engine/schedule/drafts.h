
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SPEC_H_INCLUDED_
#define _DSA_SPEC_H_INCLUDED_


#include <stdint.h>

#include "engine/backend.h"


/*
 * How many drafts the backend makes for each sequence.  A draft costs a row of
 * the step that verifies it, and a row of the draft layer; it is worth a token
 * if it is accepted.  For each number of sequences, a line is fitted to the
 * measured durations of steps without prefill:
 *
 *     duration = base + slope * drafts per sequence
 *
 * Draft k of a sequence is accepted with a probability q(k), which is that of
 * draft k - 1 times the measured share of drafts at position k that were
 * accepted when all before them were.  So q falls with k, and the drafts with
 * the largest q of all sequences are made, as many as maximize
 *
 *     (sequences + sum of q) / (base + slope * drafts / sequences),
 *
 * the expected tokens per time.  Without drafts this is the speed without
 * speculation; steps with the chosen number are measured as well, so that a
 * number that is slower is not chosen for long.
 *
 * The line needs steps with different numbers of drafts, and a share of
 * accepted drafts needs drafts.  Therefore DSA_SPEC_TRIAL of each
 * DSA_SPEC_PERIOD steps are trials: without drafts and, in the next period,
 * with one more than chosen for each sequence; where none is chosen, always
 * with one.  That is the most that speculation costs where no draft pays:
 * 1/64 of the steps take longer by slope.
 *
 * The text of an answer does not depend on the number of drafts.
 */

#define DSA_SPEC_MOST       (DSA_MAX_OUTPUTS - 1)
#define DSA_SPEC_PERIOD     512         /* steps */
#define DSA_SPEC_TRIAL      8
#define DSA_SPEC_SIZES      24          /* ranges of the number of sequences:
                                           1, 2, 3, 4..5, 6..7, 8..11, ...,
                                           and all from 4096 on */
#define DSA_SPEC_LEVELS     64          /* q is rounded down to 1/64 */


/* For each position, how many drafts were tried and accepted; both decay. */

typedef struct {
    float               tried[DSA_SPEC_MOST];   /* after accepted ones */
    float               accepted[DSA_SPEC_MOST];
} dsa_spec_rates_t;


/* Weighted sums over steps, of which the newest has the weight 1. */

typedef struct {
    double              weight;
    double              x;              /* drafts per sequence */
    double              xx;
    double              y;              /* duration, us */
    double              xy;
    double              error;          /* mean of the absolute differences
                                           from the line, us */
    double              least;          /* duration, which grows slowly until
                                           a step is shorter, us */
} dsa_spec_line_t;


typedef struct {
    uint32_t            most;           /* drafts of a sequence, at most
                                           DSA_SPEC_MOST */
    uint32_t            adapts;         /* 0: always most */
    uint64_t            steps;
    dsa_spec_rates_t    all;            /* of all sequences */
    double              share[DSA_SPEC_MOST];   /* of all, accepted */
    dsa_spec_line_t     line[DSA_SPEC_SIZES];
    double              price;          /* slope / base of the last line with
                                           enough steps */

    /* of the step that is being made */

    uint32_t            sequences;
    uint32_t            count[DSA_SPEC_LEVELS]; /* drafts with this q */
    double              sum[DSA_SPEC_LEVELS];   /* of their q */
    double              least;          /* q of a draft that is made; above 1:
                                           none is made */
    uint32_t            trial;          /* 1: the step is a trial */
    uint32_t            more;           /* of a trial, drafts of a sequence in
                                           excess of the chosen ones; 0: it
                                           has no drafts */
} dsa_spec_t;


/* Sets the state before the first step. */
void dsa_spec_init(dsa_spec_t *d, uint32_t most, uint32_t adapts);

/*
 * Each step calls begin, add for each sequence that may have drafts, choose,
 * and then number for each of them, which returns how many drafts the backend
 * is to make.  room is the most that a sequence can use.
 */
void dsa_spec_begin(dsa_spec_t *d);
void dsa_spec_add(dsa_spec_t *d, const dsa_spec_rates_t *seq,
    uint32_t room);
void dsa_spec_choose(dsa_spec_t *d);
uint32_t dsa_spec_number(const dsa_spec_t *d,
    const dsa_spec_rates_t *seq, uint32_t room);

/* The first accepted ones of n drafts of a sequence were right, 1 <= n. */
void dsa_spec_verified(dsa_spec_t *d, dsa_spec_rates_t *seq, uint32_t n,
    uint32_t accepted);

/*
 * A step without prefill has taken this long.  It has verified and has made so
 * many drafts of all its sequences; the mean of both counts, so that steps in
 * which the number changes do not distort the line.
 */
void dsa_spec_measure(dsa_spec_t *d, uint64_t duration_us,
    uint32_t sequences, uint32_t verified, uint32_t made);


#endif /* _DSA_SPEC_H_INCLUDED_ */
