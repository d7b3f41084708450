
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What a hostile schema may cost.  Without the bounds that are tested here, the
 * schemas take many seconds; the tests measure processor time, which other
 * processes do not change.
 */


#include <time.h>

#include "base/buf.h"
#include "grammar.h"


#define WORDS           60000
#define SIZE            (WORDS + 257)
#define STEPS           20
#define MASK_SECONDS    1.0             /* of one mask, 16 s without bounds */
#define COMPILE_SECONDS 2.0             /* 8 s without bounds */


static uint64_t  seed = 20260117;


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static double
seconds(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


/* All bytes, words of 2 to 11 letters, and an end. */

static dsa_vocabulary_t *
vocabulary(void)
{
    char               word[11];
    uint32_t           i, k, n, end;
    dsa_vocabulary_t  *v;

    v = dsa_vocabulary_create(SIZE);
    assert_non_null(v);

    for (i = 0; i < SIZE - 1; i++) {
        n = i < 256 ? 1 : 2 + dice(10);

        for (k = 0; k < n; k++) {
            word[k] = i < 256 ? (char) i : "aetonirs dlu"[dice(12)];
        }

        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(word, n)), 0);
    }

    end = SIZE - 1;

    assert_int_equal(dsa_vocabulary_add_control(v, end, dsa_strz("<end>")), 0);
    assert_int_equal(dsa_vocabulary_end(v, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    return v;
}


/*
 * Alternatives, each of which counts from another letter, so that there is
 * another state behind almost every text.
 */

static dsa_grammar_t *
ambiguous(void)
{
    uint32_t        i;
    dsa_buf_t       spec;
    dsa_grammar_t  *g;

    memset(&spec, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":{\"anyOf\":[");

    for (i = 0; i < 64; i++) {
        dsa_buf_printf(&spec, "%s{\"type\":\"string\",\"pattern\":"
                       "\"^(?:[^%c]|%c[^x]{%u})*$\"}", i != 0 ? "," : "",
                       "aetonirs"[i % 8], "aetonirs"[i % 8], i / 8 + 1);
    }

    dsa_buf_addz(&spec, "]}}");
    dsa_buf_add(&spec, "", 1);

    g = grammar_of(spec.data);

    dsa_buf_free(&spec);

    return g;
}


/* The masks stay correct: each permitted token is accepted. */

static void
test_masks(void **state)
{
    double             start;
    uint32_t           step, id, n, chosen, mask[(SIZE + 31) / 32];
    dsa_matcher_t     *m;
    dsa_grammar_t     *g;
    dsa_vocabulary_t  *v;

    v = vocabulary();
    g = ambiguous();
    m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(m);
    assert_int_equal(dsa_matcher_accept(m, '"'), 0);

    for (step = 0; step < STEPS; step++) {
        memset(mask, 0xff, sizeof(mask));

        start = seconds();
        dsa_matcher_mask(m, mask, sizeof(mask) / sizeof(uint32_t));
        assert_true(seconds() - start < MASK_SECONDS);

        n = 0;
        chosen = SIZE;

        for (id = 0; id < SIZE - 1; id++) {
            if ((mask[id / 32] >> id % 32 & 1) != 0
                && (id >= 256 || (id >= 'a' && id <= 'z')) && dice(++n) == 0)
            {
                chosen = id;
            }
        }

        /* this letter comes late in the trie */

        assert_int_equal(mask['u' / 32] >> 'u' % 32 & 1, 1);

        assert_int_not_equal(chosen, SIZE);
        assert_int_equal(dsa_matcher_accept(m, chosen), 0);
    }

    dsa_matcher_free(m);
    dsa_grammar_free(g);
    dsa_vocabulary_free(v);
}


/* Schemas that would take seconds are refused. */

static void
test_automata(void **state)
{
    uint32_t              i, kind;
    dsa_buf_t             spec;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    static const char *const  one[] = {
        "{\"type\":\"string\",\"pattern\":\"(a|b)*a(a|b){9}%u\"}",
        "{\"type\":\"integer\",\"multipleOf\":%u,\"minimum\":3}",
        "{\"type\":\"string\",\"format\":\"hostname\",\"minLength\":%u}",
        "{\"type\":\"object\",\"required\":[\"a%u\"]}"
    };

    for (kind = 0; kind < 4; kind++) {
        memset(&spec, 0, sizeof(dsa_buf_t));

        dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":{\"type\":"
                     "\"array\",\"prefixItems\":[");

        for (i = 0; i < 10000; i++) {
            dsa_buf_addz(&spec, i != 0 ? "," : "");
            dsa_buf_printf(&spec, one[kind], 300 + i % 200);
        }

        dsa_buf_addz(&spec, "]}}");

        assert_int_equal(dsa_grammar_compile(&g, dsa_str(spec.data, spec.len),
                                             dsa_strz(DSML), &error), -1);
        assert_int_equal(error.no_memory, 0);
        assert_in_range(error.work, 1, DSA_GRAMMAR_WORK);

        if (strstr(error.message, "expected fewer") == NULL
            && strstr(error.message, "too much memory") == NULL
            && strstr(error.message, "no value") == NULL)
        {
            fail_msg("\"%s\": %s", error.path, error.message);
        }

        dsa_buf_free(&spec);
    }
}


/* Compiles a spec in the time that it may take at most. */

static void
compile(dsa_buf_t *spec)
{
    double                start;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    assert_int_equal(spec->failed, 0);
    assert_in_range(spec->len, 1, DSA_GRAMMAR_SPEC);

    start = seconds();

    if (dsa_grammar_compile(&g, dsa_str(spec->data, spec->len),
                            dsa_strz(DSML), &error) != 0)
    {
        if (strstr(error.message, "too much") == NULL
            && strstr(error.message, "too large") == NULL
            && strstr(error.message, "no value") == NULL
            && strstr(error.message, "at most") == NULL
            && strstr(error.message, "itself") == NULL)
        {
            fail_msg("\"%s\": %s", error.path, error.message);
        }
    }

    assert_true(seconds() - start < COMPILE_SECONDS);

    dsa_grammar_free(g);
    dsa_buf_free(spec);
}


/* Each reference would be looked for among all definitions. */

static void
test_references(void **state)
{
    uint32_t   i;
    dsa_buf_t  spec;

    memset(&spec, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":{\"$defs\":{"
                 "\"a\":[{}");

    for (i = 0; i < 150000; i++) {
        dsa_buf_addz(&spec, ",{}");
    }

    dsa_buf_addz(&spec, "]},\"anyOf\":[{}");

    for (i = 0; i < 20000; i++) {
        dsa_buf_addz(&spec, ",{\"$ref\":\"#/$defs/a/149999\"}");
    }

    dsa_buf_addz(&spec, "]}}");

    compile(&spec);
}


/*
 * Alternatives that multiply: what each property demands of others, schemas
 * that each exclude the other ones, and unions beside each other, also in one
 * another and through references.
 */

static void
test_alternatives(void **state)
{
    uint32_t   i, k, kind;
    dsa_buf_t  spec;

    static const struct {
        const char  *before;
        const char  *one;
        const char  *after;
    } t[] = {
        { "\"dependentRequired\":{\"a\":[]", ",\"p%u\":[\"q%u\"]", "}" },
        { "\"oneOf\":[{}", ",{\"properties\":{\"p%u\":{\"minimum\":%u},"
          "\"x\":{\"type\":\"null\"}},\"minProperties\":1}", "]" },
        { "\"allOf\":[{}", ",{\"anyOf\":[{\"required\":[\"p%u\"]},"
          "{\"minLength\":%u}]}", "]" },
        { "\"allOf\":[{\"oneOf\":[{\"$ref\":\"#\"},{\"minItems\":9}]}",
          ",{\"items\":{\"$ref\":\"#\"},\"prefixItems\":[{\"$ref\":"
          "\"#/allOf/%u\"}],\"minItems\":%u}", "],\"type\":\"array\"" },
        { "\"oneOf\":[{}", ",{\"properties\":{\"p%u\":{\"minLength\":%u},"
          "\"x\":{}},\"additionalProperties\":false}", "]" },
        { "\"required\":[\"x\",\"y\"],\"properties\":{\"y\":false},"
          "\"anyOf\":[{}", ",{\"required\":[\"p%u\",\"q%u\"]}",
          "],\"type\":\"object\"" },
        { "\"patternProperties\":{\"a\":{}", ",\"%u[a-z]*%u\":{\"$ref\":"
          "\"#\"}", "}" }
    };

    static const uint32_t  numbers[] = { 30, 300, 5000 };

    for (kind = 0; kind < sizeof(t) / sizeof(t[0]); kind++) {
        for (k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            memset(&spec, 0, sizeof(dsa_buf_t));

            dsa_buf_printf(&spec, "{\"type\":\"json_schema\",\"schema\":{%s",
                           t[kind].before);

            for (i = 0; i < numbers[k]; i++) {
                dsa_buf_printf(&spec, t[kind].one, i, i);
            }

            dsa_buf_printf(&spec, "%s}}", t[kind].after);
            compile(&spec);
        }
    }
}


/* An integer with two bounds takes little of the work. */

static void
test_integers(void **state)
{
    uint32_t              i;
    dsa_buf_t             spec;
    dsa_grammar_t        *g;
    dsa_grammar_error_t   error;

    memset(&spec, 0, sizeof(dsa_buf_t));

    dsa_buf_addz(&spec, "{\"type\":\"json_schema\",\"schema\":{\"type\":"
                 "\"array\",\"prefixItems\":[true");

    for (i = 0; i < 500; i++) {
        dsa_buf_printf(&spec, ",{\"type\":\"integer\",\"minimum\":%u,"
                       "\"maximum\":%u}", i * 7, 100000 + i * 13);
    }

    dsa_buf_addz(&spec, "]}}");

    assert_int_equal(dsa_grammar_compile(&g, dsa_str(spec.data, spec.len),
                                         dsa_strz(DSML), &error), 0);
    assert_in_range(error.work, 1, DSA_GRAMMAR_WORK / 8);

    dsa_grammar_free(g);
    dsa_buf_free(&spec);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_automata),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_alternatives),
        cmocka_unit_test(test_integers)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
