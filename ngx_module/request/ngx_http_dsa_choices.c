
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_choices.h"


/* The parts of a choice that the first choice has in the request itself. */

typedef struct {
    ngx_http_dsa_answer_t     answer;
    ngx_http_dsa_retention_t  retention;
} ngx_http_dsa_choice_parts_t;


static ngx_int_t ngx_http_dsa_choices_add_one(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_usage_call_t *call);
static ngx_http_dsa_api_answer_t *ngx_http_dsa_choices_api(
    ngx_http_dsa_choices_t *choices, uint32_t index);
static ngx_int_t ngx_http_dsa_choices_submit_one(ngx_http_dsa_choice_t *choice,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure);
static ngx_int_t ngx_http_dsa_choices_send(ngx_http_dsa_choice_t *choice,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure);
static ngx_int_t ngx_http_dsa_choices_submit_others(
    ngx_http_dsa_choices_t *choices, ngx_http_dsa_submit_t *submit,
    ngx_http_dsa_failure_t *failure);


void
ngx_http_dsa_choices_init(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_usage_call_t *call, ngx_http_dsa_answer_t *answer,
    ngx_http_dsa_retention_t *retention)
{
    choices->first.choices = choices;
    choices->first.call = call;
    choices->first.answer = answer;
    choices->first.retention = retention;

    choices->elts = &choices->first;
    choices->n = 1;
    choices->writer = &choices->first;
}


ngx_int_t
ngx_http_dsa_choices_add(ngx_http_dsa_choices_t *choices, ngx_uint_t others,
    ngx_http_dsa_usage_record_t *record)
{
    ngx_uint_t              i;
    ngx_http_dsa_choice_t  *elts;

    assert(choices->n == 1);

    if (others == 0) {
        return NGX_OK;
    }

    elts = ngx_pcalloc(choices->pool,
                       (1 + others) * sizeof(ngx_http_dsa_choice_t));

    if (elts == NULL
        || ngx_http_dsa_usage_record_add(record, others, choices->pool->log)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    elts[0] = choices->first;

    choices->elts = elts;
    choices->writer = elts;
    record->first.call.data = elts;

    for (i = 0; i < others; i++) {
        if (ngx_http_dsa_choices_add_one(choices, &record->others[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_choices_add_one(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_usage_call_t *call)
{
    ngx_http_dsa_choice_t        *choice, *first;
    ngx_http_dsa_choice_parts_t  *parts;

    parts = ngx_pcalloc(choices->pool, sizeof(ngx_http_dsa_choice_parts_t));
    if (parts == NULL) {
        return NGX_ERROR;
    }

    first = &choices->elts[0];
    choice = &choices->elts[choices->n];

    choice->choices = choices;
    choice->call = call;
    choice->answer = &parts->answer;
    choice->retention = &parts->retention;
    choice->submit = 1;

    call->call.handler = first->call->call.handler;
    call->call.data = choice;

    ngx_http_dsa_retention_other(choice->retention, first->retention);

    choice->answer->family = first->answer->family;
    choice->answer->tools = first->answer->tools;
    choice->answer->start = first->answer->start;

    if (first->answer->sampled != NULL) {
        choice->answer->sampled = &choice->retention->sampled;
    }

    choice->answer->api = ngx_http_dsa_choices_api(choices, choices->n);

    choices->n++;

    return choice->answer->api != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_http_dsa_api_answer_t *
ngx_http_dsa_choices_api(ngx_http_dsa_choices_t *choices, uint32_t index)
{
    ngx_http_dsa_api_answer_t  *a, *first;

    first = choices->elts[0].answer->api;

    a = first->api->choice(first, choices->pool);
    if (a == NULL) {
        return NULL;
    }

    a->index = index;
    a->next = NULL;
    a->message = NULL;

    choices->elts[index - 1].answer->api->next = a;

    if (first->message != NULL) {
        a->message = ngx_pcalloc(choices->pool,
                                 sizeof(ngx_http_dsa_message_t));
        if (a->message == NULL) {
            a->api->free(a);
            return NULL;
        }
    }

    return a;
}


ngx_int_t
ngx_http_dsa_choices_submit(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure)
{
    ngx_int_t               rc;
    ngx_http_dsa_choice_t  *first;

    if (submit->waiter.queued) {

        /* the waiter's handler submits the rest */

        return NGX_OK;
    }

    first = &choices->elts[0];

    if (!first->submit) {
        return ngx_http_dsa_choices_submit_others(choices, submit, failure);
    }

    rc = ngx_http_dsa_choices_submit_one(first, submit, failure);

    return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


/* Submits one choice; returns what ngx_http_dsa_submit() does. */

static ngx_int_t
ngx_http_dsa_choices_submit_one(ngx_http_dsa_choice_t *choice,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure)
{
    ngx_int_t             rc;
    ngx_log_t            *log;
    ngx_str_t            *id;
    ngx_http_dsa_call_t  *call;

    log = choice->choices->pool->log;
    id = &choice->answer->api->id;
    call = &choice->call->call;

    assert(call->session == NULL);

    /*
     * The call may still be in the FLUSH queue of its last session: several
     * calls can end before the first FLUSH, which submits all of them again.
     * It has to leave this queue before it gets another session.
     */

    ngx_http_dsa_call_untouch(call);

    rc = ngx_http_dsa_choices_send(choice, submit, failure);

    if (rc == NGX_OK) {
        choice->submit = 0;

        if (!submit->count) {
            ngx_http_dsa_usage_record_submitted(choice->call->record);
        }

        ngx_log_debug5(NGX_LOG_DEBUG_HTTP, log, 0,
                       "dsa request %V: submitted, choice %uD, to engine "
                       "\"%V\" as %xL, route \"%V\"", id,
                       choice->answer->api->index, &call->session->name,
                       call->id, &submit->route);

    } else if (rc == NGX_AGAIN) {
        ngx_log_debug1(NGX_LOG_DEBUG_HTTP, log, 0,
                       "dsa request %V: waits for the first hello", id);
    }

    return rc;
}


/*
 * Submits the prompt, with the answer so far if an engine has accepted the
 * choice before.
 */

static ngx_int_t
ngx_http_dsa_choices_send(ngx_http_dsa_choice_t *choice,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure)
{
    uint32_t              index;
    ngx_int_t             rc;
    ngx_http_dsa_call_t  *call;

    call = &choice->call->call;
    index = choice->answer->api->index;

    if (!choice->moved) {
        submit->index = index;
        submit->tried = choice->tried;

        rc = ngx_http_dsa_submit(submit, call, failure);

        choice->tried = submit->tried;

        return rc;
    }

    rc = ngx_http_dsa_resume_submit(choice->choices->resume, submit->pool,
                                    &choice->tried, index, &choice->ids, call);

    if (rc != NGX_OK) {
        ngx_http_dsa_failure_set(failure, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                 "The engine %s before the answer was "
                                 "complete, and no other engine can continue "
                                 "it.", choice->stopped ? "was stopped"
                                                        : "went away");
        return NGX_ERROR;
    }

    ngx_http_dsa_metrics_add(resumed, 1);

    ngx_log_error(NGX_LOG_WARN, choice->choices->pool->log, 0,
                  "engine \"%V\" continues choice %uD of the answer after %uz "
                  "tokens", &call->session->name, index,
                  choice->ids.len / sizeof(uint32_t));

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_choices_submit_others(ngx_http_dsa_choices_t *choices,
    ngx_http_dsa_submit_t *submit, ngx_http_dsa_failure_t *failure)
{
    ngx_int_t                rc;
    ngx_uint_t               i;
    ngx_http_dsa_choice_t   *choice;
    ngx_http_dsa_failure_t   why;

    if (!choices->submit) {
        return NGX_OK;
    }

    choices->submit = 0;

    for (i = 1; i < choices->n; i++) {
        choice = &choices->elts[i];

        if (!choice->submit || choice->answer->complete) {
            continue;
        }

        ngx_memzero(&why, sizeof(ngx_http_dsa_failure_t));

        rc = ngx_http_dsa_choices_submit_one(choice, submit, &why);

        if (rc == NGX_OK) {
            continue;
        }

        if (rc == NGX_AGAIN) {
            choices->submit = 1;
            return NGX_OK;
        }

        if (ngx_http_dsa_usage_record_live(choice->call->record) == 0) {
            *failure = why;
            return NGX_ERROR;
        }

        /*
         * The end of a choice sets choices->submit, so all engines are tried
         * again.
         */

        for ( /* void */ ; i < choices->n; i++) {
            if (choices->elts[i].submit) {
                choices->elts[i].tried = 0;
            }
        }

        return NGX_OK;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_choices_start(ngx_http_dsa_choice_t *choice, uint32_t vocabulary)
{
    ngx_http_dsa_usage_t        usage;
    ngx_http_dsa_choices_t     *choices;
    ngx_http_dsa_api_answer_t  *a, *first;

    choices = choice->choices;
    first = choices->elts[0].answer->api;
    a = choice->answer->api;

    if (a != first) {
        a->model = first->model;
        a->created = first->created;
        a->fingerprint = first->fingerprint;
    }

    ngx_memzero(&usage, sizeof(ngx_http_dsa_usage_t));

    ngx_http_dsa_usage_record_prompt(choice->call->record, &usage);

    return ngx_http_dsa_answer_start(choice->answer, choices->pool, vocabulary,
                                     &usage);
}


ngx_int_t
ngx_http_dsa_choices_hold(ngx_http_dsa_choice_t *choice,
    const ngx_http_dsa_submit_t *submit)
{
    ngx_http_dsa_choices_t  *choices;
    ngx_http_dsa_session_t  *s;

    choices = choice->choices;
    s = choice->call->call.session;

    if (choices->resume == NULL) {

        /*
         * An engine that continues would send the rows of the rollout from the
         * prompt on again.
         */

        if (submit->pool->sessions.nelts == 1 || submit->chat->rollout) {
            return NGX_OK;
        }

        choices->resume = ngx_http_dsa_resume_create(submit, s,
                                                     choices->pool->log);
        if (choices->resume == NULL) {
            return NGX_ERROR;
        }
    }

    choice->resumes = ngx_http_dsa_resume_fits(choices->resume, s);

    return NGX_OK;
}


ngx_int_t
ngx_http_dsa_choices_tokens(ngx_http_dsa_choice_t *choice, uint32_t n,
    const u_char *tokens)
{
    uint32_t          i;
    dsa_link_token_t  token;

    if (!choice->resumes) {
        return NGX_OK;
    }

    for (i = 0; i < n; i++) {
        ngx_memcpy(&token, tokens + i * sizeof(dsa_link_token_t),
                   sizeof(dsa_link_token_t));

        dsa_buf_add(&choice->ids, &token.id, sizeof(uint32_t));
    }

    return choice->ids.failed ? NGX_ERROR : NGX_OK;
}


ngx_uint_t
ngx_http_dsa_choices_move(ngx_http_dsa_choice_t *choice, ngx_uint_t stopped)
{
    if (!choice->resumes) {
        return 0;
    }

    if (choice->call->call.expect.accepted) {

        if (!stopped && choice->lost) {
            return 0;
        }

        choice->lost |= !stopped;
        choice->stopped = stopped ? 1 : 0;

        /*
         * An engine that was left out before may have room now, or may have
         * been started again.  The one that was stopped is not usable until
         * then.
         */

        choice->tried = 0;
        choice->moved = 1;

        ngx_http_dsa_usage_record_move(choice->call, choice->ids.len != 0);
    }

    choice->submit = 1;
    choice->choices->submit = 1;

    return 1;
}


void
ngx_http_dsa_choices_write(ngx_http_dsa_choice_t *choice)
{
    ngx_http_dsa_choices_t     *choices;
    ngx_http_dsa_api_answer_t  *a;

    choices = choice->choices;

    if (choices->writer == choice) {
        return;
    }

    a = choices->writer->answer->api;
    choices->writer = choice;

    if (a->stream) {
        a->api->close(a);
    }
}


ngx_uint_t
ngx_http_dsa_choices_accepted(const ngx_http_dsa_choices_t *choices)
{
    ngx_uint_t  i;

    for (i = 0; i < choices->n; i++) {
        if (!choices->elts[i].answer->accepted) {
            return 0;
        }
    }

    return 1;
}


void
ngx_http_dsa_choices_end(ngx_http_dsa_choices_t *choices)
{
    ngx_uint_t                  i, left;
    ngx_http_dsa_choice_t      *choice;
    ngx_http_dsa_api_answer_t  *a;

    left = 0;

    for (i = 0; i < choices->n; i++) {
        left += !choices->elts[i].ended;
    }

    for (i = 0; i < choices->n; i++) {
        choice = &choices->elts[i];

        if (choice->ended || !choice->answer->complete) {
            continue;
        }

        a = choice->answer->api;

        if (choice->answer->reason == NGX_HTTP_DSA_FINISH_TOOL_CALLS) {
            ngx_http_dsa_retention_save(choice->retention, a->call_id);
        }

        if (left == 1) {
            choices->last = choice;
            return;
        }

        if (a->stream) {
            ngx_http_dsa_stream_prepare(choices->stream);
            ngx_http_dsa_choices_write(choice);
            a->api->end(a, choice->answer->reason);
        }

        choice->ended = 1;
        left--;
    }
}


void
ngx_http_dsa_choices_free(ngx_http_dsa_choices_t *choices)
{
    ngx_uint_t  i;

    for (i = 0; i < choices->n; i++) {
        ngx_http_dsa_answer_free(choices->elts[i].answer);
        ngx_http_dsa_retention_free(choices->elts[i].retention);
        dsa_buf_free(&choices->elts[i].ids);
    }

    ngx_http_dsa_resume_free(choices->resume);
    choices->resume = NULL;
}
