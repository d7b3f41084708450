
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/speculate.h"


/*
 * Drafts of an answer that is continued: by another replica, and after a
 * preemption.  The text is the one without an interruption, and the draft layer
 * is as good as before it.
 */


/*
 * Another replica continues the answer, from each of its tokens on: from a
 * cache without pages, and from one that has those of prompt and answer.  It
 * samples the next token without drafts.  If the uncached run began a step
 * behind that token, the rest is step by step the same.
 */

static void
test_moved(void **state)
{
    uint32_t        n, begins;
    client_t        c, want, cold;
    engine_t        e;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);
    begins = 0;

    make(&want, 100, 1);
    ask_alone(b, &want);

    for (n = 1; n < ANSWER; n++) {
        make(&c, 100, 1);
        c.n_resume = n;
        memcpy(c.prompt + 100, want.answer.token, n * sizeof(uint32_t));

        start(&e, b, BUDGET, 0);
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, 0);
        assert_int_equal(c.answer.n, ANSWER - n);
        assert_memory_equal(c.answer.token, want.answer.token + n,
                            (ANSWER - n) * sizeof(uint32_t));
        cold = c;

        ask(&e, &c);
        assert_true(c.answer.usage.cached_tokens != 0);
        same(&c, &cold);
        stop(&e);

        if (want.drafts_at[n + 1] != UINT32_MAX) {
            assert_int_equal(c.drafts, want.drafts - want.drafts_at[n + 1]);
            assert_int_equal(c.accepted,
                             want.accepted - want.accepted_at[n + 1]);
            begins++;
        }
    }

    assert_true(begins > ANSWER / (DRAFTS + 1));

    b->close(b);
}


/*
 * Answers of two tenants that preempt one another, each while it has drafts.
 */

static void
test_preempted(void **state)
{
    uint32_t            i, n;
    uint64_t            preemptions, want_drafts, want_accepted;
    uint64_t            drafts, accepted;
    client_t            want[4], c[4];
    engine_t            e;
    dsa_backend_t      *b, *small;
    dsa_sched_stats_t   stats;

    b = backend_open(1, DRAFTS, PAGES);
    small = backend_open(1, DRAFTS, FEW_PAGES - 1);
    preemptions = 0;
    want_drafts = 0;
    want_accepted = 0;
    drafts = 0;
    accepted = 0;

    for (n = 0; n < 16; n++) {
        start(&e, small, BUDGET, 0);

        for (i = 0; i < 4; i++) {
            make(&c[i], 30 + n % 16 * 2 + 3 * i, 1);
            c[i].prompt[0] = i;
            want[i] = c[i];
            ask_alone(b, &want[i]);
            want_drafts += want[i].drafts;
            want_accepted += want[i].accepted;

            (void) submit(&e, &c[i], (uint8_t) (i == 3));

            while (i == 2 && c[2].answer.n < n && !c[2].answer.ended) {
                step(&e);
            }
        }

        while (dsa_sched_busy(e.sched)) {
            step(&e);
        }

        for (i = 0; i < 4; i++) {
            same_text(&c[i], &want[i]);
        }

        dsa_sched_stats(e.sched, &stats);
        preemptions += stats.preemptions;
        drafts += stats.draft_tokens;
        accepted += stats.accepted_tokens;
        stop(&e);
    }

    print_message("%u preemptions: %u of %u drafts are accepted, alone %u of "
                  "%u\n", (unsigned) preemptions, (unsigned) accepted,
                  (unsigned) drafts, (unsigned) want_accepted,
                  (unsigned) want_drafts);

    assert_true(preemptions > 20);
    assert_true(50 * accepted * want_drafts > 49 * want_accepted * drafts);
    assert_true(49 * accepted * want_drafts < 50 * want_accepted * drafts);

    b->close(b);
    small->close(small);
}


/* Models whose draft layer attends to all positions. */

static void
test_dense(void **state)
{
    with_dense(test_moved, state);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_dense)
    };

    const struct CMUnitTest  ahead[] = {
        cmocka_unit_test(test_preempted)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", ahead, NULL, NULL);

    return failed + (ahead_follows == 0);
}
