
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * A product starts while the kernel before it in the stream still runs.  It
 * must not read rows, and must not write y, before that kernel has ended.
 * Here dsa_cuda_rmsnorm(), which permits the next kernel to start before it
 * writes, writes the rows of each product, in a stream and in a graph.  It has
 * a block of threads for each row.  So 129 rows leave 3 of the 132
 * multiprocessors idle, and there the product starts at once.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/row/norm.h"
#include "kernels/sample/random.h"
#include "t/gpu/products.h"


#define TEST_ORDER      3
#define TEST_TURNS      4

typedef struct {
    dsa_bf16_t        *source[TEST_ORDER];
    dsa_bf16_t        *y[TEST_ORDER];
    float             *expected[TEST_ORDER];
    float             *norm;
    size_t             n;               /* elements of a y */
    uint32_t           rows;
    dsa_fp8_rows_t     x;
    dsa_fp8_weight_t   w;
} test_order_t;


static void
test_order_begin(test_order_t *t, uint32_t rows)
{
    float    *v, *scale;
    size_t    i, n, groups;
    uint8_t  *q;

    t->rows = rows;
    t->w.rows = 2240;
    t->w.cols = 7168;

    groups = t->w.cols / 128;
    n = (t->w.rows + 127) / 128 * groups;
    q = gpu_alloc((size_t) t->w.rows * t->w.cols);
    scale = gpu_alloc(n * sizeof(float));
    t->w.q = q;
    t->w.scale = scale;
    t->norm = gpu_alloc(t->w.cols * sizeof(float));

    gpu_ok(dsa_cuda_random_e4m3(q, (size_t) t->w.rows * t->w.cols, 1, NULL));
    gpu_ok(dsa_cuda_random_f32(scale, n, 1.0f, 0.5f, 2, NULL));
    gpu_ok(dsa_cuda_random_f32(t->norm, t->w.cols, 1.0f, 0.5f, 3, NULL));

    t->x.ld = (rows + 3) / 4 * 4;
    t->x.q = gpu_alloc((size_t) rows * t->w.cols);
    t->x.scale = gpu_alloc(t->x.ld * groups * sizeof(float));

    t->n = (size_t) rows * t->w.rows;
    n = (size_t) rows * t->w.cols;

    for (i = 0; i < TEST_ORDER; i++) {
        t->y[i] = gpu_alloc(t->n * sizeof(dsa_bf16_t));
        t->source[i] = gpu_alloc(n * sizeof(dsa_bf16_t));
        gpu_ok(dsa_cuda_random_bf16(t->source[i], n, 0.0f, 1.0f, 4 + i, NULL));
    }

    /* what is expected: products that start when all is quiet */

    for (i = 0; i < TEST_ORDER; i++) {
        gpu_sync();
        gpu_ok(dsa_cuda_rmsnorm(NULL, 0, &t->x, t->source[i], t->w.cols,
                                t->norm, rows, t->w.cols, 1e-6f, 1, NULL));
        gpu_sync();
        gpu_ok(dsa_cuda_gemm_fp8(test_gemm, t->y[i], t->w.rows, &t->x, &t->w,
                                 rows, NULL));

        v = test_fetch(t->y[i], t->n, 0);
        assert_true(i == 0 || memcmp(v, t->expected[0], t->n * sizeof(float))
                              != 0);
        t->expected[i] = v;
        gpu_poison(t->y[i], t->n * sizeof(dsa_bf16_t));
    }
}


static void
test_order_run(const test_order_t *t, cudaStream_t stream)
{
    size_t  i;

    for (i = 0; i < TEST_ORDER; i++) {
        gpu_ok(dsa_cuda_rmsnorm(NULL, 0, &t->x, t->source[i], t->w.cols,
                                t->norm, t->rows, t->w.cols, 1e-6f, 1,
                                stream));
        gpu_ok(dsa_cuda_gemm_fp8(test_gemm, t->y[i], t->w.rows, &t->x, &t->w,
                                 t->rows, stream));
    }
}


static void
test_order_check(const test_order_t *t, const char *where)
{
    float   *v;
    size_t   i;

    for (i = 0; i < TEST_ORDER; i++) {
        v = test_fetch(t->y[i], t->n, 0);

        if (memcmp(v, t->expected[i], t->n * sizeof(float)) != 0) {
            fail_msg("%u rows, product %zu in a %s: rows were read too early",
                     t->rows, i, where);
        }

        free(v);
        gpu_poison(t->y[i], t->n * sizeof(dsa_bf16_t));
    }
}


static void
test_order(void **state)
{
    size_t           i, j;
    cudaGraph_t      graph;
    cudaStream_t     stream;
    test_order_t     t;
    cudaGraphExec_t  exec;

    static const uint32_t  rows[] = { 7, 64, 65, 128, 129, 300, 1003 };

    gpu_ok(cudaStreamCreate(&stream));

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        test_begin();
        test_order_begin(&t, rows[i]);

        gpu_ok(cudaStreamBeginCapture(stream,
                                      cudaStreamCaptureModeThreadLocal));
        test_order_run(&t, stream);
        gpu_ok(cudaStreamEndCapture(stream, &graph));
        gpu_ok(cudaGraphInstantiate(&exec, graph, 0));

        for (j = 0; j < TEST_TURNS; j++) {
            gpu_sync();
            test_order_run(&t, stream);
            gpu_sync();
            test_order_check(&t, "stream");

            gpu_ok(cudaGraphLaunch(exec, stream));
            gpu_sync();
            test_order_check(&t, "graph");
        }

        gpu_ok(cudaGraphExecDestroy(exec));
        gpu_ok(cudaGraphDestroy(graph));

        for (j = 0; j < TEST_ORDER; j++) {
            free(t.expected[j]);
        }

        test_end();
    }

    gpu_ok(cudaStreamDestroy(stream));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_order, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
