
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include "engine/tokenizer/load.h"


static int dsa_load_added_sizes(dsa_loader_t *l, size_t *bytes);
static int dsa_load_id(const dsa_fields_t *f, const char *name,
    const dsa_json_t *v, uint32_t *id);
static size_t dsa_load_bytes(const dsa_loader_t *l, dsa_str_t name, char *out,
    int *whole);
static int dsa_load_merge(dsa_loader_t *l, uint32_t rank,
    const dsa_json_t *merge);
static int dsa_load_pair(const dsa_json_t *merge, dsa_str_t *left,
    dsa_str_t *right);
static uint32_t dsa_load_find(const dsa_loader_t *l, dsa_str_t name);
static void dsa_load_byte_chars(dsa_loader_t *l);
static size_t dsa_load_utf8(uint32_t c, char *out);


/*
 * Checks the ids, then allocates everything that they determine, so that the
 * next steps only fill tables.
 */

int
dsa_load_sizes(dsa_loader_t *l)
{
    size_t             bytes;
    uint32_t           id, n_added;
    dsa_fields_t       vocab;
    dsa_tokenizer_t   *t;
    const dsa_json_t  *v;

    t = l->t;
    bytes = 0;
    n_added = (l->added != NULL) ? l->added->n : 0;

    if (dsa_fields_inner(&vocab, &l->model, "vocab", "model.vocab.") != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (v = l->vocab->first; v != NULL; v = v->next) {

        if (dsa_load_id(&vocab, v->key.data, v, &id) != DSA_OK) {
            return DSA_ERROR;
        }

        if (id >= t->size) {
            t->size = id + 1;
        }

        if (v->key.len > l->longest) {
            l->longest = v->key.len;
        }

        bytes += v->key.len;
    }

    if (n_added != 0 && dsa_load_added_sizes(l, &bytes) != DSA_OK) {
        return DSA_ERROR;
    }

    t->token = calloc((size_t) t->size + 1, sizeof(dsa_str_t));
    t->special = calloc((size_t) t->size + 1, 1);
    t->added = calloc((size_t) n_added + 1, sizeof(dsa_added_t));
    t->bytes = malloc(bytes + 1);
    l->scratch = malloc(2 * l->longest + 1);
    l->end = t->bytes;

    if (t->token == NULL || t->special == NULL || t->added == NULL
        || t->bytes == NULL || l->scratch == NULL
        || dsa_map_reserve(&l->names, l->vocab->n) != DSA_OK
        || dsa_map_reserve(&t->added_id, n_added) != DSA_OK
        || dsa_bpe_create(&t->bpe, l->merges->n) != DSA_OK
        || (t->bpe.ignore_merges
            && dsa_map_reserve(&t->bpe.whole, l->vocab->n) != DSA_OK))
    {
        return dsa_error(l->top.err, "%s: out of memory", l->top.file);
    }

    return DSA_OK;
}


/* Adds the bytes of added tokens to *bytes. */

static int
dsa_load_added_sizes(dsa_loader_t *l, size_t *bytes)
{
    char               prefix[64];
    uint32_t           id, n;
    dsa_fields_t       f;
    const dsa_json_t  *v, *content;

    f = l->top;
    f.prefix = prefix;

    v = l->added->first;

    for (n = 0; v != NULL; v = v->next, n++) {

        (void) snprintf(prefix, sizeof(prefix), "added_tokens[%u].", n);
        f.object = v;

        if (dsa_load_id(&f, "id", dsa_field(&f, "id"), &id) != DSA_OK) {
            return DSA_ERROR;
        }

        content = dsa_field(&f, "content");

        if (content == NULL || content->type != DSA_JSON_STRING
            || content->text.len == 0)
        {
            return dsa_field_reject(&f, "content", content, "text");
        }

        if (id >= l->t->size) {
            l->t->size = id + 1;
        }

        *bytes += content->text.len;
    }

    return DSA_OK;
}


/*
 * Checks an id.  v is the value of the field name of f; it is passed because a
 * search for each name would take quadratic time.
 */

static int
dsa_load_id(const dsa_fields_t *f, const char *name, const dsa_json_t *v,
    uint32_t *id)
{
    char     expected[64];
    int64_t  value;

    if (dsa_json_int(v, &value) != DSA_OK || value < 0
        || value >= DSA_TOKENIZER_MAX_ID)
    {
        (void) snprintf(expected, sizeof(expected), "an integer from 0 to %d",
                        DSA_TOKENIZER_MAX_ID - 1);

        (void) dsa_field_reject(f, name, v, expected);

        return DSA_ERROR;
    }

    *id = (uint32_t) value;

    return DSA_OK;
}


int
dsa_load_vocab(dsa_loader_t *l)
{
    int                whole;
    size_t             len;
    int64_t            value;
    uint32_t           id, *longest;
    dsa_tokenizer_t   *t;
    const dsa_json_t  *v;

    t = l->t;

    dsa_load_byte_chars(l);

    for (v = l->vocab->first; v != NULL; v = v->next) {

        (void) dsa_json_int(v, &value);         /* dsa_load_sizes() checked */
        id = (uint32_t) value;

        if (t->token[id].data != NULL) {
            return dsa_error(l->top.err, "%s: two entries of \"model.vocab\" "
                             "have the id %u, one of them is \"%.60s\"",
                             l->top.file, id, v->key.data);
        }

        len = dsa_load_bytes(l, v->key, l->end, &whole);

        t->token[id] = dsa_str(l->end, len);
        l->end += len;

        /* the JSON parser has rejected repeated names */

        if (dsa_map_add(&l->names, v->key, id) != DSA_OK) {
            return dsa_error(l->top.err, "%s: \"%.60s\" is repeated in "
                             "\"model.vocab\"", l->top.file, v->key.data);
        }

        if (!whole || len == 0) {
            continue;
        }

        longest = &t->bpe.longest[(uint8_t) t->token[id].data[0]];

        if (len > *longest) {
            *longest = (uint32_t) len;
        }

        /* if several names stand for the same bytes, the first one is used */

        if (t->bpe.ignore_merges) {
            (void) dsa_map_add(&t->bpe.whole, t->token[id], id);
        }
    }

    return DSA_OK;
}


/*
 * Writes the bytes of a name of the byte-level vocabulary, at most name.len,
 * and returns their number.  A name with a character outside of the alphabet
 * stands for its own bytes; then *whole is 0.
 */

static size_t
dsa_load_bytes(const dsa_loader_t *l, dsa_str_t name, char *out, int *whole)
{
    char      *p;
    size_t     i;
    uint32_t   c;

    p = out;
    *whole = 1;

    for (i = 0; i < name.len; i++) {
        c = (uint8_t) name.data[i];

        /* the alphabet ends below U+0144, in two bytes of UTF-8 */

        if (c >= 0xe0) {
            c = DSA_BYTE_CHARS;

        } else if (c >= 0x80 && i + 1 < name.len) {
            c = (c & 0x1f) << 6 | ((uint8_t) name.data[++i] & 0x3f);
        }

        if (c >= DSA_BYTE_CHARS || l->byte_of[c] < 0) {
            *whole = 0;
            memcpy(out, name.data, name.len);
            return name.len;
        }

        *p++ = (char) l->byte_of[c];
    }

    return (size_t) (p - out);
}


int
dsa_load_alphabet(dsa_loader_t *l)
{
    char      name[4];
    size_t    len;
    uint32_t  i;

    for (i = 0; i < 256; i++) {
        len = dsa_load_utf8(l->char_of[i], name);

        l->t->bpe.byte[i] = dsa_load_find(l, dsa_str(name, len));

        if (l->t->bpe.byte[i] == DSA_TOKENIZER_NONE) {
            return dsa_error(l->top.err, "%s: \"model.vocab\" has no entry "
                             "\"%.*s\" for byte 0x%02x; expected one for each "
                             "of the 256 bytes", l->top.file, (int) len, name,
                             i);
        }
    }

    return DSA_OK;
}


int
dsa_load_merges(dsa_loader_t *l)
{
    uint32_t           rank;
    const dsa_json_t  *v;

    rank = 0;

    for (v = l->merges->first; v != NULL; v = v->next) {
        if (dsa_load_merge(l, rank++, v) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_load_merge(dsa_loader_t *l, uint32_t rank, const dsa_json_t *merge)
{
    char       name[64];
    uint32_t   left, right, id;
    dsa_str_t  a, b;

    if (dsa_load_pair(merge, &a, &b) != DSA_OK) {
        (void) snprintf(name, sizeof(name), "merges[%u]", rank);

        return dsa_field_reject(&l->model, name, merge,
                                "\"left right\" or [\"left\", \"right\"]");
    }

    left = dsa_load_find(l, a);
    right = dsa_load_find(l, b);
    id = DSA_TOKENIZER_NONE;

    if (left != DSA_TOKENIZER_NONE && right != DSA_TOKENIZER_NONE) {
        memcpy(l->scratch, a.data, a.len);
        memcpy(l->scratch + a.len, b.data, b.len);

        id = dsa_load_find(l, dsa_str(l->scratch, a.len + b.len));
    }

    if (id == DSA_TOKENIZER_NONE) {
        return dsa_error(l->top.err, "%s: \"model.merges[%u]\" joins \"%.*s\" "
                         "and \"%.*s\"; expected that these and the result "
                         "are in \"model.vocab\"", l->top.file, rank,
                         (int) (a.len < 60 ? a.len : 60), a.data,
                         (int) (b.len < 60 ? b.len : 60), b.data);
    }

    dsa_bpe_add(&l->t->bpe, left, right, rank, id);

    return DSA_OK;
}


/* Reads a merge: "left right", or ["left", "right"]. */

static int
dsa_load_pair(const dsa_json_t *merge, dsa_str_t *left, dsa_str_t *right)
{
    const char  *space;

    if (merge->type == DSA_JSON_STRING) {

        space = memchr(merge->text.data, ' ', merge->text.len);

        if (space == NULL) {
            return DSA_ERROR;
        }

        *left = dsa_str(merge->text.data, (size_t) (space - merge->text.data));
        *right = dsa_str(space + 1, merge->text.len - left->len - 1);

        return DSA_OK;
    }

    if (merge->type == DSA_JSON_ARRAY && merge->n == 2
        && merge->first->type == DSA_JSON_STRING
        && merge->first->next->type == DSA_JSON_STRING)
    {
        *left = merge->first->text;
        *right = merge->first->next->text;

        return DSA_OK;
    }

    return DSA_ERROR;
}


/* Returns the id of an entry by its name as written, or NONE. */

static uint32_t
dsa_load_find(const dsa_loader_t *l, dsa_str_t name)
{
    uint64_t  *id;

    id = dsa_map_find(&l->names, name);

    return id != NULL ? (uint32_t) *id : DSA_TOKENIZER_NONE;
}


/*
 * Makes GPT-2's alphabet: a printable character of Latin-1 stands for its own
 * byte; the other 68 bytes, in ascending order, are U+0100, U+0101 and so on.
 */

static void
dsa_load_byte_chars(dsa_loader_t *l)
{
    uint32_t  i, next;

    for (i = 0; i < DSA_BYTE_CHARS; i++) {
        l->byte_of[i] = -1;
    }

    next = 256;

    for (i = 0; i < 256; i++) {
        l->char_of[i] = ((i >= 0x21 && i <= 0x7e) || (i >= 0xa1 && i <= 0xac)
                         || i >= 0xae) ? i : next++;

        l->byte_of[l->char_of[i]] = (int) i;
    }
}


static size_t
dsa_load_utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char) c;
        return 1;
    }

    out[0] = (char) (0xc0 | c >> 6);
    out[1] = (char) (0x80 | (c & 0x3f));

    return 2;
}
