
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEDULER_H_INCLUDED_
#define _DSA_SCHEDULER_H_INCLUDED_


#include "engine/backend.h"
#include "engine/schedule/pages.h"


/*
 * Sequences and steps.  A sequence has tokens, and a number of them computed;
 * a step hands out rows until each has caught up: one to every sequence that
 * lacks only its last token (decode), then what is left of the budget to
 * prompts in chunks.  Prefill, chunked prefill, decode, prefix hits and
 * resumption after preemption are this one loop.
 *
 * Tenants share by weight.  Who has had the fewest rows computed, divided by
 * its weight, gets the next ones, prompt or admission, at most a quantum at a
 * time; decode rows are charged, too.  So the order follows all tokens that a
 * tenant had while others waited (start-time fair queueing, Goyal et al.,
 * SIGCOMM 1996; of tokens, Sheng et al., OSDI 2024).  Deficit round robin would
 * do the same where rows are scarce, but not where places are.
 *
 * Places in the step and pages are shared by dominant share (Ghodsi et al.,
 * NSDI 2011): who holds most of either, by weight, gives up its newest
 * sequence where pages run out, or where a tenant waits that would still hold
 * less with its request admitted.  A sequence that gave up its pages keeps its
 * tokens and is computed again later, as far as its pages are not found again
 * by prefix; its answer is the same, since noise depends on seed and position
 * only.
 */

#define DSA_SCHED_QUANTUM   256     /* most rows of a turn */
#define DSA_SCHED_PATIENCE  64      /* steps that a request may be passed by */


typedef struct dsa_sched_s  dsa_sched_t;
typedef struct dsa_seq_s    dsa_seq_t;


typedef struct {
    uint32_t            max_running;    /* sequences in a step */
    uint32_t            token_budget;   /* rows in a step, >= max_running */
    uint32_t            max_waiting;    /* beyond those that can run */
    uint32_t            max_waiting_per_tenant;     /* as max_waiting */
    uint32_t            context;        /* tokens, prompt and answer */
} dsa_sched_conf_t;


typedef struct {
    uint32_t           *tokens;         /* [n_tokens], malloc()ed, taken over
                                           when the request is */
    uint32_t            n_tokens;       /* >= 1 */
    uint32_t            n_resume;       /* < n_tokens: the last ones, which
                                           are the answer's first */
    uint32_t            max_tokens;     /* >= 1; n_tokens + max_tokens at
                                           most context */
    uint32_t            weight;         /* >= 1; the tenant's from now on */
    uint32_t            ignore_eos;
    uint32_t            private;        /* 1: no page is shared with another
                                           request */
    dsa_sampling_t      sampling;
    uint8_t             tenant[32];
    void               *owner;          /* given to the handler */
} dsa_sched_request_t;


/*
 * Called within a step, or from dsa_sched_cancel() or dsa_sched_add(); never
 * calls back.
 */

typedef struct {

    /*
     * A token of the answer, the end token excepted.  0 to go on, or a
     * dsa_link_finish_e that ends the answer with this token.
     */
    int               (*token)(void *owner, const dsa_sample_t *sample);

    /* The end: the sequence is gone when this returns. */
    void              (*done)(void *owner, const dsa_link_done_t *done);

    /*
     * The sequence, which was never started, left the full queue for a request
     * of another tenant.  It is gone when this returns; done() is not called.
     * May be NULL where all requests are of one tenant.
     */
    void              (*dropped)(void *owner);
} dsa_sched_handler_t;


typedef struct {
    uint64_t            steps;
    uint64_t            prompt_tokens;      /* computed or found in the cache,
                                               each once: the sum of done() */
    uint64_t            cached_tokens;      /* of them, found */
    uint64_t            completion_tokens;
    uint64_t            preemptions;
    uint32_t            running;
    uint32_t            waiting;
    uint32_t            pages;
    uint32_t            pages_used;
} dsa_sched_stats_t;


/*
 * The backend stays the caller's.  context is cut to what the backend's pages
 * hold.  NULL with err.
 */
dsa_sched_t *dsa_sched_create(dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, const dsa_sched_handler_t *handler,
    dsa_err_t *err);

/* Drops all sequences without a call of done(); NULL is allowed. */
void dsa_sched_destroy(dsa_sched_t *s);

uint32_t dsa_sched_context(const dsa_sched_t *s);

/*
 * A sequence that waits for its turn.  When the queue is full, the tenant with
 * the most waiting requests by weight loses the newest one that never started.
 * NULL with errno: EAGAIN, the queue is full and the request's tenant is the
 * one with the most, or has as many as it may; EINVAL, the request breaks a
 * bound of its fields; ENOMEM; what getrandom() sets, for a private request.
 */
dsa_seq_t *dsa_sched_add(dsa_sched_t *s, const dsa_sched_request_t *request);

/* Tokens of the prompt that are in the cache now. */
uint32_t dsa_sched_cached(const dsa_sched_t *s, const dsa_seq_t *seq);

/* Ends a sequence in whatever state, at once; not from within a step. */
void dsa_sched_cancel(dsa_sched_t *s, dsa_seq_t *seq,
    dsa_link_finish_e finish);

/* 1 when there is anything to compute. */
int dsa_sched_busy(const dsa_sched_t *s);

/* Computes a step.  DSA_ERROR: the backend failed, nothing can go on. */
int dsa_sched_step(dsa_sched_t *s, dsa_err_t *err);

void dsa_sched_stats(const dsa_sched_t *s, dsa_sched_stats_t *stats);

/* Checks the pages against all block tables, and the lists; O(everything). */
int dsa_sched_audit(const dsa_sched_t *s, dsa_err_t *err);


#endif /* _DSA_SCHEDULER_H_INCLUDED_ */
