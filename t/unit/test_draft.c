
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

#include "engine/checkpoint/safetensors.h"
#include "engine/cpu/model.h"


/*
 * Sequences that are drafted for together have the bits that each has alone,
 * and what is not valid is rejected.  drafts.t compares the drafts with another
 * implementation.
 */

#define GOLDEN  "t/data/golden/"
#define HIDDEN  128
#define VOCAB   256
#define STEPS   4
#define TOKENS  62      /* of the golden text that are used */


/* A sequence: its known tokens, of which the last rows are drafted behind. */

typedef struct {
    uint32_t    first;              /* of the tokens of the golden text */
    uint32_t    n;
    uint32_t    rows;
    uint32_t    page;
    uint32_t    pages[2];
    float       hidden[96 * HIDDEN];
    float       logits[STEPS][VOCAB];
} sequence_t;


typedef struct {
    dsa_weights_t  *weights;
    dsa_model_t    *model;
    uint32_t        tokens[96];
} fixture_t;


static void
must(int rc, const dsa_err_t *err)
{
    if (rc != DSA_OK) {
        fail_msg("%s", err->text);
    }
}


static void
fixture_open(fixture_t *f, const char *name, dsa_precision_e precision)
{
    char                    path[96];
    dsa_st_t               *st;
    dsa_err_t               err;
    dsa_model_conf_t        conf;
    const dsa_st_tensor_t  *t;

    (void) snprintf(path, sizeof(path), GOLDEN "%s", name);
    f->weights = dsa_weights_open(path, &err);
    must(f->weights != NULL ? DSA_OK : DSA_ERROR, &err);

    memset(&conf, 0, sizeof(conf));
    conf.precision = precision;
    conf.kv_memory = dsa_model_kv_memory(&f->weights->config, precision, 1,
                                         16 * 64);
    conf.max_tokens = 256;
    conf.gpus = 1;
    conf.drafts = 1;

    f->model = dsa_model_open(f->weights, &conf, &err);
    must(f->model != NULL ? DSA_OK : DSA_ERROR, &err);
    assert_int_equal(dsa_model_pages(f->model), 16);

    (void) snprintf(path, sizeof(path), GOLDEN "%s/golden.safetensors", name);
    st = dsa_st_open(path, &err);
    must(st != NULL ? DSA_OK : DSA_ERROR, &err);

    t = dsa_st_find(st, dsa_strz("tokens"));
    assert_non_null(t);
    assert_in_range(t->size, TOKENS * sizeof(uint32_t), sizeof(f->tokens));
    memcpy(f->tokens, t->data, t->size);

    dsa_st_close(st);
}


static void
fixture_close(fixture_t *f)
{
    dsa_model_close(f->model);
    dsa_weights_close(f->weights);
}


/* The rows of step 0 from position start on, which is at least 1. */

static dsa_rows_t
known(const fixture_t *f, const sequence_t *s, uint32_t start, uint32_t n)
{
    dsa_rows_t  rows;

    memset(&rows, 0, sizeof(rows));
    rows.tokens = f->tokens + s->first + start;
    rows.start = start;
    rows.n = n;
    rows.pages = s->pages;
    rows.n_logits = 1;
    rows.hidden = s->hidden + (start - 1) * HIDDEN;

    return rows;
}


/* Computes the steps of n sequences together. */

static void
draft(fixture_t *f, sequence_t *seq, uint32_t n)
{
    float       g[2 * HIDDEN], logits[2 * VOCAB];
    uint32_t    i, j, k, token[2];
    dsa_err_t   err;
    dsa_rows_t  rows[2];

    for (i = 0; i < n; i++) {
        rows[i] = known(f, &seq[i], seq[i].n - seq[i].rows, seq[i].rows);
    }

    for (k = 0; k < STEPS; k++) {
        must(dsa_model_draft(f->model, rows, n, k, g, logits, &err), &err);

        for (i = 0; i < n; i++) {
            memcpy(seq[i].logits[k], logits + i * VOCAB,
                   VOCAB * sizeof(float));

            token[i] = 0;

            for (j = 1; j < VOCAB; j++) {
                if (seq[i].logits[k][j] > seq[i].logits[k][token[i]]) {
                    token[i] = j;
                }
            }

            rows[i].start = seq[i].n + k;
            rows[i].n = 1;
            rows[i].tokens = &token[i];
            rows[i].hidden = g + i * HIDDEN;
        }
    }
}


/* The model and the first step of the draft layer over all tokens. */

static void
prefill(fixture_t *f, sequence_t *s)
{
    float       logits[VOCAB];
    dsa_err_t   err;
    dsa_rows_t  rows;

    s->pages[0] = s->page;
    s->pages[1] = s->page + 1;

    memset(&rows, 0, sizeof(rows));
    rows.tokens = f->tokens + s->first;
    rows.n = s->n;
    rows.pages = s->pages;

    must(dsa_model_forward(f->model, &rows, 1, NULL, &err), &err);
    memcpy(s->hidden, dsa_model_hidden(f->model),
           s->n * HIDDEN * sizeof(float));

    rows = known(f, s, 1, s->n - 1);
    must(dsa_model_draft(f->model, &rows, 1, 0, NULL, logits, &err), &err);
}


static void
together(const char *name, dsa_precision_e precision, int shared)
{
    uint32_t     i;
    fixture_t    f;
    sequence_t  *alone, *both;

    alone = calloc(2, sizeof(sequence_t));
    both = calloc(2, sizeof(sequence_t));
    assert_true(alone != NULL && both != NULL);

    fixture_open(&f, name, precision);
    f.weights->config.index_share_for_mtp_iteration = (uint32_t) shared;

    alone[0].n = TOKENS;            /* the drafts are on two pages */
    alone[0].rows = 4;
    alone[1].first = 17;
    alone[1].n = 45;
    alone[1].rows = 1;
    alone[1].page = 2;

    for (i = 0; i < 2; i++) {
        both[i] = alone[i];
        both[i].page += 4;

        prefill(&f, &alone[i]);
        prefill(&f, &both[i]);
        draft(&f, &alone[i], 1);
    }

    draft(&f, both, 2);

    for (i = 0; i < 2; i++) {
        assert_memory_equal(alone[i].logits, both[i].logits,
                            sizeof(both[i].logits));
    }

    /* the known rows overwrite what the drafts have left */

    both[0].rows = 1;
    draft(&f, both, 2);

    for (i = 0; i < 2; i++) {
        assert_memory_equal(alone[i].logits, both[i].logits,
                            sizeof(both[i].logits));
    }

    fixture_close(&f);
    free(alone);
    free(both);
}


static void
test_together(void **state)
{
    together("drafts", DSA_EXACT, 0);
    together("drafts", DSA_EXACT, 1);
    together("drafts", DSA_SERVED, 0);
    together("drafts", DSA_SERVED, 1);
    together("drafts-v3", DSA_EXACT, 0);
    together("drafts-v3", DSA_SERVED, 0);
    together("drafts-joyai", DSA_SERVED, 0);
    together("drafts-glm-4.7-flash", DSA_EXACT, 0);
}


static void
rejected(fixture_t *f, const dsa_rows_t *rows, uint32_t step,
    const char *reason)
{
    float       logits[VOCAB];
    dsa_err_t   err;

    assert_int_equal(dsa_model_draft(f->model, rows, 1, step, NULL, logits,
                                     &err),
                     DSA_ERROR);
    assert_non_null(strstr(err.text, reason));
}


static void
test_rejected(void **state)
{
    fixture_t    f;
    dsa_rows_t   good, bad;
    sequence_t  *s;

    s = calloc(1, sizeof(sequence_t));
    assert_non_null(s);

    fixture_open(&f, "drafts", DSA_EXACT);

    s->n = 20;
    prefill(&f, s);
    good = known(&f, s, 18, 2);

    bad = good;
    bad.start = 0;
    rejected(&f, &bad, 0, "begins at position 0; expected 1 or more");
    rejected(&f, &good, 1, "step 1 of the draft layer has 2 tokens");

    bad = good;
    bad.start = f.weights->config.max_position_embeddings - 1;
    rejected(&f, &bad, 0, "ends at position");

    s->pages[0] = 16;
    rejected(&f, &good, 0, "expected a page below 16");

    fixture_close(&f);
    free(s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_rejected)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
