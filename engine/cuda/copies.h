
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_COPIES_H_INCLUDED_
#define _DSA_CUDA_COPIES_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "engine/cuda/group.h"


/*
 * Copies of pages between the ranks of one host.  They run in the streams of
 * their destinations, after the steps of their sources that write the pages.
 * Later steps of a source, which may write another prefix to a page, wait for
 * the copies from it.  In a step with a split prompt, other ranks write to its
 * pages as well, but only after the exchange at the beginning of the step
 * (dsa_cuda_layers()), and so after this wait.
 */

typedef struct {
    dsa_cuda_group_t       *group;
    cudaEvent_t             copying[DSA_MAX_GPUS];  /* steps before a copy from
                                                       this rank ended */
    cudaEvent_t             copied[DSA_MAX_GPUS];   /* the last copy to it */
} dsa_cuda_copies_t;


/* Create and destroy the events of a rank, whose GPU is the current device. */
int dsa_cuda_copies_open(dsa_cuda_copies_t *c, uint32_t rank);
void dsa_cuda_copies_close(dsa_cuda_copies_t *c, uint32_t rank);

/* Orders copies; ranks and pages are in range.  0 or a cudaError_t. */
int dsa_cuda_copies_order(dsa_cuda_copies_t *c, const dsa_page_copy_t *copy,
    uint32_t n);

/*
 * Makes moves to host memory that begin later wait for the copies that NCCL
 * has been given for this host's ranks.  0 or a cudaError_t.
 */
int dsa_cuda_copies_record(dsa_cuda_copies_t *c);


#endif /* _DSA_CUDA_COPIES_H_INCLUDED_ */
