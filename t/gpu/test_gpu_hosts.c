
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>


/*
 * Two hosts of a GPU each, which are two processes of this machine: NCCL is
 * made to exchange over sockets, as between machines.  The answers have the
 * bits of those of two ranks in one process, which exchange by peer kernels.
 */

#define JOIN_BACKEND    DSA_BACKEND_CUDA
#define JOIN_PRECISION  DSA_SERVED
#define JOIN_MODEL      GOLDEN "a-fp8"
#define JOIN_PAGE       (64 * 3 * (656 + 132))
#define JOIN_GPU(rank)  (rank)
#define JOIN_OPEN       hosts_open

#include "t/unit/hosts_bits.h"

static dsa_backend_t *hosts_open(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);

#include "engine/cuda/group.h"
#include "t/unit/join.h"


#define STEPS       200         /* that are measured */


static uint32_t  followers;     /* 0: both ranks are in this process */
static hosts_t   hosts;
static char      nccl_log[64];  /* of this process */
static int       enough;        /* 1: there are two GPUs */


static dsa_backend_t *
hosts_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_conf_t  own;

    if (followers == 0 || conf->gpus == 1) {
        return dsa_backend_open(kind, conf, err);
    }

    own = *conf;
    own.gpus = 1;

    hosts_init(&hosts, conf->model, 1, 1);
    hosts.follower[0].kind = DSA_BACKEND_CUDA;
    hosts.follower[0].gpu = 1;
    hosts.follower[0].exec = 1;

    /* the follower reports warnings only, to standard error */

    (void) setenv("NCCL_DEBUG", "WARN", 1);
    (void) unsetenv("NCCL_DEBUG_FILE");
    hosts_start(&hosts);
    (void) setenv("NCCL_DEBUG", "INFO", 1);
    (void) setenv("NCCL_DEBUG_FILE", nccl_log, 1);

    return dsa_hosts_lead(kind, &own, &hosts.leader, err);
}


/* NCCL reports the way that it has found to each rank. */

static void
test_network(void **state)
{
    char      line[1024];
    FILE     *f;
    uint32_t  net;

    if (!enough) {
        skip();
    }

    f = fopen(nccl_log, "r");
    assert_non_null(f);
    net = 0;

    while (fgets(line, sizeof(line), f) != NULL) {
        net += strstr(line, "via NET/") != NULL;

        if (strstr(line, "via P2P") != NULL || strstr(line, "via SHM") != NULL)
        {
            fail_msg("%s", line);
        }

        if (strstr(line, "via NET/") != NULL) {
            print_message("%s", line);
        }
    }

    (void) fclose(f);
    assert_true(net > 0);
}


static void
bits_of(uint32_t n, bits_t *s)
{
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = JOIN_MODEL;
    conf.precision = DSA_SERVED;
    conf.gpus = 2;
    conf.gpu[1] = 1;
    conf.kv_memory = PAGES * (uint64_t) JOIN_PAGE;
    conf.max_tokens = 256;
    conf.max_seqs = SEQS;
    conf.allowed = VOCAB;
    conf.context = PAGES * DSA_PAGE_TOKENS;

    followers = n;
    b = hosts_open(DSA_BACKEND_CUDA, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(b->ranks, 2);

    bits_run(b, s);
    b->close(b);

    if (n != 0) {
        hosts_end(&hosts, 0);
    }
}


static void
test_bits(void **state)
{
    bits_t  *one, *two;

    if (!enough) {
        skip();
    }

    one = calloc(SEQS, sizeof(bits_t));
    two = calloc(SEQS, sizeof(bits_t));
    assert_true(one != NULL && two != NULL);

    bits_of(0, one);
    bits_of(1, two);

    bits_same(one, two);

    free(one);
    free(two);
}


static void
test_join(void **state)
{
    uint32_t           i;
    client_t           first[REQUESTS], second[REQUESTS];
    dsa_sched_stats_t  stats;

    if (!enough) {
        skip();
    }

    make_requests(VOCAB);

    followers = 0;
    run_alone();
    stats = run_together(JOIN_MODEL, data2, first);
    assert_true(stats.copied_tokens > 0);

    followers = 1;
    stats = run_together(JOIN_MODEL, data2, second);
    assert_true(stats.copied_tokens > 0);
    hosts_end(&hosts, 0);

    for (i = 0; i < REQUESTS; i++) {
        assert_int_equal(first[i].answer.n, second[i].answer.n);
        assert_memory_equal(first[i].answer.token, second[i].answer.token,
                            sizeof(first[i].answer.token));
    }
}


/* Microseconds of a decode step of a sequence on each rank. */

static double
step_us(uint32_t n)
{
    uint32_t             i, j, tokens[STEPS + 2], pages[2][PAGES];
    uint64_t             begin;
    dsa_err_t            err;
    dsa_sample_t         sample[2];
    dsa_backend_t       *b;
    dsa_sampling_t       sampling;
    dsa_batch_seq_t      seq[2];
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    memset(&sampling, 0, sizeof(sampling));
    memset(tokens, 0, sizeof(tokens));
    memset(seq, 0, sizeof(seq));

    sampling.top_p = 1;
    conf.model = JOIN_MODEL;
    conf.precision = DSA_SERVED;
    conf.gpus = 2;
    conf.gpu[1] = 1;
    conf.kv_memory = PAGES * (uint64_t) JOIN_PAGE;
    conf.max_tokens = 64;
    conf.max_seqs = 2;
    conf.allowed = VOCAB;
    conf.context = PAGES * DSA_PAGE_TOKENS;

    followers = n;
    b = hosts_open(DSA_BACKEND_CUDA, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    begin = 0;

    for (i = 0; i < STEPS; i++) {
        for (j = 0; j < 2; j++) {
            pages[j][i / DSA_PAGE_TOKENS] = i / DSA_PAGE_TOKENS;
            seq[j].tokens = tokens;
            seq[j].start = i;
            seq[j].n_input = 1;
            seq[j].n_prompt = 1;
            seq[j].input_from = DSA_INPUT_KNOWN;
            seq[j].rank = j;
            seq[j].pages = pages[j];
            seq[j].sampling = &sampling;
            seq[j].sample = &sample[j];
        }

        begin = i == STEPS / 2 ? dsa_clock_us() : begin;
        must(b->start(b, seq, 2, &err), &err);
        must(b->wait(b, &err), &err);
    }

    begin = dsa_clock_us() - begin;
    b->close(b);

    if (n != 0) {
        hosts_end(&hosts, 0);
    }

    return (double) begin / (STEPS - STEPS / 2);
}


static void
test_step(void **state)
{
    double  one, two;

    if (!enough) {
        skip();
    }

    one = step_us(0);
    two = step_us(1);

    print_message("a decode step of 3 layers, 2 of them with experts: %.0f us "
                  "by peer kernels, %.0f us by NCCL over sockets\n", one, two);
}


/* A host that is killed between steps, and in one, is named. */

static void
test_killed(void **state)
{
    int                  rc;
    uint32_t             token[DSA_PAGE_TOKENS], page;
    uint64_t             begin;
    dsa_err_t            err;
    dsa_sample_t         sample;
    dsa_backend_t       *b;
    dsa_sampling_t       sampling;
    dsa_batch_seq_t      seq;
    dsa_backend_conf_t   conf;

    if (!enough) {
        skip();
    }

    memset(&conf, 0, sizeof(conf));
    memset(&sampling, 0, sizeof(sampling));
    memset(token, 0, sizeof(token));
    memset(&seq, 0, sizeof(seq));

    sampling.top_p = 1;
    page = 0;
    conf.model = JOIN_MODEL;
    conf.precision = DSA_SERVED;
    conf.gpus = 2;
    conf.kv_memory = PAGES * (uint64_t) JOIN_PAGE;
    conf.max_tokens = 64;
    conf.max_seqs = 2;
    conf.allowed = VOCAB;

    followers = 1;
    b = hosts_open(DSA_BACKEND_CUDA, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    seq.tokens = token;
    seq.n_input = DSA_PAGE_TOKENS / 2;
    seq.n_prompt = DSA_PAGE_TOKENS / 2;
    seq.input_from = DSA_INPUT_KNOWN;
    seq.pages = &page;
    seq.sampling = &sampling;
    seq.sample = &sample;

    must(b->start(b, &seq, 1, &err), &err);
    must(b->wait(b, &err), &err);

    /* it has stopped when the step begins, and is killed while it runs */

    assert_int_equal(kill(hosts.follower[0].pid, SIGSTOP), 0);
    must(b->start(b, &seq, 1, &err), &err);
    assert_int_equal(kill(hosts.follower[0].pid, SIGKILL), 0);

    begin = dsa_clock_ms();
    rc = b->wait(b, &err);

    print_message("after %llu ms: %s\n",
                  (unsigned long long) (dsa_clock_ms() - begin), err.text);
    assert_int_equal(rc, DSA_ERROR);
    assert_int_equal(follower_ended(&hosts.follower[0]), 128 + SIGKILL);

    /* closing the backend would wait for the GPU */
}


int
main(int argc, char **argv)
{
    int  n;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_killed)
    };

    /* as between machines: no memory that both processes can reach */

    (void) setenv("NCCL_P2P_DISABLE", "1", 0);
    (void) setenv("NCCL_SHM_DISABLE", "1", 0);
    (void) setenv("NCCL_SOCKET_IFNAME", "lo", 0);

    follower_main(argc, argv);

    (void) snprintf(nccl_log, sizeof(nccl_log), "/tmp/dsa-test-nccl-%d.log",
                    (int) getpid());
    (void) setenv("NCCL_DEBUG", "INFO", 1);
    (void) setenv("NCCL_DEBUG_FILE", nccl_log, 1);

    dsa_cuda_load_all();

    n = 0;
    enough = cudaGetDeviceCount(&n) == cudaSuccess && n >= 2;

    n = cmocka_run_group_tests(tests, NULL, NULL);

    (void) fflush(NULL);
    (void) unlink(nccl_log);

    /* the GPU of test_killed may still wait for the process that was killed */

    _exit(n);
}
