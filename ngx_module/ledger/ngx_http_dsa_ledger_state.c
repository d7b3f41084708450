
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_ledger_state.h"


static ngx_int_t ngx_http_dsa_ledger_state_find_in(
    ngx_http_dsa_ledger_file_t *file, ngx_uint_t owner, ngx_uint_t group);
static ngx_int_t ngx_http_dsa_ledger_state_acquire(
    ngx_http_dsa_ledger_file_t *file, ngx_uint_t owner, ngx_uint_t group);


ngx_int_t
ngx_http_dsa_ledger_state_find(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner, ngx_uint_t first)
{
    uint64_t     bits;
    ngx_int_t    cell;
    ngx_uint_t   i, w, group, groups, words;

    groups = ngx_http_dsa_ledger_groups(file);
    words = (groups - 1) / 64 + 1;

    for (i = 0; i <= words; i++) {
        w = (first / 64 + i) % words;
        bits = __atomic_load_n(&file->groups[w], __ATOMIC_SEQ_CST);

        if (i == 0) {
            bits &= ~(uint64_t) 0 << first % 64;
        }

        for ( /* void */ ; bits != 0; bits &= bits - 1) {
            group = w * 64 + __builtin_ctzll(bits);

            if (group >= groups) {
                break;
            }

            cell = ngx_http_dsa_ledger_state_find_in(file, owner, group);

            if (cell >= 0) {
                return cell;
            }
        }
    }

    return NGX_BUSY;
}


/* The same in one group, whose bit is set; clears it if no cell is free. */

static ngx_int_t
ngx_http_dsa_ledger_state_find_in(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner, ngx_uint_t group)
{
    uint64_t    bit;
    ngx_int_t   cell;

    cell = ngx_http_dsa_ledger_state_acquire(file, owner, group);

    /*
     * If the file was enlarged since this process mapped it, other processes
     * have more cells of the last group than this one.
     */

    if (cell >= 0 || (group + 1) * NGX_HTTP_DSA_LEDGER_GROUP > file->n) {
        return cell;
    }

    bit = (uint64_t) 1 << group % 64;

    (void) __atomic_fetch_and(&file->groups[group / 64], ~bit,
                              __ATOMIC_SEQ_CST);

    /* a cell may have been freed meanwhile, when the bit was still set */

    cell = ngx_http_dsa_ledger_state_acquire(file, owner, group);

    if (cell >= 0) {
        ngx_http_dsa_ledger_state_mark_free(file, cell);
    }

    return cell;
}


static ngx_int_t
ngx_http_dsa_ledger_state_acquire(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner, ngx_uint_t group)
{
    ngx_uint_t          cell, last;
    ngx_atomic_t       *word;
    ngx_atomic_uint_t   writing;

    writing = ngx_http_dsa_ledger_word(ngx_http_dsa_ledger_writing, owner);

    last = ngx_min((group + 1) * NGX_HTTP_DSA_LEDGER_GROUP, file->n);

    for (cell = group * NGX_HTTP_DSA_LEDGER_GROUP; cell < last; cell++) {
        word = &file->cells[cell].word;

        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0
            && ngx_atomic_cmp_set(word, 0, writing))
        {
            return cell;
        }
    }

    return NGX_BUSY;
}


ngx_uint_t
ngx_http_dsa_ledger_state_release(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cell, ngx_atomic_uint_t word)
{
    if (!ngx_atomic_cmp_set(&file->cells[cell].word, word, 0)) {
        return 0;
    }

    ngx_http_dsa_ledger_state_mark_free(file, cell);

    return 1;
}


void
ngx_http_dsa_ledger_state_mark_free(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cell)
{
    uint64_t     bit, *word;
    ngx_uint_t   group;

    group = cell / NGX_HTTP_DSA_LEDGER_GROUP;
    word = &file->groups[group / 64];
    bit = (uint64_t) 1 << group % 64;

    if ((__atomic_load_n(word, __ATOMIC_SEQ_CST) & bit) == 0) {
        (void) __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
    }
}
