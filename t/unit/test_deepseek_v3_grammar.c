
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Calls in the syntax of DeepSeek-V3.1: which answers a spec permits, and that
 * the parser reads each answer that a walk over the masks writes as arguments
 * that the schema demands.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "context/deepseek/v3.h"
#include "context/parse.h"
#include "grammar/grammar.h"
#include "t/unit/walk.h"


#define SIZE       (WALK_CONTROL + DSA_V3_1_TOKENS)
#define WORDS      ((SIZE + 31) / 32)

#define BLOCK(x)   DSA_V3_1_CALLS x DSA_V3_1_CALLS_END
#define CALL(n, a) DSA_V3_1_CALL n DSA_V3_1_SEPARATOR a DSA_V3_1_CALL_END
#define ONE(n, a)  BLOCK(CALL(n, a))

#define SPEC(calls, text, tools)                                              \
    "{\"type\":\"tools\",\"syntax\":\"deepseek-v3.1\",\"calls\":\"" calls    \
    "\",\"text\":" text ",\"tools\":[" tools "]}"

#define STRICT(name, properties, rest)                                        \
    "{\"name\":\"" name "\",\"strict\":true,\"parameters\":{\"type\":"        \
    "\"object\",\"properties\":{" properties "}" rest "}}"

#define CLOSED     ",\"additionalProperties\":false"


/* A token for each byte, an end and the control tokens, if control is 1. */

static dsa_vocabulary_t *
vocabulary(int control)
{
    char               byte;
    uint32_t           i, end;
    dsa_vocabulary_t  *v;

    v = dsa_vocabulary_create(SIZE);
    assert_non_null(v);

    for (i = 0; i < 256; i++) {
        byte = (char) i;
        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(&byte, 1)), 0);
    }

    end = WALK_END;
    assert_int_equal(dsa_vocabulary_add_control(v, end, dsa_strz("<end>")), 0);

    for (i = 0; control && i < DSA_V3_1_TOKENS; i++) {
        assert_int_equal(dsa_vocabulary_add_control(v, WALK_CONTROL + i,
                                                    dsa_v3_1_tokens[i].name),
                         0);
    }

    assert_int_equal(dsa_vocabulary_end(v, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    return v;
}


static dsa_grammar_t *
compile(const char *spec)
{
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    if (dsa_grammar_compile(&g, dsa_strz(spec), dsa_strz(DSA_V3_1_CALLS),
                            &error) != 0)
    {
        fail_msg("%s: \"%s\": %s", spec, error.path, error.message);
    }

    return g;
}


/* The id of the token at the front of a text, and its length. */

static uint32_t
token(const char *text, int control, size_t *n)
{
    uint32_t   i;
    dsa_str_t  name;

    for (i = 0; control && i < DSA_V3_1_TOKENS; i++) {
        name = dsa_v3_1_tokens[i].name;

        if (strncmp(text, name.data, name.len) == 0) {
            *n = name.len;
            return WALK_CONTROL + i;
        }
    }

    *n = 1;

    return (uint8_t) *text;
}


/* 1: the text is a whole answer. */

static int
accepts(dsa_grammar_t *g, dsa_vocabulary_t *v, int control, const char *text)
{
    int             rc;
    size_t          n;
    uint32_t        id, mask[WORDS];
    dsa_matcher_t  *m;

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);

    for (rc = 1; *text != '\0' && rc; text += n) {
        id = token(text, control, &n);

        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, WORDS);

        rc = dsa_matcher_accept(m, id) == 0;
        assert_int_equal(rc, mask[id / 32] >> id % 32 & 1);
    }

    rc = rc && dsa_matcher_complete(m);
    dsa_matcher_free(m);

    return rc;
}


static void
test_cases(void **state)
{
    int                is;
    size_t             i, k, n;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v[2];

    static const struct {
        const char  *spec;
        const char  *yes[8];
        const char  *no[10];
    } cases[] = {
        { SPEC("one", "false", STRICT("f", "\"s\":{\"type\":\"string\"},"
                                      "\"n\":{\"type\":\"integer\"}",
                                      CLOSED ",\"required\":[\"s\"]")),
          { ONE("f", "{\"s\":\"\"}"), ONE("f", "{\"s\": \"a < \\\"b\\\"\\n\"}"),
            ONE("f", "{\"s\": \"<x>\", \"n\": -3}"),
            ONE("f", "{\n  \"s\": \"日\"\n}") },
          { ONE("f", "{}"), ONE("g", "{\"s\": \"\"}"),
            "x" ONE("f", "{\"s\": \"\"}"), ONE("f", "{\"n\": 1}"),
            ONE("f", "{\"s\": \"\", \"n\": \"1\"}"),
            ONE("f", " {\"s\": \"\"}"), ONE("f", "{\"s\": \"\"} "),
            BLOCK(CALL("f", "{\"s\": \"\"}") CALL("f", "{\"s\": \"\"}")),
            CALL("f", "{\"s\": \"\"}"), "" } },

        { SPEC("many", "true", STRICT("f", "", CLOSED) ","
                               STRICT("g", "", CLOSED)),
          { "", "text", ONE("f", "{}"),
            "text" BLOCK(CALL("f", "{}") CALL("g", "{}")),
            BLOCK(CALL("g", "{}") CALL("g", "{}")) },
          { ONE("f", "{}") "text", ONE("h", "{}"), ONE("f", ""),
            ONE("f", "{\"a\": 1}"), BLOCK(""), ONE("f", "{}") ONE("g", "{}"),
            BLOCK(CALL("f", "{}") "\n" CALL("g", "{}")), ONE("f", "null"),
            DSA_V3_1_CALLS CALL("f", "{}"), ONE("f\n", "{}") } },

        /* not strict, or without a schema: any object */

        { SPEC("one", "false", "{\"name\":\"f\"}"),
          { ONE("f", "{}"), ONE("f", "{\"a\": 1, \"b c\": [\"x\", {}]}") },
          { ONE("f", "[]"), ONE("f", "1"), ONE("f", "\"{}\"") } },
        { SPEC("one", "false", "{\"name\":\"f\",\"strict\":true,"
               "\"parameters\":{\"anyOf\":[{\"type\":\"object\"},"
               "{\"type\":\"integer\"}]}}"),
          { ONE("f", "{}"), ONE("f", "{\"a\": null}") },
          { ONE("f", "1"), ONE("f", "{\"a\"}") } },
        { SPEC("one", "false", "{\"name\":\"f\",\"strict\":true,"
               "\"parameters\":{\"$ref\":\"#/$defs/p\",\"$defs\":{\"p\":{"
               "\"type\":\"object\",\"properties\":{\"c\":{\"$ref\":"
               "\"#/$defs/p\"}}" CLOSED "}}}}"),
          { ONE("f", "{}"), ONE("f", "{\"c\": {\"c\": {}}}") },
          { ONE("f", "{\"c\": 1}"), ONE("f", "{\"d\": {}}") } },

        /* an answer of JSON, or a call */

        { SPEC("one", "{\"type\":\"json_object\"}", STRICT("f", "", CLOSED)),
          { "{}", "{\"a\": \"" DSA_V3_1_CALLS "\"}", ONE("f", "{}") },
          { "x", "{}" ONE("f", "{}") } },

        /* counts, names and negations, which a call with parts does not have */

        { SPEC("one", "false", STRICT("f", "\" a<\":{\"type\":\"integer\"},"
               "\"b\":{}", CLOSED ",\"minProperties\":2")),
          { ONE("f", "{\" a<\": 1, \"b\": 2}") },
          { ONE("f", "{\" a<\": 1}"), ONE("f", "{}") } },

        /* a tool whose only argument has a grammar of its own */

        { SPEC("one", "false", "{\"name\":\"f\",\"input\":{\"syntax\":"
               "\"lark\",\"definition\":\"start: /<[a-z]+>/ \\\"\\\\\\\"\\\\n"
               "\\\"\"}}"),
          { ONE("f", "{\"input\": \"<div>\\\"\\n\"}") },
          { ONE("f", "{\"input\": \"<div>\"}"), ONE("f", "{}"),
            ONE("f", "{\"input\": \"<div>\"\n\"}"),
            ONE("f", "{\"other\": \"<div>\\\"\\n\"}"),
            ONE("f", "{\"input\": \"<div>\\\"\\n\", \"a\": 1}") } }
    };

    v[0] = vocabulary(0);
    v[1] = vocabulary(1);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = compile(cases[i].spec);

        for (k = 0; k < 2; k++) {
            for (n = 0; n < 8 && cases[i].yes[n] != NULL; n++) {
                is = accepts(g, v[k], (int) k, cases[i].yes[n]);

                if (!is && !(k == 1
                             && strstr(cases[i].yes[n], "\"" DSA_V3_1_CALLS)
                                != NULL))
                {
                    fail_msg("%s\n%s is not permitted", cases[i].spec,
                             cases[i].yes[n]);
                }
            }

            for (n = 0; k == 1 && n < 10 && cases[i].no[n] != NULL; n++) {
                if (accepts(g, v[k], (int) k, cases[i].no[n])) {
                    fail_msg("%s\n%s is permitted", cases[i].spec,
                             cases[i].no[n]);
                }
            }
        }

        dsa_grammar_free(g);
    }

    dsa_vocabulary_free(v[0]);
    dsa_vocabulary_free(v[1]);
}


static void
test_refused(void **state)
{
    size_t                i;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const struct {
        const char  *spec;
        const char  *path;
        const char  *text;
    } refused[] = {
        { SPEC("one", "false", "{\"name\":\"f\",\"strict\":true,"
               "\"parameters\":{\"type\":\"integer\"}}"),
          "tools[0].function.parameters.type", "expected type \"object\"" },
        { SPEC("one", "false", STRICT("f", "\"a\":{\"contains\":{}}", CLOSED)),
          "tools[0].function.parameters.properties.a",
          "not supported" },
        { SPEC("one", "false", "{\"name\":\"<f>\"}"),
          "tools[0].function.name", "it is not a name" }
    };

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_not_equal(dsa_grammar_compile(&g, dsa_strz(refused[i].spec),
                                                 dsa_strz(DSA_V3_1_CALLS),
                                                 &error), 0);
        assert_string_equal(error.path, refused[i].path);
        assert_non_null(strstr(error.message, refused[i].text));
    }
}


static void
test_walks(void **state)
{
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *voc;

    g = compile(SPEC("one", "false", STRICT("f", WALK_PROPERTIES, WALK_REST)));
    voc = vocabulary(1);

    check_walks(g, voc, &dsa_deepseek_v3_1, NULL);

    dsa_grammar_free(g);
    dsa_vocabulary_free(voc);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_walks)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
