
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PEERS_H_INCLUDED_
#define _DSA_PEERS_H_INCLUDED_


#include "engine/service/listen.h"
#include "engine/service/poller.h"
#include "engine/service/session.h"


/*
 * Connections of workers.  One begins when it is accepted, has a session from
 * its offer on, and ends when the worker closes the socket, violates the
 * protocol, or does not send an offer in time.
 */

#define DSA_PEERS_MAX       256
#define DSA_PEERS_OFFERS    64          /* of them, without an offer */
#define DSA_PEERS_OFFER_MS  5000        /* within which it has to arrive */
#define DSA_PEERS_PAUSE_MS  100         /* after a failed accept */


typedef struct dsa_peer_s   dsa_peer_t;
typedef struct dsa_peers_s  dsa_peers_t;


struct dsa_peer_s {
    dsa_peer_t         *next;
    dsa_peers_t        *peers;
    dsa_session_t      *session;        /* NULL: no offer yet */
    dsa_source_t        socket;
    dsa_source_t        wake;
    int                 fd;             /* the socket */
    uint64_t            expires_ms;     /* without an offer by then */
    uint32_t            closed;         /* freed by dsa_peers_reap() */
};


struct dsa_peers_s {
    dsa_sessions_t     *sessions;
    dsa_poller_t       *poller;
    dsa_listen_t       *listen;
    dsa_source_t        accept;
    dsa_peer_t         *first;
    uint32_t            n;
    uint32_t            n_offers;       /* of them, without an offer */
    uint32_t            failing;        /* accept fails, which is logged */
    uint32_t            mismatch;       /* of versions, which is logged */
    uint32_t            paused;         /* the listener is not watched */
    uint64_t            resume_ms;      /* watched again then */
};


/* The arguments outlive the peers.  DSA_ERROR with err. */
int dsa_peers_open(dsa_peers_t *p, dsa_sessions_t *sessions,
    dsa_poller_t *poller, dsa_listen_t *listen, dsa_err_t *err);

/* Ends all connections. */
void dsa_peers_close(dsa_peers_t *p);

/* Stops listening. */
void dsa_peers_drain(dsa_peers_t *p);

/* A connected socket, which belongs to the peer from now on. */
int dsa_peers_add(dsa_peers_t *p, int fd, dsa_err_t *err);

/* Listens again after a pause, and ends connections without an offer. */
void dsa_peers_poll(dsa_peers_t *p, uint64_t now_ms);

/* Ends a connection whose session failed. */
void dsa_peer_fail(dsa_peer_t *peer, const dsa_err_t *err);

/* Frees the connections that have ended; not from within a handler. */
void dsa_peers_reap(dsa_peers_t *p);


#endif /* _DSA_PEERS_H_INCLUDED_ */
