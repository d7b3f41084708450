
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The plan of GPU memory, with numbers that are easy to add up: needs in GB
 * (10^9), pages of 1 MB.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cuda/plan.h"


#define GB      1000000000ULL
#define MB      1000000ULL


/* GPUs 0 .. gpus-1 with 10 + 4 + 1 + 1.5 = 16.5 GB of needs each. */

static void
make(dsa_plan_t *plan, uint32_t gpus, uint64_t memory)
{
    uint32_t  i;

    memset(plan, 0, sizeof(dsa_plan_t));

    plan->gpus = gpus;
    plan->attention = DSA_ATTENTION_DATA;
    plan->rank_tokens = 8192;
    plan->max_seqs = 128;
    plan->context = 6400;                   /* 100 pages */
    plan->page = MB;

    for (i = 0; i < gpus; i++) {
        plan->gpu[i].number = i;
        plan->gpu[i].memory = memory;
        plan->gpu[i].needs.weights = 10 * GB;
        plan->gpu[i].needs.workspace = 4 * GB;
        plan->gpu[i].needs.exchange = GB;
        plan->gpu[i].needs.reserve = GB + GB / 2;
    }
}


static void
describes(const dsa_plan_t *plan, const char *want)
{
    dsa_buf_t  text;

    memset(&text, 0, sizeof(text));
    dsa_plan_describe(plan, &text);
    dsa_buf_add(&text, "", 1);
    assert_false(text.failed);
    assert_string_equal(text.data, want);
    dsa_buf_free(&text);
}


/* All GPUs have as many pages as the one with the least room. */

static void
test_pages(void **state)
{
    dsa_err_t   err;
    dsa_plan_t  plan;

    make(&plan, 3, 20 * GB);
    plan.gpu[1].memory = 18 * GB;
    plan.gpu[2].needs.workspace += GB;      /* 2.5 GB left */

    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 1500);

    plan.gpu[2].needs.workspace += GB + GB / 4;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 1250);

    /* the last page that fits, and one byte less */

    make(&plan, 1, 16 * GB + GB / 2 + 7 * MB);
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 7);

    plan.gpu[0].memory--;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 6);

    plan.gpu[0].memory = 16 * GB + GB / 2 + MB;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 1);

    plan.gpu[0].memory--;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_ERROR);

    plan.gpu[0].memory = 17 * GB;
    plan.kv_memory = 5 * MB + MB / 2;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 5);

    /* the slots of tokens are int32_t */

    make(&plan, 1, 100 * GB);
    plan.page = 2048;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 33554431);
}


static void
test_unknown(void **state)
{
    dsa_err_t   err;
    dsa_plan_t  plan;

    make(&plan, 8, 0);
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 0);

    describes(&plan, "each of 8 GPUs: 16.50 GB = weights 10.00 + workspace "
              "4.00 + exchange 1.00 + graphs and driver 1.50, and what its "
              "pages need\n"
              "8 GPUs with attention data: steps of up to 8192 tokens and 128 "
              "sequences on each GPU; a page of 64 tokens has 1.00 MB, the "
              "pages of a sequence of 6400 tokens 0.10 GB on one GPU\n");

    plan.kv_memory = 2 * GB;
    plan.attention = DSA_ATTENTION_TENSOR;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);
    assert_int_equal(plan.pages, 2000);

    describes(&plan, "each of 8 GPUs: 18.50 GB = weights 10.00 + workspace "
              "4.00 + exchange 1.00 + graphs and driver 1.50 + pages 2.00\n"
              "8 GPUs with attention tensor: steps of up to 8192 tokens and "
              "128 sequences; 2000 pages of 64 tokens, the same on each GPU, "
              "0.13 M tokens of KV in all; contexts up to 6400 tokens\n");

    /* one GPU */

    make(&plan, 1, 0);
    plan.gpu[0].number = 5;
    plan.gpu[0].needs.exchange = 0;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);

    describes(&plan, "GPU 5: 15.50 GB = weights 10.00 + workspace 4.00 + "
              "graphs and driver 1.50, and what its pages need\n"
              "steps of up to 8192 tokens and 128 sequences; a page of 64 "
              "tokens has 1.00 MB, the pages of a sequence of 6400 tokens "
              "0.10 GB\n");
}


static void
test_describe(void **state)
{
    dsa_err_t   err;
    dsa_plan_t  plan;

    make(&plan, 2, 20 * GB);
    plan.gpu[0].number = 4;
    plan.gpu[1].number = 6;
    plan.gpu[1].memory = 19 * GB;
    plan.free = 1;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);

    describes(&plan, "GPU 4: 20.00 GB free = weights 10.00 + workspace 4.00 + "
              "exchange 1.00 + graphs and driver 1.50 + pages 2.50 + unused "
              "1.00\n"
              "GPU 6: 19.00 GB free = weights 10.00 + workspace 4.00 + "
              "exchange 1.00 + graphs and driver 1.50 + pages 2.50 + unused "
              "0.00\n"
              "2 GPUs with attention data: steps of up to 8192 tokens and 128 "
              "sequences on each GPU; 2500 pages of 64 tokens on each GPU, "
              "0.32 M tokens of KV in all; contexts up to 6400 tokens\n");

    /* the pages limit the context */

    make(&plan, 1, 16 * GB + GB / 2 + 7 * MB);
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);

    describes(&plan, "GPU 0: 16.51 GB = weights 10.00 + workspace 4.00 + "
              "graphs and driver 1.50 + pages 0.01 + unused 0.00\n"
              "steps of up to 8192 tokens and 128 sequences; 7 pages of 64 "
              "tokens, 0.00 M tokens of KV in all; contexts up to 448 "
              "tokens\n");
}


static void
test_lacks(void **state)
{
    dsa_err_t   err;
    dsa_plan_t  plan;

    make(&plan, 3, 20 * GB);
    plan.gpu[1].memory = 16 * GB;
    plan.gpu[2].memory = 15 * GB;

    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_ERROR);
    assert_string_equal(err.text, "GPU 2 has 15.00 GB of memory but needs "
                        "16.50 = weights 10.00 + workspace 4.00 + exchange "
                        "1.00 + graphs and driver 1.50 + at least one page "
                        "0.00");

    /* "kv_memory" is too large, or everything is */

    plan.free = 1;
    plan.kv_memory = 4 * GB;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_ERROR);
    assert_string_equal(err.text, "GPU 2 has 15.00 GB of free memory but "
                        "needs 20.50 = weights 10.00 + workspace 4.00 + "
                        "exchange 1.00 + graphs and driver 1.50 + pages 4.00");

    make(&plan, 1, 20 * GB);
    plan.kv_memory = 4 * GB;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_ERROR);
    assert_non_null(strstr(err.text, "pages 4.00; \"kv_memory\" can be 3337m "
                           "at most"));         /* 3.5e9 / 2^20 = 3337.86 */

    plan.kv_memory = 3337ULL << 20;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_OK);

    plan.kv_memory = MB - 1;
    assert_int_equal(dsa_plan_pages(&plan, &err), DSA_ERROR);
    assert_string_equal(err.text, "\"kv_memory\" is 999999 bytes; expected at "
                        "least one page, 1000000 bytes");
}


/*
 * A model of 100 GB of experts and 10 GB of other weights, which can be split
 * over 1, 2, 4, 8 or 16 GPUs; with "attention tensor" all of it is.
 */

static int
needs(void *data, dsa_plan_needs_t *n, uint32_t gpus,
    dsa_attention_e attention, dsa_err_t *err)
{
    uint32_t  *most;

    most = data;

    if ((gpus & (gpus - 1)) != 0 || gpus > *most) {
        return dsa_error(err, "it cannot be split so");
    }

    memset(n, 0, sizeof(dsa_plan_needs_t));

    n->weights = 100 * GB / gpus;
    n->weights += attention == DSA_ATTENTION_DATA ? 10 * GB : 10 * GB / gpus;

    return DSA_OK;
}


static void
alternatives(dsa_plan_t *plan, uint64_t memory, uint32_t most,
    const char *want)
{
    dsa_err_t  err;

    plan->gpu[1].memory = memory;
    (void) dsa_error(&err, "x");
    dsa_plan_alternatives(plan, needs, &most, &err);
    assert_string_equal(err.text, want);
}


static void
test_alternatives(void **state)
{
    dsa_err_t   err;
    uint32_t    most;
    dsa_plan_t  plan;

    /* GPU 1 has less than GPU 0; 0.1 GB are for the context */

    make(&plan, 2, 1000 * GB);
    plan.gpu[1].needs.weights = 200 * GB;

    alternatives(&plan, 30 * GB, 16, "x; enough for a context of 6400 tokens: "
                 "8 such GPUs with \"attention data\", or 4 such GPUs with "
                 "\"attention tensor\"");
    alternatives(&plan, 22 * GB, 8, "x; enough for a context of 6400 tokens: "
                 "8 such GPUs with \"attention tensor\"");
    alternatives(&plan, 9 * GB, 16, "x; enough for a context of 6400 tokens: "
                 "16 such GPUs with \"attention tensor\"");
    alternatives(&plan, 111 * GB, 16, "x; enough for a context of 6400 "
                 "tokens: 1 such GPU with \"attention data\", or 1 such GPU "
                 "with \"attention tensor\"");
    alternatives(&plan, 5 * GB, 16, "x; up to 16 such GPUs cannot hold the "
                 "model and a context of 6400 tokens");

    /* 16 GPUs with "attention tensor" have 6.875 GB of weights each */

    alternatives(&plan, 6975 * MB, 16, "x; enough for a context of 6400 "
                 "tokens: 16 such GPUs with \"attention tensor\"");
    alternatives(&plan, 6975 * MB - 1, 16, "x; up to 16 such GPUs cannot hold "
                 "the model and a context of 6400 tokens");

    /* kv_memory has no influence */

    plan.kv_memory = 7 * GB;
    alternatives(&plan, 30 * GB, 16, "x; enough for a context of 6400 tokens: "
                 "8 such GPUs with \"attention data\", or 4 such GPUs with "
                 "\"attention tensor\"");

    /* the two GPUs have room for a page each: only kv_memory is too large */

    plan.gpu[0].needs.weights = 25 * GB;
    plan.gpu[1].needs.weights = 25 * GB;
    alternatives(&plan, 31 * GB + GB / 2 + MB, 16, "x");
    alternatives(&plan, 31 * GB + GB / 2 + MB - 1, 16, "x; enough for a "
                 "context of 6400 tokens: 8 such GPUs with \"attention data\", "
                 "or 4 such GPUs with \"attention tensor\"");

    /* what does not fit the text is cut off */

    most = 16;
    memset(err.text, 'y', sizeof(err.text) - 1);
    err.text[sizeof(err.text) - 4] = '\0';
    dsa_plan_alternatives(&plan, needs, &most, &err);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_string_equal(err.text + sizeof(err.text) - 5, "y; e");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_lacks),
        cmocka_unit_test(test_alternatives)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
