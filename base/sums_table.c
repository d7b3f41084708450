
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sums_table.h"


#define DSA_SUMS_MAGIC    0x31736d7573617364ULL     /* "dsasums1" */
#define DSA_SUMS_HEADER   4096
#define DSA_SUMS_FACTOR   0x9e3779b97f4a7c15ULL     /* odd */


/* In the byte order of the machine. */

typedef struct {
    uint64_t           magic;
    uint32_t           row_size;
    _Atomic uint32_t   rows;
    _Atomic uint32_t   busy;            /* a section has begun */
    _Atomic uint32_t   recount;         /* is required */
    uint32_t           partial;         /* a row with entries was replaced */
    uint32_t           unused;
    uint64_t           lives;           /* rows that were created */
} dsa_sums_header_t;


typedef struct {
    dsa_sums_t         sums;
    uint64_t           check;           /* of the id and of sums */
} dsa_sums_copy_t;


struct dsa_sums_row_s {
    uint8_t            id[DSA_SUMS_ID]; /* the first byte is 0: free */
    _Atomic uint32_t   current;         /* of the copies: 0 or 1 */
    dsa_sums_copy_t    copies[2];
    uint64_t           unused;
};


/*
 * A change of the layout requires another magic, because processes of an older
 * version may have the same file.
 */

_Static_assert(sizeof(dsa_sums_header_t) <= DSA_SUMS_HEADER,
               "the header ends before the rows");
_Static_assert(sizeof(dsa_sum_t) == 48, "size of a sum");
_Static_assert(sizeof(dsa_sums_t) == 168, "size of sums");
_Static_assert(sizeof(dsa_sums_row_t) == 384, "size of a row");
_Static_assert(offsetof(dsa_sums_row_t, copies) == 24, "the copies");


static dsa_sums_header_t *dsa_sums_header(const dsa_sums_table_t *table);
static dsa_sums_row_t *dsa_sums_rows(const dsa_sums_table_t *table);
static dsa_sums_row_t *dsa_sums_set(const dsa_sums_table_t *table,
    const void *id);
static uint64_t dsa_sums_hash(const void *id);
static uint64_t dsa_sums_check(const void *id, const dsa_sums_t *sums);
static int dsa_sums_current(const dsa_sums_row_t *row, const void *id,
    dsa_sums_t *sums);
static dsa_sums_row_t *dsa_sums_oldest(const dsa_sums_table_t *table,
    dsa_sums_row_t *set);
static int dsa_sums_open(const dsa_sums_table_t *table,
    const dsa_sums_row_t *row, const dsa_sums_t *sums);
static void dsa_sums_store(dsa_sums_row_t *row, const void *id,
    const dsa_sums_t *sums);


size_t
dsa_sums_table_size(uint32_t rows)
{
    return DSA_SUMS_HEADER + (size_t) rows * sizeof(dsa_sums_row_t);
}


/* A set has four keys on average, so that sets are rarely full. */

uint32_t
dsa_sums_table_rows(size_t n)
{
    uint32_t  rows;

    rows = DSA_SUMS_WAYS;

    while (rows < DSA_SUMS_MAX_ROWS && rows / (DSA_SUMS_WAYS / 4) < n) {
        rows *= 2;
    }

    return rows;
}


void
dsa_sums_table_create(dsa_sums_table_t *table, uint32_t rows)
{
    dsa_sums_header_t  *h;

    assert(dsa_sums_table_size(rows) <= table->size);

    h = dsa_sums_header(table);

    h->row_size = sizeof(dsa_sums_row_t);
    atomic_store(&h->rows, rows);
    atomic_store(&h->recount, 1);

    h->magic = DSA_SUMS_MAGIC;

    table->rows = rows;
}


int
dsa_sums_table_open(dsa_sums_table_t *table)
{
    uint32_t                  rows;
    const dsa_sums_header_t  *h;

    if (table->size < DSA_SUMS_HEADER) {
        return DSA_ERROR;
    }

    h = dsa_sums_header(table);
    rows = atomic_load(&h->rows);

    if (h->magic != DSA_SUMS_MAGIC || h->row_size != sizeof(dsa_sums_row_t)
        || rows < DSA_SUMS_WAYS || rows > DSA_SUMS_MAX_ROWS
        || (rows & (rows - 1)) != 0
        || table->size < dsa_sums_table_size(rows))
    {
        return DSA_ERROR;
    }

    table->rows = rows;

    return DSA_OK;
}


/*
 * The set of a key is given by the low bits of its hash, so a row either stays
 * or moves to a set beyond the present ones.  There it has the same place in
 * the set, and no two rows get the same place.  The old row is not found any
 * more, and is free.
 */

void
dsa_sums_table_grow(dsa_sums_table_t *table, uint32_t rows)
{
    uint32_t         i, n, set;
    uint64_t         hash;
    dsa_sums_row_t  *all;

    n = table->rows;
    all = dsa_sums_rows(table);

    assert(rows >= n && rows <= DSA_SUMS_MAX_ROWS && (rows & (rows - 1)) == 0
           && dsa_sums_table_size(rows) <= table->size);

    memset(&all[n], 0, (size_t) (rows - n) * sizeof(dsa_sums_row_t));

    for (i = 0; i < n; i++) {
        hash = dsa_sums_hash(all[i].id);
        set = hash & (rows / DSA_SUMS_WAYS - 1);

        if (all[i].id[0] != 0 && set >= n / DSA_SUMS_WAYS
            && (hash & (n / DSA_SUMS_WAYS - 1)) == i / DSA_SUMS_WAYS)
        {
            memcpy(&all[set * DSA_SUMS_WAYS + i % DSA_SUMS_WAYS], &all[i],
                   sizeof(dsa_sums_row_t));
        }
    }

    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&dsa_sums_header(table)->rows, rows);

    table->rows = rows;
}


int
dsa_sums_table_enter(dsa_sums_table_t *table)
{
    int                 again;
    dsa_sums_header_t  *h;

    h = dsa_sums_header(table);

    if (atomic_load(&h->rows) != table->rows) {
        return DSA_ERROR;
    }

    again = atomic_load(&h->busy) != 0 || dsa_sums_table_doubtful(table);

    if (again) {
        atomic_store(&h->recount, 1);
    }

    atomic_store(&h->busy, 1);
    table->section = 1;

    return again ? DSA_AGAIN : DSA_OK;
}


void
dsa_sums_table_leave(dsa_sums_table_t *table)
{
    table->section = 0;
    atomic_store(&dsa_sums_header(table)->busy, 0);
}


void
dsa_sums_table_doubt(dsa_sums_table_t *table)
{
    atomic_store(&dsa_sums_header(table)->recount, 1);
}


int
dsa_sums_table_doubtful(const dsa_sums_table_t *table)
{
    return atomic_load(&dsa_sums_header(table)->recount) != 0;
}


dsa_sums_row_t *
dsa_sums_table_get(dsa_sums_table_t *table, const void *id, dsa_sums_t *sums,
    time_t now)
{
    int                 i, damaged;
    dsa_sums_t          old;
    dsa_sums_row_t     *set, *row;
    dsa_sums_header_t  *h;

    h = dsa_sums_header(table);
    set = dsa_sums_set(table, id);
    damaged = 0;
    row = NULL;

    for (i = 0; i < DSA_SUMS_WAYS; i++) {

        if (memcmp(set[i].id, id, DSA_SUMS_ID) != 0) {
            continue;
        }

        row = &set[i];

        if (dsa_sums_current(row, id, sums)) {
            return row;
        }

        damaged = 1;
        break;
    }

    if (row == NULL) {
        row = dsa_sums_oldest(table, set);

        if (row->id[0] != 0 && dsa_sums_current(row, row->id, &old)
            && dsa_sums_open(table, row, &old))
        {
            h->partial = 1;
        }
    }

    memset(sums, 0, sizeof(dsa_sums_t));

    sums->life = ++h->lives;
    sums->uncounted = damaged || h->partial || atomic_load(&h->recount) != 0;

    dsa_sums_begin(sums, now);

    if (sums->uncounted) {
        dsa_sums_table_doubt(table);
    }

    /* until the id is complete the row is free */

    row->id[0] = 0;
    atomic_signal_fence(memory_order_seq_cst);

    dsa_sums_store(row, id, sums);
    memcpy(&row->id[1], (const uint8_t *) id + 1, DSA_SUMS_ID - 1);

    atomic_thread_fence(memory_order_seq_cst);
    row->id[0] = *(const uint8_t *) id;

    if (table->counts != NULL) {
        memset(table->counts[row - dsa_sums_rows(table)], 0,
               sizeof(table->counts[0]));
    }

    return row;
}


void
dsa_sums_table_put(dsa_sums_table_t *table, dsa_sums_row_t *row,
    const dsa_sums_t *sums)
{
    if (sums->uncounted) {
        dsa_sums_table_doubt(table);
    }

    dsa_sums_store(row, row->id, sums);
}


/* Writes the copy that is not current, and makes it current by one store. */

static void
dsa_sums_store(dsa_sums_row_t *row, const void *id, const dsa_sums_t *sums)
{
    uint32_t          next;
    dsa_sums_copy_t  *copy;

    next = atomic_load(&row->current) == 0;
    copy = &row->copies[next];

    copy->sums = *sums;
    copy->check = dsa_sums_check(id, sums);

    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&row->current, next);
}


int
dsa_sums_table_recount(dsa_sums_table_t *table)
{
    assert(table->counts == NULL);

    table->counts = calloc(table->rows, sizeof(table->counts[0]));

    return table->counts != NULL ? DSA_OK : DSA_ERROR;
}


void
dsa_sums_table_recount_add(dsa_sums_table_t *table, const void *id,
    int64_t amount, time_t when, time_t now)
{
    int              i;
    int64_t         *count;
    dsa_sums_t       sums;
    dsa_sums_row_t  *row;

    assert(amount >= 0);

    row = dsa_sums_table_get(table, id, &sums, now);
    count = table->counts[row - dsa_sums_rows(table)];

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {

        if (sums.periods[i].number == dsa_sums_number(i, when)
            && __builtin_add_overflow(count[i], amount, &count[i]))
        {
            count[i] = INT64_MAX;
        }
    }
}


void
dsa_sums_table_recount_end(dsa_sums_table_t *table)
{
    uint32_t         i;
    dsa_sums_t       sums;
    dsa_sums_row_t  *row;

    for (i = 0; i < table->rows; i++) {
        row = &dsa_sums_rows(table)[i];

        if (row->id[0] != 0 && dsa_sums_current(row, row->id, &sums)) {
            dsa_sums_recount(&sums, table->counts[i]);
            dsa_sums_store(row, row->id, &sums);
        }
    }

    free(table->counts);
    table->counts = NULL;

    atomic_store(&dsa_sums_header(table)->recount, 0);
}


int
dsa_sums_table_look(const dsa_sums_table_t *table, const void *id, time_t now,
    int64_t spent[DSA_SUMS_PERIODS])
{
    int                 i;
    dsa_sums_t          sums;
    dsa_sums_row_t     *set;
    dsa_sums_header_t  *h;

    h = dsa_sums_header(table);

    if (table->section) {

        if (dsa_sums_table_doubtful(table)) {
            memset(spent, 0, DSA_SUMS_PERIODS * sizeof(int64_t));
            return 0;
        }

    } else if (atomic_load(&h->busy) != 0 || dsa_sums_table_doubtful(table)
               || atomic_load(&h->rows) != table->rows)
    {
        return DSA_AGAIN;
    }

    set = dsa_sums_set(table, id);

    for (i = 0; i < DSA_SUMS_WAYS; i++) {

        if (memcmp(set[i].id, id, DSA_SUMS_ID) != 0) {
            continue;
        }

        if (dsa_sums_current(&set[i], id, &sums)) {
            return dsa_sums_spent(&sums, now, spent);
        }

        if (!table->section) {
            return DSA_AGAIN;
        }
    }

    memset(&sums, 0, sizeof(dsa_sums_t));

    return dsa_sums_spent(&sums, now, spent);
}


static dsa_sums_header_t *
dsa_sums_header(const dsa_sums_table_t *table)
{
    return table->memory;
}


static dsa_sums_row_t *
dsa_sums_rows(const dsa_sums_table_t *table)
{
    return (dsa_sums_row_t *) ((uint8_t *) table->memory + DSA_SUMS_HEADER);
}


static dsa_sums_row_t *
dsa_sums_set(const dsa_sums_table_t *table, const void *id)
{
    uint32_t  set;

    set = dsa_sums_hash(id) & (table->rows / DSA_SUMS_WAYS - 1);

    return &dsa_sums_rows(table)[set * DSA_SUMS_WAYS];
}


static uint64_t
dsa_sums_hash(const void *id)
{
    int             i;
    uint64_t        h;
    const uint8_t  *p;

    h = 0;
    p = id;

    for (i = 0; i < DSA_SUMS_ID; i++) {
        h = (h ^ p[i]) * DSA_SUMS_FACTOR;
        h ^= h >> 32;
    }

    return h;
}


static uint64_t
dsa_sums_check(const void *id, const dsa_sums_t *sums)
{
    size_t    i;
    uint64_t  h, words[sizeof(dsa_sums_t) / sizeof(uint64_t)];

    memcpy(words, sums, sizeof(words));

    h = dsa_sums_hash(id);

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        h = (h ^ words[i]) * DSA_SUMS_FACTOR;
        h ^= h >> 32;
    }

    return h;
}


/*
 * Copies the current sums of a row with this id.  0: they are damaged, or were
 * changed meanwhile.
 */

static int
dsa_sums_current(const dsa_sums_row_t *row, const void *id, dsa_sums_t *sums)
{
    uint32_t         current;
    dsa_sums_copy_t  copy;

    current = atomic_load((_Atomic uint32_t *) &row->current);

    if (current > 1) {
        return 0;
    }

    memcpy(&copy, &row->copies[current], sizeof(copy));

    *sums = copy.sums;

    return copy.check == dsa_sums_check(id, sums);
}


/* The row of a set that a new key gets. */

static dsa_sums_row_t *
dsa_sums_oldest(const dsa_sums_table_t *table, dsa_sums_row_t *set)
{
    int              i, open, oldest_open;
    int64_t          used;
    dsa_sums_t       sums;
    dsa_sums_row_t  *oldest;

    oldest = NULL;
    used = 0;
    oldest_open = 0;

    for (i = 0; i < DSA_SUMS_WAYS; i++) {

        if (set[i].id[0] == 0 || dsa_sums_set(table, set[i].id) != set
            || !dsa_sums_current(&set[i], set[i].id, &sums))
        {
            return &set[i];
        }

        open = dsa_sums_open(table, &set[i], &sums);

        if (oldest == NULL || open < oldest_open
            || (open == oldest_open && sums.used < used))
        {
            oldest = &set[i];
            used = sums.used;
            oldest_open = open;
        }
    }

    return oldest;
}


/* 1: the row has amounts that no read of the ledger gives back. */

static int
dsa_sums_open(const dsa_sums_table_t *table, const dsa_sums_row_t *row,
    const dsa_sums_t *sums)
{
    int             i;
    const int64_t  *count;

    count = table->counts != NULL
            ? table->counts[row - dsa_sums_rows(table)] : NULL;

    for (i = 0; i < DSA_SUMS_PERIODS; i++) {
        if (sums->periods[i].pending != 0 || sums->periods[i].lost != 0
            || (count != NULL && count[i] != 0))
        {
            return 1;
        }
    }

    return 0;
}
