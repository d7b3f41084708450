
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "context/types.h"


#define DSA_TYPES_STEPS   262144        /* values that are read, and 16 bytes
                                           of a name or a $ref */
#define DSA_TYPES_DEPTH   16            /* of $ref, allOf, anyOf and oneOf in
                                           one another */
#define DSA_TYPES_OTHERS  1             /* seed of the hash of the arguments
                                           that additionalProperties describes;
                                           that of the others is 0 */
#define DSA_TYPES_MASK    0x7fULL


struct dsa_types_s {
    size_t             n;
    uint64_t           elts[];          /* in rising order; bits 7 to 63: the
                                           hash; 0 to 6: the types */
};


typedef struct {
    const dsa_json_t  *root;            /* the parameters of a tool */
    dsa_str_t          tool;
    uint32_t           steps;           /* that are left */
    dsa_buf_t          out;             /* of uint64_t */
} dsa_types_reader_t;


static void dsa_types_properties(dsa_types_reader_t *r,
    const dsa_json_t *schema, uint32_t depth);
static void dsa_types_add(dsa_types_reader_t *r, dsa_str_t argument,
    uint64_t seed, const dsa_json_t *schema);
static uint32_t dsa_types_schema(dsa_types_reader_t *r,
    const dsa_json_t *schema, uint32_t depth);
static uint32_t dsa_types_union(dsa_types_reader_t *r,
    const dsa_json_t *schemas, uint32_t depth);
static uint32_t dsa_types_names(dsa_types_reader_t *r, const dsa_json_t *v);
static uint32_t dsa_types_name(const dsa_json_t *v);
static uint32_t dsa_types_values(dsa_types_reader_t *r,
    const dsa_json_t *values);
static uint32_t dsa_types_value(const dsa_json_t *v);
static const dsa_json_t *dsa_types_ref(dsa_types_reader_t *r,
    const dsa_json_t *ref);
static int dsa_types_step(dsa_types_reader_t *r, size_t n);
static uint64_t dsa_types_hash(dsa_str_t tool, dsa_str_t argument,
    uint64_t seed);
static int dsa_types_compare(const void *a, const void *b);
static dsa_types_t *dsa_types_done(dsa_buf_t *out);


dsa_types_t *
dsa_types_create(const dsa_json_t *tools)
{
    size_t               start;
    const dsa_json_t    *v, *function, *name;
    dsa_types_reader_t   r;

    memset(&r, 0, sizeof(dsa_types_reader_t));

    r.steps = DSA_TYPES_STEPS;

    for (v = tools != NULL ? tools->first : NULL; v != NULL; v = v->next) {
        function = dsa_json_get(v, "function");
        name = dsa_json_get(function, "name");

        if (name == NULL || name->type != DSA_JSON_STRING) {
            continue;
        }

        r.tool = name->text;
        r.root = dsa_json_get(function, "parameters");
        start = r.out.len;

        dsa_types_properties(&r, r.root, 0);

        if (r.steps == 0) {

            /* with a part of its schemas a tool would have wrong types */

            r.out.len = start;
            break;
        }
    }

    return dsa_types_done(&r.out);
}


void
dsa_types_destroy(dsa_types_t *types)
{
    free(types);
}


uint32_t
dsa_types_find(const dsa_types_t *types, dsa_str_t tool, dsa_str_t argument)
{
    size_t    lo, hi, mid;
    uint64_t  seed, hash;

    if (types == NULL) {
        return DSA_TYPE_ALL;
    }

    for (seed = 0; seed <= DSA_TYPES_OTHERS; seed++) {
        hash = dsa_types_hash(tool, seed == 0 ? argument : dsa_str("", 0),
                              seed);
        lo = 0;
        hi = types->n;

        while (lo < hi) {
            mid = lo + (hi - lo) / 2;

            if ((types->elts[mid] & ~DSA_TYPES_MASK) < hash) {
                lo = mid + 1;

            } else {
                hi = mid;
            }
        }

        if (lo < types->n && (types->elts[lo] & ~DSA_TYPES_MASK) == hash) {
            return (uint32_t) (types->elts[lo] & DSA_TYPES_MASK);
        }
    }

    return DSA_TYPE_ALL;
}


/* Adds the properties of a schema, and of those that it is made of. */

static void
dsa_types_properties(dsa_types_reader_t *r, const dsa_json_t *schema,
    uint32_t depth)
{
    size_t             i;
    const dsa_json_t  *v, *list;

    static const char *const  parts[] = { "allOf", "anyOf", "oneOf" };

    if (schema == NULL || schema->type != DSA_JSON_OBJECT
        || depth == DSA_TYPES_DEPTH || !dsa_types_step(r, 1 + schema->n))
    {
        return;
    }

    v = dsa_json_get(schema, "properties");

    if (v != NULL && v->type == DSA_JSON_OBJECT) {
        for (v = v->first; v != NULL && r->steps != 0; v = v->next) {
            dsa_types_add(r, v->key, 0, v);
        }
    }

    v = dsa_json_get(schema, "additionalProperties");

    if (v != NULL && v->type == DSA_JSON_OBJECT) {
        dsa_types_add(r, dsa_str("", 0), DSA_TYPES_OTHERS, v);
    }

    dsa_types_properties(r, dsa_types_ref(r, dsa_json_get(schema, "$ref")),
                         depth + 1);

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        list = dsa_json_get(schema, parts[i]);

        if (list != NULL && list->type == DSA_JSON_ARRAY
            && dsa_types_step(r, list->n))
        {
            for (v = list->first; v != NULL && r->steps != 0; v = v->next) {
                dsa_types_properties(r, v, depth + 1);
            }
        }
    }
}


static void
dsa_types_add(dsa_types_reader_t *r, dsa_str_t argument, uint64_t seed,
    const dsa_json_t *schema)
{
    uint64_t  elt;

    if (!dsa_types_step(r, 1 + argument.len / 16)) {
        return;
    }

    elt = dsa_types_hash(r->tool, argument, seed)
          | dsa_types_schema(r, schema, 0);

    dsa_buf_add(&r->out, &elt, sizeof(uint64_t));
}


/* The types that a schema permits. */

static uint32_t
dsa_types_schema(dsa_types_reader_t *r, const dsa_json_t *schema,
    uint32_t depth)
{
    uint32_t           types;
    const dsa_json_t  *v;

    if (schema == NULL || schema->type != DSA_JSON_OBJECT
        || depth == DSA_TYPES_DEPTH || !dsa_types_step(r, 1 + schema->n))
    {
        return DSA_TYPE_ALL;
    }

    types = dsa_types_names(r, dsa_json_get(schema, "type"));
    types &= dsa_types_schema(r, dsa_types_ref(r, dsa_json_get(schema,
                                                               "$ref")),
                              depth + 1);
    types &= dsa_types_union(r, dsa_json_get(schema, "anyOf"), depth + 1);
    types &= dsa_types_union(r, dsa_json_get(schema, "oneOf"), depth + 1);
    types &= dsa_types_values(r, dsa_json_get(schema, "enum"));

    v = dsa_json_get(schema, "const");

    if (v != NULL) {
        types &= dsa_types_value(v);
    }

    v = dsa_json_get(schema, "allOf");

    if (v != NULL && v->type == DSA_JSON_ARRAY && dsa_types_step(r, v->n)) {
        for (v = v->first; v != NULL; v = v->next) {
            types &= dsa_types_schema(r, v, depth + 1);
        }
    }

    /* a schema without any value constrains nothing here */

    return types != 0 ? types : DSA_TYPE_ALL;
}


static uint32_t
dsa_types_union(dsa_types_reader_t *r, const dsa_json_t *schemas,
    uint32_t depth)
{
    uint32_t           types;
    const dsa_json_t  *v;

    if (schemas == NULL || schemas->type != DSA_JSON_ARRAY
        || !dsa_types_step(r, schemas->n))
    {
        return DSA_TYPE_ALL;
    }

    types = 0;

    for (v = schemas->first; v != NULL; v = v->next) {
        types |= dsa_types_schema(r, v, depth);
    }

    return types != 0 ? types : DSA_TYPE_ALL;
}


/* A type, or a list of types. */

static uint32_t
dsa_types_names(dsa_types_reader_t *r, const dsa_json_t *v)
{
    uint32_t  types;

    if (v == NULL) {
        return DSA_TYPE_ALL;
    }

    if (v->type != DSA_JSON_ARRAY) {
        return dsa_types_name(v);
    }

    if (!dsa_types_step(r, v->n)) {
        return DSA_TYPE_ALL;
    }

    types = 0;

    for (v = v->first; v != NULL; v = v->next) {
        types |= dsa_types_name(v);
    }

    return types != 0 ? types : DSA_TYPE_ALL;
}


static uint32_t
dsa_types_name(const dsa_json_t *v)
{
    size_t  i;

    static const struct {
        const char  *name;
        uint32_t     types;
    } names[] = {
        { "string", DSA_TYPE_TEXT },
        { "integer", DSA_TYPE_WHOLE },
        { "number", DSA_TYPE_WHOLE|DSA_TYPE_FRACTION },
        { "boolean", DSA_TYPE_TRUTH },
        { "null", DSA_TYPE_NOTHING },
        { "array", DSA_TYPE_LIST },
        { "object", DSA_TYPE_MEMBERS }
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (v->type == DSA_JSON_STRING && dsa_str_eqz(v->text, names[i].name))
        {
            return names[i].types;
        }
    }

    return DSA_TYPE_ALL;
}


static uint32_t
dsa_types_values(dsa_types_reader_t *r, const dsa_json_t *values)
{
    uint32_t           types;
    const dsa_json_t  *v;

    if (values == NULL || values->type != DSA_JSON_ARRAY
        || !dsa_types_step(r, values->n))
    {
        return DSA_TYPE_ALL;
    }

    types = 0;

    for (v = values->first; v != NULL; v = v->next) {
        types |= dsa_types_value(v);
    }

    return types != 0 ? types : DSA_TYPE_ALL;
}


static uint32_t
dsa_types_value(const dsa_json_t *v)
{
    switch (v->type) {

    case DSA_JSON_NULL:
        return DSA_TYPE_NOTHING;

    case DSA_JSON_FALSE:
    case DSA_JSON_TRUE:
        return DSA_TYPE_TRUTH;

    case DSA_JSON_INTEGER:
        return DSA_TYPE_WHOLE;

    case DSA_JSON_FLOAT:
        return DSA_TYPE_FRACTION;

    case DSA_JSON_STRING:
        return DSA_TYPE_TEXT;

    case DSA_JSON_ARRAY:
        return DSA_TYPE_LIST;

    case DSA_JSON_OBJECT:
        break;
    }

    return DSA_TYPE_MEMBERS;
}


/* The schema that a "#/a/b" refers to, or NULL. */

static const dsa_json_t *
dsa_types_ref(dsa_types_reader_t *r, const dsa_json_t *ref)
{
    size_t             n;
    dsa_str_t          path;
    const char        *slash;
    const dsa_json_t  *v, *member;

    if (ref == NULL || ref->type != DSA_JSON_STRING || ref->text.len == 0
        || ref->text.data[0] != '#'
        || !dsa_types_step(r, 1 + ref->text.len / 16))
    {
        return NULL;
    }

    v = r->root;
    path = dsa_str(ref->text.data + 1, ref->text.len - 1);

    while (path.len != 0 && v != NULL) {
        if (path.data[0] != '/' || v->type != DSA_JSON_OBJECT
            || !dsa_types_step(r, v->n))
        {
            return NULL;
        }

        slash = memchr(path.data + 1, '/', path.len - 1);
        n = slash != NULL ? (size_t) (slash - path.data) : path.len;

        for (member = v->first; member != NULL; member = member->next) {
            if (dsa_str_eq(member->key, dsa_str(path.data + 1, n - 1))) {
                break;
            }
        }

        v = member;
        path = dsa_str(path.data + n, path.len - n);
    }

    return v;
}


/*
 * Takes n steps; returns 0 if there are no more.  A schema can be read once for
 * each $ref to it, so what is read can be the square of what was sent.
 */

static int
dsa_types_step(dsa_types_reader_t *r, size_t n)
{
    r->steps = n < r->steps ? r->steps - (uint32_t) n : 0;

    return r->steps != 0;
}


/* The low bits are 0. */

static uint64_t
dsa_types_hash(dsa_str_t tool, dsa_str_t argument, uint64_t seed)
{
    uint64_t  name;

    name = XXH3_64bits_withSeed(tool.data, tool.len, seed);

    return XXH3_64bits_withSeed(argument.data, argument.len, name)
           & ~DSA_TYPES_MASK;
}


static int
dsa_types_compare(const void *a, const void *b)
{
    uint64_t  x, y;

    x = *(const uint64_t *) a;
    y = *(const uint64_t *) b;

    return x < y ? -1 : x > y;
}


/* Sorts the elements; those of one argument become one.  Frees out. */

static dsa_types_t *
dsa_types_done(dsa_buf_t *out)
{
    size_t        i, n;
    uint64_t     *elts;
    dsa_types_t  *types;

    types = out->failed ? NULL : malloc(sizeof(dsa_types_t) + out->len);

    if (types == NULL) {
        dsa_buf_free(out);
        return NULL;
    }

    n = out->len / sizeof(uint64_t);
    elts = types->elts;
    types->n = 0;

    if (n != 0) {
        memcpy(elts, out->data, out->len);
        qsort(elts, n, sizeof(uint64_t), dsa_types_compare);
    }

    for (i = 0; i < n; i++) {
        if (types->n != 0
            && ((elts[types->n - 1] ^ elts[i]) & ~DSA_TYPES_MASK) == 0)
        {
            elts[types->n - 1] |= elts[i];

        } else {
            elts[types->n++] = elts[i];
        }
    }

    dsa_buf_free(out);

    return types;
}
