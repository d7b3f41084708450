
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "api/ngx_http_dsa_apis.h"
#include "api/ngx_http_dsa_openai.h"

#include "ngx_http_dsa_body.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_conf.h"
#include "ngx_http_dsa_conversations.h"
#include "ngx_http_dsa_filter.h"
#include "ngx_http_dsa_handler.h"
#include "ngx_http_dsa_identity.h"
#include "ngx_http_dsa_models.h"
#include "ngx_http_dsa_pool.h"
#include "ngx_http_dsa_reply.h"


static ngx_int_t ngx_http_dsa_handler_models(ngx_http_request_t *r,
    ngx_http_dsa_pool_t *pool);
static ngx_int_t ngx_http_dsa_handler_conversations(ngx_http_request_t *r,
    ngx_http_dsa_loc_conf_t *dlcf);
static u_char *ngx_http_dsa_handler_conversation(ngx_http_request_t *r);
static ngx_uint_t ngx_http_dsa_handler_ends(ngx_str_t *uri, const char *end);


ngx_int_t
ngx_http_dsa_handler(ngx_http_request_t *r)
{
    ngx_http_dsa_loc_conf_t   *dlcf;
    const ngx_http_dsa_api_t  *api;

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "dsa_pass does not serve the subrequest \"%V\"",
                      &r->uri);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    api = ngx_http_dsa_apis_find(&r->uri);

    if (api != NULL) {

        if (r->method != NGX_HTTP_POST) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "POST",
                                           "Only POST is accepted here.");
        }

        return ngx_http_dsa_chat_handler(r, api);
    }

    if (ngx_http_dsa_handler_ends(&r->uri, "/models")) {

        if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED,
                                           "GET, HEAD",
                                           "Only GET and HEAD are accepted "
                                           "here.");
        }

        return ngx_http_dsa_handler_models(r, dlcf->pool);
    }

    return ngx_http_dsa_handler_conversations(r, dlcf);
}


static ngx_int_t
ngx_http_dsa_handler_models(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool)
{
    dsa_buf_t    b;
    ngx_int_t    rc;
    ngx_array_t  names;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_dsa_pool_any(pool) == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                       "No engine has been reached yet.");
    }

    if (ngx_array_init(&names, r->pool, 4, sizeof(ngx_str_t)) != NGX_OK
        || ngx_http_dsa_models(pool, &names) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    ngx_http_dsa_openai_models(&b, &names);

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


static ngx_int_t
ngx_http_dsa_handler_conversations(ngx_http_request_t *r,
    ngx_http_dsa_loc_conf_t *dlcf)
{
    u_char                     digest[NGX_HTTP_DSA_DIGEST_LEN], *p;
    ngx_int_t                  rc;
    ngx_str_t                 *tenant, *id;
    const char                *why;
    ngx_http_dsa_main_conf_t  *mcf;

    p = ngx_http_dsa_handler_conversation(r);

    if (p == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                                       NGX_HTTP_DSA_NOT_FOUND);
    }

    tenant = ngx_palloc(r->pool, 2 * sizeof(ngx_str_t));
    if (tenant == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    id = tenant + 1;
    id->data = p;
    id->len = r->uri.data + r->uri.len - p;

    if (id->len == 0 && r->method == NGX_HTTP_POST
        && !ngx_http_dsa_body_is_json(r))
    {
        return ngx_http_dsa_body_not_json(r);
    }

    rc = ngx_http_dsa_identify(r, dlcf->tenant, tenant, digest, &why);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_BAD_REQUEST, NULL, why);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (tenant->len == 0) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_FORBIDDEN, NULL,
                                       ngx_http_dsa_no_tenant);
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    return ngx_http_dsa_conversations_handler(r, mcf->redis, tenant, id);
}


/*
 * Where the id begins in ".../conversations/ID"; the end of the URI for
 * ".../conversations"; NULL for other paths.
 */

static u_char *
ngx_http_dsa_handler_conversation(ngx_http_request_t *r)
{
    ngx_str_t  rest;

    static const char  name[] = "/conversations";

    rest = r->uri;

    if (ngx_http_dsa_handler_ends(&rest, name)) {
        return rest.data + rest.len;
    }

    while (rest.len != 0 && rest.data[rest.len - 1] != '/') {
        rest.len--;
    }

    if (rest.len != 0) {
        rest.len--;
    }

    if (rest.len + 1 >= r->uri.len || !ngx_http_dsa_handler_ends(&rest, name))
    {
        return NULL;
    }

    return rest.data + rest.len + 1;
}


static ngx_uint_t
ngx_http_dsa_handler_ends(ngx_str_t *uri, const char *end)
{
    size_t  len;

    len = ngx_strlen(end);

    return uri->len >= len
           && ngx_memcmp(uri->data + uri->len - len, end, len) == 0;
}
