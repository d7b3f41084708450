
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_GRAPHS_H_INCLUDED_
#define _DSA_CUDA_GRAPHS_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "engine/cuda/batch.h"
#include "engine/cuda/rank.h"
#include "engine/cuda/sizes.h"


/*
 * CUDA graphs for steps that have only decode tokens.  They are captured at
 * the start, for some numbers of tokens and bounds of contexts.  A step uses
 * the next larger graph and is padded to it.
 */

typedef struct {
    dsa_cuda_sizes_t    sizes;
    cudaGraphExec_t     exec[DSA_CUDA_SIZES][DSA_CUDA_BOUNDS][2];
                                        /* 1: of steps with drafts, or NULL */
} dsa_cuda_graphs_t;


/*
 * Captures all graphs of a rank, with f as memory for their input.  A single
 * rank runs each step once; several ranks run none.  DSA_ERROR with err.
 * graphs is zeroed before, and closed by the caller in any case.
 */
int dsa_cuda_graphs_open(dsa_cuda_graphs_t *graphs, dsa_cuda_rank_t *rank,
    const dsa_cuda_inflight_t *f, dsa_err_t *err);
void dsa_cuda_graphs_close(dsa_cuda_graphs_t *graphs);

/*
 * Returns the graph for a step, and pads its input in f to it.  NULL: some
 * rank has other tokens besides decode tokens.  All ranks use the graph of the
 * fullest one.
 */
cudaGraphExec_t dsa_cuda_graphs_find(const dsa_cuda_graphs_t *graphs,
    const dsa_cuda_rank_t *rank, const dsa_cuda_step_t *step,
    const dsa_cuda_common_t *common, const dsa_cuda_inflight_t *f);


#endif /* _DSA_CUDA_GRAPHS_H_INCLUDED_ */
