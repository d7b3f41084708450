
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/rank.h"
#include "kernels/gemm/gemm.h"


/*
 * Steps that a rank runs alone before peer access is enabled.  cuBLASLt, which
 * computes the products of absorbed MQA with several heads, loads a kernel
 * when it first uses it.  Loading maps memory for all GPUs, which may wait
 * until they are idle.  If another rank waited for this one on its GPU at that
 * time, both would be deadlocked.  These steps make the library load every
 * kernel that later steps need.
 */

static uint32_t dsa_warm_layers(const dsa_cuda_rank_t *rank);
static int dsa_warm_steps(dsa_cuda_rank_t *rank, dsa_err_t *err);
static int dsa_warm_input(dsa_cuda_rank_t *rank, uint32_t tokens);
static int dsa_warm_decode(dsa_cuda_rank_t *rank, uint32_t tokens,
    dsa_err_t *err);
static int dsa_warm_absorbed(dsa_cuda_rank_t *rank, uint32_t tokens,
    dsa_err_t *err);


int
dsa_cuda_rank_warm(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    int                rc;
    uint32_t           layers;
    dsa_cuda_peers_t  *p;

    p = &rank->peers;

    /* the exchanges are those of a group of one rank */

    p->exchange.ranks = 1;
    p->exchange.processors = rank->state.processors;
    p->exchange.timeout_ns = 1000000000;
    p->exchange.fault = rank->fault;
    p->exchange.state[0] = rank->shared.state;
    p->tokens.x[0] = rank->shared.x;
    p->tokens.expert[0] = rank->shared.expert;
    p->tokens.weight[0] = rank->shared.weight;
    p->part[0] = rank->shared.part;
    p->reduce[0] = rank->shared.reduce;
    p->vocab[0] = rank->work.vocab;

    layers = rank->config.num_hidden_layers;
    rank->config.num_hidden_layers = dsa_warm_layers(rank);

    rc = dsa_warm_steps(rank, err);

    dsa_cuda_gemm_seal(rank->gemm);
    rank->config.num_hidden_layers = layers;
    memset(p, 0, sizeof(dsa_cuda_peers_t));

    return rc;
}


/*
 * Returns how many layers are enough: all dense layers have the same products,
 * and so have all layers with experts.  With "moe_layer_freq" above 1 the
 * first layer with experts may be after layer first_k_dense_replace.
 */

static uint32_t
dsa_warm_layers(const dsa_cuda_rank_t *rank)
{
    uint32_t                 i, n;
    const dsa_cuda_layer_t  *l;

    l = rank->weights.layer;
    n = rank->config.num_hidden_layers;

    for (i = 1; i < n; i++) {
        if (l[i].moe != l[0].moe) {
            return i + 1;
        }
    }

    return 1;
}


/*
 * Runs steps of all sizes for which the library has an algorithm, up to the
 * limit of a step: decode and absorbed MQA.  MHA prefill has no product with
 * several heads.
 */

static int
dsa_warm_steps(dsa_cuda_rank_t *rank, dsa_err_t *err)
{
    int       rc;
    uint32_t  n;

    rc = dsa_warm_input(rank, rank->max_rows);

    for (n = 1; rc == 0 && n <= dsa_cuda_gemm_rows(rank->max_rows);
         n = dsa_cuda_gemm_rows(n + 1))
    {
        if (dsa_warm_decode(rank, n, err) != DSA_OK
            || dsa_warm_absorbed(rank, n, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    /* the counters of the exchanges must start at 0 on all ranks */

    rc = rc != 0 ? rc : (int) cudaMemsetAsync(rank->shared.state, 0,
                                              sizeof(dsa_exchange_state_t),
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: the first steps: %s", rank->device,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Prepares tokens that attend to one key, the first of page 0, and write no
 * cache entries.
 */

static int
dsa_warm_input(dsa_cuda_rank_t *rank, uint32_t tokens)
{
    int                rc;
    size_t             bytes;
    int32_t           *one;
    uint32_t           i;
    dsa_cuda_input_t  *in;

    in = &rank->input;
    bytes = tokens * sizeof(int32_t);
    one = malloc(bytes);

    if (one == NULL) {
        return cudaErrorMemoryAllocation;
    }

    for (i = 0; i < tokens; i++) {
        one[i] = 1;
    }

    rc = cudaMemsetAsync(in->token, 0, (uint8_t *) in->end
                         - (uint8_t *) in->token, rank->stream);
    rc = rc != 0 ? rc : (int) cudaMemsetAsync(in->slot, 0xff, bytes,
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaMemsetAsync(in->feed, 0xff, bytes,
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaMemcpyAsync(in->keys, one, bytes,
                                              cudaMemcpyHostToDevice,
                                              rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
    free(one);

    return rc;
}


/* Runs up to tokens decode tokens, which may attend to more than topk keys. */

static int
dsa_warm_decode(dsa_cuda_rank_t *rank, uint32_t tokens, dsa_err_t *err)
{
    dsa_cuda_step_t  step;

    memset(&step, 0, sizeof(step));

    step.tokens = tokens < rank->max_samples ? tokens : rank->max_samples;
    step.decode = step.tokens;
    step.samples = step.tokens;
    step.fullest = step.tokens;
    step.max_keys = rank->context < rank->topk + 1 ? rank->context
                                                   : rank->topk + 1;
    step.indexed = step.max_keys > rank->topk;

    return dsa_cuda_rank_run(rank, &step, err);
}


/*
 * Runs up to tokens tokens by absorbed MQA.  They attend to more than topk
 * keys if the context is long enough, so that the indexer is run for all of
 * them.  A prompt is not longer than the context, so a step may have several.
 */

static int
dsa_warm_absorbed(dsa_cuda_rank_t *rank, uint32_t tokens, dsa_err_t *err)
{
    int               rc;
    uint32_t          i, n, at, seqs;
    dsa_cuda_seq_t   *seq;
    dsa_cuda_step_t   step;

    tokens = tokens < rank->max_rows ? tokens : rank->max_rows;
    seqs = (tokens + rank->context - 1) / rank->context;
    seq = calloc(seqs, sizeof(dsa_cuda_seq_t));

    if (seq == NULL) {
        return dsa_error(err, "no memory for the first steps of GPU %d",
                         rank->device);
    }

    for (i = 0, at = 0; i < seqs; i++, at += n) {
        n = tokens - at < rank->context ? tokens - at : rank->context;

        seq[i].first = at;
        seq[i].n = n;
        seq[i].start = rank->context - n < rank->topk ? rank->context - n
                                                      : rank->topk;
    }

    memset(&step, 0, sizeof(step));

    step.tokens = tokens;
    step.fullest = tokens;
    step.seq = seq;
    step.n_seqs = seqs;
    step.samples = tokens < rank->max_samples ? tokens : rank->max_samples;

    rc = dsa_cuda_rank_run(rank, &step, err);
    free(seq);

    return rc;
}
