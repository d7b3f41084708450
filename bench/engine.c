
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/gpu.h"
#include "engine/cuda_model.h"


/*
 * Whole steps through the backend, as the scheduler starts them: two under
 * way, decode rows in graphs.  Prefix caches are random, so that a long
 * context costs no prefill.  "ncu --profile-from-start off" sees one turn of a
 * prompt, and one decode step, of each measurement.
 */

#define DSA_BENCH_SEQS      128
#define DSA_BENCH_ROWS      8192
#define DSA_BENCH_WARM      4
#define DSA_BENCH_STEPS     32
#define DSA_BENCH_TURNS     3


typedef struct {
    const char         *model;
    uint32_t            layers;         /* 0: as many as fit */
    int                 prefill;
    int                 decode;
    uint32_t            tokens_only;    /* of the prompts measured; 0: all */
    uint32_t            batch_only;
    uint32_t            context_only;
    dsa_backend_t      *backend;
    uint32_t           *tokens;         /* [context] */
    uint32_t           *pages;          /* [seqs, pages of the context] */
    dsa_batch_seq_t    *seq;            /* [seqs] */
    dsa_sample_t       *sample;         /* [2, seqs] */
    dsa_sampling_t      sampling;
    uint32_t            context;
} dsa_bench_engine_t;


static int dsa_bench_options(dsa_bench_engine_t *e, int argc, char **argv);
static int dsa_bench_open(dsa_bench_engine_t *e, dsa_err_t *err);
static int dsa_bench_prefill(dsa_bench_engine_t *e, dsa_err_t *err);
static int dsa_bench_decode(dsa_bench_engine_t *e, dsa_err_t *err);


static const uint32_t  dsa_bench_prompt[] = {
    1024, 4096, 16384, 32768, 131072
};

static const uint32_t  dsa_bench_batch[] = { 1, 8, 32, 128 };

static const uint32_t  dsa_bench_context[] = { 1024, 8192, 65536 };


#define dsa_bench_count(a)  (sizeof(a) / sizeof((a)[0]))


int
dsa_bench_engine(int argc, char **argv, const char *usage)
{
    int                 rc;
    dsa_err_t           err;
    dsa_bench_engine_t  e;

    memset(&e, 0, sizeof(e));

    if (dsa_bench_options(&e, argc, argv) != DSA_OK) {
        (void) fputs(usage, stderr);
        return 2;
    }

    rc = dsa_bench_open(&e, &err);

    if (rc == DSA_OK && e.prefill) {
        rc = dsa_bench_prefill(&e, &err);
    }

    if (rc == DSA_OK && e.decode) {
        rc = dsa_bench_decode(&e, &err);
    }

    if (rc != DSA_OK) {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    if (e.backend != NULL) {
        e.backend->close(e.backend);
    }

    free(e.tokens);
    free(e.pages);
    free(e.seq);
    free(e.sample);

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


static int
dsa_bench_options(dsa_bench_engine_t *e, int argc, char **argv)
{
    int    c;
    char  *end;

    static const struct option  options[] = {
        { "model", required_argument, NULL, 'm' },
        { "layers", required_argument, NULL, 'l' },
        { "prefill", optional_argument, NULL, 'p' },
        { "decode", optional_argument, NULL, 'd' },
        { NULL, 0, NULL, 0 }
    };

    optind = 1;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {

        case 'm':
            e->model = optarg;
            break;

        case 'l':
            e->layers = (uint32_t) strtoul(optarg, &end, 10);

            if (*end != '\0' || e->layers == 0 || e->layers > 1024) {
                return DSA_ERROR;
            }

            break;

        case 'p':
            e->prefill = 1;

            if (optarg != NULL
                && sscanf(optarg, "%u", &e->tokens_only) != 1)
            {
                return DSA_ERROR;
            }

            break;

        case 'd':
            e->decode = 1;

            if (optarg != NULL
                && sscanf(optarg, "%ux%u", &e->batch_only,
                          &e->context_only) != 2)
            {
                return DSA_ERROR;
            }

            break;

        default:
            return DSA_ERROR;
        }
    }

    if (!e->prefill && !e->decode) {
        e->prefill = 1;
        e->decode = 1;
    }

    return e->model != NULL && optind == argc ? DSA_OK : DSA_ERROR;
}


/* Layers that leave room for the largest measurement's pages. */

static int
dsa_bench_fit(dsa_bench_engine_t *e, dsa_err_t *err)
{
    int          rc;
    size_t       left, all;
    uint64_t     tokens, page;
    dsa_cache_t  cache;
    dsa_shape_t  shape;

    if (dsa_shape_read(&shape, e->model, err) != DSA_OK) {
        return DSA_ERROR;
    }

    e->context = shape.max_position_embeddings;

    rc = cudaMemGetInfo(&left, &all);

    if (rc != 0) {
        return dsa_error(err, "the GPU's memory: %s", dsa_cuda_error(rc));
    }

    tokens = (uint64_t) DSA_BENCH_SEQS
             * dsa_bench_context[dsa_bench_count(dsa_bench_context) - 1];

    if (e->layers != 0) {
        return DSA_OK;
    }

    /* a tenth for workspace, graphs and the driver */

    for (e->layers = shape.num_hidden_layers; e->layers > 1; e->layers--) {
        shape.num_hidden_layers = e->layers;

        if (shape.first_k_dense_replace > e->layers) {
            shape.first_k_dense_replace = e->layers;
        }

        dsa_cache_layout(&cache, 1, e->layers, shape.kv_lora_rank,
                         shape.qk_rope_head_dim, shape.index_head_dim);
        page = tokens / DSA_PAGE_TOKENS * cache.page;

        if (dsa_cuda_weights_size(&shape) + page < left / 10 * 9) {
            break;
        }
    }

    return DSA_OK;
}


static int
dsa_bench_open(dsa_bench_engine_t *e, dsa_err_t *err)
{
    uint32_t            i, seqs;
    uint64_t            n;
    dsa_backend_conf_t  conf;

    if (dsa_bench_fit(e, err) != DSA_OK) {
        return DSA_ERROR;
    }

    memset(&conf, 0, sizeof(conf));

    conf.model = e->model;
    conf.random = 1;
    conf.layers = e->layers;
    conf.precision = DSA_SERVED;
    conf.max_tokens = DSA_BENCH_ROWS;
    conf.max_seqs = DSA_BENCH_SEQS;
    conf.allowed = UINT32_MAX;

    e->backend = dsa_backend_cuda_open(&conf, err);

    if (e->backend == NULL) {
        return DSA_ERROR;
    }

    seqs = DSA_BENCH_SEQS;
    n = (e->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    e->tokens = malloc(e->context * sizeof(uint32_t));
    e->pages = malloc(seqs * n * sizeof(uint32_t));
    e->seq = calloc(seqs, sizeof(dsa_batch_seq_t));
    e->sample = calloc(2 * (size_t) seqs, sizeof(dsa_sample_t));

    if (e->tokens == NULL || e->pages == NULL || e->seq == NULL
        || e->sample == NULL)
    {
        return dsa_error(err, "no memory for %u sequences", seqs);
    }

    for (i = 0; i < e->context; i++) {
        e->tokens[i] = (uint32_t) ((uint64_t) i * 2654435761U
                                   % e->backend->shape.vocab_size);
    }

    e->sampling.temperature = 1;
    e->sampling.top_p = 0.95f;

    (void) printf("Random weights, %u layers (%u dense), %u pages.\n",
                  e->backend->shape.num_hidden_layers,
                  e->backend->shape.first_k_dense_replace,
                  e->backend->pages);

    return DSA_OK;
}


static double
dsa_bench_now(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}


/*
 * Pages scattered as those of a server that ran for long: page i of sequence s
 * is a multiple, by a number that is coprime to all of them.
 */

static void
dsa_bench_seq(dsa_bench_engine_t *e, uint32_t s, uint32_t tokens)
{
    uint32_t  i, n, of;

    n = (tokens + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    of = (e->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;

    for (i = 0; i < n; i++) {
        e->pages[(uint64_t) s * of + i]
            = (uint32_t) (((uint64_t) s * n + i) * 1000003
                          % e->backend->pages);
    }

    memset(&e->seq[s], 0, sizeof(dsa_batch_seq_t));

    e->seq[s].tokens = e->tokens;
    e->seq[s].pages = e->pages + (uint64_t) s * of;
    e->seq[s].follows = DSA_FOLLOWS_NONE;
    e->seq[s].sampling = &e->sampling;
}


/* A prompt from its start in steps of DSA_BENCH_ROWS, then its first token. */

static int
dsa_bench_prompt_time(dsa_bench_engine_t *e, uint32_t tokens, double *seconds,
    dsa_err_t *err)
{
    double            begin;
    uint32_t          at, under;
    dsa_backend_t    *b;
    dsa_batch_seq_t  *s;

    b = e->backend;
    s = &e->seq[0];
    under = 0;

    dsa_bench_seq(e, 0, tokens);
    s->prompt = tokens;
    begin = dsa_bench_now();

    for (at = 0; at < tokens; at += s->n) {
        s->start = at;
        s->n = tokens - at < DSA_BENCH_ROWS ? tokens - at : DSA_BENCH_ROWS;
        s->sampling = at + s->n == tokens ? &e->sampling : NULL;
        s->sample = &e->sample[0];

        if (under == b->depth) {
            if (b->wait(b, err) != DSA_OK) {
                return DSA_ERROR;
            }

            under--;
        }

        if (b->start(b, s, 1, err) != DSA_OK) {
            return DSA_ERROR;
        }

        under++;
    }

    for ( /* void */ ; under != 0; under--) {
        if (b->wait(b, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    *seconds = dsa_bench_now() - begin;

    return DSA_OK;
}


static int
dsa_bench_prefill(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t    i, turn;
    double    t, best;
    uint32_t  n, layers;

    layers = e->backend->shape.num_hidden_layers;

    (void) printf("\n| prefill, tokens | ms | us a token and layer | "
                  "tokens/s, these layers |\n|---|---|---|---|\n");

    for (i = 0; i < dsa_bench_count(dsa_bench_prompt); i++) {
        n = dsa_bench_prompt[i];

        if (e->tokens_only != 0 && n != e->tokens_only) {
            continue;
        }

        if (n > e->context
            || (uint64_t) n > (uint64_t) e->backend->pages * DSA_PAGE_TOKENS)
        {
            continue;
        }

        best = 0;

        for (turn = 0; turn < DSA_BENCH_TURNS; turn++) {
            if (turn + 1 == DSA_BENCH_TURNS) {
                (void) cudaProfilerStart();
            }

            if (dsa_bench_prompt_time(e, n, &t, err) != DSA_OK) {
                return DSA_ERROR;
            }

            (void) cudaProfilerStop();

            best = turn == 0 || t < best ? t : best;
        }

        (void) printf("| %u | %.2f | %.3f | %.0f |\n", n, best * 1e3,
                      best * 1e6 / n / layers, n / best);
        (void) fflush(stdout);
    }

    return DSA_OK;
}


/* Steps of batch sequences, each context tokens long and growing. */

static int
dsa_bench_steps(dsa_bench_engine_t *e, uint32_t batch, uint32_t context,
    double *seconds, dsa_err_t *err)
{
    double          begin;
    uint32_t        i, k;
    dsa_backend_t  *b;

    b = e->backend;
    begin = 0;

    for (i = 0; i < batch; i++) {
        dsa_bench_seq(e, i, context + DSA_BENCH_WARM + DSA_BENCH_STEPS);
    }

    for (k = 0; k < DSA_BENCH_WARM + DSA_BENCH_STEPS; k++) {
        for (i = 0; i < batch; i++) {
            e->seq[i].start = context + k - 1;
            e->seq[i].n = 1;
            e->seq[i].prompt = context - 1;
            e->seq[i].follows = k == 0 ? DSA_FOLLOWS_NONE : i;
            e->seq[i].sample = &e->sample[(k % 2) * DSA_BENCH_SEQS + i];
        }

        if (b->start(b, e->seq, batch, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (k > 0 && b->wait(b, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (k == DSA_BENCH_WARM) {
            begin = dsa_bench_now();
            (void) cudaProfilerStart();

        } else if (k == DSA_BENCH_WARM + 1) {
            (void) cudaProfilerStop();
        }
    }

    if (b->wait(b, err) != DSA_OK) {
        return DSA_ERROR;
    }

    *seconds = (dsa_bench_now() - begin) / DSA_BENCH_STEPS;

    return DSA_OK;
}


static int
dsa_bench_decode(dsa_bench_engine_t *e, dsa_err_t *err)
{
    size_t    i, j;
    double    t;
    uint32_t  batch, context, layers;

    layers = e->backend->shape.num_hidden_layers;

    (void) printf("\n| decode, batch | context | ms a step | us a layer, head "
                  "and sampling in it | tokens/s, these layers |\n"
                  "|---|---|---|---|---|\n");

    for (i = 0; i < dsa_bench_count(dsa_bench_context); i++) {
        for (j = 0; j < dsa_bench_count(dsa_bench_batch); j++) {
            context = dsa_bench_context[i];
            batch = dsa_bench_batch[j];

            if (e->batch_only != 0 && (batch != e->batch_only
                                       || context != e->context_only))
            {
                continue;
            }

            if (context + DSA_BENCH_WARM + DSA_BENCH_STEPS > e->context
                || (uint64_t) batch * (context + DSA_BENCH_STEPS + 64)
                   > (uint64_t) e->backend->pages * DSA_PAGE_TOKENS)
            {
                (void) printf("| %u | %u | does not fit | | |\n", batch,
                              context);
                continue;
            }

            if (dsa_bench_steps(e, batch, context, &t, err) != DSA_OK) {
                return DSA_ERROR;
            }

            (void) printf("| %u | %u | %.3f | %.1f | %.0f |\n", batch,
                          context, t * 1e3, t * 1e6 / layers, batch / t);
            (void) fflush(stdout);
        }
    }

    return DSA_OK;
}
