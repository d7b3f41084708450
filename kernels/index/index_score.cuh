
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_INDEX_SCORE_CUH_INCLUDED_
#define _DSA_INDEX_SCORE_CUH_INCLUDED_


extern "C" {
#include "indexer.h"
}

#include "kernels/core/hopper.cuh"


/*
 * Index scores.  The 64 keys of a page are the M operand of wgmma, and queries
 * times heads are the N operand.  So for two keys, a thread holds a quarter of
 * the heads of each query: ReLU and the weighted sum are computed in
 * registers, and two shuffles add the other three quarters from adjacent
 * lanes.
 *
 * Heads are padded to 8, 16, 32 or 64: TMA fills the padding with zeros, and
 * its weights are 0.
 *
 * A score is computed from its key, query and weights in a fixed order, which
 * is the same in prefill and decode.  So its bits depend neither on the block
 * that computes it nor on other work of the block.  Work is divided by pages,
 * so results need not be combined afterwards.
 */


#define DSA_INDEX_N         128                 /* columns of a product of
                                                   several queries, queries x
                                                   heads */
#define DSA_INDEX_PAGE      64                  /* keys */
#define DSA_INDEX_KEYS      (64 * 128)          /* bytes of a page's keys */
#define DSA_INDEX_STAGE     (DSA_INDEX_KEYS + 64 * 4)


#define DSA_INDEX_D4(d, i)                                                    \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define DSA_INDEX_D16(d, i)                                                   \
    DSA_INDEX_D4(d, i), DSA_INDEX_D4(d, i + 4), DSA_INDEX_D4(d, i + 8),       \
    DSA_INDEX_D4(d, i + 12)


/* d [64, N] = a [64, 32] . b [N, 32]^T, added to d with add = 1. */

template <int N>
static __device__ void
dsa_index_mma(float (&d)[N / 2], uint64_t a, uint64_t b, int add);


template <>
__device__ __forceinline__ void
dsa_index_mma<8>(float (&d)[4], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %6, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3}, "
                  "%4, %5, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D4(d, 0)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<16>(float (&d)[8], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %10, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7}, "
                  "%8, %9, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D4(d, 0),
                    DSA_INDEX_D4(d, 4)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<32>(float (&d)[16], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %18, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, "
                  " %8, %9, %10, %11, %12, %13, %14, %15}, "
                  "%16, %17, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D16(d, 0)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<64>(float (&d)[32], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %34, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, "
                  " %8, %9, %10, %11, %12, %13, %14, %15, "
                  " %16, %17, %18, %19, %20, %21, %22, %23, "
                  " %24, %25, %26, %27, %28, %29, %30, %31}, "
                  "%32, %33, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D16(d, 0),
                    DSA_INDEX_D16(d, 16)
                  : "l"(a), "l"(b), "r"(add));
}


template <>
__device__ __forceinline__ void
dsa_index_mma<128>(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "setp.ne.b32 p, %66, 0;\n"
                  "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
                  "{%0, %1, %2, %3, %4, %5, %6, %7, "
                  " %8, %9, %10, %11, %12, %13, %14, %15, "
                  " %16, %17, %18, %19, %20, %21, %22, %23, "
                  " %24, %25, %26, %27, %28, %29, %30, %31, "
                  " %32, %33, %34, %35, %36, %37, %38, %39, "
                  " %40, %41, %42, %43, %44, %45, %46, %47, "
                  " %48, %49, %50, %51, %52, %53, %54, %55, "
                  " %56, %57, %58, %59, %60, %61, %62, %63}, "
                  "%64, %65, p, 1, 1;\n"
                  "}"
                  : DSA_INDEX_D16(d, 0),
                    DSA_INDEX_D16(d, 16),
                    DSA_INDEX_D16(d, 32),
                    DSA_INDEX_D16(d, 48)
                  : "l"(a), "l"(b), "r"(add));
}


/* Returns the descriptor of a tile of rows of 128 swizzled bytes. */

static __device__ __forceinline__ uint64_t
dsa_index_tile(const uint8_t *p)
{
    return dsa_wgmma_desc(dsa_smem(p), 1, 16, 1024);
}


/* d [64, N] = k [64, 128] . q [N, 128]^T, tiles; 32 bytes of a row a step. */

template <int N>
static __device__ __forceinline__ void
dsa_index_product(float (&d)[N / 2], uint64_t k, uint64_t q)
{
    int  i;

    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 4; i++) {
        dsa_index_mma<N>(d, k + 2 * i, q + 2 * i, i > 0);
    }

    dsa_wgmma_commit();
}


/*
 * Waits until at most LEFT products are running.  The asm statements have d,
 * the result of an earlier product, as an output, because otherwise the
 * compiler could use d before the wait.
 */

template <int LEFT, int N>
static __device__ __forceinline__ void
dsa_index_wait(float (&d)[N])
{
    int  i;

    dsa_wgmma_wait<LEFT>();

#pragma unroll
    for (i = 0; i < N; i++) {
        asm volatile ("" : "+f"(d[i]) :: "memory");
    }
}


/*
 * Thread t of a quad holds columns 2t and 2t + 1 of each 8 columns for keys i
 * and i + 8, in d[4j .. 4j+1] and d[4j+2 .. 4j+3].  sum[2 * query + (0 or
 * 1)] is the sum over its part of the heads, with w in the order of its
 * columns.
 */

template <int N, int H>
static __device__ __forceinline__ void
dsa_index_sum(float (&sum)[2 * (N / H)], const float (&d)[N / 2],
    const float (&w)[N / 4])
{
    int  j, s;

#pragma unroll
    for (j = 0; j < 2 * (N / H); j++) {
        sum[j] = 0;
    }

#pragma unroll
    for (j = 0; j < N / 8; j++) {
        s = 2 * (j / (H / 8));

        sum[s] = fmaf(fmaxf(d[4 * j], 0), w[2 * j], sum[s]);
        sum[s + 1] = fmaf(fmaxf(d[4 * j + 2], 0), w[2 * j], sum[s + 1]);
        sum[s] = fmaf(fmaxf(d[4 * j + 1], 0), w[2 * j + 1], sum[s]);
        sum[s + 1] = fmaf(fmaxf(d[4 * j + 3], 0), w[2 * j + 1], sum[s + 1]);
    }
}


/*
 * Lanes exchange halves of x [N].  A lane keeps one half and adds to it the
 * same half of lane ^ mask, which keeps the other one; the results are x[0 ..
 * N/2-1].  STEP 1: lanes with the bit of mask keep the upper half, the others
 * the lower one.  STEP 2: they keep the odd elements, the others the even
 * ones.
 */

template <int N, int STEP>
static __device__ __forceinline__ void
dsa_index_exchange(float *x, int lane, int mask)
{
    int    i, lo, hi;
    float  give, keep;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        lo = STEP == 1 ? i : 2 * i;
        hi = STEP == 1 ? i + N / 2 : 2 * i + 1;

        give = (lane & mask) != 0 ? x[lo] : x[hi];
        keep = (lane & mask) != 0 ? x[hi] : x[lo];
        x[i] = keep + __shfl_xor_sync(0xffffffff, give, mask);
    }
}


/*
 * Stores the scores of a product of DSA_INDEX_N columns for a page.  A lane
 * has those of keys i or i + 8 for Q / 2 queries, of which n are valid.
 */

template <int H>
static __device__ __forceinline__ void
dsa_index_finish(float *out, size_t ld, const float (&d)[DSA_INDEX_N / 2],
    const float (&w)[DSA_INDEX_N / 4], float kscale, int lane, uint32_t n)
{
    const int  Q = DSA_INDEX_N / H;
    uint32_t   i;
    float      sum[2 * Q];

    dsa_index_sum<DSA_INDEX_N, H>(sum, d, w);
    dsa_index_exchange<2 * Q, 1>(sum, lane, 2);
    dsa_index_exchange<Q, 2>(sum, lane, 1);

#pragma unroll
    for (i = 0; i < Q / 2; i++) {
        if (i < n) {
            out[i * ld] = sum[i] * kscale;
        }
    }
}


/*
 * The weights of a thread's columns, in the order of dsa_index_sum(); w
 * [N / H, heads].
 */

template <int N, int H>
static __device__ __forceinline__ void
dsa_index_weights(float (&out)[N / 4], const float *w, uint32_t heads,
    int quad)
{
    int       j;
    uint32_t  h;

#pragma unroll
    for (j = 0; j < N / 8; j++) {
        h = 8 * j % H + 2 * quad;

        if (h < heads) {
            out[2 * j] = w[8 * j / H * heads + h];
            out[2 * j + 1] = w[8 * j / H * heads + h + 1];

        } else {
            out[2 * j] = 0;
            out[2 * j + 1] = 0;
        }
    }
}


/*
 * Makes the tensor maps of the queries, loaded in boxes of several queries
 * with padded heads, and of the keys, loaded in boxes of a page.
 */

static inline int
dsa_index_maps(const dsa_cuda_state_t *state, CUtensorMap *map_q,
    CUtensorMap *map_k, const dsa_e4m3_t *q, const dsa_cuda_cache_t *cache,
    uint32_t rows, uint32_t heads, uint32_t padded, uint32_t queries)
{
    int       rc;
    uint32_t  box[3];
    uint64_t  dim[3], stride[2];

    dim[0] = DSA_CUDA_INDEX;
    dim[1] = heads;
    dim[2] = rows;
    stride[0] = DSA_CUDA_INDEX;
    stride[1] = (uint64_t) heads * DSA_CUDA_INDEX;
    box[0] = DSA_CUDA_INDEX;
    box[1] = padded;
    box[2] = queries;

    rc = dsa_cuda_tensor_map(state, map_q, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, q,
                             dim, stride, box, CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    dim[1] = DSA_INDEX_PAGE;
    dim[2] = cache->pages;
    stride[1] = cache->page;
    box[1] = DSA_INDEX_PAGE;
    box[2] = 1;

    return dsa_cuda_tensor_map(state, map_k, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3,
                               cache->base + cache->keys, dim, stride, box,
                               CU_TENSOR_MAP_SWIZZLE_128B);
}


#endif /* _DSA_INDEX_SCORE_CUH_INCLUDED_ */
