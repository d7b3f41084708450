
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
#include "engine/pages/lru.h"


#define N_SLOTS     10
#define N_MODEL     23


/*
 * What the lists are, written as scans over stamps: the free page of the first
 * kind that exists is allocated, and of these the one with the lowest stamp.
 */

enum { EMPTY, SHADOWED, PROBATION, PROTECTED };


typedef struct {
    int64_t             now;
    int64_t             before;     /* stamps of pages released with keep 0 */
    int64_t             stamp[N_MODEL];
    uint32_t            users[N_MODEL];
    int                 empty[N_MODEL];
    int                 hits[N_MODEL];
    int                 duplicate[N_MODEL];
} model_t;


static dsa_store_t  store;


static void
open_store(uint32_t n)
{
    assert_int_equal(dsa_lru_init(&store, n), DSA_OK);
    assert_int_equal(store.total, n);
}


static void
close_store(void)
{
    store.destroy(store.data);
}


static void
check(const uint32_t *users)
{
    dsa_err_t  err;

    if (store.audit(store.data, users, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


/* Allocates a page, which must be this one, and releases it with keep 1. */

static void
fill(uint32_t page)
{
    assert_int_equal(store.alloc(store.data), page);
    store.release(store.data, page, 1);
}


static void
fill_all(uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        fill(i);
    }
}


/* What protects a page. */

static void
hit_twice(uint32_t page)
{
    dsa_lru_hit(&store, page);
    dsa_lru_hit(&store, page);
}


static void
expect_order(const uint32_t *pages, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        assert_int_equal(store.alloc(store.data), pages[i]);
    }

    assert_int_equal(store.alloc(store.data), DSA_NO_PAGE);
    assert_int_equal(store.n_free(store.data), 0);
}


/* Empty, duplicates, probation, protected; each in order of the last use. */

static void
test_order(void **state)
{
    static const uint32_t  order[] = { 9, 4, 1, 2, 5, 7, 8, 0, 6, 3 };

    open_store(N_SLOTS);
    fill_all(N_SLOTS);

    hit_twice(6);
    hit_twice(3);
    dsa_lru_hit(&store, 0);
    dsa_lru_set_duplicate(&store, 4, 1);
    dsa_lru_set_duplicate(&store, 1, 1);

    store.retain(store.data, 9);
    store.release(store.data, 9, 0);

    expect_order(order, N_SLOTS);
    close_store();
}


static void
test_empty(void **state)
{
    uint32_t  page;

    open_store(2);
    assert_int_equal(dsa_lru_n_empty(&store) != 0, 1);
    fill(0);
    assert_int_equal(dsa_lru_n_empty(&store) != 0, 1);
    fill(1);
    assert_int_equal(dsa_lru_n_empty(&store) != 0, 0);

    dsa_lru_set_duplicate(&store, 1, 1);
    assert_int_equal(dsa_lru_n_empty(&store) != 0, 0);

    page = store.alloc(store.data);
    assert_int_equal(page, 1);
    assert_int_equal(dsa_lru_n_empty(&store) != 0, 0);

    store.release(store.data, page, 0);
    assert_int_equal(dsa_lru_n_empty(&store) != 0, 1);
    close_store();
}


/* While a page has users, hits and duplicates wait for its release. */

static void
test_users(void **state)
{
    uint32_t  users[4];

    static const uint32_t  order[] = { 2, 3, 1, 0 };

    open_store(4);
    fill_all(4);

    store.retain(store.data, 0);
    store.retain(store.data, 2);
    hit_twice(0);
    dsa_lru_set_duplicate(&store, 2, 1);

    memset(users, 0, sizeof(users));
    users[0] = users[2] = 1;
    check(users);

    /* only the last user makes the page free */

    store.retain(store.data, 2);
    store.release(store.data, 2, 0);
    assert_int_equal(store.n_free(store.data), 2);

    store.release(store.data, 2, 1);
    store.release(store.data, 0, 1);
    memset(users, 0, sizeof(users));
    check(users);

    store.retain(store.data, 1);
    store.release(store.data, 1, 1);

    expect_order(order, 4);
    close_store();
}


/* A page that is released with keep 0 leaves nothing to the next one. */

static void
test_reset(void **state)
{
    static const uint32_t  order[] = { 0, 1, 2 };

    open_store(3);
    fill_all(3);

    hit_twice(0);
    store.retain(store.data, 0);
    dsa_lru_set_duplicate(&store, 0, 1);
    store.release(store.data, 0, 0);

    dsa_lru_set_duplicate(&store, 1, 1);
    hit_twice(1);

    fill(0);
    fill(1);

    /* none is protected or a duplicate now; 2 is the least recently used */

    fill(2);
    expect_order(order, 3);
    close_store();
}


/* A page keeps its class while a faster tier has it. */

static void
test_duplicate_keeps_class(void **state)
{
    static const uint32_t  order[] = { 3, 4, 2, 0, 1 };

    open_store(5);
    fill_all(5);

    hit_twice(1);
    hit_twice(0);
    dsa_lru_set_duplicate(&store, 1, 1);
    dsa_lru_set_duplicate(&store, 2, 1);

    /* no second change of its place */

    dsa_lru_set_duplicate(&store, 1, 1);
    dsa_lru_set_duplicate(&store, 0, 0);

    /* each is the most recently used one of its list */

    dsa_lru_set_duplicate(&store, 1, 0);
    dsa_lru_set_duplicate(&store, 2, 0);

    expect_order(order, 5);
    close_store();
}


/* 4 of 5 pages are protected; one more puts the oldest in probation again. */

static void
test_limit(void **state)
{
    uint32_t  i;

    static const uint32_t  order[] = { 9, 2, 3, 4, 5, 6, 7, 0, 8, 1 };

    open_store(N_SLOTS);
    fill_all(N_SLOTS);

    for (i = 0; i < 8; i++) {
        hit_twice(i);
    }

    dsa_lru_hit(&store, 0);         /* 1 is the oldest now */
    hit_twice(8);                   /* 1 is in probation */

    /* 9 is used after that, so that it follows 1, and is not protected */

    store.retain(store.data, 9);
    store.release(store.data, 9, 1);

    /* one hit protects 1 again, and puts 2 in its place */

    dsa_lru_hit(&store, 1);

    expect_order(order, N_SLOTS);
    close_store();

    /* with one page none is protected, and it can still be used */

    open_store(1);
    fill(0);
    hit_twice(0);
    fill(0);
    close_store();
}


/* Any number of pages that are not found again overwrite no protected page. */

static void
test_scan(void **state)
{
    uint32_t  i, page;

    open_store(N_SLOTS);
    fill_all(N_SLOTS);
    hit_twice(4);
    hit_twice(7);
    dsa_lru_hit(&store, 0);

    for (i = 0; i < 1000; i++) {
        page = store.alloc(store.data);
        assert_int_not_equal(page, 4);
        assert_int_not_equal(page, 7);
        store.release(store.data, page, 1);

        /* the page with one hit is the last one of the first round */

        assert_true(i >= 7 || page != 0);
        assert_true(i != 7 || page == 0);
    }

    close_store();
}


static void
test_audit(void **state)
{
    uint32_t   users[2];
    dsa_err_t  err;

    open_store(2);
    users[0] = users[1] = 0;
    check(users);

    users[store.alloc(store.data)] = 2;
    assert_int_equal(store.audit(store.data, users, &err), DSA_ERROR);
    assert_string_equal(err.text, "page 0 has a count of 1 users; expected 2");
    close_store();

    assert_int_equal(dsa_lru_init(&store, 0), DSA_ERROR);
    assert_int_equal(dsa_lru_init(&store, DSA_PAGES_MAX + 1), DSA_ERROR);
}


static int
model_kind(const model_t *m, uint32_t page)
{
    if (m->empty[page]) {
        return EMPTY;
    }

    if (m->duplicate[page]) {
        return SHADOWED;
    }

    return m->hits[page] >= 2 ? PROTECTED : PROBATION;
}


/* The free page of a kind with the lowest stamp, and the number of them. */

static uint32_t
model_oldest(const model_t *m, int kind, uint32_t *count)
{
    uint32_t  i, oldest;

    *count = 0;
    oldest = DSA_NO_PAGE;

    for (i = 0; i < N_MODEL; i++) {
        if (m->users[i] != 0 || model_kind(m, i) != kind) {
            continue;
        }

        (*count)++;

        if (oldest == DSA_NO_PAGE || m->stamp[i] < m->stamp[oldest]) {
            oldest = i;
        }
    }

    return oldest;
}


static void
model_touch(model_t *m, uint32_t page)
{
    uint32_t  count, oldest;

    m->stamp[page] = m->now++;
    oldest = model_oldest(m, PROTECTED, &count);

    if (count > N_MODEL * 4 / 5) {
        m->hits[oldest] = 1;
        m->stamp[oldest] = m->now++;
    }
}


static uint32_t
model_alloc(model_t *m)
{
    int       kind;
    uint32_t  page, count;

    for (kind = EMPTY; kind <= PROTECTED; kind++) {
        page = model_oldest(m, kind, &count);

        if (page != DSA_NO_PAGE) {
            m->users[page] = 1;
            m->empty[page] = m->hits[page] = m->duplicate[page] = 0;
            return page;
        }
    }

    return DSA_NO_PAGE;
}


static void
model_release(model_t *m, uint32_t page, int keep)
{
    if (--m->users[page] != 0) {
        return;
    }

    if (keep) {
        model_touch(m, page);
        return;
    }

    m->empty[page] = 1;
    m->hits[page] = m->duplicate[page] = 0;
    m->stamp[page] = m->before--;
}


/* An operation on a page, in the store and in the model. */

static void
step(model_t *m, uint32_t page, int op)
{
    if (op < 30) {
        page = store.alloc(store.data);
        assert_int_equal(page, model_alloc(m));

    } else if (op < 55) {

        if (m->users[page] != 0) {
            store.release(store.data, page, op < 50);
            model_release(m, page, op < 50);
        }

    } else if (m->users[page] == 0 && m->empty[page]) {
        return;

    } else if (op < 65) {
        store.retain(store.data, page);
        m->users[page]++;

    } else if (op < 85) {
        dsa_lru_hit(&store, page);
        m->hits[page]++;

        if (m->users[page] == 0) {
            model_touch(m, page);
        }

    } else {
        dsa_lru_set_duplicate(&store, page, op % 2);

        if (m->duplicate[page] == op % 2) {
            return;
        }

        m->duplicate[page] = op % 2;

        if (m->users[page] == 0) {
            model_touch(m, page);
        }
    }
}


static void
test_random(void **state)
{
    int       op;
    uint32_t  i, page, count, empty, full;
    model_t   m;

    memset(&m, 0, sizeof(m));
    m.before = -1;
    open_store(N_MODEL);

    for (i = 0; i < N_MODEL; i++) {
        m.empty[i] = 1;
        m.stamp[i] = m.now++;
    }

    full = 0;
    srandom(1);

    for (i = 0; i < 200000; i++) {
        page = random() % N_MODEL;
        op = random() % 100;

        /* allocations prevail for a while, then releases, then hits */

        switch (i / 5000 % 3) {
        case 1:
            op = 20 + op * 8 / 10;
            break;

        case 2:
            op = op < 40 ? 30 + op / 2 : op < 90 ? 65 + op / 5 : 86;
        }

        step(&m, page, op);

        (void) model_oldest(&m, PROTECTED, &count);
        full += count == N_MODEL * 4 / 5;

        (void) model_oldest(&m, EMPTY, &empty);
        assert_int_equal(dsa_lru_n_empty(&store), empty);

        if (i % 16 == 0) {
            check(m.users);
        }
    }

    /* the limit of protected pages mattered */

    assert_true(full > 1000);
    close_store();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_duplicate_keeps_class),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_audit),
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
