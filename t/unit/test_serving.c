
/*
 * Copyright (C) The nginx-dsa authors
 */


#define SERVING_BACKEND     DSA_BACKEND_CPU
#define SERVING_PRECISION   DSA_EXACT
#define SERVING_BOUND       1e-5

#include "t/unit/serving.h"


/* In float32 the answer is the golden one. */

static void
test_alone(void **state)
{
    uint32_t  i;

    for (i = 0; i < 16; i++) {
        assert_int_equal(alone[0].sample[i].token, greedy[i]);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_prefix),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
