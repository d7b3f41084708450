
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "kernels/core/setup.cuh"
#include "attention_heads.cuh"


/*
 * MHA prefill.  A work item is 128 rows of one head; it is computed against
 * tiles of 128 keys, in one pass with an online softmax.  Two warpgroups have
 * 64 rows each.  Another warp loads the queries, and two tiles of keys (128
 * nope columns and the shared 64 rope columns) and two tiles of values ahead.
 * Tiles are stored in shared memory as segments of 64 columns, 128 swizzled
 * bytes a row.  If there are too few items for all multiprocessors, an item is
 * 64 rows, and one warpgroup computes them.
 *
 * A warpgroup starts the scores of tile i and the product of tile i - 1 with
 * the values together, and computes the maxima of tile i while the second
 * product runs.  The warpgroups take turns in starting products, so that the
 * tensor cores work for one of them while the other one computes its
 * exponentials.  This is the schedule of FlashAttention-3 (arXiv 2407.08608).
 * Sums are rescaled for a greater maximum after the scores of the next tile
 * are started, because the scores do not depend on the sums.  The tiles of all
 * items of a block form one sequence: the first tile of an item follows the
 * last tile of the previous item.
 *
 * Blocks are persistent and draw items from a counter.  The longest items of
 * some heads come first.  The keys and values of these heads fit the L2
 * together.
 *
 * The columns of a row are divided between four threads.  They exchange the
 * row's maximum after each tile.  Each of them sums its own exponentials until
 * the end.
 */


/* Arrives at a barrier once for a warp, after all its threads are here. */

static __device__ __forceinline__ void
dsa_heads_done(uint64_t *bar)
{
    __syncwarp();

    if (threadIdx.x % 32 == 0) {
        dsa_mbar_arrive(bar);
    }
}


/* The state of a warpgroup, in registers. */

typedef struct {
    uint64_t            q;
    uint64_t            k;
    uint64_t            v;
    uint32_t            tile;           /* number of the next tile, over all
                                           items */
    uint32_t            group;
} dsa_heads_group_t;


/*
 * Each of four threads has a word of four vectors of four words; word n of
 * vector v is in w[v] of thread n.  Afterwards thread v has vector v.
 */

static __device__ __forceinline__ void
dsa_heads_gather(uint32_t (&w)[4])
{
    int       i, j;
    uint32_t  got, lane;

#pragma unroll
    for (i = 1; i < 4; i *= 2) {
        lane = threadIdx.x & i;

#pragma unroll
        for (j = 0; j < 4; j++) {
            if (j & i) {
                continue;
            }

            got = __shfl_xor_sync(0xffffffff, lane ? w[j] : w[j + i], i);
            w[j] = lane ? got : w[j];
            w[j + i] = lane ? w[j + i] : got;
        }
    }
}


/* Writes the 64 rows of a warpgroup. */

static __device__ __forceinline__ void
dsa_heads_write(const float (&o)[64], const dsa_heads_rows_t *r,
    const dsa_heads_args_t *a)
{
    int          i, j, n;
    float        sum;
    uint32_t     w[4];
    dsa_bf16_t  *out;

#pragma unroll
    for (n = 0; n < 2; n++) {
        sum = r->sum[n];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
        sum = sum > 0 ? dsa_heads_reciprocal(sum) : 0;

        out = a->out + ((size_t) (r->row + n * 8) * a->heads + r->item.head)
                       * DSA_CUDA_V + threadIdx.x % 4 * 8;

#pragma unroll
        for (i = 0; i < 4; i++) {

#pragma unroll
            for (j = 0; j < 4; j++) {
                w[j] = dsa_heads_pack(o[i * 16 + j * 4 + n * 2] * sum,
                                      o[i * 16 + j * 4 + n * 2 + 1] * sum);
            }

            dsa_heads_gather(w);

            if (r->row + n * 8 < a->rows) {
                *(uint4 *) (out + i * 32) = make_uint4(w[0], w[1], w[2], w[3]);
            }
        }
    }
}


/* Prepares a thread for an item. */

template <int MASKED>
static __device__ __forceinline__ void
dsa_heads_begin(dsa_heads_rows_t *r, const dsa_heads_args_t *a,
    const dsa_heads_item_t *item, uint32_t group)
{
    int       n;
    uint32_t  row;

    r->item = *item;
    row = item->row + group * DSA_HEADS_ROWS;

    /* the first tile that has a key beyond a row of the warpgroup */

    r->causal = (a->start + row + 1) / DSA_HEADS_KEYS;

    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    r->row = row;

#pragma unroll
    for (n = 0; n < 2; n++) {
        r->max[n] = -1e30f;
        r->sum[n] = 0;

        if (MASKED) {
            r->mask[n] = a->mask + min(row + n * 8, a->rows - 1) * a->ld_mask
                         + threadIdx.x % 4;
        }
    }
}


/*
 * Multiplies the sums by the factors of the previous tile, unless these are 1
 * for all rows of a warp, as for most tiles.
 */

static __device__ __forceinline__ void
dsa_heads_rescale(float (&o)[64], const float (&factor)[2])
{
    int  i;

    if (__any_sync(0xffffffff, factor[0] != 1 || factor[1] != 1)) {

#pragma unroll
        for (i = 0; i < 64; i++) {
            o[i] *= factor[i / 2 % 2];
        }
    }
}


/*
 * Computes tile i of an item: its scores, its softmax, and the product of the
 * previous tile.  If FIRST is 1, the previous tile belongs to the previous
 * item, whose rows are old; its sums are complete and are written.  factor is
 * that of the previous tile for the sums, and is replaced by that of this
 * tile.
 */

template <int MASKED, int GROUPS, int CAUSAL, int FIRST>
static __device__ __forceinline__ void
dsa_heads_step(float (&s)[64], float (&o)[64], uint32_t (&p)[32],
    dsa_heads_rows_t *r, const dsa_heads_rows_t *old, dsa_heads_group_t *g,
    dsa_heads_shared_t *shared, const dsa_heads_args_t *a, uint32_t i,
    float (&factor)[2])
{
    int       j;
    uint32_t  stage, last, words[2];

    stage = g->tile % 2;
    last = (g->tile - 1) % 2;

    if (MASKED) {
        dsa_heads_words(words, r, a, i);
    }

    dsa_mbar_wait(&shared->k_full[stage], g->tile / 2 % 2);
    dsa_bar_sync(1 + g->group, GROUPS * 128);

    dsa_heads_score(s, g->q, g->k + stage * (DSA_HEADS_K / 16));
    dsa_mbar_wait(&shared->v_full[last], (g->tile - 1) / 2 % 2);
    dsa_heads_rescale(o, factor);
    dsa_heads_weigh(o, p, g->v + last * (DSA_HEADS_V / 16));

    dsa_bar_arrive(2 - g->group, GROUPS * 128);

    dsa_wgmma_wait<1>();
    dsa_heads_settle(s);
    dsa_heads_done(&shared->k_empty[stage]);

    if (CAUSAL && i + 1 == r->item.tiles) {
        dsa_heads_done(&shared->q_empty[g->group]);
    }

    if (MASKED && __any_sync(0xffffffff, (words[0] & words[1]) != UINT32_MAX))
    {
        dsa_heads_select(s, words);
    }

    if (CAUSAL && (!FIRST || i >= r->causal)) {
        dsa_heads_causal(s, r, a, i);
    }

    dsa_heads_max(s, r, factor, a->scale);
    dsa_heads_order(shared->order, r);

    dsa_wgmma_wait<0>();
    dsa_heads_settle(o);
    dsa_heads_exponentials(s, r, factor, a->scale);
    dsa_heads_done(&shared->v_empty[last]);

    if (FIRST) {
        factor[0] = 1;
        factor[1] = 1;

        dsa_heads_write(o, old, a);

#pragma unroll
        for (j = 0; j < 64; j++) {
            o[j] = 0;
        }
    }

    dsa_heads_weights(p, s);
    g->tile++;
}


/*
 * Computes 64 rows of each item of the block.  The first tile of the first
 * item has no previous product, and the last tile of the last item no next
 * scores.
 */

template <int MASKED, int GROUPS>
static __device__ __forceinline__ void
dsa_heads_compute(const dsa_heads_args_t *a, dsa_heads_shared_t *shared,
    dsa_heads_group_t *g)
{
    int               n;
    float             s[64], o[64], factor[2];
    uint32_t          i, turn, stage, words[2], p[32];
    dsa_heads_item_t  item;
    dsa_heads_rows_t  r, next;

    dsa_mbar_wait(&shared->q_full[g->group], 0);
    item = shared->item[g->group];
    dsa_heads_begin<MASKED>(&r, a, &item, g->group);

    if (MASKED) {
        dsa_heads_words(words, &r, a, 0);
    }

    dsa_mbar_wait(&shared->k_full[0], 0);
    dsa_bar_sync(1 + g->group, GROUPS * 128);
    dsa_heads_score(s, g->q, g->k);
    dsa_bar_arrive(2 - g->group, GROUPS * 128);
    dsa_wgmma_wait<0>();
    dsa_heads_settle(s);
    dsa_heads_done(&shared->k_empty[0]);

    if (item.tiles == 1) {
        dsa_heads_done(&shared->q_empty[g->group]);
    }

    if (MASKED) {
        dsa_heads_select(s, words);
    }

    if (r.causal == 0) {
        dsa_heads_causal(s, &r, a, 0);
    }

    dsa_heads_max(s, &r, factor, a->scale);
    dsa_heads_exponentials(s, &r, factor, a->scale);
    factor[0] = 1;
    factor[1] = 1;
    dsa_heads_weights(p, s);
    g->tile++;

#pragma unroll
    for (n = 0; n < 64; n++) {
        o[n] = 0;
    }

    for (turn = 1; /* void */ ; turn++) {

#pragma unroll 1
        for (i = 1; i < min(r.causal, r.item.tiles - 1); i++) {
            dsa_heads_step<MASKED, GROUPS, 0, 0>(s, o, p, &r, NULL, g, shared,
                                                 a, i, factor);
        }

#pragma unroll 1
        for ( /* void */ ; i < r.item.tiles; i++) {
            dsa_heads_step<MASKED, GROUPS, 1, 0>(s, o, p, &r, NULL, g, shared,
                                                 a, i, factor);
        }

        dsa_mbar_wait(&shared->q_full[g->group], turn % 2);
        item = shared->item[g->group];

        if (item.tiles == 0) {
            break;
        }

        dsa_heads_begin<MASKED>(&next, a, &item, g->group);
        dsa_heads_step<MASKED, GROUPS, 1, 1>(s, o, p, &next, &r, g, shared, a,
                                             0, factor);
        r = next;
    }

    dsa_heads_rescale(o, factor);

    stage = (g->tile - 1) % 2;

    dsa_mbar_wait(&shared->v_full[stage], (g->tile - 1) / 2 % 2);
    dsa_heads_weigh(o, p, g->v + stage * (DSA_HEADS_V / 16));
    dsa_wgmma_wait<0>();
    dsa_heads_settle(o);
    dsa_heads_write(o, &r, a);
}


/* The state of the loading thread. */

typedef struct {
    uint8_t            *q;
    uint8_t            *k;
    uint8_t            *v;
    uint32_t            tile;           /* number of the next tile */
} dsa_heads_loader_t;


static __device__ __forceinline__ void
dsa_heads_load_k(dsa_heads_loader_t *l, const CUtensorMap *kv_map,
    const CUtensorMap *rope_map, dsa_heads_shared_t *shared, uint32_t head,
    uint32_t tile)
{
    int       i;
    uint8_t  *k;
    uint32_t  stage;

    stage = l->tile % 2;
    k = l->k + stage * DSA_HEADS_K;

    dsa_mbar_wait(&shared->k_empty[stage], (l->tile / 2 + 1) % 2);
    dsa_mbar_arrive_expect(&shared->k_full[stage], DSA_HEADS_K);

    for (i = 0; i < 2; i++) {
        dsa_tma_load_3d(k + i * DSA_HEADS_SEGMENT, kv_map,
                        &shared->k_full[stage], i * 64, (int) head,
                        (int) (tile * DSA_HEADS_KEYS));
    }

    dsa_tma_load_2d(k + 2 * DSA_HEADS_SEGMENT, rope_map,
                    &shared->k_full[stage], DSA_CUDA_LATENT,
                    (int) (tile * DSA_HEADS_KEYS));
}


static __device__ __forceinline__ void
dsa_heads_load_v(dsa_heads_loader_t *l, const CUtensorMap *kv_map,
    dsa_heads_shared_t *shared, uint32_t head, uint32_t tile)
{
    int       i;
    uint8_t  *v;
    uint32_t  stage;

    stage = l->tile % 2;
    v = l->v + stage * DSA_HEADS_V;

    dsa_mbar_wait(&shared->v_empty[stage], (l->tile / 2 + 1) % 2);
    dsa_mbar_arrive_expect(&shared->v_full[stage], DSA_HEADS_V);

    for (i = 0; i < 2; i++) {
        dsa_tma_load_3d(v + i * DSA_HEADS_SEGMENT, kv_map,
                        &shared->v_full[stage], DSA_CUDA_NOPE + i * 64,
                        (int) head, (int) (tile * DSA_HEADS_KEYS));
    }
}


/*
 * Loads the queries of the turn-th item of this block for each warpgroup.  If
 * there is no item, only signals the end.
 */

static __device__ __forceinline__ void
dsa_heads_load_q(dsa_heads_loader_t *l, const CUtensorMap *q_map,
    dsa_heads_shared_t *shared, const dsa_heads_item_t *item, uint32_t turn,
    uint32_t warpgroups)
{
    int       j;
    uint8_t  *q;
    uint32_t  i;

    for (i = 0; i < warpgroups; i++) {
        q = l->q + i * DSA_HEADS_Q;

        dsa_mbar_wait(&shared->q_empty[i], (turn + 1) % 2);
        shared->item[i] = *item;

        if (item->tiles == 0) {
            dsa_mbar_arrive(&shared->q_full[i]);
            continue;
        }

        dsa_mbar_arrive_expect(&shared->q_full[i], DSA_HEADS_Q);

        for (j = 0; j < 3; j++) {
            dsa_tma_load_3d(q + j * DSA_HEADS_HALF, q_map, &shared->q_full[i],
                            j * 64, (int) item->head,
                            (int) (item->row + i * DSA_HEADS_ROWS));
        }
    }
}


/*
 * Returns the number of the block's next item, and prefetches its queries into
 * the L2, because no other block has read them.  Every block draws until no
 * item is left, so the number of draws is fixed, and the last one resets the
 * counter.
 */

static __device__ __forceinline__ uint32_t
dsa_heads_draw(const dsa_heads_args_t *a, const CUtensorMap *q_map,
    uint32_t items)
{
    int               j;
    uint32_t          i, n, drawn;
    dsa_heads_item_t  item;

    drawn = atomicAdd(a->drawn, 1);
    n = gridDim.x + drawn;

    if (drawn == items - 1) {
        *a->drawn = 0;
    }

    if (n < items) {
        item = dsa_heads_item(a, n);

        for (j = 0; j < 3; j++) {
            for (i = 0; i < a->warpgroups; i++) {
                dsa_heads_prefetch(q_map, j * 64, (int) item.head,
                                   (int) (item.row + i * DSA_HEADS_ROWS));
            }
        }
    }

    return n;
}


/*
 * Draws items and loads their queries, keys and values, in one thread.  The
 * next item is drawn two tiles before the end of an item: late enough for an
 * even distribution, and early enough for its loads.
 */

static __device__ __forceinline__ void
dsa_heads_load(const dsa_heads_args_t *a, dsa_heads_loader_t *l,
    const CUtensorMap *q_map, const CUtensorMap *kv_map,
    const CUtensorMap *rope_map, dsa_heads_shared_t *shared)
{
    uint32_t          i, n, turn, items, next;
    dsa_heads_item_t  item;

    items = a->blocks * a->heads;
    n = blockIdx.x;

    for (turn = 0; n < items; turn++) {
        item = dsa_heads_item(a, n);

        dsa_heads_load_k(l, kv_map, rope_map, shared, item.head, 0);
        dsa_heads_load_q(l, q_map, shared, &item, turn, a->warpgroups);

        next = items;

        for (i = 1; i <= item.tiles; i++) {

            if (i == (item.tiles > 3 ? item.tiles - 2 : 1)) {
                next = dsa_heads_draw(a, q_map, items);
            }

            l->tile++;

            if (i < item.tiles) {
                dsa_heads_load_k(l, kv_map, rope_map, shared, item.head, i);
            }

            l->tile--;
            dsa_heads_load_v(l, kv_map, shared, item.head, i - 1);
            l->tile++;
        }

        n = next;
    }

    item.tiles = 0;
    dsa_heads_load_q(l, q_map, shared, &item, turn, a->warpgroups);
}


template <int MASKED, int GROUPS>
static __global__ void __launch_bounds__(DSA_HEADS_THREADS, 1)
dsa_heads_kernel(const __grid_constant__ CUtensorMap q_map,
    const __grid_constant__ CUtensorMap kv_map,
    const __grid_constant__ CUtensorMap rope_map,
    const __grid_constant__ dsa_heads_args_t a)
{
    int                         i;
    uint8_t                    *smem;
    dsa_heads_group_t           g;
    dsa_heads_loader_t          l;
    dsa_heads_shared_t         *shared;
    extern __shared__ uint8_t   dsa_heads_smem[];

    smem = dsa_heads_smem + (1024 - dsa_smem(dsa_heads_smem) % 1024) % 1024;

    l.q = smem;
    l.k = l.q + 2 * DSA_HEADS_Q;
    l.v = l.k + 2 * DSA_HEADS_K;
    l.tile = 0;
    shared = (dsa_heads_shared_t *) (l.v + 2 * DSA_HEADS_V);

    if (threadIdx.x == 0) {
        for (i = 0; i < 2; i++) {
            dsa_mbar_init(&shared->q_full[i], 1);
            dsa_mbar_init(&shared->k_full[i], 1);
            dsa_mbar_init(&shared->v_full[i], 1);
            dsa_mbar_init(&shared->q_empty[i], 4);
            dsa_mbar_init(&shared->k_empty[i], 4 * GROUPS);
            dsa_mbar_init(&shared->v_empty[i], 4 * GROUPS);
        }

        dsa_mbar_fence_init();
    }

    __syncthreads();
    dsa_begin();

    if (threadIdx.x >= 256) {
        dsa_regs_less<40>();

        if (threadIdx.x == 256) {
            dsa_heads_load(&a, &l, &q_map, &kv_map, &rope_map, shared);
        }

    } else {
        dsa_regs_more<232>();

        if (threadIdx.x / 128 >= GROUPS) {
            return;
        }

        g.group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
        g.tile = 0;
        g.q = dsa_wgmma_desc(dsa_smem(l.q) + g.group * DSA_HEADS_Q, 1, 16,
                             1024);
        g.k = dsa_wgmma_desc(dsa_smem(l.k), 1, 16, 1024);
        g.v = dsa_wgmma_desc(dsa_smem(l.v), 1, DSA_HEADS_SEGMENT, 1024);

        /*
         * Barrier 1 + w signals that warpgroup w may start its products.
         * Warpgroup 0 is first, and at the end it waits for the arrival that
         * would start the next turn.
         */

        if (g.group == 1) {
            dsa_bar_arrive(1, 256);
        }

        dsa_heads_compute<MASKED, GROUPS>(&a, shared, &g);

        if (g.group == 0) {
            dsa_bar_sync(1, GROUPS * 128);
        }
    }
}


typedef void (*dsa_heads_kernel_pt)(const CUtensorMap, const CUtensorMap,
    const CUtensorMap, const dsa_heads_args_t);

/* The kernels without and with a mask, for one and for two warpgroups. */

static const dsa_heads_kernel_pt  dsa_heads_kernels[2][2] = {
    { dsa_heads_kernel<0, 1>, dsa_heads_kernel<0, 2> },
    { dsa_heads_kernel<1, 1>, dsa_heads_kernel<1, 2> }
};


int
dsa_attention_heads_setup(void)
{
    int  i, rc;

    for (i = 0, rc = 0; i < 4 && rc == 0; i++) {
        rc = dsa_setup_shared(dsa_heads_kernels[i / 2][i % 2], DSA_HEADS_SMEM);
    }

    return rc;
}


/*
 * Returns how many warpgroups compute an item.  Two take 1.25 times as long
 * for 128 rows and a tile as one for 64, because the softmax of one overlaps
 * with the products of the other.  One is better if items of 128 rows are too
 * few for all multiprocessors.
 */

static uint32_t
dsa_heads_warpgroups(uint32_t start, uint32_t rows, uint32_t heads,
    uint32_t processors)
{
    uint32_t  n, best;
    uint64_t  blocks, longest, shortest, tiles, time, least;

    static const uint64_t  cost[2] = { 8, 10 };

    best = 0;
    least = UINT64_MAX;
    longest = ((uint64_t) start + rows + DSA_HEADS_KEYS - 1) / DSA_HEADS_KEYS;

    for (n = 2; n > 0; n--) {
        blocks = (rows + n * DSA_HEADS_ROWS - 1) / (n * DSA_HEADS_ROWS);
        shortest = (start + min(n * DSA_HEADS_ROWS, rows) + DSA_HEADS_KEYS - 1)
                   / DSA_HEADS_KEYS;
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


extern "C" int
dsa_cuda_attention_heads(const dsa_cuda_state_t *state, dsa_bf16_t *out,
    const dsa_bf16_t *q, const dsa_bf16_t *kv, const dsa_bf16_t *latents,
    const uint32_t *mask, size_t ld_mask, uint32_t start, uint32_t rows,
    uint32_t heads, float scale, dsa_stream_t stream)
{
    int               rc;
    uint32_t          n, keys, grid, box[3];
    uint64_t          dim[3], stride[2], fit;
    CUtensorMap       q_map, kv_map, rope_map;
    dsa_heads_args_t  a;

    if (rows == 0) {
        return 0;
    }

    if (heads < 1 || heads > 128 || rows > INT32_MAX
        || start > INT32_MAX - rows || !(scale > 0))
    {
        return cudaErrorInvalidValue;
    }

    keys = start + rows;

    box[0] = 64;
    box[1] = 1;
    box[2] = DSA_HEADS_ROWS;
    dim[0] = DSA_HEADS_QK;
    dim[1] = heads;
    dim[2] = rows;
    stride[0] = DSA_HEADS_QK * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * heads;

    rc = dsa_cuda_tensor_map(state, &q_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             3, q, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    box[2] = DSA_HEADS_KEYS;
    dim[0] = DSA_CUDA_NOPE + DSA_CUDA_V;
    dim[2] = keys;
    stride[0] = dim[0] * sizeof(dsa_bf16_t);
    stride[1] = stride[0] * heads;

    rc = dsa_cuda_tensor_map(state, &kv_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                             3, kv, dim, stride, box,
                             CU_TENSOR_MAP_SWIZZLE_128B);
    if (rc != 0) {
        return rc;
    }

    box[1] = DSA_HEADS_KEYS;
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

    fit = DSA_HEADS_L2 / ((uint64_t) keys * (DSA_CUDA_NOPE + DSA_CUDA_V)
                          * sizeof(dsa_bf16_t));
    n = fit > 1 ? (uint32_t) ((heads + fit - 1) / fit) : heads;

    a.out = out;
    a.mask = mask;
    a.drawn = &state->counters->heads_drawn;
    a.ld_mask = ld_mask;
    a.start = start;
    a.rows = rows;
    a.heads = heads;
    a.mixed = (heads + n - 1) / n;
    a.warpgroups = dsa_heads_warpgroups(start, rows, heads, state->processors);
    a.blocks = (rows + a.warpgroups * DSA_HEADS_ROWS - 1)
               / (a.warpgroups * DSA_HEADS_ROWS);
    a.scale = scale * 1.44269504088896341f;

    grid = a.blocks * heads < state->processors ? a.blocks * heads
                                                : state->processors;

    return dsa_launch(dsa_heads_kernels[mask != NULL][a.warpgroups - 1], grid,
                      DSA_HEADS_THREADS, DSA_HEADS_SMEM, stream, q_map, kv_map,
                      rope_map, a);
}
