
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "tools/statements.h"


typedef struct {
    dsa_statements_t   *out;
    dsa_arena_t        *arena;
    const char         *p;
    const char         *end;
    uint32_t            line;
    uint32_t            size;           /* of out->elts */
    uint32_t            n;              /* words */
    uint32_t            depth;
    int32_t             block[DSA_STATEMENTS_DEPTH];
    dsa_str_t           words[DSA_STATEMENT_WORDS];
} dsa_statements_reader_t;


static int dsa_statements_next(dsa_statements_reader_t *r, dsa_err_t *err);
static void dsa_statements_skip(dsa_statements_reader_t *r);
static int dsa_statements_mark(dsa_statements_reader_t *r, dsa_err_t *err);
static int dsa_statements_word(dsa_statements_reader_t *r, dsa_err_t *err);
static int dsa_statements_quoted(dsa_statements_reader_t *r, dsa_str_t *word,
    dsa_err_t *err);
static int dsa_statements_add(dsa_statements_reader_t *r, dsa_err_t *err);


int
dsa_statements_read(dsa_statements_t *out, dsa_arena_t *arena, dsa_str_t text,
    dsa_err_t *err)
{
    dsa_statements_reader_t  *r;

    memset(out, 0, sizeof(dsa_statements_t));

    r = dsa_arena_calloc(arena, sizeof(dsa_statements_reader_t));

    if (r == NULL) {
        return dsa_error(err, "out of memory");
    }

    r->out = out;
    r->arena = arena;
    r->p = text.data;
    r->end = text.data + text.len;
    r->line = 1;

    for ( ;; ) {
        dsa_statements_skip(r);

        if (r->p == r->end) {
            break;
        }

        if (dsa_statements_next(r, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (r->n != 0 || r->depth != 0) {
        return dsa_error(err, "the text ends within a statement or a block");
    }

    return DSA_OK;
}


/* Reads a word, or what ends a statement or a block. */

static int
dsa_statements_next(dsa_statements_reader_t *r, dsa_err_t *err)
{
    if (*r->p != '\0' && strchr(";{}", *r->p) != NULL) {
        return dsa_statements_mark(r, err);
    }

    if (r->n == DSA_STATEMENT_WORDS) {
        return dsa_error(err, "line %u: more than %d words in a statement",
                         r->line, DSA_STATEMENT_WORDS);
    }

    return dsa_statements_word(r, err);
}


static void
dsa_statements_skip(dsa_statements_reader_t *r)
{
    for ( /* void */ ; r->p != r->end; r->p++) {

        if (*r->p == '#') {
            while (r->p != r->end && *r->p != '\n') {
                r->p++;
            }

            if (r->p == r->end) {
                return;
            }
        }

        if (*r->p == '\0' || strchr(" \t\r\n", *r->p) == NULL) {
            return;
        }

        r->line += *r->p == '\n';
    }
}


static int
dsa_statements_mark(dsa_statements_reader_t *r, dsa_err_t *err)
{
    char  mark;

    mark = *r->p++;

    if (mark == '}') {
        if (r->n != 0 || r->depth == 0) {
            return dsa_error(err, "line %u: unexpected \"}\"", r->line);
        }

        r->depth--;

        return DSA_OK;
    }

    if (r->n == 0) {
        return mark == ';' ? DSA_OK
                           : dsa_error(err, "line %u: unexpected \"{\"",
                                       r->line);
    }

    if (dsa_statements_add(r, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (mark == '{') {
        if (r->depth == DSA_STATEMENTS_DEPTH) {
            return dsa_error(err, "line %u: more than %d nested blocks",
                             r->line, DSA_STATEMENTS_DEPTH);
        }

        r->block[r->depth++] = (int32_t) r->out->n - 1;
    }

    return DSA_OK;
}


static int
dsa_statements_word(dsa_statements_reader_t *r, dsa_err_t *err)
{
    const char  *start;

    if (*r->p == '"' || *r->p == '\'') {
        return dsa_statements_quoted(r, &r->words[r->n++], err);
    }

    start = r->p;

    while (r->p != r->end && (*r->p == '\0'
                              || strchr(" \t\r\n;{", *r->p) == NULL
                              || (*r->p == '{' && r->p[-1] == '$')))
    {
        if (*r->p == '\\' && r->p + 1 != r->end) {
            r->p++;
        }

        r->p++;
    }

    r->words[r->n++] = dsa_str(start, (size_t) (r->p - start));

    return DSA_OK;
}


static int
dsa_statements_quoted(dsa_statements_reader_t *r, dsa_str_t *word,
    dsa_err_t *err)
{
    char         quote, *to;
    uint32_t     line;
    const char  *p;

    quote = *r->p++;
    line = r->line;

    for (p = r->p; p != r->end && *p != quote; p++) {
        p += *p == '\\' && p + 1 != r->end;
        r->line += *p == '\n';
    }

    if (p == r->end) {
        return dsa_error(err, "line %u: a quote does not end", line);
    }

    to = dsa_arena_alloc(r->arena, (size_t) (p - r->p) + 1);

    if (to == NULL) {
        return dsa_error(err, "out of memory");
    }

    word->data = to;

    for ( /* void */ ; r->p != p; r->p++) {
        r->p += *r->p == '\\' && (r->p[1] == quote || r->p[1] == '\\');
        *to++ = *r->p;
    }

    word->len = (size_t) (to - word->data);
    r->p++;

    return DSA_OK;
}


/* Adds the statement whose words were read. */

static int
dsa_statements_add(dsa_statements_reader_t *r, dsa_err_t *err)
{
    dsa_statement_t   *s;
    dsa_statements_t  *out;

    out = r->out;

    if (out->n == r->size) {
        r->size = r->size != 0 ? 2 * r->size : 64;
        s = dsa_arena_alloc(r->arena, r->size * sizeof(dsa_statement_t));

        if (s == NULL) {
            return dsa_error(err, "out of memory");
        }

        if (out->n != 0) {
            memcpy(s, out->elts, out->n * sizeof(dsa_statement_t));
        }

        out->elts = s;
    }

    s = &out->elts[out->n++];
    s->n = r->n;
    s->parent = r->depth != 0 ? r->block[r->depth - 1] : -1;
    s->words = dsa_arena_alloc(r->arena, r->n * sizeof(dsa_str_t));

    if (s->words == NULL) {
        return dsa_error(err, "out of memory");
    }

    memcpy(s->words, r->words, r->n * sizeof(dsa_str_t));
    r->n = 0;

    return DSA_OK;
}


const dsa_statement_t *
dsa_statements_find(const dsa_statements_t *s, const char *name, uint32_t from)
{
    uint32_t  i;

    for (i = from; i < s->n; i++) {
        if (dsa_str_eqz(s->elts[i].words[0], name)) {
            return &s->elts[i];
        }
    }

    return NULL;
}


const char *
dsa_statement_word(const dsa_statement_t *s, uint32_t i, dsa_arena_t *arena)
{
    return i < s->n ? dsa_arena_dup(arena, s->words[i]) : NULL;
}


const char *
dsa_statement_value(const dsa_statement_t *s, const char *prefix,
    dsa_arena_t *arena)
{
    size_t     len;
    uint32_t   i;
    dsa_str_t  word;

    len = strlen(prefix);

    for (i = 1; i < s->n; i++) {
        word = s->words[i];

        if (word.len >= len && memcmp(word.data, prefix, len) == 0) {
            return dsa_arena_dup(arena, dsa_str(word.data + len,
                                                word.len - len));
        }
    }

    return NULL;
}
