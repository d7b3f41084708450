
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "engine/pages/prefix.h"


#define DSA_NO_ENTRY    UINT32_MAX


typedef struct {
    uint32_t            page;           /* DSA_NO_PAGE: no copy */
    dsa_copy_e          state;
} dsa_copy_t;


typedef struct {
    dsa_digest_t        digest;
    uint32_t            next;           /* of an unused entry */
    dsa_copy_t          copy[];         /* [stores] */
} dsa_entry_t;


struct dsa_prefix_s {
    uint32_t            stores;
    uint32_t            pages[DSA_PREFIX_STORES];
    uint32_t           *entry_of[DSA_PREFIX_STORES];    /* [pages] or
                                                           DSA_NO_ENTRY */
    char               *entries;        /* [n_entries] of entry_size bytes,
                                           one for each page */
    size_t              entry_size;
    uint32_t            n_entries;
    uint32_t            unused;         /* the first one */
    dsa_map_t           map;            /* digest to number of the entry; has
                                           room for all entries, so that an
                                           addition cannot fail */
};


static dsa_str_t dsa_prefix_key(const dsa_digest_t *digest);
static uint32_t dsa_prefix_entry(const dsa_prefix_t *x,
    const dsa_digest_t *digest);


static inline dsa_entry_t *
dsa_prefix_at(const dsa_prefix_t *x, uint32_t e)
{
    return (dsa_entry_t *) (x->entries + e * x->entry_size);
}


dsa_prefix_t *
dsa_prefix_create(const uint32_t *pages, uint32_t stores)
{
    int            ok;
    uint32_t       i, j;
    dsa_prefix_t  *x;

    assert(stores >= 1 && stores <= DSA_PREFIX_STORES);

    x = calloc(1, sizeof(dsa_prefix_t));

    if (x == NULL) {
        return NULL;
    }

    ok = 1;
    x->stores = stores;
    x->entry_size = sizeof(dsa_entry_t) + stores * sizeof(dsa_copy_t);

    for (i = 0; i < x->stores; i++) {
        x->pages[i] = pages[i];
        x->n_entries += pages[i];
        x->entry_of[i] = malloc((size_t) pages[i] * sizeof(uint32_t));
        ok = ok && x->entry_of[i] != NULL;
    }

    x->entries = calloc(x->n_entries, x->entry_size);

    if (!ok || x->entries == NULL
        || dsa_map_reserve(&x->map, x->n_entries) != DSA_OK)
    {
        dsa_prefix_destroy(x);
        return NULL;
    }

    for (i = 0; i < x->stores; i++) {
        for (j = 0; j < pages[i]; j++) {
            x->entry_of[i][j] = DSA_NO_ENTRY;
        }
    }

    for (i = 0; i < x->n_entries; i++) {
        dsa_prefix_at(x, i)->next = i + 1 < x->n_entries ? i + 1
                                                         : DSA_NO_ENTRY;
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

    for (i = 0; i < x->stores; i++) {
        free(x->entry_of[i]);
    }

    dsa_map_free(&x->map);
    free(x->entries);
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
        return DSA_NO_PAGE;
    }

    copy = &dsa_prefix_at(x, e)->copy[store];

    return copy->state == DSA_COPY_READY ? copy->page : DSA_NO_PAGE;
}


uint32_t
dsa_prefix_ready(const dsa_prefix_t *x, const dsa_digest_t *digest)
{
    uint32_t            i, e, ready;
    const dsa_entry_t  *entry;

    e = dsa_prefix_entry(x, digest);

    if (e == DSA_NO_ENTRY) {
        return 0;
    }

    entry = dsa_prefix_at(x, e);
    ready = 0;

    for (i = 0; i < x->stores; i++) {
        if (entry->copy[i].page != DSA_NO_PAGE
            && entry->copy[i].state == DSA_COPY_READY)
        {
            ready |= 1U << i;
        }
    }

    return ready;
}


uint32_t
dsa_prefix_copy(const dsa_prefix_t *x, uint32_t store,
    const dsa_digest_t *digest)
{
    uint32_t  e;

    e = dsa_prefix_entry(x, digest);

    return e != DSA_NO_ENTRY ? dsa_prefix_at(x, e)->copy[store].page
                             : DSA_NO_PAGE;
}


const dsa_digest_t *
dsa_prefix_digest(const dsa_prefix_t *x, uint32_t store, uint32_t page)
{
    uint32_t  e;

    assert(page < x->pages[store]);

    e = x->entry_of[store][page];

    return e != DSA_NO_ENTRY ? &dsa_prefix_at(x, e)->digest : NULL;
}


void
dsa_prefix_add(dsa_prefix_t *x, uint32_t store, const dsa_digest_t *digest,
    uint32_t page, dsa_copy_e state)
{
    int           rc;
    uint32_t      i, e;
    dsa_entry_t  *entry;

    assert(page < x->pages[store]
           && x->entry_of[store][page] == DSA_NO_ENTRY);

    e = dsa_prefix_entry(x, digest);

    if (e == DSA_NO_ENTRY) {
        e = x->unused;

        assert(e != DSA_NO_ENTRY);

        entry = dsa_prefix_at(x, e);
        x->unused = entry->next;
        entry->digest = *digest;

        rc = dsa_map_add(&x->map, dsa_prefix_key(&entry->digest), e);

        assert(rc == DSA_OK);

        for (i = 0; i < x->stores; i++) {
            entry->copy[i].page = DSA_NO_PAGE;
            entry->copy[i].state = DSA_COPY_READY;
        }
    }

    entry = dsa_prefix_at(x, e);

    assert(entry->copy[store].page == DSA_NO_PAGE);

    entry->copy[store].page = page;
    entry->copy[store].state = state;
    x->entry_of[store][page] = e;
}


void
dsa_prefix_set(dsa_prefix_t *x, uint32_t store, uint32_t page,
    dsa_copy_e state)
{
    assert(page < x->pages[store]
           && x->entry_of[store][page] != DSA_NO_ENTRY);

    dsa_prefix_at(x, x->entry_of[store][page])->copy[store].state = state;
}


void
dsa_prefix_remove(dsa_prefix_t *x, uint32_t store, uint32_t page)
{
    int           rc;
    uint32_t      i, e;
    dsa_entry_t  *entry;

    assert(page < x->pages[store]);

    e = x->entry_of[store][page];

    if (e == DSA_NO_ENTRY) {
        return;
    }

    entry = dsa_prefix_at(x, e);

    assert(entry->copy[store].state == DSA_COPY_READY);

    entry->copy[store].page = DSA_NO_PAGE;
    x->entry_of[store][page] = DSA_NO_ENTRY;

    for (i = 0; i < x->stores; i++) {
        if (entry->copy[i].page != DSA_NO_PAGE) {
            return;
        }
    }

    rc = dsa_map_delete(&x->map, dsa_prefix_key(&entry->digest));

    assert(rc == DSA_OK);

    entry->next = x->unused;
    x->unused = e;
}


int
dsa_prefix_audit(const dsa_prefix_t *x, dsa_err_t *err)
{
    uint32_t            i, j, e, n, copies;
    const dsa_entry_t  *entry;

    copies = 0;

    for (i = 0; i < x->stores; i++) {
        for (j = 0; j < x->pages[i]; j++) {
            e = x->entry_of[i][j];

            if (e == DSA_NO_ENTRY) {
                continue;
            }

            entry = dsa_prefix_at(x, e);

            if (dsa_prefix_entry(x, &entry->digest) != e
                || entry->copy[i].page != j)
            {
                return dsa_error(err, "page %u of store %u has entry %u, whose "
                                 "digest is not found, or whose page is %u", j,
                                 i, e, entry->copy[i].page);
            }

            copies++;
        }
    }

    n = x->map.n;

    if (n > copies || copies > n * x->stores) {
        return dsa_error(err, "%u digests have %u copies; expected 1 to %u of "
                         "each", n, copies, x->stores);
    }

    for (e = x->unused; e != DSA_NO_ENTRY; e = dsa_prefix_at(x, e)->next) {
        if (e >= x->n_entries || ++n > x->n_entries) {
            return dsa_error(err, "the list of unused entries is broken at "
                             "entry %u", e);
        }
    }

    if (n != x->n_entries) {
        return dsa_error(err, "%u entries are in use or unused; expected %u",
                         n, x->n_entries);
    }

    return DSA_OK;
}


static dsa_str_t
dsa_prefix_key(const dsa_digest_t *digest)
{
    return dsa_str((const char *) digest->byte, sizeof(digest->byte));
}


static uint32_t
dsa_prefix_entry(const dsa_prefix_t *x, const dsa_digest_t *digest)
{
    uint64_t  *e;

    e = dsa_map_find(&x->map, dsa_prefix_key(digest));

    return e != NULL ? (uint32_t) *e : DSA_NO_ENTRY;
}
