
/*
 * Copyright (C) The nginx-dsa authors
 */


#define JOIN_BACKEND    DSA_BACKEND_CPU
#define JOIN_PRECISION  DSA_EXACT
#define JOIN_MODEL      GOLDEN "a-fp8"
#define JOIN_PAGE       (64 * 3 * (512 + 64 + 128) * sizeof(float))
#define JOIN_GPU(rank)  (rank)

#include "t/unit/join.h"


static void
test_random(void **state)
{
    uint32_t           i;
    client_t           answers[REQUESTS];
    dsa_sched_stats_t  stats;

    static const split_t  data[] = {
        { 2, DSA_ATTENTION_DATA }, { 4, DSA_ATTENTION_DATA }
    };

    make_requests(1024);
    run_alone();

    stats = run_together(GOLDEN "a-fp8", one, answers);
    assert_true(stats.preemptions > 0);

    for (i = 0; i < 2; i++) {
        stats = run_together(GOLDEN "a-fp8", data[i], answers);

        assert_int_equal(stats.ranks, data[i].gpus);
        assert_true(stats.cached_tokens > 0);
        assert_true(stats.copied_tokens > 0);
        assert_true(stats.preemptions > 0);
    }

    stats = run_together(wide, tensor2, answers);
    assert_int_equal(stats.ranks, 1);
    assert_true(stats.preemptions > 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, wide_make, wide_remove);
}
