
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "engine/schedule/drafts.h"


/* what is assumed before it is measured */

#define DSA_SPEC_FIRST      0.7         /* share of first drafts accepted */
#define DSA_SPEC_LATER      0.9         /* of that of the position before */
#define DSA_SPEC_PRICE      0.25

/* how many measurements what is assumed weighs as much as */

#define DSA_SPEC_TRIED      4.0         /* drafts */
#define DSA_SPEC_SPREAD     2.0         /* squares of drafts per sequence */

/* what a measurement is multiplied with at each later one */

#define DSA_SPEC_SEQ        (1 - 1.0 / 32)
#define DSA_SPEC_ALL        (1 - 1.0 / 512)
#define DSA_SPEC_STEP       (1 - 1.0 / 512)

#define DSA_SPEC_OUTLIER    4.0         /* times the mean error */
#define DSA_SPEC_ERROR      (1.0 / 16)  /* weight of the newest error */
#define DSA_SPEC_GROWTH     (1.0 / 512) /* of the shortest duration */
#define DSA_SPEC_STEPS      16.0        /* weight of a line that is used */


static double dsa_spec_price(const dsa_spec_t *d);
static uint32_t dsa_spec_size(uint32_t sequences);
static void dsa_spec_line(const dsa_spec_line_t *l, double price,
    double *base, double *slope);


void
dsa_spec_init(dsa_spec_t *d, uint32_t most, uint32_t adapts)
{
    memset(d, 0, sizeof(dsa_spec_t));

    d->most = most;
    d->adapts = adapts;
    d->price = DSA_SPEC_PRICE;
}


void
dsa_spec_begin(dsa_spec_t *d)
{
    double    share;
    uint32_t  k;

    d->sequences = 0;
    memset(d->count, 0, sizeof(d->count));
    memset(d->sum, 0, sizeof(d->sum));

    share = DSA_SPEC_FIRST;

    for (k = 0; k < d->most; k++) {
        share = (d->all.accepted[k] + DSA_SPEC_TRIED * share)
                / (d->all.tried[k] + DSA_SPEC_TRIED);
        d->share[k] = share;
        share *= DSA_SPEC_LATER;
    }
}


/* Returns q(k) from q(k - 1), q(-1) being 1. */

static double
dsa_spec_next(const dsa_spec_t *d, const dsa_spec_rates_t *seq,
    uint32_t k, double q)
{
    return q * (seq->accepted[k] + DSA_SPEC_TRIED * d->share[k])
           / (seq->tried[k] + DSA_SPEC_TRIED);
}


void
dsa_spec_add(dsa_spec_t *d, const dsa_spec_rates_t *seq, uint32_t room)
{
    double    q;
    uint32_t  k, level;

    d->sequences++;

    q = 1;

    for (k = 0; k < d->most && k < room; k++) {
        q = dsa_spec_next(d, seq, k, q);
        level = (uint32_t) (q * DSA_SPEC_LEVELS);
        level = level < DSA_SPEC_LEVELS ? level : DSA_SPEC_LEVELS - 1;

        d->count[level]++;
        d->sum[level] += q;
    }
}


void
dsa_spec_choose(dsa_spec_t *d)
{
    double    price, tokens, drafts, speed, best;
    uint32_t  level, phase;

    if (!d->adapts || d->sequences == 0) {
        return;
    }

    price = dsa_spec_price(d) / d->sequences;
    tokens = d->sequences;
    drafts = 0;
    best = tokens;
    d->least = 2;

    for (level = DSA_SPEC_LEVELS; level-- > 0; /* void */ ) {
        if (d->count[level] == 0) {
            continue;
        }

        tokens += d->sum[level];
        drafts += d->count[level];
        speed = tokens / (1 + price * drafts);

        if (speed > best) {
            best = speed;
            d->least = (double) level / DSA_SPEC_LEVELS;
        }
    }

    phase = (uint32_t) (d->steps % (2 * DSA_SPEC_PERIOD));
    d->steps++;

    d->trial = phase % DSA_SPEC_PERIOD < DSA_SPEC_TRIAL;
    d->more = d->least > 1 || phase >= DSA_SPEC_PERIOD;
}


uint32_t
dsa_spec_number(const dsa_spec_t *d, const dsa_spec_rates_t *seq,
    uint32_t room)
{
    double    q;
    uint32_t  k;

    room = room < d->most ? room : d->most;

    if (!d->adapts) {
        return room;
    }

    if (d->trial && !d->more) {
        return 0;
    }

    q = 1;

    for (k = 0; k < room; k++) {
        q = dsa_spec_next(d, seq, k, q);

        if (q < d->least) {
            break;
        }
    }

    return d->trial && k < room ? k + 1 : k;
}


/* Returns slope / base for the number of sequences of the step. */

static double
dsa_spec_price(const dsa_spec_t *d)
{
    double                    base, slope;
    const dsa_spec_line_t    *l;

    l = &d->line[dsa_spec_size(d->sequences)];

    if (l->weight == 0) {
        return d->price;
    }

    dsa_spec_line(l, d->price, &base, &slope);

    return slope / base;
}


/* Returns the range of a number of sequences: two for each power of two. */

static uint32_t
dsa_spec_size(uint32_t sequences)
{
    uint32_t  size, n;

    if (sequences < 2) {
        return 0;
    }

    for (size = 1, n = sequences; n >= 4; n /= 2) {
        size += 2;
    }

    size += n - 2;

    return size < DSA_SPEC_SIZES ? size : DSA_SPEC_SIZES - 1;
}


/*
 * Sets base > 0 and slope >= 0 by least squares.  A few more squares with the
 * slope of the price hold the line where nearly all steps have the same number
 * of drafts.
 */

static void
dsa_spec_line(const dsa_spec_line_t *l, double price, double *base,
    double *slope)
{
    double  x, y, assumed;

    x = l->x / l->weight;
    y = l->y / l->weight;

    assumed = price * y / (1 + price * x);

    *slope = (l->xy - x * l->y + DSA_SPEC_SPREAD * assumed)
             / (l->xx - x * l->x + DSA_SPEC_SPREAD);

    *slope = *slope > 0 ? *slope : 0;
    *base = y - *slope * x;

    /* a step without drafts takes some part of one with x drafts */

    if (*base < y / (2 + 2 * x)) {
        *base = y / (2 + 2 * x);
    }
}


void
dsa_spec_verified(dsa_spec_t *d, dsa_spec_rates_t *seq, uint32_t n,
    uint32_t accepted)
{
    float     right;
    uint32_t  k;

    for (k = 0; k < n && k <= accepted; k++) {
        right = k < accepted;

        seq->tried[k] = (float) DSA_SPEC_SEQ * seq->tried[k] + 1;
        seq->accepted[k] = (float) DSA_SPEC_SEQ * seq->accepted[k] + right;
        d->all.tried[k] = (float) DSA_SPEC_ALL * d->all.tried[k] + 1;
        d->all.accepted[k] = (float) DSA_SPEC_ALL * d->all.accepted[k]
                             + right;
    }
}


/*
 * A step that waited for something else is not a measurement of drafts.  A
 * difference from the line that is far above the mean one is reduced, and
 * already without a line a step with x drafts per sequence counts as at most
 * 2 + 2 x of the shortest.  When a step is so much shorter than the shortest
 * one before, those had all waited, or the costs have changed: the line begins
 * again.
 */

void
dsa_spec_measure(dsa_spec_t *d, uint64_t duration_us, uint32_t sequences,
    uint32_t verified, uint32_t made)
{
    double              x, y, base, slope, error, most;
    dsa_spec_line_t    *l;

    if (!d->adapts || sequences == 0) {
        return;
    }

    l = &d->line[dsa_spec_size(sequences)];
    x = ((double) verified + made) / 2 / sequences;
    y = duration_us != 0 ? (double) duration_us : 1;

    if (l->least > (2 + 2 * x) * y) {
        memset(l, 0, sizeof(dsa_spec_line_t));
    }

    l->least *= 1 + DSA_SPEC_GROWTH;
    l->least = l->least != 0 && l->least < y ? l->least : y;
    y = y < (2 + 2 * x) * l->least ? y : (2 + 2 * x) * l->least;

    if (l->weight >= DSA_SPEC_STEPS) {
        dsa_spec_line(l, d->price, &base, &slope);

        d->price = slope / base;
        error = y - base - slope * x;
        most = DSA_SPEC_OUTLIER * l->error + y / 1000;

        if (fabs(error) > most) {
            error = error > 0 ? most : -most;
            y = base + slope * x + error;
        }

        l->error += DSA_SPEC_ERROR * (fabs(error) - l->error);

    } else {
        l->error = l->weight != 0 ? l->error : y / 8;
    }

    l->weight = DSA_SPEC_STEP * l->weight + 1;
    l->x = DSA_SPEC_STEP * l->x + x;
    l->xx = DSA_SPEC_STEP * l->xx + x * x;
    l->y = DSA_SPEC_STEP * l->y + y;
    l->xy = DSA_SPEC_STEP * l->xy + x * y;
}
