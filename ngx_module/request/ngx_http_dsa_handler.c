
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/api/ngx_http_dsa_anthropic.h"
#include "ngx_module/api/ngx_http_dsa_apis.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/account/ngx_http_dsa_balance.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/engine/ngx_http_dsa_pool.h"
#include "ngx_module/http/ngx_http_dsa_body.h"
#include "ngx_module/http/ngx_http_dsa_filter.h"
#include "ngx_module/http/ngx_http_dsa_identity.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/http/ngx_http_dsa_text.h"
#include "ngx_module/objects/ngx_http_dsa_conversations.h"
#include "ngx_module/objects/ngx_http_dsa_responses_resource.h"
#include "ngx_http_dsa_chat.h"
#include "ngx_http_dsa_handler.h"
#include "ngx_http_dsa_models_handler.h"


#define NGX_HTTP_DSA_UPGRADE_REQUIRED  426
#define NGX_HTTP_DSA_METHOD            16      /* bytes in an error */
#define NGX_HTTP_DSA_PATH              200


static ngx_int_t ngx_http_dsa_handler_upgrade(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_handler_stored(ngx_http_request_t *r,
    ngx_http_complex_value_t *tenant);
static ngx_int_t ngx_http_dsa_handler_unknown(ngx_http_request_t *r);


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

    if (ngx_http_dsa_models_find(r, &name)) {
        return ngx_http_dsa_models_handler(r, dlcf->pool, &name);
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
        return ngx_http_dsa_handler_unknown(r);
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
 * Answers requests for other paths in the format that the client expects.
 * Clients display the text of such an error, so it has the paths that exist:
 * the most frequent cause is a wrong base URL.
 */

static ngx_int_t
ngx_http_dsa_handler_unknown(ngx_http_request_t *r)
{
    u_char                   method[NGX_HTTP_DSA_METHOD];
    u_char                   path[NGX_HTTP_DSA_PATH];
    size_t                   method_len, path_len;
    const char              *paths;
    ngx_http_dsa_failure_t   failure;

    method_len = ngx_http_dsa_printable(method, sizeof(method),
                                        r->method_name.data,
                                        r->method_name.len);
    path_len = ngx_http_dsa_printable(path, sizeof(path), r->uri.data,
                                      r->uri.len);

    paths = ngx_http_dsa_reply_api(r) == &ngx_http_dsa_anthropic
            ? "Anthropic's API has POST /v1/messages, POST "
              "/v1/messages/count_tokens and GET /v1/models here; other parts "
              "of it, such as batches, are not supported."
            : NGX_HTTP_DSA_PATHS;

    ngx_memzero(&failure, sizeof(ngx_http_dsa_failure_t));

    ngx_http_dsa_failure_set(&failure, NGX_HTTP_NOT_FOUND, NULL,
                             "Unknown request URL: %.*s %.*s. %s",
                             (int) method_len, (char *) method,
                             (int) path_len, (char *) path, paths);
    failure.code = "unknown_url";

    return ngx_http_dsa_send_failure(r, &failure);
}
