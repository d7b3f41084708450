
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "gemm_fp8.cuh"
#include "gemm_fp8_kernel.cuh"


/*
 * The sizes of tiles, the choice of a size, and the launches.
 *
 * The time of a tile is proportional to the blocks of 128 of in, plus a
 * constant for its sums; a launch adds another constant.  So the time of a
 * product is
 *
 *     start + (tiles / tiles at once, rounded up) * (in / 128 * block + sums)
 *
 * and the size with the least time is used.  The constants, in ns, were fitted
 * to the model's products with 64 .. 8192 rows on an H200.
 *
 * Two examples, in us, measured (formula):
 *
 *                                   256x128     128x128      128x64
 *     7168 x 16384, 4096 rows      693 (722)   825 (800)
 *     4096 x 7168, 256 rows         40 (50)     23 (28)     19 (21)
 */

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
} dsa_fp8_size_t;


template <typename T>
static int
dsa_fp8_launch(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream)
{
    int                  rc;
    uint32_t             box[2], most, height;
    uint64_t             dim[2], stride[1];
    dsa_fp8_args_t       a;
    cudaLaunchConfig_t   config;
    cudaLaunchAttribute  attribute[2];

    static_assert(T::ROWS % 4 == 0, "a tile's scales begin at 16 bytes");

    dim[0] = g->in;
    dim[1] = g->out;
    stride[0] = g->ld_w;
    box[0] = DSA_FP8_K;
    box[1] = T::N;

    rc = dsa_cuda_tensor_map(state, &a.w, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2,
                             g->w, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);

    height = T::CLUSTER > 1 ? T::ROWS : min(g->rows, T::ROWS);

    dim[1] = g->rows;
    stride[0] = g->ld_x;
    box[1] = height / T::CLUSTER;

    rc = rc != 0 ? rc : dsa_cuda_tensor_map(state, &a.x,
                                            CU_TENSOR_MAP_DATA_TYPE_UINT8, 2,
                                            g->x, dim, stride, box,
                                            CU_TENSOR_MAP_SWIZZLE_128B);

    dim[0] = g->rows;
    dim[1] = g->in / DSA_FP8_K;
    stride[0] = g->ld_scale * sizeof(float);
    box[0] = (height + 3) / 4 * 4;      /* of 16 bytes */
    box[1] = 1;

    rc = rc != 0 ? rc : dsa_cuda_tensor_map(state, &a.scale,
                                            CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
                                            g->x_scale, dim, stride, box,
                                            CU_TENSOR_MAP_SWIZZLE_NONE);

    if (rc != 0) {
        return rc;
    }

    a.w_scale = g->w_scale;
    a.y = (uint16_t *) g->y;
    a.ld_y = g->ld_y;
    a.rows = g->rows;
    a.out = g->out;
    a.blocks = g->in / DSA_FP8_K;
    a.first = a.blocks / segments;
    a.bytes = (T::N + height) * DSA_FP8_K + box[0] * sizeof(float);
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

    return cudaLaunchKernelEx(&config, dsa_fp8_kernel<T>, a);
}


template <typename T>
static int
dsa_fp8_permit(void)
{
    return dsa_setup_shared(dsa_fp8_kernel<T>, sizeof(typename T::smem_t));
}


#define DSA_FP8_SIZE(groups, waves, n, cluster, stages, blocks, segments,     \
    block, sums, start)                                                       \
    { dsa_fp8_launch<dsa_fp8_shape_t<groups, waves, n, cluster, stages,       \
                                     blocks, segments>>,                      \
      dsa_fp8_permit<dsa_fp8_shape_t<groups, waves, n, cluster, stages,       \
                                     blocks, segments>>,                      \
      groups * waves * 64, n * cluster, cluster, blocks, segments, block,     \
      sums, start }


static const dsa_fp8_size_t  dsa_fp8_sizes[] = {
    DSA_FP8_SIZE(2, 2, 128, 2, 4, 1, 1, 790, 1400, 4000),
    DSA_FP8_SIZE(2, 1, 192, 2, 5, 1, 1, 660, 1200, 4000),
    DSA_FP8_SIZE(2, 1, 128, 1, 6, 1, 1, 440, 600, 3000),
    DSA_FP8_SIZE(2, 1, 64, 1, 8, 1, DSA_GEMM_FP8_SEGMENTS, 320, 500, 3000),
    DSA_FP8_SIZE(2, 1, 32, 1, 9, 1, DSA_GEMM_FP8_SEGMENTS, 220, 400, 3000),
    DSA_FP8_SIZE(1, 1, 64, 1, 6, 2, 1, 360, 800, 1500)
};


int
dsa_gemm_fp8(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    uint32_t segments, cudaStream_t stream)
{
    size_t                 i;
    uint64_t               tiles, once, time, least;
    const dsa_fp8_size_t  *s, *best;

    best = NULL;
    least = 0;

    for (i = 0; i < sizeof(dsa_fp8_sizes) / sizeof(dsa_fp8_sizes[0]); i++) {
        s = &dsa_fp8_sizes[i];

        if (s->segments < segments) {
            continue;
        }

        tiles = (uint64_t) ((g->rows + s->rows - 1) / s->rows)
                * ((g->out + s->features - 1) / s->features);
        once = state->processors * s->blocks / s->cluster;

        time = s->start + (tiles + once - 1) / once
                          * ((uint64_t) (g->in / DSA_FP8_K) * s->block
                             + s->sums);

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


int
dsa_gemm_fp8_setup(void)
{
    int     rc;
    size_t  i;

    rc = 0;

    for (i = 0; i < sizeof(dsa_fp8_sizes) / sizeof(dsa_fp8_sizes[0]); i++) {
        rc = rc != 0 ? rc : dsa_fp8_sizes[i].setup();
    }

    return rc;
}
