
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Masks against their definition: a bit is set if and only if the matcher
 * accepts the token.  The vocabularies are that of the demonstration model and
 * one of all bytes and random words.
 */


#include "engine/tokenizer/tokenizer.h"
#include "grammar.h"


#define STATES      1000            /* that are checked for a vocabulary */
#define STEPS       60              /* tokens of an answer */
#define WORDS       3000            /* of the random vocabulary */


static const char *const  specs[] = {
    "{\"type\":\"json_object\"}",

    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\",\"properties\":"
    "{\"name\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\","
    "\"minimum\":-20,\"maximum\":3000},\"tags\":{\"type\":\"array\","
    "\"items\":{\"enum\":[\"a\",\"ab\",\"the\",\"there\"]},\"minItems\":1}},"
    "\"required\":[\"n\"]}}",

    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"items\":{"
    "\"anyOf\":[{\"type\":\"string\",\"maxLength\":7},{\"type\":\"string\","
    "\"pattern\":\"^(in|th)[a-z ]*$\"},{\"type\":\"string\",\"format\":"
    "\"date-time\"},{\"type\":\"number\",\"multipleOf\":0.5},"
    "{\"$ref\":\"#\"}]}}}",

    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\",\"text\":true,"
    "\"tools\":[{\"name\":\"get_weather\",\"strict\":true,\"parameters\":{"
    "\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},"
    "\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":14}},"
    "\"required\":[\"city\",\"days\"],\"additionalProperties\":false}},"
    "{\"name\":\"get_time\"}]}",

    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":{"
    "\"type\":\"json_object\"},\"tools\":[{\"name\":\"g\"}]}",

    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"many\",\"text\":{"
    "\"type\":\"json_schema\",\"schema\":{\"anyOf\":[{\"type\":\"array\","
    "\"items\":{\"$ref\":\"#\"}},{\"type\":\"string\"}]}},\"tools\":[{\"name\":"
    "\"f\",\"strict\":true,\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"a\":{\"type\":\"integer\"},\"b\":{\"$ref\":\"#/properties/a\"}}}}]}",

    "{\"type\":\"tools\",\"syntax\":\"dsml\",\"calls\":\"one\",\"text\":false,"
    "\"tools\":[{\"name\":\"f\",\"strict\":true,\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],"
    "\"maxLength\":9},\"b\":{\"type\":\"array\"}}}}]}",

    /* counts below, between and above the length of the longest tokens */

    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"minItems\":"
    "5,\"maxItems\":30,\"items\":{\"anyOf\":[{\"type\":\"string\","
    "\"minLength\":2,\"maxLength\":40},{\"type\":\"string\",\"minLength\":"
    "25,\"maxLength\":26},{\"type\":\"array\",\"minItems\":20,\"maxItems\":"
    "33,\"items\":{\"enum\":[1,2]}},{\"type\":\"array\",\"minItems\":12,"
    "\"items\":{\"enum\":[\"a\",0]}}]}}}",

    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\",\"maxItems\":"
    "3,\"items\":{\"type\":\"array\",\"maxItems\":17,\"items\":{\"type\":"
    "\"string\",\"minLength\":1,\"maxLength\":16}}}}"
};


static dsa_vocabulary_t *vocabulary_demo(uint32_t *size);
static dsa_vocabulary_t *vocabulary_words(uint32_t *size);
static void check_masks(dsa_vocabulary_t *v, uint32_t size);
static void check_drafts(dsa_matcher_t *m, uint32_t *mask, uint32_t size);
static uint32_t check_state(dsa_matcher_t *m, uint32_t *mask, uint32_t size);


static uint64_t  seed = 20260102;


static uint32_t
dice(uint32_t n)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;

    return (uint32_t) ((seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


static dsa_vocabulary_t *
vocabulary_demo(uint32_t *size)
{
    char               path[512];
    uint32_t           i, end;
    dsa_err_t          err;
    dsa_str_t          bytes;
    const char        *build;
    dsa_tokenizer_t   *t;
    dsa_vocabulary_t  *v;

    build = getenv("DSA_BUILD");

    (void) snprintf(path, sizeof(path), "%s/model/tokenizer.json",
                    build != NULL ? build : "build");

    t = dsa_tokenizer_open(path, &err);

    if (t == NULL) {
        fail_msg("%s (\"make model\" makes it)", err.text);
    }

    *size = dsa_tokenizer_size(t);
    v = dsa_vocabulary_create(*size);
    assert_non_null(v);

    for (i = 0; i < *size; i++) {
        bytes = dsa_token_bytes(t, i);

        if (bytes.len == 0) {
            continue;
        }

        assert_int_equal(dsa_token_is_special(t, i)
                         ? dsa_vocabulary_add_control(v, i, bytes)
                         : dsa_vocabulary_add(v, i, bytes), 0);
    }

    end = (uint32_t) dsa_tokenizer_special(t,
                                           dsa_strz("<｜end▁of▁sentence｜>"));
    assert_in_range(end, 0, *size - 1);
    assert_int_equal(dsa_vocabulary_end(v, &end, 1), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    dsa_tokenizer_close(t);

    return v;
}


/* The control token is spelled; some tokens have the same bytes. */

static dsa_vocabulary_t *
vocabulary_words(uint32_t *size)
{
    char               word[8], byte;
    uint32_t           i, k, n, end[2];
    dsa_vocabulary_t  *v;

    static const char  letters[] =
        "aabehinrtt \n\"\"{}[]:,,0123-.\\u</>\xef\xbd\x9c\xc3\xa9";

    *size = WORDS + 258;
    v = dsa_vocabulary_create(*size);
    assert_non_null(v);

    for (i = 0; i < 256; i++) {
        byte = (char) i;
        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(&byte, 1)), 0);
    }

    for ( /* void */ ; i < WORDS + 256; i++) {
        n = 1 + dice(sizeof(word));

        for (k = 0; k < n; k++) {
            word[k] = letters[dice(sizeof(letters) - 1)];
        }

        assert_int_equal(dsa_vocabulary_add(v, i, dsa_str(word, n)), 0);
    }

    /* an end without bytes, and one that was not added */

    end[0] = i;
    end[1] = i + 1;

    assert_int_equal(dsa_vocabulary_add(v, i, dsa_str("", 0)), 0);
    assert_int_equal(dsa_vocabulary_end(v, end, 2), 0);
    assert_int_equal(dsa_vocabulary_seal(v), 0);

    return v;
}


static void
check_masks(dsa_vocabulary_t *v, uint32_t size)
{
    uint32_t         states, step, id, words, n, *mask;
    dsa_matcher_t   *m;
    dsa_grammar_t   *g[sizeof(specs) / sizeof(specs[0])];

    words = (size + 31) / 32;
    mask = malloc(words * sizeof(uint32_t));
    assert_non_null(mask);

    n = sizeof(specs) / sizeof(specs[0]);

    for (id = 0; id < n; id++) {
        g[id] = grammar_of(specs[id]);
    }

    states = 0;

    while (states < STATES) {
        m = dsa_matcher_create(g[dice(n)], v, dsa_str(NULL, 0));
        assert_non_null(m);

        for (step = 0; step < STEPS; step++) {
            id = check_state(m, mask, size);
            states++;

            assert_int_equal(dsa_matcher_accept(m, id), 0);

            /* there and back again, now and then */

            if (dice(10) == 0) {
                check_drafts(m, mask, size);
            }
        }

        dsa_matcher_free(m);
    }

    for (id = 0; id < n; id++) {
        dsa_grammar_free(g[id]);
    }

    free(mask);
}


/* Drafts change masks, until they are taken back. */

static void
check_drafts(dsa_matcher_t *m, uint32_t *mask, uint32_t size)
{
    uint32_t  i, k, n, id, chosen, words, *before;

    words = (size + 31) / 32;
    before = malloc(words * sizeof(uint32_t));
    assert_non_null(before);

    memset(before, 0xff, words * sizeof(uint32_t));
    dsa_matcher_mask(m, before, words);

    k = dice(20);

    for (i = 0; i < k; i++) {
        memset(mask, 0xff, words * sizeof(uint32_t));
        dsa_matcher_mask(m, mask, words);

        n = 0;
        chosen = 0;

        for (id = 0; id < size; id++) {
            if ((mask[id / 32] >> id % 32 & 1) != 0 && dice(++n) == 0) {
                chosen = id;
            }
        }

        assert_int_equal(dsa_matcher_draft(m, chosen), 0);
    }

    dsa_matcher_undo(m);

    memset(mask, 0xff, words * sizeof(uint32_t));
    dsa_matcher_mask(m, mask, words);
    assert_memory_equal(mask, before, words * sizeof(uint32_t));

    free(before);
}


/* Returns one of the permitted ids. */

static uint32_t
check_state(dsa_matcher_t *m, uint32_t *mask, uint32_t size)
{
    int       rc;
    uint32_t  id, n, chosen, words;

    words = (size + 31) / 32;
    memset(mask, 0xff, words * sizeof(uint32_t));

    /* a bit that is clear stays clear */

    chosen = dice(size);
    mask[chosen / 32] &= ~(1U << chosen % 32);

    dsa_matcher_mask(m, mask, words);

    assert_int_equal(mask[chosen / 32] >> chosen % 32 & 1, 0);

    if (dsa_matcher_draft(m, chosen) == 0) {
        dsa_matcher_undo(m);
        mask[chosen / 32] |= 1U << chosen % 32;
    }

    n = 0;
    chosen = 0;

    for (id = 0; id < words * 32; id++) {
        rc = dsa_matcher_draft(m, id);

        if (rc == 0) {
            dsa_matcher_undo(m);
            n++;

            if (dice(n) == 0) {
                chosen = id;
            }
        }

        if ((rc == 0) != (mask[id / 32] >> id % 32 & 1)) {
            fail_msg("token %u: accept %d, mask %u", id, rc,
                     mask[id / 32] >> id % 32 & 1);
        }
    }

    assert_true(n > 0);

    return chosen;
}


static void
test_demonstration_model(void **state)
{
    uint32_t           size;
    dsa_vocabulary_t  *v;

    v = vocabulary_demo(&size);
    check_masks(v, size);
    dsa_vocabulary_free(v);
}


static void
test_random_words(void **state)
{
    uint32_t           size;
    dsa_vocabulary_t  *v;

    v = vocabulary_words(&size);
    check_masks(v, size);
    dsa_vocabulary_free(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_demonstration_model),
        cmocka_unit_test(test_random_words)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
