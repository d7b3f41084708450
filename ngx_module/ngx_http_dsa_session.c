
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <ctype.h>
#include <sys/mman.h>

#include "base/utf8.h"

#include "ngx_http_dsa_module.h"


/* records of one wake; what is left waits until others had their turn */
#define NGX_HTTP_DSA_BATCH        1024

#define NGX_HTTP_DSA_HELLO_TIME   5000
#define NGX_HTTP_DSA_RETRY_MIN    50
#define NGX_HTTP_DSA_RETRY_MAX    400

#define NGX_HTTP_DSA_NO_SLOT      0xffffffff


/* Why an engine is no session; 0: nothing is the matter. */

typedef enum {
    NGX_HTTP_DSA_FAULT_CONNECT = 1,
    NGX_HTTP_DSA_FAULT_TIMEOUT,
    NGX_HTTP_DSA_FAULT_HELLO,
    NGX_HTTP_DSA_FAULT_VERSION,
    NGX_HTTP_DSA_FAULT_SEALS,
    NGX_HTTP_DSA_FAULT_SIZE,
    NGX_HTTP_DSA_FAULT_LINK
} ngx_http_dsa_fault_e;


static void ngx_http_dsa_session_connect(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_socket_handler(ngx_event_t *rev);
static void ngx_http_dsa_session_clean(dsa_link_hello_t *hello);
static ngx_uint_t ngx_http_dsa_session_level(ngx_http_dsa_session_t *s,
    ngx_http_dsa_fault_e fault);
static ngx_int_t ngx_http_dsa_session_open(ngx_http_dsa_session_t *s,
    int fds[DSA_LINK_FDS]);
static ngx_int_t ngx_http_dsa_session_map(ngx_http_dsa_session_t *s,
    ngx_fd_t fd);
static ngx_connection_t *ngx_http_dsa_session_channel(ngx_fd_t fd,
    ngx_event_handler_pt handler, void *data);
static void ngx_http_dsa_session_bell_handler(ngx_event_t *rev);
static ngx_int_t ngx_http_dsa_session_drain(ngx_http_dsa_session_t *s);
static ngx_int_t ngx_http_dsa_session_record(ngx_http_dsa_session_t *s,
    const dsa_link_record_t *record, const void *payload);
static ngx_int_t ngx_http_dsa_session_check(const dsa_link_record_t *record,
    const u_char *p);
static void ngx_http_dsa_session_tell(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call, ngx_http_dsa_event_e event, const void *data);
static void ngx_http_dsa_session_flush(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_release(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call);
static void ngx_http_dsa_session_ring(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_broken(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_failure_handler(ngx_event_t *ev);
static void ngx_http_dsa_session_timer_handler(ngx_event_t *ev);
static void ngx_http_dsa_session_close(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_forget(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_session_fail(ngx_http_dsa_session_t *s);
static void ngx_http_dsa_pool_wake(ngx_http_dsa_pool_t *pool);
static ngx_uint_t ngx_http_dsa_session_usable(ngx_http_dsa_session_t *s);
static ngx_uint_t ngx_http_dsa_session_serves(ngx_http_dsa_session_t *s,
    ngx_str_t *model);


ngx_int_t
ngx_http_dsa_pool_start(ngx_http_dsa_pool_t *pool, ngx_cycle_t *cycle)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        s[i].timer.handler = ngx_http_dsa_session_timer_handler;
        s[i].timer.data = &s[i];
        s[i].timer.log = cycle->log;
        s[i].timer.cancelable = 1;

        s[i].failure.handler = ngx_http_dsa_session_failure_handler;
        s[i].failure.data = &s[i];
        s[i].failure.log = cycle->log;

        s[i].ring = NGX_INVALID_FILE;
        ngx_queue_init(&s[i].touched);

        ngx_http_dsa_session_connect(&s[i]);
    }

    return NGX_OK;
}


void
ngx_http_dsa_pool_stop(ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].timer.timer_set) {
            ngx_del_timer(&s[i].timer);
        }

        ngx_http_dsa_session_close(&s[i]);
        ngx_http_dsa_session_forget(&s[i]);
    }
}


static void
ngx_http_dsa_session_connect(ngx_http_dsa_session_t *s)
{
    size_t              len;
    ngx_fd_t            fd;
    ngx_err_t           err;
    ngx_uint_t          level;
    struct sockaddr_un  sun;

    ngx_memzero(&sun, sizeof(struct sockaddr_un));

    sun.sun_family = AF_UNIX;

    len = s->name.len - (sizeof("unix:") - 1);
    ngx_memcpy(sun.sun_path, s->name.data + sizeof("unix:") - 1, len);

    fd = ngx_socket(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC|SOCK_NONBLOCK, 0);

    if (fd == (ngx_fd_t) -1) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_socket_errno,
                      ngx_socket_n " for engine \"%V\" failed", &s->name);
        goto failed;
    }

    /* a unix socket is connected at once, or its backlog is full */

    if (connect(fd, (struct sockaddr *) &sun,
                offsetof(struct sockaddr_un, sun_path) + len + 1)
        == -1)
    {
        err = ngx_socket_errno;
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_CONNECT);

        ngx_log_error(level, ngx_cycle->log, err,
                      "connect() to engine \"%V\" failed", &s->name);

        (void) ngx_close_socket(fd);
        goto failed;
    }

    if (dsa_link_send_offer(fd) != 0) {
        err = ngx_socket_errno;
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_CONNECT);

        ngx_log_error(level, ngx_cycle->log, err,
                      "send() to engine \"%V\" failed", &s->name);

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
 * A descriptor on the event loop, level triggered.  As a channel it keeps
 * neither a worker that shuts down nor its shutdown timer busy.  NULL: the
 * descriptor was closed.
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


/* The hello, and later the end: nothing else comes by the socket. */

static void
ngx_http_dsa_session_socket_handler(ngx_event_t *rev)
{
    int                      fds[DSA_LINK_FDS], rc;
    uint64_t                 end;
    ngx_err_t                err;
    ngx_uint_t               level;
    ngx_connection_t        *c;
    ngx_http_dsa_session_t  *s;

    c = rev->data;
    s = c->data;

    if (s->state == NGX_HTTP_DSA_READY) {

        /* what it said before it left counts; that is a ring at most */

        end = s->link.event.own + s->link.event.size;

        while (s->link.event.own < end
               && ngx_http_dsa_session_drain(s) == NGX_AGAIN)
        {
            /* void */
        }

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "engine \"%V\" is gone, %ui requests were with it",
                      &s->name, s->active);

        ngx_http_dsa_session_fail(s);
        return;
    }

    rc = dsa_link_recv_hello(c->fd, &s->hello, fds);

    if (rc == 0) {
        return;
    }

    if (rc == -1) {
        err = ngx_errno;
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_HELLO);

        ngx_log_error(level, ngx_cycle->log, err,
                      "engine \"%V\" sent no valid hello", &s->name);
        goto failed;
    }

    if (s->hello.version == 0) {
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_VERSION);

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" and this nginx have no version of the "
                      "link in common: the engine accepts %uD to %uD, nginx "
                      "%d to %d", &s->name, s->hello.version_min,
                      s->hello.version_max, DSA_LINK_VERSION_MIN,
                      DSA_LINK_VERSION_MAX);
        goto failed;
    }

    ngx_http_dsa_session_clean(&s->hello);

    if (ngx_http_dsa_session_open(s, fds) != NGX_OK) {
        goto failed;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "engine \"%V\" serves \"%s\", context of %uD tokens",
                  &s->name, s->hello.model, s->hello.context_length);

    ngx_http_dsa_pool_wake(s->pool);

    return;

failed:

    /* what it says of itself is not believed */

    s->hello.magic = 0;

    ngx_http_dsa_session_fail(s);
}


/* An engine's names go to logs, JSON and labels; it could write its own. */

static void
ngx_http_dsa_session_clean(dsa_link_hello_t *hello)
{
    u_char  *p;
    size_t   len;

    p = (u_char *) hello->model;
    len = ngx_http_dsa_printable(p, sizeof(hello->model) - 1, p,
                                 ngx_strlen(p));
    p[len] = '\0';

    for (p = (u_char *) hello->fingerprint; *p != '\0'; p++) {
        if (!isalnum(*p)) {
            *p = '?';
        }
    }
}


size_t
ngx_http_dsa_printable(u_char *out, size_t size, const u_char *text,
    size_t len)
{
    int      n;
    size_t   i;
    u_char  *p;

    p = out;

    for (i = 0; i < len && p < out + size; /* void */ ) {
        n = dsa_utf8_char(text + i, len - i);

        if (n <= 0) {
            *p++ = '?';
            i++;
            continue;
        }

        if (n > out + size - p) {
            break;
        }

        /* C0 and DEL, and C1 (U+0080 to U+009F), which terminals obey too */

        if ((n == 1 && (text[i] < 0x20 || text[i] == 0x7f))
            || (n == 2 && text[i] == 0xc2 && text[i + 1] < 0xa0))
        {
            *p++ = ' ';

        } else {
            ngx_memmove(p, text + i, n);
            p += n;
        }

        i += n;
    }

    return p - out;
}


/*
 * An engine is tried some times a second: a fault that lasts is told once, at
 * error level, until the engine is up or another fault takes its place.
 */

static ngx_uint_t
ngx_http_dsa_session_level(ngx_http_dsa_session_t *s,
    ngx_http_dsa_fault_e fault)
{
    if (s->told == fault) {
        return NGX_LOG_INFO;
    }

    s->told = fault;

    return NGX_LOG_ERR;
}


static ngx_int_t
ngx_http_dsa_session_open(ngx_http_dsa_session_t *s, int fds[DSA_LINK_FDS])
{
    uint32_t   i;
    ngx_int_t  rc;

    s->ring = fds[1];

    rc = ngx_http_dsa_session_map(s, fds[0]);

    if (close(fds[0]) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "close() of memfd failed");
    }

    if (rc != NGX_OK) {
        goto failed;
    }

    s->slots = ngx_alloc(s->hello.slots * sizeof(ngx_http_dsa_slot_t),
                         ngx_cycle->log);
    if (s->slots == NULL) {
        goto failed;
    }

    for (i = 0; i < s->hello.slots; i++) {
        s->slots[i].call = NULL;
        s->slots[i].epoch = 0;
        s->slots[i].next = i + 1;
    }

    s->slots[s->hello.slots - 1].next = NGX_HTTP_DSA_NO_SLOT;
    s->free = 0;

    if (ngx_nonblocking(fds[1]) == -1 || ngx_nonblocking(fds[2]) == -1) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      ngx_nonblocking_n " of eventfd of engine \"%V\" failed",
                      &s->name);
        goto failed;
    }

    s->bell = ngx_http_dsa_session_channel(fds[2],
                                           ngx_http_dsa_session_bell_handler,
                                           s);
    if (s->bell == NULL) {
        return NGX_ERROR;
    }

    if (s->timer.timer_set) {
        ngx_del_timer(&s->timer);
    }

    s->state = NGX_HTTP_DSA_READY;
    s->attempts = 0;
    s->told = 0;

    ngx_http_dsa_metrics_session(1);

    if (dsa_link_sleep(&s->link.event) == 0) {
        ngx_post_event(s->bell->read, &ngx_posted_next_events);
    }

    return NGX_OK;

failed:

    (void) close(fds[2]);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_dsa_session_map(ngx_http_dsa_session_t *s, ngx_fd_t fd)
{
    int                   seals;
    ngx_uint_t            level;
    ngx_file_info_t       fi;

    /* unsealed, a file that shrinks would kill the worker with SIGBUS */

    seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || (seals & F_SEAL_SHRINK) == 0
        || (seals & F_SEAL_GROW) == 0)
    {
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_SEALS);

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" sent a segment without seals", &s->name);
        return NGX_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR
        || s->hello.segment_size == 0
        || (uint64_t) ngx_file_size(&fi) != s->hello.segment_size)
    {
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_SIZE);

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" sent a segment of another size than "
                      "its hello says", &s->name);
        return NGX_ERROR;
    }

    s->segment = mmap(NULL, s->hello.segment_size, PROT_READ|PROT_WRITE,
                      MAP_SHARED, fd, 0);

    if (s->segment == MAP_FAILED) {
        s->segment = NULL;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "mmap(%uL) of the segment of engine \"%V\" failed",
                      s->hello.segment_size, &s->name);
        return NGX_ERROR;
    }

    if (dsa_link_attach(&s->link, s->segment, s->hello.segment_size, &s->hello)
        != 0)
    {
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_LINK);

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" sent a malformed hello, or one of "
                      "version %uD of the link, which is not in the range %d "
                      "to %d that nginx offered", &s->name,
                      s->hello.version, DSA_LINK_VERSION_MIN,
                      DSA_LINK_VERSION_MAX);

        if (munmap(s->segment, s->hello.segment_size) == -1) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                          "munmap() failed");
        }

        s->segment = NULL;
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_dsa_session_bell_handler(ngx_event_t *rev)
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
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "read() of eventfd of engine \"%V\" failed", &s->name);
        ngx_http_dsa_session_fail(s);
        return;
    }

    rc = ngx_http_dsa_session_drain(s);

    if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "engine \"%V\" sent a corrupt record, session closed",
                      &s->name);
        ngx_http_dsa_session_fail(s);
        return;
    }

    if (rc == NGX_AGAIN) {
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    ngx_http_dsa_session_flush(s);
}


/* NGX_OK: empty and asleep; NGX_AGAIN: there is more; NGX_ERROR: corrupt. */

static ngx_int_t
ngx_http_dsa_session_drain(ngx_http_dsa_session_t *s)
{
    int                 rc;
    ngx_uint_t          n;
    const void         *payload;
    dsa_link_record_t   record;

    n = 0;

    for ( ;; ) {
        rc = dsa_link_peek(&s->link.event, &record, &payload);

        if (rc == 0) {
            if (dsa_link_sleep(&s->link.event)) {
                return NGX_OK;
            }

            continue;
        }

        if (rc == -1) {
            return NGX_ERROR;
        }

        if (n++ == NGX_HTTP_DSA_BATCH) {
            return NGX_AGAIN;
        }

        if (ngx_http_dsa_session_record(s, &record, payload) != NGX_OK) {
            return NGX_ERROR;
        }

        dsa_link_release(&s->link.event);
    }
}


static ngx_int_t
ngx_http_dsa_session_record(ngx_http_dsa_session_t *s,
    const dsa_link_record_t *record, const void *payload)
{
    size_t                size;
    u_char               *p;
    uint32_t              slot;
    ngx_http_dsa_call_t  *call;

    slot = dsa_link_slot(record->id);

    if (slot >= s->hello.slots) {
        return NGX_ERROR;
    }

    call = s->slots[slot].call;

    if (call == NULL || call->id != record->id) {

        /* of a request that has ended: must not happen, does no harm */

        return NGX_OK;
    }

    if (record->length > dsa_link_max_payload(&s->link.event)) {
        return NGX_ERROR;
    }

    if (record->length > s->scratch_size) {
        size = ngx_align((size_t) record->length, 4096);

        p = ngx_alloc(size, ngx_cycle->log);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_free(s->scratch);

        s->scratch = p;
        s->scratch_size = size;
    }

    /* a copy, since the replica could change it after the check */

    if (record->length != 0) {
        ngx_memcpy(s->scratch, payload, record->length);
    }

    if (ngx_http_dsa_session_check(record, s->scratch) != NGX_OK) {
        return NGX_ERROR;
    }

    switch (record->type) {

    case DSA_LINK_ACCEPTED:

        if (!call->accepted) {
            call->accepted = 1;
            s->unaccepted--;
        }

        ngx_http_dsa_session_tell(s, call, NGX_HTTP_DSA_EV_ACCEPTED,
                                  s->scratch);
        break;

    case DSA_LINK_TOKENS:
        ngx_http_dsa_session_tell(s, call, NGX_HTTP_DSA_EV_TOKENS,
                                  s->scratch);
        break;

    case DSA_LINK_DONE:
        ngx_http_dsa_session_release(s, call);
        ngx_http_dsa_session_tell(s, call, NGX_HTTP_DSA_EV_DONE, s->scratch);
        break;

    default: /* DSA_LINK_ERROR */
        ngx_http_dsa_session_release(s, call);
        ngx_http_dsa_session_tell(s, call, NGX_HTTP_DSA_EV_ERROR, s->scratch);
        break;
    }

    return NGX_OK;
}


/* Whether a payload has the size and the inner order of its type. */

static ngx_int_t
ngx_http_dsa_session_check(const dsa_link_record_t *record, const u_char *p)
{
    uint32_t             i, last;
    uint64_t             size;
    dsa_link_token_t     token;
    dsa_link_tokens_t    tokens;
    dsa_link_failure_t   failure;

    switch (record->type) {

    case DSA_LINK_ACCEPTED:
        return record->length == sizeof(dsa_link_accepted_t) ? NGX_OK
                                                             : NGX_ERROR;

    case DSA_LINK_DONE:
        return record->length == sizeof(dsa_link_done_t) ? NGX_OK : NGX_ERROR;

    case DSA_LINK_ERROR:

        if (record->length < sizeof(dsa_link_failure_t)) {
            return NGX_ERROR;
        }

        ngx_memcpy(&failure, p, sizeof(dsa_link_failure_t));

        return record->length - sizeof(dsa_link_failure_t) == failure.text_len
               ? NGX_OK : NGX_ERROR;

    case DSA_LINK_TOKENS:
        break;

    default: /* this worker sends SUBMIT only, so no COUNTED may come */
        return NGX_ERROR;
    }

    if (record->length < sizeof(dsa_link_tokens_t)) {
        return NGX_ERROR;
    }

    ngx_memcpy(&tokens, p, sizeof(dsa_link_tokens_t));

    if (tokens.logprobs > 1 || tokens.n_top > DSA_LINK_MAX_TOP) {
        return NGX_ERROR;
    }

    size = sizeof(dsa_link_tokens_t)
           + (uint64_t) tokens.n_tokens * sizeof(dsa_link_token_t)
           + tokens.text_len;

    if (tokens.logprobs) {
        size += (uint64_t) tokens.n_tokens * (1 + tokens.n_top)
                * sizeof(dsa_link_logprob_t);
    }

    if (size != record->length) {
        return NGX_ERROR;
    }

    p += sizeof(dsa_link_tokens_t);
    last = 0;

    for (i = 0; i < tokens.n_tokens; i++) {
        ngx_memcpy(&token, p, sizeof(dsa_link_token_t));
        p += sizeof(dsa_link_token_t);

        if (token.end < last || token.end > tokens.text_len
            || token.control > token.end - last)
        {
            return NGX_ERROR;
        }

        last = token.end;
    }

    return NGX_OK;
}


static void
ngx_http_dsa_session_tell(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call, ngx_http_dsa_event_e event, const void *data)
{
    if (call->data != NULL && !call->touched) {
        call->touched = 1;
        ngx_queue_insert_tail(&s->touched, &call->queue);
    }

    /* a call that nobody owns may be freed in here */

    call->handler(call, event, data);
}


static void
ngx_http_dsa_session_flush(ngx_http_dsa_session_t *s)
{
    ngx_queue_t          *q;
    ngx_http_dsa_call_t  *call;

    /* any request may end in the course of another one's flush */

    while (!ngx_queue_empty(&s->touched)) {
        q = ngx_queue_head(&s->touched);
        ngx_queue_remove(q);

        call = ngx_queue_data(q, ngx_http_dsa_call_t, queue);
        call->touched = 0;

        call->handler(call, NGX_HTTP_DSA_EV_FLUSH, NULL);
    }
}


static void
ngx_http_dsa_session_release(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call)
{
    uint32_t  slot;

    slot = dsa_link_slot(call->id);

    s->slots[slot].call = NULL;
    s->slots[slot].next = s->free;
    s->free = slot;
    s->active--;

    if (!call->accepted) {
        s->unaccepted--;
    }

    call->session = NULL;
}


ngx_int_t
ngx_http_dsa_session_submit(ngx_http_dsa_session_t *s,
    ngx_http_dsa_call_t *call, dsa_link_submit_t *head,
    const ngx_http_dsa_field_t *fields, uint32_t n)
{
    u_char            *p;
    uint32_t           i, slot;
    uint64_t           length, padded, id;
    dsa_link_field_t   field;

    slot = s->free;

    if (slot == NGX_HTTP_DSA_NO_SLOT) {
        ngx_http_dsa_metrics_add(ring_full, 1);
        return NGX_BUSY;
    }

    length = sizeof(dsa_link_submit_t);

    for (i = 0; i < n; i++) {
        length += sizeof(dsa_link_field_t)
                  + dsa_link_pad(fields[i].value.len, 8);
    }

    if (++s->slots[slot].epoch == 0) {
        s->slots[slot].epoch = 1;
    }

    id = dsa_link_id(s->slots[slot].epoch, slot);

    p = dsa_link_reserve(&s->link.submit, DSA_LINK_SUBMIT, id, length);

    if (p == NULL) {
        if (errno == EMSGSIZE) {
            return NGX_DECLINED;
        }

        if (errno == EPROTO) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "engine \"%V\" has a corrupt submit ring, "
                          "session closed", &s->name);
            ngx_http_dsa_session_broken(s);
            return NGX_ERROR;
        }

        ngx_http_dsa_metrics_add(ring_full, 1);
        return NGX_BUSY;
    }

    head->n_fields = n;

    p = ngx_cpymem(p, head, sizeof(dsa_link_submit_t));

    for (i = 0; i < n; i++) {
        field.length = fields[i].value.len;
        field.type = fields[i].type;
        padded = dsa_link_pad(field.length, 8);

        p = ngx_cpymem(p, &field, sizeof(dsa_link_field_t));
        ngx_memcpy(p, fields[i].value.data, field.length);
        ngx_memzero(p + field.length, padded - field.length);
        p += padded;
    }

    s->free = s->slots[slot].next;
    s->slots[slot].call = call;
    s->active++;
    s->unaccepted++;

    call->session = s;
    call->id = id;
    call->accepted = 0;

    if (dsa_link_commit(&s->link.submit)) {
        ngx_http_dsa_session_ring(s);
    }

    return NGX_OK;
}


void
ngx_http_dsa_session_cancel(ngx_http_dsa_call_t *call)
{
    ngx_http_dsa_session_t  *s = call->session;

    dsa_link_cancel(&s->link, call->id);
    ngx_http_dsa_session_ring(s);
}


static void
ngx_http_dsa_session_ring(ngx_http_dsa_session_t *s)
{
    uint64_t  one;

    one = 1;

    /* EAGAIN: the counter is full, so that the replica wakes anyway */

    if (write(s->ring, &one, sizeof(uint64_t)) == -1
        && ngx_errno != NGX_EAGAIN)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "write() to eventfd of engine \"%V\" failed", &s->name);
        ngx_http_dsa_session_broken(s);
    }
}


/* The caller is in the middle of a request, so the session ends later. */

static void
ngx_http_dsa_session_broken(ngx_http_dsa_session_t *s)
{
    ngx_post_event(&s->failure, &ngx_posted_events);
}


static void
ngx_http_dsa_session_failure_handler(ngx_event_t *ev)
{
    ngx_http_dsa_session_fail(ev->data);
}


static void
ngx_http_dsa_session_timer_handler(ngx_event_t *ev)
{
    ngx_uint_t               level;
    ngx_http_dsa_session_t  *s = ev->data;

    if (s->state == NGX_HTTP_DSA_CONNECTING) {
        level = ngx_http_dsa_session_level(s, NGX_HTTP_DSA_FAULT_TIMEOUT);

        ngx_log_error(level, ngx_cycle->log, 0,
                      "engine \"%V\" did not say hello within %d ms",
                      &s->name, NGX_HTTP_DSA_HELLO_TIME);

        ngx_http_dsa_session_fail(s);
        return;
    }

    ngx_http_dsa_session_connect(s);
}


/* Gives back all that a session has, without a word to its requests. */

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

    if (s->bell != NULL) {
        ngx_close_connection(s->bell);
        s->bell = NULL;
    }

    if (s->ring != NGX_INVALID_FILE) {
        if (close(s->ring) == -1) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                          "close() of eventfd failed");
        }

        s->ring = NGX_INVALID_FILE;
    }

    if (s->segment != NULL) {
        if (munmap(s->segment, s->hello.segment_size) == -1) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                          "munmap() failed");
        }

        s->segment = NULL;
    }

    ngx_free(s->scratch);
    s->scratch = NULL;
    s->scratch_size = 0;
}


/* Tells all calls that they are lost. */

static void
ngx_http_dsa_session_forget(ngx_http_dsa_session_t *s)
{
    uint32_t              i;
    ngx_http_dsa_call_t  *call;
    ngx_http_dsa_slot_t  *slots;

    slots = s->slots;
    s->slots = NULL;

    s->active = 0;
    s->unaccepted = 0;

    if (slots == NULL) {
        return;
    }

    for (i = 0; i < s->hello.slots; i++) {
        call = slots[i].call;

        if (call != NULL) {
            call->session = NULL;
            ngx_http_dsa_session_tell(s, call, NGX_HTTP_DSA_EV_LOST, NULL);
        }
    }

    ngx_free(slots);
}


/* The replica is lost: its requests are told, and it is called again. */

static void
ngx_http_dsa_session_fail(ngx_http_dsa_session_t *s)
{
    ngx_msec_t  delay;

    ngx_http_dsa_metrics_add(lost, s->active);

    ngx_http_dsa_session_close(s);
    ngx_http_dsa_session_forget(s);

    /* jitter keeps the workers from calling all at the same moment */

    delay = NGX_HTTP_DSA_RETRY_MIN << ngx_min(s->attempts, 3);
    delay = ngx_min(delay, NGX_HTTP_DSA_RETRY_MAX);
    delay += ngx_random() % (delay / 4 + 1);

    s->attempts++;

    ngx_add_timer(&s->timer, delay);

    ngx_http_dsa_session_flush(s);

    ngx_http_dsa_pool_wake(s->pool);
}


/* Requests that came before the first hello decide anew. */

static void
ngx_http_dsa_pool_wake(ngx_http_dsa_pool_t *pool)
{
    ngx_queue_t          waiting, *q;
    ngx_http_dsa_ctx_t  *ctx;

    if (ngx_queue_empty(&pool->waiting)) {
        return;
    }

    /* who goes on waiting is put into the pool's own queue again */

    ngx_queue_init(&waiting);
    ngx_queue_add(&waiting, &pool->waiting);
    ngx_queue_init(&pool->waiting);

    while (!ngx_queue_empty(&waiting)) {
        q = ngx_queue_head(&waiting);
        ngx_queue_remove(q);

        ctx = ngx_queue_data(q, ngx_http_dsa_ctx_t, waiting);
        ctx->queued = 0;

        ngx_http_dsa_resume(ctx);
    }
}


static ngx_uint_t
ngx_http_dsa_session_usable(ngx_http_dsa_session_t *s)
{
    return s->state == NGX_HTTP_DSA_READY
           && atomic_load_explicit(&s->link.control->draining,
                                   memory_order_relaxed) == 0
           && ngx_http_dsa_session_age(s) < NGX_HTTP_DSA_STALL;
}


static ngx_uint_t
ngx_http_dsa_session_serves(ngx_http_dsa_session_t *s, ngx_str_t *model)
{
    return model == NULL
           || (ngx_strlen(s->hello.model) == model->len
               && ngx_memcmp(s->hello.model, model->data, model->len) == 0);
}


uint32_t
ngx_http_dsa_pool_context(ngx_http_dsa_pool_t *pool, ngx_str_t *model)
{
    uint32_t                 context;
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;
    context = 0;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].hello.magic == DSA_LINK_MAGIC
            && ngx_http_dsa_session_serves(&s[i], model))
        {
            context = ngx_max(context, s[i].hello.context_length);
        }
    }

    return context;
}


ngx_http_dsa_session_t *
ngx_http_dsa_pool_pick(ngx_http_dsa_pool_t *pool, uint64_t tried,
    ngx_str_t *model, uint64_t context)
{
    uint64_t                 load, least;
    ngx_uint_t               i, n;
    dsa_link_control_t      *control;
    ngx_http_dsa_session_t  *s, *next, *best;

    s = pool->sessions.elts;
    n = pool->sessions.nelts;

    best = NULL;
    least = 0;

    pool->next++;

    for (i = pool->next; i < pool->next + n; i++) {
        next = &s[i % n];

        if ((tried & (1ULL << next->index)) != 0
            || !ngx_http_dsa_session_usable(next)
            || !ngx_http_dsa_session_serves(next, model)
            || next->hello.context_length < context)
        {
            continue;
        }

        control = next->link.control;

        /* of all workers, and what this one has on its way */

        load = (uint64_t) atomic_load_explicit(&control->running,
                                               memory_order_relaxed)
               + atomic_load_explicit(&control->waiting, memory_order_relaxed)
               + next->unaccepted;

        if (best == NULL || load < least) {
            best = next;
            least = load;
        }
    }

    return best;
}


ngx_http_dsa_session_t *
ngx_http_dsa_pool_any(ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i;
    ngx_http_dsa_session_t  *s, *known;

    s = pool->sessions.elts;
    known = NULL;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].state == NGX_HTTP_DSA_READY) {
            return &s[i];
        }

        if (s[i].hello.magic == DSA_LINK_MAGIC && known == NULL) {
            known = &s[i];
        }
    }

    return known;
}


ngx_uint_t
ngx_http_dsa_pool_opening(ngx_http_dsa_pool_t *pool)
{
    ngx_uint_t               i, opening;
    ngx_http_dsa_session_t  *s;

    s = pool->sessions.elts;
    opening = 0;

    for (i = 0; i < pool->sessions.nelts; i++) {
        if (s[i].state == NGX_HTTP_DSA_READY) {
            return 0;
        }

        if (s[i].state == NGX_HTTP_DSA_CONNECTING) {
            opening = 1;
        }
    }

    return opening;
}


uint64_t
ngx_http_dsa_monotonic(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


ngx_msec_t
ngx_http_dsa_session_age(ngx_http_dsa_session_t *s)
{
    uint64_t  now, beat;

    now = ngx_http_dsa_monotonic();
    beat = atomic_load_explicit(&s->link.control->alive_ms,
                                memory_order_relaxed);

    return beat < now ? (ngx_msec_t) (now - beat) : 0;
}
