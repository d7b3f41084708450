
/*
 * Copyright (C) The nginx-dsa authors
 */


#define SERVING_BACKEND     DSA_BACKEND_CPU
#define SERVING_PRECISION   DSA_EXACT
#define SERVING_BOUND       1e-5

#include "t/unit/serving.h"
#include "t/unit/serving_reload.h"


#define ROUTES  8       /* at least: layers with experts times k, of a-fp8 */


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
    uint32_t first, uint32_t *mask, uint32_t words)
{
    uint32_t         i, id;
    const client_t  *c = owner;

    for (i = first; i <= n_drafts; i++) {
        for (id = 0; id < words * 32; id++) {
            if (id % 3 != (c->n + i) % 3) {
                mask[(i - first) * words + id / 32] &= ~(1U << (id % 32));
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


/* What was reported of an answer, by position. */

typedef struct {
    client_t        client;
    uint32_t        routes;
    uint16_t        experts[512][ROUTES];
    uint32_t        reports[512];       /* of a position */
    dsa_draw_t      draw[512];
    uint32_t        token[512];
    uint32_t        draws;
} report_t;


static void
on_rollout(void *owner, const dsa_sched_rollout_t *r)
{
    uint32_t   i, at;
    report_t  *to = owner;

    for (i = 0; r->experts != NULL && i < r->n_input; i++) {
        at = r->start + i;

        if (to->reports[at]++ == 0) {
            memcpy(to->experts[at], r->experts + i * to->routes,
                   to->routes * sizeof(uint16_t));
        }
    }

    for (i = 0; i < r->n_samples; i++) {
        at = r->position + i;

        assert_int_equal(at, to->client.n_prompt + to->draws++);
        assert_int_equal(r->words, dsa_mask_words(1024));
        assert_true(r->kept == NULL || r->draw[i].n_kept == DSA_KEPT_ALL
                    || dsa_mask_has(r->kept + i * r->words,
                                    r->samples[i].token));

        to->draw[at] = r->draw[i];
        to->token[at] = r->samples[i].token;
    }
}


static void
report_init(report_t *r, const client_t *c, uint32_t reports)
{
    dsa_err_t           err;
    dsa_model_config_t  config;

    memset(r, 0, sizeof(report_t));

    assert_int_equal(dsa_model_config_read(&config, model, &err), DSA_OK);

    r->client = *c;
    r->client.temperature = 0.8f;
    r->client.top_p = 0.7f;
    r->client.seed = 5;
    r->client.rollout = on_rollout;
    r->client.reports = reports;
    r->routes = dsa_model_config_moe_layers(&config)
                * config.num_experts_per_tok;

    assert_true(r->routes != 0 && r->routes <= ROUTES);
}


/* The same tokens, draws and experts; positions from `from` are reported. */

static void
same_reports(const report_t *a, const report_t *b, uint32_t from)
{
    uint32_t  i, end;

    assert_int_equal(a->draws, ANSWER);
    assert_int_equal(b->draws, ANSWER);

    end = a->client.n_prompt + ANSWER;

    for (i = a->client.n_prompt; i < end; i++) {
        assert_int_equal(a->token[i], b->token[i]);
        assert_int_equal(a->token[i],
                         a->client.sample[i - a->client.n_prompt].token);
        assert_int_equal(a->draw[i].n_kept, b->draw[i].n_kept);
        assert_true(fabsf(a->draw[i].logprob - b->draw[i].logprob) < 1e-4f);
    }

    for (i = from; i < end - 1; i++) {
        assert_true(a->reports[i] != 0);
        assert_memory_equal(a->experts[i], b->experts[i],
                            a->routes * sizeof(uint16_t));
    }
}


/* The answer from which drafts are taken: three right ones and a wrong one. */

static const report_t  *report_of;


static uint32_t
on_some_drafts(void *owner, const uint32_t *tokens, uint32_t n_tokens,
    uint32_t *drafts, uint32_t most)
{
    uint32_t  i;

    for (i = 0; i < 4 && i < most; i++) {
        drafts[i] = n_tokens + i < 512 ? report_of->token[n_tokens + i] : 0;
        drafts[i] ^= i == 3;
    }

    return i;
}


static void
test_reports(void **state)
{
    uint32_t           i;
    engine_t           e;
    dsa_sched_stats_t  stats;
    static report_t    want[CLIENTS], got[CLIENTS];

    const uint32_t  all = DSA_REPORT_KEPT|DSA_REPORT_EXPERTS
                          |DSA_REPORT_PROMPT;

    for (i = 0; i < CLIENTS; i++) {
        report_init(&want[i], &alone[i], all);
        start(&e, 64, 256);
        submit(&e, &want[i].client, 0);
        run(&e);
        finish(&e);
        same_reports(&want[i], &want[i], 0);
    }

    /* drafts: rejected ones, and the experts of those, are not reported */

    report_init(&got[0], &alone[0], all);
    got[0].client.draft = on_some_drafts;
    report_of = &want[0];
    start(&e, 64, 256);
    submit(&e, &got[0].client, 0);
    run(&e);
    dsa_sched_stats(e.sched, &stats);
    assert_true(stats.accepted_tokens != 0
                && stats.accepted_tokens < stats.draft_tokens);
    finish(&e);

    same_reports(&got[0], &want[0], 0);
    assert_int_equal(got[0].reports[got[0].client.n_prompt + ANSWER - 1], 0);

    for (i = 0; i < got[0].client.n_prompt + ANSWER - 1; i++) {
        assert_int_equal(got[0].reports[i], 1);
    }

    /* chunks and preemptions; some beside others that report nothing */

    start(&e, 8, 100);

    for (i = 0; i < CLIENTS; i++) {
        report_init(&got[i], &alone[i], all);
        got[i].client.rollout = i == 1 ? NULL : on_rollout;
        submit(&e, &got[i].client, (uint8_t) i);
    }

    run(&e);
    dsa_sched_stats(e.sched, &stats);
    assert_true(stats.preemptions != 0);
    finish(&e);

    for (i = 0; i < CLIENTS; i++) {
        if (i != 1) {
            same_reports(&got[i], &want[i], 0);
        }
    }

    assert_int_equal(got[1].draws, 0);

    /* without the prompt */

    report_init(&got[0], &alone[0], DSA_REPORT_EXPERTS);
    start(&e, 64, 16);
    submit(&e, &got[0].client, 0);
    run(&e);
    finish(&e);

    assert_int_equal(got[0].reports[0], 0);
    assert_int_equal(got[0].reports[got[0].client.n_prompt - 1], 1);
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
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_resume)
    };

    const struct CMUnitTest  glm[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_prefix)
    };

    return cmocka_run_group_tests_name("DeepSeek-V3.2", tests, setup, NULL)
           + cmocka_run_group_tests_name("GLM-5.2", glm, setup_glm, NULL);
}
