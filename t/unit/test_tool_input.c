
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The input of a custom tool in the arguments of a call, cut in all places.
 */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "context/tool_input.h"


static void
expect(const char *arguments, const char *text)
{
    size_t            len, i, j;
    dsa_buf_t         b;
    dsa_tool_input_t  t;

    len = strlen(arguments);

    for (i = 0; i <= len; i++) {
        for (j = i; j <= len; j++) {
            memset(&t, 0, sizeof(t));
            memset(&b, 0, sizeof(b));

            dsa_tool_input(&t, dsa_str(arguments, i), &b);
            dsa_tool_input(&t, dsa_str(arguments + i, j - i), &b);
            dsa_tool_input(&t, dsa_str(arguments + j, len - j), &b);

            assert_false(b.failed);
            assert_int_equal(b.len, strlen(text));

            if (b.len != 0) {
                assert_memory_equal(b.data, text, b.len);
            }

            dsa_buf_free(&b);
        }
    }
}


static void
test_text(void **state)
{
    expect("{\"input\": \"\"}", "");
    expect("{\"input\": \"a b\"}", "a b");
    expect("{\"input\": \"a\\n\\\"b\\\" \\\\ \\t\"}", "a\\n\\\"b\\\" \\\\ \\t");
    expect("{\"input\": \"\xc3\xa9 \xf0\x9f\x98\x80\"}",
           "\xc3\xa9 \xf0\x9f\x98\x80");
    expect("{\"input\": \"\\u00e9\\ud83d\\ude00.\"}",
           "\xc3\xa9\xf0\x9f\x98\x80.");
    expect("{\"input\": \"a\", \"more\": \"b\"}", "a");
    expect("{\"input\": \"cut o", "cut o");
    expect("{\"input\": \"cut o\\", "cut o");
}


/* Half of a surrogate pair is appended as it is written. */

static void
test_half(void **state)
{
    expect("{\"input\": \"\\ud83d.\"}", "\\\\ud83d.");
    expect("{\"input\": \"\\ud83d\"}", "\\\\ud83d");
    expect("{\"input\": \"\\ude00.\"}", "\\\\ude00.");
    expect("{\"input\": \"\\ud83d\\n.\"}", "\\\\ud83d\\\\n.");
    expect("{\"input\": \"\\ud83d\\u0041.\"}", "\\\\ud83d\\\\u0041.");
}


static void
test_other(void **state)
{
    expect("{\"code\": \"a\"}", "{\\\"code\\\": \\\"a\\\"}");
    expect("{\"input\": 5}", "{\\\"input\\\": 5}");
    expect("{}", "{}");
    expect("{\"input\":\"a\"}", "{\\\"input\\\":\\\"a\\\"}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_other)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
