
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_WATCH_H_INCLUDED_
#define _DSA_HOSTS_WATCH_H_INCLUDED_


#include "engine/hosts/leader_conf.h"
#include "engine/hosts/wire.h"


/*
 * A thread of the leader that watches the connections to its followers.  When
 * one of them ends while the caller is not in a call of the backend, the thread
 * reads the reason and calls failed().  When a call has not returned a second
 * after a connection has ended, or after the time limit of a step, the thread
 * calls abort() with the names of the hosts that are to blame.
 */

typedef struct dsa_hosts_watch_s  dsa_hosts_watch_t;


/*
 * Starts the thread for the connections 1 .. conf->n of wire.  NULL with err.
 */
dsa_hosts_watch_t *dsa_hosts_watch_start(const dsa_hosts_leader_t *conf,
    dsa_hosts_wire_t *wire, dsa_err_t *err);

/* Ends the thread.  NULL is allowed. */
void dsa_hosts_watch_stop(dsa_hosts_watch_t *watch);

/*
 * Begins and ends a call.  The caller reads the connections itself in a call
 * that it has begun by dsa_hosts_watch_begin(), with a phrase for errors and a
 * time limit; 0: none.  DSA_ERROR with err, and no call has begun: a connection
 * has ended before.  A call that it has begun by dsa_hosts_watch_open() has the
 * time limit of the start, and does not read them.
 */
int dsa_hosts_watch_begin(dsa_hosts_watch_t *watch, const char *what,
    uint64_t limit_ms, dsa_err_t *err);
void dsa_hosts_watch_open(dsa_hosts_watch_t *watch);
void dsa_hosts_watch_end(dsa_hosts_watch_t *watch);

/*
 * The thread calls arrived() once, when a connection has something to read.  It
 * may be a message that the caller expects anyway.
 */
void dsa_hosts_watch_listen(dsa_hosts_watch_t *watch);

/* DSA_ERROR with err: a connection has ended between calls. */
int dsa_hosts_watch_fault(dsa_hosts_watch_t *watch, dsa_err_t *err);


#endif /* _DSA_HOSTS_WATCH_H_INCLUDED_ */
