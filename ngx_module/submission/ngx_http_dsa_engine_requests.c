
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include "ngx_module/engine/ngx_http_dsa_session.h"
#include "ngx_http_dsa_engine_request.h"


/* The requests to engines of a chat: their end. */

static void ngx_http_dsa_engine_requests_own(
    ngx_http_dsa_engine_requests_t *set,
    const ngx_http_dsa_engine_owner_t *owner);
static void ngx_http_dsa_engine_requests_flush(
    ngx_http_dsa_engine_request_t *er);
static void ngx_http_dsa_engine_requests_timer_handler(ngx_event_t *ev);
static void ngx_http_dsa_engine_requests_drained(
    ngx_http_dsa_engine_requests_t *set);
static void ngx_http_dsa_engine_requests_end(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end);
static void ngx_http_dsa_engine_requests_free(
    ngx_http_dsa_engine_requests_t *set);


/* What engines report is counted until the last request has ended. */

static const ngx_http_dsa_engine_owner_t  ngx_http_dsa_engine_requests_drains =
{
    .end = ngx_http_dsa_engine_requests_end,
    .flush = ngx_http_dsa_engine_requests_flush
};


/* Nothing is counted any more. */

static const ngx_http_dsa_engine_owner_t  ngx_http_dsa_engine_requests_left = {
    .end = ngx_http_dsa_engine_requests_end
};


ngx_http_dsa_engine_requests_t *
ngx_http_dsa_engine_requests_create(ngx_http_dsa_redis_t *redis,
    ngx_str_t *tenant, ngx_str_t *id, ngx_log_t *log)
{
    ngx_http_dsa_engine_requests_t  *set;

    set = ngx_calloc(sizeof(ngx_http_dsa_engine_requests_t), log);
    if (set == NULL) {
        return NULL;
    }

    ngx_http_dsa_usage_record_init(&set->record, redis, tenant, id);

    set->first.set = set;
    set->first.usage.record = &set->record;
    set->first.usage.prompt = 1;

    return set;
}


ngx_int_t
ngx_http_dsa_engine_requests_add(ngx_http_dsa_engine_requests_t *set,
    ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t                      i;
    ngx_http_dsa_engine_request_t  *others;

    assert(set->others == NULL);

    others = ngx_calloc(n * sizeof(ngx_http_dsa_engine_request_t), log);
    if (others == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        others[i].set = set;
        others[i].next = i + 1 < n ? &others[i + 1] : NULL;
        others[i].usage.record = &set->record;
    }

    set->others = others;
    set->first.next = others;

    return NGX_OK;
}


ngx_uint_t
ngx_http_dsa_engine_requests_live(const ngx_http_dsa_engine_requests_t *set)
{
    ngx_uint_t                            n;
    const ngx_http_dsa_engine_request_t  *er;

    n = 0;

    for (er = &set->first; er != NULL; er = er->next) {
        n += er->link.session != NULL;
    }

    return n;
}


ngx_uint_t
ngx_http_dsa_engine_requests_charged(
    const ngx_http_dsa_engine_requests_t *set)
{
    return !set->record.written && !set->first.link.expect.count
           && ngx_http_dsa_engine_requests_live(set) != 0;
}


void
ngx_http_dsa_engine_requests_cancel(ngx_http_dsa_engine_requests_t *set)
{
    ngx_http_dsa_engine_request_t  *er;

    if (set->first.link.expect.count) {
        ngx_http_dsa_engine_request_abandon(&set->first);
        return;
    }

    for (er = &set->first; er != NULL; er = er->next) {
        ngx_http_dsa_engine_request_cancel(er);
    }
}


void
ngx_http_dsa_engine_requests_leave(ngx_http_dsa_engine_requests_t *set)
{
    ngx_http_dsa_engine_request_t  *er;

    ngx_http_dsa_engine_requests_own(set, &ngx_http_dsa_engine_requests_left);

    for (er = &set->first; er != NULL; er = er->next) {
        ngx_http_dsa_link_request_untouch(&er->link);

        er->usage.record = NULL;
    }
}


/* Without an owner that submits it, a request does not continue. */

static void
ngx_http_dsa_engine_requests_own(ngx_http_dsa_engine_requests_t *set,
    const ngx_http_dsa_engine_owner_t *owner)
{
    ngx_http_dsa_engine_request_t  *er;

    for (er = &set->first; er != NULL; er = er->next) {
        er->owner = owner;
        er->link.data = owner->flush != NULL ? er : NULL;
        er->cancelled = 1;
        er->resumes = 0;

        dsa_buf_free(&er->ids);
    }

    ngx_http_dsa_resume_free(set->resume);
    set->resume = NULL;
}


void
ngx_http_dsa_engine_requests_drain(ngx_http_dsa_engine_requests_t *set,
    ngx_msec_t ms, void (*drained)(void *data), void *data)
{
    assert(!set->record.written && set->drained == NULL);
    assert(ngx_http_dsa_engine_requests_live(set) != 0);

    set->drained = drained;
    set->data = data;

    ngx_http_dsa_engine_requests_own(set, &ngx_http_dsa_engine_requests_drains);

    /*
     * This timer makes a worker that shuts down wait for the report.  nginx
     * reads through data when it logs a timer at the debug level.
     */

    set->drain.handler = ngx_http_dsa_engine_requests_timer_handler;
    set->drain.data = set;
    set->drain.log = ngx_cycle->log;

    ngx_add_timer(&set->drain, ms);
}


static void
ngx_http_dsa_engine_requests_flush(ngx_http_dsa_engine_request_t *er)
{
    if (ngx_http_dsa_engine_requests_live(er->set) == 0) {
        ngx_http_dsa_engine_requests_drained(er->set);
    }
}


static void
ngx_http_dsa_engine_requests_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t                *c;
    ngx_http_dsa_engine_requests_t  *set = ev->data;

    c = set->first.request->connection;

    ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                  "an engine has not ended the cancelled request \"%V\" in "
                  "time; it is charged with the tokens that were received",
                  set->first.id);

    ngx_http_set_log_request(c->log, set->first.request);

    ngx_http_dsa_engine_requests_drained(set);

    ngx_http_run_posted_requests(c);
}


/* Writes the usage.  The chat may free the set. */

static void
ngx_http_dsa_engine_requests_drained(ngx_http_dsa_engine_requests_t *set)
{
    if (set->drain.timer_set) {
        ngx_del_timer(&set->drain);
    }

    ngx_http_dsa_engine_requests_leave(set);
    ngx_http_dsa_usage_record_close(&set->record);

    set->drained(set->data);
}


void
ngx_http_dsa_engine_requests_detach(ngx_http_dsa_engine_requests_t *set)
{
    ngx_http_dsa_engine_requests_leave(set);

    if (set->drain.timer_set) {
        ngx_del_timer(&set->drain);
    }

    if (!set->record.written) {
        ngx_http_dsa_usage_record_close(&set->record);
    }

    set->detached = 1;

    if (ngx_http_dsa_engine_requests_live(set) == 0) {
        ngx_http_dsa_engine_requests_free(set);
    }
}


static void
ngx_http_dsa_engine_requests_end(ngx_http_dsa_engine_request_t *er,
    ngx_http_dsa_engine_end_e end)
{
    if (er->set->detached && ngx_http_dsa_engine_requests_live(er->set) == 0) {
        ngx_http_dsa_engine_requests_free(er->set);
    }
}


static void
ngx_http_dsa_engine_requests_free(ngx_http_dsa_engine_requests_t *set)
{
    assert(set->record.written && !set->first.link.touched);

    ngx_free(set->others);
    ngx_free(set);
}
