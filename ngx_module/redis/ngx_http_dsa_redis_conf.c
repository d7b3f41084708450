
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_module/ledger/ngx_http_dsa_ledger.h"
#include "ngx_http_dsa_redis_conf.h"


#define NGX_HTTP_DSA_REDIS_PORT      6379
#define NGX_HTTP_DSA_REDIS_SENTINEL  26379      /* its port */
#define NGX_HTTP_DSA_REDIS_PASSWORD  4096       /* bytes of the file */

_Static_assert(NGX_HTTP_DSA_LEDGER_MAX == 1000000,
               "the error of queue= names the limit");
_Static_assert(DSA_SCHEMA_QUOTA_MAX == 1000000000000LL,
               "the errors of quota= and objects= name the limit");
_Static_assert(DSA_SCHEMA_TTL_MAX == 100 * 365 * 24 * 3600LL,
               "the error of ttl= names the limit");


#define is(str, literal)                                                      \
    ((str)->len == sizeof(literal) - 1                                        \
     && ngx_strncmp((str)->data, literal, sizeof(literal) - 1) == 0)


static ngx_uint_t ngx_http_dsa_redis_is_address(const ngx_str_t *arg);
static char *ngx_http_dsa_redis_address(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_http_dsa_redis_conf_t *conf, ngx_str_t *arg);
static char *ngx_http_dsa_redis_parameter(ngx_conf_t *cf,
    ngx_http_dsa_redis_conf_t *conf, ngx_str_t *arg);
static ngx_int_t ngx_http_dsa_redis_storage_parameter(
    dsa_schema_storage_t *storage, const ngx_str_t *name, ngx_str_t *value,
    const char **expected);
static ngx_int_t ngx_http_dsa_redis_queue_file(ngx_conf_t *cf,
    const ngx_str_t *path);
static char *ngx_http_dsa_redis_password(ngx_conf_t *cf, ngx_str_t *password,
    ngx_str_t *name);


char *
ngx_http_dsa_redis_conf_read(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_http_dsa_redis_conf_t *conf)
{
    char        *rv;
    ngx_str_t   *value;
    ngx_uint_t   i;

    ngx_memzero(conf, sizeof(ngx_http_dsa_redis_conf_t));

    value = cf->args->elts;

    conf->timeout = 1000;
    conf->connect_timeout = 1000;
    conf->queue = 20000;
    conf->storage.ttl = DSA_SCHEMA_CONVERSATION_TTL;
    conf->storage.max_bytes = DSA_SCHEMA_QUOTA_BYTES;
    conf->storage.max_objects = DSA_SCHEMA_QUOTA_OBJECTS;

    conf->addrs = ngx_array_create(cf->pool, 2, sizeof(ngx_addr_t));
    conf->hosts = ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
    conf->tls = ngx_pcalloc(cf->pool, sizeof(ngx_http_dsa_redis_tls_t));

    if (conf->addrs == NULL || conf->hosts == NULL || conf->tls == NULL) {
        return NGX_CONF_ERROR;
    }

    /* parameters are read first, because the default port depends on them */

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_http_dsa_redis_is_address(&value[i])) {
            continue;
        }

        rv = ngx_http_dsa_redis_parameter(cf, conf, &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (i != 1 && !ngx_http_dsa_redis_is_address(&value[i])) {
            continue;
        }

        rv = ngx_http_dsa_redis_address(cf, directive, conf, &value[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (conf->sentinel_password.len != 0 && conf->sentinel.len == 0) {
        return "has \"sentinel_password_file\" without \"sentinel\"";
    }

    if (conf->user.len != 0 && conf->password.len == 0) {
        return "has \"user\" without \"password_file\"";
    }

    return ngx_http_dsa_redis_tls_init(cf, conf->tls);
}


/*
 * Returns 1 if an argument after the first one is an address.  It must have a
 * port, because otherwise it could be a parameter without a value.
 */

static ngx_uint_t
ngx_http_dsa_redis_is_address(const ngx_str_t *arg)
{
    u_char  *last;

    last = arg->data + arg->len;

    return (arg->len > 5 && ngx_strncmp(arg->data, "unix:", 5) == 0)
           || (ngx_strlchr(arg->data, last, ':') != NULL
               && ngx_strlchr(arg->data, last, '=') == NULL);
}


/* Adds the addresses of a host name, all of which are tried. */

static char *
ngx_http_dsa_redis_address(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_http_dsa_redis_conf_t *conf, ngx_str_t *arg)
{
    ngx_str_t   *host;
    ngx_url_t    url;
    ngx_uint_t   i;
    ngx_addr_t  *addr;

    ngx_memzero(&url, sizeof(ngx_url_t));

    url.url = *arg;
    url.default_port = conf->sentinel.len != 0 ? NGX_HTTP_DSA_REDIS_SENTINEL
                                               : NGX_HTTP_DSA_REDIS_PORT;

    if (ngx_parse_url(cf->pool, &url) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in \"%V\" of \"%V\"",
                           url.err != NULL ? url.err : "invalid address",
                           arg, directive);
        return NGX_CONF_ERROR;
    }

    if (conf->tls->on && url.family == AF_UNIX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" of \"%V\" is a Unix "
                           "socket, on which Redis has no TLS; expected "
                           "HOST:PORT", arg, directive);
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < url.naddrs; i++) {
        addr = ngx_array_push(conf->addrs);
        host = ngx_array_push(conf->hosts);

        if (addr == NULL || host == NULL) {
            return NGX_CONF_ERROR;
        }

        *addr = url.addrs[i];
        *host = url.host;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_dsa_redis_parameter(ngx_conf_t *cf,
    ngx_http_dsa_redis_conf_t *conf, ngx_str_t *arg)
{
    u_char      *eq;
    ngx_int_t    n;
    ngx_str_t    name, value;
    const char  *expected;

    if (is(arg, "tls")) {
        conf->tls->on = 1;
        return NGX_CONF_OK;
    }

    eq = ngx_strlchr(arg->data, arg->data + arg->len, '=');

    if (eq == NULL) {
        goto invalid;
    }

    name.data = arg->data;
    name.len = eq - arg->data;
    value.data = eq + 1;
    value.len = arg->data + arg->len - value.data;

    if (is(&name, "password_file")) {
        return ngx_http_dsa_redis_password(cf, &conf->password, &value);
    }

    if (is(&name, "sentinel_password_file")) {
        return ngx_http_dsa_redis_password(cf, &conf->sentinel_password,
                                           &value);
    }

    if (is(&name, "sentinel")) {
        conf->sentinel = value;
        n = value.len != 0 ? NGX_OK : NGX_ERROR;
        expected = "the name of a primary";

    } else if (is(&name, "user")) {
        conf->user = value;
        n = value.len != 0 ? NGX_OK : NGX_ERROR;
        expected = "a name";

    } else if (is(&name, "db")) {
        n = ngx_atoi(value.data, value.len);
        conf->db = n;
        expected = "a number";

    } else if (is(&name, "queue")) {
        n = ngx_atoi(value.data, value.len);
        conf->queue = n;
        n = (n != 0 && n <= NGX_HTTP_DSA_LEDGER_MAX) ? n : NGX_ERROR;
        expected = "a number from 1 to 1000000";

    } else if (is(&name, "queue_file")) {
        conf->queue_file = value;
        n = value.len != 0
            ? ngx_conf_full_name(cf->cycle, &conf->queue_file, 0)
            : NGX_ERROR;
        expected = "a path";

        if (n == NGX_OK) {
            n = ngx_http_dsa_redis_queue_file(cf, &conf->queue_file);
            expected = "a file in a directory that exists, or a new one there";
        }

    } else if (is(&name, "timeout")) {
        n = ngx_parse_time(&value, 0);
        conf->timeout = n;
        n = n != 0 ? n : NGX_ERROR;
        expected = "a time of 1ms or more, for example 500ms";

    } else if (is(&name, "connect_timeout")) {
        n = ngx_parse_time(&value, 0);
        conf->connect_timeout = n;
        n = n != 0 ? n : NGX_ERROR;
        expected = "a time of 1ms or more, for example 500ms";

    } else {
        n = ngx_http_dsa_redis_storage_parameter(&conf->storage, &name, &value,
                                                 &expected);

        if (n == NGX_DECLINED) {
            n = ngx_http_dsa_redis_tls_parameter(conf->tls, &name, &value,
                                                 &expected);
        }

        if (n == NGX_DECLINED) {
            goto invalid;
        }
    }

    if (n >= 0) {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value in \"%V\"; "
                       "expected %s", arg, expected);

    return NGX_CONF_ERROR;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"; "
                       "expected user=, password_file=, db=, timeout=, "
                       "connect_timeout=, queue=, queue_file=, ttl=, quota=, "
                       "objects=, sentinel=, sentinel_password_file=, tls, "
                       "tls_ca=, tls_certificate=, tls_key=, tls_name=, "
                       "tls_verify=, or a further address with a port", arg);

    return NGX_CONF_ERROR;
}


/* As ngx_http_dsa_redis_tls_parameter(), for what a tenant may store. */

static ngx_int_t
ngx_http_dsa_redis_storage_parameter(dsa_schema_storage_t *storage,
    const ngx_str_t *name, ngx_str_t *value, const char **expected)
{
    int64_t  n, max;

    max = DSA_SCHEMA_QUOTA_MAX;

    if (is(name, "ttl")) {
        n = ngx_parse_time(value, 1);
        max = DSA_SCHEMA_TTL_MAX;
        storage->ttl = n;
        *expected = "a time from 1s to 100y, for example 30d";

    } else if (is(name, "quota")) {
        n = ngx_parse_offset(value);
        storage->max_bytes = n;
        *expected = "a size from 1 to 1000000000000, for example 256m";

    } else if (is(name, "objects")) {
        n = ngx_parse_offset(value);
        storage->max_objects = n;
        *expected = "a number from 1 to 1000000000000, for example 100k";

    } else {
        return NGX_DECLINED;
    }

    return n >= 1 && n <= max ? NGX_OK : NGX_ERROR;
}


/*
 * Checks that the workers will find the directory of the file.  The path is
 * absolute, and has a NUL behind it.
 */

static ngx_int_t
ngx_http_dsa_redis_queue_file(ngx_conf_t *cf, const ngx_str_t *path)
{
    u_char           *dir, *slash;
    ngx_file_info_t   fi;

    if (ngx_file_info(path->data, &fi) != NGX_FILE_ERROR) {
        return ngx_is_file(&fi) ? NGX_OK : NGX_ERROR;
    }

    dir = ngx_pnalloc(cf->temp_pool, path->len + 1);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(dir, path->data, path->len + 1);

    for (slash = dir + path->len; slash > dir && *slash != '/'; slash--) {
        /* void */
    }

    slash[slash == dir ? 1 : 0] = '\0';

    return ngx_file_info(dir, &fi) != NGX_FILE_ERROR && ngx_is_dir(&fi)
           ? NGX_OK : NGX_ERROR;
}


static char *
ngx_http_dsa_redis_password(ngx_conf_t *cf, ngx_str_t *password,
    ngx_str_t *name)
{
    u_char           buf[NGX_HTTP_DSA_REDIS_PASSWORD], *p;
    ssize_t          n;
    ngx_str_t        path;
    ngx_file_t       file;
    ngx_file_info_t  fi;

    path = *name;

    if (path.len == 0 || ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return "has an invalid \"password_file\"";
    }

    ngx_memzero(&file, sizeof(ngx_file_t));
    file.name = path;
    file.log = cf->log;

    file.fd = ngx_open_file(path.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (file.fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", &path);
        return NGX_CONF_ERROR;
    }

    n = NGX_ERROR;

    if (ngx_fd_info(file.fd, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_fd_info_n " \"%V\" failed", &path);
        goto done;
    }

    if (ngx_file_access(&fi) & (S_IROTH | S_IWOTH)) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "\"%V\" contains a password "
                           "and is open to every user; its mode should be "
                           "0600", &path);
    }

    n = ngx_read_file(&file, buf, sizeof(buf), 0);

    if (n == NGX_ERROR) {
        goto done;
    }

    while (n > 0 && (buf[n - 1] == LF || buf[n - 1] == CR)) {
        n--;
    }

    if (n == 0 || n == sizeof(buf)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" must contain a "
                           "password of 1 to %uz bytes", &path,
                           sizeof(buf) - 1);
        n = NGX_ERROR;
        goto done;
    }

    p = ngx_pnalloc(cf->pool, n);
    if (p == NULL) {
        n = NGX_ERROR;
        goto done;
    }

    ngx_memcpy(p, buf, n);
    password->data = p;
    password->len = n;

done:

    ngx_explicit_memzero(buf, sizeof(buf));

    if (ngx_close_file(file.fd) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_ALERT, cf, ngx_errno,
                           ngx_close_file_n " \"%V\" failed", &path);
    }

    return n == NGX_ERROR ? NGX_CONF_ERROR : NGX_CONF_OK;
}
