
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_POOL_CONF_H_INCLUDED_
#define _NGX_HTTP_DSA_POOL_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_pool.h"


/* The directive dsa_pool, with its block. */
char *ngx_http_dsa_pool_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Returns the pool with this name.  As with an upstream, a name may be used
 * before it is defined.  NULL: out of memory.
 */
ngx_http_dsa_pool_t *ngx_http_dsa_pool_find(ngx_conf_t *cf, ngx_str_t *name);

/* Checks after the configuration was read that each pool is defined. */
ngx_int_t ngx_http_dsa_pool_conf_check(ngx_conf_t *cf, ngx_array_t *pools);


#endif /* _NGX_HTTP_DSA_POOL_CONF_H_INCLUDED_ */
