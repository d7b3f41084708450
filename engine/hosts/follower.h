
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_FOLLOWER_H_INCLUDED_
#define _DSA_HOSTS_FOLLOWER_H_INCLUDED_


#include <stdatomic.h>

#include "engine/backend.h"
#include "engine/hosts/memory.h"
#include "engine/hosts/wire.h"


/* What a follower decides itself. */

typedef struct {
    dsa_backend_e           kind;
    dsa_backend_conf_t      backend;    /* model, gpus, their numbers */
    dsa_backend_t        *(*open)(dsa_backend_e kind,
                                  const dsa_backend_conf_t *conf,
                                  dsa_err_t *err);
    _Atomic uint64_t       *step_started_ms;    /* dsa_clock_ms() while a step
                                           is computed; 0: none is */
    dsa_hosts_tiers_pt      tiers;      /* opens those behind host memory */
    void                   *data;       /* argument of tiers */
} dsa_hosts_follower_t;


/*
 * Opens the backend that the leader at w plans, and computes its steps.  DSA_OK
 * when the leader has ended the connection by BYE.  Otherwise DSA_ERROR with
 * err, which the leader has received if it reads.  The process has to end then
 * without closing the backend, which may wait for other hosts, and that is why
 * the backend is not closed.
 */
int dsa_hosts_follow(dsa_hosts_wire_t *w, const dsa_hosts_follower_t *f,
    dsa_err_t *err);


#endif /* _DSA_HOSTS_FOLLOWER_H_INCLUDED_ */
