
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A file of sums with any content, and changes of it.
 *
 * The first byte of an input is the number of changes, of 4 bytes each; the
 * rest is written over an empty table, from its header on.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sums_table.h"


#define ROWS  (2 * DSA_SUMS_WAYS)
#define NOON  (20000 * (time_t) 86400 + 43200)


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_change(dsa_sums_table_t *table, const uint8_t *change);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t            i, n;
    dsa_sums_table_t  table;

    if (size == 0 || size < (size_t) 1 + 4 * data[0]) {
        return 0;
    }

    memset(&table, 0, sizeof(table));

    table.size = dsa_sums_table_size(2 * ROWS);
    table.memory = calloc(1, table.size);

    if (table.memory == NULL) {
        abort();
    }

    dsa_sums_table_create(&table, ROWS);

    n = size - 1 - 4 * (size_t) data[0];
    n = n < table.size ? n : table.size;
    memcpy(table.memory, &data[size - n], n);

    if (dsa_sums_table_open(&table) == DSA_OK
        && dsa_sums_table_enter(&table) != DSA_ERROR)
    {
        for (i = 0; i < data[0]; i++) {
            fuzz_change(&table, &data[1 + 4 * i]);
        }

        dsa_sums_table_leave(&table);
    }

    free(table.memory);

    return 0;
}


/* What a change does, to which key, how much, and when. */

static void
fuzz_change(dsa_sums_table_t *table, const uint8_t *change)
{
    char              id[DSA_SUMS_ID] = "key_0000000000000000";
    int64_t           amount, spent[DSA_SUMS_PERIODS];
    time_t            now;
    dsa_sums_t        sums;
    dsa_sums_mark_t   mark;
    dsa_sums_row_t   *row;

    id[DSA_SUMS_ID - 1] += change[1];
    amount = INT64_MAX >> change[2] % 64;
    now = NOON + (int64_t) ((int8_t) change[3]) * 86400;

    if (change[0] % 8 == 0) {

        if (dsa_sums_table_recount(table) != DSA_OK) {
            abort();
        }

        dsa_sums_table_recount_add(table, id, amount, now, NOON);
        dsa_sums_table_recount_end(table);

        if (dsa_sums_table_doubtful(table)) {
            abort();
        }

        return;
    }

    if (change[0] % 8 == 1 && table->rows == ROWS) {
        dsa_sums_table_grow(table, 2 * ROWS);
        return;
    }

    row = dsa_sums_table_get(table, id, &sums, now);

    switch (change[0] % 8) {

    case 2:
        dsa_sums_charge(&sums, amount, NOON, now);
        break;

    case 3:
        dsa_sums_confirm(&sums, amount, NOON, now);
        break;

    case 4:
        dsa_sums_lose(&sums, amount, NOON, now);
        break;

    default:
        spent[DSA_SUMS_DAY] = amount;
        spent[DSA_SUMS_MONTH] = -amount;
        spent[DSA_SUMS_TOTAL] = amount;

        dsa_sums_mark(&sums, &mark, now);
        dsa_sums_read(&sums, &mark, spent, now);
    }

    dsa_sums_table_put(table, row, &sums);

    if (dsa_sums_table_look(table, id, now, spent) == DSA_AGAIN) {
        abort();
    }
}
