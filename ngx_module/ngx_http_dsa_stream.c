
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_http_dsa_module.h"


/* buffers that went out are kept for the next stream, to this number, size */
#define NGX_HTTP_DSA_SPARE        64
#define NGX_HTTP_DSA_SPARE_SIZE   8192


static ngx_int_t ngx_http_dsa_stream_sent(ngx_http_dsa_ctx_t *ctx,
    ngx_int_t rc);
static void ngx_http_dsa_stream_write_handler(ngx_http_request_t *r);
static void ngx_http_dsa_stream_recycle(dsa_buf_t *b);
static ngx_int_t ngx_http_dsa_add_header(ngx_http_request_t *r,
    const char *name, const char *value);


static dsa_buf_t   ngx_http_dsa_spare[NGX_HTTP_DSA_SPARE];
static ngx_uint_t  ngx_http_dsa_spares;


ngx_int_t
ngx_http_dsa_stream_start(ngx_http_dsa_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    c = r->connection;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;

    if (ctx->openai.stream) {
        ngx_str_set(&r->headers_out.content_type, "text/event-stream");

        if (ngx_http_dsa_add_header(r, "Cache-Control", "no-cache") != NGX_OK
            || ngx_http_dsa_add_header(r, "X-Accel-Buffering", "no") != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else {
        ngx_str_set(&r->headers_out.content_type, "application/json");
    }

    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    ngx_http_clear_accept_ranges(r);

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

#if (NGX_HTTP_V2)
    if (r->stream != NULL) {
        clcf = NULL;
    }
#endif

    if (clcf != NULL && clcf->tcp_nodelay && ngx_tcp_nodelay(c) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->stream.headers = 1;
    r->write_event_handler = ngx_http_dsa_stream_write_handler;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return NGX_ERROR;
    }

    ctx->last_write = ngx_current_msec;

    if (ctx->stream.pending.len != 0) {

        /* they go out together */

        return NGX_OK;
    }

    rc = ngx_http_send_special(r, NGX_HTTP_FLUSH);

    return ngx_http_dsa_stream_sent(ctx, rc) == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


ngx_int_t
ngx_http_dsa_stream_send(ngx_http_dsa_ctx_t *ctx, ngx_uint_t last)
{
    ngx_buf_t                *b;
    ngx_int_t                 rc;
    ngx_http_dsa_stream_t    *s;
    ngx_http_dsa_loc_conf_t  *dlcf;

    s = &ctx->stream;

    if (s->pending.failed) {
        ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                      "no memory for the answer");
        return NGX_ERROR;
    }

    if (s->last) {
        return NGX_DONE;
    }

    if (s->busy) {
        dlcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_dsa_module);

        return !last && s->pending.len > dlcf->output_limit ? NGX_DECLINED
                                                            : NGX_AGAIN;
    }

    if (s->pending.len == 0 && !last) {
        return NGX_OK;
    }

    s->sending = s->pending;
    ngx_memzero(&s->pending, sizeof(dsa_buf_t));

    b = &s->buf;
    ngx_memzero(b, sizeof(ngx_buf_t));

    if (s->sending.len != 0) {
        b->start = (u_char *) s->sending.data;
        b->pos = b->start;
        b->last = b->start + s->sending.len;
        b->end = b->last;
        b->memory = 1;
    }

    b->flush = 1;
    b->last_buf = last;
    b->last_in_chain = 1;
    b->tag = (ngx_buf_tag_t) &ngx_http_dsa_module;

    s->last = last;
    s->out.buf = b;
    s->out.next = NULL;

    ctx->last_write = ngx_current_msec;

    rc = ngx_http_output_filter(ctx->request, &s->out);

    return ngx_http_dsa_stream_sent(ctx, rc);
}


static ngx_int_t
ngx_http_dsa_stream_sent(ngx_http_dsa_ctx_t *ctx, ngx_int_t rc)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_dsa_stream_t     *s;
    ngx_http_core_loc_conf_t  *clcf;

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return NGX_ERROR;
    }

    r = ctx->request;
    c = r->connection;
    s = &ctx->stream;
    wev = c->write;

    /* a compressor is always "buffered": only the way to the socket counts */

    s->busy = ngx_buf_size(&s->buf) != 0
              || (c->buffered & (NGX_LOWLEVEL_BUFFERED|NGX_HTTP_WRITE_BUFFERED))
                 != 0;

    if (s->last) {

        /* finalizing writes the rest; sending is freed with the request */

        return NGX_DONE;
    }

    if (!s->busy) {
        ngx_http_dsa_stream_recycle(&s->sending);

        if (wev->timer_set && !wev->delayed) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


static void
ngx_http_dsa_stream_write_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_dsa_ctx_t        *ctx;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;
        ctx->reason = NGX_HTTP_DSA_CANCEL_SLOW;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (wev->delayed || !ctx->stream.busy) {
        if (ngx_handle_write_event(wev, wev->delayed ? 0 : clcf->send_lowat)
            != NGX_OK)
        {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    rc = ngx_http_output_filter(r, NULL);

    rc = ngx_http_dsa_stream_sent(ctx, rc);

    if (rc == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_dsa_flush(ctx);
    }
}


static void
ngx_http_dsa_stream_recycle(dsa_buf_t *b)
{
    if (b->data != NULL && b->size <= NGX_HTTP_DSA_SPARE_SIZE
        && ngx_http_dsa_spares < NGX_HTTP_DSA_SPARE)
    {
        ngx_http_dsa_spare[ngx_http_dsa_spares] = *b;
        ngx_http_dsa_spare[ngx_http_dsa_spares].len = 0;
        ngx_http_dsa_spares++;

        ngx_memzero(b, sizeof(dsa_buf_t));
        return;
    }

    dsa_buf_free(b);
}


void
ngx_http_dsa_stream_prepare(ngx_http_dsa_stream_t *s)
{
    if (s->pending.data == NULL && ngx_http_dsa_spares != 0) {
        s->pending = ngx_http_dsa_spare[--ngx_http_dsa_spares];
    }
}


void
ngx_http_dsa_stream_cleanup(void *data)
{
    ngx_http_dsa_stream_t *s = data;

    ngx_http_dsa_stream_recycle(&s->pending);
    ngx_http_dsa_stream_recycle(&s->sending);
}


/* A response header; name and value must outlive the request. */

static ngx_int_t
ngx_http_dsa_add_header(ngx_http_request_t *r, const char *name,
    const char *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value.data = (u_char *) value;
    h->value.len = ngx_strlen(value);

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_send_json(ngx_http_request_t *r, ngx_uint_t status,
    dsa_buf_t *body)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    ngx_chain_t  out;

    if (body->failed || body->len == 0) {
        dsa_buf_free(body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_create_temp_buf(r->pool, body->len);
    if (b == NULL) {
        dsa_buf_free(body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->last = ngx_cpymem(b->last, body->data, body->len);
    b->last_buf = 1;
    b->last_in_chain = 1;

    dsa_buf_free(body);

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


ngx_int_t
ngx_http_dsa_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *param, const char *message)
{
    return ngx_http_dsa_send_failure(r, status, NULL, param, message);
}


ngx_int_t
ngx_http_dsa_send_failure(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *param, const char *message)
{
    size_t      len;
    u_char      line[512];
    dsa_buf_t   body;
    ngx_int_t   rc;
    ngx_uint_t  level;

    level = status >= NGX_HTTP_INTERNAL_SERVER_ERROR ? NGX_LOG_ERR
                                                     : NGX_LOG_INFO;

    /* it may quote the client, who must not write lines of its own */

    len = ngx_http_dsa_printable(line, sizeof(line), (u_char *) message,
                                 ngx_strlen(message));

    ngx_log_error(level, r->connection->log, 0, "refused with %ui: %*s",
                  status, len, line);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_memzero(&body, sizeof(dsa_buf_t));

    if (status == NGX_HTTP_NOT_ALLOWED) {
        if (ngx_http_dsa_add_header(r, "Allow", param) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        param = NULL;
    }

    ngx_http_dsa_openai_failure(&body, status, code, param, message);

    return ngx_http_dsa_send_json(r, status, &body);
}
