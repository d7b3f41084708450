
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/service/io.h"


#define DSA_IO_RETRY_MS     5           /* an event ring is full, or draining */


static int dsa_io_timeout(dsa_io_t *io);
static void dsa_io_read(dsa_io_t *io, uint64_t now_ms);
static void dsa_io_publish(dsa_io_t *io, uint64_t now_ms);
static void dsa_io_write(dsa_io_t *io, uint64_t now_ms);
static void dsa_io_flush(dsa_io_t *io);
static void dsa_io_commit(dsa_io_t *io);
static void dsa_io_wake(void *data);


int
dsa_io_open(dsa_io_t *io, const dsa_service_t *service, dsa_pool_t *pool,
    dsa_step_t *step, dsa_listen_t *listen, dsa_vitals_t *vitals, int wake,
    dsa_err_t *err)
{
    memset(io, 0, sizeof(dsa_io_t));

    io->vitals = vitals;
    io->wake.handler = dsa_io_wake;
    io->wake.data = io;

    dsa_sessions_init(&io->sessions, service, pool, step);

    if (dsa_poller_open(&io->poller, err) != DSA_OK) {
        return DSA_ERROR;
    }

    /* edge-triggered, so the counter need not be read */

    if (dsa_poller_add(&io->poller, wake, EPOLLIN|EPOLLET, &io->wake)
        != DSA_OK)
    {
        return dsa_error(err, "cannot wait for the other threads: %s",
                         strerror(errno));
    }

    return dsa_peers_open(&io->peers, &io->sessions, &io->poller, listen,
                          err);
}


void
dsa_io_disconnect(dsa_io_t *io)
{
    dsa_peers_close(&io->peers);
}


void
dsa_io_close(dsa_io_t *io)
{
    dsa_sessions_free(&io->sessions);
    dsa_poller_close(&io->poller);
}


int
dsa_io_round(dsa_io_t *io, int timeout_ms)
{
    int       rc, timeout;
    uint64_t  now_ms;

    timeout = dsa_io_timeout(io);

    if (dsa_poller_wait(&io->poller,
                        timeout < timeout_ms ? timeout : timeout_ms)
        != DSA_OK)
    {
        dsa_log(DSA_LOG_ERR, "epoll_wait(): %s", strerror(errno));
        return DSA_ERROR;
    }

    now_ms = dsa_clock_ms();

    dsa_peers_poll(&io->peers, now_ms);
    dsa_io_read(io, now_ms);

    rc = dsa_sessions_collect(&io->sessions);

    dsa_io_publish(io, now_ms);
    dsa_io_write(io, now_ms);
    dsa_peers_reap(&io->peers);

    return rc;
}


/* Returns how many milliseconds the thread may wait for an event. */

static int
dsa_io_timeout(dsa_io_t *io)
{
    dsa_peer_t  *peer;

    if (io->more) {
        return 0;
    }

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (peer->session != NULL && !dsa_session_sleep(peer->session)) {
            return 0;
        }
    }

    return io->blocked || io->sessions.draining ? DSA_IO_RETRY_MS
                                                : DSA_IO_IDLE_MS;
}


/* Reads the rings and cancel words of all sessions. */

static void
dsa_io_read(dsa_io_t *io, uint64_t now_ms)
{
    int          rc;
    dsa_err_t    err;
    dsa_peer_t  *peer;

    io->more = 0;

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (peer->closed || peer->session == NULL) {
            continue;
        }

        rc = dsa_session_read(peer->session, &err);

        if (rc == DSA_ERROR) {
            dsa_peer_fail(peer, &err);
            continue;
        }

        io->more |= rc == DSA_AGAIN;

        if (now_ms != io->polled_ms) {
            dsa_session_poll(peer->session, now_ms);
        }
    }

    io->polled_ms = now_ms;
}


/* Writes the heartbeat. */

static void
dsa_io_publish(dsa_io_t *io, uint64_t now_ms)
{
    uint64_t     step;
    dsa_peer_t  *peer;

    step = atomic_load(&io->vitals->step_started_ms);
    atomic_store(&io->vitals->alive_ms, now_ms);

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (!peer->closed && peer->session != NULL) {
            dsa_session_publish(peer->session, now_ms, step);
        }
    }
}


/*
 * Writes the records of all sessions.  The workers can read them when their
 * lines are in the journal, whose thread wakes this one.  Until then no further
 * records are written, because all records of a ring are committed at once.
 */

static void
dsa_io_write(dsa_io_t *io, uint64_t now_ms)
{
    dsa_journal_t  *journal;

    journal = io->sessions.service->journal;

    if (dsa_journal_pending(journal, now_ms)) {
        return;
    }

    if (io->written) {
        dsa_io_commit(io);
    }

    dsa_io_flush(io);
    dsa_journal_flush(journal, now_ms);

    io->written = (uint32_t) dsa_journal_pending(journal, now_ms);

    if (!io->written) {
        dsa_io_commit(io);
    }
}


static void
dsa_io_flush(dsa_io_t *io)
{
    int          rc;
    dsa_err_t    err;
    dsa_peer_t  *peer;

    io->blocked = 0;

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (peer->closed || peer->session == NULL) {
            continue;
        }

        rc = dsa_session_flush(peer->session, &err);

        if (rc == DSA_ERROR) {
            dsa_peer_fail(peer, &err);
            continue;
        }

        io->blocked |= rc == DSA_AGAIN;
    }
}


static void
dsa_io_commit(dsa_io_t *io)
{
    dsa_peer_t  *peer;

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (!peer->closed && peer->session != NULL) {
            dsa_session_commit(peer->session);
        }
    }

    dsa_journal_commit(io->sessions.service->journal);
}


void
dsa_io_drain(dsa_io_t *io)
{
    io->sessions.draining = 1;
    dsa_peers_drain(&io->peers);
}


void
dsa_io_abort(dsa_io_t *io)
{
    dsa_peer_t  *peer;

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (peer->session != NULL) {
            dsa_session_abort(peer->session);
        }
    }
}


int
dsa_io_idle(const dsa_io_t *io)
{
    dsa_peer_t  *peer;

    for (peer = io->peers.first; peer != NULL; peer = peer->next) {
        if (peer->session != NULL
            && (dsa_session_requests(peer->session) != 0
                || !dsa_session_drained(peer->session)))
        {
            return 0;
        }
    }

    return 1;
}


/*
 * Does nothing, because results of other threads are collected in each round.
 */

static void
dsa_io_wake(void *data)
{
}
