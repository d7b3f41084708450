
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * The ops of MoE except the products.  Choices, plans, copies and the weighted
 * sum are equal to those of the CPU twins in every bit.  exp() sometimes
 * differs from the CPU's by an ulp, which changes some of the router's weights
 * and, after rounding to bf16, few of SwiGLU's codes.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/core/fp8.h"
#include "kernels/moe/moe.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


static void *
get(size_t size)
{
    void  *p;

    p = calloc(1, size + 1);
    assert_non_null(p);

    return p;
}


static float *
numbers(size_t n, float scale)
{
    float  *x;

    x = get(n * sizeof(float));
    dsa_t_fill(x, n, scale);
    dsa_bf16_round_rows(x, n);

    return x;
}


static void
same(const void *device, const void *want, size_t size)
{
    void  *v;

    v = get(size);
    gpu_download(v, device, size);
    assert_memory_equal(v, want, size);
    free(v);
}


/* The router */

enum {
    UNIFORM = 0,
    STEPS,              /* many equal scores */
    EQUAL,
    STRANGE,            /* NaNs, infinities, equal sigmoids */
    KINDS
};


static void
fill_logits(float *x, size_t n, int kind)
{
    size_t  i;

    static const float  strange[] = {
        NAN, INFINITY, -INFINITY, 100, -100, 30, 31, 0, -0.0f, 1e-30f
    };

    for (i = 0; i < n; i++) {
        x[i] = kind == UNIFORM ? dsa_t_uniform() * 4
               : kind == STEPS ? (float) dsa_t_random(9) * 0.5f - 2
               : kind == EQUAL ? 0.25f
               : dsa_t_random(2) ? strange[dsa_t_random(10)]
               : dsa_t_uniform();
    }
}


/*
 * The choice in float64 for finite logits: b of all experts, and the chosen
 * ones.
 */

static void
route_float64(double *s, double *b, int32_t *expert, const float *logits,
    const float *bias, const dsa_router_t *r)
{
    double    v, best, first, second, group[512];
    uint32_t  i, j, g, e, size;

    size = r->experts / r->groups;

    for (i = 0; i < r->experts; i++) {
        s[i] = 1 / (1 + exp(-(double) logits[i]));
        b[i] = s[i] + bias[i];
    }

    for (g = 0; g < r->groups; g++) {
        first = second = -INFINITY;

        for (i = g * size; i < (g + 1) * size; i++) {
            v = b[i];
            second = fmax(second, fmin(first, v));
            first = fmax(first, v);
        }

        group[g] = first + second;
    }

    for (j = 0; j < r->groups - r->groups_kept; j++) {
        for (g = 0, e = 0, best = INFINITY; g < r->groups; g++) {
            if (group[g] <= best) {
                best = group[g];
                e = g;
            }
        }

        group[e] = INFINITY;

        for (i = e * size; i < (e + 1) * size; i++) {
            b[i] = -INFINITY;
        }
    }

    for (j = 0; j < r->k; j++) {
        for (i = 0, e = 0, best = -INFINITY; i < r->experts; i++) {
            for (g = 0; g < j && expert[g] != (int32_t) i; g++) { /* void */ }

            if (g == j && b[i] > best) {
                best = b[i];
                e = i;
            }
        }

        expert[j] = (int32_t) e;
    }
}


static void
route_case(const dsa_router_t *r, uint32_t rows, int kind)
{
    float     *logits, *bias, *weight, *want, *got, *scratch, *device_logits,
              *device_bias;
    double    *s, *b, sum;
    size_t     i, j, n, other;
    int32_t   *expert, *want_expert, *got_expert, *exact;

    n = (size_t) rows * r->experts;
    logits = get(n * sizeof(float));
    bias = get(r->experts * sizeof(float));
    scratch = get((2 * r->experts + r->groups) * sizeof(float));
    want = get(rows * r->k * sizeof(float));
    got = get(rows * r->k * sizeof(float));
    want_expert = get(rows * r->k * 4);
    got_expert = get(rows * r->k * 4);
    exact = get(r->k * 4);
    s = get(r->experts * sizeof(double));
    b = get(r->experts * sizeof(double));

    fill_logits(logits, n, kind);

    if (kind == UNIFORM) {
        dsa_t_fill(bias, r->experts, 0.2f);
    }

    device_logits = gpu_upload(logits, n * sizeof(float));
    device_bias = gpu_upload(bias, r->experts * sizeof(float));
    expert = gpu_alloc(rows * r->k * 4);
    weight = gpu_alloc(rows * r->k * sizeof(float));

    gpu_ok(dsa_cuda_route(expert, weight, device_logits, device_bias, rows, r,
                          NULL));
    dsa_route(want_expert, want, logits, bias, rows, r, scratch);

    same(expert, want_expert, rows * r->k * 4);
    gpu_download(got, weight, rows * r->k * sizeof(float));

    other = 0;

    for (i = 0; i < rows * r->k; i++) {
        if (isnan(want[i])) {
            assert_true(isnan(got[i]));
            continue;
        }

        assert_true(fabsf(got[i] - want[i]) <= 1e-6f * fabsf(want[i]));
        other += memcmp(&got[i], &want[i], sizeof(float)) != 0;
    }

    /* both round exp() correctly except in rare cases */

    assert_true(other <= rows * r->k / 200 + r->k);

    for (i = 0; kind == UNIFORM && i < rows; i++) {
        route_float64(s, b, exact, logits + i * r->experts, bias, r);
        sum = 0;

        for (j = 0; j < r->k; j++) {
            sum += s[want_expert[i * r->k + j]];

            /* another expert only if the two are equal in float32 */

            assert_true(exact[j] == want_expert[i * r->k + j]
                        || fabs(b[exact[j]] - b[want_expert[i * r->k + j]])
                           < 2e-7);
        }

        for (j = 0; j < r->k; j++) {
            assert_true(fabs(got[i * r->k + j] * (r->normalize ? sum : 1)
                             / s[want_expert[i * r->k + j]] / r->scale - 1)
                        < 1e-6);
        }
    }

    /* a second run, and the last row alone */

    gpu_poison(expert, rows * r->k * 4);
    gpu_poison(weight, rows * r->k * 4);
    gpu_ok(dsa_cuda_route(expert, weight, device_logits, device_bias, rows, r,
                          NULL));
    same(expert, want_expert, rows * r->k * 4);
    same(weight, got, rows * r->k * 4);

    gpu_ok(dsa_cuda_route(expert, weight, device_logits + n - r->experts,
                          device_bias, 1, r, NULL));
    same(expert, want_expert + (rows - 1) * r->k, r->k * 4);
    same(weight, got + (rows - 1) * r->k, r->k * 4);

    free(logits);
    free(bias);
    free(scratch);
    free(want);
    free(got);
    free(want_expert);
    free(got_expert);
    free(exact);
    free(s);
    free(b);
}


static void
test_route(void **state)
{
    int     kind;
    size_t  i;

    static const dsa_router_t  routers[] = {
        { 256, 8, 4, 8, 1, 2.5f },
        { 256, 1, 1, 8, 1, 2.5f },
        { 512, 1, 1, 16, 1, 1.0f },
        { 512, 16, 3, 10, 0, 2.5f },
        { 160, 8, 3, 6, 0, 16.0f },
        { 64, 1, 1, 6, 1, 1.0f },
        { 60, 5, 2, 4, 1, 1.0f },
        { 256, 128, 8, 8, 1, 2.5f },
        { 300, 3, 1, 16, 1, 2.5f },
        { 6, 3, 2, 4, 1, 2.5f },
        { 2, 1, 1, 1, 1, 2.5f }
    };

    for (i = 0; i < sizeof(routers) / sizeof(routers[0]); i++) {
        for (kind = 0; kind < KINDS; kind++) {
            route_case(&routers[i], i == 0 ? 2000 : 70, kind);
            route_case(&routers[i], 1, kind);
            (void) gpu_free_all(NULL);
        }
    }
}


/* The plan */

/* A plan on the host and one on the device, and the expected content. */

typedef struct {
    dsa_moe_plan_t   device;
    dsa_moe_plan_t   host;
    int32_t         *expert;            /* [rows, k] */
    int32_t         *device_expert;
    uint32_t         rows;
    uint32_t         k;
    uint32_t         experts;
} test_plan_t;


/*
 * Random experts, all different in a row.  If few is below 100 percent, some
 * belong to another GPU.  skew: most rows use the first experts.
 */

static void
plan_make(test_plan_t *t, uint32_t rows, uint32_t k, uint32_t experts,
    uint32_t align, uint32_t few, int skew)
{
    size_t           i, n;
    int32_t          e;
    uint32_t         j, at;
    dsa_moe_plan_t  *h, *d;

    h = &t->host;
    d = &t->device;
    n = (size_t) rows * k;

    t->rows = rows;
    t->k = k;
    t->experts = experts;
    t->expert = get(n * 4);

    for (i = 0; i < n; i++) {
        do {
            e = (int32_t) dsa_t_random(skew && dsa_t_random(4)
                                       && experts > 2 * k
                                       ? 2 * k : experts);

            for (j = (uint32_t) (i % k); j > 0; j--) {
                if (t->expert[i - j] == e) {
                    break;
                }
            }

        } while (j > 0);

        t->expert[i] = e;
    }

    for (i = 0; i < n; i++) {
        if (dsa_t_random(100) >= few) {
            t->expert[i] = -1;
        }
    }

    h->align = align;
    h->places = (uint32_t) (n + (size_t) experts * align + align - 1) / align
                * align;
    h->offset = get((experts + 1) * 4);
    h->count = get(experts * 4);
    h->place = get(n * 4);
    h->row = get(h->places * 4);
    memset(h->row, 0xff, h->places * 4);

    *d = *h;
    d->offset = gpu_alloc((experts + 1) * 4);
    d->count = gpu_alloc(experts * 4);
    d->place = gpu_alloc(n * 4);
    d->row = gpu_alloc(h->places * 4);
    t->device_expert = gpu_upload(t->expert, n * 4);

    /* the same by the definition */

    for (i = 0; i < n; i++) {
        if (t->expert[i] >= 0) {
            h->count[t->expert[i]]++;
        }
    }

    for (e = 0, at = 0; e < (int32_t) experts; e++) {
        h->offset[e] = (int32_t) at;
        at += ((uint32_t) h->count[e] + align - 1) / align * align;
    }

    h->offset[experts] = (int32_t) at;
    memset(h->count, 0, experts * 4);

    for (i = 0; i < n; i++) {
        e = t->expert[i];
        h->place[i] = -1;

        if (e >= 0) {
            h->place[i] = h->offset[e] + h->count[e]++;
            h->row[h->place[i]] = (int32_t) (i / k);
        }
    }
}


static void
plan_free(test_plan_t *t)
{
    free(t->expert);
    free(t->host.offset);
    free(t->host.count);
    free(t->host.place);
    free(t->host.row);
}


static void
plan_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t align,
    uint32_t few, int skew)
{
    int          i;
    test_plan_t  t;

    plan_make(&t, rows, k, experts, align, few, skew);

    for (i = 0; i < 2; i++) {
        gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                                 NULL));

        same(t.device.offset, t.host.offset, (experts + 1) * 4);
        same(t.device.count, t.host.count, experts * 4);
        same(t.device.place, t.host.place, (size_t) rows * k * 4);

        /* -1 for padding; behind it the poison, which is -1 too */

        same(t.device.row, t.host.row, t.host.places * 4);

        gpu_poison(t.device.offset, (experts + 1) * 4);
        gpu_poison(t.device.count, experts * 4);
        gpu_poison(t.device.place, (size_t) rows * k * 4);

        /* what another step left */

        gpu_ok(cudaMemset(t.device.row, 0,
                          (size_t) t.host.offset[experts] * 4));
    }

    plan_free(&t);
}


static void
test_plan(void **state)
{
    uint32_t  align;

    for (align = 8; align <= 128; align *= 2) {
        plan_case(1, 8, 256, align, 100, 0);
        plan_case(128, 8, 256, align, 100, 0);
        plan_case(63, 8, 256, align, 12, 1);
        plan_case(7, 16, 512, align, 100, 0);
        plan_case(513, 8, 256, align, 100, 0);
        plan_case(3000, 6, 160, align, 50, 1);
    }

    plan_case(8192, 8, 256, 128, 100, 0);
    plan_case(8192, 8, 256, 64, 12, 1);
    plan_case(8191, 16, 512, 128, 100, 0);
    plan_case(20000, 2, 300, 32, 100, 0);
    plan_case(5000, 1, 1, 128, 100, 0);
    plan_case(1000, 2, 2, 8, 100, 0);
    plan_case(12, 4, 5, 16, 0, 0);
    plan_case(0, 8, 256, 64, 100, 0);
}


/* Device rows of e4m3 for the places, and their expected bytes. */

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
gather_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t align,
    uint32_t few, int skew, uint32_t cols)
{
    float           *scale, *want_scale;
    size_t           i, g, p, n;
    uint8_t         *q, *want;
    test_plan_t      t;
    dsa_fp8_rows_t   x, y;

    plan_make(&t, rows, k, experts, align, few, skew);

    n = (size_t) rows * cols;
    x = fp8_rows(rows, cols);
    y = fp8_rows(t.host.places, cols);
    q = get(n);
    scale = get(cols / 128 * x.ld * 4);
    want = get((size_t) t.host.places * cols);
    want_scale = get(cols / 128 * y.ld * 4);

    for (i = 0; i < n; i++) {
        q[i] = (uint8_t) dsa_t_random(256);
    }

    dsa_t_fill(scale, cols / 128 * x.ld, 1);
    gpu_ok(cudaMemcpy(x.q, q, n, cudaMemcpyHostToDevice));
    gpu_ok(cudaMemcpy(x.scale, scale, cols / 128 * x.ld * 4,
                      cudaMemcpyHostToDevice));

    memset(want, 0xff, (size_t) t.host.places * cols);
    memset(want_scale, 0xff, cols / 128 * y.ld * 4);

    for (i = 0; i < (size_t) rows * k; i++) {
        if (t.host.place[i] < 0) {
            continue;
        }

        p = (size_t) t.host.place[i];
        memcpy(want + p * cols, q + i / k * cols, cols);

        for (g = 0; g < cols / 128; g++) {
            want_scale[g * y.ld + p] = scale[g * x.ld + i / k];
        }
    }

    gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                             NULL));
    gpu_ok(dsa_cuda_moe_gather(&y, &x, &t.device, rows, k, experts,
                               cols, NULL));

    same(y.q, want, (size_t) t.host.places * cols);
    same(y.scale, want_scale, cols / 128 * y.ld * 4);

    free(q);
    free(scale);
    free(want);
    free(want_scale);
    plan_free(&t);
}


static void
test_gather(void **state)
{
    gather_case(1, 8, 256, 8, 100, 0, 7168);
    gather_case(128, 8, 256, 16, 100, 0, 7168);
    gather_case(1500, 8, 256, 64, 100, 0, 1024);
    gather_case(1500, 8, 256, 128, 12, 1, 128);
    gather_case(600, 16, 512, 32, 100, 1, 7296);
    gather_case(9, 2, 2, 8, 100, 0, 16384);
    gather_case(5, 2, 3, 8, 0, 0, 256);
    gather_case(700, 1, 1, 128, 100, 0, 256);
}


/*
 * Against the twins, and against float64 within half of e4m3's step, which is
 * at most 2^-4 of a number, plus the two roundings to bf16; below 2^-6 of the
 * scale the step is 2^-9 of it.  used [rows], or NULL: rows with a number below
 * 0 are not computed.  A scale that is not a power of two has the bits of the
 * greatest value of its group.  Where this value is rounded to the other bf16,
 * the scale differs by up to 2^-7 of it, and with it the codes of the group.
 */

static void
swiglu_check(const dsa_fp8_rows_t *y, const float *x, const int32_t *used,
    size_t rows, uint32_t cols, int ue8m0)
{
    float    *v, *scale, *want_scale, s;
    double    g, exact, got;
    size_t    i, j, at, n, other, scales;
    int32_t   d;
    uint8_t  *q, *want;

    n = rows * cols;
    q = get(n);
    v = get(cols * sizeof(float));
    want = get(n);
    scale = get(cols / 128 * y->ld * 4);
    want_scale = get(cols / 128 * y->ld * 4);

    gpu_download(q, y->q, n);
    gpu_download(scale, y->scale, cols / 128 * y->ld * 4);
    memset(want, 0xff, n);
    memset(want_scale, 0xff, cols / 128 * y->ld * 4);

    for (i = 0; i < rows; i++) {
        if (used != NULL && used[i] < 0) {
            continue;
        }

        dsa_swiglu(v, x + i * 2 * cols, x + i * 2 * cols + cols, cols, 1);

        for (j = 0; j < cols; j += 128) {
            s = dsa_fp8_scale(v + j, 128, ue8m0);
            want_scale[j / 128 * y->ld + i] = s;

            for (at = j; at < j + 128; at++) {
                want[i * cols + at] = dsa_e4m3_code(dsa_e4m3_round(v[at] / s));
            }
        }

        for (j = 0; j < cols; j++) {
            g = x[i * 2 * cols + j];
            exact = g / (1 + exp(-g)) * x[i * 2 * cols + cols + j];
            s = scale[j / 128 * y->ld + i];
            at = q[i * cols + j];
            got = (double) s * dsa_e4m3_value[at];

            assert_true(fabs(got - exact)
                        <= fabs(exact) * (1.0 / 16 + 1.0 / 500)
                           + (double) s / 1024);
        }
    }

    other = 0;
    scales = 0;

    for (i = 0; i < cols / 128 * y->ld; i++) {
        if (memcmp(&scale[i], &want_scale[i], sizeof(float)) != 0) {
            assert_true(fabsf(scale[i] - want_scale[i])
                        <= want_scale[i] / 128);
            scales++;
        }
    }

    for (i = 0; i < n; i++) {
        if (q[i] != want[i]) {
            d = (int32_t) q[i] - want[i];
            assert_true(d == 1 || d == -1);
            at = i % cols / 128 * y->ld + i / cols;
            other += memcmp(&scale[at], &want_scale[at], sizeof(float)) == 0;
        }
    }

    assert_true(other <= n / 20000 + 2);
    assert_true(scales <= (ue8m0 ? 0 : n / 128 / 500 + 2));

    free(q);
    free(v);
    free(want);
    free(scale);
    free(want_scale);
}


static void
swiglu_case(uint32_t rows, uint32_t cols, int ue8m0)
{
    float           *x;
    uint8_t         *v;
    uint16_t        *device_x;
    dsa_fp8_rows_t   y;

    x = numbers((size_t) rows * 2 * cols, 8.0f);
    device_x = gpu_upload_bf16(x, (size_t) rows * 2 * cols);
    y = fp8_rows(rows, cols);

    gpu_ok(dsa_cuda_swiglu(&y, device_x, rows, cols, NULL, 0, ue8m0, NULL));
    swiglu_check(&y, x, NULL, rows, cols, ue8m0);

    /* a second run, of the last row alone */

    v = get((size_t) rows * cols);
    gpu_download(v, y.q, (size_t) rows * cols);
    gpu_poison(y.q, (size_t) rows * cols);
    gpu_ok(dsa_cuda_swiglu(&y, device_x + (size_t) (rows - 1) * 2 * cols, 1,
                           cols, NULL, 0, ue8m0, NULL));
    same(y.q, v + (size_t) (rows - 1) * cols, cols);

    free(x);
    free(v);
}


static void
swiglu_plan_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t align,
    uint32_t few, uint32_t cols, int ue8m0)
{
    float           *x;
    uint16_t        *device_x;
    test_plan_t      t;
    dsa_fp8_rows_t   y;

    plan_make(&t, rows, k, experts, align, few, 0);
    x = numbers((size_t) t.host.places * 2 * cols, 8.0f);
    device_x = gpu_upload_bf16(x, (size_t) t.host.places * 2 * cols);
    y = fp8_rows(t.host.places, cols);

    gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                             NULL));
    gpu_ok(dsa_cuda_swiglu(&y, device_x, 0, cols, &t.device, experts, ue8m0,
                           NULL));
    swiglu_check(&y, x, t.host.row, t.host.places, cols, ue8m0);

    free(x);
    plan_free(&t);
}


static void
test_swiglu(void **state)
{
    swiglu_case(1, 2048, 1);
    swiglu_case(5, 18432, 1);
    swiglu_case(200, 2048, 1);
    swiglu_case(3, 128, 1);
    swiglu_case(33, 384, 1);
    swiglu_plan_case(1, 8, 256, 8, 100, 2048, 1);
    swiglu_plan_case(128, 8, 256, 8, 100, 256, 1);
    swiglu_plan_case(9, 2, 5, 64, 50, 384, 1);
    swiglu_plan_case(9, 2, 5, 64, 0, 128, 1);
    swiglu_case(1, 2048, 0);
    swiglu_case(5, 12288, 0);
    swiglu_case(200, 2048, 0);
    swiglu_plan_case(1, 8, 256, 8, 100, 2048, 0);
    swiglu_plan_case(128, 8, 256, 8, 100, 256, 0);
    swiglu_plan_case(9, 2, 5, 64, 50, 384, 0);
}


/* Equal in every bit: the twin's sums have the same order. */

static void
combine_case(uint32_t rows, uint32_t k, uint32_t experts, uint32_t few,
    uint32_t cols, int with_shared)
{
    float        *x, *shared, *weight, *sum, *device_weight;
    size_t        i, j, n;
    uint16_t     *device_x, *device_shared, *y, *v;
    test_plan_t   t;

    plan_make(&t, rows, k, experts, 8, few, 0);
    n = (size_t) rows * cols;

    x = numbers((size_t) t.host.places * cols, 4.0f);
    shared = numbers(n, 2.0f);
    weight = get(rows * k * sizeof(float));
    dsa_t_fill(weight, rows * k, 1.0f);
    sum = get(n * sizeof(float));
    v = get(n * 2);

    /* padding and unused places are NaNs */

    for (i = 0; i < t.host.places; i++) {
        for (j = 0; t.host.row[i] < 0 && j < cols; j++) {
            x[i * cols + j] = NAN;
        }
    }

    device_x = gpu_upload_bf16(x, (size_t) t.host.places * cols);
    device_shared = gpu_upload_bf16(shared, n);
    device_weight = gpu_upload(weight, rows * k * sizeof(float));
    y = gpu_alloc(n * 2);

    gpu_ok(dsa_cuda_moe_plan(&t.device, t.device_expert, rows, k, experts,
                             NULL));
    gpu_ok(dsa_cuda_moe_combine(y, device_x,
                                with_shared ? device_shared : NULL,
                                device_weight, t.device_expert, &t.device,
                                rows, k, cols, NULL));

    dsa_moe_combine(sum, x, with_shared ? shared : NULL, weight, t.host.place,
                    rows, k, cols, 0);

    for (i = 0; i < n; i++) {
        v[i] = dsa_bf16_encode(sum[i]);
    }

    same(y, v, n * 2);

    free(x);
    free(shared);
    free(weight);
    free(sum);
    free(v);
    plan_free(&t);
}


static void
test_combine(void **state)
{
    combine_case(1, 8, 256, 100, 7168, 1);
    combine_case(64, 8, 256, 100, 7168, 1);
    combine_case(64, 8, 256, 12, 1032, 1);
    combine_case(33, 16, 512, 100, 512, 1);
    combine_case(33, 6, 64, 100, 256, 0);
    combine_case(5, 1, 2, 100, 8, 1);
    combine_case(5, 4, 7, 0, 2048, 1);
}


/* The pairs of each rank, and ids that no rank has. */

static void
ranks_case(uint32_t layers, uint32_t n, uint32_t each, uint32_t ranks)
{
    int32_t    *expert, *want, *rows;
    uint32_t    i, l, ld;
    const void *device;

    ld = n + 5;
    expert = malloc((size_t) layers * ld * 4);
    want = calloc((size_t) layers * ranks, 4);
    assert_true(expert != NULL && want != NULL);

    for (l = 0; l < layers; l++) {
        for (i = 0; i < ld; i++) {
            expert[l * ld + i] = (int32_t) dsa_t_random(each * ranks + 9) - 4;

            if (i < n && expert[l * ld + i] >= 0
                && (uint32_t) expert[l * ld + i] < each * ranks)
            {
                want[l * ranks + (uint32_t) expert[l * ld + i] / each]++;
            }
        }
    }

    device = gpu_upload(expert, (size_t) layers * ld * 4);
    rows = gpu_alloc((size_t) layers * ranks * 4);

    gpu_ok(dsa_cuda_moe_ranks(rows, device, ld, layers, n, each, ranks, NULL));
    same(rows, want, (size_t) layers * ranks * 4);

    free(expert);
    free(want);
}


static void
test_ranks(void **state)
{
    ranks_case(1, 0, 32, 8);
    ranks_case(1, 1, 1, 1);
    ranks_case(58, 8 * 64, 32, 8);
    ranks_case(58, 8 * 4097, 16, 16);
    ranks_case(3, 999, 7, 32);
    ranks_case(2, 8 * 8192, 256, 1);

    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 0, 0, 0, 1, 1, NULL), 0);
    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 1, 1, 1, 0, 1, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 1, 1, 1, 1, 0, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_ranks(NULL, NULL, 1, 1, 1, 1,
                                        DSA_MOE_RANKS + 1, NULL),
                     cudaErrorInvalidValue);
}


static void
test_refusals(void **state)
{
    float           *w;
    size_t           i;
    int32_t         *id;
    uint16_t        *x;
    dsa_fp8_rows_t   q;
    dsa_moe_plan_t   plan;

    static const dsa_router_t  routers[] = {
        { 513, 1, 1, 8, 1, 1 },
        { 256, 0, 0, 8, 1, 1 },
        { 256, 7, 3, 8, 1, 1 },
        { 256, 256, 8, 8, 1, 1 },
        { 256, 8, 9, 8, 1, 1 },
        { 256, 8, 4, 17, 1, 1 },
        { 256, 8, 4, 0, 1, 1 },
        { 256, 64, 1, 8, 1, 1 }
    };

    x = gpu_alloc(1 << 16);
    w = gpu_alloc(1 << 16);
    id = gpu_alloc(1 << 16);
    q = fp8_rows(8, 256);

    for (i = 0; i < sizeof(routers) / sizeof(routers[0]); i++) {
        assert_int_equal(dsa_cuda_route(id, w, w, w, 1, &routers[i], NULL),
                         cudaErrorInvalidValue);
    }

    plan.offset = id;
    plan.count = id + 1024;
    plan.place = id + 2048;
    plan.row = id + 4096;
    plan.places = 4096;
    plan.align = 24;

    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 256, NULL),
                     cudaErrorInvalidValue);
    plan.align = 256;
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 256, NULL),
                     cudaErrorInvalidValue);
    plan.align = 8;
    plan.places = 8 + 256 * 8 - 1;
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 256, NULL),
                     cudaErrorInvalidValue);
    plan.places = 4096;
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 17, 256, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_plan(&plan, id, 1, 8, 513, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_gather(&q, &q, &plan, 1, 8, 256, 200,
                                         NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_gather(&q, &q, &plan, 1, 17, 256, 256,
                                         NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_swiglu(&q, x, 1, 200, NULL, 0, 1, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_combine(x, x, x, w, id, &plan, 1, 17, 256,
                                          NULL), cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_moe_combine(x, x, x, w, id, &plan, 1, 8, 12,
                                          NULL), cudaErrorInvalidValue);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_route, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_plan, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_ranks, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_gather, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_swiglu, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_combine, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
