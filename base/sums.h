
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUMS_H_INCLUDED_
#define _DSA_SUMS_H_INCLUDED_


#include <stdint.h>
#include <time.h>


/*
 * What one API key has spent: in the current day, in the current month (both in
 * UTC), and in total.  A central ledger has the sums of all hosts; this host
 * knows them as they were last read, and what it has charged itself since then.
 *
 * A charge is pending until the ledger confirms its entry.  What was confirmed
 * before a sum was read is a part of that sum, and everything else is added to
 * it.  So a charge may count twice until the next read, and never less than
 * once.  An entry that the ledger will never have is lost: it counts until the
 * end of the period.
 *
 * A charge belongs to the day and the month of its entry, when.  Amounts are
 * 10^-12 of a unit; when and now are seconds since 1970.  Zeroed memory is
 * a key that has spent nothing here and whose sums are not known.
 */

typedef enum {
    DSA_SUMS_DAY = 0,
    DSA_SUMS_MONTH,
    DSA_SUMS_TOTAL,
    DSA_SUMS_PERIODS
} dsa_sums_period_e;


typedef struct {
    int64_t      number;            /* of the day or month; 0: not begun */
    int64_t      read;              /* the ledger's sum, as last read */
    uint64_t     confirmed;         /* of charges since the first one, modulo
                                       2^64 */
    uint64_t     base;              /* confirmed when the sum was read */
    int64_t      pending;
    int64_t      lost;
} dsa_sum_t;


typedef struct {
    uint64_t     life;              /* of this key in this memory; the one of
                                       an earlier key is another one */
    int64_t      used;              /* the time of the last change */
    uint32_t     known;             /* 1: the ledger's sums were read */
    uint32_t     uncounted;         /* 1: pending may lack entries until the
                                       next recount */
    dsa_sum_t    periods[DSA_SUMS_PERIODS];
} dsa_sums_t;


/* The state when the ledger's sums are requested. */

typedef struct {
    uint64_t     life;
    int64_t      number[DSA_SUMS_PERIODS];
    uint64_t     confirmed[DSA_SUMS_PERIODS];
} dsa_sums_mark_t;


/* The number of the period that contains t, above 0, and growing with t. */
int64_t dsa_sums_number(dsa_sums_period_e period, time_t t);

/*
 * Begins the periods that contain now, if others were in use; all functions
 * with now do this first.
 */
void dsa_sums_begin(dsa_sums_t *sums, time_t now);

/*
 * An entry was charged, was confirmed, or is lost.  Confirm or lose it once
 * after it was charged.  An amount is at least 0.
 */
void dsa_sums_charge(dsa_sums_t *sums, int64_t amount, time_t when,
    time_t now);
void dsa_sums_confirm(dsa_sums_t *sums, int64_t amount, time_t when,
    time_t now);
void dsa_sums_lose(dsa_sums_t *sums, int64_t amount, time_t when, time_t now);

/*
 * The ledger's sums are requested after the mark was set, and applied when they
 * arrive.  Sums that were requested before those that were applied last change
 * nothing.
 */
void dsa_sums_mark(dsa_sums_t *sums, dsa_sums_mark_t *mark, time_t now);
void dsa_sums_read(dsa_sums_t *sums, const dsa_sums_mark_t *mark,
    const int64_t read[DSA_SUMS_PERIODS], time_t now);

/*
 * Sets what is pending to the sum over all entries that are charged and not
 * confirmed, of the periods in sums.  If that is less than before, entries have
 * disappeared, and are lost.
 */
void dsa_sums_recount(dsa_sums_t *sums,
    const int64_t pending[DSA_SUMS_PERIODS]);

/*
 * What is spent in the periods that contain now.  Returns 1, or 0: that is not
 * known, and spent has only what this host has counted.
 */
int dsa_sums_spent(const dsa_sums_t *sums, time_t now,
    int64_t spent[DSA_SUMS_PERIODS]);


#endif /* _DSA_SUMS_H_INCLUDED_ */
