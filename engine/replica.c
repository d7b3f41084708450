
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "engine/clock.h"
#include "engine/listen.h"
#include "engine/log.h"
#include "engine/replica.h"
#include "engine/session.h"


#define DSA_REPLICA_EVENTS      64
#define DSA_REPLICA_SESSIONS    256
#define DSA_REPLICA_IDLE        50      /* ms between heartbeats */
#define DSA_REPLICA_RETRY       5       /* ms, a ring is full and all is idle */
#define DSA_REPLICA_LINGER      1000    /* ms for workers to read the end */


typedef struct dsa_peer_s     dsa_peer_t;
typedef struct dsa_replica_s  dsa_replica_t;


/* What an epoll event points to. */

typedef struct {
    void              (*handler)(dsa_replica_t *r, dsa_peer_t *peer);
    dsa_peer_t         *peer;
} dsa_source_t;


struct dsa_peer_s {
    dsa_peer_t         *next;
    dsa_session_t      *session;
    dsa_source_t        socket;
    dsa_source_t        event;
    uint32_t            blocked;        /* its event ring is full */
    uint32_t            closed;         /* to be freed after this turn */
};


struct dsa_replica_s {
    dsa_service_t       service;
    dsa_listen_t        listen;
    dsa_source_t        accept;
    dsa_source_t        signal;
    dsa_peer_t         *peers;
    uint32_t            n_peers;
    int                 epoll;
    int                 signals;
    uint64_t            drain_end;      /* ms; when draining */
    uint32_t            aborted;
};


static int dsa_replica_signals(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_open(dsa_replica_t *r, const dsa_conf_t *conf,
    dsa_err_t *err);
static int dsa_replica_events(dsa_replica_t *r, dsa_err_t *err);
static int dsa_replica_watch(dsa_replica_t *r, int fd, uint32_t events,
    dsa_source_t *source);
static void dsa_replica_close(dsa_replica_t *r);
static int dsa_replica_loop(dsa_replica_t *r);
static int dsa_replica_timeout(dsa_replica_t *r, int more);
static int dsa_replica_turn(dsa_replica_t *r, int *more);
static void dsa_replica_reap(dsa_replica_t *r);
static int dsa_replica_over(dsa_replica_t *r);
static void dsa_replica_accept(dsa_replica_t *r, dsa_peer_t *peer);
static void dsa_replica_signal(dsa_replica_t *r, dsa_peer_t *peer);
static void dsa_replica_hangup(dsa_replica_t *r, dsa_peer_t *peer);
static void dsa_replica_wake(dsa_replica_t *r, dsa_peer_t *peer);
static void dsa_replica_tell(int fd, const char *text);


int
dsa_replica_run(const dsa_conf_t *conf, uint32_t number, int ready)
{
    int             rc;
    char            path[sizeof(((dsa_listen_t *) 0)->path)];
    dsa_err_t       err;
    dsa_replica_t   replica;

    memset(&replica, 0, sizeof(replica));

    replica.service.conf = conf;
    replica.service.replica = number;
    replica.listen.fd = -1;
    replica.epoll = -1;
    replica.signals = -1;

    rc = dsa_replica_signals(&replica, &err);

    if (rc == DSA_OK) {
        rc = dsa_replica_open(&replica, conf, &err);
    }

    if (rc == DSA_OK
        && dsa_conf_socket(conf, number, path, sizeof(path)) != DSA_OK)
    {
        rc = dsa_error(&err, "%s: the path is too long", conf->listen);
    }

    if (rc == DSA_OK) {
        rc = dsa_listen_open(&replica.listen, path, conf->socket_group, &err);
    }

    if (rc == DSA_OK) {
        rc = dsa_replica_events(&replica, &err);
    }

    if (rc != DSA_OK) {
        dsa_replica_tell(ready, err.text);
        (void) close(ready);
        dsa_replica_close(&replica);
        return 1;
    }

    dsa_log(DSA_LOG_NOTICE, "replica %u: model %s, %u pages of %d tokens, "
            "context %u, at %s", number, conf->name,
            replica.service.backend->pages, DSA_PAGE_TOKENS,
            dsa_sched_context(replica.service.sched), path);

    dsa_replica_tell(ready, DSA_REPLICA_READY);
    (void) close(ready);

    rc = dsa_replica_loop(&replica);

    dsa_replica_close(&replica);
    dsa_log(DSA_LOG_NOTICE, "replica %u: ends", number);

    return rc == DSA_OK ? 0 : 1;
}


/*
 * Before the model is opened: the threads of a library that computes inherit
 * the mask, and one without it would be ended by a signal, and all with it.
 */

static int
dsa_replica_signals(dsa_replica_t *r, dsa_err_t *err)
{
    sigset_t  set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGUSR1);

    /* a terminal sends these to all, and it is the supervisor who decides */

    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGQUIT, SIG_IGN);

    r->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);

    if (r->signals == -1 || sigprocmask(SIG_BLOCK, &set, NULL) == -1) {
        return dsa_error(err, "cannot wait for signals: %s", strerror(errno));
    }

    return DSA_OK;
}


static int
dsa_replica_open(dsa_replica_t *r, const dsa_conf_t *conf, dsa_err_t *err)
{
    int                  n;
    char                 path[4096];
    uint32_t             size, vocab;
    dsa_service_t       *s;
    dsa_sched_conf_t     sched;
    dsa_backend_conf_t   backend;

    s = &r->service;

    n = snprintf(path, sizeof(path), "%s/tokenizer.json", conf->model);

    if (n < 0 || (size_t) n >= sizeof(path)) {
        return dsa_error(err, "%s: the path is too long", conf->model);
    }

    s->tokenizer = dsa_tokenizer_open(path, err);

    if (s->tokenizer == NULL) {
        return DSA_ERROR;
    }

    s->work = dsa_tokenizer_work_create(s->tokenizer);

    if (s->work == NULL) {
        return dsa_error(err, "out of memory");
    }

    if (dsa_generation_read(&s->generation, conf->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    size = dsa_tokenizer_size(s->tokenizer);

    memset(&backend, 0, sizeof(backend));

    backend.model = conf->model;
    backend.precision = conf->precision;
    backend.kv_memory = conf->kv_memory;
    backend.max_tokens = conf->token_budget;
    backend.max_seqs = conf->max_running;
    backend.allowed = size;
    backend.rate = conf->rate;
    backend.random = conf->random;
    backend.context = conf->context_length;
    backend.device = s->replica;

    s->backend = dsa_backend_open(conf->backend, &backend, err);

    if (s->backend == NULL) {
        return DSA_ERROR;
    }

    vocab = s->backend->shape.vocab_size;

    if (size > vocab) {
        return dsa_error(err, "%s has ids up to %u, vocab_size in config.json "
                         "is %u", path, size - 1, vocab);
    }

    sched.max_running = conf->max_running;
    sched.token_budget = conf->token_budget;
    sched.max_waiting = conf->max_waiting;
    sched.context = s->backend->shape.max_position_embeddings;

    if (conf->context_length != 0 && conf->context_length < sched.context) {
        sched.context = conf->context_length;
    }

    s->sched = dsa_sched_create(s->backend, &sched, &dsa_session_handler,
                                err);

    return s->sched != NULL ? DSA_OK : DSA_ERROR;
}


static int
dsa_replica_events(dsa_replica_t *r, dsa_err_t *err)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {

        /* three descriptors a session come near the usual soft limit */

        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }

    r->accept.handler = dsa_replica_accept;
    r->signal.handler = dsa_replica_signal;

    r->epoll = epoll_create1(EPOLL_CLOEXEC);

    if (r->epoll == -1
        || dsa_replica_watch(r, r->signals, EPOLLIN, &r->signal) != DSA_OK
        || dsa_replica_watch(r, r->listen.fd, EPOLLIN, &r->accept) != DSA_OK)
    {
        return dsa_error(err, "cannot wait for events: %s", strerror(errno));
    }

    return DSA_OK;
}


static int
dsa_replica_watch(dsa_replica_t *r, int fd, uint32_t events,
    dsa_source_t *source)
{
    struct epoll_event  event;

    memset(&event, 0, sizeof(event));

    event.events = events;
    event.data.ptr = source;

    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? DSA_OK
                                                               : DSA_ERROR;
}


static void
dsa_replica_close(dsa_replica_t *r)
{
    dsa_peer_t  *peer;

    for (peer = r->peers; peer != NULL; peer = peer->next) {
        peer->closed = 1;
    }

    dsa_replica_reap(r);
    dsa_listen_close(&r->listen);

    if (r->epoll != -1) {
        (void) close(r->epoll);
    }

    if (r->signals != -1) {
        (void) close(r->signals);
    }

    dsa_sched_destroy(r->service.sched);

    if (r->service.backend != NULL) {
        r->service.backend->close(r->service.backend);
    }

    dsa_tokenizer_work_destroy(r->service.work);
    dsa_tokenizer_close(r->service.tokenizer);
}


static int
dsa_replica_loop(dsa_replica_t *r)
{
    int                  n, i, more;
    dsa_source_t        *source;
    struct epoll_event   events[DSA_REPLICA_EVENTS];

    more = 0;

    for ( ;; ) {
        n = epoll_wait(r->epoll, events, DSA_REPLICA_EVENTS,
                       dsa_replica_timeout(r, more));

        if (n == -1 && errno != EINTR) {
            dsa_log(DSA_LOG_ERR, "epoll_wait(): %s", strerror(errno));
            return DSA_ERROR;
        }

        for (i = 0; i < n; i++) {
            source = events[i].data.ptr;
            source->handler(r, source->peer);
        }

        if (dsa_replica_turn(r, &more) != DSA_OK) {
            return DSA_ERROR;
        }

        if (r->service.draining && dsa_replica_over(r)) {
            return DSA_OK;
        }
    }
}


/* How long there is nothing to do, if nobody comes. */

static int
dsa_replica_timeout(dsa_replica_t *r, int more)
{
    int          timeout;
    dsa_peer_t  *peer;

    timeout = more || dsa_sched_busy(r->service.sched) ? 0 : DSA_REPLICA_IDLE;

    if (timeout == 0) {
        return 0;
    }

    for (peer = r->peers; peer != NULL; peer = peer->next) {
        if (peer->blocked || r->service.draining) {
            timeout = DSA_REPLICA_RETRY;
        }

        if (!dsa_session_sleep(peer->session)) {
            return 0;
        }
    }

    return timeout;
}


/* Submits, cancels, a step, and what it has to say, for all sessions. */

static int
dsa_replica_turn(dsa_replica_t *r, int *more)
{
    int                 rc;
    uint64_t            now;
    dsa_err_t           err;
    dsa_peer_t         *peer;
    dsa_sched_stats_t   stats;

    *more = 0;
    now = dsa_clock_ms();

    for (peer = r->peers; peer != NULL; peer = peer->next) {
        if (peer->closed) {
            continue;
        }

        rc = dsa_session_read(peer->session, &err);

        if (rc == DSA_ERROR) {
            dsa_log(DSA_LOG_WARN, "a session is closed: %s", err.text);
            peer->closed = 1;

        } else {
            *more |= rc == DSA_AGAIN;
            dsa_session_poll(peer->session, now);
        }
    }

    dsa_replica_reap(r);

    if (dsa_sched_busy(r->service.sched)
        && dsa_sched_step(r->service.sched, &err) != DSA_OK)
    {
        dsa_log(DSA_LOG_ERR, "a step failed: %s", err.text);
        return DSA_ERROR;
    }

    now = dsa_clock_ms();
    dsa_sched_stats(r->service.sched, &stats);

    for (peer = r->peers; peer != NULL; peer = peer->next) {
        dsa_session_publish(peer->session, &stats, now);
        rc = dsa_session_flush(peer->session, &err);

        peer->blocked = rc == DSA_AGAIN;

        if (rc == DSA_ERROR) {
            dsa_log(DSA_LOG_WARN, "a session is closed: %s", err.text);
            peer->closed = 1;
        }
    }

    dsa_replica_reap(r);

    return DSA_OK;
}


static void
dsa_replica_reap(dsa_replica_t *r)
{
    dsa_peer_t  *peer, **at;

    for (at = &r->peers; *at != NULL; /* void */) {
        peer = *at;

        if (!peer->closed) {
            at = &peer->next;
            continue;
        }

        *at = peer->next;
        r->n_peers--;

        dsa_session_destroy(peer->session);
        free(peer);
    }
}


/* While draining: nothing is left to do, or no time to do it. */

static int
dsa_replica_over(dsa_replica_t *r)
{
    int          left;
    uint64_t     now;
    dsa_peer_t  *peer;

    now = dsa_clock_ms();

    if (now >= r->drain_end && !r->aborted) {
        for (peer = r->peers; peer != NULL; peer = peer->next) {
            dsa_session_abort(peer->session);
        }

        /* from now on, since the step before may have been a long one */

        r->aborted = 1;
        r->drain_end = now;

        return 0;
    }

    left = 0;

    for (peer = r->peers; peer != NULL; peer = peer->next) {
        if (dsa_session_requests(peer->session) != 0
            || !dsa_session_drained(peer->session))
        {
            left = 1;
        }
    }

    return !left || now >= r->drain_end + DSA_REPLICA_LINGER;
}


static void
dsa_replica_accept(dsa_replica_t *r, dsa_peer_t *unused)
{
    int          fd;
    dsa_err_t    err;
    dsa_peer_t  *peer;

    if (r->listen.fd == -1) {

        /* a signal of the same turn closed it */

        return;
    }

    fd = dsa_listen_accept(&r->listen);

    if (fd == -1) {
        if (errno != EAGAIN) {
            dsa_log(DSA_LOG_WARN, "a connection is refused: %s",
                    strerror(errno));
        }

        return;
    }

    if (r->n_peers == DSA_REPLICA_SESSIONS) {
        dsa_log(DSA_LOG_WARN, "a connection is refused: there are %d already",
                DSA_REPLICA_SESSIONS);
        (void) close(fd);
        return;
    }

    peer = calloc(1, sizeof(dsa_peer_t));

    if (peer == NULL) {
        dsa_log(DSA_LOG_ERR, "a connection is refused: out of memory");
        (void) close(fd);
        return;
    }

    peer->session = dsa_session_create(&r->service, fd, &err);

    if (peer->session == NULL) {
        dsa_log(DSA_LOG_ERR, "a connection is refused: %s", err.text);
        free(peer);
        return;
    }

    peer->socket.handler = dsa_replica_hangup;
    peer->socket.peer = peer;
    peer->event.handler = dsa_replica_wake;
    peer->event.peer = peer;

    peer->next = r->peers;
    r->peers = peer;
    r->n_peers++;

    if (dsa_replica_watch(r, fd, EPOLLIN|EPOLLRDHUP, &peer->socket) != DSA_OK
        || dsa_replica_watch(r, dsa_session_event(peer->session), EPOLLIN,
                             &peer->event)
           != DSA_OK)
    {
        dsa_log(DSA_LOG_ERR, "a connection is refused: %s", strerror(errno));
        peer->closed = 1;
        return;
    }

    dsa_log(DSA_LOG_INFO, "a worker is connected, %u are", r->n_peers);
}


static void
dsa_replica_signal(dsa_replica_t *r, dsa_peer_t *unused)
{
    struct signalfd_siginfo  info;

    if (read(r->signals, &info, sizeof(info)) != sizeof(info)) {
        return;
    }

    if (info.ssi_signo == SIGUSR1 && !r->aborted) {
        r->drain_end = 0;
    }

    if (r->service.draining) {
        return;
    }

    dsa_log(DSA_LOG_NOTICE, "replica %u: takes no new requests",
            r->service.replica);

    r->service.draining = 1;

    if (info.ssi_signo == SIGTERM) {
        r->drain_end = dsa_clock_ms() + r->service.conf->drain_timeout;
    }

    dsa_listen_close(&r->listen);
}


/* A worker sends nothing on its socket: whatever there is, is the end. */

static void
dsa_replica_hangup(dsa_replica_t *r, dsa_peer_t *peer)
{
    peer->closed = 1;
}


static void
dsa_replica_wake(dsa_replica_t *r, dsa_peer_t *peer)
{
    uint64_t  n;
    ssize_t   rc;

    /* its rings are looked at in this turn anyway */

    rc = read(dsa_session_event(peer->session), &n, sizeof(n));
    (void) rc;
}


static void
dsa_replica_tell(int fd, const char *text)
{
    ssize_t  n;

    do {
        n = write(fd, text, strlen(text));
    } while (n == -1 && errno == EINTR);
}
