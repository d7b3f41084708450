
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_FAR_H_INCLUDED_
#define _DSA_HOSTS_FAR_H_INCLUDED_


#include "engine/hosts/pages.h"
#include "engine/hosts/wire.h"


/*
 * The leader's side of the pages in the memory of its followers: sends MOVE and
 * TIER, and receives MOVED and TIERED, which a follower sends between other
 * messages.  One thread uses it, that of the steps.
 */

typedef struct dsa_hosts_far_s  dsa_hosts_far_t;


/*
 * For the connections wire [hosts], of which the first one is unused, to hosts
 * with so many ranks each.  Sets their aside().  NULL: out of memory.
 */
dsa_hosts_far_t *dsa_hosts_far_create(dsa_hosts_wire_t *wire, uint32_t hosts,
    uint32_t ranks);
void dsa_hosts_far_destroy(dsa_hosts_far_t *far);       /* NULL is allowed */

/* Orders a move of a rank of another host, as move() of a backend. */
int dsa_hosts_far_move(dsa_hosts_far_t *far, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);

/*
 * Returns the completed calls of move(), and sets *since_ms to the time of the
 * oldest one in flight; 0: none is.
 */
uint64_t dsa_hosts_far_moved(const dsa_hosts_far_t *far, dsa_move_e way,
    uint32_t rank, uint64_t *since_ms);

/*
 * Orders an operation of a slower tier on a page of another host.  DSA_AGAIN:
 * there are too many.  DSA_ERROR with err: the connection has failed.
 */
int dsa_hosts_far_submit(dsa_hosts_far_t *far, uint32_t tier,
    dsa_tier_op_t *op, dsa_err_t *err);

/* Cancels those with this owner, as cancel() of a tier. */
int dsa_hosts_far_cancel(dsa_hosts_far_t *far, uint32_t tier,
    const void *owner, dsa_err_t *err);

/* Returns those of a tier that have ended, as collect() of a tier. */
dsa_tier_op_t *dsa_hosts_far_collect(dsa_hosts_far_t *far, uint32_t tier);

/* Returns the operations that have not ended. */
uint32_t dsa_hosts_far_pending(const dsa_hosts_far_t *far);

/*
 * Returns since when, in dsa_clock_ms(), a host has reads of slower tiers and
 * has answered none of them; 0: it has none.
 */
uint64_t dsa_hosts_far_since(const dsa_hosts_far_t *far, uint32_t host);

/*
 * Reads the messages about pages that a host has sent, as far as no other
 * message is before them.  DSA_ERROR with err: the connection has failed.
 */
int dsa_hosts_far_read(dsa_hosts_far_t *far, uint32_t host, dsa_err_t *err);

#endif /* _DSA_HOSTS_FAR_H_INCLUDED_ */
