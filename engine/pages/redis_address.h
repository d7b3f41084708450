
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REDIS_ADDRESS_H_INCLUDED_
#define _DSA_REDIS_ADDRESS_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


#define DSA_REDIS_HOST      256         /* bytes with the NUL */


/* The address of a Redis server. */

typedef struct {
    char                text[DSA_REDIS_HOST + 16];  /* the canonical form, which
                                           dsa_redis_address() accepts */
    char                host[DSA_REDIS_HOST];       /* or the path of a Unix
                                           socket */
    int                 port;           /* 0: a Unix socket */
} dsa_redis_address_t;


/*
 * Parses HOST:PORT, [IPV6]:PORT or unix:PATH.  DSA_ERROR with err, which quotes
 * the text.
 */
int dsa_redis_address(dsa_redis_address_t *a, const char *text,
    dsa_err_t *err);

/*
 * Sets an address from a host name of len bytes and a port.  DSA_ERROR with
 * err.
 */
int dsa_redis_address_set(dsa_redis_address_t *a, const char *host, size_t len,
    int64_t port, dsa_err_t *err);


#endif /* _DSA_REDIS_ADDRESS_H_INCLUDED_ */
