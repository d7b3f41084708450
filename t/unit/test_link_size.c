
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The sizes of a session of the link.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/link.h"
#include "engine/service/link_size.h"


#define MB  (1ULL << 20)


typedef struct {
    uint32_t    running;
    uint32_t    waiting;
    uint32_t    context;
    uint32_t    slots;
    uint64_t    submit;
    uint64_t    event;
} row_t;


/* The formulas of docs/engine.md, computed by hand. */

static void
test_sizes(void **state)
{
    size_t           i;
    dsa_link_size_t  size;

    static const row_t  rows[] = {

        /* the defaults of each backend, and V3.2 on eight GPUs */

        { 64, 1024, 163840, 16384, 16 * MB, 4 * MB },
        { 128, 1024, 163840, 16384, 16 * MB, 4 * MB },
        { 16384, 16384, 4096, 65536, 16 * MB, 4 * MB },
        { 1024, 1024, 163840, 16384, 16 * MB, 4 * MB },

        /* at the borders */

        { 1, 0, 2, 16384, 16 * MB, 4 * MB },
        { 64, 16319, 524288, 16384, 16 * MB, 4 * MB },
        { 64, 16320, 524289, 32768, 32 * MB, 4 * MB },
        { 16385, 0, 1048576, 32768, 32 * MB, 8 * MB },
        { 16384, 0, 33554432, 32768, 1024 * MB, 4 * MB },
        { 1, 1048574, 1 << 30, 1048576, 1024 * MB, 4 * MB },
        { 1048575, 0, UINT32_MAX, 1048576, 1024 * MB, 256 * MB }
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dsa_link_size(&size, rows[i].running, rows[i].waiting,
                      rows[i].context);

        assert_int_equal(size.slots, rows[i].slots);
        assert_int_equal(size.submit, rows[i].submit);
        assert_int_equal(size.event, rows[i].event);

        /* a worker accepts the sizes */

        assert_true(size.slots <= DSA_LINK_MAX_SLOTS);
        assert_true(dsa_link_ring_size_valid(size.submit));
        assert_true(dsa_link_ring_size_valid(size.event));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_sizes)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
