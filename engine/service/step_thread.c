
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/service/rollout.h"
#include "engine/service/step_thread.h"


struct dsa_step_s {
    dsa_vitals_t           *vitals;
    dsa_backend_t          *backend;
    dsa_sched_t            *sched;
    dsa_events_t            out;        /* of the step thread */
    uint32_t                no_memory;  /* an event is missing in out */
    int                     wake;

    pthread_t               thread;
    dsa_step_open_pt        open;
    void                   *open_data;
    dsa_err_t              *open_err;
    int                     open_rc;
    uint32_t                running;    /* the thread was started */

    pthread_mutex_t         mutex;      /* for the rest */
    pthread_cond_t          work;       /* a command, or stop */
    pthread_cond_t          room;       /* for a batch; or open is done */
    dsa_request_t          *first;      /* commands */
    dsa_request_t          *last;
    dsa_events_t            waiting;
    uint32_t                batches;    /* in waiting */
    uint32_t                opened;
    uint32_t                idle;       /* the thread waits for work */
    uint32_t                nudged;     /* dsa_step_nudge() was called */
    uint32_t                failed;
    uint32_t                stop;
    dsa_sched_stats_t       stats;
};


static void *dsa_step_thread(void *data);
static void dsa_step_close(dsa_step_t *st);
static int dsa_step_wait(dsa_step_t *st);
static void dsa_step_command(dsa_step_t *st, dsa_request_t *r,
    uint32_t command);
static void dsa_step_unlink(dsa_step_t *st, dsa_request_t *r);
static void dsa_step_execute(dsa_step_t *st);
static void dsa_step_do(dsa_step_t *st, dsa_request_t *r, uint32_t command,
    dsa_link_finish_e cancel);
static void dsa_step_enter(dsa_step_t *st, dsa_request_t *r);
static int dsa_step_publish(dsa_step_t *st);
static int dsa_step_tokens(void *owner, const dsa_sample_t *samples,
    uint32_t n);
static void dsa_step_rows(dsa_step_t *st, dsa_request_t *r, size_t at,
    uint32_t sampled);
static void dsa_step_log_masks(const dsa_request_t *r);
static void dsa_step_done(void *owner, const dsa_sched_usage_t *usage);
static void dsa_step_dropped(void *owner);
static void dsa_step_event(dsa_request_t *r, dsa_event_e kind,
    const dsa_sample_t *sample);


/* The link and the scheduler name the same ends. */

_Static_assert((int) DSA_FINISH_STOP == (int) DSA_LINK_FINISH_STOP
               && (int) DSA_FINISH_LENGTH == (int) DSA_LINK_FINISH_LENGTH
               && (int) DSA_FINISH_CANCELLED == (int) DSA_LINK_FINISH_CANCELLED
               && (int) DSA_FINISH_DEADLINE == (int) DSA_LINK_FINISH_DEADLINE,
               "dsa_finish_e and dsa_link_finish_e agree");

_Static_assert(DSA_SAMPLE_MAX_TOP == DSA_LINK_MAX_TOP,
               "alternatives of a sample and of a record agree");


static const dsa_sched_handler_t  dsa_step_handler = {
    dsa_step_tokens,
    dsa_step_done,
    dsa_step_dropped
};


dsa_step_t *
dsa_step_create(int wake, dsa_vitals_t *vitals, dsa_err_t *err)
{
    dsa_step_t          *st;
    pthread_condattr_t   attr;

    st = calloc(1, sizeof(dsa_step_t));

    if (st == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    st->wake = wake;
    st->vitals = vitals;

    (void) pthread_mutex_init(&st->mutex, NULL);
    (void) pthread_condattr_init(&attr);
    (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&st->work, &attr);
    (void) pthread_condattr_destroy(&attr);
    (void) pthread_cond_init(&st->room, NULL);

    return st;
}


int
dsa_step_attach(dsa_step_t *st, dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, dsa_err_t *err)
{
    st->backend = backend;
    st->sched = dsa_sched_create(backend, conf, &dsa_step_handler, err);

    if (st->sched == NULL) {
        dsa_step_close(st);
        return DSA_ERROR;
    }

    dsa_sched_stats(st->sched, &st->stats);

    return DSA_OK;
}


int
dsa_step_start(dsa_step_t *st, dsa_step_open_pt open, void *data,
    dsa_err_t *err)
{
    int  rc;

    st->open = open;
    st->open_data = data;
    st->open_err = err;

    rc = pthread_create(&st->thread, NULL, dsa_step_thread, st);

    if (rc != 0) {
        return dsa_error(err, "cannot start the step thread: %s",
                         strerror(rc));
    }

    st->running = 1;

    (void) pthread_mutex_lock(&st->mutex);

    while (!st->opened) {
        (void) pthread_cond_wait(&st->room, &st->mutex);
    }

    (void) pthread_mutex_unlock(&st->mutex);

    return st->open_rc;
}


void
dsa_step_stop(dsa_step_t *st)
{
    if (!st->running) {
        return;
    }

    (void) pthread_mutex_lock(&st->mutex);

    st->stop = 1;
    (void) pthread_cond_signal(&st->work);
    (void) pthread_cond_signal(&st->room);

    (void) pthread_mutex_unlock(&st->mutex);

    (void) pthread_join(st->thread, NULL);
    st->running = 0;
}


void
dsa_step_destroy(dsa_step_t *st)
{
    if (st == NULL) {
        return;
    }

    assert(!st->running);

    dsa_step_close(st);
    dsa_events_free(&st->out);
    dsa_events_free(&st->waiting);

    (void) pthread_cond_destroy(&st->room);
    (void) pthread_cond_destroy(&st->work);
    (void) pthread_mutex_destroy(&st->mutex);

    free(st);
}


static void
dsa_step_close(dsa_step_t *st)
{
    dsa_sched_destroy(st->sched);
    st->sched = NULL;

    if (st->backend != NULL) {
        st->backend->close(st->backend);
        st->backend = NULL;
    }
}


uint32_t
dsa_step_context(const dsa_step_t *st)
{
    return dsa_sched_context(st->sched);
}


uint32_t
dsa_step_ranks(const dsa_step_t *st)
{
    return st->backend->ranks;
}


uint32_t
dsa_step_pages(const dsa_step_t *st)
{
    return st->backend->pages;
}


uint64_t
dsa_step_page_bytes(const dsa_step_t *st)
{
    return st->backend->page_bytes;
}


const char *
dsa_step_fingerprint(const dsa_step_t *st)
{
    return st->backend->fingerprint;
}


uint32_t
dsa_step_rollouts(const dsa_step_t *st)
{
    return st->backend->rollouts;
}


const dsa_model_config_t *
dsa_step_config(const dsa_step_t *st)
{
    return &st->backend->config;
}


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
dsa_step_nudge(void *data)
{
    dsa_step_t  *st;

    st = data;

    (void) pthread_mutex_lock(&st->mutex);

    st->nudged = 1;

    if (st->idle) {
        st->idle = 0;
        (void) pthread_cond_signal(&st->work);
    }

    (void) pthread_mutex_unlock(&st->mutex);
}


uint32_t
dsa_step_unwritten(dsa_step_t *st)
{
    uint32_t  n;

    (void) pthread_mutex_lock(&st->mutex);
    n = st->stats.unwritten;
    (void) pthread_mutex_unlock(&st->mutex);

    return n;
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


int
dsa_step_collect(dsa_step_t *st, dsa_events_t *events,
    dsa_sched_stats_t *stats)
{
    int  failed;

    dsa_events_clear(events);

    (void) pthread_mutex_lock(&st->mutex);

    dsa_events_swap(&st->waiting, events);

    *stats = st->stats;
    failed = st->failed;

    if (st->batches == DSA_STEP_BATCHES) {
        (void) pthread_cond_signal(&st->room);
    }

    st->batches = 0;

    (void) pthread_mutex_unlock(&st->mutex);

    return failed ? DSA_ERROR : DSA_OK;
}


static void *
dsa_step_thread(void *data)
{
    dsa_step_t  *st;

    st = data;

    st->open_rc = st->open(st->open_data, st, st->open_err);

    (void) pthread_mutex_lock(&st->mutex);
    st->opened = 1;
    (void) pthread_cond_signal(&st->room);
    (void) pthread_mutex_unlock(&st->mutex);

    if (st->open_rc != DSA_OK) {
        return NULL;
    }

    while (dsa_step_wait(st)) {
        if (dsa_step_turn(st) != DSA_OK) {
            (void) pthread_mutex_lock(&st->mutex);
            st->failed = 1;
            (void) pthread_mutex_unlock(&st->mutex);

            /* closing the backend here could hang: see dsa_step_collect() */

            dsa_wake(st->wake);
            return NULL;
        }
    }

    dsa_step_close(st);

    return NULL;
}


/* Until there is something to do.  0: the thread has to end. */

static int
dsa_step_wait(dsa_step_t *st)
{
    int              rc, busy, stop;
    uint64_t         due_us;
    struct timespec  due;

    busy = dsa_sched_busy(st->sched);
    due_us = dsa_sched_due_us(st->sched);
    due.tv_sec = (time_t) (due_us / 1000000);
    due.tv_nsec = (long) (due_us % 1000000) * 1000;
    rc = 0;

    (void) pthread_mutex_lock(&st->mutex);

    while (!busy && st->first == NULL && !st->stop && !st->nudged
           && rc != ETIMEDOUT)
    {
        st->idle = 1;

        if (due_us != UINT64_MAX) {
            rc = pthread_cond_timedwait(&st->work, &st->mutex, &due);

        } else {
            (void) pthread_cond_wait(&st->work, &st->mutex);
        }
    }

    st->idle = 0;
    st->nudged = 0;
    stop = st->stop;

    (void) pthread_mutex_unlock(&st->mutex);

    return !stop;
}


int
dsa_step_turn(dsa_step_t *st)
{
    int        rc;
    dsa_err_t  err;

    dsa_step_execute(st);

    if (dsa_sched_poll(st->sched, &err) != DSA_OK) {
        dsa_log(DSA_LOG_ERR, "moving pages failed: %s", err.text);
        return DSA_ERROR;
    }

    if (dsa_step_publish(st) != DSA_OK) {
        dsa_log(DSA_LOG_ERR, "a step failed: out of memory");
        return DSA_ERROR;
    }

    if (!dsa_sched_busy(st->sched)) {
        return DSA_OK;
    }

    atomic_store(&st->vitals->step_started_ms, dsa_clock_ms());
    rc = dsa_sched_step(st->sched, &err);
    atomic_store(&st->vitals->step_started_ms, 0);

    if (rc != DSA_OK) {
        dsa_log(DSA_LOG_ERR, "a step failed: %s", err.text);
        return DSA_ERROR;
    }

    if (dsa_step_publish(st) != DSA_OK) {
        dsa_log(DSA_LOG_ERR, "a step failed: out of memory");
        return DSA_ERROR;
    }

    return DSA_OK;
}


int
dsa_step_audit(const dsa_step_t *st, dsa_err_t *err)
{
    return dsa_sched_audit(st->sched, err);
}


/* All commands that wait. */

static void
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

    if (errno == EAGAIN) {
        r->reject = DSA_LINK_E_OVERLOADED;
        r->reject_reason = "too many requests wait already";

    } else {
        r->reject = DSA_LINK_E_INTERNAL;
        r->reject_reason = "the scheduler cannot take the request";
        dsa_log(DSA_LOG_ERR, "a request is rejected: %s", err.text);
    }

    dsa_step_event(r, DSA_EVENT_REJECTED, NULL);
}


/* Hands over the events since the last batch. */

static int
dsa_step_publish(dsa_step_t *st)
{
    int  rc, wake;

    if (st->no_memory) {
        return DSA_ERROR;
    }

    rc = DSA_OK;
    wake = 0;

    (void) pthread_mutex_lock(&st->mutex);

    while (st->batches == DSA_STEP_BATCHES && !st->stop) {
        (void) pthread_cond_wait(&st->room, &st->mutex);
    }

    dsa_sched_stats(st->sched, &st->stats);

    if (st->out.n == 0) {
        (void) pthread_mutex_unlock(&st->mutex);
        return DSA_OK;
    }

    wake = st->batches++ == 0;

    if (st->waiting.n == 0) {
        dsa_events_swap(&st->waiting, &st->out);

    } else {
        rc = dsa_events_append(&st->waiting, &st->out);
    }

    (void) pthread_mutex_unlock(&st->mutex);

    dsa_events_clear(&st->out);

    if (wake) {
        dsa_wake(st->wake);
    }

    return rc;
}


/* The handler of the scheduler. */

static int
dsa_step_tokens(void *owner, const dsa_sample_t *samples, uint32_t n)
{
    uint32_t        i;
    dsa_request_t  *r;

    r = owner;

    for (i = 0; i < n; i++) {
        if ((r->constraint != NULL
             && dsa_constraint_accept(r->constraint, samples[i].token)
                != DSA_OK)
            || dsa_budget_accept(&r->budget, samples[i].token) != DSA_OK)
        {
            /* the masks would be those of another answer from now on */

            dsa_log(DSA_LOG_ERR, "request %u.%u: token %u was sampled, which "
                    "its mask does not permit", (uint32_t) r->id,
                    (uint32_t) (r->id >> 32), samples[i].token);

            return DSA_FINISH_CANCELLED;
        }

        dsa_step_event(r, DSA_EVENT_TOKEN, &samples[i]);
    }

    return 0;
}


void
dsa_step_rollout(void *owner, const dsa_sched_rollout_t *rollout)
{
    size_t          at;
    uint32_t        i;
    dsa_buf_t      *rows;
    dsa_step_t     *st;
    dsa_request_t  *r;

    r = owner;
    st = r->stepper;
    rows = &st->out.rows;
    at = rows->len;

    if (rollout->experts != NULL) {
        r->routed = dsa_rollout_step(rows, r->routed, rollout,
                                     &st->backend->config);
        dsa_step_rows(st, r, at, 0);
    }

    for (i = 0; i < rollout->n_samples; i++) {
        at = rows->len;

        dsa_rollout_sample(rows, rollout->position + i,
                           rollout->samples[i].token, &rollout->draw[i],
                           rollout->kept != NULL
                           ? rollout->kept + (size_t) i * rollout->words
                           : NULL, rollout->words);
        dsa_step_rows(st, r, at, 1);
    }
}


/* An event for the rows from offset at on. */

static void
dsa_step_rows(dsa_step_t *st, dsa_request_t *r, size_t at, uint32_t sampled)
{
    dsa_event_t  *event;

    if (st->out.rows.len == at && !st->out.rows.failed) {
        return;
    }

    event = dsa_events_add(&st->out, r, DSA_EVENT_ROWS, NULL);

    if (event == NULL || st->out.rows.failed) {
        st->no_memory = 1;
        return;
    }

    event->token = sampled;
    event->at = (uint32_t) at;
    event->size = (uint32_t) (st->out.rows.len - at);
}


static void
dsa_step_log_masks(const dsa_request_t *r)
{
    dsa_constraint_stats_t  s;

    if (r->constraint == NULL) {
        return;
    }

    s = dsa_constraint_stats(r->constraint);

    dsa_log_debug("request %u.%u: the masks of %u steps took %llu us, at most "
                  "%u us at once, and %u were made in another thread",
                  (uint32_t) r->id, (uint32_t) (r->id >> 32), s.n,
                  (unsigned long long) s.total_us, s.most_us, s.cold);
}


static void
dsa_step_done(void *owner, const dsa_sched_usage_t *usage)
{
    dsa_request_t  *r;

    r = owner;
    r->seq = NULL;

    memset(&r->usage, 0, sizeof(dsa_link_done_t));

    dsa_step_log_masks(r);

    r->usage.finish = usage->finish;
    r->usage.prompt_tokens = usage->prompt_tokens;
    r->usage.cached_tokens = usage->cached_tokens;
    r->usage.completion_tokens = usage->completion_tokens - r->sched.n_resume;
    r->usage.queue_ms = usage->queue_ms;
    r->usage.prefill_ms = usage->prefill_ms;
    r->usage.decode_ms = usage->decode_ms;
    r->usage.host_tokens = usage->host_tokens;
    r->usage.redis_tokens = usage->redis_tokens;

    /* a worker closes the session of a DONE that contradicts itself */

    assert(usage->cached_tokens <= usage->prompt_tokens
           && (uint64_t) usage->host_tokens + usage->redis_tokens
              <= usage->cached_tokens);

    dsa_step_event(r, DSA_EVENT_DONE, NULL);
}


static void
dsa_step_dropped(void *owner)
{
    dsa_request_t  *r;

    r = owner;
    r->seq = NULL;

    dsa_step_event(r, DSA_EVENT_DROPPED, NULL);
}


/* Appends an event to the batch of the step that runs. */

static void
dsa_step_event(dsa_request_t *r, dsa_event_e kind, const dsa_sample_t *sample)
{
    dsa_step_t   *st;
    dsa_event_t  *event;

    st = r->stepper;
    event = dsa_events_add(&st->out, r, kind, r->logprobs ? sample : NULL);

    if (event == NULL) {
        st->no_memory = 1;
        return;
    }

    if (sample != NULL) {
        event->token = sample->token;
    }

    if (kind >= DSA_EVENT_DONE) {
        r->finished = 1;
    }
}
