
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_PERMITS_H_INCLUDED_
#define _DSA_PERMITS_H_INCLUDED_


#include <pthread.h>
#include <stdint.h>


/*
 * Counters in memory that processes share, which stay exact if a process is
 * killed.  A process increments a counter by taking a permit, and decrements it
 * by releasing the permit.  Each process has an owner number, which is in the
 * permits that it has taken.  When a process has ended, another one releases
 * its permits.
 *
 * For each owner number there is a robust mutex, which the process keeps locked
 * until it ends.  The kernel marks the mutex when the process ends in any way,
 * and never before.  This works without /proc and without a file, and does not
 * depend on process ids.
 *
 * The memory must be mapped at the same address in all processes, as it is
 * after fork(), and stay mapped until the process ends.
 */

#define DSA_PERMITS_OWNERS   512        /* processes */
#define DSA_PERMITS_BLOCK    2048       /* permits */
#define DSA_PERMITS_BLOCKS   512


typedef struct {
    uint32_t        *count;
    uint32_t         owner;             /* 1 + owner number; 0: it is free */
    uint32_t         next;              /* of the free permits */
} dsa_permit_t;


typedef struct {
    pthread_mutex_t    lock;
    uint32_t           repairs;         /* processes that ended in the lock */
    uint32_t           n_used;          /* owner numbers that were ever used */
    uint32_t           n_blocks;
    uint32_t           free;            /* 1 + number of a permit; 0: none */
    dsa_permit_t      *blocks[DSA_PERMITS_BLOCKS];
    pthread_mutex_t    owner[DSA_PERMITS_OWNERS];
} dsa_permits_t;


/* Initializes zeroed memory.  DSA_OK, or DSA_ERROR with errno. */
int dsa_permits_init(dsa_permits_t *permits);

/*
 * Adds a block of DSA_PERMITS_BLOCK free permits, which must live as long as
 * the table.  Not more than DSA_PERMITS_BLOCKS times.  The lock must be held.
 */
void dsa_permits_add(dsa_permits_t *permits, dsa_permit_t *block);

/*
 * Acquires an owner number for this process, which keeps it until it ends.
 * Returns the number, or -1: all numbers are in use.
 */
int dsa_permits_acquire(dsa_permits_t *permits);

/*
 * The lock protects the permits, their counters, and data of the caller that
 * changes together with them.  If the process with the lock is killed, the next
 * process gets the lock, counts the permits again, and increments repairs.  The
 * data of the caller may then be changed in part.
 */
void dsa_permits_lock(dsa_permits_t *permits);
void dsa_permits_unlock(dsa_permits_t *permits);

/*
 * Takes a permit of a counter, and releases it.  The lock must be held.
 * Returns the permit, or 0: all are taken.
 */
uint32_t dsa_permits_take(dsa_permits_t *permits, int owner, uint32_t *count);
void dsa_permits_release(dsa_permits_t *permits, uint32_t permit);

/*
 * Releases the permits of processes that have ended.  owner is this process.
 * The lock must not be held.  Returns the number of permits.
 */
uint32_t dsa_permits_reap(dsa_permits_t *permits, int owner);


#endif /* _DSA_PERMITS_H_INCLUDED_ */
