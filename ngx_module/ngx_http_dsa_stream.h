
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STREAM_H_INCLUDED_
#define _NGX_HTTP_DSA_STREAM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/buf.h"


/*
 * The output of one answer.  Text is collected in pending; sending belongs to
 * the output filters.  While the client is slow, pending grows, up to limit.
 * A stream that waits for tokens holds no buffer.
 */

typedef struct ngx_http_dsa_stream_s  ngx_http_dsa_stream_t;


struct ngx_http_dsa_stream_s {
    ngx_http_request_t       *request;
    size_t                    limit;        /* bytes of pending */

    void                    (*writable)(void *data);
    void                     *data;         /* of the producer */

    dsa_buf_t                 pending;
    dsa_buf_t                 sending;
    ngx_buf_t                 buf;          /* of sending */
    ngx_chain_t               out;
    ngx_msec_t                last_write;   /* ngx_current_msec */

    unsigned                  headers:1;    /* were sent */
    unsigned                  busy:1;       /* sending is not sent yet */
    unsigned                  last:1;       /* the end was passed on */
    unsigned                  slow:1;       /* the client was too slow */
    unsigned                  gone:1;       /* the client left, and all further
                                               text is dropped */
};


/*
 * Prepares a zeroed stream.  writable(data) is called when the client, which
 * was slow, has received all that was sent; the request may be finalized in
 * it.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_stream_init(ngx_http_dsa_stream_t *s,
    ngx_http_request_t *r, size_t limit, void (*writable)(void *data),
    void *data);

/*
 * Sends the headers of an answer of unknown length: server-sent events if
 * events is set, otherwise one JSON object.  They are flushed at once when
 * nothing is pending.  type lives as long as the request.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_stream_start(ngx_http_dsa_stream_t *s,
    const char *type, ngx_uint_t events);

/*
 * Sends what is pending.  NGX_OK: all of it was sent; NGX_AGAIN: the client
 * is slower, and writable is called later; NGX_DECLINED: the same, and more
 * than limit is pending; NGX_DONE: the end was passed on, finalize the request
 * with NGX_OK; NGX_ERROR.  With dsa_ignore_client_abort, NGX_OK is returned
 * instead of an error when the client left or is too slow, and all further text
 * is dropped.
 */
ngx_int_t ngx_http_dsa_stream_send(ngx_http_dsa_stream_t *s, ngx_uint_t last);

/* Gives an empty pending its buffer; call it before text is added. */
void ngx_http_dsa_stream_prepare(ngx_http_dsa_stream_t *s);


#endif /* _NGX_HTTP_DSA_STREAM_H_INCLUDED_ */
