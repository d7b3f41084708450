
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Any answer of the server is accepted as history, for any output of the model:
 * see history.h.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "t/unit/history.h"


#define D        DSA_DEEPSEEK_DSML
#define EOS      DSA_DEEPSEEK_EOS

#define CALLS    "\n\n<" D "function_calls>\n"
#define END      "</" D "function_calls>"
#define F        "<" D "invoke name=\"f\">\n"
#define FEND     "</" D "invoke>\n"
#define STR(k)   "<" D "parameter name=\"" k "\" string=\"true\">"
#define VAL(k)   "<" D "parameter name=\"" k "\" string=\"false\">"
#define PEND     "</" D "parameter>\n"

/* A control token that was sampled as such: see history.h. */
#define T_EOS        "\xff" "1"
#define T_THINK_END  "\xff" "5"
#define T_D          "\xff" "6"

#define PROMPT                                                               \
    DSA_DEEPSEEK_BOS DSA_DEEPSEEK_USER "q" DSA_DEEPSEEK_ASSISTANT "</think>"
#define NEXT     DSA_DEEPSEEK_USER "q" DSA_DEEPSEEK_ASSISTANT "</think>"


static uint32_t  seed = 1;


static uint32_t
pick(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;

    return (seed >> 8) % n;
}


static void
must_hold(const uint8_t *text, size_t len, int flags)
{
    const char  *why;

    why = history_check(text, len, flags | HISTORY_WHOLE);

    if (why != NULL) {
        fail_msg("flags %d, \"%.*s\": %s", flags, (int) len, text, why);
    }
}


static void
test_random(void **state)
{
    char      text[4096];
    size_t    len;
    uint32_t  i, k, n;

    static const char *const  words[] = {
        "\n", "\n\n", "<", "</", ">", "\"", D, "<" D, "</" D, "</think>",
        "<think>", EOS, DSA_DEEPSEEK_BOS, DSA_DEEPSEEK_USER, CALLS, CALLS, END,
        F, F,
        F, FEND, FEND, STR("a"), STR("a"), STR("b\"c\\"), STR(""), VAL("b"),
        VAL("d"), VAL("e"), PEND, PEND, PEND, "invoke", "parameter",
        "function_calls", "<" D "invoke name=\"", "<" D "invoke name=\"x",
        " string=\"true\">", "{", "}", "[1]", "[", "]", ",", ":", "12",
        "1e999", "-0", "true", "nul", "text", "{\"a\": 1}", "{\"a\": \"b",
        "{\"a\": 1, \"a\": 2}", "\"\\ud800\"", "\\u12", "\xe4", "\xb8\xad",
        "\xf0\x9f\x98\x80", "\\", "\x01", "\x7f", "\xef\xbd\x9c", " ", "\t",
        T_EOS, T_THINK_END, T_D, "<" T_D "invoke name=\"f\">",
        "<" T_D "parameter name=\"a\" string=\"true\">",
        "</" T_D "parameter>", "</" T_D "invoke>", "<" T_D "function_calls>"
    };

    for (i = 0; i < 20000; i++) {
        len = 0;
        n = 1 + pick(24);

        for (k = 0; k < n; k++) {
            if (pick(16) == 0) {
                text[len++] = (char) pick(256);
                continue;
            }

            len += (size_t) sprintf(text + len, "%s",
                              words[pick(sizeof(words) / sizeof(words[0]))]);
        }

        /* no cut within the two bytes of a control token */

        if (pick(4) == 0) {
            len = pick(len + 1);
            len -= len != 0 && text[len - 1] == '\xff';
        }

        must_hold((uint8_t *) text, len, i & HISTORY_FLAGS);
    }
}


static const char *const  samples[] = {
    "",
    "Hello",
    "</think>",
    "why</think>because",
    "why" CALLS F STR("a") "x" PEND FEND END EOS,
    "x" CALLS F STR("a") "Par\"\\\n\xe4\xb8\xad is" PEND VAL("n")
    "{\"x\": [1, 2.5, \"}\\\"\"], \"y\": {}}" PEND VAL("m") "-17" PEND FEND
    "<" D "invoke name=\"g\">\n\n" FEND END EOS,
    CALLS F VAL("a") "{\"x\": 1}}" PEND FEND END,
    CALLS F VAL("a") "[1, 2" PEND STR("b") "x" PEND FEND END,
    CALLS F VAL("a") "1e999" PEND VAL("a") "2" PEND FEND END,
    CALLS F VAL("a") "\"\\ud800\"" PEND STR("b") "x" PEND FEND END,
    CALLS F "{\"a\": {\"b\": 1}} and more\n" FEND END,
    CALLS F "{\"a\": \"b\"}" FEND "<" D "invoke name=\"\">" FEND
    "<" D "invoke name=\"a b\n\">\n\n" FEND END,
    "a</think>" D EOS T_THINK_END "b</think>" DSA_DEEPSEEK_USER T_EOS
};


/* Outputs that are cut at every byte, complete or not, in each mode. */

static void
test_cut_anywhere(void **state)
{
    int     flags;
    size_t  i, len;

    for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        for (len = 0; len <= strlen(samples[i]); len++) {
            for (flags = 0; flags <= HISTORY_FLAGS; flags++) {
                must_hold((const uint8_t *) samples[i], len, flags);
            }
        }
    }
}


/* Long outputs of brackets or calls exceed no limit. */

static void
test_large(void **state)
{
    uint32_t   i, k;
    dsa_buf_t  text;

    static const char *const  units[] = {
        "[", "{\"a\":", "[1],", "[", F FEND, STR("a") PEND, VAL("a") "1" PEND
    };

    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        memset(&text, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&text, i < 4 ? CALLS F VAL("a") "[" : CALLS F);

        for (k = 0; k < 30000; k++) {
            dsa_buf_addz(&text, units[i]);
        }

        dsa_buf_addz(&text, i == 2 ? "0]" PEND FEND END
                            : i == 3 ? "" : PEND FEND END);
        assert_false(text.failed);

        must_hold((uint8_t *) text.data, text.len,
                  HISTORY_TOOLS | HISTORY_COMPLETE);
        must_hold((uint8_t *) text.data, text.len, HISTORY_TOOLS);
        dsa_buf_free(&text);
    }
}


/* The prompt that continues after a sampled text, NUL-terminated. */

static char *
prompt_of(dsa_arena_t *arena, const char *text, int complete, int thinking,
    uint32_t vocabulary)
{
    char          *out, *p;
    uint32_t       i;
    history_t      h;
    dsa_buf_t      request;
    const char    *why;
    dsa_parse_t   *parser;
    dsa_prompt_t   prompt;

    memset(&h, 0, sizeof(history_t));
    memset(&request, 0, sizeof(dsa_buf_t));

    parser = dsa_parse_create(&dsa_deepseek, thinking, 1, vocabulary,
                              history_delta, &h);
    assert_non_null(parser);
    assert_int_equal(history_feed(parser, (const uint8_t *) text,
                                  strlen(text)),
                     DSA_OK);
    assert_int_equal(dsa_parse_end(parser, complete), DSA_OK);
    dsa_parse_destroy(parser);

    /* while calls go on, the reasoning of the answer is in the prompt */

    dsa_buf_printf(&request, "{\"model\":\"m\",\"thinking\":{\"type\":"
                   "\"%s\"},\"messages\":[" HISTORY_QUESTION ",",
                   thinking ? "enabled" : "disabled");
    history_message(&request, &h, thinking, 0);

    for (i = 0; thinking && i < h.n_calls; i++) {
        dsa_buf_printf(&request, ",{\"role\":\"tool\",\"content\":\"r\","
                       "\"tool_call_id\":\"call_%02u\"}", i);
    }

    dsa_buf_addz(&request, thinking ? "]}" : "," HISTORY_QUESTION "]}");
    assert_false(request.failed);

    why = history_prompt(arena, NULL, &request, &prompt);

    if (why != NULL) {
        fail_msg("%s: %s", text, why);
    }

    p = out = dsa_arena_alloc(arena, prompt.bytes + 1);
    assert_non_null(out);

    for (i = 0; i < prompt.n; i++) {
        p = (char *) mempcpy(p, prompt.segments[i].text.data,
                             prompt.segments[i].text.len);
    }

    *p = '\0';

    dsa_buf_free(&h.plain);
    dsa_buf_free(&h.content);
    dsa_buf_free(&h.reasoning);
    dsa_buf_free(&h.calls);
    dsa_buf_free(&request);

    return out;
}


static const struct {
    int          complete;
    const char  *in;
    const char  *out;       /* NULL: as in */
} rendered[] = {

    /* cut: complete parameters and the cut one are written and closed */

    { 0, CALLS "<" D "invoke name=\"f", "" },
    { 0, CALLS F, CALLS F "\n" FEND END },
    { 0, CALLS F STR("a") "Par", CALLS F STR("a") "Par" PEND FEND END },
    { 0, CALLS F STR("a") "x\"\\\n</" D "par",
      CALLS F STR("a") "x\"\\\n" PEND FEND END },
    { 0, CALLS F STR("a") "x" PEND VAL("b") "12",
      CALLS F STR("a") "x" PEND VAL("b") PEND FEND END },
    { 0, CALLS F VAL("b") "{\"x\": [1,2], \"y\": {",
      CALLS F VAL("b") "{\"x\": [1,2], \"y\": {" PEND FEND END },
    { 0, CALLS F STR("a") "x" PEND, CALLS F STR("a") "x" PEND FEND END },
    { 0, CALLS F STR("a") "x" PEND FEND F VAL("b") "\"", CALLS F STR("a") "x"
      PEND FEND F VAL("b") PEND FEND END },

    /* complete, but not JSON: written as it was sampled */

    { 1, CALLS F VAL("a") "1" PEND VAL("a") "2" PEND FEND END, NULL },
    { 1, CALLS F VAL("a") "1e999" PEND STR("b") "1" PEND FEND END, NULL },
    { 1, CALLS F VAL("a") "[1}" PEND STR("b") "\x01" PEND FEND END, NULL },
    { 1, CALLS F VAL("a") "\"\\ud800\"" PEND STR("b") "x" PEND FEND END,
      NULL },
    { 1, CALLS F "{\"a\": {\"b\": 1}} and more\n" FEND END, NULL },
    { 1, CALLS F VAL("a") "{\"x\": 1}}" PEND FEND END,
      CALLS F "{\"a\": {\"x\": 1}}}\n" FEND END }
};


static void
test_rendered(void **state)
{
    char         *out;
    size_t        i;
    dsa_buf_t     b;
    dsa_arena_t  *arena;

    for (i = 0; i < sizeof(rendered) / sizeof(rendered[0]); i++) {
        arena = dsa_arena_create(HISTORY_MEMORY);
        memset(&b, 0, sizeof(dsa_buf_t));

        dsa_buf_printf(&b, PROMPT "%s" EOS NEXT, rendered[i].out != NULL
                       ? rendered[i].out : rendered[i].in);
        dsa_buf_add(&b, "", 1);

        out = prompt_of(arena, rendered[i].in, rendered[i].complete, 0, 0);
        assert_string_equal(out, b.data);

        dsa_buf_free(&b);
        dsa_arena_destroy(arena);
    }
}


/*
 * Spelled names of control tokens are in the next prompt as text, in reasoning,
 * content, names and values.
 */

static void
test_spelled(void **state)
{
    char         *out;
    uint32_t      i, all;
    dsa_arena_t  *arena;

    static const char  sampled[] =
        "no </think> " D "<think>" T_THINK_END "b</think>" DSA_DEEPSEEK_USER
        EOS "\n\n<" T_D "function_calls>\n<" T_D "invoke name=\"f\">\n<" T_D
        "parameter name=\"" D "\" string=\"true\">" PEND END "</" T_D
        "parameter>\n</" T_D "invoke>\n</" T_D "function_calls>" T_EOS;

    static const char  encoded[] =
        "<think>no </think> " D "<think></think>b</think>" DSA_DEEPSEEK_USER
        EOS CALLS F STR(D) PEND END PEND FEND END EOS;

    all = (1u << DSA_DEEPSEEK_TOKENS) - 1;
    arena = dsa_arena_create(HISTORY_MEMORY);

    out = prompt_of(arena, sampled, 1, 1, all);
    assert_non_null(strstr(out, encoded));
    dsa_arena_destroy(arena);

    for (i = 0; i <= HISTORY_FLAGS; i++) {
        must_hold((const uint8_t *) sampled, sizeof(sampled) - 1, i);
    }
}


static void
add_value(dsa_buf_t *b, int depth)
{
    uint32_t  i, n;

    static const char *const  scalars[] = {
        "0", "-17", "1.5", "1e+16", "123456789012345678901234567890", "true",
        "false", "null", "\"\"", "\"a\\n\\\"\xe4\xb8\xad\\u0001/\""
    };

    n = pick(depth > 0 ? 4 : 2);

    if (n < 2) {
        dsa_buf_addz(b, scalars[pick(sizeof(scalars) / sizeof(scalars[0]))]);
        return;
    }

    dsa_buf_addz(b, n == 2 ? "[" : "{");

    for (i = pick(4); i > 0; i--) {
        if (n == 3) {
            dsa_buf_printf(b, "\"k%u <\": ", i);
        }

        add_value(b, depth - 1);
        dsa_buf_addz(b, i > 1 ? ", " : "");
    }

    dsa_buf_addz(b, n == 2 ? "]" : "}");
}


/* Strings are written as string="true", so the other values are no strings. */

static void
add_param(dsa_buf_t *b, uint32_t name)
{
    dsa_buf_t  value;

    static const char *const  texts[] = {
        "", "x", "{\"a\": 1}", "1", "a\n\nb\"c\\d\x01", "<b></" D "x>",
        "\xf0\x9f\x98\x80" EOS, "</think>"
    };

    if (pick(2) == 0) {
        dsa_buf_printf(b, "<" D "parameter name=\"p\"%u>\" string=\"true\">"
                       "%s" PEND, name,
                       texts[pick(sizeof(texts) / sizeof(texts[0]))]);
        return;
    }

    memset(&value, 0, sizeof(dsa_buf_t));

    do {
        value.len = 0;
        add_value(&value, 3);
    } while (value.data[0] == '"');

    dsa_buf_printf(b, "<" D "parameter name=\"p%u\" string=\"false\">%.*s"
                   PEND, name, (int) value.len, value.data);
    dsa_buf_free(&value);
}


/* Calls in the published form are in the next prompt exactly as sampled. */

static void
test_exact(void **state)
{
    int           thinking;
    char         *out;
    uint32_t      i, calls, params, k;
    dsa_buf_t     in, expected;
    dsa_arena_t  *arena;

    static const char *const  contents[] = {
        "", "Let me see.", "a\n", "a\n\n", "\n\n", "< </ \xef\xbd\x9c"
    };

    for (i = 0; i < 5000; i++) {
        memset(&in, 0, sizeof(dsa_buf_t));
        memset(&expected, 0, sizeof(dsa_buf_t));

        thinking = i & 1;
        dsa_buf_addz(&in, thinking ? "why\n</think>" : "");
        dsa_buf_addz(&in,
                  contents[pick(sizeof(contents) / sizeof(contents[0]))]);
        dsa_buf_addz(&in, CALLS);

        for (calls = 1 + pick(3); calls > 0; calls--) {
            dsa_buf_printf(&in, "<" D "invoke name=\"f%u\">\n", calls);

            params = pick(4);
            dsa_buf_addz(&in, params == 0 ? "\n" : "");

            for (k = 0; k < params; k++) {
                add_param(&in, k);
            }

            dsa_buf_addz(&in, FEND);
        }

        dsa_buf_addz(&in, END EOS);
        dsa_buf_add(&in, "", 1);

        dsa_buf_printf(&expected, "%s%s", thinking
                       ? DSA_DEEPSEEK_BOS DSA_DEEPSEEK_USER "q"
                          DSA_DEEPSEEK_ASSISTANT
                         "<think>" : PROMPT, in.data);
        assert_false(in.failed || expected.failed);

        arena = dsa_arena_create(HISTORY_MEMORY);
        out = prompt_of(arena, in.data, 1, thinking, 0);

        if (strncmp(out, expected.data, expected.len) != 0) {
            fail_msg("sampled:\n%.*s\nencoded:\n%s", (int) expected.len,
                     expected.data, out);
        }

        dsa_arena_destroy(arena);
        dsa_buf_free(&in);
        dsa_buf_free(&expected);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rendered),
        cmocka_unit_test(test_spelled),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_large)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
