
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/schema.h"
#include "ngx_http_dsa_ledger_file.h"
#include "ngx_http_dsa_sums.h"


/*
 * Ledger entries that Redis has not confirmed, in cells of a file that all
 * workers map.  An entry is in the file from ngx_http_dsa_ledger_reserve(),
 * before its request is submitted, until ngx_http_dsa_ledger_free(), and its
 * counts follow the request.  It survives the end of any process, because the
 * page cache belongs to the kernel.  Only a crash of the machine can lose what
 * was not yet on the disk.
 *
 * Each worker has an owner number and a lock on the byte of the file with this
 * number, which the kernel releases when the process ends.  A cell contains the
 * number of its owner.  If a worker can lock the number of another worker, that
 * worker has ended, and its cells are adopted.  Old and new workers of a
 * reload, and the workers of two masters during a binary upgrade, share one
 * file in this way.
 *
 * A worker that acquires an owner number draws the sender of its entries, and
 * each entry gets a number of that sender when its cell is reserved.  Both stay
 * in the cell when it is adopted.  So Redis recognizes the entry even if the
 * cell is that of an older copy of the file, from a backup or after a loss of
 * power, in which its request still ran.
 *
 * A process that has an owner number must have the file open only once:
 * closing another descriptor of the file would release its locks.
 */

typedef struct ngx_http_dsa_ledger_s  ngx_http_dsa_ledger_t;


/*
 * Called for each cell before it is adopted.  NGX_OK: the caller of adopt owns
 * the cell from now on; any other value leaves the cell for a later attempt.
 */
typedef ngx_int_t (*ngx_http_dsa_ledger_pt)(void *data, ngx_uint_t cell);


/*
 * In configuration.  path: of the file, with a terminating NUL; empty: the path
 * of the pid file and ".ledger".  The file is opened when the whole
 * configuration has been read and before workers are forked, and not at all by
 * "nginx -t".  If that fails, nginx does not start, or keeps its old
 * configuration.  NULL: out of memory.
 */
ngx_http_dsa_ledger_t *ngx_http_dsa_ledger_create(ngx_conf_t *cf,
    ngx_str_t *path, ngx_uint_t cells);

/*
 * In configuration, after the whole of it was read: there are API keys, up to n
 * of them, so what each of them has spent is counted, in a file whose path is
 * that of the ledger's and ".sums".
 */
void ngx_http_dsa_ledger_keys(ngx_http_dsa_ledger_t *ledger, size_t n);

/* What API keys have spent; NULL: there are none. */
ngx_http_dsa_sums_t *ngx_http_dsa_ledger_sums(ngx_http_dsa_ledger_t *ledger);

/*
 * In a worker: acquires an owner number, which it has until the process ends.
 * NGX_ERROR: no owner number is free, or no random number can be drawn, which
 * is logged, and ngx_http_dsa_ledger_reserve() fails from then on.
 */
ngx_int_t ngx_http_dsa_ledger_acquire_owner(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log);

/*
 * Adopts the cells of owners that have ended.  A request that ran then has
 * ended with its owner, and is charged with the counts of its last update; if
 * there were none, its cell is freed.  ngx_http_dsa_ledger_reserve() finds all
 * cells that are free at this time, also those that an owner freed immediately
 * before it was killed.  Returns the number of cells that were damaged; these
 * are logged and freed.
 */
ngx_uint_t ngx_http_dsa_ledger_adopt(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log, ngx_http_dsa_ledger_pt handler, void *data);

/*
 * Writes an entry, without what a turn has, to a free cell and returns the
 * number of the cell.  The request runs: the entry is not for Redis yet.
 * NGX_BUSY: no cell is free; NGX_DECLINED: a name is empty or longer than
 * NGX_HTTP_DSA_LEDGER_TEXT; NGX_ERROR: this worker has no owner number.
 */
ngx_int_t ngx_http_dsa_ledger_reserve(ngx_http_dsa_ledger_t *ledger,
    const dsa_schema_entry_t *entry);

/*
 * Writes time and counts of an entry to the cell of its request.  If this
 * process is killed meanwhile, the cell has the counts of before.
 */
void ngx_http_dsa_ledger_update(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    const dsa_schema_entry_t *entry);

/* The request has ended: its key is charged, and its entry is for Redis. */
void ngx_http_dsa_ledger_ready(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell);

/*
 * Reads the entry in a cell.  The strings of *entry point into *copy.
 * NGX_ERROR: the cell is damaged.
 */
ngx_int_t ngx_http_dsa_ledger_read(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t cell, ngx_http_dsa_ledger_cell_t *copy,
    dsa_schema_entry_t *entry);

/*
 * Notes in a cell of this worker when its entry was first sent, before it is;
 * 0: no attempt can have been executed.  It is "sent" of *copy after a read.
 */
void ngx_http_dsa_ledger_sent(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell,
    time_t when);

/*
 * Redis has the entry of a cell of this worker, or will never have it: the cell
 * is free.
 */
void ngx_http_dsa_ledger_confirmed(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t cell);
void ngx_http_dsa_ledger_lost(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell);

/* Frees a cell of this worker, whose request was not charged. */
void ngx_http_dsa_ledger_free(ngx_http_dsa_ledger_t *ledger, ngx_uint_t cell);

/* How many cells there are, and how many of them all workers use. */

typedef struct {
    ngx_uint_t                    cells;    /* 0: the file cannot be used, or
                                               this worker has no owner
                                               number */
    ngx_uint_t                    used;     /* at cells, requests are
                                               refused */
    ngx_uint_t                    waiting;  /* of these, for Redis: the request
                                               has ended */
} ngx_http_dsa_ledger_use_t;

/* Reads every cell, which takes 4 ms for a million of them. */
void ngx_http_dsa_ledger_use(ngx_http_dsa_ledger_t *ledger,
    ngx_http_dsa_ledger_use_t *use);

/* The path of the file, for log lines. */
ngx_str_t *ngx_http_dsa_ledger_path(ngx_http_dsa_ledger_t *ledger);


#endif /* _NGX_HTTP_DSA_LEDGER_H_INCLUDED_ */
