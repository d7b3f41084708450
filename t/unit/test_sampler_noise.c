
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The noise of sampling: random numbers, and what is made of them.
 */


#include <math.h>

#include "kernels/sample/noise.h"
#include "t/unit/sampler.h"


/* kat_vectors of Random123 1.14, philox4x32-10 */

static void
test_philox(void **state)
{
    size_t    i;
    uint32_t  out[4];

    static const struct {
        uint32_t  counter[4];
        uint32_t  key[2];
        uint32_t  out[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 },
          { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        dsa_noise_words(out, (uint64_t) known[i].key[1] << 32
                             | known[i].key[0],
                        (uint64_t) known[i].counter[1] << 32
                        | known[i].counter[0],
                        known[i].counter[2], known[i].counter[3]);
        assert_memory_equal(out, known[i].out, sizeof(out));
    }
}


/* The noise of an id, as dsa_noise_enter() computes it. */

static double
noise(uint64_t seed, uint64_t position, uint32_t id)
{
    uint32_t  word[4];

    dsa_noise_words(word, seed, position, id / 4, 0);

    return (double) dsa_noise(word[id % 4], seed, position, id);
}


/*
 * Noise is -log(1 - v) of the formula, in float64: at 2^20 words of all sizes,
 * at the greatest and the least ones, and where the polynomial changes.
 */

static void
test_noise_log(void **state)
{
    float     e;
    double    want;
    uint32_t  i, word;

    for (i = 0; i < 1 << 20; i++) {
        word = i < 1 << 18 ? DSA_NOISE_MORE + i
               : i < 2 << 18 ? UINT32_MAX - (i & 0x3ffff)
               : i < 3 << 18 ? DSA_NOISE_THIRD - (1 << 17) + (i & 0x3ffff)
               : i * 4099;

        if (word < DSA_NOISE_MORE) {
            continue;
        }

        e = dsa_noise(word, 1, 2, 3);
        want = -log1p(-((double) word + 0.5) / 4294967296.0);

        if (!(fabs((double) e - want) <= 2e-7 * want)) {
            fail_msg("word %x: %g instead of %g", word, (double) e, want);
        }
    }
}


/*
 * Small words: of 2^26 ids about 4 have a word below 256, and more bits.  The
 * number of ids with noise below 2^-n has a Poisson distribution; the bounds
 * are four deviations.
 */

static void
test_noise_tail(void **state)
{
    double    e, want;
    uint32_t  i, j, n, more, small[8], word[4], extra[4];

    memset(small, 0, sizeof(small));
    more = 0;

    for (i = 0; i < 1 << 24; i++) {
        dsa_noise_words(word, 9, 12345, i, 0);

        for (j = 0; j < 4; j++) {
            if (word[j] >= 1 << 20) {
                continue;
            }

            e = (double) dsa_noise(word[j], 9, 12345, 4 * i + j);

            for (n = 0; n < 8; n++) {
                small[n] += e < ldexp(1, -13 - (int) n);
            }

            if (word[j] < 256) {
                dsa_noise_words(extra, 9, 12345, i, 1);
                want = ldexp((double) word[j]
                             + ((double) extra[j] + 0.5) / 4294967296.0, -32);
                assert_true(fabs(e - want) <= 2e-7 * want);
                more++;
            }
        }
    }

    assert_true(more > 0);

    for (n = 0; n < 8; n++) {
        want = ldexp(1, 13 - (int) n);

        if (!(fabs(small[n] - want) <= 4 * sqrt(want))) {
            fail_msg("noise below 2^-%u: %u times", 13 + n, small[n]);
        }
    }
}


/* The eighth of the exponential distribution that e falls into. */

static uint32_t
eighth(double e)
{
    uint32_t  i;

    i = (uint32_t) (exp(-e) * 8);

    return i < 8 ? i : 7;
}


/*
 * Each pair of eighths of two noises occurs as often as any other (chi-square
 * with 63 degrees of freedom: above 103.4 once in a thousand): of neighbouring
 * ids, of those of neighbouring blocks of Philox, of neighbouring positions, of
 * neighbouring seeds.
 */

static void
test_noise(void **state)
{
    double    a, b, chi;
    uint32_t  i, kind, hits[64];

    for (kind = 0; kind < 6; kind++) {
        memset(hits, 0, sizeof(hits));

        for (i = 0; i < 64000; i++) {
            a = noise(7, 0, 2 * i);
            b = noise(7, 0, 2 * i + 1);

            if (kind == 1) {
                a = noise(7, 3, i / 4 * 8 + i % 4);
                b = noise(7, 3, i / 4 * 8 + i % 4 + 4);

            } else if (kind == 2) {
                a = noise(7, 2 * i, 5);
                b = noise(7, 2 * i + 1, 5);

            } else if (kind == 3) {
                a = noise(2 * i, 9, 5);
                b = noise(2 * i + 1, 9, 5);

            } else if (kind == 4) {
                a = noise(i, 9, 5);
                b = noise(i, (1ULL << 32) + 9, 5);

            } else if (kind == 5) {
                a = noise(i, 9, 5);
                b = noise((1ULL << 32) + i, 9, 5);
            }

            hits[eighth(a) * 8 + eighth(b)]++;
        }

        for (i = 0, chi = 0; i < 64; i++) {
            chi += (hits[i] - 1000.0) * (hits[i] - 1000.0) / 1000.0;
        }

        if (chi > 103.4) {
            fail_msg("kind %u: chi-square %g", kind, chi);
        }
    }
}


/*
 * A token is the argmax of logit / temperature + g, computed here in float64
 * as the formula says, for all tokens of a row that differs in each position.
 */

static void
test_gumbel(void **state)
{
    float           logits[VOCAB];
    double          x, own, most;
    uint32_t        i, t, n, token;
    dsa_sampling_t  s;

    for (t = 0; t < 3000; t++) {
        n = VOCAB - t % 7;
        s = sampling(0.2f + (float) (t % 10) / 5, 1);
        s.seed = (uint64_t) t << 30;

        for (i = 0; i < n; i++) {
            logits[i] = (float) (dsa_t_counted(t, i, 0) * 12 - 6);
        }

        token = sample(&s, logits, n, 1ULL << t % 40);
        own = 0;
        most = -INFINITY;

        for (i = 0; i < n; i++) {
            x = (double) logits[i] / (double) s.temperature
                - log(noise(s.seed, 1ULL << t % 40, i));
            most = x > most ? x : most;
            own = i == token ? x : own;
        }

        assert_true(own >= most - 1e-5);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_noise_log),
        cmocka_unit_test(test_noise_tail),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_gumbel)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
