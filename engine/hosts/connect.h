
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_CONNECT_H_INCLUDED_
#define _DSA_HOSTS_CONNECT_H_INCLUDED_


#include "engine/hosts/hello.h"


/*
 * Connects to the follower at HOST:PORT, and proves the secret.  It repeats
 * what fails because a host is not ready yet, until w->deadline_ms, and logs
 * each new reason.  DSA_ERROR with err: the last reason.  w->name is set.
 */
int dsa_hosts_connect(dsa_hosts_wire_t *w, const char *address,
    const dsa_hosts_secret_t *secret, dsa_err_t *err);


#endif /* _DSA_HOSTS_CONNECT_H_INCLUDED_ */
