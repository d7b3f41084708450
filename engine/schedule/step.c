
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "engine/schedule/state.h"


static int dsa_sched_idle(dsa_sched_t *s, dsa_err_t *err);
static int dsa_sched_ahead(const dsa_sched_t *s);
static int dsa_sched_start(dsa_sched_t *s, dsa_err_t *err);
static int dsa_sched_decodes(dsa_sched_t *s, uint32_t before,
    uint32_t *budget, dsa_err_t *err);
static uint32_t dsa_sched_draft_room(const dsa_sched_t *s,
    const dsa_seq_t *seq, uint32_t budget, const uint32_t *left);
static int dsa_sched_grow(dsa_sched_t *s, dsa_seq_t *seq, dsa_err_t *err);
static uint32_t dsa_sched_draft(dsa_sched_t *s, dsa_seq_t *seq,
    uint32_t budget);
static uint32_t dsa_sched_draft_ahead(dsa_sched_t *s, dsa_seq_t *seq,
    uint32_t before, uint32_t budget);
static void dsa_sched_propose(dsa_sched_t *s);
static void dsa_sched_batch(dsa_sched_t *s, uint32_t i, uint32_t before);
static void dsa_sched_next_page(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);


/*
 * When the backend has a depth of 2, a step is made and started while the step
 * before it is in flight, and that one is waited for afterwards.  Its samples
 * and drafts are not known yet: the new step takes them as inputs from the
 * in-flight step, as if no sequence ended with them.  What the new step
 * computes for a sequence that did end is not used.
 */

int
dsa_sched_step(dsa_sched_t *s, dsa_err_t *err)
{
    if (s->in_flight != 0 && !dsa_sched_ahead(s)
        && dsa_sched_collect(s, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_sched_poll(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (dsa_sched_start(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    while (s->in_flight >= s->backend->depth
           || (s->in_flight != 0 && s->next->n_batch == 0))
    {
        if (dsa_sched_collect(s, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (s->in_flight == 0 && s->next->n_batch == 0) {
        return dsa_sched_idle(s, err);
    }

    if (s->tiers == NULL) {
        return DSA_OK;
    }

    /* pages that are free now are saved before the next step allocates them */

    return dsa_sched_poll(s, err);
}


/*
 * There was nothing to compute.  If a page moves, it may be what a sequence
 * waits for; otherwise only a slower tier, a mask that becomes ready, or
 * another request can change anything.
 */

static int
dsa_sched_idle(dsa_sched_t *s, dsa_err_t *err)
{
    if (s->tiers == NULL) {
        s->stuck = s->n_unready != 0;
        return DSA_OK;
    }

    if (dsa_tiers_moving(s->tiers) != 0) {
        if (dsa_tiers_poll(s->tiers, 1, err) != DSA_OK) {
            return DSA_ERROR;
        }

        dsa_sched_loads(s);

        return DSA_OK;
    }

    /* a fetch that this step began may have ended at once, without a page */

    dsa_sched_loads(s);

    s->stuck = s->n_loading + s->n_unready == s->n_live
               && (s->n_live != 0 || dsa_tiers_probing(s->tiers) != 0);

    return DSA_OK;
}


/*
 * 1 when a step may be made before the samples of the in-flight step are
 * known.  One sequence that needs its last token makes all of them wait: the
 * outputs of the step, of which the first is behind those in flight, and the
 * drafts behind it must not have masks.
 */

static int
dsa_sched_ahead(const dsa_sched_t *s)
{
    uint32_t          i;
    const dsa_seq_t  *seq;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL
            && (seq->needs_last
                || dsa_sched_masked(seq, 0, 1 + seq->n_draft
                                            + 2 * s->backend->drafts)))
        {
            return 0;
        }
    }

    return 1;
}


static int
dsa_sched_start(dsa_sched_t *s, dsa_err_t *err)
{
    uint32_t           i, n, budget, before;
    dsa_seq_t         *seq;
    dsa_sched_step_t  *step;

    assert(s->in_flight < DSA_SCHED_DEPTH);

    /*
     * The step before this one in the ring.  When no step is in flight it is
     * an old one, but then no sequence has a scheduled sample.
     */

    before = (s->first + s->in_flight + DSA_SCHED_DEPTH - 1) % DSA_SCHED_DEPTH;
    step = &s->ring[(s->first + s->in_flight) % DSA_SCHED_DEPTH];
    step->n_batch = 0;
    step->n_decodes = 0;
    step->n_prefill = 0;
    s->next = step;
    s->made++;
    budget = s->conf.token_budget;

    for (i = 0; i < s->ranks; i++) {
        s->rank[i].tokens = 0;
    }

    if (dsa_sched_decodes(s, before, &budget, err) != DSA_OK
        || dsa_sched_prefills(s, budget, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (step->n_batch == 0) {
        return DSA_OK;
    }

    n = 0;

    for (i = 0; i < step->n_batch; i++) {
        dsa_sched_batch(s, i, before);
        n += step->batch[i].n_input;
    }

    assert(n <= s->conf.token_budget && step->n_batch <= s->indices);

    for (i = 0; i < s->ranks; i++) {
        assert(s->rank[i].tokens <= s->backend->rank_tokens
               && s->rank[i].n_live <= s->conf.max_running);
    }

    dsa_sched_propose(s);

    if (dsa_sched_rollouts(s) != DSA_OK) {
        return dsa_error(err, "out of memory");
    }

    step->begin_us = dsa_sched_now(s);

    if (s->backend->start(s->backend, step->batch, step->n_batch, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < step->n_batch; i++) {
        seq = step->member[i];

        seq->scheduled += step->batch[i].n_input - seq->n_ahead;
        seq->scheduled_samples = step->batch[i].sampling != NULL;

        assert(seq->computed <= seq->scheduled
               && seq->scheduled <= seq->n_tokens + seq->scheduled_samples);
    }

    s->in_flight++;
    s->stats.steps++;

    return DSA_OK;
}


/*
 * 1 if the sequence decodes, and the step in flight cannot end it by
 * max_tokens.  An entry must not follow one that may: the backend may accept
 * drafts behind the last token, for which there are no pages.
 */

static int
dsa_sched_goes_on(const dsa_seq_t *seq)
{
    return seq->state == DSA_SEQ_DECODE
           && seq->completion + seq->scheduled_samples * (1 + seq->n_draft)
              < seq->max_tokens;
}


/* One token for each sequence that lacks only its last token, and drafts. */

static int
dsa_sched_decodes(dsa_sched_t *s, uint32_t before, uint32_t *budget,
    dsa_err_t *err)
{
    uint32_t    i, n, room, left[DSA_MAX_GPUS];
    dsa_seq_t  *seq;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL && dsa_sched_goes_on(seq)
            && dsa_sched_grow(s, seq, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    dsa_sched_compact(s);

    for (i = 0; i < s->ranks; i++) {
        left[i] = s->rank[i].n_live;
    }

    s->n_unready = 0;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];
        left[seq->rank]--;

        if (!dsa_sched_goes_on(seq)) {
            continue;
        }

        if (seq->ready != NULL && seq->ready(seq->owner, NULL, 0) == 0) {
            s->n_unready++;
            continue;
        }

        n = 1;
        room = dsa_sched_draft_room(s, seq, *budget - (s->n_running - i),
                                    left);

        if (seq->scheduled_samples) {
            n += dsa_sched_draft_ahead(s, seq, before, room);

        } else if (seq->draft != NULL || seq->n_proposed != 0) {
            n += dsa_sched_draft(s, seq, room);
        }

        dsa_sched_schedule(s, seq, n);
        dsa_policy_served(seq->tenant, n);
        *budget -= n;
    }

    return DSA_OK;
}


/*
 * The most drafts of a sequence: each sequence from it on, of which there are
 * left [ranks] after it, can have one token of the budget and of its rank.
 */

static uint32_t
dsa_sched_draft_room(const dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t budget, const uint32_t *left)
{
    uint32_t  room;

    room = s->backend->rank_tokens - s->rank[seq->rank].tokens
           - left[seq->rank] - 1;

    return room < budget ? room : budget;
}


/*
 * Allocates the page of the sequence's last token, if it has none yet.  When
 * no page is free, it waits for pages that are being saved, which takes a few
 * milliseconds; without such pages, the tenant with the largest share is
 * preempted until a page is free, or until this sequence was preempted.
 */

static int
dsa_sched_grow(dsa_sched_t *s, dsa_seq_t *seq, dsa_err_t *err)
{
    int       rc;
    uint32_t  page;

    if (seq->n_pages
        >= dsa_pages_of(seq->n_tokens + seq->scheduled_samples))
    {
        return DSA_OK;
    }

    for ( ;; ) {
        page = dsa_pages_alloc(s->pages, seq->rank);

        if (page != DSA_NO_PAGE) {
            dsa_seq_add_page(seq, page);
            return DSA_OK;
        }

        rc = dsa_sched_wait_saves(s, seq->rank, err);

        if (rc == DSA_ERROR) {
            return DSA_ERROR;
        }

        if (rc == DSA_OK) {
            continue;
        }

        dsa_sched_evict(s, seq->rank, NULL);

        if (seq->state == DSA_SEQ_WAITING) {
            return DSA_OK;
        }
    }
}


/*
 * Returns the end of an entry's inputs; that of an entry which is made ahead
 * if all drafts in flight are accepted.
 */

static uint32_t
dsa_sched_end(const dsa_seq_t *seq, const dsa_batch_seq_t *b)
{
    return b->start + b->n_input
           + (b->input_from != DSA_INPUT_KNOWN ? seq->n_draft : 0);
}


/*
 * Appends drafts to the tokens of a sequence, at most budget, and returns
 * their number.  Drafts only use pages that are free: a guess is not worth a
 * preemption.
 */

static uint32_t
dsa_sched_draft(dsa_sched_t *s, dsa_seq_t *seq, uint32_t budget)
{
    uint32_t  i, n, most, draft[DSA_MAX_OUTPUTS - 1];

    assert(seq->n_draft == 0 && seq->scheduled_samples == 0);

    /* the output after the last draft is a token of the answer, too */

    most = seq->max_tokens - seq->completion - 1;
    most = most < budget ? most : budget;

    if (most > s->backend->max_outputs - 1) {
        most = s->backend->max_outputs - 1;
    }

    if (most == 0) {
        return 0;
    }

    if (seq->draft != NULL) {
        n = seq->draft(seq->owner, seq->tokens, seq->n_tokens, draft, most);

    } else {
        n = seq->n_proposed < most ? seq->n_proposed : most;
        memcpy(draft, seq->proposed, n * sizeof(uint32_t));
    }

    assert(n <= most);

    n = dsa_sched_ready(seq, draft, n);

    while (n != 0 && dsa_pages_of(seq->n_tokens + n) - seq->n_pages
                     > dsa_pages_free(s->pages, seq->rank))
    {
        n--;
    }

    /* without memory there are fewer drafts, and the answer is the same */

    if (dsa_seq_reserve(seq, dsa_pages_of(seq->n_tokens + n + 1)) != DSA_OK) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (dsa_seq_push(seq, draft[i]) != DSA_OK) {
            break;
        }

        if (seq->n_pages < dsa_pages_of(seq->n_tokens)) {
            dsa_seq_add_page(seq, dsa_pages_alloc(s->pages, seq->rank));
        }

        seq->n_draft++;
    }

    return seq->n_draft;
}


/*
 * Sets n_ahead to the drafts of a step that is made before they are known, at
 * most budget, and returns it.  There are pages for them even if all drafts
 * that tokens[] has are accepted.
 */

static uint32_t
dsa_sched_draft_ahead(dsa_sched_t *s, dsa_seq_t *seq, uint32_t before,
    uint32_t budget)
{
    uint32_t                n, end, most;
    const dsa_batch_seq_t  *b;

    b = &s->ring[before].batch[seq->entry[before]];
    n = b->next != NULL ? *b->n_next : 0;

    /* of the answer, one token is scheduled, and one is that of this step */

    most = seq->max_tokens - seq->completion - 2;
    n = n < most ? n : most;
    n = n < budget ? n : budget;

    end = seq->n_tokens + 1;
    most = s->conf.context > end ? s->conf.context - end : 0;
    n = n < most ? n : most;

    while (n != 0 && dsa_pages_of(end + n) > seq->n_pages
                                             + dsa_pages_free(s->pages,
                                                              seq->rank))
    {
        n--;
    }

    if (n != 0 && dsa_seq_reserve(seq, dsa_pages_of(end + n)) != DSA_OK) {
        n = 0;
    }

    while (seq->n_pages < dsa_pages_of(end + n)) {
        dsa_seq_add_page(seq, dsa_pages_alloc(s->pages, seq->rank));
    }

    seq->n_ahead = n;

    return n;
}


/* Fills entry i for the backend; before is the index of the previous step. */

static void
dsa_sched_batch(dsa_sched_t *s, uint32_t i, uint32_t before)
{
    uint32_t           ahead;
    dsa_seq_t         *seq;
    dsa_batch_seq_t   *b;
    dsa_sched_step_t  *step;

    step = s->next;
    seq = step->member[i];
    b = &step->batch[i];
    ahead = seq->scheduled_samples;

    b->tokens = seq->tokens;
    b->start = ahead ? seq->n_tokens - seq->n_draft : seq->scheduled;
    b->n_draft = ahead ? seq->n_ahead : seq->n_draft;
    b->n_prompt = seq->n_prompt;
    b->rank = seq->rank;
    b->pages = seq->pages;
    b->sampling = NULL;
    b->biases = seq->biases;
    b->mask = NULL;
    b->sample = &step->sample[(size_t) i * s->backend->max_outputs];
    b->accepted = &step->accepted[i];
    b->rollout = NULL;
    b->next = NULL;
    b->n_next = &step->n_next[i];
    b->next_mask = NULL;
    b->next_owner = NULL;
    b->input_from = ahead ? seq->entry[before] : DSA_INPUT_KNOWN;

    /* with a scheduled sample, this is the token after the split prompt */

    b->copies = ahead ? NULL : (const uint32_t *const *) seq->copies;

    assert(b->n_input != 0
           && dsa_pages_of(dsa_sched_end(seq, b)) <= seq->n_pages);

    b->n_pages = b->copies != NULL ? dsa_pages_of(b->start + b->n_input)
                                   : seq->n_pages;

    if (ahead || b->start + b->n_input == seq->n_tokens) {
        b->sampling = &seq->sampling;
        b->mask = dsa_sched_mask(s, seq);
    }

    /* a request that has a drafter of its own does not use the backend's */

    if (b->sampling != NULL && seq->draft == NULL
        && s->backend->drafts != 0)
    {
        b->next = &step->next[(size_t) i * s->backend->max_outputs];
    }
}


/*
 * Sets how many drafts the backend makes for each sequence.  At least one token
 * of the answer follows with this step and one with the next, so that drafts
 * beyond those that remain would be made in vain.
 */

static void
dsa_sched_propose(dsa_sched_t *s)
{
    uint32_t           i, left, room;
    dsa_seq_t         *seq;
    dsa_batch_seq_t   *b;
    dsa_sched_step_t  *step;

    step = s->next;

    dsa_spec_begin(&s->drafts);

    for (i = 0; i < step->n_batch; i++) {
        b = &step->batch[i];

        if (b->next == NULL) {
            continue;
        }

        seq = step->member[i];
        left = seq->max_tokens - seq->completion - seq->scheduled_samples;
        room = left > 2 ? left - 2 : 0;
        *b->n_next = room < s->backend->drafts ? room : s->backend->drafts;

        dsa_spec_add(&s->drafts, &seq->rates, *b->n_next);
    }

    dsa_spec_choose(&s->drafts);

    for (i = 0; i < step->n_batch; i++) {
        b = &step->batch[i];

        if (b->next == NULL) {
            continue;
        }

        seq = step->member[i];
        *b->n_next = dsa_spec_number(&s->drafts, &seq->rates, *b->n_next);

        if (b->copies == NULL) {
            dsa_sched_next_page(s, seq, dsa_sched_end(seq, b) + *b->n_next);
            b->pages = seq->pages;
            b->n_pages = seq->n_pages;
        }

        /* the drafts come after one output of the step at least */

        if (dsa_sched_masked(seq, 1, b->n_draft + *b->n_next)) {
            b->next_mask = dsa_sched_next_mask;
            b->next_owner = &step->member[i];
        }
    }
}


/*
 * The backend computes the next drafts in the cache entries behind the inputs,
 * up to n.  Their page is taken for the time of the step, and only if it is
 * free.  Without it there are fewer drafts at the end of a page.
 */

static void
dsa_sched_next_page(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t  page;

    if (dsa_pages_of(n) <= seq->n_pages
        || dsa_pages_free(s->pages, seq->rank) == 0
        || dsa_seq_reserve(seq, seq->n_pages + 1) != DSA_OK)
    {
        return;
    }

    page = dsa_pages_alloc(s->pages, seq->rank);

    if (page != DSA_NO_PAGE) {
        dsa_seq_add_page(seq, page);
    }
}
