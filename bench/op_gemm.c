
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/gemm/gemm.h"
#include "kernels/sample/random.h"


/* Several weights alternate, so that none is found in the L2 (50 MB). */
#define BENCH_COLD      (200 << 20)
#define BENCH_SETS      48


typedef struct {
    dsa_cuda_gemm_t    *gemm;
    void               *y;
    dsa_bf16_t         *x;
    dsa_bf16_t         *w;
    dsa_fp8_rows_t      x8;
    dsa_fp8_weight_t    w8;
    size_t              step;           /* bytes from a set's weight on */
    uint32_t            heads, rows, out, in;
    uint32_t            part;           /* of kv_b_proj: rows of a head */
    int                 f32, transposed;
} bench_gemm_t;


static int
bench_fp8(dsa_bench_t *b, void *ctx, int set)
{
    bench_gemm_t      *c;
    dsa_fp8_weight_t   w;

    c = ctx;
    w = c->w8;
    w.q += (size_t) set * c->step;

    return dsa_cuda_gemm_fp8(c->gemm, c->y, w.rows, &c->x8, &w, c->rows,
                             b->stream);
}


static int
bench_bf16(dsa_bench_t *b, void *ctx, int set)
{
    bench_gemm_t  *c;

    c = ctx;

    return dsa_cuda_gemm_bf16(c->gemm, c->y, c->out, c->f32, c->x, c->in,
                              c->w + (size_t) set * c->step / 2, c->in,
                              c->rows, c->out, c->in, b->stream);
}


/* The keys' or the values' part of kv_b_proj: part x 512 a head. */

static int
bench_heads(dsa_bench_t *b, void *ctx, int set)
{
    size_t         ld_x, ld_y;
    bench_gemm_t  *c;

    c = ctx;
    ld_x = (size_t) c->heads * c->in;
    ld_y = (size_t) c->heads * c->out;

    return dsa_cuda_gemm_heads(c->gemm, c->y, ld_y, c->out, c->x, ld_x, c->in,
                               c->w + (size_t) set * c->step / 2, 512,
                               (size_t) c->part * 512, c->transposed,
                               c->heads, c->rows, c->out, c->in, b->stream);
}


static void
bench_row(dsa_bench_t *b, bench_gemm_t *c, dsa_bench_pt call, const char *what,
    double tflops)
{
    int     sets;
    char    shape[80];
    double  us, flop, weight, element;

    element = call == bench_fp8 ? 1 : 2;
    weight = element * c->heads * c->out * c->in;

    sets = (int) (BENCH_COLD / weight) + 1;
    sets = sets > BENCH_SETS ? BENCH_SETS : sets;

    us = dsa_bench_time(b, call, c, sets);
    flop = 2.0 * c->heads * c->rows * c->out * c->in;

    if (c->heads > 1) {
        (void) snprintf(shape, sizeof(shape), "%u x %ux%u, %u rows", c->heads,
                        c->out, c->in, c->rows);

    } else {
        (void) snprintf(shape, sizeof(shape), "%ux%u, %u rows", c->out, c->in,
                        c->rows);
    }

    dsa_bench_row(b, what, shape, us, flop, tflops,
                  weight + (double) c->heads * c->rows
                           * (c->in * element + c->out * (c->f32 ? 4 : 2)));
}


static void
bench_fp8_rows(dsa_bench_t *b, bench_gemm_t *c, const uint32_t *rows, size_t n)
{
    size_t  i, j;

    static const struct {
        uint32_t  out, in;
    } shape[] = {
        { 7168, 16384 }, { 24576, 1536 }, { 4096, 7168 }, { 7168, 2048 },
        { 2240, 7168 }, { 8192, 1536 }, { 32768, 512 }, { 36864, 7168 },
        { 7168, 18432 },

        { 6144, 16384 }, { 16384, 2048 }, { 4096, 6144 }, { 6144, 2048 },
        { 2752, 6144 }, { 4096, 2048 }, { 28672, 512 }, { 24576, 6144 },
        { 6144, 12288 }                 /* GLM-5.2 */
    };

    c->heads = 1;
    c->f32 = 0;

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        for (j = 0; j < n; j++) {
            c->out = shape[i].out;
            c->in = shape[i].in;
            c->rows = rows[j];
            c->w8.rows = c->out;
            c->w8.cols = c->in;
            c->x8.ld = (c->rows + 3) / 4 * 4;
            c->step = (size_t) c->out * c->in;

            bench_row(b, c, bench_fp8, "dense FP8", DSA_BENCH_FP8);
        }
    }
}


/* The head, the router, and the indexer's head weights. */

static void
bench_bf16_rows(dsa_bench_t *b, bench_gemm_t *c, const uint32_t *rows,
    size_t n)
{
    size_t  i, j;

    static const struct {
        uint32_t  out, in;
    } shape[] = {
        { 129280, 7168 }, { 256, 7168 }, { 64, 7168 },
        { 154880, 6144 }, { 256, 6144 }, { 32, 6144 }       /* GLM-5.2 */
    };

    c->heads = 1;
    c->f32 = 1;

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        for (j = 0; j < n; j++) {
            c->out = shape[i].out;
            c->in = shape[i].in;
            c->rows = rows[j];
            c->step = (size_t) c->out * c->in * 2;

            if (c->out < 1000 || c->rows <= 256) {
                bench_row(b, c, bench_bf16, "BF16, float32 out",
                          DSA_BENCH_BF16);
            }
        }
    }
}


static void
bench_heads_rows(dsa_bench_t *b, bench_gemm_t *c, const uint32_t *rows,
    size_t n)
{
    size_t  i, j;

    static const struct {
        uint32_t  heads, nope, v;
    } shape[] = {
        { 128, 128, 128 }, { 64, 192, 256 }                 /* GLM-5.2 */
    };

    c->f32 = 0;

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        c->heads = shape[i].heads;
        c->part = shape[i].nope + shape[i].v;
        c->step = (size_t) c->heads * c->part * 512 * 2;

        for (j = 0; j < n; j++) {
            c->rows = rows[j];

            c->out = 512;
            c->in = shape[i].nope;
            c->transposed = 1;
            bench_row(b, c, bench_heads, "absorb, keys", DSA_BENCH_BF16);

            c->out = shape[i].v;
            c->in = 512;
            c->transposed = 0;
            bench_row(b, c, bench_heads, "absorb, values", DSA_BENCH_BF16);
        }
    }
}


/*
 * Many rows are measured last: for a while after such work the GPU runs at a
 * lower clock, and operations of microseconds take a fifth longer.
 */

void
dsa_bench_gemm(dsa_bench_t *b)
{
    int           rc;
    void         *work, *w;
    float        *scale;
    size_t        size;
    bench_gemm_t  c;

    static const uint32_t  few[] = { 1, 8, 32, 64, 128 };
    static const uint32_t  many[] = { 200, 256, 1001, 1024, 4096 };

    memset(&c, 0, sizeof(c));

    size = (size_t) 154880 * 6144 * 2 + (BENCH_COLD);

    work = dsa_bench_alloc(b, dsa_cuda_gemm_work());
    w = dsa_bench_alloc(b, size);
    scale = dsa_bench_alloc(b, 1 << 20);
    c.y = dsa_bench_alloc(b, (size_t) 4096 * 128 * 512 * 2);
    c.x = dsa_bench_alloc(b, (size_t) 4096 * 128 * 512 * 2);
    c.x8.scale = dsa_bench_alloc(b, (size_t) 4096 * 144 * 4);

    if (b->failed) {
        return;
    }

    c.x8.q = (dsa_e4m3_t *) c.x;
    c.w = w;
    c.w8.q = w;
    c.w8.scale = scale;

    rc = dsa_cuda_gemm_create(&c.gemm, &b->state, work);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(w, size, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(c.x8.q, (size_t) 4096 * 18432, 2,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(scale, 1 << 18, 1, 0.5f, 3,
                                            b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(c.x8.scale, (size_t) 4096 * 144, 1,
                                            0.5f, 4, b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    if (rc != 0) {
        goto failed;
    }

    bench_fp8_rows(b, &c, few, sizeof(few) / sizeof(few[0]));

    rc = dsa_cuda_random_bf16(w, size / 2, 0, 0.05f, 5, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(c.x, (size_t) 4096 * 128 * 512, 0,
                                             1, 6, b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    if (rc != 0) {
        goto failed;
    }

    bench_bf16_rows(b, &c, few, sizeof(few) / sizeof(few[0]));
    bench_heads_rows(b, &c, few, sizeof(few) / sizeof(few[0]));
    bench_bf16_rows(b, &c, many, sizeof(many) / sizeof(many[0]));
    bench_heads_rows(b, &c, many, sizeof(many) / sizeof(many[0]));

    rc = dsa_cuda_random_e4m3(w, size, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(c.x8.q, (size_t) 4096 * 18432, 2,
                                             b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    if (rc != 0) {
        goto failed;
    }

    bench_fp8_rows(b, &c, many, sizeof(many) / sizeof(many[0]));

    dsa_cuda_gemm_destroy(c.gemm);

    return;

failed:

    (void) fprintf(stderr, "dsa bench: gemm: %s\n", dsa_cuda_error(rc));
    b->failed = 1;
    dsa_cuda_gemm_destroy(c.gemm);
}


/* The layers of GLM-4.7-Flash and of JoyAI-LLM-Flash, in BF16. */

void
dsa_bench_gemm_bf16(dsa_bench_t *b)
{
    int           rc;
    void         *work;
    size_t        i, j, size;
    bench_gemm_t  c;

    static const struct {
        uint32_t  out, in;
    } shape[] = {
        { 1344, 2048 }, { 5120, 768 }, { 8960, 512 }, { 2048, 5120 },
        { 20480, 2048 }, { 2048, 10240 }, { 3072, 2048 }, { 2048, 1536 },
        { 2112, 2048 }, { 6144, 1536 }, { 2048, 4096 }
    };

    static const uint32_t  rows[] = { 32, 1, 8, 64, 128, 256, 512, 2048,
                                      8192 };

    memset(&c, 0, sizeof(c));

    c.heads = 1;
    size = (size_t) 20480 * 2048 * 2 + (BENCH_COLD);

    work = dsa_bench_alloc(b, dsa_cuda_gemm_work());
    c.w = dsa_bench_alloc(b, size);
    c.y = dsa_bench_alloc(b, (size_t) 8192 * 20480 * 2);
    c.x = dsa_bench_alloc(b, (size_t) 8192 * 10240 * 2);

    if (b->failed) {
        return;
    }

    rc = dsa_cuda_gemm_create(&c.gemm, &b->state, work);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(c.w, size / 2, 0, 0.05f, 1,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(c.x, (size_t) 8192 * 10240, 0, 1,
                                             2, b->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

    for (j = 0; rc == 0 && j < sizeof(rows) / sizeof(rows[0]); j++) {
        for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
            c.out = shape[i].out;
            c.in = shape[i].in;
            c.rows = rows[j];
            c.step = (size_t) c.out * c.in * 2;

            bench_row(b, &c, bench_bf16, "dense BF16", DSA_BENCH_BF16);
        }
    }

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: dense_bf16: %s\n",
                       dsa_cuda_error(rc));
        b->failed = 1;
    }

    dsa_cuda_gemm_destroy(c.gemm);
}
