
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The checks of an automaton that is built, and what matchers need of it.
 */


#include <assert.h>
#include <stdlib.h>

#include "grammar/automaton.h"


typedef struct {
    dsa_automaton_t     *a;
    uint32_t            *pred;      /* edges by the nodes they depend on */
    uint32_t            *pred_first;
    uint32_t            *queue;
    uint8_t             *queued;
    uint8_t             *nullable;  /* a path to the end without a byte */
} dsa_finish_t;


static int dsa_finish_sort(dsa_automaton_t *a);
static int dsa_finish_predecessors(dsa_finish_t *f);
static uint32_t dsa_finish_depends(const dsa_automaton_t *a,
    const dsa_edge_t *e, uint32_t node[3]);
static void dsa_finish_solve(dsa_finish_t *f, int heights);
static uint32_t dsa_finish_height(const dsa_automaton_t *a,
    const dsa_edge_t *e);
static uint32_t dsa_finish_max(uint32_t a, uint32_t b);
static int dsa_finish_nullable(const dsa_finish_t *f, const dsa_edge_t *e);
static int dsa_finish_cycle(dsa_finish_t *f);
static uint32_t dsa_finish_front(const dsa_finish_t *f, const dsa_edge_t *e,
    uint32_t node[2]);
static int dsa_finish_trim(dsa_automaton_t *a);
static void dsa_finish_classes(dsa_automaton_t *a);


dsa_finish_e
dsa_automaton_finish(dsa_automaton_t *a, uint32_t start)
{
    uint32_t      i;
    dsa_finish_e  rc;
    dsa_finish_t  f;

    memset(&f, 0, sizeof(dsa_finish_t));

    f.a = a;
    rc = DSA_FINISH_MEMORY;
    a->start = start;

    a->height = malloc(a->n_nodes * sizeof(uint32_t));
    f.queue = malloc(a->n_nodes * sizeof(uint32_t));
    f.queued = calloc(a->n_nodes, 1);
    f.nullable = calloc(a->n_nodes, 1);

    if (a->height == NULL || f.queue == NULL || f.queued == NULL
        || f.nullable == NULL || dsa_finish_sort(a) != DSA_OK
        || dsa_finish_predecessors(&f) != DSA_OK)
    {
        goto done;
    }

    for (i = 0; i < a->n_nodes; i++) {
        a->height[i] = DSA_AUTOMATON_NEVER;
    }

    dsa_finish_solve(&f, 1);
    dsa_finish_solve(&f, 0);

    if (a->height[start] == DSA_AUTOMATON_NEVER) {
        rc = DSA_FINISH_NEVER;

    } else if (a->height[start] > DSA_AUTOMATON_DEPTH) {
        rc = DSA_FINISH_DEEP;

    } else if (dsa_finish_cycle(&f)) {
        rc = DSA_FINISH_CYCLE;

    } else if (dsa_finish_trim(a) == DSA_OK) {
        dsa_finish_classes(a);
        rc = DSA_FINISH_OK;
    }

done:

    free(f.pred);
    free(f.pred_first);
    free(f.queue);
    free(f.queued);
    free(f.nullable);

    return rc;
}


/* Sorts the edges by the nodes that they leave. */

static int
dsa_finish_sort(dsa_automaton_t *a)
{
    uint32_t     i, *next;
    dsa_edge_t  *sorted;

    free(a->first);

    a->first = calloc(a->n_nodes + 1, sizeof(uint32_t));
    next = calloc(a->n_nodes + 1, sizeof(uint32_t));
    sorted = malloc((a->n_edges + 1) * sizeof(dsa_edge_t));

    if (a->first == NULL || next == NULL || sorted == NULL) {
        free(next);
        free(sorted);
        return DSA_ERROR;
    }

    for (i = 0; i < a->n_edges; i++) {
        a->first[a->edges[i].from + 1]++;
    }

    for (i = 0; i < a->n_nodes; i++) {
        a->first[i + 1] += a->first[i];
        next[i] = a->first[i];
    }

    for (i = 0; i < a->n_edges; i++) {
        sorted[next[a->edges[i].from]++] = a->edges[i];
    }

    free(next);
    free(a->edges);

    a->edges = sorted;
    a->size_edges = a->n_edges + 1;

    return DSA_OK;
}


static int
dsa_finish_predecessors(dsa_finish_t *f)
{
    uint32_t          i, k, n, *next, node[3];
    dsa_automaton_t  *a;

    a = f->a;

    f->pred_first = calloc(a->n_nodes + 1, sizeof(uint32_t));
    next = calloc(a->n_nodes + 1, sizeof(uint32_t));
    f->pred = malloc((3 * (size_t) a->n_edges + 1) * sizeof(uint32_t));

    if (f->pred_first == NULL || next == NULL || f->pred == NULL) {
        free(next);
        return DSA_ERROR;
    }

    for (i = 0; i < a->n_edges; i++) {
        n = dsa_finish_depends(a, &a->edges[i], node);

        for (k = 0; k < n; k++) {
            f->pred_first[node[k] + 1]++;
        }
    }

    for (i = 0; i < a->n_nodes; i++) {
        f->pred_first[i + 1] += f->pred_first[i];
        next[i] = f->pred_first[i];
    }

    for (i = 0; i < a->n_edges; i++) {
        n = dsa_finish_depends(a, &a->edges[i], node);

        for (k = 0; k < n; k++) {
            f->pred[next[node[k]]++] = a->edges[i].from;
        }
    }

    free(next);

    return DSA_OK;
}


/* The nodes that may follow an edge. */

static uint32_t
dsa_finish_depends(const dsa_automaton_t *a, const dsa_edge_t *e,
    uint32_t node[3])
{
    switch (e->kind) {

    case DSA_EDGE_END:
        return 0;

    case DSA_EDGE_CALL:
        node[0] = e->to;
        node[1] = e->other;
        return 2;

    case DSA_EDGE_LOOP:
        node[0] = e->to;
        node[1] = a->loops[e->other].body;
        return 2;

    default:
        node[0] = e->to;
        return 1;
    }
}


/*
 * Heights, or which nodes are nullable: values that depend on those of the
 * nodes behind, solved from the ends backwards.
 */

static void
dsa_finish_solve(dsa_finish_t *f, int heights)
{
    int                better;
    uint32_t           i, k, h, head, n, node;
    dsa_automaton_t   *a;
    const dsa_edge_t  *e;

    a = f->a;

    for (i = 0; i < a->n_nodes; i++) {
        f->queue[i] = a->n_nodes - 1 - i;
        f->queued[i] = 1;
    }

    head = 0;
    n = a->n_nodes;

    while (n != 0) {
        node = f->queue[head];
        head = head + 1 == a->n_nodes ? 0 : head + 1;
        n--;
        f->queued[node] = 0;
        better = 0;

        for (k = a->first[node]; k < a->first[node + 1]; k++) {
            e = &a->edges[k];

            if (heights) {
                h = dsa_finish_height(a, e);

                if (h < a->height[node]) {
                    a->height[node] = h;
                    better = 1;
                }

            } else if (!f->nullable[node] && dsa_finish_nullable(f, e)) {
                f->nullable[node] = 1;
                better = 1;
            }
        }

        if (!better) {
            continue;
        }

        for (k = f->pred_first[node]; k < f->pred_first[node + 1]; k++) {
            i = f->pred[k];

            if (!f->queued[i]) {
                f->queued[i] = 1;
                f->queue[(head + n++) % a->n_nodes] = i;
            }
        }
    }
}


static uint32_t
dsa_finish_height(const dsa_automaton_t *a, const dsa_edge_t *e)
{
    uint32_t           exit, body;
    const dsa_loop_t  *loop;

    switch (e->kind) {

    case DSA_EDGE_END:
        return 0;

    case DSA_EDGE_CALL:
        body = a->height[e->other];
        exit = a->height[e->to];
        break;

    case DSA_EDGE_LOOP:
        loop = &a->loops[e->other];
        body = a->height[loop->body];
        exit = a->height[loop->exit];

        if (loop->min == 0) {
            return exit;
        }

        break;

    default:
        return a->height[e->to];
    }

    if (body == DSA_AUTOMATON_NEVER) {
        return DSA_AUTOMATON_NEVER;
    }

    return dsa_finish_max(body + 1, exit);
}


static uint32_t
dsa_finish_max(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}


static int
dsa_finish_nullable(const dsa_finish_t *f, const dsa_edge_t *e)
{
    const dsa_loop_t  *loop;

    switch (e->kind) {

    case DSA_EDGE_END:
        return 1;

    case DSA_EDGE_EMPTY:
        return f->nullable[e->to];

    case DSA_EDGE_CALL:
        return f->nullable[e->other] && f->nullable[e->to];

    case DSA_EDGE_LOOP:
        loop = &f->a->loops[e->other];
        return (loop->min == 0 || f->nullable[loop->body])
               && f->nullable[loop->exit];

    default:
        return 0;
    }
}


/*
 * Returns 1 if a path comes back to its node without consuming a byte, with a
 * stack that has grown: a matcher would follow it for ever.
 */

static int
dsa_finish_cycle(dsa_finish_t *f)
{
    uint32_t          i, k, n, depth, node, to[2];
    dsa_automaton_t  *a;

    enum { NEW = 0, OPEN, CLOSED };

    a = f->a;

    memset(f->queued, NEW, a->n_nodes);

    for (i = 0; i < a->n_nodes; i++) {

        if (f->queued[i] != NEW) {
            continue;
        }

        depth = 0;
        f->queue[depth++] = i;

        while (depth != 0) {
            node = f->queue[depth - 1];

            if (f->queued[node] == NEW) {
                f->queued[node] = OPEN;
                f->pred_first[node] = 2 * a->first[node];
            }

            /* two successors for each edge */

            k = f->pred_first[node]++;

            if (k == 2 * a->first[node + 1]) {
                f->queued[node] = CLOSED;
                depth--;
                continue;
            }

            n = dsa_finish_front(f, &a->edges[k / 2], to);

            if (k % 2 >= n) {
                continue;
            }

            if (f->queued[to[k % 2]] == OPEN) {
                return 1;
            }

            if (f->queued[to[k % 2]] == NEW) {
                f->queue[depth++] = to[k % 2];
            }
        }
    }

    return 0;
}


/* The nodes that an edge leads to without a byte. */

static uint32_t
dsa_finish_front(const dsa_finish_t *f, const dsa_edge_t *e, uint32_t node[2])
{
    uint32_t           body;
    const dsa_loop_t  *loop;

    switch (e->kind) {

    case DSA_EDGE_EMPTY:
        node[0] = e->to;
        return 1;

    case DSA_EDGE_CALL:
        node[0] = e->other;
        node[1] = e->to;
        return f->nullable[e->other] ? 2 : 1;

    case DSA_EDGE_LOOP:
        loop = &f->a->loops[e->other];
        body = loop->body;
        assert(!f->nullable[body]);

        node[0] = body;
        node[1] = loop->exit;
        return loop->min == 0 ? 2 : 1;

    default:
        return 0;
    }
}


/* Removes edges to nodes without an end. */

static int
dsa_finish_trim(dsa_automaton_t *a)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < a->n_edges; i++) {
        if (dsa_finish_height(a, &a->edges[i]) != DSA_AUTOMATON_NEVER) {
            a->edges[n++] = a->edges[i];
        }
    }

    a->n_edges = n;

    return dsa_finish_sort(a);
}


static void
dsa_finish_classes(dsa_automaton_t *a)
{
    uint32_t  i, n;
    uint8_t   begins[257];

    memset(begins, 0, sizeof(begins));

    for (i = 0; i < a->n_edges; i++) {
        if (a->edges[i].kind == DSA_EDGE_BYTES) {
            begins[a->edges[i].lo] = 1;
            begins[a->edges[i].hi + 1] = 1;
        }
    }

    n = 0;
    a->sample[0] = 0;

    for (i = 0; i < 256; i++) {
        if (i != 0 && begins[i]) {
            n++;
            a->sample[n] = (uint8_t) i;
        }

        a->class[i] = (uint8_t) n;
    }

    a->n_classes = n + 1;
}
