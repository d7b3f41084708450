
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "ngx_http_dsa_prefix_map.h"


static const ngx_http_dsa_prefix_set_t *ngx_http_dsa_prefix_map_set(
    const ngx_http_dsa_prefix_map_t *map, uint64_t key);


ngx_http_dsa_prefix_map_t *
ngx_http_dsa_prefix_map_init(void *memory, size_t size)
{
    ngx_http_dsa_prefix_map_t  *map = memory;

    uint64_t  n;

    assert((uintptr_t) memory % _Alignof(ngx_http_dsa_prefix_map_t) == 0);

    if (size < sizeof(ngx_http_dsa_prefix_map_t)
               + sizeof(ngx_http_dsa_prefix_set_t))
    {
        return NULL;
    }

    n = (size - sizeof(ngx_http_dsa_prefix_map_t))
        / sizeof(ngx_http_dsa_prefix_set_t);

    memset(map, 0, size);

    /* 32 bits of the key choose the set */

    map->n_sets = n < UINT32_MAX ? n : UINT32_MAX;

    return map;
}


/* Returns the set of a key: its upper half, scaled to the number of sets. */

static const ngx_http_dsa_prefix_set_t *
ngx_http_dsa_prefix_map_set(const ngx_http_dsa_prefix_map_t *map,
    uint64_t key)
{
    return &map->sets[(key >> 32) * map->n_sets >> 32];
}


uint32_t
ngx_http_dsa_prefix_map_find(const ngx_http_dsa_prefix_map_t *map,
    uint64_t key)
{
    uint32_t                            i;
    const ngx_http_dsa_prefix_set_t    *set;

    set = ngx_http_dsa_prefix_map_set(map, key);

    for (i = 0; i < NGX_HTTP_DSA_PREFIX_WAYS; i++) {
        if (set->entries[i].key == key) {
            return set->entries[i].replica;
        }
    }

    return 0;
}


void
ngx_http_dsa_prefix_map_put(ngx_http_dsa_prefix_map_t *map, uint64_t key,
    uint32_t replica)
{
    uint32_t                      i, age, oldest;
    ngx_http_dsa_prefix_set_t    *set;
    ngx_http_dsa_prefix_entry_t  *entry, *to;

    assert(replica != 0);

    set = (ngx_http_dsa_prefix_set_t *) ngx_http_dsa_prefix_map_set(map, key);

    to = NULL;
    oldest = 0;

    for (i = 0; i < NGX_HTTP_DSA_PREFIX_WAYS; i++) {
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
ngx_http_dsa_prefix_map_prefetch(const ngx_http_dsa_prefix_map_t *map,
    uint64_t key)
{
    const ngx_http_dsa_prefix_set_t  *set;

    set = ngx_http_dsa_prefix_map_set(map, key);

    __builtin_prefetch(&set->entries[0]);
    __builtin_prefetch(&set->entries[NGX_HTTP_DSA_PREFIX_WAYS / 2]);
}
