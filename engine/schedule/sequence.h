
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_SEQUENCE_H_INCLUDED_
#define _DSA_SEQUENCE_H_INCLUDED_


#include "engine/backend.h"
#include "engine/pages/pages.h"
#include "engine/schedule/drafts.h"
#include "engine/schedule/policy.h"
#include "engine/schedule/request.h"
#include "engine/schedule/tiers.h"


/*
 * A sequence: tokens, their block table and the digests of their full pages.
 *
 *     tokens     0 ............................................ n_tokens
 *     computed   ........................|                 in the cache
 *     scheduled  ...............................|          in started steps
 *
 * While steps are in flight, the scheduler may run one token ahead of tokens:
 *
 *     computed <= scheduled <= n_tokens + scheduled_samples
 *
 * Drafts are the last n_draft of tokens from the time that a step with them
 * is made until their samples are known; dsa_seq_rollback() then removes the
 * rejected ones.  A step that is made before its drafts are known has up to
 * n_ahead of them; they are appended to tokens when the step before has ended,
 * and until then scheduled counts only the token before them.  Pages are
 * published from computed tokens only, and computed never includes a draft, so
 * that no published page holds a rejected draft.
 */

#define DSA_NO_BATCH_ENTRY  DSA_INPUT_KNOWN
#define DSA_SCHED_DEPTH     2           /* most steps in flight */


typedef enum {
    DSA_SEQ_WAITING = 0,                /* in its tenant's waiting list */
    DSA_SEQ_LOADING,                    /* in its tenant's loading list, and
                                           running: pages of its prefix are
                                           fetched from a slower tier */
    DSA_SEQ_PREFILL,                    /* in its tenant's prefill list, and
                                           running */
    DSA_SEQ_DECODE                      /* running: lacks one token, or gets
                                           the last ones in this step */
} dsa_seq_state_e;


struct dsa_seq_s {
    dsa_seq_state_e     state;
    dsa_tenant_t       *tenant;
    dsa_seq_t          *prev;           /* in the tenant's list */
    dsa_seq_t          *next;
    uint64_t            id;

    uint32_t           *tokens;
    uint32_t            n_tokens;
    uint32_t            tokens_size;    /* of tokens[] */
    uint32_t            n_draft;
    uint32_t            n_ahead;
    uint32_t            n_prompt;
    uint32_t            max_tokens;
    uint32_t            completion;     /* answer tokens, with resumed ones
                                           and the end token */
    uint32_t            sampled;        /* of them, sampled here */
    uint32_t            computed;
    uint32_t            scheduled;
    uint32_t            scheduled_samples;  /* 0 or 1: a started step samples
                                               a token that tokens[] does not
                                               have */
    uint32_t            pending;        /* in DSA_SEQ_PREFILL, tokens that no
                                           step has yet, nor the one that is
                                           being made; otherwise 0 */
    uint32_t            counted;        /* prompt tokens that were computed or
                                           found so far, each once */
    uint32_t            cached;         /* of them, found */
    uint32_t            found[DSA_TIERS];       /* of these, by tier; those of
                                                   DSA_TIER_GPU are not counted
                                                   here */
    uint32_t            ignore_eos;
    uint32_t            started;        /* 1: was admitted before */

    uint32_t            index;          /* in running[] */
    uint32_t            entry[DSA_SCHED_DEPTH];     /* in each step, or
                                                       DSA_NO_BATCH_ENTRY */

    uint32_t            rank;           /* of its pages, while it runs */
    uint32_t           *pages;          /* block table */
    uint32_t          **copies;         /* NULL, or block tables of all ranks:
                                           see dsa_seq_split() */
    dsa_digest_t       *digest;         /* [n_digests] of full pages */
    uint32_t            n_pages;
    uint32_t            n_copied;       /* pages in the block table of each
                                           other rank */
    uint32_t            n_digests;
    uint32_t            published;      /* full pages in the index */
    uint32_t            pages_size;     /* of pages[] and digest[] */

    dsa_probe_t        *probe;          /* of its prefix in slower tiers,
                                           or NULL */
    uint32_t            probe_first;    /* page with which the probe begins */
    dsa_fetch_t        *fetch;          /* in DSA_SEQ_LOADING: the pages from
                                           computed on */
    uint32_t            fetch_pages;    /* that were to be fetched */
    uint64_t            fetch_after;    /* steps that had to end before its
                                           first one could begin */

    dsa_sampling_t      sampling;
    dsa_biases_t        biases;
    dsa_sched_draft_pt  draft;
    uint32_t            proposed[DSA_MAX_OUTPUTS - 1];  /* the drafts of the
                                           backend after the last token */
    uint32_t            n_proposed;
    dsa_spec_rates_t    rates;
    uint32_t            drafted;        /* drafts that were verified */
    uint32_t            accepted;       /* of them, tokens of the answer */
    dsa_sched_mask_pt   mask;
    uint32_t            mask_at;        /* as in dsa_sched_request_t */
    dsa_sched_ready_pt  ready;
    uint32_t            needs_last;     /* 1: each step needs the last sample,
                                           because masks and the request's own
                                           drafts are functions of it */
    uint32_t           *masks;          /* with mask: [max_outputs]
                                           [mask_words] */
    uint32_t            mask_words;
    dsa_sched_rollout_pt  rollout;
    uint32_t            reports;
    void               *owner;
    uint32_t            private;        /* 1: its pages are of no use to
                                           others */
    uint8_t             salt[32];       /* of its digests: the tenant's id, or
                                           random for a private request */

    uint64_t            submit_us;
    uint64_t            start_us;       /* first admission */
    uint64_t            first_us;       /* first token sampled here */
    uint64_t            last_us;        /* and the last one so far */
};


/* Pages that hold so many tokens. */

static inline uint32_t
dsa_pages_of(uint32_t tokens)
{
    return (tokens + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
}


/* Its cached tokens that were loaded from other tiers than the GPU. */

static inline uint32_t
dsa_seq_loaded(const dsa_seq_t *seq)
{
    uint32_t  i, n;

    n = 0;

    for (i = DSA_TIER_HOST; i < DSA_TIERS; i++) {
        n += seq->found[i];
    }

    return n;
}


/* 1 if a running sequence has pages on a rank. */

static inline int
dsa_seq_is_on(const dsa_seq_t *seq, uint32_t rank)
{
    return seq->rank == rank || seq->copies != NULL;
}


/* Its block table of a rank that it is on. */

static inline uint32_t *
dsa_seq_table(const dsa_seq_t *seq, uint32_t rank)
{
    return seq->copies != NULL ? seq->copies[rank] : seq->pages;
}


/* Frees everything but pages, which must be released before. */
void dsa_seq_free(dsa_seq_t *seq);

/* Appends a token.  DSA_ERROR: out of memory. */
int dsa_seq_push(dsa_seq_t *seq, uint32_t token);

/* Makes room in the block table.  DSA_ERROR: out of memory. */
int dsa_seq_reserve(dsa_seq_t *seq, uint32_t pages);

/*
 * Adds a page to the block table, which has room, and counts it for the
 * tenant.  The caller's use of the page becomes the sequence's.
 */
void dsa_seq_add_page(dsa_seq_t *seq, uint32_t page);

/*
 * Prepares a sequence whose prompt is split over the ranks: copies becomes
 * [ranks] block tables, of which copies[rank] is pages and each other one has
 * room for all pages of the prompt.  The tables are still empty.  DSA_ERROR:
 * out of memory, and the sequence is as before.
 */
int dsa_seq_split(dsa_seq_t *seq, uint32_t ranks);

/*
 * Ends the split: releases the pages of all ranks but its own.  In-flight
 * steps that use these pages are not affected, because steps that use them for
 * something else run later.
 */
void dsa_seq_join(dsa_seq_t *seq, dsa_pages_t *pages, uint32_t ranks);

/*
 * Releases pages from the end of the block table until n are left.  The last
 * page is released first and thus allocated last: the beginning of a sequence
 * is the more likely prefix of another one, and without its beginning the
 * rest cannot be found.
 */
void dsa_seq_release(dsa_seq_t *seq, dsa_pages_t *pages, uint32_t n);

/*
 * Removes all tokens from position n on: drafts that were rejected or not
 * verified.  Counts of computed and scheduled tokens are reduced to n, and
 * pages that hold only removed tokens are released, except the first n_pages,
 * which a step in flight writes to.  Published pages must not hold a removed
 * token.
 */
void dsa_seq_rollback(dsa_seq_t *seq, dsa_pages_t *pages, uint32_t n,
    uint32_t n_pages);

/*
 * Computes the digests of the first n pages, which must be full; they are kept
 * through preemption.  DSA_ERROR: a digest cannot be computed.
 */
int dsa_seq_digests(dsa_seq_t *seq, dsa_digester_t *d,
    const char *fingerprint, uint32_t n);

void dsa_seq_push_last(dsa_seq_list_t *list, dsa_seq_t *seq);
void dsa_seq_push_first(dsa_seq_list_t *list, dsa_seq_t *seq);
void dsa_seq_remove(dsa_seq_list_t *list, dsa_seq_t *seq);


#endif /* _DSA_SEQUENCE_H_INCLUDED_ */
