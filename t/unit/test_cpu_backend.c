
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The CPU as a backend of the engine: steps, samples, pages, fingerprints.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/golden.h"


static void
test_backend(void **state)
{
    char                fingerprint[36];
    uint32_t            tokens[8] = { 0, 5, 7, 9, 11 }, pages[1] = { 3 }, i;
    dsa_err_t           err;
    dsa_sample_t        sample, again;
    dsa_backend_t      *b;
    dsa_sampling_t      sampling;
    dsa_batch_seq_t     seq;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = GOLDEN "a-fp8";
    conf.precision = DSA_SERVED;
    conf.kv_memory = 64ULL * 3 * (656 + 132) * 8;
    conf.gpus = 1;
    conf.max_tokens = 16;
    conf.max_seqs = 2;
    conf.allowed = 1024;

    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    assert_int_equal(b->pages, 8);
    assert_int_equal(b->config.vocab_size, 1024);
    assert_int_equal(strlen(b->fingerprint), 32);
    memcpy(fingerprint, b->fingerprint, sizeof(fingerprint));

    memset(&sampling, 0, sizeof(sampling));
    sampling.top_p = 1;
    sampling.logprobs = 1;
    sampling.top_logprobs = 5;

    memset(&seq, 0, sizeof(seq));
    seq.tokens = tokens;
    seq.n_input = 5;
    seq.n_prompt = 5;
    seq.pages = pages;
    seq.sampling = &sampling;
    seq.sample = &sample;

    must(b->start(b, &seq, 1, &err), &err);
    assert_true(sample.token < 1024);
    assert_int_equal(sample.n_top, 5);
    assert_true(sample.top[0] == sample.token);
    assert_true(sample.logprob < 0);

    for (i = 1; i < 5; i++) {
        assert_true(sample.top_logprob[i] <= sample.top_logprob[i - 1]);
    }

    /* cache only, then the last row alone */

    seq.n_input = 4;
    seq.sampling = NULL;
    seq.sample = NULL;
    must(b->start(b, &seq, 1, &err), &err);

    seq.start = 4;
    seq.n_input = 1;
    seq.sampling = &sampling;
    seq.sample = &again;
    must(b->start(b, &seq, 1, &err), &err);
    assert_float_equal(again.logprob, sample.logprob, 0.3);

    seq.n_input = 17;
    seq.start = 0;
    assert_int_equal(b->start(b, &seq, 3, &err), DSA_ERROR);

    b->close(b);

    conf.precision = DSA_EXACT;
    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_string_not_equal(b->fingerprint, fingerprint);
    b->close(b);

    conf.model = GOLDEN "nowhere";
    assert_null(dsa_backend_cpu_open(&conf, &err));
    assert_non_null(strstr(err.text, "nowhere"));
}


/* "weights fp8" is another model: neither pages nor answers are continued. */

static void
test_quantized(void **state)
{
    char                fingerprint[36], identity[36];
    dsa_err_t           err;
    dsa_backend_t      *b;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = GOLDEN "b-bf16";
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.max_tokens = 16;
    conf.max_seqs = 2;
    conf.allowed = 1024;

    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->config.format[DSA_MATRICES_EXPERTS], DSA_FORMAT_FLOAT);
    memcpy(fingerprint, b->fingerprint, sizeof(fingerprint));
    memcpy(identity, b->identity, sizeof(identity));
    b->close(b);

    conf.quantize = 1;
    b = dsa_backend_cpu_open(&conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->config.format[DSA_MATRICES_EXPERTS], DSA_FORMAT_FP8);
    assert_string_not_equal(b->fingerprint, fingerprint);
    assert_string_not_equal(b->identity, identity);
    b->close(b);

    conf.model = GOLDEN "a-fp8";
    assert_null(dsa_backend_cpu_open(&conf, &err));
    assert_non_null(strstr(err.text, "in FP8 already"));
}


/* Pages of one format are of no use to a backend with the other. */

static void
test_formats(void **state)
{
    uint32_t            i;
    dsa_backend_t       b[2];
    dsa_backend_conf_t  conf;
    dsa_model_config_t  config;

    memset(&conf, 0, sizeof(conf));
    conf.precision = DSA_SERVED;

    for (i = 0; i < 2; i++) {
        memset(&b[i], 0, sizeof(dsa_backend_t));
        b[i].kv_bf16 = i;
        dsa_backend_fingerprint(&b[i], "model", &conf);
    }

    assert_string_not_equal(b[0].identity, b[1].identity);
    assert_string_not_equal(b[0].fingerprint, b[1].fingerprint);

    memset(&config, 0, sizeof(config));
    config.num_hidden_layers = 2;
    config.layer[0].selection = DSA_SELECTION_ALL;
    config.layer[1].selection = DSA_SELECTION_ALL;

    assert_true(dsa_kv_bf16(DSA_BACKEND_CUDA, DSA_KV_AUTO, &config));
    assert_false(dsa_kv_bf16(DSA_BACKEND_CPU, DSA_KV_AUTO, &config));
    assert_false(dsa_kv_bf16(DSA_BACKEND_CUDA, DSA_KV_FP8, &config));

    config.layer[1].selection = DSA_SELECTION_OWN;

    assert_false(dsa_kv_bf16(DSA_BACKEND_CUDA, DSA_KV_AUTO, &config));
    assert_true(dsa_kv_bf16(DSA_BACKEND_CUDA, DSA_KV_BF16, &config));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_backend),
        cmocka_unit_test(test_quantized),
        cmocka_unit_test(test_formats)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
