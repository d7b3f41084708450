
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/bits.h"
#include "bench/gpu.h"
#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm.h"
#include "kernels/sample/random.h"


/*
 * Ops whose bits depend on the number of rows, in the published dimensions, and
 * the same with one order of sums for any number.  Inputs are in HBM, as in a
 * step, which visits other layers in between.
 */

#define DSA_BITS_PAGES      16384       /* of the cache: 826 MB */
#define DSA_BITS_PART       (64 * (DSA_CUDA_RECORD + DSA_CUDA_INDEX + 4))
#define DSA_BITS_ROWS       1024        /* rows of slots, and of queries */
#define DSA_BITS_TOPK       2048
#define DSA_BITS_HEADS      128
#define DSA_BITS_COLD       (200 << 20)
#define DSA_BITS_WEIGHT     (36864 * 7168)
#define DSA_BITS_FEW        128         /* most rows with segments */


typedef struct {
    dsa_bench_t         bench;
    const dsa_bits_t   *bits;

    uint32_t            rows;
    dsa_cuda_state_t    state;          /* with another number of
                                           multiprocessors */
    dsa_cuda_cache_t    cache;
    void               *slot, *n_slot;  /* [DSA_BITS_ROWS, DSA_BITS_TOPK] */
    void               *latents;        /* of all slots, bf16 */
    void               *work;

    dsa_cuda_gemm_t    *library;        /* as in a step */
    dsa_cuda_gemm_t    *own;            /* without the library */
    dsa_cuda_gemm_t    *gemm;
    uint8_t            *w, *x, *y;
    float              *scale;
    uint32_t            out, in;
    uint32_t            blocks;         /* of rows, one after the other */
} dsa_bits_op_t;


static int dsa_bits_inputs(dsa_bits_op_t *o);
static int dsa_bits_numbers(dsa_bits_op_t *o);
static void dsa_bits_attention(dsa_bits_op_t *o);
static void dsa_bits_chunk(dsa_bits_op_t *o);
static void dsa_bits_fp8(dsa_bits_op_t *o);
static void dsa_bits_bf16(dsa_bits_op_t *o);


int
dsa_bits_ops(const dsa_bits_t *b, dsa_err_t *err)
{
    int                   rc;
    dsa_bits_op_t         o;
    dsa_cuda_counters_t  *counters;

    memset(&o, 0, sizeof(o));
    o.bits = b;
    counters = NULL;

    rc = cudaStreamCreate(&o.bench.stream);
    rc = rc != 0 ? rc : (int) cudaMalloc((void **) &counters,
                                         sizeof(dsa_cuda_counters_t));
    rc = rc != 0 ? rc : dsa_cuda_init(&o.bench.state, counters);
    rc = rc != 0 ? rc : dsa_bits_inputs(&o);

    if (rc == 0) {
        dsa_bits_attention(&o);
        dsa_bits_chunk(&o);
        rc = dsa_cuda_random_e4m3(o.x, (size_t) DSA_BITS_PROMPT * 18432, 6,
                                  o.bench.stream);
    }

    if (rc == 0) {
        dsa_bits_fp8(&o);
        rc = dsa_bits_numbers(&o);
    }

    if (rc == 0) {
        dsa_bits_bf16(&o);
    }

    dsa_cuda_gemm_destroy(o.library);
    dsa_cuda_gemm_destroy(o.own);
    dsa_bench_free_all(&o.bench);
    (void) cudaFree(counters);
    (void) cudaStreamDestroy(o.bench.stream);

    if (rc != 0) {
        return dsa_error(err, "the inputs of ops: %s", dsa_cuda_error(rc));
    }

    return o.bench.failed ? dsa_error(err, "an op failed") : DSA_OK;
}


static int
dsa_bits_slots(dsa_bits_op_t *o)
{
    int       rc;
    size_t    i, n;
    int32_t  *slot;

    n = (size_t) DSA_BITS_ROWS * DSA_BITS_TOPK;
    slot = malloc(n * sizeof(int32_t));

    if (slot == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < n; i++) {
        slot[i] = (int32_t) (((uint32_t) rand() ^ (uint32_t) rand() << 11)
                             % (DSA_BITS_PAGES * 64));
    }

    rc = cudaMemcpy(o->slot, slot, n * sizeof(int32_t),
                    cudaMemcpyHostToDevice);

    for (i = 0; i < DSA_BITS_ROWS; i++) {
        slot[i] = DSA_BITS_TOPK;
    }

    rc = rc != 0 ? rc : (int) cudaMemcpy(o->n_slot, slot,
                                         DSA_BITS_ROWS * sizeof(int32_t),
                                         cudaMemcpyHostToDevice);
    free(slot);

    return rc;
}


/* y and x are the output and the input of every op. */

static int
dsa_bits_inputs(dsa_bits_op_t *o)
{
    int           rc;
    void         *work[2];
    size_t        x, y, w, latents;
    dsa_bench_t  *b;

    b = &o->bench;
    x = (size_t) DSA_BITS_PROMPT * DSA_BITS_HEADS * 576 * 2;
    y = (size_t) DSA_BITS_PROMPT * DSA_BITS_HEADS * 512 * 2;
    w = (size_t) DSA_BITS_WEIGHT + DSA_BITS_COLD;
    latents = (size_t) DSA_BITS_PAGES * 64 * 576;

    o->cache.page = DSA_BITS_PART;
    o->cache.keys = 64 * DSA_CUDA_RECORD;
    o->cache.pages = DSA_BITS_PAGES;
    o->cache.bf16 = 0;
    o->cache.base = dsa_bench_alloc(b, (size_t) DSA_BITS_PAGES
                                       * DSA_BITS_PART);
    o->slot = dsa_bench_alloc(b, (size_t) DSA_BITS_ROWS * DSA_BITS_TOPK * 4);
    o->n_slot = dsa_bench_alloc(b, DSA_BITS_ROWS * 4);
    o->latents = dsa_bench_alloc(b, latents * 2);
    o->work = dsa_bench_alloc(b, (size_t) DSA_BITS_SEQS * 32 * DSA_BITS_HEADS
                                 * (DSA_CUDA_LATENT + 1) * 4);
    o->w = dsa_bench_alloc(b, w);
    o->x = dsa_bench_alloc(b, x);
    o->y = dsa_bench_alloc(b, y);
    o->scale = dsa_bench_alloc(b, (size_t) DSA_BITS_PROMPT * 144 * 4);
    work[0] = dsa_bench_alloc(b, dsa_cuda_gemm_work());
    work[1] = dsa_bench_alloc(b, dsa_cuda_gemm_work());

    if (b->failed) {
        return cudaErrorMemoryAllocation;
    }

    rc = dsa_cuda_gemm_create(&o->library, &b->state, work[0]);
    rc = rc != 0 ? rc : dsa_cuda_gemm_create(&o->own, &b->state, work[1]);

    if (rc != 0) {
        return rc;
    }

    dsa_cuda_gemm_seal(o->own);

    rc = dsa_cuda_random_cache(&o->cache, 1, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(o->latents, latents, 0, 1, 2,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_bits_numbers(o);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(o->w, w, 4, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(o->scale, (size_t) DSA_BITS_PROMPT
                                                      * 144, 1, 0.5f, 5,
                                            b->stream);
    rc = rc != 0 ? rc : dsa_bits_slots(o);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);
}


/* The inputs and the weights of products in bf16. */

static int
dsa_bits_numbers(dsa_bits_op_t *o)
{
    int  rc;

    rc = dsa_cuda_random_bf16((dsa_bf16_t *) o->x,
                              (size_t) DSA_BITS_PROMPT * DSA_BITS_HEADS * 576,
                              0, 1, 3, o->bench.stream);

    return rc != 0 ? rc
                   : dsa_cuda_random_bf16((dsa_bf16_t *) o->w,
                                          (DSA_BITS_WEIGHT + DSA_BITS_COLD)
                                          / 2,
                                          0, 0.05f, 4, o->bench.stream);
}


static int
dsa_bits_decode(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bits_op_t  *o = ctx;

    return dsa_cuda_attention_decode(&o->state, (dsa_bf16_t *) o->y,
                                     (dsa_bf16_t *) o->x, &o->cache,
                                     (int32_t *) o->slot
                                     + (size_t) set * o->rows
                                       * DSA_BITS_TOPK,
                                     DSA_BITS_TOPK, o->n_slot, o->rows,
                                     DSA_BITS_HEADS, DSA_BITS_TOPK, 0.1352f,
                                     o->work, b->stream);
}


/*
 * The op splits a row into n parts if there are n multiprocessors for each
 * block of threads; a row has two blocks.  0: as many as it chooses.
 */

static double
dsa_bits_split(dsa_bits_op_t *o, uint32_t rows, uint32_t n)
{
    int  sets;

    o->rows = rows;
    o->state = o->bench.state;

    if (n != 0) {
        o->state.processors = rows * 2 * n;
    }

    sets = (int) (DSA_BITS_ROWS / rows);

    return dsa_bench_time(&o->bench, dsa_bits_decode, o,
                          sets < 32 ? sets : 32);
}


static void
dsa_bits_attention(dsa_bits_op_t *o)
{
    size_t            i, j;
    double            now, us;
    const dsa_bits_t  *b;

    static const uint32_t  parts[] = { 1, 2, 4, 8, 16, 32 };

    b = o->bits;

    (void) printf("\nSparse decode splits a row into parts by the number of "
                  "rows.  A layer with a fixed number of parts, us, and the "
                  "step:\n\n| rows | now |");

    for (j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
        (void) printf(" %u |", parts[j]);
    }

    (void) printf("\n|---|---|---|---|---|---|---|---|\n");

    for (i = 0; i < DSA_BITS_BATCHES; i++) {
        now = dsa_bits_split(o, dsa_bits_batch[i], 0);
        (void) printf("| %u | %.1f |", dsa_bits_batch[i], now);

        for (j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            us = dsa_bits_split(o, dsa_bits_batch[i], parts[j]);
            (void) printf(" %.1f, %+.1f %% |", us, 100 * (us - now)
                                                   * b->layers
                                                   / b->decode[i]);
        }

        (void) printf("\n");
        (void) fflush(stdout);
    }
}


static int
dsa_bits_prefill(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bits_op_t  *o = ctx;

    return dsa_cuda_attention_prefill(&b->state, (dsa_bf16_t *) o->y,
                                      (dsa_bf16_t *) o->x, o->latents,
                                      DSA_BITS_PAGES * 64, o->slot,
                                      DSA_BITS_TOPK, o->n_slot, o->rows,
                                      DSA_BITS_HEADS, 0.1352f, b->stream);
}


static void
dsa_bits_chunk(dsa_bits_op_t *o)
{
    size_t  i;
    double  now, us;

    static const uint32_t  rows[] = { 2, 4, 64, 256, 1024 };

    (void) printf("\nAbsorbed MQA of a chunk reads BF16 latents, and that of "
                  "single tokens the cache.  Chunks by the op of single "
                  "tokens, without parts, us:\n\n"
                  "| rows | now | by that op | ratio |\n|---|---|---|---|\n");

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        us = dsa_bits_split(o, rows[i], 1);
        now = dsa_bench_time(&o->bench, dsa_bits_prefill, o, 1);

        (void) printf("| %u | %.1f | %.1f | %.3f |\n", rows[i], now, us,
                      us / now);
        (void) fflush(stdout);
    }
}


/* A product, in blocks of so many rows. */

static int
dsa_bits_product(dsa_bench_t *b, void *ctx, int set)
{
    int                rc;
    uint32_t           row, n;
    dsa_bits_op_t     *o = ctx;
    dsa_fp8_rows_t     x;
    dsa_fp8_weight_t   w;

    x.ld = DSA_BITS_PROMPT;
    w.q = o->w + (size_t) set * o->out * o->in;
    w.scale = o->scale;
    w.rows = o->out;
    w.cols = o->in;

    for (row = 0, rc = 0; row < o->rows && rc == 0; row += n) {
        n = o->rows - row < o->blocks ? o->rows - row : o->blocks;
        x.q = o->x + (size_t) row * o->in;
        x.scale = o->scale + row;

        rc = dsa_cuda_gemm_fp8(o->library,
                               (dsa_bf16_t *) o->y + (size_t) row * o->out,
                               o->out, &x, &w, n, b->stream);
    }

    return rc;
}


static double
dsa_bits_product_time(dsa_bits_op_t *o, uint32_t rows, uint32_t blocks)
{
    int  sets;

    o->rows = rows;
    o->blocks = blocks;

    sets = DSA_BITS_COLD / (int) (o->out * o->in) + 1;

    return dsa_bench_time(&o->bench, dsa_bits_product, o,
                          sets < 32 ? sets : 32);
}


/*
 * Returns 1 if the first row of the result, size bytes, is another one in two
 * calls.
 */

static int
dsa_bits_differ(dsa_bits_op_t *o, dsa_bench_pt call, size_t size,
    const uint32_t rows[2], dsa_cuda_gemm_t *const gemm[2])
{
    int       i, rc;
    uint8_t  *row;

    row = malloc(2 * size);
    rc = row != NULL ? 0 : cudaErrorMemoryAllocation;

    for (i = 0; i < 2 && rc == 0; i++) {
        o->rows = rows[i];
        o->blocks = rows[i];
        o->gemm = gemm[i];

        rc = call(&o->bench, o, 0);
        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(o->bench.stream);
        rc = rc != 0 ? rc : (int) cudaMemcpy(row + i * size, o->y, size,
                                             cudaMemcpyDeviceToHost);
    }

    o->bench.failed |= rc != 0;
    i = rc == 0 && memcmp(row, row + size, size) != 0;
    free(row);

    return i;
}


/*
 * FP8 products of a layer: q_a and kv_a, q_b, the indexer's queries, o_proj;
 * then those of a dense MLP, or of the shared expert.
 */

static void
dsa_bits_fp8(dsa_bits_op_t *o)
{
    size_t             i, j;
    double             now, us, layers, few[DSA_BITS_BATCHES], many;
    const dsa_bits_t  *b;
    dsa_cuda_gemm_t   *gemm[2] = { o->library, o->library };

    static const uint32_t  rows[2] = { DSA_BITS_FEW, DSA_BITS_FEW + 1 };

    static const struct {
        uint32_t  out, in;
        int       dense;
    } shape[] = {
        { 2240, 7168, -1 }, { 24576, 1536, -1 }, { 8192, 1536, -1 },
        { 7168, 16384, -1 }, { 36864, 7168, 1 }, { 7168, 18432, 1 },
        { 4096, 7168, 0 }, { 7168, 2048, 0 }
    };

    b = o->bits;
    many = 0;
    memset(few, 0, sizeof(few));

    (void) printf("\nFP8 products have one segment for more than %u rows.  "
                  "With one segment for few rows, which is at most the time of "
                  "%u rows, and with more segments for many, in blocks of %u, "
                  "us:\n\n| product | depends |", DSA_BITS_FEW,
                  DSA_BITS_FEW + 1, DSA_BITS_FEW);

    for (j = 0; j < DSA_BITS_BATCHES; j++) {
        (void) printf(" %u rows |", dsa_bits_batch[j]);
    }

    (void) printf(" one segment | %u rows | in blocks |\n"
                  "|---|---|---|---|---|---|---|---|---|\n", DSA_BITS_PROMPT);

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        o->out = shape[i].out;
        o->in = shape[i].in;
        layers = shape[i].dense == -1 ? b->layers
                 : shape[i].dense ? b->dense : b->layers - b->dense;

        if (!dsa_bits_differ(o, dsa_bits_product, (size_t) o->out * 2, rows,
                             gemm))
        {
            (void) printf("| %ux%u | no | | | | | | | |\n", o->out, o->in);
            continue;
        }

        us = dsa_bits_product_time(o, DSA_BITS_FEW + 1, DSA_BITS_FEW + 1);
        (void) printf("| %ux%u | yes |", o->out, o->in);

        for (j = 0; j < DSA_BITS_BATCHES; j++) {
            now = dsa_bits_product_time(o, dsa_bits_batch[j], DSA_BITS_FEW);
            few[j] += (us - now) * layers;
            (void) printf(" %.1f |", now);
        }

        now = dsa_bits_product_time(o, DSA_BITS_PROMPT, DSA_BITS_PROMPT);
        (void) printf(" %.1f | %.1f |", us, now);

        us = dsa_bits_product_time(o, DSA_BITS_PROMPT, DSA_BITS_FEW);
        many += (us - now) * layers;
        (void) printf(" %.1f |\n", us);
        (void) fflush(stdout);
    }

    (void) printf("| of a step | |");

    for (j = 0; j < DSA_BITS_BATCHES; j++) {
        (void) printf(" %+.1f %% |", 100 * few[j] / b->decode[j]);
    }

    (void) printf(" | | %+.1f %% |\n", 100 * many / b->prefill);
}


/* A half of kv_b_proj. */

static int
dsa_bits_dense(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bits_op_t  *o = ctx;
    dsa_bf16_t     *w;

    w = (dsa_bf16_t *) o->w
        + (size_t) set * DSA_BITS_HEADS * o->out * o->in;

    return dsa_cuda_gemm_heads(o->gemm, (dsa_bf16_t *) o->y,
                               (size_t) DSA_BITS_HEADS * o->out, o->out,
                               (dsa_bf16_t *) o->x,
                               (size_t) DSA_BITS_HEADS * o->in, o->in, w, 512,
                               128 * 512, o->out == 512, DSA_BITS_HEADS,
                               o->rows, o->out, o->in, b->stream);
}


static void
dsa_bits_bf16(dsa_bits_op_t *o)
{
    int               differ;
    size_t            i, j;
    double            now, us;
    uint32_t          pair[2];
    dsa_cuda_gemm_t  *gemm[2] = { o->library, o->own };

    static const uint32_t  rows[] = { 64, 128, 256, 1024, 4096 };

    static const struct {
        const char  *name;
        uint32_t     out, in;
    } shape[] = {
        { "absorb, keys", 512, 128 }, { "absorb, values", 128, 512 }
    };

    (void) printf("\nBF16 products of several heads with more than %u rows are "
                  "cuBLASLt's, which chooses by rows.  With the kernel of few "
                  "rows for any number, us:\n\n"
                  "| product | rows | differs | now | own kernel | ratio "
                  "| of a step |\n|---|---|---|---|---|---|---|\n",
                  DSA_GEMM_HEADS_ROWS);

    for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        o->out = shape[i].out;
        o->in = shape[i].in;

        for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            pair[0] = rows[j];
            pair[1] = rows[j];
            differ = dsa_bits_differ(o, dsa_bits_dense,
                                     (size_t) DSA_BITS_HEADS * o->out * 2,
                                     pair, gemm);

            o->gemm = o->library;
            now = dsa_bench_time(&o->bench, dsa_bits_dense, o, 4);
            o->gemm = o->own;
            us = dsa_bench_time(&o->bench, dsa_bits_dense, o, 4);

            (void) printf("| %s | %u | %s | %.1f | %.1f | %.3f |",
                          shape[i].name, rows[j], differ ? "yes" : "no", now,
                          us, us / now);

            if (rows[j] == 128 || rows[j] == DSA_BITS_PROMPT) {
                (void) printf(" %+.1f %%", 100 * (us - now) * o->bits->layers
                              / (rows[j] == 128
                                 ? o->bits->decode[DSA_BITS_BATCHES - 1]
                                 : o->bits->prefill));
            }

            (void) printf(" |\n");
            (void) fflush(stdout);
        }
    }
}
