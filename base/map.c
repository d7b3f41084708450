
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/map.h"


#define DSA_NAMES_MIN   64
#define DSA_NAMES_MAX   (1U << 30)


static dsa_map_slot_t *dsa_map_slot(const dsa_map_t *t, dsa_str_t name);
static int dsa_map_grow(dsa_map_t *t);


int
dsa_map_add(dsa_map_t *t, dsa_str_t name, uint32_t value)
{
    dsa_map_slot_t    *slot;

    if (t->n >= t->size / 2 && dsa_map_grow(t) != DSA_OK) {
        return DSA_ERROR;
    }

    slot = dsa_map_slot(t, name);

    if (slot->name.data != NULL) {
        return DSA_AGAIN;
    }

    slot->name = name;
    slot->value = value;
    t->n++;

    return DSA_OK;
}


int64_t
dsa_map_find(const dsa_map_t *t, dsa_str_t name)
{
    dsa_map_slot_t    *slot;

    if (t->size == 0) {
        return -1;
    }

    slot = dsa_map_slot(t, name);

    return slot->name.data != NULL ? (int64_t) slot->value : -1;
}


void
dsa_map_free(dsa_map_t *t)
{
    free(t->slot);
    memset(t, 0, sizeof(dsa_map_t));
}


/* The name's slot, or the free one where it would stand. */

static dsa_map_slot_t *
dsa_map_slot(const dsa_map_t *t, dsa_str_t name)
{
    uint32_t  i;

    i = (uint32_t) XXH3_64bits(name.data, name.len) & (t->size - 1);

    while (t->slot[i].name.data != NULL && !dsa_str_eq(t->slot[i].name, name))
    {
        i = (i + 1) & (t->size - 1);
    }

    return &t->slot[i];
}


static int
dsa_map_grow(dsa_map_t *t)
{
    uint32_t      i;
    dsa_map_t     grown;

    if (t->size == DSA_NAMES_MAX) {
        return DSA_ERROR;
    }

    grown.n = t->n;
    grown.size = t->size != 0 ? t->size * 2 : DSA_NAMES_MIN;
    grown.slot = calloc(grown.size, sizeof(dsa_map_slot_t));

    if (grown.slot == NULL) {
        return DSA_ERROR;
    }

    for (i = 0; i < t->size; i++) {
        if (t->slot[i].name.data != NULL) {
            *dsa_map_slot(&grown, t->slot[i].name) = t->slot[i];
        }
    }

    free(t->slot);
    *t = grown;

    return DSA_OK;
}
