
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BASE_TIERS_H_INCLUDED_
#define _DSA_BASE_TIERS_H_INCLUDED_


/*
 * The tiers of the prefix cache by number, the fastest first.  A page may be in
 * several tiers.  Counts, prices and times of tiers are arrays with these
 * indices.  Pages of the tiers from DSA_TIER_SLOWER on pass through host
 * memory.
 */

typedef enum {
    DSA_TIER_GPU = 0,                   /* memory of the replica's GPUs; without
                                           GPUs, the memory that steps use */
    DSA_TIER_HOST,                      /* host memory */
    DSA_TIER_REDIS,
    DSA_TIERS
} dsa_tier_e;

#define DSA_TIER_SLOWER     (DSA_TIER_HOST + 1)


/* The names that users see. */

typedef struct {
    const char         *name;           /* in metrics and prices */
    const char         *tokens;         /* of a count of tokens, in JSON */
    const char         *cached;         /* of the same in the ledger */
    unsigned            servers;        /* 1: its pages are on servers, and its
                                           capacity is not known */
} dsa_tier_name_t;


static const dsa_tier_name_t  dsa_tier_names[DSA_TIERS]
    __attribute__((unused)) =
{
    { "gpu", "gpu_tokens", "cached_gpu_tokens", 0 },
    { "host", "host_tokens", "cached_host_tokens", 0 },
    { "redis", "redis_tokens", "cached_redis_tokens", 1 }
};


#endif /* _DSA_BASE_TIERS_H_INCLUDED_ */
