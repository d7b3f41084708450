
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_DECODE_KERNEL_CUH_INCLUDED_
#define _DSA_GEMM_DECODE_KERNEL_CUH_INCLUDED_


#include "kernels/core/hopper.cuh"
#include "gemm_decode.cuh"


/*
 * y = x . w^T for few rows.  The limit is reading w from HBM, and the kernel
 * is designed for it.
 *
 *     - w is the M operand of wgmma (64 features for each warpgroup), and the
 *       rows are N: 8 rows cost a tile of 8, not one of 64.
 *     - Two threads in two warps fill a ring of stages by TMA.  A stage is 128
 *       bytes of in of each feature and row (one swizzle atom), and the scales
 *       of the rows.  One thread alone cannot issue as many loads as HBM can
 *       serve.
 *     - FP8: the tensor core sums 128 of in, which have one scale of either
 *       operand; the rest is added in float32 registers.  The dependencies from
 *       one stage to the next take about 400 cycles, which several warpgroups
 *       hide.
 *     - If there are too few tiles for the GPU, in is cut into segments.  Each
 *       is summed by one of the warpgroups of a block, or of the blocks of a
 *       cluster.  The sums meet in (distributed) shared memory and are added in
 *       the order of in.  The number of segments depends on the weight's shape
 *       alone, and the order does not depend on who summed them, so that a
 *       row's bits do not depend on the rows beside it.
 *     - The launch is a programmatic dependent one.  The ring is filled with
 *       weights, which no kernel writes, while the kernel before still runs;
 *       rows are read after it has ended.
 */


#define DSA_GEMM_ATOM       128         /* bytes of in in a stage */
#define DSA_GEMM_STAGES     24
#define DSA_GEMM_LOADERS    2           /* warps */
#define DSA_GEMM_PAD        4           /* floats after a row of sums, against
                                           bank conflicts */


typedef struct {
    void               *y;
    size_t              ld_y, step_y;
    const float        *w_scale;
    uint32_t            rows, out;
    uint32_t            blocks;         /* atoms of in */
    uint32_t            split, stages;
    uint32_t            f32;
    uint32_t            wide;           /* y allows 16-byte stores */
} dsa_gemm_args_t;


/* wgmma m64nNk32 e4m3, m64nNk16 bf16; the latter's A transposed or not. */

#define DSA_R4    "%0, %1, %2, %3"
#define DSA_R8    DSA_R4 ", %4, %5, %6, %7"
#define DSA_R16   DSA_R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define DSA_R32   DSA_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, "   \
                  "%25, %26, %27, %28, %29, %30, %31"
#define DSA_R64   DSA_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, "   \
                  "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "   \
                  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

#define DSA_F4(i)   "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]),               \
                    "+f"(d[i + 3])
#define DSA_F8(i)   DSA_F4(i), DSA_F4(i + 4)
#define DSA_F16(i)  DSA_F8(i), DSA_F8(i + 8)
#define DSA_F32(i)  DSA_F16(i), DSA_F16(i + 16)
#define DSA_F64(i)  DSA_F32(i), DSA_F32(i + 32)

#define DSA_MMA(shape, type, tail, list, a, b, p, ...)                        \
    asm volatile ("{\n"                                                       \
                  ".reg .pred  q;\n"                                          \
                  "setp.ne.b32 q, %" p ", 0;\n"                               \
                  "wgmma.mma_async.sync.aligned." shape type " {" list "}, "  \
                  "%" a ", %" b ", q, " tail ";\n"                            \
                  "}"                                                         \
                  : __VA_ARGS__ : "l"(w), "l"(x), "r"(add))

#define DSA_MMA_N(type, tail)                                                 \
    if constexpr (N == 8) {                                                   \
        DSA_MMA("m64n8", type, tail, DSA_R4, "4", "5", "6", DSA_F4(0));       \
    } else if constexpr (N == 16) {                                           \
        DSA_MMA("m64n16", type, tail, DSA_R8, "8", "9", "10", DSA_F8(0));     \
    } else if constexpr (N == 32) {                                           \
        DSA_MMA("m64n32", type, tail, DSA_R16, "16", "17", "18",              \
                DSA_F16(0));                                                  \
    } else if constexpr (N == 64) {                                           \
        DSA_MMA("m64n64", type, tail, DSA_R32, "32", "33", "34",              \
                DSA_F32(0));                                                  \
    } else {                                                                  \
        DSA_MMA("m64n128", type, tail, DSA_R64, "64", "65", "66",             \
                DSA_F64(0));                                                  \
    }


template <int KIND, int N>
static __device__ __forceinline__ void
dsa_gemm_mma(float *d, uint64_t w, uint64_t x, int add)
{
    if constexpr (KIND == DSA_GEMM_FP8) {
        DSA_MMA_N("k32.f32.e4m3.e4m3", "1, 1")

    } else if constexpr (KIND == DSA_GEMM_BF16) {
        DSA_MMA_N("k16.f32.bf16.bf16", "1, 1, 0, 0")

    } else {
        DSA_MMA_N("k16.f32.bf16.bf16", "1, 1, 1, 0")
    }
}


/*
 * Adds one atom of in for 64 features and ROWS rows to d with 4 instructions.
 * Their operands are 32 bytes of in apart within the swizzle, or in a
 * transposed w 16 lines of 64 features apart.
 */

template <int KIND, int ROWS>
static __device__ __forceinline__ void
dsa_gemm_atom(float *d, uint32_t w, uint32_t x, int add)
{
    constexpr int  STEP = KIND == DSA_GEMM_BF16_T ? 2048 : 32;

    int  k;

#pragma unroll
    for (k = 0; k < 4; k++) {
        dsa_gemm_mma<KIND, ROWS>(d, dsa_wgmma_desc(w + k * STEP, 1, 1024,
                                                   1024),
                                 dsa_wgmma_desc(x + k * 32, 1, 1024, 1024),
                                 add || k > 0);
    }
}


/*
 * A stage of the ring, and the next phase of its barrier.  The number of
 * stages is even, so that a stage is always filled by the same loader and
 * emptied by the same part.  Otherwise a thread could miss a phase of the
 * barrier and take the phase after the next one for it.
 */

typedef struct {
    uint32_t  stage, parity;
} dsa_gemm_ring_t;


template <int STEP>
static __device__ __forceinline__ void
dsa_gemm_next(dsa_gemm_ring_t *r, uint32_t stages)
{
    r->stage += STEP;

    if (r->stage >= stages) {
        r->stage -= stages;
        r->parity ^= 1;
    }
}


/* Starts the product of the next atom after it was loaded. */

template <int KIND, int FEATURES, int PARTS, int ROWS>
static __device__ __forceinline__ void
dsa_gemm_start(float *d, dsa_gemm_ring_t *r, uint64_t *full, uint32_t w,
    uint32_t x, uint32_t stages)
{
    dsa_mbar_wait(&full[r->stage], r->parity);
    dsa_wgmma_fence();
    dsa_gemm_atom<KIND, ROWS>(d, w + r->stage * FEATURES * DSA_GEMM_ATOM,
                              x + r->stage * ROWS * DSA_GEMM_ATOM,
                              KIND != DSA_GEMM_FP8);
    dsa_wgmma_commit();
    dsa_gemm_next<PARTS>(r, stages);
}


/* acc += part * the scales of the row and of the weight's block */

template <int ROWS>
static __device__ __forceinline__ void
dsa_gemm_promote(float *acc, const float *part, const uint8_t *scale,
    float w_scale)
{
    int     j;
    float2  c;

#pragma unroll
    for (j = 0; j < ROWS / 8; j++) {
        c = *(const float2 *) (scale + j * 32 + threadIdx.x % 4 * 8);

        c.x *= w_scale;
        c.y *= w_scale;

        acc[j * 4] = fmaf(part[j * 4], c.x, acc[j * 4]);
        acc[j * 4 + 1] = fmaf(part[j * 4 + 1], c.y, acc[j * 4 + 1]);
        acc[j * 4 + 2] = fmaf(part[j * 4 + 2], c.x, acc[j * 4 + 2]);
        acc[j * 4 + 3] = fmaf(part[j * 4 + 3], c.y, acc[j * 4 + 3]);
    }
}


template <int KIND, int FEATURES>
static __device__ __forceinline__ void
dsa_gemm_load_w(uint8_t *smem, const CUtensorMap *map, uint64_t *full,
    uint32_t k, uint32_t feature, uint32_t head)
{
    uint32_t  i;

    if constexpr (KIND == DSA_GEMM_BF16_T) {
#pragma unroll
        for (i = 0; i < FEATURES / 64; i++) {
            dsa_tma_load_3d(smem + i * 8192, map, full, feature + i * 64, k,
                            head);
        }

    } else {
        dsa_tma_load_3d(smem, map, full, k, feature, head);
    }
}


/*
 * Reads the same address in the shared memory of another block of the cluster.
 */

static __device__ __forceinline__ float4
dsa_gemm_remote(uint32_t smem, uint32_t rank)
{
    float4  v;

    asm volatile ("{\n"
                  ".reg .b32  a;\n"
                  "mapa.shared::cluster.u32 a, %4, %5;\n"
                  "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [a];\n"
                  "}"
                  : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                  : "r"(smem), "r"(rank) : "memory");

    return v;
}


/* Stores eight features of a row. */

static __device__ __forceinline__ void
dsa_gemm_store(const dsa_gemm_args_t *a, size_t at, const float *v, uint32_t n)
{
    uint32_t   i;
    float     *f;
    uint16_t  *h;

    if (a->f32) {
        f = (float *) a->y + at;

        if (a->wide && n == 8) {
            *(float4 *) f = make_float4(v[0], v[1], v[2], v[3]);
            *(float4 *) (f + 4) = make_float4(v[4], v[5], v[6], v[7]);
            return;
        }

#pragma unroll
        for (i = 0; i < 8; i++) {
            if (i < n) {
                f[i] = v[i];
            }
        }

        return;
    }

    h = (uint16_t *) a->y + at;

    if (a->wide && n == 8) {
        *(uint4 *) h = make_uint4(
            dsa_float_bf16(v[0]) | (uint32_t) dsa_float_bf16(v[1]) << 16,
            dsa_float_bf16(v[2]) | (uint32_t) dsa_float_bf16(v[3]) << 16,
            dsa_float_bf16(v[4]) | (uint32_t) dsa_float_bf16(v[5]) << 16,
            dsa_float_bf16(v[6]) | (uint32_t) dsa_float_bf16(v[7]) << 16);
        return;
    }

#pragma unroll
    for (i = 0; i < 8; i++) {
        if (i < n) {
            h[i] = dsa_float_bf16(v[i]);
        }
    }
}


/*
 * Loads a loader's share of the atoms begin .. begin + n - 1 of in; "first" is
 * its first stage.  The weights are loaded first, and rows only after the
 * previous kernel has ended.
 */

template <int KIND, int FEATURES, int PARTS, int ROWS>
static __device__ __forceinline__ void
dsa_gemm_load(const CUtensorMap *map_w, const CUtensorMap *map_x,
    const CUtensorMap *map_scale, uint8_t *w, uint8_t *x, uint8_t *scale,
    uint64_t *full, uint64_t *empty, uint32_t first, uint32_t stages,
    uint32_t begin, uint32_t n, uint32_t feature, uint32_t row, uint32_t head)
{
    constexpr bool      FP8 = KIND == DSA_GEMM_FP8;
    constexpr uint32_t  ELEMENTS = FP8 ? 128 : 64;      /* in an atom */
    constexpr uint32_t  W = FEATURES * DSA_GEMM_ATOM;
    constexpr uint32_t  X = ROWS * DSA_GEMM_ATOM;
    constexpr uint32_t  SCALE = ROWS < 32 ? 128 : ROWS * 4;
    constexpr uint32_t  BYTES = W + X + (FP8 ? ROWS * 4 : 0);
    constexpr uint32_t  STEP = DSA_GEMM_LOADERS / PARTS;

    uint32_t         i, k, r, s;
    dsa_gemm_ring_t  in;

    in.stage = first;
    in.parity = 1;

    k = PARTS == 1 ? first : 0;

    for (i = k, s = in.stage; i < n && s < stages; i += STEP) {
        dsa_mbar_arrive_expect(&full[s], BYTES);
        dsa_gemm_load_w<KIND, FEATURES>(w + s * W, map_w, &full[s],
                                        (begin + i) * ELEMENTS, feature, head);
        s += DSA_GEMM_LOADERS;
    }

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    for (i = k, r = in.stage; i < n; i += STEP) {
        s = in.stage;

        if (r >= stages) {
            dsa_mbar_wait(&empty[s], in.parity);
            dsa_mbar_arrive_expect(&full[s], BYTES);
            dsa_gemm_load_w<KIND, FEATURES>(w + s * W, map_w, &full[s],
                                            (begin + i) * ELEMENTS, feature,
                                            head);
        }

        dsa_tma_load_3d(x + s * X, map_x, &full[s], (begin + i) * ELEMENTS,
                        row, head);

        if constexpr (FP8) {
            dsa_tma_load_2d(scale + s * SCALE, map_scale, &full[s], row,
                            begin + i);
        }

        r += DSA_GEMM_LOADERS;
        dsa_gemm_next<DSA_GEMM_LOADERS>(&in, stages);
    }

    asm volatile ("griddepcontrol.launch_dependents;" ::: "memory");
}


/* Stores a warp's sums of a segment: those of 16 features of ROWS rows. */

template <int FEATURES, int ROWS>
static __device__ __forceinline__ void
dsa_gemm_put(float *sums, const float *acc, uint32_t segment, uint32_t warp,
    uint32_t lane)
{
    constexpr uint32_t  GROUPS = FEATURES / 64;
    constexpr uint32_t  LINE = FEATURES + DSA_GEMM_PAD;

    int32_t   j;
    uint32_t  k;

#pragma unroll
    for (j = 0; j < ROWS / 8; j++) {
        k = (segment * ROWS + j * 8 + lane % 4 * 2) * LINE
            + warp % (GROUPS * 4) * 16 + lane / 4;

        sums[k] = acc[j * 4];
        sums[k + LINE] = acc[j * 4 + 1];
        sums[k + 8] = acc[j * 4 + 2];
        sums[k + LINE + 8] = acc[j * 4 + 3];
    }
}


/*
 * Adds the sums of all segments in the order of in, and stores the part of the
 * results that block rank of the cluster has.  Called by THREADS threads.
 */

template <int FEATURES, int PARTS, int ROWS, int THREADS>
static __device__ __forceinline__ void
dsa_gemm_finish(const dsa_gemm_args_t *a, float *sums, uint32_t rank,
    uint32_t row, uint32_t feature, uint32_t head)
{
    constexpr uint32_t  LINE = FEATURES + DSA_GEMM_PAD;

    int32_t    j;
    float      v[8], *p;
    float4     lo, hi;
    uint32_t   n, i, k, r, item, stop;

    n = a->rows - row < ROWS ? a->rows - row : ROWS;
    n *= FEATURES / 8;
    stop = n * (rank + 1) / a->split;

    for (item = n * rank / a->split + threadIdx.x; item < stop;
         item += THREADS)
    {
        r = item / (FEATURES / 8);
        k = item % (FEATURES / 8) * 8;

        if (feature + k >= a->out) {
            continue;
        }

#pragma unroll
        for (j = 0; j < 8; j++) {
            v[j] = 0;
        }

        for (i = 0; i < a->split; i++) {
#pragma unroll
            for (j = 0; j < PARTS; j++) {
                p = sums + (j * ROWS + r) * LINE + k;

                if (a->split == 1) {
                    lo = *(float4 *) p;
                    hi = *(float4 *) (p + 4);

                } else {
                    lo = dsa_gemm_remote(dsa_smem(p), i);
                    hi = dsa_gemm_remote(dsa_smem(p + 4), i);
                }

                v[0] += lo.x;
                v[1] += lo.y;
                v[2] += lo.z;
                v[3] += lo.w;
                v[4] += hi.x;
                v[5] += hi.y;
                v[6] += hi.z;
                v[7] += hi.w;
            }
        }

        dsa_gemm_store(a, head * a->step_y + (row + r) * a->ld_y + feature + k,
                       v, a->out - feature - k < 8 ? a->out - feature - k : 8);
    }
}


/*
 * Grid: split * tiles of rows (the split innermost, a cluster), tiles of
 * features, heads.
 */

template <int KIND, int FEATURES, int PARTS, int ROWS>
static __global__ void
__launch_bounds__(FEATURES * PARTS * 2 + DSA_GEMM_LOADERS * 32,
                  ROWS > 64 || FEATURES * PARTS > 128 ? 1 : 2)
dsa_gemm_decode_kernel(const __grid_constant__ CUtensorMap map_w,
    const __grid_constant__ CUtensorMap map_x,
    const __grid_constant__ CUtensorMap map_scale,
    const __grid_constant__ dsa_gemm_args_t a)
{
    constexpr bool      FP8 = KIND == DSA_GEMM_FP8;
    constexpr uint32_t  GROUPS = FEATURES / 64;
    constexpr uint32_t  WARPS = GROUPS * PARTS * 4;     /* that compute */
    constexpr uint32_t  W = FEATURES * DSA_GEMM_ATOM;
    constexpr uint32_t  X = ROWS * DSA_GEMM_ATOM;
    constexpr uint32_t  SCALE = ROWS < 32 ? 128 : ROWS * 4;

    int32_t                      j;
    float                        acc[ROWS / 2], w_scale;
    float                        part[FP8 ? ROWS / 2 : 1];
    uint32_t                     n, i, warp, lane, group, rank, begin, end;
    uint32_t                     row, feature, head, segment, wa, xa;
    dsa_gemm_ring_t              in, out;
    uint8_t                     *w, *x, *scale;
    float                       *sums;
    const float                 *ws;
    extern __shared__ uint8_t    shared[];
    static __shared__ uint64_t   full[DSA_GEMM_STAGES];
    static __shared__ uint64_t   empty[DSA_GEMM_STAGES];

    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;

    rank = blockIdx.x % a.split;
    row = blockIdx.x / a.split * ROWS;
    feature = blockIdx.y * FEATURES;
    head = blockIdx.z;

    /*
     * The stages of a loader or warpgroup.  The segments of a block use the
     * ring alternately, and the longest segment is the last.
     */

    segment = warp < WARPS ? warp / 4 / GROUPS : (warp - WARPS) % PARTS;
    begin = a.blocks * (rank * PARTS + segment) / (a.split * PARTS);
    end = a.blocks * (rank * PARTS + segment + 1) / (a.split * PARTS);
    n = end - begin;

    w = shared + ((1024 - (dsa_smem(shared) & 1023)) & 1023);
    x = w + a.stages * W;
    scale = x + a.stages * X;
    sums = (float *) w;

    if (threadIdx.x == 0) {
        for (i = 0; i < a.stages; i++) {
            dsa_mbar_init(&full[i], 1);
            dsa_mbar_init(&empty[i], GROUPS * 4);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();

    if (warp >= WARPS) {

        if (lane == 0) {
            dsa_gemm_load<KIND, FEATURES, PARTS, ROWS>(
                &map_w, &map_x, &map_scale, w, x, scale, full, empty,
                warp - WARPS, a.stages, begin, n, feature, row, head);
        }

        __syncwarp();

    } else {
        group = warp / 4 % GROUPS;
        ws = FP8 ? a.w_scale + (size_t) ((feature + group * 64) / 128)
                               * a.blocks + begin
                 : NULL;
        w_scale = 0;

#pragma unroll
        for (j = 0; j < ROWS / 2; j++) {
            acc[j] = 0;
        }

        in.stage = segment;
        in.parity = 0;
        out = in;

        wa = dsa_smem(w) + group * 8192;
        xa = dsa_smem(x);

        for (i = 0; i < n; i++) {
            if constexpr (FP8) {

                /* each lane holds the scale of one of 32 atoms */

                if (i % 32 == 0) {
                    w_scale = i + lane < n && feature + group * 64 < a.out
                              ? __ldg(ws + i + lane) : 0;
                }

                dsa_gemm_start<KIND, FEATURES, PARTS, ROWS>(part, &in, full,
                                                            wa, xa, a.stages);
                dsa_wgmma_wait<0>();

                dsa_gemm_promote<ROWS>(acc, part, scale + out.stage * SCALE,
                                       __shfl_sync(0xffffffff, w_scale,
                                                   i % 32));
                __syncwarp();

            } else {
                dsa_gemm_start<KIND, FEATURES, PARTS, ROWS>(acc, &in, full, wa,
                                                            xa, a.stages);

                /* the previous stage has been read */

                dsa_wgmma_wait<1>();

                if (i == 0) {
                    continue;
                }
            }

            if (lane == 0) {
                dsa_mbar_arrive(&empty[out.stage]);
            }

            dsa_gemm_next<PARTS>(&out, a.stages);
        }

        dsa_wgmma_wait<0>();

        /*
         * The memory of the ring is free, because all loads have ended and
         * were read.
         */

        dsa_bar_sync(1, WARPS * 32);

        dsa_gemm_put<FEATURES, ROWS>(sums, acc, segment, warp, lane);

        if (a.split == 1) {
            dsa_bar_sync(1, WARPS * 32);
        }
    }

    if (a.split > 1) {
        dsa_cluster_sync();
    }

    if (warp < WARPS) {
        dsa_gemm_finish<FEATURES, PARTS, ROWS, WARPS * 32>(&a, sums, rank, row,
                                                           feature, head);
    }

    if (a.split > 1) {

        /* other blocks still read this block's memory */

        dsa_cluster_sync();
    }
}


#endif /* _DSA_GEMM_DECODE_KERNEL_CUH_INCLUDED_ */
