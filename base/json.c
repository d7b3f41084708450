
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <yajl/yajl_parse.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "json.h"
#include "surrogates.h"
#include "utf8.h"


#define DSA_JSON_SHOWN    60        /* bytes of a name in a message */

#define dsa_json_text_of(x)  dsa_json_quote(x)
#define dsa_json_quote(x)    #x


/* An open array or object, and where its next child goes. */

typedef struct {
    dsa_json_t          *node;
    dsa_json_t         **tail;
    uint64_t             id;         /* of an object, unique in the text;
                                        0: an array */
} dsa_json_level_t;


struct dsa_json_parser_s {
    yajl_handle          yajl;
    dsa_arena_t         *arena;
    dsa_json_t          *root;
    dsa_str_t            key;
    dsa_buf_t            pending;    /* not passed to yajl yet */
    size_t               fed;        /* bytes passed to yajl before */
    const char          *why;        /* an error that yajl does not find */
    unsigned             twice:1;    /* key is repeated */
    unsigned             some:1;     /* dsa_json_parse_some() */
    uint32_t             depth;
    uint32_t             max_depth;
    uint32_t             values;     /* may still be read */
    dsa_surrogates_t     surrogates;
    uint64_t             seed;
    uint64_t             ids;
    dsa_json_level_t    *level;

    /*
     * A hash table of the members of all objects, by object id and key, to
     * find repeated names: open addressing, a power of two, at most half full.
     */
    dsa_json_t         **member;
    uint64_t            *parent;
    size_t               n_members;
    size_t               size;
};


static int dsa_json_on_null(void *ctx);
static int dsa_json_on_boolean(void *ctx, int value);
static int dsa_json_on_number(void *ctx, const char *text, size_t len);
static int dsa_json_on_string(void *ctx, const unsigned char *text,
    size_t len);
static int dsa_json_on_start_map(void *ctx);
static int dsa_json_on_map_key(void *ctx, const unsigned char *text,
    size_t len);
static int dsa_json_on_start_array(void *ctx);
static int dsa_json_on_end(void *ctx);
static dsa_json_t *dsa_json_add(dsa_json_parser_t *p, dsa_json_type_e type);
static int dsa_json_member(dsa_json_parser_t *p, uint64_t object,
    dsa_json_t *member);
static int dsa_json_grow(dsa_json_parser_t *p);
static size_t dsa_json_place(const dsa_json_parser_t *p, uint64_t object,
    dsa_str_t key, size_t size);
static int dsa_json_text(dsa_json_parser_t *p, dsa_str_t *out,
    const void *text, size_t len);
static int dsa_json_pass(dsa_json_parser_t *p, const void *data, size_t len,
    dsa_err_t *err);
static int dsa_json_fault(dsa_json_parser_t *p, size_t at,
    dsa_err_t *err);


static const yajl_callbacks  dsa_json_callbacks = {
    dsa_json_on_null,
    dsa_json_on_boolean,
    NULL,                       /* integer and double: see on_number */
    NULL,
    dsa_json_on_number,
    dsa_json_on_string,
    dsa_json_on_start_map,
    dsa_json_on_map_key,
    dsa_json_on_end,
    dsa_json_on_start_array,
    dsa_json_on_end
};


dsa_json_parser_t *
dsa_json_parser_create(dsa_arena_t *arena, uint32_t depth)
{
    dsa_json_parser_t  *p;

    p = calloc(1, sizeof(dsa_json_parser_t));
    if (p == NULL) {
        return NULL;
    }

    p->arena = arena;
    p->max_depth = depth;
    p->values = DSA_JSON_VALUES;

    /* a random seed, so that a client cannot choose keys that collide */

    if (getauxval(AT_RANDOM) != 0) {
        memcpy(&p->seed, (const void *) getauxval(AT_RANDOM),
               sizeof(p->seed));
    }

    p->level = calloc((size_t) depth + 1, sizeof(dsa_json_level_t));
    p->yajl = yajl_alloc(&dsa_json_callbacks, NULL, p);

    if (p->level == NULL || p->yajl == NULL) {
        dsa_json_parser_destroy(p);
        return NULL;
    }

    p->level[0].tail = &p->root;

    return p;
}


void
dsa_json_parser_destroy(dsa_json_parser_t *p)
{
    if (p == NULL) {
        return;
    }

    if (p->yajl != NULL) {
        yajl_free(p->yajl);
    }

    dsa_buf_free(&p->pending);
    free(p->level);
    free(p->member);
    free(p->parent);
    free(p);
}


/*
 * At the end of each chunk yajl forgets how far it has read an unfinished
 * string, and reads the string from its beginning again with the next chunk.
 * So short chunks are collected until they double the text: then yajl reads no
 * byte more than three times on average, whatever the chunks are.
 */

int
dsa_json_feed(dsa_json_parser_t *p, const void *data, size_t len,
    dsa_err_t *err)
{
    int  rc;

    if (p->pending.len == 0 && len >= p->fed) {
        return dsa_json_pass(p, data, len, err);
    }

    dsa_buf_add(&p->pending, data, len);

    if (p->pending.failed) {
        return dsa_error(err, "out of memory for a JSON text");
    }

    if (p->pending.len < p->fed) {
        return DSA_OK;
    }

    rc = dsa_json_pass(p, p->pending.data, p->pending.len, err);

    p->pending.len = 0;

    return rc;
}


static int
dsa_json_pass(dsa_json_parser_t *p, const void *data, size_t len,
    dsa_err_t *err)
{
    size_t  n;

    if (len == 0) {
        return DSA_OK;
    }

    /*
     * yajl replaces an unpaired surrogate by "?", and takes any two for a
     * pair.  So the text is checked first.
     */

    n = dsa_surrogates_check(&p->surrogates, data, len);

    if (n != 0 && yajl_parse(p->yajl, data, n) != yajl_status_ok) {
        n = p->fed + yajl_get_bytes_consumed(p->yajl);

        return dsa_json_fault(p, n, err);
    }

    p->fed += n;

    if (n != len) {
        p->why = "unpaired surrogate; expected \\uD800 to \\uDBFF "
                 "followed by \\uDC00 to \\uDFFF,";
        return dsa_json_fault(p, p->fed, err);
    }

    return DSA_OK;
}


dsa_json_t *
dsa_json_finish(dsa_json_parser_t *p, dsa_err_t *err)
{
    if (dsa_json_pass(p, p->pending.data, p->pending.len, err) != DSA_OK) {
        return NULL;
    }

    if (yajl_complete_parse(p->yajl) != yajl_status_ok) {
        (void) dsa_json_fault(p, p->fed, err);
        return NULL;
    }

    if (p->root == NULL) {
        (void) dsa_error(err, "the text is empty; expected a JSON value");
    }

    return p->root;
}


dsa_json_t *
dsa_json_parse(dsa_arena_t *arena, const void *data, size_t len,
    uint32_t depth, dsa_err_t *err)
{
    uint32_t  values;

    values = UINT32_MAX;

    return dsa_json_parse_some(arena, data, len, depth, &values, err);
}


dsa_json_t *
dsa_json_parse_some(dsa_arena_t *arena, const void *data, size_t len,
    uint32_t depth, uint32_t *values, dsa_err_t *err)
{
    dsa_json_t         *root;
    dsa_json_parser_t  *p;

    p = dsa_json_parser_create(arena, depth);
    if (p == NULL) {
        (void) dsa_error(err, "out of memory for a JSON parser");
        return NULL;
    }

    p->values = *values;
    p->some = 1;
    root = NULL;

    if (dsa_json_feed(p, data, len, err) == DSA_OK) {
        root = dsa_json_finish(p, err);
    }

    *values = p->values;
    dsa_json_parser_destroy(p);

    return root;
}


static int
dsa_json_fault(dsa_json_parser_t *p, size_t at, dsa_err_t *err)
{
    char           *text;
    size_t          n;
    unsigned char  *why;

    if (p->twice) {
        n = dsa_utf8_prefix((const uint8_t *) p->key.data,
                            p->key.len < DSA_JSON_SHOWN ? p->key.len
                                                        : DSA_JSON_SHOWN);

        return dsa_error(err, "the name \"%.*s\" is repeated in an object, at "
                         "byte %zu", (int) n, p->key.data,
                         at);
    }

    if (p->why != NULL) {
        return dsa_error(err, "%s at byte %zu", p->why, at);
    }

    why = yajl_get_error(p->yajl, 0, NULL, 0);
    text = (char *) why;
    n = text != NULL ? strlen(text) : 0;

    while (n != 0 && text[n - 1] == '\n') {
        n--;
    }

    (void) dsa_error(err, "%.*s at byte %zu",
                     n != 0 ? (int) n : 12, n != 0 ? text : "invalid JSON",
                     at);

    if (why != NULL) {
        yajl_free_error(p->yajl, why);
    }

    return DSA_ERROR;
}


static int
dsa_json_on_null(void *ctx)
{
    return dsa_json_add(ctx, DSA_JSON_NULL) != NULL;
}


static int
dsa_json_on_boolean(void *ctx, int value)
{
    return dsa_json_add(ctx, value ? DSA_JSON_TRUE : DSA_JSON_FALSE) != NULL;
}


static int
dsa_json_on_number(void *ctx, const char *text, size_t len)
{
    size_t              i;
    dsa_json_t         *v;
    dsa_json_type_e     type;
    dsa_json_parser_t  *p = ctx;

    type = DSA_JSON_INTEGER;

    for (i = 0; i < len; i++) {
        if (text[i] == '.' || text[i] == 'e' || text[i] == 'E') {
            type = DSA_JSON_FLOAT;
        }
    }

    v = dsa_json_add(p, type);

    return v != NULL && dsa_json_text(p, &v->text, text, len) == DSA_OK;
}


static int
dsa_json_on_string(void *ctx, const unsigned char *text, size_t len)
{
    dsa_json_t         *v;
    dsa_json_parser_t  *p = ctx;

    /*
     * yajl checks only the pattern of lead and continuation bytes.  Overlong
     * forms, surrogates and codes above U+10FFFF must be found here.
     */

    if (dsa_utf8_prefix(text, len) != len) {
        p->why = "invalid UTF-8 in a string that ends";
        return 0;
    }

    v = dsa_json_add(p, DSA_JSON_STRING);

    return v != NULL && dsa_json_text(p, &v->text, text, len) == DSA_OK;
}


static int
dsa_json_on_map_key(void *ctx, const unsigned char *text, size_t len)
{
    dsa_json_parser_t  *p = ctx;

    if (dsa_utf8_prefix(text, len) != len) {
        p->why = "invalid UTF-8 in a name that ends";
        return 0;
    }

    return dsa_json_text(p, &p->key, text, len) == DSA_OK;
}


static int
dsa_json_on_start_map(void *ctx)
{
    return dsa_json_add(ctx, DSA_JSON_OBJECT) != NULL;
}


static int
dsa_json_on_start_array(void *ctx)
{
    return dsa_json_add(ctx, DSA_JSON_ARRAY) != NULL;
}


static int
dsa_json_on_end(void *ctx)
{
    dsa_json_parser_t  *p = ctx;

    p->depth--;

    return 1;
}


/* Adds a value to the array or object that is open. */

static dsa_json_t *
dsa_json_add(dsa_json_parser_t *p, dsa_json_type_e type)
{
    dsa_json_t        *v;
    dsa_json_level_t  *level;

    level = &p->level[p->depth];

    if (p->values == 0) {
        p->why = "too many values in the JSON text,";

        if (!p->some) {
            dsa_arena_exceed(p->arena);
            p->why = "the JSON text has too many values, at most "
                     dsa_json_text_of(DSA_JSON_VALUES) " are accepted; it is "
                     "cut off";
        }

        return NULL;
    }

    p->values--;

    v = dsa_arena_calloc(p->arena, sizeof(dsa_json_t));
    if (v == NULL) {
        p->why = "the JSON text needs too much memory; it is cut off";
        return NULL;
    }

    v->type = type;

    if (level->id != 0) {
        v->key = p->key;

        if (dsa_json_member(p, level->id, v) != DSA_OK) {
            return NULL;
        }
    }

    *level->tail = v;
    level->tail = &v->next;

    if (level->node != NULL) {
        level->node->n++;
    }

    if (type == DSA_JSON_ARRAY || type == DSA_JSON_OBJECT) {
        if (p->depth == p->max_depth) {
            p->why = "the JSON text is nested too deeply";
            return NULL;
        }

        p->depth++;
        p->level[p->depth].node = v;
        p->level[p->depth].tail = &v->first;
        p->level[p->depth].id = type == DSA_JSON_OBJECT ? ++p->ids : 0;
    }

    return v;
}


/*
 * Adds a member of an object to the table.  DSA_ERROR: the object has its name
 * already, or there is no memory.
 */

static int
dsa_json_member(dsa_json_parser_t *p, uint64_t object, dsa_json_t *member)
{
    size_t  k;

    if (p->n_members >= p->size / 2 && dsa_json_grow(p) != DSA_OK) {
        p->why = "out of memory for the members of an object,";
        return DSA_ERROR;
    }

    k = dsa_json_place(p, object, member->key, p->size);

    for ( /* void */ ; p->member[k] != NULL; k = (k + 1) & (p->size - 1)) {
        if (p->parent[k] == object
            && dsa_str_eq(p->member[k]->key, member->key))
        {
            p->twice = 1;
            return DSA_ERROR;
        }
    }

    p->member[k] = member;
    p->parent[k] = object;
    p->n_members++;

    return DSA_OK;
}


static int
dsa_json_grow(dsa_json_parser_t *p)
{
    size_t         i, k, size;
    uint64_t      *parent;
    dsa_json_t   **member;

    size = p->size != 0 ? p->size * 2 : 64;
    member = calloc(size, sizeof(dsa_json_t *));
    parent = calloc(size, sizeof(uint64_t));

    if (member == NULL || parent == NULL) {
        free(member);
        free(parent);
        return DSA_ERROR;
    }

    for (i = 0; i < p->size; i++) {
        if (p->member[i] == NULL) {
            continue;
        }

        k = dsa_json_place(p, p->parent[i], p->member[i]->key, size);

        while (member[k] != NULL) {
            k = (k + 1) & (size - 1);
        }

        member[k] = p->member[i];
        parent[k] = p->parent[i];
    }

    free(p->member);
    free(p->parent);
    p->member = member;
    p->parent = parent;
    p->size = size;

    return DSA_OK;
}


static size_t
dsa_json_place(const dsa_json_parser_t *p, uint64_t object, dsa_str_t key,
    size_t size)
{
    return XXH3_64bits_withSeed(key.data, key.len, p->seed + object)
           & (size - 1);
}


static int
dsa_json_text(dsa_json_parser_t *p, dsa_str_t *out, const void *text,
    size_t len)
{
    out->data = dsa_arena_dup(p->arena, dsa_str(text, len));
    out->len = len;

    if (out->data == NULL) {
        p->why = "the JSON text needs too much memory; it is cut off";
        return DSA_ERROR;
    }

    return DSA_OK;
}


dsa_json_t *
dsa_json_get(const dsa_json_t *obj, const char *key)
{
    dsa_str_t    name;
    dsa_json_t  *v;

    if (obj == NULL || obj->type != DSA_JSON_OBJECT) {
        return NULL;
    }

    name = dsa_strz(key);

    for (v = obj->first; v != NULL; v = v->next) {
        if (dsa_str_eq(v->key, name)) {
            return v;
        }
    }

    return NULL;
}


int
dsa_json_int(const dsa_json_t *v, int64_t *out)
{
    long long  n;

    if (v == NULL || v->type != DSA_JSON_INTEGER) {
        return DSA_ERROR;
    }

    errno = 0;
    n = strtoll(v->text.data, NULL, 10);

    if (errno != 0) {
        return DSA_ERROR;
    }

    *out = n;

    return DSA_OK;
}


int
dsa_json_double(const dsa_json_t *v, double *out)
{
    double  d;

    if (v == NULL
        || (v->type != DSA_JSON_INTEGER && v->type != DSA_JSON_FLOAT))
    {
        return DSA_ERROR;
    }

    d = strtod(v->text.data, NULL);

    if (!isfinite(d)) {
        return DSA_ERROR;
    }

    *out = d;

    return DSA_OK;
}
