
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Tests of base/json.c and base/arena.c.  The expected texts are the output of
 * Python's json.dumps(json.loads(x), ensure_ascii=False).
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <yajl/yajl_parse.h>

#include "base/json.h"
#include "base/json_write.h"


#define DEPTH  16


static const struct {
    const char  *in;
    const char  *out;       /* NULL: rejected */
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
    { "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":1}]}",
      "{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 1}]}" },
    { "\"\\uD834\\uDD1E\\\\ud800\\\\\\udbff\\udfff\\ud7ff\\ue000\"",
      "\"\xf0\x9d\x84\x9e\\\\ud800\\\\\xf4\x8f\xbf\xbf\xed\x9f\xbf"
      "\xee\x80\x80\"" },
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
    { "\"\xe4\xb8\"", NULL },               /* truncated */
    { "{\"\xff\":1}", NULL },
    { "1e999", NULL },                      /* out of the range of a double */

    /* repeated names */

    { "{\"a\":1,\"b\":2,\"a\":{\"x\":1}}", NULL },
    { "[{\"a\":{\"x\":1},\"a\":{\"x\":3}}]", NULL },
    { "{\"a\":1,\"\\u0061\":1}", NULL },
    { "{\"\":1,\"\":1}", NULL },

    /* halves of surrogate pairs */

    { "\"a\\ud800b\"", NULL },
    { "\"a\\udc00b\"", NULL },
    { "\"\\ud800\"", NULL },
    { "\"\\ud800\\n\"", NULL },
    { "\"\\ud800\\u0041\"", NULL },
    { "\"\\ud800\\ud800\\udc00\"", NULL },
    { "\"\\ud83d\\ude00\\ude00\"", NULL },
    { "\"\\uDBFFx\"", NULL },
    { "{\"\\uDfff\":1}", NULL },
    { "\"\\u12g4\"", NULL },
    { "\"\\ud8", NULL },
    { "\\ud800", NULL },
};


static const struct {
    const char  *in;
    const char  *message;
} messages[] = {
    { "{\"a\":1,\"b\":2,\"a\":3}",
      "the name \"a\" is repeated in an object, at byte" },
    { "[\"a\\ud800b\"]", "unpaired surrogate; expected "
      "\\uD800 to \\uDBFF followed by \\uDC00 to \\uDFFF, at byte 9" },
    { "[\"a\\udc00b\"]", "\\uDFFF, at byte 8" },
    { "[x, \"a\\udc00b\"]", "lexical error" }
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
test_messages(void **state)
{
    size_t        i;
    dsa_err_t     err;
    dsa_arena_t  *arena;

    for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        arena = dsa_arena_create(1024 * 1024);
        assert_null(dsa_json_parse(arena, messages[i].in,
                                   strlen(messages[i].in), DEPTH, &err));

        if (strstr(err.text, messages[i].message) == NULL) {
            fail_msg("%s: %s", messages[i].in, err.text);
        }

        assert_false(dsa_arena_exceeded(arena));
        dsa_arena_destroy(arena);
    }
}


static const struct {
    const char  *in;
    const char  *out;       /* NULL: no text */
} insides[] = {
    { "", "" },
    { "a\n\"\xe4\xb8\xad", "a\n\"\xe4\xb8\xad" },
    { "\\\"\\\\\\/\\b\\f\\n\\r\\tx", "\"\\/\b\f\n\r\tx" },
    { "\\u0041\\u00e9\\u4E2D\\ud83d\\ude00", "A\xc3\xa9\xe4\xb8\xad"
      "\xf0\x9f\x98\x80" },
    { "a\\", NULL },
    { "\\x", NULL },
    { "\\u12", NULL },
    { "\\u12g4", NULL },
    { "\\ud800", NULL },
    { "\\ud800x", NULL },
    { "\\ud800\\u0041", NULL },
    { "\\udc00\\ud800", NULL }
};


static void
test_unescape(void **state)
{
    int        rc;
    size_t     i;
    dsa_buf_t  b;

    for (i = 0; i < sizeof(insides) / sizeof(insides[0]); i++) {
        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, "before ");

        rc = dsa_json_unescape(&b, dsa_strz(insides[i].in));
        assert_int_equal(rc, insides[i].out != NULL ? DSA_OK : DSA_ERROR);

        dsa_buf_add(&b, "", 1);
        assert_memory_equal(b.data, "before ", 7);
        assert_string_equal(b.data + 7, insides[i].out != NULL
                                        ? insides[i].out : "");
        dsa_buf_free(&b);
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


/* With many names, each is found as fast as with few, also the repeated one. */

static void
test_many_members(void **state)
{
    int           i, twice;
    int64_t       n;
    dsa_buf_t     in;
    dsa_err_t     err;
    dsa_json_t   *root;
    dsa_arena_t  *arena;

    for (twice = 0; twice < 2; twice++) {
        memset(&in, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&in, "{");

        for (i = 0; i < 100000; i++) {
            dsa_buf_printf(&in, "\"key%d\":%d,", i, i);
        }

        dsa_buf_printf(&in, "\"key%d\":0}", twice ? 4711 : i);

        arena = dsa_arena_create(64 * 1024 * 1024);
        assert_non_null(arena);

        root = dsa_json_parse(arena, in.data, in.len, DEPTH, &err);

        if (twice) {
            assert_null(root);
            assert_non_null(strstr(err.text, "\"key4711\" is repeated"));

        } else {
            assert_non_null(root);
            assert_int_equal(root->n, 100001);
            assert_int_equal(dsa_json_int(dsa_json_get(root, "key99999"),
                                          &n),
                             DSA_OK);
            assert_int_equal(n, 99999);
        }

        dsa_arena_destroy(arena);
        dsa_buf_free(&in);
    }
}


/* The number of values has a limit of its own, independent of the memory. */

static void
test_many_values(void **state)
{
    int                 rc, more;
    uint32_t            i, values;
    dsa_buf_t           in;
    dsa_err_t           err;
    dsa_json_t         *root;
    dsa_arena_t        *arena;
    dsa_json_parser_t  *p;

    for (more = 0; more < 2; more++) {
        memset(&in, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&in, "[0");

        for (i = 2; i < DSA_JSON_VALUES + (uint32_t) more; i++) {
            dsa_buf_addz(&in, ",0");
        }

        dsa_buf_addz(&in, "]");
        assert_false(in.failed);

        arena = dsa_arena_create(256 * 1024 * 1024);
        p = dsa_json_parser_create(arena, DEPTH);
        assert_non_null(p);

        rc = dsa_json_feed(p, in.data, in.len, &err);
        assert_int_equal(rc, more ? DSA_ERROR : DSA_OK);
        assert_int_equal(dsa_arena_exceeded(arena), more);

        if (more) {
            assert_non_null(strstr(err.text, "at most 262144"));
        }

        dsa_json_parser_destroy(p);
        dsa_arena_destroy(arena);

        arena = dsa_arena_create(256 * 1024 * 1024);
        assert_non_null(dsa_json_parse(arena, in.data, in.len, DEPTH, &err));
        assert_false(dsa_arena_exceeded(arena));

        values = DSA_JSON_VALUES;
        root = dsa_json_parse_some(arena, in.data, in.len, DEPTH, &values,
                                   &err);
        assert_int_equal(root != NULL, !more);
        assert_int_equal(values, 0);
        assert_false(dsa_arena_exceeded(arena));

        values = 3;
        assert_non_null(dsa_json_parse_some(arena, "[1]", 3, DEPTH, &values,
                                            &err));
        assert_int_equal(values, 1);

        dsa_arena_destroy(arena);
        dsa_buf_free(&in);
    }
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


/* The reader accepts what the writer prints. */

static void
test_writer(void **state)
{
    dsa_buf_t          b = { 0 };
    dsa_err_t          err;
    dsa_arena_t       *arena;
    dsa_json_writer_t  w;

    dsa_json_writer(&w, &b);

    dsa_json_object(&w);
    dsa_json_key(&w, "a");
    dsa_json_array(&w);
    dsa_json_uint(&w, 0);
    dsa_json_uint(&w, UINT64_MAX);
    dsa_json_bool(&w, 1);
    dsa_json_bool(&w, 0);
    dsa_json_null(&w);
    dsa_json_array(&w);
    dsa_json_array_end(&w);
    dsa_json_object(&w);
    dsa_json_object_end(&w);
    dsa_json_array_end(&w);
    dsa_json_key(&w, "b");
    dsa_json_stringz(&w, "\"\n\xc3\xa9");
    dsa_json_key(&w, "c");
    dsa_json_string_begin(&w);
    dsa_json_escape(w.out, dsa_strz("x\t"));
    dsa_json_escape(w.out, dsa_strz("y"));
    dsa_json_string_end(&w);
    dsa_json_key(&w, "d");
    dsa_json_raw(&w, dsa_strz("[1]"));
    dsa_json_object_end(&w);

    assert_false(b.failed);
    dsa_buf_add(&b, "", 1);
    assert_string_equal(b.data,
                        "{\"a\":[0,18446744073709551615,true,"
                        "false,null,[],{}],\"b\":\"\\\"\\n\xc3\xa9\","
                        "\"c\":\"x\\ty\",\"d\":[1]}");

    arena = dsa_arena_create(65536);
    assert_non_null(arena);
    assert_non_null(dsa_json_parse(arena, b.data, b.len - 1, DEPTH, &err));

    dsa_arena_destroy(arena);
    dsa_buf_free(&b);
}


/*
 * yajl reads an unfinished string again with each chunk.  So with n calls it
 * reads a long string up to n times.
 */

static size_t  calls;
static size_t  passed;


yajl_status  __real_yajl_parse(yajl_handle h, const unsigned char *text,
    size_t len);
yajl_status  __wrap_yajl_parse(yajl_handle h, const unsigned char *text,
    size_t len);


yajl_status
__wrap_yajl_parse(yajl_handle h, const unsigned char *text, size_t len)
{
    calls++;
    passed += len;

    return __real_yajl_parse(h, text, len);
}


static void
test_short_chunks(void **state)
{
    char               *text;
    size_t              i, n, len;
    dsa_err_t           err;
    dsa_json_t         *root;
    dsa_arena_t        *arena;
    dsa_json_parser_t  *p;

    len = 256 * 1024;
    text = malloc(len);
    arena = dsa_arena_create(16 * 1024 * 1024);
    assert_non_null(text);
    assert_non_null(arena);

    memset(text, 'x', len);
    text[0] = '"';
    text[len - 1] = '"';

    p = dsa_json_parser_create(arena, DEPTH);
    assert_non_null(p);

    calls = 0;
    passed = 0;

    for (i = 0; i < len; i += n) {
        n = len - i < 7 ? len - i : 7;
        assert_int_equal(dsa_json_feed(p, text + i, n, &err), DSA_OK);
    }

    root = dsa_json_finish(p, &err);
    assert_non_null(root);
    assert_int_equal(root->text.len, len - 2);
    assert_memory_equal(root->text.data, text + 1, len - 2);

    assert_int_equal(passed, len);
    assert_in_range(calls, 1, 24);

    dsa_json_parser_destroy(p);
    dsa_arena_destroy(arena);
    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_unescape),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_short_chunks),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
