
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdlib.h>

#include "base/file.h"
#include "engine/tokenizer/parts.h"


/*
 * A text that is not UTF-8 is cut into valid and invalid parts of maximal
 * length.  A valid part is pre-tokenized as a text of its own; an invalid part
 * is one pre-token.  So no byte is changed or dropped, and the patterns are
 * applied to characters only.
 */


#define DSA_TOKENIZER_FILE_MAX   (64 * 1024 * 1024)
#define DSA_TOKENIZER_STACK_MIN  (32 * 1024)
#define DSA_TOKENIZER_STACK_MAX  (64 * 1024 * 1024)
#define DSA_TOKENIZER_TEXT_MAX   (1024 * 1024 * 1024)
#define DSA_TOKENIZER_KEEP       65536      /* bytes that remain allocated */


static int dsa_tokenizer_run(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err,
    int special);
static size_t dsa_utf8_invalid(const uint8_t *p, size_t n);


dsa_tokenizer_t *
dsa_tokenizer_open(const char *path, dsa_err_t *err)
{
    dsa_buf_t         file;
    dsa_tokenizer_t  *t;

    memset(&file, 0, sizeof(dsa_buf_t));

    t = NULL;

    if (dsa_file_read(path, DSA_TOKENIZER_FILE_MAX, &file, err) == DSA_OK) {
        t = dsa_tokenizer_read(path, file.data, file.len, err);
    }

    dsa_buf_free(&file);

    return t;
}


dsa_tokenizer_t *
dsa_tokenizer_read(const char *name, const void *json, size_t len,
    dsa_err_t *err)
{
    dsa_tokenizer_t  *t;

    t = calloc(1, sizeof(dsa_tokenizer_t));
    if (t == NULL) {
        (void) dsa_error(err, "%s: out of memory", name);
        return NULL;
    }

    if (dsa_tokenizer_load(t, name, dsa_str(json, len), err) != DSA_OK) {
        dsa_tokenizer_close(t);
        return NULL;
    }

    return t;
}


void
dsa_tokenizer_close(dsa_tokenizer_t *t)
{
    uint32_t  i;

    if (t == NULL) {
        return;
    }

    for (i = 0; i < t->n_stages; i++) {
        pcre2_code_free(t->stage[i].code);
    }

    pcre2_code_free(t->word);
    pcre2_code_free(t->space);
    dsa_trie_free(&t->trie[0]);
    dsa_trie_free(&t->trie[1]);
    dsa_map_free(&t->added_id);
    dsa_bpe_free(&t->bpe);
    free(t->added);
    free(t->token);
    free(t->special);
    free(t->bytes);
    free(t);
}


dsa_tokenizer_work_t *
dsa_tokenizer_work_create(const dsa_tokenizer_t *t)
{
    dsa_tokenizer_work_t  *w;

    w = calloc(1, sizeof(dsa_tokenizer_work_t));
    if (w == NULL) {
        return NULL;
    }

    w->cache = calloc(DSA_CACHE_BUCKETS, sizeof(dsa_cache_bucket_t));
    w->match = pcre2_match_data_create(1, NULL);
    w->context = pcre2_match_context_create(NULL);
    w->stack = pcre2_jit_stack_create(DSA_TOKENIZER_STACK_MIN,
                                      DSA_TOKENIZER_STACK_MAX, NULL);

    if (w->cache == NULL || w->match == NULL || w->context == NULL
        || w->stack == NULL)
    {
        dsa_tokenizer_work_destroy(w);
        return NULL;
    }

    pcre2_jit_stack_assign(w->context, NULL, w->stack);

    return w;
}


void
dsa_tokenizer_work_destroy(dsa_tokenizer_work_t *w)
{
    if (w == NULL) {
        return;
    }

    pcre2_match_data_free(w->match);
    pcre2_match_context_free(w->context);
    pcre2_jit_stack_free(w->stack);
    free(w->cache);
    free(w->symbol);
    free(w->heap);
    free(w->prefixed);
    free(w);
}


int
dsa_tokenize(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w, dsa_str_t text,
    uint32_t max, dsa_tokens_t *out, dsa_err_t *err)
{
    return dsa_tokenizer_run(t, w, text, max, out, err, 0);
}


int
dsa_tokenize_special(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err)
{
    return dsa_tokenizer_run(t, w, text, max, out, err, 1);
}


static int
dsa_tokenizer_run(const dsa_tokenizer_t *t, dsa_tokenizer_work_t *w,
    dsa_str_t text, uint32_t max, dsa_tokens_t *out, dsa_err_t *err,
    int special)
{
    int                  rc;
    dsa_tokenizer_run_t  run;

    if (text.len > DSA_TOKENIZER_TEXT_MAX) {
        return dsa_error(err, "the text to tokenize has %zu bytes; expected "
                         "at most %d", text.len, DSA_TOKENIZER_TEXT_MAX);
    }

    run.t = t;
    run.w = w;
    run.out = out;
    run.max = max;
    run.err = err;

    rc = special ? dsa_added_run(&run, 0, text) : dsa_split_text(&run, text);

    if (rc == DSA_AGAIN) {
        (void) dsa_error(err, "the text has more than %u tokens", max);
    }

    dsa_bpe_trim(w);

    if (w->prefixed_size > DSA_TOKENIZER_KEEP) {
        free(w->prefixed);
        w->prefixed = NULL;
        w->prefixed_size = 0;
    }

    return rc;
}


int
dsa_split_text(dsa_tokenizer_run_t *run, dsa_str_t text)
{
    int     rc;
    size_t  n;

    while (text.len != 0) {

        n = dsa_utf8_prefix((const uint8_t *) text.data, text.len);

        rc = dsa_split_run(run, 0, text.data, n);
        if (rc != DSA_OK) {
            return rc;
        }

        text.data += n;
        text.len -= n;

        if (text.len == 0) {
            break;
        }

        n = dsa_utf8_invalid((const uint8_t *) text.data, text.len);

        rc = dsa_bpe_piece(run, text.data, n);
        if (rc != DSA_OK) {
            return rc;
        }

        text.data += n;
        text.len -= n;
    }

    return DSA_OK;
}


/* Returns the number of bytes before the first valid character. */

static size_t
dsa_utf8_invalid(const uint8_t *p, size_t n)
{
    int     rc;
    size_t  i;

    for (i = 0; i < n; i += (size_t) -rc) {

        rc = dsa_utf8_char(p + i, n - i);

        if (rc > 0) {
            break;
        }

        if (rc == 0) {
            return n;
        }
    }

    return i;
}


int
dsa_tokens_push(dsa_tokens_t *tokens, uint32_t id)
{
    uint32_t  size, *ids;

    if (tokens->n == tokens->size) {
        size = (tokens->size < 256) ? 256
               : (tokens->size > UINT32_MAX / 2) ? UINT32_MAX
                                                 : tokens->size * 2;

        ids = realloc(tokens->ids, size * sizeof(uint32_t));
        if (ids == NULL) {
            return DSA_ERROR;
        }

        tokens->ids = ids;
        tokens->size = size;
    }

    tokens->ids[tokens->n++] = id;

    return DSA_OK;
}


int64_t
dsa_tokenizer_special(const dsa_tokenizer_t *t, dsa_str_t content)
{
    uint64_t  *id;

    id = dsa_map_find(&t->added_id, content);

    return (id == NULL) ? -1 : (int64_t) *id;
}


dsa_str_t
dsa_token_bytes(const dsa_tokenizer_t *t, uint32_t id)
{
    dsa_str_t  none = dsa_null_string;

    return (id < t->size) ? t->token[id] : none;
}


int
dsa_token_is_special(const dsa_tokenizer_t *t, uint32_t id)
{
    return id < t->size && t->special[id];
}


uint32_t
dsa_tokenizer_size(const dsa_tokenizer_t *t)
{
    return t->size;
}
