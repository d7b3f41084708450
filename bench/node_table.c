
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>

#include "bench/node.h"


#define DSA_NODE_PRICE      2.0         /* USD for a GPU and an hour */


static const uint32_t  dsa_node_batch[] = { 1, 8, 32, 128, 256, 512, 1024 };

static const uint32_t  dsa_node_context[] = { 1024, 8192, 32768, 131072 };


/* Batches and contexts of the costs: the largest batch that fits is used. */

static const uint32_t  dsa_node_cost_batch[] = {
    1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32, 16, 8
};

static const uint32_t  dsa_node_cost_context[] = {
    1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072
};

/*
 * Positions of prefill.  A model with an indexer computes the first step as a
 * prompt of its own, by MHA prefill, and the others by absorbed MQA.
 */

static const uint32_t  dsa_node_cost_start[] = {
    0, 4096, 8192, 16384, 32768, 61440, 94208, 126976
};


#define dsa_node_size(a)    (sizeof(a) / sizeof((a)[0]))


static const char *
dsa_node_name(const dsa_node_t *n)
{
    return n->attention == DSA_ATTENTION_DATA ? "data" : "tensor";
}


static const char *
dsa_node_without(const dsa_node_t *n, const dsa_node_exchange_t *x)
{
    return x == NULL && n->gpus > 1 ? ", without exchanges" : "";
}


/* USD for a million tokens of the node. */

static double
dsa_node_cost(const dsa_node_t *n, double tokens, double seconds)
{
    return n->gpus * DSA_NODE_PRICE / 3600 * seconds / tokens * 1e6;
}


/*
 * A row of the CSV: model, format of latents, work, attention, tokens of a
 * step, context or position, ms, ms of it for exchanges, bound in ms, tokens/s,
 * USD for a million tokens.
 */

static void
dsa_node_csv(FILE *csv, const dsa_node_t *n, const char *work,
    uint32_t position, const dsa_node_time_t *t, double tokens)
{
    if (csv == NULL) {
        return;
    }

    (void) fprintf(csv, "%s,%s,%s,%s,%u,%u,%.4f,%.4f,%.4f,%.1f,%.4f\n",
                   n->model, n->kv_bf16 ? "bf16" : "fp8", work,
                   dsa_node_name(n), n->step.batch, position, t->total * 1e3,
                   t->exchange * 1e3, t->bound * 1e3, tokens / t->total,
                   dsa_node_cost(n, tokens, t->total));
    (void) fflush(csv);
}


/* 1: a GPU of the node has room for its sequences and some more tokens. */

static int
dsa_node_fits(const dsa_node_t *n, const dsa_node_step_t *step)
{
    return step->tokens * ((uint64_t) step->keys + DSA_PAGE_TOKENS)
           <= n->capacity && step->keys <= n->context;
}


int
dsa_node_decode_table(dsa_node_t *n, const dsa_node_exchange_t *x, FILE *csv,
    dsa_err_t *err)
{
    size_t           i, j;
    dsa_node_step_t  step;
    dsa_node_time_t  t;

    (void) printf("\nDecode, attention %s%s; a GPU has room for %.2f M tokens "
                  "of KV.\n\n"
                  "| batch | context | ms a step | exchange, ms | tokens/s "
                  "| bound, ms | limit | times its bound |\n"
                  "|---|---|---|---|---|---|---|---|\n", dsa_node_name(n),
                  dsa_node_without(n, x), (double) n->capacity * 1e-6);

    for (i = 0; i < dsa_node_size(dsa_node_batch); i++) {
        for (j = 0; j < dsa_node_size(dsa_node_context); j++) {
            dsa_node_decode(&step, n, dsa_node_batch[i], dsa_node_context[j]);

            if (!dsa_node_fits(n, &step)) {
                continue;
            }

            if (dsa_node_input(n, &step, err) != DSA_OK
                || dsa_node_measure(&t, n, x, 1, err) != DSA_OK)
            {
                return DSA_ERROR;
            }

            (void) printf("| %u | %u | %.3f | %.3f | %.0f | %.3f | %s "
                          "| %.2f |\n", step.batch, step.keys, t.total * 1e3,
                          t.exchange * 1e3, step.batch / t.total,
                          t.bound * 1e3, t.limit, t.total / t.bound);
            (void) fflush(stdout);

            dsa_node_csv(csv, n, "decode", step.keys, &t, step.batch);
        }
    }

    return DSA_OK;
}


/*
 * A prompt on each GPU, all of the same length, in steps of DSA_NODE_TOKENS
 * tokens on each.
 */

static int
dsa_node_prompt(dsa_node_time_t *sum, dsa_node_t *n,
    const dsa_node_exchange_t *x, FILE *csv, uint32_t prompt, dsa_err_t *err)
{
    int              last;
    uint32_t         at, tokens;
    dsa_node_step_t  step;
    dsa_node_time_t  t;

    sum->exchange = 0;
    sum->total = 0;
    sum->bound = 0;

    for (at = 0; at < prompt; at += tokens) {
        tokens = prompt - at < DSA_NODE_TOKENS ? prompt - at : DSA_NODE_TOKENS;
        last = at + tokens == prompt;
        dsa_node_prefill(&step, n, tokens, at, prompt);

        if (dsa_node_input(n, &step, err) != DSA_OK
            || dsa_node_measure(&t, n, x, last, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        sum->exchange += t.exchange;
        sum->total += t.total;
        sum->bound += t.bound;
        sum->limit = t.limit;

        dsa_node_csv(csv, n, step.mha ? "prefill-mha" : "prefill", at, &t,
                     step.batch);
    }

    return DSA_OK;
}


int
dsa_node_prefill_table(dsa_node_t *n, const dsa_node_exchange_t *x, FILE *csv,
    dsa_err_t *err)
{
    double           tokens;
    size_t           i;
    dsa_node_time_t  t;

    static const uint32_t  prompt[] = { 4096, 32768 };

    (void) printf("\nPrefill, attention %s%s, a prompt on each GPU, steps of "
                  "%u tokens.\n\n"
                  "| prompt | ms | exchange, ms | tokens/s | bound, ms "
                  "| limit | times its bound |\n"
                  "|---|---|---|---|---|---|---|\n", dsa_node_name(n),
                  dsa_node_without(n, x), DSA_NODE_TOKENS * n->gpus);

    for (i = 0; i < dsa_node_size(prompt); i++) {
        if (dsa_node_prompt(&t, n, x, csv, prompt[i], err) != DSA_OK) {
            return DSA_ERROR;
        }

        tokens = (double) prompt[i] * n->gpus;

        (void) printf("| %u | %.1f | %.1f | %.0f | %.1f | %s | %.2f |\n",
                      prompt[i], t.total * 1e3, t.exchange * 1e3,
                      tokens / t.total, t.bound * 1e3, t.limit,
                      t.total / t.bound);
        (void) fflush(stdout);

        dsa_node_csv(csv, n, "prompt", prompt[i], &t, tokens);
    }

    return DSA_OK;
}


static void
dsa_node_cost_row(const dsa_node_t *n, const char *work, uint32_t position,
    const dsa_node_time_t *t)
{
    (void) printf("| %s | %u | %u | %.2f | %.0f | %.4f |\n", work,
                  n->step.batch, position, t->total * 1e3,
                  n->step.batch / t->total,
                  dsa_node_cost(n, n->step.batch, t->total));
    (void) fflush(stdout);
}


/* The cost of a token at a position: decode by the largest batch that fits. */

int
dsa_node_cost_table(dsa_node_t *n, const dsa_node_exchange_t *x, FILE *csv,
    dsa_err_t *err)
{
    size_t           i, j;
    dsa_node_step_t  step;
    dsa_node_time_t  t;

    (void) printf("\nCost of a million tokens at a position, attention %s%s, "
                  "at %.2f USD for a GPU and an hour.\n\n"
                  "| work | tokens a step | position | ms a step | tokens/s "
                  "| USD |\n|---|---|---|---|---|---|\n", dsa_node_name(n),
                  dsa_node_without(n, x), DSA_NODE_PRICE);

    for (i = 0; i < dsa_node_size(dsa_node_cost_context); i++) {
        for (j = 0; j < dsa_node_size(dsa_node_cost_batch); j++) {
            dsa_node_decode(&step, n, dsa_node_cost_batch[j],
                            dsa_node_cost_context[i]);

            if (dsa_node_fits(n, &step)) {
                break;
            }
        }

        if (dsa_node_input(n, &step, err) != DSA_OK
            || dsa_node_measure(&t, n, x, 1, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        dsa_node_cost_row(n, "decode", step.keys, &t);
        dsa_node_csv(csv, n, "decode-full", step.keys, &t, step.batch);
    }

    for (i = 0; i < dsa_node_size(dsa_node_cost_start); i++) {
        dsa_node_prefill(&step, n, DSA_NODE_TOKENS, dsa_node_cost_start[i],
                         dsa_node_cost_start[i] + DSA_NODE_TOKENS);

        if (dsa_node_input(n, &step, err) != DSA_OK
            || dsa_node_measure(&t, n, x, 0, err) != DSA_OK)
        {
            return DSA_ERROR;
        }

        dsa_node_cost_row(n, "prefill", step.start, &t);
        dsa_node_csv(csv, n, "prefill-at", step.start, &t, step.batch);
    }

    return DSA_OK;
}
