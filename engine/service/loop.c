
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/loop.h"


#define DSA_LOOP_EVENTS     64
#define DSA_LOOP_RETRY      5           /* ms, a ring is full and all is idle */


struct dsa_peer_s {
    dsa_peer_t         *next;
    dsa_loop_t         *loop;
    dsa_session_t      *session;        /* NULL: no offer yet */
    dsa_source_t        socket;
    dsa_source_t        event;
    int                 fd;             /* the session's socket */
    uint64_t            expires;        /* ms; without an offer by then */
    uint32_t            blocked;        /* its event ring is full */
    uint32_t            closed;         /* to be freed after the events */
};


static int dsa_loop_add(dsa_loop_t *l, int fd, uint32_t events,
    dsa_source_t *source);
static void dsa_loop_forget(dsa_loop_t *l, int fd);
static int dsa_loop_timeout(dsa_loop_t *l);
static int dsa_loop_work(dsa_loop_t *l);
static void dsa_loop_reap(dsa_loop_t *l);
static void dsa_loop_accept(void *data);
static dsa_peer_t *dsa_loop_peer(dsa_loop_t *l, int fd, dsa_err_t *err);
static void dsa_loop_offer(void *data);
static void dsa_loop_mismatch(dsa_peer_t *peer,
    const dsa_link_offer_t *offer);
static void dsa_loop_session(dsa_peer_t *peer, uint32_t version);
static void dsa_loop_free(dsa_loop_t *l, dsa_peer_t *peer);
static void dsa_loop_pause(dsa_loop_t *l, const char *reason);
static void dsa_loop_resume(dsa_loop_t *l);
static void dsa_loop_hangup(void *data);
static void dsa_loop_wake(void *data);


int
dsa_loop_open(dsa_loop_t *l, dsa_service_t *service, dsa_listen_t *listen,
    dsa_err_t *err)
{
    memset(l, 0, sizeof(dsa_loop_t));

    l->service = service;
    l->listen = listen;
    l->accept.handler = dsa_loop_accept;
    l->accept.data = l;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);

    if (l->epoll == -1
        || dsa_loop_watch(l, listen->fd, &l->accept) != DSA_OK)
    {
        return dsa_error(err, "cannot wait for events: %s", strerror(errno));
    }

    return DSA_OK;
}


void
dsa_loop_close(dsa_loop_t *l)
{
    dsa_peer_t  *peer;

    for (peer = l->peers; peer != NULL; peer = peer->next) {
        peer->closed = 1;
    }

    dsa_loop_reap(l);

    if (l->epoll != -1) {
        (void) close(l->epoll);
        l->epoll = -1;
    }
}


int
dsa_loop_watch(dsa_loop_t *l, int fd, dsa_source_t *source)
{
    return dsa_loop_add(l, fd, EPOLLIN, source);
}


static int
dsa_loop_add(dsa_loop_t *l, int fd, uint32_t events, dsa_source_t *source)
{
    struct epoll_event  event;

    memset(&event, 0, sizeof(event));

    event.events = events;
    event.data.ptr = source;

    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? DSA_OK
                                                               : DSA_ERROR;
}


/*
 * close() alone does not remove a descriptor from epoll if another process
 * holds the same open file: epoll would report events for a freed source.
 */

static void
dsa_loop_forget(dsa_loop_t *l, int fd)
{
    (void) epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
}


int
dsa_loop_turn(dsa_loop_t *l, int most)
{
    int                  n, i, timeout;
    dsa_source_t        *source;
    struct epoll_event   events[DSA_LOOP_EVENTS];

    timeout = dsa_loop_timeout(l);
    n = epoll_wait(l->epoll, events, DSA_LOOP_EVENTS,
                   timeout < most ? timeout : most);

    if (n == -1 && errno != EINTR) {
        dsa_log(DSA_LOG_ERR, "epoll_wait(): %s", strerror(errno));
        return DSA_ERROR;
    }

    /* handlers free no source: a later event may point to it */

    for (i = 0; i < n; i++) {
        source = events[i].data.ptr;
        source->handler(source->data);
    }

    if (l->paused) {
        dsa_loop_resume(l);
    }

    return dsa_loop_work(l);
}


/* Milliseconds without anything to do, unless an event comes. */

static int
dsa_loop_timeout(dsa_loop_t *l)
{
    int          timeout;
    dsa_peer_t  *peer;

    if (l->more || dsa_sched_busy(l->service->sched)) {
        return 0;
    }

    timeout = DSA_LOOP_IDLE;

    for (peer = l->peers; peer != NULL; peer = peer->next) {
        if (peer->blocked || l->service->draining) {
            timeout = DSA_LOOP_RETRY;
        }

        if (peer->session != NULL && !dsa_session_sleep(peer->session)) {
            return 0;
        }
    }

    return timeout;
}


/* For all sessions: submits, cancels, a step, and what requests report. */

static int
dsa_loop_work(dsa_loop_t *l)
{
    int                 rc;
    uint64_t            now;
    dsa_err_t           err;
    dsa_peer_t         *peer;
    dsa_sched_stats_t   stats;

    l->more = 0;
    now = dsa_clock_ms();

    for (peer = l->peers; peer != NULL; peer = peer->next) {
        if (peer->session == NULL && now >= peer->expires) {
            dsa_log(DSA_LOG_WARN, "a connection is closed: no offer within "
                    "%d ms", DSA_LOOP_OFFER);
            peer->closed = 1;
        }

        if (peer->closed || peer->session == NULL) {
            continue;
        }

        rc = dsa_session_read(peer->session, &err);

        if (rc == DSA_ERROR) {
            dsa_log(DSA_LOG_WARN, "a session is closed: %s", err.text);
            peer->closed = 1;

        } else {
            l->more |= rc == DSA_AGAIN;
            dsa_session_poll(peer->session, now);
        }
    }

    dsa_loop_reap(l);

    if (dsa_sched_busy(l->service->sched)
        && dsa_sched_step(l->service->sched, &err) != DSA_OK)
    {
        dsa_log(DSA_LOG_ERR, "a step failed: %s", err.text);
        return DSA_ERROR;
    }

    now = dsa_clock_ms();
    dsa_sched_stats(l->service->sched, &stats);

    for (peer = l->peers; peer != NULL; peer = peer->next) {
        if (peer->session == NULL) {
            continue;
        }

        dsa_session_publish(peer->session, &stats, now);
        rc = dsa_session_flush(peer->session, &err);

        peer->blocked = rc == DSA_AGAIN;

        if (rc == DSA_ERROR) {
            dsa_log(DSA_LOG_WARN, "a session is closed: %s", err.text);
            peer->closed = 1;
        }
    }

    dsa_loop_reap(l);

    return DSA_OK;
}


static void
dsa_loop_reap(dsa_loop_t *l)
{
    dsa_peer_t  *peer, **at;

    for (at = &l->peers; *at != NULL; /* void */) {
        peer = *at;

        if (!peer->closed) {
            at = &peer->next;
            continue;
        }

        *at = peer->next;
        l->n_peers--;
        l->n_offers -= peer->session == NULL;

        dsa_loop_free(l, peer);

        /* a connection may be waiting for these descriptors */

        l->resume = 0;
    }
}


void
dsa_loop_drain(dsa_loop_t *l)
{
    l->service->draining = 1;

    if (l->listen->fd != -1) {
        dsa_loop_forget(l, l->listen->fd);
        dsa_listen_close(l->listen);
    }
}


void
dsa_loop_abort(dsa_loop_t *l)
{
    dsa_peer_t  *peer;

    for (peer = l->peers; peer != NULL; peer = peer->next) {
        if (peer->session != NULL) {
            dsa_session_abort(peer->session);
        }
    }
}


int
dsa_loop_idle(const dsa_loop_t *l)
{
    dsa_peer_t  *peer;

    for (peer = l->peers; peer != NULL; peer = peer->next) {
        if (peer->session != NULL
            && (dsa_session_requests(peer->session) != 0
                || !dsa_session_drained(peer->session)))
        {
            return 0;
        }
    }

    return 1;
}


static void
dsa_loop_accept(void *data)
{
    int          fd;
    dsa_err_t    err;
    dsa_loop_t  *l;
    dsa_peer_t  *peer;

    l = data;

    if (l->listen->fd == -1) {

        /* a signal of the same turn closed it */

        return;
    }

    fd = dsa_listen_accept(l->listen);

    if (fd == -1) {
        if (errno == EPERM) {
            dsa_log(DSA_LOG_WARN, "a connection is refused: %s",
                    strerror(errno));

        } else if (errno != EAGAIN) {
            (void) dsa_error(&err, "accept4(): %s", strerror(errno));
            dsa_loop_pause(l, err.text);
        }

        return;
    }

    if (l->n_peers == DSA_LOOP_SESSIONS || l->n_offers == DSA_LOOP_OFFERS) {
        dsa_log(DSA_LOG_WARN, "a connection is rejected: there are %u, of "
                "which %u have sent no offer", l->n_peers, l->n_offers);
        (void) close(fd);
        return;
    }

    peer = dsa_loop_peer(l, fd, &err);

    if (peer == NULL) {
        dsa_loop_pause(l, err.text);
        return;
    }

    peer->next = l->peers;
    l->peers = peer;
    l->n_peers++;
    l->n_offers++;

    /* the offer is usually there already */

    dsa_loop_offer(peer);
}


/* Takes over fd.  NULL with err, and fd is closed. */

static dsa_peer_t *
dsa_loop_peer(dsa_loop_t *l, int fd, dsa_err_t *err)
{
    dsa_peer_t  *peer;

    peer = calloc(1, sizeof(dsa_peer_t));

    if (peer == NULL) {
        (void) dsa_error(err, "out of memory");
        (void) close(fd);
        return NULL;
    }

    peer->loop = l;
    peer->fd = fd;
    peer->expires = dsa_clock_ms() + DSA_LOOP_OFFER;

    peer->socket.handler = dsa_loop_offer;
    peer->socket.data = peer;
    peer->event.handler = dsa_loop_wake;
    peer->event.data = peer;

    if (dsa_loop_add(l, fd, EPOLLIN|EPOLLRDHUP, &peer->socket) != DSA_OK) {
        (void) dsa_error(err, "epoll_ctl(): %s", strerror(errno));
        dsa_loop_free(l, peer);
        return NULL;
    }

    return peer;
}


/* The first message of a worker. */

static void
dsa_loop_offer(void *data)
{
    int                rc;
    uint32_t           version;
    dsa_peer_t        *peer;
    dsa_link_offer_t   offer;

    peer = data;

    if (peer->closed) {
        return;
    }

    rc = dsa_link_recv_offer(peer->fd, &offer);

    if (rc == 0) {
        return;
    }

    if (rc < 0) {
        if (errno == EPROTO) {
            dsa_log(DSA_LOG_WARN, "a connection is closed: its first message "
                    "is not an offer");
        }

        peer->closed = 1;
        return;
    }

    version = dsa_link_version(offer.version_min, offer.version_max);

    if (version == 0) {
        dsa_loop_mismatch(peer, &offer);
        return;
    }

    dsa_loop_session(peer, version);
}


/* Workers connect again and again: one line in the log is enough. */

static void
dsa_loop_mismatch(dsa_peer_t *peer, const dsa_link_offer_t *offer)
{
    dsa_link_hello_t  hello;

    memset(&hello, 0, sizeof(hello));

    hello.magic = DSA_LINK_MAGIC;
    hello.version_min = DSA_LINK_VERSION_MIN;
    hello.version_max = DSA_LINK_VERSION_MAX;

    (void) dsa_link_send_hello(peer->fd, &hello, NULL);
    peer->closed = 1;

    if (!peer->loop->mismatch) {
        dsa_log(DSA_LOG_ERR, "a worker is rejected: it accepts versions %u to "
                "%u of the link, this replica %d to %d", offer->version_min,
                offer->version_max, DSA_LINK_VERSION_MIN,
                DSA_LINK_VERSION_MAX);
        peer->loop->mismatch = 1;
    }
}


static void
dsa_loop_session(dsa_peer_t *peer, uint32_t version)
{
    dsa_err_t    err;
    dsa_loop_t  *l;

    l = peer->loop;
    peer->session = dsa_session_create(l->service, peer->fd, version, &err);

    if (peer->session == NULL) {
        peer->closed = 1;
        dsa_loop_pause(l, err.text);
        return;
    }

    l->n_offers--;
    peer->socket.handler = dsa_loop_hangup;

    if (dsa_loop_add(l, dsa_session_event(peer->session), EPOLLIN|EPOLLET,
                     &peer->event)
        != DSA_OK)
    {
        peer->closed = 1;
        (void) dsa_error(&err, "epoll_ctl(): %s", strerror(errno));
        dsa_loop_pause(l, err.text);
        return;
    }

    l->failing = 0;
    l->mismatch = 0;

    dsa_log(DSA_LOG_INFO, "a worker is connected, %u are",
            l->n_peers - l->n_offers);
}


static void
dsa_loop_free(dsa_loop_t *l, dsa_peer_t *peer)
{
    dsa_loop_forget(l, peer->fd);

    if (peer->session != NULL) {
        dsa_loop_forget(l, dsa_session_event(peer->session));
        dsa_session_destroy(peer->session);
    }

    (void) close(peer->fd);
    free(peer);
}


/*
 * The listener stays readable while a connection cannot be accepted, so epoll
 * would return at once, again and again.
 */

static void
dsa_loop_pause(dsa_loop_t *l, const char *reason)
{
    if (!l->failing) {
        dsa_log(DSA_LOG_WARN, "connections have to wait, %u are open: %s",
                l->n_peers, reason);
        l->failing = 1;
    }

    if (!l->paused && l->listen->fd != -1) {
        dsa_loop_forget(l, l->listen->fd);
    }

    l->paused = 1;
    l->resume = dsa_clock_ms() + DSA_LOOP_PAUSE;
}


static void
dsa_loop_resume(dsa_loop_t *l)
{
    if (l->listen->fd == -1) {
        l->paused = 0;
        return;
    }

    if (dsa_clock_ms() >= l->resume
        && dsa_loop_watch(l, l->listen->fd, &l->accept) == DSA_OK)
    {
        l->paused = 0;
    }
}


/* After its offer, a worker sends nothing on its socket but its end. */

static void
dsa_loop_hangup(void *data)
{
    dsa_peer_t  *peer;

    peer = data;
    peer->closed = 1;
}


/*
 * The rings are read in this turn anyway.  The counter is not: it is watched
 * edge-triggered, because a read() could block.  O_NONBLOCK belongs to the
 * open file, and the worker has that, too.
 */

static void
dsa_loop_wake(void *data)
{
}
