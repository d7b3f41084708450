
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_POLICY_H_INCLUDED_
#define _DSA_POLICY_H_INCLUDED_


#include <stdint.h>

#include "base/map.h"
#include "engine/backend.h"


/*
 * Policy: how tenants share a replica.  The scheduler calls these functions to
 * choose a tenant, and reports what it did; policy decides on the counters of
 * dsa_tenant_t and never calls the scheduler or looks at a sequence.
 *
 * Tokens are shared by weighted fair queueing.  Each tenant has a service
 * count: the tokens computed for it, divided by its weight.  Prefill tokens go
 * to the tenant with the lowest count, at most a quantum at a time; decode
 * tokens count as well, so that the order follows all tokens of a tenant
 * (start-time fair queueing, Goyal et al., SIGCOMM 1996; of tokens, Sheng et
 * al., OSDI 2024).  A tenant that becomes active starts at the virtual time,
 * so that idle time gives no credit.  Deficit round robin would share scarce
 * tokens equally well, but not scarce batch slots.
 *
 * Batch slots and pages are shared by dominant share (Ghodsi et al., NSDI
 * 2011): the larger of a tenant's fractions of all slots and of all pages,
 * divided by its weight.  When the pages of a rank run out, the tenant with
 * the largest share among those with pages on that rank is preempted there.  A
 * tenant is also preempted in favor of a waiting tenant that would still have
 * the smaller share after admission.
 *
 * A request that was skipped in DSA_POLICY_MAX_SKIPS steps, because it needs
 * more pages than were free while smaller requests were admitted, gets a
 * reservation of one rank: no other tenant is admitted there before it.
 */

#define DSA_POLICY_MAX_SKIPS    64


typedef struct dsa_tenant_s  dsa_tenant_t;


/* Sequences linked by their prev and next; the scheduler's. */

typedef struct {
    struct dsa_seq_s   *first;
    struct dsa_seq_s   *last;
} dsa_seq_list_t;


struct dsa_tenant_s {
    dsa_tenant_t       *prev;           /* ring of all tenants */
    dsa_tenant_t       *next;
    uint8_t             id[32];

    /* The scheduler's queues and counters; policy only reads the counters. */

    dsa_seq_list_t      waiting;        /* preempted sequences come first */
    dsa_seq_list_t      loading;
    dsa_seq_list_t      prefill;
    uint32_t            weight;
    uint32_t            n_seqs;         /* waiting and running */
    uint32_t            n_waiting;
    uint32_t            n_new;          /* waiting, never admitted */
    uint32_t            n_prefill;
    uint32_t            n_running;
    uint32_t            n_on[DSA_MAX_GPUS];     /* running, with pages on this
                                                   rank */
    uint32_t            n_pages;        /* in the block tables */
    uint64_t            deferred;       /* number of the last step in which its
                                           first waiting request was left in
                                           the queue, although it fits */

    /* Private to policy. */

    double              served;         /* tokens divided by weight */
    uint32_t            skips;          /* steps */
    uint32_t            blocked;        /* 1: in this step a request did not
                                           fit, although a batch slot was
                                           free */
};


typedef struct {
    uint32_t            slots;          /* batch slots of all ranks */
    uint32_t            pages;          /* of all ranks */
    dsa_tenant_t       *first;          /* in the ring; NULL: no tenants */
    dsa_tenant_t       *reserved;       /* see above; NULL: none */
    uint32_t            reserved_rank;
    dsa_tenant_t      **queue;          /* [n_queue] run queue of this step, a
                                           heap by service count */
    uint32_t            n_queue;
    uint32_t            queue_size;     /* >= n_tenants */
    uint32_t            n_tenants;
    double              virtual_time;   /* service count of the tenant chosen
                                           last */
    dsa_map_t           map;            /* tenants by id */
} dsa_policy_t;


/*
 * Counts tokens outside the run queue: those of decodes, and with refund those
 * that are not computed after all.
 */

static inline void
dsa_policy_served(dsa_tenant_t *t, uint32_t tokens)
{
    t->served += (double) tokens / t->weight;
}


static inline void
dsa_policy_refund(dsa_tenant_t *t, uint32_t tokens)
{
    t->served -= (double) tokens / t->weight;
}


/*
 * In this step a waiting request of t did not fit, although a batch slot was
 * free.
 */

static inline void
dsa_policy_block(dsa_tenant_t *t)
{
    t->blocked = 1;
}


/* 1 after dsa_policy_block() in this step. */

static inline int
dsa_policy_blocked(const dsa_tenant_t *t)
{
    return t->blocked != 0;
}


/* p is zeroed memory; slots and pages are what tenants share. */
void dsa_policy_init(dsa_policy_t *p, uint32_t slots, uint32_t pages);

/* There must be no tenants left. */
void dsa_policy_free(dsa_policy_t *p);

/* The tenant with this id, or NULL. */
dsa_tenant_t *dsa_policy_find(const dsa_policy_t *p, const uint8_t id[32]);

/* The same; creates the tenant if there is none.  NULL: out of memory. */
dsa_tenant_t *dsa_policy_tenant(dsa_policy_t *p, const uint8_t id[32],
    uint32_t weight);

/* Frees a tenant that has no sequences left. */
void dsa_policy_remove(dsa_policy_t *p, dsa_tenant_t *t);

/*
 * To be called before a request of t is queued, or has a prompt to compute
 * after it was loaded: a tenant that had no such request starts at the virtual
 * time.
 */
void dsa_policy_activate(dsa_policy_t *p, dsa_tenant_t *t);

/*
 * The tenant with the most waiting requests divided by weight, if that is more
 * than `least` and one of them was never admitted; otherwise NULL.
 * O(tenants).
 */
dsa_tenant_t *dsa_policy_crowded(const dsa_policy_t *p, double least);

/* 1 when no other tenant has a reservation of this rank. */
int dsa_policy_may_admit(const dsa_policy_t *p, const dsa_tenant_t *t,
    uint32_t rank);

/* A request of t was admitted: its reservation and skip count end. */
void dsa_policy_admitted(dsa_policy_t *p, dsa_tenant_t *t);

/* No other tenant's request is admitted to a rank before one of t. */
void dsa_policy_reserve(dsa_policy_t *p, dsa_tenant_t *t, uint32_t rank);

/*
 * The tenant for whose first waiting request others may be preempted: the one
 * with the reservation, otherwise the waiting tenant with the smallest share.
 * NULL when no tenant waits.
 */
dsa_tenant_t *dsa_policy_gaining(dsa_policy_t *p);

/*
 * 1 if a sequence of `from` with from_pages pages may be preempted in favor of
 * a request of `to` that needs to_pages pages.
 */
int dsa_policy_may_preempt(const dsa_policy_t *p, const dsa_tenant_t *from,
    uint32_t from_pages, const dsa_tenant_t *to, uint32_t to_pages);

/*
 * The tenant with the largest share among those that have running sequences
 * with pages on a rank, or NULL.
 */
dsa_tenant_t *dsa_policy_heaviest(const dsa_policy_t *p, uint32_t rank);

/* Begins the prefill part of a step: fills the run queue. */
void dsa_policy_enqueue(dsa_policy_t *p);

/*
 * The tenant in the run queue with the lowest service count; NULL: the queue
 * is empty.  dsa_policy_charge() or dsa_policy_skip() must follow.
 */
dsa_tenant_t *dsa_policy_next(const dsa_policy_t *p);

/* The tenant of dsa_policy_next() was given prefill tokens. */
void dsa_policy_charge(dsa_policy_t *p, uint32_t tokens);

/*
 * The tenant of dsa_policy_next() has no work that can go on: it leaves the
 * run queue of this step.
 */
void dsa_policy_skip(dsa_policy_t *p);

/*
 * Ends the prefill part of a step: updates skip counts.  Returns the tenant
 * that is due for a reservation, or NULL.  admitted: 1 when the step admitted
 * a request.
 */
dsa_tenant_t *dsa_policy_end(dsa_policy_t *p, int admitted);


#endif /* _DSA_POLICY_H_INCLUDED_ */
