
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_COMM_H_INCLUDED_
#define _DSA_BENCH_COMM_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "kernels/exchange/exchange.h"


/* The GPUs of dsa bench comm; each is a rank with a stream of its own. */

typedef struct {
    uint32_t                ranks;
    cudaStream_t            stream[DSA_EXCHANGE_RANKS];
    dsa_cuda_exchange_t     x[DSA_EXCHANGE_RANKS];
} dsa_comm_t;


typedef enum {
    DSA_COMM_REDUCE = 0,        /* all-reduce of bf16 */
    DSA_COMM_GATHER,            /* FP8 tokens of each rank to all */
    DSA_COMM_SUMS,              /* partial sums of bf16 to their owners */
    DSA_COMM_SWAP               /* NCCL only: as many bytes from each rank to
                                   each, by sends and receives, which is how
                                   the engine exchanges both between hosts */
} dsa_comm_e;


/* Enqueues an exchange on all ranks; returns an error of CUDA. */
typedef int (*dsa_comm_pt)(dsa_comm_t *c, void *data);

/*
 * The median time of an exchange in microseconds: a graph of many of them on
 * each GPU, replayed on all GPUs at once; the slowest GPU counts.  Below 0: an
 * error, which was printed.
 */
double dsa_comm_time(dsa_comm_t *c, dsa_comm_pt call, void *data);

/*
 * The same by NCCL: dsa_comm_nccl_open() prepares buffers of size bytes of a
 * rank, and returns 0, or 1 if it printed why there is none.  size: bytes of
 * a rank's tokens, sums or rows.  symmetric 1: with registered buffers.
 */
int dsa_comm_nccl_open(dsa_comm_t *c, size_t size);
double dsa_comm_nccl_time(dsa_comm_t *c, dsa_comm_e op, size_t size,
    int symmetric);

/* Reports an error of CUDA, if rc is one; returns rc. */
int dsa_comm_failed(const char *what, int rc);


#endif /* _DSA_BENCH_COMM_H_INCLUDED_ */
