
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_events.h"

#include "ngx_module/api/ngx_http_dsa_rollout.h"


static void ngx_http_dsa_events_submit_next(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_events_accepted(ngx_http_dsa_engine_request_t *er,
    const dsa_link_accepted_t *accepted);
static void ngx_http_dsa_events_fingerprint(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_events_tokens(ngx_http_dsa_engine_request_t *er,
    const dsa_link_tokens_t *tokens, const u_char *p);
static void ngx_http_dsa_events_rollout(ngx_http_dsa_engine_request_t *er,
    const dsa_str_t *rows);
static void ngx_http_dsa_events_retry(ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_events_end(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end);
static void ngx_http_dsa_events_counted(ngx_http_dsa_request_t *req,
    uint32_t tokens);
static void ngx_http_dsa_events_complete(ngx_http_dsa_choice_t *choice,
    ngx_http_dsa_finish_e reason);
static void ngx_http_dsa_events_cut(ngx_http_dsa_choice_t *choice);
static void ngx_http_dsa_events_reported(ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_events_flush(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_events_writable(void *data);
static void ngx_http_dsa_events_unwritable(void *data, ngx_int_t rc);
static void ngx_http_dsa_events_timer_handler(ngx_event_t *ev);
static void ngx_http_dsa_events_ping(ngx_http_dsa_request_t *req);
static ngx_uint_t ngx_http_dsa_events_writes(
    const ngx_http_dsa_request_t *req);
static void ngx_http_dsa_events_late(void *data);
static void ngx_http_dsa_events_expired(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_events_shutdown(void *data);
static void ngx_http_dsa_events_shut(void *data);


static const ngx_http_dsa_engine_owner_t  ngx_http_dsa_events_choice = {
    .name = "choice",
    .refused = "request",
    .moves = 1,
    .accepted = ngx_http_dsa_events_accepted,
    .tokens = ngx_http_dsa_events_tokens,
    .rollout = ngx_http_dsa_events_rollout,
    .retry = ngx_http_dsa_events_retry,
    .end = ngx_http_dsa_events_end,
    .flush = ngx_http_dsa_events_reported
};


ngx_int_t
ngx_http_dsa_events_init(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    req->timer.event.handler = ngx_http_dsa_events_timer_handler;
    req->timer.event.data = req;
    req->timer.event.log = req->http->connection->log;

    if (ngx_http_dsa_stream_init(&req->stream, req->http, dlcf->output_limit,
                                 ngx_http_dsa_events_writable,
                                 ngx_http_dsa_events_unwritable, req)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    req->shutdown.handler = ngx_http_dsa_events_shutdown;
    req->shutdown.data = req;

    ngx_http_dsa_shutdown_add(&req->shutdown);

    return NGX_OK;
}


void
ngx_http_dsa_events_submit(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_choices_own(&req->choices, &ngx_http_dsa_events_choice,
                             req->http, &req->submit, &req->failure);

    ngx_http_dsa_events_submit_next(req);
}


/* Submits the first choice, or the others. */

static void
ngx_http_dsa_events_submit_next(ngx_http_dsa_request_t *req)
{
    if (ngx_http_dsa_choices_submit(&req->choices, &req->failure) != NGX_OK) {
        ngx_http_dsa_request_fail(req);
    }
}


static void
ngx_http_dsa_events_accepted(ngx_http_dsa_engine_request_t *er,
    const dsa_link_accepted_t *accepted)
{
    ngx_http_dsa_choice_t      *choice = er->data;

    ngx_http_dsa_request_t     *req;
    ngx_http_dsa_api_answer_t  *a;

    req = choice->choices->data;
    a = choice->answer->api;

    if (a->index == 0) {
        a->model = req->asked;

        if (req->progress == NULL) {
            a->created = ngx_time();
        }

        ngx_http_dsa_events_fingerprint(req);

        ngx_http_dsa_metrics_add(schema_conditions, accepted->conditions);
        ngx_http_dsa_metrics_add(schema_whole, accepted->schemas);
    }

    if (ngx_http_dsa_choices_start(choice, accepted->vocabulary) != NGX_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
    }

    if (ngx_http_dsa_choices_accepted(&req->choices)) {
        ngx_http_dsa_submit_free(&req->submit);
        ngx_http_dsa_retention_free_arena(&req->retention);
    }
}


static void
ngx_http_dsa_events_fingerprint(ngx_http_dsa_request_t *req)
{
    size_t      len;
    char       *hex;
    ngx_str_t  *to;

    hex = req->requests->first.link.session->hello.fingerprint;
    len = ngx_min(ngx_strlen(hex), 10);

    to = &req->answer.api->fingerprint;

    to->data = ngx_pnalloc(req->http->pool, sizeof("fp_") + 10);

    if (to->data == NULL) {
        ngx_http_dsa_failure_memory(&req->failure);
        return;
    }

    to->len = ngx_sprintf(to->data, "fp_%*s", len, hex) - to->data;
}


static void
ngx_http_dsa_events_tokens(ngx_http_dsa_engine_request_t *er,
    const dsa_link_tokens_t *tokens, const u_char *p)
{
    ngx_http_dsa_choice_t   *choice = er->data;

    ngx_http_dsa_answer_t   *answer;
    ngx_http_dsa_request_t  *req;

    req = choice->choices->data;
    answer = choice->answer;

    if (req->failure.status != 0) {
        return;
    }

    if (!answer->begun && tokens->n_tokens != 0) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                       "dsa request %V: first token of choice %uD",
                       &req->ctx.id, answer->api->index);

        if (answer->api->index == 0) {
            req->choices.submit = 1;
        }
    }

    ngx_http_dsa_stream_prepare(&req->stream);
    ngx_http_dsa_choices_write(choice);

    if (ngx_http_dsa_answer_tokens(answer, tokens, p,
                                   &req->requests->record.usage.reasoning)
        != NGX_OK)
    {
        ngx_http_dsa_failure_memory(&req->failure);
    }
}


static void
ngx_http_dsa_events_rollout(ngx_http_dsa_engine_request_t *er,
    const dsa_str_t *rows)
{
    ngx_http_dsa_choice_t    *choice = er->data;

    ngx_int_t                 rc;
    ngx_http_dsa_request_t   *req;
    ngx_http_dsa_loc_conf_t  *dlcf;

    req = choice->choices->data;

    if (req->failure.status != 0) {
        return;
    }

    dlcf = ngx_http_get_module_loc_conf(req->http, ngx_http_dsa_module);

    rc = ngx_http_dsa_rollout_add(choice->answer->api, rows, dlcf->rollout);

    if (rc == NGX_ERROR) {
        ngx_http_dsa_failure_memory(&req->failure);

    } else if (rc == NGX_DECLINED) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "rollout", "The rows of the rollout exceed "
                                 "the %lu bytes that the server holds for an "
                                 "answer (dsa_rollout).",
                                 (unsigned long) dlcf->rollout);
    }
}


/* The choice is submitted again by choices, as others that wait are. */

static void
ngx_http_dsa_events_retry(ngx_http_dsa_engine_request_t *er)
{
    ngx_http_dsa_choice_t *choice = er->data;

    choice->choices->submit = 1;
}


static void
ngx_http_dsa_events_end(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end)
{
    ngx_http_dsa_choice_t   *choice = er->data;

    ngx_http_dsa_request_t  *req;

    req = choice->choices->data;

    /* its slot is free, so another choice may be submitted */

    req->choices.submit = 1;

    if (req->failure.status != 0) {
        return;
    }

    switch (end) {

    case NGX_HTTP_DSA_ENGINE_STOP:
        choice->answer->api->stop = er->stop;
        ngx_http_dsa_events_complete(choice, NGX_HTTP_DSA_FINISH_STOP);
        return;

    case NGX_HTTP_DSA_ENGINE_LENGTH:
        ngx_http_dsa_events_complete(choice, NGX_HTTP_DSA_FINISH_LENGTH);
        return;

    case NGX_HTTP_DSA_ENGINE_CONTEXT:
        ngx_http_dsa_events_complete(choice, NGX_HTTP_DSA_FINISH_CONTEXT);
        return;

    case NGX_HTTP_DSA_ENGINE_COUNTED:
        ngx_http_dsa_events_counted(req, er->counted);
        return;

    case NGX_HTTP_DSA_ENGINE_LATE:
        ngx_http_dsa_events_cut(choice);
        return;

    default: /* NGX_HTTP_DSA_ENGINE_CANCELLED */
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 NULL, er->accepted
                                       ? "The engine cancelled the request."
                                       : "The engine ended the request before "
                                         "it accepted it.");
        return;
    }
}


/*
 * Finishes a request that only counts tokens.  Nothing is computed or charged.
 */

static void
ngx_http_dsa_events_counted(ngx_http_dsa_request_t *req, uint32_t tokens)
{
    ngx_http_dsa_answer_t  *answer;

    answer = &req->answer;

    answer->api->counted = tokens;
    answer->reason = NGX_HTTP_DSA_FINISH_STOP;
    answer->finish = answer->api->api->finish_reason[answer->reason];
    answer->complete = 1;
}


static void
ngx_http_dsa_events_complete(ngx_http_dsa_choice_t *choice,
    ngx_http_dsa_finish_e reason)
{
    ngx_http_dsa_request_t  *req;

    req = choice->choices->data;

    ngx_http_dsa_stream_prepare(&req->stream);
    ngx_http_dsa_choices_write(choice);

    if (ngx_http_dsa_answer_complete(choice->answer, reason) != NGX_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
        return;
    }

    if (choice->answer->api->question && choice->answer->api->collected == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 NULL, "The conversation was not compacted: "
                                 "the model wrote no summary.");
    }
}


/*
 * Ends a choice at the timeout: as if max_tokens had been reached, or with an
 * error if no choice has a token.
 */

static void
ngx_http_dsa_events_cut(ngx_http_dsa_choice_t *choice)
{
    ngx_http_dsa_request_t  *req;

    req = choice->choices->data;

    if (req->failure.status != 0 || choice->answer->complete) {
        return;
    }

    if (req->answer.accepted
        && (req->answer.begun
            || req->requests->record.usage.completion
               != req->requests->record.before.completion))
    {
        if (!choice->answer->accepted
            && ngx_http_dsa_choices_start(choice, 0) != NGX_OK)
        {
            ngx_http_dsa_failure_memory(&req->failure);
            return;
        }

        ngx_http_dsa_events_complete(choice, NGX_HTTP_DSA_FINISH_LENGTH);
        return;
    }

    ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_GATEWAY_TIME_OUT, NULL,
                             "The answer was not complete in time.");
}


static void
ngx_http_dsa_events_reported(ngx_http_dsa_engine_request_t *er)
{
    ngx_http_dsa_choice_t *choice = er->data;

    ngx_http_dsa_events_flush(choice->choices->data);
}


/*
 * Sends what the events have produced, and submits, finishes or fails the
 * request.  The request may be freed afterwards.
 */

static void
ngx_http_dsa_events_flush(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_api_answer_t  *a;

    if (req->saving) {
        return;
    }

    if (req->failure.status != 0) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    if (req->choices.elts[0].request->pending) {
        ngx_http_dsa_events_submit_next(req);
        return;
    }

    ngx_http_dsa_request_queued(req);

    if (req->failure.status != 0) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_choices_end(&req->choices);

    if (req->choices.last != NULL) {
        ngx_http_dsa_request_finish(req);
        return;
    }

    if (!req->timer.expired
        && ngx_http_dsa_choices_submit(&req->choices, &req->failure)
           != NGX_OK)
    {
        ngx_http_dsa_request_fail(req);
        return;
    }

    a = req->choices.writer->answer->api;

    if (!req->answer.accepted || !a->stream) {
        return;
    }

    /*
     * While the client is slow, its next event stays open and more text is
     * added, unless events are kept for others.
     */

    if (!req->stream.busy || a->background) {
        a->api->close(a);
    }

    ngx_http_dsa_request_output(req, 0);
}


/* The client has received everything that was sent. */

static void
ngx_http_dsa_events_writable(void *data)
{
    ngx_http_dsa_events_flush(data);
}


/* The client is too slow, or has left. */

static void
ngx_http_dsa_events_unwritable(void *data, ngx_int_t rc)
{
    ngx_http_dsa_request_leave(data, rc);
}


static void
ngx_http_dsa_events_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_http_dsa_request_t  *req = ev->data;

    c = req->http->connection;

    ngx_http_set_log_request(c->log, req->http);

    if (ngx_http_dsa_timer_over(&req->timer)) {

        /* the end of an answer is not stopped, see below */

        if (req->saving || req->ended
            || ngx_http_dsa_work_stop(&req->work, ngx_http_dsa_events_late,
                                      req)
               == NGX_OK)
        {
            ngx_http_dsa_events_expired(req);
        }

        ngx_http_run_posted_requests(c);
        return;
    }

    ngx_http_dsa_timer_set(&req->timer, req->stream.last_write);

    if (ngx_http_dsa_timer_quiet(&req->timer, req->stream.last_write)
        && !req->stream.busy && !req->ended
        && !ngx_http_dsa_events_writes(req))
    {
        ngx_http_dsa_events_ping(req);
    }

    ngx_http_run_posted_requests(c);
}


/* Returns 1 if a thread writes the last text of the stream. */

static ngx_uint_t
ngx_http_dsa_events_writes(const ngx_http_dsa_request_t *req)
{
    return req->saving && ngx_http_dsa_work_runs(&req->work);
}


/* A ping between two events, or a blank line in front of a JSON object. */

static void
ngx_http_dsa_events_ping(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    ngx_http_dsa_stream_prepare(&req->stream);

    if (a->stream) {
        a->api->ping(a);

    } else {
        dsa_buf_addz(&req->stream.pending, "\n");
    }

    ngx_http_dsa_request_output(req, 0);
}


/* dsa_timeout has expired while a thread worked on the chat. */

static void
ngx_http_dsa_events_late(void *data)
{
    ngx_http_dsa_request_t *req = data;

    if (req->failure.status != 0) {
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_events_expired(req);
}


/*
 * dsa_timeout has expired.  The engine ends a cancelled request within one
 * step and reports the tokens that it has computed.  They are sent to the
 * client and charged, so the worker waits for the report, up to
 * NGX_HTTP_DSA_GRACE.
 */

static void
ngx_http_dsa_events_expired(ngx_http_dsa_request_t *req)
{
    ngx_uint_t  i;

    if (req->saving || req->ended || req->failure.status != 0) {

        /*
         * Only the end is left, and other timeouts bound it: send_timeout for
         * a slow client, and the timeout of dsa_redis for a turn that is
         * stored.  With an error now, the client would not learn that its turn
         * may be stored.
         */

        return;
    }

    /* set the timer first, because the request may be freed below */

    ngx_add_timer(&req->timer.event, NGX_HTTP_DSA_GRACE);

    if (!req->timer.expired && req->choices.last == NULL
        && ngx_http_dsa_engine_requests_charged(req->requests))
    {
        req->timer.expired = 1;
        req->reason = NGX_HTTP_DSA_CANCEL_TIMEOUT;
        ngx_http_dsa_metrics_add(cancelled[req->reason], 1);

        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                       "dsa request %V: timed out, cancelled", &req->ctx.id);

        ngx_http_dsa_engine_requests_cancel(req->requests);

        return;
    }

    /*
     * The engine has sent no report, so the tokens that this worker has
     * counted are charged; or a choice was not submitted yet.
     */

    for (i = 0; i < req->choices.n; i++) {
        ngx_http_dsa_events_cut(&req->choices.elts[i]);
    }

    ngx_http_dsa_engine_requests_leave(req->requests);

    ngx_http_dsa_events_flush(req);
}


/* nginx will close the connection at worker_shutdown_timeout, which is near. */

static void
ngx_http_dsa_events_shutdown(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_connection_t  *c;

    if (req->failure.status != 0 || req->ended || req->saving) {

        /* only the end is left, see ngx_http_dsa_events_expired() */

        return;
    }

    c = req->http->connection;

    ngx_http_set_log_request(c->log, req->http);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa request %V: ended by worker_shutdown_timeout",
                   &req->ctx.id);

    /* a thread may use the memory of the request */

    if (ngx_http_dsa_work_stop(&req->work, ngx_http_dsa_events_shut, req)
        == NGX_OK)
    {
        ngx_http_dsa_events_shut(req);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_events_shut(void *data)
{
    ngx_http_dsa_request_t *req = data;

    req->reason = NGX_HTTP_DSA_CANCEL_SHUTDOWN;

    ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                             "The server shuts down or has a new "
                             "configuration, and the answer was not complete "
                             "in time (worker_shutdown_timeout); send the "
                             "request again.");
    ngx_http_dsa_request_fail(req);
}
