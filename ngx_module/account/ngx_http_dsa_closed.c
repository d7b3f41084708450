
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_http_dsa_closed.h"


static ngx_uint_t ngx_http_dsa_closed_framed(ngx_http_request_t *r);
static ngx_uint_t ngx_http_dsa_closed_peek(ngx_http_request_t *r);


ngx_int_t
ngx_http_dsa_closed_watch(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler)
{
    ngx_connection_t  *c;

    c = r->connection;

    r->read_event_handler = handler;

    /*
     * With an edge-triggered method an event that was handled while the body
     * was read is not reported again, unless another event is added for the
     * same descriptor.
     */

    if (!(ngx_event_flags & NGX_USE_CLEAR_EVENT)
        || ngx_http_dsa_closed_framed(r) || c->write->active)
    {
        return NGX_OK;
    }

    return ngx_add_event(c->write, NGX_WRITE_EVENT, NGX_CLEAR_EVENT);
}


/* 1: the request is a stream in a connection of HTTP/2 or HTTP/3. */

static ngx_uint_t
ngx_http_dsa_closed_framed(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (r->stream != NULL) {
        return 1;
    }
#endif

#if (NGX_HTTP_V3)
    if (r->connection->quic != NULL) {
        return 1;
    }
#endif

    return 0;
}


ngx_uint_t
ngx_http_dsa_closed(ngx_http_request_t *r)
{
    ngx_event_t       *rev;
    ngx_connection_t  *c;

    c = r->connection;
    rev = c->read;

    if (ngx_http_dsa_closed_framed(r)) {

        /* nginx marks a stream that was reset, and one whose connection ends */

        if (!c->error && !rev->error) {
            return 0;
        }

        ngx_log_error(NGX_LOG_INFO, c->log, 0,
                      "client prematurely closed connection");

    } else if (!ngx_http_dsa_closed_peek(r)) {
        return 0;
    }

    c->error = 1;

    return 1;
}


/* Looks at a connection of HTTP/1 without reading from it. */

static ngx_uint_t
ngx_http_dsa_closed_peek(ngx_http_request_t *r)
{
    u_char             byte;
    ssize_t            n;
    ngx_err_t          err;
    ngx_event_t       *rev;
    ngx_connection_t  *c;

    c = r->connection;
    rev = c->read;
    err = 0;

#if (NGX_HAVE_EPOLLRDHUP)

    /* bytes of the next request may come before the end */

    if ((ngx_event_flags & NGX_USE_EPOLL_EVENT) && ngx_use_epoll_rdhup) {
        socklen_t  len;

        if (!rev->pending_eof) {
            return 0;
        }

        rev->eof = 1;
        len = sizeof(ngx_err_t);

        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, (void *) &err, &len)
            == -1)
        {
            err = ngx_socket_errno;
        }

        goto closed;
    }

#endif

    n = recv(c->fd, &byte, 1, MSG_PEEK);

    if (n == 0) {
        rev->eof = 1;
        goto closed;
    }

    if (n == -1) {
        err = ngx_socket_errno;

        if (err != NGX_EAGAIN) {
            rev->eof = 1;
            goto closed;
        }
    }

    /* a level-triggered event would be reported for ever */

    if ((ngx_event_flags & NGX_USE_LEVEL_EVENT) && rev->active) {
        (void) ngx_del_event(rev, NGX_READ_EVENT, 0);
    }

    return 0;

closed:

    if (err != 0) {
        rev->error = 1;
    }

    ngx_log_error(NGX_LOG_INFO, c->log, err,
                  "client prematurely closed connection");

    return 1;
}
