
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHED_STATE_H_INCLUDED_
#define _DSA_SCHED_STATE_H_INCLUDED_


#include "engine/schedule/cost.h"
#include "engine/schedule/drafts.h"
#include "engine/schedule/pace.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/sequence.h"


/*
 * The state of a scheduler, and the functions that its files share.  Calls go
 * downwards in this order: scheduler.c, reload.c, step.c, masks.c, prefill.c,
 * admission.c, placement.c, finish.c, timing.c, rollout.c, load.c, ranks.c.
 */

#define DSA_NO_RANK     UINT32_MAX


/*
 * One step.  A sequence that ends or is preempted while the step is in flight
 * leaves its entry behind.
 */

typedef struct {
    dsa_batch_seq_t    *batch;          /* [indices] entries */
    dsa_seq_t         **member;         /* sequence of an entry, or NULL */
    dsa_sample_t       *sample;         /* [indices][max_outputs] */
    uint32_t           *accepted;       /* [indices] */
    uint32_t           *next;           /* [indices][max_outputs] drafts of the
                                           backend */
    uint32_t           *n_next;         /* [indices] */
    dsa_rollout_t      *rollout;        /* [indices], of the entries that have
                                           one, */
    void               *rollout_memory; /* and where they point to */
    size_t              rollout_size;   /* of the memory */
    uint32_t            n_batch;        /* entries */
    uint32_t            n_decodes;      /* of them, decodes */
    uint32_t            n_prefill;      /* prefill tokens of the rank that has
                                           the most */
    uint64_t            begin_us;
} dsa_sched_step_t;


/* What a rank has. */

typedef struct {
    uint32_t            n_live;         /* running sequences with pages on it:
                                           batch indices in use */
    uint32_t            pending;        /* prompt tokens of these sequences
                                           that no step has yet */
    uint32_t            tokens;         /* of the step that is being made */
    uint32_t            decode_tokens;  /* of them, not of prompts; valid while
                                           its prefill part is being made */
    dsa_cost_load_t     load;           /* of the step that is being made, with
                                           the drafts of the last one */
    double              drafts;         /* DSA_COST_DRAFTS of the step that
                                           ended last */
} dsa_sched_rank_t;


struct dsa_sched_s {
    dsa_backend_t      *backend;
    dsa_pages_t        *pages;
    dsa_tiers_t        *tiers;          /* NULL: no slower tiers */
    dsa_digester_t     *digester;
    dsa_sched_conf_t    conf;
    dsa_sched_handler_t handler;
    dsa_sched_stats_t   stats;
    dsa_policy_t        policy;
    dsa_pace_t          pace;
    dsa_cost_t          cost;
    dsa_spec_t          drafts;

    uint32_t            ranks;
    uint32_t            routes;         /* experts of a token in all layers */
    uint32_t            indices;        /* batch indices: ranks * max_running */
    dsa_sched_rank_t    rank[DSA_MAX_GPUS];     /* [ranks] */

    dsa_seq_t         **running;        /* [indices], by admission; NULL where a
                                           sequence has left */
    uint32_t            n_running;      /* entries, with NULLs */
    uint32_t            n_live;         /* without */
    uint32_t            n_waiting;
    uint32_t            n_loading;      /* of n_live, in DSA_SEQ_LOADING */
    uint32_t            n_prefill;      /* of n_live, in DSA_SEQ_PREFILL */
    uint32_t            n_split;        /* of n_live, with copies */

    dsa_sched_step_t    ring[DSA_SCHED_DEPTH];
    dsa_sched_step_t   *next;           /* the step that is being made */
    uint32_t            first;          /* in ring[], the oldest in-flight
                                           step */
    uint32_t            in_flight;      /* steps */
    uint64_t            end_us;         /* of the last step that ended */

    uint32_t            n_unready;      /* sequences that the step which is
                                           being made leaves out, because their
                                           masks are not ready */
    uint32_t            stuck;          /* 1: nothing can be done before the
                                           next dsa_sched_poll(), addition or
                                           cancellation */
    uint64_t            ended;          /* steps */
    uint64_t            made;           /* steps, with those that had no entry
                                           and were not started */

    /* of the step that is being made; INFINITY: without a limit */

    double              token_us;       /* its time by the token target */
    double              step_us;        /* and the time that it may take */
    dsa_tenant_t       *danger;         /* because of which it may be longer,
                                           or NULL */

    dsa_page_copy_t    *copy;           /* [ranks][pages of a context]; NULL
                                           with one rank */
    uint32_t            n_copy;
};


/* The arguments of "request %u.%u" in the log. */

#define dsa_sched_log_id(seq)                                                 \
    (uint32_t) (seq)->id, (uint32_t) ((seq)->id >> 32)


static inline uint64_t
dsa_sched_now(const dsa_sched_t *s)
{
    return s->conf.clock_us(s->conf.clock_data);
}


/* Of n tokens of a sequence, those that each rank computes. */

static inline uint32_t
dsa_sched_part(const dsa_sched_t *s, const dsa_seq_t *seq, uint32_t n)
{
    return seq->copies != NULL ? (n + s->ranks - 1) / s->ranks : n;
}


/* The entry of a sequence in the step that is being made. */

static inline uint32_t *
dsa_sched_entry(const dsa_sched_t *s, dsa_seq_t *seq)
{
    return &seq->entry[s->next - s->ring];
}


/* masks.c */

/*
 * 1 if one of n outputs of the sequence has a mask, from the one on that comes
 * skip outputs after its next one.
 */
int dsa_sched_masked(const dsa_seq_t *seq, uint32_t skip, uint32_t n);

/* The masks of the outputs of its next step.  NULL: every id is permitted. */
const uint32_t *dsa_sched_mask(dsa_sched_t *s, dsa_seq_t *seq);

/*
 * Of n drafts, those from the first on behind which the mask is ready, so that
 * the step that verifies them does not wait for it.
 */
uint32_t dsa_sched_ready(const dsa_seq_t *seq, const uint32_t *drafts,
    uint32_t n);

/* A dsa_next_mask_pt; owner is a member of dsa_sched_step_t. */
int dsa_sched_next_mask(void *owner, const uint32_t *tokens, uint32_t n,
    uint32_t *mask);


/* prefill.c */

/*
 * The prefill part of the step that is being made: shares budget tokens, or
 * fewer, between the prompts, and admits requests.  DSA_ERROR as
 * dsa_sched_step().
 */
int dsa_sched_prefills(dsa_sched_t *s, uint32_t budget, dsa_err_t *err);


/* timing.c */

/* Begins the prefill part of the step: sets what its time may be. */
void dsa_sched_pace(dsa_sched_t *s);

/*
 * Of `most` rows of a prompt after start tokens, those that a rank has time for
 * in the step.
 */
uint32_t dsa_sched_affords(const dsa_sched_t *s, uint32_t rank,
    uint32_t start, uint32_t most);

/* n tokens of a prompt after start tokens have entered the step. */
void dsa_sched_afforded(dsa_sched_t *s, const dsa_seq_t *seq, uint32_t n,
    uint32_t start);

/* Ends the prefill part of the step: counts late tokens. */
void dsa_sched_paced(dsa_sched_t *s);

/* A step has taken this long. */
void dsa_sched_measure(dsa_sched_t *s, const dsa_sched_step_t *step,
    uint64_t duration_us);


/* admission.c */

/*
 * Admits the first waiting sequence of t, if its rank is one of ranks (bit r:
 * rank r).  DSA_AGAIN when there is no such sequence, no room, or a
 * reservation of another tenant, and when it belongs on another rank: then
 * t->deferred is set.  DSA_ERROR as dsa_sched_step().
 */
int dsa_sched_admit(dsa_sched_t *s, dsa_tenant_t *t, uint32_t ranks,
    dsa_err_t *err);

/*
 * Frees pages of a rank.  A prompt of another rank that is split releases its
 * pages there, because nothing is computed again then.  If there is none, a
 * sequence of the rank is preempted: the newest one of the tenant that policy
 * chooses.  It releases all pages and waits as the first of its tenant.  to:
 * the tenant of the request that needs them, NULL: a running sequence needs a
 * page.
 */
void dsa_sched_evict(dsa_sched_t *s, uint32_t rank, const dsa_tenant_t *to);

/*
 * Preempts a running sequence: it releases its pages and waits as the first of
 * its tenant.
 */
void dsa_sched_preempt(dsa_sched_t *s, dsa_seq_t *seq);

/*
 * Preempts sequences of tenants with a large share in favor of a waiting
 * request of a tenant with a small one, as far as policy permits, and admits
 * that request or reserves the room for it.  DSA_ERROR as dsa_sched_step().
 */
int dsa_sched_reclaim(dsa_sched_t *s, dsa_err_t *err);


/* placement.c */

/*
 * 1 when a rank has a free batch index, pages for all tokens of a waiting
 * sequence, and one page more for each running sequence.
 */
int dsa_sched_fits(const dsa_sched_t *s, const dsa_seq_t *seq, uint32_t rank);

/*
 * The rank on which a waiting sequence is to run.  DSA_NO_RANK: it fits none,
 * or only one that is reserved for another tenant.
 */
uint32_t dsa_sched_place(const dsa_sched_t *s, const dsa_seq_t *seq);

/* The load of a rank in tokens, see placement.c. */
uint32_t dsa_sched_load(const dsa_sched_t *s, uint32_t rank);

/* The rank with the lowest load. */
uint32_t dsa_sched_least_loaded(const dsa_sched_t *s);

/*
 * Gives a waiting sequence that fits a rank its block table there, and on all
 * ranks when its prompt is split: pages that hold its prefix, and empty ones
 * for the rest.  At least its last token is left to compute, because the first
 * answer token is sampled after it.  s->copy lists the pages of the prefix
 * that have to be copied from other ranks.
 */
void dsa_sched_assign(dsa_sched_t *s, dsa_seq_t *seq, uint32_t rank);

/*
 * Orders the copies of dsa_sched_assign(), and enters the new pages into the
 * index.  DSA_ERROR as dsa_sched_step().
 */
int dsa_sched_copy(dsa_sched_t *s, const dsa_seq_t *seq, dsa_err_t *err);


/* finish.c */

/*
 * Waits for the oldest in-flight step and reports its tokens.  DSA_ERROR as
 * dsa_sched_step().
 */
int dsa_sched_collect(dsa_sched_t *s, dsa_err_t *err);

/*
 * Adds the prompt tokens that are computed and were not counted before to the
 * sequence's usage, and returns their number.  found: 1 when they were found in
 * the cache.
 */
uint32_t dsa_sched_count(dsa_sched_t *s, dsa_seq_t *seq, int found);

/* Takes a sequence out of all lists and steps, and releases its pages. */
void dsa_sched_stop(dsa_sched_t *s, dsa_seq_t *seq);

/* Stops a sequence, reports its usage and frees it. */
void dsa_sched_finish(dsa_sched_t *s, dsa_seq_t *seq, dsa_finish_e finish,
    uint64_t now);

/* Frees a stopped sequence, and its tenant with the last one. */
void dsa_sched_free(dsa_sched_t *s, dsa_seq_t *seq);


/* rollout.c */

/*
 * Sets the rollouts of the step that is being made, whose entries are filled.
 * DSA_ERROR: out of memory.
 */
int dsa_sched_rollouts(dsa_sched_t *s);

/*
 * Reports what entry b of a step that has ended has of a sequence, if it has a
 * rollout: n outputs with the end token.
 */
void dsa_sched_report(const dsa_sched_t *s, const dsa_seq_t *seq,
    const dsa_batch_seq_t *b, uint32_t n);


/* load.c */

/* Begins to count the pages of a waiting sequence that slower tiers have. */
void dsa_sched_probe(dsa_sched_t *s, dsa_seq_t *seq);

/* 1 while it counts: the sequence is not admitted before. */
int dsa_sched_probing(const dsa_seq_t *seq);

/* Of the pages after this prefix, those that a fetch would load. */
uint32_t dsa_sched_available(dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t prefix);

/* Begins to load n pages from seq->computed on into the block tables. */
void dsa_sched_fetch(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);

/* Gives up what the sequence has of the tiers. */
void dsa_sched_unload(dsa_sched_t *s, dsa_seq_t *seq);

/* Requests that waited too long for their probe have none afterwards. */
void dsa_sched_probes(dsa_sched_t *s);

/* Sequences whose pages are loaded are in DSA_SEQ_PREFILL afterwards. */
void dsa_sched_loads(dsa_sched_t *s);

/* As dsa_tiers_wait_saves(); DSA_AGAIN, too, without slower tiers. */
int dsa_sched_wait_saves(dsa_sched_t *s, uint32_t rank, dsa_err_t *err);

/* The first time at which a load or a probe may have to be abandoned. */
uint64_t dsa_sched_load_due(const dsa_sched_t *s);


/* ranks.c */

/*
 * A sequence with a block table starts to run: in DSA_SEQ_LOADING if it has a
 * fetch, otherwise in DSA_SEQ_PREFILL.
 */
void dsa_sched_enter(dsa_sched_t *s, dsa_seq_t *seq);

/* From DSA_SEQ_LOADING to DSA_SEQ_PREFILL. */
void dsa_sched_entered(dsa_sched_t *s, dsa_seq_t *seq);

/* A running sequence leaves its prefill list, steps, ranks and running[]. */
void dsa_sched_leave(dsa_sched_t *s, dsa_seq_t *seq);

/* Ends the split of a sequence's prompt: it is only on its own rank. */
void dsa_sched_join(dsa_sched_t *s, dsa_seq_t *seq);

/* Adds n tokens of a sequence to the step that is being made. */
void dsa_sched_schedule(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);

/*
 * n tokens of a sequence in DSA_SEQ_PREFILL have entered the step; with its
 * last ones it is in DSA_SEQ_DECODE.
 */
void dsa_sched_prefilled(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);

/* Removes the NULLs from running[]. */
void dsa_sched_compact(dsa_sched_t *s);


#endif /* _DSA_SCHED_STATE_H_INCLUDED_ */
