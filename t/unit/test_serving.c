
/*
 * Copyright (C) The nginx-dsa authors
 */


#define SERVING_BACKEND     DSA_BACKEND_CPU
#define SERVING_PRECISION   DSA_EXACT
#define SERVING_BOUND       1e-5

#include "t/unit/serving.h"


/* In float32 the answer is the golden one. */

static void
test_alone(void **state)
{
    uint32_t  i;

    for (i = 0; i < 16; i++) {
        assert_int_equal(alone[0].sample[i].token, greedy[i]);
    }
}


/*
 * The answer from which drafts are taken, and the numbers of right and wrong
 * drafts in each step.
 */

static const client_t  *draft_of;
static uint32_t         draft_right;
static uint32_t         draft_wrong;


static uint32_t
on_draft(void *owner, const uint32_t *tokens, uint32_t n_tokens,
    uint32_t *drafts, uint32_t most)
{
    uint32_t  i, n, at;

    n = draft_right + draft_wrong;
    n = n < most ? n : most;

    for (i = 0; i < n; i++) {
        at = n_tokens - draft_of->n_prompt + i;
        drafts[i] = at < ANSWER ? draft_of->sample[at].token : 0;

        if (i >= draft_right) {
            drafts[i] ^= 1;
        }
    }

    return n;
}


/* Permits every third id: token i of the answer has id % 3 == i % 3. */

static int
on_mask(void *owner, const uint32_t *drafts, uint32_t n_drafts,
    uint32_t *mask, uint32_t words)
{
    uint32_t         i, id;
    const client_t  *c = owner;

    for (i = 0; i <= n_drafts; i++) {
        for (id = 0; id < words * 32; id++) {
            if (id % 3 != (c->n + i) % 3) {
                mask[i * words + id / 32] &= ~(1U << (id % 32));
            }
        }
    }

    return 1;
}


/*
 * An answer of `base` with drafts is the answer without; returns the steps
 * with drafts.
 */

static uint64_t
check_drafts(const client_t *base, uint32_t right, uint32_t wrong)
{
    client_t           want, c;
    engine_t           e;
    dsa_sched_stats_t  stats;

    want = *base;
    start(&e, 64, 256);
    submit(&e, &want, 0);
    run(&e);
    finish(&e);

    c = *base;
    c.draft = on_draft;
    draft_of = &want;
    draft_right = right;
    draft_wrong = wrong;

    start(&e, 64, 256);
    submit(&e, &c, 0);
    run(&e);
    same(&c, &want);

    dsa_sched_stats(e.sched, &stats);
    finish(&e);

    return stats.steps;
}


static void
test_drafts(void **state)
{
    client_t  c;
    uint32_t  i;

    /* one step for the prompt, and 99 tokens in steps of 1 to 8 */

    for (i = 0; i < 2; i++) {
        c = alone[i];

        assert_int_equal(check_drafts(&c, 7, 0), 1 + (99 + 7) / 8);
        assert_int_equal(check_drafts(&c, 2, 3), 1 + 99 / 3);
        assert_int_equal(check_drafts(&c, 0, 7), 1 + 99);

        /*
         * Drafts change the shape of a step, and with it the rounding.  The
         * cumulative probabilities of 1,024 ids are so close to each other
         * that rounding would often decide which id is sampled.  With a small
         * top_p there are only a few ids.
         */

        c.temperature = 1;
        c.top_p = 0.5f;
        c.presence_penalty = 0.7f;
        c.seed = 100 + i;

        assert_int_equal(check_drafts(&c, 7, 0), 1 + (99 + 7) / 8);
        assert_int_equal(check_drafts(&c, 2, 3), 1 + 99 / 3);

        c.mask = on_mask;

        assert_int_equal(check_drafts(&c, 7, 0), 1 + (99 + 7) / 8);
        assert_int_equal(check_drafts(&c, 2, 3), 1 + 99 / 3);
    }
}


/*
 * A masked answer has only permitted ids, and differs from the answer without
 * a mask.
 */

static void
test_masks(void **state)
{
    uint32_t  i, n;
    client_t  c;
    engine_t  e;

    c = alone[1];
    c.mask = on_mask;

    start(&e, 64, 256);
    submit(&e, &c, 0);
    run(&e);
    finish(&e);

    assert_int_equal(c.n, ANSWER);

    for (i = 0, n = 0; i < ANSWER; i++) {
        assert_int_equal(c.sample[i].token % 3, i % 3);
        n += c.sample[i].token != c.sample[i].top[0];
    }

    /*
     * alternatives come from the distribution without the mask, so that most
     * samples differ from the first alternative
     */

    assert_true(n > ANSWER / 3);
}


/*
 * An answer with penalties continues after its first n tokens with the same
 * tokens.
 */

static void
test_resume(void **state)
{
    uint32_t  i, n;
    client_t  want, c;
    engine_t  e;

    want = alone[1];
    want.temperature = 1;
    want.top_p = 0.5f;
    want.presence_penalty = 1.5f;
    want.seed = 7;

    start(&e, 64, 256);
    submit(&e, &want, 0);
    run(&e);
    finish(&e);

    for (n = 1; n < ANSWER; n += 49) {
        c = want;
        c.n_resume = n;
        c.n_prompt += n;

        for (i = 0; i < n; i++) {
            c.prompt[want.n_prompt + i] = want.sample[i].token;
        }

        start(&e, 64, 256);
        submit(&e, &c, 0);
        run(&e);
        finish(&e);

        same_from(&c, &want, n);
        assert_int_equal(c.usage.prompt_tokens, want.n_prompt);
        assert_int_equal(c.usage.completion_tokens, ANSWER);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_resume)
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
