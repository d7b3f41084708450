
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The structure that a request demands of its answer: the spec, and what is
 * refused.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "context/deepseek/deepseek.h"
#include "context/format.h"
#include "t/unit/chat.h"


#define F(x)        "\"response_format\":" x
#define OBJECT      F("{\"type\":\"json_object\"}")
#define SCHEMA(x)   F("{\"type\":\"json_schema\",\"json_schema\":" x "}")
#define S           "{\"type\":\"object\",\"$ref\":\"#\"}"
#define SPEC_OF(x)  "{\"type\":\"json_schema\",\"strict\":" x ",\"schema\":"   \
                    "{\"type\": \"object\", \"$ref\": \"#\"}}"
#define SPEC_LOOSE  SPEC_OF("false")
#define SPEC_S      SPEC_OF("true")
#define FN(n, x)    "{\"type\":\"function\",\"function\":{\"name\":\"" n "\""  \
                    x "}}"
#define P           ",\"parameters\":{\"type\":\"object\"}"
#define STRICT      ",\"strict\":true"
#define TOOLS(x)    "\"tools\":[" x "]"
#define CHOICE(x)   "\"tool_choice\":" x
#define NAMED(n)    CHOICE("{\"type\":\"function\","                       \
                           "\"function\":{\"name\":\"" n "\"}}")
#define ONE         "\"parallel_tool_calls\":false"
#define Q(x)        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","      \
                    "\"content\":\"json\"}]," x "}"

#define SPEC(calls, text, tools)                                              \
    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"" calls "\","         \
    "\"text\":" text ",\"tools\":[" tools "]}"
#define ANY         "{\"type\":\"json_object\"}"
#define A           "{\"name\":\"a\",\"strict\":false}"
#define A_FORCED    "{\"name\":\"a\",\"strict\":false,"                       \
                    "\"parameters\":{\"type\": \"object\"}}"
#define B           "{\"name\":\"b\",\"strict\":true,"                        \
                    "\"parameters\":{\"type\": \"object\"}}"


static const struct {
    const char  *in;
    const char  *spec;          /* "": none */
} specs[] = {
    { Q("\"n\":1"), "" },
    { Q(F("null")), "" },
    { Q(F("{\"type\":\"text\"}")), "" },
    { Q(OBJECT), "{\"type\":\"json_object\"}" },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":" S "}")), SPEC_LOOSE },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":" S ",\"strict\":null}")),
      SPEC_LOOSE },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":" S ",\"strict\":false}")),
      SPEC_LOOSE },
    { Q(SCHEMA("{\"name\":\"x\",\"description\":\"d\",\"schema\":" S
               ",\"strict\":true}")), SPEC_S },

    /* tools that the model may call */

    { Q(TOOLS(FN("a", P))), "" },
    { Q(TOOLS("") "," CHOICE("\"auto\"")), "" },
    { Q(TOOLS(FN("a", P)) "," CHOICE("\"auto\"")), "" },
    { Q(TOOLS(FN("a", P)) "," OBJECT), SPEC("many", ANY, A) },
    { Q(TOOLS(FN("b", STRICT P)) "," OBJECT), SPEC("many", ANY, B) },
    { Q(TOOLS(FN("a", P)) "," ONE "," OBJECT), SPEC("one", ANY, A) },
    { Q(TOOLS(FN("a", P)) "," SCHEMA("{\"name\":\"x\",\"schema\":" S "}")),
      SPEC("many", SPEC_LOOSE, A) },
    { Q(TOOLS(FN("b", STRICT P)) "," CHOICE("\"auto\"") ","
        SCHEMA("{\"name\":\"x\",\"schema\":" S ",\"strict\":true}")),
      SPEC("many", SPEC_S, B) },
    { Q(TOOLS(FN("a", P)) "," ONE), SPEC("one", "true", A) },
    { Q(TOOLS(FN("a", P) "," FN("b", STRICT P))),
      SPEC("many", "true", A "," B) },
    { Q(TOOLS(FN("b", STRICT))),
      SPEC("many", "true", "{\"name\":\"b\",\"strict\":true}") },

    /* that it must not call */

    { Q(TOOLS(FN("b", STRICT P)) "," CHOICE("\"none\"")), "" },
    { Q(TOOLS(FN("a", P)) "," CHOICE("\"none\"") "," OBJECT),
      "{\"type\":\"json_object\"}" },
    { Q(ONE), "" },

    /* that it must call */

    { Q(TOOLS(FN("a", P)) "," CHOICE("\"required\"")),
      SPEC("many", "false", A_FORCED) },
    { Q(TOOLS(FN("a", P) "," FN("b", STRICT P)) "," ONE ","
        CHOICE("\"required\"")), SPEC("one", "false", A_FORCED "," B) },
    { Q(TOOLS(FN("a", P) "," FN("b", STRICT P)) "," NAMED("b")),
      SPEC("one", "false", B) },
    { Q(TOOLS(FN("a", P) "," FN("b", STRICT P)) "," NAMED("a")),
      SPEC("one", "false", A_FORCED) },
    { Q(TOOLS(FN("a", P)) "," CHOICE("\"required\"") "," OBJECT),
      SPEC("many", "false", A_FORCED) },
    { Q(TOOLS(FN("a", P)) "," NAMED("a") ","
        SCHEMA("{\"name\":\"x\",\"schema\":" S "}")),
      SPEC("one", "false", A_FORCED) }
};


static const struct {
    const char  *in;
    const char  *param;
    const char  *message;       /* a part of it */
} refused[] = {
    { Q(F("7")), "response_format", "an object whose type is `text`" },
    { Q(F("{}")), "response_format.type",
      "expected `text`, `json_object` or `json_schema`" },
    { Q(F("{\"type\":\"xml\"}")), "response_format.type",
      "unknown variant `xml`" },
    { Q(F("{\"type\":\"json_schema\"}")), "response_format.json_schema",
      "missing field, expected an object with name and schema" },
    { Q(SCHEMA("[]")), "response_format.json_schema", "sequence" },
    { Q(SCHEMA("{\"schema\":{}}")), "response_format.json_schema.name",
      "'^[a-zA-Z0-9_-]{1,64}$'" },
    { Q(SCHEMA("{\"name\":\"a b\",\"schema\":{}}")),
      "response_format.json_schema.name", "'^[a-zA-Z0-9_-]{1,64}$'" },
    { Q(SCHEMA("{\"name\":7,\"schema\":{}}")),
      "response_format.json_schema.name", "expected a string" },
    { Q(SCHEMA("{\"name\":\"x\"}")), "response_format.json_schema.schema",
      "missing field, expected a JSON Schema object" },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":true}")),
      "response_format.json_schema.schema", "boolean `true`" },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":{},\"strict\":1}")),
      "response_format.json_schema.strict", "expected a boolean" },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":{},\"description\":1}")),
      "response_format.json_schema.description", "expected a string" },
    { Q(SCHEMA("{\"name\":\"x\",\"schema\":{\"const\":1e999}}")),
      "response_format", "out of range" },

    { Q(CHOICE("\"required\"")), "tool_choice", "`required` without tools" },
    { Q(TOOLS("") "," CHOICE("\"required\"")), "tool_choice",
      "at least one tool" },
    { Q(NAMED("f")), "tool_choice.function.name",
      "no tool has the name \"f\"" },
    { Q(TOOLS(FN("a", "")) "," NAMED("f")), "tool_choice.function.name",
      "no tool has the name \"f\"" },
    { Q(CHOICE("\"any\"")), "tool_choice", "unknown variant `any`" },
    { Q(CHOICE("7")), "tool_choice", "`none`, `auto`, `required` or" },
    { Q(CHOICE("{}")), "tool_choice.type", "missing field" },
    { Q(CHOICE("{\"type\":7}")), "tool_choice.type", "integer `7`" },
    { Q(CHOICE("{\"type\":\"allowed_tools\"}")), "tool_choice.type",
      "unknown variant `allowed_tools`, expected `function`" },
    { Q(CHOICE("{\"type\":\"function\"}")), "tool_choice.function",
      "missing field" },
    { Q(CHOICE("{\"type\":\"function\",\"function\":{}}")),
      "tool_choice.function.name", "missing field" },
    { Q(CHOICE("{\"type\":\"function\",\"function\":{\"name\":1}}")),
      "tool_choice.function.name", "expected a string" },
    { Q("\"parallel_tool_calls\":0"), "parallel_tool_calls", "a boolean" },

    /* what cannot be honored together */

    { Q(OBJECT ",\"ignore_eos\":true"), "ignore_eos", "expected false" },
    { "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"json\"}"
      ",{\"role\":\"assistant\",\"content\":\"{\",\"prefix\":true}],"
      OBJECT "}", "response_format", "continues a prefix" },
    { "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}"
      ",{\"role\":\"assistant\",\"content\":\"{\",\"prefix\":true}],"
      TOOLS(FN("a", "")) "," CHOICE("\"required\"") "}", "tool_choice",
      "continues a prefix" }
};


static int
read_format(dsa_format_t *format, dsa_arena_t *arena, const char *text,
    dsa_refusal_t *refusal)
{
    dsa_chat_t  chat;

    if (read_chat(&chat, arena, text, strlen(text), &as_api, refusal)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_format_spec(format, &dsa_deepseek, &chat, arena, refusal);
}


static void
test_specs(void **state)
{
    size_t          i;
    dsa_arena_t    *arena;
    dsa_format_t    format;
    dsa_refusal_t   refusal;

    for (i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        arena = dsa_arena_create(MEMORY);
        assert_non_null(arena);

        if (read_format(&format, arena, specs[i].in, &refusal) != DSA_OK) {
            fail_msg("%s: %s", specs[i].in, refusal.message);
        }

        if (!dsa_str_eqz(format.spec, specs[i].spec)) {
            fail_msg("%s: %.*s", specs[i].in, (int) format.spec.len,
                     format.spec.data);
        }

        dsa_arena_destroy(arena);
    }
}


static void
test_refused(void **state)
{
    size_t          i;
    dsa_arena_t    *arena;
    dsa_format_t    format;
    dsa_refusal_t   refusal;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        arena = dsa_arena_create(MEMORY);
        assert_non_null(arena);

        if (read_format(&format, arena, refused[i].in, &refusal) == DSA_OK) {
            fail_msg("%s: accepted", refused[i].in);
        }

        assert_int_equal(refusal.status, 400);

        if (strcmp(refusal.param, refused[i].param) != 0
            || strstr(refusal.message, refused[i].message) == NULL)
        {
            fail_msg("%s: %s: %s", refused[i].in, refusal.param,
                     refusal.message);
        }

        dsa_arena_destroy(arena);
    }
}


/* The path of a schema's error becomes the path in the request. */

static void
test_paths(void **state)
{
    size_t          i, k;
    const char     *param;
    dsa_format_t    format;
    dsa_refusal_t   refusal;

    static const dsa_format_names_t  names[] = {
        { "response_format", "response_format.json_schema.schema",
          ".function", "parameters" },
        { "of", "of.schema", "", "input_schema" }
    };

    static const struct {
        unsigned     tools;
        unsigned     schema;
        uint32_t     first;
        const char  *path;
        const char  *chat;
        const char  *other;
    } t[] = {
        { 0, 1, 0, "", "response_format.json_schema.schema", "of.schema" },
        { 0, 1, 0, "properties.a",
          "response_format.json_schema.schema.properties.a",
          "of.schema.properties.a" },
        { 0, 1, 0, "[2]", "response_format.json_schema.schema[2]",
          "of.schema[2]" },
        { 1, 0, 0, "tools[0].function.parameters",
          "tools[0].function.parameters", "tools[0].input_schema" },
        { 1, 0, 0, "tools[12].function.parameters.items",
          "tools[12].function.parameters.items",
          "tools[12].input_schema.items" },
        { 1, 0, 3, "tools[0].function.parameters.properties.a",
          "tools[3].function.parameters.properties.a",
          "tools[3].input_schema.properties.a" },
        { 1, 0, 1, "tools[0].function.name", "tools[1].function.name",
          "tools[1].name" },
        { 1, 0, 0, "", "tools", "tools" },
        { 1, 1, 0, "tools[1].function.parameters",
          "tools[1].function.parameters", "tools[1].input_schema" },
        { 1, 1, 0, "properties.a",
          "response_format.json_schema.schema.properties.a",
          "of.schema.properties.a" }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        for (k = 0; k < 2; k++) {
            memset(&format, 0, sizeof(format));
            memset(&refusal, 0, sizeof(refusal));
            format.tools = t[i].tools;
            format.schema = t[i].schema;
            format.first_tool = t[i].first;
            format.names = &names[k];
            param = k == 0 ? t[i].chat : t[i].other;

            assert_int_equal(dsa_format_refuse(&format, t[i].path, "is wrong",
                                               &refusal),
                             DSA_ERROR);
            assert_int_equal(refusal.status, 400);
            assert_string_equal(refusal.param, param);
            assert_memory_equal(refusal.message, param, strlen(param));
            assert_string_equal(refusal.message + strlen(param),
                                ": is wrong");
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_specs),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_paths)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
