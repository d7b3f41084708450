
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHED_STATE_H_INCLUDED_
#define _DSA_SCHED_STATE_H_INCLUDED_


#include "engine/schedule/pace.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/sequence.h"


/*
 * The state of a scheduler, and the functions that its files share.  Calls go
 * downwards in this order: scheduler.c, step.c, admission.c, finish.c.
 */

/*
 * One step.  A sequence that ends or is preempted while the step is in flight
 * leaves its entry behind.
 */

typedef struct {
    dsa_batch_seq_t    *batch;          /* [max_running] entries */
    dsa_seq_t         **member;         /* sequence of an entry, or NULL */
    dsa_sample_t       *sample;         /* [max_running][max_outputs] */
    uint32_t           *accepted;       /* [max_running] */
    uint32_t            n_batch;        /* entries */
    uint32_t            n_decodes;      /* of them, decodes */
    uint32_t            n_prefill;      /* prefill tokens */
    uint64_t            begin_us;
} dsa_sched_step_t;


struct dsa_sched_s {
    dsa_backend_t      *backend;
    dsa_pages_t        *pages;
    dsa_digester_t     *digester;
    dsa_sched_conf_t    conf;
    dsa_sched_handler_t handler;
    dsa_sched_stats_t   stats;
    dsa_policy_t        policy;
    dsa_pace_t          pace;

    dsa_seq_t         **running;        /* [max_running], by admission; NULL
                                           where a sequence has left */
    uint32_t            n_running;      /* entries, with NULLs */
    uint32_t            n_live;         /* without */
    uint32_t            n_waiting;

    dsa_sched_step_t    ring[DSA_SCHED_DEPTH];
    dsa_sched_step_t   *next;           /* the step that is being made */
    uint32_t            first;          /* in ring[], the oldest in-flight
                                           step */
    uint32_t            in_flight;      /* steps */
    uint64_t            end_us;         /* of the last step that ended */
};


/* The arguments of "request %u.%u" in the log. */

#define dsa_sched_log_id(seq)                                                 \
    (uint32_t) (seq)->id, (uint32_t) ((seq)->id >> 32)


static inline uint64_t
dsa_sched_now(const dsa_sched_t *s)
{
    return s->conf.clock_us(s->conf.clock_data);
}


/* The entry of a sequence in the step that is being made. */

static inline uint32_t *
dsa_sched_entry(const dsa_sched_t *s, dsa_seq_t *seq)
{
    return &seq->entry[s->next - s->ring];
}


/* admission.c */

/*
 * Admits the first waiting sequence of t: it takes the pages that hold its
 * prefix, then empty ones for the rest.  At least its last token is left to
 * compute, because the first answer token is sampled after it.  DSA_AGAIN when
 * there is no such sequence, no room, or a reservation of another tenant.
 */
int dsa_sched_admit(dsa_sched_t *s, dsa_tenant_t *t);

/*
 * Preempts a running sequence: it releases its pages and waits as the first of
 * its tenant.
 */
void dsa_sched_preempt(dsa_sched_t *s, dsa_seq_t *seq);

/*
 * Preempts sequences of tenants with a large share in favor of a waiting
 * request of a tenant with a small one, as far as policy permits, and admits
 * that request or reserves the room for it.
 */
void dsa_sched_reclaim(dsa_sched_t *s);

/* The running sequence of a tenant that was admitted last, or NULL. */
dsa_seq_t *dsa_sched_newest(const dsa_sched_t *s, const dsa_tenant_t *t);


/* finish.c */

/*
 * Waits for the oldest in-flight step and reports its tokens.  DSA_ERROR as
 * dsa_sched_step().
 */
int dsa_sched_collect(dsa_sched_t *s, dsa_err_t *err);

/*
 * Adds the prompt tokens that are computed and were not counted before to the
 * sequence's usage; found: 1 when they were found in the cache.
 */
void dsa_sched_count(dsa_sched_t *s, dsa_seq_t *seq, int found);

/* Takes a sequence out of all lists and steps, and releases its pages. */
void dsa_sched_stop(dsa_sched_t *s, dsa_seq_t *seq);

/* Stops a sequence, reports its usage and frees it. */
void dsa_sched_finish(dsa_sched_t *s, dsa_seq_t *seq, dsa_finish_e finish,
    uint64_t now);

/* Frees a stopped sequence, and its tenant with the last one. */
void dsa_sched_free(dsa_sched_t *s, dsa_seq_t *seq);

/* Closes the gaps in running[]. */
void dsa_sched_compact(dsa_sched_t *s);


#endif /* _DSA_SCHED_STATE_H_INCLUDED_ */
