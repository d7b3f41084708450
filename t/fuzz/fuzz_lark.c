
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A Lark grammar, from a client.  If it is accepted, a walk over the masks of a
 * vocabulary of bytes has a token at each step, the matcher accepts those of
 * the mask and no others, and a text that ends is UTF-8 without the character
 * that begins the name of the control token.
 */


#include <stdlib.h>

#include "base/json_write.h"
#include "base/utf8.h"
#include "grammar/grammar.h"
#include "t/fuzz/vocabulary.h"


#define FUZZ_WALKS      4
#define FUZZ_STEPS      60


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dsa_grammar_t *fuzz_compile(dsa_str_t definition);
static void fuzz_walk(dsa_grammar_t *g, const uint8_t *data, size_t size,
    uint32_t walk);
static int fuzz_spell(dsa_matcher_t *m, const char *text);
static uint32_t fuzz_choose(const uint32_t *mask, uint32_t number);
static uint32_t fuzz_bit(const uint32_t *mask, uint32_t id);


static dsa_vocabulary_t  *vocabulary;


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t        i;
    dsa_grammar_t  *g;

    if (vocabulary == NULL) {
        vocabulary = fuzz_vocabulary();
    }

    /* it comes out of JSON, whose strings are UTF-8 */

    if (dsa_utf8_prefix(data, size) != size) {
        return 0;
    }

    g = fuzz_compile(dsa_str(data, size));

    for (i = 0; g != NULL && i < FUZZ_WALKS; i++) {
        fuzz_walk(g, data, size, i);
    }

    dsa_grammar_free(g);

    return 0;
}


/* NULL: it is refused. */

static dsa_grammar_t *
fuzz_compile(dsa_str_t definition)
{
    int                   rc;
    dsa_buf_t             b;
    dsa_grammar_t        *g;
    dsa_json_writer_t     w;
    dsa_grammar_error_t   error;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_json_writer(&w, &b);

    dsa_buf_addz(&b, "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":"
                 "\"one\",\"text\":false,\"tools\":[{\"name\":\"f\","
                 "\"input\":{\"syntax\":\"lark\",\"definition\":");
    dsa_json_string(&w, definition);
    dsa_buf_addz(&b, "}}]}");

    rc = dsa_grammar_compile(&g, dsa_str(b.data, b.len), dsa_strz(FUZZ_DSML),
                             &error);
    dsa_buf_free(&b);

    if (rc != DSA_OK && (g != NULL || error.message[0] == '\0'
                         || error.no_memory))
    {
        abort();
    }

    return g;
}


/* The bytes of the grammar and the number of the walk choose the tokens. */

static void
fuzz_walk(dsa_grammar_t *g, const uint8_t *data, size_t size, uint32_t walk)
{
    uint32_t        i, n, noise, mask[FUZZ_WORDS];
    dsa_matcher_t  *m;
    uint8_t         text[FUZZ_STEPS];

    m = dsa_matcher_create(g, vocabulary, dsa_str(NULL, 0));

    if (m == NULL) {
        abort();
    }

    /* a grammar that is too ambiguous may permit nothing, not even this */

    if (!fuzz_spell(m, "\n\n<" FUZZ_DSML "function_calls>\n<" FUZZ_DSML
                    "invoke name=\"f\">\n<" FUZZ_DSML
                    "parameter name=\"input\" string=\"true\">"))
    {
        dsa_matcher_free(m);
        return;
    }

    noise = walk;

    for (n = 0; n < FUZZ_STEPS; n++) {
        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, FUZZ_WORDS);

        noise = (noise ^ data[n % size]) * 1664525 + 1013904223;
        i = noise >> 8 & 0xff;

        if (!fuzz_bit(mask, i) && dsa_matcher_accept(m, i) == DSA_OK) {
            abort();
        }

        i = fuzz_choose(mask, noise >> 16);

        if (dsa_matcher_accept(m, i) != DSA_OK) {
            abort();
        }

        if (i >= FUZZ_END) {
            break;
        }

        text[n] = (uint8_t) i;
    }

    if (n < FUZZ_STEPS && i == FUZZ_CONTROL
        && (dsa_utf8_prefix(text, n) != n || n < 2
            || memcmp(text + n - 2, "</", 2) != 0
            || memmem(text, n, "｜", sizeof("｜") - 1) != NULL
            || !fuzz_spell(m, "parameter>\n</" FUZZ_DSML "invoke>\n</"
                           FUZZ_DSML "function_calls>")
            || !dsa_matcher_complete(m)))
    {
        abort();
    }

    dsa_matcher_free(m);
}


/* 1: the matcher accepts all of a text. */

static int
fuzz_spell(dsa_matcher_t *m, const char *text)
{
    uint32_t  id;

    while (*text != '\0') {
        id = (uint8_t) *text;

        if (strncmp(text, FUZZ_DSML, sizeof(FUZZ_DSML) - 1) == 0) {
            id = FUZZ_CONTROL;
            text += sizeof(FUZZ_DSML) - 2;
        }

        text++;

        if (dsa_matcher_accept(m, id) != DSA_OK) {
            return 0;
        }
    }

    return 1;
}


/* The control token if it is permitted, or one of the others. */

static uint32_t
fuzz_choose(const uint32_t *mask, uint32_t number)
{
    uint32_t  i, n;

    if (fuzz_bit(mask, FUZZ_CONTROL)) {
        return FUZZ_CONTROL;
    }

    n = 0;

    for (i = 0; i < FUZZ_SIZE; i++) {
        n += fuzz_bit(mask, i);
    }

    if (n == 0) {
        abort();
    }

    n = number % n;

    for (i = 0; !fuzz_bit(mask, i) || n-- != 0; i++) {
        /* void */
    }

    return i;
}


static uint32_t
fuzz_bit(const uint32_t *mask, uint32_t id)
{
    return mask[id / 32] >> id % 32 & 1;
}
