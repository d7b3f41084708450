
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/attention/cache.h"
#include "t/unit/speculate.h"


/*
 * Drafts behind pages that were computed before: pages that are found in the
 * cache or loaded from host memory, and those of which each rank has a copy.
 * Text and accepted drafts are those of the whole prompt, because a page has
 * the hidden state from which the draft layer continues; without it only a few
 * drafts may be lost.
 */


/* of the backends whose pages lose the hidden state on their way out */

static int  (*move)(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);


/*
 * Behind pages that are found.  The prompt ends at each offset of a page, once
 * behind one page that is found and once behind two.  The same for the next
 * turn, which finds pages that the answer filled with drafts: those of tokens
 * that were accepted, and of tokens that replaced rejected ones.
 */

static void
test_hits(void **state)
{
    uint32_t        n, by;
    client_t        c, want;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(1, 0, PAGES);
    b = backend_open(1, DRAFTS, PAGES);

    /* all offsets with the sparse model, and a third of them otherwise */

    by = depth == 1 && model == sparse ? 1 : 3;

    for (n = 65; n < 65 + 128; n += by) {
        make(&c, n, n % 2 == 0 ? 0 : 1);

        start(&e, b, BUDGET, 0);
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, 0);
        want = c;
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, (n - 1) / 64 * 64);
        same(&c, &want);

        memcpy(c.prompt + n, want.answer.token, ANSWER * sizeof(uint32_t));
        c.n_prompt = n + ANSWER + 1;
        c.prompt[n + ANSWER] = 4 + n;
        want = c;

        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens,
                         (n + ANSWER - 1) / 64 * 64);
        stop(&e);

        ask_alone(b, &want);
        same(&c, &want);
        ask_alone(without, &want);
        same_text(&c, &want);
    }

    without->close(without);
    b->close(b);
}


/* Two ranks compute the prompt together, each with a copy of its pages. */

static void
test_ranks(void **state)
{
    uint32_t        warm;
    client_t        plain, want, c;
    engine_t        e;
    dsa_backend_t  *without, *b;

    without = backend_open(2, 0, PAGES);
    b = backend_open(2, DRAFTS, PAGES);

    make(&plain, 150, 1);
    want = plain;
    ask_alone(without, &plain);
    ask_alone(b, &want);

    same_text(&want, &plain);
    assert_true(want.accepted != 0 && want.accepted < want.drafts);

    for (warm = 70; warm < 150; warm += 25) {
        start(&e, b, BUDGET, 0);
        make(&c, warm, 1);
        c.max_tokens = 1;
        ask(&e, &c);

        make(&c, 150, 1);
        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens, warm / 64 * 64);
        same(&c, &want);
        stop(&e);
    }

    without->close(without);
    b->close(b);
}


/*
 * Answers a prompt again whose pages were moved to host memory in between, as
 * often as rounds.  A backend has one scheduler when it moves pages.  Returns
 * the last answer.
 */

static client_t
ask_moved(const client_t *first, uint32_t rounds,
    int (*backend_move)(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *moves, uint32_t n, dsa_err_t *err))
{
    uint32_t        i, at;
    client_t        c, other;
    engine_t        e;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, FEW_PAGES);

    if (backend_move != NULL) {
        move = b->move;
        b->move = backend_move;
    }

    start(&e, b, BUDGET, 60);
    c = *first;
    ask(&e, &c);

    for (i = 0; i < rounds; i++) {

        /* another prompt takes all pages */

        make(&other, PROMPT, 1);

        for (at = 0; at < PROMPT; at++) {
            other.prompt[at] = 4 + (at * (91 + i) + 17) % 250;
        }

        ask(&e, &other);

        ask(&e, &c);
        assert_int_equal(c.answer.usage.cached_tokens,
                         (c.n_prompt - 1) / 64 * 64);
        assert_int_equal(c.answer.usage.tier_tokens[DSA_TIER_HOST],
                         (c.n_prompt - 1) / 64 * 64);
    }

    stop(&e);
    b->close(b);

    return c;
}


/* Pages that are loaded from host memory have the draft layer's part. */

static void
test_loads(void **state)
{
    uint32_t        n;
    client_t        c, want;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);

    for (n = 65; n < 65 + 128; n += 5) {
        make(&want, n, n % 2 == 0 ? 0 : 1);
        c = ask_moved(&want, 1, NULL);
        ask_alone(b, &want);
        same(&c, &want);
    }

    b->close(b);
}


/* Clears what a page has of the last token's hidden state. */

static int
move_without_hidden(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *moves, uint32_t n, dsa_err_t *err)
{
    int       rc;
    size_t    size;
    uint32_t  i;

    rc = move(b, way, rank, moves, n, err);
    size = sizeof(uint32_t) + b->config.hidden_size * sizeof(uint16_t);
    size = (size + DSA_CACHE_ALIGN - 1) / DSA_CACHE_ALIGN * DSA_CACHE_ALIGN;

    for (i = 0; rc == DSA_OK && way == DSA_MOVE_OUT && i < n; i++) {
        memset((uint8_t *) moves[i].host + b->page_bytes - size, 0, size);
    }

    return rc;
}


/*
 * A page that has lost the hidden state is found and used like others, again
 * and again.  A row of the draft layer is missing behind it, which may cost
 * drafts.
 */

static void
test_lost_hidden(void **state)
{
    uint32_t        n, all, lost, differ;
    client_t        c, want;
    dsa_backend_t  *b;

    b = backend_open(1, DRAFTS, PAGES);
    all = 0;
    lost = 0;
    differ = 0;

    for (n = 65; n < 65 + 128; n += 3) {
        make(&want, n, n % 2 == 0 ? 0 : 1);
        c = ask_moved(&want, 2, move_without_hidden);
        ask_alone(b, &want);
        same_text(&c, &want);

        all += want.accepted;
        lost += c.accepted;
        differ += c.drafts != want.drafts || c.accepted != want.accepted;
    }

    print_message("%u drafts are accepted, and %u without the hidden states\n",
                  all, lost);

    /* the rows really were missing, and one row means little here */

    assert_true(differ != 0);
    assert_true(50 * lost > 49 * all && 49 * lost < 50 * all);

    b->close(b);
}


/* Models whose draft layer attends to all positions. */

static void
test_dense(void **state)
{
    with_dense(test_hits, state);
    with_dense(test_ranks, state);
    with_dense(test_loads, state);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_hits),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_lost_hidden),
        cmocka_unit_test(test_dense)
    };

    const struct CMUnitTest  ahead[] = {
        cmocka_unit_test(test_hits),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_loads)
    };

    depth = 1;
    failed = cmocka_run_group_tests_name("one at a time", tests, NULL, NULL);

    depth = 2;
    failed += cmocka_run_group_tests_name("run ahead", ahead, NULL, NULL);

    return failed + (ahead_follows == 0);
}
