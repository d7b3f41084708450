
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_WIRE_H_INCLUDED_
#define _DSA_REDIS_WIRE_H_INCLUDED_


#include <sys/uio.h>

#include "engine/pages/redis_tls.h"


/*
 * The bytes of a connection, through TLS or not, with its timeouts.  After
 * DSA_ERROR, err has the cause and the connection is closed.
 */

#define DSA_REDIS_SLOWEST   10000       /* bytes/ms: least speed of a page */


typedef struct {
    dsa_redis_tls_t    *tls;            /* of the owner; NULL: without TLS */
    dsa_redis_ssl_t    *ssl;            /* of a connection with TLS */
    int                 fd;             /* -1: closed */
    int                 off_fd;         /* eventfds that end a wait; -1:
                                           none */
    int                 stop_fd;
    uint64_t            timeout_ms;     /* without a byte */
    uint64_t            last_ms;        /* when a byte was moved */
    uint64_t            deadline_ms;    /* of the operation */
} dsa_redis_wire_t;


void dsa_redis_wire_close(dsa_redis_wire_t *w);

/* Closes the connection and returns DSA_ERROR.  The caller has set err. */
int dsa_redis_wire_fail(dsa_redis_wire_t *w);

/*
 * Waits until the socket is ready for events, as of poll().  timeout_ms is
 * counted from the last byte; the deadline is that of the whole operation.
 */
int dsa_redis_wire_wait(dsa_redis_wire_t *w, short events, dsa_err_t *err);

/* Sends all bytes of iov[n], none of which is empty; changes iov. */
int dsa_redis_wire_send(dsa_redis_wire_t *w, struct iovec *iov, int n,
    dsa_err_t *err);

/*
 * Receives at least one byte, and at most as many as iov[n] has room for; sets
 * *size to their number.
 */
int dsa_redis_wire_receive(dsa_redis_wire_t *w, struct iovec *iov, int n,
    size_t *size, dsa_err_t *err);


#endif /* _DSA_REDIS_WIRE_H_INCLUDED_ */
