
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_CELL_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_CELL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/schema.h"
#include "ngx_http_dsa_ledger_file.h"


/*
 * An entry in a cell, for ngx_http_dsa_ledger.c: how it is written, and what a
 * reader checks.  No function uses the word of a cell.
 */

/*
 * Clears a cell and writes the names of an entry to it.  NGX_DECLINED: a name
 * is empty or longer than NGX_HTTP_DSA_LEDGER_TEXT.
 */
ngx_int_t ngx_http_dsa_ledger_cell_fill(ngx_http_dsa_ledger_cell_t *cell,
    const dsa_schema_entry_t *entry);

/*
 * Completes a cell that has the names: sender and number of the entry, the
 * checksum of all that does not change, and the first counts.
 */
void ngx_http_dsa_ledger_cell_begin(ngx_http_dsa_ledger_cell_t *cell,
    uint64_t sender, uint64_t number, const dsa_schema_entry_t *entry);

/* Writes time and counts of an entry; crc is that of their cell. */
void ngx_http_dsa_ledger_cell_counts(ngx_http_dsa_ledger_counts_t *counts,
    const dsa_schema_entry_t *entry, uint32_t crc);

/*
 * Checks the copy of a cell.  All of *entry but its cell is set; its strings
 * point into the copy.  NGX_ERROR: it is damaged.
 */
ngx_int_t ngx_http_dsa_ledger_cell_read(ngx_http_dsa_ledger_cell_t *copy,
    dsa_schema_entry_t *entry);


#endif /* _NGX_HTTP_DSA_LEDGER_CELL_H_INCLUDED_ */
