
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/cuda/rank.h"
#include "kernels/row/rope.h"
#include "kernels/sample/random.h"


/*
 * Memory that is left for the driver and libraries, and for a layer of the
 * graph of a decode step.  On an H200, 336 graphs of 62 layers needed 1.82 GB,
 * and 148 of 61 layers 0.79 GB: 88 KB a layer.  With several GPUs layers have
 * more kernels.
 */
#define DSA_RANK_RESERVE    (768ULL << 20)
#define DSA_RANK_GRAPH      (96ULL << 10)

#define DSA_RANK_PROCESSORS 132         /* of an H100 or H200 in SXM form */


static int dsa_rank_limits(dsa_cuda_rank_t *rank, const dsa_cuda_conf_t *conf,
    uint32_t number, dsa_err_t *err);
static int dsa_rank_shard(dsa_cuda_rank_t *rank, const dsa_cuda_conf_t *conf,
    uint32_t number, dsa_err_t *err);
static int dsa_rank_sizes(dsa_cuda_rank_t *rank, dsa_err_t *err);
static int dsa_rank_device(dsa_cuda_rank_t *rank, uint32_t device,
    dsa_err_t *err);
static int dsa_rank_allocate(dsa_cuda_rank_t *rank, dsa_err_t *err);
static int dsa_rank_rope(dsa_cuda_rank_t *rank, dsa_err_t *err);


dsa_cuda_rank_t *
dsa_cuda_rank_open(const dsa_cuda_conf_t *conf, uint32_t number,
    dsa_err_t *err)
{
    dsa_cuda_rank_t  *rank;

    rank = calloc(1, sizeof(dsa_cuda_rank_t));

    if (rank == NULL) {
        (void) dsa_error(err, "no memory for GPU %u", conf->gpu[number]);
        return NULL;
    }

    if (dsa_rank_limits(rank, conf, number, err) != DSA_OK
        || dsa_rank_device(rank, conf->gpu[number], err) != DSA_OK
        || dsa_rank_sizes(rank, err) != DSA_OK)
    {
        dsa_cuda_rank_close(rank);
        return NULL;
    }

    return rank;
}


int
dsa_cuda_rank_place(dsa_cuda_rank_t *rank, uint32_t pages,
    const dsa_weights_t *weights, dsa_read_list_t *list, dsa_err_t *err)
{
    int  rc;

    rank->pages = pages;

    if (dsa_rank_allocate(rank, err) != DSA_OK
        || dsa_cuda_weights_place(&rank->weights, &rank->config, &rank->shard,
                                  rank->drafts, weights, rank->stream, list,
                                  err) != DSA_OK
        || dsa_rank_rope(rank, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    rc = weights == NULL
         ? dsa_cuda_random_pages(rank->page, rank->pages, &rank->cache,
                                 &rank->config, rank->drafts, rank->stream)
         : 0;

    if (rc != 0) {
        return dsa_error(err, "GPU %d: random pages: %s", rank->device,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


int
dsa_cuda_rank_finish(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    int  rc;

    if (dsa_cuda_weights_finish(&rank->weights, &rank->config, rank->stream,
                                err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    rc = dsa_cuda_gemm_create(&rank->gemm, &rank->state, rank->gemm_work);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: cuBLASLt: %s", rank->device,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


void
dsa_cuda_rank_close(dsa_cuda_rank_t *rank)
{
    if (rank == NULL) {
        return;
    }

    (void) dsa_cuda_rank_attach(rank);

    if (rank->stream != NULL) {
        (void) cudaStreamSynchronize(rank->stream);
    }

    dsa_cuda_gemm_destroy(rank->gemm);
    dsa_cuda_weights_free(&rank->weights);
    (void) cudaFree(rank->page);
    (void) cudaFree(rank->memory);
    (void) cudaFree(rank->counters);
    (void) cudaFreeHost(rank->fault);

    if (rank->stream != NULL) {
        (void) cudaStreamDestroy(rank->stream);
    }

    free(rank);
}


int
dsa_cuda_rank_attach(const dsa_cuda_rank_t *rank)
{
    return cudaSetDevice(rank->device);
}


int
dsa_cuda_needs(dsa_plan_needs_t *needs, const dsa_cuda_conf_t *conf,
    dsa_err_t *err)
{
    int               rc;
    dsa_cuda_rank_t  *rank;

    rank = calloc(1, sizeof(dsa_cuda_rank_t));

    if (rank == NULL) {
        return dsa_error(err, "no memory for the plan of %u GPUs",
                         conf->gpus);
    }

    rc = dsa_cuda_check_config(&conf->config, err);

    if (rc == DSA_OK) {
        rc = dsa_rank_limits(rank, conf, 0, err);
    }

    if (rc == DSA_OK) {
        rank->state.processors = DSA_RANK_PROCESSORS;
        rc = dsa_rank_sizes(rank, err);
    }

    if (rc == DSA_OK) {
        dsa_cuda_rank_needs(rank, needs);
    }

    free(rank);

    return rc;
}


void
dsa_cuda_rank_needs(const dsa_cuda_rank_t *rank, dsa_plan_needs_t *needs)
{
    dsa_cuda_sizes_t  sizes;

    dsa_cuda_rank_sizes(&sizes, rank);

    needs->weights = rank->weights_size;
    needs->workspace = rank->memory_size - rank->exchange_size;
    needs->exchange = rank->exchange_size;
    needs->reserve = DSA_RANK_RESERVE
                     + dsa_cuda_sizes_graphs(&sizes)
                       * (rank->config.num_hidden_layers + rank->drafts)
                       * DSA_RANK_GRAPH;
}


void
dsa_cuda_rank_sizes(dsa_cuda_sizes_t *sizes, const dsa_cuda_rank_t *rank)
{
    dsa_cuda_sizes(sizes, rank->max_samples, rank->topk, rank->context,
                   rank->drafts, rank->dense);
}


/* Computes the bytes of its memory. */

static int
dsa_rank_sizes(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    rank->weights_size = dsa_cuda_weights_size(&rank->config, &rank->shard,
                                               rank->drafts);
    rank->memory_size = dsa_cuda_layout(rank, 0);

    if (rank->weights_size == UINT64_MAX) {
        return dsa_error(err, "no memory for a table of %u layers",
                         rank->config.num_hidden_layers);
    }

    return DSA_OK;
}


/* Sets the members that depend on the config and the limits only. */

static int
dsa_rank_limits(dsa_cuda_rank_t *rank, const dsa_cuda_conf_t *conf,
    uint32_t number, dsa_err_t *err)
{
    dsa_model_config_t  *s;

    rank->config = conf->config;
    s = &rank->config;

    rank->max_tokens = conf->max_tokens;
    rank->max_seqs = conf->max_seqs;
    rank->max_samples = conf->max_seqs
                        * (conf->outputs != 0 ? conf->outputs : 1);

    if (conf->outputs > 1 && rank->max_samples > rank->max_tokens) {
        rank->max_samples = rank->max_tokens;
    }

    rank->max_rows = conf->max_tokens
                     + (conf->drafts ? conf->max_seqs : 0);
    rank->allowed = conf->allowed < s->vocab_size ? conf->allowed
                                                  : s->vocab_size;
    rank->context = s->max_position_embeddings;

    if (conf->context != 0 && conf->context < rank->context) {
        rank->context = conf->context;
    }

    rank->ld_pages = (rank->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    rank->dense = dsa_model_config_dense(s);
    rank->kv_bf16 = conf->kv_bf16;

    /* without an indexer there is no selection to share */

    s->index_share_for_mtp_iteration &= !rank->dense;

    rank->topk = rank->dense ? DSA_CUDA_BOUND : s->index_topk;
    rank->topk = rank->topk < rank->context ? rank->topk
                                            : (rank->context + 7) & ~7U;

    rank->mha_tokens = rank->context < DSA_CUDA_MHA_TOKENS
                       ? rank->context : DSA_CUDA_MHA_TOKENS;
    rank->mha_prompt = rank->dense ? UINT32_MAX : rank->mha_tokens;

    rank->shape = dsa_cuda_heads_find(s->qk_nope_head_dim, s->v_head_dim);
    rank->index_constant = 1.0f / sqrtf((float) s->index_n_heads)
                           / sqrtf((float) s->index_head_dim);

    rank->router.experts = s->n_routed_experts;
    rank->router.groups = s->n_group;
    rank->router.groups_kept = s->topk_group;
    rank->router.k = s->num_experts_per_tok;
    rank->router.normalize = s->norm_topk_prob;
    rank->router.scale = s->routed_scaling_factor;

    rank->drafts = conf->drafts;

    dsa_cuda_cache_layout(&rank->cache, s, rank->drafts, rank->kv_bf16);

    if (dsa_cuda_check_limits(rank, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_rank_shard(rank, conf, number, err);
}


void
dsa_cuda_cache_layout(dsa_cache_t *cache, const dsa_model_config_t *config,
    uint32_t drafts, uint32_t kv_bf16)
{
    uint8_t  indexed[DSA_MODEL_LAYERS + 1];

    dsa_model_config_indexed(config, indexed);
    dsa_cache_layout(cache, kv_bf16 ? DSA_CACHE_BF16 : DSA_CACHE_FP8,
                     config->num_hidden_layers + drafts, indexed,
                     config->kv_lora_rank, config->qk_rope_head_dim,
                     config->index_head_dim);

    if (drafts) {
        dsa_cache_layout_hidden(cache, config->hidden_size);
    }
}


int
dsa_cuda_random_pages(void *page, uint32_t pages, const dsa_cache_t *layout,
    const dsa_model_config_t *config, uint32_t drafts, dsa_stream_t stream)
{
    uint32_t          i;
    uint8_t           indexed[DSA_MODEL_LAYERS + 1];
    dsa_cuda_cache_t  cache;

    dsa_model_config_indexed(config, indexed);

    cache.page = layout->page;
    cache.keys = layout->keys;
    cache.pages = pages;
    cache.bf16 = layout->format == DSA_CACHE_BF16;

    for (i = 0; i < config->num_hidden_layers + drafts; i++) {
        cache.base = (uint8_t *) page + layout->layer[i];

        dsa_cuda_try(dsa_cuda_random_cache(&cache, indexed[i], i + 1, stream));
    }

    return 0;
}


static int
dsa_rank_shard(dsa_cuda_rank_t *rank, const dsa_cuda_conf_t *conf,
    uint32_t number, dsa_err_t *err)
{
    uint32_t  most, tokens, hosts;

    hosts = conf->hosts.n > 1 ? conf->hosts.n : 1;
    rank->net.on = hosts > 1 || conf->net;

    if (dsa_shard_init(&rank->shard, &rank->config,
                       conf->hosts.host * conf->gpus + number,
                       conf->gpus * hosts, conf->attention, err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    rank->heads = rank->shard.heads.n;
    rank->experts = rank->shard.experts.n;

    rank->round = rank->max_rows;

    /* tokens of all ranks may be routed to the experts of a rank */

    if (rank->experts != rank->shard.experts.of) {
        most = INT32_MAX / rank->config.hidden_size;

        if (rank->max_rows > most) {
            return dsa_error(err, "a step has up to %u tokens on each GPU; "
                             "\"attention data\" with several GPUs expects "
                             "at most %u for a hidden_size of %u (see "
                             "\"token_budget\")", rank->max_rows, most,
                             rank->config.hidden_size);
        }

        tokens = rank->max_rows * rank->shard.ranks;
        rank->round = tokens < DSA_CUDA_ROUND_TOKENS ? tokens
                                                     : DSA_CUDA_ROUND_TOKENS;
    }

    return DSA_OK;
}


static int
dsa_rank_device(dsa_cuda_rank_t *rank, uint32_t device, dsa_err_t *err)
{
    int  rc;

    if (dsa_cuda_check_device(device, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rank->device = (int) device;

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : (int) cudaStreamCreateWithFlags(&rank->stream,
                                                        cudaStreamNonBlocking);
    rc = rc != 0 ? rc : (int) cudaMalloc((void **) &rank->counters,
                                         sizeof(dsa_cuda_counters_t));
    rc = rc != 0 ? rc : dsa_cuda_init(&rank->state, rank->counters);

    if (rc != 0) {
        return dsa_error(err, "GPU %d cannot be prepared: %s", rank->device,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_rank_allocate(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    int       rc;
    uint64_t  size, pages;

    pages = rank->pages * rank->cache.page;

    rc = cudaMalloc(&rank->memory, rank->memory_size);
    rc = rc != 0 ? rc : (int) cudaMalloc(&rank->page, pages);
    rc = rc != 0 ? rc : (int) cudaHostAlloc((void **) &rank->fault,
                                            sizeof(dsa_exchange_fault_t),
                                            cudaHostAllocMapped
                                            | cudaHostAllocPortable);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: %.2f GB of workspace and %.2f GB of "
                         "pages cannot be allocated: %s", rank->device,
                         (double) rank->memory_size * 1e-9,
                         (double) pages * 1e-9, dsa_cuda_error(rc));
    }

    size = dsa_cuda_layout(rank, (uintptr_t) rank->memory);
    assert(size == rank->memory_size);
    memset(rank->fault, 0, sizeof(dsa_exchange_fault_t));

    /*
     * Padding, and pages that were never written, are read and multiplied by
     * 0: a NaN there would spread.
     */

    rc = cudaMemsetAsync(rank->memory, 0, rank->memory_size, rank->stream);
    rc = rc != 0 ? rc : (int) cudaMemsetAsync(rank->page, 0, pages,
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: its memory cannot be zeroed: %s",
                         rank->device, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/* Makes the table of rotary angles, and the scale of attention scores. */

static int
dsa_rank_rope(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    int                        rc;
    float                     *table, freq[DSA_CUDA_ROPE / 2];
    double                     magnitude;
    uint32_t                   i;
    dsa_rope_conf_t            rope;
    const dsa_model_config_t  *s;

    s = &rank->config;

    rope.theta = s->rope_theta;
    rope.factor = s->yarn_factor;
    rope.beta_fast = s->yarn_beta_fast;
    rope.beta_slow = s->yarn_beta_slow;
    rope.mscale = s->yarn_mscale;
    rope.mscale_all_dim = s->yarn_mscale_all_dim;
    rope.original = s->yarn_original_max_position;

    magnitude = dsa_rope_magnitude(&rope);
    rank->attention_scale = s->softmax_scale;

    table = malloc((uint64_t) rank->context * DSA_CUDA_ROPE * sizeof(float));

    if (table == NULL) {
        return dsa_error(err, "no memory for the rotary angles of %u "
                         "positions", rank->context);
    }

    dsa_rope_frequencies(freq, DSA_CUDA_ROPE, &rope);

    for (i = 0; i < rank->context; i++) {
        dsa_rope_angles(table + (uint64_t) i * DSA_CUDA_ROPE,
                        table + (uint64_t) i * DSA_CUDA_ROPE
                        + DSA_CUDA_ROPE / 2,
                        freq, DSA_CUDA_ROPE, i, magnitude);
    }

    rc = cudaMemcpyAsync(rank->rope, table,
                         (uint64_t) rank->context * DSA_CUDA_ROPE
                         * sizeof(float), cudaMemcpyHostToDevice,
                         rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
    free(table);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: copying the rotary angles: %s",
                         rank->device, dsa_cuda_error(rc));
    }

    return DSA_OK;
}
