
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The names of an object's members: those that its schema has, and the other
 * ones by what their values are.
 */


#include "grammar/regex.h"
#include "grammar/schema.h"


#define DSA_NAMES_PATTERNS  32          /* most patterns of one object */


typedef struct {
    const dsa_parts_t   *parts;
    dsa_members_pt       handler;
    void                *data;
    uint32_t             n;
    const dsa_json_t    *pattern[DSA_NAMES_PATTERNS];   /* its schema */
    const dsa_part_t    *part[DSA_NAMES_PATTERNS];
    uint8_t              matched[DSA_NAMES_PATTERNS];
} dsa_names_t;


static void dsa_names_listed(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_part_t *part, dsa_map_t *map, dsa_property_t *list, uint32_t *n);
static const dsa_json_t *dsa_names_of(const dsa_parts_t *p,
    const dsa_part_t *part);
static void dsa_names_required(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_part_t *part, dsa_map_t *map, dsa_property_t *list,
    uint32_t *n);
static void dsa_names_add(dsa_schema_t *s, dsa_map_t *map,
    dsa_property_t *list, uint32_t *n, dsa_str_t name, int required);
static dsa_dfa_t *dsa_names_other(dsa_schema_t *s,
    const dsa_property_t *property, uint32_t n);
static dsa_dfa_t *dsa_names_permitted(dsa_schema_t *s, const dsa_part_t *part,
    dsa_dfa_t *names);
static void dsa_names_patterns(dsa_schema_t *s, const dsa_part_t *part,
    dsa_names_t *x);
static void dsa_names_split(dsa_schema_t *s, dsa_names_t *x, dsa_dfa_t *names,
    uint32_t k);
static void dsa_names_handle(dsa_schema_t *s, dsa_names_t *x,
    const dsa_dfa_t *names);


int
dsa_parts_closed(const dsa_parts_t *p)
{
    uint32_t           i;
    const dsa_part_t  *part;
    const dsa_json_t  *v;

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];
        v = dsa_part_get(part, "additionalProperties");

        if (v != NULL && v->type == DSA_JSON_FALSE
            && dsa_part_get(part, "patternProperties") == NULL)
        {
            return 1;
        }
    }

    return 0;
}


int
dsa_parts_open(const dsa_parts_t *p)
{
    uint32_t           i;
    const dsa_part_t  *part;

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];

        if (!dsa_schema_is_any(dsa_part_get(part, "additionalProperties"))
            || dsa_part_get(part, "patternProperties") != NULL
            || dsa_part_get(part, "propertyNames") != NULL)
        {
            return 0;
        }
    }

    return 1;
}


int
dsa_part_lists(dsa_schema_t *s, const dsa_part_t *part, dsa_str_t name)
{
    dsa_part_t   own = { part->schema, DSA_PART_OWN, part->path };
    dsa_parts_t  p = { .part = &own, .n = 1 }, member;

    memset(&member, 0, sizeof(dsa_parts_t));
    dsa_parts_member(s, &p, name, &member);

    return member.n != 1
           || member.part[0].schema != dsa_json_get(part->schema,
                                                    "additionalProperties");
}


int
dsa_part_lists_others(const dsa_part_t *part)
{
    return dsa_json_get(part->schema, "patternProperties") != NULL;
}


dsa_property_t *
dsa_schema_properties(dsa_schema_t *s, const dsa_parts_t *p, uint32_t *n)
{
    size_t             size;
    uint32_t           i;
    dsa_map_t          map;
    dsa_property_t    *list;
    const dsa_part_t  *part;
    const dsa_json_t  *properties, *required;

    size = 0;

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];
        properties = dsa_names_of(p, part);
        required = part->kind == DSA_PART_REQUIRED
                   ? part->schema : dsa_part_get(part, "required");

        size += 1 + (properties != NULL ? properties->n : 0)
                + (required != NULL ? required->n : 0);
    }

    list = dsa_arena_calloc(s->arena, (size + 1) * sizeof(dsa_property_t));

    if (list == NULL) {
        dsa_schema_fail(s, "properties", "there is no memory for them");
        return NULL;
    }

    *n = 0;
    memset(&map, 0, sizeof(dsa_map_t));

    for (i = 0; i < p->n && !s->failed; i++) {
        dsa_names_listed(s, p, &p->part[i], &map, list, n);
    }

    for (i = 0; i < p->n && !s->failed; i++) {
        dsa_names_required(s, p, &p->part[i], &map, list, n);
    }

    dsa_map_free(&map);

    return s->failed ? NULL : list;
}


/* The names of properties, also of those that must not be there. */

static void
dsa_names_listed(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_part_t *part, dsa_map_t *map, dsa_property_t *list, uint32_t *n)
{
    const dsa_json_t  *v, *properties;

    if (part->kind == DSA_PART_MEMBER_NOT || part->kind == DSA_PART_ABSENT) {
        dsa_names_add(s, map, list, n, dsa_part_name(part), 0);
        return;
    }

    properties = dsa_names_of(p, part);

    if (properties == NULL) {
        return;
    }

    dsa_schema_at(s, part);

    if (properties->type != DSA_JSON_OBJECT) {
        dsa_schema_fail(s, "properties", "it is not an object; expected the "
                        "schema of each property by its name");
        return;
    }

    for (v = properties->first; v != NULL; v = v->next) {
        dsa_names_add(s, map, list, n, v->key, 0);
    }
}


/*
 * The properties of a part, or NULL.  Those of a schema whose
 * additionalProperties is violated separate names to which it applies from the
 * other ones, if the object may have names that are not listed.
 */

static const dsa_json_t *
dsa_names_of(const dsa_parts_t *p, const dsa_part_t *part)
{
    if (part->kind == DSA_PART_OTHER && !dsa_parts_closed(p)
        && !dsa_part_lists_others(part))
    {
        return dsa_json_get(part->schema, "properties");
    }

    return dsa_part_get(part, "properties");
}


static void
dsa_names_required(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_part_t *part, dsa_map_t *map, dsa_property_t *list, uint32_t *n)
{
    uint32_t           known;
    const dsa_json_t  *v, *required;

    if (part->kind == DSA_PART_PRESENT) {
        dsa_names_add(s, map, list, n, dsa_part_name(part), 1);
        return;
    }

    required = part->kind == DSA_PART_REQUIRED
               ? part->schema : dsa_part_get(part, "required");

    if (required == NULL) {
        return;
    }

    dsa_schema_at(s, part);

    if (required->type != DSA_JSON_ARRAY) {
        dsa_schema_fail(s, "required", "it is not a list; expected an array "
                        "of names of properties");
        return;
    }

    for (v = required->first; v != NULL && !s->failed; v = v->next) {
        if (v->type != DSA_JSON_STRING) {
            dsa_schema_fail(s, "required", "a name is not a string");
            return;
        }

        known = *n;
        dsa_names_add(s, map, list, n, v->text, 1);

        if (*n != known && p->n == 1 && dsa_parts_closed(p)) {
            dsa_schema_fail(s, "required", "\"%.*s\" is not in "
                            "\"properties\", and additionalProperties is "
                            "false, so that no object satisfies both",
                            (int) (v->text.len < 60 ? v->text.len : 60),
                            v->text.data);
        }
    }
}


static void
dsa_names_add(dsa_schema_t *s, dsa_map_t *map, dsa_property_t *list,
    uint32_t *n, dsa_str_t name, int required)
{
    int        rc;
    uint64_t  *index;

    name.data = name.len != 0 ? name.data : (char *) "";
    rc = dsa_map_add(map, name, *n);

    if (rc == DSA_AGAIN) {
        index = dsa_map_find(map, name);
        list[*index].required |= required;
        return;
    }

    if (rc != DSA_OK || *n == DSA_SCHEMA_PROPERTIES) {
        dsa_schema_fail(s, "properties", "there are too many; expected at "
                        "most %d", DSA_SCHEMA_PROPERTIES);
        return;
    }

    list[*n].name = name;
    list[*n].required = required;
    *n += 1;
}


void
dsa_schema_others(dsa_schema_t *s, const dsa_parts_t *p,
    const dsa_property_t *property, uint32_t n, dsa_dfa_t *limit,
    dsa_members_pt handler, void *data)
{
    uint32_t      i;
    dsa_dfa_t    *names;
    dsa_names_t   x;

    memset(&x, 0, sizeof(dsa_names_t));

    x.parts = p;
    x.handler = handler;
    x.data = data;

    names = dsa_names_other(s, property, n);

    if (limit != NULL) {
        names = dsa_dfa_intersect(names, limit);
    }

    for (i = 0; i < p->n && !s->failed; i++) {
        names = dsa_names_permitted(s, &p->part[i], names);
        dsa_names_patterns(s, &p->part[i], &x);
    }

    dsa_names_split(s, &x, names, 0);
}


/* The names that no property has, or NULL with an error. */

static dsa_dfa_t *
dsa_names_other(dsa_schema_t *s, const dsa_property_t *property, uint32_t n)
{
    uint32_t    i;
    dsa_buf_t   b;
    dsa_dfa_t  *dfa;
    dsa_err_t   error;

    memset(&b, 0, sizeof(dsa_buf_t));

    /* a pattern for any of the names */

    dsa_buf_addz(&b, "^(?:");

    for (i = 0; i < n; i++) {
        dsa_buf_addz(&b, i != 0 ? "|" : "");
        dsa_schema_literal(&b, property[i].name);
    }

    dsa_buf_addz(&b, n != 0 ? ")$" : "[])$");

    dfa = b.failed ? NULL : dsa_regex(dsa_str(b.data, b.len), &s->work,
                                      &error);
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


/* Applies propertyNames; consumes names. */

static dsa_dfa_t *
dsa_names_permitted(dsa_schema_t *s, const dsa_part_t *part, dsa_dfa_t *names)
{
    dsa_part_t   rule;
    dsa_parts_t  p;

    rule.schema = dsa_part_get(part, "propertyNames");

    if (rule.schema == NULL) {
        return names;
    }

    rule.kind = DSA_PART_SCHEMA;
    rule.path = dsa_schema_path(s, part->path, "propertyNames");

    memset(&p, 0, sizeof(dsa_parts_t));
    dsa_parts_expand(s, &p, &rule);

    return dsa_dfa_intersect(names, s->failed ? NULL
                                              : dsa_schema_names(s, &p));
}


static void
dsa_names_patterns(dsa_schema_t *s, const dsa_part_t *part, dsa_names_t *x)
{
    const dsa_json_t  *v, *list;

    list = dsa_part_get(part, "patternProperties");

    if (list == NULL) {
        return;
    }

    dsa_schema_at(s, part);

    if (list->type != DSA_JSON_OBJECT || list->n > DSA_NAMES_PATTERNS - x->n) {
        dsa_schema_fail(s, "patternProperties", "it is not an object with at "
                        "most %d patterns", DSA_NAMES_PATTERNS);
        return;
    }

    for (v = list->first; v != NULL; v = v->next) {
        x->pattern[x->n] = v;
        x->part[x->n] = part;
        x->n++;
    }
}


/* The names that match pattern k, and the other ones; consumes names. */

static void
dsa_names_split(dsa_schema_t *s, dsa_names_t *x, dsa_dfa_t *names, uint32_t k)
{
    dsa_dfa_t  *matching, *other;

    if (s->failed || names == NULL) {
        dsa_dfa_free(names);
        dsa_schema_fail(s, NULL, "the names of its properties need too much "
                        "memory; expected fewer or simpler patterns");
        return;
    }

    dsa_schema_charge(s, names);

    if (dsa_dfa_empty(names)) {
        dsa_dfa_free(names);
        return;
    }

    if (k == x->n) {
        dsa_names_handle(s, x, names);
        dsa_dfa_free(names);
        return;
    }

    dsa_schema_at(s, x->part[k]);
    matching = dsa_dfa_copy(dsa_schema_regex(s, x->pattern[k],
                                             x->pattern[k]->key));
    other = dsa_dfa_complement(dsa_dfa_copy(matching));
    matching = dsa_dfa_intersect(dsa_dfa_copy(names), matching);
    other = dsa_dfa_intersect(names, other);

    x->matched[k] = 1;
    dsa_names_split(s, x, matching, k + 1);

    x->matched[k] = 0;
    dsa_names_split(s, x, other, k + 1);
}


/* What the values of names are that match some of the patterns. */

static void
dsa_names_handle(dsa_schema_t *s, dsa_names_t *x, const dsa_dfa_t *names)
{
    int                known;
    uint32_t           i, k;
    dsa_parts_t        value;
    const dsa_part_t  *part;
    const dsa_json_t  *v;

    memset(&value, 0, sizeof(dsa_parts_t));

    for (i = 0; i < x->parts->n; i++) {
        known = 0;
        part = &x->parts->part[i];

        for (k = 0; k < x->n; k++) {
            v = x->pattern[k];

            if (x->part[k] == part && x->matched[k]) {
                known = 1;
                dsa_parts_add(s, &value, DSA_PART_SCHEMA, v,
                              dsa_schema_path(s, part->path,
                                              "patternProperties.%.*s",
                                              (int) v->key.len, v->key.data));
                value.never |= v->type == DSA_JSON_FALSE;
            }
        }

        v = dsa_part_get(part, "additionalProperties");

        if (!known && v != NULL) {
            dsa_parts_add(s, &value, DSA_PART_SCHEMA, v,
                          dsa_schema_path(s, part->path,
                                          "additionalProperties"));
            value.never |= v->type == DSA_JSON_FALSE;
        }
    }

    if (!value.never && !s->failed) {
        x->handler(s, names, &value, x->data);
    }
}


int
dsa_schema_is_any(const dsa_json_t *schema)
{
    const dsa_json_t  *v;

    if (schema == NULL || schema->type == DSA_JSON_TRUE) {
        return 1;
    }

    v = schema->first;

    while (v != NULL && dsa_schema_keyword(v->key) == NULL) {
        v = v->next;
    }

    return v == NULL && schema->type == DSA_JSON_OBJECT;
}
