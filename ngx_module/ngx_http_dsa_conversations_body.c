
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"
#include "context/conversation.h"
#include "redis_schema/schema.h"

#include "api/ngx_http_dsa_seal.h"

#include "ngx_http_dsa_conversations_body.h"
#include "ngx_http_dsa_reply.h"


#define NGX_HTTP_DSA_CONVERSATIONS_DEPTH  32
#define NGX_HTTP_DSA_CONVERSATIONS_TOOLS  128
#define NGX_HTTP_DSA_CONVERSATIONS_READ   4096      /* bytes of a file */


static ngx_int_t ngx_http_dsa_conversations_object_body(
    ngx_http_request_t *r, dsa_arena_t *arena, dsa_json_t **root);
static dsa_json_t *ngx_http_dsa_conversations_member(const dsa_json_t *root,
    const char *name);
static ngx_int_t ngx_http_dsa_conversations_metadata(ngx_http_request_t *r,
    const dsa_json_t *root, dsa_buf_t *metadata);
static ngx_int_t ngx_http_dsa_conversations_items(ngx_http_request_t *r,
    dsa_arena_t *arena, const dsa_json_t *items,
    ngx_http_dsa_conversations_source_t *source, dsa_buf_t *entries);
static int ngx_http_dsa_conversations_open(void *data, dsa_arena_t *arena,
    dsa_str_t sealed, dsa_str_t *text);
static const char *ngx_http_dsa_conversations_item_id(void *data,
    const char *prefix);
static ngx_int_t ngx_http_dsa_conversations_fits(ngx_http_request_t *r,
    const dsa_buf_t *entries, const char *param);
static ngx_int_t ngx_http_dsa_conversations_parse(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_json_t **root);
static int ngx_http_dsa_conversations_feed(ngx_http_request_t *r,
    dsa_json_parser_t *parser, ngx_uint_t *empty, dsa_err_t *err);
static ngx_int_t ngx_http_dsa_conversations_list(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_json_t *list, dsa_buf_t *messages);
static void ngx_http_dsa_conversations_rename(char *text, size_t size);


ngx_int_t
ngx_http_dsa_conversations_read_create(ngx_http_request_t *r,
    dsa_arena_t *arena, ngx_http_dsa_conversations_source_t *source,
    dsa_buf_t *entries, dsa_buf_t *metadata)
{
    ngx_int_t    rc;
    dsa_json_t  *root, *messages, *items;

    rc = ngx_http_dsa_conversations_object_body(r, arena, &root);

    if (rc != NGX_DECLINED || root == NULL) {
        return rc;
    }

    rc = ngx_http_dsa_conversations_metadata(r, root, metadata);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    messages = ngx_http_dsa_conversations_member(root, "messages");
    items = ngx_http_dsa_conversations_member(root, "items");

    if (messages != NULL && items != NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, "messages",
                   "items is given as well; expected only one of them.");
    }

    if (items != NULL) {
        return ngx_http_dsa_conversations_items(r, arena, items, source,
                                                entries);
    }

    return messages != NULL
           ? ngx_http_dsa_conversations_list(r, arena, messages, entries)
           : NGX_DECLINED;
}


ngx_int_t
ngx_http_dsa_conversations_read_items(ngx_http_request_t *r,
    dsa_arena_t *arena, ngx_http_dsa_conversations_source_t *source,
    dsa_buf_t *entries)
{
    ngx_int_t    rc;
    dsa_json_t  *root;

    rc = ngx_http_dsa_conversations_object_body(r, arena, &root);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return ngx_http_dsa_conversations_items(r, arena,
                              ngx_http_dsa_conversations_member(root, "items"),
                              source, entries);
}


ngx_int_t
ngx_http_dsa_conversations_read_update(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_buf_t *metadata)
{
    ngx_int_t    rc;
    dsa_json_t  *root;

    rc = ngx_http_dsa_conversations_object_body(r, arena, &root);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (root == NULL || dsa_json_get(root, "metadata") == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, "metadata",
                   "metadata is required; expected an object with strings, or "
                   "null.");
    }

    return ngx_http_dsa_conversations_metadata(r, root, metadata);
}


dsa_str_t *
ngx_http_dsa_conversations_split(dsa_arena_t *arena, const dsa_buf_t *entries,
    uint32_t *n)
{
    dsa_str_t  *list, text;

    text = dsa_str(entries->data, entries->len);
    *n = dsa_schema_split(text, NULL);

    list = dsa_arena_alloc(arena, ((size_t) *n + 1) * sizeof(dsa_str_t));

    if (list != NULL) {
        (void) dsa_schema_split(text, list);
    }

    return list;
}


/*
 * Reads the metadata.  root is NULL for an empty body, which is the same as
 * {}.
 */

static ngx_int_t
ngx_http_dsa_conversations_object_body(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_json_t **root)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_conversations_parse(r, arena, root);

    if (rc != NGX_DECLINED || *root == NULL
        || (*root)->type == DSA_JSON_OBJECT)
    {
        return rc;
    }

    return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL,
               "The body must be a JSON object or empty.");
}


/* Returns NULL if the member is absent or null. */

static dsa_json_t *
ngx_http_dsa_conversations_member(const dsa_json_t *root, const char *name)
{
    dsa_json_t  *v;

    v = root != NULL ? dsa_json_get(root, name) : NULL;

    return v != NULL && v->type != DSA_JSON_NULL ? v : NULL;
}


static ngx_int_t
ngx_http_dsa_conversations_metadata(ngx_http_request_t *r,
    const dsa_json_t *root, dsa_buf_t *metadata)
{
    dsa_refusal_t  refusal;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (dsa_conversation_metadata(metadata, root, &refusal) != DSA_OK) {
        return ngx_http_dsa_send_error(r, refusal.status, refusal.param,
                                       refusal.message);
    }

    return metadata->failed ? NGX_HTTP_INTERNAL_SERVER_ERROR : NGX_DECLINED;
}


static ngx_int_t
ngx_http_dsa_conversations_items(ngx_http_request_t *r, dsa_arena_t *arena,
    const dsa_json_t *items, ngx_http_dsa_conversations_source_t *source,
    dsa_buf_t *entries)
{
    dsa_refusal_t           refusal;
    dsa_responses_reader_t  reader;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));
    ngx_memzero(&reader, sizeof(dsa_responses_reader_t));

    reader.limits.max_messages = DSA_CONVERSATION_ADD;
    reader.limits.hosted = 1;
    reader.open = ngx_http_dsa_conversations_open;
    reader.data = source;

    if (dsa_conversation_read(entries, arena, items, "items", &reader,
                              ngx_http_dsa_conversations_item_id, source,
                              &refusal)
        != DSA_OK)
    {
        return ngx_http_dsa_send_error(r, refusal.status,
                   refusal.param[0] != '\0' ? refusal.param : NULL,
                   refusal.message);
    }

    return ngx_http_dsa_conversations_fits(r, entries, "items");
}


static int
ngx_http_dsa_conversations_open(void *data, dsa_arena_t *arena,
    dsa_str_t sealed, dsa_str_t *text)
{
    ngx_http_dsa_conversations_source_t *source = data;

    return ngx_http_dsa_seal_open(source->secret, source->digest, arena,
                                  sealed, text);
}


static const char *
ngx_http_dsa_conversations_item_id(void *data, const char *prefix)
{
    ngx_http_dsa_conversations_source_t *source = data;

    return ngx_http_dsa_item_id(source->id, prefix, source->owner) == NGX_OK
           ? source->id : NULL;
}


/*
 * Checks the size of the entries, of which the NUL behind each is not stored.
 */

static ngx_int_t
ngx_http_dsa_conversations_fits(ngx_http_request_t *r,
    const dsa_buf_t *entries, const char *param)
{
    uint32_t  n;

    if (entries->failed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    n = dsa_schema_split(dsa_str(entries->data, entries->len), NULL);

    if (entries->len - n > DSA_SCHEMA_MAX_BYTES) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                   param, "They are larger than the 4 MB that a conversation "
                   "may have.");
    }

    return NGX_DECLINED;
}


/* Reads the body.  NGX_DECLINED: *root is its tree, or NULL if it is empty. */

static ngx_int_t
ngx_http_dsa_conversations_parse(ngx_http_request_t *r, dsa_arena_t *arena,
    dsa_json_t **root)
{
    dsa_err_t           err;
    ngx_uint_t          empty;
    dsa_json_parser_t  *parser;

    *root = NULL;

    parser = dsa_json_parser_create(arena, NGX_HTTP_DSA_CONVERSATIONS_DEPTH);
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
        return NGX_DECLINED;
    }

    if (dsa_arena_exceeded(arena)) {
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


/* Checks the messages as in a chat, and appends each to the buffer. */

static ngx_int_t
ngx_http_dsa_conversations_list(ngx_http_request_t *r, dsa_arena_t *arena,
    dsa_json_t *list, dsa_buf_t *messages)
{
    uint32_t            i;
    dsa_chat_t          chat;
    dsa_refusal_t       refusal;
    dsa_chat_limits_t   limits;

    ngx_memzero(&chat, sizeof(dsa_chat_t));
    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    limits.max_messages = DSA_SCHEMA_MAX_MESSAGES;
    limits.max_tools = NGX_HTTP_DSA_CONVERSATIONS_TOOLS;
    limits.hosted = 1;

    if (dsa_chat_prepend(&chat, arena, list, &limits, &refusal) != DSA_OK) {
        ngx_http_dsa_conversations_rename(refusal.param,
                                          sizeof(refusal.param));
        ngx_http_dsa_conversations_rename(refusal.message,
                                          sizeof(refusal.message));
        return ngx_http_dsa_send_error(r, refusal.status,
                   refusal.param[0] != '\0' ? refusal.param : NULL,
                   refusal.message);
    }

    for (i = 0; i < chat.n_messages; i++) {
        if (dsa_message_dump(messages, &chat.messages[i]) != DSA_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        dsa_buf_add(messages, "", 1);
    }

    return ngx_http_dsa_conversations_fits(r, messages, "messages");
}


/*
 * Renames the field in the text of a refusal.  dsa_chat_read() calls a list of
 * stored messages "conversation", which is a field of a chat; here the field
 * is "messages".
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
