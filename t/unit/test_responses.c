
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Requests of the Responses API as chats, and their items as they are stored.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "context/responses.h"
#include "t/unit/chat.h"


#define BODY(input)  "{\"model\":\"m\",\"input\":" input "}"
#define USER         "{\"role\":\"user\",\"content\":\"q\"}"
#define SAYS         "{\"type\":\"message\",\"role\":\"assistant\","         \
                     "\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}"
#define THINKS(x)    "{\"type\":\"reasoning\",\"summary\":[],\"content\":["  \
                     "{\"type\":\"reasoning_text\",\"text\":\"" x "\"}]}"
#define SEALED(x)    "{\"type\":\"reasoning\",\"encrypted_content\":\"" x    \
                     "\"}"
#define CALLS(id)    "{\"type\":\"function_call\",\"call_id\":\"" id "\","   \
                     "\"name\":\"f\",\"arguments\":\"{}\"}"
#define GIVES(id)    "{\"type\":\"function_call_output\",\"call_id\":\"" id  \
                     "\",\"output\":\"r\"}"


/* Decrypts "sealed:TEXT". */

static int
open_sealed(void *data, dsa_arena_t *arena, dsa_str_t sealed, dsa_str_t *text)
{
    (void) data;
    (void) arena;

    if (sealed.len < 7 || memcmp(sealed.data, "sealed:", 7) != 0) {
        return DSA_AGAIN;
    }

    *text = dsa_str(sealed.data + 7, sealed.len - 7);

    return DSA_OK;
}


static const dsa_responses_reader_t  reader = {
    { 16, 4, 1 }, open_sealed, NULL, 0
};


static int
read_body(dsa_responses_t *out, dsa_chat_t *chat, dsa_arena_t *arena,
    const char *text, dsa_refusal_t *refusal)
{
    dsa_err_t    err;
    dsa_json_t  *root;

    memset(refusal, 0, sizeof(dsa_refusal_t));

    root = dsa_json_parse(arena, text, strlen(text), DEPTH, &err);

    if (root == NULL) {
        fail_msg("%s: %s", text, err.text);
    }

    return dsa_responses_read(out, chat, arena, root, &reader, refusal);
}


/*
 * The messages as text: the first letter of the role, then in brackets the
 * reasoning, the content and the ids of calls or of the call.
 */

static void
story(const dsa_chat_t *chat, char *p, size_t size)
{
    char                  *last;
    uint32_t               i, k;
    const dsa_message_t   *m;

    static const char  roles[] = "sudat";

    last = p + size;
    *p = '\0';

    for (i = 0; i < chat->n_messages; i++) {
        m = &chat->messages[i];

        p += snprintf(p, last - p, "%c[%.*s|%.*s|%.*s", roles[m->role],
                      (int) m->reasoning.len, m->reasoning.data,
                      (int) m->content.len, m->content.data,
                      (int) m->tool_call_id.len, m->tool_call_id.data);

        for (k = 0; k < m->n_calls; k++) {
            p += snprintf(p, last - p, "%.*s", (int) m->calls[k].id.len,
                          m->calls[k].id.data);
        }

        p += snprintf(p, last - p, "]");
    }
}


static void
expect_story(const char *body, const char *expected)
{
    char             text[512];
    dsa_chat_t       chat;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    arena = dsa_arena_create(MEMORY);

    if (read_body(&out, &chat, arena, body, &refusal) != DSA_OK) {
        fail_msg("%s: %s", body, refusal.message);
    }

    story(&chat, text, sizeof(text));
    assert_string_equal(text, expected);

    dsa_arena_destroy(arena);
}


static void
test_items_become_messages(void **state)
{
    expect_story(BODY("\"q\""), "u[|q|]");
    expect_story(BODY("[" USER "]"), "u[|q|]");
    expect_story("{\"model\":\"m\",\"input\":\"q\",\"instructions\":\"i\"}",
                 "s[|i|]u[|q|]");

    /* one answer */

    expect_story(BODY("[" USER "," THINKS("t") "," SAYS "," CALLS("1") ","
                      CALLS("2") "," GIVES("1") "," GIVES("2") "]"),
                 "u[|q|]a[t|a|12]t[|r|1]t[|r|2]");

    /* another one begins with reasoning, or with a part that comes first */

    expect_story(BODY("[" USER "," CALLS("1") "," GIVES("1") "," THINKS("t")
                      "," CALLS("2") "," GIVES("2") "]"),
                 "u[|q|]a[||1]t[|r|1]a[t||2]t[|r|2]");
    expect_story(BODY("[" USER "," SAYS "," THINKS("t") "," SAYS "," USER "]"),
                 "u[|q|]a[|a|]a[t|a|]u[|q|]");
    expect_story(BODY("[" USER "," THINKS("t") "," THINKS("u") "," SAYS ","
                      USER "]"),
                 "u[|q|]a[t||]a[u|a|]u[|q|]");

    /* reasoning that nothing follows */

    expect_story(BODY("[" USER "," THINKS("t") "," USER "]"),
                 "u[|q|]u[|q|]");
    expect_story(BODY("[" USER "," THINKS("t") "]"), "u[|q|]");
}


static void
test_encrypted_reasoning(void **state)
{
    dsa_chat_t       chat;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    expect_story(BODY("[" USER "," SEALED("sealed:x") "," SAYS "," USER "]"),
                 "u[|q|]a[x|a|]u[|q|]");

    arena = dsa_arena_create(MEMORY);

    assert_int_equal(read_body(&out, &chat, arena,
                               BODY("[" USER "," SEALED("x") "]"), &refusal),
                     DSA_ERROR);
    assert_int_equal(refusal.status, 400);
    assert_string_equal(refusal.param, "input[1].encrypted_content");

    dsa_arena_destroy(arena);
}


/* Stored items come behind instructions; encrypted_content is ignored. */

static void
test_stored_items(void **state)
{
    char             text[512];
    dsa_str_t        lists[4];
    dsa_chat_t       chat;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    arena = dsa_arena_create(MEMORY);

    assert_int_equal(read_body(&out, &chat, arena,
                               "{\"model\":\"m\",\"instructions\":\"i\","
                               "\"previous_response_id\":\"p\",\"input\":["
                               GIVES("1") "]}", &refusal),
                     DSA_OK);
    assert_int_equal(out.previous.len, 1);
    assert_int_equal(out.store, 1);
    assert_int_equal(out.store_given, 0);

    lists[0] = dsa_strz("[" USER "]");
    lists[1] = dsa_strz("[{\"type\":\"reasoning\",\"encrypted_content\":"
                        "\"of another key\",\"content\":[{\"type\":"
                        "\"reasoning_text\",\"text\":\"t\"}]}," SAYS "]");
    lists[2] = dsa_strz("[" USER "]");
    lists[3] = dsa_strz("[" CALLS("1") "]");

    assert_int_equal(dsa_responses_insert(&chat, arena, lists, 4,
                                          &reader.limits, &refusal),
                     DSA_OK);

    story(&chat, text, sizeof(text));
    assert_string_equal(text, "s[|i|]u[|q|]a[t|a|]u[|q|]a[||1]t[|r|1]");

    assert_int_equal(dsa_chat_check(&chat, &refusal), DSA_OK);

    /* a list that cannot be read is the server's fault */

    lists[1] = dsa_strz("[{\"type\":\"king\"}]");
    assert_int_equal(dsa_responses_insert(&chat, arena, lists, 4,
                                          &reader.limits, &refusal),
                     DSA_ERROR);
    assert_int_equal(refusal.status, 500);

    /* too many messages are the client's */

    lists[1] = dsa_strz("[" USER "," USER "," USER "," USER "," USER ","
                        USER "," USER "," USER "," USER "," USER "," USER
                        "]");
    assert_int_equal(dsa_responses_insert(&chat, arena, lists, 4,
                                          &reader.limits, &refusal),
                     DSA_ERROR);
    assert_int_equal(refusal.status, 400);

    dsa_arena_destroy(arena);
}


/* An error about a message names the item with which it begins. */

static void
test_errors_name_items(void **state)
{
    size_t           i;
    dsa_chat_t       chat;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    static const char *const  cases[][2] = {
        { "[" USER "," THINKS("t") "," SAYS ",{\"role\":\"system\","
          "\"content\":\"s\"}]", "input[3].role" },
        { "[" USER "," THINKS("t") "," USER "," GIVES("x") "]",
          "input[3].role" },
        { "[" USER "," THINKS("t") "," CALLS("1") "," SAYS "," USER "]",
          "input[1].tool_calls" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  body[2048];

        arena = dsa_arena_create(MEMORY);

        (void) snprintf(body, sizeof(body),
                        "{\"model\":\"m\",\"instructions\":\"i\",\"input\":%s}",
                        cases[i][0]);

        assert_int_equal(read_body(&out, &chat, arena, body, &refusal),
                         DSA_OK);
        assert_int_equal(dsa_chat_check(&chat, &refusal), DSA_ERROR);
        assert_string_equal(refusal.param, cases[i][1]);

        dsa_arena_destroy(arena);
    }
}


static const char *
make_id(void *data, const char *prefix)
{
    static char  id[16];

    (void) snprintf(id, sizeof(id), "%s%d", prefix, ++*(int *) data);

    return id;
}


/* What is stored reads as the same messages. */

static void
test_items_are_written(void **state)
{
    int              n;
    char             before[512], after[512];
    dsa_buf_t        b, items;
    dsa_str_t        list;
    dsa_chat_t       chat, again;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    static const char  expected[] =
        "[{\"role\":\"user\",\"id\":\"msg_1\",\"type\":\"message\","
        "\"status\":\"completed\","
        "\"content\":[{\"type\":\"input_text\",\"text\":"
        "\"q\"}]},{\"id\":\"rs_2\",\"type\":\"reasoning\",\"summary\":[],"
        "\"content\":[{\"type\":\"reasoning_text\",\"text\":\"x\"}]},"
        "{\"id\":\"own\",\"type\":\"function_call\",\"status\":\"completed\","
        "\"call_id\":\"1\",\"name\":\"f\",\"arguments\":"
        "\"{\\\"a\\\":[1,{\\\"b\\\":1e999}]}\"},{\"id\":\"fco_3\",\"type\":"
        "\"function_call_output\",\"status\":\"completed\",\"call_id\":\"1\","
        "\"output\":\"r\"}]";

    arena = dsa_arena_create(MEMORY);

    assert_int_equal(read_body(&out, &chat, arena,
                     BODY("[" USER "," SEALED("sealed:x") ",{\"id\":\"own\","
                          "\"type\":\"function_call\",\"call_id\":\"1\","
                          "\"name\":\"f\",\"arguments\":"
                          "\"{\\\"a\\\":[1,{\\\"b\\\":1e999}]}\"},"
                          GIVES("1") "]"), &refusal),
                     DSA_OK);

    n = 0;
    memset(&b, 0, sizeof(dsa_buf_t));
    memset(&items, 0, sizeof(dsa_buf_t));

    assert_int_equal(dsa_responses_items(&items, arena, out.input, &reader,
                                         make_id, &n),
                     DSA_OK);
    dsa_responses_array(&b, &items);
    dsa_buf_free(&items);
    assert_int_equal(b.len, sizeof(expected) - 1);
    assert_memory_equal(b.data, expected, b.len);

    story(&chat, before, sizeof(before));

    memset(&again, 0, sizeof(dsa_chat_t));
    list = dsa_str(b.data, b.len);
    assert_int_equal(dsa_responses_insert(&again, arena, &list, 1,
                                          &reader.limits, &refusal),
                     DSA_OK);
    story(&again, after, sizeof(after));
    assert_string_equal(before, after);

    dsa_buf_free(&b);
    dsa_arena_destroy(arena);
}


static void
test_arguments_as_object(void **state)
{
    int              n;
    dsa_buf_t        b;
    dsa_chat_t       chat;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    arena = dsa_arena_create(MEMORY);

    assert_int_equal(read_body(&out, &chat, arena,
                     BODY("[" USER ",{\"id\":\"i\",\"type\":\"function_call\","
                          "\"call_id\":\"1\",\"name\":\"f\",\"arguments\":"
                          "{\"a\\\"\":[true,null]}}," GIVES("1") "]"),
                     &refusal),
                     DSA_OK);

    n = 0;
    memset(&b, 0, sizeof(dsa_buf_t));

    assert_int_equal(dsa_responses_items(&b, arena, out.input, &reader,
                                         make_id, &n),
                     DSA_OK);
    assert_non_null(strstr(b.data + strlen(b.data) + 1, "\"arguments\":"
                           "\"{\\\"a\\\\\\\"\\\":[true,null]}\""));

    dsa_buf_free(&b);
    dsa_arena_destroy(arena);
}


/* Reading takes time in proportion to the size, whatever there is many of. */

static void
test_many_members(void **state)
{
    int              n;
    dsa_buf_t        b;
    dsa_chat_t       chat;
    dsa_arena_t     *arena;
    dsa_refusal_t    refusal;
    dsa_responses_t  out;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "{\"model\":\"m\",\"input\":\"q\"");

    for (n = 0; n < 100000; n++) {
        dsa_buf_printf(&b, ",\"x%d\":%d", n, n);
    }

    dsa_buf_add(&b, "}", 2);
    assert_int_equal(b.failed, 0);

    arena = dsa_arena_create(256 * 1024 * 1024);

    /* 20 ms if the time grows with the size, many seconds with its square */

    (void) alarm(5);

    assert_int_equal(read_body(&out, &chat, arena, b.data, &refusal), DSA_OK);

    (void) alarm(0);

    dsa_arena_destroy(arena);
    dsa_buf_free(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_items_become_messages),
        cmocka_unit_test(test_encrypted_reasoning),
        cmocka_unit_test(test_stored_items),
        cmocka_unit_test(test_errors_name_items),
        cmocka_unit_test(test_items_are_written),
        cmocka_unit_test(test_arguments_as_object),
        cmocka_unit_test(test_many_members)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
