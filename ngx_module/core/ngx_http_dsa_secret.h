
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SECRET_H_INCLUDED_
#define _NGX_HTTP_DSA_SECRET_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_dsa_conf.h"


/*
 * The key of the server for data that its clients keep for it, see
 * ngx_http_dsa_seal.h.  All workers have the same key.
 */

/* The directive dsa_secret FILE. */
char *ngx_http_dsa_secret_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Without the directive: copies the key of the old configuration on a reload,
 * or makes a random key.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_secret_init(ngx_conf_t *cf,
    ngx_http_dsa_main_conf_t *mcf);


#endif /* _NGX_HTTP_DSA_SECRET_H_INCLUDED_ */
