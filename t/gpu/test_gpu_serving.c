
/*
 * Copyright (C) The nginx-dsa authors
 */


#define SERVING_BACKEND     DSA_BACKEND_CUDA
#define SERVING_PRECISION   DSA_SERVED
#define SERVING_BOUND       0

#include "t/unit/serving.h"
#include "t/unit/serving_reload.h"


/* Two runs of a batch have the same bits. */

static void
test_twice(void **state)
{
    uint32_t  i, turn;
    client_t  c[2][CLIENTS];
    engine_t  e;

    for (turn = 0; turn < 2; turn++) {
        memcpy(c[turn], alone, sizeof(alone));
        start(&e, 64, 40);

        for (i = 0; i < CLIENTS; i++) {
            submit(&e, &c[turn][i], (uint8_t) i);
        }

        run(&e);
        finish(&e);
    }

    for (i = 0; i < CLIENTS; i++) {
        assert_memory_equal(c[0][i].sample, c[1][i].sample,
                            sizeof(c[0][i].sample));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_reload),
    };

    return cmocka_run_group_tests_name("DeepSeek-V3.2", tests, setup, NULL)
           + cmocka_run_group_tests_name("GLM-5.2", tests, setup_glm, NULL);
}
