
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
               "the key is a digest");


static ssize_t ngx_http_dsa_secret_read(ngx_conf_t *cf, ngx_str_t *name,
    u_char *buf, size_t size);


char *
ngx_http_dsa_secret_directive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dsa_main_conf_t *mcf = conf;

    u_char      buf[NGX_HTTP_DSA_SECRET_MAX + 1];
    ssize_t     n;
    ngx_str_t  *value;

    if (mcf->secret_file) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    n = ngx_http_dsa_secret_read(cf, &value[1], buf, sizeof(buf));

    if (n == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    if (n < NGX_HTTP_DSA_SECRET_MIN || n > NGX_HTTP_DSA_SECRET_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" has %z bytes; expected %d to %d random "
                           "bytes, for example of \"openssl rand 32\"",
                           &value[1], n, NGX_HTTP_DSA_SECRET_MIN,
                           NGX_HTTP_DSA_SECRET_MAX);
        return NGX_CONF_ERROR;
    }

    SHA256(buf, n, mcf->secret);
    ngx_explicit_memzero(buf, sizeof(buf));

    mcf->secret_file = 1;

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

    if (mcf->secret_file) {
        return NGX_OK;
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

    if (previous != NULL && !previous->secret_file) {
        ngx_memcpy(mcf->secret, previous->secret, NGX_HTTP_DSA_SECRET);
        return NGX_OK;
    }

    if (RAND_bytes(mcf->secret, NGX_HTTP_DSA_SECRET) != 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "RAND_bytes() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}
