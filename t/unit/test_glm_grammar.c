
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Calls in the syntax of GLM: which answers a spec permits, and that the parser
 * reads each answer that a walk over the masks writes as arguments of the types
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
#include "context/glm/glm.h"
#include "context/parse.h"
#include "grammar/grammar.h"
#include "t/unit/walk.h"


#define SIZE       (WALK_CONTROL + DSA_GLM_TOKENS)
#define WORDS      ((SIZE + 31) / 32)

#define CALL(x)    "<tool_call>" x "</tool_call>"
#define ARG(k, v)  "<arg_key>" k "</arg_key><arg_value>" v "</arg_value>"

#define SPEC(calls, text, tools)                                              \
    "{\"type\":\"tools\",\"syntax\":\"glm\",\"calls\":\"" calls "\","         \
    "\"text\":" text ",\"tools\":[" tools "]}"

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

    for (i = 0; control && i < DSA_GLM_TOKENS; i++) {
        assert_int_equal(dsa_vocabulary_add_control(v, WALK_CONTROL + i,
                                                    dsa_glm_tokens[i].name),
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

    if (dsa_grammar_compile(&g, dsa_strz(spec), dsa_strz("<tool_call>"),
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

    for (i = 0; control && i < DSA_GLM_TOKENS; i++) {
        name = dsa_glm_tokens[i].name;

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
          { CALL("f" ARG("s", "")), CALL("f" ARG("s", "a < \"b\"\n")),
            CALL("f" ARG("s", "<arg_x>") ARG("n", "-3")) },
          { CALL("f"), CALL("g" ARG("s", "")), "x" CALL("f" ARG("s", "")),
            CALL("f" ARG("n", "1")), CALL("f" ARG("s", "") ARG("n", "\"1\"")),
            CALL("f" ARG("s", "") ARG("s", "")),
            CALL("f" ARG("s", "")) CALL("f" ARG("s", "")),
            "<tool_call>f" ARG("s", ""), "" } },

        { SPEC("many", "true", STRICT("f", "", CLOSED) ","
                               STRICT("g", "", CLOSED)),
          { "", "text", CALL("f"), "text" CALL("f") CALL("g"),
            CALL("g") CALL("g") },
          { CALL("f") "text", CALL("h"), CALL("f\n"),
            CALL("f" ARG("a", "1")) } },

        /* not strict: any arguments */

        { SPEC("one", "false", "{\"name\":\"f\"}"),
          { CALL("f"), CALL("f" ARG("a", "1") ARG("b", "x")),
            CALL("f" ARG("a", "{\"b\": [1]}")) },
          { CALL("f" ARG("a b", "1")), CALL("f<arg_key>a</arg_key>") } },

        /* an answer of JSON, or a call */

        { SPEC("one", "{\"type\":\"json_object\"}", STRICT("f", "", CLOSED)),
          { "{}", "{\"a\": \"<tool_call>\"}", CALL("f") },
          { "x", "{}" CALL("f") } },

        /* patterns, lengths, constants, arrays and objects */

        { SPEC("one", "false",
               STRICT("f", "\"p\":{\"type\":\"string\",\"pattern\":"
                      "\"^<[a-z]+>$\"},\"l\":{\"type\":\"string\","
                      "\"maxLength\":3},\"e\":{\"enum\":[\"1\",2,\"<b>\"]},"
                      "\"a\":{\"type\":\"array\",\"items\":{\"type\":"
                      "\"string\"}}", CLOSED)),
          { CALL("f" ARG("p", "<ab>")), CALL("f" ARG("l", "<<>")),
            CALL("f" ARG("e", "1")), CALL("f" ARG("e", "2")),
            CALL("f" ARG("e", "<b>")),
            CALL("f" ARG("a", "[\"x\", \"</arg\"]")) },
          { CALL("f" ARG("p", "ab")), CALL("f" ARG("l", "<<<>")),
            CALL("f" ARG("e", "3")), CALL("f" ARG("a", "[1]")),
            CALL("f" ARG("a", "x")) } },

        /* a tool whose only argument has a grammar of its own */

        { SPEC("one", "false", "{\"name\":\"f\",\"input\":{\"syntax\":"
               "\"lark\",\"definition\":\"start: /<[a-z]+>/\"}}"),
          { CALL("f" ARG("input", "<div>")) },
          { CALL("f" ARG("input", "div")), CALL("f"),
            CALL("f" ARG("other", "<div>")) } }
    };

    v[0] = vocabulary(0);
    v[1] = vocabulary(1);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = compile(cases[i].spec);

        for (k = 0; k < 2; k++) {
            for (n = 0; n < 8 && cases[i].yes[n] != NULL; n++) {
                is = accepts(g, v[k], (int) k, cases[i].yes[n]);

                if (!is && !(k == 1 && strstr(cases[i].yes[n], "\"<tool_call>")
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
        { SPEC("one", "false", STRICT("f", "\" a\":{}", CLOSED)),
          "tools[0].function.parameters.properties. a",
          "a parameter cannot have this name" },
        { SPEC("one", "false", STRICT("f", "\"<a>\":{}", CLOSED)),
          "tools[0].function.parameters.properties.<a>",
          "a parameter cannot have this name" },
        { "{\"type\":\"tools\",\"syntax\":\"xml\",\"calls\":\"one\",\"text\":"
          "false,\"tools\":[{\"name\":\"f\"}]}",
          "syntax",
          "expected \"deepseek-v3.1\", \"dsml\" or \"glm\"" }
    };

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_not_equal(dsa_grammar_compile(&g, dsa_strz(refused[i].spec),
                                                 dsa_strz("<tool_call>"),
                                                 &error), 0);
        assert_string_equal(error.path, refused[i].path);
        assert_non_null(strstr(error.message, refused[i].text));
    }
}


static void
test_walks(void **state)
{
    dsa_err_t          err;
    dsa_json_t        *tools;
    dsa_arena_t       *arena;
    dsa_types_t       *types;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *voc;

    static const char  list[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
        "\"type\":\"object\",\"properties\":{" WALK_PROPERTIES "}" WALK_REST
        "}}}]";

    arena = dsa_arena_create(16 << 20);
    tools = dsa_json_parse(arena, list, sizeof(list) - 1, 64, &err);
    assert_non_null(tools);
    types = dsa_types_create(tools);
    assert_non_null(types);

    g = compile(SPEC("one", "false", STRICT("f", WALK_PROPERTIES, WALK_REST)));
    voc = vocabulary(1);

    check_walks(g, voc, &dsa_glm_5_2, types);

    dsa_types_destroy(types);
    dsa_arena_destroy(arena);
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
