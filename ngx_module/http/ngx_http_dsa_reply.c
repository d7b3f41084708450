
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json_write.h"

#include "ngx_module/api/ngx_http_dsa_apis.h"

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/core/ngx_http_dsa_ctx.h"
#include "ngx_http_dsa_header.h"
#include "ngx_http_dsa_reply.h"
#include "ngx_http_dsa_text.h"


static void ngx_http_dsa_send_cleanup(void *data);
static ngx_int_t ngx_http_dsa_send(ngx_http_request_t *r,
    const ngx_http_dsa_api_error_t *error);


ngx_int_t
ngx_http_dsa_accept_get(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "GET, HEAD",
                                       "Only GET and HEAD are accepted here.");
    }

    rc = ngx_http_discard_request_body(r);

    return rc == NGX_OK ? NGX_DECLINED : rc;
}


ngx_int_t
ngx_http_dsa_send_json(ngx_http_request_t *r, ngx_uint_t status,
    dsa_buf_t *body)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t          out;
    ngx_pool_cleanup_t  *cln;

    if (body->failed || body->len == 0) {
        dsa_buf_free(body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_calloc_buf(r->pool);
    cln = ngx_pool_cleanup_add(r->pool, sizeof(dsa_buf_t));

    if (b == NULL || cln == NULL) {
        dsa_buf_free(body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the text, which may be long, is sent from where it is */

    *(dsa_buf_t *) cln->data = *body;
    cln->handler = ngx_http_dsa_send_cleanup;

    b->pos = (u_char *) body->data;
    b->last = b->pos + body->len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    ngx_memzero(body, sizeof(dsa_buf_t));

    r->headers_out.status = status;
    r->headers_out.content_length_n = b->last - b->pos;

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    ngx_http_clear_accept_ranges(r);

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static void
ngx_http_dsa_send_cleanup(void *data)
{
    dsa_buf_free(data);
}


ngx_int_t
ngx_http_dsa_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *param, const char *message)
{
    ngx_http_dsa_api_error_t  error;

    ngx_memzero(&error, sizeof(ngx_http_dsa_api_error_t));

    error.status = status;
    error.param = param;
    error.message = message;

    return ngx_http_dsa_send(r, &error);
}


ngx_int_t
ngx_http_dsa_send_failure(ngx_http_request_t *r,
    const ngx_http_dsa_failure_t *failure)
{
    char                      seconds[NGX_INT_T_LEN + 1];
    ngx_http_dsa_api_error_t  error;

    if (failure->retry != 0) {
        (void) snprintf(seconds, sizeof(seconds), "%lu",
                        (unsigned long) failure->retry);

        if (ngx_http_dsa_add_header(r, "Retry-After", seconds) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ngx_memzero(&error, sizeof(ngx_http_dsa_api_error_t));

    error.status = failure->status;
    error.code = failure->code;
    error.param = failure->param;
    error.message = failure->text;
    error.prompt_tokens = failure->prompt_tokens;
    error.context = failure->context;

    return ngx_http_dsa_send(r, &error);
}


static ngx_int_t
ngx_http_dsa_send(ngx_http_request_t *r,
    const ngx_http_dsa_api_error_t *error)
{
    size_t                     len;
    u_char                     line[512], *p;
    dsa_buf_t                  body;
    ngx_int_t                  rc;
    ngx_uint_t                 level;
    ngx_http_dsa_api_error_t   copy;

    copy = *error;

    if (ngx_http_dsa_request_id(r, &copy.id) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /*
     * The text of a burst has no id, so that it is that of other requests.  The
     * message may quote the request, which must not inject log lines.
     */

    p = ngx_snprintf(line, sizeof(line) / 2, "a request is refused with %ui: ",
                     error->status);
    len = ngx_http_dsa_printable(p, line + sizeof(line) - 1 - p,
                                 (u_char *) error->message,
                                 ngx_strlen(error->message));
    p[len] = '\0';

    level = error->status >= NGX_HTTP_INTERNAL_SERVER_ERROR
            ? ngx_http_dsa_burst((char *) line) : NGX_LOG_INFO;

    ngx_log_error(level, r->connection->log, 0,
                  "request \"%V\" is refused with %ui: %s", &copy.id,
                  error->status, p);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (copy.status == NGX_HTTP_NOT_ALLOWED) {
        if (ngx_http_dsa_add_header(r, "Allow", copy.param) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        copy.param = NULL;
    }

    ngx_memzero(&body, sizeof(dsa_buf_t));

    ngx_http_dsa_reply_api(r)->error(&body, &copy, 0);

    return ngx_http_dsa_send_json(r, copy.status, &body);
}


ngx_int_t
ngx_http_dsa_send_unavailable(ngx_http_request_t *r, const char *what,
    const char *why)
{
    dsa_err_t  text;

    (void) dsa_error(&text, "%s are not available now: %s.", what, why);

    return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                   text.text);
}


void
ngx_http_dsa_error_text(ngx_http_request_t *r, dsa_buf_t *body,
    ngx_uint_t status, const char *message)
{
    ngx_http_dsa_api_error_t  error;

    ngx_memzero(&error, sizeof(ngx_http_dsa_api_error_t));

    error.status = status;
    error.message = message;

    if (ngx_http_dsa_request_id(r, &error.id) != NGX_OK) {
        body->failed = 1;
        return;
    }

    ngx_http_dsa_reply_api(r)->error(body, &error, 0);
}


const ngx_http_dsa_api_t *
ngx_http_dsa_reply_api(ngx_http_request_t *r)
{
    return ngx_http_dsa_apis_errors(&r->uri, ngx_http_dsa_is_anthropic(r));
}


ngx_uint_t
ngx_http_dsa_is_anthropic(ngx_http_request_t *r)
{
    ngx_uint_t  n;

    return ngx_http_dsa_header_find(&r->headers_in.headers,
                                    "anthropic-version", &n)
           != NULL;
}


ngx_int_t
ngx_http_dsa_add_header(ngx_http_request_t *r, const char *name,
    const char *value)
{
    ngx_str_t  text;

    text.data = (u_char *) value;
    text.len = ngx_strlen(value);

    return ngx_http_dsa_header_add(r, name, &text);
}
