
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * The plan of the experts' products, and the counts of each rank's pairs of a
 * token and an expert.  Both are equal to those by the definition in every bit.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/moe/moe.h"
#include "t/gpu/gpu.h"
#include "t/gpu/plans.h"
#include "t/unit/numbers.h"


static void
plan_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t align,
    uint32_t few, int skew)
{
    int          i;
    test_plan_t  t;

    plan_make(&t, rows, k, experts, align, few, skew);

    for (i = 0; i < 2; i++) {
        gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                                 NULL));

        same(t.device.offset, t.host.offset, (experts + 1) * 4);
        same(t.device.count, t.host.count, experts * 4);
        same(t.device.place, t.host.place, (size_t) rows * k * 4);

        /* -1 for padding; behind it the poison, which is -1 too */

        same(t.device.row, t.host.row, t.host.places * 4);

        gpu_poison(t.device.offset, (experts + 1) * 4);
        gpu_poison(t.device.count, experts * 4);
        gpu_poison(t.device.place, (size_t) rows * k * 4);

        /* what another step left */

        gpu_ok(cudaMemset(t.device.row, 0,
                          (size_t) t.host.offset[experts] * 4));
    }

    plan_free(&t);
}


static void
test_plan(void **state)
{
    uint32_t  align;

    for (align = 8; align <= 128; align *= 2) {
        plan_case(1, 8, 256, align, 100, 0);
        plan_case(128, 8, 256, align, 100, 0);
        plan_case(63, 8, 256, align, 12, 1);
        plan_case(7, 16, 512, align, 100, 0);
        plan_case(513, 8, 256, align, 100, 0);
        plan_case(3000, 6, 160, align, 50, 1);
    }

    plan_case(8192, 8, 256, 128, 100, 0);
    plan_case(8192, 8, 256, 64, 12, 1);
    plan_case(8191, 16, 512, 128, 100, 0);
    plan_case(20000, 2, 300, 32, 100, 0);
    plan_case(5000, 1, 1, 128, 100, 0);
    plan_case(1000, 2, 2, 8, 100, 0);
    plan_case(12, 4, 5, 16, 0, 0);
    plan_case(0, 8, 256, 64, 100, 0);
}


/* The pairs of each rank, and ids that no rank has. */

static void
ranks_case(uint32_t layers, uint32_t n, uint32_t each, uint32_t ranks)
{
    int32_t    *expert, *want, *rows;
    uint32_t    i, l, ld;
    const void *device;

    ld = n + 5;
    expert = malloc((size_t) layers * ld * 4);
    want = calloc((size_t) layers * ranks, 4);
    assert_true(expert != NULL && want != NULL);

    for (l = 0; l < layers; l++) {
        for (i = 0; i < ld; i++) {
            expert[l * ld + i] = (int32_t) dsa_t_random(each * ranks + 9) - 4;

            if (i < n && expert[l * ld + i] >= 0
                && (uint32_t) expert[l * ld + i] < each * ranks)
            {
                want[l * ranks + (uint32_t) expert[l * ld + i] / each]++;
            }
        }
    }

    device = gpu_upload(expert, (size_t) layers * ld * 4);
    rows = gpu_alloc((size_t) layers * ranks * 4);

    gpu_ok(dsa_cuda_moe_ranks(rows, device, ld, layers, n, each, ranks, NULL));
    same(rows, want, (size_t) layers * ranks * 4);

    free(expert);
    free(want);
}


static void
test_ranks(void **state)
{
    ranks_case(1, 0, 32, 8);
    ranks_case(1, 1, 1, 1);
    ranks_case(58, 8 * 64, 32, 8);
    ranks_case(58, 8 * 4097, 16, 16);
    ranks_case(3, 999, 7, 32);
    ranks_case(2, 8 * 8192, 256, 1);

    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 0, 0, 0, 1, 1, NULL), 0);
    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 1, 1, 1, 0, 1, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 1, 1, 1, 1, 0, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 1, 1, 1, 1,
                                        DSA_MOE_RANKS + 1, NULL),
                     cudaErrorInvalidValue);
}


static void
test_refusals(void **state)
{
    int32_t         *id;
    dsa_moe_plan_t   plan;

    id = gpu_alloc(1 << 16);

    plan.offset = id;
    plan.count = id + 1024;
    plan.place = id + 2048;
    plan.row = id + 4096;
    plan.places = 4096;
    plan.align = 24;

    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 256, NULL),
                     cudaErrorInvalidValue);
    plan.align = 256;
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 256, NULL),
                     cudaErrorInvalidValue);
    plan.align = 8;
    plan.places = 8 + 256 * 8 - 1;
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 256, NULL),
                     cudaErrorInvalidValue);
    plan.places = 4096;
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 17, 256, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 513, NULL),
                     cudaErrorInvalidValue);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_plan, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_ranks, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
