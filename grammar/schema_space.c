
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "grammar/schema.h"


/* Nothing, one blank, or a newline and an indentation. */

void
dsa_schema_blank(dsa_schema_t *s, uint32_t from, uint32_t to)
{
    uint32_t  i, end, node, next;

    if (s->blank == 0) {
        s->blank = dsa_automaton_node(s->a);
        end = dsa_automaton_node(s->a);
        node = dsa_automaton_node(s->a);

        dsa_automaton_end(s->a, end);
        dsa_automaton_empty(s->a, s->blank, end);
        dsa_automaton_bytes(s->a, s->blank, ' ', ' ', end);
        dsa_automaton_bytes(s->a, s->blank, '\n', '\n', node);
        dsa_automaton_empty(s->a, node, end);

        for (i = 0; i < DSA_SCHEMA_BLANKS; i++) {
            next = dsa_automaton_node(s->a);
            dsa_automaton_bytes(s->a, node, ' ', ' ', next);
            dsa_automaton_empty(s->a, next, end);
            node = next;
        }
    }

    dsa_automaton_call(s->a, from, s->blank, to);
}


void
dsa_schema_colon(dsa_schema_t *s, uint32_t from, uint32_t to)
{
    uint32_t  node;

    node = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, from, ':', ':', node);
    dsa_automaton_bytes(s->a, node, ' ', ' ', to);
    dsa_automaton_empty(s->a, node, to);
}
