
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_EVENTS_H_INCLUDED_
#define _DSA_EVENTS_H_INCLUDED_


#include "base/buf.h"
#include "engine/service/request.h"


/* The events that the step thread reports to the I/O thread, in batches. */

typedef enum {
    DSA_EVENT_ADDED = 1,            /* the request waits in the scheduler */
    DSA_EVENT_TOKEN,
    DSA_EVENT_ROWS,                 /* of a rollout, after their TOKEN */
    DSA_EVENT_DONE,                 /* this and the next two are the last */
    DSA_EVENT_REJECTED,             /* event of a request */
    DSA_EVENT_DROPPED               /* removed from the queue for a request of
                                       another tenant */
} dsa_event_e;


typedef struct {
    dsa_request_t      *request;
    uint32_t            kind;
    uint32_t            token;      /* with ROWS: 1 if they are of a sample */
    uint32_t            at;         /* TOKEN: of events.sample, with logprobs;
                                       ROWS: offset in events.rows */
    uint32_t            size;       /* of the rows */
} dsa_event_t;


typedef struct {
    dsa_event_t        *event;
    dsa_sample_t       *sample;     /* only of requests with logprobs */
    dsa_buf_t           rows;
    uint32_t            n;
    uint32_t            size;
    uint32_t            n_samples;
    uint32_t            samples_size;
} dsa_events_t;


/*
 * Adds an event, whose other fields are 0, and appends sample to the samples
 * unless it is NULL.  NULL: out of memory.
 */
dsa_event_t *dsa_events_add(dsa_events_t *e, dsa_request_t *r,
    dsa_event_e kind, const dsa_sample_t *sample);

/* Appends the events of more.  DSA_ERROR: out of memory. */
int dsa_events_append(dsa_events_t *e, const dsa_events_t *more);

/* Removes all events and keeps the memory. */
void dsa_events_clear(dsa_events_t *e);

/* Exchanges the events of a and b. */
void dsa_events_swap(dsa_events_t *a, dsa_events_t *b);

/* Frees the memory; the list is empty afterwards. */
void dsa_events_free(dsa_events_t *e);


#endif /* _DSA_EVENTS_H_INCLUDED_ */
