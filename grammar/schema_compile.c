
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Lists of parts become paths of the automaton.
 */


#include "grammar/schema.h"


static int dsa_schema_refers(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_parts_t *target);
static void dsa_schema_call(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_values_e values, uint32_t from, uint32_t to);
static dsa_str_t dsa_schema_rule_key(dsa_schema_t *s,
    const dsa_parts_t *parts, dsa_values_e values);
static void dsa_schema_expanded(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_values_e values, uint32_t from, uint32_t to);
static void dsa_schema_alternatives(dsa_schema_t *s, const dsa_parts_t *p,
    uint32_t k, uint32_t n, dsa_values_e values, uint32_t from, uint32_t to);
static void dsa_schema_typed(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_values_e values, uint32_t from, uint32_t to);


void
dsa_schema_compile(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    uint32_t     i;
    dsa_parts_t  p;

    if (s->failed || parts->never || s->a->state != DSA_AUTOMATON_GOOD) {
        return;
    }

    if (dsa_schema_refers(s, parts, &p)) {
        dsa_schema_call(s, &p, values, from, to);
        return;
    }

    memset(&p, 0, sizeof(dsa_parts_t));

    for (i = 0; i < parts->n; i++) {
        dsa_parts_expand(s, &p, &parts->part[i]);
    }

    if (p.refers) {
        dsa_schema_call(s, &p, values, from, to);
        return;
    }

    dsa_schema_expanded(s, &p, values, from, to);
}


void
dsa_schema_rules(dsa_schema_t *s)
{
    uint32_t            end;
    dsa_schema_rule_t  *rule;

    while (s->pending != NULL && !s->failed) {
        rule = s->pending;
        s->pending = rule->next;

        end = dsa_automaton_node(s->a);
        dsa_automaton_end(s->a, end);

        if (rule->parts.n == 1 && rule->parts.part[0].kind == DSA_PART_SCHEMA)
        {
            dsa_schema_compile(s, &rule->parts, rule->values, rule->entry,
                               end);

        } else {
            dsa_schema_expanded(s, &rule->parts, rule->values, rule->entry,
                                end);
        }
    }
}


/* 1: the parts are a schema that is only a $ref, whose target this is. */

static int
dsa_schema_refers(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_parts_t *target)
{
    const char        *path;
    const dsa_json_t  *v, *ref;

    if (parts->n != 1 || parts->part[0].kind != DSA_PART_SCHEMA) {
        return 0;
    }

    ref = dsa_json_get(parts->part[0].schema, "$ref");

    if (ref == NULL) {
        return 0;
    }

    for (v = parts->part[0].schema->first; v != NULL; v = v->next) {
        if (v != ref && dsa_schema_keyword(v->key) != NULL) {
            return 0;
        }
    }

    dsa_schema_at(s, &parts->part[0]);
    v = dsa_schema_pointer(s, ref, &path);

    memset(target, 0, sizeof(dsa_parts_t));

    if (v != NULL) {
        dsa_parts_add(s, target, DSA_PART_SCHEMA, v, path);
    }

    return 1;
}


/* A rule for the values of a list, which is compiled once. */

static void
dsa_schema_call(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    dsa_str_t           key;
    dsa_schema_rule_t  *rule;

    key = dsa_schema_rule_key(s, parts, values);

    if (s->failed) {
        return;
    }

    rule = dsa_map_find_pointer(&s->rules, key);

    if (rule == NULL) {
        rule = dsa_arena_calloc(s->arena, sizeof(dsa_schema_rule_t));

        if (rule == NULL || dsa_map_add_pointer(&s->rules, key, rule) != DSA_OK)
        {
            dsa_schema_fail(s, NULL, "there is no memory for it");
            return;
        }

        rule->parts = *parts;
        rule->parts.refers = 0;
        rule->values = values;
        rule->entry = dsa_automaton_node(s->a);
        rule->next = s->pending;
        s->pending = rule;
    }

    dsa_automaton_call(s->a, from, rule->entry, to);
}


static dsa_str_t
dsa_schema_rule_key(dsa_schema_t *s, const dsa_parts_t *parts,
    dsa_values_e values)
{
    size_t     len;
    uint32_t   i;
    uintptr_t  *word;

    len = (2 * (size_t) parts->n + 1) * sizeof(uintptr_t);
    word = dsa_arena_alloc(s->arena, len);

    if (word == NULL) {
        dsa_schema_fail(s, NULL, "there is no memory for it");
        return dsa_str(NULL, 0);
    }

    word[0] = values;

    for (i = 0; i < parts->n; i++) {
        word[2 * i + 1] = (uintptr_t) parts->part[i].schema;
        word[2 * i + 2] = parts->part[i].kind;
    }

    return dsa_str(word, len);
}


static void
dsa_schema_expanded(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    uint32_t  k, n;

    if (s->failed || p->never || s->a->state != DSA_AUTOMATON_GOOD) {
        return;
    }

    if (p->n == 0 && values != DSA_VALUES_ELEMENTS) {
        dsa_schema_any(s, values, from, to);
        return;
    }

    if (p->n != 0) {
        dsa_schema_at(s, &p->part[0]);
    }

    if (s->depth == DSA_SCHEMA_DEPTH) {
        dsa_schema_fail(s, NULL, "schemas are nested too deep; expected at "
                        "most %d levels", DSA_SCHEMA_DEPTH);
        return;
    }

    s->depth++;
    k = dsa_parts_choice(p, &n);

    if (dsa_parts_types(s, p) == 0) {
        /* void */

    } else if (dsa_parts_enum(p) != NULL) {
        dsa_schema_enum(s, p, values, from, to);

    } else if (k != p->n) {
        dsa_schema_alternatives(s, p, k, n, values, from, to);

    } else {
        dsa_schema_typed(s, p, values, from, to);
    }

    s->depth--;
}


/* Each of the n alternatives of part k. */

static void
dsa_schema_alternatives(dsa_schema_t *s, const dsa_parts_t *p, uint32_t k,
    uint32_t n, dsa_values_e values, uint32_t from, uint32_t to)
{
    uint32_t     i, used, node;
    dsa_parts_t  q;

    used = 0;

    for (i = 0; i < n && !s->failed; i++) {
        if (!dsa_parts_choose(s, p, k, i, &q)) {
            continue;
        }

        used++;

        if (dsa_parts_dead(s, &q)) {
            continue;
        }

        node = dsa_automaton_node(s->a);
        dsa_automaton_empty(s->a, from, node);

        if (q.refers && !q.never) {
            dsa_schema_call(s, &q, values, node, to);

        } else {
            dsa_schema_expanded(s, &q, values, node, to);
        }
    }

    if (used == 0 && dsa_schema_skip(s)) {
        memset(&q, 0, sizeof(dsa_parts_t));

        for (i = 0; i < p->n; i++) {
            if (i != k) {
                dsa_parts_add(s, &q, (dsa_part_e) p->part[i].kind,
                              p->part[i].schema, p->part[i].path);
            }
        }

        dsa_schema_expanded(s, &q, values, from, to);

    } else if (used == 0) {
        dsa_schema_at(s, &p->part[k]);
        dsa_schema_fail(s, NULL, "none of its keywords is supported in "
                        "\"not\", and in a schema of \"oneOf\" that does not "
                        "exclude the others by a type, a constant or a "
                        "required property");
    }
}


static void
dsa_schema_typed(dsa_schema_t *s, const dsa_parts_t *p, dsa_values_e values,
    uint32_t from, uint32_t to)
{
    uint32_t  types;

    types = dsa_parts_types(s, p);

    dsa_parts_refuse(s, p, types);

    if (values == DSA_VALUES_ELEMENTS) {
        if ((types & DSA_TYPE_OBJECT) != 0) {
            dsa_tools_elements(s, p, from, to);
        }

        return;
    }

    if ((types & DSA_TYPE_STRING) != 0 && values != DSA_VALUES_NOT_STRINGS) {
        dsa_schema_leaf(s, p, DSA_TYPE_STRING, values, from, to);
    }

    if (values == DSA_VALUES_TEXT) {
        return;
    }

    dsa_schema_words(s, p, types, from, to);

    if ((types & DSA_TYPE_NUMBER) != 0) {
        dsa_schema_leaf(s, p, types & DSA_TYPE_NUMBER, DSA_VALUES_JSON, from,
                        to);
    }

    if ((types & DSA_TYPE_ARRAY) != 0) {
        dsa_schema_array(s, p, from, to);
    }

    if ((types & DSA_TYPE_OBJECT) != 0) {
        dsa_schema_object(s, p, from, to);
    }
}
