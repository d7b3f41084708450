
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The keywords of schemas, and the values of some of them.
 */


#include <stdio.h>
#include <stdlib.h>

#include "grammar/schema.h"


static uint32_t dsa_schema_type(dsa_str_t name);
static const dsa_json_t *dsa_schema_step(dsa_schema_t *s,
    const dsa_json_t *v, dsa_str_t part, dsa_buf_t *path);
static int dsa_schema_unpointer(dsa_str_t part, char *out, size_t *len);


#define DSA_TYPE_LIMITS     (DSA_TYPE_NUMBER | DSA_KEYWORD_NEGATED)


/* All other names, also those of annotations, constrain nothing. */

static const dsa_keyword_t  dsa_keywords[] = {
    { "type", DSA_KEYWORD_TYPE | DSA_KEYWORD_NEGATED, dsa_valid_type },
    { "properties", DSA_TYPE_OBJECT | DSA_KEYWORD_NEGATED,
      dsa_valid_properties },
    { "required", DSA_TYPE_OBJECT | DSA_KEYWORD_NEGATED, dsa_valid_required },
    { "additionalProperties", DSA_TYPE_OBJECT, dsa_valid_additional },
    { "patternProperties", DSA_TYPE_OBJECT, dsa_valid_patterns },
    { "propertyNames", DSA_TYPE_OBJECT, dsa_valid_names },
    { "minProperties", DSA_TYPE_OBJECT | DSA_KEYWORD_NEGATED,
      dsa_valid_count },
    { "maxProperties", DSA_TYPE_OBJECT | DSA_KEYWORD_NEGATED,
      dsa_valid_count },
    { "items", DSA_TYPE_ARRAY, dsa_valid_items },
    { "prefixItems", DSA_TYPE_ARRAY, dsa_valid_prefix },
    { "additionalItems", DSA_TYPE_ARRAY, dsa_valid_items },
    { "minItems", DSA_TYPE_ARRAY | DSA_KEYWORD_NEGATED, dsa_valid_count },
    { "maxItems", DSA_TYPE_ARRAY | DSA_KEYWORD_NEGATED, dsa_valid_count },
    { "pattern", DSA_TYPE_STRING | DSA_KEYWORD_NEGATED, dsa_valid_pattern },
    { "format", DSA_TYPE_STRING | DSA_KEYWORD_NEGATED, dsa_valid_format },
    { "minLength", DSA_TYPE_STRING | DSA_KEYWORD_NEGATED, dsa_valid_count },
    { "maxLength", DSA_TYPE_STRING | DSA_KEYWORD_NEGATED, dsa_valid_count },
    { "minimum", DSA_TYPE_LIMITS, dsa_valid_bound },
    { "maximum", DSA_TYPE_LIMITS, dsa_valid_bound },
    { "exclusiveMinimum", DSA_TYPE_LIMITS, dsa_valid_bound },
    { "exclusiveMaximum", DSA_TYPE_LIMITS, dsa_valid_bound },
    { "multipleOf", DSA_TYPE_LIMITS, dsa_valid_multiple },
    { "enum", DSA_KEYWORD_ENUM | DSA_KEYWORD_NEGATED, dsa_valid_enum },
    { "const", DSA_KEYWORD_ENUM | DSA_KEYWORD_NEGATED, dsa_valid_enum },
    { "allOf", DSA_KEYWORD_ALL_OF, dsa_valid_all_of },
    { "anyOf", DSA_KEYWORD_ANY_OF, dsa_valid_any_of },
    { "oneOf", DSA_KEYWORD_ONE_OF, dsa_valid_any_of },
    { "not", DSA_KEYWORD_NOT, dsa_valid_not },
    { "if", DSA_KEYWORD_IF, dsa_valid_if },
    { "dependencies", DSA_KEYWORD_DEPENDENT, dsa_valid_dependent },
    { "dependentRequired", DSA_KEYWORD_DEPENDENT, dsa_valid_dependent },
    { "dependentSchemas", DSA_KEYWORD_DEPENDENT, dsa_valid_dependent },
    { "$ref", DSA_KEYWORD_REF, dsa_valid_ref },
    { "$dynamicRef", DSA_KEYWORD_REFUSED, NULL },
    { "$recursiveRef", DSA_KEYWORD_REFUSED, NULL },
    { "unevaluatedProperties", DSA_KEYWORD_REFUSED | DSA_TYPE_OBJECT, NULL },
    { "contains", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY, NULL },
    { "uniqueItems", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY, NULL },
    { "unevaluatedItems", DSA_KEYWORD_REFUSED | DSA_TYPE_ARRAY, NULL },
    { NULL, 0, NULL }
};


const dsa_keyword_t *
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


uint32_t
dsa_schema_types(dsa_schema_t *s, const dsa_json_t *v)
{
    uint32_t           types, one;
    const dsa_json_t  *item;

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


static uint32_t
dsa_schema_type(dsa_str_t name)
{
    size_t  i;

    static const struct {
        const char  *name;
        uint32_t     types;
    } types[] = {
        { "null", DSA_TYPE_NULL },
        { "boolean", DSA_TYPE_BOOLEAN },
        { "integer", DSA_TYPE_INTEGER },
        { "number", DSA_TYPE_NUMBER },
        { "string", DSA_TYPE_STRING },
        { "array", DSA_TYPE_ARRAY },
        { "object", DSA_TYPE_OBJECT }
    };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (dsa_str_eqz(name, types[i].name)) {
            return types[i].types;
        }
    }

    return 0;
}


uint32_t
dsa_schema_count(dsa_schema_t *s, const dsa_json_t *v)
{
    char    name[32];
    double  n;

    if (dsa_json_double(v, &n) != DSA_OK || n < 0 || n > 1000000000
        || n != (uint32_t) n)
    {
        (void) snprintf(name, sizeof(name), "%.*s", (int) v->key.len,
                        v->key.data);
        dsa_schema_fail(s, name, "it is not a count; expected an integer from "
                        "0 to 1000000000");
        return 0;
    }

    return (uint32_t) n;
}


const dsa_json_t *
dsa_schema_pointer(dsa_schema_t *s, const dsa_json_t *ref, const char **path)
{
    size_t             i, end;
    dsa_buf_t          b;
    const dsa_json_t  *v;

    memset(&b, 0, sizeof(dsa_buf_t));

    if (ref->type != DSA_JSON_STRING || ref->text.len == 0
        || ref->text.data[0] != '#'
        || (ref->text.len > 1 && ref->text.data[1] != '/'))
    {
        if (dsa_schema_skip(s)) {
            return NULL;
        }

        dsa_schema_fail(s, "$ref", "it does not refer into this schema; "
                        "expected \"#\" or, for example, \"#/$defs/name\"");
        return NULL;
    }

    v = s->root;
    dsa_buf_addz(&b, s->prefix);

    for (i = 1; i < ref->text.len && v != NULL; i = end) {
        i++;

        for (end = i; end < ref->text.len && ref->text.data[end] != '/';
             end++)
        {
            /* void */
        }

        v = dsa_schema_step(s, v, dsa_str(ref->text.data + i, end - i), &b);
    }

    *path = dsa_schema_path(s, "", "%.*s", (int) b.len, b.data);
    dsa_buf_free(&b);

    if (v == NULL && !dsa_schema_skip(s)) {
        dsa_schema_fail(s, "$ref", "there is nothing at \"%.*s\"; expected "
                        "the path of a schema, for example \"#/$defs/name\"",
                        (int) (ref->text.len < 100 ? ref->text.len : 100),
                        ref->text.data);
    }

    return s->failed ? NULL : v;
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
