
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <string.h>

#include "kernels/core/setup.cuh"
#include "attention_heads.cuh"


/* Keys and values of the heads whose items are mixed, in bytes. */
#define DSA_HEADS_L2        (16U << 20)


static const dsa_cuda_heads_shape_t  dsa_heads_shapes[] = {
    { 128, 128, &dsa_heads_128_128 },
    { 192, 256, &dsa_heads_192_256 }
};


extern "C" const dsa_cuda_heads_shape_t *
dsa_cuda_heads_shape(size_t n)
{
    return n < sizeof(dsa_heads_shapes) / sizeof(dsa_heads_shapes[0])
           ? &dsa_heads_shapes[n] : NULL;
}


extern "C" const dsa_cuda_heads_shape_t *
dsa_cuda_heads_find(uint32_t nope, uint32_t v)
{
    size_t                         n;
    const dsa_cuda_heads_shape_t  *shape;

    for (n = 0; (shape = dsa_cuda_heads_shape(n)) != NULL; n++) {
        if (shape->nope == nope && shape->v == v) {
            break;
        }
    }

    return shape;
}


int
dsa_attention_heads_setup(void)
{
    int                            i, rc;
    size_t                         n;
    const dsa_cuda_heads_shape_t  *shape;

    rc = 0;

    for (n = 0; (shape = dsa_cuda_heads_shape(n)) != NULL; n++) {
        for (i = 0; i < 2 * DSA_HEADS_FORMS && rc == 0; i++) {
            rc = dsa_setup_shared(shape->kernels->kernel[i / 2][i % 2],
                                  shape->kernels->smem);
        }
    }

    return rc;
}


/*
 * Returns how many warpgroups compute an item.  Two take 1.25 times as long
 * for 128 rows and a tile as one for 64, because the softmax of one overlaps
 * with the products of the other.  One is better if items of 128 rows are too
 * few for all multiprocessors.  The ratio is that of the shape 128 and 128;
 * for 192 and 256 it also selected the faster one in each measured size.
 */

static uint32_t
dsa_heads_warpgroups(uint32_t start, uint32_t rows, uint32_t heads,
    uint32_t keys, uint32_t processors)
{
    uint32_t  n, best;
    uint64_t  blocks, longest, shortest, tiles, time, least;

    static const uint64_t  cost[2] = { 8, 10 };

    best = 0;
    least = UINT64_MAX;
    longest = ((uint64_t) start + rows + keys - 1) / keys;

    for (n = 2; n > 0; n--) {
        blocks = (rows + n * DSA_HEADS_ROWS - 1) / (n * DSA_HEADS_ROWS);
        shortest = (start + min(n * DSA_HEADS_ROWS, rows) + keys - 1) / keys;
        tiles = (blocks * heads * (longest + shortest) / 2 + processors - 1)
                / processors;
        time = cost[n - 1] * max(tiles, longest);

        if (time < least) {
            least = time;
            best = n;
        }
    }

    return best;
}


/*
 * Returns how many half items blocks compute one after the other if items are
 * equally long.  Sets halved: those items that remain after all blocks have
 * computed equally many are halved if there are enough blocks for both halves,
 * and if their halves have something in between.
 */

static uint32_t
dsa_heads_halves(uint32_t items, uint32_t tiles, uint32_t processors,
    uint32_t *halved)
{
    uint32_t  waves, rest;

    waves = items / processors;
    rest = items % processors;
    *halved = waves > 0 && rest * 2 <= processors && tiles >= 8 ? rest : 0;

    return waves * 2 + (rest == 0 ? 0 : *halved > 0 ? 1 : 2);
}


/*
 * Chooses the warpgroups of an item, as dsa_heads_warpgroups(), for a part
 * whose keys all rows attend to, and the items that are halved.
 */

static void
dsa_heads_divide(dsa_heads_args_t *a, uint32_t keys, uint32_t processors)
{
    uint32_t  n, items, halved, time, least;

    static const uint32_t  cost[2] = { 8, 10 };

    least = UINT32_MAX;

    for (n = 2; n > 0; n--) {
        items = (a->rows + n * DSA_HEADS_ROWS - 1) / (n * DSA_HEADS_ROWS)
                * a->heads;
        time = cost[n - 1]
               * dsa_heads_halves(items, (a->keys + keys - 1) / keys,
                                  processors, &halved);

        if (time < least) {
            least = time;
            a->warpgroups = n;
            a->halved = halved;
            a->whole = items - halved;
        }
    }
}


/* Computes a->rows rows over keys keys; a->keys is only set for a part. */

static int
dsa_heads_run(const dsa_cuda_state_t *state,
    const dsa_cuda_heads_shape_t *shape, dsa_heads_args_t *a, uint32_t form,
    const dsa_bf16_t *q, const dsa_bf16_t *kv, const dsa_bf16_t *latents,
    uint32_t keys, dsa_stream_t stream)
{
    int                         rc;
    uint32_t                    n, rows, heads, grid, box[3];
    uint64_t                    dim[3], stride[2], fit;
    CUtensorMap                 q_map, kv_map, rope_map;
    const dsa_heads_kernels_t  *kernels;

    kernels = shape->kernels;
    rows = a->rows;
    heads = a->heads;

    box[0] = 64;
    box[1] = 1;
    box[2] = DSA_HEADS_ROWS;
    dim[0] = shape->nope + DSA_CUDA_ROPE;
    dim[1] = heads;
    dim[2] = rows;
    stride[0] = dim[0] * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * heads;

    rc = dsa_cuda_tensor_map(state, &q_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             3, q, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    box[2] = kernels->keys;
    dim[0] = shape->nope + shape->v;
    dim[2] = keys;
    stride[0] = dim[0] * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * heads;

    rc = dsa_cuda_tensor_map(state, &kv_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             3, kv, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    box[1] = kernels->keys;
    dim[0] = DSA_CUDA_LATENT + DSA_CUDA_ROPE;
    dim[1] = keys;
    stride[0] = dim[0] * sizeof(dsa_bf16_t);

    rc = dsa_cuda_tensor_map(state, &rope_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             2, latents, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    /* groups of equally many heads whose keys and values fit the L2 */

    fit = DSA_HEADS_L2 / ((uint64_t) keys * (shape->nope + shape->v)
                          * sizeof(dsa_bf16_t));
    n = fit > 1 ? (uint32_t) ((heads + fit - 1) / fit) : heads;

    a->drawn = &state->counters->heads_drawn;
    a->mixed = (heads + n - 1) / n;
    a->stored = &state->counters->heads_stored;
    a->loaded = &state->counters->heads_loaded;

    if (form == DSA_HEADS_PART && a->start >= a->keys) {
        dsa_heads_divide(a, kernels->keys, state->processors);

    } else {
        a->warpgroups = dsa_heads_warpgroups(keys > rows ? keys - rows : 0,
                                             rows, heads, kernels->keys,
                                             state->processors);
        a->whole = UINT32_MAX;
    }

    a->blocks = (rows + a->warpgroups * DSA_HEADS_ROWS - 1)
                / (a->warpgroups * DSA_HEADS_ROWS);

    grid = a->blocks * heads < state->processors ? a->blocks * heads
                                                 : state->processors;

    return dsa_launch(kernels->kernel[form][a->warpgroups - 1], grid,
                      DSA_HEADS_THREADS, kernels->smem, stream, q_map, kv_map,
                      rope_map, *a);
}


static int
dsa_heads_args(dsa_heads_args_t *a, uint32_t start, uint32_t rows,
    uint32_t heads, float scale)
{
    if (heads < 1 || heads > 128 || rows > INT32_MAX
        || start > INT32_MAX - rows || !(scale > 0))
    {
        return cudaErrorInvalidValue;
    }

    memset(a, 0, sizeof(dsa_heads_args_t));

    a->start = start;
    a->rows = rows;
    a->heads = heads;
    a->scale = scale * 1.44269504088896341f;

    return cudaSuccess;
}


extern "C" int
dsa_cuda_attention_heads(const dsa_cuda_state_t *state,
    const dsa_cuda_heads_shape_t *shape, dsa_bf16_t *out, const dsa_bf16_t *q,
    const dsa_bf16_t *kv, const dsa_bf16_t *latents, const uint32_t *mask,
    size_t ld_mask, uint32_t start, uint32_t rows, uint32_t heads, float scale,
    dsa_stream_t stream)
{
    int               rc;
    dsa_heads_args_t  a;

    rc = dsa_heads_args(&a, start, rows, heads, scale);

    if (rc != 0 || rows == 0) {
        return rc;
    }

    a.out = out;
    a.mask = mask;
    a.ld_mask = ld_mask;

    return dsa_heads_run(state, shape, &a,
                         mask != NULL ? DSA_HEADS_MASKED : DSA_HEADS_CAUSAL,
                         q, kv, latents, start + rows, stream);
}


extern "C" int
dsa_cuda_attention_heads_part(const dsa_cuda_state_t *state,
    const dsa_cuda_heads_shape_t *shape, dsa_bf16_t *out, float *sum,
    float *norm, const dsa_bf16_t *q, const dsa_bf16_t *kv,
    const dsa_bf16_t *latents, uint32_t first, uint32_t keys, uint32_t start,
    uint32_t rows, uint32_t heads, float scale, dsa_stream_t stream)
{
    int               rc;
    uint32_t          skip;
    dsa_heads_args_t  a;

    /* rows before the part are complete */

    skip = start < first ? first - start : 0;
    skip = skip < rows ? skip : rows;

    rc = dsa_heads_args(&a, start + skip - first, rows - skip, heads, scale);

    if (rc != 0 || rows == skip || keys == 0) {
        return rc;
    }

    a.out = out + (size_t) skip * heads * shape->v;
    a.sum = sum + (size_t) skip * heads * shape->v;
    a.norm = norm + (size_t) skip * heads * DSA_CUDA_HEADS_NORM;
    a.keys = keys;
    a.merge = first != 0;

    return dsa_heads_run(state, shape, &a, DSA_HEADS_PART,
                         q + (size_t) skip * heads
                             * (shape->nope + DSA_CUDA_ROPE),
                         kv, latents, keys, stream);
}
