
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <time.h>


#define JOIN_BACKEND    DSA_BACKEND_CUDA
#define JOIN_PRECISION  DSA_SERVED
#define JOIN_EQUAL      70
#define JOIN_PAGE       (656 + 132)
#define JOIN_GPU(rank)  ((rank) % gpus())


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
 * Random loads on two ranks, one after another; DSA_JOIN_SECONDS: for how long.
 * Ranks share a GPU when the machine has only one.
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

        stats = run_together(GOLDEN "a-fp8", data2);
        assert_int_equal(stats.ranks, 2);
        assert_true(stats.cached_tokens > 0);
        assert_true(stats.copied_tokens > 0);
        preemptions += stats.preemptions;

        stats = run_together(wide, tensor2);
        assert_int_equal(stats.ranks, 1);
        preemptions += stats.preemptions;

        rounds++;

    } while (time(NULL) < end);

    assert_true(preemptions > 0);
    print_message("%u rounds of %u requests in each mode\n", rounds,
                  (uint32_t) REQUESTS);
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
