
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REPLICA_H_INCLUDED_
#define _DSA_REPLICA_H_INCLUDED_


#include "engine/service/conf.h"


/*
 * The process of one replica: opens the model, listens, and serves until a
 * SIGTERM, which it answers by taking no new requests, finishing what it has
 * within drain_timeout and leaving; or a SIGUSR1, at which it ends each of its
 * requests with an error and leaves when its workers have read that.
 */

#define DSA_REPLICA_READY   "ready"


/*
 * ready: a pipe that gets DSA_REPLICA_READY when the replica listens, or one
 * line about why it does not; closed then.  Returns the exit status.
 */
int dsa_replica_run(const dsa_conf_t *conf, uint32_t number, int ready);


#endif /* _DSA_REPLICA_H_INCLUDED_ */
