
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "engine/schedule/state.h"


/*
 * The prefill part of a step.  Policy chooses the tenant of each quantum of
 * tokens.  Of the tenant's prompts, the next tokens are of the oldest one
 * whose rank has the fewest tokens in this step, because a step takes as long
 * as its fullest rank.  With one rank, prompts are computed one after the
 * other.
 *
 * Example with two ranks, a budget of 2048 tokens, and the prompts A (rank 0,
 * 5000 tokens), B (rank 0, 100) and C (rank 1, 600) of one tenant: the quanta
 * are A, C, A, C, A, C, A, A, A, and C is complete with 600 tokens; B follows
 * A in a later step.
 *
 * A request is admitted when its tenant has no prompt to compute, and also
 * when the rank on which it is to run has none: otherwise the other prompts of
 * a tenant would wait for its first one while GPUs are idle.
 */


_Static_assert(DSA_SCHED_QUANTUM == DSA_POLICY_ROUND,
               "a quantum of tokens is a round of policy");


static int dsa_sched_prompt(dsa_sched_t *s, dsa_tenant_t *t,
    dsa_seq_t **prompt, dsa_err_t *err);
static dsa_seq_t *dsa_sched_pick(const dsa_sched_t *s, const dsa_tenant_t *t);
static uint32_t dsa_sched_open(const dsa_sched_t *s, const dsa_tenant_t *t);
static int dsa_sched_shares_next(const dsa_seq_list_t *list,
    const dsa_seq_t *seq);
static uint32_t dsa_sched_rank_room(const dsa_sched_t *s, uint32_t rank,
    uint32_t start);
static uint32_t dsa_sched_prompt_start(const dsa_sched_t *s, dsa_seq_t *seq);
static uint32_t dsa_sched_prompt_room(const dsa_sched_t *s, dsa_seq_t *seq);


int
dsa_sched_prefills(dsa_sched_t *s, uint32_t budget, dsa_err_t *err)
{
    uint32_t           i, n, start, admitted;
    dsa_seq_t         *seq;
    dsa_tenant_t      *t;
    dsa_sched_rank_t  *rank;

    admitted = s->n_live;

    if (s->n_waiting != 0 && dsa_sched_reclaim(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->next->n_decodes = s->next->n_batch;
    dsa_sched_pace(s);
    dsa_policy_enqueue(&s->policy);

    while (budget != 0) {
        t = dsa_policy_next(&s->policy);

        if (t == NULL) {
            break;
        }

        if (dsa_sched_prompt(s, t, &seq, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (seq == NULL) {
            dsa_policy_skip(&s->policy, t);
            continue;
        }

        n = dsa_sched_prompt_room(s, seq);
        n = n < seq->pending ? n : seq->pending;
        n = n < budget ? n : budget;
        n = n < DSA_SCHED_QUANTUM ? n : DSA_SCHED_QUANTUM;

        start = dsa_sched_prompt_start(s, seq);

        dsa_sched_schedule(s, seq, n);
        dsa_sched_afforded(s, seq, n, start);
        dsa_sched_prefilled(s, seq, n);
        dsa_policy_charge(&s->policy, t, n);
        budget -= n;
    }

    for (i = 0; i < s->ranks; i++) {
        rank = &s->rank[i];
        n = rank->tokens - rank->decode_tokens;

        if (n > s->next->n_prefill) {
            s->next->n_prefill = n;
        }
    }

    dsa_sched_paced(s);

    t = dsa_policy_end(&s->policy, s->n_live > admitted);

    if (t != NULL) {
        dsa_policy_reserve(&s->policy, t, dsa_sched_least_loaded(s));
    }

    return DSA_OK;
}


/*
 * Sets *prompt to the prompt of t that gets the next tokens, after the
 * admission of requests for it; NULL: there is none in this step.
 */

static int
dsa_sched_prompt(dsa_sched_t *s, dsa_tenant_t *t, dsa_seq_t **prompt,
    dsa_err_t *err)
{
    int       rc;
    uint32_t  ranks;

    for ( ;; ) {
        ranks = dsa_sched_open(s, t);

        if (ranks == 0) {
            break;
        }

        rc = dsa_sched_admit(s, t, ranks, err);

        if (rc == DSA_ERROR) {
            return DSA_ERROR;
        }

        if (rc == DSA_AGAIN) {
            if (t->deferred != s->made) {
                dsa_policy_block(t);
            }

            break;
        }
    }

    *prompt = dsa_sched_pick(s, t);

    return DSA_OK;
}


/*
 * The ranks to which the first waiting request of t may be admitted now (bit
 * r: rank r).
 */

static uint32_t
dsa_sched_open(const dsa_sched_t *s, const dsa_tenant_t *t)
{
    uint32_t                 i, all, idle, room;
    const dsa_sched_rank_t  *rank;

    if (t->waiting.first == NULL || dsa_policy_blocked(t)
        || dsa_sched_probing(t->waiting.first))
    {
        return 0;
    }

    all = 0;
    idle = 0;
    room = 0;

    for (i = 0; i < s->ranks; i++) {
        rank = &s->rank[i];

        if (dsa_sched_rank_room(s, i, 0) != 0) {
            room |= 1U << i;
        }

        if (rank->n_live < s->conf.max_running) {
            all |= 1U << i;
            idle |= (uint32_t) (rank->pending == 0) << i;
        }
    }

    if (dsa_sched_shares_next(&t->loading, t->waiting.first)) {
        return 0;
    }

    if (t->prefill.first == NULL) {
        return room != 0 ? all : 0;
    }

    if ((idle & room) == 0 || t->deferred == s->made
        || dsa_sched_shares_next(&t->prefill, t->waiting.first))
    {
        return 0;
    }

    return idle & room;
}


/*
 * 1 when a sequence of a list computes or fetches a page that a waiting one
 * needs, too.  The waiting one is admitted later and finds this page.
 */

static int
dsa_sched_shares_next(const dsa_seq_list_t *list, const dsa_seq_t *seq)
{
    uint32_t          next;
    const dsa_seq_t  *prompt;

    for (prompt = list->first; prompt != NULL; prompt = prompt->next) {
        next = prompt->computed / DSA_PAGE_TOKENS;

        /* equal digests have equal pages before them */

        if (next < prompt->n_digests && next < seq->n_digests
            && memcmp(&prompt->digest[next], &seq->digest[next],
                      sizeof(dsa_digest_t))
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* The oldest prompt of t on the rank with the fewest tokens, or NULL. */

static dsa_seq_t *
dsa_sched_pick(const dsa_sched_t *s, const dsa_tenant_t *t)
{
    uint32_t    i, tokens, least, most;
    dsa_seq_t  *seq, *best;

    least = s->rank[0].tokens;

    for (i = 1; i < s->ranks; i++) {
        least = s->rank[i].tokens < least ? s->rank[i].tokens : least;
    }

    best = NULL;
    most = UINT32_MAX;

    for (seq = t->prefill.first; seq != NULL; seq = seq->next) {
        tokens = s->rank[seq->rank].tokens;

        if (tokens < most && dsa_sched_prompt_room(s, seq) != 0) {
            best = seq;
            most = tokens;
        }

        if (most == least) {
            break;
        }
    }

    return best;
}


/* Prompt tokens after start that a rank can still have in the step. */

static uint32_t
dsa_sched_rank_room(const dsa_sched_t *s, uint32_t rank, uint32_t start)
{
    uint32_t  most;

    most = s->backend->rank_tokens - s->rank[rank].tokens;
    most = most < s->conf.token_budget ? most : s->conf.token_budget;

    return dsa_sched_affords(s, rank, start, most);
}


/* The tokens of a prompt that are computed or have entered the step. */

static uint32_t
dsa_sched_prompt_start(const dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  entry;

    entry = *dsa_sched_entry(s, seq);

    return seq->scheduled
           + (entry != DSA_NO_BATCH_ENTRY ? s->next->batch[entry].n_input : 0);
}


/* Tokens that a prompt can still have in the step. */

static uint32_t
dsa_sched_prompt_room(const dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  i, n, room, start;
    uint64_t  most;

    start = dsa_sched_prompt_start(s, seq);

    if (seq->copies == NULL) {
        return dsa_sched_rank_room(s, seq->rank, start);
    }

    room = UINT32_MAX;

    for (i = 0; i < s->ranks; i++) {
        n = dsa_sched_rank_room(s, i, start);
        room = n < room ? n : room;
    }

    /* a part of the tokens that it has already may be rounded up */

    n = start - seq->scheduled;
    most = ((uint64_t) dsa_sched_part(s, seq, n) + room) * s->ranks - n;

    return most < UINT32_MAX ? (uint32_t) most : UINT32_MAX;
}
