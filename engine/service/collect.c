
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Collects the results of the other threads and passes them to the sessions.
 */


#include <string.h>

#include "base/log.h"
#include "engine/service/session.h"


#define DSA_LEAST_LOGPROB   -9999.0f        /* JSON cannot represent
                                               infinity */


static void dsa_collect_prepared(dsa_sessions_t *all, dsa_request_t *r);
static void dsa_collect_event(dsa_sessions_t *all, const dsa_event_t *event);
static void dsa_collect_token(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_event_t *event);
static void dsa_collect_rows(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_event_t *event);
static void dsa_collect_logprobs(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_sample_t *sample);
static void dsa_collect_logprob(const dsa_tokenizer_t *t,
    dsa_link_logprob_t *entry, uint32_t token, float logprob);
static void dsa_collect_last(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_event_t *event);
static void dsa_collect_done(dsa_request_t *r);
static void dsa_collect_limit(dsa_link_done_t *done);
static void dsa_collect_log(const dsa_request_t *r, const char *what);


void
dsa_sessions_init(dsa_sessions_t *all, const dsa_service_t *service,
    dsa_pool_t *pool, dsa_step_t *step)
{
    memset(all, 0, sizeof(dsa_sessions_t));

    all->service = service;
    all->pool = pool;
    all->step = step;
    all->detached.prev = &all->detached;
    all->detached.next = &all->detached;
}


void
dsa_sessions_free(dsa_sessions_t *all)
{
    /* requests in the pool are in the ring as well */

    (void) dsa_pool_collect(all->pool);

    while (all->detached.next != &all->detached) {
        dsa_request_free(all->detached.next);
    }

    dsa_events_free(&all->events);
}


int
dsa_sessions_collect(dsa_sessions_t *all)
{
    int             rc;
    uint32_t        i;
    dsa_request_t  *r, *next;

    for (r = dsa_pool_collect(all->pool); r != NULL; r = next) {
        next = r->next_job;
        dsa_collect_prepared(all, r);
    }

    rc = dsa_step_collect(all->step, &all->events, &all->stats);

    for (i = 0; i < all->events.n; i++) {
        dsa_collect_event(all, &all->events.event[i]);
    }

    return rc;
}


/* Handles a request that a tokenizer thread has prepared. */

static void
dsa_collect_prepared(dsa_sessions_t *all, dsa_request_t *r)
{
    r->state = DSA_REQUEST_IDLE;

    if (r->session == NULL) {
        dsa_request_free(r);
        return;
    }

    if (r->early != 0) {
        return;
    }

    if (r->last != 0) {
        dsa_collect_log(r, r->last == DSA_LINK_ERROR ? "rejected"
                                                     : "answered");
        dsa_session_ready(r);
        return;
    }

    dsa_step_add(all->step, r);
}


static void
dsa_collect_event(dsa_sessions_t *all, const dsa_event_t *event)
{
    dsa_request_t  *r;

    r = event->request;

    switch (event->kind) {

    case DSA_EVENT_ADDED:
        if (r->session != NULL && r->last == 0) {
            r->accept = 1;
            r->accepted.cached_tokens = r->cached;
            dsa_collect_log(r, "accepted");
            dsa_session_ready(r);
        }

        return;

    case DSA_EVENT_TOKEN:

        /*
         * Steps that were in flight when a request ended may have computed
         * more tokens, which are ignored.
         */

        if (r->session != NULL && r->last == 0 && !r->muted && !r->stopped) {
            dsa_collect_token(all, r, event);
        }

        return;

    case DSA_EVENT_ROWS:
        if (r->session != NULL && r->last == 0 && !r->muted) {
            dsa_collect_rows(all, r, event);
        }

        return;

    default:
        dsa_collect_last(all, r, event);
    }
}


static void
dsa_collect_token(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_event_t *event)
{
    int                     rc;
    const dsa_sample_t     *sample;
    const dsa_tokenizer_t  *t;

    t = all->service->tokenizer;
    sample = NULL;

    if (r->samples++ == 0) {
        dsa_collect_log(r, "first token");
    }

    all->completion_tokens++;

    if (r->logprobs) {
        sample = &all->events.sample[event->at];

        if (r->answer.row == 0) {
            r->answer.row = 1 + sample->n_top;
        }
    }

    rc = dsa_answer_add(&r->answer, event->token,
                        dsa_token_bytes(t, event->token),
                        dsa_token_is_special(t, event->token));

    if (rc == DSA_ERROR) {
        dsa_request_reject(r, DSA_LINK_E_INTERNAL, "out of memory");

    } else if (sample != NULL) {
        dsa_collect_logprobs(all, r, sample);
    }

    if (rc == DSA_AGAIN) {
        r->stopped = 1;
    }

    if (rc != DSA_OK && !r->cancelled) {
        r->cancelled = 1;
        dsa_step_cancel(all->step, r, DSA_LINK_FINISH_STOP);
    }

    if (r->answer.n_ready != 0 || r->last != 0) {
        dsa_session_ready(r);
    }
}


/*
 * Adds rows, which follow their tokens.  The rows of the token that completed
 * a stop string are the last ones of the answer.
 */

static void
dsa_collect_rows(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_event_t *event)
{
    if (r->stopped && r->sampled_rows == r->samples) {
        return;
    }

    r->sampled_rows += event->token;

    dsa_buf_add(&r->rows, all->events.rows.data + event->at, event->size);

    if (r->rows.failed) {
        dsa_request_reject(r, DSA_LINK_E_INTERNAL, "out of memory");

        if (!r->cancelled) {
            r->cancelled = 1;
            dsa_step_cancel(all->step, r, DSA_LINK_FINISH_CANCELLED);
        }
    }

    dsa_session_ready(r);
}


/*
 * Adds the logprobs of a token.  All tokens of an answer have as many
 * alternatives as the first one.
 */

static void
dsa_collect_logprobs(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_sample_t *sample)
{
    uint32_t                i;
    dsa_link_logprob_t     *entry;
    const dsa_tokenizer_t  *t;

    t = all->service->tokenizer;
    entry = dsa_answer_logprobs(&r->answer);

    dsa_collect_logprob(t, entry++, sample->token, sample->logprob);

    for (i = 0; i < r->answer.row - 1; i++) {
        if (i < sample->n_top) {
            dsa_collect_logprob(t, entry++, sample->top[i],
                                sample->top_logprob[i]);

        } else {
            dsa_collect_logprob(t, entry++, sample->token, sample->logprob);
        }
    }
}


static void
dsa_collect_logprob(const dsa_tokenizer_t *t, dsa_link_logprob_t *entry,
    uint32_t token, float logprob)
{
    dsa_str_t  bytes;

    bytes = dsa_token_bytes(t, token);

    memset(entry, 0, sizeof(dsa_link_logprob_t));

    entry->token = token;
    entry->logprob = logprob > DSA_LEAST_LOGPROB ? logprob
                                                 : DSA_LEAST_LOGPROB;
    entry->len = (uint32_t) bytes.len;

    if (bytes.len != 0) {
        memcpy(entry->bytes, bytes.data,
               bytes.len < sizeof(entry->bytes) ? bytes.len
                                                : sizeof(entry->bytes));
    }
}


/* Handles the last event of a request. */

static void
dsa_collect_last(dsa_sessions_t *all, dsa_request_t *r,
    const dsa_event_t *event)
{
    dsa_step_forget(all->step, r);
    r->state = DSA_REQUEST_IDLE;

    if (event->kind != DSA_EVENT_DROPPED && !r->stopped
        && r->usage.completion_tokens > r->samples)
    {
        /* adds the end token, and tokens of a request that was cancelled */

        all->completion_tokens += r->usage.completion_tokens - r->samples;
    }

    if (r->session == NULL) {
        dsa_request_free(r);
        return;
    }

    if (r->last != 0) {
        return;
    }

    switch (event->kind) {

    case DSA_EVENT_DONE:
        dsa_collect_done(r);
        break;

    case DSA_EVENT_REJECTED:
        if (r->stopped || r->muted) {
            dsa_collect_done(r);
            break;
        }

        dsa_request_reject(r, (dsa_link_error_e) r->reject, r->reject_reason);
        dsa_collect_log(r, "rejected");
        break;

    default:
        r->accept = 0;      /* without ACCEPTED the worker may try another
                               replica */
        dsa_request_reject(r, DSA_LINK_E_TENANT, "too many requests wait, "
                           "most of them of this tenant");
        dsa_collect_log(r, "removed from the queue");
    }

    dsa_session_ready(r);
}


/* Steps may have gone on after the stop string, which ends the answer. */

static void
dsa_collect_limit(dsa_link_done_t *done)
{
    uint64_t  most;

    most = (uint64_t) DSA_LINK_DRAFTS * done->completion_tokens;

    if (done->draft_tokens > most) {
        done->draft_tokens = (uint32_t) most;
    }

    if (done->accepted_tokens > done->completion_tokens) {
        done->accepted_tokens = done->completion_tokens;
    }
}


static void
dsa_collect_done(dsa_request_t *r)
{
    r->last = DSA_LINK_DONE;
    r->done = r->usage;

    if (r->stopped) {
        r->done.finish = DSA_LINK_FINISH_STOP;
        r->done.completion_tokens = r->samples;
        r->done.stop = r->answer.stopped;
        dsa_collect_limit(&r->done);
    }

    if (r->muted) {
        r->done.finish = DSA_LINK_FINISH_CANCELLED;

    } else if (!r->stopped && dsa_answer_end(&r->answer) != DSA_OK) {
        dsa_request_reject(r, DSA_LINK_E_INTERNAL, "out of memory");
    }

    dsa_collect_log(r, r->done.finish == DSA_LINK_FINISH_CANCELLED
                       ? "cancelled" : "finished");
}


static void
dsa_collect_log(const dsa_request_t *r, const char *what)
{
    dsa_log_debug("request %d/%u.%u %s: %s, %u prompt tokens, %u tokens, "
                  "traceparent \"%s\", client's id \"%s\"",
                  (int) dsa_session_pid(r->session), dsa_link_slot(r->id),
                  dsa_link_epoch(r->id), r->name[0] != '\0' ? r->name : "-",
                  what, r->counted.prompt_tokens, r->samples, r->trace,
                  r->client);
}
