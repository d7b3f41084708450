
/*
 * Copyright (C) The nginx-dsa authors
 */


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
#include "t/gpu/group.h"


/*
 * A replica of several ranks: steps, pages of each rank, page copies, and
 * prompts that the ranks share out.  The answers of one rank are the oracle.
 *
 * Sums in another order move the logits of this model by 5 to 7 % of their
 * norm, and by more where a choice flips; one rank and two of the CPU backend
 * choose another token in 15 % of the positions (golden_ranks.t).  A sequence
 * with a wrong page or rank would have none of the tokens.
 */
#define EQUAL       70          /* least percentage of equal tokens */
#define NOISE       0.3f        /* most mean difference of a logprob */


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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_missing)
    };

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
