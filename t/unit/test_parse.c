
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/parse.c.  A table has outputs of a model and what must become of
 * them, for every cut of the text in two and for pieces of any length.
 * t/data/encoding has the published outputs.  test_parse_control.c is about
 * control tokens.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/json_write.h"
#include "context/chat.h"
#include "t/unit/encoding.h"
#include "t/unit/output.h"


#define TEN(x)   x x x x x x x x x x

/* out: as result_t has it. */

static const struct {
    int          flags;
    const char  *in;
    const char  *out;
} cases[] = {

    /* no calls */

    { 0, "", "" },
    { 0, "Hello", "C(Hello)" },
    { THINK, "why</think>answer", "R(why)C(answer)" },
    { THINK, "</think>answer", "C(answer)" },
    { THINK, "never ends", "R(never ends)" },
    { THINK | CUT, "cut </thi", "R(cut </thi)" },
    { THINK, "a</think>\n\nb", "R(a)C(\n\nb)" },
    { THINK, "a < b </ c </think", "R(a < b </ c </think)" },
    { THINK, "a</think>b</think>c", "R(a)C(bc)" },
    { THINK, "<think>a</think>b", "R(a)C(b)" },
    { 0, "a\n\nb\n\n<c>\n\n", "C(a\n\nb\n\n<c>\n\n)" },
    { 0, "\n\n\n", "C(\n\n\n)" },
    { 0, "if (a < b && c <<= 2) { </div> }\n\n<\xef\xbd",
      "C(if (a < b && c <<= 2) { </div> }\n\n<\xef\xbd)" },
    { 0, "\xef\xbc\x8c\xef\xbd\x9c\xf0\x9f\x98\x80\n",
      "C(\xef\xbc\x8c\xef\xbd\x9c\xf0\x9f\x98\x80\n)" },

    /* control tokens that stray */

    { 0, "a" EOS "b", "C(ab)" },
    { 0, "Hi" EOS, "C(Hi)" },
    { THINK,
     DSA_DEEPSEEK_BOS "a" DSA_DEEPSEEK_USER "b" DSA_DEEPSEEK_ASSISTANT "<think>"
      "c" EOS "</think>d" DSA_DEEPSEEK_USER "e<think>f",
      "R(abc)C(def)" },
    { 0, "<\xef\xbd\x9c" "User<\xef\xbd\x9cUser\xef\xbd\x9c>x",
      "C(<\xef\xbd\x9cUserx)" },
    { 0, "<<think>>", "C(<>)" },
    { 0, "a " D " b</" D "x>", "C(a  b</x>)" },

    /* calls */

    { 0, "\n\n" CALLS F STR("city") "Paris" PEND FEND END EOS,
      "N(f)A({\"city\": \"Paris\"})" },
    { 0, "Let me see.\n\n" CALLS F STR("city") "Paris" PEND FEND END,
      "C(Let me see.)N(f)A({\"city\": \"Paris\"})" },
    { THINK, "hm</think>\n\n" CALLS F FEND G FEND END EOS,
      "R(hm)N(f)A({})N(g)A({})" },
    { 0, CALLS F "\n" FEND END, "N(f)A({})" },
    { 0, "x\n" CALLS F FEND END, "C(x)N(f)A({})" },
    { 0, "x" CALLS F FEND END, "C(x)N(f)A({})" },
    { 0, "x\n\n\n" CALLS F FEND END, "C(x\n)N(f)A({})" },
    { THINK, "still\n\n" CALLS F FEND END "</think>",
      "R(still)N(f)A({})" },
    { 0, "\n\n" CALLS F STR("a") "1" PEND VAL("b") "2" PEND FEND END,
      "N(f)A({\"a\": \"1\", \"b\": 2})" },
    { 0, "\n\n" CALLS F VAL("o") "{\"a\": [1, \"</x>\\n\"]}" PEND
      VAL("l") " [1,\n2]" PEND FEND END,
      "N(f)A({\"o\": {\"a\": [1, \"</x>\\n\"]}, \"l\": [1,\n2]})" },
    { 0, "\n\n" CALLS F VAL("a") "true" PEND VAL("b") "null" PEND VAL("c")
      "-1.5e3" PEND VAL("d") "\"q\\n\"" PEND VAL("e") " 7 " PEND FEND END,
      "N(f)A({\"a\": true, \"b\": null, \"c\": -1.5e3, \"d\": \"q\\n\", "
      "\"e\":  7 })" },

    /* values that are not what string="false" says */

    { 0, CALLS F VAL("a") "True" PEND VAL("b") "" PEND VAL("c") "1 2" PEND
      VAL("d") "\"x" PEND VAL("e") "01" PEND VAL("g") "NaN" PEND FEND END,
      "N(f)A({\"a\": \"True\", \"b\": \"\", \"c\": \"1 2\", "
      "\"d\": \"\\\"x\", \"e\": \"01\", \"g\": \"NaN\"})" },
    { 0, CALLS F VAL("a") "Paris\n\"x\"" PEND FEND END,
      "N(f)A({\"a\": \"Paris\\n\\\"x\\\"\"})" },
    { 0, CALLS F VAL("a") "{\"x\": 1}}" PEND FEND END,
      "N(f)A({\"a\": {\"x\": 1}}})" },

    /* a value may contain anything but the whole closing tag */

    { 0, CALLS F STR("a") "<b>\"\\\n\t\b\f\r\x01</" D "paramete</b></" PEND
      FEND END,
      "N(f)A({\"a\": \"<b>\\\"\\\\\\n\\t\\b\\f\\r\\u0001</" D
      "paramete</b></\"})" },
    { 0, CALLS F STR("a") END FEND "\n\n" CALLS "</think>" EOS PEND FEND END,
      "N(f)A({\"a\": \"" END "</" D "invoke>\\n\\n\\n<" D
      "function_calls>\\n</think>" EOS "\"})" },
    { 0, CALLS F STR("a") "</" D "parameter </" D "parameter>\n" FEND END,
      "N(f)A({\"a\": \"</" D "parameter \"})" },
    { 0, CALLS F STR("a") PEND FEND END, "N(f)A({\"a\": \"\"})" },

    /* names */

    { 0, CALLS F STR("a\"b>\xc3\xa9\\") "x" PEND FEND END,
      "N(f)A({\"a\\\"b>\xc3\xa9\\\\\": \"x\"})" },
    { 0, CALLS F STR("") "x" PEND FEND END, "N(f)A({\"\": \"x\"})" },
    { 0, CALLS F "<" D "parameter name=\"a\">x" PEND
      "<" D "parameter name=\"b\">1" PEND FEND END,
      "N(f)A({\"a\": \"x\", \"b\": 1})" },
    { 0, CALLS "<" D "invoke name=\"f\" >" FEND END, "N(f)A({})" },
    { 0, CALLS "<" D "invoke>" STR("a") "x" PEND FEND G FEND END,
      "N(g)A({})" },
    { 0, CALLS "<" D "invoke name=\"\">" FEND G FEND END, "N(g)A({})" },
    { 0, CALLS "<" D "invoke name=\"" TEN(TEN("abc")) "\">" STR("a") "x"
      PEND FEND G FEND END, "N(g)A({})" },
    { 0, CALLS "<" D "invoke" TEN(TEN("   ")) " name=\"f12345678901234567890"
      "\">" FEND G FEND END, "N(g)A({})" },
    { 0, CALLS F "<" D "parameter name=\"" TEN(TEN("abcd"))
      "\" string=\"true\">x" PEND STR("b") "y" PEND FEND END,
      "N(f)A({\"b\": \"y\"})" },
    { 0, CALLS "<" D "invoke name=\"f" FEND G FEND END, "N(g)A({})" },

    /* wrong structures */

    { 0, "\n\n" F STR("a") "x" PEND FEND "rest", "N(f)A({\"a\": \"x\"})" },
    { 0, CALLS F STR("a") "x" PEND G FEND END,
      "N(f)A({\"a\": \"x\"})N(g)A({})" },
    { 0, CALLS F STR("a") "x" PEND END "after",
      "N(f)A({\"a\": \"x\"})" },
    { 0, CALLS F "{\"a\": {\"b\": 1}}\n" FEND END,
      "N(f)A({\"a\": {\"b\": 1}}\n)" },
    { 0, CALLS F "{\"a\": 1}" STR("b") "x" PEND "{}" FEND END,
      "N(f)A({\"a\": 1})" },
    { 0, CALLS F "noise" STR("b") "x" PEND "{}" FEND "noise" G FEND END,
      "N(f)A({\"b\": \"x\"})N(g)A({})" },
    { 0, CALLS END "text", "" },
    { 0, "\n\n" CALLS F FEND END "\n\n" CALLS G FEND END "more" EOS,
      "N(f)A({})" },
    { 0, CALLS CALLS F FEND END, "N(f)A({})" },

    /* cut off, and ended without being closed */

    { CUT, "a\n\n<" D "function_ca", "C(a)" },
    { CUT, "a\n\n<", "C(a\n\n<)" },
    { 0, "a\n\n<" D "in", "C(a)" },
    { CUT, CALLS "<" D "invoke na", "" },
    { CUT, CALLS F, "N(f)" },
    { 0, CALLS F, "N(f)A({})" },
    { CUT, CALLS F STR("a") "Par", "N(f)A({\"a\": \"Par)" },
    { 0, CALLS F STR("a") "Par", "N(f)A({\"a\": \"Par\"})" },
    { CUT, CALLS F STR("a") "Par</" D "param", "N(f)A({\"a\": \"Par)" },
    { CUT, CALLS F STR("a") "Par</", "N(f)A({\"a\": \"Par)" },
    { 0, CALLS F STR("a") "Par</" D "parameter", "N(f)A({\"a\": \"Par\"})" },
    { 0, CALLS F STR("a") "Par</", "N(f)A({\"a\": \"Par</\"})" },
    { CUT, CALLS F VAL("a") "12", "N(f)A({\"a\": )" },
    { 0, CALLS F VAL("a") "12", "N(f)A({\"a\": 12})" },
    { CUT, CALLS F VAL("a") "{\"x\": [1", "N(f)A({\"a\": {\"x\": [1)" },
    { CUT, CALLS F STR("a") "x" PEND, "N(f)A({\"a\": \"x\")" },
    { CUT, CALLS F STR("a") "x" PEND FEND, "N(f)A({\"a\": \"x\"})" },
    { CUT, CALLS F STR("a") "x" PEND "<" D "parameter name=\"b",
      "N(f)A({\"a\": \"x\")" },

    /* with calls off, only text is delivered, before and after their block */

    { NOTOOLS, "a\n\n" CALLS F FEND END EOS, "C(a)" },
    { NOTOOLS, "a\n\n" CALLS F STR("k") "v" PEND FEND END "\nb" EOS,
      "C(a\nb)" },
    { NOTOOLS, "a" F STR("k") "v" PEND FEND "b" F FEND "c", "C(a\nb\nc)" },
    { NOTOOLS, "a" F FEND END "b", "C(a\nb)" },
    { NOTOOLS, CALLS F "{\"a\": 1}" FEND "noise" G FEND END "b" CALLS F FEND
      END "c", "C(bc)" },
    { NOTOOLS, CALLS F STR("k") END FEND "</think>" PEND FEND END "b",
      "C(b)" },
    { NOTOOLS, CALLS "<" D "invoke>" STR("k") END PEND FEND END "b",
      "C(b)" },
    { NOTOOLS, "a</" D "function_calls>b</" D "parameter>c</" D "invoke>d",
      "C(abcd)" },
    { NOTOOLS | CUT, "a\n\n" CALLS F STR("k") "v", "C(a)" },
    { NOTOOLS | CUT, "\n\n<" D, "" },
    { NOTOOLS | CUT, "a\n\n<\xef\xbd\x9c" "DS", "C(a)" },
    { NOTOOLS, "a\n\n<\xef\xbd\x9c" "D", "C(a)" },
    { NOTOOLS | THINK, "a\n\n" CALLS F FEND END "b</think>c",
      "R(ab)C(c)" },
    { NOTOOLS | THINK, "a" CALLS "</think>" D "b", "R(a)C(b)" },
    { NOTOOLS | THINK, "a" CALLS F STR("k") "v" PEND "</think>b",
      "R(a)C(b)" },
    { NOTOOLS | THINK, "a</think>b" CALLS F FEND END "c", "R(a)C(bc)" },

    /* the value of a call that is left out may contain anything as well */

    { 0, CALLS "<" D "invoke>" STR("a") F FEND END PEND FEND G FEND END,
      "N(g)A({})" }
};


static void
test_cases(void **state)
{
    size_t  i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(cases[i].flags, 0, cases[i].in, strlen(cases[i].in),
              cases[i].out);
    }
}


/*
 * The same inputs with their control tokens sampled as tokens.  If the
 * vocabulary has them, the result is the same; if not, the text of their names
 * counts.  Inputs that end in the middle of a name have no tokens there.
 */

static void
test_cases_control(void **state)
{
    size_t     i;
    dsa_buf_t  in;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&in, 0, sizeof(dsa_buf_t));
        mark_names(&in, cases[i].in);

        check(cases[i].flags, 0, in.data, in.len - 1, cases[i].out);

        if (strstr(cases[i].in, "\xef\xbd\x9c" "D") == NULL
            || strstr(cases[i].in, D) != NULL)
        {
            check(cases[i].flags, ALL, in.data, in.len - 1, cases[i].out);
        }

        dsa_buf_free(&in);
    }
}


/* The same inputs spelled with ordinary tokens: all of it is text. */

static void
test_cases_spelled(void **state)
{
    size_t     i;
    dsa_buf_t  out;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&out, 0, sizeof(dsa_buf_t));

        if (cases[i].in[0] != '\0') {
            dsa_buf_printf(&out, "%s(%s)", cases[i].flags & THINK ? "R" : "C",
                           cases[i].in);
        }

        dsa_buf_add(&out, "", 1);

        check(cases[i].flags, ALL, cases[i].in, strlen(cases[i].in),
              out.data);

        dsa_buf_free(&out);
    }
}


/*
 * If calls are off, no piece of their markup is delivered, wherever the text
 * ends.
 */

static void
test_calls_off(void **state)
{
    int       flags;
    size_t    len, step;
    result_t  r;

    static const char  in[] =
        "a\n\n" CALLS F STR("k") "v" PEND VAL("n") "{\"x\": [1]}" PEND FEND
        "<" D "invoke name=\"g\">\n\n" FEND END;

    for (len = 1; len < sizeof(in); len++) {
        for (flags = 0; flags < 8; flags++) {
            for (step = 1; step <= len; step = step * 2 + 1) {
                parse(&r, flags | NOTOOLS, 0, in, len, step, step);

                assert_int_equal(r.calls, 0);
                assert_true(strchr("RC", r.out.data[0]) != NULL);
                assert_int_equal(r.out.data[2], 'a');
                assert_true(strspn(r.out.data + 3, "\n<)\xef\xbd\x9c")
                            == strlen(r.out.data + 3));
                dsa_buf_free(&r.out);
            }
        }
    }
}


/*
 * Text is delivered as soon as it cannot be a marker, and a piece that is fed
 * is one delta if nothing in it ends one.
 */

static void
test_streams(void **state)
{
    result_t      r;
    dsa_parse_t  *p;

    memset(&r, 0, sizeof(r));
    p = dsa_parse_create(&dsa_deepseek, 1, 1, 0, on_delta, &r);

    assert_true(dsa_parse_in_reasoning(p));
    assert_int_equal(dsa_parse_feed(p, dsa_strz("a\n\nb <c")), DSA_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("\n\n")), DSA_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("d")), DSA_OK);
    assert_int_equal(r.n, 2);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("</think>x")), DSA_OK);
    assert_int_equal(r.n, 3);
    assert_false(dsa_parse_in_reasoning(p));
    assert_int_equal(dsa_parse_calls(p), 0);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("\n\n" CALLS F)), DSA_OK);
    assert_int_equal(r.n, 4);
    assert_int_equal(dsa_parse_calls(p), 1);
    assert_int_equal(dsa_parse_feed(p, dsa_strz(STR("k") "v1\nv2")), DSA_OK);
    assert_int_equal(r.n, 5);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("v3")), DSA_OK);
    assert_int_equal(r.n, 6);
    assert_int_equal(dsa_parse_end(p, 0), DSA_OK);
    assert_int_equal(r.n, 6);

    dsa_parse_destroy(p);
    result_close(&r);
    dsa_buf_add(&r.out, "", 1);
    assert_string_equal(r.out.data, "R(a\n\nb <c\n\nd)C(x)N(f)A({\"k\": "
                        "\"v1\\nv2v3)");
    dsa_buf_free(&r.out);
}


/* Long texts are delivered in full, cut into deltas between characters only. */

static void
test_long(void **state)
{
    size_t       i, k;
    result_t     r;
    dsa_buf_t    in, out;
    const char  *before, *after, *open, *close;

    static const char  *const  units[] = {
        "x", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "\n", "<"
    };

    for (i = 0; i < sizeof(units) / sizeof(units[0]) * 2; i++) {
        memset(&in, 0, sizeof(in));
        memset(&out, 0, sizeof(out));

        before = i & 1 ? CALLS F STR("k") : "a";
        after = i & 1 ? PEND FEND END : "b";
        open = i & 1 ? "N(f)A({\"k\": \"" : "C(a";
        close = i & 1 ? "\"})" : "b)";

        dsa_buf_addz(&in, before);
        dsa_buf_addz(&out, open);

        for (k = 0; k < 20000; k++) {
            dsa_buf_addz(&in, units[i / 2]);
            dsa_buf_addz(&out, (i & 1) && units[i / 2][0] == '\n'
                               ? "\\n" : units[i / 2]);
        }

        dsa_buf_addz(&in, after);
        dsa_buf_addz(&out, close);
        dsa_buf_add(&out, "", 1);
        assert_false(in.failed || out.failed);

        parse(&r, 0, 0, in.data, in.len, in.len, in.len);
        assert_string_equal(r.out.data, out.data);
        assert_true(r.whole);
        dsa_buf_free(&r.out);

        parse(&r, 0, 0, in.data, in.len, 1, 7);
        assert_string_equal(r.out.data, out.data);
        dsa_buf_free(&r.out);

        dsa_buf_free(&in);
        dsa_buf_free(&out);
    }
}


/* A scalar that does not fit the parser becomes a string. */

static void
test_long_scalar(void **state)
{
    size_t     n, k;
    result_t   r;
    dsa_buf_t  in, out;

    for (n = DSA_PARSE_SCALAR - 1; n <= DSA_PARSE_SCALAR + 1; n++) {
        memset(&in, 0, sizeof(in));
        memset(&out, 0, sizeof(out));

        dsa_buf_addz(&in, CALLS F VAL("k"));
        dsa_buf_addz(&out, n > DSA_PARSE_SCALAR ? "N(f)A({\"k\": \""
                                                : "N(f)A({\"k\": ");

        for (k = 0; k < n; k++) {
            dsa_buf_addz(&in, "7");
            dsa_buf_addz(&out, "7");
        }

        dsa_buf_addz(&in, PEND FEND END);
        dsa_buf_addz(&out, n > DSA_PARSE_SCALAR ? "\"})" : "})");
        dsa_buf_add(&out, "", 1);

        for (k = 1; k <= in.len; k += 501) {
            parse(&r, 0, 0, in.data, in.len, k, k);
            assert_string_equal(r.out.data, out.data);
            dsa_buf_free(&r.out);
        }

        dsa_buf_free(&in);
        dsa_buf_free(&out);
    }
}


/* Calls after the last one that a history may have are left out. */

static void
test_many_calls(void **state)
{
    uint32_t   i;
    result_t   r;
    dsa_buf_t  in;

    memset(&in, 0, sizeof(in));
    dsa_buf_addz(&in, CALLS);

    for (i = 0; i < DSA_PARSE_CALLS + 2; i++) {
        dsa_buf_addz(&in, F STR("a") "x" PEND FEND);
    }

    dsa_buf_addz(&in, END);
    assert_false(in.failed);

    parse(&r, 0, 0, in.data, in.len, 7, 1000);
    assert_int_equal(r.calls, DSA_PARSE_CALLS);
    assert_int_equal(r.out.len - 1, DSA_PARSE_CALLS
                                    * strlen("N(f)A({\"a\": \"x\"})"));

    dsa_buf_free(&r.out);
    dsa_buf_free(&in);
}


static int
on_delta_fails(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    int  *left = ctx;

    return --*left == 0 ? 7 : DSA_OK;
}


static void
test_callback_fails(void **state)
{
    int           left;
    dsa_parse_t  *p;

    left = 2;
    p = dsa_parse_create(&dsa_deepseek, 0, 1, 0, on_delta_fails, &left);

    assert_int_equal(dsa_parse_feed(p, dsa_strz("a")), DSA_OK);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("b" CALLS F FEND)), 7);
    assert_int_equal(dsa_parse_feed(p, dsa_strz("c")), 7);
    assert_int_equal(dsa_parse_end(p, 1), 7);
    assert_int_equal(left, 0);

    dsa_parse_destroy(p);
}


/* Random sequences of pieces that matter, cut at random. */

static void
test_random_cuts(void **state)
{
    size_t    len, n;
    result_t  whole, r;
    uint32_t  seed, i, k, flags;
    char      in[2048];

    static const char *const  words[] = {
        "\n", "\n\n", "<", "</", ">", "\"", D, "<" D, "</" D, "</think>",
        "<think>", EOS, DSA_DEEPSEEK_USER, CALLS, END, F, G, FEND, STR("a"),
        VAL("b"), PEND, "invoke", "parameter", "function_calls", " name=\"x",
        " string=\"true\">", "{", "}", "[1]", "12", "true", "text", "\xe4",
        "\xb8\xad", "\\", "\x01", "\xef\xbd\x9c"
    };

    seed = 1;

    for (i = 0; i < 20000; i++) {
        len = 0;
        flags = (i & 7);

        for (k = 0; k < 24; k++) {
            seed = seed * 1664525 + 1013904223;
            n = (seed >> 8) % (sizeof(words) / sizeof(words[0]));
            memcpy(in + len, words[n], strlen(words[n]));
            len += strlen(words[n]);
        }

        parse(&whole, flags, 0, in, len, len, len);

        for (k = 0; k < 6; k++) {
            seed = seed * 1664525 + 1013904223;
            parse(&r, flags, 0, in, len, (seed >> 8) % len,
                  1 + k * 5);
            assert_string_equal(r.out.data, whole.out.data);
            dsa_buf_free(&r.out);
        }

        dsa_buf_free(&whole.out);
    }
}


/* The result that a message of the published input must give. */

static void
expect_message(dsa_buf_t *out, const dsa_message_t *m, int thinking)
{
    uint32_t  i;

    if (thinking && m->reasoning.len != 0) {
        dsa_buf_addz(out, "R(");
        dsa_buf_add(out, m->reasoning.data, m->reasoning.len);
        dsa_buf_addz(out, ")");
    }

    if (m->content.len != 0) {
        dsa_buf_addz(out, "C(");
        dsa_buf_add(out, m->content.data, m->content.len);
        dsa_buf_addz(out, ")");
    }

    for (i = 0; i < m->n_calls; i++) {
        dsa_buf_addz(out, "N(");
        dsa_buf_add(out, m->calls[i].name.data, m->calls[i].name.len);
        dsa_buf_addz(out, ")A(");
        assert_int_equal(dsa_json_dump(out, m->calls[i].arguments), DSA_OK);
        dsa_buf_addz(out, ")");
    }

    dsa_buf_add(out, "", 1);
}


/*
 * The assistant's turns of a published prompt, up to the token that ends them,
 * give back the messages that the prompt was made from.
 */

static void
check_published(const char *input, const char *output)
{
    int                 thinking;
    char               *json, *text, *p, *end, *cue;
    size_t              len, cut, turns;
    result_t            r;
    uint32_t            i;
    dsa_err_t           err;
    dsa_buf_t           expected, marked, tokens;
    dsa_chat_t          chat;
    dsa_json_t         *root;
    dsa_arena_t        *arena;
    dsa_refusal_t       refusal;
    dsa_message_t      *m;
    dsa_chat_limits_t   limits = { 1000, 128, 0 };

    arena = dsa_arena_create(16 * 1024 * 1024);
    json = read_text(input, &len);
    root = dsa_json_parse(arena, json, len, 64, &err);
    assert_non_null(root);
    assert_int_equal(dsa_chat_read(&chat, arena, root, &limits, &refusal),
                     DSA_OK);

    /* the tools block has an example with control tokens in it */

    text = read_text(output, &len);
    p = strstr(text, "\n</functions>\n");
    assert_non_null(p);
    turns = 0;

    for (i = 0; i < chat.n_messages; i++) {
        m = &chat.messages[i];

        if (m->role != DSA_ROLE_ASSISTANT) {
            continue;
        }

        /* a turn begins after the cue for it, which the prompt before has */

        end = strstr(p, EOS);
        assert_non_null(end);

        cue = strstr(p, DSA_DEEPSEEK_ASSISTANT);

        if (cue != NULL && cue < end) {
            p = cue + strlen(DSA_DEEPSEEK_ASSISTANT);

        } else {
            cue = strstr(p, "</function_results>\n\n");
            assert_true(cue != NULL && cue < end);
            p = cue + strlen("</function_results>\n\n");
        }

        thinking = strncmp(p, "<think>", 7) == 0;

        if (!thinking) {
            assert_memory_equal(p, "</think>", 8);
        }

        p += thinking ? 7 : 8;

        memset(&expected, 0, sizeof(expected));
        expect_message(&expected, m, thinking);

        for (cut = 1; cut <= (size_t) (end - p); cut = cut * 3 + 1) {
            parse(&r, thinking ? THINK : 0, 0, p, end - p + strlen(EOS),
                  cut, cut);
            assert_string_equal(r.out.data, expected.data);
            dsa_buf_free(&r.out);
        }

        /* the same with the control tokens as tokens */

        memset(&marked, 0, sizeof(marked));
        dsa_buf_add(&marked, p, end - p + strlen(EOS));
        dsa_buf_add(&marked, "", 1);
        memset(&tokens, 0, sizeof(tokens));
        mark_names(&tokens, marked.data);

        parse(&r, thinking ? THINK : 0, ALL, tokens.data, tokens.len - 1, 5,
              3);
        assert_string_equal(r.out.data, expected.data);

        dsa_buf_free(&r.out);
        dsa_buf_free(&marked);
        dsa_buf_free(&tokens);
        dsa_buf_free(&expected);

        p = end + strlen(EOS);
        turns++;
    }

    assert_true(turns > 3);
    assert_null(strstr(p, EOS));

    free(json);
    free(text);
    dsa_arena_destroy(arena);
}


static void
test_published(void **state)
{
    check_published("test_input.json", "test_output.txt");
    check_published("test_input_search_wo_date.json",
                    "test_output_search_wo_date.txt");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_cases_control),
        cmocka_unit_test(test_cases_spelled),
        cmocka_unit_test(test_calls_off),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_long_scalar),
        cmocka_unit_test(test_many_calls),
        cmocka_unit_test(test_callback_fails),
        cmocka_unit_test(test_random_cuts),
        cmocka_unit_test(test_published)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
