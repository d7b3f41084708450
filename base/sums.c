
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "sums.h"


#define DSA_SUMS_SECONDS  86400         /* of a day */

/* the lowest sum of a ledger, so that differences of sums do not overflow */

#define DSA_SUMS_LEAST    (INT64_MIN / 4)


static int64_t dsa_sums_add(int64_t a, int64_t b);


int64_t
dsa_sums_number(dsa_sums_period_e period, time_t t)
{
    struct tm  tm;

    switch (period) {

    case DSA_SUMS_DAY:
        return t / DSA_SUMS_SECONDS + 1;

    case DSA_SUMS_MONTH:
        if (gmtime_r(&t, &tm) == NULL) {
            return 1;
        }

        return (int64_t) tm.tm_year * 12 + tm.tm_mon + 1;

    default: /* DSA_SUMS_TOTAL */
        return 1;
    }
}


/*
 * In a new period nothing is spent; what other hosts have spent in it is added
 * by the next read.  A period that lies ahead is that of a clock that was set
 * back since.  Then nothing is known about the earlier period, which began long
 * ago.
 */

void
dsa_sums_begin(dsa_sums_t *sums, time_t now)
{
    int         i;
    int64_t     number;
    dsa_sum_t  *sum;

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &sums->periods[i];
        number = dsa_sums_number(i, now);

        if (sum->number == number) {
            continue;
        }

        if (sum->number > number) {
            sums->known = 0;
            sums->uncounted = 1;
        }

        *sum = (dsa_sum_t) { .number = number };
    }

    sums->used = now;
}


void
dsa_sums_charge(dsa_sums_t *sums, int64_t amount, time_t when, time_t now)
{
    int         i;
    dsa_sum_t  *sum;

    assert(amount >= 0);

    dsa_sums_begin(sums, now);

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &sums->periods[i];

        if (sum->number == dsa_sums_number(i, when)) {
            sum->pending = dsa_sums_add(sum->pending, amount);
        }
    }
}


void
dsa_sums_confirm(dsa_sums_t *sums, int64_t amount, time_t when, time_t now)
{
    int         i;
    dsa_sum_t  *sum;

    assert(amount >= 0);

    dsa_sums_begin(sums, now);

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &sums->periods[i];

        if (sum->number == dsa_sums_number(i, when)) {
            sum->pending -= amount < sum->pending ? amount : sum->pending;
            sum->confirmed += (uint64_t) amount;
        }
    }
}


void
dsa_sums_lose(dsa_sums_t *sums, int64_t amount, time_t when, time_t now)
{
    int         i;
    dsa_sum_t  *sum;

    assert(amount >= 0);

    dsa_sums_begin(sums, now);

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &sums->periods[i];

        if (sum->number == dsa_sums_number(i, when)) {
            sum->pending -= amount < sum->pending ? amount : sum->pending;
            sum->lost = dsa_sums_add(sum->lost, amount);
        }
    }
}


void
dsa_sums_mark(dsa_sums_t *sums, dsa_sums_mark_t *mark, time_t now)
{
    int  i;

    dsa_sums_begin(sums, now);

    mark->life = sums->life;

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        mark->number[i] = sums->periods[i].number;
        mark->confirmed[i] = sums->periods[i].confirmed;
    }
}


void
dsa_sums_read(dsa_sums_t *sums, const dsa_sums_mark_t *mark,
    const int64_t read[DSA_SUMS_PERIODS], time_t now)
{
    int         i, n;
    dsa_sum_t  *sum;

    if (sums->life != mark->life) {
        return;
    }

    dsa_sums_begin(sums, now);

    n = 0;

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &sums->periods[i];

        if (sum->number != mark->number[i]
            || mark->confirmed[i] - sum->base > INT64_MAX)
        {
            continue;
        }

        sum->read = read[i] > DSA_SUMS_LEAST ? read[i] : DSA_SUMS_LEAST;
        sum->base = mark->confirmed[i];
        n++;
    }

    if (n == DSA_SUMS_PERIODS) {
        sums->known = 1;
    }
}


void
dsa_sums_recount(dsa_sums_t *sums, const int64_t pending[DSA_SUMS_PERIODS])
{
    int         i;
    dsa_sum_t  *sum;

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &sums->periods[i];

        if (pending[i] < sum->pending) {
            sum->lost = dsa_sums_add(sum->lost, sum->pending - pending[i]);
        }

        sum->pending = pending[i];
    }

    sums->uncounted = 0;
}


int
dsa_sums_spent(const dsa_sums_t *sums, time_t now,
    int64_t spent[DSA_SUMS_PERIODS])
{
    int               i;
    uint64_t          settled;
    dsa_sums_t        copy;
    const dsa_sum_t  *sum;

    copy = *sums;

    dsa_sums_begin(&copy, now);

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        sum = &copy.periods[i];

        settled = sum->confirmed - sum->base;

        if (settled > INT64_MAX) {
            settled = INT64_MAX;
        }

        spent[i] = dsa_sums_add(sum->read, (int64_t) settled);
        spent[i] = dsa_sums_add(spent[i], sum->pending);
        spent[i] = dsa_sums_add(spent[i], sum->lost);
    }

    return copy.known && !copy.uncounted;
}


/* Adds an amount that is at least 0; the sum has a limit. */

static int64_t
dsa_sums_add(int64_t a, int64_t b)
{
    int64_t  sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
