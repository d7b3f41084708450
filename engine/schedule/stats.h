
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHED_STATS_H_INCLUDED_
#define _DSA_SCHED_STATS_H_INCLUDED_


#include <stdint.h>


/* Where pages are: the memory of the ranks, host memory, Redis. */

typedef enum {
    DSA_TIER_GPU = 0,
    DSA_TIER_HOST,
    DSA_TIER_REDIS,
    DSA_TIERS
} dsa_tier_e;


typedef struct {
    uint64_t            pages;          /* that the tier can hold; Redis: 0 */
    uint64_t            used;           /* of them, with contents that can be
                                           found, or in use; Redis: 0 */
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
    uint64_t            servers;        /* Redis: that hold its pages */
    uint64_t            servers_on;     /* of them, in use at the moment */
} dsa_tier_stats_t;


#endif /* _DSA_SCHED_STATS_H_INCLUDED_ */
