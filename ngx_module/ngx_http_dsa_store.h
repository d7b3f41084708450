
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STORE_H_INCLUDED_
#define _NGX_HTTP_DSA_STORE_H_INCLUDED_


#include "ngx_http_dsa_redis.h"


/*
 * What the module keeps in Redis: conversations, and the ledger of usage.
 * Keys, layouts and scripts are redis_schema's.
 */


/*
 * Loads a conversation for a request.  handler runs in the request's own
 * context, later or at once: status 200 with messages, a JSON array in
 * r->pool, and its version; 404 unknown to this tenant; 503 with why.  Not
 * called when the request ends first.
 */
typedef void (*ngx_http_dsa_store_load_pt)(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *messages, int64_t version,
    const char *why);

ngx_int_t ngx_http_dsa_store_load(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *conversation,
    ngx_http_dsa_store_load_pt handler);


/* What is written at the end of a request, by one idempotent script. */

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
} ngx_http_dsa_record_t;

/*
 * Copies the record into the worker's bounded queue and writes it when Redis
 * is there, as often as needed and counted once.  NGX_DECLINED when the queue
 * is full: the loss is logged at error level and counted.
 */
ngx_int_t ngx_http_dsa_store_record(ngx_http_dsa_redis_t *redis,
    const ngx_http_dsa_record_t *record);

/* Records not yet written in this worker, and records lost so far. */
ngx_uint_t ngx_http_dsa_store_pending(ngx_http_dsa_redis_t *redis);
ngx_uint_t ngx_http_dsa_store_lost(ngx_http_dsa_redis_t *redis);


/*
 * POST /v1/conversations, GET and DELETE /v1/conversations/ID: a content
 * handler's body once the tenant is known.  id is empty for the collection.
 */
ngx_int_t ngx_http_dsa_conversations_handler(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id);


#endif /* _NGX_HTTP_DSA_STORE_H_INCLUDED_ */
