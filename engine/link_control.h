
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The control block at the head of the segment: the indices of the rings, and
 * what the replica reports about itself.
 */


#ifndef _DSA_LINK_CONTROL_H_INCLUDED_
#define _DSA_LINK_CONTROL_H_INCLUDED_


#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tiers.h"
#include "base/token_times.h"
#include "engine/link_ring.h"
#include "engine/link_version.h"


#define DSA_LINK_CONTROL_SIZE   4096      /* of the control block */


/* What a tier has, and what it has done since the replica started. */

typedef struct {
    _Atomic uint64_t    pages;          /* that it can hold; 0 if not known */
    _Atomic uint64_t    used;           /* of them, with contents that can be
                                           found, or in use; 0 if not known */
    _Atomic uint64_t    hit_tokens;     /* prompt tokens found here first */
    _Atomic uint64_t    read_pages;     /* moved from here to a faster tier */
    _Atomic uint64_t    read_bytes;
    _Atomic uint64_t    read_us;        /* sum of their times */
    _Atomic uint64_t    write_pages;    /* moved here */
    _Atomic uint64_t    write_bytes;
    _Atomic uint64_t    write_us;
    _Atomic uint64_t    abandoned;      /* pages whose read was too slow */
    _Atomic uint64_t    invalid;        /* pages that did not verify */
    _Atomic uint64_t    failed;         /* operations that failed, attempts to
                                           connect included */
    _Atomic uint64_t    lost;           /* pages that left the tier before a
                                           slower one had them */
    _Atomic uint64_t    servers;        /* that hold its pages; 0 if it has no
                                           servers */
    _Atomic uint64_t    servers_on;     /* of them, in use at the moment */
} dsa_link_tier_t;


/* The head of the segment. */

typedef struct {
    dsa_link_indices_t  submit;
    dsa_link_indices_t  event;

    /* written by the replica at least every 100 ms */

    _Alignas(DSA_LINK_CACHE_LINE)
    _Atomic uint64_t    alive_ms;           /* CLOCK_MONOTONIC, by the thread
                                               that serves the rings */
    _Atomic uint64_t    step_started_ms;    /* CLOCK_MONOTONIC, by the thread
                                               that computes; 0: idle */
    _Atomic uint64_t    steps;
    _Atomic uint64_t    prompt_tokens;      /* since the replica started */
    _Atomic uint64_t    cached_tokens;
    _Atomic uint64_t    completion_tokens;
    _Atomic uint64_t    preemptions;
    _Atomic uint64_t    draft_tokens;       /* drafts that were verified */
    _Atomic uint64_t    accepted_tokens[DSA_LINK_DRAFTS];   /* of them, part of
                                               an answer, by the number of
                                               drafts before them in the step */
    _Atomic uint64_t    decodes;            /* answers that a step continued,
                                               each in each step */
    _Atomic uint64_t    decode_tokens;      /* by which they were continued */
    _Atomic uint32_t    running;            /* sequences */
    _Atomic uint32_t    waiting;
    _Atomic uint32_t    pages;
    _Atomic uint32_t    pages_used;
    _Atomic uint32_t    draining;           /* 1: rejects new requests */

    _Atomic uint64_t    page_bytes;         /* of a page, in every tier; 0: not
                                               known */
    dsa_link_tier_t     tier[DSA_TIERS];
    _Atomic uint64_t    step_timeout_ms;    /* the supervisor ends the replica
                                               when a step takes longer, or
                                               alive_ms is older; 0: never */
    _Atomic uint64_t    ended;              /* requests that have ended since
                                               the replica started, without
                                               those that were removed from
                                               its full queue */
    _Atomic uint64_t    token_times[DSA_TOKEN_TIMES + 1];   /* tokens of an
                                               answer after its first one, by
                                               the time since the one before */
    _Atomic uint64_t    token_us;           /* sum of these times */
    _Atomic uint64_t    expert_rows;        /* pairs of a token and an expert in
                                               all layers; 0: not counted */
    _Atomic uint64_t    fullest_rows;       /* what they would be if all GPUs
                                               had as many as the fullest one
                                               in each layer of each step */
} dsa_link_control_t;


_Static_assert(sizeof(dsa_link_control_t) <= DSA_LINK_CONTROL_SIZE,
               "the control block has a page of its own");

_Static_assert(offsetof(dsa_link_control_t, submit) == 0
               && offsetof(dsa_link_control_t, event) == 192
               && offsetof(dsa_link_control_t, alive_ms) == 384
               && offsetof(dsa_link_control_t, preemptions) == 432
               && offsetof(dsa_link_control_t, draft_tokens) == 440
               && offsetof(dsa_link_control_t, decode_tokens) == 512
               && offsetof(dsa_link_control_t, running) == 520
               && offsetof(dsa_link_control_t, draining) == 536
               && offsetof(dsa_link_control_t, page_bytes) == 544
               && offsetof(dsa_link_control_t, tier) == 552
               && offsetof(dsa_link_control_t, step_timeout_ms) == 912
               && offsetof(dsa_link_control_t, ended) == 920
               && offsetof(dsa_link_control_t, token_times) == 928
               && offsetof(dsa_link_control_t, token_us) == 1192
               && offsetof(dsa_link_control_t, fullest_rows) == 1208
               && sizeof(dsa_link_tier_t) == 120,
               "the layout of the control block");


#endif /* _DSA_LINK_CONTROL_H_INCLUDED_ */
