
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_ATTENTION_PREFILL_CUH_INCLUDED_
#define _DSA_ATTENTION_PREFILL_CUH_INCLUDED_


extern "C" {
#include "attention.h"
}

#include "kernels/core/hopper.cuh"
#include "kernels/core/setup.cuh"


/*
 * Shared by the two kernels of absorbed MQA for many rows:
 * attention_prefill.cu for more than 32 heads, attention_prefill_narrow.cu for
 * up to 32.  Keys come in blocks of 64.  A block is 9 segments of 64 keys x 64
 * columns with 128 swizzled bytes a row, which are used as keys (K-major) and
 * as values (MN-major).
 *
 * Weights are exp2(score - r) with a reference r of the row and head.  r is
 * raised to the maximum only if the maximum exceeds it by a factor of 2^8.  So
 * sums are almost never rescaled, and the larger numbers are as precise in
 * bf16 and float32.
 */

#define DSA_PREFILL_KEYS        64
#define DSA_PREFILL_SEGMENT     (64 * 128)
#define DSA_PREFILL_COLUMNS     (DSA_CUDA_LATENT + DSA_CUDA_ROPE)
#define DSA_PREFILL_LAG         8.0f
#define DSA_PREFILL_NONE        -1e30f      /* r before there is a score */


typedef struct {
    dsa_bf16_t         *out;
    const dsa_bf16_t   *kv;
    const int32_t      *pick;
    const int32_t      *n_pick;
    size_t              ld_pick;
    uint32_t            keys;
    uint32_t            rows;
    uint32_t            heads;
    uint32_t            groups;         /* of heads, one for a block */
    float               scale;          /* times log2(e) */
} dsa_prefill_args_t;


/* heads <= 32. */
int dsa_prefill_narrow(const dsa_cuda_state_t *state,
    const dsa_prefill_args_t *a, const dsa_bf16_t *q, dsa_stream_t stream);

/*
 * Makes the tensor map of q, which is loaded in boxes of heads x 64 columns.
 */
int dsa_prefill_q_map(const dsa_cuda_state_t *state, CUtensorMap *map,
    const dsa_bf16_t *q, const dsa_prefill_args_t *a, uint32_t heads);


static __device__ __forceinline__ float
dsa_prefill_exp2(float x)
{
    float  y;

    asm ("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));

    return y;
}


static __device__ __forceinline__ uint32_t
dsa_prefill_pack(float low, float high)
{
    uint32_t  v;

    asm ("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));

    return v;
}


/* Arrives at a barrier once for a warp, after all its threads are here. */

static __device__ __forceinline__ void
dsa_prefill_done(uint64_t *bar)
{
    __syncwarp();

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(bar);
    }
}


/* Returns the number of a row's picks; a number below 0 counts as 0. */

static __device__ __forceinline__ uint32_t
dsa_prefill_count(const dsa_prefill_args_t *a, uint32_t row)
{
    int32_t  n;

    n = __ldg(a->n_pick + row);

    return n > 0 ? (uint32_t) n : 0;
}


/* Returns the i-th of n picks, or an invalid position if i is not below n. */

static __device__ __forceinline__ uint32_t
dsa_prefill_pick(const dsa_prefill_args_t *a, uint32_t row, uint32_t i,
    uint32_t n)
{
    return i < n ? (uint32_t) __ldg(a->pick + row * a->ld_pick + i)
                 : 0xffffffff;
}


#endif /* _DSA_ATTENTION_PREFILL_CUH_INCLUDED_ */
