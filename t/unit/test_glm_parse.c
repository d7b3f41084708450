
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/glm/parse.c and context/types.c: answers of t/data/encoding-glm
 * parsed back, calls that do not keep to the format, and the types of values,
 * all of them cut at every byte.
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
#include "context/glm/glm.h"
#include "context/parse.h"
#include "t/unit/glm.h"
#include "t/unit/pieces.h"


#define FAMILY    &dsa_glm_5_2
#define ALL       ((1u << DSA_GLM_TOKENS) - 1)

#define CALL(x)   "<tool_call>" x "</tool_call>"
#define ARG(k, v) "<arg_key>" k "</arg_key><arg_value>" v "</arg_value>"


/* Adds what the parser must deliver for a message of the history. */

static void
expect(dsa_buf_t *b, const dsa_message_t *m, int thinking)
{
    uint32_t   k;
    dsa_str_t  content;

    if (thinking) {
        dsa_buf_printf(b, "R(%.*s)", (int) m->reasoning.len,
                       m->reasoning.data);
    }

    content = dsa_glm_strip(m->content);

    if (content.len != 0) {
        dsa_buf_printf(b, "C(%.*s)", (int) content.len, content.data);
    }

    for (k = 0; k < m->n_calls; k++) {
        dsa_buf_printf(b, "N(%.*s)A(", (int) m->calls[k].name.len,
                       m->calls[k].name.data);
        assert_int_equal(dsa_json_dump(b, m->calls[k].arguments), DSA_OK);
        dsa_buf_addz(b, ")");
    }

    dsa_buf_add(b, "", 1);
}


/*
 * The next answer of a prompt: the text behind the beginning of it, up to that
 * of the next message.  *text is behind it.
 */

static dsa_str_t
next_answer(const char **text, int *thinking)
{
    size_t       i, n;
    dsa_str_t    answer;
    const char  *begin, *end;

    static const char *const  roles[] = {
        "<|assistant|>", "<|user|>", "<|observation|>", "<|system|>"
    };
    static const char *const  begins[] = {
        "<think></think>", "</think>", "<think>"
    };

    begin = strstr(*text, roles[0]);
    assert_non_null(begin);
    begin += strlen(roles[0]);

    for (i = 0; i < 3; i++) {
        n = strlen(begins[i]);

        if (strncmp(begin, begins[i], n) == 0) {
            break;
        }
    }

    assert_in_range(i, 0, 2);
    begin += n;
    *thinking = i == 2;

    answer = dsa_str(begin, strlen(begin));

    for (i = 0; i < 4; i++) {
        end = strstr(begin, roles[i]);

        if (end != NULL && (size_t) (end - begin) < answer.len) {
            answer.len = (size_t) (end - begin);
        }
    }

    *text = begin + answer.len;

    return answer;
}


/* Each answer of each example, with reasoning if the prompt has it. */

static void
test_examples(void **state)
{
    int             thinking;
    char           *answer;
    size_t          i;
    uint32_t        k, n[2];
    glob_t          found;
    dsa_buf_t       want;
    glm_chat_t      c;
    const char     *text;
    dsa_types_t    *types;
    dsa_message_t  *m;

    memset(n, 0, sizeof(n));

    assert_int_equal(glob("t/data/encoding-glm/*.json", 0, NULL, &found), 0);

    for (i = 0; i < found.gl_pathc; i++) {

        /* their messages are not those that the prompts have */

        if (strstr(found.gl_pathv[i], "21-parts") != NULL
            || strstr(found.gl_pathv[i], "think-in-content") != NULL)
        {
            continue;
        }

        glm_chat_file(&c, found.gl_pathv[i]);
        text = glm_encode(&c);

        types = dsa_types_create(c.chat.tools);

        for (k = 0; k < c.chat.n_messages; k++) {
            m = &c.chat.messages[k];

            if (m->role != DSA_ROLE_ASSISTANT) {
                continue;
            }

            answer = dsa_arena_dup(c.arena, next_answer(&text, &thinking));
            assert_non_null(answer);

            memset(&want, 0, sizeof(dsa_buf_t));
            expect(&want, m, thinking);

            check(FAMILY, thinking ? THINK : 0, ALL, types, answer, want.data);
            check(FAMILY, thinking ? THINK : 0, 0, types, answer, want.data);

            dsa_buf_free(&want);
            n[thinking]++;
        }

        dsa_types_destroy(types);
        glm_chat_free(&c);
    }

    assert_in_range(n[0], 8, 100);
    assert_in_range(n[1], 8, 100);
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
        { THINK, "a < b</think>[1] <c>", "R(a < b)C([1] <c>)" },
        { 0, "c</think>d", "C(cd)" },
        { THINK, "r</think>c</think>d", "R(r)C(cd)" },
        { THINK, "<think>r</think>c<think>", "R(r)C(c)" },
        { THINK, "r</think>c<|user|>", "R(r)C(c)" },
        { THINK, SPELL "</think>r</think>" SPELL "<tool_call>",
          "R(</think>r)C(<tool_call>)" },

        /* calls */

        { 0, CALL("f"), "N(f)A({})" },
        { 0, "c" CALL("f" ARG("a", "1") ARG("b", "x")),
          "C(c)N(f)A({\"a\": 1, \"b\": \"x\"})" },
        { 0, CALL("f") CALL("g"), "N(f)A({})N(g)A({})" },
        { 0, CALL(" f\n<arg_key> a </arg_key>\n<arg_value>1</arg_value>\n"),
          "N(f)A({\"a\": 1})" },
        { 0, CALL("\nf\n"), "N(f)A({})" },
        { 0, CALL("f") "\n" CALL("g") " behind", "N(f)A({})N(g)A({})" },
        { 0, CALL("f\n{\"a\": 1}"), "N(f)A({\"a\": 1})" },

        /* a key twice: readers of JSON take the last one */

        { 0, CALL("f" ARG("a", "1") ARG("a", "2")),
          "N(f)A({\"a\": 1, \"a\": 2})" },

        /* the end of a value within a value */

        { 0, CALL("f" ARG("a", "x</arg_value>y")),
          "N(f)A({\"a\": \"x</arg_value>y\"})" },
        { 0, CALL("f" ARG("a", "x</arg_value> \n</arg_value>")),
          "N(f)A({\"a\": \"x</arg_value> \\n</arg_value>\"})" },
        { 0, CALL("f" ARG("a", "x</arg_value>"
                          "                           y")),
          "N(f)A({\"a\": \"x</arg_value>                           y\"})" },
        { 0, CALL("f" ARG("a", "<tool_call></tool_call></think><arg_key>")),
          "N(f)A({\"a\": \"<tool_call></tool_call></think><arg_key>\"})" },
        { 0, CALL("f" ARG("a", SPELL "</arg_value>" SPELL "</tool_call>")),
          "N(f)A({\"a\": \"</arg_value></tool_call>\"})" },
        { 0, CALL("f" ARG("a", "x") "  \n" ARG("b", "y") "\t"),
          "N(f)A({\"a\": \"x\", \"b\": \"y\"})" },

        /* within the reasoning */

        { THINK, "r" CALL("f") "</think>", "R(r)N(f)A({})" },

        /* parts that are missing */

        { 0, "<tool_call>f<arg_key>a<arg_value>1</arg_value></tool_call>",
          "N(f)A({\"a\": 1})" },
        { 0, CALL("f<arg_value>1</arg_value>"), "N(f)A({})" },
        { 0, CALL("f<arg_key>a</arg_key>"), "N(f)A({})" },
        { 0, CALL("f<arg_key>a</arg_key>" ARG("b", "1")),
          "N(f)A({\"b\": 1})" },
        { 0, CALL("f<arg_key></arg_key><arg_value>1</arg_value>"),
          "N(f)A({})" },
        { 0, CALL("f</arg_key></arg_value>" ARG("b", "1")),
          "N(f)A({\"b\": 1})" },
        { 0, "<tool_call>f" ARG("a", "1") "<tool_call>g</tool_call>",
          "N(f)A({\"a\": \"1</arg_value><tool_call>g</tool_call>\"})" },
        { 0, "<tool_call>f\n<tool_call>g</tool_call>", "N(f)A({})N(g)A({})" },
        { 0, CALL("") "x", "" },
        { 0, "</tool_call>c</arg_value>", "C(c)" },
        { 0, "<tool_call>f" ARG("a", "1"), "N(f)A({\"a\": 1})" },
        { 0, "<tool_call>f<arg_key>a</arg_key><arg_value>x",
          "N(f)A({\"a\": \"x\"})" },

        /* outputs that were cut off */

        { CUT, "<tool_call>f" ARG("a", "x"), "N(f)A({\"a\": \"x\")" },
        { CUT, "<tool_call>f<arg_key>a</arg_key><arg_value>[1, ",
          "N(f)A({\"a\": )" },
        { CUT, "<tool_call>fu", "" },
        { CUT, "<tool_call>f<arg_key>a", "N(f)" },

        /* calls are off */

        { NOTOOLS, "a" CALL("f" ARG("a", "</think>")) "b", "C(ab)" },
        { THINK|NOTOOLS, "a" CALL("f") "b</think>c", "R(ab)C(c)" },
        { THINK|NOTOOLS, "a<tool_call>f</think>c", "R(a)C(c)" }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        check(FAMILY, lines[i].flags, ALL, NULL, lines[i].in, lines[i].out);

        if (strchr(lines[i].in, SPELL[0]) == NULL) {
            check(FAMILY, lines[i].flags, 0, NULL, lines[i].in, lines[i].out);
        }
    }
}


/* The type of a value is that of the schema, not that of the text. */

static void
test_types(void **state)
{
    char          in[256], out[256];
    size_t        i;
    dsa_err_t     err;
    dsa_arena_t  *arena;
    dsa_types_t  *types;

    static const char  tools[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
        "\"type\":\"object\",\"$defs\":{\"d\":{\"type\":\"string\"},"
        "\"n\":{\"$ref\":\"#/$defs/n\"}},\"properties\":{"
        "\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},"
        "\"b\":{\"type\":\"boolean\"},\"o\":{\"type\":\"object\"},"
        "\"a\":{\"type\":\"array\"},\"r\":{\"$ref\":\"#/$defs/d\"},"
        "\"n\":{\"$ref\":\"#/$defs/n\"},\"e\":{\"enum\":[\"1\",\"2\"]},"
        "\"m\":{\"enum\":[\"1\",2]},\"c\":{\"const\":\"1\"},"
        "\"sn\":{\"type\":[\"string\",\"null\"]},"
        "\"u\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\"}]},"
        "\"l\":{\"allOf\":[{\"type\":[\"string\",\"null\"]},"
        "{\"type\":\"string\"}]},\"x\":{},\"t\":true},"
        "\"additionalProperties\":{\"type\":\"string\"}}}},"
        "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]";

    static const struct {
        const char  *tool;
        const char  *key;
        const char  *value;
        const char  *json;
    } lines[] = {
        { "f", "s", "12", "\"12\"" },
        { "f", "s", " 12 \n", "\" 12 \\n\"" },
        { "f", "s", "", "\"\"" },
        { "f", "s", "{\"a\": 1}", "\"{\\\"a\\\": 1}\"" },
        { "f", "s", "\"q\"", "\"\\\"q\\\"\"" },
        { "f", "i", "12", "12" },
        { "f", "i", "twelve", "\"twelve\"" },
        { "f", "i", "", "\"\"" },
        { "f", "b", "true", "true" },
        { "f", "b", "True", "\"True\"" },
        { "f", "o", "{\"a\": [1, {}]}", "{\"a\": [1, {}]}" },
        { "f", "a", "[1, \"x\"]", "[1, \"x\"]" },
        { "f", "r", "12", "\"12\"" },
        { "f", "n", "12", "12" },
        { "f", "e", "1", "\"1\"" },
        { "f", "m", "2", "2" },
        { "f", "c", "1", "\"1\"" },
        { "f", "sn", "null", "null" },
        { "f", "sn", "12", "\"12\"" },
        { "f", "sn", "nul", "\"nul\"" },
        { "f", "u", "[1]", "[1]" },
        { "f", "u", "[draft] x", "\"[draft] x\"" },
        { "f", "u", "{}", "\"{}\"" },
        { "f", "l", "null", "\"null\"" },
        { "f", "x", "12", "12" },
        { "f", "x", "1.5e3", "1.5e3" },
        { "f", "x", "abc", "\"abc\"" },
        { "f", "x", "{no json}", "\"{no json}\"" },
        { "f", "x", "{\"a\": 1}", "{\"a\": 1}" },
        { "f", "t", "[]", "[]" },
        { "f", "other", "12", "\"12\"" },
        { "g", "other", "12", "12" },
        { "h", "s", "12", "12" }
    };

    arena = dsa_arena_create(1024 * 1024);
    types = dsa_types_create(dsa_json_parse(arena, tools, sizeof(tools) - 1,
                                            64, &err));
    assert_non_null(types);

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        (void) snprintf(in, sizeof(in), "<tool_call>%s<arg_key>%s</arg_key>"
                        "<arg_value>%s</arg_value></tool_call>",
                        lines[i].tool, lines[i].key, lines[i].value);
        (void) snprintf(out, sizeof(out), "N(%s)A({\"%s\": %s})",
                        lines[i].tool, lines[i].key, lines[i].json);

        check(FAMILY, 0, ALL, types, in, out);
    }

    dsa_types_destroy(types);
    dsa_arena_destroy(arena);
}


/* A value that may be a string, and is longer than what is checked. */

static void
test_long(void **state)
{
    size_t      i;
    dsa_buf_t   in, out;
    result_t    r;

    static const char *const  begins[] = { "[\"", "[no" };
    static const char *const  ends[] = { "\"]", "]" };
    static const char *const  quotes[] = { "", "\"" };

    for (i = 0; i < 2; i++) {
        memset(&in, 0, sizeof(dsa_buf_t));
        memset(&out, 0, sizeof(dsa_buf_t));

        dsa_buf_printf(&in, "<tool_call>f<arg_key>a</arg_key><arg_value>%s"
                       "%0*d%s</arg_value></tool_call>", begins[i],
                       2 * DSA_PARSE_SCALAR, 0, ends[i]);
        dsa_buf_printf(&out, "N(f)A({\"a\": %s%s%0*d%s%s})", quotes[i],
                       begins[i], 2 * DSA_PARSE_SCALAR, 0, ends[i],
                       quotes[i]);
        dsa_buf_add(&out, "", 1);

        parse(&r, FAMILY, 0, ALL, NULL, in.data, in.len, 7, 7);
        assert_string_equal(r.out.data, out.data);

        dsa_buf_free(&r.out);
        dsa_buf_free(&in);
        dsa_buf_free(&out);
    }
}


/* Names up to their limit, and beyond it. */

static void
test_names(void **state)
{
    size_t    i, n;
    char      in[2048], out[2048], name[512];
    result_t  r;

    for (i = 0; i <= 1; i++) {
        n = DSA_PARSE_NAME + i;
        memset(name, 'n', n);
        name[n] = '\0';

        (void) snprintf(in, sizeof(in), "<tool_call>%s</tool_call><tool_call>"
                        "g<arg_key>%s</arg_key><arg_value>1</arg_value>"
                        "</tool_call>", name, name);

        if (i == 0) {
            (void) snprintf(out, sizeof(out),
                            "N(%s)A({})N(g)A({\"%s\": 1})", name, name);

        } else {
            (void) snprintf(out, sizeof(out), "N(g)A({})");
        }

        parse(&r, FAMILY, 0, ALL, NULL, in, strlen(in), 5, 5);
        assert_string_equal(r.out.data, out);
        dsa_buf_free(&r.out);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_names)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
