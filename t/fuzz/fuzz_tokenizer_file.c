
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A tokenizer.json of any bytes either fails with an error, or makes a
 * tokenizer that tokenizes a fixed text and whose functions agree about its
 * tokens.
 */


#include <stdlib.h>

#include "engine/tokenizer/tokenizer.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static const char  fuzz_text[] =
    "It's 12345 o'clock,\n\n   said <mask> the \xe4\xb8\xad\xe6\x96\x87 "
    "\xf0\x9f\x98\x80\xcc\x81 caf\xc3\xa9 <|a|> \xff\xe4\xb8 "
    "aaaaaaaaaaaaaaaa         \r\n\t.getValue()";


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                    rc;
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

    for (i = 0; i < out.n; i++) {
        s = dsa_token_bytes(t, out.ids[i]);

        if (s.len == 0 || out.ids[i] >= dsa_tokenizer_size(t)) {
            abort();
        }

        if (dsa_token_is_special(t, out.ids[i])
            && dsa_tokenizer_special(t, s) != (int64_t) out.ids[i])
        {
            abort();
        }
    }

    free(out.ids);
    dsa_tokenizer_work_destroy(w);
    dsa_tokenizer_close(t);

    return 0;
}
