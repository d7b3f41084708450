
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/pages/pool.h"


/*
 * The free list is a ring through prev[] and next[] whose head is number n:
 * next[n] is allocated first, prev[n] last.  dsa_pool_candidate() has returned
 * or skipped its first n_candidates pages, and continues after them.
 */

typedef struct {
    uint32_t            n;
    uint32_t            n_free;
    uint32_t            n_candidates;
    uint32_t            last_candidate; /* the last one of these pages, n:
                                           none */
    uint8_t            *candidate;      /* [n]; 1: one of them */
    uint32_t           *prev;           /* [n + 1] */
    uint32_t           *next;           /* [n + 1] */
    uint32_t           *users;          /* [n] */
} dsa_pool_t;


static uint32_t dsa_pool_alloc(void *data);
static void dsa_pool_retain(void *data, uint32_t page);
static void dsa_pool_release(void *data, uint32_t page, int keep);
static uint32_t dsa_pool_users(const void *data, uint32_t page);
static uint32_t dsa_pool_free(const void *data);
static int dsa_pool_audit(const void *data, const uint32_t *users,
    dsa_err_t *err);
static void dsa_pool_destroy(void *data);
static void dsa_pool_unlink(dsa_pool_t *p, uint32_t page);
static void dsa_pool_link(dsa_pool_t *p, uint32_t page, int keep);


int
dsa_pool_init(dsa_store_t *store, uint32_t n)
{
    uint32_t     i;
    dsa_pool_t  *p;

    if (n == 0 || n > DSA_PAGES_MAX) {
        return DSA_ERROR;
    }

    p = calloc(1, sizeof(dsa_pool_t));

    if (p == NULL) {
        return DSA_ERROR;
    }

    p->n = n;
    p->n_free = n;
    p->prev = calloc((size_t) n + 1, sizeof(uint32_t));
    p->next = calloc((size_t) n + 1, sizeof(uint32_t));
    p->users = calloc(n, sizeof(uint32_t));
    p->candidate = malloc(n);

    if (p->prev == NULL || p->next == NULL || p->users == NULL
        || p->candidate == NULL)
    {
        dsa_pool_destroy(p);
        return DSA_ERROR;
    }

    /* the pages hold nothing yet */

    p->n_candidates = n;
    p->last_candidate = n - 1;
    memset(p->candidate, 1, n);

    for (i = 0; i <= n; i++) {
        p->next[i] = i == n ? 0 : i + 1;
        p->prev[i] = i == 0 ? n : i - 1;
    }

    store->total = n;
    store->data = p;
    store->alloc = dsa_pool_alloc;
    store->retain = dsa_pool_retain;
    store->release = dsa_pool_release;
    store->users = dsa_pool_users;
    store->n_free = dsa_pool_free;
    store->audit = dsa_pool_audit;
    store->destroy = dsa_pool_destroy;

    return DSA_OK;
}


static void
dsa_pool_destroy(void *data)
{
    dsa_pool_t  *p = data;

    free(p->prev);
    free(p->next);
    free(p->users);
    free(p->candidate);
    free(p);
}


uint32_t
dsa_pool_candidate(dsa_store_t *store, uint32_t window)
{
    uint32_t     page;
    dsa_pool_t  *p = store->data;

    if (p->n_candidates >= window || p->n_candidates == p->n_free) {
        return DSA_NO_PAGE;
    }

    page = p->next[p->last_candidate];

    assert(page < p->n && p->users[page] == 0 && !p->candidate[page]);

    p->candidate[page] = 1;
    p->last_candidate = page;
    p->n_candidates++;

    return page;
}


static uint32_t
dsa_pool_alloc(void *data)
{
    uint32_t     page;
    dsa_pool_t  *p = data;

    if (p->n_free == 0) {
        return DSA_NO_PAGE;
    }

    page = p->next[p->n];

    assert(page < p->n && p->users[page] == 0);

    dsa_pool_unlink(p, page);
    p->users[page] = 1;

    return page;
}


static void
dsa_pool_retain(void *data, uint32_t page)
{
    dsa_pool_t  *p = data;

    assert(page < p->n && p->users[page] != UINT32_MAX);

    if (p->users[page] == 0) {
        dsa_pool_unlink(p, page);
    }

    p->users[page]++;
}


static void
dsa_pool_release(void *data, uint32_t page, int keep)
{
    dsa_pool_t  *p = data;

    assert(page < p->n && p->users[page] != 0);

    if (--p->users[page] == 0) {
        dsa_pool_link(p, page, keep);
    }
}


static uint32_t
dsa_pool_users(const void *data, uint32_t page)
{
    const dsa_pool_t  *p = data;

    assert(page < p->n);

    return p->users[page];
}


static uint32_t
dsa_pool_free(const void *data)
{
    const dsa_pool_t  *p = data;

    return p->n_free;
}


static int
dsa_pool_audit(const void *data, const uint32_t *users, dsa_err_t *err)
{
    uint32_t           i, n, page, last;
    const dsa_pool_t  *p = data;

    n = 0;

    for (i = 0; i < p->n; i++) {
        if (p->users[i] != users[i]) {
            return dsa_error(err, "page %u has a count of %u users; expected "
                             "%u", i, p->users[i], users[i]);
        }

        n += p->users[i] == 0;
    }

    if (n != p->n_free) {
        return dsa_error(err, "%u pages have no user; expected %u free pages",
                         n, p->n_free);
    }

    n = 0;
    last = p->n;

    for (page = p->next[p->n]; page != p->n; page = p->next[page]) {
        if (page > p->n || p->users[page] != 0
            || p->prev[p->next[page]] != page || ++n > p->n_free)
        {
            return dsa_error(err, "the free list is broken at page %u", page);
        }

        if (p->candidate[page] != (n <= p->n_candidates)) {
            return dsa_error(err, "free page %u, number %u of the list, is %s; "
                             "expected the first %u to be candidates", page, n,
                             p->candidate[page] ? "a candidate"
                                                : "no candidate",
                             p->n_candidates);
        }

        if (p->candidate[page]) {
            last = page;
        }
    }

    if (n != p->n_free) {
        return dsa_error(err, "%u pages are in the free list; expected %u", n,
                         p->n_free);
    }

    if (p->n_candidates > n || p->last_candidate != last) {
        return dsa_error(err, "the last of %u candidates is %u; expected %u",
                         p->n_candidates, p->last_candidate, last);
    }

    return DSA_OK;
}


static void
dsa_pool_unlink(dsa_pool_t *p, uint32_t page)
{
    if (p->candidate[page]) {
        p->candidate[page] = 0;
        p->n_candidates--;

        if (p->last_candidate == page) {
            p->last_candidate = p->prev[page];
        }
    }

    p->next[p->prev[page]] = p->next[page];
    p->prev[p->next[page]] = p->prev[page];
    p->n_free--;
}


/*
 * Inserts a page: with keep 1 at the end of the list, otherwise at its front.
 */

static void
dsa_pool_link(dsa_pool_t *p, uint32_t page, int keep)
{
    uint32_t  after;

    after = keep ? p->prev[p->n] : p->n;

    p->prev[page] = after;
    p->next[page] = p->next[after];
    p->prev[p->next[page]] = page;
    p->next[after] = page;
    p->n_free++;

    if (!keep) {
        p->candidate[page] = 1;
        p->n_candidates++;

        if (p->last_candidate == p->n) {
            p->last_candidate = page;
        }
    }
}
