
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SUPERVISOR_H_INCLUDED_
#define _DSA_SUPERVISOR_H_INCLUDED_


#include "engine/service/conf.h"


/*
 * Starts a process for each replica and keeps it running.  A replica that dies
 * is started again, at once the first time, then with growing delays of at
 * most DSA_SUPERVISOR_DELAY.  A replica is killed, and started again, if
 *
 *     it is not ready within start_timeout,
 *     one of its steps takes longer than step_timeout, or
 *     its I/O thread has not run for step_timeout.
 *
 * At SIGTERM, SIGINT or SIGQUIT the replicas finish their requests, and at a
 * second one they stop.  The supervisor exits after them.  If the supervisor
 * is killed, the kernel kills the replicas.  systemd, or another manager with
 * its protocol, is notified when all replicas are ready and while the
 * supervisor is alive.
 *
 * Returns the exit status: 1, with one line on stderr, if a replica cannot
 * start in the beginning.
 */

#define DSA_SUPERVISOR_DELAY    5000    /* ms */
#define DSA_SUPERVISOR_STABLE   10000   /* ms; a replica that ran longer is
                                           started again at once */
#define DSA_SUPERVISOR_GRACE    5000    /* ms from the end of drain_timeout, or
                                           from the second signal, to the
                                           kill */
#define DSA_SUPERVISOR_CHECK    1000    /* most ms between two checks of the
                                           vitals of a replica */


int dsa_supervisor_run(const dsa_conf_t *conf);


#endif /* _DSA_SUPERVISOR_H_INCLUDED_ */
