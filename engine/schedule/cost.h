
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_COST_H_INCLUDED_
#define _DSA_COST_H_INCLUDED_


#include <stdint.h>


/*
 * How long a step takes, learned from the steps before it.  A step takes as
 * long as the rank with the most to compute, and the time of a rank is
 *
 *     time[rows] + sum over the rates of rate * amount
 *
 * time[] is a table over the rows of the rank, those of answers (with drafts)
 * and of prompts alike, because all of them need the same weights: with few
 * rows a row more reads experts that no other row has, and with many it costs
 * its products only.  Entry k is of 2^k rows; between two entries the time is
 * interpolated, and beyond those that were measured it is proportional to the
 * rows, which is too long for more rows than were measured, never too short.
 * The rates are those of dsa_cost_rate_e: the context of both kinds of rows,
 * and the drafts that are made.
 *
 * A step that took r times as long as expected multiplies the largest part of
 * its time by the fourth root of r, and smaller ones by less, in proportion to
 * what they are of it (multiplicative algebraic reconstruction, Gordon, Bender
 * and Herman, J. Theor. Biol. 29, 1970).  So nothing becomes negative or 0, and
 * only what took time is corrected.  The time of more rows is kept at or above
 * that of fewer; after a step that was shorter than expected, n times its rows
 * take at most n times its time.
 *
 * The whole r counts for an entry that is new; if the step took less than half
 * of what was expected, because earlier ones had waited for something then; and
 * from the second of several steps on that took at least a quarter more, or
 * less, than expected: then the costs have changed.  A single step counts as at
 * most twice as long as expected, because it may have waited for something.
 */

#define DSA_COST_ENTRIES    17          /* 1, 2, 4, ..., 65536 rows */


typedef enum {
    DSA_COST_ANSWER_PAIRS = 0,          /* answer rows, each times the tokens
                                           before it, in 2^20 */
    DSA_COST_PROMPT_PAIRS,              /* the same of prompt rows */
    DSA_COST_DRAFTS,                    /* drafts that are made, in 2^6 */
    DSA_COST_RATES
} dsa_cost_rate_e;


/* What a rank computes in a step. */

typedef struct {
    uint32_t            rows;
    double              amount[DSA_COST_RATES];
} dsa_cost_load_t;


/* Zeroed memory is a table in which nothing is measured. */

typedef struct {
    double              time[DSA_COST_ENTRIES];     /* us */
    uint32_t            measured;       /* bit k: time[k] is */
    double              rate[DSA_COST_RATES];       /* us */
    double              error;          /* mean absolute difference of steps
                                           from what was expected, relative to
                                           that */
    int                 off;            /* 1: the last step took much longer
                                           than expected, -1: much less long */
    double              token;          /* us of a prompt token, see
                                           dsa_cost_token(); 0: not measured */
} dsa_cost_t;


/* Adds an answer row with its drafts, rows together, after start tokens. */
void dsa_cost_answer(dsa_cost_load_t *load, uint32_t rows, uint32_t start);

/* Adds rows of a prompt after start tokens. */
void dsa_cost_prompt(dsa_cost_load_t *load, uint32_t rows, uint32_t start);

/* Adds drafts that the backend makes. */
void dsa_cost_drafts(dsa_cost_load_t *load, uint32_t drafts);

/* The expected time of a step in us; 0: nothing is measured. */
double dsa_cost_step(const dsa_cost_t *c, const dsa_cost_load_t *load);

/*
 * The most rows, at most `most`, of a prompt after start tokens with which a
 * step of this load is expected to take at most limit us; 0 also if nothing is
 * measured.
 */
uint32_t dsa_cost_rows(const dsa_cost_t *c, const dsa_cost_load_t *load,
    uint32_t start, uint32_t most, double limit);

/* A step in which the slowest rank had this load has taken us. */
void dsa_cost_measure(dsa_cost_t *c, const dsa_cost_load_t *load, double us);

/*
 * The same step had n > 0 prompt tokens, and was expected to take `without` us
 * without them.  The mean time of a prompt token of recent steps follows, with
 * a weight of a quarter for the newest, and less if it had fewer than 256: an
 * error of what was expected is divided by them.
 */
void dsa_cost_token(dsa_cost_t *c, double us, double without, uint32_t n);


#endif /* _DSA_COST_H_INCLUDED_ */
