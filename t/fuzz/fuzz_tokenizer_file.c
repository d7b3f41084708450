
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A tokenizer.json of any bytes either fails with an error, or makes a
 * tokenizer whose tokens of a fixed text have the bytes of the text, apart from
 * white space, and whose functions agree about its tokens.
 */


#include <stdlib.h>
#include <string.h>

#include "engine/tokenizer/tokenizer.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t fuzz_follow(size_t at, dsa_str_t token);
static size_t fuzz_skip(size_t at);
static int fuzz_is_space(char c);


static const char  fuzz_text[] =
    "It's 12345 o'clock,\n\n   said <mask> the \xe4\xb8\xad\xe6\x96\x87 "
    "\xf0\x9f\x98\x80\xcc\x81 caf\xc3\xa9 <|a|> \xff\xe4\xb8 "
    "aaaaaaaaaaaaaaaa         \r\n\t.getValue()";


/*
 * Compares a token with the text from offset at on, and returns the offset
 * behind it.  The text begins again at its end.  "lstrip" and "rstrip" of an
 * added token remove white space, and "add_prefix_space" adds it.
 */

static size_t
fuzz_follow(size_t at, dsa_str_t token)
{
    size_t  i;

    for (i = 0; i < token.len; i++) {

        if (fuzz_is_space(token.data[i])) {
            continue;
        }

        at = fuzz_skip(at);

        if (fuzz_text[at] != token.data[i]) {
            abort();
        }

        at = fuzz_skip(at + 1);
    }

    return at;
}


/* The text ends with a character that is not white space. */

static size_t
fuzz_skip(size_t at)
{
    while (fuzz_is_space(fuzz_text[at])) {
        at++;
    }

    return fuzz_text[at] == '\0' ? 0 : at;
}


static int
fuzz_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                    rc;
    size_t                 at;
    uint32_t               i;
    dsa_err_t              err;
    dsa_str_t              s;
    dsa_tokens_t           out;
    dsa_tokenizer_t       *t;
    dsa_tokenizer_work_t  *w;

    err.text[0] = '\0';
    t = dsa_tokenizer_read("file", data, size, &err);

    if (t == NULL) {
        if (strncmp(err.text, "file: ", 6) != 0) {
            abort();
        }

        return 0;
    }

    memset(&out, 0, sizeof(dsa_tokens_t));

    w = dsa_tokenizer_work_create(t);
    if (w == NULL) {
        abort();
    }

    s = dsa_str(fuzz_text, sizeof(fuzz_text) - 1);

    rc = dsa_tokenize(t, w, s, 100000, &out, &err);

    if (rc == DSA_OK) {
        rc = dsa_tokenize_special(t, w, s, 100000, &out, &err);
    }

    if (rc == DSA_AGAIN) {
        abort();
    }

    /* the text, with and without added tokens */

    at = 0;

    for (i = 0; i < out.n; i++) {
        s = dsa_token_bytes(t, out.ids[i]);

        if (s.len == 0 || out.ids[i] >= dsa_tokenizer_size(t)) {
            abort();
        }

        if (rc == DSA_OK) {
            at = fuzz_follow(at, s);
        }

        if (dsa_token_is_special(t, out.ids[i])
            && dsa_tokenizer_special(t, s) != (int64_t) out.ids[i])
        {
            abort();
        }
    }

    if (at != 0) {
        abort();
    }

    free(out.ids);
    dsa_tokenizer_work_destroy(w);
    dsa_tokenizer_close(t);

    return 0;
}
