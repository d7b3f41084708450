
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "kernels/core/wgmma.cuh"
#include "moe_tiles.cuh"


/*
 * The experts' products y = x . w[e]^T.  Both operands are e4m3 in blocks of
 * 128 of K with float32 scales, or both are BF16.
 *
 * A block of threads multiplies 128 output features by a tile of an expert's
 * rows.  One warp fills a ring of stages of 128 bytes of K by TMA, and two
 * warpgroups multiply.  FP8: one or two more warps compute the scales of rows
 * times those of weights.  The tensor cores sum with fewer bits than float32
 * has, so each block of K is multiplied by its scale and added to float32
 * sums.  BF16: the tensor cores add all of K, and the products of a stage
 * begin before those of the previous one have ended.  The order of the sums is
 * the same in every tile, so a row's bits depend neither on the rows beside it
 * nor on the kernel.
 *
 * Prefill: a tile has up to 256 rows, which are the first operand of wgmma (64
 * for each instruction), so that a weight is read once for all of them.  Each
 * warpgroup has half of the rows.  The two use the tensor cores alternately:
 * one adds to its sums while the other one multiplies.  The blocks of a
 * cluster compute different features of the same rows, and each loads its part
 * of the rows for all of them.  Without that the L2 would be the limit.
 *
 * Decode: a tile has up to 64 rows, which are the second operand.  Its size is
 * a multiple of 8, so that few rows need few products.  The ring is long
 * enough to keep HBM busy.
 *
 * All blocks process the same list of tiles, which they compute from the
 * plan's counts: by experts, then by output features, then by the rows of an
 * expert, so that blocks that need the same weight need it at the same time.
 * In prefill tiles differ in size, and each cluster draws its next tile when
 * it can start it.  If tiles were assigned in advance, some clusters would get
 * more work, and those that share a weight would drift apart by more than the
 * L2 holds.
 */

/*
 * Runs in one warp: starts the copies of weights and rows.  After the last one
 * the next kernel may start, if the launch is a programmatic dependent one.
 */

template <int KIND, int CLUSTER, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_load(S *s, const dsa_moe_gemm_t *g, dsa_moe_walk_t t, int32_t parts,
    uint32_t rank)
{
    constexpr uint32_t  ELEMENTS = DSA_MOE_K / (KIND == DSA_MOE_FP8 ? 1 : 2);

    int32_t             part;
    uint32_t            k, n, late, bytes, stage, phase;
    const CUtensorMap  *map;

    stage = 0;
    phase = 0;
    n = 0;

    /*
     * The next number is drawn some blocks of K before the end, not earlier,
     * so that tiles are started in the order of the list.
     */

    late = g->blocks > 16 ? g->blocks - 16 : 0;

    for ( ; t.i < t.total; dsa_moe_next<CLUSTER>(&t, s)) {
        dsa_moe_find<CLUSTER>(&t, s, g, parts, rank);

        if (threadIdx.x % 32 == 0) {
            map = &g->x[CLUSTER > 1 ? t.tile.size / 64 - 1 : t.tile.size / 16];
            part = t.tile.size / CLUSTER * rank;
            bytes = (DSA_MOE_OUT + t.tile.size) * DSA_MOE_K;

            for (k = 0; k < g->blocks; k++) {
                dsa_mbar_wait(&s->empty[stage], phase ^ 1);

                /*
                 * The last tile in this slot was read before its first stage
                 * was released, at least STAGES stages ago.
                 */

                if (k == 0) {
                    s->tile[n] = t.tile;
                }

                if (k == late) {
                    dsa_moe_ready<CLUSTER>(s);
                }

                dsa_mbar_arrive_expect(&s->full[stage], bytes);

                dsa_tma_load_3d(s->w[stage], &g->w, &s->full[stage],
                                k * ELEMENTS, t.tile.out, t.e);

                if (CLUSTER == 1) {
                    dsa_tma_load_2d(s->x[stage], map, &s->full[stage],
                                    k * ELEMENTS, t.tile.place);

                } else {
                    dsa_tma_load_2d_cluster(s->x[stage] + part * DSA_MOE_K,
                                            map, &s->full[stage],
                                            k * ELEMENTS,
                                            t.tile.place + part,
                                            (1 << CLUSTER) - 1);
                }

                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }

            n = n + 1 == STAGES ? 0 : n + 1;
        }

        __syncwarp();
    }

    if (CLUSTER == 1 && g->dependent) {
        asm volatile ("griddepcontrol.launch_dependents;" ::: "memory");
    }

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_wait(&s->empty[stage], phase ^ 1);
        s->tile[n].size = 0;
        dsa_mbar_arrive(&s->full[stage]);
    }
}


/*
 * Returns the scales of 4 rows in block k of K; row is this lane's first one.
 * __ldg() is only for data that is not written while the kernel runs, but with
 * a programmatic dependent launch, which only decode has, the scales may be
 * written at the beginning.
 */

template <int CLUSTER>
static __device__ __forceinline__ float4
dsa_moe_row_scale(const dsa_moe_walk_t *t, const dsa_moe_gemm_t *g,
    int32_t row, uint32_t k)
{
    const float4  *p;

    if (row >= t->tile.n || k >= g->blocks) {
        return make_float4(0, 0, 0, 0);
    }

    p = (const float4 *) (g->x_scale + k * g->ld + t->tile.place + row);

    return CLUSTER > 1 ? __ldg(p) : *p;
}


/* Returns the scales of 32 blocks of K, one for each lane. */

static __device__ __forceinline__ float
dsa_moe_weight_scale(const dsa_moe_walk_t *t, const dsa_moe_gemm_t *g,
    uint32_t k)
{
    k += threadIdx.x % 32;

    if (k >= g->blocks || t->tile.out >= (int32_t) g->rows) {
        return 0;
    }

    return __ldg(g->w_scale + ((size_t) t->e * (g->rows / DSA_MOE_OUT)
                               + t->tile.out / DSA_MOE_OUT) * g->blocks + k);
}


/*
 * Runs in one warp: computes the scales of 128 rows from first on, times those
 * of the weight, for the ring.  They are read some blocks ahead.  In prefill
 * they are stored in the order of the rows.  In decode they are stored as
 * lanes need them: of 16 rows, lane q of the four that hold a row of the
 * accumulator needs 2q, 2q + 1, 2q + 8 and 2q + 9, which are stored together.
 */

template <int CLUSTER, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_scale(S *s, const dsa_moe_gemm_t *g, dsa_moe_walk_t t, int32_t parts,
    uint32_t rank, int32_t first)
{
    enum { AHEAD = 4 };

    float     ws, w[2], *to;
    float4    v[AHEAD];
    int32_t   i, lane, row, at;
    uint32_t  k, stage, phase;

    stage = 0;
    phase = 0;
    lane = threadIdx.x % 32;
    row = first + 4 * lane;
    at = CLUSTER > 1 ? row : lane / 4 * 16 + lane % 2 * 8 + lane % 4 / 2 * 2;

    for ( ; t.i < t.total; dsa_moe_next<CLUSTER>(&t, s)) {
        dsa_moe_ready<CLUSTER>(s);
        dsa_moe_find<CLUSTER>(&t, s, g, parts, rank);

#pragma unroll
        for (i = 0; i < AHEAD; i++) {
            v[i] = dsa_moe_row_scale<CLUSTER>(&t, g, row, i);
        }

        w[1] = dsa_moe_weight_scale(&t, g, 0);

        for (k = 0; k < g->blocks; /* void */) {

            if (k % 32 == 0) {
                w[0] = w[1];
                w[1] = dsa_moe_weight_scale(&t, g, k + 32);
            }

#pragma unroll
            for (i = 0; i < AHEAD; i++, k++) {

                if (k >= g->blocks) {
                    break;
                }

                dsa_mbar_wait(&s->empty[stage], phase ^ 1);

                ws = __shfl_sync(0xffffffff, w[0], k % 32);
                to = &s->scale[stage][at];

                if (row < t.tile.size) {
                    *(float2 *) to = make_float2(v[i].x * ws, v[i].y * ws);
                    *(float2 *) (to + (CLUSTER > 1 ? 2 : 4)) =
                                        make_float2(v[i].z * ws, v[i].w * ws);
                }

                __syncwarp();

                if (lane == 0) {
                    dsa_mbar_arrive(&s->full[stage]);
                }

                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }

                v[i] = dsa_moe_row_scale<CLUSTER>(&t, g, row, k + AHEAD);
            }
        }
    }

    dsa_mbar_wait(&s->empty[stage], phase ^ 1);

    if (lane == 0) {
        dsa_mbar_arrive(&s->full[stage]);
    }
}


/*
 * Called by a warp that has read a stage: releases it, so that the blocks of
 * the cluster may fill it again.
 */

template <int CLUSTER>
static __device__ __forceinline__ void
dsa_moe_release(uint64_t *empty)
{
    __syncwarp();

    if (CLUSTER > 1) {
        if (threadIdx.x % 32 < CLUSTER) {
            dsa_mbar_arrive_cluster(empty, threadIdx.x % 32);
        }

    } else if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(empty);
    }
}


/*
 * Stores 64 rows of a tile, from row n on, by 128 features.  sum has the
 * thread's part of them.  Each warp writes its 16 rows in order, 64 features
 * at a time.
 */

template <typename S>
static __device__ __forceinline__ void
dsa_moe_store_many(S *s, const dsa_moe_gemm_t *g, const dsa_moe_tile_t *t,
    const float *sum, uint32_t group, int32_t n, uint32_t warp, uint32_t lane)
{
    int32_t    j, h;
    uint32_t   a, p[4];
    uint16_t  *y;

    n += warp * 16 + lane / 8;

#pragma unroll
    for (h = 0; h < 2; h++) {
        a = dsa_smem(&s->y[group][warp * 16 + lane % 16][lane / 16 * 8]);

        __syncwarp();

#pragma unroll
        for (j = h * 32; j < h * 32 + 32; j += 8) {
            p[0] = dsa_float2_bf16(sum[j], sum[j + 1]);
            p[1] = dsa_float2_bf16(sum[j + 2], sum[j + 3]);
            p[2] = dsa_float2_bf16(sum[j + 4], sum[j + 5]);
            p[3] = dsa_float2_bf16(sum[j + 6], sum[j + 7]);

            dsa_stmatrix4(a + j % 32 * 4, p[0], p[1], p[2], p[3]);
        }

        __syncwarp();

        y = g->y + (size_t) (t->place + n) * g->rows + t->out + h * 64
            + lane % 8 * 8;

#pragma unroll
        for (j = 0; j < 16; j += 4) {
            if (n + j < t->n) {
                *(uint4 *) (y + (size_t) j * g->rows) =
                    *(const uint4 *) &s->y[group][warp * 16 + lane / 8 + j]
                                          [lane % 8 * 8];
            }
        }
    }
}


/*
 * Moves to the next stage of the ring, ring[0], with the phase of its barrier,
 * ring[1].
 */

template <int STAGES>
static __device__ __forceinline__ void
dsa_moe_turn(uint32_t *ring)
{
    if (++ring[0] == STAGES) {
        ring[0] = 0;
        ring[1] ^= 1;
    }
}


/* FP8, prefill: sums WAVES times 64 rows of a tile, from row on. */

template <int WAVES, int CLUSTER, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_sum_many(float (*sum)[64], S *s, const dsa_moe_gemm_t *g,
    uint32_t *ring, int32_t row)
{
    float         acc[64], v[2];
    int32_t       i, j;
    uint32_t      k, lane, warp, stage, phase, a;
    uint64_t      da, db;
    const float  *scale;

    lane = threadIdx.x % 32;
    warp = threadIdx.x % DSA_MOE_GROUP / 32;
    stage = ring[0];
    phase = ring[1];

    for (k = 0; k < g->blocks; k++) {
        dsa_mbar_wait(&s->full[stage], phase);

        a = dsa_smem(s->x[stage]) + row * DSA_MOE_K;
        db = dsa_wgmma_desc(dsa_smem(s->w[stage]), 1, 16, 1024);
        scale = s->scale[stage] + row + warp * 16 + lane / 4;

#pragma unroll
        for (i = 0; i < WAVES; i++) {
            da = dsa_wgmma_desc(a + i * 64 * DSA_MOE_K, 1, 16, 1024);

            dsa_wgmma_e4m3_block<128>(acc, da, db);

            v[0] = scale[i * 64];
            v[1] = scale[i * 64 + 8];

            dsa_wgmma_wait<0>();
            dsa_wgmma_keep<128>(acc);

            if (i + 1 == WAVES) {
                dsa_moe_release<CLUSTER>(&s->empty[stage]);
            }

#pragma unroll
            for (j = 0; j < 64; j++) {
                sum[i][j] = fmaf(acc[j], v[j / 2 % 2], sum[i][j]);
            }
        }

        if (WAVES == 0) {
            dsa_moe_release<CLUSTER>(&s->empty[stage]);
        }

        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }

    ring[0] = stage;
    ring[1] = phase;
}


/* The same in BF16.  A stage is released when the next one has been started. */

template <int WAVES, int CLUSTER, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_sum_many_bf16(float (*sum)[64], S *s, const dsa_moe_gemm_t *g,
    uint32_t *ring, int32_t row)
{
    int32_t   i;
    uint32_t  k, last, a;
    uint64_t  db;

    for (k = 0, last = 0; k < g->blocks; k++) {
        dsa_mbar_wait(&s->full[ring[0]], ring[1]);

        if constexpr (WAVES > 0) {
            a = dsa_smem(s->x[ring[0]]) + row * DSA_MOE_K;
            db = dsa_wgmma_desc(dsa_smem(s->w[ring[0]]), 1, 16, 1024);

            dsa_wgmma_fence();

#pragma unroll
            for (i = 0; i < WAVES; i++) {
                dsa_wgmma_bf16_block<128>(sum[i],
                                          dsa_wgmma_desc(a + i * 64
                                                         * DSA_MOE_K, 1, 16,
                                                         1024), db);
            }

            dsa_wgmma_commit();
            dsa_wgmma_wait<1>();
        }

        if (k > 0) {
            dsa_moe_release<CLUSTER>(&s->empty[last]);
        }

        last = ring[0];
        dsa_moe_turn<STAGES>(ring);
    }

    dsa_wgmma_wait<0>();

#pragma unroll
    for (i = 0; i < WAVES; i++) {
        dsa_wgmma_keep<128>(sum[i]);
    }

    dsa_moe_release<CLUSTER>(&s->empty[last]);
}


/*
 * Prefill: computes WAVES times 64 rows of a tile, from row on, by 128
 * features, in one warpgroup.
 */

template <int KIND, int WAVES, int CLUSTER, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_multiply_many(S *s, const dsa_moe_gemm_t *g, const dsa_moe_tile_t *t,
    uint32_t *ring, uint32_t group, int32_t row)
{
    float     sum[WAVES > 0 ? WAVES : 1][64];
    int32_t   i, j;
    uint32_t  lane, warp;

    lane = threadIdx.x % 32;
    warp = threadIdx.x % DSA_MOE_GROUP / 32;

#pragma unroll
    for (i = 0; i < WAVES; i++) {
#pragma unroll
        for (j = 0; j < 64; j++) {
            sum[i][j] = 0;
        }
    }

    if constexpr (KIND == DSA_MOE_FP8) {
        dsa_moe_sum_many<WAVES, CLUSTER, STAGES>(sum, s, g, ring, row);

    } else {
        dsa_moe_sum_many_bf16<WAVES, CLUSTER, STAGES>(sum, s, g, ring, row);
    }

    if (t->out >= (int32_t) g->rows) {
        return;
    }

#pragma unroll
    for (i = 0; i < WAVES; i++) {
        dsa_moe_store_many(s, g, t, sum[i], group, row + i * 64, warp, lane);
    }
}


/* FP8, decode: sums a warpgroup's 64 features of a tile of N rows. */

template <int N, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_sum_few(float *sum, S *s, const dsa_moe_gemm_t *g, uint32_t *ring,
    uint32_t group)
{
    float          acc[N / 2];
    float4         v;
    int32_t        i;
    uint32_t       k, lane, stage, phase;
    uint64_t       da, db;
    const float4  *scale;

    lane = threadIdx.x % 32;
    stage = ring[0];
    phase = ring[1];

    for (k = 0; k < g->blocks; k++) {
        dsa_mbar_wait(&s->full[stage], phase);

        da = dsa_wgmma_desc(dsa_smem(s->w[stage]) + group * 64 * DSA_MOE_K, 1,
                            16, 1024);
        db = dsa_wgmma_desc(dsa_smem(s->x[stage]), 1, 16, 1024);
        scale = (const float4 *) s->scale[stage] + lane % 4;

        dsa_wgmma_e4m3_block<N>(acc, da, db);
        dsa_wgmma_wait<0>();
        dsa_wgmma_keep<N>(acc);

#pragma unroll
        for (i = 0; i < N / 2; i += 8) {
            v = scale[i / 2];

            sum[i] = fmaf(acc[i], v.x, sum[i]);
            sum[i + 1] = fmaf(acc[i + 1], v.y, sum[i + 1]);
            sum[i + 2] = fmaf(acc[i + 2], v.x, sum[i + 2]);
            sum[i + 3] = fmaf(acc[i + 3], v.y, sum[i + 3]);

            if constexpr (N > 8) {
                sum[i + 4] = fmaf(acc[i + 4], v.z, sum[i + 4]);
                sum[i + 5] = fmaf(acc[i + 5], v.w, sum[i + 5]);
                sum[i + 6] = fmaf(acc[i + 6], v.z, sum[i + 6]);
                sum[i + 7] = fmaf(acc[i + 7], v.w, sum[i + 7]);
            }
        }

        dsa_moe_release<1>(&s->empty[stage]);

        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }

    ring[0] = stage;
    ring[1] = phase;
}


/* The same in BF16.  A stage is released when the next one has been started. */

template <int N, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_sum_few_bf16(float *sum, S *s, const dsa_moe_gemm_t *g, uint32_t *ring,
    uint32_t group)
{
    uint32_t  k, last;
    uint64_t  da, db;

    for (k = 0, last = 0; k < g->blocks; k++) {
        dsa_mbar_wait(&s->full[ring[0]], ring[1]);

        da = dsa_wgmma_desc(dsa_smem(s->w[ring[0]]) + group * 64 * DSA_MOE_K,
                            1, 16, 1024);
        db = dsa_wgmma_desc(dsa_smem(s->x[ring[0]]), 1, 16, 1024);

        dsa_wgmma_fence();
        dsa_wgmma_bf16_block<N>(sum, da, db);
        dsa_wgmma_commit();
        dsa_wgmma_wait<1>();

        if (k > 0) {
            dsa_moe_release<1>(&s->empty[last]);
        }

        last = ring[0];
        dsa_moe_turn<STAGES>(ring);
    }

    dsa_wgmma_wait<0>();
    dsa_wgmma_keep<N>(sum);
    dsa_moe_release<1>(&s->empty[last]);
}


/* Decode: computes a warpgroup's 64 features of a tile of N rows. */

template <int KIND, int N, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_multiply_few(S *s, const dsa_moe_gemm_t *g, const dsa_moe_tile_t *t,
    uint32_t *ring, uint32_t group)
{
    float      sum[N / 2];
    int32_t    i, j;
    uint32_t   lane, warp, a, p[4];
    uint16_t  *y;

    lane = threadIdx.x % 32;
    warp = threadIdx.x % DSA_MOE_GROUP / 32;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        sum[i] = 0;
    }

    if constexpr (KIND == DSA_MOE_FP8) {
        dsa_moe_sum_few<N, STAGES>(sum, s, g, ring, group);

    } else {
        dsa_moe_sum_few_bf16<N, STAGES>(sum, s, g, ring, group);
    }

    /* transpose features x rows to rows x features */

    dsa_bar_sync(1 + group, DSA_MOE_GROUP);

    a = dsa_smem(&s->y[group][lane % 8 + lane / 16 * 8]
                      [warp * 16 + lane / 8 % 2 * 8]);

#pragma unroll
    for (i = 0; i < N / 2; i += 8) {
        p[0] = dsa_float2_bf16(sum[i], sum[i + 1]);
        p[1] = dsa_float2_bf16(sum[i + 2], sum[i + 3]);

        if constexpr (N == 8) {
            dsa_stmatrix2_trans(a, p[0], p[1]);

        } else {
            p[2] = dsa_float2_bf16(sum[i + 4], sum[i + 5]);
            p[3] = dsa_float2_bf16(sum[i + 6], sum[i + 7]);
            dsa_stmatrix4_trans(a + i * 2 * sizeof(s->y[0][0]), p[0], p[1],
                                p[2], p[3]);
        }
    }

    dsa_bar_sync(1 + group, DSA_MOE_GROUP);

    i = threadIdx.x % DSA_MOE_GROUP / 8;
    j = threadIdx.x % 8 * 8;
    y = g->y + (size_t) (t->place + i) * g->rows + t->out + group * 64 + j;

    for ( /* void */ ; i < t->n; i += DSA_MOE_GROUP / 8) {
        *(uint4 *) y = *(const uint4 *) &s->y[group][i][j];
        y += (size_t) DSA_MOE_GROUP / 8 * g->rows;
    }
}


/* Initializes the barriers; SCALERS warps compute scales. */

template <int CLUSTER, int STAGES, int SCALERS, typename S>
static __device__ __forceinline__ void
dsa_moe_init(S *s, const dsa_moe_gemm_t *g)
{
    uint32_t  i;

    if (threadIdx.x == 0) {
        dsa_tma_prefetch(&g->w);

        for (i = 0; i < STAGES; i++) {
            dsa_mbar_init(&s->full[i], 1 + SCALERS);
            dsa_mbar_init(&s->empty[i], CLUSTER * 8);
        }

        dsa_mbar_init(&s->drawn, 1);
        dsa_mbar_init(&s->consumed, CLUSTER * (1 + SCALERS));

        dsa_mbar_fence_init();
    }
}


/* Runs in the warpgroups that multiply: computes tiles until the last one. */

template <int KIND, int CLUSTER, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_moe_multiply(S *s, const dsa_moe_gemm_t *g, uint32_t group)
{
    int32_t          row, waves;
    uint32_t         i, n, ring[2];
    dsa_moe_tile_t   tile;

    ring[0] = 0;
    ring[1] = 0;

    for (n = 0; /* void */ ; n = n + 1 == STAGES ? 0 : n + 1) {
        dsa_mbar_wait(&s->full[ring[0]], ring[1]);
        tile = s->tile[n];

        if (tile.size == 0) {
            break;
        }

        if constexpr (CLUSTER > 1) {

            /*
             * If the number of parts of 64 rows is odd, the first warpgroup
             * has one more.
             */

            i = tile.size / 64 + 1;
            row = group * (i / 2 * 64);
            waves = (i - group) / 2;

            if (waves == 2) {
                dsa_moe_multiply_many<KIND, 2, CLUSTER, STAGES>(
                                             s, g, &tile, ring, group, row);
            } else if (waves == 1) {
                dsa_moe_multiply_many<KIND, 1, CLUSTER, STAGES>(
                                             s, g, &tile, ring, group, row);
            } else {
                dsa_moe_multiply_many<KIND, 0, CLUSTER, STAGES>(
                                             s, g, &tile, ring, group, row);
            }

        } else {

            switch (tile.size) {

            case 8:
                dsa_moe_multiply_few<KIND, 8, STAGES>(s, g, &tile, ring,
                                                      group);
                break;

            case 16:
                dsa_moe_multiply_few<KIND, 16, STAGES>(s, g, &tile, ring,
                                                       group);
                break;

            case 32:
                dsa_moe_multiply_few<KIND, 32, STAGES>(s, g, &tile, ring,
                                                       group);
                break;

            case 48:
                dsa_moe_multiply_few<KIND, 48, STAGES>(s, g, &tile, ring,
                                                       group);
                break;

            default:
                dsa_moe_multiply_few<KIND, 64, STAGES>(s, g, &tile, ring,
                                                       group);
                break;
            }
        }
    }
}


template <int KIND, int CLUSTER, int N_MAX, int STAGES>
static __global__ void __launch_bounds__(DSA_MOE_THREADS, 1)
dsa_moe_gemm_kernel(const __grid_constant__ dsa_moe_gemm_t g)
{
    typedef dsa_moe_smem<CLUSTER, N_MAX, STAGES>  smem_t;

    enum { SCALERS = KIND == DSA_MOE_FP8 ? (N_MAX + 127) / 128 : 0 };

    smem_t          *s;
    int32_t          parts;
    uint32_t         rank, warp, group;
    dsa_moe_walk_t   t;

    extern __shared__ __align__(1024) uint8_t  shared[];

    s = (smem_t *) shared;
    rank = blockIdx.x % CLUSTER;
    parts = (g.rows + DSA_MOE_OUT * CLUSTER - 1) / (DSA_MOE_OUT * CLUSTER);

    dsa_moe_init<CLUSTER, STAGES, SCALERS>(s, &g);

    /*
     * The plan and the rows may be read only after the previous kernel has
     * ended.
     */

    if (CLUSTER == 1) {
        asm volatile ("griddepcontrol.wait;" ::: "memory");
    }

    dsa_moe_list<N_MAX>(s, &g, parts);

    if (CLUSTER > 1) {
        dsa_cluster_sync();
    }

    t.i = blockIdx.x / CLUSTER;
    t.total = s->first[g.experts];
    t.e = 0;
    t.phase = 0;

    warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    group = warp / 4;

    if (group == 2) {
        dsa_regs_less<40>();

        if (warp == 8) {
            dsa_moe_load<KIND, CLUSTER, STAGES>(s, &g, t, parts, rank);

        } else if (warp < 9 + SCALERS) {
            dsa_moe_scale<CLUSTER, STAGES>(s, &g, t, parts, rank,
                                           (warp - 9) * 128);

        } else if (CLUSTER > 1 && warp == 9 + SCALERS && rank == 0
                   && threadIdx.x % 32 == 0)
        {
            dsa_moe_draw<CLUSTER>(s, &g, &t);
        }

    } else {
        dsa_regs_more<232>();

        dsa_moe_multiply<KIND, CLUSTER, STAGES>(s, &g, group);
    }

    /*
     * A block must not exit while copies or arrivals of another block are in
     * flight to it.
     */

    if (CLUSTER > 1) {
        __syncwarp();
        dsa_cluster_sync();
    }
}


template <int KIND, int CLUSTER, int N_MAX, int STAGES>
static int
dsa_moe_gemm_launch(const dsa_cuda_state_t *state, const dsa_moe_gemm_t *g,
    dsa_stream_t stream)
{
    cudaLaunchConfig_t   config;
    cudaLaunchAttribute  attribute[2];

    config.gridDim = dim3(state->processors / CLUSTER * CLUSTER);
    config.blockDim = dim3(DSA_MOE_THREADS);
    config.dynamicSmemBytes = sizeof(dsa_moe_smem<CLUSTER, N_MAX, STAGES>);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = g->dependent ? 2 : 1;

    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = CLUSTER;
    attribute[0].val.clusterDim.y = 1;
    attribute[0].val.clusterDim.z = 1;
    attribute[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[1].val.programmaticStreamSerializationAllowed = 1;

    return cudaLaunchKernelEx(&config,
                              dsa_moe_gemm_kernel<KIND, CLUSTER, N_MAX,
                                                  STAGES>, *g);
}


template <int KIND>
static int
dsa_moe_gemm_permit(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_moe_gemm_kernel<KIND, DSA_MOE_CLUSTER, 256, 4>,
                          sizeof(dsa_moe_smem<DSA_MOE_CLUSTER, 256, 4>));

    return rc != 0 ? rc : dsa_setup_shared(dsa_moe_gemm_kernel<KIND, 1, 64, 8>,
                                           sizeof(dsa_moe_smem<1, 64, 8>));
}


int
dsa_moe_gemm_setup(void)
{
    int  rc;

    rc = dsa_moe_gemm_permit<DSA_MOE_FP8>();

    return rc != 0 ? rc : dsa_moe_gemm_permit<DSA_MOE_BF16>();
}


/*
 * Makes the tensor maps of w [experts, g->rows, cols] and of x [places, cols],
 * and starts the kernel for about so many rows.
 */

template <int KIND>
static int
dsa_moe_gemm(const dsa_cuda_state_t *state, dsa_moe_gemm_t *g, const void *x,
    const void *w, uint32_t cols, const dsa_moe_plan_t *plan, uint32_t rows,
    dsa_stream_t stream)
{
    int                  rc, prefill;
    uint32_t             i, box[3], element;
    uint64_t             dim[3], stride[2];
    CUtensorMapDataType  type;

    prefill = rows / g->experts >= DSA_MOE_MANY;
    element = KIND == DSA_MOE_FP8 ? 1 : 2;
    type = KIND == DSA_MOE_FP8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                               : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

    g->dependent = !prefill && rows <= DSA_MOE_DEPENDENT;
    g->counter = &state->counters->moe_drawn;
    g->offset = plan->offset;
    g->count = plan->count;
    g->blocks = (cols * element + DSA_MOE_K - 1) / DSA_MOE_K;

    dim[0] = cols;
    dim[1] = g->rows;
    dim[2] = g->experts;
    stride[0] = (uint64_t) cols * element;
    stride[1] = stride[0] * g->rows;
    box[0] = DSA_MOE_K / element;
    box[1] = DSA_MOE_OUT;
    box[2] = 1;

    rc = dsa_cuda_tensor_map(state, &g->w, type, 3, w, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);

    dim[1] = plan->places;

    for (i = 0; i < (prefill ? 4 : 5) && rc == cudaSuccess; i++) {
        if (prefill) {
            box[1] = 64 * (i + 1) / DSA_MOE_CLUSTER;

        } else {
            box[1] = i > 0 ? 16 * i : 8;
        }

        rc = dsa_cuda_tensor_map(state, &g->x[i], type, 2, x, dim, stride, box,
                                 CU_TENSOR_MAP_SWIZZLE_128B);
    }

    if (rc != cudaSuccess) {
        return rc;
    }

    if (prefill) {
        return dsa_moe_gemm_launch<KIND, DSA_MOE_CLUSTER, 256, 4>(state, g,
                                                                  stream);
    }

    return dsa_moe_gemm_launch<KIND, 1, 64, 8>(state, g, stream);
}


extern "C" int
dsa_cuda_moe_gemm(const dsa_cuda_state_t *state, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x, const dsa_fp8_weight_t *w,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t rows,
    dsa_stream_t stream)
{
    dsa_moe_gemm_t  g;

    if (experts == 0 || experts > DSA_CUDA_EXPERTS || w->rows == 0
        || w->rows % 128 != 0 || w->cols == 0 || w->cols % DSA_MOE_K != 0
        || plan->align % 8 != 0 || x->ld % 4 != 0 || x->ld < plan->places
        || (uintptr_t) x->scale % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 || plan->places == 0) {
        return cudaSuccess;
    }

    g.x_scale = x->scale;
    g.ld = x->ld;
    g.w_scale = w->scale;
    g.y = y;
    g.experts = experts;
    g.rows = w->rows;

    return dsa_moe_gemm<DSA_MOE_FP8>(state, &g, x->q, w->q, w->cols, plan,
                                     rows, stream);
}


extern "C" int
dsa_cuda_moe_gemm_bf16(const dsa_cuda_state_t *state, dsa_bf16_t *y,
    const dsa_bf16_t *x, const dsa_bf16_weight_t *w,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t rows,
    dsa_stream_t stream)
{
    dsa_moe_gemm_t  g;

    if (experts == 0 || experts > DSA_CUDA_EXPERTS || w->rows == 0
        || w->rows % 128 != 0 || w->cols == 0 || w->cols % 8 != 0
        || plan->align % 8 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 || plan->places == 0) {
        return cudaSuccess;
    }

    g.x_scale = NULL;
    g.ld = 0;
    g.w_scale = NULL;
    g.y = y;
    g.experts = experts;
    g.rows = w->rows;

    return dsa_moe_gemm<DSA_MOE_BF16>(state, &g, x, w->w, w->cols, plan, rows,
                                      stream);
}
