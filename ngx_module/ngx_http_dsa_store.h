
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
#include "ngx_http_dsa_price.h"
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


/*
 * What is written at the end of a request, by one idempotent script.  Unused
 * fields are zero.
 */

typedef struct {
    ngx_uint_t      slot;               /* that was reserved for it */
    ngx_str_t       request_id;         /* unique; makes it idempotent */
    ngx_str_t       tenant;             /* hex */
    ngx_str_t       model;
    time_t          time;
    uint64_t        prompt_tokens;
    uint64_t        cached_tokens;
    uint64_t        host_tokens;        /* of cached ones */
    uint64_t        redis_tokens;
    uint64_t        completion_tokens;
    uint64_t        reasoning_tokens;
    ngx_str_t       key;                /* id of the API key; empty: none */
    ngx_http_dsa_cost_t  cost;

    ngx_str_t       conversation;       /* empty: none */
    int64_t         version;            /* as loaded; if another turn has been
                                           stored since then, this one is not,
                                           and the ledger is written */
    dsa_buf_t      *messages;           /* as dsa_schema_split() reads them;
                                           their bytes may be moved away */

    /*
     * With a conversation, the request that waits until the turn is stored.  A
     * client may send its next turn to another worker as soon as it has the
     * end of this answer, and that turn must find this one.
     */
    ngx_http_request_t     *request;
    ngx_http_dsa_save_pt    handler;
} ngx_http_dsa_record_t;


/*
 * Before a request is submitted: reserves a slot of the file of ledger entries
 * with the names and counts of record.  If this process is killed, another one
 * charges the request with the counts of the last update.  Returns the slot, or
 * NGX_DECLINED: nothing can be charged at present; *why is the reason, which is
 * static.
 */
ngx_int_t ngx_http_dsa_store_reserve(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const char **why);

/* The engine has reported more.  Called for each record with tokens. */
void ngx_http_dsa_store_update(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record);

/* The request has ended, and there is nothing to charge. */
void ngx_http_dsa_store_cancel(ngx_http_dsa_redis_t *redis, ngx_uint_t slot);

/*
 * Writes the ledger entry to its slot, from where it is sent to Redis as often
 * as needed and counted once.  If that fails, for example without memory, the
 * entry is lost, which is logged with all figures and counted.  Copies what it
 * keeps.
 *
 * NGX_OK: if there is a conversation, the handler is called within the timeout
 * of dsa_redis, but never from within this function, and not if the request
 * ends first.  NGX_DECLINED: there is a conversation, and the turn is not
 * stored; *why is the reason, which is static, and the handler is not called.
 */
ngx_int_t ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const char **why);


#endif /* _NGX_HTTP_DSA_STORE_H_INCLUDED_ */
