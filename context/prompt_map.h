
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PROMPT_MAP_H_INCLUDED_
#define _DSA_PROMPT_MAP_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


/*
 * A map from keys of prefixes to numbers of replicas, in memory of a fixed
 * size.  When it is full, a new entry replaces an old one.
 *
 * It is a set-associative table: the key determines a set of 8 entries, and a
 * new entry replaces the one in its set that was written least recently.  So
 * an operation reads at most 128 bytes, there are no lists and no free memory
 * to manage, and a process that is killed during an operation leaves at most
 * one wrong entry.  The replacement is LRU only within a set.
 *
 * The caller locks the map, except for a prefetch.
 */

#define DSA_PROMPT_WAYS    8


typedef struct {
    uint64_t                     key;
    uint32_t                     replica;   /* 0: the entry is free */
    uint32_t                     used;      /* value of clock when the entry
                                               was written */
} dsa_prompt_entry_t;


typedef struct {
    dsa_prompt_entry_t           entries[DSA_PROMPT_WAYS];
} dsa_prompt_set_t;


typedef struct {
    uint64_t                     n_sets;    /* at least 1 */
    uint32_t                     clock;

    _Alignas(128)
    dsa_prompt_set_t             sets[];    /* [n_sets] */
} dsa_prompt_map_t;


/*
 * Makes an empty map in size bytes of memory, which it aligns to 128.  Returns
 * NULL if there is no room for a set.
 */
dsa_prompt_map_t *dsa_prompt_map_init(void *memory, size_t size);

/* Returns the replica of a key; 0 if it was never set or was replaced. */
uint32_t dsa_prompt_map_find(const dsa_prompt_map_t *map, uint64_t key);

/*
 * Sets the replica of a key, and makes its entry the newest one of its set.
 * replica is not 0.
 */
void dsa_prompt_map_put(dsa_prompt_map_t *map, uint64_t key,
    uint32_t replica);

/*
 * Prefetches the set of a key into the CPU's cache, without a lock, so that
 * the sets of the keys of a request are loaded in parallel.
 */
void dsa_prompt_map_prefetch(const dsa_prompt_map_t *map,
    uint64_t key);


#endif /* _DSA_PROMPT_MAP_H_INCLUDED_ */
