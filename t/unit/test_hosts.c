
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/hosts_bits.h"


/*
 * A replica over several hosts, each a process of its own on this machine: its
 * answers have the bits of those of as many ranks in one process, also with
 * pages that were in the memory of the hosts meanwhile.
 */

#define JOIN_BACKEND    DSA_BACKEND_CPU
#define JOIN_PRECISION  DSA_EXACT
#define JOIN_MODEL      GOLDEN "a-fp8"
#define JOIN_PAGE       (64 * 3 * (512 + 64 + 128) * sizeof(float))
#define JOIN_GPU(rank)  (rank)
#define JOIN_OPEN       hosts_open

static dsa_backend_t *hosts_open(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);

#include "t/unit/join.h"


static uint32_t  followers;     /* 0: all ranks are in this process */
static hosts_t   hosts;
static uint32_t  host_pages;    /* of each host; 0: no host memory */
static dsa_host_t  memory;


/*
 * The threads of each host, instead of as many as there are CPUs: several hosts
 * share the CPUs here, and their steps are so small that several threads would
 * mostly wait for each other.
 */

uint32_t __wrap_dsa_threads_cpus(void);


uint32_t
__wrap_dsa_threads_cpus(void)
{
    return 1;
}


/* conf->gpus are those of all hosts. */

static dsa_backend_t *
hosts_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_t       *b;
    dsa_backend_conf_t   own;

    if (followers == 0) {
        return dsa_backend_open(kind, conf, err);
    }

    own = *conf;
    own.gpus = conf->gpus / (followers + 1);

    own.host_memory = host_pages * (uint64_t) (JOIN_PAGE + DSA_HOST_ALIGN);

    hosts_init(&hosts, conf->model, followers, own.gpus);
    hosts_start(&hosts);

    b = dsa_hosts_lead(kind, &own, &hosts.leader, err);

    if (b != NULL && host_pages != 0) {
        must(dsa_host_open_part(&memory, own.host_memory, b->page_bytes,
                                followers + 1, err), err);
        dsa_hosts_memory(b, &memory);
        join_host = &memory;
    }

    return b;
}


static void
test_random(void **state)
{
    size_t             i;
    client_t           answers[REQUESTS];
    dsa_sched_stats_t  stats;

    static const struct {
        uint32_t       followers;
        uint32_t       host_pages;
        split_t        split;
    } cases[] = {
        { 1, 0, { 2, DSA_ATTENTION_DATA } },
        { 1, 0, { 4, DSA_ATTENTION_DATA } },
        { 3, 0, { 4, DSA_ATTENTION_DATA } },
        { 1, 40, { 2, DSA_ATTENTION_DATA } },
        { 1, 6, { 4, DSA_ATTENTION_DATA } },
        { 3, 40, { 4, DSA_ATTENTION_DATA } }
    };

    make_requests(VOCAB);

    followers = 0;
    run_alone();

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        followers = cases[i].followers;
        host_pages = cases[i].host_pages;
        stats = run_together(JOIN_MODEL, cases[i].split, answers);

        assert_int_equal(stats.ranks, cases[i].split.gpus);
        assert_true(stats.copied_tokens > 0);
        assert_true(stats.preemptions > 0);

        assert_true((stats.tier[DSA_TIER_HOST].write_pages != 0)
                    == (host_pages != 0));
        assert_int_equal(stats.tier[DSA_TIER_HOST].invalid, 0);

        join_host = NULL;
        host_pages = 0;
        dsa_host_close(&memory);

        hosts_end(&hosts, 0);
        assert_int_equal(hosts.failures, 0);
    }
}


/* Counts the pages that move to ranks of another host. */

static uint32_t  far_loads;
static int     (*real_move)(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
                            const dsa_page_move_t *move, uint32_t n,
                            dsa_err_t *err);


static int
counting_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    far_loads += way == DSA_MOVE_IN && move[0].host == NULL ? n : 0;

    return real_move(b, way, rank, move, n, err);
}


/*
 * Prompts of their own, more than the ranks have pages for, twice: the second
 * time their pages come from the memory of the hosts.
 */

static void
test_memory(void **state)
{
    uint32_t            i, j, round;
    client_t            c[REQUESTS];
    dsa_sched_t        *s;
    dsa_backend_t      *b;
    dsa_sched_stats_t   stats;

    static const struct {
        uint32_t        followers;
        split_t         split;
    } cases[] = {
        { 1, { 2, DSA_ATTENTION_DATA } },
        { 1, { 4, DSA_ATTENTION_DATA } },
        { 3, { 4, DSA_ATTENTION_DATA } }
    };

    for (i = 0; i < REQUESTS; i++) {
        memset(&requests[i], 0, sizeof(request_t));
        requests[i].n_prompt = 200;
        requests[i].max_tokens = 4;

        for (j = 0; j < 200; j++) {
            requests[i].prompt[j] = (i * 131 + j * 7) % VOCAB;
        }
    }

    followers = 0;
    run_alone();

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        followers = cases[i].followers;
        host_pages = 120;
        far_loads = 0;
        b = backend_open(JOIN_MODEL, cases[i].split);
        real_move = b->move;
        b->move = counting_move;
        s = sched_open(b);

        for (round = 0; round < 2; round++) {
            memset(c, 0, sizeof(c));

            for (j = 0; j < REQUESTS; j++) {
                submit(s, &c[j], &requests[j]);
            }

            while (dsa_sched_busy(s)) {
                step(s);
            }

            for (j = 0; j < REQUESTS; j++) {
                check_answer(&requests[j], &c[j].answer, j, cases[i].split);
            }
        }

        dsa_sched_stats(s, &stats);
        assert_true(stats.tier[DSA_TIER_HOST].hit_tokens > 0);
        assert_int_equal(stats.tier[DSA_TIER_HOST].invalid, 0);
        assert_true(far_loads > 0);

        dsa_sched_destroy(s);
        b->close(b);
        join_host = NULL;
        host_pages = 0;
        dsa_host_close(&memory);
        hosts_end(&hosts, 0);
    }
}


static void
bits_of(const char *model, uint32_t n, dsa_precision_e precision, bits_t *s)
{
    dsa_err_t            err;
    dsa_backend_t       *b;
    dsa_backend_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.model = model;
    conf.precision = precision;
    conf.gpus = 2;
    conf.kv_memory = PAGES * (uint64_t) JOIN_PAGE;
    conf.max_tokens = 256;
    conf.max_seqs = SEQS;
    conf.allowed = VOCAB;

    followers = n;
    b = hosts_open(DSA_BACKEND_CPU, &conf, &err);
    must(b != NULL ? DSA_OK : DSA_ERROR, &err);

    bits_run(b, s);
    b->close(b);

    if (n != 0) {
        hosts_end(&hosts, 0);
    }
}


static void
test_bits(void **state)
{
    bits_t           *one, *two;
    dsa_precision_e   precision;

    one = calloc(SEQS, sizeof(bits_t));
    two = calloc(SEQS, sizeof(bits_t));
    assert_true(one != NULL && two != NULL);

    for (precision = DSA_EXACT; precision <= DSA_SERVED; precision++) {
        bits_of(JOIN_MODEL, 0, precision, one);
        bits_of(JOIN_MODEL, 1, precision, two);

        bits_same(one, two);
    }

    free(one);
    free(two);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_memory)
    };

    dsa_log_level(getenv("DSA_T_LOG") != NULL ? DSA_LOG_DEBUG : DSA_LOG_ERR);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
