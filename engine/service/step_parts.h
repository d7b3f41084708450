
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The step thread inside: its state, and what its files call of one another.
 */


#ifndef _DSA_STEP_PARTS_H_INCLUDED_
#define _DSA_STEP_PARTS_H_INCLUDED_


#include <pthread.h>

#include "engine/service/step_thread.h"


struct dsa_step_s {
    dsa_vitals_t           *vitals;
    dsa_backend_t          *backend;
    dsa_sched_t            *sched;
    dsa_events_t            out;        /* of the step thread */
    uint32_t                no_memory;  /* an event is missing in out */
    uint32_t                version;    /* of the weights, for rollouts */
    int                     wake;

    pthread_t               thread;
    dsa_step_open_pt        open;
    void                   *open_data;
    dsa_err_t              *open_err;
    int                     open_rc;
    uint32_t                running;    /* the thread was started */

    pthread_mutex_t         mutex;      /* for the rest */
    pthread_cond_t          work;       /* a command, or stop */
    pthread_cond_t          room;       /* for a batch; or open is done */
    dsa_request_t          *first;      /* commands */
    dsa_request_t          *last;
    dsa_events_t            waiting;
    uint32_t                batches;    /* in waiting */
    uint32_t                opened;
    uint32_t                idle;       /* the thread waits for work */
    uint32_t                nudged;     /* dsa_step_nudge() was called */
    uint32_t                reload;     /* dsa_step_reload() was called */
    uint32_t                failed;
    uint32_t                stop;
    dsa_sched_stats_t       stats;
};


/* step_commands.c: executes all commands that wait. */
void dsa_step_execute(dsa_step_t *st);

/*
 * step_events.c: appends an event to the batch of the step that runs.  sample
 * is that of a token, otherwise NULL.
 */
void dsa_step_event(dsa_request_t *r, dsa_event_e kind,
    const dsa_sample_t *sample);

/*
 * Hands over the events since the last batch.  Waits while DSA_STEP_BATCHES
 * batches were not collected.  DSA_ERROR: an event is missing, out of memory.
 */
int dsa_step_publish(dsa_step_t *st);

/* What the scheduler calls for the tokens and the end of a request. */
extern const dsa_sched_handler_t  dsa_step_handler;


#endif /* _DSA_STEP_PARTS_H_INCLUDED_ */
