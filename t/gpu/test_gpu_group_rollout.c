
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/cuda/group.h"
#include "t/gpu/group.h"


/*
 * Rollouts of a prompt and some decodes, beside sequences without, on each
 * rank.  The CPU backend is the oracle, whose tokens are the inputs.  The
 * roundings differ, so that some choices do: an expert in another layer, of
 * another token or in another place would be equal in one of ten at most.  On
 * two H200 nine of ten experts were equal, and logprobs of equal tokens 0.2
 * apart on average.
 *
 * The loads of experts that the backend counts are those of its own rollouts.
 */

#define ROUTED      16          /* decodes */
#define ROUTES      64          /* most experts of a token in all layers */
#define WORDS       32          /* of a bitmap of 1024 ids */


typedef struct {
    uint16_t            experts[(PROMPT + ROUTED) * ROUTES];
    uint32_t            kept[ROUTED][WORDS];
    dsa_draw_t          draw[ROUTED];
    dsa_sample_t        sample[ROUTED];
} rollout_t;


/* Sequences j with j % 3 == without have none. */

static void
rollouts(dsa_backend_t *b, client_t *c, rollout_t *out, const rollout_t *want,
    uint32_t without)
{
    uint32_t         i, j, n, at, routes;
    dsa_rollout_t    r[SEQS];
    dsa_sampling_t   sampling[SEQS];
    dsa_batch_seq_t  seq[SEQS];

    routes = dsa_model_config_moe_layers(&b->config)
             * b->config.num_experts_per_tok;
    assert_true(routes != 0 && routes <= ROUTES);
    assert_int_equal(b->config.vocab_size, 32 * WORDS);

    for (i = 0; i < ROUTED; i++) {
        for (j = 0; j < SEQS; j++) {
            at = i == 0 ? 0 : c[j].prompt + i - 1;
            n = i == 0 ? c[j].prompt : 1;

            if (i != 0) {
                c[j].tokens[at] = want[j].sample[i - 1].token;
            }

            memset(&sampling[j], 0, sizeof(dsa_sampling_t));
            sampling[j].temperature = j == 3 ? 0 : 0.7f;
            sampling[j].top_p = j == 2 ? 1 : 0.8f;
            sampling[j].seed = j;

            r[j].draw = &out[j].draw[i];
            r[j].kept = out[j].kept[i];
            r[j].experts = out[j].experts + (size_t) at * routes;

            entry(&seq[j], &c[j], at, n, &out[j].sample[i]);
            seq[j].sampling = &sampling[j];
            seq[j].rollout = j % 3 == without ? NULL : &r[j];
        }

        step(b, seq, SEQS);
    }
}


static void
check_rollouts(const rollout_t *got, const rollout_t *want, uint32_t prompt,
    uint32_t routes)
{
    float              apart;
    uint32_t           i, j, n, equal, kept, tokens;
    const uint32_t    *words;
    const dsa_draw_t  *draw;

    n = (prompt + ROUTED - 1) * routes;
    apart = 0;
    equal = 0;
    tokens = 0;

    for (i = 0; i < n; i++) {
        equal += got->experts[i] == want->experts[i];
    }

    if (equal * 10 < n * 7) {
        fail_msg("%u of %u experts are those of the CPU", equal, n);
    }

    for (i = 0; i < ROUTED; i++) {
        draw = &got->draw[i];
        words = got->kept[i];
        kept = 0;

        assert_int_equal(draw->n_kept == DSA_KEPT_ALL,
                         want->draw[i].n_kept == DSA_KEPT_ALL);

        for (j = 0; draw->n_kept != DSA_KEPT_ALL && j < WORDS; j++) {
            kept += (uint32_t) __builtin_popcount(words[j]);
        }

        if (draw->n_kept != DSA_KEPT_ALL) {
            assert_int_equal(kept, draw->n_kept);
            assert_true(dsa_mask_has(words, got->sample[i].token));
        }

        if (got->sample[i].token == want->sample[i].token) {
            apart += fabsf(draw->logprob - want->draw[i].logprob);
            tokens++;
        }
    }

    /*
     * The CPU computes a prompt by absorbed MQA, and the GPU by MHA prefill, so
     * that some sampled tokens of a random model differ: 8 of 16 on an H200.
     */

    if (tokens * 4 < ROUTED) {
        fail_msg("%u of %u tokens are those of the CPU", tokens, ROUTED);
    }

    if (apart > (float) tokens * 0.5f) {
        fail_msg("the logprobs of %u tokens are %f apart", tokens,
                 (double) apart);
    }
}


static void
test_rollout(void **state)
{
    char                 model[64];
    uint32_t             i, j, routes;
    client_t            *c;
    rollout_t           *want, *got;
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    static const struct {
        uint32_t         gpus;
        dsa_attention_e  attention;
    } t[] = { { 1, DSA_ATTENTION_DATA }, { 2, DSA_ATTENTION_DATA },
              { 2, DSA_ATTENTION_TENSOR } };

    c = calloc(SEQS, sizeof(client_t));
    want = calloc(2 * SEQS, sizeof(rollout_t));
    assert_true(c != NULL && want != NULL);
    got = want + SEQS;

    (void) snprintf(model, sizeof(model), "%s/m", wide);

    memset(&conf, 0, sizeof(conf));
    conf.model = model;
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.kv_memory = 64 << 20;
    conf.max_tokens = 4 * BUDGET;
    conf.max_seqs = SEQS;
    conf.allowed = 1024;

    b = dsa_backend_cpu_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    for (i = 0; i < SEQS; i++) {
        client_init(&c[i], i + 40, 0, 20 + 11 * i);
        client_pages(&c[i], 8 * i);
    }

    rollouts(b, c, want, want, 1);
    b->close(b);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        b = backend_open(model, t[i].gpus, t[i].attention);
        memset(got, 0, SEQS * sizeof(rollout_t));

        for (j = 0; j < SEQS; j++) {
            client_init(&c[j], j + 40, j % b->ranks, 20 + 11 * j);
            client_pages(&c[j], 8 * j);
        }

        rollouts(b, c, got, want, 1);

        routes = dsa_model_config_moe_layers(&b->config)
                 * b->config.num_experts_per_tok;

        for (j = 0; j < SEQS; j++) {
            if (j % 3 != 1) {
                check_rollouts(&got[j], &want[j], c[j].prompt, routes);
            }
        }

        b->close(b);
    }

    free(c);
    free(want);
}


/*
 * Adds what tokens from..to-1 of all sequences have in a layer on each rank,
 * which has each experts.
 */

static void
loads_of(uint64_t rows[2], const rollout_t *got, const client_t *c,
    const dsa_backend_t *b, uint32_t layer, uint32_t step, uint32_t each)
{
    size_t    at;
    uint32_t  i, j, k, from, to, routes;

    k = b->config.num_experts_per_tok;
    routes = dsa_model_config_moe_layers(&b->config) * k;

    for (j = 0; j < SEQS; j++) {
        from = step == 0 ? 0 : c[j].prompt + step - 1;
        to = step == 0 ? c[j].prompt : from + 1;

        for ( /* void */ ; from < to; from++) {
            at = (size_t) from * routes + layer * k;

            for (i = 0; i < k; i++) {
                rows[got[j].experts[at + i] / each]++;
            }
        }
    }
}


/*
 * The backend counts the rows of experts, and those of the fullest rank in each
 * layer of each step, as the rollouts of the same steps have them.
 */

static void
test_loads(void **state)
{
    char            model[64];
    uint32_t        i, j, layer, ranks, each;
    uint64_t        rows[2], all, fullest;
    client_t       *c;
    rollout_t      *got;
    dsa_backend_t  *b;

    static const struct {
        uint32_t         gpus;
        dsa_attention_e  attention;
        uint32_t         ranks;         /* with experts of their own */
    } t[] = { { 1, DSA_ATTENTION_DATA, 1 }, { 2, DSA_ATTENTION_DATA, 2 },
              { 2, DSA_ATTENTION_TENSOR, 1 } };

    c = calloc(SEQS, sizeof(client_t));
    got = calloc(SEQS, sizeof(rollout_t));
    assert_true(c != NULL && got != NULL);

    (void) snprintf(model, sizeof(model), "%s/m", wide);

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        b = backend_open(model, t[i].gpus, t[i].attention);
        assert_int_equal(b->expert_rows, 0);

        for (j = 0; j < SEQS; j++) {
            client_init(&c[j], j + 40, j % b->ranks, 20 + 11 * j);
            client_pages(&c[j], 8 * j);
        }

        rollouts(b, c, got, got, 3);

        all = 0;
        fullest = 0;
        ranks = t[i].ranks;
        each = b->config.n_routed_experts / ranks;

        for (j = 0; j < ROUTED; j++) {
            for (layer = 0; layer < dsa_model_config_moe_layers(&b->config);
                 layer++)
            {
                memset(rows, 0, sizeof(rows));
                loads_of(rows, got, c, b, layer, j, each);

                all += rows[0] + rows[1];
                fullest += ranks * (rows[0] > rows[1] ? rows[0] : rows[1]);
            }
        }

        assert_true(all != 0);
        assert_int_equal(b->expert_rows, all);
        assert_int_equal(b->fullest_rows, fullest);

        b->close(b);
    }

    free(c);
    free(got);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rollout),
        cmocka_unit_test(test_loads)
    };

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
