
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PEERS_H_INCLUDED_
#define _DSA_PEERS_H_INCLUDED_


#include "engine/service/listen.h"
#include "engine/service/poller.h"
#include "engine/service/session.h"


/*
 * Connections of workers.  A connection has a session once the worker has sent
 * its offer.  It ends when the worker closes the socket, violates the
 * protocol, or does not send an offer in time.
 */

#define DSA_PEERS_MAX       256
#define DSA_PEERS_OFFERS    64          /* of them, without an offer */
#define DSA_PEERS_OFFER_MS  5000        /* time limit of an offer */
#define DSA_PEERS_PAUSE_MS  100         /* pause after a failed accept */


typedef struct dsa_peer_s   dsa_peer_t;
typedef struct dsa_peers_s  dsa_peers_t;


struct dsa_peer_s {
    dsa_peer_t         *next;
    dsa_peers_t        *peers;
    dsa_session_t      *session;        /* NULL: no offer yet */
    dsa_source_t        socket;
    dsa_source_t        wake;
    int                 fd;             /* the socket */
    uint64_t            expires_ms;     /* deadline of the offer */
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
    uint32_t            failing;        /* accept() fails, which was logged */
    uint32_t            mismatch;       /* a mismatch of versions was logged */
    uint32_t            paused;         /* the listener is not watched */
    uint64_t            resume_ms;      /* when it is watched again */
};


/* Opens the peers; the arguments must outlive them.  DSA_ERROR with err. */
int dsa_peers_open(dsa_peers_t *p, dsa_sessions_t *sessions,
    dsa_poller_t *poller, dsa_listen_t *listen, dsa_err_t *err);

/* Ends all connections. */
void dsa_peers_close(dsa_peers_t *p);

/* Stops listening. */
void dsa_peers_drain(dsa_peers_t *p);

/* Adds a connected socket, which the peer owns from now on. */
int dsa_peers_add(dsa_peers_t *p, int fd, dsa_err_t *err);

/* Listens again after a pause, and ends connections without an offer. */
void dsa_peers_poll(dsa_peers_t *p, uint64_t now_ms);

/* Ends a connection whose session failed. */
void dsa_peer_fail(dsa_peer_t *peer, const dsa_err_t *err);

/* Frees the connections that have ended.  Do not call it from a handler. */
void dsa_peers_reap(dsa_peers_t *p);


#endif /* _DSA_PEERS_H_INCLUDED_ */
