
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "engine/pages/pages.h"
#include "engine/pages/pool.h"


_Static_assert(DSA_MAX_GPUS <= DSA_PREFIX_STORES,
               "each rank is a store of the prefix index");


dsa_pages_t *
dsa_pages_create(uint32_t ranks, uint32_t n)
{
    uint32_t      i, slots[DSA_MAX_GPUS];
    dsa_pages_t  *p;

    assert(ranks >= 1 && ranks <= DSA_MAX_GPUS);

    p = calloc(1, sizeof(dsa_pages_t));

    if (p == NULL) {
        return NULL;
    }

    for (i = 0; i < ranks; i++) {
        if (dsa_pool_init(&p->store[i], n) != DSA_OK) {
            dsa_pages_destroy(p);
            return NULL;
        }

        slots[i] = n;
        p->ranks++;
    }

    p->prefix = dsa_prefix_create(slots, ranks);

    if (p->prefix == NULL) {
        dsa_pages_destroy(p);
        return NULL;
    }

    return p;
}


void
dsa_pages_destroy(dsa_pages_t *p)
{
    uint32_t  i;

    if (p == NULL) {
        return;
    }

    for (i = 0; i < p->ranks; i++) {
        p->store[i].destroy(p->store[i].data);
    }

    dsa_prefix_destroy(p->prefix);
    free(p);
}


uint32_t
dsa_pages_total(const dsa_pages_t *p)
{
    return p->store[0].total;
}


uint32_t
dsa_pages_free(const dsa_pages_t *p, uint32_t rank)
{
    const dsa_store_t  *store;

    store = &p->store[rank];

    return store->n_free(store->data);
}


uint32_t
dsa_pages_alloc(dsa_pages_t *p, uint32_t rank)
{
    uint32_t      page;
    dsa_store_t  *store;

    store = &p->store[rank];
    page = store->alloc(store->data);

    if (page != DSA_NO_PAGE) {
        dsa_prefix_remove(p->prefix, rank, page);
    }

    return page;
}


uint32_t
dsa_pages_find(dsa_pages_t *p, uint32_t rank, const dsa_digest_t *digest)
{
    uint32_t      page;
    dsa_store_t  *store;

    store = &p->store[rank];
    page = dsa_prefix_find(p->prefix, rank, digest);

    if (page != DSA_NO_PAGE) {
        store->retain(store->data, page);
    }

    return page;
}


uint32_t
dsa_pages_peek(const dsa_pages_t *p, uint32_t rank,
    const dsa_digest_t *digest, int *in_use)
{
    uint32_t            page;
    const dsa_store_t  *store;

    store = &p->store[rank];
    page = dsa_prefix_find(p->prefix, rank, digest);

    if (page != DSA_NO_PAGE) {
        *in_use = store->users(store->data, page) != 0;
    }

    return page;
}


uint32_t
dsa_pages_ready(const dsa_pages_t *p, const dsa_digest_t *digest)
{
    return dsa_prefix_ready(p->prefix, digest);
}


void
dsa_pages_release(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    dsa_store_t  *store;

    store = &p->store[rank];
    store->release(store->data, page,
                   dsa_prefix_digest(p->prefix, rank, page) != NULL);
}


void
dsa_pages_publish(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest)
{
    if (dsa_prefix_digest(p->prefix, rank, page) == NULL
        && dsa_prefix_copy(p->prefix, rank, digest) == DSA_NO_PAGE)
    {
        dsa_prefix_add(p->prefix, rank, digest, page, DSA_COPY_READY);
    }
}


int
dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users, dsa_err_t *err)
{
    uint32_t            i;
    const dsa_store_t  *store;

    for (i = 0; i < p->ranks; i++) {
        store = &p->store[i];

        if (store->audit(store->data, users + (size_t) i * store->total, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return dsa_prefix_audit(p->prefix, err);
}
