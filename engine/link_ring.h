
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A ring of records in shared memory, with one producer and one consumer.
 *
 * Each side keeps its own index in private memory and treats everything that
 * it reads from the segment as hostile: a header is copied out before it is
 * checked, a length never leads outside the ring, and a payload has to be
 * copied before it is checked, because the peer could change it meanwhile.
 */


#ifndef _DSA_LINK_RING_H_INCLUDED_
#define _DSA_LINK_RING_H_INCLUDED_


#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>


#define DSA_LINK_CACHE_LINE     64
#define DSA_LINK_ALIGN          4096
#define DSA_LINK_MAX_RING       (1ULL << 32)


/* One ring's shared indices: free-running, in bytes. */

typedef struct {
    _Alignas(DSA_LINK_CACHE_LINE) _Atomic uint64_t  head;     /* producer's */
    _Alignas(DSA_LINK_CACHE_LINE) _Atomic uint64_t  tail;     /* consumer's */
    _Alignas(DSA_LINK_CACHE_LINE) _Atomic uint32_t  sleeping; /* consumer's */
} dsa_link_indices_t;



/* The header of every record, on an 8-byte boundary. */

typedef struct {
    uint32_t    length;             /* of the payload, without padding */
    uint32_t    type;
    uint64_t    id;                 /* epoch << 32 | slot; the epoch of a
                                       slot counts its requests from 1, and a
                                       cancel word starts at 0 */
} dsa_link_record_t;


typedef enum {
    DSA_LINK_PAD = 1,               /* skip to the end of the ring */
    DSA_LINK_SUBMIT,
    DSA_LINK_ACCEPTED,
    DSA_LINK_TOKENS,
    DSA_LINK_DONE,
    DSA_LINK_ERROR,
    DSA_LINK_COUNT,
    DSA_LINK_COUNTED,
    DSA_LINK_ROLLOUT,
    DSA_LINK_TYPES                  /* one more than the last type */
} dsa_link_type_e;


_Static_assert(sizeof(dsa_link_record_t) == 16, "the header of a record");



/* One end of one ring, in private memory. */

typedef struct {
    dsa_link_indices_t  *shared;
    uint8_t             *data;
    uint64_t             size;
    uint64_t             own;       /* our index; never read back */
    uint64_t             pending;   /* producer: after the next commit;
                                       consumer: after the next release */
} dsa_link_ring_t;


static inline uint64_t
dsa_link_id(uint32_t epoch, uint32_t slot)
{
    return (uint64_t) epoch << 32 | slot;
}


static inline uint32_t
dsa_link_slot(uint64_t id)
{
    return (uint32_t) id;
}


static inline uint32_t
dsa_link_epoch(uint64_t id)
{
    return (uint32_t) (id >> 32);
}


static inline uint64_t
dsa_link_pad(uint64_t n, uint64_t to)
{
    return (n + to - 1) & ~(to - 1);
}


static inline int
dsa_link_ring_size_valid(uint64_t size)
{
    return size >= DSA_LINK_ALIGN && size <= DSA_LINK_MAX_RING
           && (size & (size - 1)) == 0;
}


/* The longest payload that always fits an empty ring. */

static inline uint64_t
dsa_link_max_payload(const dsa_link_ring_t *ring)
{
    return ring->size / 2 - sizeof(dsa_link_record_t);
}


/*
 * Producer: contiguous room for one record, which the caller fills and then
 * commits.  NULL with errno: 0, the ring has no room now; EMSGSIZE, the record
 * never fits; EPROTO, the consumer's index is impossible and the session has
 * to be closed.  Several records may be reserved one after another before one
 * commit publishes them together.
 */

static inline void *
dsa_link_reserve(dsa_link_ring_t *ring, uint32_t type, uint64_t id,
    uint64_t length)
{
    uint64_t            tail, used, total, offset, skip;
    dsa_link_record_t  *record;

    errno = 0;

    if (length > dsa_link_max_payload(ring)) {
        errno = EMSGSIZE;
        return NULL;
    }

    tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
    used = ring->pending - tail;

    if (used > ring->size || (tail & 7) != 0) {
        errno = EPROTO;
        return NULL;
    }

    total = dsa_link_pad(sizeof(dsa_link_record_t) + length, 8);
    offset = ring->pending & (ring->size - 1);
    skip = 0;

    if (total > ring->size - offset) {
        skip = ring->size - offset;
    }

    if (skip + total > ring->size - used) {
        return NULL;
    }

    if (skip != 0) {

        /* offsets are multiples of 8: a lone length word always fits */

        *(uint32_t *) (void *) (ring->data + offset) = 0;
        *(uint32_t *) (void *) (ring->data + offset + 4) = DSA_LINK_PAD;

        ring->pending += skip;
        offset = 0;
    }

    record = (dsa_link_record_t *) (void *) (ring->data + offset);
    record->length = (uint32_t) length;
    record->type = type;
    record->id = id;

    ring->pending += total;

    return record + 1;
}


/*
 * Producer: publishes all reserved records.  1: the consumer sleeps, and the
 * caller has to write to its wake fd.
 */

static inline int
dsa_link_commit(dsa_link_ring_t *ring)
{
    if (ring->pending == ring->own) {
        return 0;
    }

    ring->own = ring->pending;
    atomic_store_explicit(&ring->shared->head, ring->own,
                          memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);

    return atomic_load_explicit(&ring->shared->sleeping,
                                memory_order_relaxed) != 0
           && atomic_exchange(&ring->shared->sleeping, 0) != 0;
}


/*
 * Consumer: the next record.  1: *record is a private copy of its header and
 * *payload points to record->length bytes in the segment, valid until
 * released; 0: empty; -1: the ring is corrupt, close the session.
 */

static inline int
dsa_link_peek(dsa_link_ring_t *ring, dsa_link_record_t *record,
    const void **payload)
{
    uint32_t         pads;
    uint64_t         head, left, offset, total;
    const uint32_t  *word;

    for (pads = 0; /* void */ ; pads++) {
        head = atomic_load_explicit(&ring->shared->head,
                                    memory_order_acquire);
        left = head - ring->own;

        if (left == 0) {
            return 0;
        }

        if (left > ring->size || (left & 7) != 0) {
            return -1;
        }

        offset = ring->own & (ring->size - 1);
        word = (const uint32_t *) (const void *) (ring->data + offset);

        if (*(const volatile uint32_t *) (word + 1) != DSA_LINK_PAD) {
            break;
        }

        total = ring->size - offset;

        /* a hostile producer could write pads without an end */

        if (total > left || pads != 0) {
            return -1;
        }

        ring->own += total;
        atomic_store_explicit(&ring->shared->tail, ring->own,
                              memory_order_release);
    }

    if (left < sizeof(dsa_link_record_t)
        || ring->size - offset < sizeof(dsa_link_record_t))
    {
        return -1;
    }

    memcpy(record, ring->data + offset, sizeof(dsa_link_record_t));

    total = dsa_link_pad(sizeof(dsa_link_record_t)
                         + (uint64_t) record->length, 8);

    if (total > left || total > ring->size - offset
        || record->type <= DSA_LINK_PAD || record->type >= DSA_LINK_TYPES)
    {
        return -1;
    }

    *payload = ring->data + offset + sizeof(dsa_link_record_t);
    ring->pending = ring->own + total;

    return 1;
}


/* Consumer: frees the room of the record that was peeked. */

static inline void
dsa_link_release(dsa_link_ring_t *ring)
{
    ring->own = ring->pending;
    atomic_store_explicit(&ring->shared->tail, ring->own,
                          memory_order_release);
}


/*
 * Consumer: announces that it will wait for its wake fd.  1: it may sleep;
 * 0: a record arrived meanwhile, and it has to go on reading.
 */

static inline int
dsa_link_sleep(dsa_link_ring_t *ring)
{
    atomic_store_explicit(&ring->shared->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);

    if (atomic_load_explicit(&ring->shared->head, memory_order_acquire)
        == ring->own)
    {
        return 1;
    }

    atomic_store_explicit(&ring->shared->sleeping, 0, memory_order_relaxed);

    return 0;
}


#endif /* _DSA_LINK_RING_H_INCLUDED_ */
