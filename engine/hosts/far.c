
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/hosts/far.h"


/* Calls of move() of a rank and way. */

typedef struct {
    uint64_t            ordered;
    uint64_t            ended;
    uint64_t            since_ms[DSA_MOVE_CALLS];       /* of those in flight */
    uint32_t            n[DSA_MOVE_CALLS];      /* their pages */
    uint32_t           *lost[DSA_MOVE_CALLS][DSA_HOSTS_MOVES];
} dsa_far_queue_t;


/* An operation in flight; its id is its place. */

typedef struct {
    dsa_tier_op_t      *op;             /* NULL: the place is unused */
    uint32_t            tier;
    uint32_t            host;
    uint32_t            next;           /* unused place; DSA_HOSTS_OPS: none */
} dsa_far_op_t;


/*
 * A host's reads in flight.  Writes are not counted: they may wait for the
 * bandwidth that is configured.
 */

typedef struct {
    uint32_t            reads;
    uint64_t            since_ms;       /* of the last answer to one, or of the
                                           first one after there was none */
} dsa_far_host_t;


struct dsa_hosts_far_s {
    dsa_hosts_wire_t   *wire;
    uint32_t            hosts;
    uint32_t            ranks;          /* of each host */
    dsa_far_host_t     *host;           /* [hosts] */
    dsa_far_queue_t    *queue;          /* [hosts * ranks][DSA_MOVES] */
    dsa_far_op_t       *op;             /* [DSA_HOSTS_OPS] */
    uint32_t            unused;         /* the first place */
    uint32_t            pending;
    dsa_tier_op_t      *first[DSA_TIERS];       /* that have ended */
    dsa_tier_op_t     **last[DSA_TIERS];
};


static int dsa_far_aside(void *data, dsa_hosts_wire_t *w,
    const dsa_hosts_head_t *head, dsa_err_t *err);
static int dsa_far_moved(dsa_hosts_far_t *far, dsa_hosts_wire_t *w,
    dsa_err_t *err);
static int dsa_far_ended(dsa_hosts_far_t *far, dsa_hosts_wire_t *w,
    dsa_err_t *err);
static void dsa_far_times(dsa_tier_op_t *op,
    const dsa_hosts_op_ended_t *ended);


dsa_hosts_far_t *
dsa_hosts_far_create(dsa_hosts_wire_t *wire, uint32_t hosts, uint32_t ranks)
{
    uint32_t          i;
    dsa_hosts_far_t  *far;

    far = calloc(1, sizeof(dsa_hosts_far_t));

    if (far == NULL) {
        return NULL;
    }

    far->wire = wire;
    far->hosts = hosts;
    far->ranks = ranks;
    far->host = calloc(hosts, sizeof(dsa_far_host_t));
    far->queue = calloc((size_t) hosts * ranks * DSA_MOVES,
                        sizeof(dsa_far_queue_t));
    far->op = calloc(DSA_HOSTS_OPS, sizeof(dsa_far_op_t));

    if (far->host == NULL || far->queue == NULL || far->op == NULL) {
        dsa_hosts_far_destroy(far);
        return NULL;
    }

    for (i = 0; i < DSA_HOSTS_OPS; i++) {
        far->op[i].next = i + 1;
    }

    for (i = 0; i < DSA_TIERS; i++) {
        far->last[i] = &far->first[i];
    }

    for (i = 1; i < hosts; i++) {
        wire[i].aside = dsa_far_aside;
        wire[i].aside_data = far;
    }

    return far;
}


void
dsa_hosts_far_destroy(dsa_hosts_far_t *far)
{
    if (far != NULL) {
        free(far->host);
        free(far->queue);
        free(far->op);
        free(far);
    }
}


int
dsa_hosts_far_move(dsa_hosts_far_t *far, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    uint32_t            i, at;
    struct iovec        part[2];
    dsa_far_queue_t    *queue;
    dsa_hosts_moves_t   head;
    dsa_hosts_move_t    to[DSA_HOSTS_MOVES];

    assert(rank >= far->ranks && rank < far->hosts * far->ranks);

    if (n == 0 || n > DSA_HOSTS_MOVES) {
        return dsa_error(err, "a move has %u pages; expected 1 to %d", n,
                         DSA_HOSTS_MOVES);
    }

    queue = &far->queue[rank * DSA_MOVES + way];

    assert(queue->ordered - queue->ended < DSA_MOVE_CALLS);

    at = queue->ordered % DSA_MOVE_CALLS;
    queue->n[at] = n;
    queue->since_ms[at] = dsa_clock_ms();
    memset(to, 0, n * sizeof(dsa_hosts_move_t));

    for (i = 0; i < n; i++) {
        to[i].page = move[i].page;
        to[i].slab = move[i].slab;
        to[i].index = move[i].index;
        memcpy(to[i].tag, move[i].tag, DSA_MOVE_TAG);
        queue->lost[at][i] = move[i].lost;
    }

    head.way = way;
    head.rank = rank;

    part[0].iov_base = &head;
    part[0].iov_len = sizeof(head);
    part[1].iov_base = to;
    part[1].iov_len = n * sizeof(dsa_hosts_move_t);

    if (dsa_hosts_wire_send(&far->wire[rank / far->ranks], DSA_HOSTS_MOVE, 0,
                            part, 2, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    queue->ordered++;

    return DSA_OK;
}


uint64_t
dsa_hosts_far_moved(const dsa_hosts_far_t *far, dsa_move_e way, uint32_t rank,
    uint64_t *since_ms)
{
    const dsa_far_queue_t  *queue;

    queue = &far->queue[rank * DSA_MOVES + way];
    *since_ms = queue->ended != queue->ordered
                ? queue->since_ms[queue->ended % DSA_MOVE_CALLS] : 0;

    return queue->ended;
}


int
dsa_hosts_far_submit(dsa_hosts_far_t *far, uint32_t tier, dsa_tier_op_t *op,
    dsa_err_t *err)
{
    struct iovec     part;
    dsa_far_op_t    *place;
    dsa_far_host_t  *host;
    dsa_hosts_op_t   to;

    if (far->unused == DSA_HOSTS_OPS) {
        return DSA_AGAIN;
    }

    assert(op->host != 0 && op->host < far->hosts
           && op->kind != DSA_TIER_PROBE);

    place = &far->op[far->unused];
    memset(&to, 0, sizeof(to));

    to.id = far->unused;
    to.kind = op->kind;
    to.tier = tier;
    to.slab = op->slab;
    to.index = op->index;
    memcpy(to.tag, op->digest->byte, DSA_MOVE_TAG);

    part.iov_base = &to;
    part.iov_len = sizeof(to);

    if (dsa_hosts_wire_send(&far->wire[op->host], DSA_HOSTS_TIER, 0, &part, 1,
                            err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    far->unused = place->next;
    far->pending++;

    host = &far->host[op->host];

    if (op->kind == DSA_TIER_READ && host->reads++ == 0) {
        host->since_ms = dsa_clock_ms();
    }

    place->op = op;
    place->tier = tier;
    place->host = op->host;

    op->next = NULL;
    op->queued_us = dsa_clock_us();
    op->begin_us = 0;

    return DSA_OK;
}


int
dsa_hosts_far_cancel(dsa_hosts_far_t *far, uint32_t tier, const void *owner,
    dsa_err_t *err)
{
    uint32_t         i, left;
    struct iovec     part;
    dsa_hosts_op_t   to;

    memset(&to, 0, sizeof(to));
    to.kind = DSA_HOSTS_CANCEL;
    part.iov_base = &to;
    part.iov_len = sizeof(to);

    for (i = 0, left = far->pending; left != 0; i++) {
        if (far->op[i].op == NULL) {
            continue;
        }

        left--;

        if (far->op[i].tier != tier || far->op[i].op->owner != owner) {
            continue;
        }

        to.id = i;

        if (dsa_hosts_wire_send(&far->wire[far->op[i].host], DSA_HOSTS_TIER, 0,
                                &part, 1, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


dsa_tier_op_t *
dsa_hosts_far_collect(dsa_hosts_far_t *far, uint32_t tier)
{
    dsa_tier_op_t  *op;

    op = far->first[tier];
    far->first[tier] = NULL;
    far->last[tier] = &far->first[tier];

    return op;
}


uint32_t
dsa_hosts_far_pending(const dsa_hosts_far_t *far)
{
    return far->pending;
}


uint64_t
dsa_hosts_far_since(const dsa_hosts_far_t *far, uint32_t host)
{
    return far->host[host].reads != 0 ? far->host[host].since_ms : 0;
}


int
dsa_hosts_far_read(dsa_hosts_far_t *far, uint32_t host, dsa_err_t *err)
{
    dsa_hosts_head_t   head;
    dsa_hosts_wire_t  *w;

    w = &far->wire[host];

    while (dsa_hosts_wire_peek(w, &head)) {
        if (!dsa_hosts_wire_is_aside(w, &head)
            && head.type != DSA_HOSTS_FAULT)
        {
            break;
        }

        if (dsa_hosts_wire_head(w, &head, err) != DSA_OK
            || w->aside(w->aside_data, w, &head, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_far_aside(void *data, dsa_hosts_wire_t *w,
    const dsa_hosts_head_t *head, dsa_err_t *err)
{
    uint64_t          want;
    dsa_hosts_far_t  *far = data;

    want = head->type == DSA_HOSTS_MOVED ? sizeof(dsa_hosts_moved_t)
                                         : sizeof(dsa_hosts_op_ended_t);

    if (head->bytes != want) {
        return dsa_error(err, "%s has sent %s of %llu bytes; expected %llu",
                         w->name, dsa_hosts_type(head->type),
                         (unsigned long long) head->bytes,
                         (unsigned long long) want);
    }

    return head->type == DSA_HOSTS_MOVED ? dsa_far_moved(far, w, err)
                                         : dsa_far_ended(far, w, err);
}


static int
dsa_far_moved(dsa_hosts_far_t *far, dsa_hosts_wire_t *w, dsa_err_t *err)
{
    uint32_t            i, at;
    uint64_t            most;
    dsa_far_queue_t    *queue;
    dsa_hosts_moved_t   moved;

    if (dsa_hosts_wire_read(w, &moved, sizeof(moved), err) != DSA_OK) {
        return DSA_ERROR;
    }

    queue = NULL;

    if (moved.way < DSA_MOVES
        && moved.rank / far->ranks == (uint32_t) (w - far->wire))
    {
        queue = &far->queue[moved.rank * DSA_MOVES + moved.way];
    }

    if (queue == NULL || queue->ended == queue->ordered) {
        return dsa_error(err, "%s has sent MOVED %u of rank %u, without a "
                         "MOVE", w->name, moved.way, moved.rank);
    }

    at = queue->ended % DSA_MOVE_CALLS;
    most = moved.way == DSA_MOVE_IN ? UINT64_MAX >> (64 - queue->n[at]) : 0;

    if ((moved.lost & ~most) != 0) {
        return dsa_error(err, "%s has sent MOVED %u of rank %u with the lost "
                         "pages 0x%llx; expected some of 0x%llx", w->name,
                         moved.way, moved.rank,
                         (unsigned long long) moved.lost,
                         (unsigned long long) most);
    }

    queue->ended++;

    for (i = 0; i < queue->n[at]; i++) {
        if (queue->lost[at][i] != NULL && (moved.lost >> i & 1) != 0) {
            *queue->lost[at][i] = 1;
        }
    }

    return DSA_OK;
}


static int
dsa_far_ended(dsa_hosts_far_t *far, dsa_hosts_wire_t *w, dsa_err_t *err)
{
    dsa_far_op_t          *place;
    dsa_tier_op_t         *op;
    dsa_hosts_op_ended_t   ended;

    if (dsa_hosts_wire_read(w, &ended, sizeof(ended), err) != DSA_OK) {
        return DSA_ERROR;
    }

    place = ended.id < DSA_HOSTS_OPS ? &far->op[ended.id] : NULL;

    if (place == NULL || place->op == NULL
        || place->host != (uint32_t) (w - far->wire)
        || ended.result < DSA_TIER_DONE || ended.result > DSA_TIER_FAILED)
    {
        return dsa_error(err, "%s has sent TIERED %u with result %u; expected "
                         "an operation that it has, and a result from %d to "
                         "%d", w->name, ended.id, ended.result,
                         (int) DSA_TIER_DONE, (int) DSA_TIER_FAILED);
    }

    op = place->op;
    place->op = NULL;
    place->next = far->unused;
    far->unused = ended.id;
    far->pending--;

    if (op->kind == DSA_TIER_READ) {
        far->host[place->host].reads--;
        far->host[place->host].since_ms = dsa_clock_ms();
    }

    op->result = (dsa_tier_result_e) ended.result;
    dsa_far_times(op, &ended);

    op->next = NULL;
    *far->last[place->tier] = op;
    far->last[place->tier] = &op->next;

    return DSA_OK;
}


/*
 * The times of the follower, in the clock of this host.  The answer may have
 * arrived long before, while the leader was in a step.
 */

static void
dsa_far_times(dsa_tier_op_t *op, const dsa_hosts_op_ended_t *ended)
{
    uint64_t  run, took;

    took = dsa_clock_us() - op->queued_us;

    if (ended->took_us != 0 && ended->took_us < took) {
        took = ended->took_us;
    }

    op->end_us = op->queued_us + took;

    if (ended->run_us != 0 || op->result == DSA_TIER_DONE) {
        run = ended->run_us < took ? ended->run_us : took;
        op->begin_us = op->end_us - run;
    }
}
