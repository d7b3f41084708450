
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Lists of conditions on a value: what a schema, and all that it refers to,
 * demands of it.
 */


#include "grammar/schema.h"


/* A part that is being expanded, for $ref that lead back to it. */

typedef struct dsa_expansion_s  dsa_expansion_t;

struct dsa_expansion_s {
    const dsa_part_t        *part;
    const dsa_expansion_t   *up;
};


static void dsa_parts_expand_in(dsa_schema_t *s, dsa_parts_t *p,
    dsa_part_e kind, const dsa_json_t *schema, const char *path,
    const dsa_expansion_t *up);
static void dsa_parts_expand_schema(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_expansion_t *up);
static void dsa_parts_expand_keyword(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_json_t *v, uint32_t what,
    const dsa_expansion_t *up);
static void dsa_parts_expand_list(dsa_schema_t *s, dsa_parts_t *p,
    dsa_part_e kind, const dsa_json_t *list, const char *path,
    const dsa_expansion_t *up);
static void dsa_parts_expand_ref(dsa_schema_t *s, dsa_parts_t *p,
    dsa_part_e kind, const dsa_json_t *ref, const char *path,
    const dsa_expansion_t *up);
static void dsa_parts_expand_dependencies(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_json_t *v, const char *path);
static void dsa_parts_expand_not(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_expansion_t *up);
static void dsa_parts_expand_not_keyword(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_expansion_t *up);


void
dsa_parts_add(dsa_schema_t *s, dsa_parts_t *p, dsa_part_e kind,
    const dsa_json_t *schema, const char *path)
{
    uint32_t     i, size;
    dsa_part_t  *part;

    dsa_schema_spend(s, p->n + 1);

    for (i = 0; i < p->n; i++) {
        if (p->part[i].schema == schema && p->part[i].kind == kind) {
            return;
        }
    }

    if (p->n == p->size) {
        size = p->size != 0 ? p->size * 2 : 4;
        part = dsa_arena_alloc(s->arena, size * sizeof(dsa_part_t));

        if (part == NULL) {
            dsa_schema_fail(s, NULL, "there is no memory for it");
            return;
        }

        if (p->n != 0) {
            memcpy(part, p->part, p->n * sizeof(dsa_part_t));
        }

        p->part = part;
        p->size = size;
    }

    p->part[p->n].schema = schema;
    p->part[p->n].kind = kind;
    p->part[p->n].path = path;
    p->n++;
}


void
dsa_parts_expand(dsa_schema_t *s, dsa_parts_t *p, const dsa_part_t *part)
{
    dsa_parts_expand_in(s, p, (dsa_part_e) part->kind, part->schema,
                        part->path, NULL);
}


dsa_str_t
dsa_part_name(const dsa_part_t *part)
{
    return part->schema->type == DSA_JSON_STRING ? part->schema->text
                                                 : part->schema->key;
}


const dsa_json_t *
dsa_part_get(const dsa_part_t *part, const char *keyword)
{
    return part->kind == DSA_PART_OWN ? dsa_json_get(part->schema, keyword)
                                      : NULL;
}


const dsa_json_t *
dsa_part_not(const dsa_part_t *part, const char *keyword)
{
    return part->kind == DSA_PART_NOT_KEYWORD
           && dsa_str_eqz(part->schema->key, keyword) ? part->schema : NULL;
}


static void
dsa_parts_expand_in(dsa_schema_t *s, dsa_parts_t *p, dsa_part_e kind,
    const dsa_json_t *schema, const char *path, const dsa_expansion_t *up)
{
    uint32_t                depth;
    dsa_part_t              part = { schema, kind, path };
    dsa_expansion_t         own = { &part, up };
    const dsa_expansion_t  *e;

    depth = 0;

    for (e = up; e != NULL && !s->failed; e = e->up) {
        if ((e->part->schema == schema && e->part->kind == kind)
            || ++depth == DSA_SCHEMA_DEPTH)
        {
            dsa_schema_at(s, &part);
            dsa_schema_fail(s, NULL, "it refers to itself without a value in "
                            "between; expected an object or an array around "
                            "it");
        }
    }

    if (s->failed || p->never) {
        return;
    }

    switch (kind) {

    case DSA_PART_SCHEMA:
        dsa_parts_expand_schema(s, p, &part, &own);
        return;

    case DSA_PART_NOT:
        dsa_parts_expand_not(s, p, &part, &own);
        return;

    case DSA_PART_NOT_KEYWORD:
        dsa_parts_expand_not_keyword(s, p, &part, &own);
        return;

    default:
        dsa_parts_add(s, p, kind, schema, path);
    }
}


static void
dsa_parts_expand_schema(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_expansion_t *up)
{
    const dsa_json_t     *v;
    const dsa_keyword_t  *k;

    if (part->schema->type == DSA_JSON_TRUE) {
        return;
    }

    if (part->schema->type == DSA_JSON_FALSE) {
        p->never = 1;
        return;
    }

    if (part->schema->type != DSA_JSON_OBJECT) {
        dsa_schema_at(s, part);
        dsa_schema_fail(s, NULL, "a schema is not an object; expected an "
                        "object, true or false");
        return;
    }

    dsa_schema_spend(s, part->schema->n);

    for (v = part->schema->first; v != NULL && !s->failed; v = v->next) {
        k = dsa_schema_keyword(v->key);

        if (k != NULL) {
            dsa_parts_expand_keyword(s, p, part, v, k->what, up);
        }
    }
}


static void
dsa_parts_expand_keyword(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_json_t *v, uint32_t what,
    const dsa_expansion_t *up)
{
    const char  *path;

    path = part->path;

    if ((what & DSA_KEYWORD_PARTS) != 0) {
        path = dsa_schema_path(s, path, "%.*s", (int) v->key.len, v->key.data);
    }

    switch (what) {

    case DSA_KEYWORD_REF:
        dsa_parts_expand_ref(s, p, DSA_PART_SCHEMA, v, part->path, up);
        return;

    case DSA_KEYWORD_ALL_OF:
        dsa_parts_expand_list(s, p, DSA_PART_SCHEMA, v, path, up);
        return;

    case DSA_KEYWORD_ANY_OF:
    case DSA_KEYWORD_ONE_OF:
        if (v->type == DSA_JSON_ARRAY && v->n > 1) {
            dsa_parts_add(s, p, what == DSA_KEYWORD_ANY_OF
                          ? DSA_PART_ANY_OF : DSA_PART_ONE_OF, v, path);

        } else {
            dsa_parts_expand_list(s, p, DSA_PART_SCHEMA, v, path, up);
        }

        return;

    case DSA_KEYWORD_NOT:
        dsa_parts_expand_in(s, p, DSA_PART_NOT, v, path, up);
        return;

    case DSA_KEYWORD_IF:
        if (dsa_json_get(part->schema, "then") != NULL
            || dsa_json_get(part->schema, "else") != NULL)
        {
            dsa_parts_add(s, p, DSA_PART_IF, part->schema, part->path);
        }

        return;

    case DSA_KEYWORD_DEPENDENT:
        dsa_parts_expand_dependencies(s, p, v, path);
        return;

    default:
        dsa_parts_add(s, p, DSA_PART_OWN, part->schema, part->path);
    }
}


static void
dsa_parts_expand_list(dsa_schema_t *s, dsa_parts_t *p, dsa_part_e kind,
    const dsa_json_t *list, const char *path, const dsa_expansion_t *up)
{
    uint32_t           i;
    dsa_part_t         part = { list, kind, path };
    const dsa_json_t  *v;

    if (list->type != DSA_JSON_ARRAY || list->n == 0) {
        dsa_schema_at(s, &part);
        dsa_schema_fail(s, NULL, "it is not a list of schemas; expected an "
                        "array with at least one schema");
        return;
    }

    for (i = 0, v = list->first; v != NULL && !s->failed; i++, v = v->next) {
        dsa_parts_expand_in(s, p, kind, v,
                            dsa_schema_path(s, path, "[%u]", i), up);
    }
}


static void
dsa_parts_expand_ref(dsa_schema_t *s, dsa_parts_t *p, dsa_part_e kind,
    const dsa_json_t *ref, const char *path, const dsa_expansion_t *up)
{
    dsa_part_t         part = { ref, kind, path };
    const dsa_json_t  *target;

    dsa_schema_at(s, &part);
    target = dsa_schema_pointer(s, ref, &path);

    if (target != NULL) {
        p->refers = 1;
        dsa_parts_expand_in(s, p, kind, target, path, up);
    }
}


static void
dsa_parts_expand_dependencies(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_json_t *v, const char *path)
{
    dsa_part_t         part = { v, DSA_PART_SCHEMA, path };
    const dsa_json_t  *entry;

    if (v->type != DSA_JSON_OBJECT) {
        dsa_schema_at(s, &part);
        dsa_schema_fail(s, NULL, "it is not an object; expected what each "
                        "property demands by its name");
        return;
    }

    for (entry = v->first; entry != NULL; entry = entry->next) {
        dsa_parts_add(s, p, DSA_PART_DEPENDENT, entry,
                      dsa_schema_path(s, path, "%.*s",
                                      (int) entry->key.len, entry->key.data));
    }
}


/* A schema of several keywords is violated by the violation of one of them. */

static void
dsa_parts_expand_not(dsa_schema_t *s, dsa_parts_t *p, const dsa_part_t *part,
    const dsa_expansion_t *up)
{
    uint32_t           n;
    const char        *path;
    const dsa_json_t  *v, *keyword;

    if (part->schema->type == DSA_JSON_FALSE) {
        return;
    }

    n = 0;
    keyword = NULL;

    for (v = part->schema->first; v != NULL; v = v->next) {
        if (dsa_schema_keyword(v->key) != NULL) {
            keyword = v;
            n++;
        }
    }

    if (n == 0) {
        p->never = 1;

    } else if (n == 1 && dsa_str_eqz(keyword->key, "additionalProperties")) {
        dsa_parts_add_not_additional(s, p, part->schema, part->path);

    } else if (n == 1) {
        path = dsa_schema_path(s, part->path, "%.*s", (int) keyword->key.len,
                               keyword->key.data);
        dsa_parts_expand_in(s, p, DSA_PART_NOT_KEYWORD, keyword, path, up);

    } else {
        dsa_parts_add(s, p, DSA_PART_NOT, part->schema, part->path);
    }
}


static void
dsa_parts_expand_not_keyword(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_part_t *part, const dsa_expansion_t *up)
{
    uint32_t           what;
    const dsa_json_t  *v;

    v = part->schema;
    what = dsa_schema_keyword(v->key)->what;

    if (what == DSA_KEYWORD_REF) {
        dsa_parts_expand_ref(s, p, DSA_PART_NOT, v, part->path, up);
        return;
    }

    if (what == DSA_KEYWORD_NOT) {
        dsa_parts_expand_in(s, p, DSA_PART_SCHEMA, v, part->path, up);
        return;
    }

    /* a value that satisfies several schemas of a oneOf is left out */

    if (what == DSA_KEYWORD_ANY_OF || what == DSA_KEYWORD_ONE_OF
        || (what == DSA_KEYWORD_ALL_OF && v->n == 1))
    {
        dsa_parts_expand_list(s, p, DSA_PART_NOT, v, part->path, up);
        return;
    }

    if (dsa_str_eqz(v->key, "required") || dsa_str_eqz(v->key, "properties")) {
        p->never |= v->n == 0;

        if (v->n == 1) {
            dsa_parts_add_not_member(s, p, v->first, part->path);
            return;
        }
    }

    dsa_parts_add(s, p, DSA_PART_NOT_KEYWORD, v, part->path);
}


void
dsa_parts_add_not_member(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_json_t *v, const char *path)
{
    /* a name of "required", or a property and its schema */

    dsa_parts_add(s, p, DSA_PART_OBJECT, NULL, path);

    if (v->type == DSA_JSON_STRING) {
        dsa_parts_add(s, p, DSA_PART_ABSENT, v, path);
        return;
    }

    dsa_parts_add(s, p, DSA_PART_PRESENT, v, path);
    dsa_parts_add(s, p, DSA_PART_MEMBER_NOT, v, path);
}


void
dsa_parts_add_not_additional(dsa_schema_t *s, dsa_parts_t *p,
    const dsa_json_t *schema, const char *path)
{
    p->never |= dsa_schema_is_any(dsa_json_get(schema,
                                               "additionalProperties"));

    dsa_parts_add(s, p, DSA_PART_OBJECT, NULL, path);
    dsa_parts_add(s, p, DSA_PART_OTHER, schema, path);
}
