
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"
#include "context/conversation.h"
#include "redis_schema/schema.h"

#include "ngx_module/api/ngx_http_dsa_seal.h"

#include "ngx_http_dsa_conversations_body.h"


#define NGX_HTTP_DSA_CONVERSATIONS_DEPTH  32
#define NGX_HTTP_DSA_CONVERSATIONS_TOOLS  128
#define NGX_HTTP_DSA_CONVERSATIONS_READ   4096      /* bytes of a file */


typedef ngx_http_dsa_conversations_body_t  ngx_http_dsa_body_t;


static ngx_int_t ngx_http_dsa_conversations_object_body(
    const ngx_http_dsa_body_t *body, dsa_json_t **root);
static dsa_json_t *ngx_http_dsa_conversations_member(const dsa_json_t *root,
    const char *name);
static ngx_int_t ngx_http_dsa_conversations_metadata(
    const ngx_http_dsa_body_t *body, const dsa_json_t *root);
static ngx_int_t ngx_http_dsa_conversations_items(
    const ngx_http_dsa_body_t *body, const dsa_json_t *items);
static int ngx_http_dsa_conversations_open(void *data, dsa_arena_t *arena,
    dsa_str_t sealed, dsa_str_t *text);
static const char *ngx_http_dsa_conversations_item_id(void *data,
    const char *prefix);
static ngx_int_t ngx_http_dsa_conversations_fits(
    const ngx_http_dsa_body_t *body, const char *param);
static ngx_int_t ngx_http_dsa_conversations_parse(
    const ngx_http_dsa_body_t *body, dsa_json_t **root);
static int ngx_http_dsa_conversations_feed(const ngx_chain_t *cl,
    dsa_json_parser_t *parser, ngx_uint_t *empty, dsa_err_t *err);
static ngx_int_t ngx_http_dsa_conversations_list(
    const ngx_http_dsa_body_t *body, const dsa_json_t *list);
static ngx_int_t ngx_http_dsa_conversations_refused(
    const ngx_http_dsa_body_t *body, const dsa_refusal_t *refusal);
static void ngx_http_dsa_conversations_rename(char *text, size_t size);


ngx_int_t
ngx_http_dsa_conversations_read_create(const ngx_http_dsa_body_t *body)
{
    dsa_json_t  *root, *messages, *items;

    if (ngx_http_dsa_conversations_object_body(body, &root) != NGX_OK) {
        return NGX_ERROR;
    }

    if (root == NULL) {
        return NGX_OK;
    }

    if (ngx_http_dsa_conversations_metadata(body, root) != NGX_OK) {
        return NGX_ERROR;
    }

    messages = ngx_http_dsa_conversations_member(root, "messages");
    items = ngx_http_dsa_conversations_member(root, "items");

    if (messages != NULL && items != NULL) {
        return ngx_http_dsa_object_refuse(body->object, NGX_HTTP_BAD_REQUEST,
                   "messages", "items is given as well; expected only one of "
                   "them.");
    }

    if (items != NULL) {
        return ngx_http_dsa_conversations_items(body, items);
    }

    return messages != NULL ? ngx_http_dsa_conversations_list(body, messages)
                            : NGX_OK;
}


ngx_int_t
ngx_http_dsa_conversations_read_items(const ngx_http_dsa_body_t *body)
{
    dsa_json_t  *root;

    if (ngx_http_dsa_conversations_object_body(body, &root) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_dsa_conversations_items(body,
                             ngx_http_dsa_conversations_member(root, "items"));
}


ngx_int_t
ngx_http_dsa_conversations_read_update(const ngx_http_dsa_body_t *body)
{
    dsa_json_t  *root;

    if (ngx_http_dsa_conversations_object_body(body, &root) != NGX_OK) {
        return NGX_ERROR;
    }

    if (root == NULL || dsa_json_get(root, "metadata") == NULL) {
        return ngx_http_dsa_object_refuse(body->object, NGX_HTTP_BAD_REQUEST,
                   "metadata", "metadata is required; expected an object with "
                   "strings, or null.");
    }

    return ngx_http_dsa_conversations_metadata(body, root);
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


/* *root is NULL for an empty body, which is the same as {}. */

static ngx_int_t
ngx_http_dsa_conversations_object_body(const ngx_http_dsa_body_t *body,
    dsa_json_t **root)
{
    if (ngx_http_dsa_conversations_parse(body, root) != NGX_OK) {
        return NGX_ERROR;
    }

    if (*root == NULL || (*root)->type == DSA_JSON_OBJECT) {
        return NGX_OK;
    }

    return ngx_http_dsa_object_refuse(body->object, NGX_HTTP_BAD_REQUEST, NULL,
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
ngx_http_dsa_conversations_metadata(const ngx_http_dsa_body_t *body,
    const dsa_json_t *root)
{
    dsa_refusal_t  refusal;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));

    if (dsa_conversation_metadata(body->metadata, root, &refusal) != DSA_OK) {
        return ngx_http_dsa_conversations_refused(body, &refusal);
    }

    return body->metadata->failed
           ? ngx_http_dsa_object_no_memory(body->object) : NGX_OK;
}


static ngx_int_t
ngx_http_dsa_conversations_items(const ngx_http_dsa_body_t *body,
    const dsa_json_t *items)
{
    dsa_refusal_t           refusal;
    dsa_responses_reader_t  reader;

    ngx_memzero(&refusal, sizeof(dsa_refusal_t));
    ngx_memzero(&reader, sizeof(dsa_responses_reader_t));

    reader.limits.max_messages = DSA_CONVERSATION_ADD;
    reader.limits.hosted = 1;
    reader.open = ngx_http_dsa_conversations_open;
    reader.data = body->source;

    if (dsa_conversation_read(body->entries, body->arena, items, "items",
                              &reader, ngx_http_dsa_conversations_item_id,
                              body->source, &refusal)
        != DSA_OK)
    {
        return ngx_http_dsa_conversations_refused(body, &refusal);
    }

    return ngx_http_dsa_conversations_fits(body, "items");
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
ngx_http_dsa_conversations_fits(const ngx_http_dsa_body_t *body,
    const char *param)
{
    uint32_t    n;
    dsa_buf_t  *entries;

    entries = body->entries;

    if (entries->failed) {
        return ngx_http_dsa_object_no_memory(body->object);
    }

    n = dsa_schema_split(dsa_str(entries->data, entries->len), NULL);

    if (entries->len - n > DSA_SCHEMA_MAX_BYTES) {
        return ngx_http_dsa_object_refuse(body->object,
                   NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, param, "They are larger "
                   "than the 4 MB that a conversation may have.");
    }

    return NGX_OK;
}


/* Reads the body.  *root is its tree, or NULL if it is empty. */

static ngx_int_t
ngx_http_dsa_conversations_parse(const ngx_http_dsa_body_t *body,
    dsa_json_t **root)
{
    dsa_err_t           err;
    ngx_uint_t          empty, status;
    dsa_json_parser_t  *parser;

    *root = NULL;

    parser = dsa_json_parser_create(body->arena,
                                    NGX_HTTP_DSA_CONVERSATIONS_DEPTH);
    if (parser == NULL) {
        return ngx_http_dsa_object_no_memory(body->object);
    }

    empty = 1;
    err.text[0] = '\0';

    if (ngx_http_dsa_conversations_feed(body->bufs, parser, &empty, &err)
        == DSA_OK
        && !empty)
    {
        *root = dsa_json_finish(parser, &err);
    }

    dsa_json_parser_destroy(parser);

    if (*root != NULL || (empty && err.text[0] == '\0')) {
        return NGX_OK;
    }

    status = dsa_arena_exceeded(body->arena)
             ? NGX_HTTP_REQUEST_ENTITY_TOO_LARGE : NGX_HTTP_BAD_REQUEST;

    return ngx_http_dsa_object_refuse(body->object, status, NULL, err.text);
}


/* Waits for the disk if the body is in a file; it runs in a thread if long. */

static int
ngx_http_dsa_conversations_feed(const ngx_chain_t *cl,
    dsa_json_parser_t *parser, ngx_uint_t *empty, dsa_err_t *err)
{
    off_t       pos;
    u_char      data[NGX_HTTP_DSA_CONVERSATIONS_READ];
    size_t      size;
    ssize_t     n;
    ngx_buf_t  *b;

    for ( /* void */ ; cl != NULL; cl = cl->next) {
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

            n = pread(b->file->fd, data, size, pos);

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
ngx_http_dsa_conversations_list(const ngx_http_dsa_body_t *body,
    const dsa_json_t *list)
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

    if (dsa_chat_prepend(&chat, body->arena, list, &limits, &refusal)
        != DSA_OK)
    {
        ngx_http_dsa_conversations_rename(refusal.param,
                                          sizeof(refusal.param));
        ngx_http_dsa_conversations_rename(refusal.message,
                                          sizeof(refusal.message));
        return ngx_http_dsa_conversations_refused(body, &refusal);
    }

    for (i = 0; i < chat.n_messages; i++) {
        if (dsa_message_dump(body->entries, &chat.messages[i]) != DSA_OK) {
            return ngx_http_dsa_object_no_memory(body->object);
        }

        dsa_buf_add(body->entries, "", 1);
    }

    return ngx_http_dsa_conversations_fits(body, "messages");
}


/* The arena lives as long as the request. */

static ngx_int_t
ngx_http_dsa_conversations_refused(const ngx_http_dsa_body_t *body,
    const dsa_refusal_t *refusal)
{
    const char  *param;

    param = refusal->param[0] != '\0'
            ? dsa_arena_dup(body->arena, dsa_strz(refusal->param)) : NULL;

    return ngx_http_dsa_object_refuse(body->object, refusal->status, param,
                                      refusal->message);
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
