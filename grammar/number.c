
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Numbers as automata over their digits.  A comparison with a bound is a
 * pattern: the digits are equal up to one that is greater, or there are more
 * of them.  A remainder is a state for each value, updated digit by digit.
 */


#include <stdlib.h>

#include "base/buf.h"
#include "grammar/regex.h"
#include "grammar/schema.h"


#define DSA_NUMBER_DIGITS   40          /* most digits of a bound */
#define DSA_NUMBER_PLAIN    19          /* most digits before the point */
#define DSA_NUMBER_EXACT    15          /* digits that a double keeps */
#define DSA_NUMBER_STATES   8192        /* most remainders of multipleOf */


/* A decimal number: integer and fraction without needless zeros. */

typedef struct {
    int                  negative;
    int                  huge;          /* more digits than are permitted */
    uint32_t             n;             /* digits of integer, at least 1 */
    uint32_t             n_fraction;
    char                 integer[DSA_NUMBER_DIGITS + 1];
    char                 fraction[DSA_NUMBER_DIGITS + 1];
} dsa_decimal_t;


typedef struct {
    const char          *keyword;
    int                  lower;
    int                  strict;
    int                  present;
    dsa_decimal_t        value;
} dsa_bound_t;


#define DSA_NUMBER_BOUNDS   4


static int dsa_number_decimal(const dsa_json_t *v, dsa_decimal_t *d);
static int dsa_number_zero(const dsa_decimal_t *d);
static dsa_dfa_t *dsa_number_side(dsa_schema_t *s, const dsa_bound_t *bound,
    int negative, int integer, uint32_t digits);
static dsa_dfa_t *dsa_number_compare(dsa_schema_t *s, const dsa_decimal_t *d,
    int greater, int strict, int negative);
static void dsa_number_greater(dsa_buf_t *b, const dsa_decimal_t *d,
    int strict);
static void dsa_number_less(dsa_buf_t *b, const dsa_decimal_t *d, int strict);
static void dsa_number_digit(dsa_buf_t *b, const char *digits, uint32_t i,
    int greater, char lowest);
static dsa_dfa_t *dsa_number_pattern(dsa_schema_t *s, dsa_buf_t *b);
static dsa_dfa_t *dsa_number_either(dsa_dfa_t *a, dsa_dfa_t *b);
static dsa_dfa_t *dsa_number_multiple(dsa_schema_t *s, const dsa_json_t *v,
    int integer);
static dsa_dfa_t *dsa_number_remainders(uint32_t c, uint32_t places);


dsa_dfa_t *
dsa_number(dsa_schema_t *s, const dsa_json_t *schema, int integer)
{
    uint32_t           i, n, digits;
    dsa_buf_t          b;
    dsa_dfa_t         *dfa;
    const dsa_json_t  *v;
    dsa_bound_t        bound[DSA_NUMBER_BOUNDS] = {
        { .keyword = "minimum", .lower = 1 },
        { .keyword = "exclusiveMinimum", .lower = 1, .strict = 1 },
        { .keyword = "maximum" },
        { .keyword = "exclusiveMaximum", .strict = 1 }
    };

    if (schema == NULL) {
        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, "-?(?:0|[1-9]\\d{0,18})");

        if (!integer) {
            dsa_buf_addz(&b, "(?:\\.\\d{1,20})?(?:[eE][+-]?\\d{1,2})?");
        }

        dfa = dsa_number_pattern(s, &b);

        if (dfa == NULL) {
            dsa_schema_fail(s, NULL, "there is no memory for numbers");
        }

        return dfa;
    }

    n = 1;
    digits = 0;

    for (i = 0; i < DSA_NUMBER_BOUNDS; i++) {
        v = dsa_json_get(schema, bound[i].keyword);

        if (v == NULL) {
            continue;
        }

        if (dsa_number_decimal(v, &bound[i].value) != DSA_OK) {
            dsa_schema_fail(s, bound[i].keyword, "it is not a number with at "
                            "most %d digits", DSA_NUMBER_DIGITS);
            return NULL;
        }

        bound[i].present = 1;
        n = bound[i].value.n > n ? bound[i].value.n : n;

        if (bound[i].value.n_fraction > digits) {
            digits = bound[i].value.n_fraction;
        }
    }

    /* with more digits a number would be rounded to the bound by its reader */

    if (n < DSA_NUMBER_EXACT && DSA_NUMBER_EXACT - n > digits) {
        digits = DSA_NUMBER_EXACT - n;
    }

    dfa = dsa_number_either(dsa_number_side(s, bound, 0, integer, digits),
                            dsa_number_side(s, bound, 1, integer, digits));

    v = dsa_json_get(schema, "multipleOf");

    if (v != NULL) {
        dfa = dsa_dfa_intersect(dfa, dsa_number_multiple(s, v,
                                                          integer));
    }

    if (dfa == NULL) {
        dsa_schema_fail(s, NULL, "its numbers need too much memory; expected "
                        "a smaller multipleOf, or bounds with fewer digits");
    }

    return dfa;
}


static int
dsa_number_decimal(const dsa_json_t *v, dsa_decimal_t *d)
{
    char      digits[2 * DSA_NUMBER_DIGITS];
    int64_t   exponent, point;
    size_t    i;
    uint32_t  n;

    memset(d, 0, sizeof(dsa_decimal_t));

    if (v->type != DSA_JSON_INTEGER && v->type != DSA_JSON_FLOAT) {
        return DSA_ERROR;
    }

    n = 0;
    point = -1;
    exponent = 0;

    for (i = 0; i < v->text.len; i++) {

        switch (v->text.data[i]) {

        case '-':
            d->negative = 1;
            break;

        case '.':
            point = n;
            break;

        case 'e':
        case 'E':
            exponent = strtol(v->text.data + i + 1, NULL, 10);
            i = v->text.len - 1;
            break;

        default:
            if (n == sizeof(digits)) {
                return DSA_ERROR;
            }

            digits[n++] = v->text.data[i];
        }
    }

    if (exponent > 1000 || exponent < -1000) {
        exponent = exponent > 0 ? 1000 : -1000;
    }

    point = (point < 0 ? n : point) + exponent;

    while (n != 0 && digits[n - 1] == '0') {
        n--;
    }

    for (i = 0; i < n && digits[i] == '0'; i++) {
        /* void */
    }

    if (i == n) {
        point = 0;
        n = 0;
        i = 0;
        d->negative = 0;
    }

    if (point - (int64_t) i > DSA_NUMBER_PLAIN) {
        d->huge = 1;
        return DSA_OK;
    }

    /* of the digits from i to n, the first "point" ones are the integer */

    point -= (int64_t) i;

    for ( /* void */ ; point > 0; point--) {
        d->integer[d->n++] = i < n ? digits[i] : '0';
        i++;
    }

    for ( /* void */ ; point < 0 && i < n; point++) {
        if (d->n_fraction == DSA_NUMBER_DIGITS) {
            return DSA_ERROR;
        }

        d->fraction[d->n_fraction++] = '0';
    }

    for ( /* void */ ; i < n; i++) {
        if (d->n_fraction == DSA_NUMBER_DIGITS) {
            return DSA_ERROR;
        }

        d->fraction[d->n_fraction++] = digits[i];
    }

    if (d->n == 0) {
        d->integer[d->n++] = '0';
    }

    return DSA_OK;
}


static int
dsa_number_zero(const dsa_decimal_t *d)
{
    return !d->huge && d->n == 1 && d->integer[0] == '0' && d->n_fraction == 0;
}


/* The numbers with or without a minus sign that satisfy all bounds. */

static dsa_dfa_t *
dsa_number_side(dsa_schema_t *s, const dsa_bound_t *bound, int negative,
    int integer, uint32_t digits)
{
    int                   greater, strict;
    uint32_t              i;
    dsa_buf_t             b;
    dsa_dfa_t            *dfa;
    const dsa_decimal_t  *d;

    static const dsa_decimal_t  zero = { .n = 1, .integer = "0" };

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, negative ? "-" : "");
    dsa_buf_printf(&b, "(?:0|[1-9]\\d{0,%d})", integer ? DSA_NUMBER_PLAIN - 1
                   : DSA_NUMBER_EXACT - 1);

    if (!integer && digits != 0) {
        dsa_buf_printf(&b, "(?:\\.\\d{1,%u})?", digits);
    }

    dfa = dsa_number_pattern(s, &b);

    if (negative) {
        dfa = dsa_dfa_intersect(dfa, dsa_number_compare(s, &zero, 1, 1, 1));
    }

    for (i = 0; i < DSA_NUMBER_BOUNDS && dfa != NULL; i++) {

        if (!bound[i].present) {
            continue;
        }

        d = &bound[i].value;
        strict = bound[i].strict;

        /* the magnitude of a negative number is compared the other way */

        greater = bound[i].lower != negative;

        if (d->negative != negative) {

            /*
             * The bound has the other sign, or it is 0, and all numbers of
             * this sign are on one side of it.
             */

            if (bound[i].lower == negative) {
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


/* The numbers of one sign whose magnitude is greater, or less, than d. */

static dsa_dfa_t *
dsa_number_compare(dsa_schema_t *s, const dsa_decimal_t *d, int greater,
    int strict, int negative)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, negative ? "-(?:" : "(?:");

    if (greater) {
        dsa_number_greater(&b, d, strict);

    } else {
        dsa_number_less(&b, d, strict);
    }

    dsa_buf_addz(&b, ")");

    return dsa_number_pattern(s, &b);
}


static void
dsa_number_greater(dsa_buf_t *b, const dsa_decimal_t *d, int strict)
{
    uint32_t  i;

    dsa_buf_printf(b, "[1-9]\\d{%u,}(?:\\.\\d+)?", d->n);

    for (i = 0; i < d->n; i++) {
        if (d->integer[i] != '9') {
            dsa_buf_addz(b, "|");
            dsa_number_digit(b, d->integer, i, 1, '0');
            dsa_buf_printf(b, "\\d{%u}(?:\\.\\d+)?", d->n - i - 1);
        }
    }

    dsa_buf_printf(b, "|%.*s", (int) d->n, d->integer);

    if (d->n_fraction == 0) {
        dsa_buf_addz(b, strict ? "\\.\\d*[1-9]\\d*" : "(?:\\.\\d+)?");
        return;
    }

    dsa_buf_addz(b, "\\.(?:");

    for (i = 0; i < d->n_fraction; i++) {
        if (d->fraction[i] != '9') {
            dsa_number_digit(b, d->fraction, i, 1, '0');
            dsa_buf_addz(b, "\\d*|");
        }
    }

    dsa_buf_printf(b, "%.*s%s)", (int) d->n_fraction, d->fraction,
                   strict ? "\\d*[1-9]\\d*" : "\\d*");
}


static void
dsa_number_less(dsa_buf_t *b, const dsa_decimal_t *d, int strict)
{
    char      lowest;
    uint32_t  i;

    dsa_buf_addz(b, "[]");          /* nothing, in front of alternatives */

    if (d->n > 1) {
        dsa_buf_printf(b, "|(?:0|[1-9]\\d{0,%u})(?:\\.\\d+)?", d->n - 2);
    }

    for (i = 0; i < d->n; i++) {
        lowest = i == 0 && d->n > 1 ? '1' : '0';

        if (d->integer[i] > lowest) {
            dsa_buf_addz(b, "|");
            dsa_number_digit(b, d->integer, i, 0, lowest);
            dsa_buf_printf(b, "\\d{%u}(?:\\.\\d+)?", d->n - i - 1);
        }
    }

    if (d->n_fraction == 0) {
        if (!strict) {
            dsa_buf_printf(b, "|%.*s(?:\\.0+)?", (int) d->n, d->integer);
        }

        return;
    }

    dsa_buf_printf(b, "|%.*s(?:\\.(?:[]", (int) d->n, d->integer);

    for (i = 0; i < d->n_fraction; i++) {
        if (d->fraction[i] != '0') {
            dsa_buf_addz(b, "|");
            dsa_number_digit(b, d->fraction, i, 0, '0');
            dsa_buf_addz(b, "\\d*");
        }

        if (i != 0) {
            dsa_buf_printf(b, "|%.*s", (int) i, d->fraction);
        }
    }

    if (!strict) {
        dsa_buf_printf(b, "|%.*s0*", (int) d->n_fraction, d->fraction);
    }

    dsa_buf_addz(b, "))?");
}


/* The digits before digit i, and one that is greater or less. */

static void
dsa_number_digit(dsa_buf_t *b, const char *digits, uint32_t i, int greater,
    char lowest)
{
    dsa_buf_printf(b, "%.*s[%c-%c]", (int) i, digits,
                   greater ? digits[i] + 1 : lowest,
                   greater ? '9' : digits[i] - 1);
}


/* Makes the automaton of a pattern for the whole text, and frees b. */

static dsa_dfa_t *
dsa_number_pattern(dsa_schema_t *s, dsa_buf_t *b)
{
    dsa_buf_t   whole;
    dsa_dfa_t  *dfa;
    dsa_err_t   error;

    memset(&whole, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&whole, "^(?:");
    dsa_buf_add(&whole, b->data, b->len);
    dsa_buf_addz(&whole, ")$");

    dfa = b->failed || whole.failed
          ? NULL : dsa_regex(dsa_str(whole.data, whole.len), &s->work, &error);

    dsa_buf_free(b);
    dsa_buf_free(&whole);

    return dfa;
}


/* What one of two automata accepts; consumes both. */

static dsa_dfa_t *
dsa_number_either(dsa_dfa_t *a, dsa_dfa_t *b)
{
    return dsa_dfa_complement(dsa_dfa_intersect(dsa_dfa_complement(a),
                                                dsa_dfa_complement(b)));
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
