
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/money.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/core/ngx_http_dsa_series.h"
#include "ngx_module/engine/ngx_http_dsa_models.h"
#include "ngx_module/front/ngx_http_dsa_prefix.h"
#include "ngx_module/http/ngx_http_dsa_trace.h"
#include "ngx_http_dsa_request.h"
#include "ngx_http_dsa_variables.h"


static ngx_int_t ngx_http_dsa_variable_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_str(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_key(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_tokens(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_cost(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_restored(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_ttft(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_trace(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_finish(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_uint_t ngx_http_dsa_variable_used(
    const ngx_http_dsa_request_t *req);
static ngx_http_dsa_request_t *ngx_http_dsa_variable_request(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_variable_set(ngx_http_variable_value_t *v,
    u_char *data, size_t len);
static ngx_int_t ngx_http_dsa_variable_none(ngx_http_variable_value_t *v);
static void ngx_http_dsa_log_series(ngx_http_request_t *r,
    ngx_http_dsa_request_t *req, ngx_uint_t status);


static ngx_http_variable_t  ngx_http_dsa_vars[] = {

    { ngx_string("dsa_request_id"), NULL, ngx_http_dsa_variable_id,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_model"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_request_t, submit.model),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_tenant"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_request_t, tenant), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_key"), NULL, ngx_http_dsa_variable_key,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_conversation"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_request_t, conversation.id),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_prefix"), NULL, ngx_http_dsa_prefix_variable,
      0, 0, 0 },

    { ngx_string("dsa_context"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_request_t, strategy),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_route"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_request_t, submit.route),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_prompt_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, prompt), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_cached_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, cached), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_cached_gpu_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, tier[DSA_TIER_GPU]),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_cached_host_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, tier[DSA_TIER_HOST]),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_cached_redis_tokens"), NULL,
      ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, tier[DSA_TIER_REDIS]),
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_completion_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, completion), NGX_HTTP_VAR_NOCACHEABLE,
      0 },

    { ngx_string("dsa_reasoning_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, reasoning), NGX_HTTP_VAR_NOCACHEABLE,
      0 },

    { ngx_string("dsa_draft_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, drafts), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_accepted_draft_tokens"), NULL,
      ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, accepted), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_cost"), NULL, ngx_http_dsa_variable_cost,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_restored"), NULL, ngx_http_dsa_variable_restored,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_ttft"), NULL, ngx_http_dsa_variable_ttft,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_finish_reason"), NULL, ngx_http_dsa_variable_finish,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_traceparent"), NULL, ngx_http_dsa_variable_trace,
      (uintptr_t) ngx_http_dsa_trace_parent, 0, 0 },

    { ngx_string("dsa_client_request_id"), NULL, ngx_http_dsa_variable_trace,
      (uintptr_t) ngx_http_dsa_trace_client, 0, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_dsa_variables_add(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_dsa_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_variable_id(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t                 id;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->pool == NULL) {
        return ngx_http_dsa_variable_none(v);
    }

    if (ngx_http_dsa_request_id(r, &id) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_dsa_variable_set(v, id.data, id.len);
}


static ngx_int_t
ngx_http_dsa_variable_str(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t               *s;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_variable_request(r);

    if (req == NULL) {
        return ngx_http_dsa_variable_none(v);
    }

    s = (ngx_str_t *) ((u_char *) req + data);

    if (s->len == 0) {
        return ngx_http_dsa_variable_none(v);
    }

    return ngx_http_dsa_variable_set(v, s->data, s->len);
}


static ngx_int_t
ngx_http_dsa_variable_key(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(r);

    if (access == NULL || access->key == NULL) {
        return ngx_http_dsa_variable_none(v);
    }

    return ngx_http_dsa_variable_set(v, access->view.id, DSA_KEY_ID_LEN);
}


static ngx_int_t
ngx_http_dsa_variable_tokens(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                  *p;
    uint64_t                *n;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_variable_request(r);

    if (req == NULL || !ngx_http_dsa_variable_used(req)) {
        return ngx_http_dsa_variable_none(v);
    }

    n = (uint64_t *) ((u_char *) &req->usage + data);

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_dsa_variable_set(v, p, ngx_sprintf(p, "%uL", *n) - p);
}


/*
 * What the ledger has, in the log phase; 0 before the request was charged.
 * Without dsa_price there is no cost.
 */

static ngx_int_t
ngx_http_dsa_variable_cost(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char                    *p;
    ngx_http_dsa_request_t    *req;
    ngx_http_dsa_main_conf_t  *mcf;

    req = ngx_http_dsa_variable_request(r);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (req == NULL || !ngx_http_dsa_variable_used(req)
        || mcf->prices == NULL)
    {
        return ngx_http_dsa_variable_none(v);
    }

    p = ngx_pnalloc(r->pool, DSA_MONEY_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_dsa_variable_set(v, p,
                                     dsa_money_print((char *) p, req->cost,
                                                     0));
}


static ngx_int_t
ngx_http_dsa_variable_restored(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                  *p;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_variable_request(r);

    if (req == NULL || req->retention.n_wanted == 0) {
        return ngx_http_dsa_variable_none(v);
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_dsa_variable_set(v, p,
                                     ngx_sprintf(p, "%uL",
                                                 req->retention.restored)
                                     - p);
}


static ngx_int_t
ngx_http_dsa_variable_ttft(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char                  *p;
    ngx_msec_t               ms;
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_variable_request(r);

    if (req == NULL || !req->answer.begun) {
        return ngx_http_dsa_variable_none(v);
    }

    p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ms = req->answer.first_token - req->answer.start;

    return ngx_http_dsa_variable_set(v, p,
                                     ngx_sprintf(p, "%T.%03M",
                                                 (time_t) (ms / 1000),
                                                 ms % 1000)
                                     - p);
}


static ngx_int_t
ngx_http_dsa_variable_finish(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_dsa_request_t  *req;

    req = ngx_http_dsa_variable_request(r);

    if (req == NULL || req->answer.finish == NULL) {
        return ngx_http_dsa_variable_none(v);
    }

    return ngx_http_dsa_variable_set(v, (u_char *) req->answer.finish,
                                     ngx_strlen(req->answer.finish));
}


/* By what names the client finds the request, whether or not it is a chat. */

static ngx_int_t
ngx_http_dsa_variable_trace(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                  value;
    ngx_http_dsa_trace_pt      find;
    ngx_http_dsa_loc_conf_t   *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->pool == NULL) {
        return ngx_http_dsa_variable_none(v);
    }

    find = (ngx_http_dsa_trace_pt) data;

    if (find(r, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    if (value.len == 0) {
        return ngx_http_dsa_variable_none(v);
    }

    return ngx_http_dsa_variable_set(v, value.data, value.len);
}


/* A summary may be charged although no engine has accepted the prompt. */

static ngx_uint_t
ngx_http_dsa_variable_used(const ngx_http_dsa_request_t *req)
{
    return req->answer.accepted || req->usage.prompt != 0
           || req->usage.completion != 0;
}


/* The chat of an HTTP request, or NULL. */

static ngx_http_dsa_request_t *
ngx_http_dsa_variable_request(ngx_http_request_t *r)
{
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    return ctx != NULL ? ctx->request : NULL;
}


static ngx_int_t
ngx_http_dsa_variable_set(ngx_http_variable_value_t *v, u_char *data,
    size_t len)
{
    v->len = len;
    v->data = data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_variable_none(ngx_http_variable_value_t *v)
{
    v->not_found = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_log_handler(ngx_http_request_t *r)
{
    ngx_uint_t                status;
    ngx_http_dsa_request_t   *req;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->pool == NULL) {
        return NGX_OK;
    }

    status = r->err_status != 0 ? r->err_status : r->headers_out.status;

    ngx_http_dsa_metrics_request(status);

    req = ngx_http_dsa_variable_request(r);

    if (req != NULL) {
        ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_DURATION,
                                     ngx_current_msec - req->answer.start, 1);

        if (dlcf->pool->series && !req->submit.count) {
            ngx_http_dsa_log_series(r, req, status);
        }
    }

    return NGX_OK;
}


/*
 * Counts the durations by labels.  An answer is an error if its status is one,
 * or if it ended with an error, or was cancelled, after its status was sent.
 */

static void
ngx_http_dsa_log_series(ngx_http_request_t *r, ngx_http_dsa_request_t *req,
    ngx_uint_t status)
{
    u_char                         code[NGX_INT_T_LEN];
    ngx_msec_t                     duration, first;
    const ngx_str_t               *path;
    ngx_http_dsa_main_conf_t      *mcf;
    ngx_http_dsa_series_sample_t   sample;

    ngx_memzero(&sample, sizeof(ngx_http_dsa_series_sample_t));

    path = &req->answer.api->api->path;

    sample.label[NGX_HTTP_DSA_SERIES_POOL] = req->submit.pool->name;
    sample.label[NGX_HTTP_DSA_SERIES_TENANT] = req->tenant;
    sample.label[NGX_HTTP_DSA_SERIES_ENDPOINT].data = path->data + 1;
    sample.label[NGX_HTTP_DSA_SERIES_ENDPOINT].len = path->len - 1;

    /* a client can request any name; a label has those of engines */

    if (ngx_http_dsa_models_known(req->submit.pool, &req->submit.model)
        == NGX_OK)
    {
        sample.label[NGX_HTTP_DSA_SERIES_MODEL] = req->submit.model;
    }

    if (status >= NGX_HTTP_BAD_REQUEST) {
        sample.label[NGX_HTTP_DSA_SERIES_ERROR].data = code;
        sample.label[NGX_HTTP_DSA_SERIES_ERROR].len =
            ngx_sprintf(code, "%ui", status) - code;

    } else if (req->answer.finish != NULL
               && (ngx_strcmp(req->answer.finish, "error") == 0
                   || ngx_strcmp(req->answer.finish, "cancelled") == 0))
    {
        sample.label[NGX_HTTP_DSA_SERIES_ERROR].data =
            (u_char *) req->answer.finish;
        sample.label[NGX_HTTP_DSA_SERIES_ERROR].len =
            ngx_strlen(req->answer.finish);
    }

    duration = ngx_current_msec - req->answer.start;

    sample.us[NGX_HTTP_DSA_SERIES_DURATION] =
        ngx_max((uint64_t) duration * 1000, 1);

    if (sample.label[NGX_HTTP_DSA_SERIES_ERROR].len == 0 && req->answer.begun)
    {
        first = req->answer.first_token - req->answer.start;

        sample.us[NGX_HTTP_DSA_SERIES_FIRST] =
            ngx_max((uint64_t) first * 1000, 1);

        /* the tokens of several choices came at the same time */

        if (req->choices.n <= 1 && req->usage.completion > 1) {
            sample.us[NGX_HTTP_DSA_SERIES_TOKEN] =
                ngx_max((uint64_t) (duration - first) * 1000
                        / (req->usage.completion - 1), 1);
        }
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    ngx_http_dsa_series_add(mcf->series, &sample);
}
