
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A pattern, from a client, against itself: a text is accepted either by its
 * automaton or by the complement.  The text is behind the first byte FF.
 */


#include <stdlib.h>

#include "base/utf8.h"
#include "grammar/regex.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int             accepts;
    uint32_t        work;
    dsa_err_t       err;
    dsa_dfa_t      *dfa;
    dsa_str_t       pattern, text;
    const uint8_t  *split;

    split = memchr(data, 0xff, size);
    pattern = dsa_str(data, split != NULL ? (size_t) (split - data) : size);
    text = split != NULL
           ? dsa_str(split + 1, size - pattern.len - 1) : dsa_str("", 0);

    /* they come out of JSON, whose strings are UTF-8 */

    if (dsa_utf8_prefix((const uint8_t *) pattern.data, pattern.len)
        != pattern.len
        || dsa_utf8_prefix((const uint8_t *) text.data, text.len) != text.len)
    {
        return 0;
    }

    err.text[0] = '\0';
    work = DSA_REGEX_WORK;
    dfa = dsa_regex(pattern, &work, &err);

    if (dfa == NULL) {
        if (err.text[0] == '\0') {
            abort();
        }

        return 0;
    }

    accepts = dsa_dfa_accepts(dfa, text);
    dfa = dsa_dfa_complement(dfa);

    if (dfa != NULL && dsa_dfa_accepts(dfa, text) == accepts) {
        abort();
    }

    dsa_dfa_free(dfa);

    return 0;
}
