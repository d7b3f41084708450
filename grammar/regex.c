
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A pattern's tree becomes a nondeterministic program, and its sets of
 * positions become the states of a deterministic automaton.
 */


#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "grammar/codepoint.h"
#include "grammar/regex_parse.h"


#define DSA_REGEX_PROGRAM   32768       /* most instructions */
#define DSA_REGEX_STATES    8192        /* most states */
#define DSA_REGEX_MEMORY    (32U << 20)
#define DSA_REGEX_FIXED     1000        /* steps */


typedef enum {
    DSA_OP_CLASS = 0,                   /* a: first range, b: their number;
                                           goes on at the next */
    DSA_OP_SPLIT,                       /* goes on at a and at b */
    DSA_OP_JUMP,                        /* goes on at a */
    DSA_OP_BEGIN,
    DSA_OP_END,
    DSA_OP_FREE,                        /* a match that anything may follow */
    DSA_OP_MATCH                        /* a match at the end of the text */
} dsa_op_e;


typedef struct {
    dsa_op_e                 op;
    uint32_t                 a;
    uint32_t                 b;
} dsa_op_t;


typedef struct {
    dsa_regex_tree_t         tree;
    dsa_op_t                 op[DSA_REGEX_PROGRAM];
    uint32_t                 n_ops;

    uint32_t                *bound;     /* where the intervals of characters
                                           that all classes treat alike begin */
    uint32_t                 n_bounds;

    dsa_dfa_t               *dfa;
    dsa_arena_t             *arena;
    dsa_map_t                states;
    dsa_str_t                set[DSA_REGEX_STATES];
    uint32_t                 n_sets;

    uint32_t                 work[DSA_REGEX_PROGRAM + 1];
    uint32_t                 found[DSA_REGEX_PROGRAM + 1];
    uint32_t                 n_found;   /* found[0] is 1 at the start */
    uint32_t                 seen[DSA_REGEX_PROGRAM];
    uint32_t                 epoch;
    uint32_t                 steps;
    uint32_t                 limit;     /* of steps */
    int                      free;      /* the set has a match that anything
                                           may follow */
    int                      match;
    int                      failed;
} dsa_regex_t;


static void dsa_regex_search(dsa_regex_t *r);
static void dsa_regex_compile(dsa_regex_t *r, uint32_t node);
static void dsa_regex_repeat(dsa_regex_t *r, const dsa_regex_node_t *node);
static uint32_t dsa_regex_emit(dsa_regex_t *r, dsa_op_e op, uint32_t a,
    uint32_t b);
static int dsa_regex_bounds(dsa_regex_t *r);
static int dsa_regex_bound_compare(const void *a, const void *b);
static void dsa_regex_determinize(dsa_regex_t *r);
static void dsa_regex_state(dsa_regex_t *r, uint32_t state);
static void dsa_regex_begin(dsa_regex_t *r);
static void dsa_regex_close(dsa_regex_t *r, uint32_t pc, int start, int end);
static uint32_t dsa_regex_intern(dsa_regex_t *r);
static int dsa_regex_in(const dsa_regex_t *r, const dsa_op_t *op, uint32_t c);


dsa_dfa_t *
dsa_regex(dsa_str_t pattern, uint32_t *work, dsa_err_t *error)
{
    dsa_dfa_t    *dfa;
    dsa_regex_t  *r;

    dfa = NULL;
    r = calloc(1, sizeof(dsa_regex_t));

    if (r == NULL) {
        (void) dsa_error(error, "there is no memory for it");
        return NULL;
    }

    r->limit = *work < DSA_REGEX_WORK ? *work : DSA_REGEX_WORK;

    if (dsa_regex_parse(&r->tree, pattern, error) == DSA_OK) {
        dsa_regex_search(r);

        r->arena = dsa_arena_create(DSA_REGEX_MEMORY);
        r->dfa = dsa_dfa_create();

        if (r->arena == NULL || r->dfa == NULL
            || dsa_regex_bounds(r) != DSA_OK)
        {
            r->failed = 1;
        }

        if (!r->failed) {
            dsa_regex_determinize(r);
        }

        if (r->failed && r->dfa != NULL) {
            r->dfa->failed = 1;
        }

        dfa = dsa_dfa_done(r->dfa);

        if (dfa == NULL) {
            (void) dsa_error(error, r->steps > r->limit
                                    && r->limit < DSA_REGEX_WORK
                             ? "the patterns up to here take too much time to "
                               "compile; expected fewer or simpler ones"
                             : "it is too complex; expected a pattern with "
                               "fewer or smaller quantifiers");
        }
    }

    /* the fixed cost of a pattern, also of a short one */

    r->steps += DSA_REGEX_FIXED;
    *work -= r->steps < *work ? r->steps : *work;

    dsa_map_free(&r->states);
    dsa_arena_destroy(r->arena);
    free(r->bound);
    free(r);

    return dfa;
}


/* The program: any text, the pattern, any text. */

static void
dsa_regex_search(dsa_regex_t *r)
{
    uint32_t  any, split;

    any = r->tree.n_ranges;

    if (any + 2 > DSA_REGEX_RANGES) {
        r->failed = 1;
        return;
    }

    r->tree.range[any].lo = 0;
    r->tree.range[any].hi = 0xd7ff;
    r->tree.range[any + 1].lo = 0xe000;
    r->tree.range[any + 1].hi = DSA_DFA_LAST;
    r->tree.n_ranges += 2;

    split = dsa_regex_emit(r, DSA_OP_SPLIT, 0, 0);
    (void) dsa_regex_emit(r, DSA_OP_CLASS, any, 2);
    (void) dsa_regex_emit(r, DSA_OP_JUMP, split, 0);

    r->op[split].a = split + 1;
    r->op[split].b = r->n_ops;

    dsa_regex_compile(r, r->tree.root);

    (void) dsa_regex_emit(r, DSA_OP_FREE, 0, 0);
    split = dsa_regex_emit(r, DSA_OP_SPLIT, 0, 0);
    (void) dsa_regex_emit(r, DSA_OP_CLASS, any, 2);
    (void) dsa_regex_emit(r, DSA_OP_JUMP, split, 0);

    if (!r->failed) {
        r->op[split].a = split + 1;
        r->op[split].b = r->n_ops;
    }

    (void) dsa_regex_emit(r, DSA_OP_MATCH, 0, 0);
}


static void
dsa_regex_compile(dsa_regex_t *r, uint32_t node)
{
    uint32_t           split, jump;
    dsa_regex_node_t  *n;

    if (r->steps++ > r->limit) {
        r->failed = 1;
    }

    if (r->failed) {
        return;
    }

    n = &r->tree.node[node];

    switch (n->kind) {

    case DSA_REGEX_EMPTY:
        return;

    case DSA_REGEX_CLASS:
        (void) dsa_regex_emit(r, DSA_OP_CLASS, n->a, n->b);
        return;

    case DSA_REGEX_CAT:
        dsa_regex_compile(r, n->a);
        dsa_regex_compile(r, n->b);
        return;

    case DSA_REGEX_ALT:
        split = dsa_regex_emit(r, DSA_OP_SPLIT, 0, 0);
        dsa_regex_compile(r, n->a);
        jump = dsa_regex_emit(r, DSA_OP_JUMP, 0, 0);

        r->op[split].a = split + 1;
        r->op[split].b = r->n_ops;

        dsa_regex_compile(r, n->b);
        r->op[jump].a = r->n_ops;
        return;

    case DSA_REGEX_REPEATED:
        dsa_regex_repeat(r, n);
        return;

    case DSA_REGEX_BEGIN:
        (void) dsa_regex_emit(r, DSA_OP_BEGIN, 0, 0);
        return;

    case DSA_REGEX_END:
        (void) dsa_regex_emit(r, DSA_OP_END, 0, 0);
        return;
    }
}


static void
dsa_regex_repeat(dsa_regex_t *r, const dsa_regex_node_t *node)
{
    uint32_t  i, split, last;

    for (i = 0; i < node->min && !r->failed; i++) {
        dsa_regex_compile(r, node->a);
    }

    if (node->max == DSA_REGEX_MANY) {
        split = dsa_regex_emit(r, DSA_OP_SPLIT, 0, 0);
        dsa_regex_compile(r, node->a);
        (void) dsa_regex_emit(r, DSA_OP_JUMP, split, 0);

        r->op[split].a = split + 1;
        r->op[split].b = r->n_ops;
        return;
    }

    /* each optional one may go to the end; the splits are chained till then */

    last = DSA_REGEX_MANY;

    for (i = node->min; i < node->max && !r->failed; i++) {
        split = dsa_regex_emit(r, DSA_OP_SPLIT, 0, last);
        r->op[split].a = split + 1;
        last = split;
        dsa_regex_compile(r, node->a);
    }

    while (!r->failed && last != DSA_REGEX_MANY) {
        split = r->op[last].b;
        r->op[last].b = r->n_ops;
        last = split;
    }
}


static uint32_t
dsa_regex_emit(dsa_regex_t *r, dsa_op_e op, uint32_t a, uint32_t b)
{
    if (r->n_ops == DSA_REGEX_PROGRAM - 1) {
        r->failed = 1;
        return 0;
    }

    r->op[r->n_ops].op = op;
    r->op[r->n_ops].a = a;
    r->op[r->n_ops].b = b;

    return r->n_ops++;
}


static int
dsa_regex_bounds(dsa_regex_t *r)
{
    uint32_t  i, n;

    r->bound = malloc((2 * (size_t) r->tree.n_ranges + 2) * sizeof(uint32_t));

    if (r->bound == NULL) {
        return DSA_ERROR;
    }

    n = 0;

    for (i = 0; i < r->tree.n_ranges; i++) {
        r->bound[n++] = r->tree.range[i].lo;
        r->bound[n++] = r->tree.range[i].hi + 1;
    }

    r->bound[n++] = DSA_DFA_LAST + 1;

    qsort(r->bound, n, sizeof(uint32_t), dsa_regex_bound_compare);

    for (i = 0; i < n; i++) {
        if (r->n_bounds == 0 || r->bound[i] != r->bound[r->n_bounds - 1]) {
            r->bound[r->n_bounds++] = r->bound[i];
        }
    }

    return DSA_OK;
}


static int
dsa_regex_bound_compare(const void *a, const void *b)
{
    const uint32_t  *x, *y;

    x = a;
    y = b;

    return *x < *y ? -1 : *x > *y;
}


static void
dsa_regex_determinize(dsa_regex_t *r)
{
    uint32_t  i;

    dsa_regex_begin(r);
    r->found[0] = 1;
    dsa_regex_close(r, 0, 1, 0);
    (void) dsa_regex_intern(r);

    for (i = 0; i < r->n_sets && !r->failed && !r->dfa->failed; i++) {
        dsa_regex_state(r, i);
    }
}


static void
dsa_regex_state(dsa_regex_t *r, uint32_t state)
{
    uint32_t         i, k, n, to;
    const uint32_t  *pc;

    pc = (const uint32_t *) r->set[state].data;
    n = (uint32_t) (r->set[state].len / sizeof(uint32_t));

    /* a text ends here if it matches with $ */

    dsa_regex_begin(r);

    for (i = 1; i < n; i++) {
        dsa_regex_close(r, pc[i], (int) pc[0], 1);
    }

    dsa_dfa_state(r->dfa, r->match);

    for (i = 0; i + 1 < r->n_bounds && !r->failed; i++) {
        dsa_regex_begin(r);

        for (k = 1; k < n; k++) {
            if (r->op[pc[k]].op == DSA_OP_CLASS
                && dsa_regex_in(r, &r->op[pc[k]], r->bound[i]))
            {
                dsa_regex_close(r, pc[k] + 1, 0, 0);
            }
        }

        r->steps += n;

        if (r->steps > r->limit) {
            r->failed = 1;
        }

        if (r->n_found == 1) {
            continue;
        }

        to = dsa_regex_intern(r);
        dsa_dfa_range(r->dfa, r->bound[i], r->bound[i + 1] - 1, to);
    }
}


static void
dsa_regex_begin(dsa_regex_t *r)
{
    r->epoch++;
    r->n_found = 1;
    r->found[0] = 0;
    r->free = 0;
    r->match = 0;
}


/* Adds the positions that are reached from pc without a character. */

static void
dsa_regex_close(dsa_regex_t *r, uint32_t pc, int start, int end)
{
    uint32_t   n;
    dsa_op_t  *op;

    n = 0;
    r->work[n++] = pc;

    while (n != 0) {
        pc = r->work[--n];

        if (r->seen[pc] == r->epoch) {
            continue;
        }

        r->seen[pc] = r->epoch;
        r->steps++;
        op = &r->op[pc];

        switch (op->op) {

        case DSA_OP_SPLIT:
            if (n + 2 > DSA_REGEX_PROGRAM) {
                r->failed = 1;
                return;
            }

            r->work[n++] = op->b;
            r->work[n++] = op->a;
            break;

        case DSA_OP_JUMP:
            r->work[n++] = op->a;
            break;

        case DSA_OP_BEGIN:
            if (start) {
                r->work[n++] = pc + 1;
            }

            break;

        case DSA_OP_END:
            if (end) {
                r->work[n++] = pc + 1;

            } else {
                r->found[r->n_found++] = pc;
            }

            break;

        case DSA_OP_FREE:
            r->free = 1;
            r->work[n++] = pc + 1;
            break;

        case DSA_OP_MATCH:
            r->match = 1;

            /* fall through */

        case DSA_OP_CLASS:
            r->found[r->n_found++] = pc;
            break;
        }
    }
}


/* The state of the set that was found. */

static uint32_t
dsa_regex_intern(dsa_regex_t *r)
{
    int        rc;
    char      *copy;
    uint64_t  *value;
    dsa_str_t  key;

    /*
     * Behind a match everything is accepted, in one state: the last class and
     * the end of the program.
     */

    if (r->free) {
        r->n_found = 3;
        r->found[0] = 0;
        r->found[1] = r->n_ops - 3;
        r->found[2] = r->n_ops - 1;
    }

    qsort(r->found + 1, r->n_found - 1, sizeof(uint32_t),
          dsa_regex_bound_compare);

    key = dsa_str(r->found, r->n_found * sizeof(uint32_t));
    value = dsa_map_find(&r->states, key);

    if (value != NULL) {
        return (uint32_t) *value;
    }

    copy = r->n_sets < DSA_REGEX_STATES ? dsa_arena_dup(r->arena, key) : NULL;

    if (copy == NULL) {
        r->failed = 1;
        return 0;
    }

    key.data = copy;
    rc = dsa_map_add(&r->states, key, r->n_sets);

    if (rc != DSA_OK) {
        r->failed = 1;
        return 0;
    }

    r->set[r->n_sets] = key;

    return r->n_sets++;
}


static int
dsa_regex_in(const dsa_regex_t *r, const dsa_op_t *op, uint32_t c)
{
    uint32_t                  lo, hi, mid;
    const dsa_regex_range_t  *range;

    lo = 0;
    hi = op->b;
    range = &r->tree.range[op->a];

    while (lo < hi) {
        mid = (lo + hi) / 2;

        if (range[mid].hi < c) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    return lo < op->b && range[lo].lo <= c;
}
