
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_CTX_H_INCLUDED_
#define _NGX_HTTP_DSA_CTX_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * The module's context of an HTTP request that is a chat.  It leads to the
 * parts that handlers of nginx need.
 */

typedef struct {
    ngx_str_t                       id;     /* of the answer */
    struct ngx_http_dsa_stream_s   *stream;
    struct ngx_http_dsa_request_s  *request;
} ngx_http_dsa_ctx_t;


#endif /* _NGX_HTTP_DSA_CTX_H_INCLUDED_ */
