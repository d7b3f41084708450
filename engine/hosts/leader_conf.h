
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_LEADER_CONF_H_INCLUDED_
#define _DSA_HOSTS_LEADER_CONF_H_INCLUDED_


#include "engine/backend.h"
#include "engine/hosts/secret.h"


/* What a leader needs besides the configuration of its backend. */

typedef struct {
    char *const                *address;        /* [n] of the followers,
                                                   HOST:PORT */
    uint32_t                    n;
    const dsa_hosts_secret_t   *secret;
    uint64_t                    start_ms;       /* until all are ready; 0: no
                                                   limit */
    uint64_t                    step_ms;        /* of a step, > 0 */
    uint32_t                    tiers;          /* mask of 1 << tier: behind
                                                   host memory */
    dsa_backend_t            *(*open)(dsa_backend_e kind,
                                      const dsa_backend_conf_t *conf,
                                      dsa_err_t *err);

    /*
     * Called by the watching thread: failed() when check() has an error now;
     * arrived() when collect() of a tier may have something; abort() when a
     * call has not returned a second after it should have.  It must end the
     * process.
     */
    void                      (*failed)(void *data);
    void                      (*arrived)(void *data);
    void                      (*abort)(void *data, const char *text);
    void                       *data;
} dsa_hosts_leader_t;


#endif /* _DSA_HOSTS_LEADER_CONF_H_INCLUDED_ */
