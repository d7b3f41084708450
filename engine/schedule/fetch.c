
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tiers.h"
#include "engine/schedule/tiers_parts.h"


/*
 * Fetches: pages of a prefix that the ranks lack.  They begin in their order,
 * because a page is of use only with all pages before it:
 *
 *     host memory has the page       it moves to the ranks
 *     it is coming to host memory    the fetch waits for that
 *     otherwise                      it is read from a slower tier into a new
 *                                    host page
 *
 * Of the slower tiers that are expected to have the page, the first one is
 * read.  A page that cannot be read ends the prefix there (f.n).  What is read
 * for a fetch that was abandoned stays in host memory.
 */


_Static_assert(DSA_NO_PAGE == UINT32_MAX, "memset() to 0xff sets it");


#define DSA_FETCH_WEIGHT    0.25        /* of the newest fetch in read_us */
#define DSA_FETCH_MANY      16          /* pages that have this weight */
#define DSA_FETCH_RECOVERY  0.9375      /* of read_us, for each decision not to
                                           read, so that a server that was slow
                                           is tried again */


static uint32_t dsa_fetch_expected(const dsa_tiers_t *t,
    const uint32_t expected[DSA_TIERS], uint32_t index);
static int dsa_fetch_pays(dsa_slower_t *s, uint32_t pages, double compute_us);
static uint32_t dsa_fetch_source(const dsa_tiers_t *t,
    const dsa_fetching_t *f, uint32_t index);
static uint32_t dsa_fetch_slow(const dsa_tiers_t *t, const dsa_fetching_t *f,
    uint32_t index);
static uint32_t dsa_fetch_host(const dsa_tiers_t *t, const uint32_t *target,
    uint32_t n);
static void dsa_fetch_truncate(dsa_fetching_t *f, uint32_t n);
static void dsa_fetch_move(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index,
    dsa_host_at_t at);
static int dsa_fetch_begin_read(dsa_tiers_t *t, dsa_fetching_t *f,
    uint32_t index, uint32_t tier);
static uint32_t dsa_fetch_slab(const dsa_tiers_t *t, const dsa_fetching_t *f,
    uint32_t index);
static void dsa_fetch_ready(dsa_fetching_t *f, uint32_t index);
static void dsa_fetch_measure(dsa_slower_t *s, const dsa_reading_t *read);


uint32_t
dsa_tiers_available(dsa_tiers_t *t, uint32_t rank, const dsa_digest_t *digest,
    uint32_t n, const uint32_t expected[DSA_TIERS], double token_us)
{
    int            ready;
    uint32_t       i, k, host, n_tier[DSA_TIERS], first[DSA_TIERS];
    dsa_host_at_t  at;

    memset(n_tier, 0, sizeof(n_tier));
    host = dsa_pages_host_of(t->pages, rank);

    for (i = 0; i < n; i++) {
        if (dsa_pages_host(t->pages, host, &digest[i], &at, &ready)) {
            continue;
        }

        k = dsa_fetch_expected(t, expected, i);

        if (k == DSA_TIERS) {
            break;
        }

        first[k] = n_tier[k] == 0 ? i : first[k];
        n_tier[k]++;
    }

    n = i;

    for (k = DSA_TIER_SLOWER; token_us != 0 && k < DSA_TIERS; k++) {
        if (n_tier[k] != 0
            && !dsa_fetch_pays(&t->slower[k], n_tier[k],
                               token_us * DSA_PAGE_TOKENS * (i - first[k])))
        {
            n = first[k] < n ? first[k] : n;
        }
    }

    return n;
}


/*
 * The first slower tier that is expected to have a page, DSA_TIERS if none is.
 */

static uint32_t
dsa_fetch_expected(const dsa_tiers_t *t, const uint32_t expected[DSA_TIERS],
    uint32_t index)
{
    uint32_t  i;

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (index < expected[i] && dsa_slower_on(&t->slower[i])) {
            return i;
        }
    }

    return DSA_TIERS;
}


/*
 * Returns 1 if a slower tier is expected to read so many pages in less time
 * than computing takes.  A tier that was not measured yet is read.
 */

static int
dsa_fetch_pays(dsa_slower_t *s, uint32_t pages, double compute_us)
{
    if (s->read_us == 0 || s->read_us * (pages + s->reading) < compute_us) {
        return 1;
    }

    s->read_us *= DSA_FETCH_RECOVERY;

    return 0;
}


dsa_fetch_t *
dsa_tiers_fetch(dsa_tiers_t *t, uint64_t id, const dsa_digest_t *digest,
    const uint32_t *target, uint32_t n, const uint32_t expected[DSA_TIERS])
{
    size_t           size;
    char            *p;
    dsa_fetching_t  *f;

    assert(n != 0);

    /* one block of memory: the struct, then its arrays by alignment */

    size = (size_t) n * t->pages->ranks * sizeof(uint32_t);
    p = calloc(1, sizeof(dsa_fetching_t) + size
                  + (size_t) n * (sizeof(dsa_digest_t) + 3));

    if (p == NULL) {
        return NULL;
    }

    f = (dsa_fetching_t *) p;
    p += sizeof(dsa_fetching_t);
    f->target = (uint32_t *) p;
    p += size;
    f->digest = (dsa_digest_t *) p;
    f->state = (uint8_t *) (f->digest + n);
    f->left = f->state + n;
    f->from = f->left + n;

    memcpy(f->target, target, size);
    memcpy(f->digest, digest, n * sizeof(dsa_digest_t));
    memcpy(f->expected, expected, sizeof(f->expected));
    memset(f->from, DSA_TIER_HOST, n);

    f->id = id;
    f->host = dsa_fetch_host(t, target, n);
    f->n = n;
    f->f.n = n;
    f->next_fetch = t->fetches;

    if (t->fetches != NULL) {
        t->fetches->prev = f;
    }

    t->fetches = f;

    dsa_fetch_advance(t, f);

    return &f->f;
}


/* The host of the ranks that need a page. */

static uint32_t
dsa_fetch_host(const dsa_tiers_t *t, const uint32_t *target, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < t->pages->ranks * n; i++) {
        if (target[i] != DSA_NO_PAGE) {
            return dsa_pages_host_of(t->pages, i / n);
        }
    }

    return 0;
}


void
dsa_tiers_abandon(dsa_tiers_t *t, dsa_fetch_t *fetch)
{
    uint32_t         i;
    dsa_fetching_t  *f;

    f = (dsa_fetching_t *) fetch;

    for (i = f->f.ready; i < f->f.n; i++) {
        if (f->state[i] == DSA_FETCH_WAITS || f->state[i] == DSA_FETCH_READS) {
            t->stats[dsa_fetch_slow(t, f, i)].abandoned += f->f.n - i;
            dsa_fetch_truncate(f, i);
        }
    }
}


/*
 * The tier that a fetch waits for: a page that it does not read itself may be
 * read for another fetch.
 */

static uint32_t
dsa_fetch_slow(const dsa_tiers_t *t, const dsa_fetching_t *f, uint32_t index)
{
    const dsa_page_op_t  *op;

    for (op = t->ops; op != NULL; op = op->next) {
        if (op->kind == DSA_OP_READ
            && memcmp(&op->digest, &f->digest[index], sizeof(dsa_digest_t))
               == 0)
        {
            return op->tier;
        }
    }

    return f->from[index];
}


void
dsa_tiers_fetch_only(dsa_tiers_t *t, dsa_fetch_t *fetch, uint32_t rank)
{
    uint32_t         i;
    dsa_fetching_t  *f;

    f = (dsa_fetching_t *) fetch;

    for (i = 0; i < t->pages->ranks; i++) {
        if (i != rank) {
            memset(f->target + (size_t) i * f->n, 0xff,
                   f->n * sizeof(uint32_t));
        }
    }
}


void
dsa_tiers_unfetch(dsa_tiers_t *t, dsa_fetch_t *fetch)
{
    uint32_t         i;
    dsa_slower_t    *s;
    dsa_fetching_t  *f;

    f = (dsa_fetching_t *) fetch;
    f->abandoned = 1;

    if (f->reading != 0 || f->f.moving != 0) {
        dsa_log_debug("request %u.%u: gives up its fetch with %u of %u pages, "
                      "%u reads and %u moves go on", (uint32_t) f->id,
                      (uint32_t) (f->id >> 32), f->f.ready, f->n, f->reading,
                      f->f.moving);
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        s = &t->slower[i];

        if (f->read[i].reading != 0) {
            s->tier.cancel(s->tier.data, f);
        }
    }

    dsa_fetch_free_unused(t, f);
}


void
dsa_fetch_free_unused(dsa_tiers_t *t, dsa_fetching_t *f)
{
    if (!f->abandoned || f->reading != 0 || f->f.moving != 0) {
        return;
    }

    if (f->prev != NULL) {
        f->prev->next_fetch = f->next_fetch;

    } else {
        t->fetches = f->next_fetch;
    }

    if (f->next_fetch != NULL) {
        f->next_fetch->prev = f->prev;
    }

    free(f);
}


/* Pages from n on are left out; n is at least f.ready. */

static void
dsa_fetch_truncate(dsa_fetching_t *f, uint32_t n)
{
    if (n < f->f.n) {
        dsa_log_debug("request %u.%u: page %02x%02x%02x%02x: not fetched, its "
                      "fetch ends after %u of %u pages", dsa_fetch_log(f, n),
                      n, f->n);

        f->f.n = n;
    }
}


void
dsa_fetch_advance(dsa_tiers_t *t, dsa_fetching_t *f)
{
    int            ready;
    uint32_t       i, k;
    dsa_host_at_t  at;

    if (f->abandoned) {
        return;
    }

    while (f->next < f->f.n) {
        i = f->next;

        if (dsa_pages_host(t->pages, f->host, &f->digest[i], &at, &ready)) {
            if (!ready) {
                return;
            }

            dsa_fetch_move(t, f, i, at);

        } else {
            k = dsa_fetch_source(t, f, i);

            if (k == DSA_TIERS) {
                dsa_fetch_truncate(f, i);
                return;
            }

            if (dsa_fetch_begin_read(t, f, i, k) != DSA_OK) {
                return;
            }
        }

        f->next++;
    }
}


/*
 * The tier to read a page from, DSA_TIERS if none can be used.  Host memory may
 * have lost a page since no tier was expected to have it.
 */

static uint32_t
dsa_fetch_source(const dsa_tiers_t *t, const dsa_fetching_t *f,
    uint32_t index)
{
    uint32_t  i;

    i = dsa_fetch_expected(t, f->expected, index);

    if (i != DSA_TIERS) {
        return i;
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (dsa_slower_on(&t->slower[i])) {
            break;
        }
    }

    return i;
}


/* A host page has a complete copy: it moves to the ranks. */

static void
dsa_fetch_move(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index,
    dsa_host_at_t at)
{
    uint32_t  i, page;

    f->state[index] = DSA_FETCH_MOVES;
    dsa_pages_hit(t->pages, &f->digest[index]);

    for (i = 0; i < t->pages->ranks; i++) {
        page = f->target[(size_t) i * f->n + index];

        if (page != DSA_NO_PAGE) {
            dsa_tiers_load(t, f, index, at, i, page);
        }
    }

    if (f->left[index] == 0) {
        dsa_fetch_ready(f, index);
    }
}


/* DSA_AGAIN: not now, or the prefix ends here. */

static int
dsa_fetch_begin_read(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index,
    uint32_t tier)
{
    dsa_slower_t   *s;
    dsa_page_op_t  *op;
    dsa_reading_t  *read;

    f->from[index] = (uint8_t) tier;

    if (f->reading >= DSA_TIER_READS) {
        return DSA_AGAIN;
    }

    op = dsa_tiers_op(t, DSA_OP_READ, &f->digest[index]);

    if (op == NULL) {
        return DSA_AGAIN;
    }

    if (dsa_pages_host_alloc(t->pages, dsa_fetch_slab(t, f, index),
                             &op->digest, DSA_COPY_LOADING, &op->at)
        != DSA_OK)
    {
        dsa_tiers_op_free(t, op);

        /* without a copy in progress, no host page will become free */

        if (t->ops == NULL) {
            dsa_fetch_truncate(f, index);
        }

        return DSA_AGAIN;
    }

    s = &t->slower[tier];

    op->fetch = f;
    op->index = index;
    op->tier = tier;
    op->op.kind = DSA_TIER_READ;
    op->op.digest = &op->digest;
    op->op.n = 1;
    op->op.page = dsa_host_page(t->host, op->at.slab, op->at.page);
    op->op.host = t->host->slab[op->at.slab].host;
    op->op.slab = t->host->slab[op->at.slab].number;
    op->op.index = op->at.page;
    op->op.owner = f;

    if (s->tier.submit(s->tier.data, &op->op) != DSA_OK) {
        dsa_pages_host_drop(t->pages, op->at);
        dsa_tiers_op_free(t, op);

        if (!dsa_slower_on(s)) {
            dsa_fetch_truncate(f, index);
        }

        return DSA_AGAIN;
    }

    read = &f->read[tier];

    if (read->reading == 0) {
        read->n = 0;
        read->begin_us = op->op.queued_us;
        read->end_us = op->op.queued_us;
    }

    dsa_log_debug("request %u.%u: page %02x%02x%02x%02x: is read from %s",
                  dsa_fetch_log(f, index), dsa_tier_names[tier].name);

    f->state[index] = DSA_FETCH_READS;
    f->reading++;
    read->reading++;
    s->reading++;

    return DSA_OK;
}


/*
 * The slab of the first rank that loads a page: the other ones are farther
 * from it, and one slab for all reads would leave the others unused.
 */

static uint32_t
dsa_fetch_slab(const dsa_tiers_t *t, const dsa_fetching_t *f, uint32_t index)
{
    uint32_t  i;

    for (i = 0; i < t->pages->ranks; i++) {
        if (f->target[(size_t) i * f->n + index] != DSA_NO_PAGE) {
            return t->slab[i];
        }
    }

    return 0;
}


void
dsa_fetch_read(dsa_tiers_t *t, dsa_page_op_t *op)
{
    uint32_t           index, tier;
    dsa_reading_t     *read;
    dsa_fetching_t    *f;
    dsa_tier_stats_t  *stats;

    f = op->fetch;
    index = op->index;
    tier = op->tier;
    read = &f->read[tier];
    stats = &t->stats[tier];

    dsa_log_debug("request %u.%u: page %02x%02x%02x%02x: the read from %s "
                  "ended with result %d", dsa_fetch_log(f, index),
                  dsa_tier_names[tier].name, (int) op->op.result);

    f->reading--;
    read->reading--;
    t->slower[tier].reading--;

    if (op->op.result == DSA_TIER_DONE) {
        stats->read_pages++;
        stats->read_bytes += t->backend->page_bytes;
        stats->read_us += op->op.end_us - op->op.begin_us;

        read->n++;

        if (op->op.end_us > read->end_us) {
            read->end_us = op->op.end_us;
        }

        dsa_pages_host_ready(t->pages, op->at, 0);

        if (!f->abandoned && index < f->f.n) {
            dsa_fetch_move(t, f, index, op->at);
        }

        dsa_pages_host_release(t->pages, op->at);

    } else {
        stats->invalid += op->op.result == DSA_TIER_INVALID;
        stats->failed += op->op.result == DSA_TIER_FAILED && !f->abandoned;

        dsa_pages_host_drop(t->pages, op->at);
        dsa_fetch_truncate(f, index);
    }

    dsa_tiers_op_free(t, op);

    if (read->reading == 0) {
        dsa_fetch_measure(&t->slower[tier], read);
    }

    dsa_fetch_free_unused(t, f);
}


/*
 * The time of a page while several of them are on their way, until the last
 * one has arrived: it may be collected much later, after a long step.  Pages
 * that arrive for a fetch that was abandoned count, because a slow server is
 * recognized by them.  A few pages show the latency more than the rate, so that
 * they have less weight.
 */

static void
dsa_fetch_measure(dsa_slower_t *s, const dsa_reading_t *read)
{
    double  us, weight;

    if (read->n == 0) {
        return;
    }

    us = (double) (read->end_us - read->begin_us) / read->n;
    weight = DSA_FETCH_WEIGHT;

    if (read->n < DSA_FETCH_MANY) {
        weight *= (double) read->n / DSA_FETCH_MANY;
    }

    s->read_us = s->read_us != 0 ? s->read_us + weight * (us - s->read_us)
                                 : us;
}


void
dsa_fetch_loaded(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index)
{
    assert(f->left[index] != 0 && f->f.moving != 0);

    f->f.moving--;

    if (--f->left[index] == 0) {
        dsa_fetch_ready(f, index);
    }

    dsa_fetch_free_unused(t, f);
}


void
dsa_fetch_lost(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index)
{
    dsa_fetch_truncate(f, index);
    dsa_fetch_loaded(t, f, index);
}


static void
dsa_fetch_ready(dsa_fetching_t *f, uint32_t index)
{
    f->state[index] = DSA_FETCH_READY;

    while (f->f.ready < f->f.n
           && f->state[f->f.ready] == DSA_FETCH_READY)
    {
        f->f.from[f->from[f->f.ready]]++;
        f->f.ready++;
    }
}
