
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_POLICY_H_INCLUDED_
#define _DSA_POLICY_H_INCLUDED_


#include <stdint.h>

#include "base/map.h"
#include "engine/backend.h"
#include "engine/schedule/pace.h"
#include "engine/schedule/request.h"


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
 * tokens equally well, but not scarce batch indices.
 *
 * Batch indices and pages are shared by dominant share (Ghodsi et al., NSDI
 * 2011): the larger of a tenant's fractions of all indices and of all pages,
 * divided by its weight.  When the pages of a rank run out, the tenant with the
 * largest share among those with pages on that rank is preempted there.  A
 * tenant is also preempted in favor of a waiting tenant that would still have
 * the smaller share after admission.
 *
 * A request that was skipped in DSA_POLICY_MAX_SKIPS steps, because it needs
 * more pages than were free while smaller requests were admitted, gets a
 * reservation of one rank: no other tenant is admitted there before it.
 *
 * Requests have a class: low, normal or high.  All of the above applies among
 * requests of one class, and a tenant with requests of two classes counts as
 * two.  Between classes the order is strict: a higher class gets prefill tokens
 * and free batch indices first, and a waiting request of a higher class may
 * preempt one of a lower class whatever their shares are.  A lower class still
 * has a minimum:
 *
 *   - Tokens and admissions: a class that has work gets the next round after
 *     DSA_POLICY_ROUNDS rounds of higher classes.  A round is an admission or
 *     DSA_POLICY_ROUND prefill tokens.  A round that cannot be used, because no
 *     batch index is free, is kept for the next step.
 *   - Batch indices: the minimum of a class is 1 / (DSA_POLICY_ROUNDS + 1) of
 *     all indices, and at least one.  While a class has fewer running
 *     sequences, it competes for indices and pages as if it were the highest
 *     class.  The sequences of a class that has no more than its minimum are
 *     not preempted in favor of a waiting request of another class, and when a
 *     running sequence needs a page, they count as those of the highest class.
 *
 * So a lower class that has work gets at least one prefill token for every
 * DSA_POLICY_ROUNDS of higher classes, and a free batch index after at most
 * DSA_POLICY_ROUNDS rounds of higher classes.  It keeps its minimum of indices;
 * its sequences beyond the minimum may be preempted.  Example with 16 indices:
 * beside a flood of high requests a flood of low ones runs 2 sequences, for a
 * step at times 3, and gets 1 of 8 prefill tokens.
 */

#define DSA_POLICY_MAX_SKIPS    64
#define DSA_POLICY_ROUND        256     /* prefill tokens */
#define DSA_POLICY_ROUNDS       7


typedef struct dsa_tenant_s  dsa_tenant_t;


/* Sequences linked by their prev and next; the scheduler's. */

typedef struct {
    struct dsa_seq_s   *first;
    struct dsa_seq_s   *last;
} dsa_seq_list_t;


/* The requests of one class of a tenant. */

struct dsa_tenant_s {
    dsa_tenant_t       *prev;           /* ring of all tenants */
    dsa_tenant_t       *next;
    uint8_t             key[33];        /* the tenant's id, and the class */
    dsa_priority_e      priority;

    /* The scheduler's queues and counters; policy only reads the counters. */

    dsa_seq_list_t      waiting;        /* preempted sequences come first */
    dsa_seq_list_t      loading;
    dsa_seq_list_t      prefill;
    uint32_t            weight;
    uint32_t            n_seqs;         /* waiting and running */
    uint32_t            n_waiting;
    uint64_t            waiting_tokens; /* of them, to compute or to find */
    uint32_t            n_new;          /* waiting, never admitted */
    uint32_t            n_prefill;
    uint32_t            n_running;      /* see dsa_policy_run() */
    uint32_t            n_on[DSA_MAX_GPUS];     /* running, with pages on this
                                                   rank */
    uint32_t            n_pages;        /* in the block tables */
    uint64_t            deferred;       /* number of the last step in which its
                                           first waiting request was left in
                                           the queue, although it fits */
    dsa_pace_late_t     late;           /* tokens of answers, because of its
                                           prompts */

    /* Private to policy. */

    double              served;         /* tokens divided by weight */
    uint32_t            skips;          /* steps */
    uint32_t            blocked;        /* 1: in this step a request did not
                                           fit, although a batch index was
                                           free */
};


typedef struct {
    dsa_tenant_t      **queue;          /* [n_queue] run queue of this step, a
                                           heap by service count */
    uint32_t            n_queue;
    uint32_t            n_running;      /* of its tenants */
    uint32_t            owed;           /* parts of its next round: a round of a
                                           higher class adds DSA_POLICY_ROUND,
                                           and DSA_POLICY_ROUNDS as many are a
                                           round of this class */
    uint32_t            admitted;       /* 1: a request of it was, in this
                                           step */
    double              virtual_time;   /* service count of the tenant chosen
                                           last */
} dsa_class_t;


typedef struct {
    uint32_t            indices;        /* batch indices of all ranks */
    uint32_t            pages;          /* of all ranks */
    uint32_t            minimum;        /* of a class, see above */
    dsa_tenant_t       *first;          /* in the ring; NULL: no tenants */
    dsa_tenant_t       *reserved;       /* see above; NULL: none */
    uint32_t            reserved_rank;
    dsa_class_t         class[DSA_PRIORITIES];
    uint32_t            queue_size;     /* of each run queue; >= n_tenants */
    uint32_t            n_tenants;
    dsa_map_t           map;            /* tenants by key */
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


/* A sequence of t starts to run, and leaves the batch. */

static inline void
dsa_policy_run(dsa_policy_t *p, dsa_tenant_t *t)
{
    t->n_running++;
    p->class[t->priority].n_running++;
}


static inline void
dsa_policy_leave(dsa_policy_t *p, dsa_tenant_t *t)
{
    t->n_running--;
    p->class[t->priority].n_running--;
}


/*
 * In this step a waiting request of t did not fit, although a batch index was
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


/* p is zeroed memory; indices and pages are what tenants share. */
void dsa_policy_init(dsa_policy_t *p, uint32_t indices, uint32_t pages);

/* There must be no tenants left. */
void dsa_policy_free(dsa_policy_t *p);

/* How many requests with this id are waiting, of all classes. */
uint32_t dsa_policy_waiting(const dsa_policy_t *p, const uint8_t id[32]);

/* 1 if the tenant has this id. */
int dsa_policy_is(const dsa_tenant_t *t, const uint8_t id[32]);

/*
 * Finds or creates the tenant with this id and class.  NULL: out of memory.
 */
dsa_tenant_t *dsa_policy_tenant(dsa_policy_t *p, const uint8_t id[32],
    dsa_priority_e priority, uint32_t weight);

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
 * than `least` and one of them was never admitted; otherwise NULL.  Classes do
 * not matter here: if a flood of high requests could drop all others from a
 * full queue, a lower class would get nothing.  O(tenants).
 */
dsa_tenant_t *dsa_policy_crowded(const dsa_policy_t *p, double least);

/* 1 unless another tenant, not of a lower class, has a reservation of it. */
int dsa_policy_may_admit(const dsa_policy_t *p, const dsa_tenant_t *t,
    uint32_t rank);

/* A request of t was admitted: its reservation and skip count end. */
void dsa_policy_admitted(dsa_policy_t *p, dsa_tenant_t *t);

/*
 * No other tenant's request is admitted to a rank before one of t, unless it is
 * of a higher class.
 */
void dsa_policy_reserve(dsa_policy_t *p, dsa_tenant_t *t, uint32_t rank);

/*
 * The tenant for whose first waiting request others may be preempted: of the
 * highest class that waits, the one with the reservation, otherwise the one
 * with the smallest share.  NULL when no tenant waits.
 */
dsa_tenant_t *dsa_policy_gaining(dsa_policy_t *p);

/*
 * 1 if a sequence of `from` with from_pages pages may be preempted in favor of
 * a request of `to` that needs to_pages pages.
 */
int dsa_policy_may_preempt(const dsa_policy_t *p, const dsa_tenant_t *from,
    uint32_t from_pages, const dsa_tenant_t *to, uint32_t to_pages);

/*
 * The tenant with the largest share in the lowest class, among those that have
 * running sequences with pages on a rank, or NULL.  to: the tenant in favor of
 * which one is to be preempted, NULL: a running sequence needs a page.
 */
dsa_tenant_t *dsa_policy_heaviest(const dsa_policy_t *p, uint32_t rank,
    const dsa_tenant_t *to);

/* Begins the prefill part of a step: fills the run queue. */
void dsa_policy_enqueue(dsa_policy_t *p);

/*
 * The tenant that is served next: of the class that is served next, the one
 * with the lowest service count; NULL: the run queue is empty.  After it
 * dsa_policy_charge() or dsa_policy_skip() must follow, with this tenant.
 */
dsa_tenant_t *dsa_policy_next(const dsa_policy_t *p);

/*
 * The tenant of dsa_policy_next() was given prefill tokens, at most
 * DSA_POLICY_ROUND.
 */
void dsa_policy_charge(dsa_policy_t *p, dsa_tenant_t *t, uint32_t tokens);

/*
 * The tenant of dsa_policy_next() has no work that can go on: it leaves the
 * run queue of this step.
 */
void dsa_policy_skip(dsa_policy_t *p, dsa_tenant_t *t);

/*
 * Ends the prefill part of a step: updates skip counts.  Returns the tenant
 * that is due for a reservation, or NULL.  admitted: 1 when the step admitted
 * a request.
 */
dsa_tenant_t *dsa_policy_end(dsa_policy_t *p, int admitted);


#endif /* _DSA_POLICY_H_INCLUDED_ */
