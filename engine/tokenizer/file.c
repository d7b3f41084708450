
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "engine/tokenizer/parts.h"


/*
 * tokenizer.json of Hugging Face's tokenizers, version 1.0.  What would change
 * ids and is not done here is refused by its name; post_processor is not read,
 * because special tokens come from the prompt and never from the tokenizer.
 */


#define DSA_TOKENIZER_DEPTH  32
#define DSA_BYTE_CHARS       324        /* 256, and 68 that are not printable */


typedef struct {
    dsa_tokenizer_t   *t;
    dsa_json_t        *root;
    dsa_json_t        *model;
    dsa_json_t        *vocab;
    dsa_json_t        *merges;
    dsa_json_t        *added;
    dsa_vocab_t        names;               /* the vocabulary as written */
    char              *scratch;             /* [2 * longest] */
    size_t             longest;             /* bytes of a name */
    char              *end;                 /* of t->bytes, so far */
    int                byte_of[DSA_BYTE_CHARS];     /* -1: none */
    uint32_t           char_of[256];
    const char        *name;
    dsa_err_t         *err;
} dsa_loader_t;


static int dsa_load_root(dsa_loader_t *l);
static int dsa_load_refuse(dsa_loader_t *l, const char *where,
    const dsa_json_t *v, const char *accepted);
static int dsa_load_null(dsa_loader_t *l, const dsa_json_t *parent,
    const char *prefix, const char *key);
static int dsa_load_flag(dsa_loader_t *l, const dsa_json_t *parent,
    const char *prefix, const char *key, int value, uint32_t *out);
static int dsa_load_keys(dsa_loader_t *l, const dsa_json_t *parent,
    const char *where, const char **keys);
static int dsa_load_model(dsa_loader_t *l);
static int dsa_load_sizes(dsa_loader_t *l);
static int dsa_load_id(dsa_loader_t *l, const char *where,
    const dsa_json_t *v, uint32_t *id);
static int dsa_load_vocab(dsa_loader_t *l);
static size_t dsa_load_bytes(dsa_loader_t *l, dsa_str_t name, char *out,
    int *whole);
static int dsa_load_alphabet(dsa_loader_t *l);
static int dsa_load_merges(dsa_loader_t *l);
static int dsa_load_merge(dsa_loader_t *l, uint32_t rank, dsa_json_t *merge);
static int dsa_load_added(dsa_loader_t *l);
static int dsa_load_added_one(dsa_loader_t *l, uint32_t n, dsa_json_t *v);
static int dsa_load_stages(dsa_loader_t *l);
static int dsa_load_split(dsa_loader_t *l, const char *where, dsa_json_t *v);
static int dsa_load_byte_level(dsa_loader_t *l, const char *where,
    dsa_json_t *v);
static dsa_split_stage_t *dsa_load_stage(dsa_loader_t *l, const char *where);
static void dsa_load_byte_chars(dsa_loader_t *l);
static size_t dsa_load_utf8(uint32_t c, char *out);


int
dsa_tokenizer_load(dsa_tokenizer_t *t, const char *name, dsa_str_t json,
    dsa_err_t *err)
{
    int             rc;
    size_t          i;
    dsa_err_t       reason;
    dsa_arena_t    *arena;
    dsa_loader_t    l;

    static int    (*const step[])(dsa_loader_t *l) = {
        dsa_load_root, dsa_load_model, dsa_load_sizes, dsa_load_vocab,
        dsa_load_alphabet, dsa_load_merges, dsa_load_added, dsa_load_stages
    };

    memset(&l, 0, sizeof(dsa_loader_t));

    l.t = t;
    l.name = name;
    l.err = err;

    /* a node of the tree is 64 bytes, and two bytes of JSON can make one */

    arena = dsa_arena_create(json.len * 64 + 1024 * 1024);
    if (arena == NULL) {
        return dsa_error(err, "%s: out of memory", name);
    }

    l.root = dsa_json_parse(arena, json.data, json.len, DSA_TOKENIZER_DEPTH,
                            &reason);

    if (l.root == NULL) {
        rc = dsa_error(err, "%s: %s", name, reason.text);

    } else {
        dsa_load_byte_chars(&l);
        rc = DSA_OK;
    }

    for (i = 0; rc == DSA_OK && i < sizeof(step) / sizeof(step[0]); i++) {
        rc = step[i](&l);
    }

    dsa_vocab_free(&l.names);
    free(l.scratch);
    dsa_arena_destroy(arena);

    return rc;
}


static int
dsa_load_root(dsa_loader_t *l)
{
    dsa_json_t         *decoder, *type;
    static const char  *keys[] = { "version", "truncation", "padding",
                                   "added_tokens", "normalizer",
                                   "pre_tokenizer", "post_processor",
                                   "decoder", "model", NULL };

    if (l->root->type != DSA_JSON_OBJECT) {
        return dsa_load_refuse(l, "the file", l->root, "an object");
    }

    if (dsa_load_keys(l, l->root, "the file", keys) != DSA_OK
        || dsa_load_null(l, l->root, "", "truncation") != DSA_OK
        || dsa_load_null(l, l->root, "", "padding") != DSA_OK
        || dsa_load_null(l, l->root, "", "normalizer") != DSA_OK)
    {
        return DSA_ERROR;
    }

    decoder = dsa_json_get(l->root, "decoder");
    type = dsa_json_get(decoder, "type");

    if (decoder != NULL && decoder->type != DSA_JSON_NULL
        && (type == NULL || type->type != DSA_JSON_STRING
            || !dsa_str_eqz(type->text, "ByteLevel")))
    {
        return dsa_load_refuse(l, "decoder", (type != NULL) ? type : decoder,
                               "\"ByteLevel\" or null");
    }

    return DSA_OK;
}


/* "file: where is VALUE; ACCEPTED is accepted" */

static int
dsa_load_refuse(dsa_loader_t *l, const char *where, const dsa_json_t *v,
    const char *accepted)
{
    dsa_str_t            text;
    const char          *quote;
    static const char   *kind[] = { "null", "false", "true", "a number",
                                    "a number", "text", "an array",
                                    "an object" };

    quote = (v != NULL && v->type == DSA_JSON_STRING) ? "\"" : "";

    text = (v == NULL) ? dsa_strz("missing")
           : (v->text.len != 0) ? v->text : dsa_strz(kind[v->type]);

    return dsa_error(l->err, "%s: %s is %s%.*s%s; %s is accepted", l->name,
                     where, quote, (int) (text.len < 60 ? text.len : 60),
                     text.data, quote, accepted);
}


/* DSA_ERROR unless the member is absent, null or an empty string. */

static int
dsa_load_null(dsa_loader_t *l, const dsa_json_t *parent, const char *prefix,
    const char *key)
{
    char         where[128];
    dsa_json_t  *v;

    v = dsa_json_get(parent, key);

    if (v == NULL || v->type == DSA_JSON_NULL
        || (v->type == DSA_JSON_STRING && v->text.len == 0))
    {
        return DSA_OK;
    }

    (void) snprintf(where, sizeof(where), "%s%s", prefix, key);

    return dsa_load_refuse(l, where, v, "null");
}


/* A boolean that may be absent: then it has the value given. */

static int
dsa_load_flag(dsa_loader_t *l, const dsa_json_t *parent, const char *prefix,
    const char *key, int value, uint32_t *out)
{
    char         where[128];
    dsa_json_t  *v;

    v = dsa_json_get(parent, key);

    if (v == NULL) {
        *out = (uint32_t) value;
        return DSA_OK;
    }

    if (v->type == DSA_JSON_TRUE || v->type == DSA_JSON_FALSE) {
        *out = (v->type == DSA_JSON_TRUE);
        return DSA_OK;
    }

    (void) snprintf(where, sizeof(where), "%s.%s", prefix, key);

    return dsa_load_refuse(l, where, v, "true or false");
}


/* keys: those that are known, NULL last. */

static int
dsa_load_keys(dsa_loader_t *l, const dsa_json_t *parent, const char *where,
    const char **keys)
{
    const char       **key;
    const dsa_json_t  *v;

    for (v = parent->first; v != NULL; v = v->next) {

        for (key = keys; *key != NULL && !dsa_str_eqz(v->key, *key); key++) {
            /* void */
        }

        if (*key == NULL) {
            return dsa_error(l->err, "%s: %s has \"%.*s\", which is not "
                             "supported", l->name, where,
                             (int) (v->key.len < 60 ? v->key.len : 60),
                             v->key.data);
        }
    }

    return DSA_OK;
}


static int
dsa_load_model(dsa_loader_t *l)
{
    double              dropout;
    uint32_t            flag;
    dsa_json_t         *v;
    static const char  *keys[] = { "type", "dropout", "unk_token",
                                   "continuing_subword_prefix",
                                   "end_of_word_suffix", "fuse_unk",
                                   "byte_fallback", "ignore_merges", "vocab",
                                   "merges", NULL };

    l->model = dsa_json_get(l->root, "model");

    if (l->model == NULL || l->model->type != DSA_JSON_OBJECT) {
        return dsa_load_refuse(l, "model", l->model, "an object");
    }

    v = dsa_json_get(l->model, "type");

    if (v == NULL || v->type != DSA_JSON_STRING
        || !dsa_str_eqz(v->text, "BPE"))
    {
        return dsa_load_refuse(l, "model.type", v, "\"BPE\"");
    }

    if (dsa_load_keys(l, l->model, "model", keys) != DSA_OK) {
        return DSA_ERROR;
    }

    /*
     * unk_token, fuse_unk and byte_fallback are about what is not in the
     * vocabulary, and all 256 bytes must be
     */

    v = dsa_json_get(l->model, "dropout");

    if (v != NULL && v->type != DSA_JSON_NULL
        && (dsa_json_double(v, &dropout) != DSA_OK || dropout != 0.0))
    {
        return dsa_load_refuse(l, "model.dropout", v, "null");
    }

    if (dsa_load_null(l, l->model, "model.", "continuing_subword_prefix")
        != DSA_OK
        || dsa_load_null(l, l->model, "model.", "end_of_word_suffix") != DSA_OK
        || dsa_load_flag(l, l->model, "model", "ignore_merges", 0, &flag)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    l->vocab = dsa_json_get(l->model, "vocab");

    if (l->vocab == NULL || l->vocab->type != DSA_JSON_OBJECT) {
        return dsa_load_refuse(l, "model.vocab", l->vocab, "an object");
    }

    l->merges = dsa_json_get(l->model, "merges");

    if (l->merges == NULL || l->merges->type != DSA_JSON_ARRAY) {
        return dsa_load_refuse(l, "model.merges", l->merges, "an array");
    }

    l->added = dsa_json_get(l->root, "added_tokens");

    if (l->added != NULL && l->added->type != DSA_JSON_ARRAY) {
        return dsa_load_refuse(l, "added_tokens", l->added, "an array");
    }

    if (flag) {
        if (dsa_vocab_create(&l->t->bpe.whole, l->vocab->n) != DSA_OK) {
            return dsa_error(l->err, "%s: out of memory", l->name);
        }
    }

    return DSA_OK;
}


/* How much memory the vocabulary takes, and all of it at once. */

static int
dsa_load_sizes(dsa_loader_t *l)
{
    char              where[64];
    size_t            total;
    uint32_t          id, n, n_added;
    dsa_json_t       *v, *content;
    dsa_tokenizer_t  *t;

    t = l->t;
    id = 0;
    total = 0;
    n_added = (l->added != NULL) ? l->added->n : 0;

    for (v = l->vocab->first; v != NULL; v = v->next) {

        if (dsa_load_id(l, "an id in model.vocab", v, &id) != DSA_OK) {
            return DSA_ERROR;
        }

        if (id >= t->size) {
            t->size = id + 1;
        }

        if (v->key.len > l->longest) {
            l->longest = v->key.len;
        }

        total += v->key.len;
    }

    v = (n_added != 0) ? l->added->first : NULL;

    for (n = 0; v != NULL; v = v->next, n++) {

        (void) snprintf(where, sizeof(where), "added_tokens[%u].id", n);

        if (dsa_load_id(l, where, dsa_json_get(v, "id"), &id) != DSA_OK) {
            return DSA_ERROR;
        }

        content = dsa_json_get(v, "content");

        if (content == NULL || content->type != DSA_JSON_STRING
            || content->text.len == 0)
        {
            (void) snprintf(where, sizeof(where), "added_tokens[%u].content",
                            n);
            return dsa_load_refuse(l, where, content, "text");
        }

        if (id >= t->size) {
            t->size = id + 1;
        }

        total += content->text.len;
    }

    t->token = calloc((size_t) t->size + 1, sizeof(dsa_str_t));
    t->special = calloc((size_t) t->size + 1, 1);
    t->added = calloc((size_t) n_added + 1, sizeof(dsa_added_t));
    t->bytes = malloc(total + 1);
    l->scratch = malloc(2 * l->longest + 1);
    l->end = t->bytes;

    if (t->token == NULL || t->special == NULL || t->added == NULL
        || t->bytes == NULL || l->scratch == NULL
        || dsa_vocab_create(&l->names, l->vocab->n) != DSA_OK
        || dsa_vocab_create(&t->added_id, n_added) != DSA_OK
        || dsa_bpe_create(&t->bpe, l->merges->n) != DSA_OK)
    {
        return dsa_error(l->err, "%s: out of memory", l->name);
    }

    return DSA_OK;
}


static int
dsa_load_id(dsa_loader_t *l, const char *where, const dsa_json_t *v,
    uint32_t *id)
{
    int64_t  value;

    if (v == NULL || dsa_json_int(v, &value) != DSA_OK || value < 0
        || value >= DSA_TOKENIZER_MAX_ID)
    {
        return dsa_load_refuse(l, where, v, "an integer from 0 to 4194303");
    }

    *id = (uint32_t) value;

    return DSA_OK;
}


static int
dsa_load_vocab(dsa_loader_t *l)
{
    int               whole;
    size_t            len;
    int64_t           value;
    uint32_t          id, *longest;
    dsa_json_t       *v;
    dsa_tokenizer_t  *t;

    t = l->t;

    for (v = l->vocab->first; v != NULL; v = v->next) {

        (void) dsa_json_int(v, &value);         /* dsa_load_sizes() has */
        id = (uint32_t) value;

        if (t->token[id].data != NULL) {
            return dsa_error(l->err, "%s: id %u stands for two entries of "
                             "model.vocab, one of them \"%.*s\"", l->name, id,
                             (int) (v->key.len < 60 ? v->key.len : 60),
                             v->key.data);
        }

        len = dsa_load_bytes(l, v->key, l->end, &whole);

        t->token[id] = dsa_str(l->end, len);
        l->end += len;

        if (dsa_vocab_add(&l->names, v->key, id) != DSA_OK) {
            return dsa_error(l->err, "%s: \"%.*s\" stands twice in "
                             "model.vocab", l->name,
                             (int) (v->key.len < 60 ? v->key.len : 60),
                             v->key.data);
        }

        if (!whole || len == 0) {
            continue;
        }

        longest = &t->bpe.longest[(uint8_t) t->token[id].data[0]];

        if (len > *longest) {
            *longest = (uint32_t) len;
        }

        if (t->bpe.whole.slot != NULL) {
            (void) dsa_vocab_add(&t->bpe.whole, t->token[id], id);
        }
    }

    return DSA_OK;
}


/*
 * The bytes that a name of the byte-level vocabulary stands for, at most
 * name.len.  A name with any other character stands for itself (whole is 0).
 */

static size_t
dsa_load_bytes(dsa_loader_t *l, dsa_str_t name, char *out, int *whole)
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


static int
dsa_load_alphabet(dsa_loader_t *l)
{
    char      name[4];
    size_t    len;
    uint32_t  i;

    for (i = 0; i < 256; i++) {
        len = dsa_load_utf8(l->char_of[i], name);

        l->t->bpe.byte[i] = dsa_vocab_find(&l->names, dsa_str(name, len));

        if (l->t->bpe.byte[i] == DSA_TOKENIZER_NONE) {
            return dsa_error(l->err, "%s: model.vocab has no entry \"%.*s\" "
                             "for byte 0x%02x; a byte-level vocabulary has "
                             "all 256", l->name, (int) len, name, i);
        }
    }

    return DSA_OK;
}


static int
dsa_load_merges(dsa_loader_t *l)
{
    uint32_t     rank;
    dsa_json_t  *v;

    rank = 0;

    for (v = l->merges->first; v != NULL; v = v->next) {
        if (dsa_load_merge(l, rank++, v) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


/* "left right", or ["left", "right"]. */

static int
dsa_load_merge(dsa_loader_t *l, uint32_t rank, dsa_json_t *merge)
{
    char         where[64];
    uint32_t     left, right, id;
    dsa_str_t    a, b;
    const char  *space;

    (void) snprintf(where, sizeof(where), "model.merges[%u]", rank);

    if (merge->type == DSA_JSON_STRING) {

        space = merge->text.len == 0
                ? NULL : memchr(merge->text.data, ' ', merge->text.len);

        if (space == NULL) {
            return dsa_load_refuse(l, where, merge, "\"left right\"");
        }

        a = dsa_str(merge->text.data, (size_t) (space - merge->text.data));
        b = dsa_str(space + 1, merge->text.len - a.len - 1);

    } else if (merge->type == DSA_JSON_ARRAY && merge->n == 2
               && merge->first->type == DSA_JSON_STRING
               && merge->first->next->type == DSA_JSON_STRING)
    {
        a = merge->first->text;
        b = merge->first->next->text;

    } else {
        return dsa_load_refuse(l, where, merge,
                               "\"left right\" or [\"left\", \"right\"]");
    }

    left = dsa_vocab_find(&l->names, a);
    right = dsa_vocab_find(&l->names, b);
    id = DSA_TOKENIZER_NONE;

    if (left != DSA_TOKENIZER_NONE && right != DSA_TOKENIZER_NONE) {
        memcpy(l->scratch, a.data, a.len);
        memcpy(l->scratch + a.len, b.data, b.len);

        id = dsa_vocab_find(&l->names, dsa_str(l->scratch, a.len + b.len));
    }

    if (id == DSA_TOKENIZER_NONE) {
        return dsa_error(l->err, "%s: %s: \"%.*s\", \"%.*s\" and both together "
                         "must be in model.vocab", l->name, where,
                         (int) (a.len < 60 ? a.len : 60), a.data,
                         (int) (b.len < 60 ? b.len : 60), b.data);
    }

    dsa_bpe_add(&l->t->bpe, left, right, rank, id);

    return DSA_OK;
}


static int
dsa_load_added(dsa_loader_t *l)
{
    uint32_t          n, flags;
    dsa_json_t       *v;
    dsa_tokenizer_t  *t;

    t = l->t;
    flags = 0;

    if (l->added == NULL) {
        return DSA_OK;
    }

    v = l->added->first;

    for (n = 0; v != NULL; v = v->next, n++) {

        if (dsa_load_added_one(l, n, v) != DSA_OK) {
            return DSA_ERROR;
        }

        flags |= t->added[n].lstrip | t->added[n].rstrip
                 | t->added[n].single_word;
    }

    t->n_added = n;

    if (flags == 0) {
        return DSA_OK;
    }

    t->space = dsa_pattern_compile(l->name,
                                   dsa_strz("\\A\\p{White_Space}\\z"), l->err);

    t->word = dsa_pattern_compile(l->name,
                                  dsa_strz("\\A[\\p{Alphabetic}\\p{M}\\p{Nd}"
                                           "\\p{Pc}\\p{Join_Control}]\\z"),
                                  l->err);

    return (t->space == NULL || t->word == NULL) ? DSA_ERROR : DSA_OK;
}


static int
dsa_load_added_one(dsa_loader_t *l, uint32_t n, dsa_json_t *v)
{
    char              where[64];
    int64_t           value;
    uint32_t          id, known, lstrip, rstrip, single_word, normalized;
    dsa_str_t         content;
    dsa_tokenizer_t  *t;

    t = l->t;

    (void) snprintf(where, sizeof(where), "added_tokens[%u]", n);
    (void) dsa_json_int(dsa_json_get(v, "id"), &value);

    id = (uint32_t) value;
    content = dsa_json_get(v, "content")->text;

    if (dsa_load_flag(l, v, where, "lstrip", 0, &lstrip) != DSA_OK
        || dsa_load_flag(l, v, where, "rstrip", 0, &rstrip) != DSA_OK
        || dsa_load_flag(l, v, where, "single_word", 0, &single_word) != DSA_OK
        || dsa_load_flag(l, v, where, "normalized", 0, &normalized) != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* it may be in the vocabulary, but then as the same */

    known = dsa_vocab_find(&l->names, content);

    if (known != id
        && (known != DSA_TOKENIZER_NONE || t->token[id].data != NULL))
    {
        return dsa_error(l->err, "%s: %s: \"%.*s\" has id %u, which does not "
                         "agree with model.vocab or another added token",
                         l->name, where,
                         (int) (content.len < 60 ? content.len : 60),
                         content.data, id);
    }

    memcpy(l->end, content.data, content.len);
    content.data = l->end;
    l->end += content.len;

    t->token[id] = content;
    t->special[id] = 1;

    t->added[n].content = content;
    t->added[n].id = id;
    t->added[n].lstrip = (uint8_t) lstrip;
    t->added[n].rstrip = (uint8_t) rstrip;
    t->added[n].single_word = (uint8_t) single_word;

    if (dsa_vocab_add(&t->added_id, content, id) != DSA_OK) {
        return dsa_error(l->err, "%s: %s: \"%.*s\" is added twice", l->name,
                         where, (int) (content.len < 60 ? content.len : 60),
                         content.data);
    }

    /* a trie that has no such content fails for want of memory only */

    if (dsa_trie_add(&t->trie[normalized], content, n) != DSA_OK) {
        return dsa_error(l->err, "%s: out of memory", l->name);
    }

    return DSA_OK;
}


static int
dsa_load_stages(dsa_loader_t *l)
{
    char         where[64];
    uint32_t     n, byte_level;
    dsa_json_t  *pre, *list, *v, *type;

    pre = dsa_json_get(l->root, "pre_tokenizer");

    if (pre == NULL || pre->type != DSA_JSON_OBJECT) {
        return dsa_load_refuse(l, "pre_tokenizer", pre, "an object");
    }

    type = dsa_json_get(pre, "type");
    v = pre;
    list = NULL;

    if (type != NULL && type->type == DSA_JSON_STRING
        && dsa_str_eqz(type->text, "Sequence"))
    {
        list = dsa_json_get(pre, "pretokenizers");

        if (list == NULL || list->type != DSA_JSON_ARRAY) {
            return dsa_load_refuse(l, "pre_tokenizer.pretokenizers", list,
                                   "an array");
        }

        v = list->first;
    }

    byte_level = 0;

    for (n = 0; v != NULL; v = (list != NULL) ? v->next : NULL, n++) {

        if (list != NULL) {
            (void) snprintf(where, sizeof(where),
                            "pre_tokenizer.pretokenizers[%u]", n);

        } else {
            (void) snprintf(where, sizeof(where), "pre_tokenizer");
        }

        type = dsa_json_get(v, "type");

        if (byte_level) {
            return dsa_error(l->err, "%s: %s comes after ByteLevel, which "
                             "must be the last", l->name, where);
        }

        if (type != NULL && type->type == DSA_JSON_STRING
            && dsa_str_eqz(type->text, "Split"))
        {
            if (dsa_load_split(l, where, v) != DSA_OK) {
                return DSA_ERROR;
            }

        } else if (type != NULL && type->type == DSA_JSON_STRING
                   && dsa_str_eqz(type->text, "ByteLevel"))
        {
            byte_level = 1;

            if (dsa_load_byte_level(l, where, v) != DSA_OK) {
                return DSA_ERROR;
            }

        } else {
            (void) strncat(where, ".type", sizeof(where) - strlen(where) - 1);
            return dsa_load_refuse(l, where, type,
                                   "\"Split\", \"ByteLevel\" or a \"Sequence\" "
                                   "of them");
        }
    }

    if (!byte_level) {
        return dsa_error(l->err, "%s: pre_tokenizer ends without ByteLevel; a "
                         "byte-level vocabulary is required", l->name);
    }

    return DSA_OK;
}


static int
dsa_load_split(dsa_loader_t *l, const char *where, dsa_json_t *v)
{
    char                 text[128], *escaped, *p;
    size_t               i;
    uint32_t             behavior;
    dsa_str_t            pattern;
    dsa_json_t          *json, *literal;
    dsa_split_stage_t   *stage;
    static const char   *keys[] = { "type", "pattern", "behavior", "invert",
                                    NULL };
    static const char   *name[] = { "Isolated", "Removed",
                                    "MergedWithPrevious", "MergedWithNext",
                                    "Contiguous" };

    if (dsa_load_keys(l, v, where, keys) != DSA_OK) {
        return DSA_ERROR;
    }

    stage = dsa_load_stage(l, where);
    if (stage == NULL) {
        return DSA_ERROR;
    }

    if (dsa_load_flag(l, v, where, "invert", 0, &stage->invert) != DSA_OK) {
        return DSA_ERROR;
    }

    json = dsa_json_get(v, "behavior");

    for (behavior = 0; behavior < sizeof(name) / sizeof(name[0]); behavior++) {

        if (json != NULL && json->type == DSA_JSON_STRING
            && dsa_str_eqz(json->text, name[behavior]))
        {
            break;
        }
    }

    if (behavior == sizeof(name) / sizeof(name[0])) {
        (void) snprintf(text, sizeof(text), "%s.behavior", where);
        return dsa_load_refuse(l, text, json, "Isolated, Removed, "
                               "MergedWithPrevious, MergedWithNext or "
                               "Contiguous");
    }

    stage->behavior = (dsa_split_behavior_e) behavior;

    json = dsa_json_get(dsa_json_get(v, "pattern"), "Regex");
    literal = dsa_json_get(dsa_json_get(v, "pattern"), "String");

    if (json != NULL && json->type == DSA_JSON_STRING && literal == NULL) {

        (void) snprintf(text, sizeof(text), "%s: %s.pattern", l->name, where);

        stage->code = dsa_split_compile(text, json->text, l->err);

        return (stage->code != NULL) ? DSA_OK : DSA_ERROR;
    }

    if (literal == NULL || literal->type != DSA_JSON_STRING || json != NULL) {
        (void) snprintf(text, sizeof(text), "%s.pattern", where);
        return dsa_load_refuse(l, text, dsa_json_get(v, "pattern"),
                               "an object with \"Regex\" or \"String\"");
    }

    /* a text to be found as it stands */

    pattern = literal->text;

    escaped = malloc(2 * pattern.len + 1);
    if (escaped == NULL) {
        return dsa_error(l->err, "%s: out of memory", l->name);
    }

    p = escaped;

    for (i = 0; i < pattern.len; i++) {

        if ((uint8_t) pattern.data[i] < 0x80
            && strchr("\\^$.[]|()?*+{}", pattern.data[i]) != NULL
            && pattern.data[i] != '\0')
        {
            *p++ = '\\';
        }

        *p++ = pattern.data[i];
    }

    (void) snprintf(text, sizeof(text), "%s: %s.pattern", l->name, where);

    stage->code = dsa_split_compile(text,
                                    dsa_str(escaped, (size_t) (p - escaped)),
                                    l->err);
    free(escaped);

    return (stage->code != NULL) ? DSA_OK : DSA_ERROR;
}


static int
dsa_load_byte_level(dsa_loader_t *l, const char *where, dsa_json_t *v)
{
    char                text[128];
    uint32_t            use_regex;
    dsa_split_stage_t  *stage;
    static const char  *keys[] = { "type", "add_prefix_space", "trim_offsets",
                                   "use_regex", NULL };

    /* the pattern of GPT-2, which use_regex stands for */

    static const char   pattern[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
        "|\\s+(?!\\S)|\\s+";

    if (dsa_load_keys(l, v, where, keys) != DSA_OK) {
        return DSA_ERROR;
    }

    stage = dsa_load_stage(l, where);
    if (stage == NULL) {
        return DSA_ERROR;
    }

    if (dsa_load_flag(l, v, where, "add_prefix_space", 1, &stage->prefix_space)
        != DSA_OK
        || dsa_load_flag(l, v, where, "use_regex", 1, &use_regex) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (use_regex) {
        (void) snprintf(text, sizeof(text), "%s: %s", l->name, where);

        stage->code = dsa_split_compile(text, dsa_strz(pattern), l->err);

        return (stage->code != NULL) ? DSA_OK : DSA_ERROR;
    }

    if (!stage->prefix_space) {
        l->t->n_stages--;
    }

    return DSA_OK;
}


static dsa_split_stage_t *
dsa_load_stage(dsa_loader_t *l, const char *where)
{
    if (l->t->n_stages == DSA_TOKENIZER_MAX_STAGE) {
        (void) dsa_error(l->err, "%s: %s is one too many; at most %d are "
                         "accepted", l->name, where, DSA_TOKENIZER_MAX_STAGE);
        return NULL;
    }

    return &l->t->stage[l->t->n_stages++];
}


/*
 * GPT-2's alphabet: a printable character of Latin-1 stands for its own byte,
 * and the other 68 bytes in ascending order are U+0100, U+0101, ...
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
