
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Lists of messages: the order of results, what only the published encoder
 * accepts, and conversations that are stored.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "t/unit/chat.h"


static const dsa_chat_limits_t  as_published = { 8, 4, 0 };


static void
test_results_in_order(void **state)
{
    dsa_chat_t    chat;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(MEMORY);

    must_read(&chat, arena, MS(U "," AC(CALL("a") "," CALL("b") ","
                               CALL("c")) "," T("c") "," T("a") "," T("b")));
    expect_str(chat.messages[2].tool_call_id, "a");
    expect_str(chat.messages[3].tool_call_id, "b");
    expect_str(chat.messages[4].tool_call_id, "c");

    dsa_arena_destroy(arena);
}


/* What only the rules of the published encoder accept. */

static void
test_published_form(void **state)
{
    dsa_chat_t     chat;
    dsa_arena_t   *arena;
    dsa_refusal_t  refusal;

    static const char  in[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\"s\",\"tools\":["
        "{\"function\":{\"name\":\"f\"}}],\"response_format\":{\"type\":"
        "\"object\"}},{\"role\":\"developer\",\"content\":\"d\"},"
        "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":null,\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\","
        "\"content\":\"r\"},{\"role\":\"assistant\",\"content\":\"a\"}],"
        "\"response_format\":{\"type\":\"object\"}}";

    arena = dsa_arena_create(MEMORY);

    assert_int_equal(read_chat(&chat, arena, in, sizeof(in) - 1,
                               &as_published, &refusal),
                     DSA_OK);
    assert_int_equal(chat.messages[0].tools->n, 1);
    assert_non_null(chat.messages[0].response_format);
    assert_non_null(chat.response_format);
    assert_int_equal(chat.messages[1].role, DSA_ROLE_DEVELOPER);

    assert_int_equal(read_chat(&chat, arena, in, sizeof(in) - 1, &as_api,
                               &refusal),
                     DSA_ERROR);

    dsa_arena_destroy(arena);
}


static void
test_prepend(void **state)
{
    dsa_chat_t     chat;
    dsa_arena_t   *arena;
    dsa_refusal_t  refusal;

    arena = dsa_arena_create(MEMORY);

    /* the conversation ends with a call, and the request has its result */

    assert_int_equal(dsa_chat_read(&chat, arena,
                                   parse_json(arena, MS(T("1") "," U)), &as_api,
                                   &refusal),
                     DSA_OK);
    assert_int_equal(dsa_chat_prepend(&chat, arena,
                                      parse_json(arena, "[" U "," AC(CALL("1"))
                                                   "]"),
                                      &as_api, &refusal),
                     DSA_OK);
    assert_int_equal(chat.n_messages, 4);
    assert_int_equal(chat.n_stored, 2);
    assert_int_equal(chat.messages[1].n_calls, 1);
    assert_int_equal(chat.messages[2].role, DSA_ROLE_TOOL);
    assert_int_equal(dsa_chat_check(&chat, &refusal), DSA_OK);

    assert_int_equal(dsa_chat_prepend(&chat, arena, parse_json(arena, "[]"),
                                      &as_api, &refusal),
                     DSA_OK);
    assert_int_equal(chat.n_messages, 4);

    /* the path of an error begins with the name of the list */

    assert_int_equal(dsa_chat_prepend(&chat, arena,
                                      parse_json(arena, "[" AC(CALL("1"))
                                                   ",{\"role\":"
                                                   "\"assistant\"}]"),
                                      &as_api, &refusal),
                     DSA_OK);
    assert_int_equal(dsa_chat_check(&chat, &refusal), DSA_ERROR);
    assert_string_equal(refusal.param, "conversation[0].tool_calls");

    assert_int_equal(dsa_chat_prepend(&chat, arena,
                                      parse_json(arena, "[" U ",7]"), &as_api,
                                      &refusal),
                     DSA_ERROR);
    assert_string_equal(refusal.param, "conversation[1]");

    assert_int_equal(dsa_chat_prepend(&chat, arena, parse_json(arena, "{}"),
                                      &as_api, &refusal),
                     DSA_ERROR);
    assert_string_equal(refusal.param, "conversation");

    assert_int_equal(dsa_chat_prepend(&chat, arena,
                                      parse_json(arena, "[" U "," U "," U "]"),
                                      &as_api, &refusal),
                     DSA_ERROR);
    assert_non_null(strstr(refusal.message, "9 messages"));

    assert_int_equal(dsa_chat_read(&chat, arena,
                                   parse_json(arena, MS(T("9") "," U)), &as_api,
                                   &refusal),
                     DSA_OK);
    assert_int_equal(dsa_chat_prepend(&chat, arena,
                                      parse_json(arena, "[" U "]"), &as_api,
                                      &refusal),
                     DSA_OK);
    assert_int_equal(dsa_chat_check(&chat, &refusal), DSA_ERROR);
    assert_string_equal(refusal.param, "messages[0].role");

    dsa_arena_destroy(arena);
}


/* A stored message reads back unchanged. */

static void
test_dump(void **state)
{
    size_t         i;
    dsa_buf_t      b;
    dsa_chat_t     chat;
    dsa_arena_t   *arena;
    dsa_refusal_t  refusal;

    static const char *const  messages[] = {
        "{\"role\":\"system\",\"content\":\"\"}",
        "{\"role\":\"user\",\"content\":\"a\\n\\\"\xe4\xb8\xad\\u0001\"}",
        "{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":"
        "\"r\"}",
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
        "\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"{\\\"k\\\": \\\"v\\\\n\\\", \\\"n\\\": 1.5}\"}},"
        "{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"g\","
        "\"arguments\":\"{}\"}}]}",
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
        "\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"{\\\"k\\\":  \\\"v\\\\n\"}}]}",
        "{\"role\":\"tool\",\"content\":\"r\",\"tool_call_id\":\"1\"}"
    };

    arena = dsa_arena_create(MEMORY);

    for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        memset(&b, 0, sizeof(b));
        dsa_buf_printf(&b, "[%s]", messages[i]);
        dsa_buf_add(&b, "", 1);

        memset(&chat, 0, sizeof(chat));
        assert_int_equal(dsa_chat_prepend(&chat, arena,
                                          parse_json(arena, b.data), &as_api,
                                          &refusal),
                         DSA_OK);

        b.len = 0;
        assert_int_equal(dsa_message_dump(&b, &chat.messages[0]), DSA_OK);
        dsa_buf_add(&b, "", 1);
        assert_string_equal(b.data, messages[i]);

        dsa_buf_free(&b);
    }

    dsa_arena_destroy(arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_results_in_order),
        cmocka_unit_test(test_published_form),
        cmocka_unit_test(test_prepend),
        cmocka_unit_test(test_dump)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
