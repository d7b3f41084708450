
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_MANY_CUH_INCLUDED_
#define _DSA_GEMM_MANY_CUH_INCLUDED_


#include "kernels/core/wgmma.cuh"
#include "gemm_decode.cuh"


/*
 * y = x . w^T for many rows: what the kernels for e4m3 with block scales and
 * for BF16 share.
 *
 *     - A block of threads multiplies tiles of rows x N features: one after
 *       another, because there are as many blocks as run at once.  One thread
 *       fills a ring of stages by TMA.  A stage is 128 bytes of in of each row
 *       and feature, and for FP8 the scales of the rows.
 *     - Rows are the M operand of wgmma.  Each warpgroup has WAVES times 64 of
 *       them.  The order of an output's sum is that of in, so that its bits
 *       depend neither on the tile nor on the other rows and features.
 *     - A cluster of two blocks has the same rows and different features, and
 *       each block loads half of the rows for both.  Without that the L2 would
 *       be the limit of large products.  Small ones are faster without a
 *       cluster, whose blocks have to wait for each other at either end.
 *     - The launch is a programmatic dependent one.  The ring is filled with
 *       weights, which no kernel writes, while the kernel before still runs;
 *       rows are read, and y is written, after it has ended.
 */


#define DSA_MANY_K          128         /* bytes of in of a stage */
#define DSA_MANY_GROUP      128         /* threads of a warpgroup */

/*
 * Tiles are computed in bands of so many tiles of rows: all features of one
 * band, then the next band.  So the tiles that run at the same time have about
 * as many different rows as features, which minimizes the loads into the L2.
 */
#define DSA_MANY_BAND        8


typedef struct {
    CUtensorMap         w;              /* boxes of N features */
    CUtensorMap         x;              /* boxes of a tile's rows / CLUSTER,
                                           or of all rows if there are less */
    CUtensorMap         scale;          /* FP8, of x: likewise, not divided */
    const float        *w_scale;        /* FP8 */
    void               *y;
    size_t              ld_y;
    uint32_t            f32;            /* BF16 products: y is float32 */
    uint32_t            rows, out;
    uint32_t            blocks;         /* of 128 bytes of in */
    uint32_t            segments;       /* in which in is summed */
    uint32_t            bytes;          /* of a stage */
    uint32_t            last;           /* first row of the last tile, a
                                           multiple of 4 */
    uint32_t            row_tiles;
    uint32_t            tiles;          /* of clusters */
} dsa_many_args_t;


typedef struct {
    uint32_t            row;            /* the first ones */
    uint32_t            feature;
} dsa_many_tile_t;


/*
 * The parameters of a tile.  BLOCKS blocks run at the same time on a
 * multiprocessor.  in may be summed in up to SEGMENTS segments, as in
 * gemm_decode.cu.
 */

template <int KIND_, int GROUPS_, int WAVES_, int N_, int CLUSTER_,
          int STAGES_, int BLOCKS_, int SEGMENTS_>
struct dsa_many_shape_t {
    static constexpr bool FP8 = KIND_ == DSA_GEMM_FP8;
    static constexpr int  K = FP8 ? 128 : 64;   /* of in in a stage */
    static constexpr int  GROUPS = GROUPS_;     /* warpgroups that multiply */
    static constexpr int  WAVES = WAVES_;
    static constexpr int  N = N_;
    static constexpr int  CLUSTER = CLUSTER_;
    static constexpr int  STAGES = STAGES_;
    static constexpr int  BLOCKS = BLOCKS_;
    static constexpr int  SEGMENTS = SEGMENTS_;
    static constexpr int  ROWS = GROUPS * WAVES * 64;
    static constexpr int  THREADS = (GROUPS + 1) * DSA_MANY_GROUP;
    static constexpr int  LINE = N < 64 ? N : 64;

    /* blocks of weights' scales that a tile may have */
    static constexpr int  SCALES = 128 % N == 0 ? 1 : 2;

    struct smem_t {
        uint8_t           w[STAGES][N * DSA_MANY_K];
        uint8_t           x[STAGES][ROWS * DSA_MANY_K];
        float             scale[FP8 ? STAGES : 1][ROWS];

        /*
         * y of 64 rows and up to 64 features of each warpgroup.  The pitch of
         * a row is an odd multiple of 16 bytes, so that the 8 rows that
         * stmatrix writes at a time have no bank conflicts.
         */
        uint16_t          y[GROUPS][64][LINE + 8];

        uint64_t          full[STAGES];
        uint64_t          empty[STAGES];
    };
};


/* A position in the ring, and the phase of its barrier. */

typedef struct {
    uint32_t            stage;
    uint32_t            phase;
} dsa_many_ring_t;


template <typename T>
static __device__ __forceinline__ void
dsa_many_next(dsa_many_ring_t *r)
{
    if (++r->stage == T::STAGES) {
        r->stage = 0;
        r->phase ^= 1;
    }
}


/*
 * Returns tile t of this block, or the first one after the last.  The last
 * tile of rows ends with the last row, or up to three rows after it.  It
 * computes some rows of the previous tile again, with the same bits, because
 * boxes that reach far beyond the rows are loaded slowly.
 *
 * Its first row is a multiple of 4, because the global address of the first
 * element of a box has to be a multiple of 16 bytes, and the scales of rows are
 * consecutive floats.  With another first row, the copy of the scales raises
 * an illegal instruction.  BF16 rows are cut alike.
 */

template <typename T>
static __device__ __forceinline__ dsa_many_tile_t
dsa_many_tile(const dsa_many_args_t *a, uint32_t t)
{
    uint32_t        band, size, height;
    dsa_many_tile_t  tile;

    t = t < a->tiles ? t : 0;

    size = a->tiles / a->row_tiles * DSA_MANY_BAND;
    band = t / size;
    t -= band * size;
    band *= DSA_MANY_BAND;
    height = min(a->row_tiles - band, DSA_MANY_BAND);

    tile.row = min((band + t % height) * T::ROWS, a->last);
    tile.feature = (t / height * T::CLUSTER + blockIdx.x % T::CLUSTER) * T::N;

    return tile;
}


/* Runs in one thread: fills the ring. */

template <typename T>
static __device__ __forceinline__ void
dsa_many_load(typename T::smem_t *s, const dsa_many_args_t *a)
{
    constexpr uint32_t  PART = T::ROWS / T::CLUSTER;

    uint32_t         t, k, n, rank;
    dsa_many_tile_t   tile;
    dsa_many_ring_t   r;
    uint64_t        *full;

    rank = blockIdx.x % T::CLUSTER;
    t = blockIdx.x / T::CLUSTER;
    tile = dsa_many_tile<T>(a, t);

    /* load weights first, and rows only after the previous kernel has ended */

    n = min(a->blocks, T::STAGES);

    for (k = 0; k < n; k++) {
        dsa_mbar_arrive_expect(&s->full[k], a->bytes);
        dsa_tma_load_2d(s->w[k], &a->w, &s->full[k], k * T::K,
                        tile.feature);
    }

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    r.stage = 0;
    r.phase = 1;

    for ( ; t < a->tiles; t += gridDim.x / T::CLUSTER) {
        tile = dsa_many_tile<T>(a, t);

        for (k = 0; k < a->blocks; k++) {
            full = &s->full[r.stage];

            if (n > 0) {
                n--;

            } else {
                dsa_mbar_wait(&s->empty[r.stage], r.phase);
                dsa_mbar_arrive_expect(full, a->bytes);
                dsa_tma_load_2d(s->w[r.stage], &a->w, full, k * T::K,
                                tile.feature);
            }

            if constexpr (T::CLUSTER == 1) {
                dsa_tma_load_2d(s->x[r.stage], &a->x, full, k * T::K,
                                tile.row);

            } else {
                dsa_tma_load_2d_cluster(s->x[r.stage]
                                        + PART * rank * DSA_MANY_K,
                                        &a->x, full, k * T::K,
                                        tile.row + PART * rank,
                                        (1 << T::CLUSTER) - 1);
            }

            if constexpr (T::FP8) {
                dsa_tma_load_2d(s->scale[r.stage], &a->scale, full, tile.row,
                                k);
            }

            dsa_many_next<T>(&r);
        }
    }

    asm volatile ("griddepcontrol.launch_dependents;" ::: "memory");
}


/* Called by a warp that has read a stage. */

template <typename T>
static __device__ __forceinline__ void
dsa_many_release(uint64_t *empty)
{
    __syncwarp();

    if (T::CLUSTER > 1) {
        if (threadIdx.x % 32 < T::CLUSTER) {
            dsa_mbar_arrive_cluster(empty, threadIdx.x % 32);
        }

    } else if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(empty);
    }
}


template <typename T>
static __device__ __forceinline__ void
dsa_many_zero(float *sum)
{
    int32_t  i;

#pragma unroll
    for (i = 0; i < T::N / 2; i++) {
        sum[i] = 0;
    }
}


/*
 * Stores a warp's 16 rows as float32.  Four lanes store 32 bytes of a row,
 * which is what the L2 writes at once.
 */

template <typename T>
static __device__ __forceinline__ void
dsa_many_store_f32(const dsa_many_args_t *a, const float *sum, uint32_t row,
    uint32_t feature)
{
    int32_t   i, j;
    float    *y;

    row += threadIdx.x % 32 / 4;
    feature += threadIdx.x % 4 * 2;

#pragma unroll
    for (i = 0; i < 2; i++) {
        if (row + i * 8 >= a->rows) {
            break;
        }

        y = (float *) a->y + (row + i * 8) * a->ld_y + feature;

#pragma unroll
        for (j = 0; j < T::N / 8; j++) {
            if (feature + j * 8 < a->out) {
                *(float2 *) (y + j * 8) = make_float2(sum[4 * j + 2 * i],
                                                  sum[4 * j + 2 * i + 1]);
            }
        }
    }
}


/* Stores a warp's 16 rows in order, up to 64 features at a time. */

template <typename T>
static __device__ __forceinline__ void
dsa_many_store(uint16_t (*smem)[T::LINE + 8], const dsa_many_args_t *a,
    const float *sum, uint32_t row, uint32_t feature)
{
    constexpr int  LANES = T::LINE / 8;         /* of a row */

    int32_t    i, j;
    uint32_t   p, q[4], lane, f;
    uint16_t  *y;

    lane = threadIdx.x % 32;
    p = dsa_smem(&smem[lane % 16][lane / 16 * 8]);
    row += lane / LANES;

#pragma unroll
    for (i = 0; i < T::N / T::LINE; i++) {
        __syncwarp();

#pragma unroll
        for (j = 0; j < T::LINE / 2; j += 8) {
            q[0] = dsa_float2_bf16(sum[j], sum[j + 1]);
            q[1] = dsa_float2_bf16(sum[j + 2], sum[j + 3]);
            q[2] = dsa_float2_bf16(sum[j + 4], sum[j + 5]);
            q[3] = dsa_float2_bf16(sum[j + 6], sum[j + 7]);

            dsa_stmatrix4(p + j * 4, q[0], q[1], q[2], q[3]);
        }

        __syncwarp();

        f = feature + i * T::LINE + lane % LANES * 8;
        y = (uint16_t *) a->y + row * a->ld_y + f;

#pragma unroll
        for (j = 0; j < 16; j += 32 / LANES) {
            if (row + j < a->rows && f < a->out) {
                *(uint4 *) (y + j * a->ld_y) =
                    *(const uint4 *) &smem[lane / LANES + j]
                                          [lane % LANES * 8];
            }
        }

        sum += T::LINE / 2;
    }
}


/* Returns the descriptors of a stage's operands. */

template <typename T>
static __device__ __forceinline__ uint64_t
dsa_many_x(typename T::smem_t *s, uint32_t stage, uint32_t row)
{
    return dsa_wgmma_desc(dsa_smem(s->x[0]) + (stage * T::ROWS + row)
                                              * DSA_MANY_K, 1, 16, 1024);
}


template <typename T>
static __device__ __forceinline__ uint64_t
dsa_many_w(typename T::smem_t *s, uint32_t stage)
{
    return dsa_wgmma_desc(dsa_smem(s->w[0]) + stage * T::N * DSA_MANY_K, 1, 16,
                          1024);
}


#endif /* _DSA_GEMM_MANY_CUH_INCLUDED_ */
