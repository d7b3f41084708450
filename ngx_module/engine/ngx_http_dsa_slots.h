
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SLOTS_H_INCLUDED_
#define _NGX_HTTP_DSA_SLOTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "engine/link.h"
#include "engine/link_event.h"

#include "ngx_http_dsa_record_check.h"


/*
 * Requests in the link, and slots.  A request at one engine uses a slot of the
 * session from its submission until the engine's last record for it.  The id of
 * a record contains the number and the epoch of a slot.  A record belongs to
 * the request of that slot if the epochs are equal.
 */

typedef struct ngx_http_dsa_link_request_s  ngx_http_dsa_link_request_t;
typedef struct ngx_http_dsa_session_s       ngx_http_dsa_session_t;


/*
 * An event that a record causes has the type of the record.  DONE, ERROR,
 * COUNTED and LOST end the request.
 */

typedef enum {
    NGX_HTTP_DSA_EV_LOST = 0,       /* no data: the engine is gone, or does
                                       not respond and has not accepted the
                                       request */

    /* dsa_link_accepted_t */
    NGX_HTTP_DSA_EV_ACCEPTED = DSA_LINK_ACCEPTED,

    /* dsa_link_tokens_t and what follows */
    NGX_HTTP_DSA_EV_TOKENS = DSA_LINK_TOKENS,

    /* dsa_link_done_t */
    NGX_HTTP_DSA_EV_DONE = DSA_LINK_DONE,

    /* dsa_link_failure_t and its text */
    NGX_HTTP_DSA_EV_ERROR = DSA_LINK_ERROR,

    /* dsa_link_counted_t; of a COUNT */
    NGX_HTTP_DSA_EV_COUNTED = DSA_LINK_COUNTED,

    /* dsa_str_t, whose bytes are rows */
    NGX_HTTP_DSA_EV_ROLLOUT = DSA_LINK_ROLLOUT,

    /* no data: all records that were in the ring have been reported */
    NGX_HTTP_DSA_EV_FLUSH = DSA_LINK_TYPES
} ngx_http_dsa_event_e;


/*
 * Reports an event.  data is a checked, private copy of the record's payload,
 * which is valid until the handler returns.  Only the handler of FLUSH may
 * write to the HTTP request or finalize it.  FLUSH is reported once after the
 * ring was read, and only to requests whose data is set.
 */

typedef void (*ngx_http_dsa_link_request_pt)(ngx_http_dsa_link_request_t *lr,
    ngx_http_dsa_event_e event, const void *data);


struct ngx_http_dsa_link_request_s {
    ngx_queue_t                   queue;    /* in slots->touched */
    ngx_http_dsa_session_t       *session;  /* NULL: it has no slot */
    uint64_t                      id;
    ngx_http_dsa_link_request_pt  handler;
    void                         *data;     /* NULL: no FLUSH */
    ngx_http_dsa_expect_t         expect;   /* of the engine's records */
    unsigned                      touched:1;    /* queue is in
                                                   slots->touched */
};


typedef struct {
    ngx_http_dsa_link_request_t  *request;  /* NULL: free or abandoned */
    uint32_t                      epoch;    /* of its last request */
    uint32_t                      next;     /* in the free list */
    unsigned                      used:1;   /* not in the free list */
} ngx_http_dsa_slot_t;


typedef struct {
    ngx_http_dsa_slot_t      *elts;         /* NULL: no session */
    uint32_t                  n;
    uint32_t                  free;         /* head of the free list */
    uint32_t                  used;         /* slots that are not in it */
    ngx_uint_t                active;       /* slots with a request */
    ngx_uint_t                unaccepted;   /* of them */
    ngx_queue_t               touched;      /* those that wait for FLUSH */
    unsigned                  stopping:1;   /* the engine has ended an accepted
                                               request because it stops */
} ngx_http_dsa_slots_t;


/* The reason of an engine that refuses or ends a request, as a clause. */
const char *ngx_http_dsa_slots_reason(uint32_t code);

/* Before the first session: an empty table. */
void ngx_http_dsa_slots_init(ngx_http_dsa_slots_t *slots);

/* A table of n free slots.  NGX_OK, or NGX_ERROR without memory. */
ngx_int_t ngx_http_dsa_slots_create(ngx_http_dsa_slots_t *slots, uint32_t n,
    ngx_log_t *log);

/* Returns the id that the next request will have, or 0 if no slot is free. */
uint64_t ngx_http_dsa_slots_next(ngx_http_dsa_slots_t *slots);

/* Assigns the next free slot to a request. */
void ngx_http_dsa_slots_attach(ngx_http_dsa_slots_t *slots,
    ngx_http_dsa_link_request_t *lr, ngx_http_dsa_session_t *s);

/*
 * Finds the request of a record.  NGX_DECLINED: it was abandoned, and the
 * record is skipped; the last one frees the slot.  NGX_ERROR: the engine has no
 * request with this id.
 */
ngx_int_t ngx_http_dsa_slots_find(ngx_http_dsa_slots_t *slots,
    const dsa_link_record_t *record, ngx_http_dsa_link_request_t **lr);

/*
 * Passes a checked record to its request.  payload is a private copy, of the
 * type that ngx_http_dsa_event_e has for the event.
 */
void ngx_http_dsa_slots_report(ngx_http_dsa_slots_t *slots,
    ngx_http_dsa_link_request_t *lr, uint32_t type, const void *payload);

/*
 * Cancels all requests that the engine has not accepted, and ends them with
 * LOST.  Their slots stay in use until the engine ends them, because the engine
 * may still write records with their ids.  Returns the number of these
 * requests.
 */
ngx_uint_t ngx_http_dsa_slots_abandon(ngx_http_dsa_slots_t *slots,
    dsa_link_t *link);

/*
 * Detaches a request from its slot, which stays in use until the engine ends
 * the request.
 */
void ngx_http_dsa_slots_detach(ngx_http_dsa_slots_t *slots,
    ngx_http_dsa_link_request_t *lr);

/* Ends all requests with LOST and frees the table. */
void ngx_http_dsa_slots_destroy(ngx_http_dsa_slots_t *slots);

/* Reports FLUSH to the requests that had an event since the last flush. */
void ngx_http_dsa_slots_flush(ngx_http_dsa_slots_t *slots);

/* Removes a request from the queue for FLUSH, if it is in it. */
void ngx_http_dsa_link_request_untouch(ngx_http_dsa_link_request_t *lr);


#endif /* _NGX_HTTP_DSA_SLOTS_H_INCLUDED_ */
