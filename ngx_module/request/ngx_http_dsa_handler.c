
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/api/ngx_http_dsa_apis.h"
#include "ngx_module/api/ngx_http_dsa_openai.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/account/ngx_http_dsa_balance.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/http/ngx_http_dsa_filter.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/objects/ngx_http_dsa_conversations.h"
#include "ngx_module/objects/ngx_http_dsa_responses_resource.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_handler.h"


#define NGX_HTTP_DSA_UPGRADE_REQUIRED  426


static ngx_int_t ngx_http_dsa_handler_upgrade(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_handler_stored(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant);
static u_char *ngx_http_dsa_handler_model(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_handler_models(ngx_http_request_t *r,
    ngx_http_dsa_pool_t *pool, ngx_str_t *name);
static ngx_int_t ngx_http_dsa_handler_list(ngx_http_request_t *r,
    ngx_http_dsa_pool_t *pool, dsa_buf_t *b);
static ngx_int_t ngx_http_dsa_handler_unknown(ngx_http_request_t *r,
    ngx_int_t why);
static ngx_uint_t ngx_http_dsa_handler_ends(ngx_str_t *uri, const char *end);


ngx_int_t
ngx_http_dsa_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_str_t                  name;
    ngx_http_dsa_failure_t     failure;
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

    ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

    rc = ngx_http_dsa_access(r, r->method == NGX_HTTP_POST ? api : NULL,
                             &failure);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_failure(r, &failure);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (api != NULL) {

        if (r->headers_in.upgrade != NULL && r->method == NGX_HTTP_GET) {
            return ngx_http_dsa_handler_upgrade(r);
        }

        if (r->method != NGX_HTTP_POST) {
            return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_ALLOWED, "POST",
                                           "Only POST is accepted here.");
        }

        return ngx_http_dsa_chat_handler(r, api);
    }

    name.data = ngx_http_dsa_handler_model(r);

    if (name.data != NULL) {
        name.len = r->uri.data + r->uri.len - name.data;
        return ngx_http_dsa_handler_models(r, dlcf->pool, &name);
    }

    if (ngx_http_dsa_balance_find(r)) {
        return ngx_http_dsa_balance_handler(r);
    }

    return ngx_http_dsa_handler_stored(r, dlcf->tenant);
}


/*
 * OpenAI's server has the Responses API over WebSockets as well.  Codex begins
 * with a WebSocket, uses POST at once if this is answered with 426, and repeats
 * it for several seconds after any other status.
 */

static ngx_int_t
ngx_http_dsa_handler_upgrade(ngx_http_request_t *r)
{
    if (ngx_http_dsa_add_header(r, "Upgrade", "HTTP/1.1") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_dsa_send_error(r, NGX_HTTP_DSA_UPGRADE_REQUIRED, NULL,
                                   "This server has no WebSockets; send a "
                                   "POST with \"stream\": true.");
}


/* Answers requests for conversations and stored responses. */

static ngx_int_t
ngx_http_dsa_handler_stored(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant)
{
    ngx_int_t               rc;
    ngx_str_t               id, rest;
    ngx_uint_t              response;
    ngx_http_dsa_failure_t  failure;

    response = ngx_http_dsa_responses_resource_find(r, &id, &rest);

    if (!response && !ngx_http_dsa_conversations_find(r, &id, &rest)) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_NOT_FOUND, NULL,
                                       NGX_HTTP_DSA_NOT_FOUND);
    }

    ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

    rc = ngx_http_dsa_access_stored(r, &failure);

    if (rc == NGX_DECLINED) {
        return ngx_http_dsa_send_failure(r, &failure);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return response
           ? ngx_http_dsa_responses_resource_handler(r, tenant, &id, &rest)
           : ngx_http_dsa_conversations_handler(r, tenant, &id, &rest);
}


/*
 * Returns where the name begins in ".../models/NAME", the end of the URI for
 * ".../models", or NULL for other paths.  A name may contain a slash.
 */

static u_char *
ngx_http_dsa_handler_model(ngx_http_request_t *r)
{
    u_char  *p, *end;

    static const char  name[] = "/models/";

    end = r->uri.data + r->uri.len;

    if (ngx_http_dsa_handler_ends(&r->uri, "/models")) {
        return end;
    }

    if (r->uri.len < sizeof(name)) {
        return NULL;
    }

    /*
     * Searches backwards, because the location's prefix may contain the same
     * name.
     */

    for (p = end - sizeof(name); p > r->uri.data; p--) {
        if (ngx_memcmp(p, name, sizeof(name) - 1) == 0) {
            return p + sizeof(name) - 1;
        }
    }

    return ngx_memcmp(p, name, sizeof(name) - 1) == 0 ? p + sizeof(name) - 1
                                                      : NULL;
}


/* Answers GET .../models and .../models/NAME; name is empty for the list. */

static ngx_int_t
ngx_http_dsa_handler_models(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool,
    ngx_str_t *name)
{
    dsa_buf_t                     b;
    ngx_int_t                     rc;
    ngx_http_dsa_openai_model_t   model;

    rc = ngx_http_dsa_accept_get(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_dsa_pool_any(pool) == NULL) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                       "No engine has been reached yet.");
    }

    ngx_memzero(&b, sizeof(dsa_buf_t));

    if (name->len == 0) {

        if (ngx_http_dsa_handler_list(r, pool, &b) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
    }

    rc = ngx_http_dsa_access_permits(r, name)
         ? ngx_http_dsa_models_known(pool, name) : NGX_DECLINED;

    if (rc != NGX_OK) {
        return ngx_http_dsa_handler_unknown(r, rc);
    }

    model.name = *name;
    model.context = ngx_http_dsa_models_context(pool, name);

    ngx_http_dsa_openai_model(&b, &model);

    return ngx_http_dsa_send_json(r, NGX_HTTP_OK, &b);
}


static ngx_int_t
ngx_http_dsa_handler_list(ngx_http_request_t *r, ngx_http_dsa_pool_t *pool,
    dsa_buf_t *b)
{
    ngx_str_t                    *name;
    ngx_uint_t                    i;
    ngx_array_t                   names, models;
    ngx_http_dsa_openai_model_t  *model;

    if (ngx_array_init(&names, r->pool, 4, sizeof(ngx_str_t)) != NGX_OK
        || ngx_http_dsa_models(pool, &names) != NGX_OK
        || ngx_array_init(&models, r->pool, names.nelts,
                          sizeof(ngx_http_dsa_openai_model_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    name = names.elts;

    for (i = 0; i < names.nelts; i++) {

        if (!ngx_http_dsa_access_permits(r, &name[i])) {
            continue;
        }

        model = ngx_array_push(&models);
        if (model == NULL) {
            return NGX_ERROR;
        }

        model->name = name[i];
        model->context = ngx_http_dsa_models_context(pool, &name[i]);
    }

    ngx_http_dsa_openai_models(b, &models);

    return NGX_OK;
}


/*
 * Sends the error for an unknown model; why is the result of
 * ngx_http_dsa_models_known().
 */

static ngx_int_t
ngx_http_dsa_handler_unknown(ngx_http_request_t *r, ngx_int_t why)
{
    ngx_http_dsa_failure_t  failure;

    if (why == NGX_AGAIN) {
        return ngx_http_dsa_send_error(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                       "No engine with this model has been "
                                       "reached yet, and not all engines "
                                       "have.");
    }

    ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

    ngx_http_dsa_failure_set(&failure, NGX_HTTP_NOT_FOUND, "model",
                             "The model does not exist. GET /models lists "
                             "those that do.");
    failure.code = "model_not_found";

    return ngx_http_dsa_send_failure(r, &failure);
}


static ngx_uint_t
ngx_http_dsa_handler_ends(ngx_str_t *uri, const char *end)
{
    size_t  len;

    len = ngx_strlen(end);

    return uri->len >= len
           && ngx_memcmp(uri->data + uri->len - len, end, len) == 0;
}
