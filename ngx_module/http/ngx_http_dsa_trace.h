
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_TRACE_H_INCLUDED_
#define _NGX_HTTP_DSA_TRACE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * By what names a client finds its request in the logs.  Clients choose them,
 * so they are never used as the id of a request, and only what cannot harm a
 * log is accepted: no text, label or key depends on them.
 *
 * parent: the header traceparent, if it is one of W3C Trace Context (section
 * 3.2) and the only one; otherwise it is empty.  client: the header
 * X-Request-ID, cut to DSA_LINK_MAX_TRACE bytes; each byte that is not a
 * graphic character of ASCII, or is a quote or a backslash, is a "?".
 *
 * The values live as long as the request.  NGX_OK, or NGX_ERROR: out of memory.
 */
typedef ngx_int_t (*ngx_http_dsa_trace_pt)(ngx_http_request_t *r,
    ngx_str_t *value);

ngx_int_t ngx_http_dsa_trace_parent(ngx_http_request_t *r, ngx_str_t *parent);
ngx_int_t ngx_http_dsa_trace_client(ngx_http_request_t *r, ngx_str_t *client);


#endif /* _NGX_HTTP_DSA_TRACE_H_INCLUDED_ */
