
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The types of arguments by the schemas of tools: schemas that refer to the
 * same one many times must not multiply the time and the memory that they take.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "context/types.h"


#define SECONDS     2.0             /* of CPU; it is 0.1 with a sanitizer */
#define MEMORY      (64 * 1024)     /* KB; 240 MB and more without bounds */


static double
seconds(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


static long
memory(void)
{
    struct rusage  usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);

    return usage.ru_maxrss;
}


/* Adds n units with a comma between them, each with its number for "##". */

static void
repeat(dsa_buf_t *b, const char *unit, uint32_t n)
{
    char         text[64];
    uint32_t     i;
    const char  *at;

    at = strchr(unit, '#');

    for (i = 0; i < n; i++) {
        if (i != 0) {
            dsa_buf_addz(b, ",");
        }

        if (at == NULL || at[1] != '#') {
            dsa_buf_addz(b, unit);
            continue;
        }

        (void) snprintf(text, sizeof(text), "%.*s%u%s", (int) (at - unit),
                        unit, i, at + 2);
        dsa_buf_addz(b, text);
    }
}


/* A tool "small" with a number, and a tool "large" with these parameters. */

static dsa_types_t *
create(dsa_buf_t *parameters)
{
    dsa_err_t     err;
    dsa_buf_t     b;
    dsa_json_t   *tools;
    dsa_arena_t  *arena;
    dsa_types_t  *types;

    memset(&b, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&b, "[{\"function\":{\"name\":\"small\",\"parameters\":"
                 "{\"properties\":{\"n\":{\"type\":\"integer\"}}}}},"
                 "{\"function\":{\"name\":\"large\",\"parameters\":");
    dsa_buf_add(&b, parameters->data, parameters->len);
    dsa_buf_addz(&b, "}}]");
    assert_false(b.failed);
    dsa_buf_free(parameters);

    arena = dsa_arena_create(128 * 1024 * 1024);
    assert_non_null(arena);

    tools = dsa_json_parse(arena, b.data, b.len, 64, &err);

    if (tools == NULL) {
        fail_msg("%s", err.text);
    }

    types = dsa_types_create(tools);
    assert_non_null(types);

    dsa_arena_destroy(arena);
    dsa_buf_free(&b);

    return types;
}


/* The tool is read to its end, or as if it had no schema. */

static void
check(dsa_buf_t *parameters, int all)
{
    long          before;
    double        start;
    dsa_types_t  *types;

    before = memory();
    start = seconds();
    types = create(parameters);

    assert_true(seconds() - start < SECONDS);
    assert_true(memory() - before < MEMORY);

    assert_int_equal(dsa_types_find(types, dsa_strz("small"), dsa_strz("n")),
                     DSA_TYPE_WHOLE);
    assert_int_equal(dsa_types_find(types, dsa_strz("large"), dsa_strz("a")),
                     all ? DSA_TYPE_ALL : DSA_TYPE_TEXT);

    dsa_types_destroy(types);
}


static void
test_large(void **state)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "{\"properties\":{\"a\":{\"type\":\"string\"},");
    repeat(&b, "\"p##\":{\"type\":\"boolean\"}", 40000);
    dsa_buf_addz(&b, "}}");
    check(&b, 0);
}


/* Properties that take no further reading, in a schema that is read often. */

static void
test_properties(void **state)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "{\"$defs\":{\"e\":{\"properties\":{");
    repeat(&b, "\"p##\":true", 1000);
    dsa_buf_addz(&b, "}}},\"properties\":{\"a\":{\"type\":\"string\"}},"
                 "\"allOf\":[");
    repeat(&b, "{\"$ref\":\"#/$defs/e\"}", 30000);
    dsa_buf_addz(&b, "]}");
    check(&b, 1);
}


/* A list of values, and a list of types, for each of many properties. */

static void
test_lists(void **state)
{
    size_t     i;
    dsa_buf_t  b;

    static const char  *const lists[] = { "\"enum\":[", "\"type\":[" };

    for (i = 0; i < 2; i++) {
        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, "{\"$defs\":{\"e\":{");
        dsa_buf_addz(&b, lists[i]);
        repeat(&b, "\"string\"", 100000);
        dsa_buf_addz(&b, "]}},\"properties\":{\"a\":{\"type\":\"string\"},");
        repeat(&b, "\"p##\":{\"$ref\":\"#/$defs/e\"}", 30000);
        dsa_buf_addz(&b, "}}");
        check(&b, 1);
    }
}


/* The schema is the last of many, among members that are searched. */

static void
test_members(void **state)
{
    dsa_buf_t  b;

    memset(&b, 0, sizeof(dsa_buf_t));
    dsa_buf_addz(&b, "{\"$defs\":{");
    repeat(&b, "\"d##\":0", 100000);
    dsa_buf_addz(&b, ",\"e\":{\"type\":\"string\"}},\"properties\":"
                 "{\"a\":{\"type\":\"string\"},");
    repeat(&b, "\"p##\":{\"$ref\":\"#/$defs/e\"}", 30000);
    dsa_buf_addz(&b, "}}");
    check(&b, 1);
}


/* A long $ref, and a long name, that are read often. */

static void
test_long(void **state)
{
    size_t     i;
    dsa_buf_t  b;

    for (i = 0; i < 2; i++) {
        memset(&b, 0, sizeof(dsa_buf_t));
        dsa_buf_addz(&b, i == 0 ? "{\"$defs\":{\"e\":{\"$ref\":\"#/"
                                : "{\"$defs\":{\"e\":{\"properties\":{\"");
        repeat(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
               80000);
        dsa_buf_addz(&b, i == 0 ? "\"}}" : "\":true}}}");
        dsa_buf_addz(&b, ",\"properties\":{\"a\":{\"type\":\"string\"}},"
                     "\"allOf\":[");
        repeat(&b, "{\"$ref\":\"#/$defs/e\"}", 30000);
        dsa_buf_addz(&b, "]}");
        check(&b, 1);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_long)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
