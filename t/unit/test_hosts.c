
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/hosts_bits.h"


/*
 * A replica over several hosts, each a process of its own on this machine: its
 * answers have the bits of those of as many ranks in one process.
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


/* conf->gpus are those of all hosts. */

static dsa_backend_t *
hosts_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_conf_t  own;

    if (followers == 0) {
        return dsa_backend_open(kind, conf, err);
    }

    own = *conf;
    own.gpus = conf->gpus / (followers + 1);

    hosts_init(&hosts, conf->model, followers, own.gpus);
    hosts_start(&hosts);

    return dsa_hosts_lead(kind, &own, &hosts.leader, err);
}


static void
test_random(void **state)
{
    size_t             i;
    client_t           answers[REQUESTS];
    dsa_sched_stats_t  stats;

    static const struct {
        uint32_t       followers;
        split_t        split;
    } cases[] = {
        { 1, { 2, DSA_ATTENTION_DATA } },
        { 1, { 4, DSA_ATTENTION_DATA } },
        { 3, { 4, DSA_ATTENTION_DATA } }
    };

    make_requests(VOCAB);

    followers = 0;
    run_alone();

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        followers = cases[i].followers;
        stats = run_together(JOIN_MODEL, cases[i].split, answers);

        assert_int_equal(stats.ranks, cases[i].split.gpus);
        assert_true(stats.copied_tokens > 0);
        assert_true(stats.preemptions > 0);

        hosts_end(&hosts, 0);
        assert_int_equal(hosts.failures, 0);
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
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
