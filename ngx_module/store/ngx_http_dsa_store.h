
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STORE_H_INCLUDED_
#define _NGX_HTTP_DSA_STORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/schema.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_http_dsa_lease.h"
#include "ngx_http_dsa_save.h"


/*
 * The data that a chat loads from Redis when it begins, and stores there when
 * it ends.
 */


/*
 * Acquires the lease of a conversation for a request, and loads the
 * conversation.  The handler runs in the context of the request, at once or
 * later.  Status 200: reply is that of Redis, for dsa_schema_begun(); it is
 * valid until the handler returns, unless the handler keeps it.  400: id is not
 * a conversation id; 503: Redis cannot be used.  Unless the status is 200, why
 * is the reason, a static string.  The handler is not called if the request
 * ends first, or if NGX_ERROR (out of memory) is returned.  If the handler runs
 * later, posted requests are run after it.
 */
typedef void (*ngx_http_dsa_store_load_pt)(ngx_http_request_t *r, void *data,
    ngx_uint_t status, redisReply *reply, const char *why);

ngx_int_t ngx_http_dsa_store_load(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id,
    ngx_http_dsa_lease_t *lease, const ngx_str_t *owner,
    ngx_http_dsa_store_load_pt handler, void *data);


/* A turn of a conversation, which is stored at the end of its request. */

typedef struct {
    ngx_str_t                conversation;  /* its id */
    int64_t                  version;   /* as loaded; if another turn was
                                           stored since then, only the ledger
                                           entry is written */
    dsa_buf_t               *messages;  /* in the format of dsa_schema_split();
                                           the buffer may be emptied */

    /*
     * The request, which waits until the turn is stored.  The client may send
     * its next turn to another worker as soon as it has the end of this
     * answer, and that worker must find this turn in Redis.
     */
    ngx_http_request_t      *request;
    ngx_http_dsa_save_pt     handler;
} ngx_http_dsa_turn_t;


/*
 * Writes the entry of a request that has ended, and the turn (NULL: none), by
 * one idempotent script.  The entry is written to the cell that was reserved
 * for it.  It is sent to Redis until Redis confirms it, and is counted once.
 * If it cannot be written, for example without memory, the entry is lost,
 * which is logged with all figures and counted.  What is kept is copied.
 *
 * NGX_OK: if there is a turn, its handler will be called within the timeout of
 * dsa_redis, never by this function itself, and not if the request ends first.
 * NGX_DECLINED: there is a turn, but it is not stored; *why is the reason, a
 * static string, and the handler is not called.
 */
ngx_int_t ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    ngx_uint_t cell, const dsa_schema_entry_t *entry,
    const ngx_http_dsa_turn_t *turn, const char **why);


#endif /* _NGX_HTTP_DSA_STORE_H_INCLUDED_ */
