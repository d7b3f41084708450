
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_LEADER_PARTS_H_INCLUDED_
#define _DSA_HOSTS_LEADER_PARTS_H_INCLUDED_


#include "engine/hosts/exchange.h"
#include "engine/hosts/far.h"
#include "engine/hosts/leader.h"
#include "engine/hosts/plan.h"
#include "engine/hosts/step.h"
#include "engine/hosts/watch.h"


/* Shared by leader.c (steps) and leader_pages.c (pages of host memory). */

#define DSA_HOSTS_DEPTH     2           /* most steps in flight */


typedef struct dsa_backend_leader_s  dsa_backend_leader_t;


/* Where the samples of a step in flight are put. */

typedef struct {
    dsa_hosts_slot_t       *slot;       /* [most entries] */
    uint32_t                n;
} dsa_hosts_flight_t;


/* A RESULT that was received before the leader has waited for its step. */

typedef struct {
    char                   *text;
    uint64_t                bytes;
} dsa_hosts_early_t;


/* A tier behind host memory, on all hosts. */

typedef struct {
    dsa_backend_leader_t   *leader;
    uint32_t                number;
    dsa_tier_t              local;      /* that of this host */
} dsa_hosts_tier_t;


struct dsa_backend_leader_s {
    const dsa_hosts_leader_t   *conf;
    dsa_backend_t          *local;      /* the backend of this host */
    dsa_hosts_limits_t      limits;
    dsa_hosts_exchange_t    exchange;
    dsa_hosts_wire_t        wire[DSA_MAX_GPUS];     /* [hosts], 0 is unused */
    dsa_hosts_watch_t      *watch;
    dsa_hosts_far_t        *far;
    dsa_hosts_ready_t       ready[DSA_MAX_GPUS];    /* [hosts], 0 is unused */
    dsa_hosts_tier_t        tier[DSA_TIERS];
    uint64_t                host_memory;
    dsa_hosts_flight_t      flight[DSA_HOSTS_DEPTH];
    dsa_hosts_early_t       early[DSA_MAX_GPUS][DSA_HOSTS_DEPTH];
    uint32_t                n_early[DSA_MAX_GPUS];
    uint32_t                started;    /* steps, modulo 2^32 */
    uint32_t                ended;
    uint32_t                failed;     /* 1: a call has failed, */
    dsa_err_t               err;        /* and the first one that could not
                                           report it, if there is one */
    dsa_buf_t               text;       /* of a message */
};


/*
 * leader.c: begins and ends a call that may send and receive, for at most the
 * time limit of a step.
 */
int dsa_hosts_lead_begin(dsa_backend_leader_t *h, const char *what,
    dsa_err_t *err);
int dsa_hosts_lead_end(dsa_backend_leader_t *h, int rc);

/* leader_pages.c: the functions of the backend for pages. */
int dsa_hosts_lead_pin(dsa_backend_t *b, void *memory, uint64_t bytes,
    dsa_err_t *err);
int dsa_hosts_lead_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);
int dsa_hosts_lead_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    int wait, uint64_t *calls, dsa_err_t *err);


#endif /* _DSA_HOSTS_LEADER_PARTS_H_INCLUDED_ */
