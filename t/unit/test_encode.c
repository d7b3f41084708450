
/*
 * Copyright (C) The nginx-dsa authors
 *
 * context/deepseek/encode.c, against the published pairs and worked examples of
 * t/data/encoding, and the rules of the published encoder one by one.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/sha.h>

#include "context/deepseek/deepseek.h"
#include "t/unit/encoding.h"


#define BOS      DSA_DEEPSEEK_BOS
#define EOS      DSA_DEEPSEEK_EOS
#define USER     DSA_DEEPSEEK_USER
#define ASSIST   DSA_DEEPSEEK_ASSISTANT
#define D        DSA_DEEPSEEK_DSML


static const dsa_chat_limits_t  as_api = { 1000, 128, 1 };
static const dsa_chat_limits_t  as_published = { 1000, 128, 0 };


/*
 * Encodes a request into its prompt, and returns the text of all segments,
 * NUL-terminated.  thinking: 0 and 1 override the request, -1 does not.
 */

static char *
encode(dsa_arena_t *arena, const dsa_json_t *root, int thinking,
    const dsa_chat_limits_t *limits, dsa_prompt_t *prompt)
{
    char           *text, *p;
    uint32_t        i;
    dsa_err_t       err;
    dsa_chat_t      chat;
    dsa_refusal_t   refusal;

    if (dsa_chat_read(&chat, arena, root, limits, &refusal) != DSA_OK) {
        fail_msg("%s", refusal.message);
    }

    if (thinking != -1) {
        chat.thinking = thinking;
    }

    if (dsa_chat_check(&chat, &refusal) != DSA_OK) {
        fail_msg("%s", refusal.message);
    }

    if (dsa_deepseek.encode(prompt, arena, &chat, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    p = text = dsa_arena_alloc(arena, prompt->bytes + 1);
    assert_non_null(text);

    for (i = 0; i < prompt->n; i++) {
        assert_true(prompt->segments[i].text.len != 0);
        assert_true(i == 0 || prompt->segments[i].kind == DSA_SEGMENT_CONTROL
                    || prompt->segments[i - 1].kind == DSA_SEGMENT_CONTROL);

        p = (char *) mempcpy(p, prompt->segments[i].text.data,
                             prompt->segments[i].text.len);
    }

    assert_int_equal(p - text, prompt->bytes);
    *p = '\0';

    return text;
}


static dsa_json_t *
parse(dsa_arena_t *arena, const char *text, size_t len)
{
    dsa_err_t    err;
    dsa_json_t  *root;

    root = dsa_json_parse(arena, text, len, 64, &err);

    if (root == NULL) {
        fail_msg("%s", err.text);
    }

    return root;
}


/*
 * Each control segment must be the name of a control token.  all: every name
 * in the text must be a control segment.
 */

static void
check_control(const dsa_prompt_t *prompt, const char *text, int all)
{
    size_t       i;
    uint32_t     k, n, found;
    const char  *p;

    n = 0;

    for (k = 0; k < prompt->n; k++) {
        if (prompt->segments[k].kind != DSA_SEGMENT_CONTROL) {
            continue;
        }

        for (i = 0; i < DSA_DEEPSEEK_TOKENS; i++) {
            if (dsa_str_eq(prompt->segments[k].text,
                           dsa_deepseek_tokens[i].name))
            {
                break;
            }
        }

        assert_true(i < DSA_DEEPSEEK_TOKENS);
        n++;
    }

    if (!all) {
        return;
    }

    found = 0;

    for (i = 0; i < DSA_DEEPSEEK_TOKENS; i++) {
        for (p = strstr(text, dsa_deepseek_tokens[i].name.data); p != NULL;
             p = strstr(p + 1, dsa_deepseek_tokens[i].name.data))
        {
            found++;
        }
    }

    assert_int_equal(n, found);
}


static void
check_published(const char *input, const char *output)
{
    char          *json, *expected, *text;
    size_t         len;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    arena = dsa_arena_create(16 * 1024 * 1024);
    json = read_text(input, &len);
    text = encode(arena, parse(arena, json, len), 1, &as_published, &prompt);

    expected = read_text(output, &len);

    if (expected[len - 1] == '\n') {
        expected[--len] = '\0';
    }

    assert_int_equal(prompt.bytes, len);
    assert_string_equal(text, expected);
    check_control(&prompt, text, 1);

    free(json);
    free(expected);
    dsa_arena_destroy(arena);
}


static void
test_published(void **state)
{
    check_published("test_input.json", "test_output.txt");
    check_published("test_input_search_wo_date.json",
                    "test_output_search_wo_date.txt");
}


/* The examples' ids show how many control tokens there are. */

static void
test_worked_examples(void **state)
{
    char          *json, *text;
    size_t         len;
    int64_t        id;
    uint32_t       n, control, k;
    dsa_json_t    *root, *example, *v;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    arena = dsa_arena_create(16 * 1024 * 1024);
    json = read_text("worked_examples.json", &len);
    root = parse(arena, json, len);
    n = 0;

    for (example = dsa_json_get(root, "examples")->first; example != NULL;
         example = example->next)
    {
        text = encode(arena, example,
                      dsa_str_eqz(dsa_json_get(example,
                                               "thinking_mode")->text,
                                  "thinking"),
                      &as_published, &prompt);

        assert_string_equal(text, dsa_json_get(example, "prompt")->text.data);
        check_control(&prompt, text, 1);

        control = 0;

        for (v = dsa_json_get(example, "token_ids")->first; v != NULL;
             v = v->next)
        {
            assert_int_equal(dsa_json_int(v, &id), DSA_OK);
            control += id < 2 || id >= 128000;
        }

        for (k = 0; k < prompt.n; k++) {
            control -= prompt.segments[k].kind == DSA_SEGMENT_CONTROL;
        }

        assert_int_equal(control, 0);
        n++;
    }

    assert_int_equal(n, 11);

    free(json);
    dsa_arena_destroy(arena);
}


#define M           "{\"model\":\"m\",\"messages\":["
#define U(t)        "{\"role\":\"user\",\"content\":\"" t "\"}"
#define S(t)        "{\"role\":\"system\",\"content\":\"" t "\"}"
#define DEV(t)      "{\"role\":\"developer\",\"content\":\"" t "\"}"
#define A(t)        "{\"role\":\"assistant\",\"content\":\"" t "\"}"
#define AR(r, t)    "{\"role\":\"assistant\",\"content\":\"" t "\","         \
                    "\"reasoning_content\":\"" r "\"}"
#define AP(x, t)    "{\"role\":\"assistant\",\"prefix\":true," x             \
                    "\"content\":\"" t "\"}"
#define AC(x)       "{\"role\":\"assistant\",\"tool_calls\":[" x "]}"
#define C(id, a)    "{\"id\":\"" id "\",\"type\":\"function\","              \
                    "\"function\":{\"name\":\"f\",\"arguments\":" a "}}"
#define T(id, t)    "{\"role\":\"tool\",\"tool_call_id\":\"" id "\","        \
                    "\"content\":\"" t "\"}"
#define TOOL(n)     "{\"type\":\"function\",\"function\":{\"name\":\"" n     \
                    "\"}}"

#define CALLS       "\n\n<" D "function_calls>\n"
#define CALLS_END   "</" D "function_calls>"
#define INV         "<" D "invoke name=\"f\">\n"
#define INV_END     "</" D "invoke>\n"
#define PAR(k, s)   "<" D "parameter name=\"" k "\" string=\"" s "\">"
#define PAR_END     "</" D "parameter>\n"
#define RES         "\n\n<function_results>"
#define RES_END     "\n</function_results>\n\n"

/* the head of the tools block, checked by its digest */
#define HEAD        "\x01"

#define FORMAT      "## Response Format:\n\nYou MUST strictly adhere to the " \
                    "following schema to reply:\n"


static const struct {
    int          thinking;
    int          hosted;
    const char  *in;
    const char  *out;
} cases[] = {

    /* roles in every order */

    { 0, 0, M S("a") "," S("b") "," U("c") "]}",
      BOS "ab" USER "c" ASSIST "</think>" },
    { 0, 1, M U("a") "," S("b") "," U("c") "]}",
      BOS USER "a" ASSIST "</think>b" USER "c" ASSIST "</think>" },
    { 0, 1, M DEV("a") "," U("b") "," DEV("c") "," U("d") "],\"tools\":["
      TOOL("t") "]}",
      BOS "a\n\n" HEAD "{\"name\": \"t\"}\n</functions>\n" USER "b" ASSIST
      "</think>c" USER "d" ASSIST "</think>" },
    { 1, 1, M U("a") "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" USER "b" ASSIST "<think>" },
    { 0, 0, M S("a") "]}", BOS "a" },
    { 0, 1, M U("") "]}", BOS USER ASSIST "</think>" },
    { 0, 1, M "{\"role\":\"user\"}]}", BOS USER ASSIST "</think>" },
    { 0, 1, M "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
      "\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}",
      BOS USER "ab" ASSIST "</think>" },
    { 0, 0, M U("a") "," A("b") "," A("c") "]}",
      BOS USER "a" ASSIST "</think>b" EOS "c" EOS },

    /* reasoning: never in chat mode, after the last user in thinking mode */

    { 0, 0, M U("a") "," AR("r", "b") "]}",
      BOS USER "a" ASSIST "</think>b" EOS },
    { 1, 0, M U("a") "," AR("r", "b") "]}",
      BOS USER "a" ASSIST "<think>r</think>b" EOS },
    { 1, 1, M U("a") "," AR("r", "b") "," U("c") "]}",
      BOS USER "a" ASSIST "</think>b" EOS USER "c" ASSIST "<think>" },
    { 1, 0, M S("s") "," AR("r", "b") "]}", BOS "sr</think>b" EOS },
    { 1, 0, M AR("r", "b") "]}", BOS "r</think>b" EOS },
    { 1, 1, M U("a") ",{\"role\":\"assistant\",\"reasoning\":\"r\","
      "\"tool_calls\":[" C("1", "{}") "]}," T("1", "x") "]}",
      BOS USER "a" ASSIST "<think>r</think>" CALLS INV "\n" INV_END CALLS_END
      EOS RES "\n<result>x</result>" RES_END "<think>" },

    /* an answer behind an answer, also one that is still to be written */

    { 0, 1, M U("a") "," A("b") "]}",
      BOS USER "a" ASSIST "</think>b" EOS ASSIST "</think>" },
    { 1, 1, M U("a") "," AR("r", "b") "]}",
      BOS USER "a" ASSIST "<think>r</think>b" EOS ASSIST "<think>" },
    { 1, 1, M U("a") "," A("b") "]}",
      BOS USER "a" ASSIST "<think></think>b" EOS ASSIST "<think>" },
    { 1, 1, M U("a") "," AR("r", "b") "," AR("s", "c") "]}",
      BOS USER "a" ASSIST "<think>r</think>b" EOS ASSIST "<think>s</think>c"
      EOS ASSIST "<think>" },
    { 1, 1, M U("a") "," AR("r", "b") "," AR("s", "c") "," U("d") "]}",
      BOS USER "a" ASSIST "</think>b" EOS ASSIST "</think>c" EOS USER "d"
      ASSIST "<think>" },
    { 1, 1, M U("a") "," AR("r", "b") "," AC(C("1", "{}")) "," T("1", "x")
      "]}",
      BOS USER "a" ASSIST "<think>r</think>b" EOS ASSIST "<think></think>"
      CALLS INV "\n" INV_END CALLS_END EOS RES "\n<result>x</result>" RES_END
      "<think>" },
    { 0, 1, M S("s") "," A("b") "]}", BOS "sb" EOS ASSIST "</think>" },

    /* calls and results */

    { 1, 1, M U("a") "," AC(C("1", "\"\"")) "," T("1", "x") "]}",
      BOS USER "a" ASSIST "<think></think>" CALLS INV "\n" INV_END CALLS_END
      EOS RES "\n<result>x</result>" RES_END "<think>" },
    { 0, 1, M U("a") "," AC(C("1", "{\"k\":\"<\\\"\\n>\"}") ","
      C("2", "\"{\\\"n\\\":1.50,\\\"o\\\":{\\\"a\\\":[]}}\"")) ","
      T("2", "y") "," T("1", "x") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV PAR("k", "true") "<\"\n>"
      PAR_END INV_END INV PAR("n", "false") "1.5" PAR_END PAR("o", "false")
      "{\"a\": []}" PAR_END INV_END CALLS_END EOS RES "\n<result>x</result>"
      "\n<result>y</result>" RES_END "</think>" },
    { 1, 1, M U("a") "," AC(C("1", "{}")) "," T("1", "x") "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV "\n" INV_END CALLS_END EOS
      RES "\n<result>x</result>" RES_END "</think>" USER "b" ASSIST
      "<think>" },
    { 0, 0, M U("a") "," AC(C("1", "{}")) "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV "\n" INV_END CALLS_END EOS },

    /* calls without a result, after which the conversation has moved on */

    { 0, 1, M U("a") "," AC(C("1", "{}")) "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV "\n" INV_END CALLS_END EOS
      USER "b" ASSIST "</think>" },
    { 1, 1, M U("a") "," AC(C("1", "{}") "," C("2", "{}") "," C("3", "{}"))
      "," T("3", "z") "," T("1", "x") "," S("s") "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV "\n" INV_END INV "\n" INV_END
      INV "\n" INV_END CALLS_END EOS RES "\n<result>x</result>"
      "\n<result>z</result>" RES_END "</think>s" USER "b" ASSIST "<think>" },

    /* arguments that are not a JSON object */

    { 0, 1, M U("a") "," AC(C("1", "\"[1,2]\"") "," C("2", "\"x\\n\"") ","
      C("3", "\"{\"") "," C("4", "\"{\\\"a\"") ","
      C("5", "\"{\\\"\\\\ud800\\\": 1}\"")) "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV "[1,2]\n" INV_END INV "x\n"
      INV_END INV "{\n" INV_END INV "{\"a\n" INV_END INV
      "{\"\\ud800\": 1}\n" INV_END CALLS_END EOS USER "b" ASSIST "</think>" },
    { 0, 1, M U("a") "," AC(C("1", "\" {\\\"a\\\\u00e9\\\" :\\\"x\\\\n"
      "\\\\ud83d\\\\ude00\\\",\\\"b\\\":[1,{\\\"c\\\":\\\"]}\\\\\\\"\\\"}],"
      "\\\"d\\\":tru \"")) "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV PAR("a\xc3\xa9", "true")
      "x\n\xf0\x9f\x98\x80" PAR_END PAR("b", "false")
      "[1,{\"c\":\"]}\\\"\"}]" PAR_END PAR("d", "false") "tru " PAR_END
      INV_END CALLS_END EOS USER "b" ASSIST "</think>" },
    { 0, 1, M U("a") "," AC(C("1", "\"{\\\"a\\\": \\\"x\\\\u12\"") ","
      C("2", "\"{\\\"a\\\": \\\"x\\\" \\\"y\\\"}\"") ","
      C("3", "\"{\\\"a\\\": 1, \"")) "," U("b") "]}",
      BOS USER "a" ASSIST "</think>" CALLS INV PAR("a", "false") "\"x\\u12"
      PAR_END INV_END INV "{\"a\": \"x\" \"y\"}\n" INV_END INV
      PAR("a", "false") "1" PAR_END INV_END CALLS_END EOS USER "b" ASSIST
      "</think>" },

    /* a prefix is left open */

    { 0, 1, M U("a") "," AP("", "b") "]}", BOS USER "a" ASSIST "</think>b" },
    { 1, 1, M U("a") "," AP("", "b") "]}",
      BOS USER "a" ASSIST "<think></think>b" },
    { 1, 1, M U("a") "," AP("\"reasoning_content\":\"r\",", "b") "]}",
      BOS USER "a" ASSIST "<think>r</think>b" },
    { 1, 1, M U("a") "," AP("\"reasoning_content\":\"r\",", "") "]}",
      BOS USER "a" ASSIST "<think>r" },
    { 0, 1, M U("a") "," AP("\"reasoning_content\":\"r\",", "b") "]}",
      BOS USER "a" ASSIST "</think>b" },

    /* tools and response_format of the request */

    { 0, 1, M U("a") "],\"tools\":[" TOOL("t") "]}",
      BOS "\n\n" HEAD "{\"name\": \"t\"}\n</functions>\n" USER "a" ASSIST
      "</think>" },
    { 0, 1, M S("s") "," U("a") "],\"tools\":[" TOOL("t") "," TOOL("u")
      "],\"tool_choice\":\"none\"}",
      BOS "s\n\n" HEAD "{\"name\": \"t\"}\n{\"name\": \"u\"}\n</functions>\n"
      USER "a" ASSIST "</think>" },
    { 0, 1, M U("a") "],\"tools\":[]}", BOS USER "a" ASSIST "</think>" },
    { 0, 1, M S("json") "," U("a") "],\"tools\":[" TOOL("t") "],"
      "\"response_format\":{\"type\":\"json_object\"}}",
      BOS "json\n\n" HEAD "{\"name\": \"t\"}\n</functions>\n\n\n" FORMAT
      "{\"type\": \"json_object\"}" USER "a" ASSIST "</think>" },
    { 0, 1, M U("json") "],\"response_format\":{\"type\":\"json_object\"}}",
      BOS "\n\n" FORMAT "{\"type\": \"json_object\"}" USER "json" ASSIST
      "</think>" },
    { 0, 1, M U("a") "],\"response_format\":{\"type\":\"text\"}}",
      BOS USER "a" ASSIST "</think>" },
    { 0, 0, M "{\"role\":\"system\",\"content\":\"s\",\"tools\":["
      TOOL("t") "],\"response_format\":{\"x\":1}}," U("a") "],\"tools\":["
      TOOL("u") "]}",
      BOS "s\n\n" HEAD "{\"name\": \"u\"}\n</functions>\n\n\n" FORMAT
      "{\"x\": 1}" USER "a" ASSIST "</think>" },

    /* developer messages */

    { 1, 0, M DEV("a") "," AR("r", "b") "," DEV("c") "]}",
      BOS "b" EOS USER "\n\n# The user's message is: c" ASSIST "<think>" },
    { 0, 0, M DEV("a") "," A("b") "," U("c") "]}",
      BOS USER "\n\n# The user's message is: a" ASSIST "</think>b" EOS USER
      "c" ASSIST "</think>" }
};


/* Checks the digest of the head of the tools block, and replaces it by HEAD. */

static void
cut_head(char *text)
{
    char           *head, *end;
    size_t          i;
    char            hex[2 * SHA256_DIGEST_LENGTH + 1];
    unsigned char   digest[SHA256_DIGEST_LENGTH];

    head = strstr(text, "## Tools\n");

    if (head == NULL) {
        return;
    }

    end = strstr(head, "<functions>\n");
    assert_non_null(end);
    end += strlen("<functions>\n");
    assert_int_equal(end - head, 1133);

    (void) SHA256((unsigned char *) head, end - head, digest);

    for (i = 0; i < sizeof(digest); i++) {
        (void) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }

    assert_string_equal(hex, "963a72ee9be43f07d21bec2348ed2d7e"
                             "45185e4b502f2a4da35a540299dc2b03");

    *head = HEAD[0];
    memmove(head + 1, end, strlen(end) + 1);
}


static void
test_cases(void **state)
{
    char          *text;
    size_t         i;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena = dsa_arena_create(1024 * 1024);

        text = encode(arena, parse(arena, cases[i].in, strlen(cases[i].in)),
                      cases[i].thinking,
                      cases[i].hosted ? &as_api : &as_published, &prompt);
        check_control(&prompt, text, 1);
        cut_head(text);
        assert_string_equal(text, cases[i].out);

        dsa_arena_destroy(arena);
    }
}


/* Text from outside is in text segments, in every place that it can be in. */

static void
test_injection(void **state)
{
    char          *text;
    size_t         i, n;
    uint32_t       k, control;
    dsa_buf_t      in;
    const char    *p, *at;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;

    static const char  *const  places[] = {
        M S("@") "," U("q") "]}",
        M U("@") "]}",
        M U("q") "," AR("@", "x") "," U("q") "]}",
        M U("q") "," A("@") "," U("q") "]}",
        M U("q") "," AP("", "@") "]}",
        M U("q") "," AP("\"reasoning\":\"@\",", "a") "]}",
        M U("q") "," AC(C("1", "{\"@\":\"a\"}")) "," T("1", "x") "]}",
        M U("q") "," AC(C("1", "{\"k\":\"@\"}")) "," T("1", "x") "]}",
        M U("q") "," AC(C("1", "{\"k\":[\"@\"]}")) "," T("1", "x") "]}",
        M U("q") "," AC(C("1", "\"@\"")) "," T("1", "x") "]}",
        M U("q") "," AC(C("1", "\"{\\\"@\\\": \\\"@\"")) "," U("q") "]}",
        M U("q") "," AC(C("1", "\"{\\\"k\\\": [@\"")) "," U("q") "]}",
        M U("q") "," AC("{\"id\":\"1\",\"function\":{\"name\":\"@\"}}") ","
        T("1", "x") "]}",
        M U("q") "," AC(C("1", "{}")) "," T("1", "@") "]}",
        M U("q") "],\"tools\":[{\"function\":{\"name\":\"f\",\"@\":\"@\","
        "\"description\":\"@\"}}]}",
        M U("json") "],\"response_format\":{\"type\":\"json_object\","
        "\"@\":\"@\"}}"
    };

    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        control = 0;

        /* once with a word, once with all names of control tokens */

        for (n = 0; n < 2; n++) {
            memset(&in, 0, sizeof(in));

            for (p = places[i]; (at = strchr(p, '@')) != NULL; p = at + 1) {
                dsa_buf_add(&in, p, at - p);
                dsa_buf_addz(&in, n == 0 ? "word" : BOS EOS USER ASSIST
                             "<think></think>" D "<" D "invoke");
            }

            dsa_buf_addz(&in, p);
            assert_false(in.failed);

            arena = dsa_arena_create(1024 * 1024);
            text = encode(arena, parse(arena, in.data, in.len), 1, &as_api,
                          &prompt);
            check_control(&prompt, text, n == 0);

            for (k = 0; k < prompt.n; k++) {
                if (prompt.segments[k].kind == DSA_SEGMENT_CONTROL) {
                    control += n == 0 ? 1 : -1;
                }
            }

            dsa_arena_destroy(arena);
            dsa_buf_free(&in);
        }

        assert_int_equal(control, 0);
    }
}


/* An arena that is too small gives an error and no prompt. */

static void
test_memory(void **state)
{
    int            rc;
    size_t         limit;
    uint32_t       done;
    dsa_err_t      err;
    dsa_chat_t     chat;
    dsa_json_t    *root;
    dsa_arena_t   *arena, *small;
    dsa_prompt_t   prompt;
    dsa_refusal_t  refusal;

    static const char  in[] = M U("hello") "," A("there") "," U("x") "]}";

    arena = dsa_arena_create(1024 * 1024);
    root = parse(arena, in, sizeof(in) - 1);
    assert_int_equal(dsa_chat_read(&chat, arena, root, &as_api, &refusal),
                     DSA_OK);
    done = 0;

    for (limit = 0; limit < 4096; limit += 16) {
        small = dsa_arena_create(limit);
        rc = dsa_deepseek.encode(&prompt, small, &chat, &err);
        assert_true(rc == DSA_OK || (rc == DSA_ERROR && err.text[0] != 0));
        assert_true(!done || rc == DSA_OK);
        done |= rc == DSA_OK;
        dsa_arena_destroy(small);
    }

    assert_true(done);
    dsa_arena_destroy(arena);
}


/* Lists of messages that dsa_chat_check() would have refused. */

static void
test_unchecked(void **state)
{
    size_t         i;
    dsa_err_t      err;
    dsa_chat_t     chat;
    dsa_arena_t   *arena;
    dsa_prompt_t   prompt;
    dsa_refusal_t  refusal;

    static const char  *const  lists[] = {
        M T("1", "x") "]}",
        M U("q") "," T("1", "x") "]}",
        M U("q") "," AC(C("1", "{}")) "," T("1", "x") "," T("2", "y") "]}",
        M U("q") "," AC(C("1", "{}") "," C("2", "{}")) "," T("1", "x") "]}"
    };

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        arena = dsa_arena_create(1024 * 1024);
        assert_int_equal(dsa_chat_read(&chat, arena,
                                       parse(arena, lists[i],
                                             strlen(lists[i])),
                                       &as_api, &refusal),
                         DSA_OK);
        assert_int_equal(dsa_deepseek.encode(&prompt, arena, &chat, &err),
                         DSA_ERROR);
        assert_non_null(strstr(err.text, "tool"));
        dsa_arena_destroy(arena);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_worked_examples),
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_injection),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_unchecked)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
