
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "kernels/core/setup.cuh"
#include "attention_dense_bf16.cuh"
#include "attention_dense_fp8.cuh"
#include "attention_dense_wide.cuh"


#define DSA_DENSE_WORK      (256ULL << 20)  /* bytes of parts at a time */


/* Returns the most parts of a row with up to n keys. */

static uint32_t
dsa_dense_most(uint32_t n, uint32_t heads)
{
    uint32_t  above, most, parts;

    most = 1;

    while (n != 0) {
        parts = dsa_dense_parts(n, heads);
        most = parts > most ? parts : most;
        (void) dsa_dense_pages(n, heads, &above);
        n = above;
    }

    return most;
}


/*
 * Combines the parts of a row, for one head, as dsa_decode_combine().  There
 * may be more parts than lanes.  BF16: the columns of parts are in the order of
 * dsa_dense_store().
 */

template <int BF16>
static __global__ void
__launch_bounds__(128)
dsa_dense_combine(const __grid_constant__ dsa_dense_t a)
{
    float         w, max, sum;
    float4        o, x;
    uint8_t      *out;
    uint32_t      s, row, head, lane, parts, ld;
    const float  *p, *lse;

    asm volatile ("griddepcontrol.wait;" ::: "memory");

    lane = threadIdx.x % 32;
    row = blockIdx.x / a.d.heads;
    head = blockIdx.x % a.d.heads;
    parts = dsa_dense_parts(dsa_dense_keys(a, row), a.d.heads);
    ld = a.d.heads;

    lse = a.d.lse + (uint64_t) row * a.d.splits * ld + head;
    p = a.d.part + ((uint64_t) row * a.d.splits * ld + head)
                   * DSA_CUDA_LATENT + threadIdx.x * 4;

    max = DSA_DECODE_NONE;

    for (s = lane; s < parts; s += 32) {
        max = fmaxf(max, lse[s * ld]);
    }

    max = dsa_warp_max(max);
    sum = 0;

    for (s = lane; s < parts; s += 32) {
        sum += exp2f(lse[s * ld] - max);
    }

    sum = dsa_warp_sum(sum);
    sum = sum > 0 ? 1 / sum : 0;
    o = make_float4(0, 0, 0, 0);

#pragma unroll 8
    for (s = 0; s < parts; s++) {
        x = *(const float4 *) (p + (uint64_t) s * ld * DSA_CUDA_LATENT);
        w = exp2f(lse[s * ld] - max) * sum;

        o.x += w * x.x;
        o.y += w * x.y;
        o.z += w * x.z;
        o.w += w * x.w;
    }

    out = a.d.out + (uint64_t) blockIdx.x * DSA_CUDA_LATENT * 2;

    if constexpr (BF16) {
        out += threadIdx.x / 4 * 32 + threadIdx.x % 4 * 4;
        *(uint32_t *) out = dsa_decode_pack(o.x, o.y);
        *(uint32_t *) (out + 16) = dsa_decode_pack(o.z, o.w);

    } else {
        *(uint2 *) (out + threadIdx.x * 8) =
            make_uint2(dsa_decode_pack(o.x, o.y), dsa_decode_pack(o.z, o.w));
    }
}


/* Returns the bytes of the parts of a row, and of their sums. */

static size_t
dsa_dense_row_work(uint32_t heads, uint32_t max_keys)
{
    return (size_t) dsa_dense_most(max_keys, heads) * heads
           * (DSA_CUDA_LATENT + 1) * sizeof(float);
}


extern "C" size_t
dsa_cuda_attention_dense_work(uint32_t rows, uint32_t heads,
    uint32_t max_keys)
{
    size_t  row, bytes;

    row = dsa_dense_row_work(heads, max_keys);
    bytes = row * rows;
    bytes = bytes < DSA_DENSE_WORK ? bytes : DSA_DENSE_WORK;

    return (bytes > row ? bytes : row) + 16;
}


#define DSA_DENSE_SHARED                                                      \
    (3 * DSA_DECODE_BUFFER + DSA_DENSE_QUERIES * 128                          \
     + sizeof(dsa_dense_shared_t))


int
dsa_attention_dense_setup(void)
{
    int  rc;

    rc = dsa_setup_shared(dsa_dense_bf16<0>, DSA_DENSE_SHARED);
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_dense_bf16<1>, DSA_DENSE_SHARED);
    rc = rc != 0 ? rc : dsa_setup_shared(dsa_dense_fp8, DSA_FP8_SHARED);

    return rc != 0 ? rc : dsa_setup_shared(dsa_dense_wide,
                                           DSA_DECODE_WIDE_SHARED);
}


/*
 * Returns 1 for the kernel of many heads.  The number of rows must not choose:
 * the kernels add in different orders, and the bits of a row must not depend on
 * the rows beside it.
 */

static int
dsa_dense_is_wide(uint32_t heads, uint32_t bf16)
{
    return !bf16 && heads > DSA_FP8_QUERIES;
}


static int
dsa_dense_launch(const dsa_cuda_state_t *state, const CUtensorMap *map,
    const dsa_dense_t *a, uint32_t bf16, cudaStream_t stream)
{
    int                   rc, pair;
    uint32_t              blocks, most;
    cudaLaunchConfig_t    config = {};
    cudaLaunchAttribute   attr = {};

    pair = bf16 && a->d.groups == 2;
    blocks = a->rows * a->d.splits;

    if (bf16) {
        most = state->processors / a->d.groups;
        blocks = blocks < most ? blocks : most;
    }

    config.gridDim = dim3(blocks * a->d.groups, 1, 1);
    config.stream = stream;

    attr.id = cudaLaunchAttributeClusterDimension;
    attr.val.clusterDim.x = 2;
    attr.val.clusterDim.y = 1;
    attr.val.clusterDim.z = 1;
    config.attrs = &attr;
    config.numAttrs = pair ? 1 : 0;

    if (dsa_dense_is_wide(a->d.heads, bf16)) {
        config.blockDim = dim3(DSA_DECODE_THREADS, 1, 1);
        config.dynamicSmemBytes = DSA_DECODE_WIDE_SHARED;

        rc = cudaLaunchKernelEx(&config, dsa_dense_wide, *a);

    } else {
        config.blockDim = dim3(bf16 ? DSA_DENSE_THREADS : DSA_FP8_THREADS, 1,
                               1);
        config.dynamicSmemBytes = bf16 ? DSA_DENSE_SHARED : DSA_FP8_SHARED;

        rc = cudaLaunchKernelEx(&config, pair ? dsa_dense_bf16<1>
                                         : bf16 ? dsa_dense_bf16<0>
                                                : dsa_dense_fp8, *map, *a);
    }

    if (rc != cudaSuccess) {
        return rc;
    }

    attr.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attr.val.programmaticStreamSerializationAllowed = 1;

    config.gridDim = dim3(a->rows * a->d.heads, 1, 1);
    config.blockDim = dim3(128, 1, 1);
    config.dynamicSmemBytes = 0;
    config.numAttrs = 1;

    return cudaLaunchKernelEx(&config, bf16 ? dsa_dense_combine<1>
                                            : dsa_dense_combine<0>, *a);
}


/*
 * The map of the pages' latents: columns, tokens, pages.  It is loaded in
 * panels of BF16 latents, or in quarters of a page of whole FP8 records, of
 * words.  The kernel of many heads gathers records without it.
 */

static int
dsa_dense_map(const dsa_cuda_state_t *state, CUtensorMap *map,
    const dsa_cuda_cache_t *cache)
{
    uint32_t  box[3];
    uint64_t  dim[3], stride[2];

    dim[0] = cache->bf16 ? DSA_DECODE_WIDTH : DSA_CUDA_RECORD / 4;
    dim[1] = DSA_DECODE_KEYS;
    dim[2] = cache->pages;
    stride[0] = dsa_cuda_record(cache->bf16);
    stride[1] = cache->page;
    box[0] = cache->bf16 ? 64 : DSA_CUDA_RECORD / 4;
    box[1] = cache->bf16 ? DSA_DECODE_KEYS : DSA_FP8_QUARTER;
    box[2] = 1;

    return dsa_cuda_tensor_map(state, map,
                               cache->bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                           : CU_TENSOR_MAP_DATA_TYPE_UINT32,
                               3, cache->base, dim, stride, box,
                               cache->bf16 ? CU_TENSOR_MAP_SWIZZLE_128B
                                           : CU_TENSOR_MAP_SWIZZLE_NONE);
}


extern "C" int
dsa_cuda_attention_dense(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_cuda_cache_t *cache, const int32_t *pages,
    size_t ld_pages, const int32_t *keys, const int32_t *left, uint32_t rows,
    uint32_t heads, uint32_t hidden, uint32_t max_keys, float scale,
    void *work, dsa_stream_t stream)
{
    int          rc;
    size_t       row;
    uint32_t     r, n, most;
    dsa_dense_t  a;
    CUtensorMap  map;

    if (heads < 1 || heads > 128 || !(scale > 0) || hidden > 1
        || cache->page > UINT32_MAX || cache->pages > INT32_MAX / 64
        || rows > INT32_MAX / 128 || max_keys > INT32_MAX - 64
        || (uintptr_t) work % 16 != 0)
    {
        return cudaErrorInvalidValue;
    }

    if (rows == 0) {
        return cudaSuccess;
    }

    rc = dsa_dense_map(state, &map, cache);

    /* launches have equal numbers of rows, or the last one would have few */

    row = dsa_dense_row_work(heads, max_keys);
    most = (uint32_t) (DSA_DENSE_WORK / row);
    most = most > 1 ? most : 1;
    n = (rows + most - 1) / most;
    most = (rows + n - 1) / n;

    memset(&a, 0, sizeof(dsa_dense_t));

    a.d.base = cache->base;
    a.d.ld_slot = ld_pages;
    a.d.page = (uint32_t) cache->page;
    a.d.slots = cache->pages * DSA_DECODE_KEYS;
    a.d.max_slots = max_keys;
    a.d.heads = heads;
    a.d.scale = scale * 1.4426950408889634f / DSA_DECODE_QUERY;
    a.d.splits = dsa_dense_most(max_keys, heads);
    a.d.part = (float *) work;

    if (cache->bf16 || dsa_dense_is_wide(heads, cache->bf16)) {
        a.block = DSA_DENSE_QUERIES;
        a.fit = heads > a.block ? 1 : a.block / heads;

    } else {

        /* the fewest rows whose queries fill blocks: 8 rows of 20 heads, 5 */

        a.block = DSA_FP8_QUERIES;
        a.fit = a.block / (heads & -heads);
    }

    a.d.groups = (heads + a.block - 1) / a.block;
    a.one = ld_pages == 0;
    a.hidden = hidden;

    for (r = 0; r < rows && rc == 0; r += n) {
        n = rows - r < most ? rows - r : most;

        a.d.out = (uint8_t *) (out + (size_t) r * heads * DSA_CUDA_LATENT);
        a.d.q = (const uint8_t *) (q + (size_t) r * heads * DSA_DECODE_WIDTH);
        a.d.slot = pages + r * ld_pages;
        a.d.n_slot = keys + r;
        a.d.lse = a.d.part + (size_t) n * a.d.splits * heads * DSA_CUDA_LATENT;
        a.left = left != NULL ? left + r : NULL;
        a.rows = n;

        rc = dsa_dense_launch(state, &map, &a, cache->bf16, stream);
    }

    return rc;
}
