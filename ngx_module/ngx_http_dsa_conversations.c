
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <sys/random.h>

#include "base/json_write.h"
#include "redis_schema/schema.h"

#include "ngx_http_dsa_conversations.h"
#include "ngx_http_dsa_conversations_body.h"
#include "ngx_http_dsa_reply.h"


#define NGX_HTTP_DSA_CONVERSATIONS_ARENA  (64 * 1024 * 1024)


typedef struct {
    ngx_http_request_t         *request;
    ngx_http_dsa_redis_t       *redis;
    dsa_str_t                   tenant;
    dsa_str_t                   id;         /* of a POST: the new one */
    time_t                      created;
    dsa_arena_t                *arena;
    dsa_buf_t                   messages;   /* of a POST */
    ngx_http_dsa_redis_call_t  *call;       /* NULL: none waits */
    u_char                      new_id[DSA_SCHEMA_ID_LEN];
} ngx_http_dsa_conversations_t;


static void ngx_http_dsa_conversations_cleanup(void *data);
static ngx_http_dsa_conversations_t *ngx_http_dsa_conversations_find(
    ngx_http_request_t *r);
static void ngx_http_dsa_conversations_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_conversations_start(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_create(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static void ngx_http_dsa_conversations_reply(void *data, redisReply *reply,
    const char *why);
static ngx_int_t ngx_http_dsa_conversations_answer(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_created(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_deleted(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_show(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static void ngx_http_dsa_conversations_head(dsa_json_writer_t *w,
    dsa_buf_t *body, dsa_str_t id, time_t created);
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
                   "This server does not store conversations, because "
                   "dsa_redis is not configured.");
    }

    if (id->len == 0) {
        if (r->method != NGX_HTTP_POST) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "POST",
                       "A conversation is created with POST.");
        }

    } else {
        if (r->method != NGX_HTTP_GET && r->method != NGX_HTTP_HEAD
            && r->method != NGX_HTTP_DELETE)
        {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                       "GET, HEAD, DELETE",
                       "A conversation can be read with GET and deleted with "
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

    rc = ngx_http_read_client_request_body(r,
                                     ngx_http_dsa_conversations_body_handler);

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

    dsa_buf_free(&ctx->messages);
    dsa_arena_destroy(ctx->arena);
}


/*
 * The module's context of a request belongs to chats, so this one is found by
 * its cleanup handler.
 */

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
ngx_http_dsa_conversations_body_handler(ngx_http_request_t *r)
{
    ngx_int_t                      rc;
    const char                    *why;
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

    ctx->call = ngx_http_dsa_redis_command(ctx->redis, &cmd,
                                           ngx_http_dsa_conversations_reply,
                                           ctx, &why);

    /* the command has its own copy */

    dsa_buf_free(&ctx->messages);

    if (ctx->call == NULL) {
        rc = ngx_http_dsa_conversations_unavailable(r, why);
        ngx_http_finalize_request(r, rc);
    }
}


/* NGX_AGAIN: cmd is to be sent; else the result to finalize with. */

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
    dsa_str_t           *messages, text;
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    rc = ngx_http_dsa_conversations_read_body(r, ctx->arena, &ctx->messages);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    text = dsa_str(ctx->messages.data, ctx->messages.len);
    n = dsa_schema_split(text, NULL);

    messages = dsa_arena_alloc(ctx->arena, (n + 1) * sizeof(dsa_str_t));
    if (messages == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    (void) dsa_schema_split(text, messages);

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        ngx_log_error(NGX_LOG_CRIT, r->connection->log, ngx_errno,
                      "getrandom() failed");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    dsa_schema_make_id((char *) ctx->new_id, bytes);

    ctx->id = dsa_str(ctx->new_id, DSA_SCHEMA_ID_LEN);
    ctx->created = ngx_time();

    if (dsa_schema_create(cmd, ctx->arena, ctx->tenant, ctx->id, ctx->created,
                          ngx_http_dsa_redis_ttl(ctx->redis), messages, n)
        != DSA_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_AGAIN;
}


static void
ngx_http_dsa_conversations_reply(void *data, redisReply *reply,
    const char *why)
{
    ngx_int_t                      rc;
    ngx_connection_t              *c;
    ngx_http_request_t            *r;
    ngx_http_dsa_conversations_t  *ctx = data;

    ctx->call = NULL;

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa conversation reply: %s", why == NULL ? "ok" : why);

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
    ngx_http_request_t  *r;

    r = ctx->request;

    if (r->method == NGX_HTTP_GET || r->method == NGX_HTTP_HEAD) {
        return ngx_http_dsa_conversations_show(ctx, reply);
    }

    if (dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(r, &err);
    }

    if (r->method == NGX_HTTP_DELETE) {
        return n != 0 ? ngx_http_dsa_conversations_deleted(ctx)
                      : ngx_http_dsa_conversations_unknown(r);
    }

    /* 0 if the id exists: the same 128 random bits were drawn twice */

    return n != 0 ? ngx_http_dsa_conversations_created(ctx)
                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_dsa_conversations_created(ngx_http_dsa_conversations_t *ctx)
{
    dsa_buf_t          body;
    dsa_json_writer_t  w;

    ngx_http_dsa_conversations_head(&w, &body, ctx->id, ctx->created);
    dsa_json_object_end(&w);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


static ngx_int_t
ngx_http_dsa_conversations_deleted(ngx_http_dsa_conversations_t *ctx)
{
    dsa_buf_t          body;
    dsa_json_writer_t  w;

    ngx_memzero(&body, sizeof(dsa_buf_t));

    dsa_json_writer(&w, &body);
    dsa_json_object(&w);
    dsa_json_key(&w, "id");
    dsa_json_string(&w, ctx->id);
    dsa_json_key(&w, "object");
    dsa_json_stringz(&w, "conversation.deleted");
    dsa_json_key(&w, "deleted");
    dsa_json_bool(&w, 1);
    dsa_json_object_end(&w);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


static ngx_int_t
ngx_http_dsa_conversations_show(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    int                         rc;
    uint32_t                    i;
    dsa_buf_t                   body;
    dsa_err_t                   err;
    dsa_json_writer_t           w;
    dsa_schema_conversation_t   c;

    rc = dsa_schema_conversation(&c, ctx->arena, reply, &err);

    if (rc == DSA_AGAIN) {
        return ngx_http_dsa_conversations_unknown(ctx->request);
    }

    if (rc != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(ctx->request, &err);
    }

    ngx_http_dsa_conversations_head(&w, &body, ctx->id, c.created);

    dsa_json_key(&w, "version");
    dsa_json_uint(&w, c.version);
    dsa_json_key(&w, "messages");
    dsa_json_array(&w);

    for (i = 0; i < c.n_messages; i++) {
        dsa_json_raw(&w, c.messages[i]);
    }

    dsa_json_array_end(&w);
    dsa_json_object_end(&w);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


/* Starts the object of a conversation in an empty body. */

static void
ngx_http_dsa_conversations_head(dsa_json_writer_t *w, dsa_buf_t *body,
    dsa_str_t id, time_t created)
{
    ngx_memzero(body, sizeof(dsa_buf_t));

    dsa_json_writer(w, body);
    dsa_json_object(w);
    dsa_json_key(w, "id");
    dsa_json_string(w, id);
    dsa_json_key(w, "object");
    dsa_json_stringz(w, "conversation");
    dsa_json_key(w, "created_at");
    dsa_json_uint(w, created);
}


/* The same answer whether no tenant or another tenant has the id. */

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
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "dsa: %s", err->text);

    return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
               "Conversations are not available now: Redis refused the "
               "command.");
}
