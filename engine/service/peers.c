
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
#include "engine/service/peers.h"


static void dsa_peers_accept(void *data);
static void dsa_peers_pause(dsa_peers_t *p, const char *reason);
static void dsa_peer_offer(void *data);
static void dsa_peer_mismatch(dsa_peer_t *peer,
    const dsa_link_offer_t *offer);
static void dsa_peer_session(dsa_peer_t *peer, uint32_t version);
static void dsa_peer_hangup(void *data);
static void dsa_peer_wake(void *data);
static void dsa_peer_free(dsa_peer_t *peer);


int
dsa_peers_open(dsa_peers_t *p, dsa_sessions_t *sessions, dsa_poller_t *poller,
    dsa_listen_t *listen, dsa_err_t *err)
{
    memset(p, 0, sizeof(dsa_peers_t));

    p->sessions = sessions;
    p->poller = poller;
    p->listen = listen;
    p->accept.handler = dsa_peers_accept;
    p->accept.data = p;

    if (dsa_poller_add(poller, listen->fd, EPOLLIN, &p->accept) != DSA_OK) {
        return dsa_error(err, "cannot wait for connections: %s",
                         strerror(errno));
    }

    return DSA_OK;
}


void
dsa_peers_close(dsa_peers_t *p)
{
    dsa_peer_t  *peer;

    for (peer = p->first; peer != NULL; peer = peer->next) {
        peer->closed = 1;
    }

    dsa_peers_reap(p);
}


void
dsa_peers_drain(dsa_peers_t *p)
{
    if (p->listen->fd != -1) {
        dsa_poller_remove(p->poller, p->listen->fd);
        dsa_listen_close(p->listen);
    }
}


static void
dsa_peers_accept(void *data)
{
    int           fd;
    dsa_err_t     err;
    dsa_peers_t  *p;

    p = data;

    if (p->listen->fd == -1) {

        /* a signal handler has closed the listener in the same round */

        return;
    }

    fd = dsa_listen_accept(p->listen);

    if (fd == -1) {
        if (errno == EPERM) {
            dsa_log(DSA_LOG_WARN, "a connection is rejected: %s",
                    strerror(errno));

        } else if (errno != EAGAIN) {
            (void) dsa_error(&err, "accept4(): %s", strerror(errno));
            dsa_peers_pause(p, err.text);
        }

        return;
    }

    if (p->n == DSA_PEERS_MAX || p->n_offers == DSA_PEERS_OFFERS) {
        dsa_log(DSA_LOG_WARN, "a connection is rejected: there are %u, of "
                "which %u have sent no offer", p->n, p->n_offers);
        (void) close(fd);
        return;
    }

    if (dsa_peers_add(p, fd, &err) != DSA_OK) {
        dsa_peers_pause(p, err.text);
    }
}


int
dsa_peers_add(dsa_peers_t *p, int fd, dsa_err_t *err)
{
    dsa_peer_t  *peer;

    peer = calloc(1, sizeof(dsa_peer_t));

    if (peer == NULL) {
        (void) close(fd);
        return dsa_error(err, "out of memory");
    }

    peer->peers = p;
    peer->fd = fd;
    peer->expires_ms = dsa_clock_ms() + DSA_PEERS_OFFER_MS;
    peer->socket.handler = dsa_peer_offer;
    peer->socket.data = peer;
    peer->wake.handler = dsa_peer_wake;
    peer->wake.data = peer;

    if (dsa_poller_add(p->poller, fd, EPOLLIN|EPOLLRDHUP, &peer->socket)
        != DSA_OK)
    {
        (void) close(fd);
        free(peer);
        return dsa_error(err, "epoll_ctl(): %s", strerror(errno));
    }

    peer->next = p->first;
    p->first = peer;
    p->n++;
    p->n_offers++;

    /* usually the offer has already arrived */

    dsa_peer_offer(peer);

    return DSA_OK;
}


/*
 * Stops watching the listener for a while.  It stays readable while a
 * connection cannot be accepted, so epoll would return at once each time.
 */

static void
dsa_peers_pause(dsa_peers_t *p, const char *reason)
{
    if (!p->failing) {
        dsa_log(DSA_LOG_WARN, "connections have to wait, %u are open: %s",
                p->n, reason);
        p->failing = 1;
    }

    if (!p->paused && p->listen->fd != -1) {
        dsa_poller_remove(p->poller, p->listen->fd);
    }

    p->paused = 1;
    p->resume_ms = dsa_clock_ms() + DSA_PEERS_PAUSE_MS;
}


void
dsa_peers_poll(dsa_peers_t *p, uint64_t now_ms)
{
    dsa_peer_t  *peer;

    if (p->paused
        && (p->listen->fd == -1
            || (now_ms >= p->resume_ms
                && dsa_poller_add(p->poller, p->listen->fd, EPOLLIN,
                                  &p->accept)
                   == DSA_OK)))
    {
        p->paused = 0;
    }

    if (p->n_offers == 0) {
        return;
    }

    for (peer = p->first; peer != NULL; peer = peer->next) {
        if (peer->session == NULL && !peer->closed
            && now_ms >= peer->expires_ms)
        {
            dsa_log(DSA_LOG_WARN, "a connection is closed: no offer within "
                    "%d ms", DSA_PEERS_OFFER_MS);
            peer->closed = 1;
        }
    }
}


/* Reads the first message of a worker, its offer. */

static void
dsa_peer_offer(void *data)
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
        dsa_peer_mismatch(peer, &offer);
        return;
    }

    dsa_peer_session(peer, version);
}


/* Logs a mismatch of versions once, because workers retry all the time. */

static void
dsa_peer_mismatch(dsa_peer_t *peer, const dsa_link_offer_t *offer)
{
    dsa_link_hello_t  hello;

    memset(&hello, 0, sizeof(hello));

    hello.magic = DSA_LINK_MAGIC;
    hello.version_min = DSA_LINK_VERSION_MIN;
    hello.version_max = DSA_LINK_VERSION_MAX;

    (void) dsa_link_send_hello(peer->fd, &hello, NULL);
    peer->closed = 1;

    if (!peer->peers->mismatch) {
        dsa_log(DSA_LOG_ERR, "a worker is rejected: it accepts versions %u to "
                "%u of the link, this replica %d to %d", offer->version_min,
                offer->version_max, DSA_LINK_VERSION_MIN,
                DSA_LINK_VERSION_MAX);
        peer->peers->mismatch = 1;
    }
}


static void
dsa_peer_session(dsa_peer_t *peer, uint32_t version)
{
    dsa_err_t     err;
    dsa_peers_t  *p;

    p = peer->peers;
    peer->session = dsa_session_create(p->sessions, peer->fd, version, &err);

    if (peer->session == NULL) {
        peer->closed = 1;
        dsa_peers_pause(p, err.text);
        return;
    }

    p->n_offers--;
    peer->socket.handler = dsa_peer_hangup;

    if (dsa_poller_add(p->poller, dsa_session_wake_fd(peer->session),
                       EPOLLIN|EPOLLET, &peer->wake)
        != DSA_OK)
    {
        peer->closed = 1;
        (void) dsa_error(&err, "epoll_ctl(): %s", strerror(errno));
        dsa_peers_pause(p, err.text);
        return;
    }

    p->failing = 0;
    p->mismatch = 0;

    dsa_log(DSA_LOG_INFO, "a worker is connected, %u are", p->n - p->n_offers);
}


/*
 * Handles the end of a connection.  After its offer, a worker sends nothing
 * more on its socket.
 */

static void
dsa_peer_hangup(void *data)
{
    dsa_peer_t  *peer;

    peer = data;
    peer->closed = 1;
}


/*
 * Does nothing, because the rings are read in each round.  The eventfd is not
 * read but watched edge-triggered, because a read() could block: O_NONBLOCK is
 * a flag of the open file, which the worker shares.
 */

static void
dsa_peer_wake(void *data)
{
}


void
dsa_peer_fail(dsa_peer_t *peer, const dsa_err_t *err)
{
    dsa_log(DSA_LOG_WARN, "a session is closed: %s", err->text);
    peer->closed = 1;
}


void
dsa_peers_reap(dsa_peers_t *p)
{
    dsa_peer_t  *peer, **at;

    for (at = &p->first; *at != NULL; /* void */) {
        peer = *at;

        if (!peer->closed) {
            at = &peer->next;
            continue;
        }

        *at = peer->next;
        p->n--;
        p->n_offers -= peer->session == NULL;

        dsa_peer_free(peer);

        /* a connection may wait for free descriptors */

        p->resume_ms = 0;
    }
}


static void
dsa_peer_free(dsa_peer_t *peer)
{
    dsa_poller_t  *poller;

    poller = peer->peers->poller;
    dsa_poller_remove(poller, peer->fd);

    if (peer->session != NULL) {
        dsa_poller_remove(poller, dsa_session_wake_fd(peer->session));
        dsa_session_destroy(peer->session);
    }

    (void) close(peer->fd);
    free(peer);
}
