
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
 * Pages that are worth keeping in slower tiers.  When a turn has ended, each
 * tier counts which of its pages it has already, as another replica may have
 * written them; the others wait in a ring of the tier and are written from host
 * memory in their order.  Pages that only a rank has are saved to host memory
 * first.
 */


static dsa_probing_t *dsa_tiers_create_probe(dsa_tiers_t *t,
    const dsa_digest_t *digest, uint32_t n, int keep);
static void dsa_keep_add(dsa_tiers_t *t, uint32_t tier,
    const dsa_digest_t *digest);
static void dsa_keep_pop(dsa_slower_t *s);
static void dsa_keep_forget(dsa_slower_t *s, const dsa_digest_t *digest);
static int dsa_keep_save(dsa_tiers_t *t, const dsa_digest_t *digest);
static int dsa_keep_write(dsa_tiers_t *t, uint32_t tier,
    const dsa_digest_t *digest, dsa_host_at_t at);


static inline dsa_str_t
dsa_keep_key(const dsa_digest_t *digest)
{
    return dsa_str((const char *) digest->byte, sizeof(digest->byte));
}


void
dsa_tiers_keep(dsa_tiers_t *t, const dsa_digest_t *digest, uint32_t n)
{
    uint32_t        i;
    dsa_probing_t  *p;

    p = NULL;
    n = n < DSA_TIER_CHAIN ? n : DSA_TIER_CHAIN;

    for (i = DSA_TIER_SLOWER; n != 0 && i < DSA_TIERS; i++) {
        if (!dsa_slower_on(&t->slower[i])) {
            continue;
        }

        if (t->slower[i].keeping >= DSA_TIER_PROBES
            || dsa_tiers_submit_probe(t, &p, i, digest, n, 1) != DSA_OK)
        {
            t->stats[i].lost += n;
            continue;
        }

        t->slower[i].keeping++;
    }

    if (p != NULL && p->pending == 0) {
        dsa_tiers_free_probe(t, p);
    }
}


int
dsa_tiers_submit_probe(dsa_tiers_t *t, dsa_probing_t **p, uint32_t tier,
    const dsa_digest_t *digest, uint32_t n, int keep)
{
    dsa_tier_t     *to;
    dsa_tier_op_t  *op;

    if (*p == NULL) {
        *p = dsa_tiers_create_probe(t, digest, n, keep);

        if (*p == NULL) {
            return DSA_AGAIN;
        }
    }

    op = &(*p)->op[tier];
    op->kind = DSA_TIER_PROBE;
    op->digest = (*p)->digest;
    op->n = n;
    op->owner = *p;

    to = &t->slower[tier].tier;

    if (to->submit(to->data, op) != DSA_OK) {
        return DSA_AGAIN;
    }

    (*p)->pending++;

    return DSA_OK;
}


static dsa_probing_t *
dsa_tiers_create_probe(dsa_tiers_t *t, const dsa_digest_t *digest, uint32_t n,
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
dsa_keep_probed(dsa_tiers_t *t, dsa_probing_t *p, uint32_t tier)
{
    uint32_t              i;
    const dsa_tier_op_t  *op;

    op = &p->op[tier];
    t->slower[tier].keeping--;

    if (op->result == DSA_TIER_DONE) {
        for (i = op->found; i < op->n; i++) {
            dsa_keep_add(t, tier, &p->digest[i]);
        }

    } else {
        t->stats[tier].failed++;
        t->stats[tier].lost += op->n;
    }
}


static void
dsa_keep_add(dsa_tiers_t *t, uint32_t tier, const dsa_digest_t *digest)
{
    dsa_slower_t  *s;
    dsa_digest_t  *d;

    s = &t->slower[tier];

    if (s->n_kept == DSA_TIER_KEPT) {
        t->stats[tier].lost++;
        return;
    }

    d = &s->kept[(s->kept_first + s->n_kept) % DSA_TIER_KEPT];
    *d = *digest;

    /* a page is in the ring once; the map has room for all of them */

    if (dsa_map_add(&s->kept_map, dsa_keep_key(d), 0) == DSA_OK) {
        s->n_kept++;
        (void) dsa_keep_save(t, d);
    }
}


/* The first page leaves the ring. */

static void
dsa_keep_pop(dsa_slower_t *s)
{
    dsa_keep_forget(s, &s->kept[s->kept_first]);

    s->kept_first = (s->kept_first + 1) % DSA_TIER_KEPT;
    s->n_kept--;
}


static void
dsa_keep_forget(dsa_slower_t *s, const dsa_digest_t *digest)
{
    int  rc;

    rc = dsa_map_delete(&s->kept_map, dsa_keep_key(digest));

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

    if (dsa_pages_host(t->pages, DSA_ANY_HOST, digest, &at, &ready)) {
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
dsa_keep_advance(dsa_tiers_t *t, uint32_t tier)
{
    int            rc, ready;
    dsa_slower_t  *s;
    dsa_digest_t  *digest;
    dsa_host_at_t  at;

    s = &t->slower[tier];

    while (s->n_kept != 0 && s->writing < DSA_TIER_WRITES
           && dsa_slower_on(s))
    {
        digest = &s->kept[s->kept_first];

        if (dsa_pages_host(t->pages, DSA_ANY_HOST, digest, &at, &ready)) {
            if (!ready || dsa_keep_write(t, tier, digest, at) != DSA_OK) {
                return;
            }

            continue;
        }

        rc = dsa_keep_save(t, digest);

        if (rc != DSA_ERROR) {
            return;
        }

        t->stats[tier].lost++;
        dsa_keep_pop(s);
    }
}


static int
dsa_keep_write(dsa_tiers_t *t, uint32_t tier, const dsa_digest_t *digest,
    dsa_host_at_t at)
{
    int             rc;
    dsa_slower_t   *s;
    dsa_page_op_t  *op;

    s = &t->slower[tier];
    op = dsa_tiers_op(t, DSA_OP_WRITE, digest);

    if (op == NULL) {
        return DSA_AGAIN;
    }

    op->at = at;
    op->tier = tier;
    op->op.kind = DSA_TIER_WRITE;
    op->op.digest = &op->digest;
    op->op.n = 1;
    op->op.page = dsa_host_page(t->host, at.slab, at.page);
    op->op.host = t->host->slab[at.slab].host;
    op->op.slab = t->host->slab[at.slab].number;
    op->op.index = at.page;
    op->op.owner = op;

    if (s->tier.submit(s->tier.data, &op->op) != DSA_OK) {
        dsa_tiers_op_free(t, op);
        return DSA_AGAIN;
    }

    dsa_log_debug("page %02x%02x%02x%02x: is written to %s",
                  dsa_digest_log(digest), dsa_tier_names[tier].name);

    dsa_pages_host_retain(t->pages, at);
    s->writing++;

    /* until it is written, another turn does not add it again */

    dsa_keep_pop(s);
    rc = dsa_map_add(&s->kept_map, dsa_keep_key(&op->digest), 0);

    assert(rc == DSA_OK);

    return DSA_OK;
}


void
dsa_keep_written(dsa_tiers_t *t, dsa_page_op_t *op)
{
    dsa_slower_t      *s;
    dsa_tier_stats_t  *stats;

    s = &t->slower[op->tier];
    stats = &t->stats[op->tier];
    s->writing--;

    dsa_log_debug("page %02x%02x%02x%02x: the write to %s ended with result %d",
                  dsa_digest_log(&op->digest), dsa_tier_names[op->tier].name,
                  (int) op->op.result);

    if (op->op.result == DSA_TIER_DONE) {
        stats->write_pages++;
        stats->write_bytes += t->backend->page_bytes;
        stats->write_us += op->op.end_us - op->op.begin_us;

    } else {
        stats->failed++;
        stats->lost++;
    }

    dsa_keep_forget(s, &op->digest);
    dsa_pages_host_release(t->pages, op->at);
    dsa_tiers_op_free(t, op);
}
