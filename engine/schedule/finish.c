
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "engine/schedule/state.h"


static int dsa_sched_verified(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_batch_seq_t *b, uint64_t now);
static int dsa_sched_computed(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);
static int dsa_sched_prefilled_part(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_batch_seq_t *b);
static int dsa_sched_sampled(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_batch_seq_t *b, uint32_t n, uint64_t now);
static void dsa_sched_count_times(dsa_sched_t *s, uint64_t us, uint32_t n);
static dsa_batch_seq_t *dsa_sched_follower(dsa_sched_t *s,
    const dsa_seq_t *seq);
static int dsa_sched_resolve(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_count_drafts(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_batch_seq_t *b, uint32_t accepted, uint32_t n);
static void dsa_sched_forget(dsa_sched_t *s, const dsa_seq_t *seq);
static uint32_t dsa_sched_ms(uint64_t from, uint64_t to);


int
dsa_sched_collect(dsa_sched_t *s, dsa_err_t *err)
{
    int                rc;
    uint32_t           i;
    uint64_t           now, begin;
    dsa_seq_t         *seq;
    dsa_batch_seq_t   *b;
    dsa_sched_step_t  *step;

    assert(s->in_flight != 0);

    step = &s->ring[s->first];

    if (s->backend->wait(s->backend, err) != DSA_OK) {
        return DSA_ERROR;
    }

    s->first = (s->first + 1) % DSA_SCHED_DEPTH;
    s->in_flight--;
    s->ended++;

    /* a step that was started early began when the one before it ended */

    now = dsa_sched_now(s);
    begin = step->begin_us > s->end_us ? step->begin_us : s->end_us;
    s->end_us = now;

    dsa_sched_measure(s, step, now - begin);

    for (i = 0; i < step->n_batch; i++) {
        seq = step->member[i];
        b = &step->batch[i];

        if (seq == NULL) {
            continue;
        }

        step->member[i] = NULL;
        seq->entry[step - s->ring] = DSA_NO_BATCH_ENTRY;

        rc = b->sampling != NULL ? dsa_sched_verified(s, seq, b, now)
                                 : dsa_sched_prefilled_part(s, seq, b);

        if (rc != DSA_OK) {
            return dsa_error(err, "out of memory");
        }
    }

    dsa_sched_compact(s);

    return DSA_OK;
}


/* A part of a prompt, without an output. */

static int
dsa_sched_prefilled_part(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_batch_seq_t *b)
{
    dsa_sched_report(s, seq, b, 0);

    return dsa_sched_computed(s, seq, b->n_input);
}


/* The outputs of a sequence are known: rejected drafts are rolled back. */

static int
dsa_sched_verified(dsa_sched_t *s, dsa_seq_t *seq, const dsa_batch_seq_t *b,
    uint64_t now)
{
    uint32_t                accepted, rejected;
    const dsa_batch_seq_t  *follower;

    accepted = b->n_draft != 0 ? *b->accepted : 1;

    assert(accepted >= 1);

    /* a step that was made ahead may verify drafts behind max_tokens */

    accepted = accepted < b->n_draft + 1 ? accepted : b->n_draft + 1;
    rejected = b->n_draft + 1 - accepted;

    if (b->n_draft != 0) {
        seq->n_draft = 0;
        seq->drafted += b->n_draft;
        s->stats.draft_tokens += b->n_draft;
        dsa_spec_verified(&s->drafts, &seq->rates, b->n_draft, accepted - 1);
    }

    /* also the page of the next drafts, which the next step takes again */

    if (b->n_draft != 0 || b->next != NULL) {
        follower = dsa_sched_follower(s, seq);

        dsa_seq_rollback(seq, s->pages, seq->n_tokens - rejected,
                         follower != NULL ? follower->n_pages : 0);
    }

    if (b->next != NULL) {
        seq->n_proposed = *b->n_next;
        memcpy(seq->proposed, b->next, seq->n_proposed * sizeof(uint32_t));
    }

    if (dsa_sched_computed(s, seq, b->n_input - rejected) != DSA_OK) {
        return DSA_ERROR;
    }

    /* the prompt is computed, and its pages are in the index of all ranks */

    if (seq->copies != NULL) {
        dsa_sched_join(s, seq);
    }

    return dsa_sched_sampled(s, seq, b, accepted, now);
}


/* n more tokens are computed: pages that became full are published. */

static int
dsa_sched_computed(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t  i, full, page;

    seq->computed += n;

    assert(seq->computed <= seq->scheduled
           && seq->computed <= seq->n_tokens);

    if (seq->counted < seq->n_prompt) {
        (void) dsa_sched_count(s, seq, 0);
    }

    full = seq->computed / DSA_PAGE_TOKENS;

    if (seq->published == full) {
        return DSA_OK;
    }

    if (dsa_seq_digests(seq, s->digester, s->backend->fingerprint, full)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    while (seq->published < full) {
        for (i = 0; i < s->ranks; i++) {
            if (!dsa_seq_is_on(seq, i)) {
                continue;
            }

            page = dsa_seq_table(seq, i)[seq->published];
            dsa_pages_publish(s->pages, i, page,
                              &seq->digest[seq->published]);

            if (s->tiers != NULL && !seq->private) {
                dsa_tiers_published(s->tiers, i, page,
                                    &seq->digest[seq->published]);
            }
        }

        seq->published++;
    }

    return DSA_OK;
}


/*
 * Tokens that are computed again after a preemption were counted before.
 * Tokens of in-flight steps count when the step ends, so that they do not if
 * the sequence is cancelled first.
 */

uint32_t
dsa_sched_count(dsa_sched_t *s, dsa_seq_t *seq, int found)
{
    uint32_t  n;

    n = seq->computed < seq->n_prompt ? seq->computed : seq->n_prompt;

    if (n <= seq->counted) {
        return 0;
    }

    n -= seq->counted;
    seq->counted += n;
    s->stats.prompt_tokens += n;

    if (found) {
        seq->cached += n;
        s->stats.cached_tokens += n;
    }

    return n;
}


/*
 * The next n tokens of the answer.  All but the last are accepted drafts,
 * which tokens[] has already.  Tokens after an end token are not part of the
 * answer: without drafts they would not have been sampled.
 */

static int
dsa_sched_sampled(dsa_sched_t *s, dsa_seq_t *seq, const dsa_batch_seq_t *b,
    uint32_t n, uint64_t now)
{
    int                  finish;
    uint32_t             i, end;
    uint64_t             last_us;
    const dsa_sample_t  *samples;

    samples = b->sample;
    last_us = seq->last_us;
    seq->last_us = now;

    /* a later step in flight may have scheduled another sample */

    if (seq->scheduled <= seq->n_tokens) {
        seq->scheduled_samples = 0;
    }

    end = 0;

    for (i = 0; i < n; i++) {
        if (dsa_ends_has(&s->backend->config.ends, samples[i].token)
            && !seq->ignore_eos)
        {
            end = 1;
            break;
        }
    }

    if (seq->sampled == 0) {
        seq->first_us = now;

    } else {
        dsa_sched_count_times(s, now - last_us, i + end);
    }

    seq->sampled += i + end;
    seq->completion += i + end;
    s->stats.completion_tokens += i + end;

    dsa_sched_count_drafts(s, seq, b, n - 1, i + end);

    assert(seq->completion <= seq->max_tokens);

    finish = i != 0 ? s->handler.tokens(seq->owner, samples, i) : 0;
    dsa_sched_report(s, seq, b, i + end);

    if (finish == 0 && end) {
        finish = DSA_FINISH_STOP;
    }

    if (finish == 0 && seq->completion == seq->max_tokens) {
        finish = DSA_FINISH_LENGTH;
    }

    if (finish != 0) {
        dsa_sched_finish(s, seq, (dsa_finish_e) finish, now);
        return DSA_OK;
    }

    if (dsa_seq_push(seq, samples[n - 1].token) != DSA_OK
        || dsa_sched_resolve(s, seq) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_seq_reserve(seq, dsa_pages_of(seq->n_tokens + 1));
}


/* The next n tokens of an answer came us after the one before them. */

static void
dsa_sched_count_times(dsa_sched_t *s, uint64_t us, uint32_t n)
{
    s->stats.token_us += us;
    s->stats.token_times[dsa_token_time(us / n)] += n;
}


/*
 * Returns the entry of a sequence in the step in flight, which was made before
 * the results of the step that has just ended were known, or NULL.
 */

static dsa_batch_seq_t *
dsa_sched_follower(dsa_sched_t *s, const dsa_seq_t *seq)
{
    uint32_t  entry;

    entry = seq->entry[s->first];

    return s->in_flight != 0 && entry != DSA_NO_BATCH_ENTRY
           ? &s->ring[s->first].batch[entry] : NULL;
}


/*
 * Gives the entry of a sequence that follows the results which are known now
 * its true start and drafts, as the backend has done it with these results.
 * Of the drafts that the backend verifies, those count that the answer has
 * room for.
 */

static int
dsa_sched_resolve(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t          i, n, most;
    dsa_batch_seq_t  *b;

    b = dsa_sched_follower(s, seq);

    if (b == NULL) {
        return DSA_OK;
    }

    assert(b->input_from != DSA_INPUT_KNOWN && b->sampling != NULL);

    most = b->n_pages * DSA_PAGE_TOKENS;
    most = most < s->conf.context ? most : s->conf.context;
    most = most > seq->n_tokens ? most - seq->n_tokens : 0;

    n = seq->n_proposed < b->n_draft ? seq->n_proposed : b->n_draft;
    n = n < most ? n : most;

    most = seq->max_tokens - seq->completion - 1;
    n = n < most ? n : most;

    b->start = seq->n_tokens - 1;
    b->n_draft = n;
    b->n_input = n + 1;

    for (i = 0; i < n; i++) {
        if (dsa_seq_push(seq, seq->proposed[i]) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    seq->n_draft = n;
    seq->n_ahead = 0;
    seq->n_proposed = 0;
    seq->scheduled = seq->n_tokens;
    seq->scheduled_samples = 1;

    return DSA_OK;
}


/*
 * Counts what the outputs of a sequence give: n tokens of its answer, of which
 * those of accepted drafts are the first ones.  Drafts behind an end token are
 * accepted, but no part of the answer.
 */

static void
dsa_sched_count_drafts(dsa_sched_t *s, dsa_seq_t *seq,
    const dsa_batch_seq_t *b, uint32_t accepted, uint32_t n)
{
    uint32_t  i;

    accepted = accepted < n ? accepted : n;

    for (i = 0; i < accepted; i++) {
        s->stats.accepted_at[i]++;
    }

    seq->accepted += accepted;
    s->stats.accepted_tokens += accepted;

    /* a last row of a prompt has the first token of the answer */

    if (b->n_input == b->n_draft + 1 && b->start >= b->n_prompt) {
        s->stats.decodes++;
        s->stats.decode_tokens += n;
    }
}


void
dsa_sched_stop(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_tenant_t  *t;

    t = seq->tenant;

    if (seq->state == DSA_SEQ_WAITING) {
        dsa_seq_remove(&t->waiting, seq);
        t->n_new -= !seq->started;
        t->n_waiting--;
        t->waiting_tokens -= seq->n_tokens;
        s->n_waiting--;
        dsa_sched_unload(s, seq);
        return;
    }

    dsa_sched_leave(s, seq);
    dsa_sched_unload(s, seq);

    if (seq->copies != NULL) {
        dsa_seq_join(seq, s->pages, s->ranks);
        s->n_split--;
    }

    dsa_seq_release(seq, s->pages, 0);
}


void
dsa_sched_finish(dsa_sched_t *s, dsa_seq_t *seq, dsa_finish_e finish,
    uint64_t now)
{
    dsa_sched_usage_t  usage;

    memset(&usage, 0, sizeof(usage));

    usage.finish = finish;
    usage.prompt_tokens = seq->counted;
    usage.cached_tokens = seq->cached;
    memcpy(usage.tier_tokens, seq->found, sizeof(usage.tier_tokens));
    usage.tier_tokens[DSA_TIER_GPU] = seq->cached - dsa_seq_loaded(seq);
    usage.completion_tokens = seq->completion;
    usage.draft_tokens = seq->drafted;
    usage.accepted_tokens = seq->accepted;
    usage.queue_ms = dsa_sched_ms(seq->submit_us, seq->started ? seq->start_us
                                                               : now);
    if (seq->started) {
        usage.prefill_ms = dsa_sched_ms(seq->start_us,
                                        seq->sampled != 0 ? seq->first_us
                                                          : now);
    }

    usage.decode_ms = dsa_sched_ms(seq->first_us, seq->last_us);

    dsa_log_debug("request %u.%u: finish %d, %u prompt tokens, %u of them "
                  "cached, %u completion tokens",
                  dsa_sched_log_id(seq), finish, usage.prompt_tokens,
                  usage.cached_tokens, usage.completion_tokens);

    /* a later turn of the conversation begins with these pages */

    if (s->tiers != NULL && !seq->private && finish != DSA_FINISH_CANCELLED) {
        dsa_tiers_keep(s->tiers, seq->digest, seq->published);
    }

    if (seq->private) {
        dsa_sched_forget(s, seq);
    }

    s->stats.ended++;

    dsa_sched_stop(s, seq);
    s->handler.done(seq->owner, &usage);
    dsa_sched_free(s, seq);
}


/*
 * The pages of a private request are in the index only for its own resumption
 * after a preemption.  Afterwards they would take the room of pages that other
 * requests find, here and in host memory.
 */

static void
dsa_sched_forget(dsa_sched_t *s, const dsa_seq_t *seq)
{
    uint32_t  i, j;

    for (i = 0; i < s->ranks; i++) {
        for (j = 0; dsa_seq_is_on(seq, i) && j < seq->published; j++) {
            dsa_pages_forget(s->pages, i, dsa_seq_table(seq, i)[j]);
        }
    }
}


void
dsa_sched_free(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_tenant_t  *t;

    t = seq->tenant;

    if (--t->n_seqs == 0) {
        dsa_policy_remove(&s->policy, t);
    }

    dsa_seq_free(seq);
}


static uint32_t
dsa_sched_ms(uint64_t from, uint64_t to)
{
    return (uint32_t) ((to - from) / 1000);
}
