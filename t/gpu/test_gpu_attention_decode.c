
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
#include "kernels/attention/cache.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


/*
 * Bounds of the relative error of a head's 512 values.  bf16 rounds each value
 * of the output by up to 2^-9 = 0.002; the rest is for the probabilities,
 * which are f16.  The twin rounds them to bf16, by 2^-9 again, and the values
 * that they weigh may cancel.
 */

#define GPU_MAX_ERROR   3e-3
#define GPU_MAX_TWIN    6e-3

#define GPU_TOKENS      131072
#define GPU_PAGES       (GPU_TOKENS / 64)
#define GPU_GAP         384             /* between pages: other layers */
#define GPU_PICKS       2048
#define GPU_SAMPLE      5               /* heads of a row that are checked */


typedef struct {
    dsa_cuda_cache_t    cache;
    dsa_cache_t         layout;
    uint8_t            *image;
    double              error;          /* the largest */
    double              twin;
} gpu_decode_t;


static uint64_t
gpu_random64(void)
{
    return (uint64_t) dsa_t_random(1u << 31) << 33
           ^ (uint64_t) dsa_t_random(1u << 31) << 11 ^ dsa_t_random(1u << 31);
}


/* Every e4m3 code, in groups of different scales. */

static void
gpu_decode_record(uint8_t *p)
{
    float     scale;
    size_t    i;
    uint16_t  v;
    uint64_t  u;

    for (i = 0; i < DSA_CUDA_LATENT; i += 8) {
        u = gpu_random64();
        memcpy(p + i, &u, 8);
    }

    for (i = 0; i < DSA_CUDA_LATENT; i++) {
        p[i] ^= (p[i] & 0x7f) == 0x7f;
    }

    for (i = 0; i < 4; i++) {
        scale = ldexpf(1, -6 - (int) dsa_t_random(5));
        memcpy(p + DSA_CUDA_LATENT + i * 4, &scale, 4);
    }

    for (i = 0; i < DSA_CUDA_ROPE; i++) {
        v = dsa_bf16_encode(dsa_t_uniform() * 2);
        memcpy(p + DSA_CUDA_LATENT + 16 + i * 2, &v, 2);
    }
}


static int
gpu_decode_setup(void **state)
{
    size_t         i;
    uint8_t       *page;
    gpu_decode_t  *t;

    t = calloc(1, sizeof(gpu_decode_t));
    assert_non_null(t);

    dsa_cache_layout(&t->layout, DSA_CACHE_FP8, 1, NULL, DSA_CUDA_LATENT,
                     DSA_CUDA_ROPE, DSA_CUDA_INDEX);
    t->layout.page += GPU_GAP;

    t->image = malloc(GPU_PAGES * t->layout.page);
    assert_non_null(t->image);
    memset(t->image, 0xff, GPU_PAGES * t->layout.page);

    for (i = 0; i < GPU_TOKENS; i++) {
        page = t->image + i / 64 * t->layout.page;
        gpu_decode_record(page + i % 64 * DSA_CUDA_RECORD);
    }

    *state = t;

    return 0;
}


static int
gpu_decode_teardown(void **state)
{
    gpu_decode_t  *t = *state;

    print_message("largest error: %.2e of float64, %.2e of the twin\n",
                  t->error, t->twin);

    free(t->image);
    free(t);

    return 0;
}


static int
gpu_decode_upload(void **state)
{
    gpu_decode_t  *t = *state;

    gpu_setup(NULL);

    t->cache.base = gpu_upload(t->image, GPU_PAGES * t->layout.page);
    t->cache.page = t->layout.page;
    t->cache.keys = 64 * DSA_CUDA_RECORD;
    t->cache.pages = GPU_PAGES;
    t->cache.bf16 = 0;

    return 0;
}


/* u = sum of softmax(scale * q . k) c in float64. */

static void
gpu_decode_exact(double *u, const float *q, const float *c,
    const float *k_rope, size_t n, float scale)
{
    double   *p, sum, max;
    size_t    i, j;

    p = malloc(n * sizeof(double));
    assert_non_null(p);

    max = -INFINITY;

    for (i = 0; i < n; i++) {
        sum = 0;

        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            sum += (double) q[j] * c[i * DSA_CUDA_LATENT + j];
        }

        for (j = 0; j < DSA_CUDA_ROPE; j++) {
            sum += (double) q[DSA_CUDA_LATENT + j]
                   * k_rope[i * DSA_CUDA_ROPE + j];
        }

        p[i] = sum * scale;
        max = p[i] > max ? p[i] : max;
    }

    for (i = 0, sum = 0; i < n; i++) {
        p[i] = exp(p[i] - max);
        sum += p[i];
    }

    memset(u, 0, DSA_CUDA_LATENT * sizeof(double));

    for (i = 0; i < n; i++) {
        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            u[j] += p[i] / sum * c[i * DSA_CUDA_LATENT + j];
        }
    }

    free(p);
}


/* Checks some heads of a row against float64 and the twin. */

static void
gpu_decode_check(gpu_decode_t *t, const float *out, const float *q,
    const int32_t *slot, int32_t n_slot, uint32_t heads, float scale)
{
    float             *c, *k_rope, *twin, *scratch;
    double             u[DSA_CUDA_LATENT], v[DSA_CUDA_LATENT], error;
    size_t             i, j, n, h;
    int32_t           *position;
    uint32_t          *pages;
    dsa_attention_t    a;

    position = malloc((n_slot + 1) * sizeof(int32_t));
    pages = malloc(GPU_PAGES * sizeof(uint32_t));
    c = malloc((n_slot + 1) * DSA_CUDA_LATENT * sizeof(float));
    k_rope = malloc((n_slot + 1) * DSA_CUDA_ROPE * sizeof(float));
    scratch = malloc((n_slot + 1) * sizeof(float));
    twin = malloc(DSA_CUDA_LATENT * sizeof(float));

    for (i = 0, n = 0; i < (size_t) n_slot; i++) {
        if (slot[i] >= 0) {
            position[n++] = slot[i];
        }
    }

    for (i = 0; i < GPU_PAGES; i++) {
        pages[i] = (uint32_t) i;
    }

    dsa_cache_latents(c, k_rope, &t->layout, t->image, 0, pages, position, 0,
                      n);

    a = (dsa_attention_t) { 1, 128, DSA_CUDA_ROPE, 128, DSA_CUDA_LATENT,
                            scale };

    for (i = 0; i < GPU_SAMPLE; i++) {
        h = i == 0 ? 0 : i == 1 ? heads - 1 : dsa_t_random(heads);

        if (n == 0) {
            for (j = 0; j < DSA_CUDA_LATENT; j++) {
                assert_true(out[h * DSA_CUDA_LATENT + j] == 0);
            }

            continue;
        }

        gpu_decode_exact(u, q + h * 576, c, k_rope, n, scale);
        error = dsa_t_error(out + h * DSA_CUDA_LATENT, u, DSA_CUDA_LATENT);
        t->error = error > t->error ? error : t->error;

        if (!(error <= (n == 1 ? 0 : GPU_MAX_ERROR))) {
            fail_msg("%u heads, %zu keys, head %zu: error %g", heads, n, h,
                     error);
        }

        dsa_attention_mqa(twin, q + h * 576, q + h * 576 + DSA_CUDA_LATENT,
                          576, c, k_rope, n, &a, 1, scratch);

        for (j = 0; j < DSA_CUDA_LATENT; j++) {
            v[j] = twin[j];
        }

        error = dsa_t_error(out + h * DSA_CUDA_LATENT, v, DSA_CUDA_LATENT);
        t->twin = error > t->twin ? error : t->twin;

        if (!(error <= (n == 1 ? 0 : GPU_MAX_TWIN))) {
            fail_msg("%u heads, %zu keys, head %zu: %g from the twin", heads,
                     n, h, error);
        }
    }

    free(twin);
    free(scratch);
    free(k_rope);
    free(c);
    free(pages);
    free(position);
}


/*
 * rows with n_slot[row % n] slots each, of which share sixteenths are -1;
 * every step-th row is checked.  sharp: the factor of the queries; 1 spreads
 * the scores by about 2.
 */

static void
gpu_decode_case(gpu_decode_t *t, uint32_t rows, uint32_t heads,
    uint32_t max_slots, const int32_t *n_slot, uint32_t n, uint32_t holes,
    float sharp, uint32_t step)
{
    void      *q_dev, *slot_dev, *n_dev, *out_dev, *work;
    float     *q, *out, scale;
    size_t     i, ld, size;
    int32_t   *slot, *count;
    uint16_t  *first, *second;
    uint32_t   row;

    scale = 0.1352337788f;
    ld = max_slots + 3;
    size = (size_t) rows * heads * DSA_CUDA_LATENT;

    q = malloc((size_t) rows * heads * 576 * sizeof(float));
    out = malloc(size * sizeof(float));
    first = malloc(size * sizeof(uint16_t));
    second = malloc(size * sizeof(uint16_t));
    slot = malloc(rows * ld * sizeof(int32_t));
    count = malloc(rows * sizeof(int32_t));

    dsa_t_fill(q, (size_t) rows * heads * 576, sharp * 2);
    dsa_bf16_round_rows(q, (size_t) rows * heads * 576);

    for (row = 0; row < rows; row++) {
        count[row] = n_slot[row % n];

        for (i = 0; i < ld; i++) {
            slot[row * ld + i] = dsa_t_random(16) < holes
                                 ? -1 : (int32_t) dsa_t_random(GPU_TOKENS);
        }
    }

    q_dev = gpu_upload_bf16(q, (size_t) rows * heads * 576);
    slot_dev = gpu_upload(slot, rows * ld * sizeof(int32_t));
    n_dev = gpu_upload(count, rows * sizeof(int32_t));
    out_dev = gpu_alloc(size * sizeof(uint16_t));
    work = gpu_alloc(dsa_cuda_attention_work(&gpu_state, rows, heads,
                                             max_slots));

    gpu_ok(dsa_cuda_attention_decode(&gpu_state, out_dev, q_dev, &t->cache,
                                     slot_dev, ld, n_dev, rows, heads,
                                     max_slots, scale, work, NULL));
    gpu_download(first, out_dev, size * sizeof(uint16_t));
    gpu_download_bf16(out, out_dev, size);

    gpu_poison(out_dev, size * sizeof(uint16_t));
    gpu_poison(work, dsa_cuda_attention_work(&gpu_state, rows, heads,
                                             max_slots));

    gpu_ok(dsa_cuda_attention_decode(&gpu_state, out_dev, q_dev, &t->cache,
                                     slot_dev, ld, n_dev, rows, heads,
                                     max_slots, scale, work, NULL));
    gpu_download(second, out_dev, size * sizeof(uint16_t));

    assert_memory_equal(first, second, size * sizeof(uint16_t));

    for (i = 0; i < size; i++) {
        assert_true(isfinite(out[i]));
    }

    for (row = 0; row < rows; row += step) {
        gpu_decode_check(t, out + (size_t) row * heads * DSA_CUDA_LATENT,
                         q + (size_t) row * heads * 576, slot + row * ld,
                         count[row], heads, scale);
    }

    free(count);
    free(slot);
    free(second);
    free(first);
    free(out);
    free(q);
}


static const int32_t   gpu_contexts[] = {
    1, 63, 64, 65, 2047, 2048, 0, 2, 129, 640
};

static const int32_t   gpu_full[] = { GPU_PICKS };
static const uint32_t  gpu_heads[] = { 128, 64, 32, 16, 8 };
static const uint32_t  gpu_odd_heads[] = { 1, 4, 7, 12, 20, 33, 65, 100 };


/* Every number of heads that a model has, with every length. */

static void
test_contexts(void **state)
{
    size_t  i;

    for (i = 0; i < 5; i++) {
        gpu_decode_case(*state, 10, gpu_heads[i], GPU_PICKS, gpu_contexts, 10,
                        0, 1, 1);
    }
}


static void
test_one_row(void **state)
{
    size_t  i, j;

    for (i = 0; i < 5; i++) {
        for (j = 3; j < 7; j++) {
            gpu_decode_case(*state, 1, gpu_heads[i], GPU_PICKS,
                            gpu_contexts + j, 1, 1, 1, 1);
        }
    }
}


static void
test_odd_heads(void **state)
{
    size_t  i;

    for (i = 0; i < 8; i++) {
        gpu_decode_case(*state, 3, gpu_odd_heads[i], GPU_PICKS,
                        gpu_contexts + 3, 3, 2, 1, 1);
    }
}


/* No splits: there are enough rows for the GPU. */

static void
test_many_rows(void **state)
{
    gpu_decode_case(*state, 128, 128, GPU_PICKS, gpu_full, 1, 1, 1, 41);
    gpu_decode_case(*state, 128, 64, GPU_PICKS, gpu_full, 1, 1, 1, 43);
    gpu_decode_case(*state, 140, 16, GPU_PICKS, gpu_contexts, 10, 1, 1, 13);
    gpu_decode_case(*state, 135, 32, GPU_PICKS, gpu_contexts, 10, 0, 1, 17);
    gpu_decode_case(*state, 300, 8, 640, gpu_contexts + 6, 4, 8, 1, 23);
    gpu_decode_case(*state, 133, 64, 129, gpu_contexts + 6, 3, 0, 1, 19);
}


/* Few rows, which are split, and two waves that are split. */

static void
test_some_rows(void **state)
{
    gpu_decode_case(*state, 8, 128, GPU_PICKS, gpu_full, 1, 0, 1, 3);
    gpu_decode_case(*state, 32, 64, GPU_PICKS, gpu_contexts, 10, 0, 1, 9);
    gpu_decode_case(*state, 80, 128, GPU_PICKS, gpu_contexts + 4, 2, 0, 1, 39);
    gpu_decode_case(*state, 64, 16, GPU_PICKS, gpu_contexts + 4, 6, 0, 1, 21);
}


/* -1 at some places, and at all places. */

static void
test_holes(void **state)
{
    size_t  i;

    for (i = 0; i < 5; i++) {
        gpu_decode_case(*state, 4, gpu_heads[i], GPU_PICKS, gpu_contexts + 3,
                        4, 15, 1, 1);
        gpu_decode_case(*state, 2, gpu_heads[i], GPU_PICKS, gpu_contexts + 3,
                        2, 16, 1, 1);
    }
}


/* More slots than the model selects, and scores that depend on a few keys. */

static void
test_sharp(void **state)
{
    size_t   i;
    int32_t  n[] = { 2049, 4100, 131 };

    for (i = 0; i < 5; i++) {
        gpu_decode_case(*state, 3, gpu_heads[i], 4160, n, 3, 1, 1, 1);
        gpu_decode_case(*state, 3, gpu_heads[i], 4160, n, 3, 1, 16, 1);
        gpu_decode_case(*state, 134, gpu_heads[i], 4160, n, 3, 1, 64, 60);
    }
}


static void
test_arguments(void **state)
{
    void          *p;
    gpu_decode_t  *t = *state;

    p = gpu_alloc(16);

    gpu_ok(dsa_cuda_attention_decode(&gpu_state, p, p, &t->cache, p, 1, p, 0,
                                     16, 1, 1, p, NULL));
    assert_true(dsa_cuda_attention_decode(&gpu_state, p, p, &t->cache, p, 1, p,
                                          1, 0, 1, 1, p, NULL) != 0);
    assert_true(dsa_cuda_attention_decode(&gpu_state, p, p, &t->cache, p, 1, p,
                                          1, 129, 1, 1, p, NULL) != 0);
    assert_true(dsa_cuda_attention_decode(&gpu_state, p, p, &t->cache, p, 1, p,
                                          1, 16, 1, 0, p, NULL) != 0);
}


#define GPU_TEST(f)                                                           \
    cmocka_unit_test_setup_teardown(f, gpu_decode_upload, gpu_free_all)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        GPU_TEST(test_contexts),
        GPU_TEST(test_one_row),
        GPU_TEST(test_odd_heads),
        GPU_TEST(test_many_rows),
        GPU_TEST(test_some_rows),
        GPU_TEST(test_holes),
        GPU_TEST(test_sharp),
        GPU_TEST(test_arguments)
    };

    return cmocka_run_group_tests(tests, gpu_decode_setup,
                                  gpu_decode_teardown);
}
