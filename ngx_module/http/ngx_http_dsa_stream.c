
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_ctx.h"
#include "ngx_http_dsa_reply.h"
#include "ngx_http_dsa_stream.h"


/* buffers that were sent are kept for other streams, up to this number and
 * size of each */
#define NGX_HTTP_DSA_SPARE        64
#define NGX_HTTP_DSA_SPARE_SIZE   8192


static ngx_int_t ngx_http_dsa_stream_sent(ngx_http_dsa_stream_t *s,
    ngx_int_t rc);
static ngx_int_t ngx_http_dsa_stream_abandon(ngx_http_dsa_stream_t *s);
static void ngx_http_dsa_stream_write_handler(ngx_http_request_t *r);
static void ngx_http_dsa_stream_recycle(dsa_buf_t *b);
static void ngx_http_dsa_stream_cleanup(void *data);


static dsa_buf_t   ngx_http_dsa_spare[NGX_HTTP_DSA_SPARE];
static ngx_uint_t  ngx_http_dsa_spares;


ngx_int_t
ngx_http_dsa_stream_init(ngx_http_dsa_stream_t *s, ngx_http_request_t *r,
    size_t limit, void (*writable)(void *data),
    void (*failed)(void *data, ngx_int_t rc), void *data)
{
    ngx_pool_cleanup_t  *cln;

    /*
     * The buffers are freed with the pool, not with the request, because an
     * HTTP/2 frame that is partly sent needs them for longer than the request
     * lives.
     */

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_dsa_stream_cleanup;
    cln->data = s;

    s->request = r;
    s->limit = limit;
    s->writable = writable;
    s->failed = failed;
    s->data = data;
    s->last_write = ngx_current_msec;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_stream_start(ngx_http_dsa_stream_t *s, const char *type,
    ngx_uint_t events)
{
    ngx_int_t                  rc;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = s->request;
    c = r->connection;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;

    if (events
        && (ngx_http_dsa_add_header(r, "Cache-Control", "no-cache") != NGX_OK
            || ngx_http_dsa_add_header(r, "X-Accel-Buffering", "no")
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    r->headers_out.content_type.data = (u_char *) type;
    r->headers_out.content_type.len = ngx_strlen(type);
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

    s->headers = 1;
    r->write_event_handler = ngx_http_dsa_stream_write_handler;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return ngx_http_dsa_stream_abandon(s);
    }

    s->last_write = ngx_current_msec;

    if (s->pending.len != 0) {

        /* the headers are sent together with the pending text */

        return NGX_OK;
    }

    rc = ngx_http_send_special(r, NGX_HTTP_FLUSH);

    return ngx_http_dsa_stream_sent(s, rc) == NGX_ERROR
           ? ngx_http_dsa_stream_abandon(s) : NGX_OK;
}


ngx_int_t
ngx_http_dsa_stream_send(ngx_http_dsa_stream_t *s, ngx_uint_t last)
{
    ngx_buf_t  *b;
    ngx_int_t   rc;

    if (s->pending.failed) {
        ngx_log_error(NGX_LOG_ERR, s->request->connection->log, 0,
                      "no memory for the answer");
        return NGX_ERROR;
    }

    if (s->last) {
        return NGX_DONE;
    }

    if (s->busy && (last || s->pending.len <= s->limit)) {
        return NGX_AGAIN;
    }

    if (s->busy) {
        s->slow = 1;

        if (ngx_http_dsa_stream_abandon(s) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    if (s->gone) {
        s->pending.len = 0;
        return last ? NGX_DONE : NGX_OK;
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

    s->last_write = ngx_current_msec;

    rc = ngx_http_output_filter(s->request, &s->out);

    rc = ngx_http_dsa_stream_sent(s, rc);

    if (rc != NGX_ERROR) {
        return rc;
    }

    if (ngx_http_dsa_stream_abandon(s) != NGX_OK) {
        return NGX_ERROR;
    }

    return last ? NGX_DONE : NGX_OK;
}


/*
 * Called when the client cannot receive the rest.  NGX_OK: the request goes on
 * without its client, with dsa_ignore_client_abort; NGX_ERROR: it ends.
 */

static ngx_int_t
ngx_http_dsa_stream_abandon(ngx_http_dsa_stream_t *s)
{
    ngx_connection_t         *c;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(s->request, ngx_http_dsa_module);

    if (!dlcf->ignore_client_abort && !s->keep) {
        return NGX_ERROR;
    }

    c = s->request->connection;

    ngx_log_error(NGX_LOG_INFO, c->log, 0,
                  "the client %s, and its answer goes on",
                  s->slow ? "is too slow" : "has left");

    /* nginx closes the connection at the end of the request */

    c->error = 1;
    s->gone = 1;
    s->busy = 0;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_stream_sent(ngx_http_dsa_stream_t *s, ngx_int_t rc)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return NGX_ERROR;
    }

    r = s->request;
    c = r->connection;
    wev = c->write;

    /* a compressor always has a bit in c->buffered, so only those of the
     * filters behind it are tested */

    s->busy = ngx_buf_size(&s->buf) != 0
              || (c->buffered & (NGX_LOWLEVEL_BUFFERED|NGX_HTTP_WRITE_BUFFERED))
                 != 0;

    if (s->last) {

        /* nginx writes the rest; sending is freed with the request's pool */

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
    ngx_http_dsa_stream_t     *s;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);
    s = ctx->stream;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "the client did not read its answer for send_timeout");
        s->slow = 1;

        if (ngx_http_dsa_stream_abandon(s) == NGX_OK) {
            s->writable(s->data);
            return;
        }

        c->timedout = 1;
        s->failed(s->data, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (s->gone) {
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (wev->delayed || !s->busy) {
        if (ngx_handle_write_event(wev, wev->delayed ? 0 : clcf->send_lowat)
            != NGX_OK)
        {
            s->failed(s->data, NGX_ERROR);
        }

        return;
    }

    rc = ngx_http_output_filter(r, NULL);

    rc = ngx_http_dsa_stream_sent(s, rc);

    if (rc == NGX_ERROR) {
        rc = ngx_http_dsa_stream_abandon(s);
    }

    if (rc == NGX_ERROR) {
        s->failed(s->data, NGX_ERROR);
        return;
    }

    if (rc == NGX_OK) {
        s->writable(s->data);
    }
}


void
ngx_http_dsa_stream_drop(ngx_http_dsa_stream_t *s)
{
    ngx_http_dsa_stream_recycle(&s->pending);
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


static void
ngx_http_dsa_stream_cleanup(void *data)
{
    ngx_http_dsa_stream_t *s = data;

    ngx_http_dsa_stream_recycle(&s->pending);
    ngx_http_dsa_stream_recycle(&s->sending);
}
