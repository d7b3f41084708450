
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SESSION_H_INCLUDED_
#define _NGX_HTTP_DSA_SESSION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "base/str.h"
#include "context/family.h"
#include "engine/link.h"
#include "engine/link_request.h"

#include "ngx_http_dsa_backlog.h"
#include "ngx_http_dsa_slots.h"
#include "ngx_http_dsa_records.h"


/*
 * A worker's end of the link to one replica: a socket, which is closed when
 * the replica ends, a mapped segment with two rings, and an eventfd on nginx's
 * event loop by which the replica wakes the worker.  A session that was lost
 * is opened again within half a second, without a limit on the number of
 * attempts.
 */

#define NGX_HTTP_DSA_STALL        5000      /* ms since alive_ms */


typedef enum {
    NGX_HTTP_DSA_DOWN = 0,
    NGX_HTTP_DSA_CONNECTING,                /* waits for the hello */
    NGX_HTTP_DSA_READY
} ngx_http_dsa_state_e;


/*
 * Called when a session became ready or was lost, and when the replica stopped
 * responding or responds again.
 */

typedef void (*ngx_http_dsa_session_pt)(ngx_http_dsa_session_t *s);

/*
 * Returns the family that the replica must have; NULL: any.  Called for each
 * hello.
 */

typedef const dsa_family_t *(*ngx_http_dsa_session_family_pt)(
    ngx_http_dsa_session_t *s);


/* A field of a SUBMIT or COUNT record. */

typedef struct {
    dsa_link_field_e          type;
    dsa_str_t                 value;
} ngx_http_dsa_field_t;


struct ngx_http_dsa_session_s {
    ngx_str_t                 name;         /* unix:PATH */
    ngx_uint_t                index;        /* in its pool */
    ngx_http_dsa_state_e      state;

    ngx_http_dsa_session_pt   changed;
    ngx_http_dsa_session_family_pt  expected;
    void                     *data;         /* for these two */

    ngx_connection_t         *socket;
    ngx_connection_t         *wake;         /* the worker's eventfd */
    ngx_fd_t                  wake_fd;      /* the replica's eventfd */

    void                     *segment;
    dsa_link_t                link;
    dsa_link_hello_t          hello;        /* magic is 0 before the first
                                               valid hello */
    const dsa_family_t       *family;       /* of that hello */

    ngx_http_dsa_slots_t      slots;
    ngx_http_dsa_records_t    records;
    ngx_http_dsa_backlog_t    backlog;

    ngx_event_t               timer;        /* by state: for the next attempt
                                               to connect, the hello, or the
                                               check of alive_ms */
    ngx_event_t               failure;      /* posted: closes the session */
    ngx_uint_t                attempts;     /* since it was last ready */
    const char               *fault;        /* logged last, static; NULL:
                                               none */
    unsigned                  stale:1;      /* alive_ms is too old, which was
                                               logged */
};


/*
 * Called in a worker: starts to connect.  The name, the index, changed,
 * expected and data are set.  changed is called for the first time when the
 * hello has arrived or the attempt has failed.
 */
void ngx_http_dsa_session_start(ngx_http_dsa_session_t *s, ngx_log_t *log);

/* Called when the worker exits: ends all requests with LOST. */
void ngx_http_dsa_session_stop(ngx_http_dsa_session_t *s);

/*
 * Submits a request to the replica; sets head->n_fields.  NGX_OK; NGX_BUSY: no
 * slot is free, or the ring is full; NGX_DECLINED: the request is too long for
 * the ring; NGX_ERROR: the session is broken and will be closed.
 */
ngx_int_t ngx_http_dsa_session_submit(ngx_http_dsa_session_t *s,
    ngx_http_dsa_link_request_t *lr, dsa_link_submit_t *head,
    const ngx_http_dsa_field_t *fields, uint32_t n);

/*
 * Requests the number of tokens of a prompt; nothing is computed.  digest and
 * weight: of the tenant, digest has 32 bytes; fields are TEXT and CONTROL.  The
 * request ends with COUNTED, ERROR or LOST.  Returns what
 * ngx_http_dsa_session_submit() does.
 */
ngx_int_t ngx_http_dsa_session_count(ngx_http_dsa_session_t *s,
    ngx_http_dsa_link_request_t *lr, const u_char *digest, uint32_t weight,
    const ngx_http_dsa_field_t *fields, uint32_t n);

/*
 * Cancels a request that has a session.  It keeps its slot until the engine has
 * ended it.
 */
void ngx_http_dsa_session_cancel(ngx_http_dsa_link_request_t *lr);

/*
 * Cancels a request that has a session, and detaches it from its slot.  No
 * event is reported afterwards, and the request may be freed.
 */
void ngx_http_dsa_session_abandon(ngx_http_dsa_link_request_t *lr);

/* Returns the age of alive_ms in milliseconds.  The session must be ready. */
ngx_msec_t ngx_http_dsa_session_age(ngx_http_dsa_session_t *s);

/* Returns 1 if the session is ready and the replica responds. */
ngx_uint_t ngx_http_dsa_session_up(ngx_http_dsa_session_t *s);


/*
 * Returns for how many milliseconds the step that the replica computes has
 * run; 0: it computes none.  The session must be ready.
 */
ngx_msec_t ngx_http_dsa_session_step(ngx_http_dsa_session_t *s);

/*
 * Returns 1 if the session is ready and the replica hangs: its heartbeat or its
 * step is older than step_timeout, after which its supervisor replaces it, by
 * NGX_HTTP_DSA_STALL.  So the supervisor does not run, or could not end it.
 */
ngx_uint_t ngx_http_dsa_session_hangs(ngx_http_dsa_session_t *s);


#endif /* _NGX_HTTP_DSA_SESSION_H_INCLUDED_ */
