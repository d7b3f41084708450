
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A text of any bytes, tokenized with the published patterns: the tokens mean
 * exactly its bytes, with and without added tokens, and a limit of tokens is
 * never exceeded.  The detokenizer makes the same text of the bytes one by one
 * as of all at once.
 */


#include <stdio.h>
#include <stdlib.h>

#include "engine/tokenizer/tokenizer.h"


int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static dsa_tokenizer_t       *fuzz_tokenizer;
static dsa_tokenizer_work_t  *fuzz_work;


int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    dsa_err_t  err;

    fuzz_tokenizer = dsa_tokenizer_open(
                         "t/fuzz/corpus/tokenizer_file/published", &err);

    if (fuzz_tokenizer == NULL) {
        (void) fprintf(stderr, "%s\n", err.text);
        exit(1);
    }

    fuzz_work = dsa_tokenizer_work_create(fuzz_tokenizer);
    if (fuzz_work == NULL) {
        abort();
    }

    return 0;
}


static void
fuzz_check(const dsa_tokens_t *out, dsa_str_t text)
{
    size_t     at;
    uint32_t   i;
    dsa_str_t  s;

    at = 0;

    for (i = 0; i < out->n; i++) {
        s = dsa_token_bytes(fuzz_tokenizer, out->ids[i]);

        if (s.len == 0 || s.len > text.len - at
            || memcmp(s.data, text.data + at, s.len) != 0)
        {
            abort();
        }

        at += s.len;
    }

    if (at != text.len) {
        abort();
    }
}


static void
fuzz_detokenize(dsa_str_t text)
{
    char               *whole, *parts;
    size_t              i, n, m;
    dsa_detokenizer_t   d;

    whole = malloc(3 * (text.len + 4) + 12);
    parts = malloc(3 * (text.len + 4) + 12);

    if (whole == NULL || parts == NULL) {
        abort();
    }

    memset(&d, 0, sizeof(dsa_detokenizer_t));

    n = dsa_detokenize(&d, text, whole);
    n += dsa_detokenize_end(&d, whole + n);

    m = 0;

    for (i = 0; i < text.len; i++) {
        m += dsa_detokenize(&d, dsa_str(text.data + i, 1), parts + m);
    }

    m += dsa_detokenize_end(&d, parts + m);

    if (n != m || memcmp(whole, parts, n) != 0) {
        abort();
    }

    free(whole);
    free(parts);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t      n;
    dsa_err_t     err;
    dsa_str_t     text;
    dsa_tokens_t  out;

    memset(&out, 0, sizeof(dsa_tokens_t));

    text = dsa_str(data, size);

    if (dsa_tokenize_special(fuzz_tokenizer, fuzz_work, text, UINT32_MAX, &out,
                             &err) != DSA_OK)
    {
        abort();
    }

    fuzz_check(&out, text);

    out.n = 0;

    if (dsa_tokenize(fuzz_tokenizer, fuzz_work, text, UINT32_MAX, &out, &err)
        != DSA_OK)
    {
        abort();
    }

    fuzz_check(&out, text);

    n = out.n;
    out.n = 0;

    if (n != 0
        && (dsa_tokenize(fuzz_tokenizer, fuzz_work, text, n - 1, &out, &err)
            != DSA_AGAIN || out.n >= n))
    {
        abort();
    }

    fuzz_detokenize(text);
    free(out.ids);

    return 0;
}
