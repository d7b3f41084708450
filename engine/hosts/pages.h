
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOSTS_PAGES_H_INCLUDED_
#define _DSA_HOSTS_PAGES_H_INCLUDED_


#include "engine/backend.h"
#include "engine/pages/tier.h"


/*
 * The bytes of the messages about pages in the memory of a follower, which the
 * index of the leader has.  A tag is the digest of the page that the leader
 * expects in a host page.  The follower keeps the tags of what it has, and
 * answers LOST where it has another one, so that a page is never read as
 * another page.
 */

#define DSA_HOSTS_COPIES    256         /* most pages of a COPY */
#define DSA_HOSTS_MOVES     64          /* pages of a MOVE: bits of lost */
#define DSA_HOSTS_OPS       4096        /* most TIER without their TIERED, as
                                           many as DSA_REDIS_QUEUE */


typedef struct {
    uint32_t            way;            /* dsa_move_e */
    uint32_t            rank;           /* of the replica */
} dsa_hosts_moves_t;                    /* of MOVE; behind it are [1 ..
                                           DSA_HOSTS_MOVES]: */

typedef struct {
    uint32_t            page;           /* of the rank */
    uint32_t            slab;           /* of the follower */
    uint32_t            index;          /* of the page in the slab */
    uint32_t            reserved;       /* 0 */
    uint8_t             tag[DSA_MOVE_TAG];
} dsa_hosts_move_t;


/* The oldest MOVE of a rank and way has ended. */

typedef struct {
    uint32_t            way;
    uint32_t            rank;
    uint64_t            lost;           /* MOVE_IN: bit i: page i of the MOVE
                                           is not in host memory */
} dsa_hosts_moved_t;


/* An operation of a tier behind host memory, for a page of the follower. */

#define DSA_HOSTS_CANCEL    0           /* as kind: of the operation id */

typedef struct {
    uint32_t            id;
    uint32_t            kind;           /* DSA_TIER_READ, DSA_TIER_WRITE, or
                                           DSA_HOSTS_CANCEL */
    uint32_t            tier;
    uint32_t            slab;
    uint32_t            index;
    uint32_t            reserved;       /* 0 */
    uint8_t             tag[DSA_MOVE_TAG];
} dsa_hosts_op_t;


/* It has ended. */

typedef struct {
    uint32_t            id;
    uint32_t            result;         /* dsa_tier_result_e */
    uint64_t            run_us;         /* from its begin to its end; 0: no
                                           thread began it */
    uint64_t            took_us;        /* from the TIER to its end; 0: no
                                           thread began it */
} dsa_hosts_op_ended_t;


#endif /* _DSA_HOSTS_PAGES_H_INCLUDED_ */
