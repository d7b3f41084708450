
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_BENCH_COMM_H_INCLUDED_
#define _DSA_BENCH_COMM_H_INCLUDED_


#include <cuda_runtime_api.h>

#include "kernels/exchange.h"


/* The GPUs of dsa bench comm; each is a rank with a stream of its own. */

typedef struct {
    uint32_t                ranks;
    cudaStream_t            stream[DSA_EXCHANGE_RANKS];
    dsa_cuda_exchange_t     x[DSA_EXCHANGE_RANKS];
} dsa_comm_t;


/* Enqueues an exchange on all ranks; returns an error of CUDA. */
typedef int (*dsa_comm_pt)(dsa_comm_t *c, void *data);

/*
 * The median time of an exchange in microseconds: a graph of many of them on
 * each GPU, replayed on all GPUs at once; the slowest GPU counts.  Below 0: an
 * error, which was printed.
 */
double dsa_comm_time(dsa_comm_t *c, dsa_comm_pt call, void *data);

/* Reports an error of CUDA, if rc is one; returns rc. */
int dsa_comm_failed(const char *what, int rc);


#endif /* _DSA_BENCH_COMM_H_INCLUDED_ */
