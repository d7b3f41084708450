
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <openssl/rand.h>
#include <openssl/sha.h>

#include "ngx_http_dsa_secret.h"


#define NGX_HTTP_DSA_SECRET_MIN  32         /* bytes of the file */
#define NGX_HTTP_DSA_SECRET_MAX  4096

_Static_assert(NGX_HTTP_DSA_SECRET == SHA256_DIGEST_LENGTH,
               "a key is a digest");


static char *ngx_http_dsa_secret_add(ngx_conf_t *cf,
    ngx_http_dsa_secret_t *secret, ngx_str_t *name);
static ssize_t ngx_http_dsa_secret_read(ngx_conf_t *cf, ngx_str_t *name,
    u_char *buf, size_t size);


char *
ngx_http_dsa_secret_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_main_conf_t *mcf = conf;

    char        *rv;
    ngx_str_t   *value;
    ngx_uint_t   i;

    if (mcf->secret != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts - 1 > NGX_HTTP_DSA_SECRETS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"dsa_secret\" has %ui files; expected 1 to %d",
                           cf->args->nelts - 1, NGX_HTTP_DSA_SECRETS);
        return NGX_CONF_ERROR;
    }

    mcf->secret = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_secret_t));
    if (mcf->secret == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_dsa_secret_add(cf, mcf->secret, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_secret_add(ngx_conf_t *cf, ngx_http_dsa_secret_t *secret,
    ngx_str_t *name)
{
    u_char      *key, buf[NGX_HTTP_DSA_SECRET_MAX + 1];
    ssize_t      n;
    ngx_uint_t   i;

    if (ngx_conf_full_name(cf->cycle, name, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    n = ngx_http_dsa_secret_read(cf, name, buf, sizeof(buf));

    if (n == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    if (n < NGX_HTTP_DSA_SECRET_MIN || n > NGX_HTTP_DSA_SECRET_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" has %z bytes; expected %d to %d random "
                           "bytes, for example of \"openssl rand 32\"",
                           name, n, NGX_HTTP_DSA_SECRET_MIN,
                           NGX_HTTP_DSA_SECRET_MAX);
        return NGX_CONF_ERROR;
    }

    key = secret->keys[secret->n];

    SHA256(buf, n, key);
    ngx_explicit_memzero(buf, sizeof(buf));

    /* a rotation that copied the new file over the old one loses the old key */

    for (i = 0; i < secret->n; i++) {
        if (ngx_memcmp(secret->keys[i], key, NGX_HTTP_DSA_SECRET) == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" of \"dsa_secret\" has the content of "
                               "another of its files; expected different "
                               "secrets", name);
            return NGX_CONF_ERROR;
        }
    }

    secret->n++;

    return NGX_CONF_OK;
}


static ssize_t
ngx_http_dsa_secret_read(ngx_conf_t *cf, ngx_str_t *name, u_char *buf,
    size_t size)
{
    ssize_t   n;
    ngx_fd_t  fd;

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" of \"dsa_secret\" failed; "
                           "expected a file of %d to %d random bytes, for "
                           "example of \"openssl rand 32\"", name,
                           NGX_HTTP_DSA_SECRET_MIN, NGX_HTTP_DSA_SECRET_MAX);
        return NGX_ERROR;
    }

    n = ngx_read_fd(fd, buf, size);

    if (n == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_read_fd_n " \"%V\" failed", name);
        n = NGX_ERROR;
    }

    (void) ngx_close_file(fd);

    return n;
}


ngx_int_t
ngx_http_dsa_secret_init(ngx_conf_t *cf, ngx_http_dsa_main_conf_t *mcf)
{
    ngx_uint_t                 i;
    ngx_cycle_t               *old;
    ngx_http_dsa_main_conf_t  *previous;

    if (mcf->secret != NULL) {
        return NGX_OK;
    }

    mcf->secret = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_secret_t));
    if (mcf->secret == NULL) {
        return NGX_ERROR;
    }

    old = cf->cycle->old_cycle;
    previous = NULL;

    /*
     * The first cycle of a process replaces the init cycle, which has no
     * configuration.
     */

    if (old != NULL && !ngx_is_init_cycle(old)) {

        /* before a reload the module may not have been loaded */

        for (i = 0; i < old->modules_n; i++) {
            if (old->modules[i] == &ngx_http_dsa_module) {
                previous = ngx_http_cycle_get_module_main_conf(old,
                                                        ngx_http_dsa_module);
            }
        }
    }

    if (previous != NULL && previous->secret->random) {
        *mcf->secret = *previous->secret;
        return NGX_OK;
    }

    mcf->secret->n = 1;
    mcf->secret->random = 1;

    if (RAND_bytes(mcf->secret->keys[0], NGX_HTTP_DSA_SECRET) != 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "RAND_bytes() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}
