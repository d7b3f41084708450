
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_FOLLOWER_H_INCLUDED_
#define _DSA_FOLLOWER_H_INCLUDED_


#include "engine/service/conf.h"
#include "engine/service/vitals.h"


/*
 * The process of a host that follows the leader of a replica.  It waits for the
 * leader, computes the leader's steps, and ends with the connection: the
 * supervisor starts it again, and the next process waits for the next leader.
 */

/*
 * Runs until the connection ends, or until SIGTERM, and returns the exit
 * status: 0 if the leader has ended in order.  ready and vitals: as in
 * dsa_replica_run(); it is ready when it listens.
 */
int dsa_follower_run(const dsa_conf_t *conf, int ready, dsa_vitals_t *vitals);


#endif /* _DSA_FOLLOWER_H_INCLUDED_ */
