
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_THREADS_H_INCLUDED_
#define _DSA_THREADS_H_INCLUDED_


#include <stdint.h>

#include "base/error.h"


/*
 * A pool of threads that compute the pieces of one job at a time.  The caller
 * cuts the job into pieces that do not depend on each other and waits until all
 * of them are done; meanwhile it computes pieces itself.  Which thread computes
 * which piece is not defined, so a result is the same for any number of threads
 * if the cut does not depend on that number.
 *
 * After a job the threads wait actively for DSA_THREADS_SPIN_US microseconds,
 * because the next job of a forward pass follows at once, and sleep then.
 *
 * If other processes use the CPUs, a thread may be preempted within a piece,
 * and the job waits for it for milliseconds.  After a wait of more than
 * DSA_THREADS_LATE_US that was also longer than the computing, the caller
 * computes jobs alone for DSA_THREADS_ALONE_US, and for twice as long each time
 * it happens again, up to 64 times as long.
 */

#define DSA_THREADS_SPIN_US   20
#define DSA_THREADS_LATE_US   200
#define DSA_THREADS_ALONE_US  10000


typedef struct dsa_threads_s  dsa_threads_t;

/*
 * Computes a piece, a number below that of the pieces.  thread is below
 * dsa_threads_count() and differs between pieces that are computed at the same
 * time, so it can select scratch memory.  Must not call dsa_threads_run() of
 * the same pool.
 */
typedef void (*dsa_threads_work_pt)(void *ctx, uint32_t piece, uint32_t thread);


/* CPUs on which the calling process may run, at least 1. */
uint32_t dsa_threads_cpus(void);

/*
 * threads: the caller of dsa_threads_run() and threads - 1 others, which are
 * started here with all signals blocked; 1 or more.  NULL with err.
 */
dsa_threads_t *dsa_threads_create(uint32_t threads, dsa_err_t *err);

/* No job may be running.  NULL is allowed. */
void dsa_threads_destroy(dsa_threads_t *pool);

uint32_t dsa_threads_count(const dsa_threads_t *pool);

/*
 * Computes pieces 0 .. pieces-1, each exactly once, and returns when all are
 * done; what they wrote is visible to the caller then.  One job at a time: a
 * call from within a piece, or from another thread meanwhile, is a fatal error.
 */
void dsa_threads_run(dsa_threads_t *pool, uint32_t pieces,
    dsa_threads_work_pt work, void *ctx);


#endif /* _DSA_THREADS_H_INCLUDED_ */
