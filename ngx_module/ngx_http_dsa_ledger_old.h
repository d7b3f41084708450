
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_OLD_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_OLD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "redis_schema/schema.h"
#include "ngx_http_dsa_ledger_file.h"


/*
 * The file of ledger entries as nginx with version 1 of its layout writes it.
 * That nginx may still run, during an upgrade or after a rollback, so the file
 * stays where it is and as it is.  Its workers hold seats by locks, as those of
 * this version do in their own file; the entries of a worker that has ended are
 * read, and their slots are freed.
 *
 * The file is not mapped if there is nothing to read.  "slots" and "groups" of
 * ngx_http_dsa_ledger_file_t are those of this version, and are not used.
 */


/*
 * Called for each entry before its slot is freed.  NGX_OK: the caller of adopt
 * has the entry now; any other value leaves it for a later attempt.
 */
typedef ngx_int_t (*ngx_http_dsa_ledger_old_pt)(void *data,
    const dsa_schema_record_t *entry);


/*
 * Opens and maps the file at old->path, if there is one; a file that is not of
 * this layout is left alone, which is logged.  Workers inherit the descriptor.
 * NGX_ERROR: it cannot be opened or is not a regular file, which is logged.
 */
ngx_int_t ngx_http_dsa_ledger_old_open(ngx_http_dsa_ledger_file_t *old,
    ngx_log_t *log);

/*
 * In a worker: passes the entries of workers that have ended to the handler.
 * When no entry is left and no worker has a seat, it closes the file.  Returns
 * the number of slots that were damaged; these are logged and freed.
 */
ngx_uint_t ngx_http_dsa_ledger_old_adopt(ngx_http_dsa_ledger_file_t *old,
    ngx_log_t *log, ngx_http_dsa_ledger_old_pt handler, void *data);


#endif /* _NGX_HTTP_DSA_LEDGER_OLD_H_INCLUDED_ */
