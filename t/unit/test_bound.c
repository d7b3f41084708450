
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The bounds of the benchmarks: what an MoE layer reads and computes with
 * weights in each format.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bound.h"


/* Values of config.json that an expert's weights follow from. */

#define HIDDEN      7168
#define WIDTH       2048
#define WEIGHTS     (3.0 * HIDDEN * WIDTH)


/* The bound of an MoE layer of V3.2, whose experts have a format. */

static void
layer(dsa_bound_t *b, dsa_format_e format, double experts, double pairs)
{
    dsa_err_t           err;
    dsa_bound_step_t    step;
    dsa_model_config_t  config;

    assert_int_equal(dsa_model_config_read(&config, "bench/v3.2", &err), 0);
    assert_int_equal(config.hidden_size, HIDDEN);
    assert_int_equal(config.moe_intermediate_size, WIDTH);
    assert_int_equal(config.format[DSA_MATRICES_EXPERTS], DSA_FORMAT_FP8);

    config.format[DSA_MATRICES_EXPERTS] = format;

    memset(&step, 0, sizeof(dsa_bound_step_t));

    step.ranks = 1;
    step.attention = DSA_ATTENTION_DATA;
    step.tokens = 64;
    step.sequences = 64;
    step.start = 1024;
    step.record = 656;
    step.load.experts = experts;
    step.load.pairs = pairs;
    step.load.tokens = 64;

    memset(b, 0, sizeof(dsa_bound_t));
    dsa_bound_layers(b, &config, &step, 60, 61);
}


/* What the experts add to a layer that has no pair of a token and an expert. */

static void
experts(dsa_bound_t *b, dsa_format_e format)
{
    dsa_bound_t  none;

    layer(&none, format, 0, 0);
    layer(b, format, 32, 512);

    b->bytes -= none.bytes;
    b->fp8 -= none.fp8;
    b->bf16 -= none.bf16;
}


static void
test_fp8(void **state)
{
    dsa_bound_t  b;

    experts(&b, DSA_FORMAT_FP8);

    assert_true(b.bytes == 32 * WEIGHTS);
    assert_true(b.fp8 == 2 * 512 * WEIGHTS);
    assert_true(b.bf16 == 0);
}


/* Half a byte, and 2 bytes of a scale for 128 weights. */

static void
test_int4(void **state)
{
    dsa_bound_t  b;

    experts(&b, DSA_FORMAT_INT4);

    assert_true(b.bytes == 32 * 22708224.0);
    assert_true(b.fp8 == 2 * 512 * WEIGHTS);
    assert_true(b.bf16 == 0);
}


static void
test_bf16(void **state)
{
    dsa_bound_t  b;

    experts(&b, DSA_FORMAT_FLOAT);

    assert_true(b.bytes == 2 * 32 * WEIGHTS);
    assert_true(b.fp8 == 0);
    assert_true(b.bf16 == 2 * 512 * WEIGHTS);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_fp8),
        cmocka_unit_test(test_int4),
        cmocka_unit_test(test_bf16)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
