
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/usage_sum.h"


#define DSA_USAGE_ARENA  (64 * 1024)            /* of one command */


/* The fields of the sums of a tenant. */

typedef struct {
    dsa_usage_sum_t          *sum;
    dsa_arena_t              *arena;
    dsa_client_t             *client;
    dsa_str_t                 name;
    dsa_str_t                 digits;
    const dsa_usage_range_t  *range;
    int64_t                   rolled;   /* the first day that is not folded */
} dsa_usage_tenant_t;


static int dsa_usage_once(dsa_usage_tenant_t *t, dsa_err_t *err);
static int dsa_usage_rolled(dsa_usage_tenant_t *t, dsa_err_t *err);
static int dsa_usage_month(dsa_usage_tenant_t *t, int64_t first, int64_t next,
    dsa_err_t *err);
static int dsa_usage_period(dsa_usage_tenant_t *t, const char *period,
    int add, size_t *found, dsa_err_t *err);
static int dsa_usage_fields(dsa_usage_tenant_t *t, const char *period,
    const redisReply *reply, int add, size_t *found, dsa_err_t *err);
static dsa_usage_row_t *dsa_usage_row(dsa_usage_tenant_t *t, dsa_str_t model,
    dsa_err_t *err);
static int64_t dsa_usage_next_month(int64_t day);


/*
 * A day may be folded while this program reads: then it would be counted twice,
 * and everything is read again.
 */

int
dsa_usage_add(dsa_usage_sum_t *sum, dsa_arena_t *arena, dsa_client_t *client,
    dsa_str_t name, const char digits[DSA_KEY_TENANT_LEN + 1],
    const dsa_usage_range_t *range, dsa_err_t *err)
{
    size_t              n;
    int64_t             before;
    dsa_usage_row_t     total;
    dsa_usage_tenant_t  t;

    t.sum = sum;
    t.arena = arena;
    t.client = client;
    t.name = name;
    t.digits = dsa_strz(digits);
    t.range = range;

    n = sum->n;
    total = sum->total;

    if (dsa_usage_rolled(&t, err) != DSA_OK) {
        return DSA_ERROR;
    }

    do {
        before = t.rolled;
        sum->n = n;
        sum->total = total;

        if (dsa_usage_once(&t, err) != DSA_OK
            || dsa_usage_rolled(&t, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    } while (t.rolled != before);

    return DSA_OK;
}


static int
dsa_usage_once(dsa_usage_tenant_t *t, dsa_err_t *err)
{
    char     day[DSA_USAGE_DAY];
    size_t   found;
    int64_t  n, first, next;

    for (n = t->range->from; n <= t->range->to; n++) {
        dsa_usage_day(day, n);

        if (dsa_usage_period(t, day, 1, &found, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    /* the month of the first day may begin before it */

    dsa_usage_day(day, t->range->from);
    first = t->range->from - (atoi(day + 8) - 1);

    for ( /* void */ ; first <= t->range->to; first = next) {
        next = dsa_usage_next_month(first);

        if (dsa_usage_month(t, first, next, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/*
 * Adds the days of a month that were folded: those from first on that are
 * before t->rolled and before next, the first day of the next month.
 */

static int
dsa_usage_month(dsa_usage_tenant_t *t, int64_t first, int64_t next,
    dsa_err_t *err)
{
    char     month[DSA_USAGE_DAY], end[DSA_USAGE_DAY];
    size_t   found;
    int64_t  last;

    last = (t->rolled < next ? t->rolled : next) - 1;

    if (last < first || t->range->from > last) {
        return DSA_OK;
    }

    dsa_usage_day(month, first);
    month[7] = '\0';

    if (t->range->from <= first && t->range->to >= last) {
        return dsa_usage_period(t, month, 1, &found, err);
    }

    if (dsa_usage_period(t, month, 0, &found, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (found == 0) {
        return DSA_OK;
    }

    dsa_usage_day(end, last);

    return dsa_error(err, "of the days from %s-01 to %s of the tenant %.*s, "
                     "the ledger has only the sum; expected a range with all "
                     "of them or none", month, end, (int) t->name.len,
                     t->name.data);
}


static int
dsa_usage_rolled(dsa_usage_tenant_t *t, dsa_err_t *err)
{
    int                    rc;
    redisReply            *reply;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(DSA_USAGE_ARENA);

    if (arena == NULL
        || dsa_ledger_rolled(&cmd, arena, t->digits) != DSA_OK)
    {
        dsa_arena_destroy(arena);
        return dsa_error(err, "out of memory");
    }

    reply = dsa_client_call(t->client, &cmd, err);
    rc = DSA_ERROR;

    if (reply != NULL) {
        rc = dsa_ledger_rolled_reply(&t->rolled, reply, err);
        freeReplyObject(reply);
    }

    dsa_arena_destroy(arena);

    if (rc == DSA_AGAIN) {
        t->rolled = 0;
        rc = DSA_OK;
    }

    return rc;
}


/*
 * Reads a day or a month, and adds its counts if add is 1.  *found: how many
 * fields it has.
 */

static int
dsa_usage_period(dsa_usage_tenant_t *t, const char *period, int add,
    size_t *found, dsa_err_t *err)
{
    int                    rc;
    redisReply            *reply;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(DSA_USAGE_ARENA);

    if (arena == NULL
        || dsa_ledger_load(&cmd, arena, t->digits, period) != DSA_OK)
    {
        dsa_arena_destroy(arena);
        return dsa_error(err, "out of memory");
    }

    reply = dsa_client_call(t->client, &cmd, err);
    rc = DSA_ERROR;

    if (reply != NULL) {
        rc = dsa_usage_fields(t, period, reply, add, found, err);
        freeReplyObject(reply);
    }

    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_usage_fields(dsa_usage_tenant_t *t, const char *period,
    const redisReply *reply, int add, size_t *found, dsa_err_t *err)
{
    int                  rc;
    size_t               i;
    dsa_err_t            reason;
    dsa_usage_row_t     *row;
    dsa_ledger_field_t   f;

    if (dsa_ledger_reply(reply, &reason) != DSA_OK) {
        goto failed;
    }

    *found = reply->elements / 2;

    for (i = 0; add && i < reply->elements; i += 2) {
        rc = dsa_ledger_field(&f, reply->element[i], reply->element[i + 1],
                              &reason);

        if (rc == DSA_ERROR) {
            goto failed;
        }

        if (rc == DSA_AGAIN || !dsa_str_eq(f.key, t->range->key)) {
            continue;
        }

        row = dsa_usage_row(t, f.model, err);

        if (row == NULL) {
            return DSA_ERROR;
        }

        if (__builtin_add_overflow(row->counts[f.count], f.value,
                                   &row->counts[f.count])
            || __builtin_add_overflow(t->sum->total.counts[f.count], f.value,
                                      &t->sum->total.counts[f.count]))
        {
            return dsa_error(err, "the sum of %s exceeds 64 bits; expected a "
                             "shorter range", dsa_ledger_name(f.count));
        }
    }

    return DSA_OK;

failed:

    return dsa_error(err, "the ledger %s of the tenant %.*s: %s", period,
                     (int) t->digits.len, t->digits.data, reason.text);
}


/* The rows of a tenant are the last ones, because tenants follow each other. */

static dsa_usage_row_t *
dsa_usage_row(dsa_usage_tenant_t *t, dsa_str_t model, dsa_err_t *err)
{
    char             *copy;
    size_t            i, size;
    dsa_usage_sum_t  *sum;
    dsa_usage_row_t  *rows;

    sum = t->sum;

    for (i = sum->n; i != 0; i--) {
        rows = &sum->rows[i - 1];

        if (rows->tenant.data != t->name.data) {
            break;
        }

        if (dsa_str_eq(rows->model, model)) {
            return rows;
        }
    }

    if (sum->n == sum->size) {
        size = sum->size != 0 ? 2 * sum->size : 64;
        rows = realloc(sum->rows, size * sizeof(dsa_usage_row_t));

        if (rows == NULL) {
            goto failed;
        }

        sum->rows = rows;
        sum->size = size;
    }

    copy = dsa_arena_dup(t->arena, model);

    if (copy == NULL) {
        goto failed;
    }

    rows = &sum->rows[sum->n++];
    memset(rows, 0, sizeof(dsa_usage_row_t));
    rows->tenant = t->name;
    rows->model = dsa_str(copy, model.len);

    return rows;

failed:

    (void) dsa_error(err, "out of memory for %zu rows", sum->n);

    return NULL;
}


void
dsa_usage_free(dsa_usage_sum_t *sum)
{
    free(sum->rows);
}


void
dsa_usage_day(char text[DSA_USAGE_DAY], int64_t day)
{
    time_t     t;
    struct tm  tm;

    t = day * 24 * 3600;

    /* days that dsa_key_date() reads are before the year 10000 */

    if (gmtime_r(&t, &tm) == NULL
        || strftime(text, DSA_USAGE_DAY, "%Y-%m-%d", &tm) == 0)
    {
        assert(0);
    }
}


/* The first day of the month after that of `day`. */

static int64_t
dsa_usage_next_month(int64_t day)
{
    time_t     t;
    struct tm  tm;

    t = day * 24 * 3600;

    if (gmtime_r(&t, &tm) == NULL) {
        assert(0);
    }

    tm.tm_mday = 1;
    tm.tm_mon++;

    return timegm(&tm) / (24 * 3600);
}
