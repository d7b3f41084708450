
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The bits of logits are the same from run to run, with packed weights and with
 * others, with any number of threads, and beside any other sequence.
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


static void
unpack(dsa_matrix_t *m)
{
    assert_int_equal(m->weight.layout, DSA_GEMM_PANELS);
    m->weight = m->tensor;
}


/* The same bits from run to run, and for weights that are not packed. */

static void
check_bits(const char *name, dsa_precision_e precision)
{
    uint32_t            l, e, last;
    uint64_t            size;
    fixture_t           f;
    dsa_model_layer_t  *layer;

    fixture_open(&f, name, precision);
    size = (uint64_t) f.n * f.vocab * sizeof(float);

    last = f.n - 1;

    run(&f, f.tokens, 0, last, f.pages, f.whole);
    run(&f, f.tokens, last, 1, f.pages, f.whole);
    run(&f, f.tokens, 0, last, f.pages + 4, f.logits);
    run(&f, f.tokens, last, 1, f.pages + 4, f.logits);
    assert_memory_equal(f.whole, f.logits, size);

    for (l = 0; l < f.weights->config.num_hidden_layers; l++) {
        layer = &f.model->layer[l];

        unpack(&layer->q_b_proj);
        unpack(&layer->kv_a_proj);
        unpack(layer->o_proj);

        if (f.weights->config.q_lora_rank != 0) {
            unpack(&layer->q_a_proj);
        }

        if (f.weights->config.layer[l].selection == DSA_SELECTION_OWN) {
            unpack(&layer->index_wq_b);
            unpack(&layer->index_wk);
            unpack(&layer->index_weights_proj);
        }

        for (e = 0; e < f.weights->config.num_attention_heads; e++) {
            unpack(&layer->kv_b[e].k_t);
            unpack(&layer->kv_b[e].v);
        }

        if (!layer->moe) {
            unpack(&layer->mlp.gate);
            unpack(layer->mlp.down);
            continue;
        }

        unpack(&layer->router);
        unpack(&layer->shared.up);

        for (e = 0; e < f.weights->config.n_routed_experts; e++) {
            unpack(&layer->expert[e].gate);
            unpack(layer->expert[e].down);
        }
    }

    unpack(&f.model->head);

    memset(f.logits, 0, size);
    run(&f, f.tokens, 0, last, f.pages, f.logits);
    run(&f, f.tokens, last, 1, f.pages, f.logits);
    assert_memory_equal(f.whole, f.logits, size);

    fixture_close(&f);
}


static void
test_bits(void **state)
{
    check_bits("a-fp8", DSA_EXACT);
    check_bits("a-fp8", DSA_SERVED);
    check_bits("b-bf16", DSA_EXACT);
    check_bits("b-bf16", DSA_SERVED);
    check_bits("v3", DSA_EXACT);
    check_bits("v3", DSA_SERVED);
    check_bits("joyai", DSA_EXACT);
    check_bits("joyai", DSA_SERVED);
    check_bits("glm-4.7-flash", DSA_SERVED);
    check_bits("moonlight", DSA_EXACT);
    check_bits("moonlight", DSA_SERVED);
}


/*
 * A step of up to three sequences: so many tokens of each, from where it is.
 * A prompt in MHA, then chunks in absorbed MQA, single tokens, and more tokens
 * than a piece of any job has.
 */

#define CUT_SEQS    3
#define CUT_STEPS   8

static const uint32_t  cut[CUT_STEPS][CUT_SEQS] = {
    { 70, 0, 0 },
    { 10, 80, 0 },
    { 1, 1, 33 },
    { 1, 1, 1 },
    { 40, 1, 65 },
    { 1, 70, 2 },
    { 1, 1, 1 },
    { 3, 1, 66 },
};


/*
 * The logits of all tokens of the sequences that only has, or of all; in
 * out [CUT_SEQS][n].
 */

static void
run_cut(fixture_t *f, dsa_precision_e p, uint32_t threads, int only, float *out)
{
    float        *step, *from;
    uint32_t      i, k, s, n, at[CUT_SEQS], tokens[CUT_SEQS][256];
    uint32_t      pages[CUT_SEQS][4];
    dsa_err_t     err;
    dsa_rows_t    rows[CUT_SEQS];
    dsa_model_t  *model;

    memset(rows, 0, sizeof(rows));
    model = model_open(f, p, 256, threads);

    step = calloc(256, f->vocab * sizeof(float));
    assert_non_null(step);

    for (i = 0; i < CUT_SEQS; i++) {
        at[i] = 0;

        for (k = 0; k < 4; k++) {
            pages[i][k] = 5 + i + k * CUT_SEQS;
        }

        for (k = 0; k < 256; k++) {
            tokens[i][k] = (f->tokens[k % f->n] + i * 17) % f->vocab;
        }
    }

    for (s = 0; s < CUT_STEPS; s++) {
        for (i = 0, n = 0; i < CUT_SEQS; i++) {
            if (cut[s][i] == 0 || (only >= 0 && i != (uint32_t) only)) {
                continue;
            }

            rows[n].tokens = tokens[i] + at[i];
            rows[n].start = at[i];
            rows[n].n = cut[s][i];
            rows[n].pages = pages[i];
            rows[n].n_logits = cut[s][i];
            n++;
        }

        if (n == 0) {
            continue;
        }

        must(dsa_model_forward(model, rows, n, step, &err), &err);

        for (i = 0, from = step; i < CUT_SEQS; i++) {
            if (cut[s][i] == 0 || (only >= 0 && i != (uint32_t) only)) {
                continue;
            }

            memcpy(out + ((uint64_t) i * 256 + at[i]) * f->vocab, from,
                   (uint64_t) cut[s][i] * f->vocab * sizeof(float));
            from += (uint64_t) cut[s][i] * f->vocab;
            at[i] += cut[s][i];
        }
    }

    free(step);
    dsa_model_close(model);
}


static void
check_threads(const char *name, dsa_precision_e precision)
{
    int        i;
    float     *one, *many;
    uint64_t   size;
    uint32_t   threads;
    fixture_t  f;

    fixture_open(&f, name, precision);
    size = (uint64_t) CUT_SEQS * 256 * f.vocab * sizeof(float);

    one = calloc(1, size);
    many = calloc(1, size);
    assert_true(one != NULL && many != NULL);

    run_cut(&f, precision, 1, -1, one);
    assert_true(one[0] != 0);

    for (threads = 2; threads <= 4; threads++) {
        memset(many, 0, size);
        run_cut(&f, precision, threads, -1, many);

        if (memcmp(one, many, size) != 0) {
            fail_msg("%s, precision %d: %u threads compute other bits than "
                     "one", name, (int) precision, threads);
        }
    }

    /* each sequence alone, cut as it was beside the others */

    memset(many, 0, size);

    for (i = 0; i < CUT_SEQS; i++) {
        run_cut(&f, precision, 2, i, many);
    }

    if (memcmp(one, many, size) != 0) {
        fail_msg("%s, precision %d: a sequence has other bits beside others",
                 name, (int) precision);
    }

    free(one);
    free(many);
    fixture_close(&f);
}


/* The same bits with any number of threads, and beside any other sequence. */

static void
test_threads(void **state)
{
    check_threads("a-fp8", DSA_EXACT);
    check_threads("a-fp8", DSA_SERVED);
    check_threads("b-bf16", DSA_EXACT);
    check_threads("b-bf16", DSA_SERVED);
    check_threads("v3", DSA_EXACT);
    check_threads("v3", DSA_SERVED);
    check_threads("joyai", DSA_EXACT);
    check_threads("joyai", DSA_SERVED);
    check_threads("glm-4.7-flash", DSA_SERVED);
    check_threads("moonlight", DSA_EXACT);
    check_threads("moonlight", DSA_SERVED);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_threads)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
