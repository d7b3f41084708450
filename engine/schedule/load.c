
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/schedule/state.h"


/*
 * Sequences whose prefix is in a slower tier.  A request waits in the queue
 * until these tiers have counted the pages that they have, at most
 * DSA_LOAD_PROBE_US: the reads of other requests may be before it in the queue
 * of a tier, and their number is not limited by what this request could gain.
 * When it is admitted, the pages of its prefix that no rank has are fetched
 * into its block table.  It has a batch index meanwhile, but is in no step, and
 * other sequences go on.
 *
 * A fetch must not take longer than computing the same tokens.  Each page that
 * has arrived earns the time of computing it, t, and the fetch may spend 5 % of
 * the time of computing all n pages in advance:
 *
 *     elapsed <= t * (ready + 0.05 * n)
 *
 * When this no longer holds, pages that are still to be read are computed
 * instead.  Then all took at most elapsed + t * (n - ready) <= 1.05 * t * n.
 * Example: 512 pages of a prompt at 20 us a token are worth 655 ms; a server
 * that stops at once costs 33 ms, and one that stops after 100 pages is
 * abandoned 160 ms after the fetch began.
 *
 * Before the first prompt of a replica was computed, t is not known.  Pages are
 * read then, and a read is abandoned as if t were DSA_LOAD_TOKEN_US, which is
 * more than on any GPU.
 */

#define DSA_LOAD_ADVANCE    0.05
#define DSA_LOAD_PROBE_US   100000
#define DSA_LOAD_TOKEN_US   500


static uint64_t dsa_sched_probe_due(const dsa_sched_t *s);
static uint64_t dsa_sched_load_limit(const dsa_sched_t *s,
    const dsa_seq_t *seq);
static void dsa_sched_expected(const dsa_seq_t *seq, uint32_t prefix,
    uint32_t expected[DSA_TIERS]);
static void dsa_sched_load_ended(dsa_sched_t *s, dsa_seq_t *seq);


void
dsa_sched_probe(dsa_sched_t *s, dsa_seq_t *seq)
{
    int            ready;
    uint32_t       i, n;
    dsa_host_at_t  at;

    if (s->tiers == NULL || seq->private) {
        return;
    }

    n = (seq->n_tokens - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        if (dsa_pages_ready(s->pages, &seq->digest[i]) != 0) {
            continue;
        }

        if (!dsa_pages_host(s->pages, DSA_ANY_HOST, &seq->digest[i], &at,
                            &ready)
            || !ready)
        {
            break;
        }
    }

    if (i != n) {
        seq->probe = dsa_tiers_probe(s->tiers, &seq->digest[i], n - i);
        seq->probe_first = i;
    }
}


int
dsa_sched_probing(const dsa_seq_t *seq)
{
    return seq->probe != NULL && !seq->probe->done;
}


/*
 * The first requests of the tenants are admitted without the tiers for which
 * they waited too long; the ones behind them do not wait for these yet.
 */

void
dsa_sched_probes(dsa_sched_t *s)
{
    uint64_t       now;
    dsa_seq_t     *seq;
    dsa_tenant_t  *t;

    t = s->policy.first;

    if (t == NULL || dsa_tiers_probing(s->tiers) == 0) {
        return;
    }

    now = dsa_sched_now(s);

    do {
        seq = t->waiting.first;

        if (seq != NULL && dsa_sched_probing(seq)
            && now >= seq->submit_us + DSA_LOAD_PROBE_US)
        {
            dsa_tiers_end_probe(s->tiers, seq->probe);
        }

        t = t->next;
    } while (t != s->policy.first);
}


static uint64_t
dsa_sched_probe_due(const dsa_sched_t *s)
{
    uint64_t             due, limit;
    const dsa_seq_t     *seq;
    const dsa_tenant_t  *t;

    due = UINT64_MAX;
    t = s->policy.first;

    if (t == NULL || s->tiers == NULL || dsa_tiers_probing(s->tiers) == 0) {
        return due;
    }

    do {
        seq = t->waiting.first;

        if (seq != NULL && dsa_sched_probing(seq)) {
            limit = seq->submit_us + DSA_LOAD_PROBE_US;
            due = limit < due ? limit : due;
        }

        t = t->next;
    } while (t != s->policy.first);

    return due;
}


/*
 * How many pages from the page prefix on each slower tier is expected to have.
 */

static void
dsa_sched_expected(const dsa_seq_t *seq, uint32_t prefix,
    uint32_t expected[DSA_TIERS])
{
    uint32_t  i, end;

    memset(expected, 0, DSA_TIERS * sizeof(uint32_t));

    for (i = DSA_TIER_SLOWER; seq->probe != NULL && i < DSA_TIERS; i++) {
        end = seq->probe_first + seq->probe->found[i];
        expected[i] = end > prefix ? end - prefix : 0;
    }
}


uint32_t
dsa_sched_available(dsa_sched_t *s, const dsa_seq_t *seq, uint32_t prefix)
{
    uint32_t  n, expected[DSA_TIERS];

    n = (seq->n_tokens - 1) / DSA_PAGE_TOKENS;

    if (s->tiers == NULL || seq->private || prefix >= n) {
        return 0;
    }

    dsa_sched_expected(seq, prefix, expected);

    return dsa_tiers_available(s->tiers, seq->rank, &seq->digest[prefix],
                               n - prefix, expected, s->cost.token);
}


void
dsa_sched_fetch(dsa_sched_t *s, dsa_seq_t *seq, uint32_t n)
{
    uint32_t  i, first, *target, expected[DSA_TIERS];

    first = seq->computed / DSA_PAGE_TOKENS;
    target = malloc((size_t) s->ranks * n * sizeof(uint32_t));

    if (target == NULL) {
        return;
    }

    memset(target, 0xff, (size_t) s->ranks * n * sizeof(uint32_t));

    for (i = 0; i < s->ranks; i++) {
        if (dsa_seq_is_on(seq, i)) {
            memcpy(target + (size_t) i * n, dsa_seq_table(seq, i) + first,
                   n * sizeof(uint32_t));
        }
    }

    dsa_sched_expected(seq, first, expected);

    seq->fetch = dsa_tiers_fetch(s->tiers, seq->id, &seq->digest[first],
                                 target, n, expected);

    free(target);

    if (seq->fetch != NULL) {
        seq->fetch->begin_us = dsa_sched_now(s);
        seq->fetch_pages = n;
        seq->fetch_after = s->ended + s->in_flight;
    }
}


void
dsa_sched_unload(dsa_sched_t *s, dsa_seq_t *seq)
{
    if (seq->probe != NULL) {
        dsa_tiers_unprobe(s->tiers, seq->probe);
        seq->probe = NULL;
    }

    if (seq->fetch != NULL) {
        dsa_tiers_unfetch(s->tiers, seq->fetch);
        seq->fetch = NULL;
    }
}


void
dsa_sched_loads(dsa_sched_t *s)
{
    uint32_t    i;
    uint64_t    now;
    dsa_seq_t  *seq;

    if (s->n_loading == 0) {
        return;
    }

    now = dsa_sched_now(s);

    for (i = 0; i < s->n_running; i++) {
        seq = s->running[i];

        if (seq == NULL || seq->state != DSA_SEQ_LOADING) {
            continue;
        }

        if (!dsa_fetch_ended(seq->fetch)) {

            /* computing would wait for these steps, too */

            if (s->ended < seq->fetch_after) {
                seq->fetch->begin_us = now;
            }

            if (now >= dsa_sched_load_limit(s, seq)) {
                dsa_tiers_abandon(s->tiers, seq->fetch);
            }
        }

        if (dsa_fetch_ended(seq->fetch)) {
            dsa_sched_load_ended(s, seq);
        }
    }
}


/* When the load of a sequence is too slow; UINT64_MAX: never. */

static uint64_t
dsa_sched_load_limit(const dsa_sched_t *s, const dsa_seq_t *seq)
{
    double  pages, token;

    if (seq->fetch->ready >= seq->fetch->n) {
        return UINT64_MAX;
    }

    token = s->cost.token != 0 ? s->cost.token : DSA_LOAD_TOKEN_US;
    pages = seq->fetch->ready + DSA_LOAD_ADVANCE * seq->fetch_pages;

    return seq->fetch->begin_us
           + (uint64_t) (pages * DSA_PAGE_TOKENS * token);
}


int
dsa_sched_wait_saves(dsa_sched_t *s, uint32_t rank, dsa_err_t *err)
{
    if (s->tiers == NULL) {
        return DSA_AGAIN;
    }

    return dsa_tiers_wait_saves(s->tiers, rank, err);
}


uint64_t
dsa_sched_load_due(const dsa_sched_t *s)
{
    uint32_t          i;
    uint64_t          due, limit;
    const dsa_seq_t  *seq;

    due = dsa_sched_probe_due(s);

    for (i = 0; s->n_loading != 0 && i < s->n_running; i++) {
        seq = s->running[i];

        if (seq != NULL && seq->state == DSA_SEQ_LOADING) {
            limit = dsa_sched_load_limit(s, seq);
            due = limit < due ? limit : due;
        }
    }

    return due;
}


static void
dsa_sched_load_ended(dsa_sched_t *s, dsa_seq_t *seq)
{
    uint32_t  i, n, found, from[DSA_TIERS];

    n = seq->fetch->ready;
    memcpy(from, seq->fetch->from, sizeof(from));

    dsa_log_debug("request %u.%u: %u of %u pages fetched, %u of them from "
                  "host memory", dsa_sched_log_id(seq), n, seq->fetch_pages,
                  from[DSA_TIER_HOST]);

    dsa_tiers_unfetch(s->tiers, seq->fetch);
    seq->fetch = NULL;

    seq->computed += n * DSA_PAGE_TOKENS;
    seq->scheduled = seq->computed;
    seq->published = seq->computed / DSA_PAGE_TOKENS;

    /*
     * Tokens that were counted before a preemption are not counted again.  Host
     * memory has what the tiers behind it leave.
     */

    n = dsa_sched_count(s, seq, 1);

    for (i = DSA_TIERS - 1; i >= DSA_TIER_HOST; i--) {
        found = from[i] * DSA_PAGE_TOKENS;

        if (found > n || i == DSA_TIER_HOST) {
            found = n;
        }

        n -= found;
        seq->found[i] += found;
        s->stats.tier[i].hit_tokens += found;
    }

    dsa_sched_entered(s, seq);
}
