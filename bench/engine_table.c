
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <string.h>

#include "bench/engine.h"
#include "kernels/core/cuda.h"


/* The times of one measurement, and how many tokens they are for. */

typedef struct {
    double              few;
    double              all;
    double              one;            /* on one GPU; 0: not measured */
    double              tokens;
    double              one_tokens;
} dsa_bench_times_t;


/* A sum of bounds over the steps of a measurement, in seconds. */

typedef struct {
    double              step;
    double              layer;          /* of one MoE layer */
    const char         *limit;          /* of the last step's MoE layer */
} dsa_bench_bounds_t;


static int
dsa_bench_step_load(dsa_bound_step_t *step, const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r, uint32_t tokens)
{
    step->ranks = r->gpus;
    step->attention = r->attention;
    step->record = dsa_cuda_record(dsa_model_config_dense(&e->config));

    return dsa_bench_load(&step->load, &e->config, tokens,
                          r->attention == DSA_ATTENTION_DATA ? r->gpus : 1);
}


/* Adds the bounds of a step with so many sampled tokens on a GPU. */

static void
dsa_bench_add_bound(dsa_bench_bounds_t *sum, const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r, const dsa_bound_step_t *step, double samples)
{
    uint32_t      few;
    const char   *limit;
    dsa_bound_t   rest, all;

    memset(&rest, 0, sizeof(rest));
    memset(&all, 0, sizeof(all));

    /* an MoE layer: the mean of those behind the first one, as measured */

    few = e->config.first_k_dense_replace + 1;

    dsa_bound_layers(&rest, &e->config, step, few, r->layers);
    dsa_bound_layers(&all, &e->config, step, 0, r->layers);

    if (samples > 0) {
        dsa_bound_head(&all, &e->config, step, samples);
    }

    sum->step += dsa_bound_seconds(&all, &limit);

    if (few < r->layers) {
        sum->layer += dsa_bound_seconds(&rest, &sum->limit)
                      / (r->layers - few);
    }
}


/*
 * A prompt on each GPU or for all of them.  Of a split prompt the GPU with the
 * last tokens has most to do.
 */

static int
dsa_bench_prefill_bounds(dsa_bench_bounds_t *sum, const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r, uint32_t tokens, int split)
{
    uint32_t          at, n, most, gathered;
    dsa_bound_step_t  step;

    memset(sum, 0, sizeof(dsa_bench_bounds_t));

    gathered = 0;
    most = split ? DSA_BENCH_TOKENS * r->gpus : DSA_BENCH_TOKENS;
    step.prefill = 1;

    for (at = 0; at < tokens; at += n) {
        n = tokens - at < most ? tokens - at : most;
        step.tokens = split ? (double) n / r->gpus : n;
        step.sequences = 1;
        step.start = at + n - step.tokens;

        if (gathered != n) {
            gathered = n;

            if (dsa_bench_step_load(&step, e, r,
                                    split
                                    || r->attention == DSA_ATTENTION_TENSOR
                                    ? n : n * r->gpus)
                != DSA_OK)
            {
                return DSA_ERROR;
            }
        }

        dsa_bench_add_bound(sum, e, r, &step, at + n == tokens);
    }

    return DSA_OK;
}


static int
dsa_bench_decode_bounds(dsa_bench_bounds_t *sum, const dsa_bench_engine_t *e,
    const dsa_bench_result_t *r, uint32_t batch, uint32_t context)
{
    dsa_bound_step_t  step;

    memset(sum, 0, sizeof(dsa_bench_bounds_t));

    step.prefill = 0;
    step.tokens = batch;
    step.sequences = batch;
    step.start = context;

    if (dsa_bench_step_load(&step, e, r,
                            r->attention == DSA_ATTENTION_DATA
                            ? batch * r->gpus : batch)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    dsa_bench_add_bound(sum, e, r, &step, batch);

    return DSA_OK;
}


/*
 * "ms | tokens/s | times 1 GPU | times its bound | us an MoE layer | limit |
 * times its bound |"
 */

static void
dsa_bench_row_times(const dsa_bench_times_t *t, const dsa_bench_bounds_t *b,
    uint32_t layers)
{
    double  layer;

    (void) printf(" %.3f | %.0f |", t->all * 1e3, t->tokens / t->all);

    if (t->one > 0) {
        (void) printf(" %.2f |", t->tokens / t->all * t->one / t->one_tokens);

    } else {
        (void) printf(" |");
    }

    (void) printf(" %.2f |", t->all / b->step);

    if (t->few == 0 || layers == 0) {
        (void) printf(" | | |\n");
        return;
    }

    layer = (t->all - t->few) / layers;
    (void) printf(" %.1f | %s | %.2f |\n", layer * 1e6, b->limit,
                  layer / b->layer);
}


static int
dsa_bench_prefill_rows(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *few, const dsa_bench_result_t *all,
    const dsa_bench_result_t *one, int split)
{
    size_t              i;
    uint32_t            n, prompts;
    dsa_bench_times_t   t;
    dsa_bench_bounds_t  b;

    prompts = !split && all->attention == DSA_ATTENTION_DATA ? all->gpus : 1;

    for (i = 0; i < DSA_BENCH_PROMPTS; i++) {
        n = dsa_bench_prompt[i];

        t.few = split ? few->split[i] : few->prefill[i];
        t.all = split ? all->split[i] : all->prefill[i];
        t.one = one->prefill[i];
        t.tokens = (double) n * prompts;
        t.one_tokens = n;

        if (t.all == 0) {
            continue;
        }

        if (dsa_bench_prefill_bounds(&b, e, all, n, split) != DSA_OK) {
            return DSA_ERROR;
        }

        (void) printf("| %s | %u |", split ? "one prompt, split"
                      : prompts > 1 ? "a prompt on each GPU" : "prompt", n);
        dsa_bench_row_times(&t, &b, few->layers != 0
                                    ? all->layers - few->layers : 0);
    }

    return DSA_OK;
}


static int
dsa_bench_decode_rows(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *few, const dsa_bench_result_t *all,
    const dsa_bench_result_t *one)
{
    size_t              i, j;
    uint32_t            batch, context;
    dsa_bench_times_t   t;
    dsa_bench_bounds_t  b;

    for (i = 0; i < DSA_BENCH_CONTEXTS; i++) {
        for (j = 0; j < DSA_BENCH_BATCHES; j++) {
            batch = dsa_bench_batch[j];
            context = dsa_bench_context[i];

            t.few = few->decode[i][j];
            t.all = all->decode[i][j];
            t.one = one->decode[i][j];
            t.one_tokens = batch;
            t.tokens = all->attention == DSA_ATTENTION_DATA
                       ? (double) batch * all->gpus : batch;

            if (t.all == 0) {
                continue;
            }

            if (dsa_bench_decode_bounds(&b, e, all, batch, context)
                != DSA_OK)
            {
                return DSA_ERROR;
            }

            (void) printf("| %.0f | %u |", t.tokens, context);
            dsa_bench_row_times(&t, &b, few->layers != 0
                                        ? all->layers - few->layers : 0);
        }
    }

    return DSA_OK;
}


int
dsa_bench_tables(const dsa_bench_engine_t *e, const dsa_bench_result_t *few,
    const dsa_bench_result_t *all, const dsa_bench_result_t *one,
    dsa_err_t *err)
{
    char  gpus[32];

    (void) snprintf(gpus, sizeof(gpus), "%u GPU%s%s", all->gpus,
                    all->gpus == 1 ? "" : "s, ",
                    all->gpus == 1 ? ""
                    : all->attention == DSA_ATTENTION_DATA ? "data"
                                                           : "tensor");

    if (e->prefill) {
        (void) printf("\n| prefill, %s | tokens | ms | tokens/s | times 1 GPU "
                      "| times its bound | us an MoE layer | limit "
                      "| times its bound |\n"
                      "|---|---|---|---|---|---|---|---|---|\n", gpus);

        if (dsa_bench_prefill_rows(e, few, all, one, 0) != DSA_OK
            || dsa_bench_prefill_rows(e, few, all, one, 1) != DSA_OK)
        {
            return dsa_error(err, "no memory for samples of routing");
        }
    }

    if (e->decode) {
        (void) printf("\n| decode, %s, batch | context | ms a step | tokens/s "
                      "| times 1 GPU | times its bound | us an MoE layer "
                      "| limit | times its bound |\n"
                      "|---|---|---|---|---|---|---|---|---|\n", gpus);

        if (dsa_bench_decode_rows(e, few, all, one) != DSA_OK) {
            return dsa_error(err, "no memory for samples of routing");
        }
    }

    if (e->drafts != 0) {
        dsa_bench_drafts_table(e, all);
    }

    if (e->mixed) {
        dsa_bench_mixed_table(e, all);
    }

    (void) fflush(stdout);

    return DSA_OK;
}
