
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


static uint8_t *dsa_dfa_ends(const dsa_dfa_t *d);
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
dsa_dfa_either(dsa_dfa_t *a, dsa_dfa_t *b)
{
    return dsa_dfa_complement(dsa_dfa_intersect(dsa_dfa_complement(a),
                                                dsa_dfa_complement(b)));
}


dsa_dfa_t *
dsa_dfa_copy(const dsa_dfa_t *a)
{
    uint32_t          i, k;
    dsa_dfa_t        *out;
    dsa_dfa_range_t  *r;

    out = a != NULL ? dsa_dfa_create() : NULL;

    for (i = 0; out != NULL && i < a->n_states; i++) {
        dsa_dfa_state(out, a->accept[i]);

        for (k = a->first[i]; k < a->first[i + 1]; k++) {
            r = &a->range[k];
            dsa_dfa_range(out, r->lo, r->hi, r->to);
        }
    }

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


/*
 * The states from which an end can be reached are taken away from the front: a
 * state without predecessors has the length of the longest way to it.  If some
 * stay, there is a loop.
 */

uint32_t
dsa_dfa_longest(const dsa_dfa_t *d)
{
    uint32_t   i, k, n, left, longest, *to, *ways, *length, *queue;
    uint8_t   *ends;

    ends = dsa_dfa_ends(d);
    ways = calloc(3 * (size_t) d->n_states, sizeof(uint32_t));

    if (ends == NULL || ways == NULL) {
        free(ends);
        free(ways);
        return UINT32_MAX;
    }

    length = ways + d->n_states;
    queue = length + d->n_states;
    left = 0;

    for (i = 0; i < d->n_states; i++) {
        left += ends[i];

        for (k = d->first[i]; ends[i] && k < d->first[i + 1]; k++) {
            ways[d->range[k].to]++;
        }
    }

    n = 0;
    longest = 0;

    if (ends[0] && ways[0] == 0) {
        queue[n++] = 0;
    }

    for (i = 0; i < n; i++) {
        left--;
        longest = length[queue[i]] > longest ? length[queue[i]] : longest;

        for (k = d->first[queue[i]]; k < d->first[queue[i] + 1]; k++) {
            to = &d->range[k].to;

            if (length[*to] < length[queue[i]] + 1) {
                length[*to] = length[queue[i]] + 1;
            }

            if (--ways[*to] == 0 && ends[*to]) {
                queue[n++] = *to;
            }
        }
    }

    free(ends);
    free(ways);

    return left == 0 ? longest : UINT32_MAX;
}


int
dsa_dfa_empty(const dsa_dfa_t *d)
{
    int       empty;
    uint8_t  *ends;

    ends = dsa_dfa_ends(d);
    empty = ends != NULL && d->n_states != 0 && !ends[0];
    free(ends);

    return empty;
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


/* [n_states], 1: an end can be reached from this state; NULL: no memory. */

static uint8_t *
dsa_dfa_ends(const dsa_dfa_t *d)
{
    uint32_t   i, k, n, *first, *from, *queue;
    uint8_t   *ends;

    ends = calloc(d->n_states, 1);
    first = calloc(2 * (size_t) d->n_states + d->n_ranges + 2,
                   sizeof(uint32_t));

    if (ends == NULL || first == NULL) {
        free(ends);
        free(first);
        return NULL;
    }

    queue = first + d->n_states + 2;
    from = queue + d->n_states;

    /* the states that lead to each state */

    for (k = 0; k < d->n_ranges; k++) {
        first[d->range[k].to + 2]++;
    }

    for (i = 0; i < d->n_states; i++) {
        first[i + 2] += first[i + 1];
    }

    for (i = 0; i < d->n_states; i++) {
        for (k = d->first[i]; k < d->first[i + 1]; k++) {
            from[first[d->range[k].to + 1]++] = i;
        }
    }

    for (i = 0, n = 0; i < d->n_states; i++) {
        if (d->accept[i]) {
            ends[i] = 1;
            queue[n++] = i;
        }
    }

    while (n != 0) {
        i = queue[--n];

        for (k = first[i]; k < first[i + 1]; k++) {
            if (!ends[from[k]]) {
                ends[from[k]] = 1;
                queue[n++] = from[k];
            }
        }
    }

    free(first);

    return ends;
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
