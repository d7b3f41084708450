
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/pages/lru.h"
#include "engine/pages/pool.h"
#include "engine/pages/prefix.h"


/*
 * The requests of a production trace (t/data/traces) one after another, through
 * the stores of a GPU and of host memory, and through a plain LRU cache.
 *
 * The hit rate is the number of input tokens that are in the leading run of
 * blocks, or pages, that the cache has, divided by the number of all input
 * tokens.
 */

#define TRACE           "xz -dc t/data/traces/mooncake-conversation.jsonl.xz"

#define BLOCK           512             /* tokens */
#define BLOCK_PAGES     (BLOCK / DSA_PAGE_TOKENS)
#define MAX_REQUESTS    12031
#define MAX_BLOCKS      288500
#define MAX_IDS         182790
#define MAX_PAGES       2048            /* of a request */

#define GPU             0               /* stores of the prefix index */
#define HOST            1


typedef struct {
    uint32_t            input;          /* tokens */
    uint32_t            first;          /* of block_id[] */
    uint32_t            n;              /* blocks */
} request_t;


typedef struct {
    uint32_t            gpu;            /* tokens */
    uint32_t            host;           /* tokens; 0: no such tier */
    uint32_t            step;           /* pages of a request between calls of
                                           dsa_pool_candidate(); 0: called only
                                           at the end of a request */
    uint32_t            window;         /* of these calls */
} conf_t;


typedef struct {
    const conf_t       *conf;
    int                 tiers;
    dsa_store_t         store[2];
    dsa_prefix_t       *prefix;
    uint32_t            page[MAX_PAGES];    /* the block table */

    uint64_t            hits[2];        /* pages, by tier */
    uint64_t            copies;         /* of pages, to host memory */
    uint64_t            lost;           /* pages that were overwritten on the
                                           GPU and had no other copy */
} cache_t;


static uint32_t   n_requests;
static uint32_t   n_blocks;
static uint64_t   input_tokens;
static uint32_t   block_id[MAX_BLOCKS];
static request_t  requests[MAX_REQUESTS];


static int
load_trace(void **state)
{
    char       *p, *end, line[8192];
    FILE       *xz;
    request_t  *r;

    xz = popen(TRACE, "r");
    assert_non_null(xz);

    while (fgets(line, sizeof(line), xz) != NULL) {
        assert_true(n_requests < MAX_REQUESTS);
        r = &requests[n_requests++];

        p = strstr(line, "\"input_length\": ");
        assert_non_null(p);
        r->input = (uint32_t) strtoul(p + 16, NULL, 10);
        r->first = n_blocks;
        input_tokens += r->input;

        p = strstr(line, "\"hash_ids\": [");
        assert_non_null(p);

        for (p += 13; *p != ']'; p = end + strspn(end, ", ")) {
            assert_true(n_blocks < MAX_BLOCKS);
            block_id[n_blocks] = (uint32_t) strtoul(p, &end, 10);
            assert_true(end != p && block_id[n_blocks] < MAX_IDS);
            n_blocks++;
        }

        r->n = n_blocks - r->first;
        assert_int_equal(r->n, (r->input + BLOCK - 1) / BLOCK);
        assert_true(r->n * BLOCK_PAGES <= MAX_PAGES);
    }

    assert_int_equal(pclose(xz), 0);
    assert_int_equal(n_requests, MAX_REQUESTS);
    assert_int_equal(n_blocks, MAX_BLOCKS);

    return 0;
}


static uint64_t
hit_tokens(const request_t *r, uint64_t tokens)
{
    return tokens < r->input ? tokens : r->input;
}


static double
percent(uint64_t tokens)
{
    return 100.0 * (double) tokens / (double) input_tokens;
}


/*
 * The hit rate of a plain LRU cache of blocks.  used[] has the number of the
 * last use of each cached block, counted from 1.  block_id[] has all uses in
 * their order, so that the least recently used block is found by going through
 * it and skipping the uses that are not the last one of their block.
 */

static double
lru_rate(uint64_t size)
{
    uint32_t         i, j, id, cached, oldest, hit, now;
    uint64_t         tokens;
    const uint32_t  *ids;

    static uint32_t  used[MAX_IDS];     /* 0: not in the cache */

    memset(used, 0, sizeof(used));
    cached = oldest = now = 0;
    tokens = 0;

    for (i = 0; i < n_requests; i++) {
        ids = &block_id[requests[i].first];

        for (hit = 0; hit < requests[i].n && used[ids[hit]] != 0; hit++) {
            /* void */
        }

        tokens += hit_tokens(&requests[i], (uint64_t) hit * BLOCK);

        for (j = 0; j < requests[i].n; j++) {
            cached += used[ids[j]] == 0;
            used[ids[j]] = ++now;
        }

        for (/* void */; cached > size / BLOCK; oldest++) {
            id = block_id[oldest];

            if (used[id] == oldest + 1) {
                used[id] = 0;
                cached--;
            }
        }
    }

    return percent(tokens);
}


static dsa_digest_t
digest_of(uint32_t id, uint32_t page)
{
    dsa_digest_t  d;

    memset(&d, 0, sizeof(d));
    memcpy(&d.byte[0], &id, sizeof(id));
    memcpy(&d.byte[4], &page, sizeof(page));

    return d;
}


static cache_t *
cache_create(const conf_t *conf)
{
    cache_t  *c;
    uint32_t  pages[2];

    c = calloc(1, sizeof(cache_t));
    assert_non_null(c);

    c->conf = conf;
    c->tiers = conf->host != 0 ? 2 : 1;
    pages[GPU] = conf->gpu / DSA_PAGE_TOKENS;
    pages[HOST] = conf->host / DSA_PAGE_TOKENS;

    assert_int_equal(dsa_pool_init(&c->store[GPU], pages[GPU]), DSA_OK);

    if (c->tiers == 2) {
        assert_int_equal(dsa_lru_init(&c->store[HOST], pages[HOST]), DSA_OK);
    }

    c->prefix = dsa_prefix_create(pages, (uint32_t) c->tiers);
    assert_non_null(c->prefix);

    return c;
}


/* No page has users; all lists and the index are consistent. */

static void
cache_destroy(cache_t *c)
{
    int        i;
    uint32_t  *users;
    dsa_err_t  err;

    for (i = 0; i < c->tiers; i++) {
        users = calloc(c->store[i].total, sizeof(uint32_t));
        assert_non_null(users);

        if (c->store[i].audit(c->store[i].data, users, &err) != DSA_OK) {
            fail_msg("%s", err.text);
        }

        free(users);
        c->store[i].destroy(c->store[i].data);
    }

    if (dsa_prefix_audit(c->prefix, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    dsa_prefix_destroy(c->prefix);
    free(c);
}


/* The host page of a digest, or DSA_NO_PAGE. */

static uint32_t
host_find(const cache_t *c, const dsa_digest_t *d)
{
    return c->tiers == 2 ? dsa_prefix_find(c->prefix, HOST, d) : DSA_NO_PAGE;
}


/* Copies a page of the GPU to host memory. */

static void
copy_out(cache_t *c, uint32_t page, int duplicate)
{
    uint32_t      host_page;
    dsa_store_t  *host;
    dsa_digest_t  d;

    host = &c->store[HOST];
    d = *dsa_prefix_digest(c->prefix, GPU, page);
    host_page = host->alloc(host->data);
    assert_int_not_equal(host_page, DSA_NO_PAGE);

    dsa_prefix_remove(c->prefix, HOST, host_page);
    dsa_prefix_add(c->prefix, HOST, &d, host_page, DSA_COPY_READY);
    dsa_lru_set_duplicate(host, host_page, duplicate);
    host->release(host->data, host_page, 1);
    c->copies++;
}


/*
 * Pages that will be overwritten soon are copied to host memory.  From then on
 * they are no duplicates there, although the GPU has them for a while: the
 * host page of a duplicate is overwritten first, when the next candidate comes.
 */

static void
copy_candidates(cache_t *c)
{
    uint32_t             page, host_page;
    dsa_store_t         *gpu;
    const dsa_digest_t  *d;

    gpu = &c->store[GPU];

    if (c->tiers == 1) {
        return;
    }

    for ( ;; ) {
        page = dsa_pool_candidate(gpu, c->conf->window);

        if (page == DSA_NO_PAGE) {
            return;
        }

        d = dsa_prefix_digest(c->prefix, GPU, page);

        if (d == NULL) {
            continue;
        }

        host_page = host_find(c, d);

        if (host_page != DSA_NO_PAGE) {
            dsa_lru_set_duplicate(&c->store[HOST], host_page, 0);
            continue;
        }

        gpu->retain(gpu->data, page);
        copy_out(c, page, 0);
        gpu->release(gpu->data, page, 0);
    }
}


/* A page of the GPU; what it held is no longer there. */

static uint32_t
gpu_alloc(cache_t *c)
{
    uint32_t             page, host_page;
    dsa_store_t         *gpu;
    const dsa_digest_t  *d;

    gpu = &c->store[GPU];
    page = gpu->alloc(gpu->data);
    assert_int_not_equal(page, DSA_NO_PAGE);

    d = dsa_prefix_digest(c->prefix, GPU, page);

    if (d != NULL) {
        host_page = host_find(c, d);

        if (host_page != DSA_NO_PAGE) {
            dsa_lru_set_duplicate(&c->store[HOST], host_page, 0);

        } else {
            c->lost++;
        }

        dsa_prefix_remove(c->prefix, GPU, page);
    }

    return page;
}


/* The page of a digest with a user, from any tier, or DSA_NO_PAGE. */

static uint32_t
cache_find(cache_t *c, const dsa_digest_t *d)
{
    uint32_t      page, host_page;
    dsa_store_t  *gpu, *host;

    gpu = &c->store[GPU];
    host = &c->store[HOST];
    page = dsa_prefix_find(c->prefix, GPU, d);
    host_page = host_find(c, d);

    if (page != DSA_NO_PAGE) {
        gpu->retain(gpu->data, page);
        c->hits[GPU]++;

        if (host_page != DSA_NO_PAGE) {
            dsa_lru_hit(host, host_page);
            dsa_lru_set_duplicate(host, host_page, 1);
        }

        return page;
    }

    if (host_page == DSA_NO_PAGE) {
        return DSA_NO_PAGE;
    }

    host->retain(host->data, host_page);
    page = gpu_alloc(c);
    dsa_prefix_add(c->prefix, GPU, d, page, DSA_COPY_READY);
    dsa_lru_hit(host, host_page);
    dsa_lru_set_duplicate(host, host_page, 1);
    host->release(host->data, host_page, 1);
    c->hits[HOST]++;

    return page;
}


/*
 * A page is computed and published.  It is copied to host memory at once if
 * that overwrites nothing.
 */

static uint32_t
cache_compute(cache_t *c, const dsa_digest_t *d)
{
    uint32_t  page, host_page;

    page = gpu_alloc(c);

    if (dsa_prefix_find(c->prefix, GPU, d) != DSA_NO_PAGE) {
        return page;
    }

    dsa_prefix_add(c->prefix, GPU, d, page, DSA_COPY_READY);

    if (c->tiers == 1) {
        return page;
    }

    host_page = host_find(c, d);

    if (host_page != DSA_NO_PAGE) {
        dsa_lru_set_duplicate(&c->store[HOST], host_page, 1);

    } else if (dsa_lru_n_empty(&c->store[HOST]) != 0) {
        copy_out(c, page, 1);
    }

    return page;
}


/* Returns the tokens that are hit. */

static uint64_t
cache_request(cache_t *c, const request_t *r)
{
    int            found;
    uint32_t       i, n, hit;
    dsa_store_t   *gpu;
    dsa_digest_t   d;

    gpu = &c->store[GPU];
    n = r->n * BLOCK_PAGES;
    found = 1;
    hit = 0;

    for (i = 0; i < n; i++) {
        d = digest_of(block_id[r->first + i / BLOCK_PAGES], i % BLOCK_PAGES);
        c->page[i] = found ? cache_find(c, &d) : DSA_NO_PAGE;

        if (c->page[i] == DSA_NO_PAGE) {
            found = 0;
            c->page[i] = cache_compute(c, &d);
        }

        hit += (uint32_t) found;

        if (c->conf->step != 0 && (i + 1) % c->conf->step == 0) {
            copy_candidates(c);
        }
    }

    while (i-- != 0) {
        gpu->release(gpu->data, c->page[i],
                     dsa_prefix_digest(c->prefix, GPU, c->page[i]) != NULL);
    }

    copy_candidates(c);

    return hit_tokens(r, (uint64_t) hit * DSA_PAGE_TOKENS);
}


/* The hit rate of the whole trace; *counts has the counts at its end. */

static double
tiers_rate(const conf_t *conf, cache_t *counts)
{
    uint32_t   i;
    uint64_t   tokens;
    cache_t   *c;

    c = cache_create(conf);
    tokens = 0;

    for (i = 0; i < n_requests; i++) {
        tokens += cache_request(c, &requests[i]);
    }

    *counts = *c;
    cache_destroy(c);

    return percent(tokens);
}


/* What is known of this trace: the rates of LRU caches. */

static void
test_plain(void **state)
{
    uint32_t  i;
    double    rate;

    static const uint64_t  sizes[] = { 1000000, 5000000, 20000000,
                                       1000000000 };
    static const double    rates[] = { 5.4, 21.0, 35.8, 37.4 };

    for (i = 0; i < 4; i++) {
        rate = lru_rate(sizes[i]);
        print_message("# LRU of %4u M tokens: %5.2f %%\n",
                      (uint32_t) (sizes[i] / 1000000), rate);
        assert_true(rate > rates[i] - 0.05 && rate < rates[i] + 0.05);
    }
}


/*
 * GPU and host memory together are not more than 1 point below an LRU cache of
 * their total size: with calls of dsa_pool_candidate() after each request, the
 * largest of which has 1,976 pages, and in steps of 8,192 tokens, as a
 * scheduler does.
 */

static void
test_tiers(void **state)
{
    double         rate, lru;
    cache_t        c;
    uint32_t       i;
    const conf_t  *conf;

    static const conf_t  confs[] = {
        { 1000000, 0, 0, 0 },
        { 1000000, 4000000, 0, 2048 },
        { 2000000, 3000000, 0, 2048 },
        { 5000000, 15000000, 0, 2048 },
        { 1000000, 4000000, 128, 256 },
        { 2000000, 3000000, 128, 256 },
        { 5000000, 15000000, 128, 256 }
    };

    print_message("# tokens GPU + host, step, window: hit rate, LRU; "
                  "thousand pages: hit on the GPU, in host memory, copied, "
                  "lost\n");

    for (i = 0; i < sizeof(confs) / sizeof(confs[0]); i++) {
        conf = &confs[i];
        lru = lru_rate(conf->gpu + conf->host);
        rate = tiers_rate(conf, &c);

        print_message("# %2u M + %2u M, %3u, %4u: %5.2f %%, %5.2f %% (%+5.2f); "
                      "%5.1f %5.1f %6.1f %6.1f\n", conf->gpu / 1000000,
                      conf->host / 1000000, conf->step, conf->window, rate,
                      lru, rate - lru, (double) c.hits[GPU] / 1000,
                      (double) c.hits[HOST] / 1000, (double) c.copies / 1000,
                      (double) c.lost / 1000);

        assert_true(rate >= lru - 1.0);
        assert_true(rate <= lru_rate(1000000000));

        /* with 128 allocations at most, no page misses the window of 256 */

        assert_true(conf->step == 0 || c.lost == 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_tiers)
    };

    return cmocka_run_group_tests(tests, load_trace, NULL);
}
