
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/json_write.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/text.h"


static dsa_property_t *dsa_schema_find(dsa_property_t *property, uint32_t n,
    dsa_str_t name);
static void dsa_schema_member(dsa_schema_t *s, const dsa_property_t *property,
    const dsa_json_t *other, uint32_t from, uint32_t to);
static void dsa_schema_key(dsa_schema_t *s, dsa_str_t name, uint32_t from,
    uint32_t to);
static void dsa_schema_others(dsa_schema_t *s, const dsa_json_t *other,
    const dsa_property_t *property, uint32_t n, uint32_t empty,
    uint32_t more);


/*
 * Before each property there are two nodes: one for an object without members
 * so far, and one behind a member.  Both lead to the property's name, and past
 * it if it is optional.
 */

void
dsa_schema_object(dsa_schema_t *s, const dsa_json_t *schema, uint32_t from,
    uint32_t to)
{
    uint32_t           i, n, open, close, empty, more, name, comma, node;
    dsa_property_t    *property;
    const dsa_json_t  *other;

    other = dsa_json_get(schema, "additionalProperties");
    property = dsa_schema_properties(s, schema, &n);

    if (s->failed) {
        return;
    }

    if (n == 0 && dsa_schema_is_any(other)) {
        dsa_schema_any_object(s, from, to);
        return;
    }

    open = dsa_automaton_node(s->a);
    close = dsa_automaton_node(s->a);
    empty = dsa_automaton_node(s->a);
    more = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, from, '{', '{', open);
    dsa_automaton_bytes(s->a, close, '}', '}', to);
    dsa_schema_blank(s, open, empty);

    for (i = 0; i < n && !s->failed; i++) {
        name = dsa_automaton_node(s->a);
        comma = dsa_automaton_node(s->a);

        dsa_automaton_empty(s->a, empty, name);
        dsa_automaton_bytes(s->a, more, ',', ',', comma);
        dsa_schema_blank(s, comma, name);

        node = dsa_automaton_node(s->a);

        if (!property[i].required) {
            dsa_automaton_empty(s->a, more, node);
        }

        more = node;
        dsa_schema_member(s, &property[i], other, name, more);

        node = dsa_automaton_node(s->a);

        if (!property[i].required) {
            dsa_automaton_empty(s->a, empty, node);
        }

        empty = node;
    }

    if (other == NULL || other->type != DSA_JSON_FALSE) {
        dsa_schema_others(s, other, property, n, empty, more);
    }

    dsa_automaton_empty(s->a, empty, close);
    dsa_schema_blank(s, more, close);
}


dsa_property_t *
dsa_schema_properties(dsa_schema_t *s, const dsa_json_t *schema, uint32_t *n)
{
    uint32_t           size;
    dsa_property_t    *list, *p;
    const dsa_json_t  *properties, *required, *other, *v;

    *n = 0;
    properties = dsa_json_get(schema, "properties");
    required = dsa_json_get(schema, "required");
    other = dsa_json_get(schema, "additionalProperties");

    if (properties != NULL && properties->type != DSA_JSON_OBJECT) {
        dsa_schema_fail(s, "properties", "it is not an object; expected the "
                        "schema of each property by its name");
        return NULL;
    }

    if (required != NULL && required->type != DSA_JSON_ARRAY) {
        dsa_schema_fail(s, "required", "it is not a list; expected an array "
                        "of names of properties");
        return NULL;
    }

    size = (properties != NULL ? properties->n : 0)
           + (required != NULL ? required->n : 0);

    if (size > DSA_SCHEMA_PROPERTIES) {
        dsa_schema_fail(s, "properties", "there are too many; expected at "
                        "most %d", DSA_SCHEMA_PROPERTIES);
        return NULL;
    }

    list = dsa_arena_calloc(s->arena, (size + 1) * sizeof(dsa_property_t));

    if (list == NULL) {
        dsa_schema_fail(s, "properties", "there is no memory for them");
        return NULL;
    }

    if (properties != NULL) {
        for (v = properties->first; v != NULL; v = v->next) {
            list[*n].name = v->key;
            list[*n].schema = v;
            *n += 1;
        }
    }

    for (v = required != NULL ? required->first : NULL; v != NULL;
         v = v->next)
    {
        if (v->type != DSA_JSON_STRING) {
            dsa_schema_fail(s, "required", "a name is not a string");
            return NULL;
        }

        dsa_schema_spend(s, *n);
        p = dsa_schema_find(list, *n, v->text);

        if (p == NULL) {
            if (other != NULL && other->type == DSA_JSON_FALSE) {
                dsa_schema_fail(s, "required", "\"%.*s\" is not in "
                                "\"properties\", and additionalProperties is "
                                "false, so that no object satisfies both",
                                (int) (v->text.len < 60 ? v->text.len : 60),
                                v->text.data);
                return NULL;
            }

            p = &list[*n];
            p->name = v->text;
            *n += 1;
        }

        p->required = 1;
    }

    return list;
}


dsa_dfa_t *
dsa_schema_other_names(dsa_schema_t *s, const dsa_property_t *property,
    uint32_t n)
{
    size_t      k;
    uint32_t    i;
    dsa_buf_t   b;
    dsa_dfa_t  *dfa;
    dsa_err_t   error;

    memset(&b, 0, sizeof(dsa_buf_t));

    /* a pattern for any of the names */

    dsa_buf_addz(&b, "^(?:");

    for (i = 0; i < n; i++) {
        if (i != 0) {
            dsa_buf_addz(&b, "|");
        }

        for (k = 0; k < property[i].name.len; k++) {
            if (property[i].name.data[k] == '\0') {
                dsa_buf_addz(&b, "\\0");
                continue;
            }

            if (strchr("^$\\.*+?()[]{}|/", property[i].name.data[k]) != NULL) {
                dsa_buf_addz(&b, "\\");
            }

            dsa_buf_add(&b, &property[i].name.data[k], 1);
        }
    }

    dsa_buf_addz(&b, n != 0 ? ")$" : "[])$");

    dfa = b.failed ? NULL : dsa_regex(dsa_str(b.data, b.len),
                                           &s->work, &error);
    dfa = dsa_dfa_complement(dfa);

    dsa_buf_free(&b);
    dsa_schema_charge(s, dfa);

    if (dfa == NULL) {
        dsa_schema_fail(s, "additionalProperties", "the names of the "
                        "properties are too long to be distinguished from "
                        "others; expected additionalProperties false, or "
                        "fewer and shorter names");
    }

    return dfa;
}


static dsa_property_t *
dsa_schema_find(dsa_property_t *property, uint32_t n, dsa_str_t name)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (dsa_str_eq(property[i].name, name)) {
            return &property[i];
        }
    }

    return NULL;
}


static void
dsa_schema_member(dsa_schema_t *s, const dsa_property_t *property,
    const dsa_json_t *other, uint32_t from, uint32_t to)
{
    size_t             len;
    uint32_t           key, value;
    const dsa_json_t  *schema;

    key = dsa_automaton_node(s->a);
    value = dsa_automaton_node(s->a);

    dsa_schema_key(s, property->name, from, key);
    dsa_schema_colon(s, key, value);

    if (property->schema != NULL) {
        schema = property->schema;
        len = dsa_schema_push(s, "properties.%.*s",
                              (int) (property->name.len < 100
                                     ? property->name.len : 100),
                              property->name.data);

    } else {
        schema = other;
        len = dsa_schema_push(s, "additionalProperties");
    }

    if (schema == NULL) {
        dsa_schema_any(s, DSA_VALUES_JSON, value, to);

    } else {
        dsa_schema_compile(s, schema, DSA_VALUES_JSON, value, to);
    }

    dsa_schema_pop(s, len);
}


static void
dsa_schema_key(dsa_schema_t *s, dsa_str_t name, uint32_t from, uint32_t to)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "\"");
    dsa_json_escape(&b, name);
    dsa_buf_addz(&b, "\"");

    if (b.failed) {
        dsa_schema_fail(s, NULL, "there is no memory for it");

    } else {
        dsa_automaton_literal(s->a, from, dsa_str(b.data, b.len), to);
    }

    dsa_buf_free(&b);
}


/* Any number of members with other names. */

static void
dsa_schema_others(dsa_schema_t *s, const dsa_json_t *other,
    const dsa_property_t *property, uint32_t n, uint32_t empty, uint32_t more)
{
    size_t      len;
    uint32_t    name, inside, end, key, value, comma;
    dsa_dfa_t  *dfa;

    name = dsa_automaton_node(s->a);
    inside = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);
    key = dsa_automaton_node(s->a);
    value = dsa_automaton_node(s->a);
    comma = dsa_automaton_node(s->a);

    dsa_automaton_empty(s->a, empty, name);
    dsa_automaton_bytes(s->a, more, ',', ',', comma);
    dsa_schema_blank(s, comma, name);

    dsa_automaton_bytes(s->a, name, '"', '"', inside);
    dsa_automaton_bytes(s->a, end, '"', '"', key);
    dsa_schema_colon(s, key, value);

    dfa = dsa_schema_other_names(s, property, n);

    if (dfa == NULL) {
        return;
    }

    dsa_text_dfa(s->a, dfa, DSA_TEXT_JSON, inside, end);
    dsa_dfa_free(dfa);

    if (other == NULL) {
        dsa_schema_any(s, DSA_VALUES_JSON, value, more);
        return;
    }

    len = dsa_schema_push(s, "additionalProperties");
    dsa_schema_compile(s, other, DSA_VALUES_JSON, value, more);
    dsa_schema_pop(s, len);
}
