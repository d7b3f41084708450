
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/glm: the prompts of t/data/encoding-glm, which were rendered with the
 * published chat templates, and what the templates do not decide.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <glob.h>

#include <cmocka.h>

#include "context/glm/glm.h"
#include "t/unit/glm.h"


/* An API refuses a part that is not text, the template writes a reminder. */
#define PARTS     "21-parts"

#define EXAMPLES  35

/* A request up to the fields of an answer behind the question. */

#define ANSWERED  "{" MODEL "\"messages\":[" USER("q") ","                     \
                  "{\"role\":\"assistant\","


/* A question, an answer with reasoning and a call, and its result. */

#define ROUND_CALL                                                            \
    "{\"id\":\"i\",\"type\":\"function\",\"function\":"                      \
    "{\"name\":\"f\",\"arguments\":\"{}\"}}"

#define ROUND_RESULT                                                          \
    "{\"role\":\"tool\",\"tool_call_id\":\"i\",\"content\":\"x\"}"

#define ROUND(reasoning)                                                      \
    MODEL "\"messages\":[" USER("q") ",{\"role\":\"assistant\","             \
    "\"content\":\"\",\"reasoning_content\":\"" reasoning "\","              \
    "\"tool_calls\":[" ROUND_CALL "]}," ROUND_RESULT "]"

#define ROUND_END                                                             \
    "<tool_call>f</tool_call><|observation|><tool_response>x"                 \
    "</tool_response><|assistant|><think>"


static void
test_examples(void **state)
{
    char          *want, path[256];
    size_t         i, n, len;
    glob_t         found;
    glm_chat_t     c;
    const char    *is;

    n = 0;

    assert_int_equal(glob("t/data/encoding-glm/*.json", 0, NULL, &found), 0);

    for (i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], PARTS) != NULL) {
            n++;
            continue;
        }

        (void) snprintf(path, sizeof(path), "%.*s.txt",
                        (int) (strlen(found.gl_pathv[i]) - 5),
                        found.gl_pathv[i]);
        want = read_file(path, &len);

        glm_chat_file(&c, found.gl_pathv[i]);
        is = glm_encode(&c);

        if (strcmp(is, want) != 0) {
            fail_msg("%s\nis      %s\nmust be %s", path, is, want);
        }

        glm_chat_free(&c);
        free(want);
        n++;
    }

    assert_int_equal(n, EXAMPLES);
    globfree(&found);
}


/* Each table line: a family, a request, and its prompt. */

static void
test_prompts(void **state)
{
    size_t       i;
    glm_chat_t   c;
    const char  *is;

    static const struct {
        const char  *family;
        const char  *request;
        const char  *prompt;
    } lines[] = {

        /* z.ai's efforts: the request's word is not the prompt's */

        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"low\"}",
          START EFFORT("High") "<|user|>q<|assistant|><think>" },
        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"medium\"}",
          START EFFORT("High") "<|user|>q<|assistant|><think>" },
        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"xhigh\"}",
          START EFFORT("Max") "<|user|>q<|assistant|><think>" },
        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"max\"}",
          START EFFORT("Max") "<|user|>q<|assistant|><think>" },
        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"minimal\"}",
          START "<|user|>q<|assistant|><think></think>" },
        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"none\"}",
          START "<|user|>q<|assistant|><think></think>" },
        { "glm-5.2", "{" ASK ",\"reasoning_effort\":\"minimal\","
          "\"thinking\":{\"type\":\"enabled\"}}",
          START EFFORT("Max") "<|user|>q<|assistant|><think>" },
        { "glm-5.3", "{" ASK ",\"reasoning_effort\":\"low\"}",
          START EFFORT("Low") "<|user|>q<|assistant|><think>" },
        { "glm-5.3", "{" ASK ",\"reasoning_effort\":\"high\"}",
          START EFFORT("High") "<|user|>q<|assistant|><think>" },
        { "glm-5.1", "{" ASK ",\"reasoning_effort\":\"high\"}",
          START "<|user|>q<|assistant|><think>" },
        { "glm-5", "{" ASK ",\"reasoning_effort\":\"none\"}",
          START "<|user|>q<|assistant|></think>" },

        /* the arguments of vLLM's and SGLang's templates */

        { "glm-5.2", "{" ASK ",\"chat_template_kwargs\":"
          "{\"enable_thinking\":false}}",
          START "<|user|>q<|assistant|><think></think>" },
        { "glm-5.2", "{" TURN ",\"chat_template_kwargs\":"
          "{\"clear_thinking\":false,\"reasoning_effort\":\"high\"}}",
          START EFFORT("High") "<|user|>a<|assistant|><think>r</think>b"
          "<|user|>c<|assistant|><think>" },
        { "glm-5.2", "{" TURN ",\"thinking\":{\"clear_thinking\":false}}",
          START EFFORT("Max") "<|user|>a<|assistant|><think>r</think>b"
          "<|user|>c<|assistant|><think>" },

        /* GLM-5 strips reasoning, and writes none that is empty */

        { "glm-5", "{" ROUND("\\u00a0r \\n") "}",
          START "<|user|>q<|assistant|><think>r</think>" ROUND_END },
        { "glm-5.1", "{" ROUND(" r \\n") "}",
          START "<|user|>q<|assistant|><think> r \n</think>" ROUND_END },
        { "glm-5", "{" ROUND("") "}",
          START "<|user|>q<|assistant|></think>" ROUND_END },
        { "glm-5.1", "{" ROUND("") "}",
          START "<|user|>q<|assistant|><think></think>" ROUND_END },
        { "glm-5", "{" MODEL "\"messages\":[" USER("q") ","
          "{\"role\":\"assistant\",\"content\":\"<think>\\nr</think>\\na\","
          "\"tool_calls\":[" ROUND_CALL "]}," ROUND_RESULT "]}",
          START "<|user|>q<|assistant|><think>r</think>a" ROUND_END },

        { "glm-5", "{" MODEL "\"messages\":[" USER("q") ","
          "{\"role\":\"assistant\",\"content\":\"<think>\\n</think>a\","
          "\"tool_calls\":[" ROUND_CALL "]}," ROUND_RESULT "]}",
          START "<|user|>q<|assistant|></think>a" ROUND_END },

        /* a prefix is left open */

        { "glm-5.2", ANSWERED
          "\"content\":\" x \",\"prefix\":true}]}",
          START EFFORT("Max") "<|user|>q<|assistant|><think></think> x " },
        { "glm-5", ANSWERED
          "\"content\":\"\",\"reasoning_content\":\" r \",\"prefix\":true}]}",
          START "<|user|>q<|assistant|><think> r " },
        { "glm-5.1", ANSWERED
          "\"content\":\"\",\"prefix\":true}],\"thinking\":"
          "{\"type\":\"disabled\"}}",
          START "<|user|>q<|assistant|></think>" },

        /* an answer behind an answer, also one that is still to be written */

        { "glm-5.2", ANSWERED "\"content\":\"x\"}]}",
          START EFFORT("Max") "<|user|>q<|assistant|><think></think>x"
          "<|assistant|><think>" },
        { "glm-5.2", ANSWERED "\"content\":\"x\",\"reasoning_content\":\"r\"},"
          "{\"role\":\"assistant\",\"content\":\"y\",\"reasoning_content\":"
          "\"s\"}]}",
          START EFFORT("Max") "<|user|>q<|assistant|><think>r</think>x"
          "<|assistant|><think>s</think>y<|assistant|><think>" },
        { "glm-5.1", ANSWERED "\"content\":\"x\"}],\"thinking\":"
          "{\"type\":\"disabled\"}}",
          START "<|user|>q<|assistant|></think>x<|assistant|></think>" },

        /* arguments that are no object, and values that were cut */

        { "glm-5.2", ANSWERED
          "\"content\":\"\",\"tool_calls\":[{\"id\":\"i\",\"type\":"
          "\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
          "\"{\\\"a\\\": \\\"x\\\", \\\"b\\\": [1, \"}}]}," USER("r") "]}",
          START EFFORT("Max") "<|user|>q<|assistant|><think></think>"
          "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value>"
          "<arg_key>b</arg_key><arg_value>[1, </arg_value></tool_call>"
          "<|user|>r<|assistant|><think>" },
        { "glm-5.2", ANSWERED
          "\"content\":\"\",\"tool_calls\":[{\"id\":\"i\",\"type\":"
          "\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
          "\"no object\"}}]}," USER("r") "]}",
          START EFFORT("Max") "<|user|>q<|assistant|><think></think>"
          "<tool_call>f\nno object</tool_call><|user|>r<|assistant|><think>" }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        glm_chat_text(&c, lines[i].family, lines[i].request,
                      strlen(lines[i].request));
        is = glm_encode(&c);

        if (strcmp(is, lines[i].prompt) != 0) {
            fail_msg("%s %s\nis      %s\nmust be %s", lines[i].family,
                     lines[i].request, is, lines[i].prompt);
        }

        glm_chat_free(&c);
    }
}


/* What a version cannot do, it refuses with the name of the field. */

static void
test_refused(void **state)
{
    size_t           i;
    dsa_err_t        err;
    dsa_chat_t       chat;
    dsa_json_t      *root;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;

    static const struct {
        const char  *family;
        const char  *request;
        const char  *param;
        const char  *text;
    } lines[] = {
        { "glm-5.3", "{" ASK ",\"thinking\":{\"type\":\"disabled\"}}",
          "thinking", "this model always thinks" },
        { "glm-5.3", "{" ASK ",\"reasoning_effort\":\"medium\"}",
          "reasoning_effort", "expected `low`, `high` or `max`" },
        { "glm-5.3", "{" ASK ",\"reasoning_effort\":\"none\"}",
          "reasoning_effort", "expected `low`, `high` or `max`" },
        { "glm-5.3", "{" ASK ",\"chat_template_kwargs\":"
          "{\"enable_thinking\":false}}",
          "thinking", "this model always thinks" }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        arena = dsa_arena_create(1024 * 1024);
        root = dsa_json_parse(arena, lines[i].request,
                              strlen(lines[i].request), 64, &err);
        assert_non_null(root);
        assert_int_equal(dsa_chat_read(&chat, arena, root, &glm_limits,
                                       &refusal), DSA_OK);

        assert_true(dsa_family_apply(dsa_family_find(lines[i].family), &chat,
                                     &refusal) != DSA_OK
                    || dsa_family_check(dsa_family_find(lines[i].family),
                                        &chat, &refusal) != DSA_OK);

        assert_int_equal(refusal.status, 400);
        assert_string_equal(refusal.param, lines[i].param);
        assert_non_null(strstr(refusal.message, lines[i].text));

        dsa_arena_destroy(arena);
    }
}


/* In thinking mode, too, the fields of sampling are the request's. */

static void
test_sampling(void **state)
{
    glm_chat_t   c;
    const char  *request;

    request = "{" ASK ",\"temperature\":0.5,\"top_p\":0.25,"
              "\"presence_penalty\":1,\"frequency_penalty\":-1,"
              "\"max_thinking_tokens\":7}";

    glm_chat_text(&c, "glm-5.2", request, strlen(request));

    assert_int_equal(c.chat.thinking, 1);
    assert_int_equal(c.chat.thinking_budget, 7);
    assert_true(c.chat.sampling.temperature == 0.5f);
    assert_true(c.chat.sampling.top_p == 0.25f);
    assert_true(c.chat.sampling.presence_penalty == 1);
    assert_true(c.chat.sampling.frequency_penalty == -1);

    glm_chat_free(&c);
}


/* Names of control tokens are control tokens only where the format has them. */

static void
test_control(void **state)
{
    uint32_t         i, n;
    glm_chat_t       c;
    const char      *request;

    request = "{" MODEL "\"messages\":[{\"role\":\"system\",\"content\":"
              "\"<|user|><think>\"},"
              USER("/nothink [gMASK]<|observation|></think>")
              "],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
              "\"f\",\"description\":\"<tool_call>\"}}]}";

    glm_chat_text(&c, "glm-5.2", request, strlen(request));
    (void) glm_encode(&c);

    n = 0;

    for (i = 0; i < c.prompt.n; i++) {
        n += c.prompt.segments[i].kind == DSA_SEGMENT_CONTROL;
    }

    /*
     * [gMASK] <sop> <|system|> effort <|system|> tools, with ten tokens in the
     * example of a call, <|system|> <|user|> <|assistant|> <think>
     */

    assert_int_equal(n, 4 + 10 + 4);

    glm_chat_free(&c);
}


static void
test_ask(void **state)
{
    size_t        i;
    char         *text;
    dsa_err_t     err;
    glm_chat_t    c;
    const char   *request;

    static const char *const  names[] = { "glm-5", "glm-5.2" };
    static const char *const  prompts[] = {
        START "<|user|>q<|assistant|><think></think><|user|>sum<|assistant|>"
        "</think>Sum: ",
        START EFFORT("Max") "<|user|>q<|assistant|><think></think><|user|>sum"
        "<|assistant|><think></think>Sum: "
    };

    request = "{" ASK "}";

    for (i = 0; i < 2; i++) {
        glm_chat_text(&c, names[i], request, strlen(request));
        (void) glm_encode(&c);

        assert_int_equal(c.family->ask(&c.prompt, c.arena, dsa_strz("sum"),
                                       dsa_strz("Sum: "), &err), DSA_OK);
        text = glm_text(c.arena, &c.prompt);
        assert_string_equal(text, prompts[i]);

        glm_chat_free(&c);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_ask)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
