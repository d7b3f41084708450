
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Whether a value satisfies a schema: for the values of enum and const, and
 * for names of properties.
 */


#include <math.h>
#include <stdlib.h>

#include "grammar/codepoint.h"
#include "grammar/schema.h"


static int dsa_valid(dsa_schema_t *s, const dsa_json_t *schema, int own,
    const dsa_json_t *v);
static int dsa_valid_list(dsa_schema_t *s, const dsa_json_t *list,
    const dsa_json_t *v);
static int dsa_valid_dependency(dsa_schema_t *s, const dsa_json_t *entry,
    const dsa_json_t *v);
static uint32_t dsa_valid_type_of(const dsa_json_t *v);
static long double dsa_valid_number(const dsa_json_t *v);
static int dsa_valid_is_number(const dsa_json_t *v);
static int dsa_valid_equal(dsa_schema_t *s, const dsa_json_t *a,
    const dsa_json_t *b);
static const dsa_json_t *dsa_valid_find(const dsa_json_t *object,
    dsa_str_t name);


int
dsa_parts_valid(dsa_schema_t *s, const dsa_parts_t *p, const dsa_json_t *v)
{
    uint32_t  i;

    for (i = 0; i < p->n && !s->failed; i++) {
        if (!dsa_part_valid(s, &p->part[i], v)) {
            return 0;
        }
    }

    return !p->never && !s->failed;
}


int
dsa_part_valid(dsa_schema_t *s, const dsa_part_t *part, const dsa_json_t *v)
{
    const dsa_json_t  *schema, *member;

    schema = part->schema;
    dsa_schema_at(s, part);

    switch (part->kind) {

    case DSA_PART_SCHEMA:
        return dsa_valid(s, schema, 0, v);

    case DSA_PART_OWN:
        return dsa_valid(s, schema, 1, v);

    case DSA_PART_ANY_OF:
    case DSA_PART_ONE_OF:
        return dsa_valid_any_of(s, NULL, schema, v);

    case DSA_PART_IF:
        return dsa_valid_if(s, schema, dsa_json_get(schema, "if"), v);

    case DSA_PART_DEPENDENT:
        return dsa_valid_dependency(s, schema, v);

    case DSA_PART_NOT:
        return !dsa_valid(s, schema, 0, v);

    case DSA_PART_NOT_KEYWORD:
        return dsa_part_supported(part, 0)
               && !dsa_schema_keyword(schema->key)->valid(s, NULL, schema, v);

    case DSA_PART_REQUIRED:
        return dsa_valid_required(s, NULL, schema, v);

    case DSA_PART_OTHER:
        return !dsa_valid_additional(s, schema,
                                     dsa_json_get(schema,
                                                  "additionalProperties"), v);
    }

    /* what is left concerns objects and their members */

    if (v->type != DSA_JSON_OBJECT) {
        return part->kind != DSA_PART_OBJECT;
    }

    member = part->kind != DSA_PART_OBJECT
             ? dsa_valid_find(v, dsa_part_name(part)) : NULL;

    switch (part->kind) {

    case DSA_PART_PRESENT:
        return member != NULL;

    case DSA_PART_ABSENT:
        return member == NULL;

    case DSA_PART_MEMBER_NOT:
        return member == NULL || !dsa_valid(s, schema, 0, member);
    }

    return 1;
}


static int
dsa_valid(dsa_schema_t *s, const dsa_json_t *schema, int own,
    const dsa_json_t *v)
{
    int                   valid;
    const dsa_json_t     *keyword;
    const dsa_keyword_t  *k;

    if (schema->type != DSA_JSON_OBJECT) {
        return schema->type == DSA_JSON_TRUE;
    }

    if (s->depth == DSA_SCHEMA_DEPTH) {
        dsa_schema_fail(s, NULL, "schemas are nested too deep; expected at "
                        "most %d levels", DSA_SCHEMA_DEPTH);
        return 0;
    }

    s->depth++;
    valid = 1;

    for (keyword = schema->first; keyword != NULL && valid && !s->failed;
         keyword = keyword->next)
    {
        dsa_schema_spend(s, 1);
        k = dsa_schema_keyword(keyword->key);

        if (k == NULL || (own && (k->what & DSA_KEYWORD_APART) != 0)) {
            continue;
        }

        if (k->valid == NULL && dsa_schema_skip(s)) {
            continue;
        }

        if (k->valid == NULL) {
            dsa_schema_fail(s, "", "\"%s\" is not supported", k->name);
            break;
        }

        valid = k->valid(s, schema, keyword, v);
    }

    s->depth--;

    return valid && !s->failed;
}


int
dsa_valid_type(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    return (dsa_schema_types(s, keyword) & dsa_valid_type_of(v)) != 0;
}


int
dsa_valid_enum(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_json_t  *item;

    if (keyword == s->listed && v == s->candidate) {
        return 1;
    }

    if (dsa_str_eqz(keyword->key, "const")) {
        return dsa_valid_equal(s, keyword, v);
    }

    for (item = keyword->first; item != NULL; item = item->next) {
        if (dsa_valid_equal(s, item, v)) {
            return 1;
        }
    }

    return 0;
}


int
dsa_valid_all_of(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_json_t  *item;

    for (item = keyword->first; item != NULL; item = item->next) {
        if (!dsa_valid(s, item, 0, v)) {
            return 0;
        }
    }

    return 1;
}


/* anyOf and oneOf */

int
dsa_valid_any_of(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    uint32_t           n;
    const dsa_json_t  *item;

    n = 0;

    for (item = keyword->first; item != NULL; item = item->next) {
        n += (uint32_t) dsa_valid(s, item, 0, v);
    }

    return dsa_str_eqz(keyword->key, "oneOf") ? n == 1 : n != 0;
}


int
dsa_valid_not(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    return !dsa_valid(s, keyword, 0, v);
}


int
dsa_valid_if(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_json_t  *part;

    part = dsa_json_get(schema, dsa_valid(s, keyword, 0, v) ? "then" : "else");

    return part == NULL || dsa_valid(s, part, 0, v);
}


int
dsa_valid_dependent(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_json_t  *entry;

    for (entry = keyword->first; entry != NULL; entry = entry->next) {
        if (!dsa_valid_dependency(s, entry, v)) {
            return 0;
        }
    }

    return 1;
}


static int
dsa_valid_dependency(dsa_schema_t *s, const dsa_json_t *entry,
    const dsa_json_t *v)
{
    if (v->type != DSA_JSON_OBJECT || dsa_valid_find(v, entry->key) == NULL) {
        return 1;
    }

    return entry->type == DSA_JSON_ARRAY
           ? dsa_valid_required(s, NULL, entry, v) : dsa_valid(s, entry, 0, v);
}


int
dsa_valid_ref(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const char        *path;
    const dsa_json_t  *target;

    target = dsa_schema_pointer(s, keyword, &path);

    return target != NULL ? dsa_valid(s, target, 0, v) : !s->failed;
}


int
dsa_valid_required(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_json_t  *name;

    if (v->type != DSA_JSON_OBJECT) {
        return 1;
    }

    for (name = keyword->first; name != NULL; name = name->next) {
        if (dsa_valid_find(v, name->text) == NULL) {
            return 0;
        }
    }

    return 1;
}


int
dsa_valid_properties(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_json_t  *property, *member;

    if (v->type != DSA_JSON_OBJECT) {
        return 1;
    }

    for (property = keyword->first; property != NULL;
         property = property->next)
    {
        member = dsa_valid_find(v, property->key);

        if (member != NULL && !dsa_valid(s, property, 0, member)) {
            return 0;
        }
    }

    return 1;
}


int
dsa_valid_patterns(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_dfa_t   *dfa;
    const dsa_json_t  *property, *member;

    if (v->type != DSA_JSON_OBJECT) {
        return 1;
    }

    for (property = keyword->first; property != NULL;
         property = property->next)
    {
        dfa = dsa_schema_regex(s, property, property->key);

        for (member = v->first; member != NULL && dfa != NULL;
             member = member->next)
        {
            if (dsa_dfa_accepts(dfa, member->key)
                && !dsa_valid(s, property, 0, member))
            {
                return 0;
            }
        }
    }

    return 1;
}


int
dsa_valid_additional(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    dsa_part_t         part = { schema, DSA_PART_OWN, "" };
    dsa_parts_t        all = { .part = &part, .n = 1 }, p;
    const dsa_json_t  *member;

    if (v->type != DSA_JSON_OBJECT) {
        return 1;
    }

    for (member = v->first; member != NULL; member = member->next) {
        memset(&p, 0, sizeof(dsa_parts_t));
        dsa_parts_member(s, &all, member->key, &p);

        if (p.n == 1 && p.part[0].schema == keyword
            && !dsa_valid(s, keyword, 0, member))
        {
            return 0;
        }
    }

    return 1;
}


int
dsa_valid_names(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    dsa_json_t         name;
    const dsa_json_t  *member;

    if (v->type != DSA_JSON_OBJECT) {
        return 1;
    }

    memset(&name, 0, sizeof(dsa_json_t));
    name.type = DSA_JSON_STRING;

    for (member = v->first; member != NULL; member = member->next) {
        name.text = member->key;

        if (!dsa_valid(s, keyword, 0, &name)) {
            return 0;
        }
    }

    return 1;
}


int
dsa_valid_prefix(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    return v->type != DSA_JSON_ARRAY
           || dsa_valid_list(s, keyword, v);
}


/* items, also as a list, and additionalItems */

int
dsa_valid_items(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    uint32_t           i;
    dsa_part_t         part = { schema, DSA_PART_OWN, "" };
    const dsa_json_t  *first, *item;

    if (v->type != DSA_JSON_ARRAY) {
        return 1;
    }

    if (keyword->type == DSA_JSON_ARRAY) {
        return dsa_valid_list(s, keyword, v);
    }

    first = dsa_part_prefix(&part);

    if (dsa_str_eqz(keyword->key, "additionalItems")
        && (first == NULL || !dsa_str_eqz(first->key, "items")))
    {
        return 1;
    }

    for (i = 0, item = v->first; item != NULL; i++, item = item->next) {
        if ((first == NULL || i >= first->n)
            && !dsa_valid(s, keyword, 0, item))
        {
            return 0;
        }
    }

    return 1;
}


/* The items of an array against the schemas of a list. */

static int
dsa_valid_list(dsa_schema_t *s, const dsa_json_t *list, const dsa_json_t *v)
{
    const dsa_json_t  *schema, *item;

    item = v->first;

    for (schema = list->first; schema != NULL && item != NULL;
         schema = schema->next)
    {
        if (!dsa_valid(s, schema, 0, item)) {
            return 0;
        }

        item = item->next;
    }

    return 1;
}


/* minLength, maxLength, minItems, maxItems, minProperties, maxProperties */

int
dsa_valid_count(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    size_t    i;
    uint32_t  n, types;

    types = dsa_schema_keyword(keyword->key)->what & DSA_TYPE_ANY;

    if ((types & dsa_valid_type_of(v)) == 0) {
        return 1;
    }

    n = v->n;

    if (types == DSA_TYPE_STRING) {
        for (n = 0, i = 0; i < v->text.len; n++) {
            (void) dsa_codepoint_next(v->text, &i);
        }
    }

    return keyword->key.data[1] == 'i' ? n >= dsa_schema_count(s, keyword)
                                       : n <= dsa_schema_count(s, keyword);
}


int
dsa_valid_pattern(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const dsa_dfa_t  *dfa;

    if (v->type != DSA_JSON_STRING) {
        return 1;
    }

    dfa = dsa_schema_regex(s, keyword, keyword->text);

    return dfa != NULL && dsa_dfa_accepts(dfa, v->text);
}


int
dsa_valid_format(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    const char       *pattern;
    const dsa_dfa_t  *dfa;

    pattern = v->type == DSA_JSON_STRING ? dsa_format_pattern(keyword->text)
                                         : NULL;

    if (pattern == NULL) {
        return 1;
    }

    dfa = dsa_schema_regex(s, keyword, dsa_strz(pattern));

    return dfa != NULL && dsa_dfa_accepts(dfa, v->text);
}


int
dsa_valid_bound(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    int                strict;
    long double        number, bound;
    const dsa_json_t  *other;

    if (!dsa_valid_is_number(v) || !dsa_valid_is_number(keyword)) {
        return 1;
    }

    number = dsa_valid_number(v);
    bound = dsa_valid_number(keyword);
    strict = keyword->key.data[0] == 'e';

    if (!strict && schema != NULL) {
        other = dsa_json_get(schema, keyword->key.data[1] == 'i'
                                     ? "exclusiveMinimum"
                                     : "exclusiveMaximum");
        strict = other != NULL && other->type == DSA_JSON_TRUE;
    }

    if (number == bound) {
        return !strict;
    }

    return memmem(keyword->key.data, keyword->key.len, "ini", 3) != NULL
           ? number > bound : number < bound;
}


int
dsa_valid_multiple(dsa_schema_t *s, const dsa_json_t *schema,
    const dsa_json_t *keyword, const dsa_json_t *v)
{
    long double  quotient;

    if (!dsa_valid_is_number(v) || !dsa_valid_is_number(keyword)) {
        return 1;
    }

    quotient = dsa_valid_number(v) / dsa_valid_number(keyword);

    /* a decimal is not exact in binary */

    return fabsl(quotient - roundl(quotient)) < 1e-9L;
}


static uint32_t
dsa_valid_type_of(const dsa_json_t *v)
{
    long double  number;

    static const uint32_t  types[] = {
        [DSA_JSON_NULL] = DSA_TYPE_NULL,
        [DSA_JSON_FALSE] = DSA_TYPE_BOOLEAN,
        [DSA_JSON_TRUE] = DSA_TYPE_BOOLEAN,
        [DSA_JSON_INTEGER] = DSA_TYPE_INTEGER,
        [DSA_JSON_STRING] = DSA_TYPE_STRING,
        [DSA_JSON_ARRAY] = DSA_TYPE_ARRAY,
        [DSA_JSON_OBJECT] = DSA_TYPE_OBJECT
    };

    if (v->type != DSA_JSON_FLOAT) {
        return types[v->type];
    }

    number = dsa_valid_number(v);

    return number == floorl(number) ? DSA_TYPE_INTEGER : DSA_TYPE_FRACTION;
}


static int
dsa_valid_is_number(const dsa_json_t *v)
{
    return v->type == DSA_JSON_INTEGER || v->type == DSA_JSON_FLOAT;
}


static long double
dsa_valid_number(const dsa_json_t *v)
{
    return strtold(v->text.data, NULL);
}


static int
dsa_valid_equal(dsa_schema_t *s, const dsa_json_t *a, const dsa_json_t *b)
{
    const dsa_json_t  *v, *w;

    dsa_schema_spend(s, 1);

    if (dsa_valid_is_number(a) && dsa_valid_is_number(b)) {
        return dsa_valid_number(a) == dsa_valid_number(b);
    }

    if (a->type != b->type || a->n != b->n) {
        return 0;
    }

    if (a->type == DSA_JSON_STRING) {
        return dsa_str_eq(a->text, b->text);
    }

    w = b->first;

    for (v = a->first; v != NULL; v = v->next) {
        if (a->type == DSA_JSON_OBJECT) {
            w = dsa_valid_find(b, v->key);
        }

        if (w == NULL || !dsa_valid_equal(s, v, w)) {
            return 0;
        }

        w = w->next;
    }

    return 1;
}


static const dsa_json_t *
dsa_valid_find(const dsa_json_t *object, dsa_str_t name)
{
    const dsa_json_t  *v;

    for (v = object->first; v != NULL; v = v->next) {
        if (dsa_str_eq(v->key, name)) {
            break;
        }
    }

    return v;
}
