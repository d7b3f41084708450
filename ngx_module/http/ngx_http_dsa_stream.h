
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
 * The output of one answer.  New text is appended to pending.  The output
 * filters send the buffer sending.  While the client is slow, pending grows,
 * up to limit.  A stream that waits for tokens has no buffer.
 */

typedef struct ngx_http_dsa_stream_s  ngx_http_dsa_stream_t;


struct ngx_http_dsa_stream_s {
    ngx_http_request_t       *request;
    size_t                    limit;        /* bytes of pending */

    void                    (*writable)(void *data);
    void                    (*failed)(void *data, ngx_int_t rc);
    void                     *data;         /* argument of writable, failed */

    dsa_buf_t                 pending;
    dsa_buf_t                 sending;
    ngx_buf_t                 buf;          /* refers to the bytes of
                                               sending */
    ngx_chain_t               out;
    ngx_msec_t                last_write;   /* ngx_current_msec */

    unsigned                  headers:1;    /* the headers were sent */
    unsigned                  busy:1;       /* sending is not completely
                                               sent */
    unsigned                  last:1;       /* the end was passed on */
    unsigned                  slow:1;       /* the client was too slow */
    unsigned                  keep:1;       /* goes on without its client, as
                                               with dsa_ignore_client_abort */
    unsigned                  gone:1;       /* the client left, and all further
                                               text is dropped */
};


/*
 * Prepares a zeroed stream.  When the client was slow, writable(data) is
 * called after everything was sent.  failed(data, rc) is called when the rest
 * cannot be sent; rc is for ngx_http_finalize_request().  Both may finalize the
 * request.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_stream_init(ngx_http_dsa_stream_t *s,
    ngx_http_request_t *r, size_t limit, void (*writable)(void *data),
    void (*failed)(void *data, ngx_int_t rc), void *data);

/*
 * Sends the headers of an answer of unknown length: server-sent events if
 * events is set, otherwise one JSON object.  If no text is pending, the
 * headers are flushed at once.  type must live as long as the request.  NGX_OK
 * or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_stream_start(ngx_http_dsa_stream_t *s,
    const char *type, ngx_uint_t events);

/*
 * Sends the pending text.  NGX_OK: everything was sent; NGX_AGAIN: the client
 * is slow, and writable is called later; NGX_DECLINED: the same, and more than
 * limit is pending; NGX_DONE: the end was passed to the filters, finalize the
 * request with NGX_OK; NGX_ERROR.  With dsa_ignore_client_abort, if the client
 * left or is too slow, all further text is dropped and NGX_OK is returned in
 * place of an error.
 */
ngx_int_t ngx_http_dsa_stream_send(ngx_http_dsa_stream_t *s, ngx_uint_t last);

/* The client gets nothing more: drops the pending text. */
void ngx_http_dsa_stream_drop(ngx_http_dsa_stream_t *s);

/*
 * Allocates the buffer of pending if it has none.  Call it before text is
 * added.
 */
void ngx_http_dsa_stream_prepare(ngx_http_dsa_stream_t *s);


#endif /* _NGX_HTTP_DSA_STREAM_H_INCLUDED_ */
