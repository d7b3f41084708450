
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_WGMMA_CUH_INCLUDED_
#define _DSA_WGMMA_CUH_INCLUDED_


#include "hopper.cuh"


/*
 * Products of e4m3 and of BF16 matrices in shared memory, for warpgroups.
 * Both operands have 128 bytes of K in a line, with the swizzle of 128 bytes.
 */

/* d [64, N] = or += a . b^T: e4m3 a [64, 32], b [N, 32]; BF16 16 of K */

template <int N>
static __device__ __forceinline__ void dsa_wgmma_e4m3(float *d, uint64_t a,
    uint64_t b, int add);

template <int N>
static __device__ __forceinline__ void dsa_wgmma_bf16(float *d, uint64_t a,
    uint64_t b, int add);

#define DSA_WGMMA_D4(i)                                                       \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define DSA_WGMMA_D8(i)   DSA_WGMMA_D4(i), DSA_WGMMA_D4(i + 4)
#define DSA_WGMMA_D16(i)  DSA_WGMMA_D8(i), DSA_WGMMA_D8(i + 8)
#define DSA_WGMMA_D32(i)  DSA_WGMMA_D16(i), DSA_WGMMA_D16(i + 16)

#define DSA_WGMMA_R4   "%0,%1,%2,%3"
#define DSA_WGMMA_R8   DSA_WGMMA_R4 ",%4,%5,%6,%7"
#define DSA_WGMMA_R16  DSA_WGMMA_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define DSA_WGMMA_R24  DSA_WGMMA_R16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define DSA_WGMMA_R32  DSA_WGMMA_R24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define DSA_WGMMA_R64                                                         \
    DSA_WGMMA_R32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44"      \
    ",%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61"    \
    ",%62,%63"

#define DSA_WGMMA_R96                                                         \
    DSA_WGMMA_R64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77"  \
    ",%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94"    \
    ",%95"

#define DSA_WGMMA(NAME, TYPE, TAIL, N, R, A, B, P, ...)                       \
                                                                              \
template <>                                                                   \
__device__ __forceinline__ void                                               \
NAME<N>(float *d, uint64_t a, uint64_t b, int add)                            \
{                                                                             \
    asm volatile ("{\n"                                                       \
                  ".reg .pred  p;\n"                                          \
                  "setp.ne.b32 p, %" P ", 0;\n"                               \
                  "wgmma.mma_async.sync.aligned.m64n" #N TYPE                 \
                  " {" R "}, %" A ", %" B ", p, " TAIL ";\n"                  \
                  "}"                                                         \
                  : __VA_ARGS__                                               \
                  : "l"(a), "l"(b), "r"(add));                                \
}

#define DSA_WGMMA_E4M3(N, ...)                                                \
    DSA_WGMMA(dsa_wgmma_e4m3, "k32.f32.e4m3.e4m3", "1, 1", N, __VA_ARGS__)

#define DSA_WGMMA_BF16(N, ...)                                                \
    DSA_WGMMA(dsa_wgmma_bf16, "k16.f32.bf16.bf16", "1, 1, 0, 0", N,           \
              __VA_ARGS__)

#define DSA_WGMMA_EACH(KIND)                                                  \
                                                                              \
KIND(8, DSA_WGMMA_R4, "4", "5", "6", DSA_WGMMA_D4(0))                         \
KIND(16, DSA_WGMMA_R8, "8", "9", "10", DSA_WGMMA_D8(0))                       \
KIND(32, DSA_WGMMA_R16, "16", "17", "18", DSA_WGMMA_D16(0))                   \
KIND(48, DSA_WGMMA_R24, "24", "25", "26", DSA_WGMMA_D16(0), DSA_WGMMA_D8(16)) \
KIND(64, DSA_WGMMA_R32, "32", "33", "34", DSA_WGMMA_D32(0))                   \
KIND(128, DSA_WGMMA_R64, "64", "65", "66", DSA_WGMMA_D32(0),                  \
     DSA_WGMMA_D32(32))                                                       \
KIND(192, DSA_WGMMA_R96, "96", "97", "98", DSA_WGMMA_D32(0),                  \
     DSA_WGMMA_D32(32), DSA_WGMMA_D32(64))

DSA_WGMMA_EACH(DSA_WGMMA_E4M3)
DSA_WGMMA_EACH(DSA_WGMMA_BF16)


/* Prevents the compiler from moving uses of acc across this point. */

template <int N>
static __device__ __forceinline__ void
dsa_wgmma_keep(float *acc)
{
    int32_t  i;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        asm volatile ("" : "+f"(acc[i]) :: "memory");
    }
}


/* Starts acc [64, N] = a [64, 128] . b [N, 128]^T. */

template <int N>
static __device__ __forceinline__ void
dsa_wgmma_e4m3_block(float *acc, uint64_t a, uint64_t b)
{
    dsa_wgmma_keep<N>(acc);
    dsa_wgmma_fence();
    dsa_wgmma_e4m3<N>(acc, a, b, 0);
    dsa_wgmma_e4m3<N>(acc, a + 2, b + 2, 1);
    dsa_wgmma_e4m3<N>(acc, a + 4, b + 4, 1);
    dsa_wgmma_e4m3<N>(acc, a + 6, b + 6, 1);
    dsa_wgmma_commit();
}


/*
 * Starts acc [64, N] += a [64, 64] . b [N, 64]^T, BF16.  Several of these may
 * run at the same time, one after the other for one acc, so that their order
 * of sums is that of K.
 */

template <int N>
static __device__ __forceinline__ void
dsa_wgmma_bf16_block(float *acc, uint64_t a, uint64_t b)
{
    dsa_wgmma_bf16<N>(acc, a, b, 1);
    dsa_wgmma_bf16<N>(acc, a + 2, b + 2, 1);
    dsa_wgmma_bf16<N>(acc, a + 4, b + 4, 1);
    dsa_wgmma_bf16<N>(acc, a + 6, b + 6, 1);
}


#endif /* _DSA_WGMMA_CUH_INCLUDED_ */
