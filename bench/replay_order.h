
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_REPLAY_ORDER_H_INCLUDED_
#define _DSA_BENCH_REPLAY_ORDER_H_INCLUDED_


#include "bench/replay_trace.h"


/*
 * When requests of a trace are due, and which is first.
 *
 * With a speed, a request is due at its time of arrival, divided by the speed,
 * but not before the one before it in its conversation has ended.  A pause of
 * the trace replaces the time of arrival: it begins when that one has ended,
 * and is divided by the speed as well.  Without a speed all times are ignored.
 *
 * With a number of agents, so many conversations are active at any time, also
 * in their pauses, and times of arrival are ignored.  An agent whose
 * conversation has ended begins the next one of the trace, after the pause of
 * its first request.  A request without a conversation is one of its own.
 */

typedef struct {
    uint64_t            due;            /* ns */
    uint32_t            request;        /* in the trace */
} replay_due_t;


typedef struct {
    const trace_t      *trace;          /* the caller's */
    double              speed;          /* 0: times are ignored */
    uint32_t            agents;         /* 0: conversations begin when they
                                           arrive */
    uint64_t            start;          /* ns */
    replay_due_t       *heap;           /* [n], the first one is the next */
    uint32_t            n;
    uint32_t            begin;          /* agents: first requests before it in
                                           the trace belong to an agent */
    int                 exhausted;      /* 1: an agent has found no
                                           conversation */
} replay_order_t;


/*
 * Makes the order of a trace that begins now.  agents is at most the number of
 * first requests in the trace.  -1 when out of memory.  replay_order_free() is
 * called in any case.
 */
int replay_order_init(replay_order_t *o, const trace_t *trace, double speed,
    uint32_t agents, uint64_t now);
void replay_order_free(replay_order_t *o);

/* The next request; NULL: none until another one ends. */
const replay_due_t *replay_order_next(const replay_order_t *o);

/* Removes the next request, which there is. */
void replay_order_begin(replay_order_t *o);

/* A request has ended: its conversation goes on, or its agent has another. */
void replay_order_end(replay_order_t *o, uint32_t request, uint64_t now);


#endif /* _DSA_BENCH_REPLAY_ORDER_H_INCLUDED_ */
