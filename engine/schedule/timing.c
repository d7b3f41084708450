
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <string.h>

#include "engine/schedule/state.h"


/*
 * The time of steps: how many rows of prompts a step with answers has room for
 * (pace.h), by the costs of the steps before it (cost.h).
 *
 * Whether the prompts of a tenant would have their first tokens in time is
 * decided for all of them together, those that wait for a free batch index
 * included: when the oldest one was submitted, how many rows they are, and how
 * many rows a step has that keeps the token target.  Of these rows the tenant
 * has its share by weight among the tenants with prompts, and all that those
 * leave over.  Prefixes in the cache of requests that still wait are not
 * looked up for this, so that their rows are too many rather than too few.
 */

/* The prompts of a tenant that have no first token yet. */

typedef struct {
    double              rows;
    uint32_t            n;              /* prompts */
    uint64_t            oldest_us;      /* when it was submitted */
} dsa_sched_prompts_t;


static void dsa_sched_answers(dsa_sched_t *s);
static dsa_tenant_t *dsa_sched_danger(const dsa_sched_t *s, double limit);
static double dsa_sched_prompts(const dsa_sched_t *s, const dsa_tenant_t *t,
    dsa_sched_prompts_t *p);
static double dsa_sched_rows_per_us(const dsa_sched_t *s,
    const dsa_tenant_t *t, const dsa_sched_prompts_t *p, double limit,
    double *begin);
static double dsa_sched_slowest(const dsa_sched_t *s);
static void dsa_sched_loaded(const dsa_sched_t *s,
    const dsa_sched_step_t *step, uint32_t rank, dsa_cost_load_t *load,
    dsa_cost_load_t *answers);


void
dsa_sched_pace(dsa_sched_t *s)
{
    double  base;

    s->step_us = INFINITY;
    s->token_us = INFINITY;
    s->danger = NULL;

    dsa_sched_answers(s);

    if (s->pace.token == 0 || s->next->n_decodes == 0) {
        return;
    }

    base = dsa_sched_slowest(s);
    s->token_us = dsa_pace_limit(&s->pace, base, s->cost.error);
    s->step_us = s->token_us;

    if (s->pace.first == 0) {
        return;
    }

    s->danger = dsa_sched_danger(s, s->token_us);

    if (s->danger != NULL && DSA_PACE_LONG * s->pace.token > s->step_us) {
        s->step_us = DSA_PACE_LONG * s->pace.token;
    }
}


/* The ranks' loads without prompts, of the step that is being made. */

static void
dsa_sched_answers(dsa_sched_t *s)
{
    uint32_t           i;
    const dsa_seq_t   *seq;
    dsa_sched_rank_t  *rank;

    for (i = 0; i < s->ranks; i++) {
        rank = &s->rank[i];
        rank->decode_tokens = rank->tokens;
        memset(&rank->load, 0, sizeof(dsa_cost_load_t));
        rank->load.amount[DSA_COST_DRAFTS] = rank->drafts;
    }

    for (i = 0; i < s->next->n_batch; i++) {
        seq = s->next->member[i];
        dsa_cost_answer(&s->rank[seq->rank].load, s->next->batch[i].n_input,
                        seq->n_tokens);
    }
}


/*
 * A tenant whose prompts would have their first tokens too late at the token
 * target, and because of which the step may be long; or NULL.
 */

static dsa_tenant_t *
dsa_sched_danger(const dsa_sched_t *s, double limit)
{
    double               all, weights, prompting, rows, time, share, begin;
    uint64_t             now;
    dsa_tenant_t        *t;
    dsa_sched_prompts_t  p;

    t = s->policy.first;

    if (t == NULL) {
        return NULL;
    }

    all = 0;
    weights = 0;
    prompting = 0;

    do {
        rows = dsa_sched_prompts(s, t, &p);
        all += rows;
        weights += t->weight;
        prompting += rows != 0 ? t->weight : 0;
        t = t->next;
    } while (t != s->policy.first);

    now = dsa_sched_now(s);
    begin = 0;

    do {
        rows = dsa_sched_prompts(s, t, &p);
        share = t->weight / weights;

        if (rows != 0 && dsa_pace_may_wait(&s->pace, &t->late, share,
                                           s->next->n_decodes))
        {
            rows *= prompting / t->weight;
            rows = rows < all ? rows : all;
            time = rows / dsa_sched_rows_per_us(s, t, &p, limit, &begin);

            if ((double) (now - p.oldest_us) + time > s->pace.first) {
                return t;
            }
        }

        t = t->next;
    } while (t != s->policy.first);

    return NULL;
}


/* Sets *p, and returns p->rows; 0: no prompt waits for its first token. */

static double
dsa_sched_prompts(const dsa_sched_t *s, const dsa_tenant_t *t,
    dsa_sched_prompts_t *p)
{
    uint32_t          open;
    const dsa_seq_t  *seq;

    p->rows = 0;
    p->n = 0;
    p->oldest_us = UINT64_MAX;

    for (seq = t->prefill.first; seq != NULL; seq = seq->next) {
        if (seq->sampled == 0) {
            p->rows += seq->pending;
            p->n++;
            p->oldest_us = seq->submit_us < p->oldest_us ? seq->submit_us
                                                         : p->oldest_us;
        }
    }

    open = s->indices - s->n_live;

    if (t->n_waiting == 0 || open == 0) {
        return p->rows;
    }

    /* preempted ones, which come first, have sent their first tokens */

    for (seq = t->waiting.first; seq != NULL && seq->sampled != 0;
         seq = seq->next)
    {
        /* void */
    }

    if (seq != NULL) {
        open = open < t->n_waiting ? open : t->n_waiting;
        p->rows += (double) t->waiting_tokens * open / t->n_waiting;
        p->n += open;
        p->oldest_us = seq->submit_us < p->oldest_us ? seq->submit_us
                                                     : p->oldest_us;
    }

    return p->rows;
}


/*
 * The rows of prompts in the time of a step of limit us.  A prompt is computed
 * on one rank, so that few prompts do not use all ranks; one that is split is
 * computed on all of them.  The caller keeps *begin between the calls for a
 * step.  It is the rows of a prompt that begins, which are the same for all
 * tenants, so that the cost table is searched once and not for each of them.
 */

static double
dsa_sched_rows_per_us(const dsa_sched_t *s, const dsa_tenant_t *t,
    const dsa_sched_prompts_t *p, double limit, double *begin)
{
    double    rows;
    uint32_t  i, n, start;

    start = t->prefill.first != NULL ? t->prefill.first->scheduled : 0;
    rows = start == 0 ? *begin : 0;

    for (i = 0; i < s->ranks && (start != 0 || *begin == 0); i++) {
        n = dsa_cost_rows(&s->cost, &s->rank[i].load, start,
                          s->conf.token_budget, limit);
        rows += n > DSA_PACE_LEAST ? n : DSA_PACE_LEAST;
    }

    *begin = start == 0 ? rows : *begin;

    if (p->n < s->ranks && s->n_split == 0) {
        rows = rows * p->n / s->ranks;
    }

    return rows / limit;
}


/* The expected time of the step that is being made, as far as it is made. */

static double
dsa_sched_slowest(const dsa_sched_t *s)
{
    double    us, slowest;
    uint32_t  i;

    slowest = 0;

    for (i = 0; i < s->ranks; i++) {
        us = dsa_cost_step(&s->cost, &s->rank[i].load);
        slowest = us > slowest ? us : slowest;
    }

    return slowest;
}


uint32_t
dsa_sched_affords(const dsa_sched_t *s, uint32_t rank, uint32_t start,
    uint32_t most)
{
    uint32_t                 n, given, least;
    const dsa_sched_rank_t  *r;

    if (isinf(s->step_us)) {
        return most;
    }

    r = &s->rank[rank];
    given = r->tokens - r->decode_tokens;
    least = given < DSA_PACE_LEAST ? DSA_PACE_LEAST - given : 0;
    least = least < most ? least : most;

    n = dsa_cost_rows(&s->cost, &r->load, start, most, s->step_us);

    return n > least ? n : least;
}


void
dsa_sched_afforded(dsa_sched_t *s, const dsa_seq_t *seq, uint32_t n,
    uint32_t start)
{
    uint32_t  i;

    n = dsa_sched_part(s, seq, n);

    for (i = 0; i < s->ranks; i++) {
        if (dsa_seq_is_on(seq, i)) {
            dsa_cost_prompt(&s->rank[i].load, n, start);
        }
    }
}


void
dsa_sched_paced(dsa_sched_t *s)
{
    double               weights;
    dsa_tenant_t        *t;

    if (s->pace.token == 0 || s->next->n_decodes == 0) {
        return;
    }

    dsa_pace_answers(&s->pace, s->next->n_decodes);

    if (s->danger == NULL || dsa_sched_slowest(s) <= s->token_us) {
        return;
    }

    weights = 0;
    t = s->policy.first;

    do {
        weights += t->weight;
        t = t->next;
    } while (t != s->policy.first);

    dsa_pace_waits(&s->pace, &s->danger->late, s->danger->weight / weights,
                   s->next->n_decodes);
}


/*
 * Prompts are in the time of a step, and how many tokens they had varies, so
 * that only steps without prompts show what drafts cost.
 */

void
dsa_sched_measure(dsa_sched_t *s, const dsa_sched_step_t *step,
    uint64_t duration_us)
{
    double           us, most, without;
    uint32_t         i, made, verified;
    dsa_cost_load_t  load, answers, slowest;

    most = -1;
    without = 0;
    memset(&slowest, 0, sizeof(slowest));

    for (i = 0; i < s->ranks; i++) {
        dsa_sched_loaded(s, step, i, &load, &answers);
        s->rank[i].drafts = load.amount[DSA_COST_DRAFTS];

        us = dsa_cost_step(&s->cost, &load);

        if (us > most || (us == most && load.rows > slowest.rows)) {
            most = us;
            slowest = load;
        }

        us = dsa_cost_step(&s->cost, &answers);
        without = us > without ? us : without;
    }

    dsa_cost_measure(&s->cost, &slowest, (double) duration_us);

    if (step->n_prefill != 0) {
        dsa_cost_token(&s->cost, (double) duration_us, without,
                       step->n_prefill);
        return;
    }

    made = 0;
    verified = 0;

    for (i = 0; i < step->n_batch; i++) {
        verified += step->batch[i].n_draft;

        if (step->batch[i].next != NULL) {
            made += *step->batch[i].n_next;
        }
    }

    dsa_spec_measure(&s->drafts, duration_us, step->n_decodes, verified, made);
}


/* What a rank computed in a step, and the answers of it. */

static void
dsa_sched_loaded(const dsa_sched_t *s, const dsa_sched_step_t *step,
    uint32_t rank, dsa_cost_load_t *load, dsa_cost_load_t *answers)
{
    uint32_t                i, rows;
    const dsa_batch_seq_t  *b;

    memset(load, 0, sizeof(dsa_cost_load_t));
    memset(answers, 0, sizeof(dsa_cost_load_t));

    for (i = 0; i < step->n_batch; i++) {
        b = &step->batch[i];

        if (b->rank != rank && b->copies == NULL) {
            continue;
        }

        if (b->next != NULL) {
            dsa_cost_drafts(load, *b->n_next);
        }

        if (b->sampling != NULL && b->n_input == b->n_draft + 1) {
            dsa_cost_answer(load, b->n_input, b->start);
            dsa_cost_answer(answers, b->n_input, b->start);
            continue;
        }

        rows = b->copies != NULL ? (b->n_input + s->ranks - 1) / s->ranks
                                 : b->n_input;
        dsa_cost_prompt(load, rows, b->start);
    }

    answers->amount[DSA_COST_DRAFTS] = load->amount[DSA_COST_DRAFTS];
}
