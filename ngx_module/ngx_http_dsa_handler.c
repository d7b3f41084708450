
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <float.h>
#include <math.h>

#include <openssl/rand.h>

#include "context/control_tokens.h"

#include "ngx_http_dsa_conversations.h"
#include "ngx_http_dsa_filter.h"
#include "ngx_http_dsa_module.h"


/*
 * The way of a request to the engine, from top to bottom: route, read the
 * body, load the conversation, encode, submit.
 */

#define NGX_HTTP_DSA_JSON_DEPTH     128
#define NGX_HTTP_DSA_MAX_MESSAGES   8192
#define NGX_HTTP_DSA_MAX_TOOLS      128

/* memory for a body: nodes of its tree are larger than their text, those of
 * a short message or of a JSON schema about 11 times */
#define NGX_HTTP_DSA_ARENA(n)       (1024 * 1024 + 12 * (size_t) (n))

#define NGX_HTTP_DSA_CHAT_TOKENS    4096
#define NGX_HTTP_DSA_THINK_TOKENS   32768


static ngx_uint_t ngx_http_dsa_ends(ngx_str_t *uri, const char *end);
static ngx_int_t ngx_http_dsa_models(ngx_http_request_t *r,
    ngx_http_dsa_pool_t *pool);
static ngx_int_t ngx_http_dsa_conversations(ngx_http_request_t *r,
    ngx_http_dsa_loc_conf_t *dlcf);
static ngx_int_t ngx_http_dsa_chat(ngx_http_request_t *r,
    ngx_http_dsa_loc_conf_t *dlcf);
static ngx_uint_t ngx_http_dsa_is_json(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_not_json(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_create_ctx(ngx_http_request_t *r,
    ngx_http_dsa_loc_conf_t *dlcf, ngx_str_t *tenant, u_char *digest);
static void ngx_http_dsa_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_read_body(ngx_http_dsa_ctx_t *ctx);
static ngx_uint_t ngx_http_dsa_is_name(const dsa_str_t *name);
static ngx_int_t ngx_http_dsa_copy(ngx_pool_t *pool, ngx_str_t *to,
    const dsa_str_t *from);
static void ngx_http_dsa_refusal(ngx_http_dsa_ctx_t *ctx,
    dsa_refusal_t *refusal);
static ngx_int_t ngx_http_dsa_read_messages(ngx_http_dsa_ctx_t *ctx);
static void ngx_http_dsa_loaded(ngx_http_request_t *r, ngx_uint_t status,
    const dsa_schema_conversation_t *conversation, const char *why);
static void ngx_http_dsa_encode(ngx_http_dsa_ctx_t *ctx);
static ngx_int_t ngx_http_dsa_fields(ngx_http_dsa_ctx_t *ctx);
static ngx_int_t ngx_http_dsa_known(ngx_http_dsa_ctx_t *ctx,
    ngx_str_t **model);
static ngx_int_t ngx_http_dsa_submit_to(ngx_http_dsa_ctx_t *ctx,
    ngx_http_dsa_session_t *s);
static void ngx_http_dsa_unavailable(ngx_http_dsa_ctx_t *ctx,
    uint32_t context);


_Static_assert((int) DSA_SEGMENT_TEXT == (int) DSA_LINK_FIELD_TEXT
               && (int) DSA_SEGMENT_CONTROL == (int) DSA_LINK_FIELD_CONTROL,
               "segments of a prompt are fields of the link");


/* bit i of the vocabulary in ACCEPTED stands for name i */

static const char  *ngx_http_dsa_queries[] = {
    DSA_CONTROL_BOS,
    DSA_CONTROL_EOS,
    DSA_CONTROL_USER,
    DSA_CONTROL_ASSISTANT,
    DSA_CONTROL_THINK,
    DSA_CONTROL_THINK_END,
    DSA_CONTROL_DSML
};


static ngx_str_t  ngx_http_dsa_aliases[] = {
    ngx_string("deepseek-chat"),
    ngx_string("deepseek-reasoner"),
    ngx_null_string
};


static const char  ngx_http_dsa_no_tenant[] =
    "Conversations are not available to this request, because the server has "
    "identified no tenant for it: the value of dsa_tenant is empty.";


ngx_int_t
ngx_http_dsa_handler(ngx_http_request_t *r)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "dsa_pass does not serve the subrequest \"%V\"",
                      &r->uri);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (ngx_http_dsa_ends(&r->uri, "/chat/completions")) {

        if (r->method != NGX_HTTP_POST) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "POST",
                                           "Only POST is accepted here.");
        }

        return ngx_http_dsa_chat(r, dlcf);
    }

    if (ngx_http_dsa_ends(&r->uri, "/models")) {

        if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                                           "GET, HEAD",
                                           "Only GET and HEAD are accepted "
                                           "here.");
        }

        return ngx_http_dsa_models(r, dlcf->pool);
    }

    return ngx_http_dsa_conversations(r, dlcf);
}


static ngx_uint_t
ngx_http_dsa_ends(ngx_str_t *uri, const char *end)
{
    size_t  len;

    len = ngx_strlen(end);

    return uri->len >= len
           && ngx_memcmp(uri->data + uri->len - len, end, len) == 0;
}


/* The names that chats may ask for: of the engines, then the API's own. */

static ngx_int_t
ngx_http_dsa_models(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool)
{
    dsa_buf_t                b;
    ngx_int_t                rc;
    ngx_str_t                name, *alias;
    ngx_uint_t               i, n, known;
    ngx_http_dsa_session_t  *s;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_dsa_pool_any(pool) == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                       "No engine has been reached yet.");
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "{\"object\":\"list\",\"data\":[");

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {

        if (s[i].hello.magic != DSA_LINK_MAGIC) {
            continue;
        }

        known = 0;

        for (n = 0; n < i; n++) {
            if (s[n].hello.magic == DSA_LINK_MAGIC
                && ngx_strcmp(s[n].hello.model, s[i].hello.model) == 0)
            {
                known = 1;
                break;
            }
        }

        for (alias = ngx_http_dsa_aliases; alias->len != 0; alias++) {
            if (ngx_strcmp(s[i].hello.model, alias->data) == 0) {
                known = 1;
                break;
            }
        }

        if (!known) {
            name.data = (u_char *) s[i].hello.model;
            name.len = ngx_strlen(s[i].hello.model);

            ngx_http_dsa_openai_model(&b, &name);
            dsa_buf_addz(&b, ",");
        }
    }

    for (alias = ngx_http_dsa_aliases; alias->len != 0; alias++) {

        if (alias != ngx_http_dsa_aliases) {
            dsa_buf_addz(&b, ",");
        }

        ngx_http_dsa_openai_model(&b, alias);
    }

    dsa_buf_addz(&b, "]}");

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


static ngx_int_t
ngx_http_dsa_conversations(ngx_http_request_t *r,
    ngx_http_dsa_loc_conf_t *dlcf)
{
    u_char                     digest[NGX_HTTP_DSA_DIGEST_LEN], *p;
    ngx_int_t                  rc;
    ngx_str_t                 *tenant, *id, rest;
    const char                *why;
    ngx_http_dsa_main_conf_t  *mcf;

    static const char  name[] = "/conversations";

    /* ".../conversations" or ".../conversations/ID" */

    rest = r->uri;

    if (!ngx_http_dsa_ends(&rest, name)) {

        while (rest.len != 0 && rest.data[rest.len - 1] != '/') {
            rest.len--;
        }

        if (rest.len != 0) {
            rest.len--;
        }

        if (rest.len + 1 >= r->uri.len || !ngx_http_dsa_ends(&rest, name)) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                                           NGX_HTTP_DSA_NOT_FOUND);
        }

        rest.len++;
    }

    p = r->uri.data + rest.len;

    tenant = ngx_palloc(r->pool, 2 * sizeof(ngx_str_t));
    if (tenant == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    id = tenant + 1;
    id->data = p;
    id->len = r->uri.data + r->uri.len - p;

    if (id->len == 0 && r->method == NGX_HTTP_POST && !ngx_http_dsa_is_json(r))
    {
        return ngx_http_dsa_not_json(r);
    }

    rc = ngx_http_dsa_identify(r, dlcf->tenant, tenant, digest, &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, why);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (tenant->len == 0) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_FORBIDDEN, NULL,
                                       ngx_http_dsa_no_tenant);
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    return ngx_http_dsa_conversations_handler(r, mcf->redis, tenant, id);
}


static ngx_int_t
ngx_http_dsa_chat(ngx_http_request_t *r, ngx_http_dsa_loc_conf_t *dlcf)
{
    u_char       digest[NGX_HTTP_DSA_DIGEST_LEN];
    ngx_int_t    rc;
    ngx_str_t    tenant;
    const char  *why;

    if (!ngx_http_dsa_is_json(r)) {
        return ngx_http_dsa_not_json(r);
    }

    rc = ngx_http_dsa_identify(r, dlcf->tenant, &tenant, digest, &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, why);
    }

    if (rc != NGX_OK
        || ngx_http_dsa_create_ctx(r, dlcf, &tenant, digest) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->request_body_in_file_only = 0;

    rc = ngx_http_read_client_request_body(r, ngx_http_dsa_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


/*
 * application/json or application/...+json, with any parameters.  A web
 * page of another origin can make a browser send a body without a preflight
 * request, but only as text, as a form, or without a type.  If these were
 * accepted, any page could use a server that listens on loopback.
 */

static ngx_uint_t
ngx_http_dsa_is_json(ngx_http_request_t *r)
{
    size_t      len;
    ngx_str_t  *value;

    static u_char  prefix[] = "application/";

    if (r->headers_in.content_type == NULL) {
        return 0;
    }

    value = &r->headers_in.content_type->value;

    for (len = 0; len < value->len; len++) {
        if (value->data[len] == ';' || value->data[len] == ' '
            || value->data[len] == '\t')
        {
            break;
        }
    }

    if (len < sizeof("application/json") - 1
        || ngx_strncasecmp(value->data, prefix, sizeof(prefix) - 1) != 0
        || ngx_strncasecmp(value->data + len - 4, (u_char *) "json", 4) != 0)
    {
        return 0;
    }

    return len == sizeof("application/json") - 1
           || value->data[len - 5] == '+';
}


static ngx_int_t
ngx_http_dsa_not_json(ngx_http_request_t *r)
{
    return ngx_http_dsa_send_error(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE, NULL,
               "The body must be JSON, and the request must have the header "
               "\"Content-Type: application/json\". Parameters and "
               "other types application/...+json are accepted as well.");
}


static ngx_int_t
ngx_http_dsa_create_ctx(ngx_http_request_t *r, ngx_http_dsa_loc_conf_t *dlcf,
    ngx_str_t *tenant, u_char *digest)
{
    u_char                     noise[16 + sizeof(uint64_t)];
    ngx_http_cleanup_t        *cln;
    ngx_pool_cleanup_t        *pcln;
    ngx_http_dsa_ctx_t        *ctx;
    ngx_http_dsa_main_conf_t  *mcf;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_dsa_ctx_t));
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->id.data = ngx_pnalloc(r->pool, NGX_HTTP_DSA_ID_LEN);
    if (ctx->id.data == NULL) {
        return NGX_ERROR;
    }

    pcln = ngx_pool_cleanup_add(r->pool, 0);
    if (pcln == NULL) {
        return NGX_ERROR;
    }

    pcln->handler = ngx_http_dsa_stream_cleanup;
    pcln->data = &ctx->stream;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    ctx->account = ngx_calloc(sizeof(ngx_http_dsa_account_t),
                              r->connection->log);
    if (ctx->account == NULL) {
        return NGX_ERROR;
    }

    /* from here on the cleanup handler gives back what the ctx has */

    cln->handler = ngx_http_dsa_cleanup;
    cln->data = ctx;

    ngx_http_set_ctx(r, ctx, ngx_http_dsa_module);

    ctx->request = r;
    ctx->pool = dlcf->pool;
    ctx->start = ngx_current_msec;
    ctx->deadline = ctx->start + dlcf->timeout;
    ctx->last_write = ctx->start;
    ctx->reason = NGX_HTTP_DSA_CANCEL_CLIENT;

    ctx->timer.handler = ngx_http_dsa_timer_handler;
    ctx->timer.data = ctx;
    ctx->timer.log = r->connection->log;

    ngx_http_dsa_metrics_add(in_flight, 1);

    if (RAND_bytes(noise, sizeof(noise)) != 1) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "RAND_bytes() failed");
        return NGX_ERROR;
    }

    ctx->id.len = ngx_hex_dump(ngx_cpymem(ctx->id.data, "chatcmpl-",
                                          sizeof("chatcmpl-") - 1),
                               noise, 16)
                  - ctx->id.data;

    ngx_memcpy(&ctx->seed, noise + 16, sizeof(uint64_t));

    ctx->tenant = *tenant;
    ngx_memcpy(ctx->digest, digest, sizeof(ctx->digest));

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    ctx->account->call.handler = ngx_http_dsa_event_handler;
    ctx->account->call.data = ctx;

    ngx_memcpy(ctx->account->id, ctx->id.data, ctx->id.len);

    if (ctx->tenant.len != 0) {

        /* the ledger has entries of tenants only */

        ctx->account->redis = mcf->redis;
        ngx_memcpy(ctx->account->tenant, ctx->tenant.data, ctx->tenant.len);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_body_handler(ngx_http_request_t *r)
{
    ngx_uint_t                 events;
    ngx_connection_t          *c;
    ngx_http_dsa_ctx_t        *ctx;
    ngx_http_dsa_main_conf_t  *mcf;

    c = r->connection;
    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    r->read_event_handler = ngx_http_test_reading;

    /*
     * The client may have left while its body was read, and that edge is
     * gone: a new event on the same descriptor brings it again.
     */

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

    if (events && !c->write->active
        && ngx_add_event(c->write, NGX_WRITE_EVENT, NGX_CLEAR_EVENT)
           != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (ngx_http_dsa_read_body(ctx) != NGX_OK) {
        ngx_http_dsa_fail(ctx);
        return;
    }

    /* not cancelable, so that a worker that shuts down waits for it */

    ngx_http_dsa_set_timer(ctx);

    if (ctx->conversation.len == 0) {
        ngx_http_dsa_encode(ctx);
        return;
    }

    if (ctx->tenant.len == 0) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_FORBIDDEN, "conversation",
                                 "%s", ngx_http_dsa_no_tenant);
        ngx_http_dsa_fail(ctx);
        return;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST, "conversation",
                                 "Conversations are not kept here: "
                                 "\"dsa_redis\" is not configured.");
        ngx_http_dsa_fail(ctx);
        return;
    }

    if (ngx_http_dsa_read_messages(ctx) != NGX_OK
        || ngx_http_dsa_store_load(r, mcf->redis, &ctx->tenant,
                                   &ctx->conversation, ngx_http_dsa_loaded)
           == NGX_ERROR)
    {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "Out of memory.");
        ngx_http_dsa_fail(ctx);
    }
}


/* The body, buffer by buffer, to a chat; NGX_ERROR: the failure is set. */

static ngx_int_t
ngx_http_dsa_read_body(ngx_http_dsa_ctx_t *ctx)
{
    off_t                     size;
    ngx_buf_t                *b;
    dsa_err_t                 err;
    ngx_chain_t              *cl;
    dsa_json_t               *root;
    dsa_chat_limits_t         limits;
    dsa_refusal_t             refusal;
    dsa_json_parser_t        *parser;
    ngx_http_request_t       *r;
    ngx_http_request_body_t  *rb;

    r = ctx->request;
    rb = r->request_body;

    if (rb == NULL || rb->temp_file != NULL) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, NULL,
                                 "The request body is longer than what is "
                                 "kept in memory here.");
        return NGX_ERROR;
    }

    size = 0;

    for (cl = rb->bufs; cl != NULL; cl = cl->next) {
        size += ngx_buf_size(cl->buf);
    }

    ctx->arena = dsa_arena_create(NGX_HTTP_DSA_ARENA(size));

    if (ctx->arena == NULL) {
        goto memory;
    }

    ctx->chat = dsa_arena_calloc(ctx->arena, sizeof(dsa_chat_t));
    if (ctx->chat == NULL) {
        goto memory;
    }

    parser = dsa_json_parser_create(ctx->arena, NGX_HTTP_DSA_JSON_DEPTH);
    if (parser == NULL) {
        goto memory;
    }

    root = NULL;

    for (cl = rb->bufs; cl != NULL; cl = cl->next) {
        b = cl->buf;

        if (dsa_json_feed(parser, b->pos, b->last - b->pos, &err) != DSA_OK) {
            goto invalid;
        }
    }

    root = dsa_json_finish(parser, &err);

invalid:

    dsa_json_parser_destroy(parser);

    if (root == NULL) {

        if (dsa_arena_exceeded(ctx->arena)) {
            ngx_http_dsa_set_failure(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                     NULL, "The request body is too large: "
                                     "%s", err.text);
            return NGX_ERROR;
        }

        ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                 "Failed to deserialize the JSON body into "
                                 "the target type: %s", err.text);
        return NGX_ERROR;
    }

    limits.max_messages = NGX_HTTP_DSA_MAX_MESSAGES;
    limits.max_tools = NGX_HTTP_DSA_MAX_TOOLS;
    limits.hosted = 1;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (dsa_chat_read(ctx->chat, ctx->arena, root, &limits, &refusal)
        != DSA_OK)
    {
        ngx_http_dsa_refusal(ctx, &refusal);
        return NGX_ERROR;
    }

    /*
     * The body was as large as what is kept of it: it goes first, unless
     * someone else needs it, as "mirror" does.
     */

    if (!r->preserve_body) {
        if (rb->buf != NULL) {
            (void) ngx_pfree(r->pool, rb->buf->start);
        }

        rb->buf = NULL;
        rb->bufs = NULL;
    }

    if (!ngx_http_dsa_is_name(&ctx->chat->model)) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST, "model",
                                 "Model Not Exist");
        return NGX_ERROR;
    }

    if (ngx_http_dsa_copy(r->pool, &ctx->model, &ctx->chat->model) != NGX_OK
        || ngx_http_dsa_copy(r->pool, &ctx->conversation,
                             &ctx->chat->conversation)
           != NGX_OK)
    {
        goto memory;
    }

    ctx->account->model_len = ctx->model.len;
    ngx_memcpy(ctx->account->model, ctx->model.data, ctx->account->model_len);

    ctx->openai.stream = ctx->chat->stream;
    ctx->openai.thinking = ctx->chat->thinking;
    ctx->openai.include_usage = ctx->chat->include_usage;

    return NGX_OK;

memory:

    ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                             "Out of memory.");
    return NGX_ERROR;
}


/*
 * What an engine can be called.  $dsa_model may be put into a header, where a
 * line feed would begin another one.
 */

static ngx_uint_t
ngx_http_dsa_is_name(const dsa_str_t *name)
{
    size_t  i;

    for (i = 0; i < name->len; i++) {
        if ((u_char) name->data[i] < 0x20 || name->data[i] == 0x7f) {
            return 0;
        }
    }

    return name->len < sizeof(((dsa_link_hello_t *) 0)->model);
}


static ngx_int_t
ngx_http_dsa_copy(ngx_pool_t *pool, ngx_str_t *to, const dsa_str_t *from)
{
    if (from->len == 0) {
        ngx_str_null(to);
        return NGX_OK;
    }

    to->len = from->len;
    to->data = ngx_pnalloc(pool, from->len);

    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from->data, from->len);

    return NGX_OK;
}


static void
ngx_http_dsa_refusal(ngx_http_dsa_ctx_t *ctx, dsa_refusal_t *refusal)
{
    size_t  len;
    char   *param;

    param = NULL;
    len = ngx_strlen(refusal->param);

    if (len != 0) {
        param = ngx_pnalloc(ctx->request->pool, len + 1);

        if (param != NULL) {
            ngx_memcpy(param, refusal->param, len + 1);
        }
    }

    ngx_http_dsa_set_failure(ctx, refusal->status, param, "%s",
                             refusal->message);
}


/* What this request adds to its conversation, before the answer. */

static ngx_int_t
ngx_http_dsa_read_messages(ngx_http_dsa_ctx_t *ctx)
{
    uint32_t  i;

    for (i = 0; i < ctx->chat->n_messages; i++) {
        if (dsa_message_dump(&ctx->messages, &ctx->chat->messages[i])
            != DSA_OK)
        {
            return NGX_ERROR;
        }

        dsa_buf_add(&ctx->messages, "", 1);
    }

    return ctx->messages.failed ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_dsa_loaded(ngx_http_request_t *r, ngx_uint_t status,
    const dsa_schema_conversation_t *conversation, const char *why)
{
    dsa_err_t            err;
    dsa_json_t          *root;
    dsa_refusal_t        refusal;
    dsa_chat_limits_t    limits;
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL || ctx->account == NULL) {

        /* it was too late, its client is still being told so */

        return;
    }

    if (status != NGX_HTTP_OK) {
        ngx_http_dsa_set_failure(ctx, status, "conversation", "%s", why);
        ngx_http_dsa_fail(ctx);
        return;
    }

    ctx->version = conversation->version;

    ctx->work = dsa_arena_create(NGX_HTTP_DSA_ARENA(conversation->bytes
                                             + ctx->request->request_length));
    if (ctx->work == NULL) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "Out of memory.");
        ngx_http_dsa_fail(ctx);
        return;
    }

    root = dsa_schema_messages(conversation, ctx->work,
                               NGX_HTTP_DSA_JSON_DEPTH, &err);

    if (root == NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "conversation \"%V\" cannot be read: %s",
                      &ctx->conversation, err.text);

        ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "conversation",
                                 "The stored conversation cannot be read.");
        ngx_http_dsa_fail(ctx);
        return;
    }

    limits.max_messages = NGX_HTTP_DSA_MAX_MESSAGES;
    limits.max_tools = NGX_HTTP_DSA_MAX_TOOLS;
    limits.hosted = 1;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (dsa_chat_prepend(ctx->chat, ctx->work, root, &limits, &refusal)
        != DSA_OK)
    {
        ngx_http_dsa_refusal(ctx, &refusal);
        ngx_http_dsa_fail(ctx);
        return;
    }

    ngx_http_dsa_encode(ctx);
}


static void
ngx_http_dsa_encode(ngx_http_dsa_ctx_t *ctx)
{
    dsa_err_t                 err;
    ngx_pool_t               *pool;
    dsa_refusal_t             refusal;
    ngx_http_dsa_message_t   *message;
    ngx_http_dsa_logprobs_t  *logprobs;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (dsa_chat_check(ctx->chat, &refusal) != DSA_OK) {
        ngx_http_dsa_refusal(ctx, &refusal);
        ngx_http_dsa_fail(ctx);
        return;
    }

    if (ctx->work == NULL) {
        ctx->work = dsa_arena_create(
                        NGX_HTTP_DSA_ARENA(dsa_arena_used(ctx->arena)));
        if (ctx->work == NULL) {
            goto memory;
        }
    }

    if (dsa_encode(&ctx->prompt, ctx->work, ctx->chat, &err) != DSA_OK) {

        if (dsa_arena_exceeded(ctx->work)) {
            ngx_http_dsa_set_failure(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                     "messages", "The prompt is too long.");

        } else {
            ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST, "messages",
                                     "%s", err.text);
        }

        ngx_http_dsa_fail(ctx);
        return;
    }

    if (ngx_http_dsa_fields(ctx) != NGX_OK) {
        goto memory;
    }

    pool = ctx->request->pool;

    if (!ctx->openai.stream || ctx->conversation.len != 0) {
        message = ngx_pcalloc(pool, sizeof(ngx_http_dsa_message_t));
        if (message == NULL) {
            goto memory;
        }

        ctx->openai.message = message;
    }

    if (ctx->chat->logprobs) {
        logprobs = ngx_pcalloc(pool, sizeof(ngx_http_dsa_logprobs_t));
        if (logprobs == NULL) {
            goto memory;
        }

        ctx->openai.logprobs = logprobs;
    }

    ctx->parser = dsa_parse_create(ctx->chat->thinking,
                               ctx->chat->tool_choice != DSA_TOOL_CHOICE_NONE,
                               0, ngx_http_dsa_openai_delta, &ctx->openai);
    if (ctx->parser == NULL) {
        goto memory;
    }

    ngx_http_dsa_submit(ctx);

    return;

memory:

    ngx_http_dsa_set_failure(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                             "Out of memory.");
    ngx_http_dsa_fail(ctx);
}


/* The prompt, stop strings and queries, as fields of the submit. */

static ngx_int_t
ngx_http_dsa_fields(ngx_http_dsa_ctx_t *ctx)
{
    uint32_t               i, n;
    ngx_http_dsa_field_t  *f;

    n = sizeof(ngx_http_dsa_queries) / sizeof(ngx_http_dsa_queries[0]);

    ctx->n_fields = ctx->prompt.n + ctx->chat->n_stop + n;

    f = dsa_arena_alloc(ctx->work,
                        ctx->n_fields * sizeof(ngx_http_dsa_field_t));
    if (f == NULL) {
        return NGX_ERROR;
    }

    ctx->fields = f;

    for (i = 0; i < ctx->prompt.n; i++, f++) {
        f->type = (dsa_link_field_e) ctx->prompt.segments[i].kind;
        f->value = ctx->prompt.segments[i].text;
    }

    for (i = 0; i < ctx->chat->n_stop; i++, f++) {
        f->type = DSA_LINK_FIELD_STOP;
        f->value = ctx->chat->stop[i];
    }

    for (i = 0; i < n; i++, f++) {
        f->type = DSA_LINK_FIELD_QUERY;
        f->value = dsa_strz(ngx_http_dsa_queries[i]);
    }

    return NGX_OK;
}


void
ngx_http_dsa_resume(ngx_http_dsa_ctx_t *ctx)
{
    ngx_connection_t  *c;

    c = ctx->request->connection;

    ngx_http_set_log_request(c->log, ctx->request);

    ngx_http_dsa_submit(ctx);

    ngx_http_run_posted_requests(c);
}


/*
 * The name that an engine must have for this request: none for the API's
 * own names.  NGX_DECLINED: no engine ever had it.  NGX_AGAIN: this worker has
 * not had a session with every engine yet, and one of the others may have it;
 * a worker may start while an engine restarts.
 */

static ngx_int_t
ngx_http_dsa_known(ngx_http_dsa_ctx_t *ctx, ngx_str_t **model)
{
    ngx_str_t               *alias;
    ngx_uint_t               i, unseen;
    ngx_http_dsa_session_t  *s;

    *model = NULL;

    for (alias = ngx_http_dsa_aliases; alias->len != 0; alias++) {
        if (ctx->model.len == alias->len
            && ngx_memcmp(ctx->model.data, alias->data, alias->len) == 0)
        {
            return NGX_OK;
        }
    }

    *model = &ctx->model;

    unseen = 0;
    s = ctx->pool->sessions.elts;

    for (i = 0; i < ctx->pool->sessions.nelts; i++) {
        if (s[i].hello.magic != DSA_LINK_MAGIC) {
            unseen = 1;
            continue;
        }

        if (ngx_strlen(s[i].hello.model) == ctx->model.len
            && ngx_memcmp(s[i].hello.model, ctx->model.data, ctx->model.len)
               == 0)
        {
            return NGX_OK;
        }
    }

    return unseen ? NGX_AGAIN : NGX_DECLINED;
}


void
ngx_http_dsa_submit(ngx_http_dsa_ctx_t *ctx)
{
    uint32_t                 context;
    ngx_int_t                rc;
    ngx_str_t               *model;
    ngx_http_dsa_session_t  *s;

    if (ngx_http_dsa_pool_opening(ctx->pool)) {

        /* a worker that has just started is about to have an engine */

        ctx->queued = 1;
        ngx_queue_insert_tail(&ctx->pool->waiting, &ctx->waiting);
        return;
    }

    if (ngx_http_dsa_known(ctx, &model) == NGX_DECLINED
        && ngx_http_dsa_pool_any(ctx->pool) != NULL)
    {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST, "model",
                                 "Model Not Exist");
        ngx_http_dsa_fail(ctx);
        return;
    }

    context = ngx_http_dsa_pool_context(ctx->pool, model);

    if (context != 0 && ctx->chat->max_tokens > context) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST,
                                 ctx->chat->max_tokens_field,
                                 "Invalid %s value, the valid range of %s is "
                                 "[1, %u]", ctx->chat->max_tokens_field,
                                 ctx->chat->max_tokens_field, context);
        ngx_http_dsa_fail(ctx);
        return;
    }

    ctx->needed = ngx_max(ctx->needed, ctx->chat->max_tokens);

    for ( ;; ) {
        s = ngx_http_dsa_pool_pick(ctx->pool, ctx->tried, model, ctx->needed);

        if (s == NULL && ctx->counted != 0 && ctx->chat->max_tokens == 0
            && !ctx->fitted)
        {
            /* the default was too much: what the prompt leaves instead */

            ctx->fitted = 1;
            ctx->tried = 0;
            ctx->needed = (uint64_t) ctx->counted + 1;
            continue;
        }

        if (s == NULL) {
            ngx_http_dsa_unavailable(ctx, context);
            return;
        }

        ctx->tried |= 1ULL << s->index;

        rc = ngx_http_dsa_submit_to(ctx, s);

        if (rc == NGX_OK) {
            return;
        }

        if (rc == NGX_DECLINED) {

            /* another engine may have a larger ring */

            ctx->too_long = 1;

        } else {
            ctx->refused = 1;
        }
    }
}


static ngx_int_t
ngx_http_dsa_submit_to(ngx_http_dsa_ctx_t *ctx, ngx_http_dsa_session_t *s)
{
    size_t              len;
    uint32_t            tokens;
    dsa_chat_t         *chat;
    dsa_link_submit_t   head;

    chat = ctx->chat;

    ngx_memzero(&head, sizeof(dsa_link_submit_t));

    ctx->context = s->hello.context_length;

    if (chat->max_tokens != 0) {
        ctx->max_tokens = chat->max_tokens;
        tokens = chat->max_tokens;

    } else {
        ctx->max_tokens = chat->thinking ? NGX_HTTP_DSA_THINK_TOKENS
                                         : NGX_HTTP_DSA_CHAT_TOKENS;

        /* 0: what is left of the context, if that is less than usual */

        tokens = ((uint64_t) ctx->counted + ctx->max_tokens
                  >= s->hello.context_length)
                 ? 0 : ctx->max_tokens;
    }

    head.max_tokens = tokens;
    head.top_logprobs = chat->top_logprobs;
    head.weight = 1;
    head.temperature = isnan(chat->temperature) ? s->hello.temperature
                                                : chat->temperature;

    /* a double may be too small for a float, and 0 would be refused */

    head.top_p = isnan(chat->top_p) ? s->hello.top_p
                                    : ngx_max(chat->top_p, FLT_MIN);
    head.frequency_penalty = chat->frequency_penalty;
    head.presence_penalty = chat->presence_penalty;

    head.flags = (chat->logprobs ? DSA_LINK_LOGPROBS : 0)
                 | (chat->ignore_eos ? DSA_LINK_IGNORE_EOS : 0)
                 | (ctx->tenant.len == 0 ? DSA_LINK_PRIVATE : 0);
    head.seed = chat->has_seed ? chat->seed : ctx->seed;

    /*
     * The worker itself cancels the request at its deadline.  The engine's
     * deadline is later and serves the case that the worker is stuck.
     */

    head.deadline_ms = ngx_http_dsa_monotonic()
                       + (ngx_msec_int_t) (ctx->deadline - ngx_current_msec)
                       + NGX_HTTP_DSA_GRACE;

    ngx_memcpy(head.tenant, ctx->digest, sizeof(head.tenant));

    if (ctx->openai.fingerprint.len == 0 || !ctx->stream.headers) {
        len = ngx_min(ngx_strlen(s->hello.fingerprint), 10);

        ctx->openai.fingerprint.data = ngx_pnalloc(ctx->request->pool,
                                                   sizeof("fp_") + 10);
        if (ctx->openai.fingerprint.data == NULL) {
            return NGX_ERROR;
        }

        ctx->openai.fingerprint.len =
            ngx_sprintf(ctx->openai.fingerprint.data, "fp_%*s", len,
                        s->hello.fingerprint)
            - ctx->openai.fingerprint.data;
    }

    return ngx_http_dsa_session_submit(s, &ctx->account->call, &head,
                                       ctx->fields, ctx->n_fields);
}


/*
 * No engine is left to submit to; context is the largest one that an engine
 * of the pool has for this model.
 */

static void
ngx_http_dsa_unavailable(ngx_http_dsa_ctx_t *ctx, uint32_t context)
{
    const char  *more;

    if (ctx->counted != 0 && ctx->needed > context) {
        more = ctx->more ? "more than " : "";

        ctx->code = "context_length_exceeded";

        ngx_http_dsa_set_failure(ctx, NGX_HTTP_BAD_REQUEST, "messages",
                                 "This model's maximum context length is %u "
                                 "tokens. However, you requested %s%llu tokens "
                                 "(%s%u in the messages, %u in the "
                                 "completion). Please reduce the length of "
                                 "the messages or completion.", context, more,
                                 (unsigned long long) ctx->counted
                                 + ctx->max_tokens,
                                 more, ctx->counted, ctx->max_tokens);

    } else if (ctx->too_long && !ctx->refused) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 "messages",
                                 "The prompt of %lu bytes is longer than "
                                 "what the engine takes.",
                                 (unsigned long) ctx->prompt.bytes);

    } else if (ctx->refused) {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "All engines of pool \"%.*s\" are busy, try "
                                 "again later.", (int) ctx->pool->name.len,
                                 (char *) ctx->pool->name.data);

    } else {
        ngx_http_dsa_set_failure(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "No engine of pool \"%.*s\" is available, "
                                 "try again later.",
                                 (int) ctx->pool->name.len,
                                 (char *) ctx->pool->name.data);
    }

    ngx_http_dsa_fail(ctx);
}
