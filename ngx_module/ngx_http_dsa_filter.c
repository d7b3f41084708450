
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_module.h"


/*
 * What nginx itself refuses in a location of dsa_pass (a body over
 * client_max_body_size, a malformed chunk, limit_req, deny) gets the API's
 * JSON in place of nginx's HTML page.
 */

static ngx_int_t ngx_http_dsa_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static void ngx_http_dsa_filter_message(ngx_http_request_t *r, char *text,
    size_t size);


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_next_body_filter;


static ngx_int_t
ngx_http_dsa_header_filter(ngx_http_request_t *r)
{
    char                      text[256];
    dsa_buf_t                 body;
    ngx_str_t                *type;
    ngx_buf_t                *b;
    ngx_http_dsa_ctx_t       *ctx;
    ngx_http_dsa_loc_conf_t  *dlcf;

    static u_char  html[] = "text/html";

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    type = &r->headers_out.content_type;

    if (dlcf->pool == NULL || r != r->main
        || r->headers_out.status < NGX_HTTP_BAD_REQUEST
        || r->headers_out.content_type_len != sizeof(html) - 1
        || ngx_strncasecmp(type->data, html, sizeof(html) - 1) != 0)
    {
        return ngx_http_next_header_filter(r);
    }

    ngx_http_dsa_filter_message(r, text, sizeof(text));

    ngx_memzero(&body, sizeof(dsa_buf_t));

    ngx_http_dsa_openai_error(&body, r->headers_out.status, NULL, text);

    if (body.failed) {
        dsa_buf_free(&body);
        return NGX_ERROR;
    }

    b = ngx_create_temp_buf(r->pool, body.len);
    if (b == NULL) {
        dsa_buf_free(&body);
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, body.data, body.len);
    b->last_buf = 1;
    b->last_in_chain = 1;

    dsa_buf_free(&body);

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL) {
        ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_dsa_ctx_t));
        if (ctx == NULL) {
            return NGX_ERROR;
        }

        ngx_http_set_ctx(r, ctx, ngx_http_dsa_module);
    }

    ctx->page = b;

    r->headers_out.content_length_n = b->last - b->pos;

    if (r->headers_out.content_length != NULL) {
        r->headers_out.content_length->hash = 0;
        r->headers_out.content_length = NULL;
    }

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    return ngx_http_next_header_filter(r);
}


static ngx_int_t
ngx_http_dsa_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_chain_t         *cl, out;
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (in == NULL || ctx == NULL || ctx->page == NULL) {
        return ngx_http_next_body_filter(r, in);
    }

    for (cl = in; cl != NULL; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
        cl->buf->file_pos = cl->buf->file_last;
    }

    if (ctx->page_sent) {
        return NGX_OK;
    }

    ctx->page_sent = 1;

    out.buf = ctx->page;
    out.next = NULL;

    return ngx_http_next_body_filter(r, &out);
}


static void
ngx_http_dsa_filter_message(ngx_http_request_t *r, char *text, size_t size)
{
    ngx_http_core_loc_conf_t  *clcf;

    switch (r->headers_out.status) {

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        (void) snprintf(text, size, "The request body is longer than the "
                        "limit of %lld bytes.",
                        (long long) clcf->client_max_body_size);
        break;

    case NGX_HTTP_BAD_REQUEST:
        (void) snprintf(text, size, "The request is not valid HTTP.");
        break;

    case NGX_HTTP_UNAUTHORIZED:
        (void) snprintf(text, size, "Authentication is required.");
        break;

    case NGX_HTTP_FORBIDDEN:
        (void) snprintf(text, size, "Access is not allowed.");
        break;

    case NGX_HTTP_REQUEST_TIME_OUT:
        (void) snprintf(text, size, "The request did not come in time.");
        break;

    case NGX_HTTP_TOO_MANY_REQUESTS:
    case NGX_HTTP_SERVICE_UNAVAILABLE:
        (void) snprintf(text, size, "Too many requests, try again later.");
        break;

    default:
        (void) snprintf(text, size, "The request failed with status %u.",
                        (unsigned) r->headers_out.status);
        break;
    }
}


ngx_int_t
ngx_http_dsa_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_dsa_header_filter;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_dsa_body_filter;

    return NGX_OK;
}
