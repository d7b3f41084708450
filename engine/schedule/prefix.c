
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/prefix.h"


#define DSA_NO_ENTRY    UINT32_MAX


typedef struct {
    uint32_t            slot;           /* DSA_NO_SLOT: no copy */
    dsa_copy_e          state;
} dsa_copy_t;


typedef struct {
    dsa_digest_t        digest;
    uint32_t            next;           /* of the bucket, or of the unused */
    dsa_copy_t          copy[DSA_STORES];
} dsa_entry_t;


/*
 * A hash table of its own, because base/map.h maps names of any length and
 * has no removal.  Here, keys are 32 random bytes, any of which make a hash;
 * an entry is removed with each page that is allocated again; and the number
 * of entries is known in advance, so that no operation can fail.
 */

struct dsa_prefix_s {
    uint32_t            slots[DSA_STORES];
    uint32_t           *entry_of[DSA_STORES];   /* [slots] or DSA_NO_ENTRY */
    dsa_entry_t        *entry;          /* one for each slot */
    uint32_t            n_entries;
    uint32_t            unused;         /* the first one */
    uint32_t           *bucket;         /* [mask + 1] first entry */
    uint32_t            mask;
};


static uint32_t *dsa_prefix_bucket(const dsa_prefix_t *x,
    const dsa_digest_t *digest);
static uint32_t dsa_prefix_entry(const dsa_prefix_t *x,
    const dsa_digest_t *digest);


dsa_prefix_t *
dsa_prefix_create(const uint32_t slots[DSA_STORES])
{
    int            ok;
    uint32_t       i, j, buckets;
    dsa_prefix_t  *x;

    x = calloc(1, sizeof(dsa_prefix_t));

    if (x == NULL) {
        return NULL;
    }

    ok = 1;

    for (i = 0; i < DSA_STORES; i++) {
        x->slots[i] = slots[i];
        x->n_entries += slots[i];
        x->entry_of[i] = malloc((size_t) slots[i] * sizeof(uint32_t));
        ok = ok && x->entry_of[i] != NULL;
    }

    for (buckets = 64; buckets < x->n_entries; buckets *= 2) {
        /* void */
    }

    x->mask = buckets - 1;
    x->bucket = malloc((size_t) buckets * sizeof(uint32_t));
    x->entry = calloc(x->n_entries, sizeof(dsa_entry_t));

    if (!ok || x->bucket == NULL || x->entry == NULL) {
        dsa_prefix_destroy(x);
        return NULL;
    }

    for (i = 0; i < DSA_STORES; i++) {
        for (j = 0; j < slots[i]; j++) {
            x->entry_of[i][j] = DSA_NO_ENTRY;
        }
    }

    for (i = 0; i < buckets; i++) {
        x->bucket[i] = DSA_NO_ENTRY;
    }

    for (i = 0; i < x->n_entries; i++) {
        x->entry[i].next = i + 1 < x->n_entries ? i + 1 : DSA_NO_ENTRY;
    }

    x->unused = 0;

    return x;
}


void
dsa_prefix_destroy(dsa_prefix_t *x)
{
    uint32_t  i;

    if (x == NULL) {
        return;
    }

    for (i = 0; i < DSA_STORES; i++) {
        free(x->entry_of[i]);
    }

    free(x->bucket);
    free(x->entry);
    free(x);
}


uint32_t
dsa_prefix_find(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest)
{
    uint32_t           e;
    const dsa_copy_t  *copy;

    e = dsa_prefix_entry(x, digest);

    if (e == DSA_NO_ENTRY) {
        return DSA_NO_SLOT;
    }

    copy = &x->entry[e].copy[store];

    return copy->state == DSA_COPY_READY ? copy->slot : DSA_NO_SLOT;
}


uint32_t
dsa_prefix_copy(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest)
{
    uint32_t  e;

    e = dsa_prefix_entry(x, digest);

    return e != DSA_NO_ENTRY ? x->entry[e].copy[store].slot : DSA_NO_SLOT;
}


const dsa_digest_t *
dsa_prefix_digest(const dsa_prefix_t *x, uint32_t store, uint32_t slot)
{
    uint32_t  e;

    assert(slot < x->slots[store]);

    e = x->entry_of[store][slot];

    return e != DSA_NO_ENTRY ? &x->entry[e].digest : NULL;
}


void
dsa_prefix_add(dsa_prefix_t *x, uint32_t store, const dsa_digest_t *digest,
    uint32_t slot, dsa_copy_e state)
{
    uint32_t      i, e, *bucket;
    dsa_entry_t  *entry;

    assert(slot < x->slots[store]
           && x->entry_of[store][slot] == DSA_NO_ENTRY);

    e = dsa_prefix_entry(x, digest);

    if (e == DSA_NO_ENTRY) {
        e = x->unused;

        assert(e != DSA_NO_ENTRY);

        entry = &x->entry[e];
        x->unused = entry->next;

        bucket = dsa_prefix_bucket(x, digest);
        entry->digest = *digest;
        entry->next = *bucket;
        *bucket = e;

        for (i = 0; i < DSA_STORES; i++) {
            entry->copy[i].slot = DSA_NO_SLOT;
            entry->copy[i].state = DSA_COPY_READY;
        }
    }

    entry = &x->entry[e];

    assert(entry->copy[store].slot == DSA_NO_SLOT);

    entry->copy[store].slot = slot;
    entry->copy[store].state = state;
    x->entry_of[store][slot] = e;
}


void
dsa_prefix_set(dsa_prefix_t *x, uint32_t store, uint32_t slot,
    dsa_copy_e state)
{
    assert(slot < x->slots[store]
           && x->entry_of[store][slot] != DSA_NO_ENTRY);

    x->entry[x->entry_of[store][slot]].copy[store].state = state;
}


void
dsa_prefix_remove(dsa_prefix_t *x, uint32_t store, uint32_t slot)
{
    uint32_t      i, e, *at;
    dsa_entry_t  *entry;

    assert(slot < x->slots[store]);

    e = x->entry_of[store][slot];

    if (e == DSA_NO_ENTRY) {
        return;
    }

    entry = &x->entry[e];

    assert(entry->copy[store].state == DSA_COPY_READY);

    entry->copy[store].slot = DSA_NO_SLOT;
    x->entry_of[store][slot] = DSA_NO_ENTRY;

    for (i = 0; i < DSA_STORES; i++) {
        if (entry->copy[i].slot != DSA_NO_SLOT) {
            return;
        }
    }

    at = dsa_prefix_bucket(x, &entry->digest);

    while (*at != e) {
        at = &x->entry[*at].next;
    }

    *at = entry->next;
    entry->next = x->unused;
    x->unused = e;
}


int
dsa_prefix_audit(const dsa_prefix_t *x, dsa_err_t *err)
{
    uint32_t            i, j, e, n, of, copies;
    const dsa_entry_t  *entry;

    n = 0;
    copies = 0;

    for (i = 0; i <= x->mask; i++) {
        for (e = x->bucket[i]; e != DSA_NO_ENTRY; e = x->entry[e].next) {
            if (e >= x->n_entries || ++n > x->n_entries) {
                return dsa_error(err, "bucket %u of the prefix index is "
                                 "broken at entry %u", i, e);
            }

            entry = &x->entry[e];
            of = 0;

            if (dsa_prefix_entry(x, &entry->digest) != e) {
                return dsa_error(err, "entry %u of the prefix index is not "
                                 "found by its digest", e);
            }

            for (j = 0; j < DSA_STORES; j++) {
                if (entry->copy[j].slot == DSA_NO_SLOT) {
                    continue;
                }

                if (entry->copy[j].slot >= x->slots[j]
                    || x->entry_of[j][entry->copy[j].slot] != e)
                {
                    return dsa_error(err, "entry %u has slot %u of store %u, "
                                     "which belongs to another entry", e,
                                     entry->copy[j].slot, j);
                }

                of++;
            }

            if (of == 0) {
                return dsa_error(err, "entry %u of the prefix index has no "
                                 "copy", e);
            }

            copies += of;
        }
    }

    for (e = x->unused; e != DSA_NO_ENTRY; e = x->entry[e].next) {
        if (e >= x->n_entries || ++n > x->n_entries) {
            return dsa_error(err, "the list of unused entries is broken at "
                             "entry %u", e);
        }
    }

    if (n != x->n_entries) {
        return dsa_error(err, "%u entries are in buckets or unused; expected "
                         "%u", n, x->n_entries);
    }

    n = 0;

    for (i = 0; i < DSA_STORES; i++) {
        for (j = 0; j < x->slots[i]; j++) {
            n += x->entry_of[i][j] != DSA_NO_ENTRY;
        }
    }

    if (n != copies) {
        return dsa_error(err, "%u slots have a digest; expected %u", n,
                         copies);
    }

    return DSA_OK;
}


static uint32_t *
dsa_prefix_bucket(const dsa_prefix_t *x, const dsa_digest_t *digest)
{
    uint32_t  hash;

    memcpy(&hash, digest->byte, sizeof(hash));

    return &x->bucket[hash & x->mask];
}


static uint32_t
dsa_prefix_entry(const dsa_prefix_t *x, const dsa_digest_t *digest)
{
    uint32_t  e;

    e = *dsa_prefix_bucket(x, digest);

    while (e != DSA_NO_ENTRY
           && memcmp(&x->entry[e].digest, digest, sizeof(dsa_digest_t)) != 0)
    {
        e = x->entry[e].next;
    }

    return e;
}
