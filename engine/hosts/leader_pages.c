
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/hosts/leader_parts.h"


/*
 * The pages in host memory.  Those of a rank are in the memory of its host: for
 * ranks of this host as without others, and for the rest by messages.
 */


#define DSA_HOSTS_LATE      4           /* time limits of a step, for a move,
                                           which waits for the steps in flight
                                           and for the moves before it, and for
                                           the next page from a tier */


static int dsa_hosts_lead_receive(dsa_backend_leader_t *h, uint32_t host,
    dsa_err_t *err);
static int dsa_hosts_lead_late(const dsa_backend_leader_t *h, uint32_t host,
    const char *message, uint64_t since_ms, dsa_err_t *err);
static int dsa_hosts_lead_idle(const dsa_backend_leader_t *h, uint32_t host,
    dsa_err_t *err);
static int dsa_hosts_lead_keep(dsa_backend_leader_t *h, uint32_t host,
    const dsa_hosts_head_t *head, dsa_err_t *err);
static int dsa_hosts_tier_on(void *data);
static int dsa_hosts_tier_submit(void *data, dsa_tier_op_t *op);
static void dsa_hosts_tier_cancel(void *data, const void *owner);
static dsa_tier_op_t *dsa_hosts_tier_collect(void *data);
static void dsa_hosts_tier_stats(void *data, dsa_tier_stats_t *stats);
static void dsa_hosts_tier_close(void *data);
static void dsa_hosts_tier_failed(dsa_backend_leader_t *h,
    const dsa_err_t *err);


void
dsa_hosts_memory(dsa_backend_t *b, dsa_host_t *host)
{
    uint32_t                  i, j;
    dsa_host_slab_t          *slab;
    dsa_backend_leader_t     *h = b->data;
    const dsa_hosts_ready_t  *ready;

    host->hosts = h->limits.hosts;

    for (i = 1; i < h->limits.hosts; i++) {
        ready = &h->ready[i];

        for (j = 0; j < ready->slabs; j++) {
            assert(host->slabs < DSA_HOST_SLABS);

            slab = &host->slab[host->slabs++];
            memset(slab, 0, sizeof(dsa_host_slab_t));
            slab->host = i;
            slab->number = j;
            slab->node = ready->slab_node[j];
            slab->pages = ready->slab_pages[j];
            slab->bytes = slab->pages * host->page_bytes;
        }
    }
}


int
dsa_hosts_lead_pin(dsa_backend_t *b, void *memory, uint64_t bytes,
    dsa_err_t *err)
{
    dsa_backend_leader_t  *h = b->data;

    return h->local->pin(h->local, memory, bytes, err);
}


int
dsa_hosts_lead_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    int                    rc;
    dsa_backend_leader_t  *h = b->data;

    if (rank < h->limits.gpus) {
        return h->local->move(h->local, way, rank, move, n, err);
    }

    if (dsa_hosts_lead_begin(h, "moving pages", err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = dsa_hosts_far_move(h->far, way, rank, move, n, err);

    return dsa_hosts_lead_end(h, rc);
}


int
dsa_hosts_lead_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank, int wait,
    uint64_t *calls, dsa_err_t *err)
{
    int                    rc;
    uint32_t               host;
    uint64_t               before, since_ms;
    dsa_backend_leader_t  *h = b->data;

    if (rank < h->limits.gpus && !wait) {
        return h->local->moved(h->local, way, rank, 0, calls, err);
    }

    if (rank < h->limits.gpus) {

        /* on a GPU, a move waits for copies, which may be from other hosts */

        if (dsa_hosts_lead_begin(h, "moving pages", err) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = h->local->moved(h->local, way, rank, 1, calls, err);

        return dsa_hosts_lead_end(h, rc);
    }

    host = rank / h->limits.gpus;
    before = dsa_hosts_far_moved(h->far, way, rank, &since_ms);
    *calls = before;

    if (since_ms == 0) {
        return DSA_OK;
    }

    if (dsa_hosts_lead_begin(h, "moving pages", err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = dsa_hosts_far_read(h->far, host, err);

    while (rc == DSA_OK && wait
           && dsa_hosts_far_moved(h->far, way, rank, &since_ms) == before)
    {
        rc = dsa_hosts_lead_receive(h, host, err);
    }

    *calls = dsa_hosts_far_moved(h->far, way, rank, &since_ms);

    if (rc == DSA_OK) {
        rc = dsa_hosts_lead_late(h, host, "MOVE", since_ms, err);
    }

    return dsa_hosts_lead_end(h, rc);
}


/*
 * A host may answer steps, and not a move or the reads of a tier, whose pages a
 * request waits for.
 */

static int
dsa_hosts_lead_late(const dsa_backend_leader_t *h, uint32_t host,
    const char *message, uint64_t since_ms, dsa_err_t *err)
{
    uint64_t  limit;

    limit = DSA_HOSTS_LATE * h->conf->step_ms;

    if (since_ms == 0 || dsa_clock_ms() - since_ms <= limit) {
        return DSA_OK;
    }

    return dsa_error(err, "%s has not answered %s for %llu ms",
                     h->wire[host].name, message, (unsigned long long) limit);
}


/* Waits for one message, which may be a RESULT. */

static int
dsa_hosts_lead_receive(dsa_backend_leader_t *h, uint32_t host, dsa_err_t *err)
{
    dsa_hosts_head_t   head;
    dsa_hosts_wire_t  *w;

    w = &h->wire[host];

    if (dsa_hosts_wire_head(w, &head, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_hosts_wire_is_aside(w, &head)
           ? w->aside(w->aside_data, w, &head, err)
           : dsa_hosts_lead_keep(h, host, &head, err);
}


/* Keeps a RESULT until the leader waits for its step. */

static int
dsa_hosts_lead_keep(dsa_backend_leader_t *h, uint32_t host,
    const dsa_hosts_head_t *head, dsa_err_t *err)
{
    uint32_t            number;
    dsa_hosts_wire_t   *w;
    dsa_hosts_early_t  *early;

    w = &h->wire[host];
    number = h->ended + h->n_early[host];

    if (head->type != DSA_HOSTS_RESULT || number == h->started
        || head->number != number
        || head->bytes > dsa_hosts_result_bytes(&h->limits))
    {
        return dsa_error(err, "%s has sent %s %u of %llu bytes while it moves "
                         "pages", w->name, dsa_hosts_type(head->type),
                         head->number, (unsigned long long) head->bytes);
    }

    early = &h->early[host][h->n_early[host]];
    early->bytes = head->bytes;
    early->text = malloc(head->bytes + 1);

    if (early->text == NULL) {
        return dsa_error(err, "out of memory");
    }

    h->n_early[host]++;

    return dsa_hosts_wire_read(w, early->text, early->bytes, err);
}


void
dsa_hosts_tier(dsa_backend_t *b, uint32_t number, dsa_tier_t *tier)
{
    dsa_hosts_tier_t      *t;
    dsa_backend_leader_t  *h = b->data;

    assert(number < DSA_TIERS && tier->submit != NULL);

    t = &h->tier[number];
    t->leader = h;
    t->number = number;
    t->local = *tier;

    tier->data = t;
    tier->on = dsa_hosts_tier_on;
    tier->submit = dsa_hosts_tier_submit;
    tier->cancel = dsa_hosts_tier_cancel;
    tier->collect = dsa_hosts_tier_collect;
    tier->stats = dsa_hosts_tier_stats;
    tier->close = dsa_hosts_tier_close;
}


static int
dsa_hosts_tier_on(void *data)
{
    dsa_hosts_tier_t  *t = data;

    return t->local.on(t->local.data);
}


static int
dsa_hosts_tier_submit(void *data, dsa_tier_op_t *op)
{
    int                    rc;
    dsa_err_t              err;
    dsa_hosts_tier_t      *t = data;
    dsa_backend_leader_t  *h = t->leader;

    if (op->kind == DSA_TIER_PROBE || op->host == 0) {
        return t->local.submit(t->local.data, op);
    }

    rc = dsa_hosts_lead_begin(h, "moving pages", &err);

    if (rc == DSA_OK) {
        rc = dsa_hosts_far_submit(h->far, t->number, op, &err);
        (void) dsa_hosts_lead_end(h, rc == DSA_ERROR ? rc : DSA_OK);
    }

    if (rc == DSA_ERROR) {
        dsa_hosts_tier_failed(h, &err);
        return DSA_AGAIN;
    }

    dsa_hosts_watch_listen(h->watch);

    return rc;
}


static void
dsa_hosts_tier_cancel(void *data, const void *owner)
{
    int                    rc;
    dsa_err_t              err;
    dsa_hosts_tier_t      *t = data;
    dsa_backend_leader_t  *h = t->leader;

    t->local.cancel(t->local.data, owner);

    if (dsa_hosts_far_pending(h->far) == 0) {
        return;
    }

    rc = dsa_hosts_lead_begin(h, "moving pages", &err);

    if (rc == DSA_OK) {
        rc = dsa_hosts_lead_end(h, dsa_hosts_far_cancel(h->far, t->number,
                                                        owner, &err));
    }

    if (rc != DSA_OK) {
        dsa_hosts_tier_failed(h, &err);
    }
}


static dsa_tier_op_t *
dsa_hosts_tier_collect(void *data)
{
    int                    rc;
    uint32_t               i;
    dsa_err_t              err;
    dsa_tier_op_t         *all, **last;
    dsa_hosts_tier_t      *t = data;
    dsa_backend_leader_t  *h = t->leader;

    all = t->local.collect(t->local.data);

    for (last = &all; *last != NULL; last = &(*last)->next) {
        /* void */
    }

    if (dsa_hosts_far_pending(h->far) != 0) {
        rc = dsa_hosts_lead_begin(h, "moving pages", &err);

        if (rc == DSA_OK) {
            for (i = 1; i < h->limits.hosts && rc == DSA_OK; i++) {
                rc = dsa_hosts_far_read(h->far, i, &err);
                rc = rc == DSA_OK ? dsa_hosts_lead_idle(h, i, &err) : rc;

                if (rc == DSA_OK) {
                    rc = dsa_hosts_lead_late(h, i, "TIER", dsa_hosts_far_since(
                                             h->far, i), &err);
                }
            }

            (void) dsa_hosts_lead_end(h, rc);
        }

        if (rc != DSA_OK) {
            dsa_hosts_tier_failed(h, &err);

        } else if (dsa_hosts_far_pending(h->far) != 0) {
            dsa_hosts_watch_listen(h->watch);
        }
    }

    *last = dsa_hosts_far_collect(h->far, t->number);

    return all;
}


/*
 * Without a step in flight no call receives other messages than those of far.
 * If one remained, the watch would wake this thread for it again and again.
 */

static int
dsa_hosts_lead_idle(const dsa_backend_leader_t *h, uint32_t host,
    dsa_err_t *err)
{
    dsa_hosts_head_t         head;
    const dsa_hosts_wire_t  *w;

    w = &h->wire[host];

    if (h->started - h->ended != h->n_early[host]
        || !dsa_hosts_wire_peek(w, &head) || head.type == DSA_HOSTS_FAULT
        || dsa_hosts_wire_is_aside(w, &head))
    {
        return DSA_OK;
    }

    return dsa_error(err, "%s has sent %s while no step is in flight", w->name,
                     dsa_hosts_type(head.type));
}


static void
dsa_hosts_tier_stats(void *data, dsa_tier_stats_t *stats)
{
    dsa_hosts_tier_t  *t = data;

    t->local.stats(t->local.data, stats);
}


static void
dsa_hosts_tier_close(void *data)
{
    dsa_hosts_tier_t  *t = data;

    t->local.close(t->local.data);
}


/* The functions of a tier return no error, so that check() reports it. */

static void
dsa_hosts_tier_failed(dsa_backend_leader_t *h, const dsa_err_t *err)
{
    if (h->err.text[0] == '\0') {
        h->err = *err;
    }

    h->conf->failed(h->conf->data);
}
