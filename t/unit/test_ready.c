
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Steps have no entry for a sequence whose mask is not ready: other sequences
 * go on, and its answer is the same.
 */


#define SERVING_BACKEND     DSA_BACKEND_CPU
#define SERVING_PRECISION   DSA_EXACT
#define SERVING_BOUND       1e-5

#include "t/unit/serving.h"


static uint32_t  asked;
static uint32_t  ready_each;        /* every so manieth call returns 1; 0:
                                       none */


static uint32_t
on_ready(void *owner, const uint32_t *drafts, uint32_t n_drafts)
{
    asked++;

    return ready_each != 0 && asked % ready_each == 0;
}


/* Permits all ids. */

static int
on_mask(void *owner, const uint32_t *drafts, uint32_t n_drafts,
    uint32_t first, uint32_t *mask, uint32_t words)
{
    return 0;
}


static void
poll(engine_t *e)
{
    dsa_err_t  err;

    if (dsa_sched_poll(e->sched, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


static void
test_others_go_on(void **state)
{
    engine_t  e;
    client_t  c[2];

    memcpy(c, alone, sizeof(c));
    c[1].mask = on_mask;
    c[1].ready = on_ready;
    ready_each = 0;

    start(&e, 40, 512);
    submit(&e, &c[0], 1);
    submit(&e, &c[1], 2);
    run(&e);

    /* the first token comes from the prompt's last step */

    same(&c[0], &alone[0]);
    assert_int_equal(c[1].n, 1);
    assert_false(c[1].ended);

    /* nothing changes before it is ready */

    poll(&e);
    assert_true(dsa_sched_busy(e.sched));
    run(&e);
    assert_int_equal(c[1].n, 1);

    ready_each = 1;
    poll(&e);
    run(&e);
    same(&c[1], &alone[1]);

    finish(&e);
}


/* The sequence misses two of three steps. */

static void
test_now_and_then(void **state)
{
    uint32_t  polls;
    engine_t  e;
    client_t  c[2];

    memcpy(c, alone, sizeof(c));
    c[1].mask = on_mask;
    c[1].ready = on_ready;
    ready_each = 3;
    asked = 0;

    start(&e, 40, 512);
    submit(&e, &c[0], 1);
    submit(&e, &c[1], 2);

    for (polls = 0; !c[1].ended; polls++) {
        assert_true(polls < 3 * ANSWER);
        poll(&e);
        run(&e);
    }

    same(&c[0], &alone[0]);
    same(&c[1], &alone[1]);
    assert_int_equal(asked, 3 * (ANSWER - 1));

    finish(&e);
}


/* It can be cancelled, and its pages are free then. */

static void
test_cancelled(void **state)
{
    engine_t             e;
    client_t             c;
    dsa_seq_t           *seq;
    dsa_sched_stats_t    stats;
    dsa_sched_request_t  r;

    ready_each = 0;
    c = alone[1];
    c.n = 0;
    c.ended = 0;

    start(&e, 40, 512);

    memset(&r, 0, sizeof(r));
    r.tokens = malloc(sizeof(c.prompt));
    assert_non_null(r.tokens);
    memcpy(r.tokens, c.prompt, sizeof(c.prompt));
    r.n_tokens = c.n_prompt;
    r.max_tokens = ANSWER;
    r.weight = 1;
    r.mask = on_mask;
    r.ready = on_ready;
    r.sampling.top_p = 1;
    r.owner = &c;

    seq = dsa_sched_add(e.sched, &r, NULL);
    assert_non_null(seq);

    run(&e);
    assert_int_equal(c.n, 1);

    dsa_sched_cancel(e.sched, seq, DSA_FINISH_CANCELLED);
    assert_true(c.ended);
    assert_int_equal(c.usage.finish, DSA_FINISH_CANCELLED);

    assert_false(dsa_sched_busy(e.sched));
    dsa_sched_stats(e.sched, &stats);
    assert_int_equal(stats.running, 0);

    finish(&e);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_others_go_on),
        cmocka_unit_test(test_now_and_then),
        cmocka_unit_test(test_cancelled)
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
