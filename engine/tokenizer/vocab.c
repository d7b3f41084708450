
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/tokenizer/parts.h"


static dsa_vocab_slot_t *dsa_vocab_slot(const dsa_vocab_t *v, dsa_str_t key);


int
dsa_vocab_create(dsa_vocab_t *v, size_t n)
{
    size_t  size;

    for (size = 16; size < 2 * n + 1; size *= 2) { /* void */ }

    v->slot = calloc(size, sizeof(dsa_vocab_slot_t));
    if (v->slot == NULL) {
        return DSA_ERROR;
    }

    v->mask = (uint32_t) (size - 1);

    return DSA_OK;
}


void
dsa_vocab_free(dsa_vocab_t *v)
{
    free(v->slot);
    v->slot = NULL;
}


static dsa_vocab_slot_t *
dsa_vocab_slot(const dsa_vocab_t *v, dsa_str_t key)
{
    uint32_t           i;
    dsa_vocab_slot_t  *slot;

    i = (uint32_t) XXH3_64bits(key.data, key.len);

    for ( ;; i++) {
        slot = &v->slot[i & v->mask];

        if (!slot->used || dsa_str_eq(slot->key, key)) {
            return slot;
        }
    }
}


int
dsa_vocab_add(dsa_vocab_t *v, dsa_str_t key, uint32_t id)
{
    dsa_vocab_slot_t  *slot;

    slot = dsa_vocab_slot(v, key);

    if (slot->used) {
        return DSA_ERROR;
    }

    slot->key = key;
    slot->id = id;
    slot->used = 1;

    return DSA_OK;
}


uint32_t
dsa_vocab_find(const dsa_vocab_t *v, dsa_str_t key)
{
    dsa_vocab_slot_t  *slot;

    slot = dsa_vocab_slot(v, key);

    return slot->used ? slot->id : DSA_TOKENIZER_NONE;
}
