
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SUMS_H_INCLUDED_
#define _NGX_HTTP_DSA_SUMS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "base/sums_table.h"
#include "redis_schema/schema.h"


/*
 * What each API key has spent, in a file beside the queue file of ledger
 * entries: the sums that were last read from Redis, and the entries of this
 * host that are not in them (base/sums.h).  All processes map it, also those of
 * two masters during a binary upgrade, so each of them counts what the others
 * charge.  It survives the end of any process as the queue file does.
 *
 * An entry is charged when its request has ended, which its cell in the queue
 * file has as its state, and confirmed or lost when its cell is freed.  Cell
 * and sums change in one section, under a lock of the file.  If a process is
 * killed in a section, the next one counts the entries in the queue file again.
 * If the file is missing or damaged, the sums are not known.
 */

typedef struct ngx_http_dsa_sums_s  ngx_http_dsa_sums_t;


/*
 * Calls ngx_http_dsa_sums_count() for each entry that is charged and not
 * confirmed.
 */
typedef void (*ngx_http_dsa_sums_pt)(ngx_http_dsa_sums_t *sums, void *data);


struct ngx_http_dsa_sums_s {
    ngx_str_t                path;          /* with a terminating NUL */
    ngx_fd_t                 fd;
    dsa_sums_table_t         table;         /* memory is NULL: not open */
    ngx_http_dsa_sums_pt     entries;
    void                    *data;          /* of entries */
    unsigned                 failed:1;      /* the lock failed, which was
                                               logged */
};


/*
 * Opens or creates the file at path, with room for the sums of n keys at least.
 * NGX_OK, or NGX_ERROR, which is logged, and the file is closed.
 */
ngx_int_t ngx_http_dsa_sums_open(ngx_http_dsa_sums_t *sums, size_t n,
    ngx_log_t *log);

/*
 * In a worker that begins: allocates the file again if it was truncated.
 * NGX_OK, or NGX_ERROR, which is logged, and the file is closed.
 */
ngx_int_t ngx_http_dsa_sums_restore(ngx_http_dsa_sums_t *sums,
    ngx_log_t *log);

void ngx_http_dsa_sums_close(ngx_http_dsa_sums_t *sums);

/*
 * Begins and ends a section.  NGX_ERROR: it has not begun, which is logged;
 * then no sums are known until a later section has counted the entries again,
 * so that the state of a cell may be changed without a section.
 */
ngx_int_t ngx_http_dsa_sums_lock(ngx_http_dsa_sums_t *sums);
void ngx_http_dsa_sums_unlock(ngx_http_dsa_sums_t *sums);

/* In a section: an entry was charged, is confirmed, or is lost. */
void ngx_http_dsa_sums_charge(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry);
void ngx_http_dsa_sums_confirm(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry);
void ngx_http_dsa_sums_lose(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry);

/* From entries(): an entry that is charged and not confirmed. */
void ngx_http_dsa_sums_count(ngx_http_dsa_sums_t *sums,
    const dsa_schema_entry_t *entry);

/*
 * In a section: marks what is confirmed, before the sums of a key are requested
 * from Redis.  id has DSA_SUMS_ID bytes.
 */
void ngx_http_dsa_sums_mark(ngx_http_dsa_sums_t *sums, const u_char *id,
    dsa_sums_mark_t *mark);

/* The sums that were requested after the mark was set. */
void ngx_http_dsa_sums_read(ngx_http_dsa_sums_t *sums, const u_char *id,
    const dsa_sums_mark_t *mark, const int64_t read[DSA_SUMS_PERIODS]);

/*
 * What a key has spent, 10^-12 units.  Returns 1, or 0: that is not known, and
 * spent has only what is.
 */
ngx_uint_t ngx_http_dsa_sums_spent(ngx_http_dsa_sums_t *sums,
    const u_char *id, int64_t spent[DSA_SUMS_PERIODS]);


#endif /* _NGX_HTTP_DSA_SUMS_H_INCLUDED_ */
