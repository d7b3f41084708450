
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "base/json_write.h"
#include "grammar/schema.h"
#include "grammar/text.h"


#define DSA_OBJECT_COUNTED  64          /* members that are counted */
#define DSA_OBJECT_STATES                                                     \
    ((DSA_OBJECT_COUNTED + 1) << DSA_SCHEMA_DEMANDS)


/*
 * Between two members there is a node for each number of members so far, and
 * for each set of demands that they meet.  If there is no maximum, the last
 * number stands for more as well.
 */

typedef struct {
    uint32_t             min;
    uint32_t             max;           /* DSA_AUTOMATON_MANY: none */
    uint32_t             last;
    dsa_demands_t        demands;
    uint32_t             sets;          /* of demands */
    uint32_t             node[DSA_OBJECT_STATES];   /* [last + 1][sets] */
} dsa_counted_t;


/* Where members with other names begin and end. */

typedef struct {
    uint32_t             from;
    uint32_t             to;
} dsa_others_t;


static int dsa_object_count(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_counted_t *c);
static void dsa_object_property(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t met, dsa_counted_t *c);
static void dsa_object_others(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_counted_t *c);
static uint32_t dsa_object_end(dsa_schema_t *s, const dsa_counted_t *c,
    const uint32_t *to);
static void dsa_object_members(dsa_schema_t *s, const dsa_counted_t *c,
    uint32_t entry, uint32_t met, const uint32_t *to);
static int dsa_object_rule(const dsa_counted_t *c);
static void dsa_object_named(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_str_t name, uint32_t from, uint32_t to);
static void dsa_object_key(dsa_schema_t *s, dsa_str_t name, uint32_t from,
    uint32_t to);
static void dsa_object_other(dsa_schema_t *s, const dsa_dfa_t *names,
    const dsa_parts_t *value, void *data);


void
dsa_schema_object(dsa_schema_t *s, const dsa_parts_t *p, uint32_t from,
    uint32_t to)
{
    uint32_t         i, n, open, close;
    dsa_counted_t    c;
    dsa_property_t  *property;

    property = dsa_schema_properties(s, p, &n);

    if (property == NULL
        || dsa_object_count(s, p, property, n, &c) != DSA_OK
        || dsa_schema_demands(s, p, property, n, &c.demands) != DSA_OK)
    {
        return;
    }

    c.sets = 1U << c.demands.n;

    if (n == 0 && c.min == 0 && c.demands.n == 0 && c.max == DSA_AUTOMATON_MANY
        && dsa_parts_open(p))
    {
        dsa_schema_any_object(s, from, to);
        return;
    }

    open = dsa_automaton_node(s->a);
    close = dsa_automaton_node(s->a);

    for (i = 0; i < (c.last + 1) * c.sets; i++) {
        c.node[i] = dsa_automaton_node(s->a);
    }

    dsa_automaton_bytes(s->a, from, '{', '{', open);
    dsa_automaton_bytes(s->a, close, '}', '}', to);
    dsa_schema_blank(s, open, c.node[0]);

    for (i = 0; i < n && !s->failed; i++) {
        dsa_object_property(s, p, &property[i],
                            c.demands.n != 0 ? c.demands.met[i] : 0, &c);
    }

    if (!dsa_parts_closed(p)) {
        dsa_object_others(s, p, property, n, &c);
    }

    if (c.min == 0 && c.demands.n == 0) {
        dsa_automaton_empty(s->a, c.node[0], close);
    }

    for (i = c.min > 1 ? c.min : 1; i <= c.last; i++) {
        dsa_schema_blank(s, c.node[(i + 1) * c.sets - 1], close);
    }
}


/* The numbers of members; DSA_ERROR: there are no objects, or failed. */

static int
dsa_object_count(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_counted_t *c)
{
    uint32_t     i, required;
    const char  *keyword;

    if (dsa_parts_range(s, p, "minProperties", "maxProperties", &c->min,
                        &c->max) != DSA_OK)
    {
        return DSA_ERROR;
    }

    required = 0;

    for (i = 0; i < n; i++) {
        required += (uint32_t) property[i].required;
    }

    c->min = required < c->min ? c->min : 0;

    if (dsa_parts_closed(p)) {
        c->max = n <= c->max ? DSA_AUTOMATON_MANY : c->max;

        if (n < c->min) {
            return DSA_ERROR;
        }

    } else if (c->min > 1 && dsa_schema_skip(s)) {
        c->min = 1;

    } else if (c->min > 1) {

        /* other names may be repeated, and count only once then */

        dsa_parts_at(s, p, "minProperties");
        dsa_schema_fail(s, "minProperties", "it is not supported beside "
                        "additional properties; expected at most 1, "
                        "additionalProperties false, or as many required "
                        "properties");
        return DSA_ERROR;
    }

    c->last = c->max != DSA_AUTOMATON_MANY ? c->max
              : c->min > 1 ? c->min : 1;

    if (c->last > DSA_OBJECT_COUNTED && dsa_schema_skip(s)) {
        c->min = c->min != 0;
        c->max = DSA_AUTOMATON_MANY;
        c->last = 1;
    }

    if (c->last > DSA_OBJECT_COUNTED) {
        keyword = c->max != DSA_AUTOMATON_MANY ? "maxProperties"
                                               : "minProperties";
        dsa_parts_at(s, p, keyword);
        dsa_schema_fail(s, keyword, "it is too large; expected at most %d",
                        DSA_OBJECT_COUNTED);
        return DSA_ERROR;
    }

    return DSA_OK;
}


/* A property and, if it is optional, the way past it. */

static void
dsa_object_property(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t met, dsa_counted_t *c)
{
    uint32_t  i, n, entry, to[DSA_OBJECT_STATES];

    n = (c->last + 1) * c->sets;
    entry = dsa_automaton_node(s->a);

    for (i = 0; i < n; i++) {
        to[i] = dsa_automaton_node(s->a);

        if (!property->required) {
            dsa_automaton_empty(s->a, c->node[i], to[i]);
        }
    }

    dsa_object_named(s, p, property->name, entry, dsa_object_end(s, c, to));
    dsa_object_members(s, c, entry, met, to);

    memcpy(c->node, to, n * sizeof(uint32_t));
}


/* Any number of members with other names. */

static void
dsa_object_others(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_counted_t *c)
{
    dsa_others_t  others;

    others.from = dsa_automaton_node(s->a);
    others.to = dsa_object_end(s, c, c->node);

    dsa_schema_others(s, p, property, n, NULL, dsa_object_other, &others);
    dsa_object_members(s, c, others.from,
                       c->demands.n != 0 ? c->demands.met[n] : 0, c->node);
}


/* Where the value of a member ends. */

static uint32_t
dsa_object_end(dsa_schema_t *s, const dsa_counted_t *c, const uint32_t *to)
{
    uint32_t  end;

    if (!dsa_object_rule(c)) {
        return to[1];
    }

    end = dsa_automaton_node(s->a);
    dsa_automaton_end(s->a, end);

    return end;
}


/*
 * The ways to a member, and from it if it is a rule.  met: the demands that it
 * meets.
 */

static void
dsa_object_members(dsa_schema_t *s, const dsa_counted_t *c, uint32_t entry,
    uint32_t met, const uint32_t *to)
{
    uint32_t  i, k, comma, last, node;

    last = c->max != DSA_AUTOMATON_MANY ? c->last : c->last + 1;

    for (i = 0; i < last * c->sets; i++) {
        k = i / c->sets;

        if (k == 0 && i != 0) {
            continue;                   /* no members meet no demand */
        }

        node = c->node[i];

        if (k != 0) {
            comma = dsa_automaton_node(s->a);
            dsa_automaton_bytes(s->a, node, ',', ',', comma);

            node = dsa_automaton_node(s->a);
            dsa_schema_blank(s, comma, node);
        }

        k += k < c->last;

        if (dsa_object_rule(c)) {
            dsa_automaton_call(s->a, node, entry,
                               to[k * c->sets
                                  + ((i % c->sets) | (met & (c->sets - 1)))]);

        } else {
            dsa_automaton_empty(s->a, node, entry);
        }
    }
}


/*
 * 1: the members before a member make a difference behind it, so that its name
 * and value are a rule.
 */

static int
dsa_object_rule(const dsa_counted_t *c)
{
    return c->last != 1 || c->max != DSA_AUTOMATON_MANY || c->sets != 1;
}


static void
dsa_object_named(dsa_schema_t *s, const dsa_parts_t *p, dsa_str_t name,
    uint32_t from, uint32_t to)
{
    uint32_t     key, value;
    dsa_parts_t  member;

    key = dsa_automaton_node(s->a);
    value = dsa_automaton_node(s->a);

    memset(&member, 0, sizeof(dsa_parts_t));
    dsa_parts_member(s, p, name, &member);

    dsa_object_key(s, name, from, key);
    dsa_schema_colon(s, key, value);
    dsa_schema_compile(s, &member, DSA_VALUES_JSON, value, to);
}


static void
dsa_object_key(dsa_schema_t *s, dsa_str_t name, uint32_t from, uint32_t to)
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


static void
dsa_object_other(dsa_schema_t *s, const dsa_dfa_t *names,
    const dsa_parts_t *value, void *data)
{
    uint32_t             inside, end, key, node;
    const dsa_others_t  *others = data;

    inside = dsa_automaton_node(s->a);
    end = dsa_automaton_node(s->a);
    key = dsa_automaton_node(s->a);
    node = dsa_automaton_node(s->a);

    dsa_automaton_bytes(s->a, others->from, '"', '"', inside);
    dsa_text_dfa(s->a, names, DSA_TEXT_JSON, inside, end);
    dsa_automaton_bytes(s->a, end, '"', '"', key);
    dsa_schema_colon(s, key, node);
    dsa_schema_compile(s, value, DSA_VALUES_JSON, node, others->to);
}
