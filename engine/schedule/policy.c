
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/policy.h"


#define DSA_POLICY_OWED     (DSA_POLICY_ROUND * DSA_POLICY_ROUNDS)


static dsa_tenant_t *dsa_policy_find(const dsa_policy_t *p,
    const uint8_t id[32], dsa_priority_e priority);
static void dsa_policy_key(uint8_t key[33], const uint8_t id[32],
    dsa_priority_e priority);
static dsa_str_t dsa_policy_text(const uint8_t key[33]);
static int dsa_policy_grow(dsa_policy_t *p);
static dsa_priority_e dsa_policy_entering(const dsa_policy_t *p,
    const dsa_tenant_t *t);
static dsa_priority_e dsa_policy_leaving(const dsa_policy_t *p,
    const dsa_tenant_t *t);
static void dsa_policy_round(dsa_policy_t *p, dsa_priority_e of,
    uint32_t parts);
static int dsa_policy_keeps(const dsa_policy_t *p, const dsa_tenant_t *from,
    const dsa_tenant_t *to);
static int dsa_policy_passed(const dsa_policy_t *p, const dsa_tenant_t *t);
static void dsa_policy_sift(dsa_class_t *class, uint32_t i);
static double dsa_policy_share(const dsa_policy_t *p, const dsa_tenant_t *t,
    double indices, double pages);


void
dsa_policy_init(dsa_policy_t *p, uint32_t indices, uint32_t pages)
{
    p->indices = indices;
    p->pages = pages;
    p->minimum = indices / (DSA_POLICY_ROUNDS + 1);

    if (p->minimum == 0) {
        p->minimum = 1;
    }
}


void
dsa_policy_free(dsa_policy_t *p)
{
    uint32_t  i;

    assert(p->n_tenants == 0);

    dsa_map_free(&p->map);

    for (i = 0; i < DSA_PRIORITIES; i++) {
        free(p->class[i].queue);
        p->class[i].queue = NULL;
    }
}


static void
dsa_policy_key(uint8_t key[33], const uint8_t id[32], dsa_priority_e priority)
{
    memcpy(key, id, 32);
    key[32] = (uint8_t) priority;
}


static dsa_str_t
dsa_policy_text(const uint8_t key[33])
{
    return dsa_str((const char *) key, 33);
}


static dsa_tenant_t *
dsa_policy_find(const dsa_policy_t *p, const uint8_t id[32],
    dsa_priority_e priority)
{
    uint8_t  key[33];

    dsa_policy_key(key, id, priority);

    return dsa_map_find_pointer(&p->map, dsa_policy_text(key));
}


uint32_t
dsa_policy_waiting(const dsa_policy_t *p, const uint8_t id[32])
{
    uint32_t             i, n;
    const dsa_tenant_t  *t;

    n = 0;

    for (i = 0; i < DSA_PRIORITIES; i++) {
        t = dsa_policy_find(p, id, i);
        n += t != NULL ? t->n_waiting : 0;
    }

    return n;
}


int
dsa_policy_is(const dsa_tenant_t *t, const uint8_t id[32])
{
    return memcmp(t->key, id, 32) == 0;
}


/* Makes room for one tenant more in the run queues. */

static int
dsa_policy_grow(dsa_policy_t *p)
{
    uint32_t        i, size;
    dsa_tenant_t  **queue;

    if (p->n_tenants < p->queue_size) {
        return DSA_OK;
    }

    size = p->queue_size * 2 + 16;

    for (i = 0; i < DSA_PRIORITIES; i++) {
        queue = realloc(p->class[i].queue, size * sizeof(dsa_tenant_t *));

        if (queue == NULL) {
            return DSA_ERROR;
        }

        p->class[i].queue = queue;
    }

    p->queue_size = size;

    return DSA_OK;
}


dsa_tenant_t *
dsa_policy_tenant(dsa_policy_t *p, const uint8_t id[32],
    dsa_priority_e priority, uint32_t weight)
{
    dsa_tenant_t  *t;

    t = dsa_policy_find(p, id, priority);

    if (t != NULL) {
        return t;
    }

    if (dsa_policy_grow(p) != DSA_OK) {
        return NULL;
    }

    t = calloc(1, sizeof(dsa_tenant_t));

    if (t == NULL) {
        return NULL;
    }

    dsa_policy_key(t->key, id, priority);
    t->priority = priority;
    t->weight = weight;

    if (dsa_map_add_pointer(&p->map, dsa_policy_text(t->key), t) != DSA_OK) {
        free(t);
        return NULL;
    }

    p->n_tenants++;

    if (p->first == NULL) {
        t->prev = t;
        t->next = t;
        p->first = t;

    } else {
        t->next = p->first;
        t->prev = p->first->prev;
        t->prev->next = t;
        t->next->prev = t;
    }

    return t;
}


void
dsa_policy_remove(dsa_policy_t *p, dsa_tenant_t *t)
{
    int  rc;

    assert(t->n_seqs == 0 && t->n_waiting == 0 && t->n_running == 0
           && t->n_pages == 0);

    rc = dsa_map_delete(&p->map, dsa_policy_text(t->key));

    assert(rc == DSA_OK);

    if (p->first == t) {
        p->first = t->next != t ? t->next : NULL;
    }

    t->next->prev = t->prev;
    t->prev->next = t->next;

    if (p->reserved == t) {
        p->reserved = NULL;
    }

    p->n_tenants--;
    free(t);
}


void
dsa_policy_activate(dsa_policy_t *p, dsa_tenant_t *t)
{
    double  now;

    now = p->class[t->priority].virtual_time;

    if (t->n_waiting == 0 && t->n_prefill == 0 && t->served < now) {
        t->served = now;
    }
}


dsa_tenant_t *
dsa_policy_crowded(const dsa_policy_t *p, double least)
{
    double         share;
    dsa_tenant_t  *t, *crowded;

    crowded = NULL;
    t = p->first;

    if (t == NULL) {
        return NULL;
    }

    do {
        share = (double) t->n_waiting / t->weight;

        if (share > least && t->n_new != 0) {
            crowded = t;
            least = share;
        }

        t = t->next;
    } while (t != p->first);

    return crowded;
}


/*
 * The class as which a waiting tenant competes for indices and pages: the
 * highest one while its own class has less than its minimum.
 */

static dsa_priority_e
dsa_policy_entering(const dsa_policy_t *p, const dsa_tenant_t *t)
{
    return p->class[t->priority].n_running < p->minimum ? DSA_PRIORITY_HIGH
                                                        : t->priority;
}


/* The class as which a running tenant competes when the pages run out. */

static dsa_priority_e
dsa_policy_leaving(const dsa_policy_t *p, const dsa_tenant_t *t)
{
    return p->class[t->priority].n_running <= p->minimum ? DSA_PRIORITY_HIGH
                                                         : t->priority;
}


int
dsa_policy_may_admit(const dsa_policy_t *p, const dsa_tenant_t *t,
    uint32_t rank)
{
    return p->reserved == NULL || p->reserved == t
           || p->reserved_rank != rank
           || t->priority > dsa_policy_entering(p, p->reserved);
}


void
dsa_policy_admitted(dsa_policy_t *p, dsa_tenant_t *t)
{
    p->class[t->priority].admitted = 1;
    dsa_policy_round(p, t->priority, DSA_POLICY_ROUND);

    t->skips = 0;

    if (p->reserved == t) {
        p->reserved = NULL;
    }
}


void
dsa_policy_reserve(dsa_policy_t *p, dsa_tenant_t *t, uint32_t rank)
{
    p->reserved = t;
    p->reserved_rank = rank;
}


dsa_tenant_t *
dsa_policy_gaining(dsa_policy_t *p)
{
    double           share, least;
    dsa_tenant_t    *t, *gaining;
    dsa_priority_e   priority, highest;

    /* the request that the reservation was made for may be cancelled by now */

    if (p->reserved != NULL && p->reserved->n_waiting == 0) {
        p->reserved = NULL;
    }

    gaining = NULL;
    highest = DSA_PRIORITY_LOW;
    least = 0;
    t = p->first;

    if (t == NULL) {
        return NULL;
    }

    do {
        if (t->n_waiting != 0) {
            priority = dsa_policy_entering(p, t);

            /* a share is not negative */

            share = t == p->reserved ? -1 : dsa_policy_share(p, t, 0, 0);

            if (gaining == NULL || priority > highest
                || (priority == highest && share < least))
            {
                gaining = t;
                highest = priority;
                least = share;
            }
        }

        t = t->next;
    } while (t != p->first);

    return gaining;
}


/*
 * In one class, a tenant is preempted only if its share afterwards is at least
 * as large as the share of the tenant that gains the index and the pages;
 * otherwise the two would preempt each other in turn.  Two classes do not
 * preempt each other in turn either, because a class whose sequence is
 * preempted in favor of another class still has its minimum afterwards.
 */

int
dsa_policy_may_preempt(const dsa_policy_t *p, const dsa_tenant_t *from,
    uint32_t from_pages, const dsa_tenant_t *to, uint32_t to_pages)
{
    dsa_priority_e  entering;

    if (dsa_policy_keeps(p, from, to)) {
        return 0;
    }

    entering = dsa_policy_entering(p, to);

    if (from->priority != to->priority && from->priority != entering) {
        return from->priority < entering;
    }

    return from != to
           && dsa_policy_share(p, from, -1, -(double) from_pages)
              >= dsa_policy_share(p, to, 1, to_pages);
}


/*
 * 1 if the class of `from` has no more than its minimum, and the sequence is to
 * be preempted in favor of another class; to is NULL if no request gains it.
 */

static int
dsa_policy_keeps(const dsa_policy_t *p, const dsa_tenant_t *from,
    const dsa_tenant_t *to)
{
    return to != NULL && from->priority != to->priority
           && p->class[from->priority].n_running <= p->minimum;
}


dsa_tenant_t *
dsa_policy_heaviest(const dsa_policy_t *p, uint32_t rank,
    const dsa_tenant_t *to)
{
    double           share, most;
    dsa_tenant_t    *t, *heaviest;
    dsa_priority_e   priority, lowest;

    heaviest = NULL;
    lowest = DSA_PRIORITY_HIGH;
    most = 0;
    t = p->first;

    if (t == NULL) {
        return NULL;
    }

    do {
        if (t->n_on[rank] != 0 && !dsa_policy_keeps(p, t, to)) {
            priority = dsa_policy_leaving(p, t);
            share = dsa_policy_share(p, t, 0, 0);

            if (heaviest == NULL || priority < lowest
                || (priority == lowest && share > most))
            {
                heaviest = t;
                lowest = priority;
                most = share;
            }
        }

        t = t->next;
    } while (t != p->first);

    return heaviest;
}


/* The dominant share of a tenant that had so many more indices and pages. */

static double
dsa_policy_share(const dsa_policy_t *p, const dsa_tenant_t *t, double indices,
    double pages)
{
    indices = (t->n_running + indices) / p->indices;
    pages = (t->n_pages + pages) / p->pages;

    return fmax(indices, pages) / t->weight;
}


void
dsa_policy_enqueue(dsa_policy_t *p)
{
    uint32_t       i, j;
    dsa_class_t   *class;
    dsa_tenant_t  *t;

    for (i = 0; i < DSA_PRIORITIES; i++) {
        p->class[i].n_queue = 0;
    }

    t = p->first;

    if (t == NULL) {
        return;
    }

    do {
        t->blocked = 0;

        if (t->n_waiting != 0 || t->n_prefill != 0) {
            class = &p->class[t->priority];

            assert(class->n_queue < p->queue_size);
            class->queue[class->n_queue++] = t;
        }

        t = t->next;
    } while (t != p->first);

    for (i = 0; i < DSA_PRIORITIES; i++) {
        class = &p->class[i];

        for (j = class->n_queue / 2; j-- != 0; /* void */) {
            dsa_policy_sift(class, j);
        }

        if (class->n_queue == 0) {
            class->owed = 0;
        }
    }
}


dsa_tenant_t *
dsa_policy_next(const dsa_policy_t *p)
{
    uint32_t            i;
    dsa_tenant_t       *t;
    const dsa_class_t  *class;

    t = NULL;

    for (i = 0; i < DSA_PRIORITIES; i++) {
        class = &p->class[i];

        if (class->n_queue == 0) {
            continue;
        }

        t = class->queue[0];

        if (class->owed == DSA_POLICY_OWED) {
            break;
        }
    }

    return t;
}


/* A class had a round, or a part of one out of DSA_POLICY_ROUND parts. */

static void
dsa_policy_round(dsa_policy_t *p, dsa_priority_e of, uint32_t parts)
{
    uint32_t      i;
    dsa_class_t  *class;

    assert(parts <= DSA_POLICY_ROUND);

    class = &p->class[of];
    class->owed -= parts * DSA_POLICY_ROUNDS < class->owed
                   ? parts * DSA_POLICY_ROUNDS : class->owed;

    for (i = 0; i < of; i++) {
        class = &p->class[i];
        class->owed += parts;

        if (class->owed > DSA_POLICY_OWED) {
            class->owed = DSA_POLICY_OWED;
        }
    }
}


void
dsa_policy_charge(dsa_policy_t *p, dsa_tenant_t *t, uint32_t tokens)
{
    dsa_class_t  *class;

    class = &p->class[t->priority];

    assert(class->n_queue != 0 && class->queue[0] == t);

    if (t->served > class->virtual_time) {
        class->virtual_time = t->served;
    }

    t->served += (double) tokens / t->weight;
    dsa_policy_sift(class, 0);
    dsa_policy_round(p, t->priority, tokens);
}


void
dsa_policy_skip(dsa_policy_t *p, dsa_tenant_t *t)
{
    dsa_class_t  *class;

    class = &p->class[t->priority];

    assert(class->n_queue != 0 && class->queue[0] == t);

    class->queue[0] = class->queue[--class->n_queue];
    dsa_policy_sift(class, 0);
}


dsa_tenant_t *
dsa_policy_end(dsa_policy_t *p, int admitted)
{
    uint32_t       i, active[DSA_PRIORITIES] = { 0 };
    dsa_tenant_t  *t, *due;

    due = NULL;
    t = p->first;

    if (t == NULL) {
        return NULL;
    }

    do {
        active[t->priority] += t->n_waiting != 0 || t->n_prefill != 0;

        if (t->n_waiting == 0) {
            t->skips = 0;

        } else if (admitted && t->blocked && dsa_policy_passed(p, t)
                   && ++t->skips >= DSA_POLICY_MAX_SKIPS
                   && p->reserved == NULL && due == NULL)
        {
            due = t;
        }

        t = t->next;
    } while (t != p->first);

    /*
     * While no tenant of a class waits for another one, their order does not
     * matter.  All service counts begin at zero again; otherwise a tenant
     * would be charged later for tokens that no other tenant needed.
     */

    do {
        if (active[t->priority] <= 1) {
            t->served = 0;
        }

        t = t->next;
    } while (t != p->first);

    for (i = 0; i < DSA_PRIORITIES; i++) {
        p->class[i].admitted = 0;

        if (active[i] <= 1) {
            p->class[i].virtual_time = 0;
        }
    }

    return due;
}


/* 1 if this step admitted a request that has no precedence over those of t. */

static int
dsa_policy_passed(const dsa_policy_t *p, const dsa_tenant_t *t)
{
    uint32_t        i;
    dsa_priority_e  most;

    most = dsa_policy_entering(p, t);

    for (i = 0; i <= most; i++) {
        if (p->class[i].admitted) {
            return 1;
        }
    }

    return 0;
}


/* Restores the heap order below queue[i]: the lowest count is first. */

static void
dsa_policy_sift(dsa_class_t *class, uint32_t i)
{
    uint32_t       child;
    dsa_tenant_t  *t, **queue;

    if (i >= class->n_queue) {
        return;
    }

    queue = class->queue;
    t = queue[i];

    for ( ;; ) {
        child = 2 * i + 1;

        if (child >= class->n_queue) {
            break;
        }

        if (child + 1 < class->n_queue
            && queue[child + 1]->served < queue[child]->served)
        {
            child++;
        }

        if (queue[child]->served >= t->served) {
            break;
        }

        queue[i] = queue[child];
        i = child;
    }

    queue[i] = t;
}
