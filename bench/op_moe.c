
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "bench/gpu.h"
#include "kernels/moe/moe.h"
#include "kernels/sample/random.h"


#define DSA_BENCH_HIDDEN    7168        /* at most */
#define DSA_BENCH_INTER     2048
#define DSA_BENCH_EXPERTS   256
#define DSA_BENCH_K         8
#define DSA_BENCH_ROWS      8192


/* What differs between models; ue8m0: scales are powers of two. */

typedef struct {
    dsa_router_t        router;
    uint32_t            hidden;
    int                 ue8m0;
} dsa_bench_moe_model_t;


/* The ops of MoE except the products, on the choices of the router. */

typedef struct {
    float              *logits;
    float              *bias;
    float              *weight;
    int32_t            *expert;
    uint32_t            rows;
    const dsa_bench_moe_model_t  *model;
    dsa_bf16_t         *wide;           /* [places, 2 * inter] */
    dsa_bf16_t         *out;            /* [places, hidden] */
    dsa_bf16_t         *shared;
    dsa_bf16_t         *y;
    dsa_fp8_rows_t      x8;
    dsa_fp8_rows_t      pair8;
    dsa_fp8_rows_t      act8;
    dsa_moe_plan_t      plan;
} dsa_bench_moe_t;


static const dsa_bench_moe_model_t  dsa_bench_v3 = {
    { DSA_BENCH_EXPERTS, 8, 4, DSA_BENCH_K, 1, 2.5f }, 7168, 1
};

static const dsa_bench_moe_model_t  dsa_bench_glm = {       /* GLM-5.2 */
    { DSA_BENCH_EXPERTS, 1, 1, DSA_BENCH_K, 1, 2.5f }, 6144, 0
};


static int
dsa_bench_route(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_route(t->expert, t->weight, t->logits, t->bias, t->rows,
                          &t->model->router, b->stream);
}


static int
dsa_bench_plan(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_moe_plan(&t->plan, t->expert, t->rows, DSA_BENCH_K,
                             DSA_BENCH_EXPERTS, b->stream);
}


static int
dsa_bench_gather(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_moe_gather(&t->pair8, &t->x8, &t->plan, t->rows,
                               DSA_BENCH_K, DSA_BENCH_EXPERTS,
                               t->model->hidden, b->stream);
}


/* The three above one after another, and as the engine calls them. */

static int
dsa_bench_apart(dsa_bench_t *b, void *ctx, int set)
{
    int  rc;

    rc = dsa_bench_route(b, ctx, set);
    rc = rc != 0 ? rc : dsa_bench_plan(b, ctx, set);

    return rc != 0 ? rc : dsa_bench_gather(b, ctx, set);
}


static int
dsa_bench_route_sort(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_route_sort(&t->pair8, &t->x8, &t->plan, t->expert,
                               t->weight, t->logits, t->bias, t->rows,
                               &t->model->router, t->model->hidden,
                               b->stream);
}


static int
dsa_bench_sort(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_moe_sort(&t->pair8, &t->x8, &t->plan, t->expert, t->rows,
                             DSA_BENCH_K, DSA_BENCH_EXPERTS, t->model->hidden,
                             b->stream);
}


static int
dsa_bench_swiglu_shared(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_swiglu(&t->act8, t->wide, t->rows, DSA_BENCH_INTER, NULL,
                           0, t->model->ue8m0, b->stream);
}


static int
dsa_bench_swiglu(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_swiglu(&t->act8, t->wide, 0, DSA_BENCH_INTER, &t->plan,
                           DSA_BENCH_EXPERTS, t->model->ue8m0, b->stream);
}


static int
dsa_bench_combine(dsa_bench_t *b, void *ctx, int set)
{
    dsa_bench_moe_t  *t = ctx;

    return dsa_cuda_moe_combine(t->y, t->out, t->shared, t->weight, t->expert,
                                &t->plan, t->rows, DSA_BENCH_K,
                                t->model->hidden, b->stream);
}


static int
dsa_bench_moe_alloc(dsa_bench_t *b, dsa_bench_moe_t *t)
{
    int     rc;
    size_t  places, pairs, size;

    memset(t, 0, sizeof(*t));

    size = (size_t) DSA_BENCH_ROWS * DSA_BENCH_HIDDEN;
    pairs = (size_t) DSA_BENCH_ROWS * DSA_BENCH_K;
    places = pairs + DSA_BENCH_EXPERTS * 128;

    t->logits = dsa_bench_alloc(b, (size_t) DSA_BENCH_ROWS
                                   * DSA_BENCH_EXPERTS * 4);
    t->bias = dsa_bench_alloc(b, DSA_BENCH_EXPERTS * 4);
    t->weight = dsa_bench_alloc(b, pairs * 4);
    t->expert = dsa_bench_alloc(b, pairs * 4);
    t->wide = dsa_bench_alloc(b, places * 2 * DSA_BENCH_INTER * 2);
    t->out = dsa_bench_alloc(b, places * DSA_BENCH_HIDDEN * 2);
    t->shared = dsa_bench_alloc(b, size * 2);
    t->y = dsa_bench_alloc(b, size * 2);
    t->x8.q = dsa_bench_alloc(b, size);
    t->x8.scale = dsa_bench_alloc(b, size / 128 * 4);
    t->x8.ld = DSA_BENCH_ROWS;
    t->pair8.q = dsa_bench_alloc(b, places * DSA_BENCH_HIDDEN);
    t->pair8.scale = dsa_bench_alloc(b, places * DSA_BENCH_HIDDEN / 128 * 4);
    t->pair8.ld = places;
    t->act8.q = dsa_bench_alloc(b, places * DSA_BENCH_INTER);
    t->act8.scale = dsa_bench_alloc(b, places * DSA_BENCH_INTER / 128 * 4);
    t->act8.ld = places;
    t->plan.offset = dsa_bench_alloc(b, (DSA_BENCH_EXPERTS + 1) * 4);
    t->plan.count = dsa_bench_alloc(b, DSA_BENCH_EXPERTS * 4);
    t->plan.place = dsa_bench_alloc(b, pairs * 4);
    t->plan.row = dsa_bench_alloc(b, places * 4);
    t->plan.places = (uint32_t) places;

    if (b->failed) {
        return cudaErrorMemoryAllocation;
    }

    rc = dsa_cuda_random_f32(t->logits,
                             (size_t) DSA_BENCH_ROWS * DSA_BENCH_EXPERTS, 0,
                             3, 1, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(t->bias, DSA_BENCH_EXPERTS, 0,
                                            0.01f, 2, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(t->wide, places * 2
                                                      * DSA_BENCH_INTER, 0, 3,
                                             3, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(t->out, places
                                                     * DSA_BENCH_HIDDEN, 0, 1,
                                             4, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_bf16(t->shared, size, 0, 1, 5,
                                             b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_e4m3(t->x8.q, size, 6, b->stream);
    rc = rc != 0 ? rc : dsa_cuda_random_f32(t->x8.scale, size / 128, 1, 0.5f,
                                            7, b->stream);

    return rc;
}


void
dsa_bench_moe(dsa_bench_t *b)
{
    int               rc;
    char              shape[64];
    size_t            i, j;
    double            bytes;
    dsa_bench_moe_t   t;

    static const uint32_t  rows[] = {
        1, 2, 4, 8, DSA_MOE_SMALL, 32, 128, DSA_BENCH_ROWS
    };

    /* bytes of a row and of a pair; each is read or written once */

    static const struct {
        const dsa_bench_moe_model_t  *model;
        const char         *op;
        const char         *shape;
        dsa_bench_pt        call;
        double              row;
        double              pair;
    } ops[] = {
        { &dsa_bench_v3, "route", "8 of 256", dsa_bench_route, 256 * 4, 8 },
        { &dsa_bench_v3, "moe_plan", "8 of 256", dsa_bench_plan, 0,
          4 + 4 + 4 },
        { &dsa_bench_v3, "moe_gather", "8, 7168", dsa_bench_gather,
          7168 + 56 * 4, 7168 + 56 * 4 },
        { &dsa_bench_v3, "route, plan, gather", "8 of 256, 7168",
          dsa_bench_apart, 256 * 4 + 7168 + 56 * 4,
          8 + 3 * 4 + 7168 + 56 * 4 },
        { &dsa_bench_v3, "route_sort", "8 of 256, 7168",
          dsa_bench_route_sort, 256 * 4 + 7168 + 56 * 4,
          8 + 3 * 4 + 7168 + 56 * 4 },
        { &dsa_bench_v3, "moe_sort", "8 of 256, 7168", dsa_bench_sort,
          7168 + 56 * 4, 3 * 4 + 7168 + 56 * 4 },
        { &dsa_bench_v3, "swiglu", "8, 2048", dsa_bench_swiglu, 0,
          2048 * 5 + 16 * 4 },
        { &dsa_bench_v3, "swiglu", "2048", dsa_bench_swiglu_shared,
          2048 * 5 + 16 * 4, 0 },
        { &dsa_bench_v3, "moe_combine", "8, 7168", dsa_bench_combine,
          7168 * 4, 7168 * 2 },

        { &dsa_bench_glm, "route", "8 of 256, one group", dsa_bench_route,
          256 * 4, 8 },
        { &dsa_bench_glm, "route_sort", "8 of 256, one group, 6144",
          dsa_bench_route_sort, 256 * 4 + 6144 + 48 * 4,
          8 + 3 * 4 + 6144 + 48 * 4 },
        { &dsa_bench_glm, "moe_sort", "8 of 256, 6144", dsa_bench_sort,
          6144 + 48 * 4, 3 * 4 + 6144 + 48 * 4 },
        { &dsa_bench_glm, "swiglu", "8, 2048, float32 scales",
          dsa_bench_swiglu, 0, 2048 * 5 + 16 * 4 },
        { &dsa_bench_glm, "moe_combine", "8, 6144", dsa_bench_combine,
          6144 * 4, 6144 * 2 }
    };

    rc = dsa_bench_moe_alloc(b, &t);

    for (i = 0; rc == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
        t.rows = rows[i];
        t.plan.align = rows[i] > 1024 ? 128 : 8;
        t.model = &dsa_bench_v3;

        rc = dsa_bench_route(b, &t, 0);
        rc = rc != 0 ? rc : dsa_bench_plan(b, &t, 0);
        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(b->stream);

        for (j = 0; rc == 0 && j < sizeof(ops) / sizeof(ops[0]); j++) {
            t.model = ops[j].model;
            (void) snprintf(shape, sizeof(shape), "%u x %s", rows[i],
                            ops[j].shape);
            bytes = rows[i] * (ops[j].row + DSA_BENCH_K * ops[j].pair);

            dsa_bench_row(b, ops[j].op, shape,
                          dsa_bench_time(b, ops[j].call, &t, 1), 0, 0, bytes);
        }
    }

    if (rc != 0) {
        (void) fprintf(stderr, "dsa bench: moe: %s\n", dsa_cuda_error(rc));
        b->failed = 1;
    }

    dsa_bench_free_all(b);
}
