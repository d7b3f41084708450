
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "engine/pages/redis_tls.h"


struct dsa_redis_tls_s {
    SSL_CTX            *ctx;
    char               *name;           /* NULL: the host */
    int                 insecure;
};


static int dsa_tls_files(dsa_redis_tls_t *tls,
    const dsa_redis_tls_conf_t *conf, dsa_err_t *err);
static int dsa_tls_file(const char *parameter, const char *file,
    dsa_err_t *err);
static int dsa_tls_expect(SSL *ssl, const char *name);
static int dsa_tls_refused(const SSL *ssl, const char *name, dsa_err_t *err);
static int dsa_tls_again(SSL *ssl, int rc, short *events);
static int dsa_tls_failed(SSL *ssl, int rc, const char *what, dsa_err_t *err);
static const char *dsa_tls_reason(void);


dsa_redis_tls_t *
dsa_redis_tls_create(const dsa_redis_tls_conf_t *conf, dsa_err_t *err)
{
    dsa_redis_tls_t  *tls;

    if ((conf->certificate == NULL) != (conf->key == NULL)) {
        (void) dsa_error(err, "one of tls_certificate= and tls_key= is given; "
                         "expected both or none");
        return NULL;
    }

    tls = calloc(1, sizeof(dsa_redis_tls_t));

    if (tls == NULL) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));
        return NULL;
    }

    tls->insecure = conf->insecure;
    tls->name = conf->name != NULL ? strdup(conf->name) : NULL;
    tls->ctx = SSL_CTX_new(TLS_client_method());

    if (tls->ctx == NULL || (tls->name == NULL) != (conf->name == NULL)) {
        (void) dsa_error(err, "%s", strerror(ENOMEM));

    } else if (dsa_tls_files(tls, conf, err) == DSA_OK) {
        return tls;
    }

    dsa_redis_tls_destroy(tls);

    return NULL;
}


static int
dsa_tls_files(dsa_redis_tls_t *tls, const dsa_redis_tls_conf_t *conf,
    dsa_err_t *err)
{
    ERR_clear_error();

    (void) SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
    (void) SSL_CTX_set_mode(tls->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE
                                      |SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(tls->ctx, tls->insecure ? SSL_VERIFY_NONE
                                               : SSL_VERIFY_PEER, NULL);

    if (conf->ca == NULL && SSL_CTX_set_default_verify_paths(tls->ctx) != 1) {
        return dsa_error(err, "the CAs of the system cannot be read: %s; "
                         "expected tls_ca=", dsa_tls_reason());
    }

    if (conf->ca != NULL
        && SSL_CTX_load_verify_locations(tls->ctx, conf->ca, NULL) != 1)
    {
        return dsa_tls_file("tls_ca", conf->ca, err);
    }

    if (conf->certificate != NULL
        && SSL_CTX_use_certificate_chain_file(tls->ctx, conf->certificate)
           != 1)
    {
        return dsa_tls_file("tls_certificate", conf->certificate, err);
    }

    if (conf->key != NULL
        && (SSL_CTX_use_PrivateKey_file(tls->ctx, conf->key, SSL_FILETYPE_PEM)
            != 1
            || SSL_CTX_check_private_key(tls->ctx) != 1))
    {
        return dsa_tls_file("tls_key", conf->key, err);
    }

    return DSA_OK;
}


static int
dsa_tls_file(const char *parameter, const char *file, dsa_err_t *err)
{
    return dsa_error(err, "%s=%s cannot be used: %s; expected a file in PEM",
                     parameter, file, dsa_tls_reason());
}


void
dsa_redis_tls_destroy(dsa_redis_tls_t *tls)
{
    if (tls != NULL) {
        SSL_CTX_free(tls->ctx);
        free(tls->name);
        free(tls);
    }
}


dsa_redis_ssl_t *
dsa_redis_ssl_create(dsa_redis_tls_t *tls, int fd, const char *host,
    dsa_err_t *err)
{
    SSL  *ssl;

    ERR_clear_error();

    ssl = SSL_new(tls->ctx);

    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1
        || dsa_tls_expect(ssl, tls->name != NULL ? tls->name : host)
           != DSA_OK)
    {
        (void) dsa_error(err, "a session of TLS cannot be created: %s",
                         dsa_tls_reason());
        SSL_free(ssl);
        return NULL;
    }

    return ssl;
}


/* The name for the certificate and for SNI, which has no IP addresses. */

static int
dsa_tls_expect(SSL *ssl, const char *name)
{
    X509_VERIFY_PARAM  *param;

    param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1) {
        return DSA_OK;
    }

    ERR_clear_error();

    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1
           && SSL_set_tlsext_host_name(ssl, name) == 1 ? DSA_OK : DSA_ERROR;
}


void
dsa_redis_ssl_destroy(dsa_redis_ssl_t *ssl)
{
    SSL_free(ssl);
}


int
dsa_redis_ssl_handshake(const dsa_redis_tls_t *tls, dsa_redis_ssl_t *ssl,
    const char *host, short *events, dsa_err_t *err)
{
    int  rc;

    ERR_clear_error();

    rc = SSL_connect(ssl);

    if (rc == 1) {
        (void) SSL_set_app_data(ssl, ssl);
        return DSA_OK;
    }

    if (dsa_tls_again(ssl, rc, events)) {
        return DSA_AGAIN;
    }

    if (!tls->insecure && SSL_get_verify_result(ssl) != X509_V_OK) {
        return dsa_tls_refused(ssl, tls->name != NULL ? tls->name : host, err);
    }

    return dsa_tls_failed(ssl, rc, DSA_REDIS_TLS_FAILED, err);
}


static int
dsa_tls_refused(const SSL *ssl, const char *name, dsa_err_t *err)
{
    long         result;
    const char  *expected;

    result = SSL_get_verify_result(ssl);

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

    return dsa_error(err, "the certificate of Redis is not accepted: %ld, %s, "
                     "for the name %s; expected %s", result,
                     X509_verify_cert_error_string(result), name, expected);
}


int
dsa_redis_ssl_read(dsa_redis_ssl_t *ssl, void *data, size_t len, size_t *n,
    short *events, dsa_err_t *err)
{
    int  rc;

    ERR_clear_error();

    rc = SSL_read_ex(ssl, data, len, n);

    if (rc == 1) {
        (void) SSL_set_app_data(ssl, NULL);
        return DSA_OK;
    }

    return dsa_tls_again(ssl, rc, events)
           ? DSA_AGAIN : dsa_tls_failed(ssl, rc, "cannot receive", err);
}


int
dsa_redis_ssl_write(dsa_redis_ssl_t *ssl, const void *data, size_t len,
    size_t *n, short *events, dsa_err_t *err)
{
    int  rc;

    ERR_clear_error();

    rc = SSL_write_ex(ssl, data, len, n);

    if (rc == 1) {
        return DSA_OK;
    }

    return dsa_tls_again(ssl, rc, events)
           ? DSA_AGAIN : dsa_tls_failed(ssl, rc, "cannot send", err);
}


int
dsa_redis_ssl_idle(dsa_redis_ssl_t *ssl)
{
    int     rc;
    char    byte;
    short   events;
    size_t  n;

    ERR_clear_error();

    rc = SSL_peek_ex(ssl, &byte, 1, &n);

    return rc != 1 && dsa_tls_again(ssl, rc, &events);
}


/* 1 if the call must be repeated when the socket is ready for *events. */

static int
dsa_tls_again(SSL *ssl, int rc, short *events)
{
    switch (SSL_get_error(ssl, rc)) {

    case SSL_ERROR_WANT_READ:
        *events = POLLIN;
        return 1;

    case SSL_ERROR_WANT_WRITE:
        *events = POLLOUT;
        return 1;

    default:
        return 0;
    }
}


/*
 * With TLS 1.3 a server refuses a client without a certificate after the
 * handshake, and its alert may be lost with the connection.  The data of the
 * application is set from the handshake until the server has sent something.
 */

static int
dsa_tls_failed(SSL *ssl, int rc, const char *what, dsa_err_t *err)
{
    int            error;
    const char    *hint;
    unsigned long  code;

    error = errno;
    code = ERR_peek_error();
    hint = SSL_get_app_data(ssl) != NULL && SSL_get_certificate(ssl) == NULL
           ? "; if Redis requires a certificate, expected tls_certificate= and "
             "tls_key=" : "";

    if (SSL_get_error(ssl, rc) == SSL_ERROR_ZERO_RETURN
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
        || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING
#endif
        || (code == 0 && error == 0))
    {
        return dsa_error(err, "%s: Redis closed the connection%s", what, hint);
    }

    return dsa_error(err, "%s: %s%s", what,
                     code != 0 ? dsa_tls_reason() : strerror(error), hint);
}


/* The first reason in the queue of OpenSSL's errors; static. */

static const char *
dsa_tls_reason(void)
{
    const char     *text;
    unsigned long   code;

    code = ERR_peek_error();

    if (ERR_SYSTEM_ERROR(code)) {
        return strerror(ERR_GET_REASON(code));
    }

    text = ERR_reason_error_string(code);

    return text != NULL ? text : "no reason is given";
}
