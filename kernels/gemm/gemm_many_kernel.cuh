
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_GEMM_MANY_KERNEL_CUH_INCLUDED_
#define _DSA_GEMM_MANY_KERNEL_CUH_INCLUDED_


#include "kernels/core/setup.cuh"
#include "gemm_bf16_kernel.cuh"
#include "gemm_fp8_kernel.cuh"


/*
 * The kernel for many rows, its launch, and the choice of a size of tiles.
 *
 * The time of a tile is proportional to the blocks of 128 bytes of in, plus a
 * constant for its sums; a launch adds another constant.  So the time of a
 * product is
 *
 *     start + (tiles / tiles at once, rounded up) * (blocks * block + sums)
 *
 * and the size with the least time is used.
 */


template <typename T>
static __global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
dsa_many_kernel(const __grid_constant__ dsa_many_args_t a)
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

    group = __shfl_sync(0xffffffff, threadIdx.x / DSA_MANY_GROUP, 0);

    if (group == T::GROUPS) {
        if constexpr (MORE) {
            dsa_regs_less<40>();
        }

        if (threadIdx.x == T::GROUPS * DSA_MANY_GROUP) {
            dsa_many_load<T>(s, &a);
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

        if constexpr (!T::FP8) {
            dsa_bf16_multiply<T>(s, &a, group);

        } else if constexpr (T::WAVES > 1) {
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


typedef struct {
    int               (*launch)(const dsa_cuda_state_t *state,
                                const dsa_gemm_t *g, uint32_t segments,
                                cudaStream_t stream);
    int               (*setup)(void);
    uint32_t            rows, features;         /* of a cluster's tiles */
    uint32_t            cluster;
    uint32_t            blocks;                 /* of a multiprocessor */
    uint32_t            segments;               /* the most */
    uint32_t            block, sums, start;     /* ns */
} dsa_many_size_t;


template <typename T>
static int
dsa_many_launch(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream)
{
    int                  rc;
    uint32_t             box[2], most, height;
    uint64_t             dim[2], stride[1];
    dsa_many_args_t       a;
    cudaLaunchConfig_t   config;
    CUtensorMapDataType  type;
    cudaLaunchAttribute  attribute[2];

    constexpr uint32_t  ELEMENT = DSA_MANY_K / T::K;

    static_assert(T::ROWS % 4 == 0, "a tile's scales begin at 16 bytes");

    type = T::FP8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                  : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

    dim[0] = g->in;
    dim[1] = g->out;
    stride[0] = g->ld_w * ELEMENT;
    box[0] = T::K;
    box[1] = T::N;

    rc = dsa_cuda_tensor_map(state, &a.w, type, 2, g->w, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);

    height = T::CLUSTER > 1 ? T::ROWS : min(g->rows, T::ROWS);

    dim[1] = g->rows;
    stride[0] = g->ld_x * ELEMENT;
    box[1] = height / T::CLUSTER;

    rc = rc != 0 ? rc : dsa_cuda_tensor_map(state, &a.x, type, 2, g->x, dim,
                                            stride, box,
                                            CU_TENSOR_MAP_SWIZZLE_128B);

    a.scale = a.x;
    a.bytes = (T::N + height) * DSA_MANY_K;

    if (T::FP8) {
        dim[0] = g->rows;
        dim[1] = g->in / DSA_MANY_K;
        stride[0] = g->ld_scale * sizeof(float);
        box[0] = (height + 3) / 4 * 4;      /* of 16 bytes */
        box[1] = 1;
        a.bytes += box[0] * sizeof(float);

        rc = rc != 0 ? rc
                     : dsa_cuda_tensor_map(state, &a.scale,
                                           CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
                                           g->x_scale, dim, stride, box,
                                           CU_TENSOR_MAP_SWIZZLE_NONE);
    }

    if (rc != 0) {
        return rc;
    }

    a.w_scale = g->w_scale;
    a.y = g->y;
    a.ld_y = g->ld_y;
    a.f32 = g->f32;
    a.rows = g->rows;
    a.out = g->out;
    a.blocks = (g->in + T::K - 1) / T::K;
    a.segments = segments;
    a.last = g->rows > T::ROWS ? (g->rows - T::ROWS + 3) / 4 * 4 : 0;
    a.row_tiles = (g->rows + T::ROWS - 1) / T::ROWS;
    a.tiles = a.row_tiles * ((g->out + T::N * T::CLUSTER - 1)
                             / (T::N * T::CLUSTER));

    most = state->processors * T::BLOCKS / T::CLUSTER;

    config = { };
    config.gridDim = dim3(min(a.tiles, most) * T::CLUSTER);
    config.blockDim = dim3(T::THREADS);
    config.dynamicSmemBytes = sizeof(typename T::smem_t);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 2;

    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim.x = T::CLUSTER;
    attribute[1].val.clusterDim.y = 1;
    attribute[1].val.clusterDim.z = 1;

    return cudaLaunchKernelEx(&config, dsa_many_kernel<T>, a);
}


template <typename T>
static int
dsa_many_permit(void)
{
    return dsa_setup_shared(dsa_many_kernel<T>, sizeof(typename T::smem_t));
}


#define DSA_MANY_SIZE(kind, groups, waves, n, cluster, stages, blocks,        \
    segments, block, sums, start)                                             \
    { dsa_many_launch<dsa_many_shape_t<kind, groups, waves, n, cluster,       \
                                       stages, blocks, segments>>,            \
      dsa_many_permit<dsa_many_shape_t<kind, groups, waves, n, cluster,       \
                                       stages, blocks, segments>>,            \
      groups * waves * 64, n * cluster, cluster, blocks, segments, block,     \
      sums, start }


/* blocks: of 128 bytes of in */

static int
dsa_many_run(const dsa_many_size_t *sizes, size_t n, uint32_t blocks,
    const dsa_cuda_state_t *state, const dsa_gemm_t *g, uint32_t segments,
    cudaStream_t stream)
{
    size_t                  i;
    uint64_t                tiles, once, time, least;
    const dsa_many_size_t  *s, *best;

    best = NULL;
    least = 0;

    for (i = 0; i < n; i++) {
        s = &sizes[i];

        if (s->segments < segments) {
            continue;
        }

        tiles = (uint64_t) ((g->rows + s->rows - 1) / s->rows)
                * ((g->out + s->features - 1) / s->features);
        once = state->processors * s->blocks / s->cluster;

        time = s->start + (tiles + once - 1) / once
                          * ((uint64_t) blocks * s->block + s->sums);

        if (best == NULL || time < least) {
            best = s;
            least = time;
        }
    }

    if (best == NULL) {
        return cudaErrorInvalidValue;
    }

    return best->launch(state, g, segments, stream);
}


static int
dsa_many_setup(const dsa_many_size_t *sizes, size_t n)
{
    int     rc;
    size_t  i;

    rc = 0;

    for (i = 0; i < n; i++) {
        rc = rc != 0 ? rc : sizes[i].setup();
    }

    return rc;
}


#endif /* _DSA_GEMM_MANY_KERNEL_CUH_INCLUDED_ */
