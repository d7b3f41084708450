
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Many answers at once with one schema that counts.  The oracle is the same
 * answer alone, with a grammar of its own: its masks and its end must not
 * depend on the others.
 */


#include "base/buf.h"
#include "grammar.h"


#define ANSWERS         512
#define STEPS           70
#define WORDS           200
#define SIZE            (256 + WORDS + 1)
#define MASK_WORDS      ((SIZE + 31) / 32)


typedef struct {
    dsa_matcher_t       *m;
    uint64_t             seed;
    uint32_t             ended;
    uint32_t             n;
    uint64_t             hash[STEPS];   /* of the masks, alone */
} answer_t;


/* Answer i begins with i items, so that no two of them are in one state. */

typedef struct {
    const char          *spec;
    const char          *item;
    const char          *last;      /* behind the items */
} schema_t;


static const schema_t     strings = {
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\","
    "\"maxItems\":2000,\"items\":{\"type\":\"string\",\"maxLength\":300}}}",
    "\"\",",
    "\""
};

static const schema_t     mixed = {
    "{\"type\":\"json_schema\",\"schema\":{\"type\":\"array\","
    "\"minItems\":600,\"maxItems\":2000,\"items\":{\"anyOf\":["
    "{\"type\":\"string\",\"minLength\":90,\"maxLength\":900},"
    "{\"type\":\"integer\",\"minimum\":-70000,\"maximum\":123456},"
    "{\"type\":\"string\",\"pattern\":\"^(?:ab?c?[aeo]){20,60}$\"}]}}}",
    "7,",
    "\""
};

/* each level of arrays is counted, and an answer has 56 of its own */

static const schema_t     deep = {
    "{\"type\":\"json_schema\",\"schema\":{\"anyOf\":["
    "{\"type\":\"array\",\"maxItems\":900,\"items\":{\"$ref\":\"#\"}},"
    "{\"type\":\"string\",\"maxLength\":60}]}}",
    "\"\",",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\""
};


static answer_t           answers[ANSWERS];
static dsa_vocabulary_t  *v;


static uint32_t
dice(uint64_t *seed, uint32_t n)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;

    return (uint32_t) ((*seed * 0x2545f4914f6cdd1d) >> 32) % n;
}


/* All bytes, words of 2 to 9 characters, and an end. */

static int
setup(void **state)
{
    char      word[9];
    uint32_t  i, k, n, end;
    uint64_t  seed;

    seed = 20261103;
    v = dsa_vocabulary_create(SIZE);
    assert_non_null(v);

    for (i = 0; i < 256 + WORDS; i++) {
        n = i < 256 ? 1 : 2 + dice(&seed, 8);

        for (k = 0; k < n; k++) {
            word[k] = i < 256 ? (char) i
                              : "aabbccaeoe 019\","[dice(&seed, 16)];
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


static void
write_text(answer_t *a, const char *text)
{
    while (*text != '\0' && !dsa_matcher_failed(a->m)) {
        if (dsa_matcher_accept(a->m, (uint8_t) *text++) != 0) {
            assert_int_equal(dsa_matcher_failed(a->m), 1);
        }
    }
}


static void
create(answer_t *a, dsa_grammar_t *g, uint32_t i)
{
    a->seed = 7919 * (i + 1);
    a->ended = 0;
    a->m = dsa_matcher_create(g, v, dsa_str(NULL, 0));
    assert_non_null(a->m);
}


static void
begin(answer_t *a, const schema_t *schema, uint32_t i)
{
    write_text(a, "[");

    while (i-- != 0) {
        write_text(a, schema->item);
    }

    write_text(a, schema->last);
}


/*
 * Draws one token; returns the hash of its mask, or 0 if the matcher has
 * failed.
 */

static uint64_t
step(answer_t *a)
{
    uint32_t  i, id, n, mask[MASK_WORDS];
    uint64_t  hash;

    memset(mask, 0xff, sizeof(mask));
    dsa_matcher_mask(a->m, mask, MASK_WORDS);

    if (dsa_matcher_failed(a->m)) {

        /* all tokens are still permitted, and none is accepted */

        for (i = 0; i < MASK_WORDS; i++) {
            assert_int_equal(mask[i], 0xffffffff);
        }

        assert_int_equal(dsa_matcher_accept(a->m, '"'), -1);
        assert_int_equal(dsa_matcher_accept(a->m, SIZE - 1), -1);

        return 0;
    }

    hash = 0xcbf29ce484222325;

    for (i = 0; i < MASK_WORDS; i++) {
        hash = (hash ^ mask[i]) * 0x100000001b3;
    }

    /* the end is permitted if and only if the answer is complete */

    assert_int_equal(mask[(SIZE - 1) / 32] >> (SIZE - 1) % 32 & 1,
                     dsa_matcher_complete(a->m));

    /* a token is permitted if and only if it is accepted */

    for (i = 0; i < 4; i++) {
        id = dice(&a->seed, SIZE);
        n = dsa_matcher_draft(a->m, id) == 0;

        if (dsa_matcher_failed(a->m)) {
            return 0;
        }

        assert_int_equal(n, mask[id / 32] >> id % 32 & 1);
        dsa_matcher_undo(a->m);
    }

    /* strings end seldom, and the answer only where nothing else can follow */

    n = 0;
    id = SIZE;

    for (i = 0; i < SIZE - 1; i++) {
        if ((mask[i / 32] >> i % 32 & 1) != 0 && i != ']'
            && (i != '"' || dice(&a->seed, 20) == 0)
            && dice(&a->seed, ++n) == 0)
        {
            id = i;
        }
    }

    if (id == SIZE && dsa_matcher_complete(a->m)) {
        a->ended = 1;
        return hash;
    }

    if (id == SIZE) {
        id = (mask['"' / 32] >> '"' % 32 & 1) != 0 ? '"' : ']';
    }

    if (dsa_matcher_accept(a->m, id) != 0) {
        assert_int_equal(dsa_matcher_failed(a->m), 1);
        return 0;
    }

    return hash;
}


/* Returns the number of answers that failed. */

static uint32_t
check(const schema_t *schema)
{
    uint32_t        i, k, failed;
    uint64_t        hash;
    answer_t       *a;
    dsa_grammar_t  *g;

    /* each answer alone */

    for (i = 0; i < ANSWERS; i++) {
        a = &answers[i];
        g = grammar_of(schema->spec);
        create(a, g, i);
        begin(a, schema, i);

        for (k = 0; k < STEPS && !a->ended; k++) {
            a->hash[k] = step(a);
            assert_int_not_equal(a->hash[k], 0);
        }

        a->n = k;
        dsa_matcher_free(a->m);
        dsa_grammar_free(g);
    }

    /* all at once */

    g = grammar_of(schema->spec);
    failed = 0;

    for (i = 0; i < ANSWERS; i++) {
        create(&answers[i], g, i);
    }

    for (i = 0; i < ANSWERS; i++) {
        begin(&answers[i], schema, i);
    }

    for (k = 0; k < STEPS; k++) {
        for (i = 0; i < ANSWERS; i++) {
            a = &answers[i];

            if (k >= a->n) {
                continue;
            }

            hash = step(a);

            if (hash == 0) {
                failed++;
                a->n = 0;
                continue;
            }

            if (hash != a->hash[k]) {
                fail_msg("answer %u: the mask of token %u differs from that "
                         "of the same answer alone", i, k);
            }
        }
    }

    for (i = 0; i < ANSWERS; i++) {
        dsa_matcher_free(answers[i].m);
    }

    dsa_grammar_free(g);
    assert_int_equal(dsa_vocabulary_used(v), 0);

    return failed;
}


static void
test_strings(void **state)
{
    assert_int_equal(check(&strings), 0);
}


static void
test_mixed(void **state)
{
    assert_int_equal(check(&mixed), 0);
}


/*
 * Without memory for all of them, some answers fail.  The others go on as if
 * they were alone.
 */

static void
test_memory(void **state)
{
    uint32_t  failed;

    dsa_vocabulary_limit(v, 0);

    failed = check(&deep);

    assert_in_range(failed, 1, ANSWERS - 1);

    assert_int_equal(check(&strings), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_memory)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
