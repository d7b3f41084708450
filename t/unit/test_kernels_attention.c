
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

#include "kernels/attention/attention.h"
#include "kernels/attention/cache.h"
#include "kernels/core/bf16.h"
#include "kernels/core/fp8.h"
#include "kernels/index/indexer.h"
#include "t/unit/numbers.h"


/* Index scores, selection, attention and the cache they read from. */


static void
test_index_score(void **state)
{
    float   q[3 * 4 * 16], w[3 * 4], k[9 * 16], kscale[9], score[3 * 9],
            scratch[3 * 4 * 9];
    size_t  t, h, s, i;
    double  dot, expected[27];

    dsa_t_fill(q, 192, 1);
    dsa_t_fill(w, 12, 1);
    dsa_t_fill(k, 144, 1);
    dsa_t_fill(kscale, 9, 0.5f);

    for (s = 0; s < 9; s++) {
        kscale[s] = fabsf(kscale[s]) + 0.1f;
    }

    for (t = 0; t < 3; t++) {
        for (s = 0; s < 9; s++) {
            expected[t * 9 + s] = 0;

            for (h = 0; h < 4; h++) {
                for (i = 0, dot = 0; i < 16; i++) {
                    dot += (double) q[(t * 4 + h) * 16 + i] * k[s * 16 + i];
                }

                expected[t * 9 + s] += w[t * 4 + h] * fmax(dot, 0)
                                       * kscale[s];
            }
        }
    }

    dsa_index_score(score, q, w, k, kscale, 3, 4, 16, 9, scratch);
    assert_true(dsa_t_error(score, expected, 27) < 5e-7);

    for (s = 0; s < 27; s++) {
        expected[s] /= kscale[s % 9];
    }

    dsa_index_score(score, q, w, k, NULL, 3, 4, 16, 9, scratch);
    assert_true(dsa_t_error(score, expected, 27) < 5e-7);

    /* no head looks at this key: a zero, and not a negative one */

    for (i = 0; i < 192; i++) {
        q[i] = 1;
        k[i % 144] = -1;
    }

    for (i = 0; i < 12; i++) {
        w[i] = -1;
    }

    dsa_index_score(score, q, w, k, kscale, 3, 4, 16, 9, scratch);

    for (s = 0; s < 27; s++) {
        assert_true(score[s] == 0 && !signbit(score[s]));
    }
}


typedef struct {
    float    score;
    int32_t  position;
} ranked_t;


static int
by_score(const void *a, const void *b)
{
    const ranked_t  *p = a, *q = b;

    if (p->score != q->score) {
        return p->score < q->score ? 1 : -1;
    }

    return p->position - q->position;
}


static int
by_position(const void *a, const void *b)
{
    const ranked_t  *p = a, *q = b;

    return p->position - q->position;
}


static void
check_topk(const float *score, uint32_t n, uint32_t k)
{
    float       gap;
    int32_t    *position;
    uint32_t    i, piece, count;
    uint64_t   *candidate;
    ranked_t   *ranked;
    dsa_topk_t  t;

    ranked = calloc(n, sizeof(ranked_t));
    position = calloc(k, sizeof(int32_t));
    candidate = calloc(2 * k, sizeof(uint64_t));

    assert_non_null(ranked);
    assert_non_null(position);
    assert_non_null(candidate);

    dsa_topk_start(&t, candidate, k);

    for (i = 0; i < n; i += piece) {
        piece = 1 + dsa_t_random(2 * k);
        piece = piece < n - i ? piece : n - i;
        dsa_topk_add(&t, score + i, piece, i);
    }

    count = dsa_topk_end(&t, position);

    for (i = 0; i < n; i++) {
        ranked[i].score = score[i];
        ranked[i].position = (int32_t) i;
    }

    qsort(ranked, n, sizeof(ranked_t), by_score);
    assert_int_equal(count, n < k ? n : k);

    gap = n > k ? ranked[k - 1].score - ranked[k].score : 0;
    assert_true(dsa_topk_margin(&t) == gap);

    qsort(ranked, count, sizeof(ranked_t), by_position);

    for (i = 0; i < count; i++) {
        assert_int_equal(position[i], ranked[i].position);
    }

    free(ranked);
    free(position);
    free(candidate);
}


static void
test_topk(void **state)
{
    float     score[3000];
    uint32_t  i, n, k, kind;

    for (kind = 0; kind < 400; kind++) {
        n = 1 + dsa_t_random(3000);
        k = 1 + dsa_t_random(kind % 4 == 0 ? 8 : 300);

        for (i = 0; i < n; i++) {
            switch (kind % 5) {

            case 0:     /* all different */
                score[i] = dsa_t_uniform();
                break;

            case 1:     /* a plateau of zeros of both signs */
                score[i] = dsa_t_random(4) ? (dsa_t_random(2) ? 0.0f : -0.0f)
                                           : dsa_t_uniform();
                break;

            case 2:     /* few values */
                score[i] = (float) dsa_t_random(5) - 2;
                break;

            case 3:     /* rising: every one is better than those before */
                score[i] = (float) i;
                break;

            case 4:     /* the same in all but the last bits */
                score[i] = dsa_bits_float(0x3f800000 + dsa_t_random(300));
                break;
            }
        }

        check_topk(score, n, k);
    }

    for (i = 0; i < 3000; i++) {
        score[i] = 1;
    }

    check_topk(score, 3000, 64);
    check_topk(score, 64, 64);
    check_topk(score, 1, 64);
}


/* Infinities and NaN neither crash nor choose a position twice. */

static void
test_topk_nonsense(void **state)
{
    float       score[1000];
    int32_t     position[50];
    uint32_t    i;
    uint64_t    candidate[100];
    dsa_topk_t  t;

    for (i = 0; i < 1000; i++) {
        score[i] = i % 3 == 0 ? NAN : (i % 3 == 1 ? INFINITY : -INFINITY);
    }

    dsa_topk_start(&t, candidate, 50);
    dsa_topk_add(&t, score, 1000, 0);
    assert_int_equal(dsa_topk_end(&t, position), 50);

    for (i = 0; i < 50; i++) {
        assert_in_range(position[i], i == 0 ? 0 : position[i - 1] + 1, 999);
    }
}


#define HEADS   3
#define NOPE    16
#define ROPE    8
#define V       12
#define LATENT  32
#define ROWS    5
#define KEYS    40


/* Both forms against the formula, each row with a selection of its own. */

static void
test_attention(void **state)
{
    float            q[ROWS * HEADS * (NOPE + ROPE)], c[KEYS * LATENT],
                     k_rope[KEYS * ROPE], w[HEADS * (NOPE + V) * LATENT],
                     kv[KEYS * (NOPE + V)], out[ROWS * HEADS * V],
                     q_latent[HEADS * LATENT], u[HEADS * LATENT],
                     scratch[ROWS * HEADS * KEYS], sc[KEYS * LATENT],
                     sr[KEYS * ROPE];
    size_t           t, h, s, i, j;
    double           p[KEYS], k, sum, max, v, expected[V], absorbed[V];
    int32_t          pick[ROWS * KEYS];
    uint32_t         n_pick[ROWS];
    dsa_attention_t  a = { HEADS, NOPE, ROPE, V, LATENT, 0.37f };

    dsa_t_fill(q, ROWS * HEADS * (NOPE + ROPE), 1);
    dsa_t_fill(c, KEYS * LATENT, 1);
    dsa_t_fill(k_rope, KEYS * ROPE, 1);
    dsa_t_fill(w, HEADS * (NOPE + V) * LATENT, 1);

    for (t = 0; t < ROWS; t++) {
        n_pick[t] = 0;

        for (s = 0; s < KEYS; s++) {
            if (t == 0 ? s == 7 : (t == 1 || dsa_t_random(2))) {
                pick[t * KEYS + n_pick[t]++] = (int32_t) s;
            }
        }
    }

    for (h = 0; h < HEADS; h++) {
        for (s = 0; s < KEYS; s++) {
            for (i = 0; i < NOPE + V; i++) {
                for (j = 0, v = 0; j < LATENT; j++) {
                    v += (double) w[(h * (NOPE + V) + i) * LATENT + j]
                         * c[s * LATENT + j];
                }

                kv[s * (NOPE + V) + i] = (float) v;
            }
        }

        dsa_attention_mha(out + h * V, HEADS * V, q + h * (NOPE + ROPE),
                           HEADS * (NOPE + ROPE), kv, k_rope, ROWS, KEYS,
                           pick, KEYS, n_pick, &a, 0, scratch);

        for (t = 0; t < ROWS; t++) {
            max = -1e300;

            for (i = 0; i < n_pick[t]; i++) {
                s = (size_t) pick[t * KEYS + i];

                for (j = 0, k = 0; j < NOPE; j++) {
                    k += (double) q[(t * HEADS + h) * (NOPE + ROPE) + j]
                         * kv[s * (NOPE + V) + j];
                }

                for (j = 0; j < ROPE; j++) {
                    k += (double) q[(t * HEADS + h) * (NOPE + ROPE) + NOPE + j]
                         * k_rope[s * ROPE + j];
                }

                p[i] = k * a.scale;
                max = fmax(max, p[i]);
            }

            for (i = 0, sum = 0; i < n_pick[t]; i++) {
                p[i] = exp(p[i] - max);
                sum += p[i];
            }

            for (j = 0; j < V; j++) {
                expected[j] = 0;

                for (i = 0; i < n_pick[t]; i++) {
                    s = (size_t) pick[t * KEYS + i];
                    expected[j] += p[i] / sum * kv[s * (NOPE + V) + NOPE + j];
                }
            }

            assert_true(dsa_t_error(out + (t * HEADS + h) * V, expected, V)
                        < 3e-6);
        }
    }

    for (t = 0; t < ROWS; t++) {
        for (h = 0; h < HEADS; h++) {
            for (j = 0; j < LATENT; j++) {
                for (i = 0, v = 0; i < NOPE; i++) {
                    v += (double) q[(t * HEADS + h) * (NOPE + ROPE) + i]
                         * w[(h * (NOPE + V) + i) * LATENT + j];
                }

                q_latent[h * LATENT + j] = (float) v;
            }
        }

        for (i = 0; i < n_pick[t]; i++) {
            s = (size_t) pick[t * KEYS + i];
            memcpy(sc + i * LATENT, c + s * LATENT, LATENT * sizeof(float));
            memcpy(sr + i * ROPE, k_rope + s * ROPE, ROPE * sizeof(float));
        }

        dsa_attention_mqa(u, q_latent,
                               q + t * HEADS * (NOPE + ROPE) + NOPE,
                               NOPE + ROPE, sc, sr, n_pick[t], &a, 0, scratch);

        for (h = 0; h < HEADS; h++) {
            for (i = 0; i < V; i++) {
                absorbed[i] = 0;

                for (j = 0; j < LATENT; j++) {
                    absorbed[i] += (double) u[h * LATENT + j]
                                   * w[(h * (NOPE + V) + NOPE + i) * LATENT
                                       + j];
                }
            }

            assert_true(dsa_t_error(out + (t * HEADS + h) * V, absorbed, V)
                        < 1e-5);
        }
    }
}


/*
 * The bits of tokens that are computed together are those of each one alone,
 * whichever keys the others select, with more keys than a block of gemm.h.
 */

#define TOGETHER    7
#define CONTEXT     300

static void
check_together(int bf16, uint32_t of, uint32_t in)
{
    float            q_latent[TOGETHER * HEADS * LATENT],
                     q[TOGETHER * HEADS * (NOPE + ROPE)], c[CONTEXT * LATENT],
                     k_rope[CONTEXT * ROPE], all[TOGETHER * HEADS * LATENT],
                     one[HEADS * LATENT], sc[CONTEXT * LATENT],
                     sr[CONTEXT * ROPE];
    float            scratch[TOGETHER * HEADS * CONTEXT];
    size_t           t, s, n;
    int32_t          pick[TOGETHER * CONTEXT];
    uint32_t         n_pick[TOGETHER];
    dsa_attention_t  a = { HEADS, NOPE, ROPE, V, LATENT, 0.37f };

    dsa_t_fill(q_latent, TOGETHER * HEADS * LATENT, 1);
    dsa_t_fill(q, TOGETHER * HEADS * (NOPE + ROPE), 1);
    dsa_t_fill(c, CONTEXT * LATENT, 1);
    dsa_t_fill(k_rope, CONTEXT * ROPE, 1);

    for (t = 0; t < TOGETHER; t++) {
        n_pick[t] = 0;

        for (s = 0; s < CONTEXT - TOGETHER + t; s++) {
            if (t == 0 ? s == 7 : (t == 1 || dsa_t_random(in) < of)) {
                pick[t * CONTEXT + n_pick[t]++] = (int32_t) s;
            }
        }
    }

    dsa_attention_mqa_all(all, q_latent, q + NOPE, NOPE + ROPE, c, k_rope,
                          TOGETHER, CONTEXT, pick, CONTEXT, n_pick, &a, bf16,
                          scratch);

    for (t = 0; t < TOGETHER; t++) {
        n = n_pick[t];

        for (s = 0; s < n; s++) {
            memcpy(sc + s * LATENT, c + pick[t * CONTEXT + s] * LATENT,
                   LATENT * sizeof(float));
            memcpy(sr + s * ROPE, k_rope + pick[t * CONTEXT + s] * ROPE,
                   ROPE * sizeof(float));
        }

        dsa_attention_mqa(one, q_latent + t * HEADS * LATENT,
                          q + t * HEADS * (NOPE + ROPE) + NOPE, NOPE + ROPE,
                          sc, sr, n, &a, bf16, scratch);

        assert_memory_equal(one, all + t * HEADS * LATENT, sizeof(one));
    }
}


static void
test_attention_together(void **state)
{
    check_together(0, 1, 2);
    check_together(1, 1, 2);
    check_together(0, 15, 16);
    check_together(1, 15, 16);
}


/* Scores far apart and far from zero overflow nothing. */

static void
test_attention_range(void **state)
{
    float            q[2] = { 1, 1 }, out, scratch[3];
    float            kv[3 * 2] = { 3000, 1, -3000, 2, 3000, 5 };
    float            k_rope[3] = { 0, 0, 0 };
    int32_t          pick[3] = { 0, 1, 2 };
    uint32_t         n_pick = 3;
    dsa_attention_t  a = { 1, 1, 1, 1, 1, 1.0f };

    dsa_attention_mha(&out, 1, q, 2, kv, k_rope, 1, 3, pick, 3, &n_pick, &a,
                       0, scratch);
    assert_float_equal(out, 3, 1e-6);
}


static void
check_cache(uint32_t format, uint32_t latent, uint32_t rope, uint32_t index)
{
    void        *base;
    float       *c, *key, *c2, *r2, *key2, scale[200], s;
    size_t       n, i, j, ld;
    int32_t      position[50];
    uint32_t     layer;
    dsa_cache_t  cache;

    const uint32_t  pages[4] = { 5, 0, 3, 1 };

    n = 200;
    ld = latent + rope;

    dsa_cache_layout(&cache, format, 2, NULL, latent, rope, index);

    c = malloc(n * ld * sizeof(float));
    key = malloc(n * index * sizeof(float));
    c2 = malloc(n * latent * sizeof(float));
    r2 = malloc(n * rope * sizeof(float));
    key2 = malloc(n * index * sizeof(float));
    base = calloc(6, cache.page);

    assert_true(c && key && c2 && r2 && key2 && base);

    for (layer = 0; layer < 2; layer++) {
        dsa_t_fill(c, n * ld, (float) (layer + 1));
        dsa_t_fill(key, n * index, (float) (layer + 1));

        if (format != DSA_CACHE_EXACT) {
            dsa_bf16_round_rows(c, n * ld);
        }

        /* in two pieces, from the middle of a page on */

        dsa_cache_write(&cache, base, layer, pages, 0, 90, c, ld, key);
        dsa_cache_write(&cache, base, layer, pages, 90, n - 90, c + 90 * ld,
                        ld, key + 90 * index);

        dsa_cache_latents(c2, r2, &cache, base, layer, pages, NULL, 3, n - 3);
        dsa_cache_keys(key2, scale, &cache, base, layer, pages, 3, n - 3);

        for (i = 3; i < n; i++) {
            if (format == DSA_CACHE_FP8) {
                dsa_fp8_simulate(c + i * ld, c + i * ld, 1, latent, 1);
            }

            if (format != DSA_CACHE_EXACT) {
                s = dsa_fp8_scale(key + i * index, index, 1);
                assert_true(scale[i - 3] == s);

            } else {
                assert_true(scale[i - 3] == 1);
                s = 1;
            }

            assert_memory_equal(c2 + (i - 3) * latent, c + i * ld,
                                latent * sizeof(float));
            assert_memory_equal(r2 + (i - 3) * rope, c + i * ld + latent,
                                rope * sizeof(float));

            for (j = 0; j < index; j++) {
                assert_true(key2[(i - 3) * index + j]
                            == (format != DSA_CACHE_EXACT
                                ? dsa_e4m3_round(key[i * index + j] / s)
                                : key[i * index + j]));
            }
        }

        for (i = 0; i < 50; i++) {
            position[i] = 3 + (int32_t) (i * 37 % 197);
        }

        dsa_cache_latents(c2, r2, &cache, base, layer, pages, position, 0,
                          50);

        for (i = 0; i < 50; i++) {
            assert_memory_equal(c2 + i * latent,
                                c + (size_t) position[i] * ld,
                                latent * sizeof(float));
            assert_memory_equal(r2 + i * rope,
                                c + (size_t) position[i] * ld + latent,
                                rope * sizeof(float));
        }
    }

    free(c);
    free(key);
    free(c2);
    free(r2);
    free(key2);
    free(base);
}


static void
test_cache(void **state)
{
    check_cache(DSA_CACHE_EXACT, 512, 64, 128);
    check_cache(DSA_CACHE_FP8, 512, 64, 128);
    check_cache(DSA_CACHE_BF16, 512, 64, 128);
    check_cache(DSA_CACHE_EXACT, 200, 10, 16);
    check_cache(DSA_CACHE_FP8, 199, 10, 16);    /* nothing aligned */
    check_cache(DSA_CACHE_BF16, 199, 10, 16);
}


/* The published layout, byte by byte: 656 and 132 bytes a token. */

static void
test_cache_layout(void **state)
{
    float        c[576], key[128], scale;
    size_t       i;
    uint8_t     *base, *p;
    uint8_t      indexed[78];
    uint16_t     v;
    dsa_cache_t  cache;

    const uint32_t  pages[1] = { 1 };

    dsa_cache_layout(&cache, DSA_CACHE_FP8, 3, NULL, 512, 64, 128);

    assert_int_equal(cache.token, 656);
    assert_int_equal(cache.keys, 64 * 656);
    assert_int_equal(cache.layer[0], 0);
    assert_int_equal(cache.layer[1], 64 * (656 + 132));
    assert_int_equal(cache.page, 3 * 64 * (656 + 132));

    base = calloc(2, cache.page);
    assert_non_null(base);

    for (i = 0; i < 576; i++) {
        c[i] = (float) (1 << i / 128);
    }

    for (i = 0; i < 128; i++) {
        key[i] = 3;
    }

    dsa_cache_write(&cache, base, 2, pages, 5, 1, c, 576, key);

    p = base + cache.page + cache.layer[2] + 5 * 656;

    for (i = 0; i < 4; i++) {
        memcpy(&scale, p + 512 + 4 * i, sizeof(scale));
        assert_true(scale == ldexpf(1, (int) i - 8));   /* 2^i <= 448 scale */
        assert_int_equal(p[128 * i], 0x78);             /* 256 */
    }

    memcpy(&v, p + 528, sizeof(v));
    assert_int_equal(v, 0x4180);                        /* 16 */

    p = base + cache.page + cache.layer[2] + 64 * 656;

    assert_int_equal(p[5 * 128], 0x7c);                 /* 384 */
    memcpy(&scale, p + 8192 + 4 * 5, sizeof(scale));
    assert_true(scale == 0x1p-7f);

    free(base);

    /* two layers without index keys and latents in BF16 */

    memset(indexed, 0, sizeof(indexed));
    dsa_cache_layout(&cache, DSA_CACHE_BF16, 2, indexed, 512, 64, 128);

    assert_int_equal(cache.token, 1152);
    assert_int_equal(cache.layer[1], 64 * 1152);
    assert_int_equal(cache.page, 2 * 64 * 1152);

    base = calloc(2, cache.page);
    assert_non_null(base);
    dsa_cache_write(&cache, base, 1, pages, 5, 1, c, 576, NULL);

    p = base + cache.page + 64 * 1152 + 5 * 1152;
    memcpy(&v, p, sizeof(v));
    assert_int_equal(v, 0x3f80);                        /* 1 */
    memcpy(&v, p + 511 * 2, sizeof(v));
    assert_int_equal(v, 0x4100);                        /* 8 */
    memcpy(&v, p + 512 * 2, sizeof(v));
    assert_int_equal(v, 0x4180);                        /* 16 */

    free(base);

    /* GLM-5.2 has 78 layers, 21 with index keys: 53,940 bytes a token */

    memset(indexed, 0, sizeof(indexed));

    for (i = 0; i < 78; i++) {
        indexed[i] = i < 3 || i % 4 == 2;
    }

    dsa_cache_layout(&cache, DSA_CACHE_FP8, 78, indexed, 512, 64, 128);

    assert_int_equal(cache.page, 64 * 53940);
    assert_int_equal(cache.layer[3], 3 * 64 * (656 + 132));
    assert_int_equal(cache.layer[7], 64 * (7 * 656 + 4 * 132));

    base = calloc(1, cache.page + 1);
    assert_non_null(base);
    dsa_cache_write(&cache, base, 3, (const uint32_t []) { 0 }, 63, 1, c, 576,
                    NULL);

    for (i = 0; i < cache.page; i++) {
        if (base[i] != 0
            && (i < cache.layer[4] - 656 || i >= cache.layer[4]))
        {
            fail_msg("byte %zu was written", i);
        }
    }

    free(base);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_index_score),
        cmocka_unit_test(test_topk),
        cmocka_unit_test(test_topk_nonsense),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_together),
        cmocka_unit_test(test_attention_range),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_layout)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
