
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REPLICA_H_INCLUDED_
#define _DSA_REPLICA_H_INCLUDED_


#include "engine/service/conf.h"
#include "engine/service/vitals.h"


/*
 * The process of one replica: it opens the model, listens, and serves.  After
 * SIGTERM it rejects new requests, finishes the others within drain_timeout
 * and exits.  After SIGUSR1 it ends each request with an error and exits when
 * the workers have read that.
 */

#define DSA_REPLICA_READY   "ready"


/*
 * Runs a replica and returns the exit status.  ready: a pipe, to which the
 * replica writes DSA_REPLICA_READY when it listens, or one line with the
 * reason why it cannot start, and which it then closes.  vitals: shared with
 * the supervisor.
 */
int dsa_replica_run(const dsa_conf_t *conf, uint32_t number, int ready,
    dsa_vitals_t *vitals);


#endif /* _DSA_REPLICA_H_INCLUDED_ */
