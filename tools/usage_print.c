
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/json_write.h"
#include "base/money.h"
#include "tools/usage_print.h"


#define DSA_USAGE_COLUMNS  (7 + DSA_TIERS)      /* numbers of a table */
#define DSA_USAGE_MODEL    256                  /* bytes of a name in it */


/* A row of the table: tenant, model, and numbers. */

typedef struct {
    dsa_str_t   names[2];
    char        model[DSA_USAGE_MODEL];
    char        numbers[DSA_USAGE_COLUMNS][DSA_MONEY_LEN];
} dsa_usage_line_t;


static int dsa_usage_cost(int64_t *cost, const dsa_usage_row_t *row,
    dsa_err_t *err);
static int dsa_usage_table(const dsa_usage_sum_t *sum, dsa_err_t *err);
static int dsa_usage_line(dsa_usage_line_t *line, const dsa_usage_row_t *row,
    dsa_err_t *err);
static void dsa_usage_widths(int widths[2 + DSA_USAGE_COLUMNS],
    const dsa_usage_line_t *line);
static void dsa_usage_print_line(const int widths[2 + DSA_USAGE_COLUMNS],
    const dsa_usage_line_t *line);
static int dsa_usage_columns(dsa_str_t text);
static int dsa_usage_csv(const dsa_usage_sum_t *sum, dsa_err_t *err);
static int dsa_usage_csv_row(dsa_buf_t *b, const dsa_usage_row_t *row,
    dsa_err_t *err);
static void dsa_usage_csv_text(dsa_buf_t *b, dsa_str_t text);
static int dsa_usage_json(const dsa_usage_sum_t *sum,
    const dsa_usage_range_t *range, dsa_err_t *err);
static int dsa_usage_json_row(dsa_json_writer_t *w,
    const dsa_usage_row_t *row, dsa_err_t *err);
static void dsa_usage_money(dsa_buf_t *b, int64_t amount);
static int dsa_usage_write(dsa_buf_t *b, dsa_err_t *err);


int
dsa_usage_print(const dsa_usage_sum_t *sum, const dsa_usage_range_t *range,
    dsa_usage_format_e format, dsa_err_t *err)
{
    switch (format) {

    case DSA_USAGE_JSON:
        return dsa_usage_json(sum, range, err);

    case DSA_USAGE_CSV:
        return dsa_usage_csv(sum, err);

    default:
        return dsa_usage_table(sum, err);
    }
}


static int
dsa_usage_cost(int64_t *cost, const dsa_usage_row_t *row, dsa_err_t *err)
{
    int64_t         part;
    const int64_t  *c;

    c = row->counts;
    *cost = 0;

    if (__builtin_add_overflow(c[DSA_LEDGER_COST_MISS],
                               c[DSA_LEDGER_COST_HIT], &part)
        || __builtin_add_overflow(part, c[DSA_LEDGER_COST_OUTPUT], cost))
    {
        return dsa_error(err, "the sum of a cost exceeds 64 bits; expected a "
                         "shorter range");
    }

    return DSA_OK;
}


/* Two passes: the first finds how wide the columns are. */

static int
dsa_usage_table(const dsa_usage_sum_t *sum, dsa_err_t *err)
{
    int                       pass;
    int                       widths[2 + DSA_USAGE_COLUMNS];
    size_t                    i;
    dsa_usage_line_t          line;

    static const dsa_usage_line_t  head = {
        { dsa_string("TENANT"), dsa_string("MODEL") }, "",
        { "REQUESTS", "PROMPT", "MISS", [3 + DSA_TIER_GPU] = "GPU",
          [3 + DSA_TIER_HOST] = "HOST", [3 + DSA_TIER_REDIS] = "REDIS",
          [3 + DSA_TIERS] = "COMPLETION", "REASONING", "COST", "COST CACHED" }
    };

    memset(widths, 0, sizeof(widths));

    for (pass = 0; pass < 2; pass++) {
        dsa_usage_widths(widths, &head);

        if (pass == 1) {
            dsa_usage_print_line(widths, &head);
        }

        for (i = 0; i <= sum->n; i++) {
            if (dsa_usage_line(&line,
                               i < sum->n ? &sum->rows[i] : &sum->total, err)
                != DSA_OK)
            {
                return DSA_ERROR;
            }

            if (i == sum->n) {
                line.names[0] = dsa_strz("TOTAL");
            }

            if (pass == 0) {
                dsa_usage_widths(widths, &line);

            } else {
                dsa_usage_print_line(widths, &line);
            }
        }
    }

    if (fflush(stdout) != 0) {
        return dsa_error(err, "stdout: %s", strerror(errno));
    }

    return DSA_OK;
}


static int
dsa_usage_line(dsa_usage_line_t *line, const dsa_usage_row_t *row,
    dsa_err_t *err)
{
    int             i;
    int64_t         cost;
    int64_t         numbers[DSA_USAGE_COLUMNS - 2];
    const int64_t  *c;

    if (dsa_usage_cost(&cost, row, err) != DSA_OK) {
        return DSA_ERROR;
    }

    c = row->counts;

    numbers[0] = c[DSA_LEDGER_REQUESTS];
    numbers[1] = c[DSA_LEDGER_PROMPT];
    numbers[2] = c[DSA_LEDGER_PROMPT] - c[DSA_LEDGER_CACHED];
    numbers[3] = c[DSA_LEDGER_CACHED];

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        numbers[3 + i] = c[DSA_LEDGER_CACHED_TIER + i - DSA_TIER_HOST];
        numbers[3] -= numbers[3 + i];
    }

    numbers[3 + DSA_TIERS] = c[DSA_LEDGER_COMPLETION];
    numbers[4 + DSA_TIERS] = c[DSA_LEDGER_REASONING];

    line->names[0] = row->tenant;

    /* a name that Redis has, and this may be a terminal */

    line->names[1] = dsa_str(line->model,
                             dsa_escape(line->model, DSA_USAGE_MODEL,
                                        row->model.data, row->model.len));

    for (i = 0; i < DSA_USAGE_COLUMNS - 2; i++) {
        (void) snprintf(line->numbers[i], DSA_MONEY_LEN, "%" PRId64,
                        numbers[i]);
    }

    line->numbers[i][dsa_money_print(line->numbers[i], cost, 2)] = '\0';
    i++;
    line->numbers[i][dsa_money_print(line->numbers[i],
                                     c[DSA_LEDGER_COST_HIT], 2)] = '\0';

    return DSA_OK;
}


static void
dsa_usage_widths(int widths[2 + DSA_USAGE_COLUMNS],
    const dsa_usage_line_t *line)
{
    int  i, n;

    for (i = 0; i < 2 + DSA_USAGE_COLUMNS; i++) {
        n = i < 2 ? dsa_usage_columns(line->names[i])
                  : (int) strlen(line->numbers[i - 2]);
        widths[i] = n > widths[i] ? n : widths[i];
    }
}


static void
dsa_usage_print_line(const int widths[2 + DSA_USAGE_COLUMNS],
    const dsa_usage_line_t *line)
{
    int  i;

    for (i = 0; i < 2; i++) {
        (void) printf("%.*s%*s  ", (int) line->names[i].len,
                      line->names[i].data != NULL ? line->names[i].data : "",
                      widths[i] - dsa_usage_columns(line->names[i]), "");
    }

    for (i = 0; i < DSA_USAGE_COLUMNS; i++) {
        (void) printf("%*s%s", widths[2 + i], line->numbers[i],
                      i + 1 < DSA_USAGE_COLUMNS ? "  " : "\n");
    }
}


/* The characters of UTF-8, each of which counts as one column. */

static int
dsa_usage_columns(dsa_str_t text)
{
    int     n;
    size_t  i;

    n = 0;

    for (i = 0; i < text.len; i++) {
        n += (text.data[i] & 0xc0) != 0x80;
    }

    return n;
}


static int
dsa_usage_csv(const dsa_usage_sum_t *sum, dsa_err_t *err)
{
    int        rc;
    size_t     i;
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "tenant,model");

    for (i = 0; i < DSA_LEDGER_COUNTS; i++) {
        dsa_buf_printf(&b, ",%s", dsa_ledger_name(i));
    }

    dsa_buf_addz(&b, ",cost\n");
    rc = DSA_OK;

    for (i = 0; i < sum->n && rc == DSA_OK; i++) {
        rc = dsa_usage_csv_row(&b, &sum->rows[i], err);
    }

    if (rc == DSA_OK) {
        rc = dsa_usage_write(&b, err);
    }

    dsa_buf_free(&b);

    return rc;
}


static int
dsa_usage_csv_row(dsa_buf_t *b, const dsa_usage_row_t *row, dsa_err_t *err)
{
    int      i;
    int64_t  cost;

    if (dsa_usage_cost(&cost, row, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_usage_csv_text(b, row->tenant);
    dsa_buf_addz(b, ",");
    dsa_usage_csv_text(b, row->model);

    for (i = 0; i < DSA_LEDGER_COST_MISS; i++) {
        dsa_buf_printf(b, ",%" PRId64, row->counts[i]);
    }

    for ( /* void */ ; i < DSA_LEDGER_COUNTS; i++) {
        dsa_buf_addz(b, ",");
        dsa_usage_money(b, row->counts[i]);
    }

    dsa_buf_addz(b, ",");
    dsa_usage_money(b, cost);
    dsa_buf_addz(b, "\n");

    return DSA_OK;
}


/* In quotes, which are doubled inside (RFC 4180). */

static void
dsa_usage_csv_text(dsa_buf_t *b, dsa_str_t text)
{
    size_t  i;

    dsa_buf_addz(b, "\"");

    for (i = 0; i < text.len; i++) {
        dsa_buf_add(b, &text.data[i], 1);

        if (text.data[i] == '"') {
            dsa_buf_addz(b, "\"");
        }
    }

    dsa_buf_addz(b, "\"");
}


static int
dsa_usage_json(const dsa_usage_sum_t *sum, const dsa_usage_range_t *range,
    dsa_err_t *err)
{
    int                rc;
    char               day[DSA_USAGE_DAY];
    size_t             i;
    dsa_buf_t          b;
    dsa_json_writer_t  w;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_json_writer(&w, &b);
    dsa_json_object(&w);

    dsa_usage_day(day, range->from);
    dsa_json_key(&w, "from");
    dsa_json_stringz(&w, day);
    dsa_usage_day(day, range->to);
    dsa_json_key(&w, "to");
    dsa_json_stringz(&w, day);

    if (range->key.len != 0) {
        dsa_json_key(&w, "key");
        dsa_json_string(&w, range->key);
    }

    dsa_json_key(&w, "usage");
    dsa_json_array(&w);
    rc = DSA_OK;

    for (i = 0; i < sum->n && rc == DSA_OK; i++) {
        rc = dsa_usage_json_row(&w, &sum->rows[i], err);
    }

    if (rc == DSA_OK) {
        dsa_json_array_end(&w);
        dsa_json_key(&w, "total");
        rc = dsa_usage_json_row(&w, &sum->total, err);
    }

    if (rc == DSA_OK) {
        dsa_json_object_end(&w);
        dsa_buf_addz(&b, "\n");
        rc = dsa_usage_write(&b, err);
    }

    dsa_buf_free(&b);

    return rc;
}


/* Counts are numbers, and amounts are strings with a decimal point. */

static int
dsa_usage_json_row(dsa_json_writer_t *w, const dsa_usage_row_t *row,
    dsa_err_t *err)
{
    int      i;
    char     text[DSA_MONEY_LEN];
    size_t   n;
    int64_t  cost;

    if (dsa_usage_cost(&cost, row, err) != DSA_OK) {
        return DSA_ERROR;
    }

    dsa_json_object(w);

    if (row->model.data != NULL) {
        dsa_json_key(w, "tenant");
        dsa_json_string(w, row->tenant);
        dsa_json_key(w, "model");
        dsa_json_string(w, row->model);
    }

    for (i = 0; i <= DSA_LEDGER_COUNTS; i++) {
        dsa_json_key(w, i < DSA_LEDGER_COUNTS ? dsa_ledger_name(i) : "cost");

        if (i < DSA_LEDGER_COST_MISS) {
            n = (size_t) snprintf(text, sizeof(text), "%" PRId64,
                                  row->counts[i]);
            dsa_json_raw(w, dsa_str(text, n));

        } else {
            n = dsa_money_print(text, i < DSA_LEDGER_COUNTS ? row->counts[i]
                                                            : cost, 0);
            dsa_json_string(w, dsa_str(text, n));
        }
    }

    dsa_json_object_end(w);

    return DSA_OK;
}


static void
dsa_usage_money(dsa_buf_t *b, int64_t amount)
{
    char  text[DSA_MONEY_LEN];

    dsa_buf_add(b, text, dsa_money_print(text, amount, 0));
}


static int
dsa_usage_write(dsa_buf_t *b, dsa_err_t *err)
{
    if (b->failed) {
        return dsa_error(err, "out of memory");
    }

    if (fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout) != 0) {
        return dsa_error(err, "stdout: %s", strerror(errno));
    }

    return DSA_OK;
}
