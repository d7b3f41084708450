
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The requests that context/chat.c, message.c and check.c accept, and what they
 * read from them.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "t/unit/chat.h"


static const char *const  accepted[] = {
    R("\"x\":0"),
    R("\"n\":1,\"user\":\"u\",\"store\":false,\"metadata\":{},"
      "\"logit_bias\":null,\"service_tier\":\"auto\","
      "\"parallel_tool_calls\":true,\"functions\":[],\"user_id\":\"u\","
      "\"safety_identifier\":\"u\",\"prompt_cache_key\":\"k\",\"priority\":3,"
      "\"stream\":true,\"stream_options\":{\"include_obfuscation\":false}"),
    R("\"max_tokens\":1"),
    R("\"chat_template_kwargs\":{\"tone\":null}"),
    R("\"reasoning\":{\"effort\":null,\"summary\":null}"),
    MS("{\"role\":\"developer\",\"content\":\"d\"}," U),
    R("\"temperature\":null,\"top_p\":null,\"frequency_penalty\":null,"
      "\"presence_penalty\":null,\"max_tokens\":null,\"seed\":null,"
      "\"max_completion_tokens\":null,\"stop\":null,\"stream\":null,"
      "\"stream_options\":null,\"thinking\":null,\"reasoning_effort\":null,"
      "\"response_format\":null,\"tools\":null,\"tool_choice\":null,"
      "\"logprobs\":null,\"top_logprobs\":null,\"conversation\":null,"
      "\"n\":null,\"user\":null,\"ignore_eos\":null"),
    MS("{\"role\":\"user\",\"content\":null,\"name\":\"bob\"}"),
    MS("{\"role\":\"user\",\"content\":[]}"),
    MS("{\"role\":\"system\"},{\"role\":\"user\"}"),
    MS(U "," AC(CALL("1") "," CALL("2")) "," T("2") "," T("1")),
    MS(U ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":null,"
       "\"reasoning_content\":null,\"prefix\":null}," U),
    MS(U ",{\"role\":\"assistant\",\"tool_calls\":[]}," U),
    MS(U ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
       "\"a\"}]}," U),
    MS(U "," AC(CALL("1")) ",{\"role\":\"tool\",\"tool_call_id\":\"1\","
       "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}"),
    MS(U "," ARGS("\"\"") "," T("1")),
    MS(U "," ARGS("null") "," T("1")),
    MS(U "," ARGS("\"[1]\"") "," T("1")),
    MS(U "," ARGS("\"7\"") "," T("1")),
    MS(U "," ARGS("\"{\"") "," U),
    MS(U "," ARGS("\"{\\\"a\\\": \\\"b\"") "," T("1")),
    MS(U "," ARGS("\"{} {}\"") "," T("1")),
    MS(U "," ARGS("\"{\\\"a\\\": 1e999}\"") "," T("1")),
    MS(U "," AC(CALL("1")) "," U),
    MS(U "," AC(CALL("1")) ",{\"role\":\"system\",\"content\":\"s\"}," U),
    MS(U "," AC(CALL("1") "," CALL("2") "," CALL("3")) "," T("3") "," T("1")
       "," U),
    MS(U ",{\"role\":\"assistant\"}," U),
    MS(U ",{\"role\":\"assistant\",\"content\":\"\"}," U),
    MS(U ",{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":"
       "\"r\"}," U),
    "{\"model\":\"deepseek-reasoner\",\"messages\":[" U ",{\"role\":"
    "\"assistant\",\"content\":\"\",\"reasoning_content\":\"\"}," U "]}",
    "{\"model\":\"deepseek-reasoner\",\"messages\":[" U ",{\"role\":"
    "\"assistant\",\"content\":null,\"reasoning_content\":\"r\"}," U "]}",
    MS(U "," AC("{\"id\":\"1\",\"function\":{\"name\":\"f\"}}") "," T("1")),
    MS(U ",{\"role\":\"assistant\",\"content\":\"a\",\"prefix\":true}"),
    R("\"response_format\":{\"type\":\"text\"}"),
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"as "
    "Json\"}],\"response_format\":{\"type\":\"json_object\"}}",
    R("\"tools\":[],\"tool_choice\":\"auto\""),
    TOOL("{\"name\":\"a-Z_09\",\"parameters\":null,\"strict\":false}"),
    TOOL("{\"name\":\"f\",\"strict\":null}"),
    R("\"max_tokens\":2147483647,\"temperature\":2,\"top_p\":1e-300,"
      "\"frequency_penalty\":-2,\"presence_penalty\":2.0"),
    "{\"model\":\"deepseek-reasoner\",\"messages\":[" U ","
    AC(CALL("1")) "," T("1") "]}"
};


static void
test_accepted(void **state)
{
    size_t          i;
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        arena = dsa_arena_create(MEMORY);

        if (read_chat(&chat, arena, accepted[i], strlen(accepted[i]),
                      &as_api, &refusal)
            != DSA_OK)
        {
            fail_msg("%s: %s: %s", accepted[i], refusal.param,
                     refusal.message);
        }

        dsa_arena_destroy(arena);
    }
}


static void
test_fields(void **state)
{
    dsa_chat_t    chat;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(MEMORY);

    must_read(&chat, arena, R("\"x\":1"));
    expect_str(chat.model, "deepseek-chat");
    assert_int_equal(chat.conversation.len, 0);
    assert_int_equal(chat.n_messages, 1);
    assert_int_equal(chat.n_stored, 0);
    assert_int_equal(chat.messages[0].role, DSA_ROLE_USER);
    expect_str(chat.messages[0].content, "q");
    assert_true(isnan(chat.sampling.temperature) && isnan(chat.sampling.top_p));
    assert_true(chat.sampling.frequency_penalty == 0);
    assert_true(chat.sampling.presence_penalty == 0);
    assert_int_equal(chat.max_tokens, 0);
    assert_int_equal(chat.n_stop, 0);
    assert_int_equal(chat.tool_choice, DSA_TOOL_CHOICE_NONE);
    assert_false(chat.thinking || chat.thinking_given || chat.has_seed
                 || chat.stream || chat.include_usage || chat.sampling.logprobs
                 || chat.json_object || chat.ignore_eos);
    assert_null(chat.tools);

    must_read(&chat, arena,
              R("\"temperature\":0.5,\"top_p\":0.25,\"frequency_penalty\":"
                "-1.5,\"presence_penalty\":1,\"max_tokens\":7.0,\"seed\":42,"
                "\"stop\":[\"a\",\"\",\"b\"],\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true},\"logprobs\":"
                "true,\"top_logprobs\":20,\"ignore_eos\":true,"
                "\"conversation\":\"c_1-X\",\"tools\":[{\"function\":"
                "{\"name\":\"f\"}}]"));
    assert_true(chat.sampling.temperature == 0.5);
    assert_true(chat.sampling.top_p == 0.25);
    assert_true(chat.sampling.frequency_penalty == -1.5);
    assert_true(chat.sampling.presence_penalty == 1);
    assert_int_equal(chat.max_tokens, 7);
    assert_true(chat.has_seed && chat.sampling.seed == 42);
    assert_int_equal(chat.n_stop, 2);
    expect_str(chat.stop[0], "a");
    expect_str(chat.stop[1], "b");
    assert_true(chat.stream && chat.include_usage && chat.sampling.logprobs);
    assert_true(chat.ignore_eos);
    assert_int_equal(chat.sampling.top_logprobs, 20);
    expect_str(chat.conversation, "c_1-X");
    assert_int_equal(chat.tool_choice, DSA_TOOL_CHOICE_AUTO);
    assert_int_equal(chat.tools->n, 1);

    /* each of the two alone: 0 and 1 are values, null is none */

    must_read(&chat, arena, R("\"temperature\":0,\"top_p\":null"));
    assert_true(chat.sampling.temperature == 0 && isnan(chat.sampling.top_p));

    must_read(&chat, arena, R("\"temperature\":null,\"top_p\":1"));
    assert_true(isnan(chat.sampling.temperature) && chat.sampling.top_p == 1);

    must_read(&chat, arena, R("\"stop\":\"x\","
                              "\"seed\":18446744073709551615"));
    assert_int_equal(chat.n_stop, 1);
    assert_true(chat.sampling.seed == UINT64_MAX);

    must_read(&chat, arena, R("\"seed\":-1,\"stop\":\"\""));
    assert_true(chat.sampling.seed == UINT64_MAX && chat.has_seed);
    assert_int_equal(chat.n_stop, 0);

    must_read(&chat, arena, R("\"tools\":[{\"function\":{\"name\":\"f\"}}],"
                              "\"tool_choice\":\"none\""));
    assert_int_equal(chat.tool_choice, DSA_TOOL_CHOICE_NONE);
    assert_non_null(chat.tools);

    must_read(&chat, arena, MS("{\"role\":\"user\",\"content\":\"JSON\"}],"
                               "\"response_format\":{\"type\":"
                               "\"json_object\"},\"x\":[1"));
    assert_true(chat.json_object);

    dsa_arena_destroy(arena);
}


static const struct {
    const char  *in;
    uint32_t     max_tokens;
} most[] = {
    { R("\"max_completion_tokens\":9"), 9 },
    { R("\"max_completion_tokens\":8,\"max_tokens\":8"), 8 },
    { R("\"max_tokens\":4294967294"), UINT32_MAX - 1 },

    /* above any context */

    { R("\"max_tokens\":4294967296"), UINT32_MAX },
    { R("\"max_completion_tokens\":99999999999999999999999"), UINT32_MAX },
    { R("\"max_tokens\":1e300"), UINT32_MAX },
    { R("\"max_tokens\":1e999"), UINT32_MAX }
};


static void
test_max_tokens(void **state)
{
    size_t        i;
    dsa_chat_t    chat;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(MEMORY);

    for (i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        must_read(&chat, arena, most[i].in);
        assert_int_equal(chat.max_tokens, most[i].max_tokens);
    }

    dsa_arena_destroy(arena);
}


#define MODEL(m, x)  "{\"model\":\"" m "\"," MSG x "}"

static void
test_thinking(void **state)
{
    size_t        i;
    dsa_chat_t    chat;
    dsa_arena_t  *arena;

    static const struct {
        const char  *in;
        int          thinking;
        int          given;
    } modes[] = {
        { MODEL("deepseek-chat", ""), 0, 0 },
        { MODEL("deepseek-reasoner", ""), 1, 0 },
        { MODEL("other", ""), 0, 0 },
        { MODEL("other", ",\"thinking\":{\"type\":\"enabled\"}"), 1, 1 },
        { MODEL("deepseek-reasoner",
                ",\"thinking\":{\"type\":\"disabled\"}"), 0, 1 },
        { MODEL("deepseek-chat", ",\"reasoning_effort\":\"high\""), 1, 1 },
        { MODEL("deepseek-reasoner", ",\"reasoning_effort\":\"none\""),
          0, 1 },
        { MODEL("m", ",\"thinking\":{\"type\":\"disabled\"},"
                "\"reasoning_effort\":\"low\""), 0, 1 },
        { MODEL("m", ",\"enable_thinking\":true"), 1, 1 },
        { MODEL("deepseek-reasoner", ",\"enable_thinking\":false"), 0, 1 },
        { MODEL("m", ",\"chat_template_kwargs\":{\"thinking\":true}"), 1, 1 },
        { MODEL("m", ",\"chat_template_kwargs\":{\"enable_thinking\":true}"),
          1, 1 },
        { MODEL("deepseek-reasoner", ",\"chat_template_kwargs\":{"
                "\"thinking\":false,\"enable_thinking\":true}"), 0, 1 },
        { MODEL("m", ",\"chat_template_kwargs\":{}"), 0, 0 },
        { MODEL("m", ",\"reasoning\":{\"effort\":\"medium\"}"), 1, 1 },
        { MODEL("m", ",\"reasoning\":{\"enabled\":true}"), 1, 1 },
        { MODEL("deepseek-reasoner", ",\"reasoning\":{\"effort\":\"none\"}"),
          0, 1 },
        { MODEL("m", ",\"reasoning\":{\"effort\":\"high\",\"enabled\":false}"),
          0, 1 },
        { MODEL("m", ",\"reasoning\":{}"), 0, 0 },
        { MODEL("m", ",\"thinking\":{\"type\":\"disabled\"},\"reasoning\":{"
                "\"enabled\":true},\"enable_thinking\":true,"
                "\"chat_template_kwargs\":{\"thinking\":true}"), 0, 1 }
    };

    arena = dsa_arena_create(MEMORY);

    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        must_read(&chat, arena, modes[i].in);
        assert_int_equal(chat.thinking, modes[i].thinking);
        assert_int_equal(chat.thinking_given, modes[i].given);
    }

    /* in thinking mode these have no effect, but are checked */

    must_read(&chat, arena, MODEL("deepseek-reasoner", ",\"temperature\":0,"
                                  "\"top_p\":0.1,\"frequency_penalty\":2,"
                                  "\"presence_penalty\":2,\"seed\":1"));
    assert_true(isnan(chat.sampling.temperature) && isnan(chat.sampling.top_p));
    assert_true(chat.sampling.frequency_penalty == 0);
    assert_true(chat.sampling.presence_penalty == 0);
    assert_true(chat.has_seed);

    /* a trainer decides how its samples are drawn, wherever the fields are */

    must_read(&chat, arena, MODEL("deepseek-reasoner", ",\"temperature\":0,"
                                  "\"top_p\":0.5,\"frequency_penalty\":2,"
                                  "\"presence_penalty\":1,\"rollout\":{}"));
    assert_true(chat.thinking);
    assert_true(chat.sampling.temperature == 0);
    assert_true(chat.sampling.top_p == 0.5f);
    assert_true(chat.sampling.frequency_penalty == 2);
    assert_true(chat.sampling.presence_penalty == 1);

    must_read(&chat, arena, MODEL("deepseek-reasoner", ",\"rollout\":{}"));
    assert_true(isnan(chat.sampling.temperature) && isnan(chat.sampling.top_p));

    dsa_arena_destroy(arena);
}


#define BUDGET(n)  "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":" n "}"
#define MOST(n)    "\"max_thinking_tokens\":" n

/* The least of several limits counts.  Without thinking no limit does. */

static void
test_budget(void **state)
{
    size_t        i;
    dsa_chat_t    chat;
    dsa_arena_t  *arena;

    static const struct {
        const char  *in;
        int          thinking;
        uint32_t     budget;
    } t[] = {
        { MODEL("deepseek-reasoner", ""), 1, 0 },
        { MODEL("m", "," BUDGET("1")), 1, 1 },
        { MODEL("m", "," BUDGET("1024.0")), 1, 1024 },
        { MODEL("m", "," BUDGET("null")), 1, 0 },
        { MODEL("m", "," BUDGET("4294967294")), 1, 4294967294U },
        { MODEL("m", "," BUDGET("4294967295")), 1, 0 },
        { MODEL("m", "," BUDGET("9223372036854775807")), 1, 0 },
        { MODEL("m", "," MOST("7")), 0, 7 },    /* a family may think */
        { MODEL("m", "," MOST("7") ",\"enable_thinking\":false"), 0, 0 },
        { MODEL("deepseek-reasoner", "," MOST("7")), 1, 7 },
        { MODEL("deepseek-reasoner", "," MOST("null")), 1, 0 },
        { MODEL("deepseek-reasoner",
                "," MOST("7") ",\"thinking\":{\"type\":\"disabled\"}"), 0, 0 },
        { MODEL("m", "," MOST("7") "," BUDGET("8")), 1, 7 },
        { MODEL("m", "," MOST("8") "," BUDGET("7")), 1, 7 },
        { MODEL("m", "," MOST("8") "," BUDGET("4294967295")), 1, 8 },
        { MODEL("m", ",\"reasoning\":{\"max_tokens\":9}"), 1, 9 },
        { MODEL("m", ",\"reasoning\":{\"max_tokens\":9,\"effort\":\"low\"}"),
          1, 9 },
        { MODEL("m", ",\"reasoning\":{\"max_tokens\":9,\"enabled\":true},"
                BUDGET("3")), 1, 3 },
        { MODEL("m", ",\"reasoning\":{\"max_tokens\":9},"
                "\"thinking\":{\"type\":\"disabled\"}"), 0, 0 }
    };

    arena = dsa_arena_create(MEMORY);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        must_read(&chat, arena, t[i].in);
        assert_int_equal(chat.thinking, t[i].thinking);
        assert_int_equal(chat.thinking_budget, t[i].budget);
        assert_int_equal(dsa_chat_reasons(&chat), t[i].thinking);
    }

    dsa_arena_destroy(arena);
}


/* A prefix that has content begins behind the reasoning. */

static void
test_reasons(void **state)
{
    char          text[300];
    size_t        i;
    dsa_chat_t    chat;
    dsa_arena_t  *arena;

    static const struct {
        const char  *message;
        int          reasons;
    } t[] = {
        { "{\"role\":\"user\",\"content\":\"q\"}", 1 },
        { "{\"role\":\"assistant\",\"content\":\"a\",\"prefix\":true}", 0 },
        { "{\"role\":\"assistant\",\"content\":\"\",\"prefix\":true,"
          "\"reasoning_content\":\"r\"}", 1 },
        { "{\"role\":\"assistant\",\"content\":\"a\",\"prefix\":true,"
          "\"reasoning_content\":\"r\"}", 0 }
    };

    arena = dsa_arena_create(MEMORY);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        (void) snprintf(text, sizeof(text), "{\"model\":\"deepseek-reasoner\""
                        ",\"messages\":[{\"role\":\"user\",\"content\":"
                        "\"q\"},%s]}", t[i].message);
        must_read(&chat, arena, text);
        assert_int_equal(dsa_chat_reasons(&chat), t[i].reasons);

        chat.thinking = 0;
        assert_int_equal(dsa_chat_reasons(&chat), 0);
    }

    dsa_arena_destroy(arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_max_tokens),
        cmocka_unit_test(test_thinking),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_reasons)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
