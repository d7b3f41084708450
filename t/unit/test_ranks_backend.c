
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/ranks.h"


/* The CPU backend with several ranks, as the scheduler sees it. */


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
    step_fails(b, seq, 9, "5 sequences with 20 tokens on rank 0; expected at "
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits)
    };

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
