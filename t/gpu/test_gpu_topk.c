
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * Top-k is exact: the picks are those of dsa_topk_*(), and those of a sort
 * written here, in every position.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/index/indexer.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


enum {
    UNIFORM = 0,
    BELL,               /* far from zero, with few exponents */
    RELU,               /* most are zeros, of both signs */
    STEPS,              /* many equals everywhere */
    ZEROS,
    RISING,
    FALLING,
    HIDDEN,             /* the greatest ones are neighbours */
    STRANGE,            /* infinities, NaNs of both signs, subnormals */
    KINDS
};


typedef struct {
    float     score;
    int32_t   position;
} test_key_t;


static void
fill(float *x, uint32_t n, uint32_t kind)
{
    uint32_t  i, j, u, first;

    first = dsa_t_random(n);

    for (i = 0; i < n; i++) {

        switch (kind) {

        case UNIFORM:
            x[i] = dsa_t_uniform();
            break;

        case BELL:
            for (j = 0, x[i] = 100; j < 6; j++) {
                x[i] += dsa_t_uniform();
            }

            break;

        case RELU:
            x[i] = dsa_t_uniform() - 0.98f;
            x[i] = x[i] > 0 ? x[i] : dsa_t_random(2) ? 0.0f : -0.0f;
            break;

        case STEPS:
            x[i] = (float) dsa_t_random(40) - 20;
            break;

        case ZEROS:
            x[i] = 0;
            break;

        case RISING:
            x[i] = (float) i * 0.25f - 100;
            break;

        case FALLING:
            x[i] = 1e-3f * (float) (n - i);
            break;

        case HIDDEN:
            x[i] = dsa_t_uniform() + (i - first < 4000 ? 3.0f : 0);
            break;

        default:
            u = dsa_t_random(1 << 16) << 16 | dsa_t_random(1 << 16);

            if (dsa_t_random(8) == 0) {
                u &= 0x807fffff;

            } else if (dsa_t_random(20) == 0) {
                u = (u & 0x80000000) | 0x7f800000
                    | (dsa_t_random(2) ? 0x400000 : 0);
            }

            memcpy(&x[i], &u, sizeof(u));

            if (isnan(x[i])) {

                /* one NaN of each sign: payloads have no order */

                u = (u & 0x80000000) | 0x7fc00000;
                memcpy(&x[i], &u, sizeof(u));
            }
        }
    }
}


/* -2 a negative NaN .. 2 a positive one. */

static int
rank(float x)
{
    return isnan(x) ? (signbit(x) ? -2 : 2) : isinf(x) ? (x < 0 ? -1 : 1) : 0;
}


static int
compare(const void *a, const void *b)
{
    int                rx, ry;
    const test_key_t  *x, *y;

    x = a;
    y = b;
    rx = rank(x->score);
    ry = rank(y->score);

    if (rx != ry) {
        return rx > ry ? -1 : 1;
    }

    if (rx == 0 && x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }

    return x->position < y->position ? -1 : 1;
}


static int
compare_position(const void *a, const void *b)
{
    int32_t  x, y;

    x = *(const int32_t *) a;
    y = *(const int32_t *) b;

    return (x > y) - (x < y);
}


static void
sorted(int32_t *pick, const float *score, uint32_t n, uint32_t k)
{
    uint32_t     i;
    test_key_t  *key;

    key = malloc((n + 1) * sizeof(test_key_t));
    assert_non_null(key);

    for (i = 0; i < n; i++) {
        key[i].score = score[i];
        key[i].position = (int32_t) i;
    }

    qsort(key, n, sizeof(test_key_t), compare);

    for (i = 0; i < k && i < n; i++) {
        pick[i] = key[i].position;
    }

    qsort(pick, i, sizeof(int32_t), compare_position);

    for ( /* void */ ; i < k; i++) {
        pick[i] = -1;
    }

    free(key);
}


static void
twin(int32_t *pick, const float *score, uint32_t n, uint32_t k)
{
    uint32_t    i;
    uint64_t   *candidate;
    dsa_topk_t  t;

    candidate = malloc(2 * k * sizeof(uint64_t));
    assert_non_null(candidate);

    dsa_topk_start(&t, candidate, k);
    dsa_topk_add(&t, score, n, 0);

    for (i = dsa_topk_end(&t, pick); i < k; i++) {
        pick[i] = -1;
    }

    free(candidate);
}


/*
 * Rows of keys[] keys; the kinds of scores alternate from first on.
 * with_slots: some rows share an owner's pages.  The twin checks every step-th
 * row, the sort every fifth of these.
 */

static void
check(const int32_t *keys, uint32_t rows, uint32_t max_keys, uint32_t k,
    uint32_t first, int with_slots, uint32_t step)
{
    float     *score, *d_score;
    size_t     ld, pages;
    int32_t   *pick, *again, *slot, *want, *page, *owner, n, p;
    int32_t   *d_pick, *d_slot, *d_n, *d_keys, *d_page, *d_owner, *n_pick;
    uint32_t   i, j, r;

    ld = (max_keys + 63) / 64 * 64 + 4;
    pages = (max_keys + 63) / 64 + 1;

    score = malloc(rows * ld * sizeof(float));
    pick = malloc((size_t) rows * k * sizeof(int32_t));
    again = malloc((size_t) rows * k * sizeof(int32_t));
    slot = malloc((size_t) rows * k * sizeof(int32_t));
    want = malloc(k * sizeof(int32_t));
    page = malloc(rows * pages * sizeof(int32_t));
    owner = malloc(rows * sizeof(int32_t));
    n_pick = malloc(rows * sizeof(int32_t));

    assert_true(score != NULL && pick != NULL && again != NULL && slot != NULL
                && want != NULL && page != NULL && owner != NULL
                && n_pick != NULL);

    /* behind a row's keys are NaNs, which would be chosen first */

    for (i = 0; i < rows; i++) {
        for (j = 0; j < ld; j++) {
            p = 0x7fffffff;
            memcpy(&score[i * ld + j], &p, sizeof(p));
        }

        if (keys[i] > 0) {
            fill(&score[i * ld], (uint32_t) keys[i], (first + i) % KINDS);
        }

        owner[i] = (int32_t) dsa_t_random(rows);
    }

    for (i = 0; i < rows * pages; i++) {
        page[i] = (int32_t) dsa_t_random(1 << 24);
    }

    d_score = gpu_upload(score, rows * ld * sizeof(float));
    d_keys = gpu_upload(keys, rows * sizeof(int32_t));
    d_page = gpu_upload(page, rows * pages * sizeof(int32_t));
    d_owner = gpu_upload(owner, rows * sizeof(int32_t));
    d_pick = gpu_alloc((size_t) rows * k * sizeof(int32_t));
    d_slot = gpu_alloc((size_t) rows * k * sizeof(int32_t));
    d_n = gpu_alloc(rows * sizeof(int32_t));

    for (i = 0; i < 2; i++) {
        gpu_poison(d_pick, (size_t) rows * k * sizeof(int32_t));
        gpu_poison(d_slot, (size_t) rows * k * sizeof(int32_t));
        gpu_poison(d_n, rows * sizeof(int32_t));

        gpu_ok(dsa_cuda_topk(d_pick, with_slots ? d_slot : NULL, d_n, d_score,
                             ld, d_keys, d_page, pages,
                             i == 0 ? d_owner : NULL, rows, k, max_keys,
                             NULL));

        gpu_download(i == 0 ? pick : again, d_pick,
                     (size_t) rows * k * sizeof(int32_t));
        gpu_download(slot, d_slot, (size_t) rows * k * sizeof(int32_t));
        gpu_download(n_pick, d_n, rows * sizeof(int32_t));

        for (r = 0; r < rows && with_slots; r++) {
            for (j = 0; j < k; j++) {
                p = pick[(size_t) r * k + j];
                n = (int32_t) (i == 0 ? (uint32_t) owner[r] : r);
                n = p < 0 ? -1 : page[n * (int32_t) pages + p / 64] * 64
                                 + p % 64;

                assert_int_equal(slot[(size_t) r * k + j], n);
            }
        }

        for (r = 0; r < rows; r++) {
            n = keys[r] < 0 ? 0 : keys[r];
            assert_int_equal(n_pick[r], n < (int32_t) k ? n : (int32_t) k);
        }
    }

    assert_memory_equal(pick, again, (size_t) rows * k * sizeof(int32_t));

    for (r = 0; r < rows; r += step) {
        n = keys[r] < 0 ? 0 : keys[r];

        twin(want, &score[r * ld], (uint32_t) n, k);
        assert_memory_equal(&pick[(size_t) r * k], want, k * sizeof(int32_t));

        if (r / step % 5 == 0) {
            sorted(want, &score[r * ld], (uint32_t) n, k);
            assert_memory_equal(&pick[(size_t) r * k], want,
                                k * sizeof(int32_t));
        }
    }

    free(score);
    free(pick);
    free(again);
    free(slot);
    free(want);
    free(page);
    free(owner);
    free(n_pick);

    (void) gpu_free_all(NULL);
}


static void
test_lengths(void **state)
{
    uint32_t       kind;
    const int32_t  keys[] = { 0, 1, 63, 64, 65, 2047, 2048, 2049, 2056, 4095,
                              6143, 6144, 6145, 6150, 8193, 10000, 16384, -1,
                              20001 };

    for (kind = 0; kind < KINDS; kind++) {
        check(keys, sizeof(keys) / sizeof(keys[0]), 20001, 2048, kind, 1, 1);
    }
}


/*
 * A single row is processed by 16 blocks, several rows by fewer blocks each.
 */

static void
test_one_row(void **state)
{
    size_t         i;
    uint32_t       kind;
    const int32_t  keys[] = { 1, 2048, 2049, 32768, 65536, 131072, 131071,
                              163840 };

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        for (kind = 0; kind < KINDS; kind++) {
            check(&keys[i], 1, 163840, 2048, kind, 1, 1);
        }
    }
}


static void
test_few_rows(void **state)
{
    int32_t   keys[64];
    uint32_t  i;

    for (i = 0; i < 64; i++) {
        keys[i] = i % 9 == 8 ? (int32_t) dsa_t_random(65537) : 65536;
    }

    check(keys, 64, 65536, 2048, 0, 1, 1);
    check(keys, 33, 65536, 2048, 3, 1, 1);
    check(keys, 17, 65536, 2048, 4, 0, 1);
    check(keys, 5, 131072, 2048, 5, 1, 1);
}


/* Causal rows of a prefill, one block for each. */

static void
test_many_rows(void **state)
{
    int32_t   keys[1000];
    uint32_t  i;

    for (i = 0; i < 1000; i++) {
        keys[i] = (int32_t) (i * 33 + 1);
    }

    check(keys, 1000, 33000, 2048, 0, 1, 17);
}


static void
test_other_k(void **state)
{
    int32_t         keys[40];
    uint32_t        i, j;
    const uint32_t  k[] = { 8, 64, 1000, 1024 };

    for (i = 0; i < 40; i++) {
        keys[i] = (int32_t) dsa_t_random(30000);
    }

    for (j = 0; j < sizeof(k) / sizeof(k[0]); j++) {
        check(keys, 40, 30000, k[j], j, 1, 1);
    }

    keys[0] = 393216;
    check(keys, 1, 393216, 2048, BELL, 1, 1);
    check(keys, 1, 393216, 2048, STEPS, 1, 1);
}


static void
test_refusals(void **state)
{
    int32_t  *p;

    p = gpu_alloc(1024);

    assert_int_equal(dsa_cuda_topk(p, NULL, p, (float *) p, 64, p, NULL, 0,
                                   NULL, 0, 8, 64, NULL), 0);
    assert_int_equal(dsa_cuda_topk(p, NULL, p, (float *) p, 64, p, NULL, 0,
                                   NULL, 1, 4, 64, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_topk(p, NULL, p, (float *) p, 64, p, NULL, 0,
                                   NULL, 1, 2056, 64, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_topk(p, NULL, p, (float *) p, 62, p, NULL, 0,
                                   NULL, 1, 8, 62, NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_topk(p, NULL, p, (float *) p, 64, p, NULL, 0,
                                   NULL, 1, 8, 65, NULL),
                     cudaErrorInvalidValue);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_lengths, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_one_row, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_few_rows, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_many_rows, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_other_k, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
