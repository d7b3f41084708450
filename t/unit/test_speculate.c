
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/speculate.h"


/*
 * How many drafts of the draft layer are accepted, and that the text is the one
 * without drafts: of a prompt that is computed as a whole and in chunks, with
 * masks, and where an answer ends.  The bits of the draft layer depend on the
 * tokens before only, so the numbers are the same.
 */


#define SEEDS   24          /* texts, for a share of accepted drafts */


static void
test_accepted(void **state)
{
    float           temperature;
    uint32_t        i, budget;
    client_t        plain, want, c;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(1, 0, PAGES);
    b = backend_open(1, DRAFTS, PAGES);

    for (i = 0; i < 3; i++) {
        temperature = (float) i * 0.5f;
        make(&plain, 150, temperature);
        want = plain;
        c = plain;

        ask_alone(without, &plain);
        ask_alone(b, &want);
        same_text(&want, &plain);

        assert_true(want.accepted < want.drafts);

        /* in chunks, whose ends are at all offsets of a page */

        for (budget = 5; budget < 70; budget += 13) {
            start(&e, b, budget, 0);
            ask(&e, &c);
            same(&c, &want);
            stop(&e);
        }
    }

    without->close(without);
    b->close(b);
}


/*
 * The draft layer is good, and draws with the noise of the model.  With that of
 * another position, 0.59 of the drafts would be accepted at temperature 1.
 */

static void
test_share(void **state)
{
    float           temperature;
    uint32_t        i, drafts, accepted;
    client_t        c;
    uint64_t        seed;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);

    for (i = 0; i < 3; i++) {
        temperature = (float) i * 0.5f;
        drafts = 0;
        accepted = 0;

        for (seed = 0; seed < SEEDS; seed++) {
            make(&c, 150, temperature);
            c.seed = seed;
            ask_alone(b, &c);

            drafts += c.drafts;
            accepted += c.accepted;
        }

        print_message("temperature %.1f: %u of %u drafts are accepted\n",
                      temperature, accepted, drafts);

        assert_true(8 * accepted > 5 * drafts);
    }

    b->close(b);
}


/* Drafts are drawn with the masks of their positions. */

static void
test_masks(void **state)
{
    uint32_t        modulus, drafts, accepted;
    client_t        c, want;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(1, 0, PAGES);
    b = backend_open(1, DRAFTS, PAGES);
    drafts = 0;
    accepted = 0;

    for (modulus = 2; modulus < 12; modulus++) {
        make(&c, 100 + modulus, modulus % 2 == 0 ? 0 : 1);
        c.modulus = modulus;
        want = c;
        ask_alone(without, &want);

        start(&e, b, BUDGET, 0);
        ask(&e, &c);
        same_text(&c, &want);
        want = c;
        ask(&e, &c);
        same(&c, &want);
        stop(&e);

        drafts += c.drafts;
        accepted += c.accepted;
    }

    /* without masks, one in modulus would be */

    print_message("with masks: %u of %u drafts are accepted\n", accepted,
                  drafts);
    assert_true(3 * accepted > drafts);

    without->close(without);
    b->close(b);
}


/*
 * The handler ends the answer within a run of accepted drafts, as a stop string
 * does; max_tokens and the end of the context; a client that leaves.  The next
 * request finds what was computed.
 */

static void
test_ends(void **state)
{
    uint32_t        n, i;
    client_t        c, want;
    engine_t        e;
    dsa_seq_t      *seq;
    dsa_backend_t  *b;

    b = backend_open(1, 7, PAGES);
    make(&want, 120, 0);
    ask_alone(b, &want);

    for (n = 1; n < ANSWER; n++) {
        start(&e, b, BUDGET, 0);
        make(&c, 120, 0);

        c.answer.stop_at = n;
        ask(&e, &c);
        assert_int_equal(c.answer.usage.finish, DSA_FINISH_STOP);
        assert_int_equal(c.answer.n, n);
        assert_memory_equal(c.answer.token, want.answer.token,
                            n * sizeof(uint32_t));

        c.answer.stop_at = 0;
        c.max_tokens = n;
        ask(&e, &c);
        assert_int_equal(c.answer.usage.finish, DSA_FINISH_LENGTH);
        assert_int_equal(c.answer.n, n);
        assert_memory_equal(c.answer.token, want.answer.token,
                            n * sizeof(uint32_t));

        c.max_tokens = ANSWER;
        seq = submit(&e, &c, 1);

        for (i = 0; c.answer.n < n && !c.answer.ended; i++) {
            step(&e);
        }

        if (!c.answer.ended) {
            dsa_sched_cancel(e.sched, seq, DSA_FINISH_CANCELLED);
        }

        assert_memory_equal(c.answer.token, want.answer.token,
                            c.answer.n * sizeof(uint32_t));

        ask(&e, &c);
        same(&c, &want);
        stop(&e);
    }

    /* the answer ends with the last token of the context */

    for (n = 120; n < 120 + 64; n++) {
        make(&c, PROMPT + 2 * ANSWER - n, 0);
        c.n_prompt = c.n_prompt > PROMPT ? PROMPT : c.n_prompt;
        c.max_tokens = ANSWER;
        ask_alone(b, &c);
        assert_int_equal(c.answer.n, ANSWER);
    }

    b->close(b);
}


/* Models whose draft layer attends to all positions. */

static void
test_dense(void **state)
{
    with_dense(test_accepted, state);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_dense)
    };

    const struct CMUnitTest  ahead[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_ends)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", ahead, NULL, NULL);

    return failed + (ahead_follows == 0);
}
