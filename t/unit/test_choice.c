
/*
 * Copyright (C) The nginx-dsa authors
 *
 * What the null backend samples under a mask.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/null/choice.h"


#define VOCAB   100
#define WORDS   4
#define SAMPLES 100000


static void
permit(uint32_t *mask, const uint32_t *ids, uint32_t n)
{
    uint32_t  i;

    memset(mask, 0, WORDS * sizeof(uint32_t));

    for (i = 0; i < n; i++) {
        mask[ids[i] / 32] |= 1U << (ids[i] % 32);
    }
}


/* Each of n permitted ids within five standard deviations of its share. */

static void
test_uniform(void **state)
{
    uint32_t         i, count[VOCAB], mask[WORDS];
    dsa_sampling_t   s;
    dsa_null_ends_t  ends;

    static const uint32_t  ids[] = { 0, 31, 32, 64, 99 };

    memset(&s, 0, sizeof(s));
    memset(&ends, 0, sizeof(ends));
    memset(count, 0, sizeof(count));
    permit(mask, ids, 5);

    /* bits behind the vocabulary are not ids */

    mask[3] |= 0xfffffff0;

    for (i = 0; i < SAMPLES; i++) {
        s.seed = i % 10;
        count[dsa_null_masked(mask, VOCAB, &ends, &s, i / 10)]++;
    }

    for (i = 0; i < 5; i++) {
        assert_in_range(count[ids[i]], SAMPLES / 5 - 633, SAMPLES / 5 + 633);
        count[ids[i]] = 0;
    }

    for (i = 0; i < VOCAB; i++) {
        assert_int_equal(count[i], 0);
    }
}


/* An end is chosen more often, and only where it is permitted. */

static void
test_ends(void **state)
{
    uint32_t         i, ended, mask[WORDS];
    dsa_sampling_t   s;
    dsa_null_ends_t  ends = { { 7, 8 }, 2 };

    static const uint32_t  all[] = { 7, 10, 11, 12, 13, 14, 15, 16, 17, 18 };

    memset(&s, 0, sizeof(s));
    permit(mask, all, 10);

    for (i = 0, ended = 0; i < SAMPLES; i++) {
        ended += dsa_null_masked(mask, VOCAB, &ends, &s, i) == 7;
    }

    /* a quarter, and a tenth of the rest */

    assert_in_range(ended, SAMPLES * 0.325 - 741, SAMPLES * 0.325 + 741);

    permit(mask, all + 1, 9);

    for (i = 0; i < SAMPLES; i++) {
        assert_int_not_equal(dsa_null_masked(mask, VOCAB, &ends, &s, i), 7);
    }
}


static void
test_repeats(void **state)
{
    uint32_t         i, other, mask[WORDS];
    dsa_sampling_t   s, t;
    dsa_null_ends_t  ends = { { 7 }, 1 };

    memset(&s, 0, sizeof(s));
    memset(&t, 0, sizeof(t));
    memset(mask, 0xff, sizeof(mask));
    t.seed = 1;

    for (i = 0, other = 0; i < 1000; i++) {
        assert_int_equal(dsa_null_masked(mask, VOCAB, &ends, &s, i),
                         dsa_null_masked(mask, VOCAB, &ends, &s, i));
        other += dsa_null_masked(mask, VOCAB, &ends, &s, i)
                 != dsa_null_masked(mask, VOCAB, &ends, &t, i);
    }

    assert_true(other > 500);
}


static void
test_bias(void **state)
{
    uint32_t      mask[WORDS];
    dsa_biases_t  b;

    static const uint32_t    ids[] = { 3, 5, 9 };
    static const dsa_bias_t  ban[] = { { 5, -100 }, { 9, -99 } };
    static const dsa_bias_t  force[] = { { 4, 100 }, { 9, 100 } };

    memset(&b, 0, sizeof(b));
    permit(mask, ids, 3);

    assert_int_equal(dsa_null_biased(mask, VOCAB, &b, 5), 5);

    b.bias = ban;
    b.n = 2;
    assert_int_equal(dsa_null_biased(mask, VOCAB, &b, 5), 9);
    assert_int_equal(dsa_null_biased(NULL, VOCAB, &b, 5), 6);
    assert_int_equal(dsa_null_biased(mask, VOCAB, &b, 9), 9);

    permit(mask, ids + 1, 1);
    assert_int_equal(dsa_null_biased(mask, VOCAB, &b, 5), 5);

    permit(mask, ids, 3);
    b.bias = force;
    assert_int_equal(dsa_null_biased(mask, VOCAB, &b, 5), 9);
    assert_int_equal(dsa_null_biased(NULL, VOCAB, &b, 5), 4);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_bias)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
