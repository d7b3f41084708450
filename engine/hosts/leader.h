
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_LEADER_H_INCLUDED_
#define _DSA_HOSTS_LEADER_H_INCLUDED_


#include "engine/hosts/leader_conf.h"
#include "engine/pages/host.h"
#include "engine/pages/tier.h"


/*
 * A backend of several hosts, for the scheduler of the leader.  It opens the
 * backend of this host and, over TCP, those of its followers, and starts each
 * step on all of them: STEP is sent before this host starts the step itself, so
 * a step ahead is on all hosts while the one before it runs.  The samples of
 * the followers come back in RESULT.
 *
 * The first fault of a follower is fatal for the replica.  start(), copy(),
 * wait(), move(), moved() and check() report it with the address of the
 * follower, after at most step_ms if it is silent, and after four times as long
 * if it only does not answer a MOVE or the reads of a tier.  A thread watches
 * the connections meanwhile, because a follower may fail between steps, or
 * while this host waits for it on a GPU, where the wait cannot be ended.
 */

/*
 * Opens the backend: waits for all followers, and reports why.  conf->hosts is
 * set here.  leader and what it refers to must outlive the backend.  NULL with
 * err.
 */
dsa_backend_t *dsa_hosts_lead(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, const dsa_hosts_leader_t *leader,
    dsa_err_t *err);

/*
 * Adds the slabs of the other hosts to those of this host, of which conf has
 * had a host_memory.
 */
void dsa_hosts_memory(dsa_backend_t *b, dsa_host_t *host);

/*
 * Replaces a tier of this host by one of all hosts, which the backend's thread
 * uses: operations on pages of another host go there.  It must be closed before
 * the backend.
 */
void dsa_hosts_tier(dsa_backend_t *b, uint32_t number, dsa_tier_t *tier);


#endif /* _DSA_HOSTS_LEADER_H_INCLUDED_ */
