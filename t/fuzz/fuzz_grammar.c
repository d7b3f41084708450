
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A spec of a grammar, from a client.  If it is accepted, a walk over the masks
 * of a vocabulary of bytes has a token at each step, and the matcher accepts
 * it; an answer that ends is JSON.
 */


#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "grammar/grammar.h"


#define FUZZ_END        256
#define FUZZ_CONTROL    257
#define FUZZ_SIZE       258
#define FUZZ_STEPS      400


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dsa_vocabulary_t *fuzz_vocabulary(void);
static void fuzz_walk(dsa_grammar_t *g, const uint8_t *data, size_t size);
static void fuzz_check(const char *text, size_t n);


static dsa_vocabulary_t  *vocabulary;


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    if (vocabulary == NULL) {
        vocabulary = fuzz_vocabulary();
    }

    if (dsa_grammar_compile(&g, dsa_str(data, size), &error) != DSA_OK) {
        if (g != NULL || error.message[0] == '\0' || error.no_memory) {
            abort();
        }

        return 0;
    }

    fuzz_walk(g, data, size);
    dsa_grammar_free(g);

    return 0;
}


static dsa_vocabulary_t *
fuzz_vocabulary(void)
{
    char               byte;
    uint32_t           i, end;
    dsa_vocabulary_t  *v;

    v = dsa_vocabulary_create(FUZZ_SIZE);

    if (v == NULL) {
        abort();
    }

    for (i = 0; i < 256; i++) {
        byte = (char) i;

        if (dsa_vocabulary_add(v, i, dsa_str(&byte, 1)) != DSA_OK) {
            abort();
        }
    }

    end = FUZZ_END;

    if (dsa_vocabulary_add_control(v, FUZZ_CONTROL, dsa_strz("｜DSML｜"))
        != DSA_OK
        || dsa_vocabulary_end(v, &end, 1) != DSA_OK
        || dsa_vocabulary_seal(v) != DSA_OK)
    {
        abort();
    }

    return v;
}


/* The bytes of the spec choose among the permitted tokens. */

static void
fuzz_walk(dsa_grammar_t *g, const uint8_t *data, size_t size)
{
    char            text[FUZZ_STEPS];
    int             control;
    uint32_t        i, step, n, mask[(FUZZ_SIZE + 31) / 32];
    dsa_matcher_t  *m;

    m = dsa_matcher_create(g, vocabulary, dsa_str(NULL, 0));

    if (m == NULL) {
        abort();
    }

    control = 0;

    for (step = 0; step < FUZZ_STEPS; step++) {
        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));

        n = 0;

        for (i = 0; i < FUZZ_SIZE; i++) {
            n += mask[i / 32] >> i % 32 & 1;
        }

        if (n == 0) {
            abort();
        }

        n = data[step % size] % n;

        for (i = 0; (mask[i / 32] >> i % 32 & 1) == 0 || n-- != 0; i++) {
            /* void */
        }

        if (dsa_matcher_accept(m, i) != DSA_OK) {
            abort();
        }

        if (i == FUZZ_END) {
            break;
        }

        control |= i == FUZZ_CONTROL;
        text[step] = (char) i;
    }

    /* calls are not JSON, and neither is text, which begins with anything */

    if (step < FUZZ_STEPS && !control
        && memmem(data, size, "tools", 5) == NULL)
    {
        fuzz_check(text, step);
    }

    dsa_matcher_free(m);
}


static void
fuzz_check(const char *text, size_t n)
{
    dsa_err_t     err;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(16 << 20);

    if (arena == NULL) {
        abort();
    }

    if (dsa_json_parse(arena, text, n, 250, &err) == NULL
        && strstr(err.text, "is repeated") == NULL)
    {
        abort();
    }

    dsa_arena_destroy(arena);
}
