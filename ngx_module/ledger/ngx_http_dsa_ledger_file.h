
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_FILE_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_FILE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/tiers.h"


/*
 * The file of ledger entries: a header and cells of one size, mapped by all
 * processes.  ngx_http_dsa_ledger.h describes how the cells are used.
 */

#define NGX_HTTP_DSA_LEDGER_HEADER  4096        /* bytes before the cells */
#define NGX_HTTP_DSA_LEDGER_MAX     1000000     /* cells */
#define NGX_HTTP_DSA_LEDGER_TEXT    64          /* bytes of a name */
#define NGX_HTTP_DSA_LEDGER_KEY     24          /* of the id of an API key */

/*
 * The page of the header also has a bit for each group of cells, so that a free
 * cell is found without reading all cells: 0 if no cell of the group is free.
 * A process that frees a cell may be killed before it sets the bit.
 * ngx_http_dsa_ledger_adopt() sets it then.
 */

#define NGX_HTTP_DSA_LEDGER_GROUP   32          /* cells */

/*
 * Processes lock single bytes of the file: one byte for each owner number, and
 * one more while they open the file.
 */

#define NGX_HTTP_DSA_LEDGER_OWNERS  1024


/* The part of an entry that changes while its request runs. */

typedef struct {
    int64_t                       time;     /* of the last change */
    uint64_t                      prompt_tokens;
    uint64_t                      cached_tokens;
    uint64_t                      tier_tokens[DSA_TIERS - DSA_TIER_HOST];
                                            /* of cached ones, from
                                               DSA_TIER_HOST on */
    uint64_t                      completion_tokens;
    uint64_t                      reasoning_tokens;
    int64_t                       cost_miss;    /* 10^-12 of a unit */
    int64_t                       cost_hit;
    int64_t                       cost_output;
    uint64_t                      check;    /* of these, and of the cell */
} ngx_http_dsa_ledger_counts_t;


/*
 * A cell in the file, in the byte order of the machine.  A reader does not
 * trust it: it may be half written, or written by another program.
 *
 * The names, sender and number are written once.  The counts change with each
 * token, and their owner may be killed at any moment, so there are two of them:
 * the owner writes the one that is not current, and then makes it current by
 * one store.
 */

typedef struct {
    ngx_atomic_t                  word;     /* state and owner */
    uint32_t                      crc;      /* of what follows up to current */
    uint8_t                       request_len;
    uint8_t                       tenant_len;
    uint8_t                       model_len;
    uint8_t                       key_len;  /* 0: no API key */
    char                          request[NGX_HTTP_DSA_LEDGER_TEXT];
    char                          tenant[NGX_HTTP_DSA_LEDGER_TEXT];
    char                          model[NGX_HTTP_DSA_LEDGER_TEXT];
    char                          key[NGX_HTTP_DSA_LEDGER_KEY];
    uint64_t                      sender;   /* the entry's in Redis, where the
                                               cell's index is its cell */
    uint64_t                      number;   /* the same */
    ngx_atomic_t                  current;  /* 0 or 1 */
    ngx_http_dsa_ledger_counts_t  counts[2];
    ngx_atomic_t                  sent;     /* seconds since 1970: the first
                                               attempt that Redis may have
                                               executed; 0: none */
    uint8_t                       unused[72];
} ngx_http_dsa_ledger_cell_t;


typedef struct {
    ngx_str_t                     path;     /* with a terminating NUL */
    ngx_fd_t                      fd;
    u_char                       *map;      /* NULL: not open */
    size_t                        size;
    uint64_t                     *groups;   /* in map: the bits of groups */
    ngx_http_dsa_ledger_cell_t   *cells;    /* in map */
    ngx_uint_t                    n;        /* cells */
} ngx_http_dsa_ledger_file_t;


/*
 * Opens, creates, checks and maps the file at path.  It gets the number of
 * cells that is asked for, or keeps a larger one.  A file that is damaged or
 * has another layout is renamed and replaced.  pool: for the new name.  NGX_OK,
 * or NGX_ERROR, which is logged, and the file is closed.
 */
ngx_int_t ngx_http_dsa_ledger_file_open(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t cells, ngx_pool_t *pool, ngx_log_t *log);

/*
 * In a worker that begins: allocates the file again if it was truncated since
 * it was opened.  Reading beyond its end would raise SIGBUS in each worker that
 * replaces another one.  NGX_OK, or NGX_ERROR, which is logged, and the file is
 * closed.
 */
ngx_int_t ngx_http_dsa_ledger_file_restore(ngx_http_dsa_ledger_file_t *file,
    ngx_log_t *log);

void ngx_http_dsa_ledger_file_close(ngx_http_dsa_ledger_file_t *file);

/*
 * Locks the byte of an owner number without waiting, and unlocks it.  The
 * kernel releases the locks of a process that ends.  NGX_OK, or NGX_ERROR with
 * errno: another process has the lock.
 */
ngx_int_t ngx_http_dsa_ledger_file_lock(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner);
void ngx_http_dsa_ledger_file_unlock(ngx_http_dsa_ledger_file_t *file,
    ngx_uint_t owner);

/* The checksum that cell->crc must have. */
uint32_t ngx_http_dsa_ledger_file_crc(const ngx_http_dsa_ledger_cell_t *cell);

/*
 * The checksum that counts->check must have in a cell with this crc.  It is
 * computed for each token, so it is a product for each word and no CRC.
 */
uint64_t ngx_http_dsa_ledger_file_check(
    const ngx_http_dsa_ledger_counts_t *counts, uint32_t crc);


#endif /* _NGX_HTTP_DSA_LEDGER_FILE_H_INCLUDED_ */
