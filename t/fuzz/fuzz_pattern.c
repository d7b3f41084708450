
/*
 * Copyright (C) The nginx-dsa authors
 *
 * A pattern, from a client, and a text, which is behind the first byte FF.  The
 * text is accepted by the automaton of the pattern if PCRE2 finds the pattern
 * in it, and by the complement of the automaton otherwise.
 */


#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/utf8.h"
#include "grammar/regex.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fuzz_pcre2(dsa_str_t pattern, dsa_str_t text);
static int fuzz_has(dsa_str_t s, const char *what);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int             accepts, expected;
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
    expected = fuzz_pcre2(pattern, text);

    if (expected != -1 && accepts != expected) {
        abort();
    }

    dfa = dsa_dfa_complement(dfa);

    if (dfa != NULL && dsa_dfa_accepts(dfa, text) == accepts) {
        abort();
    }

    dsa_dfa_free(dfa);

    return 0;
}


/*
 * Whether PCRE2 finds the pattern in the text: 1, 0, or -1, where it is not
 * comparable with ECMA-262: its class \v and those like [:alpha:], white space
 * that is not ASCII, and patterns that PCRE2 rejects or that take too long.
 */

static int
fuzz_pcre2(dsa_str_t pattern, dsa_str_t text)
{
    int                      rc, error;
    size_t                   i;
    uint32_t                 options;
    PCRE2_SIZE               offset;
    pcre2_code              *code;
    pcre2_match_data        *match;
    pcre2_match_context     *limits;
    pcre2_compile_context   *conf;

    static const char *const  differ[] = { "\\v", "[:", "[.", "[=" };
    static const char *const  spaces[] = {
        "\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80", "\xe2\x81",
        "\xe3\x80", "\xef\xbb\xbf"
    };

    for (i = 0; i < sizeof(differ) / sizeof(differ[0]); i++) {
        if (fuzz_has(pattern, differ[i])) {
            return -1;
        }
    }

    for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (fuzz_has(text, spaces[i])) {
            return -1;
        }
    }

    conf = pcre2_compile_context_create(NULL);
    limits = pcre2_match_context_create(NULL);

    if (conf == NULL || limits == NULL) {
        abort();
    }

    (void) pcre2_set_newline(conf, PCRE2_NEWLINE_ANYCRLF);
    (void) pcre2_set_compile_extra_options(conf, PCRE2_EXTRA_ALT_BSUX);
    (void) pcre2_set_match_limit(limits, 100000);

    options = PCRE2_UTF|PCRE2_ALT_BSUX|PCRE2_ALLOW_EMPTY_CLASS
              |PCRE2_DOLLAR_ENDONLY|PCRE2_NEVER_UCP;
    code = pcre2_compile((PCRE2_SPTR) pattern.data, pattern.len, options,
                         &error, &offset, conf);
    rc = PCRE2_ERROR_MATCHLIMIT;

    if (code != NULL) {
        match = pcre2_match_data_create_from_pattern(code, NULL);

        if (match == NULL) {
            abort();
        }

        rc = pcre2_match(code, (PCRE2_SPTR) text.data, text.len, 0, 0, match,
                         limits);
        pcre2_match_data_free(match);
        pcre2_code_free(code);
    }

    pcre2_match_context_free(limits);
    pcre2_compile_context_free(conf);

    return rc >= 0 ? 1 : rc == PCRE2_ERROR_NOMATCH ? 0 : -1;
}


static int
fuzz_has(dsa_str_t s, const char *what)
{
    return memmem(s.data, s.len, what, strlen(what)) != NULL;
}
