
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "base/clock.h"

#include "ngx_module/core/ngx_http_dsa_metrics.h"
#include "ngx_http_dsa_hello_check.h"
#include "ngx_http_dsa_segment.h"
#include "ngx_http_dsa_session.h"


#define NGX_HTTP_DSA_HELLO_TIME   5000      /* ms */
#define NGX_HTTP_DSA_CHECK_TIME   500       /* ms between checks of alive_ms */
#define NGX_HTTP_DSA_AHEAD        1000      /* ms of alive_ms before now */
#define NGX_HTTP_DSA_RETRY_MIN    50
#define NGX_HTTP_DSA_RETRY_MAX    400


static void ngx_http_dsa_session_connect(ngx_http_dsa_session_t *s);
static ngx_connection_t *ngx_http_dsa_session_channel(ngx_fd_t fd,
    ngx_event_handler_pt handler, void *data);
static void ngx_http_dsa_session_socket_handler(ngx_event_t *rev);
static ngx_int_t ngx_http_dsa_session_hello(ngx_http_dsa_session_t *s,
    int fds[DSA_LINK_FDS]);
static void ngx_http_dsa_session_close_fds(int fds[DSA_LINK_FDS]);
static ngx_int_t ngx_http_dsa_session_open(ngx_http_dsa_session_t *s,
    int fds[DSA_LINK_FDS]);
static ngx_int_t ngx_http_dsa_session_send(ngx_http_dsa_session_t *s,
    ngx_http_dsa_link_request_t *lr, uint32_t type, const void *head,
    size_t size, const ngx_http_dsa_field_t *fields, uint32_t n);
static ngx_int_t ngx_http_dsa_session_wake_fds(ngx_http_dsa_session_t *s,
    int fds[DSA_LINK_FDS]);
static void ngx_http_dsa_session_ended(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_wake_handler(ngx_event_t *rev);
static void ngx_http_dsa_session_wake(ngx_http_dsa_session_t *s);
static ngx_msec_t ngx_http_dsa_session_since(uint64_t time);
static void ngx_http_dsa_session_timer_handler(ngx_event_t *ev);
static void ngx_http_dsa_session_check(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_fault(ngx_http_dsa_session_t *s,
    ngx_err_t err, const char *why);
static void ngx_http_dsa_session_wrong(ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_session_level(ngx_http_dsa_session_t *s,
    const char *why);
static void ngx_http_dsa_session_broken(ngx_http_dsa_session_t *s,
    ngx_err_t err, const char *why);
static void ngx_http_dsa_session_failure_handler(ngx_event_t *ev);
static void ngx_http_dsa_session_fail(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_close(ngx_http_dsa_session_t *s);


void
ngx_http_dsa_session_start(ngx_http_dsa_session_t *s, ngx_log_t *log)
{
    s->timer.handler = ngx_http_dsa_session_timer_handler;
    s->timer.data = s;
    s->timer.log = log;
    s->timer.cancelable = 1;

    s->failure.handler = ngx_http_dsa_session_failure_handler;
    s->failure.data = s;
    s->failure.log = log;

    s->wake_fd = NGX_INVALID_FILE;
    ngx_http_dsa_slots_init(&s->slots);

    ngx_http_dsa_session_connect(s);
}


void
ngx_http_dsa_session_stop(ngx_http_dsa_session_t *s)
{
    if (s->timer.timer_set) {
        ngx_del_timer(&s->timer);
    }

    ngx_http_dsa_session_close(s);
    ngx_http_dsa_slots_destroy(&s->slots);
}


static void
ngx_http_dsa_session_connect(ngx_http_dsa_session_t *s)
{
    size_t              len;
    ngx_fd_t            fd;
    ngx_err_t           err;
    ngx_uint_t          level;
    struct sockaddr_un  sun;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa engine \"%V\": connecting", &s->name);

    ngx_memzero(&sun, sizeof(struct sockaddr_un));

    sun.sun_family = AF_UNIX;

    len = s->name.len - (sizeof("unix:") - 1);
    ngx_memcpy(sun.sun_path, s->name.data + sizeof("unix:") - 1, len);

    fd = ngx_socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (fd == (ngx_fd_t) -1) {
        ngx_http_dsa_session_fault(s, ngx_socket_errno,
                                   ngx_socket_n " failed");
        goto failed;
    }

    /* connect() to a unix socket succeeds or fails at once */

    if (connect(fd, (struct sockaddr *) &sun,
                offsetof(struct sockaddr_un, sun_path) + len + 1)
        == -1)
    {
        err = ngx_socket_errno;
        level = ngx_http_dsa_session_level(s, "connect");

        ngx_log_error(level, ngx_cycle->log, err,
                      "connect() to engine \"%V\" failed", &s->name);

        (void) ngx_close_socket(fd);
        goto failed;
    }

    if (dsa_link_send_offer(fd) != 0) {
        ngx_http_dsa_session_fault(s, ngx_socket_errno, "send() failed");

        (void) ngx_close_socket(fd);
        goto failed;
    }

    s->socket = ngx_http_dsa_session_channel(fd,
                                          ngx_http_dsa_session_socket_handler,
                                          s);
    if (s->socket == NULL) {
        goto failed;
    }

    s->state = NGX_HTTP_DSA_CONNECTING;

    ngx_add_timer(&s->timer, NGX_HTTP_DSA_HELLO_TIME);

    return;

failed:

    ngx_http_dsa_session_fail(s);
}


/*
 * Adds a descriptor to the event loop, level-triggered.  It is marked as a
 * channel, because a worker that shuts down does not wait for channels.  NULL:
 * an error; the descriptor was closed.
 */

static ngx_connection_t *
ngx_http_dsa_session_channel(ngx_fd_t fd, ngx_event_handler_pt handler,
    void *data)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, ngx_cycle->log);

    if (c == NULL) {
        if (close(fd) == -1) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                          "close() failed");
        }

        return NULL;
    }

    c->data = data;

    c->read->channel = 1;
    c->write->channel = 1;

    c->read->log = ngx_cycle->log;
    c->write->log = ngx_cycle->log;

    c->read->handler = handler;

    if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK) {
        ngx_close_connection(c);
        return NULL;
    }

    return c;
}


/*
 * Reads the socket.  The engine sends the hello, and later closes the socket.
 */

static void
ngx_http_dsa_session_socket_handler(ngx_event_t *rev)
{
    int                      fds[DSA_LINK_FDS], rc;
    dsa_link_hello_t         hello;
    ngx_connection_t        *c;
    ngx_http_dsa_session_t  *s;

    c = rev->data;
    s = c->data;

    if (s->state == NGX_HTTP_DSA_READY) {
        ngx_http_dsa_session_ended(s);
        return;
    }

    rc = dsa_link_recv_hello(c->fd, &hello, fds);

    if (rc == 0) {
        return;
    }

    s->hello = hello;

    if (rc == -1) {
        ngx_http_dsa_session_fault(s, ngx_errno, "it sent no valid hello");

    } else if (ngx_http_dsa_session_hello(s, fds) == NGX_OK) {
        s->changed(s);
        return;
    }

    /* a hello that was rejected must not be used, for example its names */

    s->hello.magic = 0;

    ngx_http_dsa_session_fail(s);
}


static ngx_int_t
ngx_http_dsa_session_hello(ngx_http_dsa_session_t *s, int fds[DSA_LINK_FDS])
{
    ngx_uint_t            level;
    ngx_http_dsa_wrong_t  wrong;

    if (s->hello.version == 0) {
        level = ngx_http_dsa_session_level(s, "version");

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" cannot be used: it accepts versions %uD "
                      "to %uD of the link, and nginx accepts %d to %d",
                      &s->name, s->hello.version_min, s->hello.version_max,
                      DSA_LINK_VERSION_MIN, DSA_LINK_VERSION_MAX);
        return NGX_ERROR;
    }

    if (ngx_http_dsa_hello_check(&s->hello, s->expected(s), &s->family,
                                 &wrong)
        != 0)
    {
        level = ngx_http_dsa_session_level(s, wrong.field);

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" cannot be used: it sent %s %s", &s->name,
                      wrong.name, wrong.text);

        ngx_http_dsa_session_close_fds(fds);
        return NGX_ERROR;
    }

    if (ngx_http_dsa_session_open(s, fds) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "engine \"%V\" serves \"%s\" with a context of %uD tokens",
                  &s->name, s->hello.model, s->hello.context_length);

    return NGX_OK;
}


static void
ngx_http_dsa_session_close_fds(int fds[DSA_LINK_FDS])
{
    ngx_uint_t  i;

    for (i = 0; i < DSA_LINK_FDS; i++) {
        (void) close(fds[i]);
    }
}


/* Opens the session.  Closes the descriptors, or stores them in s. */

static ngx_int_t
ngx_http_dsa_session_open(ngx_http_dsa_session_t *s, int fds[DSA_LINK_FDS])
{
    const char  *why;

    s->wake_fd = fds[1];

    why = ngx_http_dsa_segment_map(&s->segment, &s->link, fds[0], &s->hello);

    if (close(fds[0]) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "close() of memfd failed");
    }

    if (why != NULL) {
        (void) close(fds[2]);
        ngx_http_dsa_session_fault(s, 0, why);
        return NGX_ERROR;
    }

    if (ngx_http_dsa_slots_create(&s->slots, s->hello.slots, ngx_cycle->log)
        != NGX_OK)
    {
        (void) close(fds[2]);
        return NGX_ERROR;
    }

    if (ngx_http_dsa_session_wake_fds(s, fds) != NGX_OK) {
        return NGX_ERROR;
    }

    s->state = NGX_HTTP_DSA_READY;
    s->attempts = 0;
    s->fault = NULL;
    s->stale = 0;

    ngx_http_dsa_backlog_start(&s->backlog, s->link.control);
    ngx_http_dsa_metrics_session(1);

    ngx_add_timer(&s->timer, NGX_HTTP_DSA_CHECK_TIME);

    if (dsa_link_sleep(&s->link.event) == 0) {
        ngx_post_event(s->wake->read, &ngx_posted_next_events);
    }

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa engine \"%V\": ready, version %uD, pid %uD, "
                   "%uD slots", &s->name, s->hello.version, s->hello.pid,
                   s->hello.slots);

    return NGX_OK;
}


static ngx_int_t
ngx_http_dsa_session_wake_fds(ngx_http_dsa_session_t *s,
    int fds[DSA_LINK_FDS])
{
    if (ngx_nonblocking(fds[1]) == -1 || ngx_nonblocking(fds[2]) == -1) {
        ngx_http_dsa_session_fault(s, ngx_errno,
                                   ngx_nonblocking_n " of eventfd failed");
        (void) close(fds[2]);
        return NGX_ERROR;
    }

    s->wake = ngx_http_dsa_session_channel(fds[2],
                                           ngx_http_dsa_session_wake_handler,
                                           s);

    return s->wake != NULL ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_dsa_session_ended(ngx_http_dsa_session_t *s)
{
    uint64_t    end;
    ngx_int_t   rc;

    /*
     * Reads the records that the replica wrote before its end.  They are at
     * most one full ring, so the loop is bounded even if head is corrupt.
     */

    end = s->link.event.own + s->link.event.size;

    do {
        rc = ngx_http_dsa_records_read(&s->records, &s->link, &s->slots);
    } while (rc == NGX_AGAIN && s->link.event.own < end);

    if (rc == NGX_ERROR) {
        ngx_http_dsa_session_wrong(s);
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "engine \"%V\" has closed its socket, %ui requests are lost",
                  &s->name, s->slots.active);

    ngx_http_dsa_session_fail(s);
}


static void
ngx_http_dsa_session_wake_handler(ngx_event_t *rev)
{
    ssize_t                  n;
    uint64_t                 count;
    ngx_int_t                rc;
    ngx_connection_t        *c;
    ngx_http_dsa_session_t  *s;

    c = rev->data;
    s = c->data;

    n = read(c->fd, &count, sizeof(uint64_t));

    if (n == (ssize_t) sizeof(uint64_t)) {
        ngx_http_dsa_metrics_add(doorbells, 1);

    } else if (n == -1 && ngx_errno != NGX_EAGAIN && ngx_errno != NGX_EINTR) {
        ngx_http_dsa_session_fault(s, ngx_errno, "read() of eventfd failed");
        ngx_http_dsa_session_fail(s);
        return;
    }

    rc = ngx_http_dsa_records_read(&s->records, &s->link, &s->slots);

    if (rc == NGX_ERROR) {
        ngx_http_dsa_session_wrong(s);
        ngx_http_dsa_session_fail(s);
        return;
    }

    if (rc == NGX_AGAIN) {
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    ngx_http_dsa_slots_flush(&s->slots);
}


ngx_int_t
ngx_http_dsa_session_submit(ngx_http_dsa_session_t *s,
    ngx_http_dsa_link_request_t *lr, dsa_link_submit_t *head,
    const ngx_http_dsa_field_t *fields, uint32_t n)
{
    head->n_fields = n;

    return ngx_http_dsa_session_send(s, lr, DSA_LINK_SUBMIT, head,
                                     sizeof(dsa_link_submit_t), fields, n);
}


ngx_int_t
ngx_http_dsa_session_count(ngx_http_dsa_session_t *s,
    ngx_http_dsa_link_request_t *lr, const u_char *digest, uint32_t weight,
    const ngx_http_dsa_field_t *fields, uint32_t n)
{
    dsa_link_count_t  head;

    head.n_fields = n;
    head.weight = weight;

    ngx_memcpy(head.tenant, digest, sizeof(head.tenant));

    return ngx_http_dsa_session_send(s, lr, DSA_LINK_COUNT, &head,
                                     sizeof(dsa_link_count_t), fields, n);
}


static ngx_int_t
ngx_http_dsa_session_send(ngx_http_dsa_session_t *s,
    ngx_http_dsa_link_request_t *lr, uint32_t type, const void *head,
    size_t size, const ngx_http_dsa_field_t *fields, uint32_t n)
{
    u_char            *p;
    uint32_t           i;
    uint64_t           length, padded, id;
    dsa_link_field_t   field;

    id = ngx_http_dsa_slots_next(&s->slots);

    if (id == 0) {
        ngx_http_dsa_metrics_add(ring_full, 1);
        return NGX_BUSY;
    }

    length = size;

    for (i = 0; i < n; i++) {
        length += sizeof(dsa_link_field_t)
                  + dsa_link_pad(fields[i].value.len, 8);
    }

    p = dsa_link_reserve(&s->link.submit, type, id, length);

    if (p == NULL) {
        if (errno == EMSGSIZE) {
            return NGX_DECLINED;
        }

        if (errno == EPROTO) {
            ngx_http_dsa_session_broken(s, 0, "its submit ring is corrupt");
            return NGX_ERROR;
        }

        ngx_http_dsa_metrics_add(ring_full, 1);
        return NGX_BUSY;
    }

    p = ngx_cpymem(p, head, size);

    for (i = 0; i < n; i++) {
        field.length = fields[i].value.len;
        field.type = fields[i].type;
        padded = dsa_link_pad(field.length, 8);

        p = ngx_cpymem(p, &field, sizeof(dsa_link_field_t));
        ngx_memcpy(p, fields[i].value.data, field.length);
        ngx_memzero(p + field.length, padded - field.length);
        p += padded;
    }

    ngx_http_dsa_expect(&lr->expect, type == DSA_LINK_SUBMIT ? head : NULL,
                        s->hello.context_length, s->hello.ids);

    for (i = 0; i < n; i++) {
        ngx_http_dsa_expect_field(&lr->expect, fields[i].type,
                                  fields[i].value.len);
    }

    ngx_http_dsa_slots_attach(&s->slots, lr, s);

    ngx_log_debug5(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa engine \"%V\": %s of %uL bytes, slot %uD epoch %uD",
                   &s->name, lr->expect.count ? "count" : "submit", length,
                   dsa_link_slot(id), dsa_link_epoch(id));

    if (dsa_link_commit(&s->link.submit)) {
        ngx_http_dsa_session_wake(s);
    }

    return NGX_OK;
}


void
ngx_http_dsa_session_cancel(ngx_http_dsa_link_request_t *lr)
{
    ngx_http_dsa_session_t  *s = lr->session;

    dsa_link_cancel(&s->link, lr->id);
    ngx_http_dsa_session_wake(s);
}


void
ngx_http_dsa_session_abandon(ngx_http_dsa_link_request_t *lr)
{
    ngx_http_dsa_session_t  *s = lr->session;

    ngx_http_dsa_session_cancel(lr);
    ngx_http_dsa_slots_detach(&s->slots, lr);
}


static void
ngx_http_dsa_session_wake(ngx_http_dsa_session_t *s)
{
    uint64_t  one;

    one = 1;

    /* EAGAIN: the counter is at its maximum, so the replica is woken anyway */

    if (write(s->wake_fd, &one, sizeof(uint64_t)) == -1
        && ngx_errno != NGX_EAGAIN)
    {
        ngx_http_dsa_session_broken(s, ngx_errno, "write() to eventfd failed");
    }
}


ngx_msec_t
ngx_http_dsa_session_age(ngx_http_dsa_session_t *s)
{
    return ngx_http_dsa_session_since(
               atomic_load_explicit(&s->link.control->alive_ms,
                                    memory_order_relaxed));
}


ngx_msec_t
ngx_http_dsa_session_step(ngx_http_dsa_session_t *s)
{
    uint64_t  started;

    started = atomic_load_explicit(&s->link.control->step_started_ms,
                                   memory_order_relaxed);

    return started != 0 ? ngx_http_dsa_session_since(started) : 0;
}


/* Milliseconds since the replica read its clock. */

static ngx_msec_t
ngx_http_dsa_session_since(uint64_t time)
{
    uint64_t  now;

    now = dsa_clock_ms();

    if (time <= now) {
        return (ngx_msec_t) (now - time);
    }

    /* both ends read one clock: a later time is not one that it has read */

    return time - now < NGX_HTTP_DSA_AHEAD ? 0 : (ngx_msec_t) (time - now);
}


ngx_uint_t
ngx_http_dsa_session_up(ngx_http_dsa_session_t *s)
{
    return s->state == NGX_HTTP_DSA_READY
           && ngx_http_dsa_session_age(s) < NGX_HTTP_DSA_STALL;
}


ngx_uint_t
ngx_http_dsa_session_hangs(ngx_http_dsa_session_t *s)
{
    uint64_t    limit;
    ngx_msec_t  age;

    if (s->state != NGX_HTTP_DSA_READY) {
        return 0;
    }

    limit = atomic_load_explicit(&s->link.control->step_timeout_ms,
                                 memory_order_relaxed);
    age = ngx_max(ngx_http_dsa_session_age(s), ngx_http_dsa_session_step(s));

    return limit != 0 && age > NGX_HTTP_DSA_STALL
           && age - NGX_HTTP_DSA_STALL > limit;
}


static void
ngx_http_dsa_session_timer_handler(ngx_event_t *ev)
{
    ngx_http_dsa_session_t  *s = ev->data;

    switch (s->state) {

    case NGX_HTTP_DSA_CONNECTING:
        ngx_http_dsa_session_fault(s, 0, "it sent no hello in time");
        ngx_http_dsa_session_fail(s);
        return;

    case NGX_HTTP_DSA_READY:
        ngx_add_timer(&s->timer, NGX_HTTP_DSA_CHECK_TIME);
        ngx_http_dsa_session_check(s);
        return;

    default: /* NGX_HTTP_DSA_DOWN */
        ngx_http_dsa_session_connect(s);
        return;
    }
}


/*
 * Checks whether the replica responds.  If it does not, it may hang or
 * continue later.  Requests that it has not accepted move to other replicas,
 * because nothing of them is computed.  Accepted requests wait: the supervisor
 * kills a replica that hangs, which closes the socket.
 */

static void
ngx_http_dsa_session_check(ngx_http_dsa_session_t *s)
{
    ngx_uint_t  n, stale;

    ngx_http_dsa_backlog_update(&s->backlog, s->link.control);

    stale = !ngx_http_dsa_session_up(s);

    if (!stale && !s->stale) {
        return;
    }

    if (!stale) {
        s->stale = 0;

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "engine \"%V\" responds again", &s->name);

        s->changed(s);
        return;
    }

    n = ngx_http_dsa_slots_abandon(&s->slots, &s->link);

    if (!s->stale) {
        s->stale = 1;

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "engine \"%V\" has not responded for %M ms: %ui requests "
                      "that it has not accepted move to other engines, %ui "
                      "that it has accepted wait for it", &s->name,
                      ngx_http_dsa_session_age(s), n, s->slots.active);

        s->changed(s);
    }

    ngx_http_dsa_slots_flush(&s->slots);
}


/* Logs why an engine cannot be used; why is a static string. */

static void
ngx_http_dsa_session_fault(ngx_http_dsa_session_t *s, ngx_err_t err,
    const char *why)
{
    ngx_uint_t  level;

    level = ngx_http_dsa_session_level(s, why);

    ngx_log_error(level, ngx_cycle->log, err,
                  "engine \"%V\" cannot be used: %s", &s->name, why);
}


/* Logs the wrong record that ends the session. */

static void
ngx_http_dsa_session_wrong(ngx_http_dsa_session_t *s)
{
    ngx_uint_t               level;
    ngx_http_dsa_records_t  *r;

    r = &s->records;

    if (r->fault != NULL) {
        ngx_http_dsa_session_fault(s, 0, r->fault);
        return;
    }

    level = ngx_http_dsa_session_level(s, r->wrong.field);

    ngx_log_error(level, ngx_cycle->log, 0,
                  "engine \"%V\" cannot be used: it sent %s %s (slot %uD, "
                  "epoch %uD)", &s->name, r->wrong.name, r->wrong.text,
                  dsa_link_slot(r->id), dsa_link_epoch(r->id));
}


/*
 * Returns the log level of a fault.  The worker connects to an engine several
 * times a second, so a fault is logged as an error only once, until the engine
 * is ready or has another fault.
 */

static ngx_uint_t
ngx_http_dsa_session_level(ngx_http_dsa_session_t *s, const char *why)
{
    if (s->fault != NULL && ngx_strcmp(s->fault, why) == 0) {
        return NGX_LOG_INFO;
    }

    s->fault = why;

    return NGX_LOG_ERR;
}


/*
 * Closes the session in a posted event, because the caller is handling a
 * request, and closing the session reports events to requests.
 */

static void
ngx_http_dsa_session_broken(ngx_http_dsa_session_t *s, ngx_err_t err,
    const char *why)
{
    ngx_http_dsa_session_fault(s, err, why);
    ngx_post_event(&s->failure, &ngx_posted_events);
}


static void
ngx_http_dsa_session_failure_handler(ngx_event_t *ev)
{
    ngx_http_dsa_session_fail(ev->data);
}


/*
 * Closes a session, ends its requests, and starts the timer to connect again.
 */

static void
ngx_http_dsa_session_fail(ngx_http_dsa_session_t *s)
{
    ngx_msec_t  delay;

    ngx_http_dsa_metrics_add(lost, s->slots.active);

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "dsa engine \"%V\": lost in state %d with %ui requests",
                   &s->name, s->state, s->slots.active);

    ngx_http_dsa_session_close(s);
    ngx_http_dsa_slots_destroy(&s->slots);

    /* jitter, so that the workers do not all connect at the same moment */

    delay = NGX_HTTP_DSA_RETRY_MIN << ngx_min(s->attempts, 3);
    delay = ngx_min(delay, NGX_HTTP_DSA_RETRY_MAX);
    delay += ngx_random() % (delay / 4 + 1);

    s->attempts++;

    ngx_add_timer(&s->timer, delay);

    ngx_http_dsa_slots_flush(&s->slots);

    s->changed(s);
}


/* Frees everything of a session but its requests, without reporting LOST. */

static void
ngx_http_dsa_session_close(ngx_http_dsa_session_t *s)
{
    if (s->state == NGX_HTTP_DSA_READY) {
        ngx_http_dsa_metrics_session(-1);
    }

    s->state = NGX_HTTP_DSA_DOWN;

    if (s->failure.posted) {
        ngx_delete_posted_event(&s->failure);
    }

    if (s->socket != NULL) {
        ngx_close_connection(s->socket);
        s->socket = NULL;
    }

    if (s->wake != NULL) {
        ngx_close_connection(s->wake);
        s->wake = NULL;
    }

    if (s->wake_fd != NGX_INVALID_FILE) {
        if (close(s->wake_fd) == -1) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                          "close() of eventfd failed");
        }

        s->wake_fd = NGX_INVALID_FILE;
    }

    ngx_http_dsa_segment_unmap(s->segment, &s->hello);
    s->segment = NULL;

    ngx_http_dsa_records_free(&s->records);
}
