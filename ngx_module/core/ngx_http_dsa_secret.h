
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
 * The keys of the server for data that its clients keep for it, see
 * ngx_http_dsa_seal.h.  All workers have the same keys.  The first one
 * encrypts.  Data that was encrypted with another one is accepted as well, so
 * that operators can replace a key without refusing what clients keep.
 */

#define NGX_HTTP_DSA_SECRET   32        /* bytes of a key */
#define NGX_HTTP_DSA_SECRETS  4         /* most keys */

typedef struct ngx_http_dsa_secret_s {
    ngx_uint_t    n;                    /* keys; at least 1 */
    ngx_uint_t    random;               /* 1: the key was made at start */
    u_char        keys[NGX_HTTP_DSA_SECRETS][NGX_HTTP_DSA_SECRET];
} ngx_http_dsa_secret_t;


/* The directive dsa_secret FILE...; */
char *ngx_http_dsa_secret_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Without the directive: copies the random key of the old configuration on a
 * reload, or makes a random key.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_http_dsa_secret_init(ngx_conf_t *cf,
    ngx_http_dsa_main_conf_t *mcf);


#endif /* _NGX_HTTP_DSA_SECRET_H_INCLUDED_ */
