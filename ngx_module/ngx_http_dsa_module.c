
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_filter.h"
#include "ngx_http_dsa_health.h"
#include "ngx_http_dsa_ledger_queue.h"
#include "ngx_http_dsa_module.h"
#include "ngx_http_dsa_prometheus.h"


static char *ngx_http_dsa_pool(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_pool_engine(ngx_conf_t *cf, ngx_command_t *dummy,
    void *conf);
static char *ngx_http_dsa_pass(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_health(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_metrics(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_positive(ngx_conf_t *cf, void *post, void *data);
static ngx_http_dsa_pool_t *ngx_http_dsa_pool_find(ngx_conf_t *cf,
    ngx_str_t *name);
static void *ngx_http_dsa_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_dsa_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_dsa_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_dsa_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_dsa_request_id(ngx_http_request_t *r,
    ngx_str_t *id);
static ngx_int_t ngx_http_dsa_variable_id(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_str(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_tokens(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_ttft(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_variable_finish(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_dsa_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_dsa_log_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_dsa_init_process(ngx_cycle_t *cycle);
static void ngx_http_dsa_exit_process(ngx_cycle_t *cycle);


static ngx_conf_post_t  ngx_http_dsa_positive_post = {
    ngx_http_dsa_positive
};


static ngx_command_t  ngx_http_dsa_commands[] = {

    { ngx_string("dsa_pool"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_BLOCK|NGX_CONF_TAKE1,
      ngx_http_dsa_pool,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_redis"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_dsa_redis_directive,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_dsa_main_conf_t, redis),
      NULL },

    { ngx_string("dsa_pass"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_health"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_health,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_dsa_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_tenant"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, tenant),
      NULL },

    { ngx_string("dsa_keepalive"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, keepalive),
      NULL },

    { ngx_string("dsa_keepalive_json"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, keepalive_json),
      NULL },

    { ngx_string("dsa_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, timeout),
      &ngx_http_dsa_positive_post },

    { ngx_string("dsa_output_limit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, output_limit),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_dsa_module_ctx = {
    ngx_http_dsa_add_variables,            /* preconfiguration */
    ngx_http_dsa_init,                     /* postconfiguration */

    ngx_http_dsa_create_main_conf,         /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_dsa_create_loc_conf,          /* create location configuration */
    ngx_http_dsa_merge_loc_conf            /* merge location configuration */
};


ngx_module_t  ngx_http_dsa_module = {
    NGX_MODULE_V1,
    &ngx_http_dsa_module_ctx,              /* module context */
    ngx_http_dsa_commands,                 /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_dsa_init_process,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_dsa_exit_process,             /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_variable_t  ngx_http_dsa_vars[] = {

    { ngx_string("dsa_request_id"), NULL, ngx_http_dsa_variable_id,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_model"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_ctx_t, model), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_tenant"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_ctx_t, tenant), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_conversation"), NULL, ngx_http_dsa_variable_str,
      offsetof(ngx_http_dsa_ctx_t, conversation), NGX_HTTP_VAR_NOCACHEABLE,
      0 },

    { ngx_string("dsa_prompt_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, prompt), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_cached_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, cached), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_completion_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, completion), NGX_HTTP_VAR_NOCACHEABLE,
      0 },

    { ngx_string("dsa_reasoning_tokens"), NULL, ngx_http_dsa_variable_tokens,
      offsetof(ngx_http_dsa_usage_t, reasoning), NGX_HTTP_VAR_NOCACHEABLE,
      0 },

    { ngx_string("dsa_ttft"), NULL, ngx_http_dsa_variable_ttft,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("dsa_finish_reason"), NULL, ngx_http_dsa_variable_finish,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


/* A pool may be named before it is defined, as an upstream may. */

static ngx_http_dsa_pool_t *
ngx_http_dsa_pool_find(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                  i;
    ngx_http_dsa_pool_t        *pool, **pools;
    ngx_http_dsa_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dsa_module);

    pools = mcf->pools.elts;

    for (i = 0; i < mcf->pools.nelts; i++) {
        if (pools[i]->name.len == name->len
            && ngx_strncmp(pools[i]->name.data, name->data, name->len) == 0)
        {
            return pools[i];
        }
    }

    pool = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_pool_t));
    if (pool == NULL) {
        return NULL;
    }

    if (ngx_array_init(&pool->sessions, cf->pool, 4,
                       sizeof(ngx_http_dsa_session_t))
        != NGX_OK)
    {
        return NULL;
    }

    pools = ngx_array_push(&mcf->pools);
    if (pools == NULL) {
        return NULL;
    }

    *pools = pool;

    pool->name = *name;
    pool->file = cf->conf_file->file.name.data;
    pool->line = cf->conf_file->line;

    return pool;
}


static char *
ngx_http_dsa_pool(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                 *rv;
    ngx_str_t            *value;
    ngx_conf_t            save;
    ngx_http_dsa_pool_t  *pool;

    value = cf->args->elts;

    pool = ngx_http_dsa_pool_find(cf, &value[1]);
    if (pool == NULL) {
        return NGX_CONF_ERROR;
    }

    if (pool->sessions.nelts != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate dsa_pool \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    save = *cf;
    cf->handler = ngx_http_dsa_pool_engine;
    cf->handler_conf = (char *) pool;

    rv = ngx_conf_parse(cf, NULL);

    *cf = save;

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (pool->sessions.nelts == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "no engines are in dsa_pool \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_pool_engine(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    ngx_http_dsa_pool_t *pool = conf;

    size_t                   len;
    ngx_str_t               *value;
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    value = cf->args->elts;

    if (value[0].len != sizeof("engine") - 1
        || ngx_strncmp(value[0].data, "engine", sizeof("engine") - 1) != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown directive \"%V\", expected \"engine\"",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts != 2) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of arguments in \"engine\" "
                           "directive");
        return NGX_CONF_ERROR;
    }

    if (value[1].len <= sizeof("unix:/") - 1
        || ngx_strncmp(value[1].data, "unix:/", sizeof("unix:/") - 1) != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid engine address \"%V\", expected "
                           "\"unix:\" and an absolute path", &value[1]);
        return NGX_CONF_ERROR;
    }

    len = value[1].len - (sizeof("unix:") - 1);

    if (len >= sizeof(((struct sockaddr_un *) 0)->sun_path)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "engine address \"%V\" is longer than %uz bytes",
                           &value[1],
                           sizeof(((struct sockaddr_un *) 0)->sun_path) - 1);
        return NGX_CONF_ERROR;
    }

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].name.len == value[1].len
            && ngx_strncmp(s[i].name.data, value[1].data, value[1].len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate engine \"%V\"", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    if (pool->sessions.nelts == NGX_HTTP_DSA_MAX_ENGINES) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "more than %d engines in dsa_pool \"%V\"",
                           NGX_HTTP_DSA_MAX_ENGINES, &pool->name);
        return NGX_CONF_ERROR;
    }

    s = ngx_array_push(&pool->sessions);
    if (s == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(s, sizeof(ngx_http_dsa_session_t));

    s->pool = pool;
    s->name = value[1];
    s->index = pool->sessions.nelts - 1;

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (dlcf->pool != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    dlcf->pool = ngx_http_dsa_pool_find(cf, &value[1]);
    if (dlcf->pool == NULL) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_dsa_handler;

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_health(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (dlcf->health != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    dlcf->health = ngx_http_dsa_pool_find(cf, &value[1]);
    if (dlcf->health == NULL) {
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_dsa_health_handler;

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_dsa_prometheus_handler;

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_positive(ngx_conf_t *cf, void *post, void *data)
{
    ngx_msec_t *value = data;

    return *value == 0 ? "must be more than 0" : NGX_CONF_OK;
}


static void *
ngx_http_dsa_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_main_conf_t));
    if (mcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&mcf->pools, cf->pool, 4,
                       sizeof(ngx_http_dsa_pool_t *))
        != NGX_OK)
    {
        return NULL;
    }

    return mcf;
}


static void *
ngx_http_dsa_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_dsa_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->pool = NULL;
     *     conf->health = NULL;
     */

    conf->tenant = NGX_CONF_UNSET_PTR;
    conf->keepalive = NGX_CONF_UNSET_MSEC;
    conf->keepalive_json = NGX_CONF_UNSET;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->output_limit = NGX_CONF_UNSET_SIZE;

    return conf;
}


static char *
ngx_http_dsa_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_dsa_loc_conf_t *prev = parent;
    ngx_http_dsa_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    ngx_conf_merge_ptr_value(conf->tenant, prev->tenant, NULL);
    ngx_conf_merge_msec_value(conf->keepalive, prev->keepalive, 15000);
    ngx_conf_merge_value(conf->keepalive_json, prev->keepalive_json, 0);
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 1800000);
    ngx_conf_merge_size_value(conf->output_limit, prev->output_limit,
                              256 * 1024);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (conf->pool == NULL && clcf->noname && clcf->handler == NULL
        && prev->pool != NULL)
    {
        /* the block of an "if" in a location of dsa_pass */

        conf->pool = prev->pool;
        clcf->handler = ngx_http_dsa_handler;
    }

    /* a prompt must not touch the disk: what is let in fits the buffer */

    if (conf->pool != NULL && clcf->client_max_body_size > 0
        && clcf->client_body_buffer_size < (size_t) clcf->client_max_body_size)
    {
        clcf->client_body_buffer_size = clcf->client_max_body_size;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_dsa_add_variables(ngx_conf_t *cf)
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


/*
 * The id of a request in a location of dsa_pass: the completion's of a chat,
 * else $request_id.  It lives as long as the request.
 */

static ngx_int_t
ngx_http_dsa_request_id(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_http_dsa_ctx_t         *ctx;
    ngx_http_variable_value_t  *v;
    ngx_http_dsa_main_conf_t   *mcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx != NULL && ctx->id.len != 0) {
        *id = ctx->id;
        return NGX_OK;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    v = ngx_http_get_indexed_variable(r, mcf->request_id);

    if (v == NULL || v->not_found) {
        return NGX_ERROR;
    }

    id->data = v->data;
    id->len = v->len;

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
        v->not_found = 1;
        return NGX_OK;
    }

    if (ngx_http_dsa_request_id(r, &id) != NGX_OK) {
        return NGX_ERROR;
    }

    v->len = id.len;
    v->data = id.data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_variable_str(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t           *s;
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    s = (ngx_str_t *) ((u_char *) ctx + data);

    if (s->len == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->len = s->len;
    v->data = s->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_variable_tokens(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    uint64_t            *n;
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL || !ctx->accepted) {
        v->not_found = 1;
        return NGX_OK;
    }

    n = (uint64_t *) ((u_char *) &ctx->usage + data);

    v->data = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (v->data == NULL) {
        return NGX_ERROR;
    }

    v->len = ngx_sprintf(v->data, "%uL", *n) - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_variable_ttft(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_msec_t           ms;
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL || !ctx->begun) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
    if (v->data == NULL) {
        return NGX_ERROR;
    }

    ms = ctx->first_token - ctx->start;

    v->len = ngx_sprintf(v->data, "%T.%03M", (time_t) (ms / 1000), ms % 1000)
             - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_variable_finish(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx == NULL || ctx->finish == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = (u_char *) ctx->finish;
    v->len = ngx_strlen(ctx->finish);
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_init(ngx_conf_t *cf)
{
    ngx_str_t                    name;
    ngx_uint_t                   i;
    ngx_http_handler_pt         *h;
    ngx_http_dsa_pool_t        **pools;
    ngx_http_dsa_main_conf_t    *mcf;
    ngx_http_core_main_conf_t   *cmcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dsa_module);

    pools = mcf->pools.elts;

    for (i = 0; i < mcf->pools.nelts; i++) {
        if (pools[i]->sessions.nelts == 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "dsa_pool \"%V\" is not defined in %s:%ui",
                          &pools[i]->name, pools[i]->file, pools[i]->line);
            return NGX_ERROR;
        }
    }

    mcf->metrics = ngx_http_dsa_metrics_zone(cf);
    if (mcf->metrics == NULL) {
        return NGX_ERROR;
    }

    /* without an index each evaluation of the variable draws another value */

    ngx_str_set(&name, "request_id");

    mcf->request_id = ngx_http_get_variable_index(cf, &name);
    if (mcf->request_id == NGX_ERROR) {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_dsa_log_handler;

    ngx_http_dsa_filter_init(ngx_http_dsa_request_id);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_log_handler(ngx_http_request_t *r)
{
    ngx_uint_t                status;
    ngx_http_dsa_ctx_t       *ctx;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    if (dlcf->pool == NULL) {
        return NGX_OK;
    }

    status = r->err_status != 0 ? r->err_status : r->headers_out.status;

    ngx_http_dsa_metrics_request(status);

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ctx != NULL) {
        ngx_http_dsa_metrics_observe(NGX_HTTP_DSA_DURATION,
                                     ngx_current_msec - ctx->start, 1);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_dsa_pool_t       **pools;
    ngx_http_dsa_main_conf_t   *mcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_dsa_module);

    if (mcf == NULL) {
        return NGX_OK;
    }

    ngx_http_dsa_metrics_start(mcf->metrics);

    pools = mcf->pools.elts;

    for (i = 0; i < mcf->pools.nelts; i++) {
        ngx_queue_init(&pools[i]->waiting);

        if (ngx_http_dsa_pool_start(pools[i], cycle) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (mcf->redis != NULL) {
        return ngx_http_dsa_ledger_queue_init_worker(mcf->redis, cycle);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_exit_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_dsa_pool_t       **pools;
    ngx_http_dsa_main_conf_t   *mcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_dsa_module);

    if (mcf == NULL) {
        return;
    }

    pools = mcf->pools.elts;

    for (i = 0; i < mcf->pools.nelts; i++) {
        ngx_http_dsa_pool_stop(pools[i]);
    }

    if (mcf->redis != NULL) {
        ngx_http_dsa_redis_exit_worker(mcf->redis);
    }

    ngx_http_dsa_metrics_stop();
}
