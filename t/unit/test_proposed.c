
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Drafts that the backend returns with the samples of a step, on a scripted
 * backend (scheduler.h) whose drafts are right or wrong as the test decides.
 * The expected answer is a function of the prompt alone.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/numbers.h"
#include "t/unit/scheduler.h"


#define PROMPT      50
#define ANSWER      101
#define DRAFTS      5           /* most */
#define CLIENTS     30
#define ROUNDS      1500


typedef struct {
    uint64_t    steps;
    uint64_t    ahead;          /* entries of steps that were made before the
                                   step before had ended */
    uint64_t    tokens;         /* computed */
    uint64_t    drafts;
    uint64_t    accepted;
    uint64_t    preemptions;
} cost_t;


static cost_t
cost_of(const dsa_sched_t *s, const fake_t *f)
{
    cost_t             cost;
    dsa_sched_stats_t  stats;

    dsa_sched_stats(s, &stats);
    assert_true(stats.draft_tokens <= f->drafts);

    cost.steps = stats.steps;
    cost.ahead = f->inputs_from;
    cost.tokens = f->all_tokens;
    cost.drafts = stats.draft_tokens;
    cost.accepted = stats.accepted_tokens;
    cost.preemptions = stats.preemptions;

    return cost;
}


/* One answer; c has what is special about it. */

static cost_t
answer(client_t *c, uint32_t right, uint32_t unmasked)
{
    cost_t        cost;
    fake_t       *f;
    dsa_sched_t  *s;

    s = start(&f, 100, 4, 1000);
    f->next_right = right;
    f->unmasked = unmasked;

    submit(s, c, 0, 1, PROMPT, ANSWER, 1);
    run(s);

    cost = cost_of(s, f);

    if (c->modulus == 0 || c->mask_at == 0) {
        assert_int_equal(cost.ahead != 0, depth == 2 && c->modulus == 0);
    }

    check(c, ANSWER - c->n_resume, DSA_FINISH_LENGTH);
    check_free(s);
    finish(s, f);

    return cost;
}


/*
 * With perfect drafts, each computed token is one of the answer, and a step
 * has all drafts that max_tokens leaves room for.  A step that is made ahead
 * may begin behind the end of the answer.
 */

static void
test_perfect(void **state)
{
    cost_t     cost;
    client_t  *c;
    uint32_t   steps;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    for (max_drafts = 1; max_drafts <= DRAFTS; max_drafts++) {
        cost = answer(c, max_drafts, 0);

        steps = 1 + (ANSWER - 1 + max_drafts) / (max_drafts + 1);

        if (depth == 1) {
            assert_int_equal(cost.steps, steps);
            assert_int_equal(cost.tokens, PROMPT + ANSWER - 1);

        } else {
            assert_in_range(cost.steps, steps, steps + 1);
            assert_in_range(cost.tokens, PROMPT + ANSWER - 1,
                            PROMPT + ANSWER - 1 + 2 * (max_drafts + 1));
        }

        assert_int_equal(cost.accepted, cost.drafts);
    }

    free(c);
}


/* With useless drafts, a step has them beside its one token. */

static void
test_useless(void **state)
{
    cost_t     cost;
    client_t  *c;
    uint32_t   i, drafts;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    for (max_drafts = 1; max_drafts <= DRAFTS; max_drafts++) {
        cost = answer(c, 0, 0);

        /* before the last tokens there is less room for drafts */

        for (i = 1, drafts = 0; i < ANSWER; i++) {
            drafts += ANSWER - i - 1 < max_drafts ? ANSWER - i - 1
                                                  : max_drafts;
        }

        assert_int_equal(cost.steps, ANSWER);
        assert_int_equal(cost.drafts, drafts);
        assert_int_equal(cost.accepted, 0);
        assert_int_equal(cost.tokens, PROMPT + ANSWER - 1 + drafts);
    }

    free(c);
}


/*
 * A draft that is drawn with the mask of its position is right where the answer
 * is constrained, too.  Without the masks, few are.
 */

static void
test_masks(void **state)
{
    cost_t     cost;
    client_t  *c;
    uint32_t   resume;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    max_drafts = 3;

    for (resume = 0; resume < 20; resume += 19) {
        c->modulus = 7;
        c->n_resume = resume;
        cost = answer(c, 3, 0);
        assert_int_equal(cost.accepted, cost.drafts);

        cost = answer(c, 3, 1);
        assert_true(3 * cost.accepted < cost.drafts);

        /* of one token: it is a draft once, or the sample before drafts */

        for (c->mask_at = 20; c->mask_at < 30; c->mask_at++) {
            cost = answer(c, 3, 0);
            assert_int_equal(cost.accepted, cost.drafts);
        }

        c->mask_at = 0;
    }

    free(c);
}


/*
 * The steps of an answer with perfect drafts, where the mask of each so manieth
 * token is not ready: that token has a step of its own, and the drafts of the
 * steps before it end there.
 */

static uint32_t
unready_steps(uint32_t unready)
{
    uint32_t  n, drafts, steps;

    steps = 1;

    for (n = 1; n < ANSWER; n += 1 + drafts) {
        for (drafts = 0; drafts < max_drafts; drafts++) {
            if (n % unready == 0 || (n + drafts + 1) % unready == 0
                || n + drafts + 1 == ANSWER)
            {
                break;
            }
        }

        steps++;
    }

    return steps;
}


/* No step waits for a mask that is not ready; on_mask() checks that. */

static void
test_unready(void **state)
{
    cost_t     cost;
    client_t  *c;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    max_drafts = 3;
    c->modulus = 7;

    for (c->unready = 1; c->unready < 8; c->unready++) {
        cost = answer(c, 3, 0);

        assert_int_equal(cost.accepted, cost.drafts);
        assert_int_equal(cost.tokens, PROMPT + ANSWER - 1);

        assert_int_equal(cost.steps, unready_steps(c->unready));
    }

    free(c);
}


/* An answer ends while the step before its drafts is in flight. */

static void
test_gone(void **state)
{
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    c = calloc(2, sizeof(client_t));
    assert_non_null(c);

    max_drafts = 3;
    s = start(&f, 100, 4, 1000);
    f->next_right = 2;
    c[0].modulus = 3;
    c[1].modulus = 3;

    submit(s, &c[0], 0, 1, PROMPT, ANSWER, 1);
    submit(s, &c[1], 1, 2, PROMPT, ANSWER, 1);

    for (i = 0; i < 6; i++) {
        step(s);
    }

    dsa_sched_cancel(s, c[0].seq, DSA_FINISH_CANCELLED);
    audit(s);
    run(s);

    /* with a depth of 2 the step was in flight */

    assert_int_equal(f->gone, depth == 2);
    check(&c[0], c[0].n, DSA_FINISH_CANCELLED);
    check(&c[1], ANSWER, DSA_FINISH_LENGTH);
    check_free(s);
    finish(s, f);
    free(c);
}


/* The end of an answer within a run of accepted drafts. */

static void
test_end(void **state)
{
    fake_t       *f;
    uint32_t      at;
    client_t     *c;
    dsa_sched_t  *s;

    c = calloc(1, sizeof(client_t));
    assert_non_null(c);

    max_drafts = DRAFTS;

    for (at = 1; at < 25; at++) {
        s = start(&f, 100, 4, 1000);
        f->next_right = DRAFTS;

        /* the handler ends it, as a stop string does */

        c->stop_at = at;
        submit(s, c, 0, 1, PROMPT, ANSWER, 1);
        run(s);
        assert_true(c->usage.completion_tokens >= at);
        assert_true(c->usage.completion_tokens < at + DRAFTS + 1);
        check(c, at, DSA_FINISH_STOP);

        /* max_tokens */

        c->stop_at = 0;
        submit(s, c, 0, 1, PROMPT, at, 1);
        run(s);
        assert_int_equal(c->usage.completion_tokens, at);
        check(c, at, DSA_FINISH_LENGTH);

        /* the end token */

        f->eos_at = at;
        submit(s, c, 0, 1, PROMPT, ANSWER, 1);
        run(s);
        assert_int_equal(c->usage.completion_tokens, at);
        check(c, at - 1, DSA_FINISH_STOP);

        check_free(s);
        finish(s, f);
    }

    free(c);
}


/*
 * Random requests: cancels, preemption, shared prefixes, and masks.  Everything
 * is audited after each step.
 */

static cost_t
walk(uint32_t right, uint64_t salt)
{
    cost_t        cost;
    fake_t       *f;
    client_t     *c;
    uint32_t      i, r, want[CLIENTS];
    uint64_t      round;
    dsa_sched_t  *s;

    c = calloc(CLIENTS, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 40, 8, 100);
    f->next_right = right;

    for (round = 0; round < ROUNDS || dsa_sched_busy(s); round++) {
        for (i = 0; i < CLIENTS; i++) {
            r = (uint32_t) (dsa_t_counted(salt, round, i) * 1e9);

            if (c[i].seq != NULL) {
                if (r % 150 == 0) {
                    dsa_sched_cancel(s, c[i].seq, DSA_FINISH_CANCELLED);
                    audit(s);
                }

                continue;
            }

            if (c[i].prompt != NULL) {
                check(&c[i], c[i].finish == DSA_FINISH_LENGTH
                             ? want[i] : c[i].n, c[i].finish);
            }

            if (r % 4 != 0 || round >= ROUNDS) {
                continue;
            }

            c[i].seed = r % 3;
            c[i].modulus = r % 40 == 0 ? 2 + r % 3 : 0;
            c[i].unready = r % 80 == 0 ? 1 + r % 7 : 0;
            want[i] = 1 + r / 32 % 150;
            submit(s, &c[i], r / 16 % TENANTS, r / 4 % 3, 1 + r / 1024 % 500,
                   want[i], 1 + r / 64 % 3);
        }

        step(s);
    }

    for (i = 0; i < CLIENTS; i++) {
        if (c[i].prompt != NULL) {
            check(&c[i], c[i].n, c[i].finish);
        }
    }

    cost = cost_of(s, f);
    check_free(s);
    finish(s, f);
    free(c);

    return cost;
}


static void
test_walks(void **state)
{
    cost_t    cost;
    uint64_t  salt;

    salt = 0;

    for (max_drafts = 1; max_drafts <= DRAFTS; max_drafts++) {
        cost = walk(0, salt++);
        assert_int_equal(cost.accepted, 0);
        assert_true(cost.drafts > 1000 && cost.preemptions > 5);

        cost = walk(max_drafts, salt++);
        assert_int_equal(cost.accepted, cost.drafts);
        assert_true(cost.drafts > 1000 && cost.preemptions > 5);

        cost = walk(NEXT_RANDOM, salt++);
        assert_true(cost.accepted > 500 && cost.preemptions > 5);
        assert_true(cost.drafts > cost.accepted + 500);
    }
}


/*
 * A fixed load, in which sequences preempt one another.  Drafts preempt nobody,
 * so useless ones cost their rows and no steps; perfect ones save steps.
 */

static cost_t
load(uint32_t right)
{
    cost_t        cost;
    fake_t       *f;
    client_t     *c;
    uint32_t      i;
    dsa_sched_t  *s;

    c = calloc(CLIENTS, sizeof(client_t));
    assert_non_null(c);
    s = start(&f, 24, 8, 1000);
    f->next_right = right;

    for (i = 0; i < CLIENTS; i++) {
        submit(s, &c[i], i % TENANTS, i, 100 + i, ANSWER, 1);
    }

    run(s);

    for (i = 0; i < CLIENTS; i++) {
        check(&c[i], ANSWER, DSA_FINISH_LENGTH);
    }

    cost = cost_of(s, f);
    check_free(s);
    finish(s, f);
    free(c);

    return cost;
}


static void
test_cost(void **state)
{
    cost_t    plain, useless, perfect;

    max_drafts = 0;
    plain = load(0);
    assert_int_equal(plain.drafts, 0);
    assert_true(plain.preemptions > 3);

    for (max_drafts = 1; max_drafts <= DRAFTS; max_drafts++) {
        useless = load(0);
        perfect = load(max_drafts);

        /* a few sequences are preempted at another time, and computed again */

        assert_int_equal(useless.accepted, 0);
        assert_true(100 * useless.steps < 105 * plain.steps);
        assert_true(100 * (useless.tokens - useless.drafts)
                    < 110 * plain.tokens);

        assert_int_equal(perfect.accepted, perfect.drafts);
        assert_true(100 * perfect.steps * (max_drafts + 1)
                    < 115 * plain.steps);
        assert_true(100 * perfect.tokens < 105 * plain.tokens);
    }
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_perfect),
        cmocka_unit_test(test_useless),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_unready),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_cost)
    };

    max_outputs = DSA_MAX_OUTPUTS;

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", tests, NULL, NULL);

    return failed;
}
