
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/pages/lru.h"
#include "engine/pages/pages.h"
#include "engine/pages/pool.h"


_Static_assert(DSA_MAX_GPUS + DSA_HOST_SLABS <= DSA_PREFIX_STORES,
               "each rank and each slab is a store of the prefix index");


static uint32_t dsa_pages_is_cached(const dsa_pages_t *p, uint32_t rank,
    uint32_t page);
static int dsa_pages_audit_cached(const dsa_pages_t *p, uint32_t rank,
    dsa_err_t *err);
static void dsa_pages_duplicate(dsa_pages_t *p, const dsa_digest_t *digest);


dsa_pages_t *
dsa_pages_create(uint32_t ranks, uint32_t n, const dsa_host_t *host)
{
    uint32_t      i, pages[DSA_PREFIX_STORES];
    dsa_pages_t  *p;

    assert(ranks >= 1 && ranks <= DSA_MAX_GPUS);
    assert(host == NULL || host->slabs <= DSA_HOST_SLABS);

    p = calloc(1, sizeof(dsa_pages_t));

    if (p == NULL) {
        return NULL;
    }

    for (i = 0; i < ranks; i++) {
        if (dsa_pool_init(&p->store[i], n) != DSA_OK) {
            dsa_pages_destroy(p);
            return NULL;
        }

        pages[i] = n;
        p->ranks++;
    }

    for (i = 0; host != NULL && i < host->slabs; i++) {
        if (dsa_lru_init(&p->host[i], host->slab[i].pages) != DSA_OK) {
            dsa_pages_destroy(p);
            return NULL;
        }

        pages[ranks + i] = host->slab[i].pages;
        p->host_of[i] = host->slab[i].host;
        p->slabs++;
    }

    p->host_ranks = host != NULL && host->hosts > 1 ? ranks / host->hosts
                                                    : ranks;

    p->prefix = dsa_prefix_create(pages, p->ranks + p->slabs);

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

    for (i = 0; i < p->slabs; i++) {
        p->host[i].destroy(p->host[i].data);
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
dsa_pages_cached(const dsa_pages_t *p, uint32_t rank)
{
    return p->cached[rank];
}


/* Returns 1 if the page counts as cached. */

static uint32_t
dsa_pages_is_cached(const dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    return p->store[rank].users(p->store[rank].data, page) == 0
           && dsa_prefix_digest(p->prefix, rank, page) != NULL;
}


uint32_t
dsa_pages_alloc(dsa_pages_t *p, uint32_t rank)
{
    uint32_t             page;
    dsa_digest_t         digest;
    dsa_store_t         *store;
    const dsa_digest_t  *old;

    store = &p->store[rank];
    page = store->alloc(store->data);

    if (page == DSA_NO_PAGE) {
        return DSA_NO_PAGE;
    }

    old = dsa_prefix_digest(p->prefix, rank, page);

    if (old != NULL) {
        digest = *old;

        dsa_log_debug("page %02x%02x%02x%02x: rank %u overwrites its copy",
                      dsa_digest_log(&digest), rank);

        p->cached[rank]--;
        dsa_prefix_remove(p->prefix, rank, page);
        p->lost += dsa_prefix_ready(p->prefix, &digest) == 0;
        dsa_pages_duplicate(p, &digest);
    }

    return page;
}


/*
 * Sets whether the host pages with this digest are duplicates: a rank has a
 * copy as well.  Host memory overwrites such pages first, because
 * they are not lost.  It is a duplicate until dsa_pages_candidate() returns the
 * page of the rank, before it is overwritten, or until it is overwritten, if
 * more pages than the window are allocated at once.
 */

static void
dsa_pages_duplicate(dsa_pages_t *p, const dsa_digest_t *digest)
{
    int       ready;
    uint32_t  i, page;

    ready = dsa_pages_ready(p, digest) != 0;

    for (i = 0; i < p->slabs; i++) {
        page = dsa_prefix_copy(p->prefix, p->ranks + i, digest);

        if (page != DSA_NO_PAGE) {
            dsa_lru_set_duplicate(&p->host[i], page, ready);
        }
    }
}


uint32_t
dsa_pages_find(dsa_pages_t *p, uint32_t rank, const dsa_digest_t *digest)
{
    uint32_t      page;
    dsa_store_t  *store;

    store = &p->store[rank];
    page = dsa_prefix_find(p->prefix, rank, digest);

    if (page != DSA_NO_PAGE) {
        p->cached[rank] -= dsa_pages_is_cached(p, rank, page);
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
    return dsa_prefix_ready(p->prefix, digest) & ((1U << p->ranks) - 1);
}


void
dsa_pages_retain(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    dsa_store_t  *store;

    store = &p->store[rank];
    p->cached[rank] -= dsa_pages_is_cached(p, rank, page);
    store->retain(store->data, page);
}


void
dsa_pages_release(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    dsa_store_t  *store;

    store = &p->store[rank];
    store->release(store->data, page,
                   dsa_prefix_digest(p->prefix, rank, page) != NULL);
    p->cached[rank] += dsa_pages_is_cached(p, rank, page);
}


void
dsa_pages_publish(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest)
{
    if (dsa_prefix_digest(p->prefix, rank, page) == NULL
        && dsa_prefix_copy(p->prefix, rank, digest) == DSA_NO_PAGE)
    {
        dsa_log_debug("page %02x%02x%02x%02x: published on rank %u",
                      dsa_digest_log(digest), rank);

        dsa_prefix_add(p->prefix, rank, digest, page, DSA_COPY_READY);
        p->cached[rank] += dsa_pages_is_cached(p, rank, page);
        dsa_pages_duplicate(p, digest);
    }
}


void
dsa_pages_forget(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    p->cached[rank] -= dsa_pages_is_cached(p, rank, page);
    dsa_prefix_remove(p->prefix, rank, page);
}


int
dsa_pages_loading(dsa_pages_t *p, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest)
{
    if (dsa_prefix_copy(p->prefix, rank, digest) != DSA_NO_PAGE) {
        return 0;
    }

    dsa_prefix_add(p->prefix, rank, digest, page, DSA_COPY_LOADING);

    return 1;
}


void
dsa_pages_loaded(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    dsa_prefix_set(p->prefix, rank, page, DSA_COPY_READY);
    dsa_pages_duplicate(p, dsa_prefix_digest(p->prefix, rank, page));
}


void
dsa_pages_unloaded(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    dsa_prefix_set(p->prefix, rank, page, DSA_COPY_READY);
    dsa_prefix_remove(p->prefix, rank, page);
}


uint32_t
dsa_pages_candidate(dsa_pages_t *p, uint32_t rank, uint32_t window,
    const dsa_digest_t **digest)
{
    int            ready;
    uint32_t       page;
    dsa_host_at_t  at;

    for ( ;; ) {
        page = dsa_pool_candidate(&p->store[rank], window);

        if (page == DSA_NO_PAGE) {
            return DSA_NO_PAGE;
        }

        *digest = dsa_prefix_digest(p->prefix, rank, page);

        if (*digest == NULL) {
            continue;
        }

        if (!dsa_pages_host(p, dsa_pages_host_of(p, rank), *digest, &at,
                            &ready))
        {
            dsa_pages_retain(p, rank, page);
            return page;
        }

        dsa_lru_set_duplicate(&p->host[at.slab], at.page, 0);
    }
}


void
dsa_pages_release_candidate(dsa_pages_t *p, uint32_t rank, uint32_t page)
{
    p->store[rank].release(p->store[rank].data, page, 0);
    p->cached[rank] += dsa_pages_is_cached(p, rank, page);
}


uint32_t
dsa_pages_host_of(const dsa_pages_t *p, uint32_t rank)
{
    return rank / p->host_ranks;
}


int
dsa_pages_host(const dsa_pages_t *p, uint32_t host, const dsa_digest_t *digest,
    dsa_host_at_t *at, int *ready)
{
    int       found;
    uint32_t  i, page;

    found = 0;

    for (i = 0; i < p->slabs; i++) {
        if (host != DSA_ANY_HOST && p->host_of[i] != host) {
            continue;
        }

        page = dsa_prefix_copy(p->prefix, p->ranks + i, digest);

        if (page == DSA_NO_PAGE) {
            continue;
        }

        found = 1;
        at->slab = i;
        at->page = page;
        *ready = dsa_prefix_find(p->prefix, p->ranks + i, digest)
                 != DSA_NO_PAGE;

        if (*ready) {
            break;
        }
    }

    return found;
}


uint32_t
dsa_pages_host_near(const dsa_pages_t *p, const dsa_digest_t *digest)
{
    uint32_t  i, ranks;

    ranks = 0;

    for (i = 0; i < p->slabs; i++) {
        if (dsa_prefix_copy(p->prefix, p->ranks + i, digest) != DSA_NO_PAGE) {
            ranks |= ((1U << p->host_ranks) - 1)
                     << (p->host_of[i] * p->host_ranks);
        }
    }

    return ranks;
}


int
dsa_pages_host_alloc(dsa_pages_t *p, uint32_t slab,
    const dsa_digest_t *digest, dsa_copy_e state, dsa_host_at_t *at)
{
    uint32_t      i;
    dsa_store_t  *store;

    for (i = 0; i < p->slabs; i++) {
        at->slab = (slab + i) % p->slabs;

        if (p->host_of[at->slab] != p->host_of[slab]) {
            continue;
        }

        store = &p->host[at->slab];
        at->page = store->alloc(store->data);

        if (at->page != DSA_NO_PAGE) {
            break;
        }
    }

    if (i == p->slabs) {
        return DSA_AGAIN;
    }

    dsa_prefix_remove(p->prefix, p->ranks + at->slab, at->page);
    dsa_prefix_add(p->prefix, p->ranks + at->slab, digest, at->page, state);

    return DSA_OK;
}


int
dsa_pages_host_room(const dsa_pages_t *p, uint32_t slab)
{
    uint32_t  i;

    for (i = 0; i < p->slabs; i++) {
        if (p->host_of[i] == p->host_of[slab]
            && p->host[i].n_free(p->host[i].data) != 0)
        {
            return 1;
        }
    }

    return 0;
}


int
dsa_pages_host_empty(const dsa_pages_t *p, uint32_t slab)
{
    return dsa_lru_n_empty(&p->host[slab]) != 0;
}


void
dsa_pages_host_ready(dsa_pages_t *p, dsa_host_at_t at, int last)
{
    uint32_t  store;

    store = p->ranks + at.slab;
    dsa_prefix_set(p->prefix, store, at.page, DSA_COPY_READY);

    if (!last) {
        dsa_pages_duplicate(p, dsa_prefix_digest(p->prefix, store, at.page));
    }
}


void
dsa_pages_host_drop(dsa_pages_t *p, dsa_host_at_t at)
{
    uint32_t  store;

    store = p->ranks + at.slab;

    dsa_prefix_set(p->prefix, store, at.page, DSA_COPY_READY);
    dsa_prefix_remove(p->prefix, store, at.page);
    dsa_pages_host_release(p, at);
}


void
dsa_pages_host_lost(dsa_pages_t *p, dsa_host_at_t at)
{
    dsa_prefix_remove(p->prefix, p->ranks + at.slab, at.page);
}


void
dsa_pages_host_retain(dsa_pages_t *p, dsa_host_at_t at)
{
    p->host[at.slab].retain(p->host[at.slab].data, at.page);
}


void
dsa_pages_host_release(dsa_pages_t *p, dsa_host_at_t at)
{
    p->host[at.slab].release(p->host[at.slab].data, at.page,
                             dsa_prefix_digest(p->prefix, p->ranks + at.slab,
                                               at.page) != NULL);
}


void
dsa_pages_hit(dsa_pages_t *p, const dsa_digest_t *digest)
{
    uint32_t  i, page;

    for (i = 0; i < p->slabs; i++) {
        page = dsa_prefix_copy(p->prefix, p->ranks + i, digest);

        if (page != DSA_NO_PAGE) {
            dsa_lru_hit(&p->host[i], page);
        }
    }

    dsa_pages_duplicate(p, digest);
}


void
dsa_pages_host_count(const dsa_pages_t *p, uint64_t *total, uint64_t *used)
{
    uint32_t  i;

    *total = 0;
    *used = 0;

    for (i = 0; i < p->slabs; i++) {
        *total += p->host[i].total;
        *used += p->host[i].total - dsa_lru_n_empty(&p->host[i]);
    }
}


int
dsa_pages_audit(const dsa_pages_t *p, const uint32_t *users,
    const uint32_t *host_users, dsa_err_t *err)
{
    uint32_t            i;
    const dsa_store_t  *store;

    for (i = 0; i < p->ranks; i++) {
        store = &p->store[i];

        if (store->audit(store->data, users + (size_t) i * store->total, err)
            != DSA_OK
            || dsa_pages_audit_cached(p, i, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    for (i = 0; i < p->slabs; i++) {
        store = &p->host[i];

        if (store->audit(store->data, host_users, err) != DSA_OK) {
            return DSA_ERROR;
        }

        host_users += store->total;
    }

    return dsa_prefix_audit(p->prefix, err);
}


static int
dsa_pages_audit_cached(const dsa_pages_t *p, uint32_t rank, dsa_err_t *err)
{
    uint32_t  page, n;

    n = 0;

    for (page = 0; page < p->store[rank].total; page++) {
        n += dsa_pages_is_cached(p, rank, page);
    }

    if (n != p->cached[rank]) {
        return dsa_error(err, "rank %u counts %u cached pages; expected %u",
                         rank, p->cached[rank], n);
    }

    return DSA_OK;
}
