
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
#include "kernels/random.h"
#include "kernels/rope.h"


/* Left to the driver, the library and the graphs of decode steps. */
#define DSA_RANK_SLACK      (1536ULL << 20)


static int dsa_rank_limits(dsa_cuda_rank_t *rank, const dsa_cuda_conf_t *conf,
    dsa_err_t *err);
static int dsa_rank_device(dsa_cuda_rank_t *rank, uint32_t device,
    dsa_err_t *err);
static int dsa_rank_memory(dsa_cuda_rank_t *rank, uint64_t kv_memory,
    dsa_err_t *err);
static int dsa_rank_allocate(dsa_cuda_rank_t *rank, dsa_err_t *err);
static int dsa_rank_rope(dsa_cuda_rank_t *rank, dsa_err_t *err);


dsa_cuda_rank_t *
dsa_cuda_rank_open(const dsa_cuda_conf_t *conf, dsa_err_t *err)
{
    int               rc;
    dsa_cuda_rank_t  *rank;

    rank = calloc(1, sizeof(dsa_cuda_rank_t));

    if (rank == NULL) {
        (void) dsa_error(err, "no memory for GPU %u", conf->device);
        return NULL;
    }

    if (dsa_cuda_check_config(&conf->config, err) != DSA_OK
        || dsa_rank_limits(rank, conf, err) != DSA_OK
        || dsa_rank_device(rank, conf->device, err) != DSA_OK
        || dsa_rank_memory(rank, conf->kv_memory, err) != DSA_OK
        || dsa_cuda_weights_load(&rank->weights, &rank->config, &rank->shard,
                                 conf->weights, rank->stream, err) != DSA_OK
        || dsa_rank_rope(rank, err) != DSA_OK)
    {
        goto failed;
    }

    rc = conf->weights == NULL
         ? dsa_cuda_random_cache(rank->page, rank->pages * rank->cache.page
                                             / rank->cache.layer, 1,
                                 rank->stream)
         : 0;

    if (rc != 0) {
        (void) dsa_error(err, "GPU %d: random pages: %s", rank->device,
                         dsa_cuda_error(rc));
        goto failed;
    }

    rc = dsa_cuda_gemm_create(&rank->gemm, &rank->state, rank->gemm_work);

    if (rc != 0) {
        (void) dsa_error(err, "GPU %d: cuBLASLt: %s", rank->device,
                         dsa_cuda_error(rc));
        goto failed;
    }

    return rank;

failed:

    dsa_cuda_rank_close(rank);

    return NULL;
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


/* What follows from the config and the limits, before the GPU is used. */

static int
dsa_rank_limits(dsa_cuda_rank_t *rank, const dsa_cuda_conf_t *conf,
    dsa_err_t *err)
{
    dsa_model_config_t  *s;

    rank->config = conf->config;
    s = &rank->config;

    rank->max_tokens = conf->max_tokens;
    rank->max_samples = conf->max_seqs;
    rank->allowed = conf->allowed < s->vocab_size ? conf->allowed
                                                  : s->vocab_size;
    rank->context = s->max_position_embeddings;

    if (conf->context != 0 && conf->context < rank->context) {
        rank->context = conf->context;
    }

    rank->ld_pages = (rank->context + DSA_PAGE_TOKENS - 1) / DSA_PAGE_TOKENS;
    rank->topk = s->index_topk < rank->context ? s->index_topk
                                               : (rank->context + 7) & ~7U;
    rank->mha_tokens = rank->context < DSA_CUDA_MHA_TOKENS
                       ? rank->context : DSA_CUDA_MHA_TOKENS;

    rank->index_constant = 1.0f / sqrtf((float) s->index_n_heads)
                           / sqrtf((float) s->index_head_dim);

    rank->router.experts = s->n_routed_experts;
    rank->router.groups = s->n_group;
    rank->router.groups_kept = s->topk_group;
    rank->router.k = s->num_experts_per_tok;
    rank->router.normalize = s->norm_topk_prob;
    rank->router.scale = s->routed_scaling_factor;

    dsa_cache_layout(&rank->cache, 1, s->num_hidden_layers, s->kv_lora_rank,
                     s->qk_rope_head_dim, s->index_head_dim);

    if (dsa_cuda_check_limits(rank, err) != DSA_OK) {
        return DSA_ERROR;
    }

    return dsa_shard_init(&rank->shard, s, 0, 1, DSA_ATTENTION_DATA, err);
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


/* One plan: weights, workspace, and pages of what is left. */

static int
dsa_rank_memory(dsa_cuda_rank_t *rank, uint64_t kv_memory, dsa_err_t *err)
{
    int       rc;
    size_t    all, left;
    uint64_t  weights, kv, used, pages;

    rc = cudaMemGetInfo(&left, &all);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: its free memory is not known: %s",
                         rank->device, dsa_cuda_error(rc));
    }

    weights = dsa_cuda_weights_size(&rank->config, &rank->shard);
    rank->memory_size = dsa_cuda_layout(rank, 0);
    used = weights + rank->memory_size + DSA_RANK_SLACK;

    kv = kv_memory;

    if (kv == 0) {
        kv = used < left ? left - used : 0;
    }

    pages = kv / rank->cache.page;

    if (pages == 0 || used + kv > left) {
        return dsa_error(err, "GPU %d has %.2f GB of free memory; weights "
                         "need %.2f, workspace for steps of %u tokens %.2f, "
                         "graphs %.2f, and pages at least %.2f", rank->device,
                         (double) left * 1e-9, (double) weights * 1e-9,
                         rank->max_tokens, (double) rank->memory_size * 1e-9,
                         (double) DSA_RANK_SLACK * 1e-9,
                         (double) (kv_memory != 0 ? kv : rank->cache.page)
                         * 1e-9);
    }

    rank->pages = pages < INT32_MAX / DSA_PAGE_TOKENS
                  ? (uint32_t) pages : INT32_MAX / DSA_PAGE_TOKENS;

    dsa_log(DSA_LOG_NOTICE, "GPU %d memory: %.2f GB free = weights %.2f + "
            "workspace %.2f (steps of %u tokens, %u sequences) + graphs and "
            "driver %.2f + pages %.2f (%u, %.2f M tokens) + unused %.2f",
            rank->device, (double) left * 1e-9, (double) weights * 1e-9,
            (double) rank->memory_size * 1e-9, rank->max_tokens,
            rank->max_samples, (double) DSA_RANK_SLACK * 1e-9,
            (double) rank->pages * (double) rank->cache.page * 1e-9,
            rank->pages, (double) rank->pages * DSA_PAGE_TOKENS * 1e-6,
            ((double) left - (double) used
             - (double) rank->pages * (double) rank->cache.page) * 1e-9);

    return dsa_rank_allocate(rank, err);
}


static int
dsa_rank_allocate(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    int       rc;
    uint64_t  size, pages;

    pages = rank->pages * rank->cache.page;

    rc = cudaMalloc(&rank->memory, rank->memory_size);
    rc = rc != 0 ? rc : (int) cudaMalloc(&rank->page, pages);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: %.2f GB of workspace and %.2f GB of "
                         "pages cannot be allocated: %s", rank->device,
                         (double) rank->memory_size * 1e-9,
                         (double) pages * 1e-9, dsa_cuda_error(rc));
    }

    size = dsa_cuda_layout(rank, (uintptr_t) rank->memory);
    assert(size == rank->memory_size);

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


/* The table of rotary angles, and the scale of attention scores. */

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
    rank->attention_scale = (float) (dsa_rope_softmax(&rope)
                                     / sqrt(DSA_CUDA_NOPE + DSA_CUDA_ROPE));

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
