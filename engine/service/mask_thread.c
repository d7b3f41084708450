
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "engine/service/mask_thread.h"


static void *dsa_mask_thread(void *data);
static void dsa_mask_thread_unlink(dsa_mask_thread_t *t, dsa_mask_job_t *job);


void
dsa_mask_thread_init(dsa_mask_thread_t *t)
{
    memset(t, 0, sizeof(dsa_mask_thread_t));

    (void) pthread_mutex_init(&t->mutex, NULL);
    (void) pthread_cond_init(&t->work, NULL);
    (void) pthread_cond_init(&t->done, NULL);
}


int
dsa_mask_thread_start(dsa_mask_thread_t *t, void (*wake)(void *data),
    void *data, dsa_err_t *err)
{
    int  rc;

    t->wake = wake;
    t->data = data;

    rc = pthread_create(&t->thread, NULL, dsa_mask_thread, t);

    if (rc != 0) {
        return dsa_error(err, "cannot start the thread for masks: %s",
                         strerror(rc));
    }

    t->running = 1;

    return DSA_OK;
}


void
dsa_mask_thread_stop(dsa_mask_thread_t *t)
{
    if (!t->running) {
        return;
    }

    (void) pthread_mutex_lock(&t->mutex);
    t->stop = 1;
    (void) pthread_cond_signal(&t->work);
    (void) pthread_mutex_unlock(&t->mutex);

    (void) pthread_join(t->thread, NULL);

    t->running = 0;
}


void
dsa_mask_thread_destroy(dsa_mask_thread_t *t)
{
    assert(!t->running && t->first == NULL);

    (void) pthread_cond_destroy(&t->done);
    (void) pthread_cond_destroy(&t->work);
    (void) pthread_mutex_destroy(&t->mutex);
}


void
dsa_mask_thread_push(dsa_mask_thread_t *t, dsa_mask_job_t *job)
{
    (void) pthread_mutex_lock(&t->mutex);

    assert(job->state == DSA_MASK_NONE);

    job->state = DSA_MASK_QUEUED;
    job->next = NULL;

    if (t->first != NULL) {
        t->last->next = job;

    } else {
        t->first = job;
    }

    t->last = job;

    (void) pthread_cond_signal(&t->work);
    (void) pthread_mutex_unlock(&t->mutex);
}


int
dsa_mask_thread_done(dsa_mask_thread_t *t, const dsa_mask_job_t *job)
{
    int  done;

    (void) pthread_mutex_lock(&t->mutex);
    done = job->state == DSA_MASK_NONE;
    (void) pthread_mutex_unlock(&t->mutex);

    return done;
}


void
dsa_mask_thread_cancel(dsa_mask_thread_t *t, dsa_mask_job_t *job)
{
    (void) pthread_mutex_lock(&t->mutex);

    if (job->state == DSA_MASK_QUEUED) {
        dsa_mask_thread_unlink(t, job);
    }

    while (job->state == DSA_MASK_RUNNING) {
        (void) pthread_cond_wait(&t->done, &t->mutex);
    }

    (void) pthread_mutex_unlock(&t->mutex);
}


int
dsa_mask_thread_drop(dsa_mask_thread_t *t, dsa_mask_job_t *job)
{
    int  mine;

    (void) pthread_mutex_lock(&t->mutex);

    if (job->state == DSA_MASK_QUEUED) {
        dsa_mask_thread_unlink(t, job);
    }

    mine = job->state != DSA_MASK_RUNNING;

    if (!mine) {
        job->state = DSA_MASK_DROPPED;
    }

    (void) pthread_mutex_unlock(&t->mutex);

    return mine;
}


static void *
dsa_mask_thread(void *data)
{
    int                 dropped;
    dsa_mask_job_t     *job;
    dsa_mask_thread_t  *t;

    t = data;

    (void) pthread_mutex_lock(&t->mutex);

    while (!t->stop) {
        job = t->first;

        if (job == NULL) {
            (void) pthread_cond_wait(&t->work, &t->mutex);
            continue;
        }

        dsa_mask_thread_unlink(t, job);
        job->state = DSA_MASK_RUNNING;

        (void) pthread_mutex_unlock(&t->mutex);

        dsa_matcher_warm(job->matcher);

        (void) pthread_mutex_lock(&t->mutex);

        dropped = job->state == DSA_MASK_DROPPED;
        job->state = DSA_MASK_NONE;
        (void) pthread_cond_broadcast(&t->done);

        (void) pthread_mutex_unlock(&t->mutex);

        /*
         * Unless the job was dropped, another thread may have freed it by now.
         */

        if (dropped) {
            job->free(job->owner);

        } else {
            t->wake(t->data);
        }

        (void) pthread_mutex_lock(&t->mutex);
    }

    (void) pthread_mutex_unlock(&t->mutex);

    return NULL;
}


/* Removes a job from the queue.  The caller holds the mutex. */

static void
dsa_mask_thread_unlink(dsa_mask_thread_t *t, dsa_mask_job_t *job)
{
    dsa_mask_job_t  *before, *at;

    before = NULL;

    for (at = t->first; at != job; at = at->next) {
        before = at;
    }

    if (before != NULL) {
        before->next = job->next;

    } else {
        t->first = job->next;
    }

    if (t->last == job) {
        t->last = before;
    }

    job->state = DSA_MASK_NONE;
}
