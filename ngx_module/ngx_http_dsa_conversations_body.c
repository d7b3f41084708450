
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"
#include "context/chat.h"
#include "redis_schema/schema.h"

#include "ngx_http_dsa_conversations_body.h"
#include "ngx_http_dsa_reply.h"


#define NGX_HTTP_DSA_CONVERSATIONS_DEPTH  32
#define NGX_HTTP_DSA_CONVERSATIONS_TOOLS  128
#define NGX_HTTP_DSA_CONVERSATIONS_READ   4096      /* bytes of a file */


static ngx_int_t ngx_http_dsa_conversations_parse(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_json_t **root);
static int ngx_http_dsa_conversations_feed(ngx_http_request_t *r,
    dsa_json_parser_t *parser, ngx_uint_t *empty, dsa_err_t *err);
static ngx_int_t ngx_http_dsa_conversations_list(ngx_http_request_t *r,
    dsa_arena_t *arena, dsa_json_t *list, dsa_buf_t *messages);
static void ngx_http_dsa_conversations_rename(char *text, size_t size);


ngx_int_t
ngx_http_dsa_conversations_read_body(ngx_http_request_t *r, dsa_arena_t *arena,
    dsa_buf_t *messages)
{
    ngx_int_t    rc;
    dsa_json_t  *root, *list;

    rc = ngx_http_dsa_conversations_parse(r, arena, &root);

    if (rc != NGX_AGAIN || root == NULL) {
        return rc;
    }

    if (root->type != DSA_JSON_OBJECT) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL,
                   "The body must be a JSON object or empty.");
    }

    if (dsa_json_get(root, "items") != NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, "items",
                   "'items' is not supported, use 'messages' as in a chat "
                   "completion.");
    }

    list = dsa_json_get(root, "messages");

    if (list == NULL || list->type == DSA_JSON_NULL) {
        return NGX_AGAIN;
    }

    return ngx_http_dsa_conversations_list(r, arena, list, messages);
}


/* root is NULL for an empty body, which means the same as {}. */

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
        return NGX_AGAIN;
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


/* Checks the messages as in a chat and writes each to the buffer. */

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

    if (messages->failed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the NUL after each message is not stored */

    if (messages->len - chat.n_messages > DSA_SCHEMA_MAX_BYTES) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                   "messages", "The messages are larger than the 4 MB that a "
                   "conversation may have.");
    }

    return NGX_AGAIN;
}


/*
 * A refusal names a list of stored messages "conversation", because that is
 * the field of a chat that refers to it.  In this request it is "messages".
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
