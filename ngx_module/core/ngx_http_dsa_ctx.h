
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CTX_H_INCLUDED_
#define _NGX_HTTP_DSA_CTX_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * The module's context of an HTTP request that is a chat, with pointers to the
 * parts that nginx's handlers need.
 */

typedef struct {
    ngx_str_t                       id;     /* id of the answer */
    struct ngx_http_dsa_stream_s   *stream;
    struct ngx_http_dsa_request_s  *request;
} ngx_http_dsa_ctx_t;


/*
 * Returns the id of a request in a location of dsa_pass: for a chat the id of
 * the completion, otherwise $request_id.  It lives as long as the request.
 */
ngx_int_t ngx_http_dsa_request_id(ngx_http_request_t *r, ngx_str_t *id);


#endif /* _NGX_HTTP_DSA_CTX_H_INCLUDED_ */
