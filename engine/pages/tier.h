
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_TIER_H_INCLUDED_
#define _DSA_TIER_H_INCLUDED_


#include "base/error.h"
#include "base/tiers.h"
#include "engine/pages/digest.h"


/*
 * The interface of a tier behind host memory.  The caller submits operations
 * on pages, which are identified by their digests; the tier executes them in
 * its own threads; the caller collects them when they have ended.  A page is
 * read into a host page and written from one.
 */

typedef enum {
    DSA_TIER_PROBE = 1,                 /* count the pages that exist */
    DSA_TIER_READ,                      /* read one page */
    DSA_TIER_WRITE                      /* write one page */
} dsa_tier_kind_e;


typedef enum {
    DSA_TIER_DONE = 1,
    DSA_TIER_MISS,                      /* READ: the tier has no such page */
    DSA_TIER_INVALID,                   /* READ: the value was not this page; it
                                           was deleted */
    DSA_TIER_FAILED                     /* the tier failed, or was too slow */
} dsa_tier_result_e;


typedef struct dsa_tier_op_s  dsa_tier_op_t;

struct dsa_tier_op_s {
    dsa_tier_kind_e     kind;
    dsa_tier_result_e   result;         /* out */
    const dsa_digest_t *digest;         /* [n]; the caller keeps them until the
                                           operation is collected */
    uint32_t            n;              /* PROBE: >= 1; otherwise 1 */
    uint32_t            found;          /* out, PROBE: the first `found` pages
                                           are all there; a page whose server
                                           is off counts as absent */
    uint8_t            *page;           /* READ, WRITE: page_bytes, which only
                                           the tier may access until the
                                           operation is collected; READ: the
                                           bytes are undefined unless it is
                                           DONE.  NULL: it is in the memory of
                                           another host */
    uint32_t            host;           /* READ, WRITE: which host has the
                                           memory of the page, */
    uint32_t            slab;           /* and where it is there */
    uint32_t            index;
    uint64_t            queued_us;      /* out: CLOCK_MONOTONIC */
    uint64_t            begin_us;       /* out: when a thread began it; 0: none
                                           did */
    uint64_t            end_us;         /* out */
    void               *owner;          /* for the caller */
    dsa_tier_op_t      *next;           /* used by the tier until collected,
                                           then in the list of collect() */
};


/* What any tier has, and what it has done since the replica started. */

typedef struct {
    uint64_t            pages;          /* that it can hold; 0 if not known */
    uint64_t            used;           /* of them, with contents that can be
                                           found, or in use; 0 if not known */
    uint64_t            hit_tokens;     /* prompt tokens found here first */
    uint64_t            read_pages;     /* moved from here to a faster tier */
    uint64_t            read_bytes;
    uint64_t            read_us;        /* sum of their times */
    uint64_t            write_pages;    /* moved here */
    uint64_t            write_bytes;
    uint64_t            write_us;
    uint64_t            abandoned;      /* pages whose read was too slow */
    uint64_t            invalid;        /* pages that did not verify */
    uint64_t            failed;         /* operations that failed, attempts to
                                           connect included */
    uint64_t            lost;           /* pages that left the tier before a
                                           slower one had them */
    uint64_t            servers;        /* that hold its pages; 0 if it has no
                                           servers */
    uint64_t            servers_on;     /* of them, in use at the moment */
} dsa_tier_stats_t;


/* All functions but close() return at once.  submit NULL: there is no tier. */

typedef struct {
    void               *data;           /* private to the tier */

    /* Returns 1 if submit() would accept at least some operations. */
    int               (*on)(void *data);

    /*
     * Queues an operation, which must exist until it is collected.  DSA_AGAIN:
     * it is not accepted now, and not queued.
     */
    int               (*submit)(void *data, dsa_tier_op_t *op);

    /*
     * Removes the operations with this owner that were not begun from the
     * queue.  They end as DSA_TIER_FAILED and are collected like others.
     */
    void              (*cancel)(void *data, const void *owner);

    /*
     * Returns the operations that have ended, as a list in the order in which
     * they ended.
     */
    dsa_tier_op_t    *(*collect)(void *data);

    /*
     * Sets pages, used, servers and servers_on as far as they are known, and
     * adds to failed what failed without an operation.
     */
    void              (*stats)(void *data, dsa_tier_stats_t *stats);

    /*
     * Ends the threads.  Operations that were not collected belong to the
     * caller again.
     */
    void              (*close)(void *data);
} dsa_tier_t;


#endif /* _DSA_TIER_H_INCLUDED_ */
