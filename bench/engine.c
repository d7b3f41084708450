
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/gpu.h"
#include "engine/cuda/rank.h"


/*
 * Measures whole steps through the backend as the scheduler starts them: two
 * in flight, decode steps as graphs.  The KV cache of prefixes is random, so
 * that a long context costs no prefill.  "ncu --profile-from-start off"
 * profiles one round of a prompt, and one decode step, of each measurement.
 */

#define DSA_BENCH_SEQS      128
#define DSA_BENCH_TOKENS    8192
#define DSA_BENCH_WARM      4
#define DSA_BENCH_STEPS     32
#define DSA_BENCH_ROUNDS    3


#define DSA_BENCH_PROMPTS   5
#define DSA_BENCH_BATCHES   4
#define DSA_BENCH_CONTEXTS  3


/* Seconds; 0: not measured. */

typedef struct {
    uint32_t            layers;
    double              prefill[DSA_BENCH_PROMPTS];
    double              decode[DSA_BENCH_CONTEXTS][DSA_BENCH_BATCHES];
} dsa_bench_result_t;


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
    dsa_model_config_t  config;          /* of config.json */
    dsa_bench_result_t *result;         /* of the model being measured */
} dsa_bench_engine_t;


static int dsa_bench_options(dsa_bench_engine_t *e, int argc, char **argv);
static int dsa_bench_fit(dsa_bench_engine_t *e, dsa_err_t *err);
static int dsa_bench_model(dsa_bench_engine_t *e, uint32_t layers,
    dsa_bench_result_t *result, dsa_err_t *err);
static int dsa_bench_open(dsa_bench_engine_t *e, uint32_t layers,
    dsa_err_t *err);
static void dsa_bench_close(dsa_bench_engine_t *e);
static int dsa_bench_prefill(dsa_bench_engine_t *e, dsa_err_t *err);
static int dsa_bench_decode(dsa_bench_engine_t *e, dsa_err_t *err);
static void dsa_bench_print(const dsa_bench_engine_t *e,
    const dsa_bench_result_t *few, const dsa_bench_result_t *all);


static const uint32_t  dsa_bench_prompt[DSA_BENCH_PROMPTS] = {
    1024, 4096, 16384, 32768, 131072
};

static const uint32_t  dsa_bench_batch[DSA_BENCH_BATCHES] = {
    1, 8, 32, 128
};

static const uint32_t  dsa_bench_context[DSA_BENCH_CONTEXTS] = {
    1024, 8192, 65536
};


/*
 * The model is measured with all layers that fit, and with its dense layers
 * and one more.  The difference is the time of the other layers, without
 * embedding, head and sampling.
 */

int
dsa_bench_engine(int argc, char **argv, const char *usage)
{
    int                 rc;
    uint32_t            few;
    dsa_err_t           err;
    dsa_bench_engine_t  e;
    dsa_bench_result_t  result[2];

    memset(&e, 0, sizeof(e));
    memset(result, 0, sizeof(result));

    if (dsa_bench_options(&e, argc, argv) != DSA_OK) {
        (void) fputs(usage, stderr);
        return 2;
    }

    rc = dsa_bench_fit(&e, &err);
    few = e.config.first_k_dense_replace + 1;

    if (rc == DSA_OK && few < e.layers) {
        rc = dsa_bench_model(&e, few, &result[0], &err);
    }

    if (rc == DSA_OK) {
        rc = dsa_bench_model(&e, e.layers, &result[1], &err);
    }

    if (rc == DSA_OK) {
        dsa_bench_print(&e, &result[0], &result[1]);

    } else {
        (void) fprintf(stderr, "dsa bench: %s\n", err.text);
    }

    return rc == DSA_OK && fflush(stdout) == 0 ? 0 : 1;
}


static int
dsa_bench_model(dsa_bench_engine_t *e, uint32_t layers,
    dsa_bench_result_t *result, dsa_err_t *err)
{
    int  rc;

    e->result = result;
    result->layers = layers;

    rc = dsa_bench_open(e, layers, err);

    if (rc == DSA_OK && e->prefill) {
        rc = dsa_bench_prefill(e, err);
    }

    if (rc == DSA_OK && e->decode) {
        rc = dsa_bench_decode(e, err);
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

    e->tokens = NULL;
    e->pages = NULL;
    e->seq = NULL;
    e->sample = NULL;
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


/*
 * Chooses as many layers as leave memory for the pages of the largest
 * measurement.
 */

static int
dsa_bench_fit(dsa_bench_engine_t *e, dsa_err_t *err)
{
    int                 rc;
    size_t              left, all;
    uint64_t            tokens, page;
    dsa_cache_t         cache;
    dsa_shard_t    shard;
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

    if (e->layers != 0) {
        return DSA_OK;
    }

    if (dsa_shard_init(&shard, &config, 0, 1, DSA_ATTENTION_DATA, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    /* a tenth for workspace, graphs and the driver */

    for (e->layers = config.num_hidden_layers; e->layers > 1; e->layers--) {
        config.num_hidden_layers = e->layers;

        if (config.first_k_dense_replace > e->layers) {
            config.first_k_dense_replace = e->layers;
        }

        dsa_cache_layout(&cache, 1, e->layers, config.kv_lora_rank,
                         config.qk_rope_head_dim, config.index_head_dim);
        page = tokens / DSA_PAGE_TOKENS * cache.page;

        if (dsa_cuda_weights_size(&config, &shard) + page < left / 10 * 9) {
            break;
        }
    }

    return DSA_OK;
}


static int
dsa_bench_open(dsa_bench_engine_t *e, uint32_t layers, dsa_err_t *err)
{
    uint32_t            i, seqs;
    uint64_t            n;
    dsa_backend_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    conf.model = e->model;
    conf.random = 1;
    conf.layers = layers;
    conf.precision = DSA_SERVED;
    conf.gpus = 1;
    conf.max_tokens = DSA_BENCH_TOKENS;
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
                                   % e->backend->config.vocab_size);
    }

    e->sampling.temperature = 1;
    e->sampling.top_p = 0.95f;

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
 * Pages are scattered as in a server that has run for long: the number of page
 * i of sequence s is a multiple of a prime number, modulo the number of pages.
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
    e->seq[s].input_from = DSA_INPUT_KNOWN;
    e->seq[s].sampling = &e->sampling;
}


/*
 * Computes a prompt in steps of DSA_BENCH_TOKENS, and samples its first token.
 */

static int
dsa_bench_prompt_time(dsa_bench_engine_t *e, uint32_t tokens, double *seconds,
    dsa_err_t *err)
{
    double            begin;
    uint32_t          at, in_flight;
    dsa_backend_t    *b;
    dsa_batch_seq_t  *s;

    b = e->backend;
    s = &e->seq[0];
    in_flight = 0;

    dsa_bench_seq(e, 0, tokens);
    s->n_prompt = tokens;
    begin = dsa_bench_now();

    for (at = 0; at < tokens; at += s->n_input) {
        s->start = at;
        s->n_input = tokens - at < DSA_BENCH_TOKENS ? tokens - at
                                                    : DSA_BENCH_TOKENS;
        s->sampling = at + s->n_input == tokens ? &e->sampling : NULL;
        s->sample = &e->sample[0];

        if (in_flight == b->depth) {
            if (b->wait(b, err) != DSA_OK) {
                return DSA_ERROR;
            }

            in_flight--;
        }

        if (b->start(b, s, 1, err) != DSA_OK) {
            return DSA_ERROR;
        }

        in_flight++;
    }

    for ( /* void */ ; in_flight != 0; in_flight--) {
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
    size_t    i, round;
    double    t, best;
    uint32_t  n;

    for (i = 0; i < DSA_BENCH_PROMPTS; i++) {
        n = dsa_bench_prompt[i];

        if ((e->tokens_only != 0 && n != e->tokens_only) || n > e->context
            || (uint64_t) n > (uint64_t) e->backend->pages * DSA_PAGE_TOKENS)
        {
            continue;
        }

        best = 0;

        for (round = 0; round < DSA_BENCH_ROUNDS; round++) {
            if (round + 1 == DSA_BENCH_ROUNDS) {
                (void) cudaProfilerStart();
            }

            if (dsa_bench_prompt_time(e, n, &t, err) != DSA_OK) {
                return DSA_ERROR;
            }

            (void) cudaProfilerStop();
            best = round == 0 || t < best ? t : best;
        }

        e->result->prefill[i] = best;
    }

    return DSA_OK;
}


/* Decode steps of batch sequences, each context tokens long and growing. */

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
            e->seq[i].n_input = 1;
            e->seq[i].n_prompt = context - 1;
            e->seq[i].input_from = k == 0 ? DSA_INPUT_KNOWN : i;
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
    uint32_t  batch, context;

    for (i = 0; i < DSA_BENCH_CONTEXTS; i++) {
        for (j = 0; j < DSA_BENCH_BATCHES; j++) {
            context = dsa_bench_context[i];
            batch = dsa_bench_batch[j];

            if ((e->batch_only != 0 && (batch != e->batch_only
                                        || context != e->context_only))
                || context + DSA_BENCH_WARM + DSA_BENCH_STEPS > e->context
                || (uint64_t) batch * (context + DSA_BENCH_STEPS + 64)
                   > (uint64_t) e->backend->pages * DSA_PAGE_TOKENS)
            {
                continue;
            }

            if (dsa_bench_steps(e, batch, context, &e->result->decode[i][j],
                                err)
                != DSA_OK)
            {
                return DSA_ERROR;
            }
        }
    }

    return DSA_OK;
}


/* Parameters of an MoE layer without its routed experts, and of one expert. */

static double
dsa_bench_dense(const dsa_model_config_t *s)
{
    double  heads;

    heads = s->num_attention_heads;

    return (double) s->hidden_size * (s->q_lora_rank + DSA_CUDA_LATENT
                                      + DSA_CUDA_ROPE + DSA_CUDA_INDEX
                                      + heads * DSA_CUDA_NOPE)
           + s->q_lora_rank * (heads * (DSA_CUDA_NOPE + DSA_CUDA_ROPE)
                               + (double) s->index_n_heads * DSA_CUDA_INDEX)
           + heads * 2 * DSA_CUDA_NOPE * DSA_CUDA_LATENT
           + 3.0 * s->hidden_size * s->moe_intermediate_size
             * s->n_shared_experts;
}


static double
dsa_bench_expert(const dsa_model_config_t *s)
{
    return 3.0 * s->hidden_size * s->moe_intermediate_size;
}


/*
 * Parameters of the experts that are chosen by at least one token, with
 * uniform routing.
 */

static double
dsa_bench_experts(const dsa_model_config_t *s, double rows)
{
    return dsa_bench_expert(s) * s->n_routed_experts
           * (1 - pow(1 - (double) s->num_experts_per_tok
                          / s->n_routed_experts, rows));
}


/*
 * The lower bound of an MoE layer for a prompt, in seconds.  Products take
 * their time at the ceiling of FP8, or the time to read the weights in every
 * step if that is longer.  Attention is computed at the ceiling of BF16 in the
 * cheaper form, index scores at the ceiling of FP8.
 */

static double
dsa_bench_prefill_bound(const dsa_model_config_t *s, double n)
{
    double  linear, bytes, rows, pairs, few, k, heads, index;

    k = n < s->index_topk ? n : s->index_topk;
    pairs = n * n / 2;
    few = k * k / 2 + (n - k) * k;
    heads = s->num_attention_heads;

    linear = 2 * n * (dsa_bench_dense(s)
                      + s->num_experts_per_tok * dsa_bench_expert(s));
    pairs *= 2 * heads * (2 * DSA_CUDA_NOPE + DSA_CUDA_ROPE);
    few *= 2 * heads * (2 * DSA_CUDA_LATENT + DSA_CUDA_ROPE);
    index = n > s->index_topk
            ? (n * n - k * k) * s->index_n_heads * DSA_CUDA_INDEX : 0;

    linear *= 1e-12 / DSA_BENCH_FP8;

    rows = n < DSA_BENCH_TOKENS ? n : DSA_BENCH_TOKENS;
    bytes = (dsa_bench_dense(s) + dsa_bench_experts(s, rows)) * n / rows;
    bytes *= 1e-9 / DSA_BENCH_HBM;

    return (linear > bytes ? linear : bytes) + index * 1e-12 / DSA_BENCH_FP8
           + (pairs < few ? pairs : few) * 1e-12 / DSA_BENCH_BF16;
}


/*
 * The same for a decode step: the weights (kv_b in BF16) and the chosen
 * experts are read once, and the index keys; attention takes the time of its
 * products, or of reading its operands if that is longer.
 */

static double
dsa_bench_decode_bound(const dsa_model_config_t *s, double batch,
    double context)
{
    double  bytes, k, flop, latents, t;

    k = context < s->index_topk ? context : s->index_topk;

    bytes = dsa_bench_dense(s) + dsa_bench_experts(s, batch)
            + (double) s->num_attention_heads * 2 * DSA_CUDA_NOPE
              * DSA_CUDA_LATENT
            + 2.0 * s->hidden_size * (s->n_routed_experts
                                      + s->index_n_heads);

    if (context > s->index_topk) {
        bytes += batch * context * (DSA_CUDA_INDEX + sizeof(float));
    }

    flop = batch * k * 2 * s->num_attention_heads
           * (2 * DSA_CUDA_LATENT + DSA_CUDA_ROPE);
    latents = batch * k * DSA_CUDA_RECORD;
    t = flop * 1e-12 / DSA_BENCH_BF16;

    if (latents * 1e-9 / DSA_BENCH_HBM > t) {
        t = latents * 1e-9 / DSA_BENCH_HBM;
    }

    return t + bytes * 1e-9 / DSA_BENCH_HBM;
}


/* "us an MoE layer | times its bound" */

static void
dsa_bench_layer(double few, double all, uint32_t layers, double bound)
{
    double  t;

    if (few == 0 || layers == 0) {
        (void) printf(" | |\n");
        return;
    }

    t = (all - few) / layers;
    (void) printf(" %.1f | %.2f |\n", t * 1e6, t / bound);
}


static void
dsa_bench_print(const dsa_bench_engine_t *e, const dsa_bench_result_t *few,
    const dsa_bench_result_t *all)
{
    size_t    i, j;
    double    t, n;
    uint32_t  layers;

    layers = few->layers != 0 ? all->layers - few->layers : 0;

    (void) printf("Random weights, %u layers of which %u are dense; an MoE "
                  "layer is the difference to %u layers.\n", all->layers,
                  e->config.first_k_dense_replace, few->layers);

    if (e->prefill) {
        (void) printf("\n| prefill | tokens | ms | tokens/s | us an MoE layer "
                      "| times its bound |\n|---|---|---|---|---|---|\n");
    }

    for (i = 0; i < DSA_BENCH_PROMPTS; i++) {
        t = all->prefill[i];
        n = dsa_bench_prompt[i];

        if (t > 0) {
            (void) printf("| prompt | %.0f | %.2f | %.0f |", n, t * 1e3, n / t);
            dsa_bench_layer(few->prefill[i], t, layers,
                            dsa_bench_prefill_bound(&e->config, n));
        }
    }

    if (e->decode) {
        (void) printf("\n| decode, batch | context | ms a step | tokens/s | "
                      "us an MoE layer | times its bound |\n"
                      "|---|---|---|---|---|---|\n");
    }

    for (i = 0; i < DSA_BENCH_CONTEXTS; i++) {
        for (j = 0; j < DSA_BENCH_BATCHES; j++) {
            t = all->decode[i][j];
            n = dsa_bench_batch[j];

            if (t > 0) {
                (void) printf("| %.0f | %u | %.3f | %.0f |", n,
                              dsa_bench_context[i], t * 1e3, n / t);
                dsa_bench_layer(few->decode[i][j], t, layers,
                                dsa_bench_decode_bound(&e->config, n,
                                    dsa_bench_context[i]));
            }
        }
    }
}
