
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_HOPPER_CUH_INCLUDED_
#define _DSA_HOPPER_CUH_INCLUDED_


#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <stdint.h>

extern "C" {
#include "cuda.h"
}


/*
 * The instructions of Hopper that several kernels use, with their names in the
 * PTX ISA (sections "mbarrier", "cp.async.bulk", "wgmma").  The sizes of wgmma
 * of a kernel are in its own file.
 */


/* Number formats. */

static __device__ __forceinline__ float
dsa_bf16_float(uint16_t v)
{
    return __uint_as_float((uint32_t) v << 16);
}


static __device__ __forceinline__ uint16_t
dsa_float_bf16(float v)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(v));
}


/* Two bf16, a in the low half. */

static __device__ __forceinline__ uint32_t
dsa_float2_bf16(float a, float b)
{
    __nv_bfloat162  v;

    v = __floats2bfloat162_rn(a, b);

    return *(uint32_t *) &v;
}


/* The least power of two not below s > 0; see dsa_ue8m0(). */

static __device__ __forceinline__ float
dsa_float_ue8m0(float s)
{
    uint32_t  u, e;

    u = __float_as_uint(s);
    e = (u >> 23 & 0xff) + ((u & 0x7fffff) != 0);
    e = e < 1 ? 1 : e;
    e = e > 254 ? 254 : e;

    return __uint_as_float(e << 23);
}


/*
 * Maps floats to unsigned numbers of the same order (kernels/index/indexer.h),
 * and back.  -0 counts as 0; the unsigned number 0 is below all floats.
 */

static __device__ __forceinline__ uint32_t
dsa_float_order(float v)
{
    uint32_t  u;

    u = __float_as_uint(v);
    u = u == 0x80000000 ? 0 : u;

    return u ^ ((uint32_t) ((int32_t) u >> 31) | 0x80000000);
}


static __device__ __forceinline__ float
dsa_order_float(uint32_t u)
{
    return __uint_as_float(u ^ ((uint32_t) ((int32_t) ~u >> 31)
                                | 0x80000000));
}


/* Warps. */

static __device__ __forceinline__ float
dsa_warp_sum(float v)
{
    int  i;

#pragma unroll
    for (i = 16; i > 0; i >>= 1) {
        v += __shfl_xor_sync(0xffffffff, v, i);
    }

    return v;
}


static __device__ __forceinline__ float
dsa_warp_max(float v)
{
    int  i;

#pragma unroll
    for (i = 16; i > 0; i >>= 1) {
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, i));
    }

    return v;
}


/* Addresses in the shared window. */

static __device__ __forceinline__ uint32_t
dsa_smem(const void *p)
{
    return (uint32_t) __cvta_generic_to_shared(p);
}


/* mbarrier */

static __device__ __forceinline__ void
dsa_mbar_init(uint64_t *bar, uint32_t count)
{
    asm volatile ("mbarrier.init.shared::cta.b64 [%0], %1;"
                  :: "r"(dsa_smem(bar)), "r"(count) : "memory");
}


/* Call it after the inits, before another thread or TMA uses the barriers. */

static __device__ __forceinline__ void
dsa_mbar_fence_init(void)
{
    asm volatile ("fence.mbarrier_init.release.cluster;" ::: "memory");
}


static __device__ __forceinline__ void
dsa_mbar_arrive(uint64_t *bar)
{
    asm volatile ("mbarrier.arrive.shared::cta.b64 _, [%0];"
                  :: "r"(dsa_smem(bar)) : "memory");
}


static __device__ __forceinline__ void
dsa_mbar_arrive_expect(uint64_t *bar, uint32_t bytes)
{
    asm volatile ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                  :: "r"(dsa_smem(bar)), "r"(bytes) : "memory");
}


static __device__ __forceinline__ void
dsa_mbar_wait(uint64_t *bar, uint32_t parity)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "dsa_wait:\n"
                  "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                  "@p bra dsa_done;\n"
                  "bra dsa_wait;\n"
                  "dsa_done:\n"
                  "}"
                  :: "r"(dsa_smem(bar)), "r"(parity) : "memory");
}


/* Orders stores to shared memory before reads by wgmma or TMA. */

static __device__ __forceinline__ void
dsa_fence_async(void)
{
    asm volatile ("fence.proxy.async.shared::cta;" ::: "memory");
}


/* Barrier id 1 .. 15 for some of a block's warps. */

static __device__ __forceinline__ void
dsa_bar_sync(uint32_t id, uint32_t threads)
{
    asm volatile ("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}


static __device__ __forceinline__ void
dsa_bar_arrive(uint32_t id, uint32_t threads)
{
    asm volatile ("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}


template <int N>
static __device__ __forceinline__ void
dsa_regs_more(void)
{
    asm volatile ("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
}


template <int N>
static __device__ __forceinline__ void
dsa_regs_less(void)
{
    asm volatile ("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}


/* cp.async: copies n bytes (0 .. 16) and fills up 16 with zeros. */

static __device__ __forceinline__ void
dsa_cp_async16(uint32_t smem, const void *p, uint32_t n)
{
    asm volatile ("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                  :: "r"(smem), "l"(p), "r"(n) : "memory");
}


static __device__ __forceinline__ void
dsa_cp_async_commit(void)
{
    asm volatile ("cp.async.commit_group;" ::: "memory");
}


template <int N>
static __device__ __forceinline__ void
dsa_cp_async_wait(void)
{
    asm volatile ("cp.async.wait_group %0;" :: "n"(N) : "memory");
}


/* Arrives at the barrier when this thread's copies are complete. */

static __device__ __forceinline__ void
dsa_cp_async_arrive(uint64_t *bar)
{
    asm volatile ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                  :: "r"(dsa_smem(bar)) : "memory");
}


/* cp.async.bulk: n bytes; n and both addresses are multiples of 16. */

static __device__ __forceinline__ void
dsa_bulk_load(void *smem, const void *p, uint32_t n, uint64_t *bar)
{
    asm volatile ("cp.async.bulk.shared::cluster.global"
                  ".mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                  :: "r"(dsa_smem(smem)), "l"(p), "r"(n), "r"(dsa_smem(bar))
                  : "memory");
}


/* cp.async.bulk.tensor: the box at x (innermost), y, z. */

static __device__ __forceinline__ void
dsa_tma_prefetch(const CUtensorMap *map)
{
    asm volatile ("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}


static __device__ __forceinline__ void
dsa_tma_load_2d(void *smem, const CUtensorMap *map, uint64_t *bar, int32_t x,
    int32_t y)
{
    asm volatile ("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                  ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                  :: "r"(dsa_smem(smem)), "l"(map), "r"(dsa_smem(bar)),
                     "r"(x), "r"(y)
                  : "memory");
}


static __device__ __forceinline__ void
dsa_tma_load_3d(void *smem, const CUtensorMap *map, uint64_t *bar, int32_t x,
    int32_t y, int32_t z)
{
    asm volatile ("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                  ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}],"
                  " [%2];"
                  :: "r"(dsa_smem(smem)), "l"(map), "r"(dsa_smem(bar)),
                     "r"(x), "r"(y), "r"(z)
                  : "memory");
}


/*
 * The same for each block of the cluster that has a bit in mask: the data
 * arrives at the same address, and at the same barrier, in each of them.
 */

static __device__ __forceinline__ void
dsa_tma_load_2d_cluster(void *smem, const CUtensorMap *map, uint64_t *bar,
    int32_t x, int32_t y, uint16_t mask)
{
    asm volatile ("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                  ".mbarrier::complete_tx::bytes.multicast::cluster"
                  " [%0], [%1, {%3, %4}], [%2], %5;"
                  :: "r"(dsa_smem(smem)), "l"(map), "r"(dsa_smem(bar)),
                     "r"(x), "r"(y), "h"(mask)
                  : "memory");
}


static __device__ __forceinline__ void
dsa_tma_load_3d_cluster(void *smem, const CUtensorMap *map, uint64_t *bar,
    int32_t x, int32_t y, int32_t z, uint16_t mask)
{
    asm volatile ("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                  ".mbarrier::complete_tx::bytes.multicast::cluster"
                  " [%0], [%1, {%3, %4, %5}], [%2], %6;"
                  :: "r"(dsa_smem(smem)), "l"(map), "r"(dsa_smem(bar)),
                     "r"(x), "r"(y), "r"(z), "h"(mask)
                  : "memory");
}


/* Clusters. */

static __device__ __forceinline__ void
dsa_cluster_sync(void)
{
    asm volatile ("barrier.cluster.arrive.release.aligned;\n"
                  "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}


/*
 * Arrives at the same barrier of block rank of the cluster, to signal that
 * reads are complete.  To order writes as well, .release.cluster would be
 * needed, a fence of hundreds of cycles.
 */

static __device__ __forceinline__ void
dsa_mbar_arrive_cluster(uint64_t *bar, uint32_t rank)
{
    asm volatile ("{\n"
                  ".reg .b32  r;\n"
                  "mapa.shared::cluster.u32 r, %0, %1;\n"
                  "mbarrier.arrive.shared::cluster.b64 _, [r];\n"
                  "}"
                  :: "r"(dsa_smem(bar)), "r"(rank) : "memory");
}


/*
 * Stores a word at p of block rank of the cluster and arrives at bar there.
 * The word is visible to a thread after dsa_mbar_wait_cluster().
 */

static __device__ __forceinline__ void
dsa_cluster_send(int32_t *p, int32_t v, uint64_t *bar, uint32_t rank)
{
    asm volatile ("{\n"
                  ".reg .b32  p, b;\n"
                  "mapa.shared::cluster.u32 p, %0, %3;\n"
                  "mapa.shared::cluster.u32 b, %2, %3;\n"
                  "st.shared::cluster.u32 [p], %1;\n"
                  "mbarrier.arrive.release.cluster.shared::cluster.b64"
                  " _, [b];\n"
                  "}"
                  :: "r"(dsa_smem(p)), "r"(v), "r"(dsa_smem(bar)), "r"(rank)
                  : "memory");
}


static __device__ __forceinline__ void
dsa_mbar_wait_cluster(uint64_t *bar, uint32_t parity)
{
    asm volatile ("{\n"
                  ".reg .pred  p;\n"
                  "dsa_wait:\n"
                  "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"
                  " p, [%0], %1;\n"
                  "@p bra dsa_done;\n"
                  "bra dsa_wait;\n"
                  "dsa_done:\n"
                  "}"
                  :: "r"(dsa_smem(bar)), "r"(parity) : "memory");
}


/*
 * Stores 8x8 matrices of 16 bits, one for each register.  Lanes 0 .. 7, 8 ..
 * 15 and so on have the addresses of the rows of each matrix.  _trans:
 * transposed.
 */

static __device__ __forceinline__ void
dsa_stmatrix4(uint32_t smem, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    asm volatile ("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16"
                  " [%0], {%1, %2, %3, %4};"
                  :: "r"(smem), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}


static __device__ __forceinline__ void
dsa_stmatrix4_trans(uint32_t smem, uint32_t a, uint32_t b, uint32_t c,
    uint32_t d)
{
    asm volatile ("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16"
                  " [%0], {%1, %2, %3, %4};"
                  :: "r"(smem), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}


static __device__ __forceinline__ void
dsa_stmatrix2_trans(uint32_t smem, uint32_t a, uint32_t b)
{
    asm volatile ("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16"
                  " [%0], {%1, %2};"
                  :: "r"(smem), "r"(a), "r"(b) : "memory");
}


/* wgmma */

static __device__ __forceinline__ void
dsa_wgmma_fence(void)
{
    asm volatile ("wgmma.fence.sync.aligned;" ::: "memory");
}


static __device__ __forceinline__ void
dsa_wgmma_commit(void)
{
    asm volatile ("wgmma.commit_group.sync.aligned;" ::: "memory");
}


template <int N>
static __device__ __forceinline__ void
dsa_wgmma_wait(void)
{
    asm volatile ("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}


/*
 * The descriptor of a matrix in shared memory for wgmma.  swizzle: 0 none, 1
 * 128, 2 64, 3 32 bytes; lead and stride in bytes, as the PTX ISA defines them
 * for the operand's major order.
 */

static __device__ __forceinline__ uint64_t
dsa_wgmma_desc(uint32_t smem, uint32_t swizzle, uint32_t lead,
    uint32_t stride)
{
    return (uint64_t) ((smem & 0x3ffff) >> 4)
           | (uint64_t) ((lead & 0x3ffff) >> 4) << 16
           | (uint64_t) ((stride & 0x3ffff) >> 4) << 32
           | (uint64_t) swizzle << 62;
}


/* Host: tensor maps.  See cuda.cu. */

/*
 * Makes the tensor map of a row-major tensor of rank 2 or 3 with elements of
 * type; dim[0] is the innermost dimension and contiguous, stride [rank - 1]
 * has the bytes of the outer ones.  It is loaded in boxes; elements outside of
 * it are zeros.  state is that of the current device.  Returns a cudaError_t.
 */
int dsa_cuda_tensor_map(const dsa_cuda_state_t *state, CUtensorMap *map,
    CUtensorMapDataType type, uint32_t rank, const void *base,
    const uint64_t *dim, const uint64_t *stride, const uint32_t *box,
    CUtensorMapSwizzle swizzle);


#endif /* _DSA_HOPPER_CUH_INCLUDED_ */
