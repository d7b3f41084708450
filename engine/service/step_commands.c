
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Commands of the I/O thread: a list of requests to add and to cancel.
 */


#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/service/step_parts.h"


static void dsa_step_command(dsa_step_t *st, dsa_request_t *r,
    uint32_t command);
static void dsa_step_unlink(dsa_step_t *st, dsa_request_t *r);
static void dsa_step_do(dsa_step_t *st, dsa_request_t *r, uint32_t command,
    dsa_link_finish_e cancel);
static void dsa_step_enter(dsa_step_t *st, dsa_request_t *r);


void
dsa_step_add(dsa_step_t *st, dsa_request_t *r)
{
    r->state = DSA_REQUEST_STEP;
    r->stepper = st;
    r->logprobs = r->sched.sampling.logprobs;

    (void) pthread_mutex_lock(&st->mutex);
    dsa_step_command(st, r, DSA_COMMAND_ADD);
    (void) pthread_mutex_unlock(&st->mutex);
}


void
dsa_step_cancel(dsa_step_t *st, dsa_request_t *r, dsa_link_finish_e finish)
{
    (void) pthread_mutex_lock(&st->mutex);
    r->cancel = finish;
    dsa_step_command(st, r, DSA_COMMAND_CANCEL);
    (void) pthread_mutex_unlock(&st->mutex);
}


void
dsa_step_forget(dsa_step_t *st, dsa_request_t *r)
{
    (void) pthread_mutex_lock(&st->mutex);

    if (r->command != 0) {
        dsa_step_unlink(st, r);
    }

    (void) pthread_mutex_unlock(&st->mutex);
}


/* Under the mutex. */

static void
dsa_step_command(dsa_step_t *st, dsa_request_t *r, uint32_t command)
{
    if (r->command == 0) {
        r->prev_command = st->last;
        r->next_command = NULL;

        if (st->last != NULL) {
            st->last->next_command = r;

        } else {
            st->first = r;
        }

        st->last = r;
    }

    r->command |= command;

    if (st->idle) {
        st->idle = 0;
        (void) pthread_cond_signal(&st->work);
    }
}


/* Under the mutex. */

static void
dsa_step_unlink(dsa_step_t *st, dsa_request_t *r)
{
    if (r->prev_command != NULL) {
        r->prev_command->next_command = r->next_command;

    } else {
        st->first = r->next_command;
    }

    if (r->next_command != NULL) {
        r->next_command->prev_command = r->prev_command;

    } else {
        st->last = r->prev_command;
    }

    r->command = 0;
}


void
dsa_step_execute(dsa_step_t *st)
{
    uint32_t            command, finished;
    dsa_request_t      *r;
    dsa_link_finish_e   cancel;

    for ( ;; ) {
        (void) pthread_mutex_lock(&st->mutex);

        r = st->first;

        if (r == NULL) {
            (void) pthread_mutex_unlock(&st->mutex);
            return;
        }

        command = r->command;
        cancel = (dsa_link_finish_e) r->cancel;

        /*
         * The I/O thread may free r as soon as it has its last event and r is
         * not queued, so r is not read after this block if finished is set.
         */

        finished = r->finished;
        dsa_step_unlink(st, r);

        (void) pthread_mutex_unlock(&st->mutex);

        if (!finished) {
            dsa_step_do(st, r, command, cancel);
        }
    }
}


static void
dsa_step_do(dsa_step_t *st, dsa_request_t *r, uint32_t command,
    dsa_link_finish_e cancel)
{
    if (command == DSA_COMMAND_ADD) {
        dsa_step_enter(st, r);
        return;
    }

    if (r->seq != NULL) {
        dsa_sched_cancel(st->sched, r->seq, (dsa_finish_e) cancel);
        return;
    }

    /* it never was in the scheduler */

    memset(&r->usage, 0, sizeof(dsa_link_done_t));
    r->usage.finish = cancel;
    dsa_step_event(r, DSA_EVENT_DONE, NULL);
}


static void
dsa_step_enter(dsa_step_t *st, dsa_request_t *r)
{
    dsa_err_t  err;

    r->seq = dsa_sched_add(st->sched, &r->sched, &err);

    if (r->seq != NULL) {
        r->sched.tokens = NULL;
        r->cached = dsa_sched_cached(st->sched, r->seq);
        dsa_step_event(r, DSA_EVENT_ADDED, NULL);
        return;
    }

    if (errno == EDQUOT) {
        r->reject = DSA_LINK_E_TENANT;
        r->reject_reason = "too many requests of this tenant wait already";

    } else if (errno == EAGAIN) {
        r->reject = DSA_LINK_E_OVERLOADED;
        r->reject_reason = "too many requests wait already";

    } else {
        r->reject = DSA_LINK_E_INTERNAL;
        r->reject_reason = "the scheduler cannot take the request";
        dsa_log(DSA_LOG_ERR, "a request is rejected: %s", err.text);
    }

    dsa_step_event(r, DSA_EVENT_REJECTED, NULL);
}
