
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/schedule/tiers_parts.h"


/*
 * Moves between ranks and host memory.  A queue has the moves of one rank and
 * way in their order: the first ones are in flight, in calls of the backend
 * with up to DSA_TIER_BATCH pages each, and the rest waits until fewer than
 * DSA_MOVE_CALLS calls are in flight.
 */


static void dsa_moves_push(dsa_tiers_t *t, dsa_move_queue_t *queue,
    dsa_page_op_t *op);
static int dsa_moves_order(dsa_tiers_t *t, dsa_move_queue_t *queue,
    dsa_move_e way, uint32_t rank, dsa_err_t *err);
static int dsa_moves_moved(dsa_tiers_t *t, dsa_move_queue_t *queue,
    dsa_move_e way, uint32_t rank, int wait, dsa_err_t *err);
static void dsa_moves_collect(dsa_tiers_t *t, dsa_move_queue_t *queue);
static void dsa_tiers_saved(dsa_tiers_t *t, dsa_page_op_t *op);
static void dsa_tiers_loaded(dsa_tiers_t *t, dsa_page_op_t *op);
static void dsa_tiers_load_lost(dsa_tiers_t *t, dsa_page_op_t *op);


dsa_page_op_t *
dsa_tiers_op(dsa_tiers_t *t, dsa_page_op_e kind, const dsa_digest_t *digest)
{
    dsa_page_op_t  *op;

    op = calloc(1, sizeof(dsa_page_op_t));

    if (op == NULL) {
        t->no_memory = 1;
        return NULL;
    }

    op->kind = kind;
    op->digest = *digest;
    op->next = t->ops;

    if (t->ops != NULL) {
        t->ops->prev = op;
    }

    t->ops = op;

    return op;
}


void
dsa_tiers_op_free(dsa_tiers_t *t, dsa_page_op_t *op)
{
    if (op->prev != NULL) {
        op->prev->next = op->next;

    } else {
        t->ops = op->next;
    }

    if (op->next != NULL) {
        op->next->prev = op->prev;
    }

    free(op);
}


int
dsa_tiers_save(dsa_tiers_t *t, uint32_t rank, uint32_t page,
    const dsa_digest_t *digest, int last)
{
    dsa_move_queue_t  *queue;
    dsa_page_op_t     *op;

    queue = &t->queue[rank][DSA_MOVE_OUT];

    if (queue->n >= DSA_TIER_SAVES) {
        return DSA_AGAIN;
    }

    op = dsa_tiers_op(t, DSA_OP_SAVE, digest);

    if (op == NULL) {
        return DSA_AGAIN;
    }

    if (dsa_pages_host_alloc(t->pages, t->slab[rank], digest,
                             DSA_COPY_WRITING, &op->at)
        != DSA_OK)
    {
        dsa_tiers_op_free(t, op);
        return DSA_AGAIN;
    }

    op->rank = rank;
    op->page = page;
    op->last = (uint32_t) last;

    dsa_moves_push(t, queue, op);

    return DSA_OK;
}


void
dsa_tiers_load(dsa_tiers_t *t, dsa_fetching_t *f, uint32_t index,
    dsa_host_at_t at, uint32_t rank, uint32_t page)
{
    dsa_page_op_t  *op;

    op = dsa_tiers_op(t, DSA_OP_LOAD, &f->digest[index]);

    if (op == NULL) {
        return;
    }

    op->at = at;
    op->rank = rank;
    op->page = page;
    op->fetch = f;
    op->index = index;
    op->indexed = (uint32_t) dsa_pages_loading(t->pages, rank, page,
                                               &op->digest);

    dsa_pages_retain(t->pages, rank, page);
    dsa_pages_host_retain(t->pages, at);

    f->left[index]++;
    f->f.moving++;

    dsa_moves_push(t, &t->queue[rank][DSA_MOVE_IN], op);
}


void
dsa_tiers_save_candidates(dsa_tiers_t *t)
{
    uint32_t             rank, page;
    const dsa_digest_t  *digest;

    for (rank = 0; rank < t->pages->ranks; rank++) {

        /*
         * Pages that are being saved will be the first free ones again.  A
         * page is returned only once, so that it must be possible to save it
         * then; otherwise its contents would be overwritten.
         */

        while (t->n_candidates[rank] < t->window
               && t->queue[rank][DSA_MOVE_OUT].n < DSA_TIER_SAVES
               && dsa_pages_host_room(t->pages, t->slab[rank]))
        {
            page = dsa_pages_candidate(t->pages, rank,
                                       t->window - t->n_candidates[rank],
                                       &digest);

            if (page == DSA_NO_PAGE) {
                break;
            }

            if (dsa_tiers_save(t, rank, page, digest, 1) != DSA_OK) {
                dsa_pages_release_candidate(t->pages, rank, page);
                break;
            }

            t->n_candidates[rank]++;
        }
    }
}


int
dsa_tiers_order(dsa_tiers_t *t, dsa_err_t *err)
{
    uint32_t  rank;

    for (rank = 0; rank < t->pages->ranks; rank++) {
        if (dsa_moves_order(t, &t->queue[rank][DSA_MOVE_OUT], DSA_MOVE_OUT,
                            rank, err)
            != DSA_OK
            || dsa_moves_order(t, &t->queue[rank][DSA_MOVE_IN], DSA_MOVE_IN,
                               rank, err)
               != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


int
dsa_tiers_in_flight(const dsa_tiers_t *t)
{
    uint32_t                 rank, way;
    const dsa_move_queue_t  *queue;

    for (rank = 0; rank < t->pages->ranks; rank++) {
        for (way = 0; way < DSA_MOVES; way++) {
            queue = &t->queue[rank][way];

            if (queue->ordered != queue->ended) {
                return 1;
            }
        }
    }

    return 0;
}


int
dsa_tiers_wait_saves(dsa_tiers_t *t, uint32_t rank, dsa_err_t *err)
{
    dsa_move_queue_t  *queue;

    queue = &t->queue[rank][DSA_MOVE_OUT];

    if (queue->n == 0) {
        return DSA_AGAIN;
    }

    if (dsa_moves_order(t, queue, DSA_MOVE_OUT, rank, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_moves_moved(t, queue, DSA_MOVE_OUT, rank, 1, err);
}


int
dsa_tiers_moved(dsa_tiers_t *t, int wait, dsa_err_t *err)
{
    uint32_t           rank, way;
    dsa_move_queue_t  *queue;

    for (rank = 0; rank < t->pages->ranks; rank++) {
        for (way = 0; way < DSA_MOVES; way++) {
            queue = &t->queue[rank][way];

            if (queue->ordered == queue->ended) {
                continue;
            }

            if (dsa_moves_moved(t, queue, (dsa_move_e) way, rank, wait, err)
                != DSA_OK)
            {
                return DSA_ERROR;
            }

            wait = 0;
        }
    }

    return DSA_OK;
}


static void
dsa_moves_push(dsa_tiers_t *t, dsa_move_queue_t *queue, dsa_page_op_t *op)
{
    if (queue->last != NULL) {
        queue->last->next_move = op;

    } else {
        queue->first = op;
    }

    queue->last = op;

    if (queue->unordered == NULL) {
        queue->unordered = op;
    }

    queue->n++;
    t->moving++;
}


static int
dsa_moves_order(dsa_tiers_t *t, dsa_move_queue_t *queue, dsa_move_e way,
    uint32_t rank, dsa_err_t *err)
{
    uint32_t          n;
    uint64_t          now;
    dsa_page_op_t    *op;
    dsa_page_move_t   move[DSA_TIER_BATCH];

    if (queue->unordered == NULL) {
        return DSA_OK;
    }

    now = dsa_tiers_now(t);

    while (queue->unordered != NULL
           && queue->ordered - queue->ended < DSA_MOVE_CALLS)
    {
        for (n = 0; n < DSA_TIER_BATCH && queue->unordered != NULL; n++) {
            op = queue->unordered;

            move[n].page = op->page;
            move[n].host = dsa_host_page(t->host, op->at.slab, op->at.page);
            move[n].slab = t->host->slab[op->at.slab].number;
            move[n].index = op->at.page;
            move[n].tag = op->digest.byte;
            move[n].lost = &op->lost;
            op->call = queue->ordered;
            op->begin_us = now;
            queue->unordered = op->next_move;
        }

        if (t->backend->move(t->backend, way, rank, move, n, err) != DSA_OK) {
            return DSA_ERROR;
        }

        /* a call that failed is not waited for */

        queue->ordered++;
    }

    return DSA_OK;
}


/* Collects the calls of a queue that have ended; with wait 1 waits for one. */

static int
dsa_moves_moved(dsa_tiers_t *t, dsa_move_queue_t *queue, dsa_move_e way,
    uint32_t rank, int wait, dsa_err_t *err)
{
    if (t->backend->moved(t->backend, way, rank, wait, &queue->ended, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    assert(queue->ended <= queue->ordered);

    dsa_moves_collect(t, queue);

    return DSA_OK;
}


/* The ops of the calls that have ended leave the queue. */

static void
dsa_moves_collect(dsa_tiers_t *t, dsa_move_queue_t *queue)
{
    dsa_page_op_t  *op;

    while (queue->first != queue->unordered
           && queue->first->call < queue->ended)
    {
        op = queue->first;
        queue->first = op->next_move;
        queue->n--;
        t->moving--;

        if (queue->first == NULL) {
            queue->last = NULL;
        }

        if (op->kind == DSA_OP_SAVE) {
            dsa_tiers_saved(t, op);

        } else {
            dsa_tiers_loaded(t, op);
        }
    }
}


static void
dsa_tiers_saved(dsa_tiers_t *t, dsa_page_op_t *op)
{
    dsa_tier_stats_t  *stats;

    stats = &t->stats[DSA_TIER_HOST];
    stats->write_pages++;
    stats->write_bytes += t->backend->page_bytes;
    stats->write_us += dsa_tiers_now(t) - op->begin_us;

    dsa_log_debug("page %02x%02x%02x%02x: saved from rank %u to host memory%s",
                  dsa_digest_log(&op->digest), op->rank,
                  op->last ? ", before it is overwritten" : "");

    dsa_pages_host_ready(t->pages, op->at, (int) op->last);
    dsa_pages_host_release(t->pages, op->at);

    if (op->last) {
        t->n_candidates[op->rank]--;
        dsa_pages_release_candidate(t->pages, op->rank, op->page);

    } else {
        dsa_pages_release(t->pages, op->rank, op->page);
    }

    dsa_tiers_op_free(t, op);
}


static void
dsa_tiers_loaded(dsa_tiers_t *t, dsa_page_op_t *op)
{
    dsa_tier_stats_t  *stats;

    if (op->lost) {
        dsa_tiers_load_lost(t, op);
        return;
    }

    stats = &t->stats[DSA_TIER_HOST];
    stats->read_pages++;
    stats->read_bytes += t->backend->page_bytes;
    stats->read_us += dsa_tiers_now(t) - op->begin_us;

    dsa_log_debug("request %u.%u: page %02x%02x%02x%02x: loaded from host "
                  "memory on rank %u", dsa_fetch_log(op->fetch, op->index),
                  op->rank);

    if (op->indexed) {
        dsa_pages_loaded(t->pages, op->rank, op->page);
    }

    dsa_pages_host_release(t->pages, op->at);
    dsa_pages_release(t->pages, op->rank, op->page);

    dsa_fetch_loaded(t, op->fetch, op->index);
    dsa_tiers_op_free(t, op);
}


/*
 * The host of the rank does not have the page: the prefix ends before it, and
 * its tokens are computed.
 */

static void
dsa_tiers_load_lost(dsa_tiers_t *t, dsa_page_op_t *op)
{
    dsa_log(DSA_LOG_WARN, "request %u.%u: page %02x%02x%02x%02x: the host of "
            "rank %u does not have it, so it is computed again",
            dsa_fetch_log(op->fetch, op->index), op->rank);

    t->stats[DSA_TIER_HOST].invalid++;

    if (op->indexed) {
        dsa_pages_unloaded(t->pages, op->rank, op->page);
    }

    dsa_pages_host_lost(t->pages, op->at);
    dsa_pages_host_release(t->pages, op->at);
    dsa_pages_release(t->pages, op->rank, op->page);

    dsa_fetch_lost(t, op->fetch, op->index);
    dsa_tiers_op_free(t, op);
}
