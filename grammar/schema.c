
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "grammar/schema.h"


/* Which values a keyword constrains: types, or one of these. */

#define DSA_KEYWORD_REF     0x200
#define DSA_KEYWORD_UNION   0x400
#define DSA_KEYWORD_ENUM    0x800
#define DSA_KEYWORD_TYPE    0x1000
#define DSA_KEYWORD_REFUSED 0x2000      /* any of the types beside it, or all;
                                           it is not supported */


typedef struct {
    const char          *name;
    uint32_t             what;
} dsa_keyword_t;


static void dsa_schema_union(dsa_schema_t *s, const dsa_json_t *any,
    dsa_values_e values, uint32_t from, uint32_t to);
static void dsa_schema_typed(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to);
static void dsa_schema_ref(dsa_schema_t *s, const dsa_json_t *ref,
    dsa_values_e values, uint32_t from, uint32_t to);
static const dsa_json_t *dsa_schema_pointer(dsa_schema_t *s,
    const dsa_json_t *ref, dsa_buf_t *path);
static const dsa_json_t *dsa_schema_step(dsa_schema_t *s,
    const dsa_json_t *v, dsa_str_t part, dsa_buf_t *path);
static int dsa_schema_unpointer(dsa_str_t part, char *out, size_t *len);
static const dsa_keyword_t *dsa_schema_keyword(dsa_str_t name);
static void dsa_schema_alone(dsa_schema_t *s, const dsa_json_t *schema,
    const char *keyword, uint32_t with);
static uint32_t dsa_schema_type(dsa_str_t name);


/* All other names, also those of annotations, constrain nothing. */

static const dsa_keyword_t  dsa_keywords[] = {
    { "type", DSA_KEYWORD_TYPE },
    { "properties", DSA_TYPE_OBJECT },
    { "required", DSA_TYPE_OBJECT },
    { "additionalProperties", DSA_TYPE_OBJECT },
    { "items", DSA_TYPE_ARRAY },
    { "prefixItems", DSA_TYPE_ARRAY },
    { "minItems", DSA_TYPE_ARRAY },
    { "maxItems", DSA_TYPE_ARRAY },
    { "pattern", DSA_TYPE_STRING },
    { "format", DSA_TYPE_STRING },
    { "minLength", DSA_TYPE_STRING },
    { "maxLength", DSA_TYPE_STRING },
    { "minimum", DSA_TYPE_INTEGER | DSA_TYPE_NUMBER },
    { "maximum", DSA_TYPE_INTEGER | DSA_TYPE_NUMBER },
    { "exclusiveMinimum", DSA_TYPE_INTEGER | DSA_TYPE_NUMBER },
    { "exclusiveMaximum", DSA_TYPE_INTEGER | DSA_TYPE_NUMBER },
    { "multipleOf", DSA_TYPE_INTEGER | DSA_TYPE_NUMBER },
    { "enum", DSA_KEYWORD_ENUM },
    { "const", DSA_KEYWORD_ENUM },
    { "anyOf", DSA_KEYWORD_UNION },
    { "$ref", DSA_KEYWORD_REF },
    { "$dynamicRef", DSA_KEYWORD_REFUSED },
    { "$recursiveRef", DSA_KEYWORD_REFUSED },
    { "allOf", DSA_KEYWORD_REFUSED },
    { "oneOf", DSA_KEYWORD_REFUSED },
    { "not", DSA_KEYWORD_REFUSED },
    { "if", DSA_KEYWORD_REFUSED },
    { "patternProperties", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "propertyNames", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "minProperties", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "maxProperties", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "dependencies", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "dependentRequired", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "dependentSchemas", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "unevaluatedProperties", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT },
    { "additionalItems", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY },
    { "contains", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY },
    { "uniqueItems", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY },
    { "unevaluatedItems", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY },
    { NULL, 0 }
};


int
dsa_schema_spec(dsa_schema_t *s, const dsa_json_t *spec, uint32_t from,
    uint32_t to)
{
    const dsa_json_t  *type, *strict;

    type = dsa_json_get(spec, "type");

    if (type == NULL) {
        return 0;
    }

    if (dsa_str_eqz(type->text, "json_object")) {
        dsa_schema_any_object(s, from, to);
        return 1;
    }

    if (!dsa_str_eqz(type->text, "json_schema")) {
        return 0;
    }

    s->root = dsa_json_get(spec, "schema");

    if (s->root == NULL) {
        dsa_schema_fail(s, NULL, "there is no schema");
        return 1;
    }

    strict = dsa_json_get(spec, "strict");

    if (strict != NULL && strict->type == DSA_JSON_FALSE) {
        s->optional = 1;

        if (s->loose) {
            dsa_schema_any_object(s, from, to);
            return 1;
        }
    }

    dsa_schema_compile(s, s->root, DSA_VALUES_JSON, from, to);
    dsa_schema_rules(s);

    return 1;
}


void
dsa_schema_compile(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    const dsa_json_t  *v;

    if (s->failed || s->a->state != DSA_AUTOMATON_GOOD) {
        return;
    }

    if (s->depth == DSA_SCHEMA_DEPTH) {
        dsa_schema_fail(s, NULL, "schemas are nested too deep; expected at "
                        "most %d levels", DSA_SCHEMA_DEPTH);
        return;
    }

    if (schema->type == DSA_JSON_FALSE) {
        return;
    }

    if (dsa_schema_is_any(schema)) {
        dsa_schema_any(s, values, from, to);
        return;
    }

    if (schema->type != DSA_JSON_OBJECT) {
        dsa_schema_fail(s, NULL, "a schema is not an object; expected an "
                        "object, true or false");
        return;
    }

    s->depth++;

    if ((v = dsa_json_get(schema, "$ref")) != NULL) {
        dsa_schema_alone(s, schema, "$ref", 0);
        dsa_schema_ref(s, v, values, from, to);

    } else if ((v = dsa_json_get(schema, "anyOf")) != NULL) {
        dsa_schema_alone(s, schema, "anyOf", 0);
        dsa_schema_union(s, v, values, from, to);

    } else if (dsa_json_get(schema, "enum") != NULL
               || dsa_json_get(schema, "const") != NULL)
    {
        dsa_schema_alone(s, schema, "enum", DSA_KEYWORD_TYPE);
        dsa_schema_enum(s, schema, values, from, to);

    } else {
        dsa_schema_typed(s, schema, values, from, to);
    }

    s->depth--;
}


void
dsa_schema_rules(dsa_schema_t *s)
{
    uint32_t            end;
    dsa_schema_rule_t  *rule;

    while (s->pending != NULL && !s->failed) {
        rule = s->pending;
        s->pending = rule->next;

        (void) snprintf(s->path, sizeof(s->path), "%s", rule->path);

        end = dsa_automaton_node(s->a);
        dsa_automaton_end(s->a, end);
        dsa_schema_compile(s, rule->key.schema,
                           (dsa_values_e) rule->key.values, rule->entry, end);
    }
}


const dsa_json_t *
dsa_schema_resolve(dsa_schema_t *s, const dsa_json_t *schema)
{
    uint32_t           n;
    dsa_buf_t          path;
    const dsa_json_t  *ref;

    for (n = 0; n < DSA_SCHEMA_DEPTH && !s->failed; n++) {
        ref = dsa_json_get(schema, "$ref");

        if (ref == NULL) {
            return schema;
        }

        dsa_schema_alone(s, schema, "$ref", 0);

        memset(&path, 0, sizeof(dsa_buf_t));
        schema = dsa_schema_pointer(s, ref, &path);
        dsa_buf_free(&path);

        if (schema == NULL) {
            return NULL;
        }
    }

    dsa_schema_fail(s, "$ref", "it refers to itself");

    return NULL;
}


uint32_t
dsa_schema_types(dsa_schema_t *s, const dsa_json_t *schema)
{
    uint32_t           types, one;
    const dsa_json_t  *v, *item;

    v = dsa_json_get(schema, "type");

    if (v == NULL) {
        return DSA_TYPE_ANY;
    }

    types = 0;

    for (item = v->type == DSA_JSON_ARRAY ? v->first : v; item != NULL;
         item = v->type == DSA_JSON_ARRAY ? item->next : NULL)
    {
        one = item->type == DSA_JSON_STRING ? dsa_schema_type(item->text) : 0;

        if (one == 0) {
            dsa_schema_fail(s, "type", "the type is unknown; expected object, "
                            "array, string, number, integer, boolean or null, "
                            "or an array of them");
            return 0;
        }

        types |= one;
    }

    if (types == 0) {
        dsa_schema_fail(s, "type", "it has no types, so that no value "
                        "satisfies it");
    }

    return types;
}


void
dsa_schema_keywords(dsa_schema_t *s, const dsa_json_t *schema, uint32_t types)
{
    const dsa_json_t     *v;
    const dsa_keyword_t  *k;

    for (v = schema->first; v != NULL && !s->failed; v = v->next) {
        k = dsa_schema_keyword(v->key);

        if (k == NULL || (k->what & DSA_KEYWORD_REFUSED) == 0
            || ((k->what & DSA_TYPE_ANY) != 0 && (k->what & types) == 0))
        {
            continue;
        }

        dsa_schema_fail(s, "", "\"%s\" is not supported; expected type, "
                        "properties, required, additionalProperties, items, "
                        "prefixItems, minItems, maxItems, pattern, format, "
                        "minLength, maxLength, minimum, maximum, "
                        "exclusiveMinimum, exclusiveMaximum, multipleOf, "
                        "enum, const, anyOf or $ref", k->name);
    }
}


void
dsa_schema_fail(dsa_schema_t *s, const char *keyword, const char *fmt, ...)
{
    va_list  args;

    if (s->failed) {
        return;
    }

    s->failed = 1;

    if (keyword != NULL && keyword[0] != '\0') {
        (void) dsa_schema_push(s, "%s", keyword);
    }

    (void) snprintf(s->error->path, sizeof(s->error->path), "%s", s->path);

    va_start(args, fmt);
    (void) vsnprintf(s->error->message, sizeof(s->error->message), fmt, args);
    va_end(args);
}


size_t
dsa_schema_push(dsa_schema_t *s, const char *fmt, ...)
{
    size_t   len, n;
    va_list  args;

    len = strlen(s->path);
    n = len;

    if (n != 0 && fmt[0] != '[' && n + 1 < sizeof(s->path)) {
        s->path[n++] = '.';
    }

    va_start(args, fmt);
    (void) vsnprintf(s->path + n, sizeof(s->path) - n, fmt, args);
    va_end(args);

    return len;
}


void
dsa_schema_pop(dsa_schema_t *s, size_t len)
{
    if (!s->failed) {
        s->path[len] = '\0';
    }
}


void
dsa_schema_spend(dsa_schema_t *s, uint32_t steps)
{
    s->work -= steps < s->work ? steps : s->work;

    if (s->work == 0) {
        dsa_schema_fail(s, NULL, "the patterns, numbers and names up to here "
                        "take too much time to compile; expected fewer or "
                        "simpler ones");
    }
}


void
dsa_schema_charge(dsa_schema_t *s, const dsa_dfa_t *dfa)
{
    dsa_schema_spend(s, dfa != NULL ? 16 * dfa->n_ranges : 0);
}


uint32_t
dsa_schema_count(dsa_schema_t *s, const dsa_json_t *schema,
    const char *keyword, uint32_t absent)
{
    int64_t            n;
    const dsa_json_t  *v;

    v = dsa_json_get(schema, keyword);

    if (v == NULL) {
        return absent;
    }

    if (v->type != DSA_JSON_INTEGER || dsa_json_int(v, &n) != DSA_OK || n < 0
        || n > 1000000000)
    {
        dsa_schema_fail(s, keyword, "it is not a count; expected an integer "
                        "from 0 to 1000000000");
        return absent;
    }

    return (uint32_t) n;
}


int
dsa_schema_is_any(const dsa_json_t *schema)
{
    const dsa_json_t  *v;

    if (schema == NULL || schema->type == DSA_JSON_TRUE) {
        return 1;
    }

    if (schema->type != DSA_JSON_OBJECT) {
        return 0;
    }

    for (v = schema->first; v != NULL; v = v->next) {
        if (dsa_schema_keyword(v->key) != NULL) {
            return 0;
        }
    }

    return 1;
}


static void
dsa_schema_union(dsa_schema_t *s, const dsa_json_t *any, dsa_values_e values,
    uint32_t from, uint32_t to)
{
    size_t             len;
    uint32_t           i, node;
    const dsa_json_t  *v;

    if (any->type != DSA_JSON_ARRAY || any->n == 0) {
        dsa_schema_fail(s, "anyOf", "it is not a list of schemas; expected an "
                        "array with at least one schema");
        return;
    }

    for (i = 0, v = any->first; v != NULL && !s->failed; i++, v = v->next) {
        node = dsa_automaton_node(s->a);
        dsa_automaton_empty(s->a, from, node);

        len = dsa_schema_push(s, "anyOf[%u]", i);
        dsa_schema_compile(s, v, values, node, to);
        dsa_schema_pop(s, len);
    }
}


static void
dsa_schema_typed(dsa_schema_t *s, const dsa_json_t *schema,
    dsa_values_e values, uint32_t from, uint32_t to)
{
    uint32_t  types;

    types = dsa_schema_types(s, schema);

    dsa_schema_keywords(s, schema, types);

    if ((types & DSA_TYPE_STRING) != 0 && values != DSA_VALUES_NOT_STRINGS) {
        dsa_schema_string(s, schema, values, from, to);
    }

    if (values == DSA_VALUES_TEXT) {
        return;
    }

    if ((types & DSA_TYPE_NULL) != 0) {
        dsa_automaton_literal(s->a, from, dsa_strz("null"), to);
    }

    if ((types & DSA_TYPE_BOOLEAN) != 0) {
        dsa_automaton_literal(s->a, from, dsa_strz("true"), to);
        dsa_automaton_literal(s->a, from, dsa_strz("false"), to);
    }

    if ((types & DSA_TYPE_NUMBER) != 0) {
        dsa_schema_number(s, schema, 0, from, to);

    } else if ((types & DSA_TYPE_INTEGER) != 0) {
        dsa_schema_number(s, schema, 1, from, to);
    }

    if ((types & DSA_TYPE_ARRAY) != 0) {
        dsa_schema_array(s, schema, from, to);
    }

    if ((types & DSA_TYPE_OBJECT) != 0) {
        dsa_schema_object(s, schema, from, to);
    }
}


static void
dsa_schema_ref(dsa_schema_t *s, const dsa_json_t *ref, dsa_values_e values,
    uint32_t from, uint32_t to)
{
    dsa_buf_t           path;
    dsa_str_t           key;
    const dsa_json_t   *target;
    dsa_schema_rule_t  *rule, *known;

    memset(&path, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&path, s->prefix);

    target = dsa_schema_pointer(s, ref, &path);
    rule = target != NULL
           ? dsa_arena_calloc(s->arena, sizeof(dsa_schema_rule_t)) : NULL;

    if (rule == NULL) {
        dsa_buf_free(&path);
        dsa_schema_fail(s, "$ref", "there is no memory for it");
        return;
    }

    rule->key.schema = target;
    rule->key.values = values;

    key = dsa_str(&rule->key, sizeof(rule->key));
    known = dsa_map_find_pointer(&s->rules, key);

    if (known == NULL) {
        rule->path = dsa_arena_dup(s->arena, dsa_str(path.data, path.len));
        rule->entry = dsa_automaton_node(s->a);
        rule->next = s->pending;
        s->pending = rule;

        if (rule->path == NULL
            || dsa_map_add_pointer(&s->rules, key, rule) != DSA_OK)
        {
            dsa_schema_fail(s, "$ref", "there is no memory for it");
        }

        known = rule;
    }

    dsa_buf_free(&path);

    dsa_automaton_call(s->a, from, known->entry, to);
}


/* The schema of a $ref, or NULL with an error; adds its path. */

static const dsa_json_t *
dsa_schema_pointer(dsa_schema_t *s, const dsa_json_t *ref, dsa_buf_t *path)
{
    size_t             i, end;
    const dsa_json_t  *v;

    if (ref->type != DSA_JSON_STRING || ref->text.len == 0
        || ref->text.data[0] != '#'
        || (ref->text.len > 1 && ref->text.data[1] != '/'))
    {
        dsa_schema_fail(s, "$ref", "it does not refer into this schema; "
                        "expected \"#\" or, for example, \"#/$defs/name\"");
        return NULL;
    }

    v = s->root;

    for (i = 1; i < ref->text.len && v != NULL; i = end) {
        i++;

        for (end = i; end < ref->text.len && ref->text.data[end] != '/';
             end++)
        {
            /* void */
        }

        v = dsa_schema_step(s, v, dsa_str(ref->text.data + i, end - i), path);
    }

    if (s->failed) {
        return NULL;
    }

    if (v == NULL) {
        dsa_schema_fail(s, "$ref", "there is nothing at \"%.*s\"; expected "
                        "the path of a schema, for example \"#/$defs/name\"",
                        (int) (ref->text.len < 100 ? ref->text.len : 100),
                        ref->text.data);
    }

    return v;
}


static const dsa_json_t *
dsa_schema_step(dsa_schema_t *s, const dsa_json_t *v, dsa_str_t part,
    dsa_buf_t *path)
{
    char               name[256];
    size_t             len;
    uint32_t           i, index;
    const dsa_json_t  *child;

    if (part.len >= sizeof(name)
        || dsa_schema_unpointer(part, name, &len) != DSA_OK)
    {
        return NULL;
    }

    /* many references into one long list would take quadratic time */

    dsa_schema_spend(s, v->n);

    if (v->type == DSA_JSON_ARRAY) {
        index = 0;

        if (len == 0 || len > 6) {
            return NULL;
        }

        for (i = 0; i < len; i++) {
            if (name[i] < '0' || name[i] > '9') {
                return NULL;
            }

            index = index * 10 + (uint32_t) (name[i] - '0');
        }

        for (child = v->first; child != NULL && index != 0;
             child = child->next)
        {
            index--;
        }

        dsa_buf_printf(path, "[%.*s]", (int) len, name);

        return child;
    }

    if (v->type != DSA_JSON_OBJECT) {
        return NULL;
    }

    for (child = v->first; child != NULL; child = child->next) {
        if (dsa_str_eq(child->key, dsa_str(name, len))) {
            break;
        }
    }

    dsa_buf_printf(path, "%s%.*s", path->len != 0 ? "." : "", (int) len, name);

    return child;
}


/* A part of a JSON pointer in a URI fragment: ~0, ~1 and %XX. */

static int
dsa_schema_unpointer(dsa_str_t part, char *out, size_t *len)
{
    char    hex[3], *end;
    size_t  i, n;

    n = 0;

    for (i = 0; i < part.len; i++) {

        if (part.data[i] == '%') {
            if (i + 2 >= part.len) {
                return DSA_ERROR;
            }

            hex[0] = part.data[i + 1];
            hex[1] = part.data[i + 2];
            hex[2] = '\0';
            out[n++] = (char) strtoul(hex, &end, 16);

            if (*end != '\0') {
                return DSA_ERROR;
            }

            i += 2;
            continue;
        }

        out[n++] = part.data[i];
    }

    *len = 0;

    for (i = 0; i < n; i++) {

        if (out[i] == '~') {
            i++;

            if (i == n || (out[i] != '0' && out[i] != '1')) {
                return DSA_ERROR;
            }

            out[(*len)++] = out[i] == '0' ? '~' : '/';
            continue;
        }

        out[(*len)++] = out[i];
    }

    return DSA_OK;
}


static const dsa_keyword_t *
dsa_schema_keyword(dsa_str_t name)
{
    const dsa_keyword_t  *k;

    for (k = dsa_keywords; k->name != NULL; k++) {
        if (dsa_str_eqz(name, k->name)) {
            return k;
        }
    }

    return NULL;
}


/* Refuses keywords beside one that decides alone. */

static void
dsa_schema_alone(dsa_schema_t *s, const dsa_json_t *schema,
    const char *keyword, uint32_t with)
{
    uint32_t              own;
    const dsa_json_t     *v;
    const dsa_keyword_t  *k;

    dsa_schema_keywords(s, schema, DSA_TYPE_ANY);

    own = dsa_schema_keyword(dsa_strz(keyword))->what;

    for (v = schema->first; v != NULL && !s->failed; v = v->next) {
        k = dsa_schema_keyword(v->key);

        if (k != NULL && k->what != own && k->what != with) {
            dsa_schema_fail(s, k->name, "it cannot be combined with \"%s\"; "
                            "expected it in a schema of its own",
                            own == DSA_KEYWORD_ENUM ? "enum\" or \"const"
                                                    : keyword);
        }
    }
}


static uint32_t
dsa_schema_type(dsa_str_t name)
{
    size_t  i;

    static const char *const  names[] = {
        "null", "boolean", "integer", "number", "string", "array", "object"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (dsa_str_eqz(name, names[i])) {
            return 1U << i;
        }
    }

    return 0;
}
