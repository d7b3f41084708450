
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "money.h"


#define DSA_MONEY_DECIMALS  12


static int dsa_money_decimal(dsa_str_t text, int decimals, int64_t max,
    int64_t *value);


int
dsa_money_price(dsa_str_t text, int64_t *price, dsa_err_t *err)
{
    if (dsa_money_decimal(text, 6, DSA_MONEY_MAX_PRICE, price) != DSA_OK) {
        return dsa_error(err, "\"%.*s\" is not a price; expected a number up "
                         "to %d with at most 6 decimals",
                         (int) (text.len < 64 ? text.len : 64), text.data,
                         DSA_MONEY_MAX_PRICE);
    }

    return DSA_OK;
}


int
dsa_money_amount(dsa_str_t text, int64_t *amount, dsa_err_t *err)
{
    if (dsa_money_decimal(text, DSA_MONEY_DECIMALS, DSA_MONEY_MAX, amount)
        != DSA_OK)
    {
        return dsa_error(err, "\"%.*s\" is not an amount; expected a number "
                         "up to %d with at most %d decimals",
                         (int) (text.len < 64 ? text.len : 64), text.data,
                         DSA_MONEY_MAX, DSA_MONEY_DECIMALS);
    }

    return DSA_OK;
}


/* Reads a decimal number up to max as an integer of 10^-decimals. */

static int
dsa_money_decimal(dsa_str_t text, int decimals, int64_t max, int64_t *value)
{
    int      point, n;
    size_t   i;
    int64_t  v, limit;

    v = 0;
    n = 0;
    point = 0;
    limit = max;

    for (i = 0; i < (size_t) decimals; i++) {
        limit *= 10;
    }

    for (i = 0; i < text.len; i++) {

        if (text.data[i] == '.' && !point && i != 0) {
            point = 1;
            continue;
        }

        if (text.data[i] < '0' || text.data[i] > '9'
            || (point && n == decimals)
            || v > (limit - (text.data[i] - '0')) / 10)
        {
            return DSA_ERROR;
        }

        v = v * 10 + (text.data[i] - '0');
        n += point;
    }

    if (text.len == 0 || (point && n == 0)) {
        return DSA_ERROR;
    }

    for ( /* void */ ; n < decimals; n++) {

        if (v > limit / 10) {
            return DSA_ERROR;
        }

        v *= 10;
    }

    *value = v;

    return DSA_OK;
}


size_t
dsa_money_print(char text[DSA_MONEY_LEN], int64_t amount, int least)
{
    size_t    n, end;
    uint64_t  v;

    static const uint64_t  unit = DSA_MONEY_UNIT;

    assert(least >= 0 && least <= DSA_MONEY_DECIMALS);

    v = amount < 0 ? 0 - (uint64_t) amount : (uint64_t) amount;

    n = (size_t) snprintf(text, DSA_MONEY_LEN, "%s%" PRIu64 ".%012" PRIu64,
                          amount < 0 ? "-" : "", v / unit, v % unit);

    end = n - (size_t) (DSA_MONEY_DECIMALS - least);

    while (n > end && text[n - 1] == '0') {
        n--;
    }

    if (text[n - 1] == '.') {
        n--;
    }

    return n;
}
