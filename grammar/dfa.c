
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "base/map.h"
#include "grammar/codepoint.h"
#include "grammar/dfa.h"


typedef struct {
    dsa_dfa_t           *a;
    dsa_dfa_t           *b;
    dsa_dfa_t           *out;
    uint64_t            *pair;      /* [DSA_DFA_STATES] of each state of out;
                                       keys of map point here */
    uint32_t             n_pairs;
    dsa_map_t            map;
} dsa_product_t;


static int dsa_dfa_grow(void **array, uint32_t *size, uint32_t n, size_t item);
static uint32_t dsa_dfa_pair(dsa_product_t *p, uint32_t x, uint32_t y);
static void dsa_dfa_product_state(dsa_product_t *p, uint32_t x, uint32_t y);


dsa_dfa_t *
dsa_dfa_create(void)
{
    dsa_dfa_t  *d;

    d = calloc(1, sizeof(dsa_dfa_t));

    if (d != NULL) {
        d->first = calloc(2, sizeof(uint32_t));

        if (d->first == NULL) {
            free(d);
            return NULL;
        }
    }

    return d;
}


void
dsa_dfa_free(dsa_dfa_t *d)
{
    if (d == NULL) {
        return;
    }

    free(d->first);
    free(d->accept);
    free(d->range);
    free(d);
}


void
dsa_dfa_state(dsa_dfa_t *d, int accept)
{
    uint32_t  size, *first;

    if (d->failed || d->n_states == DSA_DFA_STATES) {
        d->failed = 1;
        return;
    }

    if (d->n_states == d->size_states) {
        size = d->size_states;

        if (dsa_dfa_grow((void **) &d->accept, &size, d->n_states, 1)
            != DSA_OK)
        {
            d->failed = 1;
            return;
        }

        first = realloc(d->first, ((size_t) size + 2) * sizeof(uint32_t));

        if (first == NULL) {
            d->failed = 1;
            return;
        }

        d->first = first;
        d->size_states = size;
    }

    d->accept[d->n_states] = accept != 0;
    d->n_states++;
    d->first[d->n_states - 1] = d->n_ranges;
    d->first[d->n_states] = d->n_ranges;
}


void
dsa_dfa_range(dsa_dfa_t *d, uint32_t lo, uint32_t hi, uint32_t to)
{
    dsa_dfa_range_t  *last;

    if (d->failed || d->n_ranges == DSA_DFA_RANGES) {
        d->failed = 1;
        return;
    }

    if (d->n_ranges > d->first[d->n_states - 1]) {
        last = &d->range[d->n_ranges - 1];

        if (last->to == to && last->hi + 1 == lo) {
            last->hi = hi;
            return;
        }
    }

    if (dsa_dfa_grow((void **) &d->range, &d->size_ranges, d->n_ranges,
                     sizeof(dsa_dfa_range_t)) != DSA_OK)
    {
        d->failed = 1;
        return;
    }

    last = &d->range[d->n_ranges++];

    last->lo = lo;
    last->hi = hi;
    last->to = to;

    d->first[d->n_states] = d->n_ranges;
}


dsa_dfa_t *
dsa_dfa_done(dsa_dfa_t *d)
{
    if (d != NULL && d->failed) {
        dsa_dfa_free(d);
        return NULL;
    }

    return d;
}


dsa_dfa_t *
dsa_dfa_intersect(dsa_dfa_t *a, dsa_dfa_t *b)
{
    uint32_t       i;
    dsa_product_t  p;

    memset(&p, 0, sizeof(dsa_product_t));

    p.a = a;
    p.b = b;

    if (a != NULL && b != NULL) {
        p.out = dsa_dfa_create();
        p.pair = malloc(DSA_DFA_STATES * sizeof(uint64_t));
    }

    if (p.out != NULL && p.pair == NULL) {
        p.out->failed = 1;
    }

    if (p.out != NULL && !p.out->failed) {
        (void) dsa_dfa_pair(&p, 0, 0);

        for (i = 0; i < p.n_pairs && !p.out->failed; i++) {
            dsa_dfa_product_state(&p, (uint32_t) (p.pair[i] >> 32),
                                  (uint32_t) p.pair[i]);
        }
    }

    dsa_map_free(&p.map);
    free(p.pair);
    dsa_dfa_free(a);
    dsa_dfa_free(b);

    return dsa_dfa_done(p.out);
}


dsa_dfa_t *
dsa_dfa_complement(dsa_dfa_t *a)
{
    uint32_t          i, k, lo, sink;
    dsa_dfa_t        *out;
    dsa_dfa_range_t  *r;

    if (a == NULL) {
        return NULL;
    }

    out = dsa_dfa_create();

    if (out == NULL) {
        dsa_dfa_free(a);
        return NULL;
    }

    sink = a->n_states;

    for (i = 0; i < a->n_states; i++) {
        dsa_dfa_state(out, !a->accept[i]);
        lo = 0;

        for (k = a->first[i]; k < a->first[i + 1]; k++) {
            r = &a->range[k];

            dsa_codepoint_ranges(out, lo, r->lo, sink);
            dsa_dfa_range(out, r->lo, r->hi, r->to);
            lo = r->hi + 1;
        }

        dsa_codepoint_ranges(out, lo, DSA_DFA_LAST + 1, sink);
    }

    dsa_dfa_state(out, 1);
    dsa_codepoint_ranges(out, 0, DSA_DFA_LAST + 1, sink);

    dsa_dfa_free(a);

    return dsa_dfa_done(out);
}


dsa_dfa_t *
dsa_dfa_lengths(uint32_t min, uint32_t max)
{
    uint32_t    i, last;
    dsa_dfa_t  *d;

    last = max == UINT32_MAX ? min : max;
    d = dsa_dfa_create();

    for (i = 0; d != NULL && i <= last && !d->failed; i++) {
        dsa_dfa_state(d, i >= min);

        if (i < max) {
            dsa_codepoint_ranges(d, 0, DSA_DFA_LAST + 1,
                                 i < last ? i + 1 : i);
        }
    }

    return dsa_dfa_done(d);
}


int
dsa_dfa_accepts(const dsa_dfa_t *d, dsa_str_t text)
{
    size_t    i;
    uint32_t  k, c, state;

    state = 0;

    for (i = 0; i < text.len; /* void */) {
        c = dsa_codepoint_next(text, &i);

        for (k = d->first[state]; k < d->first[state + 1]; k++) {
            if (c >= d->range[k].lo && c <= d->range[k].hi) {
                break;
            }
        }

        if (k == d->first[state + 1]) {
            return 0;
        }

        state = d->range[k].to;
    }

    return d->accept[state];
}


/* The state of out for a pair of states; it follows the others if it is new. */

static uint32_t
dsa_dfa_pair(dsa_product_t *p, uint32_t x, uint32_t y)
{
    int        rc;
    uint64_t  *value;
    dsa_str_t  key;

    if (p->n_pairs == DSA_DFA_STATES) {
        p->out->failed = 1;
        return 0;
    }

    p->pair[p->n_pairs] = (uint64_t) x << 32 | y;
    key = dsa_str(&p->pair[p->n_pairs], sizeof(uint64_t));
    rc = dsa_map_add(&p->map, key, p->n_pairs);

    if (rc == DSA_OK) {
        return p->n_pairs++;
    }

    value = rc == DSA_AGAIN ? dsa_map_find(&p->map, key) : NULL;

    if (value == NULL) {
        p->out->failed = 1;
        return 0;
    }

    return (uint32_t) *value;
}


static void
dsa_dfa_product_state(dsa_product_t *p, uint32_t x, uint32_t y)
{
    uint32_t          i, k, lo, hi;
    dsa_dfa_range_t  *r, *s;

    dsa_dfa_state(p->out, p->a->accept[x] && p->b->accept[y]);

    i = p->a->first[x];
    k = p->b->first[y];

    while (i < p->a->first[x + 1] && k < p->b->first[y + 1]
           && !p->out->failed)
    {
        r = &p->a->range[i];
        s = &p->b->range[k];
        lo = r->lo > s->lo ? r->lo : s->lo;
        hi = r->hi < s->hi ? r->hi : s->hi;

        if (lo <= hi) {
            dsa_dfa_range(p->out, lo, hi, dsa_dfa_pair(p, r->to, s->to));
        }

        if (r->hi < s->hi) {
            i++;

        } else {
            k++;
        }
    }
}


static int
dsa_dfa_grow(void **array, uint32_t *size, uint32_t n, size_t item)
{
    void      *bigger;
    uint32_t   want;

    if (n < *size) {
        return DSA_OK;
    }

    want = *size != 0 ? *size * 2 : 16;
    bigger = realloc(*array, want * item);

    if (bigger == NULL) {
        return DSA_ERROR;
    }

    *array = bigger;
    *size = want;

    return DSA_OK;
}
