
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
#include "utf8.h"


#define DSA_JSON_SHOWN    60        /* bytes of a name in a message */

#define dsa_json_text_of(x)  dsa_json_quote(x)
#define dsa_json_quote(x)    #x


/* An open array or object: where its next child goes. */

typedef struct {
    dsa_json_t          *node;
    dsa_json_t         **tail;
    uint64_t             id;         /* of an object; never used again */
} dsa_json_level_t;


/* The position within an escape, which decides what may come next. */

typedef enum {
    DSA_JSON_PLAIN = 0,
    DSA_JSON_BACKSLASH,
    DSA_JSON_HEX                     /* and the three after it: a digit */
} dsa_json_escape_e;


struct dsa_json_parser_s {
    yajl_handle          yajl;
    dsa_arena_t         *arena;
    dsa_json_t          *root;
    dsa_str_t            key;
    size_t               fed;        /* bytes of the chunks before this one */
    const char          *why;        /* a refusal of our own */
    unsigned             twice:1;    /* key is repeated */
    unsigned             some:1;     /* the number of values is the caller's */
    uint32_t             depth;
    uint32_t             max_depth;
    uint32_t             values;     /* left */
    uint32_t             escape;     /* dsa_json_escape_e */
    uint32_t             code;       /* of \uXXXX, as far as it was read */
    uint32_t             high;       /* of the escape before; 0: none */
    uint64_t             seed;
    uint64_t             ids;
    dsa_json_level_t    *level;

    /*
     * The members of every object, by (its id, key), to find names that
     * stand twice: open addressing, power of two, at most half full.
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
static size_t dsa_json_surrogates(dsa_json_parser_t *p, const char *data,
    size_t len);
static int dsa_json_surrogate_byte(dsa_json_parser_t *p, char c);
static int dsa_json_text(dsa_json_parser_t *p, dsa_str_t *out,
    const void *text, size_t len);
static int dsa_json_fault(dsa_json_parser_t *p, size_t at,
    dsa_err_t *err);
static size_t dsa_json_unescape_one(dsa_buf_t *b, dsa_str_t s);
static int dsa_json_hex(dsa_str_t s, uint32_t *code);


static const yajl_callbacks  dsa_json_callbacks = {
    dsa_json_on_null,
    dsa_json_on_boolean,
    NULL,                       /* integer and double: by on_number */
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

    /* keys from outside must not be able to aim at one bucket */

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

    free(p->level);
    free(p->member);
    free(p->parent);
    free(p);
}


int
dsa_json_feed(dsa_json_parser_t *p, const void *data, size_t len,
    dsa_err_t *err)
{
    size_t  n;

    if (len == 0) {
        return DSA_OK;
    }

    /* yajl makes "?" of one half of a pair, or a character of any two */

    n = dsa_json_surrogates(p, data, len);

    if (n != 0 && yajl_parse(p->yajl, data, n) != yajl_status_ok) {
        n = p->fed + yajl_get_bytes_consumed(p->yajl);

        return dsa_json_fault(p, n, err);
    }

    p->fed += n;

    if (n != len) {
        p->why = "unpaired surrogate, expected \\uD800 to \\uDBFF "
                 "followed by \\uDC00 to \\uDFFF,";
        return dsa_json_fault(p, p->fed, err);
    }

    return DSA_OK;
}


dsa_json_t *
dsa_json_finish(dsa_json_parser_t *p, dsa_err_t *err)
{
    if (yajl_complete_parse(p->yajl) != yajl_status_ok) {
        (void) dsa_json_fault(p, p->fed, err);
        return NULL;
    }

    if (p->root == NULL) {
        (void) dsa_error(err, "the text is empty, a JSON value is expected");
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
        (void) dsa_error(err, "no memory for a JSON parser");
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
     * yajl checks the pattern of bytes only: overlong forms, surrogates and
     * what lies above U+10FFFF pass it
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


/* A new value at the place where the text stands. */

static dsa_json_t *
dsa_json_add(dsa_json_parser_t *p, dsa_json_type_e type)
{
    dsa_json_t        *v;
    dsa_json_level_t  *level;

    level = &p->level[p->depth];

    if (p->values == 0) {
        p->why = "the JSON text has too many values";

        if (!p->some) {
            dsa_arena_exceed(p->arena);
            p->why = "the JSON text has too many values, at most "
                     dsa_json_text_of(DSA_JSON_VALUES) " are accepted: it is "
                     "cut off";
        }

        return NULL;
    }

    p->values--;

    v = dsa_arena_calloc(p->arena, sizeof(dsa_json_t));
    if (v == NULL) {
        p->why = "the JSON text needs too much memory: it is cut off";
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
            p->why = "the JSON text is nested too deep";
            return NULL;
        }

        p->depth++;
        p->level[p->depth].node = v;
        p->level[p->depth].tail = &v->first;
        p->level[p->depth].id = type == DSA_JSON_OBJECT ? ++p->ids : 0;
    }

    return v;
}


/* One more member of an object; DSA_ERROR: its name is there, no memory. */

static int
dsa_json_member(dsa_json_parser_t *p, uint64_t object, dsa_json_t *member)
{
    size_t  k;

    if (p->n_members >= p->size / 2 && dsa_json_grow(p) != DSA_OK) {
        p->why = "no memory for the members of an object";
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


/*
 * How many bytes there are before one that shows an escape to be half of a
 * pair.  In JSON a backslash stands in strings only; whatever is wrong with
 * any other one, yajl finds it.
 */

static size_t
dsa_json_surrogates(dsa_json_parser_t *p, const char *data, size_t len)
{
    size_t       i;
    const char  *esc;

    for (i = 0; i < len; i++) {

        if (p->escape == DSA_JSON_PLAIN && p->high == 0) {
            esc = memchr(data + i, '\\', len - i);

            if (esc == NULL) {
                return len;
            }

            i = esc - data;
        }

        if (dsa_json_surrogate_byte(p, data[i]) != DSA_OK) {
            return i;
        }
    }

    return len;
}


/* DSA_ERROR: with this byte the half of a pair is alone. */

static int
dsa_json_surrogate_byte(dsa_json_parser_t *p, char c)
{
    if (p->escape == DSA_JSON_PLAIN) {
        p->escape = c == '\\' ? DSA_JSON_BACKSLASH : DSA_JSON_PLAIN;
        return c == '\\' || p->high == 0 ? DSA_OK : DSA_ERROR;
    }

    if (p->escape == DSA_JSON_BACKSLASH) {
        p->escape = c == 'u' ? DSA_JSON_HEX : DSA_JSON_PLAIN;
        p->code = 0;
        return c == 'u' || p->high == 0 ? DSA_OK : DSA_ERROR;
    }

    p->code = p->code * 16
              + (c <= '9' ? (uint32_t) c & 0xf : ((uint32_t) c & 0x7) + 9);

    if (p->escape++ != DSA_JSON_HEX + 3) {
        return DSA_OK;
    }

    p->escape = DSA_JSON_PLAIN;

    if (p->high != 0) {
        p->high = 0;
        return (p->code & 0xfc00) == 0xdc00 ? DSA_OK : DSA_ERROR;
    }

    if ((p->code & 0xfc00) == 0xd800) {
        p->high = p->code;
    }

    return (p->code & 0xfc00) == 0xdc00 ? DSA_ERROR : DSA_OK;
}


static int
dsa_json_text(dsa_json_parser_t *p, dsa_str_t *out, const void *text,
    size_t len)
{
    out->data = dsa_arena_dup(p->arena, dsa_str(text, len));
    out->len = len;

    if (out->data == NULL) {
        p->why = "the JSON text needs too much memory: it is cut off";
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


int
dsa_json_unescape(dsa_buf_t *b, dsa_str_t s)
{
    size_t       n, len;
    const char  *esc;

    len = b->len;

    while (s.len != 0) {
        esc = memchr(s.data, '\\', s.len);
        n = esc != NULL ? (size_t) (esc - s.data) : s.len;

        dsa_buf_add(b, s.data, n);

        if (esc == NULL) {
            break;
        }

        s = dsa_str(esc, s.len - n);
        n = dsa_json_unescape_one(b, s);

        if (n == 0) {
            b->len = len;
            return DSA_ERROR;
        }

        s = dsa_str(s.data + n, s.len - n);
    }

    return DSA_OK;
}


/* Returns the length of the escape at the front of s, or 0 without one. */

static size_t
dsa_json_unescape_one(dsa_buf_t *b, dsa_str_t s)
{
    char         utf8[4];
    size_t       n;
    uint32_t     code, low;
    const char  *from;

    static const char  plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";

    if (s.len < 2) {
        return 0;
    }

    for (from = plain; *from != '\0'; from += 2) {
        if (s.data[1] == *from) {
            dsa_buf_add(b, from + 1, 1);
            return 2;
        }
    }

    if (dsa_json_hex(s, &code) != DSA_OK) {
        return 0;
    }

    n = 6;

    if ((code & 0xf800) == 0xd800) {
        if ((code & 0x400) != 0
            || dsa_json_hex(dsa_str(s.data + n, s.len - n), &low) != DSA_OK
            || (low & 0xfc00) != 0xdc00)
        {
            return 0;
        }

        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        n = 12;
    }

    if (code < 0x80) {
        utf8[0] = code;
        dsa_buf_add(b, utf8, 1);

    } else if (code < 0x800) {
        utf8[0] = 0xc0 | code >> 6;
        utf8[1] = 0x80 | (code & 0x3f);
        dsa_buf_add(b, utf8, 2);

    } else if (code < 0x10000) {
        utf8[0] = 0xe0 | code >> 12;
        utf8[1] = 0x80 | (code >> 6 & 0x3f);
        utf8[2] = 0x80 | (code & 0x3f);
        dsa_buf_add(b, utf8, 3);

    } else {
        utf8[0] = 0xf0 | code >> 18;
        utf8[1] = 0x80 | (code >> 12 & 0x3f);
        utf8[2] = 0x80 | (code >> 6 & 0x3f);
        utf8[3] = 0x80 | (code & 0x3f);
        dsa_buf_add(b, utf8, 4);
    }

    return n;
}


/* \uXXXX at the front of s. */

static int
dsa_json_hex(dsa_str_t s, uint32_t *code)
{
    char    c;
    size_t  i;

    if (s.len < 6 || s.data[0] != '\\' || s.data[1] != 'u') {
        return DSA_ERROR;
    }

    *code = 0;

    for (i = 2; i < 6; i++) {
        c = s.data[i] | 0x20;

        if (s.data[i] >= '0' && s.data[i] <= '9') {
            *code = *code * 16 + (s.data[i] - '0');

        } else if (c >= 'a' && c <= 'f') {
            *code = *code * 16 + (c - 'a' + 10);

        } else {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}
