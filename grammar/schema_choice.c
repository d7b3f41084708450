
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Parts with alternatives.  One alternative after the other takes the place of
 * its part, until none is left.
 */


#include "grammar/schema.h"


#define DSA_CHOICE_DEPTH    4           /* of objects and alternatives in which
                                           a contradiction is found */


static int dsa_parts_never_object(dsa_schema_t *s, const dsa_parts_t *p,
    uint32_t depth);
static int dsa_parts_never_member(dsa_schema_t *s, const dsa_parts_t *p,
    dsa_str_t name, uint32_t depth);
static int dsa_parts_place(dsa_schema_t *s, dsa_parts_t *out,
    const dsa_parts_t *p, uint32_t k, uint32_t alternative);
static void dsa_parts_place_one(dsa_schema_t *s, dsa_parts_t *out,
    const dsa_parts_t *p, uint32_t k, uint32_t alternative);
static void dsa_parts_place_if(dsa_schema_t *s, dsa_parts_t *out,
    const dsa_part_t *part, uint32_t alternative);
static void dsa_parts_place_dependent(dsa_schema_t *s, dsa_parts_t *out,
    const dsa_part_t *part, uint32_t alternative);
static int dsa_parts_place_not(dsa_schema_t *s, dsa_parts_t *out,
    const dsa_part_t *part, uint32_t alternative);
static void dsa_parts_place_schema(dsa_schema_t *s, dsa_parts_t *out,
    dsa_part_e kind, const dsa_json_t *schema, const char *path);
static int dsa_parts_disjoint(dsa_schema_t *s, const dsa_parts_t *p,
    uint32_t k, uint32_t a, uint32_t b);
static uint32_t dsa_part_alternatives(const dsa_part_t *part);
static const dsa_json_t *dsa_part_child(const dsa_part_t *part, uint32_t i);
static const dsa_json_t *dsa_part_keyword(const dsa_part_t *part, uint32_t i);


uint32_t
dsa_parts_choice(const dsa_parts_t *p, uint32_t *alternatives)
{
    uint32_t  i;

    for (i = 0; i < p->n; i++) {
        *alternatives = dsa_part_alternatives(&p->part[i]);

        if (*alternatives != 0) {
            return i;
        }
    }

    return p->n;
}


int
dsa_parts_choose(dsa_schema_t *s, const dsa_parts_t *p, uint32_t k,
    uint32_t alternative, dsa_parts_t *out)
{
    int          supported;
    uint32_t     i;
    dsa_part_t  *part;

    supported = 1;
    memset(out, 0, sizeof(dsa_parts_t));

    for (i = 0; i < p->n && !s->failed; i++) {
        part = &p->part[i];

        if (i == k) {
            supported = dsa_parts_place(s, out, p, k, alternative);

        } else {
            dsa_parts_add(s, out, (dsa_part_e) part->kind, part->schema,
                          part->path);
        }
    }

    return supported;
}


int
dsa_parts_never(dsa_schema_t *s, const dsa_parts_t *p, uint32_t depth)
{
    uint32_t           i, k, n, types;
    dsa_parts_t        q;
    const dsa_json_t  *v, *list;

    if (p->never || s->failed) {
        return p->never;
    }

    types = dsa_parts_types(s, p);
    list = dsa_parts_enum(p);

    if (types == 0) {
        return 1;
    }

    if (list != NULL) {
        v = dsa_str_eqz(list->key, "const") ? list : list->first;

        for ( /* void */ ; v != NULL && !s->failed; v = v->next) {
            if (dsa_parts_valid(s, p, v)) {
                return 0;
            }

            if (v == list) {
                break;
            }
        }

        return !s->failed;
    }

    if (depth == 0) {
        return 0;
    }

    k = dsa_parts_choice(p, &n);

    if (k != p->n) {
        for (i = 0; i < n && !s->failed; i++) {
            if (!dsa_parts_choose(s, p, k, i, &q)
                || !dsa_parts_never(s, &q, depth - 1))
            {
                return 0;
            }
        }

        return !s->failed;
    }

    return types == DSA_TYPE_OBJECT && dsa_parts_never_object(s, p, depth);
}


int
dsa_parts_dead(dsa_schema_t *s, const dsa_parts_t *p)
{
    int  never;

    s->probing++;
    never = dsa_parts_types(s, p) == DSA_TYPE_OBJECT
            && dsa_parts_never_object(s, p, 1);
    s->probing--;

    return never;
}


/* 1: a property that is required cannot be valid. */

static int
dsa_parts_never_object(dsa_schema_t *s, const dsa_parts_t *p, uint32_t depth)
{
    int                rc;
    uint32_t           i;
    const dsa_part_t  *part;
    const dsa_json_t  *v, *list;

    rc = 0;

    for (i = 0; i < p->n && !rc && !s->failed; i++) {
        part = &p->part[i];
        list = part->kind == DSA_PART_REQUIRED
               ? part->schema : dsa_part_get(part, "required");

        if (part->kind == DSA_PART_PRESENT) {
            rc = dsa_parts_never_member(s, p, dsa_part_name(part), depth - 1);
        }

        for (v = list != NULL ? list->first : NULL; v != NULL && !rc;
             v = v->next)
        {
            rc = dsa_parts_never_member(s, p, v->text, depth - 1);
        }
    }

    return rc;
}


static int
dsa_parts_never_member(dsa_schema_t *s, const dsa_parts_t *p, dsa_str_t name,
    uint32_t depth)
{
    uint32_t     i;
    dsa_parts_t  member, q;

    memset(&member, 0, sizeof(dsa_parts_t));
    memset(&q, 0, sizeof(dsa_parts_t));

    dsa_schema_spend(s, 4 * (p->n + 1));
    dsa_parts_member(s, p, name, &member);
    q.never = member.never;

    for (i = 0; i < member.n; i++) {
        dsa_parts_expand(s, &q, &member.part[i]);
    }

    return dsa_parts_never(s, &q, depth);
}


/* Adds what an alternative demands; 0: it is not supported. */

static int
dsa_parts_place(dsa_schema_t *s, dsa_parts_t *out, const dsa_parts_t *p,
    uint32_t k, uint32_t alternative)
{
    const dsa_part_t  *part;

    part = &p->part[k];

    switch (part->kind) {

    case DSA_PART_ANY_OF:
        dsa_parts_place_schema(s, out, DSA_PART_SCHEMA,
                               dsa_part_child(part, alternative),
                               dsa_schema_path(s, part->path, "[%u]",
                                               alternative));
        return 1;

    case DSA_PART_ONE_OF:
        dsa_parts_place_one(s, out, p, k, alternative);
        return 1;

    case DSA_PART_IF:
        dsa_parts_place_if(s, out, part, alternative);
        return 1;

    case DSA_PART_DEPENDENT:
        dsa_parts_place_dependent(s, out, part, alternative);
        return 1;

    default:
        return dsa_parts_place_not(s, out, part, alternative);
    }
}


/* One schema, and none of the other ones that it does not exclude anyway. */

static void
dsa_parts_place_one(dsa_schema_t *s, dsa_parts_t *out, const dsa_parts_t *p,
    uint32_t k, uint32_t alternative)
{
    uint32_t           i;
    const char        *path;
    const dsa_json_t  *v;
    const dsa_part_t  *part;

    part = &p->part[k];

    for (i = 0, v = part->schema->first; v != NULL && !s->failed;
         i++, v = v->next)
    {
        path = dsa_schema_path(s, part->path, "[%u]", i);

        if (i == alternative) {
            dsa_parts_place_schema(s, out, DSA_PART_SCHEMA, v, path);

        } else if (s->probing == 0
                   && !dsa_parts_disjoint(s, p, k, alternative, i))
        {
            dsa_parts_place_schema(s, out, DSA_PART_NOT, v, path);
        }
    }
}


static void
dsa_parts_place_if(dsa_schema_t *s, dsa_parts_t *out, const dsa_part_t *part,
    uint32_t alternative)
{
    const char        *name;
    const dsa_json_t  *v;

    dsa_parts_place_schema(s, out,
                           alternative == 0 ? DSA_PART_SCHEMA : DSA_PART_NOT,
                           dsa_json_get(part->schema, "if"),
                           dsa_schema_path(s, part->path, "if"));

    name = alternative == 0 ? "then" : "else";
    v = dsa_json_get(part->schema, name);

    if (v != NULL) {
        dsa_parts_place_schema(s, out, DSA_PART_SCHEMA, v,
                               dsa_schema_path(s, part->path, "%s", name));
    }
}


static void
dsa_parts_place_dependent(dsa_schema_t *s, dsa_parts_t *out,
    const dsa_part_t *part, uint32_t alternative)
{
    if (alternative == 0) {
        dsa_parts_add(s, out, DSA_PART_ABSENT, part->schema, part->path);
        return;
    }

    dsa_parts_add(s, out, DSA_PART_OBJECT, NULL, part->path);
    dsa_parts_add(s, out, DSA_PART_PRESENT, part->schema, part->path);

    if (part->schema->type == DSA_JSON_ARRAY) {
        dsa_parts_add(s, out, DSA_PART_REQUIRED, part->schema, part->path);

    } else {
        dsa_parts_place_schema(s, out, DSA_PART_SCHEMA, part->schema,
                               part->path);
    }
}


static int
dsa_parts_place_not(dsa_schema_t *s, dsa_parts_t *out, const dsa_part_t *part,
    uint32_t alternative)
{
    uint32_t           i;
    const char        *path;
    const dsa_json_t  *v;

    i = out->n;

    v = part->kind == DSA_PART_NOT ? dsa_part_keyword(part, alternative) : NULL;

    if (v != NULL && dsa_str_eqz(v->key, "additionalProperties")) {
        dsa_parts_add_not_additional(s, out, part->schema, part->path);

    } else if (v != NULL) {
        path = dsa_schema_path(s, part->path, "%.*s", (int) v->key.len,
                               v->key.data);
        dsa_parts_place_schema(s, out, DSA_PART_NOT_KEYWORD, v, path);

    } else if (dsa_str_eqz(part->schema->key, "allOf")) {
        dsa_parts_place_schema(s, out, DSA_PART_NOT,
                               dsa_part_child(part, alternative),
                               dsa_schema_path(s, part->path, "[%u]",
                                               alternative));

    } else {
        dsa_parts_add_not_member(s, out, dsa_part_child(part, alternative),
                                 part->path);
    }

    for ( /* void */ ; i < out->n; i++) {
        if (!dsa_part_supported(&out->part[i], DSA_TYPE_ANY)) {
            return 0;
        }
    }

    return 1;
}


static void
dsa_parts_place_schema(dsa_schema_t *s, dsa_parts_t *out, dsa_part_e kind,
    const dsa_json_t *schema, const char *path)
{
    dsa_part_t  part = { schema, kind, path };

    dsa_parts_expand(s, out, &part);
}


/* 1: no value satisfies two schemas of a oneOf and what is beside it. */

static int
dsa_parts_disjoint(dsa_schema_t *s, const dsa_parts_t *p, uint32_t k,
    uint32_t a, uint32_t b)
{
    int                never;
    uint32_t           i, n;
    dsa_parts_t        q;
    const dsa_part_t  *part;

    memset(&q, 0, sizeof(dsa_parts_t));
    part = &p->part[k];

    for (i = 0; i < p->n; i++) {
        if (dsa_part_alternatives(&p->part[i]) == 0) {
            dsa_parts_add(s, &q, (dsa_part_e) p->part[i].kind,
                          p->part[i].schema, p->part[i].path);
        }
    }

    s->probing++;

    for (n = 0; n < 2; n++) {
        i = n == 0 ? a : b;
        dsa_parts_place_schema(s, &q, DSA_PART_SCHEMA, dsa_part_child(part, i),
                               dsa_schema_path(s, part->path, "[%u]", i));
    }

    never = dsa_parts_never(s, &q, DSA_CHOICE_DEPTH);
    s->probing--;

    return never;
}


int
dsa_part_supported(const dsa_part_t *part, uint32_t types)
{
    const dsa_json_t  *v, *list;

    if (part->kind == DSA_PART_OTHER) {
        v = dsa_json_get(part->schema, "additionalProperties");
        return v->type == DSA_JSON_FALSE;
    }

    if (part->kind != DSA_PART_NOT_KEYWORD || dsa_part_alternatives(part) != 0)
    {
        return 1;
    }

    if ((dsa_schema_keyword(part->schema->key)->what & DSA_KEYWORD_NEGATED)
        == 0)
    {
        return 0;
    }

    /* constants that are not texts or numbers are not compared */

    list = dsa_part_not(part, "enum");
    v = list != NULL ? list->first : dsa_part_not(part, "const");

    for ( /* void */ ; v != NULL; v = list != NULL ? v->next : NULL) {
        if ((v->type == DSA_JSON_ARRAY && (types & DSA_TYPE_ARRAY) != 0)
            || (v->type == DSA_JSON_OBJECT && (types & DSA_TYPE_OBJECT) != 0))
        {
            return 0;
        }
    }

    return 1;
}


/* The number of alternatives; 0: the part has none. */

static uint32_t
dsa_part_alternatives(const dsa_part_t *part)
{
    uint32_t           n;
    const dsa_json_t  *v;

    n = 0;

    switch (part->kind) {

    case DSA_PART_ANY_OF:
    case DSA_PART_ONE_OF:
        return part->schema->n;

    case DSA_PART_IF:
    case DSA_PART_DEPENDENT:
        return 2;

    case DSA_PART_NOT:
        for (v = part->schema->first; v != NULL; v = v->next) {
            n += dsa_schema_keyword(v->key) != NULL;
        }

        return n;

    case DSA_PART_NOT_KEYWORD:
        return dsa_part_not(part, "allOf") != NULL
               || dsa_part_not(part, "required") != NULL
               || dsa_part_not(part, "properties") != NULL
               ? part->schema->n : 0;
    }

    return 0;
}


static const dsa_json_t *
dsa_part_child(const dsa_part_t *part, uint32_t i)
{
    const dsa_json_t  *v;

    for (v = part->schema->first; i != 0; v = v->next) {
        i--;
    }

    return v;
}


/* A keyword of a schema that is negated. */

static const dsa_json_t *
dsa_part_keyword(const dsa_part_t *part, uint32_t i)
{
    const dsa_json_t  *v;

    for (v = part->schema->first; v != NULL; v = v->next) {
        if (dsa_schema_keyword(v->key) != NULL && i-- == 0) {
            break;
        }
    }

    return v;
}
