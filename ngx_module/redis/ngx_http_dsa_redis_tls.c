
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_http_dsa_redis_tls.h"


/* certificates between that of the server and the CA */

#define NGX_HTTP_DSA_REDIS_TLS_DEPTH  9


typedef struct {
    ngx_str_t    name;
    size_t       offset;                /* of an ngx_str_t */
    const char  *expected;
} ngx_http_dsa_redis_tls_parameter_t;


static ngx_int_t ngx_http_dsa_redis_tls_name(ngx_connection_t *c,
    const ngx_str_t *name);


static const ngx_http_dsa_redis_tls_parameter_t
    ngx_http_dsa_redis_tls_parameters[] =
{
    { ngx_string("tls_ca"), offsetof(ngx_http_dsa_redis_tls_t, ca),
      "a file with certificates of CAs" },

    { ngx_string("tls_certificate"),
      offsetof(ngx_http_dsa_redis_tls_t, certificate),
      "a file with a certificate" },

    { ngx_string("tls_key"), offsetof(ngx_http_dsa_redis_tls_t, key),
      "a file with the key of tls_certificate=" },

    { ngx_string("tls_name"), offsetof(ngx_http_dsa_redis_tls_t, name),
      "a name or an IP address" },

    { ngx_null_string, 0, NULL }
};


#define ngx_http_dsa_redis_tls_is(str, literal)                               \
    ((str)->len == sizeof(literal) - 1                                        \
     && ngx_strncmp((str)->data, literal, sizeof(literal) - 1) == 0)


ngx_int_t
ngx_http_dsa_redis_tls_parameter(ngx_http_dsa_redis_tls_t *tls,
    const ngx_str_t *name, const ngx_str_t *value, const char **expected)
{
    ngx_str_t                                 *field;
    const ngx_http_dsa_redis_tls_parameter_t  *p;

    if (ngx_http_dsa_redis_tls_is(name, "tls_verify")) {
        tls->insecure = ngx_http_dsa_redis_tls_is(value, "off");
        *expected = "on or off";

        return tls->insecure || ngx_http_dsa_redis_tls_is(value, "on")
               ? NGX_OK : NGX_ERROR;
    }

    for (p = ngx_http_dsa_redis_tls_parameters; p->name.len != 0; p++) {

        if (name->len != p->name.len
            || ngx_strncmp(name->data, p->name.data, name->len) != 0)
        {
            continue;
        }

        field = (ngx_str_t *) ((char *) tls + p->offset);
        *field = *value;
        *expected = p->expected;

        return value->len != 0 ? NGX_OK : NGX_ERROR;
    }

    return NGX_DECLINED;
}


char *
ngx_http_dsa_redis_tls_init(ngx_conf_t *cf, ngx_http_dsa_redis_tls_t *tls)
{
    ngx_pool_cleanup_t  *cln;

    if (!tls->on) {
        return tls->ca.len != 0 || tls->certificate.len != 0
               || tls->key.len != 0 || tls->name.len != 0 || tls->insecure
               ? "has a parameter of TLS without \"tls\"" : NGX_CONF_OK;
    }

    if ((tls->certificate.len == 0) != (tls->key.len == 0)) {
        return "has one of \"tls_certificate\" and \"tls_key\"; expected both "
               "or none";
    }

    tls->ssl.log = cf->log;

    if (ngx_ssl_create(&tls->ssl, NGX_SSL_TLSv1_2|NGX_SSL_TLSv1_3, NULL)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        ngx_ssl_cleanup_ctx(&tls->ssl);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_ssl_cleanup_ctx;
    cln->data = &tls->ssl;

    if (tls->certificate.len != 0
        && ngx_ssl_certificate(cf, &tls->ssl, &tls->certificate, &tls->key,
                               NULL)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (tls->ca.len != 0) {
        return ngx_ssl_trusted_certificate(cf, &tls->ssl, &tls->ca,
                                           NGX_HTTP_DSA_REDIS_TLS_DEPTH)
               == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
    }

    if (SSL_CTX_set_default_verify_paths(tls->ssl.ctx) == 0) {
        ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                      "SSL_CTX_set_default_verify_paths() failed");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_dsa_redis_tls_start(ngx_http_dsa_redis_tls_t *tls,
    ngx_connection_t *c, const ngx_str_t *host)
{
    /*
     * Without NGX_SSL_BUFFER, c->sent has only what OpenSSL has taken, so that
     * the rest of a command can be passed again.
     */

    if (ngx_ssl_create_connection(&tls->ssl, c, NGX_SSL_CLIENT) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_dsa_redis_tls_name(c, tls->name.len != 0 ? &tls->name : host)
        != NGX_OK)
    {
        ngx_ssl_error(NGX_LOG_ERR, c->log, 0, "the name of Redis cannot be "
                      "set for TLS");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Sets the name for SNI, which has no IP addresses, and for verification. */

static ngx_int_t
ngx_http_dsa_redis_tls_name(ngx_connection_t *c, const ngx_str_t *name)
{
    u_char             *text;
    ngx_ssl_conn_t     *ssl;
    X509_VERIFY_PARAM  *param;

    text = ngx_pnalloc(c->pool, name->len + 1);
    if (text == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(text, name->data, name->len + 1);

    ssl = c->ssl->connection;
    param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, (char *) text) == 1) {
        return NGX_OK;
    }

    ERR_clear_error();

    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    return X509_VERIFY_PARAM_set1_host(param, (char *) text, name->len) == 1
           && SSL_set_tlsext_host_name(ssl, (char *) text) == 1
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_dsa_redis_tls_verify(ngx_http_dsa_redis_tls_t *tls,
    ngx_connection_t *c, const ngx_str_t *host, ngx_str_t *detail,
    u_char buf[NGX_HTTP_DSA_REDIS_TLS_DETAIL])
{
    long         result;
    const char  *expected;

    result = SSL_get_verify_result(c->ssl->connection);

    if (tls->insecure || result == X509_V_OK) {
        return NGX_OK;
    }

    switch (result) {

    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        expected = "one with this name, or tls_name=";
        break;

    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        expected = "one that is valid now";
        break;

    default:
        expected = "one of a CA in the file of tls_ca=";
    }

    if (tls->name.len != 0) {
        host = &tls->name;
    }

    detail->data = buf;
    detail->len = ngx_snprintf(buf, NGX_HTTP_DSA_REDIS_TLS_DETAIL,
                               "%l, %s, for the name %V; expected %s", result,
                               X509_verify_cert_error_string(result), host,
                               expected)
                  - buf;

    return NGX_DECLINED;
}
