
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_REQUEST_H_INCLUDED_
#define _DSA_REQUEST_H_INCLUDED_


#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "engine/link_event.h"
#include "engine/link_request.h"
#include "engine/link_ring.h"
#include "engine/schedule/scheduler.h"
#include "engine/service/answer.h"
#include "engine/service/budget.h"
#include "engine/service/grammars.h"


/*
 * A request is passed from thread to thread:
 *
 *     I/O thread -> tokenizer thread -> I/O thread -> step thread -> I/O thread
 *
 * The I/O thread allocates and frees it.  Another thread refers to it only in
 * the states below, and then it owns the fields in its part of the struct.  A
 * request is passed by a push to a queue, whose mutex orders the accesses.
 */

typedef struct dsa_request_s  dsa_request_t;
typedef struct dsa_session_s  dsa_session_t;


typedef enum {
    DSA_REQUEST_TOKENIZE = 0,           /* in the pool, until it is
                                           collected */
    DSA_REQUEST_STEP,                   /* until its last event is collected */
    DSA_REQUEST_IDLE                    /* no other thread refers to it */
} dsa_request_state_e;


/* Commands to the step thread. */

#define DSA_COMMAND_ADD         0x1U
#define DSA_COMMAND_CANCEL      0x2U


struct dsa_request_s {

    /* of the I/O thread; the fields that it reads for each token are first */

    dsa_request_t          *prev;       /* ring of its session, or of */
    dsa_request_t          *next;       /* the detached requests */
    uint64_t                id;
    uint64_t                deadline_ms;
    dsa_session_t          *session;    /* NULL: detached */
    pid_t                   worker;     /* pid of the nginx worker */
    dsa_request_t          *next_ready;
    dsa_request_state_e     state;
    uint32_t                ready;      /* in the session's list of requests
                                           with something to write */
    uint32_t                cancelled;  /* DSA_COMMAND_CANCEL was sent */
    uint32_t                stopped;    /* by a stop string */
    uint32_t                muted;      /* cancelled by the worker: tokens are
                                           not sent */
    uint32_t                samples;    /* tokens that count as completion */
    uint32_t                sent;       /* tokens in the event ring */
    uint32_t                sampled_rows;   /* rows of samples so far */
    dsa_link_type_e         early;      /* last record of a request that is in
                                           the pool: DONE, ERROR; 0: none */
    uint32_t                early_code; /* of it: finish or error */

    /* records to write, in this order; a tokenizer thread sets them first */

    uint32_t                accept;     /* 1: write ACCEPTED */
    dsa_link_type_e         last;       /* DONE, ERROR, COUNTED; 0: not yet */
    dsa_answer_t            answer;     /* TOKENS */
    dsa_buf_t               rows;       /* ROLLOUT */
    size_t                  rows_sent;  /* bytes of them */
    dsa_link_accepted_t     accepted;
    dsa_link_done_t         done;
    dsa_link_counted_t      counted;
    dsa_link_failure_t      failure;
    char                   *reason;     /* of the failure: its path and its
                                           text; may be NULL */

    /* a tokenizer thread */

    dsa_request_t          *next_job;
    dsa_link_type_e         type;       /* SUBMIT or COUNT */
    uint8_t                 tenant[32];
    uint32_t                weight;     /* of the tenant */
    void                   *copy;       /* of the payload */
    size_t                  len;
    uint64_t                cost;       /* in bytes of a prompt that take as
                                           long; see tokenize_pool.h */
    uint32_t                moved;      /* to the threads for slow work */
    uint32_t                prepared;   /* only the first mask is missing */
    char                    name[DSA_LINK_MAX_REQUEST + 1];     /* the id that
                                           nginx uses; empty: none */
    char                    trace[DSA_LINK_MAX_TRACE + 1];      /* traceparent
                                           of the client; empty: none */
    char                    client[DSA_LINK_MAX_TRACE + 1];     /* its own id;
                                           empty: none */
    dsa_sched_request_t     sched;
    dsa_bias_t             *bias;       /* of sched.biases; NULL: none */
    dsa_constraint_t       *constraint; /* the step thread uses it; NULL:
                                           none */
    dsa_budget_t            budget;     /* the step thread uses it */
    _Atomic uint32_t        abandoned;  /* 1: the result is not needed; set by
                                           the I/O thread */

    /*
     * Of the step thread; the first block is protected by the mutex of its
     * queue.
     */

    dsa_request_t          *prev_command;
    dsa_request_t          *next_command;
    uint32_t                command;    /* 0: not in the queue */
    uint32_t                cancel;     /* dsa_link_finish_e */
    uint32_t                finished;   /* its last event is issued */

    dsa_seq_t              *seq;        /* NULL: not in the scheduler */
    void                   *stepper;    /* the step thread's context */
    uint32_t                logprobs;   /* does not change */
    uint32_t                routed;     /* report experts from this position
                                           on */
    uint32_t                cached;     /* with DSA_EVENT_ADDED */
    uint32_t                reject;     /* dsa_link_error_e, and its reason, */
    const char             *reject_reason;  /* with DSA_EVENT_REJECTED; 0: the
                                           scheduler ends the request with
                                           DSA_EVENT_DONE */
    dsa_link_done_t         usage;      /* with both */
};


/*
 * Creates a request with a copy of len bytes of payload.  NULL: memory is
 * short.
 */
dsa_request_t *dsa_request_create(dsa_link_type_e type, uint64_t id,
    const void *payload, size_t len);
void dsa_request_free(dsa_request_t *r);

/* Sets the last record to an ERROR with this code. */
void dsa_request_reject(dsa_request_t *r, dsa_link_error_e code,
    const char *reason);

/*
 * Sets the last record to an ERROR with DSA_LINK_E_GRAMMAR; path: of the place
 * in the spec that cannot be enforced.
 */
void dsa_request_refuse(dsa_request_t *r, const char *path,
    const char *reason);

/*
 * Called in the step thread: 1 if the constraint has failed.  The request then
 * ends with DSA_EVENT_REJECTED.
 */
int dsa_request_starved(dsa_request_t *r);

/* Sets the last record to a DONE without computed tokens. */
void dsa_request_finish(dsa_request_t *r, dsa_link_finish_e finish);


#endif /* _DSA_REQUEST_H_INCLUDED_ */
