
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "grammar/schema.h"


static uint32_t dsa_schema_items(dsa_schema_t *s, const dsa_json_t *items);
static uint32_t dsa_schema_prefix(dsa_schema_t *s, const dsa_json_t *prefix,
    uint32_t min, uint32_t n, uint32_t from, uint32_t close);


void
dsa_schema_array(dsa_schema_t *s, const dsa_json_t *schema, uint32_t from,
    uint32_t to)
{
    uint32_t           min, max, n, open, close, item, body, end, node;
    const dsa_json_t  *prefix, *items;

    min = dsa_schema_count(s, schema, "minItems", 0);
    max = dsa_schema_count(s, schema, "maxItems", DSA_AUTOMATON_MANY);
    prefix = dsa_json_get(schema, "prefixItems");
    items = dsa_json_get(schema, "items");

    if (min > max) {
        dsa_schema_fail(s, "minItems", "it is greater than maxItems, so that "
                        "no array satisfies both");
    }

    if (prefix != NULL && (prefix->type != DSA_JSON_ARRAY || prefix->n == 0)) {
        dsa_schema_fail(s, "prefixItems", "it is not a list of schemas; "
                        "expected an array with at least one schema");
    }

    if (s->failed) {
        return;
    }

    n = prefix != NULL ? prefix->n : 0;
    n = n < max ? n : max;

    open = dsa_automaton_node(s->a);
    node = dsa_automaton_node(s->a);
    close = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, from, '[', '[', open);
    dsa_schema_blank(s, open, node);
    dsa_automaton_bytes(s->a, close, ']', ']', to);

    if (n != 0) {
        node = dsa_schema_prefix(s, prefix, min, n, node, close);
    }

    min = min > n ? min - n : 0;
    max = max != DSA_AUTOMATON_MANY ? max - n : max;

    item = dsa_schema_items(s, items);

    if (n == 0) {
        if (min == 0) {
            dsa_automaton_empty(s->a, node, close);
        }

        if (max == 0) {
            return;
        }

        end = dsa_automaton_node(s->a);
        dsa_automaton_call(s->a, node, item, end);
        node = end;

        min = min != 0 ? min - 1 : 0;
        max = max != DSA_AUTOMATON_MANY ? max - 1 : max;
    }

    /* "," and an item, repeatedly */

    body = dsa_automaton_node(s->a);
    open = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, body, ',', ',', open);

    n = dsa_automaton_node(s->a);
    dsa_schema_blank(s, open, n);
    dsa_automaton_call(s->a, n, item, end);
    dsa_automaton_end(s->a, end);

    end = dsa_automaton_node(s->a);
    dsa_automaton_loop(s->a, node, body, min, max, end);
    dsa_schema_blank(s, end, close);
}


/* The entry of a rule for one item. */

static uint32_t
dsa_schema_items(dsa_schema_t *s, const dsa_json_t *items)
{
    size_t    len;
    uint32_t  entry, end;

    entry = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);

    dsa_automaton_end(s->a, end);

    if (items == NULL) {
        dsa_schema_any(s, DSA_VALUES_JSON, entry, end);
        return entry;
    }

    len = dsa_schema_push(s, "items");
    dsa_schema_compile(s, items, DSA_VALUES_JSON, entry, end);
    dsa_schema_pop(s, len);

    return entry;
}


/* The first n items; the array may end behind min of them. */

static uint32_t
dsa_schema_prefix(dsa_schema_t *s, const dsa_json_t *prefix, uint32_t min,
    uint32_t n, uint32_t from, uint32_t close)
{
    size_t             len;
    uint32_t           i, comma, node;
    const dsa_json_t  *v;

    for (i = 0, v = prefix->first; i < n; i++, v = v->next) {

        if (i >= min && i == 0) {
            dsa_automaton_empty(s->a, from, close);

        } else if (i >= min) {
            dsa_schema_blank(s, from, close);
        }

        if (i != 0) {
            comma = dsa_automaton_node(s->a);
            node = dsa_automaton_node(s->a);

            dsa_automaton_bytes(s->a, from, ',', ',', comma);
            dsa_schema_blank(s, comma, node);
            from = node;
        }

        node = dsa_automaton_node(s->a);

        len = dsa_schema_push(s, "prefixItems[%u]", i);
        dsa_schema_compile(s, v, DSA_VALUES_JSON, from, node);
        dsa_schema_pop(s, len);

        from = node;
    }

    return from;
}
