
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "engine/backend.h"
#include "engine/pages/lru.h"


#define DSA_LRU_HITS        2           /* hits that protect a page */


/* The lists, in the order of allocation. */

typedef enum {
    DSA_LRU_EMPTY = 0,
    DSA_LRU_DUPLICATE,
    DSA_LRU_PROBATION,
    DSA_LRU_PROTECTED,
    DSA_LRU_LISTS
} dsa_lru_list_e;


/*
 * Each list is a ring through prev[] and next[].  The head of list l is number
 * n + l: next[n + l] is its least recently used page, prev[n + l] its most
 * recently used one.
 */

typedef struct {
    uint8_t             list;           /* dsa_lru_list_e of a free page */
    uint8_t             hits;           /* at most DSA_LRU_HITS */
    uint8_t             duplicate;
} dsa_lru_page_t;


typedef struct {
    uint32_t            n;
    uint32_t            n_free;
    uint32_t            protected;      /* most pages of this list */
    uint32_t            length[DSA_LRU_LISTS];
    uint32_t           *prev;           /* [n + DSA_LRU_LISTS] */
    uint32_t           *next;           /* [n + DSA_LRU_LISTS] */
    uint32_t           *users;          /* [n] */
    dsa_lru_page_t     *page;           /* [n] */
} dsa_lru_t;


static uint32_t dsa_lru_alloc(void *data);
static void dsa_lru_retain(void *data, uint32_t page);
static void dsa_lru_release(void *data, uint32_t page, int keep);
static uint32_t dsa_lru_users(const void *data, uint32_t page);
static uint32_t dsa_lru_free(const void *data);
static int dsa_lru_audit(const void *data, const uint32_t *users,
    dsa_err_t *err);
static int dsa_lru_audit_list(const dsa_lru_t *l, uint32_t list,
    dsa_err_t *err);
static void dsa_lru_destroy(void *data);
static void dsa_lru_place(dsa_lru_t *l, uint32_t page);
static dsa_lru_list_e dsa_lru_list(const dsa_lru_t *l, uint32_t page);
static void dsa_lru_unlink(dsa_lru_t *l, uint32_t page);
static void dsa_lru_link(dsa_lru_t *l, uint32_t page, dsa_lru_list_e list,
    uint32_t after);


int
dsa_lru_init(dsa_store_t *store, uint32_t n)
{
    uint32_t    i;
    dsa_lru_t  *l;

    if (n == 0 || n > DSA_PAGES_MAX) {
        return DSA_ERROR;
    }

    l = calloc(1, sizeof(dsa_lru_t));

    if (l == NULL) {
        return DSA_ERROR;
    }

    l->n = n;
    l->protected = (uint32_t) ((uint64_t) n * 4 / 5);
    l->prev = calloc((size_t) n + DSA_LRU_LISTS, sizeof(uint32_t));
    l->next = calloc((size_t) n + DSA_LRU_LISTS, sizeof(uint32_t));
    l->users = calloc(n, sizeof(uint32_t));
    l->page = calloc(n, sizeof(dsa_lru_page_t));

    if (l->prev == NULL || l->next == NULL || l->users == NULL
        || l->page == NULL)
    {
        dsa_lru_destroy(l);
        return DSA_ERROR;
    }

    for (i = n; i < n + DSA_LRU_LISTS; i++) {
        l->prev[i] = i;
        l->next[i] = i;
    }

    for (i = 0; i < n; i++) {
        dsa_lru_link(l, i, DSA_LRU_EMPTY, l->prev[n + DSA_LRU_EMPTY]);
    }

    store->total = n;
    store->data = l;
    store->alloc = dsa_lru_alloc;
    store->retain = dsa_lru_retain;
    store->release = dsa_lru_release;
    store->users = dsa_lru_users;
    store->n_free = dsa_lru_free;
    store->audit = dsa_lru_audit;
    store->destroy = dsa_lru_destroy;

    return DSA_OK;
}


static void
dsa_lru_destroy(void *data)
{
    dsa_lru_t  *l = data;

    free(l->prev);
    free(l->next);
    free(l->users);
    free(l->page);
    free(l);
}


void
dsa_lru_hit(dsa_store_t *store, uint32_t page)
{
    dsa_lru_t  *l = store->data;

    assert(page < l->n);

    if (l->page[page].hits < DSA_LRU_HITS) {
        l->page[page].hits++;
    }

    if (l->users[page] == 0) {
        assert(l->page[page].list != DSA_LRU_EMPTY);

        dsa_lru_unlink(l, page);
        dsa_lru_place(l, page);
    }
}


void
dsa_lru_set_duplicate(dsa_store_t *store, uint32_t page, int duplicate)
{
    dsa_lru_t  *l = store->data;

    assert(page < l->n);

    if (l->page[page].duplicate == duplicate) {
        return;
    }

    l->page[page].duplicate = duplicate;

    if (l->users[page] == 0) {
        assert(l->page[page].list != DSA_LRU_EMPTY);

        dsa_lru_unlink(l, page);
        dsa_lru_place(l, page);
    }
}


uint32_t
dsa_lru_n_empty(const dsa_store_t *store)
{
    const dsa_lru_t  *l = store->data;

    return l->length[DSA_LRU_EMPTY];
}


static uint32_t
dsa_lru_alloc(void *data)
{
    uint32_t    i, page;
    dsa_lru_t  *l = data;

    for (i = 0; i < DSA_LRU_LISTS; i++) {
        if (l->length[i] != 0) {
            break;
        }
    }

    if (i == DSA_LRU_LISTS) {
        return DSA_NO_PAGE;
    }

    page = l->next[l->n + i];

    assert(page < l->n && l->users[page] == 0);

    dsa_lru_unlink(l, page);
    l->users[page] = 1;
    l->page[page].hits = 0;
    l->page[page].duplicate = 0;

    return page;
}


static void
dsa_lru_retain(void *data, uint32_t page)
{
    dsa_lru_t  *l = data;

    assert(page < l->n && l->users[page] != UINT32_MAX);

    if (l->users[page] == 0) {
        dsa_lru_unlink(l, page);
    }

    l->users[page]++;
}


static void
dsa_lru_release(void *data, uint32_t page, int keep)
{
    dsa_lru_t  *l = data;

    assert(page < l->n && l->users[page] != 0);

    if (--l->users[page] != 0) {
        return;
    }

    if (keep) {
        dsa_lru_place(l, page);
        return;
    }

    l->page[page].hits = 0;
    l->page[page].duplicate = 0;
    dsa_lru_link(l, page, DSA_LRU_EMPTY, l->n + DSA_LRU_EMPTY);
}


static uint32_t
dsa_lru_users(const void *data, uint32_t page)
{
    const dsa_lru_t  *l = data;

    assert(page < l->n);

    return l->users[page];
}


static uint32_t
dsa_lru_free(const void *data)
{
    const dsa_lru_t  *l = data;

    return l->n_free;
}


static int
dsa_lru_audit(const void *data, const uint32_t *users, dsa_err_t *err)
{
    uint32_t          i, n;
    const dsa_lru_t  *l = data;

    n = 0;

    for (i = 0; i < l->n; i++) {
        if (l->users[i] != users[i]) {
            return dsa_error(err, "page %u has a count of %u users; expected "
                             "%u", i, l->users[i], users[i]);
        }

        n += l->users[i] == 0;
    }

    if (n != l->n_free) {
        return dsa_error(err, "%u pages have no user; expected %u free pages",
                         n, l->n_free);
    }

    n = 0;

    for (i = 0; i < DSA_LRU_LISTS; i++) {
        if (dsa_lru_audit_list(l, i, err) != DSA_OK) {
            return DSA_ERROR;
        }

        n += l->length[i];
    }

    if (n != l->n_free) {
        return dsa_error(err, "%u pages are in the lists; expected %u", n,
                         l->n_free);
    }

    if (l->length[DSA_LRU_PROTECTED] > l->protected) {
        return dsa_error(err, "%u pages are protected; expected at most %u",
                         l->length[DSA_LRU_PROTECTED], l->protected);
    }

    return DSA_OK;
}


static int
dsa_lru_audit_list(const dsa_lru_t *l, uint32_t list, dsa_err_t *err)
{
    uint32_t               n, page, head;
    const dsa_lru_page_t  *s;

    n = 0;
    head = l->n + list;

    for (page = l->next[head]; page != head; page = l->next[page]) {
        if (page >= l->n || l->users[page] != 0
            || l->prev[l->next[page]] != page || ++n > l->length[list])
        {
            return dsa_error(err, "list %u is broken at page %u", list, page);
        }

        s = &l->page[page];

        if (s->list != list
            || (list == DSA_LRU_EMPTY ? s->hits != 0 || s->duplicate
                                      : dsa_lru_list(l, page) != list))
        {
            return dsa_error(err, "page %u is in list %u; expected list %u, "
                             "hits %u, duplicate %u", page, list, s->list,
                             s->hits, s->duplicate);
        }
    }

    if (n != l->length[list]) {
        return dsa_error(err, "list %u has %u pages; expected %u", list, n,
                         l->length[list]);
    }

    return DSA_OK;
}


/* Links a page that is not empty as the most recently used one of its list. */

static void
dsa_lru_place(dsa_lru_t *l, uint32_t page)
{
    uint32_t        last;
    dsa_lru_list_e  list;

    list = dsa_lru_list(l, page);
    dsa_lru_link(l, page, list, l->prev[l->n + list]);

    if (l->length[DSA_LRU_PROTECTED] <= l->protected) {
        return;
    }

    last = l->next[l->n + DSA_LRU_PROTECTED];
    l->page[last].hits = DSA_LRU_HITS - 1;
    dsa_lru_unlink(l, last);
    dsa_lru_link(l, last, DSA_LRU_PROBATION,
                 l->prev[l->n + DSA_LRU_PROBATION]);
}


/* Returns the list of a free page that is not empty. */

static dsa_lru_list_e
dsa_lru_list(const dsa_lru_t *l, uint32_t page)
{
    if (l->page[page].duplicate) {
        return DSA_LRU_DUPLICATE;
    }

    return l->page[page].hits == DSA_LRU_HITS ? DSA_LRU_PROTECTED
                                              : DSA_LRU_PROBATION;
}


static void
dsa_lru_unlink(dsa_lru_t *l, uint32_t page)
{
    l->next[l->prev[page]] = l->next[page];
    l->prev[l->next[page]] = l->prev[page];
    l->length[l->page[page].list]--;
    l->n_free--;
}


static void
dsa_lru_link(dsa_lru_t *l, uint32_t page, dsa_lru_list_e list, uint32_t after)
{
    l->prev[page] = after;
    l->next[page] = l->next[after];
    l->prev[l->next[page]] = page;
    l->next[after] = page;
    l->page[page].list = list;
    l->length[list]++;
    l->n_free++;
}
