
/*
 * Copyright (C) The nginx-dsa authors
 */


/*
 * Sampling against dsa_sample(), and against a sort and Gumbel noise in float64
 * written here.  Weights and noise have the same bits on both sides; sums have
 * another order.  So a token may differ only if top_p is within 1e-9 of a sum
 * of weights, where one of both keeps an id more.  That is a thousand times the
 * rounding of a sum of 129,280 terms, and a thousandth of the change by one
 * wrong weight.  A token is the argmax of logit / temperature + noise up to
 * 1e-5, the rounding of the float32 quotients that are compared.
 * Log-probabilities are rounded to float32: 1e-5, and the same share of what
 * exceeds 1.
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "kernels/sample/noise.h"
#include "kernels/sample/sample.h"
#include "t/gpu/gpu.h"
#include "t/unit/numbers.h"


#define VOCAB   129280
#define BORDER  1e-9
#define NEAR    1e-5


typedef struct {
    double          weight;
    uint32_t        id;
} test_weight_t;


/* What a draw chooses from: kept ids, rising. */

typedef struct {
    test_weight_t  *weight;
    uint32_t        n;
} test_kept_t;


/* The biases of each row with biases, which has some of them. */

static dsa_bias_t  biases[64];


static float
bell(void)
{
    int    i;
    float  x;

    for (x = 0, i = 0; i < 12; i++) {
        x += dsa_t_uniform() / 2;
    }

    return x;                       /* deviation 1 */
}


static int
compare_weight(const void *a, const void *b)
{
    const test_weight_t  *x, *y;

    x = a;
    y = b;

    if (x->weight != y->weight) {
        return x->weight > y->weight ? -1 : 1;
    }

    return x->id < y->id ? -1 : 1;
}


static int
compare_id(const void *a, const void *b)
{
    const test_weight_t  *x, *y;

    x = a;
    y = b;

    return x->id < y->id ? -1 : 1;
}


/* The nucleus of x [n], finite or minus infinity; top_p is off by shift. */

static void
keep(test_kept_t *k, const float *x, uint32_t n, const dsa_sampling_t *p,
    double shift)
{
    float           max;
    double          total, sum;
    uint32_t        i;
    test_weight_t  *w;

    w = malloc(n * sizeof(test_weight_t));
    assert_non_null(w);

    for (max = x[0], i = 1; i < n; i++) {
        max = x[i] > max ? x[i] : max;
    }

    for (total = 0, i = 0; i < n; i++) {
        w[i].weight = (double) (float) exp(((double) x[i] - (double) max)
                                           / (double) p->temperature);
        w[i].id = i;
        total += w[i].weight;
    }

    k->weight = w;
    k->n = n;

    if (p->top_p < 1) {
        qsort(w, n, sizeof(test_weight_t), compare_weight);

        for (sum = 0, i = 0; i < n && w[i].weight > 0; i++) {
            if (sum >= ((double) p->top_p + shift) * total) {
                break;
            }

            sum += w[i].weight;
        }

        k->n = i;
        qsort(w, k->n, sizeof(test_weight_t), compare_id);
    }
}


/* -log(-log(u)) for an id, as noise.h documents u. */

static double
gumbel(const dsa_cuda_sample_row_t *p, uint32_t id)
{
    double    v;
    uint32_t  x[4], more[4];

    dsa_noise_words(x, p->sampling.seed, p->position, id / 4, 0);
    v = ((double) x[id % 4] + 0.5) / 4294967296.0;

    if (x[id % 4] < 256) {
        dsa_noise_words(more, p->sampling.seed, p->position, id / 4, 1);
        v = ((double) x[id % 4] + ((double) more[id % 4] + 0.5) / 4294967296.0)
            / 4294967296.0;
    }

    return -log(-log1p(-v));
}


/* Is id one that is kept, and has none of these more weight with its noise? */

static int
won(const test_kept_t *k, uint32_t id, const dsa_cuda_sample_row_t *p)
{
    double    x, own, most;
    uint32_t  i;

    own = -INFINITY;
    most = -INFINITY;

    for (i = 0; i < k->n; i++) {
        if (k->weight[i].weight == 0) {
            continue;
        }

        x = log(k->weight[i].weight) + gumbel(p, k->weight[i].id);
        most = x > most ? x : most;
        own = k->weight[i].id == id ? x : own;
    }

    return own > -INFINITY && own >= most - NEAR;
}


static int
near(float a, float b)
{
    return isnan(a) ? isnan(b)
                    : a == b || fabsf(a - b) <= 1e-5f * fmaxf(1, fabsf(b));
}


/*
 * Compares one row's result with dsa_sample()'s; returns whether the tokens
 * agree.
 */

static int
same(const dsa_cuda_sample_t *out, const dsa_cuda_sample_row_t *p,
    const float *logits, uint32_t vocab, uint32_t allowed,
    const uint32_t *history, const uint32_t *masks, float *scratch)
{
    uint32_t      i;
    dsa_sample_t  want;
    dsa_biases_t  b = { &biases[p->bias], p->n_bias };

    dsa_sample(&want, &p->sampling, &b, logits, vocab, allowed,
               p->mask != 0 ? masks + (p->mask - 1) * ((vocab + 31) / 32)
                            : NULL,
               history != NULL ? history + p->history : NULL,
               history != NULL ? p->n_history : 0, p->position, scratch);

    assert_int_equal(out->n_top, want.n_top);

    for (i = 0; i < want.n_top; i++) {
        assert_int_equal(out->top[i], want.top[i]);
        assert_true(near(out->top_logprob[i], want.top_logprob[i]));
    }

    if (out->token != want.token) {
        return 0;
    }

    assert_true(near(out->logprob, want.logprob));

    return 1;
}


static void
sample(dsa_cuda_sample_t *out, const dsa_cuda_sample_row_t *p,
    const float *d_logits, size_t ld, uint32_t rows, uint32_t vocab,
    uint32_t allowed, const uint32_t *history, size_t n_history,
    const uint32_t *masks, size_t n_masks)
{
    int                     i;
    void                   *work;
    uint32_t               *d_history, *d_masks;
    dsa_bias_t             *d_biases;
    dsa_cuda_sample_t      *d_out, *again;
    dsa_cuda_sample_row_t  *d_p;

    again = malloc(rows * sizeof(dsa_cuda_sample_t));
    assert_non_null(again);

    d_out = gpu_alloc(rows * sizeof(dsa_cuda_sample_t));
    d_p = gpu_upload(p, rows * sizeof(dsa_cuda_sample_row_t));
    d_history = history != NULL ? gpu_upload(history,
                                             n_history * sizeof(uint32_t))
                                : NULL;
    d_masks = masks != NULL ? gpu_upload(masks, n_masks * sizeof(uint32_t))
                            : NULL;
    d_biases = gpu_upload(biases, sizeof(biases));
    work = gpu_alloc(dsa_cuda_sample_work(rows, vocab));

    for (i = 0; i < 2; i++) {
        gpu_poison(d_out, rows * sizeof(dsa_cuda_sample_t));

        gpu_ok(dsa_cuda_sample(d_out, d_p, d_logits, ld, rows, vocab, allowed,
                               d_history, d_masks, d_biases, work, NULL));

        gpu_download(i == 0 ? out : again, d_out,
                     rows * sizeof(dsa_cuda_sample_t));
    }

    assert_memory_equal(out, again, rows * sizeof(dsa_cuda_sample_t));

    free(again);
}


static void
defaults(dsa_cuda_sample_row_t *p, uint32_t rows)
{
    uint32_t  i;

    memset(p, 0, rows * sizeof(dsa_cuda_sample_row_t));

    for (i = 0; i < rows; i++) {
        p[i].sampling.temperature = 1;
        p[i].sampling.top_p = 1;
        p[i].sampling.seed = (uint64_t) dsa_t_random(1 << 30) << 34
                             | dsa_t_random(1 << 30);
        p[i].position = dsa_t_random(1 << 20);
    }
}


/* Thousands of draws from a few rows of the published vocabulary. */

static void
draws(uint32_t kind, float temperature, float top_p)
{
    float                  *x, *d_x, *scratch;
    uint32_t                i, r, differ;
    test_kept_t             kept;
    dsa_cuda_sample_t      *out;
    dsa_cuda_sample_row_t  *p;

    enum { ROWS = 128, ROUNDS = 8 };

    x = malloc((size_t) ROWS * VOCAB * sizeof(float));
    scratch = malloc(VOCAB * sizeof(float));
    out = malloc(ROWS * sizeof(dsa_cuda_sample_t));
    p = malloc(ROWS * sizeof(dsa_cuda_sample_row_t));
    assert_true(x != NULL && scratch != NULL && out != NULL && p != NULL);

    for (i = 0; i < VOCAB; i++) {

        switch (kind) {

        case 0:
            x[i] = 3 * bell();
            break;

        case 1:                         /* few ids have almost all weight */
            x[i] = bell() + (dsa_t_random(20000) == 0 ? 12 : 0);
            break;

        case 2:                         /* equals at every border */
            x[i] = (float) dsa_t_random(12);
            break;

        default:
            x[i] = 0.25f;
        }
    }

    for (r = 1; r < ROWS; r++) {
        memcpy(x + (size_t) r * VOCAB, x, VOCAB * sizeof(float));
    }

    d_x = gpu_upload(x, (size_t) ROWS * VOCAB * sizeof(float));

    defaults(p, ROWS);
    p[0].sampling.temperature = temperature;
    p[0].sampling.top_p = top_p;
    keep(&kept, x, VOCAB - 3, &p->sampling, 0);
    differ = 0;

    for (i = 0; i < ROUNDS; i++) {
        defaults(p, ROWS);

        for (r = 0; r < ROWS; r++) {
            p[r].sampling.temperature = temperature;
            p[r].sampling.top_p = top_p;
        }

        /* numbers of rows for which clusters have each number of blocks */

        sample(out, p, d_x, VOCAB, ROWS >> i, VOCAB, VOCAB - 3, NULL, 0, NULL,
               0);

        for (r = 0; r < (uint32_t) ROWS >> i; r++) {
            assert_true(r % 8 != 0 || won(&kept, out[r].token, &p[r]));

            if (r % 32 == 0) {
                differ += !same(&out[r], &p[r], x, VOCAB, VOCAB - 3, NULL,
                                NULL, scratch);
            }
        }

        sample(out, p, d_x, VOCAB, ROWS, VOCAB, VOCAB - 3, NULL, 0, NULL,
               0);

        for (r = 0; r < ROWS; r++) {
            assert_true(r % 8 != 0 || won(&kept, out[r].token, &p[r]));
        }
    }

    /* the sum of a nucleus may be within the border of top_p */

    assert_true(differ <= (top_p < 1 ? 1 : 0));

    free(kept.weight);
    free(x);
    free(scratch);
    free(out);
    free(p);

    (void) gpu_free_all(NULL);
}


static void
test_draws(void **state)
{
    draws(0, 1, 1);
    draws(0, 1, 0.95f);
    draws(0, 0.6f, 0.5f);
    draws(1, 1, 0.95f);
    draws(1, 0.3f, 0.999f);
    draws(2, 1, 0.9f);
    draws(2, 2, 0.3f);
    draws(3, 1, 0.9f);
}


/*
 * Counts of draws against the probabilities of float64, for ids that have the
 * same residue modulo 8, which have equal logits; top_p keeps residues from
 * least on, and of least only the lowest ids.  Seeds, and in other rows
 * positions, follow each other, as those of requests and tokens do.
 */

static void
counts(uint32_t vocab, uint32_t rows, uint32_t rounds, float top_p,
    uint32_t least)
{
    float                  *x, *d_x;
    void                   *work;
    double                  chi, sum, want, p[8];
    uint32_t                i, r, end, hits[8];
    dsa_cuda_sample_t      *out, *d_out;
    dsa_cuda_sample_row_t  *row, *d_row;

    /* above once in ten thousand, with 0 .. 7 degrees of freedom */

    static const double  limit[] = {
        0, 15.1, 18.4, 21.1, 23.5, 25.7, 27.9, 29.9
    };

    x = malloc((size_t) rows * vocab * sizeof(float));
    out = malloc(rows * sizeof(dsa_cuda_sample_t));
    row = malloc(rows * sizeof(dsa_cuda_sample_row_t));
    assert_true(x != NULL && out != NULL && row != NULL);

    for (i = 0; i < rows * vocab; i++) {
        x[i] = (float) (i % vocab % 8) * 0.25f;
    }

    for (i = 0, sum = 0; i < 8; i++) {
        p[i] = exp(i * 0.25 / 0.7) * (vocab / 8);
        sum += p[i];
    }

    end = vocab;

    if (top_p < 1) {
        for (i = least + 1, want = (double) top_p * sum; i < 8; i++) {
            want -= p[i];
        }

        /* whole ids */

        end = (uint32_t) ceil(want / p[least] * (vocab / 8));
        p[least] *= (double) end / (vocab / 8);
        end *= 8;
    }

    for (i = least, sum = 0; i < 8; i++) {
        sum += p[i];
    }

    memset(hits, 0, sizeof(hits));
    memset(row, 0, rows * sizeof(dsa_cuda_sample_row_t));

    d_x = gpu_upload(x, (size_t) rows * vocab * sizeof(float));
    d_row = gpu_alloc(rows * sizeof(dsa_cuda_sample_row_t));
    d_out = gpu_alloc(rows * sizeof(dsa_cuda_sample_t));
    work = gpu_alloc(dsa_cuda_sample_work(rows, vocab));

    for (i = 0; i < rounds; i++) {
        for (r = 0; r < rows; r++) {
            row[r].sampling.temperature = 0.7f;
            row[r].sampling.top_p = top_p;
            row[r].sampling.seed = r % 2 == 0 ? i * rows + r : 5;
            row[r].position = r % 2 == 0 ? 77 : i * rows + r;
        }

        gpu_ok(cudaMemcpy(d_row, row, rows * sizeof(dsa_cuda_sample_row_t),
                          cudaMemcpyHostToDevice));
        gpu_ok(dsa_cuda_sample(d_out, d_row, d_x, vocab, rows, vocab, vocab,
                               NULL, NULL, NULL, work, NULL));
        gpu_download(out, d_out, rows * sizeof(dsa_cuda_sample_t));

        for (r = 0; r < rows; r++) {
            assert_true(out[r].token < vocab && out[r].token % 8 >= least);
            assert_true(out[r].token % 8 != least || out[r].token < end);
            hits[out[r].token % 8]++;
        }
    }

    for (i = least, chi = 0; i < 8; i++) {
        want = p[i] / sum * rows * rounds;
        chi += (hits[i] - want) * (hits[i] - want) / want;
    }

    if (chi > limit[7 - least]) {
        fail_msg("%u ids, top_p %g: chi-square %g above %g", vocab,
                 (double) top_p, chi, limit[7 - least]);
    }

    free(x);
    free(out);
    free(row);

    (void) gpu_free_all(NULL);
}


static void
test_counts(void **state)
{
    counts(8, 4096, 50, 1, 0);
    counts(1000, 4096, 50, 1, 0);
    counts(VOCAB, 100, 200, 1, 0);
    counts(VOCAB, 3, 2000, 1, 0);

    /* residues 4 to 7 have 0.807 of the weight, and 5 to 7 have 0.698 */

    counts(8, 4096, 50, 0.75f, 4);
    counts(1000, 4096, 50, 0.75f, 4);
    counts(VOCAB, 100, 200, 0.75f, 4);
    counts(VOCAB, 3, 2000, 0.75f, 4);
}


/*
 * Masks for half of the rows: of one id, of few, of half of the ids, of all but
 * one.  In half of them the permitted logits may all be minus infinity.
 */

static void
make_masks(dsa_cuda_sample_row_t *p, float *x, size_t ld, uint32_t rows,
    uint32_t vocab, uint32_t allowed, uint32_t *masks)
{
    uint32_t  i, id, n, r, kind, words, *mask;

    words = (vocab + 31) / 32;
    n = 0;

    for (r = 0; r < rows; r++) {
        if (dsa_t_random(2) == 0) {
            continue;
        }

        mask = masks + (size_t) n * words;
        p[r].mask = ++n;
        kind = dsa_t_random(5);
        id = dsa_t_random(allowed);

        for (i = 0; i < words; i++) {
            mask[i] = kind < 2 ? 0
                      : kind == 2 ? dsa_t_random(1U << 16) << 16
                                    | dsa_t_random(1U << 16)
                                  : ~0U;
        }

        for (i = 0; kind == 1 && i < 8; i++) {
            mask[dsa_t_random(allowed) / 32] |= 1U << dsa_t_random(32);
        }

        if (kind == 3) {
            mask[id / 32] ^= 1U << id % 32;
            id = (id + 1) % allowed;
        }

        mask[id / 32] |= 1U << id % 32;

        for (i = 0; kind == 0 && r % 2 == 0 && i < allowed; i++) {
            if ((mask[i / 32] >> i % 32 & 1) != 0) {
                x[r * ld + i] = -INFINITY;
            }
        }
    }
}


/* Rows of all kinds in one batch; each result is that of dsa_sample(). */

static void
mixed(uint32_t rows, uint32_t vocab, uint32_t allowed, size_t ld,
    uint32_t tokens)
{
    int                     found;
    float                  *x, *d_x, *row, *scratch;
    uint32_t                i, j, r, kind, words, *history, *masks, *mask;
    test_kept_t             kept;
    dsa_sampling_t         *s;
    dsa_cuda_sample_t      *out;
    dsa_cuda_sample_row_t  *p;

    words = (vocab + 31) / 32;
    masks = calloc((size_t) rows * words, sizeof(uint32_t));
    x = malloc(rows * ld * sizeof(float));
    scratch = malloc(vocab * sizeof(float));
    history = malloc(rows * tokens * sizeof(uint32_t) + 1);
    out = malloc(rows * sizeof(dsa_cuda_sample_t));
    p = malloc(rows * sizeof(dsa_cuda_sample_row_t));
    assert_true(masks != NULL && x != NULL && scratch != NULL
                && history != NULL && out != NULL && p != NULL);

    defaults(p, rows);

    for (r = 0; r < rows; r++) {
        row = &x[r * ld];
        s = &p[r].sampling;
        kind = dsa_t_random(8);

        for (i = 0; i < ld; i++) {
            row[i] = i < allowed ? 3 * bell() : 1000;
        }

        for (i = 0; i < allowed && kind == 1; i++) {
            row[i] = (float) dsa_t_random(9) - 4;
        }

        for (i = 0; i < allowed && kind == 2; i++) {
            row[i] = dsa_t_random(3) ? row[i]
                                     : dsa_t_random(2) ? NAN : -INFINITY;
        }

        for (i = 0; i < allowed && kind == 3; i++) {
            row[i] = dsa_t_random(2) ? NAN : -INFINITY;
        }

        if (kind == 4) {
            row[dsa_t_random(allowed)] = INFINITY;
            row[dsa_t_random(allowed)] = INFINITY;
        }

        for (i = 0; i < allowed && kind == 5; i++) {
            row[i] = dsa_t_random(2) ? 0.0f : -0.0f;
        }

        s->temperature = dsa_t_random(4) == 0
                         ? 0 : 0.1f + (float) dsa_t_random(20) / 10;
        s->top_p = dsa_t_random(3) == 0
                   ? 1 : (float) (dsa_t_random(1000) + 1) / 1001;
        s->logprobs = dsa_t_random(2);
        s->top_logprobs = dsa_t_random(2)
                          * dsa_t_random(DSA_SAMPLE_MAX_TOP + 1);

        p[r].history = r * tokens;
        p[r].n_history = tokens ? dsa_t_random(tokens + 1) : 0;
        s->presence_penalty = dsa_t_random(2) ? 2 * dsa_t_uniform() : 0;
        s->frequency_penalty = dsa_t_random(2) ? 2 * dsa_t_uniform() : 0;

        if (dsa_t_random(3) == 0) {
            p[r].n_bias = dsa_t_random(64);
            p[r].bias = dsa_t_random(64 - p[r].n_bias);
        }

        for (i = 0; i < tokens; i++) {
            history[r * tokens + i] = dsa_t_random(3)
                                      ? dsa_t_random(vocab)
                                      : dsa_t_random(10);
        }
    }

    for (i = 0; i < 64; i++) {
        biases[i].id = vocab < 64 ? i
                       : i * (vocab / 64) + dsa_t_random(vocab / 64);
        biases[i].bias = 40 * dsa_t_uniform() - 20;
    }

    make_masks(p, x, ld, rows, vocab, allowed, masks);
    d_x = gpu_upload(x, rows * ld * sizeof(float));

    sample(out, p, d_x, ld, rows, vocab, allowed, tokens ? history : NULL,
           rows * tokens, masks, (size_t) rows * words);

    for (r = 0; r < rows; r++) {
        row = &x[r * ld];
        s = &p[r].sampling;

        if (same(&out[r], &p[r], row, vocab, allowed, tokens ? history : NULL,
                 masks, scratch))
        {
            continue;
        }

        /* a border, or nothing: penalties once more, then the sort */

        assert_true(s->temperature > 0 && s->top_p < 1);

        mask = p[r].mask != 0 ? masks + (p[r].mask - 1) * words : NULL;

        for (i = 0; i < allowed; i++) {
            scratch[i] = isnan(row[i])
                         || (mask != NULL && (mask[i / 32] >> i % 32 & 1) == 0)
                         ? -INFINITY : row[i];
        }

        for (i = 0; i < p[r].n_history; i++) {
            j = history[p[r].history + i];

            if (j < allowed && scratch[j] == row[j]) {
                scratch[j] -= s->presence_penalty;
            }
        }

        for (i = 0; i < p[r].n_history; i++) {
            j = history[p[r].history + i];

            if (j < allowed) {
                scratch[j] -= s->frequency_penalty;
            }
        }

        for (i = 0; i < p[r].n_bias; i++) {
            j = biases[p[r].bias + i].id;

            if (j < allowed) {
                scratch[j] += biases[p[r].bias + i].bias;
            }
        }

        found = 0;

        for (i = 0; i < 2; i++) {
            keep(&kept, scratch, allowed, s, i == 0 ? -BORDER : BORDER);
            found |= won(&kept, out[r].token, &p[r]);
            free(kept.weight);
        }

        assert_true(found);
    }

    free(masks);
    free(x);
    free(scratch);
    free(history);
    free(out);
    free(p);

    (void) gpu_free_all(NULL);
}


static void
test_mixed(void **state)
{
    int  i;

    for (i = 0; i < 6; i++) {
        mixed(128, 2000, 1999, 2003, 60);
        mixed(128, 5000, 5000, 5000, 300);
        mixed(50, 777, 770, 777, 1);
        mixed(20, 4096, 4096, 4096, 0);
        mixed(9, 20000, 19000, 20000, 500);
        mixed(3, 6000, 5999, 6004, 40);
    }

    mixed(128, 5, 5, 8, 7);
    mixed(64, 1, 1, 1, 3);
}


static void
test_published(void **state)
{
    mixed(1, VOCAB, VOCAB, VOCAB, 2000);
    mixed(1, VOCAB, VOCAB - 1000, VOCAB + 1, 10);
    mixed(7, VOCAB, VOCAB, VOCAB, 2000);
    mixed(32, VOCAB, 128815, VOCAB, 1000);
    mixed(70, VOCAB, 128815, VOCAB, 1000);
}


/*
 * A token that occurs ten thousand times; logits that fall or rise, so that
 * the greatest ones are neighbours.
 */

static void
test_extremes(void **state)
{
    float                 *x, *scratch;
    uint32_t               i, *history;
    dsa_cuda_sample_t      out[2];
    dsa_cuda_sample_row_t  p[2];

    x = malloc(2 * VOCAB * sizeof(float));
    scratch = malloc(VOCAB * sizeof(float));
    history = malloc(10000 * sizeof(uint32_t));
    assert_true(x != NULL && scratch != NULL && history != NULL);

    for (i = 0; i < VOCAB; i++) {
        x[i] = (float) i * 1e-4f;
        x[VOCAB + i] = (float) i * -1e-3f;
    }

    for (i = 0; i < 10000; i++) {
        history[i] = VOCAB - 1;
    }

    defaults(p, 2);

    for (i = 0; i < 2; i++) {
        p[i].n_history = 10000;
        p[i].sampling.frequency_penalty = 0.001f;
        p[i].sampling.presence_penalty = 0.1f;
        p[i].sampling.logprobs = 1;
        p[i].sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;
        p[i].sampling.top_p = 0.97f;
    }

    sample(out, p, gpu_upload(x, 2 * VOCAB * sizeof(float)), VOCAB, 2, VOCAB,
           VOCAB, history, 10000, NULL, 0);

    for (i = 0; i < 2; i++) {
        assert_true(same(&out[i], &p[i], x + i * VOCAB, VOCAB, VOCAB, history,
                         NULL, scratch));
    }

    free(x);
    free(scratch);
    free(history);
}


static void
test_refusals(void **state)
{
    uint8_t  *p;

    p = gpu_alloc(1024);

    assert_int_equal(dsa_cuda_sample((dsa_cuda_sample_t *) p,
                                     (dsa_cuda_sample_row_t *) p, (float *) p,
                                     8, 0, 8, 8, NULL, NULL, NULL, p, NULL), 0);
    assert_int_equal(dsa_cuda_sample((dsa_cuda_sample_t *) p,
                                     (dsa_cuda_sample_row_t *) p, (float *) p,
                                     8, 1, 8, 0, NULL, NULL, NULL, p,
                                     NULL),
                     cudaErrorInvalidValue);
    assert_int_equal(dsa_cuda_sample((dsa_cuda_sample_t *) p,
                                     (dsa_cuda_sample_row_t *) p, (float *) p,
                                     7, 1, 8, 8, NULL, NULL, NULL, p,
                                     NULL),
                     cudaErrorInvalidValue);
}


/*
 * How tokens were drawn, and the ids that top_p keeps, against the CPU twin.
 * Kept ids have the same bits there, but for a sum that is at the border.
 */

static void
reported(uint32_t rows, uint32_t vocab, uint32_t allowed)
{
    float                  *x, *d_x, *scratch;
    void                   *work;
    uint32_t                i, r, words, differ, cut, *kept, *d_kept, *masks;
    uint32_t               *want, *mask, *d_masks;
    dsa_draw_t              draw;
    dsa_sample_t            sample;
    dsa_sampling_t         *s;
    dsa_cuda_sample_t      *out, *d_out;
    dsa_cuda_sample_row_t  *p, *d_p;

    words = (vocab + 31) / 32;
    x = malloc((size_t) rows * vocab * sizeof(float));
    kept = malloc((size_t) rows * words * sizeof(uint32_t));
    masks = malloc((size_t) rows * words * sizeof(uint32_t));
    want = malloc(words * sizeof(uint32_t));
    scratch = malloc(vocab * sizeof(float));
    out = malloc(rows * sizeof(dsa_cuda_sample_t));
    p = malloc(rows * sizeof(dsa_cuda_sample_row_t));
    assert_true(x != NULL && kept != NULL && masks != NULL && want != NULL
                && scratch != NULL && out != NULL && p != NULL);

    defaults(p, rows);

    for (r = 0; r < rows; r++) {
        for (i = 0; i < vocab; i++) {
            x[(size_t) r * vocab + i] = r % 2 != 0 ? 3 * bell()
                                        : (float) dsa_t_random(40) / 4;
        }

        for (i = 0; i < words; i++) {
            masks[(size_t) r * words + i] = dsa_t_random(1 << 16)
                                            | dsa_t_random(1 << 16) << 16;
        }

        masks[(size_t) r * words] |= 1;

        s = &p[r].sampling;
        s->temperature = r % 7 == 3 ? 0
                         : 0.3f + (float) dsa_t_random(20) / 10;
        s->top_p = r % 5 == 0 ? 1
                   : (float) (dsa_t_random(1000) + 1) / 1001;
        p[r].mask = r % 3 == 1 ? r + 1 : 0;
        p[r].report = r % 4 != 2;
    }

    d_x = gpu_upload(x, (size_t) rows * vocab * sizeof(float));
    d_p = gpu_upload(p, rows * sizeof(dsa_cuda_sample_row_t));
    d_masks = gpu_upload(masks, (size_t) rows * words * sizeof(uint32_t));
    d_out = gpu_alloc(rows * sizeof(dsa_cuda_sample_t));
    d_kept = gpu_alloc((size_t) rows * words * sizeof(uint32_t));
    work = gpu_alloc(dsa_cuda_sample_work(rows, vocab));

    gpu_poison(d_out, rows * sizeof(dsa_cuda_sample_t));
    gpu_ok(dsa_cuda_sample(d_out, d_p, d_x, vocab, rows, vocab, allowed, NULL,
                           d_masks, NULL, work, NULL));
    gpu_ok(dsa_cuda_sample_kept(d_kept, d_out, d_p, work, rows, vocab,
                                allowed, NULL));
    gpu_download(out, d_out, rows * sizeof(dsa_cuda_sample_t));
    gpu_download(kept, d_kept, (size_t) rows * words * sizeof(uint32_t));

    differ = 0;
    cut = 0;

    for (r = 0; r < rows; r++) {
        s = &p[r].sampling;
        mask = p[r].mask != 0 ? masks + (size_t) r * words : NULL;

        dsa_sample_draw(&sample, &draw, want, s, NULL,
                        x + (size_t) r * vocab, vocab, allowed, mask, NULL, 0,
                        p[r].position, scratch);

        if (!p[r].report) {
            continue;
        }

        if (sample.token != out[r].token) {
            differ++;
            continue;
        }

        assert_true(near(out[r].drawn, draw.logprob));

        if (s->temperature == 0) {
            assert_int_equal(out[r].kept, DSA_CUDA_KEPT_ONE);

        } else if (s->top_p == 1) {
            assert_int_equal(out[r].kept, DSA_CUDA_KEPT_ALL);

        } else {
            assert_int_equal(out[r].kept, DSA_CUDA_KEPT_CUT);
            assert_memory_equal(kept + (size_t) r * words, want,
                                words * sizeof(uint32_t));
            cut++;
        }
    }

    assert_true(differ <= 1 + rows / 500);
    assert_true(cut > rows / 4);

    free(x);
    free(kept);
    free(masks);
    free(want);
    free(scratch);
    free(out);
    free(p);
}


static void
test_reported(void **state)
{
    reported(24, VOCAB, VOCAB - 480);
    reported(200, 2048, 2048);
    reported(40, 40000, 39999);
    reported(16, 33, 31);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_mixed, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_published, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_extremes, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_draws, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_counts, gpu_setup, gpu_free_all),
        cmocka_unit_test_setup_teardown(test_reported, gpu_setup,
                                        gpu_free_all),
        cmocka_unit_test_setup_teardown(test_refusals, gpu_setup,
                                        gpu_free_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
