
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
#include <cuda_runtime_api.h>

#include "engine/backend.h"
#include "engine/cuda/group.h"
#include "t/gpu/gpu.h"


/*
 * A replica of several ranks through the backend's interface: steps, pages of
 * each rank, page copies, and prompts that the ranks share out.  The answers of
 * one rank are the oracle.  Ranks are on as many GPUs as the machine has, and
 * share them when there are fewer.
 * "attention tensor" needs wider experts than those of the small model: wide is
 * a copy with the same function (t/lib/DSA/Widen.pm).
 */

#define MODEL       "t/data/golden/a-fp8"
#define PAGES       64              /* of each rank */
#define CONTEXT     1024
#define PROMPT      300
#define ANSWER      40
#define SEQS        8
#define BUDGET      1024

/*
 * Sums in another order move the logits of this model by 5 to 7 % of their
 * norm, and by more where a choice flips; one rank and two of the CPU backend
 * choose another token in 15 % of the positions (golden_ranks.t).  A sequence
 * with a wrong page or rank would have none of the tokens.
 */
#define EQUAL       70          /* least percentage of equal tokens */
#define NOISE       0.3f        /* most mean difference of a logprob */


typedef struct {
    uint32_t            rank;
    uint32_t            prompt;
    uint32_t            tokens[CONTEXT];
    uint32_t            pages[PAGES];   /* block table */
    dsa_sample_t        sample[ANSWER];
} client_t;


static char  wide[] = "/tmp/dsa-group-XXXXXX";


static const dsa_sampling_t  greedy = {
    .top_p = 1, .logprobs = 1, .top_logprobs = 2
};


static uint32_t
device(uint32_t rank)
{
    int  n;

    n = 1;
    (void) cudaGetDeviceCount(&n);

    return rank % (uint32_t) n;
}


static dsa_backend_t *
backend_open(const char *model, uint32_t gpus, dsa_attention_e attention)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    if (dsa_model_config_read(&config, model, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));

    conf.model = model;
    conf.precision = DSA_SERVED;
    conf.gpus = gpus;
    conf.attention = attention;
    conf.context = CONTEXT;
    conf.kv_memory = (uint64_t) PAGES * DSA_PAGE_TOKENS
                     * config.num_hidden_layers * (656 + 132);
    conf.max_tokens = BUDGET * (attention == DSA_ATTENTION_DATA ? gpus : 1);
    conf.max_seqs = SEQS;
    conf.allowed = config.vocab_size;

    for (i = 0; i < gpus; i++) {
        conf.gpu[i] = device(i);
    }

    b = dsa_backend_cuda_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    assert_true(b->pages >= PAGES);
    assert_int_equal(b->ranks, attention == DSA_ATTENTION_DATA ? gpus : 1);
    assert_int_equal(b->rank_tokens, BUDGET);

    return b;
}


/* A client with random tokens and pages of its own on a rank. */

static void
client_init(client_t *c, uint32_t seed, uint32_t rank, uint32_t prompt)
{
    uint32_t  i;

    memset(c, 0, sizeof(client_t));

    c->rank = rank;
    c->prompt = prompt;

    for (i = 0; i < prompt; i++) {
        seed = seed * 1664525 + 1013904223;
        c->tokens[i] = (seed >> 8) % 1024;
    }
}


static void
client_pages(client_t *c, uint32_t first)
{
    uint32_t  i, n;

    n = (c->prompt + ANSWER + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        c->pages[i] = first + n - 1 - i;
    }
}


static void
entry(dsa_batch_seq_t *s, client_t *c, uint32_t start, uint32_t n,
    dsa_sample_t *sample)
{
    memset(s, 0, sizeof(dsa_batch_seq_t));

    s->tokens = c->tokens;
    s->start = start;
    s->n_input = n;
    s->input_from = DSA_INPUT_KNOWN;
    s->n_prompt = c->prompt;
    s->rank = c->rank;
    s->pages = c->pages;
    s->sampling = sample != NULL ? &greedy : NULL;
    s->sample = sample;
}


static void
step(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n)
{
    dsa_err_t  err;

    if (b->start(b, seq, n, &err) != DSA_OK || b->wait(b, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }
}


/*
 * The prompts from position start on in one step, then answers together.  With
 * want, the tokens of these answers are the inputs, so that one other token
 * does not change the rest of an answer.
 */

static void
answer(dsa_backend_t *b, client_t *c, uint32_t n, uint32_t start,
    const client_t *want)
{
    uint32_t         i, j;
    dsa_batch_seq_t  seq[SEQS];

    for (i = 0; i < ANSWER; i++) {
        for (j = 0; j < n; j++) {
            if (i == 0) {
                entry(&seq[j], &c[j], start, c[j].prompt - start,
                      &c[j].sample[0]);

            } else {
                c[j].tokens[c[j].prompt + i - 1] =
                                (want != NULL ? &want[j] : &c[j])
                                ->sample[i - 1].token;
                entry(&seq[j], &c[j], c[j].prompt + i - 1, 1,
                      &c[j].sample[i]);
            }
        }

        step(b, seq, n);
    }
}


static void
same(const client_t *a, const client_t *b)
{
    assert_memory_equal(a->sample, b->sample, sizeof(a->sample));
}


/* Most tokens are equal, and have about the same probabilities. */

static void
alike(const client_t *got, const client_t *want)
{
    float                far;
    uint32_t             i, equal;
    const dsa_sample_t  *g, *w;

    far = 0;
    equal = 0;

    for (i = 0; i < ANSWER; i++) {
        g = &got->sample[i];
        w = &want->sample[i];

        if (g->token == w->token) {
            far += g->logprob > w->logprob ? g->logprob - w->logprob
                                           : w->logprob - g->logprob;
            equal++;
        }
    }

    if (equal * 100 < ANSWER * EQUAL || far > NOISE * (float) equal) {
        fail_msg("%u of %u tokens are those of one rank; their logprobs "
                 "differ by %f", equal, ANSWER, far / (float) equal);
    }
}


/* The oracle: each client alone on a replica of one rank. */

static void
alone(const char *model, client_t *c, uint32_t n)
{
    uint32_t        i;
    dsa_backend_t  *b;

    b = backend_open(model, 1, DSA_ATTENTION_DATA);

    for (i = 0; i < n; i++) {
        client_pages(&c[i], 0);
        answer(b, &c[i], 1, 0, NULL);
    }

    b->close(b);
}


/* A sequence has the same bits on each rank, beside none and beside others. */

static void
test_data(void **state)
{
    uint32_t         i, gpus, turn;
    client_t        *c, *want, *first;
    dsa_backend_t   *b;

    c = calloc(3 * SEQS, sizeof(client_t));
    assert_non_null(c);
    want = c + SEQS;
    first = want + SEQS;

    for (i = 0; i < SEQS; i++) {
        client_init(&want[i], i + 1, 0, 20 + 17 * i);
    }

    alone(MODEL, want, SEQS);

    for (gpus = 2; gpus <= 4; gpus *= 2) {
        b = backend_open(MODEL, gpus, DSA_ATTENTION_DATA);

        for (i = 0; i < 2; i++) {
            client_init(&c[i], 5, i, 20 + 17 * 4);
            client_pages(&c[i], 7 * i);
            answer(b, &c[i], 1, 0, &want[4]);
            alike(&c[i], &want[4]);
        }

        same(&c[0], &c[1]);

        for (turn = 0; turn < 3; turn++) {
            for (i = 0; i < SEQS; i++) {
                client_init(&c[i], i + 1, i % gpus, 20 + 17 * i);
                client_pages(&c[i], i / gpus * 8);
            }

            answer(b, c, SEQS, 0, want);

            for (i = 0; i < SEQS; i++) {
                alike(&c[i], &want[i]);
            }

            if (turn > 0) {
                for (i = 0; i < SEQS; i++) {
                    same(&c[i], &first[i]);
                }
            }

            memcpy(first, c, SEQS * sizeof(client_t));
        }

        b->close(b);
    }

    free(c);
}


/* A prefix that was computed on one rank is used on another one. */

static void
test_copy(void **state)
{
    uint32_t          i;
    client_t          c, want;
    dsa_err_t         err;
    dsa_backend_t    *b;
    dsa_batch_seq_t   seq;
    dsa_page_copy_t   copy[4];

    b = backend_open(MODEL, 2, DSA_ATTENTION_DATA);

    /* 256 tokens, then the rest on the same rank */

    client_init(&want, 9, 0, PROMPT);
    client_pages(&want, 10);
    entry(&seq, &want, 0, 256, NULL);
    step(b, &seq, 1);
    answer(b, &want, 1, 256, NULL);

    /* the same 256 tokens from the other rank, into other pages */

    client_init(&c, 9, 1, PROMPT);
    client_pages(&c, 30);

    for (i = 0; i < 4; i++) {
        copy[i].from_rank = 0;
        copy[i].from_page = want.pages[i];
        copy[i].to_rank = 1;
        copy[i].to_page = c.pages[i];
    }

    if (b->copy(b, copy, 4, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    answer(b, &c, 1, 256, NULL);
    same(&c, &want);

    copy[0].to_page = b->pages;
    assert_int_equal(b->copy(b, copy, 1, &err), DSA_ERROR);
    copy[0].to_page = 0;
    copy[0].to_rank = 2;
    assert_int_equal(b->copy(b, copy, 1, &err), DSA_ERROR);

    b->close(b);
}


/* A prompt whose tokens the ranks share out, in steps of several sizes. */

static void
test_shared(void **state)
{
    uint32_t          i, r, at, n, gpus, chunk;
    uint32_t          table[4][PAGES];
    client_t          c, other, want;
    dsa_backend_t    *b;
    const uint32_t   *copies[4];
    dsa_batch_seq_t   seq[2];

    client_init(&want, 11, 0, PROMPT);
    alone(MODEL, &want, 1);

    for (gpus = 2; gpus <= 4; gpus *= 2) {
        b = backend_open(MODEL, gpus, DSA_ATTENTION_DATA);

        for (chunk = 3; chunk <= 512; chunk = chunk * 13 - 2) {
            client_init(&c, 11, chunk % gpus, PROMPT);
            client_init(&other, 12, 0, 200);
            client_pages(&other, 50);

            for (r = 0; r < gpus; r++) {
                client_pages(&c, 5 * r);
                memcpy(table[r], c.pages, sizeof(c.pages));
                copies[r] = table[r];
            }

            memcpy(c.pages, table[c.rank], sizeof(c.pages));

            for (at = 0; at < PROMPT; at += n) {
                n = PROMPT - at < chunk ? PROMPT - at : chunk;

                entry(&seq[0], &c, at, n,
                      at + n == PROMPT ? &c.sample[0] : NULL);
                seq[0].copies = copies;

                /* beside a prompt that only one rank computes */

                entry(&seq[1], &other, 0, 200, &other.sample[0]);
                step(b, seq, at == 0 ? 2 : 1);
            }

            /* the answer may go on with the pages of any rank */

            for (r = 0; r < gpus; r++) {
                c.rank = r;
                memcpy(c.pages, table[r], sizeof(c.pages));

                for (i = 1; i < ANSWER; i++) {
                    c.tokens[PROMPT + i - 1] = want.sample[i - 1].token;
                    entry(&seq[0], &c, PROMPT + i - 1, 1, &c.sample[i]);
                    step(b, seq, 1);
                }

                alike(&c, &want);
            }
        }

        b->close(b);
    }
}


static void
test_tensor(void **state)
{
    char            model[sizeof(wide) + 2];
    uint32_t        i, turn;
    client_t       *c, *want, *first;
    dsa_backend_t  *b;

    (void) snprintf(model, sizeof(model), "%s/m", wide);

    c = calloc(3 * SEQS, sizeof(client_t));
    assert_non_null(c);
    want = c + SEQS;
    first = want + SEQS;

    for (i = 0; i < SEQS; i++) {
        client_init(&want[i], i + 1, 0, 20 + 17 * i);
    }

    alone(model, want, SEQS);

    b = backend_open(model, 2, DSA_ATTENTION_TENSOR);
    assert_null(b->copy);

    for (turn = 0; turn < 3; turn++) {
        for (i = 0; i < SEQS; i++) {
            client_init(&c[i], i + 1, 0, 20 + 17 * i);
            client_pages(&c[i], i * 8);
        }

        answer(b, c, SEQS, 0, want);

        for (i = 0; i < SEQS; i++) {
            alike(&c[i], &want[i]);
        }

        if (turn > 0) {
            for (i = 0; i < SEQS; i++) {
                same(&c[i], &first[i]);
            }
        }

        memcpy(first, c, SEQS * sizeof(client_t));
    }

    b->close(b);
    free(c);
}


/* A step that a rank does not take part in ends, and names that rank. */

static void
test_missing(void **state)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_weights_t       *weights;
    dsa_cuda_conf_t      conf;
    dsa_cuda_step_t      run;
    dsa_cuda_group_t    *group;

    weights = dsa_weights_open(MODEL, &err);

    if (weights == NULL) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));

    conf.weights = weights;
    conf.config = weights->config;
    conf.gpus = 2;
    conf.gpu[0] = device(0);
    conf.gpu[1] = device(1);
    conf.context = CONTEXT;
    conf.kv_memory = 32 << 20;
    conf.max_tokens = 64;
    conf.max_seqs = 64;
    conf.allowed = 1024;

    group = dsa_cuda_group_open(&conf, &err);

    if (group == NULL) {
        fail_msg("%s", err.text);
    }

    for (i = 0; i < 2; i++) {
        group->rank[i]->peers.exchange.timeout_ns = 200000000;
    }

    memset(&run, 0, sizeof(run));
    run.tokens = 1;
    run.decode = 1;
    run.fullest = 1;

    gpu_ok(dsa_cuda_rank_attach(group->rank[1]));
    assert_int_equal(dsa_cuda_rank_run(group->rank[1], &run, &err), DSA_OK);
    gpu_ok(cudaStreamSynchronize(group->rank[1]->stream));

    assert_int_equal(dsa_cuda_group_check(group, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "has received no data from GPU"));
    assert_int_equal(group->rank[1]->fault->missing, 0);

    assert_int_equal(group->rank[0]->fault->failed, 0);

    dsa_cuda_group_close(group);
    dsa_weights_close(weights);
}


/*
 * Rollouts of a prompt and some decodes, beside sequences without, on each
 * rank.  The CPU backend is the oracle, whose tokens are the inputs.  The
 * roundings differ, so that some choices do: an expert in another layer, of
 * another token or in another place would be equal in one of ten at most.  On
 * two H200 nine of ten experts were equal, and logprobs of equal tokens 0.2
 * apart on average.
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


static int
wide_make(void **state)
{
    char  command[256];

    if (mkdtemp(wide) == NULL) {
        return -1;
    }

    (void) snprintf(command, sizeof(command), "perl -It/lib -MDSA::Widen -e "
                    "'widen(@ARGV)' %s %s/m 2", MODEL, wide);

    return system(command);
}


static int
wide_remove(void **state)
{
    char  command[256];

    (void) snprintf(command, sizeof(command), "rm -rf %s", wide);

    return system(command);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_rollout),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_missing)
    };

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
