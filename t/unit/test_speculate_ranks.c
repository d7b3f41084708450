
/*
 * Copyright (C) The nginx-dsa authors
 */


#define JOIN_BACKEND    DSA_BACKEND_CPU
#define JOIN_PRECISION  DSA_EXACT
#define JOIN_MODEL      GOLDEN "drafts"
#define JOIN_TOKEN      ((128 + 64 + 128) * sizeof(float))
/* with drafts: the layer, and a position and a hidden state, with padding */
#define JOIN_PAGE       (64 * 2 * JOIN_TOKEN                                  \
                         + (join_drafts != 0 ? 64 * JOIN_TOKEN + 128          \
                                               + 128 * sizeof(float) : 0))
#define JOIN_GPU(rank)  (rank)

#include "t/unit/join.h"


/*
 * Requests with drafts of the draft layer that join and leave at random, and
 * preempt one another, on one to four ranks: each answer is the one that it has
 * alone and without drafts.
 */

static void
test_random(void **state)
{
    uint32_t           i;
    uint64_t           preemptions;
    client_t           answers[REQUESTS];
    dsa_sched_stats_t  stats;

    static const split_t  data[] = {
        { 1, DSA_ATTENTION_DATA }, { 2, DSA_ATTENTION_DATA },
        { 4, DSA_ATTENTION_DATA }
    };

    make_requests(256);
    run_alone();
    preemptions = 0;

    for (i = 0; i < 9; i++) {
        join_drafts = 1 + i / 3 * 2;

        stats = run_together(JOIN_MODEL, data[i % 3], answers);

        assert_int_equal(stats.ranks, data[i % 3].gpus);
        preemptions += stats.preemptions;
        assert_true(stats.cached_tokens > 0);
        assert_true(stats.accepted_tokens > 0);
        assert_true(stats.accepted_tokens < stats.draft_tokens);
    }

    assert_true(preemptions > 3);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_random)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
