
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"
#include "context/conversation.h"
#include "redis_schema/resp.h"

#include "ngx_module/store/ngx_http_dsa_lease.h"
#include "ngx_http_dsa_conversations_answer.h"


static ngx_int_t ngx_http_dsa_conversations_make(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_changed(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_added(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_object(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_loaded(
    ngx_http_dsa_conversations_t *ctx, redisReply *reply);
static ngx_int_t ngx_http_dsa_conversations_show(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c);
static ngx_int_t ngx_http_dsa_conversations_items(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c);
static ngx_int_t ngx_http_dsa_conversations_remove(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c,
    const dsa_conversation_item_t *item);
static void ngx_http_dsa_conversations_entries(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_conversation_t *c,
    dsa_conversation_t *entries);
static void ngx_http_dsa_conversations_head(dsa_json_writer_t *w,
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_quota(
    ngx_http_dsa_conversations_t *ctx, int64_t bytes, int64_t objects);
static ngx_int_t ngx_http_dsa_conversations_unknown(
    ngx_http_dsa_conversations_t *ctx);
static ngx_int_t ngx_http_dsa_conversations_unreadable(
    ngx_http_dsa_conversations_t *ctx, const redisReply *reply);


const char  ngx_http_dsa_conversations_full[] =
    "The server's storage is full, and it stores no more conversations and "
    "items now. They can be read and deleted.";


void
ngx_http_dsa_conversations_answer(void *data)
{
    ngx_http_dsa_conversations_t *ctx = data;

    ctx->more = ngx_http_dsa_conversations_make(ctx, ctx->object.reply)
                == NGX_DECLINED;
}


/*
 * This function and those below return NGX_OK, NGX_DECLINED: ctx->cmd is to be
 * sent, or NGX_ERROR with the failure of the object.
 */

static ngx_int_t
ngx_http_dsa_conversations_make(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    int64_t              n, bytes;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (dsa_schema_over_quota(reply, &bytes, &n)) {
        return ngx_http_dsa_conversations_quota(ctx, bytes, n);
    }

    if (dsa_resp_is_error(reply, "OOM")) {
        return ngx_http_dsa_object_refuse(&ctx->object,
                                          NGX_HTTP_INSUFFICIENT_STORAGE, NULL,
                                          ngx_http_dsa_conversations_full);
    }

    if (ctx->edited || (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS
                        && r->method == NGX_HTTP_POST))
    {
        return ngx_http_dsa_conversations_changed(ctx, reply);
    }

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS
        || ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEM
        || (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        return ngx_http_dsa_conversations_loaded(ctx, reply);
    }

    if (dsa_schema_integer(reply, &n, &ctx->object.err) != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(ctx, reply);
    }

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ALL) {

        /* 0 if the id exists: the same 128 random bits were drawn twice */

        return n != 0 ? ngx_http_dsa_conversations_object(ctx)
                      : ngx_http_dsa_object_refuse(&ctx->object,
                            NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                            "The id of the conversation is in use; try "
                            "again.");
    }

    if (n == 0) {
        return ngx_http_dsa_conversations_unknown(ctx);
    }

    if (r->method == NGX_HTTP_DELETE) {
        ngx_http_dsa_object_deleted(&ctx->object, ctx->id,
                                    "conversation.deleted");
        return NGX_OK;
    }

    ctx->created = n;

    return ngx_http_dsa_conversations_object(ctx);
}


/* Items were added, or one was deleted. */

static ngx_int_t
ngx_http_dsa_conversations_changed(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    ngx_http_dsa_object_t  *o;
    dsa_schema_change_e     result;

    o = &ctx->object;

    if (dsa_schema_change(&result, reply, &o->err) != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(ctx, reply);
    }

    switch (result) {

    case DSA_SCHEMA_CHANGE_DONE:
        return ctx->edited ? ngx_http_dsa_conversations_object(ctx)
                           : ngx_http_dsa_conversations_added(ctx);

    case DSA_SCHEMA_CHANGE_GONE:
        return ngx_http_dsa_conversations_unknown(ctx);

    case DSA_SCHEMA_CHANGE_BUSY:
    case DSA_SCHEMA_CHANGE_CHANGED:
        o->failure.code = NGX_HTTP_DSA_CONVERSATION_LOCKED;

        return ngx_http_dsa_object_refuse(o, NGX_HTTP_CONFLICT, NULL,
                   "Another request is in progress for this conversation; "
                   "send this one again when that one has ended.");

    case DSA_SCHEMA_CHANGE_LARGE:
        return ngx_http_dsa_object_refuse(o, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                   "items", "The items alone are larger than the 4 MB that a "
                   "conversation may have.");

    default: /* DSA_SCHEMA_CHANGE_DAMAGED */
        (void) dsa_error(&o->err, "the conversation \"%.*s\" is damaged",
                         (int) ctx->id.len, ctx->id.data);
        return ngx_http_dsa_conversations_unreadable(ctx, NULL);
    }
}


/* The list of the items that were added. */

static ngx_int_t
ngx_http_dsa_conversations_added(ngx_http_dsa_conversations_t *ctx)
{
    uint32_t      i, n;
    dsa_str_t    *entries;
    dsa_json_t  **items;

    entries = ngx_http_dsa_conversations_split(ctx->arena, &ctx->entries, &n);
    items = dsa_arena_alloc(ctx->arena, ((size_t) n + 1) * sizeof(*items));

    if (entries == NULL || items == NULL) {
        return ngx_http_dsa_object_no_memory(&ctx->object);
    }

    for (i = 0; i < n; i++) {
        items[i] = dsa_json_parse(ctx->arena, entries[i].data, entries[i].len,
                                  DSA_CHAT_DEPTH, &ctx->object.err);
        if (items[i] == NULL) {
            return ngx_http_dsa_conversations_unreadable(ctx, NULL);
        }
    }

    ctx->page.limit = DSA_CONVERSATION_ADD;
    ctx->page.ascending = 1;
    ctx->page.after.len = 0;

    ngx_http_dsa_responses_list_write(&ctx->object.body, items, n, &ctx->page);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_conversations_object(ngx_http_dsa_conversations_t *ctx)
{
    dsa_json_writer_t  w;

    ngx_http_dsa_conversations_head(&w, ctx);
    dsa_json_object_end(&w);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_conversations_loaded(ngx_http_dsa_conversations_t *ctx,
    redisReply *reply)
{
    int                         rc;
    dsa_schema_conversation_t   c;

    rc = dsa_schema_conversation(&c, ctx->arena, reply, &ctx->object.err);

    if (rc == DSA_AGAIN) {
        return ngx_http_dsa_conversations_unknown(ctx);
    }

    if (rc != DSA_OK) {
        return ngx_http_dsa_conversations_unreadable(ctx, reply);
    }

    ctx->created = c.created;

    dsa_buf_add(&ctx->metadata, c.metadata.data, c.metadata.len);

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ONE) {
        return ngx_http_dsa_conversations_show(ctx, &c);
    }

    return ngx_http_dsa_conversations_items(ctx, &c);
}


/* version and messages are for clients of chat completions. */

static ngx_int_t
ngx_http_dsa_conversations_show(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c)
{
    dsa_json_writer_t   w;
    dsa_conversation_t  entries;

    ngx_http_dsa_conversations_entries(ctx, c, &entries);
    ngx_http_dsa_conversations_head(&w, ctx);

    dsa_json_key(&w, "version");
    dsa_json_uint(&w, c->version);
    dsa_json_key(&w, "messages");

    if (dsa_conversation_messages(&w, ctx->arena, &entries, &ctx->object.err)
        != DSA_OK)
    {
        return ngx_http_dsa_conversations_unreadable(ctx, NULL);
    }

    dsa_json_object_end(&w);

    return NGX_OK;
}


/* The list of the items, or one of them. */

static ngx_int_t
ngx_http_dsa_conversations_items(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c)
{
    uint32_t                  i, n;
    dsa_json_t              **objects;
    dsa_conversation_t        entries;
    ngx_http_dsa_object_t    *o;
    dsa_conversation_item_t  *items;

    o = &ctx->object;

    ngx_http_dsa_conversations_entries(ctx, c, &entries);

    if (dsa_conversation_items(&items, &n, ctx->arena, &entries, &o->err)
        != DSA_OK)
    {
        return ngx_http_dsa_conversations_unreadable(ctx, NULL);
    }

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS) {
        objects = dsa_arena_alloc(ctx->arena, ((size_t) n + 1)
                                              * sizeof(*objects));
        if (objects == NULL) {
            return ngx_http_dsa_object_no_memory(&ctx->object);
        }

        for (i = 0; i < n; i++) {
            objects[i] = items[i].object;
        }

        ngx_http_dsa_responses_list_write(&o->body, objects, n, &ctx->page);

        return NGX_OK;
    }

    for (i = 0; i < n && !dsa_str_eq(items[i].id, ctx->item); i++) {
        /* void */
    }

    if (i == n) {
        return ngx_http_dsa_object_refuse(o, NGX_HTTP_NOT_FOUND, NULL,
                   "There is no item with this id in the conversation.");
    }

    if (ctx->request->method == NGX_HTTP_DELETE) {
        return ngx_http_dsa_conversations_remove(ctx, c, &items[i]);
    }

    ngx_http_dsa_responses_list_item(&o->body, items[i].object, &ctx->page);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_conversations_remove(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_conversation_t *c, const dsa_conversation_item_t *item)
{
    int  rc;

    rc = dsa_conversation_without(&ctx->entries, item);

    if (rc == DSA_OK) {
        rc = dsa_schema_edit(&ctx->cmd, ctx->arena, ctx->tenant, ctx->id,
                             c->version,
                             ngx_http_dsa_redis_storage(ctx->redis)->ttl,
                             c->numbers[item->entry],
                             dsa_str(ctx->entries.data, ctx->entries.len));
    }

    if (rc != DSA_OK) {
        return ngx_http_dsa_object_no_memory(&ctx->object);
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


/* Starts the object of a conversation. */

static void
ngx_http_dsa_conversations_head(dsa_json_writer_t *w,
    ngx_http_dsa_conversations_t *ctx)
{
    dsa_json_writer(w, &ctx->object.body);
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
        ctx->object.body.failed = 1;
    }
}


static ngx_int_t
ngx_http_dsa_conversations_quota(ngx_http_dsa_conversations_t *ctx,
    int64_t bytes, int64_t objects)
{
    ngx_http_dsa_failure_t      *failure;
    const dsa_schema_storage_t  *storage;

    failure = &ctx->object.failure;
    storage = ngx_http_dsa_redis_storage(ctx->redis);

    ngx_http_dsa_failure_set(failure, NGX_HTTP_FORBIDDEN, NULL,
                             "This would exceed the storage quota: %lld of "
                             "%lld bytes and %lld of %lld objects are used, "
                             "by conversations, stored responses and answers "
                             "with tool calls. Delete conversations or "
                             "responses, or wait until some expire.",
                             (long long) bytes, (long long) storage->max_bytes,
                             (long long) objects,
                             (long long) storage->max_objects);
    failure->code = "storage_quota_exceeded";

    return NGX_ERROR;
}


/* The same answer whether no tenant or another tenant has the id. */

static ngx_int_t
ngx_http_dsa_conversations_unknown(ngx_http_dsa_conversations_t *ctx)
{
    return ngx_http_dsa_object_refuse(&ctx->object, NGX_HTTP_NOT_FOUND, NULL,
                                   "There is no conversation with this id.");
}


static ngx_int_t
ngx_http_dsa_conversations_unreadable(ngx_http_dsa_conversations_t *ctx,
    const redisReply *reply)
{
    return ngx_http_dsa_object_unreadable(&ctx->object, "Conversations",
                                          reply);
}
