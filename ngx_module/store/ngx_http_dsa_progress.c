
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include "base/error.h"

#include "ngx_module/core/ngx_http_dsa_burst.h"
#include "ngx_http_dsa_progress.h"


/* milliseconds: a chunk has the events of this time */
#define NGX_HTTP_DSA_PROGRESS_GATHER  200

/* milliseconds between two renewals; that of the background sees a cancel */
#define NGX_HTTP_DSA_PROGRESS_LOOK    1000
#define NGX_HTTP_DSA_PROGRESS_RENEW   (DSA_PROGRESS_LEASE * 1000 / 3)

/* bytes of events that wait for Redis, at most */
#define NGX_HTTP_DSA_PROGRESS_WAITING  (1024 * 1024)

/* memory for the words of a command, without texts */
#define NGX_HTTP_DSA_PROGRESS_ARENA   4096


static void ngx_http_dsa_progress_begin_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_progress_timer(ngx_event_t *ev);
static void ngx_http_dsa_progress_wait(ngx_http_dsa_progress_t *p);
static void ngx_http_dsa_progress_renew(ngx_http_dsa_progress_t *p);
static void ngx_http_dsa_progress_append(ngx_http_dsa_progress_t *p);
static void ngx_http_dsa_progress_reply(void *data, redisReply *reply,
    const char *why);
static void ngx_http_dsa_progress_confirm(ngx_http_dsa_progress_t *p,
    int64_t state);
static void ngx_http_dsa_progress_fill(ngx_http_dsa_progress_t *p,
    const char *why);
static void ngx_http_dsa_progress_send(ngx_http_dsa_progress_t *p, int rc,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler);
static void ngx_http_dsa_progress_stop(ngx_http_dsa_progress_t *p);


static const char  ngx_http_dsa_progress_nomem[] = "nginx is out of memory";


ngx_int_t
ngx_http_dsa_progress_begin(ngx_http_dsa_progress_t *p, const char **why)
{
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    p->dumb.fd = (ngx_socket_t) -1;
    p->dumb.data = p;

    p->timer.handler = ngx_http_dsa_progress_timer;
    p->timer.data = &p->dumb;
    p->timer.log = ngx_cycle->log;

    *why = ngx_http_dsa_redis_full(p->redis);

    if (*why != NULL) {
        return p->id.background ? NGX_DECLINED : NGX_OK;
    }

    *why = ngx_http_dsa_progress_nomem;
    arena = dsa_arena_create(NGX_HTTP_DSA_PROGRESS_ARENA);

    if (arena != NULL
        && dsa_progress_begin(&cmd, arena, &p->id,
                              ngx_http_dsa_redis_storage(p->redis))
           == DSA_OK)
    {
        p->command = ngx_http_dsa_redis_command(p->redis, &cmd,
                                            ngx_http_dsa_progress_begin_reply,
                                            p, why);
    }

    dsa_arena_destroy(arena);

    if (p->command == NULL) {
        return p->id.background ? NGX_DECLINED : NGX_OK;
    }

    p->open = 1;

    if (!p->id.background) {
        ngx_http_dsa_progress_wait(p);
    }

    return NGX_OK;
}


static void
ngx_http_dsa_progress_begin_reply(void *data, redisReply *reply,
    const char *why)
{
    ngx_http_dsa_progress_t *p = data;

    int64_t            n, bytes;
    dsa_err_t          err;
    ngx_connection_t  *c;

    p->command = NULL;

    c = p->request->connection;

    if (why == NULL && dsa_schema_over_quota(reply, &bytes, &n)) {
        why = DSA_SCHEMA_QUOTA_TEXT;

    } else if (why == NULL && dsa_schema_integer(reply, &n, &err) != DSA_OK) {
        ngx_log_error(ngx_http_dsa_burst(err.text), c->log, 0, "dsa: %s",
                      err.text);
        why = "Redis refused the command";
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, c->log, 0,
                   "dsa request %*s: in progress, %s", p->id.id.len,
                   p->id.id.data, why == NULL ? "ok" : why);

    if (!p->id.background) {
        return;
    }

    if (why == NULL) {
        ngx_http_dsa_progress_wait(p);
    }

    ngx_http_set_log_request(c->log, p->request);

    p->begun(p->data, why);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_dsa_progress_text(ngx_http_dsa_progress_t *p, const char *text,
    size_t len)
{
    if (!p->open || !p->id.streams || p->full || len == 0) {
        return;
    }

    if (p->text.len + len > NGX_HTTP_DSA_PROGRESS_WAITING) {
        ngx_http_dsa_progress_fill(p, "too many events wait for Redis");
        return;
    }

    dsa_buf_add(&p->text, text, len);

    if (p->text.failed) {
        ngx_http_dsa_progress_fill(p, ngx_http_dsa_progress_nomem);
        return;
    }

    /* the first events after a pause; others have the timer of a chunk */

    if (p->text.len == len) {
        ngx_http_dsa_progress_wait(p);
    }
}


/* Sets the timer by what is to be sent next. */

static void
ngx_http_dsa_progress_wait(ngx_http_dsa_progress_t *p)
{
    ngx_add_timer(&p->timer, p->text.len != 0 ? NGX_HTTP_DSA_PROGRESS_GATHER
                             : p->id.background ? NGX_HTTP_DSA_PROGRESS_LOOK
                             : NGX_HTTP_DSA_PROGRESS_RENEW);
}


static void
ngx_http_dsa_progress_timer(ngx_event_t *ev)
{
    ngx_connection_t *dumb = ev->data;

    ngx_http_dsa_progress_t  *p;

    p = dumb->data;

    if (p->command != NULL) {
        ngx_http_dsa_progress_wait(p);

    } else if (p->text.len != 0) {
        ngx_http_dsa_progress_append(p);

    } else {
        ngx_http_dsa_progress_renew(p);
    }
}


static void
ngx_http_dsa_progress_renew(ngx_http_dsa_progress_t *p)
{
    int                    rc;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(NGX_HTTP_DSA_PROGRESS_ARENA);
    rc = arena != NULL ? dsa_progress_renew(&cmd, arena, &p->id) : DSA_ERROR;

    p->sent = 0;

    ngx_http_dsa_progress_send(p, rc, &cmd, ngx_http_dsa_progress_reply);
    ngx_http_dsa_progress_wait(p);

    dsa_arena_destroy(arena);
}


static void
ngx_http_dsa_progress_append(ngx_http_dsa_progress_t *p)
{
    int                    rc;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    arena = dsa_arena_create(NGX_HTTP_DSA_PROGRESS_ARENA);
    rc = DSA_ERROR;

    /* again with the same bytes: a reader may have them, and reads on behind */

    if (p->sent == 0) {
        p->sent = ngx_min(p->text.len, DSA_PROGRESS_CHUNK);
    }

    if (arena != NULL) {
        rc = dsa_progress_append(&cmd, arena, &p->id, p->chunk,
                                 dsa_str(p->text.data, p->sent),
                                 ngx_http_dsa_redis_storage(p->redis));
    }

    ngx_http_dsa_progress_send(p, rc, &cmd, ngx_http_dsa_progress_reply);
    ngx_http_dsa_progress_wait(p);

    dsa_arena_destroy(arena);
}


/*
 * A command that failed is sent again by the timer, a chunk with the same
 * number, because Redis may have executed it.
 */

static void
ngx_http_dsa_progress_reply(void *data, redisReply *reply, const char *why)
{
    ngx_http_dsa_progress_t *p = data;

    int64_t            state, bytes;
    dsa_err_t          err;
    ngx_connection_t  *c;

    p->command = NULL;

    if (why == NULL && dsa_schema_over_quota(reply, &bytes, &state)) {
        ngx_http_dsa_progress_fill(p, DSA_SCHEMA_QUOTA_TEXT);
        return;
    }

    if (why == NULL && dsa_schema_integer(reply, &state, &err) != DSA_OK) {
        why = err.text;
    }

    if (why != NULL) {
        ngx_log_error(ngx_http_dsa_burst(why), ngx_cycle->log, 0,
                      "dsa: a response in progress is not updated in Redis: "
                      "%s", why);
        return;
    }

    if (state == DSA_PROGRESS_RUNS || state == DSA_PROGRESS_LARGE) {
        ngx_http_dsa_progress_confirm(p, state);
        return;
    }

    /* one that is not in the background is computed for its client */

    if (!p->id.background) {
        return;
    }

    ngx_http_dsa_progress_stop(p);

    p->open = 0;

    c = p->request->connection;

    ngx_http_set_log_request(c->log, p->request);

    ngx_log_error(NGX_LOG_INFO, c->log, 0, "response \"%*s\" was %s",
                  p->id.id.len, p->id.id.data,
                  state == DSA_PROGRESS_CANCELLED ? "cancelled" : "deleted");

    p->stopped(p->data);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_dsa_progress_confirm(ngx_http_dsa_progress_t *p, int64_t state)
{
    if (state == DSA_PROGRESS_LARGE) {
        ngx_http_dsa_progress_fill(p, "they exceed 8 MB");
        return;
    }

    if (p->sent == 0) {
        return;
    }

    p->chunk++;
    p->text.len -= p->sent;

    ngx_memmove(p->text.data, p->text.data + p->sent, p->text.len);

    p->sent = 0;

    if (p->text.len == 0) {
        dsa_buf_free(&p->text);
    }
}


/* No further events are kept; the response goes on. */

static void
ngx_http_dsa_progress_fill(ngx_http_dsa_progress_t *p, const char *why)
{
    ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                  "dsa: no further events of response \"%*s\" are kept: %s",
                  p->id.id.len, p->id.id.data, why);

    p->full = 1;
    p->sent = 0;

    dsa_buf_free(&p->text);
}


/*
 * Sends what follows the chunk that waits for its reply, which Redis executes
 * before.  No reply is needed any more: the last event of a reader has the
 * whole response.
 */

void
ngx_http_dsa_progress_flush(ngx_http_dsa_progress_t *p)
{
    int                    rc;
    size_t                 at, n;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    if (!p->open) {
        return;
    }

    at = 0;

    if (p->command != NULL && p->sent != 0) {
        at = p->sent;
        p->chunk++;
    }

    ngx_http_dsa_progress_stop(p);

    for ( /* void */ ; at < p->text.len; at += n, p->chunk++) {
        n = at == 0 && p->sent != 0
            ? p->sent : ngx_min(p->text.len - at, DSA_PROGRESS_CHUNK);

        arena = dsa_arena_create(NGX_HTTP_DSA_PROGRESS_ARENA);
        rc = DSA_ERROR;

        if (arena != NULL) {
            rc = dsa_progress_append(&cmd, arena, &p->id, p->chunk,
                                     dsa_str(p->text.data + at, n),
                                     ngx_http_dsa_redis_storage(p->redis));
        }

        ngx_http_dsa_progress_send(p, rc, &cmd, NULL);

        dsa_arena_destroy(arena);
    }

    p->sent = 0;

    dsa_buf_free(&p->text);
}


void
ngx_http_dsa_progress_end(ngx_http_dsa_progress_t *p, const char *why)
{
    int                    rc;
    dsa_str_t              error;
    dsa_arena_t           *arena;
    dsa_schema_command_t   cmd;

    if (p->open && p->kept && !p->stored) {
        ngx_http_dsa_progress_flush(p);
    }

    ngx_http_dsa_progress_stop(p);
    dsa_buf_free(&p->text);

    if (!p->open) {
        return;
    }

    p->open = 0;

    if (p->stored) {
        return;
    }

    error = p->kept ? dsa_strz(why) : dsa_str("", 0);
    error.len = ngx_min(error.len, DSA_PROGRESS_ERROR);

    arena = dsa_arena_create(NGX_HTTP_DSA_PROGRESS_ARENA);
    rc = arena != NULL ? dsa_progress_end(&cmd, arena, &p->id, error)
                       : DSA_ERROR;

    ngx_http_dsa_progress_send(p, rc, &cmd, NULL);

    dsa_arena_destroy(arena);
}


/* rc: of the function that has made the command. */

static void
ngx_http_dsa_progress_send(ngx_http_dsa_progress_t *p, int rc,
    const dsa_schema_command_t *cmd, ngx_http_dsa_redis_pt handler)
{
    const char                    *why;
    ngx_http_dsa_redis_command_t  *command;

    why = ngx_http_dsa_progress_nomem;

    command = rc == DSA_OK
              ? ngx_http_dsa_redis_command(p->redis, cmd, handler, p, &why)
              : NULL;

    if (command == NULL) {
        ngx_log_error(ngx_http_dsa_burst(why), ngx_cycle->log, 0,
                      "dsa: a response in progress is not updated in Redis: "
                      "%s", why);
    }

    if (handler != NULL) {
        p->command = command;
    }
}


static void
ngx_http_dsa_progress_stop(ngx_http_dsa_progress_t *p)
{
    if (p->command != NULL) {
        ngx_http_dsa_redis_detach(p->command);
        p->command = NULL;
    }

    if (p->timer.timer_set) {
        ngx_del_timer(&p->timer);
    }
}
