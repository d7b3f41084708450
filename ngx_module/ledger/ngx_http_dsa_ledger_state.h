
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_STATE_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_STATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_ledger_file.h"


/*
 * The words of cells, for ngx_http_dsa_ledger.c: who owns a cell and in which
 * state it is, and the search for a free one.  Processes change a word by
 * compare and swap.
 */

typedef enum {
    ngx_http_dsa_ledger_free_cell = 0,
    ngx_http_dsa_ledger_writing,        /* the names are not complete */
    ngx_http_dsa_ledger_ended,          /* for Redis */
    ngx_http_dsa_ledger_running         /* its request runs */
} ngx_http_dsa_ledger_state_e;


/* The word of a cell: the state in its lowest byte, the owner above it. */

static ngx_inline ngx_atomic_uint_t
ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_state_e state, ngx_uint_t owner)
{
    return (ngx_atomic_uint_t) state | ((ngx_atomic_uint_t) owner << 8);
}


static ngx_inline ngx_uint_t
ngx_http_dsa_ledger_state(ngx_atomic_uint_t word)
{
    return word & 0xff;
}


static ngx_inline ngx_uint_t
ngx_http_dsa_ledger_owner(ngx_atomic_uint_t word)
{
    return word >> 8;
}


static ngx_inline ngx_uint_t
ngx_http_dsa_ledger_groups(const ngx_http_dsa_ledger_file_t *file)
{
    return (file->n - 1) / NGX_HTTP_DSA_LEDGER_GROUP + 1;
}


/*
 * Acquires a free cell for the owner, which is in the state of writing then.
 * Returns its index, or NGX_BUSY.  The search always begins at the same group,
 * first, because Redis keeps a marker for each cell that was used; it ends with
 * the bits that the first word has before that group.
 */
ngx_int_t ngx_http_dsa_ledger_state_find(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner, ngx_uint_t first);

/* Frees a cell that has this word.  0: its word is another one. */
ngx_uint_t ngx_http_dsa_ledger_state_release(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cell, ngx_atomic_uint_t word);

/*
 * Records that a cell is free: sets the bit of its group.  A bit that is set is
 * not written again.
 */
void ngx_http_dsa_ledger_state_mark_free(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cell);


#endif /* _NGX_HTTP_DSA_LEDGER_STATE_H_INCLUDED_ */
