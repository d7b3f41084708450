
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_LEDGER_QUEUE_H_INCLUDED_
#define _NGX_HTTP_DSA_LEDGER_QUEUE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_save.h"


/*
 * A worker's queue of ledger entries for Redis.  Each entry keeps its cell in
 * the file of ngx_http_dsa_ledger.h until Redis has confirmed it, and is sent
 * again when no reply came: the script counts it once.
 *
 * In a Redis Cluster each node has a window of entries that are sent and not
 * confirmed, so that one which hangs or is down delays its own entries alone.
 * Only an entry whose node is not known, as no redirect has named it, may have
 * to wait until a node that hangs is left after the timeout of dsa_redis.
 *
 * An entry that has a turn is written together with its messages and is sent
 * before those without one, because an answer waits for it.  After the timeout
 * of dsa_redis the turn is withdrawn, and the entry is written without it.  If
 * Redis executes an earlier attempt after that, the script finds the marker of
 * the entry or another version of the conversation, and appends nothing.
 */

/*
 * In a worker: acquires an owner number, adopts the entries of processes that
 * have ended, now and every few seconds, and starts to connect.  NGX_OK, or
 * NGX_ERROR: out of memory.  ngx_http_dsa_redis_exit_worker() ends it.
 */
ngx_int_t ngx_http_dsa_ledger_queue_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle);

/*
 * Reserves a cell of the file for a request that runs, with its names and
 * counts.  Returns the cell, or NGX_DECLINED; *why is the reason, which is
 * static, for the answer and the log.
 */
ngx_int_t ngx_http_dsa_ledger_queue_reserve(ngx_http_dsa_redis_t *redis,
    const dsa_schema_entry_t *entry, const char **why);

/*
 * The request of a cell has ended: writes its counts to the cell and queues the
 * entry, together with turn (NULL: none).  The strings of entry are copied.
 * NGX_OK: the queue ends the turn later, never from within this function.
 * NGX_DECLINED: *why is the reason, which is static, and the turn still belongs
 * to the caller.  The entry is lost then, which is logged with all of its
 * figures and counted, unless the worker exits and another one adopts it.
 */
ngx_int_t ngx_http_dsa_ledger_queue_add(ngx_http_dsa_redis_t *redis,
    ngx_uint_t cell, const dsa_schema_entry_t *entry,
    ngx_http_dsa_save_t *turn, const char **why);

/*
 * Why Redis, or the node of a cluster that has the keys of this tenant, accepts
 * no writes at present; NULL: no write was refused.
 */
const char *ngx_http_dsa_ledger_queue_blocked(ngx_http_dsa_redis_t *redis,
    dsa_str_t tenant);


#endif /* _NGX_HTTP_DSA_LEDGER_QUEUE_H_INCLUDED_ */
