
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/tiers_parts.h"


/*
 * The pages of a rank that are saved before it overwrites them: enough for the
 * longest burst of allocations between two polls in most cases, few enough
 * that the ranks and host memory hold little twice.
 */

#define DSA_TIER_WINDOW     4           /* part of a rank's pages */
#define DSA_TIER_WINDOW_MAX DSA_TIER_SAVES


static int dsa_tiers_prepare(dsa_slower_t *s);
static int dsa_tiers_pin(dsa_tiers_t *t, dsa_err_t *err);
static void dsa_tiers_collect(dsa_tiers_t *t, uint32_t tier);
static void dsa_tiers_probed(dsa_tiers_t *t, dsa_probing_t *p, uint32_t tier);


dsa_tiers_t *
dsa_tiers_create(const dsa_tiers_conf_t *conf, dsa_err_t *err)
{
    uint32_t      i;
    dsa_tiers_t  *t;

    t = calloc(1, sizeof(dsa_tiers_t));

    if (t == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    t->conf = *conf;
    t->backend = conf->backend;
    t->pages = conf->pages;
    t->host = conf->host;
    t->window = dsa_pages_total(t->pages) / DSA_TIER_WINDOW;

    if (t->window > DSA_TIER_WINDOW_MAX) {
        t->window = DSA_TIER_WINDOW_MAX;
    }

    for (i = 0; i < t->pages->ranks; i++) {
        t->slab[i] = dsa_host_slab(t->host, dsa_pages_host_of(t->pages, i),
                                   t->backend->node[i]);
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (conf->tier[i].submit != NULL
            && dsa_tiers_prepare(&t->slower[i]) != DSA_OK)
        {
            (void) dsa_error(err, "out of memory");
            dsa_tiers_destroy(t);
            return NULL;
        }
    }

    if (dsa_tiers_pin(t, err) != DSA_OK) {
        dsa_tiers_destroy(t);
        return NULL;
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        t->slower[i].tier = conf->tier[i];
    }

    return t;
}


static int
dsa_tiers_prepare(dsa_slower_t *s)
{
    s->kept = calloc(DSA_TIER_KEPT, sizeof(dsa_digest_t));

    if (s->kept == NULL) {
        return DSA_ERROR;
    }

    return dsa_map_reserve(&s->kept_map, DSA_TIER_KEPT + DSA_TIER_WRITES + 1);
}


static int
dsa_tiers_pin(dsa_tiers_t *t, dsa_err_t *err)
{
    uint32_t                i;
    const dsa_host_slab_t  *slab;

    assert(t->host->page_bytes >= t->backend->page_bytes);

    for (i = 0; i < t->host->slabs; i++) {
        slab = &t->host->slab[i];

        /* other hosts have prepared theirs */

        if (slab->memory == NULL) {
            continue;
        }

        if (t->backend->pin(t->backend, slab->memory, slab->bytes, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


void
dsa_tiers_destroy(dsa_tiers_t *t)
{
    uint32_t       i;
    dsa_err_t      err;
    dsa_slower_t  *s;

    if (t == NULL) {
        return;
    }

    /* moves that were not ordered yet are left out */

    while (dsa_tiers_in_flight(t)
           && dsa_tiers_moved(t, 1, &err) == DSA_OK)
    {
        /* void */
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        s = &t->slower[i];

        if (s->tier.submit != NULL) {
            s->tier.close(s->tier.data);
        }

        dsa_map_free(&s->kept_map);
        free(s->kept);
    }

    while (t->ops != NULL) {
        dsa_tiers_op_free(t, t->ops);
    }

    while (t->probes != NULL) {
        dsa_tiers_free_probe(t, t->probes);
    }

    while (t->fetches != NULL) {
        assert(t->fetches->abandoned);

        t->fetches->reading = 0;
        t->fetches->f.moving = 0;
        dsa_fetch_free_unused(t, t->fetches);
    }

    free(t);
}


int
dsa_tiers_poll(dsa_tiers_t *t, int wait, dsa_err_t *err)
{
    uint32_t         i;
    dsa_fetching_t  *f;

    if (dsa_tiers_moved(t, wait, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (t->slower[i].tier.submit != NULL) {
            dsa_tiers_collect(t, i);
        }
    }

    dsa_tiers_save_candidates(t);

    for (f = t->fetches; f != NULL; f = f->next_fetch) {
        dsa_fetch_advance(t, f);
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        dsa_keep_advance(t, i);
    }

    if (dsa_tiers_order(t, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return t->no_memory ? dsa_error(err, "out of memory") : DSA_OK;
}


static void
dsa_tiers_collect(dsa_tiers_t *t, uint32_t tier)
{
    dsa_slower_t   *s;
    dsa_tier_op_t  *op, *next;
    dsa_page_op_t  *page;

    s = &t->slower[tier];

    for (op = s->tier.collect(s->tier.data); op != NULL; op = next) {
        next = op->next;

        if (op->kind == DSA_TIER_PROBE) {
            dsa_tiers_probed(t, op->owner, tier);
            continue;
        }

        page = (dsa_page_op_t *) ((char *) op - offsetof(dsa_page_op_t, op));

        if (page->kind == DSA_OP_READ) {
            dsa_fetch_read(t, page);

        } else {
            dsa_keep_written(t, page);
        }
    }
}


/* A slower tier has counted pages, or has failed to. */

static void
dsa_tiers_probed(dsa_tiers_t *t, dsa_probing_t *p, uint32_t tier)
{
    const dsa_tier_op_t  *op;

    op = &p->op[tier];
    p->pending--;

    if (p->keep) {
        dsa_keep_probed(t, p, tier);

    } else if (!p->p.done && !p->abandoned) {
        p->p.found[tier] = op->result == DSA_TIER_DONE ? op->found : 0;
        t->stats[tier].failed += op->result != DSA_TIER_DONE;

        if (p->pending == 0) {
            p->p.done = 1;
            t->probing--;
        }
    }

    if (p->abandoned && p->pending == 0) {
        dsa_tiers_free_probe(t, p);
    }
}


uint32_t
dsa_tiers_moving(const dsa_tiers_t *t)
{
    return t->moving;
}


uint32_t
dsa_tiers_probing(const dsa_tiers_t *t)
{
    return t->probing;
}


uint32_t
dsa_tiers_unwritten(const dsa_tiers_t *t)
{
    uint32_t             i, n;
    const dsa_slower_t  *s;

    n = 0;

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        s = &t->slower[i];

        if (dsa_slower_on(s)) {
            n += s->n_kept + s->writing + s->keeping;
        }
    }

    return n;
}


dsa_probe_t *
dsa_tiers_probe(dsa_tiers_t *t, const dsa_digest_t *digest, uint32_t n)
{
    uint32_t        i;
    dsa_probing_t  *p;

    p = NULL;
    n = n < DSA_TIER_CHAIN ? n : DSA_TIER_CHAIN;

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (dsa_slower_on(&t->slower[i])) {
            (void) dsa_tiers_submit_probe(t, &p, i, digest, n, 0);
        }
    }

    if (p == NULL) {
        return NULL;
    }

    if (p->pending == 0) {
        dsa_tiers_free_probe(t, p);
        return NULL;
    }

    t->probing++;

    return &p->p;
}


void
dsa_tiers_end_probe(dsa_tiers_t *t, dsa_probe_t *probe)
{
    uint32_t        i;
    dsa_slower_t   *s;
    dsa_probing_t  *p;

    p = (dsa_probing_t *) probe;

    if (p->p.done) {
        return;
    }

    p->p.done = 1;
    t->probing--;

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        s = &t->slower[i];

        if (s->tier.submit != NULL) {
            s->tier.cancel(s->tier.data, p);
        }
    }
}


void
dsa_tiers_unprobe(dsa_tiers_t *t, dsa_probe_t *probe)
{
    dsa_probing_t  *p;

    p = (dsa_probing_t *) probe;

    dsa_tiers_end_probe(t, probe);

    if (p->pending == 0) {
        dsa_tiers_free_probe(t, p);

    } else {
        p->abandoned = 1;
    }
}


void
dsa_tiers_published(dsa_tiers_t *t, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest)
{
    int            ready;
    dsa_host_at_t  at;

    if (!dsa_pages_host_empty(t->pages, t->slab[rank])
        || dsa_pages_host(t->pages, dsa_pages_host_of(t->pages, rank), digest,
                          &at, &ready))
    {
        return;
    }

    dsa_pages_retain(t->pages, rank, page);

    if (dsa_tiers_save(t, rank, page, digest, 0) != DSA_OK) {
        dsa_pages_release(t->pages, rank, page);
    }
}


void
dsa_tiers_users(const dsa_tiers_t *t, uint32_t *users, uint32_t *host_users)
{
    uint32_t              i, total, first[DSA_HOST_SLABS];
    const dsa_page_op_t  *op;

    total = dsa_pages_total(t->pages);
    first[0] = 0;

    for (i = 1; i < t->host->slabs; i++) {
        first[i] = first[i - 1] + t->host->slab[i - 1].pages;
    }

    for (op = t->ops; op != NULL; op = op->next) {
        host_users[first[op->at.slab] + op->at.page]++;

        if (op->kind == DSA_OP_SAVE || op->kind == DSA_OP_LOAD) {
            users[(size_t) op->rank * total + op->page]++;
        }
    }
}


void
dsa_tiers_stats(const dsa_tiers_t *t, dsa_tier_stats_t *tier)
{
    uint32_t           i;
    uint64_t           hits;
    const dsa_tier_t  *slower;

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        hits = tier[i].hit_tokens;
        tier[i] = t->stats[i];
        tier[i].hit_tokens = hits;
        slower = &t->slower[i].tier;

        if (slower->submit != NULL) {
            slower->stats(slower->data, &tier[i]);
        }
    }

    tier[DSA_TIER_GPU].lost = t->pages->lost;
    dsa_pages_host_count(t->pages, &tier[DSA_TIER_HOST].pages,
                         &tier[DSA_TIER_HOST].used);
}
