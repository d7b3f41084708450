
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bench/bench.h"
#include "bench/engine.h"
#include "engine/cuda/group.h"
#include "engine/cuda/rank.h"
#include "engine/cuda/weights.h"
#include "kernels/attention/cache.h"


static int dsa_bench_options(dsa_bench_engine_t *e, int argc, char **argv);
static int dsa_bench_fit(dsa_bench_engine_t *e, dsa_err_t *err);
static int dsa_bench_gpus(dsa_bench_engine_t *e, dsa_bench_result_t result[2],
    uint32_t gpus, dsa_err_t *err);
static int dsa_bench_model(dsa_bench_engine_t *e, dsa_bench_result_t *result,
    uint32_t gpus, uint32_t layers, dsa_err_t *err);
static int dsa_bench_open(dsa_bench_engine_t *e, dsa_err_t *err);
static void dsa_bench_close(dsa_bench_engine_t *e);


const uint32_t  dsa_bench_prompt[DSA_BENCH_PROMPTS] = {
    1024, 4096, 16384, 32768, 131072
};

const uint32_t  dsa_bench_batch[DSA_BENCH_BATCHES] = {
    1, 4, 8, 16, 32, 64, 128, 256, 512
};

const uint32_t  dsa_bench_context[DSA_BENCH_CONTEXTS] = {
    1024, 8192, 65536
};


int
dsa_bench_engine(int argc, char **argv, const char *usage)
{
    int                 rc;
    dsa_err_t           err;
    dsa_bench_engine_t  e;
    dsa_bench_result_t  one[2], many[2];

    memset(&e, 0, sizeof(e));

    rc = dsa_bench_options(&e, argc, argv);

    if (rc != DSA_OK) {
        (void) fputs(rc == DSA_AGAIN ? "" : usage, stderr);
        return 2;
    }

    if (e.gpus > 1) {
        dsa_cuda_load_all();
    }

    rc = dsa_bench_fit(&e, &err);

    if (rc == DSA_OK) {
        (void) printf("Random weights, %u layers of which %u are dense; an "
                      "MoE layer is the difference to %u layers.\n", e.layers,
                      e.config.first_k_dense_replace,
                      e.config.first_k_dense_replace + 1);

    }

    memset(one, 0, sizeof(one));

    if (rc == DSA_OK && (e.gpus == 1 || e.one)) {
        rc = dsa_bench_gpus(&e, one, 1, &err);

        if (rc == DSA_OK) {
            rc = dsa_bench_tables(&e, &one[0], &one[1], &one[1], &err);
        }
    }

    if (rc == DSA_OK && e.gpus > 1) {
        rc = dsa_bench_gpus(&e, many, e.gpus, &err);

        if (rc == DSA_OK) {
            rc = dsa_bench_tables(&e, &many[0], &many[1], &one[1], &err);
        }
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


/*
 * The model is measured with all its layers, and with its dense layers and one
 * more.  The difference is the time of the other layers, without embedding,
 * head and sampling.
 */

static int
dsa_bench_gpus(dsa_bench_engine_t *e, dsa_bench_result_t result[2],
    uint32_t gpus, dsa_err_t *err)
{
    uint32_t  few;

    memset(result, 0, 2 * sizeof(dsa_bench_result_t));
    few = e->config.first_k_dense_replace + 1;

    if (few < e->layers
        && dsa_bench_model(e, &result[0], gpus, few, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    return dsa_bench_model(e, &result[1], gpus, e->layers, err);
}


static int
dsa_bench_model(dsa_bench_engine_t *e, dsa_bench_result_t *result,
    uint32_t gpus, uint32_t layers, dsa_err_t *err)
{
    int  rc;

    result->layers = layers;
    result->gpus = gpus;
    result->attention = gpus > 1 ? e->attention : DSA_ATTENTION_DATA;
    e->result = result;

    rc = dsa_bench_open(e, err);

    if (rc == DSA_OK && e->prefill) {
        rc = dsa_bench_prefill(e, err);
    }

    if (rc == DSA_OK && e->decode) {
        rc = dsa_bench_decode(e, err);
    }

    if (rc == DSA_OK && e->drafts != 0) {
        rc = dsa_bench_drafts(e, err);
    }

    if (rc == DSA_OK && e->mixed) {
        rc = dsa_bench_mixed(e, err);
    }

    dsa_bench_close(e);

    return rc;
}


static void
dsa_bench_close(dsa_bench_engine_t *e)
{
    if (e->backend != NULL) {
        e->backend->close(e->backend);
        e->backend = NULL;
    }

    free(e->tokens);
    free(e->pages);
    free(e->seq);
    free(e->sample);
    free(e->accept);
    free(e->next);
    free(e->n_next);
    free(e->sampling);

    e->sampling = NULL;
    e->accept = NULL;
    e->next = NULL;
    e->n_next = NULL;
    e->tokens = NULL;
    e->pages = NULL;
    e->seq = NULL;
    e->sample = NULL;
}


static int
dsa_bench_number(uint32_t *n, const char *text, uint32_t most)
{
    char           *end;
    unsigned long   v;

    v = strtoul(text, &end, 10);
    *n = (uint32_t) v;

    return *end == '\0' && v != 0 && v <= most ? DSA_OK : DSA_ERROR;
}


static int
dsa_bench_option(dsa_bench_engine_t *e, int c, const char *value)
{
    switch (c) {

    case 'm':
        e->model = value;
        return DSA_OK;

    case 'g':
        return dsa_bench_number(&e->gpus, value, DSA_MAX_GPUS);

    case 'a':
        e->attention = strcmp(value, "tensor") == 0 ? DSA_ATTENTION_TENSOR
                                                    : DSA_ATTENTION_DATA;

        return e->attention == DSA_ATTENTION_TENSOR
               || strcmp(value, "data") == 0 ? DSA_OK : DSA_ERROR;

    case 'l':
        return dsa_bench_number(&e->layers, value, 1024);

    case 'p':
        e->prefill = 1;

        return value == NULL || sscanf(value, "%u", &e->tokens_only) == 1
               ? DSA_OK : DSA_ERROR;

    case 'd':
        e->decode = 1;

        return value == NULL
               || (sscanf(value, "%ux%u", &e->batch_only, &e->context_only)
                   == 2
                   && e->batch_only <= dsa_bench_batch[DSA_BENCH_BATCHES - 1])
               ? DSA_OK : DSA_ERROR;

    case 'x':
        e->mixed = 1;

        return value == NULL
               || sscanf(value, "%ux%u", &e->mixed_rows, &e->mixed_context)
                  == 2
               ? DSA_OK : DSA_ERROR;

    case 'D':
        return dsa_bench_shares(e->accepted, &e->drafts, value);

    default:
        return DSA_ERROR;
    }
}


/* DSA_AGAIN: an option was wrong, and the error is on stderr. */

static int
dsa_bench_options(dsa_bench_engine_t *e, int argc, char **argv)
{
    int  c;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "gpus", required_argument, NULL, 'g' },
        { "attention", required_argument, NULL, 'a' },
        { "layers", required_argument, NULL, 'l' },
        { "prefill", optional_argument, NULL, 'p' },
        { "decode", optional_argument, NULL, 'd' },
        { "drafts", required_argument, NULL, 'D' },
        { "mixed", optional_argument, NULL, 'x' },
        { NULL, 0, NULL, 0 }
    };

    optind = 1;
    e->gpus = 1;
    e->mixed_context = dsa_bench_context[0];

    for ( ;; ) {
        c = dsa_option("dsa bench engine", argc, argv, "", options);

        if (c == -1) {
            break;
        }

        if (c == '?') {
            return DSA_AGAIN;
        }

        if (dsa_bench_option(e, c, optarg) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    if (!e->prefill && !e->decode && e->drafts == 0 && !e->mixed) {
        e->prefill = 1;
        e->decode = 1;
    }

    e->seqs = e->batch_only > DSA_BENCH_SEQS ? e->batch_only : DSA_BENCH_SEQS;

    if (e->mixed && e->seqs < DSA_BENCH_MIXED) {
        e->seqs = DSA_BENCH_MIXED;
    }

    return e->model != NULL && optind == argc ? DSA_OK : DSA_ERROR;
}


/*
 * Chooses as many layers as leave memory for the pages of the largest
 * measurement on one GPU.  More layers, if the caller has chosen them, are
 * measured on several GPUs only.
 */

static int
dsa_bench_fit(dsa_bench_engine_t *e, dsa_err_t *err)
{
    int                 rc;
    size_t              left, all;
    uint64_t            tokens, page;
    dsa_cache_t         cache;
    dsa_shard_t         shard;
    dsa_model_config_t  config;

    if (dsa_model_config_read(&config, e->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    e->config = config;
    e->context = config.max_position_embeddings;

    rc = cudaMemGetInfo(&left, &all);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    tokens = (uint64_t) DSA_BENCH_SEQS
             * dsa_bench_context[DSA_BENCH_CONTEXTS - 1];

    if (dsa_shard_init(&shard, &config, 0, 1, DSA_ATTENTION_DATA, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* a tenth for workspace, graphs and the driver */

    left = left / 10 * 9;

    if (e->layers != 0) {
        dsa_model_config_resize(&config, e->layers);
        e->one = dsa_cuda_weights_size(&config, &shard, 0) < left;

        return DSA_OK;
    }

    e->one = 1;

    for (e->layers = config.num_hidden_layers; e->layers > 1; e->layers--) {
        dsa_model_config_resize(&config, e->layers);

        dsa_cuda_cache_layout(&cache, &config, 0,
                              dsa_model_config_dense(&config));
        page = tokens / DSA_PAGE_TOKENS * cache.page;

        if (dsa_cuda_weights_size(&config, &shard, 0) + page < left) {
            break;
        }
    }

    return DSA_OK;
}


static int
dsa_bench_open(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t                     outputs;
    uint32_t                   i, seqs;
    uint64_t                   n;
    dsa_backend_conf_t         conf;
    const dsa_bench_result_t  *r;

    memset(&conf, 0, sizeof(conf));
    r = e->result;

    conf.model = e->model;
    conf.random = 1;
    conf.layers = r->layers;
    conf.context = DSA_CUDA_CONTEXT;
    conf.precision = DSA_SERVED;
    conf.gpus = r->gpus;
    conf.attention = r->attention;
    conf.max_tokens = DSA_BENCH_TOKENS;
    conf.max_seqs = e->seqs;
    conf.drafts = e->drafts;
    conf.allowed = UINT32_MAX;

    if (r->attention == DSA_ATTENTION_DATA) {
        conf.max_tokens *= r->gpus;
    }

    for (i = 0; i < r->gpus; i++) {
        conf.gpu[i] = i;
    }

    e->backend = dsa_backend_cuda_open(&conf, err);

    if (e->backend == NULL) {
        return DSA_ERROR;
    }

    seqs = e->backend->ranks * e->seqs;
    n = (e->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    e->tokens = malloc((e->context + seqs) * sizeof(uint32_t));
    e->pages = malloc(seqs * n * sizeof(uint32_t));
    e->seq = calloc(seqs, sizeof(dsa_batch_seq_t));
    outputs = 2 * (size_t) seqs * e->backend->max_outputs;
    e->sample = calloc(outputs, sizeof(dsa_sample_t));
    e->accept = calloc(2 * (size_t) seqs, sizeof(uint32_t));
    e->next = calloc(outputs, sizeof(uint32_t));
    e->n_next = calloc(2 * (size_t) seqs, sizeof(uint32_t));
    e->sampling = calloc(seqs, sizeof(dsa_sampling_t));

    if (e->tokens == NULL || e->pages == NULL || e->seq == NULL
        || e->sample == NULL || e->accept == NULL || e->next == NULL
        || e->n_next == NULL || e->sampling == NULL)
    {
        return dsa_error(err, "no memory for %u sequences", seqs);
    }

    for (i = 0; i < e->context + seqs; i++) {
        e->tokens[i] = (uint32_t) ((uint64_t) i * 2654435761U
                                   % e->backend->config.vocab_size);
    }

    for (i = 0; i < seqs; i++) {
        e->sampling[i].temperature = 1;
        e->sampling[i].top_p = 0.95f;
        e->sampling[i].seed = i;
    }

    return DSA_OK;
}
