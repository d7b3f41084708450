
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "engine/schedule/state.h"


static dsa_seq_t *dsa_sched_refuse(int code, dsa_err_t *err,
    const char *reason);
static int dsa_sched_check(const dsa_sched_t *s,
    const dsa_sched_request_t *r, dsa_err_t *err);
static int dsa_sched_room(const dsa_sched_t *s, const dsa_sched_request_t *r,
    dsa_tenant_t **crowded);
static dsa_seq_t *dsa_sched_sequence(dsa_sched_t *s,
    const dsa_sched_request_t *r);
static int dsa_sched_prepare(dsa_sched_t *s, dsa_seq_t *seq);
static void dsa_sched_wait(dsa_sched_t *s, dsa_seq_t *seq, int first);
static void dsa_sched_drop(dsa_sched_t *s, dsa_seq_t *seq);
static int dsa_sched_fits(dsa_sched_t *s, const dsa_seq_t *seq);


dsa_seq_t *
dsa_sched_add(dsa_sched_t *s, const dsa_sched_request_t *r, dsa_err_t *err)
{
    int            code;
    dsa_seq_t     *seq;
    dsa_tenant_t  *t, *crowded;

    if (r->mask != NULL && !s->backend->masks) {
        return dsa_sched_refuse(ENOTSUP, err, "the request constrains its "
                                "output, and the backend supports no masks");
    }

    if (dsa_sched_check(s, r, err) != DSA_OK) {
        errno = EINVAL;
        return NULL;
    }

    if (dsa_sched_room(s, r, &crowded) != DSA_OK) {
        return dsa_sched_refuse(EAGAIN, err, "too many requests are waiting "
                                "already");
    }

    seq = dsa_sched_sequence(s, r);

    if (seq == NULL) {
        return dsa_sched_refuse(ENOMEM, err, "out of memory");
    }

    if (r->private
        && getrandom(seq->salt, sizeof(seq->salt), 0) != sizeof(seq->salt))
    {
        code = errno;
        dsa_seq_free(seq);
        return dsa_sched_refuse(code, err, "getrandom() failed");
    }

    t = dsa_policy_tenant(&s->policy, r->tenant, r->weight);

    if (t == NULL) {
        dsa_seq_free(seq);
        return dsa_sched_refuse(ENOMEM, err, "out of memory");
    }

    seq->tenant = t;
    t->n_seqs++;
    t->weight = r->weight;

    /* the caller keeps the tokens of a request that is not accepted */

    seq->tokens = r->tokens;

    if (dsa_sched_prepare(s, seq) != DSA_OK) {
        seq->tokens = NULL;
        dsa_sched_free(s, seq);
        return dsa_sched_refuse(ENOMEM, err, "out of memory");
    }

    if (crowded != NULL) {
        dsa_sched_drop(s, crowded->waiting.last);
    }

    dsa_policy_activate(&s->policy, t);
    dsa_sched_wait(s, seq, 0);

    return seq;
}


/* Sets err and errno; returns NULL. */

static dsa_seq_t *
dsa_sched_refuse(int code, dsa_err_t *err, const char *reason)
{
    (void) dsa_error(err, "%s", reason);
    errno = code;

    return NULL;
}


static int
dsa_sched_check(const dsa_sched_t *s, const dsa_sched_request_t *r,
    dsa_err_t *err)
{
    if (r->n_tokens == 0) {
        return dsa_error(err, "the prompt is empty; expected 1 token or more");
    }

    if (r->n_resume >= r->n_tokens) {
        return dsa_error(err, "%u of %u tokens are resumed; expected at least "
                         "1 token of the prompt", r->n_resume, r->n_tokens);
    }

    if (r->max_tokens <= r->n_resume) {
        return dsa_error(err, "max_tokens is %u; expected more than the %u "
                         "resumed tokens", r->max_tokens, r->n_resume);
    }

    if (r->weight == 0) {
        return dsa_error(err, "the tenant's weight is 0; expected 1 or more");
    }

    if ((uint64_t) r->n_tokens - r->n_resume + r->max_tokens
        > s->conf.context)
    {
        return dsa_error(err, "the prompt has %u tokens and max_tokens is %u; "
                         "expected at most %u together",
                         r->n_tokens - r->n_resume, r->max_tokens,
                         s->conf.context);
    }

    return DSA_OK;
}


/*
 * Checks whether the request may wait.  When the queue as a whole is full,
 * *crowded is the tenant that loses a request, otherwise NULL.
 */

static int
dsa_sched_room(const dsa_sched_t *s, const dsa_sched_request_t *r,
    dsa_tenant_t **crowded)
{
    uint32_t             open, n;
    const dsa_tenant_t  *t;

    *crowded = NULL;
    t = dsa_policy_find(&s->policy, r->tenant);
    n = t != NULL ? t->n_waiting : 0;

    /* requests that the next step can admit do not count as waiting */

    open = s->conf.max_running - s->n_live;

    if (n >= (uint64_t) s->conf.max_waiting_per_tenant + open) {
        return DSA_AGAIN;
    }

    if (s->n_waiting < (uint64_t) s->conf.max_waiting + open) {
        return DSA_OK;
    }

    *crowded = dsa_policy_crowded(&s->policy, (double) (n + 1) / r->weight);

    /* can be the tenant itself, because its weight changes with the request */

    return *crowded != NULL && *crowded != t ? DSA_OK : DSA_AGAIN;
}


/* A sequence without tokens and tenant; NULL: out of memory. */

static dsa_seq_t *
dsa_sched_sequence(dsa_sched_t *s, const dsa_sched_request_t *r)
{
    uint32_t    i;
    dsa_seq_t  *seq;

    seq = calloc(1, sizeof(dsa_seq_t));

    if (seq == NULL) {
        return NULL;
    }

    seq->id = r->id;
    seq->n_tokens = r->n_tokens;
    seq->tokens_size = r->n_tokens;
    seq->n_prompt = r->n_tokens - r->n_resume;
    seq->max_tokens = r->max_tokens;
    seq->completion = r->n_resume;
    seq->ignore_eos = r->ignore_eos;
    seq->sampling = r->sampling;
    seq->mask = r->mask;
    seq->owner = r->owner;
    seq->submit_us = dsa_sched_now(s);

    if (s->backend->max_outputs > 1) {
        seq->draft = r->draft;
    }

    seq->needs_last = seq->sampling.frequency_penalty != 0
                      || seq->sampling.presence_penalty != 0
                      || seq->draft != NULL || seq->mask != NULL;

    for (i = 0; i < DSA_SCHED_DEPTH; i++) {
        seq->entry[i] = DSA_NO_BATCH_ENTRY;
    }

    memcpy(seq->salt, r->tenant, sizeof(seq->salt));

    return seq;
}


/* Allocates what a sequence needs beside its tokens, and hashes its pages. */

static int
dsa_sched_prepare(dsa_sched_t *s, dsa_seq_t *seq)
{
    if (seq->mask != NULL) {
        seq->masks = calloc((size_t) s->backend->max_outputs
                            * dsa_mask_words(s->backend->config.vocab_size),
                            sizeof(uint32_t));

        if (seq->masks == NULL) {
            return DSA_ERROR;
        }
    }

    /* one token more: a step may be made before the first sample is known */

    if (dsa_seq_reserve(seq, dsa_pages_of(seq->n_tokens + 1)) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_seq_digests(seq, s->digester, s->backend->fingerprint,
                           seq->n_tokens / DSA_PAGE_TOKENS);
}


/* Queues a sequence as the last of its tenant, or as the first. */

static void
dsa_sched_wait(dsa_sched_t *s, dsa_seq_t *seq, int first)
{
    dsa_tenant_t  *t;

    t = seq->tenant;

    if (first) {
        dsa_seq_push_first(&t->waiting, seq);

    } else {
        dsa_seq_push_last(&t->waiting, seq);
    }

    seq->state = DSA_SEQ_WAITING;
    t->n_new += !seq->started;
    t->n_waiting++;
    s->n_waiting++;
}


static void
dsa_sched_drop(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_log_debug("request %u.%u: dropped from the full queue",
                  dsa_sched_log_id(seq));

    dsa_sched_stop(s, seq);
    s->handler.dropped(seq->owner);
    dsa_sched_free(s, seq);
}


/*
 * A sequence fits when a batch slot is free, and pages for all of its tokens
 * and one page more for each running sequence.  Without these, the next tokens
 * of running sequences would soon preempt what was admitted.
 */

static int
dsa_sched_fits(dsa_sched_t *s, const dsa_seq_t *seq)
{
    int       in_use;
    uint32_t  i, n, need;

    if (s->n_live == s->conf.max_running) {
        return 0;
    }

    need = dsa_pages_of(seq->n_tokens);

    if (need + s->n_live <= dsa_pages_free(s->pages)) {
        return 1;
    }

    /* pages of the prefix that running sequences use are not taken */

    n = (seq->n_tokens - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        if (dsa_pages_peek(s->pages, &seq->digest[i], &in_use)
            == DSA_NO_PAGE)
        {
            break;
        }

        need -= (uint32_t) in_use;
    }

    return need + s->n_live <= dsa_pages_free(s->pages);
}


int
dsa_sched_admit(dsa_sched_t *s, dsa_tenant_t *t)
{
    uint32_t    i, n, page;
    dsa_seq_t  *seq;

    seq = t->waiting.first;

    if (seq == NULL || !dsa_policy_may_admit(&s->policy, t)
        || !dsa_sched_fits(s, seq))
    {
        return DSA_AGAIN;
    }

    n = (seq->n_tokens - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        page = dsa_pages_find(s->pages, &seq->digest[i]);

        if (page == DSA_NO_PAGE) {
            break;
        }

        dsa_seq_add_page(seq, page);
    }

    seq->computed = i * DSA_PAGE_TOKENS;
    seq->scheduled = seq->computed;
    seq->published = i;

    for (n = dsa_pages_of(seq->n_tokens); i < n; i++) {
        dsa_seq_add_page(seq, dsa_pages_alloc(s->pages));
    }

    dsa_seq_remove(&t->waiting, seq);
    t->n_new -= !seq->started;
    t->n_waiting--;
    s->n_waiting--;

    dsa_seq_push_last(&t->prefill, seq);
    seq->state = DSA_SEQ_PREFILL;
    t->n_prefill++;
    t->n_running++;

    dsa_sched_compact(s);

    assert(s->n_running < s->conf.max_running);

    seq->index = s->n_running;
    s->running[s->n_running++] = seq;
    s->n_live++;

    dsa_policy_admitted(&s->policy, t);

    if (!seq->started) {
        seq->started = 1;
        seq->start_us = dsa_sched_now(s);
    }

    dsa_sched_count(s, seq, 1);

    dsa_log_debug("request %u.%u: admitted with %u tokens, %u of them cached",
                  dsa_sched_log_id(seq), seq->n_tokens, seq->computed);

    return DSA_OK;
}


void
dsa_sched_preempt(dsa_sched_t *s, dsa_seq_t *seq)
{
    dsa_sched_stop(s, seq);
    dsa_seq_rollback(seq, s->pages, seq->n_tokens - seq->n_draft);

    dsa_log_debug("request %u.%u: preempted with %u tokens, %u of them "
                  "computed", dsa_sched_log_id(seq), seq->n_tokens,
                  seq->computed);

    seq->n_draft = 0;
    seq->computed = 0;
    seq->scheduled = 0;
    seq->scheduled_samples = 0;
    seq->published = 0;

    dsa_sched_wait(s, seq, 1);
    s->stats.preemptions++;
}


void
dsa_sched_reclaim(dsa_sched_t *s)
{
    int            any;
    uint32_t       need, entry;
    dsa_seq_t     *seq, *victim;
    dsa_tenant_t  *from, *to;

    to = dsa_policy_gaining(&s->policy);

    if (to == NULL) {
        return;
    }

    any = 0;
    seq = to->waiting.first;
    need = dsa_pages_of(seq->n_tokens);

    while (!dsa_sched_fits(s, seq)) {
        from = dsa_policy_heaviest(&s->policy);

        if (from == NULL) {
            break;
        }

        victim = dsa_sched_newest(s, from);

        if (!dsa_policy_may_preempt(&s->policy, from, victim->n_pages, to,
                                    need))
        {
            break;
        }

        entry = *dsa_sched_entry(s, victim);

        if (entry != DSA_NO_BATCH_ENTRY) {

            /* its tokens of this step will not be computed */

            dsa_policy_refund(from, s->next->batch[entry].n_input);
        }

        dsa_sched_preempt(s, victim);
        any = 1;
    }

    if (any && dsa_sched_admit(s, to) != DSA_OK) {
        dsa_policy_reserve(&s->policy, to);
    }
}


dsa_seq_t *
dsa_sched_newest(const dsa_sched_t *s, const dsa_tenant_t *t)
{
    uint32_t  i;

    for (i = s->n_running; i-- != 0; /* void */) {
        if (s->running[i] != NULL && s->running[i]->tenant == t) {
            return s->running[i];
        }
    }

    return NULL;
}
