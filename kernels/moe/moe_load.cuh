
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The warps of moe_gemm.cu that fill the ring of stages: with weights and rows,
 * and with the scales of both.
 */


#ifndef _DSA_MOE_LOAD_CUH_INCLUDED_
#define _DSA_MOE_LOAD_CUH_INCLUDED_


#include "moe_tiles.cuh"


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


#endif /* _DSA_MOE_LOAD_CUH_INCLUDED_ */
