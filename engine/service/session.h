
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SESSION_H_INCLUDED_
#define _DSA_SESSION_H_INCLUDED_


#include "engine/service/conf.h"
#include "engine/checkpoint/generation_config.h"
#include "engine/schedule/scheduler.h"
#include "engine/tokenizer/tokenizer.h"


/*
 * A session is one worker's end of the link: its socket, segment and
 * requests.  Each request takes a slot from its SUBMIT to its DONE or ERROR;
 * what it has to say waits in the request until the event ring has room, so
 * that a worker that does not read holds up nobody.
 */

typedef struct dsa_session_s  dsa_session_t;


/* What all sessions of a replica share. */

typedef struct {
    const dsa_conf_t        *conf;
    uint32_t                 replica;
    uint32_t                 draining;   /* 1: takes no new requests */
    dsa_backend_t           *backend;
    dsa_sched_t             *sched;
    dsa_tokenizer_t         *tokenizer;
    dsa_tokenizer_work_t    *work;
    dsa_generation_config_t  generation; /* the model's own */
} dsa_service_t;


/* The scheduler's calls; the owner of a sequence is its request. */
extern const dsa_sched_handler_t  dsa_session_handler;


/*
 * Makes the segment and sends the hello with this version of the link to the
 * connected socket fd, which stays the caller's.  NULL with err.
 */
dsa_session_t *dsa_session_create(dsa_service_t *service, int fd,
    uint32_t version, dsa_err_t *err);

/* Cancels all requests of the session and frees it. */
void dsa_session_destroy(dsa_session_t *s);

/* A descriptor to wait for: the worker's wake-up. */
int dsa_session_event(const dsa_session_t *s);

/*
 * Takes submits from the ring, a bounded number at a time: DSA_AGAIN when
 * there are more.  DSA_ERROR: the ring is corrupt, or the worker breaks the
 * rules; the session is to be destroyed.
 */
int dsa_session_read(dsa_session_t *s, dsa_err_t *err);

/* Ends what its worker cancelled and what is past its deadline. */
void dsa_session_poll(dsa_session_t *s, uint64_t now);

/*
 * Writes what requests have to say to the event ring and wakes the worker if
 * it sleeps.  DSA_AGAIN: the ring is full; DSA_ERROR as dsa_session_read().
 */
int dsa_session_flush(dsa_session_t *s, dsa_err_t *err);

/* Ends all requests with DSA_LINK_E_DRAINING. */
void dsa_session_abort(dsa_session_t *s);

/* Updates the control block. */
void dsa_session_publish(dsa_session_t *s, const dsa_sched_stats_t *stats,
    uint64_t now);

/* 1: nothing new in the submit ring, the worker rings from now on. */
int dsa_session_sleep(dsa_session_t *s);

/* Requests that are not over, and whether the worker has read everything. */
uint32_t dsa_session_requests(const dsa_session_t *s);
int dsa_session_drained(const dsa_session_t *s);


#endif /* _DSA_SESSION_H_INCLUDED_ */
