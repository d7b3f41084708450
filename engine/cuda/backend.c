
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/cuda/batch.h"
#include "engine/cuda/graphs.h"
#include "engine/cuda/rank.h"


/*
 * The scheduler's steps on one rank.  The arrays of a step are made in pinned
 * memory and copied in stream order, and its samples are copied back behind
 * it.  Two steps may be in flight, so that the host makes the second one while
 * the first one runs.
 */

#define DSA_CUDA_DEPTH      2


typedef struct {
    dsa_weights_t          *weights;    /* NULL after they were loaded */
    dsa_cuda_rank_t        *rank;
    dsa_cuda_graphs_t       graphs;
    dsa_cuda_batch_t        batch;
    dsa_cuda_inflight_t     inflight[DSA_CUDA_DEPTH];
    uint32_t                first;      /* the oldest step in flight */
    uint32_t                steps;      /* in flight */
} dsa_backend_cuda_t;


static int dsa_backend_cuda_model(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_backend_cuda_rank(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_backend_cuda_steps(dsa_backend_cuda_t *c, dsa_err_t *err);
static int dsa_backend_cuda_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_backend_cuda_enqueue(dsa_backend_cuda_t *c,
    dsa_cuda_inflight_t *f, const dsa_cuda_step_t *step,
    const dsa_cuda_extent_t *extent, dsa_err_t *err);
static int dsa_backend_cuda_wait(dsa_backend_t *b, dsa_err_t *err);
static void dsa_backend_cuda_close(dsa_backend_t *b);


dsa_backend_t *
dsa_backend_cuda_open(const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_backend_t       *b;
    dsa_backend_cuda_t  *c;

    if (conf->precision != DSA_SERVED) {
        (void) dsa_error(err, "\"backend cuda\" does not support \"precision "
                         "exact\"; expected \"precision served\" (\"backend "
                         "cpu\" supports both)");
        return NULL;
    }

    b = calloc(1, sizeof(dsa_backend_t));
    c = calloc(1, sizeof(dsa_backend_cuda_t));

    if (b == NULL || c == NULL) {
        (void) dsa_error(err, "no memory for \"backend cuda\"");
        free(b);
        free(c);
        return NULL;
    }

    b->data = c;
    b->start = dsa_backend_cuda_start;
    b->wait = dsa_backend_cuda_wait;
    b->close = dsa_backend_cuda_close;
    b->depth = DSA_CUDA_DEPTH;
    b->max_outputs = 1;
    b->masks = 0;

    if (dsa_cuda_check_device(conf->gpu[0], err) != DSA_OK
        || dsa_backend_cuda_model(b, c, conf, err) != DSA_OK
        || dsa_backend_cuda_rank(b, c, conf, err) != DSA_OK
        || dsa_backend_cuda_steps(c, err) != DSA_OK)
    {
        dsa_backend_cuda_close(b);
        return NULL;
    }

    return b;
}


/* The config, and the checkpoint's files unless weights are random. */

static int
dsa_backend_cuda_model(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    if (conf->random) {
        if (dsa_model_config_read(&b->config, conf->model, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (conf->layers != 0) {
            b->config.num_hidden_layers = conf->layers;

            if (b->config.first_k_dense_replace > conf->layers) {
                b->config.first_k_dense_replace = conf->layers;
            }
        }

        dsa_backend_fingerprint(b, "random", conf->precision);

        return DSA_OK;
    }

    c->weights = dsa_weights_open(conf->model, err);

    if (c->weights == NULL) {
        return DSA_ERROR;
    }

    b->config = c->weights->config;
    dsa_backend_fingerprint(b, c->weights->fingerprint, conf->precision);

    return DSA_OK;
}


static int
dsa_backend_cuda_rank(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    dsa_cuda_conf_t  rank;

    memset(&rank, 0, sizeof(rank));

    rank.weights = c->weights;
    rank.config = b->config;
    rank.device = conf->gpu[0];
    rank.context = conf->context;
    rank.kv_memory = conf->kv_memory;
    rank.max_tokens = conf->max_tokens;
    rank.max_seqs = conf->max_seqs;
    rank.allowed = conf->allowed;

    c->rank = dsa_cuda_rank_open(&rank, err);

    if (c->rank == NULL) {
        return DSA_ERROR;
    }

    /* the weights are on the GPU: the files are not needed any more */

    dsa_weights_close(c->weights);
    c->weights = NULL;

    b->ranks = 1;
    b->pages = c->rank->pages;
    b->rank_tokens = conf->max_tokens;

    return DSA_OK;
}


static int
dsa_backend_cuda_steps(dsa_backend_cuda_t *c, dsa_err_t *err)
{
    uint32_t  i;

    if (dsa_cuda_batch_open(&c->batch, c->rank, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_CUDA_DEPTH; i++) {
        if (dsa_cuda_inflight_open(&c->inflight[i], c->rank, err) != DSA_OK) {
            return DSA_ERROR;
        }
    }

    return dsa_cuda_graphs_open(&c->graphs, c->rank, &c->inflight[0], err);
}


static void
dsa_backend_cuda_close(dsa_backend_t *b)
{
    uint32_t             i;
    dsa_backend_cuda_t  *c = b->data;

    if (c->rank != NULL) {
        (void) dsa_cuda_rank_attach(c->rank);
        (void) cudaStreamSynchronize(c->rank->stream);
    }

    dsa_cuda_graphs_close(&c->graphs);

    for (i = 0; i < DSA_CUDA_DEPTH; i++) {
        dsa_cuda_inflight_close(&c->inflight[i]);
    }

    dsa_cuda_batch_close(&c->batch);
    dsa_cuda_rank_close(c->rank);
    dsa_weights_close(c->weights);

    free(c);
    free(b);
}


static int
dsa_backend_cuda_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    dsa_cuda_step_t       step;
    dsa_cuda_extent_t     extent;
    dsa_backend_cuda_t   *c = b->data;
    dsa_cuda_inflight_t  *f;

    /* the caller never starts more steps than b->depth */

    assert(c->steps < DSA_CUDA_DEPTH);

    f = &c->inflight[(c->first + c->steps) % DSA_CUDA_DEPTH];

    if (dsa_cuda_batch_make(&c->batch, f, &step, &extent, c->rank, seq,
                            n_seqs, err) != DSA_OK
        || dsa_backend_cuda_enqueue(c, f, &step, &extent, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    c->steps++;

    return DSA_OK;
}


/* Input, the step, samples, and the event behind them. */

static int
dsa_backend_cuda_enqueue(dsa_backend_cuda_t *c, dsa_cuda_inflight_t *f,
    const dsa_cuda_step_t *step, const dsa_cuda_extent_t *extent,
    dsa_err_t *err)
{
    int               rc;
    size_t            pitch;
    cudaGraphExec_t   graph;
    dsa_cuda_rank_t  *rank;

    rank = c->rank;
    pitch = rank->ld_pages * sizeof(int32_t);
    graph = dsa_cuda_graphs_find(&c->graphs, rank, step, f);

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : dsa_cuda_inflight_upload(f, rank);

    if (rc == 0) {
        rc = cudaMemcpy2DAsync(rank->input.pages, pitch, f->pages, pitch,
                               extent->pages * sizeof(int32_t),
                               extent->tables, cudaMemcpyHostToDevice,
                               rank->stream);
    }

    if (rc == 0 && extent->history != 0) {
        rc = cudaMemcpyAsync(rank->input.history, f->history,
                             extent->history * sizeof(uint32_t),
                             cudaMemcpyHostToDevice, rank->stream);
    }

    if (rc == 0 && graph != NULL) {
        rc = cudaGraphLaunch(graph, rank->stream);

    } else if (rc == 0 && dsa_cuda_rank_run(rank, step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    if (rc == 0 && f->samples != 0) {
        rc = cudaMemcpyAsync(f->sample, rank->sample,
                             f->samples * sizeof(dsa_cuda_sample_t),
                             cudaMemcpyDeviceToHost, rank->stream);
    }

    rc = rc != 0 ? rc : (int) cudaEventRecord(f->ended, rank->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: a step of %u tokens: %s", rank->device,
                         step->tokens, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_backend_cuda_wait(dsa_backend_t *b, dsa_err_t *err)
{
    int                   rc;
    dsa_backend_cuda_t   *c = b->data;
    dsa_cuda_inflight_t  *f;

    assert(c->steps > 0);

    f = &c->inflight[c->first];

    rc = dsa_cuda_rank_attach(c->rank);
    rc = rc != 0 ? rc : (int) cudaEventSynchronize(f->ended);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: a step failed: %s", c->rank->device,
                         dsa_cuda_error(rc));
    }

    dsa_cuda_batch_finish(f);

    c->first = (c->first + 1) % DSA_CUDA_DEPTH;
    c->steps--;

    return DSA_OK;
}
