
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "error.h"
#include "seats.h"


/*
 * A process that is killed has executed its stores up to some point in the
 * order of the program.  A fence prevents the compiler from changing the order
 * of those that matter: a counter is never incremented without a hold, so that
 * the holds alone are enough to count again.
 */

#define dsa_seats_fence()  atomic_signal_fence(memory_order_seq_cst)


static int dsa_seats_mutex(pthread_mutex_t *mutex);
static dsa_seats_hold_t *dsa_seats_hold(dsa_seats_t *seats, uint32_t hold);
static void dsa_seats_recount(dsa_seats_t *seats);
static uint32_t dsa_seats_drop(dsa_seats_t *seats, int seat);


int
dsa_seats_init(dsa_seats_t *seats)
{
    int  i;

    if (dsa_seats_mutex(&seats->lock) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_SEATS_MAX; i++) {
        if (dsa_seats_mutex(&seats->seats[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_seats_mutex(pthread_mutex_t *mutex)
{
    int                  rc;
    pthread_mutexattr_t  attr;

    rc = pthread_mutexattr_init(&attr);

    if (rc == 0) {
        rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    }

    if (rc == 0) {
        rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    }

    if (rc == 0) {
        rc = pthread_mutex_init(mutex, &attr);
    }

    if (rc != 0) {
        errno = rc;
        return DSA_ERROR;
    }

    (void) pthread_mutexattr_destroy(&attr);

    return DSA_OK;
}


void
dsa_seats_add(dsa_seats_t *seats, dsa_seats_hold_t *block)
{
    uint32_t  i;

    assert(seats->n_blocks < DSA_SEATS_BLOCKS);

    for (i = 0; i < DSA_SEATS_BLOCK; i++) {
        block[i].owner = 0;
    }

    seats->blocks[seats->n_blocks] = block;

    dsa_seats_fence();

    seats->n_blocks++;

    dsa_seats_recount(seats);
}


int
dsa_seats_acquire(dsa_seats_t *seats)
{
    int  i, rc;

    for (i = 0; i < DSA_SEATS_MAX; i++) {

        rc = pthread_mutex_trylock(&seats->seats[i]);

        if (rc == EBUSY) {
            continue;
        }

        assert(rc == 0 || rc == EOWNERDEAD);

        dsa_seats_lock(seats);

        if (rc == EOWNERDEAD) {
            (void) dsa_seats_drop(seats, i);
            rc = pthread_mutex_consistent(&seats->seats[i]);
            assert(rc == 0);
        }

        if (seats->n_used <= (uint32_t) i) {
            seats->n_used = i + 1;
        }

        dsa_seats_unlock(seats);

        return i;
    }

    return -1;
}


void
dsa_seats_lock(dsa_seats_t *seats)
{
    int  rc;

    rc = pthread_mutex_lock(&seats->lock);

    if (rc == EOWNERDEAD) {
        dsa_seats_recount(seats);
        seats->repairs++;

        rc = pthread_mutex_consistent(&seats->lock);
    }

    assert(rc == 0);
}


void
dsa_seats_unlock(dsa_seats_t *seats)
{
    int  rc;

    rc = pthread_mutex_unlock(&seats->lock);
    assert(rc == 0);
}


uint32_t
dsa_seats_take(dsa_seats_t *seats, int seat, uint32_t *count)
{
    uint32_t           hold;
    dsa_seats_hold_t  *h;

    assert(seat >= 0 && seat < DSA_SEATS_MAX);

    hold = seats->free;

    if (hold == 0) {
        return 0;
    }

    h = dsa_seats_hold(seats, hold);

    assert(h->owner == 0);

    h->count = count;

    dsa_seats_fence();

    h->owner = seat + 1;

    dsa_seats_fence();

    seats->free = h->next;
    (*count)++;

    return hold;
}


void
dsa_seats_release(dsa_seats_t *seats, uint32_t hold)
{
    dsa_seats_hold_t  *h;

    h = dsa_seats_hold(seats, hold);

    assert(h->owner != 0 && *h->count != 0);

    (*h->count)--;

    dsa_seats_fence();

    h->owner = 0;
    h->next = seats->free;

    dsa_seats_fence();

    seats->free = hold;
}


uint32_t
dsa_seats_reap(dsa_seats_t *seats, int seat)
{
    int       i, rc;
    uint32_t  n;

    n = 0;

    for (i = 0; i < (int) seats->n_used; i++) {

        if (i == seat) {
            continue;
        }

        rc = pthread_mutex_trylock(&seats->seats[i]);

        if (rc == EBUSY) {
            continue;
        }

        assert(rc == 0 || rc == EOWNERDEAD);

        if (rc == EOWNERDEAD) {
            dsa_seats_lock(seats);
            n += dsa_seats_drop(seats, i);
            dsa_seats_unlock(seats);

            rc = pthread_mutex_consistent(&seats->seats[i]);
            assert(rc == 0);
        }

        rc = pthread_mutex_unlock(&seats->seats[i]);
        assert(rc == 0);
    }

    return n;
}


/* Releases the holds of a seat whose process has ended. */

static uint32_t
dsa_seats_drop(dsa_seats_t *seats, int seat)
{
    uint32_t           i, n, hold;
    dsa_seats_hold_t  *h;

    n = 0;

    for (i = 0; i < seats->n_blocks * DSA_SEATS_BLOCK; i++) {
        hold = i + 1;
        h = dsa_seats_hold(seats, hold);

        if (h->owner == (uint32_t) seat + 1) {
            dsa_seats_release(seats, hold);
            n++;
        }
    }

    return n;
}


/*
 * Sets each counter to the number of its holds, and links the free holds.  The
 * list and the counters may be wrong by one before this, because a process was
 * killed while it changed them.
 */

static void
dsa_seats_recount(dsa_seats_t *seats)
{
    uint32_t           i, n;
    dsa_seats_hold_t  *h;

    n = seats->n_blocks * DSA_SEATS_BLOCK;

    for (i = 0; i < n; i++) {
        h = dsa_seats_hold(seats, i + 1);

        if (h->owner != 0) {
            *h->count = 0;
        }
    }

    seats->free = 0;

    for (i = n; i != 0; i--) {
        h = dsa_seats_hold(seats, i);

        if (h->owner != 0) {
            (*h->count)++;

        } else {
            h->next = seats->free;
            seats->free = i;
        }
    }
}


static dsa_seats_hold_t *
dsa_seats_hold(dsa_seats_t *seats, uint32_t hold)
{
    assert(hold != 0 && hold <= seats->n_blocks * DSA_SEATS_BLOCK);

    return &seats->blocks[(hold - 1) / DSA_SEATS_BLOCK]
                         [(hold - 1) % DSA_SEATS_BLOCK];
}
