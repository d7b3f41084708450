
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_FP8_KERNEL_CUH_INCLUDED_
#define _DSA_GEMM_FP8_KERNEL_CUH_INCLUDED_


#include "kernels/core/wgmma_e4m3.cuh"


/*
 * y = x . w^T for many rows, e4m3 with block scales.
 *
 *     - A block of threads multiplies tiles of rows x N features: one after
 *       another, because there are as many blocks as run at once.  One thread
 *       fills a ring of stages by TMA.  A stage is 128 bytes of in of each row
 *       and feature, and the scales of the rows.
 *     - Rows are the M operand of wgmma.  Each warpgroup has WAVES times 64 of
 *       them.  The tensor core sums 128 of in, which have one scale of either
 *       operand; the rest is added in float32 registers in the order of in.
 *       So the bits of an output depend neither on the tile nor on the other
 *       rows and features.
 *     - The additions must not hold up the tensor cores.  If the registers
 *       suffice, a warpgroup has two accumulators: the next product runs while
 *       one is added.  Otherwise the other warpgroup multiplies meanwhile.
 *     - A cluster of two blocks has the same rows and different features, and
 *       each block loads half of the rows for both.  Without that the L2 would
 *       be the limit of large products.  Small ones are faster without a
 *       cluster, whose blocks have to wait for each other at either end.
 *     - The launch is a programmatic dependent one.  The ring is filled with
 *       weights, which no kernel writes, while the kernel before still runs;
 *       rows are read, and y is written, after it has ended.
 */


#define DSA_FP8_K           128         /* bytes of in of a stage */
#define DSA_FP8_GROUP       128         /* threads of a warpgroup */

/*
 * Tiles are computed in bands of so many tiles of rows: all features of one
 * band, then the next band.  So the tiles that run at the same time have about
 * as many different rows as features, which minimizes the loads into the L2.
 */
#define DSA_FP8_BAND        8


typedef struct {
    CUtensorMap         w;              /* boxes of N features */
    CUtensorMap         x;              /* boxes of a tile's rows / CLUSTER,
                                           or of all rows if there are less */
    CUtensorMap         scale;          /* of x: likewise, not divided */
    const float        *w_scale;
    uint16_t           *y;
    size_t              ld_y;
    uint32_t            rows, out;
    uint32_t            blocks;         /* of 128 of in */
    uint32_t            first;          /* blocks of the first segment */
    uint32_t            bytes;          /* of a stage */
    uint32_t            last;           /* first row of the last tile, a
                                           multiple of 4 */
    uint32_t            row_tiles;
    uint32_t            tiles;          /* of clusters */
} dsa_fp8_args_t;


typedef struct {
    uint32_t            row;            /* the first ones */
    uint32_t            feature;
} dsa_fp8_tile_t;


/*
 * The parameters of a tile.  BLOCKS blocks run at the same time on a
 * multiprocessor.  If SEGMENTS is 2, in may be summed in two segments, as in
 * gemm_decode.cu.
 */

template <int GROUPS_, int WAVES_, int N_, int CLUSTER_, int STAGES_,
          int BLOCKS_, int SEGMENTS_>
struct dsa_fp8_shape_t {
    static constexpr int  GROUPS = GROUPS_;     /* warpgroups that multiply */
    static constexpr int  WAVES = WAVES_;
    static constexpr int  N = N_;
    static constexpr int  CLUSTER = CLUSTER_;
    static constexpr int  STAGES = STAGES_;
    static constexpr int  BLOCKS = BLOCKS_;
    static constexpr int  SEGMENTS = SEGMENTS_;
    static constexpr int  ROWS = GROUPS * WAVES * 64;
    static constexpr int  THREADS = (GROUPS + 1) * DSA_FP8_GROUP;
    static constexpr int  LINE = N < 64 ? N : 64;

    /* blocks of weights' scales that a tile may have */
    static constexpr int  SCALES = 128 % N == 0 ? 1 : 2;

    struct smem_t {
        uint8_t           w[STAGES][N * DSA_FP8_K];
        uint8_t           x[STAGES][ROWS * DSA_FP8_K];
        float             scale[STAGES][ROWS];

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
} dsa_fp8_ring_t;


template <typename T>
static __device__ __forceinline__ void
dsa_fp8_next(dsa_fp8_ring_t *r)
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
 * an illegal instruction.
 */

template <typename T>
static __device__ __forceinline__ dsa_fp8_tile_t
dsa_fp8_tile(const dsa_fp8_args_t *a, uint32_t t)
{
    uint32_t        band, size, height;
    dsa_fp8_tile_t  tile;

    t = t < a->tiles ? t : 0;

    size = a->tiles / a->row_tiles * DSA_FP8_BAND;
    band = t / size;
    t -= band * size;
    band *= DSA_FP8_BAND;
    height = min(a->row_tiles - band, DSA_FP8_BAND);

    tile.row = min((band + t % height) * T::ROWS, a->last);
    tile.feature = (t / height * T::CLUSTER + blockIdx.x % T::CLUSTER) * T::N;

    return tile;
}


/* Runs in one thread: fills the ring. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_load(typename T::smem_t *s, const dsa_fp8_args_t *a)
{
    constexpr uint32_t  PART = T::ROWS / T::CLUSTER;

    uint32_t         t, k, n, rank;
    dsa_fp8_tile_t   tile;
    dsa_fp8_ring_t   r;
    uint64_t        *full;

    rank = blockIdx.x % T::CLUSTER;
    t = blockIdx.x / T::CLUSTER;
    tile = dsa_fp8_tile<T>(a, t);

    /* load weights first, and rows only after the previous kernel has ended */

    n = min(a->blocks, T::STAGES);

    for (k = 0; k < n; k++) {
        dsa_mbar_arrive_expect(&s->full[k], a->bytes);
        dsa_tma_load_2d(s->w[k], &a->w, &s->full[k], k * DSA_FP8_K,
                        tile.feature);
    }

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    r.stage = 0;
    r.phase = 1;

    for ( ; t < a->tiles; t += gridDim.x / T::CLUSTER) {
        tile = dsa_fp8_tile<T>(a, t);

        for (k = 0; k < a->blocks; k++) {
            full = &s->full[r.stage];

            if (n > 0) {
                n--;

            } else {
                dsa_mbar_wait(&s->empty[r.stage], r.phase);
                dsa_mbar_arrive_expect(full, a->bytes);
                dsa_tma_load_2d(s->w[r.stage], &a->w, full, k * DSA_FP8_K,
                                tile.feature);
            }

            if constexpr (T::CLUSTER == 1) {
                dsa_tma_load_2d(s->x[r.stage], &a->x, full, k * DSA_FP8_K,
                                tile.row);

            } else {
                dsa_tma_load_2d_cluster(s->x[r.stage]
                                        + PART * rank * DSA_FP8_K,
                                        &a->x, full, k * DSA_FP8_K,
                                        tile.row + PART * rank,
                                        (1 << T::CLUSTER) - 1);
            }

            dsa_tma_load_2d(s->scale[r.stage], &a->scale, full, tile.row, k);

            dsa_fp8_next<T>(&r);
        }
    }

    asm volatile ("griddepcontrol.launch_dependents;" ::: "memory");
}


/* Called by a warp that has read a stage. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_release(uint64_t *empty)
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


/*
 * The scales of a tile's weights: each lane has those of one of 32 blocks of
 * in.  They are read one step ahead, across tiles.
 */

template <typename T>
struct dsa_fp8_weights_t {
    float               now[T::SCALES];
    float               ahead[T::SCALES];
};


template <typename T>
static __device__ __forceinline__ void
dsa_fp8_ahead(dsa_fp8_weights_t<T> *w, const dsa_fp8_args_t *a,
    uint32_t feature, uint32_t k)
{
    int32_t   i;
    uint32_t  b;

    k += threadIdx.x % 32;

#pragma unroll
    for (i = 0; i < T::SCALES; i++) {
        b = feature / 128 + i;

        w->ahead[i] = k < a->blocks && b * 128 < a->out
                      ? __ldg(a->w_scale + (size_t) b * a->blocks + k) : 0;
    }
}


/* Called for each block k of in. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_advance(dsa_fp8_weights_t<T> *w, const dsa_fp8_args_t *a,
    const dsa_fp8_tile_t *tile, const dsa_fp8_tile_t *next, uint32_t k)
{
    int32_t  i;

    if (k % 32 != 0) {
        return;
    }

#pragma unroll
    for (i = 0; i < T::SCALES; i++) {
        w->now[i] = w->ahead[i];
    }

    if (k + 32 < a->blocks) {
        dsa_fp8_ahead<T>(w, a, tile->feature, k + 32);

    } else {
        dsa_fp8_ahead<T>(w, a, next->feature, 0);
    }
}


/* The scales of this thread's two rows times those of the weights. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_scales(float (*v)[2], const float *scale,
    const dsa_fp8_weights_t<T> *w, uint32_t k)
{
    float    ws, r[2];
    int32_t  i;

    r[0] = scale[0];
    r[1] = scale[8];

#pragma unroll
    for (i = 0; i < T::SCALES; i++) {
        ws = __shfl_sync(0xffffffff, w->now[i], k % 32);
        v[i][0] = r[0] * ws;
        v[i][1] = r[1] * ws;
    }
}


template <typename T>
static __device__ __forceinline__ void
dsa_fp8_zero(float *sum)
{
    int32_t  i;

#pragma unroll
    for (i = 0; i < T::N / 2; i++) {
        sum[i] = 0;
    }
}


/*
 * sum += acc * v.  The first split parts of 32 features have the first block's
 * scale.
 */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_add(float *sum, const float *acc, const float (*v)[2], int32_t split)
{
    float    r[2];
    int32_t  i, j;

#pragma unroll
    for (i = 0; i < T::N / 32; i++) {
        r[0] = v[0][0];
        r[1] = v[0][1];

        if (T::SCALES == 2 && i > 0) {
            r[0] = i < split ? v[0][0] : v[T::SCALES - 1][0];
            r[1] = i < split ? v[0][1] : v[T::SCALES - 1][1];
        }

#pragma unroll
        for (j = i * 16; j < i * 16 + 16; j++) {
            sum[j] = fmaf(acc[j], r[j / 2 % 2], sum[j]);
        }
    }
}


/* Stores a warp's 16 rows in order, up to 64 features at a time. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_store(uint16_t (*smem)[T::LINE + 8], const dsa_fp8_args_t *a,
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
        y = a->y + row * a->ld_y + f;

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
dsa_fp8_x(typename T::smem_t *s, uint32_t stage, uint32_t row)
{
    return dsa_wgmma_desc(dsa_smem(s->x[0]) + (stage * T::ROWS + row)
                                              * DSA_FP8_K, 1, 16, 1024);
}


template <typename T>
static __device__ __forceinline__ uint64_t
dsa_fp8_w(typename T::smem_t *s, uint32_t stage)
{
    return dsa_wgmma_desc(dsa_smem(s->w[0]) + stage * T::N * DSA_FP8_K, 1, 16,
                          1024);
}


/* Computes the tiles of a warpgroup with one accumulator. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_multiply(typename T::smem_t *s, const dsa_fp8_args_t *a,
    uint32_t group)
{
    float                 acc[T::N / 2], sum[T::WAVES][T::N / 2];
    float                 v[T::SCALES][2];
    int32_t               i, split;
    uint32_t              k, t, row, line;
    dsa_fp8_tile_t        tile, next;
    dsa_fp8_ring_t        r;
    dsa_fp8_weights_t<T>  w;

    row = group * T::WAVES * 64;
    line = row + threadIdx.x % DSA_FP8_GROUP / 32 * 16;
    t = blockIdx.x / T::CLUSTER;
    next = dsa_fp8_tile<T>(a, t);
    dsa_fp8_ahead<T>(&w, a, next.feature, 0);

    r.stage = 0;
    r.phase = 0;

    while (t < a->tiles) {
        t += gridDim.x / T::CLUSTER;
        tile = next;
        next = dsa_fp8_tile<T>(a, t);
        split = (128 - tile.feature % 128) / 32;

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            dsa_fp8_zero<T>(sum[i]);
        }

        for (k = 0; k < a->blocks; k++) {
            dsa_fp8_advance<T>(&w, a, &tile, &next, k);
            dsa_mbar_wait(&s->full[r.stage], r.phase);

#pragma unroll
            for (i = 0; i < T::WAVES; i++) {
                dsa_wgmma_e4m3_block<T::N>(acc,
                                    dsa_fp8_x<T>(s, r.stage, row + i * 64),
                                    dsa_fp8_w<T>(s, r.stage));

                dsa_fp8_scales<T>(v, s->scale[r.stage] + line + i * 64
                                     + threadIdx.x % 32 / 4, &w, k);

                dsa_wgmma_wait<0>();
                dsa_wgmma_keep<T::N>(acc);

                if (i + 1 == T::WAVES) {
                    dsa_fp8_release<T>(&s->empty[r.stage]);
                }

                dsa_fp8_add<T>(sum[i], acc, v, split);
            }

            dsa_fp8_next<T>(&r);
        }

#pragma unroll
        for (i = 0; i < T::WAVES; i++) {
            dsa_fp8_store<T>(&s->y[group][line % 64], a, sum[i],
                             tile.row + line + i * 64, tile.feature);
        }
    }
}


/* Starts the product of the next stage after it was loaded. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_start(float *acc, typename T::smem_t *s, dsa_fp8_ring_t *r,
    uint32_t group)
{
    dsa_mbar_wait(&s->full[r->stage], r->phase);
    dsa_wgmma_e4m3_block<T::N>(acc, dsa_fp8_x<T>(s, r->stage, group * 64),
                               dsa_fp8_w<T>(s, r->stage));
    dsa_fp8_next<T>(r);
}


/*
 * Ends the product of a stage, after which PENDING more were started, and adds
 * it to sum.
 */

template <typename T, int PENDING>
static __device__ __forceinline__ void
dsa_fp8_end(float *sum, float *acc, typename T::smem_t *s, uint32_t *stage,
    uint32_t line, const dsa_fp8_weights_t<T> *w, uint32_t k, int32_t split)
{
    float  v[T::SCALES][2];

    dsa_fp8_scales<T>(v, s->scale[*stage] + line + threadIdx.x % 32 / 4, w, k);

    dsa_wgmma_wait<PENDING>();
    dsa_wgmma_keep<T::N>(acc);
    dsa_fp8_release<T>(&s->empty[*stage]);
    dsa_fp8_add<T>(sum, acc, v, split);

    *stage = *stage + 1 == T::STAGES ? 0 : *stage + 1;
}


/* If block k of in is the last one of a segment, adds sum to all. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_join(float *all, float *sum, const dsa_fp8_args_t *a, uint32_t k)
{
    int32_t  i;

    if constexpr (T::SEGMENTS > 1) {
        if (k + 1 == a->first || k + 1 == a->blocks) {
#pragma unroll
            for (i = 0; i < T::N / 2; i++) {
                all[i] += sum[i];
                sum[i] = 0;
            }
        }
    }
}


/* Computes the tiles of a warpgroup with two accumulators. */

template <typename T>
static __device__ __forceinline__ void
dsa_fp8_multiply_double(typename T::smem_t *s, const dsa_fp8_args_t *a,
    uint32_t group)
{
    float                 acc[T::N / 2], other[T::N / 2], sum[T::N / 2];
    float                 all[T::SEGMENTS > 1 ? T::N / 2 : 1];
    int32_t               split;
    uint32_t              k, t, line, stage;
    dsa_fp8_tile_t        tile, next;
    dsa_fp8_ring_t        r;
    dsa_fp8_weights_t<T>  w;

    line = group * 64 + threadIdx.x % DSA_FP8_GROUP / 32 * 16;
    t = blockIdx.x / T::CLUSTER;
    next = dsa_fp8_tile<T>(a, t);
    dsa_fp8_ahead<T>(&w, a, next.feature, 0);

    r.stage = 0;
    r.phase = 0;
    stage = 0;

    while (t < a->tiles) {
        t += gridDim.x / T::CLUSTER;
        tile = next;
        next = dsa_fp8_tile<T>(a, t);
        split = (128 - tile.feature % 128) / 32;

        dsa_fp8_zero<T>(sum);

        if (T::SEGMENTS > 1) {
            dsa_fp8_zero<T>(all);
        }

        dsa_fp8_start<T>(acc, s, &r, group);

        for (k = 0; k + 2 < a->blocks; k += 2) {
            dsa_fp8_advance<T>(&w, a, &tile, &next, k);

            dsa_fp8_start<T>(other, s, &r, group);
            dsa_fp8_end<T, 1>(sum, acc, s, &stage, line, &w, k, split);
            dsa_fp8_join<T>(all, sum, a, k);

            dsa_fp8_start<T>(acc, s, &r, group);
            dsa_fp8_end<T, 1>(sum, other, s, &stage, line, &w, k + 1, split);
            dsa_fp8_join<T>(all, sum, a, k + 1);
        }

        dsa_fp8_advance<T>(&w, a, &tile, &next, k);

        if (k + 1 < a->blocks) {
            dsa_fp8_start<T>(other, s, &r, group);
            dsa_fp8_end<T, 1>(sum, acc, s, &stage, line, &w, k, split);
            dsa_fp8_join<T>(all, sum, a, k);
            dsa_fp8_end<T, 0>(sum, other, s, &stage, line, &w, k + 1, split);
            dsa_fp8_join<T>(all, sum, a, k + 1);

        } else {
            dsa_fp8_end<T, 0>(sum, acc, s, &stage, line, &w, k, split);
            dsa_fp8_join<T>(all, sum, a, k);
        }

        dsa_fp8_store<T>(&s->y[group][line % 64], a,
                         T::SEGMENTS > 1 ? all : sum, tile.row + line,
                         tile.feature);
    }
}


template <typename T>
static __device__ __forceinline__ void
dsa_fp8_multiply_wave(typename T::smem_t *s, const dsa_fp8_args_t *a,
    uint32_t group)
{
    if constexpr (T::N <= 128) {
        dsa_fp8_multiply_double<T>(s, a, group);

    } else {
        dsa_fp8_multiply<T>(s, a, group);
    }
}


template <typename T>
static __global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
dsa_fp8_kernel(const __grid_constant__ dsa_fp8_args_t a)
{
    /* the registers of the loader's warpgroup are reassigned */
    constexpr bool  MORE = T::BLOCKS == 1 && T::N >= 128;

    typename T::smem_t  *s;
    uint32_t             i, group;

    extern __shared__ __align__(1024) uint8_t  shared[];

    s = (typename T::smem_t *) shared;

    if (threadIdx.x == 0) {
        for (i = 0; i < T::STAGES; i++) {
            dsa_mbar_init(&s->full[i], 1);
            dsa_mbar_init(&s->empty[i], T::CLUSTER * T::GROUPS * 4);
        }

        dsa_mbar_fence_init();
    }

    if (T::CLUSTER > 1) {
        dsa_cluster_sync();

    } else {
        __syncthreads();
    }

    group = __shfl_sync(0xffffffff, threadIdx.x / DSA_FP8_GROUP, 0);

    if (group == T::GROUPS) {
        if constexpr (MORE) {
            dsa_regs_less<40>();
        }

        if (threadIdx.x == T::GROUPS * DSA_FP8_GROUP) {
            dsa_fp8_load<T>(s, &a);
        }

    } else {
        if constexpr (MORE) {
            dsa_regs_more<232>();
        }

        /*
         * With one wave, two copies of the loop fit the instruction cache: if
         * the number of the warpgroup is a constant, addresses take fewer
         * instructions.
         */

        if constexpr (T::WAVES > 1) {
            dsa_fp8_multiply<T>(s, &a, group);

        } else if (T::GROUPS == 1 || group == 0) {
            dsa_fp8_multiply_wave<T>(s, &a, 0);

        } else {
            dsa_fp8_multiply_wave<T>(s, &a, 1);
        }
    }

    /*
     * A block must not exit while copies or arrivals of another block are in
     * flight to it.
     */

    if (T::CLUSTER > 1) {
        __syncwarp();
        dsa_cluster_sync();
    }
}


#endif /* _DSA_GEMM_FP8_KERNEL_CUH_INCLUDED_ */
