
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/schema.h"


/*
 * Ledger entries that Redis has not confirmed, in a file that all workers
 * map.  An entry is in the file from ngx_http_dsa_ledger_add() until
 * ngx_http_dsa_ledger_free(), whichever process ends in between and however:
 * the page cache belongs to the kernel.  Only a crash of the machine can lose
 * what was not yet on the disk.
 *
 * Each worker holds a seat: a lock on one byte of the file, which the kernel
 * releases when the process ends.  A slot names the seat of its owner.  If
 * a worker can lock another seat, the owner of that seat has ended, and the
 * worker adopts its slots.  Old and new workers of a reload, and the workers of
 * two masters during a binary upgrade, share one file in this way.
 *
 * A process must have the file open only once while it holds a seat: closing
 * any other descriptor of the file releases its locks.
 */

#define NGX_HTTP_DSA_LEDGER_MAX   1000000       /* slots */
#define NGX_HTTP_DSA_LEDGER_TEXT  64            /* bytes of a name */


typedef struct ngx_http_dsa_ledger_s  ngx_http_dsa_ledger_t;


/*
 * A slot as it is in the file, in the byte order of the machine.  Nothing of
 * it is trusted: it may be torn, or written by another program.
 */

typedef struct {
    ngx_atomic_t            word;           /* state and seat */
    uint32_t                crc;            /* of all that follows */
    uint8_t                 request_len;
    uint8_t                 tenant_len;
    uint8_t                 model_len;
    uint8_t                 reserved;
    int64_t                 time;
    uint64_t                prompt_tokens;
    uint64_t                cached_tokens;
    uint64_t                completion_tokens;
    uint64_t                reasoning_tokens;
    char                    request[NGX_HTTP_DSA_LEDGER_TEXT];
    char                    tenant[NGX_HTTP_DSA_LEDGER_TEXT];
    char                    model[NGX_HTTP_DSA_LEDGER_TEXT];
    uint64_t                unused;
} ngx_http_dsa_ledger_slot_t;


/*
 * Called for each slot that is adopted, before it is.  NGX_OK: the caller
 * now owns the slot; anything else leaves it for a later attempt.
 */
typedef ngx_int_t (*ngx_http_dsa_ledger_pt)(void *data, ngx_uint_t slot);


/*
 * In configuration.  path: with a terminating NUL; empty: the path of the
 * pid file and ".ledger".  The file is opened after the whole configuration
 * was read, not by "nginx -t", and before workers are forked; when that fails
 * nginx does not start, or keeps its old configuration.  NULL: out of memory.
 */
ngx_http_dsa_ledger_t *ngx_http_dsa_ledger_create(ngx_conf_t *cf,
    ngx_str_t *path, ngx_uint_t slots);

/*
 * In a worker: takes a seat, until the process ends.  NGX_ERROR: there is
 * none, which is logged; ngx_http_dsa_ledger_add() fails from then on.
 */
ngx_int_t ngx_http_dsa_ledger_sit(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log);

/*
 * Adopts the slots of owners that are gone.  Returns how many slots were
 * damaged; these are logged and freed.
 */
ngx_uint_t ngx_http_dsa_ledger_adopt(ngx_http_dsa_ledger_t *ledger,
    ngx_log_t *log, ngx_http_dsa_ledger_pt handler, void *data);

/*
 * Writes the entry's request, tenant, model, time and counts into a free slot
 * and returns its number.  NGX_BUSY: no slot is free; NGX_DECLINED: the entry
 * does not fit a slot; NGX_ERROR: this worker has no seat.
 */
ngx_int_t ngx_http_dsa_ledger_add(ngx_http_dsa_ledger_t *ledger,
    const dsa_schema_record_t *entry);

/*
 * Reads the entry in a slot.  The strings of *entry are in *copy.  NGX_ERROR:
 * the slot is damaged.
 */
ngx_int_t ngx_http_dsa_ledger_read(ngx_http_dsa_ledger_t *ledger,
    ngx_uint_t slot, ngx_http_dsa_ledger_slot_t *copy,
    dsa_schema_record_t *entry);

/* Frees a slot of this worker. */
void ngx_http_dsa_ledger_free(ngx_http_dsa_ledger_t *ledger, ngx_uint_t slot);

/* Entries of all workers that Redis has not confirmed; reads every slot. */
ngx_uint_t ngx_http_dsa_ledger_entries(ngx_http_dsa_ledger_t *ledger);

/* The file, for log lines. */
ngx_str_t *ngx_http_dsa_ledger_path(ngx_http_dsa_ledger_t *ledger);


#endif /* _NGX_HTTP_DSA_LEDGER_H_INCLUDED_ */
