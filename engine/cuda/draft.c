
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <cuda_runtime_api.h>

#include "engine/cuda/rank.h"
#include "kernels/gemm/gemm.h"
#include "kernels/row/embed.h"
#include "kernels/row/norm.h"


static int dsa_draft_input(dsa_cuda_rank_t *rank,
    const dsa_cuda_step_t *step);


int
dsa_cuda_draft(dsa_cuda_rank_t *rank, dsa_cuda_sample_t *sample,
    const dsa_cuda_step_t *step)
{
    uint32_t  layer;

    layer = rank->config.num_hidden_layers;

    dsa_cuda_try(dsa_cuda_embedding(rank, step));
    dsa_cuda_try(dsa_draft_input(rank, step));
    dsa_cuda_try(dsa_cuda_layer(rank, layer, 1, step));

    return dsa_cuda_head(rank, rank->weights.draft.norm, sample, step);
}


/* x = eh_proj [ enorm(x) | hnorm(draft_hidden) ]. */

static int
dsa_draft_input(dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    uint32_t                   n, hidden;
    dsa_cuda_work_t           *w;
    const dsa_cuda_draft_t    *d;
    const dsa_model_config_t  *s;

    w = &rank->work;
    d = &rank->weights.draft;
    s = &rank->config;
    n = step->tokens;
    hidden = s->hidden_size;

    dsa_cuda_try(dsa_cuda_rmsnorm(w->draft_in, 2 * hidden, NULL, w->x, hidden,
                                  d->enorm, n, hidden, s->rms_norm_eps, 0,
                                  rank->stream));
    dsa_cuda_try(dsa_cuda_rmsnorm(w->draft_in + hidden, 2 * hidden, NULL,
                                  w->draft_hidden, hidden, d->hnorm, n, hidden,
                                  s->rms_norm_eps, 0, rank->stream));
    dsa_cuda_try(dsa_cuda_gemm_bf16(rank->gemm, w->x, hidden, 0, w->draft_in,
                                    2 * hidden, d->eh_proj, 2 * hidden, n,
                                    hidden, 2 * hidden, rank->stream));

    return dsa_cuda_trace_bf16(rank, "draft_in", s->num_hidden_layers, n,
                               hidden, w->x, NULL);
}


int
dsa_cuda_draft_keep(dsa_cuda_rank_t *rank, uint32_t row)
{
    uint64_t          bytes;
    dsa_cuda_work_t  *w;

    w = &rank->work;
    bytes = rank->topk * sizeof(int32_t);

    if (row == 0 || rank->dense) {
        return 0;
    }

    dsa_cuda_try((int) cudaMemcpyAsync(w->pick,
                                       w->pick + (uint64_t) row * rank->topk,
                                       bytes, cudaMemcpyDeviceToDevice,
                                       rank->stream));
    dsa_cuda_try((int) cudaMemcpyAsync(w->pick_slot,
                                       w->pick_slot
                                       + (uint64_t) row * rank->topk, bytes,
                                       cudaMemcpyDeviceToDevice,
                                       rank->stream));

    return cudaMemcpyAsync(w->n_pick, w->n_pick + row, sizeof(int32_t),
                           cudaMemcpyDeviceToDevice, rank->stream);
}
