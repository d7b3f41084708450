
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_REDIS_TLS_H_INCLUDED_
#define _NGX_HTTP_DSA_REDIS_TLS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


/*
 * TLS of the connections to Redis: the parameters tls, tls_ca=,
 * tls_certificate=, tls_key=, tls_name= and tls_verify= of dsa_redis.  The
 * certificate of the server is verified, with its name, unless tls_verify=off.
 */

typedef struct {
    ngx_ssl_t    ssl;
    ngx_str_t    ca;                    /* empty: the CAs of the system */
    ngx_str_t    certificate;           /* of nginx; empty: none */
    ngx_str_t    key;
    ngx_str_t    name;                  /* empty: the host of the address */
    unsigned     on:1;
    unsigned     insecure:1;            /* nothing is verified */
} ngx_http_dsa_redis_tls_t;


/* Bytes of the detail that ngx_http_dsa_redis_tls_verify() writes. */

#define NGX_HTTP_DSA_REDIS_TLS_DETAIL  512


/*
 * Stores a parameter tls_...=.  NGX_OK; NGX_ERROR: the value is not valid, and
 * *expected is what would be; NGX_DECLINED: it is another parameter.
 */
ngx_int_t ngx_http_dsa_redis_tls_parameter(ngx_http_dsa_redis_tls_t *tls,
    const ngx_str_t *name, const ngx_str_t *value, const char **expected);

/*
 * Checks the parameters and reads their files.  Returns NGX_CONF_OK or the
 * error of a directive handler.
 */
char *ngx_http_dsa_redis_tls_init(ngx_conf_t *cf,
    ngx_http_dsa_redis_tls_t *tls);

/*
 * Makes TLS of a connection, which has a pool: the server must have a
 * certificate for tls_name=, or else for host, a name or an IP address.  The
 * caller then calls ngx_ssl_handshake().  NGX_OK, or NGX_ERROR: it is logged.
 */
ngx_int_t ngx_http_dsa_redis_tls_start(ngx_http_dsa_redis_tls_t *tls,
    ngx_connection_t *c, const ngx_str_t *host);

/*
 * After the handshake: returns NGX_OK if the certificate is valid.
 * NGX_DECLINED with a detail: what is wrong and what would be accepted.
 */
ngx_int_t ngx_http_dsa_redis_tls_verify(ngx_http_dsa_redis_tls_t *tls,
    ngx_connection_t *c, const ngx_str_t *host, ngx_str_t *detail,
    u_char buf[NGX_HTTP_DSA_REDIS_TLS_DETAIL]);


#endif /* _NGX_HTTP_DSA_REDIS_TLS_H_INCLUDED_ */
