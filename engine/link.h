
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The link between an nginx worker and a replica of the engine, version 1.
 * This header maps a session.  The parts have headers of their own:
 *
 *     link_version.h    the versions
 *     link_hello.h      the offer and the hello on the socket
 *     link_control.h    the control block
 *     link_ring.h       rings, and the headers of their records
 *     link_request.h    SUBMIT, COUNT
 *     link_event.h      ACCEPTED, TOKENS, DONE, ERROR, COUNTED
 *     link_rollout.h    ROLLOUT
 *
 * The worker connects to the replica's unix SEQPACKET socket and sends an
 * offer: the range of versions that it accepts.  The replica answers with one
 * message: a hello with the version that both use from then on, and three
 * descriptors, a sealed memfd and two eventfds (one wakes the replica, one
 * wakes the worker).  Without a common version the hello has version 0, the
 * replica's own range, and no descriptors; the replica then closes the socket.
 * Nothing else is sent on the socket.  Its end means that the other side is
 * gone, and no state outlives it.
 *
 * The memfd holds a control block, a cancel word for each slot and two rings
 * of records, each with one producer and one consumer:
 *
 *     submit   worker -> replica     SUBMIT, COUNT
 *     event    replica -> worker     ACCEPTED, TOKENS, ROLLOUT, DONE, ERROR,
 *                                    COUNTED
 *
 * These headers do not depend on nginx, and the segment holds no pointers.
 */


#ifndef _DSA_LINK_H_INCLUDED_
#define _DSA_LINK_H_INCLUDED_


#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "engine/link_control.h"
#include "engine/link_hello.h"
#include "engine/link_ring.h"


/* A mapped session.  The worker sends on submit, the replica on event. */

typedef struct {
    dsa_link_control_t  *control;
    _Atomic uint32_t    *cancel;    /* [slots]: the epoch to cancel */
    uint32_t             slots;
    uint32_t             version;   /* in use */
    dsa_link_ring_t      submit;
    dsa_link_ring_t      event;
} dsa_link_t;


/* Bytes of the segment for rings and slots of these sizes. */

static inline uint64_t
dsa_link_segment_size(uint32_t slots, uint64_t submit, uint64_t event)
{
    return DSA_LINK_CONTROL_SIZE
           + dsa_link_pad((uint64_t) slots * 4, DSA_LINK_ALIGN)
           + submit + event;
}


/*
 * Finds the parts of a session in the mapped segment.  0, or -1 if the hello
 * has a version that link_version.h does not describe, its sizes are out of
 * bounds, or they do not fit a mapping of mapped bytes.  The caller has made
 * sure that the segment is sealed against resizing.  Indices start at zero on
 * both sides.
 */

static inline int
dsa_link_attach(dsa_link_t *link, void *base, uint64_t mapped,
    const dsa_link_hello_t *hello)
{
    uint8_t  *p = base;

    if (hello->magic != DSA_LINK_MAGIC || hello->version < DSA_LINK_VERSION_MIN
        || hello->version > DSA_LINK_VERSION_MAX
        || hello->slots == 0 || hello->slots > DSA_LINK_MAX_SLOTS
        || !dsa_link_ring_size_valid(hello->submit_size)
        || !dsa_link_ring_size_valid(hello->event_size)
        || hello->segment_size != mapped
        || dsa_link_segment_size(hello->slots, hello->submit_size,
                                 hello->event_size)
           != mapped)
    {
        return -1;
    }

    memset(link, 0, sizeof(dsa_link_t));

    link->control = base;
    link->slots = hello->slots;
    link->version = hello->version;

    p += DSA_LINK_CONTROL_SIZE;
    link->cancel = (_Atomic uint32_t *) p;

    p += dsa_link_pad((uint64_t) hello->slots * 4, DSA_LINK_ALIGN);
    link->submit.shared = &link->control->submit;
    link->submit.data = p;
    link->submit.size = hello->submit_size;

    p += hello->submit_size;
    link->event.shared = &link->control->event;
    link->event.data = p;
    link->event.size = hello->event_size;

    return 0;
}


/* The worker cancels a request; the replica reads the word at each step. */

static inline void
dsa_link_cancel(dsa_link_t *link, uint64_t id)
{
    atomic_store_explicit(&link->cancel[dsa_link_slot(id)],
                          dsa_link_epoch(id), memory_order_release);
}


static inline int
dsa_link_cancelled(dsa_link_t *link, uint64_t id)
{
    return dsa_link_slot(id) < link->slots
           && atomic_load_explicit(&link->cancel[dsa_link_slot(id)],
                                   memory_order_acquire)
              == dsa_link_epoch(id);
}


#endif /* _DSA_LINK_H_INCLUDED_ */
