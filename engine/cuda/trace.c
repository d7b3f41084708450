
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "engine/cuda/rank.h"
#include "kernels/core/bf16.h"


int
dsa_cuda_trace(dsa_cuda_rank_t *rank, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const void *data)
{
    int       rc;
    void     *p;
    uint64_t  n;

    if (rank->trace == NULL) {
        return 0;
    }

    n = (uint64_t) rows * cols * sizeof(float);
    p = malloc(n);

    if (p == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = cudaMemcpyAsync(p, data, n, cudaMemcpyDeviceToHost, rank->stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);

    if (rc == 0) {
        rank->trace(rank->trace_ctx, name, layer, rows, cols, p);
    }

    free(p);

    return rc;
}


/* out [n] += x [n], device memory. */

static int
dsa_trace_add_bf16(float *out, const dsa_bf16_t *x, uint64_t n,
    dsa_stream_t stream)
{
    int          rc;
    uint64_t     i;
    dsa_bf16_t  *v;

    v = malloc(n * sizeof(dsa_bf16_t));

    if (v == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = cudaMemcpyAsync(v, x, n * sizeof(dsa_bf16_t), cudaMemcpyDeviceToHost,
                         stream);
    rc = rc != 0 ? rc : (int) cudaStreamSynchronize(stream);

    for (i = 0; i < n; i++) {
        out[i] += dsa_bf16_decode(v[i]);
    }

    free(v);

    return rc;
}


int
dsa_cuda_trace_bf16(dsa_cuda_rank_t *rank, const char *name, uint32_t layer,
    uint32_t rows, uint32_t cols, const dsa_bf16_t *x,
    const dsa_bf16_t *residual)
{
    int       rc;
    float    *sum;
    uint64_t  n;

    if (rank->trace == NULL) {
        return 0;
    }

    n = (uint64_t) rows * cols;
    sum = calloc(n, sizeof(float));

    if (sum == NULL) {
        return cudaErrorMemoryAllocation;
    }

    rc = dsa_trace_add_bf16(sum, x, n, rank->stream);

    if (rc == 0 && residual != NULL) {
        rc = dsa_trace_add_bf16(sum, residual, n, rank->stream);
    }

    if (rc == 0) {
        rank->trace(rank->trace_ctx, name, layer, rows, cols, sum);
    }

    free(sum);

    return rc;
}


/* Copies n words from or to the GPU, in stream order. */

static int
dsa_trace_get(dsa_cuda_rank_t *rank, void *to, const void *from, uint64_t n)
{
    int  rc;

    rc = cudaMemcpyAsync(to, from, n * sizeof(int32_t),
                         cudaMemcpyDeviceToHost, rank->stream);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
}


static int
dsa_trace_put(dsa_cuda_rank_t *rank, void *to, const void *from, uint64_t n)
{
    int  rc;

    rc = cudaMemcpyAsync(to, from, n * sizeof(int32_t),
                         cudaMemcpyHostToDevice, rank->stream);

    return rc != 0 ? rc : (int) cudaStreamSynchronize(rank->stream);
}


/* A selection in host memory while it is replaced. */

typedef struct {
    int32_t            *pick;               /* [n, topk] */
    int32_t            *slot;               /* [n, topk] */
    uint32_t           *n_pick;             /* [n] */
    int32_t            *table;              /* [n] */
    int32_t            *pages;              /* [S, ld_pages] */
} dsa_trace_selection_t;


/*
 * Sets the slots of the picked positions, and -1 after the last one of a
 * token.
 */

static void
dsa_trace_slots(const dsa_cuda_rank_t *rank, dsa_trace_selection_t *v,
    uint32_t n)
{
    uint32_t  i, j, page;
    uint64_t  at;

    for (i = 0; i < n; i++) {
        for (j = 0; j < rank->topk; j++) {
            at = (uint64_t) i * rank->topk + j;

            if (j >= v->n_pick[i]) {
                v->pick[at] = -1;
                v->slot[at] = -1;
                continue;
            }

            page = (uint32_t) v->pick[at] / DSA_PAGE_TOKENS;
            v->slot[at] = v->pages[(uint64_t) v->table[i] * rank->ld_pages
                                   + page]
                          * DSA_PAGE_TOKENS
                          + v->pick[at] % DSA_PAGE_TOKENS;
        }
    }
}


static int
dsa_trace_replace(dsa_cuda_rank_t *rank, dsa_trace_selection_t *v,
    uint32_t layer, uint32_t first, uint32_t n)
{
    int       rc;
    uint64_t  at, picks;

    at = (uint64_t) first * rank->topk;
    picks = (uint64_t) n * rank->topk;

    rc = dsa_trace_get(rank, v->pick, rank->work.pick + at, picks);
    rc = rc != 0 ? rc : dsa_trace_get(rank, v->n_pick,
                                      rank->work.n_pick + first, n);
    rc = rc != 0 ? rc : dsa_trace_get(rank, v->table,
                                      rank->input.table + first, n);
    rc = rc != 0 ? rc : dsa_trace_get(rank, v->pages, rank->input.pages,
                                      (uint64_t) rank->max_samples
                                      * rank->ld_pages);

    if (rc != 0) {
        return rc;
    }

    rank->select(rank->select_ctx, layer, n, rank->topk, v->pick, v->n_pick);

    dsa_trace_slots(rank, v, n);

    rc = dsa_trace_put(rank, rank->work.pick + at, v->pick, picks);
    rc = rc != 0 ? rc : dsa_trace_put(rank, rank->work.pick_slot + at,
                                      v->slot, picks);

    return rc != 0 ? rc : dsa_trace_put(rank, rank->work.n_pick + first,
                                        v->n_pick, n);
}


int
dsa_cuda_trace_selection(dsa_cuda_rank_t *rank, uint32_t layer,
    uint32_t first, uint32_t n)
{
    int                    rc;
    uint64_t               picks;
    dsa_trace_selection_t  v;

    dsa_cuda_try(dsa_cuda_trace(rank, "topk", layer, n, rank->topk,
                                rank->work.pick
                                + (uint64_t) first * rank->topk));

    if (rank->select == NULL || layer == rank->config.num_hidden_layers) {
        return 0;
    }

    picks = (uint64_t) n * rank->topk;

    v.pick = malloc(picks * sizeof(int32_t));
    v.slot = malloc(picks * sizeof(int32_t));
    v.n_pick = malloc(n * sizeof(uint32_t));
    v.table = malloc(n * sizeof(int32_t));
    v.pages = malloc((uint64_t) rank->max_samples * rank->ld_pages
                     * sizeof(int32_t));

    if (v.pick == NULL || v.slot == NULL || v.n_pick == NULL
        || v.table == NULL || v.pages == NULL)
    {
        rc = cudaErrorMemoryAllocation;

    } else {
        rc = dsa_trace_replace(rank, &v, layer, first, n);
    }

    free(v.pick);
    free(v.slot);
    free(v.n_pick);
    free(v.table);
    free(v.pages);

    return rc;
}
