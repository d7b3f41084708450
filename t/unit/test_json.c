
/*
 * Copyright (C) The nginx-dsa authors
 *
 * base/json.c and base/arena.c.  The expected texts are what Python's
 * json.dumps(json.loads(x), ensure_ascii=False) prints.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"


#define DEPTH  16


static const struct {
    const char  *in;
    const char  *out;       /* NULL: refused */
} cases[] = {
    { "null", "null" },
    { " [ true , false ] ", "[true, false]" },
    { "-0", "0" },
    { "-0.0", "-0.0" },
    { "1e5", "100000.0" },
    { "1E-7", "1e-07" },
    { "0.0001", "0.0001" },
    { "0.00001", "1e-05" },
    { "1e15", "1000000000000000.0" },
    { "1e16", "1e+16" },
    { "123456789012345678.0", "1.2345678901234568e+17" },
    { "5e-324", "5e-324" },
    { "0.1", "0.1" },
    { "2.50", "2.5" },
    { "100000000000000000000000000000001",
      "100000000000000000000000000000001" },
    { "\"\\u4e2d\\ud83d\\ude00/\\u007f\\u001f\"",
      "\"\xe4\xb8\xad\xf0\x9f\x98\x80/\x7f\\u001f\"" },
    { "\"\\\"\\\\\\b\\f\\n\\r\\t\\/\"", "\"\\\"\\\\\\b\\f\\n\\r\\t/\"" },
    { "{\"a\":1,\"b\":2,\"a\":{\"x\":1}}", "{\"a\": {\"x\": 1}, \"b\": 2}" },
    { "{\"a\":{\"x\":1,\"y\":5},\"a\":{\"y\":2,\"x\":3}}",
      "{\"a\": {\"y\": 2, \"x\": 3}}" },
    { "{\"\":[],\"b\":{}}", "{\"\": [], \"b\": {}}" },
    { "", NULL },
    { "[1,2", NULL },
    { "[1]x", NULL },
    { "01", NULL },
    { "-", NULL },
    { "nul", NULL },
    { "{\"a\"}", NULL },
    { "{a:1}", NULL },
    { "[1,]", NULL },
    { "NaN", NULL },
    { "\"\t\"", NULL },
    { "\"\xed\xa0\x80\"", NULL },           /* a surrogate */
    { "\"\xc0\x80\"", NULL },               /* overlong */
    { "\"\xf4\x90\x80\x80\"", NULL },       /* above U+10FFFF */
    { "\"\xe4\xb8\"", NULL },               /* cut off */
    { "{\"\xff\":1}", NULL },
    { "1e999", NULL },                      /* no double can hold it */
};


/* Feeds the text in pieces of step bytes. */

static char *
round_trip(const char *in, size_t step)
{
    int                 rc;
    size_t              i, n, len;
    dsa_buf_t           out = { 0 };
    dsa_err_t           err;
    dsa_json_t         *root;
    dsa_arena_t        *arena;
    dsa_json_parser_t  *p;

    arena = dsa_arena_create(1024 * 1024);
    assert_non_null(arena);

    p = dsa_json_parser_create(arena, DEPTH);
    assert_non_null(p);

    len = strlen(in);
    rc = DSA_OK;
    err.text[0] = '\0';

    for (i = 0; i < len && rc == DSA_OK; i += n) {
        n = step < len - i ? step : len - i;
        rc = dsa_json_feed(p, in + i, n, &err);
    }

    root = rc == DSA_OK ? dsa_json_finish(p, &err) : NULL;
    dsa_json_parser_destroy(p);

    if (root == NULL) {
        assert_int_not_equal(err.text[0], '\0');
    }

    if (root == NULL || dsa_json_dump(&out, root) != DSA_OK) {
        dsa_buf_free(&out);
        dsa_arena_destroy(arena);
        return NULL;
    }

    dsa_buf_add(&out, "", 1);
    assert_int_equal(out.failed, 0);
    dsa_arena_destroy(arena);

    return out.data;
}


static void
test_round_trip(void **state)
{
    char    *out;
    size_t   i, step;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (step = 1; step <= strlen(cases[i].in) + 1; step++) {
            out = round_trip(cases[i].in, step);

            if (cases[i].out == NULL) {
                assert_null(out);

            } else {
                assert_non_null(out);
                assert_string_equal(out, cases[i].out);
            }

            free(out);
        }
    }
}


static void
test_depth(void **state)
{
    char   text[4 * DEPTH], *out;
    int    i, depth;

    for (depth = DEPTH; depth <= DEPTH + 1; depth++) {
        for (i = 0; i < depth; i++) {
            text[i] = '[';
            text[2 * depth - 1 - i] = ']';
        }

        text[2 * depth] = '\0';
        out = round_trip(text, 7);

        if (depth == DEPTH) {
            assert_string_equal(out, text);

        } else {
            assert_null(out);
        }

        free(out);
    }
}


static void
test_bound(void **state)
{
    int           i;
    dsa_buf_t     in = { 0 };
    dsa_err_t     err;
    dsa_arena_t  *arena;

    dsa_buf_addz(&in, "[0");

    for (i = 0; i < 10000; i++) {
        dsa_buf_addz(&in, ",0");
    }

    dsa_buf_addz(&in, "]");

    arena = dsa_arena_create(64 * 1024);
    assert_non_null(arena);
    assert_null(dsa_json_parse(arena, in.data, in.len, DEPTH, &err));
    assert_true(dsa_arena_exceeded(arena));
    assert_true(dsa_arena_used(arena) <= 64 * 1024);

    dsa_arena_destroy(arena);
    dsa_buf_free(&in);
}


static void
test_many_members(void **state)
{
    int           i;
    char          key[32];
    int64_t       n;
    dsa_buf_t     in = { 0 };
    dsa_err_t     err;
    dsa_json_t   *root;
    dsa_arena_t  *arena;

    dsa_buf_addz(&in, "{");

    for (i = 0; i < 6000; i++) {

        /* every key twice, in two rounds */

        dsa_buf_printf(&in, "%s\"key%d\":%d", i != 0 ? "," : "", i % 3000, i);
    }

    dsa_buf_addz(&in, "}");

    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(arena);

    root = dsa_json_parse(arena, in.data, in.len, DEPTH, &err);
    assert_non_null(root);
    assert_int_equal(root->n, 3000);

    for (i = 0; i < 3000; i += 599) {
        (void) snprintf(key, sizeof(key), "key%d", i);
        assert_int_equal(dsa_json_int(dsa_json_get(root, key), &n), DSA_OK);
        assert_int_equal(n, i + 3000);
    }

    dsa_arena_destroy(arena);
    dsa_buf_free(&in);
}


static void
test_numbers(void **state)
{
    double        d;
    int64_t       n;
    dsa_err_t     err;
    dsa_json_t   *v;
    dsa_arena_t  *arena;

    static const char  text[] =
        "[9223372036854775807, 9223372036854775808, 1.5, 1e400, \"1\", -7]";

    arena = dsa_arena_create(64 * 1024);
    assert_non_null(arena);

    v = dsa_json_parse(arena, text, sizeof(text) - 1, DEPTH, &err);
    assert_non_null(v);
    assert_int_equal(v->n, 6);

    v = v->first;
    assert_int_equal(dsa_json_int(v, &n), DSA_OK);
    assert_true(n == INT64_MAX);

    v = v->next;
    assert_int_equal(dsa_json_int(v, &n), DSA_ERROR);
    assert_int_equal(dsa_json_double(v, &d), DSA_OK);
    assert_true(d == 9223372036854775808.0);

    v = v->next;
    assert_int_equal(dsa_json_int(v, &n), DSA_ERROR);
    assert_int_equal(dsa_json_double(v, &d), DSA_OK);
    assert_true(d == 1.5);

    v = v->next;
    assert_int_equal(dsa_json_double(v, &d), DSA_ERROR);

    v = v->next;
    assert_int_equal(dsa_json_int(v, &n), DSA_ERROR);
    assert_int_equal(dsa_json_double(v, &d), DSA_ERROR);

    v = v->next;
    assert_int_equal(dsa_json_int(v, &n), DSA_OK);
    assert_int_equal(n, -7);

    dsa_arena_destroy(arena);
}


static void
test_arena(void **state)
{
    int           i;
    char         *p;
    dsa_arena_t  *arena;

    arena = dsa_arena_create(100000);
    assert_non_null(arena);

    for (i = 1; i < 300; i++) {
        p = dsa_arena_alloc(arena, i);
        assert_non_null(p);
        assert_int_equal((uintptr_t) p % 16, 0);
        memset(p, i, i);
    }

    assert_null(dsa_arena_alloc(arena, 100000));
    assert_true(dsa_arena_exceeded(arena));
    assert_non_null(dsa_arena_alloc(arena, 10000));
    assert_null(dsa_arena_alloc(arena, SIZE_MAX));

    dsa_arena_destroy(arena);
    dsa_arena_destroy(NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_arena),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
