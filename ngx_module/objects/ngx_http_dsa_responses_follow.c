
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "ngx_module/account/ngx_http_dsa_closed.h"
#include "ngx_module/api/ngx_http_dsa_responses.h"
#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_module/core/ngx_http_dsa_conf.h"
#include "ngx_module/core/ngx_http_dsa_ctx.h"
#include "ngx_module/http/ngx_http_dsa_reply.h"
#include "ngx_module/http/ngx_http_dsa_stream.h"
#include "ngx_module/store/ngx_http_dsa_responses_command.h"
#include "redis_schema/progress_stream.h"
#include "ngx_http_dsa_responses_follow.h"


#define NGX_HTTP_DSA_FOLLOW_POLL    250     /* ms between two looks at Redis */
#define NGX_HTTP_DSA_FOLLOW_REPLY   60000   /* ms; the timeout of dsa_redis is
                                               shorter */

/* memory for the words of a command */

#define NGX_HTTP_DSA_FOLLOW_ARENA   4096


typedef struct {
    ngx_http_dsa_ctx_t        ctx;          /* has the stream */
    ngx_http_request_t       *request;
    ngx_http_dsa_redis_t     *redis;
    dsa_str_t                 tenant;
    dsa_str_t                 id;
    int64_t                   after;        /* the client has this event */
    uint32_t                  chunk;        /* the next one to read */
    dsa_progress_stream_t     events;       /* read from Redis */
    ngx_http_dsa_stream_t     stream;
    ngx_event_t               timer;
    ngx_msec_t                deadline;
    ngx_msec_t                keepalive;    /* 0: none */
    unsigned                  waits:1;      /* for Redis */
    unsigned                  more:1;       /* chunks that are in Redis */
    unsigned                  over:1;       /* all events are read */
    unsigned                  ended:1;      /* the end is in stream.pending */
} ngx_http_dsa_follow_t;


static ngx_int_t ngx_http_dsa_follow_init(ngx_http_dsa_follow_t *f,
    ngx_http_request_t *r);
static void ngx_http_dsa_follow_cleanup(void *data);
static void ngx_http_dsa_follow_free(void *data);
static void ngx_http_dsa_follow_reading(ngx_http_request_t *r);
static void ngx_http_dsa_follow_next(ngx_http_dsa_follow_t *f);
static void ngx_http_dsa_follow_read(ngx_http_dsa_follow_t *f,
    ngx_uint_t object);
static void ngx_http_dsa_follow_events(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);
static ngx_uint_t ngx_http_dsa_follow_refuse(ngx_http_dsa_follow_t *f,
    const dsa_progress_events_t *events);
static void ngx_http_dsa_follow_object(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why);
static void ngx_http_dsa_follow_unavailable(ngx_http_dsa_follow_t *f,
    const char *why);
static void ngx_http_dsa_follow_error(ngx_http_dsa_follow_t *f,
    const char *text);
static void ngx_http_dsa_follow_output(ngx_http_dsa_follow_t *f);
static void ngx_http_dsa_follow_timer(ngx_event_t *ev);
static void ngx_http_dsa_follow_writable(void *data);
static void ngx_http_dsa_follow_failed(void *data, ngx_int_t rc);


ngx_int_t
ngx_http_dsa_responses_follow(ngx_http_request_t *r,
    ngx_http_dsa_redis_t *redis, dsa_str_t tenant, dsa_str_t id,
    int64_t after)
{
    ngx_http_dsa_follow_t  *f;

    f = ngx_pcalloc(r->pool, sizeof(ngx_http_dsa_follow_t));

    if (f == NULL || ngx_http_dsa_follow_init(f, r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    f->redis = redis;
    f->tenant = tenant;
    f->id = id;
    f->after = after;

    dsa_progress_stream_init(&f->events);

    r->main->count++;

    ngx_http_dsa_follow_read(f, 0);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_dsa_follow_init(ngx_http_dsa_follow_t *f, ngx_http_request_t *r)
{
    ngx_http_cleanup_t       *end;
    ngx_pool_cleanup_t       *cln;
    ngx_http_dsa_loc_conf_t  *dlcf;

    dlcf = ngx_http_get_module_loc_conf(r, ngx_http_dsa_module);

    f->request = r;
    f->deadline = ngx_current_msec + dlcf->timeout;
    f->keepalive = dlcf->keepalive;

    f->timer.handler = ngx_http_dsa_follow_timer;
    f->timer.data = f;
    f->timer.log = r->connection->log;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    end = ngx_http_cleanup_add(r, 0);

    if (cln == NULL || end == NULL
        || ngx_http_dsa_request_id(r, &f->ctx.id) != NGX_OK
        || ngx_http_dsa_stream_init(&f->stream, r, dlcf->output_limit,
                                    ngx_http_dsa_follow_writable,
                                    ngx_http_dsa_follow_failed, f)
           != NGX_OK
        || ngx_http_dsa_closed_watch(r, ngx_http_dsa_follow_reading) != NGX_OK)
    {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_dsa_follow_free;
    cln->data = f;

    end->handler = ngx_http_dsa_follow_cleanup;
    end->data = f;

    f->ctx.stream = &f->stream;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_set_ctx(r, &f->ctx, ngx_http_dsa_module);

    return NGX_OK;
}


/* The request ends. */

static void
ngx_http_dsa_follow_cleanup(void *data)
{
    ngx_http_dsa_follow_t *f = data;

    if (f->timer.timer_set) {
        ngx_del_timer(&f->timer);
    }
}


static void
ngx_http_dsa_follow_free(void *data)
{
    ngx_http_dsa_follow_t *f = data;

    dsa_progress_stream_free(&f->events);
}


static void
ngx_http_dsa_follow_reading(ngx_http_request_t *r)
{
    if (ngx_http_dsa_closed(r)) {
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
    }
}


/* What follows when everything that was read is sent. */

static void
ngx_http_dsa_follow_next(ngx_http_dsa_follow_t *f)
{
    if (f->waits || f->ended) {
        return;
    }

    if (f->over || f->more) {
        ngx_http_dsa_follow_read(f, f->over);
        return;
    }

    ngx_add_timer(&f->timer, NGX_HTTP_DSA_FOLLOW_POLL);
}


/* Reads the next events, or the object for the last event. */

static void
ngx_http_dsa_follow_read(ngx_http_dsa_follow_t *f, ngx_uint_t object)
{
    int                    rc;
    ngx_int_t              sent;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(NGX_HTTP_DSA_FOLLOW_ARENA);
    rc = DSA_ERROR;

    if (arena != NULL) {
        rc = object ? dsa_progress_read(&cmd, arena, f->tenant, f->id)
                    : dsa_progress_follow(&cmd, arena, f->tenant, f->id,
                                          f->chunk);
    }

    /* the timer keeps a worker that shuts down */

    f->waits = 1;
    ngx_add_timer(&f->timer, NGX_HTTP_DSA_FOLLOW_REPLY);

    sent = rc == DSA_OK
           ? ngx_http_dsa_responses_command(f->request, f->redis, &cmd,
                                            object
                                            ? ngx_http_dsa_follow_object
                                            : ngx_http_dsa_follow_events, f)
           : NGX_ERROR;

    dsa_arena_destroy(arena);

    if (sent != NGX_OK) {
        f->waits = 0;
        ngx_http_dsa_follow_unavailable(f, "nginx is out of memory");
    }
}


static void
ngx_http_dsa_follow_events(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why)
{
    ngx_http_dsa_follow_t *f = data;

    uint32_t               i;
    dsa_err_t              err;
    dsa_progress_events_t  events;

    f->waits = 0;

    if (why == NULL
        && dsa_progress_events(&events, reply, &err) != DSA_OK)
    {
        ngx_log_error(ngx_http_dsa_burst(err.text), r->connection->log, 0,
                      "dsa: %s", err.text);
        why = "Redis refused the command";
    }

    if (why != NULL) {
        ngx_http_dsa_follow_unavailable(f, why);
        return;
    }

    if (!f->stream.headers && ngx_http_dsa_follow_refuse(f, &events)) {
        return;
    }

    ngx_http_dsa_stream_prepare(&f->stream);

    for (i = 0; i < events.n; i++) {
        if (dsa_progress_stream_add(&f->events, &f->stream.pending,
                                    events.chunk[i], f->after, &err)
            != DSA_OK)
        {
            ngx_log_error(ngx_http_dsa_burst(err.text), r->connection->log, 0,
                          "dsa: %s", err.text);
            ngx_http_dsa_follow_unavailable(f, "Redis returned wrong events");
            return;
        }
    }

    f->chunk += events.n;
    f->more = events.n == DSA_PROGRESS_CHUNKS;
    f->over = !f->more && !events.runs;

    if (!f->more && events.large) {
        ngx_http_dsa_follow_error(f, "The further events of this response are "
                                  "not kept, because there are too many; read "
                                  "it without stream.");
        return;
    }

    ngx_http_dsa_follow_output(f);
}


/* Returns 1 if the client gets an error in place of a stream. */

static ngx_uint_t
ngx_http_dsa_follow_refuse(ngx_http_dsa_follow_t *f,
    const dsa_progress_events_t *events)
{
    ngx_uint_t   status;
    const char  *text, *param;

    if (events->exists && events->kept) {
        return 0;
    }

    status = NGX_HTTP_NOT_FOUND;
    param = NULL;
    text = "There is no response with this id.";

    if (events->exists) {
        status = NGX_HTTP_BAD_REQUEST;
        param = "stream";
        text = "The events of this response are not kept: it was not created "
               "with background and stream, or ended an hour ago; expected "
               "false or no such argument.";
    }

    ngx_http_finalize_request(f->request,
                              ngx_http_dsa_send_error(f->request, status,
                                                      param, text));
    return 1;
}


/* The last event has the object that GET without stream returns. */

static void
ngx_http_dsa_follow_object(ngx_http_request_t *r, void *data,
    redisReply *reply, const char *why)
{
    ngx_http_dsa_follow_t *f = data;

    dsa_buf_t            body;
    dsa_err_t            err;
    dsa_str_t            object[3];
    ngx_uint_t           n;
    dsa_progress_view_t  view;

    f->waits = 0;

    if (why == NULL && dsa_progress_view(&view, reply, &err) != DSA_OK) {
        ngx_log_error(ngx_http_dsa_burst(err.text), r->connection->log, 0,
                      "dsa: %s", err.text);
        why = "Redis refused the command";
    }

    if (why != NULL) {
        ngx_http_dsa_follow_unavailable(f, why);
        return;
    }

    if (view.state >= DSA_PROGRESS_UNKNOWN) {
        ngx_http_dsa_follow_error(f, "The response was deleted.");
        return;
    }

    ngx_memzero(&body, sizeof(dsa_buf_t));

    n = 1;

    if (view.state == DSA_PROGRESS_STORED) {
        object[0] = view.before;
        object[1] = view.output;
        object[2] = view.after;
        n = 3;

    } else {
        ngx_http_dsa_responses_progress(&body, &view);
        object[0] = dsa_str(body.data, body.len);
    }

    ngx_http_dsa_stream_prepare(&f->stream);

    if (body.failed) {
        f->stream.pending.failed = 1;

    } else if (f->events.last + 1 > f->after) {
        ngx_http_dsa_responses_last(&f->stream.pending, f->events.last + 1,
                                    object, n);
    }

    dsa_buf_free(&body);

    f->ended = 1;
    ngx_http_dsa_follow_output(f);
}


static void
ngx_http_dsa_follow_unavailable(ngx_http_dsa_follow_t *f, const char *why)
{
    dsa_err_t  text;

    if (!f->stream.headers) {
        ngx_http_finalize_request(f->request,
                                  ngx_http_dsa_send_unavailable(f->request,
                                                   "Stored responses", why));
        return;
    }

    (void) dsa_error(&text, "Stored responses are not available now: %s.",
                     why);

    ngx_http_dsa_follow_error(f, text.text);
}


/* Ends the stream with an event that has no number of the response. */

static void
ngx_http_dsa_follow_error(ngx_http_dsa_follow_t *f, const char *text)
{
    ngx_http_dsa_api_error_t  error;

    ngx_memzero(&error, sizeof(ngx_http_dsa_api_error_t));

    error.status = NGX_HTTP_SERVICE_UNAVAILABLE;
    error.message = text;

    ngx_http_dsa_stream_prepare(&f->stream);
    ngx_http_dsa_responses_event_error(&f->stream.pending, &error);

    f->ended = 1;
    ngx_http_dsa_follow_output(f);
}


static void
ngx_http_dsa_follow_output(ngx_http_dsa_follow_t *f)
{
    ngx_int_t  rc;

    if (!f->stream.headers
        && ngx_http_dsa_stream_start(&f->stream, "text/event-stream", 1)
           != NGX_OK)
    {
        ngx_http_finalize_request(f->request, NGX_ERROR);
        return;
    }

    rc = ngx_http_dsa_stream_send(&f->stream, f->ended);

    /* dsa_ignore_client_abort is for answers that are computed */

    if (f->stream.gone) {
        rc = NGX_ERROR;
    }

    switch (rc) {

    case NGX_OK:
        ngx_http_dsa_follow_next(f);
        return;

    case NGX_AGAIN:
        ngx_add_timer(&f->timer, NGX_HTTP_DSA_FOLLOW_REPLY);
        return;

    case NGX_DONE:
        ngx_http_finalize_request(f->request, NGX_OK);
        return;

    default: /* NGX_DECLINED, NGX_ERROR */
        ngx_http_finalize_request(f->request, NGX_ERROR);
        return;
    }
}


static void
ngx_http_dsa_follow_timer(ngx_event_t *ev)
{
    ngx_connection_t       *c;
    ngx_http_dsa_follow_t  *f = ev->data;

    c = f->request->connection;

    ngx_http_set_log_request(c->log, f->request);

    if (f->waits || f->stream.busy) {

        /* the timeouts of Redis and of the client are others */

        ngx_add_timer(&f->timer, NGX_HTTP_DSA_FOLLOW_REPLY);

    } else if ((ngx_msec_int_t) (f->deadline - ngx_current_msec) <= 0) {
        ngx_http_dsa_follow_error(f, "The response was not complete in time; "
                                  "send the request again.");

    } else {
        if (f->keepalive != 0
            && ngx_current_msec - f->stream.last_write >= f->keepalive)
        {
            ngx_http_dsa_stream_prepare(&f->stream);
            dsa_buf_addz(&f->stream.pending, ": keep-alive\n\n");
        }

        ngx_http_dsa_follow_read(f, 0);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_follow_writable(void *data)
{
    ngx_http_dsa_follow_t *f = data;

    if (f->ended && f->stream.pending.len == 0) {
        return;
    }

    ngx_http_dsa_follow_output(f);
}


static void
ngx_http_dsa_follow_failed(void *data, ngx_int_t rc)
{
    ngx_http_dsa_follow_t *f = data;

    ngx_http_finalize_request(f->request, rc);
}
