
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Key entries of API keys.  What is accepted is within its limits, is written
 * as a key entry of at most the largest size, and is read again as the same
 * key.  An error has no text of the key entry, because someone may have put the
 * text of a key there.
 */


#include <stdlib.h>
#include <string.h>

#include "redis_schema/keys.h"


#define MEMORY  (1024 * 1024)
#define SECRET  "sk-dsa-"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check_same(const dsa_key_t *a, const dsa_key_t *b)
{
    uint32_t  i;

    if (!dsa_str_eq(a->id, b->id) || !dsa_str_eq(a->name, b->name)
        || !dsa_str_eq(a->tenant, b->tenant) || a->state != b->state
        || memcmp(a->hash, b->hash, DSA_KEY_HASH_LEN) != 0
        || memcmp(a->old_hash, b->old_hash, DSA_KEY_HASH_LEN) != 0
        || a->old_until != b->old_until || a->created != b->created
        || a->expires != b->expires || a->n_models != b->n_models
        || memcmp(&a->limits, &b->limits, sizeof(dsa_key_limits_t)) != 0)
    {
        abort();
    }

    for (i = 0; i < a->n_models; i++) {
        if (!dsa_str_eq(a->models[i], b->models[i])) {
            abort();
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_buf_t     one, two;
    dsa_err_t     err;
    dsa_key_t     key, again;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(MEMORY);

    if (arena == NULL) {
        abort();
    }

    memset(&one, 0, sizeof(dsa_buf_t));
    memset(&two, 0, sizeof(dsa_buf_t));
    err.text[0] = '\0';

    if (dsa_key_read(&key, arena, dsa_str(data, size), &err) != DSA_OK) {
        if (err.text[0] == '\0' || strstr(err.text, SECRET) != NULL) {
            abort();
        }

        goto done;
    }

    if (size > DSA_KEY_MAX_ENTRY || dsa_arena_used(arena) >= 65536
        || dsa_key_check(&key, NULL) != DSA_OK)
    {
        abort();
    }

    dsa_key_write(&one, &key);

    if (one.failed || one.len > DSA_KEY_MAX_ENTRY
        || memchr(one.data, '\n', one.len) != NULL
        || dsa_key_read(&again, arena, dsa_str(one.data, one.len), NULL)
           != DSA_OK)
    {
        abort();
    }

    check_same(&key, &again);
    dsa_key_write(&two, &again);

    if (two.len != one.len || memcmp(two.data, one.data, one.len) != 0) {
        abort();
    }

done:

    dsa_buf_free(&one);
    dsa_buf_free(&two);
    dsa_arena_destroy(arena);

    return 0;
}
