
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/version.h"
#include "engine/hosts/hello.h"


_Static_assert(sizeof(dsa_hosts_hello_t) == 64, "HELLO has no padding");


static int dsa_hosts_hello_prove(dsa_hosts_wire_t *w,
    const dsa_hosts_secret_t *secret, const dsa_hosts_hello_t *own,
    const dsa_hosts_hello_t *peer, dsa_err_t *err);


int
dsa_hosts_hello(dsa_hosts_hello_t *hello, dsa_err_t *err)
{
    memset(hello, 0, sizeof(dsa_hosts_hello_t));

    hello->magic = DSA_HOSTS_MAGIC;
    hello->protocol = DSA_HOSTS_PROTOCOL;
    (void) snprintf(hello->version, sizeof(hello->version), "%s",
                    DSA_VERSION);

    if (getrandom(hello->nonce, DSA_HOSTS_NONCE, 0) != DSA_HOSTS_NONCE) {
        return dsa_error(err, "getrandom() failed: %s", strerror(errno));
    }

    return DSA_OK;
}


int
dsa_hosts_hello_check(const dsa_hosts_hello_t *hello, const char *name,
    dsa_err_t *err)
{
    size_t  i;
    char    version[sizeof(hello->version) + 1];

    if (hello->magic != DSA_HOSTS_MAGIC) {
        return dsa_error(err, "%s does not answer as a dsa-engine does: its "
                         "first message begins with 0x%08x; expected 0x%08x",
                         name, hello->magic, DSA_HOSTS_MAGIC);
    }

    memcpy(version, hello->version, sizeof(hello->version));
    version[sizeof(hello->version)] = '\0';

    for (i = 0; version[i] != '\0'; i++) {
        if (version[i] < ' ' || version[i] > '~') {
            version[i] = '?';
        }
    }

    if (hello->protocol != DSA_HOSTS_PROTOCOL
        || strcmp(version, DSA_VERSION) != 0)
    {
        return dsa_error(err, "%s has version %s (messages %u); expected "
                         "version %s (messages %d), as this host has", name,
                         version, hello->protocol, DSA_VERSION,
                         DSA_HOSTS_PROTOCOL);
    }

    return DSA_OK;
}


int
dsa_hosts_hello_leader(dsa_hosts_wire_t *w, const dsa_hosts_secret_t *secret,
    dsa_err_t *err)
{
    struct iovec       part;
    dsa_hosts_head_t   head;
    dsa_hosts_hello_t  own, peer;

    if (dsa_hosts_hello(&own, err) != DSA_OK) {
        return DSA_ERROR;
    }

    part.iov_base = &own;
    part.iov_len = sizeof(own);

    /* what goes wrong until here may be a host that is not ready yet */

    if (dsa_hosts_wire_send(w, DSA_HOSTS_HELLO, 0, &part, 1, err) != DSA_OK
        || dsa_hosts_wire_read(w, &head, sizeof(head), err) != DSA_OK)
    {
        return DSA_AGAIN;
    }

    if (head.type != DSA_HOSTS_HELLO || head.bytes != sizeof(peer)) {
        return dsa_error(err, "%s does not answer as a dsa-engine does: its "
                         "first message is 0x%08x of %llu bytes", w->name,
                         head.type, (unsigned long long) head.bytes);
    }

    if (dsa_hosts_wire_read(w, &peer, sizeof(peer), err) != DSA_OK) {
        return DSA_AGAIN;
    }

    if (dsa_hosts_hello_check(&peer, w->name, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_hosts_hello_prove(w, secret, &own, &peer, err);
}


/* Sends the leader's proof, and checks that of the follower. */

static int
dsa_hosts_hello_prove(dsa_hosts_wire_t *w, const dsa_hosts_secret_t *secret,
    const dsa_hosts_hello_t *own, const dsa_hosts_hello_t *peer,
    dsa_err_t *err)
{
    uint8_t           proof[DSA_HOSTS_PROOF], want[DSA_HOSTS_PROOF];
    struct iovec      part;
    dsa_hosts_head_t  head;

    if (dsa_hosts_proof(proof, secret, DSA_HOSTS_LEADER, own, peer,
                        sizeof(dsa_hosts_hello_t)) != DSA_OK
        || dsa_hosts_proof(want, secret, DSA_HOSTS_FOLLOWER, own, peer,
                           sizeof(dsa_hosts_hello_t)) != DSA_OK)
    {
        return dsa_error(err, "out of memory");
    }

    part.iov_base = proof;
    part.iov_len = sizeof(proof);

    if (dsa_hosts_wire_send(w, DSA_HOSTS_PROOFS, 0, &part, 1, err) != DSA_OK) {
        return DSA_AGAIN;
    }

    if (dsa_hosts_wire_expect(w, DSA_HOSTS_PROOFS, 0, DSA_HOSTS_PROOF,
                              DSA_HOSTS_PROOF, &head, err) != DSA_OK
        || dsa_hosts_wire_read(w, proof, sizeof(proof), err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (!dsa_hosts_proof_equal(proof, want)) {
        return dsa_error(err, "%s has not proved that it has the secret of "
                         "this host; expected the same \"host_secret\" on all "
                         "hosts", w->name);
    }

    return DSA_OK;
}
