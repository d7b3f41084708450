
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The warpgroups of moe_gemm.cu that multiply: sums of tiles with many and with
 * few rows, in FP8 and in BF16.
 */


#ifndef _DSA_MOE_MULTIPLY_CUH_INCLUDED_
#define _DSA_MOE_MULTIPLY_CUH_INCLUDED_


#include "kernels/core/wgmma.cuh"
#include "moe_store.cuh"


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
    float    sum[N / 2];
    int32_t  i;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        sum[i] = 0;
    }

    if constexpr (KIND == DSA_MOE_FP8) {
        dsa_moe_sum_few<N, STAGES>(sum, s, g, ring, group);

    } else {
        dsa_moe_sum_few_bf16<N, STAGES>(sum, s, g, ring, group);
    }

    dsa_moe_store_few<N>(s, g, t, sum, group);
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


#endif /* _DSA_MOE_MULTIPLY_CUH_INCLUDED_ */
