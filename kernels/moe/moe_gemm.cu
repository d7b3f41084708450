
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "moe_load.cuh"
#include "moe_multiply.cuh"


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
