
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


#define END        256              /* ids behind those of the bytes */
#define FIRST      257              /* of the control tokens */
#define SIZE       (FIRST + DSA_GLM_TOKENS)
#define WORDS      ((SIZE + 31) / 32)
#define WALKS      3000
#define WALK       6000             /* most tokens of an answer */

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

    end = END;
    assert_int_equal(dsa_vocabulary_add_control(v, end, dsa_strz("<end>")), 0);

    for (i = 0; control && i < DSA_GLM_TOKENS; i++) {
        assert_int_equal(dsa_vocabulary_add_control(v, FIRST + i,
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
            return FIRST + i;
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


static uint64_t  seed = 20261123;


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


/* One of the permitted ids, behind some steps rather a control token. */

static uint32_t
draw(const uint32_t *mask, uint32_t step)
{
    uint32_t  i, n;

    if (dice(100) < step / 4 + 5) {
        for (i = END; i < SIZE; i++) {
            if ((mask[i / 32] >> i % 32 & 1) != 0) {
                return i;
            }
        }
    }

    n = 0;

    for (i = 0; i < SIZE; i++) {
        n += mask[i / 32] >> i % 32 & 1;
    }

    assert_int_not_equal(n, 0);
    n = dice(n);

    for (i = 0; /* void */ ; i++) {
        if ((mask[i / 32] >> i % 32 & 1) != 0 && n-- == 0) {
            return i;
        }
    }
}


typedef struct {
    uint32_t    calls;
    dsa_buf_t   name;
    dsa_buf_t   arguments;
} answer_t;


static int
on_delta(void *ctx, dsa_delta_e what, uint32_t call, dsa_str_t text)
{
    answer_t  *a = ctx;

    assert_int_equal(a->calls > 1, 0);

    if (what == DSA_DELTA_CALL) {
        dsa_buf_add(&a->name, text.data, text.len);
        a->calls++;

    } else {
        assert_int_equal(what, DSA_DELTA_ARGUMENTS);
        dsa_buf_add(&a->arguments, text.data, text.len);
    }

    return DSA_OK;
}


/* Walks over the masks, and parses what was drawn. */

static void
walk(dsa_grammar_t *g, dsa_vocabulary_t *v, const dsa_types_t *types,
    answer_t *a)
{
    char            byte;
    uint32_t        id, step, mask[WORDS];
    dsa_parse_t    *p;
    dsa_matcher_t  *m;

    memset(a, 0, sizeof(answer_t));

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    p = dsa_parse_create(&dsa_glm_5_2, 0, 1, (1u << DSA_GLM_TOKENS) - 1,
                         on_delta, a);
    assert_true(m != NULL && p != NULL);

    dsa_parse_types(p, types);

    for (step = 0; step < WALK; step++) {
        memset(mask, 0xff, sizeof(mask));
        dsa_matcher_mask(m, mask, WORDS);
        id = draw(mask, step);

        assert_int_equal(dsa_matcher_accept(m, id), 0);

        if (id == END) {
            break;
        }

        if (id >= FIRST) {
            assert_int_equal(dsa_parse_feed_control(p,
                                 dsa_glm_tokens[id - FIRST].name), DSA_OK);

        } else {
            byte = (char) id;
            assert_int_equal(dsa_parse_feed(p, dsa_str(&byte, 1)), DSA_OK);
        }
    }

    assert_in_range(step, 1, WALK - 1);
    assert_int_equal(dsa_parse_end(p, 1), DSA_OK);

    dsa_parse_destroy(p);
    dsa_matcher_free(m);
}


static const dsa_json_t *
member(const dsa_json_t *object, const char *name)
{
    const dsa_json_t  *v;

    v = dsa_json_get(object, name);
    assert_non_null(v);

    return v;
}


static void
test_walks(void **state)
{
    uint32_t            i;
    answer_t            a;
    dsa_err_t           err;
    dsa_json_t         *tools, *root;
    dsa_arena_t        *arena;
    dsa_types_t        *types;
    dsa_grammar_t      *g;
    const dsa_json_t   *v;
    dsa_vocabulary_t   *voc;

    static const char  properties[] =
        "\"s\":{\"type\":\"string\",\"maxLength\":40},"
        "\"i\":{\"type\":\"integer\"},\"n\":{\"type\":\"number\"},"
        "\"b\":{\"type\":\"boolean\"},\"e\":{\"enum\":[\"1\",\"true\"]},"
        "\"sn\":{\"type\":[\"string\",\"null\"],\"maxLength\":9},"
        "\"o\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":"
        "\"string\",\"maxLength\":9}},\"required\":[\"x\"],"
        "\"additionalProperties\":false},\"a\":{\"type\":\"array\","
        "\"maxItems\":3,\"items\":{\"type\":\"integer\"}}";
    static const char  rest[] =
        ",\"required\":[\"s\",\"i\",\"n\",\"b\",\"e\",\"sn\",\"o\",\"a\"],"
        "\"additionalProperties\":false";

    dsa_buf_t  spec = { 0 }, list = { 0 };

    dsa_buf_printf(&spec, "{\"type\":\"tools\",\"syntax\":\"glm\",\"calls\":"
                   "\"one\",\"text\":false,\"tools\":[{\"name\":\"f\","
                   "\"strict\":true,\"parameters\":{\"type\":\"object\","
                   "\"properties\":{%s}%s}}]}", properties, rest);
    dsa_buf_add(&spec, "", 1);
    dsa_buf_printf(&list, "[{\"type\":\"function\",\"function\":{\"name\":"
                   "\"f\",\"parameters\":{\"type\":\"object\","
                   "\"properties\":{%s}%s}}}]", properties, rest);

    arena = dsa_arena_create(16 << 20);
    tools = dsa_json_parse(arena, list.data, list.len, 64, &err);
    assert_non_null(tools);
    types = dsa_types_create(tools);
    assert_non_null(types);

    g = compile(spec.data);
    voc = vocabulary(1);

    for (i = 0; i < WALKS; i++) {
        walk(g, voc, types, &a);

        assert_int_equal(a.calls, 1);
        assert_int_equal(a.name.len, 1);

        dsa_arena_destroy(arena);
        arena = dsa_arena_create(16 << 20);
        root = dsa_json_parse(arena, a.arguments.data, a.arguments.len, 64,
                              &err);

        if (root == NULL) {
            fail_msg("%.*s: %s", (int) a.arguments.len, a.arguments.data,
                     err.text);
        }

        assert_int_equal(root->n, 8);
        assert_int_equal(member(root, "s")->type, DSA_JSON_STRING);
        assert_int_equal(member(root, "i")->type, DSA_JSON_INTEGER);
        v = member(root, "n");
        assert_true(v->type == DSA_JSON_INTEGER || v->type == DSA_JSON_FLOAT);
        v = member(root, "b");
        assert_true(v->type == DSA_JSON_TRUE || v->type == DSA_JSON_FALSE);
        assert_int_equal(member(root, "e")->type, DSA_JSON_STRING);
        v = member(root, "sn");
        assert_true(v->type == DSA_JSON_STRING || v->type == DSA_JSON_NULL);
        assert_int_equal(member(member(root, "o"), "x")->type,
                         DSA_JSON_STRING);

        for (v = member(root, "a")->first; v != NULL; v = v->next) {
            assert_int_equal(v->type, DSA_JSON_INTEGER);
        }

        dsa_buf_free(&a.name);
        dsa_buf_free(&a.arguments);
    }

    dsa_types_destroy(types);
    dsa_arena_destroy(arena);
    dsa_grammar_free(g);
    dsa_vocabulary_free(voc);
    dsa_buf_free(&spec);
    dsa_buf_free(&list);
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
