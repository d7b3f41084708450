
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/cuda/graphs.h"


static int dsa_graphs_capture(cudaGraphExec_t *exec, dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f, uint32_t tokens, uint32_t bound,
    uint32_t grouped, dsa_err_t *err);


int
dsa_cuda_graphs_open(dsa_cuda_graphs_t *g, dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f, dsa_err_t *err)
{
    int                rc;
    size_t             all, before, after;
    uint32_t           i, j, k, n;
    uint64_t           begin;
    dsa_cuda_sizes_t  *s;

    begin = dsa_clock_ms();
    rc = cudaMemGetInfo(&before, &all);

    s = &g->sizes;
    dsa_cuda_rank_sizes(s, rank);

    n = 0;

    for (i = 0; i < s->sizes; i++) {
        for (j = 0; j < s->bounds; j++) {
            for (k = 0; k <= s->grouped[j]; k++) {
                if (dsa_graphs_capture(&g->exec[i][j][k], rank, f, s->size[i],
                                       s->bound[j], k, err)
                    != DSA_OK)
                {
                    return DSA_ERROR;
                }

                n++;
            }
        }
    }

    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
    rc = rc != 0 ? rc : (int) cudaMemGetInfo(&after, &all);

    if (rc != 0) {
        return dsa_error(err, "GPU %d: its free memory is not known: %s",
                         rank->device, dsa_cuda_error(rc));
    }

    dsa_log(DSA_LOG_NOTICE, "GPU %d: %u graphs for decode steps of up to %u "
            "tokens, contexts up to %u, %.2f GB, %.1f s", rank->device, n,
            rank->max_samples, rank->context,
            (double) (before > after ? before - after : 0) * 1e-9,
            (double) (dsa_clock_ms() - begin) * 1e-3);

    return DSA_OK;
}


void
dsa_cuda_graphs_close(dsa_cuda_graphs_t *g)
{
    uint32_t  i, j, k;

    for (i = 0; i < g->sizes.sizes; i++) {
        for (j = 0; j < g->sizes.bounds; j++) {
            for (k = 0; k < 2; k++) {
                if (g->exec[i][j][k] != NULL) {
                    (void) cudaGraphExecDestroy(g->exec[i][j][k]);
                }
            }
        }
    }
}


static void
dsa_graphs_step(dsa_cuda_step_t *step, const dsa_cuda_rank_t *rank,
    uint32_t tokens, uint32_t bound, uint32_t grouped)
{
    memset(step, 0, sizeof(dsa_cuda_step_t));

    step->tokens = tokens;
    step->decode = tokens;
    step->samples = tokens;
    step->fullest = tokens;
    step->max_keys = bound;
    step->indexed = bound > rank->topk;
    step->grouped = grouped;
}


/*
 * A single rank runs the step once before the capture, because libraries
 * choose and load their kernels in the first run and must not do so during a
 * capture.  Several ranks have run the steps in warm.c.  They must not run
 * steps here: a step would wait on the GPU for another rank, while that rank
 * allocates the memory of a graph, which may wait for this GPU.
 */

static int
dsa_graphs_capture(cudaGraphExec_t *exec, dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f, uint32_t tokens, uint32_t bound,
    uint32_t grouped, dsa_err_t *err)
{
    int              rc, ended;
    cudaGraph_t      graph;
    dsa_cuda_host_t  host;
    dsa_cuda_step_t  step;

    static const dsa_cuda_extent_t  none;

    dsa_cuda_host(&host, rank, f);
    dsa_cuda_host_pad(&host, 0, tokens);
    dsa_graphs_step(&step, rank, tokens, bound, grouped);

    rc = 0;

    if (rank->shard.ranks == 1) {
        rc = dsa_cuda_inflight_upload(f, rank, &none);

        if (rc == 0 && dsa_cuda_rank_run(rank, &step, err) != DSA_OK) {
            return DSA_ERROR;
        }

        rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
    }

    rc = rc != 0 ? rc : (int) cudaStreamBeginCapture(rank->stream,
                                             cudaStreamCaptureModeThreadLocal);
    if (rc != 0) {
        return dsa_error(err, "GPU %d: a decode step of %u tokens: %s",
                         rank->device, tokens, dsa_cuda_error(rc));
    }

    rc = dsa_cuda_rank_run(rank, &step, err);
    ended = cudaStreamEndCapture(rank->stream, &graph);

    if (ended == 0) {
        ended = rc == DSA_OK ? (int) cudaGraphInstantiate(exec, graph, 0) : 0;
        (void) cudaGraphDestroy(graph);

        /* upload now, because otherwise the first launch would allocate */

        if (rc == DSA_OK && ended == 0) {
            ended = cudaGraphUpload(*exec, rank->stream);
        }
    }

    if (rc != DSA_OK) {
        return DSA_ERROR;
    }

    if (ended != 0) {
        return dsa_error(err, "GPU %d: the graph of a decode step of %u "
                         "tokens: %s%s", rank->device, tokens,
                         dsa_cuda_error(ended),
                         ended == cudaErrorMemoryAllocation
                         ? "; a smaller \"kv_memory\", \"max_running\" or "
                           "\"speculate\" leaves more room" : "");
    }

    return DSA_OK;
}


cudaGraphExec_t
dsa_cuda_graphs_find(const dsa_cuda_graphs_t *g, const dsa_cuda_rank_t *rank,
    const dsa_cuda_step_t *step, const dsa_cuda_common_t *common,
    const dsa_cuda_inflight_t *f)
{
    uint32_t                 i, j, k;
    dsa_cuda_host_t          host;
    const dsa_cuda_sizes_t  *s;

    if (!common->decode) {
        return NULL;
    }

    s = &g->sizes;

    for (i = 0; i + 1 < s->sizes && s->size[i] < common->fullest; i++) {
        /* void */
    }

    for (j = 0; j + 1 < s->bounds && s->bound[j] < common->max_keys; j++) {
        /* void */
    }

    dsa_cuda_host(&host, rank, f);
    dsa_cuda_host_pad(&host, step->tokens, s->size[i]);

    k = common->grouped && s->grouped[j];

    return g->exec[i][j][k];
}
