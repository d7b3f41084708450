
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_EXCHANGE_CUH_INCLUDED_
#define _DSA_EXCHANGE_CUH_INCLUDED_


extern "C" {
#include "exchange.h"
}

#include "kernels/core/rows.cuh"


/*
 * The two halves of an exchange, as device functions.
 *
 * A kernel that stores ends with dsa_exchange_raise(): each block adds its
 * part of DSA_EXCHANGE_ONE to the flags in all ranks, so that no block waits
 * for another block of its launch.  Only the first block, or the few blocks of
 * a kernel whose grid is limited to dsa_exchange_spin(), wait for other ranks.
 */

#define DSA_EXCHANGE_THREADS    256
#define DSA_EXCHANGE_WARPS      (DSA_EXCHANGE_THREADS / 32)
#define DSA_EXCHANGE_POLLS      64      /* polls between two reads of the
                                           clock */

#define DSA_EXCHANGE_X          const __grid_constant__ dsa_cuda_exchange_t


static __device__ __forceinline__ void
dsa_fence_system(void)
{
    asm volatile ("fence.acq_rel.sys;" ::: "memory");
}


static __device__ __forceinline__ uint32_t
dsa_load_acquire(const uint32_t *p)
{
    uint32_t  v;

    asm volatile ("ld.acquire.sys.global.u32 %0, [%1];"
                  : "=r"(v) : "l"(p) : "memory");

    return v;
}


static __device__ __forceinline__ uint32_t
dsa_load_relaxed(const uint32_t *p)
{
    uint32_t  v;

    asm volatile ("ld.relaxed.gpu.global.u32 %0, [%1];"
                  : "=r"(v) : "l"(p) : "memory");

    return v;
}


static __device__ __forceinline__ void
dsa_add_relaxed(uint32_t *p, uint32_t v)
{
    asm volatile ("red.relaxed.sys.global.add.u32 [%0], %1;"
                  :: "l"(p), "r"(v) : "memory");
}


static __device__ __forceinline__ uint64_t
dsa_clock_ns(void)
{
    uint64_t  v;

    asm volatile ("mov.u64 %0, %%globaltimer;" : "=l"(v) :: "memory");

    return v;
}


/*
 * The beginning of a kernel that waits for other ranks.  Blocks of the next
 * kernel that are launched early could occupy the SMs that the store of
 * another stream needs, for which this kernel waits.  So the next kernel is
 * launched early only if no other stream of this GPU exchanges.
 */

static __device__ __forceinline__ void
dsa_exchange_begin(const dsa_cuda_exchange_t *x)
{
    asm volatile ("griddepcontrol.wait;" ::: "memory");

    if (x->exclusive) {
        asm volatile ("griddepcontrol.launch_dependents;");
    }
}


/* Records the first missing rank in the fault; the first record is kept. */

static __device__ __forceinline__ void
dsa_exchange_fail(const dsa_cuda_exchange_t *x, uint32_t missing,
    uint32_t number)
{
    if (atomicExch(&x->state[x->rank]->failed, 1) == 0) {
        x->fault->missing = missing;
        x->fault->number = number;
        __threadfence_system();
        x->fault->failed = 1;
    }
}


/*
 * Checks the time limit of a wait in every DSA_EXCHANGE_POLLS-th round.  The
 * time is counted from the first check, so a short wait does not read the
 * clock.  Returns 1 if the wait has to end, because an earlier one has failed
 * or the time limit is exceeded.
 */

static __device__ __forceinline__ int
dsa_exchange_expired(const dsa_cuda_exchange_t *x, uint64_t *start,
    uint32_t missing, uint32_t number)
{
    uint64_t  now;

    if (dsa_load_relaxed(&x->state[x->rank]->failed) != 0) {
        return 1;
    }

    now = dsa_clock_ns();

    if (*start == 0) {
        *start = now;
    }

    if (now - *start < x->timeout_ns) {
        return 0;
    }

    dsa_exchange_fail(x, missing, number);

    return 1;
}


/*
 * Waits until the flags of all ranks have reached sum; called by all lanes of
 * a warp.  A barrier after it orders the loads of other warps.
 */

static __device__ __forceinline__ void
dsa_exchange_poll(const dsa_cuda_exchange_t *x, uint32_t sum)
{
    int                    ended;
    uint32_t               i, lane, missing;
    uint64_t               start;
    dsa_exchange_state_t  *state;

    lane = threadIdx.x % 32;
    state = x->state[x->rank];
    start = 0;

    for (i = 1; ; i++) {
        missing = lane < x->ranks
                  && (int32_t) (dsa_load_acquire(&state->flag[lane]) - sum)
                     < 0;
        missing = __ballot_sync(0xffffffff, missing);

        if (missing == 0) {
            break;
        }

        if (i % DSA_EXCHANGE_POLLS != 0) {
            continue;
        }

        ended = 0;

        if (lane == 0) {
            ended = dsa_exchange_expired(x, &start, __ffs(missing) - 1,
                                         sum / DSA_EXCHANGE_ONE);
        }

        if (__shfl_sync(0xffffffff, ended, 0)) {
            break;
        }
    }

    __syncwarp();
}


/* Returns this rank's own flag, which may have a part of an exchange. */

static __device__ __forceinline__ uint32_t
dsa_exchange_own(const dsa_cuda_exchange_t *x)
{
    return dsa_load_relaxed(&x->state[x->rank]->flag[x->rank]);
}


/* Makes a whole block wait for the last exchange that this rank has stored. */

static __device__ __forceinline__ void
dsa_exchange_await(const dsa_cuda_exchange_t *x)
{
    if (threadIdx.x < 32) {
        dsa_exchange_poll(x, dsa_exchange_own(x));
    }

    __syncthreads();
}


/*
 * The end of a kernel that stores: adds to this rank's flag in all ranks.  The
 * parts of all blocks of a launch add up to DSA_EXCHANGE_ONE.  With wait 1 the
 * first block waits for the other ranks.  Called by all threads of all blocks
 * of a grid with fewer than DSA_EXCHANGE_ONE blocks, in one or two dimensions.
 *
 * The barrier and the fence order the stores of the block before its addition,
 * and the chain of additions is cumulative: when a rank loads the sum of all
 * blocks, the stores of all blocks are visible to it.
 */

static __device__ __forceinline__ void
dsa_exchange_raise(const dsa_cuda_exchange_t *x, int wait)
{
    int       first;
    uint32_t  next;

    __syncthreads();

    if (threadIdx.x >= 32) {
        return;
    }

    first = blockIdx.x == 0 && blockIdx.y == 0;
    next = 0;

    if (wait && first) {

        /* before this block's addition the exchange is not complete */

        next = dsa_exchange_own(x) / DSA_EXCHANGE_ONE * DSA_EXCHANGE_ONE
               + DSA_EXCHANGE_ONE;
    }

    __syncwarp();

    if (threadIdx.x < x->ranks) {
        dsa_fence_system();
        dsa_add_relaxed(&x->state[threadIdx.x]->flag[x->rank],
                        first ? DSA_EXCHANGE_ONE + 1 - gridDim.x * gridDim.y
                              : 1);
    }

    if (wait && first) {
        dsa_exchange_poll(x, next);
    }
}


/*
 * Returns the i-th rank that this rank stores to: itself is the last one, and
 * each rank begins with a different one, so that they do not all store to the
 * same rank at the same time.
 */

static __device__ __forceinline__ uint32_t
dsa_exchange_peer(const dsa_cuda_exchange_t *x, uint32_t i)
{
    i += x->rank + 1;

    return i < x->ranks ? i : i - x->ranks;
}


/*
 * Returns a bit mask of the ranks that have one of the k experts of a row;
 * called by all lanes of a warp.  experts: the experts of a rank.
 */

static __device__ __forceinline__ uint32_t
dsa_exchange_ranks(const int32_t *expert, const int32_t *live, size_t row,
    uint32_t k, uint32_t experts, uint32_t ranks)
{
    int32_t   e, alive;
    uint32_t  lane, rank;

    lane = threadIdx.x % 32;

    e = lane < k ? expert[row * k + lane] : -1;
    alive = live != NULL ? live[row] : 0;
    rank = e >= 0 && alive >= 0 ? (uint32_t) e / experts : ranks;

    return __reduce_or_sync(0xffffffff, rank < ranks ? 1U << rank : 0);
}


/*
 * Host: returns the most blocks of a kernel in which all blocks may wait.
 * They must leave room for the stores of the other ranks on this GPU, and a
 * block may fill a multiprocessor.
 */

static inline uint32_t
dsa_exchange_spin(const dsa_cuda_exchange_t *x)
{
    uint32_t  n;

    n = x->exclusive ? x->processors
                     : (x->processors - 1) / DSA_EXCHANGE_SHARE;

    return n > 1 ? n : 1;
}


/*
 * Host: returns the blocks for n units, per units each: at least one, at most
 * most.
 */

static inline uint32_t
dsa_exchange_blocks(uint64_t n, uint32_t per, uint32_t most)
{
    n = (n + per - 1) / per;

    return n < 1 ? 1 : n < most ? (uint32_t) n : most;
}


/* Host: returns 1 if the exchange is described completely. */

static inline int
dsa_exchange_ok(const dsa_cuda_exchange_t *x)
{
    return x->ranks >= 1 && x->ranks <= DSA_EXCHANGE_RANKS
           && x->rank < x->ranks && x->processors > 0;
}


/* Host: returns 1 if each rank has an address that is aligned to 16 bytes. */

static inline int
dsa_exchange_addresses_ok(const dsa_cuda_exchange_t *x, void *const *p)
{
    uint32_t  i;

    for (i = 0; i < x->ranks; i++) {
        if (p[i] == NULL || !dsa_aligned16(p[i])) {
            return 0;
        }
    }

    return 1;
}


#endif /* _DSA_EXCHANGE_CUH_INCLUDED_ */
