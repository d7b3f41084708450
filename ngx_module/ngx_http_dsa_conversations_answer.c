
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"
#include "context/conversation.h"

#include "ngx_http_dsa_conversations_answer.h"
#include "ngx_http_dsa_lease.h"
#include "ngx_http_dsa_reply.h"


static ngx_int_t ngx_http_dsa_conversations_changed(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_added(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_object(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_loaded(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply,
    dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_show(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c);
static ngx_int_t ngx_http_dsa_conversations_items(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c,
    dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_remove(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c,
    const dsa_conversation_item_t *item, dsa_schema_command_t *cmd);
static void ngx_http_dsa_conversations_entries(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c,
    dsa_conversation_t *entries);
static void ngx_http_dsa_conversations_head(dsa_json_writer_t *w,
    dsa_buf_t *body, ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_unknown(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_conversations_unreadable(ngx_http_request_t *r,
    dsa_err_t *err);


ngx_int_t
ngx_http_dsa_conversations_answer(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply, dsa_schema_command_t *cmd)
{
    int64_t              n;
    dsa_err_t            err;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->edited || (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS
                        && r->method == NGX_HTTP_POST))
    {
        return ngx_http_dsa_conversations_changed(ctx, reply);
    }

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS
        || ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEM
        || (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        return ngx_http_dsa_conversations_loaded(ctx, reply, cmd);
    }

    if (dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(r, &err);
    }

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ALL) {

        /* 0 if the id exists: the same 128 random bits were drawn twice */

        return n != 0 ? ngx_http_dsa_conversations_object(ctx)
                      : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (n == 0) {
        return ngx_http_dsa_conversations_unknown(r);
    }

    if (r->method == NGX_HTTP_DELETE) {
        return ngx_http_dsa_send_deleted(r, ctx->id, "conversation.deleted");
    }

    ctx->created = n;

    return ngx_http_dsa_conversations_object(ctx);
}


/* Items were added, or one was deleted. */

static ngx_int_t
ngx_http_dsa_conversations_changed(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    dsa_err_t               err;
    ngx_http_request_t     *r;
    dsa_schema_change_e     result;
    ngx_http_dsa_failure_t  failure;

    r = ctx->request;

    if (dsa_schema_change(&result, reply, &err) != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(r, &err);
    }

    switch (result) {

    case DSA_SCHEMA_CHANGE_DONE:
        return ctx->edited ? ngx_http_dsa_conversations_object(ctx)
                           : ngx_http_dsa_conversations_added(ctx);

    case DSA_SCHEMA_CHANGE_GONE:
        return ngx_http_dsa_conversations_unknown(r);

    case DSA_SCHEMA_CHANGE_BUSY:
    case DSA_SCHEMA_CHANGE_CHANGED:
        ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));
        ngx_http_dsa_failure_set(&failure, NGX_HTTP_CONFLICT, NULL, "Another "
                                 "request is in progress for this "
                                 "conversation; send this one again when that "
                                 "one has ended.");
        failure.code = NGX_HTTP_DSA_CONVERSATION_LOCKED;

        return ngx_http_dsa_send_failure(r, &failure);

    case DSA_SCHEMA_CHANGE_LARGE:
        return ngx_http_dsa_send_error(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                   "items", "The items alone are larger than the 4 MB that a "
                   "conversation may have.");

    default: /* DSA_SCHEMA_CHANGE_DAMAGED */
        (void) dsa_error(&err, "the conversation \"%.*s\" is damaged",
                         (int) ctx->id.len, ctx->id.data);
        return ngx_http_dsa_conversations_unreadable(r, &err);
    }
}


/* The list of the items that were added. */

static ngx_int_t
ngx_http_dsa_conversations_added(ngx_http_dsa_conversations_t *ctx)
{
    uint32_t      i, n;
    dsa_buf_t     body;
    dsa_err_t     err;
    dsa_str_t    *entries;
    dsa_json_t  **items;

    entries = ngx_http_dsa_conversations_split(ctx->arena, &ctx->entries, &n);
    items = dsa_arena_alloc(ctx->arena, ((size_t) n + 1) * sizeof(*items));

    if (entries == NULL || items == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < n; i++) {
        items[i] = dsa_json_parse(ctx->arena, entries[i].data, entries[i].len,
                                  DSA_CHAT_DEPTH, &err);
        if (items[i] == NULL) {
            return ngx_http_dsa_conversations_unreadable(ctx->request, &err);
        }
    }

    ctx->page.limit = DSA_CONVERSATION_ADD;
    ctx->page.ascending = 1;
    ctx->page.after.len = 0;

    ngx_memzero(&body, sizeof(dsa_buf_t));
    ngx_http_dsa_responses_list_write(&body, items, n, &ctx->page);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


static ngx_int_t
ngx_http_dsa_conversations_object(ngx_http_dsa_conversations_t *ctx)
{
    dsa_buf_t          body;
    dsa_json_writer_t  w;

    ngx_http_dsa_conversations_head(&w, &body, ctx);
    dsa_json_object_end(&w);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


static ngx_int_t
ngx_http_dsa_conversations_loaded(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply, dsa_schema_command_t *cmd)
{
    int                         rc;
    dsa_err_t                   err;
    dsa_schema_conversation_t   c;

    rc = dsa_schema_conversation(&c, ctx->arena, reply, &err);

    if (rc == DSA_AGAIN) {
        return ngx_http_dsa_conversations_unknown(ctx->request);
    }

    if (rc != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(ctx->request, &err);
    }

    ctx->created = c.created;

    dsa_buf_add(&ctx->metadata, c.metadata.data, c.metadata.len);

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ONE) {
        return ngx_http_dsa_conversations_show(ctx, &c);
    }

    return ngx_http_dsa_conversations_items(ctx, &c, cmd);
}


/* version and messages are for clients of chat completions. */

static ngx_int_t
ngx_http_dsa_conversations_show(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c)
{
    dsa_buf_t           body;
    dsa_err_t           err;
    dsa_json_writer_t   w;
    dsa_conversation_t  entries;

    ngx_http_dsa_conversations_entries(ctx, c, &entries);
    ngx_http_dsa_conversations_head(&w, &body, ctx);

    dsa_json_key(&w, "version");
    dsa_json_uint(&w, c->version);
    dsa_json_key(&w, "messages");

    if (dsa_conversation_messages(&w, ctx->arena, &entries, &err) != DSA_OK) {
        dsa_buf_free(&body);
        return ngx_http_dsa_conversations_unreadable(ctx->request, &err);
    }

    dsa_json_object_end(&w);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


/* The list of the items, or one of them. */

static ngx_int_t
ngx_http_dsa_conversations_items(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c, dsa_schema_command_t *cmd)
{
    uint32_t                  i, n;
    dsa_buf_t                 body;
    dsa_err_t                 err;
    dsa_json_t              **objects;
    dsa_conversation_t        entries;
    dsa_conversation_item_t  *items;

    ngx_http_dsa_conversations_entries(ctx, c, &entries);

    if (dsa_conversation_items(&items, &n, ctx->arena, &entries, &err)
        != DSA_OK)
    {
        return ngx_http_dsa_conversations_unreadable(ctx->request, &err);
    }

    ngx_memzero(&body, sizeof(dsa_buf_t));

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS) {
        objects = dsa_arena_alloc(ctx->arena, ((size_t) n + 1)
                                              * sizeof(*objects));
        if (objects == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        for (i = 0; i < n; i++) {
            objects[i] = items[i].object;
        }

        ngx_http_dsa_responses_list_write(&body, objects, n, &ctx->page);

        return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
    }

    for (i = 0; i < n && !dsa_str_eq(items[i].id, ctx->item); i++) {
        /* void */
    }

    if (i == n) {
        return ngx_http_dsa_send_error(ctx->request, NGX_HTTP_NOT_FOUND, NULL,
                   "There is no item with this id in the conversation.");
    }

    if (ctx->request->method == NGX_HTTP_DELETE) {
        return ngx_http_dsa_conversations_remove(ctx, c, &items[i], cmd);
    }

    ngx_http_dsa_responses_list_item(&body, items[i].object, &ctx->page);

    return ngx_http_dsa_send_json(ctx->request, NGX_HTTP_OK, &body);
}


static ngx_int_t
ngx_http_dsa_conversations_remove(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c, const dsa_conversation_item_t *item,
    dsa_schema_command_t *cmd)
{
    int  rc;

    rc = dsa_conversation_without(&ctx->entries, item);

    if (rc == DSA_OK) {
        rc = dsa_schema_edit(cmd, ctx->arena, ctx->tenant, ctx->id,
                             c->version, ngx_http_dsa_redis_ttl(ctx->redis),
                             c->numbers[item->entry],
                             dsa_str(ctx->entries.data, ctx->entries.len));
    }

    if (rc != DSA_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->edited = 1;

    return NGX_DECLINED;
}


static void
ngx_http_dsa_conversations_entries(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c, dsa_conversation_t *entries)
{
    entries->owner = dsa_str(ctx->source.owner, NGX_HTTP_DSA_ITEM_OWNER);
    entries->entries = c->messages;
    entries->numbers = c->numbers;
    entries->n = c->n_messages;
}


/* Starts the object of a conversation in an empty body. */

static void
ngx_http_dsa_conversations_head(dsa_json_writer_t *w, dsa_buf_t *body,
    ngx_http_dsa_conversations_t *ctx)
{
    ngx_memzero(body, sizeof(dsa_buf_t));

    dsa_json_writer(w, body);
    dsa_json_object(w);
    dsa_json_key(w, "id");
    dsa_json_string(w, ctx->id);
    dsa_json_key(w, "object");
    dsa_json_stringz(w, "conversation");
    dsa_json_key(w, "created_at");
    dsa_json_uint(w, ctx->created);
    dsa_json_key(w, "metadata");

    dsa_json_raw(w, ctx->metadata.len != 0
                    ? dsa_str(ctx->metadata.data, ctx->metadata.len)
                    : dsa_strz("{}"));

    if (ctx->metadata.failed) {
        body->failed = 1;
    }
}


/* The same answer whether no tenant or another tenant has the id. */

static ngx_int_t
ngx_http_dsa_conversations_unknown(ngx_http_request_t *r)
{
    return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                                   "There is no conversation with this id.");
}


static ngx_int_t
ngx_http_dsa_conversations_unreadable(ngx_http_request_t *r, dsa_err_t *err)
{
    return ngx_http_dsa_send_unreadable(r, err,
               "Conversations are not available now: Redis refused the "
               "command.");
}
