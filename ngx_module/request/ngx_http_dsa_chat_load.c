
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "context/conversation.h"
#include "redis_schema/conversations.h"
#include "redis_schema/resp.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/store/ngx_http_dsa_store.h"
#include "ngx_http_dsa_chat_stage.h"


/* memory for the list of the messages */

#define NGX_HTTP_DSA_CHAT_LIST  (1024 * 1024)


/* Allocated from the request's pool. */

typedef struct {
    ngx_http_dsa_request_t      *req;
    redisReply                  *reply;
    dsa_arena_t                 *list;
    dsa_schema_change_e          result;
    dsa_schema_conversation_t    found;
    unsigned                     refused:1; /* Redis has sent an error */
    unsigned                     unread:1;  /* err: the reply cannot be read */
    dsa_err_t                    err;
} ngx_http_dsa_chat_load_t;


static ngx_int_t ngx_http_dsa_chat_load_start(ngx_http_dsa_request_t *req,
    ngx_http_dsa_chat_load_t *load);
static void ngx_http_dsa_chat_load_reply(ngx_http_request_t *r, void *data,
    ngx_uint_t status, redisReply *reply, const char *why);
static void ngx_http_dsa_chat_load_insert(void *data);
static void ngx_http_dsa_chat_load_inserted(void *data);
static ngx_int_t ngx_http_dsa_chat_load_found(ngx_http_dsa_request_t *req,
    ngx_http_dsa_chat_load_t *load);
static void ngx_http_dsa_chat_load_damaged(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_load_fail(ngx_http_dsa_request_t *req,
    ngx_uint_t status, const char *why);
static void ngx_http_dsa_chat_load_cleanup(void *data);


ngx_int_t
ngx_http_dsa_chat_load(ngx_http_dsa_request_t *req)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_dsa_chat_load_t  *load;

    if (req->conversation.id.len == 0) {
        return NGX_DECLINED;
    }

    cln = ngx_pool_cleanup_add(req->http->pool,
                               sizeof(ngx_http_dsa_chat_load_t));
    if (cln == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    load = cln->data;
    ngx_memzero(load, sizeof(ngx_http_dsa_chat_load_t));

    cln->handler = ngx_http_dsa_chat_load_cleanup;
    load->req = req;

    return ngx_http_dsa_chat_load_start(req, load);
}


/*
 * NGX_AGAIN: ngx_http_dsa_chat_load_reply() is called; NGX_ERROR with a
 * failure.
 */

static ngx_int_t
ngx_http_dsa_chat_load_start(ngx_http_dsa_request_t *req,
    ngx_http_dsa_chat_load_t *load)
{
    ngx_http_dsa_main_conf_t  *mcf;

    if (req->tenant.len == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN,
                                 "conversation", "%s",
                                 ngx_http_dsa_no_tenant);
        return NGX_ERROR;
    }

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST,
                                 "conversation", "Conversations are not kept "
                                 "here: \"dsa_redis\" is not configured.");
        return NGX_ERROR;
    }

    if (ngx_http_dsa_store_load(req->http, mcf->redis, &req->tenant,
                                &req->conversation.id,
                                &req->conversation.lease, &req->ctx.id,
                                ngx_http_dsa_chat_load_reply, load)
        == NGX_ERROR)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


static void
ngx_http_dsa_chat_load_reply(ngx_http_request_t *r, void *data,
    ngx_uint_t status, redisReply *reply, const char *why)
{
    ngx_http_dsa_chat_load_t *load = data;

    size_t                   bytes;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    if (status != NGX_HTTP_OK) {
        ngx_http_dsa_chat_load_fail(req, status, why);
        return;
    }

    bytes = dsa_resp_bytes(reply);

    load->list = dsa_arena_create(NGX_HTTP_DSA_CHAT_LIST);
    req->submit.work = dsa_arena_create(
                           NGX_HTTP_DSA_ARENA(bytes + r->request_length));

    if (load->list == NULL || req->submit.work == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_redis_keep(reply);

    load->reply = reply;
    req->submit.bytes += bytes;

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_CONVERSATION,
                              ngx_http_dsa_chat_load_insert,
                              ngx_http_dsa_chat_load_inserted, load);
}


/* A run: reads the reply and inserts the stored messages. */

static void
ngx_http_dsa_chat_load_insert(void *data)
{
    ngx_http_dsa_chat_load_t *load = data;

    dsa_conversation_t       entries;
    ngx_http_dsa_request_t  *req;

    req = load->req;

    if (dsa_schema_begun(&load->result, &load->found, load->list, load->reply,
                         &load->err)
        != DSA_OK)
    {
        load->unread = 1;
        load->refused = load->reply->type == REDIS_REPLY_ERROR;

    } else if (load->result == DSA_SCHEMA_CHANGE_DONE) {
        ngx_memzero(&entries, sizeof(dsa_conversation_t));

        entries.entries = load->found.messages;
        entries.numbers = load->found.numbers;
        entries.n = load->found.n_messages;

        if (dsa_conversation_insert(req->submit.chat, req->submit.work,
                                    &entries, &ngx_http_dsa_chat_limits,
                                    req->refusal)
            == DSA_OK)
        {
            req->refusal->status = 0;
        }
    }

    ngx_http_dsa_chat_load_cleanup(load);
}


static void
ngx_http_dsa_chat_load_inserted(void *data)
{
    ngx_http_dsa_chat_load_t *load = data;

    ngx_http_dsa_request_t  *req;

    req = load->req;

    if (load->unread) {
        ngx_log_error(ngx_http_dsa_burst(load->err.text),
                      req->http->connection->log, 0, "dsa: %s",
                      load->err.text);

        if (load->refused) {
            ngx_http_dsa_chat_load_fail(req, NGX_HTTP_SERVICE_UNAVAILABLE,
                                        "Redis refuses to write at present");

        } else {
            ngx_http_dsa_chat_load_damaged(req);
        }

        return;
    }

    switch (load->result) {

    case DSA_SCHEMA_CHANGE_DONE:
        break;

    case DSA_SCHEMA_CHANGE_BUSY:
        ngx_http_dsa_chat_load_fail(req, NGX_HTTP_CONFLICT,
                      "another request is in progress for this conversation; "
                      "send this one again when that one has ended");
        return;

    case DSA_SCHEMA_CHANGE_GONE:
        ngx_http_dsa_chat_load_fail(req, NGX_HTTP_NOT_FOUND,
                                    "there is no such conversation");
        return;

    default: /* DSA_SCHEMA_CHANGE_DAMAGED */
        ngx_http_dsa_chat_load_damaged(req);
        return;
    }

    if (ngx_http_dsa_chat_load_found(req, load) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_next(req);
}


/* NGX_ERROR with a failure. */

static ngx_int_t
ngx_http_dsa_chat_load_found(ngx_http_dsa_request_t *req,
    ngx_http_dsa_chat_load_t *load)
{
    ngx_log_debug5(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: conversation \"%V\" loaded, version %L, "
                   "%uD messages, %uz bytes", &req->ctx.id,
                   &req->conversation.id, load->found.version,
                   load->found.n_messages, load->found.bytes);

    req->conversation.version = load->found.version;

    if (req->refusal->status == 0) {
        return NGX_OK;
    }

    if (req->refusal->status == NGX_HTTP_INTERNAL_SERVER_ERROR) {
        ngx_log_error(NGX_LOG_ERR, req->http->connection->log, 0,
                      "conversation \"%V\" cannot be read",
                      &req->conversation.id);
    }

    ngx_http_dsa_request_refuse(req);

    return NGX_ERROR;
}


/* Another host would read the same. */

static void
ngx_http_dsa_chat_load_damaged(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_chat_load_fail(req, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                "the stored conversation cannot be read");
}


static void
ngx_http_dsa_chat_load_fail(ngx_http_dsa_request_t *req, ngx_uint_t status,
    const char *why)
{
    ngx_http_dsa_failure_set(&req->failure, status, "conversation", "%s",
                             why);

    if (status == NGX_HTTP_CONFLICT) {
        req->failure.code = NGX_HTTP_DSA_CONVERSATION_LOCKED;
    }

    ngx_http_dsa_request_fail(req);
}


/* Frees the reply, which the messages do not use. */

static void
ngx_http_dsa_chat_load_cleanup(void *data)
{
    ngx_http_dsa_chat_load_t *load = data;

    dsa_arena_destroy(load->list);

    if (load->reply != NULL) {
        freeReplyObject(load->reply);
    }

    load->list = NULL;
    load->reply = NULL;
}
