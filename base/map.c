
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <sys/auxv.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/map.h"


#define DSA_MAP_MIN   16
#define DSA_MAP_MAX   (1U << 30)        /* buckets */


static uint64_t dsa_map_seed(void);
static uint32_t dsa_map_hash(const dsa_map_t *m, dsa_str_t key);
static dsa_map_bucket_t *dsa_map_find_bucket(const dsa_map_t *m, dsa_str_t key,
    uint32_t hash);
static int dsa_map_resize(dsa_map_t *m, uint32_t size);


int
dsa_map_reserve(dsa_map_t *m, uint32_t n)
{
    uint32_t  size;

    if (n > DSA_MAP_MAX / 2) {
        return DSA_ERROR;
    }

    for (size = DSA_MAP_MIN; size / 2 < n; size *= 2) { /* void */ }

    return size > m->size ? dsa_map_resize(m, size) : DSA_OK;
}


int
dsa_map_add(dsa_map_t *m, dsa_str_t key, uint64_t value)
{
    uint32_t           hash;
    dsa_map_bucket_t  *bucket;

    if (key.len > UINT32_MAX) {
        return DSA_ERROR;
    }

    if (m->size == 0 && dsa_map_reserve(m, 1) != DSA_OK) {
        return DSA_ERROR;
    }

    hash = dsa_map_hash(m, key);
    bucket = dsa_map_find_bucket(m, key, hash);

    if (bucket->key != NULL) {
        return DSA_AGAIN;
    }

    if (m->n == m->size / 2) {
        if (dsa_map_reserve(m, m->n + 1) != DSA_OK) {
            return DSA_ERROR;
        }

        bucket = dsa_map_find_bucket(m, key, hash);
    }

    /* a search ends at a free bucket, so that one must always exist */

    assert(m->n < m->size / 2);

    /* an empty string may have no bytes to point to */

    bucket->key = key.data != NULL ? key.data : "";
    bucket->len = (uint32_t) key.len;
    bucket->hash = hash;
    bucket->value = value;

    m->n++;

    return DSA_OK;
}


uint64_t *
dsa_map_find(const dsa_map_t *m, dsa_str_t key)
{
    dsa_map_bucket_t  *bucket;

    if (m->n == 0) {
        return NULL;
    }

    bucket = dsa_map_find_bucket(m, key, dsa_map_hash(m, key));

    return bucket->key != NULL ? &bucket->value : NULL;
}


int
dsa_map_delete(dsa_map_t *m, dsa_str_t key)
{
    uint32_t           i, hole, mask, home;
    dsa_map_bucket_t  *bucket;

    if (m->n == 0) {
        return DSA_AGAIN;
    }

    bucket = dsa_map_find_bucket(m, key, dsa_map_hash(m, key));

    if (bucket->key == NULL) {
        return DSA_AGAIN;
    }

    /*
     * A search stops at the first free bucket, so that the hole must not
     * separate an entry from the bucket that its hash selects.  Entries that it
     * would separate move into it, and leave a new hole behind.
     */

    mask = m->size - 1;
    hole = (uint32_t) (bucket - m->bucket);

    for (i = (hole + 1) & mask; m->bucket[i].key != NULL; i = (i + 1) & mask) {
        home = m->bucket[i].hash & mask;

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->bucket[hole] = m->bucket[i];
            hole = i;
        }
    }

    m->bucket[hole].key = NULL;
    m->n--;

    return DSA_OK;
}


void
dsa_map_free(dsa_map_t *m)
{
    free(m->bucket);
    memset(m, 0, sizeof(dsa_map_t));
}


static uint64_t
dsa_map_seed(void)
{
    uint64_t     seed;
    const char  *random;

    seed = 0;
    random = (const char *) getauxval(AT_RANDOM);

    /* the kernel puts 16 random bytes there, of which these are the last 8 */

    if (random != NULL) {
        memcpy(&seed, random + 8, sizeof(seed));
    }

    return seed;
}


static uint32_t
dsa_map_hash(const dsa_map_t *m, dsa_str_t key)
{
    return (uint32_t) XXH3_64bits_withSeed(key.data, key.len, m->seed);
}


/* The bucket of the key, or the free one that ends the search for it. */

static dsa_map_bucket_t *
dsa_map_find_bucket(const dsa_map_t *m, dsa_str_t key, uint32_t hash)
{
    uint32_t           i, mask;
    dsa_map_bucket_t  *bucket;

    mask = m->size - 1;

    for (i = hash & mask; /* void */ ; i = (i + 1) & mask) {
        bucket = &m->bucket[i];

        if (bucket->key == NULL
            || (bucket->hash == hash
                && dsa_str_eq(dsa_str(bucket->key, bucket->len), key)))
        {
            return bucket;
        }
    }
}


static int
dsa_map_resize(dsa_map_t *m, uint32_t size)
{
    uint32_t           i, k;
    dsa_map_bucket_t  *bucket;

    bucket = calloc(size, sizeof(dsa_map_bucket_t));
    if (bucket == NULL) {
        return DSA_ERROR;
    }

    if (m->size == 0) {
        m->seed = dsa_map_seed();
    }

    for (i = 0; i < m->size; i++) {

        if (m->bucket[i].key == NULL) {
            continue;
        }

        k = m->bucket[i].hash & (size - 1);

        while (bucket[k].key != NULL) {
            k = (k + 1) & (size - 1);
        }

        bucket[k] = m->bucket[i];
    }

    free(m->bucket);

    m->bucket = bucket;
    m->size = size;

    return DSA_OK;
}
