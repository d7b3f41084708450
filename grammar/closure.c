
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <stdlib.h>

#include "grammar/closure.h"


#define DSA_CLOSURE_SETS    4096        /* most configurations that are found;
                                           a grammar that is more ambiguous
                                           follows the first ones */
#define DSA_CLOSURE_VISITS  16384       /* most that are visited on the way */
#define DSA_CLOSURE_SEEN    65536
#define DSA_CLOSURE_NONE    0xffffffffU
#define DSA_CLOSURE_FRAMES  (1U << 20)


typedef struct {
    uint32_t             parent;
    uint32_t             to;        /* CALL: where it goes on; LOOP: index of
                                       the loop */
    uint32_t             count;     /* LOOP: how many bodies have ended */
    uint32_t             depth;
    uint32_t             hash;
    uint32_t             chain;     /* next one in its bucket */
    uint8_t              kind;      /* DSA_EDGE_CALL or DSA_EDGE_LOOP */
    uint8_t              kept;
} dsa_frame_t;


typedef struct {
    dsa_config_t         config;
    uint32_t             epoch;
} dsa_seen_t;


struct dsa_closure_s {
    const dsa_automaton_t   *a;
    int                      control;

    dsa_frame_t             *frame;
    uint32_t                 n_frames;
    uint32_t                 size_frames;
    uint32_t                 free_frame;    /* chain of free ones */
    uint32_t                 n_free;
    uint32_t                *bucket;
    uint32_t                 n_buckets;

    dsa_config_t             work[DSA_CLOSURE_VISITS];
    uint32_t                 n_work;
    uint32_t                 n_visits;
    dsa_seen_t               seen[DSA_CLOSURE_SEEN];
    uint32_t                 epoch;
    uint64_t                 total;     /* work of all steps */

    dsa_config_t             found[DSA_CLOSURE_SETS];
    uint32_t                 n_found;
    uint32_t                 hash;
    int                      complete;
};


_Static_assert(DSA_CLOSURE_SEEN >= 4 * DSA_CLOSURE_VISITS,
               "a search for a configuration ends early");


static void dsa_closure_begin(dsa_closure_t *c);
static void dsa_closure_add(dsa_closure_t *c, uint32_t node, uint32_t frame);
static void dsa_closure_run(dsa_closure_t *c);
static void dsa_closure_visit(dsa_closure_t *c, dsa_config_t config);
static void dsa_closure_pop(dsa_closure_t *c, uint32_t frame);
static void dsa_closure_check(dsa_closure_t *c, uint32_t loop,
    uint32_t count, uint32_t parent);
static uint32_t dsa_closure_frame(dsa_closure_t *c, dsa_edge_e kind,
    uint32_t to, uint32_t count, uint32_t parent);
static uint32_t dsa_closure_frame_new(dsa_closure_t *c);
static uint32_t dsa_closure_mix(uint32_t h, uint32_t v);
static int dsa_closure_compare(const void *a, const void *b);


dsa_closure_t *
dsa_closure_create(const dsa_automaton_t *a, int control)
{
    dsa_closure_t  *c;

    c = calloc(1, sizeof(dsa_closure_t));

    if (c == NULL) {
        return NULL;
    }

    c->a = a;
    c->control = control;
    c->free_frame = DSA_CLOSURE_NONE;
    c->n_buckets = 4096;
    c->size_frames = 256;
    c->n_frames = 1;

    c->bucket = malloc(c->n_buckets * sizeof(uint32_t));
    c->frame = calloc(c->size_frames, sizeof(dsa_frame_t));

    if (c->bucket == NULL || c->frame == NULL) {
        dsa_closure_free(c);
        return NULL;
    }

    memset(c->bucket, 0xff, c->n_buckets * sizeof(uint32_t));

    return c;
}


void
dsa_closure_free(dsa_closure_t *c)
{
    if (c == NULL) {
        return;
    }

    free(c->bucket);
    free(c->frame);
    free(c);
}


void
dsa_closure_start(dsa_closure_t *c)
{
    dsa_closure_begin(c);
    dsa_closure_add(c, c->a->start, 0);
    dsa_closure_run(c);
}


void
dsa_closure_step(dsa_closure_t *c, const dsa_config_t *config, uint32_t n,
    uint32_t class)
{
    uint8_t            byte;
    uint32_t           i, k;
    const dsa_edge_t  *e;

    dsa_closure_begin(c);

    byte = class < c->a->n_classes ? c->a->sample[class] : 0;

    for (i = 0; i < n; i++) {
        for (k = c->a->first[config[i].node];
             k < c->a->first[config[i].node + 1];
             k++)
        {
            e = &c->a->edges[k];

            if (class == c->a->n_classes
                ? e->kind == DSA_EDGE_CONTROL && c->control
                : e->kind == DSA_EDGE_BYTES && byte >= e->lo && byte <= e->hi)
            {
                dsa_closure_add(c, e->to, config[i].frame);
            }
        }
    }

    dsa_closure_run(c);

    c->total += n + c->n_visits;
}


const dsa_config_t *
dsa_closure_configs(const dsa_closure_t *c, uint32_t *n, uint32_t *hash)
{
    *n = c->n_found;
    *hash = c->hash;

    return c->found;
}


int
dsa_closure_complete(const dsa_closure_t *c)
{
    return c->complete;
}


int
dsa_closure_empty(const dsa_closure_t *c)
{
    return c->n_found == 0 && !c->complete;
}


uint64_t
dsa_closure_work(const dsa_closure_t *c)
{
    return c->total;
}


int
dsa_closure_crowded(const dsa_closure_t *c)
{
    return c->n_frames >= DSA_CLOSURE_FRAMES / 2
           && c->n_frames - c->n_free >= DSA_CLOSURE_FRAMES / 2;
}


/* The frames of what was found are kept as well. */

void
dsa_closure_mark(dsa_closure_t *c)
{
    uint32_t  i;

    for (i = 0; i < c->n_frames; i++) {
        c->frame[i].kept = 0;
    }

    dsa_closure_keep(c, c->found, c->n_found);
}


void
dsa_closure_keep(dsa_closure_t *c, const dsa_config_t *config, uint32_t n)
{
    uint32_t  i, f;

    for (i = 0; i < n; i++) {
        for (f = config[i].frame; f != 0 && !c->frame[f].kept;
             f = c->frame[f].parent)
        {
            c->frame[f].kept = 1;
        }
    }
}


void
dsa_closure_sweep(dsa_closure_t *c)
{
    uint32_t      i, b;
    dsa_frame_t  *f;

    memset(c->bucket, 0xff, c->n_buckets * sizeof(uint32_t));

    c->free_frame = DSA_CLOSURE_NONE;
    c->n_free = 0;

    for (i = 1; i < c->n_frames; i++) {
        f = &c->frame[i];

        if (f->kept) {
            b = f->hash % c->n_buckets;
            f->chain = c->bucket[b];
            c->bucket[b] = i;
            continue;
        }

        f->chain = c->free_frame;
        c->free_frame = i;
        c->n_free++;
    }
}


static void
dsa_closure_begin(dsa_closure_t *c)
{
    c->n_work = 0;
    c->n_visits = 0;
    c->n_found = 0;
    c->complete = 0;
    c->epoch++;

    if (c->epoch == 0) {
        memset(c->seen, 0, sizeof(c->seen));
        c->epoch = 1;
    }
}


/*
 * A configuration from which the stack cannot hold the rest of the answer is
 * left out, so that every one that stays has an end.
 */

static void
dsa_closure_add(dsa_closure_t *c, uint32_t node, uint32_t frame)
{
    uint32_t     slot;
    dsa_seen_t  *seen;

    if (frame == DSA_CLOSURE_NONE || c->n_visits == DSA_CLOSURE_VISITS
        || c->a->height[node] > DSA_AUTOMATON_DEPTH - c->frame[frame].depth)
    {
        return;
    }

    slot = dsa_closure_mix(node, frame) % DSA_CLOSURE_SEEN;

    for ( ;; ) {
        seen = &c->seen[slot];

        if (seen->epoch != c->epoch) {
            break;
        }

        if (seen->config.node == node && seen->config.frame == frame) {
            return;
        }

        slot = (slot + 1) % DSA_CLOSURE_SEEN;
    }

    seen->epoch = c->epoch;
    seen->config.node = node;
    seen->config.frame = frame;

    c->work[c->n_work++] = seen->config;
    c->n_visits++;
}


static void
dsa_closure_run(dsa_closure_t *c)
{
    uint32_t  i;

    while (c->n_work != 0) {
        dsa_closure_visit(c, c->work[--c->n_work]);
    }

    qsort(c->found, c->n_found, sizeof(dsa_config_t), dsa_closure_compare);

    c->hash = (uint32_t) c->complete;

    for (i = 0; i < c->n_found; i++) {
        c->hash = dsa_closure_mix(c->hash, c->found[i].node);
        c->hash = dsa_closure_mix(c->hash, c->found[i].frame);
    }
}


static void
dsa_closure_visit(dsa_closure_t *c, dsa_config_t config)
{
    int                consumes;
    uint32_t           k, depth, f;
    const dsa_edge_t  *e;

    consumes = 0;
    depth = c->frame[config.frame].depth;

    for (k = c->a->first[config.node]; k < c->a->first[config.node + 1]; k++) {
        e = &c->a->edges[k];

        switch ((dsa_edge_e) e->kind) {

        case DSA_EDGE_BYTES:
            consumes = 1;
            break;

        case DSA_EDGE_CONTROL:
            if (c->control) {
                consumes = 1;

            } else {
                dsa_closure_add(c, e->other, config.frame);
            }

            break;

        case DSA_EDGE_EMPTY:
            dsa_closure_add(c, e->to, config.frame);
            break;

        case DSA_EDGE_CALL:
            if (c->a->height[e->to] > DSA_AUTOMATON_DEPTH - depth
                || c->a->height[e->other] > DSA_AUTOMATON_DEPTH
                || depth + 1 + c->a->height[e->other] > DSA_AUTOMATON_DEPTH)
            {
                break;
            }

            f = dsa_closure_frame(c, DSA_EDGE_CALL, e->to, 0, config.frame);
            dsa_closure_add(c, e->other, f);
            break;

        case DSA_EDGE_LOOP:
            dsa_closure_check(c, e->other, 0, config.frame);
            break;

        case DSA_EDGE_END:
            dsa_closure_pop(c, config.frame);
            break;
        }
    }

    if (consumes && c->n_found < DSA_CLOSURE_SETS) {
        c->found[c->n_found++] = config;
    }
}


static void
dsa_closure_pop(dsa_closure_t *c, uint32_t frame)
{
    uint32_t           count;
    dsa_frame_t        f;
    const dsa_loop_t  *loop;

    if (frame == 0) {
        c->complete = 1;
        return;
    }

    f = c->frame[frame];

    if (f.kind == DSA_EDGE_CALL) {
        dsa_closure_add(c, f.to, f.parent);
        return;
    }

    loop = &c->a->loops[f.to];
    count = f.count;

    /* without a maximum, all counts from the minimum on are the same */

    if (loop->max != DSA_AUTOMATON_MANY || count < loop->min) {
        count++;
    }

    dsa_closure_check(c, f.to, count, f.parent);
}


static void
dsa_closure_check(dsa_closure_t *c, uint32_t index, uint32_t count,
    uint32_t parent)
{
    uint32_t           depth;
    const dsa_loop_t  *loop;

    loop = &c->a->loops[index];
    depth = c->frame[parent].depth;

    if (count >= loop->min) {
        dsa_closure_add(c, loop->exit, parent);
    }

    if (count < loop->max
        && c->a->height[loop->exit] <= DSA_AUTOMATON_DEPTH - depth
        && c->a->height[loop->body] <= DSA_AUTOMATON_DEPTH
        && depth + 1 + c->a->height[loop->body] <= DSA_AUTOMATON_DEPTH)
    {
        dsa_closure_add(c, loop->body,
                        dsa_closure_frame(c, DSA_EDGE_LOOP, index, count,
                                          parent));
    }
}


/* The number of a frame; DSA_CLOSURE_NONE: no memory. */

static uint32_t
dsa_closure_frame(dsa_closure_t *c, dsa_edge_e kind, uint32_t to,
    uint32_t count, uint32_t parent)
{
    uint32_t      h, i;
    dsa_frame_t  *f;

    h = dsa_closure_mix(dsa_closure_mix(kind, to),
                        dsa_closure_mix(count, parent));

    for (i = c->bucket[h % c->n_buckets]; i != DSA_CLOSURE_NONE; i = f->chain) {
        f = &c->frame[i];

        if (f->kind == kind && f->to == to && f->count == count
            && f->parent == parent)
        {
            return i;
        }
    }

    i = dsa_closure_frame_new(c);

    if (i == DSA_CLOSURE_NONE) {
        return i;
    }

    f = &c->frame[i];

    f->kind = (uint8_t) kind;
    f->to = to;
    f->count = count;
    f->parent = parent;
    f->depth = c->frame[parent].depth + 1;
    f->hash = h;
    f->chain = c->bucket[h % c->n_buckets];
    c->bucket[h % c->n_buckets] = i;

    return i;
}


static uint32_t
dsa_closure_frame_new(dsa_closure_t *c)
{
    uint32_t      i, size;
    dsa_frame_t  *frame;

    if (c->free_frame != DSA_CLOSURE_NONE) {
        i = c->free_frame;
        c->free_frame = c->frame[i].chain;
        c->n_free--;
        return i;
    }

    if (c->n_frames == c->size_frames) {
        size = c->size_frames * 2;

        if (size > DSA_CLOSURE_FRAMES) {
            return DSA_CLOSURE_NONE;
        }

        frame = realloc(c->frame, size * sizeof(dsa_frame_t));

        if (frame == NULL) {
            return DSA_CLOSURE_NONE;
        }

        c->frame = frame;
        c->size_frames = size;
    }

    return c->n_frames++;
}


static uint32_t
dsa_closure_mix(uint32_t h, uint32_t v)
{
    uint64_t  x;

    x = ((uint64_t) h << 32 | v) * 0x9e3779b97f4a7c15;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9;

    return (uint32_t) (x >> 32);
}


static int
dsa_closure_compare(const void *a, const void *b)
{
    const dsa_config_t  *x, *y;

    x = a;
    y = b;

    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }

    return x->frame < y->frame ? -1 : x->frame > y->frame;
}
