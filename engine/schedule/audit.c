
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/schedule/state.h"


static int dsa_sched_audit_running(const dsa_sched_t *s, uint32_t *users,
    dsa_err_t *err);
static int dsa_sched_audit_pages(const dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t *users, dsa_err_t *err);
static int dsa_sched_audit_ranks(const dsa_sched_t *s, dsa_err_t *err);
static int dsa_sched_audit_tenant(const dsa_sched_t *s,
    const dsa_tenant_t *t, uint32_t *waiting, dsa_err_t *err);
static int dsa_sched_audit_classes(const dsa_sched_t *s, dsa_err_t *err);


int
dsa_sched_audit(const dsa_sched_t *s, dsa_err_t *err)
{
    int                  rc;
    uint32_t             waiting, *users, *host_users;
    uint64_t             host, used;
    const dsa_tenant_t  *t;

    dsa_pages_host_count(s->pages, &host, &used);

    users = calloc((size_t) s->ranks * dsa_pages_total(s->pages),
                   sizeof(uint32_t));
    host_users = calloc(host + 1, sizeof(uint32_t));

    if (users == NULL || host_users == NULL) {
        free(users);
        free(host_users);
        return dsa_error(err, "out of memory");
    }

    if (s->tiers != NULL) {
        dsa_tiers_users(s->tiers, users, host_users);
    }

    rc = dsa_sched_audit_running(s, users, err);
    rc = rc == DSA_OK ? dsa_sched_audit_ranks(s, err) : rc;
    waiting = 0;

    for (t = s->policy.first; t != NULL && rc == DSA_OK; /* void */) {
        rc = dsa_sched_audit_tenant(s, t, &waiting, err);
        t = t->next != s->policy.first ? t->next : NULL;
    }

    if (rc == DSA_OK && waiting != s->n_waiting) {
        rc = dsa_error(err, "%u sequences are waiting; expected %u", waiting,
                       s->n_waiting);
    }

    rc = rc == DSA_OK ? dsa_sched_audit_classes(s, err) : rc;

    if (rc == DSA_OK) {
        rc = dsa_pages_audit(s->pages, users, host_users, err);
    }

    free(users);
    free(host_users);

    return rc;
}


/*
 * The tokens for which a sequence may have pages behind its next one: the
 * drafts of the step in flight, the next drafts, and, if that step was made
 * ahead, those that the step before it could have accepted.
 */

static uint32_t
dsa_sched_audit_room(const dsa_sched_t *s)
{
    uint32_t  drafts;

    drafts = s->backend->drafts;

    return s->in_flight == 0 ? 0
           : s->backend->depth == 1 ? drafts : 3 * drafts;
}


/* Checks running sequences, and counts the users of their pages. */

static int
dsa_sched_audit_running(const dsa_sched_t *s, uint32_t *users, dsa_err_t *err)
{
    uint32_t          i, prompt, running;
    const dsa_seq_t  *seq;

    running = 0;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq == NULL) {
            continue;
        }

        running++;
        prompt = seq->computed < seq->n_prompt ? seq->computed : seq->n_prompt;

        if (seq->index != i || seq->state == DSA_SEQ_WAITING
            || !seq->started)
        {
            return dsa_error(err, "running sequence %u has index %u and state "
                             "%d", i, seq->index, seq->state);
        }

        if (seq->computed >= seq->n_tokens - seq->n_draft
            || seq->computed > seq->scheduled
            || seq->scheduled > seq->n_tokens + seq->scheduled_samples)
        {
            return dsa_error(err, "running sequence %u has %u tokens with %u "
                             "drafts, %u computed, %u scheduled", i,
                             seq->n_tokens, seq->n_draft, seq->computed,
                             seq->scheduled);
        }

        if (seq->n_draft >= s->backend->max_outputs
            || seq->n_proposed > s->backend->drafts
            || seq->n_pages > dsa_pages_of(seq->n_tokens + 1
                                           + dsa_sched_audit_room(s)))
        {
            return dsa_error(err, "running sequence %u of %u tokens has %u "
                             "pages, %u drafts, and %u drafts of the backend",
                             i, seq->n_tokens, seq->n_pages, seq->n_draft,
                             seq->n_proposed);
        }

        if (seq->counted < prompt || seq->counted > seq->n_prompt
            || seq->cached > seq->counted
            || dsa_seq_loaded(seq) > seq->cached)
        {
            return dsa_error(err, "running sequence %u has %u prompt tokens, "
                             "%u counted, %u cached, %u of them from other "
                             "tiers than the GPU", i, seq->n_prompt,
                             seq->counted, seq->cached, dsa_seq_loaded(seq));
        }

        if (seq->n_pages < dsa_pages_of(seq->scheduled)
            || seq->published != seq->computed / DSA_PAGE_TOKENS
            || seq->published > seq->n_digests)
        {
            return dsa_error(err, "running sequence %u has %u pages, %u "
                             "published, %u digests, and %u tokens computed",
                             i, seq->n_pages, seq->published, seq->n_digests,
                             seq->computed);
        }

        if (dsa_sched_audit_pages(s, seq, users, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (running != s->n_live) {
        return dsa_error(err, "%u sequences are running; expected %u", running,
                         s->n_live);
    }

    return DSA_OK;
}


/* Counts the users of a sequence's pages on all ranks. */

static int
dsa_sched_audit_pages(const dsa_sched_t *s, const dsa_seq_t *seq,
    uint32_t *users, dsa_err_t *err)
{
    uint32_t         i, j, n, total;
    const uint32_t  *table;

    total = dsa_pages_total(s->pages);

    if (seq->rank >= s->ranks
        || (seq->copies == NULL && seq->n_copied != 0)
        || (seq->copies != NULL && (seq->copies[seq->rank] != seq->pages
                                    || seq->n_copied > seq->n_pages)))
    {
        return dsa_error(err, "running sequence %u is on rank %u of %u with "
                         "%u pages, and %u copied", seq->index, seq->rank,
                         s->ranks, seq->n_pages, seq->n_copied);
    }

    for (i = 0; i < s->ranks; i++) {
        if (!dsa_seq_is_on(seq, i)) {
            continue;
        }

        table = dsa_seq_table(seq, i);
        n = i == seq->rank ? seq->n_pages : seq->n_copied;

        for (j = 0; j < n; j++) {
            if (table[j] >= total) {
                return dsa_error(err, "running sequence %u has page %u of "
                                 "rank %u; expected less than %u", seq->index,
                                 table[j], i, total);
            }

            users[(size_t) i * total + table[j]]++;
        }
    }

    return DSA_OK;
}


/* Checks the counters of ranks against running sequences. */

static int
dsa_sched_audit_ranks(const dsa_sched_t *s, dsa_err_t *err)
{
    uint32_t          i, j, live, pending, prefill, split, loading;
    const dsa_seq_t  *seq;

    for (i = 0; i < s->ranks; i++) {
        live = 0;
        pending = 0;
        prefill = 0;
        split = 0;
        loading = 0;

        for (j = 0; j < s->n_running; j++) {
            seq = s->running[j];

            if (seq == NULL) {
                continue;
            }

            if ((seq->state == DSA_SEQ_PREFILL) != (seq->pending != 0)
                || (seq->pending != 0
                    && seq->pending != seq->n_tokens - seq->scheduled))
            {
                return dsa_error(err, "running sequence %u in state %d has %u "
                                 "tokens to schedule; expected %u", j,
                                 seq->state, seq->pending,
                                 seq->n_tokens - seq->scheduled);
            }

            if ((seq->state == DSA_SEQ_LOADING) != (seq->fetch != NULL)
                || (seq->fetch != NULL && (seq->scheduled != seq->computed
                                           || seq->fetch->ready
                                              > seq->fetch_pages)))
            {
                return dsa_error(err, "running sequence %u in state %d has a "
                                 "fetch of %u pages, and %u of %u tokens "
                                 "scheduled", j, seq->state, seq->fetch_pages,
                                 seq->scheduled, seq->n_tokens);
            }

            loading += seq->fetch != NULL;
            prefill += seq->pending != 0;
            split += seq->copies != NULL;

            if (dsa_seq_is_on(seq, i)) {
                pending += dsa_sched_part(s, seq, seq->pending);
                live++;
            }
        }

        if (s->rank[i].n_live != live || live > s->conf.max_running
            || s->rank[i].pending != pending || s->n_prefill != prefill
            || s->n_split != split || s->n_loading != loading)
        {
            return dsa_error(err, "rank %u counts %u sequences and %u tokens "
                             "of %u prompts, %u split, %u loading; expected "
                             "%u, %u, %u, %u and %u", i, s->rank[i].n_live,
                             s->rank[i].pending, s->n_prefill, s->n_split,
                             s->n_loading, live, pending, prefill, split,
                             loading);
        }
    }

    return DSA_OK;
}


static int
dsa_sched_audit_tenant(const dsa_sched_t *s, const dsa_tenant_t *t,
    uint32_t *waiting, dsa_err_t *err)
{
    uint32_t          i, j, n, unstarted, prefill, running, pages;
    uint32_t          on[DSA_MAX_GPUS] = { 0 };
    uint64_t          tokens;
    const dsa_seq_t  *seq;

    n = 0;
    tokens = 0;
    unstarted = 0;

    for (seq = t->waiting.first; seq != NULL; seq = seq->next) {
        if (seq->state != DSA_SEQ_WAITING || seq->n_pages != 0
            || seq->computed != 0 || seq->n_draft != 0 || seq->tenant != t
            || seq->copies != NULL || seq->pending != 0 || seq->fetch != NULL
            || (seq->started && unstarted != 0))
        {
            return dsa_error(err, "waiting sequence %u of a tenant has state "
                             "%d, %u pages and %u tokens computed", n,
                             seq->state, seq->n_pages, seq->computed);
        }

        unstarted += !seq->started;
        tokens += seq->n_tokens;
        n++;
    }

    *waiting += n;
    prefill = 0;

    for (seq = t->prefill.first; seq != NULL; seq = seq->next) {
        prefill++;
    }

    for (seq = t->loading.first; seq != NULL; seq = seq->next) {
        if (seq->state != DSA_SEQ_LOADING || seq->tenant != t) {
            return dsa_error(err, "a loading sequence has state %d",
                             seq->state);
        }
    }

    running = 0;
    pages = 0;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq == NULL || seq->tenant != t) {
            continue;
        }

        pages += seq->n_pages + seq->n_copied * (s->ranks - 1);
        running++;

        for (j = 0; j < s->ranks; j++) {
            on[j] += (uint32_t) dsa_seq_is_on(seq, j);
        }
    }

    for (i = 0; i < s->ranks; i++) {
        if (t->n_on[i] != on[i]) {
            return dsa_error(err, "a tenant counts %u sequences on rank %u; "
                             "expected %u", t->n_on[i], i, on[i]);
        }
    }

    if (t->waiting_tokens != tokens) {
        return dsa_error(err, "a tenant counts %llu tokens that wait; "
                         "expected %llu",
                         (unsigned long long) t->waiting_tokens,
                         (unsigned long long) tokens);
    }

    if (t->n_waiting != n || t->n_new != unstarted || t->n_prefill != prefill
        || t->n_running != running || t->n_pages != pages
        || t->n_seqs != n + running || t->n_seqs == 0)
    {
        return dsa_error(err, "a tenant counts %u sequences (%u waiting, %u "
                         "new, %u in prefill, %u running) with %u pages; "
                         "expected %u (%u, %u, %u, %u) with %u", t->n_seqs,
                         t->n_waiting, t->n_new, t->n_prefill, t->n_running,
                         t->n_pages, n + running, n, unstarted, prefill,
                         running, pages);
    }

    return DSA_OK;
}


/* Checks what policy counts for each class against the tenants. */

static int
dsa_sched_audit_classes(const dsa_sched_t *s, dsa_err_t *err)
{
    uint32_t             i, running[DSA_PRIORITIES] = { 0 };
    const dsa_tenant_t  *t;

    for (t = s->policy.first; t != NULL; /* void */) {
        running[t->priority] += t->n_running;
        t = t->next != s->policy.first ? t->next : NULL;
    }

    for (i = 0; i < DSA_PRIORITIES; i++) {
        if (s->policy.class[i].n_running != running[i]) {
            return dsa_error(err, "class %u counts %u running sequences; "
                             "expected %u", i, s->policy.class[i].n_running,
                             running[i]);
        }
    }

    return DSA_OK;
}
