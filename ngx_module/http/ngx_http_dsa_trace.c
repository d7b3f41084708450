
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "engine/link_request.h"

#include "ngx_http_dsa_header.h"
#include "ngx_http_dsa_trace.h"


#define NGX_HTTP_DSA_TRACE_PARENT  55       /* bytes of version 00 */


static ngx_uint_t ngx_http_dsa_trace_hex(const u_char *p, size_t len,
    ngx_uint_t zeros);


ngx_int_t
ngx_http_dsa_trace_parent(ngx_http_request_t *r, ngx_str_t *parent)
{
    u_char           *p;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    ngx_str_null(parent);

    h = ngx_http_dsa_header_find(&r->headers_in.headers, "traceparent", &n);

    if (n != 1 || h->value.len < NGX_HTTP_DSA_TRACE_PARENT) {
        return NGX_OK;
    }

    p = h->value.data;

    /*
     * version-trace-parent-flags.  A later version may append to it, which is
     * left out; version 00 must end here, and ff is forbidden.
     */

    if (!ngx_http_dsa_trace_hex(p, 2, 1) || p[2] != '-'
        || !ngx_http_dsa_trace_hex(p + 3, 32, 0) || p[35] != '-'
        || !ngx_http_dsa_trace_hex(p + 36, 16, 0) || p[52] != '-'
        || !ngx_http_dsa_trace_hex(p + 53, 2, 1)
        || ngx_strncmp(p, "ff", 2) == 0)
    {
        return NGX_OK;
    }

    if (h->value.len > NGX_HTTP_DSA_TRACE_PARENT
        && (ngx_strncmp(p, "00", 2) == 0
            || p[NGX_HTTP_DSA_TRACE_PARENT] != '-'))
    {
        return NGX_OK;
    }

    parent->data = p;
    parent->len = NGX_HTTP_DSA_TRACE_PARENT;

    return NGX_OK;
}


/* Returns 1 for lower-case hexadecimal digits; zeros: also if all are 0. */

static ngx_uint_t
ngx_http_dsa_trace_hex(const u_char *p, size_t len, ngx_uint_t zeros)
{
    size_t  i;

    for (i = 0; i < len; i++) {

        if (!(p[i] >= '0' && p[i] <= '9') && !(p[i] >= 'a' && p[i] <= 'f')) {
            return 0;
        }

        zeros |= p[i] != '0';
    }

    return zeros;
}


ngx_int_t
ngx_http_dsa_trace_client(ngx_http_request_t *r, ngx_str_t *client)
{
    u_char            c;
    size_t            i;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    ngx_str_null(client);

    h = ngx_http_dsa_header_find(&r->headers_in.headers, "x-request-id", &n);

    if (h == NULL || h->value.len == 0) {
        return NGX_OK;
    }

    client->len = ngx_min(h->value.len, DSA_LINK_MAX_TRACE);

    client->data = ngx_pnalloc(r->pool, client->len);
    if (client->data == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < client->len; i++) {
        c = h->value.data[i];

        client->data[i] = c > 0x20 && c < 0x7f && c != '"' && c != '\\' ? c
                                                                        : '?';
    }

    return NGX_OK;
}
