
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SCHEDULER_PARTS_H_INCLUDED_
#define _DSA_SCHEDULER_PARTS_H_INCLUDED_


#include "engine/schedule/scheduler.h"


/*
 * What scheduler.c (steps), tenants.c (who is next) and sequence.c (tokens,
 * block table, lists) share among themselves.
 */

#define DSA_TENANT_BUCKETS  4096        /* power of two */
#define DSA_NO_ENTRY        DSA_FOLLOWS_NONE
#define DSA_SCHED_DEPTH     2           /* steps under way, at most */


typedef struct dsa_tenant_s  dsa_tenant_t;


typedef struct {
    dsa_seq_t          *first;
    dsa_seq_t          *last;
} dsa_seq_list_t;


/* A step; a sequence that ends or is preempted leaves its entries behind. */

typedef struct {
    dsa_batch_seq_t    *batch;          /* [max_running] */
    dsa_sample_t       *sample;
    dsa_seq_t         **member;         /* sequence of an entry, or NULL */
    uint32_t            n_batch;
} dsa_sched_step_t;


typedef enum {
    DSA_SEQ_WAITING = 0,                /* in its tenant's waiting list */
    DSA_SEQ_PREFILL,                    /* in prefill list and running[] */
    DSA_SEQ_DECODE                      /* in running[]; lacks one row, or
                                           gets its last ones in this step */
} dsa_seq_state_e;


struct dsa_seq_s {
    dsa_seq_state_e     state;
    dsa_tenant_t       *tenant;
    dsa_seq_t          *prev;           /* within the tenant's list */
    dsa_seq_t          *next;

    uint32_t           *tokens;
    uint32_t            n_tokens;
    uint32_t            size;           /* of tokens[] */
    uint32_t            prompt;
    uint32_t            max_tokens;
    uint32_t            completion;     /* sampled, the end token counts */
    uint32_t            computed;       /* rows in the cache */
    uint32_t            issued;         /* rows of steps that were started,
                                           those computed included */
    uint32_t            promised;       /* tokens that such a step samples and
                                           that tokens[] does not have: 0, 1 */
    uint32_t            counted;        /* of the prompt, the most rows that
                                           were in the cache so far */
    uint32_t            cached;         /* of them, found there */
    uint32_t            ignore_eos;
    uint32_t            started;

    uint32_t            index;          /* in running[] */
    uint32_t            entry[DSA_SCHED_DEPTH];     /* in the steps of ring[],
                                                       or DSA_NO_ENTRY */

    uint32_t           *pages;          /* block table */
    dsa_digest_t       *digest;         /* [n_digests] of full pages */
    uint32_t            n_pages;
    uint32_t            n_digests;
    uint32_t            published;      /* full pages that are known */
    uint32_t            pages_size;     /* of pages[] and digest[] */

    dsa_sampling_t      sampling;
    void               *owner;
    uint8_t             salt[32];       /* of its digests: the tenant's id, or
                                           random bytes when it is private */

    uint64_t            submit_time;
    uint64_t            start_time;
    uint64_t            first_time;
    uint64_t            last_time;
};


struct dsa_tenant_s {
    dsa_tenant_t       *prev;           /* ring of all tenants */
    dsa_tenant_t       *next;
    dsa_tenant_t       *chain;          /* bucket */
    dsa_seq_list_t      waiting;
    dsa_seq_list_t      prefill;
    double              served;         /* rows, by weight */
    uint32_t            weight;
    uint32_t            seqs;
    uint32_t            n_waiting;
    uint32_t            running;
    uint32_t            pages;          /* in its block tables */
    uint32_t            passed_by;      /* steps */
    uint32_t            blocked;        /* in this step, for want of pages */
    uint8_t             id[32];
};


struct dsa_sched_s {
    dsa_backend_t      *backend;
    dsa_pages_t        *pages;
    dsa_sched_conf_t    conf;
    dsa_sched_handler_t handler;
    dsa_sched_stats_t   stats;

    dsa_seq_t         **running;        /* by admission; holes are NULL */
    uint32_t            n_running;      /* entries, with holes */
    uint32_t            n_live;         /* without */
    uint32_t            n_waiting;

    dsa_tenant_t       *turn;           /* in the ring; NULL: it is empty */
    dsa_tenant_t       *claim;          /* nobody else is admitted before */
    dsa_tenant_t      **line;           /* [n_line] with work, as a heap */
    uint32_t            n_line;
    uint32_t            line_size;
    uint32_t            n_tenants;
    double              clock;          /* served, of who had the last turn */
    dsa_tenant_t       *bucket[DSA_TENANT_BUCKETS];

    dsa_sched_step_t    ring[DSA_SCHED_DEPTH];
    dsa_sched_step_t   *now;            /* the step that is being made */
    uint32_t            first;          /* in ring[], the oldest started */
    uint32_t            started;        /* steps not yet waited for */
};


static inline uint32_t
dsa_pages_of(uint32_t tokens)
{
    return (tokens + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
}


/* The entry of a sequence in the step that is being made. */

static inline uint32_t *
dsa_seq_entry(const dsa_sched_t *s, dsa_seq_t *seq)
{
    return &seq->entry[s->now - s->ring];
}


/* scheduler.c */

/*
 * A place and all pages of its tokens are there, and a page more for every
 * one that runs already, so that admission does not end in preemption.
 */
int dsa_sched_fits(dsa_sched_t *s, dsa_seq_t *seq);

/*
 * The first waiting sequence of t begins: pages that hold its prefix, then
 * empty ones.  Its last token at least is left to compute, since there has to
 * be a row to sample from.  DSA_AGAIN when there is none, or no room.
 */
int dsa_sched_admit(dsa_sched_t *s, dsa_tenant_t *t);

/* A running sequence gives up its pages and is the next of its tenant. */
void dsa_sched_preempt(dsa_sched_t *s, dsa_seq_t *seq);


/* tenants.c */

/* The tenant of this id, NULL when it is not there. */
dsa_tenant_t *dsa_sched_find(const dsa_sched_t *s, const uint8_t id[32]);

/* The same, but it is made then; NULL: out of memory. */
dsa_tenant_t *dsa_sched_tenant(dsa_sched_t *s, const uint8_t id[32],
    uint32_t weight);

/*
 * The tenant with the most waiting requests by weight, if these are more than
 * `least` and one of them was never started; otherwise NULL.  O(tenants).
 */
dsa_tenant_t *dsa_sched_crowd(const dsa_sched_t *s, double least);

/* A tenant has one sequence less, and is forgotten without any. */
void dsa_sched_leave(dsa_sched_t *s, dsa_tenant_t *t);

/*
 * A tenant that waits although it holds little takes from one that holds
 * much.
 */
void dsa_sched_reclaim(dsa_sched_t *s);

/* Those who have work for this step, by what they were served. */
void dsa_sched_line_up(dsa_sched_t *s);

/*
 * Who of them was served least by weight and can go on: with a prompt that is
 * begun, or admitted here.  NULL when no work can go on in this step.
 */
dsa_tenant_t *dsa_sched_turn(dsa_sched_t *s);

/* Who had the turn was given rows. */
void dsa_sched_charge(dsa_sched_t *s, dsa_tenant_t *t, uint32_t rows);

/* After the prompts of a step: who was passed by, who owes what. */
void dsa_sched_settle(dsa_sched_t *s, int admitted);

/* Of the tenants with anything running; NULL when nothing runs. */
dsa_tenant_t *dsa_sched_heaviest(const dsa_sched_t *s);

/* The last admitted of a tenant's running sequences. */
dsa_seq_t *dsa_sched_newest(const dsa_sched_t *s, const dsa_tenant_t *t);


/* sequence.c */

/* Room for that many pages and digests. */
int dsa_seq_reserve(dsa_seq_t *seq, uint32_t pages);

/* Digests of the first n pages, all full; kept through preemption. */
int dsa_seq_digests(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);
void dsa_seq_free(dsa_seq_t *seq);

void dsa_seq_push(dsa_seq_list_t *list, dsa_seq_t *seq);
void dsa_seq_push_front(dsa_seq_list_t *list, dsa_seq_t *seq);
void dsa_seq_remove(dsa_seq_list_t *list, dsa_seq_t *seq);


#endif /* _DSA_SCHEDULER_PARTS_H_INCLUDED_ */
