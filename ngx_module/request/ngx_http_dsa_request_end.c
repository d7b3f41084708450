
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_http_dsa_chat_stage.h"


/* The end of a complete answer: what is stored, and the last text. */

/* What is made at the end of an answer; in the request's pool. */

typedef struct ngx_http_dsa_request_end_s {
    ngx_http_dsa_usage_t          usage;
    dsa_response_t                node;
    ngx_int_t                     rc;
} ngx_http_dsa_request_end_t;


static void ngx_http_dsa_request_end_start(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_end_compose(ngx_http_dsa_request_t *req,
    ngx_http_dsa_work_pt run, ngx_http_dsa_work_pt done);
static size_t ngx_http_dsa_request_end_collected(
    const ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_end_message(void *data);
static void ngx_http_dsa_request_end_save(void *data);
static void ngx_http_dsa_request_end_saved(ngx_http_request_t *r,
    const char *why);
static void ngx_http_dsa_request_end_store(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_end_node(void *data);
static void ngx_http_dsa_request_end_put(void *data);
static void ngx_http_dsa_request_end_stored(ngx_http_request_t *r,
    const char *why);
static void ngx_http_dsa_request_end_wait(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_end_last(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_end_write(void *data);
static void ngx_http_dsa_request_end_written(void *data);
static void ngx_http_dsa_request_end_keep(ngx_http_dsa_request_t *req);


void
ngx_http_dsa_request_finish(ngx_http_dsa_request_t *req)
{
    assert(req->choices.last != NULL && !req->saving);

    if (req->ended) {

        /* the client has received what was sent, and there is more */

        ngx_http_dsa_request_output(req, 1);
        return;
    }

    req->end = ngx_pcalloc(req->http->pool,
                           sizeof(ngx_http_dsa_request_end_t));

    if (req->end == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_request_end_start(req);
}


/*
 * The end of an answer: the turn of a conversation is made and stored together
 * with the ledger entry, then the answer itself is stored, and then its last
 * text is written.
 */

static void
ngx_http_dsa_request_end_start(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: finished, %s, prompt %uL, "
                   "completion %uL", &req->ctx.id, req->answer.finish,
                   req->requests->record.usage.prompt,
                   req->requests->record.usage.completion);

    if (a->stream) {
        ngx_http_dsa_choices_write(req->choices.last);
        a->api->close(req->choices.last->answer->api);
    }

    req->saving = 1;

    if (req->conversation.id.len == 0) {
        ngx_http_dsa_usage_record_close(&req->requests->record);
        ngx_http_dsa_request_end_store(req);
        return;
    }

    a->conversation = req->conversation.id;
    a->version = req->conversation.version + 1;

    ngx_http_dsa_request_end_compose(req, ngx_http_dsa_request_end_message,
                                     ngx_http_dsa_request_end_save);
}


/* Runs a part of the end, and then done, at once or later. */

static void
ngx_http_dsa_request_end_compose(ngx_http_dsa_request_t *req,
    ngx_http_dsa_work_pt run, ngx_http_dsa_work_pt done)
{
    req->answer.api->ended = ngx_time();
    req->end->usage = req->requests->record.usage;

    if (ngx_http_dsa_work(&req->work, NGX_HTTP_DSA_STAGE_ANSWER,
                          ngx_http_dsa_request_end_collected(req), run, done,
                          req)
        == NGX_OK)
    {
        done(req);
    }
}


/* Returns the bytes that are collected for the end. */

static size_t
ngx_http_dsa_request_end_collected(const ngx_http_dsa_request_t *req)
{
    size_t                            bytes;
    const ngx_http_dsa_api_answer_t  *a;

    bytes = 0;

    for (a = req->answer.api; a != NULL; a = a->next) {
        bytes += a->collected + a->rows.len;
    }

    /* what is stored of an answer has the items of its request */

    if (req->answer.api->store || req->conversation.id.len != 0) {
        bytes += req->http->request_length;
    }

    return bytes;
}


/* A run: adds the answer to the messages of the turn. */

static void
ngx_http_dsa_request_end_message(void *data)
{
    ngx_http_dsa_request_t *req = data;

    dsa_buf_t                  *messages;
    dsa_json_writer_t           w;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    messages = &req->conversation.messages;

    if (a->api->turn != NULL) {
        req->end->rc = a->api->turn(a, req->answer.reason, messages);
        return;
    }

    dsa_json_writer(&w, messages);
    dsa_json_object(&w);
    ngx_http_dsa_message_write(a->message, &w, a->thinking);
    dsa_json_object_end(&w);
    dsa_buf_add(messages, "", 1);

    req->end->rc = messages->failed ? NGX_ERROR : NGX_OK;
}


/* Writes the ledger entry and stores the turn. */

static void
ngx_http_dsa_request_end_save(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_turn_t         turn;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    if (req->end->rc != NGX_OK) {
        ngx_http_dsa_usage_record_close(&req->requests->record);
        a->unsaved = "nginx is out of memory";
        ngx_http_dsa_request_end_last(req);
        return;
    }

    turn.conversation = req->conversation.id;
    turn.version = req->conversation.version;
    turn.messages = &req->conversation.messages;
    turn.request = req->http;
    turn.handler = ngx_http_dsa_request_end_saved;

    if (ngx_http_dsa_usage_record_write(&req->requests->record, &turn,
                                        &a->unsaved)
        != NGX_OK)
    {
        ngx_http_dsa_request_end_last(req);
        return;
    }

    ngx_http_dsa_request_end_wait(req);
}


static void
ngx_http_dsa_request_end_saved(ngx_http_request_t *r, const char *why)
{
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: turn %s", &req->ctx.id,
                   why == NULL ? "stored" : "not stored");

    req->answer.api->unsaved = why;

    if (why != NULL) {
        ngx_http_dsa_request_end_last(req);
        return;
    }

    ngx_http_dsa_lease_stored(&req->conversation.lease);
    ngx_http_dsa_request_end_store(req);
}


/* Stores the answer itself. */

static void
ngx_http_dsa_request_end_store(ngx_http_dsa_request_t *req)
{
    if (!req->answer.api->store) {
        ngx_http_dsa_request_end_last(req);
        return;
    }

    ngx_http_dsa_request_end_compose(req, ngx_http_dsa_request_end_node,
                                     ngx_http_dsa_request_end_put);
}


/* A run. */

static void
ngx_http_dsa_request_end_node(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_api_answer_t   *a;
    ngx_http_dsa_request_end_t  *end;

    a = req->answer.api;
    end = req->end;

    end->rc = a->api->node(a, req->answer.reason, &end->usage, &end->node);
}


static void
ngx_http_dsa_request_end_put(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_main_conf_t   *mcf;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    if (req->end->rc != NGX_OK) {
        a->unsaved = "nginx is out of memory";
        ngx_http_dsa_request_end_last(req);
        return;
    }

    ngx_http_dsa_request_store(req);

    if (ngx_http_dsa_chat_stored->save(req->http, mcf->redis, &req->tenant,
                                       &req->end->node,
                                       ngx_http_dsa_request_end_stored,
                                       &a->unsaved)
        != NGX_OK)
    {
        ngx_http_dsa_request_end_last(req);
        return;
    }

    ngx_http_dsa_request_end_wait(req);
}


static void
ngx_http_dsa_request_end_stored(ngx_http_request_t *r, const char *why)
{
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: answer %s", &req->ctx.id,
                   why == NULL ? "stored" : "not stored");

    req->answer.api->unsaved = why;

    if (why == NULL) {
        ngx_http_dsa_request_stored(req);
    }

    ngx_http_dsa_request_end_last(req);
}


/*
 * Waits for Redis: the client may send the next turn as soon as it has received
 * the end of this one, and the next turn has to find this one in Redis.
 */

static void
ngx_http_dsa_request_end_wait(ngx_http_dsa_request_t *req)
{
    if (req->answer.api->stream) {
        ngx_http_dsa_request_output(req, 0);
    }
}


/* Writes the last text, which reports whether the turn is stored. */

static void
ngx_http_dsa_request_end_last(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_lease_release(&req->conversation.lease);

    req->ended = 1;
    req->answer.api->cost = ngx_http_dsa_usage_record_charged(
                                                     &req->requests->record);

    if (req->answer.api->stream) {
        req->choices.last->answer->api->cost = req->answer.api->cost;
    }

    ngx_http_dsa_stream_prepare(&req->stream);

    ngx_http_dsa_request_end_compose(req, ngx_http_dsa_request_end_write,
                                     ngx_http_dsa_request_end_written);
}


/* A run. */

static void
ngx_http_dsa_request_end_write(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_answer_t  *answer;

    answer = req->answer.api->stream ? req->choices.last->answer
                                     : req->choices.elts[0].answer;

    answer->api->api->finish(answer->api, answer->reason, &req->end->usage);
}


static void
ngx_http_dsa_request_end_written(void *data)
{
    ngx_http_dsa_request_t *req = data;

    req->saving = 0;

    ngx_http_dsa_request_end_keep(req);
    ngx_http_dsa_request_output(req, 1);
}


/*
 * Keeps the answer for a request that repeats this one.  pending has all of an
 * answer in one piece.
 */

static void
ngx_http_dsa_request_end_keep(ngx_http_dsa_request_t *req)
{
    dsa_buf_t                  *text;
    dsa_str_t                   object, answer;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    text = &req->stream.pending;

    answer = text->failed ? dsa_str(NULL, 0) : dsa_str(text->data, text->len);
    object = dsa_str(NULL, 0);

    if (a->unsaved == NULL && a->store) {
        object = dsa_str(req->ctx.id.data, req->ctx.id.len);

    } else if (a->unsaved == NULL) {
        object = dsa_str(req->conversation.id.data, req->conversation.id.len);
    }

    ngx_http_dsa_idempotency_finish(req->idempotency, a->stream, object,
                                    answer);
}


void
ngx_http_dsa_request_replay(ngx_http_dsa_request_t *req, dsa_str_t answer)
{
    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: replayed", &req->ctx.id);

    req->answer.finish = "replayed";

    ngx_http_dsa_stream_prepare(&req->stream);
    dsa_buf_add(&req->stream.pending, answer.data, answer.len);

    req->ended = 1;

    ngx_http_dsa_request_output(req, 1);
}
