
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_http_dsa_pool_conf.h"


/* the default of prefix_zone, and its minimum, which has 1,500 entries */

#define NGX_HTTP_DSA_POOL_ZONE      (4 * 1024 * 1024)
#define NGX_HTTP_DSA_POOL_ZONE_MIN  (8 * ngx_pagesize)


static char *ngx_http_dsa_pool_line(ngx_conf_t *cf, ngx_command_t *dummy,
    void *conf);
static char *ngx_http_dsa_pool_engine(ngx_conf_t *cf,
    ngx_http_dsa_pool_t *pool);
static char *ngx_http_dsa_pool_zone(ngx_conf_t *cf,
    ngx_http_dsa_pool_t *pool);
static ngx_int_t ngx_http_dsa_pool_address(ngx_conf_t *cf,
    ngx_str_t *address);


ngx_http_dsa_pool_t *
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


char *
ngx_http_dsa_pool_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
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
    cf->handler = ngx_http_dsa_pool_line;
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

    if (pool->sessions.nelts == 1) {
        return NGX_CONF_OK;
    }

    if (pool->zone_size == 0) {
        pool->zone_size = NGX_HTTP_DSA_POOL_ZONE;
    }

    pool->route = ngx_http_dsa_route_add(cf, &pool->name,
                                         pool->sessions.nelts,
                                         pool->zone_size);

    return pool->route != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* A directive in the block. */

static char *
ngx_http_dsa_pool_line(ngx_conf_t *cf, ngx_command_t *dummy, void *conf)
{
    char       *(*set)(ngx_conf_t *cf, ngx_http_dsa_pool_t *pool);
    ngx_str_t    *value;

    value = cf->args->elts;

    if (ngx_strcmp(value[0].data, "engine") == 0) {
        set = ngx_http_dsa_pool_engine;

    } else if (ngx_strcmp(value[0].data, "prefix_zone") == 0) {
        set = ngx_http_dsa_pool_zone;

    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown directive \"%V\", expected \"engine\" "
                           "or \"prefix_zone\"", &value[0]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts != 2) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of arguments in \"%V\" directive",
                           &value[0]);
        return NGX_CONF_ERROR;
    }

    return set(cf, conf);
}


static char *
ngx_http_dsa_pool_zone(ngx_conf_t *cf, ngx_http_dsa_pool_t *pool)
{
    ssize_t     size;
    ngx_str_t  *value;

    value = cf->args->elts;

    if (pool->zone_size != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate \"prefix_zone\" in dsa_pool \"%V\"",
                           &pool->name);
        return NGX_CONF_ERROR;
    }

    size = ngx_parse_size(&value[1]);

    if (size == NGX_ERROR || (size_t) size < NGX_HTTP_DSA_POOL_ZONE_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\" of \"prefix_zone\", expected "
                           "at least %uzk", &value[1],
                           (size_t) NGX_HTTP_DSA_POOL_ZONE_MIN / 1024);
        return NGX_CONF_ERROR;
    }

    pool->zone_size = size;

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_pool_engine(ngx_conf_t *cf, ngx_http_dsa_pool_t *pool)
{
    ngx_str_t               *value;
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    value = cf->args->elts;

    if (ngx_http_dsa_pool_address(cf, &value[1]) != NGX_OK) {
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

    s->name = value[1];
    s->index = pool->sessions.nelts - 1;

    return NGX_CONF_OK;
}


/* Checks the address of an engine and logs what is wrong with it. */

static ngx_int_t
ngx_http_dsa_pool_address(ngx_conf_t *cf, ngx_str_t *address)
{
    size_t  len;

    if (address->len <= sizeof("unix:/") - 1
        || ngx_strncmp(address->data, "unix:/", sizeof("unix:/") - 1) != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid engine address \"%V\", expected "
                           "\"unix:\" and an absolute path", address);
        return NGX_ERROR;
    }

    len = address->len - (sizeof("unix:") - 1);

    if (len >= sizeof(((struct sockaddr_un *) 0)->sun_path)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "engine address \"%V\" is longer than %uz bytes",
                           address,
                           sizeof(((struct sockaddr_un *) 0)->sun_path) - 1);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_pool_conf_check(ngx_conf_t *cf, ngx_array_t *pools)
{
    ngx_uint_t             i;
    ngx_http_dsa_pool_t  **pool;

    pool = pools->elts;

    for (i = 0; i < pools->nelts; i++) {
        if (pool[i]->sessions.nelts == 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "dsa_pool \"%V\" is not defined in %s:%ui",
                          &pool[i]->name, pool[i]->file, pool[i]->line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
