
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>

#include "base/log.h"
#include "engine/schedule/state.h"


/*
 * What each rank has: running sequences, prompt tokens to compute, and tokens
 * in the step that is being made.  A sequence whose prompt is split counts on
 * all ranks, with an equal part of its tokens on each.
 */


static void dsa_sched_set_pending(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n);
static void dsa_sched_move(dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t from, uint32_t to);
static void dsa_sched_enter_prefill(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_leave_loading(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_leave_prefill(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_leave_steps(dsa_sched_t *s, dsa_seq_t *seq);


void
dsa_sched_enter(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t       i;
    dsa_tenant_t  *t;

    t = seq->tenant;
    dsa_policy_run(&s->policy, t);

    dsa_sched_compact(s);

    assert(s->n_running < s->indices);

    seq->index = s->n_running;
    s->running[s->n_running++] = seq;
    s->n_live++;

    for (i = 0; i < s->ranks; i++) {
        if (dsa_seq_is_on(seq, i)) {
            assert(s->rank[i].n_live < s->conf.max_running);

            s->rank[i].n_live++;
            t->n_on[i]++;
        }
    }

    if (seq->fetch != NULL) {
        dsa_seq_push_last(&t->loading, seq);
        seq->state = DSA_SEQ_LOADING;
        s->n_loading++;

    } else {
        dsa_sched_enter_prefill(s, seq);
    }
}


void
dsa_sched_entered(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_log_debug("request %u.%u: its pages are there, its prompt waits",
                  dsa_sched_log_id(seq));

    dsa_sched_leave_loading(s, seq);

    /* the tenant did not compete for prompt tokens while it only loaded */

    dsa_policy_activate(&s->policy, seq->tenant);
    dsa_sched_enter_prefill(s, seq);
}


static void
dsa_sched_enter_prefill(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_seq_push_last(&seq->tenant->prefill, seq);
    seq->state = DSA_SEQ_PREFILL;
    seq->tenant->n_prefill++;
    s->n_prefill++;

    dsa_sched_set_pending(s, seq, seq->n_tokens - seq->scheduled);
}


static void
dsa_sched_leave_loading(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_seq_remove(&seq->tenant->loading, seq);
    s->n_loading--;
}


void
dsa_sched_leave(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  i;

    if (seq->state == DSA_SEQ_LOADING) {
        dsa_sched_leave_loading(s, seq);

    } else if (seq->state == DSA_SEQ_PREFILL) {
        dsa_sched_set_pending(s, seq, 0);
        dsa_sched_leave_prefill(s, seq);
    }

    dsa_sched_leave_steps(s, seq);

    for (i = 0; i < s->ranks; i++) {
        if (dsa_seq_is_on(seq, i)) {
            s->rank[i].n_live--;
            seq->tenant->n_on[i]--;
        }
    }

    s->running[seq->index] = NULL;
    s->n_live--;
    dsa_policy_leave(&s->policy, seq->tenant);
}


void
dsa_sched_join(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  i, pending;

    pending = seq->pending;
    dsa_sched_set_pending(s, seq, 0);

    for (i = 0; i < s->ranks; i++) {
        if (i != seq->rank) {
            s->rank[i].n_live--;
            seq->tenant->n_on[i]--;
        }
    }

    /* what is fetched from now on must not move to the released pages */

    if (seq->fetch != NULL) {
        dsa_tiers_fetch_only(s->tiers, seq->fetch, seq->rank);
    }

    dsa_seq_join(seq, s->pages, s->ranks);
    s->n_split--;
    dsa_sched_set_pending(s, seq, pending);
}


static void
dsa_sched_set_pending(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t  i, from, to;

    from = dsa_sched_part(s, seq, seq->pending);
    to = dsa_sched_part(s, seq, n);
    seq->pending = n;

    for (i = 0; i < s->ranks; i++) {
        if (dsa_seq_is_on(seq, i)) {
            s->rank[i].pending += to - from;
        }
    }
}


/* The sequence's entry in the step has so many tokens now. */

static void
dsa_sched_move(dsa_sched_t *s, const dsa_seq_t *seq, uint32_t from,
    uint32_t to)
{
    uint32_t  i;

    if (seq->copies == NULL) {
        s->rank[seq->rank].tokens += to - from;
        return;
    }

    from = dsa_sched_part(s, seq, from);
    to = dsa_sched_part(s, seq, to);

    for (i = 0; i < s->ranks; i++) {
        s->rank[i].tokens += to - from;
    }
}


static void
dsa_sched_leave_prefill(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_seq_remove(&seq->tenant->prefill, seq);
    seq->tenant->n_prefill--;
    s->n_prefill--;
}


void
dsa_sched_prefilled(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    assert(seq->state == DSA_SEQ_PREFILL && n <= seq->pending);

    dsa_sched_set_pending(s, seq, seq->pending - n);

    if (seq->pending == 0) {
        dsa_log_debug("request %u.%u: its prompt is computed, it decodes",
                      dsa_sched_log_id(seq));

        dsa_sched_leave_prefill(s, seq);
        seq->state = DSA_SEQ_DECODE;
    }
}


void
dsa_sched_schedule(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t          *entry, *n_input;
    dsa_sched_step_t  *step;

    step = s->next;
    entry = dsa_sched_entry(s, seq);

    if (*entry == DSA_NO_BATCH_ENTRY) {
        assert(step->n_batch < s->indices);

        *entry = step->n_batch++;
        step->member[*entry] = seq;
        step->batch[*entry].n_input = 0;
    }

    n_input = &step->batch[*entry].n_input;
    dsa_sched_move(s, seq, *n_input, *n_input + n);
    *n_input += n;
}


static void
dsa_sched_leave_steps(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t           i, last, entry;
    dsa_sched_step_t  *step;

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        step = &s->ring[(s->first + i) % DSA_SCHED_DEPTH];
        entry = seq->entry[step - s->ring];

        if (entry == DSA_NO_BATCH_ENTRY) {
            continue;
        }

        seq->entry[step - s->ring] = DSA_NO_BATCH_ENTRY;

        if (i < s->in_flight) {

            /*
             * The results of in-flight steps are not used.  The pages may be
             * allocated again at once, because steps that use them run after
             * those in flight.
             */

            step->member[entry] = NULL;
            continue;
        }

        /* the step is still being made: its last entry moves to this one */

        dsa_sched_move(s, seq, step->batch[entry].n_input, 0);
        last = --step->n_batch;

        if (last != entry) {
            step->member[entry] = step->member[last];
            step->member[entry]->entry[step - s->ring] = entry;
            step->batch[entry] = step->batch[last];
        }
    }
}


void
dsa_sched_compact(dsa_sched_t *s)
{
    uint32_t  i, n;

    if (s->n_live == s->n_running) {
        return;
    }

    n = 0;

    for (i = 0; i < s->n_running; i++) {
        if (s->running[i] != NULL) {
            s->running[n] = s->running[i];
            s->running[n]->index = n;
            n++;
        }
    }

    assert(n == s->n_live);

    s->n_running = n;
}
