
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PACE_H_INCLUDED_
#define _DSA_PACE_H_INCLUDED_


#include <stdint.h>


/*
 * The two targets: the time between two tokens of an answer, which is that of
 * a step, and the time from the submission of a prompt to its first token.
 *
 *     token    A step with answers should take at most token, by the expected
 *              cost of its rows (cost.h): the prompts get the rows that fit.
 *              Where answers alone take more than 4/5 of it, prompts have a
 *              quarter of the answers' time instead.  Costs that vary are
 *              expected to be higher, by twice their mean relative difference
 *              and at most by a quarter.
 *     first    When the prompts of a tenant would not all have their first
 *              token within first, the token target gives way, but only for
 *              few tokens: such a step takes up to DSA_PACE_LONG times the
 *              target, and each of its answers is counted as late.
 *
 * The count of late tokens falls by one for DSA_PACE_EARN answers in steps.  A
 * step may be long if the count stays below DSA_PACE_LATE with its answers, or
 * was 0 before.  So of n tokens at most n / 200 + 160 are late, or n / 200 and
 * those of one step where a step has more than 160 answers: in the long run the
 * 99th percentile of the time between tokens keeps the target, and when both
 * targets cannot be met the time to the first token gives way.  160 tokens are
 * enough to begin a burst of prompts with long steps, as long as few answers
 * are there to wait.
 *
 * Tenants share the late tokens by weight: a tenant has a count of its own,
 * which falls as slowly as its share of the weights of all tenants that have
 * requests, and its limit is this share of DSA_PACE_LATE.  A tenant that floods
 * a replica is always late; it uses up its own late tokens, not those of
 * others.  The count ends with the tenant's last request: if its requests come
 * one at a time, only the count of all limits its late tokens.
 */

#define DSA_PACE_LEAST      16          /* prompt rows of a rank in each step
                                           with prompts, whatever they cost */
#define DSA_PACE_LONG       8           /* times the target */
#define DSA_PACE_EARN       200
#define DSA_PACE_LATE       160


/* A count of late tokens.  Zeroed memory is none. */

typedef struct {
    double              late;
    double              earned;         /* dsa_pace_t.earned at that time */
} dsa_pace_late_t;


typedef struct {
    double              token;          /* us; 0: no target */
    double              first;          /* us; 0: no target */
    double              earned;         /* late tokens, by all answers so far */
    dsa_pace_late_t     all;
} dsa_pace_t;


/*
 * The time of a step whose answers are expected to take base us; error is the
 * mean relative difference of steps from what is expected.
 */
double dsa_pace_limit(const dsa_pace_t *p, double base, double error);

/* What a late count is now.  share: of the weights, 0 < share <= 1. */
double dsa_pace_late(const dsa_pace_t *p, const dsa_pace_late_t *l,
    double share);

/*
 * 1 if a step with so many answers may be long because of a tenant with this
 * count and share.
 */
int dsa_pace_may_wait(const dsa_pace_t *p, const dsa_pace_late_t *l,
    double share, uint32_t answers);

/* A step with answers is long because of this tenant. */
void dsa_pace_waits(dsa_pace_t *p, dsa_pace_late_t *l, double share,
    uint32_t answers);

/* A step with so many answers is made. */
void dsa_pace_answers(dsa_pace_t *p, uint32_t answers);


#endif /* _DSA_PACE_H_INCLUDED_ */
