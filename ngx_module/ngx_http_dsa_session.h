
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _NGX_HTTP_DSA_SESSION_H_INCLUDED_
#define _NGX_HTTP_DSA_SESSION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "base/str.h"
#include "engine/link.h"

#include "ngx_http_dsa_call.h"
#include "ngx_http_dsa_records.h"


/*
 * A worker's end of the link to one replica: a socket, of which the end means
 * that the replica is gone, a mapped segment with two rings, and an eventfd on
 * nginx's event loop by which the replica wakes the worker.  A session that is
 * lost is opened again, within half a second and without a limit of attempts.
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


/* A field of a request, as the link has it. */

typedef struct {
    dsa_link_field_e          type;
    dsa_str_t                 value;
} ngx_http_dsa_field_t;


struct ngx_http_dsa_session_s {
    ngx_str_t                 name;         /* unix:PATH */
    ngx_uint_t                index;        /* in its pool */
    ngx_http_dsa_state_e      state;

    ngx_http_dsa_session_pt   changed;
    void                     *data;         /* of the owner of changed */

    ngx_connection_t         *socket;
    ngx_connection_t         *wake;         /* the worker's eventfd */
    ngx_fd_t                  wake_fd;      /* the replica's eventfd */

    void                     *segment;
    dsa_link_t                link;
    dsa_link_hello_t          hello;        /* magic 0: none was valid yet */

    ngx_http_dsa_slots_t      slots;
    ngx_http_dsa_records_t    records;

    ngx_event_t               timer;        /* by state: reconnect, hello, or
                                               whether alive_ms is stale */
    ngx_event_t               failure;      /* posted: closes the session */
    ngx_uint_t                attempts;     /* since it was last ready */
    const char               *fault;        /* that was logged last; static,
                                               NULL: none */
    unsigned                  stale:1;      /* alive_ms is, and it was logged */
};


/*
 * In a worker.  The name, the index, changed and data are set.  The result of
 * the attempt is reported by changed, for the first time when a hello came or
 * the attempt failed.
 */
void ngx_http_dsa_session_start(ngx_http_dsa_session_t *s, ngx_log_t *log);

/* At the worker's end; calls get LOST. */
void ngx_http_dsa_session_stop(ngx_http_dsa_session_t *s);

/*
 * Sends a request to the replica; head->n_fields is set here.  NGX_OK;
 * NGX_BUSY: there is no slot or no room now; NGX_DECLINED: the request is
 * longer than this link can carry; NGX_ERROR: the session is broken and will
 * be closed.
 */
ngx_int_t ngx_http_dsa_session_submit(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call, dsa_link_submit_t *head,
    const ngx_http_dsa_field_t *fields, uint32_t n);

/*
 * Has the replica count the tokens of a prompt, without computing it: fields
 * are TEXT and CONTROL.  The call ends with COUNTED, ERROR or LOST.  The
 * results are those of ngx_http_dsa_session_submit().
 */
ngx_int_t ngx_http_dsa_session_count(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call, const ngx_http_dsa_field_t *fields,
    uint32_t n);

/*
 * Cancels a call that has a session.  The call keeps its slot until the engine
 * has ended it.
 */
void ngx_http_dsa_session_cancel(ngx_http_dsa_call_t *call);

/*
 * Cancels a call that has a session, and detaches the call from its slot.  No
 * event comes afterwards, and the call may be freed.
 */
void ngx_http_dsa_session_abandon(ngx_http_dsa_call_t *call);

/* Milliseconds since the replica wrote alive_ms; the session is ready. */
ngx_msec_t ngx_http_dsa_session_age(ngx_http_dsa_session_t *s);

/* 1: there is a session, and the replica responds. */
ngx_uint_t ngx_http_dsa_session_up(ngx_http_dsa_session_t *s);


#endif /* _NGX_HTTP_DSA_SESSION_H_INCLUDED_ */
