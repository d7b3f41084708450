
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
 * What became of a record, for a request that waits for it: NGX_OK, all is
 * written; NGX_DECLINED, the ledger is, the messages were refused, why says
 * the reason; NGX_AGAIN, not yet, it stays in the queue (Redis went away);
 * NGX_ERROR, it never can be, which is logged and counted as lost.
 * Comes within the command's timeout, in the request's own context, never
 * from within ngx_http_dsa_store_record(); not when the request ends first.
 */
typedef void (*ngx_http_dsa_store_record_pt)(ngx_http_request_t *r,
    ngx_int_t rc, const char *why);


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
     * Who waits, or NULL.  A client may send the next turn to another worker
     * as soon as it has the end of this one: hold the end back until the
     * handler was called, and the next turn finds this one.
     */
    ngx_http_request_t            *request;
    ngx_http_dsa_store_record_pt   handler;
} ngx_http_dsa_record_t;


/*
 * Copies the record into the worker's bounded queue and writes it when Redis
 * is there, as often as needed and counted once.  NGX_OK: queued, and handler
 * comes; NGX_AGAIN: queued, Redis is away and handler does not come;
 * NGX_DECLINED: the queue is full, the loss is logged at error level and
 * counted, handler does not come.
 */
ngx_int_t ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record);

/*
 * Of this worker: records not yet written, records lost, and records whose
 * messages were refused, so far.
 */
ngx_uint_t ngx_http_dsa_store_pending(ngx_http_dsa_redis_t *redis);
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
