
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A Lark grammar that was checked becomes paths of an automaton.  Each rule and
 * each terminal is a rule of the automaton.
 */


#include "grammar/lark.h"


static void dsa_lark_ignored(dsa_lark_t *l);
static void dsa_lark_rule(dsa_lark_t *l, const dsa_lark_symbol_t *symbol);
static int dsa_lark_is_left(const dsa_lark_t *l, uint32_t sequence);
static void dsa_lark_repeat(dsa_lark_t *l, uint32_t node, uint32_t from,
    uint32_t to);
static void dsa_lark_counted(dsa_lark_t *l, uint32_t node, uint32_t from,
    uint32_t to);
static void dsa_lark_once(dsa_lark_t *l, uint32_t node, uint32_t from,
    uint32_t to);
static void dsa_lark_items(dsa_lark_t *l, uint32_t first, uint32_t from,
    uint32_t to);
static void dsa_lark_path(dsa_lark_t *l, const dsa_lark_node_t *n,
    uint32_t from, uint32_t to);
static void dsa_lark_call(dsa_lark_t *l, uint32_t from, uint32_t entry,
    uint32_t to);


void
dsa_lark_build(dsa_lark_t *l, uint32_t from, uint32_t to)
{
    uint32_t  i, node;

    for (i = 0; i < l->n_symbols; i++) {
        l->symbol[i].entry = dsa_automaton_node(l->s->a);
    }

    if (l->ignore != 0) {
        dsa_lark_ignored(l);

        node = dsa_automaton_node(l->s->a);
        dsa_automaton_call(l->s->a, from, l->ignored, node);
        from = node;
    }

    for (i = 0; i < l->n_symbols; i++) {
        dsa_lark_rule(l, &l->symbol[i]);
    }

    dsa_automaton_call(l->s->a, from, l->symbol[l->start].entry, to);
}


/* Any number of texts that are ignored. */

static void
dsa_lark_ignored(dsa_lark_t *l)
{
    l->ignored = dsa_automaton_node(l->s->a);
    l->end = dsa_automaton_node(l->s->a);

    dsa_lark_once(l, l->ignore, l->ignored, l->ignored);

    dsa_automaton_empty(l->s->a, l->ignored, l->end);
    dsa_automaton_end(l->s->a, l->end);
}


/*
 * Alternatives that begin with the rule itself: what follows it there comes any
 * number of times behind one of the other alternatives.
 */

static void
dsa_lark_rule(dsa_lark_t *l, const dsa_lark_symbol_t *symbol)
{
    int       left;
    uint32_t  i, first, last;

    first = l->node[symbol->body].first;
    left = 0;

    for (i = first; i != 0; i = l->node[i].next) {
        left |= dsa_lark_is_left(l, i);
    }

    l->end = dsa_automaton_node(l->s->a);
    last = left ? dsa_automaton_node(l->s->a) : l->end;

    for (i = first; i != 0; i = l->node[i].next) {
        if (dsa_lark_is_left(l, i)) {
            dsa_lark_items(l, l->node[l->node[i].first].next, last, last);

        } else {
            dsa_lark_items(l, l->node[i].first, symbol->entry, last);
        }
    }

    if (left) {
        dsa_automaton_empty(l->s->a, last, l->end);
    }

    dsa_automaton_end(l->s->a, l->end);
}


static int
dsa_lark_is_left(const dsa_lark_t *l, uint32_t sequence)
{
    return l->node[l->node[sequence].first].left;
}


static void
dsa_lark_repeat(dsa_lark_t *l, uint32_t node, uint32_t from, uint32_t to)
{
    uint32_t                body, behind;
    const dsa_lark_node_t  *n;

    n = &l->node[node];

    if (n->max <= 1) {
        if (n->max == 1) {
            dsa_lark_once(l, node, from, to);
        }

        if (n->min == 0) {
            dsa_automaton_empty(l->s->a, from, to);
        }

        return;
    }

    if (n->max != DSA_AUTOMATON_MANY || n->min > 1) {
        dsa_lark_counted(l, node, from, to);
        return;
    }

    body = dsa_automaton_node(l->s->a);
    behind = n->min == 0 ? body : dsa_automaton_node(l->s->a);

    dsa_automaton_empty(l->s->a, from, body);
    dsa_lark_once(l, node, body, behind);

    if (behind != body) {
        dsa_automaton_empty(l->s->a, behind, body);
    }

    dsa_automaton_empty(l->s->a, behind, to);
}


static void
dsa_lark_counted(dsa_lark_t *l, uint32_t node, uint32_t from, uint32_t to)
{
    uint32_t                body, end;
    const dsa_lark_node_t  *n;

    n = &l->node[node];
    end = l->end;

    body = dsa_automaton_node(l->s->a);
    l->end = dsa_automaton_node(l->s->a);

    dsa_lark_once(l, node, body, l->end);
    dsa_automaton_end(l->s->a, l->end);

    l->end = end;

    dsa_automaton_loop(l->s->a, from, body, n->min, n->max, to);
}


static void
dsa_lark_once(dsa_lark_t *l, uint32_t node, uint32_t from, uint32_t to)
{
    uint32_t                i;
    const dsa_lark_node_t  *n;

    n = &l->node[node];

    switch (n->kind) {

    case DSA_LARK_CHOICE:
        for (i = n->first; i != 0; i = l->node[i].next) {
            dsa_lark_items(l, l->node[i].first, from, to);
        }

        return;

    case DSA_LARK_SEQUENCE:
        dsa_lark_items(l, n->first, from, to);
        return;

    default:
        dsa_lark_path(l, n, from, to);
    }
}


/* The children of a sequence from the first of these on. */

static void
dsa_lark_items(dsa_lark_t *l, uint32_t first, uint32_t from, uint32_t to)
{
    uint32_t  i, next, node;

    if (first == 0) {
        dsa_automaton_empty(l->s->a, from, to);
        return;
    }

    for (i = first; i != 0; i = next) {
        next = l->node[i].next;
        node = next != 0 ? dsa_automaton_node(l->s->a) : to;

        dsa_lark_repeat(l, i, from, node);
        from = node;
    }
}


/* A token, a rule or a terminal; what is ignored follows tokens of a rule. */

static void
dsa_lark_path(dsa_lark_t *l, const dsa_lark_node_t *n, uint32_t from,
    uint32_t to)
{
    int                       token;
    uint32_t                  node;
    const dsa_lark_symbol_t  *symbol;

    symbol = n->kind == DSA_LARK_NAME ? &l->symbol[n->symbol] : NULL;
    token = l->ignored != 0 && !n->terminal
            && (symbol == NULL || symbol->terminal);

    node = token ? dsa_automaton_node(l->s->a) : to;

    if (symbol != NULL) {
        dsa_lark_call(l, from, symbol->entry, node);

    } else {
        dsa_automaton_empty(l->s->a, from, n->in);
        dsa_automaton_empty(l->s->a, n->out, node);
    }

    if (token) {
        dsa_lark_call(l, node, l->ignored, to);
    }
}


/* The end of a rule is that of its last one, so that lists need no frames. */

static void
dsa_lark_call(dsa_lark_t *l, uint32_t from, uint32_t entry, uint32_t to)
{
    if (to == l->end) {
        dsa_automaton_empty(l->s->a, from, entry);

    } else {
        dsa_automaton_call(l->s->a, from, entry, to);
    }
}
