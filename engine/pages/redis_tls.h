
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_TLS_H_INCLUDED_
#define _DSA_REDIS_TLS_H_INCLUDED_


#include <stddef.h>

#include "base/error.h"


/* The parameters of TLS to Redis, as those of dsa_redis in nginx. */

typedef struct {
    char               *ca;             /* tls_ca=; NULL: CAs of the system */
    char               *certificate;    /* tls_certificate=; NULL: none */
    char               *key;            /* tls_key= */
    char               *name;           /* tls_name=; NULL: the host */
    unsigned            on:1;           /* tls */
    unsigned            insecure:1;     /* tls_verify=off */
} dsa_redis_tls_conf_t;


/* What the connections of a client have in common; any thread may use it. */
typedef struct dsa_redis_tls_s  dsa_redis_tls_t;

#define DSA_REDIS_TLS_FAILED  "the handshake of TLS failed, expected a port " \
                              "of TLS (tls-port of Redis)"

/* A session on one socket. */
typedef struct ssl_st  dsa_redis_ssl_t;


/*
 * Checks what must hold between the parameters, and reads the files.  NULL with
 * err, which names the parameter.  The strings of conf are not needed later.
 */
dsa_redis_tls_t *dsa_redis_tls_create(const dsa_redis_tls_conf_t *conf,
    dsa_err_t *err);
void dsa_redis_tls_destroy(dsa_redis_tls_t *tls);       /* NULL is allowed */

/*
 * Begins a session on a connected, non-blocking socket.  host is the name or
 * the IP address that the certificate must have, unless there is tls_name=.
 * NULL with err: out of memory.  The session does not own the socket.
 */
dsa_redis_ssl_t *dsa_redis_ssl_create(dsa_redis_tls_t *tls, int fd,
    const char *host, dsa_err_t *err);
void dsa_redis_ssl_destroy(dsa_redis_ssl_t *ssl);       /* NULL is allowed */

/*
 * The next functions return DSA_OK; DSA_AGAIN if the socket must be readable
 * or writable first, with *events for poll(); or DSA_ERROR with err.  The
 * handshake is complete only after the certificate was accepted, and nothing is
 * sent before.  Of reading and writing, DSA_OK means that *n bytes, at least
 * one, were moved.  A write must be repeated with the same bytes.  The process
 * ignores SIGPIPE.
 */
int dsa_redis_ssl_handshake(const dsa_redis_tls_t *tls, dsa_redis_ssl_t *ssl,
    const char *host, short *events, dsa_err_t *err);
int dsa_redis_ssl_read(dsa_redis_ssl_t *ssl, void *data, size_t len, size_t *n,
    short *events, dsa_err_t *err);
int dsa_redis_ssl_write(dsa_redis_ssl_t *ssl, const void *data, size_t len,
    size_t *n, short *events, dsa_err_t *err);

/*
 * Returns 1 if the socket has nothing to read for the caller and was not
 * closed.  The server may have sent something that only TLS needs.
 */
int dsa_redis_ssl_idle(dsa_redis_ssl_t *ssl);


#endif /* _DSA_REDIS_TLS_H_INCLUDED_ */
