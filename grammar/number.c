
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Numbers as automata over their digits.  Comparisons with bounds are those of
 * number_decimal.c.  A remainder is a state for each value, updated digit by
 * digit.
 */


#include <stdlib.h>

#include "base/buf.h"
#include "grammar/number.h"
#include "grammar/regex.h"
#include "grammar/schema.h"


#define DSA_NUMBER_EXACT    15          /* digits that a double keeps */
#define DSA_NUMBER_STATES   10000       /* most remainders of multipleOf */
#define DSA_NUMBER_LISTED   256         /* multiples that are listed */
#define DSA_NUMBER_SMALL    64          /* multipleOf of integers whose digits
                                           are counted, if there is no bound */


typedef struct {
    int                  lower;
    int                  strict;
    dsa_decimal_t        value;
} dsa_bound_t;


#define DSA_NUMBER_BOUNDS   16          /* most bounds of one number */


typedef struct {
    uint32_t             n;
    dsa_bound_t          bound[DSA_NUMBER_BOUNDS];
} dsa_bounds_t;


static dsa_dfa_t *dsa_number_free(dsa_schema_t *s, uint32_t types);
static void dsa_number_bounds(dsa_schema_t *s, const dsa_part_t *part,
    dsa_bounds_t *bounds);
static void dsa_number_bound(dsa_schema_t *s, const dsa_json_t *v, int lower,
    int strict, dsa_bounds_t *bounds);
static dsa_dfa_t *dsa_number_bounded(dsa_schema_t *s,
    const dsa_bounds_t *bounds);
static dsa_dfa_t *dsa_number_integers(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_bounds_t *bounds);
static void dsa_number_limit(const dsa_bound_t *bound, dsa_wide_t *least,
    dsa_wide_t *most);
static dsa_dfa_t *dsa_number_listed(dsa_schema_t *s, dsa_wide_t first,
    dsa_wide_t most, dsa_wide_t step);
static dsa_wide_t dsa_number_step(const dsa_parts_t *p);
static dsa_dfa_t *dsa_number_filter(dsa_schema_t *s, const dsa_part_t *part,
    dsa_dfa_t *dfa, int integer);
static dsa_dfa_t *dsa_number_other(dsa_schema_t *s, dsa_dfa_t *dfa,
    const dsa_json_t *v);
static dsa_dfa_t *dsa_number_side(dsa_schema_t *s, const dsa_bounds_t *bounds,
    int negative, uint32_t digits);
static dsa_dfa_t *dsa_number_multiple(dsa_schema_t *s, const dsa_json_t *v,
    int integer);
static dsa_dfa_t *dsa_number_remainders(uint32_t c, uint32_t places);


int
dsa_number_is_free(const dsa_parts_t *p)
{
    uint32_t           i, k;
    const dsa_part_t  *part;
    const dsa_json_t  *v;

    static const char *const  keywords[] = {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "multipleOf", "enum", "const"
    };

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];

        for (k = 0; k < sizeof(keywords) / sizeof(keywords[0]); k++) {
            v = dsa_part_get(part, keywords[k]);

            if (v != NULL || dsa_part_not(part, keywords[k]) != NULL) {
                return 0;
            }
        }
    }

    return 1;
}


dsa_dfa_t *
dsa_number(dsa_schema_t *s, const dsa_parts_t *p, uint32_t types)
{
    int           integer;
    uint32_t      i;
    dsa_buf_t     b;
    dsa_dfa_t    *dfa;
    dsa_bounds_t  bounds;

    if (types != DSA_TYPE_FRACTION && dsa_number_is_free(p)) {
        return dsa_number_free(s, types);
    }

    bounds.n = 0;
    integer = types == DSA_TYPE_INTEGER;

    for (i = 0; i < p->n && !s->failed; i++) {
        dsa_number_bounds(s, &p->part[i], &bounds);
    }

    dfa = s->failed ? NULL : integer ? dsa_number_integers(s, p, &bounds)
                                     : dsa_number_bounded(s, &bounds);

    for (i = 0; i < p->n && dfa != NULL; i++) {
        dfa = dsa_number_filter(s, &p->part[i], dfa, integer);
    }

    if (types == DSA_TYPE_FRACTION && dfa != NULL) {

        /* with more digits its reader would round it to an integer */

        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, "-?\\d{1,9}\\.\\d{0,5}[1-9]");
        dfa = dsa_dfa_intersect(dfa, dsa_number_pattern(s, &b));
    }

    if (dfa == NULL) {
        dsa_schema_fail(s, NULL, "its numbers need too much memory; expected "
                        "a smaller multipleOf, or bounds with fewer digits");
    }

    return dfa;
}


static dsa_dfa_t *
dsa_number_free(dsa_schema_t *s, uint32_t types)
{
    dsa_buf_t   b;
    dsa_dfa_t  *dfa;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "-?(?:0|[1-9]\\d{0,18})");

    if (types != DSA_TYPE_INTEGER) {
        dsa_buf_addz(&b, "(?:\\.\\d{1,20})?(?:[eE][+-]?\\d{1,2})?");
    }

    dfa = dsa_number_pattern(s, &b);

    if (dfa == NULL) {
        dsa_schema_fail(s, NULL, "there is no memory for numbers");
    }

    return dfa;
}


static void
dsa_number_bounds(dsa_schema_t *s, const dsa_part_t *part,
    dsa_bounds_t *bounds)
{
    int                strict;
    uint32_t           i;
    const dsa_json_t  *v, *other;

    static const struct {
        const char    *keyword;
        const char    *exclusive;
        int            lower;
    } limits[] = {
        { "minimum", "exclusiveMinimum", 1 },
        { "maximum", "exclusiveMaximum", 0 }
    };

    dsa_schema_at(s, part);

    for (i = 0; i < 2; i++) {
        other = dsa_part_get(part, limits[i].exclusive);
        strict = other != NULL && other->type == DSA_JSON_TRUE;

        v = dsa_part_get(part, limits[i].keyword);
        dsa_number_bound(s, v, limits[i].lower, strict, bounds);
        dsa_number_bound(s, other, limits[i].lower, 1, bounds);

        /* what violates a lower bound is below it */

        v = dsa_part_not(part, limits[i].keyword);
        dsa_number_bound(s, v, !limits[i].lower, 1, bounds);

        v = dsa_part_not(part, limits[i].exclusive);
        dsa_number_bound(s, v, !limits[i].lower, 0, bounds);
    }
}


/* v NULL, or a boolean of draft 4: there is no bound. */

static void
dsa_number_bound(dsa_schema_t *s, const dsa_json_t *v, int lower, int strict,
    dsa_bounds_t *bounds)
{
    dsa_bound_t  *bound;

    if (v == NULL || v->type == DSA_JSON_TRUE || v->type == DSA_JSON_FALSE) {
        return;
    }

    bound = &bounds->bound[bounds->n];

    if (bounds->n == DSA_NUMBER_BOUNDS
        || dsa_number_decimal(v, &bound->value) != DSA_OK)
    {
        dsa_schema_fail(s, NULL, "\"%.*s\" is not a number with at most %d "
                        "digits, or one of more than %d bounds",
                        (int) v->key.len, v->key.data, DSA_NUMBER_DIGITS,
                        DSA_NUMBER_BOUNDS);
        return;
    }

    bound->lower = lower;
    bound->strict = strict;
    bounds->n++;
}


static dsa_dfa_t *
dsa_number_bounded(dsa_schema_t *s, const dsa_bounds_t *bounds)
{
    uint32_t              i, n, digits;
    const dsa_decimal_t  *d;

    n = 1;
    digits = 0;

    for (i = 0; i < bounds->n; i++) {
        d = &bounds->bound[i].value;
        n = d->n > n ? d->n : n;
        digits = d->n_fraction > digits ? d->n_fraction : digits;
    }

    /* with more digits a number would be rounded to the bound by its reader */

    if (n < DSA_NUMBER_EXACT && DSA_NUMBER_EXACT - n > digits) {
        digits = DSA_NUMBER_EXACT - n;
    }

    return dsa_dfa_either(dsa_number_side(s, bounds, 0, digits),
                          dsa_number_side(s, bounds, 1, digits));
}


/*
 * The integers between the bounds.  If few of them are multiples, only these;
 * if the states of multipleOf are many and there are no bounds, integers of any
 * number of digits.
 */

static dsa_dfa_t *
dsa_number_integers(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_bounds_t *bounds)
{
    uint32_t    i;
    dsa_buf_t   b;
    dsa_wide_t  least, most, step, first;

    most = 1;

    for (i = 0; i < DSA_NUMBER_PLAIN; i++) {
        most *= 10;
    }

    most -= 1;
    least = -most;

    for (i = 0; i < bounds->n; i++) {
        dsa_number_limit(&bounds->bound[i], &least, &most);
    }

    step = dsa_number_step(p);
    first = least - least % step;
    first += first < least ? step : 0;

    if (step > 1 && (most - first) / step < DSA_NUMBER_LISTED
        && least > INT64_MIN && most < INT64_MAX)
    {
        return dsa_number_listed(s, first, most, step);
    }

    if (step > DSA_NUMBER_SMALL && bounds->n == 0) {
        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, "-?[1-9]\\d*|0");

        return dsa_number_pattern(s, &b);
    }

    return dsa_number_range(least, most);
}


/* Applies a bound to integers. */

static void
dsa_number_limit(const dsa_bound_t *bound, dsa_wide_t *least,
    dsa_wide_t *most)
{
    uint32_t              i;
    dsa_wide_t            value;
    const dsa_decimal_t  *d;

    value = 0;
    d = &bound->value;

    for (i = 0; i < DSA_NUMBER_PLAIN + 1 && (i < d->n || d->huge); i++) {
        value = value * 10 + (d->huge ? 9 : d->integer[i] - '0');
    }

    value = d->negative ? -value : value;

    /* the next integer that satisfies a bound with a fraction */

    if (d->n_fraction != 0) {
        value += bound->lower ? !d->negative : -d->negative;

    } else if (bound->strict) {
        value += bound->lower ? 1 : -1;
    }

    if (bound->lower) {
        *least = value > *least ? value : *least;

    } else {
        *most = value < *most ? value : *most;
    }
}


static dsa_dfa_t *
dsa_number_listed(dsa_schema_t *s, dsa_wide_t first, dsa_wide_t most,
    dsa_wide_t step)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "[]");

    for ( /* void */ ; first <= most; first += step) {
        dsa_buf_printf(&b, "|%lld", (long long) first);
    }

    return dsa_number_pattern(s, &b);
}


/* The multipleOf of integers if it is only one and an integer, else 1. */

static dsa_wide_t
dsa_number_step(const dsa_parts_t *p)
{
    int64_t            n;
    uint32_t           i;
    dsa_wide_t         step;
    const dsa_json_t  *v;

    step = 1;

    for (i = 0; i < p->n; i++) {
        v = dsa_part_get(&p->part[i], "multipleOf");

        if (v == NULL) {
            continue;
        }

        if (step != 1 || dsa_json_int(v, &n) != DSA_OK || n < 1) {
            return 1;
        }

        step = n;
    }

    return step;
}


/* Applies multipleOf and negations to numbers without an exponent. */

static dsa_dfa_t *
dsa_number_filter(dsa_schema_t *s, const dsa_part_t *part, dsa_dfa_t *dfa,
    int integer)
{
    dsa_buf_t          b;
    const dsa_json_t  *v, *list;

    dsa_schema_at(s, part);

    if (part->kind == DSA_PART_NOT_KEYWORD && !integer) {

        /* with more digits a number would be rounded to what is excluded */

        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, "-?\\d{1,9}(?:\\.\\d{1,6})?");
        dfa = dsa_dfa_intersect(dfa, dsa_number_pattern(s, &b));
    }

    v = dsa_part_get(part, "multipleOf");

    if (v != NULL) {
        dfa = dsa_dfa_intersect(dfa, dsa_number_multiple(s, v, integer));
    }

    v = dsa_part_not(part, "multipleOf");

    if (v != NULL) {
        dfa = dsa_dfa_intersect(dfa, dsa_dfa_complement(
                                    dsa_number_multiple(s, v, integer)));
    }

    list = dsa_part_not(part, "enum");

    for (v = list != NULL ? list->first : NULL; v != NULL; v = v->next) {
        dfa = dsa_number_other(s, dfa, v);
    }

    v = dsa_part_not(part, "const");

    return v != NULL ? dsa_number_other(s, dfa, v) : dfa;
}


/* Removes a number in all its spellings; consumes dfa. */

static dsa_dfa_t *
dsa_number_other(dsa_schema_t *s, dsa_dfa_t *dfa, const dsa_json_t *v)
{
    dsa_buf_t      b;
    dsa_decimal_t  d;

    if ((v->type != DSA_JSON_INTEGER && v->type != DSA_JSON_FLOAT)
        || dsa_number_decimal(v, &d) != DSA_OK || d.huge)
    {
        return dfa;
    }

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_printf(&b, "%s%.*s", d.negative ? "-" : dsa_number_zero(&d)
                   ? "-?" : "", (int) d.n, d.integer);

    if (d.n_fraction != 0) {
        dsa_buf_printf(&b, "\\.%.*s0*", (int) d.n_fraction, d.fraction);

    } else {
        dsa_buf_addz(&b, "(?:\\.0+)?");
    }

    return dsa_dfa_intersect(dfa,
                             dsa_dfa_complement(dsa_number_pattern(s, &b)));
}


/* The numbers with or without a minus sign that satisfy all bounds. */

static dsa_dfa_t *
dsa_number_side(dsa_schema_t *s, const dsa_bounds_t *bounds, int negative,
    uint32_t digits)
{
    int                   greater, strict;
    uint32_t              i;
    dsa_buf_t             b;
    dsa_dfa_t            *dfa;
    const dsa_bound_t    *bound;
    const dsa_decimal_t  *d;

    static const dsa_decimal_t  zero = { .n = 1, .integer = "0" };

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, negative ? "-" : "");
    dsa_buf_printf(&b, "(?:0|[1-9]\\d{0,%d})", DSA_NUMBER_EXACT - 1);

    if (digits != 0) {
        dsa_buf_printf(&b, "(?:\\.\\d{1,%u})?", digits);
    }

    /* beside a bound of many digits, a small number may have a fraction */

    if (digits < 6) {
        dsa_buf_printf(&b, "|%s(?:0|[1-9]\\d{0,8})\\.\\d{1,6}",
                       negative ? "-" : "");
    }

    dfa = dsa_number_pattern(s, &b);

    if (negative) {
        dfa = dsa_dfa_intersect(dfa, dsa_number_compare(s, &zero, 1, 1, 1));
    }

    for (i = 0; i < bounds->n && dfa != NULL; i++) {
        bound = &bounds->bound[i];
        d = &bound->value;
        strict = bound->strict;

        /* the magnitude of a negative number is compared the other way */

        greater = bound->lower != negative;

        if (d->negative != negative) {

            /*
             * The bound has the other sign, or it is 0, and all numbers of
             * this sign are on one side of it.
             */

            if (bound->lower == negative) {
                dfa = dsa_dfa_intersect(dfa, dsa_number_compare(s, &zero, 0, 1,
                                                                negative));
            }

            continue;
        }

        if (d->huge) {
            if (greater) {
                dfa = dsa_dfa_intersect(dfa, dsa_number_compare(s, &zero, 0, 1,
                                                                negative));
            }

            continue;
        }

        dfa = dsa_dfa_intersect(dfa, dsa_number_compare(s, d, greater, strict,
                                                        negative));
    }

    return dfa;
}


/* multipleOf is c / 10^places. */

static dsa_dfa_t *
dsa_number_multiple(dsa_schema_t *s, const dsa_json_t *v, int integer)
{
    uint32_t       i;
    uint64_t       c;
    dsa_decimal_t  d;

    if (dsa_number_decimal(v, &d) != DSA_OK || d.huge || d.negative
        || dsa_number_zero(&d))
    {
        dsa_schema_fail(s, "multipleOf", "it is not a number above 0 with at "
                        "most %d digits", DSA_NUMBER_PLAIN);
        return NULL;
    }

    c = 0;

    for (i = 0; i < d.n + d.n_fraction && c < (uint64_t) 1 << 56; i++) {
        c = c * 10 + (uint64_t) ((i < d.n ? d.integer[i]
                                          : d.fraction[i - d.n]) - '0');
    }

    /* n is a multiple of c / 10 if it is a multiple of c / gcd(c, 10) */

    for (i = 0; integer && i < d.n_fraction && c < (uint64_t) 1 << 56; i++) {
        c /= c % 10 == 0 ? 10 : c % 5 == 0 ? 5 : c % 2 == 0 ? 2 : 1;
    }

    d.n_fraction = integer ? 0 : d.n_fraction;

    if (c > DSA_NUMBER_STATES
        || c * (d.n_fraction + 1) > DSA_NUMBER_STATES)
    {
        if (dsa_schema_skip(s)) {
            return dsa_dfa_lengths(0, UINT32_MAX);
        }

        dsa_schema_fail(s, "multipleOf", "it has too many digits; expected at "
                        "most %d without the point", DSA_NUMBER_STATES);
        return NULL;
    }

    return dsa_number_remainders((uint32_t) c, d.n_fraction);
}


/*
 * The numbers x for which x * 10^places is a multiple of c.  State 0 is the
 * start, state 1 + j * c + r is behind j digits of the fraction, where r is
 * the remainder of all digits.  The point has states of its own, since a digit
 * must follow it; places + 1 is for digits behind the last place.
 */

static dsa_dfa_t *
dsa_number_remainders(uint32_t c, uint32_t places)
{
    uint32_t    j, r, k, d, point;
    uint64_t    rest;
    dsa_dfa_t  *dfa;

    dfa = dsa_dfa_create();

    if (dfa == NULL) {
        return NULL;
    }

    point = 1 + (places + 1) * c;

    dsa_dfa_state(dfa, 0);
    dsa_dfa_range(dfa, '-', '-', 0);

    for (d = 0; d < 10; d++) {
        dsa_dfa_range(dfa, '0' + d, '0' + d, 1 + d % c);
    }

    for (j = 0; j <= places && !dfa->failed; j++) {
        for (r = 0; r < c && !dfa->failed; r++) {
            rest = r;

            for (k = j; k < places; k++) {
                rest = rest * 10 % c;
            }

            dsa_dfa_state(dfa, rest == 0);

            if (j == 0) {
                dsa_dfa_range(dfa, '.', '.', point + r);
            }

            for (d = 0; d < 10; d++) {
                if (j == 0) {
                    dsa_dfa_range(dfa, '0' + d, '0' + d,
                                  1 + (r * 10 + d) % c);

                } else if (j < places) {
                    dsa_dfa_range(dfa, '0' + d, '0' + d,
                                  1 + (j + 1) * c + (r * 10 + d) % c);

                } else if (d == 0) {
                    dsa_dfa_range(dfa, '0', '0', 1 + j * c + r);
                }
            }
        }
    }

    for (r = 0; r < c && !dfa->failed; r++) {
        dsa_dfa_state(dfa, 0);

        for (d = 0; d < 10; d++) {
            if (places != 0) {
                dsa_dfa_range(dfa, '0' + d, '0' + d,
                              1 + c + (r * 10 + d) % c);

            } else if (d == 0) {
                dsa_dfa_range(dfa, '0', '0', point + c + r);
            }
        }
    }

    /* zeros behind the point of a multiple of an integer */

    for (r = 0; places == 0 && r < c && !dfa->failed; r++) {
        dsa_dfa_state(dfa, r == 0);
        dsa_dfa_range(dfa, '0', '0', point + c + r);
    }

    return dsa_dfa_done(dfa);
}
