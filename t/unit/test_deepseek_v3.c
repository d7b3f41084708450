
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/deepseek: the prompts of DeepSeek-V3.1.  Those of test_card are in
 * its model card (MIT), "Usage Example"; those of test_template and of
 * t/data/encoding-v3.1 were rendered with the chat template of the model, by
 * jinja2.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <glob.h>

#include <cmocka.h>

#include "context/deepseek/v3.h"
#include "context/retain.h"
#include "context/sampled.h"
#include "t/unit/glm.h"


#define V3_1            "deepseek-v3.1"
#define ON              ",\"thinking\":{\"type\":\"enabled\"}"

#define SYSTEM(text)    "{\"role\":\"system\",\"content\":\"" text "\"}"
#define ANSWER(text)    "{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define CHAT(messages)  "{" MODEL "\"messages\":[" messages "]"

#define BOS             "<｜begin▁of▁sentence｜>"
#define EOS             "<｜end▁of▁sentence｜>"
#define ASKS            "<｜User｜>"
#define ANSWERS         "<｜Assistant｜>"


typedef struct {
    const char  *request;
    const char  *prompt;
} line_t;


static void
check(const line_t *lines, size_t n)
{
    size_t       i;
    glm_chat_t   c;
    const char  *is;

    for (i = 0; i < n; i++) {
        glm_chat_text(&c, V3_1, lines[i].request, strlen(lines[i].request));
        is = glm_encode(&c);

        if (strcmp(is, lines[i].prompt) != 0) {
            fail_msg("%s\nis      %s\nmust be %s", lines[i].request, is,
                     lines[i].prompt);
        }

        glm_chat_free(&c);
    }
}


static void
test_examples(void **state)
{
    size_t       i, n;
    char        *must, txt[256];
    glob_t       found;
    glm_chat_t   c;
    const char  *is;

    assert_int_equal(glob("t/data/encoding-v3.1/*.json", 0, NULL, &found), 0);
    assert_in_range(found.gl_pathc, 26, 99);

    for (i = 0; i < found.gl_pathc; i++) {
        glm_chat_file(&c, found.gl_pathv[i]);
        is = glm_encode(&c);

        n = strlen(found.gl_pathv[i]) - strlen(".json");
        (void) snprintf(txt, sizeof(txt), "%.*s.txt", (int) n,
                        found.gl_pathv[i]);
        must = read_file(txt, &n);

        if (strlen(is) != n || memcmp(is, must, n) != 0) {
            fail_msg("%s\nis      %s\nmust be %.*s", txt, is, (int) n, must);
        }

        free(must);
        glm_chat_free(&c);
    }

    globfree(&found);
}


static void
test_card(void **state)
{
#define CARD        CHAT(SYSTEM("You are a helpful assistant") ","            \
                         USER("Who are you?") ","                             \
                         ANSWER("<think>Hmm</think>I am DeepSeek") ","        \
                         USER("1+1=?"))
#define CARD_PROMPT "<｜begin▁of▁sentence｜>You are a helpful assistant"     \
                    "<｜User｜>Who are you?<｜Assistant｜></think>"           \
                    "I am DeepSeek<｜end▁of▁sentence｜><｜User｜>1+1=?"       \
                    "<｜Assistant｜>"

    static const line_t  lines[] = {
        { CARD ON "}", CARD_PROMPT "<think>" },
        { CARD "}", CARD_PROMPT "</think>" }
    };

    check(lines, sizeof(lines) / sizeof(lines[0]));
}


static void
test_template(void **state)
{
    static const line_t  lines[] = {
        { CHAT(USER("q")) "}", BOS ASKS "q" ANSWERS "</think>" },
        { CHAT(USER("q")) ON "}", BOS ASKS "q" ANSWERS "<think>" },
        { CHAT(SYSTEM("s") "," USER("q")) "}",
          BOS "s" ASKS "q" ANSWERS "</think>" },

        { CHAT(SYSTEM("You are terse.") "," USER("Why?") ","
               "{\"role\":\"assistant\",\"content\":\"Because.\","
               "\"reasoning_content\":\"Hm.\"}," USER("And?")) ON "}",
          BOS "You are terse." ASKS "Why?" ANSWERS "</think>Because." EOS
          ASKS "And?" ANSWERS "<think>" },

        { CHAT(SYSTEM("a") "," USER("b") "," ANSWER("c") "," SYSTEM("d") ","
               USER("e")) "}",
          BOS "a\n\nd" ASKS "b" ANSWERS "</think>c" EOS ASKS "e" ANSWERS
          "</think>" },

        { CHAT(USER("b") "," ANSWER("<think>r</think>\\n c </think>d") ","
               USER("e")) "}",
          BOS ASKS "b" ANSWERS "</think>\n c </think>d" EOS ASKS "e" ANSWERS
          "</think>" },

        { CHAT(SYSTEM("Åre ") "," USER(" \\n<｜User｜> x</think> ") ","
               ANSWER(" y ") "," USER("😀")) ON "}",
          BOS "Åre " ASKS " \n<｜User｜> x</think> " ANSWERS "</think> y "
          EOS ASKS "😀" ANSWERS "<think>" },

        { CHAT(USER("b") "," ANSWER("c") "," USER("e") "," USER("f")) "}",
          BOS ASKS "b" ANSWERS "</think>c" EOS ASKS "e" ASKS "f" ANSWERS
          "</think>" }
    };

    check(lines, sizeof(lines) / sizeof(lines[0]));
}


/* What the template does not decide. */

static void
test_open(void **state)
{
    static const line_t  lines[] = {

        /* a prefix is left open */

        { CHAT(USER("q") ",{\"role\":\"assistant\",\"content\":\" x \","
               "\"prefix\":true}") "}",
          BOS ASKS "q" ANSWERS "</think> x " },
        { CHAT(USER("q") ",{\"role\":\"assistant\",\"content\":\"\","
               "\"reasoning_content\":\"r\",\"prefix\":true}") ON "}",
          BOS ASKS "q" ANSWERS "<think>r" },
        { CHAT(USER("q") ",{\"role\":\"assistant\",\"content\":\"x\","
               "\"reasoning_content\":\"r\",\"prefix\":true}") ON "}",
          BOS ASKS "q" ANSWERS "<think>r</think>x" },

        /* an answer behind an answer, also one that is still to be written */

        { CHAT(USER("q") "," ANSWER("a")) "}",
          BOS ASKS "q" ANSWERS "</think>a" EOS ANSWERS "</think>" },
        { CHAT(USER("q") "," ANSWER("a") "," ANSWER("b")) "}",
          BOS ASKS "q" ANSWERS "</think>a" EOS ANSWERS "</think>b" EOS ANSWERS
          "</think>" },

        /* system messages by another name */

        { CHAT("{\"role\":\"developer\",\"content\":\"d\"}," USER("q")) "}",
          BOS "d" ASKS "q" ANSWERS "</think>" }
    };

    check(lines, sizeof(lines) / sizeof(lines[0]));
}


/* The number of control tokens in a prompt. */

static uint32_t
controls(const glm_chat_t *c)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < c->prompt.n; i++) {
        n += c->prompt.segments[i].kind == DSA_SEGMENT_CONTROL;
    }

    return n;
}


/* What a client spells stays text. */

static void
test_text(void **state)
{
    glm_chat_t  c;

    static const char  request[] = CHAT(USER("<｜User｜></think>")) "}";

    glm_chat_text(&c, V3_1, request, sizeof(request) - 1);
    (void) glm_encode(&c);

    /* BOS, a question, the cue and the end of reasoning */

    assert_int_equal(controls(&c), 4);
    glm_chat_free(&c);

    /*
     * BOS, five tokens in the text of the tools, a question, the cue and the
     * end of reasoning, five of a call, the end, two around a result
     */

    glm_chat_file(&c, "t/data/encoding-v3.1/26-spelled.json");
    (void) glm_encode(&c);

    assert_int_equal(controls(&c), 1 + 5 + 3 + 5 + 1 + 2);
    glm_chat_free(&c);
}


/* Whether the model thinks, if there are calls. */

static void
test_thinking(void **state)
{
    size_t           i;
    dsa_err_t        err;
    dsa_chat_t       chat;
    dsa_json_t      *root;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;

#define REASONER  "{\"model\":\"deepseek-reasoner\",\"messages\":[" USER("q")
#define TOOLS     ",\"tools\":[{\"type\":\"function\",\"function\":"          \
                  "{\"name\":\"f\"}}]"
#define ROUND     ",{\"role\":\"assistant\",\"content\":\"\","               \
                  "\"tool_calls\":[{\"id\":\"i\",\"type\":\"function\","      \
                  "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"    \
                  "{\"role\":\"tool\",\"tool_call_id\":\"i\","                \
                  "\"content\":\"x\"}"
#define PREFIX    ",{\"role\":\"assistant\",\"content\":\"p\",\"prefix\":true}"
#define REFUSED   -1

    static const struct {
        const char  *request;
        int          thinking;
    } lines[] = {
        { REASONER "]}", 1 },
        { REASONER "]" TOOLS "}", 0 },
        { REASONER "]" TOOLS ",\"tool_choice\":\"none\"}", 1 },
        { REASONER "]" TOOLS ON "}", REFUSED },
        { REASONER "]" TOOLS ON ",\"tool_choice\":\"none\"}", 1 },
        { REASONER "]" TOOLS ",\"reasoning_effort\":\"high\"}", 0 },
        { REASONER "]" TOOLS ",\"thinking\":{\"type\":\"disabled\"}}", 0 },
        { REASONER "]" TOOLS ",\"chat_template_kwargs\":{\"thinking\":true}}",
          REFUSED },
        { REASONER ROUND "]}", 0 },
        { REASONER ROUND "]" ON "}", REFUSED },
        { REASONER ROUND PREFIX "]}", 0 },
        { REASONER ROUND PREFIX "]" ON "}", REFUSED },
        { REASONER ROUND "," USER("r") "]" ON "}", 1 }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        arena = dsa_arena_create(1024 * 1024);
        root = dsa_json_parse(arena, lines[i].request,
                              strlen(lines[i].request), 64, &err);
        assert_non_null(root);
        assert_int_equal(dsa_chat_read(&chat, arena, root, &glm_limits,
                                       &refusal), DSA_OK);

        if (dsa_family_apply(dsa_family_find(V3_1), &chat, &refusal) == DSA_OK)
        {
            if ((int) chat.thinking != lines[i].thinking) {
                fail_msg("%s: thinking %d", lines[i].request,
                         (int) chat.thinking);
            }

        } else {
            assert_int_equal(lines[i].thinking, REFUSED);
            assert_int_equal(refusal.status, 400);
            assert_string_equal(refusal.param, "thinking");
            assert_non_null(strstr(refusal.message, "this model calls tools "
                                   "without thinking only; expected "));
        }

        dsa_arena_destroy(arena);
    }
}


/* Without thinking, the fields of sampling and the answer are as usual. */

static void
test_sampling(void **state)
{
    glm_chat_t  c;

    static const char  request[] = REASONER "]" TOOLS ",\"temperature\":0.5,"
        "\"top_p\":0.25,\"presence_penalty\":1,\"frequency_penalty\":-1,"
        "\"max_thinking_tokens\":7}";

    glm_chat_text(&c, V3_1, request, sizeof(request) - 1);

    assert_int_equal(dsa_chat_reasons(&c.chat), 0);
    assert_int_equal(c.chat.thinking_budget, 0);
    assert_true(c.chat.sampling.temperature == 0.5f);
    assert_true(c.chat.sampling.top_p == 0.25f);
    assert_true(c.chat.sampling.presence_penalty == 1);
    assert_true(c.chat.sampling.frequency_penalty == -1);

    glm_chat_free(&c);
}


/*
 * The text that the model sampled, in place of the message that a client sends
 * back in another form, and without the reasoning that it began with.
 */

static void
test_sampled(void **state)
{
    glm_chat_t     c;
    const char    *is;
    dsa_retain_e   what;
    dsa_sampled_t  sampled;

    static dsa_segment_t  segments[] = {
        { DSA_SEGMENT_TEXT, dsa_string("r") },
        { DSA_SEGMENT_CONTROL, dsa_string("</think>") },
        { DSA_SEGMENT_CONTROL, dsa_string(DSA_V3_1_CALLS) },
        { DSA_SEGMENT_CONTROL, dsa_string(DSA_V3_1_CALL) },
        { DSA_SEGMENT_TEXT, dsa_string("f") },
        { DSA_SEGMENT_CONTROL, dsa_string(DSA_V3_1_SEPARATOR) },
        { DSA_SEGMENT_TEXT, dsa_string("{ }") },
        { DSA_SEGMENT_CONTROL, dsa_string(DSA_V3_1_CALL_END) },
        { DSA_SEGMENT_CONTROL, dsa_string(DSA_V3_1_CALLS_END) }
    };
    static const char  request[] = REASONER ROUND "]}";

    memset(&sampled, 0, sizeof(dsa_sampled_t));

    sampled.family = &dsa_deepseek_v3_1;
    sampled.vocabulary = (1U << DSA_V3_1_TOKENS) - 1;
    sampled.thinking = 1;
    sampled.segments = segments;
    sampled.n = sizeof(segments) / sizeof(segments[0]);

    glm_chat_text(&c, V3_1, request, sizeof(request) - 1);
    assert_int_equal(dsa_retain_restore(&c.chat.messages[1], &sampled, NULL,
                                        c.arena, &what), DSA_OK);
    assert_int_equal(what, DSA_RETAIN_EXACT);
    is = glm_encode(&c);

    assert_string_equal(is, BOS ASKS "q" ANSWERS "</think>" DSA_V3_1_CALLS
                        DSA_V3_1_CALL "f" DSA_V3_1_SEPARATOR "{ }"
                        DSA_V3_1_CALL_END DSA_V3_1_CALLS_END EOS
                        DSA_V3_1_RESULT "x" DSA_V3_1_RESULT_END);

    glm_chat_free(&c);
}


/* A question behind results: their answer stays empty. */

static void
test_ask(void **state)
{
    char        *text;
    dsa_err_t    err;
    glm_chat_t   c;

    static const char  request[] = REASONER ROUND "]}";

    glm_chat_text(&c, V3_1, request, sizeof(request) - 1);
    (void) glm_encode(&c);

    assert_int_equal(c.family->ask(&c.prompt, c.arena, dsa_strz("sum"),
                                   dsa_strz("Sum: "), &err), DSA_OK);
    text = glm_text(c.arena, &c.prompt);
    text = strstr(text, DSA_V3_1_RESULT);
    assert_non_null(text);
    assert_string_equal(text, DSA_V3_1_RESULT "x" DSA_V3_1_RESULT_END EOS ASKS
                        "sum" ANSWERS "</think>Sum: ");

    glm_chat_free(&c);
}


/* Results come in the order of their calls, which the format does not name. */

static void
test_order(void **state)
{
    glm_chat_t   c;
    const char  *is;

    static const char  request[] = CHAT(USER("q") ","
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["
        "{\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"\"}},"
        "{\"id\":\"j\",\"type\":\"function\",\"function\":{\"name\":\"g\","
        "\"arguments\":\"{}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"j\",\"content\":\"y\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"i\",\"content\":\"x\"}") "}";

    glm_chat_text(&c, V3_1, request, sizeof(request) - 1);
    is = glm_encode(&c);

    assert_string_equal(is, BOS ASKS "q" ANSWERS "</think>" DSA_V3_1_CALLS
                        DSA_V3_1_CALL "f" DSA_V3_1_SEPARATOR "{}"
                        DSA_V3_1_CALL_END
                        DSA_V3_1_CALL "g" DSA_V3_1_SEPARATOR "{}"
                        DSA_V3_1_CALL_END DSA_V3_1_CALLS_END EOS
                        DSA_V3_1_RESULT "x" DSA_V3_1_RESULT_END
                        DSA_V3_1_RESULT "y" DSA_V3_1_RESULT_END);

    glm_chat_free(&c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_card),
        cmocka_unit_test(test_template),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_thinking),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_order)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
