
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "context/conversation.h"
#include "redis_schema/schema.h"

#include "ngx_http_dsa_access.h"
#include "ngx_http_dsa_body.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_events.h"
#include "ngx_http_dsa_grammar.h"
#include "ngx_http_dsa_reply.h"
#include "ngx_http_dsa_responses_history.h"
#include "ngx_http_dsa_responses_references.h"
#include "ngx_http_dsa_store.h"
#include "ngx_http_dsa_text.h"


/*
 * A chat from its arrival to its submission.  The functions are in this order:
 * identify the caller, read the body, load the conversation, restore reasoning
 * that the client left out, shorten a long history, encode, submit.
 */

static void ngx_http_dsa_chat_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_chat_watch(ngx_http_request_t *r);
static void ngx_http_dsa_chat_start(ngx_http_dsa_request_t *req,
    const dsa_json_t *root);
static ngx_int_t ngx_http_dsa_chat_read(ngx_http_dsa_request_t *req,
    const dsa_json_t *root);
static ngx_int_t ngx_http_dsa_chat_rollout(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_names(ngx_http_dsa_request_t *req);
static ngx_uint_t ngx_http_dsa_chat_is_name(const dsa_str_t *name);
static void ngx_http_dsa_chat_refused(ngx_http_dsa_request_t *req,
    dsa_refusal_t *refusal);
static void ngx_http_dsa_chat_load(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_load_start(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_chat_messages(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_loaded(ngx_http_request_t *r, ngx_uint_t status,
    const dsa_schema_conversation_t *conversation, const char *why);
static ngx_int_t ngx_http_dsa_chat_prepend(ngx_http_dsa_request_t *req,
    const dsa_schema_conversation_t *conversation);
static void ngx_http_dsa_chat_restore(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_restored(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_dsa_chat_encode(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_window(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_chat_submit(void *data, ngx_int_t rc);
static ngx_int_t ngx_http_dsa_chat_collect(ngx_http_dsa_request_t *req);


static const dsa_chat_limits_t  ngx_http_dsa_chat_limits = {
    .max_messages = 8192,
    .max_tools = 128,
    .hosted = 1
};


const char  ngx_http_dsa_no_tenant[] =
    "Conversations are not available to this request, because the server has "
    "identified no tenant for it: the value of dsa_tenant is empty.";


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
    dsa_json_t              *root;
    ngx_http_dsa_ctx_t      *ctx;
    ngx_http_dsa_request_t  *req;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);
    req = ctx->request;

    if (ngx_http_dsa_chat_watch(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    root = ngx_http_dsa_body_read(r, &req->submit.arena, &req->failure);

    if (root == NULL) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_body_free(r);

    ngx_http_dsa_responses_references(req, root, ngx_http_dsa_chat_start);
}


static void
ngx_http_dsa_chat_start(ngx_http_dsa_request_t *req, const dsa_json_t *root)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    if (ngx_http_dsa_chat_read(req, root) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
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
                                   ? ngx_http_dsa_chat_load
                                   : ngx_http_dsa_chat_restore);
}


/*
 * Makes nginx report when the client closes the connection, unless
 * dsa_ignore_client_abort is on.  The client may have closed it while the body
 * was read.  With an edge-triggered method that event is not reported again,
 * unless another event is added for the same descriptor.
 */

static ngx_int_t
ngx_http_dsa_chat_watch(ngx_http_request_t *r)
{
    ngx_uint_t                events;
    ngx_connection_t         *c;
    ngx_http_dsa_loc_conf_t  *dlcf;

    c = r->connection;
    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->ignore_client_abort) {
        r->read_event_handler = ngx_http_block_reading;
        return NGX_OK;
    }

    r->read_event_handler = ngx_http_test_reading;

    events = ngx_event_flags & NGX_USE_CLEAR_EVENT;

#if (NGX_HTTP_V2)
    if (r->stream != NULL) {
        events = 0;
    }
#endif

#if (NGX_HTTP_V3)
    if (c->quic != NULL) {
        events = 0;
    }
#endif

    if (!events || c->write->active) {
        return NGX_OK;
    }

    return ngx_add_event(c->write, NGX_WRITE_EVENT, NGX_CLEAR_EVENT);
}


/* Converts the body to a chat.  NGX_ERROR with a failure. */

static ngx_int_t
ngx_http_dsa_chat_read(ngx_http_dsa_request_t *req, const dsa_json_t *root)
{
    dsa_refusal_t               refusal;
    ngx_http_dsa_submit_t      *submit;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    submit = &req->submit;

    submit->chat = dsa_arena_calloc(submit->arena, sizeof(dsa_chat_t));

    if (submit->chat == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (a->api->read(a, submit->chat, submit->arena, root,
                     &ngx_http_dsa_chat_limits, &refusal)
        != DSA_OK
        || dsa_format_spec(&submit->format, submit->chat, submit->arena,
                           &refusal)
           != DSA_OK
        || ngx_http_dsa_grammar_check(&submit->format, &refusal) != NGX_OK)
    {
        ngx_http_dsa_chat_refused(req, &refusal);
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
                   submit->chat->n_messages, a->stream, a->thinking);

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
ngx_http_dsa_chat_refused(ngx_http_dsa_request_t *req, dsa_refusal_t *refusal)
{
    size_t  len;
    char   *param;

    param = NULL;
    len = ngx_strlen(refusal->param);

    if (len != 0) {
        param = ngx_pnalloc(req->http->pool, len + 1);

        if (param != NULL) {
            ngx_memcpy(param, refusal->param, len + 1);
        }
    }

    ngx_http_dsa_failure_set(&req->failure, refusal->status, param, "%s",
                             refusal->message);
}


static void
ngx_http_dsa_chat_load(ngx_http_dsa_request_t *req)
{
    if (ngx_http_dsa_chat_load_start(req) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
    }
}


/*
 * Loads the conversation.  NGX_OK: ngx_http_dsa_chat_loaded() is called;
 * NGX_ERROR with a failure.
 */

static ngx_int_t
ngx_http_dsa_chat_load_start(ngx_http_dsa_request_t *req)
{
    ngx_http_request_t        *r;
    ngx_http_dsa_main_conf_t  *mcf;

    r = req->http;

    if (req->tenant.len == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN,
                                 "conversation", "%s",
                                 ngx_http_dsa_no_tenant);
        return NGX_ERROR;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_BAD_REQUEST,
                                 "conversation", "Conversations are not kept "
                                 "here: \"dsa_redis\" is not configured.");
        return NGX_ERROR;
    }

    if (ngx_http_dsa_chat_messages(req) != NGX_OK
        || ngx_http_dsa_store_load(r, mcf->redis, &req->tenant,
                                   &req->conversation.id,
                                   &req->conversation.lease, &req->ctx.id,
                                   ngx_http_dsa_chat_loaded)
           == NGX_ERROR)
    {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Collects the messages that this request adds to its conversation, unless its
 * API has a callback "turn", which makes them together with the answer.
 */

static ngx_int_t
ngx_http_dsa_chat_messages(ngx_http_dsa_request_t *req)
{
    uint32_t     i;
    dsa_buf_t   *b;
    dsa_chat_t  *chat;

    if (req->answer.api->api->turn != NULL) {
        return NGX_OK;
    }

    chat = req->submit.chat;
    b = &req->conversation.messages;

    for (i = 0; i < chat->n_messages; i++) {
        if (dsa_message_dump(b, &chat->messages[i]) != DSA_OK) {
            return NGX_ERROR;
        }

        dsa_buf_add(b, "", 1);
    }

    return b->failed ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_dsa_chat_loaded(ngx_http_request_t *r, ngx_uint_t status,
    const dsa_schema_conversation_t *conversation, const char *why)
{
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_request_open(r);

    if (req == NULL) {
        return;
    }

    if (status != NGX_HTTP_OK) {
        ngx_http_dsa_failure_set(&req->failure, status, "conversation", "%s",
                                 why);

        if (status == NGX_HTTP_CONFLICT) {
            req->failure.code = NGX_HTTP_DSA_CONVERSATION_LOCKED;
        }

        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: conversation \"%V\" loaded, version %L",
                   &req->ctx.id, &req->conversation.id,
                   conversation->version);

    req->conversation.version = conversation->version;

    if (ngx_http_dsa_chat_prepend(req, conversation) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_restore(req);
}


/* Inserts the stored messages in front of the messages of the request. */

static ngx_int_t
ngx_http_dsa_chat_prepend(ngx_http_dsa_request_t *req,
    const dsa_schema_conversation_t *conversation)
{
    dsa_refusal_t       refusal;
    dsa_conversation_t  entries;

    req->submit.work = dsa_arena_create(NGX_HTTP_DSA_ARENA(conversation->bytes
                                               + req->http->request_length));
    if (req->submit.work == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    ngx_memzero(&entries, sizeof(dsa_conversation_t));
    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    entries.entries = conversation->messages;
    entries.numbers = conversation->numbers;
    entries.n = conversation->n_messages;

    if (dsa_conversation_insert(req->submit.chat, req->submit.work, &entries,
                                &ngx_http_dsa_chat_limits, &refusal)
        != DSA_OK)
    {
        if (refusal.status == NGX_HTTP_INTERNAL_SERVER_ERROR) {
            ngx_log_error(NGX_LOG_ERR, req->http->connection->log, 0,
                          "conversation \"%V\" cannot be read",
                          &req->conversation.id);
        }

        ngx_http_dsa_chat_refused(req, &refusal);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_dsa_chat_restore(ngx_http_dsa_request_t *req)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_retention_restore(&req->retention, req->http,
                                        req->submit.chat, &req->failure,
                                        ngx_http_dsa_chat_restored);

    if (rc != NGX_AGAIN) {
        ngx_http_dsa_chat_restored(req->http, rc);
    }
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

    ngx_http_dsa_chat_encode(req);
}


static void
ngx_http_dsa_chat_encode(ngx_http_dsa_request_t *req)
{
    size_t                  used;
    dsa_refusal_t           refusal;
    ngx_http_dsa_submit_t  *submit;

    submit = &req->submit;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (dsa_chat_check(submit->chat, &refusal) != DSA_OK) {
        ngx_http_dsa_chat_refused(req, &refusal);
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

    if (!req->submit.count
        && ngx_http_dsa_usage_record_begin(req->record) != NGX_OK)
    {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                                 NULL, "The server cannot record the usage of "
                                 "the request now; try again later.");
        ngx_http_dsa_request_fail(req);
        return;
    }

    win = &req->window;
    win->request = req->http;
    win->submit = &req->submit;
    win->failure = &req->failure;
    win->record = req->record;
    win->percent = dlcf->context_threshold;
    win->stored.redis = mcf->redis;
    win->stored.tenant = req->tenant;
    win->handler = ngx_http_dsa_chat_submit;
    win->data = req;

    ngx_http_dsa_window_start(win, strategy);
}


static void
ngx_http_dsa_chat_submit(void *data, ngx_int_t rc)
{
    ngx_http_dsa_request_t *req = data;

    if (rc == NGX_OK && req->window.applied.len != 0) {
        req->answer.api->context = &req->window.report;

        rc = ngx_http_dsa_window_headers(&req->window);
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

    if (rc != NGX_OK
        || ngx_http_dsa_submit_encode(&req->submit, &req->failure) != NGX_OK)
    {
        ngx_http_dsa_request_fail(req);
        return;
    }

    /* the prompt has copies of the texts */

    req->submit.chat->messages = NULL;
    req->submit.chat->n_messages = 0;

    ngx_http_dsa_window_detach(&req->window);

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
