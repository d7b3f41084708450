
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Decimal numbers of schemas, and comparisons with them as patterns: the digits
 * are equal up to one that is greater, or there are more of them.
 */


#include <stdlib.h>

#include "grammar/number.h"
#include "grammar/regex.h"


static void dsa_number_greater(dsa_buf_t *b, const dsa_decimal_t *d,
    int strict);
static void dsa_number_less(dsa_buf_t *b, const dsa_decimal_t *d, int strict);
static void dsa_number_digit(dsa_buf_t *b, const char *digits, uint32_t i,
    int greater, char lowest);


int
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


int
dsa_number_zero(const dsa_decimal_t *d)
{
    return !d->huge && d->n == 1 && d->integer[0] == '0' && d->n_fraction == 0;
}


dsa_dfa_t *
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


dsa_dfa_t *
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
