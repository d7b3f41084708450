
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "context/affinity.h"

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"
#include "ngx_http_dsa_prefix.h"


#define NGX_HTTP_DSA_PREFIX_BYTES  16       /* of the hash */


static ngx_uint_t ngx_http_dsa_prefix_is_read(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_prefix_text(ngx_http_request_t *r,
    ngx_str_t *text);


/*
 * The value is kept for the log as soon as the body has been read: nginx may
 * have freed the body then.
 */

ngx_int_t
ngx_http_dsa_prefix_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 text, tenant;
    ngx_uint_t                read;
    const char               *why;
    ngx_http_dsa_loc_conf_t  *dlcf;
    u_char                    seed[NGX_HTTP_DSA_DIGEST_LEN];
    uint8_t                   digest[NGX_HTTP_DSA_PREFIX_BYTES];

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    switch (ngx_http_dsa_identify(r, dlcf->tenant, &tenant, seed, &why)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        /* a host refuses the request */

        ngx_memzero(seed, sizeof(seed));
        break;

    default:
        return NGX_ERROR;
    }

    read = ngx_http_dsa_prefix_is_read(r);
    ngx_str_null(&text);

    if (read && ngx_http_dsa_prefix_text(r, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    (void) dsa_affinity_scan((char *) text.data, text.len,
                           dsa_str(seed, sizeof(seed)), digest);

    v->data = ngx_pnalloc(r->pool, 2 * sizeof(digest));
    if (v->data == NULL) {
        return NGX_ERROR;
    }

    v->len = ngx_hex_dump(v->data, digest, sizeof(digest)) - v->data;
    v->valid = 1;
    v->no_cacheable = !read;
    v->not_found = 0;

    return NGX_OK;
}


/* 1: the whole body is in memory, as it is when nginx chooses the server. */

static ngx_uint_t
ngx_http_dsa_prefix_is_read(ngx_http_request_t *r)
{
    ngx_http_request_body_t  *rb;

    rb = r->request_body;

    return rb != NULL && rb->bufs != NULL && rb->rest == 0
           && rb->temp_file == NULL && !r->request_body_no_buffering;
}


/* The beginning of the body, in one piece. */

static ngx_int_t
ngx_http_dsa_prefix_text(ngx_http_request_t *r, ngx_str_t *text)
{
    size_t        n, size;
    u_char       *p;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = r->request_body->bufs->buf;

    if (r->request_body->bufs->next == NULL) {
        text->data = b->pos;
        text->len = b->last - b->pos;
        return NGX_OK;
    }

    size = 0;

    for (cl = r->request_body->bufs; cl != NULL; cl = cl->next) {
        size += cl->buf->last - cl->buf->pos;
    }

    size = ngx_min(size, DSA_AFFINITY_SCAN);

    p = ngx_pnalloc(r->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text->data = p;
    text->len = size;

    for (cl = r->request_body->bufs; cl != NULL; cl = cl->next) {
        n = ngx_min((size_t) (cl->buf->last - cl->buf->pos), size);

        /* the end of a chunked body is a buffer without memory */

        if (n != 0) {
            p = ngx_cpymem(p, cl->buf->pos, n);
            size -= n;
        }
    }

    return NGX_OK;
}
