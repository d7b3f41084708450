
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <assert.h>

#include <openssl/rand.h>

#include "ngx_module/account/ngx_http_dsa_access.h"
#include "ngx_module/account/ngx_http_dsa_closed.h"
#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/http/ngx_http_dsa_trace.h"
#include "ngx_http_dsa_request.h"


#define NGX_HTTP_DSA_ID_BYTES     16        /* random bytes of an id */

/*
 * ms; an engine ends a cancelled request within one step.  No client waits for
 * this one.
 */

#define NGX_HTTP_DSA_DRAIN        5000


_Static_assert(NGX_HTTP_DSA_API_ID_PREFIX + 2 * NGX_HTTP_DSA_ID_BYTES
               <= NGX_HTTP_DSA_ID_LEN, "a usage record holds every id");
_Static_assert(NGX_HTTP_DSA_ID_LEN <= DSA_LINK_MAX_REQUEST,
               "the link carries every id");


static ngx_int_t ngx_http_dsa_request_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest);
static void ngx_http_dsa_request_key(ngx_http_dsa_request_t *req);
static ngx_int_t ngx_http_dsa_request_id_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api);
static void ngx_http_dsa_request_failed(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_finalize(ngx_http_dsa_request_t *req,
    ngx_int_t rc);
static void ngx_http_dsa_request_drain(ngx_http_dsa_request_t *req,
    ngx_msec_t ms);
static void ngx_http_dsa_request_drained(void *data);
static void ngx_http_dsa_request_cancel(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_detach(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_release(ngx_http_dsa_request_t *req);
static void ngx_http_dsa_request_cleanup(void *data);
static void ngx_http_dsa_request_free(void *data);


ngx_http_dsa_request_t *
ngx_http_dsa_request_create(ngx_http_request_t *r,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest)
{
    ngx_http_cleanup_t       *cln;
    ngx_http_dsa_request_t   *req;

    /*
     * Not in a block of the pool, because the rest of the block would be too
     * small for what a stream needs, and a third block would be allocated.
     */

    req = ngx_pmemalign(r->pool, sizeof(ngx_http_dsa_request_t), NGX_ALIGNMENT);
    if (req == NULL) {
        return NULL;
    }

    ngx_memzero(req, sizeof(ngx_http_dsa_request_t));

    req->http = r;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_dsa_request_cleanup;
    cln->data = req;

    ngx_http_dsa_metrics_add(in_flight, 1);

    if (ngx_http_dsa_request_init(req, api, tenant, digest) != NGX_OK) {
        return NULL;
    }

    req->ctx.request = req;
    req->ctx.stream = &req->stream;

    ngx_http_set_ctx(r, &req->ctx, ngx_http_dsa_module);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "dsa request %V: received, tenant \"%V\"",
                   &req->ctx.id, &req->tenant);

    return req;
}


static ngx_int_t
ngx_http_dsa_request_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api, ngx_str_t *tenant, u_char *digest)
{
    ngx_http_request_t        *r;
    ngx_http_dsa_loc_conf_t   *dlcf;
    ngx_http_dsa_main_conf_t  *mcf;

    r = req->http;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);
    mcf = ngx_http_get_module_main_conf(r, ngx_http_dsa_module);

    if (ngx_http_dsa_request_id_init(req, api) != NGX_OK) {
        return NGX_ERROR;
    }

    req->tenant = *tenant;
    req->reason = NGX_HTTP_DSA_CANCEL_CLIENT;

    req->answer.start = ngx_current_msec;
    req->timer.deadline = req->answer.start + dlcf->timeout;

    req->retention.mode = dlcf->retention;
    req->retention.ttl = dlcf->retention_ttl;
    req->retention.redis = mcf->redis;
    req->retention.tenant = *tenant;
    req->retention.id = req->ctx.id;

    req->submit.pool = dlcf->pool;
    req->submit.param = api->prompt;
    req->submit.id = req->ctx.id;

    if (ngx_http_dsa_trace_parent(r, &req->submit.trace) != NGX_OK
        || ngx_http_dsa_trace_client(r, &req->submit.client) != NGX_OK)
    {
        return NGX_ERROR;
    }

    req->submit.deadline = req->timer.deadline;
    req->submit.private = (tenant->len == 0);
    req->submit.count = (api->count != 0);
    ngx_memcpy(req->submit.digest, digest, NGX_HTTP_DSA_DIGEST_LEN);

    req->answer.api = api->create(r->pool);
    if (req->answer.api == NULL) {
        return NGX_ERROR;
    }

    req->answer.api->api = api;
    req->answer.api->out = &req->stream.pending;
    req->answer.api->id = req->ctx.id;
    req->answer.api->secret = mcf->secret;
    req->answer.api->digest = req->submit.digest;

    req->requests = ngx_http_dsa_engine_requests_create(mcf->redis, tenant,
                                                        &req->ctx.id,
                                                        r->connection->log);
    if (req->requests == NULL) {
        return NGX_ERROR;
    }

    ngx_http_dsa_usage_record_prices(&req->requests->record, mcf->prices,
                                     r->start_sec);
    ngx_http_dsa_request_key(req);

    req->work.request = r;
    req->work.digest = req->submit.digest;
    req->work.failure = &req->failure;

    req->choices.pool = r->pool;
    req->choices.stream = &req->stream;
    req->choices.data = req;

    ngx_http_dsa_choices_init(&req->choices, &req->requests->first,
                              &req->answer, &req->retention);

    return NGX_OK;
}


/* Moves the permit of the key to the usage record, which charges the key. */

static void
ngx_http_dsa_request_key(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_access_t  *access;

    access = ngx_http_dsa_access_find(req->http);

    if (access == NULL) {
        req->submit.weight = DSA_KEY_WEIGHT;
        req->submit.priority = DSA_KEY_NORMAL;
        return;
    }

    req->submit.weight = access->view.weight;
    req->submit.priority = access->view.priority;

    ngx_http_dsa_usage_record_key(&req->requests->record, access->view.id);

    if (access->permit != NULL) {
        ngx_http_dsa_limit_move(&req->requests->record.permit, access->permit);
    }
}


/* Makes the id of the answer, and the seed for a request without "seed". */

static ngx_int_t
ngx_http_dsa_request_id_init(ngx_http_dsa_request_t *req,
    const ngx_http_dsa_api_t *api)
{
    u_char      noise[NGX_HTTP_DSA_ID_BYTES + sizeof(uint64_t)], *p;
    ngx_str_t  *id;

    id = &req->ctx.id;

    assert(api->id_prefix.len <= NGX_HTTP_DSA_API_ID_PREFIX);

    p = ngx_pnalloc(req->http->pool, NGX_HTTP_DSA_ID_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (RAND_bytes(noise, sizeof(noise)) != 1) {
        ngx_log_error(NGX_LOG_ERR, req->http->connection->log, 0,
                      "RAND_bytes() failed");
        return NGX_ERROR;
    }

    id->data = p;

    p = ngx_cpymem(p, api->id_prefix.data, api->id_prefix.len);
    p = ngx_hex_dump(p, noise, NGX_HTTP_DSA_ID_BYTES);

    id->len = p - id->data;

    ngx_memcpy(&req->submit.seed, noise + NGX_HTTP_DSA_ID_BYTES,
               sizeof(uint64_t));

    return NGX_OK;
}


ngx_http_dsa_request_t *
ngx_http_dsa_request_open(ngx_http_request_t *r)
{
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    return ctx != NULL && ctx->request->requests != NULL
           && !ctx->request->draining
           ? ctx->request : NULL;
}


void
ngx_http_dsa_request_work(ngx_http_dsa_request_t *req,
    ngx_http_dsa_stage_e stage, ngx_http_dsa_work_pt run,
    ngx_http_dsa_work_pt done, void *data)
{
    ngx_int_t  rc;

    rc = ngx_http_dsa_work(&req->work, stage, req->submit.bytes, run, done,
                           data);

    if (rc == NGX_OK) {
        done(data);

    } else if (rc == NGX_ERROR) {
        ngx_http_dsa_request_fail(req);
    }
}


void
ngx_http_dsa_request_refuse(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_failure_refused(&req->failure, req->http->pool, req->refusal);
}


void
ngx_http_dsa_request_fail(ngx_http_dsa_request_t *req)
{
    ngx_http_request_t  *r;

    r = req->http;

    if (req->draining) {
        return;
    }

    req->answer.finish = req->cancelled ? "cancelled" : "error";

    ngx_http_dsa_lease_release(&req->conversation.lease);

    if (!req->stream.headers
        && req->failure.status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
    {
        ngx_http_dsa_usage_record_waive(&req->requests->record);
    }

    if (ngx_http_dsa_engine_requests_live(req->requests) != 0
        && req->reason == NGX_HTTP_DSA_CANCEL_CLIENT && !req->cancelled)
    {
        req->reason = NGX_HTTP_DSA_CANCEL_ERROR;
    }

    /* at the timeout the engine had its time */

    if (ngx_http_dsa_engine_requests_charged(req->requests)
        && !req->timer.expired)
    {
        ngx_http_dsa_request_drain(req, NGX_HTTP_DSA_GRACE);
        return;
    }

    if (!req->requests->record.written) {
        ngx_http_dsa_usage_record_close(&req->requests->record);
    }

    if (!req->stream.headers) {
        req->ended = 1;
        ngx_http_dsa_request_finalize(req,
                                 ngx_http_dsa_send_failure(r, &req->failure));
        return;
    }

    if (!req->ended) {
        req->ended = 1;
        ngx_http_dsa_request_failed(req);
    }

    /*
     * Keep the connection open: the headers did not announce that it would be
     * closed, so the client may have sent its next request already.
     */

    ngx_http_dsa_request_output(req, 1);
}


/* Writes the text of a failure after the headers were sent. */

static void
ngx_http_dsa_request_failed(ngx_http_dsa_request_t *req)
{
    ngx_uint_t                  level;
    ngx_http_dsa_failure_t     *failure;
    ngx_http_dsa_api_error_t    error;
    ngx_http_dsa_api_answer_t  *a;

    a = req->answer.api;
    failure = &req->failure;

    level = failure->status >= NGX_HTTP_INTERNAL_SERVER_ERROR
            && !req->cancelled ? NGX_LOG_ERR : NGX_LOG_INFO;

    ngx_log_error(level, req->http->connection->log, 0,
                  "the answer to request \"%V\" ends with the error %ui: %s",
                  &req->ctx.id, failure->status, failure->text);

    ngx_http_dsa_stream_prepare(&req->stream);

    if (a->stream && req->answer.accepted) {
        a->api->close(req->choices.writer->answer->api);
    }

    ngx_memzero(&error, sizeof(ngx_http_dsa_api_error_t));

    error.status = failure->status;
    error.code = failure->code;
    error.param = failure->param;
    error.message = failure->text;
    error.id = req->ctx.id;
    error.prompt_tokens = failure->prompt_tokens;
    error.context = failure->context;

    if (a->stream && a->api->fail != NULL) {
        a->api->fail(a, &error);

    } else {
        a->api->error(a->out, &error, a->stream);
    }
}


void
ngx_http_dsa_request_output(ngx_http_dsa_request_t *req, ngx_uint_t last)
{
    ngx_int_t                   rc;
    const char                 *type;
    ngx_http_request_t         *r;
    ngx_http_dsa_api_answer_t  *a;

    r = req->http;
    a = req->answer.api;

    if (!req->stream.headers) {

        if (last && !a->stream) {
            ngx_http_dsa_request_finalize(req,
                                 ngx_http_dsa_send_json(r, NGX_HTTP_OK,
                                                        &req->stream.pending));
            return;
        }

        type = a->stream ? a->api->stream_type : "application/json";

        if (ngx_http_dsa_stream_start(&req->stream, type, a->stream)
            != NGX_OK)
        {
            ngx_http_dsa_request_leave(req, NGX_ERROR);
            return;
        }
    }

    ngx_http_dsa_request_events(req);

    rc = ngx_http_dsa_stream_send(&req->stream, last);

    /* what was not moved is pending, and taken */

    req->taken = req->stream.pending.len;

    switch (rc) {

    case NGX_DONE:
        ngx_http_dsa_request_finalize(req, NGX_OK);
        return;

    case NGX_DECLINED:
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "the client of request \"%V\" is too slow: %uz bytes "
                      "wait for it", &req->ctx.id, req->stream.pending.len);

        /* fall through */

    case NGX_ERROR:
        ngx_http_dsa_request_leave(req, NGX_ERROR);
        return;

    default: /* NGX_OK, NGX_AGAIN */
        return;
    }
}


void
ngx_http_dsa_request_reading(ngx_http_request_t *r)
{
    ngx_http_dsa_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_dsa_module);

    if (ngx_http_dsa_closed(r)) {
        ngx_http_dsa_request_leave(ctx->request,
                                   NGX_HTTP_CLIENT_CLOSED_REQUEST);
    }
}


void
ngx_http_dsa_request_leave(ngx_http_dsa_request_t *req, ngx_int_t rc)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = req->http;
    c = r->connection;

    if (req->leaving) {
        return;
    }

    if (req->requests == NULL
        || !ngx_http_dsa_engine_requests_charged(req->requests))
    {
        ngx_http_dsa_request_finalize(req, rc);
        return;
    }

    req->leaving = 1;
    req->rc = rc;

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (c->write->timer_set) {
        ngx_del_timer(c->write);
    }

    ngx_http_dsa_timer_stop(&req->timer);
    ngx_http_dsa_stream_drop(&req->stream);

    if (!req->draining) {
        ngx_http_dsa_request_drain(req, NGX_HTTP_DSA_DRAIN);
    }

    if (!ngx_http_dsa_work_runs(&req->work)) {
        ngx_http_dsa_request_release(req);
    }
}


/*
 * Cancels the requests to engines, and waits up to ms milliseconds until they
 * have ended.
 */

static void
ngx_http_dsa_request_drain(ngx_http_dsa_request_t *req, ngx_msec_t ms)
{
    req->draining = 1;

    ngx_http_dsa_request_cancel(req);

    ngx_http_dsa_engine_requests_drain(req->requests, ms,
                                       ngx_http_dsa_request_drained, req);
}


static void
ngx_http_dsa_request_drained(void *data)
{
    ngx_http_dsa_request_t *req = data;

    req->draining = 0;

    if (req->leaving) {
        ngx_http_dsa_request_finalize(req, req->rc);

    } else {
        ngx_http_dsa_request_fail(req);
    }
}


static void
ngx_http_dsa_request_finalize(ngx_http_dsa_request_t *req, ngx_int_t rc)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, req->http->connection->log, 0,
                   "dsa request %V: finalized with %i", &req->ctx.id, rc);

    /*
     * nginx keeps a request of which a thread uses the memory, if it terminates
     * the request.  It does so with these codes only.
     */

    assert(req->work.job == NULL || rc == NGX_ERROR
           || rc == NGX_HTTP_REQUEST_TIME_OUT
           || rc == NGX_HTTP_CLIENT_CLOSED_REQUEST
           || req->http->connection->error);

    /* nginx sends the rest with a timer of its own */

    ngx_http_dsa_timer_stop(&req->timer);

    /*
     * While the client reads the rest, no event may be reported to the request.
     */

    ngx_http_dsa_request_detach(req);

    ngx_http_finalize_request(req->http, rc);
}


/* Runs at the end of every request, however it ends. */

static void
ngx_http_dsa_request_cleanup(void *data)
{
    ngx_http_dsa_request_t *req = data;

    ngx_http_dsa_timer_stop(&req->timer);
    ngx_http_dsa_request_detach(req);

    ngx_http_dsa_metrics_add(in_flight, -1);

    /* the memory that a thread uses is freed afterwards */

    if (ngx_http_dsa_work_leave(&req->work, ngx_http_dsa_request_free, req)
        == NGX_OK)
    {
        ngx_http_dsa_request_free(req);
    }
}


static void
ngx_http_dsa_request_free(void *data)
{
    ngx_http_dsa_request_t *req = data;

    if (req->edit != NULL) {
        ngx_http_dsa_edit_free(req->edit);
    }

    if (req->compact != NULL) {
        ngx_http_dsa_compact_free(req->compact);
    }

    if (req->window != NULL) {
        ngx_http_dsa_window_free(req->window);
    }

    ngx_http_dsa_request_release(req);
}


/* The memory that the request needs no more when its answer ends. */

static void
ngx_http_dsa_request_release(ngx_http_dsa_request_t *req)
{
    if (req->freed) {
        return;
    }

    req->freed = 1;

    ngx_http_dsa_choices_free(&req->choices);
    ngx_http_dsa_submit_free(&req->submit);
    dsa_buf_free(&req->conversation.messages);
}


/*
 * Detaches a chat from its requests to engines, after which none of their
 * events are reported to it.  If nginx itself ends the HTTP request, the tokens
 * that were received are charged and logged.
 */

static void
ngx_http_dsa_request_detach(ngx_http_dsa_request_t *req)
{
    ngx_http_dsa_usage_record_t     *record;
    ngx_http_dsa_engine_requests_t  *requests;

    requests = req->requests;

    if (requests == NULL) {
        return;
    }

    record = &requests->record;

    if (!req->draining) {
        ngx_http_dsa_request_cancel(req);
    }

    if (!record->written) {
        ngx_http_dsa_usage_record_close(record);
    }

    req->requests = NULL;
    req->usage = record->usage;
    req->cost = ngx_http_dsa_usage_record_charged(record);

    ngx_http_dsa_shutdown_remove(&req->shutdown);
    ngx_http_dsa_lease_release(&req->conversation.lease);
    ngx_http_dsa_request_progress_end(req);
    ngx_http_dsa_idempotency_end(req->idempotency,
                                 req->usage.prompt != 0
                                 || req->usage.completion != 0);

    if (req->retention.restored != 0) {
        ngx_http_dsa_metrics_add(retention_cached, req->usage.cached);
    }

    if (req->answer.finish == NULL) {
        req->answer.finish = "cancelled";
    }

    ngx_http_dsa_engine_requests_detach(requests);
}


/*
 * Ends everything that the request waits for, and cancels its requests to
 * engines, if they have not ended and were not cancelled at the timeout.
 */

static void
ngx_http_dsa_request_cancel(ngx_http_dsa_request_t *req)
{
    ngx_connection_t  *c;

    c = req->http->connection;

    ngx_http_dsa_lease_release(&req->conversation.lease);
    ngx_http_dsa_pool_leave(&req->submit.waiter);

    if (req->edit != NULL) {
        ngx_http_dsa_edit_detach(req->edit);
    }

    if (req->compact != NULL) {
        ngx_http_dsa_compact_detach(req->compact);
    }

    if (req->window != NULL) {
        ngx_http_dsa_window_detach(req->window);
    }

    if (ngx_http_dsa_engine_requests_live(req->requests) == 0
        || req->timer.expired)
    {
        return;
    }

    if (req->reason == NGX_HTTP_DSA_CANCEL_CLIENT) {

        if (req->stream.slow) {
            req->reason = NGX_HTTP_DSA_CANCEL_SLOW;

        } else if (c->close && c->error) {
            req->reason = NGX_HTTP_DSA_CANCEL_SHUTDOWN;
        }
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa request %V: cancelled, reason %ui", &req->ctx.id,
                   req->reason);

    ngx_http_dsa_metrics_add(cancelled[req->reason], 1);

    ngx_http_dsa_engine_requests_cancel(req->requests);
}
