
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/deepseek/v3_parse.c: answers of t/data/encoding-v3.1 parsed back, and
 * calls that do not keep to the format, all of them cut at every byte.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <glob.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "context/deepseek/v3.h"
#include "context/parse.h"
#include "t/unit/glm.h"
#include "t/unit/pieces.h"


#define FAMILY      &dsa_deepseek_v3_1
#define ALL         ((1u << DSA_V3_1_TOKENS) - 1)

#define BEGIN       DSA_V3_1_CALLS
#define END         DSA_V3_1_CALLS_END
#define SEP         DSA_V3_1_SEPARATOR
#define CALL(n, a)  DSA_V3_1_CALL n SEP a DSA_V3_1_CALL_END
#define EOS         DSA_DEEPSEEK_EOS


/* Adds what the parser must deliver for a message of the history. */

static void
expect(dsa_buf_t *b, const dsa_message_t *m)
{
    uint32_t                k;
    const dsa_tool_call_t  *call;

    if (m->content.len != 0) {
        dsa_buf_printf(b, "C(%.*s)", (int) m->content.len, m->content.data);
    }

    for (k = 0; k < m->n_calls; k++) {
        call = &m->calls[k];

        dsa_buf_printf(b, "N(%.*s)A(", (int) call->name.len, call->name.data);

        if (call->text.len != 0) {
            dsa_buf_add(b, call->text.data, call->text.len);

        } else {
            assert_int_equal(dsa_json_dump(b, call->arguments), DSA_OK);
        }

        dsa_buf_addz(b, ")");
    }

    dsa_buf_add(b, "", 1);
}


/*
 * Each answer of each example: what the prompt has behind the prompt of the
 * messages in front of it.  Left out are answers of which the prompt does not
 * have all, that are not complete, or that spell control tokens.
 */

static void
test_examples(void **state)
{
    size_t          i;
    uint32_t        k, n;
    glob_t          found;
    dsa_buf_t       want;
    glm_chat_t      c;
    const char     *answer, *before;
    dsa_message_t  *m;

    n = 0;

    assert_int_equal(glob("t/data/encoding-v3.1/*.json", 0, NULL, &found), 0);

    for (i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "think-") != NULL
            || strstr(found.gl_pathv[i], "spelled") != NULL
            || strstr(found.gl_pathv[i], "cut-arguments") != NULL
            || strstr(found.gl_pathv[i], "prefix") != NULL)
        {
            continue;
        }

        glm_chat_file(&c, found.gl_pathv[i]);

        /* as published, nothing follows an answer */

        c.chat.hosted = 0;
        c.chat.thinking = 0;

        for (k = c.chat.n_messages; k != 0; k--) {
            m = &c.chat.messages[k - 1];

            if (m->role != DSA_ROLE_ASSISTANT) {
                continue;
            }

            c.chat.n_messages = k;
            answer = glm_encode(&c);

            c.chat.n_messages = k - 1;
            before = glm_encode(&c);

            assert_int_equal(strncmp(answer, before, strlen(before)), 0);
            answer += strlen(before);

            memset(&want, 0, sizeof(dsa_buf_t));
            expect(&want, m);

            check(FAMILY, 0, ALL, NULL, answer, want.data);
            check(FAMILY, 0, 0, NULL, answer, want.data);

            dsa_buf_free(&want);
            n++;
        }

        glm_chat_free(&c);
    }

    assert_in_range(n, 15, 99);
    globfree(&found);
}


/* Calls as models write them, and as they should not. */

static void
test_calls(void **state)
{
    size_t  i;

    static const struct {
        int          flags;
        const char  *in;
        const char  *out;
    } lines[] = {

        /* reasoning and content */

        { THINK, "r</think>c", "R(r)C(c)" },
        { THINK, "r", "R(r)" },
        { THINK, "a < b</think>[1] <c> ｜x", "R(a < b)C([1] <c> ｜x)" },
        { 0, "c</think>d" EOS, "C(cd)" },
        { THINK, "r</think>c</think>d", "R(r)C(cd)" },
        { THINK, "<think>r</think>c<think>", "R(r)C(c)" },
        { THINK, "r</think>c<｜User｜>", "R(r)C(c)" },
        { THINK, SPELL "</think>r</think>" SPELL BEGIN,
          "R(</think>r)C(" BEGIN ")" },
        { 0, "a" END "b" SEP "c<｜tool▁output▁end｜>", "C(abc)" },
        { 0, "a<｜tool▁outputs▁begin｜>b", "C(ab)" },

        /* calls */

        { 0, BEGIN CALL("f", "{}") END EOS, "N(f)A({})" },
        { 0, "c" BEGIN CALL("f", "{\"a\": 1}") CALL("g", "{\"b\":2}") END,
          "C(c)N(f)A({\"a\": 1})N(g)A({\"b\":2})" },
        { THINK, "r</think>c\n\n" BEGIN CALL("f", "{}") END,
          "R(r)C(c\n\n)N(f)A({})" },
        { 0, BEGIN CALL(" f\t", "\n {\"a\": 1} ") END,
          "N(f)A({\"a\": 1} )" },
        { 0, BEGIN "\n" CALL("f", "") ",\n" CALL("g", " ") END " behind",
          "N(f)A({})N(g)A({})" },
        { 0, BEGIN CALL("f", "{}") END "x" BEGIN CALL("g", "{}") END,
          "N(f)A({})" },

        /* strings: what they have is not a marker */

        { 0, BEGIN CALL("f", "{\"a\": \"" DSA_V3_1_CALL_END END "\"}") END,
          "N(f)A({\"a\": \"" DSA_V3_1_CALL_END END "\"})" },
        { 0, BEGIN CALL("f", "{\"a\": \"\\\"" END "\\\\\", \"b\": 1}") END,
          "N(f)A({\"a\": \"\\\"" END "\\\\\", \"b\": 1})" },
        { 0, BEGIN CALL("f", "{\"" SEP "\": \"</think><\"}") END,
          "N(f)A({\"" SEP "\": \"</think><\"})" },
        { 0, BEGIN CALL("f", "{\"é\": \"日本\\u00e9\"}") END,
          "N(f)A({\"é\": \"日本\\u00e9\"})" },

        /* arguments that are no JSON object */

        { 0, BEGIN CALL("f", "x < y") END, "N(f)A(x < y)" },
        { 0, BEGIN CALL("f", "[1, 2]") CALL("g", "\"s\"") END,
          "N(f)A([1, 2])N(g)A(\"s\")" },
        { 0, BEGIN CALL("f", "{\"a\": 1") CALL("g", "{}") END,
          "N(f)A({\"a\": 1)N(g)A({})" },
        { 0, BEGIN CALL("f", "{\"a\": \"x") CALL("g", "{}") END,
          "N(f)A({\"a\": \"x" DSA_V3_1_CALL_END CALL("g", "{}") END ")" },
        { 0, BEGIN CALL("f", "{}" SEP "{}") END, "N(f)A({}{})" },
        { 0, BEGIN CALL("f", "{" SPELL END "}") END, "N(f)A({" END "})" },

        /* within the reasoning */

        { THINK, "r" BEGIN CALL("f", "{}") END "</think>", "R(r)N(f)A({})" },
        { THINK, "r" CALL("f", "{}") "</think>c", "R(r)N(f)A({})" },

        /* parts that are missing */

        { 0, CALL("f", "{}"), "N(f)A({})" },
        { 0, "c" CALL("f", "{}") CALL("g", "{}") END,
          "C(c)N(f)A({})N(g)A({})" },
        { 0, BEGIN CALL("f", "{}"), "N(f)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f" SEP "{}" END "x", "N(f)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f" SEP "{}" CALL("g", "{}") END,
          "N(f)A({})N(g)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f" DSA_V3_1_CALL_END END, "N(f)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f" END, "N(f)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f" CALL("g", "{}") END,
          "N(f)A({})N(g)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f\n{\"a\": 1}" DSA_V3_1_CALL_END END,
          "N(f)A({\"a\": 1})" },
        { 0, BEGIN DSA_V3_1_CALL "f {\"a\": 1}" DSA_V3_1_CALL_END END,
          "N(f)A({\"a\": 1})" },
        { 0, BEGIN CALL("", "{\"a\": 1}") CALL("g", "{}") END, "N(g)A({})" },
        { 0, BEGIN CALL(" \n", "{}") DSA_V3_1_CALL "{}" DSA_V3_1_CALL_END END,
          "" },
        { 0, BEGIN END "c", "" },
        { 0, BEGIN BEGIN CALL("f", "{}") END, "N(f)A({})" },
        { 0, BEGIN SEP DSA_V3_1_CALL_END CALL("f", "{}") END, "N(f)A({})" },
        { 0, BEGIN DSA_V3_1_CALL "f" SEP "{\"a\": 1}" EOS,
          "N(f)A({\"a\": 1})" },

        /* outputs that were cut off */

        { CUT, BEGIN DSA_V3_1_CALL "f" SEP "{\"a\": \"x",
          "N(f)A({\"a\": \"x)" },
        { CUT, BEGIN DSA_V3_1_CALL "f" SEP "{\"a\": 1, ",
          "N(f)A({\"a\": 1, )" },
        { CUT, BEGIN DSA_V3_1_CALL "f" SEP "{\"a\": \"<",
          "N(f)A({\"a\": \"<)" },
        { CUT, BEGIN DSA_V3_1_CALL "f" SEP, "N(f)" },
        { CUT, BEGIN DSA_V3_1_CALL "fu", "" },
        { 0, BEGIN DSA_V3_1_CALL "fu", "" },
        { CUT, BEGIN, "" },
        { CUT, "a <", "C(a <)" },

        /* calls are off */

        { NOTOOLS, "a" BEGIN CALL("f", "{\"a\": \"</think>\"}") END "b",
          "C(ab)" },
        { NOTOOLS, "a" CALL("f", "{}") "b" CALL("g", "{}") "c", "C(abc)" },
        { NOTOOLS, "a" BEGIN "x" CALL("f", "{}") "y", "C(a)" },
        { THINK|NOTOOLS, "a" BEGIN CALL("f", "{}") END "b</think>c",
          "R(ab)C(c)" },
        { THINK|NOTOOLS, "a" BEGIN DSA_V3_1_CALL "f</think>c", "R(a)C(c)" }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        check(FAMILY, lines[i].flags, ALL, NULL, lines[i].in, lines[i].out);

        if (strchr(lines[i].in, SPELL[0]) == NULL) {
            check(FAMILY, lines[i].flags, 0, NULL, lines[i].in, lines[i].out);
        }
    }
}


/* The beginning of a marker, where the vocabulary has no control tokens. */

static void
test_cut(void **state)
{
    size_t      i;
    char        in[256];
    result_t    r;

    static const char  whole[] = "a" BEGIN;

    for (i = 1; i < sizeof(whole); i++) {
        (void) snprintf(in, sizeof(in), "%.*s", (int) i, whole);
        parse(&r, FAMILY, CUT, 0, NULL, in, i, i, 1);

        /* a bar is text, a bar and what only a marker has is not */

        if (i < sizeof("a" DSA_V3_1_TOOL) - 1) {
            assert_int_equal(strncmp(r.out.data, "C(", 2), 0);
            assert_int_equal(strncmp(r.out.data + 2, in, i), 0);

        } else {
            assert_string_equal(r.out.data, "C(a)");
        }

        dsa_buf_free(&r.out);
    }

    /* in arguments, outside of a string, it can only be that */

    check(FAMILY, CUT, 0, NULL, BEGIN DSA_V3_1_CALL "f" SEP "{\"a\": 1<",
          "N(f)A({\"a\": 1)");
    check(FAMILY, CUT, ALL, NULL, BEGIN DSA_V3_1_CALL "f" SEP "{\"a\": 1<",
          "N(f)A({\"a\": 1<)");
}


/* Names up to their limit, and beyond it; more calls than are delivered. */

static void
test_limits(void **state)
{
    size_t      i, n;
    char        in[2048], out[2048], name[512];
    uint32_t    calls;
    result_t    r;
    dsa_buf_t   many;

    for (i = 0; i <= 1; i++) {
        n = DSA_PARSE_NAME + i;
        memset(name, 'n', n);
        name[n] = '\0';

        (void) snprintf(in, sizeof(in), BEGIN CALL("%s", "{\"a\": 1}")
                        CALL("g", "{}") END, name);
        (void) snprintf(out, sizeof(out), i == 0
                        ? "N(%s)A({\"a\": 1})N(g)A({})" : "N(g)A({})", name);

        parse(&r, FAMILY, 0, ALL, NULL, in, strlen(in), 5, 5);
        assert_string_equal(r.out.data, out);
        dsa_buf_free(&r.out);
    }

    memset(&many, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&many, BEGIN);

    for (i = 0; i < DSA_PARSE_CALLS + 2; i++) {
        dsa_buf_addz(&many, CALL("f", "{}"));
    }

    dsa_buf_addz(&many, END);
    assert_false(many.failed);

    parse(&r, FAMILY, 0, ALL, NULL, many.data, many.len, 7, 7);

    for (calls = 0, i = 0; i + 1 < r.out.len; i++) {
        calls += r.out.data[i] == 'N';
    }

    assert_int_equal(calls, DSA_PARSE_CALLS);

    dsa_buf_free(&r.out);
    dsa_buf_free(&many);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_limits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
