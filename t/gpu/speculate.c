
/*
 * Copyright (C) The nginx-dsa authors
 */


#define SERVING_BACKEND     DSA_BACKEND_CUDA
#define SERVING_PRECISION   DSA_SERVED
#define SERVING_BOUND       0
#define SERVING_PAGE        dsa_backend_cuda_page

#include <cuda_runtime_api.h>

#include "engine/cuda/group.h"
#include "t/unit/serving.h"


/*
 * Answers with drafts of the draft layer on a GPU: the tokens are those without
 * drafts, greedy and sampled, with and without penalties, also after a
 * preemption.  t/gpu/drafts.t runs it with a model, and with the work shared by
 * two ranks, on GPU 1, too, if there is one:
 *
 *     gpu_speculate MODEL [data|tensor]
 */

#define PAGES       64
#define FEW_PAGES   (attention == DSA_ATTENTION_DATA ? 12 / gpus + (gpus > 1) \
                                                     : 12)


static const char  *path;                /* of the model */
static uint64_t     share_drafts;        /* of 3 drafts, without masks */
static uint64_t     share_accepted;


/* The answers of all clients at once are those that each has alone. */

static void
check(uint32_t n_drafts, uint32_t pages)
{
    uint32_t           i, k;
    client_t           c[CLIENTS];
    engine_t           e;
    dsa_sched_stats_t  stats;

    drafts = n_drafts;

    memcpy(c, alone, sizeof(c));
    start(&e, pages, 100);

    for (i = 0; i < CLIENTS; i++) {
        submit(&e, &c[i], (uint8_t) i);
    }

    run(&e);
    dsa_sched_stats(e.sched, &stats);
    finish(&e);

    print_message("%u drafts, %u pages: %llu preemptions, %llu of %llu drafts "
                  "accepted\n", n_drafts, pages,
                  (unsigned long long) stats.preemptions,
                  (unsigned long long) stats.accepted_tokens,
                  (unsigned long long) stats.draft_tokens);

    for (i = 0; i < CLIENTS; i++) {
        assert_int_equal(c[i].n, ANSWER);

        for (k = 0; k < ANSWER; k++) {
            if (c[i].sample[k].token != alone[i].sample[k].token) {
                fail_msg("client %u: token %u differs with %u drafts", i, k,
                         n_drafts);
            }
        }
    }

    if (n_drafts == 3) {
        share_drafts = stats.draft_tokens;
        share_accepted = stats.accepted_tokens;
    }

    assert_true(pages != FEW_PAGES || gpus > 1 || stats.preemptions != 0);
    assert_true(stats.accepted_tokens != 0);
    assert_true(stats.accepted_tokens < stats.draft_tokens);
}


/* Token i of an answer has an id of which the remainder by MODULUS is i's. */

#define MODULUS     8

static int
on_mask(void *owner, const uint32_t *known, uint32_t n, uint32_t first,
    uint32_t *mask, uint32_t words)
{
    uint32_t         i, id;
    const client_t  *c = owner;

    for (i = first; i <= n; i++, mask += words) {
        for (id = 0; id < 32 * words; id++) {
            if (id % MODULUS != (c->n + i) % MODULUS) {
                mask[id / 32] &= ~(1U << id % 32);
            }
        }
    }

    return 1;
}


/*
 * With masks the answers are the same with and without drafts, and drafts are
 * drawn with them.
 */

static void
test_masked(void **state)
{
    uint32_t           i, k;
    client_t           want[CLIENTS], c[CLIENTS];
    engine_t           e;
    dsa_sched_stats_t  stats;

    memcpy(want, alone, sizeof(want));

    for (i = 0; i < CLIENTS; i++) {
        want[i].n = 0;
        want[i].ended = 0;
        want[i].mask = on_mask;
    }

    memcpy(c, want, sizeof(c));

    drafts = 0;
    start(&e, PAGES, 100);

    for (i = 0; i < CLIENTS; i++) {
        submit(&e, &want[i], (uint8_t) i);
    }

    run(&e);
    finish(&e);

    drafts = 3;
    start(&e, PAGES, 100);

    for (i = 0; i < CLIENTS; i++) {
        submit(&e, &c[i], (uint8_t) i);
    }

    run(&e);
    dsa_sched_stats(e.sched, &stats);
    finish(&e);

    print_message("masked, 3 drafts: %llu of %llu drafts accepted\n",
                  (unsigned long long) stats.accepted_tokens,
                  (unsigned long long) stats.draft_tokens);

    for (i = 0; i < CLIENTS; i++) {
        assert_int_equal(c[i].n, ANSWER);

        for (k = 0; k < ANSWER; k++) {
            assert_int_equal(c[i].sample[k].token, want[i].sample[k].token);
            assert_int_equal(c[i].sample[k].token % MODULUS, k % MODULUS);
        }
    }

    /* of drafts without masks, one of MODULUS would be permitted at all */

    assert_true(MODULUS * stats.accepted_tokens * share_drafts
                >= 2 * share_accepted * stats.draft_tokens);
}


static void
test_equal(void **state)
{
    check(1, PAGES);
    check(3, PAGES);
    check(7, PAGES);
}


static void
test_preempted_drafts(void **state)
{
    check(1, FEW_PAGES);
    check(3, FEW_PAGES);
    check(7, FEW_PAGES);
}


/* What each client has alone, without drafts. */

static int
setup_sampled(void **state)
{
    uint32_t  i;
    engine_t  e;

    if (setup_model(path) != 0) {
        return -1;
    }

    for (i = 0; i < CLIENTS; i++) {
        alone[i].seed = 7 + i;
        alone[i].temperature = i % 2 ? 0.8f : 0;
        alone[i].presence_penalty = i > 1 ? 0.5f : 0;

        start(&e, PAGES, 256);
        submit(&e, &alone[i], 0);
        run(&e);
        finish(&e);
    }

    return 0;
}


int
main(int argc, char **argv)
{
    int  n;

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_preempted_drafts),
        cmocka_unit_test(test_masked)
    };

    if (argc < 2 || argc > 3
        || (argc == 3 && strcmp(argv[2], "data") != 0
            && strcmp(argv[2], "tensor") != 0))
    {
        fprintf(stderr, "usage: gpu_speculate MODEL [data|tensor]\n");
        return 2;
    }

    path = argv[1];

    if (argc == 3) {
        gpus = 2;
        attention = strcmp(argv[2], "data") == 0 ? DSA_ATTENTION_DATA
                                                 : DSA_ATTENTION_TENSOR;
        dsa_cuda_load_all();
        number[1] = cudaGetDeviceCount(&n) == 0 && n > 1;
    }

    return cmocka_run_group_tests(tests, setup_sampled, NULL);
}
