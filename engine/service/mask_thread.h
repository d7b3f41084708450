
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MASK_THREAD_H_INCLUDED_
#define _DSA_MASK_THREAD_H_INCLUDED_


#include <pthread.h>

#include "base/error.h"
#include "grammar/grammar.h"


/*
 * A thread that makes masks, which may take up to 10 ms each, so that the step
 * thread does not wait.  Meanwhile, steps have no entries for the sequences
 * that need these masks.  Jobs are done in order.
 */

typedef struct dsa_mask_thread_s  dsa_mask_thread_t;
typedef struct dsa_mask_job_s  dsa_mask_job_t;


typedef enum {
    DSA_MASK_NONE = 0,                  /* not pushed, or done */
    DSA_MASK_QUEUED,
    DSA_MASK_RUNNING,                   /* the thread uses the matcher */
    DSA_MASK_DROPPED                    /* and frees the job afterwards */
} dsa_mask_state_e;


struct dsa_mask_job_s {
    dsa_matcher_t       *matcher;
    void               (*free)(void *owner);
    void                *owner;         /* argument of free */

    /* under the mutex of the thread */

    dsa_mask_state_e     state;
    dsa_mask_job_t      *next;
};


struct dsa_mask_thread_s {
    pthread_mutex_t      mutex;
    pthread_cond_t       work;          /* a job was added, or stop was set */
    pthread_cond_t       done;          /* a job was done */
    pthread_t            thread;
    dsa_mask_job_t      *first;         /* queued */
    dsa_mask_job_t      *last;
    int                  running;
    int                  stop;

    void               (*wake)(void *data);
    void                *data;
};


/* Initializes the queue; start() starts the thread. */
void dsa_mask_thread_init(dsa_mask_thread_t *t);

/*
 * Starts the thread, which calls wake with data after each job.  DSA_ERROR with
 * err.
 */
int dsa_mask_thread_start(dsa_mask_thread_t *t, void (*wake)(void *data),
    void *data, dsa_err_t *err);

/* Ends the thread after its current job, if the thread was started. */
void dsa_mask_thread_stop(dsa_mask_thread_t *t);

/* The thread does not run and its queue is empty. */
void dsa_mask_thread_destroy(dsa_mask_thread_t *t);

/* Queues a job whose state is DSA_MASK_NONE. */
void dsa_mask_thread_push(dsa_mask_thread_t *t, dsa_mask_job_t *job);

/* Returns 1 if the job is done or was not pushed. */
int dsa_mask_thread_done(dsa_mask_thread_t *t, const dsa_mask_job_t *job);

/* Cancels a job, or waits for its end if it is running. */
void dsa_mask_thread_cancel(dsa_mask_thread_t *t, dsa_mask_job_t *job);

/*
 * Cancels a job to free it.  Returns 0 if it is running: then the thread calls
 * its free().
 */
int dsa_mask_thread_drop(dsa_mask_thread_t *t, dsa_mask_job_t *job);


#endif /* _DSA_MASK_THREAD_H_INCLUDED_ */
