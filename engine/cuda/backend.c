
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <assert.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/backend.h"
#include "engine/cuda/batch.h"
#include "engine/cuda/copies.h"
#include "engine/cuda/graphs.h"
#include "engine/cuda/group.h"
#include "engine/cuda/moves.h"
#include "engine/cuda/nccl.h"
#include "engine/cuda/preview.h"
#include "engine/quantize.h"


/*
 * The scheduler's steps on one or several ranks.  The arrays of a step are
 * prepared in pinned memory and copied in stream order, and its samples are
 * copied back after it.  Two steps may be in flight, so the host prepares the
 * second one while the first one runs.
 *
 * With "attention data" each rank computes the entries that are on it, or a
 * padding token.  With "attention tensor" all ranks compute all entries, and
 * the samples of rank 0 are used; those of the others are the same.
 */

#define DSA_CUDA_DEPTH      2


/* The state of one rank. */

typedef struct {
    dsa_cuda_rank_t        *rank;
    dsa_cuda_graphs_t       graphs;
    dsa_cuda_batch_t        batch;
    dsa_cuda_inflight_t     inflight[DSA_CUDA_DEPTH];
} dsa_cuda_gpu_t;


/* The step that is being started. */

typedef struct {
    const dsa_batch_seq_t  *seq;
    uint32_t                n_seqs;
    uint32_t                inflight;
    dsa_cuda_common_t       common;
} dsa_cuda_job_t;


typedef struct {
    dsa_weights_t          *weights;    /* NULL after they were loaded */
    uint8_t                 config_hash[32];    /* of them */
    dsa_backend_conf_t      conf;       /* for reload() */
    dsa_cuda_group_t       *group;
    dsa_cuda_job_t          job;
    uint32_t                first;      /* the oldest step in flight */
    uint32_t                draft;      /* of it, that the ranks make */
    uint32_t                steps;      /* in flight */
    uint32_t                own;        /* ranks of b->ranks on this host */
    uint32_t                first_rank; /* of them */
    dsa_cuda_gpu_t          gpu[DSA_MAX_GPUS];
    dsa_cuda_moves_t        moves;
    dsa_cuda_copies_t       copies;
} dsa_backend_cuda_t;


static int dsa_backend_cuda_model(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static void dsa_backend_cuda_drafts(dsa_backend_t *b,
    const dsa_backend_cuda_t *c, const dsa_backend_conf_t *conf);
static int dsa_backend_cuda_random(dsa_backend_t *b,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_backend_cuda_group(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err);
static int dsa_backend_cuda_open_gpu(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_backend_cuda_close_gpu(void *data, uint32_t rank,
    dsa_err_t *err);
static int dsa_backend_cuda_start(dsa_backend_t *b, dsa_batch_seq_t *seq,
    uint32_t n_seqs, dsa_err_t *err);
static int dsa_backend_cuda_enqueue(void *data, uint32_t rank,
    dsa_err_t *err);
static int dsa_backend_cuda_wait(dsa_backend_t *b, dsa_err_t *err);
static int dsa_backend_cuda_over(dsa_backend_t *b);
static int dsa_backend_cuda_masked(dsa_backend_t *b, dsa_backend_cuda_t *c,
    dsa_err_t *err);
static int dsa_backend_cuda_draft(void *data, uint32_t rank, dsa_err_t *err);
static int dsa_backend_cuda_ended(dsa_backend_cuda_t *c, dsa_err_t *err);
static int dsa_backend_cuda_copy(dsa_backend_t *b,
    const dsa_page_copy_t *copy, uint32_t n, dsa_err_t *err);
static int dsa_backend_cuda_pin(dsa_backend_t *b, void *memory,
    uint64_t bytes, dsa_err_t *err);
static int dsa_backend_cuda_move(dsa_backend_t *b, dsa_move_e way,
    uint32_t rank, const dsa_page_move_t *move, uint32_t n, dsa_err_t *err);
static int dsa_backend_cuda_moved(dsa_backend_t *b, dsa_move_e way,
    uint32_t rank, int wait, uint64_t *calls, dsa_err_t *err);
static int dsa_backend_cuda_reload(dsa_backend_t *b, dsa_err_t *err);
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
    b->ended = dsa_backend_cuda_over;
    b->pin = dsa_backend_cuda_pin;
    b->move = dsa_backend_cuda_move;
    b->moved = dsa_backend_cuda_moved;
    b->reload = conf->random || dsa_backend_hosts(conf) > 1
                    ? NULL : dsa_backend_cuda_reload;
    b->close = dsa_backend_cuda_close;
    b->depth = DSA_CUDA_DEPTH;
    b->rollouts = 1;

    if (dsa_backend_cuda_model(b, c, conf, err) != DSA_OK
        || dsa_backend_cuda_group(b, c, conf, err) != DSA_OK
        || dsa_cuda_team_run(c->group->team, dsa_backend_cuda_open_gpu, c, err)
           != DSA_OK
        || dsa_cuda_group_check(c->group, err) != DSA_OK)
    {
        dsa_backend_cuda_close(b);
        return NULL;
    }

    return b;
}


/*
 * Reads the config, and opens the checkpoint's files unless weights are
 * random.
 */

static int
dsa_backend_cuda_model(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    if (conf->random) {
        if (dsa_model_config_read(&b->config, conf->model, err) != DSA_OK) {
            return DSA_ERROR;
        }

        if (conf->layers != 0) {
            dsa_model_config_resize(&b->config, conf->layers);
        }

        dsa_backend_cuda_drafts(b, c, conf);
        b->kv_bf16 = dsa_kv_bf16(DSA_BACKEND_CUDA, conf->kv, &b->config);

        return dsa_backend_cuda_random(b, conf, err);
    }

    /* the group reads the data later, and computes the fingerprint */

    c->weights = dsa_weights_open_unread(conf->model, err);

    if (c->weights == NULL
        || (conf->quantize && dsa_weights_quantize(c->weights, err) != DSA_OK))
    {
        return DSA_ERROR;
    }

    b->config = c->weights->config;
    memcpy(c->config_hash, c->weights->config_hash, sizeof(c->config_hash));
    c->conf = *conf;
    dsa_backend_cuda_drafts(b, c, conf);

    return DSA_OK;
}


/* Sets how many drafts there are, if the checkpoint has a draft layer. */

static void
dsa_backend_cuda_drafts(dsa_backend_t *b, const dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf)
{
    b->drafts = dsa_cuda_conf_drafts(conf, &b->config);

    if (conf->drafts_if_any && c->weights != NULL
        && c->weights->draft.fault[0] != '\0')
    {
        b->drafts = 0;
        dsa_backend_without_drafts(b, c->weights->draft.fault);
    }

    b->max_outputs = b->drafts + 1;
}


/*
 * Sets a fingerprint for random weights.  It is random, because these weights
 * depend on the number of GPUs and on the program's version: no other process
 * may use the pages in Redis.
 */

static int
dsa_backend_cuda_random(dsa_backend_t *b, const dsa_backend_conf_t *conf,
    dsa_err_t *err)
{
    char      model[48];
    uint64_t  number[2];

    if (getrandom(number, sizeof(number), 0) != sizeof(number)) {
        return dsa_error(err, "getrandom() failed: %s", strerror(errno));
    }

    (void) snprintf(model, sizeof(model), "random %016llx%016llx",
                    (unsigned long long) number[0],
                    (unsigned long long) number[1]);

    dsa_backend_fingerprint(b, model, conf);

    return DSA_OK;
}


static int
dsa_backend_cuda_group(dsa_backend_t *b, dsa_backend_cuda_t *c,
    const dsa_backend_conf_t *conf, dsa_err_t *err)
{
    uint32_t         r, hosts;
    dsa_cuda_conf_t  group;

    dsa_cuda_conf_init(&group, conf, &b->config);
    group.weights = c->weights;
    group.outputs = b->max_outputs;
    group.drafts = b->drafts != 0;
    b->kv_bf16 = group.kv_bf16;

    hosts = dsa_backend_hosts(conf);
    c->own = conf->attention == DSA_ATTENTION_DATA ? conf->gpus : 1;
    c->first_rank = conf->hosts.host * conf->gpus;

    b->ranks = c->own * hosts;
    b->rank_tokens = group.max_tokens;
    b->copy = b->ranks > 1 ? dsa_backend_cuda_copy : NULL;

    c->group = dsa_cuda_group_open(&group, err);

    if (c->group == NULL) {
        return DSA_ERROR;
    }

    /*
     * A part of a prompt would need a hidden state of the rank before, and by
     * NCCL cache entries are not stored on other ranks.
     */

    b->splits = b->ranks > 1 && b->drafts == 0 && !c->group->net;

    if (c->weights != NULL) {
        dsa_backend_fingerprint(b, c->group->fingerprint, conf);
    }

    /* the weights are on the GPUs, so the files are closed */

    dsa_weights_close(c->weights);
    c->weights = NULL;

    b->pages = c->group->pages;
    b->page_bytes = c->group->rank[0]->cache.page;
    c->moves.group = c->group;
    c->copies.group = c->group;

    for (r = 0; r < c->group->ranks; r++) {
        c->gpu[r].rank = c->group->rank[r];
    }

    for (r = 0; r < b->ranks; r++) {
        b->node[r] = r - c->first_rank < c->own
                     ? dsa_cuda_node(c->group->rank[r - c->first_rank]->device)
                     : -1;
    }

    return DSA_OK;
}


/* Allocates the memory of a rank for steps, and captures its graphs. */

static int
dsa_backend_cuda_open_gpu(void *data, uint32_t rank, dsa_err_t *err)
{
    int                  rc;
    uint32_t             i;
    dsa_cuda_gpu_t      *gpu;
    dsa_backend_cuda_t  *c;

    c = data;
    gpu = &c->gpu[rank];

    dsa_log_debug("rank %u: its thread attaches to GPU %d", rank,
                  gpu->rank->device);

    rc = dsa_cuda_rank_attach(gpu->rank);
    rc = rc != 0 ? rc : dsa_cuda_copies_open(&c->copies, rank);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: events: %s", gpu->rank->device,
                         dsa_cuda_error(rc));
    }

    if (dsa_cuda_moves_open(&c->moves, rank, err) != DSA_OK
        || dsa_cuda_batch_open(&gpu->batch, gpu->rank, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_CUDA_DEPTH; i++) {
        if (dsa_cuda_inflight_open(&gpu->inflight[i], gpu->rank, err)
            != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return dsa_cuda_graphs_open(&gpu->graphs, gpu->rank, &gpu->inflight[0],
                                err);
}


static int
dsa_backend_cuda_close_gpu(void *data, uint32_t rank, dsa_err_t *err)
{
    uint32_t             i;
    dsa_cuda_gpu_t      *gpu;
    dsa_backend_cuda_t  *c;

    c = data;
    gpu = &c->gpu[rank];

    if (gpu->rank == NULL) {
        return DSA_OK;
    }

    dsa_log_debug("rank %u: its thread leaves GPU %d", rank,
                  gpu->rank->device);

    (void) dsa_cuda_rank_attach(gpu->rank);
    (void) cudaStreamSynchronize(gpu->rank->stream);

    dsa_cuda_moves_close(&c->moves, rank);
    dsa_cuda_graphs_close(&gpu->graphs);

    for (i = 0; i < DSA_CUDA_DEPTH; i++) {
        dsa_cuda_inflight_close(&gpu->inflight[i]);
    }

    dsa_cuda_batch_close(&gpu->batch);

    dsa_cuda_copies_close(&c->copies, rank);

    return DSA_OK;
}


static int
dsa_backend_cuda_reload(dsa_backend_t *b, dsa_err_t *err)
{
    int                  rc;
    dsa_backend_cuda_t  *c = b->data;

    assert(c->steps == 0);

    rc = dsa_cuda_group_reload(c->group, &c->conf, c->config_hash,
                               b->drafts != 0, err);

    if (rc == DSA_OK) {
        dsa_backend_fingerprint(b, c->group->fingerprint, &c->conf);
    }

    return rc;
}


static void
dsa_backend_cuda_close(dsa_backend_t *b)
{
    uint32_t             i;
    dsa_err_t            err;
    dsa_backend_cuda_t  *c = b->data;

    if (c->group != NULL) {
        (void) dsa_cuda_team_run(c->group->team, dsa_backend_cuda_close_gpu, c,
                                 &err);
    }

    for (i = 0; i < b->n_pinned; i++) {
        dsa_cuda_moves_unpin(&c->moves, b->pinned[i].memory);
    }

    dsa_cuda_group_close(c->group);
    dsa_weights_close(c->weights);

    free(c);
    free(b);
}


static int
dsa_backend_cuda_start(dsa_backend_t *b, dsa_batch_seq_t *seq, uint32_t n_seqs,
    dsa_err_t *err)
{
    dsa_backend_cuda_t  *c = b->data;

    /* the caller never starts more steps than b->depth */

    assert(c->steps < DSA_CUDA_DEPTH);

    c->job.seq = seq;
    c->job.n_seqs = n_seqs;
    c->job.inflight = (c->first + c->steps) % DSA_CUDA_DEPTH;

    if (dsa_cuda_batch_common(&c->job.common, c->group->rank[0], seq, n_seqs,
                              err) != DSA_OK
        || dsa_cuda_team_run(c->group->team, dsa_backend_cuda_enqueue, c, err)
           != DSA_OK)
    {
        return DSA_ERROR;
    }

    c->steps++;

    return DSA_OK;
}


/* Enqueues a step on one rank: input, layers, samples, and the event. */

static int
dsa_backend_cuda_enqueue(void *data, uint32_t number, dsa_err_t *err)
{
    int                   rc;
    dsa_cuda_job_t       *job;
    cudaGraphExec_t       graph;
    dsa_cuda_step_t       step;
    dsa_cuda_gpu_t       *gpu;
    dsa_cuda_rank_t      *rank;
    dsa_cuda_extent_t     extent;
    dsa_backend_cuda_t   *c;
    dsa_cuda_inflight_t  *f;

    c = data;
    job = &c->job;
    gpu = &c->gpu[number];
    rank = gpu->rank;
    f = &gpu->inflight[job->inflight];

    dsa_cuda_batch_make(&gpu->batch, f, &step, &extent, &job->common, rank,
                        job->seq, job->n_seqs);

    if (rank->drafts) {
        dsa_cuda_speculate_make(f, &gpu->batch, &job->common, rank);
    }

    graph = dsa_cuda_graphs_find(&gpu->graphs, rank, &step, &job->common, f);

    rc = dsa_cuda_rank_attach(rank);
    rc = rc != 0 ? rc : dsa_cuda_inflight_upload(f, rank, &extent);

    if (rc == 0 && rank->drafts) {
        rc = dsa_cuda_speculate_begin(f, rank);
    }

    if (rc == 0 && graph != NULL) {
        rc = cudaGraphLaunch(graph, rank->stream);

    } else if (rc == 0 && dsa_cuda_rank_run(rank, &step, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rc = rc != 0 ? rc : dsa_cuda_inflight_download(f, rank);
    rc = rc != 0 ? rc : dsa_cuda_rollout_enqueue(&f->rollouts, rank,
                                                 f->samples);
    rc = rc != 0 ? rc : dsa_cuda_loads_enqueue(f, rank, &step);

    if (rc == 0 && rank->drafts) {
        rc = dsa_cuda_speculate_enqueue(f, rank);
    }

    rc = rc != 0 ? rc : (int) cudaEventRecord(f->ended, rank->stream);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: a step of %u tokens: %s", rank->device,
                         step.tokens, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


static int
dsa_backend_cuda_wait(dsa_backend_t *b, dsa_err_t *err)
{
    uint32_t              r;
    dsa_backend_cuda_t   *c = b->data;
    dsa_cuda_inflight_t  *f[DSA_MAX_GPUS];

    assert(c->steps > 0);

    if (dsa_backend_cuda_ended(c, err) != DSA_OK
        || dsa_cuda_group_check(c->group, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (c->gpu[0].inflight[c->first].drafts.masked
        && dsa_backend_cuda_masked(b, c, err) != DSA_OK)
    {
        return DSA_ERROR;
    }

    for (r = 0; r < c->group->ranks; r++) {
        f[r] = &c->gpu[r].inflight[c->first];
    }

    dsa_cuda_loads_add(b, f, c->group->ranks, c->gpu[0].rank);

    for (r = 0; r < c->own; r++) {
        dsa_cuda_batch_finish(&c->gpu[r].inflight[c->first],
                              c->gpu[r].rank);

        if (b->drafts != 0) {
            dsa_cuda_speculate_finish(&c->gpu[r].inflight[c->first]);
        }
    }

    c->first = (c->first + 1) % DSA_CUDA_DEPTH;
    c->steps--;

    return DSA_OK;
}


/* An error counts as an end, which wait() reports. */

static int
dsa_backend_cuda_over(dsa_backend_t *b)
{
    uint32_t             r;
    dsa_err_t            err;
    dsa_backend_cuda_t  *c = b->data;

    for (r = 0; r < c->group->ranks; r++) {
        if (cudaEventQuery(c->gpu[r].inflight[c->first].ended)
            == cudaErrorNotReady)
        {
            return dsa_cuda_group_check(c->group, &err) != DSA_OK;
        }
    }

    return 1;
}


/*
 * Makes the drafts of the oldest step, whose masks depend on its samples and on
 * the drafts before.  With "attention tensor" all ranks have the masks of rank
 * 0.
 */

static int
dsa_backend_cuda_masked(dsa_backend_t *b, dsa_backend_cuda_t *c,
    dsa_err_t *err)
{
    uint32_t            k, r;
    dsa_cuda_drafts_t  *d, *first;

    first = &c->gpu[0].inflight[c->first].drafts;

    for (k = 0; k < first->most; k++) {
        for (r = 0; r < c->own; r++) {
            dsa_cuda_speculate_masks(&c->gpu[r].inflight[c->first],
                                     c->gpu[r].rank, k);
        }

        for (r = c->own; r < c->group->ranks; r++) {
            d = &c->gpu[r].inflight[c->first].drafts;

            memcpy(d->state, first->state, first->n * sizeof(uint32_t));
            memcpy(d->mask, first->mask,
                   (size_t) first->n * dsa_mask_words(b->config.vocab_size)
                   * sizeof(uint32_t));
        }

        c->draft = k;

        if (dsa_cuda_team_run(c->group->team, dsa_backend_cuda_draft, c, err)
            != DSA_OK
            || dsa_cuda_group_check(c->group, err) != DSA_OK)
        {
            return DSA_ERROR;
        }
    }

    return DSA_OK;
}


static int
dsa_backend_cuda_draft(void *data, uint32_t rank, dsa_err_t *err)
{
    int                  rc;
    dsa_cuda_gpu_t      *gpu;
    dsa_backend_cuda_t  *c;

    c = data;
    gpu = &c->gpu[rank];

    rc = dsa_cuda_rank_attach(gpu->rank);
    rc = rc != 0 ? rc
         : dsa_cuda_speculate_draft(&gpu->inflight[c->first], gpu->rank,
                                    c->draft);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: draft %u of a step: %s",
                         gpu->rank->device, c->draft, dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Waits until all ranks have finished the oldest step.  The wait also ends
 * with an error of any rank, because the other ranks may then wait on their
 * GPUs for it, and when the time limit of such a wait on a GPU has expired,
 * because the rank that is waited for may never finish.
 */

static int
dsa_backend_cuda_ended(dsa_backend_cuda_t *c, dsa_err_t *err)
{
    int              rc, alone;
    uint32_t         r, busy;
    cudaEvent_t      ended;
    dsa_cuda_gpu_t  *gpu;

    alone = c->group->ranks == 1 && !c->group->net;

    do {
        busy = 0;

        for (r = 0; r < c->group->ranks; r++) {
            gpu = &c->gpu[r];
            ended = gpu->inflight[c->first].ended;

            rc = alone ? (int) cudaEventSynchronize(ended)
                       : (int) cudaEventQuery(ended);

            if (rc == (int) cudaErrorNotReady) {
                busy = 1;

            } else if (rc != 0) {
                dsa_log_debug("rank %u: its step on GPU %d failed", r,
                              gpu->rank->device);

                return dsa_error(err, "GPU %d: %s", gpu->rank->device,
                                 dsa_cuda_error(rc));
            }
        }

        /* if another rank hangs, this one waits on its GPU */

        if (busy && dsa_cuda_group_check(c->group, err) != DSA_OK) {
            return DSA_ERROR;
        }

    } while (busy);

    return DSA_OK;
}


static int
dsa_backend_cuda_copy(dsa_backend_t *b, const dsa_page_copy_t *copy,
    uint32_t n, dsa_err_t *err)
{
    int                     rc;
    uint32_t                i;
    dsa_backend_cuda_t     *c = b->data;
    const dsa_page_copy_t  *p;

    for (i = 0; i < n; i++) {
        p = &copy[i];

        if (p->from_rank >= b->ranks || p->to_rank >= b->ranks
            || p->from_page >= b->pages || p->to_page >= b->pages)
        {
            return dsa_error(err, "a copy from page %u of rank %u to page %u "
                             "of rank %u; expected pages below %u and ranks "
                             "below %u", p->from_page, p->from_rank,
                             p->to_page, p->to_rank, b->pages, b->ranks);
        }
    }

    if (c->group->net) {
        rc = dsa_cuda_nccl_copy(c->group->rank, c->own, c->first_rank, copy,
                                n);
        rc = rc != 0 ? rc : dsa_cuda_copies_record(&c->copies);

    } else {
        rc = dsa_cuda_copies_order(&c->copies, copy, n);
    }

    if (rc != 0) {
        return dsa_error(err, "copying %u pages between GPUs: %s", n,
                         dsa_cuda_error(rc));
    }

    return DSA_OK;
}


/*
 * Registers host memory.  No step may be in flight: see engine/cuda/group.h.
 */

static int
dsa_backend_cuda_pin(dsa_backend_t *b, void *memory, uint64_t bytes,
    dsa_err_t *err)
{
    int                  rc;
    uint64_t             begin;
    dsa_backend_cuda_t  *c = b->data;

    assert(c->steps == 0);

    if (dsa_backend_pin(b, memory, bytes, err) != DSA_OK) {
        return DSA_ERROR;
    }

    begin = dsa_clock_ms();
    rc = dsa_cuda_moves_pin(&c->moves, memory, bytes);

    if (rc != 0) {
        b->n_pinned--;

        return dsa_error(err, "%.2f GB of host memory cannot be registered "
                         "with the GPUs: %s; expected the right to lock so "
                         "much (\"LimitMEMLOCK=infinity\" of systemd, "
                         "\"ulimit -l\")", (double) bytes * 1e-9,
                         dsa_cuda_error(rc));
    }

    dsa_log(DSA_LOG_NOTICE, "host memory: %.2f GB registered with %u GPUs in "
            "%.1f s", (double) bytes * 1e-9, c->group->ranks,
            (double) (dsa_clock_ms() - begin) * 1e-3);

    return DSA_OK;
}


static int
dsa_backend_cuda_move(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    const dsa_page_move_t *move, uint32_t n, dsa_err_t *err)
{
    dsa_backend_cuda_t  *c = b->data;

    if (dsa_backend_check_moves(b, rank, move, n, err) != DSA_OK) {
        return DSA_ERROR;
    }

    rank -= c->first_rank;

    if (rank >= c->own) {
        return dsa_error(err, "pages of rank %u cannot be moved; expected a "
                         "rank of this host", rank + c->first_rank);
    }

    return dsa_cuda_moves_order(&c->moves, way, rank, c->copies.copied[rank],
                                move, n, err);
}


static int
dsa_backend_cuda_moved(dsa_backend_t *b, dsa_move_e way, uint32_t rank,
    int wait, uint64_t *calls, dsa_err_t *err)
{
    dsa_backend_cuda_t  *c = b->data;

    assert(rank < b->ranks);

    return dsa_cuda_moves_ended(&c->moves, way, rank - c->first_rank, wait,
                                calls, err);
}
