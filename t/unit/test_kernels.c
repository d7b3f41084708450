
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/core/bf16.h"
#include "kernels/core/exp.h"
#include "kernels/core/fp8.h"
#include "kernels/gemm/gemm.h"
#include "kernels/moe/moe.h"
#include "kernels/row/hadamard.h"
#include "kernels/row/norm.h"
#include "kernels/row/rope.h"
#include "t/unit/numbers.h"


/*
 * Ops against float64 formulas written out here, and against values known by
 * hand.
 */


/* The OCP table of e4m3, from its definition. */

static double
e4m3(unsigned code)
{
    double    v;
    unsigned  e, m;

    e = code >> 3 & 15;
    m = code & 7;

    if (e == 15 && m == 7) {
        return NAN;
    }

    v = e == 0 ? ldexp(m, -9) : ldexp(8 + m, (int) e - 10);

    return code & 0x80 ? -v : v;
}


/* The nearest code by trying all, of two the even one; beyond 448: 448. */

static unsigned
e4m3_nearest(double v)
{
    double    d, best;
    unsigned  code, found;

    best = INFINITY;
    found = 0;

    for (code = 0; code < 0x7f; code++) {
        d = fabs(e4m3(code) - fabs(v));

        if (d < best || (d == best && (code & 1) == 0)) {
            best = d;
            found = code;
        }
    }

    return found | (signbit(v) ? 0x80 : 0);
}


static void
check_e4m3(float v)
{
    float     r;
    unsigned  code;

    r = dsa_e4m3_round(v);
    code = e4m3_nearest(v);

    if (dsa_e4m3_code(r) != code) {
        fail_msg("e4m3 of %.9g is 0x%02x, not 0x%02x", v, dsa_e4m3_code(r),
                 code);
    }

    assert_true(r == (float) e4m3(code));
}


static void
test_e4m3_values(void **state)
{
    unsigned  code;

    for (code = 0; code < 256; code++) {
        if (isnan(e4m3(code))) {
            assert_true(isnan(dsa_e4m3_value[code]));

        } else {
            assert_true(dsa_e4m3_value[code] == (float) e4m3(code));
            assert_int_equal(!!signbit(dsa_e4m3_value[code]), code >> 7);
        }
    }

    assert_true(dsa_e4m3_value[0x7e] == 448);
    assert_true(dsa_e4m3_value[0x38] == 1);
    assert_true(dsa_e4m3_value[0xc0] == -2);
    assert_true(dsa_e4m3_value[0x08] == 0x1p-6f);
    assert_true(dsa_e4m3_value[0x01] == 0x1p-9f);
}


static void
test_e4m3_rounding(void **state)
{
    float     middle;
    unsigned  i, code;

    for (code = 0; code < 0x7e; code++) {
        middle = (float) ((e4m3(code) + e4m3(code + 1)) / 2);

        check_e4m3(middle);
        check_e4m3(-middle);
        check_e4m3(nextafterf(middle, 0));
        check_e4m3(nextafterf(middle, 1e9f));
        check_e4m3((float) e4m3(code));
    }

    for (i = 0; i < 20000; i++) {
        check_e4m3(ldexpf(dsa_t_uniform(), (int) dsa_t_random(24) - 14));
    }

    /* 17 lies between 16 and 18, 19 between 18 and 20 */

    assert_true(dsa_e4m3_round(17) == 16);
    assert_true(dsa_e4m3_round(19) == 20);
    assert_true(dsa_e4m3_round(0x1p-10f) == 0);
    assert_true(dsa_e4m3_round(0x3p-10f) == 0x1p-8f);

    assert_true(dsa_e4m3_round(1e30f) == 448);
    assert_true(dsa_e4m3_round(-INFINITY) == -448);
    assert_int_equal(dsa_e4m3_code(dsa_e4m3_round(NAN)) & 0x7f, 0x7f);
}


static void
test_bf16(void **state)
{
    float     v, low, high;
    uint32_t  i, u;

    assert_int_equal(dsa_bf16_encode(1.0f), 0x3f80);
    assert_int_equal(dsa_bf16_encode(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(dsa_bf16_encode(1.0f + 0x3p-8f), 0x3f82);
    assert_int_equal(dsa_bf16_encode(nextafterf(1.0f + 0x1p-8f, 2)), 0x3f81);
    assert_int_equal(dsa_bf16_encode(-0.0f), 0x8000);
    assert_int_equal(dsa_bf16_encode(INFINITY), 0x7f80);
    assert_int_equal(dsa_bf16_encode(0x1.fffffep127f), 0x7f80);
    assert_true(isnan(dsa_bf16_round(dsa_bits_float(0x7fffffff))));
    assert_true(isnan(dsa_bf16_round(dsa_bits_float(0xff800001))));

    for (i = 0; i < 100000; i++) {
        u = dsa_t_random(0x7f000000);
        v = dsa_bits_float(u);
        low = dsa_bits_float(u & 0xffff0000);
        high = dsa_bits_float((u & 0xffff0000) + 0x10000);

        if ((double) v - low < (double) high - v
            || ((double) v - low == (double) high - v
                && (u >> 16 & 1) == 0))
        {
            assert_true(dsa_bf16_round(v) == low);

        } else {
            assert_true(dsa_bf16_round(v) == high);
        }
    }
}


static void
test_ue8m0(void **state)
{
    int  e;

    for (e = -126; e < 127; e++) {
        assert_true(dsa_ue8m0(ldexpf(1, e)) == ldexpf(1, e));
        assert_true(dsa_ue8m0(nextafterf(ldexpf(1, e), 1e38f))
                    == ldexpf(1, e + 1));
        assert_true(dsa_ue8m0(ldexpf(1.5f, e)) == ldexpf(1, e + 1));
    }

    assert_true(dsa_ue8m0(0x1p-149f) == 0x1p-126f);
    assert_true(dsa_ue8m0(0x1.8p127f) == 0x1p127f);
}


static void
test_fp8_groups(void **state)
{
    int      ue8m0;
    float    x[2 * 300], y[2 * 300], scale[3];
    size_t   r, i, j, end;
    double   amax, s;
    uint8_t  q[300];

    dsa_t_fill(x, 600, 3);
    x[0] = 40;                                  /* an outlier in one group */
    memset(x + 300, 0, 128 * sizeof(float));    /* and one of zeros */

    for (ue8m0 = 0; ue8m0 < 2; ue8m0++) {
        dsa_fp8_simulate(y, x, 2, 300, ue8m0);

        for (r = 0; r < 2; r++) {
            for (i = 0; i < 300; i = end) {
                end = i + 128 < 300 ? i + 128 : 300;
                amax = 1e-4f;

                for (j = i; j < end; j++) {
                    amax = fmax(amax, fabs(x[r * 300 + j]));
                }

                s = (float) amax / 448.0f;
                s = ue8m0 ? exp2(ceil(log2(s))) : s;

                for (j = i; j < end; j++) {
                    assert_float_equal(y[r * 300 + j],
                                       s * e4m3(e4m3_nearest(
                                                    x[r * 300 + j]
                                                    / (float) s)),
                                       1e-7 * amax);
                }
            }
        }
    }

    /* codes and scales say the same as the simulation with ue8m0 */

    dsa_fp8_simulate(y, x, 1, 300, 1);
    dsa_fp8_encode(q, scale, x, 300, 128);

    for (i = 0; i < 300; i++) {
        assert_true(y[i] == scale[i / 128] * dsa_e4m3_value[q[i]]);
    }

    /* quantizing twice changes nothing */

    dsa_fp8_simulate(x, y, 1, 300, 1);
    assert_memory_equal(x, y, 300 * sizeof(float));

    /* 448 * 2^-9 is 0.875: 0.9 needs 2^-8 */

    x[0] = 0.875f;
    assert_true(dsa_fp8_scale(x, 1, 1) == 0x1p-9f);
    x[0] = 0.9f;
    assert_true(dsa_fp8_scale(x, 1, 1) == 0x1p-8f);
    x[0] = 0;
    assert_true(dsa_fp8_scale(x, 1, 1) == 0x1p-22f);

    dsa_t_fill(x, 256, 1);
    memcpy(y, x, 256 * sizeof(float));
    dsa_fp8_round(x, scale, 2, 128);

    for (i = 0; i < 256; i++) {
        assert_true(scale[i / 128] == dsa_fp8_scale(y + i / 128 * 128, 128,
                                                    1));
        assert_true(x[i] == (float) e4m3(e4m3_nearest(y[i]
                                                      / scale[i / 128])));
    }
}


static void
test_fp8_weight(void **state)
{
    float    *w, scale[2 * 2];
    size_t    i, j;
    uint8_t  *q;

    q = malloc(200 * 130);
    w = malloc(200 * 130 * sizeof(float));
    assert_non_null(q);
    assert_non_null(w);

    for (i = 0; i < 200 * 130; i++) {
        q[i] = (uint8_t) dsa_t_random(127);
    }

    dsa_t_fill(scale, 4, 1);
    dsa_fp8_decode_weight(w, q, scale, 100, 60, 130);

    for (i = 0; i < 60; i++) {
        for (j = 0; j < 130; j++) {
            assert_true(w[i * 130 + j]
                        == (float) (e4m3(q[(100 + i) * 130 + j])
                                    * scale[(100 + i) / 128 * 2 + j / 128]));
        }
    }

    free(q);
    free(w);
}


static void
test_norms(void **state)
{
    float   x[3 * 70], y[3 * 80], w[70], b[70], res[3 * 70], old[3 * 70];
    size_t  i, j;
    double  sum, mean, var, v, expected[70];

    dsa_t_fill(x, 210, 5);
    dsa_t_fill(w, 70, 2);
    dsa_t_fill(b, 70, 2);

    dsa_rmsnorm(y, 80, x, 70, w, 3, 70, 1e-3f, 0);

    for (i = 0; i < 3; i++) {
        for (j = 0, sum = 0; j < 70; j++) {
            sum += (double) x[i * 70 + j] * x[i * 70 + j];
        }

        for (j = 0; j < 70; j++) {
            expected[j] = w[j] * x[i * 70 + j] / sqrt(sum / 70 + 1e-3);
        }

        assert_true(dsa_t_error(y + i * 80, expected, 70) < 3e-7);
    }

    /* the norm reads the sum that is not rounded, the stream keeps the other */

    dsa_t_fill(res, 210, 1);
    memcpy(old, res, sizeof(old));
    dsa_add_rmsnorm(y, x, res, w, 3, 70, 1e-6f, 1);

    for (i = 0; i < 3; i++) {
        for (j = 0, sum = 0; j < 70; j++) {
            v = x[i * 70 + j] + old[i * 70 + j];
            sum += v * v;
            assert_true(res[i * 70 + j] == dsa_bf16_round((float) v));
        }

        for (j = 0; j < 70; j++) {
            v = w[j] * (double) (x[i * 70 + j] + old[i * 70 + j])
                / sqrt(sum / 70 + 1e-6);

            assert_true(y[i * 70 + j] == dsa_bf16_round(y[i * 70 + j]));
            assert_float_equal(y[i * 70 + j], v, fabs(v) * 0.0040);
        }
    }

    memcpy(y, x, sizeof(x));
    dsa_layernorm(y, w, b, 3, 70, 1e-2f, 0);

    for (i = 0; i < 3; i++) {
        for (j = 0, mean = 0; j < 70; j++) {
            mean += x[i * 70 + j] / 70.0;
        }

        for (j = 0, var = 0; j < 70; j++) {
            var += (x[i * 70 + j] - mean) * (x[i * 70 + j] - mean) / 70;
        }

        for (j = 0; j < 70; j++) {
            expected[j] = w[j] * (x[i * 70 + j] - mean) / sqrt(var + 1e-2)
                          + b[j];
        }

        assert_true(dsa_t_error(y + i * 70, expected, 70) < 5e-7);
    }
}


static const dsa_rope_conf_t  published = {
    10000, 40, 32, 1, 1, 1, 4096
};


static void
test_rope_frequencies(void **state)
{
    float            f[32];
    size_t           i;
    dsa_rope_conf_t  conf;

    dsa_rope_frequencies(f, 64, &published);

    for (i = 0; i <= 10; i++) {
        assert_float_equal(f[i], pow(10000, -2.0 * (double) i / 64),
                           1e-7 * f[i]);
    }

    assert_float_equal(f[11], 0.0390069, 1e-7);
    assert_float_equal(f[16], 0.0055, 1e-9);
    assert_float_equal(f[20], 7.90570e-4, 1e-9);
    assert_float_equal(f[22], 1.77828e-4, 1e-9);
    assert_float_equal(f[31], 3.33380e-6, 1e-11);

    for (i = 23; i < 32; i++) {
        assert_float_equal(f[i], pow(10000, -2.0 * (double) i / 64) / 40,
                           1e-7 * f[i]);
    }

    assert_float_equal(dsa_rope_magnitude(&published), 1, 0);

    conf = published;
    conf.mscale = 0.5;
    assert_float_equal(dsa_rope_magnitude(&conf),
                       (0.05 * log(40) + 1) / (0.1 * log(40) + 1), 1e-12);

    conf.factor = 1;
    dsa_rope_frequencies(f, 64, &conf);

    for (i = 0; i < 32; i++) {
        assert_float_equal(f[i], pow(10000, -2.0 * (double) i / 64),
                           1e-7 * f[i]);
    }

    assert_float_equal(dsa_rope_magnitude(&conf), 1, 0);
}


static void
test_rope_layouts(void **state)
{
    float   f[4], c[4], s[4], x[3 * 10], a[3 * 10], b[3 * 10];
    size_t  i, v;
    double  angle, p, q;

    dsa_t_fill(x, 30, 1);
    memcpy(a, x, sizeof(x));
    memcpy(b, x, sizeof(x));

    dsa_rope_frequencies(f, 8, &published);
    dsa_rope_angles(c, s, f, 8, 777, 1.25);
    dsa_rope_interleaved(a, 3, 10, c, s, 8, 0);
    dsa_rope_half(b, 3, 10, c, s, 8, 0);

    for (v = 0; v < 3; v++) {
        for (i = 0; i < 4; i++) {
            angle = 777.0f * f[i];

            p = x[v * 10 + 2 * i];
            q = x[v * 10 + 2 * i + 1];
            assert_float_equal(a[v * 10 + 2 * i],
                               1.25 * (p * cos(angle) - q * sin(angle)),
                               1e-6);
            assert_float_equal(a[v * 10 + 2 * i + 1],
                               1.25 * (p * sin(angle) + q * cos(angle)),
                               1e-6);

            p = x[v * 10 + i];
            q = x[v * 10 + 4 + i];
            assert_float_equal(b[v * 10 + i],
                               1.25 * (p * cos(angle) - q * sin(angle)),
                               1e-6);
            assert_float_equal(b[v * 10 + 4 + i],
                               1.25 * (p * sin(angle) + q * cos(angle)),
                               1e-6);
        }

        /* what stands behind the rotated part stays */

        assert_memory_equal(a + v * 10 + 8, x + v * 10 + 8,
                            2 * sizeof(float));
        assert_memory_equal(b + v * 10 + 8, x + v * 10 + 8,
                            2 * sizeof(float));
    }
}


static void
test_hadamard(void **state)
{
    float   x[2 * 128], y[2 * 128];
    size_t  i, j, v;
    double  expected[128];

    dsa_t_fill(x, 256, 1);
    memcpy(y, x, sizeof(x));
    dsa_hadamard(y, 2, 128, 0);

    for (v = 0; v < 2; v++) {
        for (i = 0; i < 128; i++) {
            expected[i] = 0;

            for (j = 0; j < 128; j++) {
                expected[i] += (__builtin_popcountll(i & j) % 2 != 0 ? -1 : 1)
                               * x[v * 128 + j] / sqrt(128);
            }
        }

        assert_true(dsa_t_error(y + v * 128, expected, 128) < 3e-7);
    }
}


static void
test_gemm(void **state)
{
    int     add;
    float   x[5 * 20], w[7 * 20], y[5 * 9], old[5 * 9];
    size_t  rows, i, j, k;
    double  nt, nn;

    dsa_t_fill(x, 100, 1);
    dsa_t_fill(w, 140, 1);
    dsa_t_fill(old, 45, 1);

    for (rows = 1; rows <= 5; rows += 2) {
        for (add = 0; add < 2; add++) {
            memcpy(y, old, sizeof(old));
            dsa_gemm_nt(y, 9, x, 20, w, 20, rows, 7, 17, add);

            for (i = 0; i < rows; i++) {
                for (j = 0; j < 7; j++) {
                    nt = add ? old[i * 9 + j] : 0;

                    for (k = 0; k < 17; k++) {
                        nt += (double) x[i * 20 + k] * w[j * 20 + k];
                    }

                    assert_float_equal(y[i * 9 + j], nt, 1e-5);
                }
            }

            memcpy(y, old, sizeof(old));
            dsa_gemm_nn(y, 9, x, 20, w, 20, rows, 8, 7, add);

            for (i = 0; i < rows; i++) {
                for (j = 0; j < 8; j++) {
                    nn = add ? old[i * 9 + j] : 0;

                    for (k = 0; k < 7; k++) {
                        nn += (double) x[i * 20 + k] * w[k * 20 + j];
                    }

                    assert_float_equal(y[i * 9 + j], nn, 1e-5);
                }
            }
        }
    }
}


/*
 * The router in words: experts by falling b within the groups whose rank by
 * (score, lower index) is below groups_kept.  Scores are float32, as a choice
 * between two of them depends on it.
 */

static void
route(int32_t *expert, double *weight, const float *logits,
    const float *bias, const dsa_router_t *r)
{
    float     b[32], group[8], first, second;
    double    s[32], sum;
    uint32_t  i, j, g, size, rank, n;

    size = r->experts / r->groups;

    for (i = 0; i < r->experts; i++) {
        s[i] = 1 / (1 + exp(-(double) logits[i]));
        b[i] = 1 / (1 + expf(-logits[i])) + bias[i];
    }

    for (g = 0; g < r->groups; g++) {
        first = second = -1e30f;

        for (i = g * size; i < (g + 1) * size; i++) {
            second = fmaxf(second, fminf(first, b[i]));
            first = fmaxf(first, b[i]);
        }

        group[g] = first + second;
    }

    for (i = 0; i < r->experts; i++) {
        for (g = 0, rank = 0; g < r->groups; g++) {
            rank += group[g] > group[i / size]
                    || (group[g] == group[i / size] && g < i / size);
        }

        if (rank >= r->groups_kept) {
            b[i] = -1e30f;
        }
    }

    for (n = 0, sum = 0; n < r->k; n++) {
        for (i = 0; i < r->experts; i++) {
            for (j = 0, rank = 0; j < r->experts; j++) {
                rank += b[j] > b[i] || (b[j] == b[i] && j < i);
            }

            if (rank == n) {
                expert[n] = (int32_t) i;
                weight[n] = s[i];
                sum += s[i];
            }
        }
    }

    for (n = 0; n < r->k; n++) {
        weight[n] *= r->scale / (r->normalize ? sum : 1);
    }
}


static void
test_router(void **state)
{
    float         logits[32], bias[32], weight[6], scratch[72];
    double        w[6];
    int32_t       expert[6], e[6];
    uint32_t      i, n;
    dsa_router_t  r = { 32, 8, 3, 6, 1, 2.5f };

    for (n = 0; n < 2000; n++) {

        /* whole numbers make ties; biases of both signs */

        for (i = 0; i < 32; i++) {
            logits[i] = n % 2 ? (float) dsa_t_random(4) : dsa_t_uniform() * 4;
            bias[i] = n % 3 == 0 ? 0
                      : (n % 3 == 1 ? 1 : -5) * (float) dsa_t_random(3);
        }

        r.normalize = n % 5 != 0;

        dsa_route(expert, weight, logits, bias, 1, &r, scratch);
        route(e, w, logits, bias, &r);

        for (i = 0; i < r.k; i++) {
            assert_int_equal(expert[i], e[i]);
            assert_float_equal(weight[i], w[i], 1e-6);
        }
    }

    /* nonsense in, valid and distinct ids out */

    for (i = 0; i < 32; i++) {
        logits[i] = i % 3 == 0 ? NAN : (i % 3 == 1 ? INFINITY : -INFINITY);
        bias[i] = i % 5 == 0 ? NAN : -INFINITY;
    }

    dsa_route(expert, weight, logits, bias, 1, &r, scratch);

    for (i = 0, n = 0; i < r.k; i++) {
        assert_in_range(expert[i], 0, 31);
        assert_int_equal(n >> expert[i] & 1, 0);
        n |= 1U << expert[i];
    }
}


static void
test_moe(void **state)
{
    float     x[6 * 4], y[12 * 4], sum[6 * 4], shared[6 * 4], weight[6 * 2];
    size_t    i, j, n, at;
    double    expected;
    int32_t   expert[6 * 2], place[6 * 2];
    uint32_t  e, pair[6 * 2], offset[5 + 1];

    dsa_t_fill(x, 24, 1);
    dsa_t_fill(shared, 24, 1);
    dsa_t_fill(weight, 12, 1);

    for (i = 0; i < 6; i++) {
        expert[2 * i] = (int32_t) dsa_t_random(2);
        expert[2 * i + 1] = 3 + (int32_t) dsa_t_random(2);  /* 2: no rows */
    }

    dsa_moe_group(pair, offset, expert, 6, 2, 5);

    assert_int_equal(offset[0], 0);
    assert_int_equal(offset[5], 12);
    assert_int_equal(offset[2], offset[3]);

    for (e = 0; e < 5; e++) {
        at = offset[e];
        n = offset[e + 1] - at;
        dsa_moe_gather(y + at * 4, x, pair + at, n, 2, 4);

        for (i = 0; i < n; i++) {
            assert_int_equal(expert[pair[offset[e] + i]], e);
            place[pair[offset[e] + i]] = (int32_t) (at + i);

            if (i != 0) {
                assert_true(pair[offset[e] + i] > pair[offset[e] + i - 1]);
            }

            for (j = 0; j < 4; j++) {
                y[(at + i) * 4 + j] *= (float) (e + 1);
            }
        }
    }

    place[7] = -1;          /* left out */
    dsa_moe_combine(sum, y, shared, weight, place, 6, 2, 4, 0);

    for (i = 0; i < 6; i++) {
        for (j = 0; j < 4; j++) {
            expected = x[i * 4 + j]
                       * ((double) weight[2 * i] * (expert[2 * i] + 1)
                          + (i == 3 ? 0 : (double) weight[2 * i + 1]
                                          * (expert[2 * i + 1] + 1)))
                       + shared[i * 4 + j];
            assert_float_equal(sum[i * 4 + j], expected, 1e-5);
        }
    }
}


static void
test_exp(void **state)
{
    float   x;
    double  e;

    for (x = -87; x < 88; x += 0.00037f) {
        e = exp((double) x);
        assert_true(fabs(dsa_exp(x) - e) < 2e-7 * e);
    }

    assert_true(dsa_exp(0) == 1 && dsa_exp(-0.0f) == 1);
    assert_true(dsa_exp(-88) == 0 && dsa_exp(-1e30f) == 0);
    assert_true(dsa_exp(-INFINITY) == 0);
    assert_true(dsa_exp(89) == INFINITY && dsa_exp(INFINITY) == INFINITY);
    assert_true(isnan(dsa_exp(NAN)));
}


static void
test_swiglu(void **state)
{
    float   gate[100], up[100], y[100];
    size_t  i;
    double  expected[100];

    dsa_t_fill(gate, 100, 20);
    dsa_t_fill(up, 100, 3);
    gate[0] = -200;

    for (i = 0; i < 100; i++) {
        expected[i] = gate[i] / (1 + exp(-(double) gate[i])) * up[i];
    }

    dsa_swiglu(y, gate, up, 100, 0);
    assert_true(dsa_t_error(y, expected, 100) < 3e-7);
    assert_true(y[0] == 0);

    dsa_swiglu(gate, gate, up, 100, 1);

    for (i = 0; i < 100; i++) {
        assert_true(gate[i] == dsa_bf16_round(y[i]));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_e4m3_values),
        cmocka_unit_test(test_e4m3_rounding),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_ue8m0),
        cmocka_unit_test(test_fp8_groups),
        cmocka_unit_test(test_fp8_weight),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_rope_frequencies),
        cmocka_unit_test(test_rope_layouts),
        cmocka_unit_test(test_hadamard),
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_router),
        cmocka_unit_test(test_moe),
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_swiglu)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
