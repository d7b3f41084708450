
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "moe_int4.cuh"
#include "moe_store.cuh"


/*
 * The experts' products with INT4 weights and e4m3 rows.
 *
 * As in the decode tiles of moe_gemm.cu, a block of threads multiplies output
 * features by a tile of an expert's rows, which are the second operand of
 * wgmma.  One thread fills a ring of stages of 128 columns: weights, rows, and
 * the scales of both.  Warpgroups multiply, 64 features each.  The weights are
 * the first operand and come from registers: each lane reads 16 bytes of two
 * features, and makes 64 e4m3 numbers of them.  The products of a stage are
 * multiplied by the scales and added to the sums.
 *
 * There are three instances:
 *
 *     - Four warpgroups and up to 64 rows.  While the tensor cores multiply for
 *       one of them, the others unpack and add.  The rows of a tile come from
 *       the L2 once for 256 features; 64 rows are as many bytes as the weights
 *       of 128 features.
 *     - Two warpgroups and up to 64 rows, if 256 does not divide the number of
 *       features, or if there would be fewer tiles of 256 features than
 *       multiprocessors.
 *     - Two warpgroups and up to 96 rows, whose sums need the registers of
 *       four.
 *
 * Two warpgroups unpack a stage while the tensor cores have the one before.
 * The order of the sums is the same in all instances and sizes of tiles, so a
 * row's bits do not depend on the rows beside it.
 */


/*
 * Makes the operand of the four products of a stage from the 16 bytes of
 * feature lane / 4 and those of the feature 8 below.  z = 2 |q| - (q < 0), so
 * z + (q < 0) is the e4m3 code of |q| / 256, and bit 7 is the sign: both are
 * one multiplication of the lowest bit by 129.
 */

static __device__ __forceinline__ void
dsa_int4_unpack(uint32_t (*a)[4], const uint8_t *p)
{
    int32_t   s, h;
    uint32_t  v, word[2][4];

    *(uint4 *) word[0] = *(const uint4 *) p;
    *(uint4 *) word[1] = *(const uint4 *) (p + DSA_INT4_CHUNK);

#pragma unroll
    for (s = 0; s < 4; s++) {
#pragma unroll
        for (h = 0; h < 2; h++) {
            v = word[h][s];
            a[s][h] = (v & 0x01010101) * 129 + (v & 0x0f0f0f0f);
            v >>= 4;
            a[s][h + 2] = (v & 0x01010101) * 129 + (v & 0x0f0f0f0f);
        }
    }
}


/* The operands are in use until the products have ended. */

static __device__ __forceinline__ void
dsa_int4_keep(uint32_t (*a)[4])
{
    int32_t  s, i;

#pragma unroll
    for (s = 0; s < 4; s++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            asm volatile ("" : "+r"(a[s][i]) :: "memory");
        }
    }
}


/* Returns a lane's part of the weights of a stage. */

template <typename S>
static __device__ __forceinline__ const uint8_t *
dsa_int4_part(const S *s, uint32_t stage, uint32_t group)
{
    return s->w[stage] + (group * 4 + threadIdx.x % DSA_MOE_GROUP / 32) * 2
                         * DSA_INT4_CHUNK
           + threadIdx.x % 32 * 16;
}


/* Starts the products of a stage: acc [64, N] = its weights . its rows. */

template <int N, typename S>
static __device__ __forceinline__ void
dsa_int4_start(float *acc, S *s, uint32_t (*a)[4], uint32_t stage)
{
    int32_t   i;
    uint64_t  b;

    b = dsa_wgmma_desc(dsa_smem(s->x[stage]), 1, 16, 1024);

    dsa_wgmma_keep<N>(acc);
    dsa_wgmma_fence();

#pragma unroll
    for (i = 0; i < 4; i++) {
        dsa_wgmma_regs<N>(acc, a[i], b + 2 * i, i > 0);
    }

    dsa_wgmma_commit();
}


/* Adds the products of a stage times their scales, and releases it. */

template <int N, typename S>
static __device__ __forceinline__ void
dsa_int4_add(float *sum, const float *acc, S *s, uint32_t stage,
    uint32_t group)
{
    float          w[2];
    float2         x;
    int32_t        i;
    uint32_t       row;
    const float   *scale;

    row = group * 64 + threadIdx.x % DSA_MOE_GROUP / 4 / 8 * 16
          + threadIdx.x % 32 / 4;
    w[0] = dsa_bf16_float(s->w_scale[stage][row]) * DSA_INT4_UNIT;
    w[1] = dsa_bf16_float(s->w_scale[stage][row + 8]) * DSA_INT4_UNIT;
    scale = s->x_scale[stage] + threadIdx.x % 4 * 2;

#pragma unroll
    for (i = 0; i < N / 8; i++) {
        x = *(const float2 *) (scale + i * 8);

        sum[4 * i] = fmaf(acc[4 * i], x.x * w[0], sum[4 * i]);
        sum[4 * i + 1] = fmaf(acc[4 * i + 1], x.y * w[0], sum[4 * i + 1]);
        sum[4 * i + 2] = fmaf(acc[4 * i + 2], x.x * w[1], sum[4 * i + 2]);
        sum[4 * i + 3] = fmaf(acc[4 * i + 3], x.y * w[1], sum[4 * i + 3]);
    }

    __syncwarp();

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(&s->empty[stage]);
    }
}


/*
 * Adds DSA_INT4_RUN stages from ring[0] on, whose first one has the operands
 * a[0], and leaves the operands of the stage behind them there.  That stage may
 * be one of the next tile, or the end, whose operands are not used.  While the
 * tensor cores have a stage, the operands of the next one are made, and the
 * products of the one before are added.  No product is in flight at the
 * beginning and at the end, because the compiler would wait for it there.
 */

template <int N, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_int4_run(float *sum, S *s, uint32_t (*a)[4][4], uint32_t *ring,
    uint32_t group)
{
    float     acc[2][N / 2];
    int32_t   j;
    uint32_t  stage;

    static_assert(DSA_INT4_RUN % 2 == 0, "the last operands are in a[0]");

    dsa_int4_start<N>(acc[0], s, a[0], ring[0]);

#pragma unroll
    for (j = 0; j < DSA_INT4_RUN; j++) {
        stage = ring[0];
        dsa_moe_turn<STAGES>(ring);

        dsa_mbar_wait(&s->full[ring[0]], ring[1]);
        dsa_int4_unpack(a[(j + 1) % 2], dsa_int4_part(s, ring[0], group));

        dsa_wgmma_wait<0>();
        dsa_wgmma_keep<N>(acc[j % 2]);
        dsa_int4_keep(a[j % 2]);

        if (j + 1 < DSA_INT4_RUN) {
            dsa_int4_start<N>(acc[(j + 1) % 2], s, a[(j + 1) % 2], ring[0]);
        }

        dsa_int4_add<N>(sum, acc[j % 2], s, stage, group);
    }
}


/* The same for one stage, without overlap in a warpgroup. */

template <int N, int STAGES, typename S>
static __device__ __forceinline__ void
dsa_int4_one(float *sum, S *s, uint32_t (*a)[4], uint32_t *ring,
    uint32_t group)
{
    float  acc[N / 2];

    dsa_int4_start<N>(acc, s, a, ring[0]);

    dsa_wgmma_wait<0>();
    dsa_wgmma_keep<N>(acc);
    dsa_int4_keep(a);

    dsa_int4_add<N>(sum, acc, s, ring[0], group);

    dsa_moe_turn<STAGES>(ring);
    dsa_mbar_wait(&s->full[ring[0]], ring[1]);
    dsa_int4_unpack(a, dsa_int4_part(s, ring[0], group));
}


/* Computes a warpgroup's 64 features of a tile of N rows. */

template <int N, int STAGES, int GROUPS, typename S>
static __device__ __forceinline__ void
dsa_int4_multiply(S *s, const dsa_moe_gemm_t *g, const dsa_moe_tile_t *t,
    uint32_t (*a)[4][4], uint32_t *ring, uint32_t group)
{
    float     sum[N / 2];
    int32_t   i;
    uint32_t  k;

#pragma unroll
    for (i = 0; i < N / 2; i++) {
        sum[i] = 0;
    }

    k = 0;

    if constexpr (GROUPS == 2) {
        for ( /* void */ ; k + DSA_INT4_RUN <= g->blocks; k += DSA_INT4_RUN) {
            dsa_int4_run<N, STAGES>(sum, s, a, ring, group);
        }
    }

    for ( /* void */ ; k < g->blocks; k++) {
        dsa_int4_one<N, STAGES>(sum, s, a[0], ring, group);
    }

    dsa_moe_store_few<N>(s, g, t, sum, group);
}


/* Runs in the warpgroups that multiply: computes tiles until the last one. */

template <int N_MAX, int STAGES, int GROUPS, typename S>
static __device__ __forceinline__ void
dsa_int4_compute(S *s, const dsa_moe_gemm_t *g, uint32_t group)
{
    uint32_t         n, ring[2], a[2][4][4];
    dsa_moe_tile_t   tile;

    ring[0] = 0;
    ring[1] = 0;

    dsa_mbar_wait(&s->full[0], 0);
    dsa_int4_unpack(a[0], dsa_int4_part(s, 0, group));

    for (n = 0; /* void */ ; n = n + 1 == STAGES ? 0 : n + 1) {
        tile = s->tile[n];

        if (tile.size == 0) {
            break;
        }

        if (tile.size <= 8) {
            dsa_int4_multiply<8, STAGES, GROUPS>(s, g, &tile, a, ring, group);

        } else if (tile.size <= 16) {
            dsa_int4_multiply<16, STAGES, GROUPS>(s, g, &tile, a, ring, group);

        } else if (tile.size <= 32) {
            dsa_int4_multiply<32, STAGES, GROUPS>(s, g, &tile, a, ring, group);

        } else if (tile.size <= 48) {
            dsa_int4_multiply<48, STAGES, GROUPS>(s, g, &tile, a, ring, group);

        } else if (tile.size <= 64) {
            dsa_int4_multiply<64, STAGES, GROUPS>(s, g, &tile, a, ring, group);

        } else if constexpr (N_MAX > DSA_INT4_FEW) {
            dsa_int4_multiply<96, STAGES, GROUPS>(s, g, &tile, a, ring, group);
        }
    }
}


/*
 * Returns the tensor map of the rows of a tile, and sets size to the number of
 * rows that its instruction multiplies.
 */

static __device__ __forceinline__ const CUtensorMap *
dsa_int4_rows(const dsa_int4_gemm_t *g, int32_t *size)
{
    if (*size <= DSA_INT4_FEW) {
        return &g->moe.x[*size / 16];
    }

    *size = DSA_INT4_MANY;

    return &g->x_many;
}


/* Runs in one warp: starts the copies of a stage, and of its scales. */

template <int STAGES, int GROUPS, typename S>
static __device__ __forceinline__ void
dsa_int4_load(S *s, const dsa_int4_gemm_t *g, dsa_moe_walk_t t, int32_t parts)
{
    int32_t             size;
    uint32_t            h, k, n, bytes, stage, phase;
    const float        *x_scale;
    const uint16_t     *w_scale;
    const CUtensorMap  *map;

    stage = 0;
    phase = 0;
    n = 0;

    for ( ; t.i < t.total; t.i += gridDim.x) {
        dsa_moe_find<1>(&t, s, &g->moe, parts, 0);
        t.tile.out *= GROUPS * 64 / DSA_MOE_OUT;

        if (threadIdx.x % 32 == 0) {
            size = t.tile.size;
            map = dsa_int4_rows(g, &size);

            /* rows of padding may be beyond the last scale */

            bytes = min(size, (int32_t) g->room - t.tile.place)
                    * (uint32_t) sizeof(float);

            x_scale = g->moe.x_scale + t.tile.place;
            w_scale = g->scale + ((size_t) t.e * g->moe.rows + t.tile.out)
                                 * g->moe.blocks;

            for (k = 0; k < g->moe.blocks; k++) {
                dsa_mbar_wait(&s->empty[stage], phase ^ 1);

                /* see dsa_moe_load() */

                if (k == 0) {
                    s->tile[n] = t.tile;
                }

                dsa_mbar_arrive_expect(&s->full[stage],
                                       sizeof(s->w[0]) + sizeof(s->w_scale[0])
                                       + size * DSA_MOE_K + bytes);

                dsa_tma_load_3d(s->w[stage], &g->moe.w, &s->full[stage],
                                k * (DSA_INT4_CHUNK / 4), t.tile.out / 8, t.e);

#pragma unroll
                for (h = 0; h < GROUPS * 64 / DSA_MOE_OUT; h++) {
                    dsa_bulk_load(s->w_scale[stage] + h * DSA_MOE_OUT,
                                  w_scale + (h * g->moe.blocks + k)
                                            * DSA_MOE_OUT,
                                  DSA_MOE_OUT * sizeof(uint16_t),
                                  &s->full[stage]);
                }

                dsa_tma_load_2d(s->x[stage], map, &s->full[stage],
                                k * DSA_MOE_K, t.tile.place);
                dsa_bulk_load(s->x_scale[stage], x_scale + k * g->moe.ld,
                              bytes, &s->full[stage]);

                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }

            n = n + 1 == STAGES ? 0 : n + 1;
        }

        __syncwarp();
    }

    if (g->moe.dependent) {
        asm volatile ("griddepcontrol.launch_dependents;" ::: "memory");
    }

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_wait(&s->empty[stage], phase ^ 1);
        s->tile[n].size = 0;
        dsa_mbar_arrive(&s->full[stage]);
    }
}


template <int N_MAX, int STAGES, int GROUPS>
static __global__ void __launch_bounds__((GROUPS + 1) * DSA_MOE_GROUP, 1)
dsa_int4_kernel(const __grid_constant__ dsa_int4_gemm_t g)
{
    typedef dsa_int4_smem<N_MAX, STAGES, GROUPS>  smem_t;

    smem_t          *s;
    int32_t          parts;
    uint32_t         i, warp, group;
    dsa_moe_walk_t   t;

    extern __shared__ __align__(1024) uint8_t  shared[];

    s = (smem_t *) shared;
    parts = g.moe.rows / (GROUPS * 64);

    if (threadIdx.x == 0) {
        dsa_tma_prefetch(&g.moe.w);

        for (i = 0; i < STAGES; i++) {
            dsa_mbar_init(&s->full[i], 1);
            dsa_mbar_init(&s->empty[i], GROUPS * 4);
        }

        dsa_mbar_fence_init();
    }

    /* the plan and the rows may be written by the previous kernel */

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    dsa_moe_list<N_MAX>(s, &g.moe, parts);

    t.i = blockIdx.x;
    t.total = s->first[g.moe.experts];
    t.e = 0;

    warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    group = warp / 4;

    if (group == GROUPS) {
        dsa_regs_less<GROUPS == 2 ? 40 : 32>();

        if (warp == GROUPS * 4) {
            dsa_int4_load<STAGES, GROUPS>(s, &g, t, parts);
        }

    } else {
        dsa_regs_more<GROUPS == 2 ? 232 : 112>();

        dsa_int4_compute<N_MAX, STAGES, GROUPS>(s, &g.moe, group);
    }
}


template <int N_MAX, int STAGES, int GROUPS>
static int
dsa_int4_launch(const dsa_cuda_state_t *state, const dsa_int4_gemm_t *g,
    dsa_stream_t stream)
{
    cudaLaunchConfig_t   config;
    cudaLaunchAttribute  attribute;

    config.gridDim = dim3(state->processors);
    config.blockDim = dim3((GROUPS + 1) * DSA_MOE_GROUP);
    config.dynamicSmemBytes = sizeof(dsa_int4_smem<N_MAX, STAGES, GROUPS>);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = g->moe.dependent ? 1 : 0;

    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;

    return cudaLaunchKernelEx(&config,
                              dsa_int4_kernel<N_MAX, STAGES, GROUPS>, *g);
}


template <int N_MAX, int STAGES, int GROUPS>
static int
dsa_int4_permit(void)
{
    static_assert(sizeof(dsa_int4_smem<N_MAX, STAGES, GROUPS>) <= 227 * 1024,
                  "a block has 227 KB of shared memory");

    return dsa_setup_shared(dsa_int4_kernel<N_MAX, STAGES, GROUPS>,
                            sizeof(dsa_int4_smem<N_MAX, STAGES, GROUPS>));
}


int
dsa_moe_int4_setup(void)
{
    int  rc;

    rc = dsa_int4_permit<DSA_INT4_FEW, DSA_INT4_STAGES_FEW, 2>();
    rc = rc != 0 ? rc : dsa_int4_permit<DSA_INT4_FEW, DSA_INT4_STAGES_WIDE,
                                        4>();

    return rc != 0 ? rc : dsa_int4_permit<DSA_INT4_MANY,
                                          DSA_INT4_STAGES_MANY, 2>();
}


/*
 * Returns the number of warpgroups that multiply.  At most as many experts as
 * there are rows have one.  On an H200 64 and 128 tiles of 256 features took
 * 1.4 and 1.0 times as long as twice as many of 128 (7168 columns).
 */

static uint32_t
dsa_int4_groups(const dsa_cuda_state_t *state, const dsa_int4_weight_t *w,
    uint32_t experts, uint32_t rows)
{
    uint32_t  used;

    used = rows < experts ? rows : experts;

    return rows / experts <= DSA_INT4_FEW && w->rows % 256 == 0
           && used * (w->rows / 256) >= state->processors ? 4 : 2;
}


/* Makes the tensor maps of w and of x [places, cols]. */

static int
dsa_int4_maps(const dsa_cuda_state_t *state, dsa_int4_gemm_t *g,
    const dsa_fp8_rows_t *x, const dsa_int4_weight_t *w, uint32_t places,
    uint32_t groups)
{
    int       rc;
    uint32_t  i, box[3];
    uint64_t  dim[3], stride[2];

    static const uint32_t  size[] = { 8, 16, 32, 48, 64, DSA_INT4_MANY };

    dim[0] = (uint64_t) g->moe.blocks * DSA_INT4_CHUNK / 4;
    dim[1] = w->rows / 8;
    dim[2] = g->moe.experts;
    stride[0] = dim[0] * 4;
    stride[1] = stride[0] * dim[1];
    box[0] = DSA_INT4_CHUNK / 4;
    box[1] = groups * 64 / 8;
    box[2] = 1;

    rc = dsa_cuda_tensor_map(state, &g->moe.w, CU_TENSOR_MAP_DATA_TYPE_INT32,
                             3, w->q, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_NONE);

    dim[0] = w->cols;
    dim[1] = places;
    stride[0] = w->cols;
    box[0] = DSA_MOE_K;

    for (i = 0; i < 6 && rc == cudaSuccess; i++) {
        box[1] = size[i];
        rc = dsa_cuda_tensor_map(state, i < 5 ? &g->moe.x[i] : &g->x_many,
                                 CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, x->q, dim,
                                 stride, box, CU_TENSOR_MAP_SWIZZLE_128B);
    }

    return rc;
}


extern "C" int
dsa_cuda_moe_gemm_int4(const dsa_cuda_state_t *state, dsa_bf16_t *y,
    const dsa_fp8_rows_t *x, const dsa_int4_weight_t *w,
    const dsa_moe_plan_t *plan, uint32_t experts, uint32_t rows,
    dsa_stream_t stream)
{
    int              rc;
    uint32_t         groups;
    dsa_int4_gemm_t  g;

    if (experts == 0 || experts > DSA_CUDA_EXPERTS || w->rows == 0
        || w->rows % DSA_MOE_OUT != 0 || w->cols == 0
        || w->cols % DSA_MOE_K != 0 || w->cols > DSA_CUDA_INT4_COLS
        || plan->align % 8 != 0 || x->ld % 4 != 0 || x->ld < plan->places
        || x->ld > INT32_MAX || (uintptr_t) x->scale % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0 || plan->places == 0) {
        return cudaSuccess;
    }

    g.moe.x_scale = x->scale;
    g.moe.w_scale = NULL;
    g.moe.offset = plan->offset;
    g.moe.count = plan->count;
    g.moe.y = y;
    g.moe.counter = NULL;
    g.moe.ld = x->ld;
    g.moe.experts = experts;
    g.moe.rows = w->rows;
    g.moe.blocks = w->cols / DSA_MOE_K;
    g.moe.dependent = rows <= DSA_MOE_DEPENDENT;
    g.scale = w->scale;
    g.room = (uint32_t) x->ld;

    groups = dsa_int4_groups(state, w, experts, rows);
    rc = dsa_int4_maps(state, &g, x, w, plan->places, groups);

    if (rc != cudaSuccess) {
        return rc;
    }

    if (rows / experts > DSA_INT4_FEW) {
        return dsa_int4_launch<DSA_INT4_MANY, DSA_INT4_STAGES_MANY, 2>(
                                                          state, &g, stream);
    }

    if (groups == 4) {
        return dsa_int4_launch<DSA_INT4_FEW, DSA_INT4_STAGES_WIDE, 4>(
                                                          state, &g, stream);
    }

    return dsa_int4_launch<DSA_INT4_FEW, DSA_INT4_STAGES_FEW, 2>(state, &g,
                                                                 stream);
}
