
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/options.h"
#include "bench/bench.h"
#include "bench/bits.h"


#define DSA_BITS_LAYERS     6
#define DSA_BITS_ROUNDS     10
#define DSA_BITS_CONTEXT    2000


static int dsa_bits_open(dsa_bits_t *b, dsa_err_t *err);
static int dsa_bits_times(dsa_bits_t *b, dsa_err_t *err);
static int dsa_bits_forms(dsa_bits_t *b, dsa_err_t *err);


const uint32_t  dsa_bits_batch[DSA_BITS_BATCHES] = { 1, 8, 32, 128 };


int
dsa_bench_bits(int argc, char **argv, const char *usage)
{
    int          c, rc, layers;
    dsa_err_t    err;
    dsa_bits_t  *b;
    const char  *model;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "layers", required_argument, NULL, 'l' },
        { NULL, 0, NULL, 0 }
    };

    model = NULL;
    layers = DSA_BITS_LAYERS;

    while ((c = dsa_option("dsa bench bits", argc, argv, "", options)) != -1) {
        if (c == '?') {
            return 2;
        }

        if (c == 'm') {
            model = optarg;

        } else {
            layers = atoi(optarg);
        }
    }

    if (model == NULL || layers < 1 || optind != argc) {
        (void) fputs(usage, stderr);
        return 2;
    }

    b = calloc(1, sizeof(dsa_bits_t));

    if (b == NULL) {
        (void) fputs("dsa bench: no memory\n", stderr);
        return 1;
    }

    b->model = model;
    b->layers = (uint32_t) layers;

    rc = dsa_bits_open(b, &err);
    rc = rc != DSA_OK ? rc : dsa_bits_times(b, &err);
    rc = rc != DSA_OK ? rc : dsa_bits_steps(b, &err);
    rc = rc != DSA_OK ? rc : dsa_bits_forms(b, &err);

    if (b->backend != NULL) {
        b->backend->close(b->backend);
    }

    rc = rc != DSA_OK ? rc : dsa_bits_ops(b, &err);

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    free(b->tokens);
    free(b->pages);
    free(b);

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


static int
dsa_bits_open(dsa_bits_t *b, dsa_err_t *err)
{
    uint32_t            i, n;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    conf.model = b->model;
    conf.random = 1;
    conf.layers = b->layers;
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.max_tokens = DSA_BITS_TOKENS;
    conf.max_seqs = DSA_BITS_SEQS;
    conf.allowed = UINT32_MAX;
    conf.drafts = DSA_BITS_DRAFTS;

    b->backend = dsa_backend_cuda_open(&conf, err);

    if (b->backend == NULL) {
        return DSA_ERROR;
    }

    n = DSA_BITS_FAR + DSA_BITS_SEQS;
    b->tokens = malloc(n * sizeof(uint32_t));
    b->pages = malloc(b->backend->pages * sizeof(uint32_t));

    if (b->tokens == NULL || b->pages == NULL) {
        return dsa_error(err, "no memory for the tokens and pages");
    }

    for (i = 0; i < n; i++) {
        b->tokens[i] = (uint32_t) ((uint64_t) i * 2654435761U
                                   % b->backend->config.vocab_size);
    }

    for (i = 0; i < b->backend->pages; i++) {
        b->pages[i] = i;
    }

    if (b->backend->pages < (DSA_BITS_SEQS * DSA_BITS_LENGTH + DSA_BITS_FAR)
                            / DSA_PAGE_TOKENS)
    {
        return dsa_error(err, "%u pages are too few; use fewer layers",
                         b->backend->pages);
    }

    b->dense = b->backend->config.first_k_dense_replace;
    b->sampling.top_p = 1;
    b->sampling.logprobs = 1;
    b->sampling.top_logprobs = DSA_SAMPLE_MAX_TOP;

    return DSA_OK;
}


dsa_batch_seq_t *
dsa_bits_seq(dsa_bits_t *b, uint32_t k, uint32_t s, uint32_t start,
    uint32_t n, uint32_t prompt)
{
    dsa_batch_seq_t  *seq;

    seq = &b->seq[k];
    memset(seq, 0, sizeof(dsa_batch_seq_t));

    seq->tokens = b->tokens + s;
    seq->start = start;
    seq->n_input = n;
    seq->n_prompt = prompt;
    seq->input_from = DSA_INPUT_KNOWN;
    seq->pages = b->pages + s * (DSA_BITS_LENGTH / DSA_PAGE_TOKENS);
    seq->n_pages = (start + n + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    seq->sampling = &b->sampling;
    seq->sample = &b->sample[k];

    return seq;
}


int
dsa_bits_step(dsa_bits_t *b, uint32_t n, dsa_err_t *err)
{
    if (b->backend->start(b->backend, b->seq, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return b->backend->wait(b->backend, err);
}


/* Sets *us to the time of the fastest of some equal steps. */

static int
dsa_bits_time(dsa_bits_t *b, uint32_t n, double *us, dsa_err_t *err)
{
    double           t;
    uint32_t         i;
    struct timespec  from, to;

    for (i = 0; i < DSA_BITS_ROUNDS; i++) {
        (void) clock_gettime(CLOCK_MONOTONIC, &from);

        if (dsa_bits_step(b, n, err) != DSA_OK) {
            return DSA_ERROR;
        }

        (void) clock_gettime(CLOCK_MONOTONIC, &to);

        t = (double) (to.tv_sec - from.tv_sec) * 1e6
            + (double) (to.tv_nsec - from.tv_nsec) / 1e3;
        *us = i == 0 || t < *us ? t : *us;
    }

    return DSA_OK;
}


static int
dsa_bits_times(dsa_bits_t *b, dsa_err_t *err)
{
    uint32_t  i, j;

    (void) printf("Random weights, %u layers of which %u are dense.\n\n"
                  "| step | us |\n|---|---|\n", b->layers, b->dense);

    for (i = 0; i < DSA_BITS_BATCHES; i++) {
        for (j = 0; j < dsa_bits_batch[i]; j++) {
            (void) dsa_bits_seq(b, j, j, DSA_BITS_CONTEXT, 1,
                                DSA_BITS_CONTEXT);
        }

        if (dsa_bits_time(b, dsa_bits_batch[i], &b->decode[i], err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }

        (void) printf("| decode, %u streams at 2K | %.0f |\n",
                      dsa_bits_batch[i], b->decode[i]);
    }

    (void) dsa_bits_seq(b, 0, 0, 0, DSA_BITS_PROMPT, DSA_BITS_PROMPT);

    if (dsa_bits_time(b, 1, &b->prefill, err) != DSA_OK) {
        return DSA_ERROR;
    }

    (void) printf("| a prompt of %u tokens | %.0f |\n", DSA_BITS_PROMPT,
                  b->prefill);

    return DSA_OK;
}


/*
 * Whole steps of prompts that MHA prefill computes, and the same by absorbed
 * MQA: tokens after the prompt are computed that way.
 */

static int
dsa_bits_forms(dsa_bits_t *b, dsa_err_t *err)
{
    size_t  i;
    double  mha, mqa;

    static const uint32_t  tokens[] = { 256, 512, 1024, 2048, 4096 };

    (void) printf("\nThe form of attention follows the length of the prompt. "
                  "Without it all is absorbed MQA:\n\n"
                  "| a prompt in one step | MHA, us | absorbed MQA, us "
                  "| ratio |\n|---|---|---|---|\n");

    for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        (void) dsa_bits_seq(b, 0, 0, 0, tokens[i], tokens[i]);

        if (dsa_bits_time(b, 1, &mha, err) != DSA_OK) {
            return DSA_ERROR;
        }

        (void) dsa_bits_seq(b, 0, 0, 0, tokens[i], 0);

        if (dsa_bits_time(b, 1, &mqa, err) != DSA_OK) {
            return DSA_ERROR;
        }

        (void) printf("| %u tokens | %.0f | %.0f | %.3f |\n", tokens[i], mha,
                      mqa, mqa / mha);
        (void) fflush(stdout);
    }

    return DSA_OK;
}
