
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/log.h"
#include "engine/schedule/state.h"


/*
 * Weights that are replaced while sequences wait and run.  Pages of the old
 * weights need not be removed: the digest of a page depends on the backend's
 * fingerprint, which is another one afterwards, so that no sequence finds them,
 * and they are overwritten like other pages that no sequence uses.
 */

static int dsa_sched_reloads(const dsa_sched_t *s, dsa_err_t *err);
static int dsa_sched_quiet(dsa_sched_t *s, dsa_err_t *err);
static int dsa_sched_again(dsa_sched_t *s, dsa_err_t *err);


int
dsa_sched_reload(dsa_sched_t *s, dsa_err_t *err)
{
    int         rc;
    uint32_t    i;
    dsa_seq_t  *seq;

    if (dsa_sched_reloads(s, err) != DSA_OK) {
        return DSA_AGAIN;
    }

    if (dsa_sched_quiet(s, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = s->backend->reload(s->backend, err);

    if (rc != DSA_OK) {
        return rc;
    }

    /* the newest one first, so that each tenant's oldest one is the first */

    for (i = s->n_running; i-- != 0; /* void */) {
        seq = s->running[i];

        if (seq != NULL) {
            dsa_sched_preempt(s, seq);
        }
    }

    dsa_sched_compact(s);
    s->stuck = 0;

    return dsa_sched_again(s, err);
}


/*
 * Checks that the weights can be replaced at all.  The tiers behind host memory
 * have pages of other processes, too, and keep the fingerprint with which they
 * were opened.
 */

static int
dsa_sched_reloads(const dsa_sched_t *s, dsa_err_t *err)
{
    uint32_t  i;

    if (s->backend->reload == NULL) {
        return dsa_error(err, "the backend has no weights that could be "
                         "replaced; expected \"backend cpu\" or \"backend "
                         "cuda\" with a checkpoint, on one host");
    }

    for (i = DSA_TIER_SLOWER; i < DSA_TIERS; i++) {
        if (s->conf.tier[i].submit != NULL) {
            return dsa_error(err, "weights cannot be replaced with "
                             "\"redis_cache\"; restart the engine instead");
        }
    }

    return DSA_OK;
}


/* Waits until no step and no move is in flight. */

static int
dsa_sched_quiet(dsa_sched_t *s, dsa_err_t *err)
{
    while (s->in_flight != 0) {
        if (dsa_sched_collect(s, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    while (s->tiers != NULL && dsa_tiers_moving(s->tiers) != 0) {
        if (dsa_tiers_poll(s->tiers, 1, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* Hashes the pages of all sequences, which wait now, with the fingerprint. */

static int
dsa_sched_again(dsa_sched_t *s, dsa_err_t *err)
{
    dsa_seq_t     *seq;
    dsa_tenant_t  *t;

    t = s->policy.first;

    if (t == NULL) {
        return DSA_OK;
    }

    do {
        for (seq = t->waiting.first; seq != NULL; seq = seq->next) {
            dsa_sched_unload(s, seq);
            seq->n_digests = 0;

            if (dsa_seq_digests(seq, s->digester, s->backend->fingerprint,
                                seq->n_tokens / DSA_PAGE_TOKENS)
                != DSA_OK)
            {
                return dsa_error(err, "out of memory");
            }

            dsa_log_debug("request %u.%u: goes on with other weights",
                          dsa_sched_log_id(seq));
        }

        t = t->next;
    } while (t != s->policy.first);

    return DSA_OK;
}
