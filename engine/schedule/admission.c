
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
static int dsa_sched_unsplit(dsa_sched_t *s, uint32_t rank);
static uint32_t dsa_sched_gaining_rank(const dsa_sched_t *s,
    const dsa_tenant_t *to, uint32_t need);
static int dsa_sched_may_evict(const dsa_sched_t *s, uint32_t rank,
    const dsa_tenant_t *to, uint32_t need);
static dsa_seq_t *dsa_sched_newest(const dsa_sched_t *s,
    const dsa_tenant_t *t, uint32_t rank);


dsa_seq_t *
dsa_sched_add(dsa_sched_t *s, const dsa_sched_request_t *r, dsa_err_t *err)
{
    int            code;
    dsa_seq_t     *seq;
    dsa_tenant_t  *t, *crowded;

    if (r->rollout != NULL && !s->backend->rollouts) {
        return dsa_sched_refuse(ENOTSUP, err, "the request has a rollout, and "
                                "the backend reports none");
    }

    if (dsa_sched_check(s, r, err) != DSA_OK) {
        errno = EINVAL;
        return NULL;
    }

    code = dsa_sched_room(s, r, &crowded);

    if (code != 0) {
        return dsa_sched_refuse(code, err, "too many requests are waiting "
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

    t = dsa_policy_tenant(&s->policy, r->tenant, r->priority, r->weight);

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
    dsa_sched_probe(s, seq);
    s->stuck = 0;

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

    if (r->priority >= DSA_PRIORITIES) {
        return dsa_error(err, "the priority is %u; expected less than %d",
                         (unsigned) r->priority, DSA_PRIORITIES);
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
 * *crowded is the tenant whose newest request is dropped, otherwise NULL.
 * Returns 0, or an errno of dsa_sched_add(): a tenant that already waits has
 * itself to blame, a tenant with its first request has not.
 */

static int
dsa_sched_room(const dsa_sched_t *s, const dsa_sched_request_t *r,
    dsa_tenant_t **crowded)
{
    uint32_t  i, open, n;

    *crowded = NULL;
    n = dsa_policy_waiting(&s->policy, r->tenant);

    /* requests that the next step can admit do not count as waiting */

    open = s->indices;

    for (i = 0; i < s->ranks; i++) {
        open -= s->rank[i].n_live;
    }

    if (n >= (uint64_t) s->conf.max_waiting_per_tenant + open) {
        return EDQUOT;
    }

    if (s->n_waiting < (uint64_t) s->conf.max_waiting + open) {
        return 0;
    }

    *crowded = dsa_policy_crowded(&s->policy, (double) (n + 1) / r->weight);

    /* can be the tenant itself, because its weight changes with the request */

    if (*crowded != NULL && !dsa_policy_is(*crowded, r->tenant)) {
        return 0;
    }

    return n != 0 ? EDQUOT : EAGAIN;
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
    seq->private = r->private;
    seq->n_tokens = r->n_tokens;
    seq->tokens_size = r->n_tokens;
    seq->n_prompt = r->n_tokens - r->n_resume;
    seq->max_tokens = r->max_tokens;
    seq->completion = r->n_resume;
    seq->ignore_eos = r->ignore_eos;
    seq->sampling = r->sampling;
    seq->biases = r->biases;
    seq->mask = r->mask;
    seq->mask_at = r->mask_at;
    seq->rollout = r->rollout;
    seq->reports = r->reports;
    seq->ready = r->ready;
    seq->owner = r->owner;
    seq->submit_us = dsa_sched_now(s);

    if (s->backend->max_outputs > 1) {
        seq->draft = r->draft;
    }

    seq->needs_last = seq->draft != NULL
                      || (seq->mask != NULL && seq->mask_at == 0);

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
        seq->mask_words = dsa_mask_words(s->backend->config.vocab_size);
        seq->masks = calloc((size_t) s->backend->max_outputs
                            * seq->mask_words, sizeof(uint32_t));

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

    dsa_log_debug("request %u.%u: waits%s, %u tokens", dsa_sched_log_id(seq),
                  first ? " in front" : "", seq->n_tokens);

    if (first) {
        dsa_seq_push_first(&t->waiting, seq);

    } else {
        dsa_seq_push_last(&t->waiting, seq);
    }

    seq->state = DSA_SEQ_WAITING;
    t->n_new += !seq->started;
    t->n_waiting++;
    t->waiting_tokens += seq->n_tokens;
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


int
dsa_sched_admit(dsa_sched_t *s, dsa_tenant_t *t, uint32_t ranks,
    dsa_err_t *err)
{
    uint32_t    n, rank;
    dsa_seq_t  *seq;

    seq = t->waiting.first;

    if (seq == NULL || dsa_sched_probing(seq)) {
        return DSA_AGAIN;
    }

    rank = dsa_sched_place(s, seq);

    if (rank == DSA_NO_RANK) {
        return DSA_AGAIN;
    }

    if ((ranks >> rank & 1) == 0) {
        t->deferred = s->made;
        return DSA_AGAIN;
    }

    dsa_sched_assign(s, seq, rank);

    dsa_seq_remove(&t->waiting, seq);
    t->n_new -= !seq->started;
    t->n_waiting--;
    t->waiting_tokens -= seq->n_tokens;
    s->n_waiting--;

    dsa_sched_enter(s, seq);
    dsa_policy_admitted(&s->policy, t);

    if (!seq->started) {
        seq->started = 1;
        seq->start_us = dsa_sched_now(s);
    }

    n = dsa_sched_count(s, seq, 1);
    s->stats.tier[DSA_TIER_GPU].hit_tokens += n;

    dsa_log_debug("request %u.%u: admitted with %u tokens, %u of them cached, "
                  "weight %u, priority %u", dsa_sched_log_id(seq),
                  seq->n_tokens, seq->computed, t->weight, t->priority);

    if (seq->fetch != NULL) {
        dsa_log_debug("request %u.%u: fetches %u pages",
                      dsa_sched_log_id(seq), seq->fetch_pages);
    }

    if (s->ranks > 1) {
        dsa_log_debug("request %u.%u: runs on rank %u%s, %u pages copied",
                      dsa_sched_log_id(seq), rank, seq->copies != NULL
                      ? " with its prompt split" : "", s->n_copy);
    }

    return dsa_sched_copy(s, seq, err);
}


void
dsa_sched_evict(dsa_sched_t *s, uint32_t rank, const dsa_tenant_t *to)
{
    if (!dsa_sched_unsplit(s, rank)) {
        dsa_sched_preempt(s, dsa_sched_newest(s,
                                 dsa_policy_heaviest(&s->policy, rank, to),
                                 rank));
    }
}


/*
 * Ends the split of a prompt that belongs on another rank, so that its pages
 * on this rank are free.  0: there is none.
 */

static int
dsa_sched_unsplit(dsa_sched_t *s, uint32_t rank)
{
    uint32_t    i;
    dsa_seq_t  *seq;

    if (s->n_split == 0) {
        return 0;
    }

    for (i = s->n_running; i-- != 0; /* void */) {
        seq = s->running[i];

        if (seq != NULL && seq->copies != NULL && seq->rank != rank) {
            dsa_log_debug("request %u.%u: its prompt is no longer split",
                          dsa_sched_log_id(seq));
            dsa_sched_join(s, seq);
            return 1;
        }
    }

    return 0;
}


void
dsa_sched_preempt(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  entry;

    entry = *dsa_sched_entry(s, seq);

    if (entry != DSA_NO_BATCH_ENTRY) {

        /* its tokens of this step will not be computed */

        dsa_policy_refund(seq->tenant, s->next->batch[entry].n_input);
    }

    dsa_sched_stop(s, seq);
    dsa_seq_rollback(seq, s->pages, seq->n_tokens - seq->n_draft, 0);

    dsa_log_debug("request %u.%u: preempted with %u tokens, %u of them "
                  "computed", dsa_sched_log_id(seq), seq->n_tokens,
                  seq->computed);

    seq->n_draft = 0;
    seq->n_ahead = 0;
    seq->n_proposed = 0;
    seq->computed = 0;
    seq->scheduled = 0;
    seq->scheduled_samples = 0;
    seq->published = 0;

    dsa_sched_wait(s, seq, 1);
    s->stats.preemptions++;
}


int
dsa_sched_reclaim(dsa_sched_t *s, dsa_err_t *err)
{
    int            rc;
    uint32_t       need, rank;
    dsa_seq_t     *seq;
    dsa_tenant_t  *to;

    to = dsa_policy_gaining(&s->policy);

    if (to == NULL) {
        return DSA_OK;
    }

    seq = to->waiting.first;

    if (dsa_sched_probing(seq)) {
        return DSA_OK;
    }

    for (rank = 0; rank < s->ranks; rank++) {
        do {
            if (dsa_sched_fits(s, seq, rank)) {
                return DSA_OK;
            }
        } while (dsa_sched_unsplit(s, rank));
    }

    need = dsa_pages_of(seq->n_tokens);
    rank = dsa_sched_gaining_rank(s, to, need);

    if (rank == DSA_NO_RANK) {
        return DSA_OK;
    }

    /* pages that are being saved will be free soon, without a preemption */

    for ( ;; ) {
        rc = dsa_sched_wait_saves(s, rank, err);

        if (rc == DSA_ERROR) {
            return DSA_ERROR;
        }

        if (rc == DSA_AGAIN) {
            dsa_sched_evict(s, rank, to);
        }

        if (dsa_sched_fits(s, seq, rank)
            || !dsa_sched_may_evict(s, rank, to, need))
        {
            break;
        }
    }

    rc = dsa_sched_admit(s, to, UINT32_MAX, err);

    if (rc == DSA_AGAIN) {
        dsa_policy_reserve(&s->policy, to, rank);
        rc = DSA_OK;
    }

    return rc;
}


/*
 * The rank with the lowest load among those where a sequence may be preempted
 * in favor of a request of `to` that needs so many pages.
 */

static uint32_t
dsa_sched_gaining_rank(const dsa_sched_t *s, const dsa_tenant_t *to,
    uint32_t need)
{
    uint32_t  i, rank, load, least;

    rank = DSA_NO_RANK;
    least = 0;

    for (i = 0; i < s->ranks; i++) {
        if (!dsa_sched_may_evict(s, i, to, need)) {
            continue;
        }

        load = dsa_sched_load(s, i);

        if (rank == DSA_NO_RANK || load < least) {
            rank = i;
            least = load;
        }
    }

    return rank;
}


/* 1 if dsa_sched_evict() may take pages of a rank in favor of this request. */

static int
dsa_sched_may_evict(const dsa_sched_t *s, uint32_t rank,
    const dsa_tenant_t *to, uint32_t need)
{
    const dsa_seq_t     *victim;
    const dsa_tenant_t  *from;

    from = dsa_policy_heaviest(&s->policy, rank, to);

    if (from == NULL) {
        return 0;
    }

    victim = dsa_sched_newest(s, from, rank);

    return dsa_policy_may_preempt(&s->policy, from, victim->n_pages, to, need);
}


/* The running sequence of a tenant on a rank that was admitted last. */

static dsa_seq_t *
dsa_sched_newest(const dsa_sched_t *s, const dsa_tenant_t *t, uint32_t rank)
{
    uint32_t    i;
    dsa_seq_t  *seq;

    for (i = s->n_running; i-- != 0; /* void */) {
        seq = s->running[i];

        if (seq != NULL && seq->tenant == t && dsa_seq_is_on(seq, rank)) {
            return seq;
        }
    }

    return NULL;
}
