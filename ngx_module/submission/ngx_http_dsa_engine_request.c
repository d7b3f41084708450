
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_ctx.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/engine/ngx_http_dsa_session.h"
#include "ngx_module/http/ngx_http_dsa_text.h"
#include "ngx_http_dsa_engine_request.h"


/* bytes of an engine's error that are logged */
#define NGX_HTTP_DSA_ERROR_LOG    512


static ngx_int_t ngx_http_dsa_engine_request_send(
    ngx_http_dsa_engine_request_t *er, ngx_http_dsa_failure_t *failure);
static ngx_int_t ngx_http_dsa_engine_request_resume(
    ngx_http_dsa_engine_request_t *er, ngx_http_dsa_failure_t *failure);
static void ngx_http_dsa_engine_request_event(ngx_http_dsa_link_request_t *lr,
    ngx_http_dsa_event_e event, const void *data);
static void ngx_http_dsa_engine_request_accepted(
    ngx_http_dsa_engine_request_t *er, const void *data);
static ngx_int_t ngx_http_dsa_engine_request_keep(
    ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_engine_request_tokens(
    ngx_http_dsa_engine_request_t *er, const u_char *p);
static void ngx_http_dsa_engine_request_done(
    ngx_http_dsa_engine_request_t *er, const void *data);
static void ngx_http_dsa_engine_request_error(
    ngx_http_dsa_engine_request_t *er, const u_char *data);
static ngx_uint_t ngx_http_dsa_engine_request_continues(
    ngx_http_dsa_engine_request_t *er, uint32_t code);
static void ngx_http_dsa_engine_request_failed(
    ngx_http_dsa_engine_request_t *er, uint32_t code);
static void ngx_http_dsa_engine_request_lost(
    ngx_http_dsa_engine_request_t *er);
static ngx_uint_t ngx_http_dsa_engine_request_move(
    ngx_http_dsa_engine_request_t *er, ngx_uint_t stopped);
static ngx_uint_t ngx_http_dsa_engine_request_survives(
    ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_engine_request_retry(
    ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_engine_request_flush(void *data);


void
ngx_http_dsa_engine_request_init(ngx_http_dsa_engine_request_t *er,
    const ngx_http_dsa_engine_owner_t *owner, void *data,
    ngx_http_request_t *r, ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure)
{
    ngx_http_dsa_ctx_t  *ctx;

    assert(er->link.session == NULL && !er->link.touched);

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    er->owner = owner;
    er->data = data;
    er->request = r;
    er->id = &ctx->id;
    er->submit = submit;
    er->failure = failure;
    er->link.handler = ngx_http_dsa_engine_request_event;
    er->link.data = er;
    er->tried = 0;
    er->pending = 1;
    er->accepted = 0;
    er->cancelled = 0;
}


ngx_int_t
ngx_http_dsa_engine_request_submit(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_failure_t *failure)
{
    ngx_int_t   rc;
    ngx_log_t  *log;

    log = er->request->connection->log;

    assert(er->link.session == NULL);

    /*
     * The request may still be in the FLUSH queue of its last session: several
     * requests can end before the first FLUSH, which submits all of them again.
     * It has to leave this queue before it gets another session.
     */

    ngx_http_dsa_link_request_untouch(&er->link);

    rc = er->moved ? ngx_http_dsa_engine_request_resume(er, failure)
                   : ngx_http_dsa_engine_request_send(er, failure);

    if (rc == NGX_OK) {
        er->pending = 0;

        if (!er->link.expect.count) {
            ngx_http_dsa_usage_record_submitted(er->usage.record);
        }

        ngx_log_debug6(NGX_LOG_DEBUG_HTTP, log, 0,
                       "dsa request %V: submitted, %s %uD, to engine "
                       "\"%V\" as %xL, route \"%V\"", er->id, er->owner->name,
                       er->index, &er->link.session->name, er->link.id,
                       &er->submit->route);

    } else if (rc == NGX_AGAIN) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, log, 0,
                       "dsa request %V: waits for the first hello", er->id);
    }

    return rc;
}


static ngx_int_t
ngx_http_dsa_engine_request_send(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_failure_t *failure)
{
    ngx_int_t               rc;
    ngx_http_dsa_submit_t  *submit;

    submit = er->submit;

    submit->waiter.handler = ngx_http_dsa_engine_request_flush;
    submit->waiter.data = er;
    submit->index = er->index;
    submit->tried = er->tried;

    rc = ngx_http_dsa_submit(submit, &er->link, failure);

    er->tried = submit->tried;

    return rc;
}


/* Submits the prompt with the answer so far. */

static ngx_int_t
ngx_http_dsa_engine_request_resume(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_failure_t *failure)
{
    if (ngx_http_dsa_resume_submit(er->set->resume, er->submit->pool,
                                   &er->tried, er->index, &er->ids, &er->link)
        != NGX_OK)
    {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The engine %s before the answer was "
                                 "complete, and no other engine can continue "
                                 "it.", er->stopped ? "was stopped"
                                                    : "went away");
        return NGX_ERROR;
    }

    ngx_http_dsa_metrics_add(resumed, 1);

    ngx_log_error(NGX_LOG_WARN, er->request->connection->log, 0,
                  "engine \"%V\" continues %s %uD of the answer after %uz "
                  "tokens", &er->link.session->name, er->owner->name, er->index,
                  er->ids.len / sizeof(uint32_t));

    return NGX_OK;
}


void
ngx_http_dsa_engine_request_cancel(ngx_http_dsa_engine_request_t *er)
{
    er->cancelled = 1;

    if (er->link.session != NULL) {
        ngx_http_dsa_session_cancel(&er->link);
    }
}


void
ngx_http_dsa_engine_request_abandon(ngx_http_dsa_engine_request_t *er)
{
    if (er->link.session != NULL) {
        ngx_http_dsa_session_abandon(&er->link);
    }

    ngx_http_dsa_link_request_untouch(&er->link);
}


static void
ngx_http_dsa_engine_request_event(ngx_http_dsa_link_request_t *lr,
    ngx_http_dsa_event_e event, const void *data)
{
    dsa_link_counted_t              counted;
    ngx_http_dsa_engine_request_t  *er;

    er = (ngx_http_dsa_engine_request_t *) lr;

    switch (event) {

    case NGX_HTTP_DSA_EV_ACCEPTED:
        ngx_http_dsa_engine_request_accepted(er, data);
        return;

    case NGX_HTTP_DSA_EV_TOKENS:
        ngx_http_dsa_engine_request_tokens(er, data);
        return;

    case NGX_HTTP_DSA_EV_ROLLOUT:
        if (er->owner->rollout != NULL) {
            er->owner->rollout(er, data);
        }

        return;

    case NGX_HTTP_DSA_EV_DONE:
        ngx_http_dsa_engine_request_done(er, data);
        return;

    case NGX_HTTP_DSA_EV_ERROR:
        ngx_http_dsa_engine_request_error(er, data);
        return;

    case NGX_HTTP_DSA_EV_COUNTED:
        ngx_memcpy(&counted, data, sizeof(dsa_link_counted_t));
        er->counted = counted.prompt_tokens;
        er->more = counted.more != 0;
        er->owner->end(er, NGX_HTTP_DSA_ENGINE_COUNTED);
        return;

    case NGX_HTTP_DSA_EV_LOST:
        ngx_http_dsa_engine_request_lost(er);
        return;

    default: /* NGX_HTTP_DSA_EV_FLUSH */
        ngx_http_dsa_engine_request_flush(er);
        return;
    }
}


static void
ngx_http_dsa_engine_request_accepted(ngx_http_dsa_engine_request_t *er,
    const void *data)
{
    dsa_link_accepted_t  accepted;

    ngx_memcpy(&accepted, data, sizeof(dsa_link_accepted_t));

    ngx_http_dsa_usage_record_accepted(&er->usage, &accepted);

    if (er->owner->accepted == NULL) {
        return;
    }

    ngx_log_debug6(NGX_LOG_DEBUG_HTTP, er->request->connection->log, 0,
                   "dsa request %V: accepted, %s %uD, %uD tokens, %uD of "
                   "them cached, vocabulary %xD", er->id, er->owner->name,
                   er->index, accepted.prompt_tokens, accepted.cached_tokens,
                   accepted.vocabulary);

    if (er->accepted) {

        /* the engine continues an answer that another engine has begun */

        return;
    }

    er->accepted = 1;

    if (er->owner->moves && ngx_http_dsa_engine_request_keep(er) != NGX_OK) {
        ngx_http_dsa_failure_memory(er->failure);
    }

    er->owner->accepted(er, &accepted);
}


/* Copies what another engine needs to continue the answer. */

static ngx_int_t
ngx_http_dsa_engine_request_keep(ngx_http_dsa_engine_request_t *er)
{
    ngx_http_dsa_submit_t           *submit;
    ngx_http_dsa_engine_requests_t  *set;

    set = er->set;
    submit = er->submit;

    if (set->resume == NULL) {

        /*
         * An engine that continues would send the rows of the rollout from the
         * prompt on again.
         */

        if (submit->pool->sessions.nelts == 1 || submit->chat->rollout) {
            return NGX_OK;
        }

        set->resume = ngx_http_dsa_resume_create(submit, er->link.session,
                                                 er->request->connection->log);
        if (set->resume == NULL) {
            return NGX_ERROR;
        }
    }

    er->resumes = ngx_http_dsa_resume_fits(set->resume, er->link.session);

    return NGX_OK;
}


static void
ngx_http_dsa_engine_request_tokens(ngx_http_dsa_engine_request_t *er,
    const u_char *p)
{
    uint32_t           i;
    dsa_link_token_t   token;
    dsa_link_tokens_t  tokens;

    ngx_memcpy(&tokens, p, sizeof(dsa_link_tokens_t));

    p += sizeof(dsa_link_tokens_t);

    ngx_http_dsa_usage_record_tokens(&er->usage, tokens.n_tokens);

    if (er->resumes) {

        for (i = 0; i < tokens.n_tokens; i++) {
            ngx_memcpy(&token, p + i * sizeof(dsa_link_token_t),
                       sizeof(dsa_link_token_t));

            dsa_buf_add(&er->ids, &token.id, sizeof(uint32_t));
        }

        if (er->ids.failed) {
            ngx_http_dsa_failure_memory(er->failure);
        }
    }

    if (er->owner->tokens != NULL) {
        er->owner->tokens(er, &tokens, p);
    }
}


static void
ngx_http_dsa_engine_request_done(ngx_http_dsa_engine_request_t *er,
    const void *data)
{
    dsa_link_done_t            done;
    ngx_http_dsa_engine_end_e  end;

    ngx_memcpy(&done, data, sizeof(dsa_link_done_t));

    if (er->owner->name != NULL) {
        ngx_log_debug5(NGX_LOG_DEBUG_HTTP, er->request->connection->log, 0,
                       "dsa request %V: done, %s %uD, finish %uD, completion "
                       "%uD", er->id, er->owner->name, er->index, done.finish,
                       done.completion_tokens);
    }

    ngx_http_dsa_usage_record_done(&er->usage, &done);

    er->stop = done.stop;

    if (done.finish == DSA_LINK_FINISH_DEADLINE
        || (done.finish == DSA_LINK_FINISH_CANCELLED && er->cancelled))
    {
        end = NGX_HTTP_DSA_ENGINE_LATE;

    } else if (!er->accepted || done.finish == DSA_LINK_FINISH_CANCELLED) {
        end = NGX_HTTP_DSA_ENGINE_CANCELLED;

    } else if (done.finish == DSA_LINK_FINISH_STOP) {
        end = NGX_HTTP_DSA_ENGINE_STOP;

    } else {
        end = ngx_http_dsa_expect_reduced(&er->link.expect)
              ? NGX_HTTP_DSA_ENGINE_CONTEXT : NGX_HTTP_DSA_ENGINE_LENGTH;
    }

    er->owner->end(er, end);
}


static void
ngx_http_dsa_engine_request_error(ngx_http_dsa_engine_request_t *er,
    const u_char *data)
{
    size_t              len;
    u_char              text[NGX_HTTP_DSA_ERROR_LOG];
    ngx_uint_t          level, retry;
    dsa_link_failure_t  error;

    ngx_memcpy(&error, data, sizeof(dsa_link_failure_t));

    retry = !er->accepted && !er->cancelled && er->failure->status == 0
            && ngx_http_dsa_submit_rejected(er->submit, &error) == NGX_OK;

    level = (error.code == DSA_LINK_E_INVALID
             || error.code == DSA_LINK_E_INTERNAL)
            ? NGX_LOG_ERR : NGX_LOG_INFO;

    len = ngx_http_dsa_printable(text, sizeof(text),
                                 data + sizeof(dsa_link_failure_t)
                                 + error.path_len, error.text_len);

    if (er->owner->refused != NULL && (!retry || er->owner->retry != NULL)) {
        ngx_log_error(level, er->request->connection->log, 0,
                      "an engine of pool \"%V\" %s %s \"%V\", because %s: %*s",
                      &er->submit->pool->name,
                      er->accepted ? "ended" : "refused", er->owner->refused,
                      er->id, ngx_http_dsa_slots_reason(error.code), len,
                      text);
    }

    if (er->cancelled || er->failure->status != 0) {
        er->owner->end(er, NGX_HTTP_DSA_ENGINE_LATE);
        return;
    }

    if (retry || ngx_http_dsa_engine_request_continues(er, error.code)) {
        ngx_http_dsa_engine_request_retry(er);
        return;
    }

    if (!er->accepted) {
        ngx_http_dsa_submit_refused(er->submit, data, dsa_str(text, len),
                                    er->request->pool, er->failure);
    }

    if (er->failure->status == 0) {
        ngx_http_dsa_engine_request_failed(er, error.code);
    }

    er->owner->end(er, NGX_HTTP_DSA_ENGINE_FAILED);
}


/* Returns 1 if another engine continues the answer after an error. */

static ngx_uint_t
ngx_http_dsa_engine_request_continues(ngx_http_dsa_engine_request_t *er,
    uint32_t code)
{
    switch (code) {

    case DSA_LINK_E_DRAINING:
        return ngx_http_dsa_engine_request_move(er, 1);

    case DSA_LINK_E_OVERLOADED:
    case DSA_LINK_E_TENANT:

        /* the engine that was to continue the answer has no room */

        return er->moved && !er->link.expect.accepted
               && ngx_http_dsa_engine_request_move(er, 0);

    default:
        return 0;
    }
}


/* Sets the failure after an error that is not the client's. */

static void
ngx_http_dsa_engine_request_failed(ngx_http_dsa_engine_request_t *er,
    uint32_t code)
{
    ngx_http_dsa_failure_t  *failure;

    failure = er->failure;

    switch (code) {

    case DSA_LINK_E_DRAINING:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The engine was stopped before the answer was "
                                 "complete.");
        return;

    /* the engine has removed an accepted request from its full queue */

    case DSA_LINK_E_TENANT:
        ngx_http_dsa_submit_crowded(er->submit, failure);
        return;

    case DSA_LINK_E_OVERLOADED:
        ngx_http_dsa_submit_later(er->submit, failure);
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The engine is overloaded; try again later.");
        failure->code = "overloaded";
        return;

    default:
        ngx_http_dsa_failure_set(failure, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL,
                                 "The engine failed.");
        return;
    }
}


static void
ngx_http_dsa_engine_request_lost(ngx_http_dsa_engine_request_t *er)
{
    if (er->owner->name != NULL) {
        ngx_log_debug4(NGX_LOG_DEBUG_HTTP, er->request->connection->log, 0,
                       "dsa request %V: engine lost, %s %uD, accepted %d",
                       er->id, er->owner->name, er->index, er->accepted);
    }

    if (er->cancelled) {
        er->owner->end(er, NGX_HTTP_DSA_ENGINE_LATE);
        return;
    }

    if (!er->accepted || ngx_http_dsa_engine_request_move(er, 0)) {
        ngx_http_dsa_engine_request_retry(er);
        return;
    }

    ngx_http_dsa_failure_set(er->failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                             "The engine went away before the answer was "
                             "complete.");

    er->owner->end(er, NGX_HTTP_DSA_ENGINE_LOST);
}


/*
 * Returns 1 if another engine may continue an accepted request, whose engine is
 * lost or, with stopped set, has ended the request because it stops.
 */

static ngx_uint_t
ngx_http_dsa_engine_request_move(ngx_http_dsa_engine_request_t *er,
    ngx_uint_t stopped)
{
    if (!er->resumes) {
        return 0;
    }

    if (!er->link.expect.accepted) {
        return 1;
    }

    if (!stopped && !ngx_http_dsa_engine_request_survives(er)) {
        return 0;
    }

    er->stopped = stopped ? 1 : 0;

    /*
     * An engine that was left out before may have room now, or may have been
     * started again.  The one that was stopped is not usable until then.
     */

    er->tried = 0;
    er->moved = 1;

    ngx_http_dsa_usage_record_move(&er->usage, er->ids.len != 0);

    return 1;
}


/*
 * Counts the death of an engine.  Returns 0 if the request may be the cause:
 * the engine that continued it died in the same place, or it has lost too many.
 * The place is that of the last token received, and engines that die of the
 * same token may have sent a few tokens more or less before it.
 */

static ngx_uint_t
ngx_http_dsa_engine_request_survives(ngx_http_dsa_engine_request_t *er)
{
    size_t  place;

    place = er->ids.len / sizeof(uint32_t);

    if (er->deaths != 0
        && (er->deaths == NGX_HTTP_DSA_ENGINE_DEATHS
            || place - er->place < NGX_HTTP_DSA_ENGINE_PLACE))
    {
        ngx_log_error(NGX_LOG_ERR, er->request->connection->log, 0,
                      "dsa: request %V has lost %uD engines, the last two "
                      "after %uz and %uz tokens of its answer; no further one "
                      "gets it", er->id, er->deaths + 1, er->place, place);
        return 0;
    }

    er->deaths++;
    er->place = place;

    return 1;
}


/* The request is submitted to another engine by the next flush. */

static void
ngx_http_dsa_engine_request_retry(ngx_http_dsa_engine_request_t *er)
{
    if (!er->accepted && er->owner->name != NULL) {
        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, er->request->connection->log, 0,
                       "dsa request %V: retried, %s %uD", er->id,
                       er->owner->name, er->index);
    }

    er->pending = 1;

    if (er->owner->retry != NULL) {
        er->owner->retry(er);
    }
}


/*
 * All records were reported; or the handler of the waiter: an engine of the
 * pool became ready, or its connection failed.
 */

static void
ngx_http_dsa_engine_request_flush(void *data)
{
    ngx_http_dsa_engine_request_t *er = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = er->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    er->owner->flush(er);

    ngx_http_run_posted_requests(c);
}


_Static_assert(offsetof(ngx_http_dsa_engine_request_t, link) == 0,
               "a request to an engine is found by its part in the link");
