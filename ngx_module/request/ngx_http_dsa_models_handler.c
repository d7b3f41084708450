
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/api/ngx_http_dsa_model_info.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/engine/ngx_http_dsa_aliases.h"
#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_models_handler.h"


/* models of a part of Anthropic's list */

#define NGX_HTTP_DSA_MODELS_DEFAULT  20
#define NGX_HTTP_DSA_MODELS_MAX      1000


static ngx_int_t ngx_http_dsa_models_one(ngx_http_request_t *r,
    ngx_http_dsa_pool_t *pool, ngx_str_t *name);
static ngx_int_t ngx_http_dsa_models_list(ngx_http_request_t *r,
    ngx_http_dsa_pool_t *pool, ngx_http_dsa_model_page_t *page);
static const ngx_str_t *ngx_http_dsa_models_real(ngx_http_request_t *r,
    const ngx_str_t *name);
static ngx_int_t ngx_http_dsa_models_page(ngx_http_request_t *r,
    ngx_http_dsa_model_page_t *page, const char **param);
static ngx_int_t ngx_http_dsa_models_index(ngx_http_request_t *r,
    const ngx_http_dsa_model_page_t *page, const char *name,
    ngx_uint_t *index);
static ngx_int_t ngx_http_dsa_models_missing(ngx_http_request_t *r,
    ngx_int_t why);


ngx_uint_t
ngx_http_dsa_models_find(ngx_http_request_t *r, ngx_str_t *name)
{
    u_char  *p, *end;

    static const char  list[] = "/models";
    static const char  one[] = "/models/";

    end = r->uri.data + r->uri.len;

    if (r->uri.len >= sizeof(list) - 1
        && ngx_memcmp(end - (sizeof(list) - 1), list, sizeof(list) - 1) == 0)
    {
        ngx_str_null(name);
        return 1;
    }

    if (r->uri.len < sizeof(one)) {
        return 0;
    }

    /*
     * Searches backwards, because the location's prefix may contain the same
     * name.
     */

    for (p = end - sizeof(one); p >= r->uri.data; p--) {
        if (ngx_memcmp(p, one, sizeof(one) - 1) == 0) {
            name->data = p + sizeof(one) - 1;
            name->len = end - name->data;
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_dsa_models_handler(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool,
    ngx_str_t *name)
{
    dsa_buf_t                   b;
    ngx_int_t                   rc;
    const char                 *param;
    ngx_http_dsa_failure_t      failure;
    ngx_http_dsa_model_page_t   page;

    rc = ngx_http_dsa_accept_get(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_dsa_pool_any(pool) == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                       "No engine has been reached yet.");
    }

    if (name->len != 0) {
        return ngx_http_dsa_models_one(r, pool, name);
    }

    if (ngx_http_dsa_models_list(r, pool, &page) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    if (!ngx_http_dsa_is_anthropic(r)) {
        ngx_http_dsa_model_openai_list(&b, &page);
        return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
    }

    rc = ngx_http_dsa_models_page(r, &page, &param);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

        ngx_http_dsa_failure_set(&failure, NGX_HTTP_BAD_REQUEST, param,
                                 "%s: this argument is not valid; expected "
                                 "limit from 1 to %u, and either after_id or "
                                 "before_id with the id of a model of the "
                                 "list", param, NGX_HTTP_DSA_MODELS_MAX);

        return ngx_http_dsa_send_failure(r, &failure);
    }

    ngx_http_dsa_model_anthropic_list(&b, &page);

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


static ngx_int_t
ngx_http_dsa_models_one(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool,
    ngx_str_t *name)
{
    dsa_buf_t                   b;
    ngx_int_t                   rc;
    ngx_str_t                   real;
    ngx_http_dsa_model_info_t   model;

    real = *ngx_http_dsa_models_real(r, name);

    rc = ngx_http_dsa_access_permits(r, &real)
         ? ngx_http_dsa_models_known(pool, &real) : NGX_DECLINED;

    if (rc != NGX_OK) {
        return ngx_http_dsa_models_missing(r, rc);
    }

    model.name = *name;
    model.owner = ngx_http_dsa_pool_family(pool)->owner;
    model.context = ngx_http_dsa_models_context(pool, &real);

    ngx_memzero(&b, sizeof(dsa_buf_t));

    if (ngx_http_dsa_is_anthropic(r)) {
        ngx_http_dsa_model_anthropic(&b, &model);

    } else {
        ngx_http_dsa_model_openai(&b, &model);
    }

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


/* Lists the models that the key permits: those of engines, then aliases. */

static ngx_int_t
ngx_http_dsa_models_list(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool,
    ngx_http_dsa_model_page_t *page)
{
    ngx_str_t                  *name, real;
    ngx_uint_t                  i;
    ngx_array_t                 names;
    ngx_http_dsa_main_conf_t   *mcf;
    ngx_http_dsa_model_info_t  *model;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (ngx_array_init(&names, r->pool, 8, sizeof(ngx_str_t)) != NGX_OK
        || ngx_http_dsa_models(pool, &names) != NGX_OK
        || ngx_http_dsa_aliases_list(mcf->aliases, pool, &names) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_memzero(page, sizeof(ngx_http_dsa_model_page_t));

    page->models = ngx_palloc(r->pool, names.nelts
                                       * sizeof(ngx_http_dsa_model_info_t));
    if (page->models == NULL) {
        return NGX_ERROR;
    }

    name = names.elts;

    for (i = 0; i < names.nelts; i++) {
        real = *ngx_http_dsa_models_real(r, &name[i]);

        if (!ngx_http_dsa_access_permits(r, &real)) {
            continue;
        }

        model = &page->models[page->n++];
        model->name = name[i];
        model->owner = ngx_http_dsa_pool_family(pool)->owner;
        model->context = ngx_http_dsa_models_context(pool, &real);
    }

    page->end = page->n;

    return NGX_OK;
}


/* Returns the name of the model that a request for this name gets. */

static const ngx_str_t *
ngx_http_dsa_models_real(ngx_http_request_t *r, const ngx_str_t *name)
{
    const ngx_str_t           *real;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);
    real = ngx_http_dsa_aliases_find(mcf->aliases, name);

    return real != NULL ? real : name;
}


/*
 * Sets the part of the list that the arguments of Anthropic's API ask for.
 * NGX_DECLINED: *param is not valid; NGX_ERROR: out of memory.
 */

static ngx_int_t
ngx_http_dsa_models_page(ngx_http_request_t *r,
    ngx_http_dsa_model_page_t *page, const char **param)
{
    ngx_int_t   n, after, before;
    ngx_str_t   value;
    ngx_uint_t  limit;

    limit = NGX_HTTP_DSA_MODELS_DEFAULT;

    if (ngx_http_arg(r, (u_char *) "limit", 5, &value) == NGX_OK) {
        n = ngx_atoi(value.data, value.len);

        if (n < 1 || n > NGX_HTTP_DSA_MODELS_MAX) {
            *param = "limit";
            return NGX_DECLINED;
        }

        limit = n;
    }

    *param = "after_id";

    after = ngx_http_dsa_models_index(r, page, "after_id", &page->start);

    if (after == NGX_ERROR || after == NGX_ABORT) {
        return after == NGX_ERROR ? NGX_ERROR : NGX_DECLINED;
    }

    *param = "before_id";

    before = ngx_http_dsa_models_index(r, page, "before_id", &page->end);

    if (before == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (before == NGX_ABORT || (before == NGX_OK && after == NGX_OK)) {
        return NGX_DECLINED;
    }

    if (after == NGX_OK) {
        page->start++;
    }

    if (page->end - page->start <= limit) {
        return NGX_OK;
    }

    page->more = 1;

    if (before == NGX_OK) {
        page->start = page->end - limit;

    } else {
        page->end = page->start + limit;
    }

    return NGX_OK;
}


/*
 * Sets the index of the model that an argument names.  NGX_DECLINED: there is
 * no such argument; NGX_ABORT: no such model; NGX_ERROR: out of memory.
 */

static ngx_int_t
ngx_http_dsa_models_index(ngx_http_request_t *r,
    const ngx_http_dsa_model_page_t *page, const char *name,
    ngx_uint_t *index)
{
    u_char      *dst, *src;
    ngx_str_t    value, *id;
    ngx_uint_t   i;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &value) != NGX_OK) {
        return NGX_DECLINED;
    }

    src = value.data;
    dst = ngx_pnalloc(r->pool, value.len + 1);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    value.data = dst;
    ngx_unescape_uri(&dst, &src, value.len, 0);
    value.len = dst - value.data;

    for (i = 0; i < page->n; i++) {
        id = &page->models[i].name;

        if (id->len == value.len
            && ngx_memcmp(id->data, value.data, id->len) == 0)
        {
            *index = i;
            return NGX_OK;
        }
    }

    return NGX_ABORT;
}


/*
 * Sends the error for an unknown model; why is the result of
 * ngx_http_dsa_models_known().
 */

static ngx_int_t
ngx_http_dsa_models_missing(ngx_http_request_t *r, ngx_int_t why)
{
    ngx_http_dsa_failure_t  failure;

    if (why == NGX_AGAIN) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                       "No engine with this model has been "
                                       "reached yet, and not all engines "
                                       "have.");
    }

    ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

    ngx_http_dsa_models_unknown(&failure, NULL);

    return ngx_http_dsa_send_failure(r, &failure);
}
