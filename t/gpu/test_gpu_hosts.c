
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>


/*
 * Two hosts of one or two GPUs each, which are two processes of this machine:
 * NCCL is made to exchange over sockets, as between machines.  The answers have
 * the bits of those of as many ranks in one process, which exchange by peer
 * kernels.  So have those of GPUs of one process without NVLink.
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
#include "engine/cuda/nccl.h"
#include "t/unit/join.h"


#define STEPS       200         /* that are measured */


static uint32_t  followers;     /* 0: all ranks are in this process */
static uint32_t  unlinked;      /* 1: GPUs seem to have no NVLink */
static hosts_t   hosts;
static char      nccl_log[64];  /* of this process */
static int       gpus;          /* of this machine */


cudaError_t __real_cudaDeviceGetP2PAttribute(int *value,
    enum cudaDeviceP2PAttr attribute, int from, int to);
cudaError_t __wrap_cudaDeviceGetP2PAttribute(int *value,
    enum cudaDeviceP2PAttr attribute, int from, int to);


/* Skips a test where there are fewer GPUs, or no NCCL. */

static void
need(int n)
{
    dsa_err_t  err;

    if (gpus < n) {
        print_message("there are %d GPUs; expected %d\n", gpus, n);
        skip();
    }

    if (dsa_cuda_nccl_load(&err) != DSA_OK) {
        print_message("%s\n", err.text);
        skip();
    }
}


/* Called in place of that of CUDA. */

cudaError_t
__wrap_cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute,
    int from, int to)
{
    if (unlinked) {
        *value = 0;
        return cudaSuccess;
    }

    return __real_cudaDeviceGetP2PAttribute(value, attribute, from, to);
}


static dsa_backend_t *
hosts_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_conf_t  own;

    if (followers == 0 || conf->gpus == 1) {
        return dsa_backend_open(kind, conf, err);
    }

    own = *conf;
    own.gpus = conf->gpus / 2;

    hosts_init(&hosts, conf->model, 1, own.gpus);
    hosts.follower[0].kind = DSA_BACKEND_CUDA;
    hosts.follower[0].gpu = own.gpus;
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

    need(2);

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

    need(2);

    one = calloc(SEQS, sizeof(bits_t));
    two = calloc(SEQS, sizeof(bits_t));
    assert_true(one != NULL && two != NULL);

    bits_of(0, one);
    bits_of(1, two);

    bits_same(one, two);

    free(one);
    free(two);
}


/* The same load by peer kernels, over two hosts, and without NVLink. */

static void
join_all(split_t split)
{
    uint32_t           i, way;
    client_t           first[REQUESTS], second[REQUESTS];
    dsa_sched_stats_t  stats;

    make_requests(VOCAB);

    followers = 0;
    run_alone();
    stats = run_together(JOIN_MODEL, split, first);
    assert_true(stats.copied_tokens > 0);

    for (way = 0; way < 2; way++) {
        followers = way == 0;
        unlinked = way == 1;

        stats = run_together(JOIN_MODEL, split, second);
        assert_int_equal(stats.ranks, split.gpus);
        assert_true(stats.copied_tokens > 0);

        if (followers != 0) {
            hosts_end(&hosts, 0);
        }

        followers = 0;
        unlinked = 0;

        for (i = 0; i < REQUESTS; i++) {
            assert_int_equal(first[i].answer.n, second[i].answer.n);
            assert_memory_equal(first[i].answer.token, second[i].answer.token,
                                sizeof(first[i].answer.token));
        }
    }
}


static void
test_join(void **state)
{
    need(2);

    join_all(data2);
}


/* Two GPUs on each of two hosts. */

static void
test_join_four(void **state)
{
    need(4);

    join_all(data4);
}


/* "attention tensor" has no other way than NVLink. */

static void
test_unlinked(void **state)
{
    dsa_err_t            err;
    dsa_backend_conf_t   conf;

    need(2);

    memset(&conf, 0, sizeof(conf));
    conf.model = wide;
    conf.precision = DSA_SERVED;
    conf.attention = DSA_ATTENTION_TENSOR;
    conf.gpus = 2;
    conf.gpu[1] = 1;
    conf.max_tokens = 64;
    conf.max_seqs = 2;
    conf.allowed = VOCAB;

    unlinked = 1;
    assert_null(dsa_backend_open(DSA_BACKEND_CUDA, &conf, &err));
    unlinked = 0;

    if (strstr(err.text, "GPU 0 has no NVLink to GPU 1; expected") == NULL) {
        fail_msg("%s", err.text);
    }
}


/* Microseconds of a decode step of a sequence on each rank. */

static double
step_us(uint32_t n, uint32_t no_links)
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
    unlinked = no_links;
    b = hosts_open(DSA_BACKEND_CUDA, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);
    unlinked = 0;

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
    double  peers, threads, hosts_us;

    need(2);

    peers = step_us(0, 0);
    threads = step_us(0, 1);
    hosts_us = step_us(1, 0);

    print_message("a decode step of 3 layers, 2 of them with experts: %.0f us "
                  "by peer kernels; by NCCL over sockets %.0f us in one "
                  "process, %.0f us in two\n", peers, threads, hosts_us);
}


/* A step on the first rank; the other one computes its experts. */

typedef struct {
    uint32_t             token[DSA_PAGE_TOKENS];
    uint32_t             page;
    dsa_sample_t         sample;
    dsa_sampling_t       sampling;
    dsa_batch_seq_t      seq;
} fault_t;


static dsa_backend_t *
fault_open(fault_t *f)
{
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    memset(f, 0, sizeof(fault_t));
    memset(&conf, 0, sizeof(conf));

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

    f->sampling.top_p = 1;
    f->seq.tokens = f->token;
    f->seq.n_input = DSA_PAGE_TOKENS / 2;
    f->seq.n_prompt = DSA_PAGE_TOKENS / 2;
    f->seq.input_from = DSA_INPUT_KNOWN;
    f->seq.pages = &f->page;
    f->seq.sampling = &f->sampling;
    f->seq.sample = &f->sample;

    must(b->start(b, &f->seq, 1, &err), &err);
    must(b->wait(b, &err), &err);

    return b;
}


/* A host that is killed in a step is named; closing would wait for the GPU. */

static void
test_killed(void **state)
{
    int             rc;
    fault_t         f;
    uint64_t        begin;
    dsa_err_t       err;
    dsa_backend_t  *b;

    need(2);

    b = fault_open(&f);

    /* it has stopped when the step begins, and is killed while it runs */

    assert_int_equal(kill(hosts.follower[0].pid, SIGSTOP), 0);
    must(b->start(b, &f.seq, 1, &err), &err);
    assert_int_equal(kill(hosts.follower[0].pid, SIGKILL), 0);

    begin = dsa_clock_ms();
    rc = b->wait(b, &err);

    print_message("after %llu ms: %s\n",
                  (unsigned long long) (dsa_clock_ms() - begin), err.text);
    assert_int_equal(rc, DSA_ERROR);
    assert_non_null(strstr(err.text, hosts.follower[0].address));
    assert_int_equal(follower_ended(&hosts.follower[0]), 128 + SIGKILL);
}


/* The leader of test_hung, a process of its own, ends here. */

static void
hung_abort(void *data, const char *text)
{
    (void) printf("%s", text);
    (void) fflush(stdout);
    (void) kill(hosts.follower[0].pid, SIGKILL);
    (void) unlink(nccl_log);
    _exit(77);
}


static int
hung_leader(void)
{
    fault_t         f;
    dsa_err_t       err;
    dsa_backend_t  *b;

    b = fault_open(&f);
    hosts.leader.step_ms = 2000;
    hosts.leader.abort = hung_abort;

    (void) kill(hosts.follower[0].pid, SIGSTOP);

    if (b->start(b, &f.seq, 1, &err) == DSA_OK
        && b->wait(b, &err) == DSA_OK)
    {
        return 0;
    }

    (void) printf("returned: %s", err.text);

    return 1;
}


/* The GPU waits for a host that hangs, until the process of the leader ends. */

static void
test_hung(void **state)
{
    int       status;
    char      line[1024], last[1024];
    FILE     *p;

    need(2);

    p = popen("exec /proc/$PPID/exe --hung 2> /dev/null", "r");
    assert_non_null(p);
    last[0] = '\0';

    while (fgets(line, sizeof(line), p) != NULL) {
        memcpy(last, line, sizeof(last));
    }

    status = pclose(p);
    print_message("%s\n", last);

    assert_int_equal(WEXITSTATUS(status), 77);
    assert_non_null(strstr(last, "a step takes more than "));
    assert_non_null(strstr(last, "there is no answer of host 127.0.0.1:"));
}


int
main(int argc, char **argv)
{
    int  n;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_join_four),
        cmocka_unit_test(test_unlinked),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_hung),
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

    if (argc == 2 && strcmp(argv[1], "--hung") == 0) {
        return hung_leader();
    }

    if (cudaGetDeviceCount(&gpus) != cudaSuccess) {
        gpus = 0;
    }

    n = cmocka_run_group_tests(tests, wide_make, wide_remove);

    (void) fflush(NULL);
    (void) unlink(nccl_log);

    /* the GPU of test_killed may still wait for the process that was killed */

    _exit(n);
}
