
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The sizes of decode steps that have CUDA graphs.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/cuda/sizes.h"


/*
 * Numbers of graphs that engines on an H200 captured and counted
 * (bench/results/2026-12-01-steps.md).
 */

static void
test_counted(void **state)
{
    dsa_cuda_sizes_t  s;

    dsa_cuda_sizes(&s, 384, 2048, 163840, 1, 0);
    assert_int_equal(dsa_cuda_sizes_graphs(&s), 280);

    dsa_cuda_sizes(&s, 256, 2048, 163840, 0, 0);
    assert_int_equal(dsa_cuda_sizes_graphs(&s), 148);

    dsa_cuda_sizes(&s, 512, 2048, 163840, 0, 0);
    assert_int_equal(dsa_cuda_sizes_graphs(&s), 168);
}


/*
 * Each number of tokens has a size, which is at most a quarter larger, and
 * powers of two are sizes.
 */

static void
test_tokens(void **state)
{
    uint32_t          n, i, most;
    dsa_cuda_sizes_t  s;

    for (most = 1; most <= 8192; most += most < 2048 ? 1 : 24) {
        dsa_cuda_sizes(&s, most, 64, 4096, 0, 0);

        assert_in_range(s.sizes, 1, DSA_CUDA_SIZES);
        assert_int_equal(s.size[s.sizes - 1], most);

        for (n = 1, i = 0; n <= most; n++) {
            while (s.size[i] < n) {
                i++;
                assert_in_range(i, 1, s.sizes - 1);
                assert_true(s.size[i] > s.size[i - 1]);
            }

            assert_true(s.size[i] * 4 <= n * 5);

            if ((n & (n - 1)) == 0) {
                assert_int_equal(s.size[i], n);
            }
        }
    }
}


static void
test_bounds(void **state)
{
    uint32_t          i;
    dsa_cuda_sizes_t  s;

    static const uint32_t  want[] = { 2048, 8192, 32768, 163840 };

    dsa_cuda_sizes(&s, 16, 2048, 163840, 1, 0);
    assert_int_equal(s.bounds, 4);

    for (i = 0; i < 4; i++) {
        assert_int_equal(s.bound[i], want[i]);
        assert_int_equal(s.grouped[i], i > 0);
    }

    /* a context that all of is selected, and one between two bounds */

    dsa_cuda_sizes(&s, 16, 1000, 1000, 1, 0);
    assert_int_equal(s.bounds, 1);
    assert_int_equal(s.bound[0], 1000);
    assert_int_equal(s.grouped[0], 0);

    dsa_cuda_sizes(&s, 16, 64, 300, 0, 0);
    assert_int_equal(s.bounds, 3);
    assert_int_equal(s.bound[1], 256);
    assert_int_equal(s.bound[2], 300);
    assert_int_equal(s.grouped[2], 0);
}


/* Without an indexer all bounds have both kinds of graphs, with drafts only. */

static void
test_dense(void **state)
{
    dsa_cuda_sizes_t  s;

    dsa_cuda_sizes(&s, 16, 2048, 8192, 1, 1);
    assert_int_equal(dsa_cuda_sizes_graphs(&s), 16 * 2 * 2);

    dsa_cuda_sizes(&s, 16, 2048, 8192, 0, 1);
    assert_int_equal(dsa_cuda_sizes_graphs(&s), 16 * 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_dense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
