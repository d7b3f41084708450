
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEDULER_H_INCLUDED_
#define _DSA_SCHEDULER_H_INCLUDED_


#include "base/error.h"
#include "engine/backend.h"


/*
 * Continuous batching.  A sequence has tokens, of which a number is computed.
 * Each step has a token budget: first one token for each sequence that lacks
 * only its last token (decode), with drafts after it where the request
 * proposes some, then chunks of prompts (prefill).  Prefill, chunked prefill,
 * decode, prefix hits and resumption after preemption are this one loop.
 *
 * A full page of 64 computed tokens is published under its digest and can be
 * found by later requests of the same tenant.  When pages run out, a running
 * sequence is preempted: it releases its pages, keeps its tokens, and is
 * computed again later, except for the pages that are still found.  Its answer
 * stays the same, because sampling noise is a function of (seed, position).
 *
 * policy.h describes how tenants share steps, batch slots and pages.
 *
 * A scheduler has no global state and no locks.  All calls come from one
 * thread; a caller may wrap dsa_sched_step(), for example to publish when a
 * step began.
 */

#define DSA_SCHED_QUANTUM   256     /* most prefill tokens before the next
                                       tenant is chosen */


typedef struct dsa_sched_s  dsa_sched_t;
typedef struct dsa_seq_s    dsa_seq_t;


typedef enum {
    DSA_FINISH_STOP = 1,            /* end token, or the handler's decision */
    DSA_FINISH_LENGTH,              /* max_tokens */
    DSA_FINISH_CANCELLED,
    DSA_FINISH_DEADLINE
} dsa_finish_e;


typedef struct {
    uint32_t            max_running;    /* sequences in a step */
    uint32_t            token_budget;   /* tokens in a step, >= max_running */
    uint32_t            max_waiting;    /* in excess of those that can run */
    uint32_t            max_waiting_per_tenant;     /* as max_waiting */
    uint32_t            context;        /* tokens, prompt and answer */
    uint32_t            step_target_ms; /* limits the prefill part of steps
                                           that have decodes, see pace.h; 0:
                                           no limit */

    /* Microseconds that never decrease; NULL: CLOCK_MONOTONIC. */

    uint64_t          (*clock_us)(void *data);
    void               *clock_data;
} dsa_sched_conf_t;


/*
 * Proposes drafts for the next tokens of an answer.  tokens: prompt and answer
 * so far.  Writes at most `most` ids, each below the vocabulary's size, and
 * returns their number.  Called once before each decode step.
 */
typedef uint32_t (*dsa_sched_draft_pt)(void *owner, const uint32_t *tokens,
    uint32_t n_tokens, uint32_t *drafts, uint32_t most);

/*
 * Sets the masks of a step's outputs, mask [n_drafts + 1][words] as in
 * dsa_batch_seq_t: output i comes after all tokens that the handler was given
 * and drafts[0 .. i-1].  All bits are 1 before the call.  At least one id must
 * stay permitted for each output, also for outputs after a draft that an
 * earlier mask excludes; these are never accepted.
 */
typedef void (*dsa_sched_mask_pt)(void *owner, const uint32_t *drafts,
    uint32_t n_drafts, uint32_t *mask, uint32_t words);


typedef struct {
    uint64_t            id;             /* for the log */
    uint32_t           *tokens;         /* [n_tokens], malloc()ed; the
                                           sequence owns them when the request
                                           is accepted */
    uint32_t            n_tokens;       /* prompt and resumed tokens */
    uint32_t            n_resume;       /* The last n_resume tokens are answer
                                           tokens that were generated
                                           elsewhere.  They count for
                                           penalties, positions and max_tokens,
                                           not as prompt.  < n_tokens,
                                           < max_tokens */
    uint32_t            max_tokens;     /* of the answer, >= 1; prompt and
                                           max_tokens together at most
                                           context */
    uint32_t            weight;         /* >= 1; of the tenant from now on */
    uint32_t            ignore_eos;
    uint32_t            private;        /* 1: no page is shared with another
                                           request */
    dsa_sampling_t      sampling;
    uint8_t             tenant[32];
    dsa_sched_draft_pt  draft;          /* NULL: no drafts.  Not called on a
                                           backend with max_outputs 1 */
    dsa_sched_mask_pt   mask;           /* NULL: no masks */
    void               *owner;          /* argument of all callbacks */
} dsa_sched_request_t;


typedef struct {
    dsa_finish_e        finish;
    uint32_t            prompt_tokens;  /* computed, or found in the cache: all
                                           of the prompt unless the sequence
                                           was cancelled before its first
                                           token */
    uint32_t            cached_tokens;  /* of them, found */
    uint32_t            completion_tokens;  /* of the answer, with resumed
                                               tokens and the end token */
    uint32_t            queue_ms;       /* request to admission */
    uint32_t            prefill_ms;     /* admission to the first token */
    uint32_t            decode_ms;      /* first token to the last */
} dsa_sched_usage_t;


/*
 * Called within dsa_sched_step(), dsa_sched_cancel() or dsa_sched_add().  The
 * handler must not call the scheduler.
 */

typedef struct {

    /*
     * The next n >= 1 tokens of the answer, without the end token.  Returns 0
     * to go on, or a dsa_finish_e: the answer then ends with samples[n - 1],
     * and all n tokens count as completion.
     */
    int               (*tokens)(void *owner, const dsa_sample_t *samples,
                                uint32_t n);

    /* The answer has ended; the sequence is freed when this returns. */
    void              (*done)(void *owner, const dsa_sched_usage_t *usage);

    /*
     * The sequence was removed from the full queue in favor of another
     * tenant's request.  It had never been admitted.  It is freed when this
     * returns, and done() is not called.  May be NULL when all requests are of
     * one tenant.
     */
    void              (*dropped)(void *owner);
} dsa_sched_handler_t;


typedef struct {
    uint64_t            steps;
    uint64_t            prompt_tokens;      /* as the sum of all usages */
    uint64_t            cached_tokens;
    uint64_t            completion_tokens;  /* sampled here, without resumed
                                               ones */
    uint64_t            draft_tokens;       /* verified */
    uint64_t            accepted_tokens;    /* of them, accepted */
    uint64_t            preemptions;
    uint32_t            running;
    uint32_t            waiting;
    uint32_t            pages;
    uint32_t            pages_used;
} dsa_sched_stats_t;


/*
 * The caller keeps the backend, and closes it after the scheduler.  context is
 * reduced to the tokens that the backend's pages hold.  NULL with err.
 */
dsa_sched_t *dsa_sched_create(dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, const dsa_sched_handler_t *handler,
    dsa_err_t *err);

/* Frees all sequences without a call of done(); NULL is allowed. */
void dsa_sched_destroy(dsa_sched_t *s);

uint32_t dsa_sched_context(const dsa_sched_t *s);

/*
 * Queues a sequence.  When the queue is full, the tenant with the most waiting
 * requests by weight loses its newest request that was never admitted.  NULL
 * with err and errno:
 *
 *     EAGAIN   the queue is full, and the request's tenant has the most
 *              waiting requests or as many as one tenant may have
 *     EINVAL   a field of the request is out of bounds
 *     ENOTSUP  the request has a mask, and the backend takes none
 *     ENOMEM
 *     other    getrandom() failed for a private request
 */
dsa_seq_t *dsa_sched_add(dsa_sched_t *s, const dsa_sched_request_t *request,
    dsa_err_t *err);

/* Tokens of the prompt that are in the cache now, by pages of the index. */
uint32_t dsa_sched_cached(const dsa_sched_t *s, const dsa_seq_t *seq);

/* Ends a sequence in any state at once; not from within a step. */
void dsa_sched_cancel(dsa_sched_t *s, dsa_seq_t *seq, dsa_finish_e finish);

/* 1 when dsa_sched_step() has something to do. */
int dsa_sched_busy(const dsa_sched_t *s);

/*
 * Runs a step.  With a backend of depth 2 it starts a step and waits for the
 * one before.  DSA_ERROR: the backend failed or memory is exhausted, and the
 * scheduler cannot go on.
 */
int dsa_sched_step(dsa_sched_t *s, dsa_err_t *err);

void dsa_sched_stats(const dsa_sched_t *s, dsa_sched_stats_t *stats);

/*
 * Checks all counters, lists and block tables against each other, for tests.
 * DSA_ERROR with err at the first difference.  O(everything).
 */
int dsa_sched_audit(const dsa_sched_t *s, dsa_err_t *err);


#endif /* _DSA_SCHEDULER_H_INCLUDED_ */
