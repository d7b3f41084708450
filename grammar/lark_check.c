
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What a Lark grammar must satisfy before it is written to an automaton, which
 * would otherwise come back to a node for ever without a character.
 */


#include "grammar/lark.h"


static void dsa_lark_defined(dsa_lark_t *l);
static void dsa_lark_left(dsa_lark_t *l);
static void dsa_lark_solve(dsa_lark_t *l, int grounded);
static void dsa_lark_texts(const dsa_lark_t *l, dsa_lark_node_t *n);
static void dsa_lark_ground(const dsa_lark_t *l, dsa_lark_node_t *n);
static int dsa_lark_empty(const dsa_lark_node_t *n);
static void dsa_lark_repeated(dsa_lark_t *l);
static void dsa_lark_rest(dsa_lark_t *l, const dsa_lark_node_t *sequence);
static void dsa_lark_cycle(dsa_lark_t *l);
static uint32_t dsa_lark_front(const dsa_lark_t *l, uint32_t i);


void
dsa_lark_check(dsa_lark_t *l)
{
    const dsa_lark_symbol_t  *start;

    dsa_lark_defined(l);

    if (l->s->failed) {
        return;
    }

    dsa_lark_left(l);
    dsa_lark_solve(l, 0);
    dsa_lark_repeated(l);
    dsa_lark_solve(l, 1);
    dsa_lark_cycle(l);

    start = &l->symbol[l->start];

    if (!l->s->failed && !l->node[start->body].finite) {
        dsa_lark_fail(l, start->at, "no text satisfies the rule \"start\"");
    }
}


static void
dsa_lark_defined(dsa_lark_t *l)
{
    uint32_t                  i;
    const dsa_lark_symbol_t  *symbol;

    for (i = 0; i < l->n_symbols; i++) {
        symbol = &l->symbol[i];

        if (symbol->body == 0) {
            dsa_lark_fail(l, symbol->at, "\"%.*s\" is not defined",
                          (int) (symbol->name.len < DSA_LARK_SHOWN
                                 ? symbol->name.len : DSA_LARK_SHOWN),
                          symbol->name.data);
        }
    }
}


/* Finds the alternatives of a rule that begin with the rule. */

static void
dsa_lark_left(dsa_lark_t *l)
{
    uint32_t          i, k;
    dsa_lark_node_t  *n;

    for (i = 0; i < l->n_symbols; i++) {

        if (l->symbol[i].terminal) {
            continue;
        }

        for (k = l->node[l->symbol[i].body].first; k != 0;
             k = l->node[k].next)
        {
            n = &l->node[l->node[k].first];

            n->left = l->node[k].first != 0 && n->kind == DSA_LARK_NAME
                      && n->symbol == i && n->min == 1 && n->max == 1;
        }
    }
}


/*
 * Which nodes have an empty text, or any, or with grounded, which need a
 * character before they come back to themselves.  What holds for a node depends
 * on others; nothing holds at first, and what follows is added until nothing
 * does.
 */

static void
dsa_lark_solve(dsa_lark_t *l, int grounded)
{
    int               changed;
    uint32_t          i;
    dsa_lark_node_t  *n, before;

    do {
        changed = 0;
        dsa_schema_spend(l->s, l->n_nodes);

        for (i = l->n_nodes - 1; i > 0 && !l->s->failed; i--) {
            n = &l->node[i];
            before = *n;

            if (grounded) {
                dsa_lark_ground(l, n);

            } else {
                dsa_lark_texts(l, n);
            }

            changed |= n->nullable != before.nullable
                       || n->finite != before.finite
                       || n->grounded != before.grounded;
        }
    } while (changed && !l->s->failed);
}


static void
dsa_lark_texts(const dsa_lark_t *l, dsa_lark_node_t *n)
{
    uint32_t                i;
    const dsa_lark_node_t  *child;

    if (n->kind == DSA_LARK_TOKEN) {
        return;
    }

    if (n->kind == DSA_LARK_NAME) {
        child = &l->node[l->symbol[n->symbol].body];
        n->nullable = child->nullable;
        n->finite = child->finite;
        return;
    }

    n->nullable = n->kind == DSA_LARK_SEQUENCE;
    n->finite = n->kind == DSA_LARK_SEQUENCE;

    for (i = n->first; i != 0; i = child->next) {
        child = &l->node[i];

        if (n->kind == DSA_LARK_SEQUENCE) {
            n->nullable &= dsa_lark_empty(child) != 0;
            n->finite &= child->finite || child->min == 0;

        } else {
            n->nullable |= child->nullable;
            n->finite |= child->finite;
        }
    }
}


/* In a terminal, nothing comes back to itself: it is a regular expression. */

static void
dsa_lark_ground(const dsa_lark_t *l, dsa_lark_node_t *n)
{
    uint32_t                i;
    const dsa_lark_node_t  *child;

    if (n->kind == DSA_LARK_TOKEN) {
        return;
    }

    if (n->kind == DSA_LARK_NAME) {
        n->grounded = n->left
                      || l->node[l->symbol[n->symbol].body].grounded;
        return;
    }

    n->grounded = 1;

    for (i = n->first; i != 0; i = child->next) {
        child = &l->node[i];
        n->grounded &= child->grounded;

        if (n->kind == DSA_LARK_SEQUENCE && !n->terminal
            && !dsa_lark_empty(child))
        {
            return;
        }
    }
}


static int
dsa_lark_empty(const dsa_lark_node_t *n)
{
    return n->nullable || n->min == 0;
}


static void
dsa_lark_repeated(dsa_lark_t *l)
{
    uint32_t                i;
    const dsa_lark_node_t  *n;

    for (i = 1; i < l->n_nodes && !l->s->failed; i++) {
        n = &l->node[i];

        if (n->max > 1 && n->nullable) {
            dsa_lark_fail(l, n->at, "what is repeated can be empty; expected "
                          "at least one character in it");
        }

        if (n->kind == DSA_LARK_SEQUENCE) {
            dsa_lark_rest(l, n);
        }
    }

    i = l->ignore;

    if (!l->s->failed && l->node[i].nullable && i != 0) {
        dsa_lark_fail(l, l->node[i].at, "what is ignored can be empty; "
                      "expected at least one character in it");
    }
}


/* What follows a rule that an alternative of it begins with is repeated. */

static void
dsa_lark_rest(dsa_lark_t *l, const dsa_lark_node_t *sequence)
{
    uint32_t                i;
    const dsa_lark_node_t  *left;

    left = &l->node[sequence->first];

    if (sequence->first == 0 || !left->left) {
        return;
    }

    for (i = left->next; i != 0; i = l->node[i].next) {
        if (!dsa_lark_empty(&l->node[i])) {
            return;
        }
    }

    dsa_lark_fail(l, left->at, "what follows the rule itself can be empty; "
                  "expected at least one character in it");
}


/* Names a rule that is not grounded because of itself. */

static void
dsa_lark_cycle(dsa_lark_t *l)
{
    uint32_t            i;
    dsa_lark_symbol_t  *symbol;

    for (i = 0; i < l->n_symbols; i++) {
        if (!l->node[l->symbol[i].body].grounded) {
            break;
        }
    }

    if (l->s->failed || i == l->n_symbols) {
        return;
    }

    for ( ;; ) {
        symbol = &l->symbol[i];

        if (symbol->seen) {
            break;
        }

        symbol->seen = 1;
        i = dsa_lark_front(l, symbol->body);
    }

    if (symbol->terminal) {
        dsa_lark_fail(l, symbol->at, "the terminal contains itself; expected "
                      "a rule, which has lower case");

    } else {
        dsa_lark_fail(l, symbol->at, "the rule begins with itself; expected a "
                      "repetition, for example  list: item (\",\" item)*");
    }
}


/* The name that a node which is not grounded begins with. */

static uint32_t
dsa_lark_front(const dsa_lark_t *l, uint32_t i)
{
    while (l->node[i].kind != DSA_LARK_NAME) {
        i = l->node[i].first;

        while (l->node[i].grounded) {
            i = l->node[i].next;
        }
    }

    return l->node[i].symbol;
}
