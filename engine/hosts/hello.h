
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_HELLO_H_INCLUDED_
#define _DSA_HOSTS_HELLO_H_INCLUDED_


#include <stdint.h>

#include "engine/hosts/secret.h"
#include "engine/hosts/wire.h"


/*
 * The first messages of a connection: each side sends its version and a nonce,
 * and then proves that it has the secret, the leader first.  So a follower
 * reveals nothing but its version to who connects to it without the secret.
 */

#define DSA_HOSTS_MAGIC     0x73486153u /* "SaHs" */
#define DSA_HOSTS_PROTOCOL  1           /* of the messages after these */
#define DSA_HOSTS_NONCE     32


/* The bytes of HELLO, the same ones in all versions. */

typedef struct {
    uint32_t            magic;
    uint32_t            protocol;
    char                version[24];    /* DSA_VERSION, padded with zeros */
    uint8_t             nonce[DSA_HOSTS_NONCE];
} dsa_hosts_hello_t;


/* Sets hello to that of this program.  DSA_ERROR: no random numbers. */
int dsa_hosts_hello(dsa_hosts_hello_t *hello, dsa_err_t *err);

/*
 * Checks the HELLO of a peer, whose name is for the error: its program must be
 * of the same version, because nothing after this has a version of its own.
 */
int dsa_hosts_hello_check(const dsa_hosts_hello_t *hello, const char *name,
    dsa_err_t *err);

/*
 * The leader's part on a connected socket, until w->deadline_ms.  DSA_AGAIN
 * with err: the peer has closed the connection or is silent, as a host is that
 * starts or ends, and another attempt may succeed.  DSA_ERROR with err: it has
 * another version or another secret.
 */
int dsa_hosts_hello_leader(dsa_hosts_wire_t *w,
    const dsa_hosts_secret_t *secret, dsa_err_t *err);


#endif /* _DSA_HOSTS_HELLO_H_INCLUDED_ */
