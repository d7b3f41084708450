
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/tiers_parts.h"


/*
 * Pages that are worth keeping in Redis.  When a turn has ended, Redis counts
 * which of its pages it has already, as another replica may have written them;
 * the others wait in a ring and are written from host memory in their order.
 * Pages that only a rank has are saved to host memory first.
 */


static void dsa_keep_add(dsa_tiers_t *t, const dsa_digest_t *digest);
static void dsa_keep_pop(dsa_tiers_t *t);
static void dsa_keep_forget(dsa_tiers_t *t, const dsa_digest_t *digest);
static int dsa_keep_save(dsa_tiers_t *t, const dsa_digest_t *digest);
static int dsa_keep_write(dsa_tiers_t *t, const dsa_digest_t *digest,
    dsa_host_at_t at);


static inline dsa_str_t
dsa_keep_key(const dsa_digest_t *digest)
{
    return dsa_str((const char *) digest->byte, sizeof(digest->byte));
}


void
dsa_tiers_keep(dsa_tiers_t *t, const dsa_digest_t *digest, uint32_t n)
{
    n = n < DSA_TIER_CHAIN ? n : DSA_TIER_CHAIN;

    if (t->cache == NULL || n == 0 || !dsa_redis_on(t->cache)) {
        return;
    }

    if (t->keeping >= DSA_TIER_PROBES
        || dsa_tiers_submit_probe(t, digest, n, 1) == NULL)
    {
        t->stats[DSA_TIER_REDIS].lost += n;
        return;
    }

    t->keeping++;
}


dsa_probing_t *
dsa_tiers_submit_probe(dsa_tiers_t *t, const dsa_digest_t *digest, uint32_t n,
    int keep)
{
    dsa_probing_t  *p;

    p = calloc(1, sizeof(dsa_probing_t) + n * sizeof(dsa_digest_t));

    if (p == NULL) {
        t->no_memory = 1;
        return NULL;
    }

    memcpy(p->digest, digest, n * sizeof(dsa_digest_t));

    p->keep = (uint32_t) keep;
    p->abandoned = (uint32_t) keep;
    p->cache.kind = DSA_REDIS_PROBE;
    p->cache.digest = p->digest;
    p->cache.n = n;
    p->cache.owner = p;

    if (dsa_redis_submit(t->cache, &p->cache) != DSA_OK) {
        free(p);
        return NULL;
    }

    p->next = t->probes;

    if (t->probes != NULL) {
        t->probes->prev = p;
    }

    t->probes = p;

    return p;
}


void
dsa_tiers_free_probe(dsa_tiers_t *t, dsa_probing_t *p)
{
    if (p->prev != NULL) {
        p->prev->next = p->next;

    } else {
        t->probes = p->next;
    }

    if (p->next != NULL) {
        p->next->prev = p->prev;
    }

    free(p);
}


void
dsa_keep_probed(dsa_tiers_t *t, dsa_probing_t *p)
{
    uint32_t  i;

    t->keeping--;

    if (p->cache.result == DSA_REDIS_DONE) {
        for (i = p->cache.found; i < p->cache.n; i++) {
            dsa_keep_add(t, &p->digest[i]);
        }

    } else {
        t->stats[DSA_TIER_REDIS].failed++;
        t->stats[DSA_TIER_REDIS].lost += p->cache.n;
    }

    dsa_tiers_free_probe(t, p);
}


static void
dsa_keep_add(dsa_tiers_t *t, const dsa_digest_t *digest)
{
    dsa_digest_t  *d;

    if (t->n_kept == DSA_TIER_KEPT) {
        t->stats[DSA_TIER_REDIS].lost++;
        return;
    }

    d = &t->kept[(t->kept_first + t->n_kept) % DSA_TIER_KEPT];
    *d = *digest;

    /* a page is in the ring once; the map has room for all of them */

    if (dsa_map_add(&t->kept_map, dsa_keep_key(d), 0) == DSA_OK) {
        t->n_kept++;
        (void) dsa_keep_save(t, d);
    }
}


/* The first page leaves the ring. */

static void
dsa_keep_pop(dsa_tiers_t *t)
{
    dsa_keep_forget(t, &t->kept[t->kept_first]);

    t->kept_first = (t->kept_first + 1) % DSA_TIER_KEPT;
    t->n_kept--;
}


static void
dsa_keep_forget(dsa_tiers_t *t, const dsa_digest_t *digest)
{
    int  rc;

    rc = dsa_map_delete(&t->kept_map, dsa_keep_key(digest));

    assert(rc == DSA_OK);
}


/*
 * Begins to save a page that only a rank has.  DSA_OK: host memory has the
 * page, or will have it; DSA_AGAIN: not now; DSA_ERROR: no tier has it.
 */

static int
dsa_keep_save(dsa_tiers_t *t, const dsa_digest_t *digest)
{
    int            ready, rc;
    uint32_t       rank, page;
    dsa_host_at_t  at;

    if (dsa_pages_host(t->pages, digest, &at, &ready)) {
        return DSA_OK;
    }

    for (rank = 0; rank < t->pages->ranks; rank++) {
        page = dsa_pages_find(t->pages, rank, digest);

        if (page == DSA_NO_PAGE) {
            continue;
        }

        rc = dsa_tiers_save(t, rank, page, digest, 0);

        if (rc != DSA_OK) {
            dsa_pages_release(t->pages, rank, page);
        }

        return rc;
    }

    return DSA_ERROR;
}


void
dsa_keep_advance(dsa_tiers_t *t)
{
    int            rc, ready;
    dsa_host_at_t  at;
    dsa_digest_t  *digest;

    while (t->n_kept != 0 && t->writing < DSA_TIER_WRITES
           && dsa_redis_on(t->cache))
    {
        digest = &t->kept[t->kept_first];

        if (dsa_pages_host(t->pages, digest, &at, &ready)) {
            if (!ready || dsa_keep_write(t, digest, at) != DSA_OK) {
                return;
            }

            continue;
        }

        rc = dsa_keep_save(t, digest);

        if (rc != DSA_ERROR) {
            return;
        }

        t->stats[DSA_TIER_REDIS].lost++;
        dsa_keep_pop(t);
    }
}


static int
dsa_keep_write(dsa_tiers_t *t, const dsa_digest_t *digest, dsa_host_at_t at)
{
    int             rc;
    dsa_page_op_t  *op;

    op = dsa_tiers_op(t, DSA_OP_WRITE, digest);

    if (op == NULL) {
        return DSA_AGAIN;
    }

    op->at = at;
    op->cache.kind = DSA_REDIS_SET;
    op->cache.digest = &op->digest;
    op->cache.n = 1;
    op->cache.page = dsa_host_slot(t->host, at.slab, at.slot);
    op->cache.owner = op;

    if (dsa_redis_submit(t->cache, &op->cache) != DSA_OK) {
        dsa_tiers_op_free(t, op);
        return DSA_AGAIN;
    }

    dsa_pages_host_retain(t->pages, at);
    t->writing++;

    /* until it is written, another turn does not add it again */

    dsa_keep_pop(t);
    rc = dsa_map_add(&t->kept_map, dsa_keep_key(&op->digest), 0);

    assert(rc == DSA_OK);

    return DSA_OK;
}


void
dsa_keep_written(dsa_tiers_t *t, dsa_page_op_t *op)
{
    dsa_tier_stats_t  *stats;

    stats = &t->stats[DSA_TIER_REDIS];
    t->writing--;

    if (op->cache.result == DSA_REDIS_DONE) {
        stats->write_pages++;
        stats->write_bytes += t->backend->page_bytes;
        stats->write_us += op->cache.end_us - op->cache.begin_us;

    } else {
        stats->failed++;
        stats->lost++;
    }

    dsa_keep_forget(t, &op->digest);
    dsa_pages_host_release(t->pages, op->at);
    dsa_tiers_op_free(t, op);
}
