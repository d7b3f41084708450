
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MONEY_H_INCLUDED_
#define _DSA_MONEY_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "str.h"


/*
 * Money is counted in integers: an amount is an int64_t in 10^-12 of the unit
 * of the operator's currency, so sums are exact.  A price has at most 6
 * decimals and is given for a million tokens, so the price of one token is a
 * whole number of these parts: 0.28 for a million is 280,000 for each.
 */

#define DSA_MONEY_UNIT       1000000000000LL

/* the largest price and the largest amount that are read, in units */

#define DSA_MONEY_MAX_PRICE  1000000
#define DSA_MONEY_MAX        1000000

/* room for a printed amount */

#define DSA_MONEY_LEN        48


/*
 * Reads a price for a million tokens: digits, and at most 6 decimals.  *price
 * is that of one token.  DSA_OK, or DSA_ERROR with what would be accepted.
 */
int dsa_money_price(dsa_str_t text, int64_t *price, dsa_err_t *err);

/*
 * Reads an amount that is not negative: digits, and at most 12 decimals.
 * DSA_OK, or DSA_ERROR with what would be accepted.
 */
int dsa_money_amount(dsa_str_t text, int64_t *amount, dsa_err_t *err);

/*
 * Prints an amount in units, with as many decimals as it has and at least
 * `least` of them (at most 12): "0.0042", or "1.50" with 2.  Returns the number
 * of bytes.
 */
size_t dsa_money_print(char text[DSA_MONEY_LEN], int64_t amount, int least);


#endif /* _DSA_MONEY_H_INCLUDED_ */
