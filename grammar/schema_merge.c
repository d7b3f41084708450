
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the parts of a list demand together.
 */


#include "grammar/regex.h"
#include "grammar/schema.h"


/* A pattern of the schema that was compiled. */

typedef struct {
    dsa_dfa_t           *dfa;
    int                  skipped;
} dsa_schema_pattern_t;


static uint32_t dsa_part_types(dsa_schema_t *s, const dsa_part_t *part);
static void dsa_part_refuse(dsa_schema_t *s, const dsa_part_t *part,
    const dsa_json_t *v, uint32_t types);
static void dsa_part_member(dsa_schema_t *s, const dsa_part_t *part,
    dsa_str_t name, dsa_parts_t *out);
static int dsa_part_member_patterns(dsa_schema_t *s, const dsa_part_t *part,
    dsa_str_t name, dsa_parts_t *out);
static void dsa_part_member_name(dsa_schema_t *s, const dsa_part_t *part,
    dsa_str_t name, dsa_parts_t *out);


uint32_t
dsa_parts_types(dsa_schema_t *s, const dsa_parts_t *p)
{
    uint32_t  i, types;

    types = DSA_TYPE_ANY;

    for (i = 0; i < p->n && !s->failed; i++) {
        types &= dsa_part_types(s, &p->part[i]);
    }

    return types;
}


static uint32_t
dsa_part_types(dsa_schema_t *s, const dsa_part_t *part)
{
    uint32_t           what;
    const dsa_json_t  *v;

    switch (part->kind) {

    case DSA_PART_OBJECT:
        return DSA_TYPE_OBJECT;

    case DSA_PART_OWN:
        v = dsa_json_get(part->schema, "type");

        if (v == NULL) {
            return DSA_TYPE_ANY;
        }

        dsa_schema_at(s, part);

        return dsa_schema_types(s, v);

    case DSA_PART_NOT_KEYWORD:
        what = dsa_schema_keyword(part->schema->key)->what;

        if ((what & DSA_KEYWORD_TYPE) != 0) {
            return DSA_TYPE_ANY & ~dsa_schema_types(s, part->schema);
        }

        /* a value of another type satisfies any other keyword */

        return (what & DSA_TYPE_ANY) != 0 ? what & DSA_TYPE_ANY : DSA_TYPE_ANY;
    }

    return DSA_TYPE_ANY;
}


void
dsa_parts_refuse(dsa_schema_t *s, const dsa_parts_t *p, uint32_t types)
{
    uint32_t           i;
    dsa_str_t          name;
    const dsa_part_t  *part;
    const dsa_json_t  *v;

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];

        if (!dsa_part_supported(part, types) && !dsa_schema_skip(s)) {
            name = part->kind == DSA_PART_OTHER
                   ? dsa_strz("additionalProperties") : part->schema->key;
            dsa_schema_at(s, part);
            dsa_schema_fail(s, NULL, "\"%.*s\" is not supported in \"not\", "
                            "and in a schema of \"oneOf\" that does not "
                            "exclude the others by a type, a constant or a "
                            "required property",
                            (int) name.len, name.data);
            return;
        }

        v = part->kind == DSA_PART_OWN ? part->schema->first : NULL;

        for ( /* void */ ; v != NULL && !s->failed; v = v->next) {
            dsa_part_refuse(s, part, v, types);
        }
    }
}


static void
dsa_part_refuse(dsa_schema_t *s, const dsa_part_t *part, const dsa_json_t *v,
    uint32_t types)
{
    const dsa_keyword_t  *k;

    k = dsa_schema_keyword(v->key);

    if (k == NULL || (k->what & DSA_KEYWORD_REFUSED) == 0
        || ((k->what & DSA_TYPE_ANY) != 0 && (k->what & types) == 0)
        || (v->type == DSA_JSON_FALSE && dsa_str_eqz(v->key, "uniqueItems"))
        || dsa_schema_skip(s))
    {
        return;
    }

    dsa_schema_at(s, part);
    dsa_schema_fail(s, "", "\"%s\" is not supported", k->name);
}


const dsa_json_t *
dsa_parts_enum(const dsa_parts_t *p)
{
    uint32_t           i;
    const dsa_json_t  *v;

    for (i = 0; i < p->n; i++) {
        v = dsa_part_get(&p->part[i], "const");

        if (v == NULL) {
            v = dsa_part_get(&p->part[i], "enum");
        }

        if (v != NULL) {
            return v;
        }
    }

    return NULL;
}


int
dsa_parts_range(dsa_schema_t *s, const dsa_parts_t *p, const char *least,
    const char *most, uint32_t *min, uint32_t *max)
{
    uint32_t           i, n;
    const dsa_part_t  *part;
    const dsa_json_t  *v;

    *min = 0;
    *max = DSA_AUTOMATON_MANY;

    for (i = 0; i < p->n && !s->failed; i++) {
        part = &p->part[i];
        dsa_schema_at(s, part);

        v = dsa_part_get(part, least);
        n = v != NULL ? dsa_schema_count(s, v) : 0;
        *min = n > *min ? n : *min;

        v = dsa_part_get(part, most);
        n = v != NULL ? dsa_schema_count(s, v) : DSA_AUTOMATON_MANY;
        *max = n < *max ? n : *max;

        v = dsa_part_not(part, most);
        n = v != NULL ? dsa_schema_count(s, v) + 1 : 0;
        *min = n > *min ? n : *min;

        v = dsa_part_not(part, least);
        n = v != NULL ? dsa_schema_count(s, v) : DSA_AUTOMATON_MANY;

        if (n == 0) {
            return DSA_ERROR;
        }

        n -= n != DSA_AUTOMATON_MANY;
        *max = n < *max ? n : *max;
    }

    if (*min > *max && p->n == 1) {
        dsa_parts_at(s, p, least);
        dsa_schema_fail(s, least, "it is greater than %s, so that no value "
                        "satisfies both", most);
    }

    return s->failed || *min > *max ? DSA_ERROR : DSA_OK;
}


dsa_buf_t
dsa_parts_key(const dsa_parts_t *p, uint32_t types, dsa_values_e values)
{
    uint32_t              i;
    dsa_buf_t             key;
    const dsa_part_t     *part;
    const dsa_json_t     *v;
    const dsa_keyword_t  *k;

    memset(&key, 0, sizeof(dsa_buf_t));
    dsa_buf_printf(&key, "%u %u", types, (unsigned) values);

    for (i = 0; i < p->n; i++) {
        part = &p->part[i];
        key.failed |= part->kind == DSA_PART_NOT_KEYWORD;
        v = part->kind == DSA_PART_OWN ? part->schema->first : NULL;

        for ( /* void */ ; v != NULL; v = v->next) {
            k = dsa_schema_keyword(v->key);

            if (k != NULL && (k->what & types) != 0) {
                dsa_buf_printf(&key, " %s %u %zu ", k->name, v->type,
                               v->text.len);
                dsa_buf_add(&key, v->text.data, v->text.len);
            }
        }
    }

    return key;
}


void
dsa_parts_at(dsa_schema_t *s, const dsa_parts_t *p, const char *keyword)
{
    uint32_t  i;

    for (i = 0; i < p->n; i++) {
        if (dsa_part_get(&p->part[i], keyword) != NULL
            || dsa_part_not(&p->part[i], keyword) != NULL)
        {
            dsa_schema_at(s, &p->part[i]);
            return;
        }
    }
}


void
dsa_parts_member(dsa_schema_t *s, const dsa_parts_t *p, dsa_str_t name,
    dsa_parts_t *out)
{
    uint32_t           i;
    const dsa_part_t  *part;

    for (i = 0; i < p->n && !s->failed; i++) {
        part = &p->part[i];

        switch (part->kind) {

        case DSA_PART_OWN:
            dsa_part_member(s, part, name, out);
            break;

        case DSA_PART_ABSENT:
            out->never |= dsa_str_eq(dsa_part_name(part), name);
            break;

        case DSA_PART_MEMBER_NOT:
            if (dsa_str_eq(dsa_part_name(part), name)) {
                dsa_parts_add(s, out, DSA_PART_NOT, part->schema, part->path);
            }

            break;
        }
    }
}


static void
dsa_part_member(dsa_schema_t *s, const dsa_part_t *part, dsa_str_t name,
    dsa_parts_t *out)
{
    int                known;
    const dsa_json_t  *v, *list;

    known = 0;
    list = dsa_json_get(part->schema, "properties");

    if (list != NULL && list->type == DSA_JSON_OBJECT) {
        dsa_schema_spend(s, list->n / 8 + 1);

        for (v = list->first; v != NULL; v = v->next) {
            if (dsa_str_eq(v->key, name)) {
                known = 1;
                dsa_parts_add(s, out, DSA_PART_SCHEMA, v,
                              dsa_schema_path(s, part->path,
                                              "properties.%.*s",
                                              (int) name.len, name.data));
                break;
            }
        }
    }

    known |= dsa_part_member_patterns(s, part, name, out);
    v = dsa_json_get(part->schema, "additionalProperties");

    if (!known && v != NULL) {
        dsa_parts_add(s, out, DSA_PART_SCHEMA, v,
                      dsa_schema_path(s, part->path, "additionalProperties"));
    }

    dsa_part_member_name(s, part, name, out);
}


static int
dsa_part_member_patterns(dsa_schema_t *s, const dsa_part_t *part,
    dsa_str_t name, dsa_parts_t *out)
{
    int                known;
    const dsa_dfa_t   *dfa;
    const dsa_json_t  *v, *list;

    known = 0;
    list = dsa_json_get(part->schema, "patternProperties");

    for (v = list != NULL ? list->first : NULL; v != NULL && !s->failed;
         v = v->next)
    {
        dsa_schema_at(s, part);
        dfa = dsa_schema_regex(s, v, v->key);

        if (dfa != NULL && dsa_dfa_accepts(dfa, name)) {
            known = 1;
            dsa_parts_add(s, out, DSA_PART_SCHEMA, v,
                          dsa_schema_path(s, part->path,
                                          "patternProperties.%.*s",
                                          (int) v->key.len, v->key.data));
        }
    }

    return known;
}


/* A property whose name violates propertyNames cannot be there. */

static void
dsa_part_member_name(dsa_schema_t *s, const dsa_part_t *part, dsa_str_t name,
    dsa_parts_t *out)
{
    dsa_part_t  names;
    dsa_json_t  text;

    names.schema = dsa_json_get(part->schema, "propertyNames");

    if (names.schema == NULL) {
        return;
    }

    names.kind = DSA_PART_SCHEMA;
    names.path = dsa_schema_path(s, part->path, "propertyNames");

    memset(&text, 0, sizeof(dsa_json_t));
    text.type = DSA_JSON_STRING;
    text.text = name;

    out->never |= !dsa_part_valid(s, &names, &text);
}


void
dsa_parts_item(dsa_schema_t *s, const dsa_parts_t *p, uint32_t index,
    dsa_parts_t *out)
{
    uint32_t           i, k;
    const char        *name;
    const dsa_part_t  *part;
    const dsa_json_t  *v, *first;

    for (i = 0; i < p->n && !s->failed; i++) {
        part = &p->part[i];
        first = dsa_part_prefix(part);

        if (first != NULL && index < first->n) {
            for (k = 0, v = first->first; k < index; k++) {
                v = v->next;
            }

            dsa_parts_add(s, out, DSA_PART_SCHEMA, v,
                          dsa_schema_path(s, part->path, "%.*s[%u]",
                                          (int) first->key.len,
                                          first->key.data, index));
            continue;
        }

        name = first != NULL && dsa_str_eqz(first->key, "items")
               ? "additionalItems" : "items";
        v = dsa_part_get(part, name);

        if (v != NULL) {
            dsa_parts_add(s, out, DSA_PART_SCHEMA, v,
                          dsa_schema_path(s, part->path, "%s", name));
        }
    }
}


/* The schemas of the first items: prefixItems, or a list in "items". */

const dsa_json_t *
dsa_part_prefix(const dsa_part_t *part)
{
    const dsa_json_t  *v;

    v = dsa_part_get(part, "items");

    if (v != NULL && v->type == DSA_JSON_ARRAY) {
        return v;
    }

    return dsa_part_get(part, "prefixItems");
}


const dsa_dfa_t *
dsa_schema_regex(dsa_schema_t *s, const dsa_json_t *v, dsa_str_t pattern)
{
    dsa_err_t              error;
    dsa_schema_pattern_t  *p;

    pattern.data = pattern.len != 0 ? pattern.data : (char *) "";
    p = dsa_map_find_pointer(&s->patterns, pattern);

    if (p != NULL && (!p->skipped || dsa_schema_skip(s))) {
        return p->dfa;
    }

    p = dsa_arena_calloc(s->arena, sizeof(dsa_schema_pattern_t));

    if (p == NULL) {
        dsa_schema_fail(s, NULL, "there is no memory for it");
        return NULL;
    }

    p->dfa = dsa_regex(pattern, &s->work, &error);

    if (p->dfa == NULL && !dsa_str_eq(v->key, pattern) && dsa_schema_skip(s)) {
        p->skipped = 1;
        p->dfa = dsa_dfa_lengths(0, UINT32_MAX);
    }

    if (p->dfa == NULL) {
        dsa_schema_fail(s, dsa_str_eq(v->key, pattern)
                           ? "patternProperties" : "pattern",
                        "%.350s", error.text);
        return NULL;
    }

    if (dsa_map_add_pointer(&s->patterns, pattern, p) != DSA_OK) {
        dsa_dfa_free(p->dfa);
        dsa_schema_fail(s, NULL, "there is no memory for it");
        return NULL;
    }

    return p->dfa;
}


void
dsa_schema_regex_free(dsa_schema_t *s)
{
    uint32_t               i;
    dsa_map_bucket_t      *bucket;
    dsa_schema_pattern_t  *p;

    for (i = 0; i < s->patterns.size; i++) {
        bucket = &s->patterns.bucket[i];

        if (bucket->key != NULL) {
            p = (dsa_schema_pattern_t *) (uintptr_t) bucket->value;
            dsa_dfa_free(p->dfa);
        }
    }

    dsa_map_free(&s->patterns);
}
