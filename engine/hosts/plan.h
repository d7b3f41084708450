
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_PLAN_H_INCLUDED_
#define _DSA_HOSTS_PLAN_H_INCLUDED_


#include "engine/backend.h"
#include "engine/pages/host.h"


/* The bytes of PLAN: what the leader has configured for all hosts. */

typedef struct {
    uint32_t            hosts;
    uint32_t            host;           /* that of the follower, 1 .. hosts-1 */
    uint32_t            gpus;           /* of each host */
    uint32_t            backend;        /* dsa_backend_e */
    uint32_t            precision;      /* dsa_precision_e */
    uint32_t            kv;             /* dsa_kv_e */
    uint32_t            quantize;
    uint32_t            context;
    uint32_t            max_tokens;
    uint32_t            max_seqs;
    uint32_t            allowed;
    uint32_t            persistent;
    uint32_t            tiers;          /* mask of 1 << tier, of those behind
                                           host memory */
    uint32_t            reserved;       /* 0 */
    uint64_t            kv_memory;
    uint64_t            host_memory;    /* of each host */
    uint64_t            limit_ms;       /* of a step */
} dsa_hosts_plan_t;


/* The bytes of READY: what a follower has opened. */

typedef struct {
    char                fingerprint[36];        /* of the backend */
    uint32_t            pages;          /* of each rank */
    uint64_t            page_bytes;
    uint32_t            slabs;          /* of host memory */
    uint32_t            reserved;       /* 0 */
    uint32_t            slab_pages[DSA_HOST_SLABS];
    int32_t             slab_node[DSA_HOST_SLABS];
    int32_t             node[DSA_MAX_GPUS];     /* of its ranks; -1: not
                                           known */
} dsa_hosts_ready_t;


/* Sets plan from the configuration of the leader's backend and its tiers. */
void dsa_hosts_plan(dsa_hosts_plan_t *plan, dsa_backend_e kind,
    const dsa_backend_conf_t *conf, uint32_t host, uint32_t tiers,
    uint64_t limit_ms);

/*
 * Sets the members of conf that the leader decides from a plan; conf has those
 * of this host: model, gpus and their numbers.  DSA_ERROR with err if this host
 * has another backend or another number of GPUs, or if a value is out of range.
 */
int dsa_hosts_plan_apply(dsa_backend_conf_t *conf, dsa_backend_e kind,
    const dsa_hosts_plan_t *plan, dsa_err_t *err);

/*
 * Compares what a follower has opened with the leader's backend, and lowers
 * b->pages to the least of all hosts.  hosts is their number; memory is 1 if
 * they have host memory.  DSA_ERROR with err: the weights, the layout of a page
 * or the number of pages is one that cannot be used together; name is that of
 * the follower.
 */
int dsa_hosts_ready_check(dsa_backend_t *b, const dsa_hosts_ready_t *ready,
    uint32_t hosts, int memory, const char *name, dsa_err_t *err);


#endif /* _DSA_HOSTS_PLAN_H_INCLUDED_ */
