
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/parse.c: control tokens count only if the model sampled them as
 * tokens.  If the vocabulary has one, its name in ordinary text is text.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "t/unit/output.h"


#define TD       T D
#define TCALLS   "<" TD "function_calls>\n"
#define TEND     "</" TD "function_calls>"
#define TF       "<" TD "invoke name=\"f\">\n"
#define TFEND    "</" TD "invoke>\n"
#define TSTR(k)  "<" TD "parameter name=\"" k "\" string=\"true\">"
#define TVAL(k)  "<" TD "parameter name=\"" k "\" string=\"false\">"
#define TPEND    "</" TD "parameter>\n"


static const struct {
    int          flags;
    uint32_t     vocabulary;
    const char  *in;
    const char  *out;
} control_cases[] = {

    /* the end of the reasoning is the token, not its spelling */

    { THINK, ALL, "I write </think> to end" T "</think>so", "R(I write "
      "</think> to end)C(so)" },
    { THINK, ALL, "a<think>b" T "<think>c" T "</think>d</think>",
      "R(a<think>bc)C(d</think>)" },
    { THINK, ALL, "a</think" T "</think>b", "R(a</think)C(b)" },
    { THINK, ALL, "a<" T "</think>b", "R(a<)C(b)" },
    { THINK, ALL, "a\n\n" T "</think>\n\nb", "R(a\n\n)C(\n\nb)" },
    { THINK, BIT(THINK), "a<think>b" T "<think>c</think>d" T "</think>e",
      "R(a<think>bc)C(de)" },
    { THINK, BIT(DSML), "a</think>b", "R(a)C(b)" },

    /* roles and other control tokens */

    { 0, ALL, "say " DSA_DEEPSEEK_USER EOS " twice" T EOS,
      "C(say " DSA_DEEPSEEK_USER EOS " twice)" },
    { 0, ALL & ~BIT(USER), "a" DSA_DEEPSEEK_USER "b" T DSA_DEEPSEEK_USER "c",
      "C(abc)" },
    { 0, ALL, "a" T "<|other|>b", "C(a<|other|>b)" },
    { 0, 0, "a" T "<|other|>b", "C(a<|other|>b)" },
    { 0, ALL, "a " D " b " TD " c", "C(a " D " b  c)" },

    /* calls need the token in every tag */

    { 0, ALL, "x\n\n" TCALLS TF TSTR("k") "v" TPEND TFEND TEND,
      "C(x)N(f)A({\"k\": \"v\"})" },
    { 0, ALL, "x\n\n" CALLS F FEND END, "C(x\n\n" CALLS F FEND END ")" },
    { 0, ALL, "x\n\n<" T D "function_call", "C(x)" },
    { 0, ALL, "x\n\n<" D "function_call",
      "C(x\n\n<" D "function_call)" },
    { CUT, ALL, "x\n\n<\xef\xbd\x9c" "D",
      "C(x\n\n<\xef\xbd\x9c" "D)" },
    { 0, BIT(THINK_END), "x\n\n" CALLS F STR("k") "</think>" T "</think>"
      PEND FEND END, "C(x)N(f)A({\"k\": \"</think></think>\"})" },
    { NOTOOLS, ALL, "a" TCALLS TF TSTR("k") END "</think>" TPEND TFEND END
      "</think>" TEND "b", "C(ab)" },
    { NOTOOLS | THINK, ALL, "a" TCALLS "</think>" D T "</think>" TD "b",
      "R(a)C(b)" },

    /* values hold any spelling, and control tokens other than their end */

    { 0, ALL, TCALLS TF TSTR("k") "a</" D "parameter>b" FEND END TPEND
      TFEND TEND, "N(f)A({\"k\": \"a</" D "parameter>b</" D
      "invoke>\\n" END "\"})" },
    { 0, ALL, TCALLS TF TSTR("k") "<" TD "x" T EOS "</" TD "param" TPEND
      TFEND TEND, "N(f)A({\"k\": \"<" D "x" EOS "</" D "param\"})" },
    { 0, ALL, TCALLS TF TVAL("k") T "<think>" TPEND TVAL("l") "[\"" PEND
      "\"]" TPEND TFEND TEND,
      "N(f)A({\"k\": \"<think>\", \"l\": [\"</" D
      "parameter>\n\"]})" },

    /* names */

    { 0, ALL, TCALLS TF TSTR("<" D "parameter") "x" TPEND TFEND TEND,
      "N(f)A({\"<" D "parameter\": \"x\"})" },
    { 0, ALL, TCALLS TF TSTR("a" T "<think>") "x" TPEND TFEND TEND,
      "N(f)A({\"a<think>\": \"x\"})" }
};


static void
test_control(void **state)
{
    size_t  i;

    for (i = 0; i < sizeof(control_cases) / sizeof(control_cases[0]); i++) {
        check(control_cases[i].flags, control_cases[i].vocabulary,
              control_cases[i].in, strlen(control_cases[i].in),
              control_cases[i].out);
    }
}


static int
is_token(dsa_deepseek_token_e token, const char *name)
{
    return dsa_str_eqz(dsa_deepseek_tokens[token].name, name);
}


static void
test_control_names(void **state)
{
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_BOS, DSA_DEEPSEEK_BOS));
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_EOS, EOS));
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_USER, DSA_DEEPSEEK_USER));
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_ASSISTANT, DSA_DEEPSEEK_ASSISTANT));
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_THINK, "<think>"));
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_THINK_END, "</think>"));
    assert_true(is_token(DSA_DEEPSEEK_TOKEN_DSML, D));
    assert_int_equal(DSA_DEEPSEEK_TOKENS, 7);
}


/*
 * Replaces what begins each name by a byte that begins none, or back.  The
 * length stays, and so do the bytes that end a tag or a value.
 */

static void
disguise(dsa_buf_t *b, const char *in, size_t len, int back)
{
    size_t      i, k;
    dsa_str_t   from, to;

    static const char *const  names[][2] = {
        { "<think>", "(think>" },
        { "</think>", "(/think>" },
        { EOS, "(\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence"
          "\xef\xbd\x9c>" },
        { DSA_DEEPSEEK_USER, "(\xef\xbd\x9cUser\xef\xbd\x9c>" },
        { D, "\xef\xbd\x9c" "QSML\xef\xbd\x9c" }
    };

    for (i = 0; i < len; i++) {
        for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            from = dsa_strz(names[k][back]);
            to = dsa_strz(names[k][!back]);

            if (len - i >= from.len
                && memcmp(in + i, from.data, from.len) == 0)
            {
                dsa_buf_add(b, to.data, to.len);
                i += to.len - 1;
                break;
            }
        }

        if (k == sizeof(names) / sizeof(names[0])) {
            dsa_buf_add(b, in + i, 1);
        }
    }
}


/*
 * Random mixtures of control tokens, of their spellings and of other text.  If
 * the vocabulary has the tokens, the result must be that of a text in which
 * they are spelled and what was spelled is disguised, read without a
 * vocabulary.
 */

static void
test_control_random(void **state)
{
    int        flags;
    size_t     n;
    result_t   r, plain;
    uint32_t   seed, i, k, cut;
    dsa_buf_t  in, text, back;

    static const char *const  words[] = {
        "\n", "\n\n", "\"", "{", "}", "[1]", "12", "text", "\xe4\xb8\xad",
        "invoke", "parameter", "function_calls>", " name=\"x", " ", "=\"",
        " string=\"true\">", D, D, "<" D, "</" D, "<think>", "</think>",
        "</think>", EOS, DSA_DEEPSEEK_USER, CALLS, CALLS, END, F, F, FEND,
        STR("a"), STR("a"), STR("b"), VAL("c"), VAL("d"), PEND, PEND, PEND
    };

    seed = 7;

    for (i = 0; i < 20000; i++) {
        memset(&in, 0, sizeof(dsa_buf_t));
        memset(&text, 0, sizeof(dsa_buf_t));
        memset(&back, 0, sizeof(dsa_buf_t));

        flags = i & 7;

        for (k = 0; k < 24; k++) {
            seed = seed * 1664525 + 1013904223;
            n = (seed >> 8) % (sizeof(words) / sizeof(words[0]));

            if (seed >> 30 != 0) {
                mark_names(&in, words[n]);
                in.len--;
                dsa_buf_addz(&text, words[n]);

            } else {
                dsa_buf_addz(&in, words[n]);
                disguise(&text, words[n], strlen(words[n]), 0);
            }
        }

        parse(&plain, flags, 0, text.data, text.len, text.len, text.len);
        disguise(&back, plain.out.data, plain.out.len, 1);

        for (k = 0; k < 3; k++) {
            seed = seed * 1664525 + 1013904223;
            cut = 1 + (seed >> 8) % 40;
            parse(&r, flags, ALL, in.data, in.len, cut, k == 0 ? 1 : cut);

            assert_int_equal(r.calls, plain.calls);
            assert_string_equal(r.out.data, back.data);
            dsa_buf_free(&r.out);
        }

        dsa_buf_free(&plain.out);
        dsa_buf_free(&in);
        dsa_buf_free(&text);
        dsa_buf_free(&back);
    }
}


/* A control token takes effect with its own feed, a spelled one does not. */

static void
test_streams_control(void **state)
{
    result_t      r;
    dsa_parse_t  *p;

    memset(&r, 0, sizeof(r));
    p = dsa_parse_create(&dsa_deepseek, 1, 1, ALL, on_delta, &r);

    assert_int_equal(dsa_parse_feed(p, dsa_strz("a</think>")), DSA_OK);
    assert_int_equal(r.n, 1);
    assert_true(dsa_parse_in_reasoning(p));
    assert_int_equal(dsa_parse_feed_control(p, dsa_strz("</think>")), DSA_OK);
    assert_false(dsa_parse_in_reasoning(p));
    assert_int_equal(dsa_parse_feed(p, dsa_strz("b" CALLS F "c")), DSA_OK);
    assert_int_equal(dsa_parse_calls(p), 0);
    assert_int_equal(r.n, 2);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("\n\n<")), DSA_OK);
    assert_int_equal(dsa_parse_feed_control(p, dsa_strz(D)), DSA_OK);
    assert_int_equal(r.n, 2);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("invoke name=\"f\">")),
                     DSA_OK);
    assert_int_equal(dsa_parse_calls(p), 1);
    assert_int_equal(dsa_parse_end(p, 1), DSA_OK);

    dsa_parse_destroy(p);
    result_close(&r);
    dsa_buf_add(&r.out, "", 1);
    assert_string_equal(r.out.data, "R(a</think>)C(b" CALLS F "c)N(f)A({})");
    dsa_buf_free(&r.out);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_control_names),
        cmocka_unit_test(test_control_random),
        cmocka_unit_test(test_streams_control)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
