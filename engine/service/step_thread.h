
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_STEP_THREAD_H_INCLUDED_
#define _DSA_STEP_THREAD_H_INCLUDED_


#include "engine/backend.h"
#include "engine/link_event.h"
#include "engine/service/events.h"
#include "engine/service/vitals.h"


/*
 * The step thread owns the scheduler and the backend: only its files call them.
 * Between two steps it executes commands of the I/O thread, and after each step
 * it hands over the events of the step as one batch.
 *
 * Bounds: a request is in the command queue at most once, and commands need no
 * memory.  At most DSA_STEP_BATCHES batches wait for the I/O thread, each with
 * an event for every token of a step and the outcome of every command; then
 * the step thread waits.  The I/O thread never waits for the step thread.
 */

#define DSA_STEP_BATCHES    8


typedef struct dsa_step_s  dsa_step_t;


/* Opens the backend in the step thread and calls dsa_step_attach(). */
typedef int (*dsa_step_open_pt)(void *data, dsa_step_t *st, dsa_err_t *err);


/*
 * wake is an eventfd, which is written when there is something to collect.
 * NULL with err.
 */
dsa_step_t *dsa_step_create(int wake, dsa_vitals_t *vitals, dsa_err_t *err);

/*
 * Gives the step thread a backend, which it closes, and makes the scheduler.
 * On DSA_ERROR, with err, the backend is closed, too.
 */
int dsa_step_attach(dsa_step_t *st, dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, dsa_err_t *err);

/*
 * Starts the thread, which calls open first: some libraries bind a device to
 * the thread that opens it.  Returns when open has; DSA_ERROR with err.
 */
int dsa_step_start(dsa_step_t *st, dsa_step_open_pt open, void *data,
    dsa_err_t *err);

/*
 * Waits for the step that runs and ends the thread.  Requests that are left
 * get no event any more.
 */
void dsa_step_stop(dsa_step_t *st);
void dsa_step_destroy(dsa_step_t *st);              /* NULL is allowed */

/* Of the scheduler and the backend; constant after dsa_step_attach(). */
uint32_t dsa_step_context(const dsa_step_t *st);
uint32_t dsa_step_ranks(const dsa_step_t *st);
uint32_t dsa_step_pages(const dsa_step_t *st);      /* of each rank */
uint64_t dsa_step_page_bytes(const dsa_step_t *st); /* 0: not known */
const char *dsa_step_identity(const dsa_step_t *st);
uint32_t dsa_step_rollouts(const dsa_step_t *st);   /* see dsa_backend_t */
const dsa_model_config_t *dsa_step_config(const dsa_step_t *st);

/* Hands over a request until its last event is collected. */
void dsa_step_add(dsa_step_t *st, dsa_request_t *r);

/*
 * The rollout callback of a request with rows, of which owner is one.  The
 * scheduler calls it in the step thread.
 */
void dsa_step_rollout(void *owner, const dsa_sched_rollout_t *rollout);

/* The request gets its last event after the step that runs, if any. */
void dsa_step_cancel(dsa_step_t *st, dsa_request_t *r,
    dsa_link_finish_e finish);

/*
 * Something has changed that the scheduler has to look at: a page was read or
 * written.  data is a dsa_step_t; may be called from any thread.
 */
void dsa_step_nudge(void *data);

/*
 * Orders that the weights are replaced by those that the model's directory has
 * now, between two steps; see dsa_sched_reload().  The log has the result.
 * Orders that come before it begins are one.
 */
void dsa_step_reload(dsa_step_t *st);

/* Pages that wait to be written to the cache, or are being written. */
uint32_t dsa_step_unwritten(dsa_step_t *st);

/* After the last event of r: removes a command that came too late. */
void dsa_step_forget(dsa_step_t *st, dsa_request_t *r);

/*
 * Swaps the waiting events into *events, whose old events are dropped.
 * DSA_ERROR: a step failed, which is logged, and no event will come after
 * these.  The process should then end by _exit(): dsa_step_stop() and
 * dsa_step_destroy() would close the backend, which waits for its GPUs.
 */
int dsa_step_collect(dsa_step_t *st, dsa_events_t *events,
    dsa_sched_stats_t *stats);

/*
 * What the thread does in a round, for tests without the thread: the waiting
 * commands and one step.
 */
int dsa_step_round(dsa_step_t *st);
int dsa_step_audit(const dsa_step_t *st, dsa_err_t *err);


#endif /* _DSA_STEP_THREAD_H_INCLUDED_ */
