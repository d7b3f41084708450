
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "t/unit/hosts.h"


/*
 * The scheduler of a leader, whose follower is another process: sequences
 * beside others, after a preemption and with a prefix that was found again have
 * the tokens and the bits of their probabilities that each has alone on two
 * ranks of one process, and the first ones are the golden tokens.
 */

#define SERVING_BACKEND     DSA_BACKEND_CPU
#define SERVING_PRECISION   DSA_EXACT
#define SERVING_BOUND       0
#define SERVING_OPEN        hosts_open

static dsa_backend_t *hosts_open(dsa_backend_e kind,
    const dsa_backend_conf_t *conf, dsa_err_t *err);

#include "t/unit/serving.h"


static uint32_t  followers;     /* 0: both ranks are in this process */
static hosts_t   hosts;


static dsa_backend_t *
hosts_open(dsa_backend_e kind, const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_conf_t  own;

    if (followers == 0) {
        return dsa_backend_open(kind, conf, err);
    }

    own = *conf;
    own.gpus = 1;

    hosts_init(&hosts, conf->model, 1, 1);
    hosts_start(&hosts);

    return dsa_hosts_lead(kind, &own, &hosts.leader, err);
}


/* What each has alone, on two ranks of this process. */

static int
setup_one(const char *path)
{
    gpus = 2;
    followers = 0;

    if (setup_model(path) != 0) {
        return -1;
    }

    followers = 1;

    return 0;
}


static int
setup_deepseek(void **state)
{
    return setup_one(GOLDEN "a-fp8");
}


static int
setup_shared(void **state)
{
    return setup_one(GOLDEN "glm-5.2");
}


/*
 * Each test begins with another follower, which ends with the leader, unless
 * the test has failed and left its leader open.
 */

static int
test_end(void **state)
{
    int       status;
    uint64_t  begin;

    begin = dsa_clock_ms();

    while (waitpid(hosts.follower[0].pid, &status, WNOHANG) == 0) {
        if (dsa_clock_ms() - begin > HOSTS_STEP_MS) {
            (void) kill(hosts.follower[0].pid, SIGKILL);
            (void) follower_ended(&hosts.follower[0]);
            return -1;
        }

        (void) poll(NULL, 0, 1);
    }

    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}


static void
test_golden(void **state)
{
    uint32_t  i;
    client_t  c;
    engine_t  e;

    c = alone[0];
    start(&e, 64, 256);
    submit(&e, &c, 0);
    run(&e);
    finish(&e);

    for (i = 0; i < 16; i++) {
        assert_int_equal(c.sample[i].token, greedy[i]);
    }

    same(&c, &alone[0]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_teardown(test_golden, test_end),
        cmocka_unit_test_teardown(test_together, test_end),
        cmocka_unit_test_teardown(test_preempted, test_end),
        cmocka_unit_test_teardown(test_prefix, test_end)
    };

    /* its prompts are so short that two ranks preempt none of them */

    const struct CMUnitTest  glm[] = {
        cmocka_unit_test_teardown(test_together, test_end),
        cmocka_unit_test_teardown(test_prefix, test_end)
    };

    dsa_log_level(DSA_LOG_ERR);

    return cmocka_run_group_tests_name("DeepSeek-V3.2", tests, setup_deepseek,
                                       NULL)
           + cmocka_run_group_tests_name("GLM-5.2", glm, setup_shared, NULL);
}
