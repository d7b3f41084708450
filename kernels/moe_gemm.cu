
/*
 * Copyright (C) The nginx-dsa authors
 */


extern "C" {
#include "kernels/moe.h"
}

#include "kernels/hopper.cuh"


/*
 * The experts' products y = x . w[e]^T, both operands e4m3 in blocks of 128 of
 * K with float32 scales.
 *
 * The weights are the first operand of wgmma (64 out features an instruction)
 * and an expert's rows the second, whose size goes in steps of 8: so a tile is
 * as wide as an expert's rows ask, and few rows cost few products.  A block
 * multiplies a tile of WAVES * 128 out features by up to N_MAX rows: a warp
 * of the copy engine fills a ring of K blocks, two warpgroups multiply.  The
 * tensor cores add up 128 of K with fewer bits than float32 has, so every
 * block of K is then added to float32 sums, times the scale of the row and
 * that of the weight's block.  This is the order of the sums in each tile
 * size: a row's bits do not depend on which rows come with it.
 *
 * Prefill (WAVES 2, CLUSTER 2): 256 x 128 tiles, so that two warpgroups take
 * turns at the tensor cores, one adding to its sums while the other
 * multiplies; two blocks of a cluster work at the same rows and each loads
 * half of them for both, without which the L2 would be the limit.
 *
 * Decode (WAVES 1, CLUSTER 1): 128 out features and a ring long enough to
 * keep HBM busy.
 *
 * All blocks walk the same list of tiles, which they find from the plan's
 * counts: experts, then out features, then an expert's rows, so that those
 * who need a weight need it at the same time.
 */

#define DSA_MOE_EXPERTS     512
#define DSA_MOE_K           128         /* bytes of K in a stage */
#define DSA_MOE_GROUP       128         /* threads of a warpgroup */
#define DSA_MOE_THREADS     (3 * DSA_MOE_GROUP)
#define DSA_MOE_SIZES       9           /* of rows: 8, 16, 32, 48 .. 128 */

/* scales in sixteens that are read while wgmma runs */
#define DSA_MOE_AHEAD       2

/* rows for each expert from which on the tiles of prefill are faster */
#define DSA_MOE_PREFILL     48


typedef struct {
    CUtensorMap         w;              /* cols, out features, experts */
    CUtensorMap         x[DSA_MOE_SIZES];   /* cols, places; boxes by size */
    const float        *x_scale;
    const float        *w_scale;
    const int32_t      *offset;
    const int32_t      *count;
    uint16_t           *y;
    uint32_t            experts;
    uint32_t            rows;           /* out features */
    uint32_t            blocks;         /* of K */
    size_t              ld;             /* of x_scale */
} dsa_moe_gemm_t;


typedef struct {
    int32_t             out;            /* first feature of this block */
    int32_t             place;          /* first row */
    int32_t             n;              /* rows */
    int32_t             size;           /* n or more: of the instruction */
} dsa_moe_tile_t;


/* Where a warp stands in the list of tiles. */

typedef struct {
    int32_t             i;
    int32_t             total;
    int32_t             e;              /* expert */
    dsa_moe_tile_t      tile;
} dsa_moe_walk_t;


template <int WAVES, int CLUSTER, int N_MAX, int STAGES>
struct dsa_moe_smem {
    uint8_t             w[STAGES][WAVES * 128 * DSA_MOE_K];
    uint8_t             x[STAGES][N_MAX * DSA_MOE_K];
    /* of a row times those of the weight, as dsa_moe_scale() orders them */
    float               scale[STAGES][WAVES][N_MAX];

    /* of a warpgroup, rows apart by an odd number of 16 bytes: no two of the
       8 rows that stmatrix writes at a time meet in a bank */
    uint16_t            y[2][N_MAX][WAVES * 64 + 8];

    uint64_t            full[STAGES];
    uint64_t            empty[STAGES];
    dsa_moe_tile_t      tile[STAGES];   /* the last one has no rows */
    int32_t             first[DSA_MOE_EXPERTS + 1];
    int32_t             offset[DSA_MOE_EXPERTS];
    int32_t             count[DSA_MOE_EXPERTS];
    int32_t             sum[DSA_MOE_THREADS / 32];
};


/* d [64, N] = or += a [64, 32] . b [N, 32]^T */

template <int N>
static __device__ __forceinline__ void dsa_moe_wgmma(float *d, uint64_t a,
    uint64_t b, int add);

#define DSA_MOE_D4(i)                                                        \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define DSA_MOE_D8(i)   DSA_MOE_D4(i), DSA_MOE_D4(i + 4)
#define DSA_MOE_D16(i)  DSA_MOE_D8(i), DSA_MOE_D8(i + 8)

#define DSA_MOE_R0   "%0,%1,%2,%3"
#define DSA_MOE_R1   DSA_MOE_R0 ",%4,%5,%6,%7"
#define DSA_MOE_R2   DSA_MOE_R1 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define DSA_MOE_R3   DSA_MOE_R2 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define DSA_MOE_R4   DSA_MOE_R3 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define DSA_MOE_R5   DSA_MOE_R4 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define DSA_MOE_R6   DSA_MOE_R5 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define DSA_MOE_R7   DSA_MOE_R6 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define DSA_MOE_R8   DSA_MOE_R7 ",%56,%57,%58,%59,%60,%61,%62,%63"

#define DSA_MOE_WGMMA(N, R, A, B, P, ...)                                    \
                                                                             \
template <>                                                                  \
__device__ __forceinline__ void                                              \
dsa_moe_wgmma<N>(float *d, uint64_t a, uint64_t b, int add)                  \
{                                                                            \
    asm volatile ("{\n"                                                      \
                  ".reg .pred  p;\n"                                         \
                  "setp.ne.b32 p, %" P ", 0;\n"                              \
                  "wgmma.mma_async.sync.aligned.m64n" #N "k32"               \
                  ".f32.e4m3.e4m3 {" R "}, %" A ", %" B ", p, 1, 1;\n"       \
                  "}"                                                        \
                  : __VA_ARGS__                                              \
                  : "l"(a), "l"(b), "r"(add));                               \
}

DSA_MOE_WGMMA(8, DSA_MOE_R0, "4", "5", "6", DSA_MOE_D4(0))
DSA_MOE_WGMMA(16, DSA_MOE_R1, "8", "9", "10", DSA_MOE_D8(0))
DSA_MOE_WGMMA(32, DSA_MOE_R2, "16", "17", "18", DSA_MOE_D16(0))
DSA_MOE_WGMMA(48, DSA_MOE_R3, "24", "25", "26", DSA_MOE_D16(0),
              DSA_MOE_D8(16))
DSA_MOE_WGMMA(64, DSA_MOE_R4, "32", "33", "34", DSA_MOE_D16(0),
              DSA_MOE_D16(16))
DSA_MOE_WGMMA(80, DSA_MOE_R5, "40", "41", "42", DSA_MOE_D16(0),
              DSA_MOE_D16(16), DSA_MOE_D8(32))
DSA_MOE_WGMMA(96, DSA_MOE_R6, "48", "49", "50", DSA_MOE_D16(0),
              DSA_MOE_D16(16), DSA_MOE_D16(32))
DSA_MOE_WGMMA(112, DSA_MOE_R7, "56", "57", "58", DSA_MOE_D16(0),
              DSA_MOE_D16(16), DSA_MOE_D16(32), DSA_MOE_D8(48))
DSA_MOE_WGMMA(128, DSA_MOE_R8, "64", "65", "66", DSA_MOE_D16(0),
              DSA_MOE_D16(16), DSA_MOE_D16(32), DSA_MOE_D16(48))


/*
 * The rows of a tile where count of them are cut into n tiles: even parts, as
 * many as an instruction takes.
 */

template <int CLUSTER>
static __device__ __forceinline__ int32_t
dsa_moe_size(int32_t count, int32_t n)
{
    int32_t  size;

    size = (count + n - 1) / n;

    return CLUSTER == 1 && size <= 8 ? 8 : (size + 15) & ~15;
}


/*
 * The list of tiles: first[e] is the first of expert e, of parts (of the out
 * features) tiles for each part of its rows.  A thread counts two experts.
 */

template <int N_MAX, class S>
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


/* The tile at t->i; t->e is at most its expert.  All of a warp. */

template <int WAVES, int CLUSTER, class S>
static __device__ __forceinline__ void
dsa_moe_find(dsa_moe_walk_t *t, const S *s, const dsa_moe_gemm_t *g,
    int32_t parts, uint32_t rank)
{
    int32_t  e, n, i, cut, count;

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
    cut = (s->first[t->e + 1] - s->first[t->e]) / parts;
    count = s->count[t->e];

    t->tile.size = dsa_moe_size<CLUSTER>(count, cut);
    t->tile.out = (i / cut * CLUSTER + rank) * WAVES * 128;
    i = i % cut * t->tile.size;
    t->tile.place = s->offset[t->e] + i;
    t->tile.n = min(t->tile.size, count - i);
}


/* A warp: starts the copies of weights and rows. */

template <int WAVES, int CLUSTER, int STAGES, class S>
static __device__ __forceinline__ void
dsa_moe_load(S *s, const dsa_moe_gemm_t *g, dsa_moe_walk_t t, int32_t parts,
    uint32_t rank)
{
    int32_t             half;
    uint32_t            k, n, bytes, stage, phase;
    const CUtensorMap  *map;

    stage = 0;
    phase = 0;
    n = 0;

    for ( ; t.i < t.total; t.i += gridDim.x / CLUSTER) {
        dsa_moe_find<WAVES, CLUSTER>(&t, s, g, parts, rank);

        if (threadIdx.x % 32 == 0) {
            map = &g->x[t.tile.size / 16];
            half = t.tile.size / CLUSTER * rank;
            bytes = (WAVES * 128 + t.tile.size) * DSA_MOE_K;

            for (k = 0; k < g->blocks; k++) {
                dsa_mbar_wait(&s->empty[stage], phase ^ 1);

                if (k == 0) {
                    s->tile[n] = t.tile;
                }

                dsa_mbar_arrive_expect(&s->full[stage], bytes);

                dsa_tma_load_3d(s->w[stage], &g->w, &s->full[stage],
                                k * DSA_MOE_K, t.tile.out, t.e);

                if (CLUSTER == 1) {
                    dsa_tma_load_2d(s->x[stage], map, &s->full[stage],
                                    k * DSA_MOE_K, t.tile.place);

                } else {
                    dsa_tma_load_2d_cluster(s->x[stage] + half * DSA_MOE_K,
                                            map, &s->full[stage],
                                            k * DSA_MOE_K,
                                            t.tile.place + half,
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

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_wait(&s->empty[stage], phase ^ 1);
        s->tile[n].size = 0;
        dsa_mbar_arrive(&s->full[stage]);
    }
}


/* Of 4 rows in block k of K; row is this lane's first. */

static __device__ __forceinline__ float4
dsa_moe_row_scale(const dsa_moe_walk_t *t, const dsa_moe_gemm_t *g,
    int32_t row, uint32_t k)
{
    if (row >= t->tile.n || k >= g->blocks) {
        return make_float4(0, 0, 0, 0);
    }

    return __ldg((const float4 *) (g->x_scale + k * g->ld + t->tile.place
                                   + row));
}


/* Of 32 blocks of K of 128 features, each a lane's. */

static __device__ __forceinline__ float
dsa_moe_weight_scale(const dsa_moe_walk_t *t, const dsa_moe_gemm_t *g,
    int32_t out, uint32_t k)
{
    k += threadIdx.x % 32;
    out += t->tile.out;

    if (k >= g->blocks || out >= (int32_t) g->rows) {
        return 0;
    }

    return __ldg(g->w_scale + ((size_t) t->e * (g->rows / 128) + out / 128)
                              * g->blocks + k);
}


/*
 * A warp: the products of both scales for the ring, read some blocks ahead.
 * Of 16 rows lane q of four that hold an accumulator's row needs 2q, 2q + 1,
 * 2q + 8 and 2q + 9, which stand together.
 */

template <int WAVES, int CLUSTER, int STAGES, class S>
static __device__ __forceinline__ void
dsa_moe_scale(S *s, const dsa_moe_gemm_t *g, dsa_moe_walk_t t, int32_t parts,
    uint32_t rank)
{
    enum { AHEAD = 4 };

    float     ws, w[WAVES][2], *to;
    float4    v[AHEAD];
    int32_t   i, j, lane, row, at;
    uint32_t  k, stage, phase;

    stage = 0;
    phase = 0;
    lane = threadIdx.x % 32;
    row = 4 * lane;
    at = lane / 4 * 16 + lane % 2 * 8 + lane % 4 / 2 * 2;

    for ( ; t.i < t.total; t.i += gridDim.x / CLUSTER) {
        dsa_moe_find<WAVES, CLUSTER>(&t, s, g, parts, rank);

#pragma unroll
        for (i = 0; i < AHEAD; i++) {
            v[i] = dsa_moe_row_scale(&t, g, row, i);
        }

#pragma unroll
        for (j = 0; j < WAVES; j++) {
            w[j][1] = dsa_moe_weight_scale(&t, g, j * 128, 0);
        }

        for (k = 0; k < g->blocks; /* void */) {

            if (k % 32 == 0) {
#pragma unroll
                for (j = 0; j < WAVES; j++) {
                    w[j][0] = w[j][1];
                    w[j][1] = dsa_moe_weight_scale(&t, g, j * 128, k + 32);
                }
            }

#pragma unroll
            for (i = 0; i < AHEAD; i++, k++) {

                if (k >= g->blocks) {
                    break;
                }

                dsa_mbar_wait(&s->empty[stage], phase ^ 1);

#pragma unroll
                for (j = 0; j < WAVES; j++) {
                    ws = __shfl_sync(0xffffffff, w[j][0], k % 32);
                    to = &s->scale[stage][j][at];

                    if (row < t.tile.size) {
                        *(float2 *) to = make_float2(v[i].x * ws,
                                                     v[i].y * ws);
                        *(float2 *) (to + 4) = make_float2(v[i].z * ws,
                                                           v[i].w * ws);
                    }
                }

                __syncwarp();

                if (lane == 0) {
                    dsa_mbar_arrive(&s->full[stage]);
                }

                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }

                v[i] = dsa_moe_row_scale(&t, g, row, k + AHEAD);
            }
        }
    }

    dsa_mbar_wait(&s->empty[stage], phase ^ 1);

    if (lane == 0) {
        dsa_mbar_arrive(&s->full[stage]);
    }
}


/* A warpgroup's part of a tile of N rows. */

template <int N, int WAVES, int CLUSTER, int STAGES, class S>
static __device__ __forceinline__ void
dsa_moe_multiply(S *s, const dsa_moe_gemm_t *g, const dsa_moe_tile_t *t,
    uint32_t *ring, uint32_t group)
{
    enum {
        BLOCKS = (N + 15) / 16,
        AHEAD = BLOCKS < DSA_MOE_AHEAD ? BLOCKS : DSA_MOE_AHEAD,
        LANES = WAVES * 8               /* of 16 bytes in a row of y */
    };

    float          acc[N / 2], sum[WAVES][N / 2];
    float4         v, ahead[AHEAD];
    int32_t        i, j, out;
    uint32_t       k, lane, warp, stage, phase, a, b, p[4];
    uint64_t       da, db;
    uint16_t      *y;
    const float4  *scale;

    lane = threadIdx.x % 32;
    warp = threadIdx.x % DSA_MOE_GROUP / 32;
    stage = ring[0];
    phase = ring[1];
    out = group * WAVES * 64;

#pragma unroll
    for (i = 0; i < WAVES; i++) {
#pragma unroll
        for (j = 0; j < N / 2; j++) {
            sum[i][j] = 0;
        }
    }

    for (k = 0; k < g->blocks; k++) {
        dsa_mbar_wait(&s->full[stage], phase);

        a = dsa_smem(s->w[stage]) + out * DSA_MOE_K;
        b = dsa_smem(s->x[stage]);
        db = dsa_wgmma_desc(b, 1, 16, 1024);
        scale = (const float4 *) s->scale[stage][group * (WAVES - 1)]
                + lane % 4;

#pragma unroll
        for (i = 0; i < WAVES; i++) {
            da = dsa_wgmma_desc(a + i * 64 * DSA_MOE_K, 1, 16, 1024);

#pragma unroll
            for (j = 0; j < N / 2; j++) {
                asm volatile ("" : "+f"(acc[j]) :: "memory");
            }

            dsa_wgmma_fence();
            dsa_moe_wgmma<N>(acc, da, db, 0);
            dsa_moe_wgmma<N>(acc, da + 2, db + 2, 1);
            dsa_moe_wgmma<N>(acc, da + 4, db + 4, 1);
            dsa_moe_wgmma<N>(acc, da + 6, db + 6, 1);
            dsa_wgmma_commit();

#pragma unroll
            for (j = 0; j < AHEAD; j++) {
                ahead[j] = scale[4 * j];
            }

            dsa_wgmma_wait<0>();

#pragma unroll
            for (j = 0; j < N / 2; j++) {
                asm volatile ("" : "+f"(acc[j]) :: "memory");
            }

#pragma unroll
            for (j = 0; j < BLOCKS; j++) {
                v = j < AHEAD ? ahead[j] : scale[4 * j];

#define DSA_MOE_ADD(n, f)  sum[i][n] = fmaf(acc[n], f, sum[i][n])

                DSA_MOE_ADD(8 * j, v.x);
                DSA_MOE_ADD(8 * j + 1, v.y);
                DSA_MOE_ADD(8 * j + 2, v.x);
                DSA_MOE_ADD(8 * j + 3, v.y);

                if (N > 8) {
                    DSA_MOE_ADD(8 * j + 4, v.z);
                    DSA_MOE_ADD(8 * j + 5, v.w);
                    DSA_MOE_ADD(8 * j + 6, v.z);
                    DSA_MOE_ADD(8 * j + 7, v.w);
                }
            }
        }

        __syncwarp();

        if (CLUSTER == 1) {
            if (lane == 0) {
                dsa_mbar_arrive(&s->empty[stage]);
            }

        } else if (lane < CLUSTER) {
            dsa_mbar_arrive_cluster(&s->empty[stage], lane);
        }

        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }

    ring[0] = stage;
    ring[1] = phase;

    /*
     * The sums stand as out features x rows and leave as rows x features:
     * stmatrix transposes.
     */

    dsa_bar_sync(1 + group, DSA_MOE_GROUP);

#pragma unroll
    for (i = 0; i < WAVES; i++) {
        a = dsa_smem(&s->y[group][lane % 8 + lane / 16 * 8]
                          [i * 64 + warp * 16 + lane / 8 % 2 * 8]);

#pragma unroll
        for (j = 0; j < N / 16; j++) {
            p[0] = dsa_float2_bf16(sum[i][8 * j], sum[i][8 * j + 1]);
            p[1] = dsa_float2_bf16(sum[i][8 * j + 2], sum[i][8 * j + 3]);
            p[2] = dsa_float2_bf16(sum[i][8 * j + 4], sum[i][8 * j + 5]);
            p[3] = dsa_float2_bf16(sum[i][8 * j + 6], sum[i][8 * j + 7]);

            dsa_stmatrix4_trans(a + j * 16 * sizeof(s->y[0][0]), p[0], p[1],
                                p[2], p[3]);
        }

        if (N == 8) {
            p[0] = dsa_float2_bf16(sum[i][0], sum[i][1]);
            p[1] = dsa_float2_bf16(sum[i][2], sum[i][3]);
            dsa_stmatrix2_trans(a, p[0], p[1]);
        }
    }

    dsa_bar_sync(1 + group, DSA_MOE_GROUP);

    if (t->out + out >= (int32_t) g->rows) {
        return;
    }

    i = threadIdx.x % DSA_MOE_GROUP / LANES;
    j = threadIdx.x % LANES * 8;
    y = g->y + (size_t) (t->place + i) * g->rows + t->out + out + j;

#pragma unroll 4
    for ( /* void */ ; i < t->n; i += DSA_MOE_GROUP / LANES) {
        *(uint4 *) y = *(const uint4 *) &s->y[group][i][j];
        y += (size_t) DSA_MOE_GROUP / LANES * g->rows;
    }
}


template <int WAVES, int CLUSTER, int N_MAX, int STAGES>
static __global__ void __launch_bounds__(DSA_MOE_THREADS, 1)
dsa_moe_gemm_kernel(const __grid_constant__ dsa_moe_gemm_t g)
{
    typedef dsa_moe_smem<WAVES, CLUSTER, N_MAX, STAGES>  smem_t;

    smem_t                  *s;
    int32_t                  parts;
    uint32_t                 i, n, rank, warp, group, ring[2];
    dsa_moe_tile_t           tile;
    dsa_moe_walk_t           t;
    extern __shared__ __align__(1024) uint8_t  shared[];

    s = (smem_t *) shared;
    rank = blockIdx.x % CLUSTER;
    parts = (g.rows + WAVES * 128 * CLUSTER - 1) / (WAVES * 128 * CLUSTER);

    if (threadIdx.x == 0) {
        dsa_tma_prefetch(&g.w);

        for (i = 0; i < STAGES; i++) {
            dsa_mbar_init(&s->full[i], 2);
            dsa_mbar_init(&s->empty[i], CLUSTER * 8);
        }

        dsa_mbar_fence_init();
    }

    dsa_moe_list<N_MAX>(s, &g, parts);

    if (CLUSTER > 1) {
        dsa_cluster_sync();
    }

    t.i = blockIdx.x / CLUSTER;
    t.total = s->first[g.experts];
    t.e = 0;

    warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    group = warp / 4;

    if (group == 2) {
        dsa_regs_less<40>();

        if (warp == 8) {
            dsa_moe_load<WAVES, CLUSTER, STAGES>(s, &g, t, parts, rank);

        } else if (warp == 9) {
            dsa_moe_scale<WAVES, CLUSTER, STAGES>(s, &g, t, parts, rank);
        }

    } else {
        dsa_regs_more<232>();

        ring[0] = 0;
        ring[1] = 0;

        for (n = 0; /* void */ ; n = n + 1 == STAGES ? 0 : n + 1) {
            dsa_mbar_wait(&s->full[ring[0]], ring[1]);
            tile = s->tile[n];

            if (tile.size == 0) {
                break;
            }

#define DSA_MOE_CASE(N)                                                      \
            case N:                                                          \
                if constexpr (N <= N_MAX && N >= 8 * CLUSTER) {              \
                    dsa_moe_multiply<N, WAVES, CLUSTER, STAGES>(s, &g,       \
                                                      &tile, ring, group);   \
                }                                                            \
                break;

            switch (tile.size) {
            DSA_MOE_CASE(8)
            DSA_MOE_CASE(16)
            DSA_MOE_CASE(32)
            DSA_MOE_CASE(48)
            DSA_MOE_CASE(64)
            DSA_MOE_CASE(80)
            DSA_MOE_CASE(96)
            DSA_MOE_CASE(112)
            DSA_MOE_CASE(128)
            }
        }
    }

    /* no block may leave while another one's copies or arrivals reach it */

    if (CLUSTER > 1) {
        __syncwarp();
        dsa_cluster_sync();
    }
}


template <int WAVES, int CLUSTER, int N_MAX, int STAGES>
static int
dsa_moe_gemm_launch(const dsa_moe_gemm_t *g, dsa_stream_t stream)
{
    int                  n, rc, device;
    cudaLaunchConfig_t   config;
    cudaLaunchAttribute  attribute;

    rc = cudaGetDevice(&device);

    if (rc == cudaSuccess) {
        rc = cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount,
                                    device);
    }

    if (rc != cudaSuccess) {
        return rc;
    }

    config.gridDim = dim3((uint32_t) n / CLUSTER * CLUSTER);
    config.blockDim = dim3(DSA_MOE_THREADS);
    config.dynamicSmemBytes = sizeof(dsa_moe_smem<WAVES, CLUSTER, N_MAX,
                                                  STAGES>);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;

    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = CLUSTER;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;

    rc = cudaFuncSetAttribute(dsa_moe_gemm_kernel<WAVES, CLUSTER, N_MAX,
                                                  STAGES>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int) config.dynamicSmemBytes);

    if (rc == cudaSuccess) {
        rc = cudaLaunchKernelEx(&config,
                                dsa_moe_gemm_kernel<WAVES, CLUSTER, N_MAX,
                                                    STAGES>, *g);
    }

    return rc;
}


extern "C" int
dsa_cuda_moe_gemm(dsa_bf16_t *y, const dsa_fp8_rows_t *x,
    const dsa_fp8_weight_t *w, const dsa_moe_plan_t *plan, uint32_t experts,
    uint32_t rows, dsa_stream_t stream)
{
    int             rc, prefill;
    uint32_t        i, box[3];
    uint64_t        dim[3], stride[2];
    dsa_moe_gemm_t  g;

    if (experts == 0 || experts > DSA_MOE_EXPERTS || w->rows == 0
        || w->rows % 128 != 0 || w->cols == 0 || w->cols % DSA_MOE_K != 0
        || plan->align % 8 != 0 || x->ld % 4 != 0 || x->ld < plan->places)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 || plan->places == 0) {
        return cudaSuccess;
    }

    prefill = rows / experts >= DSA_MOE_PREFILL;

    g.x_scale = x->scale;
    g.ld = x->ld;
    g.w_scale = w->scale;
    g.offset = plan->offset;
    g.count = plan->count;
    g.y = y;
    g.experts = experts;
    g.rows = w->rows;
    g.blocks = w->cols / DSA_MOE_K;

    dim[0] = w->cols;
    dim[1] = w->rows;
    dim[2] = experts;
    stride[0] = w->cols;
    stride[1] = (uint64_t) w->cols * w->rows;
    box[0] = DSA_MOE_K;
    box[1] = prefill ? 256 : 128;
    box[2] = 1;

    rc = dsa_cuda_tensor_map(&g.w, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, w->q,
                             dim, stride, box, CU_TENSOR_MAP_SWIZZLE_128B);

    dim[1] = plan->places;

    for (i = 0; i < DSA_MOE_SIZES && rc == cudaSuccess; i++) {
        box[1] = (i == 0 ? 8 : 16 * i) / (prefill && i > 0 ? 2 : 1);
        rc = dsa_cuda_tensor_map(&g.x[i], CU_TENSOR_MAP_DATA_TYPE_UINT8, 2,
                                 x->q, dim, stride, box,
                                 CU_TENSOR_MAP_SWIZZLE_128B);
    }

    if (rc != cudaSuccess) {
        return rc;
    }

    if (prefill) {
        return dsa_moe_gemm_launch<2, 2, 128, 3>(&g, stream);
    }

    return dsa_moe_gemm_launch<1, 1, 64, 8>(&g, stream);
}


extern "C" uint32_t
dsa_cuda_moe_align(uint32_t rows, uint32_t experts)
{
    return 8;
}
