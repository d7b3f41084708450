
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MOE_INT4_CUH_INCLUDED_
#define _DSA_MOE_INT4_CUH_INCLUDED_


extern "C" {
#include "moe_int4.h"
}

#include "kernels/core/wgmma.cuh"
#include "moe_tiles.cuh"


#define DSA_INT4_CHUNK      512         /* bytes of 8 features by 128 of K */
#define DSA_INT4_FEW        64          /* rows of a tile of decode */
#define DSA_INT4_MANY       96          /* of the other one */

/*
 * The rings are as long as shared memory allows: 12 stages of 128 features, or
 * 7 of 256, have 101 and 118 KB of weights, three times what HBM delivers in
 * its latency.
 */
#define DSA_INT4_STAGES_FEW     12
#define DSA_INT4_STAGES_WIDE    7
#define DSA_INT4_STAGES_MANY    9

#define DSA_INT4_RUN        4           /* stages of dsa_int4_run() */

/*
 * Weights in the tensor cores are e4m3 numbers of 2 |q| units of 2^-9, which
 * e4m3 has as codes 0 .. 16, so they are multiplied by this.
 */
#define DSA_INT4_UNIT       256.0f


typedef struct {
    dsa_moe_gemm_t      moe;            /* w_scale is not used */
    CUtensorMap         x_many;         /* boxes of DSA_INT4_MANY rows */
    const uint16_t     *scale;          /* of the weights */
    uint32_t            room;           /* scales of a group of K */
} dsa_int4_gemm_t;


template <int N_MAX, int STAGES, int GROUPS>
struct dsa_int4_smem {
    uint8_t             w[STAGES][GROUPS * 64 * DSA_MOE_K / 2];
    uint8_t             x[STAGES][N_MAX * DSA_MOE_K];
    uint16_t            w_scale[STAGES][GROUPS * 64];
    float               x_scale[STAGES][N_MAX];

    /* as in dsa_moe_smem */
    uint16_t            y[GROUPS][N_MAX][64 + 8];

    uint64_t            full[STAGES];
    uint64_t            empty[STAGES];
    dsa_moe_tile_t      tile[STAGES];   /* the last one has no size */
    int32_t             first[DSA_CUDA_EXPERTS + 1];
    int32_t             offset[DSA_CUDA_EXPERTS];
    int32_t             count[DSA_CUDA_EXPERTS];
    int32_t             sum[(GROUPS + 1) * DSA_MOE_GROUP / 32];
};


/* d [64, N] = or += a . b^T, e4m3: a [64, 32] in registers, b [N, 32] */

template <int N>
static __device__ __forceinline__ void dsa_wgmma_regs(float *d,
    const uint32_t *a, uint64_t b, int add);

#define DSA_WGMMA_REGS(N, R, A0, A1, A2, A3, B, P, ...)                       \
                                                                              \
template <>                                                                   \
__device__ __forceinline__ void                                               \
dsa_wgmma_regs<N>(float *d, const uint32_t *a, uint64_t b, int add)           \
{                                                                             \
    asm volatile ("{\n"                                                       \
                  ".reg .pred  p;\n"                                          \
                  "setp.ne.b32 p, %" P ", 0;\n"                               \
                  "wgmma.mma_async.sync.aligned.m64n" #N                      \
                  "k32.f32.e4m3.e4m3 {" R "}, {%" A0 ",%" A1 ",%" A2          \
                  ",%" A3 "}, %" B ", p, 1, 1;\n"                             \
                  "}"                                                         \
                  : __VA_ARGS__                                               \
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),       \
                    "r"(add));                                                \
}

#define DSA_WGMMA_R48                                                         \
    DSA_WGMMA_R32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45"  \
    ",%46,%47"

DSA_WGMMA_REGS(8, DSA_WGMMA_R4, "4", "5", "6", "7", "8", "9",
               DSA_WGMMA_D4(0))
DSA_WGMMA_REGS(16, DSA_WGMMA_R8, "8", "9", "10", "11", "12", "13",
               DSA_WGMMA_D8(0))
DSA_WGMMA_REGS(32, DSA_WGMMA_R16, "16", "17", "18", "19", "20", "21",
               DSA_WGMMA_D16(0))
DSA_WGMMA_REGS(48, DSA_WGMMA_R24, "24", "25", "26", "27", "28", "29",
               DSA_WGMMA_D16(0), DSA_WGMMA_D8(16))
DSA_WGMMA_REGS(64, DSA_WGMMA_R32, "32", "33", "34", "35", "36", "37",
               DSA_WGMMA_D32(0))
DSA_WGMMA_REGS(96, DSA_WGMMA_R48, "48", "49", "50", "51", "52", "53",
               DSA_WGMMA_D32(0), DSA_WGMMA_D16(32))


#endif /* _DSA_MOE_INT4_CUH_INCLUDED_ */
