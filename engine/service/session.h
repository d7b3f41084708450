
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SESSION_H_INCLUDED_
#define _DSA_SESSION_H_INCLUDED_


#include "engine/service/request.h"
#include "engine/service/service.h"
#include "engine/service/step_thread.h"
#include "engine/service/tokenize_pool.h"


/*
 * A session is one worker's end of the link: its segment and its requests.
 * Each request has a slot from its SUBMIT or COUNT to its last record.
 * Records wait in the request until the event ring has room, so a worker that
 * does not read delays no other worker.
 *
 * All functions are called by the I/O thread.
 */


/* What the sessions of a replica have in common. */

typedef struct {
    const dsa_service_t    *service;
    dsa_pool_t             *pool;
    dsa_step_t             *step;
    uint32_t                draining;   /* 1: rejects new requests */
    dsa_request_t           detached;   /* head of a ring: requests without a
                                           session that other threads still
                                           refer to */
    dsa_events_t            events;     /* of the last collect */
    dsa_sched_stats_t       stats;
    uint64_t                completion_tokens;  /* that were counted for a
                                                   request */
} dsa_sessions_t;


void dsa_sessions_init(dsa_sessions_t *all, const dsa_service_t *service,
    dsa_pool_t *pool, dsa_step_t *step);

/* Frees all detached requests; the other threads have ended. */
void dsa_sessions_free(dsa_sessions_t *all);

/*
 * Passes on what the other threads have ready: prompts to the step thread,
 * tokens to their requests.  DSA_ERROR: a step failed.
 */
int dsa_sessions_collect(dsa_sessions_t *all);


/*
 * Makes the segment and sends the hello with this version of the link to the
 * connected socket fd, which stays the caller's.  NULL with err.
 */
dsa_session_t *dsa_session_create(dsa_sessions_t *all, int fd,
    uint32_t version, dsa_err_t *err);

/* Detaches and cancels all requests of the session, and frees it. */
void dsa_session_destroy(dsa_session_t *s);

/* The wake fd of the replica. */
int dsa_session_wake_fd(const dsa_session_t *s);

/*
 * Reads requests from the ring, a bounded number at a time: DSA_AGAIN if there
 * are more.  DSA_ERROR, with err: the ring is corrupt, or the worker violates
 * the protocol, and the session has to be destroyed.
 */
int dsa_session_read(dsa_session_t *s, dsa_err_t *err);

/* Ends requests that are cancelled or past their deadline. */
void dsa_session_poll(dsa_session_t *s, uint64_t now_ms);

/*
 * Writes the records that are ready to the event ring, and wakes the worker if
 * it sleeps.  DSA_AGAIN: the ring is full; DSA_ERROR as dsa_session_read().
 */
int dsa_session_flush(dsa_session_t *s, dsa_err_t *err);

/* The request has something to write, which the next flush writes. */
void dsa_session_ready(dsa_request_t *r);

/* The worker's process, for the log. */
pid_t dsa_session_pid(const dsa_session_t *s);

/* Ends all requests with DSA_LINK_E_DRAINING at once. */
void dsa_session_abort(dsa_session_t *s);

/* Updates the control block. */
void dsa_session_publish(dsa_session_t *s, uint64_t now_ms,
    uint64_t step_started_ms);

/* 1: the submit ring has nothing to read now, the worker wakes the replica. */
int dsa_session_sleep(dsa_session_t *s);

/* Requests without a last record, and whether the worker has read all. */
uint32_t dsa_session_requests(const dsa_session_t *s);
int dsa_session_drained(const dsa_session_t *s);


#endif /* _DSA_SESSION_H_INCLUDED_ */
