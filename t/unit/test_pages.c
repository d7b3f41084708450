
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/pages/pages.h"
#include "engine/pages/pool.h"


#define N_PAGES     8


static const uint8_t  tenant_a[32] = { 1 };
static const uint8_t  tenant_b[32] = { 2 };


static void
audit(const dsa_pages_t *p, const uint32_t *users)
{
    dsa_err_t  err;

    if (dsa_pages_audit(p, users, NULL, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static void
digest_of(const uint8_t *tenant, uint32_t first, dsa_digest_t *out)
{
    uint32_t         i, tokens[DSA_PAGE_TOKENS];
    dsa_digest_t     root;
    dsa_digester_t  *d;

    d = dsa_digester_create();
    assert_non_null(d);

    for (i = 0; i < DSA_PAGE_TOKENS; i++) {
        tokens[i] = first + i;
    }

    assert_int_equal(dsa_digest_root(d, "model", tenant, &root), DSA_OK);
    assert_int_equal(dsa_digest_page(d, &root, tokens, out), DSA_OK);

    dsa_digester_destroy(d);
}


static void
test_all_once(void **state)
{
    uint32_t      i, page, users[N_PAGES];
    dsa_pages_t  *p;

    memset(users, 0, sizeof(users));
    p = dsa_pages_create(1, N_PAGES, NULL);
    assert_non_null(p);

    for (i = 0; i < N_PAGES; i++) {
        page = dsa_pages_alloc(p, 0);
        assert_true(page < N_PAGES);
        assert_int_equal(users[page], 0);
        users[page] = 1;
        audit(p, users);
    }

    assert_int_equal(dsa_pages_alloc(p, 0), DSA_NO_PAGE);
    assert_int_equal(dsa_pages_free(p, 0), 0);

    for (i = 0; i < N_PAGES; i++) {
        dsa_pages_release(p, 0, i);
        users[i] = 0;
        audit(p, users);
    }

    assert_int_equal(dsa_pages_free(p, 0), N_PAGES);
    assert_int_equal(dsa_pages_total(p), N_PAGES);

    dsa_pages_destroy(p);
}


/* A digest is a function of tenant, model, tokens and the digest before. */

static void
test_digests(void **state)
{
    uint32_t         i, j, tokens[DSA_PAGE_TOKENS];
    dsa_digest_t     root, d[6];
    dsa_digester_t  *dig;

    dig = dsa_digester_create();
    assert_non_null(dig);

    for (i = 0; i < DSA_PAGE_TOKENS; i++) {
        tokens[i] = i;
    }

    assert_int_equal(dsa_digest_root(dig, "model", tenant_a, &root), DSA_OK);
    assert_int_equal(dsa_digest_page(dig, &root, tokens, &d[0]), DSA_OK);
    assert_int_equal(dsa_digest_page(dig, &d[0], tokens, &d[1]), DSA_OK);

    assert_int_equal(dsa_digest_root(dig, "model", tenant_b, &root), DSA_OK);
    assert_int_equal(dsa_digest_page(dig, &root, tokens, &d[2]), DSA_OK);

    assert_int_equal(dsa_digest_root(dig, "model2", tenant_a, &root), DSA_OK);
    assert_int_equal(dsa_digest_page(dig, &root, tokens, &d[3]), DSA_OK);

    tokens[DSA_PAGE_TOKENS - 1]++;

    assert_int_equal(dsa_digest_root(dig, "model", tenant_a, &root), DSA_OK);
    assert_int_equal(dsa_digest_page(dig, &root, tokens, &d[4]), DSA_OK);
    d[5] = root;

    for (i = 0; i < 6; i++) {
        for (j = 0; j < i; j++) {
            assert_memory_not_equal(&d[i], &d[j], sizeof(dsa_digest_t));
        }
    }

    tokens[DSA_PAGE_TOKENS - 1]--;
    assert_int_equal(dsa_digest_page(dig, &root, tokens, &d[5]), DSA_OK);
    assert_memory_equal(&d[5], &d[0], sizeof(dsa_digest_t));

    dsa_digester_destroy(dig);
}


static void
test_reuse(void **state)
{
    int            in_use;
    uint32_t       page, users[N_PAGES];
    dsa_pages_t   *p;
    dsa_digest_t   a, b;

    memset(users, 0, sizeof(users));
    p = dsa_pages_create(1, N_PAGES, NULL);
    assert_non_null(p);

    digest_of(tenant_a, 0, &a);
    digest_of(tenant_b, 0, &b);

    assert_int_equal(dsa_pages_find(p, 0, &a), DSA_NO_PAGE);

    page = dsa_pages_alloc(p, 0);
    dsa_pages_publish(p, 0, page, &a);
    users[page] = 1;
    audit(p, users);

    assert_int_equal(dsa_pages_find(p, 0, &a), page);
    users[page] = 2;
    audit(p, users);

    assert_int_equal(dsa_pages_find(p, 0, &b), DSA_NO_PAGE);

    dsa_pages_release(p, 0, page);
    dsa_pages_release(p, 0, page);
    users[page] = 0;
    audit(p, users);

    /* free, and still found */

    assert_int_equal(dsa_pages_peek(p, 0, &a, &in_use), page);
    assert_int_equal(in_use, 0);
    assert_int_equal(dsa_pages_free(p, 0), N_PAGES);

    assert_int_equal(dsa_pages_find(p, 0, &a), page);
    users[page] = 1;
    assert_int_equal(dsa_pages_free(p, 0), N_PAGES - 1);
    audit(p, users);

    dsa_pages_destroy(p);
}


/* Pages that hold nothing are allocated first, then the oldest ones. */

static void
test_order(void **state)
{
    int            in_use;
    uint32_t       i, page, users[N_PAGES];
    dsa_pages_t   *p;
    dsa_digest_t   d[N_PAGES];

    memset(users, 0, sizeof(users));
    p = dsa_pages_create(1, N_PAGES, NULL);
    assert_non_null(p);

    for (i = 0; i < N_PAGES; i++) {
        page = dsa_pages_alloc(p, 0);
        assert_int_equal(page, i);
        digest_of(tenant_a, i * 100, &d[i]);

        if (i != 5) {
            dsa_pages_publish(p, 0, page, &d[i]);
        }
    }

    for (i = N_PAGES; i-- != 0; /* void */) {
        dsa_pages_release(p, 0, i);
    }

    /* 5 holds nothing; 7, 6 and 4 were released before the others */

    assert_int_equal(dsa_pages_alloc(p, 0), 5);
    assert_int_equal(dsa_pages_alloc(p, 0), 7);

    /* a hit takes page 6 out of the order */

    assert_int_equal(dsa_pages_find(p, 0, &d[6]), 6);
    assert_int_equal(dsa_pages_alloc(p, 0), 4);

    assert_int_equal(dsa_pages_peek(p, 0, &d[4], &in_use), DSA_NO_PAGE);
    assert_int_equal(dsa_pages_peek(p, 0, &d[7], &in_use), DSA_NO_PAGE);
    assert_int_equal(dsa_pages_peek(p, 0, &d[3], &in_use), 3);

    users[4] = users[5] = users[6] = users[7] = 1;
    audit(p, users);

    dsa_pages_destroy(p);
}


/* Two sequences compute the same page at once: the first stays published. */

static void
test_twice(void **state)
{
    int            in_use;
    uint32_t       first, second, users[N_PAGES];
    dsa_pages_t   *p;
    dsa_digest_t   a;

    memset(users, 0, sizeof(users));
    p = dsa_pages_create(1, N_PAGES, NULL);
    assert_non_null(p);

    digest_of(tenant_a, 0, &a);

    first = dsa_pages_alloc(p, 0);
    second = dsa_pages_alloc(p, 0);
    dsa_pages_publish(p, 0, first, &a);
    dsa_pages_publish(p, 0, second, &a);
    dsa_pages_publish(p, 0, first, &a);

    users[first] = users[second] = 1;
    audit(p, users);

    dsa_pages_release(p, 0, second);
    users[second] = 0;
    audit(p, users);

    assert_int_equal(dsa_pages_peek(p, 0, &a, &in_use), first);
    assert_int_equal(in_use, 1);

    dsa_pages_destroy(p);
}


/* The audit reports a wrong count. */

static void
test_audit(void **state)
{
    uint32_t      users[N_PAGES];
    dsa_err_t     err;
    dsa_pages_t  *p;

    memset(users, 0, sizeof(users));
    p = dsa_pages_create(1, N_PAGES, NULL);
    assert_non_null(p);

    users[dsa_pages_alloc(p, 0)] = 2;
    assert_int_equal(dsa_pages_audit(p, users, NULL, &err), DSA_ERROR);
    assert_string_equal(err.text, "page 0 has a count of 1 users; expected 2");

    dsa_pages_destroy(p);
}


/*
 * A copy that is still being loaded or written is in the index, is not found,
 * and is not published a second time.
 */

static void
test_states(void **state)
{
    int            in_use;
    uint32_t       i, page, other, users[N_PAGES];
    dsa_pages_t   *p;
    dsa_digest_t   a;

    static const dsa_copy_e  states[] = { DSA_COPY_LOADING, DSA_COPY_WRITING };

    for (i = 0; i < 2; i++) {
        memset(users, 0, sizeof(users));
        p = dsa_pages_create(1, N_PAGES, NULL);
        assert_non_null(p);
        digest_of(tenant_a, 0, &a);

        page = dsa_pages_alloc(p, 0);
        dsa_prefix_add(p->prefix, 0, &a, page, states[i]);

        assert_int_equal(dsa_pages_find(p, 0, &a), DSA_NO_PAGE);
        assert_int_equal(dsa_pages_peek(p, 0, &a, &in_use), DSA_NO_PAGE);
        assert_int_equal(dsa_prefix_copy(p->prefix, 0, &a), page);

        other = dsa_pages_alloc(p, 0);
        dsa_pages_publish(p, 0, other, &a);
        assert_int_equal(dsa_pages_find(p, 0, &a), DSA_NO_PAGE);
        users[page] = users[other] = 1;
        audit(p, users);

        /* the other page cannot be found, so that it is allocated next */

        dsa_pages_release(p, 0, other);
        assert_int_equal(dsa_pages_alloc(p, 0), other);

        dsa_prefix_set(p->prefix, 0, page, DSA_COPY_READY);
        assert_int_equal(dsa_pages_find(p, 0, &a), page);
        users[page] = 2;
        audit(p, users);

        /* the copy disappears with its page */

        dsa_pages_release(p, 0, page);
        dsa_pages_release(p, 0, page);

        while (dsa_pages_alloc(p, 0) != DSA_NO_PAGE) {
            /* void */
        }

        assert_int_equal(dsa_prefix_copy(p->prefix, 0, &a),
                         DSA_NO_PAGE);
        assert_null(dsa_prefix_digest(p->prefix, 0, page));

        dsa_pages_destroy(p);
    }
}


/* Many digests come and go, and each is found as long as it has a copy. */

static void
test_index(void **state)
{
    uint32_t       i, page;
    dsa_err_t      err;
    dsa_prefix_t  *x;
    dsa_digest_t   held[200], d;

    const uint32_t  n_pages = 200;

    x = dsa_prefix_create(&n_pages, 1);
    assert_non_null(x);
    memset(held, 0, sizeof(held));

    for (i = 0; i < 5000; i++) {
        page = i * 77 % 200;

        memset(&d, 0, sizeof(d));
        memcpy(&d.byte[8], &i, sizeof(i));

        if (i >= 200) {
            assert_int_equal(dsa_prefix_find(x, 0, &held[page]), page);
            dsa_prefix_remove(x, 0, page);
            assert_int_equal(dsa_prefix_find(x, 0, &held[page]), DSA_NO_PAGE);
        }

        assert_int_equal(dsa_prefix_find(x, 0, &d), DSA_NO_PAGE);
        dsa_prefix_add(x, 0, &d, page, DSA_COPY_READY);
        assert_int_equal(dsa_prefix_find(x, 0, &d), page);
        assert_memory_equal(dsa_prefix_digest(x, 0, page), &d, sizeof(d));
        held[page] = d;

        if (i % 100 == 0 && dsa_prefix_audit(x, &err) != DSA_OK) {
            fail_msg("%s", err.text);
        }
    }

    dsa_prefix_destroy(x);
}


/* Pages of two ranks have the same numbers, and nothing else in common. */

static void
test_ranks(void **state)
{
    int            in_use;
    uint32_t       i, page, other, users[2 * N_PAGES];
    dsa_err_t      err;
    dsa_pages_t   *p;
    dsa_digest_t   a;

    memset(users, 0, sizeof(users));
    p = dsa_pages_create(2, N_PAGES, NULL);
    assert_non_null(p);
    assert_int_equal(dsa_pages_total(p), N_PAGES);

    digest_of(tenant_a, 0, &a);
    assert_int_equal(dsa_pages_ready(p, &a), 0);

    /* rank 1 has page 3 with this digest, rank 0 does not */

    for (i = 0; i < 4; i++) {
        page = dsa_pages_alloc(p, 1);
        users[N_PAGES + page] = 1;
    }

    dsa_pages_publish(p, 1, page, &a);
    assert_int_equal(dsa_pages_ready(p, &a), 1 << 1);
    assert_int_equal(dsa_pages_find(p, 0, &a), DSA_NO_PAGE);
    assert_int_equal(dsa_pages_peek(p, 1, &a, &in_use), page);
    assert_int_equal(in_use, 1);
    assert_int_equal(dsa_pages_free(p, 0), N_PAGES);
    assert_int_equal(dsa_pages_free(p, 1), N_PAGES - 4);
    audit(p, users);

    /* a copy on each rank, and no second one on rank 0 */

    other = dsa_pages_alloc(p, 0);
    users[other] = 1;
    dsa_pages_publish(p, 0, other, &a);
    assert_int_equal(dsa_pages_ready(p, &a), 1 << 0 | 1 << 1);
    i = dsa_pages_alloc(p, 0);
    users[i] = 1;
    dsa_pages_publish(p, 0, i, &a);
    assert_int_equal(dsa_pages_find(p, 0, &a), other);
    users[other] = 2;
    audit(p, users);

    /* the copy of rank 1 is overwritten, that of rank 0 stays */

    dsa_pages_release(p, 1, page);
    assert_int_equal(dsa_pages_ready(p, &a), 1 << 0 | 1 << 1);

    while (dsa_pages_alloc(p, 1) != DSA_NO_PAGE) {
        /* void */
    }

    for (i = 0; i < N_PAGES; i++) {
        users[N_PAGES + i] = 1;
    }

    assert_int_equal(dsa_pages_ready(p, &a), 1 << 0);
    assert_int_equal(dsa_pages_find(p, 0, &a), other);
    users[other] = 3;
    audit(p, users);

    /* each rank has counts of its own */

    users[N_PAGES + 2] = 0;
    assert_int_equal(dsa_pages_audit(p, users, NULL, &err), DSA_ERROR);
    assert_string_equal(err.text, "page 2 has a count of 1 users; expected 0");

    dsa_pages_destroy(p);
}


/* The free pages in order of allocation, as an array. */

typedef struct {
    uint32_t            page[N_PAGES];
    uint32_t            n;
    uint32_t            users[N_PAGES];
    int                 returned[N_PAGES];
} free_list_t;


static void
list_remove(free_list_t *l, uint32_t page)
{
    uint32_t  i;

    for (i = 0; l->page[i] != page; i++) {
        assert_true(i + 1 < l->n);
    }

    l->n--;
    memmove(&l->page[i], &l->page[i + 1], (l->n - i) * sizeof(uint32_t));
}


static void
list_release(free_list_t *l, uint32_t page, int keep)
{
    if (--l->users[page] != 0) {
        return;
    }

    l->returned[page] = !keep;

    if (keep) {
        l->page[l->n++] = page;
        return;
    }

    memmove(&l->page[1], &l->page[0], l->n++ * sizeof(uint32_t));
    l->page[0] = page;
}


/* The first page of the window that was not returned since it was freed. */

static uint32_t
list_candidate(free_list_t *l, uint32_t window)
{
    uint32_t  i;

    for (i = 0; i < window && i < l->n; i++) {
        if (!l->returned[l->page[i]]) {
            l->returned[l->page[i]] = 1;
            return l->page[i];
        }
    }

    return DSA_NO_PAGE;
}


static void
test_candidates(void **state)
{
    uint32_t     i;
    dsa_store_t  store;

    static const uint32_t  order[] = { 1, 6, 2, 3, 0 };

    assert_int_equal(dsa_pool_init(&store, N_PAGES), DSA_OK);

    /* pages that hold nothing */

    assert_int_equal(dsa_pool_candidate(&store, N_PAGES), DSA_NO_PAGE);

    for (i = 0; i < N_PAGES; i++) {
        assert_int_equal(store.alloc(store.data), i);
    }

    for (i = 0; i < 4; i++) {
        store.release(store.data, i, 1);
    }

    store.release(store.data, 6, 0);

    /* 6 is allocated next and holds nothing, 0 and 1 follow it */

    assert_int_equal(dsa_pool_candidate(&store, 0), DSA_NO_PAGE);
    assert_int_equal(dsa_pool_candidate(&store, 1), DSA_NO_PAGE);
    assert_int_equal(dsa_pool_candidate(&store, 3), 0);
    assert_int_equal(dsa_pool_candidate(&store, 3), 1);
    assert_int_equal(dsa_pool_candidate(&store, 3), DSA_NO_PAGE);

    /* a page that is copied stays the next one */

    store.retain(store.data, 1);
    store.release(store.data, 1, 0);
    assert_int_equal(dsa_pool_candidate(&store, 3), DSA_NO_PAGE);

    /* a hit takes 0 away; 2 moves up, and 0 is a candidate again at the end */

    store.retain(store.data, 0);
    assert_int_equal(dsa_pool_candidate(&store, 3), 2);
    store.release(store.data, 0, 1);
    assert_int_equal(dsa_pool_candidate(&store, 3), DSA_NO_PAGE);
    assert_int_equal(dsa_pool_candidate(&store, 2), DSA_NO_PAGE);
    assert_int_equal(dsa_pool_candidate(&store, N_PAGES), 3);
    assert_int_equal(dsa_pool_candidate(&store, N_PAGES), 0);
    assert_int_equal(dsa_pool_candidate(&store, N_PAGES), DSA_NO_PAGE);

    for (i = 0; i < 5; i++) {
        assert_int_equal(store.alloc(store.data), order[i]);
    }

    assert_int_equal(dsa_pool_candidate(&store, N_PAGES), DSA_NO_PAGE);
    store.destroy(store.data);
}


static void
test_candidates_random(void **state)
{
    int          keep;
    uint32_t     i, op, page, window;
    dsa_err_t    err;
    dsa_store_t  store;
    free_list_t  l;

    assert_int_equal(dsa_pool_init(&store, N_PAGES), DSA_OK);
    memset(&l, 0, sizeof(l));

    for (i = 0; i < N_PAGES; i++) {
        l.page[l.n++] = i;
        l.returned[i] = 1;
    }

    srandom(2);

    for (i = 0; i < 200000; i++) {
        page = random() % N_PAGES;
        op = random() % 8;

        if (op < 2) {
            page = store.alloc(store.data);
            assert_int_equal(page, l.n == 0 ? DSA_NO_PAGE : l.page[0]);

            if (page == DSA_NO_PAGE) {
                continue;
            }

            list_remove(&l, page);
            l.users[page] = 1;

        } else if (op < 3) {
            store.retain(store.data, page);

            if (l.users[page]++ == 0) {
                list_remove(&l, page);
            }

        } else if (op < 6) {

            if (l.users[page] != 0) {
                keep = random() % 4 != 0;
                store.release(store.data, page, keep);
                list_release(&l, page, keep);
            }

        } else {
            window = random() % (N_PAGES + 2);
            page = dsa_pool_candidate(&store, window);
            assert_int_equal(page, list_candidate(&l, window));
        }

        if (store.audit(store.data, l.users, &err) != DSA_OK) {
            fail_msg("%s", err.text);
        }
    }

    store.destroy(store.data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_all_once),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_audit),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_candidates_random)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
