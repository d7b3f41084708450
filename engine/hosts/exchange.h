
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_EXCHANGE_H_INCLUDED_
#define _DSA_HOSTS_EXCHANGE_H_INCLUDED_


#include "engine/backend.h"
#include "engine/hosts/wire.h"


/*
 * The exchange of a backend whose ranks exchange through the memory of their
 * hosts.  It uses the connections between leader and followers: each follower
 * sends what it has for all others to the leader, which passes it on.  The
 * backend is for models that a CPU can compute, so the way over the leader is
 * short enough.
 */

typedef struct {
    uint32_t            n;              /* hosts */
    uint32_t            host;           /* this one; 0 is the leader */
    uint32_t            number;         /* of the exchange, modulo 2^32 */
    dsa_hosts_wire_t   *wire;           /* [n] of the leader to its followers;
                                           [1] of a follower to the leader */
    char               *passed[DSA_MAX_GPUS];   /* leader: what a follower has
                                           sent to other followers */
    uint64_t            size[DSA_MAX_GPUS];     /* bytes allocated */
} dsa_hosts_exchange_t;


/* dsa_backend_hosts_t.exchange; data is a dsa_hosts_exchange_t. */
int dsa_hosts_exchange(void *data, const void *const *out, void *const *in,
    const uint64_t *bytes, dsa_err_t *err);

/* Frees the memory of x, but not the connections. */
void dsa_hosts_exchange_close(dsa_hosts_exchange_t *x);


#endif /* _DSA_HOSTS_EXCHANGE_H_INCLUDED_ */
