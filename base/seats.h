
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SEATS_H_INCLUDED_
#define _DSA_SEATS_H_INCLUDED_


#include <pthread.h>
#include <stdint.h>


/*
 * Counters in memory that processes share, which stay exact if a process is
 * killed.  A process increments a counter by taking a hold, and decrements it
 * by releasing the hold.  Each process has a seat, and each hold belongs to
 * a seat.  When a process has ended, another one releases its holds.
 *
 * A seat is a robust mutex that its process keeps locked.  The kernel marks the
 * mutex when the process ends in any way, and never before.  This works without
 * /proc and without a file, and does not depend on process ids.
 *
 * The memory must be mapped at the same address in all processes, as it is
 * after fork(), and stay mapped until the process ends.
 */

#define DSA_SEATS_MAX        512        /* processes */
#define DSA_SEATS_BLOCK      2048       /* holds */
#define DSA_SEATS_BLOCKS     512


typedef struct {
    uint32_t        *count;
    uint32_t         owner;             /* 1 + the seat; 0: the hold is free */
    uint32_t         next;              /* of the free holds */
} dsa_seats_hold_t;


typedef struct {
    pthread_mutex_t    lock;
    uint32_t           repairs;         /* processes that ended in the lock */
    uint32_t           n_used;          /* seats that were used so far */
    uint32_t           n_blocks;
    uint32_t           free;            /* 1 + number of a hold; 0: none */
    dsa_seats_hold_t  *blocks[DSA_SEATS_BLOCKS];
    pthread_mutex_t    seats[DSA_SEATS_MAX];
} dsa_seats_t;


/* Initializes zeroed memory.  DSA_OK, or DSA_ERROR with errno. */
int dsa_seats_init(dsa_seats_t *seats);

/*
 * Adds DSA_SEATS_BLOCK holds, which live as long as seats.  Not more than
 * DSA_SEATS_BLOCKS times.  The lock must be held.
 */
void dsa_seats_add(dsa_seats_t *seats, dsa_seats_hold_t *block);

/*
 * Acquires a seat for this process, which keeps it until it ends.  Returns its
 * number, or -1: all seats are in use.
 */
int dsa_seats_acquire(dsa_seats_t *seats);

/*
 * The lock protects the holds, their counters, and data of the caller that
 * changes together with them.  If the process with the lock is killed, the next
 * process gets the lock, counts the holds again, and increments repairs.  The
 * data of the caller may then be changed in part.
 */
void dsa_seats_lock(dsa_seats_t *seats);
void dsa_seats_unlock(dsa_seats_t *seats);

/*
 * Takes a hold on a counter, and releases it.  The lock must be held.  Returns
 * the hold, or 0: all are taken.
 */
uint32_t dsa_seats_take(dsa_seats_t *seats, int seat, uint32_t *count);
void dsa_seats_release(dsa_seats_t *seats, uint32_t hold);

/*
 * Releases the holds of processes that have ended; seat: of this process.  The
 * lock must not be held.  Returns the number of holds.
 */
uint32_t dsa_seats_reap(dsa_seats_t *seats, int seat);


#endif /* _DSA_SEATS_H_INCLUDED_ */
