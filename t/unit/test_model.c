
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "t/unit/golden.h"


/*
 * A prompt is computed in chunks, token by token, beside other sequences, on
 * any pages and from another sequence's prefix.  Its logits have the bits of
 * the whole prompt in one step.  golden.t compares logits with other
 * implementations; here only the greedy continuation is compared.
 * test_model_bits.c has the tests with several threads, test_ranks.c those with
 * several ranks, and test_same_bits.c those with a scheduler.
 */


static double
error(const float *a, const float *b, uint32_t n)
{
    double    d, sum, norm;
    uint32_t  i;

    sum = 0;
    norm = 0;

    for (i = 0; i < n; i++) {
        d = (double) a[i] - b[i];
        sum += d * d;
        norm += (double) b[i] * b[i];
    }

    return sqrt(sum / norm);
}


/* Rows first .. last-1 of f->logits are those of f->whole. */

static void
same(const fixture_t *f, const char *what, uint32_t first, uint32_t last)
{
    uint32_t      row;
    const float  *logits, *whole;

    for (row = first; row < last; row++) {
        logits = f->logits + (uint64_t) row * f->vocab;
        whole = f->whole + (uint64_t) row * f->vocab;

        if (memcmp(logits, whole, f->vocab * sizeof(float)) != 0) {
            fail_msg("%s: row %u is off by %g", what, row,
                     error(logits, whole, f->vocab));
        }
    }
}


static void
check_cuts(const char *name, dsa_precision_e precision)
{
    char       what[64];
    uint32_t   i, at, n, swap, from, reused[16];
    fixture_t  f;

    static const uint32_t  chunks[] = { 1, 7, 64, 100 };

    fixture_open(&f, name, precision);
    run(&f, f.tokens, 0, f.n, f.pages, f.whole);

    for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        memset(f.logits, 0, (uint64_t) f.n * f.vocab * sizeof(float));

        for (at = 0; at < f.n; at += n) {
            n = chunks[i] < f.n - at ? chunks[i] : f.n - at;
            run(&f, f.tokens, at, n, f.pages, f.logits);
        }

        snprintf(what, sizeof(what), "%s, chunks of %u", name, chunks[i]);
        same(&f, what, 0, f.n);
    }

    /* shuffled pages that were used before; prefill, then decode */

    for (i = 0; i < 16; i++) {
        f.pages[i] = 3 * i + 15;
    }

    for (i = 15; i > 0; i--) {
        n = dsa_t_random(i + 1);
        swap = f.pages[i];
        f.pages[i] = f.pages[n];
        f.pages[n] = swap;
    }

    run(&f, f.tokens, 0, f.n / 2, f.pages, f.logits);

    for (at = f.n / 2; at < f.n; at++) {
        run(&f, f.tokens, at, 1, f.pages, f.logits);
    }

    snprintf(what, sizeof(what), "%s, shuffled pages", name);
    same(&f, what, 0, f.n);

    /* the first pages of that sequence, the rest on pages of its own */

    from = f.n / 2 / 64 * 64;
    assert_true(from >= 64);

    for (i = 0; i < 16; i++) {
        reused[i] = i < from / 64 ? f.pages[i] : 3 * i + 1;
    }

    memset(f.logits, 0, (uint64_t) f.n * f.vocab * sizeof(float));
    run(&f, f.tokens, from, f.n - from, reused, f.logits);

    snprintf(what, sizeof(what), "%s, reused prefix", name);
    same(&f, what, from, f.n);

    fixture_close(&f);
}


static void
test_cuts_fp8(void **state)
{
    check_cuts("a-fp8", DSA_EXACT);
    check_cuts("a-fp8", DSA_SERVED);
}


static void
test_cuts_bf16(void **state)
{
    check_cuts("b-bf16", DSA_EXACT);
    check_cuts("b-bf16", DSA_SERVED);
}


/* Models that attend to all positions. */

static void
test_cuts_dense(void **state)
{
    check_cuts("v3", DSA_EXACT);
    check_cuts("v3", DSA_SERVED);
    check_cuts("joyai", DSA_EXACT);
    check_cuts("joyai", DSA_SERVED);
    check_cuts("glm-4.7-flash", DSA_EXACT);
    check_cuts("glm-4.7-flash", DSA_SERVED);
    check_cuts("moonlight", DSA_EXACT);
    check_cuts("moonlight", DSA_SERVED);
}


/* Pages beyond 4 GiB, and the last position of the longest context. */

static void
test_far(void **state)
{
    uint32_t           i, last, *pages;
    dsa_err_t          err;
    fixture_t          f;
    dsa_rows_t         rows;
    dsa_model_t       *model;
    dsa_model_conf_t   conf;

    fixture_open(&f, "b-bf16", DSA_EXACT);
    run(&f, f.tokens, 0, 100, f.pages, f.whole);

    last = f.weights->config.max_position_embeddings - 1;
    pages = calloc(last / 64 + 1, sizeof(uint32_t));
    assert_non_null(pages);

    model = f.model;

    memset(&conf, 0, sizeof(conf));
    conf.precision = DSA_EXACT;
    conf.kv_memory = 5ULL << 30;
    conf.max_tokens = 128;
    conf.gpus = 1;

    f.model = dsa_model_open(f.weights, &conf, &err);
    must(f.model != NULL ? DSA_OK : DSA_ERROR, &err);

    for (i = 0; i < 16; i++) {
        f.pages[i] = dsa_model_pages(f.model) - 1 - i;
    }

    run(&f, f.tokens, 0, 100, f.pages, f.logits);
    same(&f, "far pages", 0, 100);

    /* the context was never written and is all on page 0 */

    f.logits = realloc(f.logits, f.vocab * sizeof(float));
    assert_non_null(f.logits);

    memset(&rows, 0, sizeof(rows));
    rows.tokens = f.tokens;
    rows.start = last;
    rows.n = 1;
    rows.pages = pages;
    rows.n_logits = 1;
    must(dsa_model_forward(f.model, &rows, 1, f.logits, &err), &err);

    for (i = 0; i < f.vocab; i++) {
        assert_true(isfinite(f.logits[i]));
    }

    free(pages);
    dsa_model_close(model);
    fixture_close(&f);
}


/*
 * Three sequences, of which the first is the golden one, advance by uneven
 * steps side by side, decodes among prefills; each must be what it is alone.
 */

static void
check_batched(const char *name)
{
    float      *step, *alone[3], *batched[3];
    uint32_t    i, k, n[3], row, turn, left, *tokens[3], pages[3][16];
    fixture_t   f;
    dsa_err_t   err;
    dsa_rows_t  rows[3];

    memset(rows, 0, sizeof(rows));
    fixture_open(&f, name, DSA_EXACT);

    step = calloc(512, f.vocab * sizeof(float));
    assert_non_null(step);

    for (i = 0; i < 3; i++) {
        tokens[i] = calloc(f.n, sizeof(uint32_t));
        alone[i] = calloc(f.n, f.vocab * sizeof(float));
        batched[i] = calloc(f.n, f.vocab * sizeof(float));
        assert_true(tokens[i] && alone[i] && batched[i]);

        for (k = 0; k < f.n; k++) {
            tokens[i][k] = i == 0 ? f.tokens[k] : dsa_t_random(f.vocab);
        }

        for (k = 0; k < 16; k++) {
            pages[i][k] = k * 3 + i;
        }

        run(&f, tokens[i], 0, f.n, f.pages, alone[i]);
        n[i] = 0;
    }

    for (turn = 0, left = 3; left != 0; turn++) {
        for (i = 0, left = 0; i < 3; i++) {
            if (n[i] == f.n) {
                continue;
            }

            k = turn % 3 == i ? 1 + dsa_t_random(f.n / 3) : 1;
            k = k < f.n - n[i] ? k : f.n - n[i];

            rows[left].tokens = tokens[i] + n[i];
            rows[left].start = n[i];
            rows[left].n = k;
            rows[left].pages = pages[i];
            rows[left].n_logits = 1 + dsa_t_random(k);
            left++;
        }

        if (left == 0) {
            break;
        }

        must(dsa_model_forward(f.model, rows, left, step, &err), &err);

        for (k = 0, row = 0; k < left; k++) {
            i = rows[k].pages == pages[0] ? 0
                                          : (rows[k].pages == pages[1] ? 1 : 2);
            n[i] += rows[k].n;

            for ( /* void */ ; rows[k].n_logits != 0; rows[k].n_logits--) {
                memcpy(batched[i]
                       + (uint64_t) (n[i] - rows[k].n_logits) * f.vocab,
                       step + (uint64_t) row++ * f.vocab,
                       f.vocab * sizeof(float));
            }
        }
    }

    for (i = 0; i < 3; i++) {
        for (row = 0, k = 0; row < f.n; row++) {
            if (batched[i][(uint64_t) row * f.vocab] != 0) {
                k++;
                assert_memory_equal(batched[i] + (uint64_t) row * f.vocab,
                                    alone[i] + (uint64_t) row * f.vocab,
                                    f.vocab * sizeof(float));
            }
        }

        assert_true(k > f.n / 3);

        free(tokens[i]);
        free(alone[i]);
        free(batched[i]);
    }

    free(step);
    fixture_close(&f);
}


static void
test_batched(void **state)
{
    check_batched("a-fp8");
    check_batched("v3");
    check_batched("joyai");
    check_batched("glm-4.7-flash");
    check_batched("moonlight");
}


static void
check_greedy(const char *name)
{
    uint32_t   i, j, best, tokens[512];
    fixture_t  f;

    fixture_open(&f, name, DSA_EXACT);
    assert_true(f.greedy_start <= f.n && f.greedy_start + f.n_greedy <= 512);

    memcpy(tokens, f.tokens, f.greedy_start * sizeof(uint32_t));
    run(&f, tokens, 0, f.greedy_start, f.pages, f.logits);

    for (i = f.greedy_start - 1; /* void */ ; i++) {
        best = 0;

        for (j = 1; j < f.vocab; j++) {
            if (f.logits[(uint64_t) i * f.vocab + j]
                > f.logits[(uint64_t) i * f.vocab + best])
            {
                best = j;
            }
        }

        assert_int_equal(best, f.greedy[i + 1 - f.greedy_start]);

        if (i + 2 == f.greedy_start + f.n_greedy) {
            break;
        }

        tokens[i + 1] = best;
        f.logits = realloc(f.logits, (uint64_t) (i + 2) * f.vocab
                                     * sizeof(float));
        assert_non_null(f.logits);
        run(&f, tokens, i + 1, 1, f.pages, f.logits);
    }

    fixture_close(&f);
}


static void
test_greedy(void **state)
{
    check_greedy("a-fp8");
    check_greedy("b-bf16");
    check_greedy("v3");
    check_greedy("joyai");
    check_greedy("glm-4.7-flash");
    check_greedy("moonlight");
}


/*
 * A checkpoint in BF16 can be served, too: no FP8 activations, but the FP8
 * cache; near exact, and not exact.
 */

static void
test_served_bf16(void **state)
{
    double     e, mean;
    uint32_t   row;
    fixture_t  f, g;

    fixture_open(&f, "b-bf16", DSA_EXACT);
    fixture_open(&g, "b-bf16", DSA_SERVED);

    run(&f, f.tokens, 0, 32, f.pages, f.whole);
    run(&g, f.tokens, 0, 32, f.pages, g.whole);

    for (row = 0, mean = 0; row < 32; row++) {
        e = error(g.whole + (uint64_t) row * f.vocab,
                  f.whole + (uint64_t) row * f.vocab, f.vocab);
        assert_true(e > 1e-4);
        mean += e / 32;
    }

    assert_true(mean < 0.03);

    fixture_close(&f);
    fixture_close(&g);
}


static void
refused(fixture_t *f, const dsa_rows_t *rows, uint32_t n, const char *why)
{
    dsa_err_t  err;

    assert_int_equal(dsa_model_forward(f->model, rows, n, f->logits, &err),
                     DSA_ERROR);

    if (strstr(err.text, why) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, why);
    }
}


static void
test_refusals(void **state)
{
    uint32_t          tokens[600], pages[16];
    fixture_t         f;
    dsa_err_t         err;
    dsa_rows_t        good, rows;
    dsa_model_conf_t  conf;

    fixture_open(&f, "b-bf16", DSA_EXACT);
    memset(tokens, 0, sizeof(tokens));
    memset(&good, 0, sizeof(good));
    memcpy(pages, f.pages, sizeof(pages));

    good.tokens = tokens;
    good.start = 0;
    good.n = 10;
    good.pages = pages;
    good.n_logits = 10;

    refused(&f, &good, 0, "0 tokens");

    rows = good;
    rows.n = 0;
    refused(&f, &rows, 1, "0 tokens");

    rows = good;
    rows.n = 513;
    rows.n_logits = 1;
    refused(&f, &rows, 1, "513 tokens");

    rows = good;
    rows.n_logits = 11;
    refused(&f, &rows, 1, "11 logits");

    rows = good;
    rows.start = f.weights->config.max_position_embeddings - 9;
    refused(&f, &rows, 1, "position 163840");

    rows = good;
    rows.start = UINT32_MAX;
    refused(&f, &rows, 1, "position");

    tokens[9] = f.vocab;
    refused(&f, &good, 1, "token 512 at position 9");
    tokens[9] = 0;

    pages[0] = 64;
    refused(&f, &good, 1, "page below 64");
    pages[0] = 0;

    must(dsa_model_forward(f.model, &good, 1, f.logits, &err), &err);

    rows = good;
    rows.rank = 1;
    refused(&f, &rows, 1, "rank 1; expected a rank below 1");

    memset(&conf, 0, sizeof(conf));
    conf.precision = DSA_EXACT;
    conf.kv_memory = 1000;
    conf.max_tokens = 1;
    conf.gpus = 1;

    assert_null(dsa_model_open(f.weights, &conf, &err));
    assert_non_null(strstr(err.text, "1000 bytes"));

    conf.kv_memory = 1 << 20;
    conf.max_tokens = 0;
    assert_null(dsa_model_open(f.weights, &conf, &err));
    assert_non_null(strstr(err.text, "0 tokens"));

    conf.max_tokens = 1;
    conf.gpus = 17;
    assert_null(dsa_model_open(f.weights, &conf, &err));
    assert_non_null(strstr(err.text, "17 GPUs"));

    fixture_close(&f);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cuts_fp8),
        cmocka_unit_test(test_cuts_bf16),
        cmocka_unit_test(test_cuts_dense),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_batched),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_served_bf16),
        cmocka_unit_test(test_refusals)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
