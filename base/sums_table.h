
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUMS_TABLE_H_INCLUDED_
#define _DSA_SUMS_TABLE_H_INCLUDED_


#include <stddef.h>

#include "sums.h"


/*
 * The sums of keys, in memory that processes share and that a file keeps.  The
 * caller has a lock around all functions but dsa_sums_table_size() and
 * dsa_sums_table_look().
 *
 * A process may be killed between any two stores.  A row has two copies of its
 * sums and the number of the current one, so a change is one store.  What is
 * read has a checksum: a row that is damaged is unknown, like one that is
 * missing.
 *
 * A change of a row, and what the caller changes together with it, are
 * a section.  If a process is killed in a section, or pending of a row may lack
 * entries, dsa_sums_table_enter() returns DSA_AGAIN, and the caller counts all
 * entries again.
 *
 * The table is set-associative.  In a set that is full, a new key replaces the
 * one that was used least recently, one without pending entries if there is
 * one.
 */

#define DSA_SUMS_ID        20           /* bytes of the id of a key */
#define DSA_SUMS_WAYS      16           /* rows of a set */
#define DSA_SUMS_MAX_ROWS  (1 << 22)


typedef struct dsa_sums_row_s  dsa_sums_row_t;

typedef struct {
    void      *memory;                  /* aligned to 8 bytes */
    size_t     size;
    uint32_t   rows;                    /* that lie in this memory */
    int        section;                 /* this process is in a section */
    int64_t  (*counts)[DSA_SUMS_PERIODS];   /* during a recount, else NULL */
} dsa_sums_table_t;


/* The bytes of a table with that many rows, a power of 2 of whole sets. */
size_t dsa_sums_table_size(uint32_t rows);

/* The rows of a table that has room for the sums of n keys. */
uint32_t dsa_sums_table_rows(size_t n);

/*
 * Makes zeroed memory, which has room for them, an empty table with that many
 * rows.  It needs a recount.
 */
void dsa_sums_table_create(dsa_sums_table_t *table, uint32_t rows);

/*
 * Uses a table that is in the memory.  DSA_OK, or DSA_ERROR: it is damaged, has
 * another layout, or more rows than the memory has room for.
 */
int dsa_sums_table_open(dsa_sums_table_t *table);

/*
 * In a section: enlarges the table to that many rows, for which the memory has
 * room.
 */
void dsa_sums_table_grow(dsa_sums_table_t *table, uint32_t rows);

/*
 * Begins and ends a section.  DSA_OK; DSA_AGAIN: the section has begun, and
 * a recount must come first; DSA_ERROR: it has not begun, because the table has
 * another number of rows now, and must be opened again.
 */
int dsa_sums_table_enter(dsa_sums_table_t *table);
void dsa_sums_table_leave(dsa_sums_table_t *table);

/* Requires a recount in the next section; the lock need not be held. */
void dsa_sums_table_doubt(dsa_sums_table_t *table);

/* In a section: 1 if a recount is required. */
int dsa_sums_table_doubtful(const dsa_sums_table_t *table);

/*
 * In a section: the row of a key, which is created if there is none; its sums
 * are copied to *sums.  id has DSA_SUMS_ID bytes, the first one is not zero.
 * dsa_sums_table_put() replaces its sums by *sums.
 */
dsa_sums_row_t *dsa_sums_table_get(dsa_sums_table_t *table, const void *id,
    dsa_sums_t *sums, time_t now);
void dsa_sums_table_put(dsa_sums_table_t *table, dsa_sums_row_t *row,
    const dsa_sums_t *sums);

/*
 * Recounts what is pending, in a section: begin, add for each entry that is
 * charged and not confirmed, end.  If the process is killed meanwhile, the rows
 * that are left have their sums of before, and a recount is still required.
 * DSA_ERROR: out of memory, nothing has begun.
 */
int dsa_sums_table_recount(dsa_sums_table_t *table);
void dsa_sums_table_recount_add(dsa_sums_table_t *table, const void *id,
    int64_t amount, time_t when, time_t now);
void dsa_sums_table_recount_end(dsa_sums_table_t *table);

/*
 * What a key has spent.  It needs no lock; in a section it never returns
 * DSA_AGAIN.
 * Returns 1 or 0 as dsa_sums_spent() does, or DSA_AGAIN: another process is in
 * a section, or a recount is required.
 */
int dsa_sums_table_look(const dsa_sums_table_t *table, const void *id,
    time_t now, int64_t spent[DSA_SUMS_PERIODS]);


#endif /* _DSA_SUMS_TABLE_H_INCLUDED_ */
