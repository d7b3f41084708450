
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include "context/compact.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/account/ngx_http_dsa_closed.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_chat_stage.h"
#include "ngx_http_dsa_events.h"


/*
 * A chat from its arrival to its submission: the stages, in their order, and
 * those that are only a few lines.
 */

static void ngx_http_dsa_chat_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_chat_prepare(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_watch(ngx_http_request_t *r);
static void ngx_http_dsa_chat_ran(void *data);
static void ngx_http_dsa_chat_parse(void *data);
static ngx_int_t ngx_http_dsa_chat_parsed(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_claim(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_claimed(void *data, ngx_int_t rc,
    dsa_str_t answer);
static ngx_int_t ngx_http_dsa_chat_references(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_history(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_family(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_waited(void *data);
static ngx_int_t ngx_http_dsa_chat_begin_apply(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_apply(void *data);
static ngx_int_t ngx_http_dsa_chat_applied(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_free_types(void *data);
static ngx_int_t ngx_http_dsa_chat_restore(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_restored(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_dsa_chat_check(void *data);
static ngx_int_t ngx_http_dsa_chat_checked(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_collect(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_record(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_choices(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_encode(void *data);
static ngx_int_t ngx_http_dsa_chat_encoded(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_submit(ngx_http_dsa_request_t *req);


const ngx_http_dsa_chat_stored_t  *ngx_http_dsa_chat_stored;


const dsa_chat_limits_t  ngx_http_dsa_chat_limits = {
    .max_messages = 8192,
    .max_tools = 128,
    .hosted = 1
};


static const ngx_http_dsa_chat_stage_t  ngx_http_dsa_chat_stages[] = {

    { "parse", NULL, NGX_HTTP_DSA_STAGE_PARSE,
      ngx_http_dsa_chat_parse, ngx_http_dsa_chat_parsed },

    /* the answer of an earlier request with the same Idempotency-Key */
    { "claim", ngx_http_dsa_chat_claim, 0, NULL, NULL },

    { "references", ngx_http_dsa_chat_references, 0, NULL, NULL },

    { "read", NULL, NGX_HTTP_DSA_STAGE_READ,
      ngx_http_dsa_chat_read, ngx_http_dsa_chat_was_read },

    { "history", ngx_http_dsa_chat_history, 0, NULL, NULL },

    { "conversation", ngx_http_dsa_chat_load, 0, NULL, NULL },

    /* what follows depends on how the model's prompts are written */
    { "family", ngx_http_dsa_chat_family, 0, NULL, NULL },

    /* what the family does where the request is silent */
    { "apply", ngx_http_dsa_chat_begin_apply, NGX_HTTP_DSA_STAGE_CHECK,
      ngx_http_dsa_chat_apply, ngx_http_dsa_chat_applied },

    /* reasoning that the client left out of a tool round */
    { "restore", ngx_http_dsa_chat_restore, 0, NULL, NULL },

    { "check", NULL, NGX_HTTP_DSA_STAGE_CHECK,
      ngx_http_dsa_chat_check, ngx_http_dsa_chat_checked },

    /* a cell of the ledger, without which nothing may be computed */
    { "record", ngx_http_dsa_chat_record, 0, NULL, NULL },

    { "edit", ngx_http_dsa_chat_edit, 0, NULL, NULL },

    { "compact", ngx_http_dsa_chat_compact, 0, NULL, NULL },

    { "edit_rest", ngx_http_dsa_chat_edit_rest, 0, NULL, NULL },

    { "window", ngx_http_dsa_chat_window, 0, NULL, NULL },

    { "encode", ngx_http_dsa_chat_choices, NGX_HTTP_DSA_STAGE_ENCODE,
      ngx_http_dsa_chat_encode, ngx_http_dsa_chat_encoded },

    /* others may read the response from here on */
    { "progress", ngx_http_dsa_request_progress, 0, NULL, NULL },

    { "submit", ngx_http_dsa_chat_submit, 0, NULL, NULL }
};


ngx_int_t
ngx_http_dsa_chat_handler(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api)
{
    u_char                    digest[NGX_HTTP_DSA_DIGEST_LEN];
    ngx_int_t                 rc;
    ngx_str_t                 tenant;
    const char               *why;
    ngx_http_dsa_request_t   *req;
    ngx_http_dsa_loc_conf_t  *dlcf;

    if (!ngx_http_dsa_body_is_json(r)) {
        ngx_http_dsa_access_release(r);
        return ngx_http_dsa_body_not_json(r);
    }

    if (ngx_http_dsa_body_coding(r) == DSA_CODING_UNKNOWN) {
        ngx_http_dsa_access_release(r);
        return ngx_http_dsa_body_not_coded(r);
    }

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    rc = ngx_http_dsa_access_tenant(r, dlcf->tenant, &tenant, digest, &why);

    if (rc == NGX_DECLINED) {
        ngx_http_dsa_access_release(r);
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, why);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    req = ngx_http_dsa_request_create(r, api, &tenant, digest);

    if (req == NULL || ngx_http_dsa_events_init(req) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->request_body_in_file_only = 0;

    rc = ngx_http_read_client_request_body(r, ngx_http_dsa_chat_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


static void
ngx_http_dsa_chat_body_handler(ngx_http_request_t *r)
{
    ngx_http_dsa_ctx_t      *ctx;
    ngx_http_dsa_request_t  *req;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);
    req = ctx->request;

    if (ngx_http_dsa_chat_watch(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (ngx_http_dsa_chat_prepare(req) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    /* the body may wait for a thread */

    ngx_http_dsa_timer_set(&req->timer, req->stream.last_write);

    ngx_http_dsa_chat_next(req);
}


/*
 * Creates the arena of the body, and reads the Idempotency-Key.  NGX_ERROR with
 * a failure.
 */

static ngx_int_t
ngx_http_dsa_chat_prepare(ngx_http_dsa_request_t *req)
{
    off_t                      size, most;
    ngx_http_dsa_submit_t     *submit;
    ngx_http_dsa_main_conf_t  *mcf;

    submit = &req->submit;
    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    size = ngx_http_dsa_body_size(req->http, &req->failure);

    if (size < 0) {
        return NGX_ERROR;
    }

    most = ngx_http_dsa_body_coding(req->http) == DSA_CODING_IDENTITY
           ? size : (off_t) ngx_http_dsa_body_limit(req->http);

    submit->bytes = ngx_http_dsa_body_work(req->http, size);
    submit->arena = dsa_arena_create(NGX_HTTP_DSA_ARENA(most));

    if (submit->arena != NULL) {
        submit->chat = dsa_arena_calloc(submit->arena, sizeof(dsa_chat_t));
        req->refusal = dsa_arena_calloc(submit->arena, sizeof(dsa_refusal_t));
    }

    if (submit->chat == NULL || req->refusal == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    /* a count is not charged, and has the same result each time */

    return submit->count ? NGX_OK
                         : ngx_http_dsa_idempotency_init(&req->idempotency,
                                                         req->http, mcf->redis,
                                                         &req->tenant,
                                                         &req->ctx.id,
                                                         &req->failure);
}


/*
 * Makes nginx report when the client closes the connection, unless
 * dsa_ignore_client_abort is on.
 */

static ngx_int_t
ngx_http_dsa_chat_watch(ngx_http_request_t *r)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->ignore_client_abort) {
        r->read_event_handler = ngx_http_block_reading;
        return NGX_OK;
    }

    return ngx_http_dsa_closed_watch(r, ngx_http_dsa_request_reading);
}


void
ngx_http_dsa_chat_next(ngx_http_dsa_request_t *req)
{
    ngx_int_t                         rc;
    const ngx_http_dsa_chat_stage_t  *stage;

    do {
        assert(req->stage < sizeof(ngx_http_dsa_chat_stages)
                            / sizeof(ngx_http_dsa_chat_stages[0]));

        stage = &ngx_http_dsa_chat_stages[req->stage++];

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                       "dsa request %V: stage %s", &req->ctx.id, stage->name);

        rc = stage->begin != NULL ? stage->begin(req) : NGX_OK;

        if (rc == NGX_OK && stage->run != NULL) {
            ngx_http_dsa_request_work(req, stage->work, stage->run,
                                      ngx_http_dsa_chat_ran, req);
            return;
        }

    } while (rc == NGX_OK || rc == NGX_DECLINED);

    if (rc == NGX_ERROR) {
        ngx_http_dsa_request_fail(req);
    }
}


/* The run of a stage has ended. */

static void
ngx_http_dsa_chat_ran(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_int_t  rc;

    rc = ngx_http_dsa_chat_stages[req->stage - 1].end(req);

    if (rc == NGX_OK) {
        ngx_http_dsa_chat_next(req);

    } else if (rc == NGX_ERROR) {
        ngx_http_dsa_request_fail(req);
    }
}


/* A run. */

static void
ngx_http_dsa_chat_parse(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_body_text_t  text;

    if (ngx_http_dsa_body_open(req->http, &text, &req->failure) == NGX_OK
        && ngx_http_dsa_idempotency_digest(req->idempotency, text.bufs)
           == NGX_OK)
    {
        if (text.unpacked.len != 0) {
            req->submit.bytes = text.unpacked.len;
        }

        req->root = ngx_http_dsa_body_read(text.bufs, req->submit.arena,
                                           &req->failure);
    }

    ngx_http_dsa_body_close(&text);
}


static ngx_int_t
ngx_http_dsa_chat_parsed(ngx_http_dsa_request_t *req)
{
    if (req->root == NULL) {
        return NGX_ERROR;
    }

    ngx_http_dsa_body_free(req->http);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_chat_claim(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_idempotency_claim(req->idempotency,
                                   ngx_http_dsa_chat_claimed, req);
    return NGX_AGAIN;
}


static void
ngx_http_dsa_chat_claimed(void *data, ngx_int_t rc, dsa_str_t answer)
{
    ngx_http_dsa_request_t *req = data;

    if (rc == NGX_OK) {
        ngx_http_dsa_chat_next(req);

    } else if (rc == NGX_DONE) {
        ngx_http_dsa_request_replay(req, answer);

    } else {
        ngx_http_dsa_request_fail(req);
    }
}


static ngx_int_t
ngx_http_dsa_chat_references(ngx_http_dsa_request_t *req)
{
    return req->answer.api->api->references
           ? ngx_http_dsa_chat_stored->references(req) : NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_chat_history(ngx_http_dsa_request_t *req)
{
    return req->answer.api->api->history != NULL
           ? ngx_http_dsa_chat_stored->history(req) : NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_chat_family(ngx_http_dsa_request_t *req)
{
    ngx_int_t  rc;

    req->submit.waiter.handler = ngx_http_dsa_chat_waited;
    req->submit.waiter.data = req;

    rc = ngx_http_dsa_submit_family(&req->submit, &req->failure);

    if (rc == NGX_OK) {
        req->answer.family = req->submit.family;

    } else if (rc == NGX_AGAIN) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                       "dsa request %V: waits for the first hello",
                       &req->ctx.id);
    }

    return rc;
}


/* An engine of the pool became ready, or its connection failed. */

static void
ngx_http_dsa_chat_waited(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_int_t          rc;
    ngx_connection_t  *c;

    c = req->http->connection;

    ngx_http_set_log_request(c->log, req->http);

    rc = ngx_http_dsa_chat_family(req);

    if (rc == NGX_OK) {
        ngx_http_dsa_chat_next(req);

    } else if (rc == NGX_ERROR) {
        ngx_http_dsa_request_fail(req);
    }

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_dsa_chat_begin_apply(ngx_http_dsa_request_t *req)
{
    return req->submit.family->apply != NULL ? NGX_OK : NGX_DECLINED;
}


/* A run. */

static void
ngx_http_dsa_chat_apply(void *data)
{
    ngx_http_dsa_request_t *req = data;

    dsa_chat_t             *chat;
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;
    chat = submit->chat;

    if (dsa_family_apply(submit->family, chat, req->refusal) == DSA_OK) {
        req->refusal->status = 0;
    }

    if (submit->family->typed && chat->tools != NULL) {
        chat->types = dsa_types_create(chat->tools);
    }
}


/*
 * The types are needed up to the end of the answer, when the chat has been
 * freed.
 */

static ngx_int_t
ngx_http_dsa_chat_applied(ngx_http_dsa_request_t *req)
{
    ngx_pool_cleanup_t     *cln;
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    if (submit->chat->types != NULL) {
        cln = ngx_pool_cleanup_add(req->http->pool, 0);

        if (cln == NULL) {
            dsa_types_destroy((dsa_types_t *) submit->chat->types);
            submit->chat->types = NULL;

        } else {
            cln->handler = ngx_http_dsa_chat_free_types;
            cln->data = (dsa_types_t *) submit->chat->types;
        }
    }

    if (submit->family->typed && submit->chat->tools != NULL
        && submit->chat->types == NULL)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    if (req->refusal->status != 0) {
        ngx_http_dsa_request_refuse(req);
        return NGX_ERROR;
    }

    req->answer.types = submit->chat->types;
    req->answer.api->thinking = dsa_chat_reasons(submit->chat);

    return NGX_OK;
}


static void
ngx_http_dsa_chat_free_types(void *data)
{
    dsa_types_destroy(data);
}


static ngx_int_t
ngx_http_dsa_chat_restore(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_retention_restore(&req->retention, &req->work,
                                   req->submit.chat, req->submit.family,
                                   req->submit.bytes,
                                   ngx_http_dsa_chat_restored);
    return NGX_AGAIN;
}


static void
ngx_http_dsa_chat_restored(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_next(req);
}


/* A run. */

static void
ngx_http_dsa_chat_check(void *data)
{
    ngx_http_dsa_request_t *req = data;

    dsa_chat_t                 *chat;
    ngx_http_dsa_submit_t      *submit;
    ngx_http_dsa_api_answer_t  *a;

    submit = &req->submit;
    chat = submit->chat;
    a = req->answer.api;

    if (dsa_compact_apply(chat, submit->arena, req->refusal) != DSA_OK
        || dsa_chat_check(chat, req->refusal) != DSA_OK
        || dsa_family_check(submit->family, chat, req->refusal) != DSA_OK)
    {
        return;
    }

    /* a summary is free text */

    if (!chat->question
        && dsa_format_spec(&submit->format, submit->family, chat,
                           submit->arena, req->refusal)
           != DSA_OK)
    {
        return;
    }

    if (a->api->ready != NULL) {
        a->api->ready(a, chat);
    }

    req->refusal->status = 0;
}


static ngx_int_t
ngx_http_dsa_chat_checked(ngx_http_dsa_request_t *req)
{
    size_t                  used;
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    if (req->refusal->status != 0) {
        ngx_http_dsa_request_refuse(req);
        return NGX_ERROR;
    }

    if (submit->work == NULL) {
        used = dsa_arena_used(submit->arena);

        if (req->retention.arena != NULL) {
            used += dsa_arena_used(req->retention.arena);
        }

        submit->work = dsa_arena_create(NGX_HTTP_DSA_ARENA(used));
    }

    if (submit->work == NULL || ngx_http_dsa_chat_collect(req) != NGX_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Prepares to collect the whole message, which an answer that is not streamed
 * and a conversation need.
 */

static ngx_int_t
ngx_http_dsa_chat_collect(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    if (a->api->collects
        || (a->stream && req->conversation.id.len == 0))
    {
        return NGX_OK;
    }

    a->message = ngx_pcalloc(req->http->pool, sizeof(ngx_http_dsa_message_t));

    return a->message != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_dsa_chat_record(ngx_http_dsa_request_t *req)
{
    const char  *why;

    if (!req->answer.api->stream) {
        ngx_http_dsa_usage_record_whole(&req->requests->record);
    }

    if (!req->submit.count
        && ngx_http_dsa_usage_record_begin(&req->requests->record, &why)
           != NGX_OK)
    {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 NULL, "The server cannot record the usage of "
                                 "the request now: %s; try again later.",
                                 why);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_chat_choices(ngx_http_dsa_request_t *req)
{
    if (!req->submit.chat->question
        && ngx_http_dsa_retention_record(&req->retention, req->submit.chat))
    {
        req->answer.sampled = &req->retention.sampled;
    }

    if (ngx_http_dsa_choices_add(&req->choices, req->submit.chat->others,
                                 req->requests)
        != NGX_OK)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* A run. */

static void
ngx_http_dsa_chat_encode(void *data)
{
    ngx_http_dsa_request_t *req = data;

    (void) ngx_http_dsa_submit_encode(&req->submit, &req->failure);
}


static ngx_int_t
ngx_http_dsa_chat_encoded(ngx_http_dsa_request_t *req)
{
    if (req->failure.status != 0) {
        return NGX_ERROR;
    }

    /* the prompt has copies of the texts */

    req->submit.chat->messages = NULL;
    req->submit.chat->n_messages = 0;

    if (req->edit != NULL) {
        ngx_http_dsa_edit_detach(req->edit);
        ngx_http_dsa_edit_free(req->edit);
    }

    if (req->compact != NULL) {
        ngx_http_dsa_compact_detach(req->compact);
        ngx_http_dsa_compact_free(req->compact);
    }

    if (req->window != NULL) {
        ngx_http_dsa_window_detach(req->window);
        ngx_http_dsa_window_free(req->window);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_chat_submit(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_events_submit(req);

    return NGX_AGAIN;
}
