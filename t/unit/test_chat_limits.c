
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Chat requests that are broken, nested deeply, or too large.
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


static const char  full[] =
    "{\"model\":\"deepseek-reasoner\",\"messages\":[{\"role\":\"system\","
    "\"content\":\"json \xe4\xb8\xad \\ud83d\\ude00\"}," U ","
    AC(CALL("1")) ",{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":"
    "[{\"type\":\"text\",\"text\":\"x\"}]}],\"tools\":[{\"type\":"
    "\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"a\":[1,"
    "-2.5e3,true,null]}}}],\"stream\":true,\"stop\":[\"a\"],\"seed\":1}";


/*
 * A body that ends too early is not JSON.  A body with a wrong byte is refused,
 * or it is another valid request.
 */

static void
test_broken_anywhere(void **state)
{
    int             rc;
    char            text[sizeof(full)];
    size_t          i, k;
    dsa_err_t       err;
    dsa_chat_t      chat;
    dsa_json_t     *root;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    static const char  wrong[] = "{}[]\",:\\x0\x01\x80\xff\n";

    for (i = 0; i < sizeof(full) - 1; i++) {
        arena = dsa_arena_create(MEMORY);
        err.text[0] = '\0';
        assert_null(dsa_json_parse(arena, full, i, DEPTH, &err));
        assert_string_not_equal(err.text, "");
        dsa_arena_destroy(arena);

        for (k = 0; k < sizeof(wrong); k++) {
            arena = dsa_arena_create(MEMORY);
            memcpy(text, full, sizeof(full));
            text[i] = wrong[k];
            err.text[0] = '\0';

            root = dsa_json_parse(arena, text, sizeof(text) - 1, DEPTH,
                                  &err);

            if (root == NULL) {
                assert_string_not_equal(err.text, "");

            } else {
                memset(&refusal, 0, sizeof(refusal));
                rc = dsa_chat_read(&chat, arena, root, &as_api, &refusal);

                if (rc == DSA_OK) {
                    rc = dsa_chat_check(&chat, &refusal);
                }

                assert_true(rc == DSA_OK
                            || (refusal.status == 400
                                && refusal.message[0] != '\0'));
            }

            dsa_arena_destroy(arena);
        }
    }
}


static void
test_depth(void **state)
{
    size_t          i, k;
    dsa_err_t       err;
    dsa_buf_t       b;
    dsa_chat_t      chat;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    static const char *const  before[] = {
        "", "{\"model\":\"m\",\"messages\":",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
    };

    for (i = 0; i < sizeof(before) / sizeof(before[0]) * 2; i++) {
        memset(&b, 0, sizeof(b));
        dsa_buf_addz(&b, before[i / 2]);

        for (k = 0; k < 100000; k++) {
            dsa_buf_addz(&b, i & 1 ? "[" : "{\"a\":");
        }

        arena = dsa_arena_create(MEMORY);
        assert_null(dsa_json_parse(arena, b.data, b.len, DEPTH, &err));
        assert_non_null(strstr(err.text, "deep"));
        dsa_arena_destroy(arena);
        dsa_buf_free(&b);
    }

    /* arguments are a text of their own, which need not be JSON */

    memset(&b, 0, sizeof(b));
    dsa_buf_addz(&b, "{\"model\":\"m\",\"messages\":[" U ",{\"role\":"
                 "\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"function\":"
                 "{\"name\":\"f\",\"arguments\":\"");

    for (k = 0; k < 100000; k++) {
        dsa_buf_addz(&b, "[");
    }

    dsa_buf_addz(&b, "\"}}]}," U "]}");

    arena = dsa_arena_create(MEMORY);
    assert_int_equal(read_chat(&chat, arena, b.data, b.len, &as_api,
                               &refusal),
                     DSA_OK);
    assert_null(chat.messages[1].calls[0].arguments);
    assert_int_equal(chat.messages[1].calls[0].raw.len, 100000);
    dsa_arena_destroy(arena);
    dsa_buf_free(&b);
}


/*
 * The JSON values of all arguments together are bounded.  Arguments beyond the
 * bound stay text.
 */

static void
test_many_arguments(void **state)
{
    uint32_t       i, k, left;
    dsa_buf_t      b;
    dsa_chat_t     chat;
    dsa_arena_t   *arena;
    dsa_refusal_t  refusal;

    memset(&b, 0, sizeof(b));
    dsa_buf_addz(&b, "{\"model\":\"m\",\"messages\":[" U ",{\"role\":"
                 "\"assistant\",\"tool_calls\":[");

    for (i = 0; i < 6; i++) {
        dsa_buf_printf(&b, "%s{\"id\":\"%u\",\"function\":{\"name\":\"f\","
                       "\"arguments\":\"{\\\"a\\\":[0", i != 0 ? "," : "", i);

        for (k = 0; k < 50000; k++) {
            dsa_buf_addz(&b, ",1");
        }

        dsa_buf_addz(&b, "]}\"}}");
    }

    dsa_buf_addz(&b, "]}," U "]}");
    assert_false(b.failed);

    arena = dsa_arena_create(16 * MEMORY);
    assert_int_equal(read_chat(&chat, arena, b.data, b.len, &as_api,
                               &refusal),
                     DSA_OK);

    left = DSA_CHAT_VALUES;

    for (i = 0; i < 6; i++) {
        assert_int_equal(chat.messages[1].calls[i].arguments != NULL,
                         left >= 50003);
        left = left >= 50003 ? left - 50003 : 0;
    }

    assert_int_equal(left, 0);

    dsa_arena_destroy(arena);
    dsa_buf_free(&b);
}


/* An error shows the beginning of a wrong value, in whole characters. */

static void
test_long_values(void **state)
{
    size_t          i, k, n;
    dsa_buf_t       b;
    dsa_chat_t      chat;
    const char     *p;
    dsa_arena_t    *arena;
    dsa_refusal_t   refusal;

    static const char *const  units[] = {
        "x", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80"
    };

    static const char *const  fields[] = {
        "\"temperature\":\"", "\"tool_choice\":\"", "\"conversation\":\"",
        "\"stop\":\"", "\"reasoning_effort\":\""
    };

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        for (k = 0; k < 16; k++) {
            memset(&b, 0, sizeof(b));
            dsa_buf_printf(&b, "{\"model\":\"m\"," MSG ",%s%.*s", fields[i],
                           (int) (k / 4), "aaa");

            for (n = 0; n < 2000; n++) {
                dsa_buf_addz(&b, units[k % 4]);
            }

            dsa_buf_addz(&b, "\"}");

            arena = dsa_arena_create(MEMORY);
            assert_int_equal(read_chat(&chat, arena, b.data, b.len, &as_api,
                                       &refusal),
                             DSA_ERROR);
            assert_true(strlen(refusal.message) < 300);

            for (p = refusal.message; *p != '\0'; p += n) {
                n = (*p & 0x80) == 0 ? 1 : strlen(units[k % 4]);
                assert_memory_equal(p, n == 1 ? p : units[k % 4], n);
            }

            dsa_arena_destroy(arena);
            dsa_buf_free(&b);
        }
    }
}


/* A request that exceeds the arena's limit gets a 413 at any point. */

static void
test_memory(void **state)
{
    int             rc;
    size_t          limit;
    uint32_t        refusals, done;
    dsa_chat_t      chat;
    dsa_json_t     *root;
    dsa_arena_t    *arena, *small;
    dsa_refusal_t   refusal;

    arena = dsa_arena_create(MEMORY);
    root = parse_json(arena, full);
    refusals = 0;
    done = 0;

    for (limit = 0; limit < 16384; limit += 16) {
        small = dsa_arena_create(limit);
        rc = dsa_chat_read(&chat, small, root, &as_api, &refusal);

        if (rc == DSA_OK) {
            done++;

        } else {
            assert_int_equal(refusal.status, 413);
            refusals++;
        }

        dsa_arena_destroy(small);
    }

    assert_true(refusals > 0 && done > 0);
    dsa_arena_destroy(arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_broken_anywhere),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_many_arguments),
        cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
