
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_IO_H_INCLUDED_
#define _DSA_IO_H_INCLUDED_


#include "engine/service/peers.h"
#include "engine/service/vitals.h"


/*
 * The I/O thread: connections, rings, answers and the heartbeat.  In each round
 * it reads the rings and cancel words, collects the results of the other
 * threads, and writes the records.  It waits only for its descriptors.
 */

#define DSA_IO_IDLE_MS      50          /* ms between two updates of
                                           alive_ms */


typedef struct {
    dsa_sessions_t      sessions;
    dsa_peers_t         peers;
    dsa_poller_t        poller;
    dsa_vitals_t       *vitals;
    dsa_source_t        wake;
    uint64_t            polled_ms;      /* when cancel words and deadlines were
                                           checked last */
    uint32_t            more;           /* records were left in a ring */
    uint32_t            blocked;        /* an event ring is full */
    uint32_t            written;        /* records wait for their lines in the
                                           journal */
} dsa_io_t;


/*
 * Opens io.  wake is the eventfd to which the pool and the step thread write.
 * All arguments must outlive io.  DSA_ERROR with err.  io is closed in any
 * case.
 */
int dsa_io_open(dsa_io_t *io, const dsa_service_t *service, dsa_pool_t *pool,
    dsa_step_t *step, dsa_listen_t *listen, dsa_vitals_t *vitals, int wake,
    dsa_err_t *err);

/* Ends all sessions; their requests are detached and cancelled. */
void dsa_io_disconnect(dsa_io_t *io);

/* Frees the rest, after the other threads have ended. */
void dsa_io_close(dsa_io_t *io);

/*
 * Waits for events, at most timeout_ms, and handles them.  DSA_ERROR: the
 * replica cannot continue, which is logged.
 */
int dsa_io_round(dsa_io_t *io, int timeout_ms);

/* Stops listening and rejects new requests. */
void dsa_io_drain(dsa_io_t *io);

/* Ends all requests with DSA_LINK_E_DRAINING. */
void dsa_io_abort(dsa_io_t *io);

/* Returns 1 if no request is left and the workers have read all records. */
int dsa_io_idle(const dsa_io_t *io);


#endif /* _DSA_IO_H_INCLUDED_ */
