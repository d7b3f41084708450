
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wake.h"
#include "engine/hosts/memory.h"


#define DSA_MEMORY_POLL_NS  20000       /* between two looks at a move */


/* A MOVE that has not ended. */

typedef struct {
    uint32_t            n;
    uint64_t            lost;           /* bits of the pages */
    uint64_t            call;           /* of the backend that moves the others;
                                           with none: the call before */
    dsa_hosts_move_t    move[DSA_HOSTS_MOVES];
} dsa_memory_call_t;


typedef struct {
    dsa_memory_call_t   call[DSA_MOVE_CALLS];
    uint32_t            first;
    uint32_t            n;
    uint64_t            ordered;        /* calls of the backend */
} dsa_memory_queue_t;


/* A TIER that has not ended. */

typedef struct dsa_memory_op_s  dsa_memory_op_t;

struct dsa_memory_op_s {
    dsa_tier_op_t       op;             /* the first member */
    dsa_digest_t        digest;
    uint32_t            id;
    uint32_t            tier;
    uint32_t            refused;        /* 1: the tier does not have it */
    uint64_t            received_us;
    dsa_memory_op_t    *next;
};


struct dsa_hosts_memory_s {
    dsa_hosts_memory_conf_t conf;
    dsa_host_t          host;
    dsa_digest_t       *tag[DSA_HOST_SLABS];    /* [pages]; zero: of none */
    dsa_tier_t          tier[DSA_TIERS];
    dsa_memory_queue_t *queue;          /* [ranks][DSA_MOVES] */
    uint32_t            moving;         /* calls in all queues */
    dsa_memory_op_t    *ops;
    uint32_t            n_ops;
    int                 wake;           /* eventfd of the tiers */
};


static int dsa_memory_open_parts(dsa_hosts_memory_t *m, dsa_err_t *err);
static void dsa_memory_woken(void *data);
static int dsa_memory_has(const dsa_hosts_memory_t *m, uint32_t slab,
    uint32_t index);
static dsa_digest_t *dsa_memory_tag(const dsa_hosts_memory_t *m,
    uint32_t slab, uint32_t index);
static int dsa_memory_order(dsa_hosts_memory_t *m, dsa_memory_queue_t *queue,
    const dsa_hosts_moves_t *head, dsa_err_t *err);
static int dsa_memory_moved(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    uint32_t rank, uint32_t way, dsa_err_t *err);
static int dsa_memory_add(dsa_hosts_memory_t *m, const dsa_hosts_op_t *from,
    dsa_err_t *err);
static void dsa_memory_cancel(dsa_hosts_memory_t *m, uint32_t id);
static int dsa_memory_ended(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    dsa_memory_op_t *op, dsa_err_t *err);
static int dsa_memory_refused(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    dsa_err_t *err);


dsa_hosts_memory_t *
dsa_hosts_memory_open(const dsa_hosts_memory_conf_t *conf, dsa_err_t *err)
{
    dsa_hosts_memory_t  *m;

    m = calloc(1, sizeof(dsa_hosts_memory_t));

    if (m == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    m->conf = *conf;
    m->wake = -1;

    if (conf->bytes != 0 && dsa_memory_open_parts(m, err) != DSA_OK) {
        dsa_hosts_memory_close(m);
        return NULL;
    }

    return m;
}


static int
dsa_memory_open_parts(dsa_hosts_memory_t *m, dsa_err_t *err)
{
    uint32_t        i;
    dsa_backend_t  *b;

    b = m->conf.backend;

    if (dsa_host_open_part(&m->host, m->conf.bytes, b->page_bytes,
                           m->conf.hosts, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    m->wake = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);
    m->queue = calloc((size_t) m->conf.ranks * DSA_MOVES,
                      sizeof(dsa_memory_queue_t));

    if (m->wake == -1 || m->queue == NULL) {
        return dsa_error(err, "out of memory or files");
    }

    for (i = 0; i < m->host.slabs; i++) {
        m->tag[i] = calloc(m->host.slab[i].pages, sizeof(dsa_digest_t));

        if (m->tag[i] == NULL) {
            return dsa_error(err, "out of memory");
        }

        if (b->pin(b, m->host.slab[i].memory, m->host.slab[i].bytes, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return m->conf.tiers == 0 ? DSA_OK
           : m->conf.open(m->conf.data, m->conf.tiers, b, dsa_memory_woken, m,
                          m->tier, err);
}


static void
dsa_memory_woken(void *data)
{
    dsa_hosts_memory_t  *m = data;

    dsa_wake(m->wake);
}


void
dsa_hosts_memory_end_tiers(dsa_hosts_memory_t *m)
{
    uint32_t  i;

    for (i = DSA_TIER_SLOWER; m != NULL && i < DSA_TIERS; i++) {
        if (m->tier[i].submit != NULL) {
            m->tier[i].close(m->tier[i].data);
            m->tier[i].submit = NULL;
        }
    }
}


void
dsa_hosts_memory_close(dsa_hosts_memory_t *m)
{
    uint32_t          i;
    dsa_memory_op_t  *op;

    if (m == NULL) {
        return;
    }

    dsa_hosts_memory_end_tiers(m);

    while (m->ops != NULL) {
        op = m->ops;
        m->ops = op->next;
        free(op);
    }

    for (i = 0; i < DSA_HOST_SLABS; i++) {
        free(m->tag[i]);
    }

    if (m->wake != -1) {
        (void) close(m->wake);
    }

    dsa_host_close(&m->host);
    free(m->queue);
    free(m);
}


const dsa_host_t *
dsa_hosts_memory_host(const dsa_hosts_memory_t *m)
{
    return &m->host;
}


static int
dsa_memory_has(const dsa_hosts_memory_t *m, uint32_t slab, uint32_t index)
{
    return slab < m->host.slabs && index < m->host.slab[slab].pages;
}


static dsa_digest_t *
dsa_memory_tag(const dsa_hosts_memory_t *m, uint32_t slab, uint32_t index)
{
    return &m->tag[slab][index];
}


int
dsa_hosts_memory_move(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    uint64_t bytes, dsa_err_t *err)
{
    uint32_t             i;
    dsa_hosts_moves_t    head;
    dsa_memory_call_t   *call;
    dsa_memory_queue_t  *queue;

    if (bytes < sizeof(head) + sizeof(dsa_hosts_move_t)
        || bytes > sizeof(head) + sizeof(call->move)
        || (bytes - sizeof(head)) % sizeof(dsa_hosts_move_t) != 0)
    {
        return dsa_error(err, "%s has sent MOVE of %llu bytes; expected 1 to "
                         "%d pages", w->name, (unsigned long long) bytes,
                         DSA_HOSTS_MOVES);
    }

    if (dsa_hosts_wire_read(w, &head, sizeof(head), err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (m->host.slabs == 0 || head.way >= DSA_MOVES
        || head.rank < m->conf.first_rank
        || head.rank - m->conf.first_rank >= m->conf.ranks)
    {
        return dsa_error(err, "%s has sent MOVE %u of rank %u, which is not of "
                         "this host, or there is no host memory", w->name,
                         head.way, head.rank);
    }

    queue = &m->queue[(head.rank - m->conf.first_rank) * DSA_MOVES + head.way];

    if (queue->n == DSA_MOVE_CALLS) {
        return dsa_error(err, "%s has sent more than %d MOVE without their "
                         "MOVED", w->name, DSA_MOVE_CALLS);
    }

    call = &queue->call[(queue->first + queue->n) % DSA_MOVE_CALLS];
    call->n = (uint32_t) ((bytes - sizeof(head)) / sizeof(dsa_hosts_move_t));
    call->lost = 0;

    if (dsa_hosts_wire_read(w, call->move, bytes - sizeof(head), err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < call->n; i++) {
        if (!dsa_memory_has(m, call->move[i].slab, call->move[i].index)
            || call->move[i].page >= m->conf.backend->pages)
        {
            return dsa_error(err, "%s has sent MOVE of page %u and host page "
                             "%u of slab %u, which does not exist", w->name,
                             call->move[i].page, call->move[i].index,
                             call->move[i].slab);
        }
    }

    return dsa_memory_order(m, queue, &head, err);
}


/* Orders the moves of a call, but for pages that are not there. */

static int
dsa_memory_order(dsa_hosts_memory_t *m, dsa_memory_queue_t *queue,
    const dsa_hosts_moves_t *head, dsa_err_t *err)
{
    uint32_t                 i, n;
    dsa_digest_t            *tag;
    dsa_page_move_t          move[DSA_HOSTS_MOVES];
    dsa_memory_call_t       *call;
    const dsa_hosts_move_t  *from;

    call = &queue->call[(queue->first + queue->n) % DSA_MOVE_CALLS];
    memset(move, 0, sizeof(move));

    for (i = 0, n = 0; i < call->n; i++) {
        from = &call->move[i];
        tag = dsa_memory_tag(m, from->slab, from->index);

        if (head->way == DSA_MOVE_OUT) {

            /* until it is complete, the page holds nothing */

            memset(tag, 0, sizeof(dsa_digest_t));

        } else if (memcmp(tag->byte, from->tag, DSA_MOVE_TAG) != 0) {
            call->lost |= 1ULL << i;
            continue;
        }

        move[n].page = from->page;
        move[n].host = dsa_host_page(&m->host, from->slab, from->index);
        n++;
    }

    if (n != 0) {
        if (m->conf.backend->move(m->conf.backend, (dsa_move_e) head->way,
                                  head->rank, move, n, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        queue->ordered++;
    }

    call->call = queue->ordered;
    queue->n++;
    m->moving++;

    return DSA_OK;
}


int
dsa_hosts_memory_tier(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    uint64_t bytes, dsa_err_t *err)
{
    dsa_hosts_op_t  op;

    if (bytes != sizeof(op)) {
        return dsa_error(err, "%s has sent TIER of %llu bytes; expected %zu",
                         w->name, (unsigned long long) bytes, sizeof(op));
    }

    if (dsa_hosts_wire_read(w, &op, sizeof(op), err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (op.kind == DSA_HOSTS_CANCEL) {
        dsa_memory_cancel(m, op.id);
        return DSA_OK;
    }

    if ((op.kind != DSA_TIER_READ && op.kind != DSA_TIER_WRITE)
        || op.tier < DSA_TIER_SLOWER || op.tier >= DSA_TIERS
        || m->tier[op.tier].submit == NULL
        || !dsa_memory_has(m, op.slab, op.index)
        || m->n_ops == DSA_HOSTS_OPS)
    {
        return dsa_error(err, "%s has sent TIER %u of tier %u and host page %u "
                         "of slab %u, which does not exist, or too many",
                         w->name, op.kind, op.tier, op.index, op.slab);
    }

    return dsa_memory_add(m, &op, err);
}


static int
dsa_memory_add(dsa_hosts_memory_t *m, const dsa_hosts_op_t *from,
    dsa_err_t *err)
{
    dsa_digest_t     *tag;
    dsa_memory_op_t  *op;

    op = calloc(1, sizeof(dsa_memory_op_t));

    if (op == NULL) {
        return dsa_error(err, "out of memory");
    }

    op->id = from->id;
    op->tier = from->tier;
    op->received_us = dsa_clock_us();
    memcpy(op->digest.byte, from->tag, DSA_MOVE_TAG);

    op->op.kind = (dsa_tier_kind_e) from->kind;
    op->op.digest = &op->digest;
    op->op.n = 1;
    op->op.page = dsa_host_page(&m->host, from->slab, from->index);
    op->op.slab = from->slab;
    op->op.index = from->index;
    op->op.owner = op;

    op->next = m->ops;
    m->ops = op;
    m->n_ops++;

    tag = dsa_memory_tag(m, from->slab, from->index);

    if (op->op.kind == DSA_TIER_READ) {
        memset(tag, 0, sizeof(dsa_digest_t));

    } else if (memcmp(tag, &op->digest, sizeof(dsa_digest_t)) != 0) {
        op->refused = 1;
        return DSA_OK;
    }

    if (m->tier[op->tier].submit(m->tier[op->tier].data, &op->op) != DSA_OK) {
        op->refused = 1;
    }

    return DSA_OK;
}


static void
dsa_memory_cancel(dsa_hosts_memory_t *m, uint32_t id)
{
    dsa_memory_op_t  *op;

    for (op = m->ops; op != NULL; op = op->next) {
        if (op->id == id) {
            m->tier[op->tier].cancel(m->tier[op->tier].data, op);
            return;
        }
    }
}


int
dsa_hosts_memory_advance(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    dsa_err_t *err)
{
    uint32_t        i, rank, way;
    dsa_tier_op_t  *op, *next;

    for (rank = 0; m->moving != 0 && rank < m->conf.ranks; rank++) {
        for (way = 0; way < DSA_MOVES; way++) {
            if (dsa_memory_moved(m, w, rank, way, err) != DSA_OK) {
                return DSA_ERROR;
            }
        }
    }

    if (m->n_ops == 0) {
        return DSA_OK;
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (m->tier[i].submit == NULL) {
            continue;
        }

        for (op = m->tier[i].collect(m->tier[i].data); op != NULL; op = next) {
            next = op->next;

            if (dsa_memory_ended(m, w, (dsa_memory_op_t *) op, err) != DSA_OK)
            {
                return DSA_ERROR;
            }
        }
    }

    return dsa_memory_refused(m, w, err);
}


/* Reports the calls of a rank that have ended. */

static int
dsa_memory_moved(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w, uint32_t rank,
    uint32_t way, dsa_err_t *err)
{
    uint32_t             i;
    uint64_t             ended;
    struct iovec         part;
    dsa_backend_t       *b;
    dsa_hosts_moved_t    moved;
    dsa_memory_call_t   *call;
    dsa_memory_queue_t  *queue;

    b = m->conf.backend;
    queue = &m->queue[rank * DSA_MOVES + way];

    if (queue->n == 0) {
        return DSA_OK;
    }

    rank += m->conf.first_rank;

    if (b->moved(b, (dsa_move_e) way, rank, 0, &ended, err) != DSA_OK) {
        return DSA_ERROR;
    }

    while (queue->n != 0 && queue->call[queue->first].call <= ended) {
        call = &queue->call[queue->first];

        for (i = 0; way == DSA_MOVE_OUT && i < call->n; i++) {
            memcpy(dsa_memory_tag(m, call->move[i].slab, call->move[i].index),
                   call->move[i].tag, DSA_MOVE_TAG);
        }

        moved.way = way;
        moved.rank = rank;
        moved.lost = call->lost;

        queue->first = (queue->first + 1) % DSA_MOVE_CALLS;
        queue->n--;
        m->moving--;

        part.iov_base = &moved;
        part.iov_len = sizeof(moved);

        if (dsa_hosts_wire_send(w, DSA_HOSTS_MOVED, 0, &part, 1, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Reports an operation that has ended, and frees it. */

static int
dsa_memory_ended(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w,
    dsa_memory_op_t *op, dsa_err_t *err)
{
    struct iovec            part;
    dsa_memory_op_t       **p;
    dsa_hosts_op_ended_t    ended;

    if (op->op.kind == DSA_TIER_READ && op->op.result == DSA_TIER_DONE) {
        *dsa_memory_tag(m, op->op.slab, op->op.index) = op->digest;
    }

    memset(&ended, 0, sizeof(ended));
    ended.id = op->id;
    ended.result = op->op.result;

    if (op->op.begin_us != 0) {
        ended.run_us = op->op.end_us - op->op.begin_us;
    }

    if (op->op.begin_us != 0 && op->op.end_us > op->received_us) {
        ended.took_us = op->op.end_us - op->received_us;
    }

    for (p = &m->ops; *p != op; p = &(*p)->next) {
        assert(*p != NULL);
    }

    *p = op->next;
    m->n_ops--;
    free(op);

    part.iov_base = &ended;
    part.iov_len = sizeof(ended);

    return dsa_hosts_wire_send(w, DSA_HOSTS_TIERED, 0, &part, 1, err);
}


/* Reports the operations that the tier did not accept. */

static int
dsa_memory_refused(dsa_hosts_memory_t *m, dsa_hosts_wire_t *w, dsa_err_t *err)
{
    dsa_memory_op_t  *op, *next;

    for (op = m->ops; op != NULL; op = next) {
        next = op->next;

        if (!op->refused) {
            continue;
        }

        op->op.result = DSA_TIER_FAILED;

        if (dsa_memory_ended(m, w, op, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


void
dsa_hosts_memory_wait(dsa_hosts_memory_t *m, const dsa_hosts_wire_t *w)
{
    eventfd_t        woken;
    struct pollfd    p[2] = { { w->fd, POLLIN, 0 }, { m->wake, POLLIN, 0 } };
    struct timespec  pause = { 0, DSA_MEMORY_POLL_NS };

    if (m->moving != 0) {
        (void) nanosleep(&pause, NULL);
        return;
    }

    (void) poll(p, 2, -1);

    /*
     * a tier also wakes without an operation that has ended; what has ended
     * since then is collected by the caller now
     */

    if (p[1].revents != 0) {
        (void) eventfd_read(m->wake, &woken);
    }
}
