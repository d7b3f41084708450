
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/cpu/model.h"
#include "engine/schedule/scheduler.h"


/*
 * How many drafts are accepted: of a text that is computed as a whole, in
 * chunks, behind a prefix that is found in the cache, and on several ranks, the
 * same numbers.  test_same_bits.c has the tests that the text is the same.
 */

#define MODEL   "t/data/golden/drafts"
#define PROMPT  150
#define ANSWER  60
#define DRAFTS  3
#define BUDGET  256
#define SEEDS   24      /* texts, for a share of accepted drafts */


typedef struct {
    uint32_t    n;
    uint32_t    token[ANSWER];
} client_t;


typedef struct {
    uint64_t    drafts;
    uint64_t    accepted;
    uint64_t    cached;
} result_t;


static uint64_t  cached;
static uint64_t  seed = 7;


static int
on_tokens(void *owner, const dsa_sample_t *samples, uint32_t n)
{
    uint32_t   i;
    client_t  *c = owner;

    for (i = 0; i < n; i++) {
        assert_true(c->n < ANSWER);
        c->token[c->n++] = samples[i].token;
    }

    return 0;
}


static void
on_done(void *owner, const dsa_sched_usage_t *usage)
{
    cached += usage->cached_tokens;
}


static const dsa_sched_handler_t  handler = { on_tokens, on_done, NULL };


static void
answer(dsa_sched_t *s, client_t *c, uint32_t n_prompt, uint32_t max_tokens,
    float temperature)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_sched_request_t  r;

    memset(c, 0, sizeof(client_t));
    memset(&r, 0, sizeof(r));

    r.tokens = malloc((PROMPT + ANSWER) * sizeof(uint32_t));
    assert_non_null(r.tokens);

    for (i = 0; i < n_prompt; i++) {
        r.tokens[i] = 4 + i * i % 250;
    }

    r.n_tokens = n_prompt;
    r.max_tokens = max_tokens;
    r.weight = 1;
    r.ignore_eos = 1;
    r.sampling.temperature = temperature;
    r.sampling.seed = seed;
    r.sampling.top_p = 1;
    r.owner = c;

    assert_non_null(dsa_sched_add(s, &r, NULL));

    while (dsa_sched_busy(s)) {
        if (dsa_sched_step(s, &err) != DSA_OK
            || dsa_sched_audit(s, &err) != DSA_OK)
        {
            fail_msg("%s", err.text);
        }
    }

    assert_int_equal(c->n, max_tokens);
}


/*
 * Answers the prompt after its first warm tokens were answered, so that full
 * pages of these are found.
 */

static result_t
run(client_t *c, uint32_t gpus, uint32_t drafts, uint32_t budget,
    uint32_t warm, float temperature)
{
    result_t             r;
    dsa_err_t            err;
    dsa_sched_t         *s;
    dsa_backend_t       *b;
    dsa_sched_conf_t     sched;
    dsa_sched_stats_t    before, stats;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    if (dsa_model_config_read(&config, MODEL, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));
    conf.model = MODEL;
    conf.precision = DSA_SERVED;
    conf.kv_memory = dsa_model_kv_memory(&config, DSA_SERVED, drafts != 0,
                                         64 * 32);
    conf.gpus = gpus;
    conf.max_tokens = BUDGET;
    conf.max_seqs = 4;
    conf.allowed = config.vocab_size;
    conf.drafts = drafts;

    b = dsa_backend_cpu_open(&conf, &err);
    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    memset(&sched, 0, sizeof(sched));
    sched.max_running = 4;
    sched.token_budget = budget;
    sched.max_waiting = 4;
    sched.max_waiting_per_tenant = 4;
    sched.context = PROMPT + ANSWER;

    s = dsa_sched_create(b, &sched, &handler, &err);
    if (s == NULL) {
        fail_msg("%s", err.text);
    }

    if (warm != 0) {
        answer(s, c, warm, 1, temperature);
    }

    cached = 0;
    dsa_sched_stats(s, &before);
    answer(s, c, PROMPT, ANSWER, temperature);
    dsa_sched_stats(s, &stats);

    r.drafts = stats.draft_tokens - before.draft_tokens;
    r.accepted = stats.accepted_tokens - before.accepted_tokens;
    r.cached = cached;

    dsa_sched_destroy(s);
    b->close(b);

    return r;
}


static void
same(const result_t *a, const result_t *b)
{
    assert_int_equal(a->drafts, b->drafts);
    assert_int_equal(a->accepted, b->accepted);
}


static void
test_accepted(void **state)
{
    float      temperature;
    client_t   whole, other;
    uint32_t   i, warm;
    result_t   want, got;

    for (i = 0; i < 3; i++) {
        temperature = (float) i * 0.5f;
        want = run(&whole, 1, DRAFTS, BUDGET, 0, temperature);

        assert_int_equal(want.cached, 0);
        assert_true(want.accepted < want.drafts);

        /* in chunks, whose ends are at all offsets of a page */

        for (warm = 5; warm < 70; warm += 13) {
            got = run(&other, 1, DRAFTS, warm, 0, temperature);
            same(&got, &want);
        }

        /* behind one and two pages that are found */

        for (warm = 65; warm < PROMPT; warm += 20) {
            got = run(&other, 1, DRAFTS, BUDGET, warm, temperature);
            assert_int_equal(got.cached, warm / 64 * 64);
            same(&got, &want);
        }

        assert_memory_equal(&whole, &other, sizeof(whole));
    }
}


/*
 * The draft layer is good, and draws with the noise of the model.  With that of
 * another position, 0.59 of the drafts would be accepted at temperature 1.
 */

static void
test_share(void **state)
{
    float     temperature;
    client_t  c;
    uint32_t  i;
    result_t  r, sum;

    for (i = 0; i < 3; i++) {
        temperature = (float) i * 0.5f;
        memset(&sum, 0, sizeof(sum));

        for (seed = 0; seed < SEEDS; seed++) {
            r = run(&c, 1, DRAFTS, BUDGET, 0, temperature);
            sum.drafts += r.drafts;
            sum.accepted += r.accepted;
        }

        print_message("temperature %.1f: %u of %u drafts are accepted\n",
                      temperature, (uint32_t) sum.accepted,
                      (uint32_t) sum.drafts);

        assert_true(8 * sum.accepted > 5 * sum.drafts);
    }

    seed = 7;
}


/* Two ranks compute the prompt together, each with a copy of its pages. */

static void
test_ranks(void **state)
{
    client_t  plain, drafted;
    uint32_t  warm;
    result_t  first, r;

    (void) run(&plain, 2, 0, BUDGET, 0, 1);
    first = run(&drafted, 2, DRAFTS, BUDGET, 0, 1);

    assert_memory_equal(&plain, &drafted, sizeof(plain));
    assert_true(first.accepted != 0 && first.accepted < first.drafts);

    for (warm = 70; warm < PROMPT; warm += 25) {
        r = run(&drafted, 2, DRAFTS, BUDGET, warm, 1);

        assert_memory_equal(&plain, &drafted, sizeof(plain));
        assert_int_equal(r.cached, warm / 64 * 64);
        same(&r, &first);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_ranks)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
