
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <inttypes.h>
#include <sys/random.h>

#include "base/json.h"
#include "context/chat.h"
#include "ngx_http_dsa_store.h"
#include "ngx_http_dsa_stream.h"


#define NGX_HTTP_DSA_CONVERSATIONS_DEPTH  32
#define NGX_HTTP_DSA_CONVERSATIONS_ARENA  (64 * 1024 * 1024)
#define NGX_HTTP_DSA_CONVERSATIONS_TOOLS  128
#define NGX_HTTP_DSA_CONVERSATIONS_READ   4096


typedef struct {
    ngx_http_request_t         *request;
    ngx_http_dsa_redis_t       *redis;
    dsa_str_t                   tenant;
    dsa_str_t                   id;         /* of a POST: the one made */
    time_t                      created;
    dsa_arena_t                *arena;
    ngx_http_dsa_redis_call_t  *call;
    const char                 *why;        /* not sent at all */
    u_char                      made[DSA_SCHEMA_ID_LEN];
    unsigned                    at_once:1;
} ngx_http_dsa_conversations_t;


static void ngx_http_dsa_conversations_cleanup(void *data);
static ngx_http_dsa_conversations_t *ngx_http_dsa_conversations_find(
    ngx_http_request_t *r);
static void ngx_http_dsa_conversations_body(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_conversations_start(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_create(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_parse(
    ngx_http_dsa_conversations_t *ctx, dsa_json_t **root);
static int ngx_http_dsa_conversations_feed(ngx_http_request_t *r,
    dsa_json_parser_t *parser, ngx_uint_t *empty, dsa_err_t *err);
static ngx_int_t ngx_http_dsa_conversations_messages(
    ngx_http_dsa_conversations_t *ctx, dsa_json_t *list,
    dsa_str_t **messages, uint32_t *n);
static void ngx_http_dsa_conversations_rename(char *text, size_t size);
static void ngx_http_dsa_conversations_reply(void *data, redisReply *reply,
    const char *why);
static ngx_int_t ngx_http_dsa_conversations_answer(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_show(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_unknown(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_conversations_unavailable(
    ngx_http_request_t *r, const char *why);
static ngx_int_t ngx_http_dsa_conversations_unreadable(ngx_http_request_t *r,
    dsa_err_t *err);


ngx_int_t
ngx_http_dsa_conversations_handler(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, ngx_str_t *tenant, ngx_str_t *id)
{
    ngx_int_t                      rc;
    ngx_pool_cleanup_t            *cln;
    ngx_http_dsa_conversations_t  *ctx;

    if (redis == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_IMPLEMENTED, NULL,
                   "This server keeps no conversations: "
                   "no dsa_redis is configured.");
    }

    if (id->len == 0) {
        if (r->method != NGX_HTTP_POST) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "POST",
                       "A conversation is made with POST.");
        }

    } else {
        if (r->method != NGX_HTTP_GET && r->method != NGX_HTTP_HEAD
            && r->method != NGX_HTTP_DELETE)
        {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                       "GET, HEAD, DELETE",
                       "A conversation can be read with GET and removed with "
                       "DELETE. Its messages are added by chat completions.");
        }

        if (!dsa_schema_id_ok(dsa_str(id->data, id->len))) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL,
                       "Invalid conversation id, expected conv_ and 32 "
                       "hexadecimal digits.");
        }
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_conversations_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_dsa_conversations_cleanup;

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_dsa_conversations_t));

    ctx->request = r;
    ctx->redis = redis;
    ctx->tenant = dsa_str(tenant->data, tenant->len);
    ctx->id = dsa_str(id->data, id->len);

    rc = ngx_http_read_client_request_body(r, ngx_http_dsa_conversations_body);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


static void
ngx_http_dsa_conversations_cleanup(void *data)
{
    ngx_http_dsa_conversations_t  *ctx = data;

    if (ctx->call != NULL) {
        ngx_http_dsa_redis_detach(ctx->call);
    }

    dsa_arena_destroy(ctx->arena);
}


/* The module's own context of a request belongs to chats. */

static ngx_http_dsa_conversations_t *
ngx_http_dsa_conversations_find(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == ngx_http_dsa_conversations_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


static void
ngx_http_dsa_conversations_body(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    dsa_schema_command_t           cmd;
    ngx_http_dsa_conversations_t  *ctx;

    ctx = ngx_http_dsa_conversations_find(r);

    if (ctx == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ctx->arena = dsa_arena_create(NGX_HTTP_DSA_CONVERSATIONS_ARENA);

    if (ctx->arena == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    rc = ngx_http_dsa_conversations_start(ctx, &cmd);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    ctx->at_once = 1;

    ctx->call = ngx_http_dsa_store_command(ctx->redis, &cmd,
                                           ngx_http_dsa_conversations_reply,
                                           ctx);
    ctx->at_once = 0;

    if (ctx->call == NULL) {
        rc = ngx_http_dsa_conversations_unavailable(r, ctx->why);
        ngx_http_finalize_request(r, rc);
    }
}


/* NGX_AGAIN: cmd is to be sent; else what to finalize the request with. */

static ngx_int_t
ngx_http_dsa_conversations_start(ngx_http_dsa_conversations_t *ctx,
    dsa_schema_command_t *cmd)
{
    int  rc;

    if (ctx->id.len == 0) {
        return ngx_http_dsa_conversations_create(ctx, cmd);
    }

    if (ctx->request->method == NGX_HTTP_DELETE) {
        rc = dsa_schema_delete(cmd, ctx->arena, ctx->tenant, ctx->id);

    } else {
        rc = dsa_schema_load(cmd, ctx->arena, ctx->tenant, ctx->id);
    }

    return rc == DSA_OK ? NGX_AGAIN : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_dsa_conversations_create(ngx_http_dsa_conversations_t *ctx,
    dsa_schema_command_t *cmd)
{
    uint8_t              bytes[DSA_SCHEMA_ID_RANDOM];
    uint32_t             n;
    ngx_int_t            rc;
    dsa_str_t           *messages;
    dsa_json_t          *root, *list;
    ngx_http_request_t  *r;

    r = ctx->request;

    rc = ngx_http_dsa_conversations_parse(ctx, &root);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    n = 0;
    messages = NULL;
    list = NULL;

    if (root != NULL) {
        if (root->type != DSA_JSON_OBJECT) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL,
                       "The body must be a JSON object or empty.");
        }

        if (dsa_json_get(root, "items") != NULL) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, "items",
                       "'items' is not supported, use 'messages' as in a "
                       "chat completion.");
        }

        list = dsa_json_get(root, "messages");
    }

    if (list != NULL && list->type != DSA_JSON_NULL) {
        rc = ngx_http_dsa_conversations_messages(ctx, list, &messages, &n);

        if (rc != NGX_AGAIN) {
            return rc;
        }
    }

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        ngx_log_error(NGX_LOG_CRIT, r->connection->log, ngx_errno,
                      "getrandom() failed");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    dsa_schema_make_id((char *) ctx->made, bytes);

    ctx->id = dsa_str(ctx->made, DSA_SCHEMA_ID_LEN);
    ctx->created = ngx_time();

    if (dsa_schema_create(cmd, ctx->arena, ctx->tenant, ctx->id, ctx->created,
                          ngx_http_dsa_redis_ttl(ctx->redis), messages, n)
        != DSA_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_AGAIN;
}


/* root is NULL for an empty body, which is as good as {}. */

static ngx_int_t
ngx_http_dsa_conversations_parse(ngx_http_dsa_conversations_t *ctx,
    dsa_json_t **root)
{
    dsa_err_t            err;
    ngx_uint_t           empty;
    dsa_json_parser_t   *parser;
    ngx_http_request_t  *r;

    r = ctx->request;
    *root = NULL;

    parser = dsa_json_parser_create(ctx->arena,
                                    NGX_HTTP_DSA_CONVERSATIONS_DEPTH);
    if (parser == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    empty = 1;
    err.text[0] = '\0';

    if (ngx_http_dsa_conversations_feed(r, parser, &empty, &err) == DSA_OK
        && !empty)
    {
        *root = dsa_json_finish(parser, &err);
    }

    dsa_json_parser_destroy(parser);

    if (*root != NULL || (empty && err.text[0] == '\0')) {
        return NGX_AGAIN;
    }

    if (dsa_arena_exceeded(ctx->arena)) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                   NULL, err.text);
    }

    return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, err.text);
}


static int
ngx_http_dsa_conversations_feed(ngx_http_request_t *r,
    dsa_json_parser_t *parser, ngx_uint_t *empty, dsa_err_t *err)
{
    off_t         pos;
    u_char        data[NGX_HTTP_DSA_CONVERSATIONS_READ];
    size_t        size;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (r->request_body == NULL) {
        return DSA_OK;
    }

    for (cl = r->request_body->bufs; cl != NULL; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_size(b) == 0) {
            continue;
        }

        *empty = 0;

        if (ngx_buf_in_memory(b)) {
            if (dsa_json_feed(parser, b->pos, b->last - b->pos, err)
                != DSA_OK)
            {
                return DSA_ERROR;
            }

            continue;
        }

        for (pos = b->file_pos; pos < b->file_last; pos += n) {
            size = ngx_min((off_t) sizeof(data), b->file_last - pos);

            n = ngx_read_file(b->file, data, size, pos);

            if (n <= 0) {
                return dsa_error(err, "The body could not be read.");
            }

            if (dsa_json_feed(parser, data, n, err) != DSA_OK) {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}


/* Checked and written as chats do it; NGX_AGAIN: well. */

static ngx_int_t
ngx_http_dsa_conversations_messages(ngx_http_dsa_conversations_t *ctx,
    dsa_json_t *list, dsa_str_t **messages, uint32_t *n)
{
    char                *copy;
    size_t               bytes;
    uint32_t             i;
    dsa_buf_t            text;
    dsa_chat_t           chat;
    dsa_refusal_t        refusal;
    dsa_chat_limits_t    limits;
    ngx_http_request_t  *r;

    r = ctx->request;

    ngx_memzero(&chat, sizeof(dsa_chat_t));
    ngx_memzero(&text, sizeof(dsa_buf_t));
    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    limits.max_messages = DSA_SCHEMA_MAX_MESSAGES;
    limits.max_tools = NGX_HTTP_DSA_CONVERSATIONS_TOOLS;
    limits.hosted = 1;

    if (dsa_chat_prepend(&chat, ctx->arena, list, &limits, &refusal) != DSA_OK)
    {
        ngx_http_dsa_conversations_rename(refusal.param,
                                          sizeof(refusal.param));
        ngx_http_dsa_conversations_rename(refusal.message,
                                          sizeof(refusal.message));
        return ngx_http_dsa_send_error(r, refusal.status,
                   refusal.param[0] != '\0' ? refusal.param : NULL,
                   refusal.message);
    }

    *messages = dsa_arena_alloc(ctx->arena, (chat.n_messages + 1)
                                            * sizeof(dsa_str_t));
    if (*messages == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    bytes = 0;

    for (i = 0; i < chat.n_messages; i++) {
        text.len = 0;

        if (dsa_message_dump(&text, &chat.messages[i]) != DSA_OK
            || text.failed)
        {
            dsa_buf_free(&text);
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        copy = dsa_arena_dup(ctx->arena, dsa_str(text.data, text.len));

        if (copy == NULL) {
            dsa_buf_free(&text);
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        (*messages)[i] = dsa_str(copy, text.len);
        bytes += text.len;
    }

    dsa_buf_free(&text);

    if (bytes > DSA_SCHEMA_MAX_BYTES) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                   "messages", "The messages are larger than the 4 MB that a "
                   "conversation may have.");
    }

    *n = chat.n_messages;

    return NGX_AGAIN;
}


/*
 * A stored list is named after the request's field "conversation" in
 * refusals; here it stands in "messages".
 */

static void
ngx_http_dsa_conversations_rename(char *text, size_t size)
{
    size_t  len;

    static const char  from[] = "conversation";
    static const char  to[] = "messages";

    len = ngx_strlen(text);

    if (len >= sizeof(from) - 1 && len < size
        && ngx_memcmp(text, from, sizeof(from) - 1) == 0)
    {
        ngx_memcpy(text, to, sizeof(to) - 1);
        ngx_memmove(text + sizeof(to) - 1, text + sizeof(from) - 1,
                    len + 1 - (sizeof(from) - 1));
    }
}


static void
ngx_http_dsa_conversations_reply(void *data, redisReply *reply,
    const char *why)
{
    ngx_int_t                      rc;
    ngx_connection_t              *c;
    ngx_http_request_t            *r;
    ngx_http_dsa_conversations_t  *ctx = data;

    if (ctx->at_once) {

        /* who sends it sees that it was not sent, and ends the request */

        ctx->why = why;
        return;
    }

    ctx->call = NULL;

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (why != NULL) {
        rc = ngx_http_dsa_conversations_unavailable(r, why);

    } else {
        rc = ngx_http_dsa_conversations_answer(ctx, reply);
    }

    ngx_http_finalize_request(r, rc);

    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_dsa_conversations_answer(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    int64_t              n;
    dsa_err_t            err;
    dsa_buf_t            body;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (r->method == NGX_HTTP_GET || r->method == NGX_HTTP_HEAD) {
        return ngx_http_dsa_conversations_show(ctx, reply);
    }

    if (dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(r, &err);
    }

    ngx_memzero(&body, sizeof(dsa_buf_t));

    if (r->method == NGX_HTTP_DELETE) {

        if (n == 0) {
            return ngx_http_dsa_conversations_unknown(r);
        }

        dsa_buf_printf(&body, "{\"id\":\"%.*s\","
                       "\"object\":\"conversation.deleted\",\"deleted\":true}",
                       (int) ctx->id.len, ctx->id.data);

        return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &body);
    }

    if (n == 0) {

        /* 128 random bits were given out twice */

        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    dsa_buf_printf(&body, "{\"id\":\"%.*s\",\"object\":\"conversation\","
                   "\"created_at\":%" PRId64 "}",
                   (int) ctx->id.len, ctx->id.data, (int64_t) ctx->created);

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &body);
}


static ngx_int_t
ngx_http_dsa_conversations_show(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    int                         rc;
    uint32_t                    i;
    dsa_buf_t                   body;
    dsa_err_t                   err;
    ngx_http_request_t         *r;
    dsa_schema_conversation_t   c;

    r = ctx->request;

    rc = dsa_schema_conversation(&c, ctx->arena, reply, &err);

    if (rc == DSA_AGAIN) {
        return ngx_http_dsa_conversations_unknown(r);
    }

    if (rc != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(r, &err);
    }

    ngx_memzero(&body, sizeof(dsa_buf_t));

    dsa_buf_printf(&body, "{\"id\":\"%.*s\",\"object\":\"conversation\","
                   "\"created_at\":%" PRId64 ",\"version\":%" PRId64
                   ",\"messages\":[",
                   (int) ctx->id.len, ctx->id.data, c.created, c.version);

    for (i = 0; i < c.n_messages; i++) {
        if (i != 0) {
            dsa_buf_add(&body, ",", 1);
        }

        dsa_buf_add(&body, c.messages[i].data, c.messages[i].len);
    }

    dsa_buf_addz(&body, "]}");

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &body);
}


/* The same whether it is nobody's or somebody else's. */

static ngx_int_t
ngx_http_dsa_conversations_unknown(ngx_http_request_t *r)
{
    return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                                   "There is no conversation with this id.");
}


static ngx_int_t
ngx_http_dsa_conversations_unavailable(ngx_http_request_t *r, const char *why)
{
    dsa_err_t  text;

    (void) dsa_error(&text, "Conversations are not available now: %s.", why);

    return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                   text.text);
}


static ngx_int_t
ngx_http_dsa_conversations_unreadable(ngx_http_request_t *r, dsa_err_t *err)
{
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "%s", err->text);

    return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
               "Conversations are not available now: Redis refused the "
               "command.");
}
