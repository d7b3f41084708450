
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_POOL_CONF_H_INCLUDED_
#define _NGX_HTTP_DSA_POOL_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_dsa_pool.h"


/* The block dsa_pool. */
char *ngx_http_dsa_pool_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * The pool of this name.  It may be named before it is defined, as an upstream
 * may.  NULL: no memory.
 */
ngx_http_dsa_pool_t *ngx_http_dsa_pool_find(ngx_conf_t *cf, ngx_str_t *name);

/* After the configuration was read: whether each pool is defined. */
ngx_int_t ngx_http_dsa_pool_conf_check(ngx_conf_t *cf, ngx_array_t *pools);


#endif /* _NGX_HTTP_DSA_POOL_CONF_H_INCLUDED_ */
