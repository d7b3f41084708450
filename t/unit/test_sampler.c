
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Sampling: distributions, penalties, masks and log probabilities.
 */


#include <math.h>

#include "t/unit/sampler.h"


typedef struct {
    double      p;
    uint32_t    id;
} rank_t;


/*
 * Two rows whose logits differ a little have the same token as often as the
 * formula says: sum over i of 1 / sum over j of max(p_j / p_i, q_j / q_i).
 * The bounds are four deviations.
 */

static void
test_agreement(void **state)
{
    float           p[40], q[40];
    double          sum, want, a, b;
    uint32_t        i, j, n, same;
    dsa_sampling_t  s;

    for (i = 0; i < 40; i++) {
        p[i] = (float) (dsa_t_counted(1, i, 0) * 6);
        q[i] = p[i] + (float) dsa_t_counted(2, i, 0);
    }

    for (i = 0, want = 0; i < 40; i++) {
        for (j = 0, sum = 0; j < 40; j++) {
            a = exp((double) p[j] - (double) p[i]);
            b = exp((double) q[j] - (double) q[i]);
            sum += a > b ? a : b;
        }

        want += 1 / sum;
    }

    s = sampling(1, 1);
    n = 40000;

    for (i = 0, same = 0; i < n; i++) {
        s.seed = i % 200;
        same += sample(&s, p, 40, i / 200) == sample(&s, q, 40, i / 200);
    }

    if (!(fabs(same - want * n) <= 4 * sqrt(n * want * (1 - want)))) {
        fail_msg("%u of %u tokens agree, instead of %g", same, n, want * n);
    }
}


static void
test_greedy(void **state)
{
    float           logits[] = { 1, 3, -2, 3, 0 };
    dsa_sample_t    out;
    dsa_sampling_t  s;

    s = sampling(0, 1);

    assert_int_equal(sample(&s, logits, 5, 0), 1);

    /* ids that are not allowed */

    logits[4] = 100;
    dsa_sample(&out, &s, NULL, logits, 5, 4, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 1);

    s = sampling(1, 1);
    dsa_sample(&out, &s, NULL, logits, 5, 4, NULL, NULL, 0, 0, scratch);
    assert_true(out.token < 4);

    /* a temperature near 0 gives the same token as 0 */

    logits[3] = 2.9f;
    s = sampling(1e-45f, 1);
    assert_int_equal(sample(&s, logits, 4, 0), 1);
}


/* Counts of samples against their probabilities, with fixed seeds. */

static void
check_counts(const dsa_sampling_t *given, const float *logits, uint32_t n,
    const double *p, double limit)
{
    double          chi, want;
    uint32_t        i, draws, hits[VOCAB];
    dsa_sampling_t  s;

    memset(hits, 0, sizeof(hits));
    draws = 100000;
    s = *given;

    for (i = 0; i < draws; i++) {
        s.seed = i % 100;
        hits[sample(&s, logits, n, i / 100)]++;
    }

    for (i = 0, chi = 0; i < n; i++) {
        want = p[i] * draws;

        if (p[i] == 0) {
            assert_int_equal(hits[i], 0);

        } else {
            chi += (hits[i] - want) * (hits[i] - want) / want;
        }
    }

    if (chi > limit) {
        fail_msg("chi-square %g above %g", chi, limit);
    }
}


static void
test_distribution(void **state)
{
    float           logits[10];
    double          p[10], sum;
    uint32_t        i;
    dsa_sampling_t  s;

    for (i = 0, sum = 0; i < 10; i++) {
        logits[i] = (float) ((i * 7) % 10) / 3;
        p[i] = exp(logits[i] / 0.7);
        sum += p[i];
    }

    for (i = 0; i < 10; i++) {
        p[i] /= sum;
    }

    /* 9 degrees of freedom: above 27.9 once in a thousand */

    s = sampling(0.7f, 1);
    check_counts(&s, logits, 10, p, 27.9);
}


static int
rank_order(const void *a, const void *b)
{
    const rank_t  *x = a, *y = b;

    if (x->p != y->p) {
        return x->p < y->p ? 1 : -1;
    }

    return x->id < y->id ? -1 : 1;
}


/*
 * top_p keeps the same ids as sorting: each of them is sampled, and no other.
 */

static void
test_nucleus(void **state)
{
    float           logits[VOCAB], top_p;
    double          sum, mass;
    rank_t          rank[VOCAB];
    uint8_t         kept[VOCAB], seen[VOCAB];
    uint32_t        i, n, t, id, n_kept, n_seen;
    dsa_sampling_t  s;

    for (t = 0; t < 12; t++) {
        n = t < 6 ? 17 : 90;
        top_p = 0.15f * (float) (t % 6) + 0.1f;

        for (i = 0, sum = 0; i < n; i++) {

            /* only a few different values, so that there are many ties */

            logits[i] = (float) (dsa_t_counted(t, i, 0) * 6);

            if (t % 2 == 0) {
                logits[i] = floorf(logits[i]) / 2;
            }

            rank[i].p = exp((double) logits[i]);
            rank[i].id = i;
            sum += rank[i].p;
        }

        qsort(rank, n, sizeof(rank_t), rank_order);
        memset(kept, 0, sizeof(kept));
        memset(seen, 0, sizeof(seen));

        for (i = 0, mass = 0; i < n && mass < (double) top_p * sum; i++) {
            mass += rank[i].p;
            kept[rank[i].id] = 1;
        }

        n_kept = i;
        n_seen = 0;
        s = sampling(1, top_p);

        for (i = 0; i < 40000; i++) {
            s.seed = i;
            id = sample(&s, logits, n, 5);
            assert_true(id < n);

            if (!kept[id]) {
                fail_msg("id %u is not in the nucleus of %g", id,
                         (double) top_p);
            }

            n_seen += !seen[id];
            seen[id] = 1;
        }

        assert_int_equal(n_seen, n_kept);
    }
}


/* The smallest nucleus is one id: the lowest of equally probable ones. */

static void
test_nucleus_one(void **state)
{
    float           logits[4] = { 1, 2, 2, 0 };
    uint32_t        i;
    dsa_sampling_t  s;

    s = sampling(1, 1e-6f);

    for (i = 0; i < 100; i++) {
        s.seed = i;
        assert_int_equal(sample(&s, logits, 4, i), 1);
    }
}


static void
test_nucleus_distribution(void **state)
{
    float           logits[5];
    double          p[5] = { 0.4, 0.3, 0.15, 0, 0 };
    uint32_t        i;
    dsa_sampling_t  s;

    static const double  all[5] = { 0.4, 0.3, 0.15, 0.1, 0.05 };

    for (i = 0; i < 5; i++) {
        logits[i] = (float) log(all[i]);
        p[i] /= 0.85;
    }

    /* 2 degrees of freedom: above 13.8 once in a thousand */

    s = sampling(1, 0.75f);
    check_counts(&s, logits, 5, p, 13.8);
}


static void
test_penalties(void **state)
{
    float           logits[3] = { 5, 4, 3 };
    uint32_t        history[] = { 0, 0, 1, 70 };
    dsa_sample_t    out;
    dsa_sampling_t  s;

    /* 5 - 2 * 0.6 = 3.8, 4 - 0.6 = 3.4 */

    s = sampling(0, 1);
    s.frequency_penalty = 0.6f;
    dsa_sample(&out, &s, NULL, logits, 3, 3, NULL, history, 4, 0, scratch);
    assert_int_equal(out.token, 0);

    /* 5 - 2 * 1.1 = 2.8, 4 - 1.1 = 2.9, 3 */

    s.frequency_penalty = 1.1f;
    dsa_sample(&out, &s, NULL, logits, 3, 3, NULL, history, 4, 0, scratch);
    assert_int_equal(out.token, 2);

    /* once for each id that occurs: 5 - 1.5, 4 - 1.5, 3 */

    s.frequency_penalty = 0;
    s.presence_penalty = 1.5f;
    dsa_sample(&out, &s, NULL, logits, 3, 3, NULL, history, 4, 0, scratch);
    assert_int_equal(out.token, 0);

    s.presence_penalty = 2;
    dsa_sample(&out, &s, NULL, logits, 3, 3, NULL, history, 4, 0, scratch);
    assert_int_equal(out.token, 0);

    /* both: 5 - 1.5 - 0.8 = 2.7, 4 - 1.5 - 0.4, 3 */

    s.presence_penalty = 1.5f;
    s.frequency_penalty = 0.4f;
    dsa_sample(&out, &s, NULL, logits, 3, 3, NULL, history, 4, 0, scratch);
    assert_int_equal(out.token, 2);

    /* a negative penalty favors ids of the history */

    s.presence_penalty = -1.5f;
    s.frequency_penalty = 0;
    dsa_sample(&out, &s, NULL, logits, 3, 3, NULL, history + 2, 1, 0, scratch);
    assert_int_equal(out.token, 1);
}


static void
test_logprobs(void **state)
{
    float           logits[6] = { 0, 2, 1, 2, -INFINITY, 50 };
    double          norm;
    dsa_sample_t    out;
    dsa_sampling_t  s;

    /* over the five allowed ids, before temperature and penalties */

    norm = log(1 + 2 * exp(2) + exp(1));

    s = sampling(0, 0.5f);
    s.logprobs = 1;
    s.top_logprobs = 3;
    s.presence_penalty = 0.5f;

    dsa_sample(&out, &s, NULL, logits, 6, 5, NULL, NULL, 0, 0, scratch);

    assert_int_equal(out.token, 1);
    assert_true(fabs((double) out.logprob - (2 - norm)) < 1e-6);

    assert_int_equal(out.n_top, 3);
    assert_int_equal(out.top[0], 1);
    assert_int_equal(out.top[1], 3);
    assert_int_equal(out.top[2], 2);
    assert_true(fabs((double) out.top_logprob[1] - (2 - norm)) < 1e-6);
    assert_true(fabs((double) out.top_logprob[2] - (1 - norm)) < 1e-6);

    /* more alternatives than allowed ids */

    s.top_logprobs = DSA_SAMPLE_MAX_TOP;
    dsa_sample(&out, &s, NULL, logits, 6, 5, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.n_top, 5);
    assert_int_equal(out.top[3], 0);
    assert_int_equal(out.top[4], 4);

    s.logprobs = 0;
    dsa_sample(&out, &s, NULL, logits, 6, 5, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.n_top, 0);
}


/* Permits ids that are multiples of n. */

static void
mask_multiples(uint32_t *mask, uint32_t vocab, uint32_t n)
{
    uint32_t  i;

    memset(mask, 0, dsa_mask_words(vocab) * sizeof(uint32_t));

    for (i = 0; i < vocab; i += n) {
        mask[i / 32] |= 1U << (i % 32);
    }
}


/*
 * A masked sample is the sample of the permitted logits alone, at every
 * temperature, top_p and penalty: the oracle has minus infinity for the others.
 */

static void
test_mask(void **state)
{
    float           logits[VOCAB], alone[VOCAB];
    uint32_t        i, n, mask[(VOCAB + 31) / 32], history[20];
    dsa_sample_t    out, want;
    dsa_sampling_t  s;

    for (i = 0; i < VOCAB; i++) {
        logits[i] = (float) (dsa_t_counted(5, i, 0) * 8);
    }

    for (i = 0; i < 20; i++) {
        history[i] = i * i % 50 * 3;
    }

    for (n = 1; n < 40; n += 3) {
        mask_multiples(mask, VOCAB, n);

        for (i = 0; i < VOCAB; i++) {
            alone[i] = i % n == 0 ? logits[i] : -INFINITY;
        }

        for (i = 0; i < 300; i++) {
            s = sampling(i % 3 == 0 ? 0 : 0.5f + (float) (i % 5), 1);
            s.top_p = i % 2 == 0 ? 1 : 0.6f;
            s.presence_penalty = i % 4 == 0 ? 1.5f : 0;
            s.frequency_penalty = i % 4 == 1 ? -0.5f : 0;
            s.seed = i;

            dsa_sample(&want, &s, NULL, alone, VOCAB, VOCAB, NULL, history,
                       20, i, scratch);
            dsa_sample(&out, &s, NULL, logits, VOCAB, VOCAB, mask, history,
                       20, i, scratch);

            assert_int_equal(out.token % n, 0);
            assert_int_equal(out.token, want.token);
        }
    }
}


/* logprobs are those without the mask; a mask of all ids changes nothing. */

static void
test_mask_logprobs(void **state)
{
    float           logits[6] = { 0, 2, 1, 2, -INFINITY, 50 };
    double          norm;
    uint32_t        mask;
    dsa_sample_t    out;
    dsa_sampling_t  s;

    norm = log(1 + 2 * exp(2) + exp(1));

    s = sampling(0, 1);
    s.logprobs = 1;
    s.top_logprobs = 3;

    mask = 1U << 2 | 1U << 0;
    dsa_sample(&out, &s, NULL, logits, 6, 5, &mask, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 2);
    assert_true(fabs((double) out.logprob - (1 - norm)) < 1e-6);
    assert_int_equal(out.n_top, 3);
    assert_int_equal(out.top[0], 1);
    assert_int_equal(out.top[1], 3);
    assert_int_equal(out.top[2], 2);

    mask = UINT32_MAX;
    dsa_sample(&out, &s, NULL, logits, 6, 5, &mask, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 1);

    /* only an id whose probability is 0 is permitted */

    mask = 1U << 4;

    for (s.temperature = 0; s.temperature < 2; s.temperature++) {
        dsa_sample(&out, &s, NULL, logits, 6, 5, &mask, NULL, 0, 0, scratch);
        assert_int_equal(out.token, 4);
        assert_true(out.logprob < -1e30f);
    }

    /* an id that is permitted, but not allowed */

    mask = 1U << 5 | 1U << 0;
    dsa_sample(&out, &s, NULL, logits, 6, 5, &mask, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 0);
}


/*
 * A bias is added to its logit, so that the sample is that of logits with the
 * sum; the least one bans and the greatest one forces an id.
 */

static void
test_bias(void **state)
{
    float           logits[6] = { 0, 2, 1, 2, -INFINITY, 50 };
    float           sums[6] = { 3, 2, 0.5f, 2, -INFINITY, 50 };
    uint32_t        i, mask;
    dsa_biases_t    b;
    dsa_sample_t    out, want;
    dsa_sampling_t  s;

    static const dsa_bias_t  added[2] = { { 0, 3 }, { 2, -0.5f } };
    static const dsa_bias_t  ban[3] = { { 1, -100 }, { 3, -100 }, { 5, 100 } };
    static const dsa_bias_t  force[3] = { { 0, 100 }, { 4, 100 }, { 1, 99 } };

    for (i = 0; i < 200; i++) {
        s = sampling(1, 1);
        s.seed = i;
        b.bias = added;
        b.n = 2;

        dsa_sample(&out, &s, &b, logits, 6, 5, NULL, NULL, 0, 0, scratch);
        dsa_sample(&want, &s, NULL, sums, 6, 5, NULL, NULL, 0, 0, scratch);
        assert_int_equal(out.token, want.token);

        /* id 5 is not allowed, so that forcing it has no effect */

        b.bias = ban;
        b.n = 3;
        dsa_sample(&out, &s, &b, logits, 6, 5, NULL, NULL, 0, 0, scratch);
        assert_true(out.token == 0 || out.token == 2);

        /* the logit of id 4 is minus infinity whatever is added */

        b.bias = force;
        dsa_sample(&out, &s, &b, logits, 6, 5, NULL, NULL, 0, 0, scratch);
        assert_int_equal(out.token, 0);

        /* the mask excludes what is forced */

        mask = 1U << 1 | 1U << 2;
        dsa_sample(&out, &s, &b, logits, 6, 5, &mask, NULL, 0, 0, scratch);
        assert_int_equal(out.token, 1);

        /* and permits only what is banned */

        b.bias = ban;
        mask = 1U << 3;
        dsa_sample(&out, &s, &b, logits, 6, 5, &mask, NULL, 0, 0, scratch);
        assert_int_equal(out.token, 3);
    }

    /* logprobs are those without the biases */

    s = sampling(0, 1);
    s.logprobs = 1;
    b.bias = force;
    b.n = 3;
    dsa_sample(&out, &s, &b, logits, 6, 5, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 0);
    assert_true(fabs((double) out.logprob + log(1 + 2 * exp(2) + exp(1)))
                < 1e-6);
}


/* The same (seed, position) gives the same token. */

static void
test_repeat(void **state)
{
    float           logits[VOCAB];
    uint32_t        i, differ;
    dsa_sampling_t  s;

    for (i = 0; i < VOCAB; i++) {
        logits[i] = (float) dsa_t_counted(3, i, 1);
    }

    s = sampling(1, 0.9f);
    differ = 0;

    for (i = 0; i < 50; i++) {
        s.seed = 1;
        assert_int_equal(sample(&s, logits, VOCAB, i),
                         sample(&s, logits, VOCAB, i));

        differ += sample(&s, logits, VOCAB, i)
                  != sample(&s, logits, VOCAB, i + 1);
    }

    assert_true(differ > 40);
}


static void
test_odd_logits(void **state)
{
    float           logits[4];
    uint32_t        i;
    dsa_sample_t    out;
    dsa_sampling_t  s;

    for (i = 0; i < 4; i++) {
        logits[i] = NAN;
    }

    s = sampling(1, 0.5f);
    s.logprobs = 1;
    s.top_logprobs = 2;
    dsa_sample(&out, &s, NULL, logits, 4, 4, NULL, NULL, 0, 0, scratch);
    assert_true(out.token < 4);

    logits[2] = 1;
    dsa_sample(&out, &s, NULL, logits, 4, 4, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 2);
    assert_true(out.logprob == 0);

    logits[1] = INFINITY;
    dsa_sample(&out, &s, NULL, logits, 4, 4, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 1);

    logits[0] = logits[1] = logits[2] = logits[3] = -INFINITY;
    dsa_sample(&out, &s, NULL, logits, 4, 4, NULL, NULL, 0, 0, scratch);
    assert_true(out.token < 4);

    logits[0] = -3e38f;
    logits[1] = 3e38f;
    s = sampling(2, 0.99f);
    dsa_sample(&out, &s, NULL, logits, 2, 2, NULL, NULL, 0, 0, scratch);
    assert_int_equal(out.token, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_nucleus),
        cmocka_unit_test(test_nucleus_one),
        cmocka_unit_test(test_nucleus_distribution),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_mask_logprobs),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_repeat),
        cmocka_unit_test(test_odd_logits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
