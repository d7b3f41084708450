
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include <openssl/rand.h>

#include "ngx_http_dsa_access.h"
#include "ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_reply.h"
#include "ngx_http_dsa_request.h"
#include "ngx_http_dsa_responses_save.h"


#define NGX_HTTP_DSA_ID_BYTES     16        /* random bytes of an id */


_Static_assert(NGX_HTTP_DSA_API_ID_PREFIX + 2 * NGX_HTTP_DSA_ID_BYTES
               <= NGX_HTTP_DSA_ID_LEN, "a usage record holds every id");
_Static_assert(NGX_HTTP_DSA_ID_LEN <= DSA_LINK_MAX_REQUEST,
               "the link carries every id");


static ngx_int_t ngx_http_dsa_request_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest);
static void ngx_http_dsa_request_key(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_request_id_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api);
static ngx_int_t ngx_http_dsa_request_save(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_request_store(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_request_message(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_saved(ngx_http_request_t *r,
    const char *why);
static void ngx_http_dsa_request_failed(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_finalize(ngx_http_dsa_request_t *req,
    ngx_int_t rc);
static void ngx_http_dsa_request_detach(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_cleanup(void *data);


ngx_http_dsa_request_t *
ngx_http_dsa_request_create(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_dsa_request_t   *req;

    req = ngx_pcalloc(r->pool, sizeof(ngx_http_dsa_request_t));
    if (req == NULL) {
        return NULL;
    }

    req->http = r;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_dsa_request_cleanup;
    cln->data = req;

    ngx_http_dsa_metrics_add(in_flight, 1);

    if (ngx_http_dsa_request_init(req, api, tenant, digest) != NGX_OK) {
        return NULL;
    }

    req->ctx.request = req;
    req->ctx.stream = &req->stream;

    ngx_http_set_ctx(r, &req->ctx, ngx_http_dsa_module);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: received, tenant \"%V\"",
                   &req->ctx.id, &req->tenant);

    return req;
}


static ngx_int_t
ngx_http_dsa_request_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest)
{
    ngx_http_request_t        *r;
    ngx_http_dsa_loc_conf_t   *dlcf;
    ngx_http_dsa_main_conf_t  *mcf;

    r = req->http;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (ngx_http_dsa_request_id_init(req, api) != NGX_OK) {
        return NGX_ERROR;
    }

    req->tenant = *tenant;
    req->reason = NGX_HTTP_DSA_CANCEL_CLIENT;

    req->answer.start = ngx_current_msec;
    req->timer.deadline = req->answer.start + dlcf->timeout;

    req->retention.mode = dlcf->retention;
    req->retention.ttl = dlcf->retention_ttl;
    req->retention.redis = mcf->redis;
    req->retention.tenant = *tenant;
    req->retention.id = req->ctx.id;

    req->submit.pool = dlcf->pool;
    req->submit.id = req->ctx.id;
    req->submit.deadline = req->timer.deadline;
    req->submit.private = (tenant->len == 0);
    req->submit.count = (api->count != 0);
    ngx_memcpy(req->submit.digest, digest, NGX_HTTP_DSA_DIGEST_LEN);

    req->answer.api = api->create(r->pool);
    if (req->answer.api == NULL) {
        return NGX_ERROR;
    }

    req->answer.api->api = api;
    req->answer.api->out = &req->stream.pending;
    req->answer.api->id = req->ctx.id;
    req->answer.api->secret = mcf->secret;
    req->answer.api->digest = req->submit.digest;

    req->record = ngx_http_dsa_usage_record_create(mcf->redis, tenant,
                                                   &req->ctx.id,
                                                   r->connection->log);
    if (req->record == NULL) {
        return NGX_ERROR;
    }

    ngx_http_dsa_usage_record_prices(req->record, mcf->prices, r->start_sec);
    ngx_http_dsa_request_key(req);

    req->choices.pool = r->pool;
    req->choices.stream = &req->stream;
    req->choices.data = req;

    ngx_http_dsa_choices_init(&req->choices, &req->record->first, &req->answer,
                              &req->retention);

    return NGX_OK;
}


/* Moves the hold of the key to the usage record, which charges the key. */

static void
ngx_http_dsa_request_key(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(req->http);

    if (access == NULL) {
        req->submit.weight = DSA_KEY_WEIGHT;
        req->submit.priority = DSA_KEY_NORMAL;
        return;
    }

    req->submit.weight = access->view.weight;
    req->submit.priority = access->view.priority;

    ngx_http_dsa_usage_record_key(req->record, access->view.id);

    if (access->hold != NULL) {
        ngx_http_dsa_limit_move(&req->record->hold, access->hold);
    }
}


/* Makes the id of the answer, and the seed for a request without "seed". */

static ngx_int_t
ngx_http_dsa_request_id_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api)
{
    u_char      noise[NGX_HTTP_DSA_ID_BYTES + sizeof(uint64_t)], *p;
    ngx_str_t  *id;

    id = &req->ctx.id;

    assert(api->id_prefix.len <= NGX_HTTP_DSA_API_ID_PREFIX);

    p = ngx_pnalloc(req->http->pool, NGX_HTTP_DSA_ID_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (RAND_bytes(noise, sizeof(noise)) != 1) {
        ngx_log_error(NGX_LOG_ERR, req->http->connection->log, 0,
                      "RAND_bytes() failed");
        return NGX_ERROR;
    }

    id->data = p;

    p = ngx_cpymem(p, api->id_prefix.data, api->id_prefix.len);
    p = ngx_hex_dump(p, noise, NGX_HTTP_DSA_ID_BYTES);

    id->len = p - id->data;

    ngx_memcpy(&req->submit.seed, noise + NGX_HTTP_DSA_ID_BYTES,
               sizeof(uint64_t));

    return NGX_OK;
}


ngx_http_dsa_request_t *
ngx_http_dsa_request_open(ngx_http_request_t *r)
{
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    return ctx != NULL && ctx->request->record != NULL ? ctx->request : NULL;
}


void
ngx_http_dsa_request_finish(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_choice_t      *choice;
    ngx_http_dsa_api_answer_t  *a;

    assert(req->choices.last != NULL);

    a = req->answer.api;

    if (!req->record->written) {

        ngx_log_debug4(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                       "dsa request %V: finished, %s, prompt %uL, "
                       "completion %uL", &req->ctx.id, req->answer.finish,
                       req->record->usage.prompt,
                       req->record->usage.completion);

        if (a->stream) {
            ngx_http_dsa_choices_write(req->choices.last);
            a->api->close(req->choices.last->answer->api);
        }

        if (ngx_http_dsa_request_save(req) == NGX_OK) {

            /*
             * The client may send the next turn as soon as it has received the
             * end of this one, and the next turn has to find this one in
             * Redis.
             */

            req->saving = 1;

            if (a->stream) {
                ngx_http_dsa_request_output(req, 0);
            }

            return;
        }

        ngx_http_dsa_lease_release(&req->conversation.lease);
    }

    if (!req->ended) {
        req->ended = 1;

        choice = a->stream ? req->choices.last : &req->choices.elts[0];

        choice->answer->api->cost = ngx_http_dsa_usage_record_charged(
                                        req->record);

        ngx_http_dsa_stream_prepare(&req->stream);
        a->api->finish(choice->answer->api, choice->answer->reason,
                       &req->record->usage);
    }

    ngx_http_dsa_request_output(req, 1);
}


/*
 * Writes the ledger entry, and stores the turn if there is one.  NGX_OK:
 * ngx_http_dsa_request_saved() will be called.
 */

static ngx_int_t
ngx_http_dsa_request_save(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_turn_t         turn;
    ngx_http_dsa_api_answer_t  *a;

    if (req->conversation.id.len == 0) {
        ngx_http_dsa_usage_record_close(req->record);
        return ngx_http_dsa_request_store(req);
    }

    a = req->answer.api;
    a->conversation = req->conversation.id;
    a->version = req->conversation.version + 1;

    if (ngx_http_dsa_request_message(req) != NGX_OK) {
        ngx_http_dsa_usage_record_close(req->record);
        a->unsaved = "nginx is out of memory";
        return NGX_DECLINED;
    }

    turn.conversation = req->conversation.id;
    turn.version = req->conversation.version;
    turn.messages = &req->conversation.messages;
    turn.request = req->http;
    turn.handler = ngx_http_dsa_request_saved;

    if (ngx_http_dsa_usage_record_write(req->record, &turn, &a->unsaved)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    req->turning = 1;

    return NGX_OK;
}


/* Stores the answer itself; returns what ngx_http_dsa_request_save() does. */

static ngx_int_t
ngx_http_dsa_request_store(ngx_http_dsa_request_t *req)
{
    dsa_response_t              node;
    ngx_http_dsa_main_conf_t   *mcf;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    if (!a->store) {
        return NGX_DECLINED;
    }

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    if (a->api->node(a, req->answer.reason, &req->record->usage, &node)
        != NGX_OK)
    {
        a->unsaved = "nginx is out of memory";
        return NGX_DECLINED;
    }

    return ngx_http_dsa_responses_save(req->http, mcf->redis, &req->tenant,
                                       &node, ngx_http_dsa_request_saved,
                                       &a->unsaved);
}


/* Adds the answer to the messages of the turn. */

static ngx_int_t
ngx_http_dsa_request_message(ngx_http_dsa_request_t *req)
{
    dsa_buf_t                  *messages;
    dsa_json_writer_t           w;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    messages = &req->conversation.messages;

    if (a->api->turn != NULL) {
        return a->api->turn(a, req->answer.reason, messages);
    }

    dsa_json_writer(&w, messages);
    ngx_http_dsa_message_write(a->message, &w, a->thinking);
    dsa_buf_add(messages, "", 1);

    return messages->failed ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_dsa_request_saved(ngx_http_request_t *r, const char *why)
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

    if (req->turning) {
        req->turning = 0;

        if (why != NULL) {
            ngx_http_dsa_lease_release(&req->conversation.lease);

        } else {
            ngx_http_dsa_lease_stored(&req->conversation.lease);

            if (ngx_http_dsa_request_store(req) == NGX_OK) {
                return;
            }
        }
    }

    req->saving = 0;

    ngx_http_dsa_request_finish(req);
}


void
ngx_http_dsa_request_fail(ngx_http_dsa_request_t *req)
{
    ngx_http_request_t  *r;

    r = req->http;

    req->answer.finish = "error";

    ngx_http_dsa_lease_release(&req->conversation.lease);

    if (ngx_http_dsa_usage_record_live(req->record) == 0) {

        if (!req->record->written) {
            ngx_http_dsa_usage_record_close(req->record);
        }

    } else if (req->reason == NGX_HTTP_DSA_CANCEL_CLIENT) {
        req->reason = NGX_HTTP_DSA_CANCEL_ERROR;
    }

    if (!req->stream.headers) {
        req->ended = 1;
        ngx_http_dsa_request_finalize(req,
                                 ngx_http_dsa_send_failure(r, &req->failure));
        return;
    }

    if (!req->ended) {
        req->ended = 1;
        ngx_http_dsa_request_failed(req);
    }

    /*
     * Keep the connection open: the headers did not announce that it would be
     * closed, so the client may have sent its next request already.
     */

    ngx_http_dsa_request_output(req, 1);
}


/* Writes the text of a failure after the headers were sent. */

static void
ngx_http_dsa_request_failed(ngx_http_dsa_request_t *req)
{
    ngx_uint_t                  level;
    ngx_http_dsa_failure_t     *failure;
    ngx_http_dsa_api_error_t    error;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    failure = &req->failure;

    level = (failure->status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
            ? NGX_LOG_ERR : NGX_LOG_INFO;

    ngx_log_error(level, req->http->connection->log, 0,
                  "stream ends with error %ui: %s", failure->status,
                  failure->text);

    ngx_http_dsa_stream_prepare(&req->stream);

    if (a->stream && req->answer.accepted) {
        a->api->close(req->choices.writer->answer->api);
    }

    ngx_memzero(&error, sizeof(ngx_http_dsa_api_error_t));

    error.status = failure->status;
    error.code = failure->code;
    error.param = failure->param;
    error.message = failure->text;
    error.id = req->ctx.id;
    error.prompt_tokens = failure->prompt_tokens;
    error.max_tokens = failure->max_tokens;
    error.context = failure->context;

    if (a->stream && a->api->fail != NULL) {
        a->api->fail(a, &error);

    } else {
        a->api->error(a->out, &error, a->stream);
    }
}


void
ngx_http_dsa_request_output(ngx_http_dsa_request_t *req, ngx_uint_t last)
{
    ngx_int_t                   rc;
    const char                 *type;
    ngx_http_request_t         *r;
    ngx_http_dsa_api_answer_t  *a;

    r = req->http;
    a = req->answer.api;

    if (!req->stream.headers) {

        if (last && !a->stream) {
            ngx_http_dsa_request_finalize(req,
                                 ngx_http_dsa_send_json(r, NGX_HTTP_OK,
                                                        &req->stream.pending));
            return;
        }

        type = a->stream ? a->api->stream_type : "application/json";

        if (ngx_http_dsa_stream_start(&req->stream, type, a->stream)
            != NGX_OK)
        {
            ngx_http_dsa_request_finalize(req, NGX_ERROR);
            return;
        }
    }

    rc = ngx_http_dsa_stream_send(&req->stream, last);

    switch (rc) {

    case NGX_DONE:
        ngx_http_dsa_request_finalize(req, NGX_OK);
        return;

    case NGX_DECLINED:
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client is too slow, %uz bytes wait for it",
                      req->stream.pending.len);

        /* fall through */

    case NGX_ERROR:
        ngx_http_dsa_request_finalize(req, NGX_ERROR);
        return;

    default: /* NGX_OK, NGX_AGAIN */
        return;
    }
}


static void
ngx_http_dsa_request_finalize(ngx_http_dsa_request_t *req, ngx_int_t rc)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: finalized with %i", &req->ctx.id, rc);

    /* nginx sends the rest with a timer of its own */

    ngx_http_dsa_timer_stop(&req->timer);

    /*
     * While the client reads the rest, no event may be reported to the request.
     */

    ngx_http_dsa_request_detach(req);

    ngx_http_finalize_request(req->http, rc);
}


/* Runs at the end of every request, however it ends. */

static void
ngx_http_dsa_request_cleanup(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_timer_stop(&req->timer);
    ngx_http_dsa_request_detach(req);

    ngx_http_dsa_choices_free(&req->choices);
    ngx_http_dsa_submit_free(&req->submit);
    dsa_buf_free(&req->conversation.messages);

    ngx_http_dsa_metrics_add(in_flight, -1);
}


/*
 * Detaches a request from its usage record, and cancels its calls at the
 * engine.  Events of the engine are not reported to the request afterwards.
 */

static void
ngx_http_dsa_request_detach(ngx_http_dsa_request_t *req)
{
    ngx_connection_t             *c;
    ngx_http_dsa_usage_record_t  *record;

    record = req->record;

    if (record == NULL) {
        return;
    }

    req->record = NULL;
    req->usage = record->usage;

    ngx_http_dsa_lease_release(&req->conversation.lease);

    if (req->retention.restored != 0) {
        ngx_http_dsa_metrics_add(retention_cached, req->usage.cached);
    }

    if (req->answer.finish == NULL) {
        req->answer.finish = "cancelled";
    }

    ngx_http_dsa_pool_leave(&req->submit.waiter);
    ngx_http_dsa_window_detach(&req->window);

    if (ngx_http_dsa_usage_record_live(record) != 0 && !req->timer.expired) {
        c = req->http->connection;

        if (req->reason == NGX_HTTP_DSA_CANCEL_CLIENT) {

            if (req->stream.slow) {
                req->reason = NGX_HTTP_DSA_CANCEL_SLOW;

            } else if (c->close && c->error) {
                req->reason = NGX_HTTP_DSA_CANCEL_SHUTDOWN;
            }
        }

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, c->log, 0,
                       "dsa request %V: cancelled, reason %ui", &req->ctx.id,
                       req->reason);

        ngx_http_dsa_metrics_add(cancelled[req->reason], 1);

        /* the engine ends a cancelled COUNT with DONE */

        if (record->first.call.count) {
            ngx_http_dsa_session_abandon(&record->first.call);

        } else {
            ngx_http_dsa_usage_record_cancel(record);
        }
    }

    ngx_http_dsa_usage_record_detach(record);
}
