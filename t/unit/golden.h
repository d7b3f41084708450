
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_T_GOLDEN_H_INCLUDED_
#define _DSA_T_GOLDEN_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/cpu/parts.h"
#include "t/unit/numbers.h"


/*
 * The models of t/data/golden for tests, on the CPU.  cmocka.h must be included
 * before this file.
 */

#define GOLDEN  "t/data/golden/"


typedef struct {
    dsa_weights_t  *weights;
    dsa_model_t    *model;
    uint32_t        vocab;
    uint32_t       *tokens;
    uint32_t        n;
    uint32_t        greedy_start;
    uint32_t        n_greedy;
    int32_t         greedy[16];
    float          *whole;          /* [n, vocab] */
    float          *logits;         /* [n, vocab] */
    uint32_t        pages[16];
} fixture_t;


static inline void
must(int rc, const dsa_err_t *err)
{
    if (rc != DSA_OK) {
        fail_msg("%s", err->text);
    }
}


static const dsa_st_tensor_t *
find(dsa_st_t *st, const char *name, uint64_t size)
{
    const dsa_st_tensor_t  *t;

    t = dsa_st_find(st, dsa_strz(name));
    assert_non_null(t);
    assert_true(size == 0 || t->size == size);

    return t;
}


/* A model with 64 pages. */

static inline dsa_model_t *
model_open(fixture_t *f, dsa_precision_e precision, uint32_t max_tokens,
    uint32_t threads)
{
    dsa_err_t          err;
    dsa_model_t       *model;
    dsa_model_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.precision = precision;
    conf.kv_memory = dsa_model_kv_memory(&f->weights->config, precision,
                                         0, 64 * 64);
    conf.max_tokens = max_tokens;
    conf.threads = threads;
    conf.gpus = 1;

    model = dsa_model_open(f->weights, &conf, &err);
    must(model != NULL ? DSA_OK : DSA_ERROR, &err);

    return model;
}


static inline void
fixture_open(fixture_t *f, const char *name, dsa_precision_e precision)
{
    char                    path[256];
    uint32_t                i;
    dsa_st_t               *st;
    dsa_err_t               err;
    const dsa_st_tensor_t  *t;

    memset(f, 0, sizeof(fixture_t));

    snprintf(path, sizeof(path), GOLDEN "%s", name);
    f->weights = dsa_weights_open(path, &err);
    must(f->weights != NULL ? DSA_OK : DSA_ERROR, &err);

    snprintf(path, sizeof(path), GOLDEN "%s/golden.safetensors", name);
    st = dsa_st_open(path, &err);
    must(st != NULL ? DSA_OK : DSA_ERROR, &err);

    t = find(st, "tokens", 0);
    f->n = (uint32_t) t->shape[0];
    f->tokens = malloc(t->size);
    assert_non_null(f->tokens);
    memcpy(f->tokens, t->data, t->size);

    t = find(st, "greedy", 0);
    assert_in_range(t->size, 4, sizeof(f->greedy));
    memcpy(f->greedy, t->data, t->size);
    f->n_greedy = (uint32_t) t->shape[0];
    memcpy(&f->greedy_start, find(st, "greedy_prompt_len", 4)->data, 4);
    dsa_st_close(st);

    f->vocab = f->weights->config.vocab_size;
    f->whole = calloc(f->n, f->vocab * sizeof(float));
    f->logits = calloc(f->n, f->vocab * sizeof(float));
    assert_true(f->whole != NULL && f->logits != NULL);

    f->model = model_open(f, precision, 512, 0);
    assert_int_equal(dsa_model_pages(f->model), 64);

    for (i = 0; i < 16; i++) {
        f->pages[i] = i;
    }
}


static inline void
fixture_close(fixture_t *f)
{
    dsa_model_close(f->model);
    dsa_weights_close(f->weights);
    free(f->tokens);
    free(f->whole);
    free(f->logits);
}


static inline void
run(fixture_t *f, const uint32_t *tokens, uint32_t start, uint32_t n,
    const uint32_t *pages, float *logits)
{
    dsa_err_t   err;
    dsa_rows_t  rows;

    memset(&rows, 0, sizeof(rows));
    rows.tokens = tokens + start;
    rows.start = start;
    rows.n = n;
    rows.pages = pages;
    rows.n_logits = logits != NULL ? n : 0;

    must(dsa_model_forward(f->model, &rows, 1,
                           logits != NULL
                           ? logits + (uint64_t) start * f->vocab : NULL,
                           &err),
         &err);
}


#endif /* _DSA_T_GOLDEN_H_INCLUDED_ */
