
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * The exchange between ranks.  All cases run with ranks that share one GPU, in
 * streams of their own, and where the machine has several GPUs also with one
 * rank on each.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernels/core/bf16.h"
#include "t/gpu/exchange.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


#define ROUNDS      12              /* of a graph */
#define GRAPHS      4               /* with other delays */
#define REPLAYS     400

#define LINKS       16              /* of a chain of all-reduces */
#define CHAINS      100


/* The numbers of ranks and GPUs that a test runs with. */

static int
gpus_here(void)
{
    int  n;

    gpu_ok(cudaGetDeviceCount(&n));

    return n;
}


typedef void (*world_pt)(uint32_t ranks, int gpus);


static void
each_world(world_pt test)
{
    int       n;
    uint32_t  ranks;

    n = gpus_here();

    test(1, 1);
    test(2, 1);
    test(4, 1);

    for (ranks = 2; ranks <= RANKS; ranks += 2) {
        if (n >= (int) ranks) {
            test(ranks, (int) ranks);
        }
    }

    if (n == 2) {
        test(4, 2);
    }
}


/* Each kind of size: one round after another, checked one by one. */

static void
rounds(uint32_t ranks, int gpus)
{
    uint32_t  i, r;
    world_t   w;

    static const uint32_t  tokens[][RANKS] = {
        { 1, 1, 1, 1 },
        { 5, 0, 3, 8 },
        { 0, 0, 0, 0 },
        { 7, 16, 1, 2 },
        { 33, 61, 64, 0 },
        { 90, 3, 17, 31 }
    };
    static const round_t   sizes[] = {
        { .slot = 1, .experts = 4, .k = 2, .cols = 128, .rows = 1,
          .wide = 4 },
        { .slot = 8, .experts = 3, .k = 1, .cols = 256, .rows = 3,
          .wide = 12 },
        { .slot = 5, .experts = 32, .k = 8, .cols = 7168, .rows = 1,
          .wide = 100 },
        { .slot = 16, .experts = 16, .k = 8, .cols = 7168, .rows = 16,
          .wide = 1024, .split = 9 },
        { .slot = 64, .experts = 19, .k = 16, .cols = 1152, .rows = 37,
          .wide = 64 },
        { .slot = 100, .experts = 64, .k = 8, .cols = 2048, .rows = 100,
          .wide = 128, .split = 100 }
    };
    static round_t         n;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        world_open(&w, ranks, gpus, 100, sizes[i].cols, 0);
        n = sizes[i];
        round_open(&w, &n, tokens[i]);
        round_poison(&w, &n);

        for (r = 0; r < ranks; r++) {
            round_enqueue(&w, &n, r, 0);
        }

        world_sync(&w);
        round_check(&w, &n);
        round_close(&w, &n);
        world_close(&w);
    }
}


static void
test_rounds(void **state)
{
    each_world(rounds);
}


/* Hundreds of rows: the sum by two exchanges, and sums of few rows between. */

static void
reduces(uint32_t ranks, int gpus)
{
    uint32_t  i, r, c;
    world_t   w;

    static const uint32_t  tokens[RANKS];
    static const uint32_t  rows[] = { 600, 2, 555, 1, 600 };
    static round_t         n[5];

    c = 2048;
    world_open(&w, ranks, gpus, 600, c, 0);

    for (i = 0; i < 5; i++) {
        memset(&n[i], 0, sizeof(n[i]));
        n[i].slot = 1;
        n[i].experts = 1;
        n[i].k = 1;
        n[i].cols = c;
        n[i].rows = rows[i];
        n[i].wide = 8;
        round_open(&w, &n[i], tokens);
        round_poison(&w, &n[i]);
    }

    /* in place */

    for (r = 0; r < ranks; r++) {
        n[4].m[r].d_sum = n[4].m[r].d_reduce;
    }

    for (i = 0; i < 5; i++) {
        for (r = 0; r < ranks; r++) {
            round_enqueue(&w, &n[i], r, 0);
        }
    }

    world_sync(&w);

    for (i = 0; i < 5; i++) {
        round_check(&w, &n[i]);
        round_close(&w, &n[i]);
    }

    world_close(&w);
}


static void
test_reduces(void **state)
{
    each_world(reduces);
}


/* What a kernel stored before a signal is there after the wait. */

static void
signals(uint32_t ranks, int gpus)
{
    uint32_t  i, r, q, value, got;
    world_t   w;

    world_open(&w, ranks, gpus, 64, 128, 0);

    for (i = 0; i < 50; i++) {
        for (r = 0; r < ranks; r++) {
            gpu_ok(cudaSetDevice(w.device[r]));

            for (q = 0; q < ranks; q++) {
                gpu_ok(cudaMemsetAsync((uint8_t *) w.part[q] + r * 1024,
                                       (int) (i + r) % 256, 1024,
                                       w.stream[r]));
            }

            round_delay(&w, r, 1);
            gpu_ok(dsa_cuda_exchange_signal(&w.x[r], w.stream[r]));
            gpu_ok(dsa_cuda_exchange_wait(&w.x[r], w.stream[r]));
        }

        world_sync(&w);

        for (r = 0; r < ranks; r++) {
            assert_int_equal(w.fault[r]->failed, 0);

            for (q = 0; q < ranks; q++) {
                value = (i + q) % 256 * 0x01010101U;
                world_fetch(&w, r, &got,
                            (uint8_t *) w.part[r] + q * 1024 + 1020, 4);
                assert_int_equal(got, value);
            }
        }
    }

    world_close(&w);
}


static void
test_signals(void **state)
{
    each_world(signals);
}


/* One rank's stream of all rounds as a graph, with random delays. */

static cudaGraphExec_t
capture(const world_t *w, const round_t *n, uint32_t r)
{
    uint32_t         i;
    cudaGraph_t      graph;
    cudaGraphExec_t  exec;

    gpu_ok(cudaSetDevice(w->device[r]));
    gpu_ok(cudaStreamBeginCapture(w->stream[r],
                                  cudaStreamCaptureModeThreadLocal));

    for (i = 0; i < ROUNDS; i++) {
        round_enqueue(w, &n[i], r, 1);
    }

    gpu_ok(cudaStreamEndCapture(w->stream[r], &graph));
    gpu_ok(cudaGraphInstantiate(&exec, graph, 0));
    gpu_ok(cudaGraphDestroy(graph));
    gpu_ok(cudaGraphUpload(exec, w->stream[r]));

    return exec;
}


/*
 * Rounds in captured graphs, back to back.  The graphs of a rank differ in
 * their delays only, and each replay chooses one at random, so that the ranks
 * meet in another way each time.  The flags wrap in the first replays.
 */

static void
graphs(uint32_t ranks, int gpus)
{
    uint32_t         i, j, r, replay, tokens[RANKS];
    world_t          w;
    cudaGraphExec_t  exec[RANKS][GRAPHS];

    static round_t   n[ROUNDS];

    world_open(&w, ranks, gpus, 600, 2048, 65536 - 100);

    for (i = 0; i < ROUNDS; i++) {
        memset(&n[i], 0, sizeof(n[i]));

        n[i].slot = 1 + dsa_t_random(12);
        n[i].experts = 2 + dsa_t_random(8);
        n[i].k = 1 + dsa_t_random(n[i].experts < 8 ? n[i].experts : 8);
        n[i].cols = i % 2 == 0 ? 512 : 2048;
        n[i].rows = i % 6 == 5 ? 600 : 1 + dsa_t_random(20);
        n[i].wide = 4 * (1 + dsa_t_random(64));
        n[i].split = dsa_t_random(ranks * n[i].slot);

        for (r = 0; r < ranks; r++) {
            tokens[r] = dsa_t_random(n[i].slot + 1);
        }

        round_open(&w, &n[i], tokens);
    }

    for (r = 0; r < ranks; r++) {
        for (j = 0; j < GRAPHS; j++) {
            exec[r][j] = capture(&w, n, r);
        }
    }

    for (replay = 0; replay < REPLAYS; replay++) {
        for (i = 0; i < ROUNDS; i++) {
            round_poison(&w, &n[i]);
        }

        for (j = 0; j < 2; j++) {
            for (r = 0; r < ranks; r++) {
                gpu_ok(cudaSetDevice(w.device[r]));
                gpu_ok(cudaGraphLaunch(exec[r][dsa_t_random(GRAPHS)],
                                       w.stream[r]));
            }
        }

        world_sync(&w);

        for (i = 0; i < ROUNDS; i++) {
            round_check(&w, &n[i]);
        }
    }

    for (r = 0; r < ranks; r++) {
        for (j = 0; j < GRAPHS; j++) {
            gpu_ok(cudaGraphExecDestroy(exec[r][j]));
        }
    }

    for (i = 0; i < ROUNDS; i++) {
        round_close(&w, &n[i]);
    }

    world_close(&w);
}


static void
test_graphs(void **state)
{
    int  n;

    n = gpus_here();
    graphs(2, n > 1 ? 2 : 1);
}


static void
test_graphs_one_gpu(void **state)
{
    graphs(2, 1);
}


/* All-reduces of many words in one kernel, with nothing else between them. */

static void
chains(uint32_t ranks, int gpus)
{
    float            factor;
    size_t           i, size;
    uint32_t         r, link, replay;
    world_t          w;
    cudaGraph_t      graph;
    cudaGraphExec_t  exec[RANKS];

    static const uint32_t  tokens[RANKS];
    static round_t         n;

    memset(&n, 0, sizeof(n));
    n.slot = 1;
    n.experts = 1;
    n.k = 1;
    n.cols = 2048;
    n.rows = ranks == 2 ? 250 : 80;
    n.wide = 4;

    world_open(&w, ranks, gpus, n.rows, n.cols, 0);
    round_open(&w, &n, tokens);
    size = (size_t) n.rows * n.cols * sizeof(dsa_bf16_t);

    /* after the first sum all ranks have the same, and a sum multiplies it */

    factor = 1;

    for (link = 1; link < LINKS; link++) {
        factor *= (float) ranks;
    }

    for (r = 0; r < ranks; r++) {
        for (i = 0; i < size / sizeof(dsa_bf16_t); i++) {
            n.m[r].sum[i] = dsa_bf16_encode(dsa_bf16_decode(n.m[r].sum[i])
                                            * factor);
        }

        gpu_ok(cudaSetDevice(w.device[r]));
        gpu_ok(cudaStreamBeginCapture(w.stream[r],
                                      cudaStreamCaptureModeThreadLocal));
        gpu_ok(cudaMemcpyAsync(n.m[r].d_sum, n.m[r].d_reduce, size,
                               cudaMemcpyDeviceToDevice, w.stream[r]));

        for (link = 0; link < LINKS; link++) {
            gpu_ok(dsa_cuda_exchange_all_reduce(&w.x[r], n.m[r].d_sum,
                                                n.m[r].d_sum, w.sum_part,
                                                n.rows, n.cols, w.stream[r]));
        }

        gpu_ok(cudaStreamEndCapture(w.stream[r], &graph));
        gpu_ok(cudaGraphInstantiate(&exec[r], graph, 0));
        gpu_ok(cudaGraphDestroy(graph));
    }

    for (replay = 0; replay < CHAINS; replay++) {
        for (r = 0; r < ranks; r++) {
            gpu_ok(cudaSetDevice(w.device[r]));
            gpu_ok(cudaGraphLaunch(exec[r], w.stream[r]));
        }

        world_sync(&w);

        for (r = 0; r < ranks; r++) {
            assert_int_equal(w.fault[r]->failed, 0);
            round_same(&w, r, n.m[r].d_sum, n.m[r].sum, size, "chain");
        }
    }

    for (r = 0; r < ranks; r++) {
        gpu_ok(cudaGraphExecDestroy(exec[r]));
    }

    round_close(&w, &n);
    world_close(&w);
}


static void
test_chains(void **state)
{
    each_world(chains);
}


static uint64_t
now_ns(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * SECOND + (uint64_t) t.tv_nsec;
}


/* Enqueues one op that waits for a rank that does not take part. */

static void
enqueue_op(const world_t *w, const round_t *n, uint32_t r, int op)
{
    const member_t             *m;
    const dsa_cuda_exchange_t  *x;

    m = &n->m[r];
    x = &w->x[r];
    gpu_ok(cudaSetDevice(w->device[r]));

    switch (op) {

    case 0:
        gpu_ok(dsa_cuda_exchange_signal(x, w->stream[r]));
        gpu_ok(dsa_cuda_exchange_wait(x, w->stream[r]));
        break;

    case 1:
        gpu_ok(dsa_cuda_exchange_signal(x, w->stream[r]));
        gpu_ok(dsa_cuda_exchange_sum(x, m->d_y, w->part[r], m->d_shared,
                                     m->d_expert, m->d_live, m->tokens,
                                     n->slot, n->experts, n->k, n->cols,
                                     w->stream[r]));
        break;

    case 2:
        gpu_ok(dsa_cuda_exchange_all_reduce(x, m->d_sum, m->d_reduce,
                                            w->sum_part, 1, n->cols,
                                            w->stream[r]));
        break;

    case 3:
        gpu_ok(dsa_cuda_exchange_all_reduce(x, m->d_sum, m->d_reduce,
                                            w->sum_part, n->rows, n->cols,
                                            w->stream[r]));
        break;

    default:
        gpu_ok(dsa_cuda_exchange_gather(x, w->gathered, m->d_own, n->rows,
                                        n->wide, w->stream[r]));
        break;
    }
}


/*
 * All ranks but the last wait for it.  Their streams end after one time limit,
 * whatever follows in them, and the fault names the last rank.  The exchange is
 * the one at which the flags wrap to 0.
 */

static void
deadlines(uint32_t ranks, int gpus)
{
    int       op;
    uint32_t  i, r, tokens[RANKS];
    uint64_t  start, took;
    world_t   w;

    static round_t  n;

    if (ranks == 1) {
        return;
    }

    for (op = 0; op < 5; op++) {
        world_open(&w, ranks, gpus, 600, 2048, 65535);
        memset(&n, 0, sizeof(n));
        n.slot = 4;
        n.experts = 2;
        n.k = 1;
        n.cols = 2048;
        n.rows = 600;
        n.wide = 8;

        for (r = 0; r < ranks; r++) {
            w.x[r].timeout_ns = SECOND / 5;
            tokens[r] = 4;
        }

        round_open(&w, &n, tokens);
        start = now_ns();

        for (r = 0; r + 1 < ranks; r++) {
            for (i = 0; i < 20; i++) {
                enqueue_op(&w, &n, r, i == 0 ? op : (int) i % 5);
            }
        }

        world_sync(&w);
        took = now_ns() - start;

        assert_true(took >= SECOND / 5);
        assert_true(took < SECOND / 5 * 2);

        for (r = 0; r + 1 < ranks; r++) {
            assert_int_equal(w.fault[r]->failed, 1);
            assert_int_equal(w.fault[r]->missing, ranks - 1);
            assert_int_equal(w.fault[r]->number, op == 2 ? 1 : 0);
        }

        assert_int_equal(w.fault[ranks - 1]->failed, 0);

        round_close(&w, &n);
        world_close(&w);
    }
}


static void
test_deadlines(void **state)
{
    each_world(deadlines);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_rounds, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_reduces, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_signals, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_deadlines, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_chains, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_graphs, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_graphs_one_gpu, gpu_setup,
                                        gpu_free_all)
    };

    /*
     * A kernel that is loaded at its first launch may wait for the GPU, and so
     * for a kernel that waits for a rank whose kernels come next.
     */

    (void) setenv("CUDA_MODULE_LOADING", "EAGER", 1);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
