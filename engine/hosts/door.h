
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_DOOR_H_INCLUDED_
#define _DSA_HOSTS_DOOR_H_INCLUDED_


#include "engine/hosts/hello.h"


/*
 * Where a follower waits for its leader.  Anybody may connect to its port, so
 * connections that have proved nothing are read beside each other, each has
 * DSA_HOSTS_DOOR_MS and a fixed amount of memory, and when there are
 * DSA_HOSTS_DOOR_MOST of them, the next one replaces the oldest.
 */

#define DSA_HOSTS_DOOR_MS       5000
#define DSA_HOSTS_DOOR_MOST     64


typedef struct dsa_hosts_door_s  dsa_hosts_door_t;


/*
 * Listens at HOST:PORT or [IPV6]:PORT.  NULL with err and errno.  secret must
 * outlive the door.
 */
dsa_hosts_door_t *dsa_hosts_door_open(const char *address,
    const dsa_hosts_secret_t *secret, dsa_err_t *err);
void dsa_hosts_door_close(dsa_hosts_door_t *door);      /* NULL is allowed */

/* Returns the port, which the kernel has chosen for port 0. */
int dsa_hosts_door_port(const dsa_hosts_door_t *door);

/*
 * Waits up to timeout_ms for something to read, on other as well, a descriptor
 * of the caller or -1.  DSA_OK: w is the connection to the leader, which has
 * proved that it has the secret; the caller closes it.  DSA_AGAIN: none has
 * yet.  Rejected connections are logged.
 */
int dsa_hosts_door_wait(dsa_hosts_door_t *door, int timeout_ms, int other,
    dsa_hosts_wire_t *w);


/* An address as two texts for getaddrinfo(). */

typedef struct {
    char                host[256];
    char                port[8];
} dsa_hosts_address_t;

/* Splits HOST:PORT or [IPV6]:PORT.  DSA_ERROR with err: it is neither. */
int dsa_hosts_address(dsa_hosts_address_t *address, const char *text,
    dsa_err_t *err);


#endif /* _DSA_HOSTS_DOOR_H_INCLUDED_ */
