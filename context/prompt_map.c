
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "context/prompt_map.h"


static const dsa_prompt_set_t *dsa_prompt_map_set(const dsa_prompt_map_t *map,
    uint64_t key);


dsa_prompt_map_t *
dsa_prompt_map_init(void *memory, size_t size)
{
    dsa_prompt_map_t  *map = memory;

    uint64_t  n;

    assert((uintptr_t) memory % _Alignof(dsa_prompt_map_t) == 0);

    if (size < sizeof(dsa_prompt_map_t) + sizeof(dsa_prompt_set_t)) {
        return NULL;
    }

    n = (size - sizeof(dsa_prompt_map_t)) / sizeof(dsa_prompt_set_t);

    memset(map, 0, size);

    /* 32 bits of the key choose the set */

    map->n_sets = n < UINT32_MAX ? n : UINT32_MAX;

    return map;
}


/* Returns the set of a key: its upper half, scaled to the number of sets. */

static const dsa_prompt_set_t *
dsa_prompt_map_set(const dsa_prompt_map_t *map, uint64_t key)
{
    return &map->sets[(key >> 32) * map->n_sets >> 32];
}


uint32_t
dsa_prompt_map_find(const dsa_prompt_map_t *map, uint64_t key)
{
    uint32_t                 i;
    const dsa_prompt_set_t  *set;

    set = dsa_prompt_map_set(map, key);

    for (i = 0; i < DSA_PROMPT_WAYS; i++) {
        if (set->entries[i].key == key) {
            return set->entries[i].replica;
        }
    }

    return 0;
}


void
dsa_prompt_map_put(dsa_prompt_map_t *map, uint64_t key,
    uint32_t replica)
{
    uint32_t             i, age, oldest;
    dsa_prompt_set_t    *set;
    dsa_prompt_entry_t  *entry, *to;

    assert(replica != 0);

    set = (dsa_prompt_set_t *) dsa_prompt_map_set(map, key);

    to = NULL;
    oldest = 0;

    for (i = 0; i < DSA_PROMPT_WAYS; i++) {
        entry = &set->entries[i];

        if (entry->key == key) {
            to = entry;
            break;
        }

        /* the clock may wrap around; a free entry is older than all others */

        age = entry->replica != 0 ? map->clock - entry->used : UINT32_MAX;

        if (to == NULL || age > oldest) {
            to = entry;
            oldest = age;
        }
    }

    to->key = key;
    to->replica = replica;
    to->used = ++map->clock;
}


void
dsa_prompt_map_prefetch(const dsa_prompt_map_t *map, uint64_t key)
{
    const dsa_prompt_set_t  *set;

    set = dsa_prompt_map_set(map, key);

    __builtin_prefetch(&set->entries[0]);
    __builtin_prefetch(&set->entries[DSA_PROMPT_WAYS / 2]);
}
