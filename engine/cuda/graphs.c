
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/cuda/graphs.h"


static void dsa_graphs_sizes(dsa_cuda_graphs_t *g, uint32_t most);
static void dsa_graphs_bounds(dsa_cuda_graphs_t *g, uint32_t least,
    uint32_t most);
static uint32_t dsa_graphs_grouped(const dsa_cuda_graphs_t *g,
    const dsa_cuda_rank_t *rank, uint32_t bound);
static int dsa_graphs_capture(cudaGraphExec_t *exec, dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f, uint32_t tokens, uint32_t bound,
    uint32_t grouped, dsa_err_t *err);


int
dsa_cuda_graphs_open(dsa_cuda_graphs_t *g, dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f, dsa_err_t *err)
{
    int       rc;
    size_t    all, before, after;
    uint32_t  i, j, k, n;
    uint64_t  begin;

    begin = dsa_clock_ms();
    rc = cudaMemGetInfo(&before, &all);

    dsa_graphs_sizes(g, rank->max_samples);
    dsa_graphs_bounds(g, rank->topk, rank->context);

    n = 0;

    for (i = 0; i < g->sizes; i++) {
        for (j = 0; j < g->bounds; j++) {
            for (k = 0; k <= dsa_graphs_grouped(g, rank, j); k++) {
                if (dsa_graphs_capture(&g->exec[i][j][k], rank, f, g->size[i],
                                       g->bound[j], k, err)
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

    for (i = 0; i < g->sizes; i++) {
        for (j = 0; j < g->bounds; j++) {
            for (k = 0; k < 2; k++) {
                if (g->exec[i][j][k] != NULL) {
                    (void) cudaGraphExecDestroy(g->exec[i][j][k]);
                }
            }
        }
    }
}


/*
 * Returns 1 if steps with several tokens of a sequence have graphs of their
 * own: those that compute index scores, which are faster in groups then, and
 * slower if each token is a group; and those of dense models, which read the
 * keys of a sequence once.
 */

static uint32_t
dsa_graphs_grouped(const dsa_cuda_graphs_t *g, const dsa_cuda_rank_t *rank,
    uint32_t bound)
{
    return rank->drafts && (rank->dense || g->bound[bound] > rank->topk);
}


/*
 * Sets the numbers of tokens: all up to 16, then multiples of a power of two
 * that is an eighth to a quarter of them, so that powers of two, which batches
 * often have, are not padded; the last one is most.
 */

static void
dsa_graphs_sizes(dsa_cuda_graphs_t *g, uint32_t most)
{
    uint32_t  n, step;

    step = 1;

    for (n = 1; g->sizes < DSA_CUDA_SIZES; n += step, n -= n % step) {
        if (n > most || g->sizes == DSA_CUDA_SIZES - 1) {
            n = most;
        }

        g->size[g->sizes++] = n;

        if (n == most) {
            break;
        }

        for (step = 1; step < n / 8; step *= 2) {
            /* void */
        }
    }
}


/*
 * Sets the bounds of contexts: first topk, then four times the previous one,
 * up to most.
 */

static void
dsa_graphs_bounds(dsa_cuda_graphs_t *g, uint32_t least, uint32_t most)
{
    uint32_t  bound;

    for (bound = least; g->bounds < DSA_CUDA_BOUNDS; bound *= 4) {
        if (bound >= most || g->bounds == DSA_CUDA_BOUNDS - 1) {
            bound = most;
        }

        g->bound[g->bounds++] = bound;

        if (bound == most) {
            break;
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
                         "tokens: %s", rank->device, tokens,
                         dsa_cuda_error(ended));
    }

    return DSA_OK;
}


cudaGraphExec_t
dsa_cuda_graphs_find(const dsa_cuda_graphs_t *g, const dsa_cuda_rank_t *rank,
    const dsa_cuda_step_t *step, const dsa_cuda_common_t *common,
    const dsa_cuda_inflight_t *f)
{
    uint32_t         i, j, k;
    dsa_cuda_host_t  host;

    if (!common->decode) {
        return NULL;
    }

    for (i = 0; i + 1 < g->sizes && g->size[i] < common->fullest; i++) {
        /* void */
    }

    for (j = 0; j + 1 < g->bounds && g->bound[j] < common->max_keys; j++) {
        /* void */
    }

    dsa_cuda_host(&host, rank, f);
    dsa_cuda_host_pad(&host, step->tokens, g->size[i]);

    k = common->grouped && dsa_graphs_grouped(g, rank, j);

    return g->exec[i][j][k];
}
