
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A validator of JSON Schema that is independent of grammar/: it checks a value
 * instead of making a grammar.  It has the keywords that need few lines, and
 * accepts what it cannot decide: pattern, format, multipleOf of fractions, and
 * references other than "#" and "#/$defs/NAME".
 */


#ifndef _DSA_FUZZ_SCHEMA_H_INCLUDED_
#define _DSA_FUZZ_SCHEMA_H_INCLUDED_


#include <math.h>
#include <string.h>

#include "base/json.h"


#define FUZZ_SCHEMA_DEPTH   200     /* of references without an end */


static int fuzz_schema_valid(const dsa_json_t *root, const dsa_json_t *schema,
    const dsa_json_t *v, uint32_t depth);


static inline int
fuzz_schema_is_number(const dsa_json_t *v)
{
    return v->type == DSA_JSON_INTEGER || v->type == DSA_JSON_FLOAT;
}


/* Equal values; numbers that only a double makes equal are equal as well. */

static inline int
fuzz_schema_equal(const dsa_json_t *a, const dsa_json_t *b)
{
    double             x, y;
    const dsa_json_t  *u, *w;

    if (fuzz_schema_is_number(a) && fuzz_schema_is_number(b)) {
        return dsa_json_double(a, &x) != DSA_OK
               || dsa_json_double(b, &y) != DSA_OK || x == y;
    }

    if (a->type != b->type || a->n != b->n) {
        return 0;
    }

    if (a->type == DSA_JSON_STRING) {
        return dsa_str_eq(a->text, b->text);
    }

    w = b->first;

    for (u = a->first; u != NULL; u = u->next) {

        if (a->type == DSA_JSON_OBJECT) {
            for (w = b->first; w != NULL; w = w->next) {
                if (dsa_str_eq(w->key, u->key)) {
                    break;
                }
            }
        }

        if (w == NULL || !fuzz_schema_equal(u, w)) {
            return 0;
        }

        w = w->next;
    }

    return 1;
}


static inline int
fuzz_schema_type(const dsa_json_t *name, const dsa_json_t *v)
{
    double  x;

    if (dsa_str_eqz(name->text, "integer") && v->type == DSA_JSON_FLOAT) {
        return dsa_json_double(v, &x) != DSA_OK || floor(x) == x;
    }

    switch (v->type) {

    case DSA_JSON_NULL:
        return dsa_str_eqz(name->text, "null");

    case DSA_JSON_FALSE:
    case DSA_JSON_TRUE:
        return dsa_str_eqz(name->text, "boolean");

    case DSA_JSON_INTEGER:
    case DSA_JSON_FLOAT:
        return dsa_str_eqz(name->text, "number")
               || (v->type == DSA_JSON_INTEGER
                   && dsa_str_eqz(name->text, "integer"));

    case DSA_JSON_STRING:
        return dsa_str_eqz(name->text, "string");

    case DSA_JSON_ARRAY:
        return dsa_str_eqz(name->text, "array");

    case DSA_JSON_OBJECT:
        return dsa_str_eqz(name->text, "object");
    }

    return 0;
}


/* type, enum, const, anyOf and $ref, which apply to every value. */

static inline int
fuzz_schema_any(const dsa_json_t *root, const dsa_json_t *schema,
    const dsa_json_t *v, uint32_t depth)
{
    int                found;
    dsa_str_t          name;
    const dsa_json_t  *k, *list, *to;

    list = dsa_json_get(schema, "type");

    if (list != NULL && list->type == DSA_JSON_STRING
        && !fuzz_schema_type(list, v))
    {
        return 0;
    }

    if (list != NULL && list->type == DSA_JSON_ARRAY) {
        for (found = 0, k = list->first; k != NULL; k = k->next) {
            found |= fuzz_schema_type(k, v);
        }

        if (!found) {
            return 0;
        }
    }

    list = dsa_json_get(schema, "enum");

    if (list != NULL) {
        for (found = 0, k = list->first; k != NULL; k = k->next) {
            found |= fuzz_schema_equal(k, v);
        }

        if (!found) {
            return 0;
        }
    }

    k = dsa_json_get(schema, "const");

    if (k != NULL && !fuzz_schema_equal(k, v)) {
        return 0;
    }

    list = dsa_json_get(schema, "anyOf");

    if (list != NULL) {
        for (found = 0, k = list->first; k != NULL && !found; k = k->next) {
            found = fuzz_schema_valid(root, k, v, depth - 1);
        }

        if (!found) {
            return 0;
        }
    }

    k = dsa_json_get(schema, "$ref");
    to = NULL;

    if (k != NULL && dsa_str_eqz(k->text, "#")) {
        to = root;

    } else if (k != NULL && k->text.len > 8
               && memcmp(k->text.data, "#/$defs/", 8) == 0)
    {
        name = dsa_str(k->text.data + 8, k->text.len - 8);
        list = dsa_json_get(root, "$defs");

        for (to = list != NULL ? list->first : NULL; to != NULL;
             to = to->next)
        {
            if (dsa_str_eq(to->key, name)) {
                break;
            }
        }
    }

    return to == NULL || fuzz_schema_valid(root, to, v, depth - 1);
}


static inline int
fuzz_schema_object(const dsa_json_t *root, const dsa_json_t *schema,
    const dsa_json_t *v, uint32_t depth)
{
    const dsa_json_t  *k, *list, *member, *other;

    list = dsa_json_get(schema, "required");

    for (k = list != NULL ? list->first : NULL; k != NULL; k = k->next) {
        for (member = v->first; member != NULL; member = member->next) {
            if (dsa_str_eq(member->key, k->text)) {
                break;
            }
        }

        if (member == NULL) {
            return 0;
        }
    }

    list = dsa_json_get(schema, "properties");
    other = dsa_json_get(schema, "additionalProperties");

    for (member = v->first; member != NULL; member = member->next) {
        for (k = list != NULL ? list->first : NULL; k != NULL; k = k->next) {
            if (dsa_str_eq(member->key, k->key)) {
                break;
            }
        }

        k = k != NULL ? k : other;

        if (k != NULL && !fuzz_schema_valid(root, k, member, depth - 1)) {
            return 0;
        }
    }

    return 1;
}


static inline int
fuzz_schema_array(const dsa_json_t *root, const dsa_json_t *schema,
    const dsa_json_t *v, uint32_t depth)
{
    int64_t            n;
    const dsa_json_t  *k, *items, *prefix, *element;

    k = dsa_json_get(schema, "minItems");

    if (k != NULL && dsa_json_int(k, &n) == DSA_OK && v->n < n) {
        return 0;
    }

    k = dsa_json_get(schema, "maxItems");

    if (k != NULL && dsa_json_int(k, &n) == DSA_OK && v->n > n) {
        return 0;
    }

    items = dsa_json_get(schema, "items");
    prefix = dsa_json_get(schema, "prefixItems");
    prefix = prefix != NULL ? prefix->first : NULL;

    for (element = v->first; element != NULL; element = element->next) {
        k = prefix != NULL ? prefix : items;

        if (k != NULL && !fuzz_schema_valid(root, k, element, depth - 1)) {
            return 0;
        }

        prefix = prefix != NULL ? prefix->next : NULL;
    }

    return 1;
}


/* Lengths are in code points. */

static inline int
fuzz_schema_string(const dsa_json_t *schema, const dsa_json_t *v)
{
    size_t             i;
    int64_t            n, len;
    const dsa_json_t  *k;

    for (len = 0, i = 0; i < v->text.len; i++) {
        len += (v->text.data[i] & 0xc0) != 0x80;
    }

    k = dsa_json_get(schema, "minLength");

    if (k != NULL && dsa_json_int(k, &n) == DSA_OK && len < n) {
        return 0;
    }

    k = dsa_json_get(schema, "maxLength");

    return k == NULL || dsa_json_int(k, &n) != DSA_OK || len <= n;
}


/*
 * Rounding to doubles keeps the order of two numbers or makes them equal, so
 * that a bound which the doubles exceed is exceeded.
 */

static inline int
fuzz_schema_number(const dsa_json_t *schema, const dsa_json_t *v)
{
    int                sign;
    double             x, y;
    int64_t            a, b;
    uint32_t           i;
    const dsa_json_t  *k;

    static const char *const  names[] = {
        "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"
    };

    if (dsa_json_double(v, &x) != DSA_OK) {
        return 1;
    }

    for (i = 0; i < 4; i++) {
        k = dsa_json_get(schema, names[i]);

        if (k == NULL || dsa_json_double(k, &y) != DSA_OK) {
            continue;
        }

        sign = i < 2 ? 1 : -1;

        if (sign * x < sign * y
            || (i % 2 == 1 && dsa_str_eq(k->text, v->text)))
        {
            return 0;
        }
    }

    k = dsa_json_get(schema, "multipleOf");

    return k == NULL || dsa_json_int(k, &b) != DSA_OK || b <= 0
           || dsa_json_int(v, &a) != DSA_OK || a % b == 0;
}


/* 0: the value contradicts the schema.  root: what a reference is in. */

static int
fuzz_schema_valid(const dsa_json_t *root, const dsa_json_t *schema,
    const dsa_json_t *v, uint32_t depth)
{
    if (depth == 0 || schema->type == DSA_JSON_TRUE) {
        return 1;
    }

    if (schema->type == DSA_JSON_FALSE) {
        return 0;
    }

    if (!fuzz_schema_any(root, schema, v, depth)) {
        return 0;
    }

    switch (v->type) {

    case DSA_JSON_OBJECT:
        return fuzz_schema_object(root, schema, v, depth);

    case DSA_JSON_ARRAY:
        return fuzz_schema_array(root, schema, v, depth);

    case DSA_JSON_STRING:
        return fuzz_schema_string(schema, v);

    case DSA_JSON_INTEGER:
    case DSA_JSON_FLOAT:
        return fuzz_schema_number(schema, v);

    default:
        return 1;
    }
}


#endif /* _DSA_FUZZ_SCHEMA_H_INCLUDED_ */
