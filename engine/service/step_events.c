
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Events of the step thread: what the scheduler reports of requests, and the
 * batches in which the I/O thread collects it.
 */


#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/wake.h"
#include "engine/service/rollout.h"
#include "engine/service/step_parts.h"


static int dsa_step_tokens(void *owner, const dsa_sample_t *samples,
    uint32_t n);
static void dsa_step_rows(dsa_step_t *st, dsa_request_t *r, size_t at,
    uint32_t sampled);
static void dsa_step_log_masks(const dsa_request_t *r);
static void dsa_step_done(void *owner, const dsa_sched_usage_t *usage);
static void dsa_step_dropped(void *owner);


/* The link and the scheduler name the same ends. */

_Static_assert((int) DSA_FINISH_STOP == (int) DSA_LINK_FINISH_STOP
               && (int) DSA_FINISH_LENGTH == (int) DSA_LINK_FINISH_LENGTH
               && (int) DSA_FINISH_CANCELLED == (int) DSA_LINK_FINISH_CANCELLED
               && (int) DSA_FINISH_DEADLINE == (int) DSA_LINK_FINISH_DEADLINE,
               "dsa_finish_e and dsa_link_finish_e agree");


const dsa_sched_handler_t  dsa_step_handler = {
    dsa_step_tokens,
    dsa_step_done,
    dsa_step_dropped
};


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


int
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
            if (dsa_request_starved(r)) {
                return DSA_FINISH_CANCELLED;
            }

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
        r->routed = dsa_rollout_step(rows, st->version, r->routed, rollout,
                                     &st->backend->config);
        dsa_step_rows(st, r, at, 0);
    }

    for (i = 0; i < rollout->n_samples; i++) {
        at = rows->len;

        dsa_rollout_sample(rows, st->version, rollout->position + i,
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
                  (unsigned long long) s.total_us, s.most_us, s.by_thread);
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
    r->usage.completion_tokens = usage->completion_tokens - r->sched.n_resume;
    r->usage.draft_tokens = usage->draft_tokens;
    r->usage.accepted_tokens = usage->accepted_tokens;
    r->usage.queue_ms = usage->queue_ms;
    r->usage.prefill_ms = usage->prefill_ms;
    r->usage.decode_ms = usage->decode_ms;
    memcpy(r->usage.cached_tokens, usage->tier_tokens,
           sizeof(r->usage.cached_tokens));

    /* a worker closes the session of a DONE that contradicts itself */

    assert(dsa_link_cached(&r->usage) <= usage->prompt_tokens);

    dsa_step_event(r, r->reject != 0 ? DSA_EVENT_REJECTED : DSA_EVENT_DONE,
                   NULL);
}


static void
dsa_step_dropped(void *owner)
{
    dsa_request_t  *r;

    r = owner;
    r->seq = NULL;

    dsa_step_event(r, DSA_EVENT_DROPPED, NULL);
}


void
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
