
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "grammar/schema.h"


static uint32_t dsa_schema_first_items(dsa_schema_t *s, const dsa_parts_t *p);
static uint32_t dsa_schema_items(dsa_schema_t *s, const dsa_parts_t *p);
static uint32_t dsa_schema_prefix(dsa_schema_t *s, const dsa_parts_t *p,
    uint32_t min, uint32_t n, uint32_t from, uint32_t close);


void
dsa_schema_array(dsa_schema_t *s, const dsa_parts_t *p, uint32_t from,
    uint32_t to)
{
    uint32_t  min, max, n, open, close, item, body, end, node;

    if (dsa_parts_range(s, p, "minItems", "maxItems", &min, &max) != DSA_OK) {
        return;
    }

    n = dsa_schema_first_items(s, p);
    n = n < max ? n : max;

    open = dsa_automaton_node(s->a);
    node = dsa_automaton_node(s->a);
    close = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, from, '[', '[', open);
    dsa_schema_blank(s, open, node);
    dsa_automaton_bytes(s->a, close, ']', ']', to);

    if (n != 0) {
        node = dsa_schema_prefix(s, p, min, n, node, close);
    }

    min = min > n ? min - n : 0;
    max = max != DSA_AUTOMATON_MANY ? max - n : max;

    item = dsa_schema_items(s, p);

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


/* The number of items that have schemas of their own. */

static uint32_t
dsa_schema_first_items(dsa_schema_t *s, const dsa_parts_t *p)
{
    uint32_t           i, n;
    const dsa_json_t  *v;

    n = 0;

    for (i = 0; i < p->n; i++) {
        v = dsa_part_get(&p->part[i], "prefixItems");

        if (v != NULL && v->type != DSA_JSON_ARRAY) {
            dsa_schema_fail(s, "prefixItems", "it is not a list of schemas; "
                            "expected an array");
        }

        v = dsa_part_prefix(&p->part[i]);
        n = v != NULL && v->n > n ? v->n : n;
    }

    return n;
}


/* The entry of a rule for one item. */

static uint32_t
dsa_schema_items(dsa_schema_t *s, const dsa_parts_t *p)
{
    uint32_t     entry, end;
    dsa_parts_t  item;

    entry = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);

    dsa_automaton_end(s->a, end);

    memset(&item, 0, sizeof(dsa_parts_t));
    dsa_parts_item(s, p, DSA_AUTOMATON_MANY, &item);
    dsa_schema_compile(s, &item, DSA_VALUES_JSON, entry, end);

    return entry;
}


/* The first n items; the array may end behind min of them. */

static uint32_t
dsa_schema_prefix(dsa_schema_t *s, const dsa_parts_t *p, uint32_t min,
    uint32_t n, uint32_t from, uint32_t close)
{
    uint32_t     i, comma, node;
    dsa_parts_t  item;

    for (i = 0; i < n && !s->failed; i++) {

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

        memset(&item, 0, sizeof(dsa_parts_t));
        dsa_parts_item(s, p, i, &item);
        dsa_schema_compile(s, &item, DSA_VALUES_JSON, from, node);

        from = node;
    }

    return from;
}
