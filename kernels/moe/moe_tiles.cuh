
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MOE_TILES_CUH_INCLUDED_
#define _DSA_MOE_TILES_CUH_INCLUDED_


extern "C" {
#include "moe.h"
}

#include "kernels/core/hopper.cuh"


#define DSA_MOE_FP8         0           /* of both operands */
#define DSA_MOE_BF16        1

#define DSA_MOE_K           128         /* bytes of K in a stage */
#define DSA_MOE_OUT         128         /* features of a tile */
#define DSA_MOE_GROUP       128         /* threads of a warpgroup */
#define DSA_MOE_THREADS     (3 * DSA_MOE_GROUP)
#define DSA_MOE_CLUSTER     2           /* of prefill; decode: 1 */

/*
 * With this many or more rows for each expert, the tiles for prefill are
 * faster.
 */
#define DSA_MOE_MANY        32

/*
 * With at most this many pairs, those of 16 tokens with 8 experts each, the
 * launch is a programmatic dependent one.  The number is an estimate; "dsa
 * bench engine" with 1, 8, 16 and 32 streams measures it.
 */
#define DSA_MOE_DEPENDENT   128


typedef struct {
    CUtensorMap         w;              /* cols, out features, experts */
    CUtensorMap         x[5];           /* cols, places; boxes by size */
    const float        *x_scale;        /* FP8 */
    const float        *w_scale;
    const int32_t      *offset;
    const int32_t      *count;
    uint16_t           *y;
    int32_t            *counter;        /* tiles drawn: 0 before and after */
    size_t              ld;             /* of x_scale */
    uint32_t            experts;
    uint32_t            rows;           /* out features */
    uint32_t            blocks;         /* of DSA_MOE_K bytes of K */
    uint32_t            dependent;      /* the launch overlaps with the kernels
                                           before and after it */
} dsa_moe_gemm_t;


typedef struct {
    int32_t             out;            /* first feature of this block */
    int32_t             place;          /* first row */
    int32_t             n;              /* rows */
    int32_t             size;           /* rows that are multiplied, >= n */
} dsa_moe_tile_t;


/* A warp's position in the list of tiles. */

typedef struct {
    int32_t             i;
    int32_t             e;              /* expert */
    int32_t             total;
    uint32_t            phase;          /* of drawn */
    dsa_moe_tile_t      tile;
} dsa_moe_walk_t;


template <int CLUSTER, int N_MAX, int STAGES>
struct dsa_moe_smem {
    uint8_t             w[STAGES][DSA_MOE_OUT * DSA_MOE_K];
    uint8_t             x[STAGES][N_MAX * DSA_MOE_K];

    /* the row's scale times the weight's; see dsa_moe_scale() */
    float               scale[STAGES][N_MAX];

    /*
     * y of 64 rows and 64 features of each warpgroup.  The pitch of a row is
     * an odd multiple of 16 bytes, so that the 8 rows that stmatrix writes at
     * a time have no bank conflicts.
     */
    uint16_t            y[2][64][64 + 8];

    uint64_t            full[STAGES];
    uint64_t            empty[STAGES];
    dsa_moe_tile_t      tile[STAGES];   /* the last one has no size */
    int32_t             first[DSA_CUDA_EXPERTS + 1];
    int32_t             offset[DSA_CUDA_EXPERTS];
    int32_t             count[DSA_CUDA_EXPERTS];
    int32_t             sum[DSA_MOE_THREADS / 32];

    /* the tiles that this cluster draws, see dsa_moe_draw() */
    uint64_t            drawn;
    uint64_t            consumed;
    int32_t             next;
};


/*
 * Makes the list of tiles: first[e] is the number of the first tile of expert
 * e.  An expert has parts (of the output features) tiles for each part of its
 * rows.  Each thread counts two experts.
 */

template <int N_MAX, typename S>
static __device__ __forceinline__ void
dsa_moe_list(S *s, const dsa_moe_gemm_t *g, int32_t parts)
{
    int32_t   i, u, v, n[2], lane, warp;
    uint32_t  e;

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

#pragma unroll
    for (i = 0; i < 2; i++) {
        e = 2 * threadIdx.x + i;
        n[i] = 0;

        if (e < g->experts) {
            v = g->count[e];
            s->count[e] = v;
            s->offset[e] = g->offset[e];
            n[i] = (v + N_MAX - 1) / N_MAX * parts;
        }
    }

    v = n[0] + n[1];

#pragma unroll
    for (i = 1; i < 32; i <<= 1) {
        u = __shfl_up_sync(0xffffffff, v, i);
        v += lane >= i ? u : 0;
    }

    if (lane == 31) {
        s->sum[warp] = v;
    }

    __syncthreads();

    for (i = 0; i < warp; i++) {
        v += s->sum[i];
    }

    e = 2 * threadIdx.x;

    if (e < g->experts) {
        s->first[e + 1] = v - n[1];
    }

    if (e + 1 < g->experts) {
        s->first[e + 2] = v;
    }

    if (threadIdx.x == 0) {
        s->first[0] = 0;
    }

    __syncthreads();
}


/*
 * Computes tile i of the n tiles of an expert's count rows, which are cut as
 * evenly as the sizes of the instructions allow.
 */

template <int CLUSTER>
static __device__ __forceinline__ void
dsa_moe_cut(dsa_moe_tile_t *t, int32_t offset, int32_t count, int32_t n,
    int32_t i)
{
    int32_t  at, size;

    if (CLUSTER > 1) {
        size = (count + 63) / 64;
        at = (size / n * i + min(size % n, i)) * 64;
        t->size = (size / n + (i < size % n)) * 64;

    } else {
        size = (count + n - 1) / n;
        t->size = size <= 8 ? 8 : (size + 15) & ~15;
        at = i * t->size;
    }

    t->place = offset + at;
    t->n = min(t->size, count - at);
}


/*
 * Finds the tile with number t->i; t->e is at most its expert.  Called by all
 * lanes of a warp.
 */

template <int CLUSTER, typename S>
static __device__ __forceinline__ void
dsa_moe_find(dsa_moe_walk_t *t, const S *s, const dsa_moe_gemm_t *g,
    int32_t parts, uint32_t rank)
{
    int32_t  e, n, i;

    for ( ;; ) {
        e = t->e + 1 + (int32_t) threadIdx.x % 32;
        n = __popc(__ballot_sync(0xffffffff, e <= (int32_t) g->experts
                                             && s->first[e] <= t->i));
        t->e += n;

        if (n < 32) {
            break;
        }
    }

    i = t->i - s->first[t->e];
    n = (s->first[t->e + 1] - s->first[t->e]) / parts;

    t->tile.out = (i / n * CLUSTER + rank) * DSA_MOE_OUT;
    dsa_moe_cut<CLUSTER>(&t->tile, s->offset[t->e], s->count[t->e], n, i % n);
}


/*
 * Runs in one thread of a cluster's first block: draws the next tile each time
 * the warps that work on the last one arrive at consumed, until no tile is
 * left.  The first tile of each cluster is its own number.
 */

template <int CLUSTER, typename S>
static __device__ __forceinline__ void
dsa_moe_draw(S *s, const dsa_moe_gemm_t *g, const dsa_moe_walk_t *t)
{
    int32_t   n, clusters;
    uint32_t  rank, phase;

    clusters = gridDim.x / CLUSTER;

    for (phase = 0, n = t->i; n < t->total; phase ^= 1) {
        dsa_mbar_wait(&s->consumed, phase);

        n = atomicAdd(g->counter, 1) + clusters;

#pragma unroll
        for (rank = 0; rank < CLUSTER; rank++) {
            dsa_cluster_send(&s->next, n, &s->drawn, rank);
        }
    }

    if (t->i >= t->total) {
        n = atomicAdd(g->counter, 1) + clusters;
    }

    /*
     * Each cluster draws one number too many, so the last draw is known: it
     * resets the counter.
     */

    if (n == max(t->total, clusters) + clusters - 1) {
        *g->counter = 0;
    }
}


/* Called once in each tile by a warp that is ready for the next one. */

template <int CLUSTER, typename S>
static __device__ __forceinline__ void
dsa_moe_ready(S *s)
{
    if (CLUSTER > 1 && threadIdx.x % 32 == 0) {
        dsa_mbar_arrive_cluster(&s->consumed, 0);
    }
}


/* Moves a warp to its next tile. */

template <int CLUSTER, typename S>
static __device__ __forceinline__ void
dsa_moe_next(dsa_moe_walk_t *t, S *s)
{
    if (CLUSTER == 1) {
        t->i += gridDim.x;
        return;
    }

    dsa_mbar_wait_cluster(&s->drawn, t->phase);
    t->i = s->next;
    t->phase ^= 1;
    __syncwarp();
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


#endif /* _DSA_MOE_TILES_CUH_INCLUDED_ */
