
/*
 * Copyright (C) The nginx-dsa authors
 *
 * Limits of the reasoning, from SUBMIT to DONE: the null backend repeats the
 * prompt, and chooses at random among the permitted tokens where there is a
 * grammar.  The tokenizer has a token for each byte, and "</think>".
 */


#include "t/unit/host.h"


#define END         SMALL_MODEL_END
#define END_NAME    "</think>"
#define END_LEN     (sizeof(END_NAME) - 1)

#define SCHEMA                                                                \
    "{\"type\":\"json_schema\",\"schema\":{\"enum\":[\"one\",\"two\"]}}"

#define MOST        20
#define SEEDS       100
#define MANY        12
#define LONG        200


/* With the control token. */

static int
setup_end(void **state)
{
    return setup(state) == 0 ? small_model_write(model_dir, 1) : -1;
}


static void
submit(link_submit_t *s, uint32_t max, uint32_t budget)
{
    link_submit_init(s, max);
    s->head.flags = DSA_LINK_THINKING;
    s->head.thinking_budget = budget;
    link_submit_text(s, "abcdefg");
}


/* The answer to submit() with the end at an index; max or more: nowhere. */

static const char *
expected(uint32_t max, uint32_t at)
{
    char      *p;
    uint32_t   i;

    static char  text[LONG + 1 + END_LEN];

    p = text;

    for (i = 0; i < max; i++) {
        if (i == at) {
            memcpy(p, END_NAME, END_LEN);
            p += END_LEN;

        } else {
            *p++ = "abcdefg"[i % 7];
        }
    }

    *p = '\0';

    return text;
}


static void
test_budgets(void **state)
{
    host_t         h;
    answer_t       a;
    uint32_t       budget;
    link_submit_t  s;

    host_start(&h, "");

    for (budget = 0; budget <= MOST + 2; budget++) {
        submit(&s, MOST, budget);
        a = ask(&h, &s);

        assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
        assert_int_equal(a.done.completion_tokens, MOST);
        assert_string_equal(a.text, expected(MOST, budget != 0 ? budget
                                                               : MOST));

        if (budget != 0 && budget < MOST) {
            assert_int_equal(a.token[budget].id, END);
            assert_int_equal(a.token[budget].control, END_LEN);
        }

        free(a.text);
    }

    host_empty(&h);
    host_end(&h);
}


/*
 * Stop strings end the answer, and not the reasoning before it; without
 * reasoning, and if the answer itself has it, they do.
 */

static void
test_stop(void **state)
{
    host_t         h;
    uint32_t       i;
    answer_t       a;
    link_submit_t  s;

    static const struct {
        uint32_t     flags;
        uint32_t     budget;
        const char  *stop;
        const char  *text;
        uint32_t     finish;
    } t[] = {
        { 0, 0, "de", "abc", DSA_LINK_FINISH_STOP },
        { DSA_LINK_THINKING, 9, "cd", "abcdefgab</think>defgab",
          DSA_LINK_FINISH_STOP },
        { DSA_LINK_THINKING, 9, "fg", "abcdefgab</think>de",
          DSA_LINK_FINISH_STOP },
        { DSA_LINK_THINKING, 9, "b</think>de", "abcdefgab</think>defgabcdef",
          DSA_LINK_FINISH_LENGTH },
        { DSA_LINK_THINKING, 0, "de", "abcdefgabcdefgabcdef",
          DSA_LINK_FINISH_LENGTH }
    };

    host_start(&h, "");

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        submit(&s, MOST, t[i].budget);
        s.head.flags = t[i].flags;
        link_submit_stop(&s, t[i].stop);
        a = ask(&h, &s);

        assert_string_equal(a.text, t[i].text);
        assert_int_equal(a.finish, t[i].finish);
        free(a.text);
    }

    host_empty(&h);
    host_end(&h);
}


/*
 * Wherever an answer is cut, another replica completes it to the same text; a
 * reasoning that has ended has no budget any more.
 */

static void
test_resume(void **state)
{
    host_t         h;
    answer_t       a, b;
    uint32_t       i, n, budget, ids[MOST];
    link_submit_t  s;

    host_start(&h, "");

    for (budget = 1; budget < MOST; budget += 5) {
        submit(&s, MOST, budget);
        a = ask(&h, &s);

        for (i = 0; i < MOST; i++) {
            ids[i] = a.token[i].id;
        }

        for (n = 0; n < MOST; n++) {
            submit(&s, MOST, budget);
            link_submit_resume(&s, ids, n);
            b = ask(&h, &s);

            assert_string_equal(b.text, n == 0 ? a.text
                                        : a.text + a.token[n - 1].end);
            free(b.text);
        }

        free(a.text);
    }

    for (i = 0; i < 5; i++) {
        ids[i] = i == 3 ? END : SMALL_MODEL_BYTES + 'a' + i;

        submit(&s, MOST, 4);
        link_submit_resume(&s, ids, i + 1);
        a = ask(&h, &s);
        assert_string_equal(a.text, i < 3 ? expected(MOST, 4) + i + 1
                                    : expected(MOST, MOST) + i + 1);
        free(a.text);
    }

    ids[3] = ids[4];
    submit(&s, MOST, 4);
    link_submit_resume(&s, ids, 5);
    refused(&h, &s, DSA_LINK_E_INVALID, "token 4 to resume from is 104; "
            "expected 259, because the reasoning has 4 tokens");

    host_end(&h);
}


/* The grammar begins behind the end, which comes at the budget or before. */

static void
test_grammar(void **state)
{
    host_t         h;
    char          *end;
    answer_t       a;
    uint32_t       i, n, seed, budget, spent;
    link_submit_t  s;

    host_start(&h, "");

    for (seed = 0, spent = 0; seed < SEEDS; seed++) {
        budget = 1 + seed % 60;
        submit(&s, 100, budget);
        s.head.sampling.seed = seed;
        link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, SCHEMA, strlen(SCHEMA));
        a = ask(&h, &s);

        assert_int_equal(a.finish, DSA_LINK_FINISH_STOP);

        for (i = 0, n = UINT32_MAX; i < a.tokens && n == UINT32_MAX; i++) {
            if (a.token[i].id == END) {
                n = i;
            }
        }

        assert_true(n <= budget);
        spent += n == budget;

        end = a.text + a.token[n].end;

        assert_true(strcmp(end, "\"one\"") == 0
                    || strcmp(end, "\"two\"") == 0);
        free(a.text);
    }

    assert_in_range(spent, 1, SEEDS - 1);

    host_empty(&h);
    host_end(&h);
}


/*
 * Writes tokens to ids: bytes, and "|" for the control token of calls.
 * Returns their number.
 */

static uint32_t
tokens_of(uint32_t *ids, const char *text)
{
    uint32_t  n;

    for (n = 0; text[n] != '\0'; n++) {
        ids[n] = text[n] == '|' ? SMALL_MODEL_CALL
                                : SMALL_MODEL_BYTES + (uint8_t) text[n];
    }

    return n;
}


/* A call ends the reasoning, so that nothing comes into its arguments. */

static void
test_calls(void **state)
{
    host_t         h;
    size_t         i;
    answer_t       a;
    uint32_t       n, ids[LONG];
    link_submit_t  s;

    static const struct {
        const char  *text;
        int          call;
    } t[] = {
        { "ab\n\n<|function_calls>\n<|in", 1 },
        { "<|function_calls", 1 },
        { "<|invoke name", 1 },
        { "<|function_call ", 0 },
        { "<|fuinvoke", 0 },
        { "<|involve", 0 },
        { "</|function_calls>", 0 },
        { "</|invoke>", 0 },
        { "|invoke", 0 },
        { "< |invoke", 0 },
        { "<invoke", 0 },
        { "<||invoke", 0 },
        { "<|<|invoke", 1 },
        { "<|inv<|function_calls", 1 }
    };

    host_start(&h, "");

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        n = tokens_of(ids, t[i].text);
        submit(&s, LONG, n + 3);
        link_submit_resume(&s, ids, n);
        a = ask(&h, &s);

        if ((strstr(a.text, END_NAME) == NULL) != t[i].call) {
            fail_msg("%s: %s", t[i].text, a.text);
        }

        assert_int_equal(a.finish, DSA_LINK_FINISH_LENGTH);
        free(a.text);

        /* the call is the last token of the budget, or one more */

        submit(&s, LONG, n);
        link_submit_resume(&s, ids, n);
        a = ask(&h, &s);
        assert_int_equal(memcmp(a.text, END_NAME, END_LEN) == 0, !t[i].call);
        free(a.text);
    }

    /* beside a grammar it does not */

    n = tokens_of(ids, "<|invoke name");

    for (i = 0; i < SEEDS; i++) {
        submit(&s, LONG, n);
        s.head.sampling.seed = i;
        link_submit_field(&s, DSA_LINK_FIELD_GRAMMAR, SCHEMA, strlen(SCHEMA));
        link_submit_resume(&s, ids, n);
        a = ask(&h, &s);
        assert_memory_equal(a.text, END_NAME "\"", END_LEN + 1);
        free(a.text);
    }

    host_empty(&h);
    host_end(&h);
}


/* Which output of a step with drafts has a mask, if any. */

static void
test_drafts(void **state)
{
    uint32_t      i, k, n, at, mask[5][2], one[5][2], drafts[4];
    dsa_budget_t  b;

    for (n = 0; n < 8; n++) {
        for (at = 0; at <= 4; at++) {

            /* n tokens of at most 7, and the end as draft number at */

            memset(&b, 0, sizeof(b));
            b.most = 7;
            b.end = 40;
            b.call = DSA_BUDGET_NO_CALL;

            for (i = 0; i < n; i++) {
                assert_int_equal(dsa_budget_accept(&b, 3), DSA_OK);
            }

            assert_int_equal(dsa_budget_accept(&b, 3), n < 7 ? DSA_OK
                                                             : DSA_ERROR);
            b.n = n;

            for (i = 0; i < 4; i++) {
                drafts[i] = i == at ? 40 : i;
            }

            memset(mask, 0xff, sizeof(mask));
            k = 7 - n;

            assert_int_equal(dsa_budget_mask(&b, drafts, 4, 0, mask[0],
                                             2),
                             k <= 4 && k <= at);

            for (i = 0; i < 5; i++) {
                assert_int_equal(mask[i][0], i == k && k <= at
                                             ? 0 : UINT32_MAX);
                assert_int_equal(mask[i][1], i == k && k <= at
                                             ? 1U << 8 : UINT32_MAX);
            }

            /* the same from a later token on */

            for (i = 0; i <= 4; i++) {
                memset(one, 0xff, sizeof(one));
                assert_int_equal(dsa_budget_mask(&b, drafts, 4, i, one[0], 2),
                                 k <= 4 && k <= at && i <= k);
                assert_memory_equal(one, mask[i], (5 - i) * sizeof(one[0]));
            }
        }
    }
}


/* Sequences that are preempted have the same budget. */

static void
test_preempted(void **state)
{
    host_t         h;
    answer_t       a[MANY];
    uint32_t       i, left;
    link_submit_t  s;

    host_start(&h, "kv_memory 1m;");
    memset(a, 0, sizeof(a));

    for (i = 0; i < MANY; i++) {
        submit(&s, LONG, LONG / 2 + 7 * i);
        assert_int_equal(link_client_submit(&h.client[0], dsa_link_id(1, i),
                                            &s), 0);
    }

    do {
        host_round(&h);
        take_events(&h, 0, a, MANY);

        for (i = 0, left = 0; i < MANY; i++) {
            left += a[i].finish == 0;
        }
    } while (left != 0);

    for (i = 0; i < MANY; i++) {
        assert_int_equal(a[i].finish, DSA_LINK_FINISH_LENGTH);
        assert_string_equal(a[i].text, expected(LONG, LONG / 2 + 7 * i));
        free(a[i].text);
    }

    assert_true(h.io.sessions.stats.preemptions > 0);

    host_empty(&h);
    host_end(&h);
}


static void
test_refused(void **state)
{
    host_t         h;
    link_submit_t  s;

    host_start(&h, "");

    submit(&s, MOST, 5);
    s.head.flags = 0;
    refused(&h, &s, DSA_LINK_E_INVALID, "thinking_budget is 5, but flag 0x8 "
            "is not set");

    host_end(&h);
}


static void
test_no_end(void **state)
{
    host_t         h;
    link_submit_t  s;

    host_start(&h, "");

    submit(&s, MOST, 5);
    refused(&h, &s, DSA_LINK_E_INVALID, "The tokenizer has no control token "
            "\"</think>\", which would end the reasoning");

    host_end(&h);
}


int
main(void)
{
    int  failed;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_refused)
    };

    const struct CMUnitTest  plain[] = {
        cmocka_unit_test(test_no_end)
    };

    failed = cmocka_run_group_tests(tests, setup_end, teardown);
    (void) strcpy(model_dir + strlen(model_dir) - 6, "XXXXXX");

    return failed + cmocka_run_group_tests(plain, setup, teardown);
}
