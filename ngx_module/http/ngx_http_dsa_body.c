
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_body.h"
#include "ngx_http_dsa_reply.h"


static dsa_json_t *ngx_http_dsa_body_parse(const ngx_chain_t *cl,
    dsa_arena_t *arena, dsa_err_t *err);


ngx_uint_t
ngx_http_dsa_body_is_json(ngx_http_request_t *r)
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


ngx_int_t
ngx_http_dsa_body_not_json(ngx_http_request_t *r)
{
    return ngx_http_dsa_send_error(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE, NULL,
               "The body must be JSON, and the request must have the header "
               "\"Content-Type: application/json\". Parameters and "
               "other types application/...+json are accepted as well. curl "
               "-d sends another type unless the command has -H "
               "'Content-Type: application/json'.");
}


off_t
ngx_http_dsa_body_size(ngx_http_request_t *r, ngx_http_dsa_failure_t *failure)
{
    off_t                     size;
    ngx_chain_t              *cl;
    ngx_http_request_body_t  *rb;

    rb = r->request_body;

    if (rb == NULL || rb->temp_file != NULL) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 NULL, "The request body is longer than what "
                                 "is kept in memory here.");
        return -1;
    }

    size = 0;

    for (cl = rb->bufs; cl != NULL; cl = cl->next) {
        size += ngx_buf_size(cl->buf);
    }

    return size;
}


dsa_json_t *
ngx_http_dsa_body_read(const ngx_chain_t *bufs, dsa_arena_t *arena,
    ngx_http_dsa_failure_t *failure)
{
    dsa_err_t    err;
    dsa_json_t  *root;

    root = ngx_http_dsa_body_parse(bufs, arena, &err);

    if (root != NULL) {
        return root;
    }

    if (dsa_arena_exceeded(arena)) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                 NULL, "The request body is too large: %s",
                                 err.text);

    } else {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_BAD_REQUEST, NULL,
                                 "Failed to deserialize the JSON body into "
                                 "the target type: %s", err.text);
    }

    return NULL;
}


/*
 * nginx has a buffer for each read of the socket.  Buffers that are neighbors
 * in memory are parsed together, because the parser copies short pieces.
 */

static dsa_json_t *
ngx_http_dsa_body_parse(const ngx_chain_t *cl, dsa_arena_t *arena,
    dsa_err_t *err)
{
    u_char             *pos, *last;
    dsa_json_t         *root;
    dsa_json_parser_t  *parser;

    parser = dsa_json_parser_create(arena, NGX_HTTP_DSA_JSON_DEPTH);
    if (parser == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    while (cl != NULL) {
        pos = cl->buf->pos;
        last = cl->buf->last;

        for (cl = cl->next; cl != NULL && cl->buf->pos == last; cl = cl->next) {
            last = cl->buf->last;
        }

        if (dsa_json_feed(parser, pos, last - pos, err) != DSA_OK) {
            dsa_json_parser_destroy(parser);
            return NULL;
        }
    }

    root = dsa_json_finish(parser, err);

    dsa_json_parser_destroy(parser);

    return root;
}


void
ngx_http_dsa_body_free(ngx_http_request_t *r)
{
    ngx_http_request_body_t  *rb;

    if (r->preserve_body) {
        return;
    }

    rb = r->request_body;

    if (rb->buf != NULL) {
        (void) ngx_pfree(r->pool, rb->buf->start);
    }

    rb->buf = NULL;
    rb->bufs = NULL;
}
