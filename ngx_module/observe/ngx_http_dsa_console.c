
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_md5.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_console.h"

/*
 * made by console/embed: ngx_http_dsa_console_head and _tail, the page before
 * and after the name of the pool, and NGX_HTTP_DSA_CONSOLE_CSP
 */

#include <ngx_http_dsa_console_page.h>


struct ngx_http_dsa_page_s {
    ngx_str_t  text;
    ngx_str_t  etag;
};


static ngx_int_t ngx_http_dsa_console_headers(ngx_http_request_t *r,
    const ngx_http_dsa_page_t *page);


ngx_http_dsa_page_t *
ngx_http_dsa_console_create(ngx_conf_t *cf, const ngx_str_t *pool)
{
    size_t                len, extra;
    u_char               *p, digest[16];
    ngx_md5_t             md5;
    ngx_http_dsa_page_t  *page;

    extra = ngx_escape_html(NULL, pool->data, pool->len);
    len = sizeof(ngx_http_dsa_console_head) - 1 + pool->len + extra
          + sizeof(ngx_http_dsa_console_tail) - 1;

    page = ngx_palloc(cf->pool, sizeof(ngx_http_dsa_page_t));
    if (page == NULL) {
        return NULL;
    }

    page->text.len = len;
    page->text.data = ngx_pnalloc(cf->pool, len);
    if (page->text.data == NULL) {
        return NULL;
    }

    p = ngx_cpymem(page->text.data, ngx_http_dsa_console_head,
                   sizeof(ngx_http_dsa_console_head) - 1);
    p = (u_char *) ngx_escape_html(p, pool->data, pool->len);
    ngx_memcpy(p, ngx_http_dsa_console_tail,
               sizeof(ngx_http_dsa_console_tail) - 1);

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, page->text.data, len);
    ngx_md5_final(digest, &md5);

    page->etag.len = 2 * sizeof(digest) + 2;
    page->etag.data = ngx_pnalloc(cf->pool, page->etag.len);
    if (page->etag.data == NULL) {
        return NULL;
    }

    p = page->etag.data;
    *p++ = '"';
    p = ngx_hex_dump(p, digest, sizeof(digest));
    *p = '"';

    return page;
}


ngx_int_t
ngx_http_dsa_console_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_buf_t                  *b;
    ngx_chain_t                 out;
    ngx_http_dsa_loc_conf_t    *dlcf;
    const ngx_http_dsa_page_t  *page;

    rc = ngx_http_dsa_accept_get(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    page = dlcf->console;

    if (ngx_http_dsa_console_headers(r, page) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->pos = page->text.data;
    b->last = page->text.data + page->text.len;
    b->memory = 1;
    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_output_filter(r, &out);
}


/*
 * nginx's own filter compares the ETag and turns the response into a 304.
 * Caches revalidate each time (no-cache), so that a new build is there at once.
 */

static ngx_int_t
ngx_http_dsa_console_headers(ngx_http_request_t *r,
    const ngx_http_dsa_page_t *page)
{
    ngx_table_elt_t  *etag;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = page->text.len;

    ngx_str_set(&r->headers_out.content_type, "text/html; charset=utf-8");
    r->headers_out.content_type_len = sizeof("text/html") - 1;
    r->headers_out.content_type_lowcase = NULL;

    etag = ngx_list_push(&r->headers_out.headers);
    if (etag == NULL) {
        return NGX_ERROR;
    }

    etag->hash = 1;
#if (nginx_version >= 1023000)
    etag->next = NULL;
#endif
    ngx_str_set(&etag->key, "ETag");
    etag->value = page->etag;

    r->headers_out.etag = etag;

    if (ngx_http_dsa_add_header(r, "Cache-Control", "no-cache") != NGX_OK
        || ngx_http_dsa_add_header(r, "Content-Security-Policy",
                                   NGX_HTTP_DSA_CONSOLE_CSP) != NGX_OK
        || ngx_http_dsa_add_header(r, "X-Content-Type-Options",
                                   "nosniff") != NGX_OK
        || ngx_http_dsa_add_header(r, "Referrer-Policy",
                                   "no-referrer") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
