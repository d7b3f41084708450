
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Requests of several workers, from SUBMIT to their last record.
 */


#include "t/unit/session.h"


static void
test_echo(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    assert_string_equal(h.client[0].hello.model, "m");
    assert_int_equal(h.client[0].hello.replica, 3);
    assert_true(h.client[0].hello.epoch == 0x89abcdef);
    assert_int_equal(h.client[0].hello.context_length, 40000);
    assert_int_equal(h.client[0].hello.page_tokens, 64);
    assert_true(h.client[0].hello.temperature == 0.75f);
    assert_true(h.client[0].hello.top_p == 0.5f);
    assert_int_equal(strlen(h.client[0].hello.fingerprint), 32);

    link_submit_init(&s, 17);
    link_submit_control(&s, "<bos>");
    link_submit_control(&s, "<user>");
    link_submit_text(&s, "Hello, ");
    link_submit_control(&s, "<user>");
    link_submit_text(&s, "w<eos>");

    a = ask(&h, &s);

    assert_int_equal(a.prompt_tokens, 16);
    assert_string_equal(a.text, "Hello, w<eos>Hell");
    assert_int_equal(a.tokens, 17);
    assert_int_equal(a.records, 17);
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(a.done.prompt_tokens, 16);
    assert_int_equal(a.done.completion_tokens, 17);
    assert_int_equal(dsa_link_cached(&a.done), 0);
    free(a.text);

    /* nothing to echo: the end token at once */

    link_submit_init(&s, 5);
    link_submit_control(&s, "<bos>");
    a = ask(&h, &s);
    assert_string_equal(a.text, "");
    assert_int_equal(a.tokens, 0);
    assert_int_equal(a.finish, DSA_LINK_FINISH_STOP);
    assert_int_equal(a.done.completion_tokens, 1);
    free(a.text);

    /* ... which is but a token where it does not count */

    link_submit_init(&s, 3);
    s.head.flags = DSA_LINK_IGNORE_EOS;
    link_submit_control(&s, "<bos>");
    a = ask(&h, &s);
    assert_string_equal(a.text, "<eos><eos><eos>");
    assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
    free(a.text);

    /* no max_tokens: to the end of the context */

    link_submit_init(&s, 0);
    link_submit_text(&s, "ab");
    a = ask(&h, &s);
    assert_int_equal(a.done.completion_tokens, 40000 - 2);
    assert_int_equal(a.len, 40000 - 2);
    free(a.text);

    host_stop(&h);
}


/* The null backend answers right only through the right pages. */

static void
test_long_echo(void **state)
{
    char           *text;
    host_t          h;
    answer_t        a;
    uint32_t        i, n;
    link_submit_t   s;

    n = 3000;
    host_start(&h, "token_budget 70; max_running 4;");

    text = malloc(n + 1);
    assert_non_null(text);

    for (i = 0; i < n; i++) {
        text[i] = (char) (' ' + i * 7919 % 91);
    }

    text[n] = '\0';

    for (i = 0; i < 2; i++) {
        link_submit_init(&s, n + 500);
        link_submit_control(&s, "<bos>");
        link_submit_text(&s, text);
        a = ask(&h, &s);

        assert_int_equal(a.len, n + 500);
        assert_memory_equal(a.text, text, n);
        assert_memory_equal(a.text + n, text, 500);
        assert_int_equal(dsa_link_cached(&a.done), i == 0 ? 0 : 3000 / 64 * 64);
        free(a.text);
    }

    free(text);
    host_stop(&h);
}


/* A character of several tokens comes whole, one that is none as U+FFFD. */

static void
test_characters(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    link_submit_init(&s, 15);
    link_submit_text(&s, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80!");
    a = ask(&h, &s);
    assert_string_equal(a.text, "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80!h"
                        "\xef\xbf\xbd");
    assert_int_equal(a.tokens, 15);
    free(a.text);

    link_submit_init(&s, 6);
    link_submit_text(&s, "a\xff\xe2\x82" "b\x80");
    a = ask(&h, &s);
    assert_string_equal(a.text, "a\xef\xbf\xbd\xef\xbf\xbd" "b\xef\xbf\xbd");
    free(a.text);

    host_stop(&h);
}


/* 30 tokens are requested: an answer of fewer ended at a stop string. */

static const struct {
    const char  *prompt;
    const char  *stop[2];
    const char  *want;
    uint32_t     tokens;
} stops[] = {
    { "hello world, and more", { "lo wo" }, "hel", 8 },

    /* at the very beginning, and across the end of the prompt */

    { "abc", { "ab" }, "", 2 },
    { "abcd", { "cdab" }, "ab", 6 },

    /* the first that is complete; of two with the same end the longer one */

    { "one two three", { "three", "wo" }, "one t", 7 },
    { "one two three", { "wo", "two" }, "one ", 7 },

    /* a false start, also one that overlaps the right one */

    { "aaaaaab", { "aaab" }, "aaa", 7 },
    { "ababac", { "abac" }, "ab", 6 },

    /* held back to the end, for nothing */

    { "0123456789", { "789x", "90" }, "012345678", 11 },
    { "0123456789", { "789x" }, "012345678901234567890123456789", 30 },

    /* a stop string of characters, of which a token is a part */

    { "1\xe2\x82\xac" "2", { "\xe2\x82\xac" }, "1", 4 }
};


static void
test_stop(void **state)
{
    host_t         h;
    size_t         i, k;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    for (i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        link_submit_init(&s, 30);
        link_submit_text(&s, stops[i].prompt);

        for (k = 0; k < 2 && stops[i].stop[k] != NULL; k++) {
            link_submit_stop(&s, stops[i].stop[k]);
        }

        a = ask(&h, &s);

        assert_string_equal(a.text, stops[i].want);
        assert_int_equal(a.finish, stops[i].tokens < 30
                                   ? DSA_LINK_FINISH_STOP
                                   : DSA_LINK_FINISH_LENGTH);
        assert_int_equal(a.tokens, stops[i].tokens);
        assert_int_equal(a.done.completion_tokens, stops[i].tokens);
        free(a.text);
    }

    host_stop(&h);
}


static void
test_logprobs(void **state)
{
    host_t         h;
    answer_t       a;
    link_submit_t  s;

    host_start(&h, "");

    link_submit_init(&s, 4);
    s.head.sampling.logprobs = 1;
    s.head.sampling.top_logprobs = 5;
    link_submit_text(&s, "ab\xc3\xa9");
    a = ask(&h, &s);

    assert_string_equal(a.text, "ab\xc3\xa9");
    assert_int_equal(a.logprob.token, SMALL_MODEL_BYTES + 0xa9);
    assert_true(a.logprob.logprob == 0);
    assert_int_equal(a.logprob.len, 1);
    assert_int_equal((uint8_t) a.logprob.bytes[0], 0xa9);
    assert_int_equal(a.n_top, 1);
    free(a.text);

    host_stop(&h);
}


static void
test_prefix_by_tenant(void **state)
{
    char            text[641];
    host_t          h;
    answer_t        a;
    uint32_t        i;
    link_submit_t   s;

    static const struct {
        uint8_t   tenant;
        uint32_t  cached;
    } order[] = {
        { 1, 0 }, { 1, 576 }, { 2, 0 }, { 1, 576 }, { 2, 576 }, { 3, 0 }
    };

    host_start(&h, "");
    memset(text, 'x', sizeof(text));
    text[640] = '\0';

    for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        link_submit_init(&s, 5);
        s.head.tenant[31] = order[i].tenant;
        link_submit_text(&s, text);
        a = ask(&h, &s);
        assert_int_equal(dsa_link_cached(&a.done), order[i].cached);
        free(a.text);
    }

    host_stop(&h);
}


/*
 * While one tenant's long prompts wait to be counted or answered, others are
 * tokenized in turn, and at most half of the memory is of one tenant.
 */

static void
test_pool_turns(void **state)
{
    char            *text;
    host_t           h;
    answer_t         a[9];
    uint32_t         i;
    dsa_request_t   *r;
    link_submit_t    s;

    const size_t  size = 12 << 20;

    host_submit = 128 << 20;
    host_start(&h, "");
    host_submit = 1 << 20;
    memset(a, 0, sizeof(a));
    text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';

    /* tenant 1: the sixth one is too much; tenant 2; a short one */

    for (i = 0; i < 9; i++) {
        link_submit_init(&s, 1);
        s.head.tenant[0] = i < 6 ? 1 : 2;
        s.head.weight = i < 6 ? 100 : 200;
        link_submit_text(&s, i == 8 ? "short" : text);
        assert_int_equal(link_client_send(&h.client[0], i % 2 ? DSA_LINK_COUNT
                                                        : DSA_LINK_SUBMIT,
                                          dsa_link_id(1, i), &s), 0);

        /* a turn reads a bounded number of bytes */

        host_io(&h);
    }

    free(text);
    take_events(&h, 0, a, 9);

    for (i = 0; i < 9; i++) {
        assert_int_equal(a[i].error, i == 5 ? DSA_LINK_E_TENANT : 0);
    }

    dsa_pool_run(h.pool);
    r = dsa_pool_collect(h.pool);

    for (i = 0; i < 8; i++) {
        static const uint32_t  order[] = { 0, 6, 7, 1, 2, 3, 4, 8 };

        assert_int_equal(dsa_link_slot(r->id), order[i]);
        r->state = DSA_REQUEST_IDLE;
        r = r->next_job;
    }

    assert_null(r);
    host_stop(&h);
}


/*
 * A worker that does not read: its ring fills, all its answers are computed
 * to their ends, another worker has each of its tokens in the step in which
 * it was sampled, and when the first one reads at last everything is there.
 */

static void
test_full_ring(void **state)
{
    char            text[64];
    host_t          h;
    answer_t        a[200], b[1];
    uint32_t        i, j, n;
    link_submit_t   s;

    n = 100;
    host_start(&h, "max_running 256;");
    memset(a, 0, sizeof(a));
    memset(b, 0, sizeof(b));

    for (i = 0; i < n; i++) {
        (void) snprintf(text, sizeof(text), "(%u)", i);
        link_submit_init(&s, 700);
        s.head.sampling.logprobs = i % 5 == 0;
        s.head.sampling.top_logprobs = i % 2;
        link_submit_text(&s, text);
        submit(&h, 0, dsa_link_id(1, i), &s);
    }

    submit_text(&h, 1, dsa_link_id(1, 0), 500, "other");

    for (i = 1; i <= 900; i++) {
        host_round(&h);
        take_events(&h, 1, b, 1);
        assert_int_equal(b[0].tokens, i < 500 ? i : 500);
    }

    assert_int_equal(b[0].finish, DSA_LINK_FINISH_LENGTH);
    assert_int_equal(host_sequences(&h), 0);
    assert_true(host_requests(&h, 0) > 0);

    for (i = 0; i < 100000 && host_requests(&h, 0) != 0; i++) {
        take_events(&h, 0, a, n);
        host_round(&h);
    }

    take_events(&h, 0, a, n);

    for (i = 0; i < n; i++) {
        (void) snprintf(text, sizeof(text), "(%u)", i);

        assert_int_equal(a[i].finish, DSA_LINK_FINISH_LENGTH);
        assert_int_equal(a[i].tokens, 700);
        assert_int_equal(a[i].len, 700);
        assert_int_equal(a[i].n_top, i % 10 == 5);

        for (j = 0; j < 700; j++) {
            assert_int_equal(a[i].text[j], text[j % strlen(text)]);
        }

        /* it came in a few large records, not in 700 */

        assert_true(a[i].records < 500);
        free(a[i].text);
    }

    free(b[0].text);
    host_stop(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_long_echo),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_prefix_by_tenant),
        cmocka_unit_test(test_pool_turns),
        cmocka_unit_test(test_full_ring)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
