
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The requests that context/chat.c, message.c and check.c refuse, and the error
 * of each.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "t/unit/chat.h"


static const struct {
    const char  *in;
    const char  *param;
    const char  *message;       /* a part of it */
} refused[] = {

    /* the root, and fields that are required */

    { "[]", "", TYPE "invalid type: sequence, expected a chat request" },
    { "\"x\"", "", "invalid type: string \"x\"" },
    { "null", "", "invalid type: null" },
    { "{" MSG "}", "model", "model: missing field" },
    { "{\"model\":null," MSG "}", "model", "invalid type: null" },
    { "{\"model\":\"\"," MSG "}", "model", "the name of a model" },
    { "{\"model\":7," MSG "}", "model", "integer `7`, expected a string" },
    { "{\"model\":\"m\"}", "messages", "messages: missing field" },
    { "{\"model\":\"m\",\"messages\":null}", "messages",
      "invalid type: null, expected an array of messages" },
    { "{\"model\":\"m\",\"messages\":\"hi\"}", "messages",
      "string \"hi\", expected an array" },
    { "{\"model\":\"m\",\"messages\":{}}", "messages",
      "invalid type: map, expected an array" },
    { MS(""), "messages", "at least one message" },
    { MS(U "," U "," U "," U "," U "," U "," U "," U "," U), "messages",
      "9 messages, at most 8" },

    /* messages */

    { MS("7"), "messages[0]", "expected a message object" },
    { MS(U ",[]"), "messages[1]", "invalid type: sequence" },
    { MS("{\"content\":\"q\"}"), "messages[0].role", "missing field" },
    { MS("{\"role\":1}"), "messages[0].role", "expected a string" },
    { MS("{\"role\":\"root\"}"), "messages[0].role",
      "messages[0].role: unknown variant `root`, expected one of `system`, "
      "`developer`, `user`, `assistant`, `tool`" },
    { MS(U ",{\"role\":\"developer\",\"content\":\"q\"}"), "messages[1].role",
      "The last message must be" },
    { MS("{\"role\":\"USER\",\"content\":\"q\"}"), "messages[0].role",
      "unknown variant `USER`" },
    { MS("{\"role\":\"user\",\"content\":5}"), "messages[0].content",
      "integer `5`, expected a string, null or an array of text parts" },
    { MS("{\"role\":\"user\",\"content\":true}"), "messages[0].content",
      "boolean `true`" },
    { MS("{\"role\":\"user\",\"content\":{}}"), "messages[0].content",
      "map" },
    { MS("{\"role\":\"user\",\"content\":[\"q\"]}"),
      "messages[0].content[0]", "expected {\"type\": \"text\"" },
    { MS("{\"role\":\"user\",\"content\":[{\"text\":\"q\"}]}"),
      "messages[0].content[0].type", "missing field, expected `text`" },
    { MS("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\"}"
         ",{\"type\":\"image_url\",\"image_url\":{}}]}"),
      "messages[0].content[1].type",
      "unknown variant `image_url`, expected `text`" },
    { MS("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}"),
      "messages[0].content[0].text", "missing field, expected a string" },
    { MS("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":1}]}"),
      "messages[0].content[0].text", "expected a string" },
    { MS(U ",{\"role\":\"assistant\",\"reasoning_content\":[]}," U),
      "messages[1].reasoning_content", "expected a string" },
    { MS(U ",{\"role\":\"assistant\",\"reasoning\":1}," U),
      "messages[1].reasoning", "expected a string" },
    { MS(U ",{\"role\":\"assistant\",\"prefix\":1}"),
      "messages[1].prefix", "expected a boolean" },

    /* tool calls and results */

    { MS(U ",{\"role\":\"assistant\",\"tool_calls\":{}}"),
      "messages[1].tool_calls", "expected null or an array of tool calls" },
    { MS(U "," AC("7")), "messages[1].tool_calls[0]", "a tool call object" },
    { MS(U "," AC("{\"function\":{\"name\":\"f\"}}")),
      "messages[1].tool_calls[0].id", "required" },
    { MS(U "," AC("{\"id\":7,\"function\":{\"name\":\"f\"}}")),
      "messages[1].tool_calls[0].id", "expected a string" },
    { MS(U "," AC("{\"id\":\"1\"}")),
      "messages[1].tool_calls[0].function", "missing field" },
    { MS(U "," AC("{\"id\":\"1\",\"type\":\"x\",\"function\":{}}")),
      "messages[1].tool_calls[0].type", "expected `function`" },
    { MS(U "," AC("{\"id\":\"1\",\"type\":1,\"function\":{}}")),
      "messages[1].tool_calls[0].type", "expected `function`" },
    { MS(U "," AC("{\"id\":\"1\",\"function\":{}}")),
      "messages[1].tool_calls[0].function.name", "is required" },
    { MS(U "," AC("{\"id\":\"1\",\"function\":{\"name\":[]}}")),
      "messages[1].tool_calls[0].function.name", "expected a string" },
    { MS(U "," AC(CALL("1") "," CALL("1"))),
      "messages[1].tool_calls[1].id", "unique" },
    { MS(U "," ARGS("7")),
      "messages[1].tool_calls[0].function.arguments", "a JSON object" },
    { MS(U "," ARGS("[]")),
      "messages[1].tool_calls[0].function.arguments", "a JSON object" },
    { MS(U "," ARGS("{\"a\":[1e999]}")),
      "messages[1].tool_calls[0].function.arguments",
      "the number `1e999` is out of range" },
    { MS(U "," AC(CALL("1")) ",{\"role\":\"tool\",\"content\":\"r\"}"),
      "messages[2].tool_call_id", "required" },
    { MS(U "," AC(CALL("1")) ",{\"role\":\"tool\",\"tool_call_id\":1}"),
      "messages[2].tool_call_id", "expected a string" },
    { MS(T("1")), "messages[0].role",
      "must be a response to a preceding message with 'tool_calls'" },
    { MS(U "," T("1")), "messages[1].role", "must be a response" },
    { MS(U "," AC(CALL("1"))), "messages[1].tool_calls",
      "An assistant message with 'tool_calls' must be followed by tool "
      "messages responding to each 'tool_call_id'. (insufficient tool "
      "messages following tool_calls message)" },
    { MS(U "," AC(CALL("1") "," CALL("2")) "," T("2")),
      "messages[1].tool_calls", "insufficient tool messages" },
    { MS(U "," AC(CALL("1")) "," U "," T("1")), "messages[3].role",
      "must be a response" },
    { MS(U "," AC(CALL("1")) ",{\"role\":\"assistant\"}," U),
      "messages[1].tool_calls", "insufficient tool messages" },
    { MS(U "," AC(CALL("1") "," CALL("2")) "," T("2")
         ",{\"role\":\"assistant\"}," U),
      "messages[1].tool_calls", "insufficient tool messages" },
    { MS(U "," AC(CALL("1") "," CALL("2")) "," T("2") "," T("3") "," U),
      "messages[3].tool_call_id", "not among its calls" },
    { MS(U "," AC(CALL("1") "," CALL("2")) "," T("2") "," T("2") "," U),
      "messages[3].tool_call_id", "an earlier message has answered it" },
    { MS(U "," AC(CALL("1")) "," T("2") "," U), "messages[2].tool_call_id",
      "not among its calls" },
    { MS(U "," AC(CALL("1")) "," T("2")), "messages[1].tool_calls",
      "insufficient tool messages" },
    { MS(U "," AC(CALL("1") "," CALL("2")) "," T("1") "," T("1")),
      "messages[1].tool_calls", "insufficient tool messages" },
    { MS(U "," AC(CALL("1")) "," T("1") "," T("1")),
      "messages[3].tool_call_id", "an earlier message has answered it" },
    { MS(U "," AC(CALL("1") "," CALL("2")) "," T("1") "," T("3") "," T("2")),
      "messages[3].tool_call_id", "not among its calls" },

    /* the last message */

    { MS("{\"role\":\"system\",\"content\":\"s\"}"), "messages[0].role",
      "The last message must be a user, tool or assistant message" },
    { MS(U ",{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":"
      "\"system\",\"content\":\"s\"}"),
      "messages[2].role", "The last message must be" },
    { MS(U "," AC(CALL("1"))), "messages[1].tool_calls",
      "insufficient tool messages" },
    { MS(U ",{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":"
      "\"assistant\",\"content\":\"b\",\"prefix\":true}"),
      "messages[2].prefix", "expected `user` or `tool`" },
    { MS("{\"role\":\"assistant\",\"content\":\"a\",\"prefix\":true}"),
      "messages[0].prefix", "expected `user` or `tool`" },
    { MS(U ",{\"role\":\"assistant\",\"content\":\"a\",\"prefix\":true}," U),
      "messages[1].prefix", "not the last message" },
    { MS(U ",{\"role\":\"assistant\",\"prefix\":true,\"tool_calls\":["
         CALL("1") "]}"),
      "messages[1].prefix", "cannot be a prefix" },

    /* sampling */

    { R("\"max_tokens\":9,\"max_completion_tokens\":8"),
      "max_completion_tokens", "the value differs from that of max_tokens" },
    { R("\"max_tokens\":9,\"max_completion_tokens\":\"8\""),
      "max_completion_tokens", "expected an integer" },
    { R("\"n\":2,\"conversation\":\"c\""), "n",
      "n: a conversation stores one answer" },
    { R("\"stop\":[\"a\",7]"), "stop[1]", "expected a string" },
    { R("\"stop\":[\"a\",null]"), "stop[1]", "invalid type: null" },
    { R("\"logprobs\":true,\"top_logprobs\":21"), "top_logprobs",
      "[0, 20]" },
    { R("\"logprobs\":true,\"top_logprobs\":-1"), "top_logprobs",
      "[0, 20]" },

    /* the rest */

    { R("\"stream\":true,\"stream_options\":[]"), "stream_options",
      "{\"include_usage\": true or false}" },
    { R("\"stream\":true,\"stream_options\":{\"include_usage\":1}"),
      "stream_options.include_usage", "expected a boolean" },
    { R("\"thinking\":{}"), "thinking.type", "`enabled` or `disabled`" },
    { R("\"thinking\":{\"type\":1}"), "thinking.type", "integer `1`" },
    { R("\"thinking\":{\"type\":\"on\"}"), "thinking.type",
      "unknown variant `on`, expected `enabled` or `disabled`" },
    { R("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":0}"),
      "thinking.budget_tokens",
      "Invalid budget_tokens value, the valid range of budget_tokens is [1," },
    { R("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":\"9\"}"),
      "thinking.budget_tokens", "expected an integer" },
    { R("\"thinking\":{\"type\":\"disabled\",\"budget_tokens\":1024}"),
      "thinking.budget_tokens",
      "thinking is switched off beside it; expected null or no such field" },
    { R("\"thinking\":{\"type\":\"enabled\",\"level\":1}"), "thinking.level",
      "this member is not supported; expected type, budget_tokens or "
      "clear_thinking only" },
    { R("\"reasoning\":{\"effort\":\"huge\"}"), "reasoning.effort",
      "unknown variant `huge`" },
    { R("\"reasoning\":{\"effort\":\"low\",\"enabled\":1}"),
      "reasoning.enabled", "expected a boolean" },
    { R("\"reasoning\":{\"max_tokens\":-1}"), "reasoning.max_tokens",
      "the valid range of max_tokens is [1," },
    { R("\"reasoning\":{\"max_tokens\":9,\"enabled\":false}"),
      "reasoning.max_tokens", "thinking is switched off beside it" },
    { R("\"reasoning\":{\"max_tokens\":9,\"effort\":\"none\"}"),
      "reasoning.max_tokens", "thinking is switched off beside it" },
    { R("\"reasoning\":{\"exclude\":true}"), "reasoning.exclude",
      "not supported; expected effort, enabled or max_tokens only" },
    { R("\"chat_template_kwargs\":{\"thinking\":1}"),
      "chat_template_kwargs.thinking", "a boolean" },
    { R("\"chat_template_kwargs\":{\"thinking\":true,\"tone\":\"x\"}"),
      "chat_template_kwargs.tone", "expected enable_thinking, "
      "thinking, clear_thinking or reasoning_effort" },

    /* tools */

    { R("\"tools\":[7]"), "tools[0]", "expected a tool object" },
    { R("\"tools\":[{}]"), "tools[0].function", "missing field" },
    { R("\"tools\":[{\"type\":\"web\",\"function\":{\"name\":\"f\"}}]"),
      "tools[0].type", "unknown variant `web`, expected `function`" },
    { R("\"tools\":[{\"type\":1,\"function\":{\"name\":\"f\"}}]"),
      "tools[0].type", "expected `function`" },
    { TOOL("7"), "tools[0].function", "expected an object" },
    { TOOL("{}"), "tools[0].function.name", "missing field" },
    { TOOL("{\"name\":7}"), "tools[0].function.name", "expected a string" },
    { TOOL("{\"name\":\"\"}"), "tools[0].function.name", "pattern" },
    { TOOL("{\"name\":\"a b\"}"), "tools[0].function.name", "pattern" },
    { TOOL("{\"name\":\"caf\xc3\xa9\"}"), "tools[0].function.name",
      "'^[a-zA-Z0-9_-]{1,128}$'" },
    { TOOL("{\"name\":\"f\",\"parameters\":[]}"),
      "tools[0].function.parameters", "a JSON Schema object" },
    { TOOL("{\"name\":\"f\",\"parameters\":{\"x\":-1e999}}"),
      "tools[0].function", "out of range" },
    { TOOL("{\"name\":\"f\",\"description\":7}"),
      "tools[0].function.description", "expected a string" },
    { TOOL("{\"name\":\"f\",\"strict\":\"no\"}"),
      "tools[0].function.strict", "expected a boolean" },
    { R("\"tools\":[{\"function\":{\"name\":\"f\"}},{\"function\":{"
        "\"name\":\"f\"}}]"),
      "tools[1]", "Tool names must be unique" }
};


/* A field beside a chat that is accepted without it. */

static const struct {
    const char  *field;
    const char  *values;        /* each is refused */
    const char  *message;       /* a part of it */
} refused_values[] = {
    { "temperature", "\"1\"", "string \"1\", expected a number" },
    { "temperature", "-0.1",
      "Invalid temperature value, the valid range of temperature is [0, 2]" },
    { "temperature", "2.0001 1e999 -1e999", "[0, 2]" },
    { "temperature", "[] true", "expected a number" },
    { "top_p", "0",
      "Invalid top_p value, the valid range of top_p is (0, 1.0]" },
    { "top_p", "1.1", "(0, 1.0]" },
    { "top_p", "{}", "expected a number" },
    { "frequency_penalty", "2.1", "[-2, 2]" },
    { "frequency_penalty", "\"x\"", "a number" },
    { "presence_penalty", "-2.1", "[-2, 2]" },
    { "presence_penalty", "false", "a number" },
    { "max_tokens", "1.5", "floating point `1.5`, expected an integer" },
    { "max_tokens", "\"9\"", "expected an integer" },
    { "max_completion_tokens", "0.5 {}", "expected an integer" },
    { "max_tokens", "0 -1 -0 -1e999 -99999999999999999999999",
      "is too small; expected 1 or more" },
    { "max_completion_tokens", "0.0 -1e300", "expected 1 or more" },
    { "seed", "18446744073709551616 -9223372036854775809",
      "Invalid seed value" },
    { "seed", "0.5 \"1\"", "expected an integer" },
    { "n", "0 9 -1 18446744073709551616", "the valid range of n is [1, 8]" },
    { "n", "\"2\" 1.5 true [2]", "expected an integer" },
    { "stop", "7", "integer `7`, expected a string or an array of strings" },
    { "stop", "{}", "a string or an array of strings" },
    { "stop",
      "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\""
      ",\"\",\"\",\"\",\"\",\"\"]",
      "17 stop strings; at most 16" },
    { "logprobs", "1", "expected a boolean" },
    { "top_logprobs", "3", "logprobs = true" },
    { "ignore_eos", "\"yes\"", "expected a boolean" },
    { "stream", "1 \"true\"", "expected a boolean" },
    { "stream_options", "{}",
      "stream_options should be set along with stream = true" },
    { "thinking", "true", "{\"type\": \"enabled\"}" },
    { "max_thinking_tokens", "0",
      "the valid range of max_thinking_tokens is [1," },
    { "max_thinking_tokens", "1.5", "expected an integer" },
    { "max_reasoning_tokens", "1024",
      "expected null or no such field; use max_thinking_tokens" },
    { "thinking_budget", "1024",
      "expected null or no such field; use max_thinking_tokens" },
    { "reasoning_effort", "\"huge\"",
      "unknown variant `huge`, expected one of `none`" },
    { "reasoning_effort", "3", "a string" },
    { "reasoning", "\"high\"", "{\"effort\": a string" },
    { "enable_thinking", "\"yes\"", "a boolean" },
    { "chat_template_kwargs", "[]", "{\"thinking\": true or false}" },
    { "response_format", "{\"type\":\"json_object\"}",
      "Prompt must contain the word 'json' in some form to use "
      "'response_format' of type 'json_object'." },
    { "conversation", "7", "expected a string" },
    { "conversation", "\"\"", "1 to 128 letters" },
    { "conversation", "\"a{b}\"",
      "\"a{b}\" is not a conversation id; expected 1 to 128 letters" },
    { "conversation", "\"a\\u0000\"", "1 to 128" },
    { "tools", "{}", "expected an array of tools" },
    { "tools", "[{},{},{},{},{}]", "5 tools, at most 4" },
    { "logit_bias", "[]", "an object of token ids" },
    { "logit_bias", "{\"x\":1}", "\"x\" is not a token id" },
    { "logit_bias", "{\"-1\":1}", "\"-1\" is not a token id" },
    { "logit_bias", "{\"4294967296\":1}", "\"4294967296\" is not a token id" },
    { "logit_bias", "{\"\":1}", "\"\" is not a token id" },
    { "logit_bias", "{\"7\":101}",
      "the bias of token id 7 is not a number in [-100, 100]" },
    { "logit_bias", "{\"7\":\"1\"}",
      "the bias of token id 7 is not a number" },
    { "logit_bias", "{\"7\":1,\"07\":2}", "token id 7 occurs twice" }
};


/* Word i of a list: for "a b" and 1 it is b.  NULL if there is none. */

static char *
word(const char *list, uint32_t i)
{
    size_t  n;

    for ( ;; ) {
        n = strcspn(list, " ");

        if (n == 0) {
            return NULL;
        }

        if (i-- == 0) {
            return strndup(list, n);
        }

        list += n + (list[n] == ' ');
    }
}


static void
expect_refused(const char *text, const char *param, const char *message)
{
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    arena = dsa_arena_create(MEMORY);

    if (read_chat(&chat, arena, text, strlen(text), &as_api, &refusal)
        != DSA_ERROR)
    {
        fail_msg("accepted: %s", text);
    }

    if (refusal.status != 400
        || strcmp(refusal.param, param) != 0
        || strstr(refusal.message, message) == NULL)
    {
        fail_msg("%s: %u %s: %s", text, refusal.status, refusal.param,
                 refusal.message);
    }

    dsa_arena_destroy(arena);
}


static void
test_refused(void **state)
{
    size_t  i;

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        expect_refused(refused[i].in, refused[i].param, refused[i].message);
    }
}


static void
test_refused_values(void **state)
{
    char      *value, text[400];
    size_t     i;
    uint32_t   k;

    for (i = 0; i < sizeof(refused_values) / sizeof(refused_values[0]); i++) {
        for (k = 0; /* void */; k++) {
            value = word(refused_values[i].values, k);

            if (value == NULL) {
                break;
            }

            (void) snprintf(text, sizeof(text), R("\"%s\":%s"),
                            refused_values[i].field, value);
            expect_refused(text, refused_values[i].field,
                           refused_values[i].message);
            free(value);
        }

        assert_true(k != 0);
    }
}


static const struct {
    const char  *field;
    const char  *neutral;       /* values that change nothing, besides null */
    const char  *other;         /* some values that are refused */
} unsupported[] = {
    { "best_of", "1", "2" },
    { "functions", "[]", "[{\"name\":\"f\"}]" },
    { "function_call", "\"none\" \"auto\"", "{\"name\":\"f\"}" },
    { "prediction", "", "{\"type\":\"content\",\"content\":\"x\"}" },
    { "modalities", "[\"text\"] [\t\"te\\u0078t\"]",
      "[\"text\",\"audio\"] []" },
    { "audio", "", "{\"voice\":\"alloy\",\"format\":\"wav\"}" },
    { "web_search_options", "", "{}" },
    { "verbosity", "\"low\" \"medium\" \"high\"", "\"none\" 1" },
    { "moderation", "", "{} \"x\"" },
    { "top_k", "0 -1 0.0 -1.0", "5 -2 \"0\" [0] 1e999" },
    { "min_p", "0 0.0", "0.05" },
    { "top_a", "0", "0.1" },
    { "typical_p", "1 1.0", "0.9" },
    { "repetition_penalty", "1 1.0", "1.05" },
    { "length_penalty", "1", "2" },
    { "min_tokens", "0", "5" },
    { "stop_token_ids", "[]", "[1]" },
    { "bad_words", "[]", "[\"x\"]" },
    { "allowed_token_ids", "[]", "[1]" },
    { "include_stop_str_in_output", "false", "true" },
    { "skip_special_tokens", "true", "false" },
    { "use_beam_search", "false", "true" },
    { "guided_json", "", "{}" },
    { "guided_regex", "", "\"a*\"" },
    { "guided_choice", "", "[\"a\"]" },
    { "guided_grammar", "", "\"\"" },
    { "structured_outputs", "", "{}" },
    { "response_prefix", "", "\"Sure\"" },
    { "continue_final_message", "false", "true" },
    { "add_generation_prompt", "true", "false" },
    { "prompt_logprobs", "", "0 5" },
    { "truncate_prompt_tokens", "", "-1 100" },
    { "echo", "false", "true" },
    { "suffix", "\"\"", "\"x\"" },
    { "chat_template", "", "\"{{messages}}\"" },
    { "documents", "[]", "[{\"text\":\"x\"}]" },
    { "regex", "", "\"a\"" },
    { "separate_reasoning", "true", "false" },
    { "spaces_between_special_tokens", "true", "false" }
};


/*
 * Fields that would change the answer are refused by name.  Values that change
 * nothing are accepted.
 */

static void
test_unsupported(void **state)
{
    int             rc;
    char           *value;
    size_t          i;
    uint32_t        k, refuse;
    dsa_buf_t       b;
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    for (i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++) {
        for (k = 0, refuse = 0; /* void */; k++) {
            value = word(refuse ? unsupported[i].other
                                : unsupported[i].neutral, k);

            if (value == NULL && refuse) {
                assert_true(k != 0);
                break;
            }

            memset(&b, 0, sizeof(dsa_buf_t));
            dsa_buf_printf(&b, "{\"model\":\"m\"," MSG ",\"%s\":%s}",
                           unsupported[i].field,
                           value != NULL ? value : "null");

            arena = dsa_arena_create(MEMORY);
            rc = read_chat(&chat, arena, b.data, b.len, &as_api, &refusal);

            if (rc != (refuse ? DSA_ERROR : DSA_OK)
                || (refuse
                    && (refusal.status != 400
                        || strcmp(refusal.param, unsupported[i].field) != 0
                        || strstr(refusal.message, "expected ") == NULL)))
            {
                fail_msg("%.*s: %d %s: %s", (int) b.len, b.data, rc,
                         refusal.param, refusal.message);
            }

            if (value == NULL) {
                refuse = 1;
                k = UINT32_MAX;
            }

            free(value);
            dsa_buf_free(&b);
            dsa_arena_destroy(arena);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_values),
        cmocka_unit_test(test_unsupported)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
