
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the requests of a conversation have in common.  The oracle is the JSON
 * of the tests: two bodies belong together or not.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "context/affinity.h"


typedef struct {
    dsa_affinity_e  kind;
    uint8_t         digest[16];
} scanned_t;


/* A copy with no byte behind it, so that ASan sees a read beyond the end. */

static scanned_t
scan(const char *text, size_t len, const char *seed)
{
    char       *copy;
    scanned_t   s;

    copy = malloc(len + 1);
    assert_non_null(copy);
    copy = realloc(copy, len != 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);

    s.kind = dsa_affinity_scan(copy, len, dsa_strz(seed), s.digest);
    free(copy);

    return s;
}


static scanned_t
scanz(const char *text)
{
    return scan(text, strlen(text), "tenant");
}


static int
same(scanned_t a, scanned_t b)
{
    return a.kind == b.kind && memcmp(a.digest, b.digest, 16) == 0;
}


static void
assert_same(const char *a, const char *b, dsa_affinity_e kind)
{
    scanned_t  x, y;

    x = scanz(a);
    y = scanz(b);

    assert_int_equal(x.kind, kind);
    assert_int_equal(y.kind, kind);
    assert_memory_equal(x.digest, y.digest, 16);
}


static void
assert_apart(const char *a, const char *b)
{
    assert_false(same(scanz(a), scanz(b)));
}


#define USER(text)  "{\"role\":\"user\",\"content\":\"" text "\"}"
#define CHAT(rest)  "{\"model\":\"m\",\"messages\":[" rest "]}"


/* A later turn, other options and another system prompt. */

static void
test_turns(void **state)
{
    assert_same(CHAT(USER("hello")),
                "{ \"stream\" : true,\n\"messages\" : [ {\"role\":\"system\","
                "\"content\":\"Be brief.\"}, " USER("hello") ","
                "{\"role\":\"assistant\",\"content\":\"Hi\"},"
                USER("and now?") "], \"max_tokens\": 5 }",
                DSA_AFFINITY_USER);

    /* the order of members; what has the name elsewhere */

    assert_same(CHAT(USER("hello")),
                "{\"tools\":[{\"messages\":[" USER("x") "],\"role\":\"user\","
                "\"content\":\"no\"}],\"messages\":[{\"content\":\"hello\","
                "\"name\":{\"role\":\"x\"},\"role\":\"user\"}]}",
                DSA_AFFINITY_USER);

    assert_apart(CHAT(USER("hello")), CHAT(USER("hello ")));
    assert_apart(CHAT(USER("hello")), "{\"prompt\":\"hello\"}");
}


/* A string, a part, parts with marks of a cache; "input" in both forms. */

static void
test_forms(void **state)
{
    assert_same(CHAT(USER("hello")),
                CHAT("{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                     "\"text\":\"hello\",\"cache_control\":{\"type\":"
                     "\"ephemeral\",\"text\":\"x\"}}]}"), DSA_AFFINITY_USER);
    assert_same("{\"input\":\"hello\"}",
                "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":"
                "\"input_text\",\"text\":\"hello\"}]},{\"type\":"
                "\"function_call_output\",\"output\":\"x\"}]}",
                DSA_AFFINITY_USER);
    assert_same(CHAT(USER("hello")), "{\"input\":\"hello\"}",
                DSA_AFFINITY_USER);

    /* a message without text does not count, nor one of another role */

    assert_same(CHAT("{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]},"
                     "{\"role\":\"assistant\",\"content\":\"x\"},"
                     "{\"role\":\"user\"}," USER("hello")),
                CHAT(USER("hello")), DSA_AFFINITY_USER);

    assert_same("{\"prompt\":[\"once\",\"twice\"]}", "{\"prompt\":\"once\"}",
                DSA_AFFINITY_PROMPT);
}


/* If a body has the id of a conversation, its messages do not count. */

static void
test_ids(void **state)
{
    scanned_t  none;

    assert_same("{\"conversation\":\"conv_1\",\"input\":\"a\"}",
                "{\"input\":\"b\",\"conversation\":{\"x\":{\"id\":\"no\"},"
                "\"id\":\"conv_1\"}}", DSA_AFFINITY_CONVERSATION);
    assert_apart("{\"conversation\":\"conv_1\",\"input\":\"a\"}",
                 "{\"conversation\":\"conv_2\",\"input\":\"a\"}");
    assert_same("{\"conversation\":null,\"input\":\"a\"}",
                "{\"conversation\":\"\",\"input\":\"a\"}",
                DSA_AFFINITY_USER);

    assert_same("{\"previous_response_id\":\"resp_1\",\"input\":\"a\"}",
                "{\"input\":\"b\",\"previous_response_id\":\"resp_2\"}",
                DSA_AFFINITY_NONE);
    assert_same("{\"previous_response_id\":null,\"input\":\"a\"}",
                "{\"input\":\"a\"}", DSA_AFFINITY_USER);

    none = scan("", 0, "tenant");
    assert_true(same(none, scanz("{\"previous_response_id\":\"x\"}")));
    assert_false(same(none, scan("", 0, "other")));
    assert_false(same(scanz(CHAT(USER("a"))),
                      scan(CHAT(USER("a")), strlen(CHAT(USER("a"))),
                           "other")));
}


/* Of repeated names the first one counts; escapes are not decoded. */

static void
test_hostile(void **state)
{
    size_t         i;
    scanned_t      none;
    dsa_buf_t      b;

    static const char  *const wrong[] = {
        "", " ", "\"", "[", "null", "[{\"messages\":[" USER("a") "]}]",
        "{", "{]", "{}", "{\"", "{\"messages\"", "{\"messages\":",
        "{\"messages\":}", "{\"messages\":[", "{\"messages\":[,",
        "{\"messages\":[}]", "{\"messages\":[{]}", "{\"messages\":{}}",
        "{\"messages\":[[" USER("a") "]]}", "{\"messages\":7}",
        "{\"messages\" [" USER("a") "]}", "{messages:[" USER("a") "]}",
        "{\"model\":}{\"messages\":[" USER("a") "]}",
        "{\"m\\u0065ssages\":[" USER("a") "]}", "\x1f\x8b\x08",
        "{\"a\":1]\"messages\":[" USER("a") "]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\\"",
        "{\"messages\":[{\"content\":\"a\",\"role\":\"user",
        "{\"conversation\":\"conv_1"
    };

    none = scan("", 0, "tenant");

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_true(same(none, scanz(wrong[i])));
    }

    assert_same("{\"messages\":[" USER("a") "],\"messages\":[" USER("b") "]}",
                CHAT(USER("a")), DSA_AFFINITY_USER);
    assert_same("{\"conversation\":\"a\",\"conversation\":\"b\"}",
                "{\"conversation\":\"a\"}", DSA_AFFINITY_CONVERSATION);

    assert_apart(CHAT(USER("a\\\\")), CHAT(USER("a\\\\\\\"b")));
    assert_same(CHAT(USER("a\\\\\\\"b")), CHAT(USER("a\\\\\\\"b") ",1"),
                DSA_AFFINITY_USER);

    /* NUL bytes; any depth */

    none = scan("{\"a\":\0\0,\"input\":\"x\"}", 21, "tenant");
    assert_int_equal(none.kind, DSA_AFFINITY_USER);

    memset(&b, 0, sizeof(b));
    dsa_buf_addz(&b, "{\"tools\":");

    for (i = 0; i < 100000; i++) {
        dsa_buf_addz(&b, i % 2 != 0 ? "{\"a\":" : "[");
    }

    none = scan(b.data, b.len, "tenant");
    assert_int_equal(none.kind, DSA_AFFINITY_NONE);

    b.len = 0;
    dsa_buf_addz(&b, "{\"tools\":");

    for (i = 0; i < 50000; i++) {
        dsa_buf_addz(&b, "[");
    }

    for (i = 0; i < 50000; i++) {
        dsa_buf_addz(&b, "]");
    }

    dsa_buf_addz(&b, ",\"input\":\"x\"}");
    none = scan(b.data, b.len, "tenant");
    assert_true(same(none, scanz("{\"input\":\"x\"}")));

    dsa_buf_free(&b);
}


/*
 * Cut at each byte: what was found is what the whole text has, or nothing, and
 * a longer beginning never finds another message.
 */

static void
test_cut(void **state)
{
    size_t      i, len, found;
    scanned_t   whole, none, s;

    static const char  text[] =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":"
        "\"Be \\\"brief\\\".\"},{\"role\":\"user\",\"content\":[{\"type\":"
        "\"text\",\"text\":\"a\\\\\"},{\"text\":\"\\u00e9\"}]},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"x\":"
        "[1,-2.5e3,true]}]}," USER("b") "],\"stop\":[\"]\",\"}\"]}";

    len = sizeof(text) - 1;
    whole = scan(text, len, "tenant");
    none = scan("", 0, "tenant");
    found = 0;

    assert_int_equal(whole.kind, DSA_AFFINITY_USER);

    for (i = 0; i < len; i++) {
        s = scan(text, i, "tenant");
        assert_true(same(s, whole) || (found == 0 && same(s, none)));
        found += same(s, whole);
    }

    assert_in_range(found, 100, len - 100);
}


/* What is beyond the limits does not count; a long message does. */

static void
test_long(void **state)
{
    size_t     i;
    scanned_t  s, t, none;
    dsa_buf_t  a, b;

    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    none = scan("", 0, "tenant");

    /* equal in the first 16,384 bytes; one is longer than the scan */

    dsa_buf_addz(&a, "{\"messages\":[{\"role\":\"user\",\"content\":\"");

    for (i = 0; i < DSA_AFFINITY_TEXT; i++) {
        dsa_buf_addz(&a, "x");
    }

    dsa_buf_add(&b, a.data, a.len);
    s = scan(a.data, a.len, "tenant");
    assert_int_equal(s.kind, DSA_AFFINITY_USER);

    t = scan(a.data, a.len - 1, "tenant");
    assert_true(same(t, none));

    for (i = 0; i < DSA_AFFINITY_SCAN; i++) {
        dsa_buf_addz(&a, "y");
    }

    dsa_buf_addz(&a, "\"}],\"conversation\":\"c\"}");
    t = scan(a.data, a.len, "tenant");
    assert_true(same(s, t));

    dsa_buf_addz(&b, "z\"}],\"conversation\":\"c\"}");
    t = scan(b.data, b.len, "tenant");
    assert_int_equal(t.kind, DSA_AFFINITY_CONVERSATION);

    /* behind the scan */

    a.len = 0;
    dsa_buf_addz(&a, "{\"messages\":[{\"role\":\"system\",\"content\":\"");

    for (i = 0; i < DSA_AFFINITY_SCAN; i++) {
        dsa_buf_addz(&a, "y");
    }

    dsa_buf_addz(&a, "\"}," USER("a") "]}");
    t = scan(a.data, a.len, "tenant");
    assert_true(same(t, none));

    dsa_buf_free(&a);
    dsa_buf_free(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_long)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
