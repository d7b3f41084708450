
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_http_dsa_chat_stage.h"


static ngx_int_t ngx_http_dsa_request_progress_refuse(
    ngx_http_dsa_request_t *req, const char *why);
static void ngx_http_dsa_request_progress_begun(void *data, const char *why);
static void ngx_http_dsa_request_progress_stopped(void *data);
static void ngx_http_dsa_request_block_reading(ngx_http_request_t *r);
static void ngx_http_dsa_request_reply(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_reply_rest(ngx_http_request_t *r);
static void ngx_http_dsa_request_replied(ngx_http_request_t *r);


ngx_int_t
ngx_http_dsa_request_progress(ngx_http_dsa_request_t *req)
{
    const char                 *why;
    ngx_http_dsa_progress_t    *p;
    ngx_http_dsa_main_conf_t   *mcf;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;

    if (!a->store || a->api->open == NULL) {
        return NGX_DECLINED;
    }

    mcf = ngx_http_get_module_main_conf(req->http, ngx_http_dsa_module);

    a->model = req->asked;
    a->created = ngx_time();

    p = ngx_pcalloc(req->http->pool, sizeof(ngx_http_dsa_progress_t));

    if (p == NULL || a->api->open(a, &p->id) != NGX_OK) {
        ngx_http_dsa_failure_memory(&req->failure);
        return NGX_ERROR;
    }

    p->id.tenant = dsa_str(req->tenant.data, req->tenant.len);
    p->redis = mcf->redis;
    p->request = req->http;
    p->begun = ngx_http_dsa_request_progress_begun;
    p->stopped = ngx_http_dsa_request_progress_stopped;
    p->data = req;

    req->progress = p;

    if (ngx_http_dsa_progress_begin(p, &why) != NGX_OK) {
        return ngx_http_dsa_request_progress_refuse(req, why);
    }

    return a->background ? NGX_AGAIN : NGX_DECLINED;
}


/* A response in the background that cannot be stored would be lost. */

static ngx_int_t
ngx_http_dsa_request_progress_refuse(ngx_http_dsa_request_t *req,
    const char *why)
{
    if (ngx_strcmp(why, DSA_SCHEMA_QUOTA_TEXT) == 0) {
        ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_FORBIDDEN,
                                 "background", "The response cannot be "
                                 "stored: %s.", why);
        req->failure.code = "storage_quota_exceeded";
        return NGX_ERROR;
    }

    ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_SERVICE_UNAVAILABLE,
                             "background", "Responses in the background are "
                             "not available now: %s.", why);
    return NGX_ERROR;
}


static void
ngx_http_dsa_request_progress_begun(void *data, const char *why)
{
    ngx_http_dsa_request_t *req = data;

    if (why != NULL) {
        (void) ngx_http_dsa_request_progress_refuse(req, why);
        ngx_http_dsa_request_fail(req);
        return;
    }

    ngx_http_dsa_chat_next(req);
}


/*
 * The response was cancelled or deleted.  What is computed is charged, and the
 * end of one that is being stored is not stopped: Redis refuses to store it.
 */

static void
ngx_http_dsa_request_progress_stopped(void *data)
{
    ngx_http_dsa_request_t *req = data;

    if (req->saving || req->ended || req->failure.status != 0) {
        return;
    }

    req->cancelled = 1;

    ngx_http_dsa_failure_set(&req->failure, NGX_HTTP_INTERNAL_SERVER_ERROR,
                             NULL, "The response was cancelled.");
    ngx_http_dsa_request_fail(req);
}


void
ngx_http_dsa_request_queued(ngx_http_dsa_request_t *req)
{
    if (req->queued || !req->answer.api->background || !req->answer.accepted) {
        return;
    }

    req->queued = 1;
    req->progress->kept = 1;
    req->stream.keep = 1;
    req->http->read_event_handler = ngx_http_dsa_request_block_reading;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: goes on in the background",
                   &req->ctx.id);

    if (!req->answer.api->stream) {
        ngx_http_dsa_request_reply(req);
        return;
    }

    ngx_http_dsa_idempotency_finish(req->idempotency, 1,
                                    dsa_str(req->ctx.id.data, req->ctx.id.len),
                                    dsa_str(NULL, 0));
}


/*
 * The client does not matter any more.  With HTTP/2 no event for writing comes
 * when it has left, so that what waits for its window would wait for
 * send_timeout.
 */

static void
ngx_http_dsa_request_block_reading(ngx_http_request_t *r)
{
    ngx_http_block_reading(r);

#if (NGX_HTTP_V2)
    if (r->stream != NULL && r->connection->error) {
        r->write_event_handler(r);
    }
#endif
}


/*
 * Sends the response as it is, and the request goes on.  HTTP/1 has no other
 * request on this connection meanwhile, so that the client must not use it
 * again.
 */

static void
ngx_http_dsa_request_reply(ngx_http_dsa_request_t *req)
{
    dsa_buf_t            body;
    ngx_int_t            rc;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = req->http;
    c = r->connection;

    ngx_memzero(&body, sizeof(dsa_buf_t));

    req->answer.api->api->queued(req->answer.api, &body);

    if (body.failed) {
        dsa_buf_free(&body);
        ngx_http_dsa_failure_memory(&req->failure);
        return;
    }

    ngx_http_dsa_idempotency_finish(req->idempotency, 0,
                                    dsa_str(req->ctx.id.data, req->ctx.id.len),
                                    dsa_str(body.data, body.len));

    r->keepalive = 0;

    /* a failure means that the client has left, who does not matter any more */

    rc = ngx_http_dsa_send_json(r, NGX_HTTP_OK, &body);

    req->stream.headers = 1;
    req->stream.gone = 1;

    if (rc == NGX_AGAIN && c->buffered && !c->error) {
        r->write_event_handler = ngx_http_dsa_request_reply_rest;
        ngx_http_dsa_request_reply_rest(r);
        return;
    }

    ngx_http_dsa_request_replied(r);
}


static void
ngx_http_dsa_request_reply_rest(ngx_http_request_t *r)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (wev->timedout || ngx_http_output_filter(r, NULL) == NGX_ERROR
        || !c->buffered
        || ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK)
    {
        ngx_http_dsa_request_replied(r);
        return;
    }

    ngx_add_timer(wev, clcf->send_timeout);
}


/* nginx closes the connection at the end of the request. */

static void
ngx_http_dsa_request_replied(ngx_http_request_t *r)
{
    ngx_connection_t  *c;

    c = r->connection;

    c->error = 1;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }
}


void
ngx_http_dsa_request_events(ngx_http_dsa_request_t *req)
{
    dsa_buf_t  *b;

    b = &req->stream.pending;

    if (req->progress != NULL && req->answer.api->stream && !req->ended
        && !b->failed && b->len > req->taken)
    {
        ngx_http_dsa_progress_text(req->progress, b->data + req->taken,
                                   b->len - req->taken);
        req->taken = b->len;
    }
}


void
ngx_http_dsa_request_store(ngx_http_dsa_request_t *req)
{
    if (req->progress != NULL) {
        ngx_http_dsa_request_events(req);
        ngx_http_dsa_progress_flush(req->progress);
    }
}


void
ngx_http_dsa_request_stored(ngx_http_dsa_request_t *req)
{
    if (req->progress != NULL) {
        req->progress->stored = 1;
    }
}


void
ngx_http_dsa_request_progress_end(ngx_http_dsa_request_t *req)
{
    const char  *why;

    if (req->progress == NULL) {
        return;
    }

    why = req->failure.status != 0 ? req->failure.text
          : req->answer.api->unsaved != NULL ? req->answer.api->unsaved
          : "The server ended the request before its answer was complete.";

    ngx_http_dsa_progress_end(req->progress, why);
}
