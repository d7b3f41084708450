
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_MOVES_H_INCLUDED_
#define _DSA_CUDA_MOVES_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "engine/backend.h"
#include "engine/cuda/group.h"


/*
 * Moves of pages between the GPUs and host memory: move() and moved() of the
 * backend.  Each GPU has a stream for each direction, so that copy engines
 * move pages while the step stream computes.  The streams are ordered by
 * events; the host does not wait.
 *
 * All calls are made by the thread that starts steps.  The threads of the team
 * are idle during a call, so this thread may record events in their streams.
 */


/* The streams and events of one GPU. */

typedef struct {
    cudaStream_t        stream[DSA_MOVES];
    cudaEvent_t         ended[DSA_MOVES][DSA_MOVE_CALLS];   /* call i in
                                           element i % DSA_MOVE_CALLS */
    cudaEvent_t         steps;          /* all steps that were started when the
                                           last pages were moved in */
} dsa_cuda_mover_t;


typedef struct {
    dsa_cuda_group_t   *group;
    dsa_cuda_mover_t    gpu[DSA_MAX_GPUS];

    /* calls, of the ranks that the scheduler sees */

    uint64_t            ordered[DSA_MAX_GPUS][DSA_MOVES];
    uint64_t            ended[DSA_MAX_GPUS][DSA_MOVES];
} dsa_cuda_moves_t;


/*
 * Creates the streams and events of a GPU of m->group.  DSA_ERROR with err.
 * Closing waits for the moves of this GPU, and skips what was not created.
 */
int dsa_cuda_moves_open(dsa_cuda_moves_t *m, uint32_t gpu, dsa_err_t *err);
void dsa_cuda_moves_close(dsa_cuda_moves_t *m, uint32_t gpu);

/*
 * Implements move(), after its arguments were checked.  copied: the last page
 * copy to this rank.  DSA_ERROR with err.
 */
int dsa_cuda_moves_order(dsa_cuda_moves_t *m, dsa_move_e way, uint32_t rank,
    cudaEvent_t copied, const dsa_page_move_t *move, uint32_t n,
    dsa_err_t *err);

/* Implements moved(). */
int dsa_cuda_moves_ended(dsa_cuda_moves_t *m, dsa_move_e way, uint32_t rank,
    int wait, uint64_t *calls, dsa_err_t *err);

/*
 * Registers memory with all GPUs, because copies of memory that is not
 * registered are synchronous.  Returns a cudaError_t.
 */
int dsa_cuda_moves_pin(const dsa_cuda_moves_t *m, void *memory,
    uint64_t bytes);
void dsa_cuda_moves_unpin(const dsa_cuda_moves_t *m, void *memory);

/* Returns the NUMA node of a GPU; -1: unknown. */
int32_t dsa_cuda_node(int device);


#endif /* _DSA_CUDA_MOVES_H_INCLUDED_ */
