
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SESSION_H_INCLUDED_
#define _NGX_HTTP_DSA_SESSION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "base/str.h"
#include "engine/link.h"


/*
 * A worker's end of the link to each replica.  A session is a socket that
 * tells whether the replica lives, a mapped segment with two rings, and a
 * doorbell on nginx's event loop.
 */

#define NGX_HTTP_DSA_MAX_ENGINES  64        /* a pool: bits of a mask */
#define NGX_HTTP_DSA_STALL        5000      /* ms since alive_ms */


typedef struct ngx_http_dsa_ctx_s      ngx_http_dsa_ctx_t;
typedef struct ngx_http_dsa_pool_s     ngx_http_dsa_pool_t;
typedef struct ngx_http_dsa_call_s     ngx_http_dsa_call_t;
typedef struct ngx_http_dsa_session_s  ngx_http_dsa_session_t;


struct ngx_http_dsa_pool_s {
    ngx_str_t                 name;
    ngx_array_t               sessions;     /* ngx_http_dsa_session_t */
    ngx_queue_t               waiting;      /* requests, for a first hello */
    ngx_uint_t                next;         /* whose turn it is in a tie */
    u_char                   *file;         /* where it was first named */
    ngx_uint_t                line;
};


typedef enum {
    NGX_HTTP_DSA_EV_ACCEPTED = 1,   /* dsa_link_accepted_t */
    NGX_HTTP_DSA_EV_TOKENS,         /* dsa_link_tokens_t and what follows */
    NGX_HTTP_DSA_EV_DONE,           /* dsa_link_done_t; the slot is free */
    NGX_HTTP_DSA_EV_ERROR,          /* dsa_link_failure_t; the same */
    NGX_HTTP_DSA_EV_LOST,           /* the session died; the same */
    NGX_HTTP_DSA_EV_FLUSH           /* all that this wake brought is told */
} ngx_http_dsa_event_e;


/*
 * Tells what the replica sent.  data is a checked, private copy of the
 * record's payload, valid during the call.  Only FLUSH may touch the HTTP
 * request; it comes once, after the ring was read, to calls that have data.
 * A call whose owner left (data is NULL) still gets everything but FLUSH.
 */

typedef void (*ngx_http_dsa_call_pt)(ngx_http_dsa_call_t *call,
    ngx_http_dsa_event_e event, const void *data);


struct ngx_http_dsa_call_s {
    ngx_queue_t               queue;        /* of a session: touched */
    ngx_http_dsa_session_t   *session;      /* NULL: no slot is held */
    uint64_t                  id;
    ngx_http_dsa_call_pt      handler;
    void                     *data;
    unsigned                  touched:1;
    unsigned                  accepted:1;
};


/* A field of a request, as the link has it. */

typedef struct {
    dsa_link_field_e          type;
    dsa_str_t                 value;
} ngx_http_dsa_field_t;


typedef struct {
    ngx_http_dsa_call_t      *call;
    uint32_t                  epoch;        /* of its last request */
    uint32_t                  next;         /* of the free list */
} ngx_http_dsa_slot_t;


typedef enum {
    NGX_HTTP_DSA_DOWN = 0,
    NGX_HTTP_DSA_CONNECTING,                /* waits for the hello */
    NGX_HTTP_DSA_READY
} ngx_http_dsa_state_e;


struct ngx_http_dsa_session_s {
    ngx_http_dsa_pool_t      *pool;
    ngx_str_t                 name;         /* unix:PATH */
    ngx_uint_t                index;        /* in the pool */
    ngx_http_dsa_state_e      state;

    ngx_connection_t         *socket;
    ngx_connection_t         *bell;         /* the worker's eventfd */
    ngx_fd_t                  ring;         /* the replica's */

    void                     *segment;
    dsa_link_t                link;
    dsa_link_hello_t          hello;

    ngx_http_dsa_slot_t      *slots;
    uint32_t                  free;
    ngx_uint_t                active;       /* slots taken */
    ngx_uint_t                unaccepted;   /* of them */
    ngx_queue_t               touched;

    u_char                   *scratch;
    size_t                    scratch_size;

    ngx_event_t               timer;        /* reconnect, or hello's */
    ngx_event_t               failure;      /* posted: close at leisure */
    ngx_uint_t                attempts;     /* since it was last up */
    ngx_uint_t                told;         /* the fault told last */
};


/* In a worker: opens all sessions of the pool; closes them at its end. */
ngx_int_t ngx_http_dsa_pool_start(ngx_http_dsa_pool_t *pool,
    ngx_cycle_t *cycle);
void ngx_http_dsa_pool_stop(ngx_http_dsa_pool_t *pool);

/*
 * The engine with the least to do that is up, not draining and not in the
 * mask tried, serves model (NULL: any) and has a context of at least context
 * tokens; NULL if there is none.
 */
ngx_http_dsa_session_t *ngx_http_dsa_pool_pick(ngx_http_dsa_pool_t *pool,
    uint64_t tried, ngx_str_t *model, uint64_t context);

/*
 * Tokens of the largest context among the engines that serve or served model
 * (NULL: any); 0 if there is none.
 */
uint32_t ngx_http_dsa_pool_context(ngx_http_dsa_pool_t *pool,
    ngx_str_t *model);

/* A session that is or was up, for names; NULL: none was met so far. */
ngx_http_dsa_session_t *ngx_http_dsa_pool_any(ngx_http_dsa_pool_t *pool);

/* 1: no session is up, but one waits for its hello. */
ngx_uint_t ngx_http_dsa_pool_opening(ngx_http_dsa_pool_t *pool);

/*
 * Sends a request to the replica; head->n_fields is set here.  NGX_OK;
 * NGX_BUSY: there is no slot or no room now; NGX_DECLINED: the request is
 * longer than this link can carry; NGX_ERROR: the session is broken and will
 * be closed.
 */
ngx_int_t ngx_http_dsa_session_submit(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call, dsa_link_submit_t *head,
    const ngx_http_dsa_field_t *fields, uint32_t n);

/* The owner leaves.  Tells the replica; the slot stays until it answers. */
void ngx_http_dsa_session_cancel(ngx_http_dsa_call_t *call);

/*
 * Copies text of a peer, an engine or a client, for a log, a header or a
 * label: control characters become spaces, and bytes that are not UTF-8 become
 * question marks.  Returns the length, at most len and at most size.  Whole
 * characters are left out if they do not fit.  out may be text.
 */
size_t ngx_http_dsa_printable(u_char *out, size_t size, const u_char *text,
    size_t len);

/* Milliseconds since the replica last wrote alive_ms; it has to be ready. */
ngx_msec_t ngx_http_dsa_session_age(ngx_http_dsa_session_t *s);

/* Milliseconds of CLOCK_MONOTONIC, as the link counts. */
uint64_t ngx_http_dsa_monotonic(void);


#endif /* _NGX_HTTP_DSA_SESSION_H_INCLUDED_ */
