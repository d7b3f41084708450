
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_NUMBER_H_INCLUDED_
#define _DSA_NUMBER_H_INCLUDED_


#include "base/buf.h"
#include "grammar/schema.h"


/* Inside grammar/: parts of the automata of numbers. */

#define DSA_NUMBER_PLAIN    19          /* most digits before the point */
#define DSA_NUMBER_DIGITS   40          /* most digits of a bound */


__extension__ typedef __int128  dsa_wide_t;


/* A decimal number: integer and fraction without needless zeros. */

typedef struct {
    int                  negative;
    int                  huge;          /* more digits than are permitted */
    uint32_t             n;             /* digits of integer, at least 1 */
    uint32_t             n_fraction;
    char                 integer[DSA_NUMBER_DIGITS + 1];
    char                 fraction[DSA_NUMBER_DIGITS + 1];
} dsa_decimal_t;


/* The integers from least to most, of at most DSA_NUMBER_PLAIN digits. */
dsa_dfa_t *dsa_number_range(dsa_wide_t least, dsa_wide_t most);

/*
 * Reads a number of a schema; a huge one has no digits.  DSA_ERROR: v is not a
 * number, or it has more than DSA_NUMBER_DIGITS digits behind the point or
 * twice as many in all.
 */
int dsa_number_decimal(const dsa_json_t *v, dsa_decimal_t *d);

/* Returns 1 if the number is 0. */
int dsa_number_zero(const dsa_decimal_t *d);

/*
 * The numbers of one sign whose magnitude is greater, or less, than that of d,
 * or equal to it unless strict.  The result belongs to the caller.  NULL: out
 * of memory, or of the work of s.
 */
dsa_dfa_t *dsa_number_compare(dsa_schema_t *s, const dsa_decimal_t *d,
    int greater, int strict, int negative);

/*
 * Makes the automaton of a pattern for the whole text, and frees b.  The result
 * belongs to the caller.  NULL: out of memory, or of the work of s.
 */
dsa_dfa_t *dsa_number_pattern(dsa_schema_t *s, dsa_buf_t *b);


#endif /* _DSA_NUMBER_H_INCLUDED_ */
