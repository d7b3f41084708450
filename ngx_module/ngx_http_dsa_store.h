
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STORE_H_INCLUDED_
#define _NGX_HTTP_DSA_STORE_H_INCLUDED_


#include "redis_schema/schema.h"

#include "ngx_http_dsa_redis.h"


/*
 * What the module keeps in Redis: conversations, and the ledger of usage.
 * Keys, layouts and scripts are redis_schema's.
 */


/*
 * Loads a conversation for a request.  handler runs in the request's own
 * context, later or at once: status 200 with messages, a JSON array in
 * r->pool, and its version; 400 an id that is none; 404 unknown to this
 * tenant; 503 with why.  Not called when the request ends first, nor when
 * NGX_ERROR (no memory) is returned.  Posted requests are run after it when
 * it comes later; its caller has nothing to do.
 */
typedef void (*ngx_http_dsa_store_load_pt)(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *messages, int64_t version,
    const char *why);

ngx_int_t ngx_http_dsa_store_load(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *conversation,
    ngx_http_dsa_store_load_pt handler);


/*
 * What became of the turn of a record, for a request that waits for it.  why
 * is NULL when it was appended: the conversation then has the version after
 * the one that was loaded.  Otherwise the turn is not stored, and why is the
 * reason, for the developer of the client.  Called within dsa_redis's timeout,
 * in the request's own context, never from within ngx_http_dsa_store_record();
 * not called if the request ends first.
 */
typedef void (*ngx_http_dsa_store_record_pt)(ngx_http_request_t *r,
    const char *why);


/*
 * What is written at the end of a request, by one idempotent script.  Zero
 * what is not used.
 */

typedef struct {
    ngx_str_t       request_id;         /* unique; makes it idempotent */
    ngx_str_t       tenant;             /* hex */
    ngx_str_t       model;
    time_t          time;
    uint64_t        prompt_tokens;
    uint64_t        cached_tokens;
    uint64_t        completion_tokens;
    uint64_t        reasoning_tokens;
    ngx_str_t       conversation;       /* empty: none */
    int64_t         version;            /* as loaded; another turn that came
                                           between makes the append fail,
                                           never the ledger */
    ngx_str_t       messages;           /* JSON array to append */

    /*
     * The request that waits; only with a conversation.  A client may send
     * the next turn to another worker as soon as it has the end of this
     * one.  The end has to wait for the handler, so that the next turn finds
     * this one.
     */
    ngx_http_request_t            *request;
    ngx_http_dsa_store_record_pt   handler;
} ngx_http_dsa_record_t;


/*
 * In a worker: connects to Redis, and takes over the ledger entries of
 * processes that have ended.  NGX_OK or NGX_ERROR.
 * ngx_http_dsa_redis_exit_worker() ends it.
 */
ngx_int_t ngx_http_dsa_store_init_worker(ngx_http_dsa_redis_t *redis,
    ngx_cycle_t *cycle);

/*
 * Writes the ledger entry to the queue in the file, from where it is written
 * to Redis as often as needed and counted once.  When the queue is full, the
 * loss is logged with all figures and counted.  A turn is written together
 * with its entry, or withdrawn when dsa_redis's timeout is over.  Copies what
 * it keeps.  NGX_OK: handler comes, if there is a turn; NGX_DECLINED: the
 * turn is not stored, *why is the reason, and handler does not come.
 */
ngx_int_t ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record, const char **why);

/* Of this worker: ledger entries lost, and turns that were not stored. */
ngx_uint_t ngx_http_dsa_store_lost(ngx_http_dsa_redis_t *redis);
ngx_uint_t ngx_http_dsa_store_refused(ngx_http_dsa_redis_t *redis);


/* Sends a command of the schema, as ngx_http_dsa_redis_command(). */
ngx_http_dsa_redis_call_t *ngx_http_dsa_store_command(
    ngx_http_dsa_redis_t *redis, const dsa_schema_command_t *cmd,
    ngx_http_dsa_redis_pt handler, void *data);


/*
 * POST /v1/conversations, GET and DELETE /v1/conversations/ID: a content
 * handler's body once the tenant is known.  redis is NULL when there is none;
 * id is empty for the collection; tenant and id outlive the request.
 */
ngx_int_t ngx_http_dsa_conversations_handler(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id);


#endif /* _NGX_HTTP_DSA_STORE_H_INCLUDED_ */
