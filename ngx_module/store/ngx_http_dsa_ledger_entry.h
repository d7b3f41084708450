
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_ENTRY_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_ENTRY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_module/ledger/ngx_http_dsa_ledger.h"
#include "ngx_module/redis/ngx_http_dsa_redis_command.h"
#include "ngx_http_dsa_save.h"


/*
 * The ledger entries of a worker that are in memory, because Redis has not
 * confirmed them, for ngx_http_dsa_ledger_queue.c and _node.c.  Each entry has
 * its cell in the file of ngx_http_dsa_ledger.h.
 */

typedef struct ngx_http_dsa_ledger_node_s  ngx_http_dsa_ledger_node_t;


/* All entries of a worker; zeroed, with the ledger, it has none. */

typedef struct {
    ngx_http_dsa_ledger_t           *ledger;
    ngx_uint_t                       n;
} ngx_http_dsa_ledger_entries_t;


typedef struct {
    ngx_queue_t                      queue;
    ngx_http_dsa_ledger_entries_t   *owner;
    ngx_http_dsa_ledger_node_t      *node;      /* the entry is in one of its
                                                   queues */
    ngx_http_dsa_redis_command_t    *command;   /* NULL: it is not sent */
    ngx_http_dsa_save_t             *turn;      /* NULL: none */
    ngx_uint_t                       cell;
    ngx_http_dsa_ledger_cell_t       copy;      /* the strings of entry */
    dsa_schema_entry_t               entry;
    const char                      *why;       /* the turn's last attempt
                                                   failed; NULL: there was
                                                   none */
    ngx_uint_t                       redirects; /* since it last failed */
    unsigned                         counted:1; /* in the window of its node */
    unsigned                         eval:1;    /* sent with the script */
    unsigned                         unconfirmed:1; /* an attempt had no reply,
                                                       the turn may be stored */
} ngx_http_dsa_ledger_entry_t;


/*
 * Reads the entry of a cell, which is in no queue and has no node and no turn.
 * NULL: out of memory, or the cell is damaged; *why is the reason, a static
 * clause.  ngx_http_dsa_ledger_entry_free() frees it.
 */
ngx_http_dsa_ledger_entry_t *ngx_http_dsa_ledger_entry_read(
    ngx_http_dsa_ledger_entries_t *entries, ngx_uint_t cell, const char **why);

/*
 * Removes an entry from its queue and frees its memory.  Its cell is not freed,
 * and its turn still belongs to the caller.
 */
void ngx_http_dsa_ledger_entry_free(ngx_http_dsa_ledger_entry_t *e);

/*
 * Writes to the cell when the first attempt was sent that Redis may have
 * executed, in seconds since the epoch; 0: none was.
 */
void ngx_http_dsa_ledger_entry_sent(ngx_http_dsa_ledger_entry_t *e,
    time_t when);

/* Returns 1 if the entry must not be sent again, as it could count twice. */
ngx_uint_t ngx_http_dsa_ledger_entry_stale(
    const ngx_http_dsa_ledger_entry_t *e);

/* Counts an entry that is lost, and logs all of its figures.  why: a clause. */
void ngx_http_dsa_ledger_entry_lost(const dsa_schema_entry_t *entry,
    const char *why);

/*
 * Ends and frees a turn that no entry has any more.  why: NULL if it is stored,
 * otherwise the reason, a static string.  The request that waits may end, and
 * add another entry, from within this function.
 */
void ngx_http_dsa_ledger_turn_end(ngx_http_dsa_save_t *turn, const char *why);


#endif /* _NGX_HTTP_DSA_LEDGER_ENTRY_H_INCLUDED_ */
