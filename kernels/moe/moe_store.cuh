
/*
 * Copyright (C) The nginx-dsa authors
 *
 * How a warpgroup stores its sums of a tile of moe_gemm.cu and moe_int4.cu.
 */


#ifndef _DSA_MOE_STORE_CUH_INCLUDED_
#define _DSA_MOE_STORE_CUH_INCLUDED_


#include "moe_tiles.cuh"


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
 * Stores a warpgroup's 64 features of a tile of N rows.  sum has the thread's
 * part of them.
 */

template <int N, typename S>
static __device__ __forceinline__ void
dsa_moe_store_few(S *s, const dsa_moe_gemm_t *g, const dsa_moe_tile_t *t,
    const float *sum, uint32_t group)
{
    int32_t    i, j;
    uint32_t   lane, warp, a, p[4];
    uint16_t  *y;

    lane = threadIdx.x % 32;
    warp = threadIdx.x % DSA_MOE_GROUP / 32;

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


#endif /* _DSA_MOE_STORE_CUH_INCLUDED_ */
