
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "error.h"
#include "permits.h"


/*
 * A process that is killed has executed its stores up to some point in the
 * order of the program.  A fence prevents the compiler from changing the order
 * of those that matter: a counter is never incremented without a permit, so
 * that the permits alone are enough to count again.
 */

#define dsa_permits_fence()  atomic_signal_fence(memory_order_seq_cst)


static int dsa_permits_mutex(pthread_mutex_t *mutex);
static dsa_permit_t *dsa_permits_at(dsa_permits_t *permits, uint32_t permit);
static void dsa_permits_recount(dsa_permits_t *permits);
static uint32_t dsa_permits_drop(dsa_permits_t *permits, int owner);


int
dsa_permits_init(dsa_permits_t *permits)
{
    int  i;

    if (dsa_permits_mutex(&permits->lock) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_PERMITS_OWNERS; i++) {
        if (dsa_permits_mutex(&permits->owner[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_permits_mutex(pthread_mutex_t *mutex)
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
dsa_permits_add(dsa_permits_t *permits, dsa_permit_t *block)
{
    uint32_t  i;

    assert(permits->n_blocks < DSA_PERMITS_BLOCKS);

    for (i = 0; i < DSA_PERMITS_BLOCK; i++) {
        block[i].owner = 0;
    }

    permits->blocks[permits->n_blocks] = block;

    dsa_permits_fence();

    permits->n_blocks++;

    dsa_permits_recount(permits);
}


int
dsa_permits_acquire(dsa_permits_t *permits)
{
    int  i, rc;

    for (i = 0; i < DSA_PERMITS_OWNERS; i++) {

        rc = pthread_mutex_trylock(&permits->owner[i]);

        if (rc == EBUSY) {
            continue;
        }

        assert(rc == 0 || rc == EOWNERDEAD);

        dsa_permits_lock(permits);

        if (rc == EOWNERDEAD) {
            (void) dsa_permits_drop(permits, i);
            rc = pthread_mutex_consistent(&permits->owner[i]);
            assert(rc == 0);
        }

        if (permits->n_used <= (uint32_t) i) {
            permits->n_used = i + 1;
        }

        dsa_permits_unlock(permits);

        return i;
    }

    return -1;
}


void
dsa_permits_lock(dsa_permits_t *permits)
{
    int  rc;

    rc = pthread_mutex_lock(&permits->lock);

    if (rc == EOWNERDEAD) {
        dsa_permits_recount(permits);
        permits->repairs++;

        rc = pthread_mutex_consistent(&permits->lock);
    }

    assert(rc == 0);
}


void
dsa_permits_unlock(dsa_permits_t *permits)
{
    int  rc;

    rc = pthread_mutex_unlock(&permits->lock);
    assert(rc == 0);
}


uint32_t
dsa_permits_take(dsa_permits_t *permits, int owner, uint32_t *count)
{
    uint32_t       permit;
    dsa_permit_t  *p;

    assert(owner >= 0 && owner < DSA_PERMITS_OWNERS);

    permit = permits->free;

    if (permit == 0) {
        return 0;
    }

    p = dsa_permits_at(permits, permit);

    assert(p->owner == 0);

    p->count = count;

    dsa_permits_fence();

    p->owner = owner + 1;

    dsa_permits_fence();

    permits->free = p->next;
    (*count)++;

    return permit;
}


void
dsa_permits_release(dsa_permits_t *permits, uint32_t permit)
{
    dsa_permit_t  *p;

    p = dsa_permits_at(permits, permit);

    assert(p->owner != 0 && *p->count != 0);

    (*p->count)--;

    dsa_permits_fence();

    p->owner = 0;
    p->next = permits->free;

    dsa_permits_fence();

    permits->free = permit;
}


uint32_t
dsa_permits_reap(dsa_permits_t *permits, int owner)
{
    int       i, rc;
    uint32_t  n;

    n = 0;

    for (i = 0; i < (int) permits->n_used; i++) {

        if (i == owner) {
            continue;
        }

        rc = pthread_mutex_trylock(&permits->owner[i]);

        if (rc == EBUSY) {
            continue;
        }

        assert(rc == 0 || rc == EOWNERDEAD);

        if (rc == EOWNERDEAD) {
            dsa_permits_lock(permits);
            n += dsa_permits_drop(permits, i);
            dsa_permits_unlock(permits);

            rc = pthread_mutex_consistent(&permits->owner[i]);
            assert(rc == 0);
        }

        rc = pthread_mutex_unlock(&permits->owner[i]);
        assert(rc == 0);
    }

    return n;
}


/* Releases the permits of a process that has ended. */

static uint32_t
dsa_permits_drop(dsa_permits_t *permits, int owner)
{
    uint32_t       i, n, permit;
    dsa_permit_t  *p;

    n = 0;

    for (i = 0; i < permits->n_blocks * DSA_PERMITS_BLOCK; i++) {
        permit = i + 1;
        p = dsa_permits_at(permits, permit);

        if (p->owner == (uint32_t) owner + 1) {
            dsa_permits_release(permits, permit);
            n++;
        }
    }

    return n;
}


/*
 * Sets each counter to the number of its permits, and links the free permits.
 * The list and the counters may be wrong by one before this, because a process
 * was killed while it changed them.
 */

static void
dsa_permits_recount(dsa_permits_t *permits)
{
    uint32_t       i, n;
    dsa_permit_t  *p;

    n = permits->n_blocks * DSA_PERMITS_BLOCK;

    for (i = 0; i < n; i++) {
        p = dsa_permits_at(permits, i + 1);

        if (p->owner != 0) {
            *p->count = 0;
        }
    }

    permits->free = 0;

    for (i = n; i != 0; i--) {
        p = dsa_permits_at(permits, i);

        if (p->owner != 0) {
            (*p->count)++;

        } else {
            p->next = permits->free;
            permits->free = i;
        }
    }
}


static dsa_permit_t *
dsa_permits_at(dsa_permits_t *permits, uint32_t permit)
{
    assert(permit != 0 && permit <= permits->n_blocks * DSA_PERMITS_BLOCK);

    return &permits->blocks[(permit - 1) / DSA_PERMITS_BLOCK]
                           [(permit - 1) % DSA_PERMITS_BLOCK];
}
