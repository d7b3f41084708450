
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_MEMORY_H_INCLUDED_
#define _DSA_HOSTS_MEMORY_H_INCLUDED_


#include "engine/hosts/pages.h"
#include "engine/hosts/wire.h"
#include "engine/pages/host.h"


/*
 * The host memory of a follower, and the tiers behind it.  The leader decides
 * what is in which page; the follower executes MOVE and TIER, and sends MOVED
 * and TIERED when they have ended.  One thread uses it, that of the steps.
 */

typedef struct dsa_hosts_memory_s  dsa_hosts_memory_t;


/*
 * Opens the tiers of the mask as tier [DSA_TIERS], which call wake() in their
 * threads.  DSA_ERROR with err: none is open, for example because this host
 * does not have one.
 */
typedef int (*dsa_hosts_tiers_pt)(void *data, uint32_t mask,
    const dsa_backend_t *b, void (*wake)(void *data), void *wake_data,
    dsa_tier_t *tier, dsa_err_t *err);


typedef struct {
    dsa_backend_t      *backend;
    uint32_t            hosts;
    uint32_t            first_rank;     /* of this host */
    uint32_t            ranks;          /* of this host */
    uint64_t            bytes;          /* of host memory; 0: none */
    uint32_t            tiers;          /* mask of 1 << tier */
    dsa_hosts_tiers_pt  open;
    void               *data;           /* argument of open */
} dsa_hosts_memory_conf_t;


/* NULL with err: as dsa_host_open(), pin() of the backend, or open(). */
dsa_hosts_memory_t *dsa_hosts_memory_open(const dsa_hosts_memory_conf_t *conf,
    dsa_err_t *err);

/*
 * Closes the tiers, and the rest.  The backend, which uses the memory, must be
 * closed between the two, or not yet have moved a page.  NULL is allowed.
 */
void dsa_hosts_memory_end_tiers(dsa_hosts_memory_t *m);
void dsa_hosts_memory_close(dsa_hosts_memory_t *m);

/* Returns the host memory, whose slabs are those of this host. */
const dsa_host_t *dsa_hosts_memory_host(const dsa_hosts_memory_t *m);

/*
 * Executes a MOVE or a TIER of so many bytes, whose head was received.
 * DSA_ERROR with err: it is not one that the leader may send, or the backend
 * has failed.
 */
int dsa_hosts_memory_move(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    uint64_t bytes, dsa_err_t *err);
int dsa_hosts_memory_tier(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    uint64_t bytes, dsa_err_t *err);

/*
 * Sends MOVED and TIERED for all that has ended.  DSA_ERROR with err, as
 * dsa_hosts_memory_move(), or if the connection has failed.
 */
int dsa_hosts_memory_advance(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    dsa_err_t *err);

/*
 * Waits until the connection is readable, or until there may be something to
 * advance.
 */
void dsa_hosts_memory_wait(dsa_hosts_memory_t *m, const dsa_hosts_wire_t *w);


#endif /* _DSA_HOSTS_MEMORY_H_INCLUDED_ */
