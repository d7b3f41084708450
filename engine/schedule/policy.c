
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/schedule/policy.h"


static dsa_str_t dsa_policy_key(const uint8_t id[32]);
static void dsa_policy_sift(dsa_policy_t *p, uint32_t i);
static double dsa_policy_share(const dsa_policy_t *p, const dsa_tenant_t *t,
    double slots, double pages);


void
dsa_policy_init(dsa_policy_t *p, uint32_t slots, uint32_t pages)
{
    p->slots = slots;
    p->pages = pages;
}


void
dsa_policy_free(dsa_policy_t *p)
{
    assert(p->n_tenants == 0);

    dsa_map_free(&p->map);
    free(p->queue);
    p->queue = NULL;
}


static dsa_str_t
dsa_policy_key(const uint8_t id[32])
{
    return dsa_str((const char *) id, 32);
}


dsa_tenant_t *
dsa_policy_find(const dsa_policy_t *p, const uint8_t id[32])
{
    return dsa_map_find_pointer(&p->map, dsa_policy_key(id));
}


dsa_tenant_t *
dsa_policy_tenant(dsa_policy_t *p, const uint8_t id[32], uint32_t weight)
{
    uint32_t        size;
    dsa_tenant_t   *t, **queue;

    t = dsa_policy_find(p, id);

    if (t != NULL) {
        return t;
    }

    if (p->n_tenants == p->queue_size) {
        size = p->queue_size * 2 + 16;
        queue = realloc(p->queue, size * sizeof(dsa_tenant_t *));

        if (queue == NULL) {
            return NULL;
        }

        p->queue = queue;
        p->queue_size = size;
    }

    t = calloc(1, sizeof(dsa_tenant_t));

    if (t == NULL) {
        return NULL;
    }

    memcpy(t->id, id, sizeof(t->id));
    t->weight = weight;

    if (dsa_map_add_pointer(&p->map, dsa_policy_key(t->id), t) != DSA_OK) {
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

    rc = dsa_map_delete(&p->map, dsa_policy_key(t->id));

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
    if (t->n_waiting == 0 && t->n_prefill == 0
        && t->served < p->virtual_time)
    {
        t->served = p->virtual_time;
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


int
dsa_policy_may_admit(const dsa_policy_t *p, const dsa_tenant_t *t,
    uint32_t rank)
{
    return p->reserved == NULL || p->reserved == t
           || p->reserved_rank != rank;
}


void
dsa_policy_admitted(dsa_policy_t *p, dsa_tenant_t *t)
{
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
    double         share, least;
    dsa_tenant_t  *t, *gaining;

    /* the request that the reservation was made for may be cancelled by now */

    if (p->reserved != NULL && p->reserved->n_waiting == 0) {
        p->reserved = NULL;
    }

    if (p->reserved != NULL || p->first == NULL) {
        return p->reserved;
    }

    gaining = NULL;
    least = 0;
    t = p->first;

    do {
        if (t->n_waiting != 0) {
            share = dsa_policy_share(p, t, 0, 0);

            if (gaining == NULL || share < least) {
                gaining = t;
                least = share;
            }
        }

        t = t->next;
    } while (t != p->first);

    return gaining;
}


/*
 * A tenant is preempted only if its share afterwards is at least as large as
 * the share of the tenant that gains the slot and the pages; otherwise the two
 * would preempt each other in turn.
 */

int
dsa_policy_may_preempt(const dsa_policy_t *p, const dsa_tenant_t *from,
    uint32_t from_pages, const dsa_tenant_t *to, uint32_t to_pages)
{
    return from != to
           && dsa_policy_share(p, from, -1, -(double) from_pages)
              >= dsa_policy_share(p, to, 1, to_pages);
}


dsa_tenant_t *
dsa_policy_heaviest(const dsa_policy_t *p, uint32_t rank)
{
    double         share, most;
    dsa_tenant_t  *t, *heaviest;

    heaviest = NULL;
    most = 0;
    t = p->first;

    if (t == NULL) {
        return NULL;
    }

    do {
        if (t->n_on[rank] != 0) {
            share = dsa_policy_share(p, t, 0, 0);

            if (heaviest == NULL || share > most) {
                heaviest = t;
                most = share;
            }
        }

        t = t->next;
    } while (t != p->first);

    return heaviest;
}


/* The dominant share of a tenant that had so many more slots and pages. */

static double
dsa_policy_share(const dsa_policy_t *p, const dsa_tenant_t *t, double slots,
    double pages)
{
    slots = (t->n_running + slots) / p->slots;
    pages = (t->n_pages + pages) / p->pages;

    return fmax(slots, pages) / t->weight;
}


void
dsa_policy_enqueue(dsa_policy_t *p)
{
    uint32_t       i;
    dsa_tenant_t  *t;

    p->n_queue = 0;
    t = p->first;

    if (t == NULL) {
        return;
    }

    do {
        t->blocked = 0;

        if (t->n_waiting != 0 || t->n_prefill != 0) {
            assert(p->n_queue < p->queue_size);
            p->queue[p->n_queue++] = t;
        }

        t = t->next;
    } while (t != p->first);

    for (i = p->n_queue / 2; i-- != 0; /* void */) {
        dsa_policy_sift(p, i);
    }
}


dsa_tenant_t *
dsa_policy_next(const dsa_policy_t *p)
{
    return p->n_queue != 0 ? p->queue[0] : NULL;
}


void
dsa_policy_charge(dsa_policy_t *p, uint32_t tokens)
{
    dsa_tenant_t  *t;

    assert(p->n_queue != 0);

    t = p->queue[0];

    if (t->served > p->virtual_time) {
        p->virtual_time = t->served;
    }

    t->served += (double) tokens / t->weight;
    dsa_policy_sift(p, 0);
}


void
dsa_policy_skip(dsa_policy_t *p)
{
    assert(p->n_queue != 0);

    p->queue[0] = p->queue[--p->n_queue];
    dsa_policy_sift(p, 0);
}


dsa_tenant_t *
dsa_policy_end(dsa_policy_t *p, int admitted)
{
    uint32_t       active;
    dsa_tenant_t  *t, *due;

    active = 0;
    due = NULL;
    t = p->first;

    if (t == NULL) {
        return NULL;
    }

    do {
        active += t->n_waiting != 0 || t->n_prefill != 0;

        if (t->n_waiting == 0) {
            t->skips = 0;

        } else if (admitted && t->blocked
                   && ++t->skips >= DSA_POLICY_MAX_SKIPS
                   && p->reserved == NULL && due == NULL)
        {
            due = t;
        }

        t = t->next;
    } while (t != p->first);

    if (active > 1) {
        return due;
    }

    /*
     * No tenant waits for another one, so that their order does not matter.
     * All service counts begin at zero again; otherwise a tenant would be
     * charged later for tokens that nobody else needed.
     */

    do {
        t->served = 0;
        t = t->next;
    } while (t != p->first);

    p->virtual_time = 0;

    return due;
}


/* Restores the heap order below queue[i]: the lowest count is first. */

static void
dsa_policy_sift(dsa_policy_t *p, uint32_t i)
{
    uint32_t       child;
    dsa_tenant_t  *t;

    if (i >= p->n_queue) {
        return;
    }

    t = p->queue[i];

    for ( ;; ) {
        child = 2 * i + 1;

        if (child >= p->n_queue) {
            break;
        }

        if (child + 1 < p->n_queue
            && p->queue[child + 1]->served < p->queue[child]->served)
        {
            child++;
        }

        if (p->queue[child]->served >= t->served) {
            break;
        }

        p->queue[i] = p->queue[child];
        i = child;
    }

    p->queue[i] = t;
}
