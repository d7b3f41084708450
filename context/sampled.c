
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <endian.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/utf8.h"
#include "context/sampled.h"


#define DSA_SAMPLED_MAGIC   "dsa-rt-1"
#define DSA_SAMPLED_HEAD    32
#define DSA_SAMPLED_SUM     8

_Static_assert(sizeof(DSA_SAMPLED_MAGIC) - 1 == 8,
               "the vocabulary follows the magic at byte 8");
_Static_assert(16 + DSA_FAMILY_NAME == DSA_SAMPLED_HEAD,
               "the segments follow the family");


static void dsa_sampled_family(char name[DSA_FAMILY_NAME],
    const dsa_family_t *family);
static void dsa_sampled_number(dsa_buf_t *b, uint32_t n);
static void dsa_sampled_fail(dsa_sampled_writer_t *w);
static uint64_t dsa_sampled_sum(const char *data, size_t len);
static int dsa_sampled_scan(dsa_sampled_t *s, const char *p, const char *last,
    dsa_err_t *err);
static int dsa_sampled_control(const dsa_sampled_t *s, dsa_str_t name);


void
dsa_sampled_start(dsa_sampled_writer_t *w, const dsa_family_t *family,
    int thinking, uint32_t vocabulary)
{
    char  name[DSA_FAMILY_NAME];

    assert(w->answer.len == 0);

    dsa_sampled_family(name, family);

    dsa_buf_add(&w->answer, DSA_SAMPLED_MAGIC, 8);
    dsa_sampled_number(&w->answer, vocabulary);
    dsa_sampled_number(&w->answer, thinking != 0);
    dsa_buf_add(&w->answer, name, DSA_FAMILY_NAME);
}


void
dsa_sampled_add(dsa_sampled_writer_t *w, dsa_str_t text, int control)
{
    int       begins;
    uint32_t  n;

    if (w->failed || text.len == 0) {
        return;
    }

    begins = control || w->text == 0;

    if (text.len > DSA_SAMPLED_MAX
        || w->answer.len + (begins ? 4 : 0) + text.len + DSA_SAMPLED_SUM
           > DSA_SAMPLED_MAX)
    {
        dsa_sampled_fail(w);
        return;
    }

    if (begins) {
        w->text = control ? 0 : w->answer.len;
        dsa_sampled_number(&w->answer, (uint32_t) text.len << 1
                                       | (control != 0));
        dsa_buf_add(&w->answer, text.data, text.len);
        return;
    }

    /* neighboring texts become one segment */

    dsa_buf_add(&w->answer, text.data, text.len);

    if (!w->answer.failed) {
        n = htole32((uint32_t) (w->answer.len - w->text - 4) << 1);
        memcpy(w->answer.data + w->text, &n, 4);
    }
}


int
dsa_sampled_end(dsa_sampled_writer_t *w)
{
    uint64_t  sum;

    if (!w->failed && !w->answer.failed) {
        sum = htole64(dsa_sampled_sum(w->answer.data, w->answer.len));
        dsa_buf_add(&w->answer, &sum, DSA_SAMPLED_SUM);
    }

    if (w->answer.failed) {
        dsa_sampled_fail(w);
    }

    return w->failed ? DSA_ERROR : DSA_OK;
}


static void
dsa_sampled_family(char name[DSA_FAMILY_NAME], const dsa_family_t *family)
{
    size_t  len;

    len = strlen(family->name);

    assert(len < DSA_FAMILY_NAME);

    memset(name, 0, DSA_FAMILY_NAME);
    memcpy(name, family->name, len);
}


static void
dsa_sampled_number(dsa_buf_t *b, uint32_t n)
{
    n = htole32(n);
    dsa_buf_add(b, &n, 4);
}


/* The memory is freed at once, because the answer may go on for long. */

static void
dsa_sampled_fail(dsa_sampled_writer_t *w)
{
    dsa_buf_free(&w->answer);
    memset(&w->answer, 0, sizeof(dsa_buf_t));
    w->failed = 1;
}


static uint64_t
dsa_sampled_sum(const char *data, size_t len)
{
    return XXH3_64bits(data, len);
}


dsa_sampled_t *
dsa_sampled_read(dsa_arena_t *arena, const dsa_family_t *family,
    dsa_str_t answer, dsa_err_t *err)
{
    char            name[DSA_FAMILY_NAME];
    char           *copy;
    size_t          len;
    uint32_t        thinking;
    uint64_t        sum;
    dsa_sampled_t  *s;

    if (answer.len < DSA_SAMPLED_HEAD + DSA_SAMPLED_SUM
        || answer.len > DSA_SAMPLED_MAX
        || memcmp(answer.data, DSA_SAMPLED_MAGIC, 8) != 0)
    {
        (void) dsa_error(err, "it is not a retained answer");
        return NULL;
    }

    len = answer.len - DSA_SAMPLED_SUM;
    memcpy(&sum, answer.data + len, DSA_SAMPLED_SUM);

    if (le64toh(sum) != dsa_sampled_sum(answer.data, len)) {
        (void) dsa_error(err, "its checksum differs");
        return NULL;
    }

    s = dsa_arena_calloc(arena, sizeof(dsa_sampled_t));
    copy = dsa_arena_dup(arena, dsa_str(answer.data, len));

    if (s == NULL || copy == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    dsa_sampled_family(name, family);

    if (memcmp(copy + 16, name, DSA_FAMILY_NAME) != 0) {
        (void) dsa_error(err, "its family is not \"%s\"", family->name);
        return NULL;
    }

    s->family = family;

    memcpy(&s->vocabulary, copy + 8, 4);
    memcpy(&thinking, copy + 12, 4);

    s->vocabulary = le32toh(s->vocabulary);
    thinking = le32toh(thinking);
    s->thinking = thinking != 0;

    if ((uint64_t) s->vocabulary >> family->tokens.n != 0 || thinking > 1) {
        (void) dsa_error(err, "its head has an unknown bit");
        return NULL;
    }

    /* the first pass counts and checks, the second one fills */

    if (dsa_sampled_scan(s, copy + DSA_SAMPLED_HEAD, copy + len, err)
        != DSA_OK)
    {
        return NULL;
    }

    s->segments = dsa_arena_alloc(arena, s->n * sizeof(dsa_segment_t));

    if (s->segments == NULL) {
        (void) dsa_error(err, "out of memory");
        return NULL;
    }

    (void) dsa_sampled_scan(s, copy + DSA_SAMPLED_HEAD, copy + len, err);

    return s;
}


/* Walks over the segments; fills s->segments if it is there. */

static int
dsa_sampled_scan(dsa_sampled_t *s, const char *p, const char *last,
    dsa_err_t *err)
{
    int        text;
    uint32_t   n, word;
    dsa_str_t  t;

    text = 0;

    for (n = 0; p != last; n++) {
        if (last - p < 4) {
            return dsa_error(err, "segment %u is cut off", n);
        }

        memcpy(&word, p, 4);
        word = le32toh(word);
        p += 4;

        t = dsa_str(p, word >> 1);

        if (t.len == 0 || t.len > (size_t) (last - p)) {
            return dsa_error(err, "segment %u has an invalid length", n);
        }

        p += t.len;

        if ((word & 1) != 0) {
            if (!dsa_sampled_control(s, t)) {
                return dsa_error(err, "segment %u is not a control token of "
                                 "its vocabulary", n);
            }

        } else if (text
                   || dsa_utf8_prefix((const uint8_t *) t.data, t.len)
                      != t.len)
        {
            return dsa_error(err, "segment %u is not a text", n);
        }

        text = (word & 1) == 0;

        if (s->segments != NULL) {
            s->segments[n].kind = text ? DSA_SEGMENT_TEXT
                                       : DSA_SEGMENT_CONTROL;
            s->segments[n].text = t;
        }
    }

    s->n = n;

    return n != 0 ? DSA_OK : dsa_error(err, "it has no segments");
}


static int
dsa_sampled_control(const dsa_sampled_t *s, dsa_str_t name)
{
    uint32_t  token;

    token = dsa_control_token_find(&s->family->tokens, name);

    return token < s->family->tokens.n && (s->vocabulary >> token & 1) != 0;
}


uint32_t
dsa_sampled_behind_reasoning(const dsa_sampled_t *s)
{
    uint32_t                     i, token;
    const dsa_control_tokens_t  *tokens;

    if (!s->thinking) {
        return 0;
    }

    tokens = &s->family->tokens;

    for (i = 0; i < s->n; i++) {
        if (s->segments[i].kind != DSA_SEGMENT_CONTROL) {
            continue;
        }

        token = dsa_control_token_find(tokens, s->segments[i].text);

        if (token < tokens->n
            && (tokens->elts[token].marks & DSA_MARK_THINK_END) != 0)
        {
            return i + 1;
        }
    }

    return UINT32_MAX;
}
