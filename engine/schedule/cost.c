
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>

#include "engine/schedule/cost.h"


#define DSA_COST_PAIRS      1048576.0   /* of the amounts of pairs */
#define DSA_COST_MADE       64.0        /* of the amount of drafts */

#define DSA_COST_GAIN       0.25        /* of a difference that is corrected */
#define DSA_COST_FEW        0.5         /* of what was expected: all of it */
#define DSA_COST_OFF        0.25        /* difference, relative to what was
                                           expected, of which all is corrected
                                           when it comes again */
#define DSA_COST_MANY       2.0         /* times what was expected */
#define DSA_COST_ERROR      0.125       /* weight of the newest error */
#define DSA_COST_LEAST      0.001       /* us of an entry or a rate: 0 would
                                           remain 0 */
#define DSA_COST_TOKEN      0.25        /* weight of a step with many prompt
                                           tokens */

/* what is assumed before it is measured */

#define DSA_COST_ROWS       256         /* least rows that the time of a row is
                                           taken from */
#define DSA_COST_CONTEXT    24576       /* tokens before a row that cost as
                                           much as the row itself: 22K were
                                           measured for prompts on H200 */
#define DSA_COST_LAYERS     32          /* drafts that cost as much as a row */


static double dsa_cost_of_rows(const dsa_cost_t *c, uint32_t rows);
static uint32_t dsa_cost_entry(uint32_t rows);
static uint32_t dsa_cost_entries(uint32_t rows, uint32_t entry[2]);
static double dsa_cost_weight(uint32_t rows, uint32_t entry);
static void dsa_cost_assume(dsa_cost_t *c, double rows, double us);
static int dsa_cost_begin(dsa_cost_t *c, uint32_t entry, double rest,
    double rows);
static void dsa_cost_correct(dsa_cost_t *c, const dsa_cost_load_t *load,
    const uint32_t entry[2], uint32_t n, double ratio, double gain);
static void dsa_cost_bound(dsa_cost_t *c, double us, double rows, int up);
static void dsa_cost_order(dsa_cost_t *c, int up);


void
dsa_cost_answer(dsa_cost_load_t *load, uint32_t rows, uint32_t start)
{
    load->rows += rows;
    load->amount[DSA_COST_ANSWER_PAIRS] += rows * (start + rows / 2.0)
                                           / DSA_COST_PAIRS;
}


void
dsa_cost_prompt(dsa_cost_load_t *load, uint32_t rows, uint32_t start)
{
    load->rows += rows;
    load->amount[DSA_COST_PROMPT_PAIRS] += rows * (start + rows / 2.0)
                                           / DSA_COST_PAIRS;
}


void
dsa_cost_drafts(dsa_cost_load_t *load, uint32_t drafts)
{
    load->amount[DSA_COST_DRAFTS] += drafts / DSA_COST_MADE;
}


/* The part of the rates in the time of a step. */

static double
dsa_cost_of_rates(const dsa_cost_t *c, const dsa_cost_load_t *load)
{
    double    us;
    uint32_t  i;

    us = 0;

    for (i = 0; i < DSA_COST_RATES; i++) {
        us += c->rate[i] * load->amount[i];
    }

    return us;
}


/* The part of the rows: interpolated, or proportional to the nearest entry. */

static double
dsa_cost_of_rows(const dsa_cost_t *c, uint32_t rows)
{
    double    low, high;
    uint32_t  i, entry, below, above;

    entry = dsa_cost_entry(rows);
    below = DSA_COST_ENTRIES;
    above = DSA_COST_ENTRIES;

    for (i = 0; i < DSA_COST_ENTRIES; i++) {
        if ((c->measured >> i & 1) == 0) {
            continue;
        }

        if (i <= entry) {
            below = i;

        } else if (above == DSA_COST_ENTRIES) {
            above = i;
        }
    }

    if (below == DSA_COST_ENTRIES && above == DSA_COST_ENTRIES) {
        return 0;
    }

    if (above == DSA_COST_ENTRIES) {
        return ldexp(c->time[below] * rows, -(int) below);
    }

    if (below == DSA_COST_ENTRIES) {
        return ldexp(c->time[above] * rows, -(int) above);
    }

    low = ldexp(1, (int) below);
    high = ldexp(1, (int) above);

    return c->time[below]
           + (c->time[above] - c->time[below]) * (rows - low) / (high - low);
}


/* The last entry of at most so many rows. */

static uint32_t
dsa_cost_entry(uint32_t rows)
{
    uint32_t  entry;

    for (entry = 0; entry + 1 < DSA_COST_ENTRIES; entry++) {
        if (rows >> (entry + 1) == 0) {
            break;
        }
    }

    return entry;
}


/* The one or two entries between which so many rows are; their number. */

static uint32_t
dsa_cost_entries(uint32_t rows, uint32_t entry[2])
{
    entry[0] = dsa_cost_entry(rows);
    entry[1] = entry[0] + 1;

    return entry[1] < DSA_COST_ENTRIES && rows != 1U << entry[0] ? 2 : 1;
}


/* The weight of one of these entries in the time of the rows. */

static double
dsa_cost_weight(uint32_t rows, uint32_t entry)
{
    double  ratio;

    ratio = ldexp((double) rows, -(int) entry);

    if (ratio < 1) {
        return 2 * ratio - 1;
    }

    return entry + 1 < DSA_COST_ENTRIES ? 2 - ratio : ratio;
}


double
dsa_cost_step(const dsa_cost_t *c, const dsa_cost_load_t *load)
{
    if (c->measured == 0 || load->rows == 0) {
        return 0;
    }

    return dsa_cost_of_rows(c, load->rows) + dsa_cost_of_rates(c, load);
}


uint32_t
dsa_cost_rows(const dsa_cost_t *c, const dsa_cost_load_t *load,
    uint32_t start, uint32_t most, double limit)
{
    uint32_t         low, high, n;
    dsa_cost_load_t  with;

    if (c->measured == 0) {
        return 0;
    }

    low = 0;
    high = most;

    while (low < high) {
        n = high - (high - low) / 2;

        with = *load;
        dsa_cost_prompt(&with, n, start);

        if (dsa_cost_step(c, &with) <= limit) {
            low = n;

        } else {
            high = n - 1;
        }
    }

    return low;
}


void
dsa_cost_measure(dsa_cost_t *c, const dsa_cost_load_t *load, double us)
{
    int       fresh, off;
    double    expected, rest, ratio, gain;
    uint32_t  i, n, entry[2];

    if (load->rows == 0) {
        return;
    }

    us = us > 1 ? us : 1;

    if (c->measured == 0) {
        dsa_cost_assume(c, load->rows, us);
    }

    n = dsa_cost_entries(load->rows, entry);
    rest = us - dsa_cost_of_rates(c, load);
    rest = rest > us / 2 ? rest : us / 2;
    fresh = 0;

    for (i = 0; i < n; i++) {
        fresh |= dsa_cost_begin(c, entry[i], rest, load->rows);
    }

    expected = dsa_cost_step(c, load);
    ratio = us / expected;
    off = fresh ? 0 : (ratio > 1 + DSA_COST_OFF) - (ratio < 1 - DSA_COST_OFF);

    gain = fresh || ratio < DSA_COST_FEW || (off != 0 && off == c->off)
           ? 1 : DSA_COST_GAIN;

    if (!fresh) {
        ratio = ratio < DSA_COST_MANY || off == c->off ? ratio : DSA_COST_MANY;
        c->error += DSA_COST_ERROR * (fabs(ratio - 1) - c->error);
    }

    c->off = off;

    dsa_cost_correct(c, load, entry, n, ratio, gain);

    if (ratio < 1 || (off > 0 && gain == 1)) {
        rest = us * dsa_cost_of_rows(c, load->rows) / dsa_cost_step(c, load);
        dsa_cost_bound(c, rest, load->rows, ratio > 1);
    }
}


/* What the rates are before they are measured. */

static void
dsa_cost_assume(dsa_cost_t *c, double rows, double us)
{
    double  row;

    row = us / (rows > DSA_COST_ROWS ? rows : DSA_COST_ROWS);

    c->rate[DSA_COST_ANSWER_PAIRS] = row * DSA_COST_PAIRS / DSA_COST_CONTEXT;
    c->rate[DSA_COST_PROMPT_PAIRS] = row * DSA_COST_PAIRS / DSA_COST_CONTEXT;
    c->rate[DSA_COST_DRAFTS] = row * DSA_COST_MADE / DSA_COST_LAYERS;
}


/*
 * An entry that was never measured begins with what the others say, but not
 * with more than the time of this step, in proportion where the entry has more
 * rows.  1: it was not measured before.
 */

static int
dsa_cost_begin(dsa_cost_t *c, uint32_t entry, double rest, double rows)
{
    double  most, expected;

    if (c->measured >> entry & 1) {
        return 0;
    }

    most = rest * ldexp(1, (int) entry) / rows;
    expected = most;

    if (c->measured != 0) {
        most = most > rest ? most : rest;
        expected = dsa_cost_of_rows(c, 1U << entry);
    }

    c->time[entry] = expected < most ? expected : most;
    c->measured |= 1U << entry;

    return 1;
}


/*
 * Multiplies each part of a step with a power of the ratio.  The exponent is
 * gain for the largest part, and in proportion to it for the others.
 */

static void
dsa_cost_correct(dsa_cost_t *c, const dsa_cost_load_t *load,
    const uint32_t entry[2], uint32_t n, double ratio, double gain)
{
    double    part[2 + DSA_COST_RATES], *value[2 + DSA_COST_RATES], most;
    uint32_t  i;

    for (i = 0; i < n; i++) {
        value[i] = &c->time[entry[i]];
        part[i] = c->time[entry[i]] * dsa_cost_weight(load->rows, entry[i]);
    }

    for (i = 0; i < DSA_COST_RATES; i++) {
        value[n + i] = &c->rate[i];
        part[n + i] = c->rate[i] * load->amount[i];
    }

    most = part[0];

    for (i = 1; i < n + DSA_COST_RATES; i++) {
        most = part[i] > most ? part[i] : most;
    }

    for (i = 0; i < n + DSA_COST_RATES; i++) {
        *value[i] *= pow(ratio, gain * part[i] / most);
        *value[i] = *value[i] > DSA_COST_LEAST ? *value[i] : DSA_COST_LEAST;
    }

    dsa_cost_order(c, ratio > 1);
}


/*
 * n times the rows of a step that took us do not take longer than n such steps,
 * even if an entry of more rows, which was measured long ago, says so; and up,
 * an n-th of them takes at least an n-th of the time.
 */

static void
dsa_cost_bound(dsa_cost_t *c, double us, double rows, int up)
{
    double    part;
    uint32_t  i;

    for (i = 0; i < DSA_COST_ENTRIES; i++) {
        part = ldexp(1, (int) i) / rows;

        if ((c->measured >> i & 1) == 0 || (part < 1) != up) {
            continue;
        }

        if (up ? c->time[i] < us * part : c->time[i] > us * part) {
            c->time[i] = us * part;
        }
    }

    dsa_cost_order(c, up);
}


/*
 * After an entry became longer, those of more rows are at least as long; after
 * it became shorter, those of fewer rows are at most as long.
 */

static void
dsa_cost_order(dsa_cost_t *c, int up)
{
    double    last;
    uint32_t  i, k;

    last = up ? 0 : INFINITY;

    for (i = 0; i < DSA_COST_ENTRIES; i++) {
        k = up ? i : DSA_COST_ENTRIES - 1 - i;

        if ((c->measured >> k & 1) == 0) {
            continue;
        }

        c->time[k] = c->time[k] > DSA_COST_LEAST ? c->time[k]
                                                 : DSA_COST_LEAST;

        if (up ? c->time[k] < last : c->time[k] > last) {
            c->time[k] = last;
        }

        last = c->time[k];
    }
}


void
dsa_cost_token(dsa_cost_t *c, double us, double without, uint32_t n)
{
    double  token, weight;

    token = without < us ? (us - without) / n : 0;
    weight = n < DSA_COST_ROWS ? DSA_COST_TOKEN * n / DSA_COST_ROWS
                               : DSA_COST_TOKEN;
    c->token = c->token != 0 ? c->token + weight * (token - c->token) : token;
}
