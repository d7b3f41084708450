
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "engine/tokenizer/load.h"


static int dsa_load_added_one(dsa_loader_t *l, uint32_t n,
    const dsa_json_t *v);
static int dsa_load_added_id(dsa_loader_t *l, const dsa_fields_t *f,
    uint32_t id, dsa_str_t content);


int
dsa_load_added(dsa_loader_t *l)
{
    uint32_t           n, flags;
    dsa_tokenizer_t   *t;
    const dsa_json_t  *v;

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

    t->space = dsa_pattern_compile(l->top.file,
                                   dsa_strz("\\A\\p{White_Space}\\z"),
                                   l->top.err);

    t->word = dsa_pattern_compile(l->top.file,
                                  dsa_strz("\\A[\\p{Alphabetic}\\p{M}\\p{Nd}"
                                           "\\p{Pc}\\p{Join_Control}]\\z"),
                                  l->top.err);

    return (t->space == NULL || t->word == NULL) ? DSA_ERROR : DSA_OK;
}


static int
dsa_load_added_one(dsa_loader_t *l, uint32_t n, const dsa_json_t *v)
{
    char              prefix[64];
    int64_t           id;
    uint32_t          lstrip, rstrip, single_word, normalized;
    dsa_str_t         content;
    dsa_added_t      *added;
    dsa_fields_t      f;
    dsa_tokenizer_t  *t;

    t = l->t;

    (void) snprintf(prefix, sizeof(prefix), "added_tokens[%u].", n);

    f = l->top;
    f.prefix = prefix;
    f.object = v;

    /* dsa_load_sizes() has checked id and content */

    (void) dsa_json_int(dsa_field(&f, "id"), &id);
    content = dsa_field(&f, "content")->text;

    if (dsa_field_flag(&f, "lstrip", 0, &lstrip) != DSA_OK
        || dsa_field_flag(&f, "rstrip", 0, &rstrip) != DSA_OK
        || dsa_field_flag(&f, "single_word", 0, &single_word) != DSA_OK
        || dsa_field_flag(&f, "normalized", 0, &normalized) != DSA_OK
        || dsa_load_added_id(l, &f, (uint32_t) id, content) != DSA_OK)
    {
        return DSA_ERROR;
    }

    memcpy(l->end, content.data, content.len);
    content.data = l->end;
    l->end += content.len;

    t->token[id] = content;
    t->special[id] = 1;

    added = &t->added[n];

    added->content = content;
    added->id = (uint32_t) id;
    added->lstrip = (uint8_t) lstrip;
    added->rstrip = (uint8_t) rstrip;
    added->single_word = (uint8_t) single_word;

    if (dsa_map_add(&t->added_id, content, (uint64_t) id) != DSA_OK) {
        return dsa_error(l->top.err, "%s: \"%scontent\" is \"%.*s\", as of "
                         "another added token; expected each once",
                         l->top.file, prefix,
                         (int) (content.len < 60 ? content.len : 60),
                         content.data);
    }

    /* the content is new, so this fails only if memory is short */

    if (dsa_trie_add(&t->trie[normalized], content, n) != DSA_OK) {
        return dsa_error(l->top.err, "%s: out of memory", l->top.file);
    }

    return DSA_OK;
}


/*
 * Checks an added token that is in model.vocab as well: the ids must be equal.
 */

static int
dsa_load_added_id(dsa_loader_t *l, const dsa_fields_t *f, uint32_t id,
    dsa_str_t content)
{
    uint64_t  *known;

    known = dsa_map_find(&l->names, content);

    if (known != NULL ? *known == id : l->t->token[id].data == NULL) {
        return DSA_OK;
    }

    return dsa_error(l->top.err, "%s: \"%sid\" is %u for \"%.*s\", which "
                     "contradicts model.vocab or another added token",
                     l->top.file, f->prefix, id,
                     (int) (content.len < 60 ? content.len : 60),
                     content.data);
}
