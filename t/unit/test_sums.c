
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What a key has spent: the sums of one key against a model of a ledger.
 */


#include "t/unit/sums.h"


#define N_ENTRIES  400
#define N_STEPS    8000
#define N_RECENT   6                /* entries that change */


typedef struct {
    state_e  state;
    int64_t  amount;
    time_t   when;
} entry_t;


static void
check_spent(const dsa_sums_t *sums, time_t now, int known, int64_t day,
    int64_t month, int64_t total)
{
    int64_t  spent[DSA_SUMS_PERIODS];

    assert_int_equal(dsa_sums_spent(sums, now, spent), known);
    assert_int_equal(spent[DSA_SUMS_DAY], day);
    assert_int_equal(spent[DSA_SUMS_MONTH], month);
    assert_int_equal(spent[DSA_SUMS_TOTAL], total);
}


/* A day has 86400 seconds, and months are those of the calendar. */

static void
test_numbers(void **state)
{
    time_t  t;

    t = 951782400;                      /* 2000-02-29, 00:00:00 UTC */

    assert_int_equal(dsa_sums_number(DSA_SUMS_DAY, t) + 1,
                     dsa_sums_number(DSA_SUMS_DAY, t + DAY));
    assert_int_equal(dsa_sums_number(DSA_SUMS_DAY, t),
                     dsa_sums_number(DSA_SUMS_DAY, t + DAY - 1));
    assert_int_equal(dsa_sums_number(DSA_SUMS_DAY, t) - 1,
                     dsa_sums_number(DSA_SUMS_DAY, t - 1));

    assert_int_equal(dsa_sums_number(DSA_SUMS_MONTH, t),
                     dsa_sums_number(DSA_SUMS_MONTH, t + DAY - 1));
    assert_int_equal(dsa_sums_number(DSA_SUMS_MONTH, t) + 1,
                     dsa_sums_number(DSA_SUMS_MONTH, t + DAY));
    assert_int_equal(dsa_sums_number(DSA_SUMS_MONTH, t) + 12,
                     dsa_sums_number(DSA_SUMS_MONTH, t + 365 * DAY));

    assert_int_equal(dsa_sums_number(DSA_SUMS_TOTAL, t),
                     dsa_sums_number(DSA_SUMS_TOTAL, t + 4000 * DAY));
    assert_true(dsa_sums_number(DSA_SUMS_DAY, 0) > 0);
    assert_true(dsa_sums_number(DSA_SUMS_MONTH, 0) > 0);
}


static void
test_charge(void **state)
{
    int64_t          read[DSA_SUMS_PERIODS] = { 10, 20, 30 };
    dsa_sums_t       sums;
    dsa_sums_mark_t  mark;

    memset(&sums, 0, sizeof(sums));

    /* what is charged counts, although the sums are not known */

    dsa_sums_charge(&sums, 5, NOON, NOON);
    check_spent(&sums, NOON, 0, 5, 5, 5);

    /* what was confirmed after the request is not in the reply */

    dsa_sums_mark(&sums, &mark, NOON);
    dsa_sums_confirm(&sums, 5, NOON, NOON);
    dsa_sums_read(&sums, &mark, read, NOON);
    check_spent(&sums, NOON, 1, 15, 25, 35);

    /* the next reply has it */

    read_sums(&sums, NOON, 15, 25, 35);
    check_spent(&sums, NOON, 1, 15, 25, 35);

    /* what the ledger refuses stays, whatever is read */

    dsa_sums_charge(&sums, 7, NOON, NOON);
    read_sums(&sums, NOON, 15, 25, 35);
    read_sums(&sums, NOON, 15, 25, 35);
    check_spent(&sums, NOON, 1, 22, 32, 42);

    /* also when it is lost, and not when it is confirmed */

    dsa_sums_lose(&sums, 7, NOON, NOON);
    read_sums(&sums, NOON, 15, 25, 35);
    check_spent(&sums, NOON, 1, 22, 32, 42);

    dsa_sums_charge(&sums, 3, NOON, NOON);
    dsa_sums_confirm(&sums, 3, NOON, NOON);
    read_sums(&sums, NOON, 18, 28, 38);
    check_spent(&sums, NOON, 1, 25, 35, 45);

    /* a credit of the operator, and a refund beyond all bounds */

    read_sums(&sums, NOON, -100, -100, -100);
    check_spent(&sums, NOON, 1, -93, -93, -93);
    read_sums(&sums, NOON, -INT64_MAX, INT64_MAX, 0);
    check_spent(&sums, NOON, 1, INT64_MIN / 4 + 7, INT64_MAX, 7);
}


/* An entry belongs to the day on which its request ended. */

static void
test_periods(void **state)
{
    time_t           next;
    int64_t          read[DSA_SUMS_PERIODS] = { 100, 100, 100 };
    dsa_sums_t       sums;
    dsa_sums_mark_t  mark;

    memset(&sums, 0, sizeof(sums));
    next = NOON + DAY;

    read_sums(&sums, NOON, 10, 20, 30);
    dsa_sums_charge(&sums, 5, NOON, NOON);
    check_spent(&sums, NOON, 1, 15, 25, 35);

    /* it stays known at midnight, and the day begins with nothing */

    check_spent(&sums, next, 1, 0, 25, 35);
    dsa_sums_charge(&sums, 1, next, next);
    check_spent(&sums, next, 1, 1, 26, 36);

    /* yesterday's entry is confirmed today, or lost */

    dsa_sums_confirm(&sums, 5, NOON, next);
    check_spent(&sums, next, 1, 1, 26, 36);
    read_sums(&sums, next, 0, 25, 35);
    check_spent(&sums, next, 1, 1, 26, 36);

    /* or charged today, because its worker was killed */

    dsa_sums_charge(&sums, 2, NOON, next);
    check_spent(&sums, next, 1, 1, 28, 38);
    dsa_sums_lose(&sums, 2, NOON, next);
    check_spent(&sums, next, 1, 1, 28, 38);

    /* a reply of yesterday changes only what has not ended since */

    dsa_sums_mark(&sums, &mark, next);
    dsa_sums_read(&sums, &mark, read, next + DAY);
    check_spent(&sums, next + DAY, 1, 0, 103, 103);

    /* the next month, which lasts at most 31 days; lost stays in the total */

    check_spent(&sums, next + 31 * DAY, 1, 0, 0, 103);

    /*
     * a clock that was set back: nothing is known about the day, and entries of
     * it may be pending
     */

    dsa_sums_charge(&sums, 1, next + 31 * DAY, next + 31 * DAY);
    dsa_sums_begin(&sums, next);
    read_sums(&sums, next, 4, 4, 4);
    check_spent(&sums, next, 0, 4, 4, 8);

    dsa_sums_recount(&sums, (int64_t [3]) { 1, 1, 2 });
    check_spent(&sums, next, 1, 5, 5, 8);
}


/* Replies in any order: the one that was requested last counts. */

static void
test_replies(void **state)
{
    int64_t          first[DSA_SUMS_PERIODS] = { 1, 1, 1 };
    int64_t          second[DSA_SUMS_PERIODS] = { 8, 8, 8 };
    dsa_sums_t       sums;
    dsa_sums_mark_t  one, two;

    memset(&sums, 0, sizeof(sums));

    dsa_sums_mark(&sums, &one, NOON);
    dsa_sums_charge(&sums, 7, NOON, NOON);
    dsa_sums_confirm(&sums, 7, NOON, NOON);
    dsa_sums_mark(&sums, &two, NOON);

    dsa_sums_read(&sums, &two, second, NOON);
    dsa_sums_read(&sums, &one, first, NOON);
    check_spent(&sums, NOON, 1, 8, 8, 8);

    /* a reply for a key that had this row before */

    dsa_sums_mark(&sums, &one, NOON);
    sums.life++;
    dsa_sums_read(&sums, &one, first, NOON);
    check_spent(&sums, NOON, 1, 8, 8, 8);
}


/* Entries that are missing in a recount are lost; what is more is pending. */

static void
test_recount(void **state)
{
    dsa_sums_t  sums;

    memset(&sums, 0, sizeof(sums));

    read_sums(&sums, NOON, 1, 2, 3);
    dsa_sums_charge(&sums, 10, NOON, NOON);
    dsa_sums_recount(&sums, (int64_t [3]) { 4, 4, 4 });
    check_spent(&sums, NOON, 1, 11, 12, 13);

    dsa_sums_confirm(&sums, 4, NOON, NOON);
    read_sums(&sums, NOON, 5, 6, 7);
    check_spent(&sums, NOON, 1, 11, 12, 13);

    dsa_sums_recount(&sums, (int64_t [3]) { 3, 3, 3 });
    check_spent(&sums, NOON, 1, 14, 15, 16);
    dsa_sums_recount(&sums, (int64_t [3]) { 3, 3, 3 });
    check_spent(&sums, NOON, 1, 14, 15, 16);
}


/* The ledger's sum of a period with entries of this host and of others. */

static int64_t
ledger_sum(const entry_t *entries, const entry_t *others, int period,
    time_t now)
{
    int      i;
    int64_t  sum;

    sum = 0;

    for (i = 0; i < N_ENTRIES; i++) {

        if ((entries[i].state == EXECUTED || entries[i].state == CONFIRMED)
            && dsa_sums_number(period, entries[i].when)
               == dsa_sums_number(period, now))
        {
            sum += entries[i].amount;
        }

        if (others[i].state != UNUSED
            && dsa_sums_number(period, others[i].when)
               == dsa_sums_number(period, now))
        {
            sum += others[i].amount;
        }
    }

    return sum;
}


/* What one host alone has spent. */

static int64_t
host_sum(const entry_t *entries, int period, time_t now)
{
    int      i;
    int64_t  sum;

    sum = 0;

    for (i = 0; i < N_ENTRIES; i++) {
        if (entries[i].state != UNUSED
            && dsa_sums_number(period, entries[i].when)
               == dsa_sums_number(period, now))
        {
            sum += entries[i].amount;
        }
    }

    return sum;
}


/*
 * Random entries, replies that are late, hosts that spend as well, and
 * midnights: never less than what this host has spent, and others up to the
 * last read, and the exact sum when nothing is under way.
 */

static void
test_model(void **state)
{
    int              i, k, step, n, n_others, reading;
    time_t           now, asked, seen;
    int64_t          spent[DSA_SUMS_PERIODS], read[DSA_SUMS_PERIODS], lost;
    int64_t          other[DSA_SUMS_PERIODS], known[DSA_SUMS_PERIODS];
    entry_t          entries[N_ENTRIES], others[N_ENTRIES], *e;
    dsa_sums_t       sums;
    dsa_sums_mark_t  mark;

    memset(&sums, 0, sizeof(sums));
    memset(entries, 0, sizeof(entries));
    memset(others, 0, sizeof(others));
    memset(known, 0, sizeof(known));

    n = 0;
    n_others = 0;
    reading = 0;
    now = NOON;
    asked = now;
    seen = now;

    for (step = 0; step < N_STEPS; step++) {
        e = &entries[n > N_RECENT ? n - 1 - rand() % N_RECENT : 0];

        switch (rand() % 9) {

        case 0:
            if (n < N_ENTRIES) {
                entries[n] = (entry_t) { CHARGED, rand() % 1000, now };
                dsa_sums_charge(&sums, entries[n].amount, now, now);
                n++;
            }

            break;

        case 1:
        case 2:
            if (e->state == CHARGED) {
                e->state = EXECUTED;
            }

            break;

        case 3:
        case 4:
            if (e->state == EXECUTED) {
                e->state = CONFIRMED;
                dsa_sums_confirm(&sums, e->amount, e->when, now);
            }

            break;

        case 5:
            if (e->state == CHARGED && rand() % 20 == 0) {
                e->state = LOST;
                dsa_sums_lose(&sums, e->amount, e->when, now);
            }

            break;

        case 6:
            if (n_others < N_ENTRIES) {
                others[n_others++] = (entry_t) { CONFIRMED, rand() % 1000,
                                                 now };
            }

            break;

        case 7:
            if (reading == 0) {
                dsa_sums_mark(&sums, &mark, now);
                asked = now;
                reading = 1;

            } else if (reading == 1) {
                for (k = 0; k < DSA_SUMS_PERIODS; k++) {
                    read[k] = ledger_sum(entries, others, k, now);
                    other[k] = host_sum(others, k, now);
                }

                reading = 2;

            } else {
                dsa_sums_read(&sums, &mark, read, now);
                reading = 0;

                for (k = 0; k < DSA_SUMS_PERIODS; k++) {
                    known[k] = dsa_sums_number(k, asked)
                               == dsa_sums_number(k, now) ? other[k] : 0;
                }

                seen = now;
            }

            break;

        default:
            if (reading != 1) {
                now += rand() % (DAY / 10);
            }
        }

        (void) dsa_sums_spent(&sums, now, spent);

        for (k = 0; k < DSA_SUMS_PERIODS; k++) {
            assert_true(spent[k] >= host_sum(entries, k, now)
                                    + (dsa_sums_number(k, seen)
                                       == dsa_sums_number(k, now)
                                       ? known[k] : 0));
        }
    }

    assert_int_equal(n, N_ENTRIES);

    for (i = 0; i < N_ENTRIES; i++) {
        if (entries[i].state == CHARGED || entries[i].state == EXECUTED) {
            entries[i].state = CONFIRMED;
            dsa_sums_confirm(&sums, entries[i].amount, entries[i].when, now);
        }
    }

    read_sums(&sums, now, ledger_sum(entries, others, 0, now),
              ledger_sum(entries, others, 1, now),
              ledger_sum(entries, others, 2, now));

    assert_int_equal(dsa_sums_spent(&sums, now, spent), 1);

    for (k = 0; k < DSA_SUMS_PERIODS; k++) {
        lost = 0;

        for (i = 0; i < N_ENTRIES; i++) {
            lost += entries[i].state == LOST
                    && dsa_sums_number(k, entries[i].when)
                       == dsa_sums_number(k, now) ? entries[i].amount : 0;
        }

        assert_int_equal(spent[k], ledger_sum(entries, others, k, now) + lost);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_charge),
        cmocka_unit_test(test_periods),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_recount),
        cmocka_unit_test(test_model)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
