
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * The choice, the plan and the gather in one kernel, against the three kernels
 * one after another, which test_gpu_moe_route.c, test_gpu_moe_plan.c and
 * test_gpu_moe_rows.c compare with the CPU twins: every byte is equal, also
 * those that neither writes.  And the experts behind it in a graph, where
 * launches overlap, against one kernel at a time.
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/moe/moe.h"
#include "kernels/sample/random.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


#define MOST        (DSA_MOE_SMALL + 1)     /* rows of a case; one too many */
#define TURNS       4                       /* of a graph */
#define INTER       256                     /* width of an expert */


/* What one of the two ways writes. */

typedef struct {
    dsa_moe_plan_t   plan;
    dsa_fp8_rows_t   y;
    int32_t         *expert;                /* [rows, k] */
    float           *weight;
} result_t;


/* A case, and what both ways read. */

typedef struct {
    dsa_router_t     r;
    uint32_t         rows;
    uint32_t         align;
    uint32_t         cols;
    float           *logits;
    float           *bias;
    dsa_fp8_rows_t   x;
    result_t         apart;
    result_t         fused;
} case_t;


static void *
get(size_t size)
{
    void  *p;

    p = calloc(1, size + 1);
    assert_non_null(p);

    return p;
}


static void
same(const void *a, const void *b, size_t size)
{
    void  *v, *w;

    v = get(size);
    w = get(size);
    gpu_download(v, a, size);
    gpu_download(w, b, size);
    assert_memory_equal(v, w, size);
    free(v);
    free(w);
}


static dsa_fp8_rows_t
fp8_rows(size_t rows, size_t cols)
{
    dsa_fp8_rows_t  q;

    q.ld = ((rows + 3) & ~(size_t) 3) + 4;
    q.q = gpu_alloc(rows * cols);
    q.scale = gpu_alloc(cols / 128 * q.ld * sizeof(float));

    return q;
}


static void
result_open(result_t *v, const case_t *c)
{
    size_t           pairs;
    dsa_moe_plan_t  *p;

    p = &v->plan;
    pairs = (size_t) MOST * c->r.k;

    p->align = c->align;
    p->places = (uint32_t) (pairs + (size_t) c->r.experts * c->align
                            + c->align - 1) / c->align * c->align;
    p->offset = gpu_alloc((c->r.experts + 1) * 4);
    p->count = gpu_alloc(c->r.experts * 4);
    p->place = gpu_alloc(pairs * 4);
    p->row = gpu_alloc(p->places * 4);
    v->y = fp8_rows(p->places, c->cols);
    v->expert = gpu_alloc(pairs * 4);
    v->weight = gpu_alloc(pairs * sizeof(float));
}


static void
case_open(case_t *c, const dsa_router_t *r, uint32_t align, uint32_t cols)
{
    float   *bias;
    size_t   n;

    c->r = *r;
    c->align = align;
    c->cols = cols;

    bias = get(r->experts * sizeof(float));
    dsa_t_fill(bias, r->experts, 0.2f);
    c->bias = gpu_upload(bias, r->experts * sizeof(float));
    free(bias);

    c->logits = gpu_alloc((size_t) MOST * r->experts * sizeof(float));
    c->x = fp8_rows(MOST, cols);
    n = cols / 128 * c->x.ld;

    gpu_ok(dsa_cuda_random_e4m3(c->x.q, (size_t) MOST * cols, 1, NULL));
    gpu_ok(dsa_cuda_random_f32(c->x.scale, n, 1, 0.5f, 2, NULL));

    result_open(&c->apart, c);
    result_open(&c->fused, c);
}


static void
case_poison(const case_t *c)
{
    size_t           i, pairs;
    const result_t  *v;

    pairs = (size_t) MOST * c->r.k;

    for (i = 0; i < 2; i++) {
        v = i == 0 ? &c->apart : &c->fused;

        gpu_poison(v->plan.offset, (c->r.experts + 1) * 4);
        gpu_poison(v->plan.count, c->r.experts * 4);
        gpu_poison(v->plan.place, pairs * 4);
        gpu_poison(v->plan.row, v->plan.places * 4);
        gpu_poison(v->y.q, (size_t) v->plan.places * c->cols);
        gpu_poison(v->y.scale, c->cols / 128 * v->y.ld * 4);
        gpu_poison(v->expert, pairs * 4);
        gpu_poison(v->weight, pairs * sizeof(float));
    }
}


static void
case_check(const case_t *c)
{
    size_t           pairs;
    const result_t  *a, *b;

    a = &c->apart;
    b = &c->fused;
    pairs = (size_t) MOST * c->r.k;

    same(a->expert, b->expert, pairs * 4);
    same(a->weight, b->weight, pairs * sizeof(float));
    same(a->plan.offset, b->plan.offset, (c->r.experts + 1) * 4);
    same(a->plan.count, b->plan.count, c->r.experts * 4);
    same(a->plan.place, b->plan.place, pairs * 4);
    same(a->plan.row, b->plan.row, a->plan.places * 4);
    same(a->y.q, b->y.q, (size_t) a->plan.places * c->cols);
    same(a->y.scale, b->y.scale, c->cols / 128 * a->y.ld * 4);
}


static void
apart(const case_t *c, cudaStream_t s)
{
    const result_t  *v;

    v = &c->apart;

    gpu_ok(dsa_cuda_route(v->expert, v->weight, c->logits, c->bias, c->rows,
                          &c->r, s));
    gpu_ok(dsa_cuda_moe_plan(&v->plan, v->expert, c->rows, c->r.k,
                             c->r.experts, s));
    gpu_ok(dsa_cuda_moe_gather(&v->y, &c->x, &v->plan, c->rows, c->r.k,
                               c->r.experts, c->cols, s));
}


static void
fused(const case_t *c, cudaStream_t s)
{
    const result_t  *v;

    v = &c->fused;

    gpu_ok(dsa_cuda_route_sort(&v->y, &c->x, &v->plan, v->expert, v->weight,
                               c->logits, c->bias, c->rows, &c->r, c->cols,
                               s));
}


/* The choice */

enum {
    UNIFORM = 0,
    STEPS,              /* many equal scores */
    EQUAL,
    STRANGE,            /* as padding tokens may have: NaNs and infinities */
    KINDS
};


static void
fill_logits(const case_t *c, int kind)
{
    float   *x;
    size_t   i, n;

    static const float  strange[] = {
        NAN, INFINITY, -INFINITY, 100, -100, 30, 31, 0, -0.0f, 1e-30f
    };

    n = (size_t) MOST * c->r.experts;
    x = get(n * sizeof(float));

    for (i = 0; i < n; i++) {
        x[i] = kind == UNIFORM ? dsa_t_uniform() * 4
               : kind == STEPS ? (float) dsa_t_random(9) * 0.5f - 2
               : kind == EQUAL ? 0.25f
               : dsa_t_random(2) ? strange[dsa_t_random(10)]
               : dsa_t_uniform();
    }

    gpu_ok(cudaMemcpy(c->logits, x, n * sizeof(float),
                      cudaMemcpyHostToDevice));
    free(x);
}


/* The second run of each number of rows is over what another one left. */

static void
test_choice(void **state)
{
    int     kind;
    size_t  i;
    case_t  c;

    static const struct {
        dsa_router_t  r;
        uint32_t      align;
        uint32_t      cols;
    } cases[] = {
        { { 256, 8, 4, 8, 1, 2.5f }, 8, 7168 },     /* DeepSeek-V3.2 */
        { { 256, 1, 1, 8, 1, 2.5f }, 8, 6144 },     /* GLM-5 */
        { { 160, 1, 1, 8, 1, 2.5f }, 8, 5120 },
        { { 512, 1, 1, 16, 1, 1.0f }, 8, 512 },
        { { 512, 16, 3, 10, 0, 2.5f }, 16, 640 },
        { { 160, 8, 3, 6, 0, 16.0f }, 32, 384 },
        { { 60, 5, 2, 4, 1, 1.0f }, 64, 128 },
        { { 256, 128, 8, 8, 1, 2.5f }, 128, 256 },
        { { 300, 3, 1, 16, 1, 2.5f }, 8, 1152 },
        { { 16, 4, 2, 4, 1, 2.5f }, 8, 256 },
        { { 6, 3, 2, 4, 1, 2.5f }, 8, 128 },
        { { 2, 1, 1, 1, 1, 2.5f }, 8, 128 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        case_open(&c, &cases[i].r, cases[i].align, cases[i].cols);

        for (c.rows = 0; c.rows <= MOST; c.rows++) {
            case_poison(&c);

            for (kind = 0; kind < KINDS; kind++) {
                fill_logits(&c, kind);
                apart(&c, NULL);
                fused(&c, NULL);
                case_check(&c);
            }
        }

        (void) gpu_free_all(NULL);
    }
}


/* Given experts */

/*
 * Different experts in a row.  few: percent of the pairs with an expert of this
 * GPU; the others are -1, as those of other GPUs and of unused slots, or
 * beyond the experts.
 */

static void
fill_experts(const case_t *c, uint32_t few)
{
    size_t    i, n;
    int32_t  *id;
    uint32_t  j, e;

    n = (size_t) MOST * c->r.k;
    id = get(n * 4);

    for (i = 0; i < n; i++) {
        do {
            e = dsa_t_random(c->r.experts);

            for (j = (uint32_t) (i % c->r.k); j > 0; j--) {
                if (id[i - j] == (int32_t) e) {
                    break;
                }
            }

        } while (j > 0);

        id[i] = (int32_t) e;
    }

    for (i = 0; i < n; i++) {
        if (dsa_t_random(100) >= few) {
            id[i] = dsa_t_random(2) ? -1
                                    : (int32_t) (c->r.experts
                                                 + dsa_t_random(300));
        }
    }

    gpu_ok(cudaMemcpy(c->apart.expert, id, n * 4, cudaMemcpyHostToDevice));
    gpu_ok(cudaMemcpy(c->fused.expert, id, n * 4, cudaMemcpyHostToDevice));
    free(id);
}


static void
test_given(void **state)
{
    size_t           i, j;
    case_t           c;
    const result_t  *a, *b;

    static const uint32_t  few[] = { 100, 50, 12, 0 };

    static const struct {
        dsa_router_t  r;
        uint32_t      align;
        uint32_t      cols;
    } cases[] = {
        { { 256, 1, 1, 8, 0, 1 }, 8, 7168 },
        { { 128, 1, 1, 8, 0, 1 }, 8, 7168 },
        { { 32, 1, 1, 8, 0, 1 }, 8, 6144 },
        { { 512, 1, 1, 16, 0, 1 }, 8, 640 },
        { { 300, 1, 1, 6, 0, 1 }, 128, 128 },
        { { 16, 1, 1, 16, 0, 1 }, 16, 384 },
        { { 1, 1, 1, 1, 0, 1 }, 8, 512 }
    };

    a = &c.apart;
    b = &c.fused;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        case_open(&c, &cases[i].r, cases[i].align, cases[i].cols);

        for (c.rows = 0; c.rows <= MOST; c.rows++) {
            case_poison(&c);

            for (j = 0; j < sizeof(few) / sizeof(few[0]); j++) {
                fill_experts(&c, few[j]);

                gpu_ok(dsa_cuda_moe_plan(&a->plan, a->expert, c.rows, c.r.k,
                                         c.r.experts, NULL));
                gpu_ok(dsa_cuda_moe_gather(&a->y, &c.x, &a->plan, c.rows,
                                           c.r.k, c.r.experts, c.cols, NULL));
                gpu_ok(dsa_cuda_moe_sort(&b->y, &c.x, &b->plan, b->expert,
                                         c.rows, c.r.k, c.r.experts, c.cols,
                                         NULL));
                case_check(&c);
            }
        }

        (void) gpu_free_all(NULL);
    }
}


/* A graph */

/* The experts of a layer, and what they write. */

typedef struct {
    dsa_fp8_weight_t   up;                  /* [experts, 2 * INTER, cols] */
    dsa_fp8_weight_t   down;                /* [experts, cols, INTER] */
    dsa_bf16_t        *gu;
    dsa_fp8_rows_t     act;
    dsa_bf16_t        *y;
} experts_t;


static dsa_fp8_weight_t
weights(uint32_t experts, uint32_t rows, uint32_t cols, uint64_t seed)
{
    void              *q, *scale;
    size_t             n;
    dsa_fp8_weight_t   w;

    n = (size_t) experts * rows * cols;
    q = gpu_alloc(n);
    scale = gpu_alloc(n / (128 * 128) * sizeof(float));

    gpu_ok(dsa_cuda_random_e4m3(q, n, seed, NULL));
    gpu_ok(dsa_cuda_random_f32(scale, n / (128 * 128), 1, 0.5f, seed + 1,
                               NULL));

    w.q = q;
    w.scale = scale;
    w.rows = rows;
    w.cols = cols;

    return w;
}


static void
experts_open(experts_t *x, const case_t *c)
{
    size_t  places;

    places = c->apart.plan.places;
    x->up = weights(c->r.experts, 2 * INTER, c->cols, 3);
    x->down = weights(c->r.experts, c->cols, INTER, 5);
    x->gu = gpu_alloc(places * 2 * INTER * sizeof(dsa_bf16_t));
    x->act = fp8_rows(places, INTER);
    x->y = gpu_alloc(places * c->cols * sizeof(dsa_bf16_t));
}


/*
 * What follows the choice in the engine, and reads all that it writes.  apart:
 * each kernel ends before the next one is started.
 */

static void
consume(const case_t *c, const result_t *v, const experts_t *x,
    dsa_bf16_t *sum, int apart, cudaStream_t s)
{
    uint32_t  pairs;

    pairs = c->rows * c->r.k;

    gpu_ok(dsa_cuda_moe_gemm(&gpu_state, x->gu, &v->y, &x->up, &v->plan,
                             c->r.experts, pairs, s));

    if (apart) {
        gpu_sync();
    }

    gpu_ok(dsa_cuda_swiglu(&x->act, x->gu, 0, INTER, &v->plan, c->r.experts, 1,
                           s));

    if (apart) {
        gpu_sync();
    }

    gpu_ok(dsa_cuda_moe_gemm(&gpu_state, x->y, &x->act, &x->down, &v->plan,
                             c->r.experts, pairs, s));

    if (apart) {
        gpu_sync();
    }

    gpu_ok(dsa_cuda_moe_combine(sum, x->y, NULL, v->weight, v->expert,
                                &v->plan, c->rows, c->r.k, c->cols, s));
}


/*
 * Turns in one graph use the same buffers, and each has other logits.  Between
 * the kernels of a turn nothing waits on the host, so that launches overlap as
 * they do in the engine.
 */

static void
graph_case(const dsa_router_t *r, uint32_t rows)
{
    int              i, n;
    case_t           c;
    size_t           counts, sums;
    experts_t        x;
    dsa_bf16_t      *sum[2][TURNS];
    cudaGraph_t      graph;
    cudaStream_t     s;
    cudaGraphExec_t  exec;

    case_open(&c, r, DSA_MOE_ALIGN, 512);
    experts_open(&x, &c);
    c.rows = rows;

    counts = (size_t) rows * r->experts;
    sums = (size_t) rows * c.cols * sizeof(dsa_bf16_t);
    gpu_sync();

    for (i = 0; i < TURNS; i++) {
        sum[0][i] = gpu_alloc(sums);
        sum[1][i] = gpu_alloc(sums);

        gpu_ok(dsa_cuda_random_f32(c.logits, counts, 0, 3, 10 + i, NULL));
        gpu_sync();
        apart(&c, NULL);
        gpu_sync();
        consume(&c, &c.apart, &x, sum[0][i], 1, NULL);
        gpu_sync();
    }

    gpu_ok(cudaStreamCreate(&s));
    gpu_ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));

    for (i = 0; i < TURNS; i++) {
        gpu_ok(dsa_cuda_random_f32(c.logits, counts, 0, 3, 10 + i, s));
        fused(&c, s);
        consume(&c, &c.fused, &x, sum[1][i], 0, s);
    }

    gpu_ok(cudaStreamEndCapture(s, &graph));
    gpu_ok(cudaGraphInstantiate(&exec, graph, 0));

    for (n = 0; n < 50; n++) {
        for (i = 0; i < TURNS; i++) {
            gpu_poison(sum[1][i], sums);
        }

        gpu_sync();
        gpu_ok(cudaGraphLaunch(exec, s));

        for (i = 0; i < TURNS; i++) {
            same(sum[0][i], sum[1][i], sums);
        }
    }

    gpu_ok(cudaGraphExecDestroy(exec));
    gpu_ok(cudaGraphDestroy(graph));
    gpu_ok(cudaStreamDestroy(s));
    (void) gpu_free_all(NULL);
}


static void
test_graph(void **state)
{
    size_t  i;

    static const dsa_router_t  deepseek = { 256, 8, 4, 8, 1, 2.5f };
    static const dsa_router_t  glm = { 256, 1, 1, 8, 1, 2.5f };
    static const uint32_t      rows[] = { 1, 2, 5, 8, 16, MOST };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graph_case(&deepseek, rows[i]);
        graph_case(&glm, rows[i]);
    }
}


static void
test_refusals(void **state)
{
    size_t           i;
    case_t           c;
    dsa_router_t     r;
    dsa_moe_plan_t   plan;
    const result_t  *v;

    static const dsa_router_t  good = { 256, 8, 4, 8, 1, 2.5f };

    static const dsa_router_t  routers[] = {
        { 513, 1, 1, 8, 1, 1 },
        { 256, 0, 0, 8, 1, 1 },
        { 256, 7, 3, 8, 1, 1 },
        { 256, 8, 9, 8, 1, 1 },
        { 256, 8, 4, 17, 1, 1 },
        { 256, 64, 1, 8, 1, 1 }
    };

    case_open(&c, &good, 8, 256);
    v = &c.fused;

    for (i = 0; i < sizeof(routers) / sizeof(routers[0]); i++) {
        r = routers[i];
        assert_int_equal(dsa_cuda_route_sort(&v->y, &c.x, &v->plan, v->expert,
                                             v->weight, c.logits, c.bias, 1,
                                             &r, 256, NULL),
                         cudaErrorInvalidValue);
    }

    plan = v->plan;
    plan.align = 24;
    assert_int_equal(dsa_cuda_moe_sort(&v->y, &c.x, &plan, v->expert, 1, 8,
                                       256, 256, NULL), cudaErrorInvalidValue);
    plan.align = 8;
    plan.places = 8 + 256 * 8 - 1;
    assert_int_equal(dsa_cuda_moe_sort(&v->y, &c.x, &plan, v->expert, 1, 8,
                                       256, 256, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_sort(&v->y, &c.x, &v->plan, v->expert, 1, 17,
                                       256, 256, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_sort(&v->y, &c.x, &v->plan, v->expert, 1, 8,
                                       513, 256, NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_sort(&v->y, &c.x, &v->plan, v->expert, 1, 8,
                                       256, 200, NULL), cudaErrorInvalidValue);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_choice, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_given, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_graph, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
