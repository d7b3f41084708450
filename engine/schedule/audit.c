
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "engine/schedule/state.h"


static int dsa_sched_audit_running(const dsa_sched_t *s, uint32_t *users,
    dsa_err_t *err);
static int dsa_sched_audit_tenant(const dsa_sched_t *s,
    const dsa_tenant_t *t, uint32_t *waiting, dsa_err_t *err);


int
dsa_sched_audit(const dsa_sched_t *s, dsa_err_t *err)
{
    int                  rc;
    uint32_t             waiting, *users;
    const dsa_tenant_t  *t;

    users = calloc(dsa_pages_total(s->pages), sizeof(uint32_t));

    if (users == NULL) {
        return dsa_error(err, "out of memory");
    }

    rc = dsa_sched_audit_running(s, users, err);
    waiting = 0;

    for (t = s->policy.first; t != NULL && rc == DSA_OK; /* void */) {
        rc = dsa_sched_audit_tenant(s, t, &waiting, err);
        t = t->next != s->policy.first ? t->next : NULL;
    }

    if (rc == DSA_OK && waiting != s->n_waiting) {
        rc = dsa_error(err, "%u sequences are waiting; expected %u", waiting,
                       s->n_waiting);
    }

    if (rc == DSA_OK) {
        rc = dsa_pages_audit(s->pages, users, err);
    }

    free(users);

    return rc;
}


/* Checks running sequences, and counts the users of their pages. */

static int
dsa_sched_audit_running(const dsa_sched_t *s, uint32_t *users, dsa_err_t *err)
{
    uint32_t          i, j, prompt, running;
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

        if (seq->counted < prompt || seq->counted > seq->n_prompt
            || seq->cached > seq->counted)
        {
            return dsa_error(err, "running sequence %u has %u prompt tokens, "
                             "%u counted, %u cached", i, seq->n_prompt,
                             seq->counted, seq->cached);
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

        for (j = 0; j < seq->n_pages; j++) {
            users[seq->pages[j]]++;
        }
    }

    if (running != s->n_live) {
        return dsa_error(err, "%u sequences are running; expected %u", running,
                         s->n_live);
    }

    return DSA_OK;
}


static int
dsa_sched_audit_tenant(const dsa_sched_t *s, const dsa_tenant_t *t,
    uint32_t *waiting, dsa_err_t *err)
{
    uint32_t          i, n, unstarted, prefill, running, pages;
    const dsa_seq_t  *seq;

    n = 0;
    unstarted = 0;

    for (seq = t->waiting.first; seq != NULL; seq = seq->next) {
        if (seq->state != DSA_SEQ_WAITING || seq->n_pages != 0
            || seq->computed != 0 || seq->n_draft != 0 || seq->tenant != t
            || (seq->started && unstarted != 0))
        {
            return dsa_error(err, "waiting sequence %u of a tenant has state "
                             "%d, %u pages and %u tokens computed", n,
                             seq->state, seq->n_pages, seq->computed);
        }

        unstarted += !seq->started;
        n++;
    }

    *waiting += n;
    prefill = 0;

    for (seq = t->prefill.first; seq != NULL; seq = seq->next) {
        prefill++;
    }

    running = 0;
    pages = 0;

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL && seq->tenant == t) {
            pages += seq->n_pages;
            running++;
        }
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
