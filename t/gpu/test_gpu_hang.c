
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

#include "base/clock.h"
#include "engine/backend.h"
#include "engine/cuda/group.h"
#include "t/gpu/spin.h"


/*
 * A GPU that does not respond: a kernel occupies it, so that its part of a step
 * does not run.  The wait for the step ends with an error that has its number.
 */

#define MODEL       "t/data/golden/a-fp8"
#define PAGES       8
#define TOKENS      5


static const dsa_sampling_t  greedy = { .top_p = 1 };


static dsa_backend_t *
backend_open(void)
{
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_model_config_t   config;
    dsa_backend_conf_t   conf;

    if (dsa_model_config_read(&config, MODEL, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    memset(&conf, 0, sizeof(conf));

    conf.model = MODEL;
    conf.random = 1;
    conf.precision = DSA_SERVED;
    conf.gpus = 2;
    conf.gpu[0] = 1;
    conf.gpu[1] = 0;
    conf.attention = DSA_ATTENTION_DATA;
    conf.context = PAGES * DSA_PAGE_TOKENS;
    conf.kv_memory = (uint64_t) PAGES * DSA_PAGE_TOKENS
                     * config.num_hidden_layers * (656 + 132);
    conf.max_tokens = 256;
    conf.max_seqs = 2;
    conf.allowed = config.vocab_size;

    b = dsa_backend_cuda_open(&conf, &err);

    if (b == NULL) {
        fail_msg("%s", err.text);
    }

    return b;
}


/* A prompt on rank 0. */

static int
step(dsa_backend_t *b, dsa_err_t *err)
{
    int              rc;
    dsa_sample_t     sample;
    dsa_batch_seq_t  seq;

    static const uint32_t  page = 3;
    static const uint32_t  tokens[TOKENS] = { 5, 6, 7, 8, 9 };

    memset(&seq, 0, sizeof(seq));

    seq.tokens = tokens;
    seq.n_input = TOKENS;
    seq.input_from = DSA_INPUT_KNOWN;
    seq.n_prompt = TOKENS;
    seq.pages = &page;
    seq.sampling = &greedy;
    seq.sample = &sample;

    rc = b->start(b, &seq, 1, err);

    return rc == DSA_OK ? b->wait(b, err) : rc;
}


static void
test_hang(void **state)
{
    int             n;
    volatile int   *end;
    uint64_t        begin;
    dsa_err_t       err;
    cudaStream_t    stream;
    dsa_backend_t  *b;

    n = 0;

    if (cudaGetDeviceCount(&n) != 0 || n < 2) {
        skip();
    }

    b = backend_open();

    assert_int_equal(cudaSetDevice(0), 0);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     0);
    assert_int_equal(cudaHostAlloc((void **) &end, sizeof(int),
                                   cudaHostAllocMapped), 0);

    /* the first launch may load the kernel */

    *end = 1;
    assert_int_equal(gpu_spin(end, stream), 0);
    assert_int_equal(cudaStreamSynchronize(stream), 0);

    if (step(b, &err) != DSA_OK) {
        fail_msg("%s", err.text);
    }

    /* rank 1 is on GPU 0 */

    *end = 0;
    assert_int_equal(gpu_spin(end, stream), 0);

    begin = dsa_clock_ms();

    assert_int_equal(step(b, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "GPU 1 has received no data from GPU 0 "
                           "for 20000 ms"));
    assert_null(strchr(err.text, '\n'));

    assert_in_range(dsa_clock_ms() - begin, DSA_CUDA_EXCHANGE_MS,
                    DSA_CUDA_EXCHANGE_MS + 5000);

    *end = 1;
    assert_int_equal(cudaStreamSynchronize(stream), 0);

    b->close(b);

    assert_int_equal(cudaStreamDestroy(stream), 0);
    assert_int_equal(cudaFreeHost((void *) end), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_hang)
    };

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, NULL, NULL);
}
