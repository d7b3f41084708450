
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/moe/moe.h"
#include "t/gpu/products.h"


/*
 * Products with BF16 weights, of a layer and of experts, in the sizes of
 * GLM-4.7-Flash and JoyAI-LLM-Flash.  If values are small integers, every sum
 * is exact in any order, and each output has to be the integers' sum rounded
 * to BF16, in every bit.  That proves places, tiles and parts of in.  Random
 * values show how exact sums are, and that a row's bits are the same in all
 * tiles and with any number of rows.
 */

#define FEW             1               /* bound of pairs: the decode tiles */
#define MANY            0x40000000      /* the prefill tiles */
#define SAMPLES         3000            /* outputs that are recomputed */
#define EXPERTS         256


typedef struct {
    uint32_t  out, in;
} shape_t;


static const shape_t  dense[] = {
    { 1344, 2048 }, { 5120, 768 }, { 8960, 512 }, { 2048, 5120 },
    { 20480, 2048 }, { 2048, 10240 }, { 3072, 2048 }, { 2048, 1536 },
    { 2112, 2048 }, { 6144, 1536 }, { 8192, 512 }, { 2048, 4096 },
    { 2048, 768 },

    /* a width that is no multiple of 64, and no whole tile of features */
    { 136, 200 }
};

static const shape_t  grouped[] = {
    { 3072, 2048 }, { 2048, 1536 }, { 1536, 2048 }, { 2048, 768 },
    { 128, 200 }
};


/* n numbers -1, 0 or 1. */

static uint16_t *
integers(size_t n)
{
    size_t     i;
    uint16_t  *v;

    v = malloc(n * sizeof(uint16_t));
    assert_non_null(v);

    for (i = 0; i < n && i < TEST_PERIOD; i++) {
        v[i] = dsa_bf16_encode((float) dsa_t_random(3) - 1);
    }

    test_repeat(v, n, sizeof(uint16_t));

    return v;
}


static double
dot(const uint16_t *x, const uint16_t *w, uint32_t n)
{
    double    sum;
    uint32_t  i;

    for (i = 0, sum = 0; i < n; i++) {
        sum += (double) dsa_bf16_decode(x[i]) * dsa_bf16_decode(w[i]);
    }

    return sum;
}


/* The errors of a GPU's and of the CPU's outputs, of which some are added. */

typedef struct {
    float     got[SAMPLES];
    float     twin[SAMPLES];
    double    ref[SAMPLES];
    size_t    n;
} sample_t;


static void
sample_add(sample_t *s, uint16_t y, const uint16_t *x, const uint16_t *w,
    uint32_t in)
{
    float  *a, *b;

    a = malloc(2 * in * sizeof(float));
    assert_non_null(a);
    b = a + in;

    dsa_bf16_decode_rows(a, x, in);
    dsa_bf16_decode_rows(b, w, in);
    dsa_gemm_nt(&s->twin[s->n], 1, a, in, b, in, 1, 1, in, 0);
    dsa_bf16_round_rows(&s->twin[s->n], 1);

    s->got[s->n] = dsa_bf16_decode(y);
    s->ref[s->n++] = dot(x, w, in);

    free(a);
}


/*
 * Nearly all of the error is the rounding to BF16, which the CPU's result has
 * too.
 */

static void
sample_check(const sample_t *s, const char *what, const shape_t *shape)
{
    double  error, twin;

    error = dsa_t_error(s->got, s->ref, s->n);
    twin = dsa_t_error(s->twin, s->ref, s->n);

    print_message("%s %u x %u: error %.3e of float64 (the CPU's own: %.3e)\n",
                  what, shape->out, shape->in, error, twin);

    assert_true(error < 2.0e-3);
    assert_true(error < 1.03 * twin);
}


static void
dense_run(uint16_t *y, void *dy, const dsa_bf16_t *x, const dsa_bf16_t *w,
    const shape_t *s, uint32_t rows, uint32_t most)
{
    size_t  size;

    size = (size_t) most * s->out * sizeof(uint16_t);

    gpu_poison(dy, size);
    gpu_ok(dsa_cuda_gemm_bf16(test_gemm, dy, s->out, 0, x, s->in, w, s->in,
                              rows, s->out, s->in, NULL));
    gpu_download(y, dy, size);
}


static void
test_dense_exact(void **state)
{
    void      *dy, *dx, *dw;
    size_t     i, j, k, n;
    uint16_t  *x, *w, *y;
    uint32_t   most;

    static const uint32_t  rows[] = { 1, 7, 128, 129, 300, 1027 };

    most = 1027;

    for (i = 0; i < sizeof(dense) / sizeof(dense[0]); i++) {
        test_begin();

        x = integers((size_t) most * dense[i].in);
        w = integers((size_t) dense[i].out * dense[i].in);
        dx = gpu_upload(x, (size_t) most * dense[i].in * 2);
        dw = gpu_upload(w, (size_t) dense[i].out * dense[i].in * 2);
        dy = gpu_alloc((size_t) most * dense[i].out * 2);
        y = malloc((size_t) most * dense[i].out * 2);
        assert_non_null(y);

        for (j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
            dense_run(y, dy, dx, dw, &dense[i], rows[j], most);
            n = (size_t) rows[j] * dense[i].out;

            for (k = dsa_t_random(97); k < n; k += 1 + n / SAMPLES) {
                assert_int_equal(y[k],
                                 dsa_bf16_encode((float)
                                     dot(x + k / dense[i].out * dense[i].in,
                                         w + k % dense[i].out * dense[i].in,
                                         dense[i].in)));
            }

            for (k = n; k < (size_t) most * dense[i].out; k++) {
                assert_int_equal(y[k], 0xffff);
            }
        }

        free(x);
        free(w);
        free(y);
        test_end();
    }
}


/* The first product has the most rows. */

static void
test_dense_alone(void **state)
{
    void            *dy, *dx, *dw;
    size_t           i, j, k, n;
    uint16_t        *x, *w, *y, *first;
    static sample_t  sample;

    static const uint32_t  rows[] = {
        2051, 1, 2, 8, 9, 17, 33, 64, 65, 100, 128, 129, 192, 193, 256, 300,
        512, 1000
    };

    for (i = 0; i < sizeof(dense) / sizeof(dense[0]); i++) {
        test_begin();

        x = test_bf16((size_t) rows[0] * dense[i].in, 1);
        w = test_bf16((size_t) dense[i].out * dense[i].in, 0.05f);
        dx = gpu_upload(x, (size_t) rows[0] * dense[i].in * 2);
        dw = gpu_upload(w, (size_t) dense[i].out * dense[i].in * 2);
        n = (size_t) rows[0] * dense[i].out;
        dy = gpu_alloc(n * 2);
        first = malloc(n * 2);
        y = malloc(n * 2);
        assert_true(first != NULL && y != NULL);

        dense_run(first, dy, dx, dw, &dense[i], rows[0], rows[0]);
        sample.n = 0;

        for (k = dsa_t_random(97); k < n && sample.n < SAMPLES;
             k += 1 + n / SAMPLES)
        {
            sample_add(&sample, first[k],
                       x + k / dense[i].out * dense[i].in,
                       w + k % dense[i].out * dense[i].in, dense[i].in);
        }

        sample_check(&sample, "dense", &dense[i]);

        for (j = 1; j < sizeof(rows) / sizeof(rows[0]); j++) {
            dense_run(y, dy, dx, dw, &dense[i], rows[j], rows[0]);

            if (memcmp(y, first, (size_t) rows[j] * dense[i].out * 2) != 0) {
                fail_msg("%u x %u: the bits of %u rows differ from those in "
                         "%u rows", dense[i].out, dense[i].in, rows[j],
                         rows[0]);
            }
        }

        free(x);
        free(w);
        free(y);
        free(first);
        test_end();
    }
}


/* The plan of count[], as dsa_cuda_moe_plan() would make it. */

static void
plan_make(dsa_moe_plan_t *plan, int32_t *offset, const int32_t *count,
    uint32_t experts)
{
    uint32_t  e;

    offset[0] = 0;

    for (e = 0; e < experts; e++) {
        offset[e + 1] = offset[e] + (count[e] + DSA_MOE_ALIGN - 1)
                                    / DSA_MOE_ALIGN * DSA_MOE_ALIGN;
    }

    memset(plan, 0, sizeof(dsa_moe_plan_t));

    plan->align = DSA_MOE_ALIGN;
    plan->places = (uint32_t) offset[experts] + DSA_MOE_ALIGN;
    plan->offset = gpu_upload(offset, (experts + 1) * sizeof(int32_t));
    plan->count = gpu_upload(count, experts * sizeof(int32_t));
}


typedef struct {
    dsa_bf16_weight_t   weight;
    dsa_moe_plan_t      plan;
    int32_t             count[EXPERTS];
    int32_t             offset[EXPERTS + 1];
    uint32_t            experts;
    uint16_t           *x, *w;          /* [places, in], [experts, out, in] */
    uint16_t           *y;              /* [places, out] */
    void               *dx, *dy;
} group_t;


/* Expert e has count[e % counts] rows; padding of x is NaN. */

static void
group_begin(group_t *g, const shape_t *s, uint32_t experts,
    const int32_t *count, size_t counts,
    uint16_t *(*make)(const shape_t *s, size_t n, int weight))
{
    size_t    n, places;
    int32_t   r;
    uint32_t  e;

    g->experts = experts;

    for (e = 0; e < experts; e++) {
        g->count[e] = count[e % counts];
    }

    plan_make(&g->plan, g->offset, g->count, experts);

    places = g->plan.places;
    n = (size_t) experts * s->out * s->in;

    g->x = make(s, places * s->in, 0);
    g->w = make(s, n, 1);
    g->y = malloc(places * s->out * 2);
    assert_non_null(g->y);

    for (e = 0; e < experts; e++) {
        for (r = g->offset[e] + g->count[e]; r < g->offset[e + 1]; r++) {
            memset(g->x + (size_t) r * s->in, 0xff, s->in * 2);
        }
    }

    g->weight.rows = s->out;
    g->weight.cols = s->in;
    g->weight.w = gpu_upload(g->w, n * 2);
    g->dx = gpu_upload(g->x, places * s->in * 2);
    g->dy = gpu_alloc(places * s->out * 2);
}


static void
group_end(group_t *g)
{
    free(g->x);
    free(g->w);
    free(g->y);

    assert_int_equal(gpu_free_all(NULL), 0);
}


static void
group_run(group_t *g, uint32_t pairs)
{
    size_t  size;

    size = (size_t) g->plan.places * g->weight.rows * 2;

    gpu_poison(g->dy, size);
    gpu_ok(dsa_cuda_moe_gemm_bf16(&gpu_state, g->dy, g->dx, &g->weight,
                                  &g->plan, g->experts, pairs, NULL));
    gpu_download(g->y, g->dy, size);
}


static uint16_t *
make_integers(const shape_t *s, size_t n, int weight)
{
    return integers(n);
}


static uint16_t *
make_random(const shape_t *s, size_t n, int weight)
{
    return test_bf16(n, weight ? 0.05f : 1);
}


/* Checks some outputs, and that padding is not written. */

static void
group_exact(const group_t *g)
{
    size_t           i, step;
    int32_t          r;
    uint32_t         e, in, out;
    const uint16_t  *y;

    in = g->weight.cols;
    out = g->weight.rows;
    step = 1 + (size_t) g->plan.places * out / SAMPLES;
    i = 0;

    for (e = 0; e < g->experts; e++) {
        for (r = g->offset[e]; r < g->offset[e + 1]; r++) {
            y = g->y + (size_t) r * out;

            if (r >= g->offset[e] + g->count[e]) {
                for (i = 0; i < out; i++) {
                    assert_int_equal(y[i], 0xffff);
                }

                i = e % 7;
                continue;
            }

            for ( /* void */ ; i < out; i += step) {
                assert_int_equal(y[i],
                    dsa_bf16_encode((float)
                        dot(g->x + (size_t) r * in,
                            g->w + ((size_t) e * out + i) * in, in)));
            }

            i -= out;
        }
    }
}


static void
test_grouped_exact(void **state)
{
    size_t          i;
    static group_t  g;

    static const int32_t  few[] = { 2, 0, 1, 3, 8, 9 };
    static const int32_t  many[] = { 63, 64, 65, 127, 128, 129, 193, 256, 257,
                                     0, 300, 2 };

    for (i = 0; i < sizeof(grouped) / sizeof(grouped[0]); i++) {
        group_begin(&g, &grouped[i], 64, few, 6, make_integers);
        group_run(&g, FEW);
        group_exact(&g);
        group_run(&g, MANY);
        group_exact(&g);
        group_end(&g);

        group_begin(&g, &grouped[i], 12, many, 12, make_integers);
        group_run(&g, FEW);
        group_exact(&g);
        group_run(&g, MANY);
        group_exact(&g);
        group_end(&g);
    }
}


/*
 * Random values: both kinds of tiles, and the first rows of each expert beside
 * any number of others.
 */

static void
test_grouped_alone(void **state)
{
    size_t           i, j, at, size;
    int32_t          r, n;
    uint16_t        *first;
    uint32_t         e, f;
    static group_t   g;
    static int32_t   count[EXPERTS];
    static sample_t  sample;

    static const int32_t  rows[] = { 1, 2, 300, 64, 9, 129, 0, 513 };

    for (i = 0; i < sizeof(grouped) / sizeof(grouped[0]); i++) {
        group_begin(&g, &grouped[i], 16, rows, 8, make_random);
        group_run(&g, MANY);

        size = (size_t) g.plan.places * grouped[i].out * 2;
        first = malloc(size);
        assert_non_null(first);
        memcpy(first, g.y, size);

        group_run(&g, FEW);
        assert_memory_equal(g.y, first, size);

        for (sample.n = 0; sample.n < SAMPLES; /* void */) {
            e = dsa_t_random(g.experts);
            f = dsa_t_random(grouped[i].out);

            if (g.count[e] > 0) {
                r = g.offset[e] + (int32_t) dsa_t_random((uint32_t)
                                                         g.count[e]);
                sample_add(&sample, first[(size_t) r * grouped[i].out + f],
                           g.x + (size_t) r * grouped[i].in,
                           g.w + ((size_t) e * grouped[i].out + f)
                                 * grouped[i].in, grouped[i].in);
            }
        }

        sample_check(&sample, "experts", &grouped[i]);

        /* the same places with fewer rows */

        for (j = 0; j < 3; j++) {
            for (e = 0; e < g.experts; e++) {
                n = j == 0 ? 1 : j == 1 ? g.count[e] / 2 : g.count[e] - 1;
                count[e] = g.count[e] > 0 ? n : 0;
            }

            g.plan.count = gpu_upload(count, g.experts * sizeof(int32_t));
            group_run(&g, j == 1 ? MANY : FEW);

            for (e = 0; e < g.experts; e++) {
                at = (size_t) g.offset[e] * grouped[i].out;
                assert_memory_equal(g.y + at, first + at,
                                    (size_t) count[e] * grouped[i].out * 2);
            }
        }

        free(first);
        group_end(&g);
    }
}


static void
test_refused(void **state)
{
    group_t         *g;
    dsa_moe_plan_t   plan;

    static const int32_t  one[] = { 4 };
    static const shape_t  shape = { 128, 128 };

    g = calloc(1, sizeof(group_t));
    assert_non_null(g);
    group_begin(g, &shape, 1, one, 1, make_integers);

    g->weight.rows = 64;
    assert_int_equal(dsa_cuda_moe_gemm_bf16(&gpu_state, g->dy, g->dx,
                                            &g->weight, &g->plan, 1, 4, NULL),
                     cudaErrorInvalidValue);
    g->weight.rows = 128;
    g->weight.cols = 12;
    assert_int_equal(dsa_cuda_moe_gemm_bf16(&gpu_state, g->dy, g->dx,
                                            &g->weight, &g->plan, 1, 4, NULL),
                     cudaErrorInvalidValue);
    g->weight.cols = 128;
    plan = g->plan;
    plan.align = 4;
    assert_int_equal(dsa_cuda_moe_gemm_bf16(&gpu_state, g->dy, g->dx,
                                            &g->weight, &plan, 1, 4, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_gemm_bf16(&gpu_state, g->dy, g->dx,
                                            &g->weight, &g->plan, 513, 4,
                                            NULL), cudaErrorInvalidValue);

    group_end(g);
    free(g);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_grouped_exact, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_grouped_alone, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_dense_exact, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_dense_alone, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refused, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
