
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bench/replay_order.h"


static uint32_t replay_order_first(replay_order_t *o);
static uint64_t replay_order_due(const replay_order_t *o, uint32_t request,
    uint64_t ended);
static uint64_t replay_order_ns(const replay_order_t *o, double ms);
static void replay_order_add(replay_order_t *o, uint32_t request,
    uint64_t ended);
static int replay_order_before(const replay_due_t *a, const replay_due_t *b);


int
replay_order_init(replay_order_t *o, const trace_t *trace, double speed,
    uint32_t agents, uint64_t now)
{
    uint32_t  i, n;

    memset(o, 0, sizeof(replay_order_t));
    o->trace = trace;
    o->speed = speed;
    o->agents = agents;
    o->start = now;
    o->heap = calloc(trace->n, sizeof(replay_due_t));

    if (o->heap == NULL) {
        return -1;
    }

    assert(agents <= trace->n_first);
    n = agents != 0 ? agents : trace->n_first;

    for (i = 0; i < n; i++) {
        replay_order_add(o, replay_order_first(o), now);
    }

    return 0;
}


void
replay_order_free(replay_order_t *o)
{
    free(o->heap);
    o->heap = NULL;
}


/* The first request of the next conversation of the trace, or TRACE_NONE. */

static uint32_t
replay_order_first(replay_order_t *o)
{
    while (o->begin < o->trace->n) {
        if (o->trace->request[o->begin++].previous == TRACE_NONE) {
            return o->begin - 1;
        }
    }

    return TRACE_NONE;
}


/* ended: the one before it in its conversation, or of its agent. */

static uint64_t
replay_order_due(const replay_order_t *o, uint32_t request, uint64_t ended)
{
    uint64_t                arrival;
    const trace_request_t  *r;

    r = &o->trace->request[request];

    if (o->agents != 0
        || (o->speed != 0 && r->previous != TRACE_NONE && r->pause_ms >= 0))
    {
        return ended + replay_order_ns(o, r->pause_ms);
    }

    /* without a speed all are due at once, in the order of the trace */

    if (o->speed == 0) {
        return o->start;
    }

    arrival = o->start + replay_order_ns(o, r->arrival_ms);

    return arrival > ended ? arrival : ended;
}


static uint64_t
replay_order_ns(const replay_order_t *o, double ms)
{
    return o->speed != 0 && ms > 0 ? (uint64_t) (ms * 1e6 / o->speed) : 0;
}


static void
replay_order_add(replay_order_t *o, uint32_t request, uint64_t ended)
{
    uint32_t      i, parent;
    replay_due_t  new;

    new.request = request;
    new.due = replay_order_due(o, request, ended);

    for (i = o->n++; i != 0; i = parent) {
        parent = (i - 1) / 2;

        if (!replay_order_before(&new, &o->heap[parent])) {
            break;
        }

        o->heap[i] = o->heap[parent];
    }

    o->heap[i] = new;
}


static int
replay_order_before(const replay_due_t *a, const replay_due_t *b)
{
    return a->due < b->due || (a->due == b->due && a->request < b->request);
}


const replay_due_t *
replay_order_next(const replay_order_t *o)
{
    return o->n != 0 ? &o->heap[0] : NULL;
}


void
replay_order_begin(replay_order_t *o)
{
    uint32_t      i, child;
    replay_due_t  last;

    last = o->heap[--o->n];

    for (i = 0; 2 * i + 1 < o->n; i = child) {
        child = 2 * i + 1;

        if (child + 1 < o->n
            && replay_order_before(&o->heap[child + 1], &o->heap[child]))
        {
            child++;
        }

        if (!replay_order_before(&o->heap[child], &last)) {
            break;
        }

        o->heap[i] = o->heap[child];
    }

    o->heap[i] = last;
}


void
replay_order_end(replay_order_t *o, uint32_t request, uint64_t now)
{
    uint32_t  next;

    next = o->trace->request[request].next;

    if (next == TRACE_NONE && o->agents != 0) {
        next = replay_order_first(o);
        o->exhausted |= next == TRACE_NONE;
    }

    if (next != TRACE_NONE) {
        replay_order_add(o, next, now);
    }
}
