
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CUDA_NCCL_H_INCLUDED_
#define _DSA_CUDA_NCCL_H_INCLUDED_


#include "engine/backend.h"
#include "engine/cuda/rank.h"


/*
 * The exchange of ranks by NCCL: between hosts, and between GPUs without
 * NVLink, which cannot store into each other's memory as the peer kernels do.
 * Each rank has a communicator of all ranks, and sends and receives
 * in its own stream, so that the order of the stream is that of the exchanges,
 * also in graphs.
 *
 * The kernels of kernels/exchange/ pack what a rank sends: they store to
 * buffers of this rank in place of the memory of other ranks.  NCCL then moves
 * each buffer to where the kernel of a peer would have stored it, so that the
 * sums have the same bits.
 *
 * libnccl.so.2 is loaded when it is first used.  Its traffic is neither
 * encrypted nor authenticated.  A rank that fails ends the replica, and the end
 * of a process ends its kernels, also those that wait for another host.
 */

/* Loads the library; DSA_ERROR with err: it is not there, or too old. */
int dsa_cuda_nccl_load(dsa_err_t *err);

/*
 * Creates the communicators of n opened ranks of this host, and lets all ranks
 * exchange a first message, because NCCL makes its connections then, which
 * allocates memory.  With several hosts, the leader's id is sent by
 * hosts->exchange(), and the call waits for them.  DSA_ERROR with err.
 */
int dsa_cuda_nccl_connect(dsa_cuda_rank_t *const *rank, uint32_t n,
    const dsa_backend_hosts_t *hosts, dsa_err_t *err);

/* Ends the communicator of a rank, if it has one. */
void dsa_cuda_nccl_close(dsa_cuda_rank_t *rank);

/* DSA_ERROR with err: NCCL has found a fault since, of another host as well. */
int dsa_cuda_nccl_check(const dsa_cuda_rank_t *rank, dsa_err_t *err);

/*
 * Sets the exchange of a rank to buffers of its own; call it when the memory of
 * the rank is allocated.
 */
void dsa_cuda_nccl_prepare(dsa_cuda_rank_t *rank);

/*
 * Sets the destinations of dsa_cuda_exchange_tokens() and
 * dsa_cuda_exchange_combine() for a step in which each rank has slot rows.
 */
void dsa_cuda_nccl_begin(dsa_cuda_rank_t *rank, uint32_t slot);

/*
 * Sends what dsa_cuda_exchange_tokens() has packed, rows of bytes each, to all
 * ranks, and receives theirs in rank->shared.  0 or a cudaError_t.
 */
int dsa_cuda_nccl_tokens(dsa_cuda_rank_t *rank, uint32_t slot, uint32_t bytes);

/* The same for the sums of dsa_cuda_exchange_combine(). */
int dsa_cuda_nccl_sums(dsa_cuda_rank_t *rank, uint32_t slot);

/*
 * Copies pages between ranks, of which n are of this host and rank first is
 * rank[0]: in the streams of both.  All hosts call it.  0 or a cudaError_t.
 */
int dsa_cuda_nccl_copy(dsa_cuda_rank_t *const *rank, uint32_t n,
    uint32_t first, const dsa_page_copy_t *copy, uint32_t copies);


#endif /* _DSA_CUDA_NCCL_H_INCLUDED_ */
