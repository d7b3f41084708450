
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_PREFIX_MAP_H_INCLUDED_
#define _NGX_HTTP_DSA_PREFIX_MAP_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * A map from keys of prefixes to numbers of replicas, in one piece of memory of
 * a fixed size.  It never fails for lack of room: a new entry replaces an old
 * one.
 *
 * An entry can be in one set of 8 only, which its key determines.  The entry of
 * the set that was written least recently is replaced.  So each operation reads
 * 128 bytes at most, there are no lists and no free memory to manage, and a
 * process that is killed in the middle of an operation leaves at worst one
 * wrong entry.  The price is that LRU is exact only within a set.
 *
 * The caller has to lock the map, except for a prefetch.
 */

#define NGX_HTTP_DSA_PREFIX_WAYS    8


typedef struct {
    uint64_t                     key;
    uint32_t                     replica;   /* 0: the entry is free */
    uint32_t                     used;      /* the clock, when it was put */
} ngx_http_dsa_prefix_entry_t;


typedef struct {
    ngx_http_dsa_prefix_entry_t  entries[NGX_HTTP_DSA_PREFIX_WAYS];
} ngx_http_dsa_prefix_set_t;


typedef struct {
    uint64_t                     n_sets;    /* at least 1 */
    uint32_t                     clock;

    _Alignas(128)
    ngx_http_dsa_prefix_set_t    sets[];    /* [n_sets] */
} ngx_http_dsa_prefix_map_t;


/*
 * Makes an empty map of size bytes, aligned to 128.  NULL: there is no room for
 * a set.
 */
ngx_http_dsa_prefix_map_t *ngx_http_dsa_prefix_map_init(void *memory,
    size_t size);

/* The replica that was put for the key last; 0: none, or it was replaced. */
uint32_t ngx_http_dsa_prefix_map_find(const ngx_http_dsa_prefix_map_t *map,
    uint64_t key);

/*
 * Sets the replica of a key, which is not 0, and makes its entry the newest of
 * its set.
 */
void ngx_http_dsa_prefix_map_put(ngx_http_dsa_prefix_map_t *map, uint64_t key,
    uint32_t replica);

/*
 * Loads the set of a key into the CPU's cache, without a lock.  A request has
 * several keys, whose sets load at the same time this way.
 */
void ngx_http_dsa_prefix_map_prefetch(const ngx_http_dsa_prefix_map_t *map,
    uint64_t key);


#endif /* _NGX_HTTP_DSA_PREFIX_MAP_H_INCLUDED_ */
