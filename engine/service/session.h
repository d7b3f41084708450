
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SESSION_H_INCLUDED_
#define _DSA_SESSION_H_INCLUDED_


#include "engine/link.h"
#include "engine/service/request.h"
#include "engine/service/service.h"
#include "engine/service/step_thread.h"
#include "engine/service/tokenize_pool.h"


/*
 * A session is the replica's end of the link to one worker: its segment and
 * its requests.  Each request has a slot from its SUBMIT or COUNT to its last
 * record.  Records wait in the request until the event ring has room, so a
 * worker that does not read its ring does not delay other workers.
 *
 * All functions are called by the I/O thread.
 */


/* The state that the sessions of a replica share. */

typedef struct {
    const dsa_service_t    *service;
    dsa_pool_t             *pool;
    dsa_step_t             *step;
    uint32_t                draining;   /* 1: rejects new requests */
    dsa_request_t           detached;   /* head of a ring of requests without a
                                           session to which other threads
                                           refer */
    dsa_events_t            events;     /* of the last collect */
    dsa_sched_stats_t       stats;
    uint64_t                completion_tokens;  /* counted for requests so
                                                   far */
} dsa_sessions_t;


/* Starts with no sessions; the caller keeps service, pool and step. */
void dsa_sessions_init(dsa_sessions_t *all, const dsa_service_t *service,
    dsa_pool_t *pool, dsa_step_t *step);

/* Frees all detached requests, after the other threads have ended. */
void dsa_sessions_free(dsa_sessions_t *all);

/*
 * Collects the results of the other threads: passes prompts to the step
 * thread, and adds tokens to their requests.  DSA_ERROR: a step failed.
 */
int dsa_sessions_collect(dsa_sessions_t *all);


/*
 * Makes the segment and sends the hello with this version of the link to the
 * connected socket fd, which the caller still owns.  NULL with err.
 */
dsa_session_t *dsa_session_create(dsa_sessions_t *all, int fd,
    uint32_t version, dsa_err_t *err);

/* Detaches and cancels all requests of the session, and frees it. */
void dsa_session_destroy(dsa_session_t *s);

/* Returns the wake fd of the replica. */
int dsa_session_wake_fd(const dsa_session_t *s);

/*
 * Reads requests from the ring, up to a limit.  DSA_AGAIN: there are more;
 * DSA_ERROR with err: the ring is corrupt, or the worker has violated the
 * protocol, and the session has to be destroyed.
 */
int dsa_session_read(dsa_session_t *s, dsa_err_t *err);

/* Ends requests that are cancelled or past their deadline. */
void dsa_session_poll(dsa_session_t *s, uint64_t now_ms);

/*
 * Writes the records that are ready to the event ring, and their lines to the
 * journal.  DSA_AGAIN: the ring is full; DSA_ERROR as dsa_session_read().
 */
int dsa_session_flush(dsa_session_t *s, dsa_err_t *err);

/* Lets the worker read the records, and wakes it if it sleeps. */
void dsa_session_commit(dsa_session_t *s);

/* Marks a request that has records to write at the next flush. */
void dsa_session_ready(dsa_request_t *r);

/* Returns the pid of the worker, for the log. */
pid_t dsa_session_pid(const dsa_session_t *s);

/*
 * Ends all requests with DSA_LINK_E_DRAINING, behind the records that are
 * ready.  The worker lets another replica continue them.
 */
void dsa_session_abort(dsa_session_t *s);

/* Updates the control block. */
void dsa_session_publish(dsa_session_t *s, uint64_t now_ms,
    uint64_t step_started_ms);

/* Returns 1 if the submit ring is empty; then the worker wakes the replica. */
int dsa_session_sleep(dsa_session_t *s);

/*
 * Return the number of requests without a last record, and whether the worker
 * has read all records, also those that are not committed yet because their
 * lines are not in the journal.
 */
uint32_t dsa_session_requests(const dsa_session_t *s);
int dsa_session_drained(const dsa_session_t *s);


#endif /* _DSA_SESSION_H_INCLUDED_ */
