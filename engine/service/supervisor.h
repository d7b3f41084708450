
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUPERVISOR_H_INCLUDED_
#define _DSA_SUPERVISOR_H_INCLUDED_


#include "engine/service/conf.h"


/*
 * Starts a process for each replica and keeps it running: one that dies is
 * started again, at once the first time, then with growing delays of at most
 * DSA_SUPERVISOR_DELAY.  At SIGTERM, SIGINT or SIGQUIT the replicas finish
 * what they have, at a second one they stop; the supervisor leaves after them,
 * and when it is killed they die with it.
 *
 * Returns the exit status: 1 when a replica cannot start in the beginning,
 * with one line on stderr.
 */

#define DSA_SUPERVISOR_DELAY    5000    /* ms */
#define DSA_SUPERVISOR_STABLE   10000   /* ms, after which a death is the first
                                           again */
#define DSA_SUPERVISOR_GRACE    5000    /* ms beyond drain_timeout, or after the
                                           second signal, to the kill */


int dsa_supervisor_run(const dsa_conf_t *conf);


#endif /* _DSA_SUPERVISOR_H_INCLUDED_ */
