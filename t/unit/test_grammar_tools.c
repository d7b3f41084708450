
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Automata of the calls of tools: unions of their parameters, and what of a
 * schema is not enforced.
 */


#include "base/buf.h"
#include "t/unit/grammar.h"


#define CLOSED(p)   "{\"type\":\"object\",\"properties\":{" p "},"             \
                    "\"additionalProperties\":false}"


/* A model whose control token has another name, with special characters. */

static void
test_tools_control(void **state)
{
    size_t                i;
    uint32_t              end, mask;
    dsa_matcher_t        *m;
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v, *few;
    dsa_grammar_error_t   error;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":true,"
        "\"parameters\":{\"type\":\"object\",\"properties\":{"
        "\"a\":{\"type\":\"string\"}},\"required\":[\"a\"],"
        "\"additionalProperties\":false}}]}";

#define OTHER   "[C.]"
#define FRONT                                                                 \
    "\n\n<" OTHER "function_calls>\n"                                         \
    "<" OTHER "invoke name=\"f\">\n<" OTHER                                   \
    "parameter name=\"a\" string=\"true\">"
#define BACK                                                                  \
    "</" OTHER "parameter>\n</" OTHER "invoke>\n</" OTHER "function_calls>"

    static const struct {
        const char  *text;
        int          accepted;
    } t[] = {
        { FRONT BACK, 1 },
        { FRONT "C.CC" BACK, 1 },
        { FRONT "[C]" BACK, 1 },
        { FRONT "｜DSML｜" BACK, 1 },
        { FRONT "x" OTHER BACK, 0 },
        { "\n\n<｜DSML｜function_calls>\n", 0 }
    };

    assert_int_equal(dsa_grammar_compile(&g, dsa_strz(spec), dsa_strz(OTHER),
                                         &error), 0);

    v = vocabulary_bytes(0);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        if (grammar_accepts(g, v, 0, dsa_strz(t[i].text)) != t[i].accepted) {
            fail_msg("%s", t[i].text);
        }
    }

    /* the token itself, and not that of another model */

    few = dsa_vocabulary_create(4);
    assert_non_null(few);
    end = 3;
    assert_int_equal(dsa_vocabulary_add(few, 0, dsa_strz("\n\n<")), 0);
    assert_int_equal(dsa_vocabulary_add_control(few, 1, dsa_strz(OTHER)), 0);
    assert_int_equal(dsa_vocabulary_add_control(few, 2, dsa_strz(DSML)), 0);
    assert_int_equal(dsa_vocabulary_add_control(few, 3, dsa_strz("<end>")), 0);
    assert_int_equal(dsa_vocabulary_end(few, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(few), 0);

    m = dsa_matcher_create(g, few, dsa_str(NULL, 0));
    assert_non_null(m);
    assert_int_equal(dsa_matcher_accept(m, 0), 0);
    mask = 0xf;
    dsa_matcher_mask(m, &mask, 1);
    assert_int_equal(mask, 1 << 1);
    assert_int_equal(dsa_matcher_accept(m, 2), -1);
    assert_int_equal(dsa_matcher_accept(m, 1), 0);
    dsa_matcher_free(m);

    dsa_grammar_free(g);
    dsa_vocabulary_free(few);
    dsa_vocabulary_free(v);
}


#define CALLS      "\n\n<｜DSML｜function_calls>\n"
#define CALLS_END  "</｜DSML｜function_calls>"
#define INVOKE(n)  "<｜DSML｜invoke name=\"" n "\">\n"
#define INVOKE_END "</｜DSML｜invoke>\n"
#define PARAM(n, s, v)                                                        \
    "<｜DSML｜parameter name=\"" n "\" string=\"" s "\">" v "</｜DSML｜parameter>\n"

static void
check_tools(int control)
{
    size_t             i;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":true,"
        "\"parameters\":{\"type\":\"object\",\"properties\":{"
        "\"city\":{\"type\":\"string\"},"
        "\"unit\":{\"anyOf\":[{\"enum\":[\"C\",\"F\"]},{\"type\":\"null\"}]},"
        "\"days\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},"
        "\"required\":[\"city\",\"unit\"],\"additionalProperties\":false}},"
        "{\"name\":\"g\",\"strict\":false,\"parameters\":{\"allOf\":[]}}]}";

    static const char  many[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\","
        "\"text\":true,\"tools\":[{\"name\":\"g\"}]}";

    static const char *const  accepted[] = {
        CALLS INVOKE("f") PARAM("city", "true", "a \"b\"\n</x>\xc3\xa9")
        PARAM("unit", "true", "C") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "")
        PARAM("unit", "false", "null") PARAM("days", "false", "[1, 2]")
        INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END CALLS_END,
        CALLS INVOKE("g") PARAM("a", "true", "x") PARAM("b", "false", "{}")
        INVOKE_END CALLS_END
    };

    static const char *const  rejected[] = {
        "", "text",
        CALLS CALLS_END,
        CALLS INVOKE("h") "\n" INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "x") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "x")
        PARAM("unit", "true", "K") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("city", "true", "x")
        PARAM("unit", "false", "\"C\"") INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END,
        CALLS INVOKE("g") PARAM("b", "false", "{") INVOKE_END CALLS_END
    };

    v = vocabulary_bytes(control);
    g = grammar_of(spec);

    for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        if (!grammar_accepts(g, v, control, dsa_strz(accepted[i]))) {
            fail_msg("rejects %s", accepted[i]);
        }
    }

    for (i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (grammar_accepts(g, v, control, dsa_strz(rejected[i]))) {
            fail_msg("accepts %s", rejected[i]);
        }
    }

    dsa_grammar_free(g);

    g = grammar_of(many);

    assert_int_equal(grammar_accepts(g, v, control, dsa_strz("")), 1);
    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz("hello\n\n<b>")), 1);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz(
        "hello" CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END)), 1);
    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz("hello" CALLS)), 0);
    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz(CALLS CALLS_END)), 0);

    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


/* Calls, or one value of a schema; each has its own root of $ref. */

static void
check_union(int control)
{
    size_t             i;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","
        "\"properties\":{\"x\":{\"$ref\":\"#/$defs/d\"}},\"required\":[\"x\"],"
        "\"additionalProperties\":false,\"$defs\":{\"d\":{\"enum\":[1,2]}}}},"
        "\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":{"
        "\"type\":\"object\",\"properties\":{\"y\":{\"$ref\":\"#/$defs/d\"}},"
        "\"required\":[\"y\"],\"additionalProperties\":false,"
        "\"$defs\":{\"d\":{\"enum\":[7]}}}},{\"name\":\"g\"}]}";

    static const char  object[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\","
        "\"text\":{\"type\":\"json_object\"},\"tools\":[{\"name\":\"g\"}]}";

    static const char *const  accepted[] = {
        "{\"x\":1}", "{\"x\": 2}",
        CALLS INVOKE("f") PARAM("y", "false", "7") INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END CALLS_END
    };

    static const char *const  rejected[] = {
        "", "text", "{\"x\":7}", "{}", "[]", "{\"y\":7}",
        CALLS INVOKE("f") PARAM("y", "false", "1") INVOKE_END CALLS_END,
        CALLS INVOKE("f") PARAM("x", "false", "1") INVOKE_END CALLS_END,
        "{\"x\":1}" CALLS INVOKE("g") "\n" INVOKE_END CALLS_END,
        "text" CALLS INVOKE("g") "\n" INVOKE_END CALLS_END,
        CALLS INVOKE("g") "\n" INVOKE_END CALLS_END "{\"x\":1}",
        CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END
    };

    v = vocabulary_bytes(control);
    g = grammar_of(spec);

    for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        if (!grammar_accepts(g, v, control, dsa_strz(accepted[i]))) {
            fail_msg("rejects %s", accepted[i]);
        }
    }

    for (i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
        if (grammar_accepts(g, v, control, dsa_strz(rejected[i]))) {
            fail_msg("accepts %s", rejected[i]);
        }
    }

    dsa_grammar_free(g);

    g = grammar_of(object);

    assert_int_equal(grammar_accepts(g, v, control,
                                     dsa_strz("{\"a\":[null]}")), 1);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz(
        CALLS INVOKE("g") "\n" INVOKE_END INVOKE("g") "\n" INVOKE_END
        CALLS_END)), 1);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz("[]")), 0);
    assert_int_equal(grammar_accepts(g, v, control, dsa_strz("")), 0);

    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


/*
 * Parameters that are one of several closed objects, of which the first two
 * have no name in common, and the last ones have.
 */

static void
test_closed_parameters(void **state)
{
    size_t             i, k;
    dsa_buf_t          text;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    static const char *const  specs[] = {
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "false,\"tools\":[{"
        "\"name\":\"f\",\"strict\":true,\"parameters\":{\"oneOf\":["
        CLOSED("\"a\":{\"type\":\"integer\"}") ","
        CLOSED("\"b\":{\"type\":\"integer\"}") "]}}]}",

        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "false,\"tools\":[{"
        "\"name\":\"f\",\"strict\":true,\"parameters\":{\"oneOf\":["
        CLOSED("\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"}") ","
        CLOSED("\"b\":{\"type\":\"null\"}") "]}}]}"
    };

    static const struct {
        const char  *call;
        int          accepted[2];
    } t[] = {
        { INVOKE("f") PARAM("a", "false", "1") INVOKE_END, { 1, 0 } },
        { INVOKE("f") PARAM("b", "false", "1") INVOKE_END, { 1, 1 } },
        { INVOKE("f") PARAM("b", "false", "null") INVOKE_END, { 0, 1 } },
        { INVOKE("f") PARAM("a", "false", "1") PARAM("b", "false", "1")
          INVOKE_END, { 0, 1 } },
        { INVOKE("f") "\n" INVOKE_END, { 0, 0 } }
    };

    v = vocabulary_bytes(0);

    for (k = 0; k < 2; k++) {
        g = grammar_of(specs[k]);

        for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
            memset(&text, 0, sizeof(dsa_buf_t));
            dsa_buf_printf(&text, "%s%s%s", CALLS, t[i].call, CALLS_END);

            if (grammar_accepts(g, v, 0, dsa_str(text.data, text.len))
                != t[i].accepted[k])
            {
                fail_msg("%s: %s", specs[k], t[i].call);
            }

            dsa_buf_free(&text);
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v);
}


/* What is wrong in a union has the path of the schema that it is in. */

static void
test_union_errors(void **state)
{
    char                  spec[600];
    size_t                i;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const struct {
        const char  *text;
        const char  *parameters;
        const char  *path;
        const char  *message;
    } t[] = {
        { "{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\","
          "\"properties\":{\"a\":{\"contains\":{}}}}}", "{\"type\":\"object\"}",
          "properties.a", "\"contains\"" },
        { "{\"type\":\"json_schema\",\"schema\":{\"contains\":{}}}",
          "{\"type\":\"object\"}", "", "\"contains\"" },
        { "{\"type\":\"json_schema\",\"schema\":{\"type\":\"null\"}}",
          "{\"type\":\"object\",\"properties\":{\"a\":{\"contains\":{}}}}",
          "tools[0].function.parameters.properties.a", "\"contains\"" },
        { "{\"type\":\"json_schema\"}", "{\"type\":\"object\"}", "",
          "there is no schema" },
        { "{\"type\":\"tools\"}", "{\"type\":\"object\"}", "text",
          "expected json_object or json_schema" },
        { "7", "{\"type\":\"object\"}", "text",
          "expected a boolean or a spec" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        (void) snprintf(spec, sizeof(spec), "{\"type\":\"tools\",\"syntax\":"
                        "\"dsml\",\"calls\":\"one\",\"text\":%s,\"tools\":[{"
                        "\"name\":\"f\",\"strict\":true,\"parameters\":%s}]}",
                        t[i].text, t[i].parameters);

        assert_int_equal(dsa_grammar_compile(&g, dsa_strz(spec),
                                             dsa_strz(DSML), &error),
                         DSA_ERROR);
        assert_string_equal(error.path, t[i].path);

        if (strstr(error.message, t[i].message) == NULL) {
            fail_msg("%s: %s", spec, error.message);
        }
    }
}


static void
test_union(void **state)
{
    check_union(1);
    check_union(0);
}


/*
 * Of a tool that is not strict, what cannot be enforced is left out, and the
 * rest is enforced; a strict one with the same string is refused.
 */

#define LOOKAHEAD                                                             \
    "\"parameters\":{\"type\":\"object\",\"properties\":{"                   \
    "\"a\":{\"type\":\"string\",\"pattern\":\"(?=x)\"},"                     \
    "\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"],"              \
    "\"additionalProperties\":false}"

static void
test_tools_lenient(void **state)
{
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v;
    dsa_grammar_error_t   error;

    static const char  spec[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":false,"
        LOOKAHEAD "},{\"name\":\"g\",\"strict\":false,\"parameters\":"
        "{\"type\":\"object\",\"properties\":{\"<\":{}}}}]}";

    static const char  one[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":false,"
        LOOKAHEAD "}]}";

    static const char  strict[] =
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\","
        "\"text\":false,\"tools\":[{\"name\":\"f\",\"strict\":false,"
        LOOKAHEAD "},{\"name\":\"g\",\"strict\":true," LOOKAHEAD "}]}";

    static const char  good[] =
        CALLS INVOKE("f") PARAM("a", "true", "y") PARAM("b", "false", "1")
        INVOKE_END CALLS_END;

    static const char  bad[] =
        CALLS INVOKE("f") PARAM("a", "true", "y") PARAM("b", "false", "true")
        INVOKE_END CALLS_END;

    v = vocabulary_bytes(1);
    g = grammar_of(one);

    assert_int_equal(dsa_grammar_skipped(g), 1);
    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(good)), 1);
    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(bad)), 0);
    dsa_grammar_free(g);

    /* a name that no parameter can have: the arguments are any JSON then */

    g = grammar_of(spec);

    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(good)), 1);
    assert_int_equal(grammar_accepts(g, v, 1, dsa_strz(bad)), 1);
    dsa_grammar_free(g);

    assert_int_equal(dsa_grammar_compile(&g, dsa_strz(strict),
                                         dsa_strz("｜DSML｜"), &error),
                     DSA_ERROR);
    assert_string_equal(error.path, "tools[1].function.parameters.properties."
                                    "a.pattern");

    dsa_vocabulary_free(v);
}


static void
test_tools(void **state)
{
    check_tools(1);
}


/* A tokenizer without the control token spells its name. */

static void
test_tools_spelled(void **state)
{
    check_tools(0);
}


/*
 * A schema that is not strict and cannot be enforced, for whatever reason, is
 * any object; a tool is refused nevertheless.
 */

static void
test_optional(void **state)
{
    char                  spec[1000];
    uint32_t              i, k;
    dsa_grammar_t        *g;
    dsa_vocabulary_t     *v;
    dsa_grammar_error_t   error;

    /* a type, a name, no value, no end, too deep */

    static const char *const  bad[] = {
        "{\"properties\":{\"a\":{\"type\":7}}}",
        "{\"patternProperties\":{\"(\":{}}}",
        "false",
        "{\"$ref\":\"#\"}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},"
        "\"required\":[\"a\"]}"
    };

    static const char *const  around[] = {
        "%s",
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "%s,\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":{"
        "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}]}"
    };

    v = vocabulary_bytes(0);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (k = 0; k < 2; k++) {
            char  text[500];

            (void) snprintf(text, sizeof(text), "{\"type\":\"json_schema\","
                            "\"strict\":true,\"schema\":%s}", bad[i]);
            (void) snprintf(spec, sizeof(spec), around[k], text);

            if (dsa_grammar_compile(&g, dsa_strz(spec),
                                    dsa_strz(DSML), &error) == 0)
            {

                /* beside tools, a text without a value is no fault */

                assert_int_equal(k, 1);
                dsa_grammar_free(g);

            } else {
                assert_int_equal(error.no_memory, 0);
            }

            (void) snprintf(text, sizeof(text), "{\"type\":\"json_schema\","
                            "\"strict\":false,\"schema\":%s}", bad[i]);
            (void) snprintf(spec, sizeof(spec), around[k], text);

            if (k == 1 && (i == 2 || i == 4)) {
                continue;
            }

            g = grammar_of(spec);
            assert_int_equal(grammar_accepts(g, v, 0,
                                 dsa_strz("{\"x\":[1]}")), 1);
            assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("[1]")), 0);
            assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("\"a\"")), 0);
            assert_int_equal(dsa_grammar_skipped(g), 1);
            dsa_grammar_free(g);
        }
    }

    /* a schema that can be enforced is, and the tool has its path */

    g = grammar_of("{\"type\":\"json_schema\",\"strict\":false,\"schema\":"
                   "{\"const\":7}}");
    assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("7")), 1);
    assert_int_equal(grammar_accepts(g, v, 0, dsa_strz("{}")), 0);
    assert_int_equal(dsa_grammar_skipped(g), 0);
    dsa_grammar_free(g);

    assert_int_equal(dsa_grammar_compile(&g, dsa_strz(
        "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":"
        "{\"type\":\"json_schema\",\"strict\":false,\"schema\":{\"not\":1}},"
        "\"tools\":[{\"name\":\"f\"},{\"name\":\"g\",\"strict\":true,"
        "\"parameters\":{\"properties\":{\"a\":{\"unevaluatedItems\":1}}}}]}"),
        dsa_strz(DSML), &error), -1);
    assert_string_equal(error.path,
                        "tools[1].function.parameters.properties.a");
    assert_non_null(strstr(error.message, "\"unevaluatedItems\""));

    dsa_vocabulary_free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_tools_control),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_tools_lenient),
        cmocka_unit_test(test_tools_spelled),
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_closed_parameters),
        cmocka_unit_test(test_union_errors),
        cmocka_unit_test(test_optional)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
