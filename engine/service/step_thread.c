
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "engine/service/step_parts.h"


static void dsa_step_close(dsa_step_t *st);
static void *dsa_step_thread(void *data);
static int dsa_step_wait(dsa_step_t *st);
static int dsa_step_replace(dsa_step_t *st);


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
    st->version = 1;

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
dsa_step_identity(const dsa_step_t *st)
{
    return st->backend->identity;
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


void
dsa_step_reload(dsa_step_t *st)
{
    (void) pthread_mutex_lock(&st->mutex);

    st->reload = 1;

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
        if (dsa_step_round(st) != DSA_OK) {
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
           && !st->reload && rc != ETIMEDOUT)
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
dsa_step_round(dsa_step_t *st)
{
    int        rc;
    dsa_err_t  err;

    dsa_step_execute(st);

    if (st->backend->check != NULL
        && st->backend->check(st->backend, &err) != DSA_OK)
    {
        dsa_log(DSA_LOG_ERR, "the replica fails: %s", err.text);
        return DSA_ERROR;
    }

    if (dsa_step_replace(st) != DSA_OK) {
        return DSA_ERROR;
    }

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


/*
 * Replaces the weights if that was ordered.  The time is not that of a step, so
 * that the supervisor does not take it for one that hangs.
 */

static int
dsa_step_replace(dsa_step_t *st)
{
    int        rc;
    uint32_t   reload;
    uint64_t   begin;
    dsa_err_t  err;

    (void) pthread_mutex_lock(&st->mutex);

    reload = st->reload;
    st->reload = 0;

    (void) pthread_mutex_unlock(&st->mutex);

    if (!reload) {
        return DSA_OK;
    }

    dsa_log(DSA_LOG_NOTICE, "replacing the weights of version %u",
            st->version);

    begin = dsa_clock_ms();
    rc = dsa_sched_reload(st->sched, &err);

    if (rc == DSA_ERROR) {
        dsa_log(DSA_LOG_ERR, "replacing the weights failed: %s", err.text);
        return DSA_ERROR;
    }

    if (rc == DSA_AGAIN) {
        dsa_log(DSA_LOG_ERR, "the weights of version %u stay: %s",
                st->version, err.text);
        return DSA_OK;
    }

    st->version++;

    dsa_log(DSA_LOG_NOTICE, "the weights of version %u were loaded in %u ms",
            st->version, (unsigned) (dsa_clock_ms() - begin));

    return DSA_OK;
}


int
dsa_step_audit(const dsa_step_t *st, dsa_err_t *err)
{
    return dsa_sched_audit(st->sched, err);
}
