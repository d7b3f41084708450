
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "bench/draft_share.h"


#define SHARE_MOST      6.0         /* deviations that are summed over */
#define SHARE_STEP      0.1
#define SHARE_LEAST     1e-2        /* the lowest temperature, by the highest */


/* The probability that a normally distributed number is below x. */

static double
share_below(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}


/*
 * By bench/noise.c the share is the sum over ids i of
 *
 *     1 / (sum over ids j of max(p_j / p_i, q_j / q_i))
 *
 * p / p_i and q / q_i are log-normal.  With many ids the inner sum is their
 * number times the mean of the larger one, which has a closed form (Clark, "The
 * Greatest of a Finite Set of Random Variables", 1961, for the exponents), and
 * the outer one is a mean over the logits a and b of id i.
 */

double
bench_draft_share(double deviation)
{
    double  a, b, d, weight, sum, weights, larger;

    sum = 0;
    weights = 0;

    for (a = -SHARE_MOST; a <= SHARE_MOST; a += SHARE_STEP) {
        for (b = -SHARE_MOST; b <= SHARE_MOST; b += SHARE_STEP) {
            weight = exp(-0.5 * (a * a + b * b));
            d = b - a;
            larger = exp(deviation * (0.5 * deviation - a))
                     * share_below((deviation + d) * M_SQRT1_2)
                     + exp(deviation * (0.5 * deviation - b))
                       * share_below((deviation - d) * M_SQRT1_2);

            sum += weight / larger;
            weights += weight;
        }
    }

    return sum / weights;
}


double
bench_draft_temperature(double share, double deviation)
{
    int     i;
    double  low, high, middle;

    high = BENCH_TEMPERATURE;
    low = high * SHARE_LEAST;

    if (!(share >= bench_draft_share(deviation / low)
          && share <= bench_draft_share(deviation / high)))
    {
        return 0;
    }

    /* the share grows with the temperature */

    for (i = 0; i < 30; i++) {
        middle = sqrt(low * high);

        if (bench_draft_share(deviation / middle) < share) {
            low = middle;

        } else {
            high = middle;
        }
    }

    return high;
}
