
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/account/ngx_http_dsa_closed.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/http/ngx_http_dsa_text.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_chat_load.h"
#include "ngx_http_dsa_events.h"
#include "ngx_http_dsa_responses_history.h"
#include "ngx_http_dsa_responses_references.h"


/*
 * A chat from its arrival to its submission.  The functions are in this order:
 * identify the caller, read the body, find the family of the engines, restore
 * reasoning that the client left out, shorten a long history, encode, submit.
 * Those with "run" in their comment may run in a thread, see
 * ngx_http_dsa_work().
 */

static void ngx_http_dsa_chat_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_chat_prepare(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_watch(ngx_http_request_t *r);
static void ngx_http_dsa_chat_parse(void *data);
static void ngx_http_dsa_chat_parsed(void *data);
static void ngx_http_dsa_chat_claimed(void *data, ngx_int_t rc,
    dsa_str_t answer);
static void ngx_http_dsa_chat_start(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_read(void *data);
static int ngx_http_dsa_chat_dump(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_was_read(void *data);
static ngx_int_t ngx_http_dsa_chat_accept(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_rollout(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_names(ngx_http_dsa_request_t *req);
static ngx_uint_t ngx_http_dsa_chat_is_name(const dsa_str_t *name);
static void ngx_http_dsa_chat_conversation(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_family(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_waited(void *data);
static void ngx_http_dsa_chat_restore(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_restored(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_dsa_chat_check(void *data);
static void ngx_http_dsa_chat_checked(void *data);
static void ngx_http_dsa_chat_window(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_encode(void *data, ngx_int_t rc);
static void ngx_http_dsa_chat_run_encode(void *data);
static void ngx_http_dsa_chat_submit(void *data);
static ngx_int_t ngx_http_dsa_chat_collect(ngx_http_dsa_request_t *req);


static const dsa_chat_limits_t  ngx_http_dsa_chat_limits = {
    .max_messages = 8192,
    .max_tools = 128,
    .hosted = 1
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

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_PARSE,
                              ngx_http_dsa_chat_parse,
                              ngx_http_dsa_chat_parsed, req);
}


/*
 * Creates the arena of the body, and reads the Idempotency-Key.  NGX_ERROR with
 * a failure.
 */

static ngx_int_t
ngx_http_dsa_chat_prepare(ngx_http_dsa_request_t *req)
{
    off_t                      size;
    ngx_http_dsa_submit_t     *submit;
    ngx_http_dsa_main_conf_t  *mcf;

    submit = &req->submit;
    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    size = ngx_http_dsa_body_size(req->http, &req->failure);

    if (size < 0) {
        return NGX_ERROR;
    }

    submit->bytes = size;
    submit->arena = dsa_arena_create(NGX_HTTP_DSA_ARENA(size));

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


/* A run. */

static void
ngx_http_dsa_chat_parse(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_chain_t  *bufs;

    bufs = req->http->request_body->bufs;

    if (ngx_http_dsa_idempotency_digest(req->idempotency, bufs) == NGX_OK) {
        req->root = ngx_http_dsa_body_read(bufs, req->submit.arena,
                                           &req->failure);
    }
}


static void
ngx_http_dsa_chat_parsed(void *data)
{
    ngx_http_dsa_request_t *req = data;

    if (req->root == NULL) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_body_free(req->http);

    ngx_http_dsa_idempotency_claim(req->idempotency,
                                   ngx_http_dsa_chat_claimed, req);
}


static void
ngx_http_dsa_chat_claimed(void *data, ngx_int_t rc, dsa_str_t answer)
{
    ngx_http_dsa_request_t *req = data;

    if (rc == NGX_OK) {
        ngx_http_dsa_responses_references(req, ngx_http_dsa_chat_start);

    } else if (rc == NGX_DONE) {
        ngx_http_dsa_request_replay(req, answer);

    } else {
        ngx_http_dsa_request_fail(req);
    }
}


static void
ngx_http_dsa_chat_start(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_READ,
                              ngx_http_dsa_chat_read,
                              ngx_http_dsa_chat_was_read, req);
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


/* A run: converts the body to a chat. */

static void
ngx_http_dsa_chat_read(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_submit_t      *submit;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    submit = &req->submit;

    if (a->api->read(a, submit->chat, submit->arena, req->root,
                     &ngx_http_dsa_chat_limits, req->refusal)
        != DSA_OK)
    {
        return;
    }

    req->refusal->status = 0;

    if (ngx_http_dsa_chat_dump(req) != DSA_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
    }
}


/*
 * Collects the messages that this request adds to its conversation, unless its
 * API has a callback "turn", which makes them together with the answer.
 */

static int
ngx_http_dsa_chat_dump(ngx_http_dsa_request_t *req)
{
    uint32_t     i;
    dsa_buf_t   *b;
    dsa_chat_t  *chat;

    chat = req->submit.chat;

    if (chat->conversation.len == 0 || req->answer.api->api->turn != NULL) {
        return DSA_OK;
    }

    b = &req->conversation.messages;

    for (i = 0; i < chat->n_messages; i++) {
        if (dsa_message_dump(b, &chat->messages[i]) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_buf_add(b, "", 1);
    }

    return b->failed ? DSA_ERROR : DSA_OK;
}


static void
ngx_http_dsa_chat_was_read(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_loc_conf_t  *dlcf;

    if (ngx_http_dsa_chat_accept(req) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    if (!req->answer.api->stream
        && ngx_http_dsa_idempotency_claimed(req->idempotency))
    {
        /* the request that repeats this one gets the answer */

        req->stream.keep = 1;
        req->http->read_event_handler = ngx_http_block_reading;
    }

    /*
     * The first blank line in front of a JSON object sends the status 200, so
     * that a later error looks like a completion to clients that check only
     * the status.
     */

    if (req->answer.api->stream || dlcf->keepalive_json) {
        req->timer.keepalive = dlcf->keepalive;
    }

    ngx_http_dsa_timer_set(&req->timer, req->stream.last_write);

    ngx_http_dsa_responses_history(req, &ngx_http_dsa_chat_limits,
                                   req->conversation.id.len != 0
                                   ? ngx_http_dsa_chat_conversation
                                   : ngx_http_dsa_chat_family);
}


/* NGX_ERROR with a failure: the request is refused. */

static ngx_int_t
ngx_http_dsa_chat_accept(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    if (req->failure.status != 0) {
        return NGX_ERROR;
    }

    if (req->refusal->status != 0) {
        ngx_http_dsa_request_refuse(req);
        return NGX_ERROR;
    }

    if (ngx_http_dsa_chat_rollout(req) != NGX_OK
        || ngx_http_dsa_chat_names(req) != NGX_OK)
    {
        return NGX_ERROR;
    }

    req->answer.tools = submit->chat->tool_choice != DSA_TOOL_CHOICE_NONE;

    ngx_log_debug5(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: parsed, model \"%V\", %uD messages, "
                   "stream %d, thinking %d", &req->ctx.id, &submit->model,
                   submit->chat->n_messages, req->answer.api->stream,
                   req->answer.api->thinking);

    return NGX_OK;
}


/* Rollouts are large and costly for an engine, so they need dsa_rollout. */

static ngx_int_t
ngx_http_dsa_chat_rollout(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    if (req->submit.chat->rollout && dlcf->rollout == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN, "rollout",
                                 "Rollouts are not available here, because "
                                 "dsa_rollout is 0.");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_chat_names(ngx_http_dsa_request_t *req)
{
    ngx_pool_t  *pool;
    dsa_chat_t  *chat;

    chat = req->submit.chat;
    pool = req->http->pool;

    if (!ngx_http_dsa_chat_is_name(&chat->model)) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST, "model",
                                 "Model Not Exist");
        return NGX_ERROR;
    }

    if (ngx_http_dsa_copy(pool, &req->submit.model, &chat->model) != NGX_OK
        || ngx_http_dsa_copy(pool, &req->conversation.id, &chat->conversation)
           != NGX_OK)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    ngx_http_dsa_usage_record_model(req->record, &req->submit.model);

    return ngx_http_dsa_access_model(req->http, &req->submit.model,
                                     &req->failure);
}


/*
 * Returns 1 if an engine can have this name.  $dsa_model may be used in a
 * header, where a line feed would begin another header.
 */

static ngx_uint_t
ngx_http_dsa_chat_is_name(const dsa_str_t *name)
{
    size_t  i;

    for (i = 0; i < name->len; i++) {
        if ((u_char) name->data[i] < 0x20 || name->data[i] == 0x7f) {
            return 0;
        }
    }

    return name->len < sizeof(((dsa_link_hello_t *) 0)->model);
}


static void
ngx_http_dsa_chat_conversation(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_chat_load(req, &ngx_http_dsa_chat_limits,
                           ngx_http_dsa_chat_family);
}


/* Everything behind this depends on how the model's prompts are written. */

static void
ngx_http_dsa_chat_family(ngx_http_dsa_request_t *req)
{
    req->submit.waiter.handler = ngx_http_dsa_chat_waited;
    req->submit.waiter.data = req;

    switch (ngx_http_dsa_submit_family(&req->submit, &req->failure)) {

    case NGX_OK:
        req->answer.family = req->submit.family;
        ngx_http_dsa_chat_restore(req);
        return;

    case NGX_AGAIN:
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                       "dsa request %V: waits for the first hello",
                       &req->ctx.id);
        return;

    default: /* NGX_ERROR */
        ngx_http_dsa_request_fail(req);
        return;
    }
}


/* An engine of the pool became ready, or its connection failed. */

static void
ngx_http_dsa_chat_waited(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_connection_t  *c;

    c = req->http->connection;

    ngx_http_set_log_request(c->log, req->http);

    ngx_http_dsa_chat_family(req);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_chat_restore(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_retention_restore(&req->retention, &req->work,
                                   req->submit.chat, req->submit.family,
                                   req->submit.bytes,
                                   ngx_http_dsa_chat_restored);
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

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_CHECK,
                              ngx_http_dsa_chat_check,
                              ngx_http_dsa_chat_checked, req);
}


/* A run. */

static void
ngx_http_dsa_chat_check(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    if (dsa_chat_check(submit->chat, req->refusal) == DSA_OK
        && dsa_family_check(submit->family, submit->chat, req->refusal)
           == DSA_OK
        && dsa_format_spec(&submit->format, submit->family, submit->chat,
                           submit->arena, req->refusal)
           == DSA_OK)
    {
        req->refusal->status = 0;
    }
}


static void
ngx_http_dsa_chat_checked(void *data)
{
    ngx_http_dsa_request_t *req = data;

    size_t                  used;
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    if (req->refusal->status != 0) {
        ngx_http_dsa_request_refuse(req);
        ngx_http_dsa_request_fail(req);
        return;
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
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_window(req);
}


/* Starts the context strategy, which shortens a long history. */

static void
ngx_http_dsa_chat_window(ngx_http_dsa_request_t *req)
{
    const char                *why;
    dsa_window_e               strategy;
    ngx_http_dsa_window_t     *win;
    ngx_http_dsa_loc_conf_t   *dlcf;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);
    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    strategy = req->submit.chat->window;

    if (strategy == DSA_WINDOW_UNSET) {
        strategy = dlcf->context_strategy;
    }

    if (!req->answer.api->stream) {
        ngx_http_dsa_usage_record_whole(req->record);
    }

    if (!req->submit.count
        && ngx_http_dsa_usage_record_begin(req->record, &why) != NGX_OK)
    {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 NULL, "The server cannot record the usage of "
                                 "the request now: %s; try again later.",
                                 why);
        ngx_http_dsa_request_fail(req);
        return;
    }

    /* a text completion has no messages that could be removed */

    if (strategy == DSA_WINDOW_NONE || req->submit.chat->completion != NULL) {
        ngx_http_dsa_chat_encode(req, NGX_OK);
        return;
    }

    /* the struct is as large as that of the request, and few chats need it */

    win = ngx_pcalloc(req->http->pool, sizeof(ngx_http_dsa_window_t));

    if (win == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        ngx_http_dsa_request_fail(req);
        return;
    }

    req->window = win;

    win->request = req->http;
    win->work = &req->work;
    win->submit = &req->submit;
    win->failure = &req->failure;
    win->record = req->record;
    win->percent = dlcf->context_threshold;
    win->stored.redis = mcf->redis;
    win->stored.tenant = req->tenant;
    win->handler = ngx_http_dsa_chat_encode;
    win->data = req;

    ngx_http_dsa_window_start(win, strategy);
}


static void
ngx_http_dsa_chat_encode(void *data, ngx_int_t rc)
{
    ngx_http_dsa_request_t *req = data;

    if (rc == NGX_OK && req->window != NULL && req->window->applied.len != 0) {
        req->strategy = req->window->applied;
        req->answer.api->context = &req->window->report;

        rc = ngx_http_dsa_window_headers(req->window);
    }

    if (ngx_http_dsa_retention_record(&req->retention, req->submit.chat)) {
        req->answer.sampled = &req->retention.sampled;
    }

    if (rc == NGX_OK
        && ngx_http_dsa_choices_add(&req->choices, req->submit.chat->others,
                                    req->record)
           != NGX_OK)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        rc = NGX_ERROR;
    }

    if (rc != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_request_work(req, NGX_HTTP_DSA_STAGE_ENCODE,
                              ngx_http_dsa_chat_run_encode,
                              ngx_http_dsa_chat_submit, req);
}


/* A run. */

static void
ngx_http_dsa_chat_run_encode(void *data)
{
    ngx_http_dsa_request_t *req = data;

    (void) ngx_http_dsa_submit_encode(&req->submit, &req->failure);
}


static void
ngx_http_dsa_chat_submit(void *data)
{
    ngx_http_dsa_request_t *req = data;

    if (req->failure.status != 0) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    /* the prompt has copies of the texts */

    req->submit.chat->messages = NULL;
    req->submit.chat->n_messages = 0;

    if (req->window != NULL) {
        ngx_http_dsa_window_detach(req->window);
        ngx_http_dsa_window_free(req->window);
    }

    ngx_http_dsa_events_submit(req);
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
