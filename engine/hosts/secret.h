
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_SECRET_H_INCLUDED_
#define _DSA_HOSTS_SECRET_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/error.h"


/*
 * The secret that the hosts of a replica share.  A host proves that it has the
 * secret by an HMAC-SHA256 (RFC 2104, FIPS 180-4) over what both hosts have
 * sent, which has a nonce of each, so that a proof is of no use on another
 * connection.
 *
 * Who connects to a host can collect proofs and try secrets against them, so a
 * secret has to be random: expected are at least 32 bytes, such as the 64 that
 * "openssl rand -hex 32" prints.
 */

#define DSA_HOSTS_SECRET_LEAST  32      /* bytes */
#define DSA_HOSTS_SECRET_MOST   512
#define DSA_HOSTS_PROOF         32      /* bytes of an HMAC-SHA256 */


typedef struct {
    char                text[DSA_HOSTS_SECRET_MOST];
    size_t              len;
} dsa_hosts_secret_t;


/* Who proves: the two sides have different proofs. */

typedef enum {
    DSA_HOSTS_LEADER = 0,
    DSA_HOSTS_FOLLOWER
} dsa_hosts_side_e;


/*
 * Reads the first line of a file that other users cannot read.  DSA_ERROR with
 * err, which never contains the secret.
 */
int dsa_hosts_secret_read(dsa_hosts_secret_t *secret, const char *path,
    dsa_err_t *err);

/* Clears the secret. */
void dsa_hosts_secret_clear(dsa_hosts_secret_t *secret);

/*
 * Sets proof [DSA_HOSTS_PROOF] to that of a side over leader and follower, the
 * first message of each, n bytes.  DSA_ERROR: out of memory.
 */
int dsa_hosts_proof(uint8_t *proof, const dsa_hosts_secret_t *secret,
    dsa_hosts_side_e side, const void *leader, const void *follower, size_t n);

/* Returns 1 if proofs are equal, in a time that does not depend on them. */
int dsa_hosts_proof_equal(const uint8_t *a, const uint8_t *b);


#endif /* _DSA_HOSTS_SECRET_H_INCLUDED_ */
