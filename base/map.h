
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MAP_H_INCLUDED_
#define _DSA_MAP_H_INCLUDED_


#include "base/error.h"
#include "base/str.h"


/*
 * A hash table from byte strings to 64-bit values.  A key of fixed size, for
 * example a digest of 32 bytes, is a byte string as well; a value may be a
 * number or a pointer.  A zeroed table is empty.
 *
 * Open addressing with linear probing: the table is at most half full, so that
 * a search looks at 1.5 buckets on average for a key that is present and at 2.5
 * for one that is absent.  Hence dsa_map_find(), dsa_map_add() and
 * dsa_map_delete() take constant expected time beyond reading the key once.  An
 * addition that finds the table half full doubles it; this moves every entry,
 * but reads no key, because a bucket holds the hash of its key.  An entry takes
 * 48 to 96 bytes.  The table never shrinks.
 *
 * The hash is seeded with random bytes of the process, so that a client that
 * chooses keys cannot choose them to collide.
 *
 * The table does not copy keys: the bytes of a key belong to the caller and
 * must stay unchanged for as long as its entry exists.  Where the value is a
 * pointer, the key is best a part of what it points to.
 */

typedef struct {
    const char         *key;        /* NULL: the bucket is free */
    uint32_t            len;        /* bytes of the key */
    uint32_t            hash;
    uint64_t            value;
} dsa_map_bucket_t;


typedef struct {
    dsa_map_bucket_t   *bucket;     /* [size] */
    uint32_t            size;       /* 0 or a power of two */
    uint32_t            n;          /* entries, at most size / 2 */
    uint64_t            seed;
} dsa_map_t;


/*
 * Makes room for n entries in total: additions up to that number neither fail
 * nor move entries.  DSA_ERROR when out of memory; the table is unchanged then.
 */
int dsa_map_reserve(dsa_map_t *m, uint32_t n);

/*
 * DSA_OK, or DSA_AGAIN when the key is present already; its value is unchanged
 * then.  DSA_ERROR when out of memory or when the key exceeds 4 GiB.
 */
int dsa_map_add(dsa_map_t *m, dsa_str_t key, uint64_t value);

/*
 * The value of a key, which the caller may change in place, or NULL when the
 * key is absent.  Valid until the next addition or deletion.
 */
uint64_t *dsa_map_find(const dsa_map_t *m, dsa_str_t key);

/* DSA_OK, or DSA_AGAIN when the key is absent. */
int dsa_map_delete(dsa_map_t *m, dsa_str_t key);

/* Frees the buckets; the table is empty then and may be used again. */
void dsa_map_free(dsa_map_t *m);


/* Pointers as values, which must not be NULL. */

static inline int
dsa_map_add_pointer(dsa_map_t *m, dsa_str_t key, void *value)
{
    return dsa_map_add(m, key, (uint64_t) (uintptr_t) value);
}


/* NULL when the key is absent. */

static inline void *
dsa_map_find_pointer(const dsa_map_t *m, dsa_str_t key)
{
    uint64_t  *value;

    value = dsa_map_find(m, key);

    return value != NULL ? (void *) (uintptr_t) *value : NULL;
}


#endif /* _DSA_MAP_H_INCLUDED_ */
