
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "gemm_decode_kernel.cuh"


/* How products with few rows are divided, and their launches. */

#define DSA_GEMM_SHARED     (227 * 1024)    /* bytes of a multiprocessor */
#define DSA_GEMM_FIXED      2560            /* barriers, alignment, and what
                                               the system reserves */
#define DSA_GEMM_MOST       (DSA_GEMM_SHARED - DSA_GEMM_FIXED + 1024)
#define DSA_GEMM_SMS        132


static uint32_t
dsa_gemm_ceil(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}


static uint32_t
dsa_gemm_rows(uint32_t rows)
{
    uint32_t  n;

    for (n = 8; n < 128 && n < rows; n *= 2) {
        /* void */
    }

    return n;
}


static uint32_t
dsa_gemm_stage(const dsa_gemm_t *g, uint32_t features, uint32_t rows)
{
    return (features + rows) * DSA_GEMM_ATOM
           + (g->kind == DSA_GEMM_FP8 ? (rows < 32 ? 128 : rows * 4) : 0);
}


/*
 * Returns into how many segments in is cut.  Only this number influences the
 * bits of the result, so it does not depend on the rows: there are enough
 * segments for one block (of 64 features) on each multiprocessor, or for two
 * blocks if the segments are long enough.
 *
 * Otherwise a quarter of the multiprocessors or more may have no block.  Then
 * there are twice as many segments, if they are not shorter than 8 atoms.
 * Those above 12 atoms are excluded because 2240 x 7168 of DeepSeek-V3.2, with
 * 14, keeps the bits that it has always had.
 */

static uint32_t
dsa_gemm_segments(const dsa_gemm_t *g, uint32_t tiles, uint32_t atoms)
{
    uint32_t  segments, blocks, n;

    for (segments = 1; segments < 8; segments *= 2) {
        n = atoms / (segments * 2);
        blocks = tiles * segments * 2;

        if (n < 6 || blocks > (n < 32 ? 1 : 2) * DSA_GEMM_SMS) {
            break;
        }
    }

    n = atoms / (segments * 2);

    if (g->kind == DSA_GEMM_FP8 && segments < 8 && n >= 8 && n <= 12
        && tiles * segments <= DSA_GEMM_SMS * 3 / 4)
    {
        segments *= 2;
    }

    return segments;
}


/*
 * Chooses a tile.  The choices are from measurements on an H200 in the
 * published dimensions.
 */

void
dsa_gemm_tile(dsa_gemm_tile_t *tile, const dsa_gemm_t *g)
{
    int       fp8;
    uint32_t  rows, tiles, atoms, segments, blocks, size, least, n;

    fp8 = g->kind == DSA_GEMM_FP8;
    rows = dsa_gemm_rows(g->rows);
    atoms = dsa_gemm_ceil(g->in, fp8 ? 128 : 64);
    tiles = dsa_gemm_ceil(g->out, 64) * g->heads;
    segments = dsa_gemm_segments(g, tiles, atoms);

    tile->features = 64;
    tile->parts = 1;

    switch (segments) {

    case 1:

        /* use three warpgroups if all blocks then run at the same time */

        blocks = dsa_gemm_ceil(g->out, 192) * g->heads;

        if (fp8 && rows < 128 && blocks <= DSA_GEMM_SMS
            && tiles > 2 * DSA_GEMM_SMS)
        {
            tile->features = 192;

        } else if (tiles > DSA_GEMM_SMS && rows < 128
                   && (!fp8 || rows < 32 || tiles > 2 * DSA_GEMM_SMS))
        {
            tile->features = 128;
        }

        break;

    case 2:

        /*
         * Short segments, and those of 67 .. 99 tiles, are summed by the two
         * parts of one block, which need no cluster.
         */

        if (fp8 && tiles * 2 <= DSA_GEMM_SMS && atoms < 32) {
            tile->parts = tiles * 4 > DSA_GEMM_SMS ? 2 : 1;

        } else if (tiles * 2 <= DSA_GEMM_SMS) {
            tile->features = rows < 32 ? 128 : 64;

        } else if (rows == 64 || (fp8 && tiles <= DSA_GEMM_SMS * 3 / 4)) {
            tile->parts = 2;

        } else {
            tile->features = 128;
        }

        break;

    case 4:
        if (fp8 && tiles * 4 > DSA_GEMM_SMS && rows <= 32) {
            tile->features = 192;

        } else {
            tile->parts = 2;
        }

        break;

    default:
        tile->features = rows < 32 && fp8 ? 128 : 64;
        break;
    }

    tile->split = segments / tile->parts;

    /*
     * A ring that fills the multiprocessor, or half of it: with half, the
     * blocks of the next product can fill their rings while these blocks end.
     */

    blocks = dsa_gemm_ceil(g->out, tile->features) * g->heads * tile->split
             * dsa_gemm_ceil(g->rows, rows);
    size = dsa_gemm_stage(g, tile->features, rows);

    n = DSA_GEMM_SHARED;

    if (blocks > DSA_GEMM_SMS
        || (fp8 && segments == 1 && tile->features == 128)
        || (segments < 8
            && (tile->features * tile->parts < 128 || size < 16384)))
    {
        n /= 2;
    }

    n = (n - DSA_GEMM_FIXED) / size / 2 * 2;
    n = n < DSA_GEMM_STAGES ? n : DSA_GEMM_STAGES;

    atoms = dsa_gemm_ceil(atoms, segments) * tile->parts;
    n = n < atoms ? n : atoms;

    /*
     * The ring is at least as large as the sums, and has an even number of
     * stages: see dsa_gemm_ring_t.
     */

    least = dsa_gemm_ceil(tile->parts * rows * (tile->features + 4) * 4, size);
    n = n > least ? n : least;
    tile->stages = (n + 1) / 2 * 2;
}


template <int KIND, int FEATURES, int PARTS, int ROWS>
static int
dsa_gemm_launch(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    const dsa_gemm_tile_t *tile, cudaStream_t stream)
{
    int                  rc;
    uint32_t             box[3], element, n;
    uint64_t             dim[3], stride[2];
    CUtensorMap          map_w, map_x, map_scale;
    dsa_gemm_args_t      a;
    cudaLaunchConfig_t   config;
    CUtensorMapDataType  type;
    cudaLaunchAttribute  attribute[2];

    constexpr bool  FP8 = KIND == DSA_GEMM_FP8;

    element = FP8 ? 1 : 2;
    type = FP8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
               : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

    dim[0] = KIND == DSA_GEMM_BF16_T ? g->out : g->in;
    dim[1] = KIND == DSA_GEMM_BF16_T ? g->in : g->out;
    dim[2] = g->heads;
    stride[0] = g->ld_w * element;
    stride[1] = g->heads > 1 ? g->step_w * element : stride[0];
    box[0] = DSA_GEMM_ATOM / element;
    box[1] = KIND == DSA_GEMM_BF16_T ? 64 : FEATURES;
    box[2] = 1;

    rc = dsa_cuda_tensor_map(state, &map_w, type, 3, g->w, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);

    dim[0] = g->in;
    dim[1] = g->rows;
    stride[0] = g->ld_x * element;
    stride[1] = g->heads > 1 ? g->step_x * element : stride[0];
    box[0] = DSA_GEMM_ATOM / element;
    box[1] = ROWS;

    rc = rc != 0 ? rc : dsa_cuda_tensor_map(state, &map_x, type, 3, g->x, dim,
                                            stride, box,
                                            CU_TENSOR_MAP_SWIZZLE_128B);

    map_scale = map_x;

    if (FP8) {
        dim[0] = g->rows;
        dim[1] = g->in / 128;
        stride[0] = g->ld_scale * sizeof(float);
        box[0] = ROWS;
        box[1] = 1;

        rc = rc != 0 ? rc
                     : dsa_cuda_tensor_map(state, &map_scale,
                                           CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
                                           g->x_scale, dim, stride, box,
                                           CU_TENSOR_MAP_SWIZZLE_NONE);
    }

    if (rc != 0) {
        return rc;
    }

    a.y = g->y;
    a.ld_y = g->ld_y;
    a.step_y = g->step_y;
    a.w_scale = g->w_scale;
    a.rows = g->rows;
    a.out = g->out;
    a.blocks = dsa_gemm_ceil(g->in, DSA_GEMM_ATOM / element);
    a.split = tile->split;
    a.stages = tile->stages;
    a.f32 = g->f32;

    n = g->f32 ? 4 : 8;
    a.wide = (uintptr_t) g->y % 16 == 0 && g->ld_y % n == 0
             && g->step_y % n == 0;

    config = { };
    config.gridDim = dim3(tile->split * dsa_gemm_ceil(g->rows, ROWS),
                          dsa_gemm_ceil(g->out, FEATURES), g->heads);
    config.blockDim = dim3(FEATURES * PARTS * 2
                           + DSA_GEMM_LOADERS * 32);
    config.dynamicSmemBytes = (size_t) tile->stages
                              * dsa_gemm_stage(g, FEATURES, ROWS) + 1024;
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 2;

    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim.x = tile->split;
    attribute[1].val.clusterDim.y = 1;
    attribute[1].val.clusterDim.z = 1;

    rc = cudaLaunchKernelEx(&config,
                            dsa_gemm_decode_kernel<KIND, FEATURES, PARTS, ROWS>,
                            map_w, map_x, map_scale, a);

    return rc != 0 ? rc : (int) cudaGetLastError();
}


template <int KIND, int FEATURES, int PARTS>
static int
dsa_gemm_launch_rows(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    const dsa_gemm_tile_t *tile, cudaStream_t stream)
{
    switch (dsa_gemm_rows(g->rows)) {

    case 8:
        return dsa_gemm_launch<KIND, FEATURES, PARTS, 8>(state, g, tile,
                                                         stream);

    case 16:
        return dsa_gemm_launch<KIND, FEATURES, PARTS, 16>(state, g, tile,
                                                          stream);

    case 32:
        return dsa_gemm_launch<KIND, FEATURES, PARTS, 32>(state, g, tile,
                                                          stream);

    case 64:
        return dsa_gemm_launch<KIND, FEATURES, PARTS, 64>(state, g, tile,
                                                          stream);

    default:

        if constexpr (FEATURES <= 128) {
            return dsa_gemm_launch<KIND, FEATURES, PARTS, 128>(state, g, tile,
                                                               stream);
        }

        return cudaErrorInvalidValue;
    }
}


template <int KIND>
static int
dsa_gemm_launch_tile(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    const dsa_gemm_tile_t *tile, cudaStream_t stream)
{
    if (tile->parts == 2) {
        return dsa_gemm_launch_rows<KIND, 64, 2>(state, g, tile, stream);
    }

    switch (tile->features) {

    case 64:
        return dsa_gemm_launch_rows<KIND, 64, 1>(state, g, tile, stream);

    case 128:
        return dsa_gemm_launch_rows<KIND, 128, 1>(state, g, tile, stream);

    default:

        if constexpr (KIND == DSA_GEMM_FP8) {
            return dsa_gemm_launch_rows<KIND, 192, 1>(state, g, tile, stream);
        }

        return cudaErrorInvalidValue;
    }
}


int
dsa_gemm_decode(const dsa_cuda_state_t *state, const dsa_gemm_t *g,
    const dsa_gemm_tile_t *tile, cudaStream_t stream)
{
    switch (g->kind) {

    case DSA_GEMM_FP8:
        return dsa_gemm_launch_tile<DSA_GEMM_FP8>(state, g, tile, stream);

    case DSA_GEMM_BF16:
        return dsa_gemm_launch_tile<DSA_GEMM_BF16>(state, g, tile, stream);

    default:
        return dsa_gemm_launch_tile<DSA_GEMM_BF16_T>(state, g, tile, stream);
    }
}


/* Sets up the kernels of one block size; rows as in dsa_gemm_launch_rows(). */

template <int KIND, int FEATURES, int PARTS>
static int
dsa_gemm_permit(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_gemm_decode_kernel<KIND, FEATURES, PARTS, 8>,
                          DSA_GEMM_MOST);
    rc = rc != 0 ? rc
         : dsa_setup_shared(dsa_gemm_decode_kernel<KIND, FEATURES, PARTS, 16>,
                            DSA_GEMM_MOST);
    rc = rc != 0 ? rc
         : dsa_setup_shared(dsa_gemm_decode_kernel<KIND, FEATURES, PARTS, 32>,
                            DSA_GEMM_MOST);
    rc = rc != 0 ? rc
         : dsa_setup_shared(dsa_gemm_decode_kernel<KIND, FEATURES, PARTS, 64>,
                            DSA_GEMM_MOST);

    if constexpr (FEATURES <= 128) {
        rc = rc != 0 ? rc
             : dsa_setup_shared(dsa_gemm_decode_kernel<KIND, FEATURES, PARTS,
                                                       128>,
                                DSA_GEMM_MOST);
    }

    return rc;
}


template <int KIND>
static int
dsa_gemm_permit_kind(void)
{
    int  rc;

    rc = dsa_gemm_permit<KIND, 64, 2>();
    rc = rc != 0 ? rc : dsa_gemm_permit<KIND, 64, 1>();
    rc = rc != 0 ? rc : dsa_gemm_permit<KIND, 128, 1>();

    if constexpr (KIND == DSA_GEMM_FP8) {
        rc = rc != 0 ? rc : dsa_gemm_permit<KIND, 192, 1>();
    }

    return rc;
}


int
dsa_gemm_decode_setup(void)
{
    int  rc;

    rc = dsa_gemm_permit_kind<DSA_GEMM_FP8>();
    rc = rc != 0 ? rc : dsa_gemm_permit_kind<DSA_GEMM_BF16>();

    return rc != 0 ? rc : dsa_gemm_permit_kind<DSA_GEMM_BF16_T>();
}
