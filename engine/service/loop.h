
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_LOOP_H_INCLUDED_
#define _DSA_LOOP_H_INCLUDED_


#include "engine/service/listen.h"
#include "engine/service/session.h"


/*
 * The event loop of a replica: it accepts workers, and in each turn reads
 * their submits and cancels, computes a step, and writes what the requests
 * report.
 */

#define DSA_LOOP_SESSIONS   256
#define DSA_LOOP_OFFERS     64          /* of them, without an offer yet */
#define DSA_LOOP_OFFER      5000        /* ms, within which it is sent */
#define DSA_LOOP_IDLE       50          /* ms between heartbeats */
#define DSA_LOOP_PAUSE      100         /* ms, after a failed accept */


typedef struct dsa_peer_s  dsa_peer_t;


/* What an epoll event points to. */

typedef struct {
    void              (*handler)(void *data);
    void               *data;
} dsa_source_t;


typedef struct {
    dsa_service_t      *service;
    dsa_listen_t       *listen;
    dsa_source_t        accept;
    dsa_peer_t         *peers;
    uint32_t            n_peers;
    uint32_t            n_offers;       /* of them, without an offer yet */
    uint32_t            mismatch;       /* a version mismatch was logged */
    uint32_t            failing;        /* accept fails, and that is logged */
    uint32_t            paused;         /* the listener is not watched */
    uint64_t            resume;         /* ms; watched again then */
    int                 more;           /* submits were left in a ring */
    int                 epoll;
} dsa_loop_t;


/*
 * service and listen stay the caller's and outlive the loop.  On DSA_ERROR,
 * with err, the loop is to be closed all the same.
 */
int dsa_loop_open(dsa_loop_t *l, dsa_service_t *service, dsa_listen_t *listen,
    dsa_err_t *err);

/*
 * Ends all sessions.  A loop that is zero but for an epoll of -1 may be
 * closed, too.
 */
void dsa_loop_close(dsa_loop_t *l);

/*
 * The source's handler is called when fd is readable.  The source belongs to
 * the caller and outlives the loop.  DSA_ERROR with errno.
 */
int dsa_loop_watch(dsa_loop_t *l, int fd, dsa_source_t *source);

/*
 * Waits for events, `most` ms at most, and does what there is to do then.
 * DSA_ERROR, which is logged: the replica cannot go on.
 */
int dsa_loop_turn(dsa_loop_t *l, int most);

/* Stops listening; the requests that come from now on are refused. */
void dsa_loop_drain(dsa_loop_t *l);

/* Ends all requests with DSA_LINK_E_DRAINING. */
void dsa_loop_abort(dsa_loop_t *l);

/* 1 when no request is left and the workers have read everything. */
int dsa_loop_idle(const dsa_loop_t *l);


#endif /* _DSA_LOOP_H_INCLUDED_ */
