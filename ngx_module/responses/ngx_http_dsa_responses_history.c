
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/resp.h"

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/store/ngx_http_dsa_responses_command.h"
#include "ngx_http_dsa_responses_stored.h"


#define NGX_HTTP_DSA_HISTORY_FIELD  "previous_response_id"

/* memory for the words of the command */

#define NGX_HTTP_DSA_HISTORY_ARENA  4096


/* Allocated from the request's pool. */

typedef struct {
    ngx_http_dsa_request_t      *req;
    redisReply                  *reply;
    dsa_response_result_e        result;
    unsigned                     unread:1;  /* err: the reply cannot be read */
    dsa_err_t                    err;
} ngx_http_dsa_history_t;


static ngx_int_t ngx_http_dsa_history_store(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_history_load(ngx_http_dsa_request_t *req,
    ngx_http_dsa_history_t *history);
static void ngx_http_dsa_history_loaded(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);
static void ngx_http_dsa_history_insert(void *data);
static void ngx_http_dsa_history_inserted(void *data);
static ngx_int_t ngx_http_dsa_history_check(ngx_http_dsa_request_t *req,
    ngx_http_dsa_history_t *history);
static ngx_int_t ngx_http_dsa_history_found(ngx_http_dsa_request_t *req,
    dsa_response_result_e result);
static void ngx_http_dsa_history_cleanup(void *data);


ngx_int_t
ngx_http_dsa_responses_history(ngx_http_dsa_request_t *req)
{
    ngx_pool_cleanup_t      *cln;
    ngx_http_dsa_history_t  *history;

    if (ngx_http_dsa_history_store(req) != NGX_OK) {
        return NGX_ERROR;
    }

    if (req->answer.api->previous.len == 0) {
        return NGX_DECLINED;
    }

    cln = ngx_pool_cleanup_add(req->http->pool,
                               sizeof(ngx_http_dsa_history_t));
    if (cln == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    history = cln->data;
    ngx_memzero(history, sizeof(ngx_http_dsa_history_t));

    cln->handler = ngx_http_dsa_history_cleanup;
    history->req = req;

    return ngx_http_dsa_history_load(req, history);
}


/*
 * Decides whether the answer is stored.  If it cannot be, "store": true is an
 * error.  A request without "store", whose default is true, is served anyway:
 * most clients never read a stored answer.
 */

static ngx_int_t
ngx_http_dsa_history_store(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_main_conf_t   *mcf;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    if (!a->store || (mcf->redis != NULL && req->tenant.len != 0)) {
        return NGX_OK;
    }

    if (!a->store_given) {
        a->store = 0;
        return NGX_OK;
    }

    if (mcf->redis == NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST, "store",
                                 "Responses are not kept here: \"dsa_redis\" "
                                 "is not configured; expected false or no "
                                 "such field.");

    } else {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN, "store",
                                 "Responses are not kept for this request, "
                                 "because the server has identified no tenant "
                                 "for it; expected false or no such field.");
    }

    return NGX_ERROR;
}


/*
 * Loads the stored answers.  NGX_AGAIN: ngx_http_dsa_history_loaded() will be
 * called; NGX_ERROR with a failure.
 */

static ngx_int_t
ngx_http_dsa_history_load(ngx_http_dsa_request_t *req,
    ngx_http_dsa_history_t *history)
{
    ngx_int_t                   rc;
    dsa_arena_t                *arena;
    ngx_http_request_t         *r;
    dsa_schema_command_t        cmd;
    ngx_http_dsa_main_conf_t   *mcf;
    ngx_http_dsa_api_answer_t  *a;

    r = req->http;
    a = req->answer.api;
    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST,
                                 NGX_HTTP_DSA_HISTORY_FIELD, "Responses are "
                                 "not kept here: \"dsa_redis\" is not "
                                 "configured.");
        return NGX_ERROR;
    }

    if (req->tenant.len == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN,
                                 NGX_HTTP_DSA_HISTORY_FIELD, "Responses are "
                                 "not kept for this request, because the "
                                 "server has identified no tenant for it.");
        return NGX_ERROR;
    }

    if (!dsa_response_id_ok(a->previous)) {
        return ngx_http_dsa_history_found(req, DSA_RESPONSE_UNKNOWN);
    }

    arena = dsa_arena_create(NGX_HTTP_DSA_HISTORY_ARENA);
    rc = NGX_ERROR;

    if (arena != NULL
        && dsa_response_chain(&cmd, arena,
                              dsa_str(req->tenant.data, req->tenant.len),
                              a->previous)
           == DSA_OK)
    {
        rc = ngx_http_dsa_responses_command(r, mcf->redis, &cmd,
                                            ngx_http_dsa_history_loaded,
                                            history);
    }

    dsa_arena_destroy(arena);

    if (rc != NGX_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


static void
ngx_http_dsa_history_loaded(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why)
{
    ngx_http_dsa_history_t *history = data;

    size_t                   bytes;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    if (why != NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 NGX_HTTP_DSA_HISTORY_FIELD,
                                 "Stored responses are not available now: %s.",
                                 why);
        ngx_http_dsa_request_fail(req);
        return;
    }

    bytes = dsa_resp_bytes(reply);

    req->submit.work = dsa_arena_create(NGX_HTTP_DSA_ARENA(bytes
                                                         + r->request_length));
    if (req->submit.work == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_redis_keep(reply);

    history->reply = reply;
    req->submit.bytes += bytes;

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_HISTORY,
                              ngx_http_dsa_history_insert,
                              ngx_http_dsa_history_inserted, history);
}


/* A run. */

static void
ngx_http_dsa_history_insert(void *data)
{
    ngx_http_dsa_history_t *history = data;

    uint32_t                    n;
    dsa_str_t                  *lists;
    ngx_http_dsa_submit_t      *submit;
    ngx_http_dsa_request_t     *req;
    ngx_http_dsa_api_answer_t  *a;

    req = history->req;
    submit = &req->submit;
    a = req->answer.api;

    if (dsa_response_chain_read(&history->result, &lists, &n, submit->work,
                                history->reply, &history->err)
        != DSA_OK)
    {
        history->unread = 1;

    } else if (history->result == DSA_RESPONSE_FOUND
               && a->api->history(a, submit->chat, submit->work, lists, n,
                                  &ngx_http_dsa_chat_limits, req->refusal)
                  == DSA_OK)
    {
        req->refusal->status = 0;
    }

    ngx_http_dsa_history_cleanup(history);
}


static void
ngx_http_dsa_history_inserted(void *data)
{
    ngx_http_dsa_history_t *history = data;

    ngx_http_dsa_request_t  *req;

    req = history->req;

    if (ngx_http_dsa_history_check(req, history) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_next(req);
}


/* NGX_ERROR with a failure. */

static ngx_int_t
ngx_http_dsa_history_check(ngx_http_dsa_request_t *req,
    ngx_http_dsa_history_t *history)
{
    if (history->unread) {
        ngx_log_error(ngx_http_dsa_burst(history->err.text),
                      req->http->connection->log, 0, "dsa: %s",
                      history->err.text);

        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 NGX_HTTP_DSA_HISTORY_FIELD, "Stored "
                                 "responses are not available now: Redis "
                                 "refused the command.");
        return NGX_ERROR;
    }

    if (ngx_http_dsa_history_found(req, history->result) != NGX_OK) {
        return NGX_ERROR;
    }

    if (req->refusal->status != 0) {
        ngx_http_dsa_failure_set(&req->failure, req->refusal->status,
                                 NGX_HTTP_DSA_HISTORY_FIELD, "%s",
                                 req->refusal->message);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_history_found(ngx_http_dsa_request_t *req,
    dsa_response_result_e result)
{
    ngx_uint_t   status;
    const char  *text;

    switch (result) {

    case DSA_RESPONSE_FOUND:
        return NGX_OK;

    case DSA_RESPONSE_UNKNOWN:
        status = NGX_HTTP_NOT_FOUND;
        text = "There is no stored response with this id; one that runs, "
               "failed or was cancelled cannot be continued.";
        break;

    case DSA_RESPONSE_BROKEN:
        status = NGX_HTTP_NOT_FOUND;
        text = "A response before this one was deleted or has expired; send "
               "the whole input, or start a new chain.";
        break;

    case DSA_RESPONSE_DEEP:
        status = NGX_HTTP_BAD_REQUEST;
        text = "The chain has more than 1000 responses; send the whole input, "
               "or start a new chain.";
        break;

    case DSA_RESPONSE_LARGE:
        status = NGX_HTTP_BAD_REQUEST;
        text = "The chain is larger than 4 MB; start a new chain.";
        break;

    case DSA_RESPONSE_TURN:
        status = NGX_HTTP_BAD_REQUEST;
        text = "This response, or one before it, is a turn of a conversation; "
               "continue it with conversation in place of "
               "previous_response_id.";
        break;

    default: /* DSA_RESPONSE_DAMAGED */
        ngx_log_error(NGX_LOG_ERR, req->http->connection->log, 0,
                      "dsa: a stored response before \"%*s\" is damaged",
                      req->answer.api->previous.len,
                      req->answer.api->previous.data);

        status = NGX_HTTP_INTERNAL_SERVER_ERROR;
        text = "A stored response cannot be read; start a new chain.";
        break;
    }

    ngx_http_dsa_failure_set(&req->failure, status, NGX_HTTP_DSA_HISTORY_FIELD,
                             "%s", text);

    if (status == NGX_HTTP_NOT_FOUND) {
        req->failure.code = "previous_response_not_found";
    }

    return NGX_ERROR;
}


/* Frees the reply, which the messages do not use. */

static void
ngx_http_dsa_history_cleanup(void *data)
{
    ngx_http_dsa_history_t *history = data;

    if (history->reply != NULL) {
        freeReplyObject(history->reply);
        history->reply = NULL;
    }
}


_Static_assert(DSA_RESPONSE_MAX_DEPTH == 1000
               && DSA_RESPONSE_MAX_BYTES == 4 * 1024 * 1024,
               "the texts name the limits");
