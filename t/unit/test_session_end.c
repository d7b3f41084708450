
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Requests that end early: overload, cancellation, and the end of a session.
 */


#include "t/unit/session.h"


/* A turn of the replica, and what the first worker reads after it. */

static void
turn(host_t *h, answer_t *a, uint32_t n)
{
    host_round(h);
    take_events(h, 0, a, n);
}


static void
test_overload_and_drain(void **state)
{
    host_t    h;
    answer_t  a[6];
    uint32_t  i;

    host_start(&h, "max_running 2; token_budget 64; max_waiting 2;");
    memset(a, 0, sizeof(a));

    for (i = 0; i < 5; i++) {
        submit_text(&h, 0, dsa_link_id(1, i), 10, "abcde");
    }

    turn(&h, a, 6);
    assert_int_equal(a[3].error, 0);
    assert_int_equal(a[4].error, DSA_LINK_E_TENANT);

    /* what was accepted goes on while the replica drains */

    h.io.sessions.draining = 1;
    submit_text(&h, 0, dsa_link_id(1, 5), 10, "abcde");

    for (i = 0; i < 30; i++) {
        turn(&h, a, 6);
    }

    assert_int_equal(atomic_load(&h.client[0].link.control->draining), 1);
    assert_int_equal(a[5].error, DSA_LINK_E_DRAINING);

    for (i = 0; i < 4; i++) {
        assert_int_equal(a[i].finish, DSA_LINK_FINISH_LENGTH);
        assert_string_equal(a[i].text, "abcdeabcde");
        free(a[i].text);
    }

    assert_int_equal(host_requests(&h, 0), 0);

    host_stop(&h);
}


/*
 * The replica ends an answer while it holds back a part of a token, which may
 * begin a stop string.  The token is not sent, and so none of its text is: a
 * replica that continues the answer after the tokens that were sent would send
 * the text again.
 */

static void
test_abort_in_token(void **state)
{
    host_t          h;
    answer_t        a;
    link_submit_t   s;

    host_start(&h, "");
    memset(&a, 0, sizeof(a));

    link_submit_init(&s, 100);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    link_submit_stop(&s, "s>x");
    submit(&h, 0, dsa_link_id(1, 0), &s);

    while (atomic_load(&h.client[0].link.control->completion_tokens) < 3) {
        turn(&h, &a, 1);
    }

    dsa_io_abort(&h.io);
    turn(&h, &a, 1);

    assert_int_equal(a.error, DSA_LINK_E_DRAINING);
    assert_int_equal(a.tokens, 2);
    assert_string_equal(a.text, "<eos><eos>");
    free(a.text);

    host_stop(&h);
}


/* In prefill, in decode, waiting, over its deadline: gone within one turn. */

static void
test_cancel(void **state)
{
    char                text[2001];
    host_t              h;
    answer_t            a[4];
    uint32_t            i;
    link_submit_t       s;

    host_start(&h, "max_running 3; token_budget 100;");
    memset(a, 0, sizeof(a));
    memset(text, 'x', sizeof(text));
    text[2000] = '\0';

    for (i = 0; i < 4; i++) {
        link_submit_init(&s, 1000);
        link_submit_text(&s, i == 0 ? "short" : text);

        if (i == 2) {
            s.head.deadline_ms = 1;
        }

        submit(&h, 0, dsa_link_id(7, i), &s);
    }

    host_round(&h);
    turn(&h, a, 4);

    assert_int_equal(a[2].finish, DSA_LINK_FINISH_DEADLINE);
    assert_true(a[0].tokens > 0);
    assert_int_equal(a[1].tokens, 0);

    /* a cancel of an earlier request in the slot means nothing */

    dsa_link_cancel(&h.client[0].link, dsa_link_id(6, 0));
    turn(&h, a, 4);
    assert_int_equal(a[0].finish, 0);

    for (i = 0; i < 4; i++) {
        dsa_link_cancel(&h.client[0].link, dsa_link_id(7, i));
    }

    turn(&h, a, 4);

    assert_int_equal(a[0].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[1].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[3].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[0].done.prompt_tokens, 5);
    assert_true(a[0].done.completion_tokens >= a[0].tokens);

    assert_int_equal(h.io.sessions.stats.pages_used, 0);
    assert_int_equal(host_sequences(&h), 0);

    for (i = 0; i < 4; i++) {
        free(a[i].text);
    }

    host_stop(&h);
}


/* A worker that is gone takes its requests along, and only those. */

static void
test_session_end(void **state)
{
    host_t    h;
    answer_t  a[1];
    uint32_t  i;

    host_start(&h, "");
    memset(a, 0, sizeof(a));

    for (i = 0; i < 20; i++) {
        submit_text(&h, 1, dsa_link_id(1, i), 1000, "abc");
    }

    submit_text(&h, 0, dsa_link_id(1, 0), 50, "xyz");

    host_round(&h);
    host_round(&h);
    host_close(&h, 1);

    host_round(&h);
    assert_int_equal(host_sequences(&h), 1);

    for (i = 0; i < 60; i++) {
        turn(&h, a, 1);
    }

    assert_int_equal(a[0].finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a[0].len, 50);
    free(a[0].text);

    host_stop(&h);
}


/*
 * A session ends while its requests are in every state that they can have.
 * What other threads still refer to is freed when they are done with it.
 */

static void
test_session_end_states(void **state)
{
    host_t          h;
    answer_t        a[8];
    uint32_t        i, kind;
    link_submit_t   s;

    for (kind = 0; kind < 8; kind++) {
        host_start(&h, "max_running 2; token_budget 64;");
        memset(a, 0, sizeof(a));

        for (i = 0; i < 6; i++) {
            link_submit_init(&s, i == 0 ? 1 : 5000);
            s.head.sampling.logprobs = i == 3;
            link_submit_text(&s, "a prompt");

            if (i == 1) {
                link_submit_stop(&s, "pt");
            }

            if (i == 5) {
                assert_int_equal(link_client_count(&h.client[1],
                                                   dsa_link_id(1, i), &s), 0);
                continue;
            }

            submit(&h, 1, dsa_link_id(1, i), &s);
        }

        host_io(&h);            /* all are in the pool */

        if (kind >= 1) {
            dsa_pool_run(h.pool);       /* prepared, and not collected */
        }

        if (kind >= 2) {
            host_io(&h);        /* commands for the step thread */
        }

        if (kind >= 3) {

            /* the last event of the first one is not collected, others run
               or wait */

            assert_int_equal(dsa_step_round(h.step), DSA_OK);
        }

        if (kind >= 4) {
            host_io(&h);
        }

        if (kind == 5) {
            for (i = 0; i < 6; i++) {
                dsa_link_cancel(&h.client[1].link, dsa_link_id(1, i));
            }

            host_io(&h);        /* cancel commands, not executed */
        }

        if (kind == 6) {
            dsa_io_abort(&h.io);        /* errors are written, not executed */
            host_io(&h);
        }

        if (kind == 7) {
            for (i = 0; i < 3000; i++) {
                host_round(&h);  /* the event ring is full */
            }
        }

        host_close(&h, 1);
        assert_int_equal(h.io.peers.n, WORKERS - 1);

        /* what is left belongs to no session, and ends without it */

        host_round(&h);
        assert_int_equal(host_sequences(&h), 0);
        assert_int_equal(h.io.sessions.stats.pages_used, 0);
        assert_ptr_equal(h.io.sessions.detached.next, &h.io.sessions.detached);

        link_submit_init(&s, 5);
        link_submit_text(&s, "hello");
        a[0] = ask(&h, &s);
        assert_string_equal(a[0].text, "hello");
        free(a[0].text);

        host_stop(&h);
    }
}


/* A cancel that follows the last event of a request is not executed. */

static void
test_cancel_after_end(void **state)
{
    int     i;
    host_t  h;

    host_start(&h, "");

    submit_text(&h, 0, dsa_link_id(1, 0), 1, "hello");
    host_io(&h);
    dsa_pool_run(h.pool);
    host_io(&h);
    assert_int_equal(dsa_step_round(h.step), DSA_OK);

    /* its session ends before the event is collected */

    dsa_peers_close(&h.io.peers);

    for (i = 0; i < WORKERS; i++) {
        h.session[i] = NULL;
    }

    assert_int_equal(dsa_step_round(h.step), DSA_OK);
    host_io(&h);

    /* accepted, one token, done */

    assert_int_equal(h.io.sessions.events.n, 3);

    host_stop(&h);
}


/* A slot is free as soon as its cancelled request in the pool is answered. */

static void
test_cancel_in_pool(void **state)
{
    host_t          h;
    answer_t        a[3];
    link_submit_t   s;

    host_start(&h, "");
    memset(a, 0, sizeof(a));

    submit_text(&h, 0, dsa_link_id(1, 0), 5, "hello");
    link_submit_init(&s, 5);
    s.head.deadline_ms = 1;
    link_submit_text(&s, "hello");
    submit(&h, 0, dsa_link_id(1, 1), &s);
    link_submit_init(&s, 0);
    link_submit_text(&s, "hello");
    assert_int_equal(link_client_count(&h.client[0], dsa_link_id(1, 2), &s), 0);
    dsa_link_cancel(&h.client[0].link, dsa_link_id(1, 0));
    dsa_link_cancel(&h.client[0].link, dsa_link_id(1, 2));
    host_io(&h);
    take_events(&h, 0, a, 3);

    assert_int_equal(a[0].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[0].done.prompt_tokens, 0);
    assert_int_equal(a[1].finish, DSA_LINK_FINISH_DEADLINE);
    assert_int_equal(a[2].finish, DSA_LINK_FINISH_CANCELLED);
    assert_int_equal(a[2].counted, 0);

    /* the pool still has the first request of the slot */

    memset(a, 0, sizeof(a));
    submit_text(&h, 0, dsa_link_id(2, 0), 3, "world");
    host_round(&h);
    host_round(&h);
    turn(&h, a, 2);
    assert_string_equal(a[0].text, "wor");
    assert_int_equal(a[0].finish, DSA_LINK_FINISH_LENGTH);
    free(a[0].text);

    host_stop(&h);
}


/*
 * A stop string is found by the I/O thread when the next steps have run
 * already: their tokens are neither sent nor billed.
 */

static void
test_stop_in_flight(void **state)
{
    host_t          h;
    answer_t        a[1];
    uint32_t        i;
    link_submit_t   s;

    host_start(&h, "");
    memset(a, 0, sizeof(a));

    link_submit_init(&s, 6);
    link_submit_text(&s, "one two three");
    link_submit_stop(&s, "e ");
    submit(&h, 0, dsa_link_id(1, 0), &s);
    host_io(&h);
    dsa_pool_run(h.pool);
    host_io(&h);

    /* six steps, to the end of the answer, and no collect */

    for (i = 0; i < 6; i++) {
        assert_int_equal(dsa_step_round(h.step), DSA_OK);
    }

    host_io(&h);
    turn(&h, a, 1);

    assert_string_equal(a[0].text, "on");
    assert_int_equal(a[0].tokens, 4);
    assert_int_equal(a[0].finish, DSA_LINK_FINISH_STOP);
    assert_int_equal(a[0].done.completion_tokens, 4);
    assert_int_equal(
        atomic_load(&h.client[0].link.control->completion_tokens), 4);
    free(a[0].text);

    host_stop(&h);
}


/* The same, and the worker gives up instead of reading. */

static void
test_full_ring_cancel(void **state)
{
    host_t    h;
    answer_t  a[100];
    uint32_t  i;

    host_start(&h, "max_running 256;");
    memset(a, 0, sizeof(a));

    for (i = 0; i < 100; i++) {
        submit_text(&h, 0, dsa_link_id(1, i), 5000, "abc");
    }

    for (i = 0; i < 200; i++) {
        host_round(&h);
    }

    for (i = 0; i < 100; i++) {
        dsa_link_cancel(&h.client[0].link, dsa_link_id(1, i));
    }

    host_round(&h);
    assert_int_equal(host_sequences(&h), 0);

    take_events(&h, 0, a, 100);
    turn(&h, a, 100);

    for (i = 0; i < 100; i++) {
        assert_int_equal(a[i].finish, DSA_LINK_FINISH_CANCELLED);
        free(a[i].text);
    }

    host_stop(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_overload_and_drain),
        cmocka_unit_test(test_abort_in_token),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_session_end),
        cmocka_unit_test(test_session_end_states),
        cmocka_unit_test(test_cancel_after_end),
        cmocka_unit_test(test_cancel_in_pool),
        cmocka_unit_test(test_stop_in_flight),
        cmocka_unit_test(test_full_ring_cancel)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
