
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Times of the tests of what keys have spent, and the sums that they expect.
 */


#ifndef _T_SUMS_H_INCLUDED_
#define _T_SUMS_H_INCLUDED_


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/sums_table.h"


#define DAY   86400
#define NOON  (20000 * (time_t) DAY + DAY / 2)


/* An entry of this host in the model. */

typedef enum {
    UNUSED = 0,
    CHARGED,
    EXECUTED,                           /* by the ledger */
    CONFIRMED,                          /* which this host has heard */
    LOST
} state_e;


static inline void
read_sums(dsa_sums_t *sums, time_t now, int64_t day, int64_t month,
    int64_t total)
{
    int64_t          read[DSA_SUMS_PERIODS] = { day, month, total };
    dsa_sums_mark_t  mark;

    dsa_sums_mark(sums, &mark, now);
    dsa_sums_read(sums, &mark, read, now);
}


#endif /* _T_SUMS_H_INCLUDED_ */
