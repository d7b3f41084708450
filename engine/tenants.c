
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/scheduler_parts.h"


static int dsa_sched_ready(dsa_sched_t *s, dsa_tenant_t *t);
static double dsa_sched_share(const dsa_sched_t *s, const dsa_tenant_t *t,
    double running, double pages);


dsa_tenant_t *
dsa_sched_tenant(dsa_sched_t *s, const uint8_t id[32], uint32_t weight)
{
    uint32_t        hash;
    dsa_tenant_t   *t, **bucket;

    memcpy(&hash, id, sizeof(hash));
    bucket = &s->bucket[hash & (DSA_TENANT_BUCKETS - 1)];

    for (t = *bucket; t != NULL; t = t->chain) {
        if (memcmp(t->id, id, sizeof(t->id)) == 0) {
            return t;
        }
    }

    t = calloc(1, sizeof(dsa_tenant_t));

    if (t == NULL) {
        return NULL;
    }

    memcpy(t->id, id, sizeof(t->id));
    t->weight = weight;

    t->chain = *bucket;
    *bucket = t;

    if (s->turn == NULL) {
        t->prev = t;
        t->next = t;
        s->turn = t;

    } else {

        /* behind all others */

        t->next = s->turn;
        t->prev = s->turn->prev;
        t->prev->next = t;
        t->next->prev = t;
    }

    return t;
}


void
dsa_sched_leave(dsa_sched_t *s, dsa_tenant_t *t)
{
    uint32_t        hash;
    dsa_tenant_t  **at;

    if (--t->seqs != 0) {
        return;
    }

    memcpy(&hash, t->id, sizeof(hash));
    at = &s->bucket[hash & (DSA_TENANT_BUCKETS - 1)];

    while (*at != t) {
        at = &(*at)->chain;
    }

    *at = t->chain;

    if (s->turn == t) {
        s->turn = t->next != t ? t->next : NULL;
    }

    t->next->prev = t->prev;
    t->prev->next = t->next;

    if (s->claim == t) {
        s->claim = NULL;
    }

    free(t);
}


/*
 * Who gives up a sequence still holds no less than who takes has then, so
 * nothing goes to and fro.
 */

void
dsa_sched_reclaim(dsa_sched_t *s)
{
    int            any;
    double         share, least;
    uint32_t       need;
    dsa_seq_t     *seq;
    dsa_tenant_t  *t, *taker, *giver;

    if (s->claim != NULL && s->claim->waiting.first == NULL) {
        s->claim = NULL;
    }

    taker = s->claim;
    least = 0;
    t = s->turn;

    do {
        if (s->claim == NULL && t->waiting.first != NULL) {
            share = dsa_sched_share(s, t, 0, 0);

            if (taker == NULL || share < least) {
                taker = t;
                least = share;
            }
        }

        t = t->next;
    } while (t != s->turn);

    if (taker == NULL) {
        return;
    }

    any = 0;
    need = dsa_pages_of(taker->waiting.first->n_tokens);

    while (!dsa_sched_fits(s, taker->waiting.first)) {
        giver = dsa_sched_heaviest(s);

        if (giver == NULL || giver == taker) {
            break;
        }

        seq = dsa_sched_newest(s, giver);

        if (dsa_sched_share(s, giver, -1, -(double) seq->n_pages)
            < dsa_sched_share(s, taker, 1, need))
        {
            break;
        }

        if (seq->entry != DSA_NO_ENTRY) {

            /* its row of this step is not computed then */

            giver->credit += s->batch[seq->entry].n;
        }

        dsa_sched_preempt(s, seq);
        any = 1;
    }

    if (!any) {
        return;
    }

    if (dsa_sched_admit(s, taker) != DSA_OK) {
        s->claim = taker;
    }
}


void
dsa_sched_settle(dsa_sched_t *s, int admitted)
{
    int            backlog;
    dsa_tenant_t  *t;

    backlog = s->n_waiting != 0;
    t = s->turn;

    do {
        if (t->prefill.first != NULL) {
            backlog = 1;
        }

        if (t->waiting.first == NULL) {
            t->passed_by = 0;

        } else if (admitted && t->checked && !t->ready
                   && s->n_live < s->conf.max_running
                   && ++t->passed_by >= DSA_SCHED_PATIENCE
                   && s->claim == NULL)
        {
            s->claim = t;
        }

        t = t->next;
    } while (t != s->turn);

    if (backlog) {
        return;
    }

    /* where nobody had to wait nobody owes anything */

    do {
        t->credit = 0;
        t = t->next;
    } while (t != s->turn);
}


/*
 * When nobody has credit a number of rounds passes at once, as few as give
 * one tenant with work a row.  Credit does not pile up with who cannot use it.
 */

dsa_tenant_t *
dsa_sched_turn(dsa_sched_t *s)
{
    double         rounds, most, quantum;
    uint32_t       weight;
    dsa_tenant_t  *t;

    for ( ;; ) {
        rounds = 0;
        weight = 1;
        t = s->turn;

        do {
            if (dsa_sched_ready(s, t) && t->credit >= 1) {
                s->turn = t;
                return t;
            }

            if (t->weight > weight) {
                weight = t->weight;
            }

            t = t->next;
        } while (t != s->turn);

        do {
            if (t->ready) {
                quantum = DSA_SCHED_QUANTUM * (double) t->weight / weight;
                most = ceil((1 - t->credit) / quantum);

                if (rounds == 0 || most < rounds) {
                    rounds = most;
                }
            }

            t = t->next;
        } while (t != s->turn);

        if (rounds == 0) {
            return NULL;
        }

        do {
            quantum = DSA_SCHED_QUANTUM * (double) t->weight / weight;
            most = t->ready || t->waiting.first != NULL ? 64 * quantum : quantum;

            if (t->credit < most) {
                t->credit = fmin(t->credit + rounds * quantum, most);
            }

            t = t->next;
        } while (t != s->turn);
    }
}


/* Work that could get a row now; found out once a step. */

static int
dsa_sched_ready(dsa_sched_t *s, dsa_tenant_t *t)
{
    if (!t->checked) {
        t->checked = 1;
        t->ready = t->prefill.first != NULL
                   || (t->waiting.first != NULL
                       && (s->claim == NULL || s->claim == t)
                       && dsa_sched_fits(s, t->waiting.first));
    }

    return (int) t->ready;
}


/* Of sequences or of pages, whatever is more, by weight. */

static double
dsa_sched_share(const dsa_sched_t *s, const dsa_tenant_t *t, double running,
    double pages)
{
    running = (t->running + running) / s->conf.max_running;
    pages = (t->pages + pages) / dsa_pages_total(s->pages);

    return fmax(running, pages) / t->weight;
}


dsa_tenant_t *
dsa_sched_heaviest(const dsa_sched_t *s)
{
    double         share, most;
    dsa_tenant_t  *t, *heaviest;

    heaviest = NULL;
    most = 0;
    t = s->turn;

    do {
        if (t->running != 0) {
            share = dsa_sched_share(s, t, 0, 0);

            if (heaviest == NULL || share > most) {
                heaviest = t;
                most = share;
            }
        }

        t = t->next;
    } while (t != s->turn);

    return heaviest;
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
