
/*
 * Copyright (C) The nginx-dsa authors
 */


#define SERVING_BACKEND     DSA_BACKEND_CPU
#define SERVING_PRECISION   DSA_SERVED
#define SERVING_BOUND       0

#include "t/unit/serving.h"
#include "t/unit/ahead.h"


/*
 * Rollouts of sequences with drafts: what is reported of each token, its
 * position included, is what is reported without drafts.  Steps are made before
 * it is known how many drafts of the step before them are accepted.
 */

#define DRAFTS  3
#define ROWS    1024


/* What was reported of a position; the experts of a token as an input. */

typedef struct {
    uint32_t            inputs;         /* how often it was one, */
    uint32_t            samples;        /* and a sample */
    uint32_t            token;
    dsa_draw_t          draw;
    uint64_t            kept;           /* a hash of the ids */
    uint64_t            experts;
} row_t;


typedef struct {
    client_t            client;
    row_t               row[ROWS];
} reporter_t;


static uint32_t  routes;                /* experts of a token */


static uint64_t
hash(const void *data, size_t n)
{
    size_t                i;
    uint64_t              h;
    const unsigned char  *p = data;

    h = 0xcbf29ce484222325;

    for (i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3;
    }

    return h;
}


static void
on_rollout(void *owner, const dsa_sched_rollout_t *r)
{
    row_t       *row;
    uint32_t     i;
    reporter_t  *to = owner;

    assert_true(r->start + r->n_input <= ROWS);
    assert_true(r->position + r->n_samples <= ROWS);
    assert_non_null(r->experts);

    for (i = 0; i < r->n_input; i++) {
        row = &to->row[r->start + i];
        row->inputs++;
        row->experts = hash(r->experts + i * routes,
                            routes * sizeof(uint16_t));
    }

    for (i = 0; i < r->n_samples; i++) {
        row = &to->row[r->position + i];
        row->samples++;
        row->token = r->samples[i].token;
        row->draw = r->draw[i];
        row->kept = r->draw[i].n_kept == DSA_KEPT_ALL
                    ? 0 : hash(r->kept + i * r->words,
                               r->words * sizeof(uint32_t));
    }
}


/* All clients at once; returns how many drafts were accepted. */

static uint64_t
report(reporter_t to[CLIENTS], uint32_t n_drafts, uint32_t budget, int ahead)
{
    uint32_t           i;
    engine_t           e;
    dsa_sched_stats_t  stats;

    drafts = n_drafts;
    around = ahead ? ahead_open : NULL;
    start(&e, 64, budget);

    routes = dsa_model_config_moe_layers(&e.backend->config)
             * e.backend->config.num_experts_per_tok;

    for (i = 0; i < CLIENTS; i++) {
        memset(&to[i], 0, sizeof(reporter_t));
        to[i].client = alone[i];
        to[i].client.seed = i + 1;
        to[i].client.temperature = 0.4f * (float) i;
        to[i].client.top_p = i == 3 ? 0.8f : 1;
        to[i].client.rollout = on_rollout;
        to[i].client.reports = DSA_REPORT_KEPT|DSA_REPORT_EXPERTS
                               |DSA_REPORT_PROMPT;
        submit(&e, &to[i].client, (uint8_t) i);
    }

    run(&e);
    dsa_sched_stats(e.sched, &stats);
    finish(&e);

    around = NULL;
    drafts = 0;

    return stats.accepted_tokens;
}


static void
test_rows(void **state)
{
    size_t            i;
    uint32_t          j, k, end;
    uint64_t          accepted;
    const row_t      *a, *b;
    static reporter_t  want[CLIENTS], got[CLIENTS];

    static const struct {
        uint32_t  drafts;
        uint32_t  budget;
        int       ahead;
    } cases[] = {
        { 0, 256, 1 }, { DRAFTS, 256, 0 }, { DRAFTS, 256, 1 },
        { DRAFTS, 40, 1 }, { 1, 256, 1 }
    };

    (void) report(want, 0, 256, 0);

    for (j = 0; j < CLIENTS; j++) {
        end = alone[j].n_prompt + ANSWER;

        for (k = 0; k < ROWS; k++) {
            assert_int_equal(want[j].row[k].inputs, k < end - 1);
            assert_int_equal(want[j].row[k].samples,
                             k >= alone[j].n_prompt && k < end);
        }
    }

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        accepted = report(got, cases[i].drafts, cases[i].budget,
                          cases[i].ahead);

        assert_true(cases[i].drafts == 0 ? accepted == 0 : accepted > 20);

        for (j = 0; j < CLIENTS; j++) {
            for (k = 0; k < ROWS; k++) {
                a = &got[j].row[k];
                b = &want[j].row[k];

                if (memcmp(a, b, sizeof(row_t)) != 0) {
                    fail_msg("case %zu, client %u, position %u: input %u "
                             "times, not %u, sampled %u times, not %u, "
                             "token %u, not %u", i, j, k, a->inputs, b->inputs,
                             a->samples, b->samples, a->token, b->token);
                }
            }
        }
    }

    assert_true(ahead_follows > 0);
}


static int
setup_drafts(void **state)
{
    uint32_t  i, j;

    model = "t/data/golden/drafts";

    for (i = 0; i < CLIENTS; i++) {
        alone[i].n_prompt = 80 + 30 * i;

        for (j = 0; j < alone[i].n_prompt; j++) {
            alone[i].prompt[j] = 4 + (j * j + i) % 250;
        }
    }

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rows)
    };

    return cmocka_run_group_tests(tests, setup_drafts, NULL);
}
