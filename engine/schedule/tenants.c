
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/parts.h"


static void dsa_line_down(dsa_sched_t *s, uint32_t i);
static double dsa_sched_share(const dsa_sched_t *s, const dsa_tenant_t *t,
    double running, double pages);


dsa_tenant_t *
dsa_sched_find(const dsa_sched_t *s, const uint8_t id[32])
{
    uint32_t       hash;
    dsa_tenant_t  *t;

    memcpy(&hash, id, sizeof(hash));
    t = s->bucket[hash & (DSA_TENANT_BUCKETS - 1)];

    while (t != NULL && memcmp(t->id, id, sizeof(t->id)) != 0) {
        t = t->chain;
    }

    return t;
}


dsa_tenant_t *
dsa_sched_tenant(dsa_sched_t *s, const uint8_t id[32], uint32_t weight)
{
    uint32_t        hash, size;
    dsa_tenant_t   *t, **bucket, **line;

    t = dsa_sched_find(s, id);

    if (t != NULL) {
        return t;
    }

    memcpy(&hash, id, sizeof(hash));
    bucket = &s->bucket[hash & (DSA_TENANT_BUCKETS - 1)];

    if (s->n_tenants == s->line_size) {
        size = s->line_size * 2 + 16;
        line = realloc(s->line, size * sizeof(dsa_tenant_t *));

        if (line == NULL) {
            return NULL;
        }

        s->line = line;
        s->line_size = size;
    }

    t = calloc(1, sizeof(dsa_tenant_t));

    if (t == NULL) {
        return NULL;
    }

    s->n_tenants++;
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

    s->n_tenants--;
    free(t);
}


dsa_tenant_t *
dsa_sched_crowd(const dsa_sched_t *s, double least)
{
    double         share;
    dsa_tenant_t  *t, *crowd;

    crowd = NULL;
    t = s->turn;

    if (t == NULL) {
        return NULL;
    }

    do {
        share = (double) t->n_waiting / t->weight;

        /* preempted sequences are before those that were never started */

        if (share > least && t->waiting.last != NULL
            && !t->waiting.last->started)
        {
            crowd = t;
            least = share;
        }

        t = t->next;
    } while (t != s->turn);

    return crowd;
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
    uint32_t       need, entry;
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

        entry = *dsa_seq_entry(s, seq);

        if (entry != DSA_NO_ENTRY) {

            /* its row of this step is not computed then */

            giver->served -= (double) s->now->batch[entry].n / giver->weight;
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
    uint32_t       backlog;
    dsa_tenant_t  *t;

    backlog = 0;
    t = s->turn;

    do {
        backlog += t->waiting.first != NULL || t->prefill.first != NULL;

        if (t->waiting.first == NULL) {
            t->passed_by = 0;

        } else if (admitted && t->blocked
                   && ++t->passed_by >= DSA_SCHED_PATIENCE
                   && s->claim == NULL)
        {
            s->claim = t;
        }

        t = t->next;
    } while (t != s->turn);

    if (backlog > 1) {
        return;
    }

    /* where nobody waits for another nobody owes anything */

    do {
        t->served = 0;
        t = t->next;
    } while (t != s->turn);

    s->clock = 0;
}


void
dsa_sched_line_up(dsa_sched_t *s)
{
    uint32_t       i;
    dsa_tenant_t  *t;

    s->n_line = 0;
    t = s->turn;

    do {
        t->blocked = 0;

        if (t->waiting.first != NULL || t->prefill.first != NULL) {
            s->line[s->n_line++] = t;
        }

        t = t->next;
    } while (t != s->turn);

    for (i = s->n_line / 2; i-- != 0; /* void */) {
        dsa_line_down(s, i);
    }
}


dsa_tenant_t *
dsa_sched_turn(dsa_sched_t *s)
{
    dsa_tenant_t  *t;

    while (s->n_line != 0) {
        t = s->line[0];

        if (t->prefill.first != NULL || dsa_sched_admit(s, t) == DSA_OK) {
            if (t->served > s->clock) {
                s->clock = t->served;
            }

            return t;
        }

        t->blocked = t->waiting.first != NULL
                     && s->n_live < s->conf.max_running;

        s->line[0] = s->line[--s->n_line];
        dsa_line_down(s, 0);
    }

    return NULL;
}


void
dsa_sched_charge(dsa_sched_t *s, dsa_tenant_t *t, uint32_t rows)
{
    t->served += (double) rows / t->weight;
    dsa_line_down(s, 0);
}


/* The line is a heap: who was served least is its first. */

static void
dsa_line_down(dsa_sched_t *s, uint32_t i)
{
    uint32_t       child;
    dsa_tenant_t  *t;

    if (i >= s->n_line) {
        return;
    }

    t = s->line[i];

    for ( ;; ) {
        child = 2 * i + 1;

        if (child >= s->n_line) {
            break;
        }

        if (child + 1 < s->n_line
            && s->line[child + 1]->served < s->line[child]->served)
        {
            child++;
        }

        if (s->line[child]->served >= t->served) {
            break;
        }

        s->line[i] = s->line[child];
        i = child;
    }

    s->line[i] = t;
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
