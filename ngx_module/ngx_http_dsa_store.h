
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STORE_H_INCLUDED_
#define _NGX_HTTP_DSA_STORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/schema.h"
#include "ngx_http_dsa_lease.h"
#include "ngx_http_dsa_redis.h"
#include "ngx_http_dsa_save.h"


/*
 * What a chat loads from Redis when it begins, and what it leaves there when
 * it ends.
 */


/*
 * Takes the lease of a conversation for a request, and loads it.  The handler
 * runs in the context of the request, later or at once.  Status 200:
 * conversation is set, and its messages are valid during the call; 400: id is
 * not a conversation id; 404: there is no such conversation of this tenant;
 * 409: another turn has the lease; 503: Redis cannot be used.  Unless the
 * status is 200, why is the reason, which is static.  The handler is not called
 * if the request ends first, or if NGX_ERROR (out of memory) is returned.
 * Posted requests are run after a handler that is called later.
 */
typedef void (*ngx_http_dsa_store_load_pt)(ngx_http_request_t *r,
    ngx_uint_t status, const dsa_schema_conversation_t *conversation,
    const char *why);

ngx_int_t ngx_http_dsa_store_load(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id,
    ngx_http_dsa_lease_t *lease, const ngx_str_t *owner,
    ngx_http_dsa_store_load_pt handler);


/* A turn of a conversation, which is stored at the end of its request. */

typedef struct {
    ngx_str_t                conversation;  /* its id */
    int64_t                  version;   /* as loaded; if another turn has been
                                           stored since then, this one is not,
                                           and the ledger is written */
    dsa_buf_t               *messages;  /* as dsa_schema_split() reads them;
                                           their bytes may be moved away */

    /*
     * The request waits until the turn is stored.  A client may send its next
     * turn to another worker as soon as it has the end of this answer, and that
     * turn must find this one.
     */
    ngx_http_request_t      *request;
    ngx_http_dsa_save_pt     handler;
} ngx_http_dsa_turn_t;


/*
 * Writes the entry of a request that has ended, and the turn (NULL: none), by
 * one idempotent script.  The entry goes to the slot that was reserved for it,
 * from where it is sent to Redis as often as needed and counted once.  If that
 * fails, for example without memory, the entry is lost, which is logged with
 * all figures and counted.  Copies what it keeps.
 *
 * NGX_OK: if there is a turn, its handler is called within the timeout of
 * dsa_redis, but never from within this function, and not if the request ends
 * first.  NGX_DECLINED: there is a turn, and it is not stored; *why is the
 * reason, which is static, and the handler is not called.
 */
ngx_int_t ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    ngx_uint_t slot, const dsa_schema_record_t *entry,
    const ngx_http_dsa_turn_t *turn, const char **why);


#endif /* _NGX_HTTP_DSA_STORE_H_INCLUDED_ */
