
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PACE_H_INCLUDED_
#define _DSA_PACE_H_INCLUDED_


#include <stdint.h>


/*
 * Step target: limits the prefill part of a step that also has decodes, so
 * that the step, which is the time between two tokens of each answer, takes
 * about target.  Three moving averages are measured:
 *
 *     base     duration of steps with decodes and without prefill; the newest
 *              step has a weight of 1/4
 *     chunk    prefill tokens of a step with decodes and prefill; 1/2
 *     extra    duration of such a step in excess of base; 1/2
 *
 * The predicted duration of a step with n prefill tokens is
 * base + n * extra / chunk, so that the limit for n is
 *
 *     max(target - base, base / 4) * chunk / extra
 *
 * Where decodes alone take longer than the target, no limit can meet it; then
 * prefill has a quarter of their time, so that prompts still make progress.
 * The limit is at most 4 * chunk, because the rate of small chunks is measured
 * too inaccurately to predict large ones, and at least DSA_PACE_LEAST, so that
 * prefill always proceeds.
 *
 * base is not measured while prompts keep arriving.  If it is too low then,
 * the difference is a part of extra, and the limit still converges to steps of
 * the target's duration.  If it is too high, a step with prefill is shorter
 * than base, and base becomes that step's duration.
 */

#define DSA_PACE_LEAST      16          /* prefill tokens of a step */


/*
 * A fourth average, over all steps with prefill, is the time of a prompt token:
 * the duration of the step, or with decodes what exceeds base, divided by the
 * prefill tokens; the newest step has a weight of 1/4.
 */

typedef struct {
    double              target;         /* us; 0: no limit */
    double              base;           /* us; 0: not measured yet */
    double              chunk;          /* tokens; 0: not measured yet */
    double              extra;          /* us */
    double              token;          /* us; 0: not measured yet */
} dsa_pace_t;


/*
 * The most prefill tokens, at most budget, of a step with this number of
 * decodes.
 */
uint32_t dsa_pace_limit(const dsa_pace_t *p, uint32_t decodes,
    uint32_t budget);

/* A step has taken this long. */
void dsa_pace_measure(dsa_pace_t *p, uint64_t duration_us, uint32_t decodes,
    uint32_t prefill);


#endif /* _DSA_PACE_H_INCLUDED_ */
