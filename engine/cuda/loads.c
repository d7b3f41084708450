
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/cuda/batch.h"
#include "kernels/moe/moe.h"


/*
 * How evenly the experts of a step were spread: a layer ends when the fullest
 * GPU has computed the rows of its experts.  Each GPU counts where its own
 * tokens are routed to, after the step and outside its graph, and writes the
 * counts of each layer to pinned memory.  With "attention tensor" each GPU has
 * a part of each expert, and all have equally many rows.
 */


/* Ranks that differ in their experts. */

static uint32_t
dsa_loads_ranks(const dsa_cuda_rank_t *rank)
{
    return rank->shard.experts.n != rank->shard.experts.of
           ? rank->shard.ranks : 1;
}


int
dsa_cuda_loads_open(dsa_cuda_inflight_t *f, const dsa_cuda_rank_t *rank)
{
    size_t  layers;

    layers = dsa_model_config_moe_layers(&rank->config);

    if (layers == 0) {
        return 0;
    }

    return (int) cudaMallocHost((void **) &f->loads,
                                layers * dsa_loads_ranks(rank)
                                * sizeof(int32_t));
}


void
dsa_cuda_loads_close(dsa_cuda_inflight_t *f)
{
    (void) cudaFreeHost(f->loads);
}


int
dsa_cuda_loads_enqueue(const dsa_cuda_inflight_t *f,
    const dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step)
{
    uint32_t  tokens;

    if (f->loads == NULL) {
        return 0;
    }

    /* a decode token of an entry is sampled; that of an idle rank is padding */

    tokens = step->decode != 0 && step->samples == 0 ? 0 : step->tokens;

    return dsa_cuda_moe_ranks(f->loads, rank->routes, rank->ld_routes,
                              dsa_model_config_moe_layers(&rank->config),
                              tokens * rank->router.k, rank->experts,
                              dsa_loads_ranks(rank), rank->stream);
}


void
dsa_cuda_loads_add(dsa_backend_t *b, dsa_cuda_inflight_t *const *f,
    uint32_t n, const dsa_cuda_rank_t *rank)
{
    uint32_t  i, j, layer, ranks;
    uint64_t  rows, most;

    if (f[0]->loads == NULL) {
        return;
    }

    ranks = dsa_loads_ranks(rank);
    n = ranks == 1 ? 1 : n;

    for (layer = 0; layer < dsa_model_config_moe_layers(&rank->config);
         layer++)
    {
        most = 0;

        for (i = 0; i < ranks; i++) {
            rows = 0;

            for (j = 0; j < n; j++) {
                rows += (uint64_t) f[j]->loads[layer * ranks + i];
            }

            b->expert_rows += rows;
            most = rows > most ? rows : most;
        }

        b->fullest_rows += most * ranks;
    }
}
