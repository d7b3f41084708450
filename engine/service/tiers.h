
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SERVICE_TIERS_H_INCLUDED_
#define _DSA_SERVICE_TIERS_H_INCLUDED_


#include "engine/service/conf.h"
#include "engine/service/step_thread.h"


/*
 * Opens the slower tiers that conf has, for a scheduler on backend, and sets
 * sched->host and sched->tier, which are zeroed before, as *host is.  The
 * caller closes *host after the backend.  The scheduler closes the tiers behind
 * it; they wake st.  DSA_ERROR with err: only *host may be open.
 */
int dsa_service_tiers(const dsa_conf_t *conf, dsa_backend_t *backend,
    dsa_step_t *st, dsa_host_t *host, dsa_sched_conf_t *sched,
    dsa_err_t *err);

/* Returns the tiers behind host memory that conf has, a mask of 1 << tier. */
uint32_t dsa_service_tier_mask(const dsa_conf_t *conf);

/*
 * The same for a follower, whose dsa_conf_t data is: opens those of the mask,
 * which the leader has, as tier [DSA_TIERS], zeroed before.  They call wake()
 * in their threads.  DSA_ERROR with err: none is open.
 */
int dsa_service_follow_tiers(void *data, uint32_t mask,
    const dsa_backend_t *backend, void (*wake)(void *data), void *wake_data,
    dsa_tier_t *tier, dsa_err_t *err);


#endif /* _DSA_SERVICE_TIERS_H_INCLUDED_ */
