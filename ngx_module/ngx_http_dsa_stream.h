
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_STREAM_H_INCLUDED_
#define _NGX_HTTP_DSA_STREAM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/json.h"

#include "ngx_http_dsa_session.h"


/*
 * A response's way out.  Text is collected in pending; sending is what the
 * filters have.  While the client is slow pending grows, up to
 * dsa_output_limit.  A stream that waits for tokens holds no buffer.
 */

typedef struct {
    dsa_buf_t                 pending;
    dsa_buf_t                 sending;
    ngx_buf_t                 buf;
    ngx_chain_t               out;
    unsigned                  headers:1;    /* sent */
    unsigned                  busy:1;
    unsigned                  last:1;
} ngx_http_dsa_stream_t;


/*
 * Headers of a chat's answer: events, or one JSON object of still unknown
 * length.  They are flushed at once when nothing is pending.  NGX_OK or
 * NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_stream_start(ngx_http_dsa_ctx_t *ctx);

/*
 * Sends what is pending.  NGX_OK: all of it left; NGX_AGAIN: the client is
 * slower, ngx_http_dsa_flush() is called when there is room; NGX_DECLINED:
 * and more than dsa_output_limit waits; NGX_DONE: the last byte was passed on,
 * finalize with NGX_OK; NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_stream_send(ngx_http_dsa_ctx_t *ctx, ngx_uint_t last);

/* Gives an empty pending its buffer, before text is added. */
void ngx_http_dsa_stream_prepare(ngx_http_dsa_stream_t *s);

/*
 * Frees buffers; a cleanup of the request's pool, since a frame of HTTP/2 that
 * is half sent needs its bytes longer than the request's own cleanup.
 */
void ngx_http_dsa_stream_cleanup(void *data);


/*
 * A whole JSON response; frees body.  The result is for
 * ngx_http_finalize_request() and for content handlers alike.
 */
ngx_int_t ngx_http_dsa_send_json(ngx_http_request_t *r, ngx_uint_t status,
    dsa_buf_t *body);

/*
 * An error in the API's shape.  param: the field at fault, or NULL.  message
 * is NUL-terminated UTF-8; it is logged in one line.  Reads a body that was
 * not read yet.  A 405 gets an Allow of param.
 */
ngx_int_t ngx_http_dsa_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *param, const char *message);

/* The same with a code of its own; NULL: that of the status. */
ngx_int_t ngx_http_dsa_send_failure(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *param, const char *message);


#endif /* _NGX_HTTP_DSA_STREAM_H_INCLUDED_ */
