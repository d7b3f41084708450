
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include <openssl/rand.h>

#include "redis_schema/conversations.h"

#include "ngx_http_dsa_access.h"
#include "ngx_http_dsa_body.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_conversations.h"
#include "ngx_http_dsa_conversations_answer.h"
#include "ngx_http_dsa_redis.h"
#include "ngx_http_dsa_reply.h"


#define NGX_HTTP_DSA_CONVERSATIONS_ARENA  (64 * 1024 * 1024)


static ngx_int_t ngx_http_dsa_conversations_path(
    ngx_http_dsa_conversations_t *ctx, const ngx_str_t *id,
    const ngx_str_t *rest);
static ngx_int_t ngx_http_dsa_conversations_check(
    ngx_http_dsa_conversations_t *ctx, const ngx_str_t *rest);
static ngx_int_t ngx_http_dsa_conversations_caller(
    ngx_http_dsa_conversations_t *ctx, ngx_http_complex_value_t *value);
static void ngx_http_dsa_conversations_cleanup(void *data);
static ngx_http_dsa_conversations_t *ngx_http_dsa_conversations_ctx(
    ngx_http_request_t *r);
static void ngx_http_dsa_conversations_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_conversations_start(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_create(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_add(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_update(
    ngx_http_dsa_conversations_t *ctx, dsa_schema_command_t *cmd);
static ngx_int_t ngx_http_dsa_conversations_send(
    ngx_http_dsa_conversations_t *ctx, const dsa_schema_command_t *cmd);
static void ngx_http_dsa_conversations_reply(void *data, redisReply *reply,
    const char *why);


ngx_uint_t
ngx_http_dsa_conversations_find(ngx_http_request_t *r, ngx_str_t *id,
    ngx_str_t *rest)
{
    u_char  *p, *last, *slash;

    static const char  name[] = "/conversations";

    p = r->uri.data + r->uri.len;
    last = p;

    /*
     * Searches backwards, because the location's prefix may contain the same
     * name.
     */

    do {
        if (p == r->uri.data) {
            return 0;
        }

        p--;

    } while ((size_t) (last - p) < sizeof(name) - 1
             || ngx_memcmp(p, name, sizeof(name) - 1) != 0
             || (p + sizeof(name) - 1 != last && p[sizeof(name) - 1] != '/'));

    p += sizeof(name) - 1;

    ngx_str_null(id);
    ngx_str_null(rest);

    if (p == last) {
        return 1;
    }

    p++;

    slash = ngx_strlchr(p, last, '/');

    id->data = p;
    id->len = (slash != NULL ? slash : last) - p;

    if (slash != NULL) {
        rest->data = slash + 1;
        rest->len = last - rest->data;
    }

    return id->len != 0 && (slash == NULL || rest->len != 0);
}


ngx_int_t
ngx_http_dsa_conversations_handler(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant, const ngx_str_t *id,
    const ngx_str_t *rest)
{
    ngx_int_t                      rc;
    ngx_pool_cleanup_t            *cln;
    ngx_http_dsa_conversations_t  *ctx;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_dsa_conversations_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_dsa_conversations_t));

    cln->handler = ngx_http_dsa_conversations_cleanup;
    ctx->request = r;

    rc = ngx_http_dsa_conversations_path(ctx, id, rest);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_dsa_conversations_caller(ctx, tenant);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_dsa_conversations_check(ctx, rest);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_read_client_request_body(r,
                                     ngx_http_dsa_conversations_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


/* NGX_DECLINED: continue with the request; otherwise the result. */

static ngx_int_t
ngx_http_dsa_conversations_path(ngx_http_dsa_conversations_t *ctx,
    const ngx_str_t *id, const ngx_str_t *rest)
{
    ngx_http_request_t  *r;

    static const char  items[] = "items";

    r = ctx->request;

    ctx->id = dsa_str(id->data, id->len);

    if (id->len == 0) {
        ctx->what = NGX_HTTP_DSA_CONVERSATIONS_ALL;

    } else if (rest->len == 0) {
        ctx->what = NGX_HTTP_DSA_CONVERSATIONS_ONE;

    } else if (rest->len < sizeof(items) - 1
               || ngx_memcmp(rest->data, items, sizeof(items) - 1) != 0
               || (rest->len != sizeof(items) - 1
                   && (rest->data[sizeof(items) - 1] != '/'
                       || rest->len == sizeof(items))))
    {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                   "There is nothing at this path; expected "
                   "/conversations/ID, /conversations/ID/items or "
                   "/conversations/ID/items/ITEM.");

    } else if (rest->len == sizeof(items) - 1) {
        ctx->what = NGX_HTTP_DSA_CONVERSATIONS_ITEMS;

    } else {
        ctx->what = NGX_HTTP_DSA_CONVERSATIONS_ITEM;
        ctx->item = dsa_str(rest->data + sizeof(items),
                            rest->len - sizeof(items));
    }

    if (r->method == NGX_HTTP_POST && !ngx_http_dsa_body_is_json(r)
        && ctx->what != NGX_HTTP_DSA_CONVERSATIONS_ITEM)
    {
        return ngx_http_dsa_body_not_json(r);
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_conversations_caller(ngx_http_dsa_conversations_t *ctx,
    ngx_http_complex_value_t *value)
{
    ngx_int_t                  rc;
    ngx_str_t                  tenant;
    const char                *why;
    ngx_http_request_t        *r;
    ngx_http_dsa_main_conf_t  *mcf;

    r = ctx->request;

    rc = ngx_http_dsa_access_tenant(r, value, &tenant, ctx->page.digest, &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, why);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (tenant.len == 0) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_FORBIDDEN, NULL,
                                       ngx_http_dsa_no_tenant);
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (mcf->redis == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_IMPLEMENTED, NULL,
                   "This server does not store conversations, because "
                   "dsa_redis is not configured.");
    }

    ctx->redis = mcf->redis;
    ctx->tenant = dsa_str(tenant.data, tenant.len);
    ctx->page.secret = mcf->secret;
    ctx->source.secret = mcf->secret;
    ctx->source.digest = ctx->page.digest;

    return NGX_DECLINED;
}


/* Checks the method, the id and the arguments. */

static ngx_int_t
ngx_http_dsa_conversations_check(ngx_http_dsa_conversations_t *ctx,
    const ngx_str_t *rest)
{
    ngx_http_request_t  *r;

    static const struct {
        ngx_uint_t   methods;
        const char  *allow;
        const char  *text;
    } methods[] = {             /* as ngx_http_dsa_conversations_what_e */
        { NGX_HTTP_POST, "POST", "A conversation is created with POST." },
        { NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_POST|NGX_HTTP_DELETE,
          "GET, HEAD, POST, DELETE", "A conversation can be read with GET, "
          "its metadata replaced with POST, and it can be deleted with "
          "DELETE." },
        { NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_POST, "GET, HEAD, POST",
          "The items of a conversation can be listed with GET, and items "
          "added with POST." },
        { NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_DELETE, "GET, HEAD, DELETE",
          "An item can be read with GET and deleted with DELETE." }
    };

    r = ctx->request;

    if (!(r->method & methods[ctx->what].methods)) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                                       methods[ctx->what].allow,
                                       methods[ctx->what].text);
    }

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ALL) {
        return NGX_DECLINED;
    }

    if (!dsa_schema_id_ok(ctx->id)) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL,
                   "Invalid conversation id, expected conv_ and 32 "
                   "hexadecimal digits.");
    }

    return ngx_http_dsa_responses_page(r, &ctx->page);
}


static void
ngx_http_dsa_conversations_cleanup(void *data)
{
    ngx_http_dsa_conversations_t  *ctx = data;

    if (ctx->call != NULL) {
        ngx_http_dsa_redis_detach(ctx->call);
    }

    dsa_buf_free(&ctx->entries);
    dsa_buf_free(&ctx->metadata);
    dsa_arena_destroy(ctx->arena);
}


/*
 * Finds the state by its cleanup handler, because the module's context of a
 * request is used by chats only.
 */

static ngx_http_dsa_conversations_t *
ngx_http_dsa_conversations_ctx(ngx_http_request_t *r)
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
    dsa_schema_command_t           cmd;
    ngx_http_dsa_conversations_t  *ctx;

    ctx = ngx_http_dsa_conversations_ctx(r);

    assert(ctx != NULL);

    ctx->arena = dsa_arena_create(NGX_HTTP_DSA_CONVERSATIONS_ARENA);

    if (ctx->arena == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    rc = ngx_http_dsa_conversations_start(ctx, &cmd);

    if (rc != NGX_DECLINED) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    rc = ngx_http_dsa_conversations_send(ctx, &cmd);

    if (ctx->call == NULL) {
        ngx_http_finalize_request(r, rc);
    }
}


/*
 * NGX_DECLINED: send cmd; otherwise the result to finalize the request with.
 */

static ngx_int_t
ngx_http_dsa_conversations_start(ngx_http_dsa_conversations_t *ctx,
    dsa_schema_command_t *cmd)
{
    int  rc;

    if (ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ALL) {
        return ngx_http_dsa_conversations_create(ctx, cmd);
    }

    ctx->source.owner = (u_char *) ctx->id.data + DSA_SCHEMA_ID_LEN
                        - NGX_HTTP_DSA_ITEM_OWNER;

    if (ctx->request->method == NGX_HTTP_POST) {
        return ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ITEMS
               ? ngx_http_dsa_conversations_add(ctx, cmd)
               : ngx_http_dsa_conversations_update(ctx, cmd);
    }

    if (ctx->request->method == NGX_HTTP_DELETE
        && ctx->what == NGX_HTTP_DSA_CONVERSATIONS_ONE)
    {
        rc = dsa_schema_delete(cmd, ctx->arena, ctx->tenant, ctx->id);

    } else {
        rc = dsa_schema_load(cmd, ctx->arena, ctx->tenant, ctx->id);
    }

    return rc == DSA_OK ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_dsa_conversations_create(ngx_http_dsa_conversations_t *ctx,
    dsa_schema_command_t *cmd)
{
    uint8_t     bytes[DSA_SCHEMA_ID_RANDOM];
    uint32_t    n;
    dsa_str_t  *entries;
    ngx_int_t   rc;

    if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
        ngx_log_error(NGX_LOG_CRIT, ctx->request->connection->log, 0,
                      "RAND_bytes() failed");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    dsa_schema_make_id((char *) ctx->new_id, bytes);

    ctx->id = dsa_str(ctx->new_id, DSA_SCHEMA_ID_LEN);
    ctx->source.owner = ctx->new_id + DSA_SCHEMA_ID_LEN
                        - NGX_HTTP_DSA_ITEM_OWNER;
    ctx->created = ngx_time();

    rc = ngx_http_dsa_conversations_read_create(ctx->request, ctx->arena,
                                                &ctx->source, &ctx->entries,
                                                &ctx->metadata);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ctx->metadata.len == 0) {
        dsa_buf_addz(&ctx->metadata, "{}");
    }

    entries = ngx_http_dsa_conversations_split(ctx->arena, &ctx->entries, &n);

    if (entries == NULL
        || ctx->metadata.failed
        || dsa_schema_create(cmd, ctx->arena, ctx->tenant, ctx->id,
                             ctx->created, ngx_http_dsa_redis_ttl(ctx->redis),
                             dsa_str(ctx->metadata.data, ctx->metadata.len),
                             entries, n)
           != DSA_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_conversations_add(ngx_http_dsa_conversations_t *ctx,
    dsa_schema_command_t *cmd)
{
    uint32_t    n;
    dsa_str_t  *entries;
    ngx_int_t   rc;

    rc = ngx_http_dsa_conversations_read_items(ctx->request, ctx->arena,
                                               &ctx->source, &ctx->entries);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    entries = ngx_http_dsa_conversations_split(ctx->arena, &ctx->entries, &n);

    if (entries == NULL
        || dsa_schema_add(cmd, ctx->arena, ctx->tenant, ctx->id,
                          ngx_http_dsa_redis_ttl(ctx->redis), entries, n)
           != DSA_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_conversations_update(ngx_http_dsa_conversations_t *ctx,
    dsa_schema_command_t *cmd)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_conversations_read_update(ctx->request, ctx->arena,
                                                &ctx->metadata);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (dsa_schema_metadata(cmd, ctx->arena, ctx->tenant, ctx->id,
                            dsa_str(ctx->metadata.data, ctx->metadata.len))
        != DSA_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_DECLINED;
}


/* Sends the command.  NGX_OK, or the result to finalize the request with. */

static ngx_int_t
ngx_http_dsa_conversations_send(ngx_http_dsa_conversations_t *ctx,
    const dsa_schema_command_t *cmd)
{
    const char  *why;

    ctx->call = ngx_http_dsa_redis_command(ctx->redis, cmd,
                                           ngx_http_dsa_conversations_reply,
                                           ctx, &why);

    return ctx->call != NULL
           ? NGX_OK
           : ngx_http_dsa_send_unavailable(ctx->request, "Conversations",
                                           why);
}


static void
ngx_http_dsa_conversations_reply(void *data, redisReply *reply,
    const char *why)
{
    ngx_int_t                      rc;
    ngx_connection_t              *c;
    ngx_http_request_t            *r;
    dsa_schema_command_t           cmd;
    ngx_http_dsa_conversations_t  *ctx = data;

    ctx->call = NULL;

    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa conversation reply: %s", why == NULL ? "ok" : why);

    if (why != NULL) {
        rc = ngx_http_dsa_send_unavailable(r, "Conversations", why);

    } else {
        rc = ngx_http_dsa_conversations_answer(ctx, reply, &cmd);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_dsa_conversations_send(ctx, &cmd);
    }

    if (ctx->call == NULL) {
        ngx_http_finalize_request(r, rc);
    }

    ngx_http_run_posted_requests(c);
}
