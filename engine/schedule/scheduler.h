
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEDULER_H_INCLUDED_
#define _DSA_SCHEDULER_H_INCLUDED_


#include "base/error.h"
#include "base/token_times.h"
#include "engine/backend.h"
#include "engine/pages/host.h"
#include "engine/pages/tier.h"
#include "engine/schedule/drafts.h"
#include "engine/schedule/request.h"


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
 * policy.h describes how tenants share steps, batch indices and pages.
 *
 * With several ranks, a sequence runs on one of them (placement.c).  The
 * prompts of a step are chosen so that all ranks work.  The prompt of a
 * sequence may be split over all ranks until it is computed.
 *
 * A scheduler has no global state and no locks.  All calls come from one
 * thread; a caller may wrap dsa_sched_step(), for example to publish when a
 * step began.
 */

#define DSA_SCHED_QUANTUM   256     /* most prefill tokens before the next
                                       tenant is chosen */
#define DSA_SCHED_SPLIT     4097    /* A prompt is split over the ranks if at
                                       least so many of its tokens are to be
                                       computed: more than the 4096 that a
                                       GPU computes by MHA prefill */


typedef struct dsa_sched_s  dsa_sched_t;


typedef struct {
    uint32_t            max_running;    /* sequences in a step, on each rank */
    uint32_t            token_budget;   /* tokens in a step, on all ranks
                                           together; >= ranks * max_running */
    uint32_t            max_waiting;    /* in excess of those that can run */
    uint32_t            max_waiting_per_tenant;     /* as max_waiting */
    uint32_t            context;        /* tokens, prompt and answer */
    uint32_t            token_target_ms;        /* between two tokens of an
                                           answer, see pace.h; 0: no target */
    uint32_t            first_token_target_ms;  /* from the addition of a
                                           request to its first token; 0: no
                                           target */
    uint32_t            adapt_drafts;   /* 1: the drafts of the backend are the
                                           most, see drafts.h; 0: as many as
                                           there is room for */

    /*
     * Slower tiers.  The caller keeps host until the backend is closed.  The
     * scheduler closes the tiers from DSA_TIER_SLOWER on, also if it cannot be
     * created.
     */

    const dsa_host_t   *host;           /* NULL: none */
    dsa_tier_t          tier[DSA_TIERS];        /* from DSA_TIER_SLOWER on;
                                                   they need host */

    /* Microseconds that never decrease; NULL: CLOCK_MONOTONIC. */

    uint64_t          (*clock_us)(void *data);
    void               *clock_data;
} dsa_sched_conf_t;


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
    uint64_t            accepted_tokens;    /* of them, in an answer */
    uint64_t            accepted_at[DSA_SPEC_MOST];   /* of these, those
                                               after so many other drafts of
                                               the step */
    uint64_t            decodes;            /* sequences in steps that continued
                                               their answers by at least one
                                               token */
    uint64_t            decode_tokens;      /* by which they were continued,
                                               with end tokens */
    uint64_t            token_times[DSA_TOKEN_TIMES + 1];   /* tokens of an
                                               answer after its first one, by
                                               the time since the one before */
    uint64_t            token_us;           /* sum of these times */
    uint64_t            expert_rows;        /* as in dsa_backend_t */
    uint64_t            fullest_rows;
    uint64_t            copied_tokens;      /* of cached ones: in pages that
                                               were copied from other ranks,
                                               each copy counted */
    uint64_t            split_prompts;      /* prefilled on all ranks */
    uint64_t            preemptions;
    uint64_t            ended;              /* without dropped ones */
    uint32_t            running;
    uint32_t            waiting;
    uint32_t            pages;              /* of all ranks */
    uint32_t            pages_used;
    uint32_t            ranks;
    uint32_t            rank_pages;         /* of each rank */
    uint32_t            rank_used[DSA_MAX_GPUS];    /* of them, in use */
    uint32_t            unwritten;      /* pages, see dsa_sched_unwritten() */
    dsa_tier_stats_t    tier[DSA_TIERS];
} dsa_sched_stats_t;


/*
 * The caller keeps the backend, and closes it after the scheduler.  context is
 * reduced to the tokens that the pages of one rank hold.  NULL with err.
 */
dsa_sched_t *dsa_sched_create(dsa_backend_t *backend,
    const dsa_sched_conf_t *conf, const dsa_sched_handler_t *handler,
    dsa_err_t *err);

/* Frees all sequences without a call of done(); NULL is allowed. */
void dsa_sched_destroy(dsa_sched_t *s);

uint32_t dsa_sched_context(const dsa_sched_t *s);

/*
 * Queues a sequence.  When the queue is full, the newest request of the tenant
 * with the most waiting requests by weight is dropped, if it was never
 * admitted.  NULL with err and errno:
 *
 *     EDQUOT   the tenant has as many waiting requests as one tenant may
 *              have, or the queue is full and the tenant has the most of them
 *              by weight
 *     EAGAIN   the queue is full of requests of others, none of whom has more
 *              of them by weight than this tenant would have with its first
 *     EINVAL   a field of the request is out of bounds
 *     ENOTSUP  the request has a rollout, and the backend reports none
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
 * Collects pages that were moved or read, and begins to move others; as a part
 * of dsa_sched_step(), too.  To be called when the cache (conf.cache) has woken
 * its user, and at dsa_sched_due_us().  DSA_ERROR as dsa_sched_step().
 */
int dsa_sched_poll(dsa_sched_t *s, dsa_err_t *err);

/* By conf.clock_us; UINT64_MAX: never. */
uint64_t dsa_sched_due_us(const dsa_sched_t *s);

/*
 * Replaces the weights: waits for the steps and moves in flight, and calls the
 * backend's reload().  Afterwards no page of the old weights is found, in no
 * tier; running sequences are preempted, compute their tokens again, and go on
 * with the new weights.  DSA_AGAIN with err: the weights stay, and sequences go
 * on as if nothing had happened.  The reason is that of reload(), or there are
 * tiers that other processes share.  DSA_ERROR as dsa_sched_step().
 */
int dsa_sched_reload(dsa_sched_t *s, dsa_err_t *err);

/* Pages that wait to be written to the cache, or are being written. */
uint32_t dsa_sched_unwritten(const dsa_sched_t *s);

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
