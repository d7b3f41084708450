
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "grammar/codepoint.h"
#include "grammar/lark.h"


void
dsa_lark_compile(dsa_schema_t *s, dsa_str_t definition, dsa_text_e form,
    uint32_t from, uint32_t to)
{
    size_t       i;
    dsa_lark_t  *l;

    if (definition.len > DSA_LARK_BYTES) {
        dsa_schema_fail(s, NULL, "it has %zu bytes; expected at most %d",
                        definition.len, DSA_LARK_BYTES);
        return;
    }

    l = calloc(1, sizeof(dsa_lark_t));

    if (l == NULL) {
        dsa_schema_fail(s, NULL, "there is no memory for it");
        return;
    }

    i = 0;

    l->s = s;
    l->text = definition;
    l->form = form;
    l->control = s->a->spelled.len != 0
                 ? dsa_codepoint_next(s->a->spelled, &i) : DSA_DFA_LAST + 1;

    dsa_lark_parse(l);

    if (!s->failed) {
        dsa_lark_check(l);
    }

    if (!s->failed) {
        dsa_lark_build(l, from, to);
    }

    if (!s->failed && s->a->state == DSA_AUTOMATON_LARGE) {
        dsa_schema_fail(s, NULL, "the grammar is too large; expected fewer "
                        "rules, or smaller regular expressions");
    }

    dsa_map_free(&l->symbols);
    free(l->node);
    free(l);
}


void
dsa_lark_fail(dsa_lark_t *l, size_t at, const char *fmt, ...)
{
    char       text[300];
    size_t     i;
    va_list    args;
    uint32_t   line, column;

    line = 1;
    column = 1;

    for (i = 0; i < at; /* void */) {
        if (dsa_codepoint_next(l->text, &i) == '\n') {
            line++;
            column = 0;
        }

        column++;
    }

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    dsa_schema_fail(l->s, NULL, "line %u, column %u: %s", line, column, text);
}
