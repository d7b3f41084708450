
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/ranks.h"


/* The CPU backend with several ranks, as the scheduler calls it. */


static void
refused(const char *dir, split_t split, const char *why)
{
    dsa_err_t           err;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = dir;
    conf.gpus = split.gpus;
    conf.attention = split.attention;
    conf.max_tokens = 64;
    conf.max_seqs = 1;
    conf.kv_memory = 64 << 20;
    conf.allowed = 100;

    assert_null(dsa_backend_cpu_open(&conf, &err));

    if (strstr(err.text, why) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, why);
    }
}


static void
test_refused(void **state)
{
    static const split_t  none = { 0, DSA_ATTENTION_DATA };
    static const split_t  data3 = { 3, DSA_ATTENTION_DATA };
    static const split_t  data16 = { 16, DSA_ATTENTION_DATA };
    static const split_t  data17 = { 17, DSA_ATTENTION_DATA };
    static const split_t  tensor3 = { 3, DSA_ATTENTION_TENSOR };
    static const split_t  tensor8 = { 8, DSA_ATTENTION_TENSOR };

    refused(GOLDEN "a-fp8", none, "0 GPUs were requested; expected 1 to 16");
    refused(GOLDEN "a-fp8", data17, "17 GPUs");
    refused(GOLDEN "a-fp8", data3, "16 experts cannot be shared out equally "
                                   "to 3 GPUs");
    refused(DEMO, data3, "8 experts cannot be shared out equally to 3 GPUs");
    refused(DEMO, data16, "8 experts cannot be shared out equally to 16 GPUs");
    refused(DEMO, tensor2, "\"moe_intermediate_size\" is 128 and cannot be "
                           "split over 2 GPUs; expected a multiple of 256");
    refused(wide, tensor3, "\"num_attention_heads\" is 16 and cannot be split "
                           "over 3 GPUs");
    refused(wide, tensor8, "\"moe_intermediate_size\" is 512 and cannot be "
                           "split over 8 GPUs");
}


static void
step_fails(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n, const char *why)
{
    dsa_err_t  err;

    assert_int_equal(b->start(b, seq, n, &err), DSA_ERROR);

    if (strstr(err.text, why) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, why);
    }
}


/* Numbers of ranks and pages, and the limits of a step. */

static void
test_limits(void **state)
{
    uint32_t            i, tokens[64], page[2] = { 3, 3 };
    const uint32_t     *copies[2] = { &page[0], &page[1] };
    dsa_err_t           err;
    dsa_sample_t        sample[8];
    dsa_backend_t      *b;
    dsa_sampling_t      sampling;
    dsa_batch_seq_t     seq[9];
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    memset(&sampling, 0, sizeof(sampling));
    memset(seq, 0, sizeof(seq));
    memset(tokens, 0, sizeof(tokens));

    conf.model = GOLDEN "a-fp8";
    conf.precision = DSA_SERVED;
    conf.kv_memory = 64ULL * 3 * (656 + 132) * 8;
    conf.gpus = 2;
    conf.max_tokens = 33;
    conf.max_seqs = 4;
    conf.allowed = 1024;
    sampling.top_p = 1;

    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    assert_int_equal(b->ranks, 2);
    assert_int_equal(b->pages, 8);
    assert_int_equal(b->rank_tokens, 17);
    assert_non_null(b->copy);

    for (i = 0; i < 9; i++) {
        seq[i].tokens = tokens;
        seq[i].n_input = 4;
        seq[i].n_prompt = 4;
        seq[i].rank = i % 2;
        seq[i].pages = page;
        seq[i].sampling = &sampling;
        seq[i].sample = &sample[i % 8];
    }

    /* the page of each rank is the same number, not the same page */

    must(b->start(b, seq, 2, &err), &err);
    must(b->wait(b, &err), &err);
    must(b->start(b, seq, 2, &err), &err);
    must(b->wait(b, &err), &err);
    assert_int_equal(sample[0].token, sample[1].token);

    /* four sequences on each rank, and not five */

    for (i = 0; i < 8; i++) {
        seq[i].pages = &page[0];
    }

    must(b->start(b, seq, 8, &err), &err);
    must(b->wait(b, &err), &err);
    step_fails(b, seq, 9, "9 sequences; expected at most 4 on each of 2");

    seq[1].rank = 0;
    step_fails(b, seq, 8, "5 sequences with 20 tokens on rank 0; expected at "
                          "most 4 with 17");

    seq[1].rank = 2;
    step_fails(b, seq, 2, "on rank 2; expected a rank below 2");
    seq[1].rank = 1;

    seq[1].n_input = 18;
    step_fails(b, seq, 2, "18 tokens on rank 1");
    seq[1].n_input = 17;
    must(b->start(b, seq, 2, &err), &err);
    must(b->wait(b, &err), &err);

    /* tokens of a sequence with copies count on both ranks, rounded up */

    seq[0].copies = copies;
    seq[0].n_input = 33;
    must(b->start(b, seq, 1, &err), &err);
    must(b->wait(b, &err), &err);
    seq[0].n_input = 35;
    step_fails(b, seq, 1, "18 tokens on rank 0");
    seq[0].n_input = 1;
    step_fails(b, seq, 2, "18 tokens on rank 1");

    seq[0].n_input = 8;
    page[1] = 8;
    step_fails(b, seq, 1, "is 8; expected a page below 8");

    b->close(b);

    /* a decode of each sequence fits even if max_tokens is less */

    conf.max_tokens = 4;
    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->rank_tokens, 4);
    b->close(b);

    conf.model = wide;
    conf.attention = DSA_ATTENTION_TENSOR;
    conf.max_tokens = 33;
    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->ranks, 1);
    assert_int_equal(b->pages, 8);
    assert_int_equal(b->rank_tokens, 33);
    assert_null(b->copy);
    b->close(b);
}


/*
 * Two sequences that have the same numbers of pages on two ranks, and a third
 * one that is shared out, have the samples that they have on one rank.
 */

static void
run_three(split_t split, dsa_sample_t sample[3][6])
{
    uint32_t             i, j, step, tokens[3][150], page[3][2][3];
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_sampling_t       sampling;
    const uint32_t      *copies[2];
    dsa_batch_seq_t      seq[3];
    dsa_page_copy_t      copy;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = GOLDEN "a-fp8";
    conf.precision = DSA_EXACT;
    conf.kv_memory = 16 << 20;
    conf.gpus = split.gpus;
    conf.attention = split.attention;
    conf.max_tokens = 512;
    conf.max_seqs = 4;
    conf.allowed = 1024;

    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    memset(&sampling, 0, sizeof(sampling));
    sampling.top_p = 1;
    sampling.logprobs = 1;
    memset(seq, 0, sizeof(seq));

    for (i = 0; i < 3; i++) {
        for (j = 0; j < 150; j++) {
            tokens[i][j] = (j * (71 + i) + i) % 1024;
        }

        for (j = 0; j < 3; j++) {
            page[i][0][j] = 3 * i + j;
            page[i][1][j] = b->ranks == 1 || i == 2 ? 3 * i + 2 - j : j;
        }

        seq[i].tokens = tokens[i];
        seq[i].n_input = 100 + i;
        seq[i].n_prompt = 100 + i;
        seq[i].rank = i == 1 ? b->ranks - 1 : 0;
        seq[i].pages = page[i][seq[i].rank];
        seq[i].sampling = &sampling;
    }

    copies[0] = page[2][0];
    copies[1] = page[2][1];
    seq[2].copies = b->ranks == 2 ? copies : NULL;

    for (step = 0; step < 6; step++) {
        for (i = 0; i < 3; i++) {
            seq[i].sample = &sample[i][step];
        }

        must(b->start(b, seq, 3, &err), &err);
        must(b->wait(b, &err), &err);

        for (i = 0; i < 3; i++) {
            seq[i].start += seq[i].n_input;
            seq[i].n_input = 1;
            tokens[i][seq[i].start] = sample[i][step].token;
        }

        /* the third sequence continues on one rank, in step 2 on the other */

        seq[2].copies = NULL;
        seq[2].rank = step == 1 ? b->ranks - 1 : 0;
        seq[2].pages = page[2][seq[2].rank];

        /* a rank that continues gets the page with the last tokens */

        if (b->copy != NULL && step != 0) {
            copy.from_rank = 1 - seq[2].rank;
            copy.from_page = page[2][copy.from_rank][1];
            copy.to_rank = seq[2].rank;
            copy.to_page = page[2][copy.to_rank][1];

            must(b->copy(b, &copy, step <= 2, &err), &err);
        }
    }

    b->close(b);
}


static void
test_steps(void **state)
{
    uint32_t      i, j;
    dsa_sample_t  want[3][6], got[3][6];

    run_three(one, want);
    run_three(data2, got);

    for (i = 0; i < 3; i++) {
        for (j = 0; j < 6; j++) {
            assert_int_equal(got[i][j].token, want[i][j].token);
            assert_float_equal(got[i][j].logprob, want[i][j].logprob, 1e-4);
        }
    }

    /* different sequences have different samples */

    assert_int_not_equal(want[0][0].token, want[1][0].token);
    assert_int_not_equal(want[1][0].token, want[2][0].token);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_steps)
    };

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
