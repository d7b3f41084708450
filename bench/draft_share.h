
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_DRAFT_SHARE_H_INCLUDED_
#define _DSA_BENCH_DRAFT_SHARE_H_INCLUDED_


/*
 * How often the drafts of random weights are right.  The logits of the model
 * and those of its draft layer are then independent, and both are drawn with
 * the same noise (kernels/sample/noise.h), so that the share of drafts that
 * are right depends on the deviation of the logits divided by the temperature
 * alone.  A load with random weights gets the share of a trained model by its
 * temperature, and every draft is made, verified and counted as always.
 */

#define BENCH_TEMPERATURE   2.0         /* the highest of a request */


/*
 * Returns the share of drafts that are right, from 0 to 1, of normally
 * distributed logits with this deviation after the temperature, above 0, and
 * any number of ids.
 */
double bench_draft_share(double deviation);

/*
 * Returns the temperature at which this share of drafts is right; deviation:
 * of the logits before it.  0: no temperature up to BENCH_TEMPERATURE has it.
 */
double bench_draft_temperature(double share, double deviation);


#endif /* _DSA_BENCH_DRAFT_SHARE_H_INCLUDED_ */
