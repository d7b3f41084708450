
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Integers between two bounds.  The digits so far are less than, equal to or
 * greater than as many digits of each bound; a state stands for both, and for
 * the number of digits.
 */


#include "grammar/number.h"


#define DSA_RANGE_STATES    ((DSA_NUMBER_PLAIN + 1) * 9)
#define DSA_RANGE_BOTH      (2 * DSA_RANGE_STATES + 3)


/* Numbers of one sign by their magnitudes. */

typedef struct {
    uint32_t             n_least;       /* digits */
    uint32_t             n_most;
    char                 least[DSA_NUMBER_PLAIN + 2];
    char                 most[DSA_NUMBER_PLAIN + 2];
} dsa_side_t;


typedef struct {
    dsa_side_t           side[2];       /* not negative, negative */
    uint32_t             n;
    uint32_t             queue[DSA_RANGE_BOTH];
    uint32_t             id[DSA_RANGE_BOTH];    /* 0: new */
    dsa_dfa_t           *dfa;
} dsa_range_t;


static void dsa_range_side(dsa_side_t *side, dsa_wide_t least,
    dsa_wide_t most);
static uint32_t dsa_range_digits(char *out, dsa_wide_t value);
static void dsa_range_start(dsa_range_t *r, uint32_t i, int zero);
static void dsa_range_state(dsa_range_t *r, uint32_t state);
static void dsa_range_digits_from(dsa_range_t *r, uint32_t i, uint32_t k,
    uint32_t low, uint32_t high, char first);
static uint32_t dsa_range_next(uint32_t order, const char *digits, uint32_t n,
    uint32_t k, char digit);
static int dsa_range_alive(const dsa_side_t *side, uint32_t k, uint32_t low,
    uint32_t high, int here);
static uint32_t dsa_range_id(dsa_range_t *r, uint32_t state);


/* Orders of digits. */

#define DSA_RANGE_LESS      0
#define DSA_RANGE_EQUAL     1
#define DSA_RANGE_GREATER   2

/* The first states: the start, a minus sign, and 0. */

#define DSA_RANGE_START     0
#define DSA_RANGE_MINUS     1
#define DSA_RANGE_ZERO      2


dsa_dfa_t *
dsa_number_range(dsa_wide_t least, dsa_wide_t most)
{
    uint32_t     i;
    dsa_range_t  r;

    memset(&r, 0, sizeof(dsa_range_t));

    dsa_range_side(&r.side[0], least > 1 ? least : 1, most);
    dsa_range_side(&r.side[1], -most > 1 ? -most : 1, -least);

    r.dfa = dsa_dfa_create();

    if (r.dfa == NULL) {
        return NULL;
    }

    r.n = 1;            /* the start, which no state leads to */

    for (i = 0; i < r.n && !r.dfa->failed; i++) {
        if (r.queue[i] == DSA_RANGE_START) {
            dsa_range_start(&r, 0, least <= 0 && most >= 0);

        } else if (r.queue[i] == DSA_RANGE_MINUS) {
            dsa_range_start(&r, 1, 0);

        } else {
            dsa_range_state(&r, r.queue[i]);
        }
    }

    return dsa_dfa_done(r.dfa);
}


static void
dsa_range_side(dsa_side_t *side, dsa_wide_t least, dsa_wide_t most)
{
    if (least <= most) {
        side->n_least = dsa_range_digits(side->least, least);
        side->n_most = dsa_range_digits(side->most, most);
    }
}


static uint32_t
dsa_range_digits(char *out, dsa_wide_t value)
{
    char      reversed[DSA_NUMBER_PLAIN + 2];
    uint32_t  i, n;

    for (n = 0; value != 0; n++) {
        reversed[n] = (char) ('0' + (int) (value % 10));
        value /= 10;
    }

    for (i = 0; i < n; i++) {
        out[i] = reversed[n - 1 - i];
    }

    return n;
}


/* In front of the digits of a side. */

static void
dsa_range_start(dsa_range_t *r, uint32_t i, int zero)
{
    dsa_dfa_state(r->dfa, 0);

    if (i == 0 && r->side[1].n_most != 0) {
        dsa_dfa_range(r->dfa, '-', '-', dsa_range_id(r, DSA_RANGE_MINUS));
    }

    if (zero) {
        dsa_dfa_range(r->dfa, '0', '0', dsa_range_id(r, DSA_RANGE_ZERO));
    }

    dsa_range_digits_from(r, i, 0, DSA_RANGE_EQUAL, DSA_RANGE_EQUAL, '1');
}


static void
dsa_range_state(dsa_range_t *r, uint32_t state)
{
    uint32_t  i, k, low, high;

    if (state == DSA_RANGE_ZERO) {
        dsa_dfa_state(r->dfa, 1);
        return;
    }

    state -= 3;
    i = state / DSA_RANGE_STATES;
    k = state % DSA_RANGE_STATES / 9;
    low = state % 9 / 3;
    high = state % 3;

    dsa_dfa_state(r->dfa, dsa_range_alive(&r->side[i], k, low, high, 1));
    dsa_range_digits_from(r, i, k, low, high, '0');
}


/* The ways from a state of k digits. */

static void
dsa_range_digits_from(dsa_range_t *r, uint32_t i, uint32_t k, uint32_t low,
    uint32_t high, char first)
{
    char               digit;
    uint32_t           next_low, next_high, id;
    const dsa_side_t  *side;

    side = &r->side[i];

    for (digit = first; digit <= '9' && k < side->n_most; digit++) {
        next_low = dsa_range_next(low, side->least, side->n_least, k, digit);
        next_high = dsa_range_next(high, side->most, side->n_most, k, digit);

        if (dsa_range_alive(side, k + 1, next_low, next_high, 0)) {
            id = dsa_range_id(r, 3 + i * DSA_RANGE_STATES + (k + 1) * 9
                                 + next_low * 3 + next_high);
            dsa_dfa_range(r->dfa, (uint32_t) digit, (uint32_t) digit, id);
        }
    }
}


/* Beyond the digits of a bound, the order stays. */

static uint32_t
dsa_range_next(uint32_t order, const char *digits, uint32_t n, uint32_t k,
    char digit)
{
    if (k >= n) {
        return DSA_RANGE_GREATER;
    }

    if (order != DSA_RANGE_EQUAL || digit == digits[k]) {
        return order;
    }

    return digit < digits[k] ? DSA_RANGE_LESS : DSA_RANGE_GREATER;
}


/* 1: k digits can be continued to a number, or are one if here is 1. */

static int
dsa_range_alive(const dsa_side_t *side, uint32_t k, uint32_t low,
    uint32_t high, int here)
{
    uint32_t  m;

    for (m = k; m <= side->n_most; m++) {
        if (m >= side->n_least
            && (m > side->n_least || low != DSA_RANGE_LESS)
            && (m < side->n_most || high != DSA_RANGE_GREATER))
        {
            return 1;
        }

        if (here) {
            return 0;
        }
    }

    return 0;
}


static uint32_t
dsa_range_id(dsa_range_t *r, uint32_t state)
{
    if (r->id[state] == 0) {
        r->queue[r->n] = state;
        r->id[state] = r->n++;
    }

    return r->id[state];
}
