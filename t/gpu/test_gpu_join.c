
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <time.h>


#define JOIN_BACKEND    DSA_BACKEND_CUDA
#define JOIN_PRECISION  DSA_SERVED
#define JOIN_MODEL      GOLDEN "a-fp8"
#define JOIN_PAGE       (64 * 3 * (656 + 132))
#define JOIN_GPU(rank)  ((rank) % gpus())

#define EQUAL           70          /* percent of first tokens */


static unsigned int
gpus(void)
{
    int  n;

    n = 0;

    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0 ? (unsigned int) n
                                                          : 1;
}


#include "engine/cuda/group.h"
#include "t/unit/join.h"


/*
 * Runs the load twice.  The steps are the same, and so are all bits of the
 * answers: a step that read what another one had not yet written would change
 * them.  Returns the statistics of the first run.
 */

static dsa_sched_stats_t
run_twice(const char *dir, split_t split)
{
    uint32_t           i;
    client_t           first[REQUESTS], second[REQUESTS];
    dsa_sched_stats_t  stats;

    stats = run_together(dir, split, first);
    (void) run_together(dir, split, second);

    for (i = 0; i < REQUESTS; i++) {
        assert_int_equal(first[i].answer.usage.finish,
                         second[i].answer.usage.finish);
        assert_int_equal(first[i].answer.n, second[i].answer.n);
        assert_memory_equal(first[i].answer.token, second[i].answer.token,
                            sizeof(first[i].answer.token));
    }

    return stats;
}


/*
 * Random loads on two ranks, one after another; DSA_JOIN_SECONDS: for how long.
 * Ranks share a GPU when the machine has only one.  In one load chance can make
 * many first tokens differ from those of one rank, so that they are counted in
 * all loads.
 */

static void
test_join(void **state)
{
    long               seconds;
    time_t             end;
    uint32_t           rounds;
    uint64_t           preemptions;
    const char        *text;
    dsa_sched_stats_t  stats;

    text = getenv("DSA_JOIN_SECONDS");
    seconds = text != NULL ? atol(text) : 0;
    end = time(NULL) + seconds;
    rounds = 0;
    preemptions = 0;

    do {
        make_requests(1024);
        run_alone();

        stats = run_twice(GOLDEN "a-fp8", data2);
        assert_int_equal(stats.ranks, 2);
        assert_true(stats.cached_tokens > 0);
        assert_true(stats.copied_tokens > 0);
        preemptions += stats.preemptions;

        stats = run_twice(wide, tensor2);
        assert_int_equal(stats.ranks, 1);
        preemptions += stats.preemptions;

        rounds++;

    } while (time(NULL) < end);

    print_message("%u rounds of %u requests in each mode; %u of %u first "
                  "tokens are those of one rank\n", rounds,
                  (uint32_t) REQUESTS, equal_tokens, first_tokens);

    assert_true(preemptions > 0);
    assert_true(equal_tokens * 100 >= first_tokens * EQUAL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_join)
    };

    dsa_cuda_load_all();

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
