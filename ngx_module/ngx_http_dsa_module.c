
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "redis_schema/retained.h"

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/account/ngx_http_dsa_keys_sync.h"
#include "ngx_module/account/ngx_http_dsa_price.h"
#include "ngx_module/account/ngx_http_dsa_tenants.h"
#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_ctx.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/core/ngx_http_dsa_old.h"
#include "ngx_module/core/ngx_http_dsa_secret.h"
#include "ngx_module/core/ngx_http_dsa_series.h"
#include "ngx_module/core/ngx_http_dsa_value.h"
#include "ngx_module/engine/ngx_http_dsa_aliases.h"
#include "ngx_module/engine/ngx_http_dsa_pool_conf.h"
#include "ngx_module/front/ngx_http_dsa_hash.h"
#include "ngx_module/http/ngx_http_dsa_authorization.h"
#include "ngx_module/http/ngx_http_dsa_cors.h"
#include "ngx_module/http/ngx_http_dsa_filter.h"
#include "ngx_module/http/ngx_http_dsa_work.h"
#include "ngx_module/objects/ngx_http_dsa_retention.h"
#include "ngx_module/objects/ngx_http_dsa_retention_queue.h"
#include "ngx_module/observe/ngx_http_dsa_console.h"
#include "ngx_module/observe/ngx_http_dsa_health.h"
#include "ngx_module/observe/ngx_http_dsa_prometheus.h"
#include "ngx_module/observe/ngx_http_dsa_status.h"
#include "ngx_module/redis/ngx_http_dsa_redis.h"
#include "ngx_module/request/ngx_http_dsa_handler.h"
#include "ngx_module/request/ngx_http_dsa_shutdown.h"
#include "ngx_module/request/ngx_http_dsa_variables.h"
#include "ngx_module/request/ngx_http_dsa_window.h"
#include "ngx_module/responses/ngx_http_dsa_responses_stored.h"
#include "ngx_module/store/ngx_http_dsa_ledger_queue.h"


/* percent, the default of "threshold=" of dsa_context_strategy */

#define NGX_HTTP_DSA_CONTEXT_THRESHOLD  80


static char *ngx_http_dsa_keys(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_pass(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_health(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_console(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_metrics(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_status(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_dsa_serve_pool(ngx_conf_t *cf,
    ngx_http_dsa_loc_conf_t *dlcf, ngx_http_dsa_pool_t **pool,
    ngx_http_handler_pt handler);
static char *ngx_http_dsa_serve(ngx_conf_t *cf, ngx_http_dsa_loc_conf_t *dlcf,
    ngx_http_handler_pt handler);
static char *ngx_http_dsa_positive(ngx_conf_t *cf, void *post, void *data);
static void *ngx_http_dsa_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_dsa_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_dsa_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_dsa_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_dsa_add_handler(ngx_conf_t *cf,
    ngx_http_phases phase, ngx_http_handler_pt handler);
static ngx_int_t ngx_http_dsa_init_process(ngx_cycle_t *cycle);
static void ngx_http_dsa_exit_process(ngx_cycle_t *cycle);


/* the default of dsa_cors: no origin */

static ngx_array_t  ngx_http_dsa_no_cors;


static ngx_conf_post_t  ngx_http_dsa_positive_post = {
    ngx_http_dsa_positive
};


static ngx_conf_enum_t  ngx_http_dsa_retention_modes[] = {
    { ngx_string("off"), NGX_HTTP_DSA_RETENTION_OFF },
    { ngx_string("on"), NGX_HTTP_DSA_RETENTION_ON },
    { ngx_string("strict"), NGX_HTTP_DSA_RETENTION_STRICT },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_dsa_switch[] = {
    { ngx_string("off"), 0 },
    { ngx_string("on"), 1 },
    { ngx_null_string, 0 }
};


static ngx_http_dsa_parameter_t  ngx_http_dsa_keepalive = {

    { ngx_null_string, 0, ngx_http_dsa_value_msec, 0,
      offsetof(ngx_http_dsa_loc_conf_t, keepalive), NULL },

    { ngx_string("json="), 0, ngx_http_dsa_value_enum, 0,
      offsetof(ngx_http_dsa_loc_conf_t, keepalive_json),
      ngx_http_dsa_switch },

    0
};


static ngx_http_dsa_parameter_t  ngx_http_dsa_context_strategy = {

    { ngx_null_string, 0, ngx_http_dsa_value_enum, 0,
      offsetof(ngx_http_dsa_loc_conf_t, context_strategy),
      ngx_http_dsa_window_strategies },

    { ngx_string("threshold="), 0, ngx_http_dsa_window_threshold, 0,
      offsetof(ngx_http_dsa_loc_conf_t, context_threshold), NULL },

    NGX_HTTP_DSA_CONTEXT_THRESHOLD
};


static ngx_http_dsa_parameter_t  ngx_http_dsa_retention = {

    { ngx_null_string, 0, ngx_http_dsa_value_enum, 0,
      offsetof(ngx_http_dsa_loc_conf_t, retention),
      ngx_http_dsa_retention_modes },

    { ngx_string("ttl="), 0, ngx_http_dsa_value_msec, 0,
      offsetof(ngx_http_dsa_loc_conf_t, retention_ttl),
      &ngx_http_dsa_positive_post },

    DSA_SCHEMA_RETAINED_TTL
};


static ngx_command_t  ngx_http_dsa_commands[] = {

    { ngx_string("dsa_pool"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_BLOCK|NGX_CONF_TAKE1,
      ngx_http_dsa_pool_directive,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_model_alias"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_dsa_aliases_directive,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_dsa_main_conf_t, aliases),
      NULL },

    { ngx_string("dsa_redis"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_dsa_redis_directive,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_dsa_main_conf_t, redis),
      NULL },

    { ngx_string("dsa_price"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_dsa_price_directive,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_secret"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_dsa_secret_directive,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_keys"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE2,
      ngx_http_dsa_keys,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_pass"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_health"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_dsa_health,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_console"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_console,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_dsa_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_dsa_status,
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
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_dsa_value_parameter,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_dsa_keepalive },

    { ngx_string("dsa_ignore_client_abort"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, ignore_client_abort),
      NULL },

    { ngx_string("dsa_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_value_msec,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, timeout),
      &ngx_http_dsa_positive_post },

    { ngx_string("dsa_output_limit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_value_size,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, output_limit),
      NULL },

    { ngx_string("dsa_cors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_dsa_cors_directive,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dsa_context_strategy"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_dsa_value_parameter,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_dsa_context_strategy },

    { ngx_string("dsa_retention"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_dsa_value_parameter,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_dsa_retention },

    { ngx_string("dsa_rollout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_dsa_value_size,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dsa_loc_conf_t, rollout),
      NULL },

    { ngx_string("dsa_hash"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE123,
      ngx_http_dsa_hash_directive,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      NGX_HTTP_DSA_OLD_COMMANDS,

      ngx_null_command
};


static ngx_http_module_t  ngx_http_dsa_module_ctx = {
    ngx_http_dsa_variables_add,            /* preconfiguration */
    ngx_http_dsa_init,                     /* postconfiguration */

    ngx_http_dsa_create_main_conf,         /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_dsa_hash_create_conf,         /* create server configuration */
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


static char *
ngx_http_dsa_keys(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_main_conf_t *mcf = conf;

    if (mcf->keys_sync != NULL) {
        return "is duplicate";
    }

    mcf->keys_sync = ngx_http_dsa_keys_sync_create(cf);

    if (mcf->keys_sync == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->keys = ngx_http_dsa_keys_sync_keys(mcf->keys_sync);

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    return ngx_http_dsa_serve_pool(cf, dlcf, &dlcf->pool,
                                   ngx_http_dsa_handler);
}


static char *
ngx_http_dsa_health(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    ngx_str_t            *value;
    ngx_http_handler_pt   handler;

    value = cf->args->elts;
    handler = ngx_http_dsa_health_ready_handler;

    if (cf->args->nelts == 3) {
        handler = ngx_http_dsa_health_live_handler;

        if (value[2].len != 4 || ngx_strncmp(value[2].data, "live", 4) != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" of \"dsa_health\"; "
                               "expected \"live\" or none", &value[2]);
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_dsa_serve_pool(cf, dlcf, &dlcf->health, handler);
}


static char *
ngx_http_dsa_console(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    ngx_str_t  *value;

    if (dlcf->console != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_dsa_pool_find(cf, &value[1]) == NULL) {
        return NGX_CONF_ERROR;
    }

    dlcf->console = ngx_http_dsa_console_create(cf, &value[1]);
    if (dlcf->console == NULL) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_dsa_serve(cf, dlcf, ngx_http_dsa_console_handler);
}


static char *
ngx_http_dsa_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_loc_conf_t *dlcf = conf;

    char                      *rc;
    ngx_str_t                 *value;
    ngx_http_dsa_main_conf_t  *mcf;

    if (cf->args->nelts == 1) {
        return ngx_http_dsa_serve(cf, dlcf, ngx_http_dsa_prometheus_handler);
    }

    rc = ngx_http_dsa_serve_pool(cf, dlcf, &dlcf->metrics,
                                 ngx_http_dsa_prometheus_handler);

    if (rc != NGX_CONF_OK) {
        return rc;
    }

    value = cf->args->elts;

    if (value[1].len >= NGX_HTTP_DSA_SERIES_TEXT) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the pool \"%V\" of \"dsa_metrics\" has %uz bytes; "
                           "expected a name of at most %d, because it is a "
                           "label", &value[1], value[1].len,
                           NGX_HTTP_DSA_SERIES_TEXT - 1);
        return NGX_CONF_ERROR;
    }

    dlcf->metrics->series = 1;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dsa_module);

    mcf->series = ngx_http_dsa_series_zone(cf);

    return mcf->series != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static char *
ngx_http_dsa_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_dsa_serve(cf, conf, ngx_http_dsa_status_handler);
}


/* A directive with the name of a pool, whose handler serves the location. */

static char *
ngx_http_dsa_serve_pool(ngx_conf_t *cf, ngx_http_dsa_loc_conf_t *dlcf,
    ngx_http_dsa_pool_t **pool, ngx_http_handler_pt handler)
{
    ngx_str_t  *value;

    if (*pool != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    *pool = ngx_http_dsa_pool_find(cf, &value[1]);
    if (*pool == NULL) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_dsa_serve(cf, dlcf, handler);
}


/* A location has one handler of its content; the last would win silently. */

static char *
ngx_http_dsa_serve(ngx_conf_t *cf, ngx_http_dsa_loc_conf_t *dlcf,
    ngx_http_handler_pt handler)
{
    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    value = cf->args->elts;
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (dlcf->handler == handler) {
        return "is duplicate";
    }

    if (clcf->handler != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" follows another directive that answers "
                           "the requests of location \"%V\", such as "
                           "\"proxy_pass\"; expected one of them",
                           &value[0], &clcf->name);
        return NGX_CONF_ERROR;
    }

    clcf->handler = handler;
    dlcf->handler = handler;
    dlcf->serves = value[0];

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
     *     conf->metrics = NULL;
     *     conf->console = NULL;
     *     conf->handler = NULL;
     *     conf->serves = { 0, NULL };
     */

    conf->tenant = NGX_CONF_UNSET_PTR;
    conf->keepalive = NGX_CONF_UNSET_MSEC;
    conf->keepalive_json = NGX_CONF_UNSET_UINT;
    conf->ignore_client_abort = NGX_CONF_UNSET;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->output_limit = NGX_CONF_UNSET_SIZE;
    conf->cors = NGX_CONF_UNSET_PTR;
    conf->context_strategy = NGX_CONF_UNSET_UINT;
    conf->context_threshold = NGX_CONF_UNSET;
    conf->retention = NGX_CONF_UNSET_UINT;
    conf->retention_ttl = NGX_CONF_UNSET_MSEC;
    conf->rollout = NGX_CONF_UNSET_SIZE;

    return conf;
}


static char *
ngx_http_dsa_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_dsa_loc_conf_t *prev = parent;
    ngx_http_dsa_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_dsa_main_conf_t  *mcf;

    ngx_conf_merge_ptr_value(conf->tenant, prev->tenant, NULL);
    ngx_conf_merge_msec_value(conf->keepalive, prev->keepalive, 15000);
    ngx_conf_merge_uint_value(conf->keepalive_json, prev->keepalive_json, 0);
    ngx_conf_merge_value(conf->ignore_client_abort,
                         prev->ignore_client_abort, 0);
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 1800000);
    ngx_conf_merge_size_value(conf->output_limit, prev->output_limit,
                              256 * 1024);
    ngx_conf_merge_ptr_value(conf->cors, prev->cors, &ngx_http_dsa_no_cors);
    ngx_conf_merge_uint_value(conf->context_strategy, prev->context_strategy,
                              DSA_WINDOW_NONE);
    ngx_conf_merge_value(conf->context_threshold, prev->context_threshold,
                         NGX_HTTP_DSA_CONTEXT_THRESHOLD);
    ngx_conf_merge_uint_value(conf->retention, prev->retention,
                              NGX_HTTP_DSA_RETENTION_ON);
    ngx_conf_merge_msec_value(conf->retention_ttl, prev->retention_ttl,
                              DSA_SCHEMA_RETAINED_TTL);
    ngx_conf_merge_size_value(conf->rollout, prev->rollout, 0);

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dsa_module);

    if (conf->pool != NULL && mcf->redis == NULL
        && conf->retention == NGX_HTTP_DSA_RETENTION_STRICT)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"dsa_retention strict\" needs \"dsa_redis\"; "
                           "expected that directive in the http block");
        return NGX_CONF_ERROR;
    }

    if (conf->pool != NULL && mcf->keys != NULL && conf->tenant != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"dsa_tenant\" and \"dsa_keys\" exclude each "
                           "other in a location of \"dsa_pass\", because the "
                           "tenant of a request is that of its key");
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (conf->handler != NULL && clcf->handler != conf->handler) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" of location \"%V\" has no effect, because "
                           "another directive, such as \"proxy_pass\", answers "
                           "its requests; expected one of them",
                           &conf->serves, &clcf->name);
        return NGX_CONF_ERROR;
    }

    if (conf->pool == NULL && clcf->noname && clcf->handler == NULL
        && prev->pool != NULL)
    {
        /* the block of an "if" in a location of dsa_pass */

        conf->pool = prev->pool;
        clcf->handler = ngx_http_dsa_handler;
    }

    /* no prompt is written to disk, so the buffer holds the largest body */

    if (conf->pool != NULL && clcf->client_max_body_size > 0
        && clcf->client_body_buffer_size < (size_t) clcf->client_max_body_size)
    {
        clcf->client_body_buffer_size = clcf->client_max_body_size;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_dsa_init(ngx_conf_t *cf)
{
    ngx_str_t                  name;
    ngx_http_dsa_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dsa_module);

    ngx_http_dsa_chat_stored = &ngx_http_dsa_responses_stored;

    if (ngx_http_dsa_pool_conf_check(cf, &mcf->pools) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_price_check(cf, mcf->prices) != NGX_OK) {
        return NGX_ERROR;
    }

    if (mcf->currency.len == 0) {
        ngx_str_set(&mcf->currency, "USD");
    }

    mcf->metrics = ngx_http_dsa_metrics_zone(cf);
    if (mcf->metrics == NULL) {
        return NGX_ERROR;
    }

    if (mcf->keys_sync != NULL
        && ngx_http_dsa_keys_sync_check(cf, mcf->keys_sync, mcf->redis)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (mcf->keys_sync != NULL && mcf->redis != NULL) {
        ngx_http_dsa_ledger_keys(ngx_http_dsa_redis_ledger(mcf->redis),
                                 ngx_http_dsa_keys_max(mcf->keys));
    }

    mcf->tenants = ngx_http_dsa_tenants_zone(cf);
    if (mcf->tenants == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_secret_init(cf, mcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (mcf->pools.nelts != 0 && ngx_http_dsa_work_init(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    /* without an index each evaluation of the variable draws another value */

    ngx_str_set(&name, "request_id");

    mcf->request_id = ngx_http_get_variable_index(cf, &name);
    if (mcf->request_id == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_add_handler(cf, NGX_HTTP_LOG_PHASE,
                                 ngx_http_dsa_log_handler)
        != NGX_OK
        || ngx_http_dsa_add_handler(cf, NGX_HTTP_REWRITE_PHASE,
                                    ngx_http_dsa_cors_handler)
           != NGX_OK
        || ngx_http_dsa_add_handler(cf, NGX_HTTP_ACCESS_PHASE,
                                    ngx_http_dsa_access_handler)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_authorization_init(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_dsa_filter_init(ngx_http_dsa_request_id);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_add_handler(ngx_conf_t *cf, ngx_http_phases phase,
    ngx_http_handler_pt handler)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[phase].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = handler;

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

    if (ngx_http_dsa_shutdown_start(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_dsa_metrics_start(mcf->metrics);
    ngx_http_dsa_tenants_start(mcf->tenants, cycle);

    pools = mcf->pools.elts;

    for (i = 0; i < mcf->pools.nelts; i++) {
        ngx_http_dsa_pool_start(pools[i], cycle);
    }

    if (mcf->redis != NULL
        && ngx_http_dsa_ledger_queue_init_worker(mcf->redis, cycle) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (mcf->keys_sync != NULL) {
        return ngx_http_dsa_keys_sync_start(mcf->keys_sync, cycle);
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

    if (mcf->keys_sync != NULL) {
        ngx_http_dsa_keys_sync_stop(mcf->keys_sync);
    }

    if (mcf->redis != NULL) {
        ngx_http_dsa_retention_queue_exit();
        ngx_http_dsa_redis_exit_worker(mcf->redis);
    }

    ngx_http_dsa_burst_exit();
    ngx_http_dsa_metrics_stop();
}
