
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/attention/attention.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


#define HEADS_LATENT    576

/*
 * The output is rounded to bf16, by 2^-9 of a value at most.  So are the
 * probabilities, which adds up to as much where few keys have all the weight;
 * half as much is left for values that cancel.  The twin rounds other numbers,
 * the normalized probabilities, so that both roundings count against it.
 */
#define HEADS_TWIN      (3 * 0x1p-9)
#define HEADS_FLOAT64   (2.5 * 0x1p-9)


typedef struct {
    uint32_t            start;
    uint32_t            rows;
    uint32_t            heads;
    uint32_t            select;         /* keys a row, 0: all */
    float               sharp;          /* of the queries */
} heads_case_t;


/* The tested shape, and the columns of its queries, of kv and of values. */

static const dsa_cuda_heads_shape_t  *heads_shape;
static size_t                         heads_qk, heads_kv, heads_v;


/* Makes the n-th shape the one that is tested; 0: there are fewer. */

static int
heads_use(size_t n)
{
    heads_shape = dsa_cuda_heads_shape(n);

    if (heads_shape == NULL) {
        return 0;
    }

    heads_qk = heads_shape->nope + 64;
    heads_kv = heads_shape->nope + heads_shape->v;
    heads_v = heads_shape->v;

    return 1;
}


static void
heads_round(float *x, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = dsa_bf16_decode(dsa_bf16_encode(x[i]));
    }
}


/* Rising positions, min(select, position + 1) of them, and their bits. */

static uint32_t
heads_select(int32_t *pick, uint32_t *mask, size_t words, uint32_t position,
    uint32_t select)
{
    uint32_t  i, n, left;

    memset(mask, 0, words * sizeof(uint32_t));

    n = 0;
    left = select == 0 || select > position ? position + 1 : select;

    for (i = 0; i <= position; i++) {
        if (dsa_t_random(position + 1 - i) < left) {
            pick[n++] = (int32_t) i;
            mask[i / 32] |= 1u << i % 32;
            left--;
        }
    }

    return n;
}


static void
heads_float64(double *out, const float *q, const float *kv, const float *rope,
    const int32_t *pick, uint32_t n, float scale)
{
    size_t     c, nope;
    double     max, sum, *s;
    uint32_t   i;

    nope = heads_shape->nope;
    s = malloc(n * sizeof(double));
    assert_non_null(s);

    max = -INFINITY;

    for (i = 0; i < n; i++) {
        s[i] = 0;

        for (c = 0; c < nope; c++) {
            s[i] += (double) q[c] * kv[(size_t) pick[i] * heads_kv + c];
        }

        for (c = 0; c < 64; c++) {
            s[i] += (double) q[nope + c] * rope[(size_t) pick[i] * 64 + c];
        }

        s[i] *= scale;
        max = s[i] > max ? s[i] : max;
    }

    sum = 0;
    memset(out, 0, heads_v * sizeof(double));

    for (i = 0; i < n; i++) {
        s[i] = exp(s[i] - max);
        sum += s[i];

        for (c = 0; c < heads_v; c++) {
            out[c] += s[i] * kv[(size_t) pick[i] * heads_kv + nope + c];
        }
    }

    for (c = 0; c < heads_v; c++) {
        out[c] /= sum;
    }

    free(s);
}


/*
 * The rows and heads that are checked: first and last ones, borders and
 * others.
 */

static uint32_t
heads_sample(uint32_t i, uint32_t n, uint32_t samples)
{
    if (n <= samples) {
        return i;
    }

    return i == 0 ? 0 : i == 1 ? n - 1 : dsa_t_random(n);
}


static void
heads_check(const heads_case_t *t)
{
    float            *q, *kv, *latents, *rope, *out, *again, *got, *hq, *hkv,
                     *twin, *scratch, scale;
    size_t            i, j, keys, words, n_q, n_kv, n_out, samples, picked;
    void             *d_q, *d_kv, *d_latents, *d_mask, *d_out;
    double           *exact, error[2], worst[2];
    int32_t          *pick;
    uint32_t         *mask, *n_pick, row, head;
    dsa_attention_t   a;

    keys = t->start + t->rows;
    words = (keys + 31) / 32;
    scale = 1 / sqrtf((float) heads_qk);

    n_q = (size_t) t->rows * t->heads * heads_qk;
    n_kv = keys * t->heads * heads_kv;
    n_out = (size_t) t->rows * t->heads * heads_v;

    q = malloc(n_q * sizeof(float));
    kv = malloc(n_kv * sizeof(float));
    latents = malloc(keys * HEADS_LATENT * sizeof(float));
    rope = malloc(keys * 64 * sizeof(float));
    out = malloc(n_out * sizeof(float));
    again = malloc(n_out * sizeof(float));
    mask = malloc(t->rows * words * sizeof(uint32_t));
    pick = malloc(keys * sizeof(int32_t));
    n_pick = malloc(sizeof(uint32_t));
    hkv = malloc(keys * heads_kv * sizeof(float));
    scratch = malloc(keys * sizeof(float));
    twin = malloc(heads_v * sizeof(float));
    exact = malloc(heads_v * sizeof(double));

    assert_true(q && kv && latents && rope && out && again && mask && pick
                && n_pick && hkv && scratch && twin && exact);

    dsa_t_fill(q, n_q, 1.7f * t->sharp);
    dsa_t_fill(kv, n_kv, 1.7f);
    dsa_t_fill(latents, keys * HEADS_LATENT, 1.7f);
    heads_round(q, n_q);
    heads_round(kv, n_kv);
    heads_round(latents, keys * HEADS_LATENT);

    for (i = 0; i < keys; i++) {
        memcpy(rope + i * 64, latents + i * HEADS_LATENT + 512,
               64 * sizeof(float));
    }

    for (i = 0; i < t->rows; i++) {
        heads_select(pick, mask + i * words, words, t->start + i, t->select);
    }

    d_q = gpu_upload_bf16(q, n_q);
    d_kv = gpu_upload_bf16(kv, n_kv);
    d_latents = gpu_upload_bf16(latents, keys * HEADS_LATENT);
    d_mask = gpu_upload(mask, t->rows * words * sizeof(uint32_t));
    d_out = gpu_alloc(n_out * sizeof(uint16_t));

    for (i = 0; i < 2; i++) {
        gpu_poison(d_out, n_out * sizeof(uint16_t));
        gpu_ok(dsa_cuda_attention_heads(&gpu_state, heads_shape, d_out, d_q,
                                        d_kv, d_latents,
                                        t->select > 0 ? d_mask : NULL, words,
                                        t->start, t->rows, t->heads, scale,
                                        NULL));
        gpu_download_bf16(i == 0 ? out : again, d_out, n_out);
    }

    assert_memory_equal(out, again, n_out * sizeof(float));

    for (i = 0; i < n_out; i++) {
        assert_true(isfinite(out[i]));
    }

    a.heads = 1;
    a.nope = heads_shape->nope;
    a.rope = 64;
    a.v = heads_shape->v;
    a.latent = 512;
    a.scale = scale;

    worst[0] = 0;
    worst[1] = 0;
    samples = keys > 20000 ? 6 : 24;

    for (i = 0; i < samples; i++) {
        row = i < t->rows ? heads_sample(i, t->rows, samples)
                          : dsa_t_random(t->rows);
        head = i < t->heads ? heads_sample(i, t->heads, samples)
                            : dsa_t_random(t->heads);

        picked = 0;

        for (j = 0; j <= t->start + row; j++) {
            if (mask[row * words + j / 32] >> j % 32 & 1) {
                pick[picked++] = (int32_t) j;
            }
        }

        *n_pick = (uint32_t) picked;
        hq = q + ((size_t) row * t->heads + head) * heads_qk;

        for (j = 0; j < keys; j++) {
            memcpy(hkv + j * heads_kv, kv + (j * t->heads + head) * heads_kv,
                   heads_kv * sizeof(float));
        }

        dsa_attention_mha(twin, heads_v, hq, heads_qk, hkv, rope, 1, keys,
                          pick, keys, n_pick, &a, 1, scratch);

        for (j = 0; j < heads_v; j++) {
            exact[j] = twin[j];
        }

        got = out + ((size_t) row * t->heads + head) * heads_v;
        error[0] = dsa_t_error(got, exact, heads_v);

        heads_float64(exact, hq, hkv, rope, pick, *n_pick, scale);
        error[1] = dsa_t_error(got, exact, heads_v);

        worst[0] = error[0] > worst[0] ? error[0] : worst[0];
        worst[1] = error[1] > worst[1] ? error[1] : worst[1];

        if (!(error[0] < HEADS_TWIN && error[1] < HEADS_FLOAT64)) {
            fail_msg("row %u of %u from %u, head %u of %u, %u selected: "
                     "%.2e from the twin, %.2e from float64", row, t->rows,
                     t->start, head, t->heads, *n_pick, error[0], error[1]);
        }
    }

    print_message("nope %u, v %u, start %u, %u rows, %u heads, %u selected: "
                  "worst %.2e from the twin, %.2e from float64\n",
                  heads_shape->nope, heads_shape->v, t->start, t->rows,
                  t->heads, t->select, worst[0], worst[1]);

    free(q);
    free(kv);
    free(latents);
    free(rope);
    free(out);
    free(again);
    free(mask);
    free(pick);
    free(n_pick);
    free(hkv);
    free(scratch);
    free(twin);
    free(exact);
}


static void
heads_run(const heads_case_t *t, size_t n)
{
    size_t  i, k;

    for (k = 0; heads_use(k); k++) {
        for (i = 0; i < n; i++) {
            heads_check(&t[i]);
            gpu_ok(gpu_free_all(NULL));
        }
    }
}


static void
test_causal(void **state)
{
    static const heads_case_t  t[] = {
        { 0, 1, 1, 0, 1 }, { 0, 2, 128, 0, 4 }, { 0, 63, 3, 0, 1 },
        { 0, 64, 8, 0, 4 }, { 0, 65, 16, 0, 1 }, { 0, 127, 5, 0, 1 },
        { 0, 128, 2, 0, 1 }, { 0, 129, 2, 0, 4 }, { 0, 255, 2, 0, 1 },
        { 0, 256, 1, 0, 1 }, { 0, 257, 7, 0, 1 }, { 0, 383, 1, 0, 1 },
        { 0, 384, 1, 0, 1 }, { 0, 1000, 128, 0, 1 }, { 0, 1024, 16, 0, 4 },
        { 0, 2047, 3, 0, 1 }, { 0, 2048, 3, 0, 4 }, { 0, 2049, 3, 0, 1 },
        { 0, 4096, 16, 0, 1 }
    };

    heads_run(t, sizeof(t) / sizeof(t[0]));
}


/* A chunk of a longer prompt, beginning at any place in a tile. */

static void
test_chunk(void **state)
{
    static const heads_case_t  t[] = {
        { 1, 1, 2, 0, 1 }, { 63, 64, 2, 0, 1 }, { 64, 65, 4, 0, 4 },
        { 127, 130, 1, 0, 1 }, { 128, 127, 3, 0, 1 }, { 1000, 1, 128, 0, 1 },
        { 2047, 2, 3, 0, 4 }, { 2048, 300, 8, 0, 1 }, { 4001, 190, 2, 0, 4 },
        { 131070, 131, 1, 0, 4 }
    };

    heads_run(t, sizeof(t) / sizeof(t[0]));
}


/*
 * Rows that attend to a selection: to all keys before 2,048, then to a part.
 */

static void
test_selected(void **state)
{
    static const heads_case_t  t[] = {
        { 0, 130, 3, 2048, 1 }, { 0, 130, 3, 1, 1 }, { 0, 700, 2, 17, 4 },
        { 31, 40, 4, 33, 1 }, { 2000, 100, 16, 2048, 1 },
        { 3000, 1500, 2, 2048, 4 }, { 1000, 1100, 16, 600, 1 },
        { 3584, 512, 16, 2048, 1 }, { 131072, 64, 1, 2048, 1 }
    };

    heads_run(t, sizeof(t) / sizeof(t[0]));
}


/*
 * The bits of a row do not depend on the chunk in which it is computed, nor on
 * the rows and heads beside it.
 */

static void
heads_chunks(uint32_t tokens, uint32_t heads, uint32_t select,
    const uint32_t *chunk, size_t chunks)
{
    float     *kv, *latents, *q;
    size_t     i, row, words, n_q, n_kv, n_out;
    int32_t   *pick;
    uint16_t  *d_q, *d_out, *whole, *out;
    uint32_t  *mask, *d_mask;
    void      *d_kv, *d_latents;

    words = (tokens + 31) / 32;
    n_q = (size_t) tokens * heads * heads_qk;
    n_kv = (size_t) tokens * heads * heads_kv;
    n_out = (size_t) tokens * heads * heads_v;

    q = malloc(n_q * sizeof(float));
    kv = malloc(n_kv * sizeof(float));
    latents = malloc((size_t) tokens * HEADS_LATENT * sizeof(float));
    mask = malloc(tokens * words * sizeof(uint32_t));
    pick = malloc(tokens * sizeof(int32_t));
    whole = malloc(n_out * sizeof(uint16_t));
    out = malloc(n_out * sizeof(uint16_t));

    assert_true(q && kv && latents && mask && pick && whole && out);

    dsa_t_fill(q, n_q, 4);
    dsa_t_fill(kv, n_kv, 1.7f);
    dsa_t_fill(latents, (size_t) tokens * HEADS_LATENT, 1.7f);

    for (i = 0; i < tokens; i++) {
        heads_select(pick, mask + i * words, words, (uint32_t) i, select);
    }

    d_q = gpu_upload_bf16(q, n_q);
    d_kv = gpu_upload_bf16(kv, n_kv);
    d_latents = gpu_upload_bf16(latents, (size_t) tokens * HEADS_LATENT);
    d_mask = gpu_upload(mask, tokens * words * sizeof(uint32_t));
    d_out = gpu_alloc(n_out * sizeof(uint16_t));

    gpu_ok(dsa_cuda_attention_heads(&gpu_state, heads_shape, d_out, d_q, d_kv,
                                    d_latents, select > 0 ? d_mask : NULL,
                                    words, 0, tokens, heads, 0.1f, NULL));
    gpu_download(whole, d_out, n_out * sizeof(uint16_t));
    gpu_poison(d_out, n_out * sizeof(uint16_t));

    for (i = 0, row = 0; i < chunks; i++) {
        gpu_ok(dsa_cuda_attention_heads(&gpu_state, heads_shape,
                                        d_out + row * heads * heads_v,
                                        d_q + row * heads * heads_qk, d_kv,
                                        d_latents,
                                        select > 0 ? d_mask + row * words
                                                   : NULL, words,
                                        (uint32_t) row, chunk[i], heads, 0.1f,
                                        NULL));
        row += chunk[i];
    }

    assert_int_equal(row, tokens);
    gpu_download(out, d_out, n_out * sizeof(uint16_t));
    assert_memory_equal(whole, out, n_out * sizeof(uint16_t));

    free(q);
    free(kv);
    free(latents);
    free(mask);
    free(pick);
    free(whole);
    free(out);
}


static void
test_chunks(void **state)
{
    size_t  i;

    static const uint32_t  odd[] = { 1, 63, 65, 130, 500, 241, 3, 497 };
    static const uint32_t  even[] = { 512, 512, 512, 512 };

    for (i = 0; heads_use(i); i++) {
        heads_chunks(1500, 3, 0, odd, 8);
        gpu_ok(gpu_free_all(NULL));
        heads_chunks(1500, 2, 100, odd, 8);
        gpu_ok(gpu_free_all(NULL));
        heads_chunks(2048, 5, 0, even, 4);
        gpu_ok(gpu_free_all(NULL));
    }
}


static void
heads_empty(void)
{
    float   *kv, *latents, *q, *out;
    size_t   i;
    void    *d_q, *d_kv, *d_latents, *d_mask, *d_out;

    static const uint32_t  mask[3] = { 1, 0, 2 };

    kv = malloc(3 * heads_kv * sizeof(float));
    latents = malloc(3 * HEADS_LATENT * sizeof(float));
    q = malloc(3 * heads_qk * sizeof(float));
    out = malloc(3 * heads_v * sizeof(float));

    assert_true(kv && latents && q && out);

    dsa_t_fill(q, 3 * heads_qk, 1);
    dsa_t_fill(kv, 3 * heads_kv, 1);
    dsa_t_fill(latents, 3 * HEADS_LATENT, 1);
    heads_round(kv, 3 * heads_kv);

    d_q = gpu_upload_bf16(q, 3 * heads_qk);
    d_kv = gpu_upload_bf16(kv, 3 * heads_kv);
    d_latents = gpu_upload_bf16(latents, 3 * HEADS_LATENT);
    d_mask = gpu_upload(mask, sizeof(mask));
    d_out = gpu_alloc(3 * heads_v * sizeof(uint16_t));

    gpu_ok(dsa_cuda_attention_heads(&gpu_state, heads_shape, d_out, d_q, d_kv,
                                    d_latents, d_mask, 1, 0, 3, 1, 0.1f,
                                    NULL));
    gpu_download_bf16(out, d_out, 3 * heads_v);

    /* with one key, the result is its value */

    kv += heads_shape->nope;

    for (i = 0; i < heads_v; i++) {
        assert_true(out[i] == kv[i]);
        assert_true(out[heads_v + i] == 0);
        assert_true(out[2 * heads_v + i] == kv[heads_kv + i]);
    }

    free(kv - heads_shape->nope);
    free(latents);
    free(q);
    free(out);
}


/* A row whose mask is empty gets zeros, and its neighbours are correct. */

static void
test_empty(void **state)
{
    size_t  i;

    for (i = 0; heads_use(i); i++) {
        heads_empty();
    }
}


/* Without rows nothing happens; invalid arguments return an error. */

static void
test_bounds(void **state)
{
    int  rc;

    assert_true(heads_use(0));

    gpu_ok(dsa_cuda_attention_heads(&gpu_state, heads_shape, NULL, NULL, NULL,
                                    NULL, NULL, 0, 5, 0, 16, 1, NULL));

    rc = dsa_cuda_attention_heads(&gpu_state, heads_shape, NULL, NULL, NULL,
                                  NULL, NULL, 0, 5, 1, 0, 1, NULL);
    assert_int_not_equal(rc, 0);

    rc = dsa_cuda_attention_heads(&gpu_state, heads_shape, NULL, NULL, NULL,
                                  NULL, NULL, 0, 5, 1, 129, 1, NULL);
    assert_int_not_equal(rc, 0);

    rc = dsa_cuda_attention_heads(&gpu_state, heads_shape, NULL, NULL, NULL,
                                  NULL, NULL, 0, 0xffffffff, 5, 16, 1, NULL);
    assert_int_not_equal(rc, 0);
}


/* A shape is found by both of its sizes. */

static void
test_find(void **state)
{
    size_t                         i;
    const dsa_cuda_heads_shape_t  *shape;

    for (i = 0; heads_use(i); i++) {
        shape = dsa_cuda_heads_find(heads_shape->nope, heads_shape->v);
        assert_ptr_equal(shape, heads_shape);
    }

    assert_int_equal(i, 2);
    assert_null(dsa_cuda_heads_find(128, 256));
    assert_null(dsa_cuda_heads_find(192, 128));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_causal, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_chunk, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_selected, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_chunks, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_empty, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_bounds, gpu_setup, gpu_free_all),
        cmocka_unit_test(test_find)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
