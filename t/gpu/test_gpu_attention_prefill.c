
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


#define PREFILL_COLUMNS     576
#define PREFILL_LATENT      512

/*
 * Bounds of roundings to bf16, each by 2^-9 of a value at most: that of the
 * output, and that of the probabilities, which the GPU rounds before and the
 * twin after they are divided by their sum, so that against the twin it counts
 * twice.  Where few keys have all the weight the two add up, and half as much
 * is left for values that cancel; elsewhere the error is half of that or less.
 */
#define PREFILL_TWIN        (3.5 * 0x1p-9)
#define PREFILL_FLOAT64     (2.5 * 0x1p-9)


typedef struct {
    uint32_t            rows;
    uint32_t            heads;
    uint32_t            keys;
    uint32_t            picks;          /* a row's, at most */
    uint32_t            ld_pick;
    int                 ragged;         /* n_pick of 0 .. picks */
    int                 holes;          /* some of them are no position */
    float               sharp;          /* of the queries */
} prefill_case_t;


static void
prefill_round(float *x, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = dsa_bf16_decode(dsa_bf16_encode(x[i]));
    }
}


/*
 * Rising positions, chosen at random if there are more keys than picks.  Holes
 * become -1, or numbers that are not below keys.
 */

static void
prefill_pick(int32_t *pick, int32_t *n_pick, const prefill_case_t *t,
    uint32_t row)
{
    uint32_t  i, n, want, left;

    want = t->picks;

    if (t->ragged) {
        want = row % 5 == 0 ? 0 : row % 5 == 1 ? 1 : dsa_t_random(t->picks)
                                                     + 1;
    }

    left = want < t->keys ? want : t->keys;
    n = 0;

    for (i = 0; i < t->keys && left > 0; i++) {
        if (dsa_t_random(t->keys - i) < left) {
            pick[n++] = (int32_t) i;
            left--;
        }
    }

    if (t->holes) {
        while (n < want) {
            pick[n++] = -1;
        }

        for (i = 0; i < n; i++) {
            switch (dsa_t_random(7)) {

            case 0:
                pick[i] = -1;
                break;

            case 1:
                pick[i] = (int32_t) (t->keys + dsa_t_random(3));
                break;

            case 2:
                pick[i] = row % 2 == 0 ? INT32_MIN : INT32_MAX;
                break;
            }
        }
    }

    *n_pick = (int32_t) n;

    /* picks behind the last one must not be read as positions */

    while (n < t->ld_pick) {
        pick[n++] = 0;
    }
}


static void
prefill_float64(double *out, const float *q, const float *kv, uint32_t n,
    float scale)
{
    int        c;
    double     max, sum, *s;
    uint32_t   i;

    s = malloc(n * sizeof(double));
    assert_non_null(s);

    max = -INFINITY;

    for (i = 0; i < n; i++) {
        s[i] = 0;

        for (c = 0; c < PREFILL_COLUMNS; c++) {
            s[i] += (double) q[c] * kv[(size_t) i * PREFILL_COLUMNS + c];
        }

        s[i] *= scale;
        max = s[i] > max ? s[i] : max;
    }

    sum = 0;
    memset(out, 0, PREFILL_LATENT * sizeof(double));

    for (i = 0; i < n; i++) {
        s[i] = exp(s[i] - max);
        sum += s[i];

        for (c = 0; c < PREFILL_LATENT; c++) {
            out[c] += s[i] * kv[(size_t) i * PREFILL_COLUMNS + c];
        }
    }

    for (c = 0; c < PREFILL_LATENT; c++) {
        out[c] /= sum;
    }

    free(s);
}


static void
prefill_check(const prefill_case_t *t)
{
    float            *q, *kv, *out, *again, *got, *row_kv, *c, *rope, *twin,
                     *scratch, *q_row, scale;
    size_t            i, j, k, n, n_q, n_kv, n_out, row, head, rows, heads;
    void             *d_q, *d_kv, *d_pick, *d_n_pick, *d_out;
    double           *exact, error[2], worst[2];
    int32_t          *pick, *n_pick;
    dsa_attention_t   a;

    scale = 1 / sqrtf(192);

    n_q = (size_t) t->rows * t->heads * PREFILL_COLUMNS;
    n_kv = (size_t) t->keys * PREFILL_COLUMNS;
    n_out = (size_t) t->rows * t->heads * PREFILL_LATENT;

    q = malloc(n_q * sizeof(float));
    kv = malloc(n_kv * sizeof(float));
    out = malloc(n_out * sizeof(float));
    again = malloc(n_out * sizeof(float));
    pick = malloc((size_t) t->rows * t->ld_pick * sizeof(int32_t));
    n_pick = malloc(t->rows * sizeof(int32_t));
    row_kv = malloc((size_t) t->picks * PREFILL_COLUMNS * sizeof(float));
    c = malloc((size_t) t->picks * PREFILL_LATENT * sizeof(float));
    rope = malloc((size_t) t->picks * 64 * sizeof(float));
    twin = malloc(PREFILL_LATENT * sizeof(float));
    scratch = malloc(t->picks * sizeof(float));
    exact = malloc(PREFILL_LATENT * sizeof(double));

    assert_true(q && kv && out && again && pick && n_pick && row_kv && c
                && rope && twin && scratch && exact);

    dsa_t_fill(q, n_q, t->sharp);
    dsa_t_fill(kv, n_kv, 1.7f);
    prefill_round(q, n_q);
    prefill_round(kv, n_kv);

    for (i = 0; i < t->rows; i++) {
        prefill_pick(pick + i * t->ld_pick, n_pick + i, t, (uint32_t) i);
    }

    d_q = gpu_upload_bf16(q, n_q);
    d_kv = gpu_upload_bf16(kv, n_kv);
    d_pick = gpu_upload(pick, (size_t) t->rows * t->ld_pick * 4);
    d_n_pick = gpu_upload(n_pick, t->rows * sizeof(int32_t));
    d_out = gpu_alloc(n_out * sizeof(uint16_t));

    for (i = 0; i < 2; i++) {
        gpu_poison(d_out, n_out * sizeof(uint16_t));
        gpu_ok(dsa_cuda_attention_prefill(&gpu_state, d_out, d_q, d_kv,
                                          t->keys, d_pick, t->ld_pick,
                                          d_n_pick, t->rows, t->heads, scale,
                                          NULL));
        gpu_download_bf16(i == 0 ? out : again, d_out, n_out);
    }

    assert_memory_equal(out, again, n_out * sizeof(float));

    for (i = 0; i < n_out; i++) {
        assert_true(isfinite(out[i]));
    }

    a.heads = 1;
    a.nope = 128;
    a.rope = 64;
    a.v = 128;
    a.latent = PREFILL_LATENT;
    a.scale = scale;

    worst[0] = 0;
    worst[1] = 0;
    rows = t->rows < 12 ? t->rows : 12;

    for (i = 0; i < rows; i++) {
        row = i + 1 == rows ? t->rows - 1 : rows == t->rows ? i
                                          : dsa_t_random(t->rows);
        n = 0;

        for (j = 0; j < (size_t) n_pick[row]; j++) {
            if ((uint32_t) pick[row * t->ld_pick + j] < t->keys) {
                memcpy(row_kv + n * PREFILL_COLUMNS,
                       kv + (size_t) pick[row * t->ld_pick + j]
                            * PREFILL_COLUMNS,
                       PREFILL_COLUMNS * sizeof(float));
                memcpy(c + n * PREFILL_LATENT, row_kv + n * PREFILL_COLUMNS,
                       PREFILL_LATENT * sizeof(float));
                memcpy(rope + n * 64, row_kv + n * PREFILL_COLUMNS
                                      + PREFILL_LATENT, 64 * sizeof(float));
                n++;
            }
        }

        got = out + row * t->heads * PREFILL_LATENT;

        if (n == 0) {
            for (j = 0; j < t->heads * PREFILL_LATENT; j++) {
                assert_true(got[j] == 0);
            }

            continue;
        }

        heads = t->heads < 4 ? t->heads : 4;

        for (j = 0; j < heads; j++) {
            head = j + 1 == heads ? t->heads - 1 : heads == t->heads ? j
                                                 : dsa_t_random(t->heads);

            got = out + (row * t->heads + head) * PREFILL_LATENT;
            q_row = q + (row * t->heads + head) * PREFILL_COLUMNS;

            dsa_attention_mqa(twin, q_row, q_row + PREFILL_LATENT, 64, c,
                              rope, n, &a, 1, scratch);

            for (k = 0; k < PREFILL_LATENT; k++) {
                exact[k] = twin[k];
            }

            error[0] = dsa_t_error(got, exact, PREFILL_LATENT);

            prefill_float64(exact, q_row, row_kv, (uint32_t) n, scale);
            error[1] = dsa_t_error(got, exact, PREFILL_LATENT);

            worst[0] = error[0] > worst[0] ? error[0] : worst[0];
            worst[1] = error[1] > worst[1] ? error[1] : worst[1];

            if (!(error[0] < PREFILL_TWIN && error[1] < PREFILL_FLOAT64)) {
                fail_msg("row %zu of %u, head %zu of %u, %zu of %d picks: "
                         "%.2e from the twin, %.2e from float64", row,
                         t->rows, head, t->heads, n, n_pick[row], error[0],
                         error[1]);
            }
        }
    }

    print_message("%u rows, %u heads, %u keys, %u picks%s%s: worst %.2e from "
                  "the twin, %.2e from float64\n", t->rows, t->heads, t->keys,
                  t->picks, t->ragged ? ", ragged" : "",
                  t->holes ? ", holes" : "", worst[0], worst[1]);

    free(q);
    free(kv);
    free(out);
    free(again);
    free(pick);
    free(n_pick);
    free(row_kv);
    free(c);
    free(rope);
    free(twin);
    free(scratch);
    free(exact);
}


static void
prefill_run(const prefill_case_t *t, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        prefill_check(&t[i]);
        gpu_ok(gpu_free_all(NULL));
    }
}


/* The numbers of heads that ranks of tensor parallelism have, and others. */

static void
test_heads(void **state)
{
    static const prefill_case_t  t[] = {
        { 9, 128, 5000, 2048, 2048, 0, 0, 1 },
        { 9, 64, 5000, 2048, 2048, 0, 0, 4 },
        { 9, 32, 5000, 2048, 2048, 0, 0, 1 },
        { 9, 16, 5000, 2048, 2048, 0, 0, 4 },
        { 9, 8, 5000, 2048, 2048, 0, 0, 1 },
        { 9, 1, 5000, 2048, 2048, 0, 0, 4 },
        { 9, 3, 5000, 700, 2048, 0, 0, 1 },
        { 9, 17, 5000, 700, 2048, 0, 0, 4 },
        { 9, 33, 5000, 700, 2048, 0, 0, 1 },
        { 9, 65, 5000, 700, 2048, 0, 0, 4 },
        { 9, 127, 5000, 700, 2048, 0, 0, 1 }
    };

    prefill_run(t, sizeof(t) / sizeof(t[0]));
}


static void
test_keys(void **state)
{
    static const prefill_case_t  t[] = {
        { 3, 16, 1, 1, 1, 0, 0, 1 }, { 3, 128, 1, 1, 1, 0, 0, 1 },
        { 3, 16, 63, 63, 63, 0, 0, 1 }, { 3, 128, 63, 63, 65, 0, 0, 1 },
        { 3, 16, 64, 64, 64, 0, 0, 1 }, { 3, 128, 64, 64, 64, 0, 0, 4 },
        { 3, 16, 65, 65, 65, 0, 0, 4 }, { 3, 128, 65, 65, 65, 0, 0, 1 },
        { 3, 16, 129, 129, 131, 0, 0, 1 }, { 3, 128, 129, 129, 129, 0, 0, 4 },
        { 3, 32, 2047, 2047, 2048, 0, 0, 1 },
        { 3, 128, 2047, 2047, 2048, 0, 0, 4 },
        { 3, 8, 2048, 2048, 2048, 0, 0, 4 },
        { 3, 128, 2048, 2048, 2048, 0, 0, 1 },
        { 3, 64, 2049, 2049, 2049, 0, 0, 1 },
        { 3, 128, 2049, 2049, 2051, 0, 0, 4 },
        { 3, 16, 131072, 2048, 2048, 0, 0, 1 },
        { 3, 128, 131072, 2048, 2048, 0, 0, 4 }
    };

    prefill_run(t, sizeof(t) / sizeof(t[0]));
}


/* Each block computes many rows; some rows have no picks, some only holes. */

static void
test_ragged(void **state)
{
    static const prefill_case_t  t[] = {
        { 700, 128, 3000, 500, 512, 1, 1, 4 },
        { 1000, 16, 3000, 500, 512, 1, 1, 1 },
        { 1000, 8, 300, 130, 133, 1, 0, 4 },
        { 600, 64, 3000, 300, 512, 1, 1, 1 },
        { 600, 32, 2, 100, 133, 1, 1, 1 },
        { 301, 65, 2000, 700, 701, 1, 1, 1 }
    };

    prefill_run(t, sizeof(t) / sizeof(t[0]));
}


/* Without rows nothing happens; invalid arguments return an error. */

static void
test_bounds(void **state)
{
    gpu_ok(dsa_cuda_attention_prefill(&gpu_state, NULL, NULL, NULL, 5, NULL, 0,
                                      NULL, 0, 16, 1, NULL));
    assert_int_not_equal(dsa_cuda_attention_prefill(&gpu_state, NULL, NULL,
                                                    NULL, 5, NULL, 0, NULL, 1,
                                                    0, 1, NULL), 0);
    assert_int_not_equal(dsa_cuda_attention_prefill(&gpu_state, NULL, NULL,
                                                    NULL, 5, NULL, 0, NULL, 1,
                                                    129, 1, NULL), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_heads, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_keys, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_ragged, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_bounds, gpu_setup, gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
