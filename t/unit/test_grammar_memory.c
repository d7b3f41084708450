
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Grammars without memory: each allocation fails in turn, alone or with all
 * that follow it.  An answer then fails, or has the masks that it has with
 * memory; a spec is never refused for want of memory.
 */


#include <errno.h>

#include "grammar.h"


#define STEPS           24
#define WORDS           60
#define SIZE            (256 + WORDS + 1)
#define MASK_WORDS      ((SIZE + 31) / 32)


void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);


typedef struct {
    uint32_t    n;
    uint32_t    id[STEPS];
    uint32_t    mask[STEPS][MASK_WORDS];
} answer_t;


static const char *const  specs[] = {
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"minItems\":2,"
    "\"items\":{\"anyOf\":[{\"type\":\"string\",\"minLength\":9,\"maxLength\":"
    "90},{\"type\":\"integer\",\"minimum\":-7,\"maximum\":5000},"
    "{\"enum\":[\"ab\",\"abc\",null]},{\"$ref\":\"#\"}]}}}",

    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\",\"properties\":{"
    "\"a\":{\"type\":\"string\",\"pattern\":\"^(?:ab?c?[aeo]){5,20}$\"},"
    "\"b\":{\"type\":\"string\",\"format\":\"date\"}},\"required\":[\"a\"]}}",

    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\",\"text\":true,"
    "\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"c\":{\"type\":\"string\"}}}}]}",

    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":false,"
    "\"tools\":[{\"name\":\"f\",\"input\":{\"syntax\":\"lark\",\"definition\":"
    "\"start: a+\\na: INT | \\\"(\\\" a \\\")\\\" | /[x-z]{2}/i\\n"
    "%import common.INT\\n%ignore \\\" \\\"\\n\"}}]}"
};


static int64_t            left = -1;    /* allocations until one fails */
static int                all;          /* the ones behind it fail, too */
static uint64_t           seed;
static dsa_vocabulary_t  *v;


/* 1: this allocation fails. */

static int
fails(void)
{
    if (left < 0) {
        return 0;
    }

    if (left > 0) {
        left--;
        return 0;
    }

    left = all ? 0 : -1;
    errno = ENOMEM;

    return 1;
}


void *
__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}


void *
__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}


void *
__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static int
setup(void **state)
{
    char      word[5];
    uint32_t  i, k, n, end;

    seed = 20261104;
    v = dsa_vocabulary_create(SIZE);
    assert_non_null(v);

    for (i = 0; i < 256 + WORDS; i++) {
        n = i < 256 ? 1 : 2 + dice(4);

        for (k = 0; k < n; k++) {
            word[k] = i < 256 ? (char) i : "aabbccaeoe 019\",["[dice(17)];
        }

        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(word, n)), 0);
    }

    end = SIZE - 1;

    assert_int_equal(dsa_vocabulary_add_control(v, end, dsa_strz("<end>")), 0);
    assert_int_equal(dsa_vocabulary_end(v, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    return 0;
}


static int
teardown(void **state)
{
    dsa_vocabulary_free(v);

    return 0;
}


/* Writes an answer and its masks. */

static void
record(answer_t *a, const char *spec)
{
    uint32_t        i, n;
    dsa_matcher_t  *m;
    dsa_grammar_t  *g;

    g = grammar_of(spec);
    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);

    for (a->n = 0; a->n < STEPS; a->n++) {
        memset(a->mask[a->n], 0xff, sizeof(a->mask[0]));
        dsa_matcher_mask(m, a->mask[a->n], MASK_WORDS);

        n = 0;

        for (i = 0; i < SIZE; i++) {
            if ((a->mask[a->n][i / 32] >> i % 32 & 1) != 0 && dice(++n) == 0) {
                a->id[a->n] = i;
            }
        }

        assert_int_not_equal(n, 0);
        assert_int_equal(dsa_matcher_accept(m, a->id[a->n]), 0);
    }

    dsa_matcher_free(m);
    dsa_grammar_free(g);
}


/* The same answer again.  Returns 1 if it failed. */

static uint32_t
repeat(const answer_t *a, dsa_grammar_t *g)
{
    int             rc;
    uint32_t        k, failed, mask[MASK_WORDS];
    dsa_matcher_t  *m;

    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));

    if (m == NULL) {
        return 1;
    }

    for (k = 0; k < a->n; k++) {
        memset(mask, 0xff, sizeof(mask));

        if (k % 3 == 1 && dsa_matcher_draft(m, a->id[k]) == 0) {
            dsa_matcher_mask(m, mask, MASK_WORDS);

            if (k + 1 < a->n && !dsa_matcher_failed(m)) {
                assert_memory_equal(mask, a->mask[k + 1], sizeof(mask));
            }

            memset(mask, 0xff, sizeof(mask));
            dsa_matcher_undo(m);
        }

        if (k % 4 == 2) {
            dsa_matcher_warm(m);
        }

        if (k % 4 == 3) {
            (void) dsa_matcher_ready(m);
        }

        dsa_matcher_mask(m, mask, MASK_WORDS);
        failed = (uint32_t) dsa_matcher_failed(m);

        if (!failed) {
            assert_memory_equal(mask, a->mask[k], sizeof(mask));
        }

        rc = dsa_matcher_accept(m, a->id[k]);

        if (failed || dsa_matcher_failed(m)) {
            assert_int_equal(rc, -1);
            dsa_matcher_free(m);
            return 1;
        }

        assert_int_equal(rc, 0);
    }

    dsa_matcher_free(m);

    return 0;
}


static void
check(const char *spec)
{
    int                   rc;
    int64_t               n;
    uint32_t              failed, done;
    answer_t             *a;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    a = malloc(sizeof(answer_t));
    assert_non_null(a);
    record(a, spec);

    for (all = 0; all < 2; all++) {
        failed = 0;
        done = 0;

        for (n = 0; /* void */ ; n++) {
            left = n;
            rc = dsa_grammar_compile(&g, dsa_strz(spec),
                                     dsa_strz(DSML), &error);

            if (rc != 0) {
                assert_int_equal(error.no_memory, 1);
                failed++;

            } else {
                failed += repeat(a, g);

                /* with memory, another answer goes on */

                if (left != n) {
                    done++;
                }

                rc = left == 0 || left == -1;
                left = -1;

                if (!rc) {
                    dsa_grammar_free(g);
                    break;
                }

                assert_int_equal(repeat(a, g), 0);
                dsa_grammar_free(g);
            }

            left = -1;
            assert_int_equal(dsa_vocabulary_used(v), 0);
        }

        print_message("%d: %u of %d allocations were needed\n", all, failed,
                      (int) n);
        assert_true(failed != 0 && done != 0);
    }

    free(a);
}


static void
test_values(void **state)
{
    check(specs[0]);
}


static void
test_patterns(void **state)
{
    check(specs[1]);
}


static void
test_tools(void **state)
{
    check(specs[2]);
}


static void
test_lark(void **state)
{
    check(specs[3]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_lark)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
